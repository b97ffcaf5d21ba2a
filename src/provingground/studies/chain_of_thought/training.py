"""Training without tests: the loss, and where the steps of held-out training prompts look.

Training in the coordinates that a gradient reaches gives the same weights as in all of them
(simulator `full`), for less work. Attention and scores are those of Lemmas F.3.5 to F.3.7.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from provingground.config import probe
from provingground.keys import stream

from .data import Config, Prompt, draw_prompts
from .inference import TYPES
from .network import (
    Room,
    initial_weights,
    loss_of,
    network,
    reduced,
    tokens,
    train,
    trained_part,
)

__all__ = ["Config", "Probes", "simulate"]


class Probes(eqx.Module):
    """What a training by itself reports. Types of columns: `inference.TYPES`."""

    test_loss: Float[Array, "step"] = probe("loss on held-out prompts", r"\ell")
    mass: Float[Array, "step type"] = probe("attention on a type of columns")
    score: Float[Array, "step type"] = probe("mean score of a type of columns with the query")
    stopped_at: Int[Array, ""] = probe("training steps until the loss is reached", "T")
    step: Int[Array, "step"] = probe("training step", "t")
    type: Int[Array, "type"] = probe("type of column", labels=TYPES)


def looks(
    cfg: Config, room: Room, w: Float[Array, "D Q"], prompts: Prompt
) -> dict[str, Float[Array, "type"]]:
    """Attention and mean score by type of column: same step or not, same pattern or not.

    Scores are means over all columns of a type in all prompts.
    """

    def one(p: Prompt) -> tuple[Float[Array, "type"], Float[Array, "type"], Float[Array, "type"]]:
        columns, query = tokens(cfg, room, p)
        _, s = network(w, columns, query, p.exists, room.outputs)
        at, same = p.step == p.query_step, p.inputs == p.query
        kinds = jnp.stack([at & same, at & ~same, ~at & same, ~at & ~same]) & p.exists[None]
        kinds = kinds.astype(s.dtype)
        return kinds @ s, kinds @ (columns @ (w @ query)), kinds.sum(axis=1)

    mass, total, count = jax.vmap(one)(prompts)
    return dict(mass=mass.mean(axis=0), score=total.sum(axis=0) / jnp.maximum(count.sum(axis=0), 1))


def train_alone(cfg: Config, key: Key[Array, ""], room: Room, part: Any) -> Probes:
    """Training in some coordinates, measured on held-out prompts."""
    held_out = draw_prompts(cfg, stream(key, "test/held_out"), cfg.held_out)
    trace = train(
        cfg,
        key,
        room,
        initial_weights(cfg, key)[part],
        probe=lambda w: {
            "test_loss": loss_of(cfg, room, w, held_out),
            **looks(cfg, room, w, held_out),
        },
    )
    return Probes(
        **trace.probes,
        stopped_at=trace.stopped_at,
        step=trace.step,
        type=jnp.arange(len(TYPES), dtype=jnp.int32),
    )


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Training in the coordinates that a gradient reaches."""
    return train_alone(cfg, key, reduced(cfg), trained_part(cfg))
