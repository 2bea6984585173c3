"""Methods by name: the one registry through which drivers know them."""

from typing import Any

from fewdim.box import Box
from fewdim.methods.accelerated import Accelerated
from fewdim.methods.auto import Auto
from fewdim.methods.conjugate_sketch import ConjugateSketch
from fewdim.methods.cubic import Cubic
from fewdim.methods.heavy_ball import HeavyBall, StabilityWarning
from fewdim.methods.large_step import LargeStep
from fewdim.methods.noisy_gradient import NoisyGradient
from fewdim.methods.projected import ProjectedNewton
from fewdim.methods.quadratic_model import QuadraticModel
from fewdim.methods.quasi_newton import QuasiNewton
from fewdim.methods.random_gradient import RandomGradient
from fewdim.methods.random_pursuit import RandomPursuit
from fewdim.methods.repeated import Repeated
from fewdim.methods.settings import changed, settings

METHODS: dict[str, type[Any]] = {
    "auto": Auto,
    "conjugate-sketch": ConjugateSketch,
    "quasi-newton": QuasiNewton,
    "quadratic-model": QuadraticModel,
    "noisy-gradient": NoisyGradient,
    "random-gradient": RandomGradient,
    "random-pursuit": RandomPursuit,
    "heavy-ball": HeavyBall,
    "accelerated": Accelerated,
    "large-step": LargeStep,
    "cubic": Cubic,
}


def fitted(method: Any, width: int, budget: int | None = None) -> Any:
    """The method with what it leaves to the run: batch and sketch for `width` evaluations at once, and the budget."""
    method = method.fit(width) if hasattr(method, "fit") else method
    return changed(method, budget=budget) if isinstance(method, Auto) and method.budget is None else method


def bounded(method: Any, box: Box | None) -> Any:
    """The method as it goes about bounds: knowing them, or, as most do, on variables that have none."""
    if box is None:
        return method
    flat = box.flat
    if isinstance(method, Auto):
        return changed(method, box=flat)
    return ProjectedNewton(**settings(method), box=flat) if type(method) is QuasiNewton else method


__all__ = [
    "METHODS",
    "Accelerated",
    "Auto",
    "ConjugateSketch",
    "Cubic",
    "HeavyBall",
    "LargeStep",
    "NoisyGradient",
    "QuadraticModel",
    "QuasiNewton",
    "RandomGradient",
    "RandomPursuit",
    "Repeated",
    "StabilityWarning",
    "bounded",
    "fitted",
]
