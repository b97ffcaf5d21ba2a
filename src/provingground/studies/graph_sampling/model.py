"""Data, network and training of the three-layer GCN, in the paper's order.

Letters in shapes: N nodes, d features, m neurons, K outputs, L degree groups, p the width of the
teacher. Widths and degrees are laid out for a padded size; neurons that do not exist start at zero
and get no gradient, so they need no mask in the loop.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Key, UInt

from provingground.config import config, mask, par, probe, size
from provingground.keys import normal, stream, uniform
from provingground.train import Trace, by_lane, descend

from . import samplers
from .graph import (
    Adjacency,
    Graph,
    column_norms2,
    random_graph,
    random_sparse_graph,
    row_sums,
)
from .samplers import Groups, Sampled
from .targets import concept_target, features_and_teacher, figure_target, layer

SAMPLER_DRAWS = 8  # over which the noise of a sample is averaged


@config
class Config:
    """The paper's parameters. Defaults: the unbalanced graph of Figure 5.3, a target of the
    concept class, and full batches by Adam (the printed step size does not train)."""

    nodes: int = par(2000, "N", "nodes", low=8)
    group_share: float = par(0.05, "N_1/N", "share of nodes in group 1", low=0, high=1)
    degree_1: int = par(10, "d_1", "degree in group 1", low=1, value=True, pad=128)
    degree_2: int = par(1, "d_2", "degree in group 2", low=1, value=True, pad=128)
    dim: int = par(10, "d", "feature dimension", low=1)
    concept: bool = par(True, "F^*", "target of the concept class, not of (5.20)", value=True)
    teacher: int = par(10, "p", "width of the target", low=1)
    outputs: int = par(2, "K", "outputs", low=1)
    p1_hat: float = par(0.9, r"\hat p_1", "scale of group 1 in the labels", low=0)
    p2_hat: float = par(0.1, r"\hat p_2", "scale of group 2 in the labels", low=0)
    samples: int = par(1000, r"|\Omega|", "labelled nodes", low=2, value=True)
    sampler: str = par("groups", "A^s", "how nodes are sampled", choices=("groups", "fastgcn"))
    symmetric: bool = par(False, "P^sAP^s", "sample rows and columns alike", value=True)
    independent: bool = par(False, "A^{s(i)}", "a sample for each layer")
    p1: float = par(0.9, "p_1^*", "scale of group 1 in training", low=0)
    p2: float = par(0.1, "p_2^*", "scale of group 2 in training", low=0)
    kept_1: float = par(0.9, "S_1/N_1", "sampled fraction of group 1", low=0, high=1)
    kept_2: float = par(0.9, "S_2/N_2", "sampled fraction of group 2", low=0, high=1)
    whole: bool = par(False, "A^s=A^*", "train with the effective matrix itself", value=True)
    drawn: int = par(1800, "t", "draws of FastGCN", low=1, value=True, pad=8192)
    width: int = par(64, "m", "neurons in each hidden layer", low=1, value=True, pad=32)
    dropout: float = par(0.4, r"p_{\mathrm{drop}}", "dropout", low=0, high=0.95)
    optimiser: str = par("adam", "U", "rule of descent", choices=("adam", "sgd"))
    lr: float = par(5e-3, r"\eta", "step size", low=0)
    batch: int = par(0, r"|\Omega^s|", "labelled nodes of a step (0: all)", low=0)
    steps: int = par(300, "T T_w", "steps", low=1, value=True)
    inner: int = par(20, "T_w", "steps of an inner loop (Algorithm 2)", low=1, value=True)
    decay: float = par(
        1e-3, r"1-\lambda_{t+1}/\lambda_t", "weight decay (Algorithm 2)", low=0, high=1
    )
    smoothing: float = par(1.0, r"\rho", "factor on the smoothing noise (Algorithm 2)", low=0)
    signs: bool = par(True, r"\Sigma", "random signs (Algorithm 2)", value=True)
    lam_w: float = par(1e-4, r"\lambda_w", "regulariser of W (Algorithm 2)", low=0)
    lam_v: float = par(1e-4, r"\lambda_v", "regulariser of V (Algorithm 2)", low=0)
    noise: float = par(0.0, r"\xi", "s.d. of the gradient's perturbation (Algorithm 2)", low=0)
    outputs_drawn: int = par(8, "n_o", "outputs drawn (Algorithm 2)", low=1)
    record: int = par(2, "n_t", "recorded steps", low=2)


class Probes(eqx.Module):
    """What one training reports. Losses are with the effective matrix, without dropout."""

    train_loss: Float[Array, "step"] = probe("training MSE", r"L_\Omega")
    test_loss: Float[Array, "step"] = probe("test MSE")
    test_error: Float[Array, "step"] = probe("test MSE over the variance of the labels")
    averaged_error: Float[Array, ""] = probe("the same, of the mean of several outputs")
    label_variance: Float[Array, ""] = probe("variance of the test labels")
    norm_inf: Float[Array, ""] = probe("largest row sum", r"\|A^*\|_\infty")
    max_degree: Int[Array, ""] = probe("largest degree", r"\delta")
    mean_degree: Float[Array, "group"] = probe("mean degree of a group", "d_l")
    noise_ratio: Float[Array, ""] = probe(
        "noise of aggregated features over signal", r"\|(A^s-A^*)X\|^2/\|A^*X\|^2"
    )
    noise_theory: Float[Array, ""] = probe("the same in closed form, of realised fractions")
    importance_ratio: Float[Array, ""] = probe("FastGCN's chance of group 1 over group 2")
    group: Int[Array, "group"] = probe("degree group", "l")
    step: Int[Array, "step"] = probe("step", "s")


# ------------------------------------------------------------------------------- data


def degree_groups(cfg: Config) -> tuple[Int[Array, "N"], Int[Array, "N"]]:
    """Group 0 (the paper's 1) comes first. Also the degree that each node should have."""
    count = jnp.round(jnp.asarray(cfg.group_share) * cfg.nodes).astype(int)
    first = jnp.arange(cfg.nodes) < count
    wanted = jnp.where(first, cfg.degree_1, cfg.degree_2).astype(int)
    return jnp.where(first, 0, 1), wanted


def random_bits(key: Key[Array, ""], rows: int, n: int) -> UInt[Array, "rows N"]:
    """Random bits for each node. Programs with few draws compile fast, so all bits of one kind
    are drawn together; more rows change nothing."""
    return jax.random.bits(key, (rows, n), jnp.uint32)


def drawn_graph(cfg: Config, key: Key[Array, ""], sparse: bool = False) -> Graph:
    """A random graph with the degree groups of a setting."""
    group, degree = degree_groups(cfg)
    slots = max(size(cfg, "degree_1"), size(cfg, "degree_2"))
    make = random_sparse_graph if sparse else random_graph
    return make(random_bits(stream(key, "data/graph"), slots, cfg.nodes), group, degree)


class Task(eqx.Module):
    """Everything that is given: graph, features, labels, and which labels are known."""

    graph: Graph
    x: Float[Array, "N d"]
    y: Float[Array, "N K"]
    unit: Float[Array, ""]  # labels are divided by it in training
    known: Bool[Array, "N"]  # Omega
    order: Int[Array, "N"]  # a random order whose first |Omega| nodes are labelled


def random_task(cfg: Config, key: Key[Array, ""], graph: Graph) -> Task:
    """Section 5.4 on a graph: Gaussian features, labels of a teacher, random labelled nodes.

    Labels of the concept class are tiny, so training sees them at unit variance.
    """
    n, sizes = len(graph.group), (cfg.dim, cfg.teacher, cfg.outputs)
    lots, x, teacher = features_and_teacher(stream(key, "data"), n, *sizes)
    p_hat = jnp.stack([jnp.asarray(cfg.p1_hat), jnp.asarray(cfg.p2_hat)])
    hat = samplers.scaled(p_hat[graph.group], cfg.symmetric)
    concept = jnp.asarray(cfg.concept)
    inside = concept_target(teacher, graph.a, hat, x)
    y = jnp.where(concept, inside, figure_target(teacher, graph.a, hat, x))
    unit = jnp.where(concept, jnp.std(y), 1.0)
    return task_of(cfg, lots, graph, x, y, jnp.where(unit > 0, unit, 1.0))


def task_of(
    cfg: Config,
    lots: Float[Array, "N"],
    graph: Graph,
    x: Float[Array, "N d"],
    y: Float[Array, "N K"],
    unit: Float[Array, ""],
) -> Task:
    """The task of given features and labels; labels of the nodes with small lots are known."""
    n = len(y)
    order = jnp.argsort(lots)
    count = jnp.minimum(jnp.asarray(cfg.samples), n - 1)  # one label at least is left to test
    known = jnp.zeros(n, bool).at[order].set(jnp.arange(n, dtype=count.dtype) < count)
    return Task(graph, x, y, unit, known, order)


# ---------------------------------------------------------------------------- network


class Weights(eqx.Module):
    """What is trained."""

    w: Float[Array, "d m"]
    v: Float[Array, "m m"]


class Fixed(eqx.Module):
    """What stays: biases (one row for all nodes) and the read-out."""

    b1: Float[Array, "m"]
    b2: Float[Array, "m"]
    c: Float[Array, "m K"]


def initial_weights(cfg: Config, key: Key[Array, ""], d: int, k: int) -> tuple[Weights, Fixed]:
    r"""Section 5.3.3: $W^{(0)}, b_1 \sim N(0, 1/m_1)$, $V^{(0)}, b_2 \sim N(0, 1/m_2)$,
    $C \sim N(0, 1)$."""
    m, exists = size(cfg, "width"), mask(cfg, "width").astype(float)
    scale = exists / jnp.sqrt(jnp.asarray(cfg.width).astype(float))
    own, pairs = neuron_draws(normal(stream(key, "init"), (m * (m + d + 2 + k),)), m, d + 2 + k)
    return (
        Weights((own[:, :d] * scale[:, None]).T, pairs * scale[:, None] * exists[None, :]),
        Fixed(own[:, d] * scale, own[:, d + 1] * scale, own[:, d + 2 :] * exists[:, None]),
    )


def neuron_draws(
    z: Float[Array, "draws"], m: int, own: int
) -> tuple[Float[Array, "m own"], Float[Array, "m m"]]:
    """Numbers of each neuron and of each pair of neurons, the same for any padded width.

    A neuron brings its own numbers and those of its pairs with the neurons before it, so a larger
    width only appends draws.
    """
    i = jnp.arange(m)
    first = i * (i + own)  # neurons before i have taken own + 1, own + 3, ...
    a, b, high = i[:, None], i[None, :], jnp.maximum(i[:, None], i[None, :])
    place = first[high] + own + jnp.where(a >= b, b, 2 * high - a)
    return z[first[:, None] + jnp.arange(own)[None, :]], z[place]


def network(
    w: Weights,
    fixed: Fixed,
    a: Adjacency,
    x: Float[Array, "N d"],
    s: Sampled,
    drop: Float[Array, "2 N m"] | None = None,
) -> Float[Array, "N K"]:
    r"""(5.4): $F = A\sigma(A\sigma(AXW + B_1)V + B_2)C$, with a sampled matrix in each layer.
    `drop` multiplies the hidden layers."""
    h = jax.nn.relu(layer(a, s, 0, x) @ w.w + fixed.b1[None, :])
    h = h if drop is None else h * drop[0]
    h = jax.nn.relu(layer(a, s, 1, h) @ w.v + fixed.b2[None, :])
    h = h if drop is None else h * drop[1]
    return layer(a, s, 2, h @ fixed.c)  # A(hC) is (Ah)C, on K columns instead of m


def dropout(words: UInt[Array, "rows N"], rate: ArrayLike, n: int, m: int) -> Float[Array, "2 N m"]:
    """Inverted dropout of both hidden layers: zero, or one over the chance to stay.

    A random word serves two neurons in both layers, with eight bits each.
    """
    bits = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(-1, n, 2, 2)
    bits = jnp.transpose(bits, (2, 1, 0, 3)).reshape(2, n, -1)[..., :m]
    cut = jnp.round(jnp.asarray(rate) * 256)
    return (bits.astype(float) >= cut).astype(float) / (1 - cut / 256)


def squared_error(
    f: Float[Array, "N K"], y: Float[Array, "N K"], weight: Float[Array, "N"]
) -> Float[Array, ""]:
    r"""$\frac12\sum_n w_n\|F_n - y_n\|^2$; the loss of section 5.4 where weights sum to one."""
    return jnp.sum(weight * jnp.sum((f - y) ** 2, axis=1)) / 2


# --------------------------------------------------------------------------- training


def training_groups(cfg: Config, group: Int[Array, "N"]) -> Groups:
    kept = jnp.stack([jnp.asarray(cfg.kept_1), jnp.asarray(cfg.kept_2)])
    kept = jnp.where(jnp.asarray(cfg.whole), jnp.ones_like(kept), kept)
    return samplers.groups(group, kept, jnp.stack([jnp.asarray(cfg.p1), jnp.asarray(cfg.p2)]))


def effective(cfg: Config, groups: Groups) -> Sampled:
    r"""What the network is trained for and tested with: $A^*$, or $A$ for FastGCN."""
    if cfg.sampler == "fastgcn":
        return samplers.scaled(jnp.ones(len(groups.group)), False)
    return samplers.scaled(groups.p_star[groups.group], cfg.symmetric)


def sample(cfg: Config, key: Key[Array, ""], groups: Groups, q: Float[Array, "N"]) -> Sampled:
    """The graph of one step."""
    return sample_of(cfg, key, random_bits(key, 3, len(q)), groups, q)


def sample_of(
    cfg: Config,
    key: Key[Array, ""],
    bits: UInt[Array, "3 N"],
    groups: Groups,
    q: Float[Array, "N"],
) -> Sampled:
    """The same from given bits; FastGCN draws more."""
    layers = 3 if cfg.independent else 1
    if cfg.sampler == "fastgcn":
        u = uniform(jax.random.fold_in(key, 1), (size(cfg, "drawn") + 1, layers))
        count = jnp.asarray(cfg.drawn).astype(int)
        return samplers.fast_sample(-jnp.log1p(-u).T, q, count)
    return samplers.group_sample(bits[:layers], groups, cfg.symmetric)


def batch_weights(cfg: Config, bits: UInt[Array, "N"], task: Task) -> Float[Array, "N"]:
    """How often each node is in the batch of a step, over the size of the batch.

    Batches are drawn with replacement.
    """
    known = task.known.astype(float)
    if not cfg.batch:
        return known / jnp.sum(known)
    share = (bits[: cfg.batch] >> 8).astype(float) / 2**24
    place = jnp.floor(share * jnp.sum(known)).astype(int)
    drawn = task.order[place][:, None] == jnp.arange(len(known))[None, :]
    return jnp.sum(drawn, axis=0, dtype=float) / len(place)


class Step(eqx.Module):
    """What is drawn for one step."""

    sampled: Sampled
    weight: Float[Array, "N"]
    drop: Float[Array, "2 N m"]


def one_step(
    cfg: Config, key: Key[Array, ""], task: Task, groups: Groups, q: Float[Array, "N"]
) -> Step:
    n, m = len(q), size(cfg, "width")
    bits = random_bits(key, 4 + -(-m // 2), n)
    sampled = sample_of(cfg, key, bits[:3], groups, q)
    weight = batch_weights(cfg, bits[3], task) * sampled.kept.astype(float)
    return Step(sampled, weight, dropout(bits[4:], cfg.dropout, n, m))


def trained(
    cfg: Config,
    loss: Callable[[Weights, Int[Array, ""]], Float[Array, ""]],
    start: Weights,
    probe: Callable[[Weights], Any],
) -> Trace[Weights]:
    """Descent on a loss whose draws depend on the step."""
    rule = optax.adam(cfg.lr) if cfg.optimiser == "adam" else optax.sgd(cfg.lr)
    return descend(
        loss, start, rule, steps=cfg.steps, at=recorded(cfg), probe=probe, batch=lambda s: s
    )


def recorded(cfg: Config) -> Int[Array, "step"]:
    """The recorded steps, even from the first to the last."""
    share = jnp.linspace(0.0, 1.0, cfg.record)
    return jnp.round(share * jnp.asarray(cfg.steps).astype(float)).astype(int)


# ----------------------------------------------------------------------- measurements


def errors(f: Float[Array, "N K"], task: Task) -> dict[str, Float[Array, ""]]:
    """Mean squared errors in the units of the labels, and over the variance of the test labels."""
    square = jnp.mean((f * task.unit - task.y) ** 2, axis=1)
    test = ~task.known
    loss, variance = mean_over(test, square), label_variance(task)
    return dict(
        train_loss=mean_over(task.known, square),
        test_loss=loss,
        test_error=loss / jnp.where(variance > 0, variance, 1.0),
    )


def mean_over(chosen: Bool[Array, "N"], values: Float[Array, "N"]) -> Float[Array, ""]:
    count = jnp.maximum(jnp.sum(chosen, dtype=float), 1.0)
    return jnp.sum(jnp.where(chosen, values, 0.0)) / count


def label_variance(task: Task) -> Float[Array, ""]:
    test = ~task.known
    mean = jax.vmap(mean_over, in_axes=(None, 1))(test, task.y)
    return mean_over(test, jnp.mean((task.y - mean[None, :]) ** 2, axis=1))


def noise_theory(
    cfg: Config, g: Groups, q: Float[Array, "N"], norms2: Float[Array, "N"]
) -> Float[Array, ""]:
    r"""$\sum_jw_j(1-f_j)/f_j/\sum_jw_j$ with $w_j = (p_j^*)^2\|A_{:,j}\|^2$, for features that are
    independent and have mean zero (rows that are not scaled); $(N-1)/t$ for FastGCN."""
    if cfg.sampler == "fastgcn":
        return (len(q) - 1) / jnp.asarray(cfg.drawn).astype(float)
    fraction = g.drawn.astype(float) / jnp.maximum(g.size, 1).astype(float)
    power = g.p_star[g.group] ** 2 * norms2  # of a node in A*X
    odds = ((1 - fraction) / jnp.maximum(fraction, 1e-30))[g.group]
    return jnp.sum(odds * power) / jnp.maximum(jnp.sum(power), 1e-30)


def graph_probes(
    cfg: Config, key: Key[Array, ""], task: Task, groups: Groups, q: Float[Array, "N"]
) -> dict[str, Array]:
    """Properties of the graph, and the noise of some draws of the sampler."""
    graph, best = task.graph, effective(cfg, groups)
    kinds = groups.group[None, :] == jnp.arange(len(groups.size))[:, None]

    def by_group(values: Float[Array, "N"]) -> Float[Array, "L"]:
        return jax.vmap(mean_over, in_axes=(0, None))(kinds, values)

    def of_draw(key: Key[Array, ""]) -> Float[Array, ""]:
        drawn = sample(cfg, key, groups, q)
        noisy = layer(graph.a, drawn, 0, task.x) - clean
        return jnp.sum(noisy**2)

    clean = layer(graph.a, best, 0, task.x)
    noise = jax.vmap(of_draw)(jax.random.split(stream(key, "test/sample"), SAMPLER_DRAWS))
    chance = by_group(q)
    return dict(
        norm_inf=jnp.max(best.rows[0] * row_sums(graph.a, best.cols[0])),
        max_degree=jnp.max(graph.degree),
        mean_degree=by_group(graph.degree.astype(float))[:2],
        noise_ratio=jnp.mean(noise) / jnp.maximum(jnp.sum(clean**2), 1e-30),
        noise_theory=noise_theory(cfg, groups, q, column_norms2(graph.a)),
        importance_ratio=chance[0] / jnp.maximum(chance[1], 1e-30),
        group=jnp.arange(1, 3),
    )


def report(
    path: dict[str, Float[Array, "step"]],
    step: Int[Array, "step"],
    task: Task,
    seen: dict[str, Array],
    averaged: Float[Array, ""],
) -> Probes:
    return Probes(
        **path,
        **seen,
        averaged_error=averaged,
        label_variance=label_variance(task),
        step=step,
    )


# -------------------------------------------------------------------------- simulation


def train(cfg: Config, key: Key[Array, ""], task: Task) -> Probes:
    r"""Algorithm 2 in its practical form: dropout, no smoothing, no signs, $\lambda_t = 1$."""
    a, groups = task.graph.a, training_groups(cfg, task.graph.group)
    q, best = samplers.importance(column_norms2(a)), effective(cfg, groups)
    start, fixed = initial_weights(cfg, key, task.x.shape[1], task.y.shape[1])
    y, draws = task.y / task.unit, stream(key, "batch")

    def loss(w: Weights, s: Int[Array, ""]) -> Float[Array, ""]:
        step = one_step(cfg, jax.random.fold_in(draws, s), task, groups, q)
        f = network(w, fixed, a, task.x, step.sampled, step.drop)
        return squared_error(f, y, step.weight)

    trace = trained(cfg, loss, start, lambda w: errors(network(w, fixed, a, task.x, best), task))
    seen = graph_probes(cfg, key, task, groups, q)
    return report(trace.probes, trace.step, task, seen, trace.probes["test_error"][-1])


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """One training on a random graph, with dense products."""

    def whole(cfg: Config) -> Probes:
        return train(cfg, key, random_task(cfg, key, drawn_graph(cfg, key)))

    return by_lane(whole, cfg)  # graphs differ from lane to lane, and little is shared
