"""Teachers, network and training of the position-only student, in the paper's order.

Letters in shapes: d token dimension, D tokens, M output rows, N samples of a batch.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Key

from provingground.config import config, par, probe
from provingground.errors import InputError
from provingground.keys import normal, stream, uniform
from provingground.maths.gaussian import f1, f3, f4, kernel
from provingground.train import iterate, log_steps

TEACHERS = ("cnn", "gcn", "sts", "gslp")
Number = Float[Array, ""] | float  # a traced value of a Config


@config
class Config:
    """The paper's parameters; defaults are those of the ReLU CNN in Figure 2."""

    teacher: str = par("cnn", "f^*", "teacher", choices=TEACHERS)
    tokens: int = par(36, "D", "tokens", low=5)
    group: int = par(4, "K", "non-zeros per column of S*", low=1)
    dim: int = par(10, "d", "token dimension", low=1)
    outputs: int = par(10, "M", "output rows", low=1)
    kappa: float = par(0.0, r"\kappa", "slope of the activation below zero", low=0, high=1)
    scale: float = par(1.0, "c_V", "s.d. of the entries of V*", low=0)
    lr: float = par(0.1, r"\eta", "step size", low=0)
    batch: int = par(100, "N", "fresh samples per step", low=1)
    noise: float = par(1.0, r"\sigma_\xi", "label noise s.d.", low=0)
    steps: int = par(20_000, "T", "steps", low=1)
    horizon: int = par(200_000, "T_{\\max}", "last recorded step", low=1)
    record: int = par(121, "n_t", "recorded steps, even in the logarithm", low=2)
    test_samples: int = par(200, r"N_{\mathrm{test}}", "out-of-distribution samples", low=1)
    frame: int = par(36, "n_S", "rows and columns of the recorded scores", low=1)


@config
class PopulationConfig(Config):
    """The same for the recursion: D and K are mere numbers there, so one program serves all."""

    tokens: int = par(36, "D", "tokens", low=5, value=True)
    group: int = par(4, "K", "non-zeros per column of S*", low=1, value=True)
    steps: int = par(200_000, "T", "steps", low=1)
    eps: float = par(0.0, r"\epsilon", "leak to stop at", low=0)


class Probes(eqx.Module):
    """What one training reports. Where it ends before the last recorded step, values repeat."""

    test_loss: Float[Array, "step"] = probe("excess loss", r"L - L_{\mathrm{opt}}")
    ood_loss: Float[Array, "step"] = probe("excess OOD loss, independent noise")
    ood_worst: Float[Array, "step"] = probe("excess OOD loss, worst-case labels")
    value: Float[Array, "step"] = probe("projection of W_V on V*", "C_1")
    cosine: Float[Array, "step"] = probe("cosine of the values", r"\cos(W_V, V^*)")
    leak: Float[Array, "step"] = probe("attention outside of the support", r"\epsilon")
    score_error: Float[Array, "step"] = probe("distance of the scores", r"\|S - S^*\|_F")
    value_error: Float[Array, "step"] = probe("relative distance of the values")
    scores: Float[Array, "key query"] = probe("attention score", "S")
    support: Float[Array, "key query"] = probe("support of the teacher's scores", "KS^*")
    energy: Float[Array, ""] = probe("teacher energy", r"\mathcal{V} = \sum_m\|v_m\|^2")
    stopped_at: Int[Array, ""] = probe("last step", "T")
    step: Int[Array, "step"] = probe("step", "t")


# -------------------------------------------------------------------- teachers, Section 2


class Teacher(eqx.Module):
    r"""$f^*(X) = \sigma(V^* X S^*)$ (2.1): column $i$ of $S^*$ is $1/K$ on $G^i$, else zero."""

    v_star: Float[Array, "M d"]
    support: Bool[Array, "D D"]

    @property
    def s_star(self) -> Float[Array, "D D"]:
        on = self.support.astype(self.v_star.dtype)
        return on / on.sum(axis=0, keepdims=True)


def given_teacher(support: ArrayLike, v_star: ArrayLike) -> Teacher:
    """A teacher of one's own, for the study's `data`. Columns must have equally many entries."""
    on, v = np.asarray(support, bool), np.asarray(v_star, np.float32)
    degrees = np.unique(on.sum(axis=0))
    if on.ndim != 2 or on.shape[0] != on.shape[1]:
        raise InputError(f"the support must be a square matrix; it has the shape {on.shape}.")
    if len(degrees) > 1 or not 0 < degrees[0] < len(on):
        raise InputError(
            "every column of the support must have the same number K of entries, 0 < K < D "
            f"(the theory needs it); these have {', '.join(map(str, degrees))}."
        )
    return Teacher(jnp.asarray(v), jnp.asarray(on))


def support_of(cfg: Config, key: Key[Array, ""], size: int) -> Bool[Array, "size size"]:
    r"""Examples 2.1 to 2.4: the rows of column $i$ that belong to $G^i$; none beyond $D$.

    Blocks of $K$ patches, a node of a cycle and its nearest nodes, or the same $K$ random tokens in
    every column.
    """
    at = jnp.arange(size, dtype=jnp.int32)
    row, column = at[:, None], at[None, :]
    d, k = jnp.asarray(cfg.tokens, jnp.int32), jnp.asarray(cfg.group, jnp.int32)
    if cfg.teacher == "cnn":
        on = row // k == column // k
    elif cfg.teacher == "gcn":
        on = (row - column + (k - 1) // 2) % d < k
    else:
        lot = jnp.where(at < d, uniform(stream(key, "teacher/tokens"), (size,)), 2.0)
        on = (jnp.argsort(jnp.argsort(lot)).astype(jnp.int32) < k)[:, None]
    return on & (row < d) & (column < d)


def values_of(cfg: Config, key: Key[Array, ""]) -> Float[Array, "M d"]:
    """V*: Gaussian, or for sparse token selection the identity."""
    if cfg.teacher == "sts":
        return cfg.scale * jnp.eye(cfg.outputs, cfg.dim)
    return cfg.scale * normal(stream(key, "teacher/values"), (cfg.outputs, cfg.dim))


def teacher_of(cfg: Config, key: Key[Array, ""], data: Teacher | None) -> Teacher:
    """The teacher of the Config, or the one that is given."""
    if data is not None:
        return Teacher(data.v_star.astype(float), data.support)
    if cfg.teacher == "cnn" and cfg.tokens % cfg.group:
        raise InputError(f"{cfg.tokens} tokens cannot be pooled in groups of {cfg.group}.")
    if cfg.group >= cfg.tokens:
        raise InputError(f"a group of {cfg.group} needs more than {cfg.tokens} tokens.")
    return Teacher(values_of(cfg, key), support_of(cfg, key, cfg.tokens))


# ---------------------------------------------------------------------- network, Section 2


class Weights(eqx.Module):
    r"""$W_V$, and the logits $A = P^\top W_{KQ}P$.

    $P$ is orthogonal, so descent on $A$ is descent on $W_{KQ}$ seen from other axes: $P$ is gone.
    """

    value: Float[Array, "M d"]
    logits: Float[Array, "D D"]


def activation(x: Float[Array, "..."], kappa: Number) -> Float[Array, "..."]:
    r"""$\sigma$ with $\sigma'(0) = 1$: with 0 instead a ReLU student that starts at zero stays."""
    return jnp.where(x >= 0, x, kappa * x)


def attention(w: Weights) -> Float[Array, "D D"]:
    r"""$S = \mathrm{softmax}(A/\sqrt D)$, column by column."""
    return jax.nn.softmax(w.logits / len(w.logits) ** 0.5, axis=0)


def bilinear(
    v: Float[Array, "M d"], x: Float[Array, "d N D"], s: Float[Array, "D D"]
) -> Float[Array, "M N D"]:
    """V X S for every sample of a batch."""
    return jnp.einsum("md,dni->mni", v, x) @ s


def squared_loss(f: Float[Array, "M N D"], y: Float[Array, "M N D"]) -> Float[Array, ""]:
    r"""$\frac12\|Y - f\|_F^2$, averaged over the batch (3.2)."""
    return jnp.sum((y - f) ** 2) / (2 * f.shape[1])


def batch_of(
    cfg: Config, teacher: Teacher, key: Key[Array, ""]
) -> tuple[Float[Array, "d N D"], Float[Array, "M N D"]]:
    r"""Gaussian inputs and their noisy labels $Y = f^*(X) + \mathcal E$ (3.1)."""
    (m, d), n = teacher.v_star.shape, len(teacher.support)
    z = normal(key, (d + m, cfg.batch, n))  # one draw: programs with few draws compile fast
    clean = activation(bilinear(teacher.v_star, z[:d], teacher.s_star), cfg.kappa)
    return z[:d], clean + cfg.noise * z[d:]


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


class Shifted(eqx.Module):
    r"""Inputs with Exp(1) entries, by what a student sees of them, and worst-case labels.

    `inside` and `outside` are $Q = \sum_{i_1\in G^i}\langle v_m, x_{i_1}\rangle$ and $R$, the same
    over all other tokens. The worst labels are $f^* - \mathrm{sign}(R)$ where
    $|R| \ge \max(|Q|, 1)$ (Appendix D, with the sign that makes the excess positive).
    """

    inside: Float[Array, "M n columns"]
    outside: Float[Array, "M n columns"]
    clean: Float[Array, "M n columns"]

    def excess(self, f: Float[Array, "M n columns"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        r"""Excess with independent noise, $\frac12E\|\Delta\|^2$, and with the worst labels,
        which adds $E\langle\tilde Y - f^*, \Delta\rangle$, for $\Delta = f^* - f$."""
        gap, q, r = self.clean - f, jnp.abs(self.inside), jnp.abs(self.outside)
        shift = jnp.where(r >= jnp.maximum(q, 1.0), -jnp.sign(self.outside), 0.0)
        loss, cross = jnp.sum(gap**2) / 2, jnp.sum(shift * gap)
        return loss / f.shape[1], (loss + cross) / f.shape[1]


def exponential(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
    return -jnp.log1p(-uniform(key, shape))


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


def simulate_sgd(cfg: Config, key: Key[Array, ""], data: Teacher | None = None) -> Probes:
    r"""Online gradient descent on $W_V$ and $W_{KQ}$ from zero (3.3, 3.4), a fresh batch each step.

    The excess loss is exact at every recorded step: no test batch.
    """
    teacher = teacher_of(cfg, key, data)
    v_star, s_star, n = teacher.v_star, teacher.s_star, len(teacher.support)
    x = exponential(stream(key, "test"), (v_star.shape[1], cfg.test_samples, n))
    seen = bilinear(v_star, x, jnp.eye(n))
    on = teacher.support.astype(float)
    shifted = Shifted(seen @ on, seen @ (1 - on), activation(seen @ s_star, cfg.kappa))

    def measure(w: Weights) -> dict[str, Float[Array, ""]]:
        s, norm = attention(w), jnp.linalg.norm(v_star)
        ood_loss, ood_worst = shifted.excess(activation(bilinear(w.value, x, s), cfg.kappa))
        along = jnp.sum(w.value * v_star)
        return dict(
            test_loss=excess_loss(w.value, s, teacher, cfg.kappa),
            ood_loss=ood_loss,
            ood_worst=ood_worst,
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
    return Probes(
        **report(cfg, trace),
        scores=framed(attention(trace.last), cfg.frame),
        support=framed(on, cfg.frame),
        energy=jnp.sum(v_star**2),
    )


# ------------------------------------------------------------- training on the population


class Population(eqx.Module):
    r"""Lemma C.2: $W_V = C_1V^*$, logits $C_2$ on the support and $-C_3$ off it; $c = C_2 + C_3$.

    The Jacobian of a softmax annihilates the sum of its column, so $(D-K)C_3 = KC_2$ and two
    numbers are enough.
    """

    value: Float[Array, ""]
    logit: Float[Array, ""]


def leak_of(c: Float[Array, ""], d: Float[Array, ""], k: Float[Array, ""]) -> Float[Array, ""]:
    r"""$\epsilon = 1 - Kp$ with $p = 1/(K + (D-K)e^{-c/\sqrt D})$, without cancellation."""
    rest = (d - k) * jnp.exp(-c / d**0.5)
    return rest / (k + rest)


def population_step(
    state: Population,
    first: Bool[Array, ""],
    d: Float[Array, ""],
    k: Float[Array, ""],
    energy: Float[Array, ""],
    lr: Number,
    kappa: Number,
) -> Population:
    r"""One step of gradient descent on the population loss (Lemma C.2), with
    $\Delta c = \frac D{D-K}\Delta C_2$ and $\mathcal V = \sum_m\|v_m\|^2$ for the paper's $M$.

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
        value=c1 + lr * d * (e3 / (k * p) - c1 * e1),
        logit=state.logit + d / (d - k) * lr * c1 * energy / d**0.5 * step,
    )


def population_excess(
    c1: Float[Array, ""],
    eps: Float[Array, ""],
    d: Float[Array, ""],
    k: Float[Array, ""],
    energy: Float[Array, ""],
    kappa: Number,
) -> Float[Array, ""]:
    r"""`excess_loss` where $W_V = C_1V^*$ and attention leaks evenly:
    $\frac12D\mathcal V\,[k(u,u,1) - 2C_1k(u,w,\rho) + C_1^2k(w,w,1)]$."""
    p = (1 - eps) / k
    u, w = k**-0.5, (k * p**2 + eps**2 / (d - k)) ** 0.5
    cross = kernel(u, w, p / (u * w), kappa)
    return d * energy / 2 * (f1(u**2, kappa) - 2 * c1 * cross + c1**2 * f1(w**2, kappa))


def simulate_recursion(
    cfg: PopulationConfig, key: Key[Array, ""], data: Teacher | None = None
) -> Probes:
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
    shifted = Shifted(q, r, activation(q / k, kappa))

    def measure(state: Population) -> dict[str, Float[Array, ""]]:
        c1, eps = state.value, leak_of(state.logit, d, k)
        seen = (1 - eps) / k * q + eps / (d - k) * r
        ood_loss, ood_worst = shifted.excess(activation(c1 * seen, kappa))
        return dict(
            test_loss=population_excess(c1, eps, d, k, energy, kappa),
            ood_loss=d * ood_loss,
            ood_worst=d * ood_worst,
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
    return Probes(
        **report(cfg, trace),
        scores=(1 - eps) / k * framed(on, cfg.frame) + eps / (d - k) * off,
        support=framed(on, cfg.frame),
        energy=energy,
    )
