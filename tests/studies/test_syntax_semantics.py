import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import provingground as pg
from provingground import identity
from provingground.errors import InputError
from provingground.keys import normal, seed_key, stream
from provingground.studies.syntax_semantics import decoder, exact, facts, kq, reduced, theory, whole
from provingground.studies.syntax_semantics.figures import cor1, eta_c, rest, shared, thm1, thm2
from provingground.studies.syntax_semantics.gradient import easy_gradient
from provingground.studies.syntax_semantics.model import (
    SHARE,
    Config,
    Prompts,
    Weights,
    attend,
    drawn,
    logistic_loss,
    noise_std,
    norm,
    outputs,
    prompts,
    sgd,
    simulate,
    stage_steps,
    start,
)
from provingground.studies.syntax_semantics.picture import linear_accuracy
from provingground.studies.syntax_semantics.reduced import hard_population

TINY: dict[str, Any] = dict(dim=6, samples=8, tokens=9, z_norm=4.0, zeta_norm=2.0)
SHORT: dict[str, Any] = dict(lr1=0.1, lr2=0.05, weight_decay=0.5, k1=2.0, k2=1.0, record=3)


def jit(function):
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


pytestmark = pytest.mark.usefixtures("double")


def easy_rest(cfg: Config) -> float:
    return exact.easy_rest(cfg.margin, cfg.dim, cfg.tokens, cfg.weight_decay, cfg.positive)


def typed(**changes) -> Config:
    return identity.typed(Config(**(TINY | changes)), "float64")


def key(seed=0):
    return seed_key("syntax_semantics", seed)


SAMPLE, FULL, REDUCED = jit(prompts), jit(simulate), jit(reduced.simulate)


def batch(seed=0, **changes) -> Prompts:
    return SAMPLE(typed(**changes), key(seed))


def random(name, shape):
    return normal(stream(key(), name), shape)


def same(a, b, rtol=1e-9, atol=1e-12):
    np.testing.assert_allclose(a, b, rtol, atol)


# ------------------------------------------------------------------------------ data


@settings(max_examples=10)
@given(
    st.integers(0, 5), st.sampled_from([(2, 4, 5), (6, 8, 9)]), st.booleans(), st.floats(0.0, 3.0)
)
def test_prompts_carry_their_ground_truth(seed, sizes, balanced, margin):
    d, n, tokens = sizes
    data = batch(seed, dim=d, samples=n, tokens=tokens, balanced=balanced, margin=margin)
    y = np.where(np.asarray(data.sub_cluster) == 0, 1, -1)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.labels[:, :-1], y[:, :-1])
    assert not data.labels[:, -1].any()  # the query's label is hidden
    np.testing.assert_array_equal(data.y_query, y[:, -1])
    assert (y * np.asarray(data.x_easy @ data.w_star) >= margin - 1e-12).all()
    same(norm(data.w_star), 1)
    same(norm(data.z), 4)
    same(norm(data.zeta), 2)
    same(data.z @ data.zeta, 0, atol=1e-12)
    s = np.asarray(data.sub_cluster)[..., None]
    same(data.x_hard, np.asarray(data.z) + s * np.asarray(data.zeta))


def test_balanced_contexts_and_queries_are_balanced():
    s = np.asarray(batch(tokens=17).sub_cluster)
    for rows in (s[:, :-1], s[:, -1:].T):
        for kind, share in zip((0, 1, -1), SHARE, strict=True):
            same((rows == kind).mean(axis=1), share)


@pytest.mark.parametrize("share", [0.25, 2 / 3, 0.75])
def test_contexts_have_their_share_of_positives_and_queries_half(share):
    s = np.asarray(batch(tokens=49, positive=share).sub_cluster)
    for kind, wanted in zip((0, 1, -1), (share, (1 - share) / 2, (1 - share) / 2), strict=True):
        same((s[:, :-1] == kind).mean(axis=1), wanted)
    same((s[:, -1] == 0).mean(), 0.5)
    drawn = np.asarray(batch(tokens=49, samples=400, balanced=False, positive=share).sub_cluster)
    assert (drawn[:, :-1] == 0).mean() == pytest.approx(share, abs=0.02)
    assert (drawn[:, -1] == 0).mean() == pytest.approx(0.5, abs=0.08)


def test_independent_labels_are_fair():
    s = np.asarray(batch(balanced=False, samples=400, tokens=41).sub_cluster)
    for kind, share in zip((0, 1, -1), SHARE, strict=True):
        assert (s == kind).mean() == pytest.approx(share, abs=0.02)


def test_margins_are_those_of_the_data():
    data = batch(samples=200, tokens=41)
    m = np.asarray(data.y * (data.x_easy @ data.w_star)).ravel()
    assert m.mean() == pytest.approx(1.2 + math.sqrt(2 / math.pi / 6), rel=0.01)


def test_a_line_tells_easy_labels_apart_and_hard_ones_not():
    data = batch(dim=2, tokens=41)
    y = data.y[0, :-1]
    same(linear_accuracy(data.x_easy[0, :-1], y), 1)
    same(linear_accuracy(data.x_hard[0, :-1], y), 0.75)


# --------------------------------------------------------------------------- network


def whole_config(**changes) -> whole.Config:
    return identity.typed(whole.Config(**(TINY | changes)), "float64")


def block_network(u, data: Prompts):
    """Eq. (1) as printed, with the 2d x 2d matrix U and 2L tokens."""

    def one(easy, hard, y):
        zero = jnp.zeros_like(easy)
        x = jnp.concatenate(
            [jnp.concatenate([easy, zero], axis=1), jnp.concatenate([zero, hard], axis=1)]
        )
        return attend(u, x, jnp.concatenate([y, y]), jnp.concatenate([easy[-1], hard[-1]]))

    return jax.vmap(one)(data.x_easy, data.x_hard, data.labels)


@pytest.mark.parametrize("balanced", [True, False])
def test_outputs_and_gradients_are_those_of_the_block_model(balanced):
    data = batch(1, balanced=balanced)
    out, d = outputs(data), 6
    u = Weights(random("w", (d, d)), random("v", (d, d)))

    def loss(f):
        return logistic_loss(data.y_query * f).mean()

    def blocks(u):
        zero = jnp.zeros((d, d))
        return jnp.block([[u.w, zero], [zero, u.v]])

    def ours(u):
        return (out.easy(u.w) + out.hard(u.v)) / 2

    same(block_network(blocks(u), data), ours(u))
    all_of_u = jit(jax.grad(lambda m: loss(block_network(m, data))))(blocks(u))
    grad = jit(jax.grad(lambda u: loss(ours(u))))(u)
    square = random("whole", (2 * d, 2 * d))  # without the mask
    h, g = whole.parts(whole_config(masked=False), data)(Weights(square[:d], square[d:]))
    same(block_network(square, data), (h + g) / 2)
    same(grad.w, all_of_u[:d, :d])
    same(grad.v, all_of_u[d:, d:])
    assert norm(all_of_u[:d, d:]) > 1e-3  # not zero: the block structure is imposed


def test_the_gradient_of_w_is_that_of_finite_differences_and_of_proposition_2():
    data, w = batch(2), random("w", (6, 6))

    def loss(w):
        return logistic_loss(data.y_query * outputs(data).easy(w) / 2).mean()

    grad, h, way = easy_gradient(data, w), 1e-6, random("way", (6, 6))
    same((loss(w + h * way) - loss(w - h * way)) / (2 * h), jnp.sum(grad * way), rtol=1e-6)
    same(grad, jax.grad(loss)(w))
    printed = easy_gradient(data, w, signed=False)
    assert norm(printed - grad) > 0.1 * norm(grad)
    aligned = jnp.outer(data.w_star, data.w_star)
    same(easy_gradient(data, aligned, signed=False), jax.grad(loss)(aligned))


# ------------------------------------------------------- the hard part, exactly


number = st.floats(-3, 3)
four = st.tuples(number, number, number, number).map(lambda v: np.array(v).reshape(2, 2))
sizes = st.tuples(st.floats(0.1, 20), st.floats(0.1, 20))


def hard_by_tokens(v_red, u, r, tokens, pattern=(0.0, 1.0, 0.0, -1.0)):
    """g of a balanced context, token by token."""
    s = np.array([*pattern] * ((tokens - 1) // len(pattern)), float)
    x = np.stack([np.full_like(s, u), r * s], axis=1)
    score = x @ v_red @ np.array([[u, 0], [u, r], [u, -r]]).T
    return np.where(s == 0, 1, -1) @ np.maximum(score, 0) / tokens


@given(four, sizes, st.sampled_from([5, 49]))
def test_the_reduction_of_g_is_exact(v_red, norms, tokens):
    u, r = norms
    direct = hard_by_tokens(v_red, u, r, tokens)
    scale = 1 + abs(v_red).max() * (u + r) ** 2
    same(exact.hard_output(v_red, u, r, tokens) / scale, direct / scale, rtol=0)


@given(four, sizes, st.sampled_from([(0, 0, 0, 0, 1, -1), (0, 1, -1)]))
def test_the_reduction_is_exact_for_any_share_of_positives(v_red, norms, pattern):
    (u, r), share = norms, np.mean(np.array(pattern) == 0)
    direct = hard_by_tokens(v_red, u, r, 49, pattern)
    scale = 1 + abs(v_red).max() * (u + r) ** 2
    found = exact.hard_output(v_red, u, r, 49, share)
    same(found / scale, direct / scale, rtol=0)
    if share < 0.5:
        assert (found <= 0).all()


def test_more_positives_than_negatives_remove_the_floor():
    v = np.array([[1.0, 0.0], [0.0, 9.0]])
    losses = [exact.hard_loss(exact.hard_output(v * k, 3.0, 3.0, 49, 0.75)) for k in (1, 10)]
    assert losses[1] < 1e-3 < losses[0] < exact.FLOOR
    assert exact.hard_floor(0.75) == 0
    assert exact.hard_floor(0.5) == exact.FLOOR


def test_softmax_of_a_balanced_context_forgets_p():
    data, u = batch(4), Weights(random("w", (6, 12)), 0.05 * random("v", (6, 12)))
    basis = np.stack([data.z / 4, data.zeta / 2], axis=1)
    kind = np.asarray(data.sub_cluster[:, -1]).astype(int)
    h, g = whole.parts(whole_config(softmax=True), data)(u)
    v_red = basis.T @ np.asarray(u.v[:, 6:]) @ basis
    same(g, exact.softmax_output(v_red, 4.0, 2.0)[kind])
    assert (abs(h) < 1).all()
    same(exact.hard_loss(np.array([0.0, -1.0, -1.0])), exact.SOFTMAX_FLOOR)


@given(four, sizes)
def test_the_hard_part_never_costs_less_than_the_floor(v_red, norms):
    u, r = norms
    g = exact.hard_output(v_red, u, r, 49)
    assert (g <= 0).all()
    assert exact.hard_loss(g) >= exact.FLOOR - 1e-12
    assert exact.in_dead_zone(v_red, u, r) <= (exact.hard_loss(g) == exact.LOG2)


def test_the_levels_of_the_hard_loss():
    same(exact.hard_loss(np.array([0.0, 0.0, 0.0])), exact.LOG2)
    same(exact.hard_loss(np.array([0.0, -1e3, 0.0])), exact.ONE_SIDED)
    same(exact.hard_loss(np.array([0.0, -1e3, -1e3])), exact.FLOOR)


def test_one_side_gains_over_both():
    u, r = 12.0, 3.0
    one, both = np.array([[1, -u / r], [u / r, 0]]), np.array([[0, 0], [0, 1.0]])
    (p1, q1), (p2, q2) = (exact.scores(v / np.linalg.norm(v), u, r) for v in (one, both))
    same([p1[1], p2[1]], [0, 0], atol=1e-12)
    same(exact.one_sided_gain(u, r), q1[1] / q2[1])
    assert exact.one_sided_gain(3.0, 3.0) < 1 < exact.one_sided_gain(6.0, 3.0)


def test_v_in_the_whole_network_is_v_in_its_span():
    """The reduced model's g and gradient are those of the d x d matrix on balanced prompts."""
    data = batch(3, samples=8)
    z, zeta, v = data.z / 4, data.zeta / 2, random("v", (6, 6))
    basis = jnp.stack([z, zeta], axis=1)
    v = 0.1 * v + 2 * jnp.outer(zeta, z)  # in the active region
    kind = np.asarray(data.sub_cluster[:, -1]).astype(int)

    def population(v_red):
        return hard_population(v_red, 4.0, 2.0, 9)

    red = basis.T @ v @ basis
    assert (population(red) < 0).any()
    same(outputs(data).hard(v), population(red)[kind])
    full = jax.grad(lambda v: logistic_loss(data.y_query * outputs(data).hard(v)).mean())(v)
    y = jnp.array([1.0, -1.0, -1.0])
    five = jax.grad(lambda v: jnp.array(SHARE) @ logistic_loss(y * population(v)))(red)
    same(full, basis @ five @ basis.T)
    same(population(red), exact.hard_output(np.asarray(red), 4.0, 2.0, 9))


def test_in_the_dead_zone_there_is_no_gradient():
    v = jnp.array([[1.0, 0.2], [0.1, 0.3]])
    assert exact.in_dead_zone(np.asarray(v), 12.0, 3.0)
    assert not jax.grad(lambda v: hard_population(v, 12.0, 3.0, 49).sum())(v).any()
    assert not exact.in_dead_zone(np.asarray(v).T[::-1], 12.0, 3.0)


def test_random_weights_are_mostly_in_the_dead_zone():
    rng = np.random.default_rng(0)
    for u in (3.0, 16.0):
        share = np.mean([exact.in_dead_zone(v, u, 3.0) for v in rng.normal(size=(2000, 2, 2))])
        assert share > exact.dead_zone_probability(u, 3.0) - 0.03
    assert exact.dead_zone_probability(16.0, 3.0) > 0.6


# --------------------------------------------------------------------------- training


def quadratic(u: Weights, bias):
    return jnp.sum((u.w - 1) ** 2) + jnp.sum(jnp.sin(u.v)) + 0 * bias


def test_proposition_1_signal_and_noise_are_sums_over_the_past():
    cfg = typed(**SHORT)
    like = Weights(jnp.array(0.0), jnp.zeros((2, 2)))
    noise_key = stream(key(), "batch/noise")
    step, state = jit(sgd(cfg, noise_key, quadratic)), start(cfg, key(), like)
    steps1, steps2 = (int(s) for s in stage_steps(cfg))
    first, signals, grads, noises, rates = state, [], [], [], []
    for t in range(steps1 + steps2):
        rates.append(0.1 if t < steps1 else 0.05)
        grads.append(jax.grad(quadratic)(state.weights, state.bias).v)
        noises.append(noise_std(cfg) * drawn(jax.random.fold_in(noise_key, t), like).v)
        state = step(state, jnp.array(t, jnp.int32))
        signals.append(state.signal.v)
    kept = np.cumprod((1 - 0.5 * np.array(rates))[::-1])[::-1]
    after = np.append(kept[1:], 1.0) * np.array(rates)
    same(state.signal.v, -sum(a * g for a, g in zip(after, grads, strict=True)))
    expected = kept[0] * first.noise.v - sum(a * x for a, x in zip(after, noises, strict=True))
    same(state.noise.v, expected, rtol=1e-6)  # normals are drawn in float32
    same(state.annealed.v, signals[steps1 - 1])
    same(state.weights.v, state.signal.v + state.noise.v)


def test_the_noise_keeps_its_size_and_then_relaxes():
    cfg = typed(dim=24, weight_decay=0.5, lr1=0.1, lr2=0.02, k1=3.0, k2=3.0, record=3)
    found = jit(simulate)(cfg, key())
    same(found.noise_std[:3], 0.5, rtol=0.1)
    end = theory.noise_after(0.5, float(noise_std(cfg)), 0.02, 0.5, int(stage_steps(cfg)[1]))
    assert end == pytest.approx(0.5 * math.sqrt(0.2), rel=0.03)
    same(found.noise_std[-1], end, rtol=0.1)


def test_without_noise_both_models_learn_the_easy_part_alike():
    quiet: dict[str, Any] = dict(
        noise=0.0, noise2=0.0, init_std=0.02, dim=16, samples=48, tokens=49, k2=1.0
    )
    cfg = typed(**quiet, lr2=0.05, record=11)
    full, five = FULL(cfg, key()), REDUCED(cfg, key())
    assert full.w_cosine[-1] > 0.99
    same(full.w_norm[-1], five.w_norm[-1], rtol=0.05)
    same(full.loss_easy[-1], five.loss_easy[-1], rtol=0.1)
    at_rest = easy_rest(Config(**(TINY | quiet)))
    same(five.w_norm[-1], at_rest, rtol=0.02)
    assert five.w_change[10] == 0
    assert full.step[-1] == 833


def test_the_share_of_positives_in_both_models():
    quiet: dict[str, Any] = dict(
        noise=0.0, noise2=0.0, init_std=0.02, dim=16, samples=48, tokens=49, k2=1.0
    )
    cfg = typed(**quiet, lr2=0.05, record=11, positive=0.75)
    full, five = (FULL(cfg, key()), REDUCED(cfg, key()))
    same(full.w_norm[-1], five.w_norm[-1], rtol=0.05)
    same(full.loss_easy[-1], five.loss_easy[-1], rtol=0.1)
    same(five.w_norm[-1], easy_rest(Config(**TINY | quiet, positive=0.75)), 0.02)


def test_the_whole_matrix_trains_its_blocks_only_if_masked():
    found = [jit(whole.simulate)(whole_config(**SHORT, masked=m), key()) for m in (True, False)]
    assert all(np.isfinite(np.asarray(f.train_loss)).all() for f in found)
    same(found[0].w_norm[0], 0)
    assert abs(found[0].train_loss[-1] - found[1].train_loss[-1]) > 1e-3


def test_the_reduced_model_is_that_of_balanced_contexts():
    with pytest.raises(InputError, match="balanced"):
        reduced.simulate(typed(balanced=False), key())


def test_a_stage_has_a_whole_number_of_steps():
    assert stage_steps(Config()) == (500, 16667)
    assert [int(s) for s in jit(stage_steps)(typed(k1=1.0))] == [167, 16667]


def test_a_replay_knows_every_step():
    ds = pg.run("syntax_semantics", "thm1_base", seeds=3, k1=0.1, k2=0.01, record=3)
    found = pg.replay(ds, seed=1)
    steps = sum(int(s) for s in stage_steps(Config(k1=0.1, k2=0.01, lr2=0.1)))
    assert found.trajectory.sizes["step"] == steps + 1
    same(found.probes.stage[[0, -1]], [0, 2])


def test_traces_of_keys_and_queries_stay_below_the_bound():
    cfg = typed(**{**cor1.DEAD, "k1": 0.05, "k2": 0.02, "record": 5})
    found = jit(kq.simulate)(cfg, key())
    assert found.w_slack > 0
    assert found.v_slack > 0
    assert (jnp.log(found.w_trace) <= found.w_log_bound + 1e-12).all()
    assert found.w_trace[-1] > found.w_trace[0] > 0


def test_traces_without_a_gradient_decay_twice_as_fast_as_printed():
    """A trace is a product of two factors; V has no gradient in its dead zone."""
    cfg = typed(**{**cor1.DEAD, "k1": 0.05, "k2": 0.02, "record": 5})
    found = jit(kq.simulate)(cfg, key())
    fallen = jnp.log(found.v_trace[0] / found.v_trace[-1])
    same(fallen / 0.07, 2.0, rtol=1e-3)


def test_the_bound_is_that_of_corollary_1():
    cfg = typed(**{**cor1.DEAD, "k1": 0.01, "lr1": 1.0, "k2": 0.01, "record": 2})
    found, data = jit(kq.simulate)(cfg, key()), batch(**cor1.DEAD)
    x, first = np.asarray(data.x_easy), cfg.init_std * random("init", (2, 1, 6, 6))[0, 0]
    slope = 1 / (1 + np.exp(np.asarray(data.y_query * outputs(data).easy(first.T @ first)) / 2))
    active = (np.einsum("nld,nd->nl", x[:, :-1], x[:, -1]) >= 0).sum(axis=1)
    k = (x**2).sum(axis=-1).max() * (slope * active).mean()
    grown = theory.trace_factor(1.0, 0.01, k, 9)
    rate = jnp.exp(found.w_log_bound[1] - found.w_log_bound[0])
    same(rate, grown, rtol=1e-3)  # the hard part moves l' a little
    same(jnp.exp(found.w_log_bound[0]), found.w_trace[0])


# ----------------------------------------------------------------------------- theory


def test_the_epsilons_scale_as_printed():
    same(theory.eps_noise(1.0, 3.0, 16, 100), 9 * math.sqrt(16 * math.log(16) / 100))
    same(theory.eps_noise(0.5, 3.0, 16, 400), theory.eps_noise(1.0, 3.0, 16, 100) / 4)
    same(theory.eps_flips(2.0, 0.5, 0.5, 8), 8 ** (4 / 3) * 4)


def test_the_gate_of_the_default_setting():
    found = {c.name: c for c in theory.conditions(Config())}
    assert found["gate shut"].satisfied
    assert found["gate open"].satisfied
    assert not found["weight decay"].satisfied
    literal = Config(margin=0.25, z_norm=0.1, zeta_norm=0.02, weight_decay=0.6, tokens=257)
    assert not {c.name: c for c in theory.conditions(literal)}["Theorem 2 in Prop. 4"].satisfied
    assert exact.kick(0.1, 16.0, 3.0) > 1


@given(st.floats(0.01, 1.0), st.floats(0.3, 3.0))
def test_the_fixed_point_is_at_rest_and_inside_proposition_4(weight_decay, margin):
    cfg = Config(weight_decay=weight_decay, margin=margin)
    c = easy_rest(cfg)
    assert 0 < c < theory.easy_norm_bound(margin, weight_decay)
    assert c > easy_rest(Config(weight_decay=2 * weight_decay, margin=margin))


def test_predictions_of_the_theorems():
    found = theory.theory(Config())
    values = found.values
    assert values["theorem1_floor"] < values["hard_one_sided"] < exact.LOG2
    assert values["easy_rest"] == pytest.approx(2.1, abs=0.1)
    same(theory.theorem2_norm(16, 1 / 16), 16 * math.log(16))
    same(theory.theorem3_norm(1 / 16), 16 * math.log(16))
    assert theory.theorem4_change(16, 0.01) < 1e-4
    assert theory.theorem3_loss(16, 0.0) > exact.FLOOR
    same(theory.paper_lr2(Config(), 1.0), 0.1 * 0.06**2 * 3)


def test_right_hand_sides_that_say_nothing_are_named():
    """At our settings all of them, at a huge dimension and tiny features (a.2) speaks."""
    found = theory.theory(Config()).vacuous
    assert {"theorem1_floor", "theorem2_loss", "theorem3_loss", "theorem4_change"} <= set(found)
    assert "theorem3_loss_d" in found  # 1.44 even with eps = 1/d
    small = Config(dim=10**6, samples=10**6, tokens=10**9, z_norm=0.01, zeta_norm=0.001)
    assert not {"theorem1_floor", "theorem3_norm", "theorem4_change"} & set(
        theory.theory(small).vacuous
    )


def test_a_burst_is_one_gradient_step_of_one_side():
    u, r, lr = 16.0, 3.0, 0.1
    v = jnp.array([[1.0, -u / r], [u / r * 1.01, 0.0]])  # p(1) = 0; g(1) < 0, a little
    grad = jax.grad(lambda v: hard_population(1e-6 * v, u, r, 49)[1])(v) / 1e-6
    step = 0.25 * 0.5 * 0.5 * lr * norm(grad)  # share of its queries, slope, half of f
    same(step, exact.burst(lr, u, r), rtol=0.05)
    (p, _), (moved, _) = (exact.scores(m, u, r) for m in (np.zeros((2, 2)), np.asarray(grad)))
    same(0.25 * 0.5 * 0.5 * lr * (moved - p)[1], exact.kick(lr, u, r), rtol=0.05)


# ------------------------------------------------------------------ rests and the gate


@pytest.mark.parametrize(("u", "r", "decay"), [(12.0, 3.0, 0.06), (6.0, 2.0, 0.02)])
def test_small_steps_come_to_the_rest_of_one_side(u, r, decay):
    """From the learned side, at a step far below the critical one, without noise."""
    cfg = Config(z_norm=u, zeta_norm=r, weight_decay=decay)
    at = theory.rest_of(cfg)
    gate = exact.keeping_lr(at.hard, u, r, at.slope)
    one = np.array([[1.0, -u / r], [u / r, 0.0]])
    v = 0.9 * at.hard * one / np.linalg.norm(one)
    lr = float(gate) / 40
    run = jit(
        lambda s: jax.lax.fori_loop(
            0, int(6 / (lr * decay)), lambda _, s: reference(s[0], s[1], cfg, lr), s
        )
    )
    v, c = run((jnp.asarray(v), jnp.array(at.easy)))
    assert np.linalg.norm(v) == pytest.approx(at.hard, rel=0.05)
    assert float(c) == pytest.approx(at.easy, rel=0.02)
    loss = exact.hard_loss(exact.hard_output(np.asarray(v), u, r, cfg.tokens))
    assert loss == pytest.approx(at.loss_hard, abs=0.01)


def reference(v, c, cfg: Config, lr: float):
    """One step of the population without noise."""
    y, share = jnp.array([1.0, -1.0, -1.0]), jnp.array(SHARE)
    m = jnp.asarray(reduced.margins(cfg.margin, cfg.dim))

    def loss(v, c):
        h = c * ((cfg.tokens - 1) / cfg.tokens * m.mean() * m / 2)
        g = hard_population(v, cfg.z_norm, cfg.zeta_norm, cfg.tokens)
        return logistic_loss((h[:, None] + (y * g)[None]) / 2).mean(axis=0) @ share

    grad_v, grad_c = jax.grad(loss, argnums=(0, 1))(v, c)
    left = 1 - lr * cfg.weight_decay
    return left * v - lr * grad_v, left * c - lr * grad_c


def test_the_rest_of_one_side_is_dimensionless():
    """Lengths can be rescaled: V as 1/r^2, the weight decay as r^4."""
    a = exact.one_side_rest(1.2, 16, 49, 0.06, 12.0, 3.0)
    slope, k = a.slope, 2.0
    norm_a, norm_b = a.hard, a.hard / k**2
    same(exact.one_sided_score(12.0 * k, 3.0 * k), exact.one_sided_score(12.0, 3.0) * k**2)
    one, two = ((0.1, norm_a, 12.0, 3.0), (0.1 / k**2, norm_b, 12.0 * k, 3.0 * k))
    same(exact.critical_lr(*two, slope) * k**4, exact.critical_lr(*one, slope))


def test_the_critical_step_is_below_both_of_its_parts():
    at = theory.rest_of(Config(z_norm=12.0))
    keep = exact.keeping_lr(at.hard, 12.0, 3.0, at.slope)
    for noise in (0.01, 0.1, 1.0):
        find = exact.finding_lr(noise, 12.0, 3.0, at.slope)
        both = exact.critical_lr(noise, at.hard, 12.0, 3.0, at.slope)
        assert min(keep, find) / math.sqrt(2) - 1e-12 <= both < min(keep, find)
    assert exact.critical_lr(0.0, at.hard, 12.0, 3.0, at.slope) == 0
    found = exact.critical_lr(0.5 * math.sqrt(0.05), at.hard, 12.0, 3.0, at.slope)
    assert found == pytest.approx(0.026, abs=0.001)


def test_the_return_of_noise_is_that_of_its_law():
    """The time in which noise comes back to zero from a small distance x, for `finding_lr`."""
    rng, decay, spread, x0, dt = np.random.default_rng(0), 1.0, 1.0, 0.2, 2e-4
    x, time, alive = np.full(4000, x0), np.zeros(4000), np.ones(4000, bool)
    for _ in range(60_000):
        drawn_now = rng.normal(size=alive.sum())
        x[alive] += -decay * x[alive] * dt + spread * math.sqrt(2 * decay * dt) * drawn_now
        time[alive] += dt
        alive &= x > 0
        if not alive.any():
            break
    law = x0 / (decay * spread) * math.sqrt(math.pi / 2)
    assert time.mean() == pytest.approx(law, rel=0.15)


@pytest.mark.parametrize(("zeta", "decay"), [(4.0, 0.05), (2.0, 0.05), (6.0, 0.2)])
def test_traces_of_keys_and_queries_come_to_rest(zeta, decay):
    sizes: dict[str, Any] = dict(dim=8, samples=32, tokens=25, margin=0.8, z_norm=0.5)
    cfg = typed(
        **sizes, zeta_norm=zeta, weight_decay=decay, init_std=0.1, lr1=0.2, lr2=0.2, k1=2.0,
        k2=8.0, record=3,
    )  # fmt: skip
    found = jit(kq.simulate)(cfg, key())
    at = exact.trace_rest(0.8, 8, 25, decay, zeta)
    scale = max(at)
    assert abs(found.w_trace[-1] - at.easy) < 0.2 * scale
    assert abs(found.v_trace[-1] - at.hard) < 0.1 * scale
    assert (at.easy == 0) == (decay == 0.2)


# ----------------------------------------------------------------------- table of facts


SMALL: dict[str, Any] = dict(subjects=6, relations=3, answers=4, width=8, epochs=3, early=1)


def facts_config(**changes) -> facts.Config:
    return identity.typed(facts.Config(**(SMALL | changes)), "float64")


@pytest.mark.parametrize("padding", ["left", "right"])
def test_prompts_of_facts_are_padded_where_they_say(padding):
    data = facts.table(facts_config(padding=padding), key())
    tokens, exists = np.asarray(data.tokens), np.asarray(data.exists)
    assert tokens.shape == (6 * 3 * 3, 4)
    np.testing.assert_array_equal(exists, tokens > 0)
    np.testing.assert_array_equal(exists.sum(axis=1)[:3], [2, 3, 4])
    column = -1 if padding == "left" else 0
    assert exists[:, column].all()
    subject = tokens[np.arange(len(tokens)), exists.argmax(axis=1)]
    np.testing.assert_array_equal(subject, 1 + np.repeat(np.arange(6), 9))
    np.testing.assert_array_equal(np.asarray(data.answer) // 4, np.asarray(data.relation))
    same_fact = np.asarray(data.answer).reshape(-1, 3)
    assert (same_fact == same_fact[:, :1]).all()  # paraphrases share their answer


def test_padding_that_is_masked_changes_nothing_but_its_position():
    cfg = facts_config()
    data = facts.table(cfg, key())
    w = decoder.initial_weights(decoder.shape(cfg, facts.task(cfg, key())), stream(key(), "w"))
    other = eqx.tree_at(lambda d: d.tokens, data, jnp.where(data.exists, data.tokens, 3))
    same(decoder.logits(w, data), decoder.logits(w, other), rtol=1e-5, atol=1e-5)
    seen = eqx.tree_at(lambda d: d.exists, other, jnp.ones_like(data.exists))
    assert abs(decoder.logits(w, data) - decoder.logits(w, seen)).max() > 1e-3


def test_answers_of_the_right_type_include_the_right_ones():
    cfg = facts_config()
    task = facts.task(cfg, key())
    w = decoder.initial_weights(decoder.shape(cfg, task), stream(key(), "w"))
    typed_share, right = decoder.accuracy(w, task, task.asked)
    assert right <= typed_share <= 1


@pytest.mark.parametrize("rows", [8, 24])
def test_singular_values_without_lapack_are_those_of_lapack(rows):
    m = np.asarray(random("matrix", (rows, 8)), float)
    us, v = jit(decoder.singular)(jnp.asarray(m))
    same(us @ v.T, m, atol=1e-9)
    same(v.T @ v, np.eye(8), atol=1e-9)
    same(np.linalg.norm(us, axis=0), np.linalg.svd(m, compute_uv=False), rtol=1e-8)


def test_every_pair_of_columns_is_turned_once_in_a_sweep():
    pairs = {tuple(sorted(p)) for one in decoder.round_robin(8) for p in zip(*one, strict=True)}
    assert len(pairs) == 28
    assert all(len(set(one.ravel())) == 8 for one in decoder.round_robin(8))


@pytest.mark.parametrize("edited", ["separate", "fused"])
def test_an_edit_that_keeps_all_changes_nothing(edited):
    cfg = facts_config(edited=edited)
    w = decoder.initial_weights(decoder.shape(cfg, facts.task(cfg, key())), stream(key(), "w"))
    again = decoder.put_back(cfg, w, decoder.attention_rows(cfg, w))
    for a, b in zip(jax.tree.leaves(w), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)
    keep = decoder.kept_ranks(8)
    assert keep.shape == (2, 10, 8)
    assert keep[:, -1].all()
    np.testing.assert_array_equal(keep[0, 4], [1, 1, 1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(keep[1, 4], [0, 0, 0, 0, 1, 1, 1, 1])


@pytest.mark.slow
def test_types_are_learned_before_answers():
    cfg = facts_config(subjects=20, relations=4, answers=8, width=16, epochs=30, lr=5e-3)
    found = jax.jit(facts.simulate)(cfg, key())
    typed_share, right = np.asarray(found.type_accuracy), np.asarray(found.exact_accuracy)
    assert right[-1] > 0.9
    assert (typed_share > 0.9).argmax() < (right > 0.9).argmax()
    same(found.edited_exact[:, :, -1][1], right[-1], atol=0.02)


# --------------------------------------------------------------------------- measures


def test_the_difference_of_medians_covers_their_difference():
    rng = np.random.default_rng(1)
    a, b = (xr.DataArray(x, dims="seed") for x in rng.exponential(size=(2, 40)))
    found = thm2.difference_of_medians(a + 3.0, b)
    assert found.low < 3 < found.high


def test_a_stage_ends_with_the_mean_of_its_last_records():
    y = xr.DataArray(np.arange(81.0)[None], dims=("seed", "stage"))
    same(shared.ending(y, 1), [np.arange(31, 41).mean()])
    same(shared.ending(y, 2), [np.arange(71, 81).mean()])


@pytest.mark.parametrize(
    ("room", "base", "where"),
    [
        (rest, {"k2": 8.0}, rest.learnable),
        (eta_c, {"z_norm": 12.0}, eta_c.gated),
        (thm1, {}, thm1.shut),
        (thm2, {}, thm2.gate_shut),
    ],
)
def test_settings_at_which_laws_are_shown_lie_where_they_are_meant_to_hold(room, base, where):
    for name, changes in room.VARIATIONS.items():
        cfg = Config(**(base | changes))
        assert where({f: getattr(cfg, f) for f in cfg.__dataclass_fields__}), name


def test_the_theory_of_settings_keeps_their_dims():
    scalars = {"zeta_norm": 3.0, "margin": 1.2, "dim": 16, "tokens": 49}
    arrays = {"z_norm": ("n", [8.0, 12.0]), "weight_decay": ("m", [0.02, 0.06, 0.2])}
    ds = xr.Dataset(coords={**scalars, **arrays})
    found = shared.rest(ds)
    assert found.hard.sizes == {"m": 3, "n": 2}
    one = exact.one_side_rest(1.2, 16, 49, 0.06, 12.0, 3.0)
    same([getattr(found, f).values[1, 1] for f in one._fields], one)
