"""Real images of two groups: what is drawn of them and the networks, on made images."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import provingground as pg
from provingground.data import real
from provingground.errors import DataMissing
from provingground.keys import seed_key
from provingground.studies.group_imbalance import convnet, images, pools

KEY = seed_key("group_imbalance", 0)
DRAWN, PICK, TESTED = (jax.jit(f) for f in (images.drawn, images.pick, images.tested))
INITIAL = jax.jit(convnet.initial, static_argnums=(0, 1, 2))
LOGITS = jax.jit(convnet.logits, static_argnums=0)
SMALL = images.Config(samples=40, form="two_layers", width=4, batch=8, steps=60, rate=0.01)


def made(count=(60, 30), tested=20, side=8):
    """Images whose upper or lower half is bright, by label; groups differ in colour."""
    rng = np.random.default_rng(0)

    def split(sizes):
        label, group = rng.integers(0, 2, sum(sizes)) == 1, np.repeat([False, True], sizes)
        x = rng.integers(0, 60, (len(label), side, side, 3))
        half = np.where(label[:, None], np.arange(side) < side // 2, np.arange(side) >= side // 2)
        x[..., 0] += 150 * (half & ~group[:, None])[:, :, None]
        x[..., 1] += 150 * (half & group[:, None])[:, :, None]
        return x.astype(np.uint8), label, group

    return jax.tree.map(
        jnp.asarray, pools.pooled(split(count), split((tested, tested)), 60, tested)
    )


POOL = made()

# ------------------------------------------------------------------------------- pools


def test_a_pool_holds_each_group_in_order_and_is_blank_beyond():
    assert POOL.size.tolist() == [60, 30]
    assert float(POOL.images[0, :, :, :, 1].max()) < 60  # group 0 is red
    assert (np.asarray(POOL.images[1, :30]).max((1, 2))[:, 1] >= 150).all()
    assert not np.asarray(POOL.images[1, 30:]).any()
    upper = np.asarray(POOL.images[0, :, :4, :, 0]).mean((1, 2))
    np.testing.assert_array_equal(upper > 100, np.asarray(POOL.labels[0]) == 1)


def test_digits_are_red_and_green_by_turns():
    digits = np.full((4, 28, 28), 7, np.uint8)
    x, label, group = pools.coloured(digits, np.array([4, 5, 9, 0]))
    assert label.tolist() == [False, True, True, False]
    assert group.tolist() == [False, True, False, True]
    assert x.sum((1, 2)).tolist() == [[7 * 784, 0, 0], [0, 7 * 784, 0]] * 2
    assert not x[:, :2].any()
    assert not x[:, -2:].any()
    assert not x[:, :, :2].any()


def test_half_of_the_animals_and_half_of_the_vehicles_fly():
    what = np.array([0, 0, 0, 1, 9, 2, 2, 3, 4, 5, 6])
    _, flies, vehicle = pools.flying(np.zeros((11, 32, 32, 3), np.uint8), what)
    assert vehicle.tolist() == [False] * 4 + [True] * 4
    assert flies.tolist() == [True, False] * 4


def test_faces_are_those_of_a_split_with_hair_and_gender():
    found = {
        "images": np.arange(4, dtype=np.uint8)[:, None, None, None]
        * np.ones((32, 32, 3), np.uint8),
        "attributes": np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]], bool),
        "attribute_names": np.array(["Male", "Bald", "Blond_Hair"]),
        "split": np.array([0, 1, 2, 0], np.int8),
    }
    x, blond, male = pools.faces(found, (0, 2))
    assert x[:, 0, 0, 0].tolist() == [0, 2, 3]
    assert blond.tolist() == male.tolist() == [True, True, False]


def test_coarse_pixels_are_means_from_minus_2_to_2():
    x = np.zeros((1, 4, 4, 3), np.uint8)
    x[0, :2, :2, 0], x[0, 0, 2, 1] = 255, 255
    found = images.seen(jnp.asarray(x), 2)
    np.testing.assert_allclose(found[0, :, :, 0], [[2, -2], [-2, -2]], atol=1e-6)
    np.testing.assert_allclose(found[0, :, :, 1], [[-2, -1], [-2, -2]], atol=1e-6)


# ------------------------------------------------------------------------------ draws


def places(d):
    """Which images of a pool were drawn."""
    whole = np.asarray(images.seen(POOL.images, 1)).reshape(2, 60, -1)
    drawn = np.asarray(d.x).reshape(2, d.x.shape[1], -1)
    return [[int(np.abs(whole[g] - x).max(1).argmin()) for x in drawn[g]] for g in (0, 1)]


def test_a_seed_draws_each_image_once_and_none_that_is_blank():
    first, second = (places(DRAWN(SMALL, seed_key("s", i), POOL)) for i in (0, 1))
    assert len(set(first[0])) == 40
    assert first != second
    assert sorted(first[1][:30]) == list(range(30))
    assert first[1][30:] == first[1][:10]  # a group that has too few begins anew


@pytest.mark.parametrize("minority", [0, 1])
def test_the_minority_comes_first_and_a_larger_one_holds_the_smaller(minority):
    d = DRAWN(SMALL, KEY, POOL)

    def shown(fraction):
        cfg = dataclasses.replace(SMALL, fraction=fraction, minority=minority)
        return np.asarray(PICK(cfg, d, jnp.arange(40))[0])

    few, many = shown(0.1), shown(0.3)
    np.testing.assert_allclose(few[:4], d.x[minority, :4], atol=1e-5)
    np.testing.assert_allclose(few[4:], d.x[1 - minority, :36], atol=1e-5)
    np.testing.assert_allclose(many[:4], few[:4], atol=1e-5)
    np.testing.assert_allclose(many[12:], few[4:32], atol=1e-5)


def test_copies_are_of_the_minority_with_noise_of_the_variance_told():
    cfg = dataclasses.replace(SMALL, fraction=0.5, copies=0.5, noise=0.09)
    own, copies = images.counts(cfg)
    assert (float(own), float(copies)) == (20, 10)
    d = DRAWN(cfg, KEY, POOL)
    x, y = PICK(cfg, d, jnp.arange(50))
    originals = PICK(dataclasses.replace(cfg, copies=0.0), d, jnp.arange(40))[0]
    np.testing.assert_array_equal(x[:40], originals)
    np.testing.assert_array_equal(y[40:], y[:10])
    noise = np.asarray(x[40:] - x[:10]) / 4  # in pixels of 0 to 1
    np.testing.assert_allclose(noise.var(), 0.09, rtol=0.1)
    assert abs(noise.mean()) < 0.02


def test_the_spread_multiplies_the_covariance_of_the_minority_alone():
    cfg = dataclasses.replace(SMALL, fraction=0.5, spread=4.0)
    d = DRAWN(cfg, KEY, POOL)
    group = jnp.repeat(jnp.array([0, 1]), 40)
    flat = d.x.reshape(80, 8, 8, 3)
    out = images.spread(cfg, d, flat, group).reshape(2, 40, -1)
    before = np.asarray(d.x).reshape(2, 40, -1)
    np.testing.assert_allclose(out[0], before[0], atol=1e-5)
    np.testing.assert_allclose(np.cov(out[1].T), 4 * np.cov(before[1].T), atol=1e-3)
    np.testing.assert_allclose(out[1].mean(0), before[1].mean(0), atol=1e-5)


# --------------------------------------------------------------------------- networks


def test_a_convolution_is_that_of_the_library():
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.standard_normal((2, 5, 5, 3)), jnp.float32)
    k = jnp.asarray(rng.standard_normal((3, 3, 3, 4)), jnp.float32)
    names = ("NHWC", "HWIO", "NHWC")
    known = jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=names)
    np.testing.assert_allclose(convnet.convolve(k.reshape(27, 4), x), known, atol=1e-4)


def test_pools_take_the_largest():
    x = jnp.arange(16.0).reshape(1, 4, 4, 1)
    assert convnet.pool(x)[0, :, :, 0].tolist() == [[5, 7], [13, 15]]
    assert convnet.pool(x[:, :1, :1]).shape == (1, 1, 1, 1)


def test_the_residual_network_has_nine_layers():
    w = jax.eval_shape(lambda key: convnet.initial("resnet9", 2, 32, key), KEY)
    channels = [(3, 2), (2, 4), (4, 4), (4, 4), (4, 8), (8, 16), (16, 16), (16, 16)]
    assert [layer.kernel.shape for layer in w.layers] == [(9 * c, o) for c, o in channels]
    assert convnet.depth("resnet9") == len(w.layers)  # and the read-out is the ninth
    assert convnet.parameters(w) == sum(9 * c * o + 2 * o for c, o in channels) + 16 + 1


def test_a_residual_block_without_weights_is_the_identity():
    w = INITIAL("resnet9", 2, 8, KEY)
    x = jnp.asarray(np.random.default_rng(2).standard_normal((3, 8, 8, 3)), jnp.float32)
    silent = [2, 3, 6, 7]  # the layers of the two blocks
    layers = [
        dataclasses.replace(v, gain=0 * v.gain) if i in silent else v
        for i, v in enumerate(w.layers)
    ]

    @jax.jit
    def plain(z):
        for i, halved in ((0, False), (1, True), (4, True), (5, True)):
            z = jax.nn.relu(convnet.normalised(convnet.convolve(w.layers[i].kernel, z)))
            z = convnet.pool(z) if halved else z
        return z.max((1, 2)) @ w.read_out

    found = LOGITS("resnet9", dataclasses.replace(w, layers=tuple(layers)), x)
    np.testing.assert_allclose(found, plain(x), atol=1e-5)


@pytest.mark.parametrize("form", convnet.PLANS)
def test_an_image_is_judged_by_itself(form):
    w = INITIAL(form, 2, 8, KEY)
    x = jnp.asarray(np.random.default_rng(3).standard_normal((4, 8, 8, 3)), jnp.float32)
    whole = LOGITS(form, w, x)
    np.testing.assert_allclose(LOGITS(form, w, x[2:3]), whole[2:3], atol=1e-5)
    assert float(jnp.std(whole)) > 1e-3


# -------------------------------------------------------------------------- trainings


def test_scores_are_those_of_a_known_network():
    """One that sees red alone, above against below: right about group 0, blind to group 1."""
    d = DRAWN(SMALL, KEY, POOL)
    red = jnp.array([1.0, 0, 0])
    x = d.test_x[..., 0]
    f = np.asarray(x[:, :, :4].sum((2, 3)) - x[:, :, 4:].sum((2, 3)))
    y = np.asarray(d.test_y)
    right = (f * y > 0).mean(1)
    assert right[0] == 1

    kernel = jnp.zeros((9, 3, 4)).at[4, :, 0].set(red).reshape(27, 4)
    same = jnp.zeros((9, 4, 8)).at[4, 0, 0].set(1.0).reshape(36, 8)
    one, two = jnp.ones(4), jnp.ones(8)
    first = convnet.Layer(kernel, one, 10 * one)  # positive, so that nothing is cut off
    second = convnet.Layer(same, two, 0 * two)
    read = jnp.zeros((2, 2, 8)).at[0, :, 0].set(1.0).at[1, :, 0].set(-1.0).ravel()
    w = convnet.Weights((first, second), read, jnp.zeros(()))
    peaks = np.asarray(x).reshape(2, 20, 2, 4, 2, 4).max((3, 5))
    g = peaks[:, :, 0].sum(-1) - peaks[:, :, 1].sum(-1)
    for minority in (0, 1):
        found = TESTED(dataclasses.replace(SMALL, minority=minority), w, d)
        own, other = (g * y > 0).mean(1)[[minority, 1 - minority]]
        np.testing.assert_allclose(found.accuracy_own, own, atol=1e-6)
        np.testing.assert_allclose(found.accuracy_other, other, atol=1e-6)
        np.testing.assert_allclose(found.accuracy, (own + other) / 2, atol=1e-6)
        loss = np.log1p(np.exp(-g * y)).mean(1)
        np.testing.assert_allclose(found.loss_own, loss[minority], rtol=1e-4)
        np.testing.assert_allclose(found.loss, loss.mean(), rtol=1e-4)


def test_variances_are_those_of_pixels():
    cfg = dataclasses.replace(SMALL, spread=4.0)
    d = DRAWN(cfg, KEY, POOL)
    found = TESTED(cfg, INITIAL("two_layers", 4, 8, KEY), d)
    var = (np.asarray(d.x) / 4).var(1).mean((1, 2, 3))
    np.testing.assert_allclose(found.variance_own, 4 * var[1], rtol=1e-4)
    np.testing.assert_allclose(found.variance_other, var[0], rtol=1e-4)


def test_training_learns_the_group_that_is_there():
    run = jax.jit(lambda cfg: images.simulate(cfg, KEY, POOL))
    both, alone = (run(dataclasses.replace(SMALL, fraction=f)) for f in (0.5, 0.0))
    assert float(both.accuracy) > 0.9
    assert float(alone.accuracy_other) > 0.9
    assert float(alone.accuracy_own) < float(both.accuracy_own)


# ------------------------------------------------------------------------- real data


def test_digits_and_pictures_are_where_they_should_be():
    try:
        digits, pictures = pools.mnist(), pools.cifar()
    except DataMissing as missing:
        pytest.skip(str(missing))
    assert digits.size.tolist() == [5000, 5000]
    assert not digits.images[0, :, :, :, 1:].any()
    assert not digits.images[1, ..., 0].any()
    assert pictures.size.tolist() == [5000, 3000]
    for g, n in enumerate(pictures.size):
        assert np.mean(pictures.labels[g, :n]) == 0.5
    assert digits.test_labels.shape == pictures.test_labels.shape == (2, 500)


def test_a_copy_of_the_faces_can_be_trained_on():
    rng = np.random.default_rng(4)
    found = {
        "images": rng.integers(0, 256, (90, 32, 32, 3)).astype(np.uint8),
        "attributes": rng.integers(0, 2, (90, 2)).astype(bool),
        "attribute_names": np.array(["Blond_Hair", "Male"]),
        "split": np.repeat([0, 1, 2], 30).astype(np.int8),
    }
    pool = pools.pooled(pools.faces(found, (0, 1)), pools.faces(found, (2,)))
    men = found["attributes"][:60, 1]
    assert pool.size.tolist() == [60 - men.sum(), men.sum()]
    np.testing.assert_array_equal(pool.labels[1, : men.sum()], found["attributes"][:60, 0][men])
    shapes = jax.eval_shape(lambda pool: images.simulate(images.Config(), KEY, pool), pool)
    assert shapes.accuracy_own.shape == ()
    for e in ("fig4_8_celeba", "fig4_1_celeba"):
        experiment = pg.studies()["group_imbalance"].experiment(e)
        assert experiment.trainings.data == "celeba"
        assert [claim.kind for claim in experiment.claims] == ["printed"]


def test_faces_that_are_not_here_are_said_to_be_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PROVING_DATA", str(tmp_path))
    pools.celeba.cache_clear()
    real._loaded.cache_clear()
    with pytest.raises(DataMissing, match="celeba"):
        pg.run("group_imbalance", "fig4_8_celeba", store=tmp_path / "s", progress=False)
