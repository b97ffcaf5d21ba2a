"""W5: trainings that stop after 40 to 2000 steps, neighbours not alike.

One attention query p and a value vector v, both trained from zero on the logistic loss until it
reaches eps: the stronger the signal and the larger the step, the sooner. The first of L tokens
carries the label along one axis and marks itself along another, the others are noise.

Letters in shapes: N samples, L tokens, d dimension; rows of w are p and v.
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
from provingground.train import iterate


@config
class Config:
    snr: float = par(1.0, r"\mathrm{SNR}", "signal over noise", low=0)
    lr: float = par(0.05, r"\eta", "step size", low=0)
    samples: int = par(40, "N", "training samples", low=2)
    tokens: int = par(10, "L", "tokens", low=2)
    dim: int = par(32, "d", "dimension", low=2)
    eps: float = par(0.1, r"\epsilon", "training loss to stop at", low=0)
    steps: int = par(5000, "T", "steps at most", low=1)
    test_samples: int = par(100, r"N_{te}", "test samples", low=2)


class Probes(eqx.Module):
    test_loss: Float[Array, ""] = probe("test loss")
    stopped_at: Int[Array, ""] = probe("steps until the training loss is reached", "T")


class State(eqx.Module):
    """Weights, and the loss and its gradient at them."""

    w: Float[Array, "2 d"]
    loss: Float[Array, ""]
    grad: Float[Array, "2 d"]


def numbers(cfg: Config, key: Key[Array, ""]) -> dict[str, Array]:
    """The noise; labels alternate."""
    return dict(
        noise=normal(stream(key, "data"), (cfg.samples, cfg.tokens, cfg.dim)),
        test=normal(stream(key, "test"), (cfg.test_samples, cfg.tokens, cfg.dim)),
    )


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Full-batch descent with the gradient written out: two products of two rows a step.

    The signal has rows of its own, so that trainings of a seed share all of x, whatever their SNR.
    """
    drawn = numbers(cfg, key)

    def data(noise: Float[Array, "N L d"]) -> tuple[Float[Array, "d+2 LN"], Float[Array, "N"]]:
        """Noise, then what the signal adds to the first two coordinates, over SNR; and labels."""
        y = jnp.where(jnp.arange(len(noise)) % 2 == 0, 1.0, -1.0)
        first = (jnp.arange(cfg.tokens) == 0).astype(float)
        signal = first[None, :, None] * jnp.stack([y, jnp.ones_like(y)])[:, None]
        x = jnp.concatenate([noise.transpose(2, 1, 0), signal])
        return x.reshape(cfg.dim + 2, -1), y

    def forward(w: Float[Array, "2 d"], x: Float[Array, "d+2 LN"]) -> tuple[Array, Array, Array]:
        """Attention and values of the tokens, outputs of the samples (along the last axis)."""
        both = jnp.concatenate([w, cfg.snr * w[:, :2]], axis=1)
        score, value = (both @ x).reshape(2, cfg.tokens, -1)
        a = jax.nn.softmax(score, axis=0)
        return a, value, jnp.sum(a * value, axis=0)

    x, y = data(drawn["noise"])

    def at(w: Float[Array, "2 d"]) -> State:
        a, value, f = forward(w, x)
        g = -y * jax.nn.sigmoid(-y * f) / cfg.samples
        to_value = g[None] * a
        to_score = to_value * (value - f[None])
        back = jnp.stack([to_score, to_value]).reshape(2, -1) @ x.T
        signal = jnp.pad(cfg.snr * back[:, cfg.dim :], ((0, 0), (0, cfg.dim - 2)))
        return State(w, jax.nn.softplus(-y * f).mean(), back[:, : cfg.dim] + signal)

    def step(state: State, t: Int[Array, ""]) -> State:
        return at(state.w - cfg.lr * state.grad)

    trace = iterate(
        step,
        at(jnp.zeros((2, cfg.dim))),
        steps=cfg.steps,
        until=lambda state: state.loss <= cfg.eps,
    )
    x_test, y_test = data(drawn["test"])
    f = forward(trace.last.w, x_test)[2]
    return Probes(jax.nn.softplus(-y_test * f).mean(), trace.stopped_at)


def cost(ds: xr.Dataset, cfg: Config) -> Cost:
    step = 8 * cfg.samples * cfg.tokens * cfg.dim
    drawn = (cfg.samples + cfg.test_samples) * cfg.tokens * cfg.dim
    return Cost(float(ds.stopped_at.sum()) * step, ds.sizes["seed"] * drawn)


def about(ds: xr.Dataset) -> str:
    t = ds.stopped_at.values
    return f"steps: {t.min()} to {t.max()}, median {np.median(t):.0f}, mean {t.mean():.0f}"


def mixed(count: int) -> list[float]:
    """Step sizes, shuffled."""
    order = np.random.default_rng(0).permutation(count)
    return [float(v) for v in np.geomspace(0.016, 0.08, count)[order].round(5)]


WORKLOAD = Workload(
    name="W5",
    says="early stopping, attention and value vectors, 50-fold stopping times",
    study=study("early_stopping", "early stopping", Config, Probes, attention=simulate),
    experiment="attention",
    settings={
        "tiny": dict(snr=[4.0, 1.0], lr=[0.1, 0.05], seeds=2, samples=12, dim=8, tokens=4),
        "quick": dict(snr=[1.0, 4.0, 2.0], lr=mixed(8), seeds=8),
        "full": dict(snr=[1.0, 4.0, 2.0], lr=mixed(16), seeds=32),
        "large": dict(snr=[1.0, 4.0, 2.0], lr=mixed(16), seeds=512),
    },
    measured=("test_loss", "stopped_at"),
    cost=cost,
    numbers=numbers,
    peers="benchmarks.peers.early_stopping",
    targets={"cpu": Target(5, 1.2), "gpu": Target(None, None)},
    about=about,
)
