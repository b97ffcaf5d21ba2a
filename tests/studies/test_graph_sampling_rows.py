from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from small_graphs import (
    DENSE,
    DRAWN,
    DRAWS,
    PRODUCT,
    SAMPLES,
    SPARSE,
    bits,
    dense,
    groups_of,
    jit,
    key,
    same,
    setting,
    small_graph,
)

from provingground.data import graphs
from provingground.errors import InputError
from provingground.studies.graph_sampling import (
    given as given_graphs,
)
from provingground.studies.graph_sampling import (
    rows,
    samplers,
    theory,
)
from provingground.studies.graph_sampling.graph import (
    Sparse,
    column_norms2,
)
from provingground.studies.graph_sampling.model import (
    effective,
    training_groups,
)

# ------------------------------------------------------------------- sparse and dense


@pytest.mark.parametrize("seed", range(3))
def test_lists_of_neighbours_are_the_dense_matrix(seed):
    with jax.enable_x64(True):
        full, listed = small_graph(seed), small_graph(seed, sparse=True)
        np.testing.assert_allclose(dense(listed), dense(full), rtol=1e-12)
        np.testing.assert_array_equal(listed.degree, full.degree)
        np.testing.assert_allclose(column_norms2(listed.a), column_norms2(full.a), rtol=1e-12)
        again = given_graphs.graph(
            np.argwhere(np.triu(np.asarray(full.a), 1) > 0), group=full.group
        )
        np.testing.assert_allclose(dense(again), dense(full), rtol=1e-12)
        np.testing.assert_allclose(column_norms2(again.a), column_norms2(full.a), rtol=1e-12)


def test_training_with_lists_on_one_s_own_graph_is_dense_training(double):
    graph = DRAWN(setting(), key())
    edges = np.argwhere(np.triu(np.asarray(graph.a), 1) > 0)
    found = SPARSE(setting(), key(), given_graphs.graph(edges, group=graph.group))
    same(DENSE(setting(), key()), found, rtol=1e-7, atol=1e-10)


@pytest.mark.slow
def test_a_graph_of_20000_nodes_needs_no_dense_matrix():
    n, hubs = 20_000, 200
    rng = np.random.default_rng(0)
    ends = rng.integers(0, n, (30_000, 2))
    spokes = np.stack([rng.integers(0, hubs, 20_000), rng.integers(0, n, 20_000)], axis=1)
    matrix = sp.coo_array((np.ones(50_000), np.concatenate([ends, spokes]).T), shape=(n, n))
    data = given_graphs.graph(matrix)
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
    found = given_graphs.summary(data, (0.9, 0.1))
    assert probes.norm_inf == pytest.approx(found["norm_inf"], rel=1e-5)
    assert found["sizes"].sum() == n
    assert found["degrees"][0] > 10 * found["degrees"][1]
    x = rng.normal(size=(n, 2)).astype(np.float32)
    expected = graphs.normalised(graphs.adjacency(matrix)) @ x
    np.testing.assert_allclose(PRODUCT(data.a, jnp.asarray(x)), expected, atol=1e-5)


def test_groups_of_one_s_own_are_checked():
    with pytest.raises(InputError, match="groups"):
        given_graphs.graph([(0, 1)], groups=17)
    with pytest.raises(InputError, match="each of 2 nodes"):
        given_graphs.graph(sp.csr_array(np.ones((2, 2))), group=[0, 0, 1])
    with pytest.raises(InputError, match="at most 16"):
        given_graphs.graph([(0, 1)], group=[0, 16])
    with pytest.raises(InputError, match="2 scales for 3"):
        given_graphs.summary(given_graphs.graph([(0, 1), (1, 2)], group=[0, 1, 2]), (1.0, 1.0))
    np.testing.assert_array_equal(
        given_graphs.groups_by_degree(np.array([100, 1, 50, 2]), 2), [0, 1, 0, 1]
    )
    np.testing.assert_array_equal(given_graphs.groups_by_degree(np.array([3, 3]), 2), [0, 0])


# --------------------------------------------------------------------- sampled matrices


ROWS = jit(rows.simulate)


@pytest.mark.parametrize("symmetric", [False, True])
def test_expectations_over_samples_are_their_averages(double, symmetric):
    """Errors of rows, noise, bias and the largest dropped entry, in closed form for one graph,
    against many samples of it; with unequal fractions."""
    graph = small_graph()
    cfg = setting(kept_1=0.7, kept_2=0.5, symmetric=symmetric, p1=0.8, p2=0.3)
    g, a = training_groups(cfg, graph.group), np.asarray(graph.a)
    best = effective(cfg, g)
    star = np.asarray(best.rows[0])[:, None] * a * np.asarray(best.cols[0])
    drawn = SAMPLES(bits(5, DRAWS, 1, 40), g, symmetric)
    r, c = np.asarray(drawn.rows[:, 0]), np.asarray(drawn.cols[:, 0])
    sampled = r[:, :, None] * a * c[:, None, :]
    at = rows.moments(cfg, g)
    i, j = np.arange(40)[:, None], np.arange(40)[None, :]
    seen = star > 0
    for e, f in (
        (at.mean, lambda x: x),
        (at.deviation, lambda x: np.abs(x - 1)),
        (at.square, lambda x: (x - 1) ** 2),
    ):
        found = f(sampled[:, seen] / star[seen])
        error = found.std(axis=0) / DRAWS**0.5
        expected = np.broadcast_to(e(jnp.asarray(i), jnp.asarray(j)), (40, 40))[seen]
        assert (np.abs(found.mean(axis=0) - expected) <= 5 * error + 1e-9).all()
    wrong = np.abs(sampled - star).sum(axis=2)
    one = samplers.Sampled(drawn.rows[3], drawn.cols[3], drawn.kept[3])
    np.testing.assert_allclose(rows.row_errors(graph.a, one, best), wrong[3], rtol=1e-9, atol=1e-12)
    columns = star.sum(axis=1) if symmetric else star.max(axis=0)
    lost = np.where(c == 0, columns, 0.0).max(axis=1)
    assert float(rows.largest_dropped(jnp.asarray(columns), g)) == pytest.approx(
        lost.mean(), abs=5 * lost.std() / DRAWS**0.5 + 1e-9
    )
    assert (wrong.max(axis=1) >= lost - 1e-9).all()  # such a row errs by that at least


@pytest.mark.parametrize("symmetric", [False, True])
def test_samples_of_one_graph_are_as_their_closed_forms_say(double, symmetric):
    """Mean error of a row, and the mean of samples: symmetric ones are biased, others are not."""
    found = ROWS(setting(nodes=400, symmetric=symmetric, kept_1=0.9, kept_2=0.5), key())
    assert float(found.row_error) == pytest.approx(float(found.row_error_theory), rel=0.03)
    assert float(found.bias) == pytest.approx(float(found.bias_theory), rel=0.05)
    assert float(found.noise_ratio) == pytest.approx(float(found.noise_theory), rel=0.15)
    if symmetric:
        assert 0.45 < float(found.bias) < 0.9  # roots of f_u f_k
    else:
        assert float(found.bias_theory) == pytest.approx(1)


def test_errors_of_rows_are_the_same_for_lists_and_dense_matrices(double):
    full, listed = small_graph(), small_graph(sparse=True)
    edges = np.argwhere(np.triu(np.asarray(full.a), 1) > 0)
    again = given_graphs.graph(edges, group=full.group)
    g = groups_of(full.group, [0.5, 0.8], [0.9, 0.3])
    one, best = (
        samplers.group_sample(bits(3, 1, 40), g, True),
        samplers.scaled(g.p_star[g.group], True),
    )
    expected = rows.row_errors(full.a, one, best)
    for other in (listed, again):
        np.testing.assert_allclose(rows.row_errors(other.a, one, best), expected, rtol=1e-9)
        np.testing.assert_allclose(rows.largest_entry(other.a), rows.largest_entry(full.a))


def test_nothing_is_lost_where_all_nodes_are_sampled(double):
    found = ROWS(setting(kept_1=1.0, kept_2=1.0), key())
    for name in (
        "row_error",
        "row_error_max",
        "row_error_theory",
        "dropped_theory",
        "noise_theory",
    ):
        assert float(getattr(found, name)) == pytest.approx(0, abs=1e-12)
    assert float(found.bias) == pytest.approx(1)
    assert float(found.bias_theory) == pytest.approx(1)


def test_training_with_the_effective_matrix_samples_nothing(double):
    """The negative control: with samples the training differs."""
    whole = DENSE(setting(whole=True), key())
    same(whole, DENSE(setting(kept_1=1.0, kept_2=1.0), key()), rtol=1e-9)
    assert abs(float(whole.test_error[-1] - DENSE(setting(), key()).test_error[-1])) > 1e-4


def test_the_labels_that_share_a_feature_are_those_within_four_or_six_steps(double):
    graph = small_graph(sparse=True)
    near = dense(graph) > 0
    for hops in (4, 6):
        within = np.linalg.matrix_power(near.astype(int), hops) > 0
        counted = rows.most_within(graph, hops)
        assert int(counted) == within.sum(axis=1)[: rows.STARTS].max()
        assert int(counted) <= theory.dependent_labels(int(np.max(graph.degree)), hops // 2)


def test_symmetric_samples_are_noisier_and_as_theory_says(double):
    found = ROWS(setting(nodes=400, symmetric=True, kept_1=0.9, kept_2=0.8), key())
    groups = (6, 2), (100, 300), (0.9, 0.1), (0.9, 0.8)
    expected = theory.sampling_noise_symmetric(*groups)
    assert float(found.noise_theory) == pytest.approx(expected, rel=0.1)
    assert expected > 1.2 * theory.sampling_noise(*groups)
    assert theory.sampling_noise_symmetric(*groups[:3], (1.0, 1.0)) == pytest.approx(0)
