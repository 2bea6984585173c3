"""What is found about the effective dimension at a point, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fewdim.dimension.forecast import Forecast, Scenario, forecast
from fewdim.dimension.inversion import Floats


@dataclass(frozen=True)
class Estimate:
    """ED_alpha: the sum of the singular values of the Hessian to the power alpha.

    `low` and `high` hold what the values could not show and twice the standard error; `replaces` is d L^alpha, what a
    theory without effective dimension has in its place; `positive` counts positive eigenvalues only.
    """

    alpha: float
    estimate: float
    low: float
    high: float
    replaces: float
    positive: float


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Estimated singular values of the Hessian: levels, how often each occurs, and how many lie below `floor`, unseen.

    From a sketch the levels reproduce the smooth sums that the values determine; no single level is an eigenvalue.
    """

    eigenvalues: Floats
    counts: Floats
    unseen: float
    floor: float

    def quantile(self, share: float) -> float:
        """The value that `share` of the singular values lie below; 0 where fewer than d were found."""
        if not 0 <= share <= 1:
            raise ValueError(f"Spectrum.quantile(share=...) must lie in [0, 1]; got {share!r}.")
        order = np.argsort(self.eigenvalues)
        reached = np.cumsum(self.counts[order])
        i = int(np.searchsorted(reached, share * reached[-1] * (1 - 1e-12)))
        return float(self.eigenvalues[order][min(i, order.size - 1)])


@dataclass(frozen=True, eq=False)
class EffectiveDimension:
    """The effective dimension at a point: `ed[0.5].estimate`, `.low`, `.high`; `str(ed)` is a report.

    Attributes: `d`; `smoothness` (L, the largest singular value) and `smoothness_range`; `trace` and `trace_error`
    (standard error); `spectrum`; `nfev` (every evaluation); `products` (Hessian-vector products of `hvp`); `smooth` and
    `sentence` (why); `convex` (no negative eigenvalue was seen); `estimator`; `points` (more than 1 with `over=`).
    """

    estimates: dict[float, Estimate]
    d: int
    smoothness: float
    smoothness_range: tuple[float, float]
    trace: float
    trace_error: float
    spectrum: Spectrum
    nfev: int
    smooth: bool
    sentence: str
    convex: bool
    estimator: str
    products: int = 0
    points: int = 1
    scenarios: tuple[Scenario, ...] = field(default=(), repr=False)

    def __getitem__(self, alpha: float) -> Estimate:
        if alpha not in self.estimates:
            raise KeyError(f"alpha={alpha} was not asked for; alphas={tuple(self.estimates)} were.")
        return self.estimates[alpha]

    def forecast(self, gap: float) -> Forecast:
        """Evaluations that each method is predicted to need until (f - f*) / (f(x) - f*) falls to `gap`.

        The prediction is the exact expectation on a convex quadratic with the estimated spectrum, started as far along
        each eigenvalue as the slopes at x tell (equally far where there are none).  See `Forecast` for the range.
        """
        return forecast(self.scenarios, gap, self.d, self.convex, self.smooth)

    def __str__(self) -> str:
        cost = f"{self.nfev} evaluations" + (f" and {self.products} Hessian-vector products" if self.products else "")
        place = "at x" if self.points == 1 else f"largest over {self.points} points"
        lines = [f"Effective dimension {place}: d = {self.d}, {cost} ({self.estimator})", ""]
        lines.append("  alpha    ED_alpha  [     low,     high]  d L^alpha  times fewer")
        for a, e in sorted(self.estimates.items()):
            ratio = e.replaces / e.estimate if e.estimate else float("nan")
            lines.append(
                f"  {a:<5g} {e.estimate:11.4g}  [{e.low:8.4g}, {e.high:8.4g}]  {e.replaces:9.4g}  {ratio:11.3g}"
            )
        low, high = self.smoothness_range
        trace = f"trace = {self.trace:.4g} +- {self.trace_error:.2g}"
        lines += ["", f"  L = {self.smoothness:.4g} in [{low:.3g}, {high:.3g}], {trace}"]
        if self.spectrum.eigenvalues.size:
            shown = ", ".join(f"{share:.0%} {self.spectrum.quantile(1 - share):.2g}" for share in (0.01, 0.1, 0.5))
            unseen = (
                f"; about {self.spectrum.unseen:.0f} lie below {self.spectrum.floor:.2g}, where values show nothing"
            )
            lines.append(f"  singular values exceeded by: {shown}{unseen if self.spectrum.unseen >= 1 else ''}")
        if not self.convex:
            both = ", ".join(f"ED_{a:g} {e.positive:.4g}" for a, e in sorted(self.estimates.items()))
            lines.append(f"  The Hessian is indefinite; positive eigenvalues alone: {both}")
        lines += [f"  {self.sentence}", "  This is the local value; the paper's is its supremum over all x."]
        return "\n".join(lines)
