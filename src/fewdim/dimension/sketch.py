"""Queries for the effective dimension: how far apart to look, a trace, a Gaussian sketch, the whole Hessian.

Every function here is a `Steps`: it asks for values through queries and never calls anything.  A missing value (nan) is
missing data: its direction is left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fewdim.core import Query, Steps
from fewdim.dimension.inversion import Floats
from fewdim.directions import Direction, Key, Vector, axis, gaussian, perturb
from fewdim.lines import Reach, Resolution, scale_of, visible

PROBES = 3  # directions on which radii are compared
LADDER = 8.0  # ratio of one radius to the next
NEAR = 1e-5  # of the scale of x: where the ladder starts
FAR = 1e-3  # of the scale of x: a smooth function still looks quadratic there
UNLIKE = 0.25  # change of second differences from NEAR to FAR that no smooth function shows


class Plateau(NamedTuple):
    """The radius to work at, the error of one second difference there, and whether two radii agree."""

    radius: float
    error: float
    smooth: bool
    sentence: str
    convex: bool  # no negative second difference was seen


class Sketch(NamedTuple):
    """S = G'AG, the slopes G'g, and the directions whose values were all there."""

    S: Floats
    slopes: Floats


def plateau(x: Vector, f_x: float, resolution: Resolution, key: Key) -> Steps[Plateau]:
    """Compare second differences at radii from 1e-5 of the scale of x upwards: 6 values each."""
    scale, reach, delta = scale_of(x), Reach.of(x), resolution.at(f_x)
    directions = [gaussian((*key, j)) for j in range(PROBES)]
    radius, radii, bends, slopes = reach.clip(NEAR * scale), [], [], []
    while True:
        plus_minus = yield Query(x, tuple(sign * radius * u for sign in (1, -1) for u in directions))
        plus, minus = plus_minus[:PROBES], plus_minus[PROBES:]
        bend, slope = (plus + minus - 2 * f_x) / radius**2, (plus - minus) / (2 * radius)
        seen = np.isfinite(bend)
        if seen.any() and float(np.abs(bend[seen]).max()) * radius**2 >= visible(resolution, f_x):
            radii.append(radius)
            bends.append(bend)
            slopes.append(slope)
        elif radii or (not seen.any() and radius > reach.low):
            break  # out of the domain, or values have flattened out
        if radius >= reach.high or (len(radii) > 2 and radius > FAR * scale and _departed(bends)):
            break
        radius = reach.clip(LADDER * radius)
    if not radii:
        return Plateau(radius, 4 * delta / radius**2, True, "No curvature could be seen.", True)
    return _choose(np.array(radii), np.array(bends), np.array(slopes), delta, scale)


def _departed(bends: list[Floats]) -> bool:
    """Whether the last radius left the region where f looks quadratic."""
    size = float(np.nanmean(np.abs(bends[0])))
    return float(np.nanmax(np.abs(bends[-1] - bends[-2]))) > 0.02 * size


def _choose(radii: Floats, bends: Floats, slopes: Floats, delta: float, scale: float) -> Plateau:
    """The radius of least error: of values 4 delta/r^2, of fourth order r^2, of third order r (mixed differences)."""
    size = float(np.nanmean(np.abs(bends[0])))
    errors = 4 * delta / radii**2
    if radii.size > 1:
        bend = np.sqrt(np.nanmean(np.diff(bends, axis=0) ** 2, axis=1))
        skew = 3 * np.sqrt(np.nanmean(np.diff(slopes, axis=0) ** 2, axis=1)) / ((LADDER**2 - 1) * radii[:-1])
        neglected = np.r_[bend / LADDER**2 + skew, bend[-1] + LADDER * skew[-1]]
        errors = errors + neglected
    best = int(np.argmin(errors))
    far = int(np.argmax(radii >= FAR * scale)) if radii[-1] >= FAR * scale else radii.size - 1
    far = max(far, min(1, radii.size - 1))
    change = float(np.nanmax(np.abs(bends[far] - bends[0]))) - 8 * delta / radii[0] ** 2
    smooth = bool(change <= UNLIKE * size)
    ratio = float(np.nanmax(np.abs(bends[far] - bends[0])) / size)
    where = (
        f"between the radii {radii[0]:.1e} and {radii[far]:.1e} second differences change by {ratio:.2g} of their size"
    )
    sentence = (
        f"Smooth as far as seen: {where}."
        if smooth
        else f"Not smooth here: {where}; f has kinks or steps at that scale, as a ReLU network "
        "has, and no Hessian tells how it behaves along a step."
    )
    convex = bool(np.nanmin(bends[best]) > -3 * errors[best])
    return Plateau(float(radii[best]), float(errors[best]), smooth, sentence, convex)


def trace_samples(x: Vector, f_x: float, key: Key, count: int, radius: float) -> Steps[Sketch]:
    """Second differences along `count` Gaussian directions, whose mean is the trace (Hutchinson): 2 values each."""
    bends, slopes = [np.empty(0)], [np.empty(0)]
    for block in range(0, count, 64):
        n = min(64, count - block)
        directions = [gaussian((*key, block + j)) for j in range(n)]
        both = yield Query(x, tuple(sign * radius * u for sign in (1, -1) for u in directions))
        plus, minus = both[:n], both[n:]
        seen = np.isfinite(plus + minus)
        bends.append(((plus + minus - 2 * f_x) / radius**2)[seen])
        slopes.append(((plus - minus) / (2 * radius))[seen])
    return Sketch(np.concatenate(bends)[:, None], np.concatenate(slopes))


def gaussian_sketch(x: Vector, f_x: float, key: Key, m: int, radius: float) -> Steps[Sketch]:
    """S = G'AG by second differences: m (m + 3) / 2 values beside f(x)."""
    sketch = yield from _mixed(x, f_x, [gaussian((*key, j)) for j in range(m)], radius)
    return sketch


def dense_hessian(x: Vector, f_x: float, radius: float) -> Steps[Sketch]:
    """The Hessian and the gradient, coordinate by coordinate: d (d + 3) / 2 values beside f(x).

    Steps of radius sqrt(d) along an axis, as long as those of `radius` along a Gaussian direction.
    """
    sketch = yield from _mixed(x, f_x, [axis(i) for i in range(x.size)], radius * math.sqrt(x.size))
    return sketch


def _mixed(x: Vector, f_x: float, directions: list[Direction], radius: float) -> Steps[Sketch]:
    """Second differences of all pairs of directions; those with a missing value are dropped, worst first."""
    m = len(directions)
    both = yield Query(x, tuple(sign * radius * u for sign in (1, -1) for u in directions))
    plus, minus = both[:m], both[m:]
    S = np.diag((plus + minus - 2 * f_x) / radius**2)
    for i in range(m - 1):
        # the pairs (i, j > i) from the moved origin x + r u_i: no direction is written out
        moved = perturb(x, radius, directions[i])
        values = yield Query(moved, tuple(radius * u for u in directions[i + 1 :]))
        S[i, i + 1 :] = S[i + 1 :, i] = (values - plus[i] - plus[i + 1 :] + f_x) / radius**2
    keep = np.arange(m)
    while keep.size and not np.isfinite(S[np.ix_(keep, keep)]).all():
        missing = np.isnan(S[np.ix_(keep, keep)]).sum(axis=0)
        keep = np.delete(keep, int(np.argmax(missing)))
    return Sketch(S[np.ix_(keep, keep)], ((plus - minus) / (2 * radius))[keep])
