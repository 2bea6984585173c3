import numpy as np

import fewdim

d, rng = 10_000, np.random.default_rng(0)
X = rng.standard_normal((200, d)) / np.arange(1, d + 1)  # 10,000 features, few of which vary much
y = np.sign(X @ rng.standard_normal(d))


def loss(w: np.ndarray) -> float:
    return float(np.logaddexp(0, -y * (X @ w)).mean() + 1e-5 * w @ w)


result = fewdim.minimize(loss, np.zeros(d), maxfev=2_000, rng=0)
print(f"loss {loss(np.zeros(d)):.3f} -> {result.fun:.3f} in {result.nfev:,} evaluations")
print(f"{np.mean(np.sign(X @ result.x) == y):.0%} of the labels right; {result.message}")
