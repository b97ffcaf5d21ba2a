r"""Training on other task graphs, tested out of domain on all pairs of patterns.

Tasks are edges between patterns, and those of a ring number make a circulant graph: with six
patterns the first ring is a hexagon, the second two triangles, the third three pairs. After the
training, pairs $\mu' = \cos\theta\,\mu_i + \sin\theta\,\mu_j$ are tested, three at a time: the 15
ways to pair six patterns, for several coefficient sums $S = \cos\theta + \sin\theta$.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe, size
from provingground.keys import stream
from provingground.nets.losses import hinge
from provingground.train import Activation, Optimiser, by_lane, descend

from . import model
from .mechanism import WIDEST
from .model import Weights, activations, attend, draw, error, initial_weights, on_pattern
from .prompts import Domain, Prompt, in_domain, out_of_domain, task_count

PATTERNS = 6
SUMS = (-0.5, 0.0, 0.5, 1.0, 2**0.5)
KAPPAS = (0.0, 5.0)  # K'


def matchings(left: tuple[int, ...] = tuple(range(PATTERNS))) -> list[list[tuple[int, int]]]:
    """All ways to pair patterns."""
    if not left:
        return [[]]
    first, rest = left[0], left[1:]
    return [
        [(first, j), *others]
        for j in rest
        for others in matchings(tuple(k for k in rest if k != j))
    ]


def pairing_coefficients(coef_sum: float) -> Float[np.ndarray, "pairing 3 6"]:
    r"""$k$ of the three patterns of every pairing, with a coefficient sum of at most $\sqrt2$."""
    turn = np.arccos(np.clip(coef_sum / 2**0.5, -1, 1))
    a, b = np.cos(np.pi / 4 + turn), np.sin(np.pi / 4 + turn)
    k = np.zeros((len(matchings()), 3, PATTERNS))
    for n, pairs in enumerate(matchings()):
        for j, (first, second) in enumerate(pairs):
            k[n, j, first], k[n, j, second] = b, a
    return k


COEFFICIENTS = np.stack([pairing_coefficients(s) for s in SUMS])  # sum, pairing, pattern, k


@config
class Config(model.Config):
    """As `model.Config`, with the first training task: $M_1$ times the ring it starts with."""

    first_task: int = par(0, "n_0", "number of the first training task", low=0, value=True)
    n_relevant: int = par(6, "M_1", "relevant patterns", low=PATTERNS, value=True)


class Probes(eqx.Module):
    """What one training reports of its end."""

    train_loss: Float[Array, ""] = probe("training hinge loss")
    coupling: Float[Array, "key_pattern query_pattern"] = probe("score of patterns", "C")
    query_map: Float[Array, "key_pattern query_pattern"] = probe("relevant patterns", "W_Q")
    key_map: Float[Array, "key_pattern query_pattern"] = probe("relevant patterns", "W_K")
    query_irrelevant: Float[Array, ""] = probe("mean over irrelevant patterns", r"\nu^\top W_Q\nu")
    key_irrelevant: Float[Array, ""] = probe("mean over irrelevant patterns", r"\nu^\top W_K\nu")
    unseen_error: Float[Array, ""] = probe("error on unseen tasks")
    unseen_loss: Float[Array, ""] = probe("hinge loss on unseen tasks")
    attention: Float[Array, "kappa_prime coef_sum pairing"] = probe(
        "attention on contexts with the query's pattern"
    )
    margin: Float[Array, "kappa_prime coef_sum pairing"] = probe("mean margin", "zF")
    test_loss: Float[Array, "kappa_prime coef_sum pairing"] = probe("hinge loss")
    test_error: Float[Array, "kappa_prime coef_sum pairing"] = probe("classification error")
    kappa_prime: Float[Array, "kappa_prime"] = probe("largest irrelevant part", "K'")
    coef_sum: Float[Array, "coef_sum"] = probe("coefficient sum", "S")
    pairing: Int[Array, "pairing"] = probe("number of the pairing")


def trained_domain(cfg: Config) -> Domain:
    """The training tasks: `n_tasks` of them from `first_task` on."""
    last = cfg.first_task + cfg.n_tasks
    return in_domain(cfg.dim, cfg.beta, cfg.n_relevant, cfg.first_task, last, cfg.kappa_max)


def all_domain(cfg: Config) -> Domain:
    every = task_count(cfg.n_relevant)
    return in_domain(cfg.dim, cfg.beta, cfg.n_relevant, 0, every, cfg.kappa_max)


def pair_domain(cfg: Config, k: Float[Array, "3 6"], kappa_max: Any) -> Domain:
    """The domain of three combinations of the first six patterns."""
    of = out_of_domain(cfg.dim, cfg.beta, cfg.n_relevant, jnp.asarray(WIDEST), kappa_max)
    return of._replace(rows=jnp.zeros_like(of.rows).at[:3, :PATTERNS].set(cfg.beta * k))


def tested(
    cfg: Config, w: Weights, key: Key[Array, ""], of: Domain, activation: Activation
) -> dict[str, Float[Array, ""]]:
    """Attention, margin, loss and error on prompts of a domain."""
    p = draw(key, cfg.test_samples, size(cfg, "tokens_test"), cfg.tokens_test, cfg.alpha_test, of)
    attended, attn = jax.vmap(lambda p: attend(w, p, p.exists))(p)
    f = activations(w, attended, activation) @ w.a
    return dict(
        attention=on_pattern(attn, p).mean(),
        margin=(p.label * f).mean(),
        test_loss=hinge(p.label, f).mean(),
        test_error=error(p.label, f).mean(),
    )


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """One training on the graph's tasks, and tests on all pairings."""
    of, batch_key = trained_domain(cfg), stream(key, "batch")

    def batch(t: Int[Array, ""]) -> Prompt:
        now = jax.random.fold_in(batch_key, t)
        return draw(now, cfg.batch, size(cfg, "tokens"), cfg.tokens, cfg.alpha, of)

    def loss(w: Weights, p: Prompt) -> Float[Array, ""]:
        return hinge(p.label, model.outputs(w, p, activation)[0]).mean()

    trace = descend(
        loss,
        initial_weights(cfg, key),
        optimiser(cfg.lr),
        steps=cfg.steps,
        batch=batch,
        frozen=lambda w: w.a,
        until=lambda value, _: value < cfg.eps,
    )
    test_key = stream(key, "test")
    shape = (len(KAPPAS), *COEFFICIENTS.shape[:2])
    kappa = jnp.broadcast_to(jnp.array(KAPPAS)[:, None, None], shape).ravel()
    k = jnp.broadcast_to(jnp.asarray(COEFFICIENTS, float), (len(KAPPAS), *COEFFICIENTS.shape))

    def at_end(w: Weights) -> dict[str, Array]:
        of_pairs = jax.vmap(lambda k, kappa: pair_domain(cfg, k, kappa))(
            k.reshape(-1, *k.shape[-2:]), kappa
        )
        found = jax.lax.map(lambda of: tested(cfg, w, test_key, of, activation), of_pairs)
        unseen = tested(cfg, w, test_key, all_domain(cfg), activation)
        key_map = w.w_k[:, : cfg.dim]
        outside = (jnp.arange(cfg.dim, dtype=jnp.int32) >= cfg.n_relevant).astype(float)
        number = outside.sum()
        return dict(
            {name: v.reshape(shape) for name, v in found.items()},
            train_loss=loss(w, batch(jnp.asarray(cfg.steps, jnp.int32) + 1)),
            coupling=(key_map.T @ w.w_q)[:PATTERNS, :PATTERNS],
            query_map=w.w_q[:PATTERNS, :PATTERNS],
            key_map=key_map[:PATTERNS, :PATTERNS],
            query_irrelevant=jnp.diag(w.w_q) @ outside / number,
            key_irrelevant=jnp.diag(key_map) @ outside / number,
            unseen_error=unseen["test_error"],
            unseen_loss=unseen["test_loss"],
        )

    return Probes(
        **by_lane(at_end, trace.last),
        kappa_prime=jnp.array(KAPPAS),
        coef_sum=jnp.array(SUMS),
        pairing=jnp.arange(len(matchings()), dtype=jnp.int32),
    )
