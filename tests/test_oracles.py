"""Oracles: the noise is what it says, the surrogate is Corollary 3's, and drivers see f itself."""

import math
from typing import Any

import numpy as np
import pytest

from fewdim import Query, RandomGradient, RandomPursuit, Session, Steps, minimize, signs
from fewdim.oracles import AdversarialNoise, GaussianNoise, Surrogate, Through, UniformNoise
from fewdim.problems import quadratic


def ask(n: int, times: int) -> Steps[list[Any]]:
    """Ask for n values at the origin, several times, and return what was told."""
    told = []
    for _ in range(times):
        told.append((yield Query(np.zeros(3), (None,) * n)))
    return told


def through(oracle: Any, n: int, times: int, values: list[float], key: tuple[int, ...] = (1,)) -> Any:
    steps = oracle(ask(n, times), key)
    next(steps)
    try:
        while True:
            steps.send(np.array(values))
    except StopIteration as stop:
        return np.array(stop.value)


def test_uniform_noise_is_bounded_and_uniform() -> None:
    error = through(UniformNoise(0.5), 100, 100, [1.0] * 100) - 1
    assert np.abs(error).max() <= 0.5
    assert error.std() == pytest.approx(1 / math.sqrt(12), rel=0.03)  # standard error of 10^4 draws: 0.6 %
    assert len(np.unique(error)) == error.size


def test_gaussian_noise_has_its_level() -> None:
    error = through(GaussianNoise(0.1), 100, 100, [0.0] * 100)
    assert error.std() == pytest.approx(0.1, rel=0.03)


def test_noise_is_a_function_of_its_key() -> None:
    first, same, other = (through(GaussianNoise(1.0), 4, 3, [0.0] * 4, key) for key in ((1,), (1,), (2,)))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_the_adversary_turns_small_slopes_around() -> None:
    assert through(AdversarialNoise(0.1), 2, 1, [1.0, 1.15])[0].tolist() == pytest.approx([1.1, 1.05])
    assert through(AdversarialNoise(0.1), 2, 1, [1.0, 2.0])[0].tolist() == pytest.approx([1.1, 1.9])
    assert through(AdversarialNoise(0.1), 1, 2, [1.0])[:, 0].tolist() == pytest.approx([1.1, 1.0])


def test_missing_stays_missing() -> None:
    for oracle in (UniformNoise(1.0), GaussianNoise(1.0), AdversarialNoise(1.0)):
        told = through(oracle, 2, 1, [math.nan, 1.0])[0]
        assert math.isnan(told[0])
        assert math.isfinite(told[1])


def test_drivers_see_f_itself() -> None:
    problem = quadratic(np.ones(10))
    seen: list[float] = []

    def fun(x: Any) -> float:
        seen.append(problem.fun(x))
        return seen[-1]

    result = minimize(fun, problem.x0, method=Through(RandomPursuit(noise=1.0), GaussianNoise(1.0)), maxfev=200, rng=0)
    assert result.history.fun.min() == min(seen)


def test_the_adversary_stops_progress_where_the_noise_does() -> None:
    """Slopes below 2 delta / rho point uphill: the gap stalls far above that of an exact run."""
    problem = quadratic(np.ones(10))
    plain = RandomGradient(step=0.05, trace=10.0, radius=0.01, noise=0)
    exact = minimize(problem.fun, problem.x0, method=plain, maxfev=4000, rng=0, tol=0).fun
    fooled = minimize(problem.fun, problem.x0, method=Through(plain, AdversarialNoise(1e-3)), maxfev=4000, rng=0, tol=0)
    assert fooled.fun > 1e3 * exact


def test_the_surrogate_is_that_of_corollary_3() -> None:
    """G = f + eps/(2 D^2) |x - x0|^2 at every kind of offset."""
    center = np.array([1.0, 2.0, 3.0])
    oracle = Surrogate(center, epsilon=0.3, radius=2.0)
    offsets = (None, 0.5 * signs((1,)), np.array([1.0, 0.0, 0.0]))

    def once() -> Steps[Any]:
        return (yield Query(np.zeros(3), offsets))

    steps = oracle(once(), (0,))
    query = next(steps)
    with pytest.raises(StopIteration) as stop:
        steps.send(np.zeros(3))
    expected = [0.3 / 8 * float(np.sum((query.point(i) - center) ** 2)) for i in range(3)]
    assert stop.value.value.tolist() == pytest.approx(expected)
    assert oracle.strong_convexity == 0.075


def test_a_flat_direction_is_pulled_to_the_start() -> None:
    x0 = np.array([3.0, 3.0])
    method = Through(RandomPursuit(noise=0), Surrogate(x0, epsilon=1.0, radius=1.0))
    session: Session[Any] = Session(method, x0, rng=0)
    while not session.done and session.nfev < 2000:
        for point in session.ask():
            session.tell(point.id, 0.5 * float(point.x[0] ** 2))
    assert session.state.x == pytest.approx([1.5, 3.0], abs=1e-5)  # (1 + 1) x = 3 and x = 3


def test_oracles_nest_and_show_in_the_stack() -> None:
    x0 = np.ones(4)
    method = Through(Through(RandomPursuit(noise=0), Surrogate(x0, epsilon=0.1, radius=1.0)), UniformNoise(1e-6))
    session: Session[Any] = Session(method, x0, rng=0)
    for _ in range(3):
        for point in session.ask():
            session.tell(point.id, float(point.x @ point.x))
    text = session.where()
    assert text.count("changed_values") == 2
    assert "RandomPursuit.step" in text


@pytest.mark.parametrize("noise", [UniformNoise, GaussianNoise, AdversarialNoise])
def test_levels_are_checked(noise: Any) -> None:
    with pytest.raises(ValueError, match=rf"{noise.__name__}\(level=...\) must be a number of at least 0; got -1"):
        noise(-1)
