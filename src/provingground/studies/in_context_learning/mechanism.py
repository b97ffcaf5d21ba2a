"""What a trained model has learned, and how it does on a whole grid of tests and prunings.

One training is measured everywhere: on unseen tasks in the domain and out of it, for contexts with
any fraction of decisive patterns and of any length, for any coefficient sum, with neurons pruned.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import probe, size
from provingground.keys import stream, uniform
from provingground.nets.losses import hinge
from provingground.train import Activation, Optimiser, by_lane

from .model import (
    Config,
    Weights,
    activations,
    attend,
    draw,
    error,
    initial_weights,
    neuron_rows,
    on_pattern,
    train,
    unseen_domain,
)
from .prompts import Domain, Prompt, out_of_domain

DOMAINS = ("in", "out")
IN, OUT = range(2)
ALPHAS = (0.2, 0.4, 0.6, 0.8)  # alpha'
LENGTHS = (2, 3, 5, 7, 10, 14, 20, 28, 40, 56, 80)  # l_ts
LENGTH = LENGTHS.index(20)  # at which other tests are made
SUMS = (-0.5, 0.0, 0.25, 0.5, 0.7, 0.9, 1.0, 1.1, 1.28)  # S_1
WIDEST = 1.28  # a = b = 0.64
ORDERS = ("magnitude", "row norm", "random", "largest first")  # in which neurons are pruned
PRUNED = tuple(k / 20 for k in range(20))  # R
BLOCK = 6  # patterns in the map of W_K^T W_Q


class Probes(eqx.Module):
    """What one training reports. Tasks in the domain are unseen ones."""

    attention: Float[Array, "step domain"] = probe("attention on contexts with the query's pattern")
    attn_leak: Float[Array, "step domain"] = probe("largest attention elsewhere", r"\gamma_t")
    query_norm: Float[Array, "step domain"] = probe("norm of the query", r"\|W_Qp_{query}\|")
    query_own: Float[Array, "step domain"] = probe("query along its own pattern")
    key_norm: Float[Array, "step domain"] = probe("norm of the keys", r"\|W_Kp_i\|")
    key_own: Float[Array, "step domain"] = probe("keys along their own pattern")
    query_partner: Float[Array, "step"] = probe("query along the other relevant patterns, largest")
    query_others: Float[Array, "step"] = probe("query along the other relevant patterns, mean")
    query_irrelevant: Float[Array, "step"] = probe("query along irrelevant patterns, largest")
    margin: Float[Array, "step domain"] = probe("mean margin", "zF")
    neuron_norm: Float[Array, "step neuron"] = probe("feature part of a neuron", r"\|r_{i,d_X}\|")
    cos_mu_bar: Float[Array, "step neuron"] = probe("cosine with the mean pattern", r"\bar\mu")
    label_norm: Float[Array, "step neuron"] = probe("label part of a neuron", r"\|r_{i,d_Y}\|")
    cos_q: Float[Array, "step neuron"] = probe("cosine with the label embedding", "q")
    neuron_sign: Float[Array, "neuron"] = probe("sign of the read-out (0: no neuron)", "a_i")
    neuron_size: Float[Array, "neuron"] = probe("norm of a neuron", r"\|W_{O(i,:)}\|")
    lucky: Float[Array, ""] = probe("share of neurons that are lucky at the start")
    lucky_active: Float[Array, ""] = probe("share of lucky neurons active at the end")
    lucky_size: Float[Array, ""] = probe("mean norm of lucky neurons at the end")
    never_size: Float[Array, ""] = probe("mean norm of neurons that are never lucky")
    coupling: Float[Array, "key_pattern query_pattern"] = probe(
        "score of patterns", r"W_K^\top W_Q"
    )
    test_loss: Float[Array, "domain alpha_prime length"] = probe("hinge loss")
    test_error: Float[Array, "domain alpha_prime length"] = probe("classification error")
    sum_loss: Float[Array, "coef_sum length"] = probe("hinge loss out of domain")
    sum_error: Float[Array, "coef_sum length"] = probe("classification error out of domain")
    pruned_loss: Float[Array, "alpha_prime order pruned"] = probe("hinge loss out of domain")
    pruned_error: Float[Array, "alpha_prime order pruned"] = probe("error out of domain")
    step: Int[Array, "step"] = probe("SGD step", "t")
    domain: Int[Array, "domain"] = probe("in or out of domain", labels=DOMAINS)
    alpha_prime: Float[Array, "alpha_prime"] = probe("fraction of decisive patterns", r"\alpha'")
    length: Int[Array, "length"] = probe("context examples in the test", "l_{ts}")
    coef_sum: Float[Array, "coef_sum"] = probe("coefficient sum", "S_1")
    order: Int[Array, "order"] = probe("which neurons are pruned first", labels=ORDERS)
    pruned: Float[Array, "pruned"] = probe("pruning rate", "R")


# ------------------------------------------------------------------- during training


def projections(cfg: Config, w: Weights, p: Prompt, of: Domain) -> dict[str, Array]:
    """Proposition 6.4.1 for one prompt: norms of query and keys, and their parts (6.17) to (6.19).

    Patterns have norm beta, and projections are on unit vectors.
    """
    q, k = w.w_q @ p.x_query, p.tokens @ w.w_k.T
    share = p.exists.astype(float) / p.exists.sum().astype(float)
    number = jnp.arange(cfg.dim, dtype=jnp.int32)
    relevant = (number < cfg.n_relevant) & (number != p.query_pattern)
    others, irrelevant = (jnp.where(at, jnp.abs(q), 0.0) for at in (relevant, number >= of.start))
    return dict(
        query_norm=jnp.linalg.norm(q),
        query_own=q @ of.rows[p.query_pattern] / cfg.beta,
        key_norm=share @ jnp.linalg.norm(k, axis=-1),
        key_own=share @ jnp.sum(k * of.rows[p.pattern], axis=-1) / cfg.beta,
        query_partner=others.max(),
        query_others=others.sum() / (jnp.asarray(cfg.n_relevant, float) - 1),
        query_irrelevant=irrelevant.max(),
    )


def neurons(cfg: Config, w: Weights) -> dict[str, Float[Array, "m"]]:
    r"""Proposition 6.4.5: the two parts of $r_i$, and their cosines with $\bar\mu$ and $q$.

    Label directions other than q never move: there $W_V$ stays $\delta I$.
    """
    r, d = neuron_rows(w), cfg.dim
    along = r[:, :d] @ (jnp.arange(d, dtype=jnp.int32) < cfg.n_relevant).astype(float)
    feature = jnp.linalg.norm(r[:, :d], axis=1)
    rest = cfg.delta * jnp.linalg.norm(w.w_o[:, d + 1 :], axis=1)
    label = jnp.sqrt(r[:, d] ** 2 + rest**2)

    def over(a: Array, b: Array) -> Array:
        return a / jnp.where(b > 0, b, 1.0)

    return dict(
        neuron_norm=feature,
        cos_mu_bar=over(along, feature * jnp.asarray(cfg.n_relevant, float) ** 0.5),
        label_norm=label,
        cos_q=over(r[:, d], label),
    )


def look(
    cfg: Config, w: Weights, prompts: Prompt, of: Domain, activation: Activation = jax.nn.relu
) -> dict[str, Array]:
    """The probes of one step, on prompts of both domains."""

    def within(both: tuple[Prompt, Domain]) -> dict[str, Array]:
        p, of = both
        attended, attn = jax.vmap(lambda p: attend(w, p, p.exists))(p)
        mass = on_pattern(attn, p)
        found = jax.vmap(lambda p: projections(cfg, w, p, of))(p)
        margin = p.label * (activations(w, attended, activation) @ w.a)
        means = jax.tree.map(lambda x: x.mean(axis=0), found)
        return dict(means, attention=mass.mean(), attn_leak=1 - mass.min(), margin=margin.mean())

    found = jax.lax.map(within, (prompts, of))
    for name in ("query_partner", "query_others", "query_irrelevant"):
        found[name] = found[name][IN]
    return found | neurons(cfg, w)


# ---------------------------------------------------------------------- lucky neurons


def lucky_neurons(w: Weights, p: Prompt, d: int) -> Bool[Array, "B m"]:
    r"""Definition E.4.8, $\mathcal W_n$ for $z=1$ and $\mathcal U_n$ for $z=-1$, at the start.

    Neurons whose feature part and label part both agree with $V_n = \sum_s W_Vp_s\mathrm{attn}_s$,
    and whose read-out has the sign of the label.
    """
    attended, _ = jax.vmap(lambda p: attend(w, p, p.exists))(p)
    v = attended @ w.w_v.T
    feature, label = v[:, :d] @ w.w_o[:, :d].T, v[:, d:] @ w.w_o[:, d:].T
    return (feature > 0) & (label > 0) & (p.label[:, None] * w.a[None, :] > 0)


def lucky_probes(
    start: Weights, end: Weights, p: Prompt, d: int, activation: Activation = jax.nn.relu
) -> dict[str, Array]:
    """How many neurons are lucky at the start, and what becomes of them (Lemma E.4.10)."""
    lucky = lucky_neurons(start, p, d).astype(float)
    attended, _ = jax.vmap(lambda p: attend(end, p, p.exists))(p)
    active = (activations(end, attended, activation) > 0).astype(float)
    exists = (start.a != 0).astype(float)
    norm = jnp.linalg.norm(end.w_o, axis=1)
    share, never = lucky.mean(axis=0), exists * (lucky.max(axis=0) == 0).astype(float)

    def mean(weight: Array, values: Array) -> Array:
        return jnp.sum(weight * values) / jnp.maximum(jnp.sum(weight), 1e-6)

    return dict(
        lucky=share.sum() / exists.sum(),
        lucky_active=mean(lucky, active),
        lucky_size=mean(share, norm),
        never_size=mean(never, norm),
    )


# -------------------------------------------------------------------------- many tests


class Setting(NamedTuple):
    """One kind of test prompts."""

    of: Domain
    alpha: Float[Array, ""]


def kept(w: Weights, key: Key[Array, ""]) -> Float[Array, "order pruned m"]:
    """Which neurons stay, for each order of pruning and each rate."""
    exists = w.a != 0
    m = exists.sum().astype(float)
    norm = jnp.linalg.norm(w.w_o, axis=1)
    rows = jnp.linalg.norm(neuron_rows(w), axis=1)
    by = jnp.stack([norm, rows, uniform(key, norm.shape), -norm])
    by = jnp.where(exists[None, :], by, jnp.inf)  # padding comes last
    rank = jnp.sum(by[:, None, :] < by[:, :, None], axis=-1)  # compiles faster than a sort
    gone = jnp.round(jnp.asarray(PRUNED) * m).astype(rank.dtype)
    return (rank[:, None, :] >= gone[None, :, None]).astype(float)


def tested(
    w: Weights,
    key: Key[Array, ""],
    at: Setting,
    count: int,
    keep: Float[Array, "order pruned m"],
    activation: Activation,
) -> dict[str, Array]:
    """Loss and error at all lengths of the context, and at one length for all prunings.

    Shorter contexts are the first examples of the longest.
    """
    most = max(LENGTHS)
    p = draw(key, count, most, most, at.alpha, at.of)

    def of_length(length: Array) -> Float[Array, "B m"]:
        exists = jnp.arange(most, dtype=jnp.int32) < length
        attended, _ = jax.vmap(lambda p: attend(w, p, exists))(p)
        return activations(w, attended, activation) * w.a[None, :]

    def judged(f: Float[Array, "B"]) -> tuple[Array, Array]:
        return hinge(p.label, f).mean(), error(p.label, f).mean()

    loss, wrong = jax.lax.map(lambda n: judged(of_length(n).sum(axis=1)), jnp.array(LENGTHS))
    parts = of_length(jnp.asarray(LENGTHS[LENGTH]))
    f = jnp.einsum("bm,orm->orb", parts, keep)
    pruned_loss, pruned_error = jax.vmap(jax.vmap(judged))(f)
    return dict(loss=loss, error=wrong, pruned_loss=pruned_loss, pruned_error=pruned_error)


def settings(cfg: Any, inside: Any, alpha: Any, coef_sum: Any, kappa_max: Any) -> Setting:
    """Kinds of test prompts, one for each entry: unseen tasks inside the domain, or outside."""
    unseen = unseen_domain(cfg)

    def one(inside: Array, alpha: Array, coef_sum: Array, kappa_max: Array) -> Setting:
        outside = out_of_domain(cfg.dim, cfg.beta, cfg.n_relevant, coef_sum, kappa_max)
        of = jax.tree.map(lambda a, b: jnp.where(inside, a, b), unseen, outside)
        return Setting(of, alpha)

    values = (jnp.broadcast_to(jnp.asarray(v, float), (len(inside),))
              for v in (alpha, coef_sum, kappa_max))  # fmt: skip
    return jax.vmap(one)(jnp.asarray(inside), *values)


def test_grid(cfg: Any) -> Setting:
    """Each domain with each fraction of decisive patterns, then each coefficient sum."""
    inside = np.array([True] * len(ALPHAS) + [False] * (len(ALPHAS) + len(SUMS)))
    sums = np.array([WIDEST] * 2 * len(ALPHAS) + list(SUMS))
    rest = jnp.full((len(SUMS),), cfg.alpha_test)
    alpha = jnp.concatenate([jnp.array(ALPHAS * 2), rest])
    return settings(cfg, inside, alpha, sums, cfg.kappa_max_ood)


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """One training, looked at while it runs and tested in every way at its end."""
    start = initial_weights(cfg, key)
    grid = test_grid(cfg)
    both = jax.tree.map(lambda x: x[:: len(ALPHAS)][:2], grid.of)  # inside, then outside
    look_keys = jax.random.split(stream(key, "look"), 2)
    n, context = cfg.test_samples, size(cfg, "tokens_test")
    prompts = jax.vmap(lambda k, of: draw(k, n, context, cfg.tokens_test, cfg.alpha_test, of))(
        look_keys, both
    )
    part = jnp.arange(cfg.record) / (cfg.record - 1)
    at = jnp.round(part * jnp.asarray(cfg.steps, float)).astype(jnp.int32)
    trace = train(
        cfg,
        key,
        start,
        activation,
        optimiser,
        at=at,
        probe=lambda w: look(cfg, w, prompts, both, activation),
    )
    test_key, prune_key = stream(key, "test"), stream(key, "prune")

    def at_end(w: Weights) -> dict[str, Array]:
        keep = kept(w, prune_key)
        found = jax.lax.map(lambda at: tested(w, test_key, at, n, keep, activation), grid)
        pairs = 2 * len(ALPHAS)
        by_domain = {
            name: found[name][:pairs].reshape(2, len(ALPHAS), *found[name].shape[1:])
            for name in found
        }
        inside = jax.tree.map(lambda x: x[IN], prompts)
        return dict(
            test_loss=by_domain["loss"],
            test_error=by_domain["error"],
            sum_loss=found["loss"][pairs:],
            sum_error=found["error"][pairs:],
            pruned_loss=by_domain["pruned_loss"][OUT],
            pruned_error=by_domain["pruned_error"][OUT],
            neuron_size=jnp.linalg.norm(w.w_o, axis=1),
            coupling=(w.w_k[:, : cfg.dim].T @ w.w_q)[:BLOCK, :BLOCK],
            **lucky_probes(start, w, inside, cfg.dim, activation),
        )

    def numbers(values: Any) -> Array:
        return jnp.arange(len(values), dtype=jnp.int32)

    return Probes(
        **trace.probes,
        **by_lane(at_end, trace.last),
        neuron_sign=jnp.sign(start.a),
        step=trace.step,
        domain=jnp.arange(2, dtype=jnp.int32),
        alpha_prime=jnp.array(ALPHAS),
        length=jnp.array(LENGTHS, jnp.int32),
        coef_sum=jnp.array(SUMS),
        order=numbers(ORDERS),
        pruned=jnp.array(PRUNED),
    )
