"""The best of several runs."""

import math
from typing import Any

import numpy as np
import pytest

from fewdim import RandomGradient, RandomPursuit, Repeated, Session
from fewdim.problems import power_law, quadratic

PROBLEM = quadratic(power_law(50, 1))


def gap_after(method: Any, steps: int, seed: int) -> float:
    session: Session[Any] = Session(method, PROBLEM.x0, rng=seed)
    while session.nit < steps:
        for point in session.ask():
            session.tell(point.id, PROBLEM.fun(point.x))
    return float(PROBLEM.fun(session.state.x))


@pytest.mark.parametrize("choose", ["value", "residual"])
def test_the_best_of_five_is_no_worse_than_each(choose: Any) -> None:
    """Runs of `Repeated` are those of the method with the keys (*key, j); the winner is the lowest of them."""
    repeated: Session[Any] = Session(Repeated(RandomGradient(noise=0), 5, 30, choose), PROBLEM.x0, rng=3)
    while repeated.nit < 1:
        for point in repeated.ask():
            repeated.tell(point.id, PROBLEM.fun(point.x))
    state = repeated.state
    values = [PROBLEM.fun(run.x) for run in state.runs]
    assert len(set(values)) == 5
    if choose == "value":
        assert PROBLEM.fun(state.x) == min(values) == state.score
    else:
        norms = [float(np.linalg.norm(PROBLEM.spectrum * run.x)) for run in state.runs]
        assert state.score == pytest.approx(min(norms), rel=1e-4)
        assert state.best == int(np.argmin(norms))


def test_the_tail_is_cut() -> None:
    """Markov: a run is above twice its mean gap with probability p <= 1/2, the best of four with p^4.

    Of 60 seeds one run in `single` is above the median by construction half the time; four in a row, 1 in 16.
    """
    single = sorted(gap_after(RandomGradient(noise=0), 40, seed) for seed in range(60))
    median = single[30]
    best = [gap_after(Repeated(RandomGradient(noise=0), 4, 40), 1, 1000 + seed) for seed in range(60)]
    above = sum(value > median for value in best)
    assert above <= 60 / 16 + 4 * math.sqrt(60 / 16)  # four standard deviations over what is expected


def test_it_ends_when_all_runs_have() -> None:
    session: Session[Any] = Session(Repeated(RandomPursuit(noise=0), 2), np.ones(4), rng=0)
    while not session.done:
        for point in session.ask():
            session.tell(point.id, 1.0)
    assert session.nfev < 2000


def test_settings_are_checked_by_name() -> None:
    with pytest.raises(ValueError, match=r"Repeated\(times=...\) must be an integer of at least 1; got 0"):
        Repeated(RandomGradient(), 0)
    with pytest.raises(TypeError, match=r"Repeated\(method=...\) must have start, step and done; got 'auto'"):
        Repeated("auto")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Repeated\(method=...\) must have start, step and done; got <class"):
        Repeated(RandomGradient)  # type: ignore[arg-type]
