"""W3: twenty initialisations on each of twenty data sets.

A one-hidden-layer sigmoid network with averaging output learns a teacher of its own kind from
Bernoulli labels, on a mixture of two Gaussians of means +C and -C in every coordinate, by
full-batch gradient descent from points at a distance of 0.1 of the teacher. A cell of ours is a
data set; its initialisations are columns of one product.

Letters in shapes: n samples, d dimension, K neurons, I initialisations.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import xarray as xr
from benchmarks.ladder import Cost, Target, Workload, study
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import normal, signs, stream, uniform
from provingground.train import iterate


@config
class Config:
    mean: float = par(0.5, "C", "mean of the first group in each coordinate", low=0)
    samples: int = par(1000, "n", "training samples", low=1)
    dim: int = par(5, "d", "dimension", low=1)
    neurons: int = par(3, "K", "neurons", low=1)
    inits: int = par(20, "I", "initialisations", low=1)
    distance: float = par(0.1, r"\epsilon", "their distance from the teacher", low=0)
    rate: float = par(25.0, "c", "step size times M_2", low=0)
    steps: int = par(500, "T", "steps", low=1)


class Probes(eqx.Module):
    train_loss: Float[Array, "init"] = probe("training cross-entropy")
    error: Float[Array, "init"] = probe("distance from the teacher over its norm")


def step_size(cfg: Config) -> Float[Array, ""] | float:
    r"""$\eta_0 = c / M_2$, $M_2 = (\|\mu\| + \|\Sigma^{1/2}\|)^2$ (equal for both groups)."""
    return cfg.rate / (cfg.mean * cfg.dim**0.5 + 1) ** 2


def numbers(cfg: Config, key: Key[Array, ""]) -> dict[str, Array]:
    """Teacher, directions of the initialisations, and data before the means are put in."""
    n, d, k = cfg.samples, cfg.dim, cfg.neurons
    return dict(
        teacher=normal(stream(key, "teacher"), (k, d)),
        directions=normal(stream(key, "init"), (cfg.inits, k, d)),
        noise=normal(stream(key, "data/noise"), (n, d)),
        group=signs(stream(key, "data/group"), (n,)),
        label=uniform(stream(key, "data/label"), (n,)),
    )


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""With $s = \pm 1$ for the label, $L = -\frac1n \sum \log \frac1K \sum_j \phi(s x^\top w_j)$.

    The sign goes into the data, and samples run along the last axis, which vectorises best.
    """
    drawn = numbers(cfg, key)
    n, d, k = cfg.samples, cfg.dim, cfg.neurons
    x = drawn["noise"] + cfg.mean * drawn["group"][:, None]
    likely = jax.nn.sigmoid(x @ drawn["teacher"].T).mean(axis=-1)
    x = jnp.where((drawn["label"] < likely)[:, None], x, -x)
    far = drawn["directions"]
    far = cfg.distance * far / jnp.sqrt(jnp.sum(far**2, axis=(1, 2), keepdims=True))
    start = (drawn["teacher"][None] + far).swapaxes(0, 1).reshape(-1, d)  # rows (K I)

    rows = x.T

    def likelihood(w: Float[Array, "KI d"]) -> tuple[Float[Array, "K I n"], Float[Array, "I n"]]:
        # A few additions, which fuse with the sigmoid: a product would be written and read.
        z = sum((w[:, j, None] * rows[j][None] for j in range(1, d)), w[:, 0, None] * rows[0][None])
        s = jax.nn.sigmoid(z).reshape(k, -1, n)
        return s, sum(s[1:], s[0])  # additions fuse better than a reduction

    def step(w: Float[Array, "KI d"], t: Int[Array, ""]) -> Float[Array, "KI d"]:
        s, p = likelihood(w)
        uphill = (s * (1 - s) * (1 / p)[None]).reshape(-1, n) @ x
        return w + (step_size(cfg) / n) * uphill

    w = iterate(step, start, steps=cfg.steps).last
    off = w.reshape(k, -1, d) - drawn["teacher"][:, None]
    return Probes(
        train_loss=-jnp.log(likelihood(w)[1] / k).mean(axis=-1),
        error=jnp.sqrt(jnp.sum(off**2, axis=(0, 2)) / jnp.sum(drawn["teacher"] ** 2)),
    )


def cost(ds: xr.Dataset, cfg: Config) -> Cost:
    """Two products a step; a sigmoid with its derivative counts as twenty operations."""
    entries = cfg.samples * cfg.neurons * ds.error.size
    return Cost(
        cfg.steps * entries * (4 * cfg.dim + 20),
        ds.sizes["seed"] * cfg.samples * (cfg.dim + 2),
    )


WORKLOAD = Workload(
    name="W3",
    says="Gaussian-mixture recovery, 20 initialisations on each of 20 data sets",
    study=study("mixture_recovery", "recovery of a teacher", Config, Probes, together=simulate),
    experiment="together",
    settings={
        "tiny": dict(mean=[0.5, 1.0], seeds=2, samples=200, inits=3, steps=60),
        "quick": dict(mean=[0.5, 1.0], seeds=20),
        "full": dict(mean=[0.0, 0.5, 1.0, 2.0], seeds=20, samples=1000, steps=2000),
        "large": dict(mean=[0.0, 0.5, 1.0, 2.0], seeds=320, samples=1000, steps=2000),
    },
    measured=("train_loss", "error"),
    cost=cost,
    numbers=numbers,
    peers="benchmarks.peers.mixture_recovery",
    targets={"cpu": Target(5, 1.2), "gpu": Target(100, 1.5)},
    trainings_per_cell=20,
)
