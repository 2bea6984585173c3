"""Applications: parameters and controls of simulated systems, inverse problems, shapes of least energy.

They came after the default; one rule of it was made with a view to them (`ConjugateSketchState.looks_anew`).  As their
minimum counts the lowest value known (`benchmarks/minima.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_banded
from scipy.ndimage import gaussian_filter
from scipy.signal import lfilter

from benchmarks.fits import Application
from benchmarks.problem import Vector

Array = NDArray[Any]


def integrate(rates: Callable[[Array], Array], y: Array, span: float, steps: int) -> Array:
    """Runge and Kutta's method: y at all steps."""
    h, seen = span / steps, [y]
    for _ in range(steps):
        a = rates(y)
        b = rates(y + 0.5 * h * a)
        c = rates(y + 0.5 * h * b)
        y = y + h / 6 * (a + 2 * b + 2 * c + rates(y + h * c))
        seen.append(y)
    return np.array(seen)


def predators() -> Application:
    """Rates of Lotka and Volterra's equations from counts with an error of 2 %."""

    def simulated(p: Vector) -> Array:
        a, b, c, e = np.exp(p)
        return integrate(
            lambda y: np.array([a * y[0] - b * y[0] * y[1], e * y[0] * y[1] - c * y[1]]), np.array([10.0, 5]), 6, 120
        )[::6]

    seen = simulated(np.log([1.1, 0.12, 0.9, 0.05]))
    seen *= 1 + 0.02 * np.random.default_rng(0).standard_normal(seen.shape)

    def fun(p: Vector) -> float:
        return float(((np.log(np.maximum(simulated(p), 1e-9)) - np.log(seen)) ** 2).mean())

    return fun, np.log([0.8, 0.15, 0.6, 0.08])


def arm() -> Application:
    """The angles of twelve joints that lead a hand to a place, with soft limits."""
    target = np.array([0.9, 0.7])

    def fun(q: Vector) -> float:
        a = np.cumsum(q)
        off = np.array([np.cos(a).mean() * 2, np.sin(a).mean() * 2]) - target
        return float(100 * off @ off + 0.1 * q[1:] @ q[1:] + np.exp(8 * (np.abs(q) - 1.2)).sum())

    return fun, 0.1 + 0.05 * np.random.default_rng(8).standard_normal(12)


def oscillator() -> Application:
    """The control of van der Pol's oscillator, in 25 pieces."""

    def fun(u: Vector) -> float:
        a, b, cost = 1.0, 0.0, 0.0
        for force in u.tolist():
            for _ in range(4):
                a, b = a + 0.05 * b, b + 0.05 * ((1 - a * a) * b - a + force)
                cost += 0.05 * (a * a + b * b + force * force)
            if not cost < 1e10:
                return math.nan
        return cost + 5 * (a * a + b * b)

    return fun, np.zeros(25)


def pendulum(n: int) -> Application:
    """The force on a cart, in n pieces, that swings its pendulum up."""
    dt = 5 / n

    def fun(u: Vector) -> float:
        angle, turn, place, speed, cost = math.pi, 0.0, 0.0, 0.0, 0.0
        for force in (10 * u).tolist():
            s, c = math.sin(angle), math.cos(angle)
            push = (force + s * (0.15 * turn * turn - 2.94 * c)) / (1 + 0.3 * s * s)
            turn, speed = turn + dt * (9.8 * s - push * c) / 0.5, speed + dt * push
            angle, place = angle + dt * turn, place + dt * speed
            cost += dt * (0.01 * force * force + 0.1 * place * place)
            if not abs(turn) < 1e3:
                return math.nan
        return cost + 20 * (1 - math.cos(angle)) + turn * turn + place * place + speed * speed

    return fun, 0.05 * np.sin(15 * np.arange(n) / n)


def crane(n: int) -> Application:
    """The acceleration of a crane, in n pieces, that moves a hanging load and leaves it at rest."""

    def fun(u: Vector) -> float:
        place, speed, angle, turn, cost = 0.0, 0.0, 0.0, 0.0, 0.0
        for a in u.tolist():
            swing = -9.8 * math.sin(angle) - a * math.cos(angle)
            place, speed, angle, turn = place + 0.05 * speed, speed + 0.05 * a, angle + 0.05 * turn, turn + 0.05 * swing
            cost += 0.05 * (0.1 * a * a + angle * angle)
            if not abs(angle) < 1e8:
                return math.nan
        return cost + 10 * ((place - 5) ** 2 + speed * speed + angle * angle + turn * turn)

    return fun, np.zeros(n)


def tracking(n: int) -> Application:
    """The input of a linear system whose output is to follow a sine."""
    target = np.sin(0.02 * np.arange(n))

    def fun(u: Vector) -> float:
        y = lfilter([0, 0.01, 0.005], [1, -1.9, 0.905], u)
        return float(((y - target) ** 2).mean() + 1e-4 * (u @ u) / n)

    return fun, np.zeros(n)


def cluster(start: Array, shake: float) -> Application:
    """The energy of Lennard-Jones atoms, from shaken places."""
    pairs = np.triu_indices(len(start), 1)

    def fun(x: Vector) -> float:
        p = x.reshape(-1, 3)
        s = ((p[pairs[0]] - p[pairs[1]]) ** 2).sum(axis=1) ** -3.0
        return float(4 * (s * s - s).sum())

    return fun, (start + shake * np.random.default_rng(start.size).standard_normal(start.shape)).ravel()


def icosahedron() -> Array:
    """Thirteen atoms: one within twelve."""
    long, signs = 0.3 * (1 + math.sqrt(5)), (1.0, -1.0)
    corners = [[0, 0.6 * s, t * long] for s in signs for t in signs]
    return np.array([np.roll(corner, k) for corner in corners for k in range(3)] + [np.zeros(3)])


def scaling(n: int) -> Application:
    """Places in the plane whose distances are those of n points in space."""
    rng = np.random.default_rng(23)
    p, (i, j) = rng.standard_normal((n, 3)), np.triu_indices(n, 1)
    wanted = np.sqrt(((p[i] - p[j]) ** 2).sum(axis=1))

    def fun(x: Vector) -> float:
        q = x.reshape(n, 2)
        return float(((np.sqrt(((q[i] - q[j]) ** 2).sum(axis=1) + 1e-12) - wanted) ** 2).mean())

    return fun, rng.standard_normal(2 * n)


def path(n: int) -> Application:
    """A smooth way of n points between obstacles."""
    obstacles = np.random.default_rng(32).uniform(0.1, 0.9, (12, 2))
    line = np.linspace(np.zeros(2), np.ones(2), n + 2)

    def fun(x: Vector) -> float:
        p = np.vstack([line[:1], x.reshape(n, 2), line[-1:]])
        step = np.diff(p, axis=0)
        bend, places = np.diff(step, axis=0), np.vstack([p, 0.5 * (p[1:] + p[:-1])])
        near = np.exp(-100 * ((places[:, None] - obstacles) ** 2).sum(axis=2))
        return float(30 * (step * step).sum() + 300 * (bend * bend).sum() + 0.5 * near.sum())

    return fun, line[1:-1].ravel()


def heat(n: int) -> Application:
    """The conductivity of a rod, as logarithms, from its temperature under four sources."""
    place = np.linspace(0, 1, n)
    sources = np.array([np.exp(-(((place - at) / 0.1) ** 2)) for at in (0.2, 0.4, 0.6, 0.8)]).T

    def simulated(k: Array) -> Array:
        c = np.exp(np.clip(k, -30, 30))
        edges = np.concatenate([c[:1], 0.5 * (c[1:] + c[:-1]), c[-1:]]) * n * n
        bands = np.zeros((3, n))
        bands[0, 1:] = bands[2, :-1] = -edges[1:-1]
        bands[1] = edges[1:] + edges[:-1]
        result: Array = solve_banded((1, 1), bands, sources)
        return result

    seen = simulated(np.log(1 + 0.5 * np.sin(6 * place)))
    top = float(np.abs(seen).max())
    seen += 1e-3 * top * np.random.default_rng(22).standard_normal(seen.shape)

    def fun(k: Vector) -> float:
        return float((((simulated(k) - seen) / top) ** 2).sum() + 1e-5 * n * (np.diff(k) ** 2).sum())

    return fun, np.zeros(n)


def image(n: int) -> Application:
    """A blurred picture made sharp, with total variation."""
    picture = np.zeros((n, n))
    picture[n // 4 : n // 2, n // 4 : 3 * n // 4] = 1
    picture[n // 2 :, n // 3 : n // 2] = 0.5
    seen = gaussian_filter(picture, 1) + 0.02 * np.random.default_rng(n).standard_normal((n, n))

    def fun(x: Vector) -> float:
        z = x.reshape(n, n)
        rest, steps = gaussian_filter(z, 1) - seen, np.diff(z, axis=0)[:, :-1] ** 2 + np.diff(z, axis=1)[:-1] ** 2
        return float(0.5 * (rest * rest).sum() + 0.01 * np.sqrt(steps + 1e-4).sum())

    return fun, seen.ravel().copy()


def film(n: int) -> Application:
    """The least area over a square whose edge is bent."""
    t = np.linspace(0, 1, n + 2)
    frame = np.zeros((n + 2, n + 2))
    frame[0], frame[-1], frame[:, -1] = np.sin(np.pi * t), 2 * t * (1 - t), 0.5 * np.sin(2 * np.pi * t)

    def fun(x: Vector) -> float:
        z = frame.copy()
        z[1:-1, 1:-1] = x.reshape(n, n)
        a, b = (np.diff(z, axis=0) * (n + 1)) ** 2, (np.diff(z, axis=1) * (n + 1)) ** 2
        areas = np.sqrt(1 + a[:, :-1] + b[:-1]).sum() + np.sqrt(1 + a[:, 1:] + b[1:]).sum()
        return float(areas) / (2 * (n + 1) ** 2)

    return fun, np.zeros(n * n)


SIMULATIONS: dict[str, Callable[[], Application]] = {
    "predators-4": predators,
    "arm-12": arm,
    "atoms-18": lambda: cluster(1.15 * np.array([[i, j, 0] for i in range(3) for j in range(2)], dtype=float), 0.1),
    "oscillator-25": oscillator,
    "atoms-39": lambda: cluster(icosahedron(), 0.08),
    "path-60": lambda: path(30),
    "scaling-80": lambda: scaling(40),
    "pendulum-100": lambda: pendulum(100),
    "film-100": lambda: film(10),
    "heat-100": lambda: heat(100),
    "crane-200": lambda: crane(200),
    "image-256": lambda: image(16),
    "heat-500": lambda: heat(500),
    "film-900": lambda: film(30),
    "tracking-1000": lambda: tracking(1000),
    "image-1024": lambda: image(32),
}
