"""The training as written: all weights, by automatic differentiation. `model` has the rest."""

from typing import Any

import equinox as eqx
import jax
import optax
from jaxtyping import Array, Float, Key

from provingground.config import mask, size
from provingground.keys import stream
from provingground.nets.losses import logistic
from provingground.train import Activation, Optimiser, descend, log_steps

from .model import (
    Config,
    Probes,
    Weights,
    labels,
    mean_over,
    measure,
    network,
    report,
    token_scale,
    unit_noise,
    unit_tokens,
    unit_weights,
)


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    *,
    attention: Activation = jax.nn.softmax,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """Full-batch gradient descent on $W_Q, W_K, W_V$ as written, by automatic differentiation."""
    n, exists = size(cfg, "samples"), mask(cfg, "samples")
    scale = token_scale(cfg)[None, :, None]
    y = labels(cfg, stream(key, "data/label"), n)
    x = unit_tokens(y, unit_noise(cfg, stream(key, "data/noise"), n)) * scale
    w = unit_weights(cfg, key)
    c = cfg.init_scale
    weights = Weights(c * w.w_q, c * w.w_k, c * w.w_v, w.w_o)

    def outputs(w: Weights, x: Float[Array, "n M d"]) -> tuple[Array, Array]:
        return jax.vmap(lambda x: network(w, x, attention))(x)

    def loss(w: Weights) -> Float[Array, ""]:
        f, _ = outputs(w, x)
        return mean_over(exists, logistic(y, f))

    def slow_attention(g: Any, _: Any) -> Any:
        return eqx.tree_at(lambda g: (g.w_q, g.w_k), g, replace_fn=lambda m: cfg.attention_rate * m)

    trace = descend(
        loss,
        weights,
        optax.chain(optax.stateless(slow_attention), optimiser(cfg.lr)),
        steps=cfg.steps,
        at=log_steps(cfg.steps, cfg.record),
        until=lambda value, _: value <= cfg.eps,
        frozen=lambda w: w.w_o,
        probe=lambda w: measure(y, exists, x @ w.w_q, x @ w.w_k, x @ (w.w_v @ w.w_o), attention),
    )
    y_test = labels(cfg, stream(key, "test/label"), cfg.test_samples)
    z_test = unit_noise(cfg, stream(key, "test/noise"), cfg.test_samples)
    f, _ = outputs(trace.last, unit_tokens(y_test, z_test) * scale)
    return report(trace, w.w_o, y_test, f)
