"""Pools of workers: processes of one's own, any Executor, anything like map."""

from __future__ import annotations

import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Protocol

from fewdim.evaluate import Evaluator, Value, serial, vectorised
from fewdim.parcels import Answer, Lacking, Parcel, Sender, Unfit, lost, serve
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
        yield Submitted(workers, Sender(fun, args), timeout)
    else:
        yield Mapped(workers, Sender(fun, args))


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


class Alone:
    """No pool: evaluations in this process, one after another."""

    width = 1

    def __init__(self, source: Evaluator) -> None:
        self.source = source

    def __call__(self, points: list[Point]) -> Iterator[tuple[int, Value]]:
        return enumerate(self.source(points))


class Submitted:
    """The workers of an Executor; which of them takes a point is not known beforehand.

    A large base goes with as many points as there are workers, and then to whoever turns out to lack it.  With a
    timeout, or a large base, only as many points are submitted as are likely to be at work.
    """

    def __init__(self, executor: Any, sender: Sender, timeout: float | None) -> None:
        self.executor, self.sender, self.timeout = executor, sender, timeout
        self.width = _width(executor)
        self.near = isinstance(executor, ThreadPoolExecutor)  # shares our memory: nothing travels
        self.carried = (-1, 0)  # version of the base, and how many points it has gone with
        self.stragglers: set[Future[Answer]] = set()

    def __call__(self, points: list[Point]) -> Iterator[tuple[int, Value]]:
        self.sender.rebase(points[0].query)
        large = not self.near and points[0].query.origin.nbytes > SMALL
        window = self.width if self.timeout else 2 * self.width if large else len(points)
        waiting, tries = deque((i, False) for i in range(len(points))), Counter[int]()
        running: dict[Future[Answer], tuple[int, float]] = {}
        try:
            while waiting or running:
                self.stragglers = {future for future in self.stragglers if not future.done()}
                while waiting and len(running) < max(1, window - len(self.stragglers)):
                    position, whole = waiting.popleft()
                    running[self._submit(points[position], whole)] = position, time.monotonic()
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

    def _submit(self, point: Point, whole: bool) -> Future[Answer]:
        version, count = self.carried if self.carried[0] == self.sender.version else (self.sender.version, 0)
        small = self.near or point.query.origin.nbytes <= SMALL
        base = small or whole or count < self.width
        self.carried = version, count + 1
        function = whole or self.near or len(self.sender.function) <= SMALL or (version == 0 and count < self.width)
        future: Future[Answer] = self.executor.submit(serve, self.sender.parcel([point], function=function, base=base))
        return future

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

    def __init__(self, mapper: Callable[..., Iterable[Any]], sender: Sender) -> None:
        self.mapper, self.sender = mapper, sender
        self.width = _width(getattr(mapper, "__self__", None))
        self.version = -1

    def __call__(self, points: list[Point]) -> Iterator[tuple[int, Value]]:
        self.sender.rebase(points[0].query)
        small = points[0].query.origin.nbytes <= SMALL
        groups = 1 if small else math.ceil(len(points) / self.width)
        cuts = [range(lo, min(lo + groups, len(points))) for lo in range(0, len(points), groups)]
        fresh = self.version != self.sender.version
        self.version = self.sender.version
        parcels = [self._parcel(points, cut, whole=small or fresh) for cut in cuts]
        answers = list(self.mapper(serve, parcels))
        lacking = [i for i, answer in enumerate(answers) if isinstance(answer, Lacking)]
        again = [self._parcel(points, cuts[i], whole=True) for i in lacking]
        for i, answer in zip(lacking, self.mapper(serve, again) if again else (), strict=True):
            answers[i] = answer
        for cut, answer in zip(cuts, answers, strict=True):
            if isinstance(answer, Unfit):
                raise TypeError(answer.message)
            yield from zip(cut, answer, strict=True)

    def _parcel(self, points: list[Point], cut: range, whole: bool) -> Parcel:
        function = whole or len(self.sender.function) <= SMALL
        return self.sender.parcel([points[i] for i in cut], function=function, base=whole)


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
