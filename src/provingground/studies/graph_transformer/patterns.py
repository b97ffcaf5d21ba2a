"""Figures B.1 to B.3 and Tables B.1 to B.3: which nodes of a class share its main directions.

For the features X of a class: the eigenvalues of X'X, and the nodes that lie less than pi/4 from
the mean of the class in its three first eigenvectors. No training: by NumPy, on a part of the
nodes that the seed draws.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import stream

from .published import DIRECTIONS, GRAPHS, Described, near_mean, principal

__all__ = ["Config", "Probes", "simulate"]

SHOWN = 20  # eigenvalues of the figures


@config
class Config:
    """One class of a graph, and what is done to its features."""

    graph: str = par("cora", "G", "graph", choices=GRAPHS)
    kind: int = par(0, "c", "class, from 0 on", low=0, high=6, value=True)
    share: float = par(1.0, "q", "share of the nodes that are looked at", low=0.2, high=1)
    centred: float = par(0.0, "k", "the mean is taken off for the eigenvectors: 0 or 1", low=0)
    shuffled: float = par(0.0, "s", "each feature is shuffled within the class: 0 or 1", low=0)


class Probes(eqx.Module):
    """Of one class."""

    near: Float[Array, ""] = probe("share of the class that is discriminative")
    near_others: Float[Array, ""] = probe("share of other classes near its mean")
    top: Float[Array, ""] = probe("share of the three largest eigenvalues")
    spectrum: Float[Array, "rank"] = probe("eigenvalue over the sum of all", r"\lambda_i")
    rank: Int[Array, "rank"] = probe("number of the eigenvalue", "i")


def simulate(cfg: Config, key: Key[Array, ""], data: dict[str, Described]) -> Probes:
    x, label = (np.asarray(part) for part in data[cfg.graph])
    luck = jax.random.bits(stream(key, "data/subset"), (2,), jnp.uint32)
    rng = np.random.default_rng(np.asarray(luck).tolist())
    seen = rng.random(len(label)) < cfg.share
    kind = min(cfg.kind, int(label.max()))
    own, others = (x[seen & at].astype(float) for at in (label == kind, label != kind))
    if cfg.shuffled > 0.5:
        own = rng.permuted(own, axis=0)
    spread = own - own.mean(axis=0) if cfg.centred > 0.5 else own
    values, directions = principal(spread, SHOWN)
    own, others = (rows @ directions[:, :DIRECTIONS] for rows in (own, others))
    mean, parts = own.mean(axis=0), values / (spread**2).sum()
    return Probes(
        near=jnp.asarray(near_mean(own, mean).mean()),
        near_others=jnp.asarray(near_mean(others, mean).mean()),
        top=jnp.asarray(parts[:DIRECTIONS].sum()),
        spectrum=jnp.asarray(parts),
        rank=jnp.arange(1, SHOWN + 1, dtype=jnp.int32),
    )
