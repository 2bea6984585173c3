"""How much is left to gain: an oracle that picks the best of our default and of ideal methods in every cell.

The ideal methods know the gradient exactly and pay only for the slopes that they take, one value each; line searches
are exact, and they and everything else are for nothing.  *BFGS* takes all d slopes a step.  *Sketches* are conjugate
sketches: m slopes along random directions and one for each vector of the memory, with five rules for m and the memory,
of which the best counts in every cell.  The secants of the memory are exact, and a Newton step in its span follows each
step.  Nobody who has values only can have any of these, and nobody can know which to take where: a mark for methods
that take gradients or sketches by differences, not a bound for all methods.

Prints, by family, the geometric mean ratio to the best peer per cell, one seed, over the problems of up to 10,000
dimensions whose gradient is known, noisy ones left out; and of the cells that no peer reaches, how many are reached.
In float32 the ideal methods see exact values and gradients, the peers and ours what everybody sees.  Writes limits.md.

    python -m benchmarks.limits
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks import scores
from benchmarks.harness import TARGETS
from benchmarks.problem import Problem, Vector
from benchmarks.problems import PROBLEMS, problem
from benchmarks.report import families, number, rows
from benchmarks.run import RESULTS, load
from benchmarks.scores import Cell

PAGE = Path(__file__).with_name("limits.md")
LARGEST = 10_000  # dimensions
STEPS = 400
CLOSE = 1e-8  # relative accuracy of a line search
SKETCHES = ((1, 8, STEPS), (3, 8, STEPS), (0, 32, STEPS), (0, 128, STEPS), (0, 64, 16))
# directions for each vector of the memory, fewest directions, most vectors
LATEST = 4  # vectors that a full memory keeps whatever their curvature
PATIENCE = 3  # steps in a row that lower nothing; one more is the end

Reached = list[float]


class Record:
    """The values to each target, inf where it is not met."""

    def __init__(self, p: Problem) -> None:
        self.p, self.drop, self.spent = p, p.drop, 0
        self.reached: Reached = [math.inf] * len(TARGETS)

    def note(self, f: float) -> None:
        if self.spent > self.p.budget:
            return
        gap = (f - self.p.minimum) / self.drop
        self.reached = [
            min(n, self.spent) if gap <= target else n for n, target in zip(self.reached, TARGETS, strict=True)
        ]

    @property
    def over(self) -> bool:
        return math.isfinite(self.reached[-1]) or self.spent > self.p.budget


def searched(p: Problem, x: Vector, e: Vector, end: float) -> tuple[Vector, float]:
    """The lowest point along e, and f there."""
    found = minimize_scalar(lambda a: p.fun(x + a * e), bracket=(0, end), tol=CLOSE)
    moved = float(found.x) * e
    return moved, p.fun(x + moved)


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


def bfgs(p: Problem) -> Reached:
    """Full BFGS, d values a step."""
    assert p.gradient is not None
    x, record = p.x0.copy(), Record(p)
    f, g = p.fun(x), p.gradient(x)
    steps: list[Vector] = []
    changes: list[Vector] = []
    first = 1 / float(np.linalg.norm(g))
    while not record.over and len(steps) < STEPS:
        record.spent += p.d
        moved, f_new = searched(p, x, direction(steps, changes, g), 1.0 if steps else first)
        if not f_new < f:
            break
        g_new = p.gradient(x + moved)
        if float(moved @ (g_new - g)) > 0:
            steps, changes = [*steps, moved], [*changes, g_new - g]
        x, f, g = x + moved, f_new, g_new
        record.note(f)
    return record.reached


def sketch(p: Problem, each: int, least: int, most: int, seed: int = 0) -> Reached:
    """Conjugate sketches of max(least, each |S|) directions, with at most `most` vectors in S."""
    assert p.gradient is not None
    rng, x, record = np.random.default_rng(seed), p.x0.copy(), Record(p)
    f, g = p.fun(x), p.gradient(x)
    S, Y = np.empty((0, p.d)), np.empty((0, p.d))  # past steps of unit curvature, and A times them
    fails = 0
    for _ in range(STEPS):
        m = min(p.d, max(least, each * len(S)))
        record.spent += m + len(S)
        if record.over or fails > PATIENCE:
            break
        U = np.eye(p.d) if m == p.d else np.linalg.qr(rng.standard_normal((p.d, m)))[0]
        e = -U @ (U.T @ g)
        for _ in range(2):  # twice is enough
            e = e - S.T @ (Y @ e)
        e = e if float(e @ g) < 0 else -U @ (U.T @ g)
        short = 1e-6 * max(1.0, float(np.linalg.norm(x))) / float(np.linalg.norm(e))
        bend = float(e @ (p.gradient(x + short * e) - g)) / short
        moved, f_new = searched(p, x, e, -float(e @ g) / bend if bend > 0 else 1 / float(np.linalg.norm(e)))
        if not f_new < f:
            S, Y, fails = S[:0], Y[:0], fails + 1
            continue
        g_new, fails = p.gradient(x + moved), 0
        y = g_new - g
        if float(moved @ y) > 0:
            unit = 1 / math.sqrt(float(moved @ y))
            S, Y = np.vstack([S, unit * moved]), np.vstack([Y, unit * y])
        if len(S) > most:
            flattest = int(np.argmax(np.sum(S[:-LATEST] ** 2, axis=1)))
            S, Y = np.delete(S, flattest, axis=0), np.delete(Y, flattest, axis=0)
        x, f, g = x + moved, f_new, g_new
        moved, f_new = searched(p, x, -S.T @ (S @ g), 1.0)
        if f_new < f:
            x, f, g = x + moved, f_new, p.gradient(x + moved)
        record.note(f)
    return record.reached


def ideals(name: str) -> tuple[Reached, Reached]:
    """Of BFGS, and of the best sketch for each target."""
    p = problem(name)
    with np.errstate(all="ignore"):
        return bfgs(p), [min(cell) for cell in zip(*(sketch(p, *rule) for rule in SKETCHES), strict=True)]


def noisy(name: str) -> bool:
    """Whether values scatter, so that exact gradients say nothing about what can be had."""
    return problem(name).law in ("gaussian", "uniform")


def means(cells: list[Cell], columns: dict[str, Callable[[Cell], float]]) -> list[str]:
    """Of the ratios to the best peer, or to twice the budget where none arrives."""
    return [number(math.exp(np.mean([math.log(of(c) / c.peer) for c in cells]))) for of in columns.values()]


def main() -> None:
    kept = [n for n in PROBLEMS if not noisy(n) and problem(n).d <= LARGEST and problem(n).gradient is not None]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = dict(zip(kept, pool.map(ideals, kept), strict=True))
    cells = [c for c in scores.cells(load(sorted(RESULTS.glob("*.jsonl"))).values()) if c.problem in found]

    def ideal(c: Cell, i: int) -> float:
        return min(found[c.problem][i][TARGETS.index(c.target)], 2.0 * c.budget)

    columns: dict[str, Callable[[Cell], float]] = {
        "fewdim": lambda c: c.ours,
        "ideal BFGS": lambda c: ideal(c, 0),
        "ideal sketch": lambda c: ideal(c, 1),
        "the best of the three": lambda c: min(c.ours, ideal(c, 0), ideal(c, 1)),
    }
    body, own = [], []
    for family, group in families(cells).items():
        theirs, beyond = [c for c in group if c.best], [c for c in group if not c.best]
        if theirs:
            shares = (
                f"{sum(of(c) <= c.budget for c in beyond)}" for of in (columns["fewdim"], [*columns.values()][-1])
            )
            body.append((family, f"{len(theirs)}", *means(theirs, columns), f"{len(beyond)}", *shares))
            both = [*theirs, *(c for c in beyond if c.ours <= c.budget)]
            own.append((family, f"{len(both)}", *means(both, columns)))
    table = rows(("family", "cells", *columns, "no peer", "of these fewdim", "of these any"), body)
    table += "\nWith the cells that only fewdim reaches, the peers at twice the budget:\n\n"
    table += rows(("family", "cells", *columns), own)
    text = (__doc__ or "").split("\n\n    python")[0]
    PAGE.write_text(f"# What is left to gain\n\n{text}\n\nWritten by `benchmarks/limits.py`.\n\n{table}")
    print(table)


if __name__ == "__main__":
    main()
