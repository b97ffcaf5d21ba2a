"""What holds for all measurements: symmetries and bounds of the estimates."""

import math

import numpy as np
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from provingground import stats

X = np.array([1.0, 2.0, 3.0, 5.0, 8.0, 13.0])
quickly = settings(deadline=None, derandomize=True, max_examples=60)


def measurements(values: st.SearchStrategy[float]) -> st.SearchStrategy[xr.DataArray]:
    """3 to 6 seeds on the axis X."""
    shapes = st.tuples(st.integers(3, 6), st.just(len(X)))
    cells = shapes.flatmap(lambda shape: arrays(float, shape, elements=values))
    return cells.map(lambda v: xr.DataArray(v, {"seed": np.arange(len(v)), "x": X}, ("seed", "x")))


# Sums of eighths are exact, so that a different order of the seeds cannot round differently.
eighths = st.integers(0, 8).map(lambda k: k / 8)
positive = st.floats(0.1, 10)
factors = st.floats(-3, 3).map(lambda e: 10.0**e)


@quickly
@given(measurements(positive), factors)
def test_scaling_y_scales_the_constant_and_leaves_the_exponent(y, factor):
    law, scaled = stats.power_law(y, "x"), stats.power_law(factor * y, "x")
    assert_allclose(scaled.slope, law.slope, atol=1e-9)
    assert_allclose(scaled.constant, factor * np.array(law.constant), rtol=1e-7)
    line, scaled = stats.linear_law(y, "x"), stats.linear_law(factor * y, "x")
    assert_allclose(scaled.slope, factor * np.array(line.slope), rtol=1e-7, atol=1e-9 * factor)


@quickly
@given(measurements(positive), factors)
def test_scaling_x_leaves_the_exponent(y, factor):
    scaled = stats.power_law(y.assign_coords(x=factor * X), "x").slope
    assert_allclose(scaled, stats.power_law(y, "x").slope, atol=1e-9)


@quickly
@given(measurements(eighths), st.randoms(use_true_random=False))
def test_the_order_of_the_seeds_means_nothing(y, random):
    order = random.sample(range(y.sizes["seed"]), y.sizes["seed"])
    shuffled = y.isel(seed=order)
    for estimate in (
        stats.mean,
        stats.share,
        lambda y: stats.share(y > 0.5),
        lambda y: stats.rank_correlation(y, "x"),
        lambda y: stats.monotone(y, "x"),
        lambda y: stats.agreement(y, 0.5),
        lambda y: stats.power_law(y, "x").constant,
        lambda y: stats.threshold(y, "x", 0.5),
        lambda y: stats.threshold(y, "x", 0.5, "linear"),
        lambda y: stats.ordering(y.isel(x=0), y.isel(x=1)),
        lambda y: stats.paired_difference(y.isel(x=0), y.isel(x=1)),
    ):
        assert_allclose(estimate(shuffled), estimate(y), rtol=1e-7, atol=1e-9)


@quickly
@given(measurements(eighths), st.sampled_from([np.log, np.sqrt, np.cbrt, np.exp, np.square]))
def test_rank_correlation_sees_only_the_order(y, transform):
    rho = stats.rank_correlation(y, "x")
    assert_allclose(stats.rank_correlation(y, transform(y.x)), rho, atol=1e-12)
    assert_allclose(stats.rank_correlation(8 * y - 4, "x"), rho, atol=1e-12)
    reverse = stats.rank_correlation(y, -y.x)
    assert_allclose(reverse, (-rho.value, -rho.high, -rho.low), atol=1e-12)
    assert math.isnan(rho.low) or -1 <= rho.low <= rho.value <= rho.high <= 1


@quickly
@given(measurements(eighths), factors, st.sampled_from(["isotonic", "linear"]), st.booleans())
def test_threshold_moves_with_its_axis(y, factor, method, log):
    here = stats.threshold(y, "x", 0.5, method, log=log)
    there = stats.threshold(y.assign_coords(x=factor * X), "x", 0.5, method, log=log)
    assert_allclose(there, factor * np.array(here), rtol=1e-6, atol=1e-9 * factor)
    assert math.isnan(here.value) or X[0] - 1e-9 <= here.value <= X[-1] + 1e-9


@quickly
@given(measurements(eighths))
def test_isotonic_threshold_of_the_mirrored_curve_is_the_same(y):
    """Where the direction is clear; a curve without one is taken to rise."""
    y = y + y.x
    assert_allclose(stats.threshold(-y, "x", -4), stats.threshold(y, "x", 4), rtol=1e-9)


@quickly
@given(st.integers(3, 40), st.integers(1, 12), st.data())
def test_share_is_a_rate_inside_its_interval(seeds, cells, data):
    success = data.draw(arrays(bool, (seeds, cells)))
    rate = stats.share(xr.DataArray(success, dims=("seed", "cell")))
    assert 0 <= rate.low <= rate.value <= rate.high <= 1
    assert rate.low < rate.high
    opposite = stats.share(xr.DataArray(~success, dims=("seed", "cell")))
    assert_allclose(opposite, (1 - rate.value, 1 - rate.high, 1 - rate.low), atol=1e-12)


@quickly
@given(measurements(positive), measurements(positive))
def test_exchanging_a_pair_mirrors_its_interval(a, b):
    seeds = min(a.sizes["seed"], b.sizes["seed"])
    a, b = a.isel(seed=slice(seeds)), b.isel(seed=slice(seeds))
    value, low, high = stats.paired_difference(a, b)
    assert_allclose(stats.paired_difference(b, a), (-value, -high, -low), atol=1e-9)
    value, low, high = stats.paired_ratio(a, b)
    assert_allclose(stats.paired_ratio(b, a), (1 / value, 1 / high, 1 / low), rtol=1e-7)


@quickly
@given(measurements(positive), positive)
def test_extremes_lie_inside_their_intervals(y, predicted):
    off = stats.agreement(y, predicted)
    assert 0 <= off.low <= off.value <= off.high
    step = stats.monotone(y, "x")
    assert step.low <= step.value <= step.high
    cells = [stats.mean(y.isel(x=k)) for k in range(len(X))]
    assert stats.worst(cells).value == max(e.value for e in cells)
    assert stats.worst(cells, "low").low == min(e.low for e in cells)


@quickly
@given(measurements(positive))
def test_the_general_jackknife_of_a_mean_is_the_mean(y):
    assert_allclose(stats.jackknife(lambda a: a.mean(), y), stats.mean(y), rtol=1e-7, atol=1e-9)
