"""Training of all $2d \\times 2d$ weights, as written."""

from jaxtyping import Array, Key

from .data import Config
from .network import full
from .training import Probes, train_alone

__all__ = ["Config", "Probes", "simulate"]


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """The training of `training.simulate` in all coordinates."""
    return train_alone(cfg, key, full(cfg), (slice(None), slice(None)))
