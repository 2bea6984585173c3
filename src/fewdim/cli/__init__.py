"""The `fewdim` command: what it runs is in `runs`, what it shows in `looks`; errors are one line, and exit codes mean

0   done: the target is reached, nothing is left to improve, or the budget is spent and no target was given
1   the target was not reached; the point is not certified
2   something on the command line is wrong
3   too many evaluations gave no value, or values fall without end
4   the function, the journal or a file cannot be used
130 interrupted (Ctrl-C); the best so far is kept
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

DONE, MISSED, USAGE, FAILURES, BROKEN, INTERRUPTED = 0, 1, 2, 3, 4, 130
OPTIONS = {"f_target": "target", "rng": "seed", "options": "set"}  # where an option is not called as the argument is


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code."""
    words = (sys.argv[1:] if arguments is None else list(arguments)) or ["--help"]
    try:
        from fewdim.cli.app import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        _end("typer is not installed; install it with: pip install 'fewdim[cli]'", USAGE)
    try:
        code = app(words, prog_name="fewdim", standalone_mode=False)
    except KeyboardInterrupt:
        _end("interrupted before there was a value; nothing is kept.", INTERRUPTED)
    except Exception as error:
        if "--traceback" in words:
            raise
        _end(*_explained(error))
    sys.exit(code if isinstance(code, int) else DONE)


def _explained(error: Exception) -> tuple[str, int]:
    """An error as one line that says what to do, and the exit code."""
    usage = getattr(error, "format_message", None)
    if usage is not None:
        context = getattr(error, "ctx", None)  # none where the text itself says what to do
        return usage() + (f" See: {context.command_path} --help" if context is not None else ""), USAGE
    if type(error).__name__ == "Abort":
        return "interrupted before there was a value; nothing is kept.", INTERRUPTED
    named = r"\b\w+\((\w+)=\.\.\.\)|^(?=rng|x0)(\w+)"  # minimize(maxfev=...), or an argument that opens the text
    text = re.sub(named, lambda m: "--" + OPTIONS.get(m[1] or m[2], m[1] or m[2]), str(error))
    if isinstance(error, (ValueError, TypeError, KeyError, NotImplementedError)):
        return text, USAGE if "--" in text else BROKEN
    known = isinstance(error, (OSError, RuntimeError))
    return text if known else f"{type(error).__name__}: {text} (--traceback shows where)", BROKEN


def _end(text: str, code: int) -> None:
    print("fewdim: " + " ".join(text.split()), file=sys.stderr)
    sys.exit(code)
