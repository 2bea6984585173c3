"""The report of a run: its numbers are those of the journal, and what goes wrong in a run has a place in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewdim
from fewdim import Journal, RandomPursuit, minimize
from fewdim.report import dimension_data, html, run_data

WEIGHTS = 1 / np.arange(1, 61) ** 1.5


def bowl(x: Any) -> float:
    return float(WEIGHTS @ (x - 1) ** 2)


def embedded(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_numbers_are_those_of_the_run(tmp_path: Path) -> None:
    result = minimize(bowl, np.zeros(60), maxfev=2000, rng=0, journal=tmp_path / "run.db")
    n = result.nfev
    page = html(Journal(tmp_path / "run.db"))
    run = embedded(page)["run"]
    assert (run["best"], run["first"], run["nfev"], run["nfail"]) == (result.fun, bowl(np.zeros(60)), n, 0)
    assert f"<dd>{result.fun!r}</dd>" in page
    assert run["diagnostics"]["nit"] == result.nit
    book = Journal(tmp_path / "run.db").history
    shown = dict(zip(run["history"]["nfev"], run["history"]["fun"], strict=True))
    assert shown.items() <= dict(zip(book.nfev.tolist(), book.fun.tolist(), strict=True)).items()
    assert (book.nfev[-1], book.fun[-1]) == (n, shown[n])


def test_the_page_is_whole_and_asks_nobody(tmp_path: Path) -> None:
    minimize(bowl, np.zeros(60), maxfev=300, rng=0, journal=tmp_path / "run.db")
    page = html(Journal(tmp_path / "run.db"))
    assert not re.search(r'(?:src|href)="(?!data:)|@import|url\(', page)
    assert page.count("uPlot") > 1
    assert "Copyright (c) 2022 Leon Sorokin" in page  # the licence of what is embedded
    assert f"journal=&#x27;{tmp_path / 'run.db'}&#x27;" in page  # how to go on


def test_slope_and_curvature_are_found_from_the_values(tmp_path: Path) -> None:
    """Random pursuit asks along signs: E (g'u)^2 = |g|^2 and E u'Au = tr A, here 2 sum w."""
    start = 100 * np.ones(60)  # far away, so that the gradient changes little in a few steps
    minimize(bowl, start, method=RandomPursuit(noise=0), maxfev=200, rng=0, journal=tmp_path / "run.db")
    series = run_data(Journal(tmp_path / "run.db"))["diagnostics"]["series"]
    # u'Au is the trace for signs and a diagonal A; two Gaussian directions at the start fade from the running mean
    assert series["curvature"]["value"][-1] == pytest.approx(2 * WEIGHTS.sum(), rel=1e-3)
    assert len(series["slope"]["value"]) > 30
    assert len(series["step"]["value"]) > 30


def test_remembered_steps_tell_curvatures_of_the_hessian(tmp_path: Path) -> None:
    minimize(bowl, np.zeros(60), method="conjugate-sketch", noise=0, maxfev=900, rng=0, journal=tmp_path / "run.db")
    ritz = np.sort(run_data(Journal(tmp_path / "run.db"))["diagnostics"]["ritz"])[::-1]
    exact = 2 * WEIGHTS  # Ritz values interlace: the i-th is at most the i-th eigenvalue
    assert ritz.size >= 5
    assert (ritz <= 1.01 * exact[: ritz.size]).all()
    assert ritz[0] > 0.5 * exact[0]


def test_failures_and_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    dice = np.random.default_rng(0)

    def shaky(x: Any) -> float:
        if dice.random() < 0.1:
            raise RuntimeError("</script><script>alert(1)</script>")
        return bowl(x)

    book = Journal(tmp_path / "run.db", label="<img src=x onerror=alert(1)>")
    result = minimize(shaky, np.zeros(60), maxfev=500, rng=0, journal=book)
    page = html(book)
    assert "<img src=x" not in page
    assert "<script>alert" not in page
    assert page.count("</script>") == 3  # those of the page itself
    assert embedded(page)["run"]["failures"][0]["count"] == result.nfail
    assert f"{result.nfail} of 500 evaluations gave no value" in page


def test_a_method_of_ones_own_has_a_report_without_replay(tmp_path: Path) -> None:
    class Own(RandomPursuit):
        pass

    minimize(bowl, np.zeros(60), method=Own(), maxfev=100, rng=0, journal=tmp_path / "run.db")
    page = html(Journal(tmp_path / "run.db"))
    assert "The run cannot be replayed from its file" in page
    assert embedded(page)["run"]["nfev"] == 100


def test_a_run_that_replays_otherwise_shows_no_diagnostics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Journal(tmp_path / "run.db")
    minimize(bowl, np.zeros(60), method="random-pursuit", maxfev=100, rng=0, journal=book)
    monkeypatch.setattr("fewdim.methods.random_pursuit.LAWS", {"signs": fewdim.gaussian})
    assert "replay asks for another point" in run_data(book)["diagnostics"]["missing"]


def test_replaying_can_be_watched(tmp_path: Path) -> None:
    book = Journal(tmp_path / "run.db")
    minimize(bowl, np.zeros(60), maxfev=150, rng=0, journal=book)
    seen: list[float] = []

    def watch(state: Any, query: fewdim.Query, values: Any, session: Any) -> None:
        for i, value in enumerate(values):
            if not np.isnan(value):
                assert bowl(query.point(i)) == value
                seen.append(value)

    book.replay(watch=watch)
    assert seen == book.values.tolist()


def test_bounds_are_named(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    minimize(bowl, np.zeros(60), bounds=[(-0.5, 0.5)] * 60, maxfev=400, rng=0, journal=path)
    page = html(Journal(path))
    assert "<td>-0.5 to 0.5</td>" in page
    assert "these are for the variables that the method works on" in page
    minimize(bowl, np.zeros(60), maxfev=400, rng=0, journal=tmp_path / "free.db")
    assert "these are for the variables" not in html(Journal(tmp_path / "free.db"))


def test_the_forecast_is_a_band(tmp_path: Path) -> None:
    found = fewdim.effective_dimension(bowl, np.zeros(60), rng=0)
    book = Journal(tmp_path / "run.db", notes={"dimension": dimension_data(found)})
    minimize(bowl, np.zeros(60), method="random-gradient", maxfev=3000, rng=0, journal=book)
    run = embedded(html(book))["run"]
    assert run["band"]["method"] == "random-gradient"
    first, best = run["first"], run["history"]["fun"][-1]
    for row in run["band"]["rows"]:
        assert row["fun"] == best + row["gap"] * (first - best)
        predicted = found.forecast(row["gap"])["random-gradient"]
        assert (row["low"], row["high"]) == (predicted.low, predicted.high)
    assert run["dimension"]["estimates"][1]["estimate"] == found[1.0].estimate


def test_notes_decide_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    minimize(bowl, np.zeros(60), maxfev=100, rng=0, journal=Journal(path, notes={"command": "one", "more": [1]}))
    longer = minimize(bowl, np.zeros(60), maxfev=200, rng=0, journal=Journal(path, notes={"command": "two"}))
    assert longer.nfev == 200
    notes = Journal(path).notes
    assert (notes["command"], notes["more"]) == ("two", [1])
    assert notes["environment"]["numpy"] == np.__version__


def test_result_plot_draws_the_history() -> None:
    pytest.importorskip("matplotlib")
    result = minimize(bowl, np.zeros(60), method="random-pursuit", maxfev=2000, rng=0)
    axes = result.plot()
    line = axes.get_lines()[0]
    assert np.array_equal(line.get_xdata(), result.history.nfev)
    assert np.array_equal(line.get_ydata(), result.history.fun)
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_xlabel()) == ("log", "log", "evaluations")
    assert result.plot(axes) is axes


def test_the_title_of_a_plot_fits() -> None:
    """The message of the default is a story; the title is its first sentence."""
    pytest.importorskip("matplotlib")
    result = minimize(bowl, np.zeros(60), maxfev=300, rng=0)
    axes = result.plot()
    assert axes.get_title().startswith("The budget of maxfev evaluations is spent.  f = ")
    width = axes.figure.bbox.width
    axes.figure.canvas.draw()
    assert axes.title.get_window_extent().width < width
