"""What a journal costs: time against the same run without one, for both settings of synchronous, and bytes.

Prints ratios of runs of a 1 ms function, taken in turns, and the size of a run in a million dimensions.  The function
burns its millisecond of processor time; the ratios are of wall-clock and of processor time.

    python benchmarks/journal.py
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fewdim

Vector = np.ndarray[Any, np.dtype[np.float64]]


def slow(x: Vector) -> float:
    end = time.thread_time() + 1e-3
    while time.thread_time() < end:
        pass
    return float(x @ x)


def times(call: Callable[[], object]) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def overhead(method: str, d: int, synchronous: Any, repeats: int = 5) -> None:
    plain, kept = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            journal = fewdim.Journal(Path(folder) / "run.db", synchronous=synchronous)
            arguments: dict[str, Any] = {"method": method, "rng": 0, "maxfev": 1000, "tol": 0}
            plain.append(times(lambda a=arguments: fewdim.minimize(slow, np.ones(d), **a)))  # type: ignore[misc]
            kept.append(times(lambda a=arguments, j=journal: fewdim.minimize(slow, np.ones(d), journal=j, **a)))  # type: ignore[misc]
    ratios = [(k[0] / p[0], k[1] / p[1]) for k, p in zip(kept, plain, strict=True)]
    wall, processor = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(f"{method:16} d={d:<6} {synchronous:7} wall {wall:.3f}  processor {processor:.3f}", flush=True)


def size(method: Any, maxfev: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        most = 0

        def fun(x: Vector) -> float:
            nonlocal most
            most = max(most, sum(part.stat().st_size for part in Path(folder).iterdir()))
            return float(x @ x)

        fewdim.minimize(fun, np.ones(10**6), method=method, rng=0, maxfev=maxfev, tol=0, journal=path)
        start = time.perf_counter()
        fewdim.minimize(fun, np.ones(10**6), method=method, rng=0, maxfev=maxfev, tol=0, journal=path)
        again = time.perf_counter() - start
        print(f"d=1e6, {maxfev} evaluations, {method}: at most {most / 1e6:.1f} MB on disk, ", end="")
        print(f"{path.stat().st_size / 1e6:.1f} MB in the end, {again:.1f} s to reopen", flush=True)


if __name__ == "__main__":
    for name in ("random-pursuit", "random-gradient", "accelerated"):
        for dimension in (10, 1000):
            overhead(name, dimension, "normal")
    overhead("random-pursuit", 10, "full", repeats=2)
    size(fewdim.RandomPursuit(noise=0.0), 10_000)
