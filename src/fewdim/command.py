"""External programs as functions: write the point, run the program, read a number."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fewdim.directions import Vector
from fewdim.methods.settings import check_choice, check_positive

TAIL = 500  # characters of stderr that a failure quotes
ENTRY = re.compile(r"\{x\[(\d+)\]\}")
NAMES = {"npy": "point.npy", "csv": "point.csv", "json": "point.json"}
PLACES = ("point", "value", "folder")

_running: set[subprocess.Popen[bytes]] = set()


class CommandError(RuntimeError):
    """A program gave no value: it failed, took too long, or wrote something that is no number."""


@dataclass(frozen=True)
class Command:
    """A program as a function of a point; made by `command`."""

    program: str | tuple[str, ...]
    point: str
    template: str | None
    value: str
    key: str | None
    pattern: str | None
    timeout: float | None
    shell: bool
    files: tuple[str, ...]
    env: Mapping[str, str] | None

    @property
    def label(self) -> str:
        """The name of the problem in a journal."""
        return self.program if isinstance(self.program, str) else shlex.join(self.program)

    def __call__(self, x: Vector) -> float:
        with tempfile.TemporaryDirectory(prefix="fewdim-") as scratch:
            folder = Path(scratch)
            for name in self.files:
                (folder / Path(name).name).symlink_to(Path(name).absolute())
            places = {"point": str(self._write(x, folder)), "value": str(folder / "value"), "folder": str(folder)}
            output = self._run(places, folder)
            return self._number(output, folder / "value")

    def _write(self, x: Vector, folder: Path) -> Path:
        """The point as a file."""
        if self.template is not None:
            path = folder / Path(self.template).name
            path.write_text(filled(Path(self.template).read_text(), x))
            return path
        path = folder / NAMES[self.point]
        if self.point == "npy":
            np.save(path, x)
        elif self.point == "csv":
            path.write_text("\n".join(map(repr, x.ravel().tolist())) + "\n")
        else:
            path.write_text(json.dumps(x.tolist()))
        return path

    def _run(self, places: dict[str, str], folder: Path) -> str:
        """Standard output of the program."""
        env = {**os.environ, **(self.env or {})}
        arguments: str | list[str]
        if self.shell:  # paths reach a shell as variables: nothing is pasted into its text
            arguments = str(self.program)
            env |= {name.upper(): place for name, place in places.items()}
        else:
            words = shlex.split(self.program) if isinstance(self.program, str) else self.program
            arguments = [_placed(word, places) for word in words]
        with subprocess.Popen(
            arguments,
            shell=self.shell,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0 if os.name == "posix" else None,  # so that what it starts ends with it
        ) as process:
            _running.add(process)
            try:
                out, err = process.communicate(timeout=self.timeout)
            except subprocess.TimeoutExpired:
                raise CommandError(f"no end within timeout={self.timeout:g} seconds") from None
            finally:
                _end(process)
                _running.discard(process)
        if process.returncode != 0:
            raise CommandError(f"exit code {process.returncode}{_quoted(err)}")
        return out.decode(errors="replace")

    def _number(self, output: str, file: Path) -> float:
        """The value in what the program wrote."""
        if self.value == "file":
            try:
                output = file.read_text(errors="replace")
            except FileNotFoundError:
                raise CommandError("the program wrote no file {value}") from None
        text = output.strip()
        try:
            if self.key is not None:
                item: Any = json.loads(text)
                for part in self.key.split("."):
                    item = item[part]
                return float(item)
            if self.pattern is not None:
                found = re.findall(self.pattern, text)
                if not found:
                    raise CommandError(f"nothing matches {self.pattern!r}{_quoted(output.encode(), 'output')}")
                return float(found[-1])
            return float(text.splitlines()[-1])
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise CommandError(f"no number: {error}{_quoted(output.encode(), 'output')}") from None


def command(
    program: str | Sequence[str],
    *,
    point: Literal["npy", "csv", "json"] = "npy",
    template: str | os.PathLike[str] | None = None,
    value: Literal["stdout", "file"] | None = None,
    key: str | None = None,
    pattern: str | None = None,
    timeout: float | None = None,
    shell: bool = False,
    files: Sequence[str | os.PathLike[str]] = (),
    env: Mapping[str, str] | None = None,
) -> Command:
    """A program as a function that `minimize` can call, in a scratch folder of its own for each point.

    Parameters
    ----------
    program : str or sequence of str
        The program and its arguments; in each argument {point} stands for the file with the point, {value} for the file
        that the program writes, {folder} for the scratch folder, which is also where the program runs.
    point : "npy", "csv" or "json"
        How the point is written: as numpy does, one number a line, or a list.
    template : path, optional
        Instead: a text file in which {x[0]}, {x[1]}, ... are replaced by the numbers; {point} is the result.
    value : "stdout" or "file"
        Where the number is read; default the file if the program names {value}, else standard output.
    key : str, optional
        The number is this entry of a JSON object; "a.b" is entry b of entry a.
    pattern : str, optional
        The number is what this regular expression captures, the last time that it matches.  Without key and pattern the
        last line must be a number.
    timeout : float, optional
        Seconds after which the program and all that it started is ended.
    shell : bool
        Run `program` by the shell.  The places are then the variables $POINT, $VALUE and $FOLDER; nothing is pasted
        into the text that the shell reads.
    files : sequence of paths
        Files that the program expects beside it; linked into the scratch folder.
    env : mapping, optional
        Further environment variables.

    An exit code other than 0, a timeout or output that is no number is a failed evaluation, with the end of standard
    error in its message.

    >>> import numpy as np
    >>> norm = command(["awk", "{ s += $1 * $1 } END { print s }", "{point}"], point="csv")
    >>> norm(np.array([3.0, 4.0]))
    25.0
    """
    text = program if isinstance(program, str) else " ".join(program)
    if value is None:
        value = "file" if "{value}" in text or (shell and "$VALUE" in text) else "stdout"
    words = program if isinstance(program, str) else tuple(program)
    if not words:
        raise ValueError(f"command(program=...) must name a program; got {program!r}.")
    if shell and (not isinstance(program, str) or any(f"{{{name}}}" in text for name in PLACES)):
        raise ValueError(f"command(shell=True) takes one string and $POINT, $VALUE, $FOLDER in it; got {program!r}.")
    check_choice("command", tuple(NAMES), point=point)
    check_choice("command", ("stdout", "file"), value=value)
    check_positive("command", timeout=timeout)
    if key is not None and pattern is not None:
        raise ValueError(f"command(key=..., pattern=...) takes one of them; got {key!r} and {pattern!r}.")
    if pattern is not None and re.compile(pattern).groups != 1:
        raise ValueError(f"command(pattern=...) must capture one group; got {pattern!r}.")
    names = tuple(os.fspath(Path(name).absolute()) for name in files)
    source = None if template is None else os.fspath(Path(template).absolute())
    return Command(words, point, source, value, key, pattern, timeout, shell, names, env)


def filled(text: str, x: Vector) -> str:
    """A text with {x[i]} replaced by the numbers, to all their digits; other braces stay as they are."""
    flat = x.ravel().tolist()

    def number(match: re.Match[str]) -> str:
        i = int(match[1])
        if i >= len(flat):
            raise CommandError(f"the template asks for x[{i}] of a point of {len(flat)}")
        return repr(flat[i])

    return ENTRY.sub(number, text)


def end_programs() -> None:
    """End all programs that are running for this process."""
    for process in tuple(_running):
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it started; nothing happens when all have ended."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        process.kill()


def _placed(word: str, places: dict[str, str]) -> str:
    for name, place in places.items():
        word = word.replace(f"{{{name}}}", place)
    return word


def _quoted(content: bytes, name: str = "stderr") -> str:
    tail = content.decode(errors="replace").strip()[-TAIL:]
    return f"; {name} ends: {tail}" if tail else f"; nothing on {name}"
