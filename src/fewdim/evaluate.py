"""Where values come from: the user's function, one point after another or a block of rows at once."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator
from sys import getrefcount
from typing import Any, NamedTuple, Protocol

import numpy as np

from fewdim.directions import Key, Vector
from fewdim.session import Point, as_number

UNSHARED = 2  # references to an array that only its owner and `getrefcount` hold
BLOCK = 2**26  # bytes of rows handed to a vectorised function at once


class Value(NamedTuple):
    """A value, or nan and the reason why there is none."""

    fun: float
    failure: str = ""
    error: Exception | None = None
    seconds: float = math.nan  # that the evaluation took, where it took place


class Evaluator(Protocol):
    """Values of points, in their order, each as soon as it is known."""

    def __call__(self, points: list[Point]) -> Iterator[Value]: ...


class Arrivals(Protocol):
    """Values of points with their positions, in whatever order they arrive."""

    def __call__(self, points: list[Point]) -> Iterator[tuple[int, Value]]: ...


class Alone:
    """No pool: evaluations in this process, one after another."""

    width = 1

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator

    def __call__(self, points: list[Point]) -> Iterator[tuple[int, Value]]:
        return enumerate(self.evaluator(points))


def in_order(arrivals: Arrivals) -> Evaluator:
    """Hand values on in the order of their points: what a run is told must not depend on who was faster."""
    if isinstance(arrivals, Alone):
        return arrivals.evaluator

    def evaluate(points: list[Point]) -> Iterator[Value]:
        early: dict[int, Value] = {}
        next_up = 0
        for position, value in arrivals(points):
            early[position] = value
            while next_up in early:
                yield early.pop(next_up)
                next_up += 1

    return evaluate


class Keyed:
    """A function with randomness of its own: it is handed the key of the query, and draws from that."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, x: Vector, *args: Any, key: Key) -> Any:
        return self.fun(x, *args, key=key)


def keyed(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun`, marked if it has a parameter named key."""
    try:
        parameter = inspect.signature(getattr(fun, "wrapped", fun)).parameters.get("key")
    except (TypeError, ValueError):  # a built-in without a signature
        return fun
    named = parameter is not None and parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return Keyed(fun) if named else fun


def serial(fun: Callable[..., Any], args: tuple[Any, ...], reuse_buffer: bool) -> Evaluator:
    """Call fun(x, *args) for one point after another.

    An array that fun did not keep is used for the next point: fresh memory costs several times what filling it does.
    With `reuse_buffer` all points share one array even if fun keeps it.
    """
    buffer: Vector | None = None

    def evaluate(points: list[Point]) -> Iterator[Value]:
        nonlocal buffer
        for point in points:
            if buffer is not None and not reuse_buffer and getrefcount(buffer) > UNSHARED:
                buffer = None  # fun kept it, or a view of it: it is theirs now
            buffer = point.query.point(point.index, buffer)
            yield called(fun, buffer.reshape(point.shape), args, point.key)

    return evaluate


def called(fun: Callable[..., Any], x: Vector, args: tuple[Any, ...], key: Key = ()) -> Value:
    """fun(x, *args) as a value; a failed evaluation is missing data, anything else than an Exception propagates."""
    start = time.perf_counter()
    try:
        returned = fun(x, *args, key=key) if isinstance(fun, Keyed) else fun(x, *args)
    except Exception as error:
        return Value(math.nan, f"{type(error).__name__}: {error}", error, time.perf_counter() - start)
    return _checked(returned, time.perf_counter() - start)


def vectorised(fun: Callable[..., Any], args: tuple[Any, ...]) -> Evaluator:
    """Call fun(X, *args) with rows of points, (n, *shape) in and (n,) out; blocks of rows stay under 64 MB."""

    def evaluate(points: list[Point]) -> Iterator[Value]:
        origin = points[0].query.origin
        rows = max(1, BLOCK // origin.nbytes)
        for lo in range(0, len(points), rows):
            block = points[lo : lo + rows]
            X = np.empty((len(block), origin.size), dtype=origin.dtype)
            for row, point in zip(X, block, strict=True):
                point.query.point(point.index, row)
            rows_in = X.reshape(len(block), *points[0].shape)
            try:
                key = {"key": points[0].key} if isinstance(fun, Keyed) else {}
                returned = fun(rows_in, *args, **key)
            except Exception as error:
                if len(block) == 1:
                    yield Value(math.nan, f"{type(error).__name__}: {error}", error)
                else:  # one row may be at fault: find out which
                    for point in block:
                        yield from evaluate([point])
                continue
            values = np.asarray(returned)
            if values.shape != (len(block),):
                raise ValueError(
                    f"a vectorized fun must return shape ({len(block)},) for {len(block)} rows; got {values.shape}."
                )
            yield from map(_checked, values)

    return evaluate


def _checked(returned: object, seconds: float = math.nan) -> Value:
    number = as_number(returned)
    return Value(number, f"fun returned {returned}" if math.isnan(number) else "", None, seconds)
