"""Exact courses of runs, bit for bit; one that changes is named in the changelog under *Trajectories*.

The second-order methods solve eigenvalue problems, which libraries round differently: theirs agree to 1e-9.

`python tests/test_traces.py` writes them anew.
"""

import json
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
        now, then = ([float.fromhex(number) for number in side[column]] for side in (found, expected))
        assert now == pytest.approx(then, rel=1e-9, abs=1e-9)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or CASES:
        (FOLDER / f"{name}.json").write_text(json.dumps(trace(CASES[name]), indent=0) + "\n")
