"""What values tell about f along a line: slope, curvature, how far apart to look, and how noisy the values are.

With f(x + r u) = f + r s + r^2 c / 2 + ..., where s = u'g is the slope and c = u'Au the curvature along u:

    one new value      s = (f(x + r u) - f) / r - r c / 2        forward, with the expected curvature c = tr A taken off
    two new values     s = (f(x + r u) - f(x - r u)) / (2 r)     central: no curvature bias
    and f itself       c = (f(x + r u) + f(x - r u) - 2 f) / r^2

A value is good to `delta`: the noise of f, or its round-off.  The radius balances delta against what the difference
neglects; it follows from delta and the trace, and is clipped to stay above the spacing of floating-point numbers around
x and within the scale of x.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fewdim.core import Query, Steps, Values
from fewdim.directions import LAWS, Along, Direction, Key, Vector, axes, orthogonal

ROUND_OFF = float(np.finfo(np.float64).eps)


class Resolution(NamedTuple):
    """How far a value can be trusted: to an absolute noise level, and to a fraction of its own size."""

    noise: float = 0.0
    relative: float = ROUND_OFF
    shared: bool = False  # the points of a query have the same error

    def at(self, f_x: float) -> float:
        """The error of one value of size f_x: delta."""
        return max(self.noise, self.relative * abs(f_x), 1e-300)


class Lines(NamedTuple):
    """What was found along the directions whose values could be had; `curvatures` are nan where f(x) is not known."""

    directions: tuple[Any, ...]  # of Direction; of Vector where they were made orthogonal
    slopes: Values
    curvatures: Values
    f_x: float


# ------------------------------------------------------------------------------------------------------------- radius
def scale_of(x: Vector) -> float:
    """The root mean square of x, to the power of 2 below it; 1 at the origin (below 1e-100), where x tells nothing.

    A power of 2 does not depend on the order in which a machine sums the squares, so neither does any radius.
    """
    with np.errstate(over="ignore"):
        rms = float(np.linalg.norm(x)) / math.sqrt(x.size)
    return math.ldexp(0.5, math.frexp(rms)[1]) if 1e-100 < rms < math.inf else 1.0


class Reach(NamedTuple):
    """The radii that make sense around x: 16 spacings of floating-point numbers there, up to the scale of x (or 1)."""

    low: float
    high: float

    @classmethod
    def of(cls, x: Vector) -> Reach:
        scale = scale_of(x)
        return cls(16 * float(np.finfo(x.dtype).eps) * scale, max(1.0, scale))

    def clip(self, radius: float) -> float:
        return min(max(radius, self.low), self.high)


def forward_radius(delta: float, trace: float) -> float:
    """Where the noise of a corrected forward slope, delta / r, meets the spread of its curvature, r tr / 2."""
    return 1.3 * math.sqrt(delta / trace)


def central_radius(delta: float, trace: float) -> float:
    """Where curvature lifts the pair 30 delta above f: slopes good to sqrt(delta tr / 60), third order still small."""
    return math.sqrt(60 * delta / trace)


def visible(resolution: Resolution, f_x: float) -> float:
    """How large a second difference must be to be seen: 30 times the error of a value in noise, 10^4 in round-off."""
    delta = resolution.at(f_x)
    return (30 if resolution.noise == delta else 1e4) * delta


# -------------------------------------------------------------------------------------------------- slopes, curvatures
def differences(
    x: Vector,
    law: str,
    key: Key,
    count: int,
    radius: float,
    *,
    central: bool = False,
    f_x: float = math.nan,
    correction: float = 0.0,
) -> Steps[Lines]:
    """Slopes along the directions law((*key, 0)), law((*key, 1)), ... in one query.

    "axes" are the coordinates in turn, "orthogonal" random directions at right angles.

    Forward needs f(x) and asks for it with the rest when `f_x` is nan; `correction` is the curvature it takes off.
    Central gives curvatures too when `f_x` is known, and an estimate of it when not.  What is missing is asked once
    more, along fresh directions, unless nothing came at all: then x itself is at fault.
    """
    ask_origin = not central and math.isnan(f_x)
    fixed, make = law in ("axes", "orthogonal"), LAWS.get(law, axes)
    directions: list[Any] = [make((*key, j)) for j in range(count)]
    if law == "orthogonal":
        directions = list(orthogonal(key, count, x.size))
    f_x, plus, minus = yield from _sides(x, directions, radius, central, f_x, ask_origin)
    lost = [j for j in range(count) if math.isnan(plus[j] + minus[j])]
    seen = plus + minus if central else [f_x, *plus]
    ask_origin = ask_origin and math.isnan(f_x)
    if (lost or ask_origin) and not all(map(math.isnan, seen)):
        fresh = [directions[j] if fixed else make((*key, count + i)) for i, j in enumerate(lost)]
        f_x, *sides = yield from _sides(x, fresh, radius, central, f_x, ask_origin)
        for j, u, ahead, behind in zip(lost, fresh, *sides, strict=True):
            directions[j], plus[j], minus[j] = u, ahead, behind
    slopes, curvatures, kept = [], [], []
    for u, ahead, behind in zip(directions, plus, minus, strict=True):
        slope = (ahead - behind) / (2 * radius) if central else (ahead - f_x) / radius - 0.5 * radius * correction
        if not math.isnan(slope):
            kept.append(u)
            slopes.append(slope)
            curvatures.append((ahead + behind - 2 * f_x) / radius**2 if central else math.nan)
    if central and math.isnan(f_x):
        pairs = [(a + b) / 2 for a, b in zip(plus, minus, strict=True) if not math.isnan(a + b)]
        seen = pairs or [v for v in plus + minus if not math.isnan(v)]
        if seen:
            f_x = sum(seen) / len(seen) - 0.5 * radius**2 * correction
    return Lines(tuple(kept), np.array(slopes), np.array(curvatures), f_x)


def _sides(
    x: Vector, directions: list[Any], radius: float, central: bool, f_x: float, ask_origin: bool
) -> Steps[tuple[float, list[float], list[float]]]:
    """f(x) if asked for, f(x + r u) and, when central, f(x - r u) (else zeros); one query."""
    n = len(directions)
    offsets: list[Along | None] = [None] if ask_origin else []
    offsets += [Along(radius, u) for u in directions]
    if central:
        offsets += [Along(-radius, u) for u in directions]
    told = yield Query(x, tuple(offsets))
    values: list[float] = told.tolist()
    if ask_origin:
        f_x = values.pop(0)
    return f_x, values[:n], values[n:] if central else [0.0] * n


class Parabola(NamedTuple):
    """f along x + t u from f(x) and two points: slope and curvature at x, and the lower of the two points."""

    slope: float
    curvature: float
    t: float
    f_t: float


def parabola(x: Vector, f_x: float, u: Direction, radius: float) -> Steps[Parabola | None]:
    """The parabola through f(x - r u), f(x) and f(x + r u); a missing point is replaced by one half as far.

    None when that is missing too.
    """
    t = np.array([radius, -radius])
    f = yield Query(x, (radius * u, -radius * u))
    lost = np.flatnonzero(np.isnan(f))
    if lost.size:
        t[lost] /= 2
        f = f.copy()
        f[lost] = yield Query(x, tuple(float(t[i]) * u for i in lost))
        if np.isnan(f).any():
            return None
    chords = (f - f_x) / t
    c = 2 * float(chords[0] - chords[1]) / float(t[0] - t[1])
    low = int(np.argmin(f))
    return Parabola(float(chords[0]) - 0.5 * c * float(t[0]), c, float(t[low]), float(f[low]))


class Move(NamedTuple):
    """A step x + a e with its value, the curvature of f along e, and the length that may be better still, or nan."""

    e: Vector
    a: float
    f_a: float
    curvature: float
    better: float = math.nan


def insisted(query: Query, tries: int = 3) -> Steps[Values]:
    """The values of a query, the missing ones asked again: for points that no other can stand in for."""
    values = (yield query).copy()
    for _ in range(tries - 1):
        lost = np.flatnonzero(np.isnan(values))
        if lost.size:
            values[lost] = yield Query(query.origin, tuple(query.offsets[i] for i in lost))
    return values


def insisted_value(x: Vector, tries: int) -> Steps[float]:
    """f(x); nan when there is no value at the last of so many tries either."""
    return float((yield from insisted(Query(x), tries))[0])


def value_at(x: Vector, scale: float, v: Vector) -> Steps[float]:
    """f(x + scale v); inf when there is no value at the third try either, so that it is never chosen."""
    values = yield from insisted(Query(x, (Along(scale, v),)))
    return math.inf if math.isnan(values[0]) else float(values[0])


def search(x: Vector, f_x: float, e: Vector, f_e: float, slope: float) -> Steps[Move]:
    """The lowest of two to eight points x + a e: a = 1 (its value f_e is known), a length from the slope along e, and
    one from the parabola through both or, where that opens downwards, ever longer ones.
    """
    bend = 2 * (f_e - f_x - slope)
    b = min(max(-slope / bend, 0.05), 10.0) if bend > 0 else 8.0
    if abs(b - 1) < 0.05:
        b = 1.3
    f_b = yield from value_at(x, b, e)
    tried = [(f_e, 1.0), (f_b, b)]
    second = ((f_b - f_x) / b - (f_e - f_x)) / (b - 1) if max(f_b, f_e) < math.inf else -1.0
    first = f_e - f_x - second
    if second > 0 and first < 0:
        c = min(-first / (2 * second), 20.0)
        if abs(c - b) > 0.03 * b and abs(c - 1) > 0.03:
            tried.append(((yield from value_at(x, c, e)), c))
    elif f_b < f_e and b > 1:
        for j in range(1, 7):
            tried.append(((yield from value_at(x, b * 4**j, e)), b * 4**j))
            if not tried[-1][0] < tried[-2][0]:
                break
    f_a, a = min(tried)
    return Move(e, a, f_a, 2 * second)


def fan(x: Vector, f_x: float, e: Vector, count: int) -> Steps[Move]:
    """The lowest of `count` points x + a e asked at once: half of the lengths close to 1, the rest from 1/20 to 20.

    The minimiser of the parabola there is left to the caller to look at.
    """
    close, far = max(3, (count // 2 - 1) | 1), count // 4
    shorter, longer = np.geomspace(0.05, 0.5, far, False), np.geomspace(20, 1.5, max(1, count - close - far), False)
    lengths = np.concatenate([shorter, np.linspace(0.5, 1.5, close), longer[::-1]])
    values = yield from insisted(Query(x, tuple(Along(float(a), e) for a in lengths)))
    values = np.where(np.isnan(values), math.inf, values)
    i = int(np.argmin(values))
    near = [j for j in (i - 1, i + 1) if 0 <= j < lengths.size and values[j] < math.inf]
    if not near or values[i] == math.inf:
        return Move(e, float(lengths[i]), float(values[i]), -1.0)
    a, b = float(lengths[i]), float(lengths[near[-1]])
    f_a, chord = float(values[i]), (float(values[i]) - f_x) / a
    second = ((float(values[near[-1]]) - f_x) / b - chord) / (b - a)
    lowest = 0.5 * (a - chord / second) if second > 0 else a
    worth = 3e-3 * a < abs(lowest - a) < abs(b - a)
    return Move(e, a, f_a, 2 * second, lowest if worth else math.nan)
