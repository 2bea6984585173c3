"""The report in a real browser: Chromium without a window, driven by selenium; skipped where they are not."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewdim import Journal, effective_dimension, minimize
from fewdim.report import dimension_data, write_report

selenium = pytest.importorskip("selenium")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver")
FLAGS = (
    *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"),
    *("disable-component-update", "disable-sync", "window-size=1200,1600"),
)
AXE = "axe-core@4.14.0"
CACHE = Path(__file__).parents[1] / "out"
Driver = Any


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Journal, Path]:
    """A run of 20,000 evaluations, some of which fail, and its report."""
    folder = tmp_path_factory.mktemp("report")
    weights, dice = 1 / np.arange(1, 201) ** 1.5, np.random.default_rng(0)

    def fun(x: Any) -> float:
        if dice.random() < 0.01:
            raise RuntimeError("no mesh for <this> point")
        return float(weights @ (x - 1) ** 2 + 0.1 * weights @ (x - 1) ** 4)

    notes = {"dimension": dimension_data(effective_dimension(fun, np.zeros(200), maxfev=1500, rng=0))}
    book = Journal(folder / "run.db", notes=notes)
    minimize(fun, np.zeros(200), method="random-pursuit", maxfev=20_000, tol=0, noise=0, rng=0, journal=book)
    write_report(book, folder / "run.html")
    return book, folder / "run.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: Driver, run: tuple[Journal, Path]) -> Driver:
    browser.get_log("browser")  # empties it
    browser.get(run[1].as_uri())
    return browser


def test_it_is_small_opens_fast_and_says_nothing_wrong(page: Driver, run: tuple[Journal, Path], tmp_path: Path) -> None:
    assert run[1].stat().st_size < 1.5e6
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    (tmp_path / "empty.html").write_text("<!doctype html><title>empty</title>")
    times: dict[str, list[float]] = {"empty": [], "report": []}
    for _ in range(5):
        for name, address in (("empty", tmp_path / "empty.html"), ("report", run[1])):
            page.get(address.as_uri())
            took = "const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd"
            times[name].append(page.execute_script(took))
    empty, report = np.median(times["empty"]), np.median(times["report"])
    print(f"{run[1].stat().st_size / 1e3:.0f} kB; opens in {report:.0f} ms, {report / empty:.1f} times an empty page")
    assert report < 1000


def test_the_numbers_on_the_page_are_those_of_the_run(page: Driver, run: tuple[Journal, Path]) -> None:
    book = run[0]
    facts = page.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('.facts div')].map((e) => "
        "[e.children[0].textContent, e.children[1].textContent]))"
    )
    assert float(facts["best f"]) == book.best.fun
    assert float(facts["f(x0)"]) == book.values[0]
    assert facts["evaluations"] == "20,000"
    assert facts["without a value"] == f"{len(book.failures)}"
    assert facts["found at evaluation"] == f"{book.best.nfev:,}"
    cells = page.execute_script(
        "return [...document.querySelectorAll('figure:first-of-type tbody tr')].map((r) => "
        "[...r.children].map((c) => c.textContent))"
    )
    history = dict(zip(book.history.nfev.tolist(), book.history.fun.tolist(), strict=True))
    first = [(int(row[0].replace(",", "")), row[1]) for row in cells[:24]]
    assert len(first) == 24
    assert first == [(n, f"{history[n]:.10g}") for n, _ in first]


def test_every_chart_is_drawn_and_read_by_keys(page: Driver, run: tuple[Journal, Path]) -> None:
    from selenium.webdriver.common.keys import Keys

    charts = page.execute_script("return JSON.parse(document.getElementById('data').textContent).charts")
    assert len(charts) >= 6
    inked = page.execute_script(
        "return [...document.querySelectorAll('.chart canvas')].map((c) => c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length)"
    )
    assert len(inked) == len(charts)
    assert min(inked) > 2000  # pixels
    place = page.find_element("id", charts[0]["id"])
    place.send_keys(Keys.END)
    readout = page.find_element("id", charts[0]["id"] + "-readout").text
    assert readout == f"evaluations 20000, best f {json.dumps(run[0].best.fun)}"
    place.send_keys(Keys.HOME, Keys.ARROW_RIGHT)
    second = page.find_element("id", charts[0]["id"] + "-readout").text
    assert second.startswith(f"evaluations {charts[0]['data'][0][1]},")


def test_dark_and_print(page: Driver) -> None:
    def ground() -> str:
        return str(page.execute_script("return getComputedStyle(document.body).backgroundColor"))

    def emulate(scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    emulate("dark")
    dark = ground()
    emulate("light")
    assert (dark, ground()) == ("rgb(20, 24, 28)", "rgb(255, 255, 255)")
    paper = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
    assert paper.startswith(b"%PDF")
    assert page.get_log("browser") == []


FUNCTIONS: dict[str, Callable[[Any], float]] = {
    "constant": lambda x: 3.0,
    "zero": lambda x: 0.0,
    "negative": lambda x: float(x @ x) - 1e9,
    "huge": lambda x: 1e100 * float(x @ x),
}


@pytest.mark.parametrize("maxfev", [1, 2, 60])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_odd_runs_have_pages_too(browser: Driver, tmp_path: Path, name: str, maxfev: int) -> None:
    book = Journal(tmp_path / "run.db")
    minimize(FUNCTIONS[name], np.ones(10), maxfev=maxfev, rng=0, journal=book)
    write_report(book, tmp_path / "run.html")
    browser.get_log("browser")
    browser.get((tmp_path / "run.html").as_uri())
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.querySelectorAll('.chart canvas').length") >= 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Driver, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    page.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    page.execute_script(axe())
    found = page.execute_async_script("const end = arguments[arguments.length - 1]; axe.run().then(end)")
    assert len(found["passes"]) > 10
    bad = [(v["id"], v["impact"], v["nodes"][0]["html"]) for v in found["violations"]]
    assert [row for row in bad if row[1] in ("serious", "critical")] == []
    assert bad == []


def axe() -> str:
    """The checker, from npm; fetched once."""
    archive = CACHE / f"{AXE.replace('@', '-')}.tgz"
    if not archive.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("needs npm to fetch axe-core")
        CACHE.mkdir(exist_ok=True)
        got = subprocess.run([npm, "pack", AXE], cwd=CACHE, capture_output=True, text=True)
        if got.returncode:
            pytest.skip(f"axe-core cannot be fetched: {got.stderr[-200:]}")
    command = ["tar", "-xzOf", str(archive), "package/axe.min.js"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
