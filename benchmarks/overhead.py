"""What the library itself costs, as ratios in one run: speed against copying the same vectors and against pycma, memory
in vectors.  `make overhead` prints the table and fails when a limit is passed.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import cma
import numpy as np

from fewdim import RandomGradient, minimize, perturb, signs

D = 1_000_000


def best_of(work: Callable[[], Any], repeats: int) -> float:
    """Least seconds of several repeats: what the work takes when nothing else is in the way."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def perturb_ratio() -> float:
    x, out, u = np.ones(D), np.empty(D), signs((1,))
    perturb(x, 0.1, u, out)
    pairs = [(best_of(lambda: perturb(x, 0.1, u, out), 20), best_of(lambda: np.copyto(out, x), 20)) for _ in range(10)]
    return float(np.median([a / b for a, b in pairs]))


def step_ratio() -> float:
    """A step of RandomGradient, two evaluations of a free objective, through `minimize`: the slope of time against
    steps, so that the first touch of fresh memory does not count.
    """
    method, x, out = RandomGradient(step=1e-9, noise=0), np.ones(D), np.empty(D)

    def seconds(steps: int) -> float:
        return best_of(lambda: minimize(lambda p: 1.0, x, method=method, maxfev=2 * steps, rng=0, tol=0), 8)

    seconds(10)
    return (seconds(200) - seconds(50)) / 150 / best_of(lambda: np.copyto(out, x), 50)


def small_ratio() -> float:
    """Time per evaluation at d = 10 with a free objective, against pycma's ask and tell."""

    def ours() -> None:
        minimize(lambda x: float(x[0]), np.ones(10), method="random-gradient", maxfev=2000, rng=0, tol=0)

    def theirs() -> None:
        strategy = cma.CMAEvolutionStrategy(np.ones(10), 0.3, {"verbose": -9, "seed": 1, "maxfevals": 2000})
        while strategy.countevals < 2000:
            points = strategy.ask()
            strategy.tell(points, [float(x[0]) for x in points])

    ours()
    theirs()
    return float(np.median([best_of(ours, 2) / best_of(theirs, 2) for _ in range(3)]))


def vectors_held() -> float:
    """Most memory at any moment of a run beyond x itself, in vectors, the point handed to the function included."""
    x = np.ones(D)
    tracemalloc.start()
    minimize(lambda point: 1.0, x, method=RandomGradient(), maxfev=300, rng=0, tol=0)
    peak = tracemalloc.get_traced_memory()[1] / x.nbytes
    tracemalloc.stop()
    return peak - 1  # the iterate is a copy of the caller's x0


def main() -> int:
    rows = [
        ("perturb with signs / copyto, d = 1e6", perturb_ratio(), 1.3),
        ("a RandomGradient step through minimize / copyto, d = 1e6", step_ratio(), 7.0),
        ("time per evaluation / pycma's, d = 10", small_ratio(), 0.5),
        ("vectors held beyond x, d = 1e6", vectors_held(), 4.05),  # 0.05: everything that is not a vector
    ]
    for name, value, limit in rows:
        print(f"{name:60s} {value:6.2f}   limit {limit:.2f}   {'ok' if value <= limit else 'OVER'}")
    return int(any(value > limit for _, value, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
