"""From the eigenvalues of a small Gaussian sketch to power sums of the eigenvalues of the large matrix behind it.

Let w be the eigenvalues of S/m, S = G'AG with an m-column Gaussian G, and v(z) = mean 1/(w - z).  As m and d grow
together (Marchenko and Pastur; Silverstein), every z off the spectrum obeys

    sum_i l_i / (l_i + 1/v(z)) = m (1 + z v(z)),

so one sketch gives the function on the left at the scales 1/v.  Two paths of z are followed:

    z = -t, t > 0       convex:      D(s) = sum l/(l + s)          1/v = s      power p = 1
    v(z) = i/s, Im z>0  indefinite:  D(s) = sum l^2/(l^2 + s^2)    1/v = -is    power p = 2

and  sum |l|^a = (p sin(pi a/p) / pi) int D(s) s^(a-1) ds  for 0 < a < p.  What is not seen is s below the scale s_0 at
which the path ends: D is at most d, at least D(s_0) and falls no faster than s^-p, which brackets the rest; the point
estimate continues 1/D = 1/d + 1/c by a c that matches D and its slope at s_0 and whose slope goes on to fall, as s
falls, at the rate at which it was falling (for a flat spectrum and for a power law c, the slope does not).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Floats = NDArray[np.float64]

TILT = 0.3  # the second path ends where Im z < TILT s: nearer the axis single eigenvalues of the sketch show


class Curve(NamedTuple):
    """D at scales s in rising order, the power p, and for p = 2 the odd part sum l s/(l^2 + s^2)."""

    s: Floats
    D: Floats
    power: int
    odd: Floats
    top: float  # of the sketch: no eigenvalue of A is much larger


class Range(NamedTuple):
    """An estimate and the interval it can lie in."""

    estimate: float
    low: float
    high: float


def convex_curve(w: Floats, floor: float = 0.0) -> Curve:
    """D along z = -t, from the eigenvalues of S/m; those below `floor` are noise and left unseen."""
    w = np.maximum(w, 0.0)
    top, m = float(w.max()), w.size
    seen = w[w > max(floor, 1e-13 * top)]
    t = np.geomspace(max(1e-3 * float(seen.min()), 1e-12 * top, floor), 1e5 * top, 400)
    v = np.mean(1 / (w + t[:, None]), axis=1)
    return Curve(1 / v, m * (1 - t * v), 1, np.zeros_like(v), top)


def indefinite_curve(w: Floats, floor: float = 0.0) -> Curve:
    """D along v(z) = i/s, followed by Newton's method from large s down."""
    top, m = float(np.abs(w).max()), w.size
    s, z = 1e4 * top, 1e4j * top
    rows: list[tuple[float, float, float]] = []
    while s > 1e-12 * top:
        for _ in range(50):
            r = 1 / (w - z)
            dz = (r.mean() - 1j / s) / np.mean(r * r)
            z -= dz
            if abs(dz) < 1e-12 * abs(z):
                break
        else:
            break
        if z.imag < max(TILT * s, floor):
            break
        total = m * (1 + 1j * z / s)
        rows.append((s, total.real, total.imag))
        s *= 0.97
    table = np.array(rows[::-1])
    return Curve(table[:, 0], table[:, 1], 2, table[:, 2], top)


def power_sum(curve: Curve, d: int, alpha: float) -> Range:
    """Sum |l|^alpha, 0 < alpha < p, with the bracket of what is unseen."""
    s, D, p, *_ = curve
    factor = p * math.sin(math.pi * alpha / p) / math.pi
    seen = _integral(s, D, alpha) + float(D[-1]) * s[-1] ** alpha / (p - alpha)
    if D[0] >= d * (1 - 1e-9):  # nothing below: D is d
        total = factor * (seen + d * s[0] ** alpha / alpha)
        return Range(total, total, total)
    below = s[0] * np.geomspace(1e-12, 1, 1500)
    high = np.minimum(d, D[0] * (s[0] / below) ** p)
    parts = [_integral(below, c, alpha) for c in (continued(curve, d, below), np.full_like(below, D[0]), high)]
    estimate, low, high_ = (factor * (seen + part) for part in parts)
    return Range(min(max(estimate, low), high_), low, high_)


def signed_sum(curve: Curve, d: int, alpha: float) -> float:
    """Sum sign(l) |l|^alpha, 0 < alpha < 1, of what is seen; 0 for what is not."""
    if curve.power == 1:
        return power_sum(curve, d, alpha).estimate
    return 2 * math.cos(math.pi * alpha / 2) / math.pi * _integral(curve.s, curve.odd, alpha)


def continued(curve: Curve, d: int, below: Floats) -> Floats:
    """D at scales below those seen: 1/D = 1/d + 1/c, the slope of c going on to fall as it was falling."""
    s, D, p, *_ = curve
    c = D / np.maximum(1 - D / d, 1e-12)

    def slope(low: float, high: float) -> float:
        i, j = np.searchsorted(s, (low * s[0], high * s[0]))
        found = -math.log(c[j] / c[i]) / math.log(s[j] / s[i])
        return min(max(found, 1e-6), float(p))

    near, far = slope(1, 2), slope(2, 8)  # at about sqrt(2) and 4 times the last scale
    fall = max(math.log(far / near) / math.log(4 / math.sqrt(2)), 0.0)
    u = np.log(s[0] / below)
    log_c = math.log(c[0]) + near * (u if fall < 1e-9 else -np.expm1(-fall * u) / fall)
    c_below = np.exp(log_c)
    return np.asarray(c_below * d / (c_below + d))


def fitted_spectrum(curve: Curve, d: int, which: str = "estimate") -> tuple[Floats, Floats]:
    """Eigenvalues and their counts that reproduce D, with the unseen part continued or at an end of its bracket.

    The inverse problem is ill-posed: single levels mean nothing, smooth sums over them do.
    """
    s, D, p, *_ = curve
    below = s[0] * np.geomspace(1e-4, 1, 40, endpoint=False)
    rest = {
        "estimate": continued(curve, d, below),
        "low": np.full_like(below, D[0]),
        "high": np.minimum(d, D[0] * (s[0] / below) ** p),
    }[which]
    keep = np.unique(np.geomspace(1, s.size, 60).astype(int)) - 1
    keep = keep[D[keep] > 1e-4 * D[0]]
    scales, counts = np.r_[below, s[keep]], np.r_[rest, D[keep]]
    levels = np.geomspace(1e-3 * min(s[0], curve.top), 1.5 * curve.top, 200)
    model = levels**p / (levels**p + scales[:, None] ** p)
    weights, _ = nnls(model / counts[:, None], np.ones_like(counts), maxiter=5000)
    some = weights > 1e-9 * d
    return levels[some], weights[some]


def _integral(s: Floats, D: Floats, alpha: float) -> float:
    """Int D s^(alpha-1) ds by the trapezoidal rule in log s."""
    y = D * s**alpha
    return float(np.sum(0.5 * (y[1:] + y[:-1]) * np.diff(np.log(s))))
