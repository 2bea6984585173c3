"""Make docs/figure.png: evaluations to a target against the number of parameters, where fewdim wins and where not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.fft
import scipy.optimize
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import fewdim

SEEDS = 3
METHODS = {"auto": "b", "random-pursuit": "c", "random-gradient": "g", "heavy-ball": "m", "accelerated": "r"}
Array = NDArray[np.float64]


def evaluations(method: str, eigenvalues: Array, gap: float, seed: int) -> float:
    """Evaluations of fewdim until f = x'Ax/2 is `gap` of its value at x0, which is 1 or -1 along each eigenvector.

    The eigenvectors are cosines with random signs: no axis is near one.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (2, eigenvalues.size))
    result = fewdim.minimize(
        lambda x: 0.5 * float(eigenvalues @ scipy.fft.dct(signs[0] * x, norm="ortho") ** 2),
        signs[0] * scipy.fft.idct(signs[1], norm="ortho"),
        method=method,
        f_target=gap * 0.5 * eigenvalues.sum(),
        maxfev=1_000_000,
        tol=0,
        rng=seed,
        options={"reuse_buffer": True},
    )
    return float(result.nfev) if result.success else np.nan


def lbfgs(eigenvalues: Array, gap: float) -> float:
    """The same for L-BFGS-B, run with exact gradients, each of them counted as the d evaluations of a difference."""
    target, calls = gap * 0.5 * eigenvalues.sum(), 0

    class Reached(Exception):  # noqa: N818
        pass

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        nonlocal calls
        calls += 1
        value = 0.5 * float(eigenvalues @ (x * x))
        if value <= target:
            raise Reached
        return value, eigenvalues * x

    options = {"maxiter": 10_000, "ftol": 0, "gtol": 0}
    try:
        scipy.optimize.minimize(
            value_and_gradient, np.ones(eigenvalues.size), jac=True, method="L-BFGS-B", options=options
        )
    except Reached:
        return 1 + (calls - 1) * (eigenvalues.size + 1.0)
    return np.nan


def panel(axes: Axes, decay: float, gap: float, sizes: list[int], title: str) -> None:
    print(f"{title}: evaluations at d = {', '.join(f'{d:,}' for d in sizes)}")
    spectra = [np.arange(1.0, d + 1) ** -decay for d in sizes]
    show(axes, sizes, [lbfgs(spectrum, gap) for spectrum in spectra], "L-BFGS-B, forward differences", "ks--")
    for method, colour in METHODS.items():
        runs = [[evaluations(method, spectrum, gap, seed) for seed in range(SEEDS)] for spectrum in spectra]
        show(axes, sizes, [float(np.median(counts)) for counts in runs], method, f"{colour}o-")
    axes.set(xlabel="parameters d", ylabel="evaluations")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)


def show(axes: Axes, sizes: list[int], counts: list[float], name: str, style: str) -> None:
    print(f"  {name:30} {', '.join(f'{count:,.0f}' for count in counts)}", flush=True)
    axes.loglog(sizes, counts, style, markersize=4, label=name)


def main() -> None:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    panel(left, 2, 1e-2, [100, 300, 1000, 3000, 10_000], "few dimensions matter: eigenvalues $i^{-2}$, to 1 %")
    panel(right, 0.5, 1e-6, [100, 300, 1000], "many dimensions matter: eigenvalues $i^{-1/2}$, to $10^{-6}$")
    left.legend(frameon=False, fontsize=8)
    path = Path(__file__).parents[1] / "docs" / "figure.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=80)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
