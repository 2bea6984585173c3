"""Auto: the default method, an engine for what the values turn out to be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fewdim.box import Box
from fewdim.core import Cost, Method, Steps, counted, evolve
from fewdim.directions import Key, Vector
from fewdim.methods.conjugate_sketch import ConjugateSketch
from fewdim.methods.conjugate_steps import BROAD, ConjugateSketchState, sketch_size
from fewdim.methods.folded import Folded, apart
from fewdim.methods.looks import QuadraticModelState
from fewdim.methods.noisy_gradient import NoisyGradient
from fewdim.methods.opening import bends_down, fitted, gone_back, handed_over, heard_again, passed_over, settled, stays
from fewdim.methods.projected import ProjectedNewton
from fewdim.methods.quadratic_model import LARGEST, QuadraticModel
from fewdim.methods.quasi_newton import FRUGAL, QuasiNewton
from fewdim.methods.random_pursuit import RandomPursuit, RandomPursuitState
from fewdim.methods.settings import check_count, check_noise
from fewdim.methods.story import LATE, AutoState, Change, FoldedState, switched, taken_over, told, valued_anew
from fewdim.noise import noise_here

SUNK = 3  # noise levels: a decrease below this says little
PATIENCE = 2  # such decreases in a row, after which the noisy engine takes over
SMALL = 30  # dimensions: up to this many, looks along each axis come first
MODEL = LARGEST  # dimensions: up to this many a model is fitted to values
ENOUGH, ANOTHER = 2.0, 1.2  # values left for each coordinate: full gradients pay, and one more does
BESIDE = 50  # values that go with the first full gradient: looks at the noise and at a few axes, and the step
OPENING = 2.5  # values for each coordinate that a model is given where values are exact
FEW, SOME = 200, 2000  # dimensions, for each worker: a full gradient may come at once, or after two looks at the rank
LOW = 0.2  # of d: with an effective rank below, a sketch goes further than a model even in noise
GRAIN = 1e-8  # of the decrease so far: noise below is the round-off of a function at its minimum
SETTLED = 1e-8  # of f and of the decrease so far: a step of quasi-Newton that gains less is at a minimum


@dataclass(frozen=True)
class Auto:
    r"""Conjugate sketch, quasi-Newton where a full gradient pays, noisy gradient where noise hides the decreases.

    .. math:: x_{k+1} = \text{the step of the engine in charge}

    Above d = 30, where x0 has at most 5 different values, it looks whether f treats coordinates that start equal alike:
    2 values, and 1 more if so.  Then these first move together, one variable for each value and either end (`Folded`).

    Up to d = 30 it opens with `QuadraticModel`: two values along each axis and, if values turn out to be exact, d/2
    steps more; then `QuasiNewton` goes on, from there or a lower point on the way.  Where an axis bends downwards the
    model goes on, until the values of its points differ by less than 1e-6 of the decrease so far, a step ends where f
    has no value, or 12d values are spent.  The looks may be long: where the minimum found may not be the nearest (an
    axis bent downwards, it is far off, or f rises on the way) a second descent leaves from where they began, by short
    steps, and the lower is kept.

    Above, `ConjugateSketch`, whose looks at f tell the effective rank of the Hessian off its diagonal: where that
    is above 0.7 d no few directions matter, or the axes do, and `QuasiNewton` takes over; where it is above d/2, once
    the sketch is slow and its decreases do not shrink as close to a minimum.  It does so at once up to d = 200 for each
    worker, and up to d = 2000 if the rank with the diagonal, by a second look, is 16 or more: then it is not a few axes
    that matter; after 2d values otherwise.  Up to d = 150 it also does so once the sketch is slow and a
    step not as long as foreseen, since f is no quadratic; and there, unless a sample of the axes finds the same
    curvature along all, through the same opening, as where the first look finds negative curvature.  Slow is a sketch
    that remembers three vectors and whose last step brought less than a tenth of the whole decrease.  Elsewhere
    quasi-Newton has to wait until a sketch takes as many values as a gradient.

    With bounds `QuasiNewton`, which knows them, takes over once a coordinate comes near one (as soon as it does up to
    d = 2000 for each worker, after 2d values otherwise), up to d = 20 at once; the other engines see no bounds.

    Where values are noisy it is `QuadraticModel` up to d = 150, unless the rank is below d/5.  Quasi-Newton follows as
    if values were exact where the noise is below 3e-6 of the decrease, as in float32, and no axis bends downwards.
    Once two decreases in a row are below 3 noise levels or a step fails (in noise above 1e-8 of the decrease) and the
    model has had its turn, `NoisyGradient` takes over: its steps average.  But full gradients over long distances see
    below noise of less than 3e-4 of the decrease: there quasi-Newton comes first, after a model at once, after a sketch
    once 2d values are spent, until its first decrease, or two in a row, are below 3 noise levels, and again each time
    the noise has fallen to a tenth, as where it is in proportion to f; not where it ran before on values that seemed
    exact.  The noise is measured again when an engine gives up and, under the model, each time the values have doubled.
    Where values are exact and both engines give up, `RandomPursuit` looks for a way down; if none of 100 is, it ends.

    With less than 2d + min(50, d) of a known budget left no sketch that goes down is given up for gradients or a model,
    nor an average, with less than 1.2d no model for gradients.  Past its budget a run is as one that knows none.

    ============  ======  ==============  ================================================================
    setting       symbol  default         source
    ============  ======  ==============  ================================================================
    memory                256             most vectors that `ConjugateSketch` remembers
    least                 8               fewest directions of its sketches; a pool makes it twice its width
    width                 1               evaluations at once, which a pool sets
    noise         delta   "auto"          level of the noise of f; 0 is exact; "auto" spends 2 values, 8 more on noise
    box                   None            bounds, which `minimize` sets
    budget                None            evaluations that the run may ask for, which `minimize` sets to its maxfev
    ============  ======  ==============  ================================================================

    **Cost.** That of the engine in charge.  The vectors are those of sketch and quasi-Newton, not the model's 3d + 3.

    **Guarantee.** That of the engine in charge.  The best value never rises while values are exact.

    **Departures.** Not in the paper; the noisy engine is its Algorithm 1 with another step.

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
    width: int = 1
    noise: float | Literal["auto"] = "auto"
    box: Box | None = field(default=None, compare=False)
    budget: int | None = None

    def __post_init__(self) -> None:
        budget = 1 if self.budget is None else self.budget
        check_count(self, memory=self.memory, least=self.least, width=self.width, budget=budget)
        check_noise(self, self.noise)
        if self.box is not None and not isinstance(self.box, Box):
            raise TypeError(f"Auto(box=...) is set by minimize(bounds=...); got {self.box!r}.")

    @property
    def cost(self) -> Cost:
        sketch, newton = self._sketch.cost, self._newton.cost
        return Cost(1, sketch.most + newton.most, sketch.vectors + newton.vectors, newton.axes)

    def fit(self, width: int) -> Auto:
        """The same method with sketches, and in noise batches, that keep `width` workers busy."""
        return replace(self, least=max(self.least, 2 * width) if width > 1 else self.least, width=width)

    def start(self, x: Vector, key: Key) -> AutoState:
        folded = Folded(self).start(x, (*key, 8))
        if folded.classes is not None and not (self.box and self.box.touched(x)):
            return AutoState("fold", key, last=folded, story=(Change(0, "fold", "equal", math.inf),))
        return self._begun(x, key)

    def _begun(self, x: Vector, key: Key, asked: int = 0) -> AutoState:
        """The engine that comes first, or after a folded descent of so many values."""
        soon = x.size <= FEW * self.width and self._enough(asked, x)
        if self.box and (x.size <= FRUGAL or (soon and self.box.touched(x))):
            newton, story = self._newton.start(x, (*key, 3)), (Change(0, "newton", "bounds", math.inf),)
            return AutoState("newton", key, newton=newton, story=story)
        if x.size <= SMALL and not self.box:
            model, story = self._model.start(x, (*key, 5)), (Change(0, "model", "small", math.inf),)
            return AutoState("model", key, last=model, story=story)
        sketch = self._sketch.start(self.box.off(x) if self.box else x, (*key, 0))
        return AutoState("sketch", key, sketch=sketch, story=(Change(0, "sketch", "start", math.inf),))

    def done(self, state: AutoState) -> bool:
        return isinstance(state.last, RandomPursuitState) and RandomPursuit().done(state.last)

    def explain(self, state: AutoState, nfev: int | float = math.inf) -> str:
        """Which engines ran within so many values, from which on, and why."""
        return told(tuple(change for change in state.story if change.nfev < max(nfev, 1)))

    def step(self, state: AutoState) -> Steps[AutoState]:
        inner, asked = yield from counted(self._engine(state).step(state.inner))
        s = evolve(state, k=state.k + 1, nfev=state.nfev + asked)
        enough = self._enough(s.nfev, s.x)
        if s.engine == "fold":
            return (yield from self._unfolded(evolve(s, last=inner), inner))
        if s.engine == "model":
            return (yield from self._modelled(evolve(s, last=inner), inner))
        if s.engine in ("gradient", "pursuit"):
            s = evolve(s, last=inner, noise=inner.noise if s.engine == "gradient" else s.noise)
            return (yield from self._below(s)) if s.engine == "gradient" and enough and s.quiet else s
        s = evolve(s, **{s.engine: inner}, first=inner.scales.f_x if math.isnan(s.first) else s.first)
        s = evolve(s, noise=s.above_grain(inner.noise, inner.f_x) if self.noise == "auto" else inner.noise)
        if s.noise > 0 and s.engine == "newton" and s.found is not None and s.found.f_x < inner.f_x:
            inner, s = s.found, evolve(s, newton=s.found)
        rank = s.sketch.rank if s.sketch is not None else s.x.size
        fits = s.x.size <= MODEL and LOW * s.x.size <= rank and not inner.scales.resolution.shared
        fits = fits and (not self._model.done(s.last) if isinstance(s.last, QuadraticModelState) else enough)
        if fits and not s.faint and s.story[-1].why != "quiet":
            return fitted(s, self._model, "noisy")
        s = evolve(s, sunk=s.sunk + 1 if s.noise > 0 and inner.decrease < SUNK * s.noise else 0)
        if s.noise > 0 and (s.sunk >= PATIENCE or (inner.fails and s.noise > GRAIN * (s.first - inner.f_x))):
            if (fits and s.newton is None) or (enough and s.quiet):
                return (yield from self._below(s))
            return fitted(s, self._model, "noisy") if fits else self._in_noise(s)
        done, least = self._engine(s).done(inner), SETTLED * min(s.first - inner.f_x, abs(inner.f_x))
        low = s.engine == "newton" and s.noise == 0 and (done or (inner.fails == 0 and inner.decrease < least))
        if low and isinstance(s.last, QuadraticModelState):
            s, moved = yield from settled(s, s.last, self._newton)
            if moved:
                return s
        if done:
            return (yield from self._stuck(s))
        return (yield from self._chosen(s, inner)) if s.engine == "sketch" else s

    def _unfolded(self, s: AutoState, folded: FoldedState) -> Steps[AutoState]:
        """After a step of the descent in classes: the engine that comes first otherwise, once that is over."""
        s = evolve(s, first=folded.first, noise=folded.inner.noise if folded.inner else s.noise)
        if folded.inner:
            s = evolve(s, story=(s.story[0]._replace(why="alike"),))
        if not folded.over:
            return s
        (x, f_x), asked = (yield from counted(apart(folded))) if folded.inner else ((folded.x, folded.f_x), 0)
        new = self._begun(x, s.key, s.nfev + asked)
        story = (*s.story, new.story[0]._replace(nfev=s.nfev, f_x=folded.f_x)) if folded.inner else new.story
        if (new.x == x).all():  # not moved off a bound
            new = evolve(new, **{new.engine if new.engine != "model" else "last": evolve(new.inner, f_x=f_x)})
        return evolve(new, k=s.k, nfev=s.nfev + asked, first=s.first, story=story)

    def _modelled(self, s: AutoState, model: QuadraticModelState) -> Steps[AutoState]:
        """After a step of the model: quasi-Newton once values are known to be exact, noisy gradient in their noise."""
        s = evolve(s, first=model.first[1] if math.isnan(s.first) and model.first else s.first)
        s = evolve(s, noise=s.above_grain(model.noise, model.f_x) if self.noise == "auto" else model.noise)
        opened, asked = len(model.bends) == s.x.size, s.nfev - s.story[-1].nfev
        bent = opened and (s.story[-1].why == "bent" or bends_down(model))
        enough = opened and asked >= OPENING * s.x.size and not (bent and stays(model, asked))
        exact = s.noise == 0 or (s.faint and not bent and s.newton is None)
        if exact and not ((enough and self._enough(s.nfev, s.x, ANOTHER, 0)) or self._model.done(model)):
            return s
        if exact:
            sure = self.noise != "auto" or s.noise > 0 or s.sketch is not None
            at, more = ((s.x, model.f_x), 0) if bent else (yield from counted(gone_back(model, s.cheap)))
            s = evolve(s, nfev=s.nfev + more)
            why = "followed" if bent else "exact" if s.noise == 0 else "faint"
            return handed_over(s, model, self._newton, at, why, sure)
        shared = model.scales is not None and model.scales.resolution.shared  # differences within a query lack it
        if self.noise == "auto" and not shared and s.nfev >= 2 * max(s.heard, s.story[-1].nfev, 2 * s.x.size):
            model, more = yield from counted(heard_again(model, (*s.key, s.k, 4)))
            s = evolve(s, nfev=s.nfev + more, heard=s.nfev, noise=model.noise, last=model)
        done = self._model.done(model)
        if done and s.little and not shared and "quiet" not in (c.why for c in s.story) and self._enough(s.nfev, s.x):
            return (yield from self._below(s))
        return self._in_noise(s) if shared or done else s

    def _chosen(self, s: AutoState, sketch: ConjugateSketchState) -> Steps[AutoState]:
        """Stay with the sketch, or hand over to quasi-Newton."""
        d, once, late = s.x.size, s.x.size <= FEW * self.width, s.nfev >= LATE * s.x.size
        soon = d <= SOME * self.width
        s = s.went(sketch)
        if not self._enough(s.nfev, s.x):
            return s
        outlook = s.outlook(sketch, self.memory)
        even = outlook == "even"
        if once and outlook and d <= MODEL and not self.box:
            s = s if outlook == "bent" else (yield from passed_over(s, sketch, self._newton))
            return s if s.engine == "newton" else fitted(s, self._model, outlook)
        if even and (once or late or (soon and sketch.breadth >= BROAD)):
            return self._switched(s, "even")
        if (once or soon or late) and self.box and "bounds" not in (c.why for c in s.story) and self.box.touched(s.x):
            return self._switched(s, "bounds")
        if sketch.memory and sketch_size(sketch, self.least, self.memory) >= d and not sketch.agreed:
            return self._switched(s, "as dear")
        return s

    def _switched(self, s: AutoState, why: str) -> AutoState:
        """The other of the two engines in charge."""
        return switched(s, self._newton, self._sketch, why)

    def _enough(self, nfev: int, x: Vector, times: float = ENOUGH, beside: int = BESIDE) -> bool:
        """Whether so many values are left after nfev, as far as is known: a run may go on past its budget."""
        return self.budget is None or not self.budget - times * x.size - min(beside, x.size) < nfev < self.budget

    def _below(self, s: AutoState) -> Steps[AutoState]:
        """Quasi-Newton in charge, until its first decrease is hidden, or two in a row are."""
        s = evolve((yield from valued_anew(s)), sunk=PATIENCE - 1)
        if isinstance(s.last, QuadraticModelState) and s.engine == "model":
            return handed_over(s, s.last, self._newton, (s.x, s.last.f_x), "quiet")
        return self._switched(s, "quiet")

    def _in_noise(self, s: AutoState) -> AutoState:
        """Noisy gradient in charge, for good unless full gradients are still to come."""
        return taken_over(evolve(s, last=self._gradient(s).start(s.x, (*s.key, 1))), "gradient", "noise")

    def _stuck(self, s: AutoState) -> Steps[AutoState]:
        """Is it noise that has come up?  If not, the other engine once, then random pursuit."""
        if self.noise == "auto":
            resolution, asked = yield from counted(noise_here(s.x, s.inner.f_x, (*s.key, s.k, 4)))
            s = evolve(s, nfev=s.nfev + asked)
            if resolution.noise > GRAIN * (s.first - s.inner.f_x):
                return self._in_noise(evolve(s, noise=resolution.noise))
        if [change.why for change in s.story].count("stuck") < 2:
            return self._switched(s, "stuck")
        pursuit = RandomPursuit(noise=self.noise).start(s.x, (*s.key, 2))
        return taken_over(evolve(s, last=pursuit), "pursuit", "kink" if s.clear else "flat")

    def _gradient(self, state: AutoState) -> NoisyGradient:
        noise: float | Literal["auto"] = state.noise if state.noise < math.inf else "auto"  # values that overflow
        return NoisyGradient(noise=noise, batch=max(1, self.width // 2))

    @property
    def _sketch(self) -> ConjugateSketch:
        return ConjugateSketch(memory=self.memory, least=self.least, width=self.width, noise=self.noise)

    @property
    def _model(self) -> QuadraticModel:
        return QuadraticModel(noise=self.noise, width=self.width)

    @property
    def _newton(self) -> QuasiNewton:
        return QuasiNewton(noise=self.noise) if self.box is None else ProjectedNewton(noise=self.noise, box=self.box)

    def _engine(self, state: AutoState) -> Method[Any]:
        engines: dict[str, Any] = {"fold": Folded(replace(self, box=None, budget=None)), "model": self._model}
        engines |= {"sketch": self._sketch, "newton": self._newton, "pursuit": RandomPursuit(noise=self.noise)}
        return engines.get(state.engine) or self._gradient(state)
