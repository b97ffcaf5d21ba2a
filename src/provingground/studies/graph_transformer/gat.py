"""A graph attention network on ring 1 (appendix B.5.3), its scores a sum of query and key."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.keys import normal, stream
from provingground.train import Activation, Optimiser, by_lane

from .data import Config, Graph, random_graph
from .model import Probes, attend, initial_weights, train

__all__ = ["Config", "Probes", "simulate"]

SLOPE = 0.2  # of the leaky ReLU in the scores


class Weights(eqx.Module):
    r"""$W_V\mu_k$ are columns; `u` and `v` are the two halves of the attention vector."""

    u: Float[Array, "b"]
    v: Float[Array, "b"]
    w_v: Float[Array, "b M"]
    w_o: Float[Array, "m b"]
    b: Float[Array, "Z"]
    a: Float[Array, "m"]


def outputs(
    cfg: Config,
    w: Weights,
    pattern: Int[Array, "n"],
    counts: Float[Array, "n M Z"],
    activation: Activation,
) -> tuple[Float[Array, "n"], Float[Array, "n M Z"]]:
    r"""The network (3.1) with the scores $\mathrm{LeakyReLU}(u^\top W_V x_n + v^\top W_V x_s)$."""
    sums = (w.u @ w.w_v)[:, None] + (w.v @ w.w_v)[None, :]
    scores = cfg.attention * jax.nn.leaky_relu(sums, SLOPE)
    p = jax.vmap(attend, in_axes=(0, None, 0))(scores[pattern], cfg.bias_scale * w.b, counts)
    hidden = w.w_o @ w.w_v
    return jnp.einsum("m,nm->n", w.a, activation(p.sum(axis=-1) @ hidden.T)), p


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    data: Graph | None = None,
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """Algorithm 4 for this network: the pool is the node and its ring 1, wherever the vote sits."""
    graph = by_lane(lambda cfg: random_graph(cfg, key), cfg) if data is None else data
    w = initial_weights(cfg, key, graph.rings.shape[1])
    u, v = cfg.init_scale * normal(stream(key, "init/attention"), (2, cfg.value_width))
    start = Weights(u, v, w.w_v, w.w_o, w.b, w.a)
    pool = jnp.arange(cfg.reach + 2) <= 1
    return train(cfg, key, graph, pool, start, partial(outputs, activation=activation), optimiser)
