"""How stationary a point is: the norm of the gradient and the smallest eigenvalue of the Hessian, with bounds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from fewdim.core import Query, Steps
from fewdim.directions import Along, Key, Vector, gaussian
from fewdim.lines import Reach, Resolution, insisted
from fewdim.methods.subproblem import DEPENDENT, Local, length_of
from fewdim.oracles.second_order import APART, central_gradient, dense_model

SMALL = 60  # up to this dimension the whole Hessian is taken
RISK = 1e-4  # that a random start hides an eigenvalue, or a sketch a gradient, from the bounds given
MOST = 200  # products of the Lanczos process
STARTS = 3  # random vectors that a Lanczos process must be exhausted from to count as such


class Found(NamedTuple):
    """A number and how far off it may be, below and above."""

    estimate: float
    below: float
    above: float

    @property
    def error(self) -> float:
        return max(self.below, self.above)


def sketched_norm(x: Vector, radius: float, level: float, key: Key, m: int) -> Steps[Found]:
    """|g| from slopes along m Gaussian directions, whose squares sum to |g|^2 chi^2_m: 4m values.

    Each slope is taken at two radii, whose difference bounds what the third order does.
    """
    r = Reach.of(x).clip(radius / math.sqrt(x.size))
    units = [gaussian((*key, j)) for j in range(m)]
    told = yield from insisted(Query(x, tuple(Along(t * r, u) for t in (1, -1, 2, -2) for u in units)))
    ahead, behind, farther, back = told.reshape(4, m)
    slopes, wider = (ahead - behind) / (2 * r), (farther - back) / (4 * r)
    had = ~np.isnan(slopes + wider)
    n = int(np.count_nonzero(had))
    if n < m / 2:
        return Found(math.nan, math.inf, math.inf)
    size, off = float(np.linalg.norm(slopes[had])), float(np.linalg.norm((wider - slopes)[had]))
    low, high = (size - off) / math.sqrt(chdtri(n, RISK / 2)), (size + off) / math.sqrt(chdtri(n, 1 - RISK / 2))
    estimate, error = size / math.sqrt(n), 2 * level / r
    return Found(estimate, estimate - low + error, high - estimate + error)


def model_with_error(
    x: Vector, f_x: float, radius: float, resolution: Resolution, key: Key
) -> Steps[tuple[Found, Local]]:
    """The gradient from two radii, whose difference bounds what the third order does, and the model."""
    d = x.size
    if d <= SMALL:
        near, A = yield from dense_model(x, f_x, radius)
        local = Local(x, near, [], A)
    else:
        near = yield from central_gradient(x, f_x, radius)
        local = Local(x, near, [np.asarray(gaussian(key).array(d), np.float64)])
    wider = yield from central_gradient(x, f_x, 2 * near.radius)
    level = resolution.at(float(np.abs(wider.ahead).max()))
    step = float(np.finfo(x.dtype).eps) * (near.radius + float(np.abs(x).max()))  # how far off a step from x may be
    rounded = step * float(np.linalg.norm(np.abs(near.g) / near.radius + np.abs(np.nan_to_num(near.bends))))
    error = 2 * near.error(level) + float(np.linalg.norm(wider.g - near.g)) + rounded
    if min(near.seen, wider.seen) < d:
        error = math.inf
    return Found(near.norm, error, error), local


def lanczos(local: Local, delta: float, left: float, key: Key) -> Steps[float]:
    """Lanczos until the smallest eigenvalue is proved to be above -delta, or seen below it; how far below the smallest
    Ritz value one may still be hidden.

    After k products from a random vector, more than a part q of the spread is hidden with probability of at most
    1.648 sqrt(d) exp(-sqrt(q) (2k-1)) (Kuczynski and Wozniakowski, SIAM J. Matrix Anal. Appl. 13, 1992).  A space that
    is exhausted before misses an eigenvector of which its start held a part e, if its eigenvalue is less than
    DEPENDENT |A| / e away; |e| sqrt(d) is below 1/30 for three random starts with a probability of 2e-5.
    """
    d, hidden, starts, before = local.x.size, 0.0, 1, 0
    while local.size < min(d, MOST, left // (d + 1)):
        if local.full:
            if starts == STARTS:
                return 30 * DEPENDENT * math.sqrt(d) * float(np.abs(local.eigenvalues).max(initial=0.0))
            local.waiting, before = [np.asarray(gaussian((*key, starts)).array(d), np.float64)], local.size
            starts += 1
        yield from local.grow()
        part = (math.log(1.648 * math.sqrt(d) / RISK) / max(2 * (local.size - before) - 1, 1)) ** 2
        spread = float(np.ptp(local.eigenvalues)) if local.size else 0.0
        hidden = 0.0 if local.size == d else part / (1 - part) * spread if part < 1 else math.inf
        if local.lowest < -2 * delta or local.lowest - 1.2 * hidden > -0.8 * delta:
            break
    return hidden


def smallest_eigenvalue(local: Local, f_x: float, level: float, bend: float, hidden: float, key: Key) -> Steps[Found]:
    """The smallest eigenvalue, checked by second differences along its vector, the largest one's and a random one.

    They err by the fourth order and by values, the model by the third order too: where they disagree, the model is off.
    So it is where products are not symmetric.
    """
    x, d, r = local.x, local.x.size, local.near.radius
    probe = np.asarray(gaussian(key).array(local.size), np.float64)
    units = [local.vectors[:, 0], local.vectors[:, -1], probe / np.linalg.norm(probe)]
    length = length_of(x)
    wide = Reach.of(x).clip(min((48 * level * length**2 / bend) ** 0.25, 0.1 * length))
    offs = []
    own = (0.0, 0.0)
    for j, unit in enumerate(units):
        v = (unit @ local.basis).astype(x.dtype)
        near, far = yield from _bends(x, f_x, v, wide)
        error = abs(far - near) + 4 * level / wide**2
        quotient = float(local.eigenvalues @ (local.vectors.T @ unit) ** 2)
        offs += [abs(quotient - near) + error]
        own = (near, error) if j == 0 else own
    apart = r if d <= SMALL else APART * r
    products = local.basis @ local.products.T
    skew = 0.5 * float(np.linalg.norm(products - products.T, 2))
    error = max(2 * float(np.max(offs)), skew) + 4 * math.sqrt(d) * level / (apart * r)
    if math.isnan(error) or local.holes:
        error = math.inf
    # the second difference along the vector is a Rayleigh quotient: no eigenvalue below it is needed to prove it
    return Found(local.lowest, error + hidden, min(error, abs(own[0] - local.lowest) + own[1]))


def _bends(x: Vector, f_x: float, v: Vector, radius: float) -> Steps[tuple[float, float]]:
    """Second differences along v at a radius and at twice that."""
    told = yield from insisted(Query(x, tuple(Along(t * radius, v) for t in (1, -1, 2, -2))), tries=5)
    return (
        float(told[0] + told[1] - 2 * f_x) / radius**2,
        float(told[2] + told[3] - 2 * f_x) / (2 * radius) ** 2,
    )
