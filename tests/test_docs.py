"""The documentation: what it shows runs as printed, what it includes is there, the site builds without a warning."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fewdim
from fewdim.cli import main

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r'^--8<-- "([^"]+)"$', flags=re.MULTILINE)
ELSEWHERE = ("pip install", "make ", "git ")  # change the machine, or take minutes: looked at, not run


class Block(NamedTuple):
    language: str
    title: str
    text: str


def included(name: str) -> Path:
    return next((folder / name for folder in (ROOT / "docs", ROOT) if (folder / name).exists()), ROOT / "docs" / name)


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for language, rest, body in FENCE.findall(text):
        title = re.search(r'title="([^"]+)"', rest)
        if language != "text" and not body.startswith('--8<-- "examples/'):  # examples have tests of their own
            yield Block(language, title[1] if title else "", SNIPPET.sub(lambda m: included(m[1]).read_text(), body))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_runs_as_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files are written, Python runs in one namespace a page, lines of the shell in the order they stand."""
    if "result.plot()" in page.read_text():
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "problem", raising=False)
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.title:
            Path(block.title).write_text(block.text)
        elif block.language == "python":
            exec(compile(block.text, str(page), "exec", dont_inherit=True), names)
        else:
            for line in block.text.splitlines():
                run(line)


def run(line: str) -> None:
    """A line of the shell: commands of fewdim run here, others are only looked at."""
    if line.startswith(ELSEWHERE):
        return
    words = shlex.split(line)
    assert words[0] == "fewdim", line
    with pytest.raises(SystemExit) as stop:
        main(words[1:])
    assert stop.value.code == 0, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_includes_is_there(page: Path) -> None:
    text = page.read_text()
    for name in SNIPPET.findall(text):
        assert included(name).is_file(), name
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        assert (page.parent / name).is_file(), name
    for name in re.findall(r"`((?:examples|docs|benchmarks)/[\w./]+)", text):
        assert (ROOT / name).exists(), name
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets


def test_the_quickstart_prints_what_is_shown() -> None:
    """As the README says it does, whose test runs it."""
    printed = re.search(r"It prints `(.*?)`", (ROOT / "README.md").read_text())
    assert printed is not None
    assert (ROOT / "docs" / "generated" / "quickstart.txt").read_text().splitlines()[0] == printed[1]


def test_exit_codes_of_the_page_are_those_of_the_command() -> None:
    import fewdim.cli

    said = re.findall(r"^(\d+) +(.*)$", fewdim.cli.__doc__ or "", flags=re.MULTILINE)
    shown = re.findall(r"^\| (\d+) \| (.*) \|$", (ROOT / "docs" / "command.md").read_text(), flags=re.MULTILINE)
    assert [code for code, _ in said] == [code for code, _ in shown] == ["0", "1", "2", "3", "4", "130"]
    assert said[:5] == shown[:5]


def test_the_table_of_methods_names_them_all() -> None:
    table = (ROOT / "docs" / "generated" / "which.md").read_text()
    assert re.findall(r"`([a-z-]+)`", table.splitlines()[0]) == list(fewdim.METHODS), "run docs/generate.py which"


def test_the_decision_table_names_every_method() -> None:
    rows = [line.split("|")[2] for line in (ROOT / "docs" / "methods.md").read_text().splitlines() if line[:2] == "| "]
    taken = re.findall(r'`"([a-z-]+)"`', " ".join(rows))
    assert set(taken) == set(fewdim.METHODS)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    addresses = re.compile(r'<(?:script|img|link rel="(?:stylesheet|icon)")[^>]*(?:src|href)="(https?:)?//')
    assert [
        page.name for page in pages if addresses.search(page.read_text())
    ] == []  # nothing is fetched from elsewhere
    reference = (tmp_path / "site" / "api.html").read_text()
    for kind in fewdim.METHODS.values():
        assert f'id="fewdim.{kind.__module__.removeprefix("fewdim.")}.{kind.__name__}"' in reference
