"""Training and what it reports, of samples that are laid out as rows.

Two simulators share it. It sees *rows* (T of them) in *groups* (B of them): tokens of samples
(T = L, B = N, in `tokens.py`), or patterns of classes (T = P, B = C, in `model.py`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import probe
from provingground.keys import stream, uniform
from provingground.train import Activation, Optimiser, descend, log_steps

from .data import RELEVANT, Config, targets
from .network import Weights, attend, hidden, loss_of, positions

ROLES = ("relevant", "confusion", "irrelevant")
FATES = ("lucky", "against", "idle")
RELATIONS = ("own", "opposite", "beside", "irrelevant")


class Probes(eqx.Module):
    """What one training reports. Means over queries are over those of the training samples.

    A neuron has a class: that of the signs of its mean read-out over the positions. With respect
    to a label-relevant token it is *lucky* if it is active there at the start and of its class,
    *against* if it is active but of another class, else *idle*. Features of discriminative
    patterns are a neuron's *own*, *opposite*, or with four classes *beside*.
    """

    train_loss: Float[Array, "step"] = probe("training loss")
    test_loss: Float[Array, "step"] = probe("test loss")
    test_error: Float[Array, "step"] = probe("test error")
    margin: Float[Array, "step"] = probe("smallest training margin", "yF")
    attention: Float[Array, "step"] = probe("attention on label-relevant tokens")
    attention_from: Float[Array, "step role"] = probe("attention on label-relevant tokens")
    query_norm: Float[Array, "step"] = probe("query norm of label-relevant patterns", r"\|q_1\|")
    key_norm: Float[Array, "step"] = probe("key norm of label-relevant patterns", r"\|k_1\|")
    other_norm: Float[Array, "step"] = probe("query norm of irrelevant patterns")
    active: Float[Array, "step fate"] = probe("share of neurons active at label-relevant tokens")
    neuron: Float[Array, "step fate"] = probe("mean weight of neurons along p_1", "W_{O,i}p_1")
    growth: Float[Array, "step relation"] = probe("mean change of neurons along a feature")
    stopped_at: Int[Array, ""] = probe("steps until the training loss is reached", "T")
    role: Int[Array, "role"] = probe("role of the query", labels=ROLES)
    fate: Int[Array, "fate"] = probe("neuron at the start", labels=FATES)
    relation: Int[Array, "relation"] = probe("feature, for the neuron", labels=RELATIONS)
    step: Int[Array, "step"] = probe("gradient descent step", "t")


# --------------------------------------------------------------------- samples as rows


class Samples(NamedTuple):
    """Samples as the network sees them: rows in groups, and the way from these to outputs."""

    x: Float[Array, "B T d"]
    n: Float[Array, "B T"]  # how often a row occurs
    role: Int[Array, "B T"]
    label: Int[Array, "B"]
    share: Float[Array, "B"]  # of all samples
    exists: Bool[Array, "N"]
    margins: Callable[[Array, Float[Array, "B T H d"]], Float[Array, "N"]]  # y F, from W_O and v


def share_of(exists: Bool[Array, "N"]) -> Float[Array, "N"]:
    """The weight of each sample in a mean over those that exist."""
    return exists.astype(float) / exists.astype(float).sum()


def attended(
    cfg: Config, w: Weights, s: Samples
) -> tuple[Float[Array, "B H T T"], Float[Array, "B T H d"]]:
    return jax.vmap(lambda x, n: attend(w, x, n, cfg.skip))(s.x, s.n)


# ---------------------------------------------------------------------------- neurons


class Neurons(NamedTuple):
    """What is known of neurons at the start: their class, activity, and the features of values."""

    corner: Float[Array, "m o"]  # signs of the mean read-out
    active: Bool[Array, "B T m"]
    w_o: Float[Array, "H d m"]
    features: Float[Array, "H M d"]


def neurons_of(
    cfg: Config,
    start: Weights,
    s: Samples,
    a: Float[Array, "L m o"],
    features: Float[Array, "H M d"],
    activation: Activation,
) -> Neurons:
    corner = jnp.where(jnp.mean(positions(cfg, a), axis=0) >= 0, 1.0, -1.0)
    z = hidden(start.w_o, attended(cfg, start, s)[1], activation)
    return Neurons(corner, z > 0, start.w_o, features)


def along(w_o: Float[Array, "H d m"], features: Float[Array, "H M d"]) -> Float[Array, "M m"]:
    r"""$W_{O,i}p_j$, averaged over heads."""
    return jnp.einsum("ham,hja->jm", w_o, features) / len(w_o)


def of_neurons(
    cfg: Config,
    w: Weights,
    s: Samples,
    z: Float[Array, "B T m"],
    weight: Float[Array, "B T"],
    first: Neurons,
) -> dict[str, Array]:
    """The probes of neurons; `weight` is that of label-relevant rows."""
    y, outputs = targets(cfg), first.corner.shape[1]
    agree = y @ first.corner.T  # (C, m): `outputs` for a neuron's own class
    own = agree[s.label] > outputs - 0.5
    own = jnp.broadcast_to(own[:, None, :], first.active.shape)
    fates = jnp.stack([first.active & own, first.active & ~own, ~first.active])
    mass = fates.astype(float) * weight[None, :, :, None]
    now = along(w.w_o, first.features)
    of_class = jnp.broadcast_to(now[s.label][:, None, :], z.shape)
    change = now - along(first.w_o, first.features)
    relevant, rest = change[: cfg.classes], change[cfg.classes :]

    def over(weights: Float[Array, "*at"], values: Float[Array, "*at"]) -> Float[Array, ""]:
        total = jnp.sum(weights)
        return jnp.sum(weights * values) / jnp.where(total > 0, total, 1.0)

    growth = [
        over((agree > outputs - 0.5).astype(float), relevant),
        over((agree < 0.5 - outputs).astype(float), relevant),
        over((jnp.abs(agree) < outputs - 0.5).astype(float), jnp.abs(relevant)),
        jnp.mean(jnp.abs(rest)),
    ]
    return dict(
        active=jnp.stack([over(m, (z > 0).astype(float)) for m in mass]),
        neuron=jnp.stack([over(m, of_class) for m in mass]),
        growth=jnp.stack(growth),
    )


# --------------------------------------------------------------------------- training


def mean_loss(cfg: Config, w: Weights, s: Samples, weight: Float[Array, "N"]) -> Float[Array, ""]:
    return jnp.sum(weight * loss_of(cfg, s.margins(w.w_o, attended(cfg, w, s)[1])))


def train(
    cfg: Config,
    key: Key[Array, ""],
    start: Weights,
    s: Samples,
    optimiser: Optimiser = optax.sgd,
    **probing: Any,
) -> Any:
    """Descent on all four matrices; batches are drawn with replacement.

    Full-batch training stops when the loss is `eps`: at 0 the gradient vanishes.
    """

    def slow_attention(g: Any, _: Any) -> Any:
        return eqx.tree_at(lambda g: (g.w_q, g.w_k), g, replace_fn=lambda m: cfg.attention_rate * m)

    def some(t: Int[Array, ""]) -> Float[Array, "N"]:
        u = uniform(jax.random.fold_in(key, t), (cfg.batch,))
        chosen = jnp.floor(u * jnp.asarray(cfg.samples, u.dtype)).astype(jnp.int32)
        return jnp.mean(jax.nn.one_hot(chosen, len(s.exists), dtype=float), axis=0)

    rule = optax.chain(optax.stateless(slow_attention), optimiser(cfg.lr))
    if cfg.batch:
        return descend(lambda w, b: mean_loss(cfg, w, s, b), start, rule, batch=some, **probing)
    return descend(
        lambda w: mean_loss(cfg, w, s, share_of(s.exists)),
        start,
        rule,
        until=lambda value, _: value <= cfg.eps,
        **probing,
    )


def measure(
    cfg: Config,
    w: Weights,
    patterns: Float[Array, "P d"],
    s: Samples,
    test: Samples,
    first: Neurons,
    activation: Activation = jax.nn.relu,
) -> dict[str, Array]:
    """The probes of one step."""
    p, v = attended(cfg, w, s)
    of_test = v if test.x is s.x else attended(cfg, w, test)[1]
    margin, unseen = s.margins(w.w_o, v), test.margins(w.w_o, of_test)
    on_relevant = jnp.einsum("bhls,bs->bl", p, (s.role == RELEVANT).astype(float)) / cfg.heads
    weight = s.share[:, None] * s.n
    of_role = [jnp.where(s.role == r, weight, 0.0) for r in range(3)]

    def over(weights: Float[Array, "B T"]) -> Float[Array, ""]:
        total = jnp.sum(weights)
        return jnp.sum(weights * on_relevant) / jnp.where(total > 0, total, 1.0)

    def norm(matrix: Float[Array, "H d d"], rows: Float[Array, "j d"]) -> Float[Array, ""]:
        return jnp.mean(jnp.linalg.norm(jnp.einsum("hkd,jd->hjk", matrix, rows), axis=-1))

    discriminative = cfg.classes * cfg.variants
    return dict(
        train_loss=jnp.sum(share_of(s.exists) * loss_of(cfg, margin)),
        test_loss=jnp.sum(share_of(test.exists) * loss_of(cfg, unseen)),
        test_error=jnp.sum(share_of(test.exists) * (unseen <= 0).astype(float)),
        margin=jnp.min(jnp.where(s.exists, margin, jnp.inf)),
        attention=over(weight),
        attention_from=jnp.stack([over(weights) for weights in of_role]),
        query_norm=norm(w.w_q, patterns[:discriminative]),
        key_norm=norm(w.w_k, patterns[:discriminative]),
        other_norm=norm(w.w_q, patterns[discriminative:]),
        **of_neurons(cfg, w, s, hidden(w.w_o, v, activation), of_role[RELEVANT], first),
    )


def report(
    cfg: Config,
    key: Key[Array, ""],
    start: Weights,
    a: Float[Array, "L m o"],
    patterns: Float[Array, "P d"],
    features: Float[Array, "H M d"],
    s: Samples,
    test: Samples,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    first = neurons_of(cfg, start, s, a, features, activation)
    trace = train(
        cfg,
        stream(key, "batch"),
        start,
        s,
        optimiser,
        steps=cfg.steps,
        at=log_steps(cfg.steps, cfg.record),
        probe=lambda w: measure(cfg, w, patterns, s, test, first, activation),
    )
    return Probes(
        **trace.probes,
        stopped_at=trace.stopped_at,
        role=jnp.arange(len(ROLES), dtype=jnp.int32),
        fate=jnp.arange(len(FATES), dtype=jnp.int32),
        relation=jnp.arange(len(RELATIONS), dtype=jnp.int32),
        step=trace.step,
    )
