"""Exact moments against closed forms, against the numbers of record and against simulation of the methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fewdim import Accelerated, HeavyBall, RandomGradient
from fewdim.core import step as one_step
from fewdim.theory import (
    Exact,
    TwoTerm,
    expected_gaps,
    heavy_ball,
    heavy_ball_load,
    random_gradient,
    random_gradient_load,
    rotated_gaps,
    two_step,
    two_step_load,
)

Floats = NDArray[np.float64]


def power_law(b: float, d: int) -> Floats:
    return np.asarray(np.arange(1, d + 1.0) ** -b)


@pytest.mark.parametrize(
    ("b", "d", "gap", "queries"),
    [
        (1, 100, 1e-2, 1.9e3),
        (1, 100, 1e-4, 4.8e3),
        (1, 100, 1e-6, 7.9e3),
        (2, 1000, 1e-1, 202),
        (2, 1000, 1e-2, 17.4e3),
    ],
)
def test_random_gradient_needs_the_queries_on_record(b: float, d: int, gap: float, queries: float) -> None:
    spectrum = power_law(b, d)
    exact = Exact(random_gradient(1 / (spectrum.sum() + 2)), spectrum)
    assert exact.evaluations_to(gap) == pytest.approx(queries, rel=0.03)  # the record has two digits


def test_counts_stand_for_equal_eigenvalues() -> None:
    method = two_step(0.05, 0.02, 0.004)
    apart = Exact(method, np.r_[np.ones(5), np.full(7, 0.1)])
    together = Exact(method, [1.0, 0.1], counts=[5, 7])
    assert together.radius == pytest.approx(apart.radius, rel=1e-12)
    assert together.expected_gap(40) == pytest.approx(apart.expected_gap(40), rel=1e-12)
    assert together.worst_gap(40) == pytest.approx(apart.worst_gap(40), rel=1e-12)


@pytest.mark.parametrize("law", ["gaussian", "sphere", "signs"])
def test_the_rate_is_the_slope_of_the_expected_gap(law: str) -> None:
    spectrum = power_law(2, 5)
    exact = Exact(heavy_ball(0.4 / (spectrum.sum() + 2), 0.6), spectrum, law=law)
    late, later = exact.expected_gap(6000), exact.expected_gap(6001)
    # the two slowest modes lose .009 and .014 a step: after 6000 steps the second is e^-30 of the first
    assert later / late == pytest.approx(exact.radius, rel=1e-9)
    assert exact.stable
    assert exact.rate == 1 - exact.radius


def test_the_worst_start_is_the_worst_coordinate() -> None:
    spectrum = power_law(2, 20)
    exact = Exact(two_step(0.1, 0.15, 0.02, 2), spectrum)
    # at rest the expected gap is linear in the squares of x0, so its maximum over the sphere sits on an axis
    starts = [np.eye(20)[i] for i in range(20)]
    by_axis = max(exact.expected_gap(30, x0) * 0.5 * spectrum[i] for i, x0 in enumerate(starts))
    assert exact.worst_gap(30, radius=3.0) == pytest.approx(9 * by_axis, rel=1e-10)
    target = exact.worst_gap(30)
    assert exact.worst_evaluations_to(target * (1 + 1e-12)) <= 30 * exact.cost


@pytest.mark.parametrize("batch", [1, 4, 16])
def test_closed_conditions_agree_with_the_exact_radius(batch: int) -> None:
    spectrum = power_law(1.5, 40)
    for factor in (0.3, 0.9, 0.99, 1.01, 1.1, 2.0):
        edge = _edge(spectrum, batch)
        method = random_gradient(factor * edge, batch)
        assert Exact(method, spectrum).stable == (random_gradient_load(spectrum, factor * edge, batch) < 1)


def _edge(spectrum: Floats, batch: int) -> float:
    """The step at which the load is 1, by bisection."""
    low, high = 0.0, 2 * batch / (batch + 1) / float(spectrum.max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if random_gradient_load(spectrum, middle, batch) < 1 else (low, middle)
    return low


def test_heavy_ball_load_decides_stability() -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        spectrum = np.sort(rng.uniform(0.01, 1, 12)) ** rng.uniform(1, 6)
        h, beta = rng.uniform(0.02, 1.2) / spectrum.sum(), rng.uniform(0.02, 0.9)
        load = heavy_ball_load(spectrum, h, beta)
        if abs(load - 1) > 1e-6:
            stable = Exact(heavy_ball(h, 1 - beta), spectrum).stable
            assert stable == (load < 1)
            seen.add(stable)
    assert seen == {True, False}


def test_stability_is_told_where_blocks_are_nearly_defective() -> None:
    """Small h and beta: the three eigenvalues of a block nearly coincide, and round-off near them is large."""
    spectrum = power_law(2, 100)
    for h in np.geomspace(1e-5, 1, 12) / spectrum.sum():
        for beta in np.geomspace(1e-5, 1, 12):
            load = heavy_ball_load(spectrum, h, beta)
            assert abs(load - 1) < 1e-3 or Exact(heavy_ball(h, 1 - beta), spectrum).stable == (load < 1)


def test_two_step_load_is_the_leading_order() -> None:
    spectrum = np.ones(400)  # h l is small at every stable step, so leading order is all there is, to 2/d
    h = 1 / spectrum.sum()
    for theta in (0.2 * h / 400, h / 400, 4 * h / 400):
        alpha = np.sqrt(theta * 0.5)
        load = two_step_load(spectrum, alpha, h, theta)
        if abs(load - 1) > 0.05:
            assert Exact(two_step(alpha, h, theta), spectrum).stable == (load < 1)


def test_the_paper_constants_diverge_where_the_errata_say() -> None:
    spectrum = np.r_[np.ones(10), np.full(100, 1e-10)]
    half = float(np.sqrt(spectrum).sum())
    h = 1 / (14400 * half) ** 2
    assert heavy_ball_load(spectrum, h, float(np.sqrt(h * 1e-10))) == pytest.approx(2.58, abs=0.01)


def rotated(d: int, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (Q * power_law(1, d)) @ Q.T, Q


def test_gaussian_directions_bound_signs_in_every_basis() -> None:
    A, Q = rotated(12, 3)
    x0 = np.ones(12)
    for method in (random_gradient(0.15), heavy_ball(0.08, 0.6), two_step(0.1, 0.15, 0.03, 4)):
        signs, normal = (rotated_gaps(method, A, x0, 30, law) for law in ("signs", "gaussian"))
        assert np.allclose(normal, expected_gaps(method, power_law(1, 12), Q.T @ x0, 30))
        assert (signs[1:] < normal[1:]).all()


def methods(batch: int, spectrum: Floats) -> dict[str, tuple[TwoTerm, Any]]:
    """The moments' method and the library's, with the same constants."""
    tr, L, mu = float(spectrum.sum()), float(spectrum.max()), float(spectrum.min())
    h = 1 / (tr / batch + L * (1 + 1 / batch))
    theta = h / ((spectrum.size + 1) / batch + 1)
    alpha = float(np.sqrt(theta * mu))
    known: dict[str, Any] = {"trace": tr, "smoothness": L, "noise": 0, "batch": batch}
    return {
        "random gradient": (random_gradient(h, batch), RandomGradient(step=h, difference="central", **known)),
        "heavy ball": (heavy_ball(0.4 * h, 0.6, batch), HeavyBall(step=0.4 * h, momentum=0.6, **known)),
        "two-step": (two_step(alpha, h, theta, batch), Accelerated(strong_convexity=mu, **known)),
    }


@pytest.mark.parametrize("law", ["gaussian", "signs"])
@pytest.mark.parametrize("batch", [1, 4, 16])
@pytest.mark.parametrize("name", ["random gradient", "heavy ball", "two-step"])
def test_simulation_agrees_with_the_moments(name: str, batch: int, law: str) -> None:
    """200 runs of the method itself on a randomly rotated quadratic: the mean gap within 3 standard errors."""
    d, steps, runs = 16, 12, 200
    A, _ = rotated(d, batch)
    model, method = methods(batch, power_law(1, d))[name]
    method = type(method)(**{**_settings(method), "directions": law})
    x0 = np.random.default_rng(1).standard_normal(d)
    gaps = np.array([_gap(method, A, x0, steps, seed) for seed in range(runs)])
    expected = rotated_gaps(model, A, x0, steps, law)[-1]
    assert abs(gaps.mean() - expected) <= 3 * gaps.std(ddof=1) / np.sqrt(runs)


def _settings(method: Any) -> dict[str, Any]:
    from fewdim.methods.settings import settings

    return settings(method)


def _gap(method: Any, A: Floats, x0: Floats, steps: int, seed: int) -> float:
    """1/2 x'Ax after some steps, driven without a session to be quick."""
    state = method.start(x0, (seed, 77))
    for _ in range(steps):
        steps_ = one_step(method, state)
        query = next(steps_)
        try:
            while True:
                X = np.array([query.point(i) for i in range(len(query))])
                query = steps_.send(0.5 * np.einsum("ij,jk,ik->i", X, A, X))
        except StopIteration as stop:
            state = stop.value
    return float(0.5 * state.x @ A @ state.x)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match=r"spectrum=\.\.\."):
        Exact(random_gradient(0.1), [1.0, -1.0])
    with pytest.raises(ValueError, match="law="):
        Exact(random_gradient(0.1), [1.0], law="uniform")
    with pytest.raises(ValueError, match="gap="):
        Exact(random_gradient(0.1), [1.0]).evaluations_to(0)
    assert Exact(random_gradient(3.0), [1.0]).evaluations_to(0.1, most=1000) == np.inf
