"""The theorems of the paper as calculators: what is printed, and what holds, side by side.

A `Claim` has the printed number, the corrected one and a sentence on the difference; where they agree the sentence says
so.  Numbers that the paper gives only up to a constant (Theorems 2, 4, 5 and Corollary 3) are the expression inside the
O, its constant taken as 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fewdim.theory.stability import heavy_ball_load

PAPER = 14400  # Algorithm 2 sets h = 1/(14400 ED_1/2)^2


class Claim(NamedTuple):
    """A number as the paper prints it, the number that holds (inf: none does), and why they differ."""

    printed: float
    corrected: float
    note: str


class Theorem1(NamedTuple):
    """Algorithm 1 with h = 1/(12 tr): E f contracts by `factor` a step, down to floor(rho, delta)."""

    trace: float
    mu: float
    d: int

    @property
    def step(self) -> float:
        return 1 / (12 * self.trace)

    @property
    def factor(self) -> Claim:
        """1 - mu/(24 tr); in truth 1 - 2 h mu + 2 h^2 mu^2 + ... a step, near 1 - mu/(6 tr)."""
        return Claim(
            1 - self.mu / (24 * self.trace), 1 - self.mu / (24 * self.trace), "holds, with a factor 4 to spare"
        )

    @property
    def bias(self) -> Claim:
        """C1, the factor of rho^2."""
        tr, d = self.trace, self.d
        note = "h^2 is 1/144 of 1/tr^2, not 1/576: the second term is 4 times as large"
        return Claim(5 / 16 * tr * d + 5 / 384 * tr, 5 / 16 * tr * d + 5 / 96 * tr, note)

    @property
    def noise(self) -> Claim:
        """C2, the factor of delta^2/rho^2."""
        tr, d = self.trace, self.d
        note = "h^2 is 1/144 of 1/tr^2, not 1/576: the second term is 4 times as large"
        return Claim(d / (3 * tr) + 1 / (72 * tr), d / (3 * tr) + 1 / (18 * tr), note)

    def floor(self, rho: float, delta: float) -> Claim:
        """24 tr/mu (C1 rho^2 + C2 delta^2/rho^2): where the contraction ends."""

        def at(c1: float, c2: float) -> float:
            return 24 * self.trace / self.mu * (c1 * rho**2 + c2 * delta**2 / rho**2)

        b, n = self.bias, self.noise
        return Claim(at(b.printed, n.printed), at(b.corrected, n.corrected), b.note)


def theorem2(trace: float, smoothness: float, d: int, distance: float, gap: float) -> Claim:
    """Iterations of Algorithm 1 to E f - f* <= gap from |x0 - x*| = distance, weakly convex: 12 tr D^2 / gap.

    The printed O(ED_1/eps) takes E|x_k - x*|^2 <= D^2.  What is proved is D^2 (1 + (d+2) L / (6 tr)), and it is
    attained up to a constant: d comes back.
    """
    growth = 1 + (d + 2) * smoothness / (6 * trace)
    printed = 12 * trace * distance**2 / gap
    return Claim(printed, printed * growth, f"E|x_k - x*|^2 is only bounded by {growth:.3g} D^2")


class Theorem3(NamedTuple):
    """Algorithm 2 with the paper's constants on a spectrum."""

    spectrum: ArrayLike

    @property
    def _eigenvalues(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.asarray(self.spectrum, dtype=np.float64)

    @property
    def half_dimension(self) -> float:
        return float(np.sqrt(self._eigenvalues).sum())

    @property
    def step(self) -> float:
        return 1 / (PAPER * self.half_dimension) ** 2

    @property
    def damping(self) -> float:
        return math.sqrt(self.step * float(self._eigenvalues.min()))

    @property
    def load(self) -> float:
        """Sum q/(1-q): the method diverges in mean square when this is 1 or more."""
        return heavy_ball_load(self._eigenvalues, self.step, self.damping)

    @property
    def rate(self) -> Claim:
        """What is lost a step: sqrt(mu)/(57600 ED_1/2) as printed; the proved two-step rate as the correction."""
        l = self._eigenvalues  # noqa: E741
        printed = math.sqrt(l.min()) / (57600 * self.half_dimension)
        h = 1 / (l.sum() + 2 * l.max())
        proved = math.sqrt(float(l.min()) * float(h) / (l.size + 2))
        verdict = "diverges on this spectrum" if self.load >= 1 else "is stable on this spectrum"
        return Claim(printed, proved, f"Algorithm 2 {verdict}; the two-step method has the corrected rate everywhere")

    def error_allowed(self, n: int, gap0: float) -> float:
        """How large 6 n (16 delta/rho + 12 rho tr) may be for the first n steps, as printed: it decays with the gap."""
        mu = float(self._eigenvalues.min())
        return 80 * (1 - self.rate.printed) ** (n - 1) * mu * gap0


def corollary3(spectrum: ArrayLike, gap: float) -> Claim:
    """Algorithm 2 with the surrogate eps/(2D^2)|x - x0|^2: ED_1/2 / sqrt(eps) + d printed, sqrt(d ED_1/eps) holds."""
    l = np.asarray(spectrum, dtype=np.float64)  # noqa: E741
    printed = float(np.sqrt(l).sum()) / math.sqrt(gap) + l.size
    corrected = math.sqrt(l.size * (float(l.sum()) + 2 * float(l.max()) + l.size * gap) / gap)
    return Claim(printed, corrected, "rests on Theorem 3; the surrogate must be centred at x0, not at 0")


def theorem4(spectrum: ArrayLike, hessian_lipschitz: float, distance: float, gap: float) -> Claim:
    """Values of the large-step method: D ED_1/2 eps^-1/2 + d D^6/7 H^2/7 eps^-2/7 as printed, logarithms left out."""
    l, D, H = np.asarray(spectrum, dtype=np.float64), distance, hessian_lipschitz  # noqa: E741
    outer = l.size * D ** (6 / 7) * H ** (2 / 7) * gap ** (-2 / 7)
    printed = D * float(np.sqrt(l).sum()) / math.sqrt(gap) + outer
    corrected = D * math.sqrt(l.size * float(l.sum()) / gap) + outer
    return Claim(
        printed, corrected, "the inner solver's ED_1/2 rests on Theorem 3; the two-step solver has sqrt(d ED_1)"
    )


def theorem5(spectrum: ArrayLike, hessian_lipschitz: float, decrease: float, gap: float) -> Claim:
    """Values of the cubic method: ED_1/2 H^1/4 Delta eps^-7/4 + d H^1/2 Delta eps^-3/2 as printed."""
    l, H = np.asarray(spectrum, dtype=np.float64), hessian_lipschitz  # noqa: E741
    outer = l.size * math.sqrt(H) * decrease * gap**-1.5
    printed = float(np.sqrt(l).sum()) * H**0.25 * decrease * gap**-1.75 + outer
    corrected = math.sqrt(l.size * float(l.sum())) * H**0.25 * decrease * gap**-1.75 + outer
    return Claim(
        printed, corrected, "rests on Theorem 3 as Theorem 4 does; for non-convex f, where it is printed 'convex'"
    )
