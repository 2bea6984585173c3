"""What the library itself costs, as ratios in one run: speed against copying the same vectors and against pycma, memory
in vectors.  `make overhead` prints the table and fails when a limit is passed.  The seconds of the import and of the
first run, in which everything is compiled, are printed and not counted.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import cma
import numpy as np

from fewdim import ConjugateSketch, RandomGradient, minimize, perturb, signs
from fewdim.problems import power_law, quadratic

D = 1_000_000
LARGE = 100_000  # dimensions of the runs of the default
FIRST_RUN = """
import time
start = time.perf_counter()
import fewdim
imported = time.perf_counter()
fewdim.minimize(lambda x: float(x @ x), [1.0] * 30, maxfev=300, rng=0)
print(imported - start, time.perf_counter() - imported)
"""


def best_of(work: Callable[[], Any], repeats: int) -> float:
    """Least seconds of several repeats: what the work takes when nothing else is in the way."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def best_in_turn(repeats: int, *works: Callable[[], Any]) -> list[float]:
    """Least seconds of each work; they take turns, so that a busy spell of the machine meets all of them."""
    rounds = [[best_of(work, 1) for work in works] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]


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

    def run(steps: int) -> None:
        minimize(lambda p: 1.0, x, method=method, maxfev=2 * steps, rng=0, tol=0)

    run(10)
    long, short, copy = best_in_turn(12, lambda: run(200), lambda: run(50), lambda: np.copyto(out, x))
    return (long - short) / 150 / min(copy, best_of(lambda: np.copyto(out, x), 50))


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
    seconds, their_seconds = best_in_turn(12, ours, theirs)
    return seconds / their_seconds


def vectors_held() -> float:
    """Most memory at any moment of a run beyond x itself, in vectors, the point handed to the function included."""
    x = np.ones(D)
    tracemalloc.start()
    minimize(lambda point: 1.0, x, method=RandomGradient(), maxfev=300, rng=0, tol=0)
    peak = tracemalloc.get_traced_memory()[1] / x.nbytes
    tracemalloc.stop()
    return peak - 1  # the iterate is a copy of the caller's x0


class Timed:
    """A function that knows how many seconds were spent in it."""

    def __init__(self, fun: Callable[[Any], float]) -> None:
        self.fun, self.seconds = fun, 0.0

    def __call__(self, x: Any) -> float:
        start = time.perf_counter()
        value = self.fun(x)
        self.seconds += time.perf_counter() - start
        return value


def own_seconds(solve: Callable[[Timed], Any], fun: Callable[[Any], float], repeats: int = 3) -> float:
    """Least seconds of several repeats that a solver spends outside the function."""
    times = []
    for _ in range(repeats):
        timed, start = Timed(fun), time.perf_counter()
        solve(timed)
        times.append(time.perf_counter() - start - timed.seconds)
    return min(times)


def harmonic(x: Any) -> float:
    """Eigenvalues 1/i on the first 1000 coordinates: the conjugate sketch stays in charge, and a value is cheap."""
    y = x[:1000]
    return 0.5 * float(y @ (y / np.arange(1.0, 1001.0)))


def sketched(fun: Callable[[Any], float], maxfev: int) -> None:
    """The default with nothing set, in a run that must stay with the conjugate sketch, whose memory grows by a vector a
    step.
    """
    result = minimize(fun, np.ones(LARGE), maxfev=maxfev, rng=0, tol=0)
    engines = result.message.partition("It was ")[2]
    if not engines.startswith("conjugate sketch") or ";" in engines:
        raise RuntimeError(f"the conjugate sketch must be in charge all along; it was {engines}")


def default_ratio() -> float:
    """The default's own time per evaluation over 10,000, after which about 70 vectors are remembered."""
    x, out = np.ones(LARGE), np.empty(LARGE)
    sketched(harmonic, 300)
    seconds = own_seconds(lambda fun: sketched(fun, 10_000), harmonic) / 10_000
    return seconds / best_of(lambda: np.copyto(out, x), 200)


def hundred_ratio(method: str, maxfev: int = 6000) -> float:
    """A method's own time per evaluation at d = 100 against pycma's in 6000, on the same rotated quadratic."""
    problem = quadratic(power_law(100, 1), rotate=3)

    def ours(fun: Timed) -> None:
        minimize(fun, problem.x0, method=method, maxfev=maxfev, rng=0, tol=0)

    def theirs(fun: Timed) -> None:
        strategy = cma.CMAEvolutionStrategy(problem.x0, 0.3, {"verbose": -9, "seed": 1, "maxfevals": 6000})
        while strategy.countevals < 6000:
            points = strategy.ask()
            strategy.tell(points, [fun(x) for x in points])

    ours(Timed(problem.fun))
    return own_seconds(ours, problem.fun) / maxfev / (own_seconds(theirs, problem.fun) / 6000)


def default_vectors_held() -> float:
    """Like `vectors_held`, over as many evaluations as it takes to fill the memory of the conjugate sketch.

    `Auto` declares the vectors of `QuasiNewton` besides; they are not here, since that is never in charge.
    """
    sketched(harmonic, 300)
    tracemalloc.start()
    sketched(harmonic, 110_000)
    peak = tracemalloc.get_traced_memory()[1] / (8 * LARGE)
    tracemalloc.stop()
    return peak - 2  # x0 and the iterate


def first_run() -> str:
    """Seconds of the import and of a first run in a fresh process that finds no compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        ran = subprocess.run([sys.executable, "-c", FIRST_RUN], env=environment, capture_output=True, text=True)
    ran.check_returncode()
    imported, compiled = map(float, ran.stdout.split())
    return f"not counted: import {imported:.1f} s, the first run, which compiles, {compiled:.1f} s"


def main() -> int:
    print(first_run())
    declared = ConjugateSketch().cost.vectors
    rows = [
        ("perturb with signs / copyto, d = 1e6", perturb_ratio(), 1.3),
        ("a RandomGradient step through minimize / copyto, d = 1e6", step_ratio(), 7.0),
        ("time per evaluation / pycma's, d = 10", small_ratio(), 0.5),
        ("vectors held beyond x, d = 1e6", vectors_held(), 4.05),  # 0.05: everything that is not a vector
        ("the default, time per evaluation / copyto, d = 1e5", default_ratio(), 10.0),
        ("the default, time per evaluation / pycma's, d = 100", hundred_ratio("auto"), 1.0),
        ("the same, while the quadratic model is in charge", hundred_ratio("quadratic-model", 1000), math.inf),  # told
        ("the default, vectors held beyond x, d = 1e5", default_vectors_held(), declared + 0.5),  # as many bytes
    ]
    for name, value, limit in rows:
        print(f"{name:60s} {value:7.2f}   limit {limit:6.2f}   {'ok' if value <= limit else 'OVER'}")
    return int(any(value > limit for _, value, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
