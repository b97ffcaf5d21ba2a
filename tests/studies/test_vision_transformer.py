import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from provingground import identity
from provingground.claims import Altered
from provingground.errors import InputError
from provingground.keys import normal, seed_key
from provingground.nets.losses import hinge
from provingground.stats import Estimate
from provingground.studies.vision_transformer import model, theory, tokens
from provingground.studies.vision_transformer.data import (
    CONFUSION,
    IRRELEVANT,
    RELEVANT,
    Config,
    frames,
    kinds,
    pattern_rows,
    targets,
)
from provingground.studies.vision_transformer.figures import fig2_1a, fig2_3, fig2_5, gap, shared
from provingground.studies.vision_transformer.figures.fig2_1b import fall
from provingground.studies.vision_transformer.network import (
    Weights,
    attend,
    hidden,
    initial_weights,
    loss_of,
    output_weights,
    positions,
    value_features,
)
from provingground.studies.vision_transformer.tokens import (
    Drawn,
    Streams,
    by_token,
    draw_tokens,
    kept,
    received,
)

TINY: dict[str, Any] = dict(
    samples=6, tokens=10, n_patterns=4, dim=5, width=12, test_samples=8, steps=30, record=4,
    frac_relevant=0.5, frac_confusion=0.2, hidden_init_std=0.3,
)  # fmt: skip


def jit(function):
    return jax.jit(
        function, compiler_options={"xla_backend_optimization_level": 0}
    )  # compiles fast


PATTERNS, TOKENS = jit(model.simulate), jit(tokens.simulate)
KEPT = jit(kept)
UNIT = jnp.eye(5, 10)  # as patterns


@jit
def attended(w, x, n):
    """Attention and hidden layer of a sample."""
    p, v = attend(w, x, n)
    return p, hidden(w.w_o, v)


@jit
def drawn_tokens(cfg, key):
    """Thirty samples of these patterns."""
    return draw_tokens(cfg, Streams(*jax.random.split(key, 3)), 30, UNIT)


@jit
def start(cfg, key):
    """Centres, patterns and initial weights of a setting."""
    basis, *u = frames(cfg, key)
    centres, patterns = pattern_rows(cfg, basis)
    return centres, patterns, initial_weights(cfg, key, centres, jnp.stack(u))


def plain(cfg):
    return identity.typed(cfg, "float32")


def key(seed=0):
    return seed_key("vision_transformer", seed)


def train(how=PATTERNS, seed=0, **changes):
    kind = Config if how is PATTERNS else tokens.Config
    return how(identity.typed(kind(**(TINY | changes)), "float64"), key(seed))


def same(a, b, rtol=1e-9, atol=1e-12, names=None):
    for name in names or [f.name for f in dataclasses.fields(a)]:
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol, atol, err_msg=name)


# ------------------------------------------------------------------- the pattern reduction


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"attention_rate": 0.0, "samples": 5, "skip": 1.0},  # shares the program
        {"classes": 4, "n_patterns": 6, "dim": 6, "samples": 7, "heads": 2},
        pytest.param(
            {"variants": 2, "dim": 12, "shared": 1.0, "logistic": 1.0, "batch": 3},
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
def test_training_on_patterns_is_training_on_tokens_without_noise(double, changes):
    patterns = train(seed=1, **changes)
    assert patterns.train_loss[-1] < 0.99 * patterns.train_loss[0]
    same(patterns, train(TOKENS, seed=1, noise=0.0, **changes))


def test_small_noise_changes_little_and_large_noise_much(double):
    plain = train()
    small, large = (train(TOKENS, noise=c).test_loss for c in (1e-4, 0.5))
    np.testing.assert_allclose(small, plain.test_loss, atol=0.01)
    assert np.abs(np.asarray(large) - plain.test_loss).max() > 0.02


def test_training_stops_at_zero_loss(double):
    probes = train(lr=3.0, shared=1.0)
    assert 0 < int(probes.stopped_at) < 30
    assert probes.train_loss[-1] == 0
    assert probes.margin[-1] >= 1


def test_attention_that_is_not_trained_stays(double):
    probes = train(attention_rate=0.0)
    np.testing.assert_allclose(probes.attention, probes.attention[0], rtol=1e-12)
    np.testing.assert_allclose(probes.query_norm, probes.query_norm[0], rtol=1e-12)
    assert train().attention[-1] > probes.attention[-1] + 0.01


def test_the_printed_start_attends_to_its_own_pattern(double):
    probes = train(key_scale=400.0, value_scale=100.0, key_error=0.0, value_error=0.0, lr=1e-3)
    np.testing.assert_allclose(probes.attention, 0.5, atol=1e-12)  # that is alpha_*
    np.testing.assert_allclose(probes.attention_from[-1], [1, 0, 0], atol=1e-12)


def test_probes_at_the_start(double):
    probes = train(hidden_init_std=0.0)
    np.testing.assert_allclose([probes.train_loss[0], probes.test_loss[0]], 1)
    np.testing.assert_array_equal(probes.active[0], 0)  # no neuron is active
    np.testing.assert_allclose(train().active[0], [1, 1, 0])
    np.testing.assert_array_equal(train().growth[0], 0)
    uniform = train(key_scale=0.0, key_error=0.0)
    np.testing.assert_allclose(uniform.attention[0], 0.5)
    np.testing.assert_allclose(uniform.attention_from[0], 0.5)


# ------------------------------------------------------------------------------ data


@given(
    st.integers(0, 20), st.integers(0, 20), st.sampled_from([(2, 3), (2, 5), (4, 6)]),
    st.sampled_from([1, 2]), st.integers(0, 3),
)  # fmt: skip
def test_roles_have_their_counts(n_1, n_2, sizes, variants, label):
    (classes, m), tokens = sizes, 40
    label %= classes
    cfg = Config(tokens=tokens, frac_relevant=n_1 / tokens, frac_confusion=n_2 / tokens,
                 classes=classes, n_patterns=m, variants=variants)  # fmt: skip
    role, pattern = map(
        np.asarray, kinds(cfg, jnp.arange(tokens, dtype=jnp.int32), jnp.int32(label))
    )
    kind = pattern // variants
    assert [int((role == r).sum()) for r in range(3)] == [n_1, n_2, tokens - n_1 - n_2]
    assert (kind[role == RELEVANT] == label).all()
    assert ((kind[role == CONFUSION] < classes) & (kind[role == CONFUSION] != label)).all()
    assert (kind[role == IRRELEVANT] >= classes).all()
    of_rest = np.bincount(kind[role == IRRELEVANT], minlength=m)[classes:]
    assert np.ptp(of_rest) <= 1
    assert pattern.max() < m * variants


def test_annotations_of_tokens_are_true():
    cfg = tokens.Config(tokens=20, noise=0.05, noisy_share=0.2, noise_big=0.5)
    drawn = drawn_tokens(plain(cfg), key(1))
    x, role, pattern, norm = map(np.asarray, (drawn.x, drawn.role, drawn.pattern, drawn.noise_norm))
    away = np.linalg.norm(x - UNIT[pattern], axis=-1)
    np.testing.assert_allclose(away, norm, rtol=1e-4)
    assert ((norm > 0.5).sum(axis=1) == 4).all()
    np.testing.assert_array_equal(x.argmax(axis=-1)[norm < 0.4], pattern[norm < 0.4])
    np.testing.assert_array_equal(drawn.label, np.arange(30) % 2)
    assert (pattern == np.asarray(drawn.label)[:, None]).sum() == 30 * 8
    np.testing.assert_array_equal(role == RELEVANT, pattern == np.asarray(drawn.label)[:, None])
    np.testing.assert_array_equal(role == IRRELEVANT, pattern >= 2)


def test_independent_roles_vote_for_the_label():
    cfg = tokens.Config(tokens=20, dist="iid", frac_relevant=0.3, frac_confusion=0.2)
    drawn = drawn_tokens(plain(cfg), key(2))
    pattern, label, each = np.asarray(drawn.pattern), np.asarray(drawn.label), np.arange(30)
    votes = np.stack([(pattern == j).sum(axis=1) for j in range(2)], axis=1)
    ahead = votes[each, label] - votes[each, 1 - label]
    assert (ahead >= 0).all()
    assert (ahead == 0).sum() < 10
    assert (label != each % 2).any()  # the confusion won some votes
    counts = (np.asarray(drawn.role) == IRRELEVANT).sum(axis=1)
    assert counts.mean() == pytest.approx(10, abs=1.2)
    assert counts.std() == pytest.approx(math.sqrt(20 * 0.25), rel=0.4)


def test_pattern_sets_lie_around_orthogonal_centres():
    cfg = Config(variants=2, dim=16, spread=0.6)
    centres, patterns, _ = start(plain(cfg), key())
    gram = np.asarray(patterns @ patterns.T)
    np.testing.assert_allclose(np.diag(gram), 1, rtol=1e-5)
    np.testing.assert_allclose(gram[0, 1], 1 - 0.6**2, atol=1e-5)
    np.testing.assert_allclose(gram[0, 2:], 0, atol=1e-5)
    np.testing.assert_allclose(centres[1] @ patterns[2], 0.8, atol=1e-5)


def test_impossible_patterns_are_refused():
    with pytest.raises(InputError, match="classes"):
        pattern_rows(Config(classes=4, n_patterns=4), jnp.eye(10))
    with pytest.raises(InputError, match="dimensions"):
        pattern_rows(Config(variants=2), jnp.eye(10))


def test_initial_weights_meet_assumption_2_3_1():
    centres, _, w = start(plain(Config(value_error=0.1, key_error=0.3, heads=2)), key())
    error = jnp.einsum("hkd,jd->hjk", w.w_q, centres) - centres[None]
    np.testing.assert_allclose(jnp.linalg.norm(error, axis=-1), 0.3, rtol=1e-4)
    values = jnp.einsum("hkd,jd->hjk", w.w_v, centres)
    skipped = start(plain(Config(skip=1.0, heads=2)), key())[2]
    kept_values = jnp.einsum("hkd,jd->hjk", skipped.w_v, centres) + centres[None]
    np.testing.assert_allclose(values, kept_values, atol=1e-5)  # (A.233)
    exact = start(plain(Config(value_error=0.0, heads=2)), key())[2]
    p = jnp.einsum("hkd,jd->hjk", exact.w_v, centres)[0]
    np.testing.assert_allclose(p @ p.T, np.eye(5), atol=1e-5)
    assert float(w.w_o.std()) == pytest.approx(0.01, rel=0.05)


def test_output_weights_are_signs_over_the_root_of_the_width():
    own = output_weights(Config(width=16, tokens=4, classes=4, n_patterns=6), key())
    assert own.shape == (4, 16, 2)
    np.testing.assert_allclose(jnp.abs(own), 0.25)
    np.testing.assert_array_equal(positions(Config(), own), own)
    shared = positions(Config(shared=1.0), own)
    np.testing.assert_array_equal(shared, jnp.broadcast_to(own[:1], own.shape))
    assert (own[0] != own[1]).any()


# -------------------------------------------------------------------------- sparsification


@pytest.mark.parametrize(
    "rule", [{}, {"by_role": 1.0}, {"by_noise": 1e4}, {"by_attention": 1e4}], ids=str
)
def test_sparsification_removes_what_its_rule_says(rule):
    cfg = tokens.Config(tokens=20, sparsity=0.3, noisy_share=0.2, **rule)
    drawn = drawn_tokens(plain(cfg), key(3))
    attention = normal(key(4), (30, 20))
    keep = np.asarray(KEPT(plain(cfg), key(5), drawn, attention))
    assert (keep.sum(axis=1) == 14).all()
    gone = ~keep
    if "by_role" in rule:
        assert (np.asarray(drawn.role)[gone] == IRRELEVANT).all()
    elif "by_noise" in rule:
        norm = np.asarray(drawn.noise_norm)
        assert (
            norm.min(axis=1, where=gone, initial=9) > norm.max(axis=1, where=keep, initial=0)
        ).all()
    elif "by_attention" in rule:
        a = np.asarray(attention)
        assert (a.max(axis=1, where=gone, initial=-9) < a.min(axis=1, where=keep, initial=9)).all()
    else:
        share = np.bincount(np.asarray(drawn.role)[gone], minlength=3) / gone.sum()
        np.testing.assert_allclose(share, [0.4, 0.1, 0.5], atol=0.12)


def test_attention_received_sums_to_the_tokens():
    w, x, _, _ = sample(0)
    assert float(jit(received)(w, x[0]).sum()) == pytest.approx(5, rel=1e-5)


def test_removed_tokens_do_not_count(double):
    """Leaving tokens out by their number is leaving them out of the sample."""
    w, x, _, _ = sample(3)
    n = jnp.array([1.0, 0.0, 1.0, 1.0, 0.0])
    some = np.array([0, 2, 3])
    p, z = attended(w, x[0], n)
    p_less, z_less = attended(w, x[0][some], jnp.ones(3))
    np.testing.assert_allclose(z[some], z_less, rtol=1e-9)
    np.testing.assert_allclose(p[:, some][:, :, some], p_less, rtol=1e-9)
    assert float(p[:, :, 1].max()) == 0


def test_sparsified_training_and_a_scout_run(double):
    rule: dict[str, Any] = dict(sparsity=0.4, by_attention=1e4, noise=0.05)
    by_start = train(TOKENS, **rule)
    by_scout = train(TOKENS, **rule, scout=5)
    assert by_start.train_loss[-1] < by_start.train_loss[0]
    assert np.isfinite(by_scout.test_loss).all()


# -------------------------------------------------------------------- network and gradients


def sample(seed, n=3, tokens=5, d=4, m=6):
    """Some weights, tokens, read-outs and labels."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return jnp.asarray(rng.normal(size=shape))

    w = Weights(draw(1, d, d), draw(1, d, d), draw(1, d, d), draw(1, d, m))
    return w, draw(n, tokens, d), jnp.sign(draw(tokens, m)) / m**0.5, jnp.sign(draw(n))


def mean_loss(w, x, a, y):
    z = jax.vmap(lambda x: hidden(w.w_o, attend(w, x, jnp.ones(len(x)))[1]))(x)
    f = jnp.einsum("nlm,lm->n", z, a) / x.shape[1]
    return loss_of(Config(), y * f).mean()


GRADED = jit(jax.value_and_grad(mean_loss))


@pytest.mark.parametrize("changes", [{}, {"classes": 4, "n_patterns": 6, "heads": 2}], ids=str)
def test_margins_of_tokens_are_those_of_the_relu_with_its_gradient(double, changes):
    cfg = tokens.Config(dim=4, tokens=5, width=6, **changes)
    draw = np.random.default_rng(1).normal
    w_o, v = jnp.asarray(draw(size=(cfg.heads, 4, 6))), jnp.asarray(draw(size=(3, 5, cfg.heads, 4)))
    label = jnp.array([0, 1, 1])
    a, y = jnp.asarray(draw(size=(5, 6, targets(cfg).shape[1]))), targets(cfg)[label]
    keep = jnp.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 1], [0, 0, 1, 1, 0]], bool)
    nothing = jnp.zeros((3, 5), jnp.int32)
    drawn = Drawn(jnp.zeros((3, 5, 4)), label, nothing, nothing, jnp.zeros((3, 5)))
    margins = by_token(cfg, drawn, keep, 3, a).margins

    def plain(w_o, v):
        of_token = jnp.einsum("nlm,lmo,no->nl", hidden(w_o, v), a, y)
        return jnp.mean(of_token, axis=1, where=keep)

    np.testing.assert_allclose(margins(w_o, v), plain(w_o, v), rtol=1e-12)
    weights = jnp.array([0.2, -1.0, 3.0])
    for ours, theirs in zip(
        *(jax.grad(lambda *of, f=f: weights @ f(*of), (0, 1))(w_o, v) for f in (margins, plain)),
        strict=True,
    ):
        assert np.abs(theirs).max() > 0.1
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_closed_form_gradients_are_those_of_the_loss(double, seed):
    w, x, a, y = sample(seed)
    value, grads = GRADED(w, x, a, y)
    assert value > 0
    matrices = (w.w_q[0], w.w_k[0], w.w_v[0], w.w_o[0].T)
    closed = theory.gradients(*map(np.asarray, (*matrices, a, x, y)))
    found = (grads.w_q[0], grads.w_k[0], grads.w_v[0], grads.w_o[0].T)
    for ours, theirs in zip(closed, found, strict=True):
        assert np.abs(theirs).max() > 1e-3
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@given(st.permutations(range(5)), st.integers(0, 4))
def test_the_order_of_tokens_does_not_matter(order, seed):
    """With a shared read-out F is invariant; hidden layers move with their tokens."""
    w, x, _, _ = sample(seed)
    order = np.array(order)
    p, z = attended(w, x[0], jnp.ones(5))
    p_moved, z_moved = attended(w, x[0][order], jnp.ones(5))
    np.testing.assert_allclose(z_moved, z[order], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(p_moved, p[:, order][:, :, order], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(z_moved.sum(axis=0), z.sum(axis=0), rtol=1e-4, atol=1e-5)


@given(st.integers(1, 4), st.integers(0, 4))
def test_a_row_that_occurs_n_times_is_n_rows(n, seed):
    w, x, _, _ = sample(seed)
    counts = jnp.array([1.0, float(n), 1.0, 1.0, 1.0])
    p, z = attended(w, x[0], counts)
    rows = np.array([0, *[1] * n, 2, 3, 4])
    p_all, z_all = attended(w, x[0][rows], jnp.ones(len(rows)))
    np.testing.assert_allclose(z_all[0], z[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(p_all[0, 0, 1 : 1 + n].sum(), p[0, 0, 1], rtol=1e-4)


def test_losses_and_targets():
    margin = jnp.array([-1.0, 0.5, 2.0])
    np.testing.assert_allclose(loss_of(Config(), margin), [2, 0.5, 0])
    logistic = np.log1p(np.exp(-np.asarray(margin)))
    np.testing.assert_allclose(loss_of(Config(logistic=1.0), margin), logistic, rtol=1e-6)
    half = (np.asarray(hinge(jnp.ones(3), margin)) + logistic) / 2
    np.testing.assert_allclose(loss_of(Config(logistic=0.5), margin), half, rtol=1e-6)
    assert targets(Config()).tolist() == [[1], [-1]]
    corners = targets(Config(classes=4, n_patterns=5))
    assert len({tuple(y) for y in corners.tolist()}) == 4


# ---------------------------------------------------------------------------- theory


@given(st.floats(0.05, 0.45), st.floats(0, 0.4), st.floats(0, 0.3), st.floats(0, 0.2))
def test_both_forms_of_the_condition_on_the_vote_agree(confusion, delta, sigma, tau):
    factor = theory.vote_factor(sigma, delta, tau)
    alpha = theory.least_relevant(confusion, factor)
    assert theory.least_relevant_nondisc(1 - alpha - confusion, factor) == pytest.approx(alpha)


def test_laws_have_the_exponents_of_the_theorems():
    def exponent(law):
        return math.log2(law(0.4) / law(0.2))

    assert exponent(theory.thm1_samples) == pytest.approx(-2)
    assert exponent(theory.prop1_samples) == pytest.approx(-4)
    assert exponent(lambda a: theory.thm1_iters(0.1, a)) == pytest.approx(-1)
    assert exponent(lambda eta: theory.thm1_iters(eta, 0.5)) == pytest.approx(-0.6)
    assert theory.prop1_samples(0.1, 0.1) == theory.thm1_samples(0.1, 0.2) == math.inf


@pytest.mark.parametrize(("lr", "vacuous"), [(0.05, False), (0.5, False), (1.0, True), (2.0, True)])
def test_the_theorem_says_nothing_where_the_step_is_large(lr, vacuous):
    """(2.11) has alpha - eta^10 in its denominator, and (2.15) the limit 1 - eta^10."""
    cfg = Config(lr=lr, value_error=0.0)
    found = theory.theory(cfg)
    assert math.isinf(found.values["samples_order"]) is vacuous
    assert set(found.vacuous) == ({"samples_order", "attention_limit"} if vacuous else set())
    met = {c.name: c.satisfied for c in found.conditions}
    assert met["(2.11) step size"] is not vacuous
    edge = theory.largest_lr(0.4)
    assert 0.9 < edge < 1
    assert theory.thm1_samples(0.4, 0.0, 0.999 * edge) < math.inf
    assert theory.thm1_samples(0.4, 0.0, edge) > 1e20
    assert theory.attention_limit(0.5) == pytest.approx(1 - 2**-10)


def test_the_polynomial_s_time_is_between_its_two_limits():
    """Small alpha: T^5 wins, alpha^(-6/5); the printed alpha^(-1) is not among them."""
    times = [theory.iters_from_polynomial(1e-3, a, 1.0) for a in (0.2, 0.1)]
    assert theory.output_growth(1e-3, times[0], 0.2, 1.0) == pytest.approx(1)
    assert 1.2 <= math.log2(times[1] / times[0]) <= 1.5
    rates = [theory.iters_from_polynomial(eta, 0.2, 1.0) for eta in (1e-3, 1e-4)]
    assert 0.5 <= math.log10(rates[1] / rates[0]) <= 0.6
    assert theory.iters_from_polynomial(0.0, 0.2, 1.0) == math.inf


def test_the_envelope_holds_the_attention_of_orthogonal_patterns():
    q, relevant, tokens = 1.3, 20, 50
    exact = relevant * math.exp(q**2) / (relevant * math.exp(q**2) + tokens - relevant)
    tight = theory.attention_envelope(q, relevant, tokens, 0.0)
    assert tight.p == pytest.approx(exact)
    assert tight.phi == pytest.approx(tight.nu)
    wide = theory.attention_envelope(q, relevant, tokens, 0.2, 0.1)
    assert wide.p < exact
    assert wide.phi < tight.nu < wide.nu


def test_query_norms_grow_with_the_logarithm_of_time():
    norms = theory.query_norm_recursion(0.1, 40_000)
    assert norms[0] == 1
    decades = norms[[400, 4000, 40_000]] ** 2
    grown = np.diff(decades) / math.log(10)
    assert grown[1] == pytest.approx(grown[0], rel=0.2)
    assert 0.8 < grown[1] < 1.8  # about log t, up to log log t


@pytest.mark.parametrize("mass", [0.0, 0.6])
def test_the_neuron_s_growth_solves_its_equation(mass):
    lr, alpha, error, width, start = 0.2, 0.5, 0.1, 100.0, 0.3
    t = np.linspace(0, 10, 20_001)
    y = theory.neuron_ode(t, lr, alpha, mass, error, width, start)
    right = lr / 10 * (alpha * mass - error + lr * t * alpha**2 * 10 / 2 * mass * y)
    assert y[0] == start
    np.testing.assert_allclose(np.gradient(y, t)[1:-1], right[1:-1], rtol=1e-4, atol=1e-6)
    first = theory.neuron_growth(t[-1], lr, alpha, mass, start)
    assert first == pytest.approx(start * (1 + lr * 100 * alpha**2 * mass / 4))


def test_lucky_fraction_by_monte_carlo():
    angle, dim = 0.13, 10
    z = np.random.default_rng(0).normal(size=(200_000, dim))
    cosine = z[:, 0] / np.linalg.norm(z, axis=1)
    lucky = (cosine > math.sin(angle)).mean()  # active on the cone around the first axis
    assert theory.lucky_fraction(angle, dim) == pytest.approx(lucky, abs=0.004)
    assert theory.lucky_fraction(0.0, dim) == pytest.approx(0.5)
    assert theory.lucky_fraction(angle, dim) == pytest.approx(0.352, abs=0.001)


def test_conditions_at_the_setting_of_figure_2_1():
    found = {c.name: c for c in theory.conditions(Config(samples=80, lr=0.5))}
    assert found["(2.8) relevant tokens"].right == pytest.approx(0.1 * math.exp(0.2) / 0.9)
    assert found["(2.7) width"].right == pytest.approx(25 * math.log(80))
    assert all(c.satisfied for c in found.values())
    noisy = {c.name: c for c in theory.conditions(tokens.Config(noise=0.2, sparsity=0.9))}
    assert noisy["token noise, gap"].left == pytest.approx(0.2 * math.sqrt(10))
    assert not noisy["token noise, gap"].satisfied
    assert noisy["(2.9) tokens"].left == 10


def test_what_is_predicted_for_figure_2_1():
    values = theory.theory(Config(lr=0.5)).values
    assert values["vote_gap"] == pytest.approx(0.3)
    assert values["samples_order"] == pytest.approx((0.4 - 2**-10 - 0.1) ** -2)
    assert 0.3 < values["attention_start"] < 0.6


# -------------------------------------------------------------------------------- neurons


def test_neurons_are_sorted_by_activity_and_read_out(double):
    """Against a plain loop over neurons, with the shared read-out of the proof."""
    settings: dict[str, Any] = TINY | {"shared": 1.0, "attention_rate": 0.0}
    cfg = identity.typed(Config(**settings), "float64")
    basis, *u = frames(cfg, key(4))
    centres, _ = pattern_rows(cfg, basis)
    w = initial_weights(cfg, key(4), centres, jnp.stack(u))
    sign = np.sign(np.asarray(output_weights(cfg, key(4)))[0, :, 0])
    p = np.asarray(value_features(centres, jnp.stack(u)))[0]
    fates: dict[str, list[float]] = {"lucky": [], "against": [], "idle": []}
    for label in range(2):
        each = jnp.arange(10, dtype=jnp.int32)
        pattern = np.asarray(kinds(cfg, each, jnp.int32(label))[1])
        seen = attend(w, centres[pattern], jnp.ones(10))[1][:, 0]
        relevant = np.asarray(seen)[pattern == label][0]
        for i in range(12):
            of_neuron = np.asarray(w.w_o)[0, :, i]
            own = sign[i] == (1 if label == 0 else -1)
            fate = "idle" if of_neuron @ relevant <= 0 else "lucky" if own else "against"
            fates[fate].append(float(of_neuron @ p[label]))
    probes = train(seed=4, shared=1.0, attention_rate=0.0)
    wanted = np.array([np.mean(fates[f]) for f in ("lucky", "against", "idle")])
    np.testing.assert_allclose(probes.neuron[0], wanted, rtol=1e-6)


def test_neurons_grow_along_their_own_feature(double):
    probes = train(shared=1.0, lr=0.3, width=200, hidden_init_std=0.03)
    own, opposite, beside, irrelevant = np.asarray(probes.growth[-1])
    assert own > 0 > opposite
    assert beside == 0  # with two classes there are none
    assert irrelevant < own


def test_value_features_are_orthonormal_and_the_values_of_an_exact_start():
    cfg = Config(value_error=0.0, heads=2)
    basis, *u = frames(plain(cfg), key())
    centres, _ = pattern_rows(cfg, basis)
    p = value_features(centres, jnp.stack(u))
    np.testing.assert_allclose(p[0] @ p[0].T, np.eye(5), atol=1e-5)
    w = initial_weights(plain(cfg), key(), centres, jnp.stack(u))
    np.testing.assert_allclose(p, jnp.einsum("hkd,jd->hjk", w.w_v, centres), atol=1e-5)


@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_the_velocity_of_lucky_neurons_by_monte_carlo(shared):
    """One gradient of the population: a neuron's mean pull along p_1, given that it is active."""
    share, confusion, m, width, length = 0.5, 0.1, 5, 40, 20
    rest = (1 - share - confusion) / 3
    own = np.array([share, confusion, rest, rest, rest])
    rng = np.random.default_rng(0)
    w = rng.normal(size=(200_000, m))
    pulled, active = np.zeros(len(w)), np.zeros(len(w), bool)
    for sign, f in ((1, own), (-1, own[[1, 0, 2, 3, 4]])):
        scores = f * np.where(np.eye(m) > 0, math.e, 1.0)
        v = scores / scores.sum(axis=1, keepdims=True)
        pulled += sign * ((w @ v.T > 0) * v[:, 0] * f).sum(axis=1) / 2
        if sign > 0:
            active = w @ v[0] > 0
    signs = rng.choice([-1, 1], size=(100_000, 1 if shared else length))
    size = np.abs(signs.mean(axis=1)).mean() / math.sqrt(width)
    found = theory.neuron_velocity(share, confusion, m, width, length, shared)
    assert found == pytest.approx(size * pulled[active].mean(), rel=0.02)


# ---------------------------------------------------------------------- gaps and measures


def test_the_law_of_the_gaps_is_one_of_the_relative_gap_and_the_share():
    assert theory.relative_gap(0.3, 0.1) == pytest.approx(0.5)
    assert theory.vote_gap(0.3, 0.1) == pytest.approx(0.2)
    many, few, wide = (theory.needed(*f) for f in ((0.75, 0.25), (0.0075, 0.0025), (1.0, 0.0)))
    assert many == pytest.approx(1.1 * 2**2.5)
    assert few / many == pytest.approx(100 ** (2 / 3))
    assert wide == pytest.approx(1.1)


def test_fractions_on_the_plane_have_their_sum_and_ratio():
    found = shared.of_plane({"voters": 0.4, "ratio": 0.5})
    assert sum(found.values()) == pytest.approx(0.4)
    assert theory.relative_gap(*found.values()) == pytest.approx(0.5)
    assert shared.rest_is_confusion({"frac_relevant": 0.3}) == pytest.approx(
        {"frac_confusion": 0.2}
    )


def trials(needed, samples=(2, 4, 8, 16, 32, 64, 128), seeds=6, name="frac_relevant"):
    """A Dataset whose trials succeed from a number of samples on, that moves from seed to seed."""
    at = np.array(list(needed))
    jitter = np.exp(np.linspace(-0.5, 0.5, seeds))
    ok = np.array(samples) >= np.array([needed[a] for a in at])[:, None, None] * jitter[:, None]
    loss = np.where(ok, 1e-5, 1.0)[..., None]
    dims = (name, "seed", "samples", "step")
    coords = {name: at, "seed": range(seeds), "samples": list(samples), "step": [9]}
    return xr.Dataset({"test_loss": (dims, loss)}, coords)


def test_the_area_under_a_success_curve_gives_the_samples_needed():
    samples = [2.0, 8.0, 32.0]
    loss = np.where(np.array([[0.0, 1, 1], [0, 0, 1]]) > 0, 1e-5, 1.0)[..., None]
    coords = {"samples": samples, "step": [9], "seed": [0, 1]}
    ds = xr.Dataset({"test_loss": (("seed", "samples", "step"), loss)}, coords)
    np.testing.assert_allclose(shared.needed(ds), [4, 16])  # half way in the logarithm


def test_trials_can_be_made_to_follow_a_law():
    ds = trials({0.5: 4, 0.4: 6, 0.3: 9, 0.25: 30})
    made: Altered = shared.needs(lambda ds: ds.frac_relevant**-2.0)
    found = shared.slope(
        shared.log_needed(made(ds)), np.log(ds.frac_relevant), "frac_relevant"
    ).mean()
    assert float(found) == pytest.approx(-2, abs=0.3)
    assert float(shared.log_needed(made(ds)).mean()) == pytest.approx(
        float(shared.log_needed(ds).mean()), abs=0.2
    )


def test_the_constant_of_sigma_is_that_of_the_printed_bound():
    alpha, c = 0.4, 0.3
    needed = {s: 3 / (alpha - c * s) ** 2 for s in (0.0, 0.2, 0.5, 0.9)}
    fine = tuple(np.geomspace(2, 4000, 400))
    ds = trials(needed, fine, name="value_error").assign_coords(frac_relevant=alpha)
    assert fall(ds).value == pytest.approx(c, rel=0.05)


def test_the_cost_of_freezing_is_a_ratio_of_samples():
    ds = xr.concat([trials({0.4: 4.0}), trials({0.4: 12.0})], "network")
    ds = ds.assign_coords(network=["ViT", "CNN"])
    assert float(np.exp(fig2_3.log_cost(ds)).mean()) == pytest.approx(3, rel=0.25)
    np.testing.assert_allclose(fig2_3.log_cost(fig2_3.alike(ds)), 0)


def test_break_even_is_where_removal_neither_costs_nor_gains():
    noise = np.array([0.1, 0.2, 0.4, 0.8])
    loss = np.stack([0.01 * noise**2, np.full(4, 0.01 * 0.3**2)])
    data = np.repeat(loss[:, :, None, None], 4, axis=2)
    ds = xr.Dataset(
        {"test_loss": (("removed", "noise_big", "seed", "step"), data)},
        {"removed": ["none", "noisy"], "noise_big": noise, "seed": range(4), "step": [5]},
    )
    assert fig2_5.pays_from(ds).value == pytest.approx(0.3)
    exponent = fig2_5.gain_exponent(ds)
    assert isinstance(exponent, Estimate)
    assert exponent.value == pytest.approx(-2)


def test_the_largest_step_is_where_success_ends():
    lr = [1.0, 2.0, 4.0, 8.0]
    loss = np.array([[1e-5, 1e-5, 1.0, 1.0]] * 3)[..., None]
    ds = xr.Dataset(
        {"test_loss": (("seed", "lr", "step"), loss)}, {"lr": lr, "seed": range(3), "step": [9]}
    )
    np.testing.assert_allclose(np.exp(gap.log_largest(ds)), math.sqrt(8))


def test_whole_tokens_are_counted():
    ds = xr.Dataset(coords={"frac_relevant": 0.065, "frac_confusion": 0.034, "tokens": 100})
    assert [float(f) for f in shared.counted(ds)] == pytest.approx([0.06, 0.03])


def test_a_model_that_was_trained_on_all_tokens_can_be_tested_on_some(double):
    """Pruning for the test changes the test alone."""
    rule: dict[str, Any] = dict(sparsity=0.4, by_role=1.0, noise=0.05)
    whole, after = train(TOKENS, noise=0.05, by_role=1.0), train(TOKENS, **rule, at_test=1.0)
    np.testing.assert_allclose(after.train_loss, whole.train_loss, rtol=1e-12)
    assert np.abs(np.asarray(after.test_loss - whole.test_loss)[1:]).max() > 1e-4
    before = train(TOKENS, **rule)
    assert np.abs(np.asarray(before.train_loss - whole.train_loss)).max() > 1e-4


def test_curves_go_through_the_middle_of_what_is_measured():
    y = xr.DataArray(
        [[8.0, 32.0]] * 3, {"seed": range(3), "frac_relevant": [0.5, 0.25]},
        ("seed", "frac_relevant"),
    )  # fmt: skip
    assert fig2_1a.through_points(y, lambda a: a**-2.0)(0.5) == pytest.approx(8)
