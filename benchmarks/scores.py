"""From records of runs to medians, ratios, shares and slopes.

Conventions: a median over seeds, in which a miss counts as 2 x budget; a median above the budget is a miss.  A cell is
a (problem, target).  The best peer of a cell is the one with the least median there, whoever it is.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import TARGETS

OURS = "fewdim"
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """Evaluations to one target on one problem; a miss is 2 x budget."""

    problem: str
    d: int
    target: float
    budget: int
    ours: float
    peers: Mapping[str, float]

    @property
    def best(self) -> str | None:
        """The best peer, or None where none arrives."""
        name = min(self.peers, key=self.peers.__getitem__, default=None)
        return name if name is not None and self.peers[name] <= self.budget else None

    @property
    def peer(self) -> float:
        return self.peers[self.best] if self.best else 2.0 * self.budget

    @property
    def reached(self) -> bool:
        """Whether we arrive."""
        return self.ours <= self.budget

    @property
    def anybody(self) -> bool:
        return self.reached or self.best is not None

    @property
    def ratio(self) -> float:
        """Our evaluations by the best peer's: below 1 is better than every peer."""
        return self.ours / self.peer


def medians(records: Iterable[Record]) -> dict[tuple[str, str], list[float]]:
    """Median evaluations to each target, by (problem, solver)."""
    runs: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        runs[record["problem"], record["solver"]].append(record)
    return {
        key: [
            statistics.median(2 * r["budget"] if r["reached"][k] is None else r["reached"][k] for r in group)
            for k in range(len(TARGETS))
        ]
        for key, group in runs.items()
    }


def cells(records: Iterable[Record], solver: str = OURS) -> list[Cell]:
    """All cells of the problems on which both `solver` and some peer ran."""
    kept = list(records)
    table = medians(kept)
    facts = {record["problem"]: (record["d"], record["budget"]) for record in kept}
    found = []
    for (name, who), values in table.items():
        if who != solver:
            continue
        others = {peer: row for (problem, peer), row in table.items() if problem == name and peer not in (solver, OURS)}
        if not others:
            continue
        d, budget = facts[name]
        for k, target in enumerate(TARGETS):
            peers = {peer: row[k] for peer, row in others.items()}
            found.append(Cell(name, d, target, budget, values[k], peers))
    return sorted(found, key=lambda cell: (cell.d, cell.problem, -cell.target))


def mean_ratio(group: Iterable[Cell]) -> float:
    """Geometric mean of ratios; nan where there are none."""
    logs = [math.log(cell.ratio) for cell in group]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


@dataclass(frozen=True)
class Summary:
    """What a family comes to."""

    problems: int
    cells: int  # that somebody reaches
    ratio: float  # over cells that a peer reaches; our miss is 2 x budget
    censored: float  # over cells that anybody reaches; the peers' miss is 2 x budget too
    first: float  # the share of cells that anybody reaches in which no peer needs fewer
    beyond: int  # cells that no peer reaches
    alone: int  # of these, cells that we reach
    missed: int  # cells that a peer reaches and we do not


def summary(group: Iterable[Cell]) -> Summary:
    every = list(group)
    some = [cell for cell in every if cell.anybody]
    theirs = [cell for cell in some if cell.best]
    return Summary(
        problems=len({cell.problem for cell in every}),
        cells=len(some),
        ratio=mean_ratio(theirs),
        censored=mean_ratio(some),
        first=sum(cell.ratio <= 1 for cell in some) / len(some) if some else math.nan,
        beyond=len(every) - len(theirs),
        alone=sum(cell.reached for cell in some if not cell.best),
        missed=sum(not cell.reached for cell in theirs),
    )


def standings(records: Iterable[Record]) -> dict[str, float]:
    """Each solver's evaluations by those of the best of all, ours included: geometric means over what anybody reaches.

    Of the solvers that took part in every problem; a miss is 2 x budget.
    """
    kept = list(records)
    table, budgets = medians(kept), {record["problem"]: record["budget"] for record in kept}
    logs: dict[str, list[float]] = {}
    for solver in {solver for _, solver in table}:
        if all((name, solver) in table for name in budgets):
            logs[solver] = []
    for name, k in itertools.product(budgets, range(len(TARGETS))):
        best = min(table[name, solver][k] for solver in logs)
        if best <= budgets[name]:
            for solver, seen in logs.items():
                seen.append(math.log(table[name, solver][k] / best))
    means = {solver: math.exp(statistics.fmean(seen)) for solver, seen in logs.items() if seen}
    return dict(sorted(means.items(), key=lambda item: item[1]))


def losses(group: Iterable[Cell], factor: float = 2.0) -> list[Cell]:
    """The worst cell of every problem in which we need more than `factor` times the best peer, worst first."""
    worst: dict[str, Cell] = {}
    for cell in group:
        if (
            cell.best
            and cell.ratio > factor
            and cell.ratio > (worst[cell.problem].ratio if cell.problem in worst else 0)
        ):
            worst[cell.problem] = cell
    return sorted(worst.values(), key=lambda cell: -cell.ratio)


def slope(points: Mapping[int, float]) -> float:
    """Least-squares slope of log evaluations against log d; nan for fewer than two points."""
    if len(points) < 2:
        return math.nan
    logs = [(math.log(d), math.log(evaluations)) for d, evaluations in points.items()]
    return statistics.linear_regression([a for a, _ in logs], [b for _, b in logs]).slope


def profile(table: Mapping[tuple[str, str], list[float]], sizes: Mapping[str, tuple[int, int]], solver: str, k: int,
            alpha: float) -> float:  # fmt: skip
    """More and Wild's data profile: the share of problems solved to target k within alpha (d + 1) evaluations."""
    solved = 0
    for name, (d, budget) in sizes.items():
        row = table.get((name, solver))
        solved += row is not None and row[k] <= min(budget, alpha * (d + 1))
    return solved / len(sizes)
