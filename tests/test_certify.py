"""Certificates judged by exact gradients and Hessians: no verdict is wrong, and error bounds hold."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from fewdim import Cubic, certify, minimize

KINDS = ("minimum", "maximum", "saddle", "slope", "faint saddle", "valley")


class Place(NamedTuple):
    fun: Any
    x: Any
    gradient: float
    lowest: float

    @property
    def truth(self) -> str:
        if self.gradient > 1e-4:
            return "not stationary"
        return "negative curvature" if self.lowest < -1e-2 else "second-order stationary"


def place(d: int, kind: str, rng: np.random.Generator) -> Place:
    """A point of a smooth function with third and fourth derivatives of order 1, the others known exactly."""
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    w = np.abs(rng.standard_normal(d)) + 0.05
    if kind == "maximum":
        w = -w
    elif kind == "saddle":
        w[: rng.integers(1, d)] *= -1
    elif kind == "faint saddle":
        w[0] = -rng.choice([0.05, 0.02])  # delta is 0.01
    elif kind == "valley":
        w[: d // 2] = 0
    A, x, c, a = (Q * w) @ Q.T, rng.standard_normal(d), rng.standard_normal(d), 0.3 * rng.standard_normal(d)
    g = 10 ** rng.uniform(-3, 0) * rng.standard_normal(d) if kind == "slope" else np.zeros(d)

    def fun(X: Any) -> Any:
        Z = X - x
        cubic = (a * (np.sin(Z) - Z)).sum(-1)
        return 3 + Z @ g + 0.5 * ((Z @ A) * Z).sum(-1) + cubic + 0.1 * (Z @ c) ** 4 / d**2

    return Place(fun, x, float(np.linalg.norm(g)), float(np.linalg.eigvalsh(A)[0]))


@pytest.mark.parametrize(("d", "count"), [(5, 42), (10, 42), (30, 42), (60, 30), (100, 30), (200, 12), (300, 8)])
def test_verdicts_are_right_at_206_points(d: int, count: int) -> None:
    rng = np.random.default_rng(d)
    for j in range(count):
        at = place(d, KINDS[j % len(KINDS)], rng)
        found = certify(at.fun, at.x, rng=j, vectorized=True)
        assert found.verdict == at.truth, (found, at.gradient, at.lowest)
        assert abs(found.gradient_norm - at.gradient) <= found.gradient_error
        if not np.isnan(found.curvature):
            assert abs(found.curvature - at.lowest) <= found.curvature_error
        assert str(found).startswith(found.verdict)


@pytest.mark.parametrize("lowest", [-0.05, -0.02, 0.0])
@pytest.mark.parametrize("top", [1.0, 1e2, 1e4])
def test_a_small_negative_eigenvalue_is_not_hidden_by_two_clusters(top: float, lowest: float) -> None:
    """Half of the eigenvalues at the top, half at 0, one below: a Krylov space is all but exhausted after two steps."""
    d, rng = 100, np.random.default_rng(0)
    w = np.where(np.arange(d) < 50, top, 0.0)
    w[-1] = lowest
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    A = (Q * w) @ Q.T
    for seed in range(3):
        found = certify(lambda X: 0.5 * ((X @ A) * X).sum(-1) + 1, np.zeros(d), rng=seed, vectorized=True)
        right = "negative curvature" if lowest < 0 else "second-order stationary"
        assert found.verdict in (right, "below noise")
        assert top > (1 if lowest == 0 else 1e2) or found.verdict == right


@pytest.mark.parametrize("d", [8, 80])
def test_the_direction_goes_down(d: int) -> None:
    at = place(d, "saddle", np.random.default_rng(0))
    found = certify(at.fun, at.x, rng=0, vectorized=True)
    assert found.direction is not None
    assert np.linalg.norm(found.direction) == pytest.approx(1)
    assert ("or lower" in str(found)) == np.isinf(found.curvature_error) == (d == 80)
    assert all(at.fun(at.x + t * found.direction) < at.fun(at.x) for t in (1e-2, -1e-2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [6, 70])
def test_noise_is_said_and_never_taken_for_a_proof(kind: str, d: int) -> None:
    """Noise of 1e-3 leaves |g| uncertain by far more than 1e-4: only a large slope is known for sure."""
    at, dice = place(d, kind, np.random.default_rng(d)), np.random.default_rng(1)
    found = certify(lambda X: at.fun(X) + 1e-3 * dice.standard_normal(len(X)), at.x, rng=0, vectorized=True)
    assert found.noise == pytest.approx(1e-3, rel=0.8)
    assert found.verdict == ("not stationary" if kind == "slope" and at.gradient > 1 else "below noise")


@pytest.mark.parametrize("d", [7, 40, 90])
def test_a_budget_is_kept_and_said(d: int) -> None:
    at = place(d, "valley", np.random.default_rng(1))
    for maxfev in (100, 200, 700, 1111, 1300, 2500):
        found = certify(at.fun, at.x, rng=0, vectorized=True, maxfev=maxfev)
        assert found.nfev <= maxfev
        if found.verdict != at.truth:
            assert found.verdict == "below noise"
            assert "maxfev" in str(found) or "smallest eigenvalue is not known" in str(found)
    assert (certify(at.fun, at.x, rng=0, vectorized=True, maxfev=200).verdict == at.truth) == (d == 7)


def test_every_evaluation_counts() -> None:
    calls = 0

    def fun(x: Any) -> float:
        nonlocal calls
        calls += 1
        return float(x @ x)

    assert certify(fun, np.zeros(12), rng=0).nfev == calls
    assert certify(fun, np.zeros((3, 4)).ravel(), rng=0).verdict == "second-order stationary"


def test_one_dimension_float32_and_shapes() -> None:
    assert certify(lambda x: float((x**2).sum()), np.zeros((2, 3), np.float32), rng=0).verdict.startswith("second")
    saddle = certify(lambda x: float(x[0, 0] ** 2 - x[1, 0] ** 2), np.zeros((2, 1)), rng=0)
    assert saddle.direction is not None
    assert saddle.direction.shape == (2, 1)
    assert certify(lambda x: -float(x[0] ** 2), np.zeros(1), rng=0).verdict == "negative curvature"
    assert certify(lambda x: 3.0, np.ones(4), rng=0).verdict == "second-order stationary"


def test_minimize_attaches_it_and_counts_it(tmp_path: Path) -> None:
    calls = 0

    def wells(x: Any) -> float:
        nonlocal calls
        calls += 1
        return float(((x**2 - 1) ** 2).sum())

    plain = minimize(wells, np.zeros(6), method="random-pursuit", maxfev=400, rng=0, journal=tmp_path / "a.db")
    calls = 0
    result = minimize(
        wells, np.zeros(6), method="random-pursuit", maxfev=400, rng=0, certify=True, journal=tmp_path / "b.db"
    )
    assert result.nfev == calls == plain.nfev + result.certificate.nfev
    assert result.fun == plain.fun
    again = minimize(
        wells, np.zeros(6), method="random-pursuit", maxfev=400, rng=0, certify=True, journal=tmp_path / "b.db"
    )
    assert calls == result.nfev  # the journal has the certificate's values, too
    assert str(again.certificate) == str(result.certificate)
    longer = minimize(
        wells, np.zeros(6), method="random-pursuit", maxfev=900, rng=0, certify=True, journal=tmp_path / "b.db", tol=0
    )
    assert longer.certificate.verdict == "second-order stationary"


def test_it_tells_where_runs_ended() -> None:
    def wells(x: Any) -> float:
        return float(((x**2 - 1) ** 2).sum())

    assert minimize(wells, np.zeros(6), method=Cubic(), rng=0, certify=True).certificate.verdict.startswith("second")
    assert certify(wells, np.zeros(6), rng=0).verdict == "negative curvature"
    early = minimize(lambda x: float(x @ x), np.ones(50), maxfev=60, rng=0, certify=True)
    assert early.certificate.verdict == "not stationary"


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match=r"certify\(epsilon=...\) must be a positive number; got 0"):
        certify(lambda x: 0.0, np.zeros(2), epsilon=0)
    with pytest.raises(ValueError, match=r"certify\(maxfev=...\) must be at least 100; got 3"):
        certify(lambda x: 0.0, np.zeros(2), maxfev=3)
    with pytest.raises(ValueError, match="has a value"):
        certify(lambda x: float("nan"), np.zeros(2))
