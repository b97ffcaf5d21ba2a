"""The tangent kernel at the start: no training."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import mask, probe
from provingground.maths import kernels
from provingground.train import by_lane

from .data import next_coefs, train_pair
from .model import Config, attend, initial, tangent

__all__ = ["Config", "Probes", "simulate"]


class Probes(eqx.Module):
    kernel_min: Float[Array, ""] = probe("smallest eigenvalue of H(0)", r"\lambda_{\min}")
    kernel_max: Float[Array, ""] = probe("largest eigenvalue of H(0)", r"\lambda_{\max}")
    spread_min: Float[Array, ""] = probe("smallest variance within a series", r"v_{\min}")


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """The spectrum of $H(0)$, and $v_{\\min}$ of Theorem 5.2."""
    x, _ = train_pair(cfg, next_coefs(cfg, key), key)
    exists = mask(cfg, "samples")
    w, a = initial(cfg, key)
    spread = jnp.where(exists, x.var(axis=1), jnp.inf).min()
    h = tangent(x, attend(w, x)[1], a, exists)
    smallest, largest = by_lane(kernels.extremes, h, exists)
    return Probes(smallest, largest, spread)
