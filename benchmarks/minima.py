"""Find the minima that no formula gives, with gradients, and write them to minima.json.

Least-squares functions by Levenberg-Marquardt, the others by L-BFGS and then BFGS or Newton-CG on exact gradients.
Where local minima are possible the best of several starts counts.  With each minimum is kept what is left of the
gradient, and for functions with a ridge of strength mu the bound |g|^2 / (2 mu) on the error where it is convex.

    python -m benchmarks.minima [name ...]
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from scipy.optimize import approx_fprime, least_squares, minimize

from benchmarks.problem import MINIMA, Problem, Vector
from benchmarks.problems import PROBLEMS, problem

STARTS = 12


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


def find(p: Problem) -> dict[str, float]:
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
