"""Calibrate the pipes of a water network with EPANET: one roughness a pipe, from heads that were measured at the nodes.

Each pipe's roughness coefficient is scaled by exp(x); the objective is the mean squared error of the heads under two
demands, in square metres (or feet, as the network has it), against heads computed with roughnesses unknown to the
methods.  EPANET has no gradient.  L-BFGS-B by forward differences and CMA-ES (of the cma package, diagonal at this
size) run on the same function until it is down to a share of its first value.

    python examples/water_network.py                  ky4, 1,156 pipes
    python examples/water_network.py --network Net6   3,829 pipes
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import cma
import numpy as np
import scipy.optimize
from epanet import toolkit as en
from matplotlib.figure import Figure
from numpy.typing import NDArray

import fewdim

Array = NDArray[np.float64]
TARGETS = (0.1, 0.03, 0.01)  # shares of f(x0)
DEMANDS = (1.0, 1.5)


class Network:
    """A network of the wntr package, opened in EPANET: heads at its junctions as a function of its roughnesses."""

    def __init__(self, name: str, scratch: str, seed: int) -> None:
        wntr = find_spec("wntr")
        if wntr is None or wntr.submodule_search_locations is None:
            raise SystemExit("the networks come with wntr: pip install 'fewdim[epanet]'")
        inp = Path(wntr.submodule_search_locations[0]) / "library" / "networks" / f"{name}.inp"
        self.project = en.createproject()
        en.open(self.project, str(inp), f"{scratch}/report", f"{scratch}/binary")
        en.setoption(self.project, en.ACCURACY, 1e-5)  # repeatable to many digits, so that differences mean something
        en.setoption(self.project, en.TRIALS, 200)
        en.settimeparam(self.project, en.DURATION, 0)
        links = range(1, en.getcount(self.project, en.LINKCOUNT) + 1)
        nodes = range(1, en.getcount(self.project, en.NODECOUNT) + 1)
        self.pipes = [i for i in links if en.getlinktype(self.project, i) in (en.PIPE, en.CVPIPE)]
        self.junctions = [i for i in nodes if en.getnodetype(self.project, i) == en.JUNCTION]
        self.roughness = np.array([en.getlinkvalue(self.project, i, en.ROUGHNESS) for i in self.pipes])
        en.openH(self.project)
        self.d = len(self.pipes)
        self.measured = self.heads(0.3 * np.random.default_rng(seed).standard_normal(self.d))

    def heads(self, x: Array) -> Array:
        for pipe, roughness in zip(self.pipes, (self.roughness * np.exp(x)).tolist(), strict=True):
            en.setlinkvalue(self.project, pipe, en.ROUGHNESS, roughness)
        found = []
        for demand in DEMANDS:
            en.setoption(self.project, en.DEMANDMULT, demand)
            en.initH(self.project, en.INITFLOW)
            en.runH(self.project)
            found.append([en.getnodevalue(self.project, node, en.HEAD) for node in self.junctions])
        return np.array(found)

    def error(self, x: Array) -> float:
        return float(((self.heads(x) - self.measured) ** 2).mean())


class Reached(Exception):  # noqa: N818
    """The last target is reached, or the budget is spent."""


class Counted:
    """A function that notes its best value after each evaluation and stops whoever calls it in time."""

    def __init__(self, fun: Callable[[Array], float], target: float, maxfev: int, seed: int) -> None:
        self.fun, self.target, self.maxfev, self.seed, self.best = fun, target, maxfev, seed, [np.inf]

    def __call__(self, x: Array) -> float:
        if self.best[-1] <= self.target or len(self.best) > self.maxfev:
            raise Reached
        value = self.fun(x)
        self.best.append(min(self.best[-1], value))
        return value

    def evaluations(self, target: float) -> float:
        """The first evaluation at or below a target, inf if there is none."""
        below = np.flatnonzero(np.array(self.best) <= target)
        return float(below[0]) if below.size else np.inf


def run_fewdim(fun: Counted, d: int) -> None:
    fewdim.minimize(fun, np.zeros(d), maxfev=fun.maxfev, f_target=fun.target, rng=fun.seed, on_failure="raise")


def run_lbfgs(fun: Counted, d: int) -> None:
    options = {"maxfun": 10**9, "maxiter": 10**6, "eps": 1e-5, "ftol": 0, "gtol": 0}
    scipy.optimize.minimize(fun, np.zeros(d), method="L-BFGS-B", options=options)


def run_cma(fun: Counted, d: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"CMA_diagonal": True, "verbose": -9, "seed": fun.seed + 1, "maxfevals": fun.maxfev}
        cma.fmin2(fun, np.zeros(d), 0.1, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--network", choices=("ky4", "Net6"), default="ky4")
    parser.add_argument("--maxfev", type=int, default=None, help="of each method; default 13 d (ky4) or 1.25 d (Net6)")
    parser.add_argument("--seed", type=int, default=0, help="of the unknown roughnesses and of the methods")
    parser.add_argument("--out", type=Path, default=Path("out"))
    arguments = parser.parse_args()
    solvers = {"fewdim": run_fewdim, "L-BFGS-B, forward differences": run_lbfgs, "CMA-ES, diagonal": run_cma}
    with tempfile.TemporaryDirectory() as scratch:
        network = Network(arguments.network, scratch, arguments.seed)
        first = network.error(np.zeros(network.d))
        maxfev = arguments.maxfev or int({"ky4": 13, "Net6": 1.25}[arguments.network] * network.d)
        print(f"{arguments.network}: {network.d:,} pipes, {len(network.junctions):,} junctions; f(x0) = {first:.4g}")
        print(f"{'evaluations to a share of f(x0)':34}" + "".join(f"{t:>10g}" for t in TARGETS) + "   seconds")
        runs = {}
        for name, solve in solvers.items():
            runs[name] = counted = Counted(network.error, TARGETS[-1] * first, maxfev, arguments.seed)
            began = time.perf_counter()
            with contextlib.suppress(Reached, fewdim.EvaluationError):
                solve(counted, network.d)
            reached = [counted.evaluations(t * first) for t in TARGETS]
            counts = "".join(f"{n:>10,.0f}" if np.isfinite(n) else f"{f'> {maxfev:,}':>10}" for n in reached)
            print(f"{name:34}{counts}{time.perf_counter() - began:10.1f}", flush=True)
    ours, theirs = runs["fewdim"], [runs[name] for name in solvers if name != "fewdim"]
    for target in TARGETS:
        us, them = ours.evaluations(target * first), min(run.evaluations(target * first) for run in theirs)
        if np.isfinite(us):
            share = f"{us / them:.2f}" if np.isfinite(them) else f"less than {us / maxfev:.2f}"
            print(f"to {target:g} of f(x0) fewdim needs {share} of the evaluations of the best of the others")
    print(f"Figure: {figure(arguments.network, network.d, runs, first, arguments.out)}")


def figure(name: str, d: int, runs: dict[str, Counted], first: float, folder: Path) -> Path:
    axes = (picture := Figure(figsize=(6, 4), layout="constrained")).subplots()
    for label, run in runs.items():
        axes.plot(np.arange(1, len(run.best)), np.array(run.best[1:]) / first, label=label)
    axes.set(xscale="log", yscale="log", xlabel="evaluations", ylabel="mean squared error / its first value")
    axes.set_title(f"{name}: calibration of {d:,} pipes with EPANET", fontsize=11)
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    path: Path = folder / f"water_{name}.png"
    picture.savefig(path, dpi=80)
    return path


if __name__ == "__main__":
    main()
