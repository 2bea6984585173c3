"""From what was measured to an `EffectiveDimension`: estimates, their sampling error, a spectrum, scenarios."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import nnls

from fewdim.dimension.forecast import Scenario
from fewdim.dimension.inversion import (
    Curve,
    Floats,
    Range,
    convex_curve,
    fitted_spectrum,
    indefinite_curve,
    power_sum,
    signed_sum,
)
from fewdim.dimension.lanczos import Quadrature
from fewdim.dimension.result import EffectiveDimension, Estimate, Spectrum
from fewdim.dimension.sketch import Plateau, Sketch

GROUPS = 10  # of the jackknife
EXACT = "The Hessian was given; how far its point speaks for others, one point cannot tell."


def from_matrix(
    matrix: Floats, alphas: tuple[float, ...], place: Plateau | None = None, slopes: Floats | None = None
) -> EffectiveDimension:
    """From a dense Hessian, given or measured; measured eigenvalues are good to sqrt(d) times an entry's error."""
    if not np.isfinite(matrix).all() or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"the Hessian must be a finite square matrix; got shape {matrix.shape}.")
    d = matrix.shape[0]
    e, V = np.linalg.eigh((matrix + matrix.T) / 2)
    # an entry is a second difference over d, but along an axis the higher orders can be d times those of a random line
    error = 0.0 if place is None else math.sqrt(d) * place.error
    sizes = np.abs(e)
    estimates = {}
    for a in alphas:
        total = float(np.sum(sizes**a))
        low, high = float(np.sum(np.maximum(sizes - error, 0) ** a)), float(np.sum((sizes + error) ** a))
        positive = float(np.sum(np.maximum(e, 0) ** a))
        estimates[a] = Estimate(a, total, low, high, d * float(sizes.max()) ** a, positive)
    known = sizes > 10 * error
    start = np.ones(d)
    if slopes is not None:
        start = np.where(known, (V.T @ slopes) ** 2 / np.where(known, e, 1.0) ** 2, 0.0)
    return EffectiveDimension(
        estimates=estimates,
        d=d,
        smoothness=float(sizes.max()),
        smoothness_range=(float(sizes.max()) - error, float(sizes.max()) + error),
        trace=float(e.sum()),
        trace_error=error,
        spectrum=Spectrum(sizes[::-1].copy(), np.ones(d), float(d - known.sum()), 10 * error),
        nfev=0,
        smooth=place is None or place.smooth,
        sentence=EXACT if place is None else place.sentence,
        convex=bool(e.min() >= -10 * error - 1e-12 * float(sizes.max())),
        estimator="the Hessian given" if place is None else "the whole Hessian by differences",
        scenarios=(Scenario(sizes[known], np.ones(int(known.sum())), start[known]),),
    )


def from_trace(bends: Floats, d: int, alphas: tuple[float, ...], place: Plateau) -> EffectiveDimension:
    """From second differences along Gaussian directions alone: the trace of a convex f and bounds on L."""
    n, trace = bends.size, float(bends.mean())
    error = float(bends.std(ddof=1)) / math.sqrt(n)
    square = max(float(bends.var(ddof=1)) / 2, 0.0)  # |A|_F^2, and |A|_F^2/tr <= L <= |A|_F
    top, low = min(math.sqrt(square), abs(trace)), square / max(abs(trace), 1e-300)
    smoothness = math.sqrt(top * low) if low < top else top
    whole = Estimate(1.0, trace, trace - 2 * error, trace + 2 * error, d * smoothness, trace)
    return EffectiveDimension(
        estimates={1.0: whole},
        d=d,
        smoothness=smoothness,
        smoothness_range=(min(low, top), top),
        trace=trace,
        trace_error=error,
        spectrum=Spectrum(np.empty(0), np.empty(0), float(d), math.inf),
        nfev=0,
        smooth=place.smooth,
        sentence=place.sentence,
        convex=place.convex,
        estimator="trace by second differences",
    )


def from_quadrature(
    rule: Quadrature, d: int, alphas: tuple[float, ...], place: Plateau | None, *, nfev: int, products: int
) -> EffectiveDimension:
    """From Lanczos quadrature: the mean over probes and twice its standard error."""
    if not rule.nodes:
        raise ValueError("no Hessian-vector product could be had: every one had a missing value.")
    probes = len(rule.nodes)
    e, w = np.concatenate(rule.nodes), np.concatenate(rule.weights) / probes
    L = float(np.abs(e).max())
    estimates = {}
    for a in alphas:
        sums = rule.sums(a)
        # two probes say little about their own spread: the trace of |A|^a by Gaussian probes varies by sqrt(2 sum l^2a)
        spread = math.sqrt(2 * float(np.sum(w * np.abs(e) ** (2 * a))) / probes)
        error = max(float(sums.std(ddof=1)) / math.sqrt(probes) if probes > 1 else 0.0, spread)
        mean = float(sums.mean())
        positive = float(rule.sums(a, positive=True).mean())
        estimates[a] = Estimate(a, mean, max(mean - 2 * error, 0.0), mean + 2 * error, d * L**a, positive)
    traces = np.array([float(n @ v) for n, v in zip(rule.nodes, rule.weights, strict=True)])
    negative = float(e.min()) < -1e-6 * L
    levels = np.abs(e) > 1e-12 * L
    return EffectiveDimension(
        estimates=estimates,
        d=d,
        smoothness=L,
        smoothness_range=(L, L * (1 + 2 / len(rule.nodes[0]))),
        trace=float(traces.mean()),
        trace_error=math.sqrt(2 * float(np.sum(w * e**2)) / probes),
        spectrum=Spectrum(np.abs(e), w, 0.0, 0.0),
        nfev=nfev,
        smooth=place is None or place.smooth,
        sentence=EXACT.replace("Hessian was", "Hessian-vector product was") if place is None else place.sentence,
        convex=not negative,
        estimator="Lanczos quadrature",
        products=products,
        scenarios=(Scenario(np.abs(e)[levels], w[levels], np.ones(int(levels.sum()))),),
    )


def from_sketch(sketch: Sketch, more: Floats, d: int, alphas: tuple[float, ...], place: Plateau) -> EffectiveDimension:
    """From G'AG and `more` curvatures: Marchenko-Pastur inversion, its error by a jackknife over groups of columns."""
    S, m = sketch.S, len(sketch.S)
    if m < 10:
        raise ValueError(f"a sketch needs at least 10 directions without a missing value; {m} are left.")
    floor = 2 * place.error / math.sqrt(m)  # eigenvalues of S/m are good to this
    w = np.linalg.eigvalsh(S) / m
    convex = bool(w.min() > -4 * floor - 1e-9 * float(np.abs(w).max()))
    bends = np.r_[np.diag(S), more]
    trace, error = float(bends.mean()), float(bends.std(ddof=1)) / math.sqrt(bends.size)

    def sums(part: Floats) -> Floats:
        return np.array([_power(part, d, a, convex, floor) for a in alphas])

    found, errors = sums(S), _jackknife(S, sums)
    if convex and 1.0 in alphas:
        found[alphas.index(1.0)], errors[alphas.index(1.0)] = trace, error
    curve = _curve(w, convex, floor)
    levels, counts = fitted_spectrum(curve, d)
    L = _largest(levels, counts)
    low_L, high_L = min(L, float(counts @ levels**2) / float(counts @ levels)), max(L, float(np.abs(w).max()))
    estimates = {}
    for a, (mean, low, high), (_, low_e, high_e) in zip(alphas, found.tolist(), errors.tolist(), strict=True):
        # of the curve the values show; the trace is signed, so half of both sums is the positive part
        positive = mean if convex else (mean + (trace if a >= 1 else signed_sum(curve, d, a))) / 2
        estimates[a] = Estimate(a, mean, max(low - 2 * low_e, 0.0), high + 2 * high_e, d * L**a, positive)
    return EffectiveDimension(
        estimates=estimates,
        d=d,
        smoothness=L,
        smoothness_range=(low_L, high_L),
        trace=trace,
        trace_error=error,
        spectrum=Spectrum(levels, counts, max(d - float(curve.D[0]), 0.0), float(curve.s[0])),
        nfev=0,
        smooth=place.smooth,
        sentence=place.sentence,
        convex=convex,
        estimator=f"Gaussian sketch of {m} columns",
        scenarios=_scenarios(sketch, curve, d, convex),
    )


def _power(S: Floats, d: int, alpha: float, convex: bool, floor: float) -> Range:
    """Sum |l|^alpha by the route that suits alpha."""
    m, w = len(S), np.linalg.eigvalsh(S) / len(S)
    if alpha == 1 and convex:
        mean = float(np.trace(S)) / m
        return Range(mean, mean, mean)
    if alpha == 2:  # E S_ij^2 = |A|_F^2 off the diagonal
        mean = float(np.sum(S**2) - np.sum(np.diag(S) ** 2)) / (m * (m - 1))
        return Range(mean, mean, mean)
    if alpha < 2:
        return power_sum(_curve(w, convex and alpha < 1, floor), d, alpha)
    levels, counts = fitted_spectrum(_curve(w, convex, floor), d)
    mean = float(counts @ levels**alpha)
    return Range(mean, mean, mean)


def _curve(w: Floats, convex: bool, floor: float) -> Curve:
    return convex_curve(w, floor) if convex else indefinite_curve(w, floor)


def _largest(levels: Floats, counts: Floats) -> float:
    """L of a fitted spectrum: the level above which half an eigenvalue lies."""
    order = np.argsort(levels)[::-1]
    return float(levels[order][np.searchsorted(np.cumsum(counts[order]), 0.5)])


def _jackknife(S: Floats, statistic: Callable[[Floats], Floats]) -> Floats:
    """Standard errors of a statistic of the sketch from leaving out a tenth of its columns at a time."""
    m = len(S)
    parts = []
    for g in range(GROUPS):
        keep = np.flatnonzero(np.arange(m) % GROUPS != g)
        parts.append(statistic(S[np.ix_(keep, keep)]))
    spread = np.sum((np.array(parts) - np.mean(parts, axis=0)) ** 2, axis=0)
    return np.asarray(np.sqrt((GROUPS - 1) / GROUPS * spread))


def _scenarios(sketch: Sketch, curve: Curve, d: int, convex: bool) -> tuple[Scenario, ...]:
    """The estimated spectrum and both ends of its bracket, each with the start that the slopes tell."""
    found = []
    for which in ("estimate", "low", "high"):
        levels, counts = fitted_spectrum(curve, d, which)
        start = _start(sketch, levels, counts, float(curve.s[0])) if convex else np.ones_like(levels)
        found.append(Scenario(levels, counts, start))
    return tuple(found)


def _start(sketch: Sketch, levels: Floats, counts: Floats, floor: float) -> Floats:
    """Mean square distances along the levels, constant over each factor of 4, that the slopes b = G'g show.

    b'(S + t m)^-1 b estimates g'(A + s)^-1 g at s = 1/v(t) (the law that `inversion` rests on), which is sum n l^2 q /
    (l + s) for the mean square distances q.  Levels below the floor, of which slopes show nothing, are taken to be as
    far from the minimum as those just above it.
    """
    m = len(sketch.S)
    e, V = np.linalg.eigh(sketch.S)
    e, b2 = np.maximum(e, 0) / m, (V.T @ sketch.slopes) ** 2 / m
    t = np.geomspace(max(float(e.min()), 1e-9 * float(e.max())), 10 * float(e.max()), 60)
    s = 1 / np.mean(1 / (e + t[:, None]), axis=1)
    seen = np.sum(b2 / (e + t[:, None]), axis=1)
    group = np.floor(np.log(np.maximum(levels / floor, 1.0)) / math.log(4.0)).astype(int)
    groups = np.unique(group)
    parts = counts * levels**2 / (levels + s[:, None])
    design = np.array([parts[:, group == g].sum(axis=1) for g in groups]).T
    found, _ = nnls(design / seen[:, None], np.ones_like(seen))
    return np.asarray(found[np.searchsorted(groups, group)])
