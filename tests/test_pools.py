"""Pools: the same run whoever computes the values; workers that die or hang; nothing left running; what travels."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewdim
from fewdim import Journal, RandomGradient, RandomPursuit, minimize, signs
from fewdim.core import Query
from fewdim.directions import Vector
from fewdim.parcels import Lacking, Sender, serve
from fewdim.pools import Submitted
from fewdim.session import Point
from fewdim.workers import Workers

X0 = np.linspace(-1, 1, 12)
BATCH = RandomGradient(batch=7)
SCRIPTS = Path(__file__).parent / "scripts"
posix = pytest.mark.skipif(os.name != "posix", reason="needs signals of POSIX")


def bowl(x: Vector) -> float:
    if int(abs(x.sum()) * 1e7) % 11 == 3:
        raise ArithmeticError("no luck")
    return float(np.sum(np.arange(1, x.size + 1) * (x - 0.3) ** 2))


def same(a: Any, b: Any) -> None:
    assert a.x.tobytes() == b.x.tobytes()
    assert (a.fun, a.nfev, a.nit, a.nfail, a.message) == (b.fun, b.nfev, b.nit, b.nfail, b.message)
    assert a.history.nfev.tobytes() == b.history.nfev.tobytes()


@contextmanager
def made(kind: str) -> Iterator[Any]:
    if kind == "threads":
        with ThreadPoolExecutor(3) as executor:
            yield executor
    elif kind in ("spawn", "fork"):
        if kind not in multiprocessing.get_all_start_methods() or (kind == "fork" and sys.version_info >= (3, 12)):
            pytest.skip(f"{kind} is not there, or warns")
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(kind)) as executor:
            yield executor
    elif kind == "pool.map":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            yield pool.map
    else:
        yield {"processes": 2, "map": map}[kind]


@pytest.mark.parametrize("kind", ["processes", "threads", "spawn", "fork", "map", "pool.map"])
def test_the_same_run_on_every_pool(kind: str, tmp_path: Path) -> None:
    small = minimize(bowl, X0, method=BATCH, rng=2, maxfev=200)
    large_x0 = np.zeros(20_000)  # more than is sent with every point
    large = minimize(bowl, large_x0, method=BATCH, rng=2, maxfev=120)
    with made(kind) as workers:
        for maxfev in (90, 200):
            result = minimize(
                bowl, X0, method=BATCH, rng=2, maxfev=maxfev, workers=workers, journal=tmp_path / "run.db"
            )
        same(result, small)
        same(minimize(bowl, large_x0, method=BATCH, rng=2, maxfev=120, workers=workers), large)
    assert len(Journal(tmp_path / "run.db").failures) == small.nfail > 0


def test_a_pooled_run_goes_on_without_the_pool(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as executor:
        whole = minimize(bowl, X0, rng=2, maxfev=150, workers=executor)
        minimize(bowl, X0, rng=2, maxfev=80, workers=executor, journal=tmp_path / "run.db")
    same(minimize(bowl, X0, rng=2, maxfev=150, journal=tmp_path / "run.db"), whole)
    assert Journal(tmp_path / "run.db").description["settings"]["batch"] == 7


def test_methods_take_the_width() -> None:
    assert RandomGradient().fit(64).batch == 63  # with f(x) a query of 64
    assert RandomGradient(batch=5).fit(64).batch == 5
    assert fewdim.methods.fitted(RandomPursuit(), 64) == RandomPursuit()
    assert fewdim.methods.named("auto") is fewdim.methods.named("auto", 2) is RandomPursuit
    assert fewdim.methods.named("auto", 3) is RandomGradient
    same(
        minimize(bowl, X0, method=RandomGradient(), rng=1, maxfev=90),
        minimize(bowl, X0, method=RandomGradient(batch=1), rng=1, maxfev=90),
    )


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"workers": 0}, r"workers=...\) must be at least 1, or -1 for all processors; got 0"),
    ({"workers": "two"}, r"workers=...\) must be an int, an Executor or like map; got 'two'"),
    ({"workers": True}, r"workers=...\) must be an int"),
    ({"workers": 2, "vectorized": True}, r"workers=...\) must not be given with vectorized=True"),
    ({"workers": 2, "timeout": 0}, r"timeout=...\) must be positive; got 0"),
    ({"timeout": 1}, r"timeout=...\) needs workers="),
    ({"workers": map, "timeout": 1}, r"timeout=...\) needs workers="),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[str(item[0]) for item in WRONG])
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        minimize(bowl, X0, **arguments)


# ------------------------------------------------------------------------------------------------ workers die and hang
@posix
def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """The first evaluation of one point kills its worker: tried again elsewhere, the run is as if nothing happened."""
    flag = tmp_path / "killed"

    def fun(x: Vector) -> float:
        if x[0] < -1.0 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return bowl(x)

    same(
        minimize(fun, X0, method=BATCH, rng=2, maxfev=80, workers=2), minimize(bowl, X0, method=BATCH, rng=2, maxfev=80)
    )
    assert flag.exists()


@posix
def test_a_point_that_kills_every_worker_is_a_failure(tmp_path: Path) -> None:
    target = minimize_points(3)[20]

    def fun(x: Vector) -> float:
        if x.tobytes() == target:
            os.kill(os.getpid(), signal.SIGKILL)
        return bowl(x)

    path = tmp_path / "run.db"
    result = minimize(fun, X0, method=BATCH, rng=3, maxfev=40, workers=2, journal=path)
    (failure,) = [item for item in Journal(path).failures if "ArithmeticError" not in item.message]
    assert failure == (21, "two worker processes died evaluating it (the last with exit code -9)")
    assert result.nfev == 40


def minimize_points(seed: int) -> list[bytes]:
    """The first 40 points of the run above."""
    points: list[bytes] = []

    def fun(x: Vector) -> float:
        points.append(x.tobytes())
        return bowl(x)

    minimize(fun, X0, method=BATCH, rng=seed, maxfev=40)
    return points


@pytest.mark.parametrize("kind", ["processes", "threads"])
def test_a_straggler_is_a_missing_value(kind: str, tmp_path: Path) -> None:
    target = minimize_points(3)[20]

    def fun(x: Vector) -> float:
        if x.tobytes() == target:
            time.sleep(20 if kind == "processes" else 2)
        return bowl(x)

    path = tmp_path / "run.db"
    start = time.monotonic()
    with made(kind) as workers:
        minimize(fun, X0, method=BATCH, rng=3, maxfev=40, workers=workers, timeout=1.0, journal=path)
    assert time.monotonic() - start < 19
    messages = [item.message for item in Journal(path).failures if "ArithmeticError" not in item.message]
    assert messages == ["no value within timeout=1 seconds"]


def test_something_that_is_no_number_ends_the_run() -> None:
    for kind in ("processes", "threads", "map"):
        with made(kind) as workers, pytest.raises(TypeError, match="must be one real number; got str 'a'"):
            minimize(lambda x: "a", X0, workers=workers)


@posix
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="fork warns")
def test_a_broken_executor_says_so(tmp_path: Path) -> None:
    def fun(x: Vector) -> float:
        if x[0] < -1.0:
            os.kill(os.getpid(), signal.SIGKILL)
        return bowl(x)

    with (
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as executor,
        pytest.raises(RuntimeError, match="the executor given as workers= is broken"),
    ):
        minimize(fun, X0, method=BATCH, rng=2, maxfev=80, workers=executor, journal=tmp_path / "run.db")
    result = minimize(bowl, X0, method=BATCH, rng=2, maxfev=80, journal=Journal(tmp_path / "run.db", label=NAME))
    same(result, minimize(bowl, X0, method=BATCH, rng=2, maxfev=80))


NAME = "test_a_broken_executor_says_so.<locals>.fun"


@posix
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_running(how: signal.Signals, tmp_path: Path) -> None:
    script = [sys.executable, str(SCRIPTS / "endless.py"), str(tmp_path / "run.db")]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True, process_group=0) as driver:
        assert driver.stdout is not None
        workers = [int(driver.stdout.readline()) for _ in range(2)]
        os.killpg(driver.pid, how)  # as a terminal does: to the whole group
        rest = driver.stdout.read()
        driver.wait(10)
    deadline = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, workers))
    assert rest == ("interrupted 1\n" if how == signal.SIGINT else "")
    assert Journal(tmp_path / "run.db").nfev == 1


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rsplit(")")[-1].split()[0] == "Z")


# --------------------------------------------------------------------------------------------------------- what travels
def test_bytes_sent_for_a_million_dimensions() -> None:
    """At most 1 kB an evaluation within a batch; the base travels once to each worker, and again when it changes."""
    x = np.ones(10**6)
    query = Query(x, tuple(0.1 * signs((1, 2, j)) for j in range(32)))
    points = [Point(j, query, j, x.shape) for j in range(32)]
    team = Workers(Sender(first_coordinate, ()), 4, None)
    try:
        dict(team(points))
        assert team.sent < 4 * (x.nbytes + 10_000) + 32 * 1000
        before = team.sent
        found = dict(team(points))
        print(f"{(team.sent - before) / 32:.0f} bytes an evaluation")
        assert team.sent - before <= 32 * 1000
        assert [found[j].fun for j in range(32)] == [query.point(j)[0] for j in range(32)]
    finally:
        team.close()


def first_coordinate(x: Vector) -> float:
    return float(x[0])


def test_a_worker_asks_for_what_it_lacks() -> None:
    sender = Sender(first_coordinate, ())
    query = Query(np.arange(3.0), (None,))
    point = Point(0, query, 0, (3,))
    sender.rebase(query)
    bare = sender.parcel([point], function=False, base=False)
    assert isinstance(serve(bare), Lacking)
    assert isinstance(serve(sender.parcel([point], function=True, base=False)), Lacking)
    whole = serve(sender.parcel([point], function=True, base=True))
    assert isinstance(whole, list)
    assert whole[0].fun == 0.0
    assert isinstance(serve(bare), list)
    sender.rebase(Query(np.ones(3)))
    assert isinstance(serve(sender.parcel([point], function=False, base=False)), Lacking)


def test_an_executor_gets_a_large_base_once_a_worker() -> None:
    class Sealed(Executor):
        """Runs at once, and notes what it was sent."""

        _max_workers = 4

        def __init__(self) -> None:
            self.bases: list[bool] = []

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            self.bases.append(args[0].base is not None)
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(fn, *args)

    executor = Sealed()
    x = np.ones(100_000)
    query = Query(x, tuple(0.1 * signs((1, j)) for j in range(40)))
    points = [Point(j, query, j, x.shape) for j in range(40)]
    pool = Submitted(executor, Sender(first_coordinate, ()), None)
    dict(pool(points))
    dict(pool(points))
    assert executor.bases == [True] * 4 + [False] * 76
