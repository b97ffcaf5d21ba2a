"""Tensor initialisation (Subroutine 1): from moments with the scores of the mixture to weights.

Letters in shapes: d feature dimension, K neurons, n samples, L groups, R restarts.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from provingground.keys import normal, stream

from .data import Mixture
from .network import Samples, sigmoids

RESTARTS, SWEEPS = 20, 100  # of the decomposition
LONGEST, FULL = 20.0, 0.95  # magnitudes are looked for up to here, and up to this saturation


# -------------------------------------------------------------------- scores of the mixture


def responsibilities(mixture: Mixture, x: Float[Array, "d"]) -> Float[Array, "L"]:
    r"""$\gamma_l(x) = \lambda_lN_l(x)/p(x)$."""

    def log_density(mean: Float[Array, "d"], cov: Float[Array, "d d"]) -> Float[Array, ""]:
        gap = x - mean
        return -(gap @ jnp.linalg.solve(cov, gap) + jnp.linalg.slogdet(cov)[1]) / 2

    logs = jax.vmap(log_density)(mixture.means, mixture.covs)
    return jax.nn.softmax(logs + jnp.log(mixture.fractions))


def scores(
    mixture: Mixture, x: Float[Array, "d"]
) -> tuple[Float[Array, "d"], Float[Array, "d d"], Float[Array, "d d d"]]:
    r"""$S_m = (-1)^m\nabla^mp/p$ for $m = 1, 2, 3$ (C.2): with $u_l = \Sigma_l^{-1}(x-\mu_l)$,
    $S_1 = \sum\gamma_lu_l$, $S_2 = \sum\gamma_l(u_lu_l^\top - \Sigma_l^{-1})$,
    $S_3 = \sum\gamma_l(u_l^{\otimes3} - \mathrm{sym}_3(u_l, \Sigma_l^{-1}))$."""
    gamma, precision = responsibilities(mixture, x), jnp.linalg.inv(mixture.covs)
    u = jnp.einsum("lij,lj->li", precision, x[None, :] - mixture.means)
    second = jnp.einsum("li,lj->lij", u, u) - precision
    third = jnp.einsum("li,lj,lk->lijk", u, u, u) - jax.vmap(sym_3)(u, precision)
    return gamma @ u, jnp.tensordot(gamma, second, 1), jnp.tensordot(gamma, third, 1)


def sym_3(u: Float[Array, "d"], p: Float[Array, "d d"]) -> Float[Array, "d d d"]:
    r"""$u_iP_{jk} + u_jP_{ik} + u_kP_{ij}$."""
    one = jnp.einsum("i,jk->ijk", u, p)
    return one + jnp.moveaxis(one, 0, 1) + jnp.moveaxis(one, 0, 2)


class Moments(eqx.Module):
    r"""$\hat Q_m = \frac1n\sum_i(y_i - \bar y)S_m(x_i)$, by what is asked of them.

    Without its mean the label gives the same expectation ($E\,S_m = 0$) with less noise. No
    $d^3$ numbers are held.
    """

    weight: Float[Array, "n L"]  # of a sample and group: (y_i - mean) gamma / n
    u: Float[Array, "n L d"]
    precision: Float[Array, "L d d"]

    def q1(self) -> Float[Array, "d"]:
        return jnp.einsum("nl,nld->d", self.weight, self.u)

    def q2(self) -> Float[Array, "d d"]:
        return self._centred(self.weight)

    def q3_along(self, alpha: Float[Array, "d"]) -> Float[Array, "d d"]:
        r"""$\hat Q_3(I, I, \alpha)$."""
        side = jnp.einsum("nl,nld,lef,f->de", self.weight, self.u, self.precision, alpha)
        return self._centred(self.weight * (self.u @ alpha)) - side - side.T

    def q3_in(self, basis: Float[Array, "d K"]) -> Float[Array, "K K K"]:
        r"""$\hat R_3 = \hat Q_3(\hat U, \hat U, \hat U)$."""
        v = self.u @ basis
        inner = jnp.einsum("da,lde,eb->lab", basis, self.precision, basis)
        pairs = jnp.einsum("nla,nlb->nlab", v, v)
        cube = jnp.einsum("nl,nlab,nlc->abc", self.weight, pairs, v)
        return cube - jax.vmap(sym_3)(jnp.einsum("nl,nla->la", self.weight, v), inner).sum(0)

    def _centred(self, weight: Float[Array, "n L"]) -> Float[Array, "d d"]:
        square = jnp.einsum("nld,nle->de", weight[:, :, None] * self.u, self.u)
        return square - jnp.tensordot(weight.sum(axis=0), self.precision, 1)


def moments_of(
    mixture: Mixture, data: Samples, shares: Float[Array, "parts n"]
) -> tuple[Moments, ...]:
    """The moments over several parts of the samples, each with its weights."""
    precision = jnp.linalg.inv(mixture.covs)
    gap = data.x[:, None, :] - mixture.means[None]
    u = jnp.einsum("lij,nlj->nli", precision, gap)
    logs = jnp.log(mixture.fractions) - jnp.linalg.slogdet(mixture.covs)[1] / 2
    gamma = jax.nn.softmax(logs[None, :] - jnp.sum(gap * u, axis=2) / 2, axis=1)
    labels = shares * (data.y[None, :] - (shares @ data.y)[:, None])
    return tuple(Moments(label[:, None] * gamma, u, precision) for label in labels)


def symmetric(mixture: Mixture) -> Bool[Array, ""]:
    r"""Whether $x$ and $-x$ have the same law (C.4): then $Q_2 = 0$."""

    def close(a: Array, b: Array) -> Bool[Array, "L L"]:
        gap = jnp.abs(a[:, None] - b[None, :]).reshape(len(a), len(b), -1)
        return jnp.max(gap, axis=2) < 1e-6

    lam, cov = mixture.fractions, mixture.covs
    mirror = close(mixture.means, -mixture.means) & close(lam, lam) & close(cov, cov)
    return jnp.all(mirror.any(axis=1))


# ------------------------------------------------------------------------------- Subroutine 1


def unit(v: Float[Array, "..."], axis: int = -1) -> Float[Array, "..."]:
    return v / jnp.maximum(jnp.linalg.norm(v, axis=axis, keepdims=True), 1e-300)


def leading(matrix: Float[Array, "d d"], k: int) -> Float[Array, "d K"]:
    """Eigenvectors of the k eigenvalues that are largest in absolute value."""
    values, vectors = jnp.linalg.eigh(matrix)
    return vectors[:, jnp.argsort(-jnp.abs(values))[:k]]


def subspace_of(
    cfg: Any, mixture: Mixture, moments: Moments, alphas: Float[Array, "r d"]
) -> Float[Array, "d K"]:
    r"""Lines 2 to 6: $\hat U$ from $\hat Q_2$, or of a symmetric mixture from
    $\hat Q_3(I, I, \alpha)$; `joint`: from $\hat Q_2^2 + \sum_r\hat Q_3(I, I, \alpha_r)^2$, which
    needs no case and misses no direction."""
    second = moments.q2()
    thirds = jax.lax.map(moments.q3_along, alphas)
    printed = jnp.where(symmetric(mixture), thirds[0], second)
    joint = second @ second + jnp.einsum("rde,ref->df", thirds, thirds)
    return leading(jnp.where(jnp.asarray(cfg.joint) > 0, joint, printed), cfg.width)


def decompose(
    tensor: Float[Array, "K K K"], starts: Float[Array, "R 3 K K"]
) -> Float[Array, "K K"]:
    r"""Unit columns $v_j$ with $T \approx \sum_jc_jv_j^{\otimes3}$: alternating least squares, the
    best of several starts (for the KCL algorithm of line 8; no orthogonality is assumed)."""

    def solved(t: Array, b: Array, c: Array) -> Array:
        gram = (b.T @ b) * (c.T @ c) + 1e-12 * jnp.eye(len(b))
        return jnp.linalg.solve(gram, jnp.einsum("abc,bj,cj->ja", t, b, c)).T

    def sweep(_: Any, factors: Any) -> Any:
        a, b, c = factors
        a = unit(solved(tensor, b, c), 0)
        b = unit(solved(jnp.moveaxis(tensor, 1, 0), a, c), 0)
        return a, b, solved(jnp.moveaxis(tensor, 2, 0), a, b)

    def run(start: Float[Array, "3 K K"]) -> tuple[Array, Array]:
        a, b, c = jax.lax.fori_loop(0, SWEEPS, sweep, tuple(unit(start, 1)))
        return a, jnp.sum((tensor - jnp.einsum("aj,bj,cj->abc", a, b, c)) ** 2)

    found, residual = jax.vmap(run)(starts)
    return found[jnp.argmin(residual)]


def pulled(mixture: Mixture, along: Float[Array, "d"], z: Float[Array, "m"]) -> Float[Array, "m"]:
    r"""$z\,E[\phi'(z\,v^\top x)]$ for a unit vector $v$, by the trapezoidal rule."""
    nodes = jnp.linspace(-8.0, 8.0, 321)
    density = jnp.exp(-(nodes**2) / 2)
    means, spread = mixture.means @ along, jnp.sqrt(along @ mixture.covs @ along)
    s, t = sigmoids(z[:, None, None] * (means[:, None] + spread[:, None] * nodes[None, :])[None])
    return z * jnp.einsum("mlt,l,t->m", s * t, mixture.fractions, density / density.sum())


def magnitudes(
    mixture: Mixture, directions: Float[Array, "d K"], q1: Float[Array, "d"]
) -> tuple[Float[Array, "d K"], Float[Array, "K"], Float[Array, "K"]]:
    r"""Lines 9 to 11: directions with their signs, the $\alpha_j$ of (C.5), and the norms.

    (C.5) returns $\alpha_j = \|w_j\|E[\phi'(w_j^\top x)]/K$, not $\|w_j\|$, which solves
    $z\,E[\phi'(z\,\bar w_j^\top x)] = K\alpha_j$ (the first solution; the left side
    saturates, and what lies beyond 95% of that is cut).
    """
    alpha = jnp.linalg.lstsq(directions, q1)[0]
    directions = directions * jnp.where(alpha < 0, -1.0, 1.0)[None, :]
    grid = jnp.linspace(0.0, LONGEST, 401)

    def solved(along: Float[Array, "d"], a: Float[Array, ""]) -> Float[Array, ""]:
        rising = jax.lax.cummax(pulled(mixture, along, grid))
        return jnp.interp(jnp.minimum(a, FULL * rising[-1]), rising, grid)

    alpha = jnp.abs(alpha)
    return directions, alpha, jax.vmap(solved)(directions.T, len(alpha) * alpha)


class Start(eqx.Module):
    """What Subroutine 1 returns: weights, the same with the printed magnitudes, the subspace."""

    weights: Float[Array, "d K"]
    literal: Float[Array, "d K"]
    basis: Float[Array, "d K"]


def tensor_start(cfg: Any, key: Key[Array, ""], mixture: Mixture, data: Samples) -> Start:
    """Subroutine 1, whole."""
    d, k = data.x.shape[1], cfg.width
    z = normal(stream(key, "tensor"), (3 * k * d + RESTARTS * 3 * k * k,))
    alphas = unit(z[: 3 * k * d].reshape(3 * k, d))
    starts = z[3 * k * d :].reshape(RESTARTS, 3, k, k)
    parts = jnp.arange(len(data.share))[None, :] % 3 == jnp.arange(3)[:, None]
    shares = jnp.where(parts | (jnp.asarray(cfg.split) == 0), data.share[None, :], 0.0)
    first, second, last = moments_of(mixture, data, shares / shares.sum(axis=1, keepdims=True))
    basis = subspace_of(cfg, mixture, first, alphas)
    inner = decompose(second.q3_in(basis), starts)
    directions, alpha, norms = magnitudes(mixture, basis @ inner, last.q1())
    return Start(directions * norms[None, :], directions * alpha[None, :], basis)
