"""Random gradient: Algorithm 1 of the paper, RG_rho of Nesterov and Spokoiny."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewdim.core import Cost, Steps, Values, evolve, value
from fewdim.directions import LAWS, Key, Vector, accumulate
from fewdim.lines import Lines, Reach, Resolution, central_radius, differences, scale_of, visible
from fewdim.methods.settings import Settings, changed, check_choice, check_count, check_noise, check_positive
from fewdim.scales import Measured, Scales, measure, slopes

Step = Literal["auto", "local", "paper", "nesterov"]
STEPS = ("auto", "local", "paper", "nesterov")
PATIENCE = 10  # steps in a row above the anchor before "auto" goes back to it
RECOVERY = 1.05  # by which a damped step grows again with each step that found a value
FIRST_REVIEW = 50  # steps after which "auto" estimates the trace for the second time
MEMORY = 100  # steps that the averages of "local" look back over
SHORT = 20  # the same at the start, and for the size of g'p that makes steps of all sizes count alike


@dataclass(frozen=True)
class RandomGradientState(Measured):
    """Between two steps of `RandomGradient`."""

    x: Vector
    key: Key
    k: int = 0
    f_x: float = math.nan  # at the iterate that the last step started from
    scales: Scales | None = None  # measured at the anchor; None before the first step
    anchor: Vector | None = None
    k_anchor: int = 0
    moves: tuple[tuple[float, Key], ...] = ()  # coefficients and keys of the directions that led to x
    wary: int = 0  # steps for which another iterate without a value would damp the step
    rises: int = 0  # steps in a row that started above the anchor
    damping: float = 1.0  # of the "auto" step
    size: float = math.nan  # "local": mean of g'p, the slope along the step p, over a short time
    power: float = math.nan  # "local": mean of g'p / size
    bend: float = math.nan  # "local": mean of p'Ap / size, the curvature along the step
    moved: tuple[float, float] = (0.0, 0.0)  # "local": h and g'p of the last step, whose p'Ap the next values tell


@dataclass(frozen=True, init=False, repr=False)
class RandomGradient(Settings):
    r"""Step along random directions by their slopes: gradient descent at the price of a few values a step.

    .. math:: x_{k+1} = x_k - \frac{h}{m} \sum_{j=1}^m s_j u_j, \qquad s_j \approx u_j' \nabla f(x_k)

    =============  ======  ==================  ==============================================================
    setting        symbol  default             source
    =============  ======  ==================  ==============================================================
    step           h       "auto"              "auto" 1/(tr/m + L(1+1/m)), for m=1 1/(tr+2L); "local", below;
                                               "paper" 1/(12 tr) (Theorem 1); "nesterov" 1/(4(d+4)L) [2];
                                               or a number
    trace          tr A    estimated           16 second differences (32 values and a few to find the radius)
    smoothness     L       estimated           the same values: sqrt(Var u'Au / 2) = |A|_F >= L
    batch          m       "auto"              directions per step, asked in one query; "auto" is 1, and with a pool
                                               of w workers w - 1: with f(x) one query keeps all of them busy
    directions     u       "signs"             "signs", "gaussian" (the paper), "sphere", "axis"
    difference             "auto"              "forward", "central"; "auto" is central in noise
    radius         rho     from the noise      1.3 sqrt(delta/tr) forward, sqrt(60 delta/tr) central
    noise          delta   "auto"              level of the noise of f; 0 is exact; "auto" spends about 8 values
    =============  ======  ==================  ==============================================================

    **step="local"** follows the local effective dimension, as the paper suggests, and spends no value on estimates.
    Slopes are central.  With p = (1/m) sum s_j u_j the slope along the step is g'p = (1/m) sum s_j^2, so the means of
    the pairs before and after a step tell its curvature, p'Ap = 2 (f+ - f + h g'p) / h^2.  The step h = E g'p / E p'Ap,
    with means over about 100 steps, is the one of steepest expected descent: for Gaussian directions and m = 1 it is
    1/(tr + 2 g'Ag/|g|^2), the trace and the curvature along the gradient where the run is.  The first pair, with f(x0),
    tells the first curvature; a step that led up is taken back.  `noise="auto"` then means round-off: give the level of
    the noise if there is one.

    **Cost.** m + 1 values a step (2m central); no vector beyond x is held (one with `step="auto"`); width m.

    **Guarantee.** On a convex quadratic with h = 1/(tr+2L), E f falls by the factor 1 - mu/(tr+2L) a step: about
    ED_1/mu log(1/eps) values, no d in it (8 to 24 times fewer than the bound of Theorem 1; needs h < 2/(tr+2L)).
    "paper" contracts by 1 - mu/(24 tr) (Theorem 1).  Signs never do worse than Gaussian directions (Lemma 2).

    **Departures.** Forward slopes lose r tr/2, their expected curvature, which the paper leaves in (not with "paper"
    and "nesterov", which are as printed, nor where step and radius are given and the trace is not).  With `step="auto"`
    the trace is estimated again each time the number of steps since the last estimate has doubled, and after 10 steps
    in a row that began above the last estimate's value the run returns there with half the step: the paper takes tr A
    and L for known.  An iterate without a value is given up for the one before it, found again from its seeds.

    >>> import numpy as np
    >>> from fewdim import minimize
    >>> result = minimize(lambda x: x @ x, np.ones(50), method=RandomGradient(), maxfev=2000, rng=0)
    >>> result.fun < 1e-3
    True

    References
    ----------
    [1] Yue, Yang, Fang, Lin. Zeroth-order optimization with weak dimension dependency. COLT 2023. Algorithm 1.
    [2] Nesterov, Spokoiny. Random gradient-free minimization of convex functions. Found. Comput. Math. 17, 2017.
    """

    step_: float | Step
    trace: float | None
    smoothness: float | None
    batch: int | Literal["auto"]
    directions: str
    difference: str
    radius: float | None
    noise: float | Literal["auto"]

    def __init__(
        self,
        *,
        step: float | Step = "auto",
        trace: float | None = None,
        smoothness: float | None = None,
        batch: int | Literal["auto"] = "auto",
        directions: str = "signs",
        difference: Literal["auto", "forward", "central"] = "auto",
        radius: float | None = None,
        noise: float | Literal["auto"] = "auto",
    ) -> None:
        self._set(step=step, trace=trace, smoothness=smoothness, batch=batch)
        self._set(directions=directions, difference=difference, radius=radius, noise=noise)
        if isinstance(step, str):
            check_choice(self, STEPS, step=step)
            if step == "local" and difference == "forward":
                raise ValueError('RandomGradient(step="local") needs central differences; got difference="forward".')
        else:
            check_positive(self, step=step)
        check_positive(self, trace=trace, smoothness=smoothness, radius=radius)
        if batch != "auto":
            check_count(self, batch=batch)
        check_choice(self, LAWS, directions=directions)
        check_choice(self, ("auto", "forward", "central"), difference=difference)
        check_noise(self, noise)

    @property
    def adaptive(self) -> bool:
        """Whether the step follows estimates, so that the run may ask for new ones."""
        return self.step_ == "auto" and (self.trace is None or self.smoothness is None)

    @property
    def count(self) -> int:
        return 1 if self.batch == "auto" else self.batch

    def fit(self, width: int) -> RandomGradient:
        """The same method with a batch of "auto" that keeps `width` workers busy."""
        return changed(self, batch=max(1, width - 1)) if self.batch == "auto" else self

    @property
    def cost(self) -> Cost:
        m = self.count
        if self.step_ == "local":
            return Cost(2 * m, 2 * m + 1, vectors=0)
        fewest = 2 * m if self.difference == "central" else m + 1
        most = m + 1 if self.difference == "forward" else max(2 * m, m + 1)
        return Cost(fewest, most + (18 if self.adaptive else 0), vectors=1 if self.adaptive else 0)

    def start(self, x: Vector, key: Key) -> RandomGradientState:
        return RandomGradientState(x, key)

    def done(self, state: RandomGradientState) -> bool:
        return False

    def step(self, state: RandomGradientState) -> Steps[RandomGradientState]:
        if self.step_ == "local":
            state = yield from self._follow(state)
            return state
        s, fresh = state, True
        if s.scales is None:
            s = yield from self._review(s, s.x, 1.0)
        elif self.adaptive and s.rises >= PATIENCE and s.anchor is not None:
            s = yield from self._review(s, s.anchor, 0.5 * s.damping)
        elif self.adaptive and s.k - s.k_anchor >= max(FIRST_REVIEW, s.k_anchor):
            s = yield from self._review(s, s.x, s.damping)
        else:
            fresh = False
        scales = s.scales
        assert scales is not None
        found = yield from slopes(
            s.x,
            self.directions,
            (*s.key, s.k),
            self.count,
            scales,
            f_last=scales.f_x if math.isnan(s.f_x) else s.f_x,
            f_x=s.f_x if fresh else math.nan,
            radius=self.radius,
            difference=self.difference,
            corrected=self.step_ not in ("paper", "nesterov") and (self.radius is None or self.trace is not None),
        )
        if math.isnan(found.f_x):  # nothing came: back by a step, and when that does not help, on by shorter ones
            damping = 0.3 * s.damping if s.wary and self.adaptive else s.damping
            return evolve(s, x=self._undone(s), moves=(), k=s.k + 1, wary=2, damping=damping)
        x, m = s.x, len(found.directions)
        coefficients = found.slopes
        if m:  # x - (h/m) sum s_j u_j, the iteration of Algorithm 1
            coefficients = -s.damping * self._step(scales, s.x.size) / m * found.slopes
            x = accumulate(s.x, coefficients, found.directions)
        above = found.f_x > scales.f_x + 3 * scales.resolution.noise
        rises, damping, wary = s.rises + 1 if above else 0, min(1.0, RECOVERY * s.damping), max(0, s.wary - 1)
        moves = _moves(coefficients, found)
        return evolve(s, x=x, moves=moves, k=s.k + 1, f_x=found.f_x, wary=wary, rises=rises, damping=damping)

    def _undone(self, s: RandomGradientState) -> Vector:
        """The iterate before x, to the rounding of the step: it is taken back along the same seeded directions."""
        back = accumulate(s.x, [-c for c, _ in s.moves], [LAWS[self.directions](key) for _, key in s.moves])
        return back if s.anchor is None or np.isfinite(back).all() else s.anchor

    def _follow(self, s: RandomGradientState) -> Steps[RandomGradientState]:
        """One step of "local"."""
        scales, m, f_x = s.scales, self.count, math.nan
        if math.isnan(s.bend):
            f_x = yield from value(s.x)
        if scales is None:
            resolution = Resolution(0.0 if self.noise == "auto" else float(self.noise))
            scales = Scales(f_x, resolution, math.nan, math.nan, Reach.of(s.x))
        if math.isnan(s.bend):  # wider each time that no curvature was seen
            guess = 1e-4 * 10.0 ** min(s.k, 12) * scale_of(s.x)
        else:
            guess = central_radius(scales.resolution.at(scales.f_x), scales.trace)
        radius = scales.reach.clip(guess if self.radius is None else self.radius)
        line = yield from differences(s.x, self.directions, (*s.key, s.k), m, radius, central=True, f_x=f_x)
        s = evolve(s, k=s.k + 1, scales=scales)
        if math.isnan(line.f_x):  # nothing came: back by a step
            return evolve(s, x=self._undone(s), moves=(), moved=(0.0, 0.0))
        if not line.directions:
            return s
        g_p = float(np.sum(line.slopes**2)) / m
        s = self._learn(s, line.f_x, g_p, line.curvatures, radius)
        if math.isnan(s.bend):
            return s
        if s.moves and line.f_x > s.f_x + 3 * scales.resolution.noise:
            return evolve(s, x=self._undone(s), moves=(), moved=(0.0, 0.0))  # it led up: take it back, wiser
        h = s.power / max(s.bend, 1e-300)
        coefficients = -h / len(line.directions) * line.slopes
        known = scales._replace(f_x=line.f_x, trace=m * s.bend / s.power)
        x = accumulate(s.x, coefficients, line.directions)
        return evolve(s, x=x, moves=_moves(coefficients, line), f_x=line.f_x, scales=known, moved=(h, g_p))

    def _learn(
        self, s: RandomGradientState, mean: float, g_p: float, curvatures: Values, radius: float
    ) -> RandomGradientState:
        """Take into the averages what the pairs tell: the curvature of the last step, at the start their own."""
        h, last = s.moved
        if math.isnan(s.bend):
            c = float(np.mean(np.abs(curvatures)))
            assert s.scales is not None
            if not (g_p > 0 and c * radius**2 >= visible(s.scales.resolution, mean)):
                return s
            return evolve(s, size=g_p, power=1.0, bend=3 * c / self.count)  # tr + 2L <= 3 tr: the safe side
        size = s.size + (last - s.size) / SHORT
        if h**2 == 0 or not size > 0:
            return s
        bend = abs(2 * (mean - s.f_x + h * last) / h**2)
        share = 1 / min(SHORT + s.k, MEMORY)
        power, bend = s.power + share * (last / size - s.power), s.bend + share * (bend / size - s.bend)
        return evolve(s, size=size, power=power, bend=bend)

    def _review(self, s: RandomGradientState, x: Vector, damping: float) -> Steps[RandomGradientState]:
        """Measure at x what is not given, and make x the anchor."""
        trace, smoothness = self._given(x.size)
        scales = yield from measure(
            x,
            (*s.key, s.k, 2 * self.count, 0),
            noise=self.noise,
            trace=trace,
            smoothness=smoothness,
            known=s.scales,
            pairs=16 if isinstance(self.step_, str) else 2,  # for the radius two are enough
        )
        if scales is s.scales:  # no value at x: nothing was learnt, and f(x) is asked again with the slopes
            return evolve(s, x=x, f_x=math.nan, k_anchor=s.k, rises=0, damping=damping)
        s = evolve(s, x=x, f_x=scales.f_x, scales=scales, k_anchor=s.k, rises=0, damping=damping)
        return evolve(s, anchor=x) if self.adaptive else s

    def _given(self, d: int) -> tuple[float | None, float | None]:
        """Trace and smoothness as far as the settings tell them, or bounds that the step does not depend on."""
        trace, smoothness = self.trace, self.smoothness
        if self.step_ == "paper":
            return trace, trace if smoothness is None else smoothness
        if self.step_ == "nesterov":
            return d * smoothness if trace is None and smoothness is not None else trace, smoothness
        if not isinstance(self.step_, str):
            if self.radius is not None and trace is None:
                trace = 1 / self.step_  # not used
            return trace, 1 / self.step_ if smoothness is None else smoothness
        return trace, smoothness

    def _step(self, scales: Scales, d: int) -> float:
        tr, L, m = scales.trace, scales.smoothness, self.count
        if self.step_ == "auto":
            return 1 / (tr / m + L * (1 + 1 / m))
        if self.step_ == "paper":
            return 1 / (12 * tr)  # Theorem 1
        return 1 / (4 * (d + 4) * L) if self.step_ == "nesterov" else float(self.step_)


def _moves(coefficients: Values, found: Lines) -> tuple[tuple[float, Key], ...]:
    return tuple(zip(coefficients.tolist(), [u.key for u in found.directions], strict=True))
