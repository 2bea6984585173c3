"""Conjugate sketch: conjugate gradients on a gradient that is only sketched."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fewdim.core import Cost, Steps, evolve
from fewdim.directions import Key, Vector, accumulate, perturb
from fewdim.lines import Move, differences, fan, forward_radius, search, value_at, visible
from fewdim.methods.conjugate_steps import (
    FRESH_ERROR,
    ConjugateSketchState,
    Sketch,
    conjugated,
    failed,
    foreseen,
    predictor,
    second_pass,
)
from fewdim.methods.settings import check_choice, check_count, check_level, check_noise
from fewdim.scales import Scales, effective_rank, measure

GUARD = 0.7  # of the plain step's decrease: less, and the memory is emptied
LARGE_ERROR = 1e-3  # above this the memory is made conjugate again by a second pass
ORTHOGONAL = 1024  # most coordinates of directions that are made orthogonal
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
    sketch        m       "auto"          "auto": max(least, 2 |S|) in whole rounds of w, at most d; or a number
    least                 8               fewest directions of a sketch; a pool makes it twice its width
    width         w       1               evaluations at once, which a pool sets; above 1 the predictor is asked with
                                          the slopes of the memory, from 32 on a line search is one query
    directions    u       "orthogonal"    at right angles, which d > 1024 makes too dear: "signs" there; or "signs",
                                          "gaussian", "sphere"; the axes when m = d
    noise         delta   "auto"          level of the noise of f; 0 is exact; "auto" spends about 8 values
    ============  ======  ==============  ================================================================

    **Cost.** m + |S| + 4 or so values a step, in queries of width m and |S| and some of 1; with w > 1 in three queries,
    of width m, |S| + 1 and w.  |S| + 7 vectors beyond x at the most crowded moment of a step, the point handed to the
    function among them, and m more while directions are orthogonal.

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
        return Cost(fewest=2, most=6 * self.memory + 2 * self.least + 3 * self.width + 14, vectors=self.memory + 7)

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
            found = yield from measure(s.x, (*s.key, s.k, 0), noise=self.noise, pairs=2)
            s = evolve(s, scales=found, f_x=found.f_x)
        scales, sketch = s.scales, s.sketch
        assert scales is not None
        if sketch is None:
            sketch = yield from self._sketch(s, scales)
            if sketch is not None and sketch.slope < 0 and math.isnan(s.rank) and sketch.rank >= 0:
                return evolve(s, k=s.k + 1, sketch=sketch, rank=sketch.rank)  # a look at f, and no step yet
        if sketch is None or not sketch.slope < 0:
            return failed(evolve(s, k=s.k + 1), s.t)
        rms = math.sqrt(-sketch.slope)
        s = evolve(s, k=s.k + 1, rms=rms, sketch=None, scales=scales._replace(trace=sketch.trace))
        t, f_t, curvature, slopes = yield from (foreseen if self.width > 1 else predictor)(s, sketch)
        if not curvature > 0:  # underflow: nothing is left to see
            return failed(s, t)
        t_plain = -sketch.slope / curvature
        e = np.multiply(sketch.p, sketch.p.dtype.type(t))
        if s.memory:
            e = yield from conjugated(s, e, f_t, t * math.sqrt(curvature / len(s.memory)), slopes)
        if self.width >= FAN:
            move = yield from fan(s.x, s.f_x, e, FAN)
        else:
            f_e = (yield from value_at(s.x, 1.0, e)) if s.memory else f_t
            move = yield from search(s.x, s.f_x, e, f_e, t * sketch.slope)
        if s.memory and not s.f_x - move.f_a >= GUARD * 0.5 * -sketch.slope * t_plain:
            s = evolve(s, memory=(), sizes=(), error=FRESH_ERROR)
            f_plain = yield from value_at(s.x, t_plain, sketch.p)
            if f_plain < move.f_a:
                plain = np.multiply(sketch.p, sketch.p.dtype.type(t_plain))
                move, t = Move(plain, 1.0, f_plain, curvature * t_plain**2), t_plain
        if not move.f_a < s.f_x:
            return failed(s, t, expected=-sketch.slope * t_plain)
        ratio = math.sqrt(curvature * t * t / move.curvature) if move.curvature > 0 else 1.0
        after = evolve(
            s,
            x=perturb(s.x, move.a, move.e),
            f_x=move.f_a,
            decrease=s.f_x - move.f_a,
            fails=0,
            t=move.a * t,
            error=s.error * max(ratio, 1.05),
        )
        return (yield from self._remembered(after, move))

    def _sketch(self, s: ConjugateSketchState, scales: Scales) -> Steps[Sketch | None]:
        """The gradient along m directions: forward, or central once the slopes come near the round-off of values."""
        d, delta, trace = s.x.size, scales.resolution.at(s.f_x), scales.trace
        m = max(self.least, 2 * len(s.memory)) if self.sketch == "auto" else self.sketch
        m = min(d, m if self.sketch != "auto" else -(-m // self.width) * self.width)  # whole rounds of a pool
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
        rank = effective_rank(found.curvatures) if first else s.rank
        p = accumulate(np.zeros_like(s.x), found.slopes / -n, found.directions)
        return Sketch(p, -float(found.slopes @ found.slopes) / n, trace, rank)

    def _remembered(self, s: ConjugateSketchState, move: Move) -> Steps[ConjugateSketchState]:
        """Put the step into the memory, after a second pass over it when it has drifted from conjugacy."""
        e, curvature, error = move.e, move.curvature, s.error
        if s.memory:
            if error > LARGE_ERROR or not 0.3 < move.a < 1.8 or curvature <= 0:
                s, c = yield from second_pass(s)
                e = accumulate(e, [-c_i / move.a for c_i in c], s.memory)
                curvature = max(curvature - sum(c_i * c_i for c_i in c) / move.a**2, 0.05 * curvature)
                error = min(error * error, LARGE_ERROR)
        else:
            error = FRESH_ERROR
        s = evolve(s, error=error)
        if not curvature > 0 or self.memory == 0:
            return s
        member = np.multiply(e, e.dtype.type(1 / math.sqrt(curvature)))
        size = float(member @ member)
        if not 0 < size < math.inf:
            return s
        memory, sizes = [*s.memory, member], [*s.sizes, size]
        if len(memory) > min(self.memory, max(KEPT + 1, self.memory_limit // s.x.nbytes)):
            i = int(np.argmax(sizes[: max(1, len(sizes) - KEPT)]))  # the least curvature, but none of the latest
            del memory[i], sizes[i]
        return evolve(s, memory=tuple(memory), sizes=tuple(sizes))
