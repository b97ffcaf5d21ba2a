import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from provingground.data import graphs
from provingground.errors import InputError

EDGES = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30),
    )
)


def all_distances(dense, limit):
    """Floyd and Warshall, cut at the limit."""
    n = len(dense)
    dist = np.where(dense, 1.0, np.inf)
    np.fill_diagonal(dist, 0)
    for k in range(n):
        dist = np.minimum(dist, dist[:, k : k + 1] + dist[k : k + 1])
    return np.minimum(dist, limit)


@given(EDGES, st.integers(1, 6))
def test_distances_are_shortest_paths(graph, limit):
    n, edges = graph
    matrix = graphs.adjacency(edges, n)
    found = graphs.distances(matrix, np.arange(n), limit)
    np.testing.assert_array_equal(found, all_distances(matrix.toarray(), limit))


@given(EDGES)
def test_edge_lists_and_matrices_make_the_same_graph(graph):
    n, edges = graph
    matrix = graphs.adjacency(edges, n)
    dense = matrix.toarray()
    assert (dense == dense.T).all()
    assert not dense.diagonal().any()
    for kind in (sp.csr_array, sp.coo_array, sp.csc_matrix):
        one_way = kind(np.triu(dense) * 3.0)  # weights and one direction alone
        np.testing.assert_array_equal(graphs.adjacency(one_way).toarray(), dense)


@given(EDGES, st.integers(1, 4), st.integers(1, 5))
def test_rings_hold_every_node_once_whatever_the_blocks(graph, groups, block):
    n, edges = graph
    matrix, group = graphs.adjacency(edges, n), np.arange(n) % groups
    rings = graphs.ring_counts(matrix, group, groups, limit=3)
    members = np.bincount(group, minlength=groups)
    np.testing.assert_array_equal(rings.sum(axis=2), np.tile(members, (n, 1)))
    parts = [d for _, d in graphs.distance_blocks(matrix, 3, block)]
    np.testing.assert_array_equal(np.concatenate(parts), graphs.distances(matrix, np.arange(n), 3))


@given(EDGES, st.randoms(use_true_random=False))
def test_rings_do_not_depend_on_the_names_of_nodes(graph, random):
    n, edges = graph
    order = np.array(random.sample(range(n), n))
    group = np.arange(n) % 2
    renamed = [(order[a], order[b]) for a, b in edges]
    plain = graphs.ring_counts(graphs.adjacency(edges, n), group, 2, 3)
    other_group = np.empty(n, int)
    other_group[order] = group
    other = graphs.ring_counts(graphs.adjacency(renamed, n), other_group, 2, 3)
    np.testing.assert_array_equal(other[order], plain)


@given(EDGES, st.booleans())
def test_normalised_adjacency(graph, loops):
    n, edges = graph
    matrix = graphs.adjacency(edges, n)
    a = matrix.toarray() + (np.eye(n) if loops else 0)
    degree = a.sum(axis=1)
    scale = np.where(degree > 0, degree, 1) ** -0.5
    expected = scale[:, None] * a * scale
    found = graphs.normalised(matrix, loops).toarray()
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.linalg.eigvalsh(found).max() <= 1 + 1e-9


@pytest.mark.parametrize(
    ("given", "nodes"),
    [
        ([(0, 1, 2)], None),
        ([(0, 5)], 3),
        ([(-1, 0)], None),
        ([(0.5, 1.0)], None),
        (sp.csr_array((2, 3)), None),
        (sp.csr_array((3, 3)), 4),
    ],
    ids=str,
)
def test_wrong_graphs_are_refused(given, nodes):
    with pytest.raises(InputError):
        graphs.adjacency(given, nodes)


@pytest.mark.parametrize("limit", [0, 127])
def test_limits_outside_a_byte_are_refused(limit):
    with pytest.raises(InputError):
        graphs.distances(graphs.adjacency([(0, 1)]), [0], limit)
