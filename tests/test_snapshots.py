"""States as data: what a snapshot holds, and what may come back from one."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewdim
from fewdim import Journal, Query, Session, Steps, minimize
from fewdim.directions import Key, Vector, gaussian
from fewdim.ledger import Ledger
from fewdim.recording import mark
from fewdim.snapshots import NotDataError, classes_of, decode, encode

X0 = np.linspace(-1, 1, 12)


def bowl(x: Vector) -> float:
    return float(np.sum((x - 0.3) ** 2))


@dataclass(frozen=True)
class Remembering:
    x: Vector
    key: Key
    k: int = 0
    memory: tuple[Vector, ...] = ()


@dataclass(frozen=True)
class Memory:
    """A method that keeps its last points: successive states share all but one vector."""

    size: int = 5

    def start(self, x: Vector, key: Key) -> Remembering:
        return Remembering(x, key)

    def done(self, state: Remembering) -> bool:
        return False

    def step(self, state: Remembering) -> Steps[Remembering]:
        yield Query(state.x, (1e-3 * gaussian((*state.key, state.k)),))
        point = state.x + 0.01
        return replace(state, x=point, k=state.k + 1, memory=(*state.memory, point)[-self.size :])


def test_vectors_of_a_memory_are_stored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewdim.recording.SHARE", math.inf)
    written: list[int] = []
    put = Ledger.put_vector

    def counted(self: Ledger, id: int, array: Vector) -> None:
        written.append(id)
        put(self, id, array)

    monkeypatch.setattr(Ledger, "put_vector", counted)
    whole = minimize(bowl, X0, method=Memory(), rng=5, maxfev=40)
    for maxfev in (20, 40):
        result = minimize(bowl, X0, method=Memory(), rng=5, maxfev=maxfev, journal=tmp_path / "run.db")
    assert result.x.tobytes() == whole.x.tobytes()
    assert len(written) == len(set(written))
    assert len(written) <= 2 * 40 + 2  # x0, and at most the new point and the best one's origin each step
    with sqlite3.connect(tmp_path / "run.db") as database:
        (count,) = database.execute("SELECT count(*) FROM vector").fetchone()
    assert count <= 1 + 5 + 2  # x0, the memory, the best point's origin and x0 as an array of the state
    session = Journal(tmp_path / "run.db").replay(method=Memory())
    assert session.nfev == 40
    with pytest.raises(ValueError, match=r"Journal.replay\(method=...\) must be given for Memory"):
        Journal(tmp_path / "run.db").replay()


def test_a_damaged_snapshot_is_replaced(tmp_path: Path) -> None:
    whole = minimize(bowl, X0, rng=5, maxfev=90)
    minimize(bowl, X0, rng=5, maxfev=60, journal=tmp_path / "run.db")
    with sqlite3.connect(tmp_path / "run.db") as database:
        assert database.execute("UPDATE vector SET data = zeroblob(96) WHERE id <> 0").rowcount > 0
    for maxfev in (80, 90):
        result = minimize(bowl, X0, rng=5, maxfev=maxfev, journal=tmp_path / "run.db")
    assert result.x.tobytes() == whole.x.tobytes()
    assert Journal(tmp_path / "run.db").replay().nfev == 90


def test_only_named_classes_come_back() -> None:
    state = Session(fewdim.RandomPursuit(), X0, rng=1).state
    arrays: list[Any] = []

    def store(array: Any) -> int:
        arrays.append(array)
        return len(arrays) - 1

    coded = encode(state, store, classes_of(type(state)))
    back = decode(coded, lambda i: arrays[i], classes_of(type(state)))
    assert type(back) is type(state)
    assert back.x is state.x
    evil = {"of": "subprocess.Popen", "fields": [{"tuple": ["true"]}]}
    with pytest.raises(NotDataError, match=r"subprocess\.Popen is not named"):
        decode(evil, lambda i: arrays[i], classes_of(type(state)))
    with pytest.raises(NotDataError):
        encode(object(), lambda array: 0, {})
    scalar = decode(encode(np.float32(1.1), len, {}), lambda i: X0, {})
    assert (type(scalar), scalar) == (np.float32, np.float32(1.1))


def test_the_mark_of_a_query_sees_every_part() -> None:
    u = gaussian((1, 2))
    queries = [
        Query(X0),
        Query(X0, (0.1 * u,)),
        Query(X0, (0.2 * u,)),
        Query(X0, (0.1 * gaussian((1, 3)),)),
        Query(X0 + 1e-16 * (X0 > 0.9), (0.1 * u,)),
        Query(X0 + 1e-15, (0.1 * u,)),
        Query(X0, (0.1 * u, None)),
        Query(X0, (X0,)),
        Query(X0.astype(np.float32), (0.1 * u,)),
    ]
    assert len({mark(query) for query in queries}) == len(queries) - 1  # the fifth rounds to the second
    assert mark(queries[1]) == mark(queries[4]) == mark(Query(X0.copy(), (0.1 * u,)))
