"""`RandomGradient(step="local")`: the step of steepest expected descent, from the run's own values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fewdim import RandomGradient, Session, minimize
from fewdim.testing import check_method

Floats = NDArray[np.float64]
LOCAL = RandomGradient(step="local")


def quadratic(spectrum: Floats, seed: int = 3) -> Any:
    d = spectrum.size
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    return lambda X: 0.5 * ((X @ Q) ** 2) @ spectrum


def evaluations(method: RandomGradient, f: Any, d: int, gap: float, seeds: int = 5) -> float:
    target = gap * float(f(np.ones((1, d)))[0])
    runs = [
        minimize(f, np.ones(d), method=method, f_target=target, maxfev=20_000, rng=s, vectorized=True, tol=0)
        for s in range(seeds)
    ]
    return float(np.median([run.nfev if run.success else np.inf for run in runs]))


def test_it_conforms() -> None:
    check_method(LOCAL)
    check_method(RandomGradient(step="local", batch=3))


@pytest.mark.parametrize("decay", [0.0, 1.0, 3.0])
def test_it_needs_no_more_evaluations_than_auto(decay: float) -> None:
    """Both aim at the same step; "auto" takes |A|_F for L and spends values on it.  Medians of 5 vary by 5 %."""
    spectrum = np.arange(1, 101.0) ** -decay
    f = quadratic(spectrum)
    assert evaluations(LOCAL, f, 100, 0.05) <= 1.1 * evaluations(RandomGradient(), f, 100, 0.05)


def test_the_step_is_that_of_steepest_expected_descent() -> None:
    """On a flat spectrum g'Ag/|g|^2 = L, so h = 1/(tr + 2L) = 1/(d + 2); signs have 1/d.

    h is a ratio of means over about 100 steps of s^2 and s^2 c, c = u'Au/(d + 2) with relative spread sqrt(2/d) = .14:
    its own spread is .02, so the median over a run lies within .06.
    """
    d = 100
    f = quadratic(np.ones(d))
    session = Session(RandomGradient(step="local", directions="gaussian"), np.ones(d), rng=1)
    steps = []
    while session.nfev < 1200:
        for point in session.ask():
            session.tell(point.id, float(f(point.x[None])[0]))
        steps.append(session.state.moved[0])
    steps = [h for h in steps[len(steps) // 2 :] if h]
    assert float(np.median(steps)) * (d + 2) == pytest.approx(1.0, abs=0.06)


def test_no_value_is_spent_on_estimates() -> None:
    """f(x0) and two values a step, from the first step on."""
    session = Session(RandomGradient(step="local", batch=4), np.ones(30), rng=0)
    f = quadratic(np.ones(30))
    while session.nit < 20:
        for point in session.ask():
            session.tell(point.id, float(f(point.x[None])[0]))
    assert session.nfev == 1 + 20 * 8


def test_it_follows_a_hessian_that_grows() -> None:
    """That of a sum of log cosh is 100 times larger at the minimum than at the start (sech(3)^2 = .0099)."""
    scale = np.arange(1, 51.0) ** -1.0

    def f(x: Floats) -> float:
        return float(scale @ np.logaddexp(x, -x))

    x0 = np.full(50, 3.0)
    floor = float(scale.sum() * np.log(2))
    target = floor + 0.01 * (f(x0) - floor)
    local = minimize(f, x0, method=LOCAL, f_target=target, maxfev=20_000, rng=0)
    assert local.success


def test_forward_differences_are_refused() -> None:
    with pytest.raises(ValueError, match=r'step="local".*difference="forward"'):
        RandomGradient(step="local", difference="forward")
