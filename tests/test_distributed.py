"""Dask and Ray for real: small local ones, started here.  Needs the extras `dask` and `ray`."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewdim import Journal, RandomGradient, minimize
from fewdim.directions import Vector

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # their warnings are theirs

X0 = np.linspace(-1, 1, 12)
LARGE = np.zeros(50_000)
BATCH = RandomGradient(batch=7)
EXAMPLES = Path(__file__).parents[1] / "examples"


def bowl(x: Vector) -> float:
    import numpy  # by name in this function: the module of a test does not travel

    if int(abs(x.sum()) * 1e7) % 11 == 3:
        raise ArithmeticError("no luck")
    return float(numpy.sum(numpy.arange(1, x.size + 1) * (x - 0.3) ** 2))


def same(a: Any, b: Any) -> None:
    assert a.x.tobytes() == b.x.tobytes()
    assert (a.fun, a.nfev, a.nit, a.nfail, a.message) == (b.fun, b.nfev, b.nit, b.nfail, b.message)


def check(workers: Any, path: Path) -> None:
    """The run on these workers, in two pieces and with a large base, is the run."""
    for maxfev in (90, 200):
        result = minimize(bowl, X0, method=BATCH, rng=2, maxfev=maxfev, workers=workers, journal=path)
    same(result, minimize(bowl, X0, method=BATCH, rng=2, maxfev=200))
    assert len(Journal(path).failures) == result.nfail > 0
    large = minimize(bowl, LARGE, method=BATCH, rng=2, maxfev=100, workers=workers)
    same(large, minimize(bowl, LARGE, method=BATCH, rng=2, maxfev=100))


def test_dask(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    flag = tmp_path / "killed"

    def deadly(x: Vector) -> float:
        if x[0] < -1.0 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return bowl(x)

    with distributed.Client(
        n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None, local_directory=str(tmp_path)
    ) as client:
        check(client.get_executor(), tmp_path / "run.db")
        killed = minimize(deadly, X0, method=BATCH, rng=2, maxfev=60, workers=client.get_executor())
        assert flag.exists()
        same(killed, minimize(bowl, X0, method=BATCH, rng=2, maxfev=60))


def test_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))  # of this one; else it leaves one in the home folder
    ray = pytest.importorskip("ray")
    from ray.util.multiprocessing import Pool

    ray.init(num_cpus=2, object_store_memory=100 * 2**20, include_dashboard=False)
    try:
        pool = Pool(processes=2)
        check(pool.map, tmp_path / "run.db")
        pool.terminate()
    finally:
        ray.shutdown()


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_the_examples(name: str, tmp_path: Path) -> None:
    pytest.importorskip({"dask": "distributed", "ray": "ray"}[name])
    env = {**os.environ, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    script = [sys.executable, str(EXAMPLES / f"{name}_pool.py")]
    done = subprocess.run(script, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.stdout.startswith("600 evaluations, f from 2.471 to 0.3946"), done.stderr
