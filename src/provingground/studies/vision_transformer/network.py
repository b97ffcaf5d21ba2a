"""The network (2.1) and its start, in the paper's order. Letters in shapes: see `data.py`."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.keys import normal, signs, stream
from provingground.nets.losses import hinge, logistic
from provingground.train import Activation

from .data import Config


class Weights(eqx.Module):
    w_q: Float[Array, "H d d"]
    w_k: Float[Array, "H d d"]
    w_v: Float[Array, "H d d"]
    w_o: Float[Array, "H d m"]


def initial_weights(
    cfg: Config, key: Key[Array, ""], centres: Float[Array, "M d"], u: Float[Array, "H d d"]
) -> Weights:
    r"""Assumption 2.3.1: $W_Q\mu_j = q_j + \delta e_j$ and so on, with unit errors $e_j$.

    $W_K = W_Q = s_K I$ and $W_V = s_V U$, $U$ orthogonal, each plus its error (with a skip
    connection $W_V + I$ takes the place of $W_V$, A.233).
    """
    h, m, d = cfg.heads, cfg.n_patterns, cfg.dim
    z = normal(stream(key, "init"), (3 * h * m + cfg.width * h, d))  # one draw compiles fast
    errors, rest = z[: 3 * h * m], z[3 * h * m :]
    errors = (errors / jnp.linalg.norm(errors, axis=-1, keepdims=True)).reshape(3, h, m, d)
    e_q, e_k, e_v = jnp.einsum("whjo,ji->whoi", errors, centres)
    eye = jnp.broadcast_to(jnp.eye(d), (h, d, d))
    return Weights(
        w_q=cfg.key_scale * eye + cfg.key_error * e_q,
        w_k=cfg.key_scale * eye + cfg.key_error * e_k,
        w_v=cfg.value_scale * u - cfg.skip * eye + cfg.value_error * e_v,
        w_o=cfg.hidden_init_std * jnp.moveaxis(rest.reshape(cfg.width, h, d), 0, 2),
    )


def value_features(centres: Float[Array, "M d"], u: Float[Array, "H d d"]) -> Float[Array, "H M d"]:
    r"""$p_j = U\mu_j$: what $W_V\mu_j$ is at the start, but for its scale and error."""
    return jnp.einsum("had,jd->hja", u, centres)


def output_weights(cfg: Config, key: Key[Array, ""]) -> Float[Array, "L m o"]:
    r"""$a_{(l)}$: entries $\pm 1/\sqrt m$, never trained."""
    shape = (cfg.tokens, cfg.width, 1 if cfg.classes == 2 else 2)
    return signs(stream(key, "init/readout"), shape) / cfg.width**0.5


def positions(cfg: Config, of_each: Float[Array, "L *rest"]) -> Float[Array, "L *rest"]:
    """What is linear in the read-outs of all positions; that of the first if they share one."""
    return (1 - cfg.shared) * of_each + cfg.shared * of_each[:1]


def attend(
    w: Weights, x: Float[Array, "T d"], n: Float[Array, "T"], skip: Any = 0.0
) -> tuple[Float[Array, "H T T"], Float[Array, "T H d"]]:
    r"""Attention and attended values of rows $x$ that occur $n$ times each, inside (2.1).

    $W_V X\,\mathrm{softmax}(X^\top W_K^\top W_Q x_l) + s\,x_l$. A row that occurs $n$ times counts
    as $\log n$ in its score, so $n = 0$ leaves it out. The matrices stay outside of the products
    of rows with rows, which halves the work of the gradient.
    """
    matrix = jnp.einsum("hke,hkd->hed", w.w_k, w.w_q)
    scores = jnp.einsum("hle,se->hls", jnp.einsum("hed,ld->hle", matrix, x), x)
    scores += jnp.log(n)[None, None, :]
    e = jnp.exp(scores - jnp.max(jax.lax.stop_gradient(scores), axis=-1, keepdims=True))
    p = e / jnp.sum(e, axis=-1, keepdims=True)
    mean = jnp.einsum("hls,sd->hld", p, x)
    return p, jnp.einsum("had,hld->lha", w.w_v, mean) + skip * x[:, None, :]


def hidden(
    w_o: Float[Array, "H d m"], v: Float[Array, "*T H d"], activation: Activation = jax.nn.relu
) -> Float[Array, "*T m"]:
    r"""The hidden layer $\mathrm{Relu}(W_O v)$ of (2.1) at attended values."""
    return activation(jnp.einsum("ham,...ha->...m", w_o, v))


def loss_of(cfg: Config, margin: Float[Array, "*N"]) -> Float[Array, "*N"]:
    """Hinge loss (2.4) of the margin $y^\\top F$, the logistic one, or a mixture."""
    one = jnp.ones_like(margin)
    return (1 - cfg.logistic) * hinge(one, margin) + cfg.logistic * logistic(one, margin)
