"""Folded: a first descent in which coordinates that start equal, and that f treats alike, move together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewdim.core import Delegate, Method, Query, Steps, Values, evolve, step
from fewdim.directions import Key, Vector, axis, perturb, signs
from fewdim.lines import ROUND_OFF, Reach, insisted_value, scale_of
from fewdim.methods.story import AutoState, Classes, FoldedState
from fewdim.scales import start_value

LEAST = 31  # coordinates: for fewer, a descent in some of them costs as much as one in all
KINDS = 5  # different values that x may have
SAMPLE = 64  # coordinates that tell at once where it has more
APART = 1e-2  # of the scale of x: how far single coordinates are moved to see whether they are alike
SAME = 10  # round-offs of f that two changes may differ by
SEEN = 1e-3  # of a change: that must be less
LITTLE = 1e-6  # of the decrease so far: if the second half of the values brings less, the descent is over
LONGEST, MOST = 5, 1000  # values for each coordinate, and values, after which it is over
LOST = 4  # missing values that are no more than bad luck; beyond, a quarter of them is too many
PARTED = 1e-4  # of the scale of x0: how far equal coordinates are moved apart where the descent ends


@dataclass(frozen=True)
class Folded:
    """A run of another method in one variable for each class of coordinates, as long as it goes down.

    A class is the coordinates that x0 has the same value of, the first and the last apart: many a function of a chain,
    a grid or a sum treats all of them alike but for those at its ends.  Whether it does, two values tell, and one more
    if they agree: f changes by the same amount along three members of the largest class, to its last digits.  If not
    the descent is over before it began.

    It ends at the lowest point found when the second half of its values brought less than 1e-6 of the decrease, when
    its method finds no lower value, when many values are missing, or after 5d or 1000 of them.  What it leaves is a
    better start at the price of a problem of a few dimensions, and the coordinates are moved apart by 1e-4 of the scale
    of x0: with equal ones a saddle of f may look like a minimum.  Nothing is assumed of f from there on.
    """

    method: Method[AutoState]

    def start(self, x: Vector, key: Key) -> FoldedState:
        return FoldedState(x, key, classes=classes_in(x), scale=scale_of(x))

    def done(self, state: FoldedState) -> bool:
        return state.over

    def step(self, state: FoldedState) -> Steps[FoldedState]:
        s = evolve(state, k=state.k + 1)
        if s.inner is None or s.classes is None:
            return (yield from self._looked(s))
        unfolded = _Unfolded(step(self.method, s.inner), s.classes)
        generator: Any = unfolded
        inner: AutoState = yield from generator
        if inner.inner.f_x < s.f_x:
            s = evolve(s, x=inner.x[s.classes], f_x=inner.inner.f_x)
        s, why = evolve(s, inner=inner, lost=s.lost + unfolded.lost), inner.story[-1].why
        over = why in ("stuck", "noise") or s.lost > LOST + inner.nfev // 4
        over = over or inner.nfev >= min(LONGEST * s.x.size, MOST)
        if inner.nfev < 2 * s.mark[0] or why == "doubt":
            return evolve(s, over=over)
        return evolve(s, over=over or s.mark[1] - s.f_x <= LITTLE * (s.first - s.f_x), mark=(inner.nfev, s.f_x))

    def _looked(self, s: FoldedState) -> Steps[FoldedState]:
        """The value at x, and whether its coordinates are alike."""
        f_x, classes = (yield from start_value(s.x)), s.classes
        s = evolve(s, f_x=f_x, first=f_x)
        if classes is None or not (yield from _alike(s.x, f_x, classes)):
            return evolve(s, over=True)
        z = s.x[np.unique(classes, return_index=True)[1]]
        inner = self.method.start(z, (*s.key, 0))
        inner = evolve(inner, last=evolve(inner.inner, f_x=f_x), cheap=True)
        return evolve(s, inner=inner, mark=(2 * z.size, f_x))


def apart(folded: FoldedState) -> Steps[tuple[Vector, float]]:
    """Where the descent has ended, equal coordinates a little apart, and f there; not apart where f has no value."""
    x = perturb(folded.x, PARTED * folded.scale, signs((*folded.key, 1)))
    f_x = yield from insisted_value(x, 2)
    return (folded.x, folded.f_x) if math.isnan(f_x) else (x, f_x)


def classes_in(x: Vector) -> Classes | None:
    """The class of each coordinate: those of equal value, the first and the last apart; None where they are not few."""
    if x.size < LEAST or np.unique(x[:SAMPLE]).size > KINDS:
        return None
    classes, kind = np.full(x.size, -1, dtype=np.int8), 0
    while classes.min() < 0 and kind < KINDS:
        classes[x == x[int(np.argmin(classes))]] = kind
        kind += 1
    if classes.min() < 0:
        return None
    classes[0], classes[-1] = kind, kind + 1
    return np.unique(classes, return_inverse=True)[1].astype(np.int8)  # a class may have lost its only member


def _alike(x: Vector, f_x: float, classes: Classes) -> Steps[bool]:
    """Whether f changes alike along members of the largest class: two far apart and, if so, one beside the first."""
    members = np.flatnonzero(classes == int(np.argmax(np.bincount(classes))))
    n, radius = members.size, Reach.of(x).clip(APART * scale_of(x))
    one, far, beside = (axis(int(members[i])) for i in (2 * n // 5, 4 * n // 5, 2 * n // 5 + 1))
    f_one, f_far = yield Query(x, (radius * one, radius * far))
    if not _same(f_x, float(f_one), float(f_far)):
        return False
    (f_beside,) = yield Query(x, (radius * beside,))
    return _same(f_x, float(f_one), float(f_beside))


def _same(f_x: float, one: float, two: float) -> bool:
    """Whether two values are the same but for round-off, and clearly another than f_x."""
    error = SAME * ROUND_OFF * max(abs(f_x), abs(one))
    return abs(one - two) <= error < SEEN * abs(one - f_x)


class _Unfolded(Delegate[AutoState]):
    """Steps in one variable for each class, asked for in all coordinates."""

    def __init__(self, steps: Steps[AutoState], classes: Classes) -> None:
        super().__init__(steps)
        self.classes, self.lost = classes, 0

    def advance(self, values: Values | None) -> Query:
        if values is not None:
            self.lost += int(np.isnan(values).sum())
        query, classes = super().advance(values), self.classes
        z = query.origin
        moved = (None if offset is None else (query.point(i) - z)[classes] for i, offset in enumerate(query.offsets))
        return Query(z[classes], tuple(moved))
