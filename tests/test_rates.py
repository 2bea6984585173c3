"""Rates that the theorems promise, measured."""

import math

import numpy as np
import pytest

from fewdim import RandomGradient, minimize
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


def test_the_cost_is_that_of_the_dimensions_that_matter() -> None:
    """Eigenvalues i^-2 to a gap of 1e-2: about 17k evaluations at d = 1,000 and about 20k at d = 100,000.

    THEORY has 17.4k and 20.4k in expectation; runs stop at the first value at or below the target, a probe's included,
    so they may come earlier, and single runs scatter by about 10 %.
    """
    small = queries(1000, 2, 1e-2, seeds=5)
    large = queries(100_000, 2, 1e-2, seeds=1, law="signs")
    assert 13_000 < small < 19_000
    assert 14_000 < large < 23_000
    slope = math.log(large / small) / math.log(100)
    assert slope < 0.1


def test_a_full_rank_problem_costs_d() -> None:
    """Equal eigenvalues: the effective dimension is d, and the price is proportional to it (slope 1 in log-log)."""
    counts = [queries(d, 0, 1e-3, seeds=5) for d in (30, 300)]
    assert math.log10(counts[1] / counts[0]) == pytest.approx(1.0, abs=0.1)


def test_theorem_1_contraction() -> None:
    """With h = 1/(12 tr) the mean gap contracts by at least 1 - mu/(24 tr) a step (exact differences, no noise)."""
    spectrum = np.linspace(0.2, 1.0, 10)
    problem = quadratic(spectrum)
    method = RandomGradient(step="paper", trace=float(spectrum.sum()), directions="gaussian", noise=0)
    rate, steps = 1 - 0.2 / (24 * spectrum.sum()), 600
    gaps = [
        minimize(problem.fun, problem.x0, method=method, maxfev=2 * steps, rng=seed, tol=0).fun for seed in range(20)
    ]
    assert np.mean(gaps) < rate**steps * problem.fun(problem.x0)
