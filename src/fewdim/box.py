"""Bounds by a change of variables: x = inside(y) lies in the box for every y, and methods work on y.

    both bounds     x = m + r sin(y)                   m, r: middle and half width
    one bound       x = l + sqrt(1 + y^2) - 1          and mirrored
    none            x = y

It is smooth, so every method, pool and journal works as ever.  Where the minimum lies on a bound the slope along y
vanishes there with positive curvature: an active coordinate drops out of a sketch by itself.  A method that knows the
box may do better (`fewdim.methods.bounded`): it still asks in y, but thinks in x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
MARGIN = 1e-3  # of the half width (or of 1): how far inside a start on a bound is moved, where slopes along y are not 0


class Box(NamedTuple):
    """Lower and upper bounds in the shape of x; infinite where there is none."""

    low: Array
    high: Array

    @classmethod
    def of(cls, bounds: Any, x0: ArrayLike) -> Box:
        """From a `scipy.optimize.Bounds` or a pair (min, max) per coordinate; None is no bound."""
        x = np.asarray(x0, dtype=float)
        if hasattr(bounds, "lb"):
            low, high = np.broadcast_to(bounds.lb, x.shape), np.broadcast_to(bounds.ub, x.shape)
        else:
            pairs = list(bounds)
            if len(pairs) != x.size or any(len(pair) != 2 for pair in pairs):
                raise ValueError(f"minimize(bounds=...) must hold {x.size} pairs (min, max); got {len(pairs)} items.")
            low = np.array([-np.inf if a is None else a for a, _ in pairs], dtype=float).reshape(x.shape)
            high = np.array([np.inf if b is None else b for _, b in pairs], dtype=float).reshape(x.shape)
        wrong = np.flatnonzero(~(low < high))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"minimize(bounds=...) must have min < max everywhere; got [{low.flat[i]}, {high.flat[i]}] at {i}."
            )
        wrong = np.flatnonzero((x < low) | (x > high))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"minimize(x0=...) must lie within bounds; got {x.flat[i]} outside "
                f"[{low.flat[i]}, {high.flat[i]}] at {i}."
            )
        return cls(np.array(low, dtype=float), np.array(high, dtype=float))

    def inside(self, y: Array) -> Array:
        """The point of the box that y stands for, in the kind of y."""
        low, high, values = self.low, self.high, y.astype(float)
        both, below, above = self._kinds
        x = values.copy()
        middle, half = (low[both] + high[both]) / 2, (high[both] - low[both]) / 2
        x[both] = middle + half * np.sin(values[both])
        x[below] = low[below] + (np.hypot(1, values[below]) - 1)
        x[above] = high[above] - (np.hypot(1, values[above]) - 1)
        within: Array = np.clip(x, low, high).astype(y.dtype)
        return within

    def free(self, x: ArrayLike, margin: float = MARGIN) -> Array:
        """A y with inside(y) = x, but for coordinates on a bound: those start a little inside, if there is a margin."""
        given = np.asarray(x)
        kind = given.dtype if given.dtype.kind == "f" else np.dtype(float)
        values, low, high = given.astype(float), self.low, self.high
        both, below, above = self._kinds
        y = values.copy()
        middle, half = (low[both] + high[both]) / 2, (high[both] - low[both]) / 2
        y[both] = np.arcsin(np.clip((values[both] - middle) / half, margin - 1, 1 - margin))
        y[below] = np.sqrt((np.maximum(values[below] - low[below], margin) + 1) ** 2 - 1)
        y[above] = np.sqrt((np.maximum(high[above] - values[above], margin) + 1) ** 2 - 1)
        return y.astype(kind)

    @property
    def _kinds(self) -> tuple[Array, Array, Array]:
        below, above = np.isfinite(self.low), np.isfinite(self.high)
        return below & above, below & ~above, above & ~below

    @property
    def data(self) -> list[Any]:
        """As JSON: two numbers where all coordinates have the same bounds, two lists where not."""
        return [float(v.flat[0]) if (v == v.flat[0]).all() else v.ravel().tolist() for v in self]

    @classmethod
    def read(cls, data: list[Any], shape: tuple[int, ...]) -> Box:
        """From `data`."""
        low, high = (np.broadcast_to(np.array(v), shape) if np.ndim(v) == 0 else np.reshape(v, shape) for v in data)
        return cls(low, high)


class Boxed:
    """fun seen from y: what a method minimises.  The box is broadcast over rows of points."""

    def __init__(self, fun: Callable[..., Any], box: Box, vectorized: bool) -> None:
        self.wrapped, self.box, self.vectorized = fun, box, vectorized

    def __call__(self, y: Array, *args: Any, **key: Any) -> Any:
        if self.vectorized:
            return self.wrapped(np.array([self.box.inside(row) for row in y]), *args, **key)
        return self.wrapped(self.box.inside(y), *args, **key)


def boxed(fun: Callable[..., Any], box: Box | None, vectorized: bool) -> Callable[..., Any]:
    """`fun` seen from y; `fun` itself without a box."""
    return fun if box is None else Boxed(fun, box, vectorized)
