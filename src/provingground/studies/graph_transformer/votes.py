"""Figure B.5 and Tables B.5, B.6, B.8: how the rings of a published graph vote for its labels.

The winning margin of a node at distance z is the number of voters of its class there, less the
mean number of voters of another class. No training: by NumPy, on a part of the nodes that the
seed draws; voters are all nodes of the graph, drawn or not.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import stream, uniform

from .published import GRAPHS, RINGS
from .published import Votes as Votes

__all__ = ["Config", "Probes", "simulate"]


@config
class Config:
    """Which graph, and who votes."""

    graph: str = par("cora", "G", "graph", choices=GRAPHS)
    share: float = par(1.0, "q", "share of the nodes that are looked at", low=0.01, high=1)
    telling: float = par(1.0, "v", "discriminative nodes alone vote: 0 or 1", low=0)
    own_vote: float = par(0.0, "o", "a node votes for itself in every ring: 0 or 1", low=0)


class Probes(eqx.Module):
    """Means over nodes; a ring without nodes has no margin, which is counted as zero."""

    margin: Float[Array, "ring"] = probe("normalised margin", r"\bar\Delta(z)/|\mathcal{N}_z|")
    won: Float[Array, "ring"] = probe("share of nodes whose ring votes for their label")
    same: Float[Array, "ring"] = probe("share of nodes of the ring with the same label")
    reached: Float[Array, "ring"] = probe("share of nodes that have such a ring")
    ring: Int[Array, "ring"] = probe("distance", "z")
    nodes: Float[Array, ""] = probe("nodes", "N")
    edges: Float[Array, ""] = probe("edges without loops")
    classes: Float[Array, ""] = probe("classes")
    features: Float[Array, ""] = probe("features", "d")
    class_gap: Float[Array, ""] = probe("largest gap between a class and the mean class, nodes")


def winning(
    votes: Float[np.ndarray, "n c z"], label: Int[np.ndarray, "n"]
) -> Float[np.ndarray, "n z"]:
    """(3.5) for several classes: own voters less the mean number of another class's."""
    own = votes[np.arange(len(label)), label]
    return own - (votes.sum(axis=1) - own) / (votes.shape[1] - 1)


def simulate(cfg: Config, key: Key[Array, ""], data: dict[str, Votes]) -> Probes:
    whole = data[cfg.graph]
    label, classes = np.asarray(whole.label), whole.all.shape[1]
    drawn = np.asarray(uniform(stream(key, "data/subset"), (len(label),))) < cfg.share
    every = np.asarray(whole.all)[drawn][:, :, 1:]
    heard = np.asarray(whole.discriminative)[drawn][:, :, 1:] if cfg.telling > 0.5 else every
    y = label[drawn]
    own = every[np.arange(len(y)), y]
    size = every.sum(axis=1)
    margin = winning(heard, y) + cfg.own_vote
    sizes = np.bincount(label, minlength=classes)
    return Probes(
        margin=jnp.asarray((margin / np.maximum(size, 1)).mean(axis=0)),
        won=jnp.asarray((margin > 0).mean(axis=0)),
        same=jnp.asarray(own.sum(axis=0) / np.maximum(size.sum(axis=0), 1)),
        reached=jnp.asarray((size > 0).mean(axis=0)),
        ring=jnp.arange(1, RINGS + 1, dtype=jnp.int32),
        nodes=jnp.asarray(float(len(label))),
        edges=jnp.asarray(float(whole.edges)),
        classes=jnp.asarray(float(classes)),
        features=jnp.asarray(float(whole.features)),
        class_gap=jnp.asarray(float(np.abs(sizes - len(label) / classes).max())),
    )
