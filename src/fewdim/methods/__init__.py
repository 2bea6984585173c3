"""Methods by name: the one registry through which drivers know them."""

from typing import Any

from fewdim.methods.accelerated import Accelerated
from fewdim.methods.auto import Auto
from fewdim.methods.conjugate_sketch import ConjugateSketch
from fewdim.methods.heavy_ball import HeavyBall, StabilityWarning
from fewdim.methods.random_gradient import RandomGradient
from fewdim.methods.random_pursuit import RandomPursuit

METHODS: dict[str, type[Any]] = {
    "auto": Auto,
    "conjugate-sketch": ConjugateSketch,
    "random-gradient": RandomGradient,
    "random-pursuit": RandomPursuit,
    "heavy-ball": HeavyBall,
    "accelerated": Accelerated,
}


WIDE = 16  # evaluations at once from which a large batch of plain steps is done sooner than a few clever ones


def named(name: str, width: int = 1) -> type[Any]:
    """The class behind a name; "auto" is one that keeps all busy where many values can be had at once."""
    return RandomGradient if name == "auto" and width >= WIDE else METHODS[name]


def fitted(method: Any, width: int) -> Any:
    """The method with whatever it leaves to the pool (`batch="auto"`) set for `width` evaluations at once."""
    return method.fit(width) if hasattr(method, "fit") else method


__all__ = [
    "METHODS",
    "Accelerated",
    "Auto",
    "ConjugateSketch",
    "HeavyBall",
    "RandomGradient",
    "RandomPursuit",
    "StabilityWarning",
    "fitted",
    "named",
]
