import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provingground.errors import InputError
from provingground.nets.transformer import (
    Shape,
    initial_weights,
    parameters,
    sinusoidal,
    transformer,
    visible,
)

FULL = Shape(layers=2, heads=2, width=6, hidden=8, inputs=5, outputs=3)
BARE = Shape(layers=2, heads=2, width=6, hidden=0, norm=False)  # attention only
ONE = Shape(layers=1, heads=2, width=6, hidden=8, inputs=5, outputs=3)
T = 5

run = jax.jit(transformer)


def weights(shape, seed=0, **std):
    return initial_weights(shape, jax.random.key(seed), std)


def sequence(seed, width=5, tokens=T):
    return jax.random.normal(jax.random.key(100 + seed), (tokens, width))


seeds = st.integers(0, 1000)
few = settings(max_examples=15)


def by_hand(w, x):
    """The same network in numpy, one layer and head after the other."""

    def norm(x, gain):
        if gain is None:
            return x
        sd = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        return (x - x.mean(axis=-1, keepdims=True)) / sd * gain

    def gelu(x):
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    w = jax.tree.map(np.asarray, w)
    x, p = np.asarray(x), []
    x = x if w.read_in is None else x @ w.read_in.T
    for layer in range(len(w.blocks.w_q)):
        b = jax.tree.map(lambda m, layer=layer: m[layer], w.blocks)
        z, added = norm(x, b.gain_attention), np.zeros_like(x)
        for q, k, v, o in zip(b.w_q, b.w_k, b.w_v, b.w_o, strict=True):
            logits = (z @ q.T) @ (z @ k.T).T / np.sqrt(len(q))
            e = np.exp(logits) * np.tril(np.ones((len(x), len(x))))
            p.append(e / e.sum(axis=1, keepdims=True))
            added += p[-1] @ (z @ v.T) @ o.T
        x = x + added
        if b.w_in is not None:
            x = x + gelu(norm(x, b.gain_mlp) @ b.w_in.T) @ b.w_out.T
    x = norm(x, w.gain)
    return x if w.read_out is None else x @ w.read_out.T, np.array(p)


@pytest.mark.parametrize("shape", [FULL, BARE])
def test_the_network_is_the_one_written_by_hand(shape):
    w, x = weights(shape), sequence(0, shape.inputs or shape.width)
    y, p = run(w, x)
    expected, attended = by_hand(w, x)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(p.reshape(-1, T, T), attended, rtol=1e-4, atol=1e-6)
    assert p.shape == (2, 2, T, T)


@few
@given(seeds, st.integers(1, T - 1))
def test_later_tokens_do_not_change_earlier_outputs(seed, cut):
    w, x, other = weights(FULL, seed), sequence(seed), sequence(seed + 1)
    y, p = run(w, x)
    mixed, _ = run(w, jnp.concatenate([x[:cut], other[cut:]]))
    np.testing.assert_allclose(mixed[:cut], y[:cut], rtol=1e-5, atol=1e-6)
    assert np.abs(mixed[cut:] - y[cut:]).max() > 1e-3
    np.testing.assert_allclose(p.sum(axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(p, np.tril(p))


@few
@given(seeds, st.permutations(range(T - 1)))
def test_without_positions_the_last_token_of_one_layer_sees_a_set(seed, order):
    w, x = weights(ONE, seed), sequence(seed)
    order = np.array([*order, T - 1])
    y, p = run(w, x)
    other, q = run(w, x[order])
    np.testing.assert_allclose(other[-1], y[-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(q[0, :, -1], p[0, :, -1, order].T, rtol=1e-4, atol=1e-6)


def test_positions_and_depth_see_an_order():
    x, order = sequence(1), np.array([1, 0, 2, 3, 4])
    learned = weights(ONE._replace(positions=7), positions=1.0)
    deep, plain = weights(FULL), weights(ONE)
    given_ = {"positions": sinusoidal(T, 6)}
    for w, extra in ((learned, {}), (deep, {}), (plain, given_)):
        y, other = (run(w, x, **extra)[0][-1] for x in (x, x[order]))
        assert np.abs(y - other).max() > 1e-3


@few
@given(seeds)
def test_the_order_of_heads_does_not_matter(seed):
    w, x = weights(FULL, seed), sequence(seed)
    parts = lambda w: (w.blocks.w_q, w.blocks.w_k, w.blocks.w_v, w.blocks.w_o)  # noqa: E731
    turned = eqx.tree_at(parts, w, replace_fn=lambda m: m[:, ::-1])
    (y, p), (other, q) = run(w, x), run(turned, x)
    np.testing.assert_allclose(other, y, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(q, p[:, ::-1], rtol=1e-4, atol=1e-6)


@few
@given(seeds, st.lists(st.booleans(), min_size=T - 1, max_size=T - 1))
def test_tokens_that_do_not_exist_might_as_well_be_left_out(seed, some):
    w, x = weights(FULL, seed), sequence(seed)
    exists = jnp.array([*some, True])
    y, p = run(w, x, exists=exists)
    fewer, _ = by_hand(w, x[np.asarray(exists)])
    np.testing.assert_allclose(y[-1], fewer[-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(p[:, :, -1, ~exists], 0)


def test_numbers_of_tokens_are_unit_vectors():
    w, tokens = weights(FULL), jnp.array([0, 4, 2, 2, 1], jnp.int32)
    one_hot = jax.nn.one_hot(tokens, 5, dtype=float)
    np.testing.assert_allclose(run(w, tokens)[0], run(w, one_hot)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("hidden", [0, 8])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("positions", [0, 7])
def test_the_number_of_parameters(hidden, norm, positions):
    d, n = 6, 2
    w = weights(Shape(n, 3, d, hidden, norm, inputs=5, outputs=4, positions=positions))
    norms = (n * (1 + (hidden > 0)) + 1) * d * norm
    assert parameters(w) == n * (4 * d * d + 2 * d * hidden) + norms + d * (5 + 4 + positions)


def test_initial_scales_can_be_chosen():
    shape = Shape(layers=2, heads=2, width=60, hidden=0, norm=False)
    w = weights(shape, w_q=0.1, w_o=0.5 / 60**0.5)
    assert float(w.blocks.w_q.std()) == pytest.approx(0.1, rel=0.05)
    assert float(w.blocks.w_k.std()) == pytest.approx(60**-0.5, rel=0.05)
    assert float(w.blocks.w_o.std()) == pytest.approx(0.5 / 60**0.5, rel=0.05)
    silent = weights(shape, w_o=0.0)
    x = sequence(0, 60)
    np.testing.assert_array_equal(transformer(silent, x)[0], x)  # residuals alone
    with pytest.raises(InputError, match="w_z"):
        weights(shape, w_z=1.0)
    with pytest.raises(InputError, match="heads"):
        weights(shape._replace(heads=7))


def test_sinusoidal_positions():
    found = sinusoidal(4, 6)
    for t in range(4):
        for j in range(3):
            angle = t / 10000 ** (2 * j / 6)
            pair = [np.sin(angle), np.cos(angle)]
            np.testing.assert_allclose(found[t, 2 * j : 2 * j + 2], pair, rtol=1e-5, atol=1e-6)


def test_every_token_sees_itself():
    np.testing.assert_array_equal(visible(3), np.tril(np.ones((3, 3), bool)))
    gone = visible(3, jnp.array([False, True, False]))
    np.testing.assert_array_equal(gone, np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]], bool))
