import math
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from provingground import identity
from provingground.keys import normal, seed_key
from provingground.maths import kernels
from provingground.studies.curse_of_attention import local, remedies, series, theory
from provingground.studies.curse_of_attention.model import (
    MIX,
    UNIFORM,
    UNIT,
    Config,
    Gaussian,
    attend,
    fit_linear,
    gradient,
    initial,
    network,
    next_coefs,
    residual_linear,
    sign_inconsistent,
    simulate,
    simulate_gaussian,
    simulate_kernel,
    tangent,
)
from provingground.studies.curse_of_attention.model import series as draw_series

TINY: dict[str, Any] = dict(
    tokens=4, samples=6, width=8, steps=20, record=6, test_samples=50, noise=0.1
)
MODES = [(MIX, 0.5), (UNIT, 0.5), (UNIT, 0.8), (UNIFORM, 0.3)]
each_mode = pytest.mark.parametrize(("mode", "gamma"), MODES)


@cache  # counts are padded, so most trainings below share a program
def jit(function):
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


def coefs(mode, gamma, tokens=5, seed=0):
    cfg = identity.typed(Config(mode=mode, gamma=gamma, tokens=tokens), "float64")
    return next_coefs(cfg, seed_key("s", seed))


def sample(seed=0, n=6, m=8, d=4):
    keys = jax.random.split(jax.random.key(seed), 4)
    x, y = jax.random.normal(keys[0], (n, d)), jax.random.normal(keys[1], (n,))
    w, a = jax.random.normal(keys[2], (m,)), jnp.sign(jax.random.normal(keys[3], (m,)))
    return x, y, w, a, jnp.arange(n) < n - 1


# ------------------------------------------------------------------------------------ data


@each_mode
def test_the_next_feature_has_the_properties_of_its_mode(double, mode, gamma):
    c = np.asarray(coefs(mode, gamma))
    core, norm, total = theory.core_norm_sum(mode, 5, gamma)
    assert (c[-1], np.linalg.norm(c), c.sum()) == (
        pytest.approx(core), pytest.approx(norm), pytest.approx(total)
    )  # fmt: skip
    if mode == MIX:
        np.testing.assert_allclose(c, theory.printed_coefs(5), rtol=1e-6)
        assert norm <= theory.longest_next(5) < 1
    else:
        assert norm == 1


@each_mode
def test_sampled_series_are_those_of_rejection(double, mode, gamma):
    """Moments of the wedge sampler against rejection, in standard errors of the latter."""
    c = coefs(mode, gamma)
    z = normal(seed_key("s", 1), (200_000, 11))
    moved = np.asarray(sign_inconsistent(c, z))
    u, c = np.asarray(z[:, :5]), np.asarray(c)
    kept = u[u[:, -1] * (u @ c) < 0]
    assert (moved[:, 4] * (moved[:, :5] @ c) < 0).all()
    assert len(kept) / len(u) == pytest.approx(theory.wedge(c[-1], np.linalg.norm(c)) / math.pi, rel=0.05)  # noqa: E501  # fmt: skip
    np.testing.assert_array_equal(moved[:, 5:], np.asarray(z[:, 5:]))
    for power in (1, 2):
        a, b = (np.einsum("ni,nj->nij", v[:, :5], v[:, :5]) ** power for v in (moved, kept))
        error = b.std(axis=0) / math.sqrt(len(kept)) + a.std(axis=0) / math.sqrt(len(u))
        assert (abs(a.mean(axis=0) - b.mean(axis=0)) < 5 * error).all()


@each_mode
def test_closed_form_risks_are_those_of_samples(double, mode, gamma):
    c, noise = coefs(mode, gamma), 0.3
    z = normal(seed_key("s", 2), (200_000, 11))
    v = np.array([0.1, -0.3, 0.2, 0.4, 0.6])
    norm, core = float(jnp.linalg.norm(c)), float(c[-1])
    for ood in (False, True):
        x, y = (np.asarray(p) for p in draw_series(c, sign_inconsistent(c, z) if ood else z, noise))
        predicted = {
            "zero": theory.zero_ood_risk(core, norm, noise) if ood
            else theory.zero_risk(norm, noise),
            "last": theory.last_ood_risk(core, norm, noise) if ood
            else theory.linear_risk(c, np.eye(5)[-1], noise),
            "linear": theory.linear_risk(c, v, noise, ood),
            "exact": theory.linear_risk(c, np.asarray(c), noise, ood),
        }  # fmt: skip
        outputs = {"zero": 0 * y, "last": x[:, -1], "linear": x @ v, "exact": x @ np.asarray(c)}
        for name, f in outputs.items():
            assert np.mean((f - y) ** 2) == pytest.approx(predicted[name], rel=0.02), name
        assert predicted["exact"] == pytest.approx(theory.linear_risk_at_c(norm, noise))
    last = theory.linear_risk(c, np.eye(5)[-1], noise, ood=True)
    assert last == pytest.approx(theory.last_ood_risk(core, norm, noise))


@each_mode
def test_the_best_linear_network_is_best(double, mode, gamma):
    c = np.asarray(coefs(mode, gamma))
    best = theory.linear_optimum(c, 0.4)
    assert best.sum() == pytest.approx(1)
    for k in range(4):  # moves inside the class: the weights keep their sum
        move = 1e-3 * (np.eye(5)[k] - np.eye(5)[-1])
        for sign in (1, -1):
            other = theory.linear_risk(c, best + sign * move, 0.4)
            assert other > theory.linear_risk(c, best, 0.4)
    if c.sum() == pytest.approx(1):
        np.testing.assert_allclose(theory.linear_optimum(c, 0.0), c, atol=1e-12)


@pytest.mark.parametrize("tokens", [4, 8])
@each_mode
def test_a_state_space_model_has_the_wanted_features(double, tokens, mode, gamma):
    cfg = identity.typed(Config(mode=mode, gamma=gamma, tokens=tokens), "float64")
    found = series.simulate_series(cfg, seed_key("s", 3))
    assert float(found.recursion_error) < 1e-11
    assert float(found.series_error) < 1e-11
    core, norm, total = theory.core_norm_sum(mode, tokens, gamma)
    assert float(found.next_norm) == pytest.approx(norm)
    assert float(found.core) == pytest.approx(core)
    assert float(found.printed_residual) == pytest.approx(1 - core)
    assert (float(found.corrected_residual) < 1e-9) == (total == pytest.approx(1))


# --------------------------------------------------------------------------------- network


def test_attention_is_the_softmax(double):
    x, _, w, a, _ = sample()
    g, v, s_d = attend(w, x)
    s = jax.nn.softmax(x[:, -1, None, None] * w[None, :, None] * x[:, None, :], axis=-1)
    np.testing.assert_allclose(s_d, s[..., -1], rtol=1e-12)
    g_np, v_np = theory.attend(w, x)
    np.testing.assert_allclose(g, g_np, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(v, v_np, rtol=1e-9, atol=1e-12)
    direct = jnp.einsum("nmd,nd,m->n", s, x, a) / 8**0.5
    np.testing.assert_allclose(network(w, a, x), direct, rtol=1e-10, atol=1e-12)


def test_the_gradient_is_that_of_autodiff_and_of_finite_differences(double):
    x, y, w, a, exists = sample()

    def loss(w):
        return jnp.sum(jnp.where(exists, network(w, a, x) - y, 0.0) ** 2) / 2

    found = gradient(w, a, x, y, exists)
    np.testing.assert_allclose(found, jax.grad(loss)(w), rtol=1e-10, atol=1e-13)
    move = jnp.linspace(-1.0, 1.0, 8)
    slope = (loss(w + 1e-6 * move) - loss(w - 1e-6 * move)) / 2e-6
    assert float(found @ move) == pytest.approx(float(slope), rel=1e-6)


def test_the_kernel_is_that_of_the_jacobian(double):
    x, _, w, a, exists = sample()
    j = kernels.jacobian(lambda w, x: network(w, a, x[None])[0], w, x)
    h = tangent(x, attend(w, x)[1], a, jnp.ones(6, bool))
    np.testing.assert_allclose(h, j @ j.T, rtol=1e-9, atol=1e-13)
    masked = tangent(x, attend(w, x)[1], a, exists)
    assert float(jnp.abs(masked[-1]).max()) == 0
    np.testing.assert_allclose(masked[:-1, :-1], h[:-1, :-1])


def test_paired_weights_give_no_output():
    w, a = initial(Config(width=10), seed_key("s", 0))
    assert float(a.sum()) == 0
    x = sample()[0]
    np.testing.assert_allclose(network(w, a, x), np.zeros(6), atol=1e-6)


numbers = st.floats(-3, 3)


@given(arrays(float, 5, elements=numbers), arrays(float, (4,), elements=numbers))
def test_the_output_is_odd(x, w):
    g, _ = theory.attend(w, np.stack([x, -x]))
    np.testing.assert_allclose(g[0], -g[1], atol=1e-12)


@given(
    arrays(float, 5, elements=numbers),
    arrays(float, 4, elements=numbers),
    arrays(float, 4, elements=st.floats(0, 3)),
)
def test_ordered_pairs_keep_the_sign_of_the_last_value(x, w_minus, gap):
    w_plus = w_minus + gap
    assert theory.pairs_ordered(w_plus, w_minus)
    f = (theory.attend(w_plus, x)[0] - theory.attend(w_minus, x)[0]).sum()
    assert f * x[-1] >= -1e-12


def test_least_squares_finds_the_weights():
    x = sample(n=40, d=5)[0]
    v = jnp.array([0.3, -0.2, 0.5, 0.1, 0.0])
    found = fit_linear(x, residual_linear(v, x), jnp.arange(40) < 30)
    np.testing.assert_allclose(found, v, atol=1e-4)


# -------------------------------------------------------------------------------- training


def train(how=simulate, **changes):
    cfg = identity.typed(Config(**(TINY | changes)), "float64")
    return jit(how)(cfg, seed_key("s", 0))


@pytest.mark.slow
def test_training_follows_the_frozen_kernel_when_wide(double):
    found = train(width=2048)
    np.testing.assert_allclose(found.train_loss, found.lazy_loss, rtol=0.02)
    assert found.train_loss[-1] < found.train_loss[0]
    assert found.radius[-1] < 0.1
    narrow = train(width=8)
    assert narrow.radius[-1] > found.radius[-1]
    assert narrow.drift[-1] > found.drift[-1]


def test_weights_first_move_towards_their_read_out(double):
    found = train(samples=40, width=16)
    assert found.direction[1] == 1
    assert found.ordered[1] == 1
    assert found.same_sign[1] == 1  # the sign theorem
    assert found.ood_same_sign[1] == 1


def test_samples_that_do_not_exist_do_not_count(double):
    """Six samples are laid out for sixteen, which all exist in the other training."""
    wide = dict(width=200)
    few, kernel = train(samples=6, **wide), train(simulate_kernel, samples=6, **wide)
    np.testing.assert_allclose(few.kernel_max, kernel.kernel_max, rtol=1e-9)
    assert kernel.kernel_min > 0
    more = train(simulate_kernel, samples=16, **wide)
    assert more.kernel_min < kernel.kernel_min  # interlacing
    assert more.kernel_max > kernel.kernel_max


def test_neurons_that_do_not_exist_do_not_count(double):
    """Eight neurons are laid out for 256; alone they are another program of the same numbers."""
    padded = train(samples=20)
    cfg = identity.typed(Config(**(TINY | dict(samples=20))), "float64")
    object.__setattr__(cfg, "_sizes", (("samples", 20), ("width", 8)))
    alone = jit(simulate)(cfg, seed_key("s", 0))
    for name, value in vars(alone).items():
        np.testing.assert_allclose(getattr(padded, name), value, rtol=1e-9, err_msg=name)


def test_the_typical_kernel_is_that_of_wide_networks(double):
    cfg = identity.typed(Config(samples=16, width=512), "float64")
    one = jit(simulate_kernel)
    found = [one(cfg, seed_key("s", seed)).kernel_max for seed in range(8)]
    _, typical, _ = theory.typical_kernel(16, 8, 0.1)
    assert np.median(found) == pytest.approx(typical, rel=0.7)
    smallest = [theory.typical_kernel(n, 8, 0.1)[0] for n in (2, 4, 8, 16, 64)]
    assert sorted(smallest, reverse=True) == smallest


def test_attention_on_the_last_step_tends_to_its_limits():
    cfg = identity.typed(Gaussian(tokens=2, samples=20_000), "float32")
    found = simulate_gaussian(cfg, seed_key("s", 0)).attention
    floor, ceiling = theory.attention_limits(2)
    assert float(found[0]) == pytest.approx(floor, abs=0.03)
    assert float(found[-1]) == pytest.approx(ceiling, abs=0.03)
    assert (np.diff(np.asarray(found)) > 0).all()


# ---------------------------------------------------------------- section 7 and the theory


def test_the_formula_of_section_7_is_the_gradient(double):
    found = local.simulate_local(
        identity.typed(local.Local(tokens=5, dim=3, draws=20), "float64"), seed_key("s", 0)
    )
    assert float(found.formula_error) < 1e-12
    assert 0.4 < float(found.agreement) < 0.9


def test_switches_of_the_remedies_are_off_by_default(double):
    """Gradient descent among the remedies is the paper's training."""
    cfg = TINY | dict(steps=5, record=2)
    plain = train(**cfg)
    among = jit(remedies.simulate_scalar)(
        identity.typed(remedies.Scalar(**cfg, adam=0.0), "float64"), seed_key("s", 0)
    )
    np.testing.assert_allclose(among.train_loss, plain.train_loss, rtol=1e-9)
    np.testing.assert_allclose(among.ood_loss, plain.ood_loss[-1], rtol=1e-9)
    np.testing.assert_allclose(among.fitted_ood, plain.fitted_ood, rtol=1e-9)


def test_a_patch_as_long_as_the_series_is_a_linear_network():
    cfg = remedies.Head(**(TINY | dict(steps=200, samples=40, test_samples=500)), patch=4, rate=0.1)
    found = jit(remedies.simulate_head)(identity.typed(cfg, "float32"), seed_key("s", 0))
    assert float(found.ood_loss) < 2 * float(found.fitted_ood)


def test_conditions_tell_what_is_vacuous():
    found = {c.name: c for c in theory.conditions(Config())}
    assert found["Lemma H.1, width"].margin < 1e-30
    assert found["Lemma H.1, step"].margin < 1e-20
    assert not found["Theorem 5.2, both"].satisfied
    assert not found["Property 1"].satisfied
    assert found["Property 3"].satisfied
    assert found["Proposition 6.3(2)"].satisfied
    unit = {c.name: c for c in theory.conditions(Config(mode=UNIT))}
    assert unit["Property 1"].satisfied
    assert not unit["Property 3"].satisfied
    uniform = {c.name: c for c in theory.conditions(Config(mode=UNIFORM))}
    assert not uniform["Proposition 6.3(2)"].satisfied


def test_what_is_predicted_for_the_standard_setting():
    mix, unit = (theory.theory(Config(mode=mode, noise=0.05)).values for mode in (MIX, UNIT))
    assert mix["zero_ood"] == pytest.approx(0.00404, rel=0.02)
    assert mix["ood_share"] == pytest.approx(0.0172, abs=1e-4)
    assert unit["ood_share"] == pytest.approx(1 / 3)
    assert unit["linear_loss"] == pytest.approx(2 * 0.05**2)
