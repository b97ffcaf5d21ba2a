import math
from typing import Any

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
from provingground.studies.syntax_semantics import measures, theory
from provingground.studies.syntax_semantics.kq import simulate_kq
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
    simulate_full,
    stage_steps,
    start,
)
from provingground.studies.syntax_semantics.reduced import hard_population, simulate_reduced
from provingground.studies.syntax_semantics.still import easy_gradient, linear_accuracy
from provingground.studies.syntax_semantics.whole import WholeConfig, parts, simulate_whole

TINY: dict[str, Any] = dict(dim=6, samples=8, tokens=9, z_norm=4.0, zeta_norm=2.0)
SHORT: dict[str, Any] = dict(lr1=0.1, lr2=0.05, weight_decay=0.5, k1=2.0, k2=1.0, record=3)


def jit(function):
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


pytestmark = pytest.mark.usefixtures("double")


def typed(**changes) -> Config:
    return identity.typed(Config(**(TINY | changes)), "float64")


def key(seed=0):
    return seed_key("syntax_semantics", seed)


SAMPLE, FULL, REDUCED = jit(prompts), jit(simulate_full), jit(simulate_reduced)


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


def whole_config(**changes) -> WholeConfig:
    return identity.typed(WholeConfig(**(TINY | changes)), "float64")


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
    whole = jit(jax.grad(lambda m: loss(block_network(m, data))))(blocks(u))
    grad = jit(jax.grad(lambda u: loss(ours(u))))(u)
    square = random("whole", (2 * d, 2 * d))  # without the mask
    h, g = parts(whole_config(masked=False), data)(Weights(square[:d], square[d:]))
    same(block_network(square, data), (h + g) / 2)
    same(grad.w, whole[:d, :d])
    same(grad.v, whole[d:, d:])
    assert norm(whole[:d, d:]) > 1e-3  # not zero: the block structure is imposed


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
    same(theory.hard_output(v_red, u, r, tokens) / scale, direct / scale, rtol=0)


@given(four, sizes, st.sampled_from([(0, 0, 0, 0, 1, -1), (0, 1, -1)]))
def test_the_reduction_is_exact_for_any_share_of_positives(v_red, norms, pattern):
    (u, r), share = norms, np.mean(np.array(pattern) == 0)
    direct = hard_by_tokens(v_red, u, r, 49, pattern)
    scale = 1 + abs(v_red).max() * (u + r) ** 2
    found = theory.hard_output(v_red, u, r, 49, share)
    same(found / scale, direct / scale, rtol=0)
    if share < 0.5:
        assert (found <= 0).all()


def test_more_positives_than_negatives_remove_the_floor():
    v = np.array([[1.0, 0.0], [0.0, 9.0]])
    losses = [theory.hard_loss(theory.hard_output(v * k, 3.0, 3.0, 49, 0.75)) for k in (1, 10)]
    assert losses[1] < 1e-3 < losses[0] < theory.FLOOR
    assert theory.hard_floor(0.75) == 0
    assert theory.hard_floor(0.5) == theory.FLOOR


def test_softmax_of_a_balanced_context_forgets_p():
    data, u = batch(4), Weights(random("w", (6, 12)), 0.05 * random("v", (6, 12)))
    basis = np.stack([data.z / 4, data.zeta / 2], axis=1)
    kind = np.asarray(data.sub_cluster[:, -1]).astype(int)
    h, g = parts(whole_config(softmax=True), data)(u)
    v_red = basis.T @ np.asarray(u.v[:, 6:]) @ basis
    same(g, theory.softmax_output(v_red, 4.0, 2.0)[kind])
    assert (abs(h) < 1).all()
    same(theory.hard_loss(np.array([0.0, -1.0, -1.0])), theory.SOFTMAX_FLOOR)


@given(four, sizes)
def test_the_hard_part_never_costs_less_than_the_floor(v_red, norms):
    u, r = norms
    g = theory.hard_output(v_red, u, r, 49)
    assert (g <= 0).all()
    assert theory.hard_loss(g) >= theory.FLOOR - 1e-12
    assert theory.in_dead_zone(v_red, u, r) <= (theory.hard_loss(g) == theory.LOG2)


def test_the_levels_of_the_hard_loss():
    same(theory.hard_loss(np.array([0.0, 0.0, 0.0])), theory.LOG2)
    same(theory.hard_loss(np.array([0.0, -1e3, 0.0])), theory.ONE_SIDED)
    same(theory.hard_loss(np.array([0.0, -1e3, -1e3])), theory.FLOOR)


def test_one_side_gains_over_both():
    u, r = 12.0, 3.0
    one, both = np.array([[1, -u / r], [u / r, 0]]), np.array([[0, 0], [0, 1.0]])
    (p1, q1), (p2, q2) = (theory.scores(v / np.linalg.norm(v), u, r) for v in (one, both))
    same([p1[1], p2[1]], [0, 0], atol=1e-12)
    same(theory.one_sided_gain(u, r), q1[1] / q2[1])
    assert theory.one_sided_gain(3.0, 3.0) < 1 < theory.one_sided_gain(6.0, 3.0)


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
    reduced = jax.grad(lambda v: jnp.array(SHARE) @ logistic_loss(y * population(v)))(red)
    same(full, basis @ reduced @ basis.T)
    same(population(red), theory.hard_output(np.asarray(red), 4.0, 2.0, 9))


def test_in_the_dead_zone_there_is_no_gradient():
    v = jnp.array([[1.0, 0.2], [0.1, 0.3]])
    assert theory.in_dead_zone(np.asarray(v), 12.0, 3.0)
    assert not jax.grad(lambda v: hard_population(v, 12.0, 3.0, 49).sum())(v).any()
    assert not theory.in_dead_zone(np.asarray(v).T[::-1], 12.0, 3.0)


def test_random_weights_are_mostly_in_the_dead_zone():
    rng = np.random.default_rng(0)
    for u in (3.0, 16.0):
        share = np.mean([theory.in_dead_zone(v, u, 3.0) for v in rng.normal(size=(2000, 2, 2))])
        assert share > theory.dead_zone_probability(u, 3.0) - 0.03
    assert theory.dead_zone_probability(16.0, 3.0) > 0.6


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
    found = jit(simulate_full)(cfg, key())
    same(found.noise_std[:3], 0.5, rtol=0.1)
    end = theory.noise_after(0.5, float(noise_std(cfg)), 0.02, 0.5, int(stage_steps(cfg)[1]))
    assert end == pytest.approx(0.5 * math.sqrt(0.2), rel=0.03)
    same(found.noise_std[-1], end, rtol=0.1)


def test_without_noise_both_models_learn_the_easy_part_alike():
    quiet: dict[str, Any] = dict(
        noise=0.0, noise2=0.0, init_std=0.02, dim=16, samples=48, tokens=49, k2=1.0
    )
    cfg = typed(**quiet, lr2=0.05, record=11)
    full, reduced = FULL(cfg, key()), REDUCED(cfg, key())
    assert full.w_cosine[-1] > 0.99
    same(full.w_norm[-1], reduced.w_norm[-1], rtol=0.05)
    same(full.loss_easy[-1], reduced.loss_easy[-1], rtol=0.1)
    at_rest = theory.easy_fixed_point(Config(**(TINY | quiet)))
    same(reduced.w_norm[-1], at_rest, rtol=0.02)
    assert reduced.w_change[10] == 0
    assert full.step[-1] == 833


def test_the_share_of_positives_in_both_models():
    quiet: dict[str, Any] = dict(
        noise=0.0, noise2=0.0, init_std=0.02, dim=16, samples=48, tokens=49, k2=1.0
    )
    cfg = typed(**quiet, lr2=0.05, record=11, positive=0.75)
    full, reduced = (FULL(cfg, key()), REDUCED(cfg, key()))
    same(full.w_norm[-1], reduced.w_norm[-1], rtol=0.05)
    same(full.loss_easy[-1], reduced.loss_easy[-1], rtol=0.1)
    same(reduced.w_norm[-1], theory.easy_fixed_point(Config(**TINY | quiet, positive=0.75)), 0.02)


def test_the_whole_matrix_trains_its_blocks_only_if_masked():
    found = [jit(simulate_whole)(whole_config(**SHORT, masked=m), key()) for m in (True, False)]
    assert all(np.isfinite(np.asarray(f.train_loss)).all() for f in found)
    same(found[0].w_norm[0], 0)
    assert abs(found[0].train_loss[-1] - found[1].train_loss[-1]) > 1e-3


def test_the_reduced_model_is_that_of_balanced_contexts():
    with pytest.raises(InputError, match="balanced"):
        simulate_reduced(typed(balanced=False), key())


def test_a_stage_has_a_whole_number_of_steps():
    assert stage_steps(Config()) == (500, 16667)
    assert [int(s) for s in jit(stage_steps)(typed(k1=1.0))] == [167, 16667]


def test_a_replay_knows_every_step():
    ds = pg.run("syntax_semantics", "cor1_order", seeds=3, k1=0.1, k2=0.01, record=3)
    found = pg.replay(ds, seed=1, schedule="annealed")
    steps = sum(int(s) for s in stage_steps(Config(k1=0.1, k2=0.01)))
    assert found.trajectory.sizes["step"] == steps + 1
    same(found.probes.stage[[0, -1]], [0, 2])


def test_traces_of_keys_and_queries_stay_below_the_bound():
    cfg = typed(**{**measures.KQ, "k1": 0.05, "k2": 0.02, "record": 5})
    found = jit(simulate_kq)(cfg, key())
    assert found.w_slack > 0
    assert found.v_slack > 0
    assert (found.w_trace <= found.w_bound * (1 + 1e-12)).all()
    assert found.w_trace[-1] > found.w_trace[0] > 0


def test_the_bound_is_that_of_corollary_1():
    cfg = typed(**{**measures.KQ, "k1": 0.01, "lr1": 1.0, "k2": 0.01, "record": 2})
    found, data = jit(simulate_kq)(cfg, key()), batch(**measures.KQ)
    x, first = np.asarray(data.x_easy), cfg.init_std * random("init", (2, 1, 6, 6))[0, 0]
    slope = 1 / (1 + np.exp(np.asarray(data.y_query * outputs(data).easy(first.T @ first)) / 2))
    active = (np.einsum("nld,nd->nl", x[:, :-1], x[:, -1]) >= 0).sum(axis=1)
    k = (x**2).sum(axis=-1).max() * (slope * active).mean()
    grown = theory.trace_factor(1.0, 0.01, k, 9)
    same(found.w_bound[1] / found.w_bound[0], grown, rtol=1e-3)  # the hard part moves l' a little
    same(found.w_bound[0], found.w_trace[0])


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
    assert theory.critical_lr(10.0) == pytest.approx(0.05)
    assert theory.gate_kick(0.1, 16.0, 3.0) > 1


@given(st.floats(0.01, 1.0), st.floats(0.3, 3.0))
def test_the_fixed_point_is_at_rest_and_inside_proposition_4(weight_decay, margin):
    cfg = Config(weight_decay=weight_decay, margin=margin)
    c = theory.easy_fixed_point(cfg)
    assert 0 < c < theory.easy_norm_bound(cfg)
    assert c > theory.easy_fixed_point(Config(weight_decay=2 * weight_decay, margin=margin))


def test_predictions_of_the_theorems():
    values = theory.theory(Config()).values
    assert values["theorem1_floor"] < values["hard_one_sided"] < theory.LOG2
    assert values["easy_fixed_point"] == pytest.approx(2.1, abs=0.1)
    same(theory.theorem2_norm(16, 1 / 16), 16 * math.log(16))
    assert theory.theorem4_change(16, 0.01) < 1e-4
    assert theory.theorem3_loss(16, 0.0) > theory.FLOOR
    same(theory.paper_lr2(Config(), 1.0), 0.1 * 0.06**2 * 3)


def test_a_burst_is_one_gradient_step_of_one_side():
    u, r, lr = 16.0, 3.0, 0.1
    v = jnp.array([[1.0, -u / r], [u / r * 1.01, 0.0]])  # p(1) = 0; g(1) < 0, a little
    grad = jax.grad(lambda v: hard_population(1e-6 * v, u, r, 49)[1])(v) / 1e-6
    step = 0.25 * 0.5 * 0.5 * lr * norm(grad)  # share of its queries, slope, half of f
    same(step, theory.burst(lr, u, r), rtol=0.05)


# --------------------------------------------------------------------------- measures


def test_the_difference_of_medians_covers_their_difference():
    rng = np.random.default_rng(1)
    a, b = (xr.DataArray(x, dims="seed") for x in rng.exponential(size=(2, 40)))
    found = measures.median_difference(a + 3.0, b)
    assert found.low < 3 < found.high


def test_a_stage_ends_with_the_mean_of_its_last_records():
    y = xr.DataArray(np.arange(81.0)[None], dims=("seed", "stage"))
    same(measures.ending(y, 1), [np.arange(31, 41).mean()])
    same(measures.ending(y, 2), [np.arange(71, 81).mean()])
