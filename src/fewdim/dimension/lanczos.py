"""Lanczos quadrature: the eigenvalue distribution of a symmetric matrix from products with a few random vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fewdim.core import Query, Steps
from fewdim.dimension.inversion import Floats
from fewdim.directions import Key, Vector, axis, gaussian, perturb

Product = Callable[[Floats], Steps[Floats]]
"""v -> A v, by queries."""


class Quadrature(NamedTuple):
    """Per probe: nodes and weights of a Gauss rule for the eigenvalue distribution; the weights sum to d."""

    nodes: tuple[Floats, ...]
    weights: tuple[Floats, ...]
    products: int

    def sums(self, alpha: float, positive: bool = False) -> Floats:
        """Sum |l|^alpha by each probe."""
        sizes = [np.maximum(e, 0.0) if positive else np.abs(e) for e in self.nodes]
        return np.array([float(w @ e**alpha) for e, w in zip(sizes, self.weights, strict=True)])


def quadrature(product: Product, d: int, key: Key, probes: int, steps: int) -> Steps[Quadrature]:
    """Lanczos with full orthogonalisation from `probes` Gaussian vectors, at most `steps` products each."""
    nodes, weights, used = [], [], 0
    for j in range(probes):
        q = np.asarray(gaussian((*key, j)).array(d), np.float64)
        basis, alphas, betas = [q / np.linalg.norm(q)], [], []
        while True:
            w = yield from product(basis[-1])
            used += 1
            if not np.isfinite(w).all():
                break
            alphas.append(float(basis[-1] @ w))
            Q = np.array(basis)
            for _ in range(2):  # twice is enough
                w = w - Q.T @ (Q @ w)
            beta = float(np.linalg.norm(w))
            if len(alphas) == min(steps, d) or beta <= 1e-10 * max(map(abs, alphas)):
                break
            betas.append(beta)
            basis.append(w / beta)
        if alphas:
            k = len(alphas)
            T = np.diag(alphas) + np.diag(betas[: k - 1], 1) + np.diag(betas[: k - 1], -1)
            e, V = np.linalg.eigh(T)
            nodes.append(e)
            weights.append(d * V[0] ** 2)
    return Quadrature(tuple(nodes), tuple(weights), used)


def given(hvp: Callable[[Vector], Vector], shape: tuple[int, ...]) -> Product:
    """The user's Hessian-vector product: asks nothing."""

    def product(v: Floats) -> Steps[Floats]:
        yield from ()  # a generator that asks nothing
        return np.asarray(hvp(v.reshape(shape)), np.float64).ravel()

    return product


def by_differences(x: Vector, f_x: float, radius: float, beside: Floats) -> Product:
    """A v from d + 1 values: f(x + r v + r e_i) - f(x + r e_i) - f(x + r v) + f(x); `beside` holds the f(x + r e_i)."""
    reach = radius * math.sqrt(x.size)

    def product(v: Floats) -> Steps[Floats]:
        moved = perturb(x, reach, v.astype(x.dtype))
        values = yield Query(moved, (None, *(reach * axis(i) for i in range(x.size))))
        return np.asarray((values[1:] - beside - values[0] + f_x) / reach**2)

    return product


def neighbours(x: Vector, radius: float) -> Steps[Floats]:
    """f(x + r e_i) for every axis, with r as `by_differences` takes it: d values."""
    reach = radius * math.sqrt(x.size)
    values = yield Query(x, tuple(reach * axis(i) for i in range(x.size)))
    return np.asarray(values)
