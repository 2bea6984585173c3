"""Evaluate on Ray; here started on this machine, on a cluster of machines the same lines with its address.

python examples/ray_pool.py
python examples/ray_pool.py ray://head:10001
"""

import sys
import time
from typing import Any

import numpy as np
import ray
from ray.util.multiprocessing import Pool

import fewdim


def simulate(x: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    time.sleep(0.01)
    return float(np.sum(np.arange(1, x.size + 1) ** -1.5 * (x - 1) ** 2))


def main() -> None:
    if len(sys.argv) > 1:
        ray.init(sys.argv[1])
    else:
        ray.init(num_cpus=2, object_store_memory=100 * 2**20, include_dashboard=False)
    pool = Pool(processes=2)
    result = fewdim.minimize(
        simulate, np.zeros(200), method=fewdim.RandomGradient(batch=15), maxfev=600, rng=0, workers=pool.map
    )
    print(f"{result.nfev} evaluations, f from {result.history.fun[0]:.4g} to {result.fun:.4g}")
    pool.terminate()
    ray.shutdown()


if __name__ == "__main__":
    main()
