"""Closed-form bounds against matrices that obey their assumptions."""

from __future__ import annotations

import numpy as np
import pytest

from fewdim.dimension import bounds


@pytest.mark.parametrize("decay", [0.3, 0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("d", [1, 10, 1000])
def test_proposition_1_holds_as_printed(decay: float, alpha: float, d: int) -> None:
    truth = np.sum((2.0 * np.arange(1, d + 1.0) ** -decay) ** alpha)
    bound = bounds.polynomial_decay(2.0, decay, d, alpha)
    assert truth <= bound.bound <= bound.printed * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_proposition_2_needs_the_norm_squared(alpha: float) -> None:
    """Rows of norm R = 3 and q'' = 2: the Gram matrix exceeds the printed bound and not the corrected one."""
    rng = np.random.default_rng(0)
    B = rng.standard_normal((400, 30))
    B *= 3 / np.linalg.norm(B, axis=1)[:, None]
    e = np.linalg.eigvalsh(2 * B.T @ B / 400)
    ed, bound = np.sum(e**alpha), bounds.ridge_separable(2.0, 3.0, 30, alpha)
    assert ed <= bound.bound * (1 + 1e-9)
    if alpha <= 1:
        assert ed > bound.printed


def test_proposition_3_bounds_the_trace_and_not_the_nuclear_norm() -> None:
    """On w'tanh(W'x), |tanh''| <= 0.77, random x and w break the printed bound; the mixed block adds to ED_1."""
    rng = np.random.default_rng(1)
    n, h, curvature = 6, 8, 4 / (3 * np.sqrt(3))
    broken = 0
    for _ in range(50):
        x, w, W = 3 * rng.standard_normal(n), rng.standard_normal(h), 0.3 * rng.standard_normal((n, h))
        t = np.tanh(W.T @ x)
        first, second = 1 - t**2, -2 * t * (1 - t**2)
        H = np.zeros((n * h + h, n * h + h))
        for j in range(h):
            rows = slice(j * n, (j + 1) * n)
            H[rows, rows] = w[j] * second[j] * np.outer(x, x)
            H[rows, n * h + j] = H[n * h + j, rows] = first[j] * x
        bound = bounds.two_layer_trace(curvature, x, w)
        assert abs(np.trace(H)) <= bound.bound
        broken += abs(np.trace(H)) > bound.printed
        nuclear = np.abs(np.linalg.eigvalsh(H)).sum()
        assert nuclear <= bounds.two_layer_nuclear(curvature, first, x, w) * (1 + 1e-9)
    assert broken > 0


def test_corollaries_carry_both_constants() -> None:
    strong = bounds.regression_strongly_convex(1.0, 2.0, 0.01, 1e-2)
    assert strong.bound == 2 * strong.printed
    weak = bounds.regression_convex(1.0, 1.0, 100, 1.0, 0.1)
    assert weak.bound == pytest.approx(weak.printed * 18)
    with pytest.raises(ValueError, match=r"regression_convex\(gap=\.\.\.\) must be a positive number; got 0"):
        bounds.regression_convex(1.0, 1.0, 100, 1.0, 0.0)
