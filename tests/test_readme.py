"""What the README shows runs as printed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fewdim.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
FILES = re.findall(r'```python title="([^"]+)"\n(.*?)```', README, flags=re.DOTALL)
LINES = "\n".join(re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)).splitlines()


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_the_example_is_the_quickstart_and_prints_what_is_said() -> None:
    assert BLOCKS[0].strip() == (ROOT / "examples" / "quickstart.py").read_text().strip()
    printed = re.search(r"It prints `(.*?)`", README)
    assert printed is not None
    assert run(BLOCKS[0]).splitlines()[0] == printed[1]


def test_the_snippets_run_one_after_the_other() -> None:
    reason, noise, bounded, same, best, dimension, top, bottom, resumed = run("\n".join(BLOCKS[1:])).splitlines()
    assert (top, bottom) == ("negative curvature", "second-order stationary")
    assert reason.startswith("target")
    assert float(noise.split()[-1]) < 5
    assert bounded == "True True"
    assert same == "True"
    assert float(best) < 1
    assert dimension.startswith("ED_1 is 3.")  # 2 sum i^-2 = 3.29
    assert resumed == "600 600"


def test_the_commands_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "problem", raising=False)
    for name, text in FILES:
        Path(name).write_text(text)
    commands = [line for line in LINES if line.startswith("fewdim ")]
    assert len(commands) >= 3
    assert all(line.startswith(("fewdim ", "make ")) for line in LINES if line)
    for line in commands:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(line)[1:])
        assert stop.value.code == 0, line


def test_the_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    used = set(re.findall(r"\bmake ([a-z-]+)", README))
    assert used
    assert used <= targets


def test_files_that_are_named_exist() -> None:
    for name in re.findall(r"`((?:examples|benchmarks|docs)/[\w./]+)`|\]\(((?:docs|examples)/[\w./]+)\)", README):
        assert (ROOT / (name[0] or name[1])).exists(), name
