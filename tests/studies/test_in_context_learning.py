import dataclasses
import itertools
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

from provingground import identity
from provingground.keys import normal, seed_key, stream
from provingground.nets.losses import hinge
from provingground.stats import Estimate
from provingground.studies.in_context_learning import (
    decoder,
    full,
    graphs,
    learners,
    mechanism,
    theory,
)
from provingground.studies.in_context_learning.figures import graphs as graphs_room
from provingground.studies.in_context_learning.figures import scaling, shared
from provingground.studies.in_context_learning.model import (
    Config,
    Weights,
    attend,
    draw,
    initial_weights,
    on_pattern,
    outputs,
    simulate,
    training_domain,
    unseen_domain,
)
from provingground.studies.in_context_learning.prompts import (
    Domain,
    coefficients,
    in_domain,
    other,
    out_of_domain,
    prompt,
    task,
    task_count,
)

TINY: dict[str, Any] = dict(
    dim=8, label_dim=3, width=10, tokens=6, tokens_test=5, batch=8, steps=30, test_samples=40,
    delta=0.3, lr=1.0, alpha=0.7, alpha_test=0.6, record=3,
)  # fmt: skip


def jit(function, **options):
    """Compiles fast."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0}, **options)


REDUCED, FULL, MECHANISM = jit(simulate), jit(full.simulate), jit(mechanism.simulate)
PROMPTS = jit(draw, static_argnums=(1, 2))
START, PREDICT = jit(initial_weights), jit(decoder.predict)
OUTPUTS, LUCKY = jit(outputs), jit(lambda w, p: mechanism.lucky_neurons(w, p, 8))


def train(how, seed=0, precision: Any = "float64", **changes):
    cfg = Config(**(TINY | changes))
    return how(identity.typed(cfg, precision), seed_key("in_context_learning", seed))


def domain(inside=True, n_relevant=6, first=0, last=6, kappa=0.5, coef_sum=1.28, dim=10) -> Domain:
    if inside:
        return in_domain(dim, 3.0, n_relevant, first, last, kappa)
    return out_of_domain(dim, 3.0, n_relevant, coef_sum, kappa)


def some(of, count=50, size=8, length=8, alpha=0.7, seed=0):
    """Prompts as NumPy arrays."""
    drawn = PROMPTS(jax.random.key(seed), count, size, length, alpha, of)
    return jax.tree.map(np.asarray, drawn)


# ------------------------------------------------------------------------------ tasks


@given(st.integers(3, 12))
def test_every_pair_of_patterns_is_a_task_once(patterns):
    tasks = theory.all_tasks(patterns)
    assert sorted(tasks) == sorted(itertools.permutations(range(patterns), 2))
    assert len(tasks) == task_count(patterns)


@given(st.integers(3, 10), st.integers(1, 4))
def test_rings_are_those_of_the_paper_and_cover_uniformly(patterns, rings):
    rings = min(rings, patterns - 1)
    found = theory.ring_tasks(patterns, rings)
    expected = [(j, (j + k) % patterns) for k in range(1, rings + 1) for j in range(patterns)]
    assert found == expected
    assert theory.covers_uniformly(found, patterns)


@pytest.mark.parametrize("patterns", [3, 4])
def test_no_fewer_than_m1_tasks_cover_uniformly(patterns):
    """Lemma E.4.11, by trying all sets of tasks."""
    every = theory.all_tasks(patterns)
    covering = [
        n
        for n in range(1, patterns + 1)
        if any(theory.covers_uniformly(s, patterns) for s in itertools.combinations(every, n))
    ]
    assert covering == [theory.min_tasks(patterns)]


def test_covering_needs_both_labels_of_every_pattern():
    assert not theory.covers_uniformly([(0, 1), (1, 0), (0, 2)], 3)
    assert not theory.covers_uniformly([(0, 1), (1, 2), (2, 0), (0, 2)], 3)
    assert not theory.covers_uniformly([], 3)
    assert theory.covers_uniformly([(0, 1), (1, 0), (2, 3), (3, 2)], 4)


@settings(max_examples=15)
@given(st.integers(3, 9), st.integers(1, 80), st.integers(0, 99))
def test_training_and_test_tasks_are_disjoint(patterns, n_tasks, seed):
    every = task_count(patterns)
    cfg = Config(**(TINY | dict(dim=10)), n_relevant=patterns, n_tasks=min(n_tasks, every - 1))
    seen, unseen = (
        {(int(a), int(b)) for a, b in zip(p.positive, p.negative, strict=True)}
        for p in (some(of(cfg), seed=seed, alpha=0.7) for of in (training_domain, unseen_domain))
    )
    assert not seen & unseen
    assert seen <= set(theory.first_tasks(patterns, cfg.n_tasks))
    assert all(a != b for a, b in seen | unseen)


# ---------------------------------------------------------------------------- prompts


@settings(max_examples=25)
@given(
    st.booleans(),
    st.integers(3, 8),
    st.floats(0, 1),
    st.integers(1, 8),
    st.floats(-1.28, 1.28),
    st.integers(0, 10**6),
)
def test_what_is_said_of_a_prompt_is_true(inside, patterns, alpha, length, coef_sum, seed):
    of = domain(inside, patterns, 0, task_count(patterns), coef_sum=coef_sum)
    p = some(of, length=length, alpha=alpha, seed=seed)
    rows, basis = np.asarray(of.rows), 3 * np.eye(10)
    count = int(of.patterns)
    assert (p.pattern >= 0).all()
    assert (p.pattern < count).all()
    expected = rows[p.pattern] + p.kappa[..., None] * basis[patterns + p.irrelevant]
    np.testing.assert_allclose(p.x, expected, atol=1e-5)
    assert (np.abs(p.kappa) <= 0.5).all()
    assert (patterns + p.irrelevant < 10).all()
    np.testing.assert_array_equal(p.exists, np.broadcast_to(np.arange(8) < length, p.exists.shape))
    a, b = p.positive[:, None], p.negative[:, None]
    assert (a != b).all()
    assert (p.y[p.pattern == a] == 1).all()
    assert (p.y[p.pattern == b] == -1).all()
    assert (np.abs(p.y) == 1).all()
    np.testing.assert_array_equal(p.query_pattern, np.where(p.label > 0, p.positive, p.negative))
    query = p.x_query - rows[p.query_pattern]
    assert (np.abs(query[:, :patterns]) < 1e-5).all()  # the rest of it is irrelevant
    own = (p.pattern == p.query_pattern[:, None]) & p.exists
    np.testing.assert_array_equal(jax.vmap(lambda p: p.same_pattern)(p), own)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_patterns_and_labels_have_their_frequencies(inside, alpha):
    of = domain(inside, 6, 0, 30)
    p = some(of, count=4000, alpha=alpha)
    rest = int(of.patterns) - 2
    for decisive in (p.positive, p.negative):
        assert np.mean(p.pattern == decisive[:, None]) == pytest.approx(alpha / 2, abs=0.01)
    third = (p.pattern != p.positive[:, None]) & (p.pattern != p.negative[:, None])
    assert third.mean() == pytest.approx(1 - alpha, abs=0.01)
    if alpha < 1:
        counts = np.bincount(p.pattern[third], minlength=rest)
        assert counts.std() < 0.1 * counts.mean()
        assert p.y[third].mean() == pytest.approx(0, abs=0.03)
    assert p.label.mean() == pytest.approx(0, abs=0.06)
    assert p.kappa.std() == pytest.approx(0.5 / 3**0.5, rel=0.02)


def test_a_longer_layout_changes_no_prompt():
    of = domain()
    short, long = (some(of, size=size, length=4) for size in (8, 40))
    for name in ("x", "y", "pattern", "irrelevant", "kappa"):
        np.testing.assert_array_equal(getattr(short, name), getattr(long, name)[:, :8])
    np.testing.assert_array_equal(short.x_query, long.x_query)
    first = jit(lambda k: prompt(k, 8, 4, 0.7, of))(jax.random.split(jax.random.key(0), 50)[0])
    np.testing.assert_array_equal(first.x, short.x[0])


@given(st.integers(0, 7), st.integers(1, 7))
def test_the_others_are_all_but_two(a, step):
    b = (a + step) % 8
    found = other(jnp.arange(6), a, b)
    assert sorted([a, b, *found.tolist()]) == list(range(8))


@given(st.floats(-1.28, 1.28))
def test_patterns_out_of_domain_are_orthonormal_combinations(coef_sum):
    k = np.asarray(coefficients(coef_sum), float)
    np.testing.assert_allclose(k @ k.T, np.eye(3), atol=2e-3)
    np.testing.assert_allclose(k.sum(axis=1), [coef_sum, 2**0.5, 2**0.5], atol=1e-5)
    if abs(coef_sum - 1) > 1e-3:
        assert theory.ood_ok(k) == (coef_sum > 1) or abs(coef_sum) > 1.279


def test_the_floor_is_how_often_the_query_s_pattern_is_missing():
    for alpha, length in ((0.2, 8), (0.8, 3), (0.5, 1)):
        p = some(domain(), count=4000, length=length, alpha=alpha)
        missing = ~np.asarray(jax.vmap(lambda p: p.same_pattern.any())(p))
        error = 0.5 * math.sqrt(missing.mean() / 4000)
        assert abs(missing.mean() / 2 - theory.coverage_floor(alpha, length)) < 4 * error
        assert theory.floor_length(alpha, theory.coverage_floor(alpha, length)) == pytest.approx(
            length
        )


# --------------------------------------------------------------------- one training


@pytest.mark.parametrize(
    "changes",
    [{}, {"n_relevant": 4, "n_tasks": 9, "alpha": 1.0, "tokens": 3, "eps": 0.5, "lr": 3.0}],
    ids=str,
)
def test_training_in_pattern_coordinates_is_training_in_full(double, changes):
    reduced, full = (train(how, seed=1, **changes) for how in (REDUCED, FULL))
    assert reduced.train_loss < 1.0
    for field in dataclasses.fields(reduced):
        a, b = getattr(reduced, field.name), getattr(full, field.name)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11, err_msg=field.name)


@jit
def moved(cfg, key):
    w = initial_weights(cfg, key)
    leaves, tree = jax.tree.flatten(w)
    keys = jax.random.split(stream(key, "more"), len(leaves))
    leaves = [x + 0.2 * normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
    return eqx.tree_at(lambda w: w.a, jax.tree.unflatten(tree, leaves), w.a)


def weights(cfg, seed):
    """Weights as they might be after some training."""
    return moved(identity.typed(cfg, "float64"), seed_key("s", seed))


def loss(w, p):
    return hinge(p.label, outputs(w, p)[0]).mean()


GRADED = jit(jax.value_and_grad(loss))


@pytest.mark.parametrize("seed", range(3))
def test_the_closed_form_gradients_are_those_of_the_loss(double, seed):
    cfg = Config(**TINY)
    of = domain(dim=8)
    p = PROMPTS(jax.random.key(seed), 4, 8, 8, 0.7, of)
    w = weights(cfg, seed)
    value, grads = GRADED(w, p)
    w, p = jax.tree.map(np.asarray, (w, p))
    expected = [
        theory.gradients(np.column_stack([p.x[i], p.y[i]]), p.x_query[i], p.label[i],
                         w.w_q, w.w_k, w.w_v, w.w_o, w.a)
        for i in range(4)
    ]  # fmt: skip
    assert float(value) > 0
    for name in ("w_q", "w_k", "w_v", "w_o"):
        mean = np.mean([e[name] for e in expected], axis=0)
        assert np.abs(mean).max() > 1e-6
        np.testing.assert_allclose(getattr(grads, name), mean, rtol=1e-6, atol=1e-12, err_msg=name)


def test_gradients_are_finite_differences(double):
    cfg = Config(**TINY)
    p = PROMPTS(jax.random.key(5), 4, 8, 8, 0.7, domain(dim=8))
    w, along = weights(cfg, 5), weights(cfg, 6)

    def at(t):
        return GRADED(jax.tree.map(lambda a, b: a + t * b, w, along), p)[0]

    slope = jax.tree.reduce(jnp.add, jax.tree.map(jnp.vdot, GRADED(w, p)[1], along))
    np.testing.assert_allclose((at(1e-6) - at(-1e-6)) / 2e-6, slope, rtol=1e-5)


def test_padding_and_order_of_the_context_do_not_matter(double):
    w, of = weights(Config(**TINY), 1), domain(dim=8)
    p = PROMPTS(jax.random.key(2), 4, 8, 5, 0.7, of)
    f, attn = OUTPUTS(w, p)
    np.testing.assert_array_equal(attn[:, 5:], 0)
    np.testing.assert_allclose(attn.sum(axis=1), 1)
    short = eqx.tree_at(
        lambda p: (p.x, p.y, p.exists, p.pattern), p, replace_fn=lambda x: x[:, [3, 0, 4, 1, 2]]
    )
    np.testing.assert_allclose(OUTPUTS(w, short)[0], f, rtol=1e-9)
    np.testing.assert_allclose(
        on_pattern(OUTPUTS(w, short)[1], short), on_pattern(attn, p), rtol=1e-9
    )


def test_neurons_that_do_not_exist_stay_out(double):
    cfg = identity.typed(Config(**TINY), "float64")
    w = START(cfg, seed_key("s", 0))
    assert w.w_o.shape == (100, 11)
    np.testing.assert_array_equal(w.w_o[10:], 0)
    np.testing.assert_array_equal(np.abs(w.a), np.where(np.arange(100) < 10, 0.1, 0))
    p = PROMPTS(jax.random.key(2), 4, 8, 8, 0.7, domain(dim=8))
    np.testing.assert_array_equal(GRADED(w, p)[1].w_o[10:], 0)


# ------------------------------------------------------------------------- mechanism


@pytest.fixture(scope="module")
def measured():
    return jax.tree.map(np.asarray, train(MECHANISM, precision="float32"))


def test_equal_tests_have_equal_results(measured):
    """The widest sum is the out-of-domain test at its fraction; no pruning is no pruning."""
    m, at = measured, mechanism.ALPHAS.index(0.6)
    np.testing.assert_array_equal(m.sum_error[-1], m.test_error[mechanism.OUT, at])
    np.testing.assert_array_equal(m.sum_loss[-1], m.test_loss[mechanism.OUT, at])
    unpruned = m.test_loss[mechanism.OUT, :, mechanism.LENGTH]
    for order in range(len(mechanism.ORDERS)):
        np.testing.assert_allclose(m.pruned_loss[:, order, 0], unpruned, rtol=1e-5)


def test_steps_are_recorded_and_attention_starts_nearly_uniform(measured):
    np.testing.assert_array_equal(measured.step, [0, 15, 30])
    assert 0.3 < measured.attention[0, 0] < 0.5  # uniform attention has alpha' / 2 or more
    np.testing.assert_allclose(measured.query_own[0], 0.9, rtol=1e-5)  # delta beta
    assert measured.coupling.shape == (6, 6)
    np.testing.assert_array_equal(np.abs(measured.neuron_sign), np.arange(100) < 10)


def test_pruning_takes_neurons_in_their_order():
    w = START(identity.typed(Config(**(TINY | dict(width=40))), "float32"), seed_key("s", 0))
    keep = np.asarray(jit(mechanism.kept)(w, jax.random.key(0))).astype(bool)
    norm, exists = np.linalg.norm(w.w_o, axis=1), np.arange(100) < 40
    for r, rate in enumerate(mechanism.PRUNED):
        assert (keep[:, r, :40].sum(axis=1) == 40 - round(40 * rate)).all()
        if 0 < rate < 1:
            smallest, largest = keep[0, r] & exists, keep[-1, r] & exists
            assert norm[smallest].min() > norm[~keep[0, r]].max()
            assert norm[largest].max() < norm[~keep[-1, r]].min()


def test_label_parts_of_neurons_are_those_of_the_whole_space(double):
    cfg = identity.typed(Config(**TINY), "float64")
    w = weights(Config(**TINY), 3)
    whole = np.zeros((11, 11))
    whole[:, :9] = w.w_v
    whole[9:, 9:] = 0.3 * np.eye(2)  # label directions other than q never move
    r = np.asarray(w.w_o) @ whole
    found = jit(mechanism.neurons)(cfg, w)
    np.testing.assert_allclose(found["neuron_norm"], np.linalg.norm(r[:, :8], axis=1), rtol=1e-9)
    np.testing.assert_allclose(found["label_norm"], np.linalg.norm(r[:, 8:], axis=1), rtol=1e-9)
    bar = np.array([1.0] * 6 + [0] * 2) / 6**0.5
    cos = r[:10, :8] @ bar / np.linalg.norm(r[:10, :8], axis=1)
    np.testing.assert_allclose(found["cos_mu_bar"][:10], cos, rtol=1e-9)


def test_an_eighth_of_the_neurons_is_lucky():
    cfg = identity.typed(Config(**(TINY | dict(width=2000))), "float32")
    w = START(cfg, seed_key("s", 1))
    p = PROMPTS(jax.random.key(3), 50, 8, 8, 0.7, domain(dim=8))
    lucky = np.asarray(LUCKY(w, p))
    assert lucky.mean() * len(w.a) / 2000 == pytest.approx(1 / 8, abs=0.01)
    assert ((np.asarray(p.label)[:, None] * np.asarray(w.a)[None] > 0) | ~lucky).all()


def test_projections_are_those_of_the_vectors(double):
    cfg, of = identity.typed(Config(**TINY), "float64"), domain(dim=8)
    w = weights(Config(**TINY), 4)
    p = jax.tree.map(lambda x: x[0], PROMPTS(jax.random.key(1), 4, 8, 5, 0.7, of))
    found = jit(mechanism.projections)(cfg, w, p, of)
    q = np.asarray(w.w_q @ p.x_query)
    own = int(p.query_pattern)
    keys = np.asarray(p.tokens @ w.w_k.T)[:5]
    assert float(found["query_own"]) == pytest.approx(q[own])
    rest = [abs(q[j]) for j in range(6) if j != own]
    assert float(found["query_partner"]) == pytest.approx(max(rest))
    assert float(found["query_others"]) == pytest.approx(np.mean(rest))
    assert float(found["query_irrelevant"]) == pytest.approx(np.abs(q[6:]).max())
    along = np.mean([keys[i, int(p.pattern[i])] for i in range(5)])
    assert float(found["key_own"]) == pytest.approx(along)
    assert float(found["key_norm"]) == pytest.approx(np.linalg.norm(keys, axis=1).mean())


# ------------------------------------------------------------------ other simulators


def test_classifiers_learn_what_can_be_learned():
    x = np.repeat(np.eye(4)[:2] * 3, 10, axis=0) + 0.01 * np.arange(20)[:, None]
    y = np.repeat([1.0, -1.0], 10)
    for make in learners.CLASSIFIERS.values():
        assert learners.fitted_label(make, x, y, np.eye(4)[0] * 3) == 1
        assert learners.fitted_label(make, x, y, np.eye(4)[1] * 3) == -1
        assert learners.fitted_label(make, x[:5], y[:5], x[12]) == 1  # the only class
        assert learners.fitted_label(make, x[9:11], y[9:11], x[12]) in (1, -1)


def test_a_decoder_cut_to_a_length_has_not_seen_the_rest():
    cfg = identity.typed(decoder.Config(layers=2, head_width=4, mlp=1, dim=8), "float32")
    w = jit(lambda key: decoder.initial_weights(decoder.shape_of(cfg), key))(seed_key("s", 0))
    p, q = (
        jax.tree.map(lambda x: x[0], PROMPTS(jax.random.key(k), 50, 8, 8, 0.7, domain(dim=8)))
        for k in (0, 1)
    )
    mixed = p._replace(x=jnp.concatenate([p.x[:5], q.x[5:]]), y=jnp.append(p.y[:5], q.y[5:]))
    short, other_rest, whole = (PREDICT(w, a, n)[0] for a, n in ((p, 5), (mixed, 5), (mixed, 8)))
    assert float(short) == pytest.approx(float(other_rest), rel=1e-5)
    assert abs(float(short) - float(whole)) > 1e-4


# ------------------------------------------------------------------------ task graphs

GRAPHS = jit(graphs.simulate)


def on_graph(**changes):
    cfg = graphs.Config(**(TINY | changes))
    return jax.tree.map(np.asarray, GRAPHS(identity.typed(cfg, "float32"), seed_key("s", 0)))


def test_the_first_ring_is_the_training_of_the_other_simulators(measured):
    key = seed_key("in_context_learning", 0)
    found = GRAPHS(identity.typed(graphs.Config(**TINY), "float32"), key)
    np.testing.assert_allclose(found.coupling, measured.coupling, rtol=1e-4, atol=1e-6)
    assert np.abs(found.coupling - 0.09 * np.eye(6)).max() > 1e-3  # it has been trained


def test_other_graphs_train_on_other_tasks():
    cfg = graphs.Config(**TINY, first_task=6, n_tasks=12)
    p = some(graphs.trained_domain(cfg), count=400)
    seen = {(int(a), int(b)) for a, b in zip(p.positive, p.negative, strict=True)}
    assert seen == set(theory.all_tasks(6)[6:18])
    ring, pairs = on_graph(), on_graph(first_task=12)
    assert np.abs(ring.coupling - pairs.coupling).max() > 1e-3


@pytest.mark.parametrize("n", range(len(graphs.SUMS)))
def test_pairings_are_orthonormal_and_have_their_sum(n):
    k = graphs.COEFFICIENTS[n]
    assert k.shape == (15, 3, 6)
    np.testing.assert_allclose(
        k @ k.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (15, 3, 3)), atol=1e-12
    )
    np.testing.assert_allclose(k.sum(axis=2), graphs.SUMS[n], atol=1e-12)
    of = graphs.pair_domain(graphs.Config(), jnp.asarray(k[4], float), 5.0)
    np.testing.assert_allclose(np.asarray(of.rows)[:3, :6], 3 * k[4], rtol=1e-6)
    assert not np.asarray(of.rows)[:, 6:].any()


def test_projections_of_new_patterns_are_those_of_their_vectors():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(2, 6, 6))
    dims = ("seed", *graphs_room.MAPS)
    ds = xr.Dataset({"query_map": (dims, w), "key_map": (dims, 2 * w)})
    found = graphs_room.new_maps(ds).transpose("side", "seed", "pairing", "row", "column")
    for n, pairs in enumerate(graphs.matchings()):
        new = np.zeros((3, 6))
        for j, pair in enumerate(pairs):
            new[j, list(pair)] = 2**-0.5
        np.testing.assert_allclose(found[0, :, n], new @ w @ new.T, atol=1e-12)
        np.testing.assert_allclose(found[1, :, n], 2 * new @ w @ new.T, atol=1e-12)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 0.6, 0.9]))
def test_attention_by_the_coupling_is_that_of_long_contexts(seed, alpha):
    """Monte Carlo: prompts of 600 examples, keys and queries with a coupling made up."""
    rng = np.random.default_rng(seed)
    coupling, k = 0.3 * rng.normal(size=(6, 6)), graphs.COEFFICIENTS[0, seed % 15]
    found = []
    for _ in range(300):
        a, b, third = rng.permutation(3)  # the query's, its rival, and the other
        at = rng.choice([a, b, third], 600, p=[alpha / 2, alpha / 2, 1 - alpha])
        score = np.exp(4 * (k @ coupling @ k[a]))[at]
        found.append(score[at == a].sum() / score.sum())
    expected = theory.patterned_attention(coupling, k, 2.0, alpha)
    assert np.mean(found) == pytest.approx(
        float(expected), abs=4 * np.std(found) / 300**0.5 + 0.003
    )


@given(st.integers(3, 9), st.integers(1, 3))
def test_the_laplacian_of_rings(patterns, rings):
    rings = min(rings, patterns - 1)
    found = theory.laplacian(theory.ring_tasks(patterns, rings), patterns)
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(found, found.T)
    np.testing.assert_allclose(np.diag(found), 1)
    assert np.linalg.eigvalsh(found).min() > -1e-12


@given(st.integers(3, 8), st.data())
def test_what_is_not_covered_is_counted(patterns, data):
    number = data.draw(st.integers(1, task_count(patterns) - 1))
    tasks = theory.first_tasks(patterns, number)
    rest = [t for t in theory.all_tasks(patterns) if t not in tasks]
    queries = [(t[k], k) for t in rest for k in (0, 1)]
    seen = {(t[k], k) for t in tasks for k in (0, 1)}
    expected = np.mean([q not in seen for q in queries])
    assert theory.uncovered_share(tasks, patterns) == pytest.approx(expected)
    assert (expected == 0) == (number >= patterns)


@given(st.floats(0.05, 1), st.floats(0, 3), st.integers(1, 30), st.integers(1, 30))
def test_a_softmax_has_the_bound_of_e55(alpha, u, own, others):
    """(E.55): where a share of alpha / 2 of the context has the query's pattern, at a score u^2
    over all others."""
    share = own / (own + others)
    mass = own * np.exp(u**2) / (own * np.exp(u**2) + others)
    assert mass >= theory.attention_lower_bound(u, 2 * share) - 1e-9


def test_the_design_of_the_law_lies_where_it_is_known():
    for number, widths, most, draw_ in ((20, [40, 400], 500.0, 1), (20, [100], 3000.0, 2)):
        found = scaling.design(number, widths, most, draw_)
        assert len(found) == number
        assert {s["width"] for s in found} == set(widths)
        assert all(40 <= scaling.predicted(s) <= most for s in found)
        assert all(theory.crowding(s["alpha"], s["n_relevant"]) <= 2 for s in found)
        assert all(s["n_tasks"] == s["n_relevant"] for s in found)


def test_crowding_is_the_ratio_of_frequencies():
    p = some(domain(n_relevant=5, last=20), count=4000, alpha=0.3)
    decisive = np.mean(p.pattern == p.positive[:, None])
    third = (p.pattern != p.positive[:, None]) & (p.pattern != p.negative[:, None])
    assert third.mean() / 3 / decisive == pytest.approx(theory.crowding(0.3, 5), rel=0.05)


# ---------------------------------------------------------------------------- theory


def test_the_margin_is_one_where_it_is_said_to_be():
    at: dict[str, Any] = dict(lr=0.5, alpha=0.6, beta=3.0, delta=0.1, patterns=6, width=400)
    t = theory.steps_to_margin(**at)
    linear = 0.1**2 * 10 * 0.6 * 0.5 * t / 800
    assert theory.margin_prediction(t, **at) == pytest.approx(1 + linear)
    assert theory.margin_prediction(t, **at, leak=0.5) == pytest.approx((1 + linear) / 2)


@pytest.mark.parametrize(
    ("name", "power"), [("alpha", -2 / 3), ("lr", -1), ("delta", -2 / 3), ("width", 2 / 3)]
)
def test_steps_have_the_exponents_of_the_paper(name, power):
    at: dict[str, Any] = dict(lr=0.5, alpha=0.3, beta=3.0, delta=0.1, patterns=6, width=400)
    twice = at | {name: 2 * at[name]}
    assert theory.steps_to_margin(**twice) / theory.steps_to_margin(**at) == pytest.approx(2**power)
    if name != "width":
        del at["width"], twice["width"]
        printed = theory.iterations_needed(**twice) / theory.iterations_needed(**at)
        assert printed == pytest.approx(2**power)


def test_the_gate_is_half_open_at_zero_and_open_from_one_on():
    sums = np.array([-1, 0, 0.5, 1, 2])
    np.testing.assert_allclose(theory.gate(sums, 5.0, 6), [0, 0.5, 0.75, 1, 1])
    np.testing.assert_allclose(theory.gate(sums, 1e-6, 6), 1)


def test_without_its_end_the_gate_goes_on():
    sums = xr.DataArray([-0.5, 0.0, 0.5, 1.0, 2**0.5], dims="coef_sum")
    ds = xr.Dataset(coords={"coef_sum": sums, "beta": 3.0, "n_relevant": 6})
    on, gate = graphs_room.ungated(ds), graphs_room.gate(ds)
    np.testing.assert_allclose(on[:4], gate[:4])
    assert float(on[4] - gate[4]) == pytest.approx(0.204, abs=1e-3)


def test_small_neurons_are_compared_with_their_start():
    """Three neurons, one of them large; the last does not exist."""
    y = np.array([[0.1, 0.1, 0.1, 9.0], [2.0, 0.5, 0.3, 9.0]])[None] * np.ones((3, 1, 1))
    dims = ("seed", "step", "neuron")
    ds = xr.Dataset(
        {
            "neuron_norm": (dims, 0.6 * y),
            "label_norm": (dims, 0.8 * y),
            "neuron_sign": (("seed", "neuron"), np.array([[1, -1, 1, 0]] * 3)),
        },
        coords={"seed": range(3), "step": [0, 9]},
    )
    found = shared.small_grow(ds)
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(4)
    stay = shared.small_grow(shared.small_stay(ds))
    assert isinstance(stay, Estimate)
    assert stay.value == pytest.approx(1)


def test_norms_of_neurons_by_the_paper():
    found = theory.lucky_norm(800, 1.0, 0.8, 3.0, 0.1, 6, 400)
    assert found == pytest.approx(6**0.5 * 0.1 * 10**0.5 * 0.8)
    assert theory.unlucky_norm(800, 1.0, 128, 400) == pytest.approx(0.3894, abs=1e-3)


def test_bounds_at_their_ends():
    assert theory.attention_lower_bound(math.sqrt(math.log(1.5 / 0.5)), 0.5) == pytest.approx(0)
    assert theory.attention_lower_bound(9.0, 0.5) == pytest.approx(1)
    assert theory.pruned_loss_bound(1.0, 0.6, 0.6, 6) == 1
    slope = np.diff(theory.pruned_loss_bound(np.array([0.2, 0.3]), 0.6, 0.6, 6))[0] / 0.1
    assert slope == pytest.approx((1 - 2 / 3.6) * (1 + 4 / 3.6))
    assert theory.small_norm_bound(24) == pytest.approx(0.2041, abs=1e-4)


def test_the_conditions_at_the_setting_of_the_paper():
    found = {c.name: c for c in theory.theory(Config()).conditions}
    assert found["(i) width"].right == pytest.approx(64.5, abs=0.1)
    assert found["(iii) training context"].right == pytest.approx(math.log(6) / 0.8)
    failed = [n for n, c in found.items() if not c.satisfied]
    assert failed == ["(ii) batch"]  # 128 against 179 for a loss of 0.1, with constants of 1
    assert not {c.name: c for c in theory.theory(Config(n_tasks=5)).conditions}[
        "6.3.2 coverage"
    ].satisfied
    assert theory.theory(Config()).values["share_of_tasks"] == pytest.approx(1 / 5)  # 1/(M_1 - 1)


def test_attention_is_that_of_a_softmax(double):
    w, of = weights(Config(**TINY), 2), domain(dim=8)
    p = jax.tree.map(lambda x: x[0], PROMPTS(jax.random.key(1), 4, 8, 8, 0.7, of))
    attended, attn = attend(w, p, p.exists)
    scores = np.array(
        [(w.w_k @ jnp.append(x, y)) @ (w.w_q @ p.x_query) for x, y in zip(p.x, p.y, strict=True)]
    )
    expected = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(attn, expected, rtol=1e-9)
    np.testing.assert_allclose(attended, expected @ np.column_stack([p.x, p.y]), rtol=1e-9)
    assert isinstance(w, Weights)
    assert task(7, 6) == (1, 3)
