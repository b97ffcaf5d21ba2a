"""One head of attention with an embedding: its query is the last token; positions, patches."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from provingground.config import config, par
from provingground.keys import normal, stream
from provingground.nets import attention

from . import model
from .data import draw
from .variants import Probes, train


@config
class Config(model.Config):
    """One head whose query is the last token, with or without positions."""

    hidden: int = par(32, "h", "width of the head", low=2)
    rate: float = par(0.01, r"\eta_A", "step size of Adam", low=0)
    learned: float = par(0.0, "p", "learned positions: 0 or 1", low=0)
    turn: float = par(0.0, r"\theta", "rotary positions: factor on the angles", low=0)
    slope: float = par(0.0, "b", "linear decay of logits with distance", low=0)
    patch: int = par(1, r"\ell", "length of a patch", low=1, value=True)
    embed_scale: float = par(0.1, r"\sigma_E", "s.d. of the initial embedding, positions", low=0)
    start: int = par(0, "i", "number of the start, on the same data", low=0, value=True)


class Weights(eqx.Module):
    embed: Float[Array, "d h"]
    position: Float[Array, "d h"]
    w_q: Float[Array, "h h"]
    w_k: Float[Array, "h h"]
    w_v: Float[Array, "h"]


def initial(cfg: Config, key: Key[Array, ""]) -> Weights:
    d, h = cfg.tokens, cfg.hidden
    start = jax.random.fold_in(stream(key, "init"), cfg.start)
    z = normal(start, (2 * d + 2 * h + 1, h))
    embed, position, w_q, w_k, w_v = jnp.split(z, (d, 2 * d, 2 * d + h, 2 * d + 2 * h))
    scale = cfg.embed_scale
    return Weights(scale * embed, scale * position, w_q / h**0.5, w_k / h**0.5, w_v[0] / h)


def network(cfg: Config, p: Weights, x: Float[Array, "d"]) -> Float[Array, ""]:
    rows, masked = attention.patches(x, cfg.patch)
    d = len(x)
    e = rows @ p.embed + cfg.learned * p.position
    both = jnp.concatenate([e @ p.w_k, e[-1:] @ p.w_q])
    turned = attention.rotary(both, jnp.append(jnp.arange(d), d - 1), cfg.turn)
    logits = attention.scores(turned[-1], turned[:-1]) + attention.linear_decay(d, cfg.slope)
    return attention.average(logits + masked, e @ p.w_v)


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    data = draw(cfg, key)
    rule = optax.adam(cfg.rate)
    return train(cfg, data, lambda p, x: network(cfg, p, x), initial(cfg, key), rule)


def linear_head(c: Float[Array, "d"], hidden: int, small: float) -> Weights:
    r"""Weights of a head with learned positions with output $\langle c, x\rangle + O(\epsilon)$.

    The query is a constant and the keys are $x_k$, so that logits are $\ell_k = \epsilon x_k$; to
    first order softmax is then $\frac1d(1 + \ell_k - \bar\ell)$. Values are
    $x_k\sum_jc_j + (c_k - \bar c)d/\epsilon$: the second part, constants by position, gives every
    step a weight of its own, of either sign. Channel 0 carries $x$, channel $1+k$ position k.
    """
    d = len(c)
    embed = jnp.zeros((d, hidden)).at[0, 0].set(1.0)
    position = jnp.zeros((d, hidden)).at[jnp.arange(d), 1 + jnp.arange(d)].set(1.0)
    w_v = jnp.zeros(hidden).at[1 : d + 1].set((c - c.mean()) * d / small).at[0].set(c.sum())
    w_q = jnp.zeros((hidden, hidden)).at[d, 0].set(small * hidden**0.5)
    w_k = jnp.zeros((hidden, hidden)).at[0, 0].set(1.0)
    return Weights(embed, position, w_q, w_k, w_v)
