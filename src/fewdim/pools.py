"""Pools of workers: processes of one's own, any Executor, anything like map."""

from __future__ import annotations

import functools
import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool
from typing import Any, Protocol

from fewdim.core import Query
from fewdim.evaluate import Alone, Value, keyed, serial, vectorised
from fewdim.parcels import Answer, Lacking, Parcel, Sender, Unfit, here, lost, serve
from fewdim.session import Point
from fewdim.workers import Workers

SMALL = 2**16  # bytes that are cheaper to send again than to ask about


class Pool(Protocol):
    """Arrivals from `width` evaluations at once."""

    @property
    def width(self) -> int: ...
    def __call__(self, points: list[Point]) -> Iterator[tuple[int, Value]]: ...


@contextmanager
def pool(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    workers: Any,
    timeout: float | None,
    vectorized: bool,
    reuse_buffer: bool,
) -> Iterator[Pool]:
    """What `workers` stands for; what was started for it is ended with it."""
    fun = keyed(fun)
    _check(workers, timeout, vectorized)
    if workers is None:
        yield Alone(vectorised(fun, args) if vectorized else serial(fun, args, reuse_buffer))
    elif isinstance(workers, int):
        team = Workers(Sender(fun, args), workers if workers > 0 else os.cpu_count() or 1, timeout)
        try:
            yield team
        finally:
            team.close()
    elif hasattr(workers, "submit"):
        yield Submitted(workers, _way(workers, fun, args), timeout)
    else:
        yield Mapped(workers, _way(workers, fun, args))


def _way(workers: Any, fun: Callable[..., Any], args: tuple[Any, ...]) -> Near | Far:
    """How points get to these workers."""
    owner = getattr(workers, "__self__", workers)
    shared = workers is map or isinstance(owner, (ThreadPoolExecutor, ThreadPool))
    return Near(fun, args) if shared else Far(Sender(fun, args), _width(owner))


class Near:
    """Workers that share our memory: nothing travels."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.serve = functools.partial(here, fun, args)

    def begin(self, query: Query) -> bool:
        return False

    def task(self, points: list[Point], whole: bool) -> list[Point]:
        return points


class Far:
    """Workers elsewhere, none of which can be spoken to by itself.

    A large base goes with as many tasks as there are workers, and then to whoever turns out to lack it.
    """

    serve = staticmethod(serve)

    def __init__(self, sender: Sender, width: int) -> None:
        self.sender, self.width = sender, width
        self.version, self.carried = -1, 0  # tasks that this version of the base has gone with

    def begin(self, query: Query) -> bool:
        """Take up the origin of a query; whether it is large."""
        self.sender.rebase(query)
        if self.version != self.sender.version:
            self.version, self.carried = self.sender.version, 0
        return query.origin.nbytes > SMALL

    def task(self, points: list[Point], whole: bool) -> Parcel:
        early = self.carried < self.width
        self.carried += 1
        base = whole or early or points[0].query.origin.nbytes <= SMALL
        function = whole or len(self.sender.function) <= SMALL or (early and self.version == 0)
        return self.sender.parcel(points, function=function, base=base)


def _check(workers: Any, timeout: float | None, vectorized: bool) -> None:
    number = isinstance(workers, int) and not isinstance(workers, bool)
    if workers is not None and not callable(workers) and not hasattr(workers, "submit") and not number:
        raise TypeError(f"minimize(workers=...) must be an int, an Executor or like map; got {workers!r}.")
    if number and (workers < -1 or workers == 0):
        raise ValueError(f"minimize(workers=...) must be at least 1, or -1 for all processors; got {workers}.")
    if workers is not None and vectorized:
        raise ValueError("minimize(workers=...) must not be given with vectorized=True: fun gets all points at once.")
    if timeout is None:
        return
    if not timeout > 0:
        raise ValueError(f"minimize(timeout=...) must be positive; got {timeout!r}.")
    if not number and not hasattr(workers, "submit"):
        raise ValueError("minimize(timeout=...) needs workers= an int or an Executor: nobody else can give up waiting.")


class Submitted:
    """The workers of an Executor.

    With a timeout, or a large base, only as many points are submitted as are likely to be at work.
    """

    def __init__(self, executor: Any, way: Near | Far, timeout: float | None) -> None:
        self.executor, self.way, self.timeout = executor, way, timeout
        self.width = _width(executor)
        self.stragglers: set[Future[Answer]] = set()

    def __call__(self, points: list[Point]) -> Iterator[tuple[int, Value]]:
        large = self.way.begin(points[0].query)
        window = self.width if self.timeout else 2 * self.width if large else len(points)
        waiting, tries = deque((i, False) for i in range(len(points))), Counter[int]()
        running: dict[Future[Answer], tuple[int, float]] = {}
        try:
            while waiting or running:
                self.stragglers = {future for future in self.stragglers if not future.done()}
                while waiting and len(running) < max(1, window - len(self.stragglers)):
                    position, whole = waiting.popleft()
                    future = self.executor.submit(self.way.serve, self.way.task([points[position]], whole))
                    running[future] = position, time.monotonic()
                done, _ = wait(running, self._left(running), return_when=FIRST_COMPLETED)
                for future in done:
                    position, _ = running.pop(future)
                    answer = _answer(future)
                    if (isinstance(answer, Exception) and tries[position] == 0) or isinstance(answer, Lacking):
                        tries[position] += isinstance(answer, Exception)
                        waiting.appendleft((position, True))
                    elif isinstance(answer, Exception):
                        yield position, lost(f"the executor failed twice: {type(answer).__name__}: {answer}")
                    else:
                        yield position, answer[0]
                yield from self._overdue(running)
        finally:
            for future in running:
                future.cancel()

    def _left(self, running: dict[Future[Answer], tuple[int, float]]) -> float | None:
        if self.timeout is None:
            return None
        return max(0.0, min(since for _, since in running.values()) + self.timeout - time.monotonic())

    def _overdue(self, running: dict[Future[Answer], tuple[int, float]]) -> Iterator[tuple[int, Value]]:
        now = time.monotonic()
        for future, (position, since) in list(running.items()):
            if self.timeout is not None and now - since >= self.timeout and not future.done():
                del running[future]
                if not future.cancel():
                    self.stragglers.add(future)  # still holds its worker
                yield position, lost(f"no value within timeout={self.timeout:g} seconds")


class Mapped:
    """Something like map: all points of a query at once, in groups that share a large base."""

    def __init__(self, mapper: Callable[..., Iterable[Any]], way: Near | Far) -> None:
        self.mapper, self.way = mapper, way
        self.width = 1 if mapper is map else _width(getattr(mapper, "__self__", None))

    def __call__(self, points: list[Point]) -> Iterator[tuple[int, Value]]:
        large = self.way.begin(points[0].query)
        size = math.ceil(len(points) / self.width) if large else 1
        cuts = [range(lo, min(lo + size, len(points))) for lo in range(0, len(points), size)]
        answers = self._mapped(points, cuts, whole=False)
        lacking = [i for i, answer in enumerate(answers) if isinstance(answer, Lacking)]
        again = self._mapped(points, [cuts[i] for i in lacking], whole=True)
        for i, answer in zip(lacking, again, strict=True):
            answers[i] = answer
        for cut, answer in zip(cuts, answers, strict=True):
            if isinstance(answer, Unfit):
                raise TypeError(answer.message)
            yield from zip(cut, answer, strict=True)

    def _mapped(self, points: list[Point], cuts: list[range], whole: bool) -> list[Any]:
        tasks = [self.way.task([points[i] for i in cut], whole) for cut in cuts]
        return list(self.mapper(self.way.serve, tasks)) if tasks else []


def _answer(future: Future[Answer]) -> list[Value] | Lacking | Exception:
    """What a future brought; a mistake in fun or a broken executor ends the run."""
    try:
        answer = future.result()
    except BrokenExecutor as error:
        raise RuntimeError(
            f"the executor given as workers= is broken ({error}); workers= an int replaces workers that die."
        ) from error
    except CancelledError:
        return RuntimeError("cancelled")
    except Exception as error:
        return error
    if isinstance(answer, Unfit):
        raise TypeError(answer.message)
    return answer


def _width(owner: Any) -> int:
    """How many evaluations a pool runs at once, as far as it tells; else the number of processors."""
    for name in ("_max_workers", "num_workers", "_processes"):
        if isinstance(number := getattr(owner, name, None), int) and number > 0:
            return number
    if hasattr(owner, "_actor_pool"):  # ray.util.multiprocessing.Pool
        return max(1, len(owner._actor_pool))
    client = getattr(owner, "_client", None)  # dask.distributed: client.get_executor()
    if client is not None and hasattr(client, "nthreads"):
        return max(1, sum(map(int, client.nthreads().values())))
    return os.cpu_count() or 1
