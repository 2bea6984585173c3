"""The quadratic model: exact where a quadratic is known, sparing in noise, at an end when noise is all that is left."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewdim import QuadraticModel, QuasiNewton, RandomGradient, Session, minimize
from fewdim.methods.regression import Regression, ball_minimiser
from fewdim.problems import power_law, quadratic


def noisy(problem: Any, level: float, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    scale = level * problem.fun(problem.x0)
    return lambda x: problem.fun(x) + scale * rng.standard_normal()


def scattered(d: int, n: int) -> tuple[Any, Any, Any, Any]:
    """A quadratic's Hessian and its gradient at 0, with n points, 0 first, and the values there."""
    rng = np.random.default_rng(d)
    H, g = rng.standard_normal((d, d)), rng.standard_normal(d)
    H = H + H.T
    points = np.vstack([np.zeros(d), rng.standard_normal((n - 1, d))])
    return H, g, points, points @ g + 0.5 * np.sum((points @ H) * points, axis=1)


def test_the_regression_finds_a_quadratic_that_its_points_determine() -> None:
    """(d + 1)(d + 2)/2 = 28 points and d = 6: gradient and Hessian to the little that values are allowed to be off."""
    H, g, points, values = scattered(6, 41)
    model = Regression(points, 0, radius=10.0).fit(values)
    assert np.abs(model.hessian - H).max() < 1e-3 * np.abs(H).max()
    assert np.abs(model.gradient - g).max() < 1e-3 * np.abs(g).max()


def test_the_regression_explains_fewer_values_by_the_smallest_hessian() -> None:
    """It meets all values, and its Hessian, less a multiple of the identity, is smaller than the true one."""
    rng = np.random.default_rng(1)
    H = rng.standard_normal((8, 8))
    H = H + H.T
    points = np.vstack([np.zeros(8), rng.standard_normal((17, 8))])
    values = 0.5 * np.sum((points @ H) * points, axis=1)
    model = Regression(points, 0, radius=10.0).fit(values)
    explained = points @ model.gradient + 0.5 * np.sum((points @ model.hessian) * points, axis=1)
    assert np.abs(explained - values).max() < 1e-2 * np.abs(values).max()

    def off(A: Any) -> float:
        return float(np.linalg.norm(A - np.trace(A) / 8 * np.eye(8)))

    assert off(model.hessian) < off(H)


def test_the_regression_changes_a_hessian_no_more_than_the_values_ask_for() -> None:
    """The true one is kept, though the points do not determine it, and what is known of a wrong one mends it."""
    H, g, points, values = scattered(8, 18)
    regression = Regression(points, 0, radius=10.0)
    kept = regression.fit(values, H)
    assert np.allclose(kept.hessian, H, atol=1e-9)
    assert np.allclose(kept.gradient, g, atol=1e-6)
    wrong = H + 0.1 * np.eye(8)
    mended = regression.fit(values, wrong)
    explained = points @ mended.gradient + 0.5 * np.sum((points @ mended.hessian) * points, axis=1)
    assert np.abs(explained - values).max() < 1e-2 * np.abs(values).max()
    assert np.linalg.norm(mended.hessian - H) < np.linalg.norm(wrong - H)
    assert np.linalg.norm(mended.hessian - H) < np.linalg.norm(regression.fit(values).hessian - H)


def lasting(x: Any) -> float:
    """Its curvature is dense, and the same everywhere."""
    return quadratic(power_law(30, 0.5), rotate=3).fun(x)


def steep(x: Any) -> float:
    """Its curvature falls by orders of magnitude on the way, and is along the axes."""
    return float(np.sum(np.cosh(3 * x) - 1))


@pytest.mark.parametrize(("fun", "start", "changed"), [(lasting, 2.0, True), (steep, 2.0, False)])
def test_it_goes_by_the_fit_that_is_wrong_less(fun: Any, start: float, changed: bool) -> None:
    """The least change of a Hessian where that is dense and lasts, the smallest where it is old news."""
    session: Session[Any] = Session(QuadraticModel(noise=0), np.linspace(0.5, 1, 30) * start, rng=0)
    votes = []
    while session.lowest > 1e-3 * fun(np.linspace(0.5, 1, 30) * start):
        for point in session.ask():
            session.tell(point.id, fun(point.x))
        if session.state.hessian is not None:
            smallest, least_changed = session.state.misses
            votes.append(least_changed <= smallest)
    assert (np.mean(votes) > 0.5) == changed, votes


def test_the_influence_of_values_reproduces_quadratics() -> None:
    """Where points determine the quadratic, values weighted by their influence give the value anywhere."""
    rng = np.random.default_rng(2)
    H = rng.standard_normal((4, 4))
    points = np.vstack([np.zeros(4), rng.standard_normal((30, 4))])
    values = 0.5 * np.sum((points @ H) * points, axis=1) + points[:, 0]
    model = Regression(points, 0, radius=10.0)
    s = rng.standard_normal(4)
    expected = 0.5 * s @ H @ s + s[0]
    assert abs(float(model.influence(s) @ values) - expected) < 1e-3 * np.abs(values).max()
    there = model.most_influenced(5, 1.0)
    elsewhere = rng.standard_normal((200, 4))
    elsewhere /= np.linalg.norm(elsewhere, axis=1)[:, None]
    assert abs(model.influence(there)[5]) >= max(abs(model.influence(s)[5]) for s in elsewhere) * 0.99


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(-6, 6), st.booleans())
def test_the_minimiser_in_a_ball_is_one(d: int, seed: int, power: float, hard: bool) -> None:
    """No point of a dense sample of the ball is lower, the hard case included."""
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((d, d))
    H = H + H.T
    g = rng.standard_normal(d) * 10**power
    if hard:
        v = np.linalg.eigh(H)[1][:, 0]
        g = g - v * (v @ g)
    s = ball_minimiser(g, H, 2.0)
    assert np.linalg.norm(s) <= 2.0 * (1 + 1e-2)
    others = rng.standard_normal((500, d))
    others *= 2.0 * rng.random((500, 1)) ** (1 / d) / np.linalg.norm(others, axis=1)[:, None]
    lowest = np.min(others @ g + 0.5 * np.sum((others @ H) * others, axis=1))
    size = float(np.abs(g).sum() + np.abs(H).sum())
    assert g @ s + 0.5 * s @ H @ s <= lowest + 1e-2 * size


def test_it_opens_with_two_values_along_each_axis_from_the_best_point() -> None:
    session: Session[Any] = Session(QuadraticModel(), np.full(3, 2.0), rng=0)
    seen: list[list[float]] = []
    while len(seen) < 7:
        for point in session.ask():
            seen.append(point.x.tolist())
            session.tell(point.id, float(np.sum((point.x - [8, 1, 2]) ** 2)))
    assert seen[:5] == [[2, 2, 2], [4, 2, 2], [6, 2, 2], [6, 4, 2], [6, 0, 2]]
    assert seen[5:] == [[6, 2, 4], [6, 2, 0]]  # (6, 0, 2) was no lower than (6, 2, 2)
    session = Session(QuadraticModel(radius=0.5), np.full(3, 2.0), rng=0)
    session.tell(session.ask()[0].id, 1.0)
    assert session.ask()[0].x.tolist() == [2.5, 2, 2]


def test_exact_values_lead_to_the_minimum() -> None:
    problem = quadratic(power_law(10, 1), rotate=3)
    result = minimize(problem.fun, problem.x0, method="quadratic-model", maxfev=600, f_target=problem.target(1e-8))
    assert result.success


@pytest.mark.parametrize(("level", "part"), [(1e-4, 0.75), (1e-2, 0.6)])
def test_noise_costs_less_than_with_gradients(level: float, part: float) -> None:
    """To 10 noise levels, medians of 5 seeds, at d = 20: a part of what quasi-Newton needs, 0.6 of random gradient."""
    problem = quadratic(power_law(20, 1), rotate=3)
    scale = problem.fun(problem.x0)

    def needed(method: Any) -> float:
        counts = []
        for seed in range(5):
            fun, count, found = noisy(problem, level, seed), 0, 5000

            def watched(x: Any, fun: Any = fun) -> float:
                nonlocal count, found
                count += 1
                if problem.fun(x) <= 10 * level * scale and found == 5000:
                    found = count
                return float(fun(x))

            minimize(watched, problem.x0, method=method, maxfev=2000, rng=seed)
            counts.append(found)
        return float(np.median(counts))

    noise = level * scale
    ours = needed(QuadraticModel(noise=noise))
    assert ours < part * needed(QuasiNewton(noise=noise))
    assert ours < 0.6 * needed(RandomGradient(noise=noise))


def test_it_ends_in_the_noise() -> None:
    problem = quadratic(power_law(10, 1), rotate=3)
    fun = noisy(problem, 1e-3, 0)
    result = minimize(fun, problem.x0, method=QuadraticModel(), maxfev=5000, tol=0, rng=0)
    assert result.reason == "finished"
    assert result.nfev < 1000
    assert problem.fun(result.x) < 0.1 * problem.fun(problem.x0)
    assert 0.3e-3 < result.noise / problem.fun(problem.x0) < 3e-3


@pytest.mark.parametrize("digits", [6, 9])
def test_rounded_values_are_found_out(digits: int) -> None:
    """Two values tell that there is something to measure; the level is of the size of the last digit."""
    result = minimize(
        lambda x: float(f"{1 + x @ x:.{digits}e}"), np.full(6, 0.8), method=QuadraticModel(), maxfev=2000, rng=0
    )
    assert 0.1 < result.noise / 10.0**-digits < 3


def test_the_first_step_does_not_wait_for_the_noise() -> None:
    """2d + 1 values along the axes tell where a separable function is lowest; 11 more tell its noise after that."""
    rng, c = np.random.default_rng(0), np.linspace(-1, 1, 10)
    session: Session[Any] = Session(QuadraticModel(), np.ones(10), rng=0)
    told = []
    while session.state.scales is None:
        for point in session.ask():
            told.append(float(np.sum((point.x - c) ** 2)))
            session.tell(point.id, told[-1] + 1e-3 * rng.standard_normal())
    assert told[21] < 0.5 * min(told[:21]) < 0.1 * told[0]
    assert 3e-4 < session.state.noise < 3e-3
    assert len(told) == 1 + 2 * 10 + 1 + 2 + 9


def test_exact_values_cost_two_to_find_out() -> None:
    """The opening, the first step of the model, and the two values."""
    session: Session[Any] = Session(QuadraticModel(), np.full(4, 0.3), rng=0)
    while session.state.scales is None:
        for point in session.ask():
            session.tell(point.id, float(np.sum(np.cosh(point.x - 1))))
    assert session.state.noise == 0
    assert session.nfev == 1 + 2 * 4 + 2 + 1


def test_a_wide_pool_gets_all_axes_at_once_and_then_its_width() -> None:
    problem = quadratic(power_law(12, 1), rotate=3)
    session: Session[Any] = Session(QuadraticModel(noise=0).fit(8), problem.x0, rng=0)
    sizes = []
    while session.nfev < 200:
        points = session.ask()
        sizes.append(len(points))
        for point in points:
            session.tell(point.id, problem.fun(point.x))
    assert sizes[:3] == [1, 24, 8]
    assert sizes.count(8) > 10
    assert session.lowest < 1e-2 * problem.fun(problem.x0)


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r'QuadraticModel\(radius=...\) must be "auto" or a positive number; got 0'):
        QuadraticModel(radius=0)
    with pytest.raises(ValueError, match=r"QuadraticModel\(width=...\) must be an integer of at least 1; got 0"):
        QuadraticModel(width=0)
