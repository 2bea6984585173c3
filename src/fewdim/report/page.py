"""The page of a report: tables that can be read as they are, and charts of the same numbers drawn over them."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from fewdim.journal import Journal
from fewdim.report.data import CITATION, Data, run_data
from fewdim.result import wide

ROWS = 24  # of the table behind a chart
CURVES = {
    "slope": ("Slope", "norm of the gradient, from slopes along random directions", "|g|, units of f per unit of x"),
    "curvature": (
        "Curvature",
        "trace of the Hessian, from second differences",
        "trace, units of f per unit of x squared",
    ),
    "bend": ("Curvature along the step", "by the parabola of its line search", "units of f per unit of x squared"),
    "step": ("Step", "how far a step moves the iterate", "length, units of x"),
}


def write_report(journal: Journal, path: Path, *, kept: bool = True) -> None:
    """Write the report of a journal to a file; `kept` says that the journal stays."""
    path.write_text(html(journal, kept=kept), encoding="utf-8")


def html(journal: Journal, *, kept: bool = True) -> str:
    """The report as one self-contained page."""
    data, charts = run_data(journal), Charts()
    sections = [
        _summary(data),
        _section("Convergence", _convergence(data, charts)),
        _section("Slope, curvature, step", _diagnostics(data, charts)),
        _section("Spectrum and effective dimension", _dimension(data, charts)),
        _section("Failures", _failures(data)),
        _section("Settings", _settings(data)),
        _section("Environment", _pairs("Environment", data["environment"].items())),
        _section("Go on from here", _resume(data, journal.path if kept else None)),
        _section("Citation", f'<pre tabindex="0">{escape(CITATION)}</pre>'),
    ]
    folder = files("fewdim.report")
    text = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js")}
    library = {name: folder.joinpath("uplot", name).read_text(encoding="utf-8") for name in UPLOT}
    return Template(text["page.html"]).substitute(
        title=escape(f"{data['problem']}: {data['nfev']:,} evaluations"),
        style=library["uPlot.min.css"] + text["page.css"],
        body="\n".join(sections),
        data=_embedded({"run": data, "charts": charts.made}),
        licence=escape(library["LICENSE"].strip()),
        library=library["uPlot.iife.min.js"],
        script=text["page.js"],
    )


UPLOT = ("uPlot.iife.min.js", "uPlot.min.css", "LICENSE")


class Charts:
    """The charts of a page: what the script draws, and the HTML where it goes with the table of the same numbers."""

    def __init__(self) -> None:
        self.made: list[Data] = []

    def add(
        self, title: str, x: str, y: str, columns: Sequence[tuple[str, Sequence[Any]]], *, stepped: bool = False,
        band: Data | None = None,
    ) -> str:  # fmt: skip
        """A chart of the second column and those after it against the first."""
        name, numbers = f"chart{len(self.made)}", [list(column) for _, column in columns]
        labels = [label for label, _ in columns]
        ys = [v for column in numbers[1:] for v in column if v is not None]
        log = {"x": wide(numbers[0]), "y": wide(ys)}
        made = {"id": name, "x": x, "y": y, "labels": labels, "data": numbers, "log": log, "stepped": stepped}
        self.made.append({**made, "band": band})
        picked: list[int] = np.unique(np.linspace(0, len(numbers[0]) - 1, ROWS).round().astype(int)).tolist()
        rows = [[column[i] for column in numbers] for i in picked]
        shown = f"{len(rows)} of {len(numbers[0])} points" if len(rows) < len(numbers[0]) else "all points"
        alternative = f"Chart of {y} against {x}; the table below it holds the numbers. Arrow keys move the cursor."
        return (
            f'<figure><figcaption>{escape(title)}</figcaption><div class="chart" id="{name}" tabindex="0" role="img" '
            f'aria-label="{escape(alternative)}"></div><p class="readout" id="{name}-readout" role="status"></p>'
            f"<details><summary>{escape(title)}: the numbers</summary>{table(title, labels, rows, shown)}</details>"
            "</figure>"
        )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def _summary(data: Data) -> str:
    facts = {
        "best f": repr(data["best"]),
        "f(x0)": repr(data["first"]),
        "found at evaluation": f"{data['best_at']:,}",
        "evaluations": f"{data['nfev']:,}",
        "without a value": f"{data['nfail']:,}",
        "seconds of evaluation": f"{data['seconds']:.4g}",
        "parameters": f"{data['d']:,}",
        "method": data["method"],
    }
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(item)}</dd></div>" for name, item in facts.items())
    return f'<h1>{escape(data["problem"])}</h1><dl class="facts">{cells}</dl>'


def _convergence(data: Data, charts: Charts) -> str:
    history, forecast = data["history"], data["band"]
    text = charts.add(
        "Best value against evaluations", "evaluations", "best f",
        [("evaluations", history["nfev"]), ("best f", history["fun"])], stepped=True, band=forecast,
    )  # fmt: skip
    if data["seconds"] > 0:
        text += charts.add(
            "Best value against time", "seconds of evaluation", "best f",
            [("seconds", history["seconds"]), ("best f", history["fun"])], stepped=True,
        )  # fmt: skip
    text = f'<div class="grid">{text}</div>'
    if forecast is None:
        return (
            text + "<p>No forecast: none was asked for. <code>fewdim minimize ... --dimension 2000</code> measures "
            "the effective dimension at x0 first and shows what it predicts.</p>"
        )
    rows = [[row["gap"], row["fun"], row["low"], row["high"]] for row in forecast["rows"]]
    note = (
        f"The band is what the effective dimension at x0 predicts for {escape(forecast['method'])}, with the best "
        "value found in place of the unknown minimum."
    )
    heads = ["share of the gap left", "f", "evaluations, low", "high"]
    return f"{text}<p>{note}</p>{table('Forecast', heads, rows, forecast['method'])}"


def _diagnostics(data: Data, charts: Charts) -> str:
    found = data["diagnostics"]
    if "missing" in found:
        return f"<p>{escape(found['missing'])}</p>"
    parts = []
    for name, (title, what, unit) in CURVES.items():
        curve = found["series"].get(name)
        if curve is not None and len(curve["nfev"]) > 1:
            columns = [("evaluations", curve["nfev"]), (unit, curve["value"])]
            parts.append(charts.add(f"{title}: {what}", "evaluations", unit, columns))
    if not parts:
        return "<p>This run asked along no random direction, so that its values tell neither slope nor curvature.</p>"
    noise = found["noise"]
    level = "" if noise is None else f" Noise level used: {noise:.3g} (units of f)."
    bounded = (
        " With bounds these are for the variables that the method works on." if "bounds" in data["settings"] else ""
    )
    return f'<div class="grid">{"".join(parts)}</div><p>{found["nit"]:,} steps.{level}{bounded}</p>'


def _dimension(data: Data, charts: Charts) -> str:
    found, ritz = data["dimension"], data["diagnostics"].get("ritz", [])
    text = ""
    if ritz:
        title = "Curvatures that the last steps of the run span"
        columns: list[tuple[str, Sequence[Any]]] = [
            ("rank", range(1, len(ritz) + 1)),
            ("curvature", sorted(ritz)[::-1]),
        ]
        text += charts.add(title, "rank", "curvature", columns)
    if found is None:
        return text + "<p>The effective dimension was not measured (<code>--dimension 2000</code> does, at x0).</p>"
    levels = sorted(zip(found["spectrum"]["eigenvalues"], found["spectrum"]["counts"], strict=True), reverse=True)
    ranks: list[float] = []
    reached = 0.0
    for _, count in levels:
        ranks.append(reached + (count + 1) / 2 if count >= 1 else reached + 1)
        reached += count
    if len(levels) > 1:
        title = "Estimated singular values of the Hessian at x0"
        columns = [("rank", ranks), ("singular value", [v for v, _ in levels])]
        text = charts.add(title, "rank", "singular value", columns) + text
    rows = [[e["alpha"], e["estimate"], e["low"], e["high"], e["replaces"]] for e in found["estimates"]]
    heads = ["alpha", "ED_alpha", "low", "high", "d L^alpha"]
    verdict = found["verdict"] or ""
    said = escape(f"{found['sentence']} {verdict[:1].upper()}{verdict[1:]}")
    spent = f"{found['nfev']:,} evaluations at x0, beyond those of the run"
    return f'<div class="grid">{text}</div>{table("Effective dimension", heads, rows, spent)}<p>{said}</p>'


def _failures(data: Data) -> str:
    if not data["failures"]:
        return f"<p>None: all {data['nfev']:,} evaluations gave a value.</p>"
    rows = [[row["count"], row["first"], row["last"], row["message"]] for row in data["failures"]]
    head = f"{data['nfail']:,} of {data['nfev']:,} evaluations gave no value"
    return table(head, ["times", "first at", "last at", "message"], rows, "most frequent first")


def _settings(data: Data) -> str:
    fixed = {name: data[name] for name in ("method", "shape", "dtype", "seed", "width", "version", "created")}
    return _pairs("Settings", [*fixed.items(), *data["settings"].items()])


def _resume(data: Data, path: Path | None) -> str:
    if path is None:
        return "<p>The run was not kept: with <code>--journal run.db</code> the same line goes on where it ended.</p>"
    command = data["command"]
    again = f"fewdim.minimize(fun, x0, rng={data['seed']}, journal={str(path)!r}, maxfev={2 * data['nfev']})"
    first = (
        f"{command}   # with a larger --maxfev"
        if command
        else f"{again}   # with fun, x0 and the other arguments of this run"
    )
    return (
        f'<pre tabindex="0">{escape(first)}\n{escape(f"fewdim replay {shlex.quote(str(path))} --out x.npy")}'
        "   # the best point</pre>"
    )


def _pairs(caption: str, items: Iterable[tuple[str, Any]]) -> str:
    return table(caption, ["name", "value"], [[name, _text(item)] for name, item in items])


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    """A table; numbers to ten digits, nothing where there is none."""
    rows = list(rows)
    kinds = [' class="number"' if rows and _is_number(rows[0][i]) else "" for i in range(len(heads))]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(heads, kinds, strict=True))
    body = "".join("<tr>" + "".join(_cell(item) for item in row) + "</tr>" for row in rows)
    small = f" <small>({escape(note)})</small>" if note else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table><caption>{escape(caption)}{small}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _is_number(item: Any) -> bool:
    return isinstance(item, (int, float)) and not isinstance(item, bool)


def _cell(item: Any) -> str:
    if _is_number(item):
        return f'<td class="number">{f"{item:,}" if isinstance(item, int) else f"{item:.10g}"}</td>'
    return f"<td>{'' if item is None else escape(str(item))}</td>"


def _text(item: Any) -> str:
    return item if isinstance(item, str) else json.dumps(item)


def _embedded(data: Data) -> str:
    """JSON that cannot end the element it stands in; what is not finite is null."""
    text = json.dumps(_finite(data), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _finite(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: _finite(part) for name, part in item.items()}
    if isinstance(item, (list, tuple)):
        return [_finite(part) for part in item]
    return None if isinstance(item, float) and not math.isfinite(item) else item
