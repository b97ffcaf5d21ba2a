"""The trained network with its tests: one training, measured on all test settings."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from provingground.config import probe
from provingground.errors import InputError
from provingground.keys import normal, stream
from provingground.train import by_lane

from .data import Config, draw_prompts
from .inference import (
    TYPES,
    attention,
    draw_batch,
    lengths,
    measure,
    network_scores,
    noise_of,
    query_scores,
    ring_chain,
    span_patterns,
)
from .network import full, initial_weights, loss_of, reduced, train, trained_part
from .plurality import vote_errors
from .span import LENGTHS, MULTIPLES, QUERIES, errors_on_queries, matched_by_mixture, mixtures
from .suites import NAMES, OWN, Tests, names_of, suite_of
from .transitions import realised

__all__ = ["Config", "Probes", "simulate"]


class Probes(eqx.Module):
    """What one training reports, and its tests."""

    test_loss: Float[Array, "step"] = probe("loss on held-out prompts", r"\ell")
    attention: Float[Array, "step k type"] = probe("attention on a type of columns")
    attention_map: Float[Array, "k column"] = probe("attention")
    cot_error: Float[Array, "setting l_test"] = probe("CoT error", r"\bar R_{\mathrm{CoT}}")
    cot_final: Float[Array, "setting l_test"] = probe("CoT error of the last step")
    icl_error: Float[Array, "setting l_test"] = probe("ICL error", r"\bar R_{\mathrm{ICL}}")
    icl_from: Float[Array, "setting l_test start"] = probe("ICL error on inputs 1 and 2")
    icl_blind: Float[Array, "setting l_test"] = probe("ICL error, output rows of W set to zero")
    vote_cot: Float[Array, "setting l_test"] = probe("CoT error of the vote")
    vote_icl: Float[Array, "setting l_test"] = probe("ICL error of the vote")
    tau: Float[Array, "setting"] = probe("trajectory probability", r"\tau^f")
    rho: Float[Array, "setting"] = probe("primacy", r"\rho^f")
    tau_io: Float[Array, "setting"] = probe("input-output probability", r"\tau_o^f")
    rho_io: Float[Array, "setting"] = probe("primacy end to end", r"\rho_o^f")
    infeasible: Float[Array, "setting"] = probe("inputs for which Condition 7.3.2 fails")
    span_attention: Float[Array, "mixture"] = probe("attention on matched columns, step 1")
    span_error: Float[Array, "pattern multiple l_span"] = probe("error of step 1")
    own_input: Float[Array, ""] = probe("score of the query's own input pattern", "w_1")
    own_output: Float[Array, ""] = probe("score of the query's input as an output", "w_2")
    own_step: Float[Array, ""] = probe("score of the query's own step")
    alpha_test: Float[Array, "setting"] = probe("examples with the query's input", r"\alpha'")
    mixture: Float[Array, "mixture"] = probe("sum of a test pattern's coefficients", "S")
    stopped_at: Int[Array, ""] = probe("training steps until the loss is reached", "T")
    step: Int[Array, "step"] = probe("training step", "t")
    l_test: Int[Array, "l_test"] = probe("examples in the prompt", r"l_{\mathrm{ts}}")
    setting: Int[Array, "setting"] = probe("test setting", labels=NAMES)
    type: Int[Array, "type"] = probe("type of column", labels=TYPES)
    pattern: Int[Array, "pattern"] = probe("pattern of the query", labels=QUERIES)
    multiple: Float[Array, "multiple"] = probe("matching examples", r"\alpha' M'")
    l_span: Int[Array, "l_span"] = probe("examples in the prompt", r"l_{\mathrm{ts}}")


# ----------------------------------------------------------------------------- reports


def shown_prompt(k: int, m: int) -> tuple[Int[Array, "L y"], Int[Array, "y"]]:
    """Figure 7.2: examples of the task that moves on by 1, 2, 3, ..., and the query's true chain.

    The fourth goes wrong in its first step; the fifth gets onto the query's chain by a mistake.
    """
    y = ring_chain(np.array([0, 4, 0, 1, 0, 8]), k, m)
    y[3:5, 0] = 0, 5 % m
    return jnp.asarray(y, jnp.int32), jnp.asarray(y[0], jnp.int32)


def summary(cfg: Config, w: Float[Array, "D D"]) -> dict[str, Float[Array, ""]]:
    """The three numbers that describe a trained W: means of diagonals of its blocks."""
    m, k = cfg.n_patterns, cfg.n_steps
    return dict(
        own_input=jnp.diagonal(w[:m, :m]).mean(),
        own_output=jnp.diagonal(w[cfg.dim :][:m, :m]).mean(),
        own_step=jnp.diagonal(w[m : m + k, m : m + k]).mean(),
    )


def simulate(cfg: Config, key: Key[Array, ""], data: Tests | None = None) -> Probes:
    """Training in the coordinates that a gradient reaches, and tests on all settings."""
    full(cfg)  # says what does not fit
    tests = suite_of(cfg, key) if data is None else data
    k, m = tests.task.shape[2:]
    if k != cfg.n_steps:
        raise InputError(f"the matrices have {k} steps, not n_steps = {cfg.n_steps}.")
    mu = span_patterns(key, m, cfg.n_patterns, cfg.dim)
    n, longest = cfg.test_samples, cfg.examples_test
    batch, l_test = draw_batch(key, tests, n, longest), jnp.asarray(lengths(longest))
    noise = noise_of(stream(key, "test/noise"), (longest, n, k + 1), mu, cfg.noise)
    noise = jnp.moveaxis(noise, 0, 1)
    held_out = draw_prompts(cfg, stream(key, "test/held_out"), cfg.held_out)
    start, room, part = initial_weights(cfg, key), reduced(cfg), trained_part(cfg)
    shown, chain_shown = shown_prompt(k, m)
    leaning = normal(stream(key, "test/leaning"), (16, 2, cfg.n_patterns))
    some = slice(0, cfg.examples)  # along training, prompts are as long as in training

    def whole(w: Float[Array, "D Q"]) -> Float[Array, "all all"]:
        return start.at[part].set(w)

    def along(w: Float[Array, "D Q"]) -> dict[str, Array]:
        queries = query_scores(cfg, whole(w), mu)

        def one(y: Array, noise: Array, z: Array) -> Array:
            scores = network_scores(queries, mu, y, noise)
            return attention(queries, scores, y, jnp.ones(len(y), bool), z)[1]

        by_type = jax.vmap(one)(batch.y[0, :, some], noise[:, some], batch.truth[0])
        return dict(test_loss=loss_of(cfg, room, w, held_out), attention=by_type.mean(axis=0))

    trace = train(cfg, key, room, start[part], probe=along)

    def at_end(w: Float[Array, "D Q"]) -> dict[str, Array]:
        w = whole(w)
        queries = query_scores(cfg, w, mu)
        scores_of = partial(network_scores, queries, mu)
        scores = scores_of(shown, noise[0][np.arange(len(shown)) % noise.shape[1]])
        looks, _ = attention(queries, scores, shown, jnp.ones(len(shown), bool), chain_shown)
        found = measure(queries, scores_of, batch, noise, l_test)
        found["icl_from"] = found["icl_from"][..., :2]  # any number of patterns, one shape
        return dict(
            **found,
            **summary(cfg, w),
            attention_map=looks[:, : shown[:, 1:].size],
            span_attention=matched_by_mixture(cfg, w, leaning),
            span_error=errors_on_queries(cfg, w, key),
        )

    voted = vote_errors(batch, m, lengths(longest))
    names = names_of(cfg) if data is None else OWN[: len(tests.alpha_test)]

    def numbered(names: tuple[str, ...]) -> Int[Array, "n"]:
        return jnp.arange(len(names), dtype=jnp.int32)

    return Probes(
        **trace.probes,
        **by_lane(at_end, trace.last),
        **realised(tests.task, tests.transitions),
        vote_cot=voted["cot_error"],
        vote_icl=voted["icl_error"],
        alpha_test=tests.alpha_test,
        stopped_at=trace.stopped_at,
        step=trace.step,
        l_test=l_test,
        setting=jnp.asarray([NAMES.index(name) for name in names], jnp.int32),
        type=numbered(TYPES),
        pattern=numbered(QUERIES),
        multiple=jnp.asarray(MULTIPLES, float),
        l_span=jnp.asarray(LENGTHS, jnp.int32),
        mixture=jnp.asarray(mixtures(cfg.n_patterns), float),
    )
