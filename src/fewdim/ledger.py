"""The file of a journal: an SQLite database whose every row is sealed by a checksum.

    meta      "run": what was run, JSON;  "closed": how many values there are, written when a run ends in good order
    value     one row an evaluation: its number, the number and a checksum of its query, the value or the failure
    vector    arrays, raw little-endian; number 0 is x0, the others belong to the snapshot
    snapshot  the latest state, JSON

What is committed survives kill -9: the operating system has it.  A row that was damaged fails its seal, a row that was
lost leaves a gap or disagrees with "closed", and damage to the database's own structure is found by SQLite when the
file is opened.
"""

from __future__ import annotations

import functools
import itertools
import json
import operator
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fewdim.rows import JournalError, Row, seal
from fewdim.snapshots import Array, little_endian

FORMAT = 1  # of what the tables hold
APPLICATION = 0x66647331  # marks the file as ours: "fds1"
MANY = 4000  # rows that one statement of SQLite takes, by its limit of variables
SCHEMA = {
    "meta": "id INTEGER PRIMARY KEY, name TEXT, content TEXT, seal BLOB",
    "value": "id INTEGER PRIMARY KEY, query INTEGER, mark BLOB, value BLOB, failure TEXT, seconds REAL, seal BLOB",
    "vector": "id INTEGER PRIMARY KEY, dtype TEXT, shape TEXT, data BLOB, seal BLOB",
    "snapshot": "id INTEGER PRIMARY KEY, content TEXT, seal BLOB",
}


class Ledger:
    """One open journal file; a writer holds its lock until it is closed, and the lock ends with the process.

    The lock is that of a second, empty database beside the file: readers can look at a journal that is being written,
    and no child process inherits it.
    """

    def __init__(self, path: Path, *, write: bool, synchronous: str = "normal") -> None:
        self.path, self.write = path, write
        self.lock: sqlite3.Connection | None = None
        self.waiting: list[tuple[Any, ...]] = []  # rows that the next commit writes
        self.database: sqlite3.Connection
        try:
            with self._explained("opened"):
                if write:
                    self._take_lock()
                    if not path.exists():
                        self._create("FULL" if synchronous == "full" else "OFF")
                self._connect()
                self._prepare(synchronous)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------------------------------------------ opening
    def _take_lock(self) -> None:
        self.lock = sqlite3.connect(f"{self.path}-lock", isolation_level=None, timeout=0)
        try:
            self.lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise JournalError(f"journal {self.path} is in use by another run; wait for it to end.") from None
            raise

    def _create(self, synchronous: str) -> None:
        """Make the file whole under another name: one that is there but empty has lost what it held."""
        new = Path(f"{self.path}-new")
        new.unlink(missing_ok=True)
        database = sqlite3.connect(new, isolation_level=None)
        database.execute(f"PRAGMA synchronous={synchronous}")
        database.execute("BEGIN")
        database.execute(f"PRAGMA application_id={APPLICATION}")
        for table, columns in SCHEMA.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
        database.execute("COMMIT")
        database.execute("PRAGMA journal_mode=WAL")
        database.close()
        new.replace(self.path)

    def _connect(self) -> None:
        """Readers open for writing too, if they may: what a killed run left behind has to be put in order first."""
        for mode in ("mode=rw",) if self.write else ("mode=rw", "mode=ro", "mode=ro&immutable=1"):
            address = f"{self.path.absolute().as_uri()}?{mode}"
            self.database = sqlite3.connect(address, uri=True, isolation_level=None, timeout=5)
            try:
                self.database.execute("SELECT count(*) FROM sqlite_master")
                break
            except sqlite3.OperationalError:
                left = os.path.exists(f"{self.path}-wal")  # then a part of it is there, and may be being written
                if self.write or "immutable" in mode or (mode == "mode=ro" and left):
                    raise
                self.database.close()

    def _prepare(self, synchronous: str) -> None:
        run = self.database.execute
        run("PRAGMA cell_size_check=ON")
        if run("PRAGMA page_count").fetchone()[0] == 0:
            raise self.damaged("the file is empty; remove it to start anew")
        if run("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise JournalError(f"{self.path} is not a journal of fewdim, or its header is damaged.")
        tables = dict(run("SELECT name, sql FROM sqlite_master"))
        for table, columns in SCHEMA.items():
            if tables.pop(table, None) != f"CREATE TABLE {table} ({columns})":
                raise self.damaged(f"the table {table} is not as it should be")
        found = " ".join(run("PRAGMA quick_check(1)").fetchone()[0].split())
        if found != "ok" or tables:
            raise self.damaged(found if found != "ok" else f"unknown tables {', '.join(tables)}")
        if not self.write:
            run("PRAGMA query_only=ON")
            run("BEGIN")  # all that is read is of one moment
        else:
            run("PRAGMA journal_mode=WAL")
            run(f"PRAGMA synchronous={synchronous}")
            run("PRAGMA journal_size_limit=4194304")  # a large snapshot must not leave a large log behind

    # ------------------------------------------------------------------------------------------------------ reading
    def meta(self) -> dict[str, Any]:
        """What is noted about the run, by name."""
        found = {}
        for id, name, content, check in self._select("meta"):
            self._check(check, f"the entry {name!r}", id, name, content)
            found[name] = json.loads(content)
        if (format := found.get("run", {}).get("format", FORMAT)) != FORMAT:
            raise JournalError(f"journal {self.path} has format {format}; this version of fewdim reads {FORMAT}.")
        return found

    def rows(self) -> list[Row]:
        """All recorded evaluations by number (those below 0 confirmed an answer), verified."""
        rows = []
        for *columns, check in self._select("value", "ORDER BY id"):
            self._check(check, f"evaluation {columns[0]}", *columns)
            rows.append(Row.of(tuple(columns)))
        closed, there = self.meta().get("closed"), self._sum()
        if closed is not None and closed != there:
            raise self.damaged(f"{closed['values']} evaluations were recorded and {there['values']} are found")
        told = [row for row in rows if row.id >= 0]
        for n, row in enumerate(told):
            if row.id != n and row.query != told[-1].query:  # only the last query may be in part
                raise self.damaged(f"evaluation {n} is missing")
        return rows

    def vector(self, id: int) -> Array:
        """A stored array."""
        for found, dtype, shape, data, check in self._select("vector", f"WHERE id={int(id)}"):
            self._check(check, f"vector {id}", found, dtype, shape, data)
            array: Array = np.frombuffer(data, dtype=dtype).reshape(json.loads(shape))
            return array.astype(array.dtype.newbyteorder("="))  # a copy of its own
        raise self.damaged(f"vector {id} is missing")

    def snapshot(self) -> tuple[int, Any] | None:
        """The number of evaluations before the latest snapshot and its content."""
        for id, content, check in self._select("snapshot"):
            self._check(check, "the snapshot", id, content)
            return id, json.loads(content)
        return None

    def _sum(self) -> dict[str, Any]:
        """How many values there are, and the exclusive or of their seals."""
        seals = [int.from_bytes(check, "little") for (check,) in self._select("value", columns="seal")]
        return {"values": len(seals), "total": f"{functools.reduce(operator.xor, seals, 0):016x}"}

    def _select(self, table: str, which: str = "", columns: str = "*") -> list[Any]:
        with self._explained("read"):
            return self.database.execute(f"SELECT {columns} FROM {table} {which}").fetchall()

    def _check(self, check: Any, what: str, *parts: Any) -> None:
        if check != seal(*parts):
            raise self.damaged(f"{what} does not fit its checksum")

    def damaged(self, what: str) -> JournalError:
        return JournalError(f"journal {self.path} is damaged: {what}.")

    # ------------------------------------------------------------------------------------------------------ writing
    def begin(self) -> None:
        """Start a transaction unless one is open."""
        if not self.database.in_transaction:
            with self._explained("written"):
                self.database.execute("BEGIN IMMEDIATE")

    def append(self, row: Row) -> None:
        """Add an evaluation; it is in the file after `commit`."""
        columns = row.columns()
        self.waiting.append((*columns, seal(*columns)))

    def commit(self) -> None:
        """Write what was added: values are one statement, since each costs more than what it writes."""
        rows, self.waiting = self.waiting, []
        try:
            if len(rows) > MANY:
                self.begin()
            for lo in range(0, len(rows), MANY):
                chunk = rows[lo : lo + MANY]
                marks = ",".join(["(?,?,?,?,?,?,?)"] * len(chunk))
                self.database.execute(f"INSERT INTO value VALUES {marks}", list(itertools.chain(*chunk)))
            if self.database.in_transaction:
                self.database.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._error("written", error) from error

    def note(self, name: str, content: Any) -> None:
        """Put an entry into `meta`, in place of an older one of that name."""
        self.forget(name)
        text = json.dumps(content)
        with self._explained("written"):
            id = self.database.execute("SELECT coalesce(max(id), 0) + 1 FROM meta").fetchone()[0]
            self.database.execute("INSERT INTO meta VALUES (?, ?, ?, ?)", (id, name, text, seal(id, name, text)))

    def forget(self, name: str) -> None:
        with self._explained("written"):
            self.database.execute("DELETE FROM meta WHERE name=?", (name,))

    def put_vector(self, id: int, array: Array) -> None:
        dtype, shape, data = array.dtype.newbyteorder("<").str, json.dumps(array.shape), little_endian(array)
        check = seal(id, dtype, shape, data)
        with self._explained("written"):
            self.database.execute("INSERT INTO vector VALUES (?, ?, ?, ?, ?)", (id, dtype, shape, data, check))

    def drop_vectors(self, ids: list[int]) -> None:
        with self._explained("written"):
            self.database.executemany("DELETE FROM vector WHERE id=?", [(id,) for id in ids])

    def drop_snapshot(self) -> None:
        """Forget the snapshot and its vectors."""
        with self._explained("written"):
            self.database.execute("DELETE FROM vector WHERE id <> 0")
            self.database.execute("DELETE FROM snapshot")

    def put_snapshot(self, nfev: int, content: Any) -> None:
        """Replace the snapshot."""
        text = json.dumps(content)
        with self._explained("written"):
            self.database.execute("DELETE FROM snapshot")
            self.database.execute("INSERT INTO snapshot VALUES (?, ?, ?)", (nfev, text, seal(nfev, text)))

    def close(self, in_order: bool = False) -> None:
        """Let go; `in_order` commits first and notes how much there is."""
        try:
            if in_order:
                self.commit()
                self.begin()
                self.note("closed", self._sum())
                self.commit()
        finally:
            if hasattr(self, "database"):
                self.database.close()
            if self.lock is not None:
                self.lock.close()

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Errors of SQLite as errors of a journal, in words."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: a text that is damaged
            raise self._error(what, error) from error

    def _error(self, what: str, error: Exception) -> JournalError:
        reason, folder = str(error), self.path.absolute().parent
        if "unable to open" in reason:
            why = "refused it" if os.access(folder, os.W_OK) else "is read-only" if folder.is_dir() else "is not there"
            reason += f"; the folder {folder} {why}"
        kept = "; the evaluations committed so far are kept" if what == "written" else ""
        return JournalError(f"journal {self.path} cannot be {what}: {reason}{kept}.")
