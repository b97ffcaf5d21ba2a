import functools
import math
import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from provingground import identity
from provingground.config import config, par, pars
from provingground.errors import InputError
from provingground.keys import seed_key
from provingground.studies.group_imbalance import (
    STUDY,
    bounds,
    closed,
    descent,
    local,
    starts,
    theory,
)
from provingground.studies.group_imbalance import map as success_map
from provingground.studies.group_imbalance.algorithm import (
    descend_from,
    local_starts,
    mean_noise,
    spread_of,
)
from provingground.studies.group_imbalance.data import Config, given_mixture, problem
from provingground.studies.group_imbalance.figures import cor4_4_1
from provingground.studies.group_imbalance.model import contraction, simulate
from provingground.studies.group_imbalance.network import (
    Samples,
    aligned_distance,
    as_matrix,
    as_vector,
    cross_entropy,
    empirical_risk,
    extremes,
    fisher,
    gradient,
    hessian,
    probability,
    sigmoids,
    tails,
)

KEY = seed_key("group_imbalance", 0)


@config
class Small(Config):
    """Laid out for few samples."""

    samples: int = par(2000, "n", "training samples", low=2, value=True, pad=500)


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


# ------------------------------------------------------------------- loss and gradients

RISK = jit(empirical_risk)
GRADIENT = jit(gradient)
HESSIAN = jit(hessian)
FISHER = jax.jit(fisher, static_argnames="activation")
AUTO = jit(jax.value_and_grad(empirical_risk))
AUTO_HESSIAN = jit(jax.hessian(empirical_risk))


@pytest.mark.parametrize("seed", range(2))
def test_gradient_and_hessian_are_those_of_the_loss(double, seed):
    w, data, on = some(seed=seed)
    _, auto = AUTO(w, data, on)
    np.testing.assert_allclose(GRADIENT(w[:, None], data, on)[:, 0], auto, rtol=1e-10, atol=1e-14)
    full = AUTO_HESSIAN(w, data, on).transpose(1, 0, 3, 2).reshape(6, 6)
    np.testing.assert_allclose(HESSIAN(w, data, on), full, rtol=1e-9, atol=1e-14)


def test_gradients_are_finite_differences(double):
    w, data, on = some(seed=3)
    along = draw("along", 3, 2)
    slope = jnp.vdot(GRADIENT(w[:, None], data, on)[:, 0], along)
    change = (RISK(w + 1e-6 * along, data, on) - RISK(w - 1e-6 * along, data, on)) / 2e-6
    np.testing.assert_allclose(change, slope, rtol=1e-7)


@pytest.mark.parametrize("m", [1, 3])
def test_gradients_of_many_points_are_those_of_each_in_single_precision(m):
    """XLA's CPU compiler returned NaN for one point in float32 when neurons were summed."""
    w, data, on = some(n=5000, k=3)
    points = jnp.stack([(1 + i) * w for i in range(m)], axis=1)
    found = GRADIENT(points, data, on)
    for i in range(m):
        np.testing.assert_allclose(found[:, i], AUTO(points[:, i], data, on)[1], atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_nothing_overflows_in_single_precision(scale):
    w, data, on = some(n=5000, k=3)
    data = Samples(scale * data.x, data.y, data.group, data.share)
    for found in (GRADIENT(w[:, None], data, on), HESSIAN(w, data, on), FISHER(w, data.x, on)):
        assert bool(jnp.isfinite(found).all())


def test_sigmoids_are_complements_and_keep_small_numbers(double):
    z = jnp.array([-70.0, -3.0, 0.0, 0.5, 60.0])
    s, t = sigmoids(z)
    np.testing.assert_allclose(s + t, 1.0)
    np.testing.assert_allclose(s[0], np.exp(-70.0), rtol=1e-12)
    np.testing.assert_allclose(t[-1], np.exp(-60.0), rtol=1e-12)


def test_neurons_and_features_that_do_not_exist_do_not_count(double):
    w, data, on = some()
    wide = jnp.pad(w, ((0, 1), (0, 2)))
    more = Samples(jnp.pad(data.x, ((0, 0), (0, 1))), data.y, data.group, data.share)
    some_on = jnp.pad(on, (0, 2))
    np.testing.assert_allclose(RISK(wide, more, some_on), RISK(w, data, on), rtol=1e-12)
    exist = jnp.outer(some_on, jnp.array([1.0, 1.0, 1.0, 0.0])).reshape(-1)
    found = jit(extremes)(HESSIAN(wide, more, some_on), exist)
    values = np.linalg.eigvalsh(HESSIAN(w, data, on))
    np.testing.assert_allclose(found, values[[0, -1]], rtol=1e-9)
    np.testing.assert_allclose(DISTANCE(wide, 2 * wide, some_on), np.linalg.norm(w), rtol=1e-12)


def test_the_fisher_information_is_the_mean_hessian(double):
    w, data, on = some()
    h, rest = probability(data.x @ w, on)
    both = [
        HESSIAN(w, Samples(data.x, jnp.full(40, y), data.group, p / 40.0), on)
        for y, p in ((1.0, h), (0.0, rest))
    ]
    np.testing.assert_allclose(both[0] + both[1], FISHER(w, data.x, on), rtol=1e-9, atol=1e-14)


# ----------------------------------------------------------------------- permutations


@given(st.permutations(range(4)), st.integers(0, 5))
def test_the_error_does_not_depend_on_the_order_of_neurons(order, seed):
    w, v, on = draw("w", 3, 4, seed=seed), draw("v", 3, 4, seed=seed), jnp.ones(4)
    found = DISTANCE(w[:, np.array(order)], v, on)
    np.testing.assert_allclose(found, DISTANCE(w, v, on), rtol=1e-5)
    cost = np.sum((np.asarray(w)[:, :, None] - np.asarray(v)[:, None]) ** 2, axis=0)
    np.testing.assert_allclose(found, math.sqrt(cost[linear_sum_assignment(cost)].sum()), rtol=1e-5)


DISTANCE = jit(aligned_distance)


# -------------------------------------------------------------------------------- data


PROBLEM = jit(problem)


def test_samples_follow_the_mixture_and_the_teacher():
    cfg = Config(samples=20_000, fraction=0.3, mean_1=1.0, mean_2=-2.0, var_1=4.0, var_2=0.5)
    mixture, w_star, data = PROBLEM(identity.typed(cfg, "float32"), KEY)
    group = np.asarray(data.group)
    assert abs(group.mean() - 0.3) < 0.01
    for i, (mean, var) in enumerate(((1.0, 4.0), (-2.0, 0.5))):
        x = np.asarray(data.x)[group == i]
        np.testing.assert_allclose(x.mean(axis=0), mean, atol=0.08)
        np.testing.assert_allclose(np.cov(x.T), var * np.eye(5), atol=0.15)
    h, _ = probability(data.x @ w_star, jnp.ones(3))
    error = np.asarray(data.y - h)
    assert abs(error.mean()) < 0.01
    assert abs(np.mean(error * np.asarray(h - h.mean()))) < 0.005
    assert mixture.moment(2) == pytest.approx(theory.moment_bound(theory.groups_of(cfg), 2), 1e-5)


def test_stretched_covariances_have_the_eigenvalues_they_say():
    cfg = Config(stretch=0.1, var_2=3.0, samples=2)
    mixture, _, _ = PROBLEM(identity.typed(cfg, "float32"), KEY)
    values = np.linalg.eigvalsh(np.asarray(mixture.covs))
    np.testing.assert_allclose(values, np.outer([1, 3], [1, 1.1, 1.2, 1.3, 1.4]), rtol=1e-4)
    off = np.asarray(mixture.covs[0]) - np.diag(np.diag(mixture.covs[0]))
    assert np.abs(off).max() > 0.01


@pytest.mark.parametrize("larger", [{"dim": 9}, {"samples": 4100}])
def test_larger_sizes_only_append(larger):
    sizes: dict[str, Any] = {"dim": 3, "samples": 50}
    configs = success_map.Config(**sizes), success_map.Config(**(sizes | larger))
    a, b = (PROBLEM(identity.typed(c, "float32"), KEY) for c in configs)
    np.testing.assert_allclose(a[1][:3], b[1][:3], rtol=1e-6)
    # Sums of three and of nine terms of order 1 are rounded differently.
    np.testing.assert_allclose(a[2].x[:50, :3], b[2].x[:50, :3], rtol=1e-5, atol=2e-6)


def test_coordinates_of_a_sample_may_draw_their_own_groups():
    """In the authors' code they do, so that coordinates do not move together."""
    cfg = identity.typed(success_map.Config(samples=4000, each_coordinate=1), "float32")
    for each, expected in ((True, 0.0), (False, 1.0)):
        data = jit(problem, each_coordinate=jnp.array(each))(cfg, KEY)[2]
        x = np.asarray(data.x)[:4000, :5]
        second = x.T @ x / 4000
        assert np.abs(second[np.triu_indices(5, 1)] - expected).max() < 0.12
        np.testing.assert_allclose(np.diag(second), 2.0, atol=0.15)


def test_a_mixture_of_one_s_own_is_checked_and_used():
    own = given_mixture([0.2, 0.3, 0.5], 9 * np.eye(3), [np.eye(3) * s for s in (1, 2, 3)])
    cfg = identity.typed(Small(dim=3, samples=2000), "float32")
    mixture, _, data = PROBLEM(cfg, KEY, own)
    np.testing.assert_allclose(mixture.covs[2], 3 * np.eye(3), rtol=1e-6)
    shares = np.bincount(np.asarray(data.group)) / 2000
    np.testing.assert_allclose(shares, [0.2, 0.3, 0.5], atol=0.05)
    at = np.asarray(data.x)[np.asarray(data.group) == 1]
    np.testing.assert_allclose(at.mean(axis=0), [0, 9, 0], atol=0.3)
    for bad in (
        ([0.5, 0.6], np.zeros((2, 2)), [np.eye(2)] * 2),
        ([0.5, 0.5], np.zeros((2, 2)), [np.eye(2), -np.eye(2)]),
        ([0.5, 0.5], np.zeros((3, 2)), [np.eye(2)] * 2),
    ):
        with pytest.raises(InputError):
            given_mixture(*bad)


# --------------------------------------------------------------- minimiser and local theory


def many(simulate, config: type[Any] = Small, **settings):
    """Sixteen seeds of two neurons in three dimensions."""
    given = {"dim": 3, "width": 2, "test_samples": 1000, "fraction": 0.4, **settings}
    cfg = identity.typed(config(**given), "float64")
    keys = jax.vmap(lambda seed: seed_key("group_imbalance", seed))(jnp.arange(16))
    return jax.tree.map(np.asarray, jit(jax.vmap(simulate, in_axes=(None, 0)))(cfg, keys))


@pytest.fixture(scope="module")
def fitted():
    with jax.enable_x64(True):
        return many(simulate)


def test_the_gradient_vanishes_at_the_minimiser(fitted):
    assert fitted.slope.max() < 1e-9
    assert (fitted.flattest > 0).all()


def test_the_average_excess_risk_is_dk_over_2n(fitted):
    law = theory.average_excess(3, 2, 2000)
    error = fitted.excess.std() / math.sqrt(16)
    assert abs(fitted.excess.mean() - law) < 4 * error
    assert error < 0.3 * law
    exact = fitted.expected_excess @ [0.6, 0.4]  # the groups' predictions average to it
    np.testing.assert_allclose(exact, law, rtol=1e-6)


def test_the_average_risk_is_that_of_the_groups(fitted):
    mean = np.array([0.6, 0.4])
    np.testing.assert_allclose(fitted.group_loss @ mean, fitted.test_loss, rtol=1e-9)
    np.testing.assert_allclose(fitted.group_excess @ mean, fitted.excess, rtol=1e-6)
    assert (fitted.excess > 0).all()


def test_the_error_has_the_size_of_the_inverse_fisher_information(fitted):
    assert 0.6 < np.median(fitted.error / fitted.expected_error) < 1.6


def test_the_limits_of_large_n_are_those_of_the_fit(double, fitted):
    found = many(local.simulate, local.Config)
    np.testing.assert_allclose(found.error / 2000**0.5, fitted.expected_error, rtol=1e-9)
    np.testing.assert_allclose(found.group_excess / 2000, fitted.expected_excess, rtol=1e-9)
    np.testing.assert_allclose(found.excess, 3.0, rtol=1e-9)
    assert 0.7 < np.exp(np.mean(np.log(found.rate / fitted.rate))) < 1.4
    assert (found.sharpest < theory.moment_bound(theory.groups_of(Config(dim=3)), 2)).all()


def test_rates_of_several_steps_are_one_curvature(double):
    found = many(local.simulate, local.Config, mean_1=0.5, var_2=2.0)
    m2 = 0.6 * (0.5 * 3**0.5 + 1) ** 2 + 0.4 * (3**0.5 + 2**0.5) ** 2
    printed = 0.6 * 1.5**2 + 0.4 * (1 + 2**0.5) ** 2
    np.testing.assert_allclose(found.rate, 25 / m2 * found.flattest, rtol=1e-9)
    np.testing.assert_allclose(found.rate_printed, 25 / printed * found.flattest, rtol=1e-9)
    np.testing.assert_allclose(found.rate_stable, found.flattest / found.sharpest, rtol=1e-9)
    np.testing.assert_allclose(found.largest_step, 25 / printed * found.sharpest / 2, rtol=1e-9)


def test_only_strength_times_the_size_of_features_counts(double):
    """So the s.d. of one group is a unit that strengths are told in."""
    plain = many(local.simulate, local.Config, mean_1=0.5, var_2=3.0, strength=2.0)
    wide = many(local.simulate, local.Config, mean_1=1.0, mean_2=-2.0, var_1=4.0, var_2=12.0)
    np.testing.assert_allclose(wide.rate_stable, plain.rate_stable, rtol=1e-6)
    np.testing.assert_allclose(wide.rate, plain.rate, rtol=1e-6)
    np.testing.assert_allclose(wide.group_excess, plain.group_excess, rtol=1e-6)
    np.testing.assert_allclose(2 * wide.error, plain.error, rtol=1e-6)


def test_tanh_is_a_sigmoid_of_twice_the_weights(double):
    steep = many(local.simulate, local.Config, activation="tanh", strength=0.5)
    plain = many(local.simulate, local.Config, activation="sigmoid")
    np.testing.assert_allclose(steep.group_excess, plain.group_excess, rtol=1e-9)
    np.testing.assert_allclose(steep.flattest, 4 * plain.flattest, rtol=1e-9)
    np.testing.assert_allclose(steep.error, plain.error / 2, rtol=1e-9)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "erf"])
def test_activations_are_symmetric_and_have_the_slope_they_say(double, name):
    z = jnp.linspace(-4.0, 4.0, 17)
    up, down, slope = tails(z, name)
    np.testing.assert_allclose(up + down, 1.0, rtol=1e-12)
    np.testing.assert_allclose(up, down[::-1], rtol=1e-12)
    change = (tails(z + 1e-5, name)[0] - tails(z - 1e-5, name)[0]) / 2e-5
    np.testing.assert_allclose(slope, change, rtol=1e-6, atol=1e-10)


def test_far_tails_of_erf_are_no_quotient_of_zeros(double):
    w = 30 * jnp.ones((3, 2))
    found = FISHER(w, draw("x", 40, 3), jnp.ones(2), activation="erf")
    assert bool(jnp.isfinite(found).all())


def test_the_average_contraction_is_that_of_the_spread(double):
    h, lr = jnp.diag(jnp.array([0.001, 0.3, 2.0])), jnp.array(0.1)
    found = contraction(h, jnp.ones(3), lr)
    left = theory.spread_after([0.001, 0.3, 2.0], 0.1, 1000, 1.0)
    assert float(found) == pytest.approx(1 - left ** (1 / 1000), rel=1e-9)
    some_on = contraction(h.at[2, 2].set(0.0), jnp.array([1.0, 1.0, 0.0]), lr)
    left = theory.spread_after([0.001, 0.3], 0.1, 1000, 1.0)
    assert float(some_on) == pytest.approx(1 - left ** (1 / 1000), rel=1e-9)


# ------------------------------------------------------------------------------ descent


@pytest.fixture(scope="module")
def descended():
    with jax.enable_x64(True):
        cfg = descent.Config(dim=3, width=2, samples=2000, mean_1=0.2, mean_2=-0.2, record=31)
        run = jit(descent.simulate)
        plain = run(identity.typed(cfg, "float64"), KEY)
        noisy = descent.Config(**{**vars_of(cfg), "noise": 0.1, "times": 60.0})
        return jax.tree.map(np.asarray, (plain, run(identity.typed(noisy, "float64"), KEY)))


def vars_of(cfg):
    return {name: getattr(cfg, name) for name in pars(cfg)}


def test_descent_ends_at_the_minimiser_with_the_predicted_rate(descended):
    plain, _ = descended
    late = slice(20, None)
    slope = np.polyfit(plain.time[late], np.log(plain.distance[late]), 1)[0]
    assert -np.expm1(slope) == pytest.approx(float(plain.rate), rel=0.03)
    assert plain.distance[-1] < 1e-4 * plain.distance[0]


def test_noise_keeps_the_distance_of_an_autoregression(descended):
    _, noisy = descended
    kept = float(np.sqrt(np.mean(noisy.distance[15:] ** 2)))
    assert kept == pytest.approx(float(noisy.floor), rel=0.5)
    assert kept < float(noisy.bound)


def test_noise_is_bounded_and_has_the_spread_of_a_mean():
    draws = jax.vmap(mean_noise(KEY, (3, 1, 2), jnp.array(0.5), 12))(jnp.arange(4000))
    assert float(jnp.abs(draws).max()) <= 0.5
    assert float(draws.std()) == pytest.approx(0.5 / 6, rel=0.03)


def test_many_starts_at_once_are_each_alone(double):
    w, data, on = some(n=60)
    starts = local_starts(w, draw("g", 3, 3, 2), 0.1, jnp.ones(6))
    np.testing.assert_allclose(
        jnp.sqrt(jnp.sum((starts - w[:, None]) ** 2, axis=(0, 2))), 0.1, rtol=1e-9
    )
    run = jit(lambda s: descend_from(s, data, on, 0.5, steps=20).last[0])
    together = run(starts)
    for i in range(3):
        np.testing.assert_allclose(run(starts[:, i : i + 1])[:, 0], together[:, i], rtol=1e-10)
    centre = np.asarray(together) - np.asarray(together).mean(axis=1, keepdims=True)
    assert float(spread_of(together)) == pytest.approx(math.sqrt((centre**2).sum() / 3))


def test_a_map_tells_success_from_failure():
    run = jit(success_map.simulate)
    sizes: dict[str, Any] = dict(dim=3, width=2, starts=3, mean_2=0.0)
    easy = run(identity.typed(success_map.Config(samples=4000, **sizes), "float32"), KEY)
    hard = run(identity.typed(success_map.Config(samples=20, **sizes), "float32"), KEY)
    assert easy.success == 1
    assert easy.ends <= 1e-3
    assert easy.stopped_at < 2000
    assert hard.success == 0


# ------------------------------------------------------------------------------- theory

means = st.lists(st.floats(-3, 3), min_size=1, max_size=3)
spread = st.floats(0.05, 20)


@given(means, spread)
def test_rho_is_positive_even_and_free_of_order(u, sigma):
    value = theory.rho(u, sigma)
    assert value > 0
    assert theory.rho([-v for v in u], sigma) == pytest.approx(value, rel=1e-9)
    assert theory.rho(u[::-1], sigma) == pytest.approx(value, rel=1e-9)


@given(means)
def test_rho_at_small_spread(u):
    assert theory.rho(u, 0.01) / 0.01**4 == pytest.approx(theory.rho_small(u), rel=0.02)


@given(st.lists(st.floats(0.3, 2.0), min_size=2, max_size=3))
def test_rho_at_small_spread_and_fixed_mean(u):
    found = theory.rho(np.array(u) / 0.01, 0.01)
    assert found == pytest.approx(theory.rho_shifted(u), rel=0.05, abs=1e-5)


@given(means, spread, st.floats(0.1, 1))
def test_minorants_lie_below_rho_and_fall_along_the_mean(u, sigma, share):
    assert theory.mean_minorant(u, sigma) <= theory.rho(u, sigma) * (1 + 1e-9)
    assert theory.spread_minorant(np.array(u) * sigma, sigma) <= theory.rho(u, sigma) * (1 + 1e-9)
    zero = theory.rho(np.zeros(len(u)), sigma)
    assert theory.mean_minorant(u, sigma) <= zero * (1 + 1e-9)
    shorter = theory.mean_minorant(np.array(u) * share, sigma, 65)
    assert theory.mean_minorant(u, sigma, 65) <= shorter * 1.02


def test_rho_is_a_gaussian_expectation():
    z = np.random.default_rng(0).normal(0.7, 1, 1_000_000)
    slope = np.exp(-1.3 * z) / (1 + np.exp(-1.3 * z)) ** 2
    plain, squared = theory.spreads([0.7], 1.3)
    assert plain[0] == pytest.approx(slope.var(), rel=0.01)
    direct = np.mean(slope**2 * z**2) - np.mean(slope * z**2) ** 2 / (0.7**2 + 1)
    assert squared[0] == pytest.approx(direct, rel=0.02)


def test_rho_has_the_values_and_the_tail_of_the_sigmoid():
    found = [theory.rho(np.zeros(3), s) for s in (0.1, 1.0, 1.5, 10.0)]
    np.testing.assert_allclose(found, [7.7e-7, 2.1e-3, 3.6e-3, 8.2e-5], rtol=0.03)
    assert theory.rho([0.0, 0.0], 300.0) * 300**3 == pytest.approx(0.0858, rel=0.01)


@given(st.floats(0, 3), st.floats(0.1, 5), st.floats(0.01, 0.99))
def test_d_functions_multiply_as_property_10_says(mean, var, fraction):
    groups = theory.groups_of(Config(mean_1=mean, var_2=var, fraction=fraction))
    d = {m: theory.d_function(groups, m) for m in (2, 4, 6, 12)}
    assert d[2] >= 1
    assert d[6] ** 2 <= d[12] * (1 + 1e-9)
    assert d[2] * d[4] <= d[6] * (1 + 1e-9)


def test_closed_forms_are_written_out():
    groups = theory.groups_of(Config(dim=4, width=2, mean_1=0.5, var_1=2.0, fraction=0.25))
    w = np.asarray(draw("w", 4, 2), float)
    teacher = theory.teacher_of(w, groups)
    delta = np.linalg.svd(w, compute_uv=False)
    rhos = [
        theory.rho(w.T @ mu / (delta[1] * s), delta[1] * s)
        for mu, s in zip(groups.means, groups.least, strict=True)
    ]
    r = 0.75 * 2 * rhos[0] + 0.25 * rhos[1]
    m2 = 0.75 * (1 + math.sqrt(2)) ** 2 + 0.25 * 3**2
    tau, kappa = math.sqrt(2), delta[0] / delta[1]
    found = theory.closed_forms(groups, teacher)
    assert found.curvature == pytest.approx(r)
    assert found.rate == pytest.approx(r / (kappa * tau**2 * kappa**2 * m2))
    d12 = theory.d_function(groups, 12)
    assert found.complexity == pytest.approx(
        2 * delta[0] ** 2 * tau**12 * (r / (kappa * 2)) ** -2 * d12
    )
    assert found.error == pytest.approx(math.sqrt(m2) / r)
    assert found.risk == pytest.approx(m2 / r)
    np.testing.assert_allclose(found.group_risks, math.sqrt(m2) * groups.sizes / r)
    assert found.gamma == pytest.approx(r / (kappa * tau**2 * kappa**2 * 2))


def test_what_table_4_1_is_about_is_written_out():
    groups = theory.groups_of(Config(dim=4, width=2, mean_1=0.5, var_1=2.0, fraction=0.25))
    w = np.asarray(draw("w", 4, 2), float)
    teacher = theory.teacher_of(w, groups)
    forms = theory.closed_forms(groups, teacher)
    complexity, rate, error, risk, group_risks, curvature, tau = forms.table
    m4, m8, d6 = (
        *(theory.moment_bound(groups, k) for k in (4, 8)),
        theory.d_function(groups, 6),
    )
    delta = np.linalg.svd(w, compute_uv=False)[0]
    assert complexity == pytest.approx(delta**2 * math.sqrt(m4 * m8) * d6 / curvature**2)
    assert tau == pytest.approx(math.sqrt(2))
    assert rate == pytest.approx(forms.rate * teacher.eta * tau**2 * teacher.kappa**2)
    assert rate == pytest.approx(1 / risk)  # one fact: the table's rows on v and on the risk
    assert error == pytest.approx(forms.error)
    np.testing.assert_allclose(group_risks, forms.group_risks)


@pytest.mark.parametrize("width", [2, 3])
def test_table_4_1_leaves_powers_of_tau_out(width):
    """With them, B has the power 9 of one large covariance, and 1 - v the power -(1 + K/2)."""
    w = np.asarray(draw("w", 4, width), float)
    sizes = np.array([1e14, 1e16])
    forms = []
    for var in sizes:
        groups = theory.groups_of(Config(dim=4, width=width, var_2=float(var)))
        forms.append(theory.closed_forms(groups, theory.teacher_of(w, groups)))
    step = math.log(100)
    assert math.log(forms[1].complexity / forms[0].complexity) / step == pytest.approx(9, abs=0.01)
    slope = math.log(forms[1].rate / forms[0].rate) / step
    assert slope == pytest.approx(-1 - width / 2, abs=0.01)


@pytest.mark.parametrize("width", [2, 3])
def test_with_tau_the_rate_falls_with_a_covariance_that_shrinks(width):
    """The table prints the power 3. R and M_2 tend to constants, so tau^K of (C.96) leaves K/2."""
    w = np.asarray(draw("w", 4, width), float)
    small = [theory.groups_of(Config(dim=4, width=width, var_2=v)) for v in (1e-6, 1e-5)]
    forms = [theory.closed_forms(groups, theory.teacher_of(w, groups)) for groups in small]
    slope = math.log(forms[1].rate / forms[0].rate) / math.log(10)
    assert slope == pytest.approx(width / 2, abs=0.01)
    assert forms[0].tau / forms[1].tau == pytest.approx(10**0.5)


def test_as_fractions_vary_the_group_s_form_is_that_of_the_error():
    w = np.asarray(draw("w", 4, 2), float)
    ratios = []
    for fraction in (0.01, 0.3):
        groups = theory.groups_of(Config(dim=4, width=2, var_2=10.0, fraction=fraction))
        forms = theory.closed_forms(groups, theory.teacher_of(w, groups))
        ratios.append(forms.group_risks / forms.error)
    np.testing.assert_allclose(*ratios, rtol=1e-12)


@pytest.mark.parametrize("u", [0.0, 0.3])
def test_narrow_steps_are_integrated_as_wide_ones(u, monkeypatch):
    steep = theory.spreads([u, 2 * u], 150.0)
    monkeypatch.setattr(theory, "STEEP", 1e3)
    np.testing.assert_allclose(steep, theory.spreads([u, 2 * u], 150.0), rtol=1e-3)


def test_closed_forms_are_those_of_the_teacher_that_trainings_have(double):
    cfg = Small(dim=3, width=2, var_2=3.0)
    found = closed.simulate(cfg, KEY)
    _, w_star, _ = PROBLEM(identity.typed(cfg, "float64"), KEY)
    groups = theory.groups_of(cfg)
    forms = theory.closed_forms(groups, theory.teacher_of(w_star, groups))
    assert float(found.complexity) == pytest.approx(forms.needed, rel=1e-6)
    np.testing.assert_allclose(found.group_risk, forms.group_risks, rtol=1e-6)


def test_bounds_stand_beside_what_they_bound(double):
    cfg = bounds.Config(dim=3, width=2, test_samples=1000)
    found = bounds.simulate(cfg, KEY)
    exact = local.simulate(identity.typed(cfg, "float64"), KEY)
    groups = theory.groups_of(cfg)
    _, w_star, _ = PROBLEM(identity.typed(Small(dim=3, width=2), "float64"), KEY)
    teacher = theory.teacher_of(w_star, groups)
    assert float(found.flattest) == pytest.approx(float(exact.flattest))
    assert 0 < float(found.flattest_bound) < float(found.flattest)
    assert float(found.flattest_bound) == pytest.approx(theory.hessian_bound(groups, teacher))
    assert float(found.error) == pytest.approx(float(exact.error) / cfg.samples**0.5)
    assert (np.asarray(found.risk_bound) > np.asarray(found.excess)).all()
    assert 0 < theory.convex_radius(groups, teacher) < 1e-3


def test_spread_after_is_what_descent_leaves():
    values, lr = np.array([0.1, 1.0]), 0.5
    starts = 0.1 * np.array([[1.0, 1.0], [-1.0, -1.0]]) / math.sqrt(2)
    ends = starts * (1 - lr * values) ** 7
    assert theory.spread_after(values, lr, 7, 0.1) == pytest.approx(
        math.sqrt((ends**2).sum(axis=1).mean())
    )


def test_directions_of_the_corollary_are_settings():
    assert len(cor4_4_1.PLACES) == 2 * len(cor4_4_1.DIRECTIONS)
    for settings in cor4_4_1.PLACES.values():
        local.Config(**settings)


def test_the_literal_figure_c_1_can_be_traced(double):
    """It runs at paper scale alone."""
    experiment = STUDY.experiment("figc_1_literal")
    given = {k: v for k, v in experiment.trainings.grid.items() if k in pars(starts.Config)}
    cfg = starts.Config(**given)
    found = jax.eval_shape(starts.simulate, identity.typed(cfg, "float64"), KEY)
    assert found.distance.shape == (61, 3)


def test_probabilities_as_labels_give_the_expected_loss(double):
    h, rest = jnp.array([0.3]), jnp.array([0.7])
    loss = cross_entropy(jnp.array([0.4]), h, rest)
    mixed_labels = 0.4 * cross_entropy(jnp.ones(1), h, rest) + 0.6 * cross_entropy(jnp.zeros(1), h,
                                                                                  rest)  # fmt: skip
    np.testing.assert_allclose(loss, mixed_labels)


def test_vectors_and_matrices_of_weights_are_inverse():
    w = draw("w", 3, 2)
    np.testing.assert_array_equal(as_matrix(as_vector(w), w), w)
