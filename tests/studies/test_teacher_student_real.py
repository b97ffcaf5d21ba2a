"""Figures 4 and 5: the teacher that reads digits and its student, on made images."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from provingground import identity
from provingground.errors import DataMissing
from provingground.keys import normal, seed_key, stream, uniform
from provingground.studies.teacher_student import convolution, digits
from provingground.studies.teacher_student.convolution import Config, Digits, Mnist, Reader
from provingground.train import descend

KEY = seed_key("teacher_student", 0)
SMALL = Config(
    kernels=4, kernel=2, pool=2, across=2, images=90, test_images=30, lessons=150,
    lesson_size=16, lesson_rate=0.02, batch=16, rate=0.05, steps=60, record=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def made() -> Mnist:
    """A bright square for each label, at a place of its own; the paper is clean at the top."""
    rng = np.random.default_rng(0)

    def part(count: int) -> Digits:
        labels = np.arange(count, dtype=np.int32) % 10
        images = rng.integers(0, 60, (count, 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels, strict=True):
            row, column = 12 + 5 * (label // 4), 4 + 5 * (label % 4)
            image[row : row + 5, column : column + 5] = 255
            image[:11] = 0
        return Digits(images, labels)

    return Mnist(part(120), part(40))


def grids(n: int, side: int) -> jax.Array:
    return normal(KEY, (n, side, side))


def test_patches_go_row_by_row():
    place = jnp.arange(9.0).reshape(3, 3).repeat(2, 0).repeat(2, 1)
    found = convolution.patches(place[None], 2)
    np.testing.assert_array_equal(found[0], np.tile(np.arange(9.0), (4, 1)))
    inside = jnp.tile(jnp.arange(4.0).reshape(2, 2), (3, 3))
    np.testing.assert_array_equal(
        convolution.patches(inside[None], 2)[0], np.arange(4.0)[:, None].repeat(9, 1)
    )


@pytest.mark.parametrize(("kernel", "pool", "across"), [(3, 3, 3), (2, 3, 1), (1, 2, 3)])
def test_the_teacher_is_a_convolution_with_average_pooling(kernel, pool, across):
    cfg = Config(kernel=kernel, pool=pool, across=across, kappa=0.1)
    images, v = grids(5, convolution.side(cfg)), normal(KEY, (16, kernel**2))
    answers = jax.lax.conv(
        images[:, None], v.reshape(16, 1, kernel, kernel), (kernel, kernel), "VALID"
    )
    n = pool * across
    means = answers.reshape(5, 16, across, pool, across, pool).mean((3, 5)).reshape(5, 16, -1)
    x = convolution.patches(images, kernel)
    found = convolution.convolved(v, x @ convolution.pooling(cfg), 0.1)
    np.testing.assert_allclose(found, jnp.where(means >= 0, means, 0.1 * means), atol=1e-5)
    assert x.shape == (5, kernel**2, n**2)


def test_groups_are_equal_and_their_columns_sum_to_one():
    cfg = Config()
    s_star = convolution.pooling(cfg)
    np.testing.assert_array_equal(np.bincount(convolution.groups(cfg)), np.full(9, 9))
    np.testing.assert_allclose(s_star.sum(0), 1, rtol=1e-6)
    assert convolution.groups(cfg)[[0, 2, 3, 26, 27, 80]].tolist() == [0, 0, 1, 2, 3, 8]


def test_empty_paper_stays_empty_and_full_ink_full():
    images = np.zeros((2, 28, 28), np.uint8)
    images[1] = 255
    images[0, 10:18, 10:18] = 255
    found = np.asarray(convolution.resized(jnp.asarray(images), 27))
    assert found.shape == (2, 27, 27)
    np.testing.assert_allclose(found[1], 1, rtol=1e-6)
    assert found[0, :8].max() == found[0, :, 20:].max() == 0.0
    assert found[0].sum() == pytest.approx(64 * (27 / 28) ** 2, rel=0.01)


def test_rolled_images_have_the_same_pixels_elsewhere():
    images = jnp.zeros((400, 6, 6)).at[:, 0, 0].set(1.0)
    np.testing.assert_array_equal(convolution.rolled(images, 0.0, KEY), images)
    found = np.asarray(convolution.rolled(images, 1.0, KEY))
    np.testing.assert_array_equal(found.sum((1, 2)), np.ones(400))
    assert (found.sum(0) > 0).all()
    half = np.asarray(convolution.rolled(images, 0.5, KEY)).sum(0) > 0
    assert half[:3, :3].all()
    assert half.sum() == 9


def test_a_seed_draws_images_with_their_labels_and_none_twice():
    labels = np.arange(200, dtype=np.int32)
    made = Digits(np.zeros((200, 4, 4), np.uint8) + labels.astype(np.uint8)[:, None, None], labels)
    images, found = convolution.drawn(made, 150, KEY)
    assert len(set(found.tolist())) == 150
    np.testing.assert_array_equal(images[:, 1, 2], found)
    _, other = convolution.drawn(made, 150, seed_key("teacher_student", 1))
    assert other.tolist() != found.tolist()


@pytest.mark.parametrize("rule", ["adam", "sgd"])
def test_one_column_for_each_group_is_descent_on_all_columns(rule):
    """Queries of a group have equal columns for ever; a column's gradient is that of each."""
    cfg = dataclasses.replace(SMALL, rule=rule, rate=0.05 if rule == "adam" else 0.1)
    with identity.precision_of("float64"):
        x, v_star = uniform(KEY, (40, 4, 16)), normal(KEY, (4, 4))
        group, draws = convolution.groups(cfg), stream(KEY, "batches")
        s_star = convolution.pooling(cfg)[:, group]

        def loss(w: tuple, x: jax.Array) -> jax.Array:
            f = convolution.convolved(w[0], x @ jax.nn.softmax(w[1] / 4, axis=0), cfg.kappa)
            return jnp.sum((convolution.convolved(v_star, x @ s_star, cfg.kappa) - f) ** 2) / 32

        value, logits = descend(
            loss,
            (jnp.zeros((4, 4)), jnp.zeros((16, 16))),
            optax.adam(0.05) if rule == "adam" else optax.sgd(0.1),
            steps=cfg.steps,
            batch=lambda t: x[convolution.some(draws, t, 16, 40)],
        ).last
        few = digits.distil(cfg, Reader(v_star, jnp.zeros((10, 4, 4))), x, x[:10], KEY).last
        assert float(jnp.abs(logits).max()) > 0.01
        np.testing.assert_allclose(few.value, value, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(few.logits[:, group], logits, rtol=1e-4, atol=1e-6)


def test_the_cosine_in_a_metric_is_that_of_what_the_matrices_do():
    a, b, x = normal(KEY, (4, 6)), normal(KEY, (4, 6))[::-1], normal(KEY, (500, 6, 3))
    metric = digits.second_moment(x)
    ya, yb = (jnp.einsum("md,ndi->nmi", w, x).ravel() for w in (a, b))
    expected = ya @ yb / (jnp.linalg.norm(ya) * jnp.linalg.norm(yb))
    np.testing.assert_allclose(digits.cosine(a, b, metric), expected, rtol=1e-3)
    np.testing.assert_allclose(digits.cosine(a, 3 * a, metric), 1, rtol=1e-5)
    assert float(digits.cosine(0 * a, a, metric)) == 0.0


def test_patches_that_are_always_empty_share_what_attention_gives_them(made):
    """Their logits have one gradient, so a column cannot tell them apart; with images rolled
    around none is empty."""
    found = digits.simulate(SMALL, KEY, made)
    empty = np.asarray(found.ink) == 0
    assert empty.sum() >= 4
    np.testing.assert_allclose(np.ptp(found.scores[empty], axis=0), 0, atol=1e-6)
    assert float(np.ptp(found.scores[~empty], axis=0).min()) > 1e-3
    moved = digits.simulate(dataclasses.replace(SMALL, rolled=1.0), KEY, made)
    assert (moved.ink > 0).all()
    np.testing.assert_array_equal(moved.v_star, found.v_star)


def test_the_teacher_reads_and_the_student_takes_its_place(made):
    found = digits.simulate(dataclasses.replace(SMALL, lessons=400, steps=1500), KEY, made)
    assert float(found.accuracy) > 0.5
    np.testing.assert_allclose([found.loss[0], found.test_loss[0]], 1, rtol=1e-5)
    assert float(found.loss[-1]) < 0.02
    assert abs(float(found.student_accuracy - found.accuracy)) < 0.15
    np.testing.assert_allclose(found.scores.sum(0), 1, rtol=1e-5)
    np.testing.assert_array_equal(found.support.sum(0), np.full(16, 4))
    own = (found.scores * found.support).sum(1)
    np.testing.assert_allclose(found.weight[-1], own, rtol=1e-4)


def test_a_student_with_the_teacher_s_weights_makes_no_error():
    """And weight 1 for every key: the values of the probes where training should end."""
    cfg = dataclasses.replace(SMALL, rate=0.0)
    x, v = uniform(KEY, (20, 4, 16)), normal(KEY, (4, 4))
    trace = digits.distil(cfg, Reader(v, jnp.zeros((10, 4, 4))), x, x[:5], KEY)
    np.testing.assert_array_equal(trace.last.value, np.zeros((4, 4)))
    np.testing.assert_allclose(trace.probes["weight"], 4 / 16, rtol=1e-5)
    exact = digits.Weights(v, 60 * convolution.pooling(cfg) * 4)
    np.testing.assert_allclose(digits.attention(exact, 1), convolution.pooling(cfg), atol=1e-5)


def test_mnist_is_whole_and_its_edges_are_nearly_empty():
    try:
        data = convolution.mnist()
    except DataMissing as missing:
        pytest.skip(str(missing))
    assert data.train.images.shape == (60_000, 28, 28)
    assert np.bincount(data.test.labels).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009
    ]  # fmt: skip
    images, _ = convolution.drawn(data.train, 500, KEY)
    x = convolution.patches(convolution.resized(images, 27), 3)
    ink = np.asarray(jnp.mean(x**2, axis=(0, 1))).reshape(9, 9)
    flat, sides, inside = ink[[0, -1]].mean(), ink[1:-1, [0, -1]].mean(), ink[1:-1, 1:-1].mean()
    assert sides < flat < 0.05 * inside
