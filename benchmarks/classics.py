"""Functions of More, Garbow and Hillstrom (ACM TOMS 7, 1981), as residuals: f is their sum of squares.

Numbers in comments are the paper's.  Extended versions repeat a small function along x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.problem import Problem, Vector, stored_minimum

Residuals = Callable[[Any], Any]


def _stack(*parts: Any) -> Any:
    return np.concatenate([np.atleast_1d(part) for part in parts])


def rosenbrock(x: Any) -> Any:  # (1), (21)
    return _stack(10 * (x[1::2] - x[::2] ** 2), 1 - x[::2])


def chained_rosenbrock(x: Any) -> Any:
    return _stack(10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1])


def freudenstein_roth(x: Any) -> Any:  # (2)
    a, b = x
    return _stack(-13 + a + ((5 - b) * b - 2) * b, -29 + a + ((b + 1) * b - 14) * b)


def brown_badly_scaled(x: Any) -> Any:  # (4)
    return _stack(x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2)


def beale(x: Any) -> Any:  # (5)
    return np.array([1.5, 2.25, 2.625]) - x[0] * (1 - x[1] ** np.arange(1, 4))


def jennrich_sampson(x: Any) -> Any:  # (6)
    i = np.arange(1, 11)
    with np.errstate(over="ignore"):
        return 2 + 2 * i - (np.exp(i * x[0]) + np.exp(i * x[1]))


def helical_valley(x: Any) -> Any:  # (7)
    angle = np.arctan2(x[1].real, x[0].real) / (2 * np.pi)
    return _stack(10 * (x[2] - 10 * angle), 10 * (np.sqrt(x[0] ** 2 + x[1] ** 2) - 1), x[2])


BARD = np.array([0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39])


def bard(x: Any) -> Any:  # (8)
    u = np.arange(1, 16)
    v = 16 - u
    with np.errstate(divide="ignore", invalid="ignore"):
        return BARD - (x[0] + u / (v * x[1] + np.minimum(u, v) * x[2]))


def box(x: Any) -> Any:  # (12)
    t = 0.1 * np.arange(1, 11)
    with np.errstate(over="ignore"):
        return np.exp(-t * x[0]) - np.exp(-t * x[1]) - x[2] * (np.exp(-t) - np.exp(-10 * t))


def powell_singular(x: Any) -> Any:  # (13), (22)
    a, b, c, e = x[::4], x[1::4], x[2::4], x[3::4]
    return _stack(a + 10 * b, np.sqrt(5) * (c - e), (b - 2 * c) ** 2, np.sqrt(10) * (a - e) ** 2)


def wood(x: Any) -> Any:  # (14), repeated
    a, b, c, e = x[::4], x[1::4], x[2::4], x[3::4]
    root = np.sqrt(10)
    first = _stack(10 * (b - a**2), 1 - a, np.sqrt(90) * (e - c**2), 1 - c)
    return _stack(first, root * (b + e - 2), (b - e) / root)


KOWALIK_Y = np.array([0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246])
KOWALIK_U = np.array([4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])


def kowalik_osborne(x: Any) -> Any:  # (15)
    u = KOWALIK_U
    with np.errstate(divide="ignore", invalid="ignore"):
        return KOWALIK_Y - x[0] * (u * u + u * x[1]) / (u * u + u * x[2] + x[3])


def brown_dennis(x: Any) -> Any:  # (16)
    t = np.arange(1, 21) / 5
    return (x[0] + t * x[1] - np.exp(t)) ** 2 + (x[2] + x[3] * np.sin(t) - np.cos(t)) ** 2


def biggs(x: Any) -> Any:  # (18)
    t = 0.1 * np.arange(1, 14)
    y = np.exp(-t) - 5 * np.exp(-10 * t) + 3 * np.exp(-4 * t)
    with np.errstate(over="ignore", invalid="ignore"):
        return x[2] * np.exp(-t * x[0]) - x[3] * np.exp(-t * x[1]) + x[5] * np.exp(-t * x[4]) - y


def penalty(x: Any) -> Any:  # (23)
    return _stack(np.sqrt(1e-5) * (x - 1), (x * x).sum() - 0.25)


def variably_dimensioned(x: Any) -> Any:  # (25)
    s = (np.arange(1, x.size + 1) * (x - 1)).sum()
    return _stack(x - 1, s, s * s)


def trigonometric(x: Any) -> Any:  # (26)
    c = np.cos(x)
    return x.size - c.sum() + np.arange(1, x.size + 1) * (1 - c) - np.sin(x)


def discrete_boundary(x: Any) -> Any:  # (28)
    h = 1 / (x.size + 1)
    t = h * np.arange(1, x.size + 1)
    near = np.pad(x, 1)
    return 2 * x - near[:-2] - near[2:] + h * h * (x + t + 1) ** 3 / 2


def discrete_integral(x: Any) -> Any:  # (29)
    h = 1 / (x.size + 1)
    t = h * np.arange(1, x.size + 1)
    cube = (x + t + 1) ** 3
    below = np.cumsum(t * cube)
    above = np.cumsum(((1 - t) * cube)[::-1])[::-1] - (1 - t) * cube
    return x + h / 2 * ((1 - t) * below + t * above)


def broyden_tridiagonal(x: Any) -> Any:  # (30)
    near = np.pad(x, 1)
    return (3 - 2 * x) * x - near[:-2] - 2 * near[2:] + 1


def broyden_banded(x: Any) -> Any:  # (31)
    near = np.pad(x * (1 + x), (5, 1))
    band = sum(near[k : k + x.size] for k in range(7)) - near[5 : 5 + x.size]
    return x * (2 + 5 * x * x) + 1 - band


def _grid(d: int) -> Vector:
    t = np.arange(1, d + 1) / (d + 1)
    return t * (t - 1)


# name: residuals, the paper's start in d dimensions, the minimum (None: found numerically, in minima.json)
CLASSICS: dict[str, tuple[Residuals, Callable[[int], Any], float | None]] = {
    "rosenbrock": (rosenbrock, lambda d: np.tile([-1.2, 1.0], d // 2), 0.0),
    "chained-rosenbrock": (chained_rosenbrock, lambda d: np.tile([-1.2, 1.0], d // 2), 0.0),
    "freudenstein-roth": (freudenstein_roth, lambda d: [0.5, -2.0], None),
    "brown-badly-scaled": (brown_badly_scaled, lambda d: [1.0, 1.0], 0.0),
    "beale": (beale, lambda d: [1.0, 1.0], 0.0),
    "jennrich-sampson": (jennrich_sampson, lambda d: [0.3, 0.4], None),
    "helical-valley": (helical_valley, lambda d: [-1.0, 0.0, 0.0], 0.0),
    "bard": (bard, lambda d: [1.0, 1.0, 1.0], None),
    "box": (box, lambda d: [0.0, 10.0, 20.0], 0.0),
    "powell-singular": (powell_singular, lambda d: np.tile([3.0, -1.0, 0.0, 1.0], d // 4), 0.0),
    "wood": (wood, lambda d: np.tile([-3.0, -1.0, -3.0, -1.0], d // 4), 0.0),
    "kowalik-osborne": (kowalik_osborne, lambda d: [0.25, 0.39, 0.415, 0.39], None),
    "brown-dennis": (brown_dennis, lambda d: [25.0, 5.0, -5.0, -1.0], None),
    "biggs": (biggs, lambda d: [1.0, 2.0, 1.0, 1.0, 1.0, 1.0], 0.0),
    "penalty": (penalty, lambda d: np.arange(1.0, d + 1), None),
    "variably-dimensioned": (variably_dimensioned, lambda d: 1 - np.arange(1, d + 1) / d, 0.0),
    "trigonometric": (trigonometric, lambda d: np.full(d, 1 / d), 0.0),
    "discrete-boundary": (discrete_boundary, _grid, 0.0),
    "discrete-integral": (discrete_integral, _grid, 0.0),
    "broyden-tridiagonal": (broyden_tridiagonal, lambda d: np.full(d, -1.0), 0.0),
    "broyden-banded": (broyden_banded, lambda d: np.full(d, -1.0), 0.0),
}


def classic(name: str, d: int) -> Problem:
    """A function of the paper in d dimensions, from its standard start."""
    residuals, start, minimum = CLASSICS[name]
    full = f"{name}-{d}"

    def fun(x: Vector) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            r = residuals(x)
            return float(r @ r)

    x0 = np.array(start(d), dtype=np.float64)
    return Problem(full, fun, x0, stored_minimum(full) if minimum is None else minimum, "classic", residuals=residuals)
