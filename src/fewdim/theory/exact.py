"""What a method of the two-term family does on a quadratic, exactly: stability, rate, gaps, evaluations."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from fewdim.theory.moments import Floats, TwoTerm, advance, first_below, law_constants, retreat

MOST_STEPS = 10**7


@dataclass(frozen=True, eq=False)
class Exact:
    """A method on the quadratic 1/2 sum l_i x_i^2, in expectation and without sampling.

    `spectrum` holds the eigenvalues l_i >= 0, `counts` how often each occurs (default once), `law` the directions:
    "gaussian" and "sphere" are exact in every basis; "signs" is exact when the axes are the eigenvectors, and on any
    other quadratic "gaussian" is an upper bound and `rotated_gaps` is exact.  `values` is what a step costs, default
    one value more than the batch (forward differences).

    >>> import numpy as np
    >>> from fewdim.theory import Exact, random_gradient
    >>> l = 1 / np.arange(1, 101)
    >>> rg = Exact(random_gradient(1 / (l.sum() + 2 * l.max())), l)
    >>> rg.stable, rg.evaluations_to(1e-2)
    (True, 1872)
    """

    method: TwoTerm
    spectrum: ArrayLike
    counts: ArrayLike | None = None
    law: str = "gaussian"
    values: int | None = None
    _arrays: tuple[Floats, Floats] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        l = np.ascontiguousarray(self.spectrum, np.float64)  # noqa: E741
        n = np.ones_like(l) if self.counts is None else np.ascontiguousarray(self.counts, np.float64)
        if l.ndim != 1 or l.size == 0 or not np.isfinite(l).all() or l.min() < 0:
            raise ValueError(f"Exact(spectrum=...) must hold eigenvalues of at least 0; got {self.spectrum!r}.")
        if n.shape != l.shape or n.min() < 0:
            raise ValueError(
                f"Exact(counts=...) must hold one number of at least 0 an eigenvalue; got {self.counts!r}."
            )
        law_constants(self.law, 1.0)
        object.__setattr__(self, "_arrays", (l, n))

    @property
    def cost(self) -> int:
        """Values a step."""
        return self.method.batch + 1 if self.values is None else self.values

    @cached_property
    def radius(self) -> float:
        """The spectral radius of the recursion on the eigenvalues above 0: the factor of E f - f* a step, in the end.

        The recursion is block-diagonal plus a rank-one coupling by positive numbers, so its radius is the larger of the
        blocks' and the root of phi(rho) = 1, where phi(rho) sums the blocks' answers to the coupling and falls in rho.
        """
        l, n = self._arrays  # noqa: E741
        l, n = l[l > 0], n[l > 0]  # noqa: E741
        if l.size == 0:
            return 0.0
        blocks, push, read = self._blocks(l)
        low = float(np.abs(np.linalg.eigvals(blocks)).max())
        weights = n * l**2 * self._law[1] / self.method.batch

        def phi(rho: float) -> float:
            answers = np.linalg.solve(rho * np.eye(3) - blocks, np.broadcast_to(push[:, None], (l.size, 3, 1)))
            return float(weights @ (answers[:, :, 0] @ read))

        outer = low + max(1 - low, 1e-3)
        while phi(outer) > 1:
            outer = low + 2 * (outer - low)
        # from outside in: next to the blocks' radius, where their eigenvalues nearly coincide, phi is lost in round-off
        inner = low + (outer - low) / 2
        while not phi(inner) > 1:
            outer, inner = inner, low + (inner - low) / 2
            if inner - low < 1e-14:
                return low
        return float(brentq(lambda rho: phi(rho) - 1, inner, outer, xtol=1e-16, rtol=1e-15))

    def _blocks(self, l: Floats) -> tuple[Floats, Floats, Floats]:  # noqa: E741
        """The 3 x 3 block of each eigenvalue, what the coupling adds to it, and how it reads E y^2."""
        b, h, r, c, m = self.method.letters
        e, _ = self._law
        yy, yw = np.array([1.0, 2 * b, b * b]), np.array([0.0, 1.0, b])
        own = (l**2 * (1 + e / m))[:, None]
        l = l[:, None]  # noqa: E741
        rows = (
            (1 - 2 * h * l + h * h * own) * yy,
            (r - r * h * l) * yw + (h * c * own - c * l) * yy,
            -2 * r * c * l * yw + c * c * own * yy + np.array([0.0, 0.0, r * r]),
        )
        return np.stack(rows, axis=1), np.array([h * h, h * c, c * c]), yy

    @property
    def stable(self) -> bool:
        """Whether E f(x_k) - f* tends to 0 from every start."""
        return self.radius < 1

    @property
    def rate(self) -> float:
        """How much of the expected gap is lost a step in the end, 1 - radius; negative when unstable."""
        return 1 - self.radius

    def expected_gap(self, k: int, x0: ArrayLike = 1.0) -> float:
        """E f(x_k) - f* over f(x0) - f*; x0 in the eigenbasis, default all ones."""
        moments, first = self._start(x0)
        gap = first
        for _ in range(k):
            gap = advance(*self._arrays, moments, *self._numbers)
        return gap / first

    def evaluations_to(self, gap: float, x0: ArrayLike = 1.0, most: int = MOST_STEPS) -> float:
        """Values until E f(x_k) - f* is at most `gap` times f(x0) - f*; inf when `most` steps do not do."""
        if not gap > 0:
            raise ValueError(f"evaluations_to(gap=...) must be positive; got {gap!r}.")
        moments, first = self._start(x0)
        k = 0 if gap >= 1 else first_below(*self._arrays, moments, *self._numbers, gap * first, most)
        return math.inf if k < 0 else k * self.cost

    def worst_gap(self, k: int, radius: float = 1.0) -> float:
        """The largest E f(x_k) - f* over |x0 - x*| <= radius."""
        dual, worst = self._dual(), 0.5 * float(self._arrays[0].max())
        for _ in range(k):
            worst = retreat(*self._arrays, dual, *self._numbers)
        return worst * radius**2

    def worst_evaluations_to(self, gap: float, radius: float = 1.0, most: int = 10**6) -> float:
        """Values until E f(x_k) - f* <= gap from every |x0 - x*| <= radius; inf when `most` steps do not do."""
        dual, target = self._dual(), gap / radius**2
        for k in range(1, most + 1):
            if retreat(*self._arrays, dual, *self._numbers) <= target:
                return k * self.cost
        return math.inf

    @property
    def _numbers(self) -> tuple[float, ...]:
        return *self.method.letters, *self._law

    @property
    def _law(self) -> tuple[float, float]:
        return law_constants(self.law, float(self._arrays[1].sum()))

    def _start(self, x0: ArrayLike) -> tuple[Floats, float]:
        l, n = self._arrays  # noqa: E741
        moments = np.zeros((3, l.size))
        moments[0] = np.broadcast_to(np.asarray(x0, np.float64), l.shape) ** 2
        first = 0.5 * float(np.sum(n * l * moments[0]))
        if not first > 0:
            raise ValueError(f"x0= must lie above the minimum; f(x0) - f* is {first}.")
        return moments, first

    def _dual(self) -> Floats:
        dual = np.zeros((3, self._arrays[0].size))
        dual[0] = 0.5 * self._arrays[0]
        return dual
