"""Coordinates that start equal and that f treats alike move together first, and nothing is lost where they are not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewdim import Auto, Session, minimize
from fewdim.methods.folded import classes_in
from fewdim.problems import power_law, quadratic


def chain(x: Any) -> float:
    """Neighbours pull at each other, and the ends at a wall."""
    u = np.concatenate([[0.0], x, [0.0]])
    return float(np.sum((x - 1) ** 2) + np.sum((x**2 - 2) ** 2) + 0.5 * np.sum(np.diff(u) ** 2))


def pairs(x: Any) -> float:
    return float(np.sum(100 * (x[1::2] - x[::2] ** 2) ** 2 + (1 - x[::2]) ** 2))


def valley(x: Any) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def run(fun: Any, x0: Any, evaluations: int, method: Any = None) -> Any:
    session: Session[Any] = Session(method or Auto(), x0, rng=0)
    while not session.done and session.nfev < evaluations:
        for point in session.ask():
            session.tell(point.id, fun(point.x))
    return session


@pytest.mark.parametrize("d", [40, 100, 3000, 100_000])
def test_a_chain_costs_what_a_few_coordinates_do(d: int) -> None:
    """What is left is at the two ends, the decrease in all coordinates: some 10 of d, and the descent's own 1e-3."""
    x0 = np.zeros(d)
    session = run(chain, x0, 60)
    slope = np.polynomial.Polynomial([-1, -3, 0, 2])  # half that of a coordinate whose neighbours equal it
    middle = slope.roots()
    least = d * min(float((z - 1) ** 2 + (z**2 - 2) ** 2) for z in middle.real)
    assert session.state.story[0].engine == "fold"
    assert session.lowest - least < max(1e-3, 10 / d) * (chain(x0) - least)


@pytest.mark.parametrize("d", [40, 400])
def test_as_many_variables_as_x0_has_values(d: int) -> None:
    result = minimize(pairs, np.tile([-1.2, 1.0], d // 2), maxfev=400, rng=0)
    assert result.fun < 1e-6
    assert result.message.count("move together") == 1


def test_it_ends_at_the_minimum_that_a_start_without_equals_leads_to() -> None:
    d = 60
    result = minimize(chain, np.zeros(d), rng=0)
    other = minimize(chain, np.linspace(0, 0.01, d), rng=0)
    assert result.fun == pytest.approx(other.fun, rel=1e-9)
    assert "move together" in result.message
    assert "move together" not in other.message
    assert result.x[0] != pytest.approx(result.x[d // 2], rel=1e-2)


@pytest.mark.parametrize("d", [31, 50, 2000])
def test_where_coordinates_are_not_alike_it_costs_two_values(d: int) -> None:
    """After those the engine that begins elsewhere begins here, with f(x0) known."""
    problem = quadratic(power_law(d, 1))
    folded = run(problem.fun, np.ones(d), 3)
    assert folded.nfev == 3
    assert [change.engine for change in folded.state.story] == [run(problem.fun, np.arange(1.0, d + 1), 1).state.engine]
    assert folded.state.nfev == 3
    assert folded.state.inner.f_x == problem.fun(np.ones(d))


def test_a_minimum_where_equals_part_is_found() -> None:
    """The lowest point with all coordinates equal is 0, a saddle of height 40: at a minimum half, or nearly, are up."""
    result = minimize(lambda x: float(np.sum((x**2 - 1) ** 2) + 100 * x.mean() ** 2), np.full(40, 0.5), rng=0)
    assert "move together" in result.message
    assert result.fun < 1


@pytest.mark.parametrize("kind", ["noise", "rounded", "float32", "missing", "flat", "key"])
def test_what_is_not_known_to_the_last_digit_is_not_alike_or_does_no_harm(kind: str) -> None:
    dice = np.random.default_rng(0)
    x0 = np.full(50, 2.0)

    def fun(x: Any) -> float:
        f = chain(x)
        if kind == "noise":
            return f + 1e-3 * float(dice.standard_normal())
        if kind == "rounded":
            return round(f, 2)
        if kind == "float32":
            return float(np.float32(f))
        if kind == "missing":
            return f if dice.random() > 0.2 else np.nan
        return 1.0

    def keyed(x: Any, key: Any) -> float:
        return chain(x) + 1e-3 * float(np.random.default_rng(key).standard_normal())

    result = minimize(keyed if kind == "key" else fun, x0, maxfev=2000, rng=0)
    if kind == "flat":
        assert result.fun == 1.0
    else:
        assert chain(result.x) < chain(x0) - 0.99 * (chain(x0) - minimize(chain, x0, rng=0).fun)


def test_bounds_hold_and_a_start_at_one_is_not_folded() -> None:
    inner = minimize(chain, np.full(40, 0.5), bounds=[(0, 1.2)] * 40, rng=0)
    assert "move together" in inner.message
    assert inner.x.min() >= 0
    assert inner.x.max() <= 1.2
    edge = minimize(chain, np.zeros(40), bounds=[(0, 1.2)] * 40, rng=0)
    assert "move together" not in edge.message
    assert edge.fun == pytest.approx(inner.fun, rel=1e-6)


def test_a_journal_that_ends_in_the_middle_of_it_goes_on(tmp_path: Path) -> None:
    """And until its coordinates are known to be alike the message does not say so."""
    x0 = np.zeros(40)
    assert "move together" not in minimize(chain, x0, maxfev=2, rng=0).message
    alone = minimize(chain, x0, maxfev=300, rng=0)
    book = tmp_path / "run"
    minimize(chain, x0, maxfev=17, rng=0, journal=book)
    assert "move together" in minimize(chain, x0, maxfev=17, rng=0).message
    resumed = minimize(chain, x0, maxfev=300, rng=0, journal=book)
    assert resumed.fun == alone.fun
    assert (resumed.x == alone.x).all()
    assert resumed.nfev == alone.nfev


@pytest.mark.parametrize("start", [-1.2, 0.4, 2.0, 3.0])
@pytest.mark.parametrize("kind", ["valley", "chain", "waves"])
def test_the_lowest_point_is_handed_over(kind: str, start: float) -> None:
    """Also where a second descent from the start is under way, since the minimum may not be the nearest."""

    def fun(x: Any) -> float:
        if kind == "chain":
            return chain(x)
        return valley(x) if kind == "valley" else float(np.sum(x**2 + 10 - 10 * np.cos(2 * np.pi * x)))

    session: Session[Any] = Session(Auto(), np.full(100, start), rng=0)
    lowest: list[float] = []
    while session.state.engine == "fold":
        for point in session.ask():
            session.tell(point.id, fun(point.x))
            lowest.append(session.lowest)
    handed = session.state.story[1].f_x
    assert handed - lowest[-2] <= 1e-12 * (session.first - lowest[-2])  # the last is the point a little apart
    assert fun(session.state.x) - handed < 1e-4 * (session.first - handed)


def test_within_bounds_the_value_is_that_of_the_point() -> None:
    """A descent that ends at a bound: the next engine starts a little inside, where f is another."""
    d = 400

    def fun(x: Any) -> float:
        return float(np.sum((x - 3) ** 2) - 20 * x[3] + 8 * np.sum(x[5:9]) + 10 * x[3] ** 2)

    result = minimize(fun, np.full(d, 0.3), bounds=[(0, 1)] * d, rng=0)
    assert "move together" in result.message
    assert result.reason in ("converged", "finished")
    assert not result.noise > 0
    assert result.fun == pytest.approx(4 * d + 10, rel=1e-6)


@pytest.mark.parametrize("d", [100, 300, 1000])
def test_a_saddle_that_equals_cannot_leave_is_left(d: int) -> None:
    """Down only where odd and even coordinates part, a single direction of d."""
    v = np.where(np.arange(d) % 2 == 0, -1.0, 1.0) / np.sqrt(d)

    def fun(x: Any) -> float:
        p = float(v @ x)
        return float(0.5 * x @ x - 2 * p**2 + p**4)

    result = minimize(fun, np.ones(d), rng=0)
    assert "move together" in result.message
    assert result.fun == pytest.approx(-0.5625, rel=1e-6)


def test_a_fast_descent_in_classes_is_no_convergence() -> None:
    """What is left after it is 1e-3 of the decrease: that the next thousand values gain little of it proves nothing."""
    assert minimize(valley, np.full(2500, -1.2), maxfev=4000, rng=0).reason == "maxfev"


@pytest.mark.parametrize("d", [60, 150, 300])
def test_a_descent_that_ends_at_the_minimum_is_soon_followed_by_the_end(d: int) -> None:
    """Moving the coordinates apart is not to be undone to the last digit, in exact values or in those of float32.

    The limits lie between what it takes and what undoing it took: 4,256 values at d = 60, the budget in float32.
    """
    result = minimize(lambda x: float(np.sum((x - 1) ** 4) + np.sum(np.diff(x) ** 2)), np.full(d, 3.0), rng=0)
    assert result.success
    assert result.fun < 1e-12
    assert result.nfev < 10 * d + 1000
    single = minimize(chain, np.full(d, 0.5, dtype=np.float32), rng=0)
    assert single.success
    assert single.nfev < 25 * d + 1000


def test_missing_values_end_the_descent_in_classes_and_not_the_run() -> None:
    """F has no value where the coordinates between the ends have moved together."""

    def fun(x: Any) -> float:
        together = bool((x[1:-1] == x[1]).all()) and x[1] != 0.5
        return np.nan if together else float(np.sum((x - 0.2) ** 4) + np.sum((x[1:] + x[:-1] - 0.3) ** 2))

    result = minimize(fun, np.full(300, 0.5), maxfev=3000, rng=0)
    assert result.reason != "failures"
    assert result.fun < 0.1 * fun(np.full(300, 0.5))


@pytest.mark.parametrize(
    "x", [np.ones(30), np.arange(100.0), np.repeat(np.arange(10.0), 10), np.tile(np.arange(6.0), 20)]
)
def test_no_classes_where_they_are_not_few(x: Any) -> None:
    assert classes_in(x) is None


def test_classes() -> None:
    found = classes_in(np.array([3.0, *[5, -0.0, 5, 0] * 10], dtype=np.float32))
    assert found is not None
    assert found.tolist() == [2, *[0, 1] * 19, 0, 3]
