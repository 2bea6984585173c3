"""Random gradient: Algorithm 1 of the paper, RG_rho of Nesterov and Spokoiny."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from fewdim.core import Cost, Steps
from fewdim.directions import LAWS, Key, Vector, accumulate
from fewdim.methods.settings import Settings, changed, check_choice, check_count, check_noise, check_positive
from fewdim.scales import Measured, Scales, measure, slopes

Step = Literal["auto", "paper", "nesterov"]
PATIENCE = 10  # steps in a row above the anchor before "auto" goes back to it
FIRST_REVIEW = 50  # steps after which "auto" estimates the trace for the second time


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
    rises: int = 0  # steps in a row that started above the anchor
    damping: float = 1.0  # of the "auto" step


@dataclass(frozen=True, init=False, repr=False)
class RandomGradient(Settings):
    r"""Step along random directions by their slopes: gradient descent at the price of a few values a step.

    .. math:: x_{k+1} = x_k - \frac{h}{m} \sum_{j=1}^m s_j u_j, \qquad s_j \approx u_j' \nabla f(x_k)

    =============  ======  ==================  ==============================================================
    setting        symbol  default             source
    =============  ======  ==================  ==============================================================
    step           h       "auto"              "auto" 1/(tr/m + L(1+1/m)), for m=1 1/(tr+2L); "paper" 1/(12 tr)
                                               (Theorem 1); "nesterov" 1/(4(d+4)L) [2]; or a number
    trace          tr A    estimated           16 second differences (32 values and a few to find the radius)
    smoothness     L       estimated           the same values: sqrt(Var u'Au / 2) = |A|_F >= L
    batch          m       "auto"              directions per step, asked in one query; "auto" is 1, and with a pool
                                               of w workers w - 1: with f(x) one query keeps all of them busy
    directions     u       "signs"             "signs", "gaussian" (the paper), "sphere", "axis"
    difference             "auto"              "forward", "central"; "auto" is central in noise
    radius         rho     from the noise      1.3 sqrt(delta/tr) forward, sqrt(60 delta/tr) central
    noise          delta   "auto"              level of the noise of f; 0 is exact; "auto" spends about 8 values
    =============  ======  ==================  ==============================================================

    **Cost.** m + 1 values a step (2m central); one more vector than x is held (two with `step="auto"`); width m.

    **Guarantee.** On a convex quadratic with h = 1/(tr+2L), E f falls by the factor 1 - mu/(tr+2L) a step: about
    ED_1/mu log(1/eps) values, no d in it (Theorem 1 with its constant improved 12-fold; needs h < 2/(tr+2L)).
    "paper" contracts by 1 - mu/(24 tr) (Theorem 1).  Signs never do worse than Gaussian directions (Lemma 2).

    **Departures.** Forward slopes lose r tr/2, their expected curvature, which the paper leaves in (not with "paper"
    and "nesterov", which are as printed).  With `step="auto"` the trace is estimated again each time the number of
    steps since the last estimate has doubled, and after 10 steps in a row that began above the last estimate's value
    the run returns there with half the step: the paper takes tr A and L for known.

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
            check_choice(self, ("auto", "paper", "nesterov"), step=step)
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
        """M."""
        return 1 if self.batch == "auto" else self.batch

    def fit(self, width: int) -> RandomGradient:
        """The same method with a batch of "auto" that keeps `width` workers busy."""
        return changed(self, batch=max(1, width - 1)) if self.batch == "auto" else self

    @property
    def cost(self) -> Cost:
        m = self.count
        fewest = 2 * m if self.difference == "central" else m + 1
        most = m + 1 if self.difference == "forward" else max(2 * m, m + 1)
        return Cost(fewest, most + (18 if self.adaptive else 0), vectors=2 if self.adaptive else 1)

    def start(self, x: Vector, key: Key) -> RandomGradientState:
        return RandomGradientState(x, key)

    def done(self, state: RandomGradientState) -> bool:
        return False

    def step(self, state: RandomGradientState) -> Steps[RandomGradientState]:
        s, fresh = state, True
        if s.scales is None:
            s = yield from self._review(s, s.x, 1.0)
        elif self.adaptive and s.rises >= PATIENCE and s.anchor is not None:
            s = yield from self._review(s, s.anchor, 0.5 * s.damping)
        elif self.adaptive and s.k - s.k_anchor >= max(FIRST_REVIEW, s.k_anchor):
            s = yield from self._review(s, s.x, min(1.0, 2 * s.damping))
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
            f_last=s.f_x,
            f_x=s.f_x if fresh else math.nan,
            radius=self.radius,
            difference=self.difference,
            corrected=self.step_ not in ("paper", "nesterov"),
        )
        if math.isnan(found.f_x):  # no value at x; a few times in a row count as a rise above the anchor
            return replace(s, k=s.k + 1, rises=s.rises + 3)
        x, m = s.x, len(found.directions)
        if m:  # x - (h/m) sum s_j u_j, the iteration of Algorithm 1
            h = s.damping * self._step(scales, s.x.size)
            x = accumulate(s.x, -h / m * found.slopes, found.directions)
        above = found.f_x > scales.f_x + 3 * scales.resolution.noise
        return replace(s, x=x, k=s.k + 1, f_x=found.f_x, rises=s.rises + 1 if above else 0)

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
        )
        s = replace(s, x=x, f_x=scales.f_x, scales=scales, k_anchor=s.k, rises=0, damping=damping)
        return replace(s, anchor=x) if self.adaptive else s

    def _given(self, d: int) -> tuple[float | None, float | None]:
        """Trace and smoothness as far as the settings tell them, or bounds that the step does not depend on."""
        trace, smoothness = self.trace, self.smoothness
        if self.step_ == "paper":
            return trace, trace if smoothness is None else smoothness
        if self.step_ == "nesterov":
            return d * smoothness if trace is None and smoothness is not None else trace, smoothness
        if not isinstance(self.step_, str):
            return 1 / self.step_ if trace is None else trace, 1 / self.step_ if smoothness is None else smoothness
        return trace, smoothness

    def _step(self, scales: Scales, d: int) -> float:
        tr, L, m = scales.trace, scales.smoothness, self.count
        if self.step_ == "auto":
            return 1 / (tr / m + L * (1 + 1 / m))
        if self.step_ == "paper":
            return 1 / (12 * tr)  # Theorem 1
        if self.step_ == "nesterov":
            return 1 / (4 * (d + 4) * L)
        return float(self.step_)
