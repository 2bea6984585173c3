"""The comparison with Nesterov and Spokoiny that the paper makes, and the steps compared in exact expectation."""

import math

import numpy as np
from common import Report, power_law

from fewdim.theory import Exact, effective_count, random_gradient, scale_of_count, two_step

report = Report("nesterov", "Against Nesterov and Spokoiny")
gaps, rows = (1e-2, 1e-4), []
for b, d in ((0.0, 100), (1.0, 100), (2.0, 300)):
    l = power_law(b, d)
    tr, L, mu = float(l.sum()), float(l.max()), float(l.min())
    sharp_h = 0.5 / tr if L / tr < 0.6 else 0.5 / (tr + 2 * L)
    count = effective_count(l, scale_of_count(l, 2.8 * mu / sharp_h))
    theta = (0.6 if L / tr < 0.6 else 0.3) * sharp_h / count
    alpha = math.sqrt(1.15 * theta * mu)
    ns_theta = 1 / (16 * (d + 1) ** 2 * L)
    methods = {
        "random gradient, 1/(tr+2L)": random_gradient(1 / (tr + 2 * L)),
        "the paper, 1/(12 tr)": random_gradient(1 / (12 * tr)),
        "Nesterov-Spokoiny, 1/(4(d+4)L)": random_gradient(1 / (4 * (d + 4) * L)),
        "two-step, sharp": two_step(alpha, sharp_h, theta),
        "Nesterov-Spokoiny, accelerated": two_step(math.sqrt(ns_theta * mu), 1 / (4 * (d + 4) * L), ns_theta),
    }
    for name, method in methods.items():
        exact = Exact(method, l)
        rows.append((b, d, name, *[exact.evaluations_to(gap, most=3_000_000) for gap in gaps], exact.rate))
report.text("Exact queries from (1,..,1) to a relative gap, eigenvalues i^-b:")
report.table(["b", "d", "method", *[f"{g:g}" for g in gaps], "rate"], rows)
by = {(r[0], r[2]): r for r in rows}
plain = {b: by[b, "Nesterov-Spokoiny, 1/(4(d+4)L)"][3] / by[b, "the paper, 1/(12 tr)"][3] for b in (0.0, 1.0, 2.0)}
fast = {b: by[b, "Nesterov-Spokoiny, accelerated"][4] / by[b, "two-step, sharp"][4] for b in (1.0, 2.0)}
expect = {b: 4 * (d + 4) / (12 * float(power_law(b, d).sum())) for b, d in ((0.0, 100), (1.0, 100), (2.0, 300))}
report.text(
    "Ratio of queries to 0.01 against 4(d+4)L/(12 tr): "
    + ", ".join(f"b = {b:g}: {plain[b]:.3g} against {expect[b]:.3g}" for b in plain)
    + "."
)
assert all(np.isclose(plain[b], expect[b], rtol=0.1) for b in plain)
report.verdict(
    "Comparison with Nesterov-Spokoiny",
    "holds corrected",
    f"Algorithm 1: the gain is dL/(3 ED_1), {plain[1.0]:.1f} (b = 1, d = 100) and {plain[2.0]:.0f} (b = 2, d = 300), but {plain[0.0]:.2f} on a flat spectrum, where the paper's step is the shorter one; the accelerated comparison rests on Theorem 3 and is false, though the two-step method gains {fast[1.0]:.0f} and {fast[2.0]:.0f} at 1e-4",
)
report.write()
