"""Quadratics that explain values at scattered points, and their minimisers in a ball.

    m(y) = c + g'y + h |y|^2 / 2 + y'(D_0 + D)y / 2,      y = x - (the best point)

There are more coefficients than values, so D is the smallest that explains them: of all m, the one that minimises

    |D|_F^2 / 2 + sum_j (f_j - m(y_j))^2 / (2 w_j),      w_j = GIVE (1 + (|y_j| / r)^6 / 10),   |y| <= 1

in units in which the farthest point is at distance 1.  c and g are free; w_j leaves room for the third derivative,
which a quadratic lacks: points beyond the radius r count little.  There are two of them: the smallest Hessian, where
D_0 = 0 and h is free, and the smallest change of a Hessian D_0 known from before, where h = 0.  The solution is
D = sum_j l_j y_j y_j', where f is less what D_0 explains and

    [ A + W   P ] [ l ]   [ f ]        A_ij = (y_i'y_j)^2 / 2
    [ P'      0 ] [ c ] = [ 0 ]        P_j  = (1, y_j, |y_j|^2 / 2)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.optimize import brentq

from fewdim.gradients import Floats

GIVE = 1e-6  # of the size of (y_i'y_j)^2: how closely values are followed
BEYOND = 0.1  # what a point at the radius adds to that
FAINT = 1e12  # the most that a far point is discounted
CLOSE = 1e-3  # of a radius: steps that end so close beyond it are brought back to it


class Quadratic(NamedTuple):
    """The change of a quadratic from its centre: g's + s'Hs/2."""

    gradient: Floats
    hessian: Floats

    def at(self, s: Floats) -> float:
        """How much higher it is at the centre + s."""
        with np.errstate(all="ignore"):
            return float(self.gradient @ s + 0.5 * s @ self.hessian @ s)

    def minimiser(self, radius: float) -> tuple[Floats, float]:
        """The lowest point within a radius, and how far below the centre it is."""
        s = ball_minimiser(self.gradient, self.hessian, radius)
        return s, -self.at(s)


class Regression:
    """The fits to values at points given as rows, of which `best` is the centre and `radius` how far it is trusted."""

    def __init__(self, points: Floats, best: int, radius: float) -> None:
        self.best, self.offsets = best, points - points[best]
        self.distances = np.sqrt(np.sum(self.offsets**2, axis=1))
        self.scale = float(self.distances.max()) or 1.0
        self.y = self.offsets / self.scale
        n, d = points.shape
        discount = np.minimum(1 + BEYOND * (self.distances / radius) ** 6, FAINT)
        A = 0.5 * (self.y @ self.y.T) ** 2
        A[np.diag_indices(n)] += GIVE * discount
        P = np.column_stack([np.ones(n), self.y, 0.5 * np.sum(self.y**2, axis=1)])
        self.L = np.asfortranarray(cho_factor(A, lower=True, overwrite_a=True, check_finite=False)[0])
        self.P = self._reduced(P)
        S = self.P.T @ self.P
        S[np.diag_indices(d + 2)] += 1e-12 * float(np.trace(S))  # too few points, or in a plane, leave a slope open
        self.S = cho_factor(S, check_finite=False)
        self.last = cho_solve(self.S, np.eye(d + 2)[-1], check_finite=False)  # what h is traded for

    def fit(self, values: Floats, hessian: Floats | None = None) -> Quadratic:
        """The fit with the smallest Hessian, or with the smallest change of a given one."""
        size = float(np.abs(values).max()) or 1.0
        f = values / size - values[self.best] / size
        if hessian is not None:
            f -= 0.5 * np.sum((self.offsets @ (hessian / size)) * self.offsets, axis=1)
        fit = self._quadratic(*self._solved(f, free=hessian is None))
        return Quadratic(fit.gradient * size, fit.hessian * size + (0.0 if hessian is None else hessian))

    def _solved(self, f: Floats, end: Floats | None = None, free: bool = True) -> tuple[Floats, Floats]:
        """L and c for a right-hand side f, and `end` below it; h = 0 unless it is free."""
        z = self._reduced(f)
        c = cho_solve(self.S, self.P.T @ z - (0.0 if end is None else end), check_finite=False)
        if not free:
            c -= self.last * (c[-1] / self.last[-1])
        return self._reduced(z - self.P @ c, trans=1), c

    def _reduced(self, f: Floats, trans: int = 0) -> Floats:
        """Where L L' = A + W: L^-1 f, or L'^-1 f."""
        return np.asarray(solve_triangular(self.L, f, trans=trans, lower=True, check_finite=False))

    def _quadratic(self, weights: Floats, c: Floats) -> Quadratic:
        hessian = (self.y.T * weights) @ self.y
        hessian[np.diag_indices(len(hessian))] += c[-1]
        return Quadratic(c[1:-1] / self.scale, hessian / self.scale**2)

    def influence(self, s: Floats) -> Floats:
        """How much each value counts at the centre + s: the Lagrange polynomials there, were it an interpolation."""
        y = s / self.scale
        weights, _ = self._solved(0.5 * (self.y @ y) ** 2, np.array([1.0, *y, 0.5 * y @ y]))
        return weights

    def most_influenced(self, i: int, radius: float) -> Floats:
        """The step within a radius where the value at point i counts most, so that a value there replaces it best."""
        unit = np.zeros(len(self.y))
        unit[i] = 1.0
        fit = self._quadratic(*self._solved(unit))
        w, V = np.linalg.eigh(fit.hessian)
        up, down = (_from_eigenvectors(sign * fit.gradient, sign * w, V, radius) for sign in (1.0, -1.0))
        return max(up, down, key=lambda s: abs(fit.at(s)))


def ball_minimiser(g: Floats, H: Floats, radius: float) -> Floats:
    """The minimiser of g's + s'Hs/2 in |s| <= radius: s = -(H + mu)^-1 g with the least mu >= 0 that H + mu allows."""
    unit = max(float(np.abs(g).max()) / radius, float(np.abs(H).max()))
    if not 0 < unit < math.inf:  # nothing to see, or values as large as numbers go
        return np.zeros_like(g)
    s = _from_factors(g / unit, H / unit, radius)
    return _from_eigenvectors(g / unit, *np.linalg.eigh(H / unit), radius) if s is None else s


def _from_factors(g: Floats, H: Floats, radius: float) -> Floats | None:
    """The minimiser by Newton's method for 1/|s(mu)| = 1/radius from mu = 0 on, which never goes too far.

    None where H is not positive definite, or nearly singular.
    """
    mu, diagonal = 0.0, np.diag_indices(len(g))
    for _ in range(50):
        shifted = H.copy()
        shifted[diagonal] += mu
        try:
            L, _ = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        s = -cho_solve((L, True), g, check_finite=False)
        size = float(np.linalg.norm(s))
        if size <= (1 + CLOSE) * radius:
            return np.asarray(s * min(1.0, radius / size) if size > 0 else s)
        z = solve_triangular(L, s, lower=True, check_finite=False)
        mu += (size / radius - 1) * size * size / float(z @ z)
    return None


def _from_eigenvectors(g: Floats, w: Floats, V: Floats, radius: float) -> Floats:
    """The same for any Hessian, from its eigenvalues and eigenvectors.

    Where even the least mu leaves a step short of the radius (the hard case) the lowest eigenvector makes up for it.
    """
    b, low = V.T @ g, int(np.argmin(w))
    size, top = float(np.linalg.norm(b)), float(np.abs(w).max())
    tiny = 1e-12 * max(top, size / radius)
    least = max(0.0, -float(w[low])) + tiny

    def excess(mu: float) -> float:
        return math.log(max(float(np.linalg.norm(b / (w + mu))), 1e-300) / radius)

    if not tiny > 0:
        return np.zeros_like(g)
    if w[low] > tiny and excess(0.0) <= 0:
        return np.asarray(V @ (-b / w))
    if excess(least) <= 0:
        z = -b / (w + least)
        z[low] += math.copysign(math.sqrt(max(radius**2 - float(z @ z), 0.0)), -b[low]) if w[low] < 0 else 0.0
        return np.asarray(V @ z)
    mu = brentq(excess, least, least + 2 * size / radius + tiny, rtol=1e-12, xtol=1e-300)
    return np.asarray(V @ (-b / (w + mu)))
