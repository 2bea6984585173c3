"""Seeded directions: named by a key, generated where they are used, never stored.

A direction is a random vector u of R^d with E[u u'] = I.  It is a pure function of its law and its key, coordinate by
coordinate, so the same key gives the same vector on every machine, in any order and for any number of threads:

    seed  = BLAKE2b of the key, with the name of the law, 128 bits, read as two words (a, c)
    word  = mix(a + b * golden, c)   the b-th 64-bit word: a splitmix64 finaliser with c folded into its middle

One word gives 64 signs or one normal deviate.  Only additions, multiplications, divisions and square roots of IEEE
arithmetic are used, which every machine rounds alike (the logarithm in the tail of the normal law is ours too).

`perturb` and `accumulate` generate and add in one pass over memory.  Sign directions run at the speed of a copy, which
is why they are the default; they also have the mean of Gaussian ones and never a larger variance.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewdim.kernels import add_gaussian, add_signs, add_vector, gaussian_square, inner_product, orthonormalise

Key: TypeAlias = tuple[int, ...]
Vector: TypeAlias = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Direction:
    """A vector of R^d named by its law and key; `0.1 * direction` is a lazy offset.

    Made by `signs`, `gaussian`, `sphere`, `coordinate` and `axis`.  It holds no coordinates: `perturb` and `accumulate`
    generate them, and `array(d)` writes them out for those who want to look.
    """

    law: str
    key: Key

    __array_ufunc__ = None  # numpy scalars leave `scale * direction` to us

    @property
    def seed(self) -> bytes:
        """The key hashed to two 64-bit words, in little-endian bytes."""
        try:
            packed = struct.pack(f"<{len(self.key)}Q", *self.key)
        except struct.error:
            raise ValueError(f"{self.law}(key=...) must hold integers in [0, 2**64); got {self.key}.") from None
        return blake2b(packed, digest_size=16, person=self.law.encode()).digest()

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """The seed as (1, 2) words: kernels take (m, 2)."""
        words = np.frombuffer(self.seed, dtype=_SEED).reshape(1, 2)
        return words if _SEED.isnative else words.astype(np.uint64)

    def length(self, d: int) -> float:
        """The factor that the law puts on the generated coordinates in dimension d."""
        if self.law == "sphere":
            return math.sqrt(d / gaussian_square(d, self.words[0]))
        if self.law in ("coordinate", "axes"):
            return math.sqrt(d)
        return 1.0

    def index(self, d: int) -> int:
        """The coordinate that a `coordinate` or `axis` direction points along."""
        if self.law == "axes":
            return self.key[-1] % d
        i = self.key[0] if self.law == "axis" else int(self.words[0, 0]) % d
        if i >= d:
            raise ValueError(f"axis(i=...) must be below the dimension {d}; got {i}.")
        return i

    def array(self, d: int) -> Vector:
        """The d coordinates, written out."""
        return perturb(np.zeros(d), 1.0, self)

    def __mul__(self, scale: float) -> Along:
        return Along(float(scale), self)

    __rmul__ = __mul__

    def __neg__(self) -> Along:
        return Along(-1.0, self)


@dataclass(frozen=True, eq=False)
class Along:
    """The lazy offset `scale * direction`; the direction is seeded, or a vector that somebody holds anyway."""

    scale: float
    direction: Direction | Vector

    def __neg__(self) -> Along:
        return Along(-self.scale, self.direction)


def signs(key: Key) -> Direction:
    """Independent signs, +1 or -1: the default law."""
    return Direction("signs", key)


def gaussian(key: Key) -> Direction:
    """Independent standard normal coordinates: the law of the paper."""
    return Direction("gaussian", key)


def sphere(key: Key) -> Direction:
    """Uniform on the sphere of radius sqrt(d); costs two passes, one for the norm."""
    return Direction("sphere", key)


def coordinate(key: Key) -> Direction:
    """sqrt(d) times a unit vector chosen uniformly by the key."""
    return Direction("coordinate", key)


def axes(key: Key) -> Direction:
    """sqrt(d) times the unit vector that the last number of the key names, modulo d: one after another, all of them."""
    return Direction("axes", key)


def orthogonal(key: Key, count: int, d: int) -> list[Vector]:
    """`count` random directions at right angles, each of length sqrt(d); these are arrays, for they need each other."""
    rows = np.array([gaussian((*key, j)).array(d) for j in range(count)])
    orthonormalise(rows)
    return list(rows * math.sqrt(d))


def axis(i: int) -> Direction:
    """The i-th unit vector: what finite differences go along."""
    if i < 0:
        raise ValueError(f"axis(i=...) must be at least 0; got {i}.")
    return Direction("axis", (i,))


_SEED = np.dtype("<u8")
_DENSE = {"signs": add_signs, "gaussian": add_gaussian, "sphere": add_gaussian}

LAWS = {"signs": signs, "gaussian": gaussian, "sphere": sphere, "axis": coordinate}
"""The random laws by name, as methods take them (`directions="signs"`); "axis" is a random coordinate."""


def perturb(x: Vector, scale: float, direction: Direction | Vector, out: Vector | None = None) -> Vector:
    """X + scale * direction in one pass; `out` may be x itself.

    >>> import numpy as np
    >>> perturb(np.zeros(4), 0.5, axis(2))
    array([0. , 0. , 0.5, 0. ])
    """
    return accumulate(x, (scale,), (direction,), out)


def accumulate(
    x: Vector,
    coefficients: Sequence[float] | NDArray[np.float64],
    directions: Sequence[Direction | Vector],
    out: Vector | None = None,
) -> Vector:
    """X + sum_j coefficients[j] * directions[j], each coordinate summed in the order given; `out` may be x itself.

    Runs of seeded directions of one law are one pass over memory however many they are.
    """
    if len(coefficients) != len(directions):
        raise ValueError(f"accumulate(...) got {len(coefficients)} coefficients for {len(directions)} directions.")
    if x.ndim != 1 or x.dtype.kind != "f":
        raise TypeError(f"accumulate(x=...) must be a vector of floats; got shape {x.shape}, dtype {x.dtype}.")
    if out is None:
        out = np.empty_like(x)
    elif out.shape != x.shape or out.dtype != x.dtype:
        raise ValueError(f"accumulate(out=...) must be like x, {x.shape} {x.dtype}; got {out.shape} {out.dtype}.")
    if len(directions) == 1:
        _add(x, coefficients, directions, out)
        return out
    source, j = x, 0
    while j < len(directions):
        first, end = directions[j], j + 1
        if isinstance(first, Direction) and first.law in _DENSE:
            while end < len(directions) and getattr(directions[end], "law", None) == first.law:
                end += 1
        _add(source, coefficients[j:end], directions[j:end], out)
        source, j = out, end
    if source is not out:
        np.copyto(out, source)
    return out


def inner(a: Vector, b: Vector) -> float:
    """a'b, summed in double precision, and in the same order on every machine: `a @ b` depends on the library."""
    if a.size != b.size:
        raise ValueError(f"inner(a, b) must have vectors of one length; got {a.size} and {b.size}.")
    return float(inner_product(a, b))


def _add(x: Vector, coefficients: Any, directions: Sequence[Any], out: Vector) -> None:
    """One run of `accumulate`: seeded directions of one law, or a single vector or axis."""
    first, d = directions[0], x.size
    if not isinstance(first, Direction):
        add_vector(x, x.dtype.type(coefficients[0]), first, out)
    elif first.law in _DENSE:
        if first.law == "sphere":
            coefficients = [c * u.length(d) for c, u in zip(coefficients, directions, strict=True)]
        _DENSE[first.law](x, np.array(coefficients, dtype=x.dtype), _words(directions), out)
    else:
        if out is not x:
            np.copyto(out, x)
        out[first.index(d)] += x.dtype.type(coefficients[0] * first.length(d))


def _words(directions: Sequence[Direction]) -> NDArray[np.uint64]:
    """The two words of each seed, (m, 2)."""
    if len(directions) == 1:
        return directions[0].words
    return np.frombuffer(b"".join([u.words.data for u in directions]), dtype=np.uint64).reshape(-1, 2)
