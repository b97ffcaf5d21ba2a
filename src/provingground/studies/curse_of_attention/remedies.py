"""Section 7.2: what is suggested against the curse, each as a variant of one of two networks.

Variants are switched by values, so that all variants of a network share one program: a switch
at zero takes its weights out of the output, and with it their gradient.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from provingground import blocks
from provingground.config import config, par, probe
from provingground.keys import normal, stream
from provingground.train import by_lane, descend, log_steps

from .model import (
    Config,
    Data,
    attend,
    draw,
    fit_linear,
    initial,
    mean_square,
    residual_linear,
    tangent,
)


class RemedyProbes(eqx.Module):
    train_loss: Float[Array, "step"] = probe("training loss", "L")
    test_loss: Float[Array, ""] = probe("risk", r"R_{\mathrm{ID}}")
    ood_loss: Float[Array, ""] = probe("OOD risk", r"R_{\mathrm{OOD}}")
    zero_loss: Float[Array, ""] = probe("risk of the zero predictor")
    zero_ood: Float[Array, ""] = probe("OOD risk of the zero predictor")
    fitted_loss: Float[Array, ""] = probe("risk of the trained residual linear network")
    fitted_ood: Float[Array, ""] = probe("OOD risk of the trained residual linear network")


def train(cfg: Any, data: Data, network: Any, weights: Any, rule: Any) -> RemedyProbes:
    """Descends on the squared error by an optax rule, and measures."""

    def loss(w: Any) -> Float[Array, ""]:
        f = jax.vmap(network, in_axes=(None, 0))(w, data.x)
        return jnp.sum(jnp.where(data.exists, f - data.y, 0.0) ** 2) / 2

    at = log_steps(cfg.steps, cfg.record)
    trace = descend(loss, weights, rule, steps=cfg.steps, at=at, probe=loss)
    points = jnp.concatenate([data.x_in, data.x_out])
    f = by_lane(lambda w, x: jax.vmap(network, in_axes=(None, 0))(w, x), trace.last, points)
    f_in, f_out = jnp.split(f, 2)
    fitted = by_lane(fit_linear, data.x, data.y, data.exists)
    return RemedyProbes(
        trace.probes,
        mean_square(f_in - data.y_in),
        mean_square(f_out - data.y_out),
        mean_square(data.y_in),
        mean_square(data.y_out),
        mean_square(residual_linear(fitted, data.x_in) - data.y_in),
        mean_square(residual_linear(fitted, data.x_out) - data.y_out),
    )


# ------------------------------------------------------- variants of the paper's own network


@config
class Scalar(Config):
    """The paper's network and what may be added to it."""

    width: int = par(64, "m", "neurons (in pairs)", low=2)
    adam: float = par(1.0, "U", "Adam (1) or gradient descent (0)", low=0)
    rate: float = par(0.02, r"\eta_A", "step size of Adam", low=0)
    decay: float = par(0.0, r"\lambda_w", "weight decay", low=0)
    read_out: float = par(0.0, r"\dot a", "trains the read-out: 0 or 1", low=0)
    second: float = par(0.0, r"\lambda", "second attention, subtracted: 0 or 1", low=0)
    position: float = par(0.0, "b", "trains a bias of logits by position: 0 or 1", low=0)
    skip: float = par(0.0, "s", "adds the last value: 0 or 1", low=0)


class ScalarWeights(eqx.Module):
    w: Float[Array, "m"]
    other: Float[Array, "m"]
    a: Float[Array, "m"]  # moves of the read-out
    bias: Float[Array, "m d"]
    share: Float[Array, ""]


def simulate_scalar(cfg: Scalar, key: Key[Array, ""]) -> RemedyProbes:
    data = draw(cfg, key)
    w_0, a_0 = initial(cfg, key)
    other = jnp.tile(normal(stream(key, "init/other"), (cfg.width // 2,)), 2)
    start = ScalarWeights(
        w_0, other, jnp.zeros_like(w_0), jnp.zeros((len(w_0), cfg.tokens)), jnp.array(0.5)
    )

    def network(p: ScalarWeights, x: Float[Array, "d"]) -> Float[Array, ""]:
        values = jnp.broadcast_to(x[None, :], p.bias.shape)
        logits = x[-1] * jnp.outer(p.w, x) + cfg.position * p.bias
        g = blocks.differential(logits, x[-1] * jnp.outer(p.other, x), cfg.second * p.share, values)
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


# -------------------------------------------------- one head of attention with an embedding


@config
class Head(Config):
    """One head whose query is the last token, with or without positions."""

    hidden: int = par(32, "h", "width of the head", low=2)
    rate: float = par(0.01, r"\eta_A", "step size of Adam", low=0)
    learned: float = par(0.0, "p", "learned positions: 0 or 1", low=0)
    turn: float = par(0.0, r"\theta", "rotary positions: factor on the angles", low=0)
    slope: float = par(0.0, "b", "linear decay of logits with distance", low=0)
    patch: int = par(1, r"\ell", "length of a patch", low=1, value=True)


class HeadWeights(eqx.Module):
    embed: Float[Array, "d h"]
    position: Float[Array, "d h"]
    w_q: Float[Array, "h h"]
    w_k: Float[Array, "h h"]
    w_v: Float[Array, "h"]


def simulate_head(cfg: Head, key: Key[Array, ""]) -> RemedyProbes:
    data, d, h = draw(cfg, key), cfg.tokens, cfg.hidden
    z = normal(stream(key, "init"), (2 * d + 2 * h + 1, h))
    embed, position, w_q, w_k, w_v = jnp.split(z, (d, 2 * d, 2 * d + h, 2 * d + 2 * h))
    # Small, so that attention starts out uniform: from larger ones training gets stuck.
    embed, position = 0.1 * embed, 0.1 * position
    start = HeadWeights(embed, position, w_q / h**0.5, w_k / h**0.5, w_v[0] / h)

    def network(p: HeadWeights, x: Float[Array, "d"]) -> Float[Array, ""]:
        rows, masked = blocks.patches(x, cfg.patch)
        e = rows @ p.embed + cfg.learned * p.position
        both = jnp.concatenate([e @ p.w_k, e[-1:] @ p.w_q])
        turned = blocks.rotary(both, jnp.append(jnp.arange(d), d - 1), cfg.turn)
        logits = blocks.scores(turned[-1], turned[:-1]) + blocks.linear_decay(d, cfg.slope)
        return blocks.attention(logits + masked, e @ p.w_v)

    return train(cfg, data, network, start, optax.adam(cfg.rate))


# ------------------------------------------------------------------------------ the table

SCALAR: dict[str, dict[str, Any]] = {
    "gradient descent": {"adam": 0.0},
    "Adam": {},
    "Adam, weight decay": {"decay": 0.01},
    "trained $a$": {"read_out": 1.0},
    "diff. softmax": {"second": 1.0},
    "$+x_d$": {"skip": 1.0},
    "position bias": {"position": 1.0},
}
HEAD: dict[str, dict[str, Any]] = {
    "head, no position": {},
    "head, learned": {"learned": 1.0},
    "head, rotary": {"turn": 1.0},
    "head, linear decay": {"slope": 1.0},
    "head, patch 4": {"patch": 4},
    "head, patch 8": {"patch": 8},
}
VARIANTS = {n: {"simulator": "scalar"} | s for n, s in SCALAR.items()} | {
    n: {"simulator": "head"} | s for n, s in HEAD.items()
}
