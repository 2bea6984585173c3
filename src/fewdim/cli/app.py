"""The commands of `fewdim`, put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import fewdim
from fewdim.cli import looks, runs

PLAIN = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
EXITS = (
    "Exit codes: 0 done; 1 target not reached or not certified; 2 wrong usage; 3 too many failed, or no minimum; "
    "4 function, journal or file unusable; 130 Ctrl-C, best so far kept."
)

app = typer.Typer(
    help="Minimise black boxes of very many parameters from function values alone.",
    epilog=EXITS,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=PLAIN,
)
JOBS: tuple[Callable[..., None], ...] = (
    *(runs.minimize, runs.dimension, runs.certify),
    *(looks.show, looks.replay, looks.report, looks.methods, looks.cite),
)
for job in JOBS:
    app.command()(job)


def _version(asked: bool) -> None:
    if asked:
        print(f"fewdim {fewdim.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")] = False,
) -> None:
    """Minimise black boxes of very many parameters from function values alone."""
