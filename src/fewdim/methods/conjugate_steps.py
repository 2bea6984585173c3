"""The parts of a step of `ConjugateSketch`: state, predictor, correction by the memory, what a failure does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewdim.core import Query, Steps, evolve
from fewdim.directions import Along, Key, Vector, accumulate, inner
from fewdim.lines import insisted, insisted_value, value_at
from fewdim.scales import Measured, Scales

FRESH_ERROR = 1e-7  # conjugacy error of an empty memory
EACH = 3  # directions of a sketch for each member of the memory
BALANCE = 2.0  # times what directions are best by the rank of f: the memory makes a step better than that foresees
BROAD = 16  # directions that matter, the axes included: with fewer it may be a few axes, and wide sketches do not pay
SURE = 0.7  # of d: an effective rank off the diagonal that leaves no few directions to find, but maybe a few axes
LEFT = 0.01  # of the curvature along p: if the memory leaves less, what it leaves is not known
AGREED = 0.1  # of a curvature that was foreseen
WRONG = 0.3  # of the decrease of a step: a second pass that promised more and brings nothing shows a wrong memory
ANEW = 16  # steps, and each time they have doubled: the rank is looked at again where f has turned out to change
CLEAR = 4  # times the error of a forward slope: below, differences are central


class Sketch(NamedTuple):
    """p = -(1/m) sum D_j u_j, the slope g'p = -(1/m) sum D_j^2 that comes with it, and what was seen on the way."""

    p: Vector
    slope: float
    trace: float
    rank: float
    breadth: float


@dataclass(frozen=True)
class ConjugateSketchState(Measured):
    """Between two steps of `ConjugateSketch`; successive states share the vectors of the memory."""

    x: Vector
    key: Key
    k: int = 0
    f_x: float = math.nan
    scales: Scales | None = None
    memory: tuple[Vector, ...] = ()  # past steps, conjugate and of unit curvature: s_i'A s_j = 1 if i = j, else 0
    sizes: tuple[float, ...] = ()  # their squared lengths
    t: float = math.nan  # how far along the sketched gradient the last step went
    error: float = FRESH_ERROR  # how far from conjugate the memory is, estimated: the root mean square of its members
    decrease: float = math.nan  # of the last step
    rms: float = math.inf  # root mean square of the last slopes
    rank: float = math.nan  # effective rank of the off-diagonal Hessian, when last looked at; 0 if it is not positive
    breadth: float = math.nan  # with the diagonal, from a later sketch; not asked for where the rank is low
    fails: int = 0
    sketch: Sketch | None = None  # at x, where it has been made already
    agreed: bool = False  # whether the last step was as long as foreseen

    @property
    def looks_again(self) -> bool:
        """Whether the first look at the rank asks for the second one at once, since no few directions matter."""
        return self.k == 1 and self.rank >= max(BROAD, SURE * self.x.size) and math.isnan(self.breadth)

    def looks_anew(self, most: int) -> bool:
        """Whether to look at the rank where the run has come to, now and then where f is not like a quadratic.

        There the last step was not as long as foreseen, or a memory of at most so many has been emptied.
        """
        quadratic = self.agreed and len(self.memory) >= min(self.k // 2, most)
        return self.k >= ANEW and self.k & (self.k - 1) == 0 and not quadratic

    @property
    def clear(self) -> bool:
        """Whether the last slopes stood out from the error of values: then forward differences will do."""
        if self.scales is None:
            return False
        return self.rms >= CLEAR * math.sqrt(self.scales.resolution.at(self.f_x) * self.scales.trace)


def sketch_size(s: ConjugateSketchState, least: int, memory: int) -> int:
    """How many directions the next sketch is to have.

    A step costs m + n + 2 values and lowers f in proportion to 1 / (lmax(B) + tr(B)/m): that is best for m^2 = (n + 2)
    tr(B) / lmax(B), where the effective rank of A stands for the quotient.
    """
    n, breadth = len(s.memory), min(s.breadth, s.x.size) if s.breadth > 0 else 0.0  # nan before it is known
    return max(least, EACH * n, min(int(BALANCE * math.sqrt((n + 2) * breadth)), EACH * memory))


def alone(x: Vector) -> Steps[tuple[float, Sketch | None]]:
    """f(x), and no sketch."""
    return (yield from insisted_value(x, tries=3)), None


class Predictor(NamedTuple):
    """A point x + t p where f is lower or the parabola opens upwards, its value, p'Ap, and s_i'g there if known."""

    t: float
    f_t: float
    curvature: float
    slopes: list[float] | None = None


def predictor(s: ConjugateSketchState, sketch: Sketch) -> Steps[Predictor]:
    """The predictor, one value after another."""
    p, slope = sketch.p, sketch.slope
    m = max(8, EACH * len(s.memory))
    known = not math.isnan(s.t)
    t = s.t if known else 1 / (1.5 * sketch.trace / m + sketch.trace / 3)
    if not known and s.scales is not None:  # without curvature, no farther than x is large
        length = math.sqrt(inner(p, p))
        t = min(t, 1e6 * s.scales.reach.high / length) if length > 0 else math.inf
    if not 1e-150 < t < 1e150:  # its square would vanish or overflow: f has no bottom, or no curvature
        return Predictor(t, (yield from value_at(s.x, 0.0, p)), 0.0)  # a step must ask, and no other point is safe
    f_t = yield from value_at(s.x, t, p)
    for _ in range(6):
        curvature = 2 * (f_t - s.f_x - t * slope) / t**2
        if f_t < s.f_x or (f_t < math.inf and curvature > 0):
            break
        t /= 8
        f_t = yield from value_at(s.x, t, p)
    curvature = 2 * (f_t - s.f_x - t * slope) / t**2
    if not 0 < curvature < math.inf:
        return Predictor(t, f_t, -slope / (4 * t))  # concave: pretend that the minimiser is 4 t away
    if not known and not 0.2 < t * curvature / -slope < 2:
        t = -slope / curvature
        f_t = yield from value_at(s.x, t, p)
        if f_t < math.inf:
            curvature = max(2 * (f_t - s.f_x - t * slope) / t**2, 0.1 * curvature)
    return Predictor(t, f_t, curvature)


def foreseen(s: ConjugateSketchState, sketch: Sketch) -> Steps[Predictor]:
    """The predictor with the slopes of the memory there in one query, in the hope that the last t will do again."""
    if s.memory and not math.isnan(s.t):
        y = s.x + np.multiply(sketch.p, sketch.p.dtype.type(s.t))
        r = memory_radius(s, math.sqrt(2 * s.decrease / len(s.memory)))
        f_t, *values = (yield from insisted(Query(y, (None, *(Along(r, v) for v in s.memory))))).tolist()
        curvature = 2 * (f_t - s.f_x - s.t * sketch.slope) / s.t**2
        if 0 < curvature < math.inf:
            return Predictor(s.t, f_t, curvature, [slope(f, f_t, r) for f in values])
    return (yield from predictor(s, sketch))


def memory_radius(s: ConjugateSketchState, radius: float) -> float:
    """How far to go along members of the memory: far enough for a difference to be seen."""
    assert s.scales is not None
    return max(radius, 4 * math.sqrt(s.scales.resolution.at(s.f_x)))


def slope(f: float, f_origin: float, r: float) -> float:
    """The slope s'g from a value at distance r along a member s, whose curvature is 1; nan if there is none."""
    return (f - f_origin) / r - 0.5 * r


def slopes_of_memory(origin: Vector, f_origin: float, s: ConjugateSketchState, radius: float) -> Steps[list[float]]:
    """s_i'g at the origin for every member, one value each."""
    r = memory_radius(s, radius)
    values = yield from insisted(Query(origin, tuple(Along(r, v) for v in s.memory)))
    return [slope(f, f_origin, r) for f in values.tolist()]


class Course(NamedTuple):
    """A step e conjugate to the memory: how much of p is in it, the slope along it, and the curvature foreseen there.

    That is 0 where the memory leaves too little to tell and nan where slopes are missing.  Elsewhere e is as long as a
    quadratic f would have it, and `shrunk` is what t p was longer by before.
    """

    e: Vector
    t: float
    slope: float
    curvature: float = math.nan
    shrunk: float = math.inf

    def agrees(self, f_x: float, f_e: float) -> bool:
        """Whether f(x + e) is what a quadratic would have there."""
        bend = 2 * (f_e - f_x - self.slope)
        return self.curvature > 0 and abs(bend - self.curvature) <= AGREED * self.curvature


def conjugated(s: ConjugateSketchState, sketch: Sketch, seen: Predictor) -> Steps[Course]:
    """T p less the Newton step of span S at the predictor: what makes it conjugate to the memory."""
    t, f_t, curvature, slopes = seen
    p, number = sketch.p, sketch.p.dtype.type
    if not s.memory or f_t == math.inf:
        return Course(np.multiply(p, number(t)), t, t * sketch.slope)
    if slopes is None:
        y = s.x + np.multiply(p, number(t))
        slopes = yield from slopes_of_memory(y, f_t, s, t * math.sqrt(curvature / len(s.memory)))
    before = t * t * curvature
    after = before - sum(c * c for c in slopes)  # nan where a slope is missing
    known = after > LEFT * before
    a = -t * sketch.slope / after if known else 1.0
    e = accumulate(np.multiply(p, number(a * t)), [-a * c if c == c else 0.0 for c in slopes], s.memory)
    if not known:
        return Course(e, t, t * sketch.slope, 0.0 * after)
    return Course(e, a * t, a * t * sketch.slope, a * a * after, math.sqrt(before / after))


def second_pass(s: ConjugateSketchState) -> Steps[tuple[ConjugateSketchState, list[float]]]:
    """A Newton step in span S from x, kept if it lowers f; the coefficients used (zeros if not).

    Where it was to lower f much and does not, the memory is wrong about f, and emptied.
    """
    c = yield from slopes_of_memory(s.x, s.f_x, s, math.sqrt(2 * s.decrease / len(s.memory)))
    c = [c_i if c_i == c_i else 0.0 for c_i in c]
    y = accumulate(s.x, [-c_i for c_i in c], s.memory)
    f_y = yield from insisted_value(y, tries=2)
    if f_y < s.f_x:
        return evolve(s, x=y, f_x=f_y, decrease=s.decrease + s.f_x - f_y), c
    if sum(c_i * c_i for c_i in c) > 2 * WRONG * s.decrease:
        return evolve(s, memory=(), sizes=(), error=FRESH_ERROR), []
    return s, [0.0] * len(c)


def failed(s: ConjugateSketchState, t: float, expected: float = math.nan) -> ConjugateSketchState:
    """After a step without a decrease: shorter, then from scratch, then with a larger trace."""
    fails = s.fails + 1
    decrease = expected if math.isnan(s.decrease) else s.decrease
    s = evolve(s, fails=fails, t=0.3 * t if fails == 1 else math.nan, decrease=decrease, agreed=False)
    if fails > 1:
        s = evolve(s, memory=(), sizes=(), error=FRESH_ERROR)
    if fails > 2 and s.scales is not None:
        s = evolve(s, scales=s.scales._replace(trace=3 * s.scales.trace))
    return s
