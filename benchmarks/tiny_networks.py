"""W2: many tiny networks, each with its own step size.

The shallow vision transformer: one attention head, a ReLU layer of width m with a frozen read-out
per position, hinge loss, full-batch gradient descent on all four matrices. Tokens are patterns
without noise, so ours trains in the span of the patterns: an exact reduction, in which the
tokens of a sample enter through its counts (equal in a class) and its summed read-outs.

Letters in shapes: N samples, L tokens, M patterns, m neurons, d dimension, c = 2 classes.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from benchmarks.ladder import Cost, Target, Workload, study
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import normal, signs, stream, uniform
from provingground.train import iterate


@config
class Config:
    lr: float = par(1.0, r"\eta", "step size", low=0)
    samples: int = par(20, "N", "training samples, half of each class", low=2)
    dim: int = par(10, "d", "dimension", low=5)
    width: int = par(1000, "m", "neurons", low=1)
    tokens: int = par(100, "L", "tokens", low=10)
    patterns: int = par(5, "M", "patterns", low=3)
    relevant: int = par(40, r"\alpha_* L", "label-relevant tokens", low=1)
    confusion: int = par(10, r"\alpha_\# L", "confusion tokens", low=0)
    value_error: float = par(0.1, r"\sigma", "initial error of the values", low=0)
    key_error: float = par(0.2, r"\delta", "initial error of keys and queries", low=0)
    hidden: float = par(0.01, r"\xi", "s.d. of the hidden layer at the start", low=0)
    steps: int = par(200, "T", "steps", low=1)
    test_samples: int = par(100, r"N_{te}", "test samples, half of each class", low=2)


class Probes(eqx.Module):
    train_loss: Float[Array, ""] = probe("training hinge loss")
    test_loss: Float[Array, ""] = probe("test hinge loss")
    attention: Float[Array, ""] = probe("attention on label-relevant tokens, mean over queries")


class Weights(eqx.Module):
    """What the matrices do to the patterns, which are the first unit vectors."""

    query: Float[Array, "M d"]
    key: Float[Array, "M d"]
    value: Float[Array, "M d"]
    hidden: Float[Array, "m d"]


def counts(cfg: Config) -> np.ndarray:
    """How often each pattern occurs in a sample of label +1, and of label -1."""
    rest, others = cfg.tokens - cfg.relevant - cfg.confusion, cfg.patterns - 2
    split = [rest // others + (j < rest % others) for j in range(others)]
    return np.array(
        [[cfg.relevant, cfg.confusion, *split], [cfg.confusion, cfg.relevant, *split]], np.float32
    )


def roles(cfg: Config) -> np.ndarray:
    """The pattern of each token of either class, in order."""
    return np.stack([np.repeat(np.arange(cfg.patterns), n.astype(int)) for n in counts(cfg)])


def numbers(cfg: Config, key: Key[Array, ""]) -> dict[str, Array]:
    """Initial weights and data; the first half of the samples has the label +1."""
    units = normal(stream(key, "init/error"), (3, cfg.patterns, cfg.dim))
    units = units / jnp.linalg.norm(units, axis=-1, keepdims=True)
    shuffled = uniform(stream(key, "data"), (cfg.samples + cfg.test_samples, cfg.tokens))
    place = jnp.argsort(shuffled, axis=-1)  # roles are put on random positions

    def tokens(place: Int[Array, "n L"]) -> Int[Array, "n L"]:
        half = len(place) // 2
        plus, minus = jnp.asarray(roles(cfg), jnp.int32)
        return jnp.concatenate([plus[place[:half]], minus[place[half:]]])

    return dict(
        units=units,
        hidden=normal(stream(key, "init/hidden"), (cfg.width, cfg.dim)),
        readout=signs(stream(key, "init/readout"), (cfg.tokens, cfg.width)) / cfg.width**0.5,
        tokens=tokens(place[: cfg.samples]),
        test=tokens(place[cfg.samples :]),
    )


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Full-batch descent in the span of the patterns, with the gradient written out."""
    drawn = numbers(cfg, key)
    eye = jnp.eye(cfg.patterns, cfg.dim)
    log_counts = jnp.log(jnp.asarray(counts(cfg)))[:, None, :]

    def summed(tokens: Int[Array, "n L"]) -> Float[Array, "c n Mm"]:
        """The read-outs of a sample, summed over the positions of each pattern, over L."""
        at = tokens[:, None, :] == jnp.arange(cfg.patterns, dtype=tokens.dtype)[None, :, None]
        sums = at.reshape(-1, cfg.tokens).astype(float) @ drawn["readout"] / cfg.tokens
        return sums.reshape(2, len(tokens) // 2, -1)

    plus, minus = summed(drawn["tokens"])

    def forward(w: Weights) -> tuple[Array, Array, Array]:
        """Attention, attended values and hidden layer: for each class and query pattern."""
        p = jax.nn.softmax((w.query @ w.key.T)[None] + log_counts, axis=-1)
        v = p.reshape(-1, cfg.patterns) @ w.value
        return p, v, v @ w.hidden.T

    def outputs(z: Float[Array, "cM m"], plus: Any, minus: Any) -> tuple[Array, Array]:
        h = jnp.maximum(z, 0).reshape(2, -1)
        return plus @ h[0], minus @ h[1]

    def losses(f: tuple[Array, Array]) -> Float[Array, "n"]:
        return jnp.maximum(jnp.concatenate([1 - f[0], 1 + f[1]]), 0)

    def step(w: Weights, t: Int[Array, ""]) -> Weights:
        p, v, z = forward(w)
        f = outputs(z, plus, minus)
        g_plus, g_minus = ((f[0] < 1).astype(z.dtype), (f[1] > -1).astype(z.dtype))
        h_bar = jnp.stack([-g_plus @ plus, g_minus @ minus]).reshape(z.shape) / cfg.samples
        z_bar = jnp.where(z > 0, h_bar, 0.0)
        v_bar = z_bar @ w.hidden
        p_bar = (v_bar @ w.value.T).reshape(p.shape)
        s_bar = (p * (p_bar - jnp.sum(p * p_bar, axis=-1, keepdims=True))).sum(axis=0)
        return Weights(
            query=w.query - cfg.lr * (s_bar @ w.key),
            key=w.key - cfg.lr * (s_bar.T @ w.query),
            value=w.value - cfg.lr * (p.reshape(-1, cfg.patterns).T @ v_bar),
            hidden=w.hidden - cfg.lr * (z_bar.T @ v),
        )

    start = Weights(
        query=eye + cfg.key_error * drawn["units"][0],
        key=eye + cfg.key_error * drawn["units"][1],
        value=eye + cfg.value_error * drawn["units"][2],
        hidden=cfg.hidden * drawn["hidden"],
    )
    w = iterate(step, start, steps=cfg.steps).last
    p, _, z = forward(w)
    relevant = jnp.einsum("cj,cj->c", jnp.asarray(counts(cfg)), p[jnp.arange(2), :, jnp.arange(2)])
    return Probes(
        train_loss=losses(outputs(z, plus, minus)).mean(),
        test_loss=losses(outputs(z, *summed(drawn["test"]))).mean(),
        attention=relevant.mean() / cfg.tokens,
    )


def cost(ds: xr.Dataset, cfg: Config) -> Cost:
    """Products of all steps; what depends on the seed alone is needed once for a seed."""
    cells = ds.train_loss.size
    hidden = cfg.patterns * cfg.width
    step = 2 * 2 * cfg.samples * hidden + 3 * 2 * 2 * hidden * cfg.dim
    shared = 2 * (cfg.samples + cfg.test_samples) * hidden * cfg.tokens
    test = 2 * cfg.test_samples * hidden
    drawn = cfg.width * (cfg.dim + cfg.tokens) + (cfg.samples + cfg.test_samples) * cfg.tokens
    seeds = ds.sizes["seed"]
    return Cost(cells * (cfg.steps * step + test) + seeds * shared, seeds * drawn)


RATES = [float(x) for x in np.geomspace(0.25, 4, 24).round(3)]

WORKLOAD = Workload(
    name="W2",
    says="tiny vision transformers (m = 1000, 100 tokens), a step size each",
    study=study("tiny_networks", "tiny vision transformers", Config, Probes, reduced=simulate),
    experiment="reduced",
    settings={
        "tiny": dict(lr=[0.5, 2.0], seeds=2, width=64, samples=8, test_samples=10, steps=40),
        "quick": dict(lr=RATES, seeds=4),
        "full": dict(lr=RATES, seeds=16),
        "large": dict(lr=RATES, seeds=256),
    },
    measured=("train_loss", "test_loss", "attention"),
    cost=cost,
    numbers=numbers,
    peers="benchmarks.peers.tiny_networks",
    targets={"cpu": Target(5, 1.2), "gpu": Target(100, 1.5)},
)
