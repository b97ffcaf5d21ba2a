"""W6: the map of benign_overfitting's Figure 2, as the study runs it.

Real digits in a frame of noise, two layers of attention with four heads and a ReLU MLP, trained by
Adam for a fixed number of steps on batches of the first N images of a seed, over N and SNR. Nothing
stops early. Trainings of a seed share images, noise, initial weights and the random numbers that
choose the batches. The network of the study has norms at four places that this map switches off by
zeros; ours still computes them, the peers leave them out.

Trainings that differ by rounding drift apart (1e-6 after 20 steps, 5e-5 after 400): the sides are
compared after 20, and by their losses, since an error changes by a whole image or not at all.

It needs MNIST (`proving data get mnist`).
"""

from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr
from benchmarks.ladder import Cost, Target, Workload
from jaxtyping import Array, Key

from provingground import registry
from provingground.keys import normal, stream
from provingground.studies.benign_overfitting import digits
from provingground.studies.benign_overfitting.digits import CLASSES, EDGE, Config
from provingground.studies.benign_overfitting.figures.fig2 import MAP

STEPS = 100  # of the figure's 6000, which all cost the same


def tokens(cfg: Config) -> int:
    return (EDGE // cfg.coarse // cfg.patch) ** 2


def numbers(cfg: Config, key: Key[Array, ""]) -> dict[str, Array]:
    """Initial weights, which images are taken, their noise, and what chooses the batches."""
    shape, count = (tokens(cfg), cfg.patch**2), len(digits.mnist().y_train)
    draws = stream(key, "batches")

    def batch(t: Array) -> Array:
        return jax.random.uniform(jax.random.fold_in(draws, t), (cfg.batch,))

    return vars(digits.initial_weights(cfg, stream(key, "init"))) | dict(
        chosen=jax.random.permutation(stream(key, "data/subset"), count)[: cfg.pool],
        noise=normal(stream(key, "data/noise"), (cfg.pool, *shape)),
        test=normal(stream(key, "test/noise"), (cfg.test_images, *shape)),
        batches=jax.vmap(batch)(jnp.arange(cfg.steps, dtype=jnp.int32)),
    )


def cost(ds: xr.Dataset, cfg: Config) -> Cost:
    """Products of all steps, and of the images that are looked at in the end; noise of a seed."""
    t, d, f = tokens(cfg), cfg.width, cfg.hidden
    read_in = t * cfg.patch**2 * d
    rest = cfg.layers * (4 * t * d**2 + 2 * t**2 * d) + d * f + f * CLASSES
    step = 2 * cfg.batch * (2 * read_in + 3 * rest)  # nothing asks for the slope at the images
    end = 2 * 2 * cfg.test_images * (read_in + rest)
    weights = d * (cfg.patch**2 + t + 4 * cfg.layers * d + f) + f * CLASSES
    drawn = weights + (cfg.pool + cfg.test_images) * t * cfg.patch**2
    cells = ds.test_loss.size
    return Cost(float(cells * (cfg.steps * step + end)), float(ds.sizes["seed"] * drawn))


def about(ds: xr.Dataset) -> str:
    error = ds.test_error.values
    return f"{int(ds.steps)} steps each, test errors from {error.min():.2f} to {error.max():.2f}"


FULL: dict[str, Any] = dict(
    samples=MAP.grid["samples"],
    snr=MAP.grid["snr"],
    pool=16000,
    width=48,
    hidden=96,
    batch=MAP.grid["batch"],
    rate=MAP.grid["rate"],
    steps=STEPS,
    test_images=2000,
)
# the network of the figure's quick scale
SMALL: dict[str, Any] = {
    n: MAP.quick[n] for n in ("pool", "width", "hidden", "batch", "rate", "test_images")
}

WORKLOAD = Workload(
    name="W6",
    says="map of real digits in noise, two attention layers, Adam on batches",
    study=registry.study("benign_overfitting"),
    experiment="fig2",
    settings={
        "tiny": SMALL
        | dict(samples=[40, 64], snr=[0.5, 2.0], seeds=2, pool=64, batch=8, steps=20)
        | dict(test_images=50),
        "quick": SMALL
        | dict(samples=[500, 1000, 2000], snr=[0.2, 0.7, 2.0, 4.0], seeds=1)
        | dict(steps=STEPS // 2),
        "full": FULL | dict(seeds=MAP.seeds),
        "large": FULL | dict(seeds=16 * MAP.seeds),
    },
    measured=("train_loss", "test_loss"),
    cost=cost,
    numbers=numbers,
    peers="benchmarks.peers.noisy_digits",
    targets={"cpu": Target(None, None), "gpu": Target(5, None)},
    about=about,
)
