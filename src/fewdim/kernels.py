"""Compiled passes that generate directions while they add them; what the words of a key mean stands in `directions`."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

WORD = np.uint64
_GOLDEN = WORD(0x9E3779B97F4A7C15)
_ONE = WORD(1)


@numba.njit(inline="always")
def _word(a: Any, c: Any, b: Any) -> Any:
    h = a + WORD(b) * _GOLDEN
    h = (h ^ (h >> WORD(30))) * WORD(0xBF58476D1CE4E5B9)
    h = (h ^ c ^ (h >> WORD(27))) * WORD(0x94D049BB133111EB)
    return h ^ (h >> WORD(31))


@numba.njit(cache=True, nogil=True)
def add_signs(x: Any, scales: Any, seeds: Any, out: Any) -> None:
    total = np.empty(64, x.dtype)  # one block of sums; stays in the first-level cache
    for b in range(x.size // 64):  # loops of constant length are what the compiler turns into vector instructions
        lo = b * 64
        s, w = scales[0], _word(seeds[0, 0], seeds[0, 1], b)
        if scales.size == 1:
            for i in range(64):
                out[lo + i] = x[lo + i] + (s if (w >> WORD(i)) & _ONE else -s)
            continue
        for i in range(64):
            total[i] = x[lo + i] + (s if (w >> WORD(i)) & _ONE else -s)
        for j in range(1, scales.size):
            s, w = scales[j], _word(seeds[j, 0], seeds[j, 1], b)
            for i in range(64):
                total[i] += s if (w >> WORD(i)) & _ONE else -s
        for i in range(64):
            out[lo + i] = total[i]
    lo = x.size - x.size % 64
    for i in range(lo, x.size):
        value = x[i]
        for j in range(scales.size):
            w = _word(seeds[j, 0], seeds[j, 1], lo // 64)
            value += scales[j] if (w >> WORD(i - lo)) & _ONE else -scales[j]
        out[i] = value


@numba.njit(cache=True, nogil=True)
def add_vector(x: Any, scale: Any, v: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = x[i] + scale * v[i]


@numba.njit(cache=True, nogil=True)
def inner_product(a: Any, b: Any) -> Any:
    lanes = np.zeros(8)  # sums in a fixed order that the compiler can turn into vector instructions
    for lo in range(0, a.size - 7, 8):
        for i in range(8):
            lanes[i] += np.float64(a[lo + i]) * np.float64(b[lo + i])  # float() keeps single precision here
    product = lanes.sum()
    for i in range(a.size - a.size % 8, a.size):
        product += np.float64(a[i]) * np.float64(b[i])
    return product


@numba.njit(cache=True, nogil=True)
def orthonormalise(rows: Any) -> None:
    """Gram-Schmidt on the rows in place: each is made orthogonal to the ones before it, then of length 1."""
    m, d = rows.shape
    for j in range(m):
        for k in range(j):
            product = inner_product(rows[j], rows[k])
            for i in range(d):
                rows[j, i] -= product * rows[k, i]
        square = 0.0
        for i in range(d):
            square += rows[j, i] * rows[j, i]
        rows[j] /= math.sqrt(square)


@numba.njit(cache=True, nogil=True)
def add_gaussian(x: Any, scales: Any, seeds: Any, out: Any) -> None:
    normals = np.empty(64)
    total = np.empty(64, x.dtype)
    for lo in range(0, x.size, 64):
        n = min(64, x.size - lo)
        total[:n] = x[lo : lo + n]
        for j in range(scales.size):
            _normals(seeds[j, 0], seeds[j, 1], lo, normals)
            for i in range(n):
                total[i] += scales[j] * x.dtype.type(normals[i])
        out[lo : lo + n] = total[:n]


@numba.njit(cache=True, nogil=True)
def gaussian_square(d: Any, seed: Any) -> Any:
    normals = np.empty(64)
    total = 0.0
    for lo in range(0, d, 64):
        _normals(seed[0], seed[1], lo, normals)
        for i in range(min(64, d - lo)):
            total += normals[i] ** 2
    return total


# Wichura (1988), algorithm AS 241, PPND16: the normal quantile as three rational functions, relative error 1e-16.
# fmt: off
_A = (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
      4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3)
_B = (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
      2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3)
_C = (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
      1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4)
_D = (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
      1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9)
_E = (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
      2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7)
_F = (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
      7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15)
# fmt: on


@numba.njit(inline="always")
def _ratio(r: Any, p: Any, q: Any) -> Any:
    top = ((((((p[7] * r + p[6]) * r + p[5]) * r + p[4]) * r + p[3]) * r + p[2]) * r + p[1]) * r + p[0]
    bottom = ((((((q[7] * r + q[6]) * r + q[5]) * r + q[4]) * r + q[3]) * r + q[2]) * r + q[1]) * r + q[0]
    return top / bottom


@numba.njit(inline="always")
def _log(p: Any) -> Any:
    """Log p for p in (0, 1), the same bits everywhere: p = m 2^e, log m = 2 artanh((m - 1) / (m + 1))."""
    m, e = math.frexp(p)
    if m < 0.7071067811865476:
        m, e = 2.0 * m, e - 1
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    total = 0.0
    for c in (1 / 23, 1 / 21, 1 / 19, 1 / 17, 1 / 15, 1 / 13, 1 / 11, 1 / 9, 1 / 7, 1 / 5, 1 / 3, 1.0):
        total = total * y + c
    return e * 0.6931471805599453 + 2.0 * z * total


@numba.njit(inline="always")
def _uniform(w: Any) -> Any:
    """53 bits of a word as a number in (0, 1), half a unit from either end."""
    return (float(w >> WORD(11)) + 0.5) * 1.1102230246251565e-16


@numba.njit(nogil=True)
def _normals(a: Any, c: Any, first: Any, out: Any) -> None:
    """64 normal deviates: the quantiles of the words first, first + 1, ..., first + 63."""
    for i in range(64):
        out[i] = _uniform(_word(a, c, first + i)) - 0.5
    for i in range(64):  # the middle of the law for all, in vector instructions; then the tails one by one
        q = out[i]
        middle = q * _ratio(0.180625 - q * q, _A, _B)
        out[i] = middle if abs(q) <= 0.425 else math.nan
    for i in range(64):
        if math.isnan(out[i]):
            p = _uniform(_word(a, c, first + i))
            r = math.sqrt(-_log(min(p, 1.0 - p)))
            z = _ratio(r - 1.6, _C, _D) if r <= 5.0 else _ratio(r - 5.0, _E, _F)
            out[i] = -z if p < 0.5 else z
