"""A small causal transformer that learns facts, and is edited: Figures 1 and 5 to 8.

A fact is a prompt and its answer. An answer is of the right type if it could answer such a prompt
("syntax"); one of those is the right one ("semantics"). Where prompts come from is not told here:
from a made table (`facts`) or from real facts and questions (`language`).

Letters in shapes: Q prompts, T tokens, L layers, d width, O answers of all types.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par
from provingground.keys import stream
from provingground.nets.transformer import Shape, Weights, initial_weights, transformer
from provingground.train import descend

RHOS = np.linspace(0.1, 1, 10)


@config
class Config:
    """Sizes of the network, how it is trained, and how it is edited."""

    layers: int = par(2, "L", "layers", low=1)
    width: int = par(64, "d", "width, an even number", low=4)
    epochs: int = par(40, "T", "epochs", low=2)
    early: int = par(3, "T_1", "epoch of the early snapshot", low=1)
    batch: int = par(32, "B", "batch size", low=1)
    lr: float = par(1e-3, r"\eta", "step size of AdamW", low=1e-6)
    anneal: float = par(1.0, "c", "factor of the step size in an epoch", low=0.5, high=1)
    weight_decay: float = par(0.01, r"\lambda", "weight decay of AdamW", low=0)
    edited: str = par(
        "separate",
        "E",
        "what is edited: Q, K, V, O one by one, or Q, K, V as one matrix",
        choices=("separate", "fused"),
    )


# ------------------------------------------------------------------------------- task


class Prompts(eqx.Module):
    """Prompts with their answers and what tells which answers are of the right type."""

    tokens: Int[Array, "Q T"]
    exists: Bool[Array, "Q T"]
    answer: Int[Array, "Q"]
    relation: Int[Array, "Q"]


class Task(NamedTuple):
    """What is learned.

    Args:
        prompts: those of the training.
        asked: those that are asked, one of every fact.
        typed: which of some answers to some prompts are of the right type.
        inputs, outputs: how many tokens and answers there are.
        unseen: prompts of other facts, of which the types of answers are asked.
    """

    prompts: Prompts
    asked: Prompts
    typed: Callable[[Int[Array, "Q"], Prompts], Bool[Array, "Q"]]
    inputs: int
    outputs: int
    unseen: Prompts | None = None


def shape(cfg: Config, task: Task) -> Shape:
    return Shape(
        layers=cfg.layers,
        heads=2,
        width=cfg.width,
        hidden=4 * cfg.width,
        inputs=task.inputs,
        outputs=task.outputs,
        positions=task.prompts.tokens.shape[1],
    )


# ---------------------------------------------------------------------------- network


def logits(w: Weights, data: Prompts) -> Float[Array, "Q O"]:
    """Read at the last position, as the authors do, whatever stands there."""
    return jax.vmap(lambda x, there: transformer(w, x, exists=there)[0][-1])(
        data.tokens, data.exists
    )


def loss(w: Weights, data: Prompts) -> Float[Array, ""]:
    scores = jax.nn.log_softmax(logits(w, data), axis=-1)
    return -jnp.take_along_axis(scores, data.answer[:, None], axis=1).mean()


def accuracy(w: Weights, task: Task, asked: Prompts) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """How many answers to some prompts are of the right type, and right."""
    said = jnp.argmax(logits(w, asked), axis=-1).astype(jnp.int32)
    typed = task.typed(said, asked)
    return jnp.mean(typed, dtype=float), jnp.mean(said == asked.answer, dtype=float)


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
    cfg: Config, w: Weights, task: Task
) -> tuple[Float[Array, "order rho"], Float[Array, "order rho"]]:
    """Accuracy with part of the singular values of every attention matrix."""
    apart = [jax.vmap(singular)(m) for m in attention_rows(cfg, w)]

    def one(keep: Float[Array, "rank"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        rows = [jnp.einsum("lar,r,lbr->lab", us, keep, v) for us, v in apart]
        return accuracy(put_back(cfg, w, rows), task, task.asked)

    every = jnp.asarray(kept_ranks(cfg.width), float)
    flat = jax.lax.map(one, every.reshape(-1, cfg.width))
    return tuple(a.reshape(every.shape[:2]) for a in flat)  # pyright: ignore[reportReturnType]


def kept_ranks(width: int) -> Float[np.ndarray, "order rho rank"]:
    """Which ranks are kept: the largest or the smallest part of the singular values."""
    rank, count = np.arange(width), np.round(RHOS * width)[:, None]
    return np.stack([rank < count, rank >= width - count]).astype(float)


# --------------------------------------------------------------------------- training


def learn(cfg: Config, key: Key[Array, ""], task: Task) -> dict[str, Any]:
    """AdamW on random batches of prompts; then edits of two snapshots: probes by name."""
    number = len(task.prompts.tokens)
    steps = -(-number // cfg.batch)  # of an epoch
    order = stream(key, "batch/order")

    def batch(t: Int[Array, ""]) -> Prompts:
        rows = jax.random.randint(jax.random.fold_in(order, t), (cfg.batch,), 0, number)
        return jax.tree.map(lambda a: a[rows], task.prompts)

    def rate(t: Any) -> Any:
        return cfg.lr * cfg.anneal ** (t // steps).astype(float)

    def measure(w: Weights) -> dict:
        typed, right = accuracy(w, task, task.asked)
        asked = loss(w, task.asked)
        seen = dict(train_loss=asked, type_accuracy=typed, exact_accuracy=right, weights=w)
        if task.unseen is None:
            return seen
        return seen | dict(unseen_type=accuracy(w, task, task.unseen)[0])

    trace = descend(
        loss,
        initial_weights(shape(cfg, task), stream(key, "init/network")),
        optax.adamw(rate, weight_decay=cfg.weight_decay),
        steps=steps * cfg.epochs,
        probe=measure,
        at=steps * np.arange(cfg.epochs + 1),
        batch=batch,
    )
    found = dict(trace.probes)
    weights = found.pop("weights")
    two = jax.tree.map(lambda a: a[np.array([min(cfg.early, cfg.epochs), cfg.epochs])], weights)
    edited_type, edited_exact = jax.lax.map(lambda w: edits(cfg, w, task), two)
    return found | dict(
        edited_type=edited_type,
        edited_exact=edited_exact,
        epoch=jnp.arange(cfg.epochs + 1),
        snapshot=jnp.arange(2),
        order=jnp.arange(2),
        rho=jnp.asarray(RHOS, float),
    )
