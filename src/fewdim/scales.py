"""Measuring the scales of f at a point: how noisy its values are, how large its curvature is.

Every value spent here is asked through queries like any other, and counted like any other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fewdim.core import Query, Steps, Values, value
from fewdim.directions import Direction, Key, Vector, signs
from fewdim.lines import (
    ROUND_OFF,
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

UNROUND = 1.3719  # steps that no decimal rounding of f can fall in step with
GENUINE = 1e-12
"""Above this fraction of |f| a measured noise level is taken for noise, below for round-off that scales with |f|."""


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
) -> Steps[Curvature]:
    """Tr A and a bound on L from second differences along `pairs` directions: 2 values each, 4 more a radius tried.

    The directions are Gaussian whatever the method's own: E u'Au = tr A and Var u'Au = 2 |A|_F^2, where L <= |A|_F <=
    sqrt(L tr A).  (For signs the variance has no diagonal part; it vanishes when the axes are the eigenvectors.)
    """
    reach, least = Reach.of(x), visible(resolution, f_x)
    radius = reach.clip(1e-3 * scale_of(x) if math.isnan(radius) else radius)
    for attempt in range(16):
        first = yield from differences(x, "gaussian", (*key, 0, attempt), 2, radius, central=True, f_x=f_x)
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
    floor = resolution.at(f_x) / radius**2
    largest = max(float(np.abs(c).max()), floor)  # squares of c alone may overflow
    blur = resolution.noise / radius**2  # f(x) is common to all and does not make them differ
    variance = float(np.var(c / largest, ddof=1)) * largest if c.size > 1 else 2 * largest
    spread = math.sqrt(max(variance - 2 * (blur / largest) * blur, 0.0) / 2) * math.sqrt(largest)
    return Curvature(max(float(np.mean(np.abs(c))), floor), max(spread, floor))


def effective_rank(curvatures: Values) -> float:
    """(tr A)^2 / |A|_F^2, 2 mean^2 / variance of u'Au for Gaussian u; for signs u, off the diagonal.

    0 where curvature is negative, or too little is known of it.
    """
    c = curvatures
    if not (c.size > 2 and float(c.min()) > 0 and float(c.max()) < math.inf):
        return 0.0
    c = c / float(c.max())
    return 2 / max(float(np.var(c / c.mean(), ddof=1)), 1e-12)


def difference_level(values: Values) -> tuple[float, bool]:
    """The noise level of equally spaced values, from their difference table, and whether the table agrees on one.

    The k-th differences of independent errors of variance v have variance v (2k)! / (k!)^2, while those of a smooth
    function fade.  The level is that of the first order from which three in a row agree within a factor of 4 and whose
    differences change sign (More and Wild, SIAM J. Sci. Comput. 33, 2011).
    """
    levels, changes = [], []
    size = math.ldexp(0.5, math.frexp(float(np.abs(values).max()))[1])  # a power of 2, which rounds nothing
    values = values / size
    for k in range(1, values.size):
        values = np.diff(values)
        levels.append(math.sqrt(float(np.mean(values**2)) / math.comb(2 * k, k)) * size)
        changes.append(values.min() < 0 < values.max())
    for k in range(len(levels) - 2):
        if changes[k] and max(levels[k : k + 3]) <= 4 * min(levels[k : k + 3]):
            return levels[k], True
    return levels[-1], False


def rounding(values: Values) -> float:
    """The spacing of single precision, or of numbers of so many digits, if all values are such numbers; else 0."""
    size = float(np.abs(values).max())
    if not 0 < size < 3e38:
        return 0.0
    if (values == values.astype(np.float32)).all():
        return float(np.spacing(np.float32(size)))
    for digits in range(1, 13):
        if all(v == float(f"{v:.{digits - 1}e}") for v in values.tolist()):
            return float(10.0 ** (math.floor(math.log10(size)) + 1 - digits))
    return 0.0


def noise_level(x: Vector, f_x: float, key: Key) -> Steps[Resolution]:
    """Estimate how noisy values are around x: 8 values on a random line, 8 more each time the spacing was wrong."""
    u = signs(key)
    spacing = UNROUND * max(1e-7, 1e3 * float(np.finfo(x.dtype).eps)) * scale_of(x)
    widest = Reach.of(x).high / 4
    flat = rough = 0.0
    level, reliable, size = 0.0, False, abs(f_x)
    for _ in range(6):
        offsets = tuple(i * spacing * u for i in (-4, -3, -2, -1, 1, 2, 3, 4))
        told = yield Query(x, offsets)
        table = np.concatenate([told[:4], [f_x], told[4:]])
        lost = np.flatnonzero(np.isnan(told))
        if 0 < lost.size <= 4:  # values that fail at random deserve a second try
            table[lost + (lost >= 4)] = yield Query(x, tuple(offsets[i] for i in lost))
        if np.isnan(table).any():
            spacing /= 10
            continue
        size = float(np.abs(table).max())
        level, reliable = difference_level(table)
        sides = max(difference_level(table[:4])[0], difference_level(table[5:])[0])
        if sides < 0.01 * level:  # smooth on either side of x
            left, right = 2 * table[3] - table[2], 2 * table[5] - table[6]
            middle = 0.5 * float(left + right)
            if abs(left - right) <= 0.5 * abs(f_x - middle):  # and f(x) is beside: an error that a query shares
                seen = [f_x, middle]
                for _ in range(3):
                    seen += [(yield from value(x))]
                return Resolution(float(np.nanstd(seen, ddof=1)), ROUND_OFF, shared=True)
            level = sides  # a jump at x
        jumps = np.diff(np.unique(table))
        repeated = min(np.unique(table[:5]).size, np.unique(table[4:]).size) < 5  # on a side: f may be symmetric
        if 0 < jumps.size < 5 and repeated:  # values are rounded, and the error of rounding is uniform
            level, reliable = 0.3 * float(jumps.min()), True
        unit = rounding(table)
        if jumps.size and 0.3 * unit > (level if reliable else 0.0):
            level, reliable = 0.3 * unit, True
        if reliable and jumps.size:
            break
        reliable = False
        if not jumps.size:  # no difference at all: look wider, but stay at the scale of x
            if spacing >= widest:
                return Resolution()
            flat = spacing
        else:  # f itself varies too much over the table: look closer
            rough = spacing
        spacing = min(math.sqrt(flat * rough) if flat and rough else spacing * (100 if flat else 0.01), widest)
    if not reliable:
        level = min(level, 1e-14 * size)
    if level > GENUINE * size:
        return Resolution(level, ROUND_OFF)
    return Resolution(0.0, max(ROUND_OFF, level / size if size else 0.0))


def noise_here(x: Vector, f_x: float, key: Key) -> Steps[Resolution]:
    """`noise_level` at a point chosen for its low value f_x, which in noise was a lucky one and is measured afresh."""
    again = yield from value(x)
    return (yield from noise_level(x, f_x if math.isnan(again) else again, key))


def smooth_along(x: Vector, f_x: float, spread: float, u: Direction, bend: float) -> Steps[bool]:
    """Whether a second difference along u, 2 values, is what a curvature of about `bend` makes: there is no noise then.

    Nor may the values be rounded.  The radius is where curvature should change f by 1e-9 of how much values differ
    hereabouts.
    """
    if not bend * spread > 0:
        return False
    radius = Reach.of(x).clip(UNROUND * math.sqrt(1e-9 * spread / bend))
    one, two = yield Query(x, (radius * u, 2 * radius * u))
    if math.isnan(one + two) or rounding(np.array([one, two])) > 0:
        return False
    expected = bend * radius**2
    return bool(abs(two - 2 * one + f_x - expected) <= 30 * expected + 100 * ROUND_OFF * max(abs(f_x), abs(two)))


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


def start_value(x: Vector, tries: int = 2) -> Steps[float]:
    """f(x) where a method starts: what fails at random deserves more tries, and without a value there is no start."""
    f_x = yield from insisted_value(x, tries)
    if math.isnan(f_x):
        raise ValueError(f"f must have a value at the point where a method starts; it failed there {tries} times.")
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
) -> Steps[Scales]:
    """Measure what is not given: f(x), the noise level ("auto", 8 values) and the curvature (2 values a pair).

    `known` are the scales of an earlier point: its resolution is kept, its trace gives the first radius, its curvature
    counts half (so that half as many values do), and it is returned as it is when there is no value at x.
    """
    f_x = yield from (start_value(x, tries=5) if known is None else insisted_value(x, tries=5))
    if math.isnan(f_x) and known is not None:
        return known
    if known is not None:
        resolution = known.resolution
    elif isinstance(noise, str):
        resolution = yield from noise_level(x, f_x, (*key, 0))
    else:
        resolution = Resolution(noise)
    if trace is None or smoothness is None:
        if known is None:
            found = yield from curvature(x, f_x, resolution, (*key, 1), pairs=pairs)
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
