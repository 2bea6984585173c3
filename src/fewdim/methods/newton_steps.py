"""The parts of a step of `QuasiNewton`: directions, the plane of two of them, and the search along a line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fewdim.core import Query, Steps
from fewdim.directions import Along, Vector, inner
from fewdim.gradients import Floats
from fewdim.lines import Reach, insisted

LATEST = 5  # pairs by which the diagonal is judged
LONGEST = 1e6  # of the scale of x, or 1: how far the first trial of a line search goes where curvature is not seen
STRETCH = 4.0  # the most that one trial of a line search goes beyond the last
CHEAP = 50  # dimensions from which on a few values more are little beside a gradient
NEARLY = 0.1  # of the length of a step: how close to the lowest point a line search goes where values are cheap
SINGULAR = 1e14  # condition of a matrix that cannot be inverted
BENT = 20  # dimensions up to which steps are kept short
APART = 0.95  # the square of the cosine, in terms of curvature, up to which two directions span a plane


class Trial(NamedTuple):
    """A step of length a along a direction, its value, and how many values it took to find."""

    a: float
    f_a: float
    tries: int


class Course(NamedTuple):
    """A direction, the slope along it, and the value at its end; nan where that was not asked for."""

    p: Floats
    slope: float
    f_p: float = math.nan


def newton_direction(steps: Sequence[Floats], changes: Sequence[Floats], diagonal: Floats, g: Floats) -> Floats:
    """-H g by the two loops of L-BFGS, from the inverse of `diagonal`, scaled by the lengths of the latest pair."""
    q = -g
    products = [inner(step, y) for step, y in zip(steps, changes, strict=True)]
    weights: list[float] = []
    for step, y, product in zip(reversed(steps), reversed(changes), reversed(products), strict=True):
        weights = [*weights, inner(step, q) / product]
        q = q - weights[-1] * y
    q = q / diagonal
    if products:
        q *= _multiple(steps[-1], changes[-1], diagonal)
    for step, y, product, weight in zip(steps, changes, products, reversed(weights), strict=True):
        q += (weight - inner(y, q) / product) * step
    return q


def _multiple(step: Floats, y: Floats, diagonal: Floats) -> float:
    """Of the inverse of the diagonal, by the latest pair: how long the step was by how long the diagonal takes it for.

    In few dimensions the usual, shorter one: line searches are rough there, and valleys are often bent.
    """
    change = inner(y, y / diagonal)
    return inner(step, y) / change if y.size <= BENT else math.sqrt(inner(step, diagonal * step) / change)


def product_by(steps: Sequence[Floats], changes: Sequence[Floats], diagonal: Floats) -> Callable[[Floats], Floats]:
    """The product B v, where B is the inverse of the H of `newton_direction` (Byrd, Nocedal, Schnabel, 1994)."""
    if not steps:
        return lambda v: diagonal * v
    root = np.sqrt([inner(step, y) for step, y in zip(steps, changes, strict=True)])[:, None]
    s, y = np.array(steps) / root, np.array(changes) / root  # so that s'y = 1
    base = diagonal / _multiple(s[-1], y[-1], diagonal)
    wide, lower = np.concatenate([s * base, y]), np.tril(s @ y.T, -1)
    middle = np.block([[(s * base) @ s.T, lower], [lower.T, -np.eye(len(s))]])
    if not (np.isfinite(middle).all() and np.linalg.cond(middle) < SINGULAR):
        return lambda v: diagonal * v
    return lambda v: base * v - np.linalg.solve(middle, wide @ v) @ wide


def explaining(steps: Sequence[Floats], changes: Sequence[Floats], diagonal: Floats) -> Floats:
    """The diagonal while it explains the latest changes of the gradient better than a multiple of the identity does."""
    lead = 0.0
    for step, y in zip(steps[-LATEST:], changes[-LATEST:], strict=True):
        lead += _cosine(y, diagonal * step) - _cosine(y, step)
    return diagonal if lead >= 0 else np.full_like(diagonal, diagonal.mean())


def even(diagonal: Floats, g: Floats) -> Floats:
    """A multiple of the identity: the curvature along g that the diagonal has."""
    size = float(np.abs(g).max())
    w = (g / size) ** 2 if 0 < size < math.inf else np.ones_like(g)
    return np.full_like(diagonal, inner(w, diagonal) / float(w.sum()))


def _cosine(a: Floats, b: Floats) -> float:
    """Of the angle between them; each is brought to size 1 first, since squares of tiny numbers vanish."""
    sizes = float(np.abs(a).max()), float(np.abs(b).max())
    if not 0 < min(sizes) <= max(sizes) < math.inf:
        return 0.0
    a, b = a / sizes[0], b / sizes[1]
    return inner(a, b) / math.sqrt(inner(a, a) * inner(b, b))


def within_reach(x: Vector, g: Floats, p: Floats) -> Course:
    """The direction, no longer than makes sense around x."""
    size, longest = float(np.abs(p).max()), LONGEST * Reach.of(x).high
    p = p * (longest / size) if size > longest else p
    return Course(p, inner(g, p))


def lowest_of_plane(x: Vector, f_x: float, one: Course, other: Course) -> Steps[Course]:
    """Where f is lowest in the plane of two directions, from three values; else along the better of them."""
    pair, kind = (one, other), x.dtype
    ends = (*(Along(1.0, c.p.astype(kind)) for c in pair), Along(0.5, (one.p + other.p).astype(kind)))
    values = yield from insisted(Query(x, ends))
    a, b, middle = np.where(np.isnan(values), math.inf, values).tolist()
    promised = [_promised(f_x, c.slope, f) for c, f in zip(pair, (a, b), strict=True)]
    better = pair[promised[1] < promised[0]]._replace(f_p=b if promised[1] < promised[0] else a)
    with np.errstate(all="ignore"):
        aa, bb = (2 * (f - f_x - c.slope) for c, f in zip(pair, (a, b), strict=True))
        ab = 4 * (middle - f_x - 0.5 * (one.slope + other.slope)) - 0.5 * (aa + bb)
        if not (min(aa, bb) > 0 and ab * ab < APART * aa * bb < math.inf):
            return better
        area = aa * bb - ab * ab
        s, t = (ab * other.slope - bb * one.slope) / area, (ab * one.slope - aa * other.slope) / area
    if not (abs(s) < STRETCH and abs(t) < STRETCH):
        return better
    return Course(s * one.p + t * other.p, s * one.slope + t * other.slope)


def _promised(f_x: float, slope: float, f_p: float) -> float:
    """The lowest value of the parabola through f(x), its slope and the value at the end of a direction."""
    bend = 2 * (f_p - f_x - slope)
    return f_x - 0.5 * slope * slope / bend if 0 < bend < math.inf else f_p


def search(at: Callable[[float], Steps[float]], f_x: float, slope: float, f_1: float, cheap: bool) -> Steps[Trial]:
    """Values `at` a = 1 and on or back to where the parabola through f(x), its slope and the last value says.

    `f_1` is the value at a = 1, nan where it is to be asked for; where values are cheap the search goes on to the end.
    """
    near, far, back = (1 - NEARLY, 1 + NEARLY, 1 - NEARLY / 2) if cheap else (0.4, 1.6, 0.5)
    best, a = Trial(0.0, f_x, 0), 1.0
    f_a, tries = ((yield from at(a)), 1) if math.isnan(f_1) else (f_1, 1)
    while tries < 14:
        bend = 2 * (f_a - f_x - a * slope) / a**2
        lowest = -slope / bend if 0 < bend < math.inf else math.inf
        if f_a < best.f_a:
            best = Trial(a, f_a, tries)
        if f_a < f_x and lowest > near * a:
            if lowest < far * a:
                break
            b = min(lowest, STRETCH * a)
            f_b = yield from at(b)
            tries += 1
            if not f_b < f_a:
                break
            best = Trial(b, f_b, tries)
            if b < STRETCH * a:
                break
            a, f_a = b, f_b
        else:
            least = back if f_a < f_x else 0.5
            a = min(max(lowest, 0.05 * a), least * a) if f_a < math.inf and lowest < math.inf else 0.1 * a
            f_a = yield from at(a)
            tries += 1
    if f_a < best.f_a:
        best = Trial(a, f_a, tries)
    return best._replace(tries=tries)
