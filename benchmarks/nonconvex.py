"""Non-convex problems of fitting: matrix factorisation, phase retrieval, small tanh networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from benchmarks.problem import Problem, Vector, stored_minimum


def factorisation(name: str, n: int, rank: int) -> Problem:
    """|V V' - M|^2 / 4 with M of that rank, from a small random V."""
    rng = np.random.default_rng(4)
    U = rng.standard_normal((n, rank)) / np.sqrt(n)
    M = U @ U.T
    tables = {np.dtype(t): M.astype(t) for t in (np.float64, np.float32)}

    def fun(x: NDArray[Any]) -> Any:
        V = x.reshape(n, rank)
        R = V @ V.T - tables[x.dtype]
        return x.dtype.type(0.25) * np.vdot(R, R)

    def gradient(x: Vector) -> Vector:
        V = x.reshape(n, rank)
        result: Vector = ((V @ V.T - M) @ V).ravel()
        return result

    start = 0.1 * rng.standard_normal(n * rank)
    return Problem(
        name,
        lambda x: float(fun(x)),
        start,
        0.0,
        "non-convex",
        gradient=gradient,
        solution=U.ravel(),
        single=fun,
    )


def phase_retrieval(name: str, d: int) -> Problem:
    """The mean of ((a_j'x)^2 - (a_j'z)^2)^2 / 4 over 6 d Gaussian a_j, from a small random x."""
    rng = np.random.default_rng(6)
    A, z = rng.standard_normal((6 * d, d)), rng.standard_normal(d)
    z /= np.linalg.norm(z)
    b = (A @ z) ** 2

    def gradient(x: Vector) -> Vector:
        t = A @ x
        result: Vector = A.T @ ((t * t - b) * t) / len(b)
        return result

    return Problem(
        name,
        lambda x: float(0.25 * (((A @ x) ** 2 - b) ** 2).mean()),
        0.3 * rng.standard_normal(d) / np.sqrt(d),
        0.0,
        "non-convex",
        gradient=gradient,
        solution=z,
    )


def _layers(x: NDArray[Any], inputs: int, hidden: int, outputs: int) -> list[NDArray[Any]]:
    ends = np.cumsum([inputs * hidden, hidden, hidden * outputs])
    W, b, V, c = np.split(x, ends)
    return [W.reshape(inputs, hidden), b, V.reshape(hidden, outputs), c]


def _network(
    name: str, Z: NDArray[Any], target: NDArray[Any], hidden: int, outputs: int, classify: bool, ridge: float
) -> Problem:
    """One hidden layer of tanh; softmax loss of classes, or squares of one output; with a ridge."""
    n, inputs = Z.shape
    rows = np.arange(n)
    tables = {np.dtype(t): (Z.astype(t), target if classify else target.astype(t)) for t in (np.float64, np.float32)}

    def fun(x: NDArray[Any]) -> Any:
        table, wanted = tables[x.dtype]
        W, b, V, c = _layers(x, inputs, hidden, outputs)
        out = np.tanh(table @ W + b) @ V + c
        if classify:
            loss = (logsumexp(out, axis=1) - out[rows, wanted]).mean()
        else:
            loss = x.dtype.type(0.5) * ((out[:, 0] - wanted) ** 2).mean()
        return loss + x.dtype.type(0.5 * ridge) * (x @ x)

    def gradient(x: Vector) -> Vector:
        W, b, V, c = _layers(x, inputs, hidden, outputs)
        h = np.tanh(Z @ W + b)
        out = h @ V + c
        if classify:
            e = np.exp(out - logsumexp(out, axis=1, keepdims=True))
            e[rows, target] -= 1
        else:
            e = out - target[:, None]
        e = e / n
        back = (e @ V.T) * (1 - h * h)
        parts = [Z.T @ back, back.sum(axis=0), h.T @ e, e.sum(axis=0)]
        return np.concatenate([part.ravel() for part in parts]) + ridge * x

    rng = np.random.default_rng(7)
    start = np.concatenate(
        [
            rng.standard_normal(inputs * hidden) / np.sqrt(inputs),
            np.zeros(hidden),
            rng.standard_normal(hidden * outputs) / np.sqrt(hidden),
            np.zeros(outputs),
        ]
    )
    return Problem(
        name,
        lambda x: float(fun(x)),
        start,
        stored_minimum(name),
        "non-convex",
        gradient=gradient,
        single=fun,
    )


def digit_network(name: str, n: int, hidden: int) -> Problem:
    """Scikit-learn's digits, classified."""
    from sklearn import datasets

    data = datasets.load_digits()
    return _network(name, data.data[:n] / 16.0, data.target[:n], hidden, 10, True, 1e-3)


def curve_network(name: str, n: int, hidden: int) -> Problem:
    """sin(3 a) + a b on the unit square, fitted."""
    Z = np.random.default_rng(8).uniform(-1, 1, (n, 2))
    return _network(name, Z, np.sin(3 * Z[:, 0]) + Z[:, 0] * Z[:, 1], hidden, 1, False, 1e-4)
