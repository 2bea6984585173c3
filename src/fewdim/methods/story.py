"""What `Auto` knows between steps, and the story of a run: which engine took over when, and why, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewdim.core import Method, Steps, evolve, value
from fewdim.directions import Key, Vector
from fewdim.lines import ROUND_OFF
from fewdim.methods.conjugate_steps import SURE, ConjugateSketchState
from fewdim.methods.looks import QuadraticModelState
from fewdim.methods.noisy_slopes import NoisyGradientState
from fewdim.methods.projected import ProjectedNewtonState
from fewdim.methods.quasi_newton import QuasiNewtonState
from fewdim.methods.random_pursuit import RandomPursuitState

Classes: TypeAlias = NDArray[np.int8]

EVEN = 0.5  # of d: an effective rank that leaves no few directions to find if a sketch is slow
MANY = 0.05  # of d: with an effective rank below, a sketch is not given up for a step that is not as foreseen
STEPS = 3  # remembered: so many before a sketch is called slow
PART = 0.1  # of the decrease so far: steps that bring as much are worth going on with
SHRINKING = 0.45  # of the decrease before, with as many values: less is on the way to a minimum, and no slow descent
TOLD = 6  # changes
LATE = 2.0  # values for each coordinate before a full gradient, where few directions may matter
QUIET = 3e-4  # of the decrease so far: noise below leaves full gradients something to find
FALLEN = 0.1  # of the noise in which quasi-Newton took over: with less it sees further
FAINT = 3e-6  # of the decrease so far: in noise below, engines for exact values go further than a model


class Change(NamedTuple):
    """An engine takes over: after how many values, which, why, and f_x then."""

    nfev: int
    engine: str
    why: str
    f_x: float


NAMES = {
    "fold": "descent in classes of coordinates",
    "model": "quadratic model",
    "sketch": "conjugate sketch",
    "newton": "quasi-Newton",
    "gradient": "noisy gradient",
    "pursuit": "random pursuit",
}
WHY = {
    "equal": "to see whether coordinates that start equal are alike",
    "alike": "coordinates that start equal are alike, and first move together",
    "small": "in few dimensions a look along each axis is cheap",
    "exact": "values are exact, and after the first looks a full gradient is cheap",
    "faint": "noise is far below the decrease so far, and after the first looks a full gradient is cheap",
    "quiet": "the engine before it had come down to the noise, which gradients over long differences see below",
    "followed": "negative curvature had been followed, and values are exact",
    "noisy": "values are noisy, and in few dimensions a model fits many of them",
    "start": "a sketch of the gradient goes furthest on few values",
    "even": "curvature is spread evenly over all dimensions",
    "alike axes": "curvature is the same along all axes, and a full gradient is cheap",
    "curved": "a step was not as a quadratic would have it, and looks along all axes are cheap",
    "bent": "curvature is negative in some directions, where long looks tell more than slopes",
    "bounds": "it takes steps that end within the bounds",
    "as dear": "a sketch had come to take as many values as a gradient, and a step was not as foreseen",
    "stuck": "the engine before it found no lower value",
    "noise": "the noise had come to hide the decreases",
    "doubt": "from the start again by short steps, since the minimum found may not be the nearest",
    "lower": "back at the minimum found first, which is lower",
    "flat": "slopes had sunk into the round-off of values, as at a stationary point",
    "kink": "no step went down though slopes were clear, as at a kink or a jump: stagnation",
}


Engine = Literal["fold", "model", "sketch", "newton", "gradient", "pursuit"]


@dataclass(frozen=True)
class FoldedState:
    """Between two steps of `Folded`: the state of the run in one variable for each class of coordinates."""

    x: Vector
    key: Key
    k: int = 0
    f_x: float = math.nan
    first: float = math.nan  # f where it started
    scale: float = 1.0  # of x where it started
    classes: Classes | None = None  # of each coordinate
    inner: AutoState | None = None  # None before they are known to be alike
    mark: tuple[int, float] = (0, math.nan)  # values asked, and f, when the number of values had last doubled
    lost: int = 0  # values missing
    over: bool = False


@dataclass(frozen=True)
class AutoState:
    """Between two steps of `Auto`: the states of the engines, and who is in charge since when."""

    engine: Engine
    key: Key
    k: int = 0
    nfev: int = 0  # values asked so far
    first: float = math.nan  # f at x0, or after the first step
    cheap: bool = False  # values, beside what they are part of
    sketch: ConjugateSketchState | None = None
    newton: QuasiNewtonState | ProjectedNewtonState | None = None
    # of any other engine:
    last: FoldedState | QuadraticModelState | NoisyGradientState | RandomPursuitState | None = None
    noise: float = math.nan  # measured by the engine in charge; nan before that
    heard: int = 0  # values asked when the noise was last measured
    course: tuple[tuple[int, float], ...] = ()  # values asked and f_x, at the steps of the sketch since half as many
    sunk: int = 0  # decreases in a row that the noise hides
    found: QuasiNewtonState | ProjectedNewtonState | None = None  # at the first minimum
    story: tuple[Change, ...] = ()

    @property
    def inner(self) -> Any:
        return {"sketch": self.sketch, "newton": self.newton}.get(self.engine, self.last)

    def went(self, sketch: ConjugateSketchState) -> AutoState:
        """The state with where a step of the sketch has come to, if `outlook` is going to ask."""
        if self.newton is not None or not EVEN * sketch.x.size <= sketch.rank < SURE * sketch.x.size:
            return self
        return evolve(self, course=(*(at for at in self.course if 2 * at[0] >= self.nfev), (self.nfev, sketch.f_x)))

    def outlook(self, sketch: ConjugateSketchState, memory: int) -> str:
        """Why other engines are likely to go further than the sketch; nothing if they are not, or had their turn."""
        d, remembered = sketch.x.size, len(sketch.memory)
        if self.newton is not None:
            return ""
        slow = remembered >= min(STEPS, memory) and sketch.decrease < PART * (self.first - sketch.f_x)
        if sketch.rank >= SURE * d or (sketch.rank >= EVEN * d and slow and not self.fast):
            return "even"
        if sketch.rank == 0:
            return "bent"
        curved = slow and sketch.rank >= MANY * d and not (sketch.agreed or self.noise > 0)
        return "curved" if curved else ""

    @property
    def faint(self) -> bool:
        """Whether the noise, if there is any, is so small that engines for exact values go furthest."""
        return self.noise == 0 or self.noise <= FAINT * (self.first - self.inner.f_x)

    @property
    def quiet(self) -> bool:
        """Whether full gradients over long distances are worth their values and see below the noise, or do so again."""
        new = self.newton is None or self.noise < FALLEN * self.newton.noise
        return new and self.little and self.nfev >= LATE * self.x.size

    @property
    def little(self) -> bool:
        """Whether the noise is so small that gradients over long distances see below it."""
        return bool(self.noise < QUIET * (self.first - self.inner.f_x))

    def above_grain(self, noise: float, f_x: float) -> float:
        """The noise, or 0 where it is no more than the round-off of the decrease so far."""
        return 0.0 if noise <= ROUND_OFF * (self.first - f_x) else noise

    @property
    def fast(self) -> bool:
        """Whether decreases shrink as they do close to a minimum: the last quarter of the values against the third."""
        (now, f_x), half = self.course[-1], self.course[0][1]
        between = next(f for asked, f in self.course if 4 * asked >= 3 * now)
        return between - f_x < SHRINKING * (half - between)

    @property
    def clear(self) -> bool:
        """Whether the slopes that the sketch saw last stood out from the error of values."""
        return self.sketch is not None and self.sketch.rms < math.inf and self.sketch.clear

    @property
    def steady(self) -> bool | None:
        """Whether values repeat, if the engine in charge knows."""
        return getattr(self.inner, "steady", None)

    @property
    def x(self) -> Vector:
        return self.inner.x  # type: ignore[no-any-return]

    @property
    def since(self) -> int:
        """How many values had been asked when the run in all coordinates began, if another came before it; else 0."""
        return self.story[1].nfev if self.story[0].engine == "fold" and self.story[1:] else 0


def taken_over(s: AutoState, engine: Engine, why: str) -> AutoState:
    """The state with another engine in charge from here on."""
    return evolve(s, engine=engine, story=(*s.story, Change(s.nfev, engine, why, s.inner.f_x)))


def valued_anew(s: AutoState) -> Steps[AutoState]:
    """With a new value at x, if there is one: that of the engine in charge may be old, or luck."""
    f_x = yield from value(s.x)
    inner = s.inner if math.isnan(f_x) else evolve(s.inner, f_x=f_x)
    return evolve(s, nfev=s.nfev + 1, **{s.engine if s.engine in ("sketch", "newton") else "last": inner})


def switched(s: AutoState, quasi: Method[Any], sketching: Method[Any], why: str) -> AutoState:
    """The other of quasi-Newton and sketch in charge, with what is known of x and of the scales of f."""
    known = {"x": s.x, "f_x": s.inner.f_x, "scales": s.inner.scales}
    if s.engine != "newton":
        newton = s.newton or quasi.start(s.x, (*s.key, 3))
        newton = evolve(newton, **known, gradient=None, moved=None, fails=0, steps=(), changes=(), central=True)
        return taken_over(evolve(s, newton=newton), "newton", why)
    if math.isnan(known["scales"].trace):
        known = {"x": s.x}
    sketch = s.sketch or sketching.start(s.x, (*s.key, 0))
    fresh = {"fails": 0, "sketch": None, "memory": (), "sizes": (), "t": math.nan, "agreed": False}
    return taken_over(evolve(s, sketch=evolve(sketch, **known, **fresh)), "sketch", why)


def told(story: tuple[Change, ...]) -> str:
    """Which engines ran, from which value on, and why; the first and the last of many."""
    parts = [f"{NAMES[c.engine]} from evaluation {c.nfev + 1} ({WHY[c.why]})" for c in story]
    if len(parts) > TOLD:
        parts = [*parts[: TOLD - 2], f"{len(parts) - TOLD + 1} more changes", parts[-1]]
    return "; ".join(parts)
