from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provingground.data.patterns import noisy, order, orthonormal, permutations, ranks, tally
from provingground.errors import InputError
from provingground.keys import seed_key


def key(seed: Any = 0):
    return seed_key("patterns", seed)


@pytest.mark.parametrize(("count", "dim"), [(1, 1), (3, 7), (6, 6)])
def test_patterns_are_orthonormal(count, dim):
    rows = np.asarray(orthonormal(key(), count, dim))
    np.testing.assert_allclose(rows @ rows.T, np.eye(count), atol=1e-5)


def test_patterns_are_uniform():
    """Every entry of a uniform orthogonal matrix has mean 0, variance 1/d and a fourth moment."""
    keys = jax.vmap(key)(jnp.arange(4000))
    rows = np.asarray(jax.jit(jax.vmap(lambda k: orthonormal(k, 3, 3)))(keys))
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose((rows**2).mean(axis=0), 1 / 3, atol=0.03)
    np.testing.assert_allclose((rows**4).mean(axis=0), 1 / 5, atol=0.03)
    assert abs(np.linalg.det(rows).mean()) < 0.1  # rotations and reflections alike


def test_fewer_patterns_are_the_first_ones():
    np.testing.assert_array_equal(orthonormal(key(), 2, 5), orthonormal(key(), 5, 5)[:2])


def test_too_many_patterns_are_refused():
    with pytest.raises(InputError, match="5 orthogonal patterns"):
        orthonormal(key(), 5, 4)


@pytest.mark.parametrize(("samples", "tokens"), [(1, 1), (1, 9), (12, 4)])
def test_every_sample_is_a_permutation_and_more_samples_change_nothing(samples, tokens):
    order = np.asarray(permutations(key(), samples, tokens))
    np.testing.assert_array_equal(np.sort(order), np.tile(np.arange(tokens), (samples, 1)))
    np.testing.assert_array_equal(order, permutations(key(), samples + 3, tokens)[:samples])


@given(st.lists(st.lists(st.integers(-2, 2), min_size=5, max_size=5), min_size=1, max_size=3))
def test_ranks_and_order_are_those_of_a_stable_sort(values):
    values = np.array(values, float)
    sorted_by = np.argsort(values, axis=-1, kind="stable")
    np.testing.assert_array_equal(order(jnp.asarray(values)), sorted_by)
    np.testing.assert_array_equal(ranks(jnp.asarray(values)), np.argsort(sorted_by, axis=-1))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_tally_counts(pattern):
    found = tally(jnp.array(pattern, jnp.int32), 5)
    np.testing.assert_array_equal(found, np.bincount(pattern, minlength=5))


def test_tokens_are_patterns_and_noise():
    patterns = orthonormal(key(), 3, 8)
    pattern = jnp.arange(600, dtype=jnp.int32).reshape(200, 3) % 3
    noise = jnp.where(pattern == 0, 0.0, 0.5)
    x, norm = noisy(key(1), patterns, pattern, noise)
    away = np.asarray(x - patterns[pattern])
    np.testing.assert_allclose(np.linalg.norm(away, axis=-1), norm, atol=1e-5)
    np.testing.assert_allclose(away[np.asarray(pattern) == 0], 0, atol=1e-6)
    assert away[np.asarray(pattern) > 0].std() == pytest.approx(0.5, rel=0.05)
