"""A step of `QuasiNewton` within bounds: Newton's direction on the free coordinates, projected onto the box.

A coordinate is fixed while it lies on a bound and its slope points outwards.  Fixed coordinates take no part in the
direction, and their slopes are looked at only now and then: after 1, 2, 4, ... 16 steps, from 1 again when one of them
was set free.  The state is in the variables y of `fewdim.box`, as that of every method; the step is taken in x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewdim.box import Box
from fewdim.core import Query, Steps, evolve
from fewdim.directions import Along, Key, Vector, axis
from fewdim.gradients import Floats, representable
from fewdim.lines import insisted, insisted_value, scale_of, visible
from fewdim.methods.quasi_newton import (
    CLEAR,
    QuasiNewton,
    QuasiNewtonState,
    fit_to_divide_by,
    made_sure,
    newton_direction,
    remembered,
    search,
)
from fewdim.scales import Scales

Mask = NDArray[np.bool_]
RARELY = 16  # steps: the longest that slopes of fixed coordinates are not looked at
ON = 1e-10  # of a box's width (or of 1): closer to a bound is on it


@dataclass(frozen=True)
class ProjectedNewtonState(QuasiNewtonState):
    """Between two steps of `ProjectedNewton`; steps, changes and slopes are those in x."""

    fixed: Mask | None = None  # on a bound, with a slope that points outwards
    fresh: Mask | None = None  # slopes that were measured where the last step began
    look: int = 1  # steps until the slopes of all coordinates are measured
    wait: int = 1  # what `look` started from


class Slopes(NamedTuple):
    """Slopes and curvatures along the axes; nan where they were not measured."""

    g: Floats
    c: Floats


class Place(NamedTuple):
    """A point of the box as the function sees it, x, and as methods do, y."""

    x: Floats
    y: Vector

    @classmethod
    def of(cls, box: Box, x: Floats, kind: np.dtype[Any]) -> Place:
        y = box.free(np.clip(x, box.low, box.high).astype(kind), margin=0.0)
        return cls(box.inside(y).astype(float), y)


def reach(box: Box, x: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Two signed radii for each coordinate that keep within the box: both sides where there is room, else inwards."""
    h = np.minimum(h, (box.high - box.low) / 4)
    up, down = box.high - x >= h, x - box.low >= h
    first = np.where(up, h, -h)
    return first, np.where(up & down, -h, 2 * first)


def slopes(box: Box, at: Place, f_x: float, h: Floats, which: Mask, bends: Floats | None) -> Steps[Slopes]:
    """Slopes along the axes in `which`: from one value less the known bends, or from two, which tell the bends."""
    index = np.flatnonzero(which)
    sides = reach(box, at.x, h)[: 2 if bends is None else 1]
    gone = [box.free(np.clip(at.x + h, box.low, box.high).astype(at.y.dtype), margin=0.0) - at.y for h in sides]
    real = [(box.inside(at.y + moved).astype(float) - at.x)[index] for moved in gone]
    asked = [Along(float(moved[i]), axis(int(i))) for moved in gone for i in index]
    values = (yield from insisted(Query(at.y, tuple(asked)))).reshape(len(sides), -1)
    g, c = np.full(at.x.size, math.nan), np.full(at.x.size, math.nan)
    with np.errstate(all="ignore"):
        chords = [(f - f_x) / r for f, r in zip(values, real, strict=True)]
        if bends is None:
            c[index] = 2 * (chords[1] - chords[0]) / (real[1] - real[0])
            g[index] = chords[0] - 0.5 * real[0] * c[index]
        else:
            g[index] = chords[0] - 0.5 * real[0] * bends[index]
    g[index] = np.where(np.isfinite(g[index]), g[index], 0.0)
    return Slopes(g, np.where(np.isfinite(c), c, math.nan))


def first_slopes(box: Box, at: Place, f_x: float, scales: Scales) -> Steps[Slopes]:
    """Slopes and curvatures along every axis, as wide as it takes to see curvature."""
    every, radius = np.ones(at.x.size, bool), 1e-4 * scale_of(at.x)
    found = Slopes(np.zeros(at.x.size), np.zeros(at.x.size))
    for _ in range(8):
        found = yield from slopes(box, at, f_x, np.full(at.x.size, radius), every, None)
        seen = float(np.nanmax(np.abs(found.c), initial=0.0)) * radius**2 >= 0.1 * visible(scales.resolution, f_x)
        if seen or radius >= scale_of(at.x):
            break
        radius *= 30
    middling = float(np.nanmedian(np.abs(found.c))) if np.isfinite(found.c).any() else 1.0
    return Slopes(found.g, np.where(np.isnan(found.c), middling, found.c))


def on_bounds(box: Box, x: Floats, g: Floats) -> Mask:
    """Coordinates on a bound whose slope points outwards."""
    width = np.where(np.isfinite(box.high - box.low), box.high - box.low, 1.0)
    return ((x - box.low <= ON * width) & (g > 0)) | ((box.high - x <= ON * width) & (g < 0))


@dataclass(frozen=True)
class ProjectedNewton(QuasiNewton):
    """`QuasiNewton` within bounds."""

    box: Box = field(kw_only=True)

    def start(self, x: Vector, key: Key) -> ProjectedNewtonState:
        return ProjectedNewtonState(x, key)

    def step(self, state: QuasiNewtonState) -> Steps[ProjectedNewtonState]:
        assert isinstance(state, ProjectedNewtonState)
        s = state
        if s.scales is None:
            s = yield from self._opened(s)
        at = Place.of(self.box, self.box.inside(s.x).astype(float), s.x.dtype)
        s, g, diagonal = yield from self._measured(evolve(s, k=s.k + 1), at)
        fixed = on_bounds(self.box, at.x, g)
        released = bool((s.fixed & ~fixed).any()) if s.fixed is not None else False
        whole = bool(s.fresh is not None and s.fresh.all())
        wait = s.wait if not whole else 1 if released else min(2 * s.wait, RARELY)
        s = evolve(s, fixed=fixed, wait=wait, look=wait if whole else s.look - 1)
        p, slope = self._direction(s, at, g, diagonal)
        if slope < 0:
            trial = yield from search(lambda a: along(self.box, at, p, a), s.f_x, slope)
            if trial.a > 0:
                there = Place.of(self.box, at.x + trial.a * p, at.y.dtype)
                gone, low = there.x - at.x, float(np.sum(g * g / diagonal * ~fixed))
                s = evolve(s, x=there.y, f_x=trial.f_a, decrease=s.f_x - trial.f_a, gradient=g, moved=gone, fails=0)
                assert s.scales is not None
                return evolve(s, central=low < CLEAR * s.scales.resolution.at(s.f_x) * max(1, int((~fixed).sum())))
        if not whole:  # a fixed coordinate may have to move
            return evolve(s, gradient=g, moved=None, look=0)
        s = evolve(s, fails=s.fails + 1, steps=(), changes=(), gradient=None, moved=None, central=True)
        assert s.scales is not None
        return s if s.sure else (yield from made_sure(s, s.scales))

    def _measured(self, s: ProjectedNewtonState, at: Place) -> Steps[tuple[ProjectedNewtonState, Floats, Floats]]:
        """The slopes of the free coordinates, now and then of all; what is known of the others."""
        assert s.scales is not None
        if s.diagonal is None:
            found = yield from first_slopes(self.box, at, s.f_x, s.scales)
            every, diagonal = np.ones(at.x.size, bool), fit_to_divide_by(found.c)
            return evolve(s, diagonal=diagonal, fresh=every, central=False), found.g, diagonal
        delta, diagonal = s.scales.resolution.at(s.f_x), s.diagonal
        if s.gradient is None or s.fixed is None or s.look <= 0 or s.fixed.all():
            which = np.ones(at.x.size, bool)
        else:
            which = ~s.fixed
        width = 30 if s.central else 2
        h = representable(at.x, width * np.sqrt(delta / diagonal))
        found = yield from slopes(self.box, at, s.f_x, h, which, None if s.central else diagonal)
        if s.central:
            diagonal = fit_to_divide_by(np.where(np.isnan(found.c), diagonal, found.c))
        g = found.g if s.gradient is None else np.where(which, found.g, s.gradient)
        s = evolve(s, diagonal=diagonal, central=False)
        if s.gradient is not None and s.moved is not None and s.fresh is not None:
            s = remembered(s, np.where(which & s.fresh, g, s.gradient), self.memory)
        return evolve(s, fresh=which), g, diagonal

    def _direction(self, s: ProjectedNewtonState, at: Place, g: Floats, diagonal: Floats) -> tuple[Floats, float]:
        """A step on the free coordinates that ends in the box, and the slope along it."""
        free, low, high = ~s.fixed if s.fixed is not None else np.ones(g.size, bool), self.box.low, self.box.high
        p = np.clip(at.x + newton_direction(faced(s, free), diagonal, g * free) * free, low, high) - at.x
        if not float(g @ p) < 0:
            p = np.clip(at.x - free * g / diagonal, low, high) - at.x
        return p, float(g @ p)


def faced(s: ProjectedNewtonState, free: Mask) -> ProjectedNewtonState:
    """The pairs as far as they lie in the free coordinates, those with positive curvature there."""
    pairs = [(step * free, y * free) for step, y in zip(s.steps, s.changes, strict=True)]
    kept = [(a, b) for a, b in pairs if float(a @ b) > 1e-10 * math.sqrt(float(a @ a) * float(b @ b))]
    return evolve(s, steps=tuple(a for a, _ in kept), changes=tuple(b for _, b in kept))


def along(box: Box, at: Place, p: Floats, a: float) -> Steps[float]:
    """The value at x + a p, projected onto the box; inf when there is no value."""
    f = yield from insisted_value(Place.of(box, at.x + a * p, at.y.dtype).y, tries=3)
    return math.inf if math.isnan(f) else f
