"""Figures 1, 5 and 6 with GPT-2's own weights, if they are here: what it says under edits.

    from provingground.studies.syntax_semantics import gpt2

    found = gpt2.evaluate("folder/of/gpt2", facts=200)

The folder is as `published` tells. A weight set that was fine-tuned on CounterFact makes the
paper's snapshots; the published one has seen no prompt of it. An answer is its first token.

Letters in shapes: Q prompts, T tokens, L layers, d width, h = d / H width of a head, O tokens.
"""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int

from provingground.data import real
from provingground.errors import InputError

from . import published
from .decoder import RHOS, kept_ranks

EDITED = ("attn.c_attn.weight", "attn.c_proj.weight")  # Q, K, V side by side; O
PARTS = (
    *("ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"),
    *("attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias"),
    *("mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"),
)


class Weights(eqx.Module):
    """Blocks are stacked along a first axis, by the names of their parts."""

    wte: Float[Array, "O d"]
    wpe: Float[Array, "P d"]
    blocks: dict[str, Array]
    gain: Float[Array, "d"]
    bias: Float[Array, "d"]
    heads: int = eqx.field(static=True)


class Questions(NamedTuple):
    """Prompts padded on the right, where their last token stands, and which tokens would do."""

    tokens: Int[Array, "Q T"]
    last: Int[Array, "Q"]
    answer: Int[Array, "Q"]
    typed: Bool[Array, "Q O"]


# ---------------------------------------------------------------------------- weights


SETTINGS = ("n_layer", "n_head", "n_embd", "n_positions", "vocab_size")


def settings(path: Path) -> list[int]:
    """L, H, d, the longest prompt and the size of the vocabulary."""
    told = published.parsed(path, published.content(path))
    found = [told.get(name, 0) for name in SETTINGS]
    if not all(published.whole(n) and n > 0 for n in found) or found[2] % found[1]:
        raise published.refuse(path, f"{', '.join(SETTINGS)} are not as they should be")
    return found


def load(folder: Path) -> Weights:
    """The weights of a folder, if they fit together as its settings say."""
    layers, heads, d, positions, vocabulary = settings(folder / "config.json")
    path = folder / "model.safetensors"
    found = {n.removeprefix("transformer."): a for n, a in published.tensors(path).items()}
    sizes = {"ln": (d,), "c_attn": (d, 3 * d), "attn.c_proj": (d, d), "c_fc": (d, 4 * d)}

    def array(name: str, *shape: int) -> Array:
        if name not in found or found[name].shape != shape:
            raise published.refuse(path, f"'{name}' is not there with the shape {shape}")
        return jnp.asarray(found[name])

    def size(part: str) -> tuple[int, ...]:
        whole = next((s for n, s in sizes.items() if n in part), (4 * d, d))
        return whole[-1:] if part.endswith("bias") else whole

    return Weights(
        wte=array("wte.weight", vocabulary, d),
        wpe=array("wpe.weight", positions, d),
        blocks={
            part: jnp.stack([array(f"h.{i}.{part}", *size(part)) for i in range(layers)])
            for part in PARTS
        },
        gain=array("ln_f.weight", d),
        bias=array("ln_f.bias", d),
        heads=heads,
    )


# ---------------------------------------------------------------------------- network


def layer_norm(x: Float[Array, "T d"], gain: Array, bias: Array) -> Float[Array, "T d"]:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
    return scaled * gain[None] + bias[None]


def affine(b: dict[str, Array], part: str, x: Float[Array, "T i"]) -> Float[Array, "T o"]:
    return x @ b[f"{part}.weight"] + b[f"{part}.bias"][None]


def attention(b: dict[str, Array], x: Float[Array, "T d"], heads: int) -> Float[Array, "T d"]:
    three = jnp.split(affine(b, "attn.c_attn", x), 3, axis=-1)
    q, k, v = (part.reshape(len(x), heads, -1) for part in three)
    scores = jnp.einsum("tah,sah->ats", q, k) / q.shape[-1] ** 0.5
    seen = jnp.tril(jnp.ones((len(x), len(x)), bool))
    p = jax.nn.softmax(jnp.where(seen[None], scores, -jnp.inf), axis=-1)
    out = jnp.einsum("ats,sah->tah", p, v).reshape(x.shape)
    return affine(b, "attn.c_proj", out)


def scores(w: Weights, tokens: Int[Array, "T"], last: Int[Array, ""]) -> Float[Array, "O"]:
    """Of every token, to come after the last one."""

    def block(x: Float[Array, "T d"], b: dict[str, Array]) -> tuple[Float[Array, "T d"], None]:
        x = x + attention(b, layer_norm(x, b["ln_1.weight"], b["ln_1.bias"]), w.heads)
        seen = layer_norm(x, b["ln_2.weight"], b["ln_2.bias"])
        return x + affine(b, "mlp.c_proj", jax.nn.gelu(affine(b, "mlp.c_fc", seen))), None

    x, _ = jax.lax.scan(block, w.wte[tokens] + w.wpe[: len(tokens)], w.blocks)
    return w.wte @ layer_norm(x, w.gain, w.bias)[last]


def said(w: Weights, asked: Questions) -> Int[Array, "Q"]:
    """What follows each prompt; one after the other, since the vocabulary is large."""
    return jax.lax.map(lambda q: jnp.argmax(scores(w, *q)), (asked.tokens, asked.last))


def factors(w: Weights, fused: bool) -> dict[str, list[Any]]:
    """Singular values and vectors of the edited matrices of all layers."""

    def parts(name: str) -> list[np.ndarray]:
        m = np.asarray(w.blocks[name])
        return [m] if fused or name == EDITED[1] else np.split(m, 3, axis=-1)

    return {name: [np.linalg.svd(m, full_matrices=False) for m in parts(name)] for name in EDITED}


def edited(w: Weights, apart: dict[str, list[Any]], keep: Float[np.ndarray, "rank"]) -> Weights:
    """Attention with some of the singular values of each matrix, the largest first."""
    made = {
        name: jnp.concatenate([(u * (s * keep)[:, None, :]) @ v for u, s, v in parts], axis=-1)
        for name, parts in apart.items()
    }
    kept = {name: m.astype(w.wte.dtype) for name, m in made.items()}
    return eqx.tree_at(lambda w: w.blocks, w, w.blocks | kept)


# ------------------------------------------------------------------------- evaluation


Fact = tuple[str, str, str]  # prompt, answer, relation


def questions(words: published.Words, facts: list[Fact], known: list[Fact], size: int) -> Questions:
    """Facts as tokens; the answers of a relation to all known facts are one type."""
    first = {a: words.tokens(" " + a)[0] for a in {a for _, a, _ in (*facts, *known)}}
    types = {r: np.zeros(size, bool) for _, _, r in (*facts, *known)}
    rows = [words.tokens(prompt) for prompt, _, _ in facts]
    tokens = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for at, row in zip(tokens, rows, strict=True):
        at[: len(row)] = row
    if max(tokens.max(), *first.values()) >= size:
        raise InputError("vocab.json has more tokens than config.json says.")
    for _, a, r in (*facts, *known):
        types[r][first[a]] = True
    return Questions(
        tokens=jnp.asarray(tokens),
        last=jnp.array([len(row) - 1 for row in rows], jnp.int32),
        answer=jnp.array([first[a] for _, a, _ in facts], jnp.int32),
        typed=jnp.asarray(np.stack([types[r] for _, _, r in facts])),
    )


def counterfact() -> list[Fact]:
    raw: Any = real.load("counterfact")
    columns = (raw[name].tolist() for name in ("template", "subject", "target_true", "relation"))
    rows = zip(*columns, strict=True)
    return [
        (t.decode().replace("{}", s.decode(), 1), a.decode(), r.decode()) for t, s, a, r in rows
    ]


def evaluate(
    folder: str | Path,
    facts: list[Fact] | int = 200,
    *,
    seed: int = 0,
    fused: bool = False,
) -> xr.Dataset:
    """Right types and right answers of a folder's GPT-2, with part of its singular values.

    `facts` are (prompt, answer, relation), or how many of CounterFact are drawn.
    """
    w, words = load(Path(folder)), published.Words(Path(folder))
    known = counterfact() if isinstance(facts, int) else facts
    if isinstance(facts, int):
        facts = [known[i] for i in np.random.default_rng(seed).permutation(len(known))[:facts]]
    asked = questions(words, facts, known, len(w.wte))
    if asked.tokens.shape[1] > len(w.wpe):
        raise InputError("a prompt is longer than this GPT-2 reads.")
    answers, apart = eqx.filter_jit(partial(said, asked=asked)), factors(w, fused)

    def shares(keep: np.ndarray) -> tuple[float, float]:
        found = np.asarray(answers(edited(w, apart, keep)))
        typed = np.asarray(asked.typed)[np.arange(len(found)), found]
        return float(typed.mean()), float((found == np.asarray(asked.answer)).mean())

    ranks = kept_ranks(w.wte.shape[1])
    made = np.array([[shares(keep) for keep in row] for row in ranks])
    return xr.Dataset(
        {
            "edited_type": (("order", "rho"), made[..., 0]),
            "edited_exact": (("order", "rho"), made[..., 1]),
        },
        {"order": ["largest", "smallest"], "rho": RHOS},
    )
