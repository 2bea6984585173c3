"""Find the minima that no formula gives, with gradients, and write them to minima.json.

Least-squares functions by Levenberg-Marquardt, the others by L-BFGS and then BFGS or Newton-CG on exact gradients.
Where local minima are possible the best of several starts counts.  Applications have no gradients: the lowest value is
taken that a few solvers find, ours among them, with twice the budget.  With each minimum is kept what is left of the
gradient, and for functions with a ridge of strength mu the bound |g|^2 / (2 mu) on the error where it is convex.

    python -m benchmarks.minima [name ...]
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from typing import Any

import numpy as np
from scipy.optimize import approx_fprime, least_squares, minimize

from benchmarks.harness import Enough
from benchmarks.problem import MINIMA, Problem, Vector
from benchmarks.problems import PROBLEMS, problem
from benchmarks.run import OURS, SOLVERS

STARTS = 12
TIMES = 2  # the budget of the benchmark, for applications


def polish(p: Problem, x: Vector) -> tuple[Vector, float]:
    """A stationary point from x."""
    if p.residuals is not None:
        for _ in range(3):
            kind = "lm" if p.residuals(x).size >= x.size else "trf"
            x = least_squares(p.residuals, x, jac="3-point", method=kind, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
        return x, float(np.linalg.norm(approx_fprime(x, p.fun)))
    assert p.gradient is not None
    settings: dict[str, Any] = {"maxcor": 50, "maxiter": 200_000, "maxfun": 200_000, "ftol": 0, "gtol": 1e-13}
    for _ in range(3):
        x = minimize(p.fun, x, jac=p.gradient, method="L-BFGS-B", options=settings).x
    if p.d <= 1000:
        x = minimize(p.fun, x, jac=p.gradient, method="BFGS", options={"gtol": 1e-13, "maxiter": 2000}).x
    return x, float(np.linalg.norm(p.gradient(x)))


class Lowest:
    """The function of a problem for one solver after another, and the lowest point that any of them has seen."""

    def __init__(self, p: Problem) -> None:
        self.p, self.x, self.f, self.left = p, p.x0, p.fun(p.x0), 0

    def __call__(self, x: Any) -> float:
        if self.left == 0:
            raise Enough("budget")
        self.left -= 1
        point = np.array(x, dtype=np.float64).reshape(-1)
        with np.errstate(all="ignore"):
            f = self.p.fun(point)
        if f < self.f:
            self.x, self.f = point, f
        return f

    def ask(self, solver: str, seed: int) -> None:
        self.left = TIMES * self.p.budget
        with contextlib.suppress(Enough), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            SOLVERS[solver].solve(self, self.p.x0.copy(), self.left, seed)


def lowest(p: Problem) -> tuple[Vector, float]:
    """Where a few solvers come to."""
    seen = Lowest(p)
    for solver in (OURS, "scipy L-BFGS-B", "nlopt NEWUOA", "cma"):
        for seed in range(3 if solver == OURS else 1):
            if SOLVERS[solver].takes(p):
                seen.ask(solver, seed)
    return seen.x, seen.f


def find(p: Problem) -> dict[str, float]:
    if p.kind == "application":
        x, f = lowest(p)
        return {"minimum": f, "gradient": float(np.linalg.norm(approx_fprime(x, p.fun)))}
    rng = np.random.default_rng(0)
    local = p.kind in ("non-convex", "classic")
    best = (np.inf, np.inf)
    for k in range(STARTS if local else 1):
        scale = 0.0 if k == 0 else 0.3 * float(np.sqrt((p.x0**2).mean()) or 1.0)
        x, slope = polish(p, p.x0 + scale * rng.standard_normal(p.d))
        value = p.fun(x)
        if value < best[0]:
            best = (value, slope)
    return {"minimum": best[0], "gradient": best[1]}


def main() -> None:
    minima = json.loads(MINIMA.read_text()) if MINIMA.exists() else {}
    names = sys.argv[1:] or [name for name in PROBLEMS if "/" not in name]
    for name in names:
        p = problem(name)
        if sys.argv[1:] or np.isnan(p.minimum):
            minima[name] = find(p)
            print(f"{name:30s} {minima[name]['minimum']:.16g} |g| = {minima[name]['gradient']:.1e}", flush=True)
            MINIMA.write_text(json.dumps(dict(sorted(minima.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
