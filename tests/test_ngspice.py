"""The example of an external program, end to end: killed, resumed, with failures."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fewdim import Journal

EXAMPLE = Path(__file__).parents[1] / "examples" / "ngspice_ladder.py"
real = shutil.which("ngspice")


@pytest.mark.skipif(real is None or os.name != "posix", reason="needs ngspice")
def test_the_ladder_survives_a_kill(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    unreliable = tmp_path / "bin" / "ngspice"  # fails on about one deck in 32, by what is in it
    lines = ["#!/bin/sh", 'if [ $(cksum < "$2" | cut -c1-5) -lt 13000 ]; then echo no licence >&2; exit 7; fi']
    unreliable.write_text("\n".join([*lines, f'exec {real} "$@"', ""]))
    unreliable.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}

    def example(name: str) -> list[str]:
        path = str(tmp_path / name / "run.db")
        return [sys.executable, str(EXAMPLE), "--sections", "20", "--maxfev", "250", "--journal", path]

    whole = subprocess.run(example("whole"), env=env, capture_output=True, text=True, check=True).stdout.splitlines()
    path = tmp_path / "cut" / "run.db"
    with subprocess.Popen(example("cut"), env=env, stdout=subprocess.DEVNULL) as process:
        while not path.exists() or Journal(path).nfev < 60:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    rest = subprocess.run(example("cut"), env=env, capture_output=True, text=True, check=True).stdout.splitlines()
    before = int(rest[0].split()[0])
    assert 60 <= before < 250
    assert whole[0].startswith("0 evaluations were there, 250 are now")
    assert rest[1:] == whole[1:]  # the same values to the last digit, the same failures
    start, end = Journal(path).values[0], Journal(path).best.fun
    assert end < start / 100
    assert "exit code 7; stderr ends: no licence" in rest[-1]
