"""`effective_dimension`: how many dimensions of f matter at a point, from values, products or the Hessian itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fewdim import evaluate, pools
from fewdim.core import Steps, value
from fewdim.dimension import lanczos
from fewdim.dimension.result import EffectiveDimension
from fewdim.dimension.sketch import Plateau, dense_hessian, gaussian_sketch, plateau, trace_samples
from fewdim.dimension.summaries import from_matrix, from_quadrature, from_sketch, from_trace
from fewdim.directions import Key, Vector
from fewdim.lines import Resolution
from fewdim.noise import noise_level
from fewdim.session import Point, as_vector, root_key

T = TypeVar("T")
Estimator = Literal["auto", "trace", "sketch", "lanczos", "dense"]
TRACE_VALUES, SKETCH_VALUES = 600, 5200  # default budgets
PROBES, DEPTH = 3, 30  # of Lanczos quadrature with a given product


class Source:
    """Evaluates queries and counts every value; nan and exceptions are missing values, and so is all beyond `most`.

    Points are numbered upwards from `first`.
    """

    def __init__(
        self, values: evaluate.Evaluator, shape: tuple[int, ...], first: int = 0, most: float = math.inf
    ) -> None:
        self.values, self.shape, self.first, self.most, self.nfev = values, shape, first, most, 0

    def drive(self, steps: Steps[T]) -> T:
        """Run a generator to its end."""
        try:
            query = next(steps)
            while True:
                count = int(min(len(query), self.most - self.nfev))
                points = [Point(self.first + self.nfev + i, query, i, self.shape) for i in range(count)]
                told = np.full(len(query), math.nan)
                told[:count] = [v.fun for v in self.values(points)] if points else []
                self.nfev += count
                query = steps.send(told)
        except StopIteration as stop:
            result: T = stop.value
            return result


def effective_dimension(
    fun: Callable[..., Any],
    x: ArrayLike,
    *,
    alphas: Sequence[float] = (0.5, 1.0),
    maxfev: int | None = None,
    hessian: Callable[[Vector], ArrayLike] | ArrayLike | None = None,
    hvp: Callable[..., Any] | None = None,
    over: Sequence[ArrayLike] | None = None,
    estimator: Estimator = "auto",
    noise: float | Literal["auto"] = "auto",
    rng: int | np.random.Generator | None = None,
    vectorized: bool = False,
    workers: Any = None,
) -> EffectiveDimension:
    r"""ED_alpha = sum_i sigma_i(Hessian of f at x)^alpha, from values of f alone.

    Parameters
    ----------
    fun : callable
        As in `minimize`; not called when `hessian` is given.  A value that is nan or an exception is missing data.
    x : array_like
        The point.  What is estimated is the *local* value there; the paper's ED_alpha is its supremum over all x.
    alphas : sequence of float
        Powers, each above 0.  With alphas=(1.0,) the trace of a convex f is all that is needed: 600 evaluations.
    maxfev : int, optional
        Most evaluations at a point; default 600 for alphas=(1.0,), else 5200.
    hessian : array_like or callable, optional
        The Hessian at x, or a function of x that returns it: the result is exact.
    hvp : callable, optional
        hvp(x, v) = Hessian(x) v: stochastic Lanczos quadrature, 3 vectors of 30 products.
    over : sequence of array_like, optional
        Further points; the result is the largest estimate seen, alpha by alpha.
    estimator : "auto", "trace", "sketch", "lanczos" or "dense"
        From values: "trace" is Hutchinson's; "sketch" inverts the Marchenko-Pastur law of a Gaussian sketch, m (m+3)/2
        values for m columns; "lanczos" is Lanczos quadrature on products by differences, d + 1 values each; "dense" the
        whole Hessian, d (d+3)/2 values.  "auto" is "dense" where the budget allows it, else "trace" for alphas=(1.0,),
        else "lanczos" where the Hessian is indefinite and the budget allows 30 products, else "sketch".
    noise : float or "auto"
        The level of the noise of fun; "auto" spends about 8 evaluations on it.
    rng, vectorized, workers
        As in `minimize`.  A sketch is one query, which fills any pool.

    Returns
    -------
    EffectiveDimension
        `ed[alpha].estimate`, `.low`, `.high`; `str(ed)` is a report; `ed.forecast(gap)` predicts evaluations.

    >>> import numpy as np
    >>> weights = np.arange(1, 41) ** -2.0
    >>> ed = effective_dimension(lambda x: 0.5 * weights @ x**2, np.ones(40), rng=0)
    >>> round(ed[1.0].estimate, 4), round(float(weights.sum()), 4), ed.nfev
    (1.6202, 1.6202, 911)
    """
    powers = _checked(alphas, maxfev, estimator)
    if over is not None:
        points = [x, *over]
        parts = [
            effective_dimension(
                fun, p, alphas=powers, maxfev=maxfev, hessian=hessian, hvp=hvp, estimator=estimator, noise=noise,
                rng=rng, vectorized=vectorized, workers=workers,
            )
            for p in points
        ]  # fmt: skip
        return _largest(parts)
    origin, shape = as_vector(x, "effective_dimension(x=...)"), np.shape(x)
    if hessian is not None:
        matrix = hessian(np.asarray(x, float)) if callable(hessian) else hessian
        return from_matrix(np.asarray(matrix, np.float64).reshape(origin.size, origin.size), powers)
    key = root_key(rng)
    if hvp is not None:
        product = lanczos.given(lambda v: hvp(np.asarray(x, float), v), shape)
        source = Source(evaluate.serial(fun, (), reuse_buffer=False), shape)  # asked nothing: the products are given
        rule = source.drive(lanczos.quadrature(product, origin.size, key, PROBES, DEPTH))
        return from_quadrature(rule, origin.size, powers, None, nfev=0, products=rule.products)
    budget = maxfev or (TRACE_VALUES if powers == (1.0,) else SKETCH_VALUES)
    with pools.pool(fun, (), workers, None, vectorized, False) as team:
        source = Source(evaluate.in_order(team), shape)
        found = source.drive(_estimate(origin, key, powers, budget, estimator, noise))
    return replace(found, nfev=source.nfev)


def _estimate(
    x: Vector, key: Key, alphas: tuple[float, ...], budget: int, estimator: Estimator, noise: float | Literal["auto"]
) -> Steps[EffectiveDimension]:
    """The whole estimation from values, as one generator."""
    f_x = yield from value(x)
    if math.isnan(f_x):
        raise ValueError("effective_dimension(x=...) must be a point where fun has a value; there is none.")
    resolution, spent = Resolution(0.0 if isinstance(noise, str) else noise), 1
    if isinstance(noise, str):
        resolution, used = yield from counted(noise_level(x, f_x, (*key, 0)))
        spent += used
    place, used = yield from counted(plateau(x, f_x, resolution, (*key, 1)))
    left, d = budget - spent - used, x.size
    chosen = _choose(estimator, alphas, left, d, place)
    if chosen == "dense":
        whole = yield from dense_hessian(x, f_x, place.radius)
        return from_matrix(whole.S, alphas, place, whole.slopes)
    if chosen == "trace":
        sample = yield from trace_samples(x, f_x, (*key, 2), max(2, left // 2), place.radius)
        return from_trace(sample.S[:, 0], d, alphas, place)
    if chosen == "lanczos":
        beside = yield from lanczos.neighbours(x, place.radius)
        product = lanczos.by_differences(x, f_x, place.radius, beside)
        depth = min(DEPTH, (left - d) // (d + 1))
        probes = max(1, (left - d) // (depth * (d + 1))) if depth else 0
        rule = yield from lanczos.quadrature(product, d, (*key, 3), min(probes, 2 * PROBES), depth)
        return from_quadrature(rule, d, alphas, place, nfev=0, products=0)
    # the trace is the one sum that the sketch's diagonal alone would tell: it gets values of its own
    apart = max(left // 6, min(300, left // 2)) // 2 if 1.0 in alphas and place.convex else 0
    m = int((math.sqrt(9 + 8 * (left - 2 * apart)) - 3) / 2)
    sketch = yield from gaussian_sketch(x, f_x, (*key, 2), m, place.radius)
    more = yield from trace_samples(x, f_x, (*key, 4), apart, place.radius)
    return from_sketch(sketch, more.S[:, 0], d, alphas, place)


def counted(steps: Steps[T]) -> Steps[tuple[T, int]]:
    """The same queries; the result with the number of values asked."""
    asked = 0
    try:
        query = next(steps)
        while True:
            asked += len(query)
            query = steps.send((yield query))
    except StopIteration as stop:
        return stop.value, asked


def _choose(estimator: Estimator, alphas: tuple[float, ...], left: int, d: int, place: Plateau) -> str:
    """Which estimator to use with `left` values, and whether they suffice for it."""
    needs = {"dense": d * (d + 3) // 2, "lanczos": d + 5 * (d + 1), "sketch": 90, "trace": 4}
    if estimator == "auto":
        if needs["dense"] <= left:
            return "dense"
        if alphas == (1.0,) and place.convex:
            return "trace"
        return "lanczos" if not place.convex and left >= d + DEPTH * (d + 1) else "sketch"
    if needs[estimator] > left:
        raise ValueError(
            f'effective_dimension(estimator="{estimator}") needs {needs[estimator]} evaluations at d = {d} after '
            f"the first few; maxfev= leaves {left}."
        )
    return estimator


def _largest(parts: list[EffectiveDimension]) -> EffectiveDimension:
    """The largest estimate of each alpha over several points; the rest from the point of the largest trace."""
    top = max(parts, key=lambda part: part.trace)
    estimates = {}
    for alpha in top.estimates:
        best = max((part[alpha] for part in parts), key=lambda e: e.estimate)
        low, high = max(part[alpha].low for part in parts), max(part[alpha].high for part in parts)
        estimates[alpha] = replace(best, low=low, high=high)
    rough = [part for part in parts if not part.smooth]
    return replace(
        top,
        estimates=estimates,
        nfev=sum(part.nfev for part in parts),
        products=sum(part.products for part in parts),
        points=len(parts),
        smooth=not rough,
        convex=all(part.convex for part in parts),
        sentence=(rough[0] if rough else top).sentence,
    )


def _checked(alphas: Sequence[float], maxfev: int | None, estimator: str) -> tuple[float, ...]:
    powers = tuple(float(a) for a in alphas)
    if not powers or not all(0 < a < math.inf for a in powers):
        raise ValueError(f"effective_dimension(alphas=...) must hold numbers above 0; got {alphas!r}.")
    if maxfev is not None and maxfev < 100:
        raise ValueError(f"effective_dimension(maxfev=...) must be at least 100; got {maxfev!r}.")
    choices = ("auto", "trace", "sketch", "lanczos", "dense")
    if estimator not in choices:
        raise ValueError(f"effective_dimension(estimator=...) must be one of {', '.join(choices)}; got {estimator!r}.")
    return powers
