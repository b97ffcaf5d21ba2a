"""Data, network and training of the ReLU attention layer, in the paper's order.

Letters in shapes: N prompts, L tokens (the last is the query), C = L - 1 context tokens, d the
dimension of each part of a token, M margins of the population.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key
from scipy.special import ndtri

from provingground.errors import InputError
from provingground.keys import normal, signs, stream
from provingground.study import config, par, probe
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
    record: int = par(41, "n_t", "recorded steps of a stage", low=2)


class Probes(eqx.Module):
    r"""What one training reports. Bars are signals, tildes noise: $W = \bar W + \tilde W$."""

    train_loss: Float[Array, "stage"] = probe("training loss", "K")
    loss_easy: Float[Array, "stage"] = probe("loss of the easy part", "K^1")
    loss_hard: Float[Array, "stage"] = probe("loss of the hard part", "K^2")
    error_easy: Float[Array, "stage"] = probe("error of the easy part")
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
SHARE = np.array([0.5, 0.25, 0.25])  # how often each is drawn


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
    """The hard sub-cluster of every token; its label follows.

    Balanced: half of a context (and of the queries) is positive, a quarter each z + ζ and z - ζ,
    if their number is a multiple of four. The order of tokens does not matter to the network.
    """
    shape, context = (cfg.samples, cfg.tokens), cfg.tokens - 1
    if cfg.balanced:
        pattern = np.array([0.0, 1.0, 0.0, -1.0])
        tokens = np.tile(pattern[np.arange(context) % 4], (cfg.samples, 1))
        return jnp.array(np.column_stack([tokens, pattern[np.arange(cfg.samples) % 4]]))
    y, side = jnp.moveaxis(signs(key, (*shape, 2)), -1, 0)
    return jnp.where(y > 0, 0.0, side)


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
    """The blocks of U: matrices, or in the reduced model a scalar and a 2 x 2 matrix."""

    w: Float[Array, "..."]
    v: Float[Array, "e e"]


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
    """Eqs. (3), (5) and (6), and the error of h alone."""
    return dict(
        train_loss=logistic_loss(y * (h + g) / 2).mean(),
        loss_easy=logistic_loss(y * h).mean(),
        loss_hard=logistic_loss(y * g).mean(),
        error_easy=jnp.mean(y * h <= 0, dtype=h.dtype),
    )


def simulate_full(cfg: Config, key: Key[Array, ""]) -> Probes:
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


# ----------------------------------------------------------- the population, reduced


def margins(cfg: Config, count: int = 8) -> Float[Array | np.ndarray, "M"]:
    r"""$m = y\langle w^\star, x_1\rangle = \gamma_0 + |N(0, 1/d)|$ at equally likely values."""
    return cfg.margin + ndtri(0.5 + (np.arange(count) + 0.5) / (2 * count)) / cfg.dim**0.5


def hard_population(
    v_red: Float[Array, "2 2"], z_norm: Any, zeta_norm: Any, tokens: int
) -> Float[Array, "3"]:
    r"""$g(s) = -\frac{L-1}{4L}\max(0, |q| - |p|)$ for queries $z$, $z+\zeta$, $z-\zeta$.

    With $V = \binom{a\ b}{c\ e}$ in the basis $z/u, \zeta/r$ the score of token $s_i$ is
    $p + s_iq$, $p = u^2a + ursb$, $q = urc + r^2se$; a balanced context sums to this.
    """
    u, r, s = z_norm, zeta_norm, SUB_CLUSTERS
    p = u * u * v_red[0, 0] + u * r * s * v_red[0, 1]
    q = u * r * v_red[1, 0] + r * r * s * v_red[1, 1]
    return -(tokens - 1) / (4 * tokens) * jax.nn.relu(jnp.abs(q) - jnp.abs(p))


def simulate_reduced(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""The population in five numbers: $W = c\,w^\star w^{\star\top}$ and $V$ in its span.

    For $V$ this is exact, noise and all. For $W$ the noise across $w^\star$ is left out, and
    $y_Lh = \frac{L-1}{2L}\,c\,E[m]\,m_L$ whatever the sign of $c$.
    """
    if not cfg.balanced:
        raise InputError("the reduced model is that of balanced contexts: take simulator 'full'")
    m = margins(cfg)
    per_c = (cfg.tokens - 1) / (2 * cfg.tokens) * m.mean() * m

    def outputs(u: Weights) -> tuple[Float[Array, "M"], Float[Array, "3"]]:
        """Label-signed h of every margin, and g of every sub-cluster."""
        return u.w * per_c, hard_population(u.v, cfg.z_norm, cfg.zeta_norm, cfg.tokens)

    def loss(u: Weights, bias: Float[Array, ""]) -> Float[Array, ""]:
        h, g = outputs(u)
        margin = (h[:, None] + (jnp.asarray(Y_OF) * (g + bias))[None, :]) / 2
        return jnp.asarray(SHARE) @ logistic_loss(margin).mean(axis=0)

    def measure(s: State) -> dict[str, Float[Array, ""]]:
        h, g = outputs(s.weights)
        return dict(
            train_loss=loss(s.weights, s.bias),
            loss_easy=logistic_loss(h).mean(),
            loss_hard=jnp.asarray(SHARE) @ logistic_loss(jnp.asarray(Y_OF) * (g + s.bias)),
            error_easy=jnp.mean(h <= 0, dtype=h.dtype),
            w_cosine=jnp.sign(s.signal.w),
            **signal_probes(s),
        )

    like = Weights(jnp.array(0.0), jnp.zeros((2, 2)))
    return two_stages(cfg, key, like, loss, measure)


# ------------------------------------------------------- keys and queries (Corollary 1)


class KQProbes(eqx.Module):
    r"""Traces of $W = W_K^\top W_Q$ and $V = V_K^\top V_Q$, and Corollary 1's bound on them."""

    loss_easy: Float[Array, "stage"] = probe("loss of the easy part", "K^1")
    loss_hard: Float[Array, "stage"] = probe("loss of the hard part", "K^2")
    w_trace: Float[Array, "stage"] = probe("trace of W", r"\mathrm{Tr}\,W")
    v_trace: Float[Array, "stage"] = probe("trace of V", r"\mathrm{Tr}\,V")
    w_bound: Float[Array, "stage"] = probe("Corollary 1's trace of W")
    v_bound: Float[Array, "stage"] = probe("Corollary 1's trace of V")
    w_slack: Float[Array, ""] = probe("least of bound minus growth rate of the trace of W")
    v_slack: Float[Array, ""] = probe("least of bound minus growth rate of the trace of V")
    stage: Float[Array, "stage"] = probe("stages done")


class KQState(eqx.Module):
    """Keys and queries of both blocks, Corollary 1's log traces, and the least slack."""

    factors: Float[Array, "block 2 d d"]
    log_bound: Float[Array, "block"]
    slack: Float[Array, "block"]


def simulate_kq(cfg: Config, key: Key[Array, ""]) -> KQProbes:
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

    def step(s: KQState, t: Int[Array, ""]) -> KQState:
        lr = jnp.where(in_stage1(cfg, t), cfg.lr1, cfg.lr2)
        grad = jax.grad(lambda f: logistic_loss(margin(f)).mean())(s.factors)
        moved = (1 - lr * cfg.weight_decay) * s.factors - lr * grad
        slope = jax.nn.sigmoid(-margin(s.factors)) / len(y)
        k = longest * jnp.einsum("n,bnl->b", slope, active.astype(float))
        rate = -cfg.weight_decay + k / cfg.tokens  # 2p = 1
        grown = (traces(moved) / traces(s.factors) - 1) / lr
        return KQState(
            moved, s.log_bound + jnp.log1p(lr * rate), jnp.minimum(s.slack, rate - grown)
        )

    def measure(s: KQState) -> dict[str, Float[Array, ""]]:
        w, v = products(s.factors)
        found = losses(y, out.easy(w), out.hard(v))
        w_trace, v_trace = traces(s.factors)
        w_bound, v_bound = jnp.exp(s.log_bound)
        return dict(
            loss_easy=found["loss_easy"], loss_hard=found["loss_hard"],
            w_trace=w_trace, v_trace=v_trace, w_bound=w_bound, v_bound=v_bound,
        )  # fmt: skip

    keys_of = cfg.init_std * normal(stream(key, "init"), (2, 1, cfg.dim, cfg.dim))
    first = jnp.tile(keys_of, (1, 2, 1, 1))
    trace = iterate(
        step,
        KQState(first, jnp.log(traces(first)), jnp.full(2, jnp.inf)),
        steps=sum(stage_steps(cfg)),
        at=records(cfg),
        probe=measure,
    )
    w_slack, v_slack = trace.last.slack
    return KQProbes(**trace.probes, w_slack=w_slack, v_slack=v_slack, stage=stage_of(cfg, trace))


# --------------------------------------------------- no training (Figure 3, Proposition 2)


class PictureProbes(eqx.Module):
    """The tokens of one context in the plane, and how well a line tells their labels apart."""

    linear_easy: Float[Array, ""] = probe("best linear accuracy on the easy part")
    linear_hard: Float[Array, ""] = probe("best linear accuracy on the hard part")
    x_easy: Float[Array, "token axis"] = probe("easy part of a token", "x_1")
    x_hard: Float[Array, "token axis"] = probe("hard part of a token", "x_2")
    label: Float[Array, "token"] = probe("label", "y")


def linear_accuracy(
    x: Float[Array, "T 2"], y: Float[Array, "T"], angles: int = 180
) -> Float[Array, ""]:
    """The best share that a line gets right, over its angle and its place."""
    turn = jnp.linspace(0, jnp.pi, angles, endpoint=False)
    along = jnp.stack([jnp.cos(turn), jnp.sin(turn)], axis=1) @ x.T
    above = jnp.where(along[:, None, :] > along[:, :, None], 1.0, -1.0)  # every token as threshold
    right = (above @ y / len(y) + 1) / 2
    return jnp.max(jnp.maximum(right, 1 - right))


def simulate_picture(cfg: Config, key: Key[Array, ""]) -> PictureProbes:
    """Figure 3: the first context, in the first two coordinates."""
    data = prompts(cfg, key)
    y, easy, hard = data.y[0, :-1], data.x_easy[0, :-1, :2], data.x_hard[0, :-1, :2]
    return PictureProbes(linear_accuracy(easy, y), linear_accuracy(hard, y), easy, hard, y)


class GradientProbes(eqx.Module):
    """Relative errors of Proposition 2's gradient of W against automatic differentiation."""

    printed_random: Float[Array, ""] = probe("error of the printed gradient, random W")
    printed_aligned: Float[Array, ""] = probe("error of the printed gradient, aligned W")
    signed_random: Float[Array, ""] = probe("error of the gradient with signs, random W")


def easy_gradient(
    data: Prompts, w: Float[Array, "d d"], signed: bool = True
) -> Float[Array, "d d"]:
    r"""Prop. 2: $-\hat E[\sigma(-y_Lf)\frac1{2L}\sum_iy_iy_L1(x_i^\top Wx_L\ge0)x_ix_L^\top]$.

    At $V = 0$. The paper's last line leaves the signs $y_iy_L$ out (`signed=False`).
    """
    context, query, y = data.x_easy[:, :-1], data.x_easy[:, -1], data.y_query
    slope = jax.nn.sigmoid(-y * outputs(data).easy(w) / 2)
    active = (jnp.einsum("nld,nd->nl", context, query @ w.T) >= 0).astype(float)
    sign = data.y[:, :-1] * y[:, None] if signed else jnp.ones_like(active)
    total = jnp.einsum("n,nl,nld,ne->de", slope, sign * active, context, query)
    return -total / (2 * data.sub_cluster.size)


def simulate_gradient(cfg: Config, key: Key[Array, ""]) -> GradientProbes:
    """Gradients at a random W, and at one along the target."""
    data = prompts(cfg, key)
    y, out = data.y_query, outputs(data)
    random = cfg.init_std * normal(stream(key, "init"), (cfg.dim, cfg.dim))

    def error(w: Float[Array, "d d"], signed: bool) -> Float[Array, ""]:
        exact = jax.grad(lambda w: logistic_loss(y * out.easy(w) / 2).mean())(w)
        return norm(easy_gradient(data, w, signed) - exact) / norm(exact)

    return GradientProbes(
        printed_random=error(random, signed=False),
        printed_aligned=error(jnp.outer(data.w_star, data.w_star), signed=False),
        signed_random=error(random, signed=True),
    )
