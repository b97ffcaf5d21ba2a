"""A baseline: a small multi-layer perceptron on the whole series."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from provingground.config import config, par
from provingground.keys import normal, stream

from . import model
from .data import draw
from .variants import Probes, train


@config
class Config(model.Config):
    """One hidden layer."""

    hidden: int = par(32, "h", "hidden units", low=1)
    rate: float = par(0.01, r"\eta_A", "step size of Adam", low=0)


class Weights(eqx.Module):
    inner: Float[Array, "h d"]
    bias: Float[Array, "h"]
    outer: Float[Array, "h"]


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    data, d, h = draw(cfg, key), cfg.tokens, cfg.hidden
    z = normal(stream(key, "init"), (d + 1, h))
    start = Weights(z[:d].T * (2 / d) ** 0.5, jnp.zeros(h), z[d] / h**0.5)

    def network(p: Weights, x: Float[Array, "d"]) -> Float[Array, ""]:
        return p.outer @ jax.nn.relu(p.inner @ x + p.bias)

    return train(cfg, data, network, start, optax.adam(cfg.rate))
