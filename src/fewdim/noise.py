"""How noisy the values of f are around a point.

Every value spent here is asked through queries like any other, and counted like any other.
"""

from __future__ import annotations

import math

import numpy as np

from fewdim.core import Query, Steps, Values, value
from fewdim.directions import Along, Direction, Key, Vector, signs
from fewdim.lines import ROUND_OFF, Reach, Resolution, scale_of

SPREAD = 100  # of the middling coordinate: where x is larger than that as a whole, units differ
ZERO = 1e-14  # of the scale of x: a coordinate below is a rounded 0, and has no unit
LARGEST = 10_000  # dimensions up to which that is looked at
UNROUND = 1.3719  # steps that no decimal rounding of f can fall in step with
GENUINE = 1e-12
"""Above this fraction of |f| a measured noise level is taken for noise, below for round-off that scales with |f|."""


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
    u = _line(x, key)
    spacing = UNROUND * max(1e-7, 1e3 * float(np.finfo(x.dtype).eps)) * scale_of(x)
    widest = Reach.of(x).high / 4
    flat = rough = 0.0
    level, reliable, size = 0.0, False, abs(f_x)
    for _ in range(6):
        offsets = tuple(Along(i * spacing, u) for i in (-4, -3, -2, -1, 1, 2, 3, 4))
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


def _line(x: Vector, key: Key) -> Direction | Vector:
    """Random signs; where sizes of coordinates are worlds apart, each in proportion to its own, but for rounded zeros.

    What is little for the largest is much for the smallest, and f would jump along the line as if it were noisy.
    """
    u, sizes = signs(key), np.abs(x)
    told = sizes > ZERO * scale_of(x)
    if x.size > LARGEST or not told.any() or scale_of(x) < SPREAD * float(np.median(sizes[told])):
        return u
    return np.where(told, sizes / scale_of(x), 1.0).astype(x.dtype) * u.array(x.size).astype(x.dtype)


def noise_here(x: Vector, f_x: float, key: Key) -> Steps[Resolution]:
    """`noise_level` at a point chosen for its low value f_x, which in noise was a lucky one and is measured afresh."""
    again = yield from value(x)
    return (yield from noise_level(x, f_x if math.isnan(again) else again, key))


def smooth_along(x: Vector, f_x: float, change: float, u: Direction, bend: float, slack: float = 30) -> Steps[bool]:
    """Whether a second difference along u, 2 values, is what a curvature of about `bend` makes: there is no noise then.

    Nor may the values be rounded.  The radius is where curvature should make a difference of about `change`; `slack` is
    how many times that it may be off.
    """
    if not 0 < abs(bend) * change < math.inf:
        return False
    radius = Reach.of(x).clip(UNROUND * math.sqrt(change / abs(bend)))
    one, two = yield Query(x, (radius * u, 2 * radius * u))
    if math.isnan(one + two) or rounding(np.array([one, two])) > 0:
        return False
    expected, largest = bend * radius**2, max(abs(f_x), abs(two))
    return bool(abs(two - 2 * one + f_x - expected) <= slack * abs(expected) + 100 * ROUND_OFF * largest)
