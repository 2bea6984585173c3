"""Gradients from differences along every axis, in one query, with a radius for each."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewdim.core import Query, Steps
from fewdim.directions import Along, Vector, axis, inner
from fewdim.lines import forward_radius, insisted, scale_of, visible
from fewdim.scales import Scales

Floats = NDArray[np.float64]

CLEAR = 100  # squared slopes above this many squared errors are clear enough for forward differences
SAMPLE = 6  # axes
GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of it fall evenly into the unit interval, and never into step
ALIKE = 0.2  # standard deviation of curvatures, by their mean, below which a diagonal tells nothing
MISSED = 2  # times the trace that the sample speaks for: where there is more it has missed the axes that matter
FLAT = 1e-6  # of the largest curvature: the least that a coordinate is given


class Found(NamedTuple):
    """A gradient, the diagonal of the Hessian, and whether second differences are too large to be curvature."""

    g: Floats
    diagonal: Floats
    odd: bool = False


def first_gradient(x: Vector, f_x: float, scales: Scales) -> Steps[Found]:
    """A gradient where no diagonal is known: central, as wide as it takes to see curvature, and with it the diagonal.

    Forward, half the price, where values are exact, slopes are clear, and curvature is the same along all axes, as a
    few of them say.
    """
    known = not math.isnan(scales.trace)
    if known and scales.resolution.noise == 0:
        c = yield from alike(x, f_x, scales)
        if not math.isnan(c):
            diagonal = np.full(x.size, c)
            delta = scales.resolution.at(f_x)
            g = yield from forward(x, f_x, representable(x, np.full(x.size, forward_radius(delta, c))), diagonal)
            if inner(g, g) >= CLEAR * delta * c * x.size:
                return Found(g, diagonal)
    radius = _sight(x, f_x, scales) if known else 1e-4 * scale_of(x)
    for _ in range(8):
        radius = scales.reach.clip(radius)
        g, c_s = yield from central(x, f_x, representable(x, np.full(x.size, radius)), None)
        seen = float(np.abs(c_s).max()) * radius**2 >= 0.1 * visible(scales.resolution, f_x)
        if seen or known or radius >= scales.reach.high:
            break
        radius *= 30
    odd = float(np.median(np.abs(c_s))) * radius > float(np.median(np.abs(g)))
    return Found(g, fit_to_divide_by(c_s), odd)


def sample(d: int) -> NDArray[np.intp]:
    """A few of d axes that stand for all."""
    return np.asarray((np.arange(1, SAMPLE + 1) * GOLDEN % 1 * d).astype(np.intp))


def alike(x: Vector, f_x: float, scales: Scales) -> Steps[float]:
    """The curvature along the axes, if a few of them say that it is the same along all; else nan.  6 or 12 values."""
    radius, c = np.full(x.size, scales.reach.clip(_sight(x, f_x, scales))), np.empty(0)
    for some in np.split(sample(x.size), 2):
        h = representable(x, radius)[some]
        sides = tuple(Along(float(side * r), axis(int(i))) for side in (1, -1) for i, r in zip(some, h, strict=True))
        ahead, behind = np.split((yield from insisted(Query(x, sides))), 2)
        with np.errstate(all="ignore"):
            c = np.append(c, (ahead + behind - 2 * f_x) / h**2)
            mean = float(np.mean(c))
            if not (float(np.min(c)) > 0 and float(np.std(c)) < ALIKE * mean < math.inf):
                return math.nan
    return mean if scales.trace < MISSED * x.size * mean else math.nan


def _sight(x: Vector, f_x: float, scales: Scales) -> float:
    """The radius that is wide enough to tell curvatures that are 1e-6 of the mean one."""
    delta = scales.resolution.at(f_x)
    return math.sqrt(max(900 * delta, math.sqrt(delta * abs(f_x))) * x.size / scales.trace)


def central(x: Vector, f_x: float, h: Floats, known: Floats | None) -> Steps[tuple[Floats, Floats]]:
    """Slopes and curvatures along the axes, 2d values.

    Where one side is missing the other one does, with the curvature that is known or that a value twice as far tells.
    """
    values = yield from insisted(Query(x, (*along_axes(h), *along_axes(-h))))
    ahead, behind = values[: x.size], values[x.size :]
    with np.errstate(all="ignore"):  # a radius of 1e-160 has no square
        c = (ahead + behind - 2 * f_x) / h**2
    c[~np.isfinite(c)] = math.nan
    lost = np.flatnonzero(np.isnan(ahead) != np.isnan(behind))
    if known is not None:
        c = np.where(np.isnan(c), known, c)
    elif lost.size:
        there = np.where(np.isnan(ahead), -2 * h, 2 * h)
        farther = yield from insisted(Query(x, tuple(Along(float(there[i]), axis(i)) for i in lost.tolist())))
        with np.errstate(all="ignore"):
            c[lost] = (farther - 2 * np.where(np.isnan(ahead), behind, ahead)[lost] + f_x) / h[lost] ** 2
    seen = np.abs(c[np.isfinite(c)])
    c = np.where(np.isfinite(c), c, float(seen.max()) if seen.size else 0.0)  # with a lesser one steps may go too far
    one_sided = np.where(np.isnan(behind), (ahead - f_x) / h - 0.5 * h * c, (f_x - behind) / h + 0.5 * h * c)
    g = np.where(np.isnan(ahead + behind), one_sided, (ahead - behind) / (2 * h))
    return np.where(np.isnan(g), 0.0, g), c


def forward(x: Vector, f_x: float, h: Floats, curvatures: Floats) -> Steps[Floats]:
    """Slopes along the axes, d values, less what the known curvatures add: exact on quadratics."""
    values = yield from insisted(Query(x, along_axes(h)))
    g = (values - f_x) / h - 0.5 * h * curvatures
    return np.where(np.isnan(g), 0.0, g)


def along_axes(h: Floats) -> tuple[Along, ...]:
    """The offsets h_i e_i."""
    return tuple(Along(float(h_i), axis(i)) for i, h_i in enumerate(h))


def representable(x: Vector, h: Floats) -> Floats:
    """The radii that adding them to x amounts to: 16 spacings at the least, and no rounding in between."""
    h = np.maximum(h, 16 * np.spacing(np.abs(x)).astype(float)).astype(x.dtype)
    return ((x + h) - x).astype(float)


def fit_to_divide_by(c: Floats) -> Floats:
    """Curvatures made fit to divide by: what counts is their size, and none is flat."""
    size = np.abs(c)
    return np.maximum(size, FLAT * float(size.max()) + 1e-300)
