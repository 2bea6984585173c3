"""Figure 1a: the eigenvalues of the Gram matrix of MNIST, and the effective dimensions they give."""

import matplotlib
import numpy as np
from common import Report, mnist

matplotlib.use("Agg")
from matplotlib import pyplot as plt

report = Report("mnist_gram", "Figure 1a: the Gram matrix of MNIST")
images = mnist()
X = images.pixels
report.text(f"Data: {images.source}, pixels over 255, X'X/N.")
variants = {"as they are": X, "centred": X - X.mean(axis=0), "unit rows": X / np.linalg.norm(X, axis=1)[:, None]}
rows, figure = [], plt.figure(figsize=(6, 4))
for name, Z in variants.items():
    e = np.maximum(np.linalg.eigvalsh(Z.T @ Z / len(Z)), 0)[::-1]
    L, one, half = float(e[0]), float(e.sum()), float(np.sqrt(e).sum())
    rows.append((name, L, one, half, 784 * L, 784 * L / one, 784 * np.sqrt(L) / half))
    plt.loglog(np.arange(1, 785), np.maximum(e / e[0], 1e-12), label=f"{name}: ED$_1$/L = {one / L:.2f}")
plt.xlabel("index i")
plt.ylabel("eigenvalue i / largest")
plt.ylim(1e-9, 2)
plt.title("Gram matrix of MNIST, d = 784")
plt.legend()
plt.tight_layout()
report.table(["rows", "L", "ED_1", "ED_1/2", "d L", "d L / ED_1", "d sqrt(L) / ED_1/2"], rows)
report.figure(figure, "Eigenvalues of the Gram matrix of MNIST, relative to the largest")
report.text("Most of the gain of the uncentred data is one eigenvalue: the mean image.")
plain, centred, unit = rows
report.verdict(
    "Figure 1a",
    "holds",
    f"L = {plain[1]:.2f}, ED_1 = {plain[2]:.2f}, ED_1/2 = {plain[3]:.1f}, dL/ED_1 = {plain[5]:.0f}; centred L = {centred[1]:.2f}, ED_1 = {centred[2]:.1f}, ratio {centred[5]:.0f}; unit rows L = {unit[1]:.4f}, ED_1 = {unit[2]:.3g}, ED_1/2 = {unit[3]:.2f}",
)
report.write()
