"""When methods are stable in mean square, in closed form, and how many eigenvalues count at a scale."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq


def random_gradient_load(spectrum: NDArray[np.float64], step: float, batch: int = 1) -> float:
    """Sum of h l / (2m - (m+1) h l): the random gradient (Gaussian directions) is mean-square stable iff it is below 1.

    For m = 1 it is sum h l / (2 (1 - h l)).  Infinite when some eigenvalue has (m+1) h l >= 2m.

    >>> import numpy as np
    >>> round(random_gradient_load(np.ones(10), 1 / 12), 6)  # h = 1/(tr + 2L)
    0.454545
    """
    hl = step * np.asarray(spectrum, dtype=np.float64)
    rest = 2 * batch - (batch + 1) * hl
    return math.inf if rest.min() <= 0 else float(np.sum(hl / rest))


def two_step_load(spectrum: NDArray[np.float64], alpha: float, step: float, theta: float) -> float:
    """1/2 [sum th l / (2 al + h l) + h tr]: the two-step method is stable where this is below 1, to leading order.

    The order is that of small h l; `Exact(two_step(...), spectrum).stable` decides in general, and where one eigenvalue
    makes up most of the trace (L/tr > .6) the two disagree.
    """
    l = np.asarray(spectrum, dtype=np.float64)  # noqa: E741
    return 0.5 * float(np.sum(theta * l / (2 * alpha + step * l)) + step * l.sum())


def heavy_ball_load(spectrum: NDArray[np.float64], step: float, damping: float) -> float:
    """Sum of q/(1-q): the heavy ball (Algorithm 2, Gaussian directions) is mean-square stable iff this is below 1.

    With p = 1 - h l, v = (1 + (1-b) p) / ((h l + b p) h l (1 + (3 - 2b) p)) and q = h^2 l^2 (v - 1) / p^2 for every
    eigenvalue l; h is the step, b the damping (1 - momentum).  Infinite when some q is 1 or more, or h l >= 1.

    >>> import numpy as np
    >>> spectrum = np.r_[np.ones(10), np.full(100, 1e-10)]
    >>> h = 1 / (14400 * np.sqrt(spectrum).sum()) ** 2  # the paper's constants
    >>> heavy_ball_load(spectrum, h, np.sqrt(h * 1e-10)) > 1
    True
    """
    l = np.asarray(spectrum, dtype=np.float64)  # noqa: E741
    l = l[l > 0]  # noqa: E741  a flat direction is never excited
    h, b = step, damping
    if l.size == 0:
        return 0.0
    if h * l.max() >= 1:
        return math.inf
    p = 1 - h * l
    v = (1 + (1 - b) * p) / ((h * l + b * p) * h * l * (1 + (3 - 2 * b) * p))
    q = h**2 * l**2 * (v - 1) / p**2
    return math.inf if q.max() >= 1 else float(np.sum(q / (1 - q)))


def effective_count(spectrum: NDArray[np.float64], scale: float) -> float:
    """N(k) = sum l / (l + k): how many eigenvalues stand above the scale k."""
    return float(np.sum(spectrum / (spectrum + scale)))


def scale_of_count(spectrum: NDArray[np.float64], target: float) -> float:
    """The k > 0 that solves k^2 N(k) = target; the left side grows with k, from 0 to infinity."""
    trace = float(np.sum(spectrum))

    def residual(log_k: float) -> float:
        k = math.exp(log_k)
        return 2 * log_k + math.log(effective_count(spectrum, k)) - math.log(target)

    low, high = math.log(target / trace) - 1, math.log(target / trace) + 1
    while residual(low) > 0:
        low -= 5
    while residual(high) < 0:
        high += 5
    return math.exp(brentq(residual, low, high, xtol=1e-13))
