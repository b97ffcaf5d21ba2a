import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from provingground.maths import kernels


def network(w, x):
    return jnp.tanh(x @ w["in"]) @ w["out"]


def weights():
    a, b = jax.random.split(jax.random.key(0))
    return {"in": jax.random.normal(a, (3, 4)), "out": jax.random.normal(b, (4,))}


def test_the_jacobian_is_that_of_finite_differences(double):
    w, x = weights(), jax.random.normal(jax.random.key(1), (5, 3))
    j = kernels.jacobian(network, w, x)
    assert j.shape == (5, 16)
    flat, build = ravel_pytree(w)
    for k in (0, 7, 15):
        up, down = (build(flat.at[k].add(s * 1e-6)) for s in (1, -1))
        slope = (network(up, x) - network(down, x)) / 2e-6
        np.testing.assert_allclose(j[:, k], slope, rtol=1e-6, atol=1e-9)


def test_the_kernel_is_the_jacobian_squared_and_its_extremes_are_eigenvalues(double):
    j = kernels.jacobian(network, weights(), jax.random.normal(jax.random.key(1), (5, 3)))
    h = kernels.tangent_kernel(j)
    np.testing.assert_allclose(h, np.asarray(j) @ np.asarray(j).T, rtol=1e-12)
    low, high = kernels.extremes(h)
    values = np.linalg.eigvalsh(np.asarray(h))
    assert (float(low), float(high)) == (pytest.approx(values[0]), pytest.approx(values[-1]))


def test_samples_that_do_not_exist_have_no_eigenvalues(double):
    h = kernels.tangent_kernel(jax.random.normal(jax.random.key(2), (6, 9)))
    exists = jnp.array([True, True, False, True, False, True])
    found = [float(v) for v in kernels.extremes(h, exists)]
    kept = np.asarray(h)[np.ix_(exists, exists)]
    assert found == pytest.approx([*np.linalg.eigvalsh(kept)[[0, -1]]])


def test_lazy_descent_is_descent_with_a_frozen_kernel(double):
    h = kernels.tangent_kernel(jax.random.normal(jax.random.key(3), (4, 7)))
    y, lr, f = jnp.arange(1.0, 5.0), jnp.array(0.05), jnp.zeros(4)
    steps, found = [0, 1, 2, 5], []
    for t in range(6):
        found += [y - f] if t in steps else []
        f = f - lr * h @ (f - y)
    values, vectors = jnp.linalg.eigh(h)
    lazy = kernels.lazy_residual(values, vectors, y, lr, steps)
    np.testing.assert_allclose(lazy, found, rtol=1e-9)


def test_drift_is_relative():
    h = jnp.eye(3)
    assert float(kernels.drift(h, h)) == 0
    assert float(kernels.drift(1.5 * h, h)) == pytest.approx(0.5)
