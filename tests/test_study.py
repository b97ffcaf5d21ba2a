import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from provingground.claims import Claim
from provingground.config import config, mask, padded, par, pars, size
from provingground.errors import InputError, unknown
from provingground.stats import Estimate
from provingground.study import Condition
from provingground.verdict import decide, judge, seeds_needed


@config
class Config:
    count: int = par(3, "n", "things", low=1, high=50, value=True, pad=4)
    rate: float = par(0.5, r"\eta", "rate", low=0)
    width: int = par(8, "w", "width", low=1)
    kind: str = par("a", "k", "kind", choices=("a", "b"))
    fast: bool = par(True, "f", "fast")


def test_one_declaration_gives_label_range_and_default():
    rate = pars(Config)["rate"]
    assert (rate.default, rate.label, rate.allowed) == (0.5, r"rate, $\eta$", "numbers from 0")
    assert pars(Config)["count"].allowed == "whole numbers from 1 to 50"
    assert pars(Config)["kind"].allowed == "one of a, b"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 0),
        ("count", 51),
        ("count", 2.5),
        ("count", True),
        ("rate", -1),
        ("rate", math.nan),
        ("rate", math.inf),
        ("rate", "much"),
        ("kind", "c"),
        ("fast", "yes"),
        ("width", None),
        ("width", 2**31),
        ("width", -(2**31)),
        ("width", "8"),
        ("width", b"8"),
        ("width", np.bool_(True)),
        ("rate", "1"),
        ("rate", True),
        ("rate", 10**400),
        ("rate", np.float64("inf")),
        ("rate", np.ones(2)),
    ],
)
def test_values_out_of_range_are_refused_with_what_is_allowed(name, value):
    with pytest.raises(InputError, match=f"{name}.*takes"):
        Config(**{name: value})


def test_whole_numbers_are_fine_for_a_float():
    assert isinstance(Config(rate=1).rate, float)


def test_numbers_of_numpy_become_pythons():
    numbers: dict[str, Any] = dict(
        rate=np.float32(0.5), width=np.int64(4), count=np.array(7), fast=np.bool_(False)
    )
    cfg = Config(**numbers)
    assert (cfg.rate, cfg.width, cfg.count, cfg.fast) == (0.5, 4, 7, False)
    kinds = [type(v) for v in (cfg.rate, cfg.width, cfg.count, cfg.fast)]
    assert kinds == [float, int, int, bool]
    assert pars(Config)["width"].check(4.0) == 4


def test_values_are_leaves_and_shapes_are_structure():
    values, structure = jax.tree.flatten(Config(count=5))
    assert values == [5, 0.5]
    assert structure != jax.tree.structure(Config(count=5, width=9))
    assert structure == jax.tree.structure(Config(count=8, rate=2.0))
    assert structure != jax.tree.structure(Config(count=9))


def test_a_config_traces_and_keeps_its_padded_sizes():
    @jax.jit
    def total(cfg):
        return jnp.sum(jnp.where(mask(cfg, "count"), cfg.rate, 0.0)), jnp.zeros(size(cfg, "count"))

    found, laid_out = total(Config(count=5, rate=2.0))
    assert found == 10.0
    assert laid_out.shape == (8,)
    assert size(Config(count=5), "count") == 5  # untraced: nothing needs padding


@given(st.integers(1, 10**6), st.integers(1, 64))
def test_padding_covers_the_count_and_wastes_little(count, pad):
    laid_out = padded(count, pad)
    assert count <= laid_out < count + max(pad, 1 + count / 3)
    assert laid_out % pad == 0 or count > 8 * pad or pad & (pad - 1)


def test_unknown_names_come_with_the_nearest():
    assert "did you mean 'samples'" in str(unknown("parameter", "sample", ["samples", "snr"]))


# ------------------------------------------------------------------------------ verdicts


@pytest.mark.parametrize(
    ("estimate", "verdict"),
    [
        (Estimate(1, 0.5, 1.5), "holds"),
        (Estimate(3, 2.5, 3.5), "fails"),
        (Estimate(2, 1.5, 2.5), "unknown"),
        (Estimate(-1, -2, 3), "unknown"),
        (Estimate(1, math.nan, math.nan), "unknown"),
    ],
)
def test_an_interval_decides_only_if_it_is_all_inside_or_all_outside(estimate, verdict):
    assert decide(estimate, (0, 2)) == verdict


@given(st.floats(-5, 5), st.floats(0, 5), st.floats(-5, 5), st.floats(0, 5))
def test_decisions_exclude_each_other(value, half, low, width):
    estimate = Estimate(value, value - half, value + half)
    found = decide(estimate, (low, low + width))
    inside = low <= value <= low + width
    assert found == "unknown" or (found == "holds") == inside


def dataset(**attrs):
    known = dict(study="s", experiment="e", cells=4, missing=0, diverged=0)
    return xr.Dataset({"y": ("seed", [1.0] * 4)}, attrs=known | attrs)


def claim(**changes):
    known: dict[str, Any] = dict(
        name="c", says="y is 1", measure=lambda ds: Estimate(1, 0.9, 1.1), within=(0, 2), source="T"
    )
    return Claim(**(known | changes))


def test_a_verdict_is_a_surprise_when_decided_against_expectation():
    assert not judge(claim(), dataset()).surprise
    assert judge(claim(within=(2, 3)), dataset()).surprise
    fails = dict(expected="fails", note="since")
    assert judge(claim(**fails), dataset()).surprise
    assert not judge(claim(**fails, within=(2, 3)), dataset()).surprise


def test_diverged_and_missing_cells_leave_a_claim_unknown_and_are_named():
    diverged = judge(claim(), dataset(diverged=1), headline=True)
    assert diverged.verdict == "unknown"
    assert diverged.trouble
    assert "1 of 4 cells diverged" in diverged.note
    assert not judge(claim(), dataset(diverged=1)).trouble
    assert "2 of 4 cells are missing" in judge(claim(), dataset(missing=2)).note


def test_an_expected_failure_needs_a_reason():
    with pytest.raises(InputError, match="note"):
        claim(expected="fails")


def test_seeds_needed_shrinks_the_interval_until_it_clears_the_bound():
    wide = Estimate(1.0, 0.0, 2.0)
    assert seeds_needed(wide, (0.5, math.inf), 4) in range(8, 14)
    assert seeds_needed(wide, (1.0, math.inf), 4) is None
    assert seeds_needed(Estimate(1, math.nan, math.nan), (0, 2), 4) is None


def test_conditions_have_margins():
    assert Condition("a", 4, ">=", 2).margin == 2
    assert not Condition("a", 4, "<=", 2).satisfied
    assert Condition("a", 0.1 + 0.2, "=", 0.3).satisfied
