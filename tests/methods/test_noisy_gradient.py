"""Noisy gradient: it averages, measures the noise where it is, and does not run away."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fewdim import NoisyGradient, RandomGradient, Session, minimize
from fewdim.directions import Vector

Noisy = Callable[[Vector, np.random.Generator], float]
EIGENVALUES = 1 / np.arange(1, 101)


def quadratic(x: Vector) -> float:
    return float(0.5 * EIGENVALUES @ x**2)


def ends(fun: Noisy, true: Callable[[Vector], float], x0: Vector, maxfev: int, method: Any, seeds: int = 5) -> float:
    """The true value where runs end, relative to the start: the median over seeds."""
    found = []
    for seed in range(seeds):
        dice = np.random.default_rng((seed, 1))
        x = minimize(lambda x, dice=dice: fun(x, dice), x0, method=method, maxfev=maxfev, rng=seed).x
        found.append(true(x) / true(x0))
    return float(np.median(found))


class Samples:
    """Logistic regression on random samples: values at 0 are exact, and the noise grows with x."""

    def __init__(self, d: int, n: int = 2000) -> None:
        dice = np.random.default_rng(7)
        self.rows = dice.standard_normal((n, d))
        self.labels = np.sign(self.rows @ dice.standard_normal(d) + 0.3 * np.sqrt(d) * dice.standard_normal(n))

    def loss(self, x: Vector, at: Any = slice(None)) -> float:
        return float(np.logaddexp(0, -self.labels[at] * (self.rows[at] @ x)).mean())

    def sampled(self, x: Vector, dice: np.random.Generator) -> float:
        return self.loss(x, dice.integers(0, self.labels.size, 64))


@pytest.mark.parametrize("method", [NoisyGradient(), "auto"])
def test_it_keeps_improving_in_noise(method: Any) -> None:
    def fun(x: Vector, dice: np.random.Generator) -> float:
        return quadratic(x) + 0.3 * dice.standard_normal()

    early, late = (ends(fun, quadratic, np.ones(100), n, method) for n in (2000, 16000))
    assert late < 0.4 * early
    assert late < 0.02  # of f(x0) = 2.6: a sixth of a noise level


def test_a_fixed_step_does_not() -> None:
    def fun(x: Vector, dice: np.random.Generator) -> float:
        return quadratic(x) + 0.3 * dice.standard_normal()

    method = RandomGradient(noise=0.3)
    early, late = (ends(fun, quadratic, np.ones(100), n, method) for n in (2000, 16000))
    assert late > 0.6 * early


@pytest.mark.parametrize("d", [60, 200])
@pytest.mark.parametrize("method", [NoisyGradient(), "auto"])
def test_noise_that_grows_with_x(method: Any, d: int) -> None:
    problem = Samples(d)
    assert ends(problem.sampled, problem.loss, np.zeros(d), 6000, method) < (0.5 if d == 60 else 0.95)


def test_noise_that_fades() -> None:
    def fun(x: Vector, dice: np.random.Generator) -> float:
        return quadratic(x) * (1 + 0.1 * dice.standard_normal())

    ours, fixed = (ends(fun, quadratic, np.ones(100), 12000, m) for m in (NoisyGradient(), RandomGradient()))
    assert ours < min(0.02, 0.4 * fixed)


def test_the_noise_is_followed() -> None:
    dice, asked = np.random.default_rng(0), 0

    def fun(x: Vector) -> float:
        nonlocal asked
        asked += 1
        return quadratic(x) + (1e-3 if asked < 2000 else 1e-2) * dice.standard_normal()

    result = minimize(fun, np.ones(100), method=NoisyGradient(), maxfev=20000, rng=0)
    assert 0.5e-2 < result.noise < 2e-2


def test_samples_in_common() -> None:
    problem = Samples(60)

    def fun(x: Vector, key: tuple[int, ...]) -> float:
        return problem.sampled(x, np.random.default_rng(key))

    result = minimize(fun, np.zeros(60), method=NoisyGradient(), maxfev=4000, rng=0)
    assert problem.loss(result.x) < 0.5 * problem.loss(np.zeros(60))


def test_values_that_repeat_are_not_asked_twice() -> None:
    asked, values = [], []

    def fun(x: Vector) -> float:
        asked.append(x.tobytes())
        values.append(round(quadratic(x), 2))
        return values[-1]

    result = minimize(fun, np.ones(100), method=NoisyGradient(), maxfev=3000, rng=0)
    assert quadratic(result.x) < 0.05
    assert result.fun == min(values)  # where values repeat the lowest is no luck
    assert result.noise > 0
    assert len(asked) - len(set(asked)) < 80  # those of the start and of the reviews


def test_exact_values_are_exact() -> None:
    result = minimize(quadratic, np.ones(100), method=NoisyGradient(), maxfev=6000, rng=0)
    other = minimize(quadratic, np.ones(100), method=RandomGradient(), maxfev=6000, rng=0)
    assert result.noise == 0
    assert result.fun < 5 * other.fun


def test_values_that_are_missing() -> None:
    dice = np.random.default_rng(0)

    def some(x: Vector) -> float:
        return float("nan") if dice.random() < 0.2 else quadratic(x) + 0.1 * dice.standard_normal()

    assert quadratic(minimize(some, np.ones(100), method=NoisyGradient(), maxfev=4000, rng=0).x) < 0.5

    def walled(x: Vector) -> float:
        return float("nan") if x[0] < 0.5 else quadratic(x) + 0.1 * dice.standard_normal()

    result = minimize(walled, np.ones(100), method=NoisyGradient(), maxfev=4000, rng=0)
    assert result.x[0] > 0.3
    assert quadratic(result.x) < quadratic(np.ones(100))


@pytest.mark.parametrize("seed", range(3))
def test_it_does_not_run_away(seed: int) -> None:
    """Curvature grows with the distance: steps that suit the start are far too long a little farther off."""
    dice = np.random.default_rng(seed)

    def true(x: Vector) -> float:
        return float((x @ x - 1) ** 2)

    def fun(x: Vector) -> float:
        return true(x) * (1 + 0.1 * dice.standard_normal())

    x0 = 0.01 * np.ones(80)
    assert true(minimize(fun, x0, method=NoisyGradient(), maxfev=4000, rng=seed).x) < 0.3 * true(x0)


@pytest.mark.parametrize("trouble", [1e4, np.nan])
def test_it_goes_back_where_values_rise_or_are_missing(trouble: float) -> None:
    """After 300 evaluations all values are far too high, or missing: it returns to an iterate of some steps ago."""
    session: Session[Any] = Session(NoisyGradient(noise=0.1), np.ones(100), rng=0)
    dice, iterates = np.random.default_rng(0), [np.ones(100)]
    while session.nfev < 340:
        for point in session.ask():
            shift = trouble if session.nfev >= 300 else 0.0
            session.tell(point.id, quadratic(point.x) + 0.1 * dice.standard_normal() + shift)
        if not np.array_equal(session.state.x, iterates[-1]):
            iterates.append(session.state.x.copy())
    back = [i for i, x in enumerate(iterates) if any(np.array_equal(x, y) for y in iterates[: max(i - 2, 0)])]
    assert back


def test_no_curvature_and_no_noise() -> None:
    functions: list[Callable[[Vector], float]] = [lambda x: 1.0, lambda x: float(x.sum()), lambda x: float(-x @ x)]
    flat, *falling = [minimize(fun, np.ones(5), method=NoisyGradient(), maxfev=500, rng=0) for fun in functions]
    assert np.isfinite(flat.x).all()
    assert flat.fun == 1
    for result, fun in zip(falling, functions[1:], strict=True):
        assert np.isfinite(result.x).all()
        assert result.fun < fun(np.ones(5)) - 1


def test_a_batch_is_one_query() -> None:
    session: Session[Any] = Session(NoisyGradient(noise=0.1).fit(8), np.ones(100), rng=0)
    dice, sizes = np.random.default_rng(0), []
    while session.nfev < 800:
        points = session.ask()
        sizes.append(len(points))
        for point in points:
            session.tell(point.id, quadratic(point.x) + 0.1 * dice.standard_normal())
    assert sizes.count(8) > 0.8 * len(sizes)
    assert quadratic(session.state.x) < 0.5 * quadratic(np.ones(100))


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match=r"NoisyGradient\(batch=...\) must be an integer of at least 1; got 0"):
        NoisyGradient(batch=0)
    with pytest.raises(ValueError, match=r"NoisyGradient\(directions=...\) must be one of"):
        NoisyGradient(directions="up")
    with pytest.raises(ValueError, match=r'NoisyGradient\(noise=...\) must be "auto" or a number'):
        NoisyGradient(noise=-1)


# ------------------------------------------------------------------------------------------- noise of other kinds
def half(x: Vector) -> float:
    return 0.5 * float(x @ x)


@pytest.mark.parametrize("method", [NoisyGradient(), "auto"])
def test_the_answer_is_not_a_lucky_value(method: Any) -> None:
    """Noise was larger where f was: the lowest value seen is from there, and far below any since."""

    def halved(x: Vector, dice: np.random.Generator) -> float:
        return half(x) * (1 + 0.5 * dice.standard_normal())

    def tailed(x: Vector, dice: np.random.Generator) -> float:
        return half(x) + dice.standard_t(2)

    assert ends(halved, half, np.ones(20), 4000, method) < 0.01
    assert ends(tailed, half, np.ones(100), 6000, method) < 0.1


def test_it_averages_after_a_clear_start_too() -> None:
    def fun(x: Vector, dice: np.random.Generator) -> float:
        return half(x) + 1e-3 * dice.standard_normal()

    ours, fixed = (ends(fun, half, np.ones(100), 20000, m, seeds=3) for m in (NoisyGradient(), RandomGradient()))
    assert ours < 0.5 * fixed


def test_noise_that_appears_is_heard() -> None:
    dice, asked = np.random.default_rng(0), 0

    def fun(x: Vector) -> float:
        nonlocal asked
        asked += 1
        return half(x) + 0.1 * dice.standard_normal() * (asked > 500)

    result = minimize(fun, np.ones(100), method=NoisyGradient(), maxfev=10000, rng=0)
    assert 0.05 < result.noise < 0.2
    assert half(result.x) < 0.3 * half(np.ones(100))


@pytest.mark.parametrize("seed", range(3))
def test_outliers_do_not_drive_it_away(seed: int) -> None:
    dice = np.random.default_rng((seed, 1))

    def fun(x: Vector) -> float:
        return half(x) + 0.1 * dice.standard_normal() + 1e6 * (dice.random() < 0.003)

    assert half(minimize(fun, np.ones(50), method=NoisyGradient(), maxfev=8000, rng=seed).x) < 0.5 * half(np.ones(50))


def test_a_batch_sees_the_curvature_along_an_axis() -> None:
    """Signs do not, and a step of many directions that allows for less than there is would not settle."""
    weights = np.concatenate([[1000.0], np.ones(99)])

    def true(x: Vector) -> float:
        return 0.5 * float(weights @ x**2)

    def fun(x: Vector, dice: np.random.Generator) -> float:
        return true(x) + 0.01 * dice.standard_normal()

    assert ends(fun, true, np.ones(100), 20000, NoisyGradient(batch=4), seeds=3) < 0.01
