"""Kill -9 a run at random moments, run the same line again, and compare with a run that nobody touched.

Prints JSON: kills, how many fell inside the run, how many results are bitwise equal, how many recorded evaluations were
repeated.  A process of its own, with one thread, so that it can fork.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import fewdim
from fewdim.ledger import Ledger

METHODS = [
    fewdim.RandomPursuit(noise=0.0),
    fewdim.RandomGradient(batch=5),
    fewdim.Accelerated(),
    fewdim.HeavyBall(noise=1e-3),  # in noise one evaluation more confirms the answer
]
X0 = np.linspace(-1, 1, 30)
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a kill is a kill, and disks are slow
calls = 0


def fun(x: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    global calls
    calls += 1
    if calls % 37 == 36:  # by the number of the call, so that a repeated evaluation would show in the values too
        raise ArithmeticError("no luck")
    return float(np.sum(np.arange(1, 31) * (x - 0.3) ** 2))


def run(method: Any, journal: Path | None, start: int = 0) -> Any:
    global calls
    calls = start
    return fewdim.minimize(fun, X0, method=method, rng=7, maxfev=250, journal=journal)


def same(a: Any, b: Any) -> bool:
    return bool(
        a.x.tobytes() == b.x.tobytes()
        and (a.fun, a.nfev, a.nit, a.nfail, a.reason, a.message) == (b.fun, b.nfev, b.nit, b.nfail, b.reason, b.message)
        and a.history.nfev.tobytes() == b.history.nfev.tobytes()
        and a.history.fun.tobytes() == b.history.fun.tobytes()
    )


def once(method: Any, expected: Any, chance: random.Random, folder: str, longest: float) -> tuple[bool, bool, int]:
    """One kill: whether it fell inside the run, whether the result is equal, how many evaluations were repeated."""
    path = Path(folder) / "run.db"
    child = os.fork()
    if child == 0:
        run(method, path)
        os._exit(0)
    time.sleep(chance.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    recorded = 0
    if path.exists():
        ledger = Ledger(path, write=False)
        recorded = len(ledger.rows())
        ledger.close()
    result = run(method, path, start=recorded)
    return 0 < recorded < expected.nfev, same(result, expected), calls - expected.nfev


def main(kills: int, seed: int) -> None:
    chance = random.Random(seed)
    inside = equal = repeated = 0
    expected, longest = [], []
    for method in METHODS:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            expected.append(run(method, Path(folder) / "warm.db"))
            start = time.perf_counter()
            run(method, Path(folder) / "run.db")
            longest.append(1.1 * (time.perf_counter() - start))
    for kill in range(kills):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            i = kill % len(METHODS)
            within, good, more = once(METHODS[i], expected[i], chance, folder, longest[i])
        inside, equal, repeated = inside + within, equal + good, repeated + abs(more)
    print(json.dumps({"kills": kills, "inside": inside, "equal": equal, "repeated": repeated}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
