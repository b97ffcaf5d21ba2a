"""Classifying whole graphs: a read-out over the nodes of the same network (appendix B.5).

Each sample is a small random graph. Its nodes that are not discriminative all vote for its label;
the discriminative ones are of both patterns and cancel. No nodes are sampled: pools are small.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.config import mask, probe, size
from provingground.keys import signs, stream
from provingground.nets.losses import mean_over
from provingground.train import Activation, Optimiser, descend

from .data import (
    Config,
    core_distance,
    distances,
    in_pool,
    random_edges,
    random_nodes,
    ring_counts,
    winning_margins,
)
from .model import Weights, hinge, initial_weights, outputs, probe_steps

__all__ = ["Config", "Probes", "simulate"]


class Probes(eqx.Module):
    """What one training on graphs reports."""

    train_loss: Float[Array, "step"] = probe("training hinge loss", r"\hat f")
    test_loss: Float[Array, "step"] = probe("test hinge loss", "f")
    test_error: Float[Array, "step"] = probe("test error")
    dist_bias: Float[Array, "step ring"] = probe("distance bias", "b_z")
    margin: Float[Array, "ring"] = probe("mean winning margin", r"\bar\Delta(z)")
    ring: Int[Array, "ring"] = probe("distance", "z")
    step: Int[Array, "step"] = probe("step", "t")


def read_out(cfg: Config, f: Float[Array, "N"]) -> Float[Array, ""]:
    r"""$\sum_n K F(x_n)$ with $K = 1$ or $K = 1/N$."""
    return f.mean() if cfg.readout == "mean" else f.sum()


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """Gradient descent on `samples` labelled graphs of `nodes` nodes each."""
    count = size(cfg, "samples")
    total = count + cfg.test_graphs

    def one(which: Int[Array, ""], y: Float[Array, ""]):
        own = jax.random.fold_in(stream(key, "data"), which)
        nodes = random_nodes(cfg, own, y)
        dist = distances(random_edges(cfg, own, nodes), cfg.reach)
        return nodes, ring_counts(dist, nodes.pattern, cfg.patterns, cfg.reach)

    # Test graphs come first, so that a larger pad of the labelled ones changes none of them.
    y = signs(stream(key, "label"), (total,))
    nodes, rings = jax.vmap(one)(jnp.arange(total), y)
    test, train = slice(0, cfg.test_graphs), slice(cfg.test_graphs, None)
    margins = jax.vmap(winning_margins)(rings[test], nodes.label[test]).mean(axis=(0, 1))
    pool = in_pool(cfg, core_distance(margins))
    seen = rings * pool.astype(float)[None, None, None, :]
    exists = mask(cfg, "samples")

    def graph_outputs(w: Weights, part: slice) -> Float[Array, "G"]:
        def of_graph(pattern: Int[Array, "N"], counts: Float[Array, "N M Z"]) -> Float[Array, ""]:
            return read_out(cfg, outputs(cfg, w, pattern, counts, activation)[0])

        return jax.vmap(of_graph)(nodes.pattern[part], seen[part])

    def loss(w: Weights) -> Float[Array, ""]:
        return mean_over(exists, hinge(cfg, y[train], graph_outputs(w, train)))

    def look(w: Weights) -> dict[str, Float[Array, "..."]]:
        f = graph_outputs(w, test)
        return dict(
            train_loss=loss(w),
            test_loss=hinge(cfg, y[test], f).mean(),
            test_error=jnp.mean(y[test] * f <= 0, dtype=f.dtype),
            dist_bias=w.b,
        )

    trace = descend(
        loss,
        initial_weights(cfg, key, cfg.patterns),
        optimiser(cfg.lr),
        steps=cfg.steps,
        at=probe_steps(cfg),
        frozen=lambda w: w.a,
        probe=look,
    )
    return Probes(**trace.probes, margin=margins, ring=jnp.arange(cfg.reach + 2), step=trace.step)
