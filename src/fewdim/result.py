"""The result of `minimize`: scipy's, with a picture."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import OptimizeResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 20  # positive numbers that spread by more than this factor go on a logarithmic scale


class Result(OptimizeResult):  # type: ignore[misc]
    """An `OptimizeResult` that can be drawn."""

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), "plot"]  # scipy lists the entries only

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the best value against evaluations, as in the HTML report; returns matplotlib's axes.

        >>> import numpy as np, fewdim
        >>> result = fewdim.minimize(lambda x: x @ x, np.ones(50), maxfev=300, rng=0)
        >>> result.plot().get_xlabel()  # doctest: +SKIP
        'evaluations'
        """
        try:
            from matplotlib.figure import Figure
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("result.plot() needs matplotlib: pip install 'fewdim[plot]'.") from error
        if axes is None:
            pyplot = sys.modules.get("matplotlib.pyplot")  # where it is in use the figure is one that it shows
            make = Figure if pyplot is None else pyplot.figure
            axes = make(figsize=(6, 4), layout="constrained").subplots()
        nfev, fun = self["history"]
        axes.step(nfev, fun, where="post")
        axes.set(xlabel="evaluations", ylabel="best f", xscale=_scale(nfev), yscale=_scale(fun))
        why = self["message"].partition(". ")[0].rstrip(".")  # the rest is too long for a title
        axes.set_title(f"{why}.  f = {self['fun']:.6g}", fontsize=9)
        axes.grid(alpha=0.3)
        return axes


def _scale(numbers: Any) -> str:
    return "log" if wide(numbers) else "linear"


def wide(numbers: Any) -> bool:
    """Whether numbers are positive and spread so widely that a logarithmic scale shows more."""
    return len(numbers) > 0 and bool(np.min(numbers) > 0 and np.max(numbers) > WIDE * np.min(numbers))
