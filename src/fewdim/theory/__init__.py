"""Exact theory on quadratics: second moments of the methods, and when they are stable."""

from fewdim.theory.moments import TwoTerm, expected_gaps, heavy_ball, random_gradient, two_step
from fewdim.theory.stability import effective_count, heavy_ball_load, scale_of_count

__all__ = [
    "TwoTerm",
    "effective_count",
    "expected_gaps",
    "heavy_ball",
    "heavy_ball_load",
    "random_gradient",
    "scale_of_count",
    "two_step",
]
