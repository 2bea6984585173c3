"""Closed-form bounds on the effective dimension: Propositions 1 to 3 and Corollaries 1 and 2 of the paper.

Each returns the bound that holds; the one that is printed is kept beside it where it differs (a `Bound`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Bound(NamedTuple):
    """A bound that holds, and the one the paper prints."""

    bound: float
    printed: float


def polynomial_decay(constant: float, decay: float, d: int, alpha: float = 1.0) -> Bound:
    """Proposition 1: singular values of at most C i^-beta.  It holds as printed; `bound` is its sharper proof.

    >>> polynomial_decay(1.0, 2.0, 1000)  # sum i^-2 = 1.64 # doctest: +ELLIPSIS
    Bound(bound=1.999..., printed=2.0)
    """
    _positive("polynomial_decay", constant=constant, decay=decay, d=d, alpha=alpha)
    power, scale = alpha * decay, constant**alpha
    if math.isclose(power, 1.0):
        return Bound(scale * math.log(2 * d + 1), scale * math.log(2 * d + 1))
    proved = scale / (1 - power) * ((d + 0.5) ** (1 - power) - 0.5 ** (1 - power))
    printed = scale * 2 ** (power - 1) / (power - 1) if power > 1 else scale / (1 - power) * (d + 1) ** (1 - power)
    return Bound(proved, printed)


def ridge_separable(curvature: float, norm: float, d: int, alpha: float = 1.0) -> Bound:
    """Proposition 2: f = mean q_i(b_i'x) with |q''| <= L0 and |b_i| <= R: (L0 R^2)^alpha d^max(1-alpha, 0).

    As printed, (L0 R)^alpha: the norm enters squared.

    >>> ridge_separable(1.0, 2.0, 100)
    Bound(bound=4.0, printed=2.0)
    """
    _positive("ridge_separable", curvature=curvature, norm=norm, d=d, alpha=alpha)
    share = d ** max(1 - alpha, 0.0)
    return Bound((curvature * norm**2) ** alpha * share, (curvature * norm) ** alpha * share)


def two_layer_trace(curvature: float, x: ArrayLike, w: ArrayLike) -> Bound:
    """Proposition 3: |tr Hessian| of f(W, w) = w'sigma(W'x), |sigma''| <= alpha: alpha |x|_2^2 |w|_1.

    As printed, alpha |x|_1 |w|_2, which the trace can exceed.  The trace is not ED_1: see `two_layer_nuclear`.
    """
    _positive("two_layer_trace", curvature=curvature)
    x_, w_ = np.asarray(x, float), np.asarray(w, float)
    bound = curvature * float(x_ @ x_) * float(np.abs(w_).sum())
    return Bound(bound, curvature * float(np.abs(x_).sum()) * float(np.linalg.norm(w_)))


def two_layer_nuclear(curvature: float, slopes: ArrayLike, x: ArrayLike, w: ArrayLike) -> float:
    """ED_1 of the same function: the trace bound and 2 |x|_2 sum |sigma'_j| for the block that mixes W and w."""
    x_ = np.asarray(x, float)
    mixed = 2 * float(np.linalg.norm(x_)) * float(np.abs(np.asarray(slopes, float)).sum())
    return two_layer_trace(curvature, x, w).bound + mixed


def regression_strongly_convex(curvature: float, norm: float, mu: float, gap: float) -> Bound:
    """Corollary 1: values of the random gradient on a linear model to a relative gap; h = 1/(tr + 2L).

    2 (tr + 2L)/mu log(1/gap) with tr + 2L <= 3 L0 R^2; as printed, L0 R in its place, without constants.
    """
    _positive("regression_strongly_convex", curvature=curvature, norm=norm, mu=mu, gap=gap)
    log = math.log(1 / gap)
    return Bound(6 * curvature * norm**2 / mu * log, 6 * curvature * norm / mu * log)


def regression_convex(curvature: float, norm: float, d: int, distance: float, gap: float) -> Bound:
    """Corollary 2: the same without strong convexity: 24 tr D^2 / gap values as printed, with L0 R for tr.

    What holds carries the growth of E|x_k - x*|^2, 1 + (d+2) L/(6 tr) <= 1 + (d+2)/6, as Theorem 2 does.
    """
    _positive("regression_convex", curvature=curvature, norm=norm, d=d, distance=distance, gap=gap)
    growth = 1 + (d + 2) / 6
    return Bound(24 * curvature * norm**2 * distance**2 / gap * growth, 24 * curvature * norm * distance**2 / gap)


def _positive(name: str, **values: float) -> None:
    for argument, value in values.items():
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name}({argument}=...) must be a positive number; got {value!r}.")
