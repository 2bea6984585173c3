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
from fewdim.directions import Key, Vector
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
    key: Key


class Lacking(NamedTuple):
    """The answer of a worker that has not got the function, or not this version of the base."""

    token: str


class Unfit(NamedTuple):
    """The answer when fun cannot be used, or returned something that is no number: a mistake, which ends the run."""

    message: str


Answer = list[Value] | Lacking | Unfit


class Sender:
    """The driver's side: makes parcels of points, numbers bases as they change."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            self.function: bytes = cloudpickle.dumps((fun, args))
        except Exception as error:
            raise TypeError(f"minimize(workers=...): fun and args cannot be sent to a worker: {error}") from error
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
            points[0].key,
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
        try:
            fun, args = pickle.loads(parcel.function)
        except Exception as error:
            return Unfit(f"fun could not be made in a worker: {type(error).__name__}: {error}")
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
    answer = here(held.fun, held.args, [Point(i, query, i, parcel.shape, parcel.key) for i in range(len(query))])
    if isinstance(answer, list):  # an exception may not survive the journey; its text does
        answer = [value._replace(error=None) for value in answer]
    return answer


def here(fun: Callable[..., Any], args: tuple[Any, ...], points: list[Point]) -> list[Value] | Unfit:
    """Evaluate points where fun is at hand."""
    try:
        return [called(fun, point.x, args, point.key) for point in points]
    except TypeError as error:  # not one of fun's own, which are failures
        return Unfit(str(error))


def lost(failure: str) -> Value:
    """The value of an evaluation whose worker gave none."""
    return Value(math.nan, failure)
