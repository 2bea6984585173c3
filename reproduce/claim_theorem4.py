"""Theorem 4: large-step A-NPE.  The outer loop, the lemmas behind it, the inner solver, the search for lambda."""

import math

import numpy as np
import scipy.optimize
from common import Report
from exact_steps import LOWER, SIGMA, UPPER, large_steps
from sklearn.datasets import load_breast_cancer, load_digits

from fewdim import LargeStep, minimize
from fewdim.problems import decaying_logistic, logistic
from fewdim.theory import Exact, heavy_ball

report = Report("theorem4", "Theorem 4: large steps")
rng = np.random.default_rng(0)


def real(data, y, name):
    Z = data[:, data.std(0) > 1e-9]
    Z = np.c_[(Z - Z.mean(0)) / Z.std(0), np.ones(len(Z))]
    return logistic(Z / np.sqrt((Z**2).sum(1).mean()), y, 1e-4, name), Z / np.sqrt((Z**2).sum(1).mean())


cancer, digits = load_breast_cancer(), load_digits()
problems = {}
for problem, Z in (
    real(cancer.data, 2.0 * cancer.target - 1, "breast cancer"),
    real(digits.data, np.where(digits.target % 2 == 0, 1.0, -1.0), "digits"),
):
    problems[problem.name] = (problem, float((np.linalg.norm(Z, axis=1) ** 3).mean()) / (6 * math.sqrt(3)))
for d in (30, 100):
    Z = np.random.default_rng(1).standard_normal((2 * d + 50, d)) / np.sqrt(np.arange(1, d + 1))
    problems[f"logistic {d}"] = (
        decaying_logistic(d, 1),
        float((np.linalg.norm(Z, axis=1) ** 3).mean()) / (6 * math.sqrt(3)),
    )

# ------------------------------------------------------------------------------------- the outer loop, exact sub-problems
rows, worst, N = [], {}, 60
for name, (p, H) in problems.items():
    sol = minimize(p.fun, p.x0, method="large-step", rng=0, vectorized=True, tol=0, maxfev=10**6).x
    for _ in range(20):
        sol = sol - np.linalg.solve(p.hessian(sol), p.gradient(sol))
    D, least = float(np.linalg.norm(sol - p.x0)), float(p.fun(sol))
    lam0 = LOWER * math.sqrt(1 - SIGMA**2) / (16 * D * H)
    draws = [None, lambda k, a, D=D, d=p.d: D / N**1.5 / a * (v := rng.standard_normal(d)) / np.linalg.norm(v)]
    for error in draws:
        run = large_steps(p, H, N, error, lam0)
        k = np.arange(1, len(run) + 1.0)
        A, lam = np.array([s.A for s in run]), np.array([s.lam for s in run])
        gaps = np.array([float(p.fun(s.y)) - least for s in run])
        off = np.array(
            [np.linalg.norm(s.lam * p.gradient(s.y) + s.y - s.middle) / np.linalg.norm(s.y - s.middle) for s in run]
        )
        moves = np.array([float(np.sum((s.y - s.middle) ** 2)) for s in run])
        unit = H * D**3 / (LOWER * math.sqrt(1 - SIGMA**2))
        w = LOWER**2 * (1 - SIGMA**2) / (H**2 * D**2)
        potential = [
            0.25 * np.sum((s.x - sol) ** 2) + s.A * gap + (1 - SIGMA**2) / 4 * part
            for s, gap, part in zip(run, gaps, np.cumsum(A / lam * moves), strict=True)
        ]
        found = {
            "certificate": float(off.max() / SIGMA),
            "A": float(((2 / 3) ** 3.5 * LOWER * math.sqrt(1 - SIGMA**2) / (16 * D * H) * k**3.5 / A).max()),
            "f": float((gaps / (3**3.5 / math.sqrt(2) * unit / k**3.5)).max()),
            "D2A": float((gaps / (D**2 / (2 * A))).max()),
            "potential": float(max(potential) / D**2),
            "42": float((np.cumsum(A / lam**3) * LOWER**2 * (1 - SIGMA**2) / (H**2 * D**2)).max()),
            "44": float((0.25 * w ** (1 / 3) * np.cumsum(A ** (1 / 7)) ** (7 / 3) / A).max()),
            "drift": float(sum(np.sum((s.x - s.x_star) ** 2) for s in run) / D**2),
            "solves": float(np.mean([s.solves for s in run])),
        }
        for key, value in found.items():
            worst[key] = max(worst.get(key, 0.0), value)
        slope = np.polyfit(np.log(k[3:]), np.log(A[3:]), 1)[0]
        rows.append((name, "none" if error is None else "eps_A/a", len(run), *list(found.values()), slope))
        # Lemma 3.2 along the same run
        points = sol + rng.standard_normal((200, p.d))
        tangents = [float(p.fun(s.y)) + (points - s.y) @ p.gradient(s.y) for s in run]
        values = p.fun(points)
        worst["32a"] = max(worst.get("32a", -math.inf), max(float((t - values).max()) for t in tangents))
        affine, before = np.zeros(p.d), 0.0  # the gradient of Gamma_k, by its recursion
        for s in run:
            g = p.gradient(s.y)
            affine, before = (before * affine + s.a * g) / s.A, s.A
            worst["32b"] = max(worst.get("32b", 0.0), float(np.linalg.norm(p.x0 - s.A * affine - s.x_star)) / D)
            worst["32c"] = max(worst.get("32c", 0.0), float(np.linalg.norm(p.x0 - s.A * g - s.x_star)) / D)
report.text(
    "Algorithm 4 with exact sub-problems, exact gradients or gradients with random errors of the size allowed (eps_A/a, eps_A = D/N^3/2), N = 60; each number is a ratio whose claim is <= 1, the largest over k:"
)
report.table(
    ["problem", "gradient error", "k", "certificate/sigma", "Thm 4.1: bound of A_k / A_k", "Thm 4.1: f", "f / (D^2/2A)", "potential/D^2",
     "Lemma 4.2", "Lemma 4.4 corrected", "sum|x-x*|^2/D^2", "solves a step", "growth of A: k^"], rows,
)  # fmt: skip
for key in ("certificate", "A", "f", "D2A", "potential", "42", "44"):
    assert worst[key] <= 1 + 1e-6, (key, worst[key])
assert worst["32a"] < 1e-9
assert worst["32b"] < 1e-9
assert worst["32c"] > 1

# ---------------------------------------------------------------------------------------------------- lemma on eps_B
ratios = []
for _ in range(4000):
    d = int(rng.integers(1, 8))
    w = 10 ** rng.uniform(-3, 1, d)
    g, lam, L = rng.standard_normal(d), 10 ** rng.uniform(-3, 3), float(w.max())
    best = -g / (w + 1 / lam)
    drop = 0.5 * float(g @ -best)
    gap = (SIGMA - UPPER) ** 2
    allowed = gap / (2 * lam * (L * lam + 1 + gap) * (L + 1 / lam)) * drop
    e = rng.standard_normal(d) * (w + 1 / lam) ** rng.uniform(-1, 1)
    e *= math.sqrt(allowed / (0.5 * float(e @ ((w + 1 / lam) * e))))
    y = best + e
    H = 2 * UPPER / (lam * float(np.linalg.norm(y)))  # the largest that the window allows
    worst_case = lam * (g + w * y) + y
    third = lam * H / 2 * float(y @ y)  # |grad f - grad of the model| at most H/2 |y|^2, in the worst direction
    ratios.append((float(np.linalg.norm(worst_case)) + third) / (SIGMA * float(np.linalg.norm(y))))
assert max(ratios) <= 1 + 1e-9
report.text(
    f"Lemma on eps_B: 4,000 random sub-problems with an error of exactly eps_B and the worst third order that H allows: the certificate's ratio is at most {max(ratios):.3f}."
)

# ------------------------------------------------------------------- 'inspired by Lemma 3.4', repaired: theta, sigma', errors
short = []
for _ in range(3000):
    lam1, lam2, D = 10 ** rng.uniform(-1, 1, 3)
    sigma = float(rng.uniform(0, 0.95))
    theta = (1 - sigma) / (2 * (1 + sigma))
    error = rng.choice([-1, 1]) * float(rng.uniform(0, 1)) * math.sqrt(theta) * D
    A1, y1 = lam1, -lam1 * (1 + sigma * rng.uniform(-1, 1))
    x1 = -A1 + error
    a2 = (lam2 + math.sqrt(lam2**2 + 4 * lam2 * A1)) / 2
    A2 = A1 + a2
    middle = (A1 * y1 + a2 * x1) / A2
    s = -lam2 / (1 + sigma * rng.uniform(-1, 1))  # |lam + s| <= sigma |s|
    y2 = middle + s
    beta1, beta2 = -(A1**2) / 2 - A1 * y1, -(A2**2) / 2 - A2 * y2
    sharp = (1 + sigma) / 2
    gain = (1 - sharp**2) * A2 / (2 * (1 + theta) * lam2) * s**2
    short.append(beta1 + gain - error**2 / (2 * theta) - beta2)
assert max(short) <= 0
report.text(
    f"'Inspired by Lemma 3.4' repaired (gain (1-sigma'^2)A/(2(1+theta)lam)|y-x~|^2, loss |x-x*|^2/(2 theta), theta = (1-sigma)/(2(1+sigma)), sigma' = (1+sigma)/2) on f(x) = x: holds in 3,000 draws with {-max(short):.1e} or more to spare."
)

# ---------------------------------------------------------------------------------- Algorithm 6 as printed need not end
loops = 0
for _ in range(2000):
    d = int(rng.integers(2, 10))
    w, g, H = 10 ** rng.uniform(-3, 0, d), rng.standard_normal(d), 10 ** rng.uniform(-1, 1)
    lam, seen = 10 ** rng.uniform(-2, 2), set()
    while True:
        reach = lam * float(np.linalg.norm(g / (w + 1 / lam)))
        if 2 * LOWER / H < reach < 2 * UPPER / H:
            break
        if lam in seen:
            loops += 1
            break
        seen = {*seen, lam}
        lam *= 2 if reach <= 2 * LOWER / H else 0.5
assert loops > 0
report.text(
    f"Algorithm 6 as printed (doubling and halving, x~ fixed): comes back to a lambda it has tried, and so never ends, in {loops} of 2,000 random quadratics.  Bracketing, then bisecting in log lambda, takes {worst['solves']:.1f} solves a step or fewer on average in the runs above."
)

# ----------------------------------------------------------------------------------------------------- queries, inner solvers
rows, exponents = [], []
for name, (p, _) in problems.items():
    least, first = p.minimum(), float(p.fun(p.x0))
    counts = []
    for gap in (1e-2, 1e-4, 1e-6, 1e-8):
        r = minimize(
            p.fun,
            p.x0,
            method=LargeStep(),
            f_target=least + gap * (first - least),
            vectorized=True,
            rng=0,
            maxfev=10**6,
            tol=0,
        )
        assert r.reason == "target"
        counts.append(r.nfev)
    exponents.append(float(np.polyfit(np.log([1e2, 1e4, 1e6, 1e8]), np.log(counts), 1)[0]))
    rows.append((name, *counts, exponents[-1]))
report.text("Evaluations of `LargeStep()` to a relative gap, and the exponent of 1/eps that they follow:")
report.table(["problem", "1e-2", "1e-4", "1e-6", "1e-8", "exponent"], rows)
rows = []
for name, (p, _) in problems.items():
    least, first = p.minimum(), float(p.fun(p.x0))
    target, counts = least + 1e-8 * (first - least), []
    for method in ("large-step", "auto"):
        r = minimize(p.fun, p.x0, method=method, f_target=target, vectorized=True, rng=0, maxfev=10**6, tol=0)
        counts.append(r.nfev if r.reason == "target" else f"> {r.nfev}")
    seen = []

    def watched(x, p=p, seen=seen):
        seen.append(float(p.fun(x)))
        return seen[-1]

    scipy.optimize.minimize(
        watched,
        p.x0,
        method="L-BFGS-B",
        jac="3-point",
        options={"maxfun": 10**6, "maxiter": 10**4, "ftol": 0, "gtol": 0},
    )
    reached = [i + 1 for i, value in enumerate(seen) if value <= target]
    rows.append((name, *counts, reached[0] if reached else f"> {len(seen)}"))
report.text(
    "The same to 1e-8 beside the default method and L-BFGS-B by central differences: large steps are not what one would choose here."
)
report.table(["problem", "large-step", "auto", "L-BFGS-B"], rows)
rows = []
for d in (25, 50, 100, 200):
    p = decaying_logistic(d, 1)
    least, first = p.minimum(), float(p.fun(p.x0))
    r = minimize(
        p.fun,
        p.x0,
        method=LargeStep(),
        f_target=least + 1e-6 * (first - least),
        vectorized=True,
        rng=0,
        maxfev=10**6,
        tol=0,
    )
    rows.append((d, r.nfev, r.nit))
growth = float(np.polyfit(np.log([row[0] for row in rows]), np.log([row[1] for row in rows]), 1)[0])
report.text(
    f"The same to 1e-6 against d (variance of the i-th feature 1/i): d^{growth:.2f}, the order of the gradients by differences."
)
report.table(["d", "evaluations", "steps"], rows)
p = problems["breast cancer"][0]
least, first = p.minimum(), float(p.fun(p.x0))
rows = []
for inner in ("krylov", "dense", "two-step", "random-gradient", "heavy-ball"):
    r = minimize(
        p.fun,
        p.x0,
        method=LargeStep(inner=inner),
        f_target=least + 1e-3 * (first - least),
        vectorized=True,
        rng=0,
        maxfev=10**5,
        tol=0,
    )
    rows.append((inner, r.nfev if r.reason == "target" else f"> {r.nfev}", r.nit))
steady = problems["breast cancer"][1]
r = minimize(
    p.fun,
    p.x0,
    method=LargeStep(
        constants="paper", inner="krylov", hessian_lipschitz=steady, smoothness=0.25, distance=20.0, iterations=1000
    ),
    f_target=least + 1e-3 * (first - least),
    vectorized=True,
    rng=0,
    maxfev=10**5,
    tol=0,
)
rows.append(("krylov, Algorithms 4 and 6 with the true H", r.nfev if r.reason == "target" else f"> {r.nfev}", r.nit))
report.text("Inner solvers, breast cancer to 1e-3 (Algorithm 2 with h = mu/tr^2, beta = sqrt(h mu), which is stable):")
report.table(["inner", "evaluations", "steps"], rows)
best = rows[0][1]
spectrum = np.linalg.eigvalsh(p.hessian(p.x0)).clip(0) + 1e-2
half = float(np.sqrt(spectrum).sum())
h = 1 / (14400 * half) ** 2
beta = math.sqrt(h * 1e-2)
steps = math.log(100) / beta
report.text(
    f"The printed inner solver on the first sub-problem at lambda = 100: h = {h:.1e}, beta = {beta:.1e}: its momentum forgets a factor 100 only in {steps:.1e} steps of 8 evaluations.  (Radius of mean-square convergence by the exact moments: {Exact(heavy_ball(h, 1 - beta), spectrum).radius:.9f}.)"
)
report.verdict(
    "Theorem 4",
    "false",
    f"the outer loop holds: f(y_k) - f* is at most {worst['D2A']:.2f} of D^2/(2A_k) and {worst['f']:.1e} of the k^-7/2 bound in 8 runs; the query count rests on Theorem 3, and its inner solver would take {steps:.0e} steps on one sub-problem where Krylov solves the whole problem to 1e-3 in {best} evaluations; what holds has sqrt(d ED_1) D eps^-1/2; measured with Krylov: eps^-{min(exponents):.2f} to eps^-{max(exponents):.2f}, d^{growth:.2f}",
)
report.verdict(
    "Theorem 4.1 (Monteiro and Svaiter)",
    "holds corrected",
    f"its two constants differ by {16 * 1.5**3.5 / (3**3.5 / math.sqrt(2)):.3f}; measured at most {worst['A']:.2f} of the bound of A_k and {worst['f']:.1e} of that of f in 8 runs",
)
report.verdict(
    "Lemma on eps_B",
    "holds",
    f"the certificate's ratio is at most {max(ratios):.3f} in 4,000 random sub-problems with the full error eps_B",
)
report.verdict(
    "Lemma 3.2 (Monteiro and Svaiter)",
    "holds corrected",
    f"with y_j for y_(k+1) in the sum that defines x_k^*: tangents stay below f at 200 points each (by {-worst['32a']:.0e} or more), x_k^* is the minimiser to {worst['32b']:.0e} D; with the printed index it is off by up to {worst['32c']:.1f} D",
)
report.verdict(
    "Lemma on the potential",
    "holds corrected",
    f"its proof uses the false lemma inspired by 3.4, whose repair needs eps_A <= sqrt(theta) D/N^3/2 (it holds in 3,000 draws, with {-max(short):.0e} to spare); measured at most {worst['potential']:.2f} D^2 in 8 runs, half of them with errors eps_A/a",
)
report.verdict(
    "Inspired by Lemma 3.4, repaired",
    "holds",
    f"gain (1-sigma'^2)A/(2(1+theta)lam)|y-x~|^2, loss |x-x*|^2/(2 theta): 3,000 draws on f(x) = x, {-max(short):.0e} to spare",
)
report.verdict("Lemma 4.2 (Monteiro and Svaiter)", "holds", f"ratio to the bound at most {worst['42']:.1e} in 8 runs")
report.verdict(
    "Lemma 4.4 (Monteiro and Svaiter)",
    "holds corrected",
    f"as printed its sides differ in units; A_k >= (1/4) w^1/3 (sum A_j^1/7)^7/3 with w = sigma_l^2 (1-sigma^2)/(H^2 D^2): ratio at most {worst['44']:.2f} in 8 runs",
)
report.verdict(
    "Algorithm 6 ends",
    "false",
    f"doubling and halving jump over the window for ever in {loops} of 2,000 random instances; with bisection in log lambda {worst['solves']:.1f} solves a step at most",
)
report.write()
