"""Large steps: counts on logistic regression, the k^-7/2 bound, every inner solver, the search for lambda."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from fewdim import HeavyBall, LargeStep, RandomPursuit, Repeated, Session, minimize
from fewdim.problems import Smooth, decaying_logistic, logistic

REFERENCE = {"breast cancer": 4_500, "digits": 11_000, "logistic 100": 25_000}  # of an earlier implementation, to 1e-8


def real(name: str) -> Smooth:
    """Breast cancer, or digits as odd against even, standardised, with an intercept and a ridge of 1e-4."""
    data = load_breast_cancer() if name == "breast cancer" else load_digits()
    y = 2.0 * data.target - 1 if name == "breast cancer" else np.where(data.target % 2 == 0, 1.0, -1.0)
    Z = data.data[:, data.data.std(0) > 1e-9]
    Z = np.c_[(Z - Z.mean(0)) / Z.std(0), np.ones(len(Z))]
    return logistic(Z / np.sqrt((Z**2).sum(1).mean()), y, 1e-4, name)


PROBLEMS = [real("breast cancer"), real("digits"), decaying_logistic(100, 1)]


def name_of(problem: Smooth) -> str:
    return problem.name


def to_gap(problem: Smooth, gap: float, method: Any, **options: Any) -> Any:
    least, first = problem.minimum(), float(problem.fun(problem.x0))
    options = {"rng": 0, "maxfev": 200_000, "tol": 0.0, **options}
    target = least + gap * (first - least)
    return minimize(problem.fun, problem.x0, method=method, f_target=target, vectorized=True, **options)


@pytest.mark.parametrize("problem", PROBLEMS, ids=name_of)
def test_evaluations_to_eight_digits(problem: Smooth) -> None:
    counts = []
    for seed in range(3):
        result = to_gap(problem, 1e-8, LargeStep(), rng=seed)
        assert result.reason == "target"
        counts.append(result.nfev)
    assert max(counts) <= 1.2 * REFERENCE[problem.name]


@pytest.mark.parametrize("problem", PROBLEMS, ids=name_of)
@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_a_wrong_first_constant_costs_little(problem: Smooth, factor: float) -> None:
    """Off by 10^4 either way: M falls up to eightfold a step, and one value refuses a step that is too long."""
    right = to_gap(problem, 1e-6, LargeStep(hessian_lipschitz=1e-2)).nfev
    assert to_gap(problem, 1e-6, LargeStep(hessian_lipschitz=1e-2 * factor)).nfev <= 2 * right


@pytest.mark.parametrize("constants", ["adaptive", "paper"])
@pytest.mark.parametrize("problem", PROBLEMS[:1], ids=name_of)
def test_the_bound_holds_at_every_step(problem: Smooth, constants: Any) -> None:
    """f(y_k) - f* <= D^2/(2 A_k) with the true D, and A_k >= the k^7/2 bound of Monteiro and Svaiter."""
    least = problem.minimum()
    solution = minimize(problem.fun, problem.x0, method=LargeStep(), rng=0, vectorized=True, tol=0).x
    D, H = float(np.linalg.norm(solution)), 0.1  # |f'''| <= max|z|^3 / (6 sqrt 3), far below 0.1 on average
    method = LargeStep(
        constants=constants, inner="krylov", distance=D, hessian_lipschitz=H, smoothness=0.25, iterations=1000
    )
    session: Session[Any] = Session(method, problem.x0, rng=0)
    k = 0
    while session.nit < 25 and not session.done:
        for point in session.ask():
            session.tell(point.id, float(problem.fun(point.x)))
        if session.nit > k:
            k, s = session.nit, session.state
            gap = float(problem.fun(s.x)) - least
            assert gap <= s.bound * (1 + 1e-6) + 1e-12
            assert s.bound == pytest.approx(D**2 / (2 * s.A))
            if constants == "paper":
                sigma, low = 0.9, 0.225
                least_A = (2 / 3) ** 3.5 * low * (1 - sigma**2) ** 0.5 / (16 * D * H) * k**3.5
                assert least_A <= s.A
    assert k > 5


@pytest.mark.parametrize("inner", ["two-step", "random-gradient", "heavy-ball", "dense", RandomPursuit(noise=0)])
def test_every_inner_solver_gets_there(inner: Any) -> None:
    problem = decaying_logistic(8, 0, ridge=0.05)
    result = to_gap(problem, 1e-3, LargeStep(inner=inner, inner_steps=500))
    assert result.reason == "target"


def test_repeated_inner_runs() -> None:
    problem = decaying_logistic(5, 0, ridge=0.05)
    inner = Repeated(RandomPursuit(noise=0), times=3, steps=40)
    assert to_gap(problem, 1e-2, LargeStep(inner=inner, inner_steps=3)).reason == "target"


def test_nested_stacks_are_shown() -> None:
    method = LargeStep(
        constants="paper", hessian_lipschitz=1.0, smoothness=1.0, half_dimension=2.0, distance=1.0, inner_steps=5
    )
    session: Session[Any] = Session(method, np.ones(3), rng=0)
    while session.nfev < 40:
        for point in session.ask(1):
            session.tell(point.id, float(point.x @ point.x))
    shown = session.where()
    order = ["LargeStep.step", "bisected", "_searched", "composed", "SecondOrderModel.__call__", "HeavyBall.step"]
    places = [shown.index(name) for name in order]
    assert places == sorted(places)


def test_it_stops_by_itself() -> None:
    problem = decaying_logistic(10, 0, ridge=0.1)
    at_round_off = minimize(problem.fun, problem.x0, method=LargeStep(), vectorized=True, rng=0, tol=0)
    assert at_round_off.reason == "finished"
    assert at_round_off.fun - problem.minimum() < 1e-13
    D = float(np.linalg.norm(at_round_off.x))
    early = minimize(problem.fun, problem.x0, method=LargeStep(distance=D, epsilon=1e-2), vectorized=True, rng=0, tol=0)
    assert early.reason == "finished"
    assert early.fun - problem.minimum() <= 1e-2
    assert early.nfev < 0.8 * at_round_off.nfev


@pytest.mark.parametrize("name", ["large-step", "cubic"])
@pytest.mark.parametrize("d", [1, 5])
def test_a_function_without_a_minimum_ends_the_run(name: str, d: int) -> None:
    """Steps grow until the third power of one is no number any more."""
    result = minimize(lambda x: float(x.sum()), np.ones(d), method=name, rng=0, maxfev=10**5)
    assert result.fun < -1e90
    assert result.nfev < 10**5


@pytest.mark.parametrize("name", ["large-step", "cubic"])
def test_noise_that_grows_along_the_run_is_noticed(name: str) -> None:
    """Part of the arithmetic of f is rounded to single precision, which shows only away from x0 = 0."""
    problem = decaying_logistic(30, 0)

    def rough(X: Any) -> Any:
        x = X.astype(np.float32)
        return problem.fun(X) - 5e-4 * (X * X).sum(-1) + 5e-4 * (x * x).sum(-1).astype(float)

    result = minimize(rough, problem.x0, method=name, vectorized=True, rng=0, tol=0, maxfev=100_000)
    assert result.reason == "finished"
    assert result.fun - problem.minimum() < 1e-6


def test_settings_are_checked_by_name() -> None:
    with pytest.raises(ValueError, match=r'LargeStep\(constants="paper"\) needs hessian_lipschitz=; got None'):
        LargeStep(constants="paper")
    with pytest.raises(ValueError, match=r'LargeStep\(constants="paper"\) needs half_dimension='):
        LargeStep(constants="paper", hessian_lipschitz=1.0, smoothness=1.0, distance=1.0)
    with pytest.raises(ValueError, match=r"LargeStep\(sigma=...\) must lie in \(0, 1\); got 1"):
        LargeStep(sigma=1)
    with pytest.raises(ValueError, match=r"LargeStep\(epsilon=...\) needs distance="):
        LargeStep(epsilon=1e-3)
    with pytest.raises(ValueError, match=r"LargeStep\(inner=...\) must be one of"):
        LargeStep(inner=3)
    with pytest.raises(ValueError, match=r"LargeStep\(inner=...\) must be one of .* or a method; got <class"):
        LargeStep(inner=HeavyBall)
    with pytest.raises(ValueError, match=r"LargeStep\(sigma=...\) must be a positive number; got 'a'"):
        LargeStep(sigma="a")  # type: ignore[arg-type]
    assert "HeavyBall" in repr(LargeStep(inner=HeavyBall()))
