"""Noisy oracles: |f~(x) - f(x)| <= delta (the paper's delta-approximated oracle), and Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from fewdim.core import Query, Steps, T, Values
from fewdim.directions import Key, gaussian
from fewdim.methods.settings import check_level
from fewdim.oracles.through import changed_values


@dataclass(frozen=True)
class UniformNoise:
    """Independent noise, uniform in [-level, level]."""

    level: float

    def __post_init__(self) -> None:
        check_level(self, level=self.level)

    def __call__(self, steps: Steps[T], key: Key) -> Steps[T]:
        return changed_values(steps, _Drawn(self.level, key, uniform=True))


@dataclass(frozen=True)
class GaussianNoise:
    """Independent normal noise of standard deviation `level`."""

    level: float

    def __post_init__(self) -> None:
        check_level(self, level=self.level)

    def __call__(self, steps: Steps[T], key: Key) -> Steps[T]:
        return changed_values(steps, _Drawn(self.level, key, uniform=False))


@dataclass(frozen=True)
class AdversarialNoise:
    """The sign that hurts most: every value is moved by `level` towards the mean of what the step has seen.

    Differences shrink by 2 level and those that are smaller change sign, so every slope below 2 level / radius points
    uphill.  A step's first value, when asked alone, is raised.
    """

    level: float

    def __post_init__(self) -> None:
        check_level(self, level=self.level)

    def __call__(self, steps: Steps[T], key: Key) -> Steps[T]:
        seen: list[float] = []

        def change(query: Query, values: Values) -> Values:
            alone = not seen and len(values) == 1
            seen.extend(values[np.isfinite(values)])
            if alone or not seen:
                return values + self.level
            return values - self.level * np.sign(values - np.mean(seen))

        return changed_values(steps, change)


class _Drawn:
    """Noise for one value after another of a step, named by the step's key."""

    def __init__(self, level: float, key: Key, uniform: bool) -> None:
        self.level, self.key, self.uniform, self.queries = level, key, uniform, 0

    def __call__(self, query: Query, values: Values) -> Values:
        drawn = gaussian((*self.key, self.queries)).array(len(values)).astype(np.float64)
        self.queries += 1
        if self.uniform:
            drawn = 2 * ndtr(drawn) - 1
        return values + self.level * drawn
