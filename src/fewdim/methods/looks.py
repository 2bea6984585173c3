"""Looks: how a quadratic model begins, with two values along each axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fewdim.core import Query, Steps, evolve
from fewdim.directions import Along, Key, Vector, axis, perturb
from fewdim.gradients import Floats
from fewdim.lines import insisted_value, scale_of
from fewdim.scales import Measured, Scales

STEEP = 1000  # times what f varies by elsewhere: where it rises by more, f is no parabola over the length of a look
NEARER = 0.01  # of the scale of x0: looks shorter than this are not made shorter for values missing, or that steep


@dataclass(frozen=True)
class QuadraticModelState(Measured):
    """Between two steps of `QuadraticModel`; successive states share the points."""

    x: Vector
    key: Key
    k: int = 0
    f_x: float = math.nan
    scales: Scales | None = None
    points: tuple[Vector, ...] = ()  # with known values; x is one of them
    values: tuple[float, ...] = ()
    bends: tuple[float, ...] = ()  # curvatures along the axes looked at so far, before there is a model
    lengths: tuple[float, ...] = ()  # of the looks that they were seen by
    radius: float = math.nan  # of the ball in which the model is trusted
    least: float = math.nan  # what the radius does not go below as long as there is something to gain
    hessian: Floats | None = None  # of the fit that changes it least
    misses: tuple[float, float] = (0.0, 0.0)  # how wrong the two fits have been of late: smallest, least changed
    first: tuple[Vector, float] | None = None  # where it started, and the value there
    missing: int = 0  # steps in a row that ended where there is no value
    fails: int = 0  # 1 once values differ by no more than their noise

    def joined(self, points: list[Vector], values: list[float]) -> QuadraticModelState:
        """With more points; x is the best."""
        kept = [(point, f) for point, f in zip(points, values, strict=True) if not math.isnan(f)]
        s = evolve(self, points=(*self.points, *(p for p, _ in kept)), values=(*self.values, *(f for _, f in kept)))
        i = int(np.argmin(s.values))
        return evolve(s, x=s.points[i], f_x=s.values[i])

    def without(self, i: int) -> QuadraticModelState:
        """Without the i-th point."""
        points, values = self.points, self.values
        return evolve(self, points=(*points[:i], *points[i + 1 :]), values=(*values[:i], *values[i + 1 :]))


def along_next(s: QuadraticModelState) -> Steps[QuadraticModelState]:
    """Two values along the next axis from the best point: ahead and, if that is lower, farther ahead; else behind.

    Where one is out of all proportion it is forgotten, and the look is made again, a tenth as long.
    """
    assert s.first is not None
    u, start, a = axis(len(s.bends)), s.x, s.radius
    ahead = perturb(start, a, u)
    f_ahead = yield from insisted_value(ahead, tries=2)
    b = 2 * a if f_ahead < s.f_x else -a
    other = perturb(start, b, u)
    f_other = yield from insisted_value(other, tries=2)
    looked = [ahead, other], [f_ahead, f_other]
    if math.isnan(f_ahead + f_other) and s.bends and s.bends[-1] == 0 and (nearer := _nearer(s)):  # twice running
        return evolve(nearer, bends=s.bends[:-1], lengths=s.lengths[:-1]).joined(*looked)
    bend = _bend(s.f_x, a, f_ahead, b, f_other)
    if _steep(s.f_x, f_ahead, f_other, float(np.ptp(s.values)) or abs(s.f_x)):
        end = int(abs(f_other - s.f_x) > abs(f_ahead - s.f_x))
        looked, bend = ([looked[0][1 - end]], [looked[1][1 - end]]), 0.0
        if nearer := _nearer(s):
            return nearer.joined(*looked)
    return evolve(s, bends=(*s.bends, bend), lengths=(*s.lengths, a)).joined(*looked)


def _steep(f: float, f_a: float, f_b: float, usual: float) -> bool:
    """Whether f rises so much more on one way of a look than it usually varies that the other says nothing."""
    rises = (f_a - f, f_b - min(f, f_a))
    return max(rises) > STEEP * max(min(map(abs, rises)), usual) > 0


def _nearer(s: QuadraticModelState) -> QuadraticModelState | None:
    """The state with looks a tenth as far, where values are missing as far off as they went; None if they are short."""
    assert s.first is not None
    short = s.radius < NEARER * scale_of(s.first[0])
    return None if short else evolve(s, radius=0.1 * s.radius, least=0.1 * s.least)


def _bend(f: float, a: float, f_a: float, b: float, f_b: float) -> float:
    """The curvature of the parabola through f at 0, a and b; 0 where one is missing."""
    bend = 2 * ((f_b - f) / b - (f_a - f) / a) / (b - a)
    return bend if math.isfinite(bend) else 0.0


def along_all(s: QuadraticModelState) -> Steps[QuadraticModelState]:
    """Both sides of x along every axis, at once."""
    offsets = tuple(Along(side * s.radius, axis(i)) for i in range(s.x.size) for side in (1.0, -1.0))
    query = Query(s.x, offsets)
    values = yield query
    pairs, known = values.reshape(-1, 2).tolist(), values[~np.isnan(values)]
    usual = max(abs(s.f_x), float(np.median(np.abs(known - s.f_x))) if known.size else 0.0)
    steep = [_steep(s.f_x, f, f_, usual) for f, f_ in pairs]
    if 4 * (int(np.isnan(values).sum()) + sum(steep)) > values.size and (nearer := _nearer(s)):
        return nearer
    bends = [
        0.0 if odd else _bend(s.f_x, s.radius, f, -s.radius, f_) for odd, (f, f_) in zip(steep, pairs, strict=True)
    ]
    told = [math.nan if odd and f == max(pair) else f for odd, pair in zip(steep, pairs, strict=True) for f in pair]
    s = evolve(s, bends=tuple(bends), lengths=(s.radius,) * s.x.size)
    return s.joined([query.point(i) for i in range(len(query))], told)
