import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from provingground import identity
from provingground.data import graphs
from provingground.errors import InputError
from provingground.keys import seed_key
from provingground.studies.graph_sampling import own, samplers, theory
from provingground.studies.graph_sampling.algorithm2 import (
    Perturbation,
    decay,
    perturb,
    perturbed,
    regulariser,
    simulate_algorithm,
)
from provingground.studies.graph_sampling.graph import (
    Graph,
    Sparse,
    aggregate,
    column_norms2,
    matched_stubs,
    random_graph,
    random_sparse_graph,
    row_sums,
)
from provingground.studies.graph_sampling.model import (
    Config,
    Fixed,
    Task,
    Weights,
    batch_weights,
    degree_groups,
    drawn_graph,
    dropout,
    effective,
    errors,
    initial_weights,
    network,
    neuron_draws,
    sample,
    simulate,
    simulate_sparse,
    squared_error,
    task_of,
    training_groups,
)
from provingground.studies.graph_sampling.targets import concept_target, figure_target

TINY: dict[str, Any] = dict(
    nodes=40, group_share=0.25, degree_1=6, degree_2=2, dim=3, teacher=4, samples=25, width=6,
    steps=12, record=3, lr=0.02, drawn=60, outputs_drawn=2,
)  # fmt: skip


def jit(function):
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


DENSE, SPARSE, ALGORITHM = jit(simulate), jit(simulate_sparse), jit(simulate_algorithm)
DRAWN = jit(lambda cfg, key: drawn_graph(cfg, key))
START = jit(lambda cfg, key: initial_weights(cfg, key, 10, 2))
SAMPLE, BATCH = jit(sample), jit(batch_weights)


def setting(precision="float64", **changes):
    return identity.typed(Config(**(TINY | changes)), precision)


def key(seed=0):
    return seed_key("graph_sampling", seed)


def bits(seed, *shape):
    """Random words by numpy: a program for each shape would have to be compiled."""
    return jnp.asarray(np.random.default_rng(seed).integers(0, 2**32, shape, np.uint32))


FULL_GRAPH, SPARSE_GRAPH, STUBS = jit(random_graph), jit(random_sparse_graph), jit(matched_stubs)


@functools.cache
def graph_in(x64, seed, n, sparse, high, low) -> Graph:
    group = jnp.where(jnp.arange(n) < n // 4, 0, 1)
    degree = jnp.where(group == 0, high, low).astype(int)
    return (SPARSE_GRAPH if sparse else FULL_GRAPH)(bits(seed, high + 1, n), group, degree)


def small_graph(seed=0, n=40, sparse=False, high=6, low=2) -> Graph:
    return graph_in(jax.config.jax_enable_x64, seed, n, sparse, high, low)  # pyright: ignore


PRODUCT = jit(aggregate)


def dense(graph: Graph) -> np.ndarray:
    return np.asarray(PRODUCT(graph.a, jnp.eye(len(graph.group))), float)


def weights(seed, d, m, k) -> tuple[Weights, Fixed]:
    rng = np.random.default_rng(seed)
    w, v, b1, b2, c = (rng.normal(size=s) for s in ((d, m), (m, m), (m,), (m,), (m, k)))
    return Weights(jnp.array(w), jnp.array(v)), Fixed(*map(jnp.array, (b1, b2, c)))


def same(a, b, rtol=1e-9, atol=1e-12, but=()):
    for field in dataclasses.fields(a):
        if field.name not in but:
            left, right = getattr(a, field.name), getattr(b, field.name)
            np.testing.assert_allclose(left, right, rtol, atol, err_msg=field.name)


# ------------------------------------------------------------------------------- graphs


def test_a_random_graph_is_normalised_and_has_its_degrees(double):
    graph = small_graph(n=400, high=10, low=1)
    a = dense(graph)
    np.testing.assert_array_equal(a, a.T)
    edges = a > 0
    assert edges.diagonal().all()
    degree = edges.sum(axis=1) - 1
    np.testing.assert_array_equal(degree, graph.degree)
    np.testing.assert_allclose(a[edges], 1 / np.sqrt(np.outer(degree + 1, degree + 1))[edges])
    group = np.asarray(graph.group)
    assert (degree <= np.where(group == 0, 10, 1)).all()  # loops and doubles are dropped
    assert degree[group == 0].mean() > 9
    assert degree[group == 1].mean() > 0.97


def test_an_edge_of_the_configuration_model_ends_in_a_group_by_its_stubs():
    """The chance that an edge ends in group i is d_i N_i over all stubs (D.6)."""
    group = jnp.where(jnp.arange(300) < 30, 0, 1)
    degree = jnp.where(group == 0, 10, 2).astype(int)
    found = []
    for seed in range(20):
        owner, _, matched = STUBS(bits(seed, 10, 300), degree)
        first, second = np.asarray(group)[np.asarray(owner)[np.asarray(matched)]].reshape(-1, 2).T
        assert len(first) == (300 + 540) // 2
        found.append(np.mean(np.concatenate([second[first == 0], first[second == 0]]) == 0))
    assert np.mean(found) == pytest.approx(300 / 840, abs=0.02)


@pytest.mark.parametrize("degree", [1, 5])
def test_an_odd_number_of_stubs_leaves_one_alone(degree):
    owner, _, matched = STUBS(bits(0, degree, 7), jnp.full(7, degree))
    assert int(matched.sum()) == 7 * degree - 1
    counts = np.bincount(np.asarray(owner)[np.asarray(matched)], minlength=7)
    assert (counts <= degree).all()


def test_more_slots_change_nothing():
    degree = jnp.where(jnp.arange(40) < 10, 6, 2)
    words = bits(0, 32, 40)
    few, many = (STUBS(w, degree) for w in (words[:6], words))
    count = int(degree.sum())
    for a, b in zip(few, many, strict=True):
        np.testing.assert_array_equal(a[:count], b[:count])


# ------------------------------------------------------------------- sparse and dense


@pytest.mark.parametrize("seed", range(3))
def test_lists_of_neighbours_are_the_dense_matrix(seed):
    with jax.enable_x64(True):
        full, listed = small_graph(seed), small_graph(seed, sparse=True)
        np.testing.assert_allclose(dense(listed), dense(full), rtol=1e-12)
        np.testing.assert_array_equal(listed.degree, full.degree)
        np.testing.assert_allclose(column_norms2(listed.a), column_norms2(full.a), rtol=1e-12)
        again = own.graph(np.argwhere(np.triu(np.asarray(full.a), 1) > 0), group=full.group)
        np.testing.assert_allclose(dense(again), dense(full), rtol=1e-12)
        np.testing.assert_allclose(column_norms2(again.a), column_norms2(full.a), rtol=1e-12)


def test_training_with_lists_on_one_s_own_graph_is_dense_training(double):
    graph = DRAWN(setting(), key())
    edges = np.argwhere(np.triu(np.asarray(graph.a), 1) > 0)
    found = SPARSE(setting(), key(), own.graph(edges, group=graph.group))
    same(DENSE(setting(), key()), found, rtol=1e-7, atol=1e-10)


@pytest.mark.slow
def test_a_graph_of_20000_nodes_needs_no_dense_matrix():
    n, hubs = 20_000, 200
    rng = np.random.default_rng(0)
    ends = rng.integers(0, n, (30_000, 2))
    spokes = np.stack([rng.integers(0, hubs, 20_000), rng.integers(0, n, 20_000)], axis=1)
    matrix = sp.coo_array((np.ones(50_000), np.concatenate([ends, spokes]).T), shape=(n, n))
    data = own.graph(matrix)
    assert isinstance(data.a, Sparse)
    cfg = setting("float32", samples=1000, width=4, steps=3, record=2)
    sizes = (("degree_1", 6), ("degree_2", 2), ("drawn", 60), ("width", 4))
    object.__setattr__(cfg, "_sizes", sizes)  # the padding would only cost time
    compiled = SPARSE.lower(cfg, key(), data).compile()
    used: Any = compiled.memory_analysis()
    assert used.temp_size_in_bytes < n * n / 4  # not a bit for each pair of nodes
    probes = compiled(cfg, key(), data)
    assert np.isfinite(probes.test_error).all()
    assert probes.test_error[-1] < probes.test_error[0]
    found = own.summary(data, (0.9, 0.1))
    assert probes.norm_inf == pytest.approx(found["norm_inf"], rel=1e-5)
    assert found["sizes"].sum() == n
    assert found["degrees"][0] > 10 * found["degrees"][1]
    x = rng.normal(size=(n, 2)).astype(np.float32)
    expected = graphs.normalised(graphs.adjacency(matrix)) @ x
    np.testing.assert_allclose(PRODUCT(data.a, jnp.asarray(x)), expected, atol=1e-5)


def test_groups_of_one_s_own_are_checked():
    with pytest.raises(InputError, match="groups"):
        own.graph([(0, 1)], groups=17)
    with pytest.raises(InputError, match="each of 2 nodes"):
        own.graph(sp.csr_array(np.ones((2, 2))), group=[0, 0, 1])
    with pytest.raises(InputError, match="at most 16"):
        own.graph([(0, 1)], group=[0, 16])
    with pytest.raises(InputError, match="2 scales for 3"):
        own.summary(own.graph([(0, 1), (1, 2)], group=[0, 1, 2]), (1.0, 1.0))
    np.testing.assert_array_equal(own.groups_by_degree(np.array([100, 1, 50, 2]), 2), [0, 1, 0, 1])
    np.testing.assert_array_equal(own.groups_by_degree(np.array([3, 3]), 2), [0, 0])


# ------------------------------------------------------------------------------ samplers


def groups_of(group, kept, p_star):
    return samplers.groups(jnp.asarray(group), jnp.asarray(kept), jnp.asarray(p_star))


KEEP = jit(lambda b, g: samplers.sampled_nodes(b, g))


@given(
    cuts=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    fraction=st.floats(0, 1, width=32),
    seed=st.integers(0, 10**6),
)
def test_group_sampling_keeps_its_number_of_each_group(cuts, fraction, seed):
    low, high = sorted(cuts)
    counts = np.array([low, high - low, 30 - high])
    group = np.random.default_rng(seed).permutation(np.repeat(np.arange(3), counts))
    g = groups_of(group, np.full(3, fraction, np.float32), np.ones(3, np.float32))
    words = jnp.asarray(np.random.default_rng(seed).integers(0, 2**32, 30, np.uint32))
    chosen = np.asarray(KEEP(words, g))
    np.testing.assert_array_equal(g.size, counts)
    np.testing.assert_array_equal(np.bincount(group[chosen], minlength=3), g.drawn)
    np.testing.assert_allclose(g.drawn, fraction * counts, atol=0.501)


DRAWS = 4000
SAMPLES = jit(jax.vmap(samplers.group_sample, in_axes=(0, None, None)))


def mean_matrix(drawn, graph):
    """The mean of sampled matrices and its standard error."""
    a = np.asarray(graph.a)
    rows, cols = np.asarray(drawn.rows[:, 0]), np.asarray(drawn.cols[:, 0])
    return a * (rows.T @ cols) / DRAWS, a * np.sqrt((rows**2).T @ cols**2 / DRAWS) / DRAWS**0.5


def test_the_mean_of_sampled_matrices_is_the_effective_one(double):
    graph = small_graph()
    g = groups_of(graph.group, [0.5, 0.8], [0.9, 0.1])
    best = samplers.scaled(g.p_star[g.group], False)
    expected = np.asarray(graph.a) * np.asarray(best.cols[0])
    mean, error = mean_matrix(SAMPLES(bits(7, DRAWS, 1, 40), g, False), graph)
    assert (np.abs(mean - expected) <= 5 * error + 1e-12).all()
    assert np.abs(mean - expected).max() > 0  # it is random


def test_symmetric_sampling_is_biased_as_theory_says(double):
    graph = small_graph()
    f, p = np.array([0.5, 0.8]), np.array([0.9, 0.4])
    g = groups_of(graph.group, f, p)
    mean, error = mean_matrix(SAMPLES(bits(7, DRAWS, 1, 40), g, True), graph)
    group = np.asarray(graph.group)
    root = np.sqrt(p[group])
    best = np.asarray(graph.a) * np.outer(root, root)
    apart = group[:, None] != group[None, :]
    bias = theory.symmetric_mean(f[group][:, None], f[group][None, :])
    assert (np.abs(mean - best * bias)[apart] <= 5 * error[apart] + 1e-12).all()
    np.testing.assert_allclose(mean.diagonal(), best.diagonal(), rtol=0.15)
    found = samplers.group_sample(bits(3, 1, 40), g, True)
    np.testing.assert_array_equal(found.kept, found.rows[2] > 0)  # dropped nodes leave the batch


def test_fast_sampling_is_unbiased(double):
    graph = small_graph()
    cfg = setting(sampler="fastgcn", drawn=30)
    object.__setattr__(cfg, "_sizes", (("drawn", 32),))
    q = samplers.importance(column_norms2(graph.a))
    g = training_groups(cfg, graph.group)
    keys = jax.random.split(jax.random.key(7), DRAWS)
    mean, error = mean_matrix(jit(jax.vmap(lambda k: sample(cfg, k, g, q)))(keys), graph)
    assert (np.abs(mean - np.asarray(graph.a)) <= 5 * error + 1e-12).all()
    np.testing.assert_array_equal(effective(cfg, g).cols, 1)


def test_draws_with_replacement_have_their_counts_and_chances(double):
    q = np.array([0.5, 0.3, 0.15, 0.05])
    spacing = jnp.asarray(np.random.default_rng(0).exponential(size=(DRAWS, 33)))
    count = jit(jax.vmap(samplers.draw_counts, in_axes=(0, None, None)))
    counts = count(spacing, jnp.array(q), jnp.array(20))
    counts = np.asarray(counts)
    assert (counts.sum(axis=1) == 20).all()
    np.testing.assert_allclose(counts.mean(axis=0), 20 * q, atol=0.2)
    expected = 20 * (np.diag(q) - np.outer(q, q))  # of a multinomial distribution
    np.testing.assert_allclose(np.cov(counts.T), expected, atol=0.3)


@pytest.mark.parametrize("sampler", ["groups", "fastgcn"])
def test_layers_share_a_sample_or_have_their_own(double, sampler):
    graph = small_graph()
    q = samplers.importance(column_norms2(graph.a))
    for independent in (False, True):
        cfg = setting(sampler=sampler, independent=independent, kept_1=0.5, kept_2=0.5)
        object.__setattr__(cfg, "_sizes", (("drawn", 64),))
        cols = np.asarray(SAMPLE(cfg, key(), training_groups(cfg, graph.group), q).cols)
        assert (cols[0] == cols[1]).all() != independent


def test_all_nodes_are_the_effective_matrix(double):
    graph = small_graph()
    for symmetric in (False, True):
        cfg = setting(kept_1=1.0, kept_2=1.0, symmetric=symmetric)
        g = training_groups(cfg, graph.group)
        drawn = SAMPLE(cfg, key(), g, jnp.ones(40) / 40)
        same(drawn, effective(cfg, g))


def test_errors_of_rows_and_noise_are_those_of_theory(double):
    """Lemma D.1.2's exact mean, and (1-f)/f, over many draws of the sampler and the features."""
    graph = small_graph()
    f, p = np.array([0.6, 0.6]), np.array([0.9, 0.3])
    g = groups_of(graph.group, f, p)
    best = samplers.scaled(g.p_star[g.group], False).cols[0]
    drawn = SAMPLES(bits(1, DRAWS, 1, 40), g, False).cols[:, 0]
    a, group = np.asarray(graph.a), np.asarray(graph.group)
    wrong = np.abs(np.asarray(drawn) - np.asarray(best)) @ a
    mass = np.stack([a[:, group == i].sum(axis=1) for i in range(2)], axis=1)
    np.testing.assert_allclose(wrong.mean(axis=0), theory.row_error(p, f, mass), rtol=0.03)
    norms = (a**2).sum(axis=0)
    noise = ((np.asarray(drawn) - np.asarray(best)) ** 2 @ norms).mean()
    clean = np.asarray(best) ** 2 @ norms
    assert noise / clean == pytest.approx(theory.aggregation_noise(0.6), rel=0.03)


def test_batches_are_drawn_from_the_labelled_nodes(double):
    lots = jnp.asarray(np.random.default_rng(0).normal(size=40))
    graph, one = small_graph(), jnp.ones((40, 2))
    task = task_of(setting(), lots, graph, one, one, jnp.array(1.0))
    assert int(task.known.sum()) == 25
    np.testing.assert_array_equal(np.sort(np.asarray(task.order)[:25]), np.flatnonzero(task.known))
    whole = BATCH(setting(), bits(0, 1, 40)[0], task)
    np.testing.assert_allclose(whole, np.asarray(task.known) / 25)
    rows, cfg = bits(1, 400, 40), setting(batch=5)
    mean = np.mean(jax.vmap(lambda row: batch_weights(cfg, row, task))(rows), axis=0)
    np.testing.assert_allclose(mean.sum(), 1)
    assert (mean[~np.asarray(task.known)] == 0).all()
    np.testing.assert_allclose(mean[np.asarray(task.known)], 1 / 25, atol=0.02)


# ------------------------------------------------------------------------------- network


def reference(w, fixed, mats, x):
    """(5.4) with dense matrices, in numpy."""
    w, v, b1, b2, c = map(np.asarray, (w.w, w.v, fixed.b1, fixed.b2, fixed.c))
    h = np.maximum(mats[0] @ x @ w + b1, 0)
    h = np.maximum(mats[1] @ h @ v + b2, 0)
    return mats[2] @ h @ c


@pytest.mark.parametrize("sparse", [False, True])
def test_the_network_is_the_dense_reference(double, sparse):
    graph = small_graph(sparse=sparse)
    w, fixed = weights(0, 3, 5, 2)
    x = np.random.default_rng(1).normal(size=(40, 3))
    g = groups_of(graph.group, [0.5, 0.5], [0.9, 0.3])
    s = samplers.group_sample(bits(5, 3, 40), g, symmetric=True)
    a = dense(graph)
    mats = [np.asarray(s.rows[i])[:, None] * a * np.asarray(s.cols[i]) for i in range(3)]
    found = network(w, fixed, graph.a, jnp.array(x), s)
    np.testing.assert_allclose(found, reference(w, fixed, mats, x), rtol=1e-10)


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_are_finite_differences(double, sparse):
    graph = small_graph(sparse=sparse)
    w, fixed = weights(0, 3, 5, 2)
    rng = np.random.default_rng(1)
    x, y = jnp.array(rng.normal(size=(40, 3))), jnp.array(rng.normal(size=(40, 2)))
    g = groups_of(graph.group, [0.5, 0.5], [0.9, 0.3])
    s = samplers.group_sample(bits(5, 1, 40), g)
    drop = dropout(bits(9, 3, 40), 0.4, 40, 5)

    def loss(w):
        return squared_error(network(w, fixed, graph.a, x, s, drop), y, jnp.full(40, 1 / 40))

    grad = jax.grad(loss)(w)
    for _ in range(4):
        way = Weights(jnp.array(rng.normal(size=(3, 5))), jnp.array(rng.normal(size=(5, 5))))

        def along(t, way=way):
            return float(loss(Weights(w.w + t * way.w, w.v + t * way.v)))

        slope = (along(1e-6) - along(-1e-6)) / 2e-6
        product = float(jnp.sum(grad.w * way.w) + jnp.sum(grad.v * way.v))
        assert slope == pytest.approx(product, rel=1e-5, abs=1e-8)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**4))
def test_a_permutation_of_the_nodes_permutes_outputs_and_targets(seed):
    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        graph, (w, fixed) = small_graph(seed % 5), weights(2, 3, 5, 2)
        turn = rng.permutation(40)
        a, x = np.asarray(graph.a), rng.normal(size=(40, 3))
        p = np.where(np.asarray(graph.group) == 0, 0.9, 0.2)
        there, moved = (
            samplers.scaled(jnp.array(p), False),
            samplers.scaled(jnp.array(p[turn]), False),
        )
        turned, y = jnp.array(a[turn][:, turn]), jnp.array(x[turn])
        teacher = random_teacher(3)
        for f in (
            lambda a, s, x: network(w, fixed, a, x, s),
            lambda a, s, x: figure_target(teacher, a, s, x),
            lambda a, s, x: concept_target(teacher, a, s, x),
        ):
            before, after = f(graph.a, there, jnp.array(x)), f(turned, moved, y)
            np.testing.assert_allclose(np.asarray(before)[turn], after, rtol=1e-9, atol=1e-12)


def random_teacher(d):
    from provingground.studies.graph_sampling.targets import features_and_teacher

    return features_and_teacher(jax.random.key(3), 40, d, 4, 2)[2]


def test_targets_are_their_formulas(double):
    graph, t = small_graph(), random_teacher(3)
    a, x = np.asarray(graph.a), np.random.default_rng(0).normal(size=(40, 3))
    p = np.where(np.asarray(graph.group) == 0, 0.9, 0.2)
    hat, s = a * p, samplers.scaled(jnp.array(p), False)
    z = hat @ x @ t.w[0]
    found = figure_target(t, graph.a, s, jnp.array(x))
    np.testing.assert_allclose(found, (np.sin(z) * np.tanh(z)) @ t.c[0], rtol=1e-10)
    r1, r2 = (hat @ f(hat @ x @ t.w[i]) @ t.v[i - 1] for i, f in ((1, np.tanh), (2, np.sin)))
    expected = hat @ (np.cos(r1) * r2) @ t.c[1]
    np.testing.assert_allclose(concept_target(t, graph.a, s, jnp.array(x)), expected, rtol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(t.w[1:], axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(t.v, axis=1), 1)
    assert np.abs(t.c[1]).max() <= 1


def test_dropout_keeps_the_mean_and_its_share(double):
    drop = np.asarray(dropout(bits(0, 16, 500), 0.4, 500, 32))
    assert drop.shape == (2, 500, 32)
    assert (drop == 0).mean() == pytest.approx(102 / 256, abs=0.01)  # 0.4 in eight bits
    assert drop.mean() == pytest.approx(1, abs=0.02)
    assert np.abs(np.corrcoef(drop.reshape(2, -1))[0, 1]) < 0.02
    np.testing.assert_array_equal(drop[..., :5], dropout(bits(0, 3, 500), 0.4, 500, 5))
    np.testing.assert_array_equal(dropout(bits(0, 3, 500), 0.0, 500, 5), 1.0)


def test_initial_weights_have_their_variances(double):
    w, fixed = START(setting(width=64), key())
    for values, variance in ((w.w, 1 / 64), (w.v, 1 / 64), (fixed.b1, 1 / 64), (fixed.b2, 1 / 64),
                             (fixed.c, 1.0)):  # fmt: skip
        assert np.mean(np.asarray(values) ** 2) == pytest.approx(variance, rel=0.5)


def test_neurons_keep_their_numbers_in_a_larger_layout(double):
    z = jnp.asarray(np.random.default_rng(0).normal(size=9 * 12))
    small, large = (jit(lambda z, m=m: neuron_draws(z, m, 3))(z) for m in (5, 9))
    np.testing.assert_array_equal(small[0], large[0][:5])
    np.testing.assert_array_equal(small[1], large[1][:5, :5])
    everything = np.concatenate([np.ravel(large[0]), np.ravel(large[1])])
    assert len(np.unique(everything)) == 9 * 12  # no number is used twice


def test_errors_are_in_the_units_of_the_labels(double):
    graph = small_graph()
    y = jnp.array(np.random.default_rng(0).normal(size=(40, 2)) * 3)
    known = jnp.arange(40) < 10
    task = Task(graph, jnp.zeros((40, 3)), y, jnp.array(2.0), known, jnp.arange(40))
    found = errors(y / 2 + 0.5, task)
    assert float(found["test_loss"]) == pytest.approx(1)
    assert float(found["train_loss"]) == pytest.approx(1)
    assert float(found["test_error"]) == pytest.approx(1 / np.asarray(y)[10:].var(axis=0).mean())


# ------------------------------------------------------------------------------ training


def test_training_learns_and_is_the_same_again(double):
    cfg = setting(steps=60, lr=0.05, dropout=0.0, width=16)
    first, again = DENSE(cfg, key()), DENSE(cfg, key())
    same(first, again, 0, 0)
    assert first.train_loss[-1] < first.train_loss[0] / 2
    np.testing.assert_array_equal(first.step, [0, 30, 60])
    scale = jnp.where(degree_groups(cfg)[0] == 0, 0.9, 0.1)
    largest = float(jnp.max(row_sums(DRAWN(cfg, key()).a, scale)))
    assert first.norm_inf == pytest.approx(largest, rel=1e-5)


BARE: dict[str, Any] = dict(smoothing=0.0, signs=False, decay=0.0, lam_w=0.0, lam_v=0.0)


@pytest.mark.slow
def test_algorithm_2_without_its_parts_is_plain_training(double):
    """Compared where nothing is sampled, since the two draw their samples differently."""
    whole: dict[str, Any] = dict(kept_1=1.0, kept_2=1.0)
    plain = DENSE(setting(dropout=0.0, **whole), key())
    bare = ALGORITHM(setting(**BARE, **whole), key())
    assert abs(plain.test_error[-1] - plain.test_error[0]) > 1e-3
    same(plain, bare, rtol=1e-7, atol=1e-10)


def test_weight_decay_follows_the_outer_loop(double):
    cfg = setting(inner=4, decay=0.1)
    found = [float(decay(cfg, jnp.array(s))) for s in range(13)]
    np.testing.assert_allclose(found, [1] * 4 + [0.9] * 4 + [0.81] * 4 + [0.729])


DISTURB = jit(jax.vmap(lambda cfg, key: perturb(cfg, key, 10), in_axes=(None, 0)))


def test_perturbations_have_their_scales_and_signs(double):
    cfg = setting(width=32, noise=0.5)
    drawn = DISTURB(cfg, jax.random.split(jax.random.key(0), 30))

    def spread(name):
        return np.std(np.asarray(getattr(drawn, name)))

    assert spread("w_rho") == pytest.approx(32**-0.99, rel=0.1)
    assert spread("v_rho") == pytest.approx(32**-0.51, rel=0.1)
    assert spread("v_noise") == pytest.approx(0.5, rel=0.1)
    signs = np.asarray(drawn.sigma)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 0.15
    fixed = DISTURB(
        setting(width=32, signs=False, smoothing=0.0), jax.random.split(jax.random.key(0), 30)
    )
    assert (np.asarray(fixed.sigma) == 1).all()
    assert (np.asarray(fixed.w_rho) == 0).all()


def test_perturbed_weights_and_regulariser_are_their_formulas(double):
    (start, _), (w, _) = weights(0, 3, 32, 2), weights(1, 3, 32, 2)
    rng = np.random.default_rng(2)
    sigma = jnp.asarray(rng.choice([-1.0, 1.0], 32))
    w_rho, v_rho = (jnp.asarray(rng.normal(size=n)) for n in ((3, 32), (32, 32)))
    p = Perturbation(w_rho, v_rho, sigma, w_rho, v_rho)
    lam = 0.64
    found = perturbed(start, w, p, jnp.array(lam))
    turn = np.diag(np.asarray(sigma))
    np.testing.assert_allclose(found.w, 0.8 * (start.w + p.w_rho + w.w @ turn))
    np.testing.assert_allclose(found.v, 0.8 * (start.v + p.v_rho + turn @ w.v))
    columns = np.linalg.norm(0.8 * np.asarray(w.w), axis=0)
    expected = 0.3 * np.sum(columns**4) + 0.2 * np.linalg.norm(0.8 * np.asarray(w.v)) ** 2
    assert float(regulariser(w, jnp.array(lam), 0.3, 0.2)) == pytest.approx(expected)


# -------------------------------------------------------------------------------- theory


def test_the_conditions_have_the_chapter_s_numbers():
    np.testing.assert_allclose(theory.psi([1, 10], [1900, 100]), [2.07, 0.345], rtol=3e-3)
    np.testing.assert_allclose(theory.largest_scale([1, 10], [1900, 100]), [0.241, 1.45], rtol=3e-3)
    np.testing.assert_allclose(theory.psi([1, 10], [1000, 1000]), [0.287, 0.909], rtol=3e-3)
    np.testing.assert_allclose(theory.largest_scale([1, 10], [1000, 1000]), [1.74, 0.55], rtol=3e-3)
    np.testing.assert_allclose(
        theory.largest_scale_symmetric([1, 10], [1900, 100]),
        theory.largest_scale([1, 10], [1900, 100]) ** 2,
    )


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 1000)), min_size=1, max_size=5),
    st.floats(0.01, 2),
    st.floats(1e-3, 1),
)
def test_conditions_are_invariant_and_monotone(parts, p, poly):
    d, n = np.array(parts, float).T
    np.testing.assert_allclose(theory.psi(3 * d, n), theory.psi(d, n))
    np.testing.assert_allclose(theory.psi(d, 7 * n), theory.psi(d, n))
    np.testing.assert_allclose(theory.psi(d[::-1], n[::-1])[::-1], theory.psi(d, n))
    scale = np.full(len(d), p)
    least = theory.least_fraction(d, n, scale, poly)
    assert ((least > 0) & (least < 1)).all()
    assert (theory.least_fraction(d, n, 2 * scale, poly) > least).all()
    assert theory.reached_poly(d, n, scale, least) == pytest.approx(poly)
    assert (theory.least_fraction_symmetric(d, n, scale, poly) < 1).all()
    # with scales at their cap no row of (D.7) sums to more than c_1
    assert (theory.row_mass(d, n) @ theory.largest_scale(d, n)).max() <= 1 + 1e-9


def test_a_higher_degree_needs_more_samples():
    """The first takeaway of (5.10): equal scales and sizes."""
    least = theory.least_fraction([1, 10, 100], [50, 50, 50], [1, 1, 1], 0.1)
    assert (np.diff(least) > 0).all()


def test_row_masses_are_those_of_random_graphs():
    """(D.8) with loops: rows of degree 10 have 0.40 and 1.40, balanced 0.92 and 0.20."""
    for share, expected in ((0.05, (0.404, 1.397)), (0.5, None)):
        sizes = (1000 * share, 1000 * (1 - share))
        mass = theory.row_mass_with_loops((10, 1), sizes)
        if expected:
            np.testing.assert_allclose(mass[0], expected, rtol=2e-3)
        found = []
        group = jnp.where(jnp.arange(1000) < round(sizes[0]), 0, 1)
        for seed in range(3):
            degree = jnp.where(group == 0, 10, 1).astype(int)
            graph = SPARSE_GRAPH(bits(seed, 10, 1000), group, degree)
            by = [np.asarray(row_sums(graph.a, (group == i).astype(float))) for i in range(2)]
            rows = np.asarray(group) == 0
            found.append([b[rows].mean() for b in by])
        np.testing.assert_allclose(np.mean(found, axis=0), mass[0], rtol=0.08)


def test_complexities_of_known_functions():
    assert theory.sample_norm("exp", 0.0) == pytest.approx(1)
    i = np.arange(60)
    terms = (i + 1) ** 1.75 * 2.0**i / np.array([math.factorial(int(k)) for k in i])
    assert theory.sample_norm("exp", 2.0, c=3.0) == pytest.approx(3 * terms.sum())
    first = {"exp": math.exp(1), "sin": math.sinh(1), "cos": math.cosh(1), "tanh": math.tan(1)}
    for name, value in first.items():  # at epsilon = 1 the second term is 1 at i = 0, else 0
        at_zero = 1.0 if name in ("exp", "cos") else 0.0
        assert theory.model_norm(name, 1.0, 1.0) == pytest.approx(value + at_zero, rel=1e-9)
    assert theory.model_norm("tanh", 1.6, 0.1) == math.inf  # beyond pi/2 the series diverges
    assert theory.sample_norm("tanh", 1.6) == math.inf
    assert theory.model_norm("sin", 1.6, 0.1) < theory.model_norm("exp", 1.6, 0.1) < math.inf


def test_table_5_1_and_table_d_2_agree_but_for_one_exponent():
    t = theory.table(500, 300, 0.8, eps0=0.01)
    assert t.lambda_v == pytest.approx(2 * 0.01 * 300 / 500**0.99)
    assert t.sigma_v == pytest.approx(300**-0.51)
    assert t.sigma_w == pytest.approx(500**-0.99)
    small = theory.table(500, 300, 0.8, outer="sin", inner=("sin",), p1=1, p2=1, outputs=1)
    assert small.c == pytest.approx(theory.model_norm("sin", 0.8, 0.01) * math.sqrt(1.64))
    assert small.c_prime == pytest.approx(10 * small.c)
    assert small.c_second == pytest.approx(
        theory.model_norm("sin", small.c_prime, 0.01) * math.sqrt(1.64)
    )
    ours = 2 * 0.01 * 500**2.98 / small.c_0**4
    assert small.lambda_w == pytest.approx(ours)
    assert 2 * 0.01 * 500**2.998 / small.c_0**4 / ours == pytest.approx(500**0.018)  # as printed


def test_labels_needed_grow_as_the_theorem_says():
    base = theory.labels_needed(1.0, 10, 2000, 500)
    assert theory.labels_needed(1.0, 21, 2000, 500) / base == pytest.approx(16)
    assert theory.labels_needed(1.0, 10, 2000, 500**2) / base == pytest.approx(2)
    assert theory.labels_needed(1.0, 10, 2000, 500, eps0=0.005) / base == pytest.approx(4)
    assert theory.labels_needed(2.0, 10, 2000, 500) / base == pytest.approx(2**8 * 1.5**4, rel=1e-3)
    assert theory.largest_eps(2.0) == pytest.approx(theory.largest_eps(1.0) / 4)


@pytest.mark.parametrize("aggregations", [2, 3])
def test_labels_depend_on_at_most_that_many_others(aggregations):
    """Labels share a feature if they are 2h hops apart or less; figD.1."""
    rng = np.random.default_rng(0)
    edges = [(i, (i + 1) % 500) for i in range(500)] + rng.integers(0, 500, (40, 2)).tolist()
    graph = graphs.adjacency([e for e in edges if e[0] != e[1]])
    delta = int(graph.sum(axis=1).max())
    near = graphs.distances(graph, np.arange(500), 2 * aggregations + 1) <= 2 * aggregations
    assert near.sum(axis=1).max() <= theory.dependent_labels(delta, aggregations)
    assert near.sum(axis=1).max() > 1 + delta


def test_the_loss_is_half_the_mean_of_squared_distances():
    f, y = np.array([[1.0, 2.0], [0.0, 5.0]]), np.array([[0.0, 0.0], [3.0, 1.0]])
    by_hand = (1 / 2) * (1 / 2) * (1 + 4) + (1 / 2) * (1 / 2) * (9 + 16)
    assert float(
        squared_error(jnp.asarray(f), jnp.asarray(y), jnp.array([0.5, 0.5]))
    ) == pytest.approx(by_hand)
