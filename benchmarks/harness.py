"""One run of one solver on one problem: who counts, who judges, who stops.

Every evaluation of any kind is counted here, never by the solver, and judged by the true value at the point asked for,
whatever the solver is told.  A run ends at the budget, at the last target, at the limit of the solver's own time, or
when the solver stops; the first three by an exception of ours that no `except Exception` catches.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.problem import Problem, Vector

TARGETS = tuple(10.0**-k for k in range(1, 7))
SECONDS = 60.0  # of processor time of the solver itself in a run; the function's does not count

Solver = Callable[[Callable[[Any], float], Vector, int, int], object]


class Enough(BaseException):
    """The run is over: `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Counted:
    """The function as a solver sees it.  Keeps the count, the best true gap, and when each target was met."""

    def __init__(self, problem: Problem, seed: int, budget: int | None = None, seconds: float = SECONDS) -> None:
        self.problem = problem
        self.budget = problem.budget if budget is None else budget
        self.drop = problem.drop
        self.rng = np.random.default_rng([seed, 20_000])
        self.nfev = 0
        self.gap = math.inf
        self.reached: list[int | None] = [None] * len(TARGETS)
        self.function_time = 0.0
        self.deadline = seconds
        self.began = time.process_time()

    @property
    def solver_time(self) -> float:
        return time.process_time() - self.began - self.function_time

    def __call__(self, x: Any) -> float:
        began = time.process_time()
        if self.nfev >= self.budget:
            raise Enough("budget")
        if began - self.began - self.function_time > self.deadline:
            raise Enough("time")
        point = np.array(x, dtype=np.float64).reshape(-1)
        if point.size != self.problem.d:
            raise ValueError(f"a point must have {self.problem.d} coordinates; got {point.size}.")
        self.nfev += 1
        with np.errstate(all="ignore"):
            value = self.problem.fun(point)
            told = self.problem.observe(point, value, self.rng, self.drop)
        gap = (value - self.problem.minimum) / self.drop
        if gap < self.gap:
            self._improve(gap)
        self.function_time += time.process_time() - began
        if self.reached[-1] is not None:
            raise Enough("solved")
        return told

    def _improve(self, gap: float) -> None:
        self.gap = gap
        for k, target in enumerate(TARGETS):
            if self.reached[k] is None and gap <= target:
                self.reached[k] = self.nfev


def run(
    problem: Problem, solver: Solver, seed: int, *, budget: int | None = None, seconds: float = SECONDS
) -> dict[str, Any]:
    """The record of a run: evaluations to each target (None: missed), the best gap, times, and how it ended."""
    fun = Counted(problem, seed, budget, seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            solver(fun, problem.x0.copy(), fun.budget, seed)
            status = "stopped"
        except Enough as end:
            status = end.reason
        except Exception as error:
            status = f"{type(error).__name__}: {error}"[:120]
    return {
        "problem": problem.name,
        "digest": problem.digest,
        "seed": seed,
        "d": problem.d,
        "budget": fun.budget,
        "reached": fun.reached,
        "gap": float(f"{fun.gap:.3g}") if math.isfinite(fun.gap) else None,
        "nfev": fun.nfev,
        "solver_cpu_s": round(fun.solver_time, 3),
        "function_cpu_s": round(fun.function_time, 3),
        "status": status,
    }
