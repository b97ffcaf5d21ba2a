r"""A graph convolution on a published graph, the baseline of Figure 3.9 (Kipf and Welling, 2017).

$\hat A\,\mathrm{ReLU}(\hat A X W_0) W_1$ with $\hat A = D^{-1/2}(A + I)D^{-1/2}$. Sums over
neighbours are sums over edges; $\hat A X$ is computed once.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par
from provingground.keys import stream, uniform
from provingground.train import descend

from .citations import Probes, labelled
from .published import FARTHEST, Citations

__all__ = ["Config", "Probes", "simulate"]


@config
class Config:
    """The sizes of Kipf and Welling (2017)."""

    per_class: int = par(20, "l", "labelled nodes per class", low=1, high=430, value=True)
    hidden: int = par(16, "m", "hidden neurons", low=1)
    steps: int = par(200, "T", "steps", low=1)
    rate: float = par(0.01, r"\eta", "step size of Adam", low=0)
    decay: float = par(5e-4, r"\lambda", "penalty on the first layer's weights", low=0)
    dropout: float = par(0.5, "q", "share of the hidden layer that is dropped", low=0, high=0.9)


class Weights(eqx.Module):
    first: Float[Array, "f m"]
    second: Float[Array, "m c"]


def spread(graph: Citations, h: Float[Array, "N c"]) -> Float[Array, "N c"]:
    r"""$\hat A h$."""
    sent = jnp.asarray(graph.weight)[:, None] * h[jnp.asarray(graph.source)]
    return jax.ops.segment_sum(sent, jnp.asarray(graph.target), len(graph.label))


def glorot(key: Key[Array, ""], fan_in: int, fan_out: int) -> Float[Array, "i o"]:
    """Uniform within the bound of Glorot and Bengio (2010)."""
    bound = (6 / (fan_in + fan_out)) ** 0.5
    return uniform(key, (fan_in, fan_out), -bound, bound)


def simulate(cfg: Config, key: Key[Array, ""], data: Citations) -> Probes:
    """Cross entropy of the labelled nodes, all of them in every step, by Adam. There is no bias,
    which is told as zero."""
    classes = len(data.kinds)
    label, x = jnp.asarray(data.label), jnp.asarray(data.averaged)
    known = jnp.asarray(data.node)[labelled(data, key)]
    used = jnp.arange(len(known), dtype=jnp.int32) < cfg.per_class * classes

    def hidden(w: Weights) -> Float[Array, "N m"]:
        return jax.nn.relu(x @ w.first)

    def kept(t: Int[Array, ""]) -> Float[Array, "N m"]:
        u = uniform(jax.random.fold_in(stream(key, "dropout"), t), (len(label), cfg.hidden))
        return jnp.where(u >= cfg.dropout, 1 / (1 - cfg.dropout), 0.0)

    def loss(w: Weights, kept: Float[Array, "N m"]) -> Float[Array, ""]:
        out = spread(data, (hidden(w) * kept) @ w.second)[known]
        each = optax.softmax_cross_entropy_with_integer_labels(out, label[known])
        mean = jnp.where(used, each, 0.0).sum() / used.sum(dtype=float)
        return mean + cfg.decay / 2 * jnp.sum(w.first**2)

    start = Weights(
        glorot(stream(key, "init/first"), x.shape[1], cfg.hidden),
        glorot(stream(key, "init/second"), cfg.hidden, classes),
    )
    w = descend(loss, start, optax.adam(cfg.rate), steps=cfg.steps, batch=kept).last
    tested = jnp.asarray(data.node)[len(known) :]
    found = jnp.argmax(spread(data, hidden(w) @ w.second)[tested], axis=1)
    return Probes(
        accuracy=(found == label[tested]).mean(dtype=float),
        train_loss=loss(w, jnp.ones((len(label), cfg.hidden))),
        bias=jnp.zeros(FARTHEST + 1),
        distance=jnp.arange(FARTHEST + 1, dtype=jnp.int32),
    )
