"""Appendix statements that arithmetic alone decides; the others are in claim_theorem4.py and claim_theorem5.py."""

import numpy as np
from common import Report

report = Report("appendix", "Appendix: what arithmetic decides")
rng = np.random.default_rng(0)

# Lemma 3.1 and 3.7: a = (lam + sqrt(lam^2 + 4 lam A))/2, A+ = A + a
A, lam = 10 ** rng.uniform(-6, 6, 10_000), 10 ** rng.uniform(-6, 6, 10_000)
a = (lam + np.sqrt(lam**2 + 4 * lam * A)) / 2
off = np.abs(lam * (A + a) / a**2 - 1).max()
slack = (np.sqrt(A + a) / (np.sqrt(A) + 0.5 * np.sqrt(lam))).min()
assert off < 1e-12
assert slack >= 1 - 1e-12
report.verdict("Lemma 3.1 (Monteiro and Svaiter)", "holds", f"lambda A = a^2 to {off:.0e} in 10,000 draws")
report.verdict(
    "Lemma 3.7 (Monteiro and Svaiter)",
    "holds",
    f"sqrt(A+) / (sqrt(A) + sqrt(lambda)/2) at least {slack:.6f} in 10,000 draws",
)

# Lemma 3.3: the minimum over z is attained at z = x - lam v
disagree = 0
for _ in range(2000):
    v, y, x = rng.standard_normal((3, 4))
    step, sigma = 10 ** rng.uniform(-2, 2), rng.uniform(0, 1)
    v = (x - y) / step + rng.uniform(0, 2) * sigma * v * np.linalg.norm(y - x) / step / np.linalg.norm(v)
    left = np.sum((step * v + y - x) ** 2) <= sigma**2 * np.sum((y - x) ** 2)
    right = v @ (x - y) - step * (v @ v) / 2 >= (1 - sigma**2) / (2 * step) * np.sum((y - x) ** 2)
    disagree += bool(left) != bool(right)
assert disagree == 0
report.verdict(
    "Lemma 3.3 (Monteiro and Svaiter)", "holds", f"the two inequalities disagree in {disagree} of 2,000 draws"
)

# "Inspired by Lemma 3.4": one dimension, f(x) = x, sigma = 0 (exact steps), an error e in x_1
worst, at = 0.0, (0.0, 0.0)
for lam1, lam2, e in 10 ** rng.uniform(-1, 1, (2000, 3)):
    for error in (e, -e):
        A1 = lam1
        y1, x1 = -lam1, -A1 + error  # from x_0 = 0
        a2 = (lam2 + np.sqrt(lam2**2 + 4 * lam2 * A1)) / 2
        A2 = A1 + a2
        middle = (A1 * y1 + a2 * x1) / A2
        y2 = middle - lam2
        beta1, beta2 = -(A1**2) / 2 - A1 * y1, -(A2**2) / 2 - A2 * y2
        short = beta1 + A2 / (2 * lam2) * (y2 - middle) ** 2 - error**2 / 2 - beta2
        if short > worst:
            worst, at = short, (lam1, error)
assert worst > 0
report.text(
    f"'Inspired by Lemma 3.4' with f(x) = x, sigma = 0 and an error e in x_1: the claimed lower bound on beta_2 exceeds beta_2 by up to {worst:.3g} (lambda_1 = {at[0]:.2g}, e = {at[1]:.2g})."
)
report.verdict(
    "Inspired by Lemma 3.4",
    "false",
    f"f(x) = x, sigma = 0: beta_2 falls short of the claimed bound by {worst:.3g} (lambda_1 = {at[0]:.2g}, error {at[1]:.2g} in x_1)",
)

# the lemma on eps_A: sum of j^2 for j <= k against k^3
k = np.arange(1, 1001)
ratio = float((np.cumsum(k.astype(float) ** 2) / k.astype(float) ** 3).max())
assert ratio <= 1
report.verdict("Lemma on eps_A", "holds", f"sum j^2 / k^3 at most {ratio:.3f}")
report.write()
