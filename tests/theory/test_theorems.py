"""The paper's theorems as calculators: printed and corrected constants."""

from __future__ import annotations

import numpy as np
import pytest

from fewdim.theory import Exact, Theorem1, Theorem3, corollary3, random_gradient, theorem2, theorem4, theorem5

SPECTRUM = 1 / np.arange(1, 51.0)


def test_theorem_1_constants_follow_from_its_step() -> None:
    """C1 = h/2 (15/2) tr^2 d + h^2 (15/2) tr^3 and C2 = h/2 8 d + h^2 8 tr with h = 1/(12 tr)."""
    claim = Theorem1(trace=3.0, mu=0.1, d=7)
    h = claim.step
    assert claim.bias.corrected == pytest.approx(h / 2 * 7.5 * 9 * 7 + h**2 * 7.5 * 27)
    assert claim.noise.corrected == pytest.approx(h / 2 * 8 * 7 + h**2 * 8 * 3)
    assert claim.bias.printed < claim.bias.corrected
    assert claim.floor(1e-3, 0.0).corrected == pytest.approx(24 * 3 / 0.1 * claim.bias.corrected * 1e-6)


def test_theorem_1_rate_is_met_by_the_exact_moments() -> None:
    claim = Theorem1(float(SPECTRUM.sum()), float(SPECTRUM.min()), 50)
    assert Exact(random_gradient(claim.step), SPECTRUM).radius <= claim.factor.printed


def test_theorem_2_carries_the_growth_of_the_distance() -> None:
    claim = theorem2(trace=2.0, smoothness=1.0, d=100, distance=1.0, gap=0.1)
    assert claim.printed == 240
    assert claim.corrected == pytest.approx(240 * (1 + 102 / 12))


def test_theorem_3_knows_where_it_fails() -> None:
    assert Theorem3(np.r_[np.ones(10), np.full(100, 1e-10)]).load > 1
    fine = Theorem3(np.ones(10))
    assert fine.load < 1
    assert "stable" in fine.rate.note
    assert fine.rate.printed == pytest.approx(1 / 576000)
    assert fine.error_allowed(1, 2.0) == pytest.approx(160)


def test_the_corrected_rates_have_the_trace_where_the_printed_have_the_half_dimension() -> None:
    for claim in (corollary3(SPECTRUM, 1e-4), theorem4(SPECTRUM, 1.0, 1.0, 1e-6), theorem5(SPECTRUM, 1.0, 1.0, 1e-4)):
        assert claim.corrected > claim.printed  # sqrt(d ED_1) is never below ED_1/2 (Cauchy and Schwarz)
        assert "Theorem 3" in claim.note
