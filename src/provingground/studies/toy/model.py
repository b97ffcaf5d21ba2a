"""Data, network and training, in the paper's order. Letters in shapes: N samples, d dimension."""

import equinox as eqx
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, mask, par, probe, size
from provingground.keys import normal, stream
from provingground.train import Optimiser, descend, log_steps


@config
class Config:
    dim: int = par(10, "d", "dimension", low=1)
    samples: int = par(40, "N", "training samples", low=1, value=True, pad=16)
    noise: float = par(1.0, r"\sigma", "label noise s.d.", low=0)
    lr: float = par(0.4, r"\eta", "step size", low=0)
    steps: int = par(300, "T", "gradient descent steps", low=11)


class Probes(eqx.Module):
    train_loss: Float[Array, "step"] = probe("training loss", "L")
    test_loss: Float[Array, ""] = probe("excess risk", r"\|w - w^*\|^2")
    step: Int[Array, "step"] = probe("gradient descent step", "t")


def simulate(cfg: Config, key: Key[Array, ""], *, optimiser: Optimiser = optax.sgd) -> Probes:
    r"""Full-batch descent on $L(w) = \frac1{2N}\|Xw - y\|^2$, $y = Xw^* + \sigma\xi$, from zero."""
    n, exists = size(cfg, "samples"), mask(cfg, "samples")
    x = normal(stream(key, "data/x"), (n, cfg.dim))
    w_star = normal(stream(key, "data/w"), (cfg.dim,)) / cfg.dim**0.5
    y = x @ w_star + cfg.noise * normal(stream(key, "data/noise"), (n,))

    def loss(w: Float[Array, "d"]) -> Float[Array, ""]:
        residual = jnp.where(exists, x @ w - y, 0.0)
        return jnp.sum(residual**2) / (2 * jnp.sum(exists).astype(w.dtype))

    trace = descend(
        loss,
        jnp.zeros(cfg.dim),
        optimiser(cfg.lr),
        steps=cfg.steps,
        at=log_steps(cfg.steps, 12),
        probe=loss,
    )
    # On standard normal inputs the excess risk of w is known: no test data are needed.
    return Probes(trace.probes, jnp.sum((trace.last - w_star) ** 2), trace.step)
