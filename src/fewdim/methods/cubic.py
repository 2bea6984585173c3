"""Cubic regularisation from values: Algorithms 7, 8 and 9 of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fewdim.core import Steps, evolve
from fewdim.directions import Key, Vector
from fewdim.lines import value_at
from fewdim.methods.inner import RANDOM, Inner, check_inner
from fewdim.methods.radius_search import CubicState, searched
from fewdim.methods.settings import Settings, check_choice, check_count, check_noise, check_positive
from fewdim.methods.subproblem import Local, Trial, bend_of, length_of, look, watched
from fewdim.scales import measure

SMALL = 25  # below this the whole Hessian costs no more than the products that would do
POOR, GOOD = 0.1, 0.7  # ratios of the decrease to the model's: below, M grows; above, it shrinks
RELATIVE = 1e-6  # default epsilon, of the second derivatives times the length of x


@dataclass(frozen=True, eq=False, repr=False)
class Cubic(Settings):
    r"""Newton steps held back by a cubic term: leaves every strict saddle and ends where no direction goes down.

    .. math:: x_{k+1} = x_k + \arg\min_s\; g's + \tfrac12 s'As + \tfrac{M}{6} |s|^3

    =================  ======  ==============  ================================================================
    setting            symbol  default         source
    =================  ======  ==============  ================================================================
    constants                  "adaptive"      "adaptive": M by the ratio test; "paper": Algorithms 8 and 9, H fixed
    epsilon            eps     None            stop at |g| <= eps and smallest eigenvalue >= -sqrt(M eps); None:
                                               1e-6 of the second derivatives (times the length of x).  "paper":
                                               stop at |s| <= (2/3) sqrt(eps/H)
    hessian_lipschitz  M_0, H  None            first M; None: the second derivatives over the length of x
    inner                      "auto"          "dense": the whole Hessian; "krylov": Krylov space of g and of a random
                                               vector; "auto": dense up to d = 25.  "paper" takes the solvers of
                                               `LargeStep`, too, and "auto" is Algorithm 2 on Algorithm 3
    inner_steps                20000           most steps of such a solver
    products                   40              most Hessian-vector products a step
    smoothness         L       None            for "paper" with Algorithm 3
    half_dimension     ED_1/2  None            for "paper" with Algorithm 2
    model_error        delta   1e-6            for "paper": of Algorithm 3
    noise              delta   "auto"          level of the noise of f; 0 is exact; "auto" spends 2 values,
                                               8 more on noise, and again at steps 1, 2, 4, 8, ...
    =================  ======  ==============  ================================================================

    M follows the ratio of the decrease of f to that of the model: doubled (or fourfold) below 0.1, a third above 0.7.
    One model serves all M tried at a point.  At an exact saddle the gradient says nothing: the random vector finds the
    negative curvature, and the step goes along it (the hard case).

    **Cost.** 2d + 1 values a step and d + 1 for each product, in queries of that width; or 2d + d(d-1)/2 + 1 in one
    query.  2 vectors for each product.

    **Guarantee.** With M >= H each step lowers f by at least (M/12)|s|^3, so some step is shorter than sqrt(eps/M)
    after O(sqrt(M) (f_0 - f*) eps^-3/2) steps, and there |g| = O(eps), A >= -O(sqrt(M eps)) [2].  The smallest
    eigenvalue is that of the subspace, an upper bound: `fewdim.certify` bounds it from below.

    **Departures.** The paper's penalty r H/2 |s|^2 belongs to the cubic term (H/3)|s|^3: here it is r H/4, that of
    (H/6)|s|^3.  Where A + (rH/2) I is not positive the sub-problem has no minimum, which counts as |s| > r.  At a
    saddle the printed algorithm loops, or calls it stationary: with "krylov" and "dense" the lowest eigenvector is
    added (the hard case).  r_0, which is not given, is the length of x; the search ends at a width of
    sqrt(eps/(40000 H)).

    >>> import numpy as np
    >>> from fewdim import minimize
    >>> result = minimize(lambda x: ((x**2 - 1) ** 2).sum(), np.zeros(30), method=Cubic(), rng=0)  # a maximum
    >>> bool(result.fun < 1e-9)
    True

    References
    ----------
    [1] Yue, Yang, Fang, Lin. Zeroth-order optimization with weak dimension dependency. COLT 2023. Algorithms 7 to 9.
    [2] Nesterov, Polyak. Cubic regularization of Newton method and its global performance. Math. Program. 108, 2006.
    [3] Cartis, Gould, Toint. Adaptive cubic regularisation methods. Math. Program. 127, 2011 (the ratio test).
    """

    constants: Literal["adaptive", "paper"] = "adaptive"
    epsilon: float | None = None
    hessian_lipschitz: float | None = None
    inner: Any = "auto"
    inner_steps: int = 20_000
    products: int = 40
    smoothness: float | None = None
    half_dimension: float | None = None
    model_error: float = 1e-6
    noise: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_choice(self, ("adaptive", "paper"), constants=self.constants)
        check_positive(self, epsilon=self.epsilon, hessian_lipschitz=self.hessian_lipschitz)
        check_positive(self, smoothness=self.smoothness, half_dimension=self.half_dimension)
        check_positive(self, model_error=self.model_error)
        check_inner(self, self.inner)
        check_count(self, products=self.products, inner_steps=self.inner_steps)
        check_noise(self, self.noise)
        if self.constants == "paper":
            needed = {"epsilon": self.epsilon, "hessian_lipschitz": self.hessian_lipschitz}
            if self.how.by_model:
                needed |= {"smoothness": self.smoothness}
            if self.how.by_model and isinstance(self.inner, str):
                needed |= {"half_dimension": self.half_dimension}
            missing = [name for name, given in needed.items() if given is None]
            if missing:
                raise ValueError(f'Cubic(constants="paper") needs {missing[0]}=; got None.')
        elif not isinstance(self.inner, str) or self.inner in RANDOM:
            raise ValueError(
                f'Cubic(inner=...) must be "auto", "krylov" or "dense" without "paper"; got {self.inner!r}.'
            )

    @property
    def how(self) -> Inner:
        """How sub-problems are solved with the paper's constants."""
        solver = "heavy-ball" if isinstance(self.inner, str) and self.inner == "auto" else self.inner
        return Inner(
            solver, self.inner_steps, self.products, 0.1, True,
            self.smoothness, self.hessian_lipschitz, self.half_dimension, self.model_error,
        )  # fmt: skip

    def start(self, x: Vector, key: Key) -> CubicState:
        return CubicState(x, key)

    def done(self, state: CubicState) -> bool:
        return bool(state.end)

    def step(self, state: CubicState) -> Steps[CubicState]:
        s = state
        if s.scales is None:
            s = yield from self._measured(s)
        assert s.scales is not None
        scales = yield from watched(s.x, s.scales, self.noise, s.k, (*s.key, s.k, 3))
        s = evolve(s, scales=scales)
        if self.constants == "paper" and (self.how.by_model or self.inner in RANDOM):
            return (yield from searched(s, self.how, None))
        delta = scales.resolution.at(s.f_x)
        dense = self.inner == "dense" or (self.inner == "auto" and s.x.size <= SMALL)
        local = yield from look(s.x, s.f_x, delta, s.bend, dense=dense, probe=(*s.key, s.k, 1))
        if not local.near.seen:
            return evolve(s, k=s.k + 1, end="stalled")
        if not dense:
            yield from self._grown(local, s)
        s = evolve(s, gradient=local.near.norm, lowest=local.lowest, bend=bend_of(local.near, delta, s.bend))
        if self.constants == "paper":
            return (yield from searched(s, self.how, local))
        s = evolve(s, k=s.k + 1)
        if s.gradient <= s.epsilon and s.lowest >= -math.sqrt(s.M) * math.sqrt(s.epsilon):
            return evolve(s, end="stationary")
        return (yield from _stepped(s, local, delta))

    def _measured(self, s: CubicState) -> Steps[CubicState]:
        pairs = 16 if self.inner in RANDOM else 2
        scales = yield from measure(s.x, (*s.key, s.k, 0), noise=self.noise, pairs=pairs)
        bend, length = scales.trace / s.x.size, length_of(s.x)
        M = bend / length if self.hessian_lipschitz is None else self.hessian_lipschitz
        epsilon = RELATIVE * bend * length if self.epsilon is None else self.epsilon
        return evolve(s, scales=scales, f_x=scales.f_x, bend=bend, M=M, epsilon=epsilon)

    def _grown(self, local: Local, s: CubicState) -> Steps[None]:
        """Grow the space by rounds of two until the step for M solves the model and the smallest eigenvalue settles."""
        before, most = math.inf, min(self.products, s.x.size)
        while local.size < most:
            for _ in range(2):
                if local.size < most:
                    yield from local.grow()
            trial, lowest = local.cubic(s.M), local.lowest
            solved = trial.residual <= 0.1 * max(s.M * trial.length**2, s.epsilon)
            settled = abs(lowest - before) <= 0.05 * abs(lowest) + 0.1 * math.sqrt(s.M) * math.sqrt(s.epsilon)
            if local.full or (solved and settled):
                return
            before = lowest


def _stepped(s: CubicState, local: Local, delta: float) -> Steps[CubicState]:
    """Try the step for M, larger M where f does not follow the model; "stalled" when values cannot tell any more."""
    while True:
        trial: Trial = local.cubic(s.M)
        move = trial.s.astype(s.x.dtype)
        if not trial.drop > 2 * delta or not np.any(s.x + move != s.x):
            return evolve(s, end="stalled")
        f_n = yield from value_at(s.x, 1.0, move)
        ratio = (s.f_x - f_n) / trial.drop
        if ratio >= POOR:
            M = s.M if ratio <= GOOD else s.M * min(max(2 * _seen(trial, s.f_x - f_n, s.M), 1 / 30), 1 / 3)
            return evolve(s, x=s.x + move, f_x=f_n, M=M, radius=trial.length, hard=s.hard + trial.hard)
        s = evolve(s, M=s.M * (2 if ratio > -1 else 4))


def _seen(trial: Trial, decrease: float, M: float) -> float:
    """The M that would have made the model exact along the step, as a part of M: 6 |error| / |s|^3."""
    return abs(trial.drop + M / 6 * trial.length**3 - decrease) * 6 / (M * trial.length**3)
