"""Theory of operation: a method is explicit state between iterations and a generator inside one.

An algorithm that minimises f from values alone does two things: it computes, and it asks for values.  Here the asking
is a `yield`.  A *step* is a generator that yields `Query` objects and is sent back one array of `Values` for each; it
returns the next state.  It never calls the function, so whoever drives it decides where values come from: a loop in
this process, a pool, a person with a notebook, a journal that is being replayed.

    class Method(Protocol[S]):
        def start(self, x, key) -> S          the first state; asks nothing
        def step(self, state) -> Steps[S]     one iteration: yields queries, returns the next state
        def done(self, state) -> bool         nothing left to do

Rules that make every delivery of the same values give the same result, bit for bit:

* A state is a frozen dataclass of data (arrays, numbers, tuples).  Nothing writes to an array that is in a state.
* Settings live in the method, a frozen dataclass; what changes lives in the state.  A number that has not been
  measured yet is nan in the state, and the step that first needs it asks for it.
* Randomness is named, not drawn: `(*state.key, state.k)` is the key of a direction, longer keys seed inner runs.
* A value that could not be had is nan in `Values`.  It is missing data, never a large number.

Nesting is `yield from`: a line search is a generator that a step delegates to, an inner solver is `run(method, state)`,
an oracle of the paper is a function that takes one generator and returns another.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from fewdim.directions import Along, Key, Vector, accumulate

Values: TypeAlias = NDArray[np.float64]
Offset: TypeAlias = "Along | Vector | None"

FAILED = math.nan
"""What to tell when an evaluation gave no value."""


@dataclass(frozen=True, eq=False, slots=True)
class Query:
    """Ask for f(origin + offset), one value per offset: the only thing a method yields.

    An offset is a lazy `scale * direction`, an array, or None for the origin itself.  All points of a query may be
    evaluated at once; put as many into one query as do not depend on each other.
    """

    origin: Vector
    offsets: tuple[Offset, ...] = (None,)

    def __len__(self) -> int:
        return len(self.offsets)

    def point(self, i: int, out: Vector | None = None) -> Vector:
        """The i-th point as an array of its own, or written to `out`."""
        offset = self.offsets[i]
        if offset is None:
            return accumulate(self.origin, (), (), out)
        if isinstance(offset, Along):
            return accumulate(self.origin, (offset.scale,), (offset.direction,), out)
        return np.add(self.origin, offset, out=out)


S = TypeVar("S", bound="State")
T = TypeVar("T")
Steps: TypeAlias = Generator[Query, Values, T]
"""The type of everything that queries: yields `Query`, is sent `Values`, returns T."""


class State(Protocol):
    """What every state has: the iterate, the key that names its randomness and the number of iterations so far."""

    @property
    def x(self) -> Vector: ...
    @property
    def key(self) -> Key: ...
    @property
    def k(self) -> int: ...


class Method(Protocol[S]):
    """A minimisation method; see the head of this module for the rules, `fewdim.testing.check_method` for the test."""

    def start(self, x: Vector, key: Key) -> S: ...
    def step(self, state: S) -> Steps[S]: ...
    def done(self, state: S) -> bool: ...


def evolve(state: T, **changes: Any) -> T:
    """`dataclasses.replace` for states, which have no constructor of their own to run: in a fraction of its time."""
    if not changes.keys() <= state.__dict__.keys():
        raise TypeError(f"{type(state).__name__} has no field {min(changes.keys() - state.__dict__.keys())!r}.")
    new = object.__new__(type(state))
    new.__dict__.update(state.__dict__, **changes)
    return new


@dataclass(frozen=True)
class Cost:
    """What a method declares of itself: values per step when none fails, and vectors held beyond x."""

    fewest: int
    most: int
    vectors: int
    axes: int = 0  # values per coordinate that `most` leaves out


class Delegate(Generic[T]):
    """A `Steps` seen through a wrapper: what it asks and is told may be watched or changed on the way."""

    def __init__(self, steps: Steps[T]) -> None:
        self.steps = steps

    def __iter__(self) -> Iterator[Query]:
        return self

    def __next__(self) -> Query:
        return self.advance(None)

    def send(self, values: Values) -> Query:
        return self.advance(values)

    def advance(self, values: Values | None) -> Query:
        """Send values in (None starts it); the next query, or StopIteration with the result."""
        return self.steps.send(values)  # type: ignore[arg-type]  # None starts a generator


class _Counted(Delegate[T]):
    count = 0

    def advance(self, values: Values | None) -> Query:
        with np.errstate(all="ignore"):  # numbers that overflow are tested for where it matters
            query = super().advance(values)
        self.count += len(query)
        return query


def counted(steps: Steps[T]) -> Steps[tuple[T, int]]:
    """What the steps return, and how many values they asked for."""
    delegate: Any = _Counted(steps)
    result: T = yield from delegate
    return result, delegate.count


class Asked(Delegate[T]):
    """A step that must ask at least once: the guard against one that would loop for ever without a query."""

    def __init__(self, steps: Steps[T], owner: object) -> None:
        super().__init__(steps)
        self.owner, self.queries = owner, 0

    def advance(self, values: Values | None) -> Query:
        try:
            query = super().advance(values)
        except StopIteration:
            if self.queries == 0:
                name = type(self.owner).__name__
                raise RuntimeError(f"{name}.step(state) must yield at least one Query; it returned without.") from None
            raise
        if not isinstance(query, Query) or len(query) == 0:
            name = type(self.owner).__name__
            raise TypeError(f"{name}.step(state) must yield a Query with at least one offset; got {query!r}.")
        self.queries += 1
        return query


def run(method: Method[S], state: S) -> Steps[S]:
    """A whole run inside another: `state = yield from run(inner, state)`."""
    while not method.done(state):
        state = yield from step(method, state)
    return state


def step(method: Method[S], state: S) -> Steps[S]:
    """One guarded step: what `run` repeats."""
    guarded: Any = Asked(method.step(state), method)
    result: S = yield from guarded
    return result


def value(x: Vector) -> Steps[float]:
    """f(x), or nan when it could not be had."""
    values = yield Query(x)
    return float(values[0])
