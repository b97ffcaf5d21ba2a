"""The one-layer transformer as written: any orthogonal patterns, whole label embeddings.

The reduced form of `model.py` is this one in coordinates of the patterns and of $q$; label
directions other than $q$ carry nothing. Letters in shapes as there; e = d_X + d_Y is $m_a = m_b$.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.config import size
from provingground.data.patterns import orthonormal
from provingground.keys import stream
from provingground.nets.losses import hinge
from provingground.train import Activation, Optimiser, descend

from .model import Config, Probes, draw, initial_weights, test, training_domain
from .prompts import Prompt


class FullWeights(eqx.Module):
    w_q: Float[Array, "e e"]
    w_k: Float[Array, "e e"]
    w_v: Float[Array, "e e"]
    w_o: Float[Array, "m e"]
    a: Float[Array, "m"]


def frame(cfg: Config, key: Key[Array, ""]) -> Float[Array, "e e"]:
    """Unit patterns as the first d_X rows, q as the next, and the rest of a basis."""
    features = orthonormal(stream(key, "frame"), cfg.dim, cfg.dim)
    labels = orthonormal(stream(key, "frame/label"), cfg.label_dim, cfg.label_dim)
    return jax.scipy.linalg.block_diag(features, labels)


def initial_full(cfg: Config, key: Key[Array, ""], basis: Float[Array, "e e"]) -> FullWeights:
    r"""Section 6.2.3. $W_O$ is that of the reduced form, turned into this basis: normal too."""
    small, e = initial_weights(cfg, key), cfg.dim + cfg.label_dim
    features = cfg.delta * jnp.diag((jnp.arange(e, dtype=jnp.int32) < cfg.dim).astype(float))
    return FullWeights(
        w_q=features,
        w_k=features,
        w_v=cfg.delta * jnp.eye(e),
        w_o=small.w_o @ basis,
        a=small.a,
    )


def matrix(
    cfg: Config, basis: Float[Array, "e e"], p: Prompt
) -> tuple[Float[Array, "e l"], Float[Array, "e"]]:
    r"""$P$ of (6.1): its columns $(x_i; y_i)$ in the ambient space, and $p_{query} = (x; 0)$."""
    context = p.tokens @ basis[: cfg.dim + 1]
    return context.T, p.x_query @ basis[: cfg.dim]


def network(
    cfg: Config,
    w: FullWeights,
    basis: Float[Array, "e e"],
    p: Prompt,
    activation: Activation = jax.nn.relu,
) -> tuple[Float[Array, ""], Float[Array, "l"]]:
    r"""$F = a^\top\mathrm{Relu}(W_O\sum_i W_Vp_i\,\mathrm{attn}_i)$ (6.2), and the attention."""
    context, query = matrix(cfg, basis, p)
    scores = (w.w_k @ context).T @ (w.w_q @ query)
    attn = jax.nn.softmax(jnp.where(p.exists, scores, -jnp.inf))
    return w.a @ activation(w.w_o @ (w.w_v @ context @ attn)), attn


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """The training of `model.simulate`, in full form."""
    basis, batch_key = frame(cfg, key), stream(key, "batch")

    def outputs(w: FullWeights, p: Prompt) -> tuple[Array, Array]:
        return jax.vmap(lambda p: network(cfg, w, basis, p, activation))(p)

    def batch(t: Int[Array, ""]) -> Prompt:
        now, of = jax.random.fold_in(batch_key, t), training_domain(cfg)
        return draw(now, cfg.batch, size(cfg, "tokens"), cfg.tokens, cfg.alpha, of)

    trace = descend(
        lambda w, p: hinge(p.label, outputs(w, p)[0]).mean(),
        initial_full(cfg, key, basis),
        optimiser(cfg.lr),
        steps=cfg.steps,
        batch=batch,
        frozen=lambda w: w.a,
        until=lambda value, _: value < cfg.eps,
    )
    found = test(cfg, key, lambda p: outputs(trace.last, p))
    return Probes(**found, stopped_at=trace.stopped_at)
