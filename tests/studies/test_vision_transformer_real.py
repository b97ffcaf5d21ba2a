"""Pasted photographs and the transformer that learns from them, on made images."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from provingground.errors import DataMissing
from provingground.keys import seed_key
from provingground.nets import transformer
from provingground.studies.vision_transformer import pasted, photographs, theory

KEY = seed_key("vision_transformer", 0)
SMALL = photographs.Config(
    canvas=5,
    side=4,
    patch=4,
    layers=1,
    heads=2,
    width=8,
    batch=16,
    steps=40,
    rate=0.01,
    pair=1.0,
    samples=100,
    test_samples=100,
)
PER_CLASS = 20


def with_(**settings):
    return dataclasses.replace(SMALL, **settings)


def made_half(seed):
    """Objects of one grey for each class (100 and more), some darker by one; textures below 50."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(10), PER_CLASS)
    rng.shuffle(labels)
    grey = 100 + 10 * labels + rng.integers(0, 2, len(labels))
    objects = np.broadcast_to(grey[:, None, None, None], (len(labels), 32, 32, 3))
    textures = rng.integers(20, 50, (6, 64, 64, 3))
    return pasted.half(objects.astype(np.uint8), labels, textures.astype(np.uint8))


@pytest.fixture(scope="module")
def halves():
    return jax.tree.map(jnp.asarray, {"train": made_half(0), "test": made_half(1)})


COUNT = 60


def drawn(cfg, part, *, of=None, i=None):
    """As many images of a scene, each with a texture behind."""
    scene = pasted.Scene(
        pasted.task(cfg.pair) if of is None else of,
        pasted.orders(part, KEY),
        jnp.ones(10),
        pasted.removed(cfg, cfg.frac_relevant),
    )
    return jitted(cfg, part, scene, jnp.arange(COUNT) if i is None else i)


@jax.jit
def jitted(cfg, part, scene, i):
    return pasted.samples(cfg, pasted.resized(cfg, part), scene, KEY, i)


def grey(tokens):
    """Back to the grey levels of pixels."""
    return np.asarray(tokens) * 255 * pasted.DEVIATION + 255 * pasted.MEAN


@pytest.mark.parametrize("pixels", [16, 26, 32])
def test_resizing_keeps_every_pixel_s_area(pixels):
    r = pasted.overlaps(pixels)
    np.testing.assert_allclose(r.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(r.sum(0), pixels / 32, rtol=1e-6)
    ramp = r @ (np.arange(32) + 0.5)  # of a ramp, at the middles of the new pixels
    np.testing.assert_allclose(ramp, (np.arange(pixels) + 0.5) * 32 / pixels, atol=0.15)
    if pixels == 16:
        np.testing.assert_array_equal(r @ np.arange(32), np.arange(16) * 2 + 0.5)


def test_an_object_fills_its_patches_and_nothing_else(halves):
    s = drawn(with_(pair=0.0), halves["train"])
    level = grey(s.tokens)
    relevant = np.asarray(s.relevant)
    assert (relevant.sum(1) == 16).all()
    told = 100 + 10 * np.asarray(s.label)[:, None, None]
    on_it = np.broadcast_to(relevant[:, :, None], level.shape)
    assert (np.abs(level - told - 0.5)[on_it] < 0.6).all()
    assert (level[~on_it] < 50).all()
    corners = relevant.reshape(COUNT, 5, 5)[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    assert (corners.sum(1) == 1).all()  # of 5 x 5 patches 4 x 4 hold one corner
    assert corners.any(0).all()  # and places vary


def test_patches_are_squares_row_by_row():
    image = np.arange(20 * 20 * 3, dtype=np.float32).reshape(20, 20, 3)
    tokens = np.asarray(pasted.patches(SMALL, jnp.asarray(image)))
    for row, column in ((0, 0), (1, 3), (4, 2)):
        square = image[4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
        np.testing.assert_array_equal(tokens[5 * row + column], square.ravel())


@pytest.mark.parametrize(("fraction", "left"), [(0.64, 9), (0.73, 6), (0.84, 3), (1.0, 0)])
def test_removal_leaves_the_fraction_that_is_asked_for(halves, fraction, left):
    s = drawn(with_(frac_relevant=fraction), halves["train"])
    kept, relevant = np.asarray(s.kept), np.asarray(s.relevant)
    assert kept[relevant].all()
    assert ((kept & ~relevant).sum(1) == left).all()
    np.testing.assert_allclose(16 / kept.sum(1), fraction, atol=0.01)
    fewer = np.asarray(drawn(with_(frac_relevant=1.0), halves["train"]).kept)
    assert not (fewer & ~kept).any()  # what goes first goes at all fractions


def test_classes_take_turns_and_subsets_are_nested_without_repeats(halves):
    part = halves["train"]
    ten = np.asarray(drawn(with_(pair=0.0), part).label)
    assert (np.bincount(ten, minlength=10) == 6).all()
    pair = np.asarray(drawn(SMALL, part).label)
    assert (np.bincount(pair, minlength=10)[[pasted.AIRPLANE, pasted.BIRD]] == 30).all()
    eight = np.asarray(drawn(SMALL, part, of=pasted.eight_others()).label)
    assert set(eight) == set(pasted.OTHERS)
    order = np.asarray(pasted.orders(part, KEY))[:, :PER_CLASS]
    first, count = np.asarray(part.first), np.asarray(part.number)
    for c in range(10):
        assert sorted(order[c]) == list(range(first[c], first[c] + count[c]))
    assert (order != np.sort(order, axis=1)).any()
    forth, back = drawn(SMALL, part), drawn(SMALL, part, i=jnp.arange(COUNT)[::-1])
    np.testing.assert_array_equal(forth.tokens, back.tokens[::-1])


def test_backgrounds_are_correlated_with_the_class_as_told(halves):
    cfg = with_(textured=0.9, textured_airplanes=0.1)
    shares = pasted.textured(cfg)
    scene = pasted.Scene(
        pasted.task(1.0), pasted.orders(halves["train"], KEY), shares, pasted.removed(cfg, 0.64)
    )
    some = [jitted(cfg, halves["train"], scene, jnp.arange(COUNT) + COUNT * k) for k in range(16)]
    s = jax.tree.map(lambda *parts: jnp.concatenate(parts), *some)
    on, label = np.asarray(s.textured), np.asarray(s.label)
    assert abs(on[label == pasted.BIRD].mean() - 0.9) < 0.05
    assert abs(on[label == pasted.AIRPLANE].mean() - 0.1) < 0.05
    behind = grey(s.tokens)[~np.asarray(s.relevant)].reshape(len(on), 9, -1)
    np.testing.assert_allclose(behind[~on], 0, atol=1e-3)
    assert (behind[on] > 19).all()


def test_removed_patches_count_for_nothing(halves):
    s = drawn(with_(frac_relevant=0.84), halves["train"])
    tokens, kept = s.tokens[0], s.kept[0]
    w, network = photographs.initial(SMALL, KEY), jax.jit(photographs.network)
    f, p = network(w, tokens, kept)
    other = jnp.where(kept[:, None], tokens, 7.0)
    np.testing.assert_allclose(network(w, other, kept)[0], f, atol=1e-5)
    assert float(jnp.abs(network(w, tokens + 0.1, kept)[0] - f).max()) > 1e-4
    assert float(p[..., ~kept].max()) == 0
    one = photographs.on_relevant(jax.tree.map(lambda leaf: leaf[0], s), p)
    by_hand = np.asarray(p)[:, :, np.asarray(kept)][..., np.asarray(s.relevant[0])].sum(-1).mean()
    np.testing.assert_allclose(one, by_hand, rtol=1e-5)


def test_without_positions_the_order_of_patches_does_not_matter(halves):
    s = drawn(SMALL, halves["train"])
    tokens, kept = s.tokens[0], s.kept[0]
    w = photographs.initial(SMALL, KEY)
    assert w.positions is not None
    bare = dataclasses.replace(w, positions=jnp.zeros_like(w.positions))
    network = jax.jit(photographs.network)
    for weights, same in ((bare, True), (w, False)):
        f = network(weights, tokens, kept)[0]
        turned = network(weights, tokens[::-1], kept[::-1])[0]
        assert (float(jnp.abs(f - turned).max()) < 1e-5) == same


def test_classes_that_are_not_asked_for_never_win(halves):
    s = drawn(SMALL, halves["train"])
    among = pasted.task(1.0).among
    assert np.flatnonzero(among).tolist() == [pasted.AIRPLANE, pasted.BIRD]
    w = photographs.initial(SMALL, KEY)
    f = jax.vmap(lambda s: photographs.chosen(w, among, s)[0])(s)
    assert set(np.asarray(f.argmax(1))) <= {pasted.AIRPLANE, pasted.BIRD}


def test_the_initial_model_never_sees_the_read_out_of_bird_and_airplane(halves):
    """With no step of the second part, the output weights of both are those of the start."""
    cfg = with_(start_steps=5, start_samples=80, steps=1, rate=0.01)
    part = pasted.resized(cfg, halves["train"])
    first = photographs.initial(cfg, photographs.stream(KEY, "init"))
    scene = photographs.scenes(cfg, part, KEY)
    assert set(np.flatnonzero(scene(jnp.array(4)).task.among)) == set(pasted.OTHERS)
    assert set(np.flatnonzero(scene(jnp.array(5)).task.among)) == {pasted.AIRPLANE, pasted.BIRD}
    assert int(scene(jnp.array(0)).removed) == 9
    w = jax.jit(photographs.trained)(cfg, part, KEY)
    assert w.read_out is not None
    assert first.read_out is not None
    moved = np.abs(np.asarray(w.read_out - first.read_out)).max(1)
    pair = [pasted.AIRPLANE, pasted.BIRD]
    assert (moved[pair] <= 0.0101).all()  # one step of Adam
    assert (moved[pasted.OTHERS] > 0.0102).all()


def test_a_network_learns_to_tell_greys_apart_and_is_scored_on_the_test_half(halves):
    cfg = with_(textured=0.5, textured_airplanes=0.5)
    simulate = jax.jit(photographs.simulate)
    found = simulate(cfg, KEY, halves)
    assert float(found.accuracy) > 0.95
    assert min(float(found.against), float(found.along)) > 0.9
    whole = simulate(with_(frac_relevant=1.0), KEY, halves)
    np.testing.assert_allclose(whole.attention, 1, rtol=1e-5)


def test_parameters_of_the_paper_s_network():
    cfg = photographs.Config()
    assert (cfg.layers, cfg.heads, cfg.canvas * cfg.patch, cfg.side * cfg.patch) == (5, 4, 32, 26)
    np.testing.assert_allclose(cfg.side**2 / cfg.canvas**2, 0.66, atol=0.001)
    w = jax.eval_shape(lambda: photographs.initial(cfg, KEY))
    block = 4 * 64 * 64 + 2 * 64 * 128 + 2 * 64
    assert transformer.parameters(w) == 12 * 64 + 256 * 64 + 5 * block + 64 + 64 * 10


def test_the_theory_says_how_samples_fall_with_the_fraction():
    at = {a: theory.theory(with_(frac_relevant=a)).values["samples_order"] for a in (0.5, 1.0)}
    assert at[0.5] == 4 * at[1.0]


def test_no_texture_source_is_in_both_halves():
    try:
        both = pasted.halves()
    except DataMissing as missing:
        pytest.skip(str(missing))
    assert [len(both[name].objects) for name in ("train", "test")] == [10000, 2400]
    train, test = (both[name].textures for name in ("train", "test"))
    assert len(train) + len(test) == 208
    assert not {t.tobytes() for t in train} & {t.tobytes() for t in test}
    assert both["train"].number.tolist() == [3000, 500, 3000, *[500] * 7]
