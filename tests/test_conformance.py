"""Every method through every check of the public conformance suite, and the suite through methods that are wrong."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from fewdim import (
    METHODS,
    Accelerated,
    Cubic,
    HeavyBall,
    LargeStep,
    Query,
    RandomGradient,
    RandomPursuit,
    Repeated,
    Steps,
    Values,
    minimize,
)
from fewdim.core import Cost
from fewdim.directions import Key, Vector
from fewdim.oracles import Surrogate, Through, UniformNoise
from fewdim.testing import CHECKS, check_method

SPECTRUM = [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]  # that of the conformance function
VARIANTS: list[Any] = [
    *(METHODS[name]() for name in METHODS if name != "auto"),
    RandomGradient(step="paper", trace=2.3, batch=3),
    RandomGradient(step=0.1, directions="gaussian", noise=0),
    RandomGradient(step="nesterov", directions="sphere"),
    RandomGradient(directions="axis", difference="central"),
    RandomPursuit(trust=True),
    HeavyBall(batch=2),
    HeavyBall(constants="paper", spectrum=SPECTRUM),
    Accelerated(constants="nesterov", strong_convexity=0.2),
    Accelerated(constants="sharp", spectrum=SPECTRUM),
    Through(RandomPursuit(noise=1e-3), UniformNoise(1e-3)),
    Cubic(inner="krylov"),
    Cubic(constants="paper", epsilon=1e-4, hessian_lipschitz=0.1, inner="dense"),
    LargeStep(inner="dense"),
    LargeStep(inner="two-step", inner_steps=60),
    LargeStep(constants="paper", hessian_lipschitz=0.1, smoothness=1.0, distance=3.0, inner="krylov"),
    LargeStep(
        constants="paper",
        hessian_lipschitz=0.1,
        smoothness=1.0,
        distance=3.0,
        inner=RandomPursuit(noise=0),
        inner_steps=4,
    ),
    Repeated(RandomGradient(noise=0), times=2, steps=3),
    Repeated(RandomPursuit(noise=0), times=2, steps=3, choose="residual"),
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("method", VARIANTS, ids=repr)
def test_conforms(method: Any, check: str) -> None:
    if check == "invariance" and isinstance(method, Through):
        pytest.skip("noise of 1e-3 on values of about 1 hides what the check looks for")
    CHECKS[check](method, 1500 if isinstance(method, LargeStep) and method.inner_steps < 100 else 150)


@pytest.mark.parametrize("scale", [1e-60, 1e-12, 1e12, 1e60])
@pytest.mark.parametrize("name", METHODS)
def test_the_unit_of_f_does_not_matter(name: str, scale: float) -> None:
    """A scale that is no power of 2 makes values round differently: courses agree to sqrt(round-off), not in bits."""
    spectrum = np.array(SPECTRUM)
    plain, scaled = (
        minimize(lambda x, s=s: s * float(x**2 @ spectrum), np.ones(5), method=name, maxfev=300, rng=1, tol=0)
        for s in (1.0, scale)
    )
    assert scaled.fun == pytest.approx(scale * plain.fun, rel=1e-2, abs=1e-6 * scale)


@dataclass(frozen=True)
class Walk:
    """A correct little method: look around, keep what is lower."""

    cost = Cost(1, 1, 0)

    def start(self, x: Vector, key: Key) -> "WalkState":
        return WalkState(x, key)

    def step(self, state: "WalkState") -> "Steps[WalkState]":
        offset = np.sin(np.arange(state.x.size, dtype=state.x.dtype) + state.k) * state.x.dtype.type(0.1)
        values: Values = yield Query(state.x, (offset,))
        better = values[0] < state.f_x
        x = state.x + offset if better else state.x
        return replace(state, x=x, k=state.k + 1, f_x=float(values[0]) if better else state.f_x)

    def done(self, state: "WalkState") -> bool:
        return False


@dataclass(frozen=True)
class WalkState:
    x: Vector
    key: Key
    k: int = 0
    f_x: float = np.inf


class Forgetful(Walk):
    """Keeps something outside its state."""

    calls = 0

    def step(self, state: WalkState) -> Steps[WalkState]:
        Forgetful.calls += 1
        values: Values = yield Query(state.x, (np.full_like(state.x, Forgetful.calls),))
        return replace(state, k=state.k + 1, f_x=float(values[0]))


class Scribbler(Walk):
    """Writes to an array of a state."""

    def step(self, state: WalkState) -> Steps[WalkState]:
        state.x[0] += 1
        yield Query(state.x)
        return replace(state, k=state.k + 1)


class Spendthrift(Walk):
    """Uses more values than it declares."""

    def step(self, state: WalkState) -> Steps[WalkState]:
        yield Query(state.x, (None, None))
        return replace(state, k=state.k + 1)


class Climber(Walk):
    """Goes uphill."""

    def step(self, state: WalkState) -> Steps[WalkState]:
        yield Query(state.x, (None,))
        return replace(state, x=state.x * 2, k=state.k + 1)


class Wanderer(Walk):
    """Asks for points that are not finite."""

    def step(self, state: WalkState) -> Steps[WalkState]:
        yield Query(state.x * np.inf)
        return replace(state, k=state.k + 1)


def test_a_correct_method_of_a_stranger_passes() -> None:
    check_method(Walk())


@pytest.mark.parametrize(
    ("method", "check", "error"),
    [
        (Forgetful(), "purity", AssertionError),
        (Scribbler(), "states", ValueError),  # numpy refuses to write to a locked array
        (Spendthrift(), "cost", AssertionError),
        (Wanderer(), "hostile", AssertionError),
        (Climber(), "progress", AssertionError),
    ],
)
def test_a_wrong_method_is_found_out(method: Any, check: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        CHECKS[check](method, 100)


def test_check_method_always_says_what_is_wrong() -> None:
    with pytest.raises(AssertionError, match="fails in check 'states': ValueError"):
        check_method(Scribbler())


def test_oracles_conform() -> None:
    method = Through(RandomGradient(step=0.1, noise=0), Surrogate(np.ones(5), epsilon=0.1, radius=2.0))
    for name in ("states", "purity", "delivery"):
        CHECKS[name](method, 100)
