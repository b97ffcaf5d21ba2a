"""Network and training of the one-layer transformer, in the paper's order.

Letters in shapes: d feature dimension, l context examples, B prompts, m neurons, v value width
($m_b = d_X + d_Y$). Of the label embedding only the coordinate along $q$ is kept, so that tokens
have d + 1 entries: an exact reduction (see `full.py` for the model as written).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, mask, par, probe, size
from provingground.keys import normal, signs, stream
from provingground.nets.losses import hinge
from provingground.train import Activation, Optimiser, Trace, by_lane, descend

from .prompts import Domain, Prompt, in_domain, prompt, task_count


@config
class Config:
    """The paper's parameters; defaults are those of section 6.5, or ours where it is silent."""

    alpha: float = par(0.8, r"\alpha", "fraction of decisive patterns in training contexts",
                       low=0, high=1)  # fmt: skip
    tokens: int = par(20, "l_{tr}", "context examples in training", low=1, value=True, pad=40)
    n_relevant: int = par(6, "M_1", "relevant patterns", low=3, value=True)
    n_tasks: int = par(6, r"|\mathcal{T}_{tr}|", "training tasks", low=1, value=True)
    dim: int = par(30, "d_X", "feature dimension", low=8)
    label_dim: int = par(30, "d_Y", "dimension of label embeddings", low=1)
    beta: float = par(3.0, r"\beta", "norm of the patterns", low=0)
    kappa_max: float = par(0.5, "K", "largest irrelevant part in training", low=0)
    kappa_max_ood: float = par(5.0, "K'", "largest irrelevant part out of domain", low=0)
    width: int = par(400, "m", "neurons", low=1, value=True, pad=100)
    delta: float = par(0.1, r"\delta", "initial scale of queries, keys and values", low=0)
    readout_power: float = par(1.0, "p", "read-out weights are m^(-p) in size", low=0)
    lr: float = par(1.0, r"\eta", "step size", low=0)
    batch: int = par(128, "B", "prompts per step", low=1)
    steps: int = par(2000, "T", "steps at most", low=1, value=True)
    eps: float = par(0.0, r"\epsilon", "training hinge loss to stop below (0: never)", low=0)
    alpha_test: float = par(0.8, r"\alpha'", "fraction of decisive patterns in test contexts",
                            low=0, high=1)  # fmt: skip
    tokens_test: int = par(20, "l_{ts}", "context examples in tests", low=1, value=True, pad=40)
    test_samples: int = par(1000, r"N_{\mathrm{te}}", "test prompts", low=2)
    record: int = par(21, "n_t", "recorded steps", low=2)


class Probes(eqx.Module):
    """What one training reports of its end. The test is on tasks that were not trained."""

    train_loss: Float[Array, ""] = probe("training hinge loss")
    test_loss: Float[Array, ""] = probe("hinge loss on unseen tasks")
    test_error: Float[Array, ""] = probe("error on unseen tasks")
    same_loss: Float[Array, ""] = probe("hinge loss on unseen tasks, contexts as in training")
    same_error: Float[Array, ""] = probe("error on unseen tasks, contexts as in training")
    attention: Float[Array, ""] = probe("attention on contexts with the query's pattern")
    stopped_at: Int[Array, ""] = probe("steps until the training loss is reached", "T")


# ------------------------------------------------------------------------------- data


def training_domain(cfg: Any) -> Domain:
    """Where training prompts come from, for any Config with the parameters of the data."""
    return in_domain(cfg.dim, cfg.beta, cfg.n_relevant, 0, cfg.n_tasks, cfg.kappa_max)


def unseen_domain(cfg: Any) -> Domain:
    """The tasks that are not trained; all of them where none is left."""
    every = task_count(cfg.n_relevant)
    first = jnp.where(cfg.n_tasks < every, cfg.n_tasks, 0)
    return in_domain(cfg.dim, cfg.beta, cfg.n_relevant, first, every, cfg.kappa_max)


def draw(key: Key[Array, ""], count: int, size: int, length: Any, alpha: Any, of: Domain) -> Prompt:
    """`count` prompts; the i-th is the same for any count."""
    keys = jax.random.split(key, count)
    return jax.vmap(lambda k: prompt(k, size, length, alpha, of))(keys)


# ---------------------------------------------------------------------------- network


class Weights(eqx.Module):
    w_q: Float[Array, "d d"]
    w_k: Float[Array, "d d_plus_1"]
    w_v: Float[Array, "v d_plus_1"]
    w_o: Float[Array, "m v"]
    a: Float[Array, "m"]  # never trained; 0 for neurons that do not exist


def initial_weights(cfg: Config, key: Key[Array, ""]) -> Weights:
    r"""$W_Q, W_K, W_V$ are $\delta$ on the diagonal, $W_O \sim N(0, 1/m)$, $a_i = \pm m^{-p}$."""
    exists = mask(cfg, "width").astype(float)
    m = jnp.asarray(cfg.width, float)
    v = cfg.dim + cfg.label_dim
    w_o = normal(stream(key, "init"), (size(cfg, "width"), v)) * m**-0.5
    a = signs(stream(key, "init/readout"), (size(cfg, "width"),)) * m**-cfg.readout_power
    return Weights(
        w_q=cfg.delta * jnp.eye(cfg.dim),
        w_k=cfg.delta * jnp.eye(cfg.dim, cfg.dim + 1),
        w_v=cfg.delta * jnp.eye(v, cfg.dim + 1),
        w_o=w_o * exists[:, None],
        a=a * exists,
    )


def attend(
    w: Weights, p: Prompt, exists: Bool[Array, "l"]
) -> tuple[Float[Array, "d_plus_1"], Float[Array, "l"]]:
    r"""$\sum_i p_i\,\mathrm{attn}_i$ and $\mathrm{attn} = \mathrm{softmax}((W_Kp_i)^\top W_Qp_q)$.

    The sum and the softmax are over context examples alone (6.2).
    """
    tokens = p.tokens
    scores = tokens @ (w.w_k.T @ (w.w_q @ p.x_query))
    attn = jax.nn.softmax(jnp.where(exists, scores, -jnp.inf))
    return attn @ tokens, attn


def neuron_rows(w: Weights) -> Float[Array, "m d_plus_1"]:
    r"""$r_i$: the rows of $W_OW_V$."""
    return w.w_o @ w.w_v


def activations(
    w: Weights, attended: Float[Array, "B d_plus_1"], activation: Activation = jax.nn.relu
) -> Float[Array, "B m"]:
    r"""$\mathrm{Relu}(W_O W_V \sum_i p_i\,\mathrm{attn}_i)$ for many prompts."""
    return activation(attended @ neuron_rows(w).T)


def outputs(
    w: Weights, p: Prompt, activation: Activation = jax.nn.relu
) -> tuple[Float[Array, "B"], Float[Array, "B l"]]:
    """$F(\\Psi; P)$ (6.2) for many prompts, and their attention."""
    attended, attn = jax.vmap(lambda p: attend(w, p, p.exists))(p)
    return activations(w, attended, activation) @ w.a, attn


def error(label: Float[Array, "*B"], f: Float[Array, "*B"]) -> Float[Array, "*B"]:
    r"""Whether $zF \le 0$."""
    return (label * f <= 0).astype(float)


# --------------------------------------------------------------------------- training


def train(
    cfg: Config,
    key: Key[Array, ""],
    start: Weights,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
    **probing: Any,
) -> Trace[Weights]:
    """SGD on fresh prompts (E.2), all four matrices with the same step size."""
    of, batch_key = training_domain(cfg), stream(key, "batch")

    def batch(t: Int[Array, ""]) -> Prompt:
        now = jax.random.fold_in(batch_key, t)
        return draw(now, cfg.batch, size(cfg, "tokens"), cfg.tokens, cfg.alpha, of)

    return descend(
        lambda w, p: hinge(p.label, outputs(w, p, activation)[0]).mean(),
        start,
        optimiser(cfg.lr),
        steps=cfg.steps,
        batch=batch,
        frozen=lambda w: w.a,
        until=lambda value, _: value < cfg.eps,
        **probing,
    )


def on_pattern(attn: Float[Array, "B l"], p: Prompt) -> Float[Array, "B"]:
    r"""Attention mass on $\mathcal N_*$ of many prompts."""
    return jax.vmap(lambda attn, p: attn @ p.same_pattern.astype(attn.dtype))(attn, p)


def test(
    cfg: Config, key: Key[Array, ""], outputs: Callable[[Prompt], tuple[Array, Array]]
) -> dict[str, Float[Array, ""]]:
    """Tests at the end: training tasks, unseen ones, and unseen ones in contexts as in training."""
    seen, unseen = training_domain(cfg), unseen_domain(cfg)
    layout = max(size(cfg, "tokens"), size(cfg, "tokens_test"))
    kinds = jax.tree.map(
        lambda *values: jnp.stack([jnp.asarray(v) for v in values]),
        (seen, cfg.alpha, cfg.tokens),
        (unseen, cfg.alpha, cfg.tokens),
        (unseen, cfg.alpha_test, cfg.tokens_test),
    )

    def one(at: tuple[Key[Array, ""], tuple[Domain, Array, Array]]) -> tuple[Array, Array, Array]:
        key, (of, alpha, length) = at
        p = draw(key, cfg.test_samples, layout, length, alpha, of)
        f, attn = outputs(p)
        return hinge(p.label, f).mean(), error(p.label, f).mean(), on_pattern(attn, p).mean()

    keys = jax.random.split(stream(key, "test"), 3)
    loss, wrong, attention = jax.lax.map(one, (keys, kinds))  # one copy compiles fastest
    return dict(
        train_loss=loss[0],
        same_loss=loss[1],
        same_error=wrong[1],
        test_loss=loss[2],
        test_error=wrong[2],
        attention=attention[2],
    )


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """One training, and tests at its end."""
    trace = train(cfg, key, initial_weights(cfg, key), activation, optimiser)
    found = by_lane(lambda w: test(cfg, key, lambda p: outputs(w, p, activation)), trace.last)
    return Probes(**found, stopped_at=trace.stopped_at)
