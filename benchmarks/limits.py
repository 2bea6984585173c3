"""How much is left to gain: full BFGS with exact gradients and exact line searches, d values a gradient and no others.

Nobody who has values only can have that: it is a mark, not a bound, for methods that take gradients by differences.
Prints, by family, the geometric mean ratio to the best peer per cell of our default, of it, and of the better of the
two in every cell, over the problems of up to 2,000 dimensions whose gradient is known; writes the table to limits.md.

    python -m benchmarks.limits
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks import scores
from benchmarks.harness import TARGETS
from benchmarks.problem import Problem, Vector
from benchmarks.problems import PROBLEMS, problem
from benchmarks.report import families, number, rows
from benchmarks.run import RESULTS, load

PAGE = Path(__file__).with_name("limits.md")
LARGEST = 2000  # dimensions
STEPS = 200
CLOSE = 1e-8  # relative accuracy of a line search


def direction(steps: list[Vector], changes: list[Vector], g: Vector) -> Vector:
    """-H g with all pairs, above a multiple of the identity."""
    q, weights = -g, []
    for step, y in zip(reversed(steps), reversed(changes), strict=True):
        weights.append(float(step @ q) / float(step @ y))
        q = q - weights[-1] * y
    if steps:
        q = q * (float(steps[-1] @ changes[-1]) / float(changes[-1] @ changes[-1]))
    for step, y, weight in zip(steps, changes, reversed(weights), strict=True):
        q = q + (weight - float(y @ q) / float(step @ y)) * step
    return q


def ideal(p: Problem) -> list[float]:
    """Values to each target, d for each gradient; inf where it does not get there in `STEPS`."""
    assert p.gradient is not None
    x, drop, reached = p.x0.copy(), p.drop, [math.inf] * len(TARGETS)
    f, g = p.fun(x), p.gradient(x)
    steps: list[Vector] = []
    changes: list[Vector] = []
    first = 1 / float(np.linalg.norm(g))
    for k in range(1, STEPS):
        along = direction(steps, changes, g)
        end = 1.0 if steps else first
        found = minimize_scalar(lambda a, x=x, e=along: p.fun(x + a * e), bracket=(0, end), tol=CLOSE)
        moved = float(found.x) * along
        f_new, g_new = p.fun(x + moved), p.gradient(x + moved)
        if not f_new < f:
            break
        if float(moved @ (g_new - g)) > 0:
            steps, changes = [*steps, moved], [*changes, g_new - g]
        x, f, g = x + moved, f_new, g_new
        gap = (f - p.minimum) / drop
        reached = [min(n, k * p.d) if gap <= target else n for n, target in zip(reached, TARGETS, strict=True)]
        if math.isfinite(reached[-1]):
            break
    return reached


def main() -> None:
    cells = [c for c in scores.cells(load(sorted(RESULTS.glob("*.jsonl"))).values()) if c.best]
    kept = [n for n in PROBLEMS if "/" not in n and problem(n).d <= LARGEST and problem(n).gradient is not None]
    best = {name: ideal(problem(name)) for name in kept}
    body = []
    for family, part in families([c for c in cells if c.problem in best]).items():
        ratios = []
        for c in part:
            exact = min(best[c.problem][TARGETS.index(c.target)], 2.0 * c.budget)
            ratios.append([math.log(n / c.peer) for n in (c.ours, exact, min(c.ours, exact))])
        if ratios:
            body.append((family, str(len(ratios)), *(number(math.exp(r)) for r in np.mean(ratios, axis=0))))
    table = rows(("family", "cells", "fewdim", "ideal BFGS", "the better in each cell"), body)
    text = "\n\n".join((__doc__ or "").split("\n\n")[:2])
    PAGE.write_text(f"# What is left to gain\n\n{text}\nWritten by `benchmarks/limits.py`.\n\n{table}")
    print(table)


if __name__ == "__main__":
    main()
