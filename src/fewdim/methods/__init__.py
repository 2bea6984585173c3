"""Methods by name: the one registry through which drivers know them."""

from typing import Any

from fewdim.methods.accelerated import Accelerated
from fewdim.methods.heavy_ball import HeavyBall, StabilityWarning
from fewdim.methods.random_gradient import RandomGradient
from fewdim.methods.random_pursuit import RandomPursuit

METHODS: dict[str, type[Any]] = {
    "auto": RandomPursuit,
    "random-gradient": RandomGradient,
    "random-pursuit": RandomPursuit,
    "heavy-ball": HeavyBall,
    "accelerated": Accelerated,
}


def named(name: str, width: int = 1) -> type[Any]:
    """The class behind a name; "auto" is one that asks for many values at once where more than two can be had."""
    return RandomGradient if name == "auto" and width > 2 else METHODS[name]


def fitted(method: Any, width: int) -> Any:
    """The method with whatever it leaves to the pool (`batch="auto"`) set for `width` evaluations at once."""
    return method.fit(width) if hasattr(method, "fit") else method


__all__ = [
    "METHODS",
    "Accelerated",
    "HeavyBall",
    "RandomGradient",
    "RandomPursuit",
    "StabilityWarning",
    "fitted",
    "named",
]
