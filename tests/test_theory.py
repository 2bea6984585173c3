"""The exact second moments against simulation, and the stability condition against both."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewdim import Accelerated, HeavyBall, RandomGradient, Session, theory
from fewdim.problems import power_law, rotation

SPECTRUM = power_law(100, 2)
D = 100


def simulated(method: object, steps: list[int], runs: int, basis: np.ndarray | None = None) -> np.ndarray:
    """Gaps f(x_k) of independent runs at the given steps, (runs, steps), from x0 = (1, .., 1) in the eigenbasis."""
    q = np.eye(D) if basis is None else basis

    def fun(x: np.ndarray) -> float:
        return 0.5 * float((q @ x) ** 2 @ SPECTRUM)

    gaps = np.empty((runs, len(steps)))
    for seed in range(runs):
        session: Session = Session(method, q.T @ np.ones(D), rng=seed)  # type: ignore[type-arg, arg-type]
        for j, k in enumerate(steps):
            while session.state.k < k:
                for point in session.ask():
                    session.tell(point.id, fun(point.x))
            gaps[seed, j] = fun(session.state.x)
    return gaps


def assert_agrees(gaps: np.ndarray, exact: np.ndarray) -> None:
    """Means within 3 standard errors at every point."""
    error = gaps.std(axis=0, ddof=1) / math.sqrt(len(gaps))
    assert np.all(np.abs(gaps.mean(axis=0) - exact) <= 3 * error), (gaps.mean(axis=0) - exact) / error


STEPS = [5, 20, 60, 120, 200]
H = 1 / (SPECTRUM.sum() + 2)


@pytest.mark.parametrize("law", ["gaussian", "signs"])
def test_random_gradient_agrees_with_its_recursion(law: str) -> None:
    method = RandomGradient(step=H, trace=float(SPECTRUM.sum()), directions=law, noise=0)
    exact = theory.expected_gaps(theory.random_gradient(H), SPECTRUM, np.ones(D), STEPS[-1], law)
    assert_agrees(simulated(method, STEPS, runs=250), exact[STEPS])


@pytest.mark.parametrize("batch", [4, 16])
def test_batches_agree(batch: int) -> None:
    h = 1 / (SPECTRUM.sum() / batch + 1 + 1 / batch)
    method = RandomGradient(batch=batch, trace=float(SPECTRUM.sum()), smoothness=1.0, directions="gaussian", noise=0)
    exact = theory.expected_gaps(theory.random_gradient(h, batch), SPECTRUM, np.ones(D), 100)
    assert_agrees(simulated(method, [5, 20, 50, 75, 100], runs=200), exact[[5, 20, 50, 75, 100]])


@pytest.mark.parametrize("law", ["gaussian", "signs"])
def test_heavy_ball_agrees(law: str) -> None:
    method = HeavyBall(trace=float(SPECTRUM.sum()), smoothness=1.0, directions=law, noise=0)
    family = theory.heavy_ball(0.4 * H, momentum=0.6)
    exact = theory.expected_gaps(family, SPECTRUM, np.ones(D), STEPS[-1], law)
    assert_agrees(simulated(method, STEPS, runs=250), exact[STEPS])


@pytest.mark.parametrize("law", ["gaussian", "signs"])
def test_accelerated_agrees(law: str) -> None:
    mu = float(SPECTRUM[-1])
    method = Accelerated(spectrum=SPECTRUM, directions=law, noise=0)
    family = theory.two_step(math.sqrt(mu * H / (D + 2)), H, H / (D + 2))
    exact = theory.expected_gaps(family, SPECTRUM, np.ones(D), STEPS[-1], law)
    assert_agrees(simulated(method, STEPS, runs=250), exact[STEPS])


def test_gaussian_directions_do_not_see_a_rotation() -> None:
    method = RandomGradient(step=H, trace=float(SPECTRUM.sum()), directions="gaussian", noise=0)
    exact = theory.expected_gaps(theory.random_gradient(H), SPECTRUM, np.ones(D), 60)
    assert_agrees(simulated(method, [5, 20, 60], runs=200, basis=rotation(D, 0)), exact[[5, 20, 60]])


def test_reference_numbers() -> None:
    """Exact queries, 2 a step, with h = 1/(tr + 2L), as another implementation gave them to three digits."""
    spectrum = power_law(1000, 2)
    h = 1 / (spectrum.sum() + 2)
    gaps = theory.expected_gaps(theory.random_gradient(h), spectrum, np.ones(1000), 10_000)
    first = [2 * int(np.argmax(gaps <= gap * gaps[0])) for gap in (1e-1, 1e-2)]
    assert first == [pytest.approx(202, rel=0.01), pytest.approx(17_400, rel=0.01)]


def test_nesterovs_constants_against_the_reference() -> None:
    """Another implementation gave 16k/35k/54k queries to 1e-2/1e-4/1e-6 for eigenvalues 1/i, d = 100."""
    spectrum, d = power_law(100, 1), 100
    step, theta = 1 / (4 * (d + 4)), 1 / (16 * (d + 1) ** 2)
    family = theory.two_step(math.sqrt(theta * spectrum[-1]), step, theta)
    gaps = theory.expected_gaps(family, spectrum, np.ones(d), 30_000)
    first = [2 * int(np.argmax(gaps <= gap * gaps[0])) for gap in (1e-2, 1e-4, 1e-6)]
    assert first == [pytest.approx(n, rel=0.05) for n in (16_000, 35_000, 54_000)]


# ------------------------------------------------------------------------------------------------- stability
def test_the_printed_constants_diverge() -> None:
    """10 eigenvalues 1 and 100 eigenvalues 1e-10 give sum q/(1-q) = 2.58 with the paper's own 1/14400."""
    spectrum = np.r_[np.ones(10), np.full(100, 1e-10)]
    h = 1 / (14400 * np.sqrt(spectrum).sum()) ** 2
    assert theory.heavy_ball_load(spectrum, h, math.sqrt(h * 1e-10)) == pytest.approx(2.58, abs=0.01)


@given(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=8), st.floats(0.05, 0.95), st.floats(0.05, 5.0))
@settings(max_examples=150, deadline=None)
def test_the_condition_decides_growth(eigenvalues: list[float], damping: float, size: float) -> None:
    """Below 1 the moments shrink in the end, above 1 they grow; near 1 the time would be too short to tell."""
    spectrum = np.array(eigenvalues) / max(eigenvalues)
    step = size * damping / (spectrum.sum() + 2)
    load = theory.heavy_ball_load(spectrum, step, damping)
    if 0.8 < load < 1.25 or not math.isfinite(load) or step > 0.9 or spectrum.min() < 1e-2:
        return
    gaps = theory.expected_gaps(theory.heavy_ball(step, 1 - damping), spectrum, np.ones(spectrum.size), 20_000)
    assert bool(gaps[-1] < gaps[0]) == (load < 1)


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=30))
@settings(max_examples=150, deadline=None)
def test_the_stable_constants_are_stable_for_every_spectrum(eigenvalues: list[float]) -> None:
    spectrum = np.array(eigenvalues)
    step = 0.4 / (spectrum.sum() + 2 * spectrum.max())
    assert theory.heavy_ball_load(spectrum, step, 0.4) < 1


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=30), st.floats(1e-12, 1e6))
@settings(max_examples=100, deadline=None)
def test_scale_of_count_solves_its_equation(eigenvalues: list[float], target: float) -> None:
    spectrum = np.array(eigenvalues)
    k = theory.scale_of_count(spectrum, target)
    assert k**2 * theory.effective_count(spectrum, k) == pytest.approx(target, rel=1e-9)
