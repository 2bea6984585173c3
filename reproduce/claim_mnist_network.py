"""Figure 1b: the Hessian spectrum of a three-layer network on MNIST by Lanczos, before and after training."""

from itertools import pairwise

import matplotlib
import numpy as np
from common import Floats, Report, mnist
from scipy.optimize import minimize

from fewdim import effective_dimension

matplotlib.use("Agg")
from matplotlib import pyplot as plt

SIZES = (784, 32, 32, 10)
report = Report("mnist_network", "Figure 1b: the Hessian of a three-layer network on MNIST")
images = mnist()
chosen = np.random.default_rng(0).permutation(len(images.pixels))[:4000]
X, labels = images.pixels[chosen], images.labels[chosen]
report.text(
    f"Data: 4,000 of {images.source}.  Network {'-'.join(map(str, SIZES))}, tanh, softmax loss; products with the Hessian by differences of gradients."
)


def layers(x: Floats) -> list[tuple[Floats, Floats]]:
    out, at = [], 0
    for a, b in pairwise(SIZES):
        out.append((x[at : at + a * b].reshape(a, b), x[at + a * b : at + (a + 1) * b]))
        at += (a + 1) * b
    return out


def loss(x: Floats) -> tuple[float, Floats]:
    """The mean loss and its gradient by back-propagation."""
    net, values = layers(x), [X]
    for W, b in net[:-1]:
        values.append(np.tanh(values[-1] @ W + b))
    z = values[-1] @ net[-1][0] + net[-1][1]
    z = z - z.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    value = -float(np.log(p[np.arange(len(X)), labels]).mean())
    back = p.copy()
    back[np.arange(len(X)), labels] -= 1
    back /= len(X)
    pieces: list[Floats] = []
    for (W, _), v in zip(reversed(net), reversed(values), strict=True):
        pieces = [(v.T @ back).ravel(), back.sum(axis=0), *pieces]
        back = (back @ W.T) * (1 - v**2)
    return value, np.concatenate(pieces)


def product(x: Floats, v: Floats) -> Floats:
    t = 1e-4 / float(np.linalg.norm(v))
    return np.asarray((loss(x + t * v)[1] - loss(x - t * v)[1]) / (2 * t))


rng = np.random.default_rng(0)
x0 = np.concatenate([np.r_[rng.standard_normal(a * b) / np.sqrt(a), np.zeros(b)] for a, b in pairwise(SIZES)])
trained = minimize(loss, x0, jac=True, method="L-BFGS-B", options={"maxiter": 25}).x
rows, figure = [], plt.figure(figsize=(6, 4))
found = {}
for name, x in (("before training", x0), ("after training", trained)):
    ed = effective_dimension(lambda _: 0.0, x, hvp=product, rng=0)
    found[name] = ed
    s = ed.spectrum
    order = np.argsort(s.eigenvalues)[::-1]
    plt.loglog(np.cumsum(s.counts[order]), s.eigenvalues[order], label=name)
    big = float(s.counts[s.eigenvalues > 0.05 * ed.smoothness].sum())
    rows.append(
        (
            name,
            loss(x)[0],
            ed.smoothness,
            ed.trace,
            ed[1.0].estimate,
            ed[1.0].positive,
            ed[0.5].estimate,
            ed[1.0].replaces / ed[1.0].estimate,
            big,
        )
    )
plt.xlim(1, x0.size)
plt.ylim(1e-5, 20)
plt.xlabel("number of singular values above")
plt.ylabel("singular value of the Hessian")
plt.title(f"784-32-32-10 tanh network on MNIST, d = {x0.size}")
plt.legend()
plt.tight_layout()
report.table(["", "loss", "L", "trace", "ED_1", "ED_1, positive", "ED_1/2", "d L / ED_1", "above L/20"], rows)
report.figure(figure, "Singular values of the Hessian by Lanczos quadrature")
report.text("```", str(found["after training"]), "```")
after = rows[1]
assert after[7] > 10
report.verdict(
    "Figure 1b",
    "holds",
    f"d = {x0.size}: after training L = {after[2]:.3g}, trace {after[3]:.3g}, about {after[8]:.0f} singular values above L/20, dL/ED_1 = {after[7]:.0f} (before: {rows[0][7]:.0f})",
)
report.write()
