"""The network, its loss with gradient and Hessian, and the minimiser (Section 4.3).

Letters in shapes: d feature dimension, K neurons, n samples, L groups, M starts, D = dK weights.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from provingground.config import mask
from provingground.train import iterate

ACTIVATIONS = ("sigmoid", "tanh", "erf")
NEWTON_STEPS = 60  # at most; about ten where there is a minimiser
SATURATED = 80.0  # beyond it a sigmoid is below 1e-34 from its limit, and float32 would lose it


class Samples(eqx.Module):
    """Features, labels, the group of each sample (never shown to the learner), and its weight:
    1/n for those that exist."""

    x: Float[Array, "n d"]
    y: Float[Array, "n"]
    group: Int[Array, "n"]
    share: Float[Array, "n"]


# --------------------------------------------------------------------- network, Section 4.3


def sigmoids(z: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    r"""$\phi(z)$ and $\phi(-z)$, neither by subtraction: $1 - \phi$ would lose small ones."""
    e = jnp.exp(-jnp.minimum(jnp.abs(z), SATURATED))
    big = 1 / (1 + e)
    small = e * big
    return jnp.where(z >= 0, big, small), jnp.where(z >= 0, small, big)


def tails(
    z: Float[Array, "..."], activation: str
) -> tuple[Float[Array, "..."], Float[Array, "..."], Float[Array, "..."]]:
    r"""$\phi(z)$, $1 - \phi(z)$ and $\phi'(z)$ of a sigmoid, or of $(1 + \tanh z)/2$ (which is one
    at $2z$), or of $(1 + \mathrm{erf}\,z)/2$."""
    if activation == "erf":
        root = jnp.sqrt(2.0)
        up, down = jax.scipy.special.ndtr(root * z), jax.scipy.special.ndtr(-root * z)
        return up, down, jnp.exp(-(z**2)) / jnp.sqrt(jnp.pi)
    s, t = sigmoids(2 * z if activation == "tanh" else z)
    return s, t, s * t * (2 if activation == "tanh" else 1)


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
    # A sum instead of a product with `on` would be the same, but on a CPU jax 0.10.2 gives NaN for
    # `1 / jax.nn.sigmoid(z).sum(1)` under jit in float32 from 5000 samples on.
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
    w: Float[Array, "d K"],
    x: Float[Array, "n d"],
    on: Float[Array, "K"],
    activation: str = "sigmoid",
) -> Float[Array, "D D"]:
    r"""$F = E\big[\frac{\phi'_j\phi'_k}{K^2H(1-H)}xx^\top\big]$, the risk's Hessian at $W^*$."""
    s, t, slope = tails(x @ w, activation)
    both = jnp.sqrt((s @ on) * (t @ on))  # 0 only where all slopes are 0 too
    g = slope * on[None, :] / jnp.where(both > 0, both, 1.0)[:, None]
    outer = jnp.einsum("nk,nd->nkd", g, x).reshape(len(x), -1)
    return outer.T @ outer / len(x)


def as_vector(w: Float[Array, "d K"]) -> Float[Array, "D"]:
    return w.T.reshape(-1)


def as_matrix(v: Float[Array, "D"], like: Float[Array, "d K"]) -> Float[Array, "d K"]:
    return v.reshape(like.shape[::-1]).T


def present(cfg: Any) -> Float[Array, "D"]:
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
    cfg: Any, start: Float[Array, "d K"], data: Samples
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
