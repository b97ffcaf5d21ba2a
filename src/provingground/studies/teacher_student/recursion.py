"""The student trained on the population loss, exactly: a recursion of two numbers (Lemma C.2)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par
from provingground.keys import stream
from provingground.maths.gaussian import f1, f3, f4, kernel
from provingground.train import iterate

from .data import (
    Config as PaperConfig,
)
from .data import (
    Number,
    Shifted,
    Teacher,
    activation,
    exponential,
    noisy_batch,
    support_of,
    values_of,
)
from .model import Probes, framed, record_steps, report


@config
class Config(PaperConfig):
    """The same for the recursion: D, K and N are mere numbers there, so one program serves all."""

    tokens: int = par(36, "D", "tokens", low=5, value=True)
    group: int = par(4, "K", "non-zeros per column of S*", low=1, value=True)
    batch: int = par(100, "N", "fresh samples per step", low=1, value=True)
    steps: int = par(200_000, "T", "steps", low=1)
    eps: float = par(0.0, r"\epsilon", "leak to stop at", low=0)


class Population(eqx.Module):
    r"""Lemma C.2: $W_V = C_1V^*$, logits $C_2$ on the support and $-C_3$ off it; $c = C_2 + C_3$.

    The Jacobian of a softmax annihilates the sum of its column, so $(D-K)C_3 = KC_2$ and two
    numbers are enough. Columns of several degrees have a $c$ each (`degrees`).
    """

    value: Float[Array, ""]
    logit: Float[Array, "..."]


def leak_of(c: Float[Array, "..."], d: Float[Array, ""], k: Float[Array, "..."]) -> Array:
    r"""$\epsilon = 1 - Kp$ with $p = 1/(K + (D-K)e^{-c/\sqrt D})$, without cancellation."""
    rest = (d - k) * jnp.exp(-c / d**0.5)
    return rest / (k + rest)


def population_step(
    state: Population,
    first: Bool[Array, ""],
    d: Float[Array, ""],
    k: Float[Array, "..."],
    energy: Float[Array, ""],
    lr: Number,
    kappa: Number,
    columns: Float[Array, "..."] | None = None,
) -> Population:
    r"""One step of gradient descent on the population loss (Lemma C.2), with
    $\Delta c = \frac D{D-K}\Delta C_2$ and $\mathcal V = \sum_m\|v_m\|^2$ for the paper's $M$.

    `columns` of each degree `k`, all $D$ of one degree by default: they share $C_1$ alone.

    In the first step all pre-activations are zero and $\sigma'(0) = 1$, so $F_3$ is
    $E[(x_1+x_2)\sigma(x_1)] = \frac{1+\kappa}2Kp^2$.
    """
    c1, eps = state.value, leak_of(state.logit, d, k)
    p, off = (1 - eps) / k, eps**2 / (d - k)
    e1 = f1(k * p**2 + off, kappa)
    e21 = f1(p**2, kappa)
    e3 = jnp.where(first, (1 + kappa) / 2 * k * p**2, f3(k * p**2, off, kappa))
    e4 = f4(p**2, (k - 1) * p**2, off, kappa)
    step = (e4 / p - e3) / k - c1 * (e21 - p * e1)
    return Population(
        value=c1 + lr * jnp.sum((d if columns is None else columns) * (e3 / (k * p) - c1 * e1)),
        logit=state.logit + d / (d - k) * lr * c1 * energy / d**0.5 * step,
    )


def population_excess(
    c1: Float[Array, ""],
    eps: Float[Array, "..."],
    d: Float[Array, ""],
    k: Float[Array, "..."],
    energy: Float[Array, ""],
    kappa: Number,
    columns: Float[Array, "..."] | None = None,
) -> Float[Array, ""]:
    r"""`excess_loss` where $W_V = C_1V^*$ and attention leaks evenly:
    $\frac12D\mathcal V\,[k(u,u,1) - 2C_1k(u,w,\rho) + C_1^2k(w,w,1)]$."""
    p = (1 - eps) / k
    u, w = k**-0.5, (k * p**2 + eps**2 / (d - k)) ** 0.5
    cross = kernel(u, w, p / (u * w), kappa)
    each = f1(u**2, kappa) - 2 * c1 * cross + c1**2 * f1(w**2, kappa)
    return energy / 2 * jnp.sum((d if columns is None else columns) * each)


def simulate(cfg: Config, key: Key[Array, ""], data: Teacher | None = None) -> Probes:
    """Gradient descent on the population loss, exactly, as a recursion of two numbers."""
    if data is None:
        v_star, support = values_of(cfg, key), support_of(cfg, key, cfg.frame)
        d, k = jnp.asarray(cfg.tokens, float), jnp.asarray(cfg.group, float)
    else:
        v_star, support = data.v_star.astype(float), data.support
        d, k = jnp.array(float(len(support))), jnp.sum(support[:, 0], dtype=float)
    energy, kappa = jnp.sum(v_star**2), cfg.kappa

    # One column of the OOD data: the sums of the K tokens of its group, and of the D - K others.
    test_key, shape = stream(key, "test"), (v_star.shape[1], cfg.test_samples, 1)

    def add(i: Int[Array, ""], sums: Float[Array, "two d n one"]) -> Float[Array, "two d n one"]:
        token = exponential(jax.random.fold_in(test_key, i), shape)
        return sums.at[(i.astype(float) >= k).astype(int)].add(token)

    sums = jax.lax.fori_loop(0, d.astype(int), add, jnp.zeros((2, *shape)))
    q, r = jnp.einsum("md,adni->amni", v_star, sums)
    labels = noisy_batch(cfg, key, len(v_star), 1)
    shifted = Shifted(q, r, activation(q / k, kappa), *labels, columns=d)

    def measure(state: Population) -> dict[str, Float[Array, ""]]:
        c1, eps = state.value, leak_of(state.logit, d, k)
        seen = (1 - eps) / k * q + eps / (d - k) * r
        ood = shifted.excess(activation(c1 * seen, kappa))
        return dict(
            test_loss=population_excess(c1, eps, d, k, energy, kappa),
            ood_loss=ood.mean,
            ood_worst=ood.worst,
            ood_batch=ood.batch,
            ood_cross=ood.cross,
            value=c1,
            cosine=jnp.sign(c1),
            leak=eps,
            score_error=eps * d / (k * (d - k)) ** 0.5,
            value_error=jnp.abs(c1 - 1),
        )

    trace = iterate(
        lambda state, t: population_step(state, t == 0, d, k, energy, cfg.lr, kappa),
        Population(jnp.zeros(()), jnp.zeros(())),
        steps=cfg.steps,
        at=record_steps(cfg)[1],
        until=lambda state: leak_of(state.logit, d, k) <= cfg.eps,
        probe=measure,
    )
    eps, on = leak_of(trace.last.logit, d, k), support.astype(float)
    exists = (jnp.arange(cfg.frame, dtype=float) < d).astype(float)
    off = jnp.outer(exists, exists) - framed(on, cfg.frame)
    push, spread = shifted.pull(kappa)
    return Probes(
        **report(cfg, trace),
        scores=(1 - eps) / k * framed(on, cfg.frame) + eps / (d - k) * off,
        support=framed(on, cfg.frame),
        energy=energy,
        push=push,
        spread=spread,
    )
