"""A causal transformer of any depth, as functions of one sequence; batching is outside.

It reads from top to bottom: `Shape`, the weights, their start, then norm, attention, MLP, block and
the whole (`transformer`). Pre-norm blocks with residuals, as in GPT-2 without biases. Attention
weights of every layer and head come with the output.

Letters in shapes: T tokens, i inputs, o outputs, d width of the residual stream, L layers, H heads,
h = d / H width of a head, f hidden neurons of an MLP, P learned positions.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.errors import InputError, unknown
from provingground.keys import normal, stream


class Shape(NamedTuple):
    """What a transformer is made of.

    Args:
        layers, heads, width: L, H and d.
        hidden: neurons of each MLP; 0 leaves the MLPs out (attention only).
        norm: whether there is layer norm before every part and before the read-out.
        inputs: entries of an input vector, or number of tokens; 0: inputs are d wide as they are.
        outputs: entries of an output; 0: the residual stream is the output.
        positions: how many positions are learned; 0: none are. Others can be given with a sequence.
    """

    layers: int = 3
    heads: int = 2
    width: int = 48
    hidden: int = 192
    norm: bool = True
    inputs: int = 0
    outputs: int = 0
    positions: int = 0


# ---------------------------------------------------------------------------- weights


class Block(eqx.Module):
    """The weights of one layer; those of all layers are stacked along a first axis."""

    gain_attention: Float[Array, "*L d"] | None
    w_q: Float[Array, "*L H h d"]
    w_k: Float[Array, "*L H h d"]
    w_v: Float[Array, "*L H h d"]
    w_o: Float[Array, "*L H d h"]
    gain_mlp: Float[Array, "*L d"] | None
    w_in: Float[Array, "*L f d"] | None
    w_out: Float[Array, "*L d f"] | None


class Weights(eqx.Module):
    """The weights of a transformer. What it does without is None."""

    read_in: Float[Array, "d i"] | None
    positions: Float[Array, "P d"] | None
    blocks: Block
    gain: Float[Array, "d"] | None
    read_out: Float[Array, "o d"] | None


def initial_weights(
    shape: Shape, key: Key[Array, ""], std: Mapping[str, float] | None = None
) -> Weights:
    r"""Normal weights of s.d. $1/\sqrt{\text{inputs}}$; gains are 1.

    Those that write into the residual stream (`w_o`, `w_out`) are smaller by $\sqrt{2L}$, as in
    GPT-2. `std` gives the s.d. of any of them by name: `{"w_q": 0.1, "w_k": 0.1}`.
    """
    n, heads, d, f = shape.layers, shape.heads, shape.width, shape.hidden
    if d % heads:
        raise InputError(f"a width of {d} does not divide into {heads} heads.")
    h, depth = d // heads, (2 * n) ** -0.5
    of: dict[str, tuple[tuple[int, ...], float]] = {
        "read_in": ((shape.inputs, d), max(shape.inputs, 1) ** -0.5),
        "positions": ((shape.positions, d), 0.02),
        "w_q": ((n, heads, h, d), d**-0.5),
        "w_k": ((n, heads, h, d), d**-0.5),
        "w_v": ((n, heads, h, d), d**-0.5),
        "w_o": ((n, heads, d, h), depth * d**-0.5),
        "w_in": ((n, f, d), d**-0.5),
        "w_out": ((n, d, f), depth * max(f, 1) ** -0.5),
        "read_out": ((shape.outputs, d), d**-0.5),
    }
    for name in std or {}:
        if name not in of:
            raise unknown("weight", name, of)

    def draw(name: str) -> Any:
        size, default = of[name]
        if 0 in size:
            return None
        return (std or {}).get(name, default) * normal(stream(key, f"init/{name}"), size)

    def ones(*size: int) -> Any:
        return jnp.ones(size) if shape.norm else None

    read_in = draw("read_in")
    return Weights(
        read_in=None if read_in is None else read_in.T,
        positions=draw("positions"),
        blocks=Block(
            gain_attention=ones(n, d),
            w_q=draw("w_q"),
            w_k=draw("w_k"),
            w_v=draw("w_v"),
            w_o=draw("w_o"),
            gain_mlp=ones(n, d) if f else None,
            w_in=draw("w_in"),
            w_out=draw("w_out"),
        ),
        gain=ones(d),
        read_out=draw("read_out"),
    )


def parameters(w: Weights) -> int:
    """How many numbers the weights hold."""
    return sum(leaf.size for leaf in jax.tree.leaves(w))


def sinusoidal(tokens: int, width: int) -> Float[Array, "T d"]:
    r"""Positions $\sin(t\,10000^{-2j/d})$ at even entries $2j$, cosines at odd ones."""
    entry, t = np.arange(width), np.arange(tokens)
    angle = np.outer(t, 10000.0 ** (-(entry - entry % 2) / width))
    return jnp.asarray(np.where(entry % 2 == 0, np.sin(angle), np.cos(angle)), float)


# ---------------------------------------------------------------------------- network


def layer_norm(x: Float[Array, "T d"], gain: Float[Array, "d"] | None) -> Float[Array, "T d"]:
    """Rows of mean 0 and variance 1, times the gain; without a gain, rows as they are."""
    if gain is None:
        return x
    centred = x - x.mean(axis=-1, keepdims=True)
    var = jnp.mean(centred**2, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(var + 1e-5) * gain[None, :]


def attention(
    b: Block, x: Float[Array, "T d"], allowed: Bool[Array, "T T"]
) -> tuple[Float[Array, "T d"], Float[Array, "H T T"]]:
    r"""$\sum_H W_O W_V X\,\mathrm{softmax}(X^\top W_K^\top W_Q X/\sqrt h)$, and the weights."""
    q, k, v = (jnp.einsum("ahd,td->ath", m, x) for m in (b.w_q, b.w_k, b.w_v))
    logits = jnp.einsum("ath,ash->ats", q, k) / q.shape[-1] ** 0.5
    p = jax.nn.softmax(jnp.where(allowed[None], logits, -jnp.inf), axis=-1)
    return jnp.einsum("ats,ash,adh->td", p, v, b.w_o), p


def mlp(b: Block, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    r"""$W_{\mathrm{out}}\,\mathrm{gelu}(W_{\mathrm{in}} x)$ for every token."""
    assert b.w_in is not None
    assert b.w_out is not None
    return jax.nn.gelu(x @ b.w_in.T) @ b.w_out.T


def block(
    b: Block, x: Float[Array, "T d"], allowed: Bool[Array, "T T"]
) -> tuple[Float[Array, "T d"], Float[Array, "H T T"]]:
    """One layer: attention and then the MLP, each added to the stream; and the attention."""
    seen, p = attention(b, layer_norm(x, b.gain_attention), allowed)
    x = x + seen
    if b.w_in is not None:
        x = x + mlp(b, layer_norm(x, b.gain_mlp))
    return x, p


def visible(tokens: int, exists: Bool[Array, "T"] | None = None) -> Bool[Array, "T T"]:
    """Who may look at whom: each token at itself and at earlier ones that exist."""
    row, column = jnp.arange(tokens)[:, None], jnp.arange(tokens)[None, :]
    earlier = column < row
    return (column == row) | (earlier if exists is None else earlier & exists[None, :])


def transformer(
    w: Weights,
    x: Float[Array, "T i"] | Int[Array, "T"],
    *,
    positions: Float[Array, "T d"] | None = None,
    exists: Bool[Array, "T"] | None = None,
) -> tuple[Float[Array, "T o"], Float[Array, "L H T T"]]:
    """Outputs at every token, and the attention of every layer and head (query, key).

    Args:
        x: vectors, or numbers of tokens.
        positions: added to the read-in, such as `sinusoidal(T, d)`; learned ones come on their own.
        exists: tokens that do not exist are seen by no other token.
    """
    if jnp.issubdtype(x.dtype, jnp.integer):
        assert w.read_in is not None
        z = w.read_in.T[x]
    else:
        z = x if w.read_in is None else x @ w.read_in.T
    for added in (None if w.positions is None else w.positions[: len(x)], positions):
        z = z if added is None else z + added
    allowed = visible(len(x), exists)
    z, p = jax.lax.scan(lambda z, b: block(b, z, allowed), z, w.blocks)
    z = layer_norm(z, w.gain)
    return z if w.read_out is None else z @ w.read_out.T, p
