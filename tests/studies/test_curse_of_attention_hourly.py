"""The forecasters of real series, on made ones."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from provingground.errors import DataMissing
from provingground.keys import seed_key
from provingground.nets import transformer
from provingground.studies.curse_of_attention import encoder, forecast, hourly

KEY = seed_key("curse_of_attention", 0)
SMALL = forecast.Config(look_back=30, horizon=4, steps=20, batch=8)


@pytest.fixture(scope="module")
def series():
    """A daily and a weekly wave with noise, for as many hours as the real ones have."""
    rng, hour = np.random.default_rng(0), np.arange(hourly.END)[:, None]
    phase = rng.uniform(0, 6, (2, 1, hourly.CHANNELS))
    made = np.sin(hour / 3.82 + phase) + np.sin(hour / 26.7 + phase)
    return jnp.asarray(made + 0.3 * rng.standard_normal(made.shape), jnp.float32)


def test_the_moving_average_repeats_the_ends():
    x = np.random.default_rng(1).standard_normal((40, 2)).astype(np.float32)
    padded = np.concatenate([np.repeat(x[:1], 12, 0), x, np.repeat(x[-1:], 12, 0)])
    means = np.stack([padded[i : i + 25].mean(0) for i in range(len(x))])
    np.testing.assert_allclose(forecast.smooth(jnp.asarray(x)), means, atol=1e-5)


@pytest.mark.parametrize(("form", "parts"), [("nlinear", 1), ("dlinear", 2)])
def test_forecasters_without_attention_are_affine(form, parts):
    rng = np.random.default_rng(2)
    w = forecast.Weights(
        jnp.asarray(rng.standard_normal((parts, 30, 4)), jnp.float32),
        jnp.asarray(rng.standard_normal((parts, 4)), jnp.float32),
    )
    x, y = jnp.asarray(rng.standard_normal((2, 30, hourly.CHANNELS)), jnp.float32)
    f = lambda x: forecast.predict(form, w, x)  # noqa: E731
    np.testing.assert_allclose(f(0.3 * x + 0.7 * y), 0.3 * f(x) + 0.7 * f(y), rtol=2e-4, atol=2e-4)


def test_nlinear_follows_a_shift_of_its_past_and_dlinear_does_not():
    ones, x = jnp.ones((2, 30, 4)), jnp.ones((30, hourly.CHANNELS))
    for form, parts, moved in (("nlinear", 1, 1.0), ("dlinear", 2, 30.0)):
        w = forecast.Weights(ones[:parts], jnp.zeros((parts, 4)))
        found = forecast.predict(form, w, x + 1) - forecast.predict(form, w, x)
        np.testing.assert_allclose(found, moved, rtol=1e-5)


def test_forecasts_lie_in_the_test_months_and_trainings_before_them(series):
    cfg = SMALL
    _, y = hourly.windows(cfg, series[0], hourly.starts(cfg, KEY))
    assert y.shape[0] == hourly.TRAIN - 34 + 1
    last = int(hourly.starts(cfg, KEY).max()) + cfg.look_back + cfg.horizon
    assert last == hourly.TRAIN

    def error(series):
        return float(hourly.scored(cfg, series, lambda x: jnp.zeros((4, 7)), 0).mse)

    silent = series[0].at[hourly.TEST :].set(0.0)  # which a forecast of nothing gets right
    assert error(silent) == error(silent.at[: hourly.TEST].set(5.0)) == 0.0
    assert error(silent.at[hourly.TEST].set(1.0)) > 0


def test_scores_are_means_over_all_windows(series):
    cfg = SMALL
    found = hourly.scored(cfg, series[1], lambda x: jnp.repeat(x[-1:], 4, axis=0), 0)
    s = np.asarray(series[1])
    count = hourly.END - hourly.TEST - cfg.horizon + 1
    errors = np.stack(
        [s[hourly.TEST + i : hourly.TEST + i + 4] - s[hourly.TEST + i - 1] for i in range(count)]
    )
    np.testing.assert_allclose(found.mse, np.mean(errors**2), rtol=1e-4)
    np.testing.assert_allclose(found.mae, np.mean(np.abs(errors)), rtol=1e-4)


def test_least_squares_is_a_minimum(series):
    """The gradient of the squared error over all training windows vanishes, but for the ridge."""
    w = forecast.least_squares(dataclasses.replace(SMALL, share=1.0), series[0], KEY)
    start = jnp.arange(hourly.TRAIN - 34 + 1)
    x, y = hourly.windows(SMALL, series[0], start)

    def loss(w):
        return jnp.mean((jax.vmap(lambda x: forecast.predict("nlinear", w, x))(x) - y) ** 2)

    at_zero = jax.grad(loss)(jax.tree.map(jnp.zeros_like, w))
    size = lambda g: max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(g))  # noqa: E731
    assert size(jax.grad(loss)(w)) < 0.01 * size(at_zero)
    moved = jax.tree.map(lambda leaf: leaf + 0.02, w)
    assert float(loss(moved)) > float(loss(w))


@pytest.mark.parametrize("form", ["nlinear", "dlinear"])
def test_descent_comes_near_least_squares(series, form):
    cfg = dataclasses.replace(SMALL, form=form, steps=600, halvings=4.0, share=1.0)
    exact = forecast.simulate(dataclasses.replace(cfg, form="least_squares"), KEY, series)
    found = forecast.simulate(cfg, KEY, series)
    last = forecast.simulate(dataclasses.replace(cfg, form="last"), KEY, series)
    assert float(found.mse) < 1.1 * float(exact.mse) < 0.5 * float(last.mse)
    assert int(found.weights) == (30 * 4 + 4) * (2 if form == "dlinear" else 1)


def test_the_share_bounds_the_windows_that_are_drawn(series):
    cfg = dataclasses.replace(SMALL, share=0.01)
    subset = {int(s) for s in hourly.starts(cfg, KEY)[: int(0.01 * (hourly.TRAIN - 33))]}
    batch = hourly.batches(cfg, series[0], KEY)
    hours = jnp.arange(hourly.END, dtype=jnp.float32)[:, None]
    drawn = hourly.batches(cfg, hours, KEY)
    seen = {int(drawn(jnp.array(t))[0][b, 0, 0]) for t in range(20) for b in range(cfg.batch)}
    assert seen <= subset | {int(hourly.starts(cfg, KEY)[len(subset)])}
    assert len(seen) > 0.6 * len(subset)
    assert batch(jnp.array(0))[0].shape == (8, 30, hourly.CHANNELS)


def test_the_step_size_halves_as_often_as_told():
    rate = hourly.schedule(dataclasses.replace(SMALL, steps=100, halvings=4.0, rate=0.16))
    found = [float(rate(t)) for t in (0, 19, 20, 99)]
    np.testing.assert_allclose(found, [0.16, 0.16, 0.08, 0.01], rtol=1e-6)


@pytest.mark.parametrize("learned", [0.0, 1.0])
def test_without_positions_an_encoder_is_blind_to_the_order(learned):
    cfg = encoder.Config(look_back=12, horizon=3, width=8, heads=2, learned=learned)
    w = encoder.initial(cfg, KEY)
    assert w.positions is not None
    x = jnp.asarray(np.random.default_rng(3).standard_normal((12, hourly.CHANNELS)), jnp.float32)
    mixed = jnp.concatenate([x[:-1][::-1], x[-1:]])
    moved = float(jnp.abs(encoder.predict(cfg, w, x) - encoder.predict(cfg, w, mixed)).max())
    assert moved < 1e-5 if learned == 0 else moved > 1e-4
    assert transformer.parameters(w) == int(
        7 * 8 + 12 * 8 + 4 * 64 + 2 * 8 * 16 + 3 * 8 + 8 * 3 * hourly.CHANNELS
    )


def test_an_encoder_that_adds_the_last_value_follows_a_shift():
    cfg = encoder.Config(look_back=12, horizon=3, width=8, heads=2, skip=1.0)
    w = encoder.initial(cfg, KEY)
    x = jnp.asarray(np.random.default_rng(4).standard_normal((12, hourly.CHANNELS)), jnp.float32)
    np.testing.assert_allclose(
        encoder.predict(cfg, w, x + 2), encoder.predict(cfg, w, x) + 2, atol=1e-5
    )


def test_the_series_are_standardised_by_their_first_year():
    try:
        both = hourly.etth()
    except DataMissing as missing:
        pytest.skip(str(missing))
    assert both.shape == (2, hourly.END, hourly.CHANNELS)
    np.testing.assert_allclose(both[:, : hourly.TRAIN].mean(1), 0, atol=1e-4)
    np.testing.assert_allclose(both[:, : hourly.TRAIN].std(1), 1, atol=1e-4)
