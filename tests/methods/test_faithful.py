"""The paper's second-order algorithms against direct transcriptions: same points asked, or same iterates."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as minimize_freely

from fewdim import Cubic, LargeStep, Session, gaussian
from fewdim.oracles.second_order import forward_gradient, paper_radius

D = 4
RNG = np.random.default_rng(5)
B = RNG.standard_normal((D, D))
A0 = B @ B.T / D + 0.3 * np.eye(D)
X0 = 0.5 * RNG.standard_normal(D)
SEED = 11
L, H, DIST, HALF, DELTA, N = 6.0, 1.0, 2.0, 5.0, 1e-5, 50
SIGMA = 0.9
UPPER, LOWER = SIGMA / 2, SIGMA / 4


def convex(x: Any) -> float:
    return float(0.5 * x @ A0 @ x + np.logaddexp(0, 2 * x).sum())


def convex_gradient(x: Any) -> Any:
    return A0 @ x + 2 / (1 + np.exp(-2 * x))


def convex_hessian(x: Any) -> Any:
    p = 1 / (1 + np.exp(-2 * x))
    return A0 + np.diag(4 * p * (1 - p))


def wells(x: Any) -> float:
    return float((0.25 * (x * x - 1) ** 2).sum() + 0.1 * x[0])


def wells_gradient(x: Any) -> Any:
    return (x * x - 1) * x + 0.1 * np.eye(D)[0]


def wells_hessian(x: Any) -> Any:
    return np.diag(3 * x * x - 1)


class Recorded:
    """A function that remembers where it was asked, and stops a transcription after so many values."""

    def __init__(self, fun: Callable[[Any], float], most: int) -> None:
        self.fun, self.most, self.points = fun, most, list[Any]()

    def __call__(self, x: Any) -> float:
        if len(self.points) == self.most:
            raise StopIteration
        self.points.append(np.array(x))
        return self.fun(x)


def asked(method: Any, fun: Callable[[Any], float], most: int) -> list[Any]:
    """The points that a method asks for, x0 and what it takes to measure noise and curvature included."""
    session: Session[Any] = Session(method, X0, rng=SEED)
    points: list[Any] = []
    while len(points) < most and not session.done:
        point = session.ask(1)[0]
        points.append(point.x)
        session.tell(point.id, fun(point.x))
    return points


# -------------------------------------------------------------------------------------------- Algorithms 2, 3 and 5
def algorithm_3(f: Any, x: Any, y: Any) -> float:
    """ASOE, four values; one at r = 0; delta where delta^2 is printed, and no point beyond the segment."""
    r = float(np.linalg.norm(y - x))
    if r == 0:
        return float(f(x))
    t1, t2 = min(1.0, DELTA / (L * r**2)), min(1.0, DELTA / (2 * H * r**3))
    f_0, f_1, f_2, f_3 = f(x), f(x + t1 * (y - x)), f(x + t2 * (y - x)), f(x - t2 * (y - x))
    return float(f_0 + (f_1 - f_0) / t1 + (f_2 + f_3 - 2 * f_0) / (2 * t2**2))


def algorithm_2(g: Any, x: Any, half: float, mu: float, key: tuple[int, ...], steps: int) -> Any:
    """ZHB with h = 1/(14400 ED_1/2)^2 and beta = sqrt(h mu), forward differences at 1.3 sqrt(round-off/tr)."""
    h = 1 / (14400 * half) ** 2
    beta = math.sqrt(h * mu)
    v = np.zeros(D)
    last = g(x)
    for n in range(steps):
        y = x + (1 - beta) * v
        u = gaussian((*key, n, 0)).array(D)
        rho = 1.3 * math.sqrt(2.0**-52 * abs(last)) / half
        last = last if n == 0 else g(y)
        new = y - h * (g(y + rho * u) - last) / rho * u
        x, v = new, new - x
    return x


def algorithms_4_and_6(f: Any, steps: int) -> None:
    x, y, A = X0, X0, 0.0
    lam = LOWER * math.sqrt(1 - SIGMA**2) / (16 * DIST * H)
    for k in range(N):
        low, high, j = 0.0, math.inf, 0
        while True:
            a = (lam + math.sqrt(lam**2 + 4 * lam * A)) / 2
            middle = (A * y + a * x) / (A + a)
            f(middle)  # ours: the size of f, for radii
            half, mu, key = HALF + D / math.sqrt(lam), 1 / lam, (SEED, k, 1, 0, j)
            new = algorithm_2(
                lambda z, m=middle, mu=mu: algorithm_3(f, m, z) + mu / 2 * float((z - m) @ (z - m)),
                middle, half, mu, key, steps,
            )  # fmt: skip
            reach = lam * float(np.linalg.norm(new - middle))
            if 2 * LOWER / H <= reach <= 2 * UPPER / H:
                break
            low, high = (lam, high) if reach < 2 * LOWER / H else (low, lam)
            lam = 2 * lam if high == math.inf else lam / 2 if low == 0 else math.sqrt(low * high)
            j += 1
        rho = 2 * (DIST / N**1.5 / a) / (D * L)  # Algorithm 5
        f_y = f(new)
        v = np.array([(f(new + rho * e) - f_y) / rho for e in np.eye(D)])
        x, y, A = x - a * v, new, A + a


def test_the_literal_chain_asks_for_the_points_of_its_transcription() -> None:
    """Algorithm 2 on Algorithm 3 inside Algorithms 4, 5 and 6: 600 points, one after another.

    The transcription orders the values of a query as the text does; a query holds the same points, so both are compared
    as they come.  Differences of 1e-14 come from the order of additions.
    """
    method = LargeStep(
        constants="paper", hessian_lipschitz=H, smoothness=L, distance=DIST, half_dimension=HALF, iterations=N,
        model_error=DELTA, inner_steps=6, noise=0,
    )  # fmt: skip
    record = Recorded(convex, 600)
    with pytest.raises(StopIteration):
        algorithms_4_and_6(record, 6)
    ours = asked(method, convex, 700)
    start = next(i for i in range(1, 60) if np.allclose(ours[i], X0, rtol=0, atol=1e-15))  # scales come before
    theirs = record.points
    mine = ours[start : start + len(theirs)]
    assert len(mine) == 600
    assert np.abs(np.array(mine) - np.array(theirs)).max() <= 1e-14
    assert np.abs(np.array(theirs) - X0).max() > 1e-9  # what is compared are steps of 1e-9 and more


# ----------------------------------------------------------------------------- outer loops, sub-problems solved exactly
def states(method: Any, fun: Callable[[Any], float], steps: int, x0: Any = X0) -> list[Any]:
    session: Session[Any] = Session(method, x0, rng=SEED)
    found: list[Any] = []
    while len(found) < steps and not session.done:
        for point in session.ask():
            session.tell(point.id, fun(point.x))
        if session.nit > len(found):
            found.append(session.state)
    return found


def test_algorithms_4_and_6_with_exact_sub_problems() -> None:
    """Iterates, lambda and A of eight outer steps; differences of radius 1e-5 leave about that in y."""
    method = LargeStep(
        constants="paper", hessian_lipschitz=H, smoothness=L, distance=DIST, iterations=10**4, inner="dense", noise=0
    )
    start = 16 * X0  # far enough for eight steps before lambda runs away
    ours = states(method, convex, 8, start)
    x, y, A = start, start, 0.0
    lam = LOWER * math.sqrt(1 - SIGMA**2) / (16 * DIST * H)
    for state in ours:
        low, high = 0.0, math.inf
        while True:
            a = (lam + math.sqrt(lam**2 + 4 * lam * A)) / 2
            middle = (A * y + a * x) / (A + a)
            s = np.linalg.solve(convex_hessian(middle) + np.eye(D) / lam, -convex_gradient(middle))
            reach = lam * float(np.linalg.norm(s))
            if 2 * LOWER / H <= reach <= 2 * UPPER / H:
                break
            low, high = (lam, high) if reach < 2 * LOWER / H else (low, lam)
            lam = 2 * lam if high == math.inf else lam / 2 if low == 0 else math.sqrt(low * high)
        y, A = middle + s, A + a
        x = x - a * convex_gradient(y)
        assert state.lam == pytest.approx(lam, rel=1e-12)
        assert pytest.approx(A, rel=1e-12) == state.A
        assert state.x == pytest.approx(y, abs=1e-4)
        assert state.v == pytest.approx(x, abs=1e-6 + 2e-5 * L * A)  # errors of y times L a, summed


def test_algorithms_8_and_9_with_exact_sub_problems() -> None:
    """Lengths and iterates of every round: bracket, bisection, and the step at the upper end."""
    epsilon, lipschitz = 1e-3, 8.0
    method = Cubic(constants="paper", epsilon=epsilon, hessian_lipschitz=lipschitz, inner="dense", noise=0)
    ours = states(method, wells, 50)
    assert ours[-1].end == "stationary"
    x, r, width = X0, 1.0, math.sqrt(epsilon / (40_000 * lipschitz))

    def step(x: Any, r: float) -> Any:
        A = wells_hessian(x) + r * lipschitz / 2 * np.eye(D)
        return None if np.linalg.eigvalsh(A)[0] <= 0 else np.linalg.solve(A, -wells_gradient(x))

    def short(x: Any, r: float) -> bool:
        s = step(x, r)
        return s is not None and float(np.linalg.norm(s)) <= r

    for state in ours:
        low, high = 0.0, math.inf
        while not (low > 0 and high < math.inf) and high >= width:
            if short(x, r):
                high, r = r, r / 2
            else:
                low, r = r, 2 * r
        while high - low >= width and low > 0:
            r = (low + high) / 2
            low, high = (low, r) if short(x, r) else (r, high)
        r = high
        x = x + step(x, r)
        assert state.radius == pytest.approx(r, rel=1e-9)
        assert state.x == pytest.approx(x, abs=1e-4)
    assert r <= 2 / 3 * math.sqrt(epsilon / lipschitz)


def test_algorithm_8_through_algorithms_2_and_3_asks_for_the_points_of_its_transcription() -> None:
    """The first search: x0 and the scales first, then the model of each r, penalty r H/4."""
    epsilon, steps = 1e-2, 6
    method = Cubic(
        constants="paper", epsilon=epsilon, hessian_lipschitz=H, smoothness=L, half_dimension=HALF, model_error=DELTA,
        inner_steps=steps, noise=0,
    )  # fmt: skip
    record = Recorded(wells, 400)

    def transcription(f: Any) -> None:
        r, low, high, j = 1.0, 0.0, math.inf, 0
        while True:
            mu, x = r * H / 2, X0
            y = algorithm_2(
                lambda z, x=x, mu=mu: algorithm_3(f, x, z) + mu / 2 * float((z - x) @ (z - x)),
                x, HALF + D * math.sqrt(mu), mu, (SEED, 0, 2, j), steps,
            )  # fmt: skip
            if np.linalg.norm(y - x) <= r:
                high, r = r, r / 2
            else:
                low, r = r, 2 * r
            j += 1
            if low > 0 and high < math.inf:
                raise AssertionError("400 values do not get as far as the bisection")

    with pytest.raises(StopIteration):
        transcription(record)
    ours = asked(method, wells, 500)
    first = record.points[2]  # the first point that is not x0
    start = next(i for i, p in enumerate(ours) if np.allclose(p, first, rtol=0, atol=1e-13)) - 2
    mine = ours[start : start + 400]
    assert np.abs(np.array(mine) - np.array(record.points)).max() <= 1e-12


def test_algorithm_7_is_what_algorithm_9_approximates() -> None:
    """Each round ends at the minimiser of the cubic model, to the width of the search times |ds/dr| <= 3 here."""
    epsilon, lipschitz = 1e-3, 8.0
    method = Cubic(constants="paper", epsilon=epsilon, hessian_lipschitz=lipschitz, inner="dense", noise=0)
    x = X0
    for state in states(method, wells, 50):
        g, A = wells_gradient(x), wells_hessian(x)

        def model(s: Any, g: Any = g, A: Any = A) -> float:
            return float(g @ s + 0.5 * s @ A @ s + lipschitz / 6 * np.linalg.norm(s) ** 3)

        best = min((minimize_freely(model, start, tol=1e-12) for start in (-g, g, -0.1 * g)), key=lambda r: r.fun)
        assert state.x - x == pytest.approx(best.x, abs=3 * math.sqrt(epsilon / (40_000 * lipschitz)))
        x = state.x


def test_algorithm_5_asks_for_the_points_of_its_transcription() -> None:
    error = 1e-3
    rho = 2 * error / (D * L)
    f_x = convex(X0)
    expected = np.array([(convex(X0 + rho * e) - f_x) / rho for e in np.eye(D)])
    steps = forward_gradient(X0, math.nan, paper_radius(error, D, L))
    query = next(steps)
    points = [query.point(i) for i in range(len(query))]
    assert np.array_equal(points, [X0, *(X0 + rho * np.eye(D))])
    with pytest.raises(StopIteration) as stop:
        steps.send(np.array([convex(point) for point in points]))
    assert np.array_equal(stop.value.value.g, expected)
