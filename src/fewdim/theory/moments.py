"""Exact second moments of the two-term family on a quadratic f = 1/2 sum l_i x_i^2.

    y = x + b w        g^ = (1/m) sum_j u_j u_j' A y        x+ = y - h g^        w+ = r w - c g^

covers the random gradient (b = r = c = 0), the heavy ball (b = r = 1 - beta, c = h) and the two-step method
(b = al/(1+al), r = (1-al)/(1+al), c = th/al - h).  With Y = E y_i^2, D = E y_i w_i and G = sum_j l_j^2 E y_j^2, the
estimate has E[g^_i^2] = (1 + e/m) l_i^2 Y + a G / m, so the moments (E x^2, E xw, E w^2) of each eigen-direction obey a
linear recursion, coupled through the one number G.  By the law of the directions:

    gaussian   e = 1,              a = 1              in every basis
    sphere     e = (d-2)/(d+2),    a = d/(d+2)        in every basis
    signs      e = -1,             a = 1              when the axes are the eigenvectors (Lemma 2 less the diagonal)

Signs in another basis couple all pairs of coordinates: `rotated_gaps` follows the whole covariance.  There the Gaussian
recursion is an upper bound (the noise of signs is smaller by the positive semidefinite 2 diag(g^2), and the recursion
is monotone), and the mean over a fresh rotation at every step is that of the sphere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TwoTerm:
    """A member of the family: the letters b, h, r, c of the module's head and the batch m."""

    lookahead: float
    step: float
    decay: float
    push: float
    batch: int = 1

    @property
    def letters(self) -> tuple[float, float, float, float, int]:
        return self.lookahead, self.step, self.decay, self.push, self.batch


def random_gradient(step: float, batch: int = 1) -> TwoTerm:
    """Algorithm 1."""
    return TwoTerm(0.0, step, 0.0, 0.0, batch)


def heavy_ball(step: float, momentum: float, batch: int = 1) -> TwoTerm:
    """Algorithm 2; momentum is 1 - beta."""
    return TwoTerm(momentum, step, momentum, step, batch)


def two_step(alpha: float, step: float, theta: float, batch: int = 1) -> TwoTerm:
    """The two-step (accelerated) method with constant alpha, step h and theta."""
    return TwoTerm(alpha / (1 + alpha), step, (1 - alpha) / (1 + alpha), theta / alpha - step, batch)


def law_constants(law: str, d: float) -> tuple[float, float]:
    """(e, a) of the module's head."""
    if law == "sphere":
        return (d - 2) / (d + 2), d / (d + 2)
    if law not in ("gaussian", "signs"):
        raise ValueError(f"law= must be one of 'gaussian', 'sphere', 'signs'; got {law!r}.")
    return (1.0 if law == "gaussian" else -1.0), 1.0


def expected_gaps(
    method: TwoTerm,
    spectrum: ArrayLike,
    x0: ArrayLike,
    steps: int,
    law: str = "gaussian",
    *,
    counts: ArrayLike | None = None,
) -> Floats:
    """E f(x_k) - f* for k = 0..steps, exactly, from x0 in the eigenbasis (exact differences, no noise).

    `counts` says how often each eigenvalue occurs (default once); x0 is then the root mean square over its copies.

    >>> import numpy as np
    >>> gaps = expected_gaps(random_gradient(0.2), np.ones(3), np.ones(3), 2)
    >>> gaps / gaps[0]  # 1 - 2 h + h^2 (d + 2) = 0.8 a step
    array([1.  , 0.8 , 0.64])
    """
    l = np.ascontiguousarray(spectrum, np.float64)  # noqa: E741
    n = np.ones_like(l) if counts is None else np.ascontiguousarray(counts, np.float64)
    moments = np.zeros((3, l.size))
    moments[0] = np.broadcast_to(np.asarray(x0, np.float64), l.shape) ** 2
    gaps = np.empty(steps + 1)
    gaps[0] = 0.5 * np.sum(n * l * moments[0])
    e, a = law_constants(law, float(n.sum()))
    for k in range(steps):
        gaps[k + 1] = advance(l, n, moments, *method.letters, e, a)
    return gaps


def rotated_gaps(method: TwoTerm, hessian: Floats, x0: Floats, steps: int, law: str = "signs") -> Floats:
    """E f(x_k) - f* for k = 0..steps on 1/2 x'Ax, exactly, for directions in any basis: O(d^3) a step.

    The covariance P of (x, w) obeys P+ = F P F' + K (x) N, where F is the iteration with the exact gradient, K the
    outer product of (h, c) and N the covariance of g^: (a |g|^2 I + e g g') / m, for signs less 2 diag(g^2) / m.

    >>> import numpy as np
    >>> A = np.diag([1.0, 0.5])
    >>> same = expected_gaps(random_gradient(0.2), np.diag(A), np.ones(2), 9, "signs")
    >>> bool(np.allclose(rotated_gaps(random_gradient(0.2), A, np.ones(2), 9), same))
    True
    """
    A, d = np.asarray(hessian, np.float64), len(x0)
    b, h, r, c, m = method.letters
    e, a = law_constants("gaussian" if law == "signs" else law, d)
    I, O = np.eye(d), np.zeros((d, d))  # noqa: E741
    to_y = np.hstack([I, b * I])
    F = np.vstack([to_y, np.hstack([O, r * I])]) - np.vstack([h * A @ to_y, c * A @ to_y])
    K = np.outer([h, c], [h, c])
    P = np.zeros((2 * d, 2 * d))
    P[:d, :d] = np.outer(x0, x0)
    gaps = [0.5 * float(np.sum(A * P[:d, :d]))]
    for _ in range(steps):
        gg = A @ to_y @ P @ to_y.T @ A  # E g g' at y
        N = (a * np.trace(gg) * I + e * gg) / m
        if law == "signs":
            N -= 2 * np.diag(np.diag(gg)) / m
        P = F @ P @ F.T + np.kron(K, N)
        gaps.append(0.5 * float(np.sum(A * P[:d, :d])))
    return np.array(gaps)


@numba.njit(cache=True, nogil=True)
def advance(
    l: Any,  # noqa: E741
    n: Any,
    moments: Any,
    b: Any,
    h: Any,
    r: Any,
    c: Any,
    m: Any,
    e: Any,
    a: Any,
) -> Any:
    """One step of the recursion, in place on the rows E x^2, E xw, E w^2; the expected gap after it."""
    xx, xw, ww = moments[0], moments[1], moments[2]
    total = 0.0
    for i in range(l.size):
        total += n[i] * l[i] * l[i] * (xx[i] + 2 * b * xw[i] + b * b * ww[i])
    gap = 0.0
    for i in range(l.size):
        yy = xx[i] + 2 * b * xw[i] + b * b * ww[i]
        yw = xw[i] + b * ww[i]
        gg = l[i] * l[i] * yy * (1 + e / m) + a * total / m
        xx[i] = yy - 2 * h * l[i] * yy + h * h * gg
        xw[i] = r * yw - c * l[i] * yy - r * h * l[i] * yw + h * c * gg
        ww[i] = r * r * ww[i] - 2 * r * c * l[i] * yw + c * c * gg
        gap += 0.5 * n[i] * l[i] * xx[i]
    return gap


@numba.njit(cache=True, nogil=True)
def first_below(
    l: Any,  # noqa: E741
    n: Any,
    moments: Any,
    b: Any,
    h: Any,
    r: Any,
    c: Any,
    m: Any,
    e: Any,
    a: Any,
    target: Any,
    most: Any,
) -> Any:
    """The first k at which the expected gap is at most `target`; -1 when `most` steps do not do."""
    for k in range(1, most + 1):
        if advance(l, n, moments, b, h, r, c, m, e, a) <= target:
            return k
    return -1


@numba.njit(cache=True, nogil=True)
def retreat(
    l: Any,  # noqa: E741
    n: Any,
    dual: Any,
    b: Any,
    h: Any,
    r: Any,
    c: Any,
    m: Any,
    e: Any,
    a: Any,
) -> Any:
    """One step of the adjoint recursion, in place; the largest E f(x_k) - f* over |x0| = 1.

    E f(x_k) - f* = sum n_i (p_i xx_i + q_i xw_i + s_i ww_i) of the start, a linear function of x0_i^2 at rest: its
    maximum over the sphere is the largest p_i.
    """
    p, q, s = dual[0], dual[1], dual[2]
    spread = 0.0
    for i in range(l.size):
        spread += n[i] * (p[i] * h * h + q[i] * h * c + s[i] * c * c)
    spread *= a / m
    worst = 0.0
    for i in range(l.size):
        own = l[i] * l[i] * (1 + e / m)
        yy = p[i] * (1 - 2 * h * l[i] + h * h * own) + q[i] * (h * c * own - c * l[i]) + s[i] * c * c * own
        yy += l[i] * l[i] * spread
        yw = q[i] * (r - r * h * l[i]) - 2 * r * c * l[i] * s[i]
        s[i] = b * b * yy + b * yw + r * r * s[i]
        q[i] = 2 * b * yy + yw
        p[i] = yy
        worst = max(worst, p[i])
    return worst
