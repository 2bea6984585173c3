"""The outer loops of the appendix in exact arithmetic up to round-off: gradients and Hessians instead of values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fewdim.methods.subproblem import cubic_minimiser
from fewdim.problems import Smooth

SIGMA = 0.9
UPPER, LOWER = SIGMA / 2, SIGMA / 4


class Step(NamedTuple):
    """One step of Algorithm 4."""

    lam: float
    a: float
    A: float
    middle: Any  # x~
    y: Any
    x: Any
    x_star: Any  # x_k^*, the x_k of exact gradients
    solves: int


def large_steps(
    p: Smooth, H: float, steps: int, error: Callable[[int, float], Any] | None = None, first: float = 1.0
) -> list[Step]:
    """Algorithm 4 with exact sub-problems, bracket and bisection; `error(k, a)` is added to the gradient."""
    x = star = y = p.x0
    A, lam, found = 0.0, first, []
    for k in range(steps):
        low, high, solves = 0.0, math.inf, 0
        while True:
            a = (lam + math.sqrt(lam**2 + 4 * lam * A)) / 2
            middle = (A * y + a * x) / (A + a)
            s = np.linalg.solve(p.hessian(middle) + np.eye(p.d) / lam, -p.gradient(middle))
            solves += 1
            reach = lam * float(np.linalg.norm(s))
            if 2 * LOWER / H <= reach <= 2 * UPPER / H:
                break
            low, high = (lam, high) if reach < 2 * LOWER / H else (low, lam)
            lam = 2 * lam if high == math.inf else lam / 2 if low == 0 else math.sqrt(low * high)
        y, A = middle + s, A + a
        g = p.gradient(y)
        star = star - a * g
        x = x - a * (g if error is None else g + error(k, a))
        found.append(Step(lam, a, A, middle, y, x, star, solves))
        if lam > 1e9:
            break
    return found


class Waves(NamedTuple):
    """f = sum a_i cos(w_i'x + b_i) + c|x|^2/2: not convex, with L and H known everywhere."""

    amplitudes: Any
    waves: Any
    phases: Any
    ridge: float

    @classmethod
    def draw(cls, rng: np.random.Generator, d: int, m: int = 12, ridge: float = 0.1) -> Waves:
        return cls(rng.uniform(0.2, 1, m), rng.standard_normal((m, d)), rng.uniform(0, 2 * np.pi, m), ridge)

    def fun(self, x: Any) -> Any:
        return np.cos(x @ self.waves.T + self.phases) @ self.amplitudes + 0.5 * self.ridge * (x * x).sum(-1)

    def gradient(self, x: Any) -> Any:
        return -self.waves.T @ (self.amplitudes * np.sin(self.waves @ x + self.phases)) + self.ridge * x

    def hessian(self, x: Any) -> Any:
        bends = self.amplitudes * np.cos(self.waves @ x + self.phases)
        return -(self.waves.T * bends) @ self.waves + self.ridge * np.eye(self.waves.shape[1])

    @property
    def third(self) -> float:
        """H."""
        return float(self.amplitudes @ np.linalg.norm(self.waves, axis=1) ** 3)

    @property
    def second(self) -> float:
        """L."""
        return float(self.amplitudes @ np.linalg.norm(self.waves, axis=1) ** 2 + self.ridge)

    @property
    def least(self) -> float:
        """A lower bound of f."""
        return -float(self.amplitudes.sum())


def cubic_step(g: Any, A: Any, H: float) -> Any:
    """The global minimiser of g's + s'As/2 + (H/6)|s|^3."""
    w, V = np.linalg.eigh(A)
    z, _, _ = cubic_minimiser(w, V.T @ g, H)
    return V @ z
