"""Effective dimension: estimated at a point, forecast from, and bounded in closed form."""

from fewdim.dimension import bounds
from fewdim.dimension.estimate import effective_dimension
from fewdim.dimension.forecast import Forecast, Prediction
from fewdim.dimension.result import EffectiveDimension, Estimate, Spectrum

__all__ = ["EffectiveDimension", "Estimate", "Forecast", "Prediction", "Spectrum", "bounds", "effective_dimension"]
