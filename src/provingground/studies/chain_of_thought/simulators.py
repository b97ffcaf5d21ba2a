"""What the simulators report: the trained network with its tests, and the vote."""

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

from . import theory
from .inference import (
    attention,
    draw_batch,
    lengths,
    measure,
    network_scores,
    noise_of,
    query_scores,
    ring_chain,
    silent_queries,
    span_patterns,
    vote_scores,
)
from .model import (
    Config,
    draw_prompts,
    full,
    initial_weights,
    loss_of,
    reduced,
    train,
    trained_part,
)
from .span import matched_by_mixture, mixtures
from .suites import Tests, suite_of


class Probes(eqx.Module):
    """What one training reports, and its tests."""

    test_loss: Float[Array, "step"] = probe("loss on held-out prompts", r"\ell")
    attention: Float[Array, "step k type"] = probe("attention on a type of columns")
    attention_map: Float[Array, "k column"] = probe("attention")
    cot_error: Float[Array, "setting l_test"] = probe("CoT error", r"\bar R_{\mathrm{CoT}}")
    cot_final: Float[Array, "setting l_test"] = probe("CoT error of the last step")
    icl_error: Float[Array, "setting l_test"] = probe("ICL error", r"\bar R_{\mathrm{ICL}}")
    icl_from: Float[Array, "setting l_test start"] = probe("ICL error by input")
    icl_blind: Float[Array, "setting l_test"] = probe("ICL error, output rows of W set to zero")
    tau: Float[Array, "setting"] = probe("trajectory probability", r"\tau^f")
    rho: Float[Array, "setting"] = probe("primacy", r"\rho^f")
    tau_io: Float[Array, "setting"] = probe("input-output probability", r"\tau_o^f")
    rho_io: Float[Array, "setting"] = probe("primacy end to end", r"\rho_o^f")
    infeasible: Float[Array, "setting"] = probe("inputs for which Condition 7.3.2 fails")
    span_attention: Float[Array, "mixture"] = probe("attention on matched columns, step 1")
    own_input: Float[Array, ""] = probe("score of the query's own input pattern", "w_1")
    own_output: Float[Array, ""] = probe("score of the query's input as an output", "w_2")
    own_step: Float[Array, ""] = probe("score of the query's own step")
    alpha_test: Float[Array, "setting"] = probe("examples with the query's input", r"\alpha'")
    mixture: Float[Array, "mixture"] = probe("sum of a test pattern's coefficients", "S")
    stopped_at: Int[Array, ""] = probe("training steps until the loss is reached", "T")
    step: Int[Array, "step"] = probe("training step", "t")
    l_test: Int[Array, "l_test"] = probe("examples in the prompt", r"l_{\mathrm{ts}}")


class VoteProbes(eqx.Module):
    """What the vote reports: the tests alone."""

    cot_error: Float[Array, "setting l_test"] = probe("CoT error", r"\bar R_{\mathrm{CoT}}")
    cot_final: Float[Array, "setting l_test"] = probe("CoT error of the last step")
    icl_error: Float[Array, "setting l_test"] = probe("ICL error", r"\bar R_{\mathrm{ICL}}")
    icl_from: Float[Array, "setting l_test start"] = probe("ICL error by input")
    icl_blind: Float[Array, "setting l_test"] = probe("ICL error, output rows of W set to zero")
    tau: Float[Array, "setting"] = probe("trajectory probability", r"\tau^f")
    rho: Float[Array, "setting"] = probe("primacy", r"\rho^f")
    tau_io: Float[Array, "setting"] = probe("input-output probability", r"\tau_o^f")
    rho_io: Float[Array, "setting"] = probe("primacy end to end", r"\rho_o^f")
    infeasible: Float[Array, "setting"] = probe("inputs for which Condition 7.3.2 fails")
    alpha_test: Float[Array, "setting"] = probe("examples with the query's input", r"\alpha'")
    l_test: Int[Array, "l_test"] = probe("examples in the prompt", r"l_{\mathrm{ts}}")


# ----------------------------------------------------------------------------- reports


def realised(tests: Tests) -> dict[str, Float[Array, "S"]]:
    """What the matrices are, whatever was asked for; means over tasks."""

    def each(task: Int[Array, "K m"], a: Float[Array, "K m m"]) -> dict[str, Array]:
        return dict(
            tau=theory.tau(a, task),
            rho=theory.primacy(a, task),
            tau_io=theory.tau_io(a),
            rho_io=theory.primacy_io(a),
            infeasible=jnp.mean(~theory.feasible_inputs(a, task), dtype=a.dtype),
        )

    found = jax.vmap(jax.vmap(each))(tests.task, tests.transitions)
    return {"alpha_test": tests.alpha_test, **{n: v.mean(axis=1) for n, v in found.items()}}


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
    batch, l_test = draw_batch(key, tests, n, longest), lengths(longest)
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
        return dict(
            **found,
            **summary(cfg, w),
            attention_map=looks[:, : shown[:, 1:].size],
            span_attention=matched_by_mixture(cfg, w, leaning),
        )

    return Probes(
        **trace.probes,
        **by_lane(at_end, trace.last),
        **realised(tests),
        stopped_at=trace.stopped_at,
        step=trace.step,
        l_test=l_test,
        mixture=jnp.asarray(mixtures(cfg.n_patterns), float),
    )


def simulate_vote(cfg: Config, key: Key[Array, ""], data: Tests | None = None) -> VoteProbes:
    """No network: the plurality among matched columns, on the prompts of the other simulators."""
    tests = suite_of(cfg, key) if data is None else data
    k, m = tests.task.shape[2:]
    batch = draw_batch(key, tests, cfg.test_samples, cfg.examples_test)
    l_test = lengths(cfg.examples_test)
    scores_of = partial(vote_scores, m)
    found = measure(silent_queries(k, m), scores_of, batch, batch.tie, l_test)
    return VoteProbes(**found, **realised(tests), l_test=l_test)
