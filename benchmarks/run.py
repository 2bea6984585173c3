"""Run solvers on problems and keep what comes out, one line of JSON per run; what is there already is not run again.

    python -m benchmarks.run                       # peers and fewdim, everything, three seeds
    python -m benchmarks.run --set quick           # the part that `make bench` takes
    python -m benchmarks.run --solvers fewdim      # only ours, after a change: the peers' results stay
    python -m benchmarks.run --solvers peers --workers 1

A result is kept under (problem, solver, seed) and counts as there if the version of the solver, the problem and the
budget are the same.  The version of a peer is that of its package; ours is a digest of the code that decides where to
evaluate, so that comments and docstrings do not ask for a new run.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import itertools
import json
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import fewdim
from benchmarks.harness import Solver, run
from benchmarks.peers import PEERS, Peer
from benchmarks.problems import PROBLEMS, problem

RESULTS = Path(__file__).with_name("results")
OURS = "fewdim"
SEEDS = 3
Key = tuple[str, str, int]
Record = dict[str, Any]

# about ten minutes on two cores: every family, the strongest peers by kind, budgets as in the full run, one seed
QUICK_PROBLEMS = (
    "power-0.5-500-rotated",
    "power-2-1000-rotated",
    "power-2-10000-rotated",
    "flat-tail-1000-rotated",
    "exponential-500-aligned",
    "power-1-100-rotated",
    "exponential-40-aligned",
    "diabetes-linear-66",
    "cancer-logistic-31",
    "cancer-logistic-496",
    "logistic-800",
    "log-sum-exp-500",
    "log-sum-exp-100",
    "quartic-200",
    "huber-60",
    "factorisation-100",
    "phase-retrieval-60",
    "curve-network-61",
    "rosenbrock-2",
    "beale-2",
    "helical-valley-3",
    "wood-4",
    "chained-rosenbrock-10",
    "trigonometric-10",
    "broyden-tridiagonal-10",
    "powell-singular-80",
    "trigonometric-50",
    "broyden-tridiagonal-150",
    "power-1-100-rotated/uniform-1e-04",
    "logistic-100/uniform-1e-02",
    "chained-rosenbrock-10/gaussian-1e-04",
    "logistic-100/rounded",
    "power-1-100-rotated/single",
)
QUICK_SOLVERS = (
    "fewdim",
    "cma",
    "cmaes SepCMA",
    "nevergrad NGOpt",
    "pypop7 LMCMA",
    "nlopt NEWUOA",
    "nlopt BOBYQA",
    "scipy L-BFGS-B",
    "evotorch SNES",
    "SPSA",
    "random pursuit",
)


def ours(fun: Any, x0: Any, budget: int, seed: int) -> None:
    """What a user who sets nothing gets."""
    fewdim.minimize(fun, x0, maxfev=budget, rng=seed)


def _undocumented(path: Path) -> str:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            node.body = node.body[1:]
    return ast.dump(tree)


def our_version() -> str:
    """A digest of the methods and of what they stand on."""
    root = Path(fewdim.__file__).parent
    names = ["core", "directions", "kernels", "lines", "noise", "scales", "gradients", "box"]
    names += ["session", "loop", "minimize", "evaluate"]
    files = [*sorted((root / "methods").glob("*.py")), *(root / f"{name}.py" for name in names)]
    return hashlib.sha256("\n".join(map(_undocumented, files)).encode()).hexdigest()[:12]


SOLVERS: dict[str, Peer] = {OURS: Peer(ours, OURS, applied=True), **PEERS}


def version(solver: str) -> str:
    return our_version() if solver == OURS else SOLVERS[solver].version


def store(solver: str, folder: Path = RESULTS) -> Path:
    return folder / ("fewdim.jsonl" if solver == OURS else "peers.jsonl")


def load(paths: Iterable[Path]) -> dict[Key, Record]:
    """All records; of two under the same key the later counts."""
    records: dict[Key, Record] = {}
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else ():
            record = json.loads(line)
            records[record["problem"], record["solver"], record["seed"]] = record
    return records


def tasks(problems: Iterable[str], solvers: Iterable[str], seeds: int, done: dict[Key, Record]) -> Iterator[Key]:
    """What is still to be run, the first seeds of all problems before the others."""
    versions = {name: version(name) for name in solvers if SOLVERS[name].installed}
    names = sorted(problems, key=lambda name: problem(name).d)
    for seed in range(seeds):
        for name, (solver, now) in itertools.product(names, versions.items()):
            peer, p = SOLVERS[solver], problem(name)
            if not peer.takes(p) or seed not in peer.seeds(p, seeds):
                continue
            old = done.get((name, solver, seed))
            if old is None or (old["version"], old["budget"], old["digest"]) != (now, p.budget, p.digest):
                yield name, solver, seed


@cache
def warm(solver: str) -> None:
    """Import and compile what the solver needs, once per process: that is no part of its time."""
    run(problem("power-1-100-rotated"), SOLVERS[solver].solve, 0, budget=250)


def perform(task: Key, label: str) -> Record:
    name, solver, seed = task
    warm(solver)
    solve: Solver = SOLVERS[solver].solve
    return {"solver": solver, "version": label, **run(problem(name), solve, seed)}


def append(record: Record, folder: Path = RESULTS) -> None:
    path = store(record["solver"], folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def compact(path: Path) -> None:
    """One line per key, in order."""
    records = load([path])
    text = "".join(json.dumps(records[key], separators=(",", ":")) + "\n" for key in sorted(records))
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


def chosen(solvers: str) -> list[str]:
    if solvers in ("all", "peers"):
        return [name for name in SOLVERS if solvers == "all" or name != OURS]
    names = [name.strip() for name in solvers.split(",")]
    unknown = [name for name in names if name not in SOLVERS]
    if unknown:
        raise SystemExit(f"--solvers must be all, peers or some of {', '.join(SOLVERS)}; got {', '.join(unknown)}.")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the benchmark; results are kept and not run again.")
    parser.add_argument("--set", choices=("full", "quick"), default="full")
    parser.add_argument("--solvers", default=None, help="all, peers, or names with commas between them")
    parser.add_argument("--problems", default="", help="only those whose name holds this")
    parser.add_argument("--seeds", type=int, default=None)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of results")
    given = parser.parse_args()
    quick = given.set == "quick"
    solvers = chosen(given.solvers) if given.solvers else list(QUICK_SOLVERS if quick else SOLVERS)
    for name in solvers:
        if not SOLVERS[name].installed:
            print(f"{name}: left out, {SOLVERS[name].package} is not installed (pip install 'fewdim[bench]')")
    names = [name for name in (QUICK_PROBLEMS if quick else PROBLEMS) if given.problems in name]
    files = {store(name, given.results) for name in solvers}
    todo = list(tasks(names, solvers, given.seeds or (1 if quick else SEEDS), load(files)))
    labels = {solver: version(solver) for _, solver, _ in todo}
    os.environ["OMP_NUM_THREADS"] = "1"  # before the workers load numpy
    began = time.perf_counter()
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(perform, task, labels[task[1]]) for task in todo]
        for count, future in enumerate(as_completed(futures), 1):
            record = future.result()
            append(record, given.results)
            took = record["solver_cpu_s"] + record["function_cpu_s"]
            head = f"{count}/{len(todo)} {time.perf_counter() - began:6.0f} s  {record['problem']}  {record['solver']}"
            print(f"{head}  {record['seed']}: gap {record['gap']}, {record['status']}, {took:.1f} s", flush=True)
    for path in files:
        if path.exists():
            compact(path)


if __name__ == "__main__":
    main()
