"""A table of facts, made up: Figures 5 to 8 without language.

A fact is (subject, relation) -> answer. Answers of a relation are of one type, which the relation
alone tells ("syntax"); which of them is the answer the subject tells too ("semantics").

Letters in shapes: F facts, Q = 3 F prompts, T tokens.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import stream, uniform

from . import decoder
from .decoder import Prompts, Task

PARAPHRASES = 3  # of every fact: the relation's token, and none to two fillers
TOKENS = 1 + PARAPHRASES


@config
class Config(decoder.Config):
    """The table, and how it is learned."""

    subjects: int = par(120, "n_s", "subjects", low=2)
    relations: int = par(8, "n_r", "relations, each with answers of its own", low=2)
    answers: int = par(20, "n_a", "answers of a relation", low=2)
    padding: str = par("left", "P", "where short prompts are padded", choices=("left", "right"))
    masked: bool = par(True, "M", "whether padding is hidden from other tokens")


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


def table(cfg: Config, key: Key[Array, ""]) -> Prompts:
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
    return Prompts(
        tokens=jnp.asarray(np.where(exists, found, 0), jnp.int32),
        exists=jnp.asarray(exists if cfg.masked else np.ones_like(exists)),
        answer=jnp.asarray(r * cfg.answers, jnp.int32) + which[s, r],
        relation=jnp.asarray(r, jnp.int32),
    )


def task(cfg: Config, key: Key[Array, ""]) -> Task:
    """All prompts are learned; the first of every fact is asked."""
    prompts = table(cfg, key)
    return Task(
        prompts,
        jax.tree.map(lambda a: a[::PARAPHRASES], prompts),
        typed=lambda said, prompts: said // cfg.answers == prompts.relation,
        inputs=cfg.subjects + cfg.relations + PARAPHRASES,
        outputs=cfg.relations * cfg.answers,
    )


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    return Probes(**decoder.learn(cfg, key, task(cfg, key)))
