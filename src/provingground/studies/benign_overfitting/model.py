"""Data, network and training of the two-layer vision transformer, in the paper's order.

Letters in shapes: N samples, M tokens, d token dimension, h query/key width, U unique tokens.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, mask, par, probe, size
from provingground.keys import normal, signs, stream, uniform
from provingground.nets.losses import logistic
from provingground.train import Activation, Trace, by_lane, iterate, log_steps


@config
class Config:
    """The paper's parameters; defaults are those of Figure 1."""

    samples: int = par(20, "N", "training samples", low=2, value=True, pad=4)
    snr: float = par(7.0, r"\mathrm{SNR}", "signal-to-noise ratio", low=0)
    dim: int = par(1024, "d", "token dimension", low=4)
    tokens: int = par(16, "M", "tokens per sample", low=2)
    noise_big: float = par(4.0, r"\tilde\sigma_p", "noise s.d. of token 2", low=0)
    noise: float = par(0.2, r"\sigma_p", "noise s.d. of tokens 3 to M", low=0)
    key_width: int = par(512, "d_h", "query and key width", low=1)
    value_width: int = par(512, "d_v", "value width", low=1)
    lr: float = par(0.1, r"\eta", "step size", low=0)
    eps: float = par(0.01, r"\epsilon", "training loss to stop at", low=0)
    steps: int = par(2000, "T_{\\max}", "steps at most", low=1)
    record: int = par(2, "n_t", "recorded steps", low=2)
    test_samples: int = par(100, r"N_{\mathrm{test}}", "test samples", low=1)
    init_scale: float = par(1 / 16, "c_0", "factor on the initial W_Q, W_K, W_V", low=0)
    init: str = par("uniform", "W(0)", "initial weights", choices=("uniform", "gaussian"))
    attention_rate: float = par(
        1.0, r"\eta_P/\eta", "step size of W_Q, W_K over that of W_V", low=0
    )
    balanced: bool = par(True, "y", "alternating instead of random labels")
    project: bool = par(False, r"\Pi", "noise orthogonal to the signals")


class Probes(eqx.Module):
    """What one training reports. Averages are over the training samples; V is label-signed."""

    train_loss: Float[Array, "step"] = probe("training loss", "L_S")
    attention_signal: Float[Array, "step"] = probe("mean attention on the signal")
    attention_noise: Float[Array, "step"] = probe("mean attention on noise token 2")
    score_signal: Float[Array, "step"] = probe("mean query-key product with the signal")
    score_noise: Float[Array, "step"] = probe("mean query-key product with noise token 2")
    value_signal: Float[Array, "step"] = probe("value of the signal", r"y V_\pm")
    value_noise: Float[Array, "step"] = probe("value of noise token 2", r"y_n V_{n,2}")
    test_loss: Float[Array, ""] = probe("test loss", r"L_D")
    test_error: Float[Array, ""] = probe("test error")
    stopped_at: Int[Array, ""] = probe("steps until the training loss is reached", "T")
    read_out_norm2: Float[Array, ""] = probe("squared norm of the read-out", r"\|w_O\|^2")
    step: Int[Array, "step"] = probe("gradient descent step", "t")


# ------------------------------------------------------------------------------- data


def signal_norm(cfg: Config) -> Float[Array, ""] | float:
    r"""$\|\mu\| = \mathrm{SNR}\,\sigma_p \sqrt d$."""
    return cfg.snr * cfg.noise * cfg.dim**0.5


def labels(cfg: Config, key: Key[Array, ""], n: int) -> Float[Array, "N"]:
    if cfg.balanced:
        return jnp.where(jnp.arange(n) % 2 == 0, 1.0, -1.0)
    return signs(key, (n,))


def unit_noise(cfg: Config, key: Key[Array, ""], n: int) -> Float[Array, "N noise d"]:
    """Noise tokens before their scale, so that cells of one seed share them."""
    z = normal(key, (n, cfg.tokens - 1, cfg.dim))
    return z.at[..., :2].set(0.0) if cfg.project else z


def token_scale(cfg: Config) -> Float[Array, "M"]:
    """Scale by role: the signal, the big noise of token 2, the small noise of the others."""
    small = jnp.full((cfg.tokens - 2,), cfg.noise)
    return jnp.concatenate([jnp.stack([jnp.asarray(signal_norm(cfg)), cfg.noise_big]), small])


def unit_tokens(y: Float[Array, "N"], z: Float[Array, "N noise d"]) -> Float[Array, "N M d"]:
    r"""Section 3: token 1 is the signal ($e_1$ for $y=1$, $e_2$ for $y=-1$), the rest is noise."""
    signal = jnp.stack([y > 0, y < 0], axis=-1).astype(z.dtype)
    signal = jnp.pad(signal, ((0, 0), (0, z.shape[-1] - 2)))
    return jnp.concatenate([signal[:, None, :], z], axis=1)


# ---------------------------------------------------------------------------- network


class Weights(eqx.Module):
    w_q: Float[Array, "d h"]
    w_k: Float[Array, "d h"]
    w_v: Float[Array, "d v"]
    w_o: Float[Array, "v"]


def unit_weights(cfg: Config, key: Key[Array, ""]) -> Weights:
    r"""Initial weights before $W_Q, W_K, W_V$ are scaled by $c_0$ (the simulations' 1/16).

    Uniform in $\pm 1/\sqrt{\text{fan-in}}$, or normal of the same variance.
    """

    d, h, v = cfg.dim, cfg.key_width, cfg.value_width
    shape = (d + 1, 2 * h + v)  # one draw for all of them: programs with few draws compile fast
    u = (
        uniform(stream(key, "init"), shape, -1.0, 1.0)
        if cfg.init == "uniform"
        else normal(stream(key, "init"), shape) / 3**0.5
    )
    w_q, w_k, w_v = jnp.split(u[:d] / d**0.5, [h, 2 * h], axis=1)
    return Weights(w_q, w_k, w_v, u[d, :v] / v**0.5)


def attend(
    q: Float[Array, "M h"],
    k: Float[Array, "M h"],
    v: Float[Array, "M"],
    attention: Activation = jax.nn.softmax,
) -> tuple[Float[Array, ""], Float[Array, "M M"]]:
    r"""$f = \frac1M \sum_l \mathrm{softmax}(q_l k^\top) v$, and the attention $P$."""
    p = attention(q @ k.T)
    return jnp.mean(p @ v), p


def network(
    w: Weights, x: Float[Array, "M d"], attention: Activation = jax.nn.softmax
) -> tuple[Float[Array, ""], Float[Array, "M M"]]:
    r"""$f(X) = \frac1M \sum_l \mathrm{softmax}(x_l^\top W_Q W_K^\top X^\top) X W_V w_O$."""
    return attend(x @ w.w_q, x @ w.w_k, x @ (w.w_v @ w.w_o), attention)


def mean_over(exists: Bool[Array, "N"], values: Float[Array, "N"]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(exists, values, 0.0)) / jnp.sum(exists).astype(values.dtype)


# ------------------------------------------------------------------------------ probes


def measure(
    y: Float[Array, "N"],
    exists: Bool[Array, "N"],
    q: Float[Array, "N M h"],
    k: Float[Array, "N M h"],
    v: Float[Array, "N M"],
    attention: Activation = jax.nn.softmax,
) -> dict[str, Float[Array, ""]]:
    """The probes of one step, from queries, keys and values of the training tokens."""
    f, p = jax.vmap(partial(attend, attention=attention))(q, k, v)
    score = jnp.einsum("nlh,njh->nlj", q, k[:, :2])

    def mean(values):
        return mean_over(exists, values)

    return dict(
        train_loss=mean(logistic(y, f)),
        attention_signal=mean(p[:, :, 0].mean(axis=-1)),
        attention_noise=mean(p[:, :, 1].mean(axis=-1)),
        score_signal=mean(score[:, :, 0].mean(axis=-1)),
        score_noise=mean(score[:, :, 1].mean(axis=-1)),
        value_signal=mean(y * v[:, 0]),
        value_noise=mean(y * v[:, 1]),
    )


def report(
    trace: Trace, w_o: Float[Array, "v"], y: Float[Array, "test"], f: Float[Array, "test"]
) -> Probes:
    """The probes of a whole training, from its trace and the outputs on the test samples."""
    return Probes(
        **trace.probes,
        test_loss=logistic(y, f).mean(),
        test_error=jnp.mean(y * f <= 0, dtype=f.dtype),
        stopped_at=trace.stopped_at,
        read_out_norm2=jnp.sum(w_o**2),
        step=trace.step,
    )


# ---------------------------------------------------- training, inside the span of the tokens


class Span(eqx.Module):
    r"""Weights written as $W_Q(t) = W_Q(0) + T^\top C_Q(t)$, with $T$ the unique tokens.

    A gradient of $W_Q$ or $W_K$ is a sum of tokens times something, so training never leaves the
    span of the tokens: this form is exact, and $d$ and $d_v$ are gone from the loop (`value`
    belongs to the merged vector $v = W_V w_O$).
    """

    query: Float[Array, "rows h"]
    key: Float[Array, "rows h"]
    value: Float[Array, "rows 1"]


class Descent(eqx.Module):
    """The state of a training: coefficients C, and loss and gradient at them."""

    coefficients: Span
    loss: Float[Array, ""]
    grad: Span


def by_sample(rows: Float[Array, "U c"], y: Float[Array, "N"]) -> Float[Array, "N M c"]:
    """Rows of unique tokens (two signals, then the noise of each sample) as tokens of samples."""
    signal = jnp.where((y > 0)[:, None], rows[:1], rows[1:2])
    noise = rows[2:].reshape(len(y), -1, rows.shape[-1])
    return jnp.concatenate([signal[:, None], noise], axis=1)


def simulate(cfg: Config, key: Key[Array, ""], *, attention: Activation = jax.nn.softmax) -> Probes:
    """The same training in coefficients of the unique tokens (Lemmas B.2 and B.3 as algorithm).

    What depends on the seed alone (unit tokens, weights, their products) is computed before it
    is scaled, so that cells of one seed that run together share it.
    """
    n, exists = size(cfg, "samples"), mask(cfg, "samples")
    w = unit_weights(cfg, key)
    start = Span(w.w_q, w.w_k, w.w_v @ w.w_o[:, None])

    # Unique tokens: the two signals and all noise tokens, as unit rows times a scale each.
    y = labels(cfg, stream(key, "data/label"), n)
    z = unit_noise(cfg, stream(key, "data/noise"), n)
    unit = jnp.concatenate([jnp.eye(2, cfg.dim), z.reshape(-1, cfg.dim)])
    role = jnp.concatenate([jnp.zeros(2, int), jnp.tile(jnp.arange(1, cfg.tokens), n)])
    scale = token_scale(cfg)[role][:, None]
    gram = scale * (unit @ unit.T) * scale.T
    initial = jax.tree.map(lambda m: (cfg.init_scale * scale) * (unit @ m), start)

    def at_tokens(c: Span) -> Span:
        """Queries, keys and values of the unique tokens: $q = T W_Q(0) + G C_Q$, ..."""
        return jax.tree.map(lambda m, c: m + gram @ c, initial, c)

    def at_samples(s: Span) -> tuple[Array, Array, Array]:
        return by_sample(s.query, y), by_sample(s.key, y), by_sample(s.value, y)[..., 0]

    def loss(s: Span) -> Float[Array, ""]:
        f, _ = jax.vmap(partial(attend, attention=attention))(*at_samples(s))
        return mean_over(exists, logistic(y, f))

    def at(c: Span) -> Descent:
        return Descent(c, *jax.value_and_grad(loss)(at_tokens(c)))

    attention_lr, value_lr = cfg.attention_rate * cfg.lr, cfg.lr * jnp.sum(w.w_o**2)

    def step(state: Descent, t: Int[Array, ""]) -> Descent:
        r"""Descent on the weights is $C \leftarrow C - \eta\, \partial L / \partial (q, k, V)$."""
        c, g = state.coefficients, state.grad
        return at(
            Span(
                query=c.query - attention_lr * g.query,
                key=c.key - attention_lr * g.key,
                value=c.value - value_lr * g.value,
            )
        )

    trace = iterate(
        step,
        at(jax.tree.map(jnp.zeros_like, initial)),
        steps=cfg.steps,
        at=log_steps(cfg.steps, cfg.record),
        until=lambda state: ~(state.loss > cfg.eps),
        probe=lambda state: measure(
            y, exists, *at_samples(at_tokens(state.coefficients)), attention
        ),
    )

    # A test token x has the query x W_Q(0) + (x T^t) C_Q, and so on.
    y_test = labels(cfg, stream(key, "test/label"), cfg.test_samples)
    z_test = unit_noise(cfg, stream(key, "test/noise"), cfg.test_samples)
    x = unit_tokens(y_test, z_test).reshape(-1, cfg.dim)
    x_scale = jnp.tile(token_scale(cfg), cfg.test_samples)[:, None]
    x_start, overlap = jax.tree.map(lambda m: x @ m, start), x @ unit.T

    def outputs(c: Span) -> Float[Array, "test"]:
        rows = jax.tree.map(
            lambda m, c: x_scale * (cfg.init_scale * m + overlap @ (scale * c)), x_start, c
        )
        q, k, v = (
            r.reshape(cfg.test_samples, cfg.tokens, -1) for r in (rows.query, rows.key, rows.value)
        )
        return jax.vmap(partial(attend, attention=attention))(q, k, v[..., 0])[0]

    f = by_lane(outputs, trace.last.coefficients)
    return report(trace, w.w_o, y_test, f)
