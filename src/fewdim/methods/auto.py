"""Auto: the default method, an engine for what the values turn out to be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from fewdim.core import Cost, Method, Steps
from fewdim.directions import Key, Vector
from fewdim.methods.conjugate_sketch import ConjugateSketch, ConjugateSketchState
from fewdim.methods.random_gradient import RandomGradient, RandomGradientState
from fewdim.methods.random_pursuit import RandomPursuit, RandomPursuitState
from fewdim.methods.settings import check_count, check_noise

SUNK = 10  # noise levels: a decrease below this says little
PATIENCE = 2  # such decreases in a row, after which the noisy engine takes over


@dataclass(frozen=True)
class AutoState:
    """Between two steps of `Auto`: the state of the engine in charge."""

    engine: Literal["sketch", "gradient", "pursuit"]
    inner: ConjugateSketchState | RandomGradientState | RandomPursuitState
    key: Key
    k: int = 0
    noise: float = math.nan  # measured by the sketch; nan before that
    sunk: int = 0  # decreases in a row that the noise hides

    @property
    def x(self) -> Vector:
        return self.inner.x


@dataclass(frozen=True)
class Auto:
    r"""Conjugate sketch while values are clear; random gradient when noise hides them; random pursuit at the end.

    .. math:: x_{k+1} = \text{the step of the engine in charge}

    A step is a step of `ConjugateSketch`.  Where values are noisy and two decreases in a row are below 10 noise levels,
    or the sketch gives up, `RandomGradient` with central differences takes over for good: its steps average.  Where
    values are exact and the sketch gives up (a kink, round-off), `RandomPursuit` looks whether a direction still goes
    down, and ends the run if none of 100 does.

    ============  ======  ==============  ================================================================
    setting       symbol  default         source
    ============  ======  ==============  ================================================================
    memory                256             most vectors that `ConjugateSketch` remembers
    least                 8               fewest directions of its sketches; a pool makes it its width
    noise         delta   "auto"          level of the noise of f; 0 is exact; "auto" spends about 8 values
    ============  ======  ==============  ================================================================

    **Cost.** That of the engine in charge.

    **Guarantee.** That of the engine in charge; the best value never rises while values are exact.

    **Departures.** Not in the paper, whose Algorithm 1 is the noisy engine.

    >>> import numpy as np
    >>> from fewdim import minimize
    >>> minimize(lambda x: x @ x, np.ones(50), rng=0).fun < 1e-9
    True

    References
    ----------
    See the engines.
    """

    memory: int = 256
    least: int = 8
    noise: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_count(self, memory=self.memory, least=self.least)
        check_noise(self, self.noise)

    @property
    def cost(self) -> Cost:
        return self._sketch.cost

    def fit(self, width: int) -> Auto:
        """The same method with sketches, and in noise batches, that keep `width` workers busy."""
        return replace(self, least=max(self.least, width))

    def start(self, x: Vector, key: Key) -> AutoState:
        return AutoState("sketch", self._sketch.start(x, (*key, 0)), key)

    def done(self, state: AutoState) -> bool:
        return state.engine != "sketch" and self._engine(state).done(state.inner)

    def step(self, state: AutoState) -> Steps[AutoState]:
        inner = yield from self._engine(state).step(state.inner)
        s = replace(state, inner=inner, k=state.k + 1)
        if s.engine != "sketch":
            return s
        s = replace(s, noise=inner.noise)
        noisy = s.noise > 0
        s = replace(s, sunk=s.sunk + 1 if noisy and inner.decrease < SUNK * s.noise else 0)
        if noisy and (s.sunk >= PATIENCE or inner.fails):
            return replace(s, engine="gradient", inner=self._gradient(s).start(s.x, (*s.key, 1)))
        if self._sketch.done(inner):
            return replace(s, engine="pursuit", inner=RandomPursuit(noise=self.noise).start(s.x, (*s.key, 2)))
        return s

    def _gradient(self, state: AutoState) -> RandomGradient:
        return RandomGradient(noise=state.noise, batch=max(1, self.least // 2) if self.least > 8 else 1)

    @property
    def _sketch(self) -> ConjugateSketch:
        return ConjugateSketch(memory=self.memory, least=self.least, noise=self.noise)

    def _engine(self, state: AutoState) -> Method[Any]:
        if state.engine == "sketch":
            return self._sketch
        return self._gradient(state) if state.engine == "gradient" else RandomPursuit(noise=self.noise)
