"""A method that sees the function through an oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol

from fewdim.core import Delegate, Method, Query, S, Steps, T, Values
from fewdim.directions import Key, Vector

STREAM = 2**32  # the part of a step's key that names the randomness of its oracle


class Oracle(Protocol):
    """Turns a generator that queries the oracle's function into one that queries f; `key` names its randomness."""

    def __call__(self, steps: Steps[T], key: Key) -> Steps[T]: ...


class _Changed(Delegate[T]):
    """Values changed on their way in, knowing the query that they answer."""

    def __init__(self, steps: Steps[T], change: Callable[[Query, Values], Values]) -> None:
        super().__init__(steps)
        self.change = change
        self.query: Query | None = None

    def advance(self, values: Values | None) -> Query:
        if values is not None and self.query is not None:
            values = self.change(self.query, values)
        self.query = super().advance(values)
        return self.query


def changed_values(steps: Steps[T], change: Callable[[Query, Values], Values]) -> Steps[T]:
    """The same queries, with `change(query, values)` told instead of the values."""
    delegate: Any = _Changed(steps, change)
    result: T = yield from delegate
    return result


@dataclass(frozen=True)
class Through(Generic[S]):
    """`method`, with every value that it is told passed through `oracle`.

    >>> import numpy as np
    >>> from fewdim import RandomPursuit, minimize
    >>> from fewdim.oracles import Through, UniformNoise
    >>> blurred = Through(RandomPursuit(noise=1e-3), UniformNoise(1e-3))
    >>> bool(minimize(lambda x: x @ x, np.ones(20), method=blurred, maxfev=1000, rng=0).fun < 0.5)
    True
    """

    method: Method[S]
    oracle: Oracle

    def start(self, x: Vector, key: Key) -> S:
        return self.method.start(x, key)

    def step(self, state: S) -> Steps[S]:
        return self.oracle(self.method.step(state), (*state.key, state.k, STREAM))

    def done(self, state: S) -> bool:
        return self.method.done(state)
