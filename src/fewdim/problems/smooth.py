"""Smooth functions with exact gradients and Hessians: convex ones, and non-convex ones that start at saddles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Smooth(NamedTuple):
    """A function of points or of rows of points, where to start, and its exact derivatives at a point."""

    name: str
    fun: Callable[[Any], Any]
    x0: Floats
    gradient: Callable[[Floats], Floats]
    hessian: Callable[[Floats], Floats]

    @property
    def d(self) -> int:
        return int(self.x0.size)

    def minimum(self) -> float:
        """The minimum of a strictly convex one: Newton's method, halved steps where f would rise."""
        x = self.x0
        for _ in range(200):
            g = self.gradient(x)
            s, t = np.linalg.solve(self.hessian(x), -g), 1.0
            while self.fun(x + t * s) > self.fun(x) + 1e-4 * t * float(g @ s) and t > 1e-9:
                t /= 2
            x = x + t * s
            if float(np.linalg.norm(t * s)) < 1e-10:
                break
        return float(self.fun(x))


def logistic(features: Floats, labels: Floats, ridge: float, name: str = "logistic") -> Smooth:
    """Mean logistic loss of labels -1 and 1, plus ridge/2 |x|^2."""
    Z, n = features * labels[:, None], len(labels)

    def odds(x: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(np.clip(Z @ x, -700, 700))))

    return Smooth(
        name,
        lambda X: np.logaddexp(0, -X @ Z.T).mean(-1) + 0.5 * ridge * (X * X).sum(-1),
        np.zeros(Z.shape[1]),
        lambda x: ridge * x - Z.T @ odds(x) / n,
        lambda x: (Z.T * (odds(x) * (1 - odds(x)))) @ Z / n + ridge * np.eye(Z.shape[1]),
    )


def decaying_logistic(d: int, seed: int, ridge: float = 1e-3) -> Smooth:
    """Logistic regression on 2d + 50 random points whose i-th feature has variance 1/i."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((2 * d + 50, d)) / np.sqrt(np.arange(1, d + 1))
    chances = 1 / (1 + np.exp(-3 * Z @ rng.standard_normal(d)))
    return logistic(Z, np.where(rng.random(len(Z)) < chances, 1.0, -1.0), ridge, f"logistic {d}")


def factorisation(n: int, rank: int, rng: np.random.Generator) -> Smooth:
    """|UU' - M|_F^2 / 4 for a matrix M of that rank, from U = 0: a strict saddle, as are all points of lower rank."""
    root = rng.standard_normal((n, rank))
    M, d = root @ root.T / n, n * rank

    def residual(U: Any) -> Any:
        return U @ np.swapaxes(U, -1, -2) - M

    def fun(X: Any) -> Any:
        return 0.25 * (residual(X.reshape(*X.shape[:-1], n, rank)) ** 2).sum((-1, -2))

    def hessian(x: Floats) -> Floats:
        U, columns = x.reshape(n, rank), np.eye(d).reshape(d, n, rank)
        turned = np.swapaxes(columns, -1, -2)
        return np.asarray((columns @ (U.T @ U) + U @ (turned @ U) + residual(U) @ columns).reshape(d, d))

    return Smooth(
        f"factorisation {d}, from 0",
        fun,
        np.zeros(d),
        lambda x: (residual(x.reshape(n, rank)) @ x.reshape(n, rank)).ravel(),
        hessian,
    )


def rank_one(problem: Smooth, n: int, rank: int) -> Smooth:
    """The same factorisation from the saddle whose one column is the second eigenvector of M."""
    M = -problem.hessian(np.zeros(n * rank))[::rank, ::rank]
    w, V = np.linalg.eigh(M)
    U = np.zeros((n, rank))
    U[:, 0] = V[:, -2] * math.sqrt(w[-2])
    return problem._replace(name=f"factorisation {n * rank}, from rank one", x0=U.ravel())


def phase_retrieval(d: int, rng: np.random.Generator) -> Smooth:
    """Mean of ((a_i'x)^2 - b_i)^2 / 4 over 6d Gaussian vectors, from 0, a maximum."""
    A, z = rng.standard_normal((6 * d, d)), rng.standard_normal(d)
    b = (A @ z / np.linalg.norm(z)) ** 2
    return Smooth(
        f"phase retrieval {d}, from 0",
        lambda X: 0.25 * (((X @ A.T) ** 2 - b) ** 2).mean(-1),
        np.zeros(d),
        lambda x: A.T @ (((A @ x) ** 2 - b) * (A @ x)) / len(b),
        lambda x: (A.T * (3 * (A @ x) ** 2 - b)) @ A / len(b),
    )


def double_wells(d: int, every: int = 1) -> Smooth:
    """Sum of c_i (x_i^2 - 1)^2 / 4, c_i from 0.5 to 2; every `every`-th coordinate starts at its maximum, 0."""
    c, x0 = np.linspace(0.5, 2, d), np.ones(d)
    x0[::every] = 0
    return Smooth(
        f"double wells {d}, from {'the maximum' if every == 1 else 'a saddle'}",
        lambda X: (0.25 * c * (X * X - 1) ** 2).sum(-1),
        x0,
        lambda x: c * (x * x - 1) * x,
        lambda x: np.diag(c * (3 * x * x - 1)),
    )


def tanh_network(inputs: int, hidden: int, samples: int, rng: np.random.Generator) -> Smooth:
    """Least squares of one hidden tanh layer with a ridge, from 0, a saddle; the Hessian from complex steps."""
    Z = rng.standard_normal((samples, inputs))
    y, d, split = np.sin(2 * Z[:, 0]) + 0.5 * Z[:, 1], hidden * (inputs + 1), hidden * inputs

    def fun(X: Any) -> Any:
        W, w = X[..., :split].reshape(*X.shape[:-1], hidden, inputs), X[..., split:]
        layer = np.tanh(Z @ np.swapaxes(W, -1, -2))
        return 0.5 * (((layer @ w[..., None])[..., 0] - y) ** 2).mean(-1) + 5e-4 * (X * X).sum(-1)

    def gradient(x: Floats) -> Floats:
        return np.asarray(np.imag(fun(x + 1e-30j * np.eye(d))) / 1e-30)

    def hessian(x: Floats) -> Floats:
        H = np.array([(gradient(x + 1e-5 * e) - gradient(x - 1e-5 * e)) / 2e-5 for e in np.eye(d)])
        return np.asarray((H + H.T) / 2)

    return Smooth(f"tanh network {d}, from 0", fun, np.zeros(d), gradient, hessian)


def saddles(seed: int = 3) -> tuple[Smooth, ...]:
    """Eight non-convex problems that start where the gradient is 0 and the Hessian is not positive."""
    rng = np.random.default_rng(seed)
    small, large = factorisation(15, 3, rng), factorisation(40, 4, rng)
    phases = phase_retrieval(20, rng), phase_retrieval(100, rng)
    wells = double_wells(30), double_wells(100, every=7)
    return small, rank_one(small, 15, 3), large, *phases, *wells, tanh_network(4, 5, 40, rng)
