"""A run as its journal sees it: what it was asked before is answered from the file, what is new is written first.

A method is a pure function of its settings, x0, key and the values received, so the values are the run.  Reopening a
journal starts a session from the latest snapshot (or from x0) and answers its queries from the file until they are new.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from fewdim.core import Query
from fewdim.directions import Along, Direction, Vector
from fewdim.evaluate import Arrivals, Value
from fewdim.ledger import Ledger
from fewdim.loop import Bookmark
from fewdim.rows import JournalError, Row
from fewdim.session import Point, Session, Tally
from fewdim.snapshots import Array, NotDataError, classes_of, decode, encode, little_endian

log = logging.getLogger("fewdim")

SHARE = 0.01  # of the time of a run that snapshots may take
LARGE = 2**16  # bytes of an array that are not looked at one by one
PATIENCE = 0.1  # seconds that a value of an unfinished query may wait for its commit

Numbered = dict[int, tuple[int, Array]]  # by identity: the number under which an array is stored, and the array


def mark(query: Query) -> bytes:
    """A checksum of what a query asks."""
    digest = blake2b(_content(query.origin), digest_size=8)
    for offset in query.offsets:
        if isinstance(offset, Along):
            u = offset.direction
            digest.update(b"%a " % float(offset.scale))
            digest.update(b"%a%a;" % (u.law, u.key) if isinstance(u, Direction) else _content(u))
        else:
            digest.update(b";" if offset is None else _content(offset))
    return digest.digest()


def _content(array: Vector) -> bytes:
    """The bytes of an array; of a large one the sum of its words, which costs one pass over memory."""
    if array.nbytes <= LARGE:
        return little_endian(array)
    words = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return int(words.sum(dtype=np.uint64)).to_bytes(8, "little")


def differences(held: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The first thing in which two descriptions of a run differ, in words; empty when they agree."""
    for name, now in wanted.items():
        before = held.get(name)
        if name == "version" and str(before).split(".")[:2] == now.split(".")[:2]:
            continue
        if name == "settings" and isinstance(before, dict):
            for setting in sorted({*before, *now}):
                if before.get(setting) != now.get(setting):
                    return f"the setting {setting} was {before.get(setting)!r} and is {now.get(setting)!r} here"
        elif before != now:
            return f"{NAMES.get(name, name)} was {before!r} and is {now!r} here"
    return ""


NAMES = {
    "version": "the version of fewdim",
    "problem": "the problem",
    "args": "args (by checksum)",
    "method": "the method",
    "shape": "the shape of x0",
    "dtype": "the kind of numbers of x0",
    "x0": "x0 (by checksum)",
    "key": "the seed (rng)",
}


def restored(ledger: Ledger, fresh: Session[Any], nfev: int) -> tuple[Session[Any], Bookmark, Numbered] | None:
    """The session of the latest snapshot, if there is a good one within the first nfev evaluations."""
    arrays: dict[int, Array] = {}

    def fetch(number: int) -> Array:
        if number not in arrays:
            arrays[number] = ledger.vector(number)
        return arrays[number]

    try:
        found = ledger.snapshot()
        if found is None or found[0] > nfev:
            return None
        state, tally, bookmark = decode(found[1], fetch, classes_of(type(fresh.state)))
        session = Session(fresh.method, state=state, tally=Tally(*tally))
    except (JournalError, NotDataError, KeyError, TypeError, ValueError) as error:
        log.warning("the snapshot cannot be used, the values are replayed instead: %s", error)
        return None
    return session, Bookmark(*bookmark), {id(array): (number, array) for number, array in arrays.items()}


class Recording:
    """One call of `minimize` with a journal."""

    def __init__(self, ledger: Ledger, *, snapshot_limit: int, notes: dict[str, Any]) -> None:
        self.ledger, self.limit = ledger, snapshot_limit
        meta = ledger.meta()
        self.description: dict[str, Any] | None = meta.get("run")
        self.notes = {**meta.get("notes", {}), **notes}
        self.rows = {row.id: row for row in ledger.rows()}
        if self.description is None and self.rows:
            raise ledger.damaged("what was run is not noted in it")
        self.told = next(n for n in range(len(self.rows) + 1) if n not in self.rows)  # the first n are all there
        self.number = -1
        self.query: Query | None = None
        self.mark = b""
        self.stored: Numbered = {}
        self.classes: dict[str, type] | None = None
        self.opened = self.committed = time.monotonic()
        self.spent = 0.0

    def begin(self, description: dict[str, Any], x0: Vector) -> None:
        """Note what is run, or check that it is what was run before."""
        ledger = self.ledger
        ledger.begin()
        if self.description is None:
            ledger.note("run", description)
            ledger.put_vector(0, x0)
        else:
            wanted = {name: item for name, item in description.items() if name not in ("width", "created")}
            if found := differences(self.description, wanted):
                raise JournalError(
                    f"journal {ledger.path} is of another run: {found}.  Give a new file, or the arguments of that run."
                )
        ledger.note("notes", self.notes)
        ledger.forget("closed")
        ledger.commit()

    def resume(self, fresh: Session[Any]) -> tuple[Session[Any], Bookmark | None]:
        """The session as far as the latest snapshot takes it; the fresh one when there is none."""
        try:
            self.classes = classes_of(type(fresh.state))
        except NotDataError as error:
            log.info("no snapshots are kept: %s", error)
        found = restored(self.ledger, fresh, self.told)
        if found is None:
            self.ledger.begin()
            self.ledger.drop_snapshot()
            return fresh, None
        session, bookmark, self.stored = found
        self.number = self.rows[session.nfev - 1].query
        return session, bookmark

    def values(self, nfev: int) -> tuple[list[float], str]:
        """The first nfev values, and the last failure among them."""
        rows = [self.rows[n] for n in range(nfev)]
        return [row.fun for row in rows], next((row.failure for row in reversed(rows) if row.failure), "")

    def around(self, source: Arrivals, raising: bool) -> Arrivals:
        """Values from the file where it has them, from `source` where not; those are committed before they are used.

        A failure that ends the run (at x0, or with `raising`) is not recorded: running again tries that point again.
        """

        def evaluate(points: list[Point]) -> Iterator[tuple[int, Value]]:
            new = []
            for position, point in enumerate(points):
                row = self.rows.get(point.id)
                if row is None:
                    new.append(position)
                    continue
                self._check(row, point)
                yield position, Value(row.fun, row.failure, None, row.seconds)
            left = len(new)
            for j, value in source([points[position] for position in new]) if new else ():
                point, left = points[new[j]], left - 1
                if not (math.isnan(value.fun) and (raising or point.id == 0)):
                    self._record(point, value)
                if left == 0 or time.monotonic() - self.committed > PATIENCE:
                    self.ledger.commit()
                    self.committed = time.monotonic()
                yield new[j], value

        return evaluate

    def _look(self, query: Query) -> None:
        """Number and mark the query at hand."""
        if query is not self.query:
            self.query, self.mark, self.number = query, mark(query), self.number + 1

    def _check(self, row: Row, point: Point) -> None:
        self._look(point.query)
        if row.mark != self.mark:
            raise JournalError(
                f"journal {self.ledger.path} does not fit this run: the point of evaluation {point.id} is not the one "
                "that was recorded.  The method, or the arithmetic of this machine, has changed since."
            )

    def _record(self, point: Point, value: Value) -> None:
        self._look(point.query)
        self.ledger.append(Row(point.id, self.number, self.mark, value.fun, value.failure, value.seconds))

    def keep(self, session: Session[Any], bookmark: Bookmark) -> None:
        """Snapshot the state at a step boundary, unless snapshots took more than their share of the time so far.

        It is committed with the next values: losing it costs nothing but a longer replay.
        """
        start = time.monotonic()
        if self.classes is None or session.nfev <= self.told or self.spent > SHARE * (start - self.opened):
            return
        arrays: Numbered = {}
        numbers = iter(range(1 + max((number for number, _ in self.stored.values()), default=0), 2**62))

        def store(array: Array) -> int:
            if id(array) not in arrays:
                arrays[id(array)] = self.stored.get(id(array)) or (next(numbers), array)
            return arrays[id(array)][0]

        try:
            content = encode((session.state, tuple(session.tally), tuple(bookmark)), store, self.classes)
        except NotDataError as error:
            log.info("no snapshots are kept: %s", error)
            self.classes = None
            return
        if sum(array.nbytes for _, array in arrays.values()) > self.limit:
            return
        self.ledger.begin()
        # first make room, so that the file does not grow by what it is about to lose
        self.ledger.drop_vectors([number for name, (number, _) in self.stored.items() if name not in arrays])
        for number, array in (item for name, item in arrays.items() if name not in self.stored):
            self.ledger.put_vector(number, array)
        self.ledger.put_snapshot(session.nfev, content)
        self.stored = arrays
        self.spent += time.monotonic() - start
