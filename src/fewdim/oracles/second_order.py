"""What values tell about f to second order around x: gradient, Hessian-vector products, the whole model, and the model
as an oracle (Algorithm 3 of the paper, ASOE).

    gradient            (f(x + r e_i) - f(x - r e_i)) / 2r                        2d values, or d forward (Algorithm 5)
    product             A u from f(x + a u + r e_i), f(x + a u), f(x + r e_i)     d + 1 values beside the gradient's
    dense model         gradient and Hessian                                      1 + 2d + d(d-1)/2 values
    model value         f + g's + s'As/2 at s = y - x                             2 values beside f(x), or 4 as printed
    slope of the model  u'(g + As), with g known                                  2 values

Each is one query, so that a pool of any width is kept busy.  A missing value is asked again a few times; what is
missing then counts as no change of f, which makes the model poorer, and those who step by it test their steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewdim.core import Delegate, Offset, Query, Steps, T, Values
from fewdim.directions import Along, Key, Vector, axis, perturb
from fewdim.lines import Reach, Resolution, insisted, scale_of
from fewdim.methods.settings import check_choice, check_level, check_positive

Floats = NDArray[np.float64]
TRIES = 5  # for values that fail at random: 0.3^5 is 0.2 %
EXACT = Resolution()
APART = 16  # how much farther a product looks along its vector than along the axes


# --------------------------------------------------------------------------------------------------------------- radii
def difference_radius(x: Vector, delta: float, bend: float) -> float:
    """Where the error of a value over r meets the third order: r^3 = 3 delta / f''', f''' taken for `bend` over |x|.

    `bend` is the size of the second derivative along an axis.  At least sqrt(round-off) |x|, so that the step from x is
    known to half the digits, and a power of 2, so that x + r e_i is mostly met exactly.
    """
    reach = Reach.of(x)
    wanted = math.cbrt(3 * delta / bend * reach.high) if bend > 0 else reach.high
    least = math.sqrt(float(np.finfo(x.dtype).eps)) * scale_of(x)
    r = reach.clip(max(min(wanted, 0.1 * reach.high), least))
    return math.ldexp(0.5, math.frexp(r)[1])


def paper_radius(error: float, d: int, smoothness: float) -> float:
    """Rho of Algorithm 5 for a gradient with this error; 2 error / (sqrt(d) L) would do."""
    return 2 * error / (d * smoothness)


# --------------------------------------------------------------------------------------------- gradient, product, model
class Gradient(NamedTuple):
    """A gradient by differences and what was seen on the way; `bends` are nan after forward differences."""

    g: Floats
    f_x: float
    ahead: Floats  # f(x + r e_i)
    bends: Floats  # second derivatives along the axes
    radius: float
    seen: int  # components that were had

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.g))

    def error(self, delta: float) -> float:
        """What values good to delta leave uncertain in the norm of g."""
        return math.sqrt(self.g.size) * delta / self.radius


def central_gradient(x: Vector, f_x: float, radius: float) -> Steps[Gradient]:
    """2d values, and f(x) when `f_x` is nan; a component with one side missing is taken from the other."""
    d, r = x.size, radius
    both: tuple[Offset, ...] = (*(r * axis(i) for i in range(d)), *(-r * axis(i) for i in range(d)))
    unknown = math.isnan(f_x)
    told = yield from insisted(Query(x, (None, *both) if unknown else both), tries=TRIES)
    f_x, told = (float(told[0]), told[1:]) if unknown else (f_x, told)
    ahead, behind = told[:d], told[d:]
    g, bends = (ahead - behind) / (2 * r), (ahead - 2 * f_x + behind) / r**2
    g = np.where(np.isnan(g), np.where(np.isnan(ahead), f_x - behind, ahead - f_x) / r, g)
    seen = int(np.count_nonzero(~np.isnan(g)))
    return Gradient(np.nan_to_num(g), f_x, np.where(np.isnan(ahead), f_x, ahead), bends, r, seen)


def forward_gradient(x: Vector, f_x: float, radius: float) -> Steps[Gradient]:
    """Algorithm 5: d values, and f(x) when `f_x` is nan; off by half the second derivative times the radius."""
    d, r = x.size, radius
    axes: tuple[Offset, ...] = tuple(r * axis(i) for i in range(d))
    unknown = math.isnan(f_x)
    told = yield from insisted(Query(x, (None, *axes) if unknown else axes), tries=TRIES)
    f_x, ahead = (float(told[0]), told[1:]) if unknown else (f_x, told)
    g = (ahead - f_x) / r
    seen = int(np.count_nonzero(~np.isnan(g)))
    return Gradient(np.nan_to_num(g), f_x, np.where(np.isnan(ahead), f_x, ahead), np.full(d, math.nan), r, seen)


def product(x: Vector, near: Gradient, u: Floats) -> Steps[Floats]:
    """A u for a unit vector u, by d + 1 values: the change of the forward differences from x to x + a u.

    nan where a value is missing.
    """
    r, a = near.radius, APART * near.radius
    moved = perturb(x, a, u.astype(x.dtype))
    told = yield from insisted(Query(moved, (None, *(r * axis(i) for i in range(x.size)))), tries=TRIES)
    return np.asarray((told[1:] - told[0] - (near.ahead - near.f_x)) / (a * r))


def dense_model(x: Vector, f_x: float, radius: float) -> Steps[tuple[Gradient, Floats]]:
    """Gradient and Hessian from one query of 2d + d(d-1)/2 values, and f(x) when `f_x` is nan.

    The Hessian is nan where a value is missing.
    """
    d, r = x.size, 4 * radius  # second differences want a larger radius; central slopes stand it
    first, second = np.triu_indices(d, 1)
    offsets: list[Offset] = [None] if math.isnan(f_x) else []
    offsets += [*(r * axis(i) for i in range(d)), *(-r * axis(i) for i in range(d))]
    pairs = np.zeros((first.size, d), x.dtype)
    pairs[np.arange(first.size), first], pairs[np.arange(first.size), second] = r, -r
    offsets += list(pairs)
    told = yield from insisted(Query(x, tuple(offsets)), tries=TRIES)
    f_x, told = (float(told[0]), told[1:]) if math.isnan(f_x) else (f_x, told)
    ahead, behind, mixed = told[:d], told[d : 2 * d], told[2 * d :]
    g, bends = (ahead - behind) / (2 * r), (ahead - 2 * f_x + behind) / r**2
    A = np.diag(bends)
    A[first, second] = A[second, first] = (ahead[first] + behind[second] - mixed - f_x) / r**2
    seen = int(np.count_nonzero(~np.isnan(g)))
    return Gradient(np.nan_to_num(g), f_x, np.where(np.isnan(ahead), f_x, ahead), bends, r, seen), A


def model_slope(x: Vector, g: Floats, s: Floats, u: Floats, radius: float) -> Steps[float]:
    """u'(g + As), the slope of the model at x + s along u, by 2 values: no difference of model values, no bias."""
    length = float(np.linalg.norm(s))
    along = float(g @ u)
    if length == 0:
        yield from ()
        return along
    a, b = radius / length, radius / float(np.linalg.norm(u))
    moved = perturb(x, a, s.astype(x.dtype))
    v = u.astype(x.dtype)
    plus, minus = yield from insisted(Query(moved, (Along(b, v), Along(-b, v))), tries=TRIES)
    return float(np.nan_to_num(along + ((plus - minus) / (2 * b) - along) / a))


# ------------------------------------------------------------------------------------------------------ model as oracle
@dataclass(frozen=True, eq=False)
class SecondOrderModel:
    r"""Algorithm 3, ASOE: values of the second-order model of f at `center`, plus shift/2 |y - center|^2.

    .. math:: f(x) + \frac{f_+ - f_-}{2t} + \frac{f_+ + f_- - 2 f(x)}{2 t^2}, \quad f_\pm = f(x \pm t (y - x))

    "sane", the default, asks for 2 values a point (and once for f(center), if `f_center` is nan) with
    t = min(1, tau / |y - x|), tau^4 = 24 delta: the error of a value against a fourth derivative of order 1.
    "paper" asks for the printed four, with t = delta / (L r^2) for the slope and delta / (2 H r^3) for the curvature,
    r = |y - x|: it needs `smoothness` L, `hessian_lipschitz` H and `error` delta.  The paper prints delta^2 in one of
    the four, a misprint; t is at most 1 (the printed one leaves the segment for small r); at r = 0 the value is f.
    """

    center: Vector
    constants: Literal["sane", "paper"] = "sane"
    shift: float = 0.0
    f_center: float = math.nan
    smoothness: float | None = None
    hessian_lipschitz: float | None = None
    error: float | None = None
    resolution: Resolution = EXACT

    def __post_init__(self) -> None:
        check_choice(self, ("sane", "paper"), constants=self.constants)
        check_level(self, shift=self.shift)
        check_positive(self, smoothness=self.smoothness, hessian_lipschitz=self.hessian_lipschitz, error=self.error)
        if self.constants == "paper" and None in (self.smoothness, self.hessian_lipschitz, self.error):
            raise ValueError(
                'SecondOrderModel(constants="paper") needs smoothness=, hessian_lipschitz= and error=; got '
                f"{self.smoothness}, {self.hessian_lipschitz}, {self.error}."
            )

    def __call__(self, steps: Steps[T], key: Key) -> Steps[T]:
        delegate: Any = _Modelled(steps, self)
        result: T = yield from delegate
        return result

    def fractions(self, r: float, f_x: float) -> tuple[float, float]:
        """How far along the segment to look for the slope and for the curvature, as fractions of its length r."""
        if self.constants == "sane":
            t = min(1.0, (24 * self.resolution.at(f_x)) ** 0.25 / r)
            return t, t
        L, H, delta = self.smoothness, self.hessian_lipschitz, self.error
        assert L is not None
        assert H is not None
        assert delta is not None
        return min(1.0, delta / (L * r**2)), min(1.0, delta / (2 * H * r**3))


class _Modelled(Delegate[T]):
    """Queries of the model turned into queries of f, one for one, and values of f into values of the model."""

    def __init__(self, steps: Steps[T], model: SecondOrderModel) -> None:
        super().__init__(steps)
        self.model, self.f_center = model, model.f_center
        self.segments: list[tuple[Floats, float]] = []  # y - center and its length
        self.asked_center = False

    def advance(self, values: Values | None) -> Query:
        told = None if values is None else self._told(values)
        query = super().advance(told)
        center = self.model.center
        segments = [np.asarray(query.point(i), np.float64) - center for i in range(len(query))]
        self.segments = [(s, float(np.linalg.norm(s))) for s in segments]
        return Query(center, tuple(self._offsets()))

    def _offsets(self) -> Iterator[Offset]:
        paper, dtype = self.model.constants == "paper", self.model.center.dtype
        self.asked_center = not paper and (math.isnan(self.f_center) or not any(r > 0 for _, r in self.segments))
        if self.asked_center:
            yield None
        for s, r in self.segments:
            if paper:
                yield None
            if r > 0:
                slope, bend = self.model.fractions(r, self._size())
                v = s.astype(dtype)
                if paper:
                    yield Along(slope, v)
                yield Along(bend, v)
                yield Along(-bend, v)

    def _size(self) -> float:
        return 1.0 if math.isnan(self.f_center) else self.f_center

    def _told(self, values: Values) -> Values:
        left, size = iter(values.tolist()), self._size()  # the size with which the offsets were chosen
        if self.asked_center:
            self.f_center = next(left)
        return np.array([self._value(r, left, size) for _, r in self.segments])

    def _value(self, r: float, left: Iterator[float], size: float) -> float:
        """The model at distance r from the next values of f."""
        paper = self.model.constants == "paper"
        f = next(left) if paper else self.f_center
        if r == 0:
            return f
        slope, bend = self.model.fractions(r, size)
        first = (next(left) - f) / slope if paper else 0.0
        plus, minus = next(left), next(left)
        first = first if paper else (plus - minus) / (2 * bend)
        return f + first + (plus + minus - 2 * f) / (2 * bend**2) + 0.5 * self.model.shift * r**2
