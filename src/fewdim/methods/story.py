"""The story of a run of `Auto`: which engine took over when, and why, in words."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """An engine takes over: after how many values, which, why, and f_x then."""

    nfev: int
    engine: str
    why: str
    f_x: float


NAMES = {
    "model": "quadratic model",
    "sketch": "conjugate sketch",
    "newton": "quasi-Newton",
    "gradient": "random gradient",
    "pursuit": "random pursuit",
}
WHY = {
    "small": "in few dimensions a look along each axis is cheap",
    "exact": "values are exact, and in few dimensions a full gradient is cheap",
    "noisy": "values are noisy, and in few dimensions a model fits many of them",
    "start": "a sketch of the gradient goes furthest on few values",
    "even": "curvature is spread evenly over all dimensions",
    "trial": "on trial",
    "worth": "its step gained more an evaluation",
    "lost": "the trial gained less an evaluation",
    "as dear": "a sketched step had come to cost as much as a gradient",
    "stuck": "the engine before it found no lower value",
    "noise": "the noise had come to hide the decreases",
    "flat": "slopes had sunk into the round-off of values, as at a stationary point",
    "kink": "no step went down though slopes were clear, as at a kink or a jump: stagnation",
}


def told(story: tuple[Change, ...]) -> str:
    """Which engines ran, from which value on, and why."""
    return "; ".join(f"{NAMES[c.engine]} from evaluation {c.nfev + 1} ({WHY[c.why]})" for c in story)
