"""Figure 2.5: token sparsification by four rules, and the noise that decides whether it pays."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, claim, curve, equals, exchange
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings, cases

from .shared import FEW_TOKENS, exp, exp_mean

EARLY, LATE = 2, -1  # recorded steps: 50 and the last
GRID: dict[str, Any] = {
    "samples": 80,
    "tokens": 50,
    "frac_relevant": 0.6,
    "frac_confusion": 0.05,
    "key_error": 0.5,
    "noisy_share": 0.2,
    "lr": 1.0,
    "record": 4,  # steps 0, 1, 50 and 2500
    "steps": 2500,
}
RULES: dict[str, dict[str, Any]] = {
    "random": {},
    "irrelevant": {"by_role": 1.0},
    "noisy": {"by_noise": 1e4},
    "least attention": {"by_attention": 1e4},
}


def log_loss(ds: xr.Dataset, when: int) -> xr.DataArray:
    """The logarithm of the test loss, which is skewed; losses below 10^-4 count as that."""
    loss = ds.test_loss.isel(step=when, drop=True).astype(float)
    return np.log(np.maximum(loss, 1e-4))


def gain(ds: xr.Dataset, rule: str, when: int) -> Everywhere:
    """Test loss after sparsification over that without, at each rate."""
    y = log_loss(ds, when).sel(rule=rule, drop=True)
    removed = y.isel(sparsity=slice(1, None))
    return everywhere(exp_mean, removed - y.sel(sparsity=0.0, drop=True))


def useless(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset in which all rules and rates do what removing none does."""
    plain = ds.test_loss.sel(sparsity=0.0, rule="random", drop=True)
    return ds.assign(test_loss=(plain + 0 * ds.test_loss).transpose(*ds.test_loss.dims))


NONE = {"removal changes nothing": useless}


@claim("found here", below(0.95), kind="own", rivals=NONE)
def irrelevant_gain_early(ds: xr.Dataset) -> Everywhere:
    """after 50 steps removing irrelevant tokens lowers the test loss (ratio)"""
    return gain(ds, "irrelevant", EARLY)


@claim("Proposition 2, on sparsification by magnitude", below(0.95), kind="own", rivals=NONE)
def attention_gain_early(ds: xr.Dataset) -> Everywhere:
    """after 50 steps removing the tokens that receive least attention lowers the test loss"""
    return gain(ds, "least attention", EARLY)


@claim("Figure 2.5, at the end", below(0.95), rivals=NONE)
def noisy_gain_end(ds: xr.Dataset) -> Everywhere:
    """at the end removing tokens with significant noise lowers the test loss (ratio)"""
    return gain(ds, "noisy", LATE)


@claim("Figure 2.5, at the end", below(0.95), rivals=NONE)
def irrelevant_gain_end(ds: xr.Dataset) -> Everywhere:
    """at the end removing irrelevant tokens lowers the test loss (ratio)"""
    return gain(ds, "irrelevant", LATE)


def as_noisy(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset in which removal at random does what that of noisy tokens does at the end."""
    noisy = ds.test_loss.sel(rule="noisy", drop=True)
    made = xr.where(ds.rule == "random", noisy, ds.test_loss)
    return ds.assign(test_loss=made.transpose(*ds.test_loss.dims))


@claim("Figure 2.5, at the end", above(0.95), rivals={"as of noisy tokens": as_noisy})
def random_no_gain(ds: xr.Dataset) -> Everywhere:
    """at the end removing tokens at random does not lower the test loss (ratio)"""
    return gain(ds, "random", LATE)


@claim("found here", above(1.5), kind="own", rivals=NONE)
def random_gains_less(ds: xr.Dataset) -> Everywhere:
    """after 50 steps the test loss without tokens at random is higher than without irrelevant ones,
    by over 1.5 times (ratio)"""
    y = log_loss(ds, EARLY).isel(sparsity=slice(1, None))
    return everywhere(exp_mean, y.sel(rule="random") - y.sel(rule="irrelevant"))


def draw(ds: xr.Dataset):
    early = int(ds.step[EARLY])
    fig, (left, right) = plot.figure(1, 2, title="Test loss after removing tokens")
    for ax, when, words in ((left, EARLY, f"after {early} steps"), (right, LATE, "at the end")):
        loss = ds.test_loss.isel(step=when, drop=True)
        plot.curve(ax, loss, "sparsity", hue="rule")
        ax.set_title(words)
    return fig


# ------------------------------------------------------------------------- the noise as an axis


def by_noise(ds: xr.Dataset, rule: str) -> xr.DataArray:
    """log of the loss at the end after removal, over that of all tokens, by noise."""
    y = log_loss(ds, LATE)
    return y.sel(removed=rule, drop=True) - y.sel(removed="none", drop=True)


def falls(power: float) -> Altered:
    """The Dataset in which removal gains a power of the noise, and pays from 0.25 on."""

    def law(ds: xr.Dataset) -> Any:
        noisy = 0.004 + 0 * ds.noise_big
        return xr.where(ds.removed == "none", noisy * (ds.noise_big / 0.25) ** power, noisy)

    return curve("test_loss", law)


def pays_from(ds: xr.Dataset, rule: str = "noisy") -> Estimate:
    """The noise at which removal neither costs nor gains: where the log ratio crosses zero."""
    y = by_noise(ds, rule)
    u = np.log(ds.noise_big)

    def crossing(y: xr.DataArray) -> float:
        mean = y.mean("seed")
        centred = u - u.mean()
        b = float((mean * centred).sum() / (centred**2).sum())
        return float(u.mean() - mean.mean() / b)

    return stats.jackknife(crossing, y).map(lambda v: float(np.exp(v)))


@claim(
    "found here",
    equals(0.25, times=2),
    kind="own",
    law=falls(2.0),
    rivals={"always": curve("test_loss", lambda ds: xr.where(ds.removed == "none", 0.01, 0.002)
                            * ds.noise_big**0.1)},
)  # fmt: skip
def break_even(ds: xr.Dataset) -> Estimate:
    """removing the noisy fifth of the tokens pays where their noise is over 0.25 for each
    coordinate, that is where its norm is about 0.8, and costs below (break-even)"""
    return pays_from(ds)


@claim(
    "found here",
    equals(-2, within=0.6),
    kind="own",
    law=falls(2.0),
    rivals={"1 / c_1": falls(1.0), "c_1^-4": falls(4.0)},
)
def gain_exponent(ds: xr.Dataset) -> Estimate:
    """the loss after the removal of noisy tokens, over that with all of them, falls with their
    noise as c_1^(-2)"""
    y, u = by_noise(ds, "noisy"), np.log(ds.noise_big)
    centred = u - u.mean()
    return stats.mean((y * centred).sum("noise_big") / (centred**2).sum())


@claim(
    "Section 2.4.1: tokens with significant noise",
    above(1),
    kind="own",
    rivals={"removal always gains tenfold": curve(
        "test_loss", lambda ds: xr.where(ds.removed == "none", 0.1, 0.01) + 0 * ds.noise_big)},
)  # fmt: skip
def noisy_costs_when_small(ds: xr.Dataset) -> Estimate:
    """where the noise is 0.1 removing the noisiest fifth raises the loss at the end (ratio)"""
    return exp_mean(by_noise(ds, "noisy").isel(noise_big=0, drop=True))


AT_TEST = ("noisy, for the test", "random, for the test")
SWAPPED = exchange("removed", AT_TEST)


@claim(
    "Remark 2; pruning of a trained model", below(1), kind="own", rivals={"as at random": SWAPPED}
)
def trained_gain(ds: xr.Dataset) -> Estimate:
    """a model that was trained on all tokens has a lower loss, too, on samples without their noisy
    fifth (ratio, noise 0.6)"""
    y = by_noise(ds, "noisy, for the test").sel(noise_big=0.6, method="nearest", drop=True)
    return exp_mean(y)


@claim("found here", above(1), kind="own", rivals={"as the noisy": SWAPPED})
def trained_random(ds: xr.Dataset) -> Estimate:
    """but a higher one where tokens are removed at random (ratio, noise 0.6)"""
    y = by_noise(ds, "random, for the test").sel(noise_big=0.6, method="nearest", drop=True)
    return exp_mean(y)


def draw_noise(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Removing the noisiest fifth of the tokens")
    loss = stats.last(ds.test_loss).assign_attrs(ds.test_loss.attrs)
    plot.curve(left, loss, "noise_big", hue="removed", log="xy")
    for rule in ("noisy", "noisy, for the test"):
        words = "test loss over that of all tokens"
        ratio = exp(by_noise(ds, rule)).assign_attrs(long_name=words)
        plot.curve(right, ratio, "noise_big", label=rule, log="xy", line=False)
    c = np.geomspace(float(ds.noise_big.min()), float(ds.noise_big.max()), 50)
    plot.theory_curve(right, c, (c / 0.25) ** -2, "$(c_1/0.25)^{-2}$")
    right.axhline(1, color="black", linewidth=0.8)
    return fig


REMOVED = cases(
    {
        "none": {},
        "noisy": {"sparsity": 0.2, "by_noise": 1e4},
        "noisy, for the test": {"sparsity": 0.2, "by_noise": 1e4, "at_test": 1.0},
        "random, for the test": {"sparsity": 0.2, "at_test": 1.0},
    }
)

EXPERIMENTS = (
    Experiment(
        "fig2_5",
        says="Test loss after removing tokens by four rules, early and at the end of training.",
        trainings=Trainings(
            grid={
                **GRID,
                "rule": cases(RULES),
                "sparsity": [0.0, 0.1, 0.2, 0.3],
                "noise_big": 0.6,
            },
            simulator="tokens",
            seeds=20,
            quick={**FEW_TOKENS, "sparsity": [0.0, 0.2], "seeds": 6},
        ),
        claims=(
            irrelevant_gain_early,
            attention_gain_early,
            noisy_gain_end,
            irrelevant_gain_end,
            random_no_gain,
            random_gains_less,
        ),
        figure=draw,
    ),
    Experiment(
        "fig2_5_noise",
        says="The same loss by the noise of noisy tokens, without them, and with them removed for "
        "the test alone.",
        trainings=Trainings(
            grid={
                **GRID,
                "removed": REMOVED,
                "noise_big": [0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2],
            },
            simulator="tokens",
            seeds=20,
            quick={**FEW_TOKENS, "noise_big": [0.1, 0.3, 0.6, 1.2], "seeds": 10},
            domain={
                "noise_big": (0.1, 1.2),
                "frac_relevant": (0.5, 0.8),
                "frac_confusion": (0.02, 0.1),
                "key_error": (0.0, 0.5),
                "value_error": (0.0, 0.5),
                "lr": (0.2, 1.5),
            },
        ),
        claims=(break_even, gain_exponent, noisy_costs_when_small, trained_gain, trained_random),
        figure=draw_noise,
    ),
)
