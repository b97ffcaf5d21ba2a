import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import (
    ALGORITHM,
    BATCH,
    DENSE,
    DRAWN,
    DRAWS,
    SAMPLE,
    SAMPLES,
    SPARSE_GRAPH,
    START,
    STUBS,
    bits,
    dense,
    groups_of,
    jit,
    key,
    same,
    setting,
    small_graph,
    weights,
)

from provingground.data import graphs
from provingground.studies.graph_sampling import (
    model,
    samplers,
    theory,
)
from provingground.studies.graph_sampling.algorithm2 import (
    Perturbation,
    decay,
    perturb,
    perturbed,
    regulariser,
)
from provingground.studies.graph_sampling.graph import (
    column_norms2,
    row_sums,
)
from provingground.studies.graph_sampling.model import (
    Config,
    Task,
    Weights,
    batch_weights,
    degree_groups,
    dropout,
    effective,
    errors,
    network,
    neuron_draws,
    sample,
    squared_error,
    task_of,
    training_groups,
)
from provingground.studies.graph_sampling.targets import concept_target, figure_target

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


# ------------------------------------------------------------------------------ samplers


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


@given(
    st.tuples(st.integers(1, 99), st.integers(1, 99)).filter(lambda d: d[0] != d[1]),
    st.floats(0.01, 0.99),
)
def test_fastgcn_never_prefers_the_higher_of_two_degrees(degrees, share):
    """Of columns in expectation, whatever the sizes of the groups."""
    low, high = sorted(degrees)
    assert theory.importance_ratio((high, low), (share, 1 - share)) < 1


def test_noise_of_unequal_fractions_is_a_mean_of_both():
    degrees, sizes, p = (10, 1), (100, 1900), (0.9, 0.1)
    equal = theory.sampling_noise(degrees, sizes, p, (0.8, 0.8))
    assert equal == pytest.approx(theory.aggregation_noise(0.8))
    mixed = theory.sampling_noise(degrees, sizes, p, (0.95, 0.65))
    assert theory.aggregation_noise(0.95) < mixed < theory.aggregation_noise(0.65)
    twice = theory.sampling_noise(degrees, sizes, (1.8, 0.2), (0.95, 0.65))
    assert twice == pytest.approx(mixed)


def test_the_theory_of_a_setting_has_its_unequal_fractions():
    """Not those of the smaller one alone: the first group is sampled half, and weighs little."""
    cfg = Config(kept_1=0.5, kept_2=0.9, p1=0.1, p2=0.9)
    found = theory.theory(cfg).values
    assert found["sampling_noise"] < 0.2 < float(theory.aggregation_noise(0.5))
    assert found["poly"] == pytest.approx(
        theory.reached_poly((10, 1), (100, 1900), (0.1, 0.9), (0.5, 0.9))
    )


def test_poly_of_symmetric_sampling_is_that_of_its_condition():
    degrees, sizes, p = (10, 1), (100, 1900), (0.9, 0.1)
    poly = theory.reached_poly_symmetric(degrees, sizes, p, (0.9, 0.8))
    least = theory.least_fraction_symmetric(degrees, sizes, p, poly)
    assert (least <= np.array([0.9, 0.8]) + 1e-12).all()
    assert np.isclose(least, [0.9, 0.8]).any()


@pytest.mark.parametrize("f", [0.5, 0.9, 0.98])
@pytest.mark.parametrize(("share", "p"), [(0.05, (0.9, 0.1)), (0.5, (0.5, 0.5))])
def test_the_condition_in_lemma_d_1_3_is_not_that_of_d_17(share, p, f):
    """It has p for the root of p, and the power -1 for -2; at the settings of the claims."""
    at = (10, 1), (share, 1 - share), p, (f, f)
    ratio = theory.reached_poly(*at) / theory.reached_poly_symmetric(*at)
    assert 0.9 < ratio < 1.75
    assert abs(ratio - 1) > 0.02


def test_fastgcn_s_noise_is_its_number_of_draws(double):
    graph = small_graph()
    cfg = setting(sampler="fastgcn", drawn=30)
    object.__setattr__(cfg, "_sizes", (("drawn", 32),))
    norms = column_norms2(graph.a)
    q, g = samplers.importance(norms), training_groups(cfg, graph.group)
    keys = jax.random.split(jax.random.key(7), DRAWS)
    c = np.asarray(jit(jax.vmap(lambda k: sample(cfg, k, g, q)))(keys).cols[:, 0])
    found = ((c - 1) ** 2 @ np.asarray(norms)).mean() / np.sum(np.asarray(norms))
    assert found == pytest.approx(float(model.noise_theory(cfg, g, q, norms)), rel=0.05)
    assert float(model.noise_theory(cfg, g, q, norms)) == pytest.approx(39 / 30)


def test_a_row_times_features_of_unit_norm_is_at_most_its_sum(double):
    """Lemma D.1.1; where all features are alike the two are equal."""
    a, x = dense(small_graph()), np.random.default_rng(0).normal(size=(40, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    norms, sums = np.linalg.norm(a @ x, axis=1), a.sum(axis=1)
    assert (norms <= sums + 1e-12).all()
    assert norms.min() < 0.9 * sums.max()
    np.testing.assert_allclose(np.linalg.norm(a @ np.tile(x[:1], (40, 1)), axis=1), sums)


def test_the_largest_row_of_theory_is_that_of_rows_drawn_independently():
    """Monte Carlo of its own assumptions: one dropped neighbour counts whole, none vanishes."""
    degrees, sizes, p, f, nodes = (3, 2), (50, 150), (0.9, 0.4), (0.9, 0.8), 40
    rng, d = np.random.default_rng(0), np.array(degrees)
    ends = d * np.array(sizes) / np.sum(d * np.array(sizes))
    largest = []
    for _ in range(4000):
        found = []
        for u, count in enumerate((10, 30)):
            entry = np.array(p) / np.sqrt((d[u] + 1) * (d + 1))
            dropped = [rng.binomial(d[u], ends[i] * (1 - f[i]), count) for i in range(2)]
            loop = np.where(rng.random(count) < f[u], 1 / f[u] - 1, 1) * p[u] / (d[u] + 1)
            rest = sum(entry[i] * (1 / f[i] - 1) * d[u] * ends[i] * f[i] for i in range(2))
            found.append(entry[0] * dropped[0] + entry[1] * dropped[1] + loop + rest)
        largest.append(np.concatenate(found).max())
    expected = theory.largest_row(degrees, sizes, p, f, nodes)
    assert expected == pytest.approx(np.mean(largest), rel=0.01)
    late = theory.largest_row((10, 1), (100, 1900), (0.9, 0.1), (0.99, 0.99), 2000)
    assert late > 10 * theory.reached_poly((10, 1), (100, 1900), (0.9, 0.1), (0.99, 0.99))
