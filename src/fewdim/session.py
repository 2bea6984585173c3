"""Ask and tell: the one place that drives generators.

    session = Session(RandomPursuit(), x0, rng=0)
    while not session.done:
        for point in session.ask():
            session.tell(point.id, fun(point.x))
    session.best.x, session.best.fun

The first point asked is x0 itself; its value is handed to the method when the method asks for it.  Points of one query
may be told in any order and any split; the method moves when all have been told, so every delivery gives the same run.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Generator, Sequence
from typing import Any, Generic, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewdim.core import Asked, Delegate, Method, Query, S, Values
from fewdim.directions import Key, Vector


class Point:
    """A point to evaluate: tell its `id` with the value of f at `x`.  `x` is made afresh each time it is read.

    `key` is a tuple of integers that all points of a query share: the seed of f's own randomness, where it has some.
    """

    __slots__ = ("id", "index", "key", "query", "shape")

    def __init__(self, id: int, query: Query, index: int, shape: tuple[int, ...], key: Key = ()) -> None:
        self.id, self.query, self.index, self.shape, self.key = id, query, index, shape, key

    @property
    def x(self) -> Vector:
        return self.query.point(self.index).reshape(self.shape)


class Best(NamedTuple):
    """The lowest value told so far, where, and after how many evaluations."""

    x: Vector
    fun: float
    nfev: int


class Tally(NamedTuple):
    """What a session has counted up to a step boundary: with the state there, all it takes to go on as if never cut."""

    shape: tuple[int, ...]
    nfev: int
    nit: int
    failures: int
    first: float
    lowest: tuple[float, Query, int]  # value, its point as a query of one, after how many evaluations


class Session(Generic[S]):
    """A run of `method` from x0 that asks for values instead of calling a function.

    `rng` is None (fresh entropy), an integer seed or a `numpy.random.Generator`; the run is a pure function of the
    method's settings, x0, the seed and the values told.  `Session(method, state=state)` goes on from a state that an
    earlier session held between two steps; with that session's `tally` counts and best go on too.

    Attributes: `state` (at the last step boundary), `done`, `nfev` (values told), `nit` (steps completed), `failures`
    (values told as missing), `first` (f(x0), nan until told), `query` (the current one, None when done).
    """

    def __init__(
        self,
        method: Method[S],
        x0: ArrayLike | None = None,
        *,
        rng: int | np.random.Generator | None = None,
        state: S | None = None,
        tally: Tally | None = None,
    ) -> None:
        if tally is not None and state is None:
            raise ValueError("Session(tally=...) goes with state=.")
        if (x0 is None) == (state is None):
            raise ValueError("Session(...) takes either x0= or state=.")
        self.method = method
        if state is None:
            assert x0 is not None
            self.shape: tuple[int, ...] = np.shape(x0)
            self.state = method.start(as_vector(x0), root_key(rng))
        else:
            self.shape, self.state = state.x.shape, state
        self.nfev = self.nit = self.failures = 0
        self.first = math.nan
        self.query: Query | None = None
        self._steps: Asked[S] | None = None
        self._lowest: tuple[float, Query, int, int] | None = None
        self._base = self._handed = 0
        if tally is not None:
            self.shape, self.nfev, self.nit, self.failures, self.first, (fun, point, nfev) = tally
            self._lowest = (fun, point, 0, nfev)
        if state is None:
            self._open(Query(self.state.x), known={})
        else:
            self._begin()

    @property
    def done(self) -> bool:
        """Nothing more will be asked."""
        return self.query is None

    @property
    def best(self) -> Best:
        """The lowest value told so far and its point."""
        if self._lowest is None:
            raise RuntimeError("Session.best needs at least one value told.")
        fun, query, index, nfev = self._lowest
        return Best(query.point(index).reshape(self.shape), fun, nfev)

    @property
    def lowest(self) -> float:
        """`best.fun` without the point; inf before the first value."""
        return math.inf if self._lowest is None else self._lowest[0]

    @property
    def tally(self) -> Tally:
        """The counts so far, for `Session(method, state=..., tally=...)`; at a step boundary nothing is left out."""
        if self._lowest is None:
            raise RuntimeError("Session.tally needs at least one value told.")
        fun, query, index, nfev = self._lowest
        point = Query(query.origin, (query.offsets[index],))
        return Tally(self.shape, self.nfev, self.nit, self.failures, self.first, (fun, point, nfev))

    def ask(self, n: int | None = None) -> list[Point]:
        """Points of the current query that have not been handed out: all, or the next n."""
        if n is not None and n < 1:
            raise ValueError(f"Session.ask(n=...) must be at least 1; got {n}.")
        if self.query is None:
            return []
        start = self._handed
        self._handed = len(self._open_indices) if n is None else min(start + n, len(self._open_indices))
        chosen = range(start, self._handed)
        key = (*self.state.key, self._base)
        return [Point(self._base + j, self.query, self._open_indices[j], self.shape, key) for j in chosen]

    def tell(self, id: int, value: float) -> None:
        """Hand in the value of one asked point; a value that is not finite (`FAILED`) is a missing one."""
        j = id - self._base
        if self.query is None or not 0 <= j < self._handed or not self._awaited[j]:
            raise ValueError(f"Session.tell(id=...) must name an asked point that has no value yet; got {id}.")
        number = as_number(value)
        index = self._open_indices[j]
        self._awaited[j] = False
        self._values[index] = number
        self.nfev += 1
        if math.isnan(number):
            self.failures += 1
        elif number < self.lowest:
            self._lowest = (number, self.query, index, self.nfev)
        self._left -= 1
        if self._left == 0:
            self._advance()

    def where(self) -> str:
        """The suspended stack of the current step, outermost first: which line of which algorithm waits for values."""
        lines = [f"{type(self.method).__name__}, step {self.state.k}, {self.nfev} evaluations"]
        frame: Any = self._steps
        while frame is not None:
            if isinstance(frame, Delegate):
                frame = frame.steps
            elif isinstance(frame, Generator):
                code, line = frame.gi_code, frame.gi_frame.f_lineno if frame.gi_frame else 0  # type: ignore[attr-defined]
                lines.append(f"  {code.co_qualname}  {code.co_filename}:{line}")
                frame = frame.gi_yieldfrom  # type: ignore[attr-defined]
            else:
                break
        return "\n".join(lines)

    def _open(self, query: Query, known: dict[int, float]) -> None:
        """Make `query` the current one; `known` values need not be asked."""
        self.query = query
        n = len(query.offsets)
        self._values: Values = np.empty(n)
        for i, number in known.items():
            self._values[i] = number
        self._open_indices: Sequence[int] = [i for i in range(n) if i not in known] if known else range(n)
        self._left = len(self._open_indices)
        self._awaited = [True] * self._left
        self._base, self._handed = self.nfev, 0

    def _begin(self) -> None:
        """Start the next step, or end the run."""
        self._steps = None
        self.query = None
        if not self.method.done(self.state):
            self._steps = Asked(self.method.step(self.state), self.method)
            self._next(None)

    def _advance(self) -> None:
        """All values of the current query are in."""
        if self._steps is not None:
            self._next(self._values)
            return
        self.first = float(self._values[0])
        if math.isnan(self.first):
            self.query = None
            raise ValueError("f(x0) must be finite: no value could be had at the starting point x0.")
        self._begin()
        if self.query is not None and self.query.origin is self.state.x:
            at_origin = [i for i, offset in enumerate(self.query.offsets) if offset is None]
            self._open(self.query, dict.fromkeys(at_origin[:1], self.first))
            if self._left == 0:
                self._next(self._values)

    def _next(self, values: Values | None) -> None:
        """Send values into the step; open what it asks next, or finish it."""
        assert self._steps is not None
        try:
            query = self._steps.advance(values)
        except StopIteration as stop:
            self.state = stop.value
        else:
            self._open(query, known={})
            return
        self.nit += 1
        self._begin()


def as_vector(x0: ArrayLike, name: str = "x0") -> Vector:
    """x0 as a contiguous vector of its own: float32 stays float32, other real numbers become float64."""
    array = np.asarray(x0)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    if array.size == 0:
        raise ValueError(f"{name} must have at least one element; got shape {array.shape}.")
    x: NDArray[Any] = np.array(array, dtype=np.float32 if array.dtype == np.float32 else np.float64).ravel()
    if not np.isfinite(x).all():
        bad = int(np.flatnonzero(~np.isfinite(x))[0])
        raise ValueError(f"{name} must be finite; element {bad} is {x[bad]}.")
    return x


def as_number(value: object) -> float:
    """A told value as a float; anything infinite is nan, which is what missing looks like."""
    if type(value) is not float:
        array = np.asarray(math.nan if value is np.ma.masked else value)
        if array.size != 1 or array.dtype.kind not in "fiub":
            shown = f"shape {array.shape}" if array.size != 1 else f"{type(value).__name__} {value!r}"
            raise TypeError(f"the value of fun must be one real number; got {shown}.")
        value = float(array.reshape(())[()])
    number: float = value
    return number if math.isfinite(number) else math.nan


def root_key(rng: int | np.random.Generator | None) -> Key:
    """The key of a run: one integer, from a seed, a Generator, or fresh entropy."""
    if rng is None:
        return (secrets.randbits(63),)
    if isinstance(rng, np.random.Generator):
        return (int(rng.integers(2**63)),)
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and 0 <= rng < 2**64:
        return (int(rng),)
    raise ValueError(f"rng must be None, an integer in [0, 2**64) or a numpy Generator; got {rng!r}.")
