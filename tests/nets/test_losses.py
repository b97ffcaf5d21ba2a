"""Losses against their formulas, and means against NumPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from provingground.nets.losses import hinge, logistic, mean_over


@pytest.mark.parametrize(
    ("loss", "formula"),
    [
        (hinge, lambda m: np.maximum(1 - m, 0)),
        (logistic, lambda m: np.log1p(np.exp(-m))),
    ],
)
def test_a_loss_is_that_of_the_margin(loss, formula):
    f = np.linspace(-3, 3, 13, dtype=np.float32)
    for y in (-np.ones_like(f), np.ones_like(f)):
        np.testing.assert_allclose(loss(jnp.array(y), jnp.array(f)), formula(y * f), atol=1e-6)


def test_a_logistic_loss_is_finite_at_large_margins():
    large = jnp.array([1e4, -1e4])
    np.testing.assert_allclose(logistic(jnp.ones(2), large), [0, 1e4])
    assert np.isfinite(jax.grad(lambda f: logistic(jnp.ones(2), f).sum())(large)).all()


def test_a_mean_is_over_what_exists():
    values = jnp.array([1.0, 2.0, 6.0, jnp.inf])
    assert mean_over(jnp.array([True, True, True, False]), values) == 3
    assert mean_over(jnp.zeros(4, bool), values) == 0
