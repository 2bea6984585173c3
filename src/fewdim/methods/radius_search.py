"""The search for the length of a cubic step: Algorithm 9 of the paper, repaired."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fewdim.core import Steps, evolve, value
from fewdim.directions import Key, Vector
from fewdim.methods.inner import Inner, Solved, solved
from fewdim.methods.subproblem import Local, length_of
from fewdim.scales import Measured, Scales

SEARCHES = 200  # solves of one search
SHORT = 0.99  # a step shorter than this part of r, where r cannot be less, is the hard case


@dataclass(frozen=True)
class CubicState(Measured):
    """Between two steps of `Cubic`."""

    x: Vector
    key: Key
    k: int = 0
    f_x: float = math.nan
    scales: Scales | None = None
    bend: float = math.nan  # size of the second derivatives along the axes
    epsilon: float = math.nan
    M: float = math.nan  # of the cubic term
    radius: float = math.nan  # r, the length of the last step
    gradient: float = math.nan  # norm at the point that the last step started from
    lowest: float = math.nan  # smallest eigenvalue seen there
    hard: int = 0  # steps along negative curvature that the gradient did not show
    end: str = ""  # "stationary" or "stalled"; empty while the run goes on


def searched(s: CubicState, how: Inner, local: Local | None) -> Steps[CubicState]:
    """One round of Algorithm 8: bracket r by doubling and halving, bisect, step; |s| = r where the cubic step is.

    With `local` the model at x is known; without, each r is solved from nothing.
    """
    H = s.M
    width = math.sqrt(s.epsilon / (40_000 * H))  # eps_D
    r = length_of(s.x) if math.isnan(s.radius) else s.radius
    low, high = 0.0, math.inf
    for j in range(SEARCHES):
        if low > 0 and high < math.inf:
            if high - low < width:
                break
            r = (low + high) / 2
        elif high < width:
            break
        found = yield from _solved(s, how, local, r, (*s.key, s.k, 2, j))
        if found.length <= r:
            high, r = r, r / 2
        else:
            low, r = r, 2 * r
    r = high
    found = yield from _solved(s, how, local, r, (*s.key, s.k, 2, SEARCHES))
    if r == math.inf or found.s is None:
        return evolve(s, k=s.k + 1, end="stalled")
    step, hard = found.s, False
    if local is not None and found.length < SHORT * r and r > width:  # A + (rH/2) I is singular: the hard case
        step, hard = step + math.sqrt(r**2 - found.length**2) * local.direction(), True
    x: Vector = (s.x + step).astype(s.x.dtype)
    f_n = yield from value(x)
    end = "stationary" if r <= 2 / 3 * math.sqrt(s.epsilon / H) else ""
    if math.isnan(f_n) or not np.any(x != s.x):
        return evolve(s, k=s.k + 1, radius=r, end=end or "stalled")
    return evolve(s, k=s.k + 1, x=x, f_x=f_n, radius=r, hard=s.hard + hard, end=end)


def _solved(s: CubicState, how: Inner, local: Local | None, r: float, key: Key) -> Steps[Solved]:
    """The sub-problem with penalty (rH/4)|y - x|^2."""
    if r == math.inf:
        return Solved(None)
    assert s.scales is not None
    shift = r * s.M / 2
    if local is None:
        return (yield from solved(s.x, s.f_x, shift, how, s.scales, s.bend, key))
    trial = local.shifted(shift)
    return Solved(None if trial is None else trial.s, local)
