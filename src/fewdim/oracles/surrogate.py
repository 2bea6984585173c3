"""The regularised surrogate of Corollary 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewdim.core import Query, Steps, T, Values
from fewdim.directions import Key, Vector
from fewdim.methods.settings import check_positive
from fewdim.oracles.through import changed_values


@dataclass(frozen=True, eq=False)
class Surrogate:
    """g(x) = f(x) + epsilon / (2 radius^2) |x - center|^2: strongly convex, and within epsilon/2 of f in the ball.

    `radius` is the paper's D, the distance from the start to a minimiser, and `center` is the start x0; the paper
    prints |x|^2, which is right only for x0 = 0.
    """

    center: Vector
    epsilon: float
    radius: float

    def __post_init__(self) -> None:
        check_positive(self, epsilon=self.epsilon, radius=self.radius)

    @property
    def strong_convexity(self) -> float:
        """What the surrogate adds to every eigenvalue."""
        return self.epsilon / self.radius**2

    def __call__(self, steps: Steps[T], key: Key) -> Steps[T]:
        def change(query: Query, values: Values) -> Values:
            squares = [float(np.sum((query.point(i) - self.center) ** 2)) for i in range(len(query))]
            return values + 0.5 * self.strong_convexity * np.array(squares)

        return changed_values(steps, change)
