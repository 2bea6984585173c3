"""Evaluate on a Dask cluster; here a local one, on a cluster of machines the same lines with its address.

python examples/dask_pool.py
python examples/dask_pool.py tcp://scheduler:8786
"""

import sys
import time
from typing import Any

import numpy as np
from distributed import Client

import fewdim


def simulate(x: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    time.sleep(0.01)
    return float(np.sum(np.arange(1, x.size + 1) ** -1.5 * (x - 1) ** 2))


def main() -> None:
    here = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "1GB", "dashboard_address": None}
    with Client(sys.argv[1]) if len(sys.argv) > 1 else Client(**here) as client:
        pool = client.get_executor()
        result = fewdim.minimize(
            simulate, np.zeros(200), method=fewdim.RandomGradient(batch=15), maxfev=600, rng=0, workers=pool
        )
        print(f"{result.nfev} evaluations, f from {result.history.fun[0]:.4g} to {result.fun:.4g}")


if __name__ == "__main__":
    main()
