"""Data, network and training of the shallow vision transformer, in the paper's order.

Letters in shapes: N samples, C classes, L tokens, P patterns, d token dimension, H heads,
m neurons, o outputs. Two simulators share one training. It sees *rows* (T of them) in *groups*
(B of them): tokens of samples (T = L, B = N, in `tokens.py`), or here patterns of classes (T = P,
B = C), which is the same network and very much smaller, as long as tokens have no noise.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par, probe, size
from provingground.data.patterns import orthonormal, permutations, tally
from provingground.errors import InputError
from provingground.keys import normal, signs, stream, streams, uniform
from provingground.train import Activation, Optimiser, descend, log_steps

RELEVANT, CONFUSION, IRRELEVANT = range(3)  # roles of tokens


@config
class Config:
    """The paper's parameters; defaults are those of Figure 2.1(a)."""

    samples: int = par(64, "N", "training samples", low=2, value=True, pad=128)
    frac_relevant: float = par(0.4, r"\alpha_*", "fraction of label-relevant tokens", low=0, high=1)
    frac_confusion: float = par(0.1, r"\alpha_\#", "fraction of confusion tokens", low=0, high=1)
    tokens: int = par(100, "L", "tokens per sample", low=4)
    n_patterns: int = par(5, "M", "patterns", low=3)
    dim: int = par(10, "d", "dimension of tokens, keys and values", low=4)
    width: int = par(1000, "m", "hidden neurons", low=1)
    value_error: float = par(0.1, r"\sigma", "initial error of the values", low=0)
    key_error: float = par(0.2, r"\delta", "initial error of keys and queries", low=0)
    value_scale: float = par(1.0, "s_V", "scale of the initial values", low=0)
    key_scale: float = par(1.0, "s_K", "scale of the initial keys and queries", low=0)
    hidden_init_std: float = par(0.01, r"\xi", "s.d. of the initial hidden weights", low=0)
    shared: float = par(
        0.0,
        r"a_{(l)} = a",
        "read-out of its own for each position (0) or shared (1)",
        low=0,
        high=1,
    )
    lr: float = par(2.0, r"\eta", "step size", low=0)
    attention_rate: float = par(
        1.0, r"\eta_K/\eta", "step size of W_K, W_Q over that of the others (0: CNN)", low=0
    )
    loss: str = par("hinge", r"\ell", "loss", choices=("hinge", "logistic"))
    batch: int = par(0, "B", "samples per step (0: all)", low=0)
    eps: float = par(0.0, r"\epsilon", "training loss to stop at", low=0)
    steps: int = par(2500, r"T_{\max}", "steps at most", low=1)
    record: int = par(2, "n_t", "recorded steps", low=2)
    test_samples: int = par(200, r"N_{\mathrm{te}}", "test samples", low=2)
    classes: int = par(2, "C", "classes", low=2, choices=(2, 4))
    variants: int = par(1, "b", "patterns in a pattern set", low=1)
    spread: float = par(0.5, r"\sin\theta", "distance of a pattern from its set", low=0, high=1)
    heads: int = par(1, "H", "heads", low=1)
    skip: float = par(0.0, "s", "skip connection (0: none, 1: as printed)", low=0)


class Probes(eqx.Module):
    """What one training reports. Means over queries are over those of the training samples."""

    train_loss: Float[Array, "step"] = probe("training loss")
    test_loss: Float[Array, "step"] = probe("test loss")
    test_error: Float[Array, "step"] = probe("test error")
    margin: Float[Array, "step"] = probe("smallest training margin", "yF")
    attention: Float[Array, "step"] = probe("attention on label-relevant tokens")
    attention_from: Float[Array, "step query"] = probe("attention on label-relevant tokens")
    query_norm: Float[Array, "step"] = probe("query norm of label-relevant patterns", r"\|q_1\|")
    key_norm: Float[Array, "step"] = probe("key norm of label-relevant patterns", r"\|k_1\|")
    other_norm: Float[Array, "step"] = probe("query norm of irrelevant patterns")
    lucky: Float[Array, "step"] = probe("share of lucky neurons still active")
    neuron: Float[Array, "step"] = probe("mean output of lucky neurons", "W_{O,i}V_l")
    stopped_at: Int[Array, ""] = probe("steps until the training loss is reached", "T")
    query: Int[Array, "query"] = probe("role of the query: relevant, confusion, irrelevant")
    step: Int[Array, "step"] = probe("gradient descent step", "t")


# ------------------------------------------------------------------------------- data


def frames(cfg: Config, key: Key[Array, ""]) -> Float[Array, "one_plus_H d d"]:
    """Orthonormal bases: that of the patterns, and one for the values of each head."""
    keys = jax.random.split(stream(key, "frames"), 1 + cfg.heads)
    return jax.vmap(lambda k: orthonormal(k, cfg.dim, cfg.dim))(keys)


def pattern_rows(
    cfg: Config, basis: Float[Array, "d d"]
) -> tuple[Float[Array, "M d"], Float[Array, "P d"]]:
    r"""Centres $\mu_j$, and the patterns: these, or sets around them (appendix A.6.2).

    $\mu_{j,b} = \cos\theta\,\mu_j + \sin\theta\,\nu_{j,b}$ with all vectors orthonormal.
    """
    m, b = cfg.n_patterns, cfg.variants
    needed = m if b == 1 else m * (1 + b)
    if cfg.classes >= m:
        raise InputError(f"{cfg.classes} classes need more than {m} patterns: one is irrelevant.")
    if needed > cfg.dim:
        raise InputError(f"{needed} orthogonal patterns do not fit into {cfg.dim} dimensions.")
    if b == 1:
        return basis[:m], basis[:m]
    cosine = jnp.sqrt(1 - jnp.square(cfg.spread))
    sets = cosine * jnp.repeat(basis[:m], b, axis=0) + cfg.spread * basis[m:needed]
    return basis[:m], sets


def kinds(
    cfg: Config, rank: Int[Array, "L"], label: Int[Array, ""]
) -> tuple[Int[Array, "L"], Int[Array, "L"]]:
    """Section 2.3: role and pattern of every token, given a random order of the positions.

    The first $\\alpha_* L$ have the pattern of the label, the next $\\alpha_\\# L$ those of other
    labels, the rest the irrelevant patterns, as evenly as possible.
    """
    n_1 = jnp.round(cfg.frac_relevant * cfg.tokens).astype(jnp.int32)
    n_2 = jnp.round(cfg.frac_confusion * cfg.tokens).astype(jnp.int32)
    c, others, rest = cfg.classes, cfg.classes - 1, cfg.n_patterns - cfg.classes
    role = (rank >= n_1).astype(jnp.int32) + (rank >= n_1 + n_2).astype(jnp.int32)
    at = rank - jnp.stack([jnp.zeros_like(n_1), n_1, n_1 + n_2])[role]  # number within the role
    kind = jnp.stack([jnp.full_like(rank, label), (label + 1 + at % others) % c, c + at % rest])
    turn = jnp.stack([at, at // others, at // rest]) % cfg.variants
    pick = role[None, :] == jnp.arange(3, dtype=jnp.int32)[:, None]
    return role, jnp.sum(jnp.where(pick, kind * cfg.variants + turn, 0), axis=0)


def targets(cfg: Config) -> Float[Array, "C o"]:
    r"""$y = \pm 1$, or the four corners of $\{\pm 1\}^2$ (A.207 to A.210)."""
    if cfg.classes == 2:
        return jnp.array([[1.0], [-1.0]])
    return jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])


def rows_of(cfg: Config, count: int) -> int:
    """Samples that are laid out for a count: whole rounds of the classes."""
    return -(-count // cfg.classes) * cfg.classes


# ---------------------------------------------------------------------------- network


class Weights(eqx.Module):
    w_q: Float[Array, "H d d"]
    w_k: Float[Array, "H d d"]
    w_v: Float[Array, "H d d"]
    w_o: Float[Array, "H d m"]


def initial_weights(
    cfg: Config, key: Key[Array, ""], centres: Float[Array, "M d"], u: Float[Array, "H d d"]
) -> Weights:
    r"""Assumption 2.3.1: $W_Q\mu_j = q_j + \delta e_j$ and so on, with unit errors $e_j$.

    $W_K = W_Q = s_K I$ and $W_V = s_V U$, $U$ orthogonal, each plus its error (with a skip
    connection $W_V + I$ takes the place of $W_V$, A.233).
    """
    h, m, d = cfg.heads, cfg.n_patterns, cfg.dim
    z = normal(stream(key, "init"), (3 * h * m + cfg.width * h, d))  # one draw compiles fast
    errors, rest = z[: 3 * h * m], z[3 * h * m :]
    errors = (errors / jnp.linalg.norm(errors, axis=-1, keepdims=True)).reshape(3, h, m, d)
    e_q, e_k, e_v = jnp.einsum("whjo,ji->whoi", errors, centres)
    eye = jnp.broadcast_to(jnp.eye(d), (h, d, d))
    return Weights(
        w_q=cfg.key_scale * eye + cfg.key_error * e_q,
        w_k=cfg.key_scale * eye + cfg.key_error * e_k,
        w_v=cfg.value_scale * u - cfg.skip * eye + cfg.value_error * e_v,
        w_o=cfg.hidden_init_std * jnp.moveaxis(rest.reshape(cfg.width, h, d), 0, 2),
    )


def output_weights(cfg: Config, key: Key[Array, ""]) -> Float[Array, "L m o"]:
    r"""$a_{(l)}$: entries $\pm 1/\sqrt m$, never trained."""
    shape = (cfg.tokens, cfg.width, 1 if cfg.classes == 2 else 2)
    return signs(stream(key, "init/readout"), shape) / cfg.width**0.5


def positions(cfg: Config, of_each: Float[Array, "L *rest"]) -> Float[Array, "L *rest"]:
    """What is linear in the read-outs of all positions; that of the first if they share one."""
    return (1 - cfg.shared) * of_each + cfg.shared * of_each[:1]


def attend(
    w: Weights, x: Float[Array, "T d"], n: Float[Array, "T"], skip: Any = 0.0
) -> tuple[Float[Array, "H T T"], Float[Array, "T H d"]]:
    r"""Attention and attended values of rows $x$ that occur $n$ times each, inside (2.1).

    $W_V X\,\mathrm{softmax}(X^\top W_K^\top W_Q x_l) + s\,x_l$. A row that occurs $n$ times counts
    as $\log n$ in its score, so $n = 0$ leaves it out. The matrices stay outside of the products
    of rows with rows, which halves the work of the gradient.
    """
    matrix = jnp.einsum("hke,hkd->hed", w.w_k, w.w_q)
    scores = jnp.einsum("hle,se->hls", jnp.einsum("hed,ld->hle", matrix, x), x)
    scores += jnp.log(n)[None, None, :]
    e = jnp.exp(scores - jnp.max(jax.lax.stop_gradient(scores), axis=-1, keepdims=True))
    p = e / jnp.sum(e, axis=-1, keepdims=True)
    mean = jnp.einsum("hls,sd->hld", p, x)
    return p, jnp.einsum("had,hld->lha", w.w_v, mean) + skip * x[:, None, :]


def hidden(
    w_o: Float[Array, "H d m"], v: Float[Array, "*T H d"], activation: Activation = jax.nn.relu
) -> Float[Array, "*T m"]:
    r"""The hidden layer $\mathrm{Relu}(W_O v)$ of (2.1) at attended values."""
    return activation(jnp.einsum("ham,...ha->...m", w_o, v))


def loss_of(cfg: Config, margin: Float[Array, "N"]) -> Float[Array, "N"]:
    """Hinge loss (2.4) of the margin $y^\\top F$, or the logistic one."""
    return jax.nn.relu(1 - margin) if cfg.loss == "hinge" else jax.nn.softplus(-margin)


# --------------------------------------------------------------------- samples as rows


class Samples(NamedTuple):
    """Samples as the network sees them: rows in groups, and the way from these to outputs."""

    x: Float[Array, "B T d"]
    n: Float[Array, "B T"]  # how often a row occurs
    role: Int[Array, "B T"]
    share: Float[Array, "B"]  # of all samples
    exists: Bool[Array, "N"]
    margins: Callable[[Array, Float[Array, "B T H d"]], Float[Array, "N"]]  # y F, from W_O and v


def by_class(
    cfg: Config,
    key: Key[Array, ""],
    patterns: Float[Array, "P d"],
    a: Float[Array, "L m o"],
    activation: Activation = jax.nn.relu,
) -> tuple[Samples, Samples]:
    r"""The pattern reduction: without noise, samples of a class differ in their positions alone.

    With $z_{cj}$ the hidden layer at pattern $j$ in class $c$, $F = \frac1L\sum_l a_{(l)}^\top
    z_{c,j(l)}$: one product of $a$ with all $z$, then a sum over the places of every sample.
    Returns the training samples and those for the test.
    """
    y, label = targets(cfg), jnp.arange(cfg.classes, dtype=jnp.int32)
    sizes = rows_of(cfg, size(cfg, "samples")), rows_of(cfg, cfg.test_samples)
    draw = jax.vmap(lambda k: permutations(k, max(sizes), cfg.tokens))
    rank = draw(streams(key, "data/role", "test/role"))
    rank = rank.reshape(2, -1, cfg.classes, cfg.tokens)
    of_class = jax.vmap(lambda r, c: kinds(cfg, r, c)[1], in_axes=(0, None))
    pattern = jax.vmap(jax.vmap(of_class, in_axes=(1, 0)), in_axes=(0, None))(rank, label)
    places = jax.nn.one_hot(pattern, len(patterns), dtype=float) / cfg.tokens
    places = places.reshape(2, cfg.classes, -1, cfg.tokens * len(patterns))

    def margins(
        places: Float[Array, "C n LP"], w_o: Float[Array, "H d m"], v: Float[Array, "C P H d"]
    ) -> Float[Array, "N"]:
        at = jnp.einsum("lmo,cjm->cljo", a, hidden(w_o, v, activation))
        at = jax.vmap(lambda at: positions(cfg, at))(jnp.einsum("cljo,co->clj", at, y))
        return jnp.einsum("cnx,cx->nc", places, at.reshape(cfg.classes, -1)).reshape(-1)

    each = jnp.arange(cfg.tokens, dtype=jnp.int32)
    n = jax.vmap(lambda c: tally(kinds(cfg, each, c)[1], len(patterns)))(label)
    kind = (jnp.arange(len(patterns), dtype=jnp.int32) // cfg.variants)[None, :]
    role = jnp.where(kind >= cfg.classes, IRRELEVANT, CONFUSION)
    role = jnp.where(kind == label[:, None], RELEVANT, role)
    x = jnp.broadcast_to(patterns, (cfg.classes, *patterns.shape))

    def samples(places: Float[Array, "C n LP"], rows: int, count: Any) -> Samples:
        exists = jnp.arange(rows, dtype=jnp.int32) < count
        share = share_of(exists).reshape(-1, cfg.classes).sum(axis=0)
        some = places[:, : rows // cfg.classes]
        return Samples(x, n, role, share, exists, partial(margins, some))

    train, test = map(samples, places, sizes, (cfg.samples, sizes[1]))
    return train, test


def share_of(exists: Bool[Array, "N"]) -> Float[Array, "N"]:
    """The weight of each sample in a mean over those that exist."""
    return exists.astype(float) / exists.astype(float).sum()


# --------------------------------------------------------------------------- training


def attended(
    cfg: Config, w: Weights, s: Samples
) -> tuple[Float[Array, "B H T T"], Float[Array, "B T H d"]]:
    return jax.vmap(lambda x, n: attend(w, x, n, cfg.skip))(s.x, s.n)


def mean_loss(cfg: Config, w: Weights, s: Samples, weight: Float[Array, "N"]) -> Float[Array, ""]:
    return jnp.sum(weight * loss_of(cfg, s.margins(w.w_o, attended(cfg, w, s)[1])))


def train(
    cfg: Config,
    key: Key[Array, ""],
    start: Weights,
    s: Samples,
    optimiser: Optimiser = optax.sgd,
    **probing: Any,
) -> Any:
    """Descent on all four matrices; batches are drawn with replacement.

    Full-batch training stops when the loss is `eps`: at 0 the gradient vanishes.
    """

    def slow_attention(g: Any, _: Any) -> Any:
        return eqx.tree_at(lambda g: (g.w_q, g.w_k), g, replace_fn=lambda m: cfg.attention_rate * m)

    def some(t: Int[Array, ""]) -> Float[Array, "N"]:
        u = uniform(jax.random.fold_in(key, t), (cfg.batch,))
        chosen = jnp.floor(u * jnp.asarray(cfg.samples, u.dtype)).astype(jnp.int32)
        return jnp.mean(jax.nn.one_hot(chosen, len(s.exists), dtype=float), axis=0)

    rule = optax.chain(optax.stateless(slow_attention), optimiser(cfg.lr))
    if cfg.batch:
        return descend(lambda w, b: mean_loss(cfg, w, s, b), start, rule, batch=some, **probing)
    return descend(
        lambda w: mean_loss(cfg, w, s, share_of(s.exists)),
        start,
        rule,
        until=lambda value, _: value <= cfg.eps,
        **probing,
    )


def measure(
    cfg: Config,
    w: Weights,
    start: Weights,
    patterns: Float[Array, "P d"],
    s: Samples,
    test: Samples,
    activation: Activation = jax.nn.relu,
) -> dict[str, Array]:
    """The probes of one step."""
    p, v = attended(cfg, w, s)
    z = hidden(w.w_o, v, activation)
    z_0 = hidden(start.w_o, attended(cfg, start, s)[1], activation)
    margin, unseen = s.margins(w.w_o, v), test.margins(w.w_o, attended(cfg, w, test)[1])
    on_relevant = jnp.einsum("bhls,bs->bl", p, (s.role == RELEVANT).astype(float)) / cfg.heads

    def over(weights: Float[Array, "*at"], values: Float[Array, "*at"]) -> Float[Array, ""]:
        total = jnp.sum(weights)
        return jnp.sum(weights * values) / jnp.where(total > 0, total, 1.0)

    weight = s.share[:, None] * s.n
    of_role = [jnp.where(s.role == r, weight, 0.0) for r in range(3)]
    lucky = (z_0 > 0).astype(float) * of_role[RELEVANT][:, :, None]
    first = cfg.classes * cfg.variants

    def norm(matrix: Float[Array, "H d d"], rows: Float[Array, "j d"]) -> Float[Array, ""]:
        return jnp.mean(jnp.linalg.norm(jnp.einsum("hkd,jd->hjk", matrix, rows), axis=-1))

    return dict(
        train_loss=jnp.sum(share_of(s.exists) * loss_of(cfg, margin)),
        test_loss=jnp.sum(share_of(test.exists) * loss_of(cfg, unseen)),
        test_error=jnp.sum(share_of(test.exists) * (unseen <= 0).astype(float)),
        margin=jnp.min(jnp.where(s.exists, margin, jnp.inf)),
        attention=over(weight, on_relevant),
        attention_from=jnp.stack([over(weights, on_relevant) for weights in of_role]),
        query_norm=norm(w.w_q, patterns[:first]),
        key_norm=norm(w.w_k, patterns[:first]),
        other_norm=norm(w.w_q, patterns[first:]),
        lucky=over(lucky, (z > 0).astype(float)),
        neuron=over(lucky, z),
    )


def report(
    cfg: Config,
    key: Key[Array, ""],
    start: Weights,
    patterns: Float[Array, "P d"],
    s: Samples,
    test: Samples,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    trace = train(
        cfg,
        stream(key, "batch"),
        start,
        s,
        optimiser,
        steps=cfg.steps,
        at=log_steps(cfg.steps, cfg.record),
        probe=lambda w: measure(cfg, w, start, patterns, s, test, activation),
    )
    roles = jnp.arange(3, dtype=jnp.int32)
    return Probes(**trace.probes, stopped_at=trace.stopped_at, query=roles, step=trace.step)


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """Training on patterns: that on tokens without noise, exactly."""
    basis, *u = frames(cfg, key)
    centres, patterns = pattern_rows(cfg, basis)
    start, a = initial_weights(cfg, key, centres, jnp.stack(u)), output_weights(cfg, key)
    samples = by_class(cfg, key, patterns, a, activation)
    return report(cfg, key, start, patterns, *samples, activation, optimiser)
