"""Faults: kill -9, damaged files, full disks, clocks that jump.  A run goes on exactly, or says what is wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewdim
from fewdim import Journal, JournalError, minimize
from fewdim.directions import Vector
from fewdim.ledger import Ledger

X0 = np.linspace(-1, 1, 12)
SCRIPTS = Path(__file__).parent / "scripts"


class Bowl:
    """Counts its calls; the 29th, 58th, ... call fails, so that a repeated evaluation changes the run."""

    label = "bowl"

    def __init__(self, calls: int = 0) -> None:
        self.calls = calls

    def __call__(self, x: Vector) -> float:
        self.calls += 1
        if self.calls % 29 == 0:
            return random.Random(self.calls).choice([float("nan"), float("inf"), -float("inf")])
        return float(np.sum(np.arange(1, x.size + 1) * (x - 0.3) ** 2))


def run(journal: Path | None, calls: int = 0, maxfev: int = 120, method: Any = "auto") -> tuple[Any, int]:
    fun = Bowl(calls)
    return minimize(fun, X0, method=method, rng=3, maxfev=maxfev, journal=journal), fun.calls


def recorded(path: Path) -> int:
    ledger = Ledger(path, write=False)
    try:
        return len(ledger.rows())
    finally:
        ledger.close()


def assert_same(a: Any, b: Any) -> None:
    assert a.x.tobytes() == b.x.tobytes()
    assert (a.fun, a.nfev, a.nit, a.nfail, a.message) == (b.fun, b.nfev, b.nit, b.nfail, b.message)
    assert a.history.nfev.tobytes() == b.history.nfev.tobytes()
    assert a.history.fun.tobytes() == b.history.fun.tobytes()


# ---------------------------------------------------------------------------------------------------------------- kills
def kills(count: int, seed: int) -> dict[str, int]:
    script = [sys.executable, str(SCRIPTS / "kills.py"), str(count), str(seed)]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_of_20_processes() -> None:
    found = kills(20, 1)
    assert found["inside"] >= 5  # the others fell before the first value or after the last
    assert (found["equal"], found["repeated"]) == (20, 0)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_of_2000_processes() -> None:
    found = kills(2000, 2)
    print(found)
    assert found["inside"] >= 500
    assert (found["equal"], found["repeated"]) == (2000, 0)


@pytest.mark.parametrize("method", [fewdim.RandomPursuit(), fewdim.RandomGradient(batch=5), fewdim.Accelerated()])
def test_180_cut_points(method: Any, tmp_path: Path) -> None:
    """What a kill leaves behind at an evaluation is what the files hold then: 60 such images for each method."""
    expected, total = run(None, method=method, maxfev=150)
    cuts = sorted(random.Random(4).sample(range(2, 150), 60))
    source = tmp_path / "run.db"

    class Copying(Bowl):
        def __call__(self, x: Vector) -> float:
            if self.calls + 1 in cuts:
                folder = tmp_path / str(self.calls + 1)
                folder.mkdir()
                for name in ("run.db", "run.db-wal"):
                    shutil.copy(tmp_path / name, folder / name)
            return super().__call__(x)

    minimize(Copying(), X0, method=method, rng=3, maxfev=150, journal=source)
    for cut in cuts:
        path = tmp_path / str(cut) / "run.db"
        done = recorded(path)
        assert cut - 28 <= done <= cut - 1  # at most the query at hand is missing; the largest asks for 28 values
        result, calls = run(path, calls=done, method=method, maxfev=150)
        assert_same(result, expected)
        assert calls == total


# ---------------------------------------------------------------------------------------------------------------- files
@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A cleanly closed journal of 60 evaluations."""
    run(tmp_path / "closed.db", maxfev=60)
    assert sorted(os.listdir(tmp_path)) == ["closed.db", "closed.db-lock"]
    return tmp_path / "closed.db"


def detected_or_harmless(path: Path, expected: Any) -> bool:
    """Run on from a damaged file: True when it was refused; anything but the exact run is an error."""
    try:
        result, calls = run(path, calls=60, maxfev=90)
    except JournalError as error:
        return str(path) in str(error)
    assert_same(result, expected)
    assert calls == 90  # all 60 were found
    return False


def test_500_flipped_bytes(closed: Path) -> None:
    expected, _ = run(None, maxfev=90)
    content = closed.read_bytes()
    chance = random.Random(5)
    used = [i for i, byte in enumerate(content) if byte]
    places = [chance.randrange(len(content)) for _ in range(250)] + chance.sample(used, 250)
    refused = 0
    for number, place in enumerate(places):
        path = closed.with_name(f"flip{number}.db")
        damaged = bytearray(content)
        damaged[place] ^= chance.randrange(1, 256)
        path.write_bytes(damaged)
        refused += detected_or_harmless(path, expected)
    assert 100 <= refused < 500  # most bytes in use matter, and some bytes are not in use


def test_torn_files(closed: Path) -> None:
    expected, _ = run(None, maxfev=90)
    content = closed.read_bytes()
    chance = random.Random(6)
    refused = 0
    for number, length in enumerate([0, 1, 100, 4096, len(content) - 1, *chance.sample(range(len(content)), 40)]):
        path = closed.with_name(f"torn{number}.db")
        path.write_bytes(content[:length])
        refused += detected_or_harmless(path, expected)
    assert 30 <= refused < 45  # the end of the file is a snapshot, without which the values are replayed


def test_torn_logs(tmp_path: Path) -> None:
    """A log that lost its end, or ends in garbage, is a run that was cut earlier: exact, with what is left."""
    expected, total = run(None)
    source, image = tmp_path / "run.db", tmp_path / "image.db"

    class Copying(Bowl):
        def __call__(self, x: Vector) -> float:
            if self.calls == 100:
                shutil.copy(source, image)
                shutil.copy(f"{source}-wal", f"{image}-wal")
            return super().__call__(x)

    minimize(Copying(), X0, rng=3, maxfev=120, journal=source)
    log = Path(f"{image}-wal").read_bytes()
    chance = random.Random(7)
    for number in range(30):
        path = tmp_path / f"torn{number}.db"
        shutil.copy(image, path)
        length = chance.randrange(len(log))
        Path(f"{path}-wal").write_bytes(log[:length] + chance.randbytes(500 * (number % 2)))
        done = recorded(path)
        result, calls = run(path, calls=done)
        assert_same(result, expected)
        assert calls == total


# ------------------------------------------------------------------------------------------------------------- the rest
@pytest.mark.skipif(os.name != "posix", reason="needs RLIMIT_FSIZE")
def test_a_full_disk(tmp_path: Path) -> None:
    script = (
        "import resource, sys, pathlib\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "import test_faults, fewdim\n"
        "test_faults.run(None)  # loads what it needs\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "try: test_faults.run(pathlib.Path(sys.argv[1]), maxfev=2000, method='random-pursuit')\n"
        "except fewdim.JournalError as error: print(error, error.partial_result.nfev, sep='\\n')\n"
    )
    path = tmp_path / "run.db"
    arguments = [sys.executable, "-c", script, str(path), str(Path(__file__).parent)]
    done = subprocess.run(arguments, capture_output=True, text=True)
    message, nfev = done.stdout.splitlines()
    assert "cannot be written: " in message
    assert "the evaluations committed so far are kept" in message
    kept = recorded(path)
    assert 100 < kept <= int(nfev) + 10
    expected, total = run(None, maxfev=2000, method="random-pursuit")
    result, calls = run(path, calls=kept, maxfev=2000, method="random-pursuit")
    assert_same(result, expected)
    assert calls == total


def test_clocks_that_jump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = run(None)
    chance = random.Random(8)
    monkeypatch.setattr(time, "time", lambda: chance.uniform(-1e9, 1e10))
    monkeypatch.setattr(time, "monotonic", lambda: chance.uniform(0, 1e7))
    for maxfev in (30, 60, 61, 120):
        result, _ = run(tmp_path / "run.db", calls=recorded(tmp_path / "run.db") if maxfev > 30 else 0, maxfev=maxfev)
    assert_same(result, expected)


def test_an_interrupt_keeps_what_was_evaluated(tmp_path: Path) -> None:
    expected, _ = run(None)

    class Interrupted(Bowl):
        def __call__(self, x: Vector) -> float:
            if self.calls == 70:
                raise KeyboardInterrupt
            return super().__call__(x)

    result = minimize(Interrupted(), X0, rng=3, maxfev=120, journal=tmp_path / "run.db")
    assert (result.reason, Journal(tmp_path / "run.db").nfev) == ("interrupted", 70)
    assert_same(run(tmp_path / "run.db", calls=70)[0], expected)


def test_something_that_is_no_number_ends_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    expected, _ = run(None)

    class Junk(Bowl):
        def __call__(self, x: Vector) -> float:
            return "junk" if self.calls == 70 else super().__call__(x)  # type: ignore[return-value]

    with pytest.raises(TypeError, match="must be one real number"):
        minimize(Junk(), X0, rng=3, maxfev=120, journal=tmp_path / "run.db")
    assert_same(run(tmp_path / "run.db", calls=70)[0], expected)


def test_reading_before_there_is_anything(tmp_path: Path) -> None:
    with Journal(tmp_path / "run.db").recording():
        journal = Journal(tmp_path / "run.db")
        assert (journal.nfev, journal.failures, journal.history.fun.size) == (0, [], 0)
        with pytest.raises(JournalError, match="holds no value yet"):
            _ = journal.best
        with pytest.raises(JournalError, match="holds no run yet"):
            journal.replay()
