"""Subroutine 1 of group_imbalance: scores, moments, decomposition, magnitudes."""

import functools
import math
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from provingground import identity
from provingground.keys import seed_key
from provingground.studies.group_imbalance import tensor
from provingground.studies.group_imbalance.data import Mixture
from provingground.studies.group_imbalance.network import Samples
from provingground.studies.group_imbalance.subroutine import (
    decompose,
    magnitudes,
    moments_of,
    pulled,
    scores,
    symmetric,
    unit,
)


def jit(function, **fixed):
    function = functools.partial(function, **fixed) if fixed else function
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


def draw(name, *shape, seed=0):
    """Normals by NumPy, which compiles nothing."""
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return jnp.asarray(random.normal(size=shape), dtype=float)


def some(n=40, d=3, k=2, seed=0):
    """Weights, samples with labels 0 and 1, and all neurons."""
    x = draw("x", n, d, seed=seed)
    y = (draw("y", n, seed=seed) > 0).astype(float)
    share = jnp.full(n, 1 / n)
    return draw("w", d, k, seed=seed), Samples(x, y, jnp.zeros(n, jnp.int32), share), jnp.ones(k)


def mixed() -> Mixture:
    """Three groups with full covariances."""
    roots = draw("roots", 3, 3, 3) * 0.3 + jnp.eye(3)[None]
    return Mixture(jnp.array([0.2, 0.5, 0.3]), draw("means", 3, 3), roots)


def density(mixture, x):
    """(C.3), up to a constant factor."""
    total = 0.0
    for f, m, c in zip(mixture.fractions, mixture.means, mixture.covs, strict=True):
        gap, cov = x - np.asarray(m), np.asarray(c)
        power = gap @ np.linalg.solve(cov, gap) / 2
        total += float(f) * math.exp(-power) / math.sqrt(np.linalg.det(cov))
    return total


def test_scores_are_finite_differences_of_the_density(double):
    mixture, h = mixed(), 1e-3
    x = np.asarray(draw("point", 3))

    def p(*shifts):
        return density(mixture, x + h * sum((np.eye(3)[i] * s for i, s in shifts), np.zeros(3)))

    def nabla(*axes):
        """A central difference along each axis."""
        total = 0.0
        for signs in np.ndindex(*(2,) * len(axes)):
            s = [2 * v - 1 for v in signs]
            total += np.prod(s) * p(*zip(axes, s, strict=True))
        return total / (2 * h) ** len(axes)

    s1, s2, s3 = (np.asarray(s[0]) for s in SCORES(mixture, jnp.asarray(x)[None]))
    np.testing.assert_allclose(s1, [-nabla(i) / p() for i in range(3)], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        s2, [[nabla(i, j) / p() for j in range(3)] for i in range(3)], rtol=1e-3, atol=1e-4
    )
    third = [[[-nabla(i, j, k) / p() for k in range(3)] for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(s3, third, rtol=1e-2, atol=2e-3)


SCORES = jit(jax.vmap(scores, in_axes=(None, 0)))


def all_moments(mixture, data, basis, alpha):
    """Every moment of all samples, in its contracted form."""
    (moments,) = moments_of(mixture, data, data.share[None])
    return moments.q1(), moments.q2(), moments.q3_along(alpha), moments.q3_in(basis)


MOMENTS = jit(all_moments)


def test_moments_are_means_of_labels_times_scores(double):
    mixture, (_, data, _) = mixed(), some(n=30)
    basis, alpha = np.asarray(draw("basis", 3, 2)), np.asarray(draw("alpha", 3))
    q1, q2, along, inside = MOMENTS(mixture, data, basis, alpha)
    label = np.asarray(data.share * (data.y - data.y.mean()))
    s1, s2, s3 = (np.tensordot(label, s, 1) for s in SCORES(mixture, data.x))
    np.testing.assert_allclose(q1, s1, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(q2, s2, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(along, s3 @ alpha, rtol=1e-8, atol=1e-12)
    projected = np.einsum("ijk,ia,jb,kc->abc", s3, basis, basis, basis)
    np.testing.assert_allclose(inside, projected, rtol=1e-8, atol=1e-12)


def sampled(mixture, n):
    """Points of a mixture, by NumPy."""
    random = np.random.default_rng(0)
    at = random.choice(3, n, p=np.asarray(mixture.fractions))
    z = random.normal(size=(n, 3))
    return np.asarray(mixture.means)[at] + np.einsum("nij,nj->ni", np.asarray(mixture.roots)[at], z)


def test_moments_are_tensors_of_the_weights(double):
    """Q_1, Q_2 and Q_3 by Monte Carlo against their forms in the weights (Definition C.1.1)."""
    mixture, w, n = mixed(), np.asarray(draw("w", 3, 2)), 400_000
    x = sampled(mixture, n)
    s = 1 / (1 + np.exp(-x @ w))
    share = jnp.full(n, 1 / n)
    data = Samples(jnp.asarray(x), jnp.asarray(s.mean(axis=1)), jnp.zeros(n, jnp.int32), share)
    basis, alpha = np.eye(3, 2), np.asarray(draw("alpha", 3))
    q1, q2, along, _ = MOMENTS(mixture, data, basis, alpha)
    bend = s * (1 - s)
    first, second = bend.mean(axis=0) / 2, (bend * (1 - 2 * s)).mean(axis=0) / 2
    third = (bend * (1 - 6 * bend)).mean(axis=0) / 2
    np.testing.assert_allclose(q1, w @ first, atol=3e-3)
    np.testing.assert_allclose(q2, (w * second) @ w.T, atol=6e-3)
    np.testing.assert_allclose(along, (w * third * (alpha @ w)) @ w.T, atol=8e-3)
    assert np.abs(along).max() > 0.02  # so that the tolerance tells


def test_a_tensor_is_taken_apart(double):
    v = unit(jnp.eye(3) + 0.3 * draw("v", 3, 3), 0)  # not orthogonal, not near each other
    tensor = jnp.einsum("j,aj,bj,cj->abc", jnp.array([1.0, -0.5, 0.3]), v, v, v)
    found = jit(decompose)(tensor, draw("starts", 20, 3, 3, 3))
    cosines = np.abs(np.asarray(found.T @ v))
    np.testing.assert_allclose(np.sort(cosines.max(axis=0)), 1.0, atol=1e-4)


PULLED = jit(pulled)


def test_magnitudes_are_found_back(double):
    mixture, norms = mixed(), np.array([0.5, 1.5])
    directions = unit(draw("u", 3, 2), 0)
    pull = jnp.array([PULLED(mixture, directions[:, i], norms[i : i + 1])[0] for i in range(2)]) / 2
    signed = directions * jnp.array([[1.0, -1.0]])
    found, alpha, z = jit(magnitudes)(mixture, signed, directions @ pull)
    np.testing.assert_allclose(found, directions, atol=1e-9)
    np.testing.assert_allclose(alpha, pull, rtol=1e-9)
    np.testing.assert_allclose(z, norms, rtol=0.01)


def test_the_pull_is_that_of_monte_carlo(double):
    mixture, along = mixed(), unit(draw("along", 3))
    s = 1 / (1 + np.exp(-2 * sampled(mixture, 50_000) @ np.asarray(along)))
    found = PULLED(mixture, along, np.array([2.0]))[0]
    np.testing.assert_allclose(found, 2 * (s * (1 - s)).mean(), rtol=0.02)


def test_symmetric_mixtures_are_known(double):
    known = jit(symmetric)

    def two(*means):
        return Mixture(jnp.array([0.5, 0.5]), jnp.array(means), jnp.array([np.eye(2)] * 2))

    assert bool(known(two([1.0, 2.0], [-1.0, -2.0])))
    assert bool(known(two([0.0, 0.0], [0.0, 0.0])))
    assert not bool(known(two([1.0, 2.0], [-1.0, 2.0])))


TENSOR = jit(jax.vmap(tensor.simulate, in_axes=(None, 0)))


@pytest.mark.slow
@pytest.mark.parametrize(("mean_1", "mean_2"), [(1.0, 0.0), (0.5, -0.5)])
def test_tensor_initialisation_recovers_planted_weights_better_with_more_samples(
    double, mean_1, mean_2
):
    """Also for a symmetric mixture, where the second moment vanishes."""
    keys = jax.vmap(lambda seed: seed_key("t", seed))(jnp.arange(4))
    errors = []
    for n in (1000, 50_000):
        cfg = tensor.Config(dim=3, samples=n, mean_1=mean_1, mean_2=mean_2)
        found = TENSOR(identity.typed(cfg, "float64"), keys)
        errors.append(float(jnp.median(found.relative_error)))
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.3
    assert float(found.literal_error.min()) > 0.85  # (C.5) as printed returns too small weights
