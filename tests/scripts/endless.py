"""A run on two workers whose evaluations never end; prints the workers' process ids.  For tests that end it."""

import os
import sys
import time
from typing import Any

import numpy as np

import fewdim


def fun(x: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    if x.any():
        os.write(1, f"{os.getpid()}\n".encode())
        time.sleep(1000)
    return 0.0


if __name__ == "__main__":
    result = fewdim.minimize(fun, np.zeros(4), workers=2, rng=0, journal=sys.argv[1])
    print(result.reason, result.nfev)
