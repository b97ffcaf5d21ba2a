"""Training of keys and queries without noise, against Corollary 1's bound on the traces."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from provingground.config import probe
from provingground.keys import normal, stream
from provingground.train import iterate

from .model import (
    Config,
    in_stage1,
    logistic_loss,
    losses,
    outputs,
    prompts,
    records,
    stage_of,
    stage_steps,
)


class Probes(eqx.Module):
    r"""Traces of $W = W_K^\top W_Q$ and $V = V_K^\top V_Q$, and Corollary 1's bound on them."""

    loss_easy: Float[Array, "stage"] = probe("loss of the easy part", "K^1")
    loss_hard: Float[Array, "stage"] = probe("loss of the hard part", "K^2")
    w_trace: Float[Array, "stage"] = probe("trace of W", r"\mathrm{Tr}\,W")
    v_trace: Float[Array, "stage"] = probe("trace of V", r"\mathrm{Tr}\,V")
    w_log_bound: Float[Array, "stage"] = probe("logarithm of Corollary 1's trace of W")
    v_log_bound: Float[Array, "stage"] = probe("logarithm of Corollary 1's trace of V")
    w_slack: Float[Array, ""] = probe("least of bound minus growth rate of the trace of W")
    v_slack: Float[Array, ""] = probe("least of bound minus growth rate of the trace of V")
    stage: Float[Array, "stage"] = probe("stages done")


class State(eqx.Module):
    """Keys and queries of both blocks, Corollary 1's log traces, and the least slack."""

    factors: Float[Array, "block 2 d d"]
    log_bound: Float[Array, "block"]
    slack: Float[Array, "block"]


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""Descent on keys and queries, without noise, from $W_K = W_Q$, $V_K = V_Q$.

    Corollary 1: $\mathrm{Tr}$ grows by $1 - \eta\lambda + 2pk\eta/L$ a step, with
    $k = \max\|x\|^2\,\hat E[|l'|\,\#\{i: x_i^\top x_L \ge 0\}]$ and $p = \frac12$, the share
    of queries for which $l' < 0$.
    """
    data = prompts(cfg, key)
    y, out = data.y_query, outputs(data)
    parts = jnp.stack([data.x_easy, data.x_hard])
    active = jnp.einsum("bnld,bnd->bnl", parts[:, :, :-1], parts[:, :, -1]) >= 0
    longest = jnp.max(jnp.sum(parts**2, axis=-1), axis=(1, 2))

    def products(factors: Float[Array, "block 2 d d"]) -> Float[Array, "block d d"]:
        return jnp.einsum("bki,bkj->bij", factors[:, 0], factors[:, 1])

    def margin(factors: Float[Array, "block 2 d d"]) -> Float[Array, "N"]:
        w, v = products(factors)
        return y * (out.easy(w) + out.hard(v)) / 2

    def traces(factors: Float[Array, "block 2 d d"]) -> Float[Array, "block"]:
        return jnp.einsum("bki,bki->b", factors[:, 0], factors[:, 1])

    def step(s: State, t: Int[Array, ""]) -> State:
        lr = jnp.where(in_stage1(cfg, t), cfg.lr1, cfg.lr2)
        grad = jax.grad(lambda f: logistic_loss(margin(f)).mean())(s.factors)
        moved = (1 - lr * cfg.weight_decay) * s.factors - lr * grad
        slope = jax.nn.sigmoid(-margin(s.factors)) / len(y)
        k = longest * jnp.einsum("n,bnl->b", slope, active.astype(float))
        rate = -cfg.weight_decay + k / cfg.tokens  # 2p = 1
        grown = (traces(moved) / traces(s.factors) - 1) / lr
        return State(moved, s.log_bound + jnp.log1p(lr * rate), jnp.minimum(s.slack, rate - grown))

    def measure(s: State) -> dict[str, Float[Array, ""]]:
        w, v = products(s.factors)
        found = losses(y, out.easy(w), out.hard(v))
        w_trace, v_trace = traces(s.factors)
        w_log, v_log = s.log_bound
        return dict(
            loss_easy=found["loss_easy"], loss_hard=found["loss_hard"],
            w_trace=w_trace, v_trace=v_trace, w_log_bound=w_log, v_log_bound=v_log,
        )  # fmt: skip

    keys_of = cfg.init_std * normal(stream(key, "init"), (2, 1, cfg.dim, cfg.dim))
    first = jnp.tile(keys_of, (1, 2, 1, 1))
    trace = iterate(
        step,
        State(first, jnp.log(traces(first)), jnp.full(2, jnp.inf)),
        steps=sum(stage_steps(cfg)),
        at=records(cfg),
        probe=measure,
    )
    w_slack, v_slack = trace.last.slack
    return Probes(**trace.probes, w_slack=w_slack, v_slack=v_slack, stage=stage_of(cfg, trace))
