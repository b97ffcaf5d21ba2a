"""The paper's parameters, its teachers (Section 2), and the batches drawn from them (3.1).

Letters in shapes: d token dimension, D tokens, M output rows, N samples of a batch.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Key

from provingground.config import config, par
from provingground.errors import InputError
from provingground.keys import normal, stream, uniform

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


# -------------------------------------------------------------------- teachers, Section 2


class Teacher(eqx.Module):
    r"""$f^*(X) = \sigma(V^* X S^*)$ (2.1): column $i$ of $S^*$ is $1/K_i$ on $G^i$, else zero."""

    v_star: Float[Array, "M d"]
    support: Bool[Array, "D D"]

    @property
    def s_star(self) -> Float[Array, "D D"]:
        on = self.support.astype(self.v_star.dtype)
        return on / on.sum(axis=0, keepdims=True)


def given_teacher(support: ArrayLike, v_star: ArrayLike, *, unequal: bool = False) -> Teacher:
    """A teacher of one's own, for the study's `data`. The paper and the simulator `recursion` have
    equally many entries in every column; `unequal` lets them differ, for SGD."""
    on, v = np.asarray(support, bool), np.asarray(v_star, np.float32)
    if on.ndim != 2 or on.shape[0] != on.shape[1]:
        raise InputError(f"the support must be a square matrix; it has the shape {on.shape}.")
    degrees = np.unique(on.sum(axis=0))
    if (len(degrees) > 1 and not unequal) or degrees[0] == 0 or degrees[-1] == len(on):
        raise InputError(
            "every column of the support must have the same number K of entries, 0 < K < D "
            f"(the theory needs it); these have {', '.join(map(str, degrees))}."
        )
    return Teacher(jnp.asarray(v), jnp.asarray(on))


def mixed_support(tokens: int, low: int, high: int) -> np.ndarray:
    """Columns whose groups have, in turn, `low` and `high` of the tokens that follow."""
    row, column = np.ogrid[:tokens, :tokens]
    return (row - column) % tokens < np.where(np.arange(tokens) % 2, high, low)


def support_of(cfg: Any, key: Key[Array, ""], size: int) -> Bool[Array, "size size"]:
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


def values_of(cfg: Any, key: Key[Array, ""]) -> Float[Array, "M d"]:
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


# -------------------------------------------------------------------------------- batches


def activation(x: Float[Array, "..."], kappa: Number) -> Float[Array, "..."]:
    r"""$\sigma$ with $\sigma'(0) = 1$: with 0 instead a ReLU student that starts at zero stays."""
    return jnp.where(x >= 0, x, kappa * x)


def bilinear(
    v: Float[Array, "M d"], x: Float[Array, "d N D"], s: Float[Array, "D D"]
) -> Float[Array, "M N D"]:
    """V X S for every sample of a batch."""
    return jnp.einsum("md,dni->mni", v, x) @ s


def batch_of(
    cfg: Config, teacher: Teacher, key: Key[Array, ""]
) -> tuple[Float[Array, "d N D"], Float[Array, "M N D"]]:
    r"""Gaussian inputs and their noisy labels $Y = f^*(X) + \mathcal E$ (3.1)."""
    (m, d), n = teacher.v_star.shape, len(teacher.support)
    z = normal(key, (d + m, cfg.batch, n))  # one draw: programs with few draws compile fast
    clean = activation(bilinear(teacher.v_star, z[:d], teacher.s_star), cfg.kappa)
    return z[:d], clean + cfg.noise * z[d:]


# --------------------------------------------------------- other data, Theorem 3.2


class Excess(eqx.Module):
    """The excess loss on other data, by what the labels are: the teacher's with independent noise
    on average, the worst, and one noisy batch; of the last also what the noise has in it."""

    mean: Float[Array, ""]
    worst: Float[Array, ""]
    batch: Float[Array, ""]
    cross: Float[Array, ""]


class Shifted(eqx.Module):
    r"""Inputs with Exp(1) entries, by what a student sees of them, and their labels.

    `inside` and `outside` are $Q = \sum_{i_1\in G^i}\langle v_m, x_{i_1}\rangle$ and $R$, the same
    over all other tokens. The worst labels are $f^* - \mathrm{sign}(R)$ on the event $A$ that
    $|R| \ge \max(|Q|, 1)$ (Appendix D, with the sign that makes the excess positive). `noise` is
    that of the labels, and `batch` says which samples are the one batch of Figure 2(b).

    Where one column stands for all $D$, `columns` is $D$: a mean over columns grows as $D$, a sum
    of independent noise as $\sqrt D$.
    """

    inside: Float[Array, "M n columns"]
    outside: Float[Array, "M n columns"]
    clean: Float[Array, "M n columns"]
    noise: Float[Array, "M n columns"]
    batch: Bool[Array, "n 1"]
    columns: Number = 1.0

    def far(self) -> Bool[Array, "M n columns"]:
        """The event A."""
        return jnp.abs(self.outside) >= jnp.maximum(jnp.abs(self.inside), 1.0)

    def pull(self, kappa: Number) -> tuple[Float[Array, ""], Float[Array, ""]]:
        r"""$\sum_{m,i}E[\sigma'(Q)\,|R|\,1_A]$ and $\sum_{m,i}E[\sigma'(Q)^2R^2]$: all that the
        laws of Theorem 3.2 need of the data."""
        moved = jnp.where(self.inside >= 0, 1.0, kappa) * jnp.abs(self.outside)
        sums = jnp.sum(jnp.where(self.far(), moved, 0.0)), jnp.sum(moved**2)
        first, second = (self.columns * each / moved.shape[1] for each in sums)
        return first, second

    def excess(self, f: Float[Array, "M n columns"]) -> Excess:
        r"""With $\Delta = f^* - f$: $\frac12E\|\Delta\|^2$ for independent noise; the worst labels
        add $E\langle\tilde Y - f^*, \Delta\rangle$, and those of one batch
        $\frac1N\sum_n\langle\mathcal E_n, \Delta_n\rangle$ to its own $\frac12\|\Delta\|^2$."""
        gap, n = self.clean - f, jnp.sum(self.batch, dtype=f.dtype)
        shift = jnp.where(self.far(), -jnp.sign(self.outside), 0.0)
        mean = self.columns * jnp.sum(gap**2) / (2 * gap.shape[1])
        first = jnp.where(self.batch, gap, 0.0)
        cross = self.columns**0.5 * jnp.sum(self.noise * first) / n
        return Excess(
            mean=mean,
            worst=mean + self.columns * jnp.sum(shift * gap) / gap.shape[1],
            batch=self.columns * jnp.sum(first**2) / (2 * n) + cross,
            cross=cross,
        )


def exponential(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
    return -jnp.log1p(-uniform(key, shape))


def noisy_batch(
    cfg: Config, key: Key[Array, ""], rows: int, columns: int
) -> tuple[Float[Array, "M n columns"], Bool[Array, "n 1"]]:
    """Label noise of the OOD samples, and which of them are the one batch of Figure 2(b): as many
    as a batch of the training."""
    n = cfg.test_samples
    noise = cfg.noise * normal(stream(key, "test/noise"), (rows, n, columns))
    return noise, jnp.arange(n, dtype=jnp.int32)[:, None] < jnp.asarray(cfg.batch, jnp.int32)
