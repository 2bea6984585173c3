"""Algorithm 1: its steps, its constants, its rate."""

import math
from typing import Any

import numpy as np
import pytest

from fewdim import RandomGradient, Session, gaussian, minimize
from fewdim.problems import power_law, quadratic

SPECTRUM = power_law(30, 1)


def iterates(method: Any, problem: Any, steps: int, seed: int = 5) -> list[Any]:
    session: Session[Any] = Session(method, problem.x0, rng=seed)
    found = [session.state.x]
    while session.nit < steps:
        nit = session.nit
        for point in session.ask():
            session.tell(point.id, problem.fun(point.x))
        if session.nit > nit:
            found.append(session.state.x)
    return found


@pytest.mark.parametrize(
    ("settings", "h"),
    [
        ({"step": "paper", "trace": SPECTRUM.sum()}, 1 / (12 * SPECTRUM.sum())),
        ({"step": "nesterov", "smoothness": 1.0}, 1 / (4 * 34)),
        ({"step": 0.05}, 0.05),  # with a radius given and no trace, no correction
        ({"step": "auto", "trace": SPECTRUM.sum(), "smoothness": 1.0}, 1 / (SPECTRUM.sum() + 2)),
    ],
)
def test_every_step_rule_is_algorithm_1(settings: dict[str, Any], h: float) -> None:
    """The method's course equals the paper's two lines, written out."""
    problem, rho = quadratic(SPECTRUM), 1e-4
    method = RandomGradient(**settings, directions="gaussian", radius=rho, noise=0)
    correction = 0.0 if settings["step"] in ("paper", "nesterov") else settings.get("trace", 0.0)
    x = problem.x0
    for k, got in enumerate(iterates(method, problem, 50)):
        assert np.allclose(got, x, rtol=1e-12, atol=1e-12)
        xi = gaussian((5, k, 0)).array(30)
        slope = (problem.fun(x + rho * xi) - problem.fun(x)) / rho - rho * correction / 2
        x = x - h * slope * xi


def test_two_values_a_step_and_nothing_spent_when_all_is_known() -> None:
    problem = quadratic(SPECTRUM)
    method = RandomGradient(trace=SPECTRUM.sum(), smoothness=1.0, noise=0)
    result = minimize(problem.fun, problem.x0, method=method, maxfev=1000, rng=0)
    assert (result.nfev, result.nit) == (1000, 500)


def test_estimates_come_close_to_what_is_known() -> None:
    """Median over 15 seeds of queries to 1e-2: with estimates at most 1.5 times those with tr and L given."""
    problem = quadratic(power_law(100, 1.5), rotate=1)
    known = RandomGradient(trace=problem.spectrum.sum(), smoothness=1.0)  # type: ignore[union-attr]
    counts = {
        method: np.median(
            [
                minimize(
                    problem.fun, problem.x0, method=method, f_target=problem.target(1e-2), maxfev=10**5, rng=seed
                ).nfev
                for seed in range(15)
            ]
        )
        for method in (known, RandomGradient())
    }
    assert counts[RandomGradient()] <= 1.5 * counts[known]


def _softplus_well(x: Any) -> float:
    """Slope 1 and curvature e^-10 at x = 10, curvature 1 at the minimum x = 0, overflow not far beyond."""
    with np.errstate(over="ignore"):
        return float(np.sum(np.exp(-x) + x))


def test_the_step_recovers_when_curvature_grows_along_the_run() -> None:
    """The first estimate of the trace is 20,000 times too small for the minimum; steps halve until they hold."""
    result = minimize(_softplus_well, np.full(20, 10.0), method=RandomGradient(), rng=0, maxfev=10_000)
    assert result.fun < 20 * (1 + 1e-3)


def test_noise_calls_for_central_differences_and_a_large_radius() -> None:
    problem = quadratic(SPECTRUM)
    session: Session[Any] = Session(RandomGradient(noise=1e-4), problem.x0, rng=0)
    while session.nit < 5:
        for point in session.ask():
            session.tell(point.id, problem.fun(point.x))
    offsets = session.query.offsets  # type: ignore[union-attr]
    assert [o.scale for o in offsets] == [pytest.approx(r) for r in (offsets[0].scale, -offsets[0].scale)]  # type: ignore[union-attr]
    trace = session.state.scales.trace
    assert offsets[0].scale ** 2 * trace / 2 == pytest.approx(30e-4)  # type: ignore[union-attr]


def test_the_noise_floor_is_where_the_theory_puts_it() -> None:
    """Central differences, variance v a value: gap -> h d s2 / (4 (1 - h tr/2)) with s2 = v / (2 rho^2), Gaussian u.

    The stationary mean over 4000 steps of 6 runs; the formula neglects terms of order h L, so 20 % is allowed.
    """
    d, rho, level = 30, 0.3, 1e-2
    h = 0.1 / SPECTRUM.sum()
    problem = quadratic(SPECTRUM)
    method = RandomGradient(step=h, directions="gaussian", difference="central", radius=rho, noise=0)
    gaps = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        session: Session[Any] = Session(method, np.zeros(d), rng=seed)
        while session.nit < 6000:
            for point in session.ask():
                session.tell(point.id, problem.fun(point.x) + level * rng.standard_normal())
            if session.nit > 2000:
                gaps.append(problem.fun(session.state.x))
    s2 = level**2 / (2 * rho**2)
    assert np.mean(gaps) == pytest.approx(h * d * s2 / (4 * (1 - h * SPECTRUM.sum() / 2)), rel=0.2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"step": "best"},
            r"RandomGradient\(step=...\) must be one of 'auto', 'local', 'paper', 'nesterov'; got 'best'",
        ),
        ({"step": 0}, r"RandomGradient\(step=...\) must be a positive number; got 0"),
        ({"trace": math.nan}, r"RandomGradient\(trace=...\) must be a positive number; got nan"),
        ({"batch": 0}, r"RandomGradient\(batch=...\) must be an integer of at least 1; got 0"),
        ({"batch": 1.5}, r"RandomGradient\(batch=...\) must be an integer"),
        ({"directions": "cauchy"}, r"RandomGradient\(directions=...\) must be one of 'signs'"),
        ({"difference": "backward"}, r"RandomGradient\(difference=...\) must be one of"),
        ({"noise": "low"}, r"RandomGradient\(noise=...\) must be"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RandomGradient(**settings)


def test_settings_read_well_and_compare() -> None:
    assert repr(RandomGradient(step="paper", trace=2.0)) == "RandomGradient(step='paper', trace=2.0)"
    assert RandomGradient(batch=2) == RandomGradient(batch=2) != RandomGradient()
    with pytest.raises(AttributeError):
        RandomGradient().batch = 3  # type: ignore[misc]
