"""Forecasts against measured evaluations, on quadratics and on the logistic losses of real data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize as scipy_minimize
from sklearn.datasets import load_breast_cancer, load_digits

from fewdim import Accelerated, RandomGradient, effective_dimension, minimize
from fewdim.dimension.forecast import Scenario, forecast

Floats = NDArray[np.float64]


class Problem(NamedTuple):
    f: Callable[[Floats], Floats]
    x0: Floats
    least: float


def quadratic(spectrum: Floats, seed: int) -> Problem:
    d = spectrum.size
    normals = np.random.default_rng(seed).standard_normal((3, d))
    normals /= np.linalg.norm(normals, axis=1)[:, None]

    def f(X: Floats) -> Floats:
        for n in normals:
            X = X - 2 * np.outer(X @ n, n)
        return np.asarray(0.5 * X**2 @ spectrum)

    return Problem(f, np.random.default_rng(seed).standard_normal(d), 0.0)


def logistic(Z: Floats, y: Floats, ridge: float) -> Problem:
    """Mean logistic loss on rows scaled to unit mean square norm, from 0; its minimum by BFGS."""
    Z = Z[:, Z.std(axis=0) > 1e-9]
    Z = np.c_[(Z - Z.mean(axis=0)) / Z.std(axis=0), np.ones(len(Z))]
    Z = Z / np.sqrt((Z**2).sum(axis=1).mean()) * y[:, None]

    def f(X: Floats) -> Floats:
        return np.asarray(np.logaddexp(0, -X @ Z.T).mean(axis=1) + 0.5 * ridge * (X**2).sum(axis=1))

    def gradient(x: Floats) -> Floats:
        return np.asarray(-Z.T @ (1 / (1 + np.exp(Z @ x))) / len(Z) + ridge * x)

    x0 = np.zeros(Z.shape[1])
    best = scipy_minimize(lambda x: float(f(x[None])[0]), x0, jac=gradient, method="BFGS", options={"gtol": 1e-9})
    return Problem(f, x0, float(best.fun))


def breast_cancer() -> Problem:
    Z, y = load_breast_cancer(return_X_y=True)
    return logistic(Z, 2.0 * y - 1, 1e-3)


def digits() -> Problem:
    Z, y = load_digits(return_X_y=True)
    return logistic(Z, np.where(y % 2, 1.0, -1.0), 1e-3)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "i^-1": lambda: quadratic(np.arange(1, 401.0) ** -1.0, 11),
    "i^-1.5": lambda: quadratic(np.arange(1, 601.0) ** -1.5, 12),
    "exponential": lambda: quadratic(np.exp(-np.arange(300) / 15), 13),
    "two levels": lambda: quadratic(np.r_[np.ones(20), np.full(280, 0.02)], 14),
    "breast cancer": breast_cancer,
    "digits": digits,
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_measured_evaluations_lie_in_the_range(name: str) -> None:
    """To a tenth of the gap, the median of 5 runs: one run is within the range's factor of its mean, not surely so."""
    problem = PROBLEMS[name]()
    ed = effective_dimension(problem.f, problem.x0, rng=1, vectorized=True)
    gap0 = float(problem.f(problem.x0[None])[0]) - problem.least
    table = ed.forecast(0.1)
    for method, prediction in ((RandomGradient(), "random-gradient"), (Accelerated(), "accelerated")):
        runs = [
            minimize(
                problem.f, problem.x0, method=method, f_target=problem.least + 0.1 * gap0, maxfev=100_000, rng=seed,
                vectorized=True, tol=0,
            ).nfev
            for seed in range(5)
        ]  # fmt: skip
        assert table[prediction].low <= float(np.median(runs)) <= table[prediction].high


def test_the_verdict_tells_full_rank_from_few_dimensions() -> None:
    few = quadratic(np.arange(1, 1001.0) ** -2.0, 1)
    ed = effective_dimension(few.f, few.x0, rng=0, vectorized=True)
    assert "few dimensions matter" in ed.forecast(0.1).verdict
    full = quadratic(np.ones(300), 1)
    flat = effective_dimension(full.f, full.x0, rng=0, vectorized=True)
    assert "full-rank" in flat.forecast(0.1).verdict


def test_the_table_reads_and_is_ordered() -> None:
    spectrum = 1 / np.arange(1, 51.0)
    table = forecast((Scenario(spectrum, np.ones(50), np.ones(50)),), 0.01, 50, True, True)
    assert [row.method for row in table.predictions] == [
        "random-gradient",
        "accelerated",
        "heavy-ball",
        "finite-difference-cg",
    ]
    for row in table.predictions:
        assert row.low <= row.evaluations <= row.high
        assert row.method in str(table)
    with pytest.raises(ValueError, match=r"gap=\.\.\.\) must lie in \(0, 1\); got 2"):
        forecast((Scenario(spectrum, np.ones(50), np.ones(50)),), 2, 50, True, True)
    trace = effective_dimension(lambda x: float(x @ x), np.ones(200), alphas=(1.0,), rng=0)
    with pytest.raises(ValueError, match="needs an estimated spectrum"):
        trace.forecast(0.1)
