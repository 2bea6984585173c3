"""Exact theory on quadratics: second moments of the methods, when they are stable, and the theorems as calculators."""

from fewdim.theory.exact import Exact
from fewdim.theory.moments import TwoTerm, expected_gaps, heavy_ball, random_gradient, rotated_gaps, two_step
from fewdim.theory.stability import (
    effective_count,
    heavy_ball_load,
    random_gradient_load,
    scale_of_count,
    two_step_load,
)
from fewdim.theory.theorems import Claim, Theorem1, Theorem3, corollary3, theorem2, theorem4, theorem5

__all__ = [
    "Claim",
    "Exact",
    "Theorem1",
    "Theorem3",
    "TwoTerm",
    "corollary3",
    "effective_count",
    "expected_gaps",
    "heavy_ball",
    "heavy_ball_load",
    "random_gradient",
    "random_gradient_load",
    "rotated_gaps",
    "scale_of_count",
    "theorem2",
    "theorem4",
    "theorem5",
    "two_step",
    "two_step_load",
]
