"""Write the page and the figure from the results: benchmarks/README.md and benchmarks/profiles.png.

python -m benchmarks.report [--results FOLDER] [--page FILE]
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import scores
from benchmarks.harness import TARGETS
from benchmarks.problem import FAMILIES
from benchmarks.problems import PROBLEMS, problem
from benchmarks.run import OURS, RESULTS, load
from benchmarks.scores import Cell, Record
from fewdim import Auto, Session

EXPLAINED = 5.0  # times the best peer: above this the page says why, or that nobody knows yet
FOURTH = (
    "far from the minimum f is the fourth power of one linear form, and almost any line through the start has a point "
    "where that form is zero and f small enough: a line search or two do. We spend values on a gradient, or a sketch "
    "of one, first, and then go by parabolas, which fall short of the minimum of a fourth power."
)
REASONS = {
    "helical-valley-3": "the minimum (1, 0, 0) lies on the first axis through the start (-1, 0, 0): the first line "
    "search of Powell's method ends at it. The slope along that axis is 0 at the start: no gradient points there.",
    "trigonometric-10": "the first looks along the axes, as long as x0 is large, lead to another local minimum, and so "
    "does the second descent from the start; there are many, and neither is the lowest.",
    "chained-rosenbrock-10/uniform-1e-02": "the target is as small as the noise. Our runs end at a gap of 1 to 1.5 "
    "times it: the random gradients that follow the model know nothing of the curved valley that they are in.",
    "trigonometric-50": "it has many local minima with values close to each other. Our runs end in one of them, or "
    "are still on their way into one when the budget is spent; none is at the lowest.",
    "variably-dimensioned-10": FOURTH,
    "variably-dimensioned-50": FOURTH,
    "scaling-80": "there are many local minima, and all of our runs end in others than the best known one.",
    "jennrich-sampson-2": "the minimum lies within one and a half widths of cma's first samples from the start: the "
    "second or third is good enough by chance, with each seed. We need five values for a first look.",
}

PAGE = """# Benchmark

This page is written by `python -m benchmarks.report` from the files in `benchmarks/results`. `make bench-full` runs
what is missing there and writes the page anew; `make bench` runs a part from scratch, in about ten minutes, into
`out/bench`. `python -m benchmarks.run --solvers fewdim` runs only ours, after a change.

Every evaluation is counted by the harness, and judged by the true value at the point asked for, probes included, for
every solver alike. Targets are relative gaps `(f - f*) / (f(x0) - f*)`. Numbers are medians over seeds (three; one for
deterministic peers on exact values); a miss counts as twice the budget. The budget is 60 d, but 150 d and at least
1,500 up to d = 20, at most 50,000 up to d = 5,000, 30,000 at 10,000 and 10,000 at 100,000. Ours is
`fewdim.minimize(fun, x0)` with nothing set. What the peers are given, and which takes part where, is in
`benchmarks/peers.py`; the problems are in `benchmarks/problems.py`, and minima without a formula come from
`benchmarks/minima.py`: by gradients, in the applications the lowest value known. What each part of the default is worth
is in `benchmarks/ablations.md`, what an oracle among ideal methods would still gain in `benchmarks/limits.md`.

{counts}

## In short

*ratio*: geometric mean, over the cells (problem, target) that some peer reaches, of our evaluations by those of the
best peer of the cell. *with own cells*: the same with the cells that only we reach, the peers at twice the budget.
*first*: share of the cells reached by anybody in which no peer needs fewer. *no peer*: cells that no peer reaches.
A problem may belong to several families. Some start where coordinates are equal and f treats them alike ({alike}):
there the default first moves them together, in a few dozen values, which no start at random would allow; the last line
leaves these problems out.

{by_family}
{by_target}
## Data profiles

Share of the exact problems solved to a target within alpha (d + 1) evaluations (More and Wild, 2009); the eight solvers
with the largest area.

![data profiles](profiles.png)

## Where we lose

Every problem with a target at which we need more than twice the best peer: the worst such target.

{lost}
{reasons}
## Applications

Likelihoods, inverse problems, controls, networks, molecules (`benchmarks/fits.py`, `simulations.py`). They came last:
one rule of the default, that the sketch looks at the rank anew, was made with a view to them. Evaluations by those of
the best solver of the cell, ours among them: geometric means over what anybody reaches; 1 is the best everywhere.

{applications}
## Evaluations against d

Eigenvalues i^-2, rotated, to a gap of 1e-2.

{slopes}
## Time of the solvers

Median of a solver's own processor time per evaluation, imports and compilation excluded.

{times}
## Remarks

{remarks}
## All cells

Ours / the best peer's evaluations, and which; bold where no peer needs fewer, - for a miss.

{tables}"""


def count(value: float, budget: int) -> str:
    return "-" if value > budget else f"{value:,.0f}"


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def rows(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def families(group: list[Cell]) -> dict[str, list[Cell]]:
    """Cells by family, and all exact ones together, but for the applications."""
    kinds = {name: problem(name) for name in {cell.problem for cell in group}}
    parts = {family: [c for c in group if family in kinds[c.problem].families] for family in FAMILIES}
    parts["all exact"] = [c for c in group if kinds[c.problem].law == "exact" and c not in parts["applications"]]
    parts["all exact, d <= 150"] = [c for c in parts["all exact"] if c.d <= 150]
    together = alike(group)
    parts["all exact, d <= 150, no start alike"] = [
        c for c in parts["all exact, d <= 150"] if c.problem not in together
    ]
    return parts


@cache
def moves_together(name: str) -> bool:
    """Whether the default first moves coordinates together there."""
    kind = problem(name)
    session: Session[Any] = Session(Auto(), kind.x0, rng=0)
    while session.state.engine == "fold" and session.nfev < 4:
        for point in session.ask():
            session.tell(point.id, float(kind.fun(np.asarray(point.x, dtype=float))))
    return bool(session.state.engine == "fold")


def alike(group: list[Cell]) -> list[str]:
    """The exact problems that start where coordinates are equal and alike."""
    names = sorted({cell.problem for cell in group})
    return [name for name in names if problem(name).law == "exact" and moves_together(name)]


def by_family(group: list[Cell]) -> str:
    header = ("family", "problems", "cells", "ratio", "with own cells", "first", "no peer", "of these ours", "we miss")
    body = []
    for family, part in families(group).items():
        s = scores.summary(part)
        share = "" if math.isnan(s.first) else f"{s.first:.0%}"
        figures = (number(s.ratio), number(s.censored), share)
        body.append((family, str(s.problems), str(s.cells), *figures, str(s.beyond), str(s.alone), str(s.missed)))
    return rows(header, body)


def by_target(group: list[Cell]) -> str:
    body = []
    for family, part in families(group).items():
        ratios = (scores.summary(c for c in part if c.target == target).ratio for target in TARGETS)
        body.append((family, *map(number, ratios)))
    return rows(("ratio by target", *(f"{t:.0e}" for t in TARGETS)), body)


def lost(group: list[Cell]) -> str:
    """Where we need more than twice the best peer."""
    body = [
        (c.problem, f"{c.target:.0e}", count(c.ours, c.budget), f"{c.peer:,.0f}", c.best or "", f"{c.ratio:.1f}")
        for c in scores.losses(group)
    ]
    return rows(("problem", "target", "ours", "best peer", "which", "ratio"), body) if body else "Nowhere.\n"


def reasons(group: list[Cell]) -> str:
    """Why, where we need more than `EXPLAINED` times the best peer."""
    cells = scores.losses(group, EXPLAINED)
    return "".join(f"- {c.problem}: {REASONS.get(c.problem, 'no explanation yet.')}\n" for c in cells)


def applications(records: list[Record]) -> str:
    """How the solvers stand in the applications, by dimension."""
    used, means = [r for r in records if problem(r["problem"]).kind == "application"], {}
    for label, low, high in (("d <= 20", 1, 20), ("21-150", 21, 150), ("d >= 200", 200, 10**9)):
        part = [r for r in used if low <= r["d"] <= high]
        means[f"{label}, {len({r['problem'] for r in part})} problems"] = scores.standings(part)
    solvers = sorted({who for found in means.values() for who in found}, key=lambda who: (who != OURS, who))
    body = [(who, *(number(found.get(who, math.nan)) for found in means.values())) for who in solvers]
    return rows(("solver", *means), body)


def slopes(records: list[Record]) -> str:
    table, sizes = scores.medians(records), (1000, 10_000, 100_000)
    k, body = TARGETS.index(1e-2), []
    for solver in sorted({who for _, who in table}, key=lambda who: (who != OURS, who)):
        found = {d: table.get((f"power-2-{d}-rotated", solver), [math.inf] * len(TARGETS))[k] for d in sizes}
        budgets = {d: problem(f"power-2-{d}-rotated").budget for d in sizes}
        if not math.isfinite(found[1000]) or found[1000] > budgets[1000]:
            continue
        reached = {d: n for d, n in found.items() if n <= budgets[d]}
        value = number(scores.slope(reached)) if len(reached) == len(sizes) else ""
        body.append((solver, *("" if math.isinf(found[d]) else count(found[d], budgets[d]) for d in sizes), value))
    return rows(("solver", *(f"d = {d:,}" for d in sizes), "slope"), body)


def times(records: list[Record]) -> str:
    """Median of a solver's own microseconds per evaluation, by dimension."""
    groups = {"d <= 20": (1, 20), "21-150": (21, 150), "500-2,000": (500, 2000), "10,000": (10**4, 10**4)}
    groups["100,000"] = (10**5, 10**5)
    body = []
    for solver in sorted({r["solver"] for r in records}, key=lambda who: (who != OURS, who)):
        line = [solver]
        for low, high in groups.values():
            part = [r for r in records if r["solver"] == solver and low <= r["d"] <= high and r["nfev"]]
            cost = [1e6 * r["solver_cpu_s"] / r["nfev"] for r in part if "solver_cpu_s" in r]
            line.append(f"{statistics.median(cost):,.0f}" if cost else "")
        body.append(line)
    return rows(("solver, microseconds", *groups), body)


def table(group: list[Cell]) -> str:
    """Ours / the best peer's evaluations for each target; bold where no peer needs fewer."""
    lines: dict[str, list[str]] = {}
    for cell in group:
        text = "-"
        if cell.anybody:
            mine = count(cell.ours, cell.budget)
            theirs = f"{cell.peer:,.0f} {cell.best}" if cell.best else "-"
            text = f"**{mine}** / {theirs}" if cell.ratio <= 1 else f"{mine} / {theirs}"
        lines.setdefault(cell.problem, [cell.problem]).append(text)
    return rows(("problem", *(f"{t:.0e}" for t in TARGETS)), lines.values())


def remarks(records: list[Record]) -> str:
    """Runs that did not end by budget, target or themselves, and what was not run."""
    slow = sorted({f"{r['solver']} on {r['problem']}" for r in records if r["status"] == "time"})
    broken: dict[tuple[str, str], int] = {}
    for r in records:
        if r["status"] not in ("budget", "solved", "stopped", "time"):
            key = (r["solver"], r["status"])
            broken[key] = broken.get(key, 0) + 1
    lines = [f"- Ended by the limit on the solver's own processor time (60 s a run): {', '.join(slow) or 'none'}."]
    lines += [f"- {who}: {n} run(s) ended by `{what}`." for (who, what), n in sorted(broken.items())]
    for who, ran in (
        ("us", [r for r in records if r["solver"] == OURS]),
        ("peers", [r for r in records if r["solver"] != OURS]),
    ):
        absent = sorted(set(PROBLEMS) - {r["problem"] for r in ran})
        if absent:
            lines.append(f"- Not run by {who}, so not counted: {', '.join(absent)}.")
    return "\n".join(lines) + "\n"


def page(records: list[Record]) -> str:
    group = scores.cells(records)
    named, who = {r["problem"] for r in records}, {r["solver"] for r in records}
    versions = sorted({f"{r['solver'].split()[0]} {r['version']}" for r in records if r["version"] != "1"})
    parts = families(group)
    return PAGE.format(
        counts=f"{len(named)} problems, {len(who) - 1} peers, {len(records):,} runs: {', '.join(versions)}.",
        alike=", ".join(alike(group)) or "none",
        by_family=by_family(group),
        by_target=by_target(group),
        lost=lost(group),
        reasons=reasons(group),
        applications=applications(records),
        slopes=slopes(records),
        times=times(records),
        remarks=remarks(records),
        tables="\n".join(f"### {name}\n\n{table(parts[name])}" for name in FAMILIES if parts[name]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the page and the figure of the benchmark.")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("README.md"))
    given = parser.parse_args()
    records: list[Any] = list(load(sorted(given.results.glob("*.jsonl"))).values())
    given.page.write_text(page(records))
    from benchmarks.profiles import draw

    draw(records, given.page.with_name("profiles.png"))
    print(by_family(scores.cells(records)))


if __name__ == "__main__":
    main()
