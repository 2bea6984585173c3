"""The effective dimension of functions whose Hessian is known, from values, products and the Hessian itself."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fewdim import effective_dimension

Floats = NDArray[np.float64]
SPECTRA: dict[str, Callable[[Floats], Floats]] = {
    "i^-1": lambda i: 1 / i,
    "i^-2": lambda i: i**-2.0,
    "exponential": lambda i: np.exp(-(i - 1) / 10),
    "flat": np.ones_like,
}


def spectrum(name: str, d: int) -> Floats:
    return np.asarray(SPECTRA[name](np.arange(1, d + 1.0)))


def quadratic(eigenvalues: Floats, seed: int = 7) -> Callable[[Floats], Floats]:
    """1/2 x'Ax of rows x, rotated by four random reflections: dense in every coordinate, and O(d) a value."""
    d = eigenvalues.size
    normals = np.random.default_rng(seed).standard_normal((4, d))
    normals /= np.linalg.norm(normals, axis=1)[:, None]

    def f(X: Floats) -> Floats:
        for n in normals:
            X = X - 2 * np.outer(X @ n, n)
        return np.asarray(0.5 * X**2 @ eigenvalues)

    return f


def check_accuracy(name: str, d: int, seeds: int) -> None:
    """Median errors and coverage over seeds, in the budgets: 10 % for ED_1 in 600, 25 or 35 % for ED_1/2 in 5200."""
    l = spectrum(name, d)  # noqa: E741
    f, half, trace = quadratic(l), float(np.sqrt(l).sum()), float(l.sum())
    errors, traces, covered = [], [], 0
    for seed in range(seeds):
        ed = effective_dimension(f, np.ones(d), rng=seed, vectorized=True)
        assert ed.nfev <= 5200
        errors.append(abs(ed[0.5].estimate / half - 1))
        covered += ed[0.5].low <= half <= ed[0.5].high
        assert ed.smooth
        assert ed.convex
        quick = effective_dimension(f, np.ones(d), alphas=(1.0,), rng=seed, vectorized=True)
        assert quick.nfev <= 600
        traces.append(abs(quick[1.0].estimate / trace - 1))
    assert np.median(errors) <= (0.25 if d <= 1000 else 0.35)
    assert np.median(traces) <= 0.10
    assert covered >= 0.9 * seeds


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_at_1000(name: str) -> None:
    check_accuracy(name, 1000, 10)


@pytest.mark.long
@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_at_5000(name: str) -> None:
    check_accuracy(name, 5000, 10)


@pytest.mark.parametrize("name", ["i^-1", "exponential", "flat"])
def test_indefinite_hessians_have_singular_values_and_positive_eigenvalues(name: str) -> None:
    """Alternating signs, 1500 dimensions, a sketch; the spread of the estimates over seeds is a few per cent."""
    l = spectrum(name, 1500) * np.where(np.arange(1500) % 3 == 1, -1, 1)  # noqa: E741
    ed = effective_dimension(quadratic(l), np.ones(1500), rng=0, vectorized=True)
    assert not ed.convex
    for alpha in (0.5, 1.0):
        truth, positive = np.sum(np.abs(l) ** alpha), np.sum(np.maximum(l, 0) ** alpha)
        assert ed[alpha].estimate == pytest.approx(truth, rel=0.2)
        assert ed[alpha].positive == pytest.approx(positive, rel=0.25)
        assert ed[alpha].low <= truth <= ed[alpha].high
    assert "indefinite" in str(ed)


def test_lanczos_on_differences_is_used_where_the_budget_allows_it() -> None:
    l = spectrum("i^-1", 200) * np.where(np.arange(200) % 2, -1, 1)  # noqa: E741
    f = quadratic(l)
    ed = effective_dimension(f, np.ones(200), rng=0, vectorized=True, maxfev=20_000)
    assert ed.estimator == "Lanczos quadrature"
    assert ed.nfev <= 20_000
    for alpha in (0.5, 1.0):
        truth = np.sum(np.abs(l) ** alpha)
        # a Gaussian probe of |A|^alpha has variance 2 sum |l|^2alpha; three probes, two standard errors
        error = 2 * np.sqrt(2 * np.sum(np.abs(l) ** (2 * alpha)) / 3)
        assert ed[alpha].estimate == pytest.approx(truth, abs=error)
        assert ed[alpha].low <= truth <= ed[alpha].high
    asked = effective_dimension(f, np.ones(200), rng=0, vectorized=True, maxfev=9_000, estimator="lanczos")
    assert asked.estimator == "Lanczos quadrature"


def test_small_problems_get_the_whole_hessian() -> None:
    l = spectrum("i^-2", 40)  # noqa: E741
    ed = effective_dimension(quadratic(l), np.ones(40), rng=0, vectorized=True)
    assert ed.nfev <= 40 * 43 // 2 + 100
    # second differences of a quadratic at a radius near 1 carry round-off only
    assert ed[0.5].estimate == pytest.approx(np.sqrt(l).sum(), rel=1e-5)
    assert np.allclose(np.sort(ed.spectrum.eigenvalues)[::-1], l, atol=1e-8)


def test_a_given_hessian_is_exact_and_costs_nothing() -> None:
    A = np.diag([3.0, 1.0, -0.5])
    for given in (A, lambda x: A):
        ed = effective_dimension(lambda x: 0.0, np.zeros(3), hessian=given, alphas=(0.5, 1.0, 2.0))
        assert ed.nfev == 0
        assert ed[1.0].estimate == ed[1.0].low == ed[1.0].high == 4.5
        assert ed[1.0].positive == 4.0
        assert ed[2.0].estimate == pytest.approx(10.25)
        assert ed[1.0].replaces == 9.0


def test_products_give_lanczos_quadrature() -> None:
    l = spectrum("i^-1", 500)  # noqa: E741
    ed = effective_dimension(lambda x: 0.0, np.zeros(500), hvp=lambda x, v: l * v, rng=0)
    assert (ed.nfev, ed.products) == (0, 90)
    for alpha in (0.5, 1.0):
        truth = float(np.sum(l**alpha))
        assert ed[alpha].low <= truth <= ed[alpha].high
        assert ed[alpha].estimate == pytest.approx(truth, rel=0.2)


def test_other_powers() -> None:
    """ED_2 is an unbiased mean of squares; 1 < alpha < 2 and alpha > 2 rest on the same curve."""
    l = spectrum("i^-1", 800)  # noqa: E741
    ed = effective_dimension(quadratic(l), np.ones(800), alphas=(0.25, 1.5, 2.0, 3.0), rng=0, vectorized=True)
    for alpha in (0.25, 1.5, 2.0, 3.0):
        # large powers rest on the first eigenvalue, whose sketch of 97 columns has the relative error sqrt(2/97) = .14
        assert ed[alpha].estimate == pytest.approx(np.sum(l**alpha), rel=0.14 * max(1.0, alpha) * 2)


def test_over_takes_the_largest_seen() -> None:
    def f(X: Floats) -> Floats:  # Hessian diag(12 x^2)
        return np.asarray((X**4).sum(axis=1))

    points = [np.full(10, s) for s in (1.0, 3.0, 2.0)]
    ed = effective_dimension(f, points[0], over=points[1:], rng=0, vectorized=True)
    single = effective_dimension(f, points[1], rng=0, vectorized=True)
    assert ed.points == 3
    assert ed[1.0].estimate == pytest.approx(12 * 9 * 10, rel=1e-4)
    assert ed[1.0].estimate == single[1.0].estimate
    assert ed.nfev > 2 * single.nfev
    assert "largest over 3 points" in str(ed)


def network(activation: Callable[[Floats], Floats], hidden: int) -> tuple[Callable[[Floats], float], Floats]:
    """A two-layer network on a small classification problem; its loss and a random start."""
    rng = np.random.default_rng(0)
    Z, labels = rng.standard_normal((300, 20)), rng.integers(5, size=300)
    sizes = (20 * hidden, hidden, 5 * hidden)

    def loss(x: Floats) -> float:
        W, b, V = np.split(x, np.cumsum(sizes)[:-1])
        out = activation(Z @ W.reshape(20, hidden) + b) @ V.reshape(hidden, 5)
        out = out - out.max(axis=1, keepdims=True)
        return float(np.mean(np.log(np.exp(out).sum(axis=1)) - out[np.arange(300), labels]))

    return loss, rng.standard_normal(sum(sizes)) * 0.3


def test_a_relu_network_is_not_smooth_and_a_tanh_network_is() -> None:
    loss, x = network(lambda z: np.maximum(z, 0), 16)
    rough = effective_dimension(loss, x, rng=0, maxfev=1000)
    assert rough.smooth is False
    assert "kinks" in rough.sentence
    assert "do not rely on it" in rough.forecast(0.1).verdict
    loss, x = network(np.tanh, 16)
    assert effective_dimension(loss, x, rng=0, maxfev=1000).smooth is True


def test_missing_values_are_missing_data() -> None:
    l = spectrum("i^-1", 400)  # noqa: E741
    f, fails = quadratic(l), np.random.default_rng(0)

    def sometimes(x: Floats) -> float:
        return float("nan") if fails.random() < 0.002 and not (x == 1).all() else float(f(x[None])[0])

    ed = effective_dimension(sometimes, np.ones(400), rng=1, maxfev=3000)
    # about 6 of 3000 values fail; each takes a column out of 69 at most
    assert ed[0.5].estimate == pytest.approx(np.sqrt(l).sum(), rel=0.15)
    with pytest.raises(ValueError, match="must be a point where fun has a value"):
        effective_dimension(lambda x: float("nan"), np.ones(3))


def test_noise_widens_what_is_unseen_and_is_not_taken_for_curvature() -> None:
    l = spectrum("i^-1", 300)  # noqa: E741
    f, noise = quadratic(l), np.random.default_rng(0)
    ed = effective_dimension(
        lambda X: f(X) + 1e-3 * noise.standard_normal(len(X)), np.ones(300), rng=0, vectorized=True
    )
    assert ed[1.0].estimate == pytest.approx(l.sum(), rel=0.1)
    assert ed[0.5].low <= np.sqrt(l).sum() <= ed[0.5].high


def test_every_evaluation_counts_and_seeds_repeat() -> None:
    calls = 0

    def f(x: Floats) -> float:
        nonlocal calls
        calls += 1
        return float(x @ x)

    first = effective_dimension(f, np.ones(150), rng=5, maxfev=1500)
    assert first.nfev == calls <= 1500
    again = effective_dimension(f, np.ones(150), rng=5, maxfev=1500)
    assert again[0.5] == first[0.5]


def test_shapes_float32_and_arrays_of_any_shape() -> None:
    ed = effective_dimension(lambda x: float((x**2).sum()), np.ones((4, 5)), rng=0)
    assert ed[1.0].estimate == pytest.approx(40, rel=1e-6)
    single = effective_dimension(lambda x: float((x.astype(float) ** 2).sum()), np.ones(20, np.float32), rng=0)
    assert single[1.0].estimate == pytest.approx(40, rel=0.02)


def test_the_report_reads() -> None:
    l = spectrum("i^-1", 300)  # noqa: E741
    ed = effective_dimension(quadratic(l), np.ones(300), rng=0, vectorized=True)
    report = str(ed)
    for part in ("d = 300", "evaluations", "ED_alpha", "L = ", "trace = ", "singular values", "local value"):
        assert part in report
    assert max(map(len, report.splitlines())) <= 160
    with pytest.raises(KeyError, match="alpha=2 was not asked for"):
        ed[2]
    assert ed.spectrum.quantile(1.0) >= ed.spectrum.quantile(0.5) >= 0


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"alphas": (0.0,)}, ValueError, r"alphas=\.\.\."),
        ({"alphas": ()}, ValueError, r"alphas=\.\.\."),
        ({"maxfev": 10}, ValueError, r"maxfev=\.\.\..*at least 100; got 10"),
        ({"workers": 0}, ValueError, r"workers=\.\.\.\) must be at least 1"),
        ({"estimator": "guess"}, ValueError, "estimator"),
        ({"estimator": "dense", "maxfev": 200}, ValueError, "needs 5150 evaluations"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        effective_dimension(lambda x: float(x @ x), np.ones(100), **arguments)


def test_a_pool_gives_the_same_estimate() -> None:
    weights = np.arange(1, 201) ** -1.5

    def fun(x: Any) -> float:
        return float(weights @ x**2)

    alone = effective_dimension(fun, np.ones(200), maxfev=700, rng=0)
    with ThreadPoolExecutor(4) as executor:
        together = effective_dimension(fun, np.ones(200), maxfev=700, rng=0, workers=executor)
    assert together[0.5] == alone[0.5]
    assert together.nfev == alone.nfev <= 700
