"""Exact courses of runs, bit for bit; one that changes is named in the changelog under *Trajectories*.

The second-order methods solve eigenvalue problems, which every library for every processor rounds differently: their
first points agree to 1e-9.  Second differences then divide what is different by the squares of radii, and at a minimum
rounding decides.

`python tests/test_traces.py` writes them anew.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewdim import METHODS, RandomGradient, Session
from fewdim.oracles import Through, UniformNoise
from fewdim.testing import valley

FOLDER = Path(__file__).parent / "traces"
CASES: dict[str, Any] = {
    **{name: METHODS[name]() for name in METHODS if name not in ("auto", "quadratic-model")},  # which inverts matrices
    "random-gradient-paper": RandomGradient(step="paper", trace=2.25, directions="gaussian", batch=2, noise=0),
    "random-gradient-noisy": Through(RandomGradient(noise=1e-3), UniformNoise(1e-3)),
}

ROUNDED = ("large-step", "cubic")
AGREEING = 70  # points of theirs

COURSE = """
import hashlib, json, sys
import numpy as np
import fewdim
digest, w = hashlib.sha256(), 1 / np.arange(1, 201) ** float(sys.argv[1])
def fun(x):
    digest.update(x.tobytes())
    y = x - np.roll(x, 1) / 2
    return float(np.sum(w * y * y) + np.sum((w * y * y) ** 2))
result = fewdim.minimize(fun, np.linspace(1, 2, 200), maxfev=3000, rng=0)
print(json.dumps([digest.hexdigest(), result.message]))
"""


def trace(method: Any) -> dict[str, list[str]]:
    """Values and first coordinates of the first 120 points, as hexadecimal numbers."""
    session: Session[Any] = Session(method, np.ones(5), rng=1)
    values, coordinates = [], []
    while session.nfev < 120 and not session.done:
        point = session.ask(1)[0]
        value = valley(point.x)
        values.append(value.hex())
        coordinates.append(float(point.x[0]).hex())
        session.tell(point.id, value)
    return {"f": values, "x[0]": coordinates}


@pytest.mark.parametrize("name", CASES)
def test_trace(name: str) -> None:
    found, expected = trace(CASES[name]), json.loads((FOLDER / f"{name}.json").read_text())
    if name not in ROUNDED:
        assert found == expected
        return
    for column in expected:
        now, then = ([float.fromhex(number) for number in side[column][:AGREEING]] for side in (found, expected))
        assert now == pytest.approx(then, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("decay", "engine"), [(1.5, "few values)."), (0.3, "quasi-Newton")])
def test_the_course_is_the_same_whatever_library_and_processor_multiply_vectors(decay: float, engine: str) -> None:
    """Engines for exact values above 150 dimensions; OpenBLAS has different kernels for these two processors."""
    courses = []
    for processor in ("Prescott", "Nehalem", ""):
        environment = {**os.environ, "OPENBLAS_CORETYPE": processor}
        command = [sys.executable, "-c", COURSE, str(decay)]
        courses.append(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)
    assert engine in courses[0]
    assert courses[0] == courses[1] == courses[2]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or CASES:
        (FOLDER / f"{name}.json").write_text(json.dumps(trace(CASES[name]), indent=0) + "\n")
