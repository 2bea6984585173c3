"""Functions with known minima and constants, for tests, benchmarks and the checks of the paper's claims."""

from fewdim.problems.quadratic import Problem, power_law, quadratic, rosenbrock, rotation

__all__ = ["Problem", "power_law", "quadratic", "rosenbrock", "rotation"]
