"""Section 4.1: a state-space model with given features, and what the Properties allow.

Letters in shapes: N state dimension (here N = d), K = d + 1 features.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import probe
from provingground.keys import normal, stream
from provingground.train import by_lane

from .model import Config, next_coefs


class SeriesProbes(eqx.Module):
    recursion_error: Float[Array, ""] = probe("largest error of a feature by recursion")
    series_error: Float[Array, ""] = probe("largest error of a simulated series")
    next_norm: Float[Array, ""] = probe("norm of the next feature", r"\|P_{d+1}\|")
    core: Float[Array, ""] = probe("similarity of last and next", r"\langle P_d, P_{d+1}\rangle")
    property2_error: Float[Array, ""] = probe("largest overlap of the last feature with others")
    property3_error: Float[Array, ""] = probe("distance of the next feature from Property 3")
    printed_residual: Float[Array, ""] = probe("least residual of Proposition 6.3(2) as printed")
    corrected_residual: Float[Array, ""] = probe("residual of Proposition 6.3(2) corrected")


def build(
    p: Float[Array, "N K"], b: Float[Array, "N"]
) -> tuple[Float[Array, "N N"], Float[Array, "N"]]:
    r"""$\mathcal A$ and $\mathcal C$ with features `p`, for any $\mathcal B$.

    The loop is closed, $h_{k+1} = (\mathcal A + \mathcal{BC}^\top) h_k$: $P_k = M^{k-1}\mathcal C$
    with $M = (\mathcal A + \mathcal{BC}^\top)^\top$: a Krylov sequence. $\mathcal C = P_1$, and
    $M$ takes each feature to the next (the first d are orthonormal, so their inverse is the
    transpose; in their basis $M$ is a companion matrix).
    """
    c = p[:, 0]
    m = p[:, 1:] @ p[:, :-1].T
    return m.T - jnp.outer(b, c), c


def features(
    a: Float[Array, "N N"], b: Float[Array, "N"], c: Float[Array, "N"], count: int
) -> Float[Array, "N K"]:
    r"""Claim 4.2: $P_k = \mathcal G_k^\top + \sum_{\kappa<k} \mathcal K_{k-\kappa} P_\kappa$,
    $\mathcal G_k = \mathcal C^\top\mathcal A^{k-1}$, $\mathcal K_k = \mathcal G_k\mathcal B$."""
    _, g = jax.lax.scan(lambda g, _: (g @ a, g), c, length=count)
    kernel = g @ b

    def add(p: Float[Array, "K N"], k: Array) -> tuple[Float[Array, "K N"], None]:
        lag = k - jnp.arange(count)
        weights = jnp.where(lag > 0, kernel[jnp.maximum(lag - 1, 0)], 0.0)
        return p.at[k].set(g[k] + weights @ p), None

    return jax.lax.scan(add, jnp.zeros_like(g), jnp.arange(count))[0].T


def run(
    a: Float[Array, "N N"],
    b: Float[Array, "N"],
    c: Float[Array, "N"],
    h: Float[Array, "N"],
    count: int,
) -> Float[Array, "K"]:
    r"""Definition 4.1: $u_k = \mathcal C^\top h_k$, $h_{k+1} = \mathcal A h_k + \mathcal B u_k$."""

    def step(h: Float[Array, "N"], _: None) -> tuple[Float[Array, "N"], Float[Array, ""]]:
        u = c @ h
        return a @ h + b * u, u

    return jax.lax.scan(step, h, length=count)[1]


def simulate_series(cfg: Config, key: Key[Array, ""]) -> SeriesProbes:
    """Builds the model for random orthonormal features and a random $\\mathcal B$."""
    d, c = cfg.tokens, next_coefs(cfg, key)
    z = normal(stream(key, "ssm"), (d, d + 2))
    basis = by_lane(lambda z: jnp.linalg.qr(z)[0], z[:, :d])
    p = jnp.concatenate([basis, (basis @ c)[:, None]], axis=1)
    b, h = z[:, d] / d**0.5, z[:, d + 1]
    a, read = build(p, b)
    printed = jnp.append(jnp.full(d - 1, 1 / (d * (d - 1))), (d - 1) / d)
    following, last, others = p[:, d], p[:, d - 1], p[:, : d - 1]
    change = following - last
    weights = c[:-1]
    return SeriesProbes(
        jnp.abs(features(a, b, read, d + 1) - p).max(),
        jnp.abs(run(a, b, read, h, d + 1) - h @ p).max(),
        jnp.linalg.norm(following),
        last @ following,
        jnp.abs(last @ others).max(),
        jnp.linalg.norm(following - basis @ printed),
        jnp.linalg.norm(change - others @ (others.T @ change)),
        jnp.linalg.norm((others - last[:, None]) @ weights - change),
    )
