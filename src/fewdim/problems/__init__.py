"""Functions with known minima and constants, for tests, benchmarks and the checks of the paper's claims."""

from fewdim.problems.quadratic import Problem, power_law, quadratic, rosenbrock, rotation
from fewdim.problems.smooth import Smooth, decaying_logistic, logistic, saddles

__all__ = [
    "Problem",
    "Smooth",
    "decaying_logistic",
    "logistic",
    "power_law",
    "quadratic",
    "rosenbrock",
    "rotation",
    "saddles",
]
