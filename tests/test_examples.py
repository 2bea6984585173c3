"""The examples run, in small; those whose packages are missing are skipped.  Quickstart and ngspice have theirs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = {
    "water_network": (["--maxfev", "600"], ("epanet", "wntr", "cma", "matplotlib"), "water_ky4.png"),
    "softmax": (["--maxfev", "300"], ("mlxtend", "matplotlib"), "softmax.png"),
    "tanh_network": (["--maxfev", "600"], ("mlxtend", "matplotlib"), "tanh_network.png"),
    "mujoco_policy": (["--maxfev", "60"], ("mujoco", "gymnasium", "imageio", "cma", "matplotlib"), "mujoco_policy.png"),
}


def run(name: str, folder: Path) -> str:
    words, needs, picture = SMALL[name]
    missing = [need for need in needs if find_spec(need) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (folder / "out" / picture).stat().st_size > 5000
    return done.stdout


@pytest.mark.long
def test_water_network(tmp_path: Path) -> None:
    out = run("water_network", tmp_path)
    assert "1,156 pipes, 959 junctions" in out
    row = re.search(r"^fewdim +([\d,]+)", out, flags=re.MULTILINE)
    assert row is not None  # a tenth of the first error within 600 evaluations, half of what one gradient costs
    assert int(row[1].replace(",", "")) <= 600


@pytest.mark.long
def test_softmax(tmp_path: Path) -> None:
    out = run("softmax", tmp_path)
    loss = re.search(r"fewdim: loss ([\d.]+), accuracy ([\d.]+)%", out)
    assert loss is not None
    assert float(loss[1]) < 2.0  # log 10 = 2.303 at the start
    assert float(loss[2]) > 20


@pytest.mark.long
def test_tanh_network(tmp_path: Path) -> None:
    out = run("tanh_network", tmp_path)
    loss = re.search(r"26,506 weights: loss ([\d.]+) -> ([\d.]+)", out)
    assert loss is not None
    assert float(loss[2]) < 0.8 * float(loss[1])


@pytest.mark.long
def test_mujoco_policy(tmp_path: Path) -> None:
    """Nothing is claimed of the rewards: only that all three methods spend their rollouts and are judged."""
    out = run("mujoco_policy", tmp_path)
    for name in ("at the start", "fewdim, default", "fewdim, random-gradient", "CMA-ES"):
        assert re.search(rf"^{name} +-?[\d.]+ \+- ", out, flags=re.MULTILINE), out
