"""Baselines of the literature that no package offers in this form; written as their papers have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.problem import Vector

Fun = Callable[[Any], float]


def _first_step(x0: Vector) -> float:  # as `peers.first_step`
    return 0.3 * (float(np.sqrt((x0 * x0).mean())) or 1.0)


def spsa(fun: Fun, x0: Vector, budget: int, seed: int) -> None:
    """Spall's gains: a_k = a/(k + 1 + A)^0.602, c_k = c/(k + 1)^0.101, A a tenth of the steps.

    c is a tenth of the first step; a makes the first move, by the mean of ten slopes, a tenth of it per coordinate.
    """
    rng = np.random.default_rng(seed)
    x, step = x0.copy(), _first_step(x0)
    c, A = 0.1 * step, 0.1 * budget / 2

    def slope(x: Vector, radius: float) -> tuple[float, Vector]:
        u = rng.choice([-1.0, 1.0], x.size)
        return (fun(x + radius * u) - fun(x - radius * u)) / (2 * radius), u

    size = np.mean([abs(slope(x, c)[0]) for _ in range(10)])
    a = 0.1 * step / max(float(size), 1e-300) * (1 + A) ** 0.602
    for k in range(budget):
        g, u = slope(x, c / (k + 1) ** 0.101)
        x = x - a / (k + 1 + A) ** 0.602 * g * u


def random_pursuit(fun: Fun, x0: Vector, budget: int, seed: int) -> None:
    """Stich, Mueller and Gaertner (2013): a line search along a direction uniform on the sphere, again and again.

    The line search is Brent's, to one part in ten, bracketed from the length of the last step.
    """
    rng = np.random.default_rng(seed)
    x, f_x, length = x0.copy(), fun(x0), _first_step(x0) * x0.size**0.5
    while True:
        u = rng.standard_normal(x.size)
        u /= np.linalg.norm(u)
        line = minimize_scalar(lambda t, x=x, u=u: fun(x + t * u), bracket=(0.0, length), options={"xtol": 0.1})
        if line.fun < f_x:
            x, f_x, length = x + line.x * u, line.fun, max(abs(line.x), 1e-12 * length)
        else:
            length = max(0.5 * length, 1e-12)


def random_gradient(fun: Fun, x0: Vector, budget: int, seed: int) -> None:
    """Nesterov and Spokoiny (2017): x - h (f(x + r u) - f(x - r u)) / (2 r) u with Gaussian u, a fixed h and r.

    h = 1/(3 T), T the mean of ten curvatures u'Au at the start, since h must be below 1/(tr A + 2 L) and 2 L <= 2 tr A;
    r is 1e-3 of the first step.
    """
    rng = np.random.default_rng(seed)
    x, f_x, step = x0.copy(), fun(x0), _first_step(x0)
    seen = []
    for _ in range(10):
        u = rng.standard_normal(x.size)
        seen.append(abs(fun(x + 0.1 * step * u) - 2 * f_x + fun(x - 0.1 * step * u)) / (0.1 * step) ** 2)
    h, r = 1 / (3 * max(float(np.mean(seen)), 1e-300)), 1e-3 * step
    while True:
        u = rng.standard_normal(x.size)
        x = x - h * (fun(x + r * u) - fun(x - r * u)) / (2 * r) * u
