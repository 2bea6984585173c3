"""The search for lambda of large-step A-NPE: Algorithm 6 of the paper, with bisection where its doubling would loop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewdim.core import Steps, evolve, value
from fewdim.directions import Key, Vector
from fewdim.methods.inner import Inner, again, solved
from fewdim.methods.subproblem import Local
from fewdim.oracles.second_order import Floats, central_gradient, difference_radius, forward_gradient, paper_radius
from fewdim.scales import Measured, Scales

SEARCHES = 60  # solves of one search: 2^60 is as far as doubling gets, bisection ends long before
NARROW = 1.001  # ratio of the ends of a bracket that need not be made smaller
RAISES = 40  # of H in one step, after which values are too coarse for the certificate


@dataclass(frozen=True)
class LargeStepState(Measured):
    """Between two steps of `LargeStep`."""

    x: Vector  # y_k of the paper
    key: Key
    k: int = 0
    f_x: float = math.nan
    scales: Scales | None = None
    bend: float = math.nan  # size of the second derivatives along the axes
    v: Floats | None = None  # x_k of the paper
    origin: Vector | None = None  # x_0
    A: float = 0.0
    M: float = math.nan  # adaptive: M or H; paper: H
    shift: float = math.nan  # without bisection: the 1/lambda hoped for
    lam: float = math.nan  # lambda of the last step
    distance: float = math.nan  # D as given
    travelled: float = 0.0  # largest |x_k - x_0| so far
    solves: int = 0  # sub-problems solved, all steps together
    end: str = ""  # "epsilon" or "stalled"; empty while the run goes on

    @property
    def bound(self) -> float:
        """D^2/(2A): a bound of f(x) - f* for convex f, while certificates hold; D is the distance travelled, if not
        given.
        """
        D = self.travelled if math.isnan(self.distance) else self.distance
        return D**2 / (2 * self.A) if self.A > 0 else math.inf


def moved(
    s: LargeStepState, x: Vector, v: Floats, A: float, lam: float, *, f_x: float, M: float, shift: float = math.nan
) -> LargeStepState:
    """The state after a step."""
    assert s.origin is not None
    new = x.astype(s.x.dtype)
    travelled = max(s.travelled, float(np.linalg.norm(new - s.origin)))
    return evolve(s, x=new, v=v, A=A, lam=lam, f_x=f_x, M=M, shift=shift, travelled=travelled)


class Chosen(NamedTuple):
    """What the search came to."""

    lam: float
    a: float
    middle: Vector  # x~
    s: Floats  # y - x~
    solves: int


def bisected(
    s: LargeStepState, how: Inner, sigma: float, distance: float | None, iterations: int
) -> Steps[LargeStepState]:
    """One step of Algorithm 4; without the paper's constants H doubles until the certificate holds, and is halved."""
    scales, H = s.scales, s.M
    assert scales is not None
    assert s.v is not None
    for attempt in range(RAISES):
        key = (*s.key, s.k, 1, attempt)
        found = yield from _searched(s, how, sigma, H, distance, key)
        if found is None:
            return evolve(s, end="stalled")
        y = (found.middle + found.s).astype(s.x.dtype)
        delta = scales.resolution.at(s.f_x)
        if how.printed:  # Algorithm 5 to the error eps_A / a, eps_A = D / N^(3/2)
            assert distance is not None
            assert how.smoothness is not None
            error = distance / iterations**1.5 / found.a
            near = yield from forward_gradient(y, math.nan, paper_radius(error, y.size, how.smoothness))
        else:
            near = yield from central_gradient(y, math.nan, difference_radius(y, delta, s.bend))
        off = float(np.linalg.norm(found.lam * near.g + found.s))
        if not near.seen or (not how.printed and near.norm <= 2 * near.error(delta)):
            return evolve(s, end="stalled")
        if how.printed or off <= sigma * float(np.linalg.norm(found.s)):
            after = moved(
                s, y, s.v - found.a * near.g, s.A + found.a, found.lam, f_x=near.f_x, M=H if how.printed else H / 2
            )
            return evolve(after, solves=s.solves + found.solves)
        H *= 2
    return evolve(s, end="stalled")


def _searched(
    s: LargeStepState, how: Inner, sigma: float, H: float, distance: float | None, key: Key
) -> Steps[Chosen | None]:
    """Algorithm 6: lambda with 2 sigma_l/H <= lambda |y - x~| <= 2 sigma_u/H; None where there is nothing to solve."""
    assert s.v is not None
    assert s.scales is not None
    upper = sigma / 2
    lower = upper / 2
    lam = s.lam
    if math.isnan(lam):
        first = 1 / s.bend if distance is None else lower * math.sqrt(1 - sigma**2) / (16 * distance * H)
        lam = first if how.printed or distance is None else 1 / s.bend
    low, high = 0.0, math.inf
    local: Local | None = None
    for j in range(SEARCHES):
        a = (lam + math.sqrt(lam**2 + 4 * lam * s.A)) / 2
        middle = ((s.A * s.x + a * s.v) / (s.A + a)).astype(s.x.dtype)
        if local is not None and np.array_equal(middle, local.x):  # the first step: x~ does not depend on lambda
            found = yield from again(local, 1 / lam, how, s.scales, (*key, j))
        else:
            f_m = yield from value(middle)
            found = yield from solved(middle, f_m, 1 / lam, how, s.scales, s.bend, (*key, j))
        local = found.local
        reach = lam * found.length
        if found.s is not None and (2 * lower / H <= reach <= 2 * upper / H or high <= NARROW * low):
            return Chosen(lam, a, middle, found.s, j + 1)
        if found.length == 0:
            return None
        low, high = (lam, high) if reach < 2 * lower / H else (low, lam)
        lam = 2 * lam if high == math.inf else lam / 2 if low == 0 else math.sqrt(low * high)
    return None
