"""A small causal transformer that learns a table of facts: Figures 5 to 8 without language.

A fact is (subject, relation) -> answer. Answers of a relation are of one type, which the relation
alone tells ("syntax"); which of them is the answer the subject tells too ("semantics").

Letters in shapes: F facts, Q = 3 F prompts, T tokens, L layers, d width, O answers of all types.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import stream, uniform
from provingground.nets.transformer import Shape, Weights, initial_weights, transformer
from provingground.train import descend

PARAPHRASES = 3  # of every fact: the relation's token, and none to two fillers
TOKENS = 1 + PARAPHRASES
RHOS = np.linspace(0.1, 1, 10)


@config
class Config:
    """Sizes of the table and the network, how it is trained, and how it is edited."""

    subjects: int = par(120, "n_s", "subjects", low=2)
    relations: int = par(8, "n_r", "relations, each with answers of its own", low=2)
    answers: int = par(20, "n_a", "answers of a relation", low=2)
    layers: int = par(2, "L", "layers", low=1)
    width: int = par(64, "d", "width, an even number", low=4)
    epochs: int = par(40, "T", "epochs", low=2)
    early: int = par(3, "T_1", "epoch of the early snapshot", low=1)
    batch: int = par(32, "B", "batch size", low=1)
    lr: float = par(1e-3, r"\eta", "step size of AdamW", low=1e-6)
    anneal: float = par(1.0, "c", "factor of the step size in an epoch", low=0.5, high=1)
    weight_decay: float = par(0.01, r"\lambda", "weight decay of AdamW", low=0)
    padding: str = par("left", "P", "where short prompts are padded", choices=("left", "right"))
    masked: bool = par(True, "M", "whether padding is hidden from other tokens")
    edited: str = par(
        "separate",
        "E",
        "what is edited: Q, K, V, O one by one, or Q, K, V as one matrix",
        choices=("separate", "fused"),
    )


class Probes(eqx.Module):
    """Accuracy over epochs, and of edited weights at two of them."""

    train_loss: Float[Array, "epoch"] = probe("training loss", "L")
    type_accuracy: Float[Array, "epoch"] = probe("answers of the right type")
    exact_accuracy: Float[Array, "epoch"] = probe("right answers")
    edited_type: Float[Array, "snapshot order rho"] = probe("answers of the right type, edited")
    edited_exact: Float[Array, "snapshot order rho"] = probe("right answers, edited")
    epoch: Int[Array, "epoch"] = probe("epoch", "T")
    snapshot: Int[Array, "snapshot"] = probe("snapshot", labels=("early", "late"))
    order: Int[Array, "order"] = probe("singular values kept", labels=("largest", "smallest"))
    rho: Float[Array, "rho"] = probe("part of the singular values kept", r"\rho")


# ------------------------------------------------------------------------------- data


class Table(eqx.Module):
    """All prompts with their answers, fact by fact and paraphrase by paraphrase."""

    tokens: Int[Array, "Q T"]
    exists: Bool[Array, "Q T"]
    answer: Int[Array, "Q"]
    relation: Int[Array, "Q"]


def table(cfg: Config, key: Key[Array, ""]) -> Table:
    """Subject, relation and up to two fillers; token 0 pads. Answers are drawn uniformly."""
    s, r, j = np.meshgrid(
        *map(np.arange, (cfg.subjects, cfg.relations, PARAPHRASES)), indexing="ij"
    )
    s, r, j = (a.ravel() for a in (s, r, j))
    rel, fill = 1 + cfg.subjects + r, 1 + cfg.subjects + cfg.relations
    at = np.arange(TOKENS)[None, :] - (
        (PARAPHRASES - 1 - j)[:, None] if cfg.padding == "left" else 0
    )
    words = np.stack([1 + s, rel, *(np.full_like(s, fill + k) for k in range(PARAPHRASES - 1))], 1)
    exists = (at >= 0) & (at < 2 + j[:, None])
    found = np.take_along_axis(words, np.clip(at, 0, TOKENS - 1), axis=1)
    drawn = uniform(stream(key, "data/facts"), (cfg.subjects, cfg.relations))
    which = jnp.minimum(jnp.floor(drawn * cfg.answers), cfg.answers - 1).astype(jnp.int32)
    return Table(
        tokens=jnp.asarray(np.where(exists, found, 0), jnp.int32),
        exists=jnp.asarray(exists if cfg.masked else np.ones_like(exists)),
        answer=jnp.asarray(r * cfg.answers, jnp.int32) + which[s, r],
        relation=jnp.asarray(r, jnp.int32),
    )


def shape(cfg: Config) -> Shape:
    return Shape(
        layers=cfg.layers,
        heads=2,
        width=cfg.width,
        hidden=4 * cfg.width,
        inputs=cfg.subjects + cfg.relations + PARAPHRASES,
        outputs=cfg.relations * cfg.answers,
        positions=TOKENS,
    )


# ---------------------------------------------------------------------------- network


def logits(w: Weights, data: Table) -> Float[Array, "Q O"]:
    """Read at the last position, as the authors do, whatever stands there."""
    return jax.vmap(lambda x, there: transformer(w, x, exists=there)[0][-1])(
        data.tokens, data.exists
    )


def loss(w: Weights, data: Table) -> Float[Array, ""]:
    scores = jax.nn.log_softmax(logits(w, data), axis=-1)
    return -jnp.take_along_axis(scores, data.answer[:, None], axis=1).mean()


def accuracy(cfg: Config, w: Weights, data: Table) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """How many answers are of the right type, and right."""
    said = jnp.argmax(logits(w, data), axis=-1).astype(jnp.int32)
    typed = said // cfg.answers == data.relation
    return jnp.mean(typed, dtype=float), jnp.mean(said == data.answer, dtype=float)


# ------------------------------------------------------------------------------ edits


def round_robin(n: int) -> Int[np.ndarray, "round 2 pair"]:
    """Every pair of n (an even number) in n - 1 rounds of disjoint pairs."""
    ring, rounds = np.arange(n - 1), []
    for shift in range(n - 1):
        row = np.append(np.roll(ring, shift), n - 1)
        rounds.append([row[: n // 2], row[n // 2 :][::-1]])
    return np.array(rounds, np.int32)


def singular(
    matrix: Float[Array, "a n"], sweeps: int = 12
) -> tuple[Float[Array, "a n"], Float[Array, "n n"]]:
    r"""$U\Sigma$ and $V$ of $A = U\Sigma V^\top$, largest first, by one-sided Jacobi rotations.

    LAPACK's is not used: on a CPU two programs that call it in a loop may wait for each other.
    """
    pairs = jnp.asarray(round_robin(matrix.shape[1]))

    def turn(t: Int[Array, ""], state: tuple[Array, Array]) -> tuple[Array, Array]:
        columns, turned = state
        i, j = pairs[t % len(pairs)]
        x, y = columns[:, i], columns[:, j]
        across = jnp.sum(x * y, axis=0)
        ahead = jnp.sum(y * y, axis=0) - jnp.sum(x * x, axis=0)
        zeta = ahead / jnp.where(across == 0, 1.0, 2 * across)
        tangent = jnp.where(zeta >= 0, 1.0, -1.0) / (jnp.abs(zeta) + jnp.sqrt(1 + zeta**2))
        tangent = jnp.where(across == 0, 0.0, tangent)
        cos = 1 / jnp.sqrt(1 + tangent**2)
        sin = cos * tangent

        def rotated(m: Array) -> Array:
            x, y = m[:, i], m[:, j]
            m = m.at[:, i].set(cos[None] * x - sin[None] * y)
            return m.at[:, j].set(sin[None] * x + cos[None] * y)

        return rotated(columns), rotated(turned)

    start = matrix, jnp.eye(matrix.shape[1], dtype=matrix.dtype)
    columns, turned = jax.lax.fori_loop(0, sweeps * len(pairs), turn, start)
    order = jnp.argsort(-jnp.sum(columns**2, axis=0))
    return columns[:, order], turned[:, order]


def attention_rows(cfg: Config, w: Weights) -> list[Float[Array, "L _ d"]]:
    """The matrices that are edited: Q, K, V (or all three as one) and O, of every layer."""
    b, n, d = w.blocks, cfg.layers, cfg.width
    rows = [m.reshape(n, d, d) for m in (b.w_q, b.w_k, b.w_v)]
    out = jnp.moveaxis(b.w_o, 1, 2).reshape(n, d, d)
    return [jnp.concatenate(rows, axis=1), out] if cfg.edited == "fused" else [*rows, out]


def put_back(cfg: Config, w: Weights, rows: list[Float[Array, "L _ d"]]) -> Weights:
    """The network with other attention weights."""
    b, n, d = w.blocks, cfg.layers, cfg.width
    *parts, out = rows
    if cfg.edited == "fused":
        parts = jnp.split(parts[0], 3, axis=1)
    heads = jnp.moveaxis(out.reshape(n, d, b.w_o.shape[1], -1), 2, 1)
    made = [m.reshape(b.w_q.shape) for m in parts]
    return eqx.tree_at(
        lambda w: (w.blocks.w_q, w.blocks.w_k, w.blocks.w_v, w.blocks.w_o), w, (*made, heads)
    )


def edits(
    cfg: Config, w: Weights, data: Table
) -> tuple[Float[Array, "order rho"], Float[Array, "order rho"]]:
    """Accuracy with part of the singular values of every attention matrix."""
    apart = [jax.vmap(singular)(m) for m in attention_rows(cfg, w)]

    def one(keep: Float[Array, "rank"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        rows = [jnp.einsum("lar,r,lbr->lab", us, keep, v) for us, v in apart]
        return accuracy(cfg, put_back(cfg, w, rows), data)

    every = jnp.asarray(kept_ranks(cfg.width), float)
    flat = jax.lax.map(one, every.reshape(-1, cfg.width))
    return tuple(a.reshape(every.shape[:2]) for a in flat)  # pyright: ignore[reportReturnType]


def kept_ranks(width: int) -> Float[np.ndarray, "order rho rank"]:
    """Which ranks are kept: the largest or the smallest part of the singular values."""
    rank, count = np.arange(width), np.round(RHOS * width)[:, None]
    return np.stack([rank < count, rank >= width - count]).astype(float)


# --------------------------------------------------------------------------- training


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """AdamW on random batches of prompts; then edits of two snapshots."""
    data = table(cfg, key)
    one = jax.tree.map(lambda a: a[::PARAPHRASES], data)  # a prompt of every fact
    number = len(data.tokens)
    steps = -(-number // cfg.batch)  # of an epoch
    order = stream(key, "batch/order")

    def batch(t: Int[Array, ""]) -> Table:
        rows = jax.random.randint(jax.random.fold_in(order, t), (cfg.batch,), 0, number)
        return jax.tree.map(lambda a: a[rows], data)

    def rate(t: Any) -> Any:
        return cfg.lr * cfg.anneal ** (t // steps).astype(float)

    def measure(w: Weights) -> dict:
        typed, right = accuracy(cfg, w, one)
        return dict(train_loss=loss(w, one), type_accuracy=typed, exact_accuracy=right, weights=w)

    trace = descend(
        loss,
        initial_weights(shape(cfg), stream(key, "init/network")),
        optax.adamw(rate, weight_decay=cfg.weight_decay),
        steps=steps * cfg.epochs,
        probe=measure,
        at=steps * np.arange(cfg.epochs + 1),
        batch=batch,
    )
    found = dict(trace.probes)
    weights = found.pop("weights")
    two = jax.tree.map(lambda a: a[np.array([min(cfg.early, cfg.epochs), cfg.epochs])], weights)
    edited_type, edited_exact = jax.lax.map(lambda w: edits(cfg, w, one), two)
    return Probes(
        **found,
        edited_type=edited_type,
        edited_exact=edited_exact,
        epoch=jnp.arange(cfg.epochs + 1),
        snapshot=jnp.arange(2),
        order=jnp.arange(2),
        rho=jnp.asarray(RHOS, float),
    )
