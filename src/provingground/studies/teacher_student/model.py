"""The position-only student and its training by online gradient descent, in the paper's order.

Letters in shapes: d token dimension, D tokens, M output rows, N samples of a batch.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from provingground.config import probe
from provingground.keys import stream
from provingground.maths.gaussian import f1, kernel
from provingground.train import iterate, log_steps

from .data import (
    Config,
    Number,
    Shifted,
    Teacher,
    activation,
    batch_of,
    bilinear,
    exponential,
    noisy_batch,
    teacher_of,
)


class Probes(eqx.Module):
    """What one training reports. Where it ends before the last recorded step, values repeat."""

    test_loss: Float[Array, "step"] = probe("excess loss", r"L - L_{\mathrm{opt}}")
    ood_loss: Float[Array, "step"] = probe("excess OOD loss, independent noise")
    ood_worst: Float[Array, "step"] = probe("excess OOD loss, worst-case labels")
    ood_batch: Float[Array, "step"] = probe("excess OOD loss, one noisy batch")
    ood_cross: Float[Array, "step"] = probe("part of the label noise in it")
    value: Float[Array, "step"] = probe("projection of W_V on V*", "C_1")
    cosine: Float[Array, "step"] = probe("cosine of the values", r"\cos(W_V, V^*)")
    leak: Float[Array, "step"] = probe("attention outside of the support", r"\epsilon")
    score_error: Float[Array, "step"] = probe("distance of the scores", r"\|S - S^*\|_F")
    value_error: Float[Array, "step"] = probe("relative distance of the values")
    scores: Float[Array, "key query"] = probe("attention score", "S")
    support: Float[Array, "key query"] = probe("support of the teacher's scores", "KS^*")
    energy: Float[Array, ""] = probe("teacher energy", r"\mathcal{V} = \sum_m\|v_m\|^2")
    push: Float[Array, ""] = probe("pull of the worst labels", r"\sum E[\sigma'|R|1_A]")
    spread: Float[Array, ""] = probe("spread of what leaks in", r"\sum E[\sigma'^2R^2]")
    stopped_at: Int[Array, ""] = probe("last step", "T")
    step: Int[Array, "step"] = probe("step", "t")


# ---------------------------------------------------------------------- network, Section 2


class Weights(eqx.Module):
    r"""$W_V$, and the logits $A = P^\top W_{KQ}P$.

    $P$ is orthogonal, so descent on $A$ is descent on $W_{KQ}$ seen from other axes: $P$ is gone.
    """

    value: Float[Array, "M d"]
    logits: Float[Array, "D D"]


def attention(w: Weights) -> Float[Array, "D D"]:
    r"""$S = \mathrm{softmax}(A/\sqrt D)$, column by column."""
    return jax.nn.softmax(w.logits / len(w.logits) ** 0.5, axis=0)


def squared_loss(f: Float[Array, "M N D"], y: Float[Array, "M N D"]) -> Float[Array, ""]:
    r"""$\frac12\|Y - f\|_F^2$, averaged over the batch (3.2)."""
    return jnp.sum((y - f) ** 2) / (2 * f.shape[1])


def online(
    cfg: Config, teacher: Teacher, loss: Callable[..., Float[Array, ""]], key: Key[Array, ""]
) -> Callable[[Any, Int[Array, ""]], Any]:
    """One step of gradient descent on a fresh batch (3.3, 3.4)."""

    def step(w: Any, t: Int[Array, ""]) -> Any:
        grads = jax.grad(loss)(w, *batch_of(cfg, teacher, jax.random.fold_in(key, t)))
        return jax.tree.map(lambda w, g: w - cfg.lr * g, w, grads)

    return step


# ------------------------------------------------------------------------------- probes


def excess_loss(
    w_v: Float[Array, "M d"], s: Float[Array, "D D"], teacher: Teacher, kappa: Number
) -> Float[Array, ""]:
    r"""$L - L_{\rm opt}$ of any weights, exactly: entry $(m, i)$ of teacher and student are
    $\sigma$ of two Gaussians of known covariance (`maths.gaussian.kernel`)."""
    s_star = teacher.s_star
    u = jnp.outer(jnp.linalg.norm(teacher.v_star, axis=1), jnp.linalg.norm(s_star, axis=0))
    w = jnp.outer(jnp.linalg.norm(w_v, axis=1), jnp.linalg.norm(s, axis=0))
    cov = jnp.outer(jnp.sum(teacher.v_star * w_v, axis=1), jnp.sum(s_star * s, axis=0))
    rho = cov / jnp.where(u * w > 0, u * w, 1.0)
    return jnp.sum(f1(u**2, kappa) - 2 * kernel(u, w, rho, kappa) + f1(w**2, kappa)) / 2


def framed(matrix: Float[Array, "D D"], size: int) -> Float[Array, "size size"]:
    """The matrix cut, or filled up with zeros, to a size that trainings to be compared share."""
    n = min(len(matrix), size)
    return jnp.zeros((size, size)).at[:n, :n].set(matrix[:n, :n])


def over_norm(a: Float[Array, ""], b: Float[Array, ""]) -> Float[Array, ""]:
    return a / jnp.where(b > 0, b, 1.0)


def record_steps(cfg: Config) -> tuple[np.ndarray, np.ndarray]:
    """The steps on the axis, and where a training that ends before the last is looked at."""
    shown = log_steps(cfg.horizon, cfg.record)
    return shown, np.minimum(shown, cfg.steps)


def report(cfg: Config, trace: Any, **others: Any) -> Any:
    """Probes in time; a replay records every step, everyone else those on the axis."""
    shown, _ = record_steps(cfg)
    step = trace.step if len(trace.step) != len(shown) else jnp.asarray(shown, jnp.int32)
    return dict(**trace.probes, **others, stopped_at=trace.stopped_at, step=step)


# ------------------------------------------------- training of the position-only student


def simulate(cfg: Config, key: Key[Array, ""], data: Teacher | None = None) -> Probes:
    r"""Online gradient descent on $W_V$ and $W_{KQ}$ from zero (3.3, 3.4), a fresh batch each step.

    The excess loss is exact at every recorded step: no test batch.
    """
    teacher = teacher_of(cfg, key, data)
    v_star, s_star, n = teacher.v_star, teacher.s_star, len(teacher.support)
    x = exponential(stream(key, "test"), (v_star.shape[1], cfg.test_samples, n))
    seen = bilinear(v_star, x, jnp.eye(n))
    on = teacher.support.astype(float)
    shifted = Shifted(
        seen @ on,
        seen @ (1 - on),
        activation(seen @ s_star, cfg.kappa),
        *noisy_batch(cfg, key, len(v_star), n),
    )

    def measure(w: Weights) -> dict[str, Float[Array, ""]]:
        s, norm = attention(w), jnp.linalg.norm(v_star)
        ood = shifted.excess(activation(bilinear(w.value, x, s), cfg.kappa))
        along = jnp.sum(w.value * v_star)
        return dict(
            test_loss=excess_loss(w.value, s, teacher, cfg.kappa),
            ood_loss=ood.mean,
            ood_worst=ood.worst,
            ood_batch=ood.batch,
            ood_cross=ood.cross,
            value=over_norm(along, norm**2),
            cosine=over_norm(along, norm * jnp.linalg.norm(w.value)),
            leak=jnp.sum((1 - on) * s) / n,
            score_error=jnp.linalg.norm(s - s_star),
            value_error=over_norm(jnp.linalg.norm(w.value - v_star), norm),
        )

    def loss(w: Weights, x: Float[Array, "d N D"], y: Float[Array, "M N D"]) -> Float[Array, ""]:
        return squared_loss(activation(bilinear(w.value, x, attention(w)), cfg.kappa), y)

    trace = iterate(
        online(cfg, teacher, loss, stream(key, "batch")),
        Weights(jnp.zeros(v_star.shape), jnp.zeros((n, n))),
        steps=cfg.steps,
        at=record_steps(cfg)[1],
        probe=measure,
    )
    push, spread = shifted.pull(cfg.kappa)
    return Probes(
        **report(cfg, trace),
        scores=framed(attention(trace.last), cfg.frame),
        support=framed(on, cfg.frame),
        energy=jnp.sum(v_star**2),
        push=push,
        spread=spread,
    )
