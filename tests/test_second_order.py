"""The second-order oracles: what they find, how many values they ask for, and in how many queries."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fewdim import HeavyBall, Query, RandomPursuit, Session, Steps, minimize
from fewdim.lines import ROUND_OFF
from fewdim.oracles import SecondOrderModel, Through
from fewdim.oracles.second_order import (
    central_gradient,
    dense_model,
    difference_radius,
    forward_gradient,
    model_slope,
    paper_radius,
    product,
)

RNG = np.random.default_rng(0)
D = 7
B = RNG.standard_normal((D, D))
A = B @ B.T / D - 0.5 * np.eye(D)  # indefinite
X = RNG.standard_normal(D)


def fun(x: Any) -> float:
    """Quadratic plus a term with a third derivative of order 1."""
    return float(0.5 * x @ A @ x + np.sin(x).sum())


def gradient(x: Any) -> Any:
    return A @ x + np.cos(x)


def hessian(x: Any) -> Any:
    return A - np.diag(np.sin(x))


def drive(steps: Steps[Any], f: Callable[[Any], float] = fun) -> tuple[Any, list[int]]:
    """The result of a generator, and the sizes of its queries."""
    sizes = []
    try:
        query = next(steps)
        while True:
            sizes.append(len(query))
            query = steps.send(np.array([f(query.point(i)) for i in range(len(query))]))
    except StopIteration as stop:
        return stop.value, sizes


R = difference_radius(X, ROUND_OFF * abs(fun(X)), 1.0)


def test_gradients() -> None:
    """Central: delta/r + r^2/6, about 1e-10; forward at r = 1e-7: r/2 |bends| + delta/r, about 2e-7."""
    near, sizes = drive(central_gradient(X, math.nan, R))
    assert sizes == [2 * D + 1]
    assert near.g == pytest.approx(gradient(X), abs=1e-9)
    assert near.error(ROUND_OFF) < 1e-8
    assert near.bends == pytest.approx(np.diag(hessian(X)), abs=1e-3)
    ahead, sizes = drive(forward_gradient(X, fun(X), 1e-7))
    assert sizes == [D]
    assert ahead.g == pytest.approx(gradient(X), abs=1e-6)


def test_the_papers_gradient_keeps_its_error() -> None:
    """Algorithm 5 at error eps: the truncation is at most eps/sqrt(d), and 2 eps/(sqrt(d) L) keeps it too."""
    L, eps = float(np.abs(np.linalg.eigvalsh(A)).max()) + 1, 1e-3
    for radius in (paper_radius(eps, D, L), 2 * eps / (math.sqrt(D) * L)):
        near, _ = drive(forward_gradient(X, math.nan, radius))
        assert np.linalg.norm(near.g - gradient(X)) <= eps


def test_product_and_dense_model_count_and_are_right() -> None:
    """Mixed differences err by f''' r: 16 r for products, 4 r for the model, with r = 1e-5; 1e-3 is 6 times that."""
    near, _ = drive(central_gradient(X, math.nan, R))
    u = np.ones(D) / math.sqrt(D)
    found, sizes = drive(product(X, near, u))
    assert sizes == [D + 1]
    assert found == pytest.approx(hessian(X) @ u, abs=1e-3)
    (model, H), sizes = drive(dense_model(X, math.nan, R))
    assert sizes == [1 + 2 * D + D * (D - 1) // 2]
    assert pytest.approx(hessian(X), abs=1e-3) == H
    assert model.g == pytest.approx(gradient(X), abs=1e-7)


def test_slope_of_the_model_takes_two_values() -> None:
    s, u = RNG.standard_normal((2, D))
    found, sizes = drive(model_slope(X, gradient(X), s, u, 1e-4))
    assert sizes == [2]
    assert found == pytest.approx(float(u @ (gradient(X) + hessian(X) @ s)), abs=1e-2)  # 1e-4 f''' |s|^2 |u|
    assert drive(model_slope(X, gradient(X), 0 * s, u, 1e-4)) == (float(gradient(X) @ u), [])


def test_values_that_fail_at_random_are_asked_again() -> None:
    luck = np.random.default_rng(1)
    near, sizes = drive(central_gradient(X, fun(X), R), lambda x: math.nan if luck.random() < 0.3 else fun(x))
    assert near.seen == D
    assert near.g == pytest.approx(gradient(X), abs=1e-3)
    assert sum(sizes) > 2 * D


def model(x: Any) -> float:
    s = x - X
    return float(fun(X) + gradient(X) @ s + 0.5 * s @ hessian(X) @ s)


def ask(*points: Any) -> Steps[Any]:
    return (yield Query(X, tuple(p - X for p in points)))


@pytest.mark.parametrize(("r", "tolerance"), [(1e-6, 1e-14), (1e-2, 1e-9), (1.0, 1e-6), (100.0, 1e-2)])
def test_sane_model_at_all_distances(r: float, tolerance: float) -> None:
    """The error is delta/t^2 + t^2 r^4 f''''/24 with t r = (24 delta)^(1/4): sqrt(delta/6) r^2, 6e-9 at r = 1."""
    y = X + r * np.ones(D) / math.sqrt(D)
    values, sizes = drive(SecondOrderModel(X)(ask(y, X, y), (0,)))
    assert sizes == [5]
    assert values[1] == fun(X)
    assert values[0] == values[2] == pytest.approx(model(y), abs=tolerance)


def test_paper_model_asks_for_the_four_values_and_keeps_its_error() -> None:
    delta, L, H = 1e-4, 10.0, 1.0
    oracle = SecondOrderModel(X, "paper", smoothness=L, hessian_lipschitz=H, error=delta)
    asked = []
    for r in (1e-3, 0.1, 1.0):
        y = X + r * np.ones(D) / math.sqrt(D)
        steps = oracle(ask(y), (0,))
        query = next(steps)
        asked.append([query.point(i) for i in range(len(query))])
        t1, t2 = min(1.0, delta / (L * r**2)), min(1.0, delta / (2 * H * r**3))
        expected = [X, X + t1 * (y - X), X + t2 * (y - X), X - t2 * (y - X)]
        assert np.allclose(asked[-1], expected, rtol=0, atol=1e-15)
        with pytest.raises(StopIteration) as stop:
            steps.send(np.array([fun(p) for p in asked[-1]]))
        assert abs(stop.value.value[0] - model(y)) <= delta


def test_a_shift_makes_the_sub_problem() -> None:
    y = X + 0.1
    plain, _ = drive(SecondOrderModel(X, f_center=fun(X))(ask(y), (0,)))
    shifted, sizes = drive(SecondOrderModel(X, f_center=fun(X), shift=3.0)(ask(y), (0,)))
    assert sizes == [2]
    assert shifted[0] - plain[0] == pytest.approx(1.5 * 0.01 * D)


def test_a_method_minimises_the_model_through_it_and_where_shows_both() -> None:
    shift = 2.0
    oracle = SecondOrderModel(X, shift=shift)
    target = X - np.linalg.solve(hessian(X) + shift * np.eye(D), gradient(X))
    session: Session[Any] = Session(Through(RandomPursuit(noise=0), oracle), X, rng=0)
    while session.nfev < 6000:
        for point in session.ask():
            session.tell(point.id, fun(point.x))
    assert session.state.x == pytest.approx(target, abs=1e-3)
    assert "SecondOrderModel.__call__" in session.where()
    assert "RandomPursuit.step" in session.where()


def test_errors_name_what_is_missing() -> None:
    with pytest.raises(ValueError, match=r"needs smoothness=, hessian_lipschitz= and error=; got 1.0, None, None"):
        SecondOrderModel(X, "paper", smoothness=1.0)
    with pytest.raises(ValueError, match="shift"):
        SecondOrderModel(X, shift=-1.0)


def test_algorithm_two_runs_through_algorithm_three() -> None:
    """The paper's composition, with a step that is not the printed one, gains on a benign problem."""
    oracle = SecondOrderModel(np.zeros(2), "paper", 1.0, smoothness=2.0, hessian_lipschitz=1.0, error=1e-6)
    inner = HeavyBall(step=0.02, momentum=0.9, directions="gaussian", noise=0, radius=1e-3, trace=4.0, smoothness=2.0)
    result = minimize(
        lambda x: float((x - 1) @ (x - 1)), np.zeros(2), method=Through(inner, oracle), maxfev=6000, rng=0, tol=0
    )
    assert result.fun < 2
