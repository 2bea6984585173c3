"""`certify` on random points whose derivatives are known: minima, maxima, saddles, slopes, flat valleys; any units."""

from collections import Counter

import numpy as np
from common import Report

from fewdim import certify

report = Report("certificates", "Certificates judged by the exact gradient and Hessian")
rng = np.random.default_rng(123)
epsilon, delta, table, spent, inside, raised = 1e-4, 1e-2, Counter(), {}, 0, 0
dimensions = (1, 2, 5, 17, 40, 60, 61, 80, 120, 300)
chances = (0.08, 0.08, 0.14, 0.14, 0.14, 0.11, 0.11, 0.1, 0.07, 0.03)
points = 240
for seed in range(points):
    d = int(rng.choice(dimensions, p=chances))
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    kinds = (0.5 + 0.5 * rng.random(d), np.arange(1, d + 1) ** -2.0, 10 ** rng.uniform(-4, 2, d), np.zeros(d))
    w = kinds[int(rng.integers(4))]
    below = int(rng.integers(3))
    if below:
        w[int(rng.integers(d))] = -(10 ** rng.uniform(*((-2.5, 0) if below == 1 else (-3, -1.5))))
    A, x = (Q * w) @ Q.T, rng.standard_normal(d) * 10 ** rng.uniform(-2, 2)
    size = 0.0 if rng.random() < 0.7 else 10 ** rng.uniform(-6, -2)
    g, c = rng.standard_normal((2, d))
    g, c = size * g / np.linalg.norm(g), c / np.linalg.norm(c)
    third, level, unit = (
        rng.standard_normal() * 10 ** rng.uniform(-2, 1),
        float(rng.choice([0, 1, 1e4])),
        10 ** rng.uniform(-6, 6),
    )

    def fun(X, x=x, A=A, g=g, c=c, third=third, level=level, unit=unit):
        Z = X - x
        t = Z @ c
        return unit * (0.5 * ((Z @ A) * Z).sum(-1) + Z @ g + third * (np.sin(t) - t) + t**4 + level)

    low = float(np.linalg.eigvalsh(A)[0])
    truth = "not stationary" if size > epsilon else "negative curvature" if low < -delta else "second-order stationary"
    found = certify(fun, x, epsilon=epsilon * unit, delta=delta * unit, rng=seed, vectorized=True)
    table[truth, found.verdict] += 1
    raised += found.verdict == "below noise" and level == 1e4
    spent.setdefault(d, []).append(found.nfev)
    held = abs(found.gradient_norm - size * unit) <= found.gradient_error
    inside += bool(held and (np.isnan(found.curvature) or abs(found.curvature - low * unit) <= found.curvature_error))
verdicts = ("second-order stationary", "negative curvature", "not stationary", "below noise")
report.text(
    f"{points} points of quadratics with cubic and quartic terms, f raised by 0, 1 or 10^4 and in units of 1e-6 to 1e6; rows are the truth, columns the verdict:"
)
report.table(["truth", *verdicts], [(t, *[table[t, v] for v in verdicts]) for t in verdicts[:3]])
report.text("Evaluations spent:")
report.table(
    ["d", "points", "mean", "most"], [(d, len(n), float(np.mean(n)), max(n)) for d, n in sorted(spent.items())]
)
wrong = sum(n for (t, v), n in table.items() if v not in (t, "below noise"))
unsure = sum(n for (_, v), n in table.items() if v == "below noise")
assert wrong == 0
report.verdict(
    "Certificates",
    "holds",
    f"(this library's) of {points} random points {wrong} wrong verdicts, {unsure} 'below noise' ({raised} of them where f is raised by 10^4 and its round-off with it); both numbers within their error bounds at {inside}",
)
report.write()
