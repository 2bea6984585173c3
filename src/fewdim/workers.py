"""Worker processes of one's own: each is spoken to by itself, so that one may die, hang or be replaced alone."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
from loky.backend import get_context

from fewdim.command import end_programs
from fewdim.directions import perturb, signs
from fewdim.evaluate import Value
from fewdim.parcels import Answer, Sender, Unfit, lost, serve
from fewdim.session import Point

GRACE = 2.0  # seconds between asking a worker to end and ending it


class Worker:
    """One process, the pipe to it, and what it is doing."""

    def __init__(self) -> None:
        context = get_context("loky")  # starts from a fresh interpreter and does not import the main module
        self.pipe, theirs = context.Pipe()
        self.process: Any = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.ready = False  # has said that it is
        self.version = -1
        self.position: int | None = None  # of the point it evaluates
        self.since = 0.0

    def give(self, sender: Sender, point: Point, position: int) -> int:
        """Send a point; the bytes sent."""
        parcel = sender.parcel([point], function=self.version < 0, base=self.version != sender.version)
        content = pickle.dumps(parcel, protocol=pickle.HIGHEST_PROTOCOL)
        self.version, self.position, self.since = sender.version, position, time.monotonic()
        self.pipe.send_bytes(content)
        return len(content)

    def take(self) -> Answer | None:
        """What it answers, None when it is ready; EOFError or OSError when it has died."""
        answer: Answer | None = pickle.loads(self.pipe.recv_bytes())
        return answer


class Workers:
    """A pool of n processes; `sent` counts the bytes sent to them, `replaced` those that had to be replaced."""

    def __init__(self, sender: Sender, width: int, timeout: float | None) -> None:
        self.sender, self.width, self.timeout = sender, width, timeout
        self.team: list[Worker] = []
        self.sent = self.replaced = 0

    def __call__(self, points: list[Point]) -> Iterator[tuple[int, Value]]:
        self.sender.rebase(points[0].query)
        waiting, deaths = deque(range(len(points))), Counter[int]()
        try:
            while waiting or self._busy():
                self._hand_out(points, waiting)
                for worker in self._heard():
                    try:
                        answer = worker.take()
                    except (EOFError, OSError):
                        yield from self._died(worker, waiting, deaths)
                        continue
                    position, worker.position = worker.position, None
                    if isinstance(answer, Unfit):
                        raise TypeError(answer.message)
                    if isinstance(answer, list) and position is not None:
                        yield position, answer[0]
                    else:
                        worker.ready = True
                yield from self._overdue()
        finally:  # an end in the middle leaves nobody with a point that nobody waits for
            self._dismiss(self._busy())

    def _busy(self) -> list[Worker]:
        return [worker for worker in self.team if worker.position is not None]

    def _hand_out(self, points: list[Point], waiting: deque[int]) -> None:
        wanted = min(self.width, len(waiting) + len(self._busy()))
        while len(self.team) < wanted:
            self.team.append(Worker())
        for worker in self.team:
            if waiting and worker.ready and worker.position is None:
                position = waiting.popleft()
                with contextlib.suppress(OSError):  # it died while idle: found out when its answer is read
                    self.sent += worker.give(self.sender, points[position], position)

    def _heard(self) -> list[Worker]:
        """Workers that have answered, are ready or have died; waits for one, or until the next one is overdue."""
        awaited: dict[Any, Worker] = {
            worker.pipe: worker for worker in self.team if worker.position is not None or not worker.ready
        }
        left = None
        if self.timeout is not None and (busy := self._busy()):
            left = max(0.0, min(worker.since for worker in busy) + self.timeout - time.monotonic())
        return [awaited[pipe] for pipe in wait(list(awaited), left)]

    def _died(self, worker: Worker, waiting: deque[int], deaths: Counter[int]) -> Iterator[tuple[int, Value]]:
        worker.process.join(GRACE)
        code, position = worker.process.exitcode, worker.position
        self._dismiss([worker])
        if position is None:
            raise RuntimeError(f"minimize(workers=...): a worker process could not start (exit code {code}).")
        self.replaced += 1
        deaths[position] += 1
        if deaths[position] == 1:
            waiting.appendleft(position)
        else:
            yield position, lost(f"two worker processes died evaluating it (the last with exit code {code})")

    def _overdue(self) -> Iterator[tuple[int, Value]]:
        if self.timeout is None:
            return
        now = time.monotonic()
        for worker in self._busy():
            if now - worker.since >= self.timeout and not worker.pipe.poll():
                position = worker.position
                assert position is not None
                self._dismiss([worker])
                self.replaced += 1
                yield position, lost(f"no value within timeout={self.timeout:g} seconds")

    def _dismiss(self, leaving: list[Worker]) -> None:
        """End these workers and what they have started: they are asked, and after a moment made, to end."""
        self.team = [worker for worker in self.team if worker not in leaving]
        for worker in leaving:
            worker.process.terminate()
        deadline = time.monotonic() + GRACE
        for worker in leaving:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            _kill_group(worker.process.pid)
            worker.process.join()
            worker.pipe.close()

    def close(self) -> None:
        self._dismiss(self.team)


# ------------------------------------------------------------------------------------------------------ in the worker
def work(pipe: Connection) -> None:
    """Answer parcels until the driver ends, in whatever way: its end of the pipe is then closed."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C is for the driver, who ends us; and what an evaluation starts can be ended with us
    signal.signal(signal.SIGTERM, lambda signum, frame: _leave())
    parcels: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, parcels), daemon=True).start()
    perturb(np.zeros(64), 1.0, signs((0,)))  # loads compiled code, which must not count against a timeout
    pipe.send_bytes(pickle.dumps(None))  # ready
    while True:
        pipe.send_bytes(pickle.dumps(serve(pickle.loads(parcels.get()))))


def _listen(pipe: Connection, parcels: queue.SimpleQueue[bytes]) -> None:
    while True:
        try:
            parcels.put(pipe.recv_bytes())
        except (EOFError, OSError):
            _leave()


def _leave() -> None:
    """End this worker and all that it has started."""
    end_programs()
    _kill_group(os.getpid())
    os._exit(1)


def _kill_group(pid: int) -> None:
    """Kill a worker and its children, where processes have groups."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
