"""A step of `QuasiNewton` within bounds: to where a quadratic model of f is lowest in the box.

A coordinate is fixed while it lies on a bound and its slope points outwards.  Fixed coordinates take no part in the
direction, and their slopes are looked at only now and then: after 1, 2, 4, ... 16 steps, from 1 again when one of them
was set free.  The state is in the variables y of `fewdim.box`, as that of every method; the step is taken in x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from fewdim.box import ON, Box
from fewdim.core import Cost, Query, Steps, evolve
from fewdim.directions import Along, Key, Vector, axis
from fewdim.gradients import CLEAR, SAMPLE, Floats, fit_to_divide_by, representable, sample
from fewdim.lines import Reach, Resolution, insisted, insisted_value, scale_of, visible
from fewdim.methods.newton_steps import explaining, product_by, search
from fewdim.methods.quasi_newton import (
    CENTRAL,
    FORWARD,
    Q,
    QuasiNewton,
    QuasiNewtonState,
    at_hand,
    remembered,
)
from fewdim.noise import noise_level
from fewdim.scales import Scales, start_value

Mask = NDArray[np.bool_]
FEW = 8  # times the sample of axes: dimensions up to which all are looked at instead
RARELY = 16  # steps: the longest that slopes of fixed coordinates are not looked at


@dataclass(frozen=True)
class ProjectedNewtonState(QuasiNewtonState):
    """Between two steps of `ProjectedNewton`; steps, changes and slopes are those in x."""

    fixed: Mask | None = None  # on a bound, with a slope that points outwards
    fresh: Mask | None = None  # slopes that were measured where the last step began
    look: int = 1  # steps until the slopes of all coordinates are measured
    wait: int = 1  # what `look` starts from next


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


def scales_of(box: Box, x: Floats) -> Floats:
    """How large each coordinate is: as the whole of x, or as its interval where that is smaller."""
    ends = np.maximum(*(np.where(np.isfinite(side), np.abs(side), 0.0) for side in box))
    whole = scale_of(np.where(np.abs(x) > 1e-12 * ends, x, 0.0))  # what is left of a 0 on its way to y and back
    return np.asarray(np.minimum(box.width, whole))


def sides_of(box: Box, x: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Two signed radii for each coordinate that keep within the box: both sides where there is room, else inwards."""
    h = np.minimum(h, box.width / 4)
    up, down = box.high - h >= x, box.low + h <= x
    first = np.where(up, h, -h)
    return first, np.where(up & down, -h, 2 * first)


def slopes(box: Box, at: Place, f_x: float, h: Floats, which: Mask, bends: Floats | None) -> Steps[Slopes]:
    """Slopes along the axes in `which`: from one value less the known bends, or from two, which tell the bends."""
    index, kind = np.flatnonzero(which), at.y.dtype
    sides = sides_of(box, at.x, h)[: 2 if bends is None else 1]
    gone = [box.free(np.clip(at.x + side, box.low, box.high).astype(kind), margin=0.0) - at.y for side in sides]
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
    return Slopes(np.where(np.isfinite(g), g, math.nan), np.where(np.isfinite(c), c, math.nan))


def first_slopes(box: Box, at: Place, f_x: float, resolution: Resolution) -> Steps[Slopes]:
    """Slopes and curvatures along every axis, as wide as it takes to see curvature, in noise along most axes.

    A few axes tell how wide that is; only if they do not, all.
    """
    size, least = scales_of(box, at.x), 0.1 if resolution.noise > 0 else 1e-4
    which, share = np.ones(at.x.size, bool), least
    if at.x.size > FEW * SAMPLE:
        which = np.isin(np.arange(at.x.size), sample(at.x.size))
    while True:
        h = np.minimum(share * size, box.width / 4)
        found = yield from slopes(box, at, f_x, h, which, None)
        with np.errstate(all="ignore"):
            bends = np.nan_to_num(np.abs(found.c) * h**2)[which] / visible(resolution, f_x)
        seen = float(np.median(bends)) >= 1 if resolution.noise > 0 else bool((bends >= 0.1).any())
        if which.all() and (seen or share >= 1):
            return found
        if seen or share >= 1:
            which, share = np.ones(at.x.size, bool), share if seen else least
        else:
            share *= 30


def on_bounds(box: Box, at: Place, g: Floats) -> Mask:
    """Coordinates on a bound whose slope points outwards."""
    near = np.maximum(ON * scales_of(box, at.x), 2 * np.spacing(np.abs(at.x).astype(at.y.dtype)).astype(float))
    return np.asarray(((at.x - box.low <= near) & (g > 0)) | ((box.high - at.x <= near) & (g < 0)))


@dataclass(frozen=True)
class ProjectedNewton(QuasiNewton):
    r"""`QuasiNewton` within bounds.

    .. math:: x_{k+1} = P(x_k + a_k p_k), \qquad p_k = \arg\min_p \; g_k'p + \tfrac12 p'B_k p
        \quad \text{within the bounds}, \; p = 0 \text{ off } F

    where P clips to the bounds, B is the limited-memory BFGS matrix and F are the free coordinates: all but those on a
    bound whose slope points outwards.  The model costs no values of f; scipy's L-BFGS-B minimises it.  A Newton step
    that is clipped instead leaves the valleys that run across several coordinates, and must be made short.

    **Cost.** A look at the noise, 2d values for a first gradient, 12 or more before it for how wide it is to be, then a
    value for each free coordinate a step, for every coordinate after 1, 2, 4, ... 16 steps, and 1 to 14 for the line
    search.  While the model is minimised 7n + 60 vectors are held: the n pairs, twice more as matrices, and what scipy
    needs.

    References
    ----------
    Byrd, Lu, Nocedal, Zhu. A limited memory algorithm for bound constrained optimization. SIAM J. Sci. Comput. 16,
    1995.
    Byrd, Nocedal, Schnabel. Representations of quasi-Newton matrices and their use in limited memory methods. Math.
    Program. 63, 1994.
    """

    box: Box = field(kw_only=True)

    def start(self, x: Vector, key: Key) -> ProjectedNewtonState:
        return ProjectedNewtonState(x, key)

    @property
    def cost(self) -> Cost:
        return replace(super().cost, vectors=7 * self.memory + 60)

    def _opened(self, s: Q) -> Steps[Q]:
        """The value and its noise: a projected step that goes wrong says less about noise than a free one."""
        f_x = (yield from start_value(s.x)) if math.isnan(s.f_x) else s.f_x
        if self.noise == "auto":
            resolution = yield from noise_level(s.x, f_x, (*s.key, s.k, 0))
        else:
            resolution = Resolution(float(self.noise))
        return evolve(s, scales=Scales(f_x, resolution, math.nan, math.nan, Reach.of(s.x)), f_x=f_x)

    def step(self, state: QuasiNewtonState) -> Steps[ProjectedNewtonState]:
        assert isinstance(state, ProjectedNewtonState)
        s = state
        if s.scales is None:
            s = yield from self._opened(s)
        at = Place.of(self.box, self.box.inside(s.x).astype(float), s.x.dtype)
        s, g, diagonal = yield from self._measured(evolve(s, k=s.k + 1), at)
        assert s.fresh is not None
        fixed, whole = on_bounds(self.box, at, g), bool(s.fresh.all())
        released = s.fixed is not None and bool((s.fixed & ~fixed).any())
        s = evolve(s, fixed=fixed, look=s.look - 1)
        if whole:
            look = s.wait if fixed.any() and not released else 1
            s = evolve(s, look=look, wait=min(2 * look, RARELY))
        p, slope = self._direction(s, at, g, diagonal)
        if -math.inf < slope < 0:
            trial = yield from search(lambda a: along(self.box, at, p, a), s.f_x, slope, math.nan, at_hand(s))
            if trial.a > 0:
                there = Place.of(self.box, at.x + trial.a * p, at.y.dtype)
                with np.errstate(all="ignore"):
                    low = float(np.sum(g * g / diagonal * ~fixed))
                assert s.scales is not None
                close = CLEAR * s.scales.resolution.at(s.f_x) * max(1, int((~fixed).sum()))
                s = evolve(s, x=there.y, f_x=trial.f_a, decrease=s.f_x - trial.f_a, moved=there.x - at.x)
                return evolve(s, gradient=g, fails=0, central=low < close)
        if not whole:  # a fixed coordinate may have to move
            return evolve(s, gradient=g, moved=None, look=0)
        return evolve(s, fails=s.fails + 1, steps=(), changes=(), gradient=None, moved=None, central=True)

    def _measured(self, s: ProjectedNewtonState, at: Place) -> Steps[tuple[ProjectedNewtonState, Floats, Floats]]:
        """The slopes of the free coordinates, now and then of all; what is known of the others."""
        size = scales_of(self.box, at.x)
        assert s.scales is not None
        resolution = s.scales.resolution
        if s.diagonal is None:
            found = yield from first_slopes(self.box, at, s.f_x, resolution)
            diagonal = _divisors(found.c, size)
            s = evolve(s, diagonal=diagonal, fresh=~np.isnan(found.g), central=False)
            return s, np.nan_to_num(found.g), diagonal
        delta, diagonal = resolution.at(s.f_x), s.diagonal
        which = np.ones(at.x.size, bool)
        if s.gradient is not None and s.fixed is not None and s.look > 0 and not s.fixed.all():
            which = ~s.fixed
        with np.errstate(all="ignore"):
            h = np.minimum((CENTRAL if s.central else FORWARD) * np.sqrt(delta / diagonal), size)
        h = representable(at.x.astype(at.y.dtype), h)
        found = yield from slopes(self.box, at, s.f_x, h, which, None if s.central else diagonal)
        if s.central:
            diagonal = _divisors(np.where(np.isnan(found.c), diagonal, found.c), size)
        fresh = ~np.isnan(found.g)
        g = np.where(fresh, found.g, 0.0 if s.gradient is None else s.gradient)
        s = evolve(s, diagonal=diagonal, central=False)
        if s.gradient is not None and s.moved is not None and s.fresh is not None:
            s = remembered(s, np.where(fresh & s.fresh, g, s.gradient), self.memory)
        return evolve(s, fresh=fresh), g, diagonal

    def _direction(self, s: ProjectedNewtonState, at: Place, g: Floats, diagonal: Floats) -> tuple[Floats, float]:
        """A step on the free coordinates that ends in the box, and the slope along it."""
        free, low, high = ~s.fixed if s.fixed is not None else np.ones(g.size, bool), self.box.low, self.box.high
        with np.errstate(all="ignore"):
            p = lowest_in_box(s, g, diagonal, np.where(free, low - at.x, 0.0), np.where(free, high - at.x, 0.0))
            if not float(g @ p) < 0:
                p = np.clip(at.x - free * g / diagonal, low, high) - at.x
            return p, float(g @ p)


def lowest_in_box(s: ProjectedNewtonState, g: Floats, diagonal: Floats, low: Floats, high: Floats) -> Floats:
    """The p between bounds at which g'p + p'Bp / 2 is lowest, B the limited-memory BFGS matrix; no values of f."""
    base = explaining(s.steps, s.changes, diagonal)
    scale = float(np.sum(g * (g / base)))  # p is of size 1 in units in which B is near the identity and g is of size 1
    if not 0 < scale < math.inf:
        return np.zeros_like(g)
    product, unit = product_by(s.steps, s.changes, base), math.sqrt(scale) / np.sqrt(base)

    def model(z: Floats) -> tuple[float, Floats]:
        p = unit * z
        bent = product(p)
        return float((g + 0.5 * bent) @ p) / scale, (g + bent) * unit / scale

    bounds = Bounds(np.minimum(low, 0.0) / unit, np.maximum(high, 0.0) / unit)
    settings = {"maxiter": 200, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-12}
    told = minimize(model, np.zeros_like(g), jac=True, method="L-BFGS-B", bounds=bounds, options=settings)
    return np.asarray(np.clip(unit * told.x, np.minimum(low, 0.0), np.maximum(high, 0.0)))


def _divisors(c: Floats, size: Floats) -> Floats:
    """Curvatures fit to divide by, whatever units the coordinates have; a middling one where none is known."""
    scaled = c * size**2
    seen = np.abs(scaled[~np.isnan(scaled)])
    return fit_to_divide_by(np.where(np.isnan(scaled), float(np.median(seen)) if seen.size else 1.0, scaled)) / size**2


def along(box: Box, at: Place, p: Floats, a: float) -> Steps[float]:
    """The value at x + a p, projected onto the box; inf when there is no value."""
    f = yield from insisted_value(Place.of(box, at.x + a * p, at.y.dtype).y, tries=3)
    return math.inf if math.isnan(f) else f
