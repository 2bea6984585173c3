"""Applications: likelihoods, losses and factorisations as their users write them, with the starts that they would take.

They came after the default; one rule of it was made with a view to them (`ConjugateSketchState.looks_anew`).  As their
minimum counts the lowest value known (`benchmarks/minima.py`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.signal import lfilter
from scipy.special import expit, logsumexp

from benchmarks.problem import Vector

Array = NDArray[Any]
Application = tuple[Callable[[Vector], float], Vector]


def gaussian_process(inputs: int, n: int, lengths: float, noise: float) -> Application:
    """The marginal likelihood of a Gaussian process: a length for each input, amplitude, noise, as logarithms."""
    rng = np.random.default_rng(30 + inputs)
    X = rng.standard_normal((n, inputs))
    y = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    y -= y.mean()
    squares = (X[:, None] - X[None]) ** 2

    def fun(p: Vector) -> float:
        K = np.exp(2 * p[inputs] - 0.5 * (squares @ np.exp(-2 * p[:inputs])))
        K[np.diag_indices(n)] += np.exp(2 * p[inputs + 1]) + 1e-8
        factor = cho_factor(K, lower=True)
        return float(0.5 * y @ cho_solve(factor, y) + np.log(np.diag(factor[0])).sum())

    return fun, np.array([lengths] * inputs + [0.0, noise])


def mixture() -> Application:
    """Three normal distributions fitted to a sample: weights, means, log widths."""
    rng = np.random.default_rng(5)
    y = np.concatenate([rng.normal(-2, 0.5, 150), rng.normal(0, 1, 200), rng.normal(3, 0.7, 100)])

    def fun(p: Vector) -> float:
        weights, means, widths = p.reshape(3, 3)
        logs = weights - logsumexp(weights) - widths - 0.5 * ((y[:, None] - means) * np.exp(-widths)) ** 2
        return float(-logsumexp(logs, axis=1).mean())

    return fun, np.array([0, 0, 0, -1, 0.1, 1, 0, 0, 0.0])


def garch() -> Application:
    """The likelihood of volatility that depends on its past: mean, and three rates in transformed variables."""
    rng = np.random.default_rng(6)
    y, h = np.zeros(600), 0.1
    for i in range(600):
        h = 0.05 + 0.1 * (y[i - 1] ** 2 if i else 0.1) + 0.85 * h
        y[i] = 0.02 + math.sqrt(h) * rng.standard_normal()

    def fun(p: Vector) -> float:
        rest, base, a, b = ((y - p[0]) ** 2).tolist(), math.exp(p[1]), float(expit(p[2])), float(expit(p[3]))
        h, total = sum(rest) / 600, 0.0
        for e in rest:
            total += math.log(h) + e / h
            h = base + a * e + b * h
            if h > 1e8:
                return math.inf
        return 0.5 * total / 600

    return fun, np.array([0.0, -2, -1, 1])


def arma() -> Application:
    """A series with two autoregressive terms and two of a moving average, by the size of its innovations."""
    rng = np.random.default_rng(7)
    y = lfilter([1, 0.4, 0.2], [1, -0.6, 0.2], rng.standard_normal(400)) + 0.8

    def fun(p: Vector) -> float:
        rest = lfilter([1.0], [1, p[3], p[4]], lfilter([1, -p[1], -p[2]], [1.0], y) - p[0])[5:]
        return float(np.log(np.mean(rest * rest)))

    return fun, np.zeros(5)


def cox() -> Application:
    """Cox's partial likelihood of survival times."""
    rng = np.random.default_rng(13)
    X = rng.standard_normal((150, 12))
    X = X[np.argsort(-rng.exponential(np.exp(-X @ (0.5 * rng.standard_normal(12)))))]
    return lambda b: float((np.logaddexp.accumulate(X @ b) - X @ b).mean()), np.zeros(12)


def peaks() -> Application:
    """Five Lorentz peaks on a sloping ground, from a rough guess."""
    t, rng = np.linspace(0, 10, 200), np.random.default_rng(9)

    def model(p: Vector) -> Array:
        heights, places, widths = p[:15].reshape(5, 3).T
        result: Array = p[15] + p[16] * t / 10 + (heights / (1 + ((t[:, None] - places) / widths) ** 2)).sum(axis=1)
        return result

    places = np.array([1.5, 3, 5, 6.5, 8.5])
    true = np.column_stack([[3, 5, 2, 4, 1.5], places, [0.3, 0.4, 0.5, 0.3, 0.6]])
    seen = model(np.append(true, [0.5, 0.3])) + 0.02 * rng.standard_normal(200)
    guess = np.column_stack([np.full(5, 2.0), places * (1 + 0.05 * rng.standard_normal(5)), np.full(5, 0.5)])
    return lambda p: float(((model(p) - seen) ** 2).sum()), np.append(guess, [0.0, 0.3])


def quantile() -> Application:
    """Regression for the upper fifth, which is piecewise linear."""
    rng = np.random.default_rng(12)
    X = np.column_stack([np.ones(300), rng.standard_normal((300, 14))])
    y = X @ rng.standard_normal(15) + rng.standard_t(3, 300)
    return lambda w: float(np.maximum(0.8 * (y - X @ w), -0.2 * (y - X @ w)).mean()), np.zeros(15)


def hinge() -> Application:
    """A linear support vector machine."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((200, 20))
    y = np.sign(X @ rng.standard_normal(20) + 0.5 * rng.standard_normal(200))
    return lambda w: float(np.maximum(0, 1 - y * (X @ w)).mean() + 0.005 * w @ w), np.zeros(20)


def lasso() -> Application:
    """Least squares with absolute values of the weights."""
    rng = np.random.default_rng(10)
    X, w = rng.standard_normal((60, 30)), np.append([2, -1, 1.5, 0.5, -2], np.zeros(25))
    y = X @ w + 0.1 * rng.standard_normal(60)
    return lambda v: float(0.5 * ((X @ v - y) ** 2).mean() + 0.05 * np.abs(v).sum()), np.zeros(30)


def tests_and_persons() -> Application:
    """Rasch's model: abilities of 100 persons, difficulties of 50 questions."""
    rng = np.random.default_rng(33)
    chances = expit(rng.standard_normal(100)[:, None] - rng.standard_normal(50))
    right = rng.random((100, 50)) < chances

    def fun(x: Vector) -> float:
        t = x[:100, None] - x[100:]
        return float((np.logaddexp(0, t) - right * t).mean() + 1e-3 * (x @ x) / 150)

    return fun, np.zeros(150)


def topics() -> Application:
    """Counts as a product of two positive matrices, by their logarithms."""
    rng = np.random.default_rng(34)
    counts = rng.poisson(3 * rng.gamma(1, 1, (20, 4)) @ rng.gamma(1, 1, (4, 15)))

    def fun(x: Vector) -> float:
        rates = np.exp(np.clip(x[:80], -50, 50)).reshape(20, 4) @ np.exp(np.clip(x[80:], -50, 50)).reshape(4, 15)
        return float((rates - counts * np.log(rates + 1e-12)).mean())

    return fun, 0.1 * rng.standard_normal(140)


def embedding(n: int, rank: int) -> Application:
    """Two vectors and two offsets for each of n words, by weighted least squares."""
    rng, m = np.random.default_rng(36), n * rank
    A = rng.standard_normal((n, rank))
    target, weights = A @ A.T + 0.3 * rng.standard_normal((n, n)), rng.random((n, n)) ** 2

    def fun(x: Vector) -> float:
        u, v = x[: 2 * m].reshape(2, n, rank)
        rest = u @ v.T + x[2 * m : 2 * m + n, None] + x[2 * m + n :] - target
        return float((weights * rest * rest).sum())

    return fun, 0.3 * rng.standard_normal(2 * m + 2 * n)


def ratings(persons: int, items: int, rank: int) -> Application:
    """A table of ratings of which a third is known, as a product of two factors."""
    rng, m = np.random.default_rng(37), persons * rank
    full = rng.standard_normal((persons, rank)) @ rng.standard_normal((rank, items))
    known = rng.random((persons, items)) < 0.3
    seen = full + 0.1 * rng.standard_normal(full.shape)

    def fun(x: Vector) -> float:
        rest = known * (x[:m].reshape(persons, rank) @ x[m:].reshape(rank, items) - seen)
        return float((rest * rest).sum() / known.sum() + 1e-3 * (x @ x) / x.size)

    return fun, 0.3 * rng.standard_normal(m + rank * items)


def network(sizes: tuple[int, ...], n: int, rectified: bool) -> Application:
    """Regression by a network, with rectified or tanh units."""
    rng = np.random.default_rng(sum(sizes))
    X = rng.standard_normal((n, sizes[0]))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, -1]
    shapes = list(itertools.pairwise(sizes))

    def fun(x: Vector) -> float:
        h, k = X, 0
        for i, (a, b) in enumerate(shapes):
            h = h @ x[k : k + a * b].reshape(a, b) + x[k + a * b : k + a * b + b]
            k += a * b + b
            if i < len(shapes) - 1:
                h = np.maximum(h, 0) if rectified else np.tanh(h)
        return float(((h[:, 0] - y) ** 2).mean() + 1e-4 * (x @ x) / x.size)

    layers = [np.append(rng.standard_normal(a * b) / math.sqrt(a), np.zeros(b)) for a, b in shapes]
    return fun, np.concatenate(layers)


def kernel(n: int, width: float, classify: bool) -> Application:
    """A weight for each sample: logistic loss or squares, with the norm of the function."""
    rng = np.random.default_rng(29 + n)
    X = rng.standard_normal((n, 2))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / width)
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)

    def fun(a: Vector) -> float:
        z = K @ a
        loss = np.logaddexp(0, -np.sign(y) * z) if classify else (z - y) ** 2
        return float(loss.mean() + 1e-3 * a @ z)

    return fun, np.zeros(n)


FITS: dict[str, Callable[[], Application]] = {
    "garch-4": garch,
    "arma-5": arma,
    "gaussian-process-8": lambda: gaussian_process(6, 60, 0.0, 0.0),
    "mixture-9": mixture,
    "cox-12": cox,
    "quantile-15": quantile,
    "peaks-17": peaks,
    "hinge-20": hinge,
    "lasso-30": lasso,
    "gaussian-process-32": lambda: gaussian_process(30, 80, math.log(5), -1.0),
    "tanh-network-71": lambda: network((5, 10, 1), 100, rectified=False),
    "kernel-logistic-100": lambda: kernel(100, 2.0, classify=True),
    "rectified-network-121": lambda: network((4, 20, 1), 200, rectified=True),
    "topics-140": topics,
    "tests-and-persons-150": tests_and_persons,
    "embedding-200": lambda: embedding(20, 4),
    "kernel-ridge-300": lambda: kernel(300, 0.5, classify=False),
    "tanh-network-897": lambda: network((10, 32, 16, 1), 200, rectified=False),
    "ratings-1500": lambda: ratings(200, 100, 5),
    "rectified-network-2177": lambda: network((32, 64, 1), 300, rectified=True),
}
