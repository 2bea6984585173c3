"""Bounds by a change of variables: x = inside(y) lies in the box for every y, and methods work on y.

    both bounds     x = m + w sin(y) / 2               m, w: middle and width; counted from a bound that is near
    one bound       x = l + sqrt(1 + y^2) - 1          and mirrored
    none            x = y
    min = max       x = min                            y has no such coordinate: methods know of those that move only

It is smooth, so every method, pool and journal works as ever.  Where the minimum lies on a bound the slope along y
vanishes there with positive curvature: an active coordinate drops out of a sketch by itself.  A bound beyond 1e9 is
kept by clipping alone, since x would have too few digits elsewhere.  A method that knows the box may do better
(`fewdim.methods.bounded`): it still asks in y, but thinks in x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
MARGIN = 1e-3  # of the width (or of 1): how far inside a start on a bound is moved, where slopes along y are not 0
ON = 1e-10  # of the width, of a single bound, or of the size of x: closer to a bound is on it
NEAR = 0.01  # of the width, of x and of 1: closer to a bound is close
FARTHEST = 1e9  # a bound beyond is kept by clipping


class Box(NamedTuple):
    """Lower and upper bounds in the shape of x; infinite where there is none."""

    low: Array
    high: Array

    @classmethod
    def of(cls, bounds: Any, x0: ArrayLike) -> Box:
        """From a `scipy.optimize.Bounds` or a pair (min, max) per coordinate; None is no bound."""
        x = np.asarray(x0, dtype=float)
        if hasattr(bounds, "lb"):
            sides = np.asarray(bounds.lb, dtype=float), np.asarray(bounds.ub, dtype=float)
            if any(side.shape not in ((), (1,), x.shape) for side in sides):
                shapes = " and ".join(str(side.shape) for side in sides)
                raise ValueError(f"minimize(bounds=...) must have the shape of x0, {x.shape}; got {shapes}.")
            low, high = (np.broadcast_to(side, x.shape) for side in sides)
        else:
            pairs = list(bounds)
            if len(pairs) != x.size or any(len(pair) != 2 for pair in pairs):
                raise ValueError(f"minimize(bounds=...) must hold {x.size} pairs (min, max); got {len(pairs)} items.")
            low = np.array([-np.inf if a is None else a for a, _ in pairs], dtype=float).reshape(x.shape)
            high = np.array([np.inf if b is None else b for _, b in pairs], dtype=float).reshape(x.shape)
        wrong = np.flatnonzero(~(low <= high) | (low == np.inf) | (high == -np.inf))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"minimize(bounds=...) must have min <= max everywhere; got [{low.flat[i]}, {high.flat[i]}] at {i}."
            )
        if not (low < high).any():
            raise ValueError(f"minimize(bounds=...) must let a coordinate move; got min = max for all {x.size}.")
        wrong = np.flatnonzero((low < high) & ((x < low) | (x > high)))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"minimize(x0=...) must lie within bounds; got {x.flat[i]} outside "
                f"[{low.flat[i]}, {high.flat[i]}] at {i}."
            )
        return cls(np.array(low, dtype=float), np.array(high, dtype=float))

    @property
    def moving(self) -> Array:
        """Which coordinates do; the others are fixed where their bounds meet."""
        return np.asarray(self.low < self.high)

    @property
    def flat(self) -> Box:
        """The bounds of the coordinates that move, in one row: the box that a method works in."""
        return Box(self.low[self.moving], self.high[self.moving])

    def inside(self, y: Array) -> Array:
        """The point of the box that y stands for, in the kind of y."""
        moving = self.moving
        if not moving.all():
            x = self.low.astype(y.dtype)
            x[moving] = self.flat.inside(y)
            return x
        low, high, values = self.low, self.high, y.astype(float)
        both, below, above = self._kinds
        x = values.copy()
        width, angle = high[both] - low[both], values[both]
        up, down = width * np.sin(angle / 2 + math.pi / 4) ** 2, width * np.cos(angle / 2 + math.pi / 4) ** 2
        ends = np.where(up < down, low[both] + up, high[both] - down)
        middle = (low[both] + high[both]) / 2
        x[both] = np.where(np.minimum(up, down) < width / 4, ends, middle + width / 2 * np.sin(angle))
        x[below] = low[below] + _rise(values[below])
        x[above] = high[above] - _rise(values[above])
        within: Array = np.clip(x, low, high).astype(y.dtype)
        if y.dtype != np.dtype(float):  # rounding must not lead outside
            within = np.where(within > high, np.nextafter(within, np.array(-np.inf, y.dtype)), within)
            within = np.where(within < low, np.nextafter(within, np.array(np.inf, y.dtype)), within)
        return within

    def free(self, x: ArrayLike, margin: float = MARGIN) -> Array:
        """A y with inside(y) = x, but for coordinates on a bound: those start a little inside, if there is a margin."""
        given, moving = np.asarray(x), self.moving
        if not moving.all():
            return self.flat.free(given[moving], margin)
        kind = given.dtype if given.dtype.kind == "f" else np.dtype(float)
        values, low, high = given.astype(float), self.low, self.high
        both, below, above = self._kinds
        y, width = values.copy(), high[both] - low[both]
        near = ON * width
        up = _off(values[both] - low[both], near, margin * width)
        down = _off(high[both] - values[both], near, margin * width)
        ends = 2 * np.arcsin(np.sqrt(np.minimum(up, down) / width)) - math.pi / 2
        middle = np.arcsin(np.clip((2 * values[both] - low[both] - high[both]) / width, -1, 1))
        y[both] = np.where(np.minimum(up, down) < width / 4, np.where(up < down, ends, -ends), middle)
        for side, rise in ((below, values[below] - low[below]), (above, high[above] - values[above])):
            near = ON * np.abs(low[below] if side is below else high[above])
            # twice what is near: a start that has been moved is near no more
            rise = _off(rise, near, np.where(margin > 0, np.maximum(margin, 2 * near), 0.0))
            y[side] = np.sqrt(rise) * np.sqrt(rise + 2)
        return y.astype(kind)

    def off(self, y: Array) -> Array:
        """The point y itself, but for coordinates on a bound: those a little inside."""
        x, (both, below, above) = self.inside(y), self._kinds
        rises, falls = x.astype(float) - self.low, self.high - x.astype(float)
        on = both & (np.minimum(rises, falls) <= ON * self.width)
        on |= (below & (rises <= ON * np.abs(self.low))) | (above & (falls <= ON * np.abs(self.high)))
        return np.where(on, self.free(x), y)

    def touched(self, y: Array) -> bool:
        """Whether a coordinate has come close to a bound, or started there."""
        x = self.inside(y).astype(float)
        near = NEAR * np.minimum(self.width, np.maximum(1.0, np.abs(x)))
        return bool(((x < self.low + near) | (x > self.high - near)).any())

    @property
    def width(self) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(self.high - self.low)

    @property
    def _kinds(self) -> tuple[Array, Array, Array]:
        below, above = np.abs(self.low) <= FARTHEST, np.abs(self.high) <= FARTHEST
        return below & above, below & ~above, above & ~below

    @property
    def data(self) -> list[Any]:
        """As JSON: numbers where all coordinates have the same bound, lists in the shape of x where not."""
        return [float(v.flat[0]) if (v == v.flat[0]).all() else v.tolist() for v in self]

    @classmethod
    def read(cls, data: list[Any], shape: tuple[int, ...]) -> Box:
        """From `data`, and the shape of x where that tells none."""
        sides = [np.array(v, dtype=float) for v in data]
        shape = next((side.shape for side in sides if side.ndim), shape)
        return cls(*(np.broadcast_to(side, shape) for side in sides))


def _rise(y: Array) -> Array:
    """sqrt(1 + y^2) - 1 to all digits."""
    return np.asarray(y * (y / (1 + np.hypot(1, y))))


def _off(distance: Array, near: Array, margin: Array) -> Array:
    """The distance from a bound, or the margin where it is near one."""
    return np.where(distance <= near, np.maximum(margin, distance), distance)


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
