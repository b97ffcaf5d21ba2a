import dataclasses
import math
import tracemalloc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from provingground import identity
from provingground.errors import InputError
from provingground.keys import seed_key, stream, uniform
from provingground.studies.graph_transformer import any_graph, four, gat, theory
from provingground.studies.graph_transformer import graphs as whole_graphs
from provingground.studies.graph_transformer import nodes as on_nodes
from provingground.studies.graph_transformer.data import (
    Config,
    Graph,
    Nodes,
    confusion_ratio,
    core_distance,
    distances,
    draw,
    kinds,
    labelled,
    random_edges,
    random_nodes,
    ring_counts,
    sample,
    smallest,
    winning_margins,
)
from provingground.studies.graph_transformer.figures import reduction, shared
from provingground.studies.graph_transformer.graphs import read_out
from provingground.studies.graph_transformer.model import (
    Weights,
    attend,
    hinge,
    initial_weights,
    outputs,
    simulate,
)
from provingground.studies.graph_transformer.nodes import Pool, absolute_encoding, output

TINY: dict[str, Any] = dict(
    nodes=48, degree=6, samples=12, sampled=10, bank=4, width=12, steps=30, record=4, lr=0.3,
    dim=6, patterns=5, key_width=7, value_width=8, confusion_ratio=0.25, frac_inconsistent=0.1,
    test_graphs=6,
)  # fmt: skip
KEY = seed_key("graph_transformer", 0)


def jit(function, **how):
    return jax.jit(
        function, compiler_options={"xla_backend_optimization_level": 0}, **how
    )  # compiles fast


COUNTS, NODES, GRAPHS, DRAW = map(jit, (simulate, on_nodes.simulate, whole_graphs.simulate, draw))
SAMPLE, OUTPUT, OUTPUTS, EDGES = map(jit, (sample, output, outputs, random_edges))
SMALLEST = jit(smallest)
INITIAL = jit(initial_weights, static_argnums=2)


def tiny(**changes):
    return identity.typed(Config(**(TINY | changes)), "float64")


def single(**changes):
    return identity.typed(Config(**changes), "float32")


def same(a, b, rtol=1e-9, atol=1e-12):
    for field in dataclasses.fields(a):
        np.testing.assert_allclose(
            getattr(a, field.name), getattr(b, field.name), rtol, atol, err_msg=field.name
        )


# ---------------------------------------------------------------------- one training


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"core": 2, "core_only": 1.0},
        {"attention": 0.0, "bias_scale": 0.0, "core_only": 1.0},
        {"bias_scale": 0.0, "frac_disc": 0.25, "samples": 7},
    ],
    ids=str,
)
def test_training_on_counts_is_training_on_nodes(double, changes):
    counts, nodes = (how(tiny(**changes), seed_key("s", 1)) for how in (COUNTS, NODES))
    assert counts.train_loss[-1] < counts.train_loss[0]
    same(counts, nodes)


def test_noise_changes_the_training_a_little(double):
    plain, noisy = (NODES(tiny(noise=c), KEY) for c in (0.0, 0.01))
    assert 0 < np.abs(plain.test_loss - noisy.test_loss).max() < 0.05


def test_what_is_not_trained_stays(double):
    probes = COUNTS(tiny(attention=0.0, bias_scale=0.0), KEY)
    np.testing.assert_array_equal(probes.dist_bias, 0.0)
    np.testing.assert_allclose(probes.attention_relevant, probes.attention_relevant[0], rtol=1e-12)
    assert np.ptp(COUNTS(tiny(), KEY).dist_bias) > 1e-3


def test_biases_sum_to_zero(double):
    b = np.asarray(COUNTS(tiny(), KEY).dist_bias)
    np.testing.assert_allclose(b.sum(axis=1), 0, atol=1e-14)
    np.testing.assert_array_equal(b[:, 3], 0.0)  # never sampled


def test_labels_beyond_the_count_do_not_matter(double):
    """Rows of the padding are drawn, and are not seen."""
    cfg, rings = tiny(), uniform(KEY, (24, 5, 4)) * 5
    pool = jnp.array([True, True, True, False])
    few, many = (SAMPLE(cfg, seed_key("s", 2), jnp.floor(r), pool) for r in (rings[:9], rings))
    np.testing.assert_array_equal(few, many[:9])


# ------------------------------------------------------------------------ the random graph


def edges_of(cfg, seed=0):
    nodes = random_nodes(cfg, seed_key("s", seed))
    return nodes, np.asarray(EDGES(cfg, seed_key("s", seed), nodes))


@pytest.mark.parametrize("frac_disc", [0.25, 0.4, 0.8])
@pytest.mark.parametrize("core", [1, 2])
def test_the_graph_is_wired_by_votes(frac_disc, core):
    cfg = single(nodes=200, degree=20, frac_disc=frac_disc, confusion_ratio=0.1, core=core)
    nodes, edges = edges_of(cfg)
    pattern, vote = np.asarray(nodes.pattern), np.asarray(nodes.vote)
    n_d = round(frac_disc * 100)
    assert np.bincount(pattern)[:2].tolist() == [n_d, n_d]
    assert np.ptp(np.bincount(pattern)[2:]) <= 1
    assert (edges == edges.T).all()
    assert not edges.diagonal().any()
    plain = pattern > 1
    assert not edges[np.ix_(plain, plain)].any()
    towards = np.stack([edges[:, pattern == k].sum(axis=1) for k in (0, 1)], axis=1)
    own_side = np.where((vote > 0) == (core == 1), 0, 1)
    rows = np.arange(200)
    assert (towards[rows, own_side][plain] == 18).all()
    assert (towards[rows, 1 - own_side][plain] == 2).all()
    kin = towards[rows, own_side][~plain]
    assert ((kin >= 20) & (kin <= 21)).all()
    assert (towards[rows, 1 - own_side][~plain] == 0).all()


def test_topup_adds_edges_where_the_degree_is_too_small():
    for frac_disc, some in ((0.3, False), (0.8, True)):
        cfg = single(nodes=200, degree=20, frac_disc=frac_disc, disc_edges="topup")
        nodes, edges = edges_of(cfg)
        disc = np.asarray(nodes.pattern) < 2
        inside = edges[np.ix_(disc, disc)].sum()
        assert (inside > 0) == some
        assert not some or (edges[disc].sum(axis=1) >= 20).all()


def test_margins_of_the_random_graph_are_those_of_the_theory():
    for frac_disc, confusion in ((0.4, 0.0), (0.16, 0.2)):
        cfg = single(frac_disc=frac_disc, confusion_ratio=confusion)
        nodes, edges = edges_of(cfg)
        dist = jit(distances, static_argnums=1)(jnp.asarray(edges), 2)
        rings = jit(ring_counts, static_argnums=(2, 3))(dist, nodes.pattern, 10, 2)
        margin = np.asarray(winning_margins(rings, nodes.label).mean(axis=0))
        predicted = theory.expected_margin(1000, frac_disc, confusion, 120)
        assert margin[1] == pytest.approx(predicted, rel=1e-5)
        assert core_distance(jnp.asarray(margin)) == 1
        disc, plain = theory.uniform_gaps(1000, frac_disc, confusion, 120)
        share = np.asarray(rings[:, :, :2].sum(axis=2))  # the node and its ring 1
        gap = np.asarray(nodes.vote) * (share[:, 0] - share[:, 1]) / share.sum(axis=1)
        is_disc = np.asarray(nodes.pattern) < 2
        assert gap[is_disc].mean() == pytest.approx(disc, rel=0.02)
        assert gap[~is_disc].mean() == pytest.approx(plain, rel=1e-5)


@pytest.mark.parametrize("frac_disc", [0.25, 0.4, 0.7])
def test_the_largest_core_ring_is_that_of_the_theory(frac_disc):
    cfg = single(frac_disc=frac_disc)
    _, edges = edges_of(cfg)
    predicted = theory.largest_core_ring(1000, frac_disc, 0.05, 120)
    assert edges.sum(axis=1).max() == pytest.approx(predicted, rel=0.06)
    assert int(edges.sum(axis=1).argmax()) < round(frac_disc * 1000)  # a discriminative node's


def test_hubs_change_the_largest_ring_and_no_vote():
    """What `ring_is_no_cause` rests on: all that other nodes see of ring 1 stays as it is."""
    plain, hubs = (
        edges_of(single(nodes=200, degree=20, confusion_ratio=0.1, hubs=h)) for h in (0, 1)
    )
    pattern = np.asarray(plain[0].pattern)
    assert hubs[1].sum(axis=1).max() > 1.5 * plain[1].sum(axis=1).max()
    towards = [
        np.stack([e[pattern > 1][:, pattern == k].sum(axis=1) for k in (0, 1)])
        for _, e in (plain, hubs)
    ]
    np.testing.assert_array_equal(towards[0], towards[1])
    assert hubs[1][0, pattern > 1].all()  # the hub of the first pattern is chosen by all


@pytest.mark.parametrize("frac_disc", [0.3, 0.8])
def test_literal_edges_bring_every_degree_to_what_the_text_asks(frac_disc):
    cfg = single(nodes=200, degree=20, frac_disc=frac_disc, disc_edges="literal")
    nodes, edges = edges_of(cfg)
    pattern = np.asarray(nodes.pattern)
    disc = pattern < 2
    assert (edges == edges.T).all()
    assert (edges[disc].sum(axis=1) >= 20).all()
    assert not edges[np.ix_(pattern == 0, pattern == 1)].any()
    inside = edges[np.ix_(disc, disc)].sum(axis=1)
    assert (inside > 0).any() == (frac_disc > 0.5)  # else the degree is large enough
    assert frac_disc < 0.5 or edges[disc].sum(axis=1).mean() < 30  # and not by much


def test_missed_kinds_are_never_labelled():
    cfg = single(nodes=200, missed=2, samples=100)
    nodes = random_nodes(cfg, KEY)
    order = np.asarray(labelled(cfg, KEY, nodes))
    kind = np.asarray(kinds(nodes))[order[:100]]
    assert not np.isin(kind, [4, 5]).any()
    assert set(kind) >= {1, 2, 6, 7}
    assert sorted(order) == list(range(200))


def test_flips_are_the_given_fraction():
    nodes = random_nodes(single(nodes=500, frac_inconsistent=0.14), KEY)
    assert int(jnp.sum(nodes.vote != nodes.label)) == 70


@given(st.integers(0, 12), st.integers(0, 99))
@settings(max_examples=15)
def test_random_subsets_have_their_size(k, seed):
    bits = jax.random.bits(seed_key("s", seed), (12, 12), jnp.uint32)
    among = jnp.arange(12) % 3 != 0  # eight of them
    found = np.asarray(SMALLEST(bits, among, jnp.full(12, min(k, 8))))
    assert (found.sum(axis=1) == min(k, 8)).all()
    assert not found[:, ~np.asarray(among)].any()


# --------------------------------------------------------------- margins of any graph


def figure_3_2():
    """Node 0 has pattern 3 (here 2) and label +1. At distance 1 the vote is 1 to 3, at distance
    2 it is 4 to 1."""
    pattern = [2, 0, 1, 1, 1, 0, 0, 0, 0, 1]
    edges = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (2, 7), (3, 8), (4, 9)]
    label = [1, 1, -1, -1, -1, 1, 1, 1, 1, -1]
    return edges, np.array(pattern), np.array(label)


def test_the_example_of_figure_3_2():
    edges, pattern, label = figure_3_2()
    data = any_graph.graph(edges, pattern, label)
    margins = winning_margins(data.rings, data.nodes.label)
    np.testing.assert_array_equal(margins[0, 1:3], [-2, 3])


def test_a_summary_knows_the_core_distance_and_the_confusion():
    edges, pattern, label = figure_3_2()
    found = any_graph.summary(any_graph.graph(edges, pattern, label))
    mean = found["margin"]
    assert found["core_distance"] == 1 + int(np.argmax(mean[1:]))
    assert found["frac_disc"] == 0.9


def test_the_confusion_ratio_of_whole_rings():
    rings = jnp.zeros((3, 3, 4)).at[:, :2, 1].set(jnp.array([[6.0, 2.0], [1.0, 3.0], [9.0, 0.0]]))
    y = jnp.array([1.0, -1.0, 1.0])
    found = any_graph.summary(Graph(Nodes(jnp.array([2, 2, 0]), y, y), rings))
    assert found["core_distance"] == 1
    assert found["confusion_ratio"] == pytest.approx((2 / 8 + 1 / 4) / 2)
    assert found["max_ring"] == 9
    np.testing.assert_allclose(found["margin"], [0, (4 + 2 + 9) / 3, 0, 0], rtol=1e-6)


@given(st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_margins_do_not_depend_on_the_names_of_nodes(random):
    edges, pattern, label = figure_3_2()
    order = np.array(random.sample(range(10), 10))
    plain = any_graph.summary(any_graph.graph(edges, pattern, label))
    new_pattern, new_label = np.empty(10, int), np.empty(10, int)
    new_pattern[order], new_label[order] = pattern, label
    renamed = any_graph.graph([(order[a], order[b]) for a, b in edges], new_pattern, new_label)
    for name, value in any_graph.summary(renamed).items():
        np.testing.assert_allclose(value, plain[name], atol=1e-6)


def test_dense_and_sparse_routes_agree():
    cfg = single(nodes=90, degree=4, patterns=5, frac_disc=0.5)
    nodes, edges = edges_of(cfg)
    dense = ring_counts(distances(jnp.asarray(edges), 2), nodes.pattern, 5, 2)
    data = any_graph.graph(sp.csr_array(edges), np.asarray(nodes.pattern), np.asarray(nodes.label))
    np.testing.assert_array_equal(data.rings, dense)
    np.testing.assert_array_equal(data.nodes.vote, nodes.vote)


@pytest.mark.parametrize(
    "wrong",
    [
        dict(label=[1, 0, 1]),
        dict(pattern=[0, 1]),
        dict(pattern=[0.5, 1.0, 2.0]),
        dict(edges=[(0, 7)]),
        dict(edges=sp.csr_array((4, 4))),
    ],
    ids=str,
)
def test_wrong_graphs_of_ones_own_are_refused(wrong):
    good = dict(edges=[(0, 1), (1, 2)], pattern=[0, 1, 2], label=[1, -1, 1])
    with pytest.raises(InputError):
        any_graph.graph(**(good | wrong))


def big_graph(n=20_000, seed=0):
    """Nodes of five patterns; others are wired to three nodes of the pattern of their label."""
    rng = np.random.default_rng(seed)
    pattern = rng.integers(0, 5, n)
    label = np.where(pattern == 0, 1, np.where(pattern == 1, -1, rng.choice([-1, 1], n)))
    sides = {1: np.flatnonzero(pattern == 0), -1: np.flatnonzero(pattern == 1)}
    edges = [
        np.stack([np.repeat(mine, 3), rng.choice(sides[y], 3 * len(mine))], axis=1)
        for y in (1, -1)
        for mine in [np.flatnonzero(label == y)]
    ]
    return np.concatenate(edges), pattern, label


def test_a_graph_of_20000_nodes_needs_no_dense_matrix():
    edges, pattern, label = big_graph()
    tracemalloc.start()
    data = any_graph.graph(edges, pattern, label)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000**2 / 4  # a quarter of a byte for each pair of nodes
    found = any_graph.summary(data)
    assert found["core_distance"] in (1, 2)
    assert found["confusion_ratio"] == 0
    assert found["frac_inconsistent"] < 0.01
    cfg = single(samples=100, sampled=10, bank=4, width=40, steps=150, record=3, lr=0.2)
    probes = jit(simulate)(cfg, KEY, data)
    assert probes.test_error[-1] < 0.05 < probes.test_error[0]


def test_a_graph_with_features_of_ones_own():
    edges, pattern, label = big_graph(300)
    x = np.eye(8)[pattern] + 0.05 * np.random.default_rng(1).normal(size=(300, 8))
    data = any_graph.features(edges, x, label, pattern, sampled=12, bank=3)
    pool = data.samples
    assert pool.ids.shape == (300, 3, 13)
    np.testing.assert_array_equal(pool.ids[:, :, 0], np.arange(300)[:, None] * np.ones((1, 3)))
    assert (np.asarray(pool.dist)[np.asarray(pool.exists)] <= 2).all()
    one = np.asarray(pool.ids[5, 0])[np.asarray(pool.exists[5, 0])]
    assert len(set(one)) == len(one)  # without replacement
    cfg = single(samples=100, width=40, steps=150, record=3, lr=0.2)
    probes = NODES(cfg, KEY, data)
    assert probes.test_error[-1] < 0.1 < probes.test_error[0]


# ----------------------------------------------------------------------------- sampling


@given(st.lists(st.integers(0, 7), min_size=4, max_size=4), st.integers(0, 99))
@settings(max_examples=25)
def test_an_urn_gives_no_more_than_it_has(contents, seed):
    draws = 9
    found = np.asarray(DRAW(uniform(seed_key("s", seed), (draws,)), jnp.asarray(contents)))
    assert (found >= 0).all()
    assert (found <= contents).all()
    assert found.sum() == min(draws, sum(contents))


def test_samples_are_hypergeometric():
    contents, draws = np.array([3, 0, 9, 20]), 8
    u = uniform(KEY, (20000, draws))
    found = np.asarray(jax.vmap(draw, in_axes=(0, None))(u, jnp.asarray(contents)))
    total = contents.sum()
    share = contents / total
    np.testing.assert_allclose(found.mean(axis=0), draws * share, rtol=0.02)
    variance = draws * share * (1 - share) * (total - draws) / (total - 1)
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.05)


def test_the_confusion_ratio_of_samples():
    seen = jnp.zeros((3, 2, 3, 4), jnp.int8)
    seen = seen.at[0, :, :2, 1].set(jnp.array([[3, 1], [2, 2]], jnp.int8))  # label +1
    seen = seen.at[1, 0, :2, 1].set(jnp.array([4, 0], jnp.int8))  # label -1: all confused
    nodes = Nodes(jnp.array([2, 2, 0]), jnp.array([1.0, -1.0, 1.0]), jnp.array([1.0, -1.0, 1.0]))
    found = confusion_ratio(seen, nodes, jnp.array(1), jnp.array([True, True, True]))
    assert float(found) == pytest.approx((0.25 + 0.5 + 1.0) / 3)


# ------------------------------------------------------------------ network and gradients


def some_weights(cfg, seed=0):
    w = INITIAL(cfg, seed_key("w", seed), cfg.patterns)
    b = 0.3 * uniform(stream(seed_key("w", seed), "b"), (cfg.reach + 2,), -1.0, 1.0)
    return dataclasses.replace(w, b=b, w_o=50 * w.w_o)


def test_keys_and_values_start_near_orthonormal(double):
    w = INITIAL(tiny(), KEY, 5)
    for got, width, error in ((w.w_k, 7, 0.2), (w.w_q, 7, 0.2), (w.w_v, 8, 0.1)):
        np.testing.assert_allclose(np.linalg.norm(got - np.eye(width, 5), axis=0), error)
    np.testing.assert_allclose(np.abs(w.a), 12**-0.5)


@jit
@jax.grad
def BIAS_GRADIENT(w: Weights, cfg, pattern, counts, y):
    return hinge(cfg, y, outputs(cfg, w, pattern, counts)[0]).sum()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_the_gradient_of_the_bias_is_the_closed_form(double, seed, y):
    cfg = tiny()
    w, counts = some_weights(cfg, seed), jnp.floor(uniform(seed_key("c", seed), (1, 5, 4)) * 6)
    pattern = jnp.array([seed % 5])

    gradient = BIAS_GRADIENT(w, cfg, pattern, counts, jnp.array([y])).b
    f, p = OUTPUTS(cfg, w, pattern, counts)
    on = w.w_o @ w.w_v @ p[0].sum(axis=1) > 0
    values = jnp.einsum("m,mb,bk->k", jnp.where(on, w.a, 0.0), w.w_o, w.w_v)
    expected = theory.bias_gradient(p[0], values, y, float(f[0]))
    np.testing.assert_allclose(gradient, expected, atol=1e-14)
    assert abs(expected.sum()) < 1e-14
    assert np.abs(expected).max() > 1e-5 or y * float(f[0]) >= 1


def test_attention_is_the_envelope_of_the_proof(double):
    counts = np.array([[1, 3, 2, 0], [0, 1, 4, 0], [0, 2, 5, 0.0]])
    b, growth = np.array([0.1, 0.7, -0.4, 0.0]), 1.3
    for relevant, confusion in ((0, 1), (1, 0)):
        scores = np.zeros(3)
        scores[relevant] = growth
        p = attend(jnp.asarray(scores), jnp.asarray(b), jnp.asarray(counts))
        found = theory.attention_envelope(counts, b, growth, relevant, confusion, True)
        assert float(p[relevant].sum()) == pytest.approx(found, rel=1e-12)
    p = attend(jnp.array([growth, growth, 0.0]), jnp.asarray(b), jnp.asarray(counts))
    found = theory.attention_envelope(counts, b, growth, 0, 1, False)
    assert float(p[0].sum()) == pytest.approx(found, rel=1e-12)
    assert theory.attention_envelope(counts, b, 40.0, 0, 1, True) == pytest.approx(1)
    share = np.einsum("kz,z->k", counts, np.exp(b))[:2]  # epsilon_S of what is seen
    assert theory.attention_envelope(counts, b, 40.0, 0, 1, False) == pytest.approx(
        share[0] / share.sum()
    )


@given(st.randoms(use_true_random=False), st.integers(0, 99))
@settings(max_examples=15)
def test_the_order_of_a_pool_does_not_matter(random, seed):
    with jax.enable_x64(True):
        cfg = tiny()
        w = INITIAL(cfg, seed_key("w", seed), cfg.dim)
        x = uniform(seed_key("x", seed), (9, cfg.dim))
        order = jnp.asarray(random.sample(range(9), 9))
        dist = jnp.asarray([0, 1, 1, 2, 2, 2, 1, 2, 2])
        exists = jnp.arange(9) < 7
        pool = Pool(jnp.arange(9), dist, exists)
        f, p = OUTPUT(cfg, w, x[0], x, pool)
        shuffled = Pool(jnp.arange(9)[order], dist[order], exists[order])
        g, q = OUTPUT(cfg, w, x[0], x, shuffled)
        np.testing.assert_allclose(f, g, rtol=1e-9)
        np.testing.assert_allclose(p[order], q, rtol=1e-9)
        np.testing.assert_array_equal(p[7:], 0.0)


# -------------------------------------------------------------- other encodings, graph level


def test_absolute_encodings():
    ring = np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0) > 0
    path = np.eye(12, k=1) + np.eye(12, k=-1) > 0
    for name in ("laplacian", "walk", "degree"):
        cfg = single(absolute=name, positions=2)
        code = np.asarray(absolute_encoding(cfg, jnp.asarray(path)))
        assert code.shape == (12, 2)
        mean_square = (code**2).mean(axis=0)
        assert ((np.abs(mean_square - 1) < 1e-4) | (mean_square == 0)).all()
    steady = np.asarray(absolute_encoding(single(absolute="degree"), jnp.asarray(ring)))
    np.testing.assert_allclose(steady, 1.0)
    walk = np.asarray(absolute_encoding(single(absolute="walk", positions=2), jnp.asarray(ring)))
    np.testing.assert_allclose(walk[:, 1], 1.0, rtol=1e-6)
    np.testing.assert_allclose(walk[:, 0], 0.0, atol=1e-6)  # none comes back after one step


def test_a_training_takes_other_encodings():
    probes = NODES(identity.typed(Config(**TINY, absolute="laplacian"), "float32"), KEY)
    assert probes.train_loss[-1] < probes.train_loss[0]


def test_whole_graphs_are_learned():
    changes: dict[str, Any] = dict(samples=40, steps=200, frac_inconsistent=0.0, width=40, lr=2.0)
    changes |= dict(nodes=60, degree=8, confusion_ratio=0.1)
    probes = GRAPHS(single(**(TINY | changes)), KEY)
    assert probes.train_loss[-1] < 0.1
    assert probes.test_error[-1] < 0.2
    core = 1 + int(np.argmax(probes.margin[1:]))
    assert 1 + int(np.argmax(probes.dist_bias[-1, 1:])) == core


def test_scores_of_a_gat_are_sums(double):
    """With the two halves of its attention vector at zero a GAT is a GCN on ring 1."""
    cfg = tiny()
    w = INITIAL(cfg, seed_key("w", 0), 5)
    counts = jnp.floor(uniform(seed_key("c", 0), (3, 5, 4)) * 6)
    pattern = jnp.array([0, 2, 4])
    none = jnp.zeros(cfg.value_width)
    still = gat.Weights(none, none, w.w_v, w.w_o, w.b, w.a)
    f, p = gat.outputs(cfg, still, pattern, counts, jax.nn.relu)
    g, q = outputs(tiny(attention=0.0), w, pattern, counts)
    np.testing.assert_allclose(f, g, rtol=1e-6)
    np.testing.assert_allclose(p, q, rtol=1e-6)
    u = uniform(seed_key("u", 0), (2, cfg.value_width))
    moved = gat.Weights(u[0], u[1], w.w_v, w.w_o, w.b, w.a)
    assert np.abs(gat.outputs(cfg, moved, pattern, counts, jax.nn.relu)[1] - p).max() > 0.01


def test_a_gat_learns_on_ring_1():
    probes = jit(gat.simulate)(single(**(TINY | dict(frac_inconsistent=0.0))), KEY)
    assert probes.train_loss[-1] < probes.train_loss[0]


def test_four_classes_are_wired_by_class():
    cfg = identity.typed(four.Config(nodes=200, degree=18, confusion_ratio=1 / 6), "float32")
    graph = jit(four.random_graph)(cfg, KEY)
    pattern, kind = np.asarray(graph.pattern), np.asarray(graph.kind)
    assert np.bincount(pattern)[:4].tolist() == [20] * 4
    rings = np.asarray(graph.rings[:, :4, 1])
    plain = pattern > 3
    own = rings[np.arange(200), kind]
    assert (own[plain] == 15).all()
    assert (rings.sum(axis=1)[plain] == 18).all()
    assert (own[~plain] >= 18).all()
    assert (np.asarray(four.winning_margins(graph))[plain, 1] == 14).all()
    signs = np.asarray(four.labels(jnp.arange(4)))
    assert signs.tolist() == [[1, 1], [1, -1], [-1, 1], [-1, -1]]


def test_four_classes_are_learned():
    settings: dict[str, Any] = dict(TINY, frac_inconsistent=0.0, samples=40, steps=150, width=40)
    settings |= dict(nodes=120, degree=12, lr=1.0, patterns=6, confusion_ratio=0.1, frac_disc=0.4)
    probes = jit(four.simulate)(identity.typed(four.Config(**settings), "float32"), KEY)
    assert probes.test_error[-1] < 0.3 < probes.test_error[0]


def test_the_margin_of_the_hinge_loss():
    cfg = dataclasses.replace(Config(), hinge_margin=3.0)
    y, f = jnp.array([1.0, -1.0, 1.0]), jnp.array([0.5, 0.5, 4.0])
    np.testing.assert_allclose(hinge(cfg, y, f), [2.5, 3.5, 0.0])


def test_long_keys_lock_attention():
    """The start of section 3.5.1 as printed: the own pattern has all of the attention."""
    cfg = single(**(TINY | dict(key_scale=400.0, key_error=0.0)))
    w = INITIAL(cfg, KEY, 5)
    p = attend((w.w_q.T @ w.w_k)[2], w.b, jnp.ones((5, 4)))
    np.testing.assert_allclose(p.sum(axis=1), [0, 0, 1, 0, 0], atol=1e-6)


def test_read_outs():
    f = jnp.array([1.0, -2.0, 4.0])
    assert read_out(Config(readout="mean"), f) == 1
    assert read_out(Config(readout="sum"), f) == 3


# ------------------------------------------------------------------------------- theory


def test_bounds_say_what_the_paper_says():
    at = dict(value_error=0.1, max_ring=120, nodes=1000)
    without = theory.labels_needed(0.0, np.array([0.2, 0.8]), **at)
    assert without[0] == without[1]  # with the core ring given there is no γ_d at ε_S = 0
    ring = theory.largest_core_ring(1000, np.array([0.4, 0.8]), 0.0, 120)
    law = theory.labels_needed(0.0, np.array([0.4, 0.8]), **{**at, "max_ring": ring})
    assert law[0] / law[1] == pytest.approx(4, rel=0.2)  # but the ring has: D/γ_d
    assert theory.labels_needed(0.2, 0.4, **at) > theory.labels_needed(0.1, 0.4, **at)
    assert theory.labels_needed(0.5, 0.0, **at) == np.inf
    expected = 14401 * math.log(1000) / (0.9 - 2 * 0.05 * 0.6) ** 2
    assert theory.labels_needed(0.05, 0.4, **at) == pytest.approx(expected)
    ratio = theory.iterations_gcn(0.01, 0.1, 0.2, 0.4) / theory.iterations(0.01, 0.1, 0.2)
    assert ratio == pytest.approx(0.4**-2)
    assert theory.iterations(0.01, 0.0, 0.0) == pytest.approx(10)
    assert theory.final_loss(0.1) == 0.2
    assert theory.labels_needed_gcn(0.3, **at) == np.inf  # σ = 0.1 > γ_d²
    assert theory.attention_limits(0.05) == (1.0, 0.95)
    assert theory.mean_attention(0.05, 0.4) == pytest.approx(0.97)


def test_the_chance_to_cover_all_kinds():
    rng = np.random.default_rng(0)
    for labels, frac_disc in ((84, 0.4), (40, 0.2)):
        kinds = rng.integers(0, 10**6, (4000, labels)) % 1000  # of 1000 nodes
        plain = np.where(kinds < 1000 * frac_disc, -1, kinds % 16)
        covered = [len(set(row) - {-1}) == 16 for row in plain]
        assert theory.chance_to_cover(labels, frac_disc, 10) == pytest.approx(
            np.mean(covered), abs=0.04
        )
    assert theory.labels_to_cover(0.4, 10) == pytest.approx(84.3, abs=0.1)
    assert theory.chance_to_cover(theory.labels_to_cover(0.7, 10), 0.7, 10) == pytest.approx(0.5)


# ------------------------------------------------------------------------- measurements


def test_times_are_interpolated_and_never_made_up():
    loss = np.array([[1.0, 0.5, 0.0, 0.0], [1.0, 0.9, 0.8, 0.7], [0.0, 0.0, 0.0, 0.0]])
    ds = xr.Dataset(
        {"test_loss": (("seed", "step"), loss)}, {"step": [0, 10, 20, 30], "seed": [0, 1, 2]}
    )
    found = shared.time_of(ds)
    np.testing.assert_allclose(found, [10 + 10 * 0.499 / 0.5, np.nan, 0.0])
    other = ds.drop_vars("step").assign(
        step_values=(("seed", "step"), np.array([[0, 10, 20, 30]] * 3))
    )
    np.testing.assert_allclose(shared.time_of(other), found)


def test_forms_of_training_are_compared_with_all_trainings():
    """The measure of `reduction` counts trainings that do not come to an end too."""
    loss = np.array([[1.0, 0.5, 0.0], [1.0, 0.9, 0.8], [1.0, 0.6, 0.1]])
    both = np.stack([loss, 1.1 * loss])
    ds = xr.Dataset(
        {"test_loss": (("form", "seed", "step"), both)},
        {"form": ["counts", "noisy nodes"], "seed": [0, 1, 2], "step": [0, 10, 20]},
    )
    assert reduction.slower(ds, "noisy nodes").value == pytest.approx(1.1)
