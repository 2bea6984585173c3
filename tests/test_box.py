"""Bounds: fun never sees a point outside, minima on the boundary are found, and every form is understood."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds
from scipy.optimize import minimize as reference

from fewdim import METHODS, Journal, minimize
from fewdim.box import Box

RNG = np.random.default_rng(0)
CENTRE = RNG.standard_normal(20)
ROTATION = np.linalg.qr(RNG.standard_normal((20, 20)))[0]
HESSIAN = ROTATION.T @ np.diag(1 / np.arange(1, 21)) @ ROTATION


def bowl(x: Any) -> float:
    e = x - CENTRE
    return float(e @ HESSIAN @ e)


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(np.full(20, -0.5), np.full(20, 0.5)),
        [(-0.5, None)] * 20,
        [(None, 0.5)] * 20,
        [(-0.5, 0.5), (None, None)] * 10,
    ],
    ids=["both", "below", "above", "mixed"],
)
def test_the_minimum_within_bounds_is_found(bounds: Any) -> None:
    seen: list[Any] = []

    def fun(x: Any) -> float:
        seen.append(x.copy())
        return bowl(x)

    result = minimize(fun, np.zeros(20), bounds=bounds, maxfev=4000, rng=0)
    box = Box.of(bounds, np.zeros(20))
    points = np.array(seen)
    assert (points >= box.low).all()
    assert (points <= box.high).all()
    best = reference(bowl, np.zeros(20), jac=lambda x: 2 * HESSIAN @ (x - CENTRE), bounds=bounds, tol=1e-14).fun
    assert result.fun - best < 1e-5 * (bowl(np.zeros(20)) - best)
    assert result.fun == bowl(result.x)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("large-step", "accelerated")])
def test_every_method_can(method: str) -> None:
    """To a tenth of the first gap; the two left out are for convex functions, which this is not in their variables."""
    result = minimize(bowl, np.zeros(20), bounds=[(-0.5, 0.5)] * 20, method=method, maxfev=6000, rng=0)
    best = reference(bowl, np.zeros(20), bounds=[(-0.5, 0.5)] * 20).fun
    assert result.fun - best < 0.1 * (bowl(np.zeros(20)) - best)
    assert (np.abs(result.x) <= 0.5).all()


def test_a_start_on_the_bounds_leaves_them() -> None:
    result = minimize(lambda x: float(x @ x), np.ones(30), bounds=[(-1, 1)] * 30, maxfev=4000, rng=0)
    assert result.fun < 1e-8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_change_of_variables_goes_there_and_back(dtype: Any) -> None:
    box = Box.of([(-2, 3), (None, 1), (0, None), (None, None)], np.array([1.0, 0, 1, 5]))
    for x in ([1.0, 0, 1, 5], [-1.9, -300, 1e4, -7], [2.9, 0.5, 0.2, 0]):
        point = np.array(x, dtype)
        back = box.inside(box.free(point))
        assert back.dtype == dtype
        spacing = np.finfo(dtype).eps  # of the variable in which a bound at 1 is taken off
        assert np.allclose(back, point, rtol=16 * spacing, atol=4 * spacing)


def test_the_shape_and_the_vectorised_form() -> None:
    result = minimize(
        lambda X: ((X - 2) ** 2).sum(axis=(1, 2)), np.zeros((3, 4)), bounds=Bounds(-1, 1), vectorized=True, rng=0
    )
    assert result.x.shape == (3, 4)
    assert np.allclose(result.x, 1, atol=1e-4)


def test_a_journal_keeps_to_the_bounds(tmp_path: Path) -> None:
    whole = minimize(bowl, np.zeros(20), bounds=[(-0.5, 0.5)] * 20, maxfev=200, rng=0)
    for maxfev in (90, 200):
        result = minimize(
            bowl, np.zeros(20), bounds=[(-0.5, 0.5)] * 20, maxfev=maxfev, rng=0, journal=tmp_path / "run.db"
        )
    assert result.x.tobytes() == whole.x.tobytes()
    assert Journal(tmp_path / "run.db").best.x.tobytes() == whole.x.tobytes()
    with pytest.raises(Exception, match="bounds"):
        minimize(bowl, np.zeros(20), bounds=[(-0.6, 0.6)] * 20, maxfev=300, rng=0, journal=tmp_path / "run.db")


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([(0, 1)] * 3, r"minimize\(bounds=...\) must hold 2 pairs \(min, max\); got 3 items"),
        ([(0, 1), (1, 1)], r"minimize\(bounds=...\) must have min < max everywhere; got \[1.0, 1.0\] at 1"),
        ([(0, 1), (2, 3)], r"minimize\(x0=...\) must lie within bounds; got 0.5 outside \[2.0, 3.0\] at 1"),
    ],
)
def test_wrong_bounds_are_named(bounds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        minimize(lambda x: float(x @ x), [0.5, 0.5], bounds=bounds)


def test_certificates_are_for_functions_without_bounds() -> None:
    with pytest.raises(ValueError, match=r"minimize\(certify=True\)"):
        minimize(bowl, np.zeros(20), bounds=[(-1, 1)] * 20, certify=True)
