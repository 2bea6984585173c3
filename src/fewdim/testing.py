"""`check_method`: the conformance suite for methods, ours and yours.

    from fewdim.testing import check_method
    check_method(MyMethod())          # AssertionError with a sentence when something is wrong

Each check is also a function of its own in `CHECKS`, for a test runner that wants to name them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewdim.core import FAILED, Method
from fewdim.minimize import minimize
from fewdim.session import Session

Fun = Callable[[NDArray[Any]], float]
SEED = 7


def check_method(method: Method[Any], *, evaluations: int = 150) -> None:
    """Run every check on `method`; raises AssertionError at the first that fails."""
    for name, check in CHECKS.items():
        try:
            check(method, evaluations)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{method!r} fails in check {name!r}: {type(error).__name__}: {error}") from error


def valley(x: NDArray[Any]) -> float:
    """A convex quadratic with eigenvalues 1/i, summed exactly, so that its values are the same on every machine."""
    return math.fsum(0.5 * float(z) ** 2 / (i + 1) for i, z in enumerate(np.ravel(x)))


def check_states(method: Method[Any], evaluations: int) -> None:
    """States are frozen dataclasses of data, and nothing writes to the arrays they hold."""
    for state in _states(method, valley, np.ones(5), evaluations):
        assert dataclasses.is_dataclass(state), f"a state must be a dataclass; got {type(state).__name__}."
        _assert_data(state, type(state).__name__)


def check_purity(method: Method[Any], evaluations: int) -> None:
    """From the same state a step asks for the same points and comes to the same state."""
    for state in _states(method, valley, np.ones(5), evaluations):
        if method.done(state):
            break
        once, again = (_one_step(method, state, valley) for _ in range(2))
        assert once == again, f"step {state.k} of {method!r} differs when it is taken twice from the same state."


def check_delivery(method: Method[Any], evaluations: int) -> None:
    """minimize, rows at once, ask/tell in any order and split, and resuming from any state give the same run."""
    plain: Session[Any] = Session(method, np.ones(5), rng=SEED)
    asked: list[bytes] = []
    while not plain.done and plain.nfev < evaluations:
        point = plain.ask(1)[0]
        asked.append(point.x.tobytes())
        plain.tell(point.id, valley(point.x))
    steps = plain.nit
    for vectorized in (False, True):
        seen: list[bytes] = []

        def watched(X: NDArray[Any], rows: bool = vectorized, seen: list[bytes] = seen) -> Any:
            points = X if rows else X[None]
            seen.extend(x.tobytes() for x in points)
            return [valley(x) for x in points] if rows else valley(X)

        result = minimize(
            watched, np.ones(5), method=method, vectorized=vectorized, maxfev=evaluations, rng=SEED, tol=0.0
        )
        shared = min(len(asked), result.nfev - 1)  # in noise the last evaluation is minimize's own
        assert seen[:shared] == asked[:shared], (
            f"{method!r} asks for other points in minimize(vectorized={vectorized})."
        )
    mixed = _shuffled(method, steps)
    assert _fingerprint(mixed.state) == _fingerprint(plain.state), f"{method!r} differs when told in another order."
    for early, late in itertools.pairwise(_states(method, valley, np.ones(5), evaluations)):
        got = _one_step(method, early, valley)[1]
        assert got == _fingerprint(late), (
            f"{method!r} does not go on from the state at step {early.k} as it did before."
        )


def _shuffled(method: Method[Any], steps: int) -> Session[Any]:
    """A run of so many steps, its points asked in random splits and told in random order."""
    chance = random.Random(0)
    session: Session[Any] = Session(method, np.ones(5), rng=SEED)
    while session.nit < steps and not session.done:
        points = session.ask(chance.randint(1, 4))
        while points:
            if chance.random() < 0.3:
                points += session.ask(1)
            point = points.pop(chance.randrange(len(points)))
            session.tell(point.id, valley(point.x))
            if session.nit >= steps:
                break
    return session


def check_invariance(method: Method[Any], evaluations: int) -> None:
    """Moving the origin, or adding a constant to f, leaves the course of the run as it was.

    Radii follow the size of x and of f, so slopes agree to about sqrt(round-off) and curvatures to 1e-4, the accuracy
    at which second differences are taken; 1e-2 of the decrease leaves room for these to add up over the run.
    """
    options = {"maxfev": evaluations, "rng": SEED, "tol": 0.0, "method": method}
    plain = minimize(valley, np.ones(5), **options)  # type: ignore[arg-type]
    moved = minimize(lambda x: valley(x - 3), np.ones(5) + 3, **options)  # type: ignore[arg-type]
    lifted = minimize(lambda x: valley(x) + 1, np.ones(5), **options)  # type: ignore[arg-type]
    drop = valley(np.ones(5))
    for other, how in ((moved.fun, "x is shifted by 3"), (lifted.fun - 1, "f is raised by 1")):
        assert abs(other - plain.fun) <= 1e-2 * drop, f"{method!r} ends at {other}, not {plain.fun}, when {how}."


def check_progress(method: Method[Any], evaluations: int) -> None:
    """On a small convex quadratic the iterate, and not only the luckiest point, ends below the start."""
    *_, last = _states(method, valley, np.ones(5), evaluations)
    assert valley(last.x) < valley(np.ones(5)), f"{method!r} is at {valley(last.x)}, no lower than where it started."


def check_hostile(method: Method[Any], evaluations: int) -> None:
    """No exception, no point that is not finite, nothing worse than the start, on functions that break assumptions."""
    fail = random.Random(0)
    cases: dict[str, tuple[Fun, NDArray[Any]]] = {
        "a constant function": (lambda x: 3.0, np.ones(4)),
        "one dimension": (valley, np.ones(1)),
        "a start at the optimum": (valley, np.zeros(4)),
        "float32": (valley, np.ones(6, dtype=np.float32)),
        "missing values at random": (lambda x: FAILED if fail.random() < 0.3 else valley(x), np.ones(4)),
        "missing values beyond the start": (lambda x: valley(x) if np.all(x == 1) else FAILED, np.ones(4)),
        "a half-space without values": (lambda x: valley(x) if x[0] > 0.5 else -math.inf, np.ones(4)),
        "a kink": (lambda x: float(np.abs(x).sum()), np.ones(4)),
        "a concave function": (lambda x: -min(valley(x), 1e6), np.ones(4)),
    }
    for name, (fun, x0) in cases.items():
        session: Session[Any] = Session(method, x0, rng=SEED)
        while not session.done and session.nfev < evaluations:
            point = session.ask(1)[0]
            assert point.x.dtype == x0.dtype, f"{method!r} asks for {point.x.dtype} points from {x0.dtype}."
            assert np.isfinite(point.x).all(), f"{method!r} asks for a point that is not finite on {name}."
            session.tell(point.id, valley(x0) if session.nfev == 0 and name.startswith("missing") else fun(point.x))
        assert session.best.fun <= session.first, f"{method!r} is worse than its start on {name}."


def check_cost(method: Method[Any], evaluations: int) -> None:
    """A `cost` that a method declares is what its steps use, after the first, where no value is missing."""
    cost = getattr(method, "cost", None)
    if cost is None:
        return
    session: Session[Any] = Session(method, np.ones(5), rng=SEED)
    before, step = 0, 0
    while not session.done and session.nfev < evaluations:
        point = session.ask(1)[0]
        session.tell(point.id, valley(point.x))
        if session.nit > step:
            used, before, step = session.nfev - before, session.nfev, session.nit
            if step > 1:
                most = cost.most + cost.axes * session.state.x.size
                assert cost.fewest <= used <= most, f"step {step} of {method!r} took {used} values, not {cost}."


CHECKS: dict[str, Callable[[Method[Any], int], None]] = {
    "states": check_states,
    "purity": check_purity,
    "delivery": check_delivery,
    "invariance": check_invariance,
    "progress": check_progress,
    "hostile": check_hostile,
    "cost": check_cost,
}


# ----------------------------------------------------------------------------------------------------------- machinery
def _states(method: Method[Any], fun: Fun, x0: NDArray[Any], evaluations: int) -> Iterator[Any]:
    """The states of a run at its step boundaries, their arrays locked against writing."""
    session: Session[Any] = Session(method, x0, rng=SEED)
    step = -1
    while True:
        if session.nit > step and session.nfev > 0:
            step = session.nit
            _lock(session.state)
            yield session.state
        if session.done or session.nfev >= evaluations:
            return
        point = session.ask(1)[0]
        session.tell(point.id, fun(point.x))


def _one_step(method: Method[Any], state: Any, fun: Fun) -> tuple[list[bytes], Any]:
    """The points that one step asks for, and a fingerprint of the state it comes to."""
    steps, asked = method.step(state), []
    try:
        query = next(steps)
        while True:
            points = [query.point(i) for i in range(len(query))]
            asked += [point.tobytes() for point in points]
            query = steps.send(np.array([fun(point) for point in points]))
    except StopIteration as stop:
        return asked, _fingerprint(stop.value)


def _fingerprint(value: Any) -> Any:
    """Data as nested tuples that compare bit for bit, nan included."""
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, tuple):
        return tuple(map(_fingerprint, value))
    if dataclasses.is_dataclass(value):
        return tuple(_fingerprint(getattr(value, field.name)) for field in dataclasses.fields(value))
    return value


def _assert_data(value: Any, name: str) -> None:
    if isinstance(value, tuple):
        for item in value:
            _assert_data(item, name)
    elif dataclasses.is_dataclass(value):
        frozen = getattr(type(value), "__dataclass_params__").frozen  # noqa: B009  not in the type stubs
        assert frozen, f"{name} must be frozen."
        for field in dataclasses.fields(value):
            _assert_data(getattr(value, field.name), f"{name}.{field.name}")
    else:
        kinds = (np.ndarray, float, int, bool, str, type(None), np.number)
        assert isinstance(value, kinds), (
            f"{name} must hold arrays, numbers, strings or tuples; got {type(value).__name__}."
        )


def _lock(value: Any) -> None:
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, tuple):
        for item in value:
            _lock(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _lock(getattr(value, field.name))
