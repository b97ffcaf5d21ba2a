"""Section 4.1: the state-space model, its features, series and targets, in and out of distribution.

Letters in shapes: n samples, d steps of the series, N state dimension (here N = d), K = d + 1
features. The features $P_1..P_d$ are orthonormal, so in their basis $u_k = h_{1,k}$ and no
state-space model has to be run; `build`, `features` and `run` show that one would give the same.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from provingground.config import mask, size
from provingground.keys import normal, stream

MIX, UNIT, UNIFORM = range(3)


# ------------------------------------------------------------------------- the next feature


def next_coefs(cfg: Any, key: Key[Array, ""]) -> Float[Array, "d"]:
    r"""$c$ in $P_{d+1} = \sum_k c_k P_k$. Properties 1 to 3 exclude each other, so there are modes.

    `mix`: $c_d = \frac{d-1}d$, $c_k = \frac1{d(d-1)}$ (Properties 2, 3). `unit`: $\|c\| = 1$,
    $c_d = \gamma$ and $\sum_k c_k = 1$ (Properties 1, 2), the rest at random. `unit_uniform`:
    $\|c\| = 1$, $c_d = \gamma$ and equal $c_k$; then $\sum_k c_k \neq 1$.
    """
    b, gamma = cfg.tokens - 1, jnp.asarray(cfg.gamma, float)
    q = normal(stream(key, "data/features"), (b,))
    q = q - q.mean()
    s, rest = jnp.sqrt((1 - gamma) / (1 + gamma)), jnp.sqrt(1 - gamma**2)
    tilted = s / b + jnp.sqrt(1 - s**2 / b) * q / jnp.linalg.norm(q)
    mix = jnp.append(jnp.full(b, 1 / (b * cfg.tokens)), b / cfg.tokens)
    unit = jnp.append(rest * tilted, gamma)
    uniform = jnp.append(jnp.full(b, rest / b**0.5), gamma)
    return jnp.stack([mix, unit, uniform])[cfg.mode]


# ------------------------------------------------------------------------------------ series


def series(
    c: Float[Array, "d"], z: Float[Array, "n cols"], noise: Float[Array, ""] | float
) -> tuple[Float[Array, "n d"], Float[Array, "n"]]:
    r"""Definition 4.3: $x_k = u_k + \sigma\xi_k$ and $y = \langle c, u\rangle + \sigma\xi_{d+1}$.

    A row of `z` holds $h_1$ in the basis of the features (that is $u$), then $\xi$.
    """
    d = len(c)
    u, xi = z[:, :d], noise * z[:, d:]
    return u + xi[:, :d], u @ c + xi[:, d]


def sign_inconsistent(c: Float[Array, "d"], z: Float[Array, "n cols"]) -> Float[Array, "n cols"]:
    r"""Definition 6.1 without rejection: rows of `z`, moved to where $u_d u_{d+1} < 0$.

    $u_{d+1} = c_d u_d + \|c_{<d}\| z_\perp$, so the condition is on the angle of the Gaussian pair
    $(u_d, z_\perp)$ alone: two wedges of size $\alpha = \arccos(c_d/\|c\|)$. The uniform angle is
    squeezed into them; radius and all other directions stay.
    """
    rest = jnp.linalg.norm(c[:-1])
    along = c[:-1] / rest
    u_d, perp = z[:, len(c) - 1], z[:, : len(c) - 1] @ along
    alpha = jnp.arctan2(rest, c[-1])
    turn = (jnp.arctan2(perp, u_d) / jnp.pi + 1.0) % 2.0  # uniform in [0, 2)
    angle = jnp.pi / 2 + alpha * (turn % 1.0) + jnp.pi * jnp.floor(turn)
    radius = jnp.hypot(u_d, perp)
    moved = (radius * jnp.sin(angle) - perp)[:, None] * along[None, :]
    z = z.at[:, : len(c) - 1].add(moved)
    return z.at[:, len(c) - 1].set(radius * jnp.cos(angle))


class Data(eqx.Module):
    """Training samples, and test samples in and out of distribution."""

    c: Float[Array, "d"]
    x: Float[Array, "n d"]
    y: Float[Array, "n"]
    exists: Bool[Array, "n"]
    x_in: Float[Array, "test d"]
    y_in: Float[Array, "test"]
    x_out: Float[Array, "test d"]
    y_out: Float[Array, "test"]


Pair = tuple[Float[Array, "n d"], Float[Array, "n"]]


def test_pairs(cfg: Any, c: Float[Array, "d"], key: Key[Array, ""], n: int) -> tuple[Pair, Pair]:
    """Series in and out of distribution, with their targets."""
    z = normal(key, (n, 2 * cfg.tokens + 1))
    return series(c, z, cfg.noise), series(c, sign_inconsistent(c, z), cfg.noise)


def train_pair(cfg: Any, c: Float[Array, "d"], key: Key[Array, ""]) -> Pair:
    cols = 2 * cfg.tokens + 1
    return series(c, normal(stream(key, "data"), (size(cfg, "samples"), cols)), cfg.noise)


def draw(cfg: Any, key: Key[Array, ""]) -> Data:
    c = next_coefs(cfg, key)
    x, y = train_pair(cfg, c, key)
    inside, outside = test_pairs(cfg, c, stream(key, "test"), cfg.test_samples)
    return Data(c, x, y, mask(cfg, "samples"), *inside, *outside)


# ------------------------------------------------------------------------- state-space model


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
