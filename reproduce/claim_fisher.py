"""The Fisher-information remark and ED_2: the Hessian of a fitted model against the covariance of its scores."""

import numpy as np
from common import Floats, Report
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits

report = Report("fisher", "ED near the optimum and Fisher information")


def fitted(Z: Floats, y: Floats, ridge: float) -> tuple[Floats, Floats, float]:
    """The Hessian of the mean logistic loss at its minimum, the second moment of the scores there, max |score|^2."""
    Z = np.c_[(Z - Z.mean(axis=0)) / np.where(Z.std(axis=0) > 0, Z.std(axis=0), 1), np.ones(len(Z))]

    def loss(x: Floats) -> tuple[float, Floats]:
        t = y * (Z @ x)
        return float(np.logaddexp(0, -t).mean() + 0.5 * ridge * x @ x), -Z.T @ (y / (1 + np.exp(t))) / len(
            Z
        ) + ridge * x

    x = minimize(loss, np.zeros(Z.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    p = 1 / (1 + np.exp(-Z @ x))
    hessian = (Z.T * (p * (1 - p))) @ Z / len(Z)
    scores = Z * (p - (y > 0))[:, None]
    return hessian, scores.T @ scores / len(Z), float((scores**2).sum(axis=1).max())


rng = np.random.default_rng(0)
true = rng.standard_normal(20) * 0.5
Zs = rng.standard_normal((20_000, 20))
ys = np.where(rng.random(20_000) < 1 / (1 + np.exp(-Zs @ true)), 1.0, -1.0)
B, D = load_breast_cancer(), load_digits()
data = {
    "simulated from the model": (Zs, ys, 0.0),
    "breast cancer": (B.data, 2.0 * B.target - 1, 1e-2),
    "digits, odd against even": (D.data, np.where(D.target % 2, 1.0, -1.0), 1e-2),
}
rows = []
for name, (Z, y, ridge) in data.items():
    H, F, top = fitted(np.asarray(Z, float), y, ridge)
    e, s = np.maximum(np.linalg.eigvalsh(H), 0), np.maximum(np.linalg.eigvalsh(F), 0)
    rows.append((name, len(H), e.sum(), s.sum(), top, np.sqrt(e).sum(), np.sqrt(s).sum(), (e**2).sum(), (s**2).sum()))
report.text(
    "Logistic regression at its minimum: the Hessian of the loss against the second moment of the scores (empirical Fisher information)."
)
report.table(
    [
        "data",
        "d",
        "ED_1, Hessian",
        "ED_1, scores",
        "max |score|^2",
        "ED_1/2, H",
        "ED_1/2, scores",
        "ED_2, H",
        "ED_2, scores",
    ],
    rows,
)
report.text(
    "ED_1 of the scores is the mean of |score|^2, so it is bounded whenever the score is; ED_2 <= L ED_1 follows."
)
model, cancer, digits = rows
off = abs(model[2] / model[3] - 1)
assert off < 0.05
assert all(r[3] <= r[4] for r in rows)
report.verdict(
    "Fisher-information remark",
    "holds corrected",
    f"for data from the model the two ED_1 agree ({model[2]:.3f} and {model[3]:.3f}); on real data they need not (breast cancer {cancer[2]:.3f} and {cancer[3]:.3f}, digits {digits[2]:.3f} and {digits[3]:.3f}); a bounded score bounds ED_1, and ED_1/2 only up to sqrt(d)",
)
report.verdict(
    "ED_2",
    "holds",
    f"ED_2 <= L ED_1; {model[7]:.3g} from the Hessian, {model[8]:.3g} from the scores on data from the model",
)
report.write()
