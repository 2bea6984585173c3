"""The commands that evaluate nothing: show, replay, report, methods, cite."""

from __future__ import annotations

import inspect
import json as jsons
import re
import textwrap
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import fewdim
from fewdim.cli import inputs
from fewdim.report import CITATION, write_report

Run = Annotated[Path, typer.Argument(metavar="RUN.DB", help="The journal of a run.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def show(
    run: Run,
    rows: Annotated[int, typer.Option(help="Lines of history.", min=1)] = 12,
    json: Json = False,
) -> None:
    """What a journal holds: history, failures, best."""
    book = _filled(run)
    about, history, failures = book.description, book.history, book.failures
    values, seconds = book.values, float(np.nansum(book.seconds))
    found = int(np.nanargmin(values))
    best = {"fun": float(values[found]), "nfev": found + 1}
    if json:
        content = {
            **{name: about[name] for name in ("problem", "method", "settings", "shape", "key", "version", "created")},
            "nfev": values.size,
            "seconds": seconds,
            "best": best,
            "failures": [failure._asdict() for failure in failures],
            "history": {"nfev": history.nfev.tolist(), "fun": history.fun.tolist()},
        }
        print(jsons.dumps(content))
        return
    d = int(np.prod(about["shape"]))
    print(f"{about['problem']}: {about['method']}, d = {d:,}, seed {about['key'][0]}, begun {about['created']}")
    print(f"{values.size:,} evaluations in {seconds:.1f} s of evaluation; {len(failures)} gave no value")
    print(f"best f = {best['fun']!r} at evaluation {best['nfev']:,}\n")
    print(f"{'evaluations':>12}  {'best f':>18}")
    for i in np.unique(np.linspace(0, history.nfev.size - 1, rows).round().astype(int)):
        print(f"{history.nfev[i]:>12,}  {history.fun[i]:>18.10g}")
    for message, count in Counter(failure.message for failure in failures).most_common(5):
        print(f"{count} x {textwrap.shorten(message, 90)}")


def replay(
    run: Run,
    at: Annotated[int | None, typer.Option(help="After this many evaluations; default all.")] = None,
    out: Annotated[Path, typer.Option(help="Where the best point until then goes.")] = Path("fewdim-x.npy"),
) -> None:
    """Write the best point of a run after N evaluations.

    Nothing is evaluated; --at 0 is x0.
    """
    book, place = _filled(run), inputs.writable("--out", inputs.array_file(out))
    if at is not None and not 0 <= at <= book.nfev:
        raise inputs.WrongInput(f"--at must lie in [0, {book.nfev}], the evaluations of {run}; got {at}.")
    session = book.replay(at)
    x, fun = (session.best.x, session.best.fun) if session.nfev else (session.state.x.reshape(session.shape), None)
    np.save(place, book.inside(x))
    value = "x0" if fun is None else f"f = {fun!r}"
    print(f"{value} after {session.nfev:,} of {book.nfev:,} evaluations; x is in {place}")


def report(
    run: Run,
    out: Annotated[Path | None, typer.Option(help="Default: RUN.html beside the journal.")] = None,
) -> None:
    """Write the HTML report of a recorded run.

    One file, which needs no network; nothing is evaluated.
    """
    path = run.with_suffix(".html") if out is None else inputs.writable("--out", out)
    write_report(_filled(run), path)
    print(f"report: {path}")


def methods(
    name: Annotated[str | None, typer.Argument(help="One of them, in full.")] = None,
    json: Json = False,
) -> None:
    """What each method is for, guarantees and can be set to."""
    if name is not None and name not in fewdim.METHODS:
        raise inputs.WrongInput(f"there is no method {name!r}; there are {', '.join(fewdim.METHODS)}.")
    if name is not None:
        print(inspect.getdoc(fewdim.METHODS[name]))
        return
    rows = [about(kind, title) for title, kind in fewdim.METHODS.items()]
    if json:
        print(jsons.dumps(rows, default=str))
        return
    for row in rows:
        print(f"{row['name']}\n  {row['summary']}")
        settings = ", ".join(f"{setting}={default!r}" for setting, default in row["settings"].items())
        for head, text in (("guarantee", row["guarantee"]), ("settings", settings)):
            print(textwrap.fill(f"{head}: {text}", 100, initial_indent="  ", subsequent_indent="    "))


def about(kind: type[Any], name: str) -> dict[str, Any]:
    """A method by its docstring: one line, the first sentence of its guarantee, its settings."""
    doc = inspect.getdoc(kind) or ""
    promise = re.search(r"\*\*Guarantee\.\*\*\s+(.*?)(?:[.](?:\s|$)|\n\n|\Z)", doc, flags=re.DOTALL)
    settings = {key: item.default for key, item in inspect.signature(kind).parameters.items()}
    guarantee = " ".join(promise[1].split()) if promise else "none"
    return {"name": name, "summary": doc.splitlines()[0], "guarantee": guarantee, "settings": settings}


def cite() -> None:
    """How to cite fewdim and the paper (BibTeX)."""
    print(CITATION)


def _filled(path: Path) -> fewdim.Journal:
    """A journal that is there and holds values."""
    if not path.is_file():
        raise inputs.WrongInput(f"there is no journal {path}; minimize --journal {path} makes one.")
    book = fewdim.Journal(path)
    if book.nfev == 0:
        raise inputs.WrongInput(f"journal {path} holds no value yet; wait for the run, or start it anew.")
    return book
