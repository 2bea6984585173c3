"""Evaluations that methods are predicted to need on an estimated spectrum, from exact expectations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewdim.dimension.inversion import Floats
from fewdim.theory.moments import TwoTerm, advance, heavy_ball, random_gradient

SPREAD = 2.0
"""A single run's gap is taken to lie within this factor of its mean (by Markov, at most half the runs lie above)."""
STEP = 2.0
"""A run's step is taken to lie within this factor of the one for the Hessian at x: it is measured from 16 second
differences, and the Hessian changes on the way."""
MOST = 300_000  # steps followed
MEASURING = 45  # values that a method spends on noise, trace and L before its first step


class Scenario(NamedTuple):
    """A quadratic that the values allow: eigenvalues, how often each occurs, the mean square distance along each."""

    eigenvalues: Floats
    counts: Floats
    start: Floats


@dataclass(frozen=True)
class Prediction:
    """Evaluations of one method: expected on the estimated spectrum, and the range."""

    method: str
    evaluations: float
    low: float
    high: float


@dataclass(frozen=True)
class Forecast:
    """Predicted evaluations by method; `str()` is a table, `verdict` one line.

    The range covers both ends of the bracket of the spectrum, a single run's gap within a factor 2 of its mean, and a
    step within a factor 2 of the right one for the Hessian at x.  That f is far from quadratic is not in it.  inf means
    beyond 300,000 steps.
    """

    gap: float
    predictions: tuple[Prediction, ...]
    verdict: str

    def __getitem__(self, method: str) -> Prediction:
        for row in self.predictions:
            if row.method == method:
                return row
        raise KeyError(
            f"no method {method!r} in this forecast; it has {', '.join(p.method for p in self.predictions)}."
        )

    def __str__(self) -> str:
        lines = [f"Evaluations to {self.gap:g} of the gap f(x) - f*", f"  {'method':22}{'expected':>10}  range"]
        lines += [
            f"  {p.method:22}{_count(p.evaluations):>10}  {_count(p.low)} to {_count(p.high)}" for p in self.predictions
        ]
        return "\n".join([*lines, f"  {self.verdict}"])


def forecast(scenarios: Sequence[Scenario], gap: float, d: int, convex: bool, smooth: bool) -> Forecast:
    """The table; the first scenario is the estimate, the others the ends of its bracket."""
    if not 0 < gap < 1:
        raise ValueError(f"forecast(gap=...) must lie in (0, 1); got {gap!r}.")
    if not scenarios:
        raise ValueError("forecast(...) needs an estimated spectrum; ask effective_dimension for an alpha below 1.")
    rules: dict[str, Callable[[Scenario, float], Iterator[tuple[float, float]]]] = {
        "random-gradient": _random_gradient,
        "accelerated": lambda s, factor: _accelerated(s, factor, d),
        "heavy-ball": _heavy_ball,
        "finite-difference-cg": lambda s, _: _conjugate_gradient(s, d),
    }
    rows = []
    for method, rule in rules.items():
        expected = _first(rule(scenarios[0], 1.0), gap)
        low = min(_first(rule(s, factor), SPREAD * gap) for s in scenarios for factor in (1.0, STEP))
        high = max(_first(rule(s, factor), gap / SPREAD) for s in scenarios for factor in (1.0, 1 / STEP))
        rows.append(Prediction(method, expected, low, high))
    return Forecast(gap, tuple(rows), _verdict(rows, scenarios[0], d, convex, smooth))


def _verdict(rows: list[Prediction], s: Scenario, d: int, convex: bool, smooth: bool) -> str:
    best = min(rows, key=lambda row: row.evaluations)
    trace, square = float(s.counts @ s.eigenvalues), float(s.counts @ s.eigenvalues**2)
    many = f"(tr A)^2 / |A|_F^2 is {trace**2 / square:.3g} where d is {d}"
    if best.method == "finite-difference-cg":
        text = f"this problem is full-rank: use finite-difference conjugate gradients or L-BFGS ({many})."
    else:
        text = f"few dimensions matter: use {best.method} ({many})."
    if not convex:
        text += " The Hessian is indefinite here: the table is for a convex quadratic of the same singular values."
    if not smooth:
        text += " f is not smooth here: do not rely on it."
    return text


def _first(path: Iterator[tuple[float, float]], target: float) -> float:
    """The evaluations at which the relative gap first falls to the target."""
    return next((evaluations for evaluations, gap in path if gap <= target), math.inf)


def _two_term(s: Scenario, method: TwoTerm) -> Iterator[tuple[float, float]]:
    l, n, moments, first = _at_rest(s)  # noqa: E741
    for k in range(1, MOST + 1):
        yield MEASURING + 2 * k, advance(l, n, moments, *method.letters, 1.0, 1.0) / first


def _random_gradient(s: Scenario, factor: float) -> Iterator[tuple[float, float]]:
    """`RandomGradient()`: h = 1/(tr + 2 |A|_F), the bound on L that second differences give."""
    return _two_term(s, random_gradient(factor * _step(s)))


def _heavy_ball(s: Scenario, factor: float) -> Iterator[tuple[float, float]]:
    """`HeavyBall()`: beta = 0.4, h = beta/(tr + 2 |A|_F)."""
    return _two_term(s, heavy_ball(0.4 * factor * _step(s), 0.6))


def _accelerated(s: Scenario, factor: float, d: int) -> Iterator[tuple[float, float]]:
    """`Accelerated()`: the convex scheme from gamma = tr A, restarted when a window's mean value rises."""
    l, n, moments, first = _at_rest(s)  # noqa: E741
    trace, h = float(n @ l), factor * _step(s)
    theta, gamma, total, count, previous = h / (d + 2), trace, 0.0, 0, math.inf
    for k in range(1, MOST + 1):
        # the scheme of `Accelerated` with mu = 0: alpha^2 / theta = (1 - alpha) gamma = gamma+
        half = 0.5 * theta * gamma
        alpha = min(math.sqrt(half**2 + theta * gamma) - half, 0.999)
        b = alpha
        total += 0.5 * float((n * l) @ (moments[0] + 2 * b * moments[1] + b * b * moments[2]))
        count += 1
        gap = advance(l, n, moments, b, h, 1 - b, theta / alpha - h, 1, 1.0, 1.0)
        gamma *= 1 - alpha
        yield MEASURING + 2 * k, gap / first
        if count >= math.ceil(0.5 / alpha):
            if total / count > previous:
                moments[1:] = 0.0
                gamma, previous = trace, math.inf
            else:
                previous = total / count
            total, count = 0.0, 0


def _conjugate_gradient(s: Scenario, d: int) -> Iterator[tuple[float, float]]:
    """Conjugate gradients on forward-difference gradients: d + 2 values an iteration, the model solved exactly."""
    l, weight = s.eigenvalues, np.sqrt(s.counts * s.start)  # noqa: E741
    x, r = weight.copy(), -l * weight
    p, first = r.copy(), float(l @ weight**2)
    for k in range(1, MOST + 1):
        curvature = float(p @ (l * p))
        if curvature <= 0:
            return
        step = float(r @ r) / curvature
        x, before = x + step * p, float(r @ r)
        r = r - step * l * p
        p = r + float(r @ r) / before * p
        yield k * (d + 2), float(l @ x**2) / first


def _at_rest(s: Scenario) -> tuple[Floats, Floats, Floats, float]:
    moments = np.zeros((3, s.eigenvalues.size))
    moments[0] = s.start
    return s.eigenvalues, s.counts, moments, 0.5 * float(s.counts @ (s.eigenvalues * s.start))


def _step(s: Scenario) -> float:
    return 1 / (float(s.counts @ s.eigenvalues) + 2 * math.sqrt(float(s.counts @ s.eigenvalues**2)))


def _count(number: float) -> str:
    return f"{number:.3g}" if number >= 1e5 or math.isinf(number) else f"{number:.0f}"
