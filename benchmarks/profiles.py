"""The figure of data profiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import scores
from benchmarks.harness import TARGETS
from benchmarks.problems import problem
from benchmarks.scores import OURS, Record

PANELS = {"d <= 20": (1, 20), "20 < d <= 150": (21, 150), "d >= 500": (500, 10**9)}
LEVELS = (1e-1, 1e-3, 1e-5)
SHOWN = 8  # solvers in a panel: the best by area


def draw(records: list[Record], path: Path) -> None:
    """One panel per size and level; in each the solvers with the largest area under their profiles, ours in black."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    table = scores.medians(records)
    solvers = sorted({who for _, who in table})
    styles = {who: {"color": f"C{k % 10}", "ls": ("-", "--", ":")[k // 10], "lw": 1.2} for k, who in enumerate(solvers)}
    styles[OURS] = {"color": "black", "ls": "-", "lw": 2.2}
    named = {cell.problem for cell in scores.cells(records)}
    names = {name for name in named if problem(name).law == "exact" and problem(name).kind != "application"}
    alphas = np.geomspace(0.05, 150, 120)
    figure, axes = plt.subplots(len(PANELS), len(LEVELS), figsize=(13, 10), sharey=True, layout="constrained")
    for line, (title, (low, high)) in zip(axes, PANELS.items(), strict=True):
        sizes = {name: (problem(name).d, problem(name).budget) for name in names if low <= problem(name).d <= high}
        for axis, level in zip(line, LEVELS, strict=True):
            k = TARGETS.index(level)
            curves = (
                {who: [scores.profile(table, sizes, who, k, a) for a in alphas] for who in solvers} if sizes else {}
            )
            ranked = sorted(curves, key=lambda who: (who != OURS, -sum(curves[who])))
            for who in ranked[:SHOWN]:
                axis.step(alphas, curves[who], where="post", label=who, **styles[who])
            axis.set(xscale="log", title=f"{title}, gap {level:.0e} ({len(sizes)} problems)", ylim=(0, 1.02))
            if ranked:
                axis.legend(fontsize=7)
    for axis in axes[-1]:
        axis.set_xlabel("evaluations / (d + 1)")
    figure.savefig(path, dpi=90)
    plt.close(figure)
