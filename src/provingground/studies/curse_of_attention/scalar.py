"""Section 7.2: variants of the paper's own network.

Variants are switched by values, so that all variants share one program: a switch at zero takes its
weights out of the output, and with it their gradient.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from provingground.config import config, par
from provingground.keys import normal, stream
from provingground.nets import attention
from provingground.train import by_lane

from . import model
from .data import draw
from .model import attend, initial, tangent
from .variants import Probes, train


@config
class Config(model.Config):
    """The paper's network and what may be added to it."""

    width: int = par(64, "m", "neurons (in pairs)", low=2)
    adam: float = par(1.0, "U", "Adam (1) or gradient descent (0)", low=0)
    rate: float = par(0.02, r"\eta_A", "step size of Adam", low=0)
    decay: float = par(0.0, r"\lambda_w", "weight decay", low=0)
    read_out: float = par(0.0, r"\dot a", "trains the read-out: 0 or 1", low=0)
    second: float = par(0.0, r"\lambda", "second attention, subtracted: 0 or 1", low=0)
    position: float = par(0.0, "b", "trains a bias of logits by position: 0 or 1", low=0)
    skip: float = par(0.0, "s", "adds the last value: 0 or 1", low=0)


class Weights(eqx.Module):
    w: Float[Array, "m"]
    other: Float[Array, "m"]
    a: Float[Array, "m"]  # moves of the read-out
    bias: Float[Array, "m d"]
    share: Float[Array, ""]


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    data = draw(cfg, key)
    w_0, a_0 = initial(cfg, key)
    other = jnp.tile(normal(stream(key, "init/other"), (cfg.width // 2,)), 2)
    start = Weights(
        w_0, other, jnp.zeros_like(w_0), jnp.zeros((len(w_0), cfg.tokens)), jnp.array(0.5)
    )

    def network(p: Weights, x: Float[Array, "d"]) -> Float[Array, ""]:
        values = jnp.broadcast_to(x[None, :], p.bias.shape)
        logits = x[-1] * jnp.outer(p.w, x) + cfg.position * p.bias
        g = attention.differential(
            logits, x[-1] * jnp.outer(p.other, x), cfg.second * p.share, values
        )
        return (a_0 + cfg.read_out * p.a) @ g / len(g) ** 0.5 + cfg.skip * x[-1]

    h = tangent(data.x, attend(w_0, data.x)[1], a_0, data.exists)
    lr = cfg.lr / by_lane(jnp.linalg.eigvalsh, h)[-1]
    other_rule = optax.adamw(cfg.rate, weight_decay=cfg.decay)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        moved, state = other_rule.update(updates, state, params)
        chosen = jax.tree.map(lambda m, g: jnp.where(cfg.adam > 0, m, -lr * g), moved, updates)
        return chosen, state

    rule = optax.GradientTransformation(other_rule.init, update)
    return train(cfg, data, network, start, rule)
