"""The journal of a run: a durable record of every value, from which the run goes on after any interruption."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from fewdim.box import Box
from fewdim.directions import Vector
from fewdim.ledger import FORMAT, Ledger
from fewdim.loop import History
from fewdim.methods import METHODS, bounded, fitted
from fewdim.methods.settings import check_choice, check_count, settings
from fewdim.recording import Recording, mark, restored
from fewdim.rows import JournalError, Row
from fewdim.session import Best, Session
from fewdim.snapshots import little_endian

SNAPSHOT_LIMIT = 2**24


class Failure(NamedTuple):
    """An evaluation that gave no value: its number and what it said."""

    nfev: int
    message: str


class Journal:
    """The journal in a file, for `minimize(journal=...)` to write and for anybody to read.

    Parameters
    ----------
    path : path
        An SQLite file; made when it is not there.
    synchronous : "normal" or "full"
        What a commit survives: "normal" kill -9 of the process, "full" also a power loss, at the price of waiting for
        the disk at each query (`benchmarks/journal.py` measures it: milliseconds on most disks against 0.05).
    label : str, optional
        The name of the problem; default the name of the function.  A journal of another problem is refused.
    notes : mapping, optional
        JSON to keep beside the run for those who read it, such as the command line; it decides nothing.
    snapshot_limit : int
        States of up to this many bytes are kept at step boundaries, as often as 1 % of the time allows; reopening then
        costs the steps since the last one.  Larger states are found again by replaying all values, which evaluates
        nothing either.

    Reading: `nfev`, `values`, `seconds`, `history`, `best`, `failures`, `description`, `notes` and `replay()`.  A
    journal may be read while it is being written.

    >>> import tempfile, numpy as np
    >>> from fewdim import minimize
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = folder + "/run.db"
    ...     first = minimize(lambda x: x @ x, np.ones(10), maxfev=20, rng=0, journal=path)
    ...     longer = minimize(lambda x: x @ x, np.ones(10), maxfev=50, rng=0, journal=path)  # 30 evaluations
    ...     Journal(path).nfev, Journal(path).best.fun == longer.fun
    (50, True)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["normal", "full"] = "normal",
        label: str | None = None,
        notes: Mapping[str, Any] | None = None,
        snapshot_limit: int = SNAPSHOT_LIMIT,
    ) -> None:
        check_choice(self, ("normal", "full"), synchronous=synchronous)
        check_count(self, snapshot_limit=snapshot_limit + 1)
        self.path, self.synchronous, self.label = Path(path), synchronous, label
        self.snapshot_limit, self._notes = snapshot_limit, dict(notes or {})

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r})"

    # ------------------------------------------------------------------------------------------------------ reading
    @property
    def description(self) -> dict[str, Any]:
        """What was run: problem, method, settings, shape, key, version."""
        return self._read()[0]

    @property
    def notes(self) -> dict[str, Any]:
        """What is kept beside the run: the environment it ran in, and what was given as `notes`."""
        with self._opened() as (ledger, _, _):
            return dict(ledger.meta().get("notes", {}))

    @property
    def nfev(self) -> int:
        """Evaluations recorded, the last query's in part if the run was cut there."""
        return len(self._read()[1])

    @property
    def values(self) -> NDArray[np.float64]:
        """All values in the order of their numbers; nan where an evaluation failed."""
        return np.array([row.fun for row in self._read()[1]])

    @property
    def seconds(self) -> NDArray[np.float64]:
        """How long each evaluation took; nan where it is not known."""
        return np.array([row.seconds for row in self._read()[1]])

    @property
    def history(self) -> History:
        """The best value against evaluations: each improvement, and where the record ends."""
        values = self.values
        lows = np.fmin.accumulate(values) if values.size else values
        steps = np.flatnonzero(np.diff(lows, prepend=math.inf) < 0)
        ends = [*steps, values.size - 1] if values.size else []
        return History(np.array(ends, dtype=np.int64) + 1, lows[ends])

    @property
    def failures(self) -> list[Failure]:
        """The evaluations that gave no value."""
        return [Failure(row.id + 1, row.failure) for row in self._read()[1] if math.isnan(row.fun)]

    @property
    def best(self) -> Best:
        """The lowest value recorded, and where."""
        values = self.values
        if values.size == 0:
            raise JournalError(f"journal {self.path} holds no value yet.")
        best = self.replay(int(np.nanargmin(values)) + 1).best
        return best._replace(x=self.inside(best.x))

    def inside(self, x: Vector) -> Vector:
        """A point of a replayed session as the function saw it: with bounds, methods work on other variables."""
        bounds = self.description.get("bounds")
        return x if bounds is None else Box.read(bounds, x.shape).inside(x)

    def replay(
        self, nfev: int | None = None, *, method: Any = None, watch: Callable[..., None] | None = None
    ) -> Session[Any]:
        """The session after the first `nfev` evaluations (default all), told from the file; nothing is evaluated.

        With bounds its points are those of the method; `inside` gives the function's.
        `method` is needed for methods of one's own, whose settings a file does not bring back.  `watch(state, query,
        values, session)` is called after each query, from the first one on, with the state that asked it.
        """
        with self._opened() as (ledger, description, rows):
            if not description:
                raise JournalError(f"journal {self.path} holds no run yet.")
            told = [row for n, row in enumerate(rows) if row.id == n]
            nfev = len(told) if nfev is None else nfev
            if not 0 <= nfev <= len(told):
                raise ValueError(f"Journal.replay(nfev=...) must lie in [0, {len(told)}]; got {nfev}.")
            x0 = ledger.vector(0).reshape(description["shape"])
            bounds = description.get("bounds")
            box = None if bounds is None else Box.read(bounds, x0.shape)
            session: Session[Any] = Session(bounded(_rebuilt(description, method), box), x0, rng=description["key"][0])
            if watch is None and (found := restored(ledger, session, nfev)):
                session = found[0]
        while session.nfev < nfev:
            state, points = session.state, session.ask(nfev - session.nfev)
            check, values = mark(points[0].query), np.full(len(points[0].query), math.nan)
            for point in points:
                if told[point.id].mark != check:
                    raise JournalError(f"journal {self.path}: replay asks for another point at evaluation {point.id}.")
                values[point.index] = told[point.id].fun
                session.tell(point.id, told[point.id].fun)
            if watch is not None:
                watch(state, points[0].query, values, session)
        return session

    def _read(self) -> tuple[dict[str, Any], list[Row]]:
        with self._opened() as (_, description, rows):
            return description, rows

    @contextmanager
    def _opened(self) -> Iterator[tuple[Ledger, dict[str, Any], list[Row]]]:
        if not self.path.exists():
            raise FileNotFoundError(f"there is no journal {self.path}.")
        ledger = Ledger(self.path, write=False)
        try:
            description, rows = ledger.meta().get("run"), ledger.rows()
            if description is None and rows:
                raise ledger.damaged("what was run is not noted in it")
            yield ledger, description or {}, [row for row in rows if row.id >= 0]
        finally:
            ledger.close()

    # ------------------------------------------------------------------------------------------------------ writing
    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """Open for a run: locked until the end, committed whatever ends it."""
        ledger = Ledger(self.path, write=True, synchronous=self.synchronous)
        in_order = False
        try:
            notes = {"environment": environment(), **self._notes}
            recording = Recording(ledger, snapshot_limit=self.snapshot_limit, notes=notes)
            in_order = True
            yield recording
        except JournalError:  # it is refused, or cannot be written: leave it as it is
            in_order = False
            raise
        finally:
            ledger.close(in_order)


def environment() -> dict[str, Any]:
    """Where a run takes place, as far as it can matter to its numbers."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    return {**versions, "system": system, "processors": os.cpu_count()}


def describe(
    journal: Journal,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    session: Session[Any],
    method: Any,
    width: int,
    box: Box | None = None,
) -> dict[str, Any]:
    """What identifies a run, as JSON."""
    from fewdim import __version__  # the package is complete by now

    x = session.state.x
    return {
        "format": FORMAT,
        "version": __version__,
        "problem": name_of(fun) if journal.label is None else journal.label,
        "args": _checksum(args) if args else None,
        "method": type(method).__name__,
        "settings": _settings(method),
        "shape": list(session.shape),
        "dtype": x.dtype.name,
        "bounds": None if box is None else box.data,
        "x0": _checksum(x),
        "key": list(session.state.key),
        "width": width,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _settings(method: Any) -> dict[str, Any]:
    """The settings of a method as JSON; none for one that does not keep what it was made from."""
    try:
        return {name: plain(item) for name, item in settings(method).items()}
    except AttributeError:
        return {}  # the marks of its queries still tell whether it is the same


def name_of(fun: Any) -> str:
    """The name of a function; of what is called in the end when it is wrapped, of its class when it is an object."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    return str(getattr(fun, "label", None) or getattr(fun, "__qualname__", None) or type(fun).__qualname__)


def plain(item: Any) -> Any:
    """A setting as JSON: what is not a number, a text or a list of such becomes a description."""
    if isinstance(item, np.generic):
        item = item.item()
    if item is None or isinstance(item, (bool, int, float, str)):
        return item
    if isinstance(item, (tuple, list)):
        return [plain(part) for part in item]
    if isinstance(item, np.ndarray):
        return {"array": _checksum(item)}
    if isinstance(item, Mapping):
        return {str(name): plain(part) for name, part in item.items()}
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {"of": type(item).__name__, **{name: plain(part) for name, part in settings(item).items()}}
    return {"of": name_of(item)}


def _checksum(item: Any) -> str:
    """A checksum of an array, or of anything by its plain form."""
    if isinstance(item, np.ndarray):
        head = f"{item.dtype.newbyteorder('<').str}{item.shape}".encode()
        return blake2b(head + little_endian(item), digest_size=8).hexdigest()
    return blake2b(repr(plain(item)).encode(), digest_size=8).hexdigest()


def _rebuilt(description: dict[str, Any], method: Any = None) -> Any:
    """The method of a journal from its settings, or the one given, fitted as it was."""
    known = {kind.__name__: kind for kind in METHODS.values()}
    held, name = description["settings"], description["method"]
    if method is not None:
        return fitted(method, description["width"], held.get("budget"))
    if name not in known or any(isinstance(item, dict) for item in held.values()):
        raise ValueError(f"Journal.replay(method=...) must be given for {name}: a file holds data, not methods.")
    return known[name](**held)
