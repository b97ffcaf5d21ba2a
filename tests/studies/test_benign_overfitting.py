import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provingground import identity
from provingground.keys import normal, seed_key, stream
from provingground.nets.losses import logistic
from provingground.studies.benign_overfitting import full, model, theory
from provingground.studies.benign_overfitting.model import (
    Config,
    Weights,
    attend,
    by_sample,
    labels,
    measure,
    network,
    signal_norm,
    token_scale,
    unit_noise,
    unit_tokens,
    unit_weights,
)

TINY: dict[str, Any] = dict(
    dim=16, tokens=4, key_width=8, value_width=6, samples=4, test_samples=12, steps=40, record=41,
    snr=3.0, noise=0.3, noise_big=1.0, lr=0.1, eps=0.1, init_scale=1.0,
)  # fmt: skip


def jit(function):
    return jax.jit(
        function, compiler_options={"xla_backend_optimization_level": 0}
    )  # compiles fast


FULL, SPAN = jit(full.simulate), jit(model.simulate)
MANY = jit(jax.vmap(model.simulate, in_axes=(None, 0)))


def train(how, seed=0, **changes):
    cfg = Config(**(TINY | changes))
    return how(identity.typed(cfg, "float64"), seed_key("benign_overfitting", seed))


def same(a, b, rtol=1e-9, atol=1e-12):
    for field in dataclasses.fields(a):
        np.testing.assert_allclose(
            getattr(a, field.name), getattr(b, field.name), rtol, atol, err_msg=field.name
        )


# --------------------------------------------------------------------- one training


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"attention_rate": 0.0},
        {"attention_rate": 0.3, "lr": 0.3, "eps": 0.0},
        {"samples": 3},  # laid out for 4
        {"samples": 6, "snr": 0.5},  # laid out for 8
        {"project": True, "balanced": False, "init": "gaussian"},
    ],
    ids=str,
)
def test_training_in_the_span_is_training_in_full(double, changes):
    full, span = (train(how, seed=1, **changes) for how in (FULL, SPAN))
    assert full.train_loss[-1] < full.train_loss[0]
    same(full, span)


def test_training_stops_at_the_loss(double):
    probes = train(SPAN, lr=0.5)
    end = int(probes.stopped_at)
    assert 1 < end < 40
    assert probes.train_loss[end - 1] > 0.1 >= probes.train_loss[end]
    np.testing.assert_array_equal(probes.train_loss[end:], probes.train_loss[end])


def test_attention_that_is_not_trained_stays(double):
    probes = train(SPAN, attention_rate=0.0)
    for name in ("score_signal", "score_noise", "attention_signal", "attention_noise"):
        values = getattr(probes, name)
        np.testing.assert_allclose(values, values[0], rtol=1e-12)
    assert np.ptp(train(SPAN).score_signal) > 0.1


@pytest.mark.parametrize("s", [0.5, 3.0])
def test_the_scale_of_the_data_is_that_of_step_size_and_weights(double, s):
    """Data times s, initial weights over s and step size over s squared: the same training."""
    plain = train(SPAN)
    other = train(SPAN, noise=0.3 * s, noise_big=s, lr=0.1 / s**2, init_scale=1 / s)
    same(plain, other)


def test_the_scale_of_the_data_is_that_of_the_step_size_if_weights_start_at_zero(double):
    plain = train(SPAN, init_scale=0.0)
    same(plain, train(SPAN, init_scale=0.0, noise=0.6, noise_big=2.0, lr=0.025))
    np.testing.assert_allclose(plain.attention_signal, 0.25)  # and attention never moves


# ------------------------------------------------------------------------------ data


def test_labels_are_balanced_or_fair():
    key = seed_key("s", 0)
    for n in (2, 4, 10):
        assert float(labels(Config(), key, n).sum()) == 0
    drawn = np.asarray(labels(Config(balanced=False), key, 400))
    assert set(drawn) == {-1.0, 1.0}
    assert abs(drawn.mean()) < 0.2


def test_tokens_have_their_roles_and_scales():
    cfg = Config(dim=400, tokens=5, snr=2.0, noise=0.5, noise_big=3.0)
    y = labels(cfg, seed_key("s", 0), 6)
    x = unit_tokens(y, unit_noise(cfg, seed_key("s", 1), 6)) * token_scale(cfg)[None, :, None]
    x = np.asarray(x)
    assert x.shape == (6, 5, 400)
    assert signal_norm(cfg) == pytest.approx(2.0 * 0.5 * 20)
    for n in range(6):
        expected = np.zeros(400)
        expected[0 if y[n] > 0 else 1] = 20.0
        np.testing.assert_allclose(x[n, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(x.std(axis=(0, 2))[1:], [3.0, 0.5, 0.5, 0.5], rtol=0.05)


@pytest.mark.parametrize("project", [False, True])
def test_projected_noise_is_orthogonal_to_the_signals(project):
    z = unit_noise(Config(dim=8, tokens=3, project=project), seed_key("s", 0), 4)
    assert (float(jnp.abs(z[..., :2]).max()) == 0) == project


@pytest.mark.parametrize("init", ["uniform", "gaussian"])
def test_initial_weights_have_the_variance_of_a_linear_layer(init):
    w = unit_weights(Config(dim=300, key_width=40, value_width=200, init=init), seed_key("s", 0))
    for name in ("w_q", "w_k", "w_v"):
        assert float(getattr(w, name).std()) == pytest.approx(1 / math.sqrt(3 * 300), rel=0.05)
    assert float(jnp.sum(w.w_o**2)) == pytest.approx(theory.read_out_norm2(), rel=0.3)
    if init == "uniform":
        assert float(jnp.abs(w.w_q).max()) <= 1 / math.sqrt(300)


def test_rows_of_unique_tokens_become_tokens_of_samples():
    y = jnp.array([1.0, -1.0, 1.0])
    rows = jnp.arange(8.0)[:, None]  # two signals, then two noise tokens of each sample
    expected = [[0, 2, 3], [1, 4, 5], [0, 6, 7]]
    np.testing.assert_array_equal(by_sample(rows, y)[..., 0], expected)


# -------------------------------------------------------------------- loss and gradients


def sample(seed, n=4, m=4, d=6, h=3, v=2):
    """Some tokens, labels and weights."""

    def draw(name, *shape):
        return normal(stream(seed_key("s", seed), name), shape)

    x, y = draw("x", n, m, d), jnp.sign(draw("y", n))
    return x, y, Weights(draw("q", d, h), draw("k", d, h), draw("v", d, v), draw("o", v))


def loss(w, x, y):
    f, p = jax.vmap(network, in_axes=(None, 0))(w, x)
    return logistic(y, f).mean(), p


GRADED = jit(jax.value_and_grad(loss, has_aux=True))
MEASURED = jit(measure)


@pytest.mark.parametrize("seed", range(3))
def test_the_closed_form_gradients_are_those_of_the_loss(double, seed):
    x, y, w = sample(seed)
    (_, p), grads = GRADED(w, x, y)
    x, y, p = (np.asarray(a) for a in (x, y, p))
    of_values, lam = theory.token_gradients(y, p, x @ np.asarray(w.w_v @ w.w_o), len(y))
    through = np.einsum("nld,nlj,nje->de", x, lam, x)
    np.testing.assert_allclose(grads.w_q, through @ w.w_k, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grads.w_k, through.T @ w.w_q, rtol=1e-9, atol=1e-12)
    merged = np.einsum("nj,njd->d", of_values, x)
    np.testing.assert_allclose(grads.w_v, np.outer(merged, w.w_o), rtol=1e-9, atol=1e-12)


def test_gradients_are_finite_differences(double):
    x, y, w = sample(5)
    _, _, along = sample(6)

    def at(t):
        return GRADED(jax.tree.map(lambda a, b: a + t * b, w, along), x, y)[0][0]

    grads = GRADED(w, x, y)[1]
    slope = jax.tree.reduce(jnp.add, jax.tree.map(jnp.vdot, grads, along))
    np.testing.assert_allclose((at(1e-6) - at(-1e-6)) / 2e-6, slope, rtol=1e-6)


def test_the_order_of_samples_and_of_noise_tokens_does_not_matter(double):
    x, y, w = sample(7)
    order, tokens = np.array([2, 0, 3, 1]), np.array([0, 1, 3, 2])

    def probes(x, y):
        return MEASURED(y, jnp.ones(4, bool), x @ w.w_q, x @ w.w_k, x @ (w.w_v @ w.w_o))

    plain = probes(x, y)
    for other in (probes(x[order], y[order]), probes(x[:, tokens], y)):
        for name, value in plain.items():
            np.testing.assert_allclose(other[name], value, rtol=1e-9, err_msg=name)
    assert plain["train_loss"] == pytest.approx(float(loss(w, x, y)[0]), rel=1e-12)


def test_samples_that_do_not_exist_do_not_count(double):
    x, y, w = sample(8)
    q, k, v = x @ w.w_q, x @ w.w_k, x @ (w.w_v @ w.w_o)
    some = MEASURED(y, jnp.arange(4) < 3, q, k, v)
    fewer = MEASURED(y[:3], jnp.ones(3, bool), q[:3], k[:3], v[:3])
    assert {n: float(a) for n, a in some.items()} == pytest.approx(
        {n: float(a) for n, a in fewer.items()}, rel=1e-12
    )


# ---------------------------------------------------------------------------- theory


@pytest.mark.parametrize("init_scale", [0.0, 0.01])
def test_values_start_to_grow_as_lemma_5_1_says(init_scale):
    changes: dict[str, Any] = dict(steps=1, record=2, init_scale=init_scale, tokens=3)
    cfg = Config(**(TINY | changes))
    keys = jax.vmap(lambda seed: seed_key("s", seed))(jnp.arange(2000))
    found = MANY(identity.typed(cfg, "float32"), keys)
    speeds = theory.value_speeds(cfg.lr, signal_norm(cfg) ** 2, cfg.noise_big**2 * cfg.dim,
                                 cfg.samples, cfg.tokens, found.read_out_norm2)  # fmt: skip
    for name, speed in zip(("value_signal", "value_noise"), speeds, strict=True):
        grown = np.diff(getattr(found, name), axis=-1)[:, 0] / np.asarray(speed)
        error = grown.std() / math.sqrt(len(grown))
        assert error < 0.02
        assert abs(grown.mean() - 1) < 4 * error + 1e-3
    assert float(found.read_out_norm2.mean()) == pytest.approx(theory.read_out_norm2(), rel=0.05)


def test_both_speeds_are_equal_at_the_derived_boundary():
    snr = theory.boundary_snr(12, 0.2, 4.0)
    signal, noise = theory.value_speeds(0.1, (snr * 0.2) ** 2 * 100, 16.0 * 100, 12, 5, 1 / 3)
    assert signal == pytest.approx(noise)


positive = st.floats(1e-3, 1e3)


@given(st.integers(1, 10**4), positive, positive, positive)
def test_ratio_and_boundary_are_inverse(samples, noise, noise_big, ratio):
    snr = theory.boundary_snr(samples, noise, noise_big, ratio)
    assert theory.signal_ratio(samples, snr, noise, noise_big) == pytest.approx(ratio)


def test_the_printed_boundary_is_a_thousand():
    assert 17 * theory.printed_boundary_snr(17) ** 2 == pytest.approx(1000)


def test_condition_4_1_at_the_setting_of_figure_1():
    found = {c.name: c for c in theory.conditions(Config(samples=20, snr=7.0))}
    width, dim = found["(1) query width"], found["(2) dimension"]
    assert (width.left, dim.left) == (512, 1024)
    assert width.right == pytest.approx(1e10, rel=0.1)
    assert dim.right == pytest.approx(2e9, rel=0.1)
    step = found["(6) step size"]
    assert (step.left, step.right) == (0.1, pytest.approx(2e-5, rel=0.2))
    low, high = found["(8) query init, low"], found["(8) query init, high"]
    assert low.left == high.left == pytest.approx(1.3e-6, rel=0.05)
    assert (low.right, high.right) == (
        pytest.approx(0.7e-7, rel=0.1),
        pytest.approx(2.9e-7, rel=0.1),
    )
    holds = {name for name, c in found.items() if c.satisfied}
    assert {n for n in found if n.startswith(("(5)", "(7)", "(10)"))} <= holds
    assert not {"(1) query width", "(2) dimension", "(6) step size", "(8) query init, high"} & holds


def test_what_is_predicted_for_figure_1():
    values = theory.theory(Config(samples=20, snr=7.0)).values
    assert values["n_snr2"] == pytest.approx(980)
    assert values["signal_ratio"] == pytest.approx(2.45)
    assert values["benign"] == 1
    assert values["boundary_snr"] == pytest.approx(math.sqrt(800 / 20))
    assert theory.theory(Config(samples=20, snr=6.0)).values["benign"] == 0


@given(st.floats(-5, 20), st.sampled_from([2, 4, 16]))
def test_the_benign_test_loss_is_that_of_the_attention_it_assumes(value, tokens):
    """The signal's query sees the signal alone, unseen noise sees all tokens alike."""
    signal = jnp.asarray(np.eye(tokens, 1, dtype=np.float32))
    f, p = attend(100.0 * signal, 10.0 * signal, value * signal[:, 0])
    np.testing.assert_allclose(p[0], np.eye(tokens)[0], atol=1e-6)
    direct = logistic(jnp.ones(1), f[None])[0]
    np.testing.assert_allclose(theory.benign_test_loss(value, tokens), direct, rtol=1e-4, atol=1e-9)


def test_times_scale_as_the_theorems_say():
    plain = (
        theory.benign_time(0.1, 0.01, 50.0, 1 / 3),
        theory.harmful_time(0.1, 0.01, 8, 40.0, 1 / 3),
    )
    half = (
        theory.benign_time(0.05, 0.01, 50.0, 1 / 3),
        theory.harmful_time(0.1, 0.01, 4, 40.0, 1 / 3),
    )
    assert half == (pytest.approx(2 * plain[0]), pytest.approx(plain[1] / 2))
    assert theory.stage_one_ratio(60, 16 * 20.0, 16, 20.0) == pytest.approx(1)


def test_the_time_with_its_constant_has_both_theorems_as_limits():
    lr, eps, mu2, xi2, n, w2 = 0.1, 0.01, 50.0, 40.0, 8, 1 / 3
    benign = theory.late_time(lr, eps, mu2, xi2, n, w2, 1.0, 0.0)
    harmful = theory.late_time(lr, eps, mu2, xi2, n, w2, 0.0, 1.0)
    assert benign == pytest.approx(2 * theory.benign_time(lr, eps, mu2, w2))
    assert harmful == pytest.approx(theory.harmful_time(lr, eps, n, xi2, w2))


@pytest.mark.parametrize(("on_signal", "on_noise"), [(0.6, 0.1), (0.1, 0.6), (0.25, 0.25)])
def test_the_time_with_its_constant_is_that_of_descent_with_fixed_attention(on_signal, on_noise):
    """Values of two samples, one of each class, under a fixed attention, step by step."""
    lr, eps, mu2, xi2, n, w2 = 1e-2, 1e-3, 30.0, 20.0, 2, 0.5
    signal = noise = 0.0
    steps, loss = 0, 1.0
    while loss > eps:
        slope = 1 / (1 + math.exp(on_signal * signal + on_noise * noise))
        signal += lr * w2 * mu2 * on_signal * slope / 2
        noise += lr * w2 * xi2 * on_noise * slope / n
        loss = math.log1p(math.exp(-(on_signal * signal + on_noise * noise)))
        steps += 1
    predicted = theory.late_time(lr, eps, mu2, xi2, n, w2, on_signal, on_noise)
    assert steps == pytest.approx(predicted, rel=0.02)


@pytest.mark.parametrize("tokens", [3, 4, 16])
def test_sparse_attention_is_that_of_two_queries_that_choose(tokens):
    p = np.full((tokens, tokens), 1 / tokens)
    p[:2] = np.eye(tokens)[0]
    assert theory.sparse_attention(tokens) == pytest.approx(tuple(p.mean(axis=0)[:2]))


def test_late_stages_start_where_they_say_and_grow_with_the_logarithm():
    for law, power in ((theory.stage_two_score, 2), (theory.stage_three_value, 1)):
        assert law(0.0, 0.3, 2.0) == pytest.approx(0.3)
        growth = np.diff(law(np.array([1e4, 1e5]), 0.3, 2.0))[0] / math.log(10)
        assert growth == pytest.approx(power, rel=1e-3)


def test_the_logarithm_of_stage_three_is_that_of_a_logistic_margin():
    """dV/dt = c / (1 + e^V) lies above log(e^V0 + C t) with C = c / 2, the lemma's lower bound."""
    value, c, dt = 0.5, 3.0, 1e-3
    for step in range(1, 20_000):
        value += dt * c / (1 + math.exp(value))
        assert value >= theory.stage_three_value(dt * step, 0.5, c / 2)
        assert value <= theory.stage_three_value(dt * step, 0.5, c)


def test_stage_three_of_a_training_is_the_logarithm_of_lemma_5_4():
    """With the attention at its start a and b, the margin aV + bV' is log(e^m + rate t)."""
    n, m, d, lr = 8, 4, 1024, 0.02
    for ratio in (8.0, 0.5):
        snr = float(theory.boundary_snr(n, 0.05, 1.0, ratio))
        changes: dict[str, Any] = dict(
            dim=d, samples=n, tokens=m, noise=0.05, noise_big=1.0, snr=snr, eps=0.01, lr=lr,
            steps=2000, record=2001, key_width=64, value_width=64, init_scale=1 / 16,
        )  # fmt: skip
        cfg = Config(**(TINY | changes))
        found = SPAN(identity.typed(cfg, "float32"), seed_key("s", 0))
        start, end = int(np.argmax(found.train_loss < 0.05)), int(found.stopped_at)
        assert 0 < start < end < 2000
        a, b = float(found.attention_signal[start]), float(found.attention_noise[start])
        margin = np.asarray(a * found.value_signal + b * found.value_noise)[start : end + 1]
        speed = a**2 * float(signal_norm(cfg)) ** 2 / 2 + b**2 * d / n
        rate = lr * float(found.read_out_norm2) * speed
        law = theory.stage_three_value(np.arange(len(margin)), margin[0], rate)
        assert law[-1] - law[0] > 1.2
        np.testing.assert_allclose(margin - margin[0], law - law[0], atol=0.2)


# ------------------------------------------------------------------- attention that is frozen


@given(st.floats(0.01, 0.2), st.floats(0, 1))
def test_the_frozen_test_loss_keeps_its_share_of_the_margin(eps, share):
    margin = -math.log(math.expm1(eps))
    assert math.log1p(math.exp(-margin)) == pytest.approx(eps)
    direct = math.log1p(math.exp(-share * margin))
    assert theory.frozen_test_loss(eps, share) == pytest.approx(direct)


def test_frozen_attention_gives_the_values_and_the_test_loss_of_their_speeds():
    """At zero weights attention is uniform; only W_V starts to move."""
    changes: dict[str, Any] = dict(
        dim=512, samples=8, tokens=6, noise=0.1, noise_big=1.0, eps=0.05, lr=0.1, steps=2000,
        record=2, attention_rate=0.0, init_scale=0.0, test_samples=64,
    )  # fmt: skip
    for ratio in (0.5, 2.0, 6.0):
        changes["snr"] = float(theory.boundary_snr(8, 0.1, 1.0, ratio))
        cfg = Config(**(TINY | changes))
        keys = jax.vmap(lambda seed: seed_key("s", seed))(jnp.arange(16))
        found = MANY(identity.typed(cfg, "float32"), keys)
        assert int(found.stopped_at.max()) < 2000
        grown = found.value_signal[:, -1] / found.value_noise[:, -1]
        assert float(grown.mean()) == pytest.approx(ratio / 2, rel=0.05)
        share = theory.signal_share(ratio, 6, 0.1, 1.0)
        predicted = theory.frozen_test_loss(0.05, share)
        assert float(found.test_loss.mean()) == pytest.approx(predicted, rel=0.08)


# ------------------------------------------------------------------- Lemmas C.1 to C.4


def test_tokens_concentrate_as_lemma_c_4_says():
    cfg = Config(dim=1024, tokens=4)
    z = np.asarray(unit_noise(cfg, seed_key("s", 0), 16)).reshape(-1, 1024)
    gram, d, pairs = z @ z.T, 1024, 4 * 16**2 * 4**2
    norms = np.diag(gram)
    assert ((d / 2 <= norms) & (norms <= 3 * d / 2)).all()
    others = gram[~np.eye(len(gram), dtype=bool)]
    assert np.abs(others).max() <= 2 * math.sqrt(d * math.log(pairs / theory.FAIL_PROBABILITY))


def test_initial_queries_and_keys_concentrate_as_lemma_c_3_says():
    cfg = Config(dim=512, key_width=256, value_width=8, tokens=4, init="gaussian")
    w = unit_weights(cfg, seed_key("s", 0))
    tokens = np.concatenate(
        [np.eye(2, 512), np.asarray(unit_noise(cfg, seed_key("s", 1), 8))[:, 0]]
    )
    variance, h = 1 / (3 * 512), 256
    q, k = tokens @ np.asarray(w.w_q), tokens @ np.asarray(w.w_k)
    size = (tokens**2).sum(axis=1)
    for rows in (q, k):
        norms = (rows**2).sum(axis=1) / (size * variance * h)
        assert ((norms >= 1 / 2) & (norms <= 3 / 2)).all()
    scale = np.sqrt(np.outer(size, size)) * variance
    log = math.log(6 * 8**2 * 4**2 / theory.FAIL_PROBABILITY)
    assert (np.abs(q @ k.T) <= 2 * scale * math.sqrt(h * log)).all()


def test_initial_values_are_small_as_lemma_c_2_says():
    """Where the initial weights are those of condition (7), with its logarithm."""
    h, d = 64, 256
    cfg = Config(dim=d, key_width=h, value_width=64, tokens=4, noise_big=1.0, noise=0.1, snr=2.0)
    w = unit_weights(cfg, seed_key("s", 0))
    z = np.asarray(unit_noise(cfg, seed_key("s", 1), 8)).reshape(-1, d)
    rows = np.concatenate([float(signal_norm(cfg)) * np.eye(2, d), z])  # all as long as token 2
    longest, w_o = math.sqrt(d), float(jnp.linalg.norm(w.w_o))
    log = math.log(2 * 8 * 4 / theory.FAIL_PROBABILITY)
    sigma = h**-0.25 / (2 * w_o * longest * math.sqrt(log))
    values = rows @ np.asarray(w.w_v @ w.w_o) * sigma * math.sqrt(3 * d)
    assert np.abs(values).max() <= h**-0.25
