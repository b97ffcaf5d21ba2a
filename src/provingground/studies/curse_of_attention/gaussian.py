"""Theorem 5.3 alone: one neuron on Gaussian series."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import config, mask, par, probe, size
from provingground.keys import normal, stream


@config
class Config:
    """A Gaussian series and one neuron."""

    tokens: int = par(8, "d", "length of the series", low=2, value=True, pad=16)
    samples: int = par(20_000, "n", "Gaussian series", low=1)
    scale: float = par(1.0, r"\sigma'", "s.d. of the series", low=0)


class Probes(eqx.Module):
    attention: Float[Array, "weight"] = probe("attention on the last step", r"d\,E S_d")
    weight: Float[Array, "weight"] = probe("weight", "w")


WEIGHTS = (-20.0, -10.0, -5.0, -3.0, -2.0, -1.0, -0.5, -0.2, -0.05,
           0.05, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)  # fmt: skip


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""$d\,E S_d$ for $x \sim N(0, \sigma'^2 I_d)$; the last step is drawn first."""
    x = cfg.scale * normal(stream(key, "data"), (size(cfg, "tokens"), cfg.samples))
    exists = mask(cfg, "tokens")[:, None]

    def last(w: Float[Array, ""]) -> Float[Array, ""]:
        s = jax.nn.softmax(jnp.where(exists, w * x[:1] * x, -jnp.inf), axis=0)
        return jnp.sum(exists).astype(s.dtype) * jnp.mean(s[0])

    weights = jnp.array(WEIGHTS)
    return Probes(jax.lax.map(last, weights), weights)
