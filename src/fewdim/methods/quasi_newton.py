"""Quasi-Newton: limited-memory BFGS on gradients from finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from fewdim.core import Cost, Steps, evolve
from fewdim.directions import Key, Vector, perturb
from fewdim.gradients import Floats, central, fit_to_divide_by, forward, representable
from fewdim.lines import Reach, Resolution, scale_of, value_at, visible
from fewdim.methods.settings import check_count, check_noise
from fewdim.noise import noise_here
from fewdim.scales import Measured, Scales, curvature, measure, start_value

FRUGAL = 20  # up to this dimension a look at the noise would cost as much as a gradient: it waits for a reason
CLEAR = 100  # squared slopes above this many squared errors are clear enough for forward differences
LATEST = 5  # pairs by which the diagonal is judged
TINY = 1e-300  # a square below has lost its digits
LONGEST = 1e6  # of the scale of x, or 1: how far the first trial of a line search goes where curvature is not seen
STRETCH = 4.0  # the most that one trial of a line search goes beyond the last


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
    sure: bool = True  # of the noise level
    decrease: float = math.nan  # of the last step
    fails: int = 0


Q = TypeVar("Q", bound=QuasiNewtonState)


class Trial(NamedTuple):
    """A step of length a along a direction, its value, and how many values it took to find."""

    a: float
    f_a: float
    tries: int


@dataclass(frozen=True)
class QuasiNewton:
    r"""Newton's direction from the gradients of past steps, gradients from differences along every axis.

    .. math:: x_{k+1} = x_k - a_k H_k g_k, \qquad g_i = \frac{f(x + h_i e_i) - f(x)}{h_i} - \frac{h_i D_i}{2}

    H is the limited-memory BFGS matrix of the last pairs (step, change of g) above :math:`(s'y / y'D^{-1}y) D^{-1}`,
    where D is the diagonal of the Hessian: the first gradient is central, 2d values, and tells it.

    ============  ======  ==============  ================================================================
    setting       symbol  default         source
    ============  ======  ==============  ================================================================
    memory        n       50              most pairs; two vectors each
    noise         delta   "auto"          level of the noise of f; 0 is exact; "auto" spends 2 values,
                                          8 more on noise; up to d = 20 none until a line search goes wrong
    ============  ======  ==============  ================================================================

    Within bounds (`minimize(bounds=...)`) steps are projected onto them, and a coordinate on a bound whose slope points
    outwards is left alone: its slope is looked at after 1, 2, 4, ... 16 steps.

    **Cost.** d values a step in one query, 2d while slopes are near the noise, and 1 to 14 for the line search;
    2n + 4 vectors beyond x.

    **Guarantee.** Forward differences less the known curvature are exact on quadratics: central accuracy at half the
    price.  The value never rises.  What L-BFGS is known for holds, at d + 2 values a step: superlinear in practice, a
    linear rate for strongly convex functions.

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
            found = yield from _first_gradient(s, scales)
            if found.odd and not s.sure:
                s = yield from made_sure(s, scales)
                if s.noise > 0:
                    return s
        g, diagonal, _ = found
        s = remembered(evolve(s, k=s.k + 1, diagonal=diagonal), g, self.memory)
        direction = newton_direction(s, diagonal, g)
        slope = float(g @ direction)
        if not slope < 0:
            s = evolve(s, steps=(), changes=())
            direction = -g / diagonal
            slope = float(g @ direction)
        if not -math.inf < slope < 0:
            return evolve(s, fails=s.fails + 1, central=True)
        size, longest = float(np.abs(direction).max()), LONGEST * Reach.of(s.x).high
        if size > longest:
            direction, slope = direction * (longest / size), slope * (longest / size)
        along = direction.astype(s.x.dtype)
        trial = yield from search(lambda a: value_at(s.x, a, along), s.f_x, slope)
        if not s.sure and (trial.tries > 3 or trial.a == 0):
            s = yield from made_sure(s, scales)
            if s.noise > 0 and trial.a == 0:
                return evolve(s, diagonal=None, steps=(), changes=(), gradient=None, moved=None)
        if trial.a == 0:
            return evolve(s, fails=s.fails + 1, steps=(), changes=(), gradient=None, moved=None, central=True)
        return evolve(
            s,
            x=perturb(s.x, trial.a, along),
            f_x=trial.f_a,
            decrease=s.f_x - trial.f_a,
            gradient=g,
            moved=trial.a * direction,
            central=float(np.sum(g * g / diagonal)) < CLEAR * scales.resolution.at(s.f_x) * g.size,
            fails=0,
        )

    @property
    def cost(self) -> Cost:
        return Cost(fewest=2, most=50, vectors=2 * self.memory + 4, axes=16)

    def _opened(self, s: Q) -> Steps[Q]:
        """The scales of f at x; in few dimensions its noise is taken for round-off until something speaks against."""
        if s.x.size > FRUGAL:
            found = yield from measure(s.x, (*s.key, s.k, 0), noise=self.noise, pairs=2)
            return evolve(s, scales=found, f_x=found.f_x)
        f_x = yield from start_value(s.x)
        resolution = Resolution() if self.noise == "auto" else Resolution(float(self.noise))
        scales = Scales(f_x, resolution, math.nan, math.nan, Reach.of(s.x))
        return evolve(s, scales=scales, f_x=f_x, sure=self.noise != "auto")


def remembered(s: Q, g: Floats, memory: int) -> Q:
    """Add the last step and the change of the gradient along it, if the curvature there was positive."""
    if s.moved is None or s.gradient is None or s.diagonal is None:
        return s
    y = g - s.gradient
    length, change = float(np.sum(s.moved**2 * s.diagonal)), float(np.sum(y * y / s.diagonal))
    if not float(s.moved @ y) > max(1e-8 * math.sqrt(length * change), TINY) or change < TINY:
        return s
    return evolve(s, steps=(*s.steps, s.moved)[-memory:], changes=(*s.changes, y)[-memory:], moved=None)


def made_sure(s: Q, scales: Scales) -> Steps[Q]:
    """Measure the noise that was taken for round-off so far; if there is some, the trace of the Hessian as well."""
    resolution = yield from noise_here(s.x, s.f_x, (*s.key, s.k, 1))
    scales = scales._replace(resolution=resolution)
    if resolution.noise > 0:
        found = yield from curvature(s.x, s.f_x, resolution, (*s.key, s.k, 2), pairs=2)
        scales = scales._replace(trace=found.trace, smoothness=found.smoothness)
    return evolve(s, sure=True, scales=scales)


def newton_direction(s: QuasiNewtonState, diagonal: Floats, g: Floats) -> Floats:
    """-H g by the two loops of L-BFGS."""
    q = -g
    products = [float(step @ y) for step, y in zip(s.steps, s.changes, strict=True)]
    weights: list[float] = []
    for step, y, product in zip(reversed(s.steps), reversed(s.changes), reversed(products), strict=True):
        weights = [*weights, float(step @ q) / product]
        q = q - weights[-1] * y
    diagonal = _explaining(s, diagonal)
    q = q / diagonal
    if products:
        y = s.changes[-1]
        q *= products[-1] / float(y @ (y / diagonal))
    for step, y, product, weight in zip(s.steps, s.changes, products, reversed(weights), strict=True):
        q += (weight - float(y @ q) / product) * step
    return q


def _explaining(s: QuasiNewtonState, diagonal: Floats) -> Floats:
    """The diagonal while it explains the latest changes of the gradient better than a multiple of the identity does."""
    lead = 0.0
    for step, y in zip(s.steps[-LATEST:], s.changes[-LATEST:], strict=True):
        lead += _cosine(y, diagonal * step) - _cosine(y, step)
    return diagonal if lead >= 0 else np.full_like(diagonal, diagonal.mean())


def _cosine(a: Floats, b: Floats) -> float:
    """Of the angle between them; each is brought to size 1 first, since squares of tiny numbers vanish."""
    sizes = float(np.abs(a).max()), float(np.abs(b).max())
    if not 0 < min(sizes) <= max(sizes) < math.inf:
        return 0.0
    a, b = a / sizes[0], b / sizes[1]
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


def search(at: Callable[[float], Steps[float]], f_x: float, slope: float) -> Steps[Trial]:
    """Values `at` a = 1 and on or back to where the parabola through f(x), its slope and the last value says."""
    best, tries, a = Trial(0.0, f_x, 0), 1, 1.0
    f_a = yield from at(a)
    while tries < 14:
        bend = 2 * (f_a - f_x - a * slope) / a**2
        lowest = -slope / bend if 0 < bend < math.inf else math.inf
        if f_a < best.f_a:
            best = Trial(a, f_a, tries)
        if f_a < f_x and lowest > 0.4 * a:
            if lowest < 1.6 * a:
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
            a = min(max(lowest, 0.05 * a), 0.5 * a) if f_a < math.inf and lowest < math.inf else 0.1 * a
            f_a = yield from at(a)
            tries += 1
    if f_a < best.f_a:
        best = Trial(a, f_a, tries)
    return best._replace(tries=tries)


# ----------------------------------------------------------------------------------------------------------- gradients
class Found(NamedTuple):
    """A gradient, the diagonal of the Hessian, and whether second differences are too large to be curvature."""

    g: Floats
    diagonal: Floats
    odd: bool = False


def _first_gradient(s: QuasiNewtonState, scales: Scales) -> Steps[Found]:
    """Central differences as wide as it takes to see curvature; with it the diagonal."""
    known = not math.isnan(scales.trace)
    if known:
        delta = scales.resolution.at(s.f_x)  # wide enough to tell curvatures that are 1e-6 of the mean one
        radius = math.sqrt(max(900 * delta, math.sqrt(delta * abs(s.f_x))) * s.x.size / scales.trace)
    else:
        radius = 1e-4 * scale_of(s.x)
    for _ in range(8):
        radius = scales.reach.clip(radius)
        h = representable(s.x, np.full(s.x.size, radius))
        g, c = yield from central(s.x, s.f_x, h, None)
        seen = float(np.abs(c).max()) * radius**2 >= 0.1 * visible(scales.resolution, s.f_x)
        if seen or known or radius >= scales.reach.high:
            break
        radius *= 30
    odd = float(np.median(np.abs(c))) * radius > float(np.median(np.abs(g)))
    return Found(g, fit_to_divide_by(c), odd)


def _gradient(s: QuasiNewtonState, diagonal: Floats, delta: float) -> Steps[Found]:
    """Central differences with a new diagonal, or forward ones less half the curvature times the radius."""
    if s.central:
        h = representable(s.x, 30 * np.sqrt(delta / diagonal))
        g, c = yield from central(s.x, s.f_x, h, diagonal)
        return Found(g, fit_to_divide_by(c) if c.any() else diagonal)  # all lost in round-off: no news
    g = yield from forward(s.x, s.f_x, representable(s.x, 2 * np.sqrt(delta / diagonal)), diagonal)
    return Found(g, diagonal)
