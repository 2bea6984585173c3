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


@pytest.mark.parametrize("d", [7, 100])
@pytest.mark.parametrize("maxfev", [100, 500, 1500])
def test_a_budget_is_kept_where_values_are_missing(d: int, maxfev: int) -> None:
    """Missing values are asked again, up to five times each, and that counts, too.

    There are values close by to see the minimum that it is, where the budget suffices for 100 dimensions.
    """
    found = certify(lambda x: float(x @ x) if x @ x < 1e-10 else np.nan, np.zeros(d), rng=0, maxfev=maxfev)
    assert found.verdict == ("second-order stationary" if d == 7 or maxfev == 1500 else "below noise")
    assert found.nfev <= maxfev


def test_a_part_of_the_hessian_that_cannot_be_had_is_no_proof() -> None:
    """Of a saddle, the one value that shows it is missing, and the rest looks like a minimum."""

    def fun(x: Any) -> float:
        hidden = x[0] > 0 > x[1] and np.count_nonzero(x) == 2
        return np.nan if hidden else float(0.5 * x @ x + 1.05 * x[0] * x[1])

    assert certify(fun, np.zeros(40), rng=0).verdict == "below noise"


def test_a_check_that_cannot_be_made_is_no_proof() -> None:
    """The model is had, but not the values along a random vector that it is held against."""
    found = certify(lambda x: float(x @ x) if np.count_nonzero(x) < 3 else np.nan, np.zeros(5), rng=0, noise=0)
    assert found.gradient_error < 1e-8
    assert found.verdict == "below noise"


def test_third_derivatives_are_not_taken_for_a_slope() -> None:
    """Values are good to 1e-5 only, so differences reach far: the slopes of the sketch hold what the cubic adds."""
    rng = np.random.default_rng(0)
    x, P = 100 * rng.standard_normal(61), rng.standard_normal((3, 61)) / np.sqrt(61)
    for seed in range(10):
        dice = np.random.default_rng(seed)

        def fun(X: Any, dice: Any = dice) -> Any:
            Z = X - x
            return 0.5 * (Z * Z).sum(-1) + 10 * ((Z @ P.T) ** 3).sum(-1) + 1e-5 * dice.standard_normal(len(X))

        found = certify(fun, x, rng=seed, vectorized=True)
        assert found.verdict == "below noise"
        assert found.gradient_norm <= found.gradient_error


def test_third_derivatives_are_allowed_for_in_the_smallest_eigenvalue() -> None:
    """Many eigenvalues close to the lowest, and products bent by cubic terms: their asymmetry tells by how much."""
    d = 61
    for seed in range(15, 25):
        rng = np.random.default_rng(seed)
        Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
        w = np.concatenate([[-0.012], rng.random(d - 1) ** 4])
        A, x, P = (Q * w) @ Q.T, rng.standard_normal(d), rng.standard_normal((3, d)) / np.sqrt(d)

        def fun(X: Any, A: Any = A, x: Any = x, P: Any = P, rng: Any = rng) -> Any:
            Z = X - x
            Y = Z @ P.T
            beyond = (10 * Y**3 + Y**4).sum(-1) + 1e-12 * rng.standard_normal(len(X))
            return 1 + 0.5 * ((Z @ A) * Z).sum(-1) + beyond

        found = certify(fun, x, rng=seed, vectorized=True)
        assert abs(found.curvature + 0.012) <= found.curvature_error


@pytest.mark.parametrize(("bend", "size", "slope"), [(1.0, 1e-3, 1.0), (1e3, 1.0, 1e-3)])
def test_single_precision_rounds_the_steps_from_x(bend: float, size: float, slope: float) -> None:
    """Steps x + r are met to eps |x|: slopes are off by that over r, and by that times the curvature."""
    rng = np.random.default_rng(0)
    for seed in range(100):
        x, g = size * rng.standard_normal(3).astype(np.float32), slope * rng.standard_normal(3)

        def fun(X: Any, x: Any = x, g: Any = g) -> Any:
            Z = X.astype(float) - x
            return Z @ g + 0.5 * bend * (Z * Z).sum(-1)

        found = certify(fun, x, rng=seed, vectorized=True)
        assert abs(found.gradient_norm - np.linalg.norm(g)) <= found.gradient_error


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


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_run_is_not_lost_with_its_certificate(error: type[BaseException]) -> None:
    plain, calls = minimize(lambda x: float(x @ x), np.ones(6), maxfev=200, rng=0), 0

    def fun(x: Any) -> float:
        nonlocal calls
        calls += 1
        if calls > plain.nfev + 20:
            raise error
        return float(x @ x)

    if error is KeyboardInterrupt:
        result = minimize(fun, np.ones(6), maxfev=200, rng=0, certify=True)
    else:
        with pytest.raises(error) as caught:
            minimize(fun, np.ones(6), maxfev=200, rng=0, certify=True)
        result = caught.value.partial_result  # type: ignore[attr-defined]
    assert result.certificate is None
    assert result.fun == plain.fun
    assert result.reason == plain.reason


def test_it_tells_where_runs_ended() -> None:
    def wells(x: Any) -> float:
        return float(((x**2 - 1) ** 2).sum())

    assert minimize(wells, np.zeros(6), method=Cubic(), rng=0, certify=True).certificate.verdict.startswith("second")
    assert certify(wells, np.zeros(6), rng=0).verdict == "negative curvature"
    early = minimize(lambda x: float(x @ x), np.linspace(1, 2, 50), maxfev=60, rng=0, certify=True)
    assert early.certificate.verdict == "not stationary"


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match=r"certify\(epsilon=...\) must be a positive number; got 0"):
        certify(lambda x: 0.0, np.zeros(2), epsilon=0)
    with pytest.raises(ValueError, match=r"certify\(maxfev=...\) must be an integer of at least 100; got 3"):
        certify(lambda x: 0.0, np.zeros(2), maxfev=3)
    with pytest.raises(ValueError, match=r"certify\(maxfev=...\) must be an integer of at least 100; got 'many'"):
        certify(lambda x: 0.0, np.zeros(2), maxfev="many")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"certify\(fun=...\) must be callable; got 3"):
        certify(3, np.zeros(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"certify\(x=...\) must be finite; element 1 is nan"):
        certify(lambda x: 0.0, [0.0, np.nan])
    with pytest.raises(ValueError, match="has a value"):
        certify(lambda x: float("nan"), np.zeros(2))
