import dataclasses
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
from provingground.studies.teacher_student import (
    STUDY,
    degrees,
    full,
    model,
    noise,
    recursion,
    theory,
)
from provingground.studies.teacher_student.data import (
    TEACHERS,
    Config,
    Shifted,
    Teacher,
    activation,
    batch_of,
    bilinear,
    exponential,
    given_teacher,
    mixed_support,
    support_of,
    teacher_of,
)
from provingground.studies.teacher_student.figures.shared import TASKS
from provingground.studies.teacher_student.figures.tstar import crossing
from provingground.studies.teacher_student.full import FullWeights, full_network
from provingground.studies.teacher_student.model import (
    Weights,
    attention,
    excess_loss,
    online,
    squared_loss,
)
from provingground.studies.teacher_student.recursion import (
    Population,
    leak_of,
    population_excess,
    population_step,
)
from tiny import with_trainings

SMALL: dict[str, Any] = dict(
    tokens=8, group=2, dim=3, outputs=4, steps=40, horizon=40, record=9, test_samples=5, frame=8
)


def jit(function):
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


SGD, RECURSION, FULL = jit(model.simulate), jit(recursion.simulate), jit(full.simulate)


def settings_of(**changes: Any) -> dict[str, Any]:
    return SMALL | changes


def key(seed=0):
    return seed_key("teacher_student", seed)


def numbers(cfg):
    precision = "float64" if jnp.zeros(()).dtype == jnp.float64 else "float32"
    return jax.tree.map(jnp.asarray, identity.typed(cfg, precision))


def some_teacher(kind="gcn", seed=0, **changes: Any):
    cfg = Config(**settings_of(teacher=kind, **changes))
    return cfg, teacher_of(cfg, key(seed), None)


def some_weights(seed, m=4, d=3, n=8):
    def draw(name, *shape):
        return normal(stream(key(seed), name), shape)

    return Weights(draw("v", m, d), 2 * draw("a", n, n))


# ----------------------------------------------------------------------------- teachers


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("kind", TEACHERS)
def test_columns_of_a_teacher_have_k_entries(kind, k):
    cfg = Config(teacher=kind, tokens=12, group=k)
    on, wide = (np.asarray(support_of(cfg, key(k), size)) for size in (12, 15))
    assert (on.sum(axis=0) == k).all()
    np.testing.assert_array_equal(wide[:12, :12], on)  # beyond D, nothing belongs
    assert wide.sum() == on.sum()


def test_teachers_are_the_examples_of_the_paper():
    def support(kind, k):
        cfg = Config(teacher=kind, tokens=6, group=k)
        return np.asarray(support_of(cfg, key(), 6)).astype(int)

    np.testing.assert_array_equal(support("cnn", 2), np.kron(np.eye(3), np.ones((2, 2))))
    cycle = np.eye(6) + np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0)
    np.testing.assert_array_equal(support("gcn", 3), cycle)
    for kind, k in (("sts", 3), ("gslp", 1)):
        on = support(kind, k)
        assert (on == on[:, :1]).all()
    _, sts = some_teacher("sts", outputs=3)
    np.testing.assert_array_equal(sts.v_star, np.eye(3))
    np.testing.assert_allclose(np.asarray(sts.s_star).sum(axis=0), 1, rtol=1e-6)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="pooled"):
        teacher_of(Config(tokens=10, group=4), key(), None)
    with pytest.raises(InputError, match="more than"):
        teacher_of(Config(teacher="gcn", tokens=5, group=5), key(), None)


def test_a_teacher_of_one_s_own(tmp_path):
    """A complete bipartite graph: three neighbours each."""
    on = np.kron([[0, 1], [1, 0]], np.ones((3, 3)))
    mine = given_teacher(on, np.ones((2, 3)))
    experiment = with_trainings(
        dataclasses.replace(STUDY.experiment("rec_vs_sgd"), claims=()),
        grid={"steps": 20, "horizon": 20, "record": 5, "batch": 50, "lr": 0.05},
        quick={},
        data="bipartite",
        simulator="sgd",
    )
    own = dataclasses.replace(STUDY, experiments=(experiment,), data={"bipartite": lambda: mine})
    ds = pg.run(own, "rec_vs_sgd", seeds=3, store=tmp_path)
    assert (ds.test_loss.isel(step=-1) < ds.test_loss.isel(step=0)).all()
    exact = with_trainings(experiment, simulator="recursion")
    own = dataclasses.replace(own, experiments=(exact,))
    population = pg.run(own, "rec_vs_sgd", seeds=3, store=tmp_path)
    np.testing.assert_allclose(population.energy, 6, rtol=1e-6)
    np.testing.assert_allclose(population.leak, ds.leak, rtol=0.02)


@pytest.mark.parametrize("spoil", [np.eye(4) + np.eye(4, k=1), np.ones((4, 4)), np.zeros((4, 4))])
def test_columns_of_unequal_degree_are_refused(spoil):
    with pytest.raises(InputError, match="same number K"):
        given_teacher(spoil, np.ones((2, 3)))
    with pytest.raises(InputError, match="square"):
        given_teacher(np.ones((3, 4)), np.ones((2, 3)))


def test_columns_of_unequal_degree_can_be_asked_for():
    on = mixed_support(6, 1, 4)
    np.testing.assert_array_equal(on.sum(axis=0), [1, 4, 1, 4, 1, 4])
    assert on.diagonal().all()
    mine = given_teacher(on, np.ones((2, 3)), unequal=True)
    np.testing.assert_allclose(np.asarray(mine.s_star).sum(axis=0), 1, rtol=1e-6)
    with pytest.raises(InputError, match="same number K"):
        given_teacher(np.ones((4, 4)), np.ones((2, 3)), unequal=True)


# ------------------------------------------------------------------- network and training


def test_sigma_has_slope_one_at_zero():
    slope = jax.grad(lambda x: activation(x, jnp.array(0.1)))
    assert [float(slope(jnp.array(x))) for x in (-1.0, 0.0, 1.0)] == pytest.approx([0.1, 1, 1])


def test_descent_on_logits_is_descent_on_the_key_query_matrix(double):
    """The form with P over 200 steps of SGD: A = P' W_KQ P."""
    cfg, teacher = some_teacher(lr=0.1, batch=10, kappa=0.1)
    cfg = numbers(cfg)
    pos = jnp.linalg.qr(normal(key(5), (8, 8)))[0]

    def plain(w, x, y):
        return squared_loss(activation(bilinear(w.value, x, attention(w)), cfg.kappa), y)

    def with_positions(w, x, y):
        return plain(Weights(w.value, pos.T @ w.logits @ pos), x, y)

    @jit
    def train(w):
        steps = (online(cfg, teacher, f, key(3)) for f in (plain, with_positions))
        a, b = (jax.lax.fori_loop(0, 200, lambda t, w, s=s: s(w, t), w) for s in steps)
        return a, Weights(b.value, pos.T @ b.logits @ pos)

    a, b = train(Weights(jnp.zeros((4, 3)), jnp.zeros((8, 8))))
    assert float(jnp.abs(a.logits).max()) > 0.1
    np.testing.assert_allclose(a.value, b.value, atol=1e-12)
    np.testing.assert_allclose(a.logits, b.logits, atol=1e-12)
    np.testing.assert_allclose(a.logits.sum(axis=0), 0, atol=1e-12)  # so (D - K) C_3 = K C_2


def test_another_position_code_turns_the_blocks_of_the_full_student(double):
    _, teacher = some_teacher()
    x = normal(key(1), (3, 6, 8))
    kq, v = normal(key(2), (11, 11)), normal(key(3), (4, 11))
    pos = jnp.linalg.qr(normal(key(4), (8, 8)))[0]
    turn = jnp.eye(11).at[3:, 3:].set(pos)
    kappa = jnp.array(0.1)
    network = jit(full_network)
    plain = network(FullWeights(v, kq), x, jnp.eye(8), kappa)
    turned = network(FullWeights(v @ turn.T, turn @ kq @ turn.T), x, pos, kappa)
    np.testing.assert_allclose(plain, turned, rtol=1e-9)
    # and with block PP alone it is the position-only student
    only = FullWeights(v.at[:, 3:].set(0.0), jnp.zeros((11, 11)).at[3:, 3:].set(kq[3:, 3:]))
    w = Weights(v[:, :3], kq[3:, 3:])
    np.testing.assert_allclose(
        network(only, x, jnp.eye(8), kappa),
        activation(bilinear(w.value, x, attention(w)), kappa),
        rtol=1e-9,
    )
    assert teacher.support.shape == (8, 8)


@pytest.mark.parametrize("form", ["plain", "full"])
def test_gradients_are_finite_differences(double, form):
    x, y = normal(key(1), (3, 6, 8)), normal(key(2), (4, 6, 8))
    kappa = jnp.array(0.1)
    if form == "plain":
        w, along = some_weights(3), some_weights(4)
    else:
        w, along = (
            FullWeights(normal(key(s), (4, 11)), normal(key(s + 9), (11, 11)) / 3) for s in (3, 4)
        )

    def loss(w):
        if form == "full":
            return squared_loss(full_network(w, x, jnp.eye(8), kappa), y)
        return squared_loss(activation(bilinear(w.value, x, attention(w)), kappa), y)

    def at(t):
        return loss(jax.tree.map(lambda a, b: a + t * b, w, along))

    grads = jit(jax.grad(loss))(w)
    slope = jax.tree.reduce(jnp.add, jax.tree.map(jnp.vdot, grads, along))
    np.testing.assert_allclose((at(1e-6) - at(-1e-6)) / 2e-6, slope, rtol=1e-5)


def test_trainings_lower_the_loss():
    cfg = numbers(Config(**settings_of(lr=0.05)))
    for how in (SGD, FULL):
        probes = how(cfg, key())
        assert float(probes.test_loss[-1]) < 0.9 * float(probes.test_loss[0])
        assert int(probes.stopped_at) == 40


def test_a_training_that_ends_early_repeats_its_last_values():
    probes = SGD(numbers(Config(**settings_of(horizon=400))), key())
    beyond = np.asarray(probes.step) > 40
    assert beyond.sum() > 1
    assert len(set(np.asarray(probes.test_loss)[beyond].tolist())) == 1
    assert int(probes.stopped_at) == 40


# ------------------------------------------------------------------------- exact losses


@pytest.mark.parametrize("kappa", [0.0, 0.1, 1.0])
def test_the_excess_loss_of_any_weights_is_exact(double, kappa):
    cfg, teacher = some_teacher(kappa=kappa, batch=200_000, noise=0.0)
    w = some_weights(1)
    x, y = batch_of(numbers(cfg), teacher, key(7))
    f = activation(bilinear(w.value, x, attention(w)), jnp.array(kappa))
    each = np.asarray(jnp.sum((y - f) ** 2, axis=(0, 2)) / 2)
    exact = float(excess_loss(w.value, attention(w), teacher, jnp.array(kappa)))
    assert abs(each.mean() - exact) < 4.5 * each.std() / math.sqrt(len(each))


def test_the_excess_loss_of_the_teacher_is_zero(double):
    _, teacher = some_teacher()
    zero = excess_loss(teacher.v_star, teacher.s_star, teacher, jnp.array(0.1))
    assert abs(float(zero)) < 1e-12


def population_weights(c1, c, teacher, d, k):
    c2 = c * (d - k) / d
    logits = jnp.where(teacher.support, c2, c2 - c)
    return Weights(c1 * teacher.v_star, logits)


state = dict(
    c1=st.floats(0.05, 3),
    c=st.floats(0, 20),
    kappa=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)


@given(**state)
@settings(max_examples=15)
def test_the_population_loss_is_that_of_its_weights(c1, c, kappa):
    with jax.enable_x64(True):
        _, teacher = some_teacher()
        w = population_weights(c1, c, teacher, 8, 2)
        energy = jnp.sum(teacher.v_star**2)
        d, k, kappa = (jnp.array(float(v)) for v in (8, 2, kappa))
        eps = leak_of(jnp.array(c), d, k)
        short = population_excess(jnp.array(c1), eps, d, k, energy, kappa)
        long = excess_loss(w.value, attention(w), teacher, kappa)
        np.testing.assert_allclose(short, long, rtol=1e-9, atol=1e-9)


@given(**state, sizes=st.sampled_from([(8, 2), (20, 3), (36, 4), (20, 1), (6, 5)]))
def test_two_numbers_are_enough(c1, c, kappa, sizes):
    """The recursion of the paper in C1, C2, C3 against the form in C1 and C2 + C3."""
    with jax.enable_x64(True):
        d, k = map(float, sizes)
        c2, c3 = c * (d - k) / d, c * k / d
        a1, a2, a3 = theory.recursion(c1, c2, c3, d, k, 7.0, 0.1, kappa)
        start = Population(jnp.array(c1), jnp.array(c))
        two = population_step(start, jnp.array(False), *map(jnp.array, (d, k, 7.0, 0.1, kappa)))
        np.testing.assert_allclose(two.value, a1, rtol=1e-9)
        np.testing.assert_allclose(two.logit, a2 + a3, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose((d - k) * a3, k * a2, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kappa", [0.0, 0.1, 1.0])
def test_a_step_of_the_population_is_descent_on_the_exact_loss(double, kappa):
    """The gradient of `excess_loss` at the weights of Lemma C.2 stays in their form."""
    _, teacher = some_teacher()
    w = population_weights(0.6, 1.5, teacher, 8, 2)
    energy = float(jnp.sum(teacher.v_star**2))

    def loss(w):
        return excess_loss(w.value, attention(w), teacher, jnp.array(kappa))

    g, lr = jit(jax.grad(loss))(w), 0.1
    moved = population_step(
        Population(jnp.array(0.6), jnp.array(1.5)),
        jnp.array(False),
        *map(jnp.array, (8.0, 2.0, energy, lr, kappa)),
    )
    np.testing.assert_allclose(w.value - lr * g.value, moved.value * teacher.v_star, rtol=1e-8)
    logits = w.logits - lr * g.logits
    on, off = (float(logits[mask].mean()) for mask in (teacher.support, ~teacher.support))
    assert on - off == pytest.approx(float(moved.logit), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["CNN, ReLU", "GCN, leaky ReLU", "STS", "GSLP"])
def test_sgd_with_large_batches_follows_the_recursion(task):
    small = dict(tokens=8, batch=4000, noise=0.0, scale=1.5, outputs=1 if task == "GSLP" else 3)
    changes = settings_of(**TASKS[task] | small)
    sgd = SGD(numbers(Config(**changes)), key(1))
    with jax.enable_x64(True):
        exact = RECURSION(numbers(recursion.Config(**changes)), key(1))
    assert float(exact.leak[-1]) < 0.98 * float(exact.leak[0])  # something has happened
    for name, rtol in (("leak", 0.01), ("value", 0.1), ("test_loss", 0.02)):
        np.testing.assert_allclose(getattr(sgd, name), getattr(exact, name), rtol, err_msg=name)
    np.testing.assert_array_equal(sgd.support, exact.support)
    np.testing.assert_allclose(sgd.scores, exact.scores, atol=0.02)


def test_the_recursion_stops_at_a_leak(double):
    cfg = recursion.Config(**settings_of(steps=10_000, horizon=10_000, eps=0.5))
    probes = RECURSION(numbers(cfg), key())
    assert 1 < int(probes.stopped_at) < 10_000
    assert float(probes.leak[-1]) <= 0.5 < float(probes.leak[0])


# ------------------------------------------------------------------------------- theory


@pytest.mark.parametrize(("d", "k", "kappa"), [(20, 3, 0.0), (36, 4, 0.1), (20, 4, 1.0)])
def test_the_recursion_tends_to_the_laws(double, d, k, kappa):
    cfg = recursion.Config(tokens=d, group=k, kappa=kappa, teacher="gcn", steps=1_000_000,
                           horizon=1_000_000, record=11)  # fmt: skip
    probes = RECURSION(numbers(cfg), key())
    at = d, k, cfg.lr
    assert float(probes.test_loss[-1]) == pytest.approx(theory.excess_law(*at, 1e6), rel=0.01)
    leak = theory.leak_law(*at, float(probes.energy), 1e6, kappa)
    assert float(probes.leak[-1]) == pytest.approx(leak, rel=0.03)
    distance = theory.score_distance(np.asarray(probes.leak), d, k)
    np.testing.assert_allclose(probes.score_error, distance, rtol=1e-9)
    ratio = theory.late_leak_ratio(leak, d, k, float(probes.energy), cfg.lr, 1e6)
    assert ratio == pytest.approx(1 / (d * math.sqrt(2 * theory.curvature(kappa))))


def the_floor(teacher, cfg, leak, value, energy):
    at = cfg.tokens, cfg.group, cfg.lr, cfg.kappa, cfg.dim, cfg.outputs
    return noise.sgd_floor(teacher, *at, energy, cfg.noise, cfg.batch, leak, value)


def test_label_noise_sets_the_floor(double):
    """W_V in its parabola, attention frozen at the teacher's: the walk has the stated excess, with
    what the inputs of a batch change in the curvature."""
    rng, (d, k, lr) = np.random.default_rng(0), (8, 2, 0.2)
    support = np.kron(np.eye(4), np.ones((2, 2)))
    w, found = np.zeros((40, 3)), []
    for t in range(2000):
        x = rng.normal(size=(40, 20, 3, d)) @ (support / k)
        r = np.einsum("sd,sndi->sni", w, x) + rng.normal(size=(40, 20, d))
        w = w - lr * np.einsum("sni,sndi->sd", r, x) / 20
        if t > 100:
            found.append(d / (2 * k) * np.sum(w**2) / 40)
    cfg = Config(tokens=d, group=k, lr=lr, kappa=1.0, dim=3, outputs=1, batch=20)
    floor = the_floor("cnn", cfg, 0.0, 1.0, 1.0)
    assert np.mean(found) == pytest.approx(floor.labels, rel=0.03)
    assert floor.inputs == 0  # without a leak there is nothing to be wrong about


@pytest.mark.parametrize("kind", TEACHERS)
def test_columns_overlap_as_the_teachers_say(kind):
    k = 1 if kind == "gslp" else 3
    cfg = Config(teacher=kind, tokens=12, group=k)
    on = np.asarray(support_of(cfg, key(), 12)).astype(int)
    shared = on.T @ on
    for number, o in noise.overlaps(kind, 12, k):
        assert ((shared == o).sum(axis=0) == number).all()
    assert sum(number for number, _ in noise.overlaps(kind, 12, k)) == 12


@pytest.mark.parametrize(("kind", "kappa"), [("cnn", 1.0), ("gcn", 1.0), ("sts", 1.0), ("cnn", 0.0),
                                             ("gcn", 0.0)])  # fmt: skip
def test_the_noise_of_inputs_is_that_of_the_gradients(double, kind, kappa):
    """The covariance of one sample's gradient by Monte Carlo, without label noise: exact for the
    identity, to leading order in the leak for a ReLU (groups that overlap in part: roughly)."""
    leak = 0.1 if kappa == 1 else 0.02
    cfg = Config(**settings_of(teacher=kind, kappa=kappa, tokens=9, group=3, outputs=2, batch=1,
                               noise=0.0, lr=0.01))  # fmt: skip
    teacher = teacher_of(cfg, key(), None)
    on = np.asarray(teacher.support)
    s = np.where(on, (1 - leak) / 3, leak / 6)
    value = float(theory.attainable_value((1 - leak) / 3, 9, 3, kappa))
    v = np.asarray(teacher.v_star)
    x = np.random.default_rng(1).normal(size=(60_000, v.shape[1], 9))
    seen = x @ s
    f, y = value * (v @ seen), v @ (x @ np.asarray(teacher.s_star))
    bend = [np.where(z >= 0, z, kappa * z) for z in (f, y)]
    error = (bend[0] - bend[1]) * np.where(f >= 0, 1, kappa)
    grads = np.einsum("nmi,ndi->nmd", error, seen)
    trace = np.sum(grads.var(axis=0))
    floor = the_floor(kind, cfg, leak, value, np.sum(v**2)).inputs
    h = 9 * theory.terms((1 - leak) / 3, 9, 3, kappa)["f1"]
    tiny = the_floor(kind, dataclasses.replace(cfg, batch=10**9), leak, value, np.sum(v**2))
    predicted = tiny.inputs * 10**9 * 2 * (2 - cfg.lr * h) / cfg.lr
    allowed = 0.03 if kappa == 1 else 0.3 if kind == "gcn" else 0.1
    assert trace == pytest.approx(predicted, rel=allowed)
    assert floor > tiny.inputs


def test_label_noise_reaches_attention_through_its_curvature(double):
    """The trace of the Gauss-Newton matrix of the logits, by autodiff."""
    cfg, teacher = some_teacher("cnn", kappa=1.0, noise=1.0, batch=1, lr=0.1)
    logits = jnp.where(teacher.support, 4.0, 0.0)
    s = attention(Weights(teacher.v_star, logits))
    leak = float(jnp.sum(jnp.where(teacher.support, 0.0, s))) / 8
    moved = jax.jacobian(lambda a: attention(Weights(teacher.v_star, a)))(logits)
    energy = float(jnp.sum(teacher.v_star**2))
    trace = energy * float(jnp.sum(moved**2))
    floor = the_floor("cnn", cfg, leak, 1.0, energy)
    assert floor.attention == pytest.approx(cfg.lr * trace / 4, rel=1e-9)


@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("d", "k"), [(10, 2), (60, 3), (300, 1)])
def test_half_of_the_attention_is_found_at_t_star(double, d, k, kappa):
    """Where C_1 has time to follow; the recursion against the integral."""
    energy = d**2 * k / 1000
    lr = min(0.1, 4 * k / d)

    @jit
    def escape():
        def go(carry):
            state, t = carry
            args = (jnp.array(float(v)) for v in (d, k, energy, lr, kappa))
            return population_step(state, t == 0, *args), t + 1

        def going(carry):
            return leak_of(carry[0].logit, jnp.array(float(d)), jnp.array(float(k))) > 0.5

        start = Population(jnp.zeros(()), jnp.zeros(())), jnp.array(0)
        return jax.lax.while_loop(going, go, start)[1]

    found = theory.escape_time(d, k, lr, energy, kappa)
    assert float(escape()) == pytest.approx(float(found), rel=0.01)


def test_the_constant_of_t_star_has_its_limits():
    assert theory.escape_constant(1e9, 0.0) == pytest.approx(1, abs=0.01)
    assert theory.escape_constant(1e9, 0.5) == pytest.approx(1 / 1.25, abs=0.01)
    assert theory.escape_constant(1e9, 1.0) == pytest.approx(1, abs=0.001)
    assert theory.escape_constant(2.0, 0.0) == 0
    table = theory.escape_constant(np.array([5, 20, 100, 1000, 10_000]), 0.0)
    np.testing.assert_allclose(table, [2.55, 2.62, 1.94, 1.36, 1.12], atol=0.006)


def test_the_crossing_of_a_leak_lies_between_steps():
    leak = xr.DataArray(
        [[1.0, 0.8, 0.4], [1.0, 0.9, 0.6]], [("seed", [0, 1]), ("step", [0, 10, 20])]
    )
    found = crossing(xr.Dataset({"leak": leak})).values
    assert found[0] == pytest.approx(17.5)
    assert math.isnan(found[1])  # never crossed, and not left out


# ----------------------------------------------------------------- groups of unequal sizes


def mixed_teacher(tokens=8, low=1, high=3):
    v = np.asarray(normal(key(2), (3, 3)))
    return given_teacher(mixed_support(tokens, low, high), v, unequal=True)


@pytest.mark.parametrize("kappa", [0.0, 1.0])
def test_a_step_with_unequal_groups_is_descent_on_the_exact_loss(double, kappa):
    teacher = mixed_teacher()
    v = teacher.v_star.astype(float)
    teacher = Teacher(v, teacher.support)
    c = jnp.array([1.5, 0.7])
    d, k = jnp.array(8.0), jnp.array([1.0, 3.0])
    columns, energy = jnp.array([4.0, 4.0]), jnp.sum(v**2)
    of_column = jnp.tile(c, 4)
    size = jnp.tile(k, 4)
    on = of_column * (d - size) / d
    w = Weights(0.6 * v, jnp.where(teacher.support, on, on - of_column))

    def loss(w):
        return excess_loss(w.value, attention(w), teacher, jnp.array(kappa))

    g, lr = jit(jax.grad(loss))(w), 0.1
    moved = population_step(Population(jnp.array(0.6), c), jnp.array(False), d, k, energy,
                            jnp.array(lr), jnp.array(kappa), columns)  # fmt: skip
    np.testing.assert_allclose(w.value - lr * g.value, moved.value * v, rtol=1e-8)
    logits = w.logits - lr * g.logits
    for i in range(8):
        mine = np.asarray(teacher.support[:, i])
        gap = float(logits[mine, i].mean() - logits[~mine, i].mean())
        assert gap == pytest.approx(float(moved.logit[i % 2]), rel=1e-8)
    short = population_excess(jnp.array(0.6), leak_of(c, d, k), d, k, energy, jnp.array(kappa),
                              columns)  # fmt: skip
    np.testing.assert_allclose(short, loss(w), rtol=1e-9)


def test_equal_groups_are_a_special_case(double):
    same: dict[str, Any] = dict(
        tokens=20, group=3, kappa=0.1, teacher="gcn", steps=500, horizon=500, record=9
    )
    two = jit(degrees.simulate)(numbers(degrees.Config(**same, other=3, part=0.4)), key())
    one = RECURSION(numbers(recursion.Config(**same)), key())
    np.testing.assert_allclose(two.test_loss, one.test_loss, rtol=1e-9)
    np.testing.assert_allclose(two.leaks, np.asarray(one.leak)[:, None] * np.ones(2), rtol=1e-9)
    at = 0.1, 30.0, 1e6, 0.1
    law = theory.leak_law(20, 3, *at)
    np.testing.assert_allclose(theory.mixed_leaks(20, 3, 3, 0.4, *at), [law, law], rtol=1e-9)
    assert theory.mixed_excess(20, 3, 3, 0.4, 0.1, 1e6) == theory.excess_law(20, 3, 0.1, 1e6)


@pytest.mark.parametrize("kappa", [0.0, 1.0])
def test_unequal_groups_tend_to_their_laws(double, kappa):
    cfg = degrees.Config(tokens=20, group=1, other=7, part=0.3, kappa=kappa, scale=4.0, lr=0.05,
                         steps=1_000_000, horizon=1_000_000, record=5)  # fmt: skip
    probes = jit(degrees.simulate)(numbers(cfg), key())
    sizes = 20, 1, 7, 0.3
    law = theory.mixed_excess(*sizes, 0.05, 1e6)
    assert float(probes.test_loss[-1]) == pytest.approx(law, rel=0.01)
    leaks = theory.mixed_leaks(*sizes, 0.05, float(probes.energy), 1e6, kappa)
    np.testing.assert_allclose(probes.leaks[-1], leaks, rtol=0.02)


@pytest.mark.slow
def test_sgd_with_unequal_groups_follows_its_recursion(double):
    teacher = mixed_teacher()
    energy = float(jnp.sum(teacher.v_star**2))
    cfg = Config(**settings_of(batch=2000, noise=0.0, steps=400, horizon=400, lr=0.1, frame=8))
    probes = SGD(numbers(cfg), key(), teacher)
    state, args = Population(jnp.zeros(()), jnp.zeros(2)), (jnp.array(8.0), jnp.array([1.0, 3.0]))
    rest = jnp.array(energy), jnp.array(0.1), jnp.array(0.0), jnp.array([4.0, 4.0])
    step = jit(lambda s, t: population_step(s, t == 0, *args, *rest))
    for t in range(400):
        state = step(state, jnp.array(t))
    leaks = np.asarray(jnp.sum(jnp.where(teacher.support, 0.0, probes.scores), axis=0))
    assert leaks.max() < 0.8
    np.testing.assert_allclose(leaks.reshape(4, 2).mean(axis=0), leak_of(state.logit, *args), 0.02)


# ------------------------------------------------------------------------ other data


def some_shifted(columns=1.0):
    _, teacher = some_teacher(kappa=0.1)
    x = exponential(key(5), (3, 50, 8))
    seen = bilinear(teacher.v_star, x, jnp.eye(8))
    on = teacher.support.astype(float)
    clean = activation(bilinear(teacher.v_star, x, teacher.s_star), jnp.array(0.1))
    labels = normal(key(6), clean.shape), jnp.arange(50)[:, None] < 20
    return teacher, x, Shifted(seen @ on, seen @ (1 - on), clean, *labels, columns=columns)


def test_the_excess_on_other_data_is_that_of_its_labels(double):
    """L_OOD less half the squared distance of the labels and the teacher, with labels written out:
    of one noisy batch (the paper's protocol), and the worst ones."""
    teacher, x, shifted = some_shifted()
    f = activation(bilinear(1.1 * teacher.v_star, x, (teacher.s_star + 0.05) / 1.4), jnp.array(0.1))
    found = shifted.excess(f)

    def excess(y, n):
        ours = squared_loss(f[:, :n], y[:, :n])
        return float(ours - squared_loss(shifted.clean[:, :n], y[:, :n]))

    assert float(found.batch) == pytest.approx(excess(shifted.clean + shifted.noise, 20))
    far = jnp.abs(shifted.outside) >= jnp.maximum(jnp.abs(shifted.inside), 1)
    worst = shifted.clean - jnp.where(far, jnp.sign(shifted.outside), 0)
    assert float(found.worst) == pytest.approx(excess(worst, 50))
    assert float(found.mean) == pytest.approx(excess(shifted.clean, 50))
    assert float(found.batch - found.cross) == pytest.approx(excess(shifted.clean, 20))


def test_the_laws_of_other_data_are_first_orders_in_the_leak(double):
    teacher, x, shifted = some_shifted()
    q = 1e-4  # of each of the 6 other tokens; C_1 p = 1/K up to the square of the leak
    s = jnp.where(teacher.support, (1 - 6 * q) / 2, q)
    f = activation(bilinear((1 + 6 * q) * teacher.v_star, x, s), jnp.array(0.1))
    push, spread = shifted.pull(jnp.array(0.1))
    found = shifted.excess(f)
    assert float(found.mean) == pytest.approx(q**2 / 2 * float(spread), rel=0.02)
    assert float(found.worst) == pytest.approx(q * float(push), rel=0.02)
    t = 2 / (2 * theory.curvature(0.1) * 0.1 * 3.0 * q**2)  # when the law has this leak
    law = theory.worst_law(2, 0.1, 3.0, t, 0.1, float(push), float(spread))
    assert law == pytest.approx(q * float(push) + q**2 / 2 * float(spread))
    assert theory.average_law(2, 0.1, 3.0, t, 0.1, 8.0) == pytest.approx(4 * q**2)


def test_one_column_stands_for_all(double):
    _, _, one = some_shifted()
    _, _, many = some_shifted(columns=9.0)
    f = 0.9 * one.clean
    a, b = one.excess(f), many.excess(f)
    assert float(b.mean / a.mean) == pytest.approx(9)
    assert float(b.worst / a.worst) == pytest.approx(9)
    assert float(b.cross / a.cross) == pytest.approx(3)  # independent noise


@given(st.integers(6, 100), st.floats(0, 1), st.floats(0.01, 0.99), st.data())
def test_the_bands_of_the_lemmas(d, kappa, place, data):
    k = data.draw(st.integers(1, d - 1))
    p = (1 + place * (d / k - 1)) / d
    low, value, high = theory.ratio_band(p, d, k, kappa)
    assert low * (1 - 1e-12) <= value <= high * (1 + 1e-12)
    assert theory.value_band(p, d, k, kappa)[1] >= 1
    assert theory.attainable_value(p, d, k, kappa) > 0


@given(st.floats(0.1, 1), st.floats(0.01, 0.2), st.sampled_from([1.5, 2.0, 3.0]))
def test_hitting_times_lie_within_lemma_e10(x0, lr, power):
    low, high, v = 0.5, 0.7, 3.0
    x, t = x0, 0
    while x < v:
        x, t = x + lr * 0.6 * x**power, t + 1
    least, most = theory.hitting_time_bounds(x0, v, lr, low, high, power)
    assert least <= t <= most


@given(st.floats(0, 2), st.floats(0.01, 1), st.floats(0.2, 3), st.integers(0, 200))
def test_logarithmic_growth_lies_within_lemma_e11(x0, c1, c2, steps):
    x = x0
    for _ in range(steps):
        x += c1 * math.exp(-c2 * x)
    low, high = theory.logarithmic_growth(x0, c1, c2, steps)
    assert low - 1e-9 <= x <= high + 1e-9


def test_what_is_predicted_for_figure_2():
    values = theory.theory(Config()).values
    assert values["energy"] == 100
    assert values["excess_loss"] == pytest.approx(4 * 36 * 32 / (4 * 0.1 * 20_000))
    assert values["printed_excess_loss"] > 100 * values["excess_loss"]
    assert values["largest_step"] == pytest.approx(0.44, abs=0.01)
    assert values["sgd_floor"] == pytest.approx(0.1155, rel=0.01)
    assert theory.theory(Config()).vacuous == ("printed_excess_loss",)
    assert theory.theory(Config(steps=10_000_000)).vacuous == ()
    found = {c.name: c for c in theory.conditions(Config())}
    assert found["stability"].satisfied
    assert not found["step size"].satisfied
    assert theory.theory(Config(teacher="sts", outputs=4, dim=10)).values["energy"] == 4


def test_times_scale_as_the_theorems_say():
    assert theory.printed_escape_time(20, 3, 0.1, 10.0) == pytest.approx(1200)
    assert theory.escape_time(20, 1, 0.1, 10.0, 0.0) == pytest.approx(2.617 * 400, rel=1e-3)
    assert theory.printed_scores(4, 0.1, 10.0, 1e4) == pytest.approx(0.32)
    assert theory.printed_values(4, 4, 0.1, 10.0, 1e4) == pytest.approx(0.32)
    assert theory.ood_time(2, 3, 0.5, 4.0, 2.0, 0.1) == pytest.approx(3 * 64 * 4 * 4 / 0.005)
    assert theory.early_score(16) == pytest.approx(1.5 / 16)


# ---------------------------------------------------------------------------- small things


def test_a_teacher_is_a_pytree():
    _, teacher = some_teacher()
    assert isinstance(jax.tree.map(lambda x: x, teacher), Teacher)


def test_the_loss_is_half_the_squared_norm_averaged_over_the_batch():
    y = jnp.arange(12.0).reshape(2, 3, 2)  # (M, N, D): three samples
    by_hand = sum(float(jnp.sum((2 * y[:, n]) ** 2)) / 2 for n in range(3)) / 3
    assert float(squared_loss(-y, y)) == pytest.approx(by_hand)
