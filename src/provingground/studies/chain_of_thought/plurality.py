"""No network: perfect attention (Proposition 3) is a vote of the matched columns.

At step k the columns of step k whose input is the current one vote for their outputs; ties are
drawn. Votes are counted once for all prompt lengths, by input and output.

Letters in shapes: N prompts, L examples, K steps, m test patterns.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe

from .inference import Batch, by_start, draw_batch
from .suites import DESIGNS, Tests, design_of
from .transitions import realised

TOGETHER = 16  # prompts that are counted at a time
GUESS = 1e-6  # the weight of columns of the same step that do not match: a guess if none does


@config
class Config:
    """One test setting. Designs that bring matrices of their own do not use tau and rho."""

    alpha_test: float = par(0.8, r"\alpha'", "examples with the query's input", low=0, high=1)
    tau: float = par(0.5, r"\tau^f", "trajectory probability", low=0, high=1)
    rho: float = par(0.8, r"\rho^f", "primacy", low=0, high=1)
    design: str = par("step 1", "A", "which steps of the examples go wrong", choices=DESIGNS)
    n_patterns_test: int = par(10, "M'", "test patterns", low=2)
    n_steps: int = par(3, "K", "reasoning steps", low=2)
    examples_test: int = par(256, r"l_{\mathrm{ts}}", "examples in a test prompt at most", low=2)
    test_samples: int = par(400, "n'", "test prompts", low=1)
    test_tasks: int = par(8, r"|\mathcal{T}'|", "test tasks", low=1)


class Probes(eqx.Module):
    """What the vote reports."""

    cot_error: Float[Array, "l_test"] = probe("CoT error", r"\bar R_{\mathrm{CoT}}")
    cot_final: Float[Array, "l_test"] = probe("CoT error of the last step")
    icl_error: Float[Array, "l_test"] = probe("ICL error", r"\bar R_{\mathrm{ICL}}")
    icl_from: Float[Array, "l_test start"] = probe("ICL error on inputs 1 and 2")
    tau_realised: Float[Array, ""] = probe("trajectory probability of the matrices", r"\tau^f")
    rho_realised: Float[Array, ""] = probe("primacy of the matrices", r"\rho^f")
    tau_io: Float[Array, ""] = probe("input-output probability", r"\tau_o^f")
    rho_io: Float[Array, ""] = probe("primacy end to end", r"\rho_o^f")
    infeasible: Float[Array, ""] = probe("inputs for which Condition 7.3.2 fails")
    l_test: Int[Array, "l_test"] = probe("examples in the prompt", r"l_{\mathrm{ts}}")


def fine_lengths(longest: int) -> np.ndarray:
    """Prompt lengths: 2, 3, 4, 6, 8, 11, ..., by factors of about the square root of 2."""
    powers = np.arange(2, 2 * int(np.log2(longest)) + 1)
    return np.unique(np.round(2 ** (powers / 2)).astype(np.int32))


def tally(
    inputs: Int[Array, "L"], outputs: Int[Array, "L"], tie: Float[Array, "L"], m: int, lengths: Any
) -> Float[Array, "lengths m m"]:
    """How often each output follows each input among the first examples, for every length."""
    part = np.searchsorted(lengths, np.arange(len(inputs)), side="right").astype(np.int32)
    place = jnp.asarray(part) * (m * m) + inputs * m + outputs
    counts = jnp.zeros((len(lengths) + 1) * m * m).at[place].add(1 + tie)
    counts = jnp.cumsum(counts.reshape(-1, m, m)[:-1], axis=0)  # the last part is in no length
    return counts + GUESS * counts.sum(axis=1, keepdims=True)


def vote_of_prompt(
    y: Int[Array, "L y"], tie: Float[Array, "L K"], start: Int[Array, ""], m: int, lengths: Any
) -> tuple[Int[Array, "lengths y"], Int[Array, "lengths"]]:
    """Chains of thought by the vote for every length, and the vote of inputs for last outputs."""
    at = jnp.arange(len(lengths))
    v = [jnp.full(len(lengths), start)]
    for k in range(y.shape[1] - 1):
        counts = tally(y[:, k], y[:, k + 1], tie[:, k], m, lengths)
        v.append(jnp.argmax(counts[at, v[-1]], axis=1).astype(jnp.int32))
    short = tally(y[:, 0], y[:, -1], tie[:, 0], m, lengths)[:, start]
    return jnp.stack(v, axis=1), jnp.argmax(short, axis=1).astype(jnp.int32)


def vote_errors(batch: Batch, m: int, lengths: Any) -> dict[str, Array]:
    """Errors of the vote for all settings and prompt lengths."""

    def of_setting(now: tuple[Int[Array, "N L y"], Int[Array, "N y"]]) -> dict[str, Array]:
        y, truth = now
        chains, short = jax.lax.map(
            lambda p: vote_of_prompt(p[0], p[1], p[2], m, lengths),
            (y, batch.tie, truth[:, 0]),
            batch_size=TOGETHER,
        )
        wrong = (chains != truth[:, None]).astype(float)[:, :, 1:]
        missed = (short != truth[:, -1:]).astype(float)
        return dict(
            cot_error=wrong.mean(axis=(0, 2)),
            cot_final=wrong[:, :, -1].mean(axis=0),
            icl_error=missed.mean(axis=0),
            icl_from=missed.T @ by_start(truth, m),
        )

    return jax.lax.map(of_setting, (batch.y, batch.truth))


def simulate(cfg: Config, key: Key[Array, ""], data: Tests | None = None) -> Probes:
    """The vote on the prompts that a network would get."""
    k, m = cfg.n_steps, cfg.n_patterns_test
    given = cfg.alpha_test, cfg.tau, cfg.rho
    tests = design_of(cfg.design, k, m, cfg.test_tasks, key, *given) if data is None else data
    m, lengths = tests.task.shape[-1], fine_lengths(cfg.examples_test)
    batch = draw_batch(key, tests, cfg.test_samples, cfg.examples_test)
    found = {n: v[0] for n, v in vote_errors(batch, m, lengths).items()}
    found["icl_from"] = found["icl_from"][:, :2]  # any number of patterns, one shape
    real = {n: v[0] for n, v in realised(tests.task, tests.transitions).items()}
    return Probes(
        **found,
        tau_realised=real.pop("tau"),
        rho_realised=real.pop("rho"),
        **real,
        l_test=jnp.asarray(lengths, jnp.int32),
    )
