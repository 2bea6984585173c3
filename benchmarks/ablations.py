"""What each part of the default is worth: the default with one thing changed, on eighteen problems, or nine noisy ones.

Prints, for every variant, the geometric mean over problems and seeds of its evaluations by those of the default, at
each target (a miss is 2 x budget; where both miss, nothing), and the worst problem; writes the table to ablations.md.

    python -m benchmarks.ablations [--seeds 3] [--workers 2] [variant ...]

A variant is a method, and values for names of a module of the methods.  All are listed in `VARIANTS`.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import statistics
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import fewdim
from benchmarks.harness import TARGETS, run
from benchmarks.problems import problem
from fewdim.methods import quasi_newton
from fewdim.methods.newton_steps import explaining

PROBLEMS = (
    "power-1-100-rotated",
    "power-2-1000-rotated",
    "power-3-500-rotated",
    "power-0.5-500-rotated",
    "flat-tail-1000-rotated",
    "exponential-500-aligned",
    "logistic-800",
    "cancer-logistic-31",
    "log-sum-exp-100",
    "quartic-200",
    "factorisation-100",
    "phase-retrieval-60",
    "curve-network-61",
    "chained-rosenbrock-10",
    "broyden-banded-120",
    "broyden-tridiagonal-150",
    "embedding-200",
    "gaussian-process-8",
)
IN_NOISE = (  # for the part "noise"
    "power-1-100-rotated/gaussian-1e-06",
    "power-2-1000-rotated/uniform-1e-04",
    "chained-rosenbrock-10/gaussian-1e-04",
    "logistic-100/gaussian-1e-04",
    "power-2-1000-rotated/rounded",
    "cancer-logistic-31/single",
    "log-sum-exp-500/single",
    "quartic-200/rounded",
    "factorisation-100/single",
)
STEPS = "fewdim.methods.conjugate_steps"
SKETCH = "fewdim.methods.conjugate_sketch"
NEWTON = "fewdim.methods.quasi_newton"
GRADIENTS = "fewdim.gradients"
AUTO = "fewdim.methods.auto"
STORY = "fewdim.methods.story"
OPENING = "fewdim.methods.opening"
LOOKS = "fewdim.methods.looks"
FOLDED = "fewdim.methods.folded"


@dataclass(frozen=True)
class Variant:
    """The default with this changed."""

    part: str
    method: Any = "auto"
    names: dict[str, Any] = field(default_factory=dict)  # "module:name" -> value

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems on which it is compared with the default."""
        return {"noise": IN_NOISE, "-": PROBLEMS + IN_NOISE}.get(self.part, PROBLEMS)


class Early(fewdim.Auto):
    """Does not wait until a sketch takes as many values as a gradient."""

    def _chosen(self, s: Any, sketch: Any) -> Any:
        if s.nfev >= 4 * s.x.size:
            return self._switched(s, "as dear")
        return (yield from super()._chosen(s, sketch))


def _no_pass(s: Any) -> Any:
    """Instead of a second pass: nothing is asked for, nothing is changed."""
    yield from ()
    return s, [0.0] * len(s.memory)


def _no_diagonal(s: Any, diagonal: Any, g: Any) -> Any:
    """The multiple of the identity that the diagonal averages to."""
    return (np.full_like(diagonal, diagonal.mean()),)


def _diagonal(s: Any, diagonal: Any, g: Any) -> Any:
    """The diagonal, whatever it explains."""
    return (diagonal,)


def _one_length(s: Any) -> float:
    """Of forward differences, whatever is known about how fast the diagonal changes."""
    return quasi_newton.FORWARD


def _deaf(model: Any, key: Any) -> Any:
    """The model in the noise that it heard first."""
    yield from ()
    return model


def _no_plane(s: Any, diagonal: Any, g: Any) -> Any:
    """The one of both that explains the latest changes better, in many dimensions as in few."""
    return (explaining(s.steps, s.changes, diagonal),)


VARIANTS: dict[str, Variant] = {
    "default": Variant("-"),
    "memory 8": Variant("memory", fewdim.Auto(memory=8)),
    "memory 16": Variant("memory", fewdim.Auto(memory=16)),
    "memory 64": Variant("memory", fewdim.Auto(memory=64)),
    "least 4": Variant("m", fewdim.Auto(least=4)),
    "least 16": Variant("m", fewdim.Auto(least=16)),
    "least 32": Variant("m", fewdim.Auto(least=32)),
    "2 directions a member": Variant("m", names={f"{STEPS}:EACH": 2}),
    "5 directions a member": Variant("m", names={f"{STEPS}:EACH": 5}),
    "no wider where curvature is even": Variant("m", names={f"{STEPS}:BALANCE": 0.0}),
    "half as wide there": Variant("m", names={f"{STEPS}:BALANCE": 1.0}),
    "twice as wide there": Variant("m", names={f"{STEPS}:BALANCE": 4.0}),
    "no guard": Variant("guard", names={f"{SKETCH}:GUARD": -math.inf}),
    "guard 0.95": Variant("guard", names={f"{SKETCH}:GUARD": 0.95}),
    "no second pass": Variant("second pass", names={f"{SKETCH}:second_pass": _no_pass}),
    "a second pass each step": Variant("second pass", names={f"{SKETCH}:LARGE_ERROR": 0.0}),
    "a wrong memory is kept": Variant("second pass", names={f"{STEPS}:WRONG": math.inf}),
    "quasi-Newton after 4d values": Variant("trial", Early()),
    "never seen to be near a minimum": Variant("trial", names={f"{STORY}:SHRINKING": 0.0}),
    "no look at the rank": Variant("trial", names={f"{STORY}:SURE": math.inf, f"{STORY}:EVEN": math.inf}),
    "no regard to how slow a sketch is": Variant("trial", names={f"{STORY}:PART": math.inf, f"{STORY}:SHRINKING": 0.0}),
    "gradients after 2d values": Variant("trial", names={f"{AUTO}:SOME": 0}),
    "no regard to steps not as foreseen": Variant("trial", names={f"{STORY}:MANY": math.inf}),
    "regard to them whatever the rank": Variant("trial", names={f"{STORY}:MANY": 0.0}),
    "the rank looked at once": Variant("trial", names={f"{STEPS}:ANEW": math.inf}),
    "full gradients from a rank of d": Variant("trial", names={f"{STORY}:SURE": 1.0}),
    "no opening": Variant("opening", names={f"{AUTO}:SMALL": 0, f"{AUTO}:MODEL": 0}),
    "opening of 4d values": Variant("opening", names={f"{AUTO}:OPENING": 4}),
    "opening up to d = 100": Variant("opening", names={f"{AUTO}:SMALL": 100}),
    "model up to d = 100 only": Variant("opening", names={f"{AUTO}:MODEL": 100}),
    "no longer where curvature is negative": Variant("opening", names={f"{OPENING}:NEAR": math.inf}),
    "half as long there": Variant("opening", names={f"{OPENING}:LONG": 6}),
    "looks as long where f explodes": Variant("opening", names={f"{LOOKS}:STEEP": math.inf}),
    "no values on the way back": Variant("opening", names={f"{OPENING}:CHEAP": math.inf}),
    "no folding": Variant("folding", names={f"{FOLDED}:LEAST": math.inf}),
    "folding from d = 9": Variant("folding", names={f"{FOLDED}:LEAST": 9}),
    "measured though it is even": Variant("diagonal", names={f"{GRADIENTS}:ALIKE": 0.0}),
    "taken for even up to a spread of a half": Variant("diagonal", names={f"{GRADIENTS}:ALIKE": 0.5}),
    "no diagonal": Variant("diagonal", names={f"{NEWTON}:_bases": _no_diagonal}),
    "diagonal always": Variant("diagonal", names={f"{NEWTON}:_bases": _diagonal}),
    "no plane": Variant("plane", names={f"{NEWTON}:_bases": _no_plane}),
    "no plane, short line searches": Variant("plane", names={f"{NEWTON}:CHEAP": math.inf}),
    "quasi-Newton only": Variant("engine", fewdim.QuasiNewton()),
    "sketch only": Variant("engine", fewdim.ConjugateSketch()),
    "no full gradients below the noise": Variant("noise", names={f"{STORY}:QUIET": 0.0}),
    "no wait for them": Variant("noise", names={f"{STORY}:LATE": 0.0}),
    "one turn of them": Variant("noise", names={f"{STORY}:FALLEN": 0.0}),
    "never as if values were exact": Variant("noise", names={f"{STORY}:FAINT": 0.0}),
    "model whatever the rank": Variant("noise", names={f"{AUTO}:LOW": 0.0}),
    "no model": Variant("noise", names={f"{AUTO}:SMALL": 0, f"{AUTO}:MODEL": 0}),
    "noise heard once under the model": Variant("noise", names={f"{AUTO}:heard_again": _deaf}),
    "negative curvature of any size": Variant("noise", names={f"{OPENING}:DOWN": 0.0}),
    "forward differences of one length": Variant("noise", names={f"{NEWTON}:_spread": _one_length}),
    "sketch only, signs": Variant("direction law", fewdim.ConjugateSketch(directions="signs")),
    "sketch only, gaussian": Variant("direction law", fewdim.ConjugateSketch(directions="gaussian")),
    "sketch only, sphere": Variant("direction law", fewdim.ConjugateSketch(directions="sphere")),
}


@contextmanager
def applied(variant: Variant) -> Iterator[None]:
    """The names of the variant in place, for a while."""
    places = [(importlib.import_module(where.partition(":")[0]), where.partition(":")[2]) for where in variant.names]
    kept = [getattr(module, name) for module, name in places]  # a name that is not there is an error
    try:
        for (module, name), value in zip(places, variant.names.values(), strict=True):
            setattr(module, name, value)
        yield
    finally:
        for (module, name), value in zip(places, kept, strict=True):
            setattr(module, name, value)


def measure(task: tuple[str, str, int]) -> tuple[str, str, int, list[float]]:
    """Evaluations to each target of one run, 2 x budget for a miss."""
    label, name, seed = task
    variant, p = VARIANTS[label], problem(name)

    def solve(fun: Any, x0: Any, budget: int, seed: int) -> None:
        fewdim.minimize(fun, x0, method=variant.method, maxfev=budget, rng=seed)

    with applied(variant):
        record = run(p, solve, seed)
    if record["status"] not in ("budget", "solved", "stopped", "time"):
        raise RuntimeError(f"{label} on {name}: {record['status']}")
    return label, name, seed, [2.0 * p.budget if n is None else float(n) for n in record["reached"]]


Found = dict[tuple[str, str, int], list[float]]


def line(label: str, found: Found) -> list[str]:
    """A row of the table."""
    logs: dict[str, list[float]] = {}
    by_target: list[list[float]] = [[] for _ in TARGETS]
    for (who, name, seed), values in found.items():
        if who != label:
            continue
        miss = 2.0 * problem(name).budget
        for k, (mine, usual) in enumerate(zip(values, found["default", name, seed], strict=True)):
            if min(mine, usual) < miss:
                by_target[k].append(math.log(mine / usual))
                logs.setdefault(name, []).append(math.log(mine / usual))
    means = [f"{math.exp(statistics.fmean(part)):.2f}" if part else "" for part in by_target]
    worst = max(logs, key=lambda name: statistics.fmean(logs[name]))
    every = math.exp(statistics.fmean(value for part in logs.values() for value in part))
    tail = f"{worst}: {math.exp(statistics.fmean(logs[worst])):.2f}"
    return [VARIANTS[label].part, label, *means, f"{every:.2f}", tail]


def main() -> None:
    parser = argparse.ArgumentParser(description="What each part of the default is worth.")
    parser.add_argument("variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("ablations.md"))
    given = parser.parse_args()
    unknown = [name for name in given.variants if name not in VARIANTS]
    if unknown:
        parser.error(f"variants must be some of {', '.join(VARIANTS)}; got {', '.join(unknown)}.")
    labels = list(dict.fromkeys(["default", *given.variants]))
    tasks = [
        (label, name, seed) for label in labels for name in VARIANTS[label].problems for seed in range(given.seeds)
    ]
    os.environ["OMP_NUM_THREADS"] = "1"  # before the workers load numpy
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        found = {(label, name, seed): values for label, name, seed, values in pool.map(measure, tasks)}
    header = ["part", "variant", *(f"{t:.0e}" for t in TARGETS), "all", "worst problem"]
    body = [header, ["---"] * len(header), *(line(label, found) for label in labels)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in body)
    text = (__doc__ or "").split("\n\n")[0]
    numbers = f"{len(PROBLEMS)} problems, {len(IN_NOISE)} for the part noise, {given.seeds} seed(s)"
    note = f"{numbers}; evaluations by the default's, geometric means."
    given.page.write_text(f"# Ablations\n\n{text}\n{note}\nWritten by `benchmarks/ablations.py`.\n\n{table}\n")
    print(table)


if __name__ == "__main__":
    main()
