"""How well a pool is used: speed on real workers, utilisation of 64 simulated ones."""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import pytest
from scipy.fft import dct, idct

from fewdim import Auto, ConjugateSketch, RandomGradient, Session, minimize, signs
from fewdim.core import Query
from fewdim.directions import Vector
from fewdim.methods import fitted
from fewdim.parcels import Sender
from fewdim.problems import power_law, quadratic
from fewdim.session import Point
from fewdim.workers import Workers


class VirtualExecutor(Executor):
    """Workers on a clock of their own: an evaluation takes a log-normal time, and time passes when all wait.

    `busy / (width * now)` is the utilisation.  A thread finishes the earliest evaluation whenever the driver waits for
    one, and never while it is at work, so that the load of the machine does not matter.
    """

    def __init__(self, width: int, spread: float, seed: int) -> None:
        self._max_workers = self.width = width
        self.spread, self.chance = spread, np.random.default_rng(seed)
        self.now = self.busy = 0.0
        self.queries: list[list[float]] = []  # of each: evaluations, when it began, time of work
        self.waiting: list[Callable[[], None]] = []
        self.running: list[tuple[float, int, Future[Any], Any]] = []
        self.count = 0
        self.open, self.changed = True, threading.Condition()
        self.thread = threading.Thread(target=self._pass_time)
        self.thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        result = fn(*args)
        with self.changed:
            if not self.running:
                self.queries.append([0, self.now, 0.0])
            self.waiting.append(lambda: self._start(future, result))
            self._fill()
            self.changed.notify()
        return future

    def _start(self, future: Future[Any], result: Any) -> None:
        seconds = float(np.exp(self.spread * self.chance.standard_normal()))
        self.busy += seconds
        self.queries[-1][0] += 1
        self.queries[-1][2] += seconds
        self.count += 1
        heapq.heappush(self.running, (self.now + seconds, self.count, future, result))

    def _fill(self) -> None:
        while self.waiting and len(self.running) < self.width:
            self.waiting.pop(0)()

    def _pass_time(self) -> None:
        while self.open:
            with self.changed:
                if not self._awaited():
                    self.changed.wait(1e-4)
                    continue
                self.now, _, future, result = heapq.heappop(self.running)
                self._fill()
            future.set_result(result)

    def _awaited(self) -> bool:
        """Whether `concurrent.futures.wait` is at work on what runs and has not been woken yet."""
        return bool(self.running) and any(not waiter.event.is_set() for waiter in self.running[0][2]._waiters)

    def used_by_queries(self, least: int) -> float:
        """The utilisation while queries of at least so many evaluations are out."""
        ends = [*(start for _, start, _ in self.queries[1:]), self.now]
        wide = [(work, end - start) for (n, start, work), end in zip(self.queries, ends, strict=True) if n >= least]
        return sum(work for work, _ in wide) / (self.width * sum(time for _, time in wide))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.open = False
        self.thread.join()


def bowl(x: Vector) -> float:
    return float(x @ x)


def utilisation(spread: float, maxfev: int, method: str = "random-gradient", **options: Any) -> float:
    with VirtualExecutor(64, spread, seed=1) as executor:
        arguments = {"rng": 0, "maxfev": maxfev, "tol": 0, "noise": 0.0, "workers": executor, "options": options}
        minimize(bowl, np.ones(1000), method=method, **arguments)  # type: ignore[arg-type]
        return executor.busy / (executor.width * executor.now)


def test_64_simulated_workers_are_used() -> None:
    """Random gradient with a batch of 1023 on log-normal times of spread 0.25.

    A query ends with its slowest point.  Of 64 evaluations on 64 workers that one takes exp(2.4 spread) of the usual
    time, so that a sketch of one round leaves workers idle whatever the driver does (`test_the_table_of_utilisation`).
    """
    used = utilisation(0.25, 3 * 1024 + 40, batch=1023)
    print(f"utilisation {used:.3f}")
    assert used >= 0.85


@pytest.mark.long
def test_the_table_of_utilisation() -> None:
    """Rises with the size of the sketch, falls with the spread of the times; prints the table."""
    sizes, spreads = (64, 128, 256, 512, 1024, 2048), (0.0, 0.1, 0.25, 0.5)
    table = np.array([[utilisation(spread, 3 * 2048, batch=size - 1) for size in sizes] for spread in spreads])
    print("spread", *sizes)
    for spread, row in zip(spreads, table, strict=True):
        print(spread, *np.round(row, 3))
    assert (np.diff(table[1:], axis=1) > 0).all()
    assert (np.diff(table, axis=0) < 0).all()
    assert (table[:, -1] >= 0.85).all()


def test_the_batch_left_to_the_pool_is_one_round() -> None:
    """63 directions and f(x) on 64 workers of equal speed: only the estimates before the first step leave them idle."""
    used = utilisation(0.0, 50 * 64 + 40)
    print(f"utilisation {used:.3f}")
    assert used >= 0.85


@pytest.mark.long
@pytest.mark.parametrize("spread", [0.0, 0.25])
def test_64_simulated_workers_are_used_by_the_default(spread: float) -> None:
    """A run of 20 d evaluations at d = 2000, aligned with the axes: after a first look it is full gradients.

    For 64 workers a gradient comes first up to d = 12,800.  What sketches come to is in the next test.
    """
    problem = quadratic(power_law(2000, 1))
    with VirtualExecutor(64, spread, seed=1) as executor:
        minimize(problem.fun, problem.x0, rng=0, maxfev=40_000, tol=0, noise=0, workers=executor)
        used = executor.busy / (executor.width * executor.now)
    print(f"spread {spread}: utilisation {used:.3f}")
    assert used >= 0.85


def rotated(d: int) -> tuple[Callable[[Vector], float], Vector]:
    """Eigenvalues 1/i, rotated: the conjugate sketch stays in charge."""
    eigenvalues, flips = 1 / np.arange(1, d + 1), np.sign(np.random.default_rng(0).standard_normal(d))
    x0 = flips * idct(np.sign(np.random.default_rng(1).standard_normal(d)), norm="ortho")
    return lambda x: 0.5 * float(dct(flips * x, norm="ortho") ** 2 @ eigenvalues), x0


def sketched(spread: float, least: int, maxfev: int) -> tuple[VirtualExecutor, float]:
    """A run of the default on 64 simulated workers that sketches to the end, and the value reached."""
    fun, x0 = rotated(4000)
    with VirtualExecutor(64, spread, seed=1) as executor:
        method = Auto(noise=0, least=least)
        result = minimize(fun, x0, method=method, rng=0, maxfev=maxfev, tol=0, workers=executor)
    engines = result.message.partition("It was ")[2]
    assert engines.startswith("conjugate sketch from evaluation 1 ")
    assert ";" not in engines  # nobody took over
    return executor, float(result.fun)


def answered(session: Session[Any], fun: Callable[[Vector], float]) -> list[Point]:
    """The points of a query, each told its value."""
    points = session.ask()
    for point in points:
        session.tell(point.id, fun(point.x))
    return points


def test_sketches_are_whole_rounds() -> None:
    """Once three times the memory is more than the least sketch, too: no worker of the last round is left out."""
    problem = quadratic(power_law(400, 1.5), rotate=3)
    session: Session[Any] = Session(fitted(ConjugateSketch(noise=0), 7), problem.x0, rng=0)
    sizes = []
    while session.nfev < 6000:
        sizes.append(len(answered(session, problem.fun)))
    assert len(session.state.memory) > 20
    wide = [n for n in sizes[5:] if n > len(session.state.memory) + 1]
    assert len(wide) > 10
    assert all(n % 7 == 0 for n in wide)


def scheduled(n: int, spread: float) -> float:
    """The utilisation of 64 workers by n evaluations, each begun as soon as one is free: what a driver can reach."""
    rng, used, passed = np.random.default_rng(3), 0.0, 0.0
    for _ in range(200):
        times, ends = np.exp(spread * rng.standard_normal(n)), [0.0] * 64
        for seconds in times.tolist():
            heapq.heapreplace(ends, ends[0] + seconds)
        used, passed = used + float(times.sum()), passed + 64 * max(ends)
    return used / passed


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.1, 0.25])
def test_64_simulated_workers_are_used_by_sketches_of_the_default(spread: float) -> None:
    """They are of 128 evaluations and more, in whole rounds; while one is out, as many workers as can be are at work.

    That is 0.85 of them up to a spread of 0.1.  With more it takes more directions, whoever drives.
    """
    executor, _ = sketched(spread, 8, 8000)
    used, best = executor.used_by_queries(128), scheduled(128, spread)
    print(f"spread {spread}: utilisation {used:.3f} while sketches are out; 128 evaluations can reach {best:.3f}")
    assert used >= best - 0.02
    assert used >= 0.85 or spread > 0.1


@pytest.mark.long
def test_the_table_of_utilisation_of_the_default() -> None:
    """Rises with the least sketch, falls with the spread of the times; prints the table.  128 is what 64 workers get.

    The queries of a step follow upon each other, each ends with its slowest evaluation, and besides the sketch there
    are those for the memory and along the line, which are too narrow to fill the pool: the more of a step is its
    sketch, the fewer workers idle.  That is not to say that it ends sooner: the values reached are printed too, and are
    the worse the larger the sketch.  The last line is what no driver can pass with a query of one round, 64 evaluations
    on 64 workers, whatever the method.
    """
    sizes, spreads, maxfev = (128, 512, 2048), (0.0, 0.1, 0.25), 15_000
    found = [[sketched(spread, least, maxfev) for least in sizes] for spread in spreads]
    table = np.array([[run.busy / (run.width * run.now) for run, _ in row] for row in found])
    wide = np.array([[run.used_by_queries(least) for (run, _), least in zip(row, sizes, strict=True)] for row in found])
    lowest = np.array([[fun for _, fun in row] for row in found])
    print("spread", *sizes, "and while sketches are out")
    for spread, row, part in zip(spreads, table, wide, strict=True):
        print(spread, *np.round(row, 3), "and", *np.round(part, 3))
    fun, x0 = rotated(4000)
    print(f"f from {fun(x0):.3f} down to", *np.round(lowest[0], 3))
    times = np.exp(0.25 * np.random.default_rng(2).standard_normal((10_000, 64)))
    print(f"one round at spread 0.25: at most {times.mean() / times.max(axis=1).mean():.2f}")
    assert (np.diff(table, axis=1) > 0).all()
    assert (np.diff(table, axis=0) < 0).all()
    assert (table[:, -1] >= 0.85).all()
    assert (wide[:, 1:] >= 0.85).all()
    assert (lowest == lowest[0]).all()  # whoever is slow, the run is the same


def rounds_to(method: Any, width: int, decay: float, target: float = 1e-2) -> int:
    """Rounds of `width` evaluations at once until eigenvalues i^-decay, d = 300, rotated, are down to the target."""
    problem = quadratic(power_law(300, decay), rotate=3)
    session: Session[Any] = Session(fitted(method, width), problem.x0, rng=0)
    rounds = 0
    while session.lowest > problem.target(target):
        rounds += -(-len(answered(session, problem.fun)) // width)
    return rounds


@pytest.mark.parametrize("decay", [1, 2])
def test_the_default_is_done_in_fewer_rounds_than_large_batches_of_plain_steps(decay: float) -> None:
    """Its line searches leave a wide pool idle, and yet it ends sooner."""
    for width in (4, 16, 64):
        assert rounds_to(Auto(noise=0), width, decay) < 0.8 * rounds_to(RandomGradient(noise=0), width, decay)


@pytest.mark.parametrize("decay", [1, 2])
def test_a_wide_line_search_saves_rounds(decay: float) -> None:
    """64 workers: one query for predictor and memory, one for all lengths, against the same sketches without."""
    wide, narrow = ConjugateSketch(noise=0).fit(64), ConjugateSketch(noise=0, least=128)
    assert rounds_to(wide, 64, decay) == rounds_to(ConjugateSketch(noise=0), 64, decay)
    with_width = rounds_to(wide, 64, decay)
    without = rounds_to(Unfitted(narrow), 64, decay)
    assert with_width < without


def test_a_step_is_two_queries_where_it_comes_out_as_foreseen() -> None:
    """32 workers on a quadratic: the value where a step ends comes with the sketch there, in most steps.

    A step with a second pass over the memory takes four, and the one after it a sketch of its own.
    """
    problem = quadratic(power_law(300, 1.5), rotate=3)
    session: Session[Any] = Session(ConjugateSketch(noise=0).fit(32), problem.x0, rng=0)
    queries: dict[int, list[int]] = {}
    while session.state.k < 30:
        sizes = queries.setdefault(session.state.k, [])
        sizes.append(len(answered(session, problem.fun)))
    steady = [queries[k] for k in range(10, 30)]
    foreseen = [sizes for sizes in steady if len(sizes) == 2]
    assert len(foreseen) > 10
    assert all(sizes[1] % 32 == 0 for sizes in foreseen)


def bent(x: Vector) -> float:
    """Smooth, and no quadratic: along the first axes curvature grows many times on the way to the minimum."""
    return float(np.sum(np.sqrt(1 + (np.arange(1, x.size + 1) ** -0.5 * x) ** 2)) + 0.1 * (x.sum() / x.size) ** 4)


@pytest.mark.parametrize("fun", [bent, lambda x: float(np.abs(x).sum() ** 1.5)])
def test_wide_steps_go_down_where_nothing_can_be_foreseen(fun: Callable[[Vector], float]) -> None:
    """A value that is not as foreseen costs a sketch, never a rise."""
    session: Session[Any] = Session(ConjugateSketch(noise=0).fit(32), 3 * np.ones(200), rng=0)
    levels, k, made = [fun(3 * np.ones(200))], 0, 0
    while session.nfev < 8000 and (points := answered(session, fun)):
        if not math.isnan(session.state.f_x):
            levels.append(session.state.f_x)
            assert fun(session.state.x) == session.state.f_x
        if session.state.k > max(2, k) and session.state.sketch is not None:  # the last query: made at x
            assert np.array_equal(points[0].x, session.state.x)
            made += 1
        k = session.state.k
    assert made > 10
    assert (np.diff(levels) <= 0).all()
    assert levels[-1] < 0.5 * levels[0] + 0.5 * fun(np.zeros(200))


def test_wide_steps_are_as_good_in_single_precision() -> None:
    """Members of the memory drift apart there, and a step that is foreseen must not go on without a second pass.

    Medians of 5 against the same sketches with one value after another.
    """
    problem = quadratic(power_law(200, 1.5), rotate=3)
    reached = {}
    for method in (ConjugateSketch(noise=0).fit(32), ConjugateSketch(noise=0, least=64)):
        values = []
        for seed in range(5):
            session: Session[Any] = Session(method, problem.x0.astype(np.float32), rng=seed)
            while session.nfev < 6000:
                answered(session, lambda x: float(problem.fun(x)))
            values.append(float(problem.fun(session.state.x.astype(float))))
        reached[method.width] = np.median(values)
    assert reached[32] <= reached[1]


class Unfitted:
    """A method that takes no width."""

    def __init__(self, method: Any) -> None:
        self.start, self.step, self.done = method.start, method.step, method.done


def sleepy(x: Vector) -> float:
    time.sleep(0.02)
    return float(x[0])


@pytest.mark.parametrize("batch", [8, pytest.param(32, marks=pytest.mark.long)])
def test_two_workers_are_nearly_twice_as_fast(batch: int) -> None:
    """Best of 25, since others use the machine too; workers are started beforehand."""
    x = np.ones(100)
    query = Query(x, tuple(0.1 * signs((1, j)) for j in range(batch)))
    points = [Point(j, query, j, x.shape) for j in range(batch)]
    times = {}
    for width in (1, 2):
        team = Workers(Sender(sleepy, ()), width, None)
        try:
            dict(team(points))
            times[width] = min(timed(lambda team=team: dict(team(points))) for _ in range(25))  # type: ignore[misc]
        finally:
            team.close()
    print(f"speed {times[1] / times[2]:.3f}")
    assert times[1] / times[2] >= 1.8


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
