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
from provingground.studies.curse_of_attention import (
    data,
    few,
    gaussian,
    head,
    kernel,
    linear,
    local,
    mlp,
    model,
    ridge,
    scalar,
    theory,
)
from provingground.studies.curse_of_attention.data import (
    MIX,
    UNIFORM,
    UNIT,
    next_coefs,
    sign_inconsistent,
)
from provingground.studies.curse_of_attention.data import series as draw_series
from provingground.studies.curse_of_attention.linear import fit_plain, fit_residual, residual_linear
from provingground.studies.curse_of_attention.model import (
    Config,
    attend,
    gradient,
    initial,
    network,
    simulate,
    tangent,
)

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
    """Claim 4.2 by its recursion and by running the model; Proposition 6.3(2) as printed has no
    solution, and the corrected one is c where its weights sum to one."""
    c = coefs(mode, gamma, tokens)
    z = np.random.default_rng(3).normal(size=(tokens, tokens + 2))
    basis = np.linalg.qr(z[:, :tokens])[0]
    p = jnp.asarray(np.c_[basis, basis @ np.asarray(c)])
    b, h = jnp.asarray(z[:, tokens] / tokens**0.5), jnp.asarray(z[:, tokens + 1])
    a, read = data.build(p, b)
    np.testing.assert_allclose(data.features(a, b, read, tokens + 1), p, atol=1e-11)
    np.testing.assert_allclose(data.run(a, b, read, h, tokens + 1), h @ p, atol=1e-11)
    core, norm, total = theory.core_norm_sum(mode, tokens, gamma)
    assert float(jnp.linalg.norm(p[:, -1])) == pytest.approx(norm)
    others, last, change = p[:, : tokens - 1], p[:, -2], p[:, -1] - p[:, -2]
    assert float(last @ p[:, -1]) == pytest.approx(core)
    printed = change - others @ (others.T @ change)  # what no weights can fit
    assert float(jnp.linalg.norm(printed)) == pytest.approx(1 - core)
    corrected = (others - last[:, None]) @ c[:-1] - change
    assert (float(jnp.linalg.norm(corrected)) < 1e-9) == (total == pytest.approx(1))


@pytest.mark.parametrize("tokens", [2, 3, 8, 100])
def test_properties_1_to_3_exclude_each_other(tokens):
    """Properties 2 and 3 bound the norm of the next feature below the one that Property 1 asks for,
    whatever the other features are."""
    assert theory.longest_next(tokens) < 1
    rng = np.random.default_rng(tokens)
    for _ in range(20):
        others = rng.normal(size=(tokens - 1, 12))
        others[:, 0] = 0  # orthogonal to the last feature
        others /= np.linalg.norm(others, axis=1, keepdims=True)
        following = (1 - 1 / tokens) * np.eye(12)[0] + others.sum(0) / (tokens * (tokens - 1))
        assert np.linalg.norm(following) <= theory.longest_next(tokens) + 1e-12


# ------------------------------------------------------------------------ linear predictors


@pytest.mark.parametrize("noise", [0.0, 0.3])
@each_mode
def test_no_order_blind_predictor_has_less_risk(double, mode, gamma, noise):
    """In closed form, by Monte Carlo, and against other weights and a quadratic predictor."""
    c, rng = np.asarray(coefs(mode, gamma)), np.random.default_rng(4)
    best = theory.order_blind(c, noise)
    np.testing.assert_allclose(best, linear.order_blind(jnp.asarray(c), noise), rtol=1e-9)
    least = theory.linear_risk(c, best, noise)
    assert least == pytest.approx(theory.order_blind_risk(mode, 5, gamma, noise, False))
    assert theory.linear_risk(c, best, noise, True) == pytest.approx(
        theory.order_blind_risk(mode, 5, gamma, noise, True)
    )
    for last, rest in rng.normal(size=(20, 2)):
        assert theory.linear_risk(c, np.append(np.full(4, rest), last), noise) >= least
    z = jnp.asarray(rng.normal(size=(100_000, 11)))
    x, y = (np.asarray(v) for v in draw_series(jnp.asarray(c), z, noise))
    assert np.mean((x @ best - y) ** 2) == pytest.approx(least, rel=0.02, abs=1e-12)
    blind = np.c_[x[:, -1], x[:, :-1].sum(1), (x[:, :-1] ** 3).sum(1), np.prod(x[:, :-1], axis=1)]
    fitted = np.linalg.lstsq(blind, y, rcond=None)[0]
    assert np.mean((blind @ fitted - y) ** 2) == pytest.approx(least, rel=0.02, abs=1e-12)
    if mode == MIX:  # its other weights are equal: nothing is lost
        assert least == pytest.approx(theory.linear_risk(c, c / (1 + noise**2), noise))


def test_attention_is_blind_to_the_order_of_the_other_steps(double):
    x, _, w, a, _ = sample()
    moved = x[:, jnp.array([2, 0, 1, 3])]
    np.testing.assert_allclose(network(w, a, x), network(w, a, moved), rtol=1e-12)


@pytest.mark.parametrize(("samples", "weights"), [(20, 4), (60, 10)])
def test_least_squares_costs_what_it_should(samples, weights):
    rng = np.random.default_rng(0)
    risks = []
    for _ in range(2000):
        x, e = rng.normal(size=(samples, weights)), rng.normal(size=samples)
        v = np.linalg.lstsq(x, e, rcond=None)[0]
        risks.append(1 + v @ v)
    assert np.mean(risks) == pytest.approx(theory.least_squares_factor(samples, weights), rel=0.02)


def test_the_residual_network_has_a_floor_where_the_weights_do_not_sum_to_one():
    _, _, total = theory.core_norm_sum(UNIFORM, 8, 0.5)
    floor = theory.best_residual_risk(UNIFORM, 8, 0.5, 0.0, False)
    assert floor == pytest.approx((1 - total) ** 2 / 8)
    assert theory.best_residual_risk(UNIT, 8, 0.5, 0.0, False) == pytest.approx(0, abs=1e-12)


def test_linear_predictors_are_measured_on_the_same_data(double):
    cfg = identity.typed(linear.Config(mode=UNIT, samples=40, test_samples=300), "float64")
    found, trained = jit(linear.simulate)(cfg, seed_key("s", 0)), train(samples=40, mode=UNIT)
    assert float(found.fitted_loss) < float(found.blind_loss) < float(found.last_loss)
    assert trained.fitted_ood < trained.zero_ood < trained.last_ood


def test_an_unrestricted_fit_finds_the_weights():
    x = sample(n=40, d=5)[0]
    v = jnp.array([0.3, -0.2, 0.5, 0.1, 0.9])
    np.testing.assert_allclose(fit_plain(x, x @ v, jnp.arange(40) < 30), v, atol=1e-4)


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
    found = fit_residual(x, residual_linear(v, x), jnp.arange(40) < 30)
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
    some, spectrum = train(samples=6, **wide), train(kernel.simulate, samples=6, **wide)
    np.testing.assert_allclose(some.kernel_max, spectrum.kernel_max, rtol=1e-9)
    assert spectrum.kernel_min > 0
    more = train(kernel.simulate, samples=16, **wide)
    assert more.kernel_min < spectrum.kernel_min  # interlacing
    assert more.kernel_max > spectrum.kernel_max


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
    one = jit(kernel.simulate)
    found = [one(cfg, seed_key("s", seed)).kernel_max for seed in range(8)]
    _, typical, _ = theory.typical_kernel(16, 8, 0.1)
    assert np.median(found) == pytest.approx(typical, rel=0.7)
    smallest = [theory.typical_kernel(n, 8, 0.1)[0] for n in (2, 4, 8, 16, 64)]
    assert sorted(smallest, reverse=True) == smallest


def one_neuron(**settings):
    cfg = identity.typed(gaussian.Config(**({"samples": 20_000} | settings)), "float32")
    return jit(gaussian.simulate)(cfg, seed_key("s", 0))


def test_attention_on_the_last_step_tends_to_its_limits():
    found = one_neuron(tokens=2).attention
    floor, ceiling = theory.attention_limits(2)
    assert float(found[0]) == pytest.approx(floor, abs=0.03)
    assert float(found[-1]) == pytest.approx(ceiling, abs=0.03)
    assert np.all(np.diff(np.asarray(found, float)) > 0)


@pytest.mark.parametrize(("tokens", "scale"), [(2, 1.0), (8, 0.5), (16, 1.0)])
def test_attention_on_the_last_step_has_its_slope(tokens, scale):
    found = one_neuron(tokens=tokens, scale=scale)
    near = np.abs(np.asarray(found.weight)) < 0.1
    slope = ((found.attention - 1) / found.weight)[near].mean()
    assert float(slope) == pytest.approx(theory.attention_slope(tokens, scale), rel=0.1)


def test_attention_depends_on_the_weight_times_the_variance(double):
    """So that one scale stands for all in Theorem 5.3."""
    x, _, w, _, _ = sample()
    np.testing.assert_allclose(attend(w / 4, 2 * x)[2], attend(w, x)[2], rtol=1e-10)


def test_the_function_of_theorem_5_3_s_proof_is_not_convex():
    """softmax_k - softmax_d, to which Jensen's inequality is applied, lies above some chord."""

    def h(k, d):
        return math.tanh((k - d) / 2)  # two steps

    assert h(1, 0) > (h(0, 0) + h(2, 0)) / 2 + 0.05
    assert h(-1, 0) < (h(0, 0) + h(-2, 0)) / 2 - 0.05


# ------------------------------------------------------------------------- the first step


@pytest.mark.parametrize(("mode", "gamma"), MODES)
def test_the_first_pull_is_that_of_samples(double, mode, gamma):
    c, noise = coefs(mode, gamma), 0.3
    x, y = draw_series(c, normal(seed_key("s", 5), (400_000, 11)), noise)
    pulls = np.asarray(y * x[:, -1] * x.var(axis=1))
    core, _, total = theory.core_norm_sum(mode, 5, gamma)
    predicted = theory.first_pull(core, total - core, 5, noise)
    assert abs(pulls.mean() - predicted) < 4 * pulls.std() / math.sqrt(len(pulls))


def test_the_first_move_is_that_of_the_training(double):
    """Weights at zero move by the step size times the sum of the pulls, over the root of m."""
    found = train(samples=20, width=16, init_scale=1e-6, steps=2, record=3)
    cfg = Config(**(TINY | dict(samples=20)))
    drawn = data.draw(cfg, seed_key("s", 0))
    pulls = float(jnp.sum(drawn.y[:20] * drawn.x[:20, -1] * drawn.x[:20].var(axis=1)))
    lr = cfg.lr / float(found.kernel_max)
    assert float(found.move[1]) == pytest.approx(theory.first_move(lr, 1, pulls, 16), rel=1e-4)


def test_signs_turn_where_weights_start_nearer_than_they_move():
    w = np.random.default_rng(0).normal(size=200_000) * 0.4
    for move in (0.05, 0.4):
        share = ((w + move > 0).mean() + (w - move < 0).mean()) / 2
        assert share == pytest.approx(theory.sign_share(move, 0.4), abs=0.005)


def test_steps_in_order_are_counted(double):
    """Until the first recorded step with less than nine tenths of the pairs in order."""
    found = train(mode=UNIT, gamma=0.3, steps=60, record=61, width=40)
    ordered = np.asarray(found.ordered)
    lost = np.flatnonzero(ordered < model.MOST)
    assert int(found.ordered_steps) == (lost[0] - 1 if len(lost) else 60)
    wide = train(mode=UNIT, gamma=0.3, steps=60, record=61, width=2048)
    assert int(wide.ordered_steps) == int(wide.lazy_steps)


def test_the_law_of_the_order_grows_with_samples_and_falls_with_noise():
    def steps(**changes):
        at = dict(core=0.5, norm=1.0, tokens=8, samples=64, noise=0.1) | changes
        return theory.ordered_steps(theory.order_signal(**at), 0.5)

    assert steps(samples=256) == pytest.approx(4 ** (2 / 3) * steps())
    assert steps(noise=1.0) < steps() < steps(core=0.8)


# ------------------------------------------------------------------------------ Theorem 5.2


def test_two_samples_are_fitted_as_the_frozen_kernel_says(double):
    cfg = identity.typed(few.Config(width=1024, steps=400, record=6, lr=1.0, mode=UNIT), "float64")
    found = jit(few.simulate)(cfg, seed_key("s", 1))
    assert float(found.train_loss[-1]) <= 0.01 * float(found.train_loss[0])
    assert float(found.slowest) > 1
    assert float(found.kernel_ratio.min()) > 0.9
    assert float(found.kernel_ratio[0]) == pytest.approx(1)
    assert float(found.sign[-1]) == pytest.approx(float(found.lazy_sign), abs=0.01)
    b2 = theory.bound_b2(2, 8, 0.1)
    promised = theory.convergence_time(
        1 / float(found.kernel_max),
        float(found.kernel_min),
        2,
        b2,
        0.01 * float(found.train_loss[0]),
    )
    assert int(found.stopped_at) < promised


def test_the_loss_bound_is_vacuous_for_many_samples_only():
    assert theory.theory(Config()).vacuous == ("loss_bound",)
    assert theory.theory(few.Config(samples=2, steps=100_000, lr=1.0)).vacuous == ()
    assert theory.loss_bound(0.5, 0.1, 2) == pytest.approx(0.975**2)


# ---------------------------------------------------------------- section 7 and the theory


def test_the_formula_of_section_7_is_the_gradient(double):
    keys = jax.random.split(jax.random.key(0), 4)
    x, g = (jax.random.normal(k, (5, 3)) for k in keys[:2])
    w, w_v = (jax.random.normal(k, (3, 3)) for k in keys[2:])
    auto = jax.grad(lambda w: jnp.sum(g * (local.scores(w, x) @ x @ w_v)))(w)
    np.testing.assert_allclose(local.gradient(w, w_v, x, g), auto, rtol=1e-10, atol=1e-12)


def test_cases_1_and_2_are_right_more_often_than_not(double):
    cfg = identity.typed(local.Config(tokens=5, dim=3, draws=200), "float64")
    found = jit(local.simulate)(cfg, seed_key("s", 0))
    assert 0.4 < float(found.agreement) < 0.9
    wide = identity.typed(local.Config(tokens=3, dim=400, draws=50), "float64")
    assert float(jit(local.simulate)(wide, seed_key("s", 0)).alone) > 0.9


def test_switches_of_the_remedies_are_off_by_default(double):
    """Gradient descent among the remedies is the paper's training."""
    cfg = TINY | dict(steps=5, record=2)
    plain = train(**cfg)
    among = jit(scalar.simulate)(
        identity.typed(scalar.Config(**cfg, adam=0.0), "float64"), seed_key("s", 0)
    )
    np.testing.assert_allclose(among.train_loss, plain.train_loss, rtol=1e-9)
    np.testing.assert_allclose(among.ood_loss, plain.ood_loss[-1], rtol=1e-9)
    np.testing.assert_allclose(among.fitted_ood, plain.fitted_ood, rtol=1e-9)


def test_a_patch_as_long_as_the_series_is_a_linear_network():
    cfg = head.Config(**(TINY | dict(steps=200, samples=40, test_samples=500)), patch=4, rate=0.1)
    found = jit(head.simulate)(identity.typed(cfg, "float32"), seed_key("s", 0))
    assert float(found.ood_loss) < 2 * float(found.fitted_ood)


def test_one_head_with_positions_can_be_any_linear_map(double):
    """Negative weights too: values hold constants by position, and logits depend on the steps."""
    cfg = head.Config(tokens=6, hidden=8, learned=1.0)
    c = jnp.array([0.5, -0.7, 0.2, -0.1, 0.3, 0.6])
    x = jax.random.normal(jax.random.key(0), (50, 6))
    errors = []
    for small in (1e-2, 1e-3):
        weights = head.linear_head(c, 8, small)
        f = jax.vmap(lambda x, p=weights: head.network(cfg, p, x))(x)
        errors.append(float(jnp.abs(f - x @ c).max()))
    assert errors[0] < 0.1
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.3)


def test_starts_differ_on_the_same_data():
    first, again, other = (head.initial(head.Config(start=k), seed_key("s", 0)) for k in (0, 0, 1))
    np.testing.assert_array_equal(first.w_q, again.w_q)
    assert bool((first.w_q != other.w_q).all())
    small = head.initial(head.Config(embed_scale=0.2), seed_key("s", 0))
    np.testing.assert_allclose(small.embed, 2 * first.embed, rtol=1e-6)


def test_a_perceptron_learns_a_linear_target():
    cfg = mlp.Config(**(TINY | dict(steps=400, samples=60, test_samples=500)), mode=UNIT)
    found = jit(mlp.simulate)(identity.typed(cfg, "float32"), seed_key("s", 0))
    assert float(found.ood_loss) < float(found.zero_ood) / 2


def test_the_best_measure_is_not_better_than_order_blind(double):
    cfg = identity.typed(
        ridge.Config(mode=UNIT, samples=3000, noise=0.0, test_samples=3000), "float64"
    )
    found = jit(ridge.simulate)(cfg, seed_key("s", 0))
    assert float(found.test_loss) > float(found.blind_loss)
    assert float(found.test_loss) == pytest.approx(
        float(found.blind_loss) + theory.misfit(8) * 0.25, rel=0.1
    )


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
