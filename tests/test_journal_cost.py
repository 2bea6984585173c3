"""What a journal costs, in time and in bytes; see benchmarks/journal.py for more of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewdim import minimize
from fewdim.directions import Vector


@pytest.mark.long
@pytest.mark.parametrize("method", ["random-pursuit", "random-gradient", "accelerated"])
def test_a_journal_costs_at_most_a_tenth_of_a_millisecond_function(method: str, tmp_path: Path) -> None:
    """Best of 7 runs with a journal against best of 7 without, in turns, by processor time.

    Others use the machine too, and then wall-clock times say more about them; benchmarks/journal.py prints both.
    """

    def fun(x: Vector) -> float:
        end = time.thread_time() + 1e-3
        while time.thread_time() < end:
            pass
        return float(x @ x)

    wall: dict[bool, list[float]] = {True: [], False: []}
    processor: dict[bool, list[float]] = {True: [], False: []}
    for number in range(14):
        kept = bool(number % 2)
        journal = tmp_path / f"{number}.db" if kept else None
        start = time.perf_counter(), time.process_time()
        minimize(fun, np.ones(100), method=method, rng=0, maxfev=1000, tol=0, journal=journal)
        wall[kept].append(time.perf_counter() - start[0])
        processor[kept].append(time.process_time() - start[1])
    ratio = min(processor[True]) / min(processor[False])
    print(f"{method}: processor {ratio:.3f}, wall {min(wall[True]) / min(wall[False]):.3f}")
    assert ratio <= 1.1


@pytest.mark.long
def test_a_million_dimensions_stay_small(tmp_path: Path) -> None:
    """10,000 evaluations at d = 1e6 never take more than 50 MB, the log included, and reopen without evaluating."""
    most = 0

    def fun(x: Vector) -> float:
        nonlocal most
        most = max(most, sum(part.stat().st_size for part in tmp_path.iterdir()))
        return float(x @ x)

    arguments: dict[str, Any] = {"rng": 0, "maxfev": 10_000, "tol": 0, "noise": 0.0, "journal": tmp_path / "run.db"}
    first = minimize(fun, np.ones(10**6), **arguments)
    start = time.perf_counter()
    again = minimize(fun, np.ones(10**6), **arguments)
    assert again.x.tobytes() == first.x.tobytes()
    print(f"{most / 1e6:.1f} MB, {time.perf_counter() - start:.2f} s to reopen")
    assert first.nfev == 10_000
    assert most < 50e6
