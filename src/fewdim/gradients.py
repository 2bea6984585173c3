"""Gradients from differences along every axis, in one query, with a radius for each."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fewdim.core import Query, Steps
from fewdim.directions import Along, Vector, axis
from fewdim.lines import insisted

Floats = NDArray[np.float64]

FLAT = 1e-6  # of the largest curvature: the least that a coordinate is given


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
