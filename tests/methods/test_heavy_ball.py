"""Algorithm 2: as printed, as it holds, and where it diverges."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from fewdim import HeavyBall, Session, StabilityWarning, gaussian, minimize, theory
from fewdim.problems import power_law, quadratic

BENIGN = [1.0, 0.9, 0.8]


def test_paper_is_algorithm_2_as_printed() -> None:
    """Ten lines: beta = sqrt(h mu), h = 1/(14400 ED)^2; y = x + (1-beta) v; x = y - h g; v = x - x_old."""
    spectrum, rho = np.array(BENIGN), 1e-3
    problem = quadratic(spectrum)
    half = np.sqrt(spectrum).sum()
    method = HeavyBall(
        constants="paper", half_dimension=half, strong_convexity=0.8, directions="gaussian", radius=rho, noise=0
    )
    session: Session[Any] = Session(method, problem.x0, rng=5)
    h = 1 / (14400 * half) ** 2
    beta = math.sqrt(h * 0.8)
    x, v = problem.x0, np.zeros(3)
    for n in range(200):
        while session.nit < n:
            for point in session.ask():
                session.tell(point.id, problem.fun(point.x))
        assert np.array_equal(session.state.x, x)
        y = x + (1 - beta) * v
        xi = gaussian((5, n, 0)).array(3)
        g = (problem.fun(y + rho * xi) - problem.fun(y)) / rho * xi
        x_new = y - h * g
        x, v = x_new, x_new - x


def test_the_divergence_example() -> None:
    """Against Theorem 3: 20 eigenvalues 1, one 1e-4, h = c^2/ED_1/2^2 with c = 0.1, beta = sqrt(h mu): f grows.

    The exact moments grow 1e30-fold in 4e5 steps; runs of 4e4 steps have grown by orders of magnitude already.
    """
    spectrum = np.r_[np.ones(20), 1e-4]
    half = float(np.sqrt(spectrum).sum())
    h = (0.1 / half) ** 2
    momentum = 1 - math.sqrt(h * 1e-4)
    assert theory.heavy_ball_load(spectrum, h, 1 - momentum) > 1
    exact = theory.expected_gaps(theory.heavy_ball(h, momentum), spectrum, np.ones(21), 400_000)
    assert 1e27 < exact[-1] / exact[0] < 1e33
    problem = quadratic(spectrum)
    with pytest.warns(StabilityWarning, match=r"diverges in mean square on this spectrum: sum q/\(1-q\) ="):
        method = HeavyBall(step=h, momentum=momentum, spectrum=spectrum, directions="gaussian", noise=0)
    grown = []
    for seed in range(3):
        session: Session[Any] = Session(method, problem.x0, rng=seed)
        while session.nit < 40_000:
            for point in session.ask():
                session.tell(point.id, problem.fun(point.x))
        grown.append(problem.fun(session.state.x) / problem.fun(problem.x0))
    assert np.median(grown) > 10


def test_warns_exactly_when_the_condition_fails() -> None:
    bad = np.r_[np.ones(10), np.full(100, 1e-10)]
    with pytest.warns(StabilityWarning, match=r"2\.58"):
        HeavyBall(constants="paper", spectrum=bad)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HeavyBall(spectrum=bad)
        HeavyBall(constants="paper", spectrum=BENIGN)
        HeavyBall(constants="paper", half_dimension=11.0, strong_convexity=1e-10)  # no spectrum, nothing to judge by
        HeavyBall(spectrum=bad, batch=8)
    with pytest.warns(StabilityWarning, match="its moments grow by"):
        HeavyBall(step=10.0, spectrum=[2.0] * 4, batch=2)


@pytest.mark.parametrize("decay", [0.5, 1, 2, 3])
def test_stable_by_default_and_within_a_constant_of_random_gradient(decay: float) -> None:
    """1.00 to 1.20 times the iterations of random gradient, by the exact moments; 5 % for rounding to whole steps."""
    spectrum = power_law(100, decay)
    h = 1 / (spectrum.sum() + 2)
    ball = theory.expected_gaps(theory.heavy_ball(0.4 * h, 0.6), spectrum, np.ones(100), 60_000)
    plain = theory.expected_gaps(theory.random_gradient(h), spectrum, np.ones(100), 60_000)
    steps = [int(np.argmax(gaps <= 1e-2 * gaps[0])) for gaps in (ball, plain)]
    assert 0.95 <= steps[0] / steps[1] <= 1.25


def test_numbers_win() -> None:
    state = _first(HeavyBall(step=0.125, momentum=0.5, constants="paper", spectrum=BENIGN, noise=0))
    assert (state.step, state.damping) == (0.125, 0.5)
    state = _first(HeavyBall(momentum=0.5, trace=2.0, smoothness=1.0, noise=0))
    assert (state.step, state.damping) == (0.125, 0.5)
    state = _first(HeavyBall(step=0.125, trace=2.0, smoothness=1.0, noise=0))
    assert (state.step, state.damping) == (0.125, 0.4)


def _first(method: HeavyBall) -> Any:
    session: Session[Any] = Session(method, np.ones(3), rng=0)
    while session.nit < 1:
        for point in session.ask():
            session.tell(point.id, float(point.x @ point.x))
    return session.state


def test_finds_the_minimum_without_being_told_anything() -> None:
    problem = quadratic(power_law(50, 1), rotate=3)
    result = minimize(problem.fun, problem.x0, method="heavy-ball", f_target=problem.target(1e-3), rng=0)
    assert result.reason == "target"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"momentum": 1.2}, r"HeavyBall\(momentum=...\) must lie in \[0, 1\); got 1.2."),
        ({"constants": "paper"}, r'HeavyBall\(constants="paper"\) needs half_dimension= and strong_convexity='),
        ({"constants": "paper", "half_dimension": 2.0}, "strong_convexity is None"),
        ({"constants": "fast"}, r"HeavyBall\(constants=...\) must be one of 'stable', 'paper'; got 'fast'"),
        ({"spectrum": [1.0, -1.0]}, r"HeavyBall\(spectrum=...\) must hold eigenvalues of at least 0.*got -1.0"),
        ({"spectrum": []}, r"HeavyBall\(spectrum=...\) must hold"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HeavyBall(**settings)
