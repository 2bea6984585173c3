"""The two-step method: its three sets of constants, and restarts where mu is not known."""

import math
from typing import Any

import numpy as np
import pytest

from fewdim import Accelerated, RandomGradient, Session, gaussian, minimize, theory
from fewdim.problems import power_law, quadratic


def constants(method: Accelerated, d: int) -> Any:
    session: Session[Any] = Session(method, np.ones(d), rng=0)
    while session.nit < 1:
        for point in session.ask():
            session.tell(point.id, float(point.x @ point.x))
    return session.state.constants


def test_the_iteration_written_out() -> None:
    """Equals the two-sequence form with v: y = (x + al v)/(1 + al), v+ = (1-al) v + al y - (al/mu) g."""
    spectrum = power_law(10, 1)
    problem, rho, mu, d = quadratic(spectrum), 1e-4, 0.1, 10
    method = Accelerated(spectrum=spectrum, directions="gaussian", radius=rho, noise=0)
    session: Session[Any] = Session(method, problem.x0, rng=5)
    h = 1 / (spectrum.sum() + 2)
    al = math.sqrt(mu * h / (d + 2))
    x = v = problem.x0
    for k in range(60):
        while session.nit < k:
            for point in session.ask():
                session.tell(point.id, problem.fun(point.x))
        assert np.allclose(session.state.x, x, rtol=1e-9, atol=1e-11)
        y = (x + al * v) / (1 + al)
        u = gaussian((5, k, 0)).array(d)
        g = ((problem.fun(y + rho * u) - problem.fun(y)) / rho - rho * spectrum.sum() / 2) * u
        x, v = y - h * g, (1 - al) * v + al * y - al / mu * g


def test_the_constants() -> None:
    spectrum = power_law(100, 1)
    tr, d = float(spectrum.sum()), 100
    proved = constants(Accelerated(spectrum=spectrum, noise=0), d)
    assert proved == pytest.approx((1 / (tr + 2), 1 / (tr + 2) / (d + 2), 0.01))
    nesterov = constants(Accelerated(constants="nesterov", smoothness=1.0, strong_convexity=0.01, noise=0), d)
    assert nesterov == pytest.approx((1 / (4 * 104), 1 / (16 * 101**2), 0.01))
    h, theta, mu = constants(Accelerated(constants="sharp", spectrum=spectrum, noise=0), d)
    k = theory.scale_of_count(spectrum, 2.8 * 0.01 / h)
    assert (h, theta, mu) == pytest.approx((0.5 / tr, 0.6 * h / theory.effective_count(spectrum, k), 0.0115))


@pytest.mark.parametrize(("decay", "d", "known"), [(1, 100, (1600, 3300, 4900)), (2, 300, (37_000, 64_000, 91_000))])
def test_sharp_constants_against_the_reference(decay: float, d: int, known: tuple[int, ...]) -> None:
    """Known from another implementation of the moments: exact queries to 1e-2/1e-4/1e-6, given to two digits."""
    spectrum = power_law(d, decay)
    h, theta, mu = constants(Accelerated(constants="sharp", spectrum=spectrum, noise=0), d)
    family = theory.two_step(math.sqrt(theta * mu), h, theta)
    gaps = theory.expected_gaps(family, spectrum, np.ones(d), 60_000)
    assert [2 * int(np.argmax(gaps <= g * gaps[0])) for g in (1e-2, 1e-4, 1e-6)] == [
        pytest.approx(n, rel=0.04) for n in known
    ]


def test_sharp_steps_back_where_its_first_choice_diverges() -> None:
    """L/tr = 0.593, and yet h = .5/tr grows the moments 1e57-fold in 10/alpha steps."""
    spectrum = [1, 4.77e-5, 0.686, 8.5e-6]
    h, _, _ = constants(Accelerated(constants="sharp", spectrum=spectrum, noise=0), 4)
    assert h < 0.4 / sum(spectrum)


def test_sharp_constants_are_stable_on_random_spectra() -> None:
    """100 spectra whose largest eigenvalue is 0.2 to 0.95 of the trace; stable moments end below their start."""
    rng = np.random.default_rng(0)
    for share in rng.uniform(0.2, 0.95, 100):
        rest = rng.exponential(size=rng.integers(3, 40)) ** rng.integers(1, 6) + 1e-6
        spectrum = np.sort(np.r_[1.0, np.minimum(rest / rest.sum() * (1 / share - 1), 1.0)])[::-1]
        h, theta, mu = constants(Accelerated(constants="sharp", spectrum=spectrum, noise=0), spectrum.size)
        alpha = math.sqrt(theta * mu)
        steps = int(10 / alpha)
        gaps = theory.expected_gaps(theory.two_step(alpha, h, theta), spectrum, np.ones(spectrum.size), steps)
        assert gaps[-1] < gaps[0], (share, spectrum)


@pytest.mark.parametrize(("decay", "d"), [(1, 100), (2, 100), (2, 300)])
def test_sharp_against_proved(decay: float, d: int) -> None:
    """The docstring's 0.6 to 1.05 times the evaluations of "proved", by the exact moments."""
    spectrum = power_law(d, decay)
    steps = []
    for name in ("sharp", "proved"):
        h, theta, mu = constants(Accelerated(constants=name, spectrum=spectrum, noise=0), d)
        exact = theory.Exact(theory.two_step(math.sqrt(theta * mu), h, theta), spectrum)
        steps.append([exact.evaluations_to(gap) for gap in (1e-2, 1e-4, 1e-6)])
    assert all(0.6 <= sharp / proved <= 1.05 for sharp, proved in zip(*steps, strict=True)), steps


def test_the_proved_potential_contracts() -> None:
    """F - f* + (mu/2)|v - x*|^2 <= (1 - al)^k of its start in expectation; f alone lies below it."""
    spectrum = power_law(100, 2)
    h, theta, mu = constants(Accelerated(spectrum=spectrum, noise=0), 100)
    al = math.sqrt(theta * mu)
    gaps = theory.expected_gaps(theory.two_step(al, h, theta), spectrum, np.ones(100), 20_000)
    bound = (gaps[0] + mu / 2 * 100) * (1 - al) ** np.arange(20_001)
    assert np.all(gaps <= bound)


def test_without_mu_it_beats_random_gradient_at_high_accuracy() -> None:
    """Eigenvalues i^-2, d = 100, gap 1e-3, medians of 3: random gradient needs more than twice as many."""
    problem = quadratic(power_law(100, 2))
    counts = [
        np.median(
            [
                minimize(problem.fun, problem.x0, method=m, f_target=problem.target(1e-3), rng=s, maxfev=40_000).nfev
                for s in range(3)
            ]
        )
        for m in (Accelerated(), RandomGradient())
    ]
    assert 2 * counts[0] < counts[1]


def test_restarts_forget_the_drift() -> None:
    problem = quadratic(power_law(20, 1))
    session: Session[Any] = Session(Accelerated(noise=0), problem.x0, rng=0)
    restarts = 0
    while session.nfev < 4000:
        for point in session.ask():
            session.tell(point.id, problem.fun(point.x))
        restarts += session.state.drift is None and session.nit > 1
    assert restarts > 0
    assert session.lowest < 1e-6 * session.first


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"constants": "sharp"}, r'Accelerated\(constants="sharp"\) needs spectrum='),
        ({"constants": "sharp", "spectrum": [1.0, 0.0]}, "with positive eigenvalues"),
        ({"constants": "sharp", "spectrum": [1.0, 0.5], "batch": 2}, "batch=1"),
        (
            {"constants": "best"},
            r"Accelerated\(constants=...\) must be one of 'proved', 'sharp', 'nesterov'; got 'best'",
        ),
        ({"strong_convexity": -1.0}, r"Accelerated\(strong_convexity=...\) must be a positive number; got -1.0"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Accelerated(**settings)
