"""Groups, network and minimiser of the one-hidden-layer network, in the paper's order.

Letters in shapes: d feature dimension, K neurons, n samples, L groups, M starts, D = dK weights.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, mask, par, probe, size
from provingground.errors import InputError
from provingground.keys import normal, stream
from provingground.train import by_lane, iterate

NEWTON_STEPS = 60  # at most; about ten where there is a minimiser
SATURATED = 80.0  # beyond it a sigmoid is below 1e-34 from its limit, and float32 would lose it


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
    scale: float = par(1.0, r"\|w\|", "s.d., half range or norm of the teacher's weights", low=1e-3)
    lr: float = par(25.0, "c", r"step size times $M_2$", low=0)
    test_samples: int = par(20_000, r"n_{\mathrm{test}}", "test samples per group", low=2)


@config
class WideConfig(Config):
    """The same with a number of neurons that is a mere number, so that one program serves all."""

    width: int = par(3, "K", "neurons", low=1, value=True, pad=4)


class Probes(eqx.Module):
    """What is found at the minimiser, and what the local theory says about it."""

    error: Float[Array, ""] = probe("distance to the teacher", r"\|\hat W_n - W^*P\|_F")
    relative_error: Float[Array, ""] = probe("relative distance to the teacher")
    test_loss: Float[Array, ""] = probe("average risk", r"\bar f")
    excess: Float[Array, ""] = probe("average excess risk", r"\bar f - \bar f(W^*)")
    group_loss: Float[Array, "group"] = probe("group risk", r"\bar f_l")
    group_excess: Float[Array, "group"] = probe("group excess risk", r"\bar f_l - \bar f_l(W^*)")
    rate: Float[Array, ""] = probe("convergence rate", "1 - v")
    flattest: Float[Array, ""] = probe("smallest eigenvalue of the Hessian", r"\lambda_{\min}")
    sharpest: Float[Array, ""] = probe("largest eigenvalue of the Hessian", r"\lambda_{\max}")
    moment: Float[Array, ""] = probe("moment bound", "M_2")
    expected_error: Float[Array, ""] = probe("predicted distance to the teacher")
    expected_excess: Float[Array, "group"] = probe("predicted group excess risk")
    slope: Float[Array, ""] = probe("norm of the gradient at the end", r"\|\nabla f_n\|")


class LocalProbes(eqx.Module):
    """What the local theory says about descent and minimiser, for one sample: no training."""

    rate: Float[Array, ""] = probe("convergence rate", "1 - v")
    flattest: Float[Array, ""] = probe("smallest eigenvalue of the Hessian", r"\lambda_{\min}")
    sharpest: Float[Array, ""] = probe("largest eigenvalue of the Hessian", r"\lambda_{\max}")
    error: Float[Array, ""] = probe("distance to the teacher", r"\sqrt n\,\|\hat W_n - W^*\|_F")
    excess: Float[Array, ""] = probe("average excess risk", r"n(\bar f - \bar f(W^*))")
    group_excess: Float[Array, "group"] = probe("group excess risk", r"n(\bar f_l-\bar f_l(W^*))")
    weights: Float[Array, "input neuron"] = probe("teacher weights", "W^*")


# ----------------------------------------------------------------------- groups, Section 4.3


class Mixture(eqx.Module):
    r"""$\Psi$: group $l$ has the fraction $\lambda_l$, mean $\mu_l$, and a root of $\Sigma_l$."""

    fractions: Float[Array, "L"]
    means: Float[Array, "L d"]
    roots: Float[Array, "L d d"]

    @property
    def covs(self) -> Float[Array, "L d d"]:
        return jnp.einsum("lij,lkj->lik", self.roots, self.roots)

    def moment(self, k: int) -> Float[Array, ""]:
        r"""$M_k = \sum_l\lambda_l(\|\mu_l\| + \|\Sigma_l^{1/2}\|)^k$."""
        widest = jnp.sqrt(jnp.linalg.eigvalsh(self.covs)[:, -1])
        return self.fractions @ (jnp.linalg.norm(self.means, axis=1) + widest) ** k


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
    return Mixture(*(jnp.asarray(a, jnp.float32) for a in (lam, mu, np.linalg.cholesky(cov))))


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
    r"""$W^*$: normal entries, uniform ones, or orthogonal columns, in units of `scale`."""
    k = size(cfg, "width")
    on = mask(cfg, "dim").astype(float)[:, None] * mask(cfg, "width").astype(float)[None, :]
    w = z[:, :k]
    if cfg.teacher == "uniform":
        w = 2 * jax.scipy.special.ndtr(w) - 1
    elif cfg.teacher == "orthogonal":
        if k > len(w):
            raise InputError(f"{k} columns cannot be orthogonal in dimension {len(w)}.")
        w = jnp.linalg.qr(w)[0]
    return cfg.scale * w * on


def in_groups(mixture: Mixture, z: Float[Array, "n d"]) -> Float[Array, "L n d"]:
    r"""$\mu_l + \Sigma_l^{1/2}z$ for every group $l$."""
    return mixture.means[:, None, :] + jnp.einsum("nj,lij->lni", z, mixture.roots)


class Samples(eqx.Module):
    """Features, labels, the group of each sample (never shown to the learner), and its weight:
    1/n for those that exist."""

    x: Float[Array, "n d"]
    y: Float[Array, "n"]
    group: Int[Array, "n"]
    share: Float[Array, "n"]


def samples_of(
    cfg: Config, key: Key[Array, ""], mixture: Mixture, w_star: Float[Array, "d K"]
) -> Samples:
    r"""(4.1): a group from $\lambda$, $x \sim N(\mu_l, \Sigma_l)$, $y = 1$ with probability $H$."""
    n, exists = size(cfg, "samples"), mask(cfg, "samples").astype(float)
    z = rows(stream(key, "data"), 2 + size(cfg, "dim"), n)  # groups, labels, features
    at, lot = jax.scipy.special.ndtr(z[:2])
    z = z[2:].T * mask(cfg, "dim").astype(float)[None, :]
    group = jnp.sum(
        at[:, None] >= jnp.cumsum(mixture.fractions)[None, :-1], axis=1, dtype=jnp.int32
    )
    own = jax.nn.one_hot(group, len(mixture.fractions), dtype=float)
    x = jnp.einsum("nl,lnd->nd", own, in_groups(mixture, z))
    h, _ = probability(x @ w_star, mask(cfg, "width").astype(float))
    return Samples(x, (lot < h).astype(float), group, exists / exists.sum())


def problem(
    cfg: Config, key: Key[Array, ""], data: Mixture | None = None
) -> tuple[Mixture, Float[Array, "d K"], Samples]:
    """Mixture, teacher and samples of one seed."""
    of_teacher, of_groups = world(cfg, key)
    mixture, w_star = mixture_of(cfg, of_groups, data), teacher_of(cfg, of_teacher)
    return mixture, w_star, samples_of(cfg, key, mixture, w_star)


# --------------------------------------------------------------------- network, Section 4.3


def sigmoids(z: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    r"""$\phi(z)$ and $\phi(-z)$, neither by subtraction: $1 - \phi$ would lose small ones."""
    e = jnp.exp(-jnp.minimum(jnp.abs(z), SATURATED))
    big = 1 / (1 + e)
    small = e * big
    return jnp.where(z >= 0, big, small), jnp.where(z >= 0, small, big)


def probability(
    z: Float[Array, "*n K"], on: Float[Array, "K"]
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    r"""$H = \frac1K\sum_j\phi(z_j)$ and $1 - H$, from $z = W^\top x$; `on` tells real neurons."""
    s, t = sigmoids(z)
    return s @ on / on.sum(), t @ on / on.sum()


def cross_entropy(
    y: Float[Array, "*n"], h: Float[Array, "*n"], rest: Float[Array, "*n"]
) -> Float[Array, "*n"]:
    r"""(4.3): $-y\log H - (1-y)\log(1-H)$. A label may be a probability."""
    return -y * jnp.log(h) - (1 - y) * jnp.log(rest)


def pulls(
    z: Float[Array, "n K"], y: Float[Array, "n"], on: Float[Array, "K"]
) -> tuple[Float[Array, "n K"], Float[Array, "n K"], Float[Array, "n K"]]:
    r"""What gradient and Hessian are made of, for each neuron: $y\,a_j(1-S_j)$ and
    $(1-y)\,b_jS_j$ with $a_j = S_j/\sum S$, $b_j = (1-S_j)/\sum(1-S)$, and $1 - 2S_j$.

    No quotient overflows: with $H$ and $1-H$ as such, float32 gives NaN for features of size 10.
    """
    s, t = sigmoids(z)
    both_tails = s * t * on[None, :]
    up = both_tails * (y / (s @ on))[:, None]
    down = both_tails * ((1 - y) / (t @ on))[:, None]
    return up, down, t - s


def empirical_risk(
    w: Float[Array, "d K"], data: Samples, on: Float[Array, "K"]
) -> Float[Array, ""]:
    r"""$f_n(W)$ (4.2)."""
    return data.share @ cross_entropy(data.y, *probability(data.x @ w, on))


def gradient(
    w: Float[Array, "d M K"], data: Samples, on: Float[Array, "K"]
) -> Float[Array, "d M K"]:
    r"""$\nabla f_n$ at $M$ points at once: two matrix products, whatever $M$.

    $\nabla_{w_j}\ell = -[y\,a_j(1-S_j) - (1-y)\,b_jS_j]\,x$.
    """
    s, t = sigmoids(jnp.einsum("dmk,nd->mkn", w, data.x))  # samples last: they vectorise
    # A sum instead of a product with `on` would be the same, but XLA's CPU compiler gives NaN.
    up, down = jnp.einsum("mkn,k->mn", s, on), jnp.einsum("mkn,k->mn", t, on)
    pull = data.share[None] * (data.y[None] / up - (1 - data.y)[None] / down)
    return -jnp.einsum("nd,mkn->dmk", data.x, s * t * on[None, :, None] * pull[:, None])


def hessian(w: Float[Array, "d K"], data: Samples, on: Float[Array, "K"]) -> Float[Array, "D D"]:
    r"""$\nabla^2f_n$, block $j$ for neuron $j$ (C.73): blocks $\xi_{jl}xx^\top$ with
    $\xi_{jl} = g_jg_l + 1_{j=l}(1-2S_j)(g_j^- - g_j^+)$ for $g^+ = y\,a(1-S)$, $g^- = (1-y)\,bS$,
    $g = g^+ + g^-$ (labels 0 or 1)."""
    up, down, bend = pulls(data.x @ w, data.y, on)
    d, k = w.shape
    outer = jnp.einsum("nk,nd->nkd", up + down, data.x).reshape(-1, k * d)
    diagonal = data.share[:, None] * bend * (down - up)
    blocks = jnp.einsum("nk,nd,ne->kde", diagonal, data.x, data.x)
    full = outer.T @ (data.share[:, None] * outer)
    return full + jnp.einsum("jk,kde->jdke", jnp.eye(k), blocks).reshape(k * d, k * d)


def fisher(
    w: Float[Array, "d K"], x: Float[Array, "n d"], on: Float[Array, "K"]
) -> Float[Array, "D D"]:
    r"""$F = E\big[\frac{\phi'_j\phi'_k}{K^2H(1-H)}xx^\top\big]$, the risk's Hessian at $W^*$."""
    s, t = sigmoids(x @ w)
    g = s * t * on[None, :] / jnp.sqrt((s @ on) * (t @ on))[:, None]
    outer = jnp.einsum("nk,nd->nkd", g, x).reshape(len(x), -1)
    return outer.T @ outer / len(x)


def as_vector(w: Float[Array, "d K"]) -> Float[Array, "D"]:
    return w.T.reshape(-1)


def as_matrix(v: Float[Array, "D"], like: Float[Array, "d K"]) -> Float[Array, "d K"]:
    return v.reshape(like.shape[::-1]).T


def present(cfg: Config) -> Float[Array, "D"]:
    """Which entries of the weight vector exist."""
    k, d = mask(cfg, "width").astype(float), mask(cfg, "dim").astype(float)
    return jnp.outer(k, d).reshape(-1)


def extremes(h: Float[Array, "D D"], on: Float[Array, "D"]) -> tuple[Array, Array]:
    """Smallest and largest eigenvalue, over the weights that exist."""
    top = jnp.max(jnp.sum(jnp.abs(h), axis=1))  # at least as large as any eigenvalue
    values = jnp.linalg.eigvalsh(h + top * jnp.diag(1 - on))
    count = jnp.sum(on).astype(jnp.int32)
    return values[0], values[count - 1]


def aligned_distance(
    w: Float[Array, "d K"], w_star: Float[Array, "d K"], on: Float[Array, "K"]
) -> Float[Array, ""]:
    r"""$\min_P\|W - W^*P\|_F$ over permutations $P$ of the neurons, by optimal assignment."""
    cost = jnp.sum((w[:, :, None] - w_star[:, None, :]) ** 2, axis=0)
    # A neuron that does not exist is no partner of one that does.
    apart = on[:, None] != on[None, :]
    cost = cost + jnp.where(apart, 1 + jnp.sum(w**2) + jnp.sum(w_star**2), 0.0)
    i, j = optax.assignment.hungarian_algorithm(cost)
    return jnp.sqrt(jnp.sum(cost[i, j]))


def distances(
    w: Float[Array, "d M K"], w_star: Float[Array, "d K"], on: Float[Array, "K"]
) -> Float[Array, "M"]:
    """The same for several weights."""
    return jax.vmap(lambda v: aligned_distance(v, w_star, on), in_axes=1)(w)


# --------------------------------------------------------------- the minimiser and its risks


def minimiser(
    cfg: Config, start: Float[Array, "d K"], data: Samples
) -> tuple[Float[Array, "d K"], Float[Array, ""]]:
    r"""$\hat W_n$ near a start, and the norm of the gradient there, by damped Newton steps.

    The Hessian's eigenvalues are taken absolute (so that saddles repel), a step is at most 2 long,
    and the best of eight halvings is taken. Descent ends at the same point, after $10^3$ to $10^5$
    steps instead of about ten.
    """
    on, exist = mask(cfg, "width").astype(float), present(cfg)
    halvings = 0.5 ** jnp.arange(8, dtype=float)

    def graded(w: Float[Array, "d K"]) -> Any:
        return w, gradient(w[:, None], data, on)[:, 0]

    def step(state: Any, _: Int[Array, ""]) -> Any:
        w, g = state
        values, vectors = jnp.linalg.eigh(hessian(w, data, on) + jnp.diag(1 - exist))
        along = vectors @ (vectors.T @ as_vector(g) / jnp.maximum(jnp.abs(values), 1e-9))
        along = -along * jnp.minimum(1.0, 2 / jnp.maximum(jnp.linalg.norm(along), 1e-30))
        z, dz = data.x @ w, data.x @ as_matrix(along, w)

        def risk(t: Float[Array, ""]) -> Float[Array, ""]:
            return data.share @ cross_entropy(data.y, *probability(z + t * dz, on))

        best = halvings[jnp.argmin(jax.vmap(risk)(halvings))]
        return graded(w + best * as_matrix(along, w))

    end = iterate(
        step,
        graded(start),
        steps=NEWTON_STEPS,
        until=lambda state: ~(jnp.linalg.norm(state[1]) > 1e-10),
    ).last
    return end[0], jnp.linalg.norm(end[1])


class Risks(eqx.Module):
    """Risks of some weights in every group, and the Fisher information there."""

    loss: Float[Array, "L"]
    excess: Float[Array, "L"]
    fisher: Float[Array, "L D D"]


def group_risks(
    w: Float[Array, "d K"], w_star: Float[Array, "d K"], x: Float[Array, "L n d"], on: Any
) -> Risks:
    r"""(4.5) with the teacher's probabilities for labels, which is exact: $E[\ell\,|\,x]$."""

    def of_group(x: Float[Array, "n d"]) -> tuple[Array, Array, Array]:
        y, _ = pair = probability(x @ w_star, on)
        loss, floor = cross_entropy(y, *probability(x @ w, on)), cross_entropy(y, *pair)
        return loss.mean(), jnp.mean(loss - floor), fisher(w_star, x, on)

    return Risks(*jax.lax.map(of_group, x))


def test_features(cfg: Config, key: Key[Array, ""], mixture: Mixture) -> Float[Array, "L n d"]:
    z = rows(stream(key, "test"), size(cfg, "dim"), cfg.test_samples).T
    return in_groups(mixture, z * mask(cfg, "dim").astype(float)[None, :])


def simulate_fit(cfg: Config, key: Key[Array, ""], data: Mixture | None = None) -> Probes:
    r"""$\hat W_n$ (to which Algorithm 1 converges from nearby), its risks, and its convergence rate
    $1 - v = \eta_0\lambda_{\min}(\nabla^2f_n(\hat W_n))$ with $\eta_0 = c/M_2$."""
    mixture, w_star, drawn = problem(cfg, key, data)
    x_test = test_features(cfg, key, mixture)
    on, exist = mask(cfg, "width").astype(float), present(cfg)

    def measured(mixture: Mixture, w_star: Array, data: Samples, x_test: Array) -> Probes:
        w, slope = minimiser(cfg, w_star, data)
        flat, sharp = extremes(hessian(w, data, on), exist)
        risks, m2 = group_risks(w, w_star, x_test, on), mixture.moment(2)
        total = jnp.einsum("l,lab->ab", mixture.fractions, risks.fisher) + jnp.diag(1 - exist)
        inverse = jnp.linalg.inv(total)
        n = jnp.asarray(cfg.samples, float)
        error = aligned_distance(w, w_star, on)
        return Probes(
            error=error,
            relative_error=error / jnp.linalg.norm(w_star),
            test_loss=mixture.fractions @ risks.loss,
            excess=mixture.fractions @ risks.excess,
            group_loss=risks.loss,
            group_excess=risks.excess,
            rate=cfg.lr / m2 * flat,
            flattest=flat,
            sharpest=sharp,
            moment=m2,
            expected_error=jnp.sqrt(jnp.diag(inverse) @ exist / n),
            expected_excess=jnp.einsum("lab,ba->l", risks.fisher, inverse) / (2 * n),
            slope=slope,
        )

    return by_lane(measured, mixture, w_star, drawn, x_test)


def simulate_local(cfg: Config, key: Key[Array, ""], data: Mixture | None = None) -> LocalProbes:
    r"""Limits of large $n$, from the Fisher informations $F_l$, $F = \sum\lambda_lF_l$ at $W^*$:
    $1 - v = \eta_0\lambda_{\min}(F)$, $nE\|\hat W_n - W^*\|^2 \to \mathrm{tr}\,F^{-1}$, and $n$
    times the excess risk of group $l$ $\to \frac12\mathrm{tr}(F_lF^{-1})$, on average $dK/2$."""
    of_teacher, of_groups = world(cfg, key)
    mixture, w_star = mixture_of(cfg, of_groups, data), teacher_of(cfg, of_teacher)
    x = test_features(cfg, key, mixture)
    on, exist = mask(cfg, "width").astype(float), present(cfg)

    def measured(mixture: Mixture, w_star: Array, x: Array) -> LocalProbes:
        of_group = jax.lax.map(lambda x: fisher(w_star, x, on), x)
        total = jnp.einsum("l,lab->ab", mixture.fractions, of_group)
        flat, sharp = extremes(total, exist)
        inverse = jnp.linalg.inv(total + jnp.diag(1 - exist))
        excess = jnp.einsum("lab,ba->l", of_group, inverse) / 2
        return LocalProbes(
            rate=cfg.lr / mixture.moment(2) * flat,
            flattest=flat,
            sharpest=sharp,
            error=jnp.sqrt(jnp.diag(inverse) @ exist),
            excess=mixture.fractions @ excess,
            group_excess=excess,
            weights=w_star,
        )

    return by_lane(measured, mixture, w_star, x)
