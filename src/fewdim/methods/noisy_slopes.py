"""What `NoisyGradient` knows between steps, and what it makes of values: slopes, their noise, the step, the guard."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fewdim.core import Values, evolve
from fewdim.directions import Key, Vector
from fewdim.scales import Measured, Scales

LARGEST = 1e150  # values that are taken for values
SHORT, RECENT = 20, 0.5  # slopes that averages look back over: so many, or this fraction of all
LATELY, SUNK = 64, 0.4  # slopes whose mean square, once below this part of the long average, takes its place
OUTLIER = 6  # root mean squares: slopes are taken to be no larger, nor noise
DOUBT = 0.3  # standard errors taken off the share of the slopes that is not noise
HEIGHTS = 8  # means of pairs that are compared
LEG, STRETCH = 48, 0.25  # steps to the next anchor: so many, or this fraction of all
RISE = 4  # standard errors: pairs higher by more send the run back to the anchor
HIGH, LIFTS = 50, 3  # noise levels and lifts above the first: two pairs in a row that high do so at once
BACK, ON = 0.3, 1.01  # by which the step shrinks then, and grows again with each step


@dataclass(frozen=True)
class NoisyGradientState(Measured):
    """Between two steps of `NoisyGradient`."""

    x: Vector
    key: Key
    k: int = 0
    f_x: float = math.nan  # at x, or at an iterate of the last 16 steps
    scales: Scales | None = None  # its noise is that of the values of pairs; None before the first step
    radius: float = math.nan
    blur: float = math.nan  # variance of a slope
    power: float = math.nan  # mean square of the slopes
    lately: float = math.nan  # the same of the last few
    slopes: float = 0.0  # how many slopes `power` is the mean of
    repeats: float = 0.0  # how many pairs, asked twice, `blur` is the mean of; 0 where values repeat
    repeated: int = 0  # how many have been asked twice
    reviewed: int = 0  # k when trace and radius were last measured
    anchor: Vector | None = None
    there: tuple[float, float, float] = (math.nan,) * 3  # power, blur and noise at the anchor
    heights: tuple[float, ...] = ()  # means of the pairs of the first steps since the anchor, and of the last
    leg: int = 0  # steps since the anchor
    lost: int = 0  # steps in a row without a value
    damping: float = 1.0

    @property
    def steady(self) -> bool | None:
        """Whether values repeat: what looks like noise is rounding, or f itself, and no value is luck."""
        return self.repeats == 0 if self.slopes > 0 else None


class Probed(NamedTuple):
    """What pairs asked twice tell: their means, the variance of a value and of a slope, the mean square slope."""

    heights: Values
    noise: float
    blur: float
    power: float

    @property
    def height(self) -> float:
        return float(self.heights.mean())


def usable(values: Values) -> Any:
    """Which columns have all values, of a size that can be squared."""
    return np.flatnonzero((np.abs(values) < LARGEST).all(axis=0))


def probed(values: Values, radius: float) -> Probed | None:
    """What pairs asked twice, four rows, tell; None where fewer than two are left."""
    values = values[:, usable(values)]
    if values.shape[1] < 2:
        return None
    slopes = (values[0::2] - values[1::2]) / (2 * radius)
    return Probed(values.mean(axis=0), *_noise(values, slopes), float(np.mean(slopes**2)))


def adopted(s: NoisyGradientState, found: Probed, radius: float) -> NoisyGradientState:
    """The state with another radius, and what was found there."""
    assert s.scales is not None
    scales, n = _noisy(s.scales, found.noise), found.heights.size
    s = evolve(s, scales=scales, radius=radius, blur=found.blur, power=found.power, lately=found.power)
    return anchored(evolve(s, slopes=2.0 * n, repeats=float(n)), s.x)


def narrowed(s: NoisyGradientState, radius: float) -> NoisyGradientState:
    """The state with another radius, where noise is as it was."""
    blur = s.blur * (s.radius / radius) ** 2
    power = max(s.power - s.blur, 0.0) + blur
    return anchored(evolve(s, radius=radius, blur=blur, power=power, lately=power), s.x)


def learnt(s: NoisyGradientState, values: Values) -> tuple[NoisyGradientState, Values]:
    """The state with what these pairs, two rows, or four if asked twice, tell of slopes and noise; and the slopes."""
    scales, m, slopes = s.scales, values.shape[1], (values[0::2] - values[1::2]) / (2 * s.radius)
    assert scales is not None
    bound = OUTLIER * math.sqrt(s.power) if s.power > 0 else math.inf
    slopes = np.clip(slopes, -bound, bound)
    n = min(s.slopes + m, max(SHORT, RECENT * s.k * m))
    square = float(np.mean(slopes**2))
    power, lately = (
        s.power + min(1.0, m / n) * (square - s.power),
        s.lately + min(1.0, m / LATELY) * (square - s.lately),
    )
    if lately < SUNK * power:
        power, n = lately, LATELY
    s = evolve(s, slopes=n, power=power, lately=lately)
    if len(values) == 4:
        noise, blur = _noise(values, slopes)
        n = min(s.repeats + m, max(SHORT, RECENT * s.repeated))
        share, known = min(1.0, m / n), scales.resolution.noise * scales.resolution.noise
        noise = min(noise, OUTLIER**2 * known)
        s = evolve(s, scales=_noisy(scales, known + share * (noise - known)), blur=s.blur + share * (blur - s.blur))
        s = evolve(s, repeats=n, repeated=s.repeated + m)
    return s, slopes.mean(axis=0)


def _noise(values: Values, slopes: Values) -> tuple[float, float]:
    """Of pairs asked twice: the variance of a value, and that of a slope."""
    return float(np.mean((values[:2] - values[2:]) ** 2)) / 2, float(np.mean((slopes[0] - slopes[1]) ** 2)) / 2


def _noisy(scales: Scales, variance: float) -> Scales:
    return scales._replace(resolution=scales.resolution._replace(noise=math.sqrt(max(variance, 0.0))))


def lift_of(s: NoisyGradientState) -> float:
    """By how much curvature is expected to lift the mean of a pair above f."""
    assert s.scales is not None
    return 0.5 * s.radius**2 * s.scales.trace


def best_step(s: NoisyGradientState, m: int, share: float) -> float:
    """The step that lowers E f most, where `share` of the variance of slopes is left in their mean."""
    assert s.scales is not None
    trace, smoothness = s.scales.trace, s.scales.smoothness
    if not 0 < s.power < math.inf:
        return 0.0
    doubt = DOUBT * math.sqrt(2 / s.repeats) if s.repeats else 0.0
    signal = min(max(1 - s.blur / s.power - doubt, 0.0), 1.0)
    return signal / (signal * (trace / m + smoothness * (1 + 1 / m)) + (1 - signal) * share * trace / m)


def returned(s: NoisyGradientState) -> NoisyGradientState:
    """Back at the anchor, and at what was known there, with a shorter step."""
    s = evolve(s, damping=BACK * s.damping, heights=(), leg=0, lost=0)
    if s.anchor is None or s.scales is None:
        return s
    power, blur, noise = s.there
    return evolve(s, x=s.anchor, power=power, lately=power, blur=blur, scales=_noisy(s.scales, noise * noise))


def anchored(s: NoisyGradientState, x: Vector) -> NoisyGradientState:
    """The state with x, and what is known there, to go back to."""
    return evolve(s, anchor=x, there=(s.power, s.blur, s.noise), heights=(), leg=0)


def guarded(s: NoisyGradientState, before: Vector, height: float) -> NoisyGradientState:
    """Back to the anchor where the pairs, the last of this mean around `before`, have risen; that as the new anchor
    after a leg.
    """
    scales = s.scales
    assert scales is not None
    heights = (*s.heights[:HEIGHTS], *s.heights[HEIGHTS:][1 - HEIGHTS :], height)
    s = evolve(s, heights=heights, leg=s.leg + 1, damping=min(1.0, ON * s.damping))
    slack = HIGH * scales.resolution.at(s.f_x) + LIFTS * lift_of(s)
    risen = not min(heights[-2:]) <= heights[0] + slack
    if len(heights) == 2 * HEIGHTS:
        (first, spread), (last, more) = statistics(heights[:HEIGHTS]), statistics(heights[HEIGHTS:])
        risen = risen or last - first > RISE * math.sqrt((spread + more) / HEIGHTS)
    if risen:
        return returned(s)
    return anchored(s, before) if s.leg >= max(LEG, STRETCH * s.k) else s


def statistics(values: Sequence[float]) -> tuple[float, float]:
    """Mean and variance; of few values sooner so than by numpy."""
    mean = sum(values) / len(values)
    return mean, sum((value - mean) * (value - mean) for value in values) / (len(values) - 1)
