"""Large-step A-NPE: Algorithms 4 and 6 of the paper, and the variant without bisection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from fewdim.core import Steps, evolve
from fewdim.directions import Key, Vector
from fewdim.lines import value_at
from fewdim.methods.inner import RANDOM, Inner, check_inner
from fewdim.methods.lambda_search import LargeStepState, bisected, moved
from fewdim.methods.settings import Settings, check_choice, check_count, check_noise, check_positive
from fewdim.methods.subproblem import Local, Trial, bend_of, length_of, look, watched
from fewdim.oracles.second_order import Gradient, central_gradient
from fewdim.scales import measure

ETA = 0.1  # |residual of the model| <= ETA mu |s|
MARGIN = 3.0  # M is kept at so many times what the last step has shown to be needed
FASTEST = 8.0  # by which M may fall in one step
FACTOR = 2.0  # by which the damping follows the shift


class Accepted(NamedTuple):
    """A step that meets the certificate, f and the gradient where it leads, and M for the next one."""

    trial: Trial
    f_n: float
    gradient: Gradient
    M: float


@dataclass(frozen=True, eq=False, repr=False)
class LargeStep(Settings):
    r"""Accelerated proximal steps on the second-order model, as long as a certificate allows: for convex functions.

    .. math:: \tilde x = \frac{A y + a x}{A + a}, \quad
              y^+ \approx \arg\min f_{\tilde x} + \tfrac{1}{2\lambda} |\cdot - \tilde x|^2, \quad
              x^+ = x - a \nabla f(y^+), \quad a^2 = \lambda (A + a)

    with the certificate :math:`|\lambda \nabla f(y^+) + y^+ - \tilde x| \le \sigma |y^+ - \tilde x|`, the gradient by
    central differences.  Iterates y are the answer (`state.x`), x is `state.v`.

    =================  ========  ==============  ==================================================================
    setting            symbol    default         source
    =================  ========  ==============  ==================================================================
    constants                    "adaptive"      "adaptive": lambda = 1/(M|y-x~|), M by the certificate, momentum
                                                 damped where lambda came out smaller than hoped [3]: no bisection;
                                                 "paper": Algorithms 4 and 6, window 2 sigma_l/H .. 2 sigma_u/H
    inner                        "auto"          "krylov", "dense", "two-step", "random-gradient", "heavy-ball", or a
                                                 method that is run on the model; "auto" is "krylov", and Algorithm 2
                                                 on Algorithm 3 ("heavy-ball") with constants="paper".  With a random
                                                 solver or a method lambda is searched by bisection
    inner_steps                  20000           most steps of such a solver
    products                     60              most Hessian-vector products a step
    sigma              sigma     0.5; 0.9        of the certificate; 0.9 where lambda is searched.  sigma_u is half of
                                                 it, sigma_l a quarter
    hessian_lipschitz  H         None            first M; for "paper" the constant itself
    smoothness         L         None            for "paper"
    half_dimension     ED_1/2    None            for "paper" with Algorithm 2
    distance           D         None            for "paper" and `epsilon`: bound of |x_0 - x*|
    iterations         N         100             for "paper": gradients to the error D/(N^3/2 a)
    model_error        delta     1e-6            for "paper": of Algorithm 3
    epsilon            eps       None            stop at lambda >= D^2/eps or D^2/(2A) <= eps; None: at round-off
    noise              delta     "auto"          level of the noise of f; 0 is exact; "auto" spends 2 values,
                                                 8 more on noise, and again at steps 1, 2, 4, 8, ...
    =================  ========  ==============  ==================================================================

    **Cost.** 4d + 2 values a step and d + 1 for each product, in queries of 2d and d + 1; one more for each M that f
    itself refuses, 2d + 1 for each that the certificate does.  3 vectors and 2 for each product.

    **Guarantee.** For convex f, f(y_k) - f* <= D^2/(2 A_k) while certificates hold, and A_k = Omega(k^7/2/(DH)) [2, 3];
    `result.bound` is that number, with the distance travelled for D where `distance` is not given.

    **Departures.** The paper's doubling and halving of lambda jumps over its window and need not end: here it brackets,
    then bisects in log lambda.  Its x~ is built inside the search, y_0 = x_0; Algorithm 3 is corrected as in
    `SecondOrderModel`; the accuracy eps_B of its inner solutions cannot be known, so the inner solver runs
    `inner_steps` steps, or to a residual.  Its rate D ED_1/2 eps^-1/2 rests on its Theorem 3 and is not true.
    "auto" is "krylov" at every d: with the whole Hessian a run takes more than twice the evaluations at d = 31.

    >>> import numpy as np
    >>> from fewdim import minimize
    >>> result = minimize(lambda x: np.logaddexp(0, x).sum() + x @ x, np.ones(20), method=LargeStep(), rng=0)
    >>> gap = result.fun - 12.7515790766
    >>> bool(abs(gap) < 1e-9), bool(gap <= result.bound < 1e-3)
    (True, True)

    References
    ----------
    [1] Yue, Yang, Fang, Lin. Zeroth-order optimization with weak dimension dependency. COLT 2023. Algorithms 3 to 6.
    [2] Monteiro, Svaiter. An accelerated hybrid proximal extragradient method. SIAM J. Optim. 23, 2013.
    [3] Carmon, Hausler, Jambulapati, Jin, Sidford. Optimal and adaptive Monteiro-Svaiter acceleration. NeurIPS 2022.
    """

    constants: Literal["adaptive", "paper"] = "adaptive"
    inner: Any = "auto"
    inner_steps: int = 20_000
    products: int = 60
    sigma: float | None = None
    hessian_lipschitz: float | None = None
    smoothness: float | None = None
    half_dimension: float | None = None
    distance: float | None = None
    iterations: int = 100
    model_error: float = 1e-6
    epsilon: float | None = None
    noise: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_choice(self, ("adaptive", "paper"), constants=self.constants)
        check_inner(self, self.inner)
        check_count(self, inner_steps=self.inner_steps, products=self.products, iterations=self.iterations)
        check_positive(self, hessian_lipschitz=self.hessian_lipschitz, smoothness=self.smoothness)
        check_positive(self, half_dimension=self.half_dimension, distance=self.distance, epsilon=self.epsilon)
        check_positive(self, model_error=self.model_error)
        check_noise(self, self.noise)
        check_positive(self, sigma=self.sigma)
        if self.sigma is not None and not self.sigma < 1:
            raise ValueError(f"LargeStep(sigma=...) must lie in (0, 1); got {self.sigma!r}.")
        needed = {"hessian_lipschitz": self.hessian_lipschitz, "distance": self.distance, "smoothness": self.smoothness}
        if self.how.printed and self.how.solver == "heavy-ball":
            needed["half_dimension"] = self.half_dimension
        missing = [name for name, given in needed.items() if given is None]
        if self.constants == "paper" and missing:
            raise ValueError(f'LargeStep(constants="paper") needs {missing[0]}=; got None.')
        if self.epsilon is not None and self.distance is None:
            raise ValueError(f"LargeStep(epsilon=...) needs distance=; got epsilon={self.epsilon!r} without.")

    @property
    def how(self) -> Inner:
        """How sub-problems are solved."""
        printed = self.constants == "paper"
        auto = "heavy-ball" if printed else "krylov"
        solver = auto if isinstance(self.inner, str) and self.inner == "auto" else self.inner
        eta = ETA if self.free else 0.5 * (0.9 if self.sigma is None else self.sigma)
        return Inner(
            solver, self.inner_steps, self.products, eta, printed,
            self.smoothness, self.hessian_lipschitz, self.half_dimension, self.model_error,
        )  # fmt: skip

    @property
    def free(self) -> bool:
        """Whether lambda is had without a search: the model serves all shifts."""
        return self.constants == "adaptive" and isinstance(self.inner, str) and self.inner not in RANDOM

    def start(self, x: Vector, key: Key) -> LargeStepState:
        return LargeStepState(x, key)

    def done(self, state: LargeStepState) -> bool:
        return bool(state.end)

    def step(self, state: LargeStepState) -> Steps[LargeStepState]:
        s = state
        if s.scales is None:
            s = yield from self._measured(s)
        assert s.scales is not None
        scales = yield from watched(s.x, s.scales, self.noise, s.k, (*s.key, s.k, 3))
        s = evolve(s, scales=scales)
        if self.free:
            s = yield from self._free(s)
        else:
            s = yield from bisected(
                s, self.how, 0.9 if self.sigma is None else self.sigma, self.distance, self.iterations
            )
        s = evolve(s, k=s.k + 1)
        if self.epsilon is not None and self.distance is not None and not s.end:
            near = s.lam >= self.distance**2 / self.epsilon or s.bound <= self.epsilon
            return evolve(s, end="epsilon") if near else s
        return s

    def _measured(self, s: LargeStepState) -> Steps[LargeStepState]:
        pairs = 2 if self.free or self.constants == "paper" else 16
        scales = yield from measure(s.x, (*s.key, s.k, 0), noise=self.noise, pairs=pairs)
        bend = scales.trace / s.x.size
        M = bend / length_of(s.x) if self.hessian_lipschitz is None else self.hessian_lipschitz
        D = math.nan if self.distance is None else self.distance
        v = np.asarray(s.x, np.float64)
        return evolve(s, scales=scales, f_x=scales.f_x, bend=bend, M=M, v=v, origin=s.x, distance=D)

    def _free(self, s: LargeStepState) -> Steps[LargeStepState]:
        """One step without bisection: [3], Algorithm 1, with the cubic model as its oracle."""
        scales, A, hoped = s.scales, s.A, s.shift
        assert scales is not None
        assert s.v is not None
        a = (1 + math.sqrt(1 + 4 * hoped * A)) / (2 * hoped) if A > 0 else 0.0
        middle = (A * s.x + a * s.v) / (A + a) if A > 0 else np.asarray(s.x, np.float64)
        y = middle.astype(s.x.dtype)
        delta = scales.resolution.at(s.f_x)
        local = yield from look(y, math.nan if A > 0 else s.f_x, delta, s.bend, dense=self.inner == "dense")
        near, v = local.near, s.v
        if not near.seen or math.isnan(near.f_x) or near.norm <= 2 * near.error(delta):
            lower = near.f_x <= s.f_x
            return evolve(s, end="stalled", x=y if lower else s.x, f_x=near.f_x if lower else s.f_x)
        s = evolve(s, bend=bend_of(near, delta, s.bend))
        accepted = yield from self._accepted(s, local, delta)
        if accepted is None:
            return evolve(s, end="stalled")
        trial, f_n, gradient, M = accepted
        mu, new = trial.shift, y + trial.s
        if A == 0:
            hoped, a = mu, 1 / mu
        if mu <= hoped:
            x, gain, shift = new, a, hoped / FACTOR
        else:  # the step was shorter than hoped: take in less of it
            part = hoped / mu
            gain, shift = part * a, hoped * FACTOR
            x = ((1 - part) * A * s.x + part * (A + a) * new) / (A + gain)
        return moved(s, x, v - gain * gradient.g, A + gain, 1 / mu, f_x=f_n, M=M, shift=shift)

    def _accepted(self, s: LargeStepState, local: Local, delta: float) -> Steps[Accepted | None]:
        """A step that meets the certificate, M raised until one does; None when values cannot tell any more.

        The certificate implies f(y) - f(y+s) >= (1-sigma) mu |s|^2 > 0 for convex f: one value refuses most steps.
        """
        M, sigma, x, near = s.M, 0.5 if self.sigma is None else self.sigma, local.x, local.near
        scales = s.scales
        assert scales is not None
        while True:
            trial = yield from self._solved(local, M)
            move = trial.s.astype(x.dtype)
            if not trial.shift * trial.length**2 > 2 * delta or not np.any(x + move != x):
                return None
            f_n = yield from value_at(x, 1.0, move)
            if not f_n <= near.f_x:
                M *= 4
                continue
            gradient = yield from central_gradient(x + move, f_n, near.radius)
            off = float(np.linalg.norm(gradient.g + trial.shift * trial.s))
            needed = MARGIN * 2 * off / trial.length**2  # 2 off/|s|^2 is the H that this step has shown
            if off <= sigma * trial.shift * trial.length:
                return Accepted(trial, f_n, gradient, max(min(needed, M), M / FASTEST))
            M = max(2 * M, min(needed, 50 * M))

    def _solved(self, local: Local, M: float) -> Steps[Trial]:
        """The cubic step for (M/3)|s|^3, so that mu = M|s|, in a space that grows until it solves the model."""
        while True:
            if local.size:
                trial = local.cubic(2 * M)
                solved = trial.residual <= ETA * trial.shift * trial.length
                if solved or local.full or local.size >= self.products:
                    return trial
            yield from local.grow()
