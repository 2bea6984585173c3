"""The default: which engine is in charge, and that it was the right one."""

from typing import Any

import numpy as np
import pytest

from fewdim import Auto, RandomGradient, Session, minimize
from fewdim.problems import power_law, quadratic


def engines(fun: Any, x0: Any, evaluations: int, noise: Any = "auto") -> tuple[list[str], Any]:
    session: Session[Any] = Session(Auto(noise=noise), x0, rng=0)
    seen: list[str] = []
    while not session.done and session.nfev < evaluations:
        for point in session.ask():
            session.tell(point.id, fun(point.x))
        if not seen or seen[-1] != session.state.engine:
            seen.append(session.state.engine)
    return seen, session


def test_clear_values_are_sketched() -> None:
    problem = quadratic(power_law(100, 1))
    seen, session = engines(problem.fun, problem.x0, 1500)
    assert seen == ["sketch"]
    assert session.state.k == session.nit


def test_a_kink_is_pursued_to_its_end() -> None:
    seen, session = engines(lambda x: float(np.abs(x).max()), np.ones(10), 20_000, noise=0)
    assert seen == ["sketch", "pursuit"]
    assert session.done


@pytest.mark.parametrize("level", [1e-6, 1e-4, 1e-2])
def test_noise_hands_over_to_random_gradient_and_is_no_worse_than_it(level: float) -> None:
    """True gap at 50 d evaluations, medians of 5 seeds: at most twice that of random gradient from the start."""
    problem = quadratic(power_law(100, 1))
    scale = problem.fun(problem.x0)
    rng = np.random.default_rng(0)

    def fun(x: Any) -> float:
        return problem.fun(x) + level * scale * rng.standard_normal()

    assert engines(fun, problem.x0, 5000)[0] == ["sketch", "gradient"]
    gaps = {
        method: np.median(
            [problem.fun(minimize(fun, problem.x0, method=method, maxfev=5000, rng=s).x) for s in range(5)]
        )
        for method in (Auto(), RandomGradient())
    }
    assert gaps[Auto()] < 2 * gaps[RandomGradient()]


def test_the_noise_may_be_told() -> None:
    problem = quadratic(power_law(50, 1))
    seen, session = engines(problem.fun, problem.x0, 4000, noise=1e-2)
    assert seen == ["sketch", "gradient"]
    assert session.state.noise == 1e-2


def test_single_precision() -> None:
    spectrum = power_law(300, 2).astype(np.float32)
    result = minimize(lambda x: np.float32(0.5) * (x * x) @ spectrum, np.ones(300, np.float32), maxfev=6000, rng=0)
    assert result.x.dtype == np.float32
    assert result.fun < 1e-2 * 0.5 * spectrum.sum()


def test_a_wide_pool_is_filled_in_noise_too() -> None:
    """Sketches of at least 16, and after the hand-over 8 pairs a query."""
    problem = quadratic(power_law(50, 1))
    session: Session[Any] = Session(Auto(noise=1e-2).fit(16), problem.x0, rng=0)
    widest = {"sketch": 0, "gradient": 0}
    while session.nfev < 4000:
        points = session.ask()
        widest[session.state.engine] = max(widest[session.state.engine], len(points))
        for point in points:
            session.tell(point.id, problem.fun(point.x))
    assert widest["sketch"] >= 16
    assert widest["gradient"] >= 16
