"""Pools: the same run whoever computes the values; workers that die or hang; nothing left running; what travels."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewdim
from fewdim import Journal, RandomGradient, RandomPursuit, minimize
from fewdim.directions import Vector

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
    with ThreadPoolExecutor(16) as executor:
        whole = minimize(bowl, X0, rng=2, maxfev=150, workers=executor)
        minimize(bowl, X0, rng=2, maxfev=80, workers=executor, journal=tmp_path / "run.db")
    same(minimize(bowl, X0, rng=2, maxfev=150, journal=tmp_path / "run.db"), whole)
    assert Journal(tmp_path / "run.db").description["settings"]["width"] == 16


def test_methods_take_the_width() -> None:
    assert RandomGradient().fit(64).batch == 63  # with f(x) a query of 64
    assert RandomGradient(batch=5).fit(64).batch == 5
    assert fewdim.methods.fitted(RandomPursuit(), 64) == RandomPursuit()
    assert fewdim.Auto().fit(64) == fewdim.Auto(least=128, width=64)
    assert fewdim.ConjugateSketch().fit(4) == fewdim.ConjugateSketch(width=4)
    assert fewdim.ConjugateSketch().fit(1) == fewdim.ConjugateSketch()
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
            time.sleep(300 if kind == "processes" else 6)
        return bowl(x)

    path = tmp_path / "run.db"
    start = time.monotonic()
    with made(kind) as workers:
        minimize(fun, X0, method=BATCH, rng=3, maxfev=40, workers=workers, timeout=3.0, journal=path)
    assert time.monotonic() - start < 200  # nobody waited for it
    messages = [item.message for item in Journal(path).failures if "ArithmeticError" not in item.message]
    assert messages == ["no value within timeout=3 seconds"]


def test_values_that_came_early_are_kept(tmp_path: Path) -> None:
    """A run cut while the first of its points is still out: the others are recorded, and not evaluated again."""
    target, calls, path = minimize_points(3)[26], [0], tmp_path / "run.db"

    def fun(x: Vector) -> float:
        if x.tobytes() == target and calls[0] < 1000:
            time.sleep(0.5)
            raise KeyboardInterrupt
        calls[0] += 1
        return bowl(x)

    with made("threads") as workers:
        cut = minimize(fun, X0, method=BATCH, rng=3, maxfev=40, workers=workers, journal=path)
    assert cut.reason == "interrupted"
    assert Journal(path).nfev == calls[0] > 30  # of which 26 were in front of the gap
    assert Journal(path).replay().nfev == 26
    before, calls[0] = calls[0], 1000
    same(
        minimize(fun, X0, method=BATCH, rng=3, maxfev=40, journal=path),
        minimize(bowl, X0, method=BATCH, rng=3, maxfev=40),
    )
    assert before + calls[0] - 1000 == 40


def test_something_that_is_no_number_ends_the_run() -> None:
    for kind in ("processes", "threads", "map"):
        with made(kind) as workers, pytest.raises(TypeError, match="must be one real number; got str 'a'"):
            minimize(lambda x: "a", X0, workers=workers)


def test_threads_call_the_function_itself() -> None:
    calls: list[int] = []
    lock = threading.Lock()  # cannot be sent

    def fun(x: Vector) -> float:
        with lock:
            calls.append(1)
        return bowl(x)

    for kind in ("threads", "map"):
        with made(kind) as workers:
            minimize(fun, X0, method=BATCH, rng=2, maxfev=40, workers=workers)
    assert len(calls) == 80
    with pytest.raises(TypeError, match=r"minimize\(workers=...\): fun and args cannot be sent to a worker: .*lock"):
        minimize(fun, X0, workers=2)


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
