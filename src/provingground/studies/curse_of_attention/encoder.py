"""Figure 1(a), with attention: a small encoder that forecasts from its last token.

A token is an hour with all its channels. Positions and the last value are switched by values, so
that all variants share one program.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from provingground.config import config, par
from provingground.keys import stream
from provingground.nets import transformer
from provingground.nets.transformer import Shape
from provingground.train import by_lane, descend

from . import hourly
from .hourly import CHANNELS, Probes, batches, schedule, scored

__all__ = ["Config", "Probes", "simulate"]


@config
class Config(hourly.Config):
    """An encoder, with or without learned positions and the last value."""

    layers: int = par(1, "l", "layers", low=1)
    heads: int = par(4, "h", "heads of attention", low=1)
    width: int = par(32, "d", "width of the residual stream", low=1)
    learned: float = par(1.0, "p", "learned positions: 0 or 1", low=0)
    skip: float = par(0.0, "s", "subtracts the last value and adds it back: 0 or 1", low=0)
    rate: float = par(0.001, r"\eta", "step size of Adam at the start", low=0)


def initial(cfg: Config, key: Key[Array, ""]) -> transformer.Weights:
    shape = Shape(
        layers=cfg.layers,
        heads=cfg.heads,
        width=cfg.width,
        hidden=2 * cfg.width,
        inputs=CHANNELS,
        outputs=cfg.horizon * CHANNELS,
        positions=cfg.look_back,
    )
    return transformer.initial_weights(shape, key)


def predict(cfg: Config, w: transformer.Weights, x: Float[Array, "L c"]) -> Float[Array, "H c"]:
    """Every hour sees every hour; the last one tells the forecast."""
    assert w.read_in is not None
    assert w.read_out is not None
    assert w.positions is not None
    last = cfg.skip * x[-1:]
    z = (x - last) @ w.read_in.T + cfg.learned * w.positions
    seen = jnp.ones((len(x), len(x)), bool)
    z, _ = jax.lax.scan(lambda z, b: transformer.block(b, z, seen), z, w.blocks)
    told = w.read_out @ transformer.layer_norm(z[-1:], w.gain)[0]
    return told.reshape(cfg.horizon, CHANNELS) + last


def simulate(cfg: Config, key: Key[Array, ""], data: Float[Array, "S T c"]) -> Probes:
    series = data[cfg.etth - 1]

    def loss(w: transformer.Weights, pair: hourly.Pair) -> Float[Array, ""]:
        x, y = pair
        found = eqx.filter_vmap(lambda past: predict(cfg, w, past))(x)
        return jnp.mean((found - y) ** 2)

    start = initial(cfg, stream(key, "init"))
    rule = optax.adam(schedule(cfg))
    w = descend(loss, start, rule, steps=cfg.steps, batch=batches(cfg, series, key)).last
    return by_lane(
        lambda w, s: scored(cfg, s, lambda x: predict(cfg, w, x), transformer.parameters(w)),
        w,
        series,
    )
