"""Conjugate sketch: conjugate gradients on a gradient that is only sketched."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fewdim.core import Cost, Steps, evolve
from fewdim.directions import Key, Vector, accumulate, inner, perturb
from fewdim.lines import Move, differences, fan, forward_radius, search, value_at, visible
from fewdim.methods.conjugate_steps import (
    AGREED,
    BROAD,
    FRESH_ERROR,
    ConjugateSketchState,
    Course,
    Predictor,
    Sketch,
    alone,
    conjugated,
    failed,
    foreseen,
    predictor,
    second_pass,
    sketch_size,
)
from fewdim.methods.settings import check_choice, check_count, check_level, check_noise
from fewdim.scales import Scales, effective_rank, measure

GUARD = 0.7  # of the plain step's decrease: less, and the memory is emptied
LARGE_ERROR = 0.05  # in the step after next, as it grows: above, a second pass makes a step conjugate again
KNOWN_ERROR = 2e-3  # the most that a second pass finds wrong with the memory: beyond, f is no quadratic
LEAST = 0.3  # of the last length along the sketch: a shorter step blames the memory, not the length
SETTLED = 4  # members of the memory: steps before a second look at a low rank, since the first ones are cheap
ORTHOGONAL = 1024  # most coordinates of directions that are made orthogonal
LOOK = 8  # directions that tell the rank where the run has come to
FAN = 32  # lengths that a line search looks at in one query, where as many workers wait
KEPT = 4  # latest members of a full memory that are never dropped
PATIENCE = 9  # steps in a row without a decrease, after which nothing is left to find


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
    sketch        m       "auto"          "auto": the largest of least, 3 |S| and 2 ((|S| + 2) R)^(1/2), at most d and 3
                                          times `memory`, in whole rounds of w; or a number
    least                 8               fewest directions of a sketch; a pool makes it twice its width
    width         w       1               evaluations at once, which a pool sets; above 1 the predictor is asked with
                                          the slopes of the memory, from 32 on the line search with the next sketch
    directions    u       "orthogonal"    at right angles, which d > 1024 makes too dear: "signs" there; or "signs",
                                          "gaussian", "sphere"; the axes when m = d
    noise         delta   "auto"          level of the noise of f; 0 is exact; "auto" spends 2 values, 8 more on noise
    ============  ======  ==============  ================================================================

    A step lowers f in proportion to 1 / (L + tr/m) of the Hessian that the memory leaves and costs m + |S| + 2 values:
    wide sketches pay where curvature is even.  The first sketch, along signs and central, tells the effective rank of A
    off the diagonal; R is that of A, from the fifth sketch along Gaussian directions, or the second where the first
    rank is 0.7 d or more: two looks at x0 before any step.  Where the first is low, so is R.  The rank changes where f
    is no quadratic: there, when the memory has been emptied since half as many steps or the last step was not as long
    as foreseen, 16 values tell it anew, after 16, 32, 64, .. steps.

    **Cost.** m + |S| + 2 values a step where steps come out as long as foreseen, one to three more where they do not,
    in queries of width m, |S| and 1.  From w = 32 on in two queries, of width m and |S| + 1, while differences are
    forward: the next sketch is made where the step should end, together with the value there, and if that is not as
    foreseen, 32 lengths are looked at in one query more and the sketch is made anew.  |S| + 7 vectors beyond x at the
    most crowded moment of a step, the point handed to the function among them, and m more while directions are
    orthogonal.

    **Guarantee.** On a convex quadratic with exact differences:
    *conjugacy*: if S A S' = I and Sg = 0 then S A e = 0, and after an exact search S+ g+ = 0, so x+ minimises f over
    x + span S+, and the minimum is reached after at most d steps, for any m;
    *m = d* gives conjugate gradients, m = 1 without memory random pursuit;
    *decrease*: E[f - f+] >= |g|^2 / (2 [(1 + 1/m) lmax(B) + tr(B)/m]) with the residual Hessian B = A - A S'S A: the
    memory replaces tr A and L by those of what it has not seen yet;
    *guard*: for any memory, however stale, a step keeps 0.7 of the decrease of the plain step -(slope/curvature) p, so
    the ED_1/mu rate of random gradient holds up to a constant.  The best value never rises.

    **Departures.** Not in the paper.  Off quadratics only the monotone decrease is proved.  Members are conjugate only
    nearly: a new one is off by the error of the memory times |tp| / |e|, in curvature, which is large where the
    spectrum falls fast.  Where that would show two steps on, a second pass, |S| + 1 values more, makes the step
    conjugate and tells how far off the memory is; one that promises much and brings nothing empties it.

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
    width: int = 1
    directions: str = "orthogonal"
    noise: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_level(self, memory=self.memory)
        check_count(self, memory_limit=self.memory_limit, least=self.least, width=self.width)
        if self.sketch != "auto":
            check_count(self, sketch=self.sketch)
        check_choice(self, ["orthogonal", "signs", "gaussian", "sphere"], directions=self.directions)
        check_noise(self, self.noise)

    @property
    def cost(self) -> Cost:
        return Cost(fewest=2, most=14 * self.memory + 4 * self.least + 5 * self.width + 60, vectors=self.memory + 7)

    def fit(self, width: int) -> ConjugateSketch:
        """The same method with sketches that keep `width` workers busy."""
        return replace(self, least=max(self.least, 2 * width) if width > 1 else self.least, width=width)

    def start(self, x: Vector, key: Key) -> ConjugateSketchState:
        return ConjugateSketchState(x, key)

    def done(self, state: ConjugateSketchState) -> bool:
        return state.fails >= PATIENCE

    def step(self, state: ConjugateSketchState) -> Steps[ConjugateSketchState]:
        s = state
        if s.scales is None:
            found = yield from measure(s.x, (*s.key, s.k, 0), noise=self.noise, pairs=2, f_x=s.f_x)
            s = evolve(s, scales=found, f_x=found.f_x)
        scales, sketch = s.scales, s.sketch
        assert scales is not None
        if sketch is None or s.looks_again:
            _, sketch = yield from self._sketch(s, s.x, s.f_x)
            if sketch is not None and (s.looks_again or (math.isnan(s.rank) and sketch.rank >= 0)):  # and no step yet
                return evolve(s, k=s.k + 1, sketch=sketch, rank=sketch.rank, breadth=sketch.breadth)
        if sketch is None:
            return failed(evolve(s, k=s.k + 1, sketch=None), s.t)
        if self.sketch == "auto" and s.looks_anew(self._most(s.x)):
            s = evolve(s, rank=(yield from _rank_here(s, scales)))
        rms = math.sqrt(-sketch.slope)
        s = evolve(s, k=s.k + 1, rms=rms, sketch=None, scales=scales._replace(trace=sketch.trace))
        s = evolve(s, breadth=sketch.breadth)
        seen = yield from (foreseen if self.width > 1 else predictor)(s, sketch)
        if not seen.curvature > 0:  # underflow: nothing is left to see
            return failed(s, seen.t)
        t_plain = -sketch.slope / seen.curvature
        course = yield from conjugated(s, sketch, seen)
        move, after = yield from self._searched(s, course, seen)
        t, length = course.t, move.a if math.isnan(move.better) else move.better
        agreed = course.curvature > 0 and abs(length - 1) <= AGREED
        if s.memory and not s.f_x - move.f_a >= GUARD * 0.5 * -sketch.slope * t_plain:
            s = evolve(s, memory=(), sizes=(), error=FRESH_ERROR)
            f_plain = yield from value_at(s.x, t_plain, sketch.p)
            if f_plain < move.f_a:
                plain = np.multiply(sketch.p, sketch.p.dtype.type(t_plain))
                move, t = Move(plain, 1.0, f_plain, seen.curvature * t_plain**2), t_plain
                after, agreed = None, False
        if not move.f_a < s.f_x:
            return failed(s, t, expected=-sketch.slope * t_plain)
        growth = max(t * math.sqrt(seen.curvature / move.curvature), 1.05) if move.curvature > 0 else 1.05
        s = evolve(s, agreed=agreed)
        mistaken = move.curvature <= 0 or math.isnan(course.curvature)
        drifted = _drifted(s.error * growth * growth, move.a * course.t / seen.t) or mistaken
        due = drifted and bool(s.memory) and after is None
        if not math.isnan(move.better):
            x = perturb(s.x, move.better, move.e)
            ahead = agreed and s.clear and not due
            f_x, after = yield from (self._sketch(s, x, math.nan) if ahead else alone(x))
            if f_x < move.f_a:
                move = move._replace(a=move.better, f_a=f_x)
            else:
                after = None
        x = perturb(s.x, move.a, move.e)
        s = evolve(s, x=x, f_x=move.f_a, decrease=s.f_x - move.f_a, fails=0, sketch=after)
        return (yield from self._remembered(evolve(s, t=max(move.a, LEAST) * t), move, due, growth))

    def _searched(self, s: ConjugateSketchState, course: Course, seen: Predictor) -> Steps[tuple[Move, Sketch | None]]:
        """The move along the course and, if that went as foreseen with many workers, the sketch made where it ends."""
        if self.width < FAN:
            f_e = (yield from value_at(s.x, 1.0, course.e)) if s.memory else seen.f_t
            if course.agrees(s.f_x, f_e):
                return Move(course.e, 1.0, f_e, 2 * (f_e - s.f_x - course.slope)), None
            return (yield from search(s.x, s.f_x, course.e, f_e, course.slope)), None
        if s.agreed and s.clear and not _drifted(s.error * course.shrunk * course.shrunk, course.t / seen.t):
            f_e, after = yield from self._sketch(s, s.x + course.e, math.nan)
            if course.agrees(s.f_x, f_e):
                return Move(course.e, 1.0, f_e, 2 * (f_e - s.f_x - course.slope)), after
        return (yield from fan(s.x, s.f_x, course.e, FAN)), None

    def _sketch(self, s: ConjugateSketchState, x: Vector, f_x: float) -> Steps[tuple[float, Sketch | None]]:
        """The gradient at x along m directions, and f there, which is asked with them if it is nan.

        Forward, or central once the slopes come near the error of values.
        """
        scales = s.scales
        assert scales is not None
        d, delta, trace = x.size, scales.resolution.at(s.f_x), scales.trace
        known, fitting = not math.isnan(f_x), self.sketch == "auto"
        m = sketch_size(s, self.least, self.memory) if self.sketch == "auto" else self.sketch
        m = min(d, -(-m // self.width) * self.width if fitting else m)  # whole rounds of a pool
        law = "signs" if self.directions == "orthogonal" and d > ORTHOGONAL else self.directions
        law = "axes" if m == d else law
        radius = forward_radius(delta, trace)
        looks = fitting and m < d and known
        first = looks and math.isnan(s.rank)
        due = s.looks_again or len(s.memory) >= min(SETTLED, self.memory)
        second = looks and due and s.rank >= BROAD and math.isnan(s.breadth)
        central = first or second or (known and not s.clear)
        if first or second:  # as far as it takes to see curvature; along signs u'Au varies off the diagonal only
            radius, law = math.sqrt(visible(scales.resolution, s.f_x) / trace), "signs" if first else "gaussian"
        elif central and not math.isnan(s.decrease):
            radius = max(0.5 * math.sqrt(2 * s.decrease / trace), radius)
        radius, count = scales.reach.clip(radius), m - 1 if fitting and m < d and not known else m
        found = yield from differences(
            x, law, (*s.key, s.k, 1), count, radius, central=central, f_x=f_x, correction=trace
        )
        if not found.directions:
            return found.f_x, None
        n = len(found.directions)
        if central and float(found.curvatures.sum()) > 0:
            trace = 0.5 * trace + 0.5 * float(found.curvatures.mean())
        rank = effective_rank(found.curvatures) if first else s.rank
        breadth = effective_rank(found.curvatures) if second else s.breadth
        with np.errstate(over="ignore"):
            slope = -inner(found.slopes, found.slopes) / n
        if not -math.inf < slope < 0:
            return found.f_x, None
        p = accumulate(np.zeros_like(x), found.slopes / -n, found.directions)
        return found.f_x, Sketch(p, slope, trace, rank, breadth)

    def _most(self, x: Vector) -> int:
        """Vectors that the memory holds at most."""
        return min(self.memory, max(KEPT + 1, self.memory_limit // x.nbytes))

    def _remembered(self, s: ConjugateSketchState, move: Move, due: bool, growth: float) -> Steps[ConjugateSketchState]:
        """Put the step into the memory, after a second pass over it when it has drifted from conjugacy."""
        e, curvature, n = move.e, move.curvature, len(s.memory)
        error = s.error * math.sqrt((n + growth * growth) / (n + 1))  # e is off by the error times its growth
        if due:
            s, c = yield from second_pass(s)
            if not s.memory:
                return s
            e = accumulate(e, [-c_i / move.a for c_i in c], s.memory)
            off = sum(c_i * c_i for c_i in c) / move.a**2  # the curvature that e had in common with the memory
            error = math.sqrt(off / curvature) / growth if 0 < off < math.inf and curvature > 0 else KNOWN_ERROR
            error = min(max(error, FRESH_ERROR), KNOWN_ERROR)
            curvature = max(curvature - off, 0.05 * curvature)
        if not s.memory:
            error = FRESH_ERROR
        s = evolve(s, error=error)
        if not curvature > 0 or self.memory == 0:
            return s
        with np.errstate(all="ignore"):
            member = np.multiply(e, e.dtype.type(1 / math.sqrt(curvature)))
            size = inner(member, member)
        if not 0 < size < math.inf:
            return s
        memory, sizes = [*s.memory, member], [*s.sizes, size]
        if len(memory) > self._most(s.x):
            i = int(np.argmax(sizes[: max(1, len(sizes) - KEPT)]))  # the least curvature, but none of the latest
            del memory[i], sizes[i]
        return evolve(s, memory=tuple(memory), sizes=tuple(sizes))


def _rank_here(s: ConjugateSketchState, scales: Scales) -> Steps[float]:
    """The effective rank of the off-diagonal Hessian at x, 16 values; what it was if they do not tell."""
    radius = scales.reach.clip(math.sqrt(visible(scales.resolution, s.f_x) / scales.trace))
    found = yield from differences(
        s.x, "signs", (*s.key, s.k, 2), LOOK, radius, central=True, f_x=s.f_x, correction=scales.trace
    )
    return effective_rank(found.curvatures) or s.rank


def _drifted(error: float, growth: float) -> bool:
    """Whether a step so much longer than its predictor leaves the memory too far from conjugate."""
    return error > LARGE_ERROR or not 0.3 < growth < 1.8
