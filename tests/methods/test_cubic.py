"""Cubic regularisation: saddles are left, what it ends at is second-order stationary by the exact Hessian."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from fewdim import Cubic, RandomPursuit, Session, certify, minimize
from fewdim.methods.subproblem import cubic_minimiser
from fewdim.problems import Smooth, saddles

EPSILON = 1e-5
REFERENCE = {  # evaluations that an earlier implementation of the same method needed to |g| <= 1e-5
    "factorisation 45, from 0": 10_543,
    "factorisation 45, from rank one": 8_199,
    "factorisation 160, from 0": 23_498,
    "phase retrieval 20, from 0": 2_170,
    "phase retrieval 100, from 0": 16_357,
    "double wells 30, from the maximum": 16_696,
    "double wells 100, from a saddle": 14_538,
    "tanh network 25, from 0": 10_842,
}


def name_of(problem: Smooth) -> str:
    return problem.name


def lowest(problem: Smooth, x: Any) -> float:
    return float(np.linalg.eigvalsh(problem.hessian(x))[0])


@pytest.mark.parametrize("problem", saddles(), ids=name_of)
def test_saddles_are_left_and_the_end_is_stationary(problem: Smooth) -> None:
    assert np.linalg.norm(problem.gradient(problem.x0)) < 1e-12
    assert lowest(problem, problem.x0) < -0.1
    session: Session[Any] = Session(Cubic(), problem.x0, rng=1)
    while not session.done:
        points = session.ask()
        for point, value in zip(points, problem.fun(np.array([p.x for p in points])), strict=True):
            session.tell(point.id, value)
    x, M = session.state.x, session.state.M
    assert session.state.end == "stationary"
    assert np.linalg.norm(problem.gradient(x)) <= EPSILON
    assert lowest(problem, x) >= -math.sqrt(M * EPSILON)
    assert session.state.f_x < problem.fun(problem.x0) - 1e-3
    assert session.nfev <= 1.2 * REFERENCE[problem.name]


@pytest.mark.long
@pytest.mark.parametrize("problem", saddles(), ids=name_of)
def test_the_count_does_not_hang_on_the_seed(problem: Smooth) -> None:
    counts = []
    for seed in range(5):
        result = minimize(problem.fun, problem.x0, method="cubic", vectorized=True, rng=seed, tol=0, maxfev=10**6)
        assert np.linalg.norm(problem.gradient(result.x)) <= EPSILON
        assert lowest(problem, result.x) >= -1e-3
        counts.append(result.nfev)
    assert np.median(counts) <= 1.2 * REFERENCE[problem.name]


def test_methods_that_see_gradients_only_stay_at_saddles() -> None:
    for problem in saddles():
        stuck = scipy_minimize(problem.fun, problem.x0, jac=problem.gradient, method="L-BFGS-B")
        assert stuck.fun == pytest.approx(problem.fun(problem.x0), abs=1e-9)


@pytest.mark.parametrize("inner", ["dense", "krylov"])
def test_negative_curvature_is_used_in_both_models(inner: str) -> None:
    wells = saddles()[5]
    result = minimize(wells.fun, wells.x0, method=Cubic(inner=inner), vectorized=True, rng=0, tol=0, maxfev=10**5)
    assert result.fun < 1e-9


@pytest.mark.parametrize("hard", [False, True])
def test_the_minimiser_of_the_cubic_is_global(hard: bool) -> None:
    """No random point, and no end of a descent from one, lies lower than the minimiser found."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        w, b, M = np.sort(rng.standard_normal(4)), rng.standard_normal(4), 10 ** rng.uniform(-1, 1)
        if hard:
            b[0] = 0.0
            b[1:] *= 1e-2

        def model(z: Any, w: Any = w, b: Any = b, M: float = M) -> float:
            return float(b @ z + 0.5 * w @ z**2 + M / 6 * np.linalg.norm(z) ** 3)

        z, shift, flagged = cubic_minimiser(w, b, M)
        assert shift == pytest.approx(M / 2 * np.linalg.norm(z), rel=1e-6)
        assert np.linalg.norm(b + (w + shift) * z) <= 1e-7 * max(1.0, float(np.linalg.norm(b)))
        assert w[0] + shift >= -1e-9
        assert flagged == (hard and w[0] < 0)
        for start in rng.standard_normal((5, 4)) * np.linalg.norm(z):
            assert model(z) <= scipy_minimize(model, start).fun + 1e-7


def test_settings_are_checked_by_name() -> None:
    with pytest.raises(ValueError, match=r'Cubic\(constants="paper"\) needs epsilon=; got None'):
        Cubic(constants="paper")
    with pytest.raises(ValueError, match=r'Cubic\(constants="paper"\) needs smoothness='):
        Cubic(constants="paper", epsilon=1e-3, hessian_lipschitz=1.0)
    with pytest.raises(ValueError, match=r"Cubic\(inner=...\) must be one of"):
        Cubic(inner="magic")
    with pytest.raises(ValueError, match=r'Cubic\(inner=...\) must be "auto", "krylov" or "dense"'):
        Cubic(inner="two-step")
    assert repr(Cubic(products=3)) == "Cubic(products=3)"


@pytest.mark.parametrize(
    ("inner", "steps"),
    [("two-step", 300), ("random-gradient", 300), ("dense", 1), ("krylov", 1), (RandomPursuit(noise=0), 40)],
)
def test_algorithm_nine_with_every_inner_solver(inner: Any, steps: int) -> None:
    """From a point without symmetry: with random solvers there is no repair for exact saddles."""
    c = np.linspace(0.5, 2, 4)

    def wells(X: Any) -> Any:
        return (0.25 * c * (X * X - 1) ** 2).sum(-1)

    method = Cubic(
        constants="paper", epsilon=1e-2, hessian_lipschitz=12.0, smoothness=4.0, inner=inner, inner_steps=steps
    )
    start = np.array([0.3, 0.5, 0.6, 0.8])
    result = minimize(wells, start, method=method, vectorized=True, rng=0, tol=0, maxfev=400_000)
    assert result.reason == "finished"
    assert result.fun < 1e-3


def test_a_certificate_agrees() -> None:
    for problem in saddles()[3:6:2]:
        result = minimize(problem.fun, problem.x0, method="cubic", vectorized=True, rng=0, certify=True)
        assert result.certificate.verdict == "second-order stationary"
        assert certify(problem.fun, problem.x0, vectorized=True, rng=0).verdict == "negative curvature"
