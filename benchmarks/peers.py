"""The peers, one small adapter each: adapter(fun, x0, budget, seed) runs until it is stopped.

The same rules for all:
- Where a first step is asked for, it is 0.3 rms(x0), or 0.3 where x0 = 0 (`first_step`).
- Tolerances are switched off or set as low as they go, so that a peer runs until its budget is spent or it cannot go
  on; otherwise settings are the defaults of the package.
- A peer takes part up to the dimension `largest`: where its own time, not the function's, stays at some ten seconds in
  a run (dense models and covariances take d^2 numbers and more per step), and where it is not hopeless: Powell's method
  and SBPLX, line by line and subspace by subspace, and BFGS without limited memory end where L-BFGS-B is far ahead.
  One made for large scale takes part from the dimension `least` on.  A method of finite differences takes part where
  the budget holds two gradients, 2 (d + 1) <= budget.
- Finite differences of the default step see nothing in noise.  So in noise and in float32 L-BFGS-B takes part a second
  time, told the true level of the noise, which none of the others is (`told_noise`).
- In the applications, which came last, only those take part that are the best in ten cells or more elsewhere, and
  pycma, which many would try.
- A random peer runs with three seeds, a deterministic one with one, except in noise, where the values differ.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.baselines import random_gradient, random_pursuit, spsa
from benchmarks.harness import Solver
from benchmarks.problem import Problem, Vector

Fun = Callable[[Any], float]


@dataclass(frozen=True)
class Peer:
    """An adapter, the package that it needs, and where it takes part."""

    solve: Solver
    package: str
    largest: int = 100_000
    least: int = 1
    random: bool = True
    differences: bool = False
    exact: bool = True  # takes part where values are exact
    applied: bool = False  # takes part in applications

    @property
    def installed(self) -> bool:
        return self.package == "literature" or importlib.util.find_spec(self.package) is not None

    @property
    def version(self) -> str:
        return "1" if self.package == "literature" else importlib.metadata.version(self.package)

    def takes(self, problem: Problem) -> bool:
        """Whether it takes part in the problem, by the rules above."""
        enough = not self.differences or 2 * (problem.d + 1) <= problem.budget
        wanted = self.applied if problem.kind == "application" else self.exact or problem.law != "exact"
        return self.least <= problem.d <= self.largest and enough and wanted

    def seeds(self, problem: Problem, count: int) -> range:
        noisy = problem.law in ("gaussian", "uniform")
        return range(count if self.random or noisy else 1)


def first_step(x0: Vector) -> float:
    return 0.3 * (float(np.sqrt((x0 * x0).mean())) or 1.0)


def pycma(fun: Fun, x0: Vector, budget: int, seed: int) -> None:
    """Full covariance up to d = 150, diagonal beyond."""
    import cma

    off: dict[str, Any] = {"tolfun": 0, "tolfunhist": 0, "tolx": 0, "tolstagnation": 10**9, "tolflatfitness": 10**9}
    off |= {"tolfunrel": 0, "tolfacupx": 1e300, "tolupsigma": 1e300, "tolxstagnation": False}
    settings = {"verbose": -9, "seed": seed + 1, "maxfevals": budget, "CMA_diagonal": x0.size > 150, **off}
    strategy = cma.CMAEvolutionStrategy(x0, first_step(x0), settings)
    while not strategy.stop():
        points = strategy.ask()
        strategy.tell(points, [fun(x) for x in points])


def sep_cma(fun: Fun, x0: Vector, budget: int, seed: int) -> None:
    import cmaes

    strategy = cmaes.SepCMA(mean=x0, sigma=first_step(x0), seed=seed)
    while True:
        points = [strategy.ask() for _ in range(strategy.population_size)]
        strategy.tell([(x, fun(x)) for x in points])


def nevergrad(name: str) -> Solver:
    def solve(fun: Fun, x0: Vector, budget: int, seed: int) -> None:
        import nevergrad as ng

        parameters = ng.p.Array(init=x0).set_mutation(sigma=first_step(x0))
        parameters.random_state.seed(seed)
        ng.optimizers.registry[name](parametrization=parameters, budget=budget).minimize(fun)

    return solve


def pypop7(family: str, name: str) -> Solver:
    def solve(fun: Fun, x0: Vector, budget: int, seed: int) -> None:
        kind = getattr(importlib.import_module(f"pypop7.optimizers.{family}.{name.lower()}"), name)
        far = np.full(x0.size, 1e3 * max(1.0, float(abs(x0).max())))
        problem = {"fitness_function": fun, "ndim_problem": x0.size, "lower_boundary": -far, "upper_boundary": far}
        settings = {"max_function_evaluations": budget, "seed_rng": seed, "mean": x0, "sigma": first_step(x0)}
        kind(problem, {**settings, "verbose": False, "is_restart": False}).optimize()

    return solve


def nlopt(name: str) -> Solver:
    def solve(fun: Fun, x0: Vector, budget: int, seed: int) -> None:
        import nlopt as library

        optimizer = library.opt(getattr(library, name), x0.size)
        optimizer.set_min_objective(lambda x, _: fun(x))
        optimizer.set_initial_step(first_step(x0))
        optimizer.set_maxeval(budget + 1)
        with contextlib.suppress(library.RoundoffLimited):
            optimizer.optimize(x0)

    return solve


SCIPY: dict[str, dict[str, Any]] = {
    "L-BFGS-B": {"maxcor": 20, "ftol": 0, "gtol": 0, "maxfun": 10**9, "maxiter": 10**9},
    "BFGS": {"gtol": 0, "maxiter": 10**9},
    "Powell": {"xtol": 1e-8, "ftol": 0, "maxfev": 10**9, "maxiter": 10**9},
    "Nelder-Mead": {"xatol": 0, "fatol": 0, "maxfev": 10**9, "maxiter": 10**9, "adaptive": True},
    "COBYQA": {"maxfev": 10**9, "maxiter": 10**9, "final_tr_radius": 1e-12},
}


def scipy(name: str) -> Solver:
    def solve(fun: Fun, x0: Vector, budget: int, seed: int) -> None:
        from scipy.optimize import minimize

        settings = dict(SCIPY[name])
        if name == "COBYQA":
            settings["initial_tr_radius"] = first_step(x0)
        if name == "Nelder-Mead":
            settings["initial_simplex"] = np.vstack([x0, x0 + first_step(x0) * np.eye(x0.size)])
        minimize(fun, x0, method=name, options=settings)

    return solve


def told_noise(fun: Any, x0: Vector, budget: int, seed: int) -> None:
    """L-BFGS-B with differences of step 2 sqrt(noise / curvature), the curvature that of one random line."""
    from scipy.optimize import minimize

    f_0, step = fun(x0), first_step(x0)
    noise = fun.problem.level * fun.drop or 6e-8 * abs(f_0)
    u = step * np.random.default_rng(seed).choice([-1.0, 1.0], x0.size)
    curvature = abs(fun(x0 + u) - 2 * f_0 + fun(x0 - u)) / float(u @ u)
    settings = {**SCIPY["L-BFGS-B"], "eps": 2 * (noise / max(curvature, 1e-12)) ** 0.5}
    minimize(fun, x0, method="L-BFGS-B", options=settings)


def evotorch(name: str) -> Solver:
    def solve(fun: Fun, x0: Vector, budget: int, seed: int) -> None:
        import torch

        torch.set_num_threads(1)
        logging.disable(logging.INFO)
        from evotorch import Problem as Task
        from evotorch import algorithms

        task = Task("min", lambda x: fun(x.numpy()), solution_length=x0.size, initial_bounds=(-1, 1), seed=seed + 1,
                    dtype=torch.float64)  # fmt: skip
        settings: dict[str, Any] = {"stdev_init": first_step(x0), "center_init": torch.tensor(x0)}
        search = getattr(algorithms, name)(task, **settings)
        while True:
            search.step()

    return solve


PEERS: dict[str, Peer] = {
    "cma": Peer(pycma, "cma", largest=1000, applied=True),
    "cmaes SepCMA": Peer(sep_cma, "cmaes", least=1000),
    "nevergrad NGOpt": Peer(nevergrad("NGOpt"), "nevergrad", largest=50),
    "nevergrad TwoPointsDE": Peer(nevergrad("TwoPointsDE"), "nevergrad", largest=20),
    "pypop7 LMCMA": Peer(pypop7("es", "LMCMA"), "pypop7", least=100, applied=True),
    "pypop7 MMES": Peer(pypop7("es", "MMES"), "pypop7", least=100, largest=10_000, applied=True),
    "pypop7 R1ES": Peer(pypop7("es", "R1ES"), "pypop7", least=10_000, largest=10_000),
    "nlopt NEWUOA": Peer(nlopt("LN_NEWUOA"), "nlopt", largest=160, least=2, random=False, applied=True),
    "nlopt BOBYQA": Peer(nlopt("LN_BOBYQA"), "nlopt", largest=160, least=2, random=False, applied=True),
    "nlopt SBPLX": Peer(nlopt("LN_SBPLX"), "nlopt", largest=500, random=False, applied=True),
    "nlopt COBYLA": Peer(nlopt("LN_COBYLA"), "nlopt", largest=20, random=False, applied=True),
    "scipy L-BFGS-B": Peer(scipy("L-BFGS-B"), "scipy", random=False, differences=True, applied=True),
    "scipy L-BFGS-B told noise": Peer(told_noise, "scipy", differences=True, exact=False),
    "scipy BFGS": Peer(scipy("BFGS"), "scipy", largest=160, random=False, differences=True, applied=True),
    "scipy Powell": Peer(scipy("Powell"), "scipy", largest=160, random=False, applied=True),
    "scipy Nelder-Mead": Peer(scipy("Nelder-Mead"), "scipy", largest=20, random=False),
    "scipy COBYQA": Peer(scipy("COBYQA"), "scipy", largest=20, random=False, applied=True),
    "evotorch XNES": Peer(evotorch("XNES"), "evotorch", largest=50),
    "evotorch SNES": Peer(evotorch("SNES"), "evotorch", least=40, largest=100),
    "SPSA": Peer(spsa, "literature"),
    "random pursuit": Peer(random_pursuit, "literature"),
    "random gradient": Peer(random_gradient, "literature"),
}
