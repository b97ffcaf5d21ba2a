import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provingground.nets import attention


def draw(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def test_attention_averages_values():
    logits, values = draw(0, 3, 5), draw(1, 3, 5)
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(
        attention.average(logits, values), (p * values).sum(axis=-1), rtol=1e-5
    )
    masked = jnp.where(jnp.arange(5) < 2, 0.0, -jnp.inf)
    np.testing.assert_allclose(
        attention.average(masked[None].repeat(3, 0), values), values[:, :2].mean(axis=1), rtol=1e-5
    )


def test_differential_attention_subtracts():
    a, b, v = draw(0, 2, 5), draw(1, 2, 5), draw(2, 2, 5)
    found = attention.differential(a, b, jnp.array(0.3), v)
    np.testing.assert_allclose(found, attention.average(a, v) - 0.3 * attention.average(b, v), 1e-5)
    np.testing.assert_allclose(
        attention.differential(a, a, jnp.array(1.0), v), np.zeros(2), atol=1e-6
    )


def test_scores_are_scaled_products():
    q, k = draw(0, 4), draw(1, 3, 4)
    np.testing.assert_allclose(attention.scores(q, k), np.asarray(k) @ np.asarray(q) / 2, rtol=1e-5)


def test_linear_decay_ends_at_zero():
    np.testing.assert_array_equal(attention.linear_decay(4, 0.5), [-1.5, -1.0, -0.5, 0.0])


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 9))
def test_rotary_products_depend_on_the_difference_of_positions(s, t, shift):
    q, k = draw(0, 1, 8), draw(1, 1, 8)

    def product(a, b):
        turned = (attention.rotary(x, jnp.array([p])) for x, p in ((q, a), (k, b)))
        return float(jnp.sum(jnp.multiply(*turned)))

    assert product(s, t) == pytest.approx(product(s + shift, t + shift), abs=1e-4)


def test_rotary_keeps_norms_and_turns_nothing_at_scale_zero():
    x, at = draw(0, 5, 6), jnp.arange(5)
    np.testing.assert_allclose(
        jnp.linalg.norm(attention.rotary(x, at), axis=1), jnp.linalg.norm(x, axis=1), rtol=1e-5
    )
    np.testing.assert_allclose(attention.rotary(x, at, 0.0), x, rtol=1e-6)


@pytest.mark.parametrize("length", [1, 3, 5])
def test_patches_are_windows_newest_first(length):
    x = jnp.arange(1.0, 6.0)
    rows, masked = attention.patches(x, length)
    for end in range(5):
        window = np.asarray(x)[max(0, end - length + 1) : end + 1][::-1]
        np.testing.assert_array_equal(rows[end], np.pad(window, (0, 5 - len(window))))
        assert (float(masked[end]) == 0) == (end >= length - 1)
