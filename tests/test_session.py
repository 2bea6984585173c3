"""Ask and tell, by hand."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from fewdim import FAILED, HeavyBall, Query, RandomGradient, RandomPursuit, Session, Steps, minimize, run
from fewdim.directions import Key, Vector


def bowl(x: Any) -> float:
    return float(np.sum(np.asarray(x) ** 2))


def advance(session: Session[Any], evaluations: int) -> None:
    while not session.done and session.nfev < evaluations:
        for point in session.ask():
            session.tell(point.id, bowl(point.x))


def test_the_loop_of_the_documentation() -> None:
    session = Session(RandomPursuit(), np.ones((2, 3)), rng=0)
    advance(session, 200)
    assert session.best.fun == bowl(session.best.x) < 1e-3
    assert session.best.x.shape == (2, 3)
    assert session.best.nfev <= session.nfev
    assert session.first == 6.0


def test_the_first_point_is_x0_and_its_value_is_used() -> None:
    session = Session(RandomGradient(step=0.1, radius=1e-4, noise=0), np.full(3, 2.0), rng=0)
    (point,) = session.ask()
    assert point.x.tolist() == [2.0, 2.0, 2.0]
    session.tell(point.id, 12.0)
    (point,) = session.ask()  # f(x0) is not asked again: only the probe is left of the first step's two values
    assert not np.array_equal(point.x, np.full(3, 2.0))


def test_points_may_be_told_in_any_order_and_their_ids_count_evaluations() -> None:
    session = Session(RandomGradient(step=0.1, batch=4, radius=1e-4, noise=0), np.ones(3), rng=0)
    session.tell(session.ask()[0].id, 3.0)
    points = session.ask(3) + session.ask()
    assert [p.id for p in points] == [1, 2, 3, 4]
    for p in reversed(points):
        assert session.nit == 0
        session.tell(p.id, bowl(p.x))
    assert session.nit == 1


def test_tell_refuses_what_was_not_asked() -> None:
    session = Session(RandomPursuit(), np.ones(3), rng=0)
    with pytest.raises(
        ValueError, match=r"Session.tell\(id=...\) must name an asked point that has no value yet; got 0"
    ):
        session.tell(0, 1.0)  # not handed out yet
    session.ask()
    session.tell(0, 3.0)
    with pytest.raises(ValueError, match="got 0"):
        session.tell(0, 3.0)
    with pytest.raises(ValueError, match="got 99"):
        session.tell(99, 3.0)
    with pytest.raises(ValueError, match=r"Session.ask\(n=...\) must be at least 1; got 0"):
        session.ask(0)


@pytest.mark.parametrize("value", ["1", None, 1j, [1.0, 2.0], object()])
def test_tell_refuses_what_is_no_number_and_loses_nothing(value: Any) -> None:
    session = Session(RandomPursuit(), np.ones(3), rng=0)
    session.ask()
    with pytest.raises(TypeError, match="must be one real number"):
        session.tell(0, value)
    session.tell(0, 3.0)
    assert session.nfev == 1


@pytest.mark.parametrize("value", [FAILED, math.inf, -math.inf, np.float32("nan")])
def test_what_is_not_finite_is_missing(value: float) -> None:
    session = Session(RandomPursuit(noise=0), np.ones(3), rng=0)
    session.ask()
    session.tell(0, 3.0)
    session.tell(session.ask(1)[0].id, value)
    assert session.failures == 1
    assert session.best.fun == 3.0


def test_x0_must_have_a_value() -> None:
    session = Session(RandomPursuit(), np.ones(3), rng=0)
    session.ask()
    with pytest.raises(ValueError, match=r"f\(x0\) must be finite"):
        session.tell(0, FAILED)


def test_a_state_goes_on_in_another_session() -> None:
    one = Session(HeavyBall(noise=0), np.ones(4), rng=3)
    advance(one, 100)
    two = Session(HeavyBall(noise=0), state=one.state)
    start = one.nit
    advance(one, 200)
    while two.nit < one.nit - start:
        for point in two.ask():
            two.tell(point.id, bowl(point.x))
    assert np.array_equal(one.state.x, two.state.x)
    with pytest.raises(ValueError, match="either x0= or state="):
        Session(HeavyBall(), np.ones(4), state=one.state)


def test_the_seed_decides() -> None:
    def end(rng: Any) -> Any:
        session = Session(RandomPursuit(), np.array([1.0, 0.3, -0.7, 2.1]), rng=rng)  # no sign leads to the minimum
        advance(session, 60)
        return session.best.x.tolist()

    assert end(1) == end(1) == end(np.int64(1))
    assert end(1) != end(2)
    assert end(None) != end(None)
    assert end(np.random.default_rng(1)) == end(np.random.default_rng(1))
    for bad in (-1, 2**64, "1", 1.5, True):
        with pytest.raises(ValueError, match="rng must be None, an integer"):
            end(bad)


@dataclass(frozen=True)
class NestState:
    x: Vector
    key: Key
    k: int = 0


@dataclass(frozen=True)
class Inner:
    """Three queries, one a step."""

    def start(self, x: Vector, key: Key) -> NestState:
        return NestState(x, key)

    def step(self, state: NestState) -> Steps[NestState]:
        yield Query(state.x)
        return replace(state, k=state.k + 1)

    def done(self, state: NestState) -> bool:
        return state.k == 3


@dataclass(frozen=True)
class Outer(Inner):
    """Runs the inner method to its end in each of its steps."""

    def step(self, state: NestState) -> Steps[NestState]:
        inner = yield from run(Inner(), Inner().start(state.x, (*state.key, state.k)))
        return replace(state, x=inner.x, k=state.k + 1)


def test_where_shows_the_nested_stack() -> None:
    session = Session(Outer(), np.ones(2), rng=0)
    advance(session, 3)
    text = session.where()
    assert [name for name in ("Outer.step", "run", "Inner.step") if name in text] == ["Outer.step", "run", "Inner.step"]
    assert text.index("Outer.step") < text.index("Inner.step")
    assert "test_session.py" in text
    advance(session, 100)
    assert session.done
    assert session.nfev == 1 + 9 - 1  # x0, three inner runs of three, the first of which knows f(x0)


class Silent(Inner):
    """Never asks."""

    def step(self, state: NestState) -> Steps[NestState]:
        if state.k < 0:
            yield Query(state.x)
        return replace(state, k=0)


class SilentInside(Outer):
    def step(self, state: NestState) -> Steps[NestState]:
        yield Query(state.x)
        return (yield from run(Silent(), state))


class Empty(Inner):
    def step(self, state: NestState) -> Steps[NestState]:
        yield Query(state.x, ())
        return state


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Silent(), r"Silent.step\(state\) must yield at least one Query"),
        (SilentInside(), r"Silent.step\(state\) must yield at least one Query"),
        (Empty(), r"Empty.step\(state\) must yield a Query with at least one offset"),
    ],
)
def test_a_step_that_never_asks_is_an_error_and_no_endless_loop(method: Any, message: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=message):
        advance(Session(method, np.ones(2), rng=0), 10)


def test_a_masked_value_is_a_missing_one() -> None:
    with pytest.raises(ValueError, match="must give a finite value; fun returned"):
        minimize(lambda _: np.ma.masked, np.ones(3), method="random-pursuit", rng=0)
