"""The library's own claims: effective dimensions from values alone, and forecasts against measured evaluations."""

from collections.abc import Callable

import numpy as np
from common import Floats, Report, mnist, power_law
from scipy.optimize import minimize as scipy_minimize
from sklearn.datasets import load_breast_cancer, load_digits

from fewdim import Accelerated, RandomGradient, effective_dimension, minimize

report = Report("estimates", "Effective dimension from values, and forecasts")
Function = Callable[[Floats], Floats]
SEEDS = 10


def quadratic(l: Floats, seed: int = 7) -> Function:
    """1/2 x'Ax of rows x, rotated by four random reflections."""
    normals = np.random.default_rng(seed).standard_normal((4, l.size))
    normals /= np.linalg.norm(normals, axis=1)[:, None]

    def f(X: Floats) -> Floats:
        for n in normals:
            X = X - 2 * np.outer(X @ n, n)
        return np.asarray(0.5 * X**2 @ l)

    return f


rows = []
for d in (1000, 5000):
    i = np.arange(1, d + 1.0)
    for name, l in {"i^-1": 1 / i, "i^-2": i**-2, "exp(-(i-1)/10)": np.exp(-(i - 1) / 10), "flat": np.ones(d)}.items():
        f, half, one, out = quadratic(l), float(np.sqrt(l).sum()), float(l.sum()), []
        for seed in range(SEEDS):
            ed = effective_dimension(f, np.ones(d), rng=seed, vectorized=True)
            quick = effective_dimension(f, np.ones(d), alphas=(1.0,), rng=seed, vectorized=True)
            inside = ed[0.5].low <= half <= ed[0.5].high
            out.append(
                (abs(ed[0.5].estimate / half - 1), inside, ed.nfev, abs(quick[1.0].estimate / one - 1), quick.nfev)
            )
        table = np.array(out, float)
        rows.append(
            (
                d,
                name,
                f"{np.median(table[:, 0]):.1%}",
                f"{table[:, 0].max():.1%}",
                f"{table[:, 1].sum():.0f}/{SEEDS}",
                int(table[:, 2].max()),
                f"{np.median(table[:, 3]):.1%}",
                f"{table[:, 3].max():.1%}",
                int(table[:, 4].max()),
            )
        )
report.text(f"Rotated quadratics, function values only, {SEEDS} seeds: relative errors.")
report.table(
    [
        "d",
        "spectrum",
        "ED_1/2 median",
        "largest",
        "in [low, high]",
        "evaluations",
        "ED_1 median",
        "largest",
        "evaluations",
    ],
    rows,
)
worst_half, worst_one = max(float(r[2][:-1]) for r in rows), max(float(r[6][:-1]) for r in rows)
fewest = min(int(r[4].split("/")[0]) for r in rows)


def logistic(Z: Floats, y: Floats) -> tuple[Function, Floats, Floats, float]:
    """Mean logistic loss on standardised rows of unit mean square norm, ridge 1e-3: rows to values, x0, Hessian at x0, f*."""
    Z = Z[:, Z.std(axis=0) > 1e-9]
    Z = np.c_[(Z - Z.mean(axis=0)) / Z.std(axis=0), np.ones(len(Z))]
    Z = Z / np.sqrt((Z**2).sum(axis=1).mean()) * y[:, None]

    def f(X: Floats) -> Floats:
        return np.asarray(np.logaddexp(0, -X @ Z.T).mean(axis=1) + 5e-4 * (X**2).sum(axis=1))

    def gradient(x: Floats) -> Floats:
        return np.asarray(-Z.T @ (1 / (1 + np.exp(Z @ x))) / len(Z) + 1e-3 * x)

    x0 = np.zeros(Z.shape[1])
    best = scipy_minimize(lambda x: float(f(x[None])[0]), x0, jac=gradient, method="BFGS", options={"gtol": 1e-9})
    return f, x0, Z.T @ Z / (4 * len(Z)) + 1e-3 * np.eye(x0.size), float(best.fun)


def softmax(Z: Floats, labels: Floats) -> tuple[Callable[[Floats], float], Floats]:
    """Mean softmax loss of 10 classes, and the eigenvalues of its Hessian at 0: those of Z'Z/N times 1/10, nine times."""
    Y = np.eye(10)[labels.astype(int)]

    def f(x: Floats) -> float:
        out = Z @ x.reshape(Z.shape[1], 10)
        out = out - out.max(axis=1, keepdims=True)
        return float(np.mean(np.log(np.exp(out).sum(axis=1)) - (out * Y).sum(axis=1)))

    gram = np.maximum(np.linalg.eigvalsh(Z.T @ Z / len(Z)), 0)
    return f, np.r_[np.repeat(gram / 10, 9), np.zeros(Z.shape[1])]


cancer, digits, images = load_breast_cancer(), load_digits(), mnist()
rows = []
real = {
    "breast cancer, logistic": logistic(cancer.data, 2.0 * cancer.target - 1),
    "digits, logistic": logistic(digits.data, np.where(digits.target % 2, 1.0, -1.0)),
}
problems: list[tuple[str, Callable[..., object], Floats, Floats, bool]] = []
for name, (f, x0, H, _) in real.items():
    problems.append((name, f, x0, np.linalg.eigvalsh(H), True))
Z = np.c_[digits.data / 16.0, np.ones(len(digits.data))]
for name, (g, e) in {
    "digits, softmax": softmax(Z, digits.target),
    "MNIST, softmax (1,000 images)": softmax(images.pixels[:1000], images.labels[:1000].astype(float)),
}.items():
    problems.append((name, g, np.zeros(e.size), e, False))
for name, fun, x0, e, vectorized in problems:
    ed = effective_dimension(fun, x0, rng=0, vectorized=vectorized)
    for alpha in (0.5, 1.0):
        truth, found = float(np.sum(np.maximum(e, 0) ** alpha)), ed[alpha]
        rows.append(
            (
                name,
                x0.size,
                alpha,
                truth,
                found.estimate,
                found.low,
                found.high,
                f"{abs(found.estimate / truth - 1):.1%}",
                "yes" if found.low <= truth <= found.high else "no",
                ed.nfev,
            )
        )
report.text(f"Losses of real data at x = 0 against their exact Hessian ({images.source}):")
report.table(["loss", "d", "alpha", "exact", "estimate", "low", "high", "error", "in bracket", "evaluations"], rows)
real_worst = max(float(r[7][:-1]) for r in rows)

rows, inside, rng = [], 0, np.random.default_rng(5)
cases = {
    "i^-1, d = 400": (quadratic(power_law(1, 400)), rng.standard_normal(400), 0.0),
    "i^-2, d = 1000": (quadratic(power_law(2, 1000)), rng.standard_normal(1000), 0.0),
    "exp(-i/15), d = 300": (quadratic(np.exp(-np.arange(300) / 15)), rng.standard_normal(300), 0.0),
    "20 of 1, 280 of 0.02": (quadratic(np.r_[np.ones(20), np.full(280, 0.02)]), rng.standard_normal(300), 0.0),
    **{name: (f, x0, least) for name, (f, x0, _, least) in real.items()},
}
for name, (f, x0, least) in cases.items():
    ed = effective_dimension(f, x0, rng=0, vectorized=True)
    gap0 = float(f(x0[None])[0]) - least
    for gap in (0.1, 0.03):
        forecast = ed.forecast(gap)
        for label, method in (("random-gradient", RandomGradient()), ("accelerated", Accelerated())):
            runs = [
                minimize(
                    f, x0, method=method, f_target=least + gap * gap0, maxfev=60_000, rng=s, vectorized=True, tol=0
                ).nfev
                for s in range(5)
            ]
            p, median = forecast[label], float(np.median(runs))
            inside += p.low <= median <= p.high
            rows.append(
                (name, gap, label, p.evaluations, p.low, p.high, median, "yes" if p.low <= median <= p.high else "no")
            )
report.text("Forecast against reality: evaluations to a relative gap, median of 5 runs:")
report.table(["problem", "gap", "method", "forecast", "low", "high", "measured", "inside"], rows)
report.verdict(
    "Effective dimension from values",
    "holds",
    f"(this library's) worst medians over 8 spectra: ED_1/2 {worst_half:.1f} %, ED_1 {worst_one:.1f} %; brackets hold in {fewest} of {SEEDS} or more; real losses within {real_worst:.1f} %",
)
report.verdict(
    "Forecast",
    "holds" if inside == len(rows) else "holds corrected",
    f"(this library's) {inside} of {len(rows)} measured medians inside the range, 6 problems, 2 of real data",
)
report.write()
