"""Repeat a random method and keep the best run: from "in expectation" to "with high probability"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fewdim.core import Method, Query, State, Steps, evolve, step
from fewdim.directions import Key, Vector
from fewdim.lines import ROUND_OFF, Reach, insisted
from fewdim.methods.settings import Settings, check_choice, check_count, is_method
from fewdim.oracles.second_order import central_gradient


@dataclass(frozen=True)
class RepeatedState:
    """Between two rounds of `Repeated`: the states of the runs, and which is the best."""

    runs: tuple[Any, ...]
    key: Key
    k: int = 0
    best: int = 0
    score: float = math.nan  # of the best: its value, or its residual

    @property
    def x(self) -> Vector:
        x: Vector = self.runs[self.best].x
        return x

    @property
    def noise(self) -> float:
        """The level that the best run has measured."""
        return float(getattr(self.runs[self.best], "noise", math.nan))


@dataclass(frozen=True, eq=False, repr=False)
class Repeated(Settings):
    r"""Independent runs of a random method side by side; the iterate is that of the best run.

    .. math:: x = x^{(j)}, \quad j = \arg\min_j f(x^{(j)}) \text{ or } \arg\min_j |\nabla f(x^{(j)})|

    ========  ======  ========  ======================================================================
    setting   symbol  default   source
    ========  ======  ========  ======================================================================
    method                      any method
    times     m       3         runs
    steps             10        steps of each run between two comparisons
    choose            "value"   "value": one value a run; "residual": the gradient by central differences, 2d + 1
    ========  ======  ========  ======================================================================

    **Cost.** `times` runs of `steps` steps, and `times` values (or gradients) a round, in one query (or one each).

    **Guarantee.** If one run has E[f - f*] <= c after its steps, then by Markov's inequality f - f* <= 2c with
    probability of at least 1/2, and the best of m runs with at least 1 - 2^-m: what the paper's "with high probability"
    in Theorems 4 and 5 stands for.

    **Departures.** The paper takes "the minimum" without saying how it is known: it takes values, which are counted.

    >>> import numpy as np
    >>> from fewdim import RandomGradient, minimize
    >>> result = minimize(lambda x: x @ x, np.ones(10), method=Repeated(RandomGradient(), 3), maxfev=2000, rng=0)
    >>> bool(result.fun < 1e-3)
    True

    References
    ----------
    Ghadimi, Lan. Stochastic first- and zeroth-order methods for nonconvex stochastic programming. SIAM J. Optim. 2013.
    """

    method: Method[Any]
    times: int = 3
    steps: int = 10
    choose: Literal["value", "residual"] = "value"

    def __post_init__(self) -> None:
        check_count(self, times=self.times, steps=self.steps)
        check_choice(self, ("value", "residual"), choose=self.choose)
        if not is_method(self.method):
            raise TypeError(f"Repeated(method=...) must have start, step and done; got {self.method!r}.")

    def start(self, x: Vector, key: Key) -> RepeatedState:
        return RepeatedState(tuple(self.method.start(x, (*key, j)) for j in range(self.times)), key)

    def done(self, state: RepeatedState) -> bool:
        return all(self.method.done(run) for run in state.runs)

    def step(self, state: RepeatedState) -> Steps[RepeatedState]:
        runs = state.runs
        for j in range(self.times):
            run = yield from self._advanced(runs[j])
            runs = (*runs[:j], run, *runs[j + 1 :])
        scores = yield from self._scores([run.x for run in runs])
        best = int(np.argmin(np.nan_to_num(scores, nan=math.inf)))
        return evolve(state, runs=runs, k=state.k + 1, best=best, score=float(scores[best]))

    def _advanced(self, run: State) -> Steps[State]:
        for _ in range(self.steps):
            if not self.method.done(run):
                run = yield from step(self.method, run)
        return run

    def _scores(self, points: list[Vector]) -> Steps[Any]:
        """What the runs are compared by, nan where it could not be had."""
        origin = np.zeros_like(points[0])
        values = yield from insisted(Query(origin, tuple(points)))
        if self.choose == "value":
            return values
        norms: list[float] = []
        for x, f_x in zip(points, values, strict=True):
            radius = math.ldexp(0.5, math.frexp(math.cbrt(ROUND_OFF) * Reach.of(x).high)[1])
            near = yield from central_gradient(x, float(f_x), Reach.of(x).clip(radius))
            norms += [near.norm if near.seen == x.size else math.nan]
        return np.array(norms)
