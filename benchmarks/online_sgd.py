"""W4: online SGD, a fresh Gaussian batch at every step.

A position-only softmax student learns a graph-convolution teacher relu(V* X S*) + noise on a
cycle. Drawing is about half of a training's cost if each training draws for itself. Trainings of
one seed share their batches (that is how they are paired), so ours draws a few steps ahead,
outside of the lanes: same numbers, drawn once.

Letters in shapes: N batch, d token dimension, D tokens, M outputs.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from benchmarks.ladder import Cost, Target, Workload, study
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import normal, stream
from provingground.train import by_lane, iterate

AHEAD = 10  # steps drawn at once: a few megabytes


@config
class Config:
    lr: float = par(0.1, r"\eta", "step size", low=0)
    dim: int = par(10, "d", "token dimension", low=1)
    tokens: int = par(20, "D", "tokens", low=4)
    outputs: int = par(10, "M", "output rows", low=1)
    batch: int = par(100, "N", "fresh samples a step", low=1)
    noise: float = par(1.0, r"\sigma_\xi", "label noise s.d.", low=0)
    steps: int = par(300, "T", f"steps, a multiple of {AHEAD}", low=AHEAD)
    draws: str = par("shared", "", "who draws", choices=("shared", "own", "fixed"))


class Probes(eqx.Module):
    value_error: Float[Array, ""] = probe("distance of W_V from V* over its norm")
    leak: Float[Array, ""] = probe("attention outside of the support, mean over queries")


class Weights(eqx.Module):
    """The value matrix, and the logits A = P' W_KQ P: P is orthogonal, so descent is the same."""

    value: Float[Array, "M d"]
    logits: Float[Array, "D D"]


def support(cfg: Config) -> np.ndarray:
    """Each column of S* is 1/3 on a node of the cycle and its neighbours."""
    near = np.abs(np.arange(cfg.tokens)[:, None] - np.arange(cfg.tokens)[None])
    return (np.minimum(near, cfg.tokens - near) <= 1).astype(np.float32)


def ahead(cfg: Config, key: Key[Array, ""], block: Int[Array, ""] | int) -> Float[Array, "..."]:
    """Inputs and label noise of the next few steps, in one draw."""
    rows = cfg.dim + cfg.outputs
    key = jax.random.fold_in(stream(key, "batch"), block)
    return normal(key, (AHEAD, rows, cfg.batch * cfg.tokens))


def numbers(cfg: Config, key: Key[Array, ""]) -> dict[str, Array]:
    """Teacher, positional code and all batches."""
    square = normal(stream(key, "position"), (cfg.tokens, cfg.tokens))
    return dict(
        teacher=normal(stream(key, "teacher"), (cfg.outputs, cfg.dim)),
        position=jnp.linalg.qr(square)[0],
        batches=jnp.concatenate([ahead(cfg, key, i) for i in range(cfg.steps // AHEAD)]),
    )


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Plain SGD from zero with the gradient written out."""
    d, m, tokens = cfg.dim, cfg.outputs, cfg.tokens
    teacher = normal(stream(key, "teacher"), (m, d))
    s_star = jnp.asarray(support(cfg)) / 3

    def labels(x: Float[Array, "d ND"]) -> Float[Array, "MN D"]:
        return jnp.maximum((teacher @ x).reshape(-1, tokens) @ s_star, 0)

    def step(w: Weights, z: Float[Array, "dM ND"], y: Float[Array, "MN D"]) -> Weights:
        x, noise = z[:d], z[d:].reshape(-1, tokens)
        s = jax.nn.softmax(w.logits / tokens**0.5, axis=0)
        u = (w.value @ x).reshape(-1, tokens)
        f = u @ s
        r = jnp.where(f >= 0, f - y - cfg.noise * noise, 0.0) / cfg.batch
        s_bar = u.T @ r
        a_bar = s * (s_bar - jnp.sum(s * s_bar, axis=0, keepdims=True)) / tokens**0.5
        v_bar = (r @ s.T).reshape(m, -1) @ x.T
        return Weights(w.value - cfg.lr * v_bar, w.logits - cfg.lr * a_bar)

    first = ahead(cfg, key, 0)

    def some_steps(w: Weights, block: Int[Array, ""]) -> tuple[Weights, None]:
        z = first if cfg.draws == "fixed" else ahead(cfg, key, block)
        y = jax.vmap(labels)(z[:, :d])
        return iterate(lambda w, t: step(w, z[t], y[t]), w, steps=AHEAD).last, None

    def train(w: Weights) -> Weights:
        return jax.lax.scan(some_steps, w, jnp.arange(cfg.steps // AHEAD))[0]

    start = Weights(jnp.zeros((m, d)), jnp.zeros((tokens, tokens)))
    w = by_lane(train, start) if cfg.draws == "own" else train(start)
    s = jax.nn.softmax(w.logits / tokens**0.5, axis=0)
    return Probes(
        value_error=jnp.linalg.norm(w.value - teacher) / jnp.linalg.norm(teacher),
        leak=jnp.sum(jnp.where(s_star > 0, 0.0, s)) / tokens,
    )


def cost(ds: xr.Dataset, cfg: Config) -> Cost:
    """Products of every training, draws and labels once for a seed."""
    seeds = ds.sizes["seed"]
    columns = cfg.batch * cfg.tokens
    values, mixes = 2 * cfg.outputs * cfg.dim * columns, 2 * cfg.outputs * columns * cfg.tokens
    return Cost(
        cfg.steps * (ds.leak.size * (2 * values + 3 * mixes) + seeds * (values + mixes)),
        cfg.steps * seeds * (cfg.dim + cfg.outputs) * columns,
    )


def rates(count: int) -> list[float]:
    return [float(v) for v in np.geomspace(0.02, 0.3, count).round(4)]


WORKLOAD = Workload(
    name="W4",
    says="online SGD of a position-only student, fresh batches of 100 at every step",
    study=study("online_sgd", "online SGD", Config, Probes, online=simulate),
    experiment="online",
    settings={
        "tiny": dict(lr=[0.1, 0.3], seeds=2, tokens=6, dim=4, outputs=3, batch=10, steps=40),
        "quick": dict(lr=rates(12), seeds=4),
        "full": dict(lr=rates(24), seeds=8, steps=1000),
        "large": dict(lr=rates(24), seeds=128, steps=1000),
    },
    measured=("value_error", "leak"),
    cost=cost,
    numbers=numbers,
    peers="benchmarks.peers.online_sgd",
    targets={"cpu": Target(3, 1), "gpu": Target(None, None)},
    extras={"each draws its own": dict(draws="own"), "one fixed draw": dict(draws="fixed")},
)
