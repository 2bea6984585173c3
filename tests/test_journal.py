"""The journal: exact resume, refusals that say why, reading, and what a file may hold."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewdim
from fewdim import Auto, Journal, JournalError, minimize
from fewdim.directions import Vector, gaussian

X0 = np.linspace(-1, 1, 12)
METHODS = [
    fewdim.RandomPursuit(),
    fewdim.RandomPursuit(trust=True, noise=1e-3),
    fewdim.RandomGradient(batch=4),
    fewdim.HeavyBall(),
    fewdim.Accelerated(directions="sphere"),
    fewdim.Cubic(),
    fewdim.LargeStep(),
    fewdim.LargeStep(inner=fewdim.Repeated(fewdim.RandomPursuit(noise=0), times=2, steps=5), inner_steps=2),
    fewdim.Repeated(fewdim.RandomGradient(), times=2, steps=3),
]


class Counted:
    """A function that counts its calls and fails now and then, by the point and not by the call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Vector) -> float:
        self.calls += 1
        if int(abs(x.sum()) * 1e7) % 11 == 3:
            raise ArithmeticError("no luck")
        return float(np.sum(np.arange(1, x.size + 1) * (x.ravel() - 0.3) ** 2))


def same(a: Any, b: Any) -> None:
    assert a.x.tobytes() == b.x.tobytes()
    assert a.x.dtype == b.x.dtype
    assert a.x.shape == b.x.shape
    for name in ("fun", "nfev", "nit", "nfail", "reason", "message"):
        assert a[name] == b[name], name
    np.testing.assert_array_equal(a.history.nfev, b.history.nfev)
    np.testing.assert_array_equal(a.history.fun, b.history.fun)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_run_in_pieces_is_the_run(method: Any, tmp_path: Path) -> None:
    fun, pieces = Counted(), Counted()
    whole = minimize(fun, X0, method=method, rng=5, maxfev=300)
    for maxfev in (1, 2, 3, 40, 41, 42, 43, 150, 300, 300):
        result = minimize(pieces, X0, method=method, rng=5, maxfev=maxfev, journal=tmp_path / "run.db")
    same(result, whole)
    confirmations = sum(row < 0 for row in ids(tmp_path / "run.db"))
    assert pieces.calls == len(ids(tmp_path / "run.db")) == whole.nfev + confirmations - (whole.noise > 0)


def ids(path: Path) -> list[int]:
    with sqlite3.connect(path) as database:
        return [row for (row,) in database.execute("SELECT id FROM value")]


@pytest.mark.parametrize("limit", [0, 2**24])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_kind_and_shape_come_back(kind: type, limit: int, tmp_path: Path) -> None:
    x0: Vector = X0.reshape(3, 4).astype(kind)
    journal = Journal(tmp_path / "run.db", snapshot_limit=limit)
    whole = minimize(Counted(), x0, rng=5, maxfev=200, method=Auto(budget=50))  # what the first part counts on
    for maxfev in (50, 100, 200):
        result = minimize(Counted(), x0, rng=5, maxfev=maxfev, journal=journal)
    same(result, whole)
    assert journal.best.x.tobytes() == whole.x.tobytes()
    assert journal.best.x.shape == (3, 4)


def test_reopening_replays_from_the_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**9))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))  # snapshots always have time
    monkeypatch.setattr("fewdim.recording.SHARE", 2.0)
    minimize(Counted(), X0, method="random-pursuit", rng=5, maxfev=300, tol=0, journal=tmp_path / "run.db")
    steps: list[int] = []
    step = fewdim.RandomPursuit.step

    def counted(self: Any, state: Any) -> Any:
        steps.append(state.k)
        return step(self, state)

    monkeypatch.setattr(fewdim.RandomPursuit, "step", counted)
    result = minimize(Counted(), X0, method="random-pursuit", rng=5, maxfev=303, tol=0, journal=tmp_path / "run.db")
    assert result.nfev == 303
    assert len(steps) <= 4  # of about a hundred


def test_entropy_is_kept(tmp_path: Path) -> None:
    first = minimize(Counted(), X0, maxfev=60, journal=tmp_path / "run.db")
    again = minimize(Counted(), X0, maxfev=60, journal=tmp_path / "run.db")
    same(first, again)


def other_function(x: Vector) -> float:
    return float(x @ x)


DIFFERENT: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
    ("the problem was 'Counted' and is 'other_function'", other_function, {}),
    ("the shape of x0 was", Counted(), {"x0": X0.reshape(3, 4)}),
    ("the kind of numbers of x0", Counted(), {"x0": X0.astype(np.float32)}),
    ("x0 (by checksum)", Counted(), {"x0": X0 + 1e-15}),
    ("the seed (rng) was [5] and is [6]", Counted(), {"rng": 6}),
    ("the method was 'Auto' and is 'HeavyBall'", Counted(), {"method": "heavy-ball"}),
    ("the setting memory was 256 and is 10", Counted(), {"options": {"memory": 10}}),
    ("the setting noise was 'auto' and is 0.5", Counted(), {"noise": 0.5}),
    ("args (by checksum) was None", Counted(), {"args": (1,)}),
]


@pytest.mark.parametrize(("message", "fun", "changes"), DIFFERENT, ids=[item[0] for item in DIFFERENT])
def test_another_run_is_refused(message: str, fun: Callable[..., Any], changes: dict[str, Any], tmp_path: Path) -> None:
    minimize(Counted(), X0, rng=5, maxfev=60, journal=tmp_path / "run.db")
    arguments = {"x0": X0, "rng": 5, "maxfev": 60, **changes}
    with pytest.raises(JournalError, match="is of another run") as caught:
        minimize(fun, journal=tmp_path / "run.db", **arguments)
    assert message in str(caught.value)
    assert Journal(tmp_path / "run.db").nfev == 60
    same(
        minimize(Counted(), X0, rng=5, maxfev=60, journal=tmp_path / "run.db"),
        minimize(Counted(), X0, rng=5, maxfev=60),
    )


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minimize(Counted(), X0, rng=5, maxfev=60, journal=tmp_path / "run.db")
    monkeypatch.setattr(fewdim, "__version__", "9.7.1")
    with pytest.raises(JournalError, match=r"the version of fewdim was '.*' and is '9\.7\.1' here"):
        minimize(Counted(), X0, rng=5, maxfev=60, journal=tmp_path / "run.db")


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("fewdim.journal.FORMAT", 2)
        minimize(Counted(), X0, rng=5, maxfev=60, journal=tmp_path / "run.db")
    with pytest.raises(JournalError, match="has format 2; this version of fewdim reads 1"):
        minimize(Counted(), X0, rng=5, maxfev=60, journal=tmp_path / "run.db")
    with pytest.raises(JournalError, match="has format 2"):
        _ = Journal(tmp_path / "run.db").values


def test_a_changed_trajectory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "run.db", snapshot_limit=0)
    minimize(Counted(), X0, method="random-pursuit", rng=5, maxfev=60, journal=journal)
    monkeypatch.setattr("fewdim.methods.random_pursuit.LAWS", {"signs": gaussian})
    with pytest.raises(JournalError, match="is not the one that was recorded"):
        minimize(Counted(), X0, method="random-pursuit", rng=5, maxfev=80, journal=journal)


def test_a_label_names_the_problem(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    minimize(lambda x: float(x @ x), X0, rng=5, maxfev=20, journal=Journal(path, label="sphere"))
    minimize(other_function, X0, rng=5, maxfev=30, journal=Journal(path, label="sphere"))
    assert Journal(path).description["problem"] == "sphere"
    with pytest.raises(JournalError, match="the problem was 'sphere'"):
        minimize(other_function, X0, rng=5, maxfev=30, journal=path)


def test_a_failure_that_ends_the_run_is_tried_again(tmp_path: Path) -> None:
    failing = True

    def fun(x: Vector) -> float:
        if failing and x[0] != X0[0]:
            raise OSError("the licence server is away")
        return float(x @ x)

    with pytest.raises(fewdim.EvaluationError, match="licence"):
        minimize(fun, X0, rng=5, maxfev=60, on_failure="raise", journal=tmp_path / "run.db")
    failing = False
    result = minimize(fun, X0, rng=5, maxfev=60, on_failure="raise", journal=tmp_path / "run.db")
    same(result, minimize(fun, X0, rng=5, maxfev=60))


def test_reading(tmp_path: Path) -> None:
    told: list[tuple[bytes, float]] = []

    def fun(x: Vector) -> float:
        value = Counted()(x)
        told.append((x.tobytes(), value))
        return value

    journal = Journal(tmp_path / "run.db", label="bowl")
    result = minimize(fun, X0, rng=5, maxfev=200, noise=0, journal=journal)  # in noise the last is kept apart
    assert journal.nfev == result.nfev == 200
    assert journal.best.fun == result.fun
    assert journal.best.x.tobytes() == result.x.tobytes()
    assert journal.description["method"] == "Auto"
    values = journal.values
    assert [value for value in values if not math.isnan(value)] == [value for _, value in told]
    assert [failure.message for failure in journal.failures] == ["ArithmeticError: no luck"] * result.nfail
    assert all(math.isnan(values[failure.nfev - 1]) for failure in journal.failures)
    history = journal.history
    assert history.fun[-1] == result.fun
    assert (np.diff(history.fun[:-1]) < 0).all()
    assert (journal.seconds > 0).all()
    for nfev in (0, 1, 77, 200):
        session = journal.replay(nfev)
        assert session.nfev == nfev
        if nfev:
            assert session.best.fun == np.nanmin(values[:nfev])
    with pytest.raises(ValueError, match=r"replay\(nfev=...\) must lie in \[0, 200\]; got 201"):
        journal.replay(201)


def test_reading_while_it_is_written(tmp_path: Path) -> None:
    seen = []

    def look(intermediate_result: Any) -> None:
        seen.append(Journal(tmp_path / "run.db").nfev == intermediate_result.nfev)

    minimize(Counted(), X0, method="random-pursuit", rng=5, maxfev=60, journal=tmp_path / "run.db", callback=look)
    assert len(seen) > 10
    assert all(seen)


def test_no_second_opener(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    script = (
        "import fewdim, numpy as np, sys\n"
        "try: fewdim.minimize(lambda x: float(x @ x), np.ones(3), journal=sys.argv[1])\n"
        "except fewdim.JournalError as error: print(error)\n"
    )
    said: list[str] = []

    def fun(x: Vector) -> float:
        if not said:
            with pytest.raises(JournalError, match="is in use by another run"):
                minimize(fun, X0, journal=path)
            said.append(subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True).stdout)
        return float(x @ x)

    minimize(fun, X0, rng=5, maxfev=20, journal=path)
    assert said == [f"journal {path} is in use by another run; wait for it to end.\n"]
    assert minimize(fun, X0, rng=5, maxfev=25, journal=path).nfev == 25  # free again


def test_places_that_cannot_hold_a_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"cannot be opened: .*the folder .*missing is not there"):
        minimize(Counted(), X0, journal=tmp_path / "missing" / "run.db")
    with pytest.raises(JournalError, match="cannot be opened"):
        minimize(Counted(), X0, journal=tmp_path)
    (tmp_path / "text.db").write_text("not a database, " * 100)
    with pytest.raises(JournalError, match="file is not a database"):
        minimize(Counted(), X0, journal=tmp_path / "text.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(JournalError, match="is damaged: the file is empty"):
        minimize(Counted(), X0, journal=tmp_path / "empty.db")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (a)").connection.close()
    with pytest.raises(JournalError, match="is not a journal of fewdim"):
        minimize(Counted(), X0, journal=tmp_path / "other.db")
    with pytest.raises(FileNotFoundError, match="there is no journal"):
        _ = Journal(tmp_path / "none.db").nfev


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_read_only_folder() -> None:
    folder = Path(tempfile.mkdtemp())  # where others than us may look, unlike in those of pytest
    minimize(Counted(), X0, rng=5, maxfev=40, journal=folder / "run.db")
    script = (
        "import os, sys\n"
        "import numpy as np, fewdim\n"
        "fewdim.minimize(lambda x: float(x @ x), np.ones(3), maxfev=20)  # loads what it needs\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "for name in ('new.db', 'run.db'):\n"
        "    try: fewdim.minimize(lambda x: float(x @ x), np.ones(3), journal=sys.argv[1] + '/' + name)\n"
        "    except fewdim.JournalError as error: print(error)\n"
        "print(fewdim.Journal(sys.argv[1] + '/run.db').nfev)\n"
    )
    folder.chmod(0o555)
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True)
    folder.chmod(0o755)
    shutil.rmtree(folder)
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stderr
    assert "new.db cannot be opened" in lines[0]
    assert "is read-only" in lines[0]
    assert "run.db cannot be opened" in lines[1]
    assert lines[2] == "40"
