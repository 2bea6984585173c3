"""What travels to a worker and what it does with it.

A point is rebuilt where it is evaluated, from the base (the origin of the query, numbered by version) and its offset: a
key and a scale for a seeded direction.  A worker keeps the function and the latest base, so that a parcel need not
carry them.  The driver guesses which worker has what; a worker that lacks something says so, and gets it.
"""

from __future__ import annotations

import math
import pickle
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import cloudpickle

from fewdim.core import Offset, Query
from fewdim.directions import Vector
from fewdim.evaluate import Value, called
from fewdim.session import Point

HELD = 4  # functions, with their bases, that a worker keeps


class Parcel(NamedTuple):
    """Points of one query to evaluate; `function` and `base` are None when the worker should have them."""

    token: str  # names the function
    function: bytes | None
    version: int
    base: Vector | None
    shape: tuple[int, ...]
    offsets: tuple[Offset, ...]


class Lacking(NamedTuple):
    """The answer of a worker that has not got the function, or not this version of the base."""

    token: str


class Unfit(NamedTuple):
    """The answer when fun returned something that is no number: a mistake, which ends the run."""

    message: str


Answer = list[Value] | Lacking | Unfit


class Sender:
    """The driver's side: makes parcels of points, numbers bases as they change."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function: bytes = cloudpickle.dumps((fun, args))
        self.token = secrets.token_hex(8)
        self.version = -1
        self.base: Vector | None = None

    def rebase(self, query: Query) -> None:
        """Make the origin of this query the base."""
        if query.origin is not self.base:
            self.version, self.base = self.version + 1, query.origin

    def parcel(self, points: list[Point], *, function: bool, base: bool) -> Parcel:
        offsets = tuple(point.query.offsets[point.index] for point in points)
        return Parcel(
            self.token,
            self.function if function else None,
            self.version,
            self.base if base else None,
            points[0].shape,
            offsets,
        )


class Held(NamedTuple):
    """What a worker keeps of a run."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    version: int
    base: Vector | None


_held: dict[str, Held] = {}


def serve(parcel: Parcel) -> Answer:
    """Evaluate a parcel; runs in the worker."""
    held = _held.get(parcel.token)
    if held is None:
        if parcel.function is None:
            return Lacking(parcel.token)
        fun, args = pickle.loads(parcel.function)
        held = Held(fun, args, -1, None)
    if parcel.base is not None:
        held = held._replace(version=parcel.version, base=parcel.base)
    if held.version != parcel.version or held.base is None:
        return Lacking(parcel.token)
    _held.pop(parcel.token, None)  # last in, last out
    _held[parcel.token] = held
    while len(_held) > HELD:
        _held.pop(next(iter(_held)), None)
    query = Query(held.base, parcel.offsets)
    values = []
    for i in range(len(query)):
        x = query.point(i).reshape(parcel.shape)
        try:
            value = called(held.fun, x, held.args)
        except TypeError as error:
            return Unfit(str(error))
        values.append(value._replace(error=None))  # an exception may not survive the journey; its text does
    return values


def lost(failure: str) -> Value:
    """The value of an evaluation whose worker gave none."""
    return Value(math.nan, failure)
