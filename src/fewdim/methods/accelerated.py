"""The two-step accelerated random gradient: what does hold of the paper's acceleration."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fewdim.core import Cost, Steps, evolve
from fewdim.directions import LAWS, Key, Vector, accumulate
from fewdim.methods.settings import Settings, check_choice, check_count, check_noise, check_positive, check_spectrum
from fewdim.scales import Measured, Scales, measure, slopes
from fewdim.theory import Exact, effective_count, scale_of_count, two_step

WINDOW = 0.1  # times 1/alpha: steps over which values are averaged to decide on a restart
MISSES = 4  # steps in a row without a slope after which the drift is dropped


class Constants(NamedTuple):
    """The step h of x, the step theta/alpha of the drift, and mu (0 when unknown)."""

    step: float
    theta: float
    mu: float


@dataclass(frozen=True)
class AcceleratedState(Measured):
    """Between two steps of `Accelerated`; a drift of None is rest."""

    x: Vector
    key: Key
    k: int = 0
    drift: Vector | None = None  # w = v - x
    gamma: float = math.nan  # weight of |v - x*|^2 / 2 in the potential; nan at rest
    f_x: float = math.nan  # at the point y of the last step
    scales: Scales | None = None
    constants: Constants | None = None
    misses: int = 0  # steps in a row that got no slope
    total: float = 0.0  # of the values in the current window
    count: int = 0
    previous: float = math.inf  # mean value of the window before


@dataclass(frozen=True, init=False, repr=False)
class Accelerated(Settings):
    r"""Accelerated random gradient: two sequences with different steps, scaled by the trace.

    .. math:: y = x + \beta w, \quad x^+ = y - h \hat g, \quad w^+ = (1-\lambda)(1-\beta) w - (\theta/\alpha - h) \hat g

    where :math:`\hat g = \frac1m \sum_j s_j u_j` at y and w = v - x.  With mu known, alpha = sqrt(theta mu),
    beta = alpha/(1+alpha), lambda = alpha.

    ==================  ======  ============  ================================================================
    setting             symbol  default       source
    ==================  ======  ============  ================================================================
    constants                   "proved"      "proved": h = 1/(tr/m + L(1+1/m)), theta = h/((d+1)/m + 1);
                                              "sharp" (needs `spectrum`): h = .5/tr, k^2 N(k) = 2.8 mu/h,
                                              theta = .6 h/N(k), alpha = sqrt(1.15 theta mu); where the exact
                                              moments say that this is unstable, h = .5/(tr+2L), theta = .3 h/N(k);
                                              where that is, too, "proved";
                                              "nesterov": h = 1/(4(d+4)L), theta = 1/(16 (d+1)^2 L) [2]
    strong_convexity    mu      None          None: adaptive restarts, below
    trace, smoothness   tr, L   estimated     about 36 values
    spectrum                                  the eigenvalues of A: gives tr, L and mu
    batch               m       1             directions per step
    directions          u       "signs"       "signs", "gaussian", "sphere", "axis"
    radius              rho     by noise      as in `RandomGradient`
    noise               delta   "auto"        as in `RandomGradient`
    ==================  ======  ============  ================================================================

    **mu unknown.** The weights follow alpha^2/theta = (1-alpha) gamma, gamma+ = (1-alpha) gamma from gamma = tr A: the
    scheme for convex functions, f - f* = O(1/(theta k^2)).  Values at y are averaged over windows of 1/(10 alpha)
    steps; when a window's mean is above that of the window before, momentum has outrun the problem: w = 0 and gamma =
    tr A again.

    **Cost.** m + 1 values a step (2m in noise); 2 vectors beyond x; width m.

    **Guarantee.** "proved" on a convex quadratic: f(x) - f* + (mu/2)|v - x*|^2 contracts by 1 - alpha a step in
    expectation, alpha = sqrt(mu h/(d+2)), so sqrt(d ED_1/mu) log(1/eps) values.  "sharp" is mean-square stable by
    the exact moments, which it checks, and takes 0.6 to 1.05 times the evaluations; its rate is not proved.  Gains over
    `RandomGradient` come only at high accuracy and with eigenvalues that decay like i^-1.5 or faster.

    **Departures.** The paper mentions this rate and dismisses it for Algorithm 2, whose rate is not true (`HeavyBall`).
    Trace and smoothness are measured once, at the start: where curvature grows along the run, use `RandomGradient`.

    >>> import numpy as np
    >>> from fewdim import minimize
    >>> result = minimize(lambda x: x @ x, np.ones(50), method=Accelerated(), maxfev=3000, rng=0)
    >>> result.fun < 1e-3
    True

    References
    ----------
    [1] Yue, Yang, Fang, Lin. Zeroth-order optimization with weak dimension dependency. COLT 2023. Section 5.
    [2] Nesterov, Spokoiny. Random gradient-free minimization of convex functions. Found. Comput. Math. 17, 2017.
    """

    constants: str
    strong_convexity: float | None
    trace: float | None
    smoothness: float | None
    spectrum: tuple[float, ...] | None
    batch: int
    directions: str
    radius: float | None
    noise: float | Literal["auto"]

    def __init__(
        self,
        *,
        constants: Literal["proved", "sharp", "nesterov"] = "proved",
        strong_convexity: float | None = None,
        trace: float | None = None,
        smoothness: float | None = None,
        spectrum: Iterable[float] | None = None,
        batch: int = 1,
        directions: str = "signs",
        radius: float | None = None,
        noise: float | Literal["auto"] = "auto",
    ) -> None:
        eigenvalues = check_spectrum(self, spectrum)
        self._set(constants=constants, strong_convexity=strong_convexity, trace=trace, smoothness=smoothness)
        self._set(spectrum=eigenvalues, batch=batch, directions=directions, radius=radius, noise=noise)
        check_choice(self, ("proved", "sharp", "nesterov"), constants=constants)
        check_positive(self, strong_convexity=strong_convexity, trace=trace, smoothness=smoothness, radius=radius)
        check_count(self, batch=batch)
        check_choice(self, LAWS, directions=directions)
        check_noise(self, noise)
        if constants == "sharp" and (eigenvalues is None or batch != 1 or self._mu() == 0):
            raise ValueError(
                'Accelerated(constants="sharp") needs spectrum= with positive eigenvalues (or strong_convexity=) and '
                f"batch=1; got spectrum={'given' if eigenvalues else None}, batch={batch}."
            )

    @property
    def cost(self) -> Cost:
        return Cost(self.batch + 1, max(2 * self.batch, self.batch + 1), vectors=2)

    def start(self, x: Vector, key: Key) -> AcceleratedState:
        return AcceleratedState(x, key)

    def done(self, state: AcceleratedState) -> bool:
        return False

    def step(self, state: AcceleratedState) -> Steps[AcceleratedState]:
        s, fresh = state, False
        if s.scales is None:
            found = yield from self._measure(s)
            s = evolve(s, scales=found, f_x=found.f_x, constants=self._constants(found, s.x.size))
            fresh = True
        scales, c = s.scales, s.constants
        assert scales is not None
        assert c is not None
        gamma = (c.mu or scales.trace) if s.drift is None else s.gamma
        # Nesterov and Spokoiny, method FG: alpha^2 / theta = (1 - alpha) gamma + alpha mu = gamma+
        alpha = _weight(c.theta, gamma, c.mu)
        gamma_next = (1 - alpha) * gamma + alpha * c.mu
        beta = alpha * gamma / (gamma + alpha * c.mu)
        decay = (1 - alpha * c.mu / gamma_next) * (1 - beta)
        y = s.x if s.drift is None else accumulate(s.x, (beta,), (s.drift,))
        line = yield from slopes(
            y,
            self.directions,
            (*s.key, s.k),
            self.batch,
            scales,
            f_last=s.f_x,
            f_x=s.f_x if fresh else math.nan,
            radius=self.radius,
            corrected=self.constants != "nesterov",
        )
        s = evolve(s, k=s.k + 1)
        if not line.directions:  # no value there; after a few times in a row, look again from x
            return evolve(s, misses=s.misses + 1, drift=s.drift if s.misses < MISSES else None)
        weights = line.slopes / len(line.directions)
        x = accumulate(y, -c.step * weights, line.directions)
        rest = np.zeros_like(y) if s.drift is None else s.drift * y.dtype.type(decay)
        drift = accumulate(rest, -(c.theta / alpha - c.step) * weights, line.directions, out=rest)
        s = evolve(s, x=x, drift=drift, gamma=gamma_next, f_x=line.f_x, misses=0)
        return s if c.mu else _restarted(s, window=math.ceil(WINDOW / alpha))

    def _measure(self, s: AcceleratedState) -> Steps[Scales]:
        trace, smoothness, d = self.trace, self.smoothness, s.x.size
        if self.spectrum is not None:
            trace = sum(self.spectrum) if trace is None else trace
            smoothness = max(self.spectrum) if smoothness is None else smoothness
        if self.constants == "nesterov" and trace is None and smoothness is not None:
            trace = d * smoothness  # used for the radius only
        key = (*s.key, s.k, 2 * self.batch, 0)
        scales = yield from measure(s.x, key, noise=self.noise, trace=trace, smoothness=smoothness)
        return scales

    def _mu(self) -> float:
        """Mu from the settings or the spectrum; 0 when unknown."""
        if self.strong_convexity is not None:
            return self.strong_convexity
        return max(min(self.spectrum), 0.0) if self.spectrum is not None else 0.0

    def _constants(self, scales: Scales, d: int) -> Constants:
        tr, L, m, mu = scales.trace, scales.smoothness, self.batch, self._mu()
        if self.constants == "nesterov":
            return Constants(1 / (4 * (d + 4) * L), 1 / (16 * (d + 1) ** 2 * L), mu)
        if self.constants == "sharp":
            for h, share in ((0.5 / tr, 0.6), (0.5 / (tr + 2 * L), 0.3)):
                found = self._sharp(h, share, mu)
                if found is not None:
                    return found
        h = 1 / (tr / m + L * (1 + 1 / m))
        return Constants(h, h / ((d + 1) / m + 1), mu)

    def _sharp(self, h: float, share: float, mu: float) -> Constants | None:
        """Constants from N(k), or None where the exact second moments say that they are unstable."""
        eigenvalues = np.array(self.spectrum)
        count = effective_count(eigenvalues, scale_of_count(eigenvalues, 2.8 * mu / h))
        theta = share * h / count
        alpha = math.sqrt(1.15 * theta * mu)
        stable = Exact(two_step(alpha, h, theta), eigenvalues).stable
        return Constants(h, theta, 1.15 * mu) if stable else None


def _weight(theta: float, gamma: float, mu: float) -> float:
    """The root alpha in (0, 1) of alpha^2 / theta = (1 - alpha) gamma + alpha mu."""
    half = 0.5 * theta * (mu - gamma)
    return min(half + math.sqrt(half**2 + theta * gamma), 0.999)


def _restarted(s: AcceleratedState, window: int) -> AcceleratedState:
    """Count the value at y into its window; forget the momentum when a window's mean is above the last one's."""
    s = evolve(s, total=s.total + s.f_x, count=s.count + 1)
    if s.count < window:
        return s
    mean, before = s.total / s.count, s.previous
    s = evolve(s, total=0.0, count=0, previous=mean)
    return evolve(s, drift=None, previous=math.inf) if mean > before else s
