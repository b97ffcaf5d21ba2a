"""Closed forms against Monte Carlo in float64, their limits and their symmetries."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provingground.maths.gaussian import f1, f2, f3, f4, f5, kernel

A, B, C = 0.7, 0.4, 1.3
X = np.random.default_rng(0).normal(size=(3, 1_000_000)) * np.sqrt([[A], [B], [C]])
KAPPAS = pytest.mark.parametrize("kappa", [0.0, 0.1, 0.6, 1.0])
variance, slope = st.floats(1e-6, 1e3), st.floats(0, 1)


def sigma(x, kappa):
    return np.where(x >= 0, x, kappa * x)


def dsigma(x, kappa):
    return np.where(x >= 0, 1.0, kappa)


def close(draws, expected):
    error = draws.std() / math.sqrt(len(draws))
    assert abs(draws.mean() - expected) < 4.5 * error


@KAPPAS
def test_the_five_expectations(kappa):
    x, y, z = X
    close(x * sigma(x, kappa) * dsigma(x, kappa), f1(A, kappa))
    close(x * sigma(x + y, kappa) * dsigma(x + y, kappa), f2(A, B, kappa))
    close((x + y) * sigma(x, kappa) * dsigma(x + y, kappa), f3(A, B, kappa))
    close(x * sigma(x + y, kappa) * dsigma(x + y + z, kappa), f4(A, B, C, kappa))
    close(y * sigma(x, kappa) * dsigma(x + y + z, kappa), f5(A, B, C, kappa))


@KAPPAS
@pytest.mark.parametrize("rho", [-0.8, 0.0, 0.3, 1.0])
def test_the_kernel(kappa, rho):
    u, w = X[0] / A**0.5, X[1] / B**0.5
    w = rho * u + math.sqrt(1 - rho**2) * w
    close(sigma(1.7 * u, kappa) * sigma(0.6 * w, kappa), kernel(1.7, 0.6, rho, kappa))


@given(variance, variance, variance, slope)
def test_what_vanishes_may_be_left_out(a, b, c, kappa):
    assert f3(a, 0.0, kappa) == pytest.approx(f1(a, kappa))
    assert f4(a, b, 0.0, kappa) == pytest.approx(f2(a, b, kappa))
    assert f5(a, b, c, 1.0) == 0
    assert f5(a, 0.0, c, kappa) == 0
    assert kernel(a, a, 1.0, kappa) == pytest.approx(f1(a**2, kappa))


@given(variance, variance, variance, slope, st.floats(0.1, 10))
def test_expectations_scale_with_the_variances(a, b, c, kappa, s):
    assert f3(s * a, s * b, kappa) == pytest.approx(s * f3(a, b, kappa))
    assert f4(s * a, s * b, s * c, kappa) == pytest.approx(s * f4(a, b, c, kappa))
    assert f5(s * a, s * b, s * c, kappa) == pytest.approx(s * f5(a, b, c, kappa))


@given(variance, variance, variance, slope)
def test_a_sum_may_be_split(a, b, c, kappa):
    """F3 is linear in what it averages: the parts of x1 + x2 are an F4 and an F5."""
    parts = f4(a, 0.0, b, kappa) + f5(a, b, 0.0, kappa)
    assert parts == pytest.approx(f3(a, b, kappa))
    halves = 2 * f5(a, b / 2, b / 2 + c, kappa)
    assert halves == pytest.approx(f5(a, b, c, kappa), rel=1e-6)


@given(st.floats(-1, 1), slope)
def test_the_kernel_is_symmetric_and_bounded(rho, kappa):
    assert kernel(2.0, 0.5, rho, kappa) == pytest.approx(kernel(0.5, 2.0, rho, kappa))
    assert abs(kernel(1.0, 1.0, rho, kappa)) <= f1(1.0, kappa) + 1e-12
    assert kernel(1.0, 1.0, rho, 1.0) == pytest.approx(rho)


def test_traced_and_plain_numbers_agree():
    traced = jax.jit(lambda a: (f3(a, 2 * a, 0.1), f4(a, a, a, 0.1), kernel(a, a, a, 0.1)))
    plain = f3(0.3, 0.6, 0.1), f4(0.3, 0.3, 0.3, 0.1), kernel(0.3, 0.3, 0.3, 0.1)
    np.testing.assert_allclose(traced(jnp.array(0.3)), plain, rtol=1e-6)
