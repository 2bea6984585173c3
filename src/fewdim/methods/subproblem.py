"""The second-order model of f at a point, in a subspace that grows by one Hessian-vector product at a time.

    m(s) = g's + s'As/2 + (mu/2)|s|^2            shifted: what large steps solve
    m(s) = g's + s'As/2 + (M/6)|s|^3             cubic: mu = M|s|/2, and A + mu I is positive semidefinite

The subspace is the Krylov space of A from g, with a random vector beside it where negative curvature is sought; or the
whole space, when the Hessian is known.  A solution for another shift or another M asks for nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from fewdim.core import Steps, value
from fewdim.directions import Key, Vector, gaussian
from fewdim.lines import Reach
from fewdim.noise import noise_level
from fewdim.oracles.second_order import Floats, Gradient, central_gradient, dense_model, difference_radius, product
from fewdim.scales import Scales

DEPENDENT = 1e-5  # a vector that keeps less of its length after orthogonalisation is not new: differences see no more


class Trial(NamedTuple):
    """A minimiser of the model in the subspace."""

    s: Floats
    shift: float  # mu
    length: float
    drop: float  # how much lower the model is there, its penalty included
    residual: float  # |g + As + mu s|
    hard: bool = False  # the gradient had no part along the lowest eigenvector: it was added


class Local:
    """The model at x: gradient, an orthonormal basis (rows) and the products of A with it.

    What is missing of A counts as 0, and `holes` says so.
    """

    def __init__(self, x: Vector, near: Gradient, starts: list[Floats], hessian: Floats | None = None) -> None:
        self.x, self.near, self.waiting = x, near, starts
        self.basis = np.eye(x.size)[: 0 if hessian is None else None]
        self.holes = hessian is not None and bool(np.isnan(hessian).any())
        self.products = self.basis if hessian is None else np.nan_to_num(hessian)
        self.eigenvalues, self.vectors = _eigen(self.basis, self.products)

    @property
    def size(self) -> int:
        return len(self.basis)

    @property
    def full(self) -> bool:
        """Nothing new can be added."""
        return not self.waiting or self.size >= self.x.size

    @property
    def lowest(self) -> float:
        """The smallest eigenvalue of A in the subspace: an upper bound of that of A."""
        return float(self.eigenvalues[0]) if self.size else math.inf

    def direction(self) -> Floats:
        """The vector to the smallest eigenvalue, its largest coordinate positive."""
        v = self.vectors[:, 0] @ self.basis
        return np.asarray(v * np.sign(v[np.argmax(np.abs(v))]))

    def cubic(self, M: float) -> Trial:
        """The global minimiser of the cubic model, the hard case included; no step and no drop where it overflows."""
        w, b = self.eigenvalues, self.vectors.T @ (self.basis @ self.near.g)
        try:
            with np.errstate(over="raise", invalid="raise"):
                z, shift, hard = cubic_minimiser(w, b, M)
                length = float(np.linalg.norm(z))
                drop = -float(b @ z + 0.5 * w @ z**2) - M / 6 * length**3
                return self._trial(z, shift, drop, hard)
        except ArithmeticError:  # f falls without bound, and the steps have grown with it
            return Trial(np.zeros(self.x.size), math.inf, math.inf, math.nan, math.inf)

    def shifted(self, shift: float) -> Trial | None:
        """The minimiser of the shifted model; None when it is unbounded below."""
        w, b = self.eigenvalues, self.vectors.T @ (self.basis @ self.near.g)
        if self.size and w[0] + shift <= 0:
            return None
        z = -b / (w + shift)
        return self._trial(z, shift, -0.5 * float(b @ z), hard=False)

    def _trial(self, z: Floats, shift: float, drop: float, hard: bool) -> Trial:
        y = self.vectors @ z
        s = y @ self.basis
        residual = float(np.linalg.norm(self.near.g + y @ self.products + shift * s))
        return Trial(s, shift, float(np.linalg.norm(s)), drop, residual, hard)

    def grow(self) -> Steps[bool]:
        """Add the next vector that is new, by one product; False when there is none."""
        while not self.full:
            v, *self.waiting = self.waiting
            size = float(np.linalg.norm(v))
            for _ in range(2):  # twice is enough
                v = v - self.basis.T @ (self.basis @ v)
            length = float(np.linalg.norm(v))
            if not length > DEPENDENT * size:
                continue
            u = v / length
            w = yield from product(self.x, self.near, u)
            self.holes, w = self.holes or bool(np.isnan(w).any()), np.nan_to_num(w)
            self.waiting = [*self.waiting, w]
            self.basis, self.products = np.vstack([self.basis, u]), np.vstack([self.products, w])
            self.eigenvalues, self.vectors = _eigen(self.basis, self.products)
            return True
        return False


def _eigen(basis: Floats, products: Floats) -> tuple[Floats, Floats]:
    T = basis @ products.T
    return np.linalg.eigh((T + T.T) / 2) if len(T) else (np.empty(0), np.empty((0, 0)))


def look(x: Vector, f_x: float, delta: float, bend: float, *, dense: bool, probe: Key | None = None) -> Steps[Local]:
    """The model at x: with the whole Hessian, or with an empty subspace that starts at g and, with `probe`, at a random
    vector.  Values are good to `delta`, and `bend` is the size of the second derivatives along the axes.
    """
    radius = difference_radius(x, delta, bend)
    if dense:
        near, A = yield from dense_model(x, f_x, radius)
        return Local(x, near, [], A)
    near = yield from central_gradient(x, f_x, radius)
    starts = [near.g] if near.norm > 0 else []
    if probe is not None:
        starts = [*starts, np.asarray(gaussian(probe).array(x.size), np.float64)]
    return Local(x, near, starts)


def bend_of(near: Gradient, delta: float, known: float) -> float:
    """The size of the second derivatives along the axes, from those seen beside a gradient; `known` if none was."""
    sizes = np.abs(near.bends[np.isfinite(near.bends)])
    return max(float(sizes.mean()), delta / near.radius**2) if sizes.size else known


def length_of(x: Vector) -> float:
    """Over which length second derivatives are taken to change by their own size, before anything is known."""
    return Reach.of(x).high


def watched(x: Vector, scales: Scales, noise: float | str, k: int, key: Key) -> Steps[Scales]:
    """The scales with the noise of values looked at again, at steps 1, 2, 4, 8, ...: it may grow along the run."""
    if not isinstance(noise, str) or k == 0 or k & (k - 1):
        return scales
    f_x = yield from value(x)
    if math.isnan(f_x):
        return scales
    resolution = yield from noise_level(x, f_x, key)
    return scales._replace(resolution=resolution)


def cubic_minimiser(w: Floats, b: Floats, M: float) -> tuple[Floats, float, bool]:
    """The global minimiser of b'z + z'diag(w)z/2 + (M/6)|z|^3 for ascending w, mu = M|z|/2, and whether it was hard.

    With mu = low + t, low = max(0, -w_1), the length |b/(w + mu)| falls and 2 mu/M rises in t; at t = sqrt(M|b|/2) the
    first is at most the second.  Where it already is for the smallest t, b has no part along w_1: the hard case.
    """
    low = max(0.0, -float(w[0])) if w.size else 0.0
    base, size = w + low, float(np.linalg.norm(b))
    top = math.sqrt(M / 2) * math.sqrt(size)
    if not top > 0:
        z, t = np.zeros_like(b), 0.0
    else:

        def excess(log_t: float) -> float:
            t = math.exp(log_t)
            with np.errstate(over="ignore"):
                return math.log(float(np.linalg.norm(b / (base + t)))) - math.log(2 * (low + t) / M)

        floor = math.log(top) - 37 * (2 if low == 0 else 1)  # 1e-16 of the top, or its square
        if excess(floor) <= 0:
            t = 0.0 if low > 0 else math.exp(floor)
        else:
            t = math.exp(brentq(excess, floor, math.log(top) + 1e-9, xtol=1e-14))
        away = base + t > 1e-12 * max(low, float(abs(w[-1])))
        z = np.where(away, -b / np.where(away, base + t, 1.0), 0.0) if t == 0 else -b / (base + t)
    missing = (2 * low / M) ** 2 - float(z @ z) if low > 0 and t == 0 else 0.0
    if missing > 0:
        z = z.copy()
        z[0] += math.sqrt(missing)
        return z, low, True
    return z, low + t, False
