"""Quadratics of a given spectrum, and Rosenbrock's valley."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Problem:
    """A function, where to start, its minimum, and its spectrum if that is the same everywhere."""

    name: str
    fun: Callable[[NDArray[Any]], float]
    x0: NDArray[np.float64]
    minimum: float
    spectrum: NDArray[np.float64] | None = None

    @property
    def d(self) -> int:
        return self.x0.size

    def target(self, gap: float) -> float:
        """The value at which (f - f*) / (f(x0) - f*) is `gap`."""
        return self.minimum + gap * (self.fun(self.x0) - self.minimum)


def power_law(d: int, decay: float) -> NDArray[np.float64]:
    """The eigenvalues i^-decay, i = 1..d."""
    spectrum: NDArray[np.float64] = np.arange(1, d + 1, dtype=np.float64) ** -decay
    return spectrum


def quadratic(spectrum: ArrayLike, *, rotate: int | None = None, minimum: float = 0.0) -> Problem:
    """Minimum + 1/2 sum l_i z_i^2 with z = Q x, from z = (1, .., 1); Q is the identity, or random with seed `rotate`.

    >>> quadratic([4.0, 1.0]).fun(np.ones(2))
    2.5
    """
    eigenvalues = np.asarray(spectrum, dtype=np.float64)
    d = eigenvalues.size
    if rotate is None:
        return Problem(
            f"quadratic-{d}", lambda x: minimum + 0.5 * float((x * x) @ eigenvalues), np.ones(d), minimum, eigenvalues
        )
    q = rotation(d, rotate)
    return Problem(
        f"quadratic-{d}-rotated",
        lambda x: minimum + 0.5 * float((q @ x) ** 2 @ eigenvalues),
        q.T @ np.ones(d),
        minimum,
        eigenvalues,
    )


def rotation(d: int, seed: int) -> NDArray[np.float64]:
    """A random orthogonal matrix."""
    q: NDArray[np.float64] = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    return q


def rosenbrock(d: int) -> Problem:
    """The chained valley, from (-1.2, 1, -1.2, 1, ...)."""
    x0 = np.ones(d)
    x0[::2] = -1.2
    return Problem(
        f"rosenbrock-{d}",
        lambda x: float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)),
        x0,
        0.0,
    )
