"""What a run's own values tell about slope, curvature and step, found by replaying it; nothing is evaluated.

A random direction u has E u u' = I, so the mean square of slopes along such directions estimates |g|^2 and the mean of
second differences the trace of the Hessian, whatever the method that asked.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewdim.core import Query, Values
from fewdim.directions import Along, Direction, Vector
from fewdim.journal import Journal
from fewdim.rows import JournalError
from fewdim.session import Session

ROUND_OFF = 1e-12  # of f: smaller second differences are rounding
SMOOTH = 0.8  # weight of the past in the running means, for each number that is new
ENOUGH = 8  # numbers that are a mean by themselves
Curve = tuple[list[int], list[float]]
Search = dict[int, list[tuple[float, float, Vector]]]  # by identity of a vector: how far, f - f(x), the vector


@dataclass
class Diagnostics:
    """Curves by name (evaluations and numbers), the steps, the noise level, curvatures along remembered steps."""

    curves: dict[str, Curve] = field(default_factory=lambda: defaultdict(lambda: ([], [])))
    nit: int = 0
    noise: float | None = None
    ritz: list[float] = field(default_factory=list)

    def add(self, name: str, nfev: int, number: float) -> None:
        """Put a number on a curve; what is not positive and finite has no place on a logarithmic scale."""
        if math.isfinite(number) and number > 0:
            counts, numbers = self.curves[name]
            counts.append(nfev)
            numbers.append(number)


def diagnose(journal: Journal) -> Diagnostics | str:
    """Replay a journal and look; a sentence where that cannot be done."""
    watcher = Watcher()
    try:
        session = journal.replay(watch=watcher)
    except (ValueError, JournalError) as error:
        return f"The run cannot be replayed from its file: {error}"
    found, noise = watcher.found, _inner(session.state, "noise")
    found.nit, found.noise = session.nit, None if noise is None or not math.isfinite(noise) else float(noise)
    found.ritz = _ritz(_inner(session.state, "memory"))
    return found


class Watcher:
    """Looks at each query of a run as it is replayed."""

    def __init__(self) -> None:
        self.found, self.trace, self.power = Diagnostics(), math.nan, math.nan
        self.search: Search = defaultdict(list)
        self.steps = 0

    def __call__(self, state: Any, query: Query, values: Values, session: Session[Any]) -> None:
        found, nfev = self.found, session.nfev
        f_x = math.nan if query.origin is not state.x else _value(state) if self.steps else session.first
        slopes, curvatures = _seen(query, values, f_x, self.trace)
        _note(self.search, query, values, f_x)
        if curvatures.size:
            self.trace = _mean(self.trace, curvatures)
            found.add("curvature", nfev, self.trace)
        if slopes.size:
            self.power = _mean(self.power, slopes**2)
            found.add("slope", nfev, math.sqrt(self.power))
        if session.nit > self.steps:
            found.add("bend", nfev, _bend(self.search))
            found.add("step", nfev, float(np.linalg.norm(session.state.x - state.x)))
            self.search, self.steps = defaultdict(list), session.nit


def _mean(past: float, now: Values) -> float:
    """A running mean that the past has the less weight in the more there is now, and none from ENOUGH on."""
    weight = 0.0 if math.isnan(past) or now.size >= ENOUGH else SMOOTH**now.size
    return (weight * past if weight else 0.0) + (1 - weight) * float(now.mean())


def _along(query: Query, told: Values) -> Iterator[tuple[Along, float]]:
    """The values of a query along directions, as far as there are any away from the origin."""
    for offset, fun in zip(query.offsets, told, strict=True):
        if isinstance(offset, Along) and offset.scale and math.isfinite(fun):
            yield offset, float(fun)


def _note(search: Search, query: Query, told: Values, f_x: float) -> None:
    """Keep the values along vectors that a method holds, such as the direction it searches."""
    for offset, fun in _along(query, told):
        if not isinstance(offset.direction, Direction) and math.isfinite(f_x):
            search[id(offset.direction)].append((offset.scale, fun - f_x, offset.direction))


def _bend(search: Search) -> float:
    """The curvature a unit of length along the vector searched last, by the parabola through two values and f(x)."""
    for ends in reversed(search.values()):
        (a, f_a, v), (b, f_b, _) = ends[0], ends[-1]
        if a != b and v.any():
            return 2 * (f_b / b - f_a / a) / (b - a) / float(np.vdot(v, v))
    return math.nan


def _seen(query: Query, told: Values, f_x: float, trace: float) -> tuple[Values, Values]:
    """Slopes and curvatures along the random directions of a query."""
    d = query.origin.size
    lines: dict[Direction, list[tuple[float, float]]] = defaultdict(list)
    for offset, fun in zip(query.offsets, told, strict=True):
        f_x = float(fun) if offset is None and math.isfinite(fun) else f_x
    for along, value in _along(query, told):
        if isinstance(along.direction, Direction):
            lines[along.direction].append((along.scale, value))
    slopes, curvatures = [], []
    for u, ends in lines.items():
        size = math.sqrt(d) if u.law == "axis" else 1.0  # a unit vector is sqrt(d) too short for E u u' = I
        if len(ends) == 2 and ends[0][0] == -ends[1][0]:
            (r, one), (_, other) = ends
            slopes.append(size * (one - other) / (2 * r))
            second = one + other - 2 * f_x
            if abs(second) > ROUND_OFF * abs(f_x):  # false for nan
                curvatures.append(size**2 * second / r**2)
        elif len(ends) == 1 and math.isfinite(f_x):
            r, one = ends[0]
            bend = 0.0 if math.isnan(trace) else trace * r / (2 * size**2)
            slopes.append(size * ((one - f_x) / r - bend))
    return np.array(slopes), np.array(curvatures)


def _inner(state: Any, name: str) -> Any:
    """An attribute of a state, or of the state that it holds."""
    while state is not None:
        if hasattr(state, name):
            return getattr(state, name)
        state = getattr(state, "inner", None)
    return None


def _value(state: Any) -> float:
    value = _inner(state, "f_x")
    return math.nan if value is None else float(value)


def _ritz(memory: Any) -> list[float]:
    """Curvatures that the remembered steps span: with S A S' = I they are the inverse eigenvalues of S S'."""
    if not isinstance(memory, tuple) or not memory:
        return []
    S = np.array(memory, dtype=np.float64)
    sizes = np.linalg.eigvalsh(S @ S.T)
    return [float(1 / size) for size in sizes if size > 1e-12 * sizes[-1]]
