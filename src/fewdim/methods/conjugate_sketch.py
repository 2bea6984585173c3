"""Conjugate sketch: conjugate gradients on a gradient that is only sketched."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from fewdim.core import Cost, Query, Steps, Values
from fewdim.directions import Along, Key, Vector, accumulate, perturb
from fewdim.lines import Move, differences, forward_radius, insisted, search, value_at, visible
from fewdim.methods.settings import check_choice, check_count, check_level, check_noise
from fewdim.scales import Measured, Scales, measure

GUARD = 0.7  # of the plain step's decrease: less, and the memory is emptied
FRESH_ERROR = 1e-7  # conjugacy error of an empty memory
LARGE_ERROR = 1e-3  # above this the memory is made conjugate again by a second pass
CLEAR = 20  # times the error of a forward slope: below, differences are central
ORTHOGONAL = 1024  # most coordinates of directions that are made orthogonal
KEPT = 4  # latest members of a full memory that are never dropped
PATIENCE = 9  # steps in a row without a decrease, after which nothing is left to find


class Sketch(NamedTuple):
    """p = -(1/m) sum D_j u_j, the slope g'p = -(1/m) sum D_j^2 that comes with it, and the trace seen on the way."""

    p: Vector
    slope: float
    trace: float
    rank: float


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
    error: float = FRESH_ERROR  # estimate of how far from conjugate the memory is
    decrease: float = math.nan  # of the last step
    rms: float = math.inf  # root mean square of the last slopes
    rank: float = math.nan  # effective rank of the off-diagonal Hessian, from the first sketch; 0 if it is not positive
    fails: int = 0
    sketch: Sketch | None = None  # the first one, before the first step

    @property
    def clear(self) -> bool:
        """Whether the last slopes stood out from the error of values."""
        if self.scales is None:
            return False
        return self.rms >= CLEAR * math.sqrt(self.scales.resolution.at(self.f_x) * self.scales.trace)


@dataclass(frozen=True)
class ConjugateSketch:
    r"""Sketch the gradient from a few directions, make the step conjugate to past steps, and search along it.

    .. math:: p = -\frac1m \sum_j D_j u_j, \quad e = t p - S'S(g + t A p), \quad x^+ = x + a e, \quad
              S^+ = S \cup \{e / |e|_A\}

    where the rows of S are past steps with S A S' = I.  The numbers S(g + tAp) are measured, one value each, at the
    predictor x + tp: block BFGS whose secants are measured and never stored.

    ============  ======  ==============  ================================================================
    setting       symbol  default         source
    ============  ======  ==============  ================================================================
    memory        n       256             most vectors of S; 0 for none
    memory_limit          2**31           most bytes of S: fewer vectors where they are long
    sketch        m       "auto"          "auto": max(least, 2 |S|), at most d; or a number
    least                 8               fewest directions of a sketch; a pool makes it its width
    directions    u       "orthogonal"    at right angles, which d > 1024 makes too dear: "signs" there; or "signs",
                                          "gaussian", "sphere"; the axes when m = d
    noise         delta   "auto"          level of the noise of f; 0 is exact; "auto" spends about 8 values
    ============  ======  ==============  ================================================================

    **Cost.** m + |S| + 4 or so values a step, in queries of width m and |S|; |S| + 3 vectors beyond x.

    **Guarantee.** On a convex quadratic with exact differences:
    *conjugacy*: if S A S' = I and Sg = 0 then S A e = 0, and after an exact search S+ g+ = 0, so x+ minimises f over
    x + span S+, and the minimum is reached after at most d steps, for any m;
    *m = d* gives conjugate gradients, m = 1 without memory random pursuit;
    *decrease*: E[f - f+] >= |g|^2 / (2 [(1 + 1/m) lmax(B) + tr(B)/m]) with the residual Hessian B = A - A S'S A: the
    memory replaces tr A and L by those of what it has not seen yet;
    *guard*: for any memory, however stale, a step keeps 0.7 of the decrease of the plain step -(slope/curvature) p, so
    the ED_1/mu rate of random gradient holds up to a constant.  The best value never rises.

    **Departures.** Not in the paper.  Off quadratics only the monotone decrease is proved.

    >>> import numpy as np
    >>> from fewdim import minimize
    >>> result = minimize(lambda x: x @ x, np.ones(50), method=ConjugateSketch(), maxfev=2000, rng=0)
    >>> result.fun < 1e-9
    True

    References
    ----------
    Gao, Goldfarb. Block BFGS methods. SIAM J. Optim. 28, 2018 (the update that the step amounts to).
    """

    memory: int = 256
    memory_limit: int = 2**31
    sketch: int | Literal["auto"] = "auto"
    least: int = 8
    directions: str = "orthogonal"
    noise: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_level(self, memory=self.memory)
        check_count(self, memory_limit=self.memory_limit, least=self.least)
        if self.sketch != "auto":
            check_count(self, sketch=self.sketch)
        check_choice(self, ["orthogonal", "signs", "gaussian", "sphere"], directions=self.directions)
        check_noise(self, self.noise)

    @property
    def cost(self) -> Cost:
        return Cost(fewest=2, most=6 * self.memory + 2 * self.least + 14, vectors=self.memory + 3)

    def fit(self, width: int) -> ConjugateSketch:
        """The same method with sketches that keep `width` workers busy."""
        return replace(self, least=max(self.least, width))

    def start(self, x: Vector, key: Key) -> ConjugateSketchState:
        return ConjugateSketchState(x, key)

    def done(self, state: ConjugateSketchState) -> bool:
        return state.fails >= PATIENCE

    def step(self, state: ConjugateSketchState) -> Steps[ConjugateSketchState]:
        s = state
        if s.scales is None:
            found = yield from measure(s.x, (*s.key, s.k, 0), noise=self.noise, pairs=2)
            s = replace(s, scales=found, f_x=found.f_x)
        scales, sketch = s.scales, s.sketch
        assert scales is not None
        if sketch is None:
            sketch = yield from self._sketch(s, scales)
            if math.isnan(s.rank) and sketch is not None and not math.isnan(sketch.rank):
                return replace(s, k=s.k + 1, sketch=sketch, rank=sketch.rank)  # a look at f, and no step yet
        if sketch is None or not sketch.slope < 0:
            return _failed(replace(s, k=s.k + 1), s.t)
        rms = math.sqrt(-sketch.slope)
        s = replace(s, k=s.k + 1, rms=rms, sketch=None, scales=scales._replace(trace=sketch.trace))
        t, f_t, curvature = yield from _predictor(s, sketch)
        if not curvature > 0:  # underflow: nothing is left to see
            return _failed(s, t)
        t_plain = -sketch.slope / curvature
        e = np.multiply(sketch.p, sketch.p.dtype.type(t))
        f_e = f_t
        if s.memory:
            e = yield from _conjugated(s, e, f_t, t * math.sqrt(curvature / len(s.memory)), scales)
            f_e = yield from value_at(s.x, 1.0, e)
        move = yield from search(s.x, s.f_x, e, f_e, t * sketch.slope)
        if s.memory and not s.f_x - move.f_a >= GUARD * 0.5 * -sketch.slope * t_plain:
            s = replace(s, memory=(), sizes=(), error=FRESH_ERROR)
            f_plain = yield from value_at(s.x, t_plain, sketch.p)
            if f_plain < move.f_a:
                plain = np.multiply(sketch.p, sketch.p.dtype.type(t_plain))
                move, t = Move(plain, 1.0, f_plain, curvature * t_plain**2), t_plain
        if not move.f_a < s.f_x:
            return _failed(s, t, expected=-sketch.slope * t_plain)
        ratio = math.sqrt(curvature * t * t / move.curvature) if move.curvature > 0 else 1.0
        after = replace(
            s,
            x=perturb(s.x, move.a, move.e),
            f_x=move.f_a,
            decrease=s.f_x - move.f_a,
            fails=0,
            t=move.a * t,
            error=s.error * max(ratio, 1.05),
        )
        return (yield from self._remembered(after, move, scales))

    def _sketch(self, s: ConjugateSketchState, scales: Scales) -> Steps[Sketch | None]:
        """The gradient along m directions: forward, or central once the slopes come near the round-off of values."""
        d, delta, trace = s.x.size, scales.resolution.at(s.f_x), scales.trace
        m = min(d, max(self.least, 2 * len(s.memory))) if self.sketch == "auto" else min(d, self.sketch)
        law = "signs" if self.directions == "orthogonal" and d > ORTHOGONAL else self.directions
        law = "axes" if m == d else law
        radius = forward_radius(delta, trace)
        first = math.isnan(s.rank) and self.sketch == "auto" and m < d
        central = first or scales.resolution.noise > 0 or not s.clear
        if central and not math.isnan(s.decrease):
            radius = max(0.5 * math.sqrt(2 * s.decrease / trace), radius)
        elif first:  # as far as it takes to see curvature, along signs, for which u'Au varies off the diagonal only
            radius, law = math.sqrt(visible(scales.resolution, s.f_x) / trace), "signs"
        radius = scales.reach.clip(radius)
        found = yield from differences(
            s.x, law, (*s.key, s.k, 1), m, radius, central=central, f_x=s.f_x, correction=trace
        )
        if not found.directions:
            return None
        n = len(found.directions)
        if central and float(found.curvatures.sum()) > 0:
            trace = 0.5 * trace + 0.5 * float(found.curvatures.mean())
        rank = _rank(found.curvatures) if first else s.rank
        p = accumulate(np.zeros_like(s.x), found.slopes / -n, found.directions)
        return Sketch(p, -float(found.slopes @ found.slopes) / n, trace, rank)

    def _remembered(self, s: ConjugateSketchState, move: Move, scales: Scales) -> Steps[ConjugateSketchState]:
        """Put the step into the memory, after a second pass over it when it has drifted from conjugacy."""
        e, curvature, error = move.e, move.curvature, s.error
        if s.memory:
            if error > LARGE_ERROR or not 0.3 < move.a < 1.8 or curvature <= 0:
                s, c = yield from _second_pass(s, scales)
                e = accumulate(e, [-c_i / move.a for c_i in c], s.memory)
                curvature = max(curvature - sum(c_i * c_i for c_i in c) / move.a**2, 0.05 * curvature)
                error = min(error * error, LARGE_ERROR)
        else:
            error = FRESH_ERROR
        s = replace(s, error=error)
        if not curvature > 0 or self.memory == 0:
            return s
        member = np.multiply(e, e.dtype.type(1 / math.sqrt(curvature)))
        size = float(member @ member)
        if not 0 < size < math.inf:
            return s
        memory, sizes = [*s.memory, member], [*s.sizes, size]
        if len(memory) > min(self.memory, max(KEPT + 1, self.memory_limit // s.x.nbytes)):
            i = int(np.argmax(sizes[:-KEPT]))  # the least curvature, but none of the latest
            del memory[i], sizes[i]
        return replace(s, memory=tuple(memory), sizes=tuple(sizes))


def _rank(curvatures: Values) -> float:
    """(tr A)^2 / |A|_F^2 off the diagonal, 2 mean^2 / variance of u'Au for signs u; 0 where curvature is negative."""
    mean, c = float(curvatures.mean()), curvatures
    if not (c.size > 2 and mean > 0 and float(c.min()) > 0):
        return 0.0
    return 2 / max(float(np.var(c / mean, ddof=1)), 1e-12)


def _predictor(s: ConjugateSketchState, sketch: Sketch) -> Steps[tuple[float, float, float]]:
    """A point x + t p where f is lower or the parabola opens upwards: t, its value and the curvature p'Ap."""
    p, slope = sketch.p, sketch.slope
    m = max(8, 2 * len(s.memory))
    known = not math.isnan(s.t)
    t = s.t if known else 1 / (1.5 * sketch.trace / m + sketch.trace / 3)
    f_t = yield from value_at(s.x, t, p)
    for _ in range(6):
        curvature = 2 * (f_t - s.f_x - t * slope) / t**2
        if f_t < s.f_x or (f_t < math.inf and curvature > 0):
            break
        t /= 8
        f_t = yield from value_at(s.x, t, p)
    curvature = 2 * (f_t - s.f_x - t * slope) / t**2
    if not 0 < curvature < math.inf:
        return t, f_t, -slope / (4 * t)  # concave: pretend that the minimiser is 4 t away
    if not known and not 0.2 < t * curvature / -slope < 2:
        t = -slope / curvature
        f_t = yield from value_at(s.x, t, p)
        if f_t < math.inf:
            curvature = max(2 * (f_t - s.f_x - t * slope) / t**2, 0.1 * curvature)
    return t, f_t, curvature


def _slopes_of_memory(
    origin: Vector, f_origin: float, s: ConjugateSketchState, radius: float, scales: Scales
) -> Steps[list[float]]:
    """s_i'g at the origin for every member, one value each; its curvature is 1, so half the radius is taken off."""
    r = max(radius, 4 * math.sqrt(scales.resolution.at(s.f_x)))
    values = yield from insisted(Query(origin, tuple(Along(r, v) for v in s.memory)))
    return [(f - f_origin) / r - 0.5 * r if f == f else 0.0 for f in values.tolist()]


def _conjugated(s: ConjugateSketchState, e: Vector, f_t: float, radius: float, scales: Scales) -> Steps[Vector]:
    """E less the Newton step of span S at the predictor: what makes it conjugate to the memory."""
    if f_t == math.inf:
        return e
    c = yield from _slopes_of_memory(s.x + e, f_t, s, radius, scales)
    return accumulate(e, [-c_i for c_i in c], s.memory)


def _second_pass(s: ConjugateSketchState, scales: Scales) -> Steps[tuple[ConjugateSketchState, list[float]]]:
    """A Newton step in span S from x, kept if it lowers f; the coefficients used (zeros if not)."""
    c = yield from _slopes_of_memory(s.x, s.f_x, s, math.sqrt(2 * s.decrease / len(s.memory)), scales)
    y = accumulate(s.x, [-c_i for c_i in c], s.memory)
    f_y = float((yield from insisted(Query(y), tries=2))[0])
    if not f_y < s.f_x:
        return s, [0.0] * len(c)
    return replace(s, x=y, f_x=f_y, decrease=s.decrease + s.f_x - f_y), c


def renewed(s: ConjugateSketchState) -> Steps[ConjugateSketchState]:
    """The state after another method has moved x: a Newton step in the span of the memory, |S| + 1 values."""
    if s.memory and s.scales is not None:
        s, _ = yield from _second_pass(s, s.scales)
    return s


def _failed(s: ConjugateSketchState, t: float, expected: float = math.nan) -> ConjugateSketchState:
    """After a step without a decrease: shorter, then from scratch, then with a larger trace."""
    fails = s.fails + 1
    decrease = expected if math.isnan(s.decrease) else s.decrease
    s = replace(s, fails=fails, t=0.3 * t if fails == 1 else math.nan, decrease=decrease)
    if fails > 1:
        s = replace(s, memory=(), sizes=(), error=FRESH_ERROR)
    if fails > 2 and s.scales is not None:
        s = replace(s, scales=s.scales._replace(trace=3 * s.scales.trace))
    return s
