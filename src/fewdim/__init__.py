"""fewdim: minimise black boxes of very many parameters from values alone, at the cost of the dimensions that matter."""

from fewdim import dimension, oracles, problems, theory
from fewdim.certify import Certificate, certify
from fewdim.command import CommandError, command
from fewdim.core import FAILED, Method, Query, State, Steps, Values, run
from fewdim.dimension import EffectiveDimension, effective_dimension
from fewdim.directions import Along, Direction, accumulate, axis, coordinate, gaussian, perturb, signs, sphere
from fewdim.journal import Journal
from fewdim.loop import EvaluationError, History
from fewdim.methods import (
    METHODS,
    Accelerated,
    Auto,
    ConjugateSketch,
    Cubic,
    HeavyBall,
    LargeStep,
    NoisyGradient,
    QuadraticModel,
    QuasiNewton,
    RandomGradient,
    RandomPursuit,
    Repeated,
    StabilityWarning,
)
from fewdim.minimize import minimize, scipy_method
from fewdim.rows import JournalError
from fewdim.session import Session

__version__ = "0.1.0"

__all__ = [
    "FAILED",
    "METHODS",
    "Accelerated",
    "Along",
    "Auto",
    "Certificate",
    "CommandError",
    "ConjugateSketch",
    "Cubic",
    "Direction",
    "EffectiveDimension",
    "EvaluationError",
    "HeavyBall",
    "History",
    "Journal",
    "JournalError",
    "LargeStep",
    "Method",
    "NoisyGradient",
    "QuadraticModel",
    "QuasiNewton",
    "Query",
    "RandomGradient",
    "RandomPursuit",
    "Repeated",
    "Session",
    "StabilityWarning",
    "State",
    "Steps",
    "Values",
    "accumulate",
    "axis",
    "certify",
    "command",
    "coordinate",
    "dimension",
    "effective_dimension",
    "gaussian",
    "minimize",
    "oracles",
    "perturb",
    "problems",
    "run",
    "scipy_method",
    "signs",
    "sphere",
    "theory",
]
