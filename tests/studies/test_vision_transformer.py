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

import provingground as pg
from provingground import identity, plot
from provingground.errors import InputError
from provingground.keys import normal, seed_key
from provingground.stats import Estimate
from provingground.studies.vision_transformer import STUDY, measures, theory
from provingground.studies.vision_transformer.model import (
    CONFUSION,
    IRRELEVANT,
    RELEVANT,
    Config,
    Weights,
    attend,
    frames,
    hidden,
    initial_weights,
    kinds,
    loss_of,
    output_weights,
    pattern_rows,
    positions,
    simulate,
    targets,
)
from provingground.studies.vision_transformer.tokens import (
    Drawn,
    Streams,
    Tokens,
    by_token,
    draw_tokens,
    kept,
    received,
    simulate_tokens,
)

TINY: dict[str, Any] = dict(
    samples=6, tokens=10, n_patterns=4, dim=5, width=12, test_samples=8, steps=30, record=4,
    frac_relevant=0.5, frac_confusion=0.2, hidden_init_std=0.3,
)  # fmt: skip


def jit(function):
    return jax.jit(
        function, compiler_options={"xla_backend_optimization_level": 0}
    )  # compiles fast


PATTERNS, TOKENS = jit(simulate), jit(simulate_tokens)
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
    kind = Config if how is PATTERNS else Tokens
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
            {"variants": 2, "dim": 12, "shared": 1.0, "loss": "logistic", "batch": 3},
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
    assert probes.lucky[0] == 0  # no neuron is active
    assert train().lucky[0] == 1
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
    cfg = Tokens(tokens=20, noise=0.05, noisy_share=0.2, noise_big=0.5)
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
    cfg = Tokens(tokens=20, dist="iid", frac_relevant=0.3, frac_confusion=0.2)
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
    cfg = Tokens(tokens=20, sparsity=0.3, noisy_share=0.2, **rule)
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
    cfg = Tokens(dim=4, tokens=5, width=6, **changes)
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
    np.testing.assert_allclose(loss_of(Config(loss="logistic"), margin), logistic, rtol=1e-6)
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
    assert theory.prop1_samples(0.1, 0.1) == theory.thm1_samples(0.1, 0.2, c_2=1.0) == math.inf


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
    found = {c.name: c for c in theory.conditions(Config(samples=80))}
    assert found["(2.8) relevant tokens"].right == pytest.approx(0.1 * math.exp(0.2) / 0.9)
    assert found["(2.7) width"].right == pytest.approx(25 * math.log(80))
    assert all(c.satisfied for c in found.values())
    noisy = {c.name: c for c in theory.conditions(Tokens(noise=0.2, sparsity=0.9))}
    assert noisy["token noise, gap"].left == pytest.approx(0.2 * math.sqrt(10))
    assert not noisy["token noise, gap"].satisfied
    assert noisy["(2.9) tokens"].left == 10


def test_what_is_predicted_for_figure_2_1():
    values = theory.theory(Config()).values
    assert values["vote_gap"] == pytest.approx(0.3)
    assert values["samples_order"] == pytest.approx(1 / 0.16)
    assert 0.3 < values["attention_start"] < 0.6


# ------------------------------------------------------------------ measures and paper scale


def test_the_area_under_a_success_curve_gives_the_samples_needed():
    samples = xr.DataArray([2.0, 8.0, 32.0], dims="samples")
    rate = xr.DataArray([[0.0, 1, 1], [0, 0, 1]], dims=("seed", "samples"))
    found = np.exp(measures.log_needed(rate.assign_coords(samples=samples)))
    np.testing.assert_allclose(found, [4, 16])  # half way in the logarithm


def test_estimates_are_combined_on_the_wide_side():
    a, b = Estimate(4.0, 3.0, 5.0), Estimate(2.0, 1.0, 3.0)
    assert measures.quotient(a, b) == (2.0, 1.0, 5.0)
    assert measures.negated(a) == (-4.0, -5.0, -3.0)


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["value_error", "value_scale"])
def test_what_runs_at_paper_scale_only_runs(store, axis):
    experiment = next(
        e for e in STUDY.experiments if e.trainings.paper_only and axis in e.trainings.grid
    )
    settings: dict[str, Any] = dict(width=8, samples=[4, 8], tokens=10, steps=20, test_samples=8)
    settings[axis] = [0.1, 1.0]
    ds = pg.run(STUDY, experiment.name, scale="paper", seeds=3, store=store, **settings)
    assert ds.attrs["cells"] == 2 * 2 * 3
    assert all(np.isfinite(c.measure(ds).value) for c in experiment.claims)  # pyright: ignore
    assert plot.check_layout(experiment.figure(ds)) == []
