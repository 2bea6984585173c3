"""Measuring the scales of f at a point: how large its curvature is, and with `fewdim.noise` how noisy its values are.

Every value spent here is asked through queries like any other, and counted like any other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fewdim.core import Steps, Values
from fewdim.directions import Key, Vector
from fewdim.lines import (
    Lines,
    Reach,
    Resolution,
    central_radius,
    differences,
    forward_radius,
    insisted_value,
    scale_of,
    visible,
)
from fewdim.noise import noise_level, smooth_along

INSISTENT = 60  # tries for a value where a method starts
NEAR = 1e-3  # of the scale of x: where curvature is looked for first
CLOSE = 300  # round-offs that curvature should change f by where two values tell whether f is smooth


class Curvature(NamedTuple):
    """The trace of the Hessian and a bound on its largest eigenvalue, from second differences."""

    trace: float
    smoothness: float


def curvature(
    x: Vector,
    f_x: float,
    resolution: Resolution,
    key: Key,
    *,
    pairs: int,
    radius: float = math.nan,
    seen: Lines | None = None,
) -> Steps[Curvature]:
    """Tr A and a bound on L from second differences along `pairs` directions: 2 values each, 4 more a radius tried.

    `seen` is what the first two pairs at the first radius have told, if they have been asked already.

    The directions are Gaussian whatever the method's own: E u'Au = tr A and Var u'Au = 2 |A|_F^2, where L <= |A|_F <=
    sqrt(L tr A).  (For signs the variance has no diagonal part; it vanishes when the axes are the eigenvectors.)
    """
    reach, least = Reach.of(x), visible(resolution, f_x)
    radius = reach.clip(NEAR * scale_of(x) if math.isnan(radius) else radius)
    for attempt in range(16):
        first = seen or (yield from _two_pairs(x, f_x, (*key, 0, attempt), radius))
        seen = None
        largest = radius**2 * float(np.abs(first.curvatures).max(initial=0.0))
        wider = reach.clip(5 * radius)
        if not first.directions:
            radius /= 30
        elif largest < least and wider > radius:
            radius = wider
        else:
            break
    c = first.curvatures
    if pairs > 2:
        rest = yield from differences(x, "gaussian", (*key, 1), pairs - 2, radius, central=True, f_x=f_x)
        c = np.concatenate([c, rest.curvatures])
    if c.size == 0:
        return Curvature(least / radius**2, least / radius**2)
    floor = max(resolution.at(f_x) / radius**2, 1e-300)  # around an x of 1e14 the quotient may vanish
    largest = max(float(np.abs(c).max()), floor)  # squares of c alone may overflow
    blur = resolution.noise / radius**2  # f(x) is common to all and does not make them differ
    variance = float(np.var(c / largest, ddof=1)) * largest if c.size > 1 else 2 * largest
    spread = math.sqrt(max(variance - 2 * (blur / largest) * blur, 0.0) / 2) * math.sqrt(largest)
    return Curvature(max(float(np.mean(np.abs(c))), floor), max(spread, floor))


def _two_pairs(x: Vector, f_x: float, key: Key, radius: float) -> Steps[Lines]:
    """Second differences along two Gaussian directions."""
    return (yield from differences(x, "gaussian", key, 2, radius, central=True, f_x=f_x))


def effective_rank(curvatures: Values) -> float:
    """(tr A)^2 / |A|_F^2, 2 mean^2 / variance of u'Au for Gaussian u; for signs u, off the diagonal.

    0 where curvature is negative, or too little is known of it.
    """
    c = curvatures
    if not (c.size > 2 and float(c.min()) > 0 and float(c.max()) < math.inf):
        return 0.0
    c = c / float(c.max())
    return 2 / max(float(np.var(c / c.mean(), ddof=1)), 1e-12)


def _exact(x: Vector, f_x: float, seen: Lines, radius: float) -> Steps[bool]:
    """Whether f is smooth where two pairs have seen curvature: 2 values, close enough to see noise, and rounding.

    The second difference should be some 600 round-offs and is let be off by a tenth of that, as curvature varies, and
    by 100, the round-off of a long sum; values that coincide because they are rounded are off by all of it.
    """
    c = seen.curvatures
    if c.size < 2 or not visible(Resolution(), f_x) <= radius**2 * float(np.abs(c).max()) < math.inf:
        return False
    i = int(np.argmax(np.abs(c)))
    return (yield from smooth_along(x, f_x, CLOSE * Resolution().at(f_x), seen.directions[i], float(c[i]), slack=0.1))


class Scales(NamedTuple):
    """What a method has to know before its first step: f(x) and its resolution, tr A, L, the radii allowed."""

    f_x: float
    resolution: Resolution
    trace: float
    smoothness: float
    reach: Reach


class Measured:
    """For states with `scales`: what drivers may ask of any state, its noise level (nan before it is known)."""

    scales: Scales | None

    @property
    def noise(self) -> float:
        return math.nan if self.scales is None else self.scales.resolution.noise


def start_value(x: Vector) -> Steps[float]:
    """f(x) where a method starts, asked for so often that `minimize` ends a run that only fails before."""
    f_x = yield from insisted_value(x, tries=INSISTENT)
    if math.isnan(f_x):
        raise ValueError(f"f must have a value at the point where a method starts; it failed there {INSISTENT} times.")
    return f_x


def measure(
    x: Vector,
    key: Key,
    *,
    noise: float | str,
    trace: float | None = None,
    smoothness: float | None = None,
    known: Scales | None = None,
    pairs: int = 16,
    f_x: float = math.nan,
) -> Steps[Scales]:
    """Measure what is not given: f(x), the noise level ("auto", 8 values) and the curvature (2 values a pair).

    With two pairs, and no curvature given, these come first, and 2 values more tell whether the 8 are called for.

    `known` are the scales of an earlier point: its resolution is kept, its trace gives the first radius, its curvature
    counts half (so that half as many values do), and it is returned as it is when there is no value at x.  `f_x` is
    asked for where it is nan.
    """
    first = None
    if math.isnan(f_x):
        f_x = yield from (start_value(x) if known is None else insisted_value(x, tries=5))
    if math.isnan(f_x) and known is not None:
        return known
    if known is not None:
        resolution = known.resolution
    elif isinstance(noise, str):
        exact, radius = False, Reach.of(x).clip(NEAR * scale_of(x))
        if pairs == 2 and trace is None and smoothness is None:
            first = yield from _two_pairs(x, f_x, (*key, 1, 0, 0), radius)
            exact = yield from _exact(x, f_x, first, radius)
        resolution = Resolution() if exact else (yield from noise_level(x, f_x, (*key, 0)))
    else:
        resolution = Resolution(noise)
    if trace is None or smoothness is None:
        if known is None:
            found = yield from curvature(x, f_x, resolution, (*key, 1), pairs=pairs, seen=first)
        else:
            radius = math.sqrt(visible(resolution, f_x) / known.trace)
            seen = yield from curvature(x, f_x, resolution, (*key, 1), pairs=8, radius=radius)
            found = Curvature((known.trace + seen.trace) / 2, (known.smoothness + seen.smoothness) / 2)
        trace = found.trace if trace is None else trace
        smoothness = found.smoothness if smoothness is None else smoothness
    return Scales(f_x, resolution, trace, smoothness, Reach.of(x))


def slopes(
    x: Vector,
    law: str,
    key: Key,
    batch: int,
    scales: Scales,
    *,
    f_last: float,
    f_x: float = math.nan,
    radius: float | None = None,
    difference: str = "auto",
    corrected: bool = True,
) -> Steps[Lines]:
    """Slopes at x along a batch of directions, with the radius and the difference that the scales call for.

    `f_last` is the size of values hereabouts, `f_x` the value at x if known; `radius` and `difference` ("forward",
    "central") overrule the scales.  `corrected` takes the expected curvature off forward slopes.
    """
    central = difference == "central" or (difference == "auto" and scales.resolution.noise > 0)
    if radius is None:
        rule = central_radius if central else forward_radius
        radius = scales.reach.clip(rule(scales.resolution.at(f_last), scales.trace))
    found = yield from differences(
        x,
        law,
        key,
        batch,
        radius,
        central=central,
        f_x=math.nan if central else f_x,
        correction=scales.trace if corrected else 0.0,
    )
    return found
