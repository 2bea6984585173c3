"""Noisy gradient: Algorithm 1 with the step, and the radius, that the noise it meets calls for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewdim.core import Cost, Query, Steps, Values, evolve, value
from fewdim.directions import LAWS, Along, Key, Vector, accumulate
from fewdim.lines import insisted
from fewdim.methods.noisy_slopes import (
    NoisyGradientState,
    Probed,
    adopted,
    anchored,
    best_step,
    guarded,
    learnt,
    narrowed,
    probed,
    returned,
    statistics,
    usable,
)
from fewdim.methods.settings import changed, check_choice, check_count, check_noise
from fewdim.scales import measure

LIFT = 15  # noise levels by which curvature lifts a pair above f: the widest radius
AGAIN = 16  # each so many steps, the pairs are asked a second time, and the value at x
HIDDEN = 0.5  # of the mean square of slopes: where noise is more, each pair is asked twice, which costs nothing there
PROBES = 4  # pairs asked twice where a radius is tried
PAIRS = 8  # pairs for the trace
UNEVEN = 4  # times the variance at x: where that of the pairs is larger, noise grows with the distance
WIDER = 8.0  # by which the radius grows until curvature is seen
CERTAIN = 2  # noise levels that a pair must be lifted for that
TRIES = 12  # radii that are tried at most
FIRST_REVIEW = 100  # steps after which trace and radius are measured for the second time
LOST = 3  # steps in a row without a value, after which it goes back


@dataclass(frozen=True)
class NoisyGradient:
    r"""Random gradient for noisy values: the noise of the slopes is measured as it goes, and the step follows from it.

    .. math:: x_{k+1} = x_k - \frac{h}{m} \sum_{j=1}^m s_j u_j, \qquad
              h = \frac{S}{S \, (\mathrm{tr}/m + L (1 + 1/m)) + v \, \mathrm{tr}/m}

    with central slopes s = u'g + noise.  v is the variance of that noise, from pairs that are asked twice (each 16th
    step, and all where noise is half of the slopes or more), and S = |g|^2 what it leaves of the mean square of the
    slopes.  This h lowers E f most: where slopes are clear it is the step of `RandomGradient`, and as |g| sinks into
    the noise it shrinks with |g|^2 / v, so that the noise averages out.  S is taken a little lower than estimated,
    and no slope larger than 6 times their root mean square.  In very long runs S is too small to be told from its
    error, and progress slows down.

    The radius is as wide as lifts a pair 15 noise levels above f; narrower where the noise at the ends of a pair is
    more than at x, as that of mini-batches is, and slopes over a shorter distance are less noisy.

    ============  ======  ==============  ================================================================
    setting       symbol  default         source
    ============  ======  ==============  ================================================================
    batch         m       "auto"          directions per step, asked in one query; "auto" is 1, and with a pool of w
                                          workers w / 2: their pairs keep all of them busy
    directions    u       "signs"         "signs", "gaussian", "sphere", "axis"
    noise         delta   "auto"          level of the noise at the start; "auto" spends about 10 values
    ============  ======  ==============  ================================================================

    **Cost.** 2m values a step, 4m where the pairs are asked twice (never where values repeat), and 1 more each 16th;
    about 50 at the start, more where noise hides the curvature, and 20 to 100 each time the steps have doubled, for
    trace and radius.  One vector beyond x is held.

    **Guarantee.** On a quadratic, with S and v known, E f falls each step by h S / 2.  Where the pairs of the last 8
    steps are clearly higher than those 8 with which a leg of the run began, it goes back there, with a shorter step.

    **Departures.** Not in the paper, which has no noise; its Algorithm 1 with another step.

    >>> import random
    >>> import numpy as np
    >>> from fewdim import minimize
    >>> dice = random.Random(0)
    >>> noisy = lambda x: x @ x + dice.gauss(0, 1)
    >>> x = minimize(noisy, np.ones(50), method=NoisyGradient(), maxfev=4000, rng=0).x
    >>> bool(x @ x < 1)
    True

    References
    ----------
    Spall. Multivariate stochastic approximation using a simultaneous perturbation gradient approximation. IEEE Trans.
    Automat. Control 37, 1992 (two values a step, in noise).
    """

    batch: int | Literal["auto"] = "auto"
    directions: str = "signs"
    noise: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        if self.batch != "auto":
            check_count(self, batch=self.batch)
        check_choice(self, LAWS, directions=self.directions)
        check_noise(self, self.noise)

    @property
    def count(self) -> int:
        return 1 if self.batch == "auto" else self.batch

    def fit(self, width: int) -> NoisyGradient:
        """The same method with a batch of "auto" that keeps `width` workers busy."""
        return changed(self, batch=max(1, width // 2)) if self.batch == "auto" else self

    @property
    def cost(self) -> Cost:
        return Cost(fewest=2 * self.count, most=4 * self.count + 4 * PROBES * TRIES + 2 * PAIRS + 5, vectors=1)

    def start(self, x: Vector, key: Key) -> NoisyGradientState:
        return NoisyGradientState(x, key)

    def done(self, state: NoisyGradientState) -> bool:
        return False

    def step(self, state: NoisyGradientState) -> Steps[NoisyGradientState]:
        s = state
        if s.scales is None:
            s = yield from self._begun(s)
        elif s.k - s.reviewed >= max(FIRST_REVIEW, s.reviewed):
            s = yield from self._reviewed(s)
        m, key = self.count, (*s.key, s.k)
        again = s.repeats > 0 and (s.k % AGAIN == AGAIN - 1 or s.blur > HIDDEN * s.power)
        if s.k % AGAIN == 0:  # so that the run can be followed
            f_x = yield from value(s.x)
            s = s if math.isnan(f_x) else evolve(s, f_x=f_x)
        values = yield from self._pairs(s.x, key, m, s.radius)
        if again:  # in a query of its own: the points of one may share an error
            values = np.concatenate([values, (yield from self._pairs(s.x, key, m, s.radius))])
        kept = usable(values)
        s = evolve(s, k=s.k + 1)
        if not kept.size:
            return returned(s) if s.lost + 1 >= LOST else evolve(s, lost=s.lost + 1)
        s, slopes = learnt(s, values[:, kept])
        h = s.damping * best_step(s, kept.size, 0.5 if again else 1.0)
        directions = [LAWS[self.directions]((*key, j)) for j in kept.tolist()]
        height = float(values[:, kept].mean())
        x = accumulate(s.x, -h / kept.size * slopes, directions)
        return guarded(evolve(s, x=x, lost=0), s.x, height)

    def _pairs(self, x: Vector, key: Key, count: int, radius: float, law: str | None = None) -> Steps[Values]:
        """Values on both sides of x along the directions (*key, 0), (*key, 1), ...: two rows."""
        directions = [LAWS[law or self.directions]((*key, j)) for j in range(count)]
        query = Query(x, tuple(Along(side * radius, u) for side in (1.0, -1.0) for u in directions))
        return (yield from insisted(query, tries=2)).reshape(2, count)

    def _probed(self, x: Vector, key: Key, radius: float) -> Steps[Probed | None]:
        """What four pairs at this radius, asked twice, tell; None where more than two of them are missing."""
        once = yield from self._pairs(x, key, PROBES, radius)
        again = yield from self._pairs(x, key, PROBES, radius)
        return probed(np.concatenate([once, again]), radius)

    def _begun(self, s: NoisyGradientState) -> Steps[NoisyGradientState]:
        """Measure noise and curvature at x, and the radius that goes with them."""
        m, found = self.count, None
        scales = yield from measure(s.x, (*s.key, s.k, m), noise=self.noise, pairs=2)
        at_x = np.append((yield Query(s.x, (None,) * 3)), scales.f_x)
        at_x = at_x[np.isfinite(at_x)]
        f_x, level, high = float(at_x.mean()), scales.resolution.at(scales.f_x), scales.reach.high
        near = max(level * level, statistics(at_x.tolist())[1] if at_x.size > 1 else 0.0)
        radius = scales.reach.clip(math.sqrt(2 * LIFT * level / scales.trace))
        for tries in range(TRIES):
            found = yield from self._probed(s.x, (*s.key, s.k, m + 1, tries), radius)
            if found is None:  # values are missing so far off
                radius = high = radius / WIDER
            elif radius < high and abs(found.height - f_x) < CERTAIN * max(level, math.sqrt(found.noise)):
                radius = min(WIDER * radius, high)  # noise hides the curvature, or was taken for it
            else:
                break
        s = evolve(s, f_x=f_x, scales=scales._replace(f_x=f_x), radius=radius)
        if found is None:
            return anchored(evolve(s, blur=near / (2 * radius**2), power=0.0, lately=0.0), s.x)
        if found.noise > 0:
            s = adopted(s, found, radius)
        else:  # values repeat: their error is that of rounding
            blur = near / (2 * radius**2)
            power = found.power + blur
            s = evolve(s, blur=blur, power=power, lately=power, slopes=2.0 * PROBES)
        s = yield from self._curved(anchored(s, s.x), f_x, found.heights, radius)
        return (yield from self._widened(s, near, factor=4, better=2.0))

    def _reviewed(self, s: NoisyGradientState) -> Steps[NoisyGradientState]:
        """Measure the trace at x again, which counts half, and set the radius anew."""
        s = evolve(s, reviewed=s.k)
        at_x = yield Query(s.x, (None,) * 4)
        at_x = at_x[np.isfinite(at_x)]
        if at_x.size < 2:
            return s
        f_x, near = statistics(at_x.tolist())
        if s.repeats == 0:  # do values still repeat?
            found = yield from self._probed(s.x, (*s.key, s.k, self.count + 1), s.radius)
            s = adopted(s, found, s.radius) if found and found.noise > 0 else s
        s = evolve(s, f_x=f_x)
        scales = s.scales
        assert scales is not None
        wide = scales.reach.clip(max(s.radius, math.sqrt(LIFT * scales.resolution.at(f_x) / scales.trace)))
        s = yield from self._curved(s, f_x, np.empty(0), wide)
        return (yield from self._widened(s, near, factor=2, better=1.3))

    def _curved(self, s: NoisyGradientState, f_x: float, heights: Values, radius: float) -> Steps[NoisyGradientState]:
        """The state with trace and smoothness from pairs at this radius, those known and 8 more.

        For one direction a step counts the curvature that the method's own directions see, for more of them that of
        all directions, which signs do not see along the axes.
        """
        scales, first = s.scales, heights.size > 0
        assert scales is not None
        law = self.directions if self.count == 1 else "gaussian"
        heights = heights if self.count == 1 else np.empty(0)
        values = yield from self._pairs(s.x, (*s.key, s.k, self.count + 2), PAIRS, radius, law)
        heights = np.concatenate([heights, values.mean(axis=0)])
        lifts = heights[np.isfinite(heights)] - f_x
        if lifts.size < 2:
            return s
        noise = scales.resolution.at(f_x)
        trace = 2 * max(abs(float(lifts.mean())), noise / math.sqrt(lifts.size)) / radius**2
        variance = statistics(lifts.tolist())[1]
        spread = 2 * math.sqrt(max(variance - 0.5 * noise * noise, 0.0) / 2) / radius**2
        if not first and 0.25 < trace / scales.trace < 4:
            trace, spread = (trace + scales.trace) / 2, (spread + scales.smoothness) / 2
        if not trace + spread < math.inf:
            return s
        return evolve(s, scales=scales._replace(trace=trace, smoothness=max(spread, trace / s.x.size)))

    def _widened(self, s: NoisyGradientState, near: float, factor: float, better: float) -> Steps[NoisyGradientState]:
        """The widest radius where noise is even, else one at which slopes are less noisy, if there is."""
        scales = s.scales
        assert scales is not None
        level = scales.resolution.at(s.f_x)
        widest = scales.reach.clip(math.sqrt(2 * LIFT * level / scales.trace))
        if s.repeats == 0 or (level * level <= UNEVEN * near and widest <= s.radius):
            return narrowed(s, widest)
        if level * level <= UNEVEN * near:
            if widest > 1.5 * s.radius:
                radius = min(widest, 2 * s.radius)
                found = yield from self._probed(s.x, (*s.key, s.k, self.count + 3), radius)
                if found and 0 < found.blur < 2 * (s.radius / radius) ** 2 * s.blur:
                    return adopted(s, found, radius)
            return s
        for tries in range(TRIES):
            radius = s.radius / factor
            found = yield from self._probed(s.x, (*s.key, s.k, self.count + 3, tries), radius)
            if radius < scales.reach.low or not (found and 0 < found.blur <= s.blur / better):
                break
            s = adopted(s, found, radius)
        return s
