"""The minimiser for any number of neurons, which is a mere number: one program serves all."""

from provingground.config import config, par

from . import model
from .model import Probes, simulate

__all__ = ["Config", "Probes", "simulate"]


@config
class Config(model.Config):
    """As `data.Config`, laid out for the largest number of neurons."""

    width: int = par(3, "K", "neurons", low=1, value=True, pad=4)
