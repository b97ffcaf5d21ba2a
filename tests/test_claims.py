"""Claims, their bounds and their rivals."""

import math
import re

import numpy as np
import pytest
import xarray as xr

from provingground import stats
from provingground.claims import (
    Claim,
    above,
    below,
    between,
    claim,
    control,
    curve,
    equals,
    exchange,
    shuffle,
)
from provingground.errors import InputError
from provingground.stats import Estimate, Everywhere, everywhere, mean
from provingground.verdict import agreeing, decide, deciding, judge

ATTRS = dict(study="s", experiment="e", cells=12, missing=0, diverged=0, scale="quick")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def ds(rng):
    """y = 3 n^2, with some noise, for six seeds."""
    n = xr.DataArray([1.0, 2.0, 4.0, 8.0], dims="n")
    noise = xr.DataArray(1 + 0.01 * rng.normal(size=(6, 4)), dims=("seed", "n"))
    y = (3 * n**2 * noise).assign_coords(n=n, seed=range(6))
    return xr.Dataset({"y": y}, attrs=ATTRS)


@claim("T1", equals(2, within=0.1), law=curve("y", lambda ds: 3 * ds.n**2))
def exponent(ds: xr.Dataset) -> Estimate:
    """the exponent is
    two

    More about it, for readers of the code.
    """
    return stats.power_law(ds.y, "n").slope


def test_a_claim_is_its_measure(ds):
    assert isinstance(exponent, Claim)
    assert (exponent.name, exponent.says) == ("exponent", "the exponent is two")
    assert (exponent.within, exponent.theory) == ((1.9, 2.1), 2.0)
    assert exponent(ds) == exponent.measure(ds)
    second = claim("T2", below(3), name="second", says="another bound")(exponent)
    assert (second.name, second.within, second.theory) == ("second", (-math.inf, 3.0), None)
    assert second(ds) == exponent(ds)


def test_what_makes_no_claim_is_refused():
    with pytest.raises(InputError, match="says nothing"):
        claim("T", below(1))(lambda ds: stats.mean(ds.y))
    for wrong in ({"kind": "rumour"}, {"bound": "theirs"}):
        with pytest.raises(InputError, match=r"did you mean|Known"):
            claim("T", below(1), name="a", says="b", **wrong)(mean)  # pyright: ignore
    with pytest.raises(InputError, match="because"):
        claim("T", below(1), name="a", says="b", expected="fails")(mean)  # pyright: ignore
    with pytest.raises(InputError, match="tolerance"):
        equals(1)
    with pytest.raises(InputError, match="empty"):
        between(2, 1)
    assert above(1)[:2] == (1.0, math.inf)


def test_the_tolerance_decides_and_the_theory_is_told_beside_it(ds):
    verdict = judge(exponent, exponent.law(ds))  # pyright: ignore
    assert (verdict.verdict, verdict.agrees) == ("holds", True)
    off = curve("y", lambda ds: 3 * ds.n**2.06)(ds)
    verdict = judge(exponent, off)
    assert (verdict.verdict, verdict.agrees) == ("holds", False)
    assert "excludes the theory's own value, 2" in verdict.details


def test_a_measure_with_a_typo_is_trouble_at_its_own_settings_only(ds):
    typo = claim("T", below(1), name="typo", says="s")(lambda ds: stats.mean(ds.z))
    found = judge(typo, ds)
    assert (found.verdict, found.trouble, found.surprise) == ("unmeasured", True, False)
    assert "AttributeError" in found.note
    changed = ds.assign_attrs(changed="n")
    assert (judge(typo, changed).verdict, judge(typo, changed).trouble) == ("unmeasured", False)


# ------------------------------------------------------------------------------- everywhere


def test_all_settings_hold_if_each_does_and_one_fails_only_beyond_all_together(rng):
    y = xr.DataArray(rng.normal(size=(8, 20)), dims=("seed", "n"), coords={"n": range(20)})
    found = everywhere(mean, y)
    assert len(found.each) == 20
    assert decide(found, (-5, 5)) == "holds"
    wide = [joint.high - joint.low for joint in found.joint]
    assert all(w > e.high - e.low for w, e in zip(wide, found.each, strict=True))
    worst = max(found.each, key=lambda e: e.low)
    level = worst.low - 1e-6  # one of twenty lies beyond it alone, by chance
    assert decide(worst, (-math.inf, level)) == "fails"
    assert decide(found, (-math.inf, level)) == "unknown"
    assert decide(everywhere(mean, y.where(y.n != 7, 9.0)), (-5, 5)) == "fails"


def test_an_error_in_a_measure_names_the_place_where_a_user_can_mend_it(ds):
    def typo(ds):
        return mean(ds.yy)

    def refused(ds):
        return stats.power_law(ds.y, "m").slope

    def note(measure):
        found = judge(Claim("c", "s", measure, (0, 1), "T"), ds)
        assert found.verdict == "unmeasured"
        return found.note

    assert re.search(r"measured: AttributeError: .*yy.* \(.*test_claims.py, line \d+\)", note(typo))
    line = refused.__code__.co_firstlineno + 1
    assert re.search(
        rf"measured: unknown dim 'm'.* \(.*test_claims.py, line {line}\)", note(refused)
    )


def test_the_setting_that_decides_is_named_a_nan_one_only_where_all_others_hold():
    fine, out, lost = Estimate(1, 0.9, 1.1), Estimate(3, 2.9, 3.1), stats.UNDECIDED
    several = Everywhere(("a", "b", "c"), (fine, out, lost), (fine, out, lost))
    assert decide(several, (0, 2)) == "fails"
    assert deciding(several, (0, 2)) == ("b", out)
    assert agreeing(several, 1.0) is None
    assert deciding(Everywhere(("a", "c"), (fine, lost), (fine, lost)), (0, 2))[0] == "c"
    near = Estimate(1.9, 1.85, 1.95)
    both = Everywhere(("a", "b"), (fine, near), (fine, near))
    assert deciding(both, (0, 2)) == ("b", near)
    assert (agreeing(both, 1.0), agreeing(Everywhere(("a",), (fine,), (fine,)), 1.0)) == (
        False,
        True,
    )


def test_zero_is_agreed_with_up_to_rounding():
    rounded = Estimate(-1e-14, -2e-14, -1e-15)
    assert agreeing(rounded, 0.0)
    assert not agreeing(Estimate(-2e-6, -3e-6, -1e-6), 0.0)


def test_a_verdict_names_the_setting(ds):
    below_all = claim("T", below(1), name="small", says="s")(lambda ds: everywhere(mean, ds.y))
    found = judge(below_all, ds)
    assert (found.verdict, found.decided_at) == ("fails", "n = 8")


def test_false_fails_of_everywhere_are_rare():
    """All settings at the bound: one at a time would fail in a third of the cases."""
    rng = np.random.default_rng(0)
    fails = 0
    for _ in range(200):
        y = xr.DataArray(rng.normal(size=(8, 12)), dims=("seed", "n"), coords={"n": range(12)})
        fails += decide(everywhere(mean, y), (-math.inf, 0)) == "fails"
    assert fails <= 14  # nominal 2.5%


# ---------------------------------------------------------------------------------- rivals


def test_a_claim_holds_on_its_own_curve_and_not_on_another_law(ds):
    assert exponent.law is not None
    assert decide(exponent(exponent.law(ds)), exponent.within) == "holds"
    other = curve("y", lambda ds: ds.n**1.5, scaled=True)(ds)
    assert decide(exponent(other), exponent.within) == "fails"
    np.testing.assert_allclose(
        np.log(other.y.mean("seed") / ds.y.mean("seed")).mean(), 0, atol=1e-6
    )
    spread = lambda d: (d.y.std("seed") / d.y.mean("seed")).values  # noqa: E731
    np.testing.assert_allclose(spread(other), spread(ds), rtol=1e-6)  # the same noise


def test_a_control_has_the_same_values_in_another_order(ds):
    by = control("y", lambda ds: xr.DataArray([3.0, 1.0, 2.0, 4.0], dims="n"))(ds)
    np.testing.assert_array_equal(by.y.isel(n=[1, 2, 0, 3]), ds.y)
    falling = control("y", lambda ds: -ds.n)(ds)  # opposed to y: nothing moves
    np.testing.assert_array_equal(falling.y, ds.y)


def test_an_exchange_moves_the_results_of_two_labels_and_no_others(ds):
    first, second, *others = ds.n.values.tolist()
    moved = exchange("n", (first, second))(ds)
    for name, v in ds.data_vars.items():
        if "n" in v.dims:
            np.testing.assert_array_equal(moved[name].sel(n=first), v.sel(n=second))
            np.testing.assert_array_equal(moved[name].sel(n=second), v.sel(n=first))
            np.testing.assert_array_equal(moved[name].sel(n=others), v.sel(n=others))
        else:
            xr.testing.assert_identical(moved[name], v)
    xr.testing.assert_identical(exchange("n", (first, second))(moved), ds)
    with pytest.raises(ValueError, match="not in list"):
        exchange("n", (first, "no label"))(ds)


def test_a_shuffle_leaves_nothing_where_it_was(ds):
    moved = shuffle("n")(ds)
    assert set(moved.y.mean("seed").values) == set(ds.y.mean("seed").values)
    assert (moved.y.mean("seed") != ds.y.mean("seed")).all()
    np.testing.assert_array_equal(moved.n, ds.n)
    with pytest.raises(InputError, match="nothing to shuffle"):
        shuffle("n")(ds.isel(n=[0]))
