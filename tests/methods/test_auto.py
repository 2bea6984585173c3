"""The default: which engine is in charge, and that it was the right one."""

import itertools
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewdim import Auto, ConjugateSketch, Journal, NoisyGradient, QuasiNewton, RandomGradient, Session, minimize
from fewdim.methods.conjugate_steps import BROAD
from fewdim.problems import power_law, quadratic


def engines(fun: Any, x0: Any, evaluations: int, noise: Any = "auto", rng: int = 0) -> tuple[list[str], Any]:
    session: Session[Any] = Session(Auto(noise=noise), x0, rng=rng)
    while not session.done and session.nfev < evaluations:
        for point in session.ask():
            session.tell(point.id, fun(point.x))
    return [engine for _, engine, _, _ in session.state.story], session


def reasons(session: Any) -> list[str]:
    return [why for _, _, why, _ in session.state.story]


def test_few_directions_are_sketched() -> None:
    problem = quadratic(power_law(100, 2), rotate=3)
    seen, session = engines(problem.fun, problem.x0, 350)
    assert seen == ["sketch"]
    assert session.state.k == session.nit


def test_few_dimensions_get_a_look_along_the_axes_and_full_gradients() -> None:
    """2d + 1 values, 2 to see that there is no noise, the model up to 2.5 d, and 2 on the way back: quasi-Newton knows
    the diagonal.
    """
    problem = quadratic(power_law(20, 1), rotate=3)
    seen, session = engines(problem.fun, problem.x0, 300)
    assert seen == ["model", "newton"]
    assert session.state.story[1].nfev in (52, 53)
    hessian = np.array([[problem.fun(a + b) - problem.fun(a) - problem.fun(b) for b in np.eye(20)] for a in np.eye(20)])
    assert np.allclose(session.state.newton.diagonal, np.diag(hessian))


@pytest.mark.parametrize(("d", "values"), [(80, 300), (150, 500), (300, 750)])
@pytest.mark.parametrize("decay", [0.01, 1])
def test_even_curvature_and_curvature_along_the_axes_get_looks_along_all_axes(
    d: int, values: int, decay: float
) -> None:
    """A sketch has nothing to find in the one, and the diagonal tells all about the other.

    Where a few axes say that curvature is the same along all, a gradient is d values from the start.
    """
    problem = quadratic(power_law(d, decay))
    seen, session = engines(problem.fun, problem.x0, values)
    assert seen[:2] == ["sketch", "model" if decay == 1 and d <= 150 else "newton"]
    assert reasons(session)[1] == ("alike axes" if decay == 0.01 and d <= 150 else "even")
    assert problem.fun(session.best.x) < 1e-6 * problem.fun(problem.x0)


def test_the_opening_looks_along_every_axis_whatever_fails() -> None:
    """A missing value is asked for again: then looks along all axes take more than 2.5 values each."""
    wall = minimize(lambda x: np.nan if x[:40].max() > 1.1 else float(np.sum((x - 0.95) ** 2)), np.ones(50), rng=0)
    assert wall.fun < 1e-9
    dice = np.random.default_rng(0)
    flaky = minimize(lambda x: float(x @ x) if dice.random() > 0.3 else np.nan, np.ones(50), rng=0, f_target=1e-9)
    assert flaky.reason == "target"


@pytest.mark.parametrize("d", [25, 60])
@pytest.mark.parametrize("width", [1, 8])
def test_looks_that_end_behind_a_wall_are_made_shorter(d: int, width: int) -> None:
    """As far as x is large lies 0, where there is no value: a tenth of the way there is one."""
    session: Session[Any] = Session(Auto().fit(width), np.ones(d), rng=0)
    missing = 0
    while session.lowest > 1e-6 and session.nfev < 3000:
        for point in session.ask():
            outside = float(point.x.min()) <= 0
            missing += outside
            session.tell(point.id, np.nan if outside else float(np.sum(2 * point.x + 0.5 / point.x - 2)))
    assert session.lowest <= 1e-6
    assert missing < 2 * d


@pytest.mark.parametrize(
    ("fun", "start"),
    [(lambda x: float(-(x[0] ** 3) + x[1:] @ x[1:]), 1.0), (lambda x: 1e200 * float((x - 1) @ (x - 1)), 0.5)],
    ids=["bottomless", "huge"],
)
@pytest.mark.parametrize("d", [31, 60])
def test_values_as_large_as_numbers_go_are_no_error(fun: Any, start: float, d: int) -> None:
    """Their noise may be measured as infinite, and squares overflow."""
    x0 = np.full(d, start)
    assert minimize(fun, x0, maxfev=2000, rng=0).fun < fun(x0)


def test_looks_that_all_fail_tell_nothing() -> None:
    calls = itertools.count()
    result = minimize(lambda x: np.nan if 60 < next(calls) < 140 else float(x @ x), np.ones(200), rng=0)
    assert result.reason == "failures"


def test_where_few_axes_matter_full_gradients_wait() -> None:
    """Off the diagonal there is nothing, but a sketch finds the few axes long before a gradient would be there."""
    problem = quadratic(power_law(600, 2))
    seen, session = engines(problem.fun, problem.x0, 2 * 600 - 50)
    assert seen == ["sketch"]
    assert session.state.sketch.breadth < BROAD
    assert session.lowest < 1e-2 * problem.fun(problem.x0)
    assert engines(problem.fun, problem.x0, 2 * 600 + 300)[0] == ["sketch", "newton"]


@pytest.mark.parametrize("d", [250, 2000])
def test_where_two_looks_find_curvature_even_full_gradients_begin_at_the_start(d: int) -> None:
    """Not after steps along random directions, which leave x rough."""
    rng = np.random.default_rng(0)
    weights, x0 = rng.uniform(0.5, 2, d), rng.standard_normal(d)
    asked, session = engines(lambda x: float(np.sum(weights * x * x) + np.sum(np.diff(x) ** 2)), x0, 100)
    assert asked == ["sketch", "newton"]
    assert session.state.story[-1].nfev < 60
    assert np.array_equal(session.state.newton.x, x0)


@pytest.mark.parametrize("d", [220, 1200])
def test_random_steps_do_not_leave_x_rough_where_f_smooths(d: int) -> None:
    """Denoising by total variation: what a sketch adds at random is slow to be smoothed away again."""
    rng = np.random.default_rng(3)
    y = np.repeat(rng.standard_normal(d // 20), 20) + 0.3 * rng.standard_normal(d)

    def fun(x: Any) -> float:
        return float(0.5 * np.sum((x - y) ** 2) + 0.5 * np.sum(np.sqrt(np.diff(x) ** 2 + 1e-3)))

    least = minimize(fun, np.zeros(d), method="quasi-newton", maxfev=60 * d, rng=0).fun
    level = least + 1e-2 * (fun(np.zeros(d)) - least)
    asked = []
    for method in (Auto(), QuasiNewton()):
        session: Session[Any] = Session(method, np.zeros(d), rng=0)
        while not session.lowest <= level:
            for point in session.ask():
                session.tell(point.id, fun(point.x))
        asked.append(session.nfev)
    assert asked[0] < 1.15 * asked[1]


def test_negative_curvature_gets_long_looks() -> None:
    """Between two valleys slopes along random directions say little: looks as long as x find a way down."""
    seen, session = engines(lambda x: float(np.sum((x**2 - 1) ** 2)), np.linspace(0.09, 0.11, 60), 800)
    assert seen[:3] == ["sketch", "model", "newton"]
    assert reasons(session)[1] == "bent"
    assert "curvature is negative" in Auto().explain(session.state)
    assert session.lowest < 1e-6


def retrieval(d: int) -> tuple[Any, Any]:
    """A vector from squared measurements of it, and a start near 0, where curvature is negative."""
    rng = np.random.default_rng(0)
    A, z = rng.standard_normal((6 * d, d)), rng.standard_normal(d)
    b = (A @ z) ** 2 / float(z @ z)
    return lambda x: 0.25 * float(np.mean(((A @ x) ** 2 - b) ** 2)), 0.3 * rng.standard_normal(d) / np.sqrt(d)


@pytest.mark.parametrize("d", [10, 40])
def test_where_curvature_is_negative_the_model_stays_and_pays(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on far beyond the opening, into the well, and needs fewer values than quasi-Newton from there."""
    fun, x0 = retrieval(d)

    def needed() -> float:
        return float(np.median([minimize(fun, x0, f_target=1e-2 * fun(x0), maxfev=5000, rng=k).nfev for k in range(3)]))

    _, session = engines(fun, x0, 60 * d)
    start, end = (next(c for c in session.state.story if c.engine == engine) for engine in ("model", "newton"))
    assert end.nfev - start.nfev > 5 * d
    assert session.lowest <= end.f_x < 1e-2 * fun(x0)
    kept = needed()
    monkeypatch.setattr("fewdim.methods.opening.NEAR", np.inf)
    assert kept < 0.85 * needed()


def test_a_model_that_stalls_is_given_up() -> None:
    """Ill-conditioned wells: it follows their curvature at first and crawls later; it is given 12d values."""
    rng = np.random.default_rng(0)
    Q, weights = np.linalg.qr(rng.standard_normal((20, 20)))[0], np.logspace(-2, 2, 20)
    x0 = 0.3 * rng.standard_normal(20)

    def wells(x: Any) -> float:
        return float(np.sum(weights * ((Q @ x) ** 2 - 1) ** 2))

    result = minimize(wells, x0, f_target=1e-6 * wells(x0), maxfev=2000, rng=0)
    assert result.reason == "target"
    assert "negative curvature had been followed" in result.message


def test_round_off_is_no_negative_curvature() -> None:
    """An axis along which f is a straight line is as likely to bend a little downwards as upwards."""
    least = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        A, x0 = rng.standard_normal((40, 14)), rng.standard_normal(15)

        def fun(x: Any, A: Any = A) -> float:
            return float(np.logaddexp(0, A @ x[1:]).sum() + 0.01 * x[1:] @ x[1:] + 0.1 * x[0])

        _, session = engines(fun, x0, 60)
        least += [min(session.state.last.bends)]
        assert reasons(session)[:2] == ["small", "exact"]
    assert -1e-9 < min(least) < 0


def test_a_model_that_meets_missing_values_is_given_up() -> None:
    """Curvature is negative at the start, and the way on leads into a region without values."""
    x0 = 1 + 0.05 * np.random.default_rng(0).standard_normal(60)
    result = minimize(lambda x: np.nan if x[0] > 1.2 else float(np.cos(x).sum() + 0.01 * x @ x), x0, rng=0)
    assert result.success
    assert result.fun < -52.8


@pytest.mark.parametrize("fun", [lambda x: -float(x @ x), lambda x: float(x.sum())], ids=["bent", "plane"])
@pytest.mark.parametrize("d", [3, 31, 200])
def test_no_bottom_is_no_reason_to_spend_the_budget(d: int, fun: Callable[[Any], float]) -> None:
    with np.errstate(over="ignore"):
        result = minimize(fun, np.ones(d), rng=0)
    assert (result.reason, result.success) == ("unbounded", False)
    assert "no minimum" in result.message
    assert result.nfev < 5000


def test_where_curvature_is_negative_short_steps_are_tried_too() -> None:
    """Sums of 20 neighbours, each x / (1 + x^2), which falls on both sides of x = 1: long looks lead away, and end at a
    minimum that is far higher than the one which slopes lead to.
    """

    def fun(x: Any) -> float:
        sums = np.convolve(x / (1 + x * x), np.ones(20), "valid")
        return float(10 * sums @ sums + np.sum(x**4) / 100)

    _, session = engines(fun, np.ones(40), 2400)
    assert session.lowest < 0.01 * fun(np.ones(40))
    assert reasons(session)[-1] == "doubt"


def bowl(f: float) -> float:
    """The same minimum, and less curvature far from it."""
    return float(np.sqrt(1 + f)) - 1


def steeper(f: float) -> float:
    """The same minimum, and somewhat more curvature far from it."""
    return f + f * f / 50


def test_the_sketch_stays_until_it_takes_as_many_values_as_a_gradient() -> None:
    """With three directions a member: when a third of the dimensions are remembered, at the next step that is not as
    foreseen; a memory that is emptied puts it off.
    """
    remembered = []
    for rotate in (3, 4, 5, 6, 7):
        problem = quadratic(power_law(170, 1.5), rotate=rotate)
        _, session = engines(lambda x, fun=problem.fun: steeper(fun(x)), problem.x0, 17_500)
        if reasons(session)[1:2] == ["as dear"]:
            remembered.append(len(session.state.sketch.memory))
        else:
            assert reasons(session) == ["start"]
    assert len(remembered) >= 2
    assert 170 / 3 <= min(remembered) <= np.median(remembered) < 170 / 2  # room for steps that are as foreseen


def test_where_looks_along_the_axes_are_cheap_a_step_that_is_not_as_foreseen_ends_the_sketch() -> None:
    """A quadratic is left to it, and so are the same function in more dimensions and one of very few that matter."""
    for d, decay, why in ((110, 2, "curved"), (160, 2, "start"), (110, 3, "start")):
        problem = quadratic(power_law(d, decay), rotate=3)
        _, session = engines(lambda x, fun=problem.fun: bowl(fun(x)), problem.x0, 600)
        assert reasons(session)[:2][-1] == why
        assert engines(problem.fun, problem.x0, 600)[0] == ["sketch"]


def log_sum_exp(x: Any) -> float:
    """In 60 dimensions, with curvatures that fall like 1/i."""
    rng = np.random.default_rng(3)
    Z, b = rng.standard_normal((140, 60)) / np.sqrt(np.arange(1, 61)), rng.standard_normal(140)
    return float(np.logaddexp.reduce(Z @ x - b) + 5e-4 * x @ x)


def broyden_banded(x: Any) -> float:
    """In 12 dimensions: every coordinate with the five before it and the next (More, Garbow and Hillstrom, no. 31)."""
    near = np.tri(12, 12, 1) - np.tri(12, 12, -6) - np.eye(12)
    return float(np.sum((x * (2 + 5 * x * x) + 1 - near @ (x * (1 + x))) ** 2))


def far_off(x: Any) -> float:
    """In 40 dimensions, convex, with a lowest value of 20 at a point far from 0."""
    rng = np.random.default_rng(1)
    y = np.linalg.qr(rng.standard_normal((40, 40)))[0] @ x - rng.standard_normal(40)
    return float(20 + (y * y + y**4) @ (1 / np.sqrt(np.arange(1.0, 41.0))))


def values_to(fun: Any, x0: Any, gap: float, told: Any, maxfev: int = 3600) -> tuple[float, list[str]]:
    """Values until the true one is at a share of the first above the lowest, and why engines took over until then."""
    low = minimize(fun, x0, maxfev=maxfev, rng=0, noise=0).fun
    session: Session[Any] = Session(Auto(), x0, rng=0)
    while session.nfev < maxfev:
        for point in session.ask():
            f = fun(point.x)
            session.tell(point.id, told(f))
            if f - low <= gap * (fun(x0) - low):
                return session.nfev, reasons(session)
    return np.inf, reasons(session)


def test_in_little_noise_full_gradients_go_on_where_the_model_ends() -> None:
    """Values rounded to 3e-5 of the first gap: the model ends where they differ by 8 of their errors; differences over
    long distances see below that.
    """
    unit = 3e-5 * 0.8
    asked, why = values_to(log_sum_exp, np.zeros(60), 1e-4, lambda f: round(f / unit) * unit)
    assert asked < 60 * 60
    assert why[1:3] == ["noisy", "quiet"]


@pytest.mark.parametrize("d", [100, 200])
def test_in_little_noise_full_gradients_get_a_turn_after_2d_values(d: int) -> None:
    """Few directions that matter, 1e-4 of the first gap: true gaps at 32d values, medians of 3 seeds, are below a third
    of those of noisy gradient, which would follow the sketch for good.
    """
    problem = quadratic(power_law(d, 2), rotate=3)
    scale = 1e-4 * problem.fun(problem.x0)
    gaps: dict[type, list[float]] = {Auto: [], NoisyGradient: []}
    methods: tuple[Any, ...] = (Auto(), NoisyGradient())
    for seed, method in itertools.product(range(3), methods):
        rng = np.random.default_rng(seed)
        session: Session[Any] = Session(method, problem.x0, rng=seed)
        while session.nfev < 32 * d:
            for point in session.ask():
                session.tell(point.id, problem.fun(point.x) + scale * rng.standard_normal())
        gaps[type(method)].append(problem.fun(session.state.x))
        if isinstance(method, Auto):
            turns = [change for change in session.state.story if change.why == "quiet"]
            assert len(turns) == 1
            assert turns[0].nfev >= 2 * d
    assert np.median(gaps[Auto]) < 0.3 * np.median(gaps[NoisyGradient])


def test_full_gradients_get_another_turn_once_noise_has_fallen() -> None:
    """1 % of f: the lower it is the further they see, so that the run goes on as if values were exact."""
    problem = quadratic(power_law(20, 1), rotate=3)
    rng = np.random.default_rng(0)
    result = minimize(lambda x: problem.fun(x) * (1 + 0.01 * rng.standard_normal()), problem.x0, maxfev=2400, rng=0)
    assert problem.fun(result.x) < 1e-10 * problem.fun(problem.x0)
    assert "more changes; " in result.message
    assert len(result.message) < 1000  # the middle of a long story is left out


@pytest.mark.parametrize(
    ("fun", "x0"),
    [
        (log_sum_exp, np.zeros(60)),
        (broyden_banded, 0.1 * np.random.default_rng(0).standard_normal(12) - 1),
        (far_off, np.linspace(1e-3, 2e-3, 40)),  # looks as long as x0 is large see no curvature
    ],
    ids=["60", "12", "far off"],
)
def test_single_precision_changes_little_while_decreases_stand_out_of_it(fun: Any, x0: Any) -> None:
    """To 1e-5 of the first gap at most a third more values than with exact ones."""
    single, why = values_to(fun, x0, 1e-5, lambda f: float(np.float32(f)))
    assert single < 4 / 3 * values_to(fun, x0, 1e-5, float)[0]
    assert why[-1] == "faint"


def test_a_small_memory_does_not_keep_a_slow_sketch_in_charge() -> None:
    """Three steps are to be remembered before a sketch is called slow, or as many as the memory holds."""
    problem = quadratic(power_law(180, 0.5), rotate=1)
    for seed in range(3):
        session: Session[Any] = Session(Auto(memory=2), problem.x0, rng=seed)
        while session.nfev < 1800:
            for point in session.ask():
                session.tell(point.id, problem.fun(point.x))
        assert reasons(session)[1] == "even"


def test_with_fewer_data_than_parameters_the_sketch_goes_on() -> None:
    """Classes that a plane separates: the loss falls to 0 along few directions, and each step brings much of what there
    is.  Full gradients take more than twice the values; the default, medians of 5 seeds, does not.
    """
    d, rng = 100, np.random.default_rng(0)
    Z = rng.standard_normal((40, d)) / np.sqrt(np.arange(1, d + 1))
    Z *= np.sign(Z @ rng.standard_normal(d))[:, None]

    def loss(w: Any) -> float:
        return float(np.logaddexp(0, -Z @ w).mean())

    def needed(method: Any) -> float:
        runs = [minimize(loss, np.zeros(d), method=method, f_target=1e-4, maxfev=20 * d, rng=seed) for seed in range(5)]
        return float(np.median([run.nfev for run in runs]))

    assert needed(Auto()) <= 2 * needed(ConjugateSketch()) < needed(QuasiNewton())


def test_a_sketch_that_goes_as_foreseen_is_not_given_up() -> None:
    """On a quadratic its steps are conjugate, and end at the minimum: quasi-Newton would begin anew."""
    problem = quadratic(power_law(120, 2), rotate=3)
    seen, session = engines(problem.fun, problem.x0, 5000)
    assert seen == ["sketch"]
    assert len(session.state.sketch.memory) > 45
    assert session.lowest < 1e-5 * problem.fun(problem.x0)


@pytest.mark.parametrize("decay", [0.5, 1, 2])
def test_it_is_not_far_behind_the_better_engine(decay: float) -> None:
    """Evaluations to 1e-3 of the first gap, medians of 3: at most 1.5 times the better engine's."""
    problem = quadratic(power_law(150, decay), rotate=3)

    def needed(method: Any) -> float:
        runs = [
            minimize(problem.fun, problem.x0, method=method, f_target=problem.target(1e-3), maxfev=20_000, rng=seed)
            for seed in range(3)
        ]
        return float(np.median([run.nfev for run in runs]))

    assert needed(Auto()) <= 1.5 * min(needed(ConjugateSketch()), needed(QuasiNewton()))


def trigonometric(x: Any) -> float:
    """More, Garbow and Hillstrom's: local minima everywhere."""
    i = np.arange(1, x.size + 1)
    return float(np.sum((x.size - np.cos(x).sum() + i * (1 - np.cos(x)) - np.sin(x)) ** 2))


def ridge(x: Any) -> float:
    """A minimum of value 1 close to 4, behind a ridge, and one of value 0 at -1."""
    return float(np.sum(x[1:] ** 2)) + float(min((x[0] + 1) ** 2, 1 + (x[0] - 4) ** 2))


@pytest.mark.parametrize(("fun", "x0", "least"), [(trigonometric, np.full(10, 0.1), 3e-5), (ridge, np.ones(4), 1e-12)])
def test_a_second_descent_where_the_minimum_may_not_be_the_nearest(fun: Any, x0: Any, least: float) -> None:
    """The long looks of the opening lead to a higher minimum than short steps do; the lower is kept, however found."""
    result = minimize(fun, x0, rng=0)
    print(result.fun, result.nfev, result.message)
    assert "from the start again" in result.message
    assert result.fun < least


def banded(x: Any) -> float:
    """Broyden's, by More, Garbow and Hillstrom: the minimum nearest to (-1, ..., -1) is half-way to 0."""
    others = [x[max(0, i - 5) : i + 2] for i in range(x.size)]
    mixed = np.array([np.sum(y * (1 + y)) for y in others]) - x * (1 + x)
    return float(np.sum((x * (2 + 5 * x**2) + 1 - mixed) ** 2))


@pytest.mark.parametrize("d", [10, 30])
def test_looks_that_went_too_far_are_gone_back_from(d: int) -> None:
    """As far off as x is large lies 0, in the valley of another minimum: what is between is looked at in time."""
    seen, session = engines(banded, np.linspace(-1.001, -1, d), 12 * d)
    assert seen[-2:] == ["model", "newton"]
    assert session.lowest < 1e-6 * banded(-np.ones(d))
    model, newton = session.state.last, session.state.story[-1]
    assert newton.nfev < 3.5 * d
    start = model.first[0]
    assert min(banded(start + t * (model.x - start)) for t in np.linspace(0.1, 0.9, 9)) < model.f_x


def test_no_second_descent_without_a_doubt() -> None:
    problem = quadratic(power_law(15, 1), rotate=3)
    assert "doubt" not in reasons(engines(problem.fun, problem.x0, 2000)[1])


def test_the_first_minimum_is_come_back_to_when_it_is_the_lower() -> None:
    """The long looks cross a ridge, to a minimum of value 0; short steps from the start lead to one of value 0.1."""

    def fun(x: Any) -> float:
        return 0.01 * float(np.sum(x[1:] ** 2)) + float(min((x[0] - 3) ** 2, 0.1 + (x[0] - 1) ** 2))

    _, session = engines(fun, np.full(4, 1.6), 200)
    assert reasons(session)[2:4] == ["doubt", "lower"]
    assert fun(session.state.x) < 1e-12


def test_a_kink_is_pursued_to_its_end_and_called_one() -> None:
    seen, session = engines(lambda x: 1 + float(np.linalg.norm(x)) ** 0.5, np.linspace(1, 2, 60), 20_000, noise=0)
    assert seen[-1] == "pursuit"
    assert session.done
    assert "stagnation" in Auto().explain(session.state)


@pytest.mark.parametrize("d", [3, 8, 50, 200])
def test_the_message_names_no_engine_that_never_ran(d: int) -> None:
    a = np.random.default_rng(0).standard_normal(d)
    for seed in range(4):
        result = minimize(lambda x: float((np.cosh(x - a) / np.arange(1, d + 1)).sum()), np.zeros(d), rng=seed)
        assert all(int(n) <= result.nfev for n in re.findall(r"evaluation (\d+)", result.message))


def test_a_stationary_point_is_called_one() -> None:
    problem = quadratic(power_law(60, 1), rotate=3)
    result = minimize(lambda x: 1 + problem.fun(x), problem.x0, tol=0, maxfev=20_000, rng=0)
    assert result.reason == "finished"
    assert "as at a stationary point" in result.message
    assert "stagnation" not in result.message


@pytest.mark.parametrize("level", [1e-6, 1e-4, 1e-2])
def test_noise_hands_over_to_random_gradient_and_is_no_worse_than_it(level: float) -> None:
    """True gap at 75 d evaluations, medians of 5 seeds: at most twice that of random gradient from the start."""
    problem = quadratic(power_law(40, 1), rotate=3)
    scale = problem.fun(problem.x0)
    rng = np.random.default_rng(0)

    def fun(x: Any) -> float:
        return problem.fun(x) + level * scale * rng.standard_normal()

    assert engines(fun, problem.x0, 3000)[0][-1] == "gradient"
    gaps = {
        method: np.median(
            [problem.fun(minimize(fun, problem.x0, method=method, maxfev=3000, rng=s).x) for s in range(5)]
        )
        for method in (Auto(), RandomGradient())
    }
    assert gaps[Auto()] < 2 * gaps[RandomGradient()]


@pytest.mark.parametrize("d", [2, 10, 60])
def test_noise_in_few_dimensions_is_modelled(d: int) -> None:
    problem = quadratic(np.ones(d))
    rng = np.random.default_rng(0)
    seen, session = engines(lambda x: problem.fun(x) + 1e-3 * d * rng.standard_normal(), problem.x0, 60 * d)
    assert seen[-2:] == ["model", "gradient"]
    assert 0.3e-3 < session.state.noise / d < 3e-3
    assert problem.fun(session.best.x) < 1e-2 * d


def test_noise_leaves_few_directions_to_the_sketch() -> None:
    problem = quadratic(power_law(100, 3), rotate=3)
    rng = np.random.default_rng(0)
    scale = 1e-5 * problem.fun(problem.x0)
    seen, _ = engines(lambda x: problem.fun(x) + scale * rng.standard_normal(), problem.x0, 300)
    assert seen == ["sketch"]


def test_noise_in_few_dimensions_is_found_out() -> None:
    """There it is not measured at the start; second differences that make no sense give it away."""
    rng = np.random.default_rng(0)
    result = minimize(lambda x: float(x @ x) + 1e-2 * rng.standard_normal(), np.ones(10), maxfev=1500, rng=0)
    assert 0.3e-2 < result.noise < 3e-2
    assert float(result.x @ result.x) < 0.1


@pytest.mark.parametrize("d", [3, 10, 40])
def test_a_minimum_that_is_hit_exactly_is_not_noisy(d: int) -> None:
    """From x0 = 1 a look of length 1 along each axis ends at 0, where values are the same on both sides."""
    result = minimize(lambda x: float(x @ x), np.ones(d), maxfev=60 * d, rng=0)
    assert result.fun < 1e-20
    assert result.noise == 0


def test_the_noise_may_be_told() -> None:
    problem = quadratic(power_law(50, 1), rotate=3)
    seen, session = engines(problem.fun, problem.x0, 4000, noise=1e-2)
    assert seen[-1] == "gradient"
    assert session.state.noise == 1e-2


def test_noise_that_grows_is_heard() -> None:
    """A hundred times the noise after 2000 evaluations: the level follows within a factor of 3."""
    rng, calls = np.random.default_rng(0), 0

    def fun(x: Any) -> float:
        nonlocal calls
        calls += 1
        return float(x @ x) + (1e-4 if calls < 2000 else 1e-2) * rng.standard_normal()

    result = minimize(fun, np.ones(50), maxfev=12_000, rng=0)
    assert 1e-2 / 3 < result.noise < 3e-2
    assert float(result.x @ result.x) < 0.5


@pytest.mark.parametrize("d", [10, 30])
def test_noise_in_proportion_to_f_is_no_worse_than_that_of_its_last_size(d: int) -> None:
    """1 % of f, which falls to a tenth: true values reached, medians of 5, within 4 of those with 0.1 % all along."""
    problem = quadratic(power_law(d, 1), rotate=3)
    rest = 0.1 * problem.fun(problem.x0)

    def reached(noisy: Any) -> float:
        found = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            result = minimize(lambda x, r=rng: noisy(problem.fun(x), r), problem.x0, maxfev=40 * d, rng=seed)
            found.append(problem.fun(result.x))
        return float(np.median(found))

    falling = reached(lambda f, rng: (f + rest) * (1 + 1e-2 * rng.standard_normal()))
    steady = reached(lambda f, rng: f + rest + 1e-2 * rest * rng.standard_normal())
    print(f"d = {d}: {falling:.1e}, with noise of the last size throughout {steady:.1e}")
    assert falling < 4 * steady


def test_noise_that_comes_up_late_is_heard() -> None:
    """Exact values first; once no step goes down any more the noise is measured, and averaging takes over."""
    rng, calls = np.random.default_rng(0), 0
    problem = quadratic(power_law(40, 1), rotate=3)

    def fun(x: Any) -> float:
        nonlocal calls
        calls += 1
        return problem.fun(x) + (0 if calls < 400 else 1e-3) * rng.standard_normal()

    result = minimize(fun, problem.x0, maxfev=4000, tol=0, rng=0)
    assert 3e-4 < result.noise < 3e-3


def test_single_precision() -> None:
    spectrum = power_law(300, 2).astype(np.float32)
    result = minimize(lambda x: np.float32(0.5) * (x * x) @ spectrum, np.ones(300, np.float32), maxfev=6000, rng=0)
    assert result.x.dtype == np.float32
    assert result.fun < 1e-2 * 0.5 * spectrum.sum()


def test_a_wide_pool_is_filled_in_noise_too() -> None:
    """Sketches of at least 16, 16 points of the model at once, and after the hand-over 8 pairs a query."""
    problem = quadratic(power_law(60, 1), rotate=3)
    session: Session[Any] = Session(Auto(noise=1e-2).fit(16), problem.x0, rng=0)
    widest = {"sketch": 0, "model": 0, "gradient": 0}
    while session.nfev < 4000:
        points = session.ask()
        widest[session.state.engine] = max(widest[session.state.engine], len(points))
        for point in points:
            session.tell(point.id, problem.fun(point.x))
    assert min(widest.values()) >= 16


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"Auto\(least=...\) must be"):
        Auto(least=0)
    with pytest.raises(TypeError, match=r"Auto\(box=...\) is set by minimize\(bounds=...\); got 3"):
        Auto(box=3)  # type: ignore[arg-type]


def rosenbrock(x: Any) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


TOUGH: dict[str, tuple[Any, Any, float]] = {  # fun, x0, and what the value must fall below
    "large values": (lambda x: 1e12 * float(x @ x), np.ones(30), 1.0),
    "an offset": (lambda x: 1e6 + float(x @ x), np.ones(30), 1e6 + 1e-6),
    "one dimension": (lambda x: float((x[0] - 3) ** 2), np.zeros(1), 1e-9),
    "optimal start": (lambda x: float(x @ x), np.zeros(30), 1e-300),
    "a plateau": (lambda x: max(1.0, float(x @ x)), np.full(30, 0.1), 1.0 + 1e-12),
    "one active coordinate": (lambda x: float((x[70_000] - 1) ** 2), np.zeros(100_000), 1e-2),
    "missing regions": (lambda x: float(np.log(x[0])) ** 2 + float(x[1:] @ x[1:]), np.full(30, 0.5), 1e-6),
    "steps": (lambda x: float(np.floor(50 * x @ x)), np.ones(30), 1500.0),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in log:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning")
@pytest.mark.parametrize("name", TOUGH)
def test_tough_starts(name: str) -> None:
    """A sensible answer, never worse than the start, and an end."""
    fun, x0, below = TOUGH[name]
    result = minimize(fun, x0, maxfev=6000, rng=0)
    assert result.fun <= fun(x0)
    assert result.fun <= below, result.message


@pytest.mark.parametrize(
    ("spectrum", "shape", "why"), [(np.ones(250), float, "even"), (power_law(151, 1.5), steeper, "as dear")]
)
def test_a_sketch_that_comes_back_looks_at_where_it_is(
    spectrum: Any, shape: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first look saw at x0 is gone, and so is the memory, once quasi-Newton has come to its end."""
    monkeypatch.setattr("fewdim.methods.auto.SOME", 0)  # as in very many dimensions: 2d values of the sketch first
    problem = quadratic(spectrum, rotate=3)
    session: Session[Any] = Session(Auto(), problem.x0, rng=0)
    remembered = 0
    while reasons(session)[-1] != "stuck":
        for point in session.ask():
            session.tell(point.id, shape(problem.fun(point.x)))
        remembered = max(remembered, len(session.state.sketch.memory))
    assert reasons(session) == ["start", why, "stuck"]
    assert remembered > 0
    assert session.state.sketch.sketch is None
    assert session.state.sketch.memory == ()
    assert session.state.sketch.f_x == session.state.newton.f_x


@pytest.mark.parametrize(("d", "part", "most"), [(40, 1.2, 0.95), (150, 0.9, 0.8), (400, 0.9, 0.6), (1200, 1.6, 0.4)])
def test_a_budget_too_small_for_gradients_is_not_spent_on_one(d: int, part: float, most: float) -> None:
    """Curvature is spread evenly: with more to spend the run begins with looks along the axes, or a full gradient."""
    problem = quadratic(power_law(d, 0.25), rotate=3)
    start = problem.fun(problem.x0)
    short = [minimize(problem.fun, problem.x0, maxfev=int(part * d), rng=seed) for seed in range(3)]
    long = minimize(problem.fun, problem.x0, maxfev=4 * d, rng=0)
    assert np.median([result.fun for result in short]) < most * start
    assert all(" quasi-Newton" not in result.message for result in short)
    assert "quasi-Newton" in long.message
    assert long.fun < 0.05 * start


def test_past_its_budget_a_run_goes_on_as_if_it_knew_none(tmp_path: Path) -> None:
    d = 300
    problem, path = quadratic(power_law(d, 0.25), rotate=3), tmp_path / "run.db"
    first = minimize(problem.fun, problem.x0, maxfev=d, rng=0, journal=path)
    again = minimize(problem.fun, problem.x0, maxfev=12 * d, rng=0, journal=path)
    assert first.history.fun[-1] in again.history.fun
    assert "quasi-Newton" in again.message
    assert again.fun < 1e-4 * first.fun


@pytest.mark.parametrize("far", [-1.0, 0.3, 5.0])
def test_looks_that_leave_for_where_f_explodes_are_made_shorter(far: float) -> None:
    """A rate that turns positive: f reaches 1e200 as far off as the other parameters are large."""
    times = np.linspace(0, 300, 40)
    true = np.array([far, 1.5, -0.02])

    def model(x: Any) -> Any:
        return x[0] + x[1] * np.exp(x[2] * times)

    def fun(x: Any) -> float:
        with np.errstate(over="ignore"):
            return float(np.sum((model(x) - model(true)) ** 2))

    result = minimize(fun, np.array([0.6, 1.0, -0.01]), maxfev=300, rng=0)
    assert result.fun < 1e-8 * fun(np.array([0.6, 1.0, -0.01]))


@pytest.mark.parametrize("far", [-1.0, 5.0])
def test_and_so_are_looks_along_all_axes_at_once(far: float) -> None:
    session: Session[Any] = Session(Auto(width=4), np.array([0.5, 0.5, -0.01]), rng=0)
    while session.nfev < 400 and not session.done:
        for point in session.ask():
            x = point.x
            with np.errstate(over="ignore"):
                session.tell(point.id, float(np.exp(200 * x[2]) + (x[0] - far) ** 2 + x[1] ** 2 - 2 * x[2]))
    assert session.best.x[0] == pytest.approx(far, abs=1e-3)
    assert session.best.x[2] == pytest.approx(np.log(0.01) / 200, abs=1e-3)


def test_a_function_that_fails_for_good_ends_the_run_wherever_it_is() -> None:
    """Also where another engine has just begun, and asks for f at its start."""
    for last in range(30, 200, 5):
        asked = itertools.count()
        fun = lambda x, asked=asked, last=last: float(np.abs(x).sum()) if next(asked) < last else np.nan  # noqa: E731
        result = minimize(fun, np.ones(5), maxfev=1500, rng=0)
        assert result.reason == "failures" or result.nfev <= last or result.fun == 0
        assert result.fun <= 5


def test_a_point_without_a_value_is_no_start_after_the_descent_in_classes() -> None:
    for seed in range(20):
        asked = itertools.count()

        def fun(x: Any, seed: int = seed, asked: Any = asked) -> float:
            lost = zlib.crc32(x.tobytes() + bytes([seed])) % 20 == 0 and next(asked) > 0
            return np.nan if lost and x.any() else float(np.sum((x - 1) ** 2) + np.sum(np.diff(x) ** 2))

        assert minimize(fun, np.zeros(40), maxfev=2000, rng=seed).fun < 1e-3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_rank_that_was_low_at_the_start_is_looked_at_anew(seed: int) -> None:
    """U V' = M from small U and V: few directions matter there, and all of them further on."""
    truth = np.random.default_rng(0).standard_normal((30, 5))

    def fun(x: Any) -> float:
        u, v = x.reshape(2, 30, 5)
        return float(np.sum((u @ v.T - truth @ truth.T) ** 2))

    x0 = 0.1 * np.random.default_rng(seed).standard_normal(300)
    _, session = engines(fun, x0, 9000, rng=seed)
    assert reasons(session)[:2] == ["start", "even"]
    assert session.state.story[1].nfev > 300  # the first looks had said something else
    assert session.lowest < 1e-8 * session.first


@pytest.mark.parametrize(("width", "most"), [(1, 32), (4, 50), (8, 60)])
def test_a_start_in_the_middle_between_a_minimum_and_a_look_is_no_explosion(width: int, most: int) -> None:
    """On a sphere with minimum 1, looks from 2 as long as 2: f is the same on one side and nine times on the other."""
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 12)))[0]
    session: Session[Any] = Session(Auto(width=width), np.full(12, 2.0), rng=0)
    while session.nfev < most:
        for point in session.ask():
            session.tell(point.id, float(np.sum((turn @ (point.x - 1)) ** 2)))
    assert session.lowest < 1e-10


def test_ask_and_tell_without_values_where_an_engine_begins_ends() -> None:
    values = itertools.chain([5.0], itertools.repeat(np.nan))
    with pytest.raises(ValueError, match="f must have a value at the point where a method starts"):
        engines(lambda _: next(values), np.ones(5), 1000)


def test_what_a_folded_descent_has_spent_is_not_left() -> None:
    def fun(x: Any) -> float:
        return float(np.sum((x - 1.2) ** 2) + 100 * np.sum(np.diff(x) ** 2) + 0.01 * np.sum(np.exp(x) ** 2))

    for budget in (180, 210, 300):
        result = minimize(fun, np.full(100, 0.5), bounds=[(0, 1)] * 100, maxfev=budget, rng=0)
        assert "move together" in result.message
        assert "quasi-Newton" not in result.message


def test_a_journal_is_replayed_with_the_method_given(tmp_path: Path) -> None:
    problem, path = quadratic(power_law(150, 0.25), rotate=3), tmp_path / "run.db"
    journal = Journal(path, snapshot_limit=0)
    minimize(problem.fun, problem.x0, method=Auto(), maxfev=200, rng=0, journal=journal)
    assert Journal(path).replay(method=Auto()).nfev == 200


@pytest.mark.parametrize("d", [31, 100, 201])
@pytest.mark.parametrize(("first", "low", "high"), [(0, 0, None), (1, -1, 1)])
def test_within_bounds_a_larger_budget_is_no_loss(d: int, first: float, low: float, high: float | None) -> None:
    """A full gradient comes with looks at the noise and a step: it is not begun where these would not fit."""
    c = 2 * np.random.default_rng(d).standard_normal(d)

    def fun(x: Any) -> float:
        return float(((x - c) ** 2 / np.arange(1, d + 1)).sum())

    x0, bounds = np.full(d, float(first)), [(low, high)] * d
    left = [minimize(fun, x0, bounds=bounds, maxfev=2 * d + more, rng=0).fun for more in (0, 5, 20, 45, 80)]
    assert np.diff(left).max() <= 0
    assert left[0] < 0.9 * fun(x0)


def test_what_is_flat_is_not_called_a_kink() -> None:
    assert "as at a stationary point" in minimize(lambda _: 5.0, np.ones(50), rng=0).message
    at_once = minimize(lambda x: float((x[0] - 1) ** 2), np.zeros(1), rng=0)
    assert "noise" not in at_once.message.replace("noise is", "")
    assert at_once.noise == 0
