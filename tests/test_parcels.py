"""What travels to workers, and what does not."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import numpy as np

from fewdim import signs
from fewdim.core import Query
from fewdim.directions import Vector
from fewdim.parcels import Lacking, Sender, Unfit, serve
from fewdim.pools import Far, Submitted
from fewdim.session import Point
from fewdim.workers import Workers


def test_bytes_sent_for_a_million_dimensions() -> None:
    """At most 1 kB an evaluation within a batch; the base travels once to each worker, and again when it changes."""
    x = np.ones(10**6)
    query = Query(x, tuple(0.1 * signs((1, 2, j)) for j in range(32)))
    points = [Point(j, query, j, x.shape) for j in range(32)]
    team = Workers(Sender(first_coordinate, ()), 4, None)
    try:
        batches = 0
        while len(team.team) < 4 or any(worker.version < 0 for worker in team.team):  # some start later than others
            dict(team(points))
            batches += 1
        assert team.sent < 4 * (x.nbytes + 10_000) + batches * 32 * 1000
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
    pool = Submitted(executor, Far(Sender(first_coordinate, ()), 4), None)
    dict(pool(points))
    dict(pool(points))
    assert executor.bases == [True] * 4 + [False] * 76


def test_a_function_that_cannot_be_made_says_so() -> None:
    sender = Sender(first_coordinate, ())
    query = Query(np.arange(3.0), (None,))
    sender.rebase(query)
    parcel = sender.parcel([Point(0, query, 0, (3,))], function=True, base=True)
    answer = serve(parcel._replace(function=b"cnowhere\nfun\n."))
    assert answer == Unfit("fun could not be made in a worker: ModuleNotFoundError: No module named 'nowhere'")
