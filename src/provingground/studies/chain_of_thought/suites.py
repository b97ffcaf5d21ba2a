"""Test settings: which tasks, how often their examples go wrong, and how.

Letters in shapes: S settings, T tasks of each, K steps, m test patterns. A suite is built from the
Config; a user's own matrices come as `Tests` in the place of one.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.errors import InputError
from provingground.keys import stream, uniform

from .data import Config, inverse, permutation, step_maps


class Tests(eqx.Module):
    """Test settings as data: (7.12) for each setting and task, and the share of matching inputs.

    A single task is enough; the test prompts take turns where there are several.
    """

    alpha_test: Float[Array, "S"]
    task: Int[Array, "S T K m"]  # f_k as maps of indices
    transitions: Float[Array, "S T K m m"]  # A_k


class Setting(NamedTuple):
    """One way to go wrong. `correct` and `wrong` are probabilities (K, 2), for members a and b."""

    alpha_test: Any
    correct: Any
    wrong: Any
    paired: bool = False


# ------------------------------------------------------------------------ two designs


def feasible_primacy(correct: Any, m: int) -> tuple[float, float]:
    r"""The primacies that exist for given $p_k$ and m patterns.

    One wrong output of step k holds no more than all of $1 - p_k$, so that its primacy is at least
    $2 - 1/p_k$, and no less than its even share, so that it is at most $1 - (1-p_k)/((m-1)p_k)$.
    What is asked for outside is not got; the primacy of all steps is that of the worst. In no
    design is $\tau$ above $1/(2-\rho)$.
    """
    p = np.asarray(correct, float)
    low, high = np.maximum(2 - 1 / p, 0), 1 - (1 - p) / ((m - 1) * p)
    return float(low.min()), float(high.min())


def spread(p: Any, rho: Any, alpha_test: Any) -> Setting:
    r"""The correct output with $p_k$, one random wrong one with $\min((1-\rho)p_k, 1-p_k)$."""
    xp: ModuleType = np if all(isinstance(x, float) for x in (rho, *p)) else jnp
    p = xp.stack([xp.asarray(p, float)] * 2, axis=1)
    return Setting(alpha_test, p, xp.minimum((1 - rho) * p, 1 - p))


def even(k: int, tau: Any, rho: Any, alpha_test: Any = 0.8) -> Setting:
    r"""Every step is correct with $p_k = \tau^{1/K}$."""
    return spread([tau ** (1 / k)] * k, rho, alpha_test)


def concentrated(k: int, tau: Any, rho: Any, alpha_test: Any = 0.8) -> Setting:
    r"""All errors are in the first step: $p_1 = \tau$, then 1. Small primacies need this."""
    return spread([tau] + [1.0] * (k - 1), rho, alpha_test)


def pair_chain(a: Any, b: Any, leak: float, alpha_test: Any = 0.8) -> Setting:
    """Patterns in pairs that the task keeps together; errors go to the partner's output.

    Members a and b are correct with `a` and `b` times (1 - leak), the rest of that goes to the
    partner's output, and the leak evenly to all others. This makes a small primacy end to end
    with a fair one in each step.
    """
    p = np.stack([np.asarray(a, float), np.asarray(b, float)], axis=1)
    return Setting(alpha_test, (1 - leak) * p, (1 - leak) * (1 - p), paired=True)


# Figure 7.5: found by random search for tau_o = 0.4 and rho_o = 0.1, K = 3 and 10 patterns.
CONDITION_FAILS = (0.949, 0.798, 0.897), (0.719, 0.728, 0.748), 0.085
CONDITION_HOLDS = (0.778, 0.693, 0.924), (0.72, 0.942, 0.961), 0.089

# ----------------------------------------------------------------------------- suites

# Figures 7.3 to 7.5 by name: one of alpha', tau and rho varies, the other two stay.
ALPHAS, RHOS = (0.2, 0.4, 0.6), (0.1, 0.3, 0.5, 0.8)
TAUS, TAUS_FIRST = (0.1, 0.2, 0.35), (0.4, 0.65, 0.8)


def figures(k: int) -> dict[str, Setting]:
    """The settings of Figures 7.3 to 7.5; the default first."""
    found = {"default": even(k, 0.5, 0.8)}
    found |= {f"alpha {a}": even(k, 0.5, 0.8, a) for a in ALPHAS}
    found |= {f"tau {t}": even(k, t, 0.8) for t in TAUS}
    found |= {f"tau {t}, step 1": concentrated(k, t, 0.8) for t in TAUS_FIRST}
    found |= {f"rho {r}, step 1": concentrated(k, 0.5, r) for r in RHOS}
    if k == 3:
        found["condition fails"] = pair_chain(*CONDITION_FAILS)
        found["condition holds"] = pair_chain(*CONDITION_HOLDS)
    return found


OWN = tuple(f"own {i + 1}" for i in range(100))  # of a user's own matrices
NAMES = (*figures(3), "example 1", *OWN)
BY_ALPHA = [*(f"alpha {a}" for a in ALPHAS), "default"]
BY_TAU = [*(f"tau {t}" for t in TAUS), "default"]
BY_TAU_FIRST = [*(f"tau {t}, step 1" for t in TAUS_FIRST), "rho 0.8, step 1"]
BY_RHO = [f"rho {r}, step 1" for r in RHOS]

# Example 1: K = 2, two patterns, the first step the identity and the second a swap.
EXAMPLE_1_TASK = np.array([[0, 1], [1, 0]])
EXAMPLE_1 = np.array([[[0.6, 0.4], [0.4, 0.6]], [[0.4, 0.6], [0.8, 0.2]]])

DESIGNS = ("even", "step 1", "condition fails", "condition holds", "example 1")


def names_of(cfg: Config) -> list[str]:
    """The settings of a Config's suite, in the order of the dim `setting`."""
    return list(figures(cfg.n_steps)) if cfg.suite == "figures" else [cfg.suite]


# --------------------------------------------------------------- tasks and matrices


def random_wrong(task: Int[Array, "K m"], u: Float[Array, "K m"]) -> Int[Array, "K m"]:
    """For every step and input, one of the wrong outputs."""
    m = task.shape[1]
    return (task + 1 + jnp.floor(u * (m - 1)).astype(jnp.int32)) % m


def partner_wrong(task: Int[Array, "K m"]) -> tuple[Int[Array, "K m"], Int[Array, "K m"]]:
    """For every step and input, the output of its partner; and whether it is member a or b.

    Inputs of the first step are paired as 0-1, 2-3, ...; the task carries pairs from step to step.
    """
    m = task.shape[1]
    now = jnp.arange(m, dtype=jnp.int32)
    partner, wrong, member = np.minimum(np.arange(m) ^ 1, m - 1), [], []
    for f in task:
        origin = inverse(now)  # the first input from which a pattern is reached
        wrong.append(f[now[partner][origin]])
        member.append(origin % 2)
        now = f[now]
    return jnp.stack(wrong), jnp.stack(member)


def matrices(
    task: Int[Array, "K m"],
    wrong: Int[Array, "K m"],
    p: Float[Array, "K m"],
    q: Float[Array, "K m"],
) -> Float[Array, "K m m"]:
    """$A_k$: p at the correct output, q at the wrong one, the rest evenly over the others."""
    m = task.shape[1]
    if m == 2:
        q = 1 - p
    output = jnp.arange(m, dtype=jnp.int32)[None, None, :]
    is_correct, is_wrong = output == task[:, :, None], output == wrong[:, :, None]
    rest = ((1 - p - q) / max(m - 2, 1))[:, :, None]
    a = jnp.where(is_wrong, q[:, :, None], rest)
    return jnp.where(is_correct, p[:, :, None] + jnp.where(is_wrong, q[:, :, None], 0.0), a)


def draw_tests(
    key: Key[Array, ""], chosen: Sequence[Setting], k: int, m: int, n_tasks: int
) -> Tests:
    """Some settings: the same tasks for each of them, ruined in its own way."""
    u = uniform(stream(key, "test/task"), (n_tasks, 1 + k, m))
    task = jax.vmap(lambda u: step_maps(permutation(u[0]), k))(u)

    def of_task(
        s: tuple[Float[Array, "K two"], Float[Array, "K two"], Bool[Array, ""]],
        task: Int[Array, "K m"],
        u: Float[Array, "K m"],
    ) -> Float[Array, "K m m"]:
        correct, wrong, paired = s
        partner, member = partner_wrong(task)
        member = jnp.where(paired, member, 0)
        p, q = (jnp.take_along_axis(x, member, axis=1) for x in (correct, wrong))
        return matrices(task, jnp.where(paired, partner, random_wrong(task, u)), p, q)

    table = (
        jnp.stack([jnp.asarray(s.correct, float) for s in chosen]),
        jnp.stack([jnp.asarray(s.wrong, float) for s in chosen]),
        jnp.asarray([s.paired for s in chosen]),
    )
    of_setting = jax.vmap(of_task, in_axes=(None, 0, 0))
    transitions = jax.vmap(of_setting, in_axes=(0, None, None))(table, task, u[:, 1:])
    alpha = jnp.stack([jnp.asarray(s.alpha_test, float) for s in chosen])
    return Tests(alpha, jnp.broadcast_to(task, (len(chosen), *task.shape)), transitions)


def example_1(k: int, m: int, alpha_test: Any) -> Tests:
    """Example 1 as the only setting."""
    if (k, m) != (2, 2):
        raise InputError("Example 1 has n_steps = 2 and n_patterns_test = 2.")
    task = jnp.asarray(EXAMPLE_1_TASK, jnp.int32)[None, None]
    alpha = jnp.asarray(alpha_test, float)[None]
    return Tests(alpha, task, jnp.asarray(EXAMPLE_1, float)[None, None])


def suite_of(cfg: Config, key: Key[Array, ""]) -> Tests:
    """The suite that a Config names."""
    k, m = cfg.n_steps, cfg.n_patterns_test
    if cfg.suite == "example 1":
        return example_1(k, m, 0.8)
    table = figures(k)
    return draw_tests(key, [table[name] for name in names_of(cfg)], k, m, cfg.test_tasks)


def design_of(design: str, k: int, m: int, n_tasks: int, key: Key[Array, ""], *given: Any) -> Tests:
    r"""One setting by its design, for given $\alpha', \tau, \rho$ (some use one of them)."""
    alpha_test, tau, rho = given
    if design == "example 1":
        return example_1(k, m, alpha_test)
    if design == "even":
        setting = even(k, tau, rho, alpha_test)
    elif design == "step 1":
        setting = concentrated(k, tau, rho, alpha_test)
    elif k == 3:
        chosen = CONDITION_FAILS if design == "condition fails" else CONDITION_HOLDS
        setting = pair_chain(*chosen, alpha_test)
    else:
        raise InputError(f"the matrices of Figure 7.5 have 3 steps, not n_steps = {k}.")
    return draw_tests(key, [setting], k, m, n_tasks)
