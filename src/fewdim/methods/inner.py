"""Inner solvers: s = argmin g's + s'As/2 + (mu/2)|s|^2 at a point, as large steps and cubic regularisation need it.

"krylov", "dense"                              the subspace of `Local`, until |g + As + mu s| <= eta mu |s|
"random-gradient", "two-step", "heavy-ball"    random directions, 2 values a step: the slope of the model along each
a method                                       run on the model through Algorithm 3, as the paper composes it
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fewdim.core import Steps, step
from fewdim.directions import Key, Vector, gaussian
from fewdim.methods.heavy_ball import HeavyBall
from fewdim.methods.settings import is_method
from fewdim.methods.subproblem import Local, look
from fewdim.oracles.second_order import Floats, SecondOrderModel, model_slope
from fewdim.scales import Scales

RANDOM = ("random-gradient", "two-step", "heavy-ball")
NAMES = ("auto", "krylov", "dense", *RANDOM)
FAR = 1e6  # times the first step of descent: a run that gets there has no minimum to find


class Inner(NamedTuple):
    """How sub-problems are solved; the last four are for Algorithm 3 as printed."""

    solver: Any
    steps: int  # most steps of a random solver or a method
    products: int
    eta: float  # |residual| <= eta mu |s|
    printed: bool = False
    smoothness: float | None = None
    hessian_lipschitz: float | None = None
    half_dimension: float | None = None
    model_error: float | None = None

    @property
    def by_model(self) -> bool:
        """Whether a method is run on values of the model."""
        return not isinstance(self.solver, str) or (self.printed and self.solver == "heavy-ball")


class Solved(NamedTuple):
    """A step of the sub-problem; s is None when the sub-problem has no minimum."""

    s: Floats | None
    local: Local | None = None

    @property
    def length(self) -> float:
        return math.inf if self.s is None else float(np.linalg.norm(self.s))


def check_inner(owner: object, inner: object) -> None:
    """`inner` is a name or a method."""
    if not is_method(inner) and not (isinstance(inner, str) and inner in NAMES):
        known = ", ".join(map(repr, NAMES))
        raise ValueError(f"{type(owner).__name__}(inner=...) must be one of {known}, or a method; got {inner!r}.")


def solved(x: Vector, f_x: float, shift: float, how: Inner, scales: Scales, bend: float, key: Key) -> Steps[Solved]:
    """Solve the sub-problem at x from nothing."""
    if how.by_model:
        y = yield from composed(x, f_x, shift, how, key)
        return Solved(np.asarray(y, np.float64) - x)
    local = yield from look(x, f_x, scales.resolution.at(f_x), bend, dense=how.solver == "dense")
    return (yield from again(local, shift, how, scales, key))


def again(local: Local, shift: float, how: Inner, scales: Scales, key: Key) -> Steps[Solved]:
    """Solve for another shift what was begun at this point."""
    if how.solver in RANDOM:
        s = yield from wandered(local, np.zeros(local.x.size), shift, how, scales, key)
        return Solved(s, local)
    while True:
        trial = local.shifted(shift)
        good = trial is not None and trial.residual <= how.eta * shift * trial.length
        if good or local.full or local.size >= how.products:
            return Solved(None if trial is None else trial.s, local)
        yield from local.grow()


def composed(x: Vector, f_x: float, shift: float, how: Inner, key: Key) -> Steps[Vector]:
    """The paper's composition: a method, Algorithm 2 by default, on values of the model by Algorithm 3."""
    method = how.solver
    if isinstance(method, str):
        assert how.half_dimension is not None
        half = how.half_dimension + x.size * math.sqrt(shift)  # sum sqrt(l + mu) <= sum sqrt(l) + d sqrt(mu)
        method = HeavyBall(
            constants="paper", half_dimension=half, strong_convexity=shift, directions="gaussian", noise=0.0
        )
    model = SecondOrderModel(
        x,
        "paper" if how.printed else "sane",
        shift,
        f_center=f_x,
        smoothness=how.smoothness,
        hessian_lipschitz=how.hessian_lipschitz,
        error=how.model_error,
    )
    state = method.start(x, key)
    for _ in range(how.steps):
        if method.done(state):
            break
        state = yield from model(step(method, state), (*state.key, state.k))
    y: Vector = state.x
    return y


def wandered(local: Local, s: Floats, shift: float, how: Inner, scales: Scales, key: Key) -> Steps[Floats | None]:
    """Random directions on the model from s, with the constants of A + mu I; the residual is the mean square slope.

    h = 1/(tr + 2L): random gradient; with alpha = sqrt(mu h/(d+2)) the two-step method; Algorithm 2 with h = mu/tr^2.
    """
    d, g, kind = s.size, local.near.g, how.solver
    bends = float(np.nansum(np.abs(local.near.bends))) or scales.trace  # the gradient came with the diagonal of A
    trace, top = bends + d * shift, bends * min(1.0, scales.smoothness / scales.trace) + shift
    h = shift / trace**2 if kind == "heavy-ball" else 1 / (trace + 2 * top)
    beta, alpha = math.sqrt(h * shift), math.sqrt(shift * h / (d + 2))
    v = s if kind == "two-step" else np.zeros(d)
    window, total, far = max(50, min(d, 400)), 0.0, FAR * local.near.norm / shift
    radius = 8 * local.near.radius
    for k in range(1, how.steps + 1):
        y = {"random-gradient": s, "two-step": (s + alpha * v) / (1 + alpha), "heavy-ball": s + (1 - beta) * v}[kind]
        u = np.asarray(gaussian((*key, k)).array(d), np.float64)
        slope = yield from model_slope(local.x, g, y, u, radius)
        slope += shift * float(y @ u)
        new = y - h * slope * u
        if kind == "two-step":
            v = (1 - alpha) * v + alpha * y - (alpha / shift) * slope * u
        elif kind == "heavy-ball":
            v = new - s
        s, total = new, total + slope**2
        length = float(np.linalg.norm(s))
        if not length <= far:
            return None
        if k % window == 0:
            if math.sqrt(total / window) <= how.eta * shift * length:
                break
            total = 0.0
    return s
