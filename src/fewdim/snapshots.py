"""States as data: a state becomes JSON with its arrays set aside, and only classes that it may hold come back.

    array       {"array": id}             the caller stores arrays, each once however often it is met
    tuple       {"tuple": [...]}
    dataclass   {"of": name, "fields": [...]}, and so a NamedTuple
    number      itself; a numpy scalar {"scalar": [dtype, hex]}

Reading makes nothing but instances of the classes that the annotations of the expected state name: a file cannot ask
for any other, and nothing in it is run.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewdim.core import Query
from fewdim.directions import Along, Direction

Array = NDArray[Any]


class NotDataError(TypeError):
    """A state holds something that is not data, or of a class that its annotations do not name."""


def little_endian(array: Array) -> bytes:
    """The bytes of an array in C order, little-endian on every machine."""
    return (array.byteswap() if sys.byteorder == "big" else array).tobytes()


def classes_of(state: type) -> dict[str, type]:
    """The classes whose instances a state may hold, by name: its own and those its annotations name, in depth."""
    found: dict[str, type] = {}
    waiting: list[Any] = [state, Query, Along, Direction]
    while waiting:
        item = waiting.pop()
        waiting.extend(typing.get_args(item))
        if isinstance(item, type) and _fields(item) is not None and _name(item) not in found:
            found[_name(item)] = item
            try:
                waiting.extend(typing.get_type_hints(item).values())
            except NameError as error:
                raise NotDataError(f"the annotations of {_name(item)} do not resolve: {error}") from None
    return found


def encode(value: Any, store: Callable[[Array], int], classes: dict[str, type]) -> Any:
    """What `decode` reads; `store` keeps an array and gives its number."""
    if isinstance(value, np.generic):
        return {"scalar": [value.dtype.newbyteorder("<").str, little_endian(np.asarray(value)).hex()]}
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return {"array": store(value)}
    if type(value) is tuple:
        return {"tuple": [encode(item, store, classes) for item in value]}
    fields, name = _fields(type(value)), _name(type(value))
    if fields is None or name not in classes:
        raise NotDataError(f"{name} is not named by the annotations of the state")
    return {"of": name, "fields": [encode(getattr(value, field), store, classes) for field in fields]}


def decode(coded: Any, fetch: Callable[[int], Array], classes: dict[str, type]) -> Any:
    """The value that `encode` was given; `fetch` gives an array by its number, the same object each time."""
    if not isinstance(coded, dict):
        return coded
    if "array" in coded:
        return fetch(coded["array"])
    if "scalar" in coded:
        dtype, content = coded["scalar"]
        return np.frombuffer(bytes.fromhex(content), dtype=dtype)[0]
    if "tuple" in coded:
        return tuple(decode(item, fetch, classes) for item in coded["tuple"])
    kind = classes.get(coded["of"])
    if kind is None:
        raise NotDataError(f"{coded['of']} is not named by the annotations of the state")
    fields = _fields(kind) or []
    values = dict(zip(fields, (decode(item, fetch, classes) for item in coded["fields"]), strict=True))
    if issubclass(kind, tuple):
        return kind(**values)
    made = object.__new__(kind)  # a constructor may compute; what it computed is in the fields
    for field, item in values.items():
        object.__setattr__(made, field, item)
    return made


def _fields(kind: type) -> list[str] | None:
    """The field names of a dataclass or a NamedTuple; None for other classes."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return list(getattr(kind, "_fields", ())) if issubclass(kind, tuple) and hasattr(kind, "_fields") else None


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
