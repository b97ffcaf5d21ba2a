"""A small decoder from scratch on real facts and questions: Figures 1 and 5 to 8 without GPT-2.

Words become tokens by their number modulo the size of the vocabulary; answers are the distinct
ones of the drawn facts. All prompts of a fact are learned; of some facts the first is asked.

Letters in shapes: F facts of the data set, f those drawn, J prompts of a fact, T tokens,
R relations, O answers of the data set, o at most as many as are drawn.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import stream, uniform

from . import decoder
from .decoder import Prompts, Task
from .questions import Source


@config
class Config(decoder.Config):
    """Which facts are drawn, and how they are learned."""

    facts: int = par(320, "F", "facts drawn for a training", low=2)
    asked: int = par(320, "F_a", "learned facts that are asked, and others", low=2)
    relations: int = par(8, "n_r", "relations drawn from, the most frequent", low=1, value=True)
    vocabulary: int = par(2048, "n_v", "tokens that words are mapped to", low=2)


class Probes(eqx.Module):
    """As on the made table, and what guesses that never see the subject would score."""

    train_loss: Float[Array, "epoch"] = probe("training loss", "L")
    type_accuracy: Float[Array, "epoch"] = probe("answers of the right type")
    exact_accuracy: Float[Array, "epoch"] = probe("right answers")
    edited_type: Float[Array, "snapshot order rho"] = probe("answers of the right type, edited")
    edited_exact: Float[Array, "snapshot order rho"] = probe("right answers, edited")
    unseen_type: Float[Array, "epoch"] = probe("right types, facts that are not learned")
    type_guess: Float[Array, ""] = probe("right types by the best single answer")
    exact_guess: Float[Array, ""] = probe("right answers by each relation's commonest answer")
    epoch: Int[Array, "epoch"] = probe("epoch", "T")
    snapshot: Int[Array, "snapshot"] = probe("snapshot", labels=("early", "late"))
    order: Int[Array, "order"] = probe("singular values kept", labels=("largest", "smallest"))
    rho: Float[Array, "rho"] = probe("part of the singular values kept", r"\rho")


def drawn(cfg: Config, key: Key[Array, ""], relation: Int[Array, "F"]) -> Int[Array, "f"]:
    """Facts to learn and others, of the most frequent relations; of each as many, of rare ones
    all there are."""
    u = uniform(stream(key, "data/subset"), relation.shape)
    order = jnp.lexsort((u, relation))
    ranked = relation[order]
    turn = jnp.arange(len(order)) - jnp.searchsorted(ranked, ranked)  # within its relation
    late = ranked >= cfg.relations
    return order[jnp.lexsort((u[order], turn, late))[: cfg.facts + cfg.asked]]


def guesses(asked: Prompts, types: Bool[Array, "R o"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Scores of one answer to all prompts (types), and of one for each relation (answers)."""
    counts = jnp.zeros(types.shape).at[asked.relation, asked.answer].add(1.0)
    number = len(asked.answer)
    suited = jnp.einsum("ro,r->o", types.astype(counts.dtype), counts.sum(axis=1))
    return suited.max() / number, counts.max(axis=1).sum() / number


def task(cfg: Config, key: Key[Array, ""], data: Source) -> tuple[Task, Bool[Array, "R o"]]:
    """The prompts of the drawn facts, with answers numbered anew, and their types."""
    words, relation = jnp.asarray(data.words), jnp.asarray(data.relation)
    at = drawn(cfg, key, relation)
    at, others = at[: cfg.facts], at[cfg.facts :]
    size = min(cfg.facts, data.types.shape[1])
    kept, answer = jnp.unique(
        jnp.asarray(data.answer)[at], size=size, fill_value=-1, return_inverse=True
    )
    types = jnp.asarray(data.types)[:, kept] & (kept >= 0)[None, :]

    def prompts(at: Int[Array, "f"], answer: Int[Array, "f"], per_fact: int) -> Prompts:
        """One paraphrase after the other, fact by fact."""
        rows = words[at, :per_fact].reshape(-1, words.shape[2])
        tokens = jnp.where(rows > 0, 1 + rows % (cfg.vocabulary - 1), 0)
        answer, kind = (jnp.repeat(a, per_fact) for a in (answer, relation[at]))
        return Prompts(tokens, rows > 0, answer.astype(jnp.int32), kind)

    some = slice(0, cfg.asked)
    learned = Task(
        prompts(at, answer, words.shape[1]),
        prompts(at[some], answer[some], 1),
        typed=lambda said, prompts: types[prompts.relation, said],
        inputs=cfg.vocabulary,
        outputs=size,
        unseen=prompts(others, jnp.full_like(others, -1), 1),
    )
    return learned, types


def simulate(cfg: Config, key: Key[Array, ""], data: Source) -> Probes:
    learned, types = task(cfg, key, data)
    type_guess, exact_guess = guesses(learned.asked, types)
    found = decoder.learn(cfg, key, learned)
    return Probes(**found, type_guess=type_guess, exact_guess=exact_guess)
