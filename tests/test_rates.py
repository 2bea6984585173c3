"""Rates that the theorems promise, measured."""

import math
from typing import Any

import numpy as np
import pytest

from fewdim import RandomGradient, Session, minimize, theory
from fewdim.problems import power_law, quadratic


def queries(d: int, decay: float, gap: float, seeds: int, law: str = "gaussian") -> float:
    """Median evaluations of random gradient with known trace and smoothness."""
    problem = quadratic(power_law(d, decay))
    trace = float(power_law(d, decay).sum())
    method = RandomGradient(trace=trace, smoothness=1.0, directions=law, noise=0)
    counts = [
        minimize(problem.fun, problem.x0, method=method, f_target=problem.target(gap), rng=seed, maxfev=10**6).nfev
        for seed in range(seeds)
    ]
    return float(np.median(counts))


@pytest.mark.parametrize(("d", "seeds"), [(1000, 5), (100_000, 2)])
def test_the_cost_is_that_of_the_dimensions_that_matter(d: int, seeds: int) -> None:
    """Eigenvalues i^-2 to a gap of 1e-2: about 17k evaluations at d = 1,000 and about 20k at d = 100,000 for Gaussian
    directions; for the sign directions used here 17.6k at d = 100,000.

    What is expected comes from the exact moments.  A run stops at its first value at or below the target and single
    runs scatter by about 10 %, so it may come earlier, by up to a quarter.
    """
    spectrum = power_law(d, 2)
    h = 1 / (spectrum.sum() + 2)
    # the last eigenvalues hardly move: 2,000 of them, with their trace, stand for the rest
    gaps = theory.expected_gaps(theory.random_gradient(h), spectrum[:2000], np.ones(min(d, 2000)), 12_000, "signs")
    expected = 2 * int(np.argmax(gaps <= 1e-2 * gaps[0]))
    assert expected == pytest.approx(16_500, rel=0.1)
    assert 0.75 * expected < queries(d, 2, 1e-2, seeds, law="signs") < 1.15 * expected


def test_flat_in_the_dimension() -> None:
    """The slope of log evaluations against log d stays below 0.1 between 300 and 30,000 (exact worst case: 0.03)."""
    counts = [queries(d, 2, 2e-2, seeds=5, law="signs") for d in (300, 30_000)]
    assert math.log(counts[1] / counts[0]) / math.log(100) < 0.1


def test_a_full_rank_problem_costs_d() -> None:
    """Equal eigenvalues: the effective dimension is d, and the price is proportional to it (slope 1 in log-log)."""
    counts = [queries(d, 0, 1e-3, seeds=5) for d in (30, 300)]
    assert math.log10(counts[1] / counts[0]) == pytest.approx(1.0, abs=0.1)


def test_theorem_1_contraction() -> None:
    """With h = 1/(12 tr) the mean gap contracts by 1 - mu/(24 tr) a step or better, by the exact moments.

    60 simulated runs end within 3 standard errors of those moments.
    """
    spectrum, steps = np.linspace(0.2, 1.0, 10), 300
    h = 1 / (12 * spectrum.sum())
    exact = theory.expected_gaps(theory.random_gradient(h), spectrum, np.ones(10), steps)
    assert np.all(exact[1:] <= (1 - spectrum.min() / (24 * spectrum.sum())) * exact[:-1])
    problem = quadratic(spectrum)
    method = RandomGradient(step="paper", trace=float(spectrum.sum()), directions="gaussian", noise=0)
    ends = []
    for seed in range(60):
        session: Session[Any] = Session(method, problem.x0, rng=seed)
        while session.nit < steps:
            for point in session.ask():
                session.tell(point.id, problem.fun(point.x))
        ends.append(problem.fun(session.state.x))
    assert abs(np.mean(ends) - exact[-1]) < 3 * np.std(ends, ddof=1) / math.sqrt(60)
