"""The commands that evaluate: minimize, dimension, certify."""

from __future__ import annotations

import json
import math
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import fewdim
from fewdim.cli import DONE, FAILURES, INTERRUPTED, MISSED, inputs
from fewdim.report import dimension_data, write_report

Fun = Annotated[str | None, typer.Argument(metavar="FUNCTION", help="module:function or file.py:function.")]
Program = Annotated[str | None, typer.Option("--command", help="Instead: 'program {point}'.")]
Template = Annotated[str | None, typer.Option(help="Text file with {x[0]}, ...; {point} is it, filled.")]
Form = Annotated[str | None, typer.Option("--point", help="How {point} is written: npy, csv, json.")]
Pattern = Annotated[str | None, typer.Option(help="Regular expression that captures the value.")]
Key = Annotated[str | None, typer.Option(help="Entry of the JSON that the program prints.")]
Start = Annotated[str, typer.Option("--x0", help="zeros:1000, ones:28x28 or file.npy.")]
Noise = Annotated[str, typer.Option(help="Level of the noise, in units of f; 0 is exact.")]
Seed = Annotated[int | None, typer.Option(help="Same seed, same run.")]
Workers = Annotated[int | None, typer.Option(help="Processes that evaluate at once; -1: one a core.")]
GOES_ON = {
    "maxfev": "; the same line with a larger --maxfev goes on from there",
    "maxtime": "; the same line goes on from there",
    "interrupted": "; the same line goes on from there",
}
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def minimize(
    fun: Fun = None,
    x0: Start = ...,  # type: ignore[assignment]
    command: Program = None,
    template: Template = None,
    point: Form = None,
    pattern: Pattern = None,
    key: Key = None,
    method: Annotated[str, typer.Option(help="One of those that `fewdim methods` lists.")] = "auto",
    set: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the method.")] = None,
    maxfev: Annotated[int | None, typer.Option(help="Most evaluations; default 100 (d + 100).")] = None,
    maxtime: Annotated[float | None, typer.Option(help="Most seconds.")] = None,
    target: Annotated[float | None, typer.Option(help="Stop at f <= this, in units of f.")] = None,
    tol: Annotated[float | None, typer.Option(help="Least share of the decrease in half a run.")] = None,
    noise: Noise = "auto",
    seed: Seed = None,
    workers: Workers = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds an evaluation may take (--workers).")] = None,
    journal: Annotated[Path | None, typer.Option(help="Record the run here; same line again goes on.")] = None,
    out: Annotated[Path, typer.Option(help="Where the best point goes.")] = Path("fewdim-x.npy"),
    report: Annotated[Path | None, typer.Option(help="Write an HTML report.")] = None,
    dimension: Annotated[int, typer.Option(help="Evaluations on the effective dimension first.")] = 0,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress; nor is any shown off a terminal.")] = False,
) -> None:
    """Minimise a function or an external program.

    The function takes a numpy array of the shape of x0 and returns a number.
    """
    form = {"template": template, "point": point, "pattern": pattern, "key": key}
    function, label = inputs.function(fun, command, **form)
    start, level = inputs.start(x0), inputs.number_or_auto(noise)
    if dimension and journal is None and report is None:
        raise inputs.WrongInput("--dimension is shown by a report: give --report or --journal, too.")
    ways: dict[str, Any] = {
        "method": method,
        "options": inputs.settings(set or []),
        "noise": level,
        "rng": seed,
        "workers": workers,
    }
    limits: dict[str, Any] = {"maxfev": maxfev, "maxtime": maxtime, "f_target": target, "tol": tol, "timeout": timeout}
    kept = {"out": inputs.writable("--out", inputs.array_file(out)), "journal": journal, "report": report}
    if timeout is not None and workers is None:
        raise inputs.WrongInput("--timeout needs --workers, whose processes can be given up; give --workers 1 or more.")
    if report is not None:
        inputs.writable("--report", report)
    with _record(journal, report) as path:
        notes: dict[str, Any] = {"command": shlex.join(["fewdim", *sys.argv[1:]])}
        if dimension and path is not None and not _measured(path):
            chances: dict[str, Any] = {"maxfev": dimension, "noise": level, "rng": seed, "workers": workers}
            notes["dimension"] = dimension_data(fewdim.effective_dimension(function, start, **chances))
        book = None if path is None else fewdim.Journal(path, label=label, notes=notes)
        shown = not quiet and not json and sys.stderr.isatty()
        began = time.perf_counter()
        result = fewdim.minimize(function, start, journal=book, progress=shown, **ways, **limits)
        seconds = time.perf_counter() - began
        np.save(kept["out"], result.x)  # type: ignore[arg-type]
        if book is not None and report is not None:
            write_report(book, report, kept=journal is not None)
    _tell(result, seconds, kept, as_json=json)
    raise typer.Exit(_code(result, target))


@contextmanager
def _record(journal: Path | None, report: Path | None) -> Iterator[Path | None]:
    """Where the run is recorded: a report reads a journal, if only one for the time being."""
    if journal is not None or report is None:
        yield journal
        return
    with tempfile.TemporaryDirectory(prefix="fewdim-") as folder:
        yield Path(folder) / "run.db"


def _measured(path: Path) -> bool:
    return path.exists() and "dimension" in fewdim.Journal(path).notes


def _code(result: Any, target: float | None) -> int:
    if result.reason in ("interrupted", "failures", "unbounded"):
        return INTERRUPTED if result.reason == "interrupted" else FAILURES
    return DONE if target is None or result.reason == "target" else MISSED


def _tell(result: Any, seconds: float, kept: dict[str, Path | None], as_json: bool) -> None:
    """Say what came out and where it is kept."""
    if as_json:
        found = {
            name: result[name] for name in ("fun", "nfev", "nit", "nfail", "noise", "reason", "message", "success")
        }
        first = {"first": float(result.history.fun[0]), "d": int(result.x.size), "seconds": seconds}
        _print_json({**found, **first, **{name: None if path is None else str(path) for name, path in kept.items()}})
        return
    spent = f"{result.nfev:,} evaluations, {seconds:.1f} s"
    print(f"f = {result.fun:.10g} after {spent}; f(x0) = {result.history.fun[0]:.10g}")
    print(" ".join(result.message.split()))  # a function's own error may have several lines
    print(f"x is kept in {kept['out']}")
    if kept["journal"] is not None:
        print(f"the run is kept in {kept['journal']}{GOES_ON.get(result.reason, '')}")
    if kept["report"] is not None:
        print(f"report: {kept['report']}")


def _print_json(content: dict[str, Any]) -> None:
    """One line of JSON; what is not a number is null, as the standard has it."""
    plain = {n: None if isinstance(item, float) and not math.isfinite(item) else item for n, item in content.items()}
    print(json.dumps(plain, default=float, allow_nan=False))


def dimension(
    fun: Fun = None,
    x0: Start = ...,  # type: ignore[assignment]
    command: Program = None,
    template: Template = None,
    point: Form = None,
    pattern: Pattern = None,
    key: Key = None,
    maxfev: Annotated[int | None, typer.Option(help="Most evaluations; default 5200.")] = None,
    gap: Annotated[float, typer.Option(help="Forecast to this share of f(x0) - f*, in (0, 1).")] = 0.01,
    noise: Noise = "auto",
    seed: Seed = None,
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Do few dimensions matter at x0?  With a forecast."""
    function, _ = inputs.function(fun, command, template=template, point=point, pattern=pattern, key=key)
    level, start = inputs.number_or_auto(noise), inputs.start(x0)
    found = fewdim.effective_dimension(function, start, maxfev=maxfev, noise=level, rng=seed, workers=workers)
    if json:
        _print_json({"d": found.d, **dimension_data(found, gaps=(gap,))})
    else:
        print(f"{found}\n\n{found.forecast(gap)}")


def certify(
    fun: Fun = None,
    x0: Annotated[str, typer.Option("--x", "--x0", help="The point: file.npy, zeros:1000, ones:1000.")] = ...,  # type: ignore[assignment]
    command: Program = None,
    template: Template = None,
    point: Form = None,
    pattern: Pattern = None,
    key: Key = None,
    epsilon: Annotated[float, typer.Option(help="Largest slope, units of f per unit of x.")] = 1e-4,
    delta: Annotated[float, typer.Option(help="Most negative curvature, units of f per x^2.")] = 1e-2,
    maxfev: Annotated[int | None, typer.Option(help="Most evaluations; default what it takes.")] = None,
    noise: Noise = "auto",
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Is x a minimum, by slopes and curvatures?

    Exit code 0: second-order stationary; 1: not.
    """
    function, _ = inputs.function(fun, command, template=template, point=point, pattern=pattern, key=key)
    level, start = inputs.number_or_auto(noise), inputs.start(x0)
    found = fewdim.certify(function, start, epsilon=epsilon, delta=delta, maxfev=maxfev, noise=level, rng=seed)
    if json:
        numbers = ("gradient_norm", "gradient_error", "curvature", "curvature_error", "noise", "nfev")
        _print_json({"verdict": found.verdict, "text": str(found), **{name: getattr(found, name) for name in numbers}})
    else:
        print(found)
    raise typer.Exit(DONE if found.verdict == "second-order stationary" else MISSED)
