"""Data, network and training of the ReLU attention layer, in the paper's order.

Letters in shapes: N prompts, L tokens (the last is the query), C = L - 1 context tokens, d the
dimension of each part of a token.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import normal, stream, uniform
from provingground.train import Trace, iterate


@config
class Config:
    r"""The paper's parameters. It prints no numbers: the defaults are a setting in which the
    step size $\eta_1$ shuts the gate on the hard part (see `theory.critical_lr`)."""

    dim: int = par(16, "d", "dimension of each part", low=2)
    samples: int = par(96, "N", "prompts", low=4)
    tokens: int = par(49, "L", "tokens of a prompt, with the query", low=5)
    margin: float = par(1.2, r"\gamma_0", "margin of the easy part", low=0)
    z_norm: float = par(16.0, "u", "norm of the hard part's centre z", low=0)
    zeta_norm: float = par(3.0, "r", "norm of the hard part's offset ζ", low=0)
    weight_decay: float = par(0.06, r"\lambda", "L2 coefficient", low=1e-6)
    init_std: float = par(0.5, r"\tau_0", "s.d. of the initial weights", low=0)
    lr1: float = par(0.1, r"\eta_1", "step size of the elementary stage", low=1e-6)
    lr2: float = par(0.005, r"\eta_2", "step size of the specialised stage", low=1e-6)
    k1: float = par(3.0, r"\eta_1\lambda t_1", "length of the elementary stage", low=0.01)
    k2: float = par(5.0, r"\eta_2\lambda t_2", "length of the specialised stage", low=0.01)
    noise: float = par(1.0, "c_1", "gradient noise of stage 1 over the stationary one", low=0)
    noise2: float = par(1.0, "c_2", "gradient noise of stage 2 over the stationary one", low=0)
    output_bias: float = par(0.0, r"\eta_\beta/\eta", "step size of an output bias", low=0)
    balanced: bool = par(True, "y", "balanced instead of independent labels in a context")
    positive: float = par(0.5, r"\pi", "share of positives in a context", low=0, high=1)
    record: int = par(41, "n_t", "recorded steps of a stage", low=2)


class Probes(eqx.Module):
    r"""What one training reports. Bars are signals, tildes noise: $W = \bar W + \tilde W$."""

    train_loss: Float[Array, "stage"] = probe("training loss", "K")
    loss_easy: Float[Array, "stage"] = probe("loss of the easy part", "K^1")
    loss_hard: Float[Array, "stage"] = probe("loss of the hard part", "K^2")
    error_easy: Float[Array, "stage"] = probe("error of the easy part")
    hard_positive: Float[Array, "stage"] = probe("output of the hard part, positive queries", "g")
    w_norm: Float[Array, "stage"] = probe("norm of the easy signal", r"\|\bar W\|_F")
    v_norm: Float[Array, "stage"] = probe("norm of the hard signal", r"\|\bar V\|_F")
    w_cosine: Float[Array, "stage"] = probe("cosine of the easy signal with the target")
    w_change: Float[Array, "stage"] = probe("change of the easy signal since annealing, relative")
    w_trace: Float[Array, "stage"] = probe("trace of the easy signal", r"\mathrm{Tr}\,\bar W")
    v_trace: Float[Array, "stage"] = probe("trace of the hard signal", r"\mathrm{Tr}\,\bar V")
    noise_std: Float[Array, "stage"] = probe("r.m.s. entry of the noise part of V", r"\tilde V")
    step: Int[Array, "stage"] = probe("step", "t")
    stage: Float[Array, "stage"] = probe("stages done")


# ------------------------------------------------------------------------------- data


TINY = 1e-9  # instead of a norm of zero
SUB_CLUSTERS = np.array([0.0, 1.0, -1.0])  # s of z, z + ζ, z - ζ
Y_OF = np.array([1.0, -1.0, -1.0])  # their labels
SHARE = np.array([0.5, 0.25, 0.25])  # how often each is a query


class Prompts(eqx.Module):
    """Prompts with their ground truth (section 3.1). The last token is the query."""

    x_easy: Float[Array, "N L d"]
    sub_cluster: Float[Array, "N L"]
    w_star: Float[Array, "d"]
    z: Float[Array, "d"]
    zeta: Float[Array, "d"]

    @property
    def x_hard(self) -> Float[Array, "N L d"]:
        r"""$x_2 = z + s\zeta$."""
        s = self.sub_cluster
        tokens = jnp.stack([jnp.ones_like(s), s], axis=-1)
        return tokens @ jnp.stack([self.z, self.zeta])

    @property
    def y(self) -> Float[Array, "N L"]:
        """Labels, the query's too: positive for $s = 0$."""
        return jnp.where(self.sub_cluster == 0, 1.0, -1.0)

    @property
    def labels(self) -> Float[Array, "N L"]:
        """$Y$: what the network is shown. The query's label is hidden."""
        return self.y.at[:, -1].set(0.0)

    @property
    def y_query(self) -> Float[Array, "N"]:
        return self.y[:, -1]


def sub_clusters(cfg: Config, key: Key[Array, ""]) -> Float[Array, "N L"]:
    r"""The hard sub-cluster of every token; its label follows.

    Balanced: a share $\pi$ of a context is positive, the others are z + ζ and z - ζ in turn. So
    half of a context is positive and a quarter each z + ζ, z - ζ if its length is a multiple of
    four; the same of the queries, for any $\pi$. The order of tokens does not matter to the
    network.
    """
    n, context = cfg.samples, cfg.tokens - 1
    if cfg.balanced:
        upto = jnp.ceil(jnp.arange(context + 1, dtype=float) * cfg.positive - 1e-6)
        negatives = jnp.arange(1.0, context + 1) - upto[1:]  # so far
        side = jnp.where(negatives % 2 == 1, 1.0, -1.0)
        tokens = jnp.where(jnp.diff(upto) > 0, 0.0, side)
        query = jnp.array([0.0, 1.0, 0.0, -1.0])[np.arange(n) % 4]
        return jnp.concatenate([jnp.tile(tokens, (n, 1)), query[:, None]], axis=1)
    draws = uniform(key, (n, cfg.tokens, 2))
    share = jnp.full((n, cfg.tokens), cfg.positive).at[:, -1].set(0.5)
    return jnp.where(draws[..., 0] < share, 0.0, jnp.where(draws[..., 1] < 0.5, 1.0, -1.0))


def prompts(cfg: Config, key: Key[Array, ""]) -> Prompts:
    r"""$x_1 = y\gamma_0 w^\star + \epsilon$, $\epsilon \sim N(0, I/d)$ on the label's side."""
    d = cfg.dim
    directions = normal(stream(key, "data/task"), (3, d))
    w_star = directions[0] / jnp.linalg.norm(directions[0])
    z = directions[1] / jnp.linalg.norm(directions[1])
    zeta = directions[2] - (z @ directions[2]) * z
    s = sub_clusters(cfg, stream(key, "data/label"))
    y = jnp.where(s == 0, 1.0, -1.0)
    eps = normal(stream(key, "data/easy"), (*s.shape, d)) / d**0.5
    along = eps @ w_star
    shift = y * (cfg.margin + jnp.abs(along)) - along  # reflects ε where it is on the other side
    return Prompts(
        x_easy=eps + jnp.einsum("nl,d->nld", shift, w_star),
        sub_cluster=s,
        w_star=w_star,
        z=cfg.z_norm * z,
        zeta=cfg.zeta_norm * zeta / jnp.linalg.norm(zeta),
    )


# ---------------------------------------------------------------------------- network


def attend(
    u: Float[Array, "e e"], x: Float[Array, "T e"], y: Float[Array, "T"], query: Float[Array, "e"]
) -> Float[Array, ""]:
    r"""Attention with ReLU, normalised by length: $\frac1T\sum_i y_i\,\mathrm{ReLU}(x_i^\top Uq)$.

    Eq. (1) is this for $U = \mathrm{diag}(W, V)$ and the $2L$ tokens $\mathrm{diag}(X_1, X_2)$,
    eq. (2) for the blocks: $f = \frac12(h + g)$.
    """
    return y @ jax.nn.relu(x @ (u @ query)) / len(y)


def logistic_loss(margin: Float[Array, "..."]) -> Float[Array, "..."]:
    return jax.nn.softplus(-margin)


# --------------------------------------------------------------------------- training


class Weights(eqx.Module):
    """The blocks of U (or its rows): matrices, or reduced a scalar and a 2 x 2 matrix."""

    w: Float[Array, "..."]
    v: Float[Array, "e f"]


class State(eqx.Module):
    """Signal and noise of the weights (section 3.3), and the signal at the end of stage 1."""

    signal: Weights
    noise: Weights
    bias: Float[Array, ""]
    annealed: Weights

    @property
    def weights(self) -> Weights:
        return jax.tree.map(jnp.add, self.signal, self.noise)


def stage_steps(cfg: Config) -> tuple[Any, Any]:
    r"""$t_1 = k_1/(\eta_1\lambda)$ and $t_2 = k_2/(\eta_2\lambda)$, whole and at least one."""
    t1, t2 = (
        k / (lr * cfg.weight_decay) for k, lr in ((cfg.k1, cfg.lr1), (cfg.k2, cfg.lr2))
    )  # numbers stay numbers, so that a replay knows how many steps there are
    return (t1 - 0.5) // 1 + 1, (t2 - 0.5) // 1 + 1


def in_stage1(cfg: Config, t: Int[Array, ""]) -> Bool[Array, ""]:
    return t < jnp.asarray(stage_steps(cfg)[0], jnp.int32)


def noise_std(cfg: Config) -> Float[Array, ""] | float:
    r"""$\tau_\xi = \tau_0\sqrt{1 - (1-\eta_1\lambda)^2}/\eta_1$: $\tilde U$ keeps its s.d."""
    left = 1 - cfg.lr1 * cfg.weight_decay
    return cfg.init_std * (1 - left**2) ** 0.5 / cfg.lr1


def drawn(key: Key[Array, ""], like: Weights) -> Weights:
    """Standard normal weights, in one draw: programs with few draws are fast."""
    draws = normal(key, (like.w.size + like.v.size,))
    w, v = jnp.split(draws, [like.w.size])
    return Weights(w.reshape(like.w.shape), v.reshape(like.v.shape))


Loss = Callable[[Weights, Float[Array, ""]], Float[Array, ""]]  # of the weights and the bias


def sgd(cfg: Config, noise_key: Key[Array, ""], loss: Loss) -> Callable[..., State]:
    r"""Eq. (4), split into signal and noise, at $\eta_1$ for $t_1$ steps and then at $\eta_2$.

    $\bar U_{t+1} = (1-\eta\lambda)\bar U_t - \eta\nabla\hat L(U_t)$ and
    $\tilde U_{t+1} = (1-\eta\lambda)\tilde U_t - \eta\xi_t$. An output bias $\beta$ has a tenth
    of the decay and no noise.
    """
    tau = noise_std(cfg)

    def step(s: State, t: Int[Array, ""]) -> State:
        first = in_stage1(cfg, t)
        lr = jnp.where(first, cfg.lr1, cfg.lr2)
        scale = lr * tau * jnp.where(first, cfg.noise, cfg.noise2)
        xi = drawn(jax.random.fold_in(noise_key, t), s.noise)
        grad, grad_bias = jax.grad(loss, argnums=(0, 1))(s.weights, s.bias)
        left = 1 - lr * cfg.weight_decay
        signal = jax.tree.map(lambda a, g: left * a - lr * g, s.signal, grad)
        return State(
            signal=signal,
            noise=jax.tree.map(lambda a, x: left * a - scale * x, s.noise, xi),
            bias=(1 - 0.1 * lr * cfg.weight_decay) * s.bias - lr * cfg.output_bias * grad_bias,
            annealed=jax.tree.map(lambda a, b: jnp.where(first, a, b), signal, s.annealed),
        )

    return step


def start(cfg: Config, key: Key[Array, ""], like: Weights) -> State:
    r"""$\bar U_0 = 0$ and $\tilde U_0 = U_0$."""
    zero = jax.tree.map(jnp.zeros_like, like)
    first = jax.tree.map(lambda x: cfg.init_std * x, drawn(stream(key, "init"), like))
    return State(signal=zero, noise=first, bias=jnp.array(0.0), annealed=zero)


def two_stages(
    cfg: Config,
    key: Key[Array, ""],
    like: Weights,
    loss: Loss,
    measure: Callable[[State], dict[str, Float[Array, ""]]],
) -> Probes:
    """Both stages of a training, from weights of the shapes of `like`."""
    trace = iterate(
        sgd(cfg, stream(key, "batch/noise"), loss),
        start(cfg, key, like),
        steps=sum(stage_steps(cfg)),
        at=records(cfg),
        probe=measure,
    )
    return Probes(**trace.probes, step=trace.step, stage=stage_of(cfg, trace))


def records(cfg: Config) -> Float[Array, "stage"]:
    """The steps to record: evenly spaced in each stage, both ends included."""
    (steps1, steps2), spaced = stage_steps(cfg), np.linspace(0, 1, cfg.record)
    return jnp.round(jnp.concatenate([steps1 * spaced, steps1 + steps2 * spaced[1:]]))


def stage_of(cfg: Config, trace: Trace) -> Float[Array, "stage"]:
    """The records as parts of a stage: the same numbers whatever the length of the stages."""
    spaced = jnp.linspace(0, 1, cfg.record)
    if len(trace.step) == 2 * cfg.record - 1:
        return jnp.concatenate([spaced, 1 + spaced[1:]])
    t, (steps1, steps2) = trace.step.astype(float), stage_steps(cfg)
    return jnp.where(t <= steps1, t / steps1, 1 + (t - steps1) / steps2)  # a replay: every step


def norm(a: Float[Array, "..."]) -> Float[Array, ""]:
    return jnp.sqrt(jnp.sum(a**2))


def signal_probes(s: State) -> dict[str, Float[Array, ""]]:
    """What is read off the signals alone, the same way in every simulator."""
    w, v, then = s.signal.w, s.signal.v, s.annealed.w
    return dict(
        w_norm=norm(w),
        v_norm=norm(v),
        w_change=norm(w - then) / jnp.maximum(norm(then), TINY),
        w_trace=jnp.trace(w) if w.ndim else w,
        v_trace=jnp.trace(v),
        noise_std=norm(s.noise.v) / v.size**0.5,
    )


# ------------------------------------------------------------------ the whole network


SPAN = np.stack([np.ones(3), SUB_CLUSTERS], axis=1)  # z, z + ζ, z - ζ in terms of z and ζ


def hard_out(
    v_red: Float[Array, "2 2"], counts: Float[Array, "N 3"], query: Int[Array, "N"]
) -> Float[Array, "N"]:
    r"""$g$ with $V$ inside the span of $z, \zeta$: all hard tokens are there, so this is exact.

    `counts` is $\frac1L\sum_i y_i 1(s_i = s)$ of each prompt, `query` the query's sub-cluster.
    """
    active = jax.nn.relu(SPAN @ v_red @ SPAN.T)  # token by query
    return jnp.sum(counts * active.T[query], axis=1)


class Outputs(NamedTuple):
    """Eq. (2) for all prompts at once: h and g as functions of the blocks."""

    easy: Callable[[Float[Array, "d d"]], Float[Array, "N"]]
    hard: Callable[[Float[Array, "d d"]], Float[Array, "N"]]


def outputs(data: Prompts) -> Outputs:
    basis = jnp.stack([data.z, data.zeta], axis=1)
    context, labels, query = data.x_easy[:, :-1], data.y[:, :-1], data.x_easy[:, -1]
    tokens = data.sub_cluster.shape[1]
    which = (data.sub_cluster[:, :, None] == SUB_CLUSTERS[None, None, :]).astype(float)
    counts = jnp.einsum("nl,nls->ns", data.labels, which) / tokens
    kind = jnp.argmax(which[:, -1], axis=1)

    def easy(w: Float[Array, "d d"]) -> Float[Array, "N"]:
        scores = jnp.einsum("nld,nd->nl", context, query @ w.T)
        return jnp.einsum("nl,nl->n", labels, jax.nn.relu(scores)) / tokens

    return Outputs(easy, lambda v: hard_out(basis.T @ v @ basis, counts, kind))


def losses(
    y: Float[Array, "N"], h: Float[Array, "N"], g: Float[Array, "N"]
) -> dict[str, Float[Array, ""]]:
    """Eqs. (3), (5) and (6), the error of h alone, and g of the positive queries."""
    positive = (y > 0).astype(y.dtype)
    return dict(
        train_loss=logistic_loss(y * (h + g) / 2).mean(),
        loss_easy=logistic_loss(y * h).mean(),
        loss_hard=logistic_loss(y * g).mean(),
        error_easy=jnp.mean(y * h <= 0, dtype=h.dtype),
        hard_positive=g @ positive / positive.sum(),
    )


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""Training of $W, V \in R^{d\times d}$ on N prompts."""
    data = prompts(cfg, key)
    y, out = data.y_query, outputs(data)

    def loss(u: Weights, bias: Float[Array, ""]) -> Float[Array, ""]:
        return logistic_loss(y * (out.easy(u.w) + out.hard(u.v) + bias) / 2).mean()

    def measure(s: State) -> dict[str, Float[Array, ""]]:
        u, w = s.weights, s.signal.w
        cosine = data.w_star @ w @ data.w_star / jnp.maximum(norm(w), TINY)
        found = losses(y, out.easy(u.w), out.hard(u.v) + s.bias)
        return dict(**found, **signal_probes(s), w_cosine=cosine)

    square = jnp.zeros((cfg.dim, cfg.dim))
    return two_stages(cfg, key, Weights(square, square), loss, measure)
