"""Random pursuit: an exact line search along one random direction after another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewdim import lines
from fewdim.core import Cost, Query, Steps, evolve
from fewdim.directions import LAWS, Direction, Key, Vector, perturb
from fewdim.lines import Reach
from fewdim.methods.settings import check_choice, check_noise
from fewdim.scales import Measured, Scales, measure

PATIENCE = 100  # steps in a row without a decrease, at the smallest radius, after which nothing is left to find
REMEASURE = 16  # steps after which a trusted value is measured all the same


@dataclass(frozen=True)
class RandomPursuitState(Measured):
    """Between two steps of `RandomPursuit`."""

    x: Vector
    key: Key
    k: int = 0
    f_x: float = math.nan
    scales: Scales | None = None
    radius: float = math.nan  # root mean square of the recent steps
    power: float = math.nan  # running mean square of the slopes
    fails: int = 0


@dataclass(frozen=True)
class RandomPursuit:
    r"""Minimise the parabola through three values along a random direction; no parameter to set, never uphill.

    .. math:: x_{k+1} = x_k + t u_k, \qquad t = - s / c

    with the slope s and the curvature c of f along u from f(x - r u), f(x), f(x + r u).  The new point is measured and
    the lowest of the points seen on the line is kept.

    ==========  ======  =======================  ===============================================================
    setting     symbol  default                  source
    ==========  ======  =======================  ===============================================================
    trust               False                    True takes the parabola's word for the new value (measured each
                                                 16th step): 2 values a step instead of 3, no longer never uphill
    directions  u       "signs"                  "signs", "gaussian", "sphere", "axis"
    noise       delta   "auto"                   level of the noise of f; 0 is exact; "auto" spends 2 values, 8 on noise
    ==========  ======  =======================  ===============================================================

    The radius r is the root mean square of recent steps, at least what a second difference needs to be seen.

    **Cost.** 3 values a step (2 with `trust`, and 1 each 16th step), and about 14 once at the start; no vector beyond
    x is held; width 2.

    **Guarantee.** f never rises (exact values).  On a quadratic the decrease is s^2/(2c), so that E f falls at least as
    fast a step as random gradient with its best fixed step: the ED_1/mu rate, with nothing to know beforehand.

    **Departures.** Not in the paper; Algorithm 1 with its step replaced by a line search (Stich, Mueller, Gaertner).
    In noise the step shrinks by the part of the mean square slope that is noise, and a point may be kept that measures
    up to two noise levels higher: an outlier must not be held for ever.

    >>> import numpy as np
    >>> from fewdim import minimize
    >>> result = minimize(lambda x: x @ x, np.ones(50), method=RandomPursuit(), maxfev=2000, rng=0)
    >>> result.fun < 1e-3
    True

    References
    ----------
    Stich, Mueller, Gaertner. Optimization of convex functions with random pursuit. SIAM J. Optim. 23, 2013.
    """

    trust: bool = False
    directions: str = "signs"
    noise: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_choice(self, LAWS, directions=self.directions)
        check_noise(self, self.noise)

    @property
    def cost(self) -> Cost:
        return Cost(fewest=2, most=3, vectors=0)

    def start(self, x: Vector, key: Key) -> RandomPursuitState:
        return RandomPursuitState(x, key)

    def done(self, state: RandomPursuitState) -> bool:
        return state.fails >= PATIENCE

    def step(self, state: RandomPursuitState) -> Steps[RandomPursuitState]:
        s = state
        if s.scales is None:
            found = yield from measure(s.x, (*s.key, s.k, 0), noise=self.noise, pairs=2)
            s = evolve(s, scales=found, f_x=found.f_x, radius=0.0)
        scales = s.scales
        assert scales is not None
        least = math.sqrt(lines.visible(scales.resolution, s.f_x) / scales.trace)
        reach = Reach.of(s.x)
        r = max(least, s.radius, reach.low)  # may outgrow the scale of x: x0 = 0 tells nothing of where the minimum is
        u = LAWS[self.directions]((*s.key, s.k))
        line = yield from lines.parabola(s.x, s.f_x, u, r)
        if line is None:
            return evolve(s, k=s.k + 1, radius=r / 2, fails=s.fails + 1)
        slope, c, t, f_t = line
        scales = scales._replace(trace=0.9 * scales.trace + 0.1 * max(abs(c), 1e-3 * scales.trace))
        blur = scales.resolution.noise / r * (scales.resolution.noise / r) / 2  # variance of the slope
        power = slope * slope if math.isnan(s.power) else 0.95 * s.power + 0.05 * (slope * slope)
        s = evolve(s, power=power)
        if c > 0 and abs(slope) < max(20 * r, reach.high) * c:  # its minimiser, unless that is out of all scale
            share = 1 - blur / power if power > blur else 0.0
            t_c = -share * slope / c  # of least expected value: only this share of the mean square slope is signal
            f_c = s.f_x - slope * slope / (2 * c)
            if not self.trust or s.k % REMEASURE == 0:
                t_c, f_c = yield from _measured(s.x, u, t_c)
        else:  # concave, or downhill far beyond the probes
            t_c, f_c = yield from _measured(s.x, u, 4 * math.copysign(r, -slope))
        if f_c < f_t:
            t, f_t = t_c, f_c
        size = max(math.sqrt(0.9 * (s.radius * s.radius) + 0.1 * (t * t)), abs(t) / 4 if abs(t) > 3 * r else 0.0)
        if f_t < s.f_x + 2 * scales.resolution.noise:
            x = perturb(s.x, t, u)
            return evolve(s, x=x, f_x=f_t, k=s.k + 1, scales=scales, radius=size, fails=0)
        fails = s.fails + 1 if r <= 1.01 * least and scales.resolution.noise == 0 else 0
        return evolve(s, k=s.k + 1, scales=scales, radius=min(size, 0.7 * r), fails=fails)


def _measured(x: Vector, u: Direction, t: float) -> Steps[tuple[float, float]]:
    """The value at x + t u, or, when there is none, half-way."""
    for length in (t, t / 2):
        values = yield Query(x, (length * u,))
        if np.isfinite(values[0]):
            return length, float(values[0])
    return t, math.inf
