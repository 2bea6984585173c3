"""The `fewdim` command: what it prints, keeps and exits with."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fewdim
from fewdim import METHODS, Journal
from fewdim.cli import main
from fewdim.cli.app import app

PROBLEM = """
import time
import numpy as np

calls = 0

def bowl(x):
    return float(((x - 1).ravel() ** 2 / (1 + np.arange(x.size))).sum())

def slow(x):
    time.sleep(0.02)
    return bowl(x)

def fragile(x):
    global calls
    calls += 1
    if calls > 20:
        raise RuntimeError("the mesh broke")
    return bowl(x)

def wrong(x):
    raise RuntimeError("never works")

number = 3
"""
SUBCOMMANDS = ("minimize", "dimension", "certify", "show", "replay", "report", "methods", "cite")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a problem in it, where the command runs."""
    (tmp_path / "problem.py").write_text(PROBLEM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "problem", raising=False)
    return tmp_path


def fewdim_command(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fewdim", *words], capture_output=True, text=True, **more)


def ending(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command, run here."""
    with pytest.raises(SystemExit) as stop:
        main(words)
    out, err = capsys.readouterr()
    assert isinstance(stop.value.code, int)
    return stop.value.code, out, err


# --------------------------------------------------------------------------------------------------------------- help
@pytest.mark.parametrize("words", [(), *((name,) for name in SUBCOMMANDS)], ids=" ".join)
def test_help_fits_a_screen(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_help_names_the_units_and_the_exit_codes() -> None:
    text = " ".join(CliRunner().invoke(app, ["minimize", "--help"]).output.split())
    for words in ("Most evaluations", "Most seconds", "in units of f", "Seconds an evaluation may take"):
        assert words in text
    whole = " ".join(CliRunner().invoke(app, ["--help"]).output.split())
    assert re.search(r"Exit codes: 0 done; 1 .* 2 wrong usage; 3 .* 4 .* 130 Ctrl-C", whole)
    for name in SUBCOMMANDS:
        assert name in whole


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ending(capsys)
    assert (code, err) == (0, "")
    assert out.startswith("Usage: fewdim")


# ----------------------------------------------------------------------------------------------------------- minimize
def test_minimize_is_minimize(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("problem.py:bowl", "--x0", "zeros:4x5", "--maxfev", "200", "--seed", "3", "--method", "random-gradient")
    code, out, _ = ending(capsys, "minimize", *words, "--set", "batch=2", "--out", "best", "--json")
    told = json.loads(out)

    def bowl(x: Any) -> float:
        return float(((x - 1).ravel() ** 2 / (1 + np.arange(x.size))).sum())

    same = fewdim.minimize(bowl, np.zeros((4, 5)), method=fewdim.RandomGradient(batch=2), maxfev=200, rng=3)
    assert code == 0
    assert told["fun"] == same.fun
    assert (told["nfev"], told["reason"], told["d"], told["first"]) == (same.nfev, same.reason, 20, same.history.fun[0])
    assert np.array_equal(np.load(told["out"]), same.x)


def test_a_run_goes_on_and_a_text_says_where_it_is(place: Path) -> None:
    line = ["minimize", "problem:bowl", "--x0", "zeros:30", "--seed", "1", "--journal", "run.db", "--maxfev"]
    first = fewdim_command(*line, "100", cwd=place, check=True)
    assert "the run is kept in run.db" in first.stdout
    assert first.stderr == ""  # quiet: this is no terminal
    longer = fewdim_command(*line, "300", cwd=place, check=True)
    whole = fewdim.minimize(
        lambda x: float(((x - 1) ** 2 / (1 + np.arange(30))).sum()), np.zeros(30), maxfev=300, rng=1
    )
    assert f"f = {whole.fun:.10g} after {whole.nfev} evaluations" in longer.stdout
    assert Journal(place / "run.db").notes["command"].startswith("fewdim minimize problem:bowl --x0 zeros:30")
    assert np.array_equal(np.load(place / "fewdim-x.npy"), whole.x)


def test_external_programs_and_workers(place: Path) -> None:
    words = ["--command", "awk '{ s += ($1-1)^2/NR } END { printf \"%.17g\", s }' {point}", "--point", "csv"]
    told = fewdim_command(
        "minimize", *words, "--x0", "zeros:10", "--maxfev", "60", "--seed", "0", "--workers", "2", "--json", cwd=place
    )
    result = json.loads(told.stdout)
    assert (result["nfev"], result["nfail"]) == (60, 0)
    assert result["fun"] < 0.5 * result["first"]
    module = fewdim_command(
        *("minimize", "problem:bowl", "--x0", "zeros:10", "--maxfev", "60", "--seed", "0", "--workers", "2"),
        *("--target", "-1"),
        cwd=place,
    )
    assert module.returncode == 1, module.stderr  # the target is out of reach


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("problem:bowl", "--x0", "zeros:9", "--target", "1e-3"), 0),
        (("problem:bowl", "--x0", "zeros:9", "--maxfev", "20"), 0),
        (("problem:bowl", "--x0", "zeros:9", "--maxfev", "20", "--target", "-1"), 1),
        (("problem:fragile", "--x0", "zeros:9"), 3),
        (("problem:wrong", "--x0", "zeros:9"), 4),
    ],
)
def test_exit_codes(place: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int) -> None:
    assert ending(capsys, "minimize", *words, "--seed", "0")[0] == code


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("minimize", "nowhere:bowl", "--x0", "zeros:9"), "run this where nowhere.py lies, or give its path"),
        (("minimize", "gone.py:bowl", "--x0", "zeros:9"), "there is no file gone.py"),
        (("minimize", "problem.py:nothing", "--x0", "zeros:9"), "problem.py has no nothing"),
        (("minimize", "problem.py:number", "--x0", "zeros:9"), "must be a function of a point; it is int"),
        (("minimize", "problem.py", "--x0", "zeros:9"), "must be given as module:function or file.py:function"),
        (("minimize", "--x0", "zeros:9"), "give either module:function or --command"),
        (("minimize", "problem.py:bowl", "--x0", "nine"), "--x0 must be zeros:1000, ones:1000 or a file.npy"),
        (("minimize", "problem.py:bowl", "--x0", "problem.py"), "is not an array of numbers"),
        (("minimize", "problem.py:bowl"), "Missing option '--x0'. See: fewdim minimize --help"),
        (
            ("minimize", "problem.py:bowl", "--x0", "zeros:9", "--maxfev", "0"),
            "--maxfev must be an integer of at least",
        ),
        (("minimize", "problem.py:bowl", "--x0", "zeros:9", "--method", "best"), "--method must be one of 'auto'"),
        (("minimize", "problem.py:bowl", "--x0", "zeros:9", "--set", "batch"), "--set takes name=value"),
        (("minimize", "problem.py:bowl", "--x0", "zeros:9", "--noise", "loud"), "--noise must be auto or a number"),
        (("minimize", "problem.py:bowl", "--x0", "zeros:9", "--pattern", "f"), "--pattern goes with --command"),
        (("minimize", "problem.py:bowl", "--x0", "zeros:9", "--dimension", "500"), "give --report or --journal"),
        (("minimize", "problem.py:bowl", "--x0", "zeros:9", "--seed", "-1"), "--seed must be None, an integer"),
        (("minimize", "problem.py:bowl", "--x0", "zeros:9", "--timeout", "5"), "--timeout needs --workers"),
        (("dimension", "problem.py:bowl", "--x0", "zeros:9", "--maxfev", "5"), "--maxfev must be at least 100"),
        (("show", "gone.db"), "there is no journal gone.db"),
        (("methods", "best"), "there is no method 'best'; there are auto"),
        (("minimise",), "No such command 'minimise'"),
    ],
)
def test_errors_are_one_line_that_says_what_to_do(
    place: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    code, out, err = ending(capsys, *words)
    assert code == 2, err
    assert says in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_journal_of_another_run_is_refused_in_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("minimize", "problem.py:bowl", "--maxfev", "30", "--journal", "run.db", "--seed", "0")
    assert ending(capsys, *words, "--x0", "zeros:9")[0] == 0
    before = Journal(place / "run.db").notes
    code, _, err = ending(capsys, *words, "--x0", "zeros:8")
    assert code == 4
    assert err.count("\n") == 1
    assert "is of another run: the shape of x0 was [9] and is [8] here" in err
    assert Journal(place / "run.db").notes == before


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "pool"])
def test_ctrl_c_tells_the_best_so_far_and_where_it_is(place: Path, workers: tuple[str, ...]) -> None:
    words = ["problem:slow", "--x0", "zeros:20", "--seed", "0", "--journal", "run.db", *workers]
    command = [sys.executable, "-m", "fewdim", "minimize", *words]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (place / "run.db").exists() or Journal(place / "run.db").nfev < 30:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    book = Journal(place / "run.db")
    assert f"f = {book.best.fun:.10g} after" in out
    assert "interrupted" in out
    assert "x is kept in fewdim-x.npy" in out
    assert "the run is kept in run.db" in out
    assert np.array_equal(np.load(place / "fewdim-x.npy"), book.best.x)


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_progress_is_shown_on_a_terminal(place: Path) -> None:
    import pty
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    words = ["minimize", "problem:slow", "--x0", "zeros:20", "--seed", "0", "--maxfev", "60"]
    with subprocess.Popen(
        [sys.executable, "-m", "fewdim", *words], cwd=place, stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        process.communicate()
    os.close(ours)
    assert re.search(rb"\d+/60 \[\d+:\d+<\d+:\d+, +[\d.]+f/s, best \S+\]", shown), shown[-300:]


# -------------------------------------------------------------------------------------------------- the other commands
def test_dimension_reports_and_forecasts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("dimension", "problem.py:bowl", "--x0", "zeros:20", "--seed", "0")
    code, out, _ = ending(capsys, *words)
    assert code == 0
    assert "Effective dimension at x: d = 20" in out
    assert "Evaluations to 0.01 of the gap" in out
    assert "full-rank" in out or "few dimensions matter" in out
    told = json.loads(ending(capsys, *words, "--json", "--gap", "0.1")[1])
    exact = 2 * sum(1 / i for i in range(1, 21))
    assert [e["estimate"] for e in told["estimates"] if e["alpha"] == 1.0] == [pytest.approx(exact, rel=1e-4)]
    assert {row["gap"] for row in told["forecasts"]} == {0.1}


def test_certify_judges(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ending(capsys, "certify", "problem.py:bowl", "--x", "ones:20", "--seed", "0")
    assert code == 0
    assert out.startswith("second-order stationary")
    assert ending(capsys, "certify", "problem.py:bowl", "--x", "zeros:20", "--seed", "0")[0] == 1
    told = json.loads(ending(capsys, "certify", "problem.py:bowl", "--x", "ones:20", "--seed", "0", "--json")[1])
    assert told["verdict"] == "second-order stationary"
    assert told["gradient_norm"] <= told["gradient_error"] < 1e-4
    assert abs(told["curvature"] - 2 / 20) <= told["curvature_error"] + 1e-6


def test_looking_at_a_journal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dice = np.random.default_rng(0)

    def shaky(x: Any) -> float:
        return float(x @ x) if dice.random() > 0.1 else float("nan")

    result = fewdim.minimize(shaky, np.ones(40), method="random-pursuit", maxfev=500, rng=0, journal="run.db", noise=0)
    _, out, _ = ending(capsys, "show", "run.db")
    assert f"best f = {result.fun!r}" in out
    assert f"500 evaluations in 0.0 s of evaluation; {result.nfail} gave no value" in out
    assert f"{result.nfail} x fun returned nan" in out
    told = json.loads(ending(capsys, "show", "run.db", "--json")[1])
    assert told["best"]["fun"] == result.fun
    assert told["nfev"] == 500
    assert len(told["failures"]) == result.nfail
    assert told["history"]["fun"][-1] == result.fun
    _, out, _ = ending(capsys, "replay", "run.db", "--at", "100", "--out", "x.npy")
    then = np.nanmin(Journal("run.db").values[:100])
    assert f"f = {float(then)!r} after 100 of 500 evaluations" in out
    x = np.load("x.npy")
    assert float(x @ x) == then
    assert ending(capsys, "replay", "run.db", "--at", "0")[0] == 0
    assert np.array_equal(np.load("fewdim-x.npy"), np.ones(40))
    code, _, err = ending(capsys, "replay", "run.db", "--at", "501")
    assert (code, "--at must lie in [0, 500], the evaluations of run.db; got 501" in err) == (2, True)


def test_a_replayed_point_lies_within_the_bounds(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def bowl(x: Any) -> float:
        return float((x - 1) @ (x - 1))

    fewdim.minimize(bowl, np.zeros(30), bounds=[(-0.5, 0.5)] * 30, maxfev=300, rng=0, journal="run.db")
    for at in (1, 100, 300):
        code, out, _ = ending(capsys, "replay", "run.db", "--at", str(at), "--out", "x")
        then = float(np.nanmin(Journal("run.db").values[:at]))
        assert (code, f"f = {then!r}" in out, "x is in x.npy" in out) == (0, True, True)
        assert bowl(np.load("x.npy")) == then


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    place: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    words = ("minimize", "problem.py:wrong", "--x0", "zeros:9", option, "gone/file.npy")
    code, _, err = ending(capsys, *words)  # the function raises: it was not called
    assert (code, f"{option} must be a file in a folder that is there; got 'gone/file.npy'" in err) == (2, True)


def test_only_a_run_that_goes_on_is_said_to(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("minimize", "problem.py:bowl", "--x0", "zeros:9", "--seed", "0", "--journal")
    assert "the same line with a larger --maxfev" in ending(capsys, *words, "a.db", "--maxfev", "20")[1]
    out = ending(capsys, *words, "b.db", "--target", "1e-3")[1]
    assert "the run is kept in b.db" in out
    assert "the same line" not in out


def test_methods_are_listed_with_guarantee_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    out = CliRunner().invoke(app, ["methods"]).output
    rows = json.loads(ending(capsys, "methods", "--json")[1])
    assert [row["name"] for row in rows] == list(METHODS)
    for row in rows:
        assert row["name"] in out
        assert row["summary"]
        assert row["guarantee"] != "none"
        assert row["guarantee"].count("(") == row["guarantee"].count(")"), "cut within a bracket"
        assert row["settings"]
    assert "**Departures.**" in CliRunner().invoke(app, ["methods", "auto"]).output


def test_cite_agrees_with_the_citation_file(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ending(capsys, "cite")
    cff = (Path(__file__).parents[1] / "CITATION.cff").read_text()
    title = re.search(r'^title: "(.*)"$', cff, flags=re.MULTILINE)
    assert title is not None
    assert f"title = {{{title[1]}}}" in out
    for text in (f"version: {fewdim.__version__}", "Weak Dimension Dependency"):
        assert text in cff
    assert f"version = {{{fewdim.__version__}}}" in out


def test_without_typer_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('No module named typer', name='typer')")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    told = fewdim_command("cite", env=env)
    assert told.returncode == 2
    assert told.stderr == "fewdim: typer is not installed; install it with: pip install 'fewdim[cli]'\n"
