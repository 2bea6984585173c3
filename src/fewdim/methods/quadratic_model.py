"""Quadratic model: a quadratic through the latest values, minimised where it is trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fewdim.core import Cost, Query, Steps, evolve, value
from fewdim.directions import Along, Key, Vector, axis, perturb, sphere
from fewdim.gradients import Floats
from fewdim.lines import Reach, Resolution, insisted, scale_of
from fewdim.methods.looks import QuadraticModelState, along_all, along_next
from fewdim.methods.regression import Quadratic, Regression
from fewdim.methods.settings import check_count, check_noise
from fewdim.noise import noise_here, smooth_along
from fewdim.scales import Scales, start_value

SHRINK = 0.1  # of the least radius, once nothing more is to be had at it
POOR, GOOD = 0.1, 0.7  # of the decrease that the model promised
FLOOR = 8  # noise levels: values that differ by less than this say nothing about where to go
SPREAD = 2.0  # radii: points farther off make a model that fails worth mending
LONGEST = 1e100  # radius
MANY = 200  # points
LARGEST = 150  # dimensions for which the declared memory suffices, and up to which `Auto` uses it
KEEP = 0.8  # of what is known of the errors of either fit, at each value
NEAREST = 1e-14  # of the scale of x: the least radius there is


@dataclass(frozen=True)
class QuadraticModel:
    r"""Fit a quadratic to the latest values, ask for the value where it is lowest, and so on.

    .. math:: x^+ = \arg\min_{|x - x_k| \le r} m_k(x), \qquad
              m_k = \arg\min_m \tfrac12 |D|_F^2 + \sum_j \frac{(f_j - m(x_j))^2}{2 w_j}

    where D is the Hessian of m less a multiple of the identity, or less the last Hessian: there are two fits, the
    smallest Hessian and the least changed one, and it goes by the one that has been less wrong of late about the values
    asked for.  The one forgets and the other remembers what the points have lost; which is right depends on f.

    It starts with two values along each axis, each pair from the best point so far, as far apart as x is large; then
    every step asks for one value, which takes the place of the point whose value counts most there and which is far
    off.  Differences are taken over long distances, and each value serves many steps: that is what noise calls for.

    ============  ======  ==============  ================================================================
    setting       symbol  default         source
    ============  ======  ==============  ================================================================
    radius        r       "auto"          the first radius; "auto": the scale of x0, 1 where that is 0
    width         w       1               evaluations at once, which a pool sets: the next point comes with some around
    noise         delta   "auto"          level of the noise of f; 0 is exact; "auto" spends 2 values, 8 more on noise
    ============  ======  ==============  ================================================================

    **Cost.** 2d + 1 values, then 1 or 2 a step.  It keeps n = 3d points, but at most 200 and at least 2d + 2: n + d + 1
    vectors beyond x, three matrices of up to n by n during a step, and some n^3 multiplications, which is for d up to
    150 or so.

    **Guarantee.** It is done when the values of its points differ by less than 8 noise levels.  The fit finds a
    quadratic that its points determine.  No rate is proved.

    **Departures.** Not in the paper: the engine of `Auto` for noise and for negative curvature in few dimensions.

    >>> import numpy as np
    >>> from fewdim import minimize
    >>> rounded = lambda x: round(float(x @ x), 3)
    >>> minimize(rounded, np.linspace(1, 2, 5), method=QuadraticModel(), rng=0).fun < 0.01
    True

    References
    ----------
    Powell. The NEWUOA software for unconstrained optimization without derivatives. 2006 (two radii, when a point is
    replaced, the least change of the Hessian).
    Conn, Scheinberg, Vicente. Introduction to derivative-free optimization. SIAM, 2009 (models of least Frobenius norm,
    and regression).
    """

    radius: float | Literal["auto"] = "auto"
    width: int = 1
    noise: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_count(self, width=self.width)
        if self.radius != "auto" and not 0 < self.radius < math.inf:
            raise ValueError(f'QuadraticModel(radius=...) must be "auto" or a positive number; got {self.radius!r}.')
        check_noise(self, self.noise)

    @property
    def cost(self) -> Cost:
        return Cost(fewest=1, most=80 + self.width, vectors=3 * LARGEST + 3, axes=5)

    def fit(self, width: int) -> QuadraticModel:
        """The same method with as many values at once."""
        return replace(self, width=width)

    def start(self, x: Vector, key: Key) -> QuadraticModelState:
        return QuadraticModelState(x, key)

    def done(self, state: QuadraticModelState) -> bool:
        return state.fails > 0

    def step(self, state: QuadraticModelState) -> Steps[QuadraticModelState]:
        s = evolve(state, k=state.k + 1)
        if not s.values:
            s = yield from self._opened(s)
        if len(s.bends) < s.x.size:
            return (yield from (along_all(s) if self.width > 1 else along_next(s)))
        return (yield from (self._listened(s) if s.scales is None else self._modelled(s)))

    def _opened(self, s: QuadraticModelState) -> Steps[QuadraticModelState]:
        """The value at x, if it is not known, and how far to look."""
        f_x = (yield from start_value(s.x)) if math.isnan(s.f_x) else s.f_x
        radius = scale_of(s.x) if self.radius == "auto" else self.radius
        return evolve(s, f_x=f_x, points=(s.x,), values=(f_x,), first=(s.x, f_x), radius=radius, least=radius)

    def _listened(self, s: QuadraticModelState) -> Steps[QuadraticModelState]:
        """A first step, as if values were exact, and then the noise where it began: 2 values tell if there is any."""
        resolution = Resolution() if self.noise == "auto" else Resolution(float(self.noise))
        scales = Scales(s.f_x, resolution, math.nan, math.nan, Reach.of(s.x))
        after = yield from self._modelled(evolve(s, scales=scales))
        if self.noise == "auto":
            i = int(np.argmax(s.bends))
            smooth = yield from smooth_along(s.x, s.f_x, 1e-9 * float(np.ptp(s.values)), axis(i), s.bends[i])
            if not smooth:
                resolution = yield from noise_here(s.x, s.f_x, (*s.key, s.k, 0))
        return evolve(after, scales=scales._replace(resolution=resolution))

    def _modelled(self, s: QuadraticModelState) -> Steps[QuadraticModelState]:
        """A step to where the model is lowest; one that mends the model where that promises or brings little."""
        while True:
            model = _regression(s)
            fits = _fits(s, model)
            s = evolve(s, hessian=fits[1].hessian if np.isfinite(fits[1].hessian).all() else None)
            step, promised = fits[s.misses[1] <= s.misses[0]].minimiser(s.radius)
            length = float(np.linalg.norm(step))
            poor = length < 0.5 * s.least
            if poor:
                s = evolve(s, radius=_radius(max(0.1 * s.radius, s.least), s.least))
            else:
                s, gained = yield from self._tried(s, model, fits, step)
                if gained > 0 and gained >= POOR * promised:
                    grown = 2 * length if gained >= GOOD * promised else length
                    return evolve(s, radius=_radius(max(0.5 * s.radius, grown), s.least))
                s = evolve(s, radius=_radius(0.5 * min(s.radius, length), s.least))
                model = _regression(s)
            far = int(np.argmax(model.distances))
            if model.distances[far] > SPREAD * s.radius:
                radius = max(min(0.1 * float(model.distances[far]), 0.5 * s.radius), s.least)
                there = perturb(s.x, 1.0, model.most_influenced(far, radius).astype(s.x.dtype))
                return s.without(far).joined([there], [(yield from value(there))])
            if poor or s.radius <= s.least:
                if self._ended(s):
                    f_x = yield from value(s.x)
                    return evolve(s, fails=1, f_x=s.f_x if math.isnan(f_x) else f_x)
                least = SHRINK * s.least
                s = evolve(s, least=least, radius=max(0.5 * s.least, least))
            if not poor:
                return s

    def _ended(self, s: QuadraticModelState) -> bool:
        """Whether the values of the points differ by no more than the noise, or the points by no more than spacing."""
        assert s.scales is not None
        level = float(np.median(s.values)) - min(s.values)
        return level <= FLOOR * s.scales.resolution.at(s.f_x) or s.least < NEAREST * scale_of(s.x)

    def _tried(
        self, s: QuadraticModelState, model: Regression, fits: tuple[Quadratic, Quadratic], step: Floats
    ) -> Steps[tuple[QuadraticModelState, float]]:
        """The state with the value at x + step, and how much lower that is."""
        there = perturb(s.x, 1.0, step.astype(s.x.dtype))
        around = 0.5 * float(np.linalg.norm(step))
        beside = tuple(Along(around, sphere((*s.key, s.k, j))) for j in range(1, self.width))
        query = Query(there, (None, *beside))
        values = (yield from insisted(query, tries=2)).tolist()
        f_x, influence = s.f_x, np.abs(model.influence(step))
        s = evolve(s, misses=_misses(s.misses, [fit.at(step) - (values[0] - f_x) for fit in fits]))
        s = evolve(s, missing=s.missing + 1 if math.isnan(values[0]) else 0)
        for j, f in enumerate(values):
            if not math.isnan(f):
                s = self._put(s, query.point(j), f, influence)
                influence = np.ones(len(s.points))  # of the points beside it: the farthest goes
        return s, f_x - min((f for f in values if not math.isnan(f)), default=math.inf)

    def _put(self, s: QuadraticModelState, point: Vector, f: float, influence: Floats) -> QuadraticModelState:
        """The point in the place of one that its value makes up for, and that is far off."""
        if len(s.points) >= max(min(3 * s.x.size, MANY), 2 * s.x.size + 2):
            centre = point if f < s.f_x else s.x
            gone = np.sqrt(np.sum((np.array(s.points) - centre) ** 2, axis=1)) / max(s.least, 0.1 * s.radius)
            weight = influence * np.maximum(1.0, gone) ** 3
            if f >= s.f_x:
                weight[int(np.argmin(s.values))] = -1.0
            s = s.without(int(np.argmax(weight)))
        return s.joined([point], [f])


def _regression(s: QuadraticModelState) -> Regression:
    """What the points tell."""
    with np.errstate(all="ignore"):
        return Regression(np.array(s.points, dtype=np.float64), int(np.argmin(s.values)), max(s.radius, s.least))


def _fits(s: QuadraticModelState, model: Regression) -> tuple[Quadratic, Quadratic]:
    """The fit with the smallest Hessian, and the one that changes the last Hessian least."""
    values = np.array(s.values)
    with np.errstate(all="ignore"):
        smallest = model.fit(values)
        return smallest, smallest if s.hessian is None else model.fit(values, s.hessian)


def _misses(misses: tuple[float, float], errors: list[float]) -> tuple[float, float]:
    """The errors of either fit of late, with their shares in the latest."""
    a, b = abs(errors[0]), abs(errors[1])
    if not 0 < a + b < math.inf:
        return misses
    return KEEP * misses[0] + a / (a + b), KEEP * misses[1] + b / (a + b)


def _radius(radius: float, least: float) -> float:
    """The radius, or the least one when it is close to that; bounded, since f may not be."""
    return least if radius <= 1.5 * least else min(radius, LONGEST)
