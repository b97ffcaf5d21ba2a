r"""Figure 2: digits in a frame of noise, for two layers of attention and a ReLU MLP.

An image times $a = \mathrm{SNR}/(1+\mathrm{SNR})$, and noise times $b = 1/(1+\mathrm{SNR})$ on its
frame, four of 28 pixels wide. Letters in shapes: n (or m) images, e pixels along an edge, b samples
of a step, T tokens, i pixels of a token, d width, L layers, H heads, h = d / H, f neurons of the
MLP, c classes.
"""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key, UInt8

from provingground.config import config, par, probe
from provingground.data import real
from provingground.keys import normal, stream
from provingground.train import by_lane, descend

EDGE, FRAME, CLASSES = 28, 4, 10


@config
class Config:
    """Figure 2's samples and network, and where and how the network normalises."""

    samples: int = par(3000, "N", "training samples", low=2, high=60000, value=True)
    snr: float = par(1.0, r"\mathrm{SNR}", "signal-to-noise ratio", low=0)
    noise: float = par(1.0, r"\sigma", "s.d. of the frame's noise before its factor", low=0)
    pool: int = par(16000, r"N_{\max}", "samples laid out", low=2, high=60000)
    coarse: int = par(1, "k", "pixels averaged along each edge", low=1, choices=(1, 2, 4))
    patch: int = par(7, "p", "pixels along the edge of a patch", low=1, choices=(1, 2, 4, 7, 14))
    width: int = par(48, "d", "width of the residual stream", low=1)
    heads: int = par(4, "H", "heads of attention", low=1)
    layers: int = par(2, "L", "layers of attention", low=1)
    hidden: int = par(96, "f", "neurons of the MLP", low=1)
    at_input: float = par(0.0, "z_0", "norm of embedded tokens: 0 or 1", low=0, high=1)
    at_attention: float = par(0.0, "z_1", "norm before each attention: 0 or 1", low=0, high=1)
    at_pooling: float = par(0.0, "z_2", "norm of tokens before their mean: 0 or 1", low=0, high=1)
    at_mlp: float = par(0.0, "z_3", "norm of the mean before the MLP: 0 or 1", low=0, high=1)
    centring: float = par(1.0, "z_c", "norms subtract the mean: 0 or 1", low=0, high=1)
    scaling: float = par(1.0, "z_s", "norms divide by the root mean square: 0 or 1", low=0, high=1)
    shared: float = par(0.0, "z_T", "one root mean square for all tokens: 0 or 1", low=0, high=1)
    batch: int = par(64, "b", "samples per step", low=1)
    steps: int = par(4000, "t", "training steps", low=1)
    rate: float = par(0.001, r"\eta", "step size of Adam", low=0)
    test_images: int = par(2000, "n", "test images", low=1, high=10000)


class Probes(eqx.Module):
    """At the end of training: on the first samples of a seed, and on a fixed set of test images."""

    train_loss: Float[Array, ""] = probe("training loss", "L_S")
    test_loss: Float[Array, ""] = probe("test loss", "L")
    test_error: Float[Array, ""] = probe("test error")


class Digits(eqx.Module):
    """Images of 256 shades, and their classes."""

    x_train: UInt8[np.ndarray, "n e e"]
    y_train: UInt8[np.ndarray, "n"]
    x_test: UInt8[np.ndarray, "m e e"]
    y_test: UInt8[np.ndarray, "m"]


@cache
def mnist() -> Digits:
    """All 70,000 digits."""
    return Digits(**real.load("mnist"))


# ------------------------------------------------------------------------------------- images


def patches(x: Float[Array, "n e e"], k: int, p: int) -> Float[Array, "n T i"]:
    """Means over squares of k by k pixels, cut into squares of p by p of these, row by row."""
    n, e, _ = x.shape
    r = e // k // p
    x = x.reshape(n, e // k, k, e // k, k).mean(axis=(2, 4))
    return x.reshape(n, r, p, r, p).swapaxes(2, 3).reshape(n, r * r, p * p)


def frame(k: int, p: int) -> Float[Array, "T i"]:
    """How much of every pixel lies on the frame."""
    inner = np.pad(np.ones((EDGE - 2 * FRAME,) * 2), FRAME)
    return patches(jnp.asarray(1 - inner, float)[None], k, p)[0]


def framed(
    cfg: Config, x: Float[Array, "n T i"], noise: Float[Array, "n T i"]
) -> Float[Array, "n T i"]:
    r"""The images times $a$, and noise times $b$ on their frame."""
    a, b = cfg.snr / (1 + cfg.snr), 1 / (1 + cfg.snr)
    return a * x + b * cfg.noise * frame(cfg.coarse, cfg.patch)[None] * noise


# ------------------------------------------------------------------------------------ network


class Weights(eqx.Module):
    """All weights; those of the layers are stacked."""

    read_in: Float[Array, "d i"]
    positions: Float[Array, "T d"]
    w_q: Float[Array, "L H h d"]
    w_k: Float[Array, "L H h d"]
    w_v: Float[Array, "L H h d"]
    w_o: Float[Array, "L H d h"]
    w_in: Float[Array, "f d"]
    b_in: Float[Array, "f"]
    read_out: Float[Array, "c f"]


def initial_weights(cfg: Config, key: Key[Array, ""]) -> Weights:
    r"""Normal weights of s.d. $1/\sqrt{\text{inputs}}$; positions of s.d. 0.02."""
    n, a, d, f = cfg.layers, cfg.heads, cfg.width, cfg.hidden
    h, tokens = d // a, (EDGE // cfg.coarse // cfg.patch) ** 2

    def draw(name: str, *shape: int) -> Float[Array, "..."]:
        return normal(stream(key, f"init/{name}"), shape) * shape[-1] ** -0.5

    return Weights(
        read_in=draw("read_in", d, cfg.patch**2),
        positions=0.02 * d**0.5 * draw("positions", tokens, d),
        w_q=draw("w_q", n, a, h, d),
        w_k=draw("w_k", n, a, h, d),
        w_v=draw("w_v", n, a, h, d),
        w_o=draw("w_o", n, a, d, h) * a**-0.5,
        w_in=draw("w_in", f, d),
        b_in=jnp.zeros(f),
        read_out=draw("read_out", CLASSES, f),
    )


def normed(cfg: Config, at: Any, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """Rows less their mean, over their root mean square: both, one of them, or neither."""
    x = x - at * cfg.centring * x.mean(axis=-1, keepdims=True)
    square = jnp.mean(x**2, axis=-1, keepdims=True)
    square = square + cfg.shared * (square.mean() - square)
    return x * (square + 1e-5) ** (-at * cfg.scaling / 2)


def attend(w: Weights, layer: int, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    r"""$\sum_H W_OW_VX\,\mathrm{softmax}(X^\top W_K^\top W_QX/\sqrt h)$."""
    q, k, v = (jnp.einsum("ahd,td->ath", m[layer], x) for m in (w.w_q, w.w_k, w.w_v))
    p = jax.nn.softmax(jnp.einsum("ath,ash->ats", q, k) / q.shape[-1] ** 0.5, axis=-1)
    return jnp.einsum("ats,ash,adh->td", p, v, w.w_o[layer])


def network(cfg: Config, w: Weights, x: Float[Array, "T i"]) -> Float[Array, "c"]:
    """Attention adds to the stream, layer by layer; the MLP reads the mean over tokens."""
    z = normed(cfg, cfg.at_input, x @ w.read_in.T + w.positions)
    for layer in range(cfg.layers):
        z = z + attend(w, layer, normed(cfg, cfg.at_attention, z))
    mean = normed(cfg, cfg.at_pooling, z).mean(axis=0, keepdims=True)
    u = normed(cfg, cfg.at_mlp, mean)[0]
    return w.read_out @ jax.nn.relu(w.w_in @ u + w.b_in)


# ----------------------------------------------------------------------------------- training

Sample = tuple[Float[Array, "n T i"], Float[Array, "n T i"], Int[Array, "n"]]


def drawn(
    cfg: Config, x: UInt8[Array, "n e e"], y: UInt8[Array, "n"], key: Key[Array, ""]
) -> Sample:
    """Images with values from 0 to 1, the noise that is theirs, and classes."""
    tokens = patches(x.astype(float) / 255, cfg.coarse, cfg.patch)
    return tokens, normal(key, tokens.shape), y.astype(jnp.int32)


def scored(cfg: Config, w: Weights, sample: Sample) -> Float[Array, "2 n"]:
    """Of each image the cross-entropy, and whether it is taken for another class."""
    x, noise, y = sample
    f = jax.vmap(lambda x: network(cfg, w, x))(framed(cfg, x, noise))
    loss = optax.softmax_cross_entropy_with_integer_labels(f, y)
    return jnp.stack([loss, (jnp.argmax(f, axis=-1) != y).astype(loss.dtype)])


def train(cfg: Config, start: Weights, pool: Sample, draws: Key[Array, ""]) -> Weights:
    """Adam, whose step size falls linearly to nothing, on batches from the first N of the pool."""

    def batch(t: Int[Array, ""]) -> Sample:
        u = jax.random.uniform(jax.random.fold_in(draws, t), (cfg.batch,))
        chosen = jnp.floor(u * jnp.asarray(cfg.samples, float)).astype(jnp.int32)
        return jax.tree.map(lambda a: a[chosen], pool)

    def loss(w: Weights, sample: Sample) -> Float[Array, ""]:
        return scored(cfg, w, sample)[0].mean()

    rule = optax.adam(optax.linear_schedule(cfg.rate, 0.0, cfg.steps))
    return descend(loss, start, rule, steps=cfg.steps, batch=batch).last


def simulate(cfg: Config, key: Key[Array, ""], data: Digits) -> Probes:
    chosen = jax.random.permutation(stream(key, "data/subset"), len(data.y_train))[: cfg.pool]
    x, y = jnp.asarray(data.x_train)[chosen], jnp.asarray(data.y_train)[chosen]
    pool = drawn(cfg, x, y, stream(key, "data/noise"))
    n = cfg.test_images
    x, y = jnp.asarray(data.x_test[:n]), jnp.asarray(data.y_test[:n])
    unseen = drawn(cfg, x, y, stream(key, "test/noise"))
    start, draws = initial_weights(cfg, stream(key, "init")), stream(key, "batches")

    def outcome(cfg: Config, start: Weights, pool: Any, unseen: Any, draws: Any) -> Probes:
        w = train(cfg, start, pool, draws)
        first = jax.tree.map(lambda a: a[jnp.arange(n, dtype=jnp.int32) % cfg.samples], pool)
        train_loss, _ = scored(cfg, w, first).mean(axis=1)
        test_loss, test_error = scored(cfg, w, unseen).mean(axis=1)
        return Probes(train_loss=train_loss, test_loss=test_loss, test_error=test_error)

    return by_lane(outcome, cfg, start, pool, unseen, draws)
