"""Success maps laid out for the largest sizes: one program for a whole map, which suits a GPU."""

from provingground.config import config, par

from . import map as small
from .map import Probes, simulate

__all__ = ["Config", "Probes", "simulate"]


@config
class Config(small.Config):
    """As `map.Config`, with room for more dimensions and samples."""

    dim: int = par(5, "d", "feature dimension", low=1, value=True, pad=20)
    samples: int = par(4000, "n", "training samples", low=2, value=True, pad=16_000)
