"""What the words on the command line stand for: functions, starting points, settings."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewdim.command import command

MADE = {"zeros": np.zeros, "ones": np.ones}


class WrongInput(ValueError):  # noqa: N818 - it is the message that is shown
    """Something given on the command line cannot be used; the text says what to do."""

    def format_message(self) -> str:
        """The text, as other errors of usage give it."""
        return str(self)


def function(spec: str | None, program: str | None, **settings: Any) -> tuple[Callable[..., Any], str]:
    """The function to call and its name: module:function, file.py:function, or an external program."""
    if (spec is None) == (program is None):
        raise WrongInput("give either module:function or --command 'program {point}'.")
    if program is not None:
        given = {name: item for name, item in settings.items() if item is not None}
        return command(program, **given), program
    stray = [name for name, item in settings.items() if item is not None]
    if stray:
        raise WrongInput(f"--{stray[0]} goes with --command, not with module:function.")
    assert spec is not None
    return _imported(spec), spec


def _imported(spec: str) -> Callable[..., Any]:
    place, colon, name = spec.rpartition(":")
    if not (place and colon and name):
        raise WrongInput(f"the function must be given as module:function or file.py:function; got {spec!r}.")
    folder, module = Path.cwd(), place
    if place.endswith(".py"):
        folder, module = Path(place).absolute().parent, Path(place).stem
        if not Path(place).is_file():
            raise WrongInput(f"there is no file {place}; give the path of the file that holds {name}.")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        hint = f"run this where {module}.py lies, or give its path" if error.name == module else f"install {error.name}"
        raise WrongInput(f"cannot import {module}: {error}; {hint}.") from error
    if place.endswith(".py") and not Path(str(found.__file__)).samefile(place):
        raise WrongInput(f"{place} cannot be imported: {module} is the name of another module; rename the file.")
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise WrongInput(f"{place} has no {name}; it must be the name of a function there.") from None
    if not callable(found):
        raise WrongInput(f"{spec} must be a function of a point; it is {type(found).__name__}.")
    chosen: Callable[..., Any] = found
    return chosen


def start(spec: str) -> NDArray[Any]:
    """The starting point: zeros:1000, ones:28x28, or a file that numpy.save wrote."""
    made = re.fullmatch(r"(zeros|ones):(\d+(?:x\d+)*)", spec)
    if made:
        return MADE[made[1]](tuple(map(int, made[2].split("x"))))
    if not Path(spec).is_file():
        raise WrongInput(f"--x0 must be zeros:1000, ones:1000 or a file.npy; there is no file {spec!r}.")
    try:
        loaded: NDArray[Any] = np.load(spec, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise WrongInput(f"--x0 {spec} is not an array of numbers as numpy.save writes it: {error}.") from error
    return loaded


def array_file(path: Path) -> Path:
    """The name that numpy.save gives a file."""
    return path if path.suffix == ".npy" else Path(f"{path}.npy")


def writable(option: str, path: Path) -> Path:
    """The path of a file to be written, in a folder that is there: known before anything is evaluated."""
    if path.is_dir() or not path.parent.is_dir():
        raise WrongInput(f"{option} must be a file in a folder that is there; got {str(path)!r}.")
    return path


def settings(words: list[str]) -> dict[str, Any]:
    """Settings of a method, from words such as batch=8: JSON where it is JSON, else text."""
    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise WrongInput(f"--set takes name=value, such as --set memory=64; got {word!r}.")
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
    return found


def number_or_auto(text: str) -> Any:
    """A noise level: a number, or "auto"."""
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise WrongInput(f"--noise must be auto or a number; got {text!r}.") from None
