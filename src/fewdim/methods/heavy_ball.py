"""Zeroth-order heavy ball: Algorithm 2 of the paper, ZHB."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewdim.core import Cost, Steps, evolve
from fewdim.directions import LAWS, Key, Vector, accumulate
from fewdim.methods.settings import (
    Settings,
    check_choice,
    check_count,
    check_momentum,
    check_noise,
    check_positive,
    check_spectrum,
)
from fewdim.scales import Measured, Scales, measure, slopes
from fewdim.theory import Exact, heavy_ball, heavy_ball_load

DAMPING = 0.4  # beta of "stable": 1.0 to 1.2 times the iterations of random gradient for beta in [.3, .5]

MISSES = 4  # steps in a row without a slope after which the velocity is dropped


class StabilityWarning(UserWarning):
    """The constants of a method make it diverge on the spectrum that it was given."""


@dataclass(frozen=True)
class HeavyBallState(Measured):
    """Between two steps of `HeavyBall`; a velocity of None is rest."""

    x: Vector
    key: Key
    k: int = 0
    velocity: Vector | None = None
    f_x: float = math.nan  # at the look-ahead point of the last step
    scales: Scales | None = None
    step: float = math.nan  # h
    damping: float = math.nan  # beta
    misses: int = 0  # steps in a row that got no slope


@dataclass(frozen=True, init=False, repr=False)
class HeavyBall(Settings):
    r"""Random gradient with momentum, at the look-ahead point: the paper's Algorithm 2, with constants that hold.

    .. math:: y = x_k + (1-\beta) v_k, \quad x_{k+1} = y - \frac{h}{m} \sum_j s_j u_j, \quad v_{k+1} = x_{k+1} - x_k

    =================  ======  ==============  ================================================================
    setting            symbol  default         source
    =================  ======  ==============  ================================================================
    step               h       by `constants`  a number wins
    momentum           1-beta  by `constants`  a number in [0, 1) wins
    constants                  "stable"        "stable": beta = 0.4, h = beta/(tr/m + L(1+1/m));
                                               "paper": h = 1/(14400 ED_1/2)^2, beta = sqrt(h mu), as printed
    trace, smoothness  tr, L   estimated       for "stable"; about 36 values
    strong_convexity   mu                      for "paper"
    half_dimension     ED_1/2                  for "paper"
    spectrum                                   the eigenvalues of A: gives all four, and checks stability (for
                                               Gaussian directions: signs are no less stable)
    batch              m       1               directions per step
    directions         u       "signs"         "signs", "gaussian" (the paper), "sphere", "axis"
    radius             rho     from the noise  as in `RandomGradient`
    noise              delta   "auto"          as in `RandomGradient`
    =================  ======  ==============  ================================================================

    **Cost.** m + 1 values a step (2m in noise); 2 vectors beyond x; width m.

    **Guarantee.** Mean-square stable on a convex quadratic iff sum q/(1-q) < 1 (`fewdim.theory.heavy_ball_load`), to
    leading order N(2 beta/h) < 1 with N(k) = sum l/(l+k); "stable" satisfies it for every spectrum, since
    N(2(tr+2L)) <= tr/(2(tr+2L)) < 1/2.  Its rate is that of random gradient up to a constant, and in the limit of small
    steps so is that of every choice of (h, beta): rate <= 8 mu/(tr-L), unless one eigenvalue dominates the trace.

    **Departures.** Theorem 3 claims ED_1/2/sqrt(mu) for "paper" and is false: its constants diverge, for instance, on
    10 eigenvalues 1 and 100 eigenvalues 1e-10.  They are kept for study; a `StabilityWarning` says so when `spectrum`
    is given and fails the condition.  As printed, beta is set from h one line before h is set; h comes first.
    Trace and smoothness are measured once, at the start: where curvature grows along the run, use `RandomGradient`.

    >>> import numpy as np
    >>> from fewdim import minimize
    >>> result = minimize(lambda x: x @ x, np.ones(50), method=HeavyBall(), maxfev=3000, rng=0)
    >>> result.fun < 1e-3
    True

    References
    ----------
    Yue, Yang, Fang, Lin. Zeroth-order optimization with weak dimension dependency. COLT 2023. Algorithm 2, Theorem 3.
    """

    step_: float | None
    momentum: float | None
    constants: str
    trace: float | None
    smoothness: float | None
    strong_convexity: float | None
    half_dimension: float | None
    spectrum: tuple[float, ...] | None
    batch: int
    directions: str
    radius: float | None
    noise: float | Literal["auto"]

    def __init__(
        self,
        *,
        step: float | None = None,
        momentum: float | None = None,
        constants: Literal["stable", "paper"] = "stable",
        trace: float | None = None,
        smoothness: float | None = None,
        strong_convexity: float | None = None,
        half_dimension: float | None = None,
        spectrum: Iterable[float] | None = None,
        batch: int = 1,
        directions: str = "signs",
        radius: float | None = None,
        noise: float | Literal["auto"] = "auto",
    ) -> None:
        eigenvalues = check_spectrum(self, spectrum)
        self._set(step=step, momentum=momentum, constants=constants, trace=trace, smoothness=smoothness)
        self._set(strong_convexity=strong_convexity, half_dimension=half_dimension, spectrum=eigenvalues)
        self._set(batch=batch, directions=directions, radius=radius, noise=noise)
        check_positive(self, step=step, trace=trace, smoothness=smoothness, radius=radius)
        check_positive(self, strong_convexity=strong_convexity, half_dimension=half_dimension)
        check_momentum(self, momentum)
        check_choice(self, ("stable", "paper"), constants=constants)
        check_count(self, batch=batch)
        check_choice(self, LAWS, directions=directions)
        check_noise(self, noise)
        if constants == "paper":
            self._paper()
        if eigenvalues is not None:
            self._warn_if_unstable(np.array(eigenvalues))

    @property
    def cost(self) -> Cost:
        return Cost(self.batch + 1, max(2 * self.batch, self.batch + 1), vectors=2)

    def start(self, x: Vector, key: Key) -> HeavyBallState:
        return HeavyBallState(x, key)

    def done(self, state: HeavyBallState) -> bool:
        return False

    def step(self, state: HeavyBallState) -> Steps[HeavyBallState]:
        s, fresh = state, False
        if s.scales is None:
            found = yield from self._measure(s)
            h, beta = self._constants(found.trace, found.smoothness)
            s, fresh = evolve(s, scales=found, f_x=found.f_x, step=h, damping=beta), True
        scales, h, beta = s.scales, s.step, s.damping
        assert scales is not None
        y = s.x if s.velocity is None else accumulate(s.x, (1 - beta,), (s.velocity,))
        line = yield from slopes(
            y,
            self.directions,
            (*s.key, s.k),
            self.batch,
            scales,
            f_last=s.f_x,
            f_x=s.f_x if fresh else math.nan,
            radius=self.radius,
            corrected=self.constants != "paper" and (self.radius is None or self._known()[0] is not None),
        )
        if not line.directions:  # no value there; after a few times in a row, look again from x
            return evolve(s, k=s.k + 1, misses=s.misses + 1, velocity=s.velocity if s.misses < MISSES else None)
        x = accumulate(y, -h / len(line.directions) * line.slopes, line.directions)
        return evolve(s, x=x, velocity=x - s.x, k=s.k + 1, f_x=line.f_x, misses=0)

    def _measure(self, s: HeavyBallState) -> Steps[Scales]:
        trace, smoothness = self._known()
        if self.constants == "paper" or (self.step_ is not None and self.momentum is not None):
            if trace is None and self.half_dimension is not None:
                trace = self.half_dimension**2  # tr A <= ED_1/2^2; for the radius only
            smoothness = 1.0 if smoothness is None else smoothness  # not used
        key = (*s.key, s.k, 2 * self.batch, 0)
        scales = yield from measure(
            s.x, key, noise=self.noise, trace=trace, smoothness=smoothness, pairs=2 if smoothness else 16
        )
        return scales

    def _known(self) -> tuple[float | None, float | None]:
        """Trace and smoothness from the settings, or from the spectrum."""
        if self.spectrum is None:
            return self.trace, self.smoothness
        trace = sum(self.spectrum) if self.trace is None else self.trace
        return trace, max(self.spectrum) if self.smoothness is None else self.smoothness

    def _constants(self, trace: float, smoothness: float) -> tuple[float, float]:
        """H and beta."""
        if self.constants == "paper":
            half, mu = self._paper()
            h = 1 / (14400 * half) ** 2 if self.step_ is None else self.step_
            beta = math.sqrt(h * mu)
        else:
            beta = DAMPING if self.momentum is None else 1 - self.momentum
            h = beta / (trace / self.batch + smoothness * (1 + 1 / self.batch)) if self.step_ is None else self.step_
        return h, beta if self.momentum is None else 1 - self.momentum

    def _paper(self) -> tuple[float, float]:
        """ED_1/2 and mu, which the paper's constants need."""
        half, mu = self.half_dimension, self.strong_convexity
        if self.spectrum is not None:
            half = sum(map(math.sqrt, self.spectrum)) if half is None else half
            mu = min(self.spectrum) if mu is None else mu
        if half is None or mu is None or mu <= 0:
            name = "strong_convexity" if half is not None else "half_dimension"
            raise ValueError(
                f'HeavyBall(constants="paper") needs half_dimension= and strong_convexity=, or spectrum= with positive '
                f"eigenvalues; {name} is {mu if half is not None else half}."
            )
        return half, mu

    def _warn_if_unstable(self, spectrum: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
        trace, smoothness = self._known()
        assert trace is not None
        assert smoothness is not None
        h, beta = self._constants(trace, smoothness)
        if self.batch == 1:
            load = heavy_ball_load(spectrum, h, beta)
            unstable, why = load >= 1, f"sum q/(1-q) = {load:.3g} must be below 1"
        else:
            radius = Exact(heavy_ball(h, 1 - beta, self.batch), spectrum).radius
            unstable, why = radius > 1, f"its moments grow by {radius:.3g} a step"
        if unstable:
            warnings.warn(
                f"HeavyBall diverges in mean square on this spectrum: {why} "
                f"(step {h:.3g}, 1 - momentum {beta:.3g}, Gaussian directions).",
                StabilityWarning,
                stacklevel=3,
            )
