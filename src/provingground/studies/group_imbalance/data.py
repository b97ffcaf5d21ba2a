"""The paper's parameters, its groups, teacher and samples (Section 4.3).

Letters in shapes: d feature dimension, K neurons, n samples, L groups.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from provingground.config import config, mask, par, size
from provingground.errors import InputError
from provingground.keys import normal, stream

from .network import Samples, probability


@config
class Config:
    """The paper's parameters. Means are in units of the vector of ones."""

    dim: int = par(5, "d", "feature dimension", low=1)
    width: int = par(3, "K", "neurons", low=1)
    samples: int = par(20_000, "n", "training samples", low=2, value=True, pad=20_000)
    fraction: float = par(0.5, r"\lambda_2", "fraction of group 2", low=0, high=1)
    mean_1: float = par(1.0, "m_1", "mean of group 1, times the vector of ones")
    mean_2: float = par(-1.0, "m_2", "mean of group 2, times the vector of ones")
    var_1: float = par(1.0, r"\sigma_1^2", "variance of group 1", low=1e-6)
    var_2: float = par(1.0, r"\sigma_2^2", "variance of group 2", low=1e-6)
    stretch: float = par(0.0, "a", "covariances have the eigenvalues 1 + a i", low=0)
    teacher: str = par(
        "gaussian", "W^*", "teacher weights", choices=("gaussian", "uniform", "orthogonal")
    )
    strength: float = par(
        1.0, r"\|w\|", "s.d., half range or norm of the teacher's weights", low=1e-3
    )
    lr: float = par(25.0, "c", r"step size times $M_2$", low=0)
    test_samples: int = par(20_000, r"n_{\mathrm{test}}", "test samples per group", low=2)


# ----------------------------------------------------------------------- groups, Section 4.3


class Mixture(eqx.Module):
    r"""$\Psi$: group $l$ has the fraction $\lambda_l$, mean $\mu_l$, and a root of $\Sigma_l$."""

    fractions: Float[Array, "L"]
    means: Float[Array, "L d"]
    roots: Float[Array, "L d d"]

    @property
    def covs(self) -> Float[Array, "L d d"]:
        return jnp.einsum("lij,lkj->lik", self.roots, self.roots)

    @property
    def widest(self) -> Float[Array, "L"]:
        r"""$\|\Sigma_l^{1/2}\|$."""
        return jnp.sqrt(jnp.linalg.eigvalsh(self.covs)[:, -1])

    def moment(self, k: int) -> Float[Array, ""]:
        r"""$M_k = \sum_l\lambda_l(\|\mu_l\| + \|\Sigma_l^{1/2}\|)^k$."""
        return self.fractions @ (jnp.linalg.norm(self.means, axis=1) + self.widest) ** k

    def printed_moment(self) -> Float[Array, ""]:
        r"""$\sum_l\lambda_l(\|\mu_l\|_\infty + \|\Sigma_l^{1/2}\|)^2$, of Algorithm 1's step."""
        return self.fractions @ (jnp.max(jnp.abs(self.means), axis=1) + self.widest) ** 2


def given_mixture(fractions: Any, means: Any, covs: Any) -> Mixture:
    """A mixture of one's own, for the study's `data`: any number of groups."""
    lam, mu, cov = (np.asarray(a, np.float64) for a in (fractions, means, covs))
    if lam.ndim != 1 or not np.isclose(lam.sum(), 1) or (lam < 0).any():
        raise InputError("the fractions must be non-negative numbers that sum to 1.")
    if mu.shape[:1] != lam.shape or cov.shape != (*mu.shape, mu.shape[-1]):
        raise InputError(
            f"{len(lam)} groups need as many means and covariances, (L, d), (L, d, d)."
        )
    if not np.allclose(cov, cov.swapaxes(1, 2)) or (np.linalg.eigvalsh(cov) <= 0).any():
        raise InputError("every covariance must be symmetric and positive definite.")
    with jax.enable_x64(True):  # whatever the precision of the training, which rounds them
        return Mixture(*(jnp.asarray(a) for a in (lam, mu, np.linalg.cholesky(cov))))


def rows(key: Key[Array, ""], count: int, length: int) -> Float[Array, "count length"]:
    """Normals, each row from a key of its own: neither a longer nor another row changes one."""
    at = jnp.arange(count, dtype=jnp.uint32)
    return jax.vmap(lambda i: normal(jax.random.fold_in(key, i), (length,)))(at)


def world(cfg: Config, key: Key[Array, ""]) -> Float[Array, "2 d columns"]:
    """Normals for the teacher and for the covariances: one draw, since draws compile slowly."""
    d, k = size(cfg, "dim"), size(cfg, "width")
    z = rows(stream(key, "world"), 2 * d, max(d, k))
    return jnp.stack([z[0::2], z[1::2]])  # a larger d appends


def both(a: Any, b: Any) -> Float[Array, "2"]:
    return jnp.stack([jnp.asarray(a, float), jnp.asarray(b, float)])


def mixture_of(cfg: Config, z: Float[Array, "d columns"], data: Mixture | None = None) -> Mixture:
    r"""Two groups of means $m_l\mathbf 1$ and covariances $\sigma_l^2\Lambda^\top D\Lambda$ with a
    random rotation $\Lambda$ and $D = \mathrm{diag}(1, 1+a, 1+2a, \dots)$, or those given."""
    if data is not None:
        return jax.tree.map(lambda a: a.astype(float), data)
    d, exists = size(cfg, "dim"), mask(cfg, "dim")
    on = exists.astype(float)
    gaussian = jnp.where(exists[:, None] & exists[None, :], z[:, :d], jnp.eye(d))
    turn = jnp.linalg.qr(gaussian)[0]
    half = jnp.sqrt(1 + cfg.stretch * jnp.arange(d, dtype=float))
    root = jnp.einsum("ki,k,kj,i,j->ij", turn, half, turn, on, on)
    return Mixture(
        both(1 - cfg.fraction, cfg.fraction),
        both(cfg.mean_1, cfg.mean_2)[:, None] * on[None, :],
        jnp.sqrt(both(cfg.var_1, cfg.var_2))[:, None, None] * root[None],
    )


def teacher_of(cfg: Config, z: Float[Array, "d columns"]) -> Float[Array, "d K"]:
    r"""$W^*$: normal entries, uniform ones, or orthogonal columns, in units of `strength`."""
    k = size(cfg, "width")
    on = mask(cfg, "dim").astype(float)[:, None] * mask(cfg, "width").astype(float)[None, :]
    w = z[:, :k]
    if cfg.teacher == "uniform":
        w = 2 * jax.scipy.special.ndtr(w) - 1
    elif cfg.teacher == "orthogonal":
        if k > len(w):
            raise InputError(f"{k} columns cannot be orthogonal in dimension {len(w)}.")
        w = jnp.linalg.qr(w)[0]
    return cfg.strength * w * on


def in_groups(mixture: Mixture, z: Float[Array, "n d"]) -> Float[Array, "L n d"]:
    r"""$\mu_l + \Sigma_l^{1/2}z$ for every group $l$."""
    return mixture.means[:, None, :] + jnp.einsum("nj,lij->lni", z, mixture.roots)


def samples_of(
    cfg: Config,
    key: Key[Array, ""],
    mixture: Mixture,
    w_star: Float[Array, "d K"],
    each_coordinate: Bool[Array, ""] | bool = False,
) -> Samples:
    r"""(4.1): a group from $\lambda$, $x \sim N(\mu_l, \Sigma_l)$, $y = 1$ with probability $H$.

    With `each_coordinate` every coordinate of a sample draws a group of its own, as in the
    authors' code; the group of a sample is then that of its first coordinate.
    """
    n, exists = size(cfg, "samples"), mask(cfg, "samples").astype(float)
    d = size(cfg, "dim")
    z = rows(stream(key, "data"), 2 + d, n)  # groups, labels, features
    at, lot = jax.scipy.special.ndtr(z[:2])
    z = z[2:].T * mask(cfg, "dim").astype(float)[None, :]
    lots = at[:, None]
    if each_coordinate is not False:
        more = jax.scipy.special.ndtr(rows(stream(key, "data/coordinates"), d, n).T)
        lots = jnp.where(jnp.asarray(each_coordinate), more.at[:, 0].set(at), lots)
    ends = jnp.cumsum(mixture.fractions)[:-1]
    group = jnp.sum(lots[:, :, None] >= ends[None, None, :], axis=2, dtype=jnp.int32)
    own = jax.nn.one_hot(group, len(mixture.fractions), dtype=float)
    x = jnp.einsum(
        "ncl,lnc->nc" if group.shape[1] > 1 else "ncl,lnd->nd", own, in_groups(mixture, z)
    )
    h, _ = probability(x @ w_star, mask(cfg, "width").astype(float))
    return Samples(x, (lot < h).astype(float), group[:, 0], exists / exists.sum())


def problem(
    cfg: Config,
    key: Key[Array, ""],
    data: Mixture | None = None,
    each_coordinate: Bool[Array, ""] | bool = False,
) -> tuple[Mixture, Float[Array, "d K"], Samples]:
    """Mixture, teacher and samples of one seed."""
    of_teacher, of_groups = world(cfg, key)
    mixture, w_star = mixture_of(cfg, of_groups, data), teacher_of(cfg, of_teacher)
    return mixture, w_star, samples_of(cfg, key, mixture, w_star, each_coordinate)


def test_features(cfg: Config, key: Key[Array, ""], mixture: Mixture) -> Float[Array, "L n d"]:
    z = rows(stream(key, "test"), size(cfg, "dim"), cfg.test_samples).T
    return in_groups(mixture, z * mask(cfg, "dim").astype(float)[None, :])
