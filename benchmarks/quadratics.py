"""Quadratics of many spectra, axis-aligned or rotated by signs and cosine transforms, which are cheap at any size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from benchmarks.problem import Problem, Vector


def power(d: int, decay: float) -> Vector:
    """l_i = i^-decay."""
    return np.arange(1, d + 1, dtype=np.float64) ** -decay


def exponential(d: int, condition: float) -> Vector:
    """From 1 down to 1/condition in equal ratios."""
    return np.geomspace(1.0, 1.0 / condition, d)


def clusters(d: int, count: int, condition: float) -> Vector:
    """Equal groups around `count` values from 1 to 1/condition, spread by 5 %."""
    centres = np.geomspace(1.0, 1.0 / condition, count)
    spread = 1 + 0.05 * np.random.default_rng(1).uniform(-1, 1, d)
    return np.sort(np.repeat(centres, -(-d // count))[:d] * spread)[::-1]


def flat_tail(d: int, large: int, ratio: float) -> Vector:
    """`large` eigenvalues from 1 to 0.1, all others equal to 1/ratio."""
    return np.concatenate([np.geomspace(1.0, 0.1, large), np.full(d - large, 1.0 / ratio)])


def few_large(d: int, large: int) -> Vector:
    """`large` eigenvalues i^-1, all others zero: only a small subspace matters."""
    return np.concatenate([power(large, 1.0), np.zeros(d - large)])


class Rotation:
    """An orthogonal matrix as random signs and a cosine transform: d log d operations."""

    def __init__(self, d: int, seed: int) -> None:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], d)
        self.signs = {np.dtype(t): signs.astype(t) for t in (np.float64, np.float32)}

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        result: NDArray[Any] = fft.dct(self.signs[x.dtype] * x, norm="ortho")
        return result

    def transposed(self, z: NDArray[Any]) -> NDArray[Any]:
        result: NDArray[Any] = self.signs[z.dtype] * fft.idct(z, norm="ortho")
        return result


def quadratic(name: str, spectrum: Vector, *, rotated: bool, seed: int = 0) -> Problem:
    """1/2 sum l_i z_i^2 with z = Q (x - x*), from z_i = +-1 at random; x* is random, so that zero is nowhere special.

    The signs matter: the cosine transform of (1, .., 1) has one entry, and one line search would do.
    """
    d = spectrum.size
    rng = np.random.default_rng(100 + seed)
    solution, signs = rng.standard_normal(d), rng.choice([-1.0, 1.0], d)
    turn = Rotation(d, seed) if rotated else None
    values = {np.dtype(t): (spectrum.astype(t), solution.astype(t)) for t in (np.float64, np.float32)}

    def fun(x: NDArray[Any]) -> Any:
        eigenvalues, centre = values[x.dtype]
        z = x - centre if turn is None else turn(x - centre)
        return 0.5 * ((z * z) @ eigenvalues)

    def gradient(x: Vector) -> Vector:
        if turn is None:
            return spectrum * (x - solution)
        return turn.transposed(spectrum * turn(x - solution))

    start = signs if turn is None else turn.transposed(signs)
    return Problem(
        name,
        lambda x: float(fun(x)),
        solution + start,
        0.0,
        "quadratic",
        gradient=gradient,
        solution=solution,
        single=fun,
    )
