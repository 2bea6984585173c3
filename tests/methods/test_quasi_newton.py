"""Quasi-Newton on differences: exact where it says so, sparing, and honest about noise."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as reference

from fewdim import QuasiNewton, Session, minimize
from fewdim.core import evolve
from fewdim.directions import Vector
from fewdim.lines import Reach, Resolution
from fewdim.problems import power_law, quadratic, rotation
from fewdim.scales import Scales


def states(method: Any, fun: Any, x0: Vector, steps: int, rng: int = 0) -> list[Any]:
    session: Session[Any] = Session(method, x0, rng=rng)
    found = [session.state]
    while len(found) <= steps and not session.done:
        for point in session.ask():
            session.tell(point.id, fun(point.x))
        if session.state is not found[-1]:
            found.append(session.state)
    return found


def test_corrected_forward_differences_are_exact_on_quadratics() -> None:
    """The gradient of the second step, from d values, to sqrt(round-off) of its size: a plain forward one is off by
    h A_ii / 2, which is as large as its round-off error; here only the latter is left.
    """
    problem = quadratic(power_law(30, 1), rotate=3)
    found = states(QuasiNewton(noise=0), problem.fun, problem.x0, 3)
    hessian = np.array([[problem.fun(a + b) - problem.fun(a) - problem.fun(b) for b in np.eye(30)] for a in np.eye(30)])
    for before, after in itertools.pairwise(found[1:]):
        error = np.abs(after.gradient - hessian @ before.x)
        assert error.max() < 1e-7 * np.abs(hessian @ before.x).max()
    assert np.allclose(found[1].diagonal, np.diag(hessian), rtol=1e-3)


def first_step(fun: Any, d: int) -> tuple[int, Any]:
    """Values asked until the first step is made, and the state then."""
    session: Session[Any] = Session(QuasiNewton(), np.linspace(1, 2, d), rng=0)
    while session.state.k == 0:
        for point in session.ask():
            session.tell(point.id, fun(point.x))
    return session.nfev, session.state


def test_curvature_that_is_the_same_along_all_axes_is_measured_along_a_few() -> None:
    """Then the first gradient takes d values, 12 that say so, and some 20 for scales and the step; else 2d."""
    d, q = 200, rotation(200, 1)
    even, steep = power_law(d, 0.3), power_law(d, 1.5)
    for spectrum, forward in ((even, True), (steep, False)):
        asked, state = first_step(lambda x, w=spectrum: float(w @ (q @ x) ** 2), d)
        assert (asked < 1.2 * d) == forward
        assert (asked < 2 * d) == forward
        assert (np.ptp(state.diagonal) == 0) == forward
    hessian = 2 * (q.T * even) @ q
    state = first_step(lambda x: float(even @ (q @ x) ** 2), d)[1]
    assert np.allclose(state.diagonal, np.diag(hessian).mean(), rtol=0.1)
    gradient = hessian @ np.linspace(1, 2, d)  # what D is wrong by counts for h D / 2, as round-off, at h of 1e-8
    assert np.abs(state.gradient - gradient).max() < 1e-6 * np.abs(gradient).max()


@pytest.mark.parametrize("d", [48, 100, 210, 256])
def test_no_pattern_of_curvatures_passes_for_even(d: int) -> None:
    """Periods, halves, thirds: what a sample at equal distances would miss."""
    i = np.arange(d)
    patterns = [i % period == 0 for period in (2, 3, 4)] + [
        i % 8 < 4,
        i < d / 2,
        i < d / 3,
        (i > d / 3) & (i < 2 * d / 3),
    ]
    for steep in patterns:
        weights = np.where(steep, 10.0, 1.0)
        assert first_step(lambda x, w=weights: float(w @ x**2), d)[0] > 2 * d


def test_values_missing_from_the_sample_say_nothing() -> None:
    """Nothing behind x0 along any axis: curvature that nobody has seen is not the same along all."""
    x0 = np.linspace(1, 2, 60)

    def fun(x: Vector) -> float:
        return np.nan if np.count_nonzero(x != x0) == 1 and (x < x0).any() else float(x @ x)

    assert first_step(fun, 60)[0] > 2 * 60


def test_a_diagonal_hessian_takes_one_step() -> None:
    """1 + 2d values and one for the step.  Curvatures are good to round-off / h^2 with h = 1e-4, 2e-8 of the largest
    and so 1e-4 of the smallest, 2e-4; the square of that, times its share of f, is left.
    """
    problem = quadratic(power_law(16, 3))
    result = minimize(problem.fun, problem.x0, method="quasi-newton", maxfev=1 + 2 * 16 + 1, tol=0)
    assert result.fun < 1e-10 * problem.fun(problem.x0)


def test_a_quadratic_takes_about_d_gradients_at_most() -> None:
    """With all pairs kept the directions are conjugate; line searches are not exact, which costs some."""
    problem = quadratic(power_law(20, 1), rotate=3)
    result = minimize(problem.fun, problem.x0, method=QuasiNewton(), f_target=problem.target(1e-10), maxfev=10**5)
    assert result.nfev < 20 * 22 + 60


@pytest.mark.parametrize("lost", [0, 3, 90])
def test_a_side_that_is_missing_does_not_spoil_the_step(lost: int) -> None:
    """A value farther off on the other side tells the curvature: too small a guess would send the step far too far
    along that axis, too large a one would keep it from going anywhere.
    """
    problem = quadratic(power_law(100, 2))

    def fun(x: Vector) -> float:
        return np.nan if x[lost] > problem.x0[lost] and np.count_nonzero(x != problem.x0) == 1 else problem.fun(x)

    result = minimize(fun, problem.x0, method="quasi-newton", f_target=problem.target(1e-8), maxfev=1000)
    assert result.reason == "target"
    assert result.nfev < 2 * 100 + 20 + 12  # the 12 look whether curvature is the same along all axes


@pytest.mark.parametrize(("known", "length"), [(1.0, 1 / 64), (1e-20, 1e6)])
def test_curvatures_lost_in_round_off_are_no_news(known: float, length: float) -> None:
    """Where all second differences vanish the curvatures known from before stay, and the step is no longer for it; nor
    is it ever longer than 1e6 times the scale of x.
    """
    x = np.zeros(4)
    scales = Scales(1.0, Resolution(), 4.0, 1.0, Reach.of(x))
    state = evolve(QuasiNewton().start(x, (0,)), f_x=1.0, scales=scales, diagonal=np.full(4, known), central=True)
    steps = QuasiNewton().step(state)
    sides = next(steps)
    trial = steps.send(np.array([1 + float(sides.point(i).sum()) / 64 for i in range(len(sides))]))
    assert np.allclose(trial.point(0), -length)


def test_the_first_step_ends_at_the_lowest_point_of_a_plane() -> None:
    """The plane of the slopes and of the slopes by curvatures: the gradient at its lowest point is orthogonal to it, as
    far as the measured curvatures are the true ones, here to 3e-6.
    """
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    units = np.geomspace(1, 30, 60)
    hessian = np.diag(units) @ basis @ np.diag(np.geomspace(1, 100, 60)) @ basis.T @ np.diag(units)
    before, after = states(QuasiNewton(), lambda x: 0.5 * float(x @ hessian @ x), rng.standard_normal(60), 1)
    g, left = hessian @ before.x, hessian @ after.x
    for direction in (g, g / np.diag(hessian)):
        assert abs(left @ direction) < 1e-5 * np.linalg.norm(left) * np.linalg.norm(direction)


def tridia(x: Any) -> float:
    """Curvatures along the axes tell nearly all (Buckley's no. 8)."""
    return float((x[0] - 1) ** 2 + np.arange(2, x.size + 1) @ (2 * x[1:] - x[:-1]) ** 2)


def cragg(x: Any) -> float:
    """Curvatures along the axes change all the way, by powers of ten (Cragg and Levy)."""
    a, b, c, e = x[:-3:2], x[1:-2:2], x[2:-1:2], x[3::2]
    terms = (np.exp(a) - b) ** 4, 100 * (b - c) ** 6, (np.tan(c - e) + c - e) ** 4, a**8, (e - 1) ** 2
    return float(sum(term.sum() for term in terms))


def needed_by(solve: Any, fun: Any, start: Any, target: float, told: Any = float) -> int:
    """Values asked for until one is at the target; the solver is told what becomes of them."""
    values: list[float] = []

    def watched(x: Any) -> Any:
        values.append(fun(x))
        return told(values[-1])

    solve(watched, start)
    assert min(values) <= target
    return int(np.argmax(np.array(values) <= target)) + 1


@pytest.mark.parametrize(("fun", "x0", "floor", "more"), [(tridia, 1.0, 0.0, 0), (cragg, 2.0, 32.27, 100)])
def test_no_more_values_than_l_bfgs_b_where_the_diagonal_tells_and_at_most_a_gradient_more_where_it_misleads(
    fun: Any, x0: float, floor: float, more: int
) -> None:
    start = np.r_[1.0, np.full(99, x0)]
    target = floor + 1e-4 * (fun(start) - floor)
    ours = needed_by(partial(minimize, method="quasi-newton", maxfev=6000), fun, start, target)
    assert ours <= needed_by(partial(reference, method="L-BFGS-B"), fun, start, target) + more


def test_nine_tenths_of_l_bfgs_b_where_curvature_falls_on_the_way() -> None:
    """Robust regression: residuals count by squares close to the minimum of their losses, by size far from it."""
    ours, theirs = 0, 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((120, 60))
        b = 3 * A @ rng.standard_normal(60) + rng.standard_normal(120)

        def fun(x: Any, A: Any = A, b: Any = b) -> float:
            return float(np.sum(np.sqrt(1 + (A @ x - b) ** 2) - 1))

        def slopes(x: Any, A: Any = A, b: Any = b) -> Any:
            r = A @ x - b
            return A.T @ (r / np.sqrt(1 + r * r))

        lowest = reference(fun, np.zeros(60), jac=slopes, method="BFGS", options={"gtol": 1e-8}).fun
        target = lowest + 1e-4 * (fun(np.zeros(60)) - lowest)
        ours += needed_by(partial(minimize, method="quasi-newton", maxfev=6000), fun, np.zeros(60), target)
        theirs += needed_by(partial(reference, method="L-BFGS-B", options={"maxfun": 10**6}), fun, np.zeros(60), target)
    assert ours < 0.9 * theirs


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_values_rounded_to_single_precision_cost_little_more_than_exact_ones(seed: int) -> None:
    """To 1e-6 of the first gap; with central gradients from where slopes come near the rounding it would be 1.2."""
    rng = np.random.default_rng(seed)
    basis, start = np.linalg.qr(rng.standard_normal((80, 80)))[0], rng.standard_normal(80)

    def fun(x: Any) -> float:
        return 1 + 0.5 * float((basis @ x) ** 2 @ (1 / np.arange(1.0, 81.0)))

    solve, target = partial(minimize, method="quasi-newton", maxfev=6000), 1 + 1e-6 * (fun(start) - 1)
    rounded = needed_by(solve, fun, start, target, lambda f: float(np.float32(f)))
    assert rounded < 1.12 * needed_by(solve, fun, start, target)


def test_the_value_never_rises() -> None:
    def rosenbrock(x: Any) -> float:
        return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))

    values = [state.f_x for state in states(QuasiNewton(), rosenbrock, -np.ones(8), 60)[1:]]
    assert (np.diff(values) <= 0).all()
    assert values[-1] < 1e-8


def test_a_misleading_diagonal_is_not_used() -> None:
    """Matrix factorisation from near 0: curvatures along the axes there say nothing about the way, 3 seeds."""
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((12, 3))
    product = factor @ factor.T / 12

    def fun(x: Any) -> float:
        v = x.reshape(12, 3)
        return 0.25 * float(np.sum((v @ v.T - product) ** 2))

    for seed in range(3):
        x0 = 0.1 * np.random.default_rng(seed).standard_normal(36)
        assert minimize(fun, x0, method="quasi-newton", maxfev=3000).fun < 1e-6 * fun(x0)


def test_radii_are_as_wide_as_noise_asks_for() -> None:
    """Noise of a tenth of f(x0), 1/i, d = 100: within the scale of x it hides most slopes, and 0.6 of f(x0) is left
    (0.5 to 0.7 over five seeds), else 0.1 to 0.2.
    """
    problem, left = quadratic(power_law(100, 1), rotate=3), []
    first = problem.fun(problem.x0)

    def noisy(x: Any, rng: np.random.Generator) -> float:
        return problem.fun(x) + 0.1 * first * float(rng.standard_normal())

    for seed in range(3):
        fun = partial(noisy, rng=np.random.default_rng(seed))
        left.append(problem.fun(minimize(fun, problem.x0, method="quasi-newton", maxfev=3000, rng=seed).x) / first)
    assert np.median(left) < 0.3


def test_in_few_dimensions_the_noise_is_not_looked_at_without_a_reason() -> None:
    """The first gradient is complete after 1 + 2d values."""
    session: Session[Any] = Session(QuasiNewton(), np.ones(10), rng=0)
    asked = []
    while session.nit < 2:
        points = session.ask()
        asked.append(len(points))
        for point in points:
            session.tell(point.id, float(point.x @ point.x))
    assert asked[:2] == [1, 20]


def test_noise_is_found_out_by_a_gradient_that_makes_no_sense() -> None:
    rng = np.random.default_rng(1)
    found = states(QuasiNewton(), lambda x: float(x @ x) + 1e-3 * rng.standard_normal(), np.ones(10), 3)
    assert 3e-4 < found[-1].noise < 3e-3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory": 0}, r"QuasiNewton\(memory=...\) must be an integer of at least 1; got 0"),
        ({"noise": -1}, r"QuasiNewton\(noise=...\) must be \"auto\" or a number of at least 0; got -1"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QuasiNewton(**settings)
