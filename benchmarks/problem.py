"""What a benchmark problem is: a function, a start, a minimum, what a solver sees of it, and how often it may look."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Law = Literal["exact", "gaussian", "uniform", "rounded", "single"]

MINIMA = Path(__file__).with_name("minima.json")
FAMILIES = (
    "smooth large",
    "convex and real data",
    "medium",
    "small classics",
    "non-convex",
    "noise",
    "float32",
    "applications",
)


@dataclass(frozen=True, eq=False)
class Problem:
    """`fun` is the truth, by which every solver is judged; `observe` is what a solver is told."""

    name: str
    fun: Callable[[Vector], float]
    x0: Vector
    minimum: float
    kind: Literal["quadratic", "convex", "real data", "non-convex", "classic", "application"]
    gradient: Callable[[Vector], Vector] | None = None
    residuals: Callable[[Any], Any] | None = None  # fun is their sum of squares
    solution: Vector | None = None
    law: Law = "exact"
    level: float = 0.0  # of the noise, relative to f(x0) - f*
    single: Callable[[NDArray[np.float32]], Any] | None = None  # the same function, computed in float32
    most: int | None = None  # a smaller budget than the rule's, where values are dear

    @property
    def d(self) -> int:
        return self.x0.size

    @property
    def drop(self) -> float:
        """The value at the start above the minimum: the unit of all gaps."""
        return self.fun(self.x0) - self.minimum

    @property
    def budget(self) -> int:
        return min(budget(self.d), self.most or budget(self.d))

    @cached_property
    def digest(self) -> str:
        """Changes when the function, the start or the minimum does: results of another problem do not count."""
        away = self.x0 + 0.1 * np.random.default_rng(0).standard_normal(self.d)
        values = (self.fun(self.x0), self.fun(away), self.minimum, float(abs(self.x0).sum()))
        text = " ".join(f"{value:.5e}" for value in values)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def families(self) -> tuple[str, ...]:
        """Where the problem counts; a problem may count in several."""
        if self.law != "exact":
            return ("noise",) if self.law in ("gaussian", "uniform") else ("float32",)
        if self.kind == "application":  # apart from all others: a family that came later
            return ("applications",)
        small = self.kind == "classic" and self.d <= 20
        belongs = {
            "smooth large": self.d >= 500,
            "convex and real data": self.kind in ("convex", "real data"),
            "medium": self.d <= 150 and not small,
            "small classics": small,
            "non-convex": self.kind == "non-convex" or (self.kind == "classic" and self.d > 20),
        }
        return tuple(name for name, belongs_there in belongs.items() if belongs_there)

    def observe(self, x: Vector, value: float, rng: np.random.Generator, drop: float) -> float:
        """What the solver is told where the true value is `value`."""
        if self.law == "gaussian":
            return value + self.level * drop * float(rng.standard_normal())
        if self.law == "uniform":  # of standard deviation `level`, as the Gaussian
            return value + self.level * drop * float(rng.uniform(-(3**0.5), 3**0.5))
        if self.law == "rounded":
            return float(np.float32(value))
        if self.law == "single" and self.single is not None:
            return float(self.single(x.astype(np.float32)))
        return value


def budget(d: int) -> int:
    """Evaluations allowed in d dimensions."""
    if d <= 20:
        return max(1500, 150 * d)
    if d <= 5000:
        return min(60 * d, 50_000)
    return 30_000 if d <= 20_000 else 10_000


def noisy(problem: Problem, law: Law, level: float) -> Problem:
    """The same problem, seen through noise of this level or in float32."""
    suffix = f"{law}-{level:.0e}" if law in ("gaussian", "uniform") else law
    return dataclasses.replace(problem, name=f"{problem.name}/{suffix}", law=law, level=level)


def stored_minimum(name: str) -> float:
    """A minimum that was found numerically, by `python -m benchmarks.minima`."""
    minima = json.loads(MINIMA.read_text()) if MINIMA.exists() else {}
    return float(minima[name]["minimum"]) if name in minima else float("nan")
