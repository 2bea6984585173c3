"""`certify`: why a run may stop at a point: second-order stationary, a saddle, still going down, or noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from fewdim import evaluate, pools
from fewdim.core import Query, Steps
from fewdim.dimension.estimate import Source, counted
from fewdim.directions import Key, Vector
from fewdim.lines import Resolution, insisted
from fewdim.methods.settings import check_noise, check_positive, is_number
from fewdim.noise import noise_level
from fewdim.oracles.second_order import TRIES, difference_radius
from fewdim.scales import curvature
from fewdim.session import as_vector, root_key
from fewdim.stationarity import SMALL, Found, lanczos, model_with_error, sketched_norm, smallest_eigenvalue

Verdict = Literal["second-order stationary", "negative curvature", "not stationary", "below noise"]
EPSILON, DELTA = 1e-4, 1e-2
SLOPES = 20  # of the sketch that tells a large gradient cheaply
CHECKS = 12  # values that check the smallest eigenvalue


@dataclass(frozen=True, eq=False)
class Certificate:
    """What values say about a point; `str()` opens with the verdict.

    `gradient_norm` and `curvature`, the smallest eigenvalue of the Hessian, hold to within `gradient_error` and
    `curvature_error` (nan where they were not needed for the verdict; inf where no lower eigenvalue than the one found
    was looked for); `direction` is the unit vector of `curvature`.
    """

    verdict: Verdict
    sentence: str
    gradient_norm: float
    gradient_error: float
    curvature: float
    curvature_error: float
    direction: Vector | None
    epsilon: float
    delta: float
    noise: float
    nfev: int = 0

    def __str__(self) -> str:
        known = "or lower" if math.isinf(self.curvature_error) else f"+- {self.curvature_error:.1g}"
        bend = "not needed" if math.isnan(self.curvature) else f"{self.curvature:.3g} {known}"
        return (
            f"{self.verdict}: {self.sentence}\n"
            f"  |g| = {self.gradient_norm:.3g} +- {self.gradient_error:.1g} (epsilon {self.epsilon:g}), smallest "
            f"eigenvalue {bend} (delta {self.delta:g}); {self.nfev} evaluations"
        )


def certify(
    fun: Callable[..., Any],
    x: ArrayLike,
    *,
    epsilon: float = EPSILON,
    delta: float = DELTA,
    maxfev: int | None = None,
    noise: float | Literal["auto"] = "auto",
    rng: int | np.random.Generator | None = None,
    vectorized: bool = False,
    workers: Any = None,
) -> Certificate:
    """Whether x is an (epsilon, delta) second-order stationary point: |g| <= epsilon and every eigenvalue >= -delta.

    Parameters
    ----------
    fun, vectorized, workers, rng
        As in `minimize`.
    x : array_like
        The point.
    epsilon, delta : float
        The paper's definition of an (epsilon, delta)-SSP, in the units of the gradient and the Hessian.
    maxfev : int, optional
        Most evaluations; where they do not suffice the verdict is "below noise" and says so.  Without it: about
        d^2/2 up to d = 60; beyond, 80 for a large gradient, else 4d and d + 1 for each Lanczos step, 200 at most.
    noise : float or "auto"
        The level of the noise of fun; "auto" spends about 8 evaluations on it.

    Returns
    -------
    Certificate
        Its `verdict` is "second-order stationary", "negative curvature" (with `curvature` and `direction`), "not
        stationary", or "below noise": the values are too coarse, or too few, to tell.  Bounds hold up to round-off and
        noise as estimated; those of the sketch and of Lanczos with probability 0.9999 over their random vectors.

    >>> import numpy as np
    >>> saddle = certify(lambda x: x[0] ** 2 - x[1] ** 2, np.zeros(2), rng=0)
    >>> saddle.verdict, round(saddle.curvature, 3)
    ('negative curvature', -2.0)
    """
    check_positive("certify", epsilon=epsilon, delta=delta)
    check_noise("certify", noise)
    if not callable(fun):
        raise TypeError(f"certify(fun=...) must be callable; got {fun!r}.")
    if maxfev is not None and not (is_number(maxfev) and float(maxfev).is_integer() and maxfev >= 100):
        raise ValueError(f"certify(maxfev=...) must be an integer of at least 100; got {maxfev!r}.")
    origin = as_vector(x, "certify(x=...)")
    steps = certificate(origin, root_key(rng), epsilon, delta, noise, maxfev)
    with pools.pool(fun, (), workers, None, vectorized, False) as team:
        source = Source(evaluate.in_order(team), np.shape(x), most=math.inf if maxfev is None else maxfev)
        found = source.drive(steps)
    direction = None if found.direction is None else found.direction.reshape(np.shape(x))
    return replace(found, nfev=source.nfev, direction=direction)


def attach(
    result: OptimizeResult, source: evaluate.Evaluator, key: Key, noise: float | Literal["auto"]
) -> OptimizeResult:
    """The result of a run with the `certificate` of its x, counted in `nfev`; None where either was broken off.

    Their numbers lie below 0 and depend on where the run ended, so that a journal can tell them from the run's own.
    """
    if result.reason in ("interrupted", "failures", "unbounded"):
        result.certificate = None
        return result
    level = result.noise if noise == "auto" and result.noise >= 0 else noise
    drawn = Source(source, result.x.shape, first=-(result.nfev + 1) * 2**24)
    steps = certificate(as_vector(result.x), (*key, 2**33), EPSILON, DELTA, level, None)
    result.certificate = None
    try:
        found = drawn.drive(steps)
        direction = None if found.direction is None else found.direction.reshape(result.x.shape)
        result.certificate = replace(found, nfev=drawn.nfev, direction=direction)
    except KeyboardInterrupt:
        return result
    except BaseException as error:
        error.partial_result = result  # type: ignore[attr-defined]
        raise
    finally:
        result.nfev += drawn.nfev
    return result


UNKNOWN = Found(math.nan, math.nan, math.nan)


def certificate(
    x: Vector, key: Key, epsilon: float, delta: float, noise: float | str, maxfev: int | None
) -> Steps[Certificate]:
    """The whole of `certify`, as one generator."""
    (f_x, resolution, bend), used = yield from counted(_scales(x, key, noise))
    d, level = x.size, resolution.at(f_x)
    radius = difference_radius(x, level, bend)
    left = math.inf if maxfev is None else maxfev - used
    bound = _Bounds(epsilon, delta, resolution.noise)
    if d > SMALL:
        sketch = yield from sketched_norm(x, radius, level, (*key, 2), SLOPES)
        left -= 4 * SLOPES
        if sketch.estimate - sketch.below > epsilon:
            return bound.certificate(sketch, UNKNOWN, None)
        if left < 4 * d + 4 * (d + 1) + CHECKS:
            return bound.certificate(sketch, UNKNOWN, None, "maxfev= leaves too few evaluations")
    elif left < 4 * d + d * (d - 1) // 2 + CHECKS:
        return bound.certificate(UNKNOWN, UNKNOWN, None, "maxfev= leaves too few evaluations")
    gradient, local = yield from model_with_error(x, f_x, radius, resolution, (*key, 3))
    if d > SMALL and gradient.estimate - gradient.below > epsilon:
        return bound.certificate(gradient, UNKNOWN, None)
    level = resolution.at(float(np.abs(local.near.ahead).max()))  # f(x) itself may be 0
    missing = yield from lanczos(local, delta, left - 4 * d - CHECKS, (*key, 5))
    lowest = yield from smallest_eigenvalue(local, f_x, level, bend, missing, (*key, 4))
    return bound.certificate(gradient, lowest, local.direction())


def _scales(x: Vector, key: Key, noise: float | str) -> Steps[tuple[float, Resolution, float]]:
    """f(x), how far values can be trusted, and the size of second derivatives along the axes."""
    f_x = float((yield from insisted(Query(x), tries=TRIES))[0])
    if math.isnan(f_x):
        raise ValueError("certify(x=...) must be a point where fun has a value; there is none.")
    if isinstance(noise, str):
        resolution = yield from noise_level(x, f_x, (*key, 0))
    else:
        resolution = Resolution(noise)
    seen = yield from curvature(x, f_x, resolution, (*key, 1), pairs=2)
    return f_x, resolution, seen.trace / x.size


@dataclass(frozen=True)
class _Bounds:
    """What is asked for, and the verdict on what was found."""

    epsilon: float
    delta: float
    noise: float

    def certificate(self, g: Found, low: Found, direction: Vector | None, why: str = "") -> Certificate:
        verdict, sentence = self._verdict(g, low, why)
        return Certificate(
            verdict, sentence, g.estimate, g.error, low.estimate, low.error, direction, self.epsilon, self.delta,
            self.noise,
        )  # fmt: skip

    def _verdict(self, g: Found, low: Found, why: str) -> tuple[Verdict, str]:
        if g.estimate - g.below > self.epsilon:
            return "not stationary", "the gradient is larger than epsilon: f still goes down."
        if why or not g.estimate + g.above <= self.epsilon:
            return "below noise", f"{why or 'the gradient is not known well enough to compare it with epsilon'}."
        if low.estimate + low.above < -self.delta:
            return "negative curvature", "the gradient is small, and f goes down along `direction` to both sides."
        if low.estimate - low.below >= -self.delta:
            return "second-order stationary", "the gradient is small, and no direction bends down by more than delta."
        return "below noise", "the smallest eigenvalue is not known well enough to compare it with -delta."
