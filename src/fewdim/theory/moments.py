"""Exact second moments of the two-term family on a quadratic f = 1/2 sum l_i x_i^2.

    y = x + b w        g^ = (1/m) sum_j u_j u_j' A y        x+ = y - h g^        w+ = r w - c g^

covers the random gradient (b = r = c = 0), the heavy ball (b = r = 1 - beta, c = h) and the two-step method
(b = al/(1+al), r = (1-al)/(1+al), c = th/al - h).  With Y = E y_i^2, D = E y_i w_i and G = sum_j l_j^2 E y_j^2, the
estimate has E[g^_i^2] = l_i^2 Y + (G + e l_i^2 Y) / m, where e = 1 for Gaussian directions and e = -1 for signs in the
eigenbasis (Lemma 2: signs lose twice the diagonal).  So the moments (E x^2, E xw, E w^2) of each eigen-direction obey a
linear recursion, coupled through the one number G.  Signs in another basis lie between the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TwoTerm:
    """A member of the family: the letters b, h, r, c of the module's head and the batch m."""

    lookahead: float
    step: float
    decay: float
    push: float
    batch: int = 1


def random_gradient(step: float, batch: int = 1) -> TwoTerm:
    """Algorithm 1."""
    return TwoTerm(0.0, step, 0.0, 0.0, batch)


def heavy_ball(step: float, momentum: float, batch: int = 1) -> TwoTerm:
    """Algorithm 2; momentum is 1 - beta."""
    return TwoTerm(momentum, step, momentum, step, batch)


def two_step(alpha: float, step: float, theta: float, batch: int = 1) -> TwoTerm:
    """The two-step (accelerated) method with constant alpha, step h and theta."""
    return TwoTerm(alpha / (1 + alpha), step, (1 - alpha) / (1 + alpha), theta / alpha - step, batch)


def expected_gaps(
    method: TwoTerm, spectrum: NDArray[np.float64], x0: NDArray[np.float64], steps: int, law: str = "gaussian"
) -> NDArray[np.float64]:
    """E f(x_k) - f* for k = 0..steps, exactly, from x0 in the eigenbasis (exact differences, no noise).

    >>> import numpy as np
    >>> gaps = expected_gaps(random_gradient(0.2), np.ones(3), np.ones(3), 2)
    >>> gaps / gaps[0]  # 1 - 2 h + h^2 (d + 2) = 0.8 a step
    array([1.  , 0.8 , 0.64])
    """
    extra = {"gaussian": 1.0, "signs": -1.0}[law]
    m = method
    l, start = np.ascontiguousarray(spectrum, np.float64), np.ascontiguousarray(x0, np.float64) ** 2  # noqa: E741
    gaps: NDArray[np.float64] = _gaps(l, start, m.lookahead, m.step, m.decay, m.push, m.batch, extra, steps)
    return gaps


@numba.njit(cache=True, nogil=True)
def _gaps(l: Any, start: Any, b: Any, h: Any, r: Any, c: Any, m: Any, extra: Any, steps: Any) -> Any:  # noqa: E741
    xx, xw, ww = start.copy(), np.zeros_like(start), np.zeros_like(start)
    gaps = np.empty(steps + 1)
    gaps[0] = 0.5 * np.sum(l * xx)
    for k in range(1, steps + 1):
        total = np.sum(l * l * (xx + 2 * b * xw + b * b * ww))
        gap = 0.0
        for i in range(l.size):
            yy = xx[i] + 2 * b * xw[i] + b * b * ww[i]
            yw = xw[i] + b * ww[i]
            gg = l[i] * l[i] * yy + (total + extra * l[i] * l[i] * yy) / m
            xx[i] = yy - 2 * h * l[i] * yy + h * h * gg
            xw[i] = r * yw - c * l[i] * yy - r * h * l[i] * yw + h * c * gg
            ww[i] = r * r * ww[i] - 2 * r * c * l[i] * yw + c * c * gg
            gap += 0.5 * l[i] * xx[i]
        gaps[k] = gap
    return gaps
