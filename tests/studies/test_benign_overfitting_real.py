"""Figure 2's digits in a frame of noise, on made images."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from provingground.errors import DataMissing
from provingground.keys import seed_key
from provingground.studies.benign_overfitting import digits

KEY = seed_key("benign_overfitting", 0)
SMALL = digits.Config(
    samples=24, pool=32, width=8, hidden=16, batch=16, steps=60, rate=0.01, test_images=40
)


def replaced(**given) -> digits.Config:
    return dataclasses.replace(SMALL, **given)


@pytest.fixture(scope="module")
def made():
    """Ten classes, each a bright bar in a row of its own."""
    rng = np.random.default_rng(0)

    def images(n):
        y = rng.integers(0, 10, n).astype(np.uint8)
        x = np.zeros((n, 28, 28), np.uint8)
        x[np.arange(n), 5 + y.astype(int) * 2, 6:22] = rng.integers(128, 256, (n, 1))
        return x, y

    return digits.Digits(*images(64), *images(40))


def tokens(seed, n=16, width=8):
    return jnp.asarray(np.random.default_rng(seed).standard_normal((n, width)), jnp.float32)


def test_patches_are_squares_of_means():
    x = np.random.default_rng(1).standard_normal((2, 28, 28)).astype(np.float32)
    found = digits.patches(jnp.asarray(x), 2, 7)
    assert found.shape == (2, 4, 49)
    means = x[1, 14:, :14].reshape(7, 2, 7, 2).mean((1, 3))  # row 1, column 0: token 2
    np.testing.assert_allclose(found[1, 2].reshape(7, 7), means, atol=1e-6)


def test_the_frame_is_four_pixels_wide_and_leaves_inner_tokens_clean():
    whole = np.asarray(digits.frame(1, 28)).reshape(28, 28)
    assert whole.sum() == 28**2 - 20**2
    assert whole[4:24, 4:24].sum() == 0
    by_token = np.asarray(digits.frame(1, 7)).sum(axis=1).reshape(4, 4)
    assert (by_token[1:3, 1:3] == 0).all()
    assert by_token[0, 0] == 49 - 9
    assert by_token[0, 1] == 28
    assert (np.asarray(digits.frame(1, 14)).sum(axis=1) == 96).all()  # no token is clean


@pytest.mark.parametrize(("snr", "a", "b"), [(0.2, 1 / 6, 5 / 6), (2.0, 2 / 3, 1 / 3)])
def test_factors_are_those_of_figure_2(snr, a, b):
    """The two that the paper prints."""
    x = jnp.ones((1, 16, 49))
    found = digits.framed(replaced(snr=snr), x, x)[0]
    edge = digits.frame(1, 7)
    np.testing.assert_allclose(found, a + b * edge, rtol=1e-5)


def test_norms_are_layer_norm_its_parts_or_nothing():
    x = 3 * tokens(3) + 1
    centred = x - x.mean(-1, keepdims=True)
    rms = lambda x: np.sqrt(np.mean(np.square(x), -1, keepdims=True))  # noqa: E731
    for at, given, expected in (
        (1.0, {}, centred / rms(centred)),
        (1.0, {"scaling": 0.0}, centred),
        (1.0, {"centring": 0.0}, x / rms(x)),
        (1.0, {"centring": 0.0, "shared": 1.0}, x / np.sqrt(np.mean(np.square(x)))),
        (0.0, {}, x),
    ):
        found = digits.normed(replaced(**given), at, x)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_only_a_scale_of_each_token_forgets_how_long_tokens_are():
    """Noise tokens that are ten times as long: gone with RMS of each token, there with the rest."""
    x = tokens(4)
    long = x.at[:4].mul(10.0)
    forms = {
        "layer norm": SMALL,
        "RMS": replaced(centring=0.0),
        "centring": replaced(scaling=0.0),
        "all tokens": replaced(centring=0.0, shared=1.0),
    }
    both = {n: [digits.normed(cfg, 1.0, x) for x in (long, x)] for n, cfg in forms.items()}
    moved = {n: float(jnp.abs(a - b).max()) for n, (a, b) in both.items()}
    assert max(moved["layer norm"], moved["RMS"]) < 1e-3
    assert min(moved["centring"], moved["all tokens"]) > 0.1


def test_attention_is_the_softmax_over_tokens():
    w, x, expected = digits.initial_weights(SMALL, KEY), np.asarray(tokens(5)), 0.0
    q, k, v, o = (np.asarray(m[1]) for m in (w.w_q, w.w_k, w.w_v, w.w_o))
    for a in range(4):
        s = np.exp((x @ q[a].T) @ (x @ k[a].T).T / np.sqrt(2))
        expected = expected + (s / s.sum(-1, keepdims=True)) @ x @ v[a].T @ o[a].T
    found = digits.attend(w, 1, jnp.asarray(x))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_only_positions_tell_tokens_apart():
    w, x = digits.initial_weights(SMALL, KEY), tokens(7, 16, 49)
    blind = dataclasses.replace(w, positions=jnp.zeros_like(w.positions))

    def moved(w):
        f, turned = digits.network(SMALL, w, x), digits.network(SMALL, w, x[::-1])
        return float(jnp.abs(f - turned).max())

    assert moved(blind) < 1e-5 < moved(w)


def test_samples_beyond_n_and_the_size_of_the_pool_do_not_matter(made):
    """The first N of the pool are the training set: other images behind them change nothing."""
    small = digits.simulate(SMALL, KEY, made)
    large = digits.simulate(replaced(pool=48), KEY, made)
    more = digits.simulate(replaced(samples=32), KEY, made)
    assert float(small.test_loss) == pytest.approx(float(large.test_loss), rel=1e-3)
    assert float(small.train_loss) == pytest.approx(float(large.train_loss), rel=1e-3)
    assert float(more.test_loss) != pytest.approx(float(small.test_loss), rel=1e-3)


def test_clear_digits_are_learned_and_noise_alone_is_only_memorised(made):
    cfg = replaced(samples=64, pool=64, steps=400)
    clear = digits.simulate(dataclasses.replace(cfg, snr=50.0), KEY, made)
    assert float(clear.test_error) < 0.1
    dark = dataclasses.replace(made, x_train=0 * made.x_train, x_test=0 * made.x_test)
    noise = digits.simulate(dataclasses.replace(cfg, snr=0.05), KEY, dark)
    assert float(noise.train_loss) < 0.5 * np.log(10)
    assert float(noise.test_error) > 0.6
    assert float(noise.test_loss) > np.log(10)


def test_seeds_draw_subsets_and_noise_of_their_own(made):
    x, y = jnp.asarray(made.x_test), jnp.asarray(made.y_test)
    noise = [digits.drawn(SMALL, x, y, jax.random.key(i))[1] for i in (1, 2)]
    assert float(jnp.abs(noise[0] - noise[1]).max()) > 1
    assert noise[0].shape == (40, 16, 49)


def test_the_digits_are_all_there():
    try:
        found = digits.mnist()
    except DataMissing as missing:
        pytest.skip(str(missing))
    assert found.x_train.shape == (60000, 28, 28)
    assert found.x_test.shape == (10000, 28, 28)
    assert set(np.unique(found.y_train)) == set(range(10))
