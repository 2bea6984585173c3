"""Oracles of the paper as transformers of a `Steps`: from a generator that queries one function to one that queries
another.  `Through(method, oracle)` is the method that sees f through the oracle; drivers see f itself.
"""

from fewdim.oracles.noise import AdversarialNoise, GaussianNoise, UniformNoise
from fewdim.oracles.second_order import SecondOrderModel
from fewdim.oracles.surrogate import Surrogate
from fewdim.oracles.through import Oracle, Through

__all__ = ["AdversarialNoise", "GaussianNoise", "Oracle", "SecondOrderModel", "Surrogate", "Through", "UniformNoise"]
