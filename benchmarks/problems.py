"""The problems of the benchmark, by name; each is made when asked for.

python -m benchmarks.problems    # lists them: dimension, budget, families, start, minimum
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from benchmarks import data, nonconvex, water
from benchmarks.classics import classic
from benchmarks.fits import FITS, Application
from benchmarks.problem import Law, Problem, noisy, stored_minimum
from benchmarks.quadratics import clusters, exponential, few_large, flat_tail, power, quadratic
from benchmarks.simulations import SIMULATIONS

Maker = Callable[[], Problem]


def _quadratics() -> dict[str, Maker]:
    spectra = {
        "power-0.5-500": lambda: power(500, 0.5),
        "power-1-1000": lambda: power(1000, 1),
        "power-1.5-2000": lambda: power(2000, 1.5),
        "power-2-1000": lambda: power(1000, 2),
        "power-2-10000": lambda: power(10_000, 2),
        "power-2-100000": lambda: power(100_000, 2),
        "power-3-500": lambda: power(500, 3),
        "exponential-1000": lambda: exponential(1000, 1e4),
        "clusters-1000": lambda: clusters(1000, 5, 1e3),
        "flat-tail-1000": lambda: flat_tail(1000, 10, 100),
        "few-large-10000": lambda: few_large(10_000, 30),
        "power-1-100": lambda: power(100, 1),
        "power-2-50": lambda: power(50, 2),
        "exponential-150": lambda: exponential(150, 1e3),
        "clusters-60": lambda: clusters(60, 4, 1e4),
        "power-2-10": lambda: power(10, 2),
        "exponential-2": lambda: exponential(2, 1e3),
    }
    aligned = {
        "power-1-100000": lambda: power(100_000, 1),
        "power-2-2000": lambda: power(2000, 2),
        "exponential-500": lambda: exponential(500, 1e4),
        "exponential-40": lambda: exponential(40, 1e6),
    }
    made: dict[str, Maker] = {}
    for (name, spectrum), rotated in [*((s, True) for s in spectra.items()), *((s, False) for s in aligned.items())]:
        full = f"{name}-{'rotated' if rotated else 'aligned'}"
        made[full] = lambda f=full, s=spectrum, r=rotated: quadratic(f, s(), rotated=r)  # type: ignore[misc]
    return made


def _convex() -> dict[str, Maker]:
    makers: dict[str, Callable[[str], Problem]] = {
        "diabetes-linear-66": lambda n: data.real(n, "diabetes", "squares", 1e-4, degree=2),
        "diabetes-linear-286": lambda n: data.real(n, "diabetes", "squares", 1e-3, degree=3),
        "cancer-logistic-31": lambda n: data.real(n, "breast_cancer", "logistic", 1e-4),
        "cancer-logistic-496": lambda n: data.real(n, "breast_cancer", "logistic", 1e-3, degree=2),
        "digits-softmax-650": lambda n: data.digits(n, 300),
        "mnist-softmax-7850": lambda n: data.mnist(n, 250),
        "logistic-800": lambda n: data.synthetic(n, 800, 300, "logistic", 1.0),
        "logistic-100": lambda n: data.synthetic(n, 100, 300, "logistic", 1.0),
        "pseudo-huber-600": lambda n: data.synthetic(n, 600, 400, "pseudo-huber", 1.0),
        "pseudo-huber-100": lambda n: data.synthetic(n, 100, 300, "pseudo-huber", 1.5),
        "huber-60": lambda n: data.synthetic(n, 60, 200, "huber", 1.0),
        "poisson-40": lambda n: data.synthetic(n, 40, 200, "poisson", 1.0),
        "log-sum-exp-500": lambda n: data.log_sum_exp(n, 500, 1.0, 1e-3),
        "log-sum-exp-100": lambda n: data.log_sum_exp(n, 100, 0.5, 1e-2),
        "quartic-1000": lambda n: data.quartic(n, 1000),
        "quartic-200": lambda n: data.quartic(n, 200),
        "cauchy-80": lambda n: data.synthetic(n, 80, 250, "cauchy", 1.0),
        "factorisation-500": lambda n: nonconvex.factorisation(n, 100, 5),
        "factorisation-100": lambda n: nonconvex.factorisation(n, 20, 5),
        "factorisation-160": lambda n: nonconvex.factorisation(n, 40, 4),
        "phase-retrieval-60": lambda n: nonconvex.phase_retrieval(n, 60),
        "phase-retrieval-120": lambda n: nonconvex.phase_retrieval(n, 120),
        "digit-network-610": lambda n: nonconvex.digit_network(n, 200, 8),
        "curve-network-61": lambda n: nonconvex.curve_network(n, 80, 15),
    }
    if water.installed():
        makers["water-117"] = lambda n: water.calibration(n, "Net3", 7000)
        makers["water-1156"] = lambda n: water.calibration(n, "ky4", 4000)
    return {name: (lambda n=name, m=maker: m(n)) for name, maker in makers.items()}  # type: ignore[misc]


def _classics() -> dict[str, Maker]:
    sizes: dict[str, tuple[int, ...]] = {
        "rosenbrock": (2, 60),
        "chained-rosenbrock": (10, 40),
        "freudenstein-roth": (2,),
        "brown-badly-scaled": (2,),
        "beale": (2,),
        "jennrich-sampson": (2,),
        "helical-valley": (3,),
        "bard": (3,),
        "box": (3,),
        "powell-singular": (4, 80),
        "wood": (4, 100),
        "kowalik-osborne": (4,),
        "brown-dennis": (4,),
        "biggs": (6,),
        "penalty": (10, 50),
        "variably-dimensioned": (10, 50),
        "trigonometric": (10, 50),
        "discrete-boundary": (10, 40),
        "discrete-integral": (20,),
        "broyden-tridiagonal": (10, 150),
        "broyden-banded": (20, 120),
    }
    pairs = [(name, d) for name, all_sizes in sizes.items() for d in all_sizes]
    return {f"{name}-{d}": (lambda n=name, d=d: classic(n, d)) for name, d in pairs}  # type: ignore[misc]


def application(name: str, make: Callable[[], Application]) -> Problem:
    fun, x0 = make()
    return Problem(name, fun, x0, stored_minimum(name), "application")


NOISY: list[tuple[str, Law, float]] = [
    ("power-1-100-rotated", "gaussian", 1e-6),
    ("power-1-100-rotated", "uniform", 1e-4),
    ("power-1-100-rotated", "gaussian", 1e-2),
    ("power-2-1000-rotated", "uniform", 1e-4),
    ("power-2-1000-rotated", "gaussian", 1e-2),
    ("exponential-150-rotated", "uniform", 1e-3),
    ("logistic-100", "uniform", 1e-6),
    ("logistic-100", "gaussian", 1e-4),
    ("logistic-100", "uniform", 1e-2),
    ("log-sum-exp-100", "gaussian", 1e-3),
    ("factorisation-100", "gaussian", 1e-4),
    ("chained-rosenbrock-10", "gaussian", 1e-4),
    ("chained-rosenbrock-10", "uniform", 1e-2),
    ("broyden-tridiagonal-10", "gaussian", 1e-3),
]
SINGLE: list[tuple[str, Law]] = [
    ("power-2-1000-rotated", "rounded"),
    ("power-1-100-rotated", "single"),
    ("logistic-100", "rounded"),
    ("cancer-logistic-31", "single"),
    ("log-sum-exp-500", "single"),
    ("quartic-200", "rounded"),
    ("factorisation-100", "single"),
    ("broyden-tridiagonal-10", "rounded"),
]


def _catalogue() -> dict[str, Maker]:
    exact = {**_quadratics(), **_convex(), **_classics()}
    versions: list[tuple[str, Law, float]] = [*NOISY, *((name, law, 0.0) for name, law in SINGLE)]
    seen: dict[str, Maker] = {}
    for name, law, level in versions:
        suffix = f"{law}-{level:.0e}" if level else law
        seen[f"{name}/{suffix}"] = lambda m=exact[name], w=law, s=level: noisy(m(), w, s)  # type: ignore[misc]
    used = {n: (lambda n=n, m=m: application(n, m)) for n, m in {**FITS, **SIMULATIONS}.items()}
    return {**exact, **seen, **used}


PROBLEMS: dict[str, Maker] = _catalogue()


@cache
def problem(name: str) -> Problem:
    """The problem of that name."""
    if name not in PROBLEMS:
        if name.startswith("water"):
            raise ValueError(f"{name} needs EPANET: pip install {' '.join(water.NEEDED)} (owa-epanet on PyPI).")
        raise ValueError(f"problem(name) must be one of benchmarks.problems.PROBLEMS; got {name!r}.")
    return PROBLEMS[name]()


if __name__ == "__main__":
    for each in map(problem, PROBLEMS):
        row = f"{each.name:38s} {each.d:6d} {each.budget:6d} {each.fun(each.x0):12.5g} {each.minimum:22.15g}"
        print(row, ", ".join(each.families), flush=True)
    if not water.installed():
        print("water-*: left out, EPANET is not installed (pip install owa-epanet wntr)")
