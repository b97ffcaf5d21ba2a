import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from provingground.maths.sums import sums


@given(st.integers(1, 6), st.lists(st.integers(1, 4), max_size=2), st.integers(1, 4))
def test_they_are_the_sums_over_the_first_axis(rows, shape, count):
    rng = np.random.default_rng(rows + count)
    terms = [rng.normal(size=(rows, *shape)).astype(np.float32) for _ in range(count)]
    for found, term in zip(sums(*map(jnp.asarray, terms)), terms, strict=True):
        np.testing.assert_allclose(found, term.sum(axis=0), rtol=1e-5, atol=1e-5)


def test_they_are_batched():
    x, y = jnp.arange(24.0).reshape(2, 3, 4), jnp.ones((3, 4))
    first, second = jax.vmap(lambda x: sums(x, x * y))(x)
    np.testing.assert_array_equal(first, x.sum(axis=1))
    np.testing.assert_array_equal(second, x.sum(axis=1))


def test_their_derivative_is_one():
    x = jnp.arange(6.0).reshape(3, 2)
    found = jax.grad(lambda x: sums(x, x**2)[1].sum())(x)
    np.testing.assert_allclose(found, 2 * x)
