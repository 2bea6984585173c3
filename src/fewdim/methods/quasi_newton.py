"""Quasi-Newton: limited-memory BFGS on gradients from finite differences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from fewdim.core import Cost, Steps, evolve
from fewdim.directions import Key, Vector, inner, perturb
from fewdim.gradients import CLEAR, Floats, Found, central, first_gradient, fit_to_divide_by, forward, representable
from fewdim.lines import Reach, Resolution, value_at
from fewdim.methods.newton_steps import (
    CHEAP,
    LONGEST,
    Course,
    even,
    explaining,
    lowest_of_plane,
    newton_direction,
    search,
    within_reach,
)
from fewdim.methods.settings import check_count, check_noise
from fewdim.noise import noise_here
from fewdim.scales import Measured, Scales, curvature, measure, start_value

FRUGAL = 20  # up to this dimension a look at the noise would cost as much as a gradient: it waits for a reason
FORWARD, CENTRAL = 2.0, 30.0  # radii, where D may be all wrong and where it does not count: f bends by half the square
MANIFOLD = 10.0  # relative changes of a curvature beyond this are all the same: it is not known
TINY = 1e-300  # a square below has lost its digits


@dataclass(frozen=True)
class QuasiNewtonState(Measured):
    """Between two steps of `QuasiNewton`; successive states share the vectors of the memory."""

    x: Vector
    key: Key
    k: int = 0
    f_x: float = math.nan
    scales: Scales | None = None
    diagonal: Floats | None = None  # curvature along the axes
    gradient: Floats | None = None  # where the last step began
    moved: Floats | None = None  # the last step
    steps: tuple[Floats, ...] = ()
    changes: tuple[Floats, ...] = ()  # of the gradient along those steps
    central: bool = True  # the next gradient
    travelled: float = 0.0  # since the diagonal was measured, in terms of it
    drift: float = math.inf  # of the diagonal, relative to it and to the distance
    sure: bool = True  # of the noise level
    decrease: float = math.nan  # of the last step
    fails: int = 0


Q = TypeVar("Q", bound=QuasiNewtonState)


@dataclass(frozen=True)
class QuasiNewton:
    r"""Newton's direction from the gradients of past steps, gradients from differences along every axis.

    .. math:: x_{k+1} = x_k - a_k H_k g_k, \qquad g_i = \frac{f(x + h_i e_i) - f(x)}{h_i} - \frac{h_i D_i}{2}

    H is the limited-memory BFGS matrix of the last pairs (step s, change y of g) above a multiple of
    :math:`D^{-1}`, where D is the diagonal of the Hessian, in size: the first gradient is central, 2d values, and tells
    it; where a sample of 6 axes finds the same curvature along all it is forward, d values, and D that curvature.  The
    multiple is :math:`(s'Ds / y'D^{-1}y)^{1/2}` of the latest pair, the geometric mean of Barzilai and
    Borwein's two: with the usual one, s'y / y'D^-1 y, steps are too short where curvature falls on the way to a
    minimum; up to d = 20, where valleys are often bent, it is that one.  Up to d = 49 the diagonal gives way to a
    multiple of the identity where that explains the latest changes of g better.  From d = 50 on, where a few values are
    little beside a gradient, both directions are taken: the step leads to the lowest point of the plane that they span,
    as three values tell, and the line search goes to where its parabola is lowest unless it is within a tenth of that;
    not so once slopes are near the noise, which misleads it.  The diagonal may tell nearly all, and it may mislead
    where curvatures change along the way.

    The radii are h = c (delta / D)^(1/2) with c = 2, delta the noise or the round-off of f, and gradients are central,
    c = 30, once errors come to a tenth of the slopes.  Two diagonals tell how fast D changes with distance, so by how
    much it may be wrong, and then c is where that costs forward differences as much as the noise does: close to a
    minimum they stay clear for longer.  That takes f to be smooth: where curvatures jump close to a minimum the drift
    is understated, and in noise runs may end higher than with c = 2.  Within bounds c stays 2.

    ============  ======  ==============  ================================================================
    setting       symbol  default         source
    ============  ======  ==============  ================================================================
    memory        n       50              most pairs; two vectors each
    noise         delta   "auto"          level of the noise of f; 0 is exact; "auto" spends 2 values,
                                          8 more on noise; up to d = 20 none until a line search goes wrong
    ============  ======  ==============  ================================================================

    Within bounds (`minimize(bounds=...)`) steps lead to where the model of f by g and H is lowest in the box, and a
    coordinate on a bound whose slope points outwards is left alone: its slope is looked at after 1, 2, 4, ... 16 steps.

    **Cost.** 6 or 12 values for the sample, d values a step in one query, 2d while slopes are near the noise, from d =
    50 on 3 for the plane, and 1 to 14 for the line search; 2n + 6 vectors beyond x.

    **Guarantee.** Forward differences less the known curvature are exact on quadratics: central accuracy at half the
    price.  The value never rises.  What L-BFGS is known for holds, at d + 2 to d + 5 values a step: superlinear in
    practice, a linear rate for strongly convex functions.

    **Departures.** Not in the paper: the baseline that its methods have to beat, and the second engine of `Auto`.

    >>> import numpy as np
    >>> from fewdim import minimize
    >>> rosenbrock = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    >>> minimize(rosenbrock, [-1.2, 1.0], method=QuasiNewton(), maxfev=300).fun < 1e-9
    True

    References
    ----------
    Liu, Nocedal. On the limited memory BFGS method for large scale optimization. Math. Program. 45, 1989.
    Shi, Xie, Xuan, Nocedal. On the numerical performance of finite-difference-based methods for derivative-free
    optimization. Optim. Methods Softw. 38, 2023 (how far such a baseline goes).
    """

    memory: int = 50
    noise: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_count(self, memory=self.memory)
        check_noise(self, self.noise)

    def start(self, x: Vector, key: Key) -> QuasiNewtonState:
        return QuasiNewtonState(x, key)

    def done(self, state: QuasiNewtonState) -> bool:
        return state.fails > 1

    def step(self, state: QuasiNewtonState) -> Steps[QuasiNewtonState]:
        s = state
        if s.scales is None:
            s = yield from self._opened(s)
        scales = s.scales
        assert scales is not None
        if s.diagonal is not None:
            found = yield from _gradient(s, s.diagonal, scales.resolution.at(s.f_x))
        else:
            found = yield from first_gradient(s.x, s.f_x, scales)
            if found.odd and not s.sure:
                s = yield from made_sure(s, scales)
                if s.noise > 0:
                    return s
        g, diagonal, _ = found
        s = evolve(s, drift=_drift(s, diagonal), travelled=0.0) if s.central else s
        s = remembered(evolve(s, k=s.k + 1, diagonal=diagonal), g, self.memory)
        course = yield from _course(s, diagonal, g)
        if course is None:
            return evolve(s, fails=s.fails + 1, central=True)
        along = course.p.astype(s.x.dtype)
        trial = yield from search(lambda a: value_at(s.x, a, along), s.f_x, course.slope, course.f_p, at_hand(s))
        if not s.sure and (trial.tries > 3 or trial.a == 0):
            s = yield from made_sure(s, scales)
            if s.noise > 0 and trial.a == 0:
                return evolve(s, diagonal=None, steps=(), changes=(), gradient=None, moved=None)
        if trial.a == 0:
            return evolve(s, fails=s.fails + 1, steps=(), changes=(), gradient=None, moved=None, central=True)
        moved = trial.a * course.p
        s = evolve(s, travelled=s.travelled + math.sqrt(weighed(moved, diagonal)))
        error = (FORWARD / _spread(s)) ** 2 * scales.resolution.at(s.f_x)
        return evolve(
            s,
            x=perturb(s.x, trial.a, along),
            f_x=trial.f_a,
            decrease=s.f_x - trial.f_a,
            gradient=g,
            moved=moved,
            central=weighed(g, diagonal, by=np.divide) < CLEAR * error * g.size,
            fails=0,
        )

    @property
    def cost(self) -> Cost:
        return Cost(fewest=2, most=60, vectors=2 * self.memory + 6, axes=16)

    def _opened(self, s: Q) -> Steps[Q]:
        """The scales of f at x; in few dimensions its noise is taken for round-off until something speaks against."""
        if s.x.size > FRUGAL:
            found = yield from measure(s.x, (*s.key, s.k, 0), noise=self.noise, pairs=2, f_x=s.f_x)
            return evolve(s, scales=found, f_x=found.f_x)
        f_x = (yield from start_value(s.x)) if math.isnan(s.f_x) else s.f_x
        resolution = Resolution() if self.noise == "auto" else Resolution(float(self.noise))
        scales = Scales(f_x, resolution, math.nan, math.nan, Reach.of(s.x))
        return evolve(s, scales=scales, f_x=f_x, sure=self.noise != "auto")


def _bases(s: QuasiNewtonState, diagonal: Floats, g: Floats) -> tuple[Floats, ...]:
    """What stands for the Hessian where no pair tells: one diagonal, or two where a few values more are little."""
    if np.ptp(diagonal) == 0:
        return (diagonal,)
    return (diagonal, even(diagonal, g)) if at_hand(s) else (explaining(s.steps, s.changes, diagonal),)


def at_hand(s: QuasiNewtonState) -> bool:
    """Whether a few values more are little beside a gradient, and tell something, as they do not near the noise."""
    return s.x.size >= CHEAP and not (s.noise > 0 and s.central)


def _course(s: QuasiNewtonState, diagonal: Floats, g: Floats) -> Steps[Course | None]:
    """Where to go from x: the lowest point of the plane of two quasi-Newton directions, or one of them alone."""
    bases = _bases(s, diagonal, g)
    with np.errstate(all="ignore"):
        courses = [within_reach(s.x, g, newton_direction(s.steps, s.changes, base, g)) for base in bases]
    courses = [c for c in courses if -math.inf < c.slope < 0]
    if len(courses) == 2:
        return (yield from lowest_of_plane(s.x, s.f_x, *courses))
    with np.errstate(all="ignore"):
        courses = courses or [within_reach(s.x, g, -g / diagonal)]
    return courses[0] if -math.inf < courses[0].slope < 0 else None


def remembered(s: Q, g: Floats, memory: int) -> Q:
    """Add the last step and the change of the gradient along it, if the curvature there was positive."""
    if s.moved is None or s.gradient is None or s.diagonal is None:
        return s
    y = g - s.gradient
    length, change = weighed(s.moved, s.diagonal), weighed(y, s.diagonal, by=np.divide)
    if not inner(s.moved, y) > max(1e-8 * math.sqrt(length * change), TINY) or change < TINY:
        return s
    return evolve(s, steps=(*s.steps, s.moved)[-memory:], changes=(*s.changes, y)[-memory:], moved=None)


def weighed(v: Floats, weights: Floats, by: np.ufunc = np.multiply) -> float:
    """The sum of squares, each multiplied or divided by its weight; inf where it is too large."""
    with np.errstate(all="ignore"):
        return float(np.sum(v * by(v, weights)))


def made_sure(s: Q, scales: Scales) -> Steps[Q]:
    """Measure the noise that was taken for round-off so far; if there is some, the trace of the Hessian as well."""
    resolution = yield from noise_here(s.x, s.f_x, (*s.key, s.k, 1))
    scales = scales._replace(resolution=resolution)
    if resolution.noise > 0:
        found = yield from curvature(s.x, s.f_x, resolution, (*s.key, s.k, 2), pairs=2)
        scales = scales._replace(trace=found.trace, smoothness=found.smoothness)
    return evolve(s, sure=True, scales=scales)


# ----------------------------------------------------------------------------------------------------------- gradients
def _gradient(s: QuasiNewtonState, diagonal: Floats, delta: float) -> Steps[Found]:
    """Central differences with a new diagonal, or forward ones less half the curvature times the radius."""
    if s.central:
        g, c = yield from central(s.x, s.f_x, _radii(s.x, CENTRAL, delta, diagonal), diagonal)
        return Found(g, fit_to_divide_by(c) if c.any() else diagonal)  # all lost in round-off: no news
    g = yield from forward(s.x, s.f_x, _radii(s.x, _spread(s), delta, diagonal), diagonal)
    return Found(g, diagonal)


def _spread(s: QuasiNewtonState) -> float:
    """The radius of forward differences at which the error of the diagonal costs as much as the noise."""
    stale = s.drift * s.travelled
    if not stale < math.inf:
        return FORWARD
    return min(max((math.sqrt(8) / stale) ** 0.5, FORWARD), CENTRAL) if stale > 0 else CENTRAL


def _drift(s: QuasiNewtonState, diagonal: Floats) -> float:
    """How much the diagonal has changed since it was last measured, by the distance travelled."""
    if s.diagonal is diagonal:  # no news
        return s.drift
    if s.diagonal is None or not 0 < s.travelled < math.inf:
        return math.inf
    with np.errstate(all="ignore"):
        changes = np.minimum(np.abs(s.diagonal / diagonal - 1), MANIFOLD)
    return math.sqrt(float(np.mean(changes**2))) / s.travelled


def _radii(x: Vector, times: float, delta: float, diagonal: Floats) -> Floats:
    """So far that curvature lifts values by `times`^2 / 2 errors, but no farther than makes sense around x."""
    with np.errstate(over="ignore"):
        return representable(x, np.minimum(times * np.sqrt(delta / diagonal), LONGEST * Reach.of(x).high))
