"""Bounds: fun never sees a point outside, minima on the boundary are found, and every form is understood."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds
from scipy.optimize import minimize as reference

from fewdim import METHODS, Auto, Journal, QuasiNewton, minimize
from fewdim.box import Box
from fewdim.methods import bounded
from fewdim.problems import power_law, quadratic, rotation
from fewdim.testing import check_cost, check_delivery, check_purity, check_states

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


def needed(bounds: Bounds, solve: Any, target: float) -> int:
    """Evaluations until a rotated quadratic, d = 60, half of whose coordinates end on bounds, is down to the target."""
    rng = np.random.default_rng(5)
    basis, centre = np.linalg.qr(rng.standard_normal((60, 60)))[0], rng.standard_normal(60)
    hessian = basis @ np.diag(1 / np.arange(1, 61)) @ basis.T
    best = reference(
        lambda x: 0.5 * float((x - centre) @ hessian @ (x - centre)),
        np.zeros(60),
        jac=lambda x: hessian @ (x - centre),
        bounds=bounds,
        options={"ftol": 0, "gtol": 1e-13, "maxiter": 10_000},
    )
    assert np.sum((best.x <= bounds.lb) | (best.x >= bounds.ub)) > 30
    first, values = 0.5 * float(centre @ hessian @ centre), []

    def fun(x: Any) -> float:
        values.append(0.5 * float((x - centre) @ hessian @ (x - centre)))
        return values[-1]

    solve(fun, np.zeros(60), bounds)
    reached = np.flatnonzero(np.array(values) <= best.fun + target * (first - best.fun))
    return int(reached[0]) + 1 if reached.size else 10**9


def test_active_bounds_cost_no_more_than_they_do_l_bfgs_b() -> None:
    """Slopes of coordinates on their bounds are looked at now and then only."""
    bounds = Bounds(np.full(60, -0.5), np.full(60, 0.5))
    theirs = needed(bounds, lambda fun, x0, b: reference(fun, x0, bounds=b, options={"maxfun": 10**5}), 1e-5)
    for method in ("auto", "quasi-newton"):
        ours = needed(bounds, lambda f, x0, b, m=method: minimize(f, x0, bounds=b, method=m, maxfev=4000, rng=0), 1e-5)
        print(f"{method} {ours}, scipy's L-BFGS-B {theirs}")
        assert ours <= theirs


@pytest.mark.parametrize(("method", "penalty"), [("auto", 1.0), ("quasi-newton", 1.0), ("quasi-newton", 1e3)])
def test_a_penalty_across_many_bounds_costs_no_more_than_it_does_l_bfgs_b(method: str, penalty: float) -> None:
    """Shares that add up to 1, none above 0.05: a step that is cut off at the bounds coordinate by coordinate leaves
    the plane of such sums, and must be made short.
    """
    rng, d = np.random.default_rng(1), 100
    factors, own, gains = 0.1 * rng.standard_normal((d, 10)), rng.uniform(0.01, 0.05, d), rng.uniform(0, 0.05, d)

    def fun(x: Any) -> float:
        return float(5 * np.sum((x @ factors) ** 2) + 5 * own @ x**2 - gains @ x + penalty * (x.sum() - 1) ** 2)

    x0, bounds, tight = np.full(d, 1 / d), [(0, 0.05)] * d, {"ftol": 0, "gtol": 0, "maxfun": 4000}
    theirs = reference(fun, x0, bounds=bounds, method="L-BFGS-B", options=tight)
    assert minimize(fun, x0, bounds=bounds, method=method, maxfev=theirs.nfev, rng=0).fun <= theirs.fun


@pytest.mark.parametrize("d", [10, 60])
@pytest.mark.parametrize("method", ["auto", "quasi-newton"])
def test_the_unit_of_f_does_not_matter(method: str, d: int) -> None:
    def valley(x: Any) -> float:
        return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))

    bounds, found = [(-1, 0.8)] * d, []
    for unit in (1.0, 2.0**-100, 2.0**30, 2.0**100):
        result = minimize(lambda x, u=unit: u * valley(x), np.full(d, -0.5), bounds=bounds, method=method, rng=0)
        found.append(result.fun / unit)
    np.testing.assert_allclose(found[1:], found[0], rtol=1e-7)


@pytest.mark.parametrize("method", ["auto", "quasi-newton"])
def test_a_function_that_falls_for_ever_above_a_bound_raises_no_error(method: str) -> None:
    falls = minimize(lambda x: -float(np.log(x + 1e-3).sum()), np.ones(2), bounds=[(0, None)] * 2, method=method, rng=0)
    assert falls.fun < -100
    assert minimize(lambda x: -float(x @ x), np.ones(2), bounds=[(0, None)] * 2, method=method).reason == "unbounded"


def test_within_finite_bounds_no_function_is_unbounded() -> None:
    """However far below the first value, which may be 0, the minimum lies."""
    result = minimize(lambda x: 1e200 * float((x * x - x).sum()), np.zeros(3), bounds=[(0, 1)] * 3, rng=0)
    np.testing.assert_allclose(result.x, 0.5, atol=1e-3)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 10))
def test_any_convex_quadratic_in_any_box_is_solved(seed: int, d: int) -> None:
    """Bounds on some sides, starts on some bounds, curvatures over four decades; nothing outside is asked for.

    A run ends when half of it gained less than 1e-8 of the decrease: with curvatures up to L = 10 the slope left is
    about sqrt(2 L 1e-8) = 4e-4 of the square root of that, here of the first slope.
    """
    rng = np.random.default_rng(seed)
    basis, centre = np.linalg.qr(rng.standard_normal((d, d)))[0], 3 * rng.standard_normal(d)
    hessian = basis @ np.diag(10 ** rng.uniform(-3, 1, d)) @ basis.T
    low = np.where(rng.random(d) < 0.7, -rng.random(d) - 0.01, -np.inf)
    high = np.where(rng.random(d) < 0.7, rng.random(d) + 0.01, np.inf)
    x0, asked = np.clip(rng.standard_normal(d), low, high), []

    def fun(x: Any) -> float:
        asked.append(x.copy())
        return 0.5 * float((x - centre) @ hessian @ (x - centre))

    result = minimize(fun, x0, bounds=Bounds(low, high), maxfev=3000, rng=seed)
    assert (np.array(asked) >= low).all()
    assert (np.array(asked) <= high).all()
    slope = hessian @ (result.x - centre)
    inwards = result.x - np.clip(result.x - slope, low, high)  # 0 at the minimum
    assert float(np.linalg.norm(inwards)) <= 1e-3 * max(1.0, float(np.linalg.norm(hessian @ (x0 - centre))))


def test_fixed_coordinates_are_left_alone() -> None:
    """The function falls towards all bounds but two: most steps ask for two slopes and a step, not for 40."""
    counts: list[int] = []

    def fun(X: Any) -> Any:
        counts.append(len(X))
        return X[:, 2:].sum(axis=1) + 100 * (X[:, 1] - X[:, 0] ** 2) ** 2 + (1 - X[:, 0]) ** 2

    x0 = np.concatenate([[-1.2, 1.0], np.full(38, 0.5)])
    bounds = [(-2, 2)] * 2 + [(0, 1)] * 38
    result = minimize(fun, x0, bounds=bounds, method="quasi-newton", vectorized=True, maxfev=2000, rng=0)
    assert result.fun < 1e-8
    slopes = [n for n in counts[5:] if n > 1]  # without f(x0), the noise and the first gradient
    assert np.median(slopes) <= 4  # 2 free coordinates; 4 when differences are central
    assert np.sum(slopes) < 0.3 * 40 * len(slopes)


@pytest.mark.parametrize("method", ["auto", "quasi-newton"])
@pytest.mark.parametrize("decades", [0, 3, 6])
def test_the_units_of_a_parameter_do_not_matter(method: str, decades: int) -> None:
    """Intervals from 1e-6 to 1e6 wide: as many evaluations as for intervals of 1, but for a third."""
    units = 10.0 ** np.linspace(-decades, decades, 20)
    best = reference(bowl, np.zeros(20), bounds=[(-0.5, 0.5)] * 20, tol=1e-14, options={"maxfun": 10**5}).fun
    target = best + 1e-6 * (bowl(np.full(20, 0.25)) - best)
    runs = [
        minimize(
            lambda x, u=u: bowl(x / u),
            0.25 * u,
            bounds=Bounds(-0.5 * u, 0.5 * u),
            method=method,
            f_target=target,
            maxfev=3000,
            rng=0,
        )
        for u in (np.ones(20), units)
    ]
    print([run.nfev for run in runs])
    assert all(run.success for run in runs)
    assert 0.66 < runs[1].nfev / runs[0].nfev < 1.5


@pytest.mark.parametrize("method", ["auto", "quasi-newton"])
@pytest.mark.parametrize("bounds", [(0, 1e12), (-1e15, 2), (-1e20, 1e20), (0, 1e300), (-1.7e308, 1.7e308), (0, None)])
def test_bounds_that_mean_none_do_no_harm(bounds: Any, method: str) -> None:
    result = minimize(lambda x: float((x - 1) @ (x - 1)), np.full(5, 1.9), bounds=[bounds] * 5, method=method, rng=0)
    assert result.fun < 1e-10


@pytest.mark.parametrize("method", ["auto", "quasi-newton"])
def test_a_linear_function_is_not_followed_out_of_all_scale(method: str) -> None:
    """It has no curvature to tell how far to look; the other end of an interval may be far off, or not there."""
    farthest = 0.0

    def fun(x: Any) -> float:
        nonlocal farthest
        farthest = max(farthest, float(np.abs(x).max()))
        return 1 + float(x.sum())

    assert minimize(fun, np.ones(30), bounds=[(0, None)] * 30, method=method, maxfev=3000, rng=0).fun == 1
    assert farthest < 100


@pytest.mark.parametrize("d", [300, 1000])
def test_a_linear_function_ends_at_its_vertex(d: int) -> None:
    result = minimize(lambda x: float(x.sum()), np.zeros(d), bounds=[(-1, 1)] * d, rng=0, maxfev=30 * d)
    assert result.fun < -0.999 * d


@pytest.mark.parametrize(("d", "low"), [(1, -2.0), (2, 0.25), (5, 0.25), (10, -2.0)])
def test_noise_within_bounds(d: int, low: float) -> None:
    """A level of 1e-4; of 9 runs of 60 d evaluations none ends more than 100 levels above the minimum.

    A run that takes noise for curvature ends where it began, 10^4 levels above: the limit lies half-way.
    """
    gaps = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        noisy = minimize(
            lambda x, r=rng: float(x @ x) + 1e-4 * r.standard_normal(),
            np.ones(d),
            bounds=[(low, 2)] * d,
            maxfev=60 * d,
            rng=seed,
        )
        gaps.append(float(noisy.x @ noisy.x) - d * max(low, 0.0) ** 2)
        assert noisy.noise > 0
    assert max(gaps) < 1e-2


def test_single_precision_stays_inside() -> None:
    """float32(0.1) is above 0.1."""
    seen = []

    def fun(x: Any) -> float:
        seen.append(float(x.max()))
        return float(np.sum((x.astype(float) - 3) ** 2))

    result = minimize(fun, np.full(6, 0.05, np.float32), bounds=[(0, 0.1)] * 6, rng=0)
    assert result.x.dtype == np.float32
    assert max(seen) <= 0.1
    assert result.x.min() > 0.0999


@pytest.mark.parametrize("method", ["auto", "quasi-newton"])
def test_methods_that_know_the_box_start_where_they_are_told(method: str) -> None:
    for x0 in (np.zeros(4), np.full(4, 1e-6), np.full(4, 1000.0)):
        seen: list[Any] = []
        minimize(
            lambda x, s=seen: s.append(x.copy()) or 1.0, x0, bounds=[(0, 1000)] * 4, method=method, maxfev=3, rng=0
        )
        assert np.allclose(seen[0], x0, rtol=1e-9, atol=0)


def test_sketches_are_kept_as_long_as_no_bound_is_near() -> None:
    """Eigenvalues i^-2, rotated, d = 300: within wide bounds at most twice the evaluations of a run without."""
    problem = quadratic(power_law(300, 2), rotate=3)
    free, wide = (
        minimize(problem.fun, problem.x0, bounds=bounds, f_target=problem.target(1e-2), maxfev=20_000, rng=0).nfev
        for bounds in (None, [(-50, 50)] * 300)
    )
    print(f"{wide} within bounds, {free} without")
    assert wide < 2 * free


@pytest.mark.parametrize("method", [Auto(), QuasiNewton()])
def test_methods_that_know_the_box_conform(method: Any) -> None:
    known = bounded(method, Box(np.full(5, -0.5), np.full(5, 2.0)))
    assert known is not method
    for check in (check_states, check_purity, check_delivery, check_cost):
        check(known, 150)


@pytest.mark.parametrize("method", ["auto", "quasi-newton"])
def test_a_bounded_journal_holds_a_snapshot(tmp_path: Path, method: str, caplog: Any) -> None:
    with caplog.at_level("WARNING"):
        arguments = {"bounds": [(-0.5, 0.5)] * 20, "method": method, "rng": 0, "journal": tmp_path / "run.db"}
        minimize(bowl, np.zeros(20), maxfev=150, **arguments)  # type: ignore[arg-type]
        minimize(bowl, np.zeros(20), maxfev=200, **arguments)  # type: ignore[arg-type]
    assert "snapshot" not in caplog.text


def test_other_bounds_are_named_as_such(tmp_path: Path) -> None:
    for high in (0.5, 0.7):
        arguments = {"bounds": [(-0.5, high)] * 20, "rng": 0, "maxfev": 50, "journal": tmp_path / "run.db"}
        if high == 0.5:
            minimize(bowl, np.full(20, 0.1), **arguments)  # type: ignore[arg-type]
        else:
            with pytest.raises(Exception, match="bounds"):
                minimize(bowl, np.full(20, 0.1), **arguments)  # type: ignore[arg-type]


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


@pytest.mark.parametrize("method", ["auto", "quasi-newton", "random-pursuit"])
@pytest.mark.parametrize("free", [(None, None), (-0.5, 0.5)])
def test_coordinates_whose_bounds_are_equal_cost_nothing(method: str, free: Any, tmp_path: Path) -> None:
    """The run is that of the function of the others, bit for bit, whatever x0 has for those that are fixed."""
    moving = np.arange(20) % 3 > 0
    bounds, path = [free if moves else (0.25, 0.25) for moves in moving], tmp_path / "run.db"

    def whole(x: Any) -> float:
        assert x.shape == (4, 5)
        assert (x.ravel()[~moving] == 0.25).all()
        return bowl(x.ravel())

    def part(y: Any) -> float:
        x = np.full(20, 0.25)
        x[moving] = y
        return bowl(x)

    x0 = np.where(moving, 0.0, 9.0).reshape(4, 5)
    given = Bounds(*(np.reshape([np.inf * s if b is None else b for b in side], (4, 5)) for s, side in
                     zip((-1, 1), zip(*bounds, strict=True), strict=True)))  # fmt: skip
    minimize(whole, x0, bounds=given, method=method, maxfev=200, rng=0, journal=path)
    result = minimize(whole, x0, bounds=given, method=method, maxfev=400, rng=0, journal=path)
    other = minimize(part, np.zeros(13), bounds=[free] * 13, method=method, maxfev=400, rng=0)
    assert result.x.shape == (4, 5)
    assert result.x.ravel()[moving].tobytes() == other.x.tobytes()
    assert (result.fun, result.nfev) == (other.fun, other.nfev)
    assert Journal(path).best.x.tobytes() == result.x.tobytes()


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([(0, 1)] * 3, r"minimize\(bounds=...\) must hold 2 pairs \(min, max\); got 3 items"),
        ([(0, 1), (1, 0.9)], r"minimize\(bounds=...\) must have min <= max everywhere; got \[1.0, 0.9\] at 1"),
        ([(0, 1), (np.inf, None)], r"minimize\(bounds=...\) must have min <= max everywhere; got \[inf, inf\] at 1"),
        ([(0, 0), (1, 1)], r"minimize\(bounds=...\) must let a coordinate move; got min = max for all 2"),
        ([(0, 1), (2, 3)], r"minimize\(x0=...\) must lie within bounds; got 0.5 outside \[2.0, 3.0\] at 1"),
    ],
)
def test_wrong_bounds_are_named(bounds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        minimize(lambda x: float(x @ x), [0.5, 0.5], bounds=bounds)


def test_certificates_are_for_functions_without_bounds() -> None:
    with pytest.raises(ValueError, match=r"minimize\(certify=True\)"):
        minimize(bowl, np.zeros(20), bounds=[(-1, 1)] * 20, certify=True)


def test_noise_within_bounds_is_no_harder_than_without() -> None:
    """Curvatures are taken over distances at which most of them stand out: where one did, steps were far too short.

    What single runs leave differs by factors of up to 10 either way, hence a mean over seeds.
    """
    turn, center = rotation(150, 1), np.full(150, 0.3)
    weights = np.linspace(1, 3, 150)

    def true(x: Any) -> float:
        return float(np.sum(weights * (turn @ (x - center)) ** 2))

    def final(seed: int, bounds: Any) -> float:
        dice = np.random.default_rng(seed)
        found = minimize(lambda x: true(x) + 1e-3 * dice.normal(), 0 * center, bounds=bounds, maxfev=3000, rng=seed)
        return true(found.x)

    ratios = [final(seed, [(-1, 1)] * 150) / final(seed, None) for seed in range(4)]
    assert np.exp(np.mean(np.log(ratios))) < 5


def test_in_little_noise_the_width_of_the_bounds_does_not_matter() -> None:
    """The model's curvatures are in variables without bounds; taken for those of x, with bounds 30 times as wide as f
    is, they left differences too short to see anything below the noise of 1e-6: 6e-7 and more was left, the model's.
    """
    weights, center = 1 / np.sqrt(np.arange(1, 61)), 0.3 * np.random.default_rng(9).uniform(-1, 1, 60)

    def true(x: Any) -> float:
        return float(weights @ ((x - center) / 0.3) ** 2)

    left = []
    for seed in range(3):
        dice = np.random.default_rng(seed)
        noisy = lambda x, dice=dice: true(x) + 1e-6 * dice.normal()  # noqa: E731
        found = minimize(noisy, np.linspace(0.003, 0.006, 60), bounds=[(-30, 30)] * 60, maxfev=1500, rng=seed)
        left.append(true(found.x))
    assert np.median(left) < 3e-7  # half of what the model leaves


@pytest.mark.parametrize(("first", "d", "low", "high"), [(-1, 40, -3, 3), (0, 240, 0, None), (-1, 21, None, 2)])
def test_a_bounded_run_is_replayed_from_its_start(tmp_path: Path, first: int, d: int, low: Any, high: Any) -> None:
    """On bounds, beside them and without: a start that has been moved off them stays where it is."""
    x0, path = np.linspace(first, 2, d), tmp_path / "run.db"
    minimize(lambda x: float(np.sum((x - 0.3) ** 2)), x0, bounds=[(low, high)] * d, maxfev=300, rng=0, journal=path)
    assert [Journal(path).replay(n).nfev for n in (1, 50, 200)] == [1, 50, 200]


def test_a_start_moved_off_its_bounds_stays_there_in_single_precision(tmp_path: Path) -> None:
    low = np.random.default_rng(0).uniform(100, 10_000, 300).astype(np.float32).astype(float)
    bounds, path = list(zip(low, low + 1.85, strict=True)), tmp_path / "run.db"
    fun = lambda x: float(np.sum((x.astype(float) - low - 0.9) ** 2))  # noqa: E731
    minimize(fun, low.astype(np.float32), bounds=bounds, maxfev=100, rng=0, journal=path)
    assert Journal(path).replay(1).nfev == 1


@pytest.mark.parametrize("bound", [1e6, 1e7, -1e8, 9e8])
@pytest.mark.parametrize("side", [1, -1])
def test_a_start_moved_off_a_far_bound_stays_there(bound: float, side: int, tmp_path: Path) -> None:
    at, path = bound + np.linspace(0, 1e5, 300), tmp_path / "run.db"
    bounds = [(b, None) if side > 0 else (None, b) for b in at]
    minimize(lambda x: float(np.sum((x - at - 0.9 * side) ** 2)), at, bounds=bounds, maxfev=30, rng=0, journal=path)
    assert Journal(path).replay(1).nfev == 1


@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_a_corner_is_reached_after_one_gradient(offset: float) -> None:
    """However far it takes to see curvature: a few axes tell, not all."""
    d = 1000
    c = np.random.default_rng(0).uniform(3, 23, d)
    met: list[int] = []

    def fun(x: Any) -> float:
        met.append(int(not x.any()))
        return float(offset + c @ x + 0.15 * (x @ x))

    minimize(fun, np.full(d, 0.5), bounds=[(0, 1)] * d, maxfev=4 * d, rng=0)
    assert met.index(1) < 2 * d + 100
