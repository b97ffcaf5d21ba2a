"""Figure 2.4 and Proposition 2: attention on label-relevant tokens during training."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, between, claim, curve, equals, exchange
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings, cases

from .lr_scaling import query_at_stop, rest_at_stop
from .shared import SMALL, log, rise, slope, success, with_most

# What is seen in time: one program at the quick scale.
IN_TIME: dict[str, Any] = {"tokens": 50, "frac_relevant": 0.5, "frac_confusion": 0.05,
                           "record": 40, "steps": 4000}  # fmt: skip
# The printed start: W_K = W_Q = (delta / c_0)^2 I and W_V = (sigma / c_0)^2 U.
PRINTED: dict[str, Any] = dict(key_scale=400.0, value_scale=100.0, key_error=0.0, value_error=0.0)
PLAIN, SHARED, START = "per position", "shared read-out", "printed start"
SWAPPED = {"the other reading": exchange("reading", (PLAIN, SHARED))}
READINGS = cases({PLAIN: {}, SHARED: {"shared": 1.0, "lr": 0.1}, START: {**PRINTED, "lr": 0.001}})


def of(ds: xr.Dataset, reading: str) -> xr.Dataset:
    return with_most(ds).sel(reading=reading, drop=True)


def attention_is(end: float) -> Altered:
    """The Dataset whose mean attention moves to a value, whatever it was."""
    return curve("attention", lambda ds: end)


def still(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose attention stays as it was."""
    return ds.assign(attention=0 * ds.attention + ds.attention.isel(step=0, drop=True))


@claim("Proposition 2, Figure 2.4", above(0.1), rivals={"attention stays": still})
def attention_rises(ds: xr.Dataset) -> Estimate:
    """the mean attention on relevant tokens rises during training, by over 0.1"""
    return stats.mean(rise(of(ds, PLAIN)))


def of_relevant_alone(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset in which relevant queries attend to relevant tokens and the others do not."""
    alone = xr.where(ds.role == 0, 0.95, 0.5) + 0 * ds.attention_from
    return ds.assign(attention_from=alone.transpose(*ds.attention_from.dims))


def as_all_queries(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset in which queries of all roles attend alike."""
    mean, of_role = ds.attention, ds.attention_from
    return ds.assign(attention_from=(mean + 0 * of_role).transpose(*of_role.dims))


@claim("found here", above(0.9), kind="own", rivals={"as all queries": as_all_queries})
def attention_of_relevant(ds: xr.Dataset) -> Estimate:
    """the attention of relevant queries on relevant tokens comes close to 1 (over 0.9)"""
    return stats.mean(stats.last(of(ds, PLAIN).attention_from.isel(role=0, drop=True)))


@claim(
    "Figure 2.4",
    above(0.95),
    expected="fails",
    because=(rest_at_stop,),
    rivals={"as far as measured": attention_is(0.84)},
)
def attention_near_one(ds: xr.Dataset) -> Estimate:
    """averaged over all queries the attention on relevant tokens comes close to 1 (over 0.95)"""
    return stats.mean(stats.last(of(ds, PLAIN).attention))


@claim("found here", below(0.5), kind="own", rivals=SWAPPED)
def attention_shared(ds: xr.Dataset) -> Estimate:
    """with a shared read-out attention moves less than half as far"""
    return stats.paired_ratio(rise(of(ds, SHARED)), rise(of(ds, PLAIN)))


@claim("section 2.4, as printed", between(-0.01, 0.01), kind="own",
       rivals={"as from ours": exchange("reading", (PLAIN, START))})  # fmt: skip
def printed_start_frozen(ds: xr.Dataset) -> Estimate:
    """from the printed start, whose scores are of order 10^5, attention does not move"""
    return stats.mean(rise(of(ds, START)))


def at_two(ds: xr.Dataset, reading: str) -> Estimate:
    return stats.share(success(ds).sel(reading=reading, samples=2, drop=True))


@claim("found here", above(0.5), kind="own", rivals=SWAPPED)
def shared_needs_two(ds: xr.Dataset) -> Estimate:
    """with a shared read-out, as the proof has it, one sample of each class is enough, since
    without noise all samples of a class are then alike"""
    return at_two(ds, SHARED)


@claim("found here", below(0.5), kind="own", rivals=SWAPPED)
def per_position_needs_more(ds: xr.Dataset) -> Estimate:
    """with read-outs per position, as printed in (2.1), it is not"""
    return at_two(ds, PLAIN)


def draw(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(
        1, 3, title="Attention during training, and success by samples"
    )
    rate, ds = success(ds), with_most(ds)
    most = int(ds.stopped_at.sel(reading=PLAIN).max())
    shown = ds.isel(step=(ds.step <= most).values)
    plot.curve(left, shown.attention, "step", hue="reading")
    plot.curve(middle, shown.attention_from.sel(reading=PLAIN), "step", hue="role")
    for ax in (left, middle):
        ax.set_ylim(0, 1)
    plot.curve(right, rate.sel(reading=[PLAIN, SHARED]), "samples", hue="reading", log="x")
    return fig


# ------------------------------------------------------------------------- Proposition 2's rate


def rest(ds: xr.Dataset) -> xr.DataArray:
    found = 1 - ds.attention
    return found.assign_attrs(long_name="attention on other tokens")


def falling(law: Callable[[xr.DataArray], Any]) -> Altered:
    """The Dataset whose attention on other tokens falls as a law of t (to what is left of 1 in 64
    bits), with its own noise."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        its = ds.assign(rest=rest(ds).astype(float))
        made = curve("rest", lambda ds: np.maximum(law(ds.step), 1e-12))(its)
        return ds.assign(attention=1 - made.rest)

    return altered


def as_power(power: float) -> Altered:
    return falling(lambda t: 0.4 * np.maximum(t, 1.0) ** power)


WINDOWS = {"a decade": 10.0, "a factor of 2": 2.0}


def hinge(ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(objective="hinge", drop=True)


def late_slopes(ds: xr.Dataset, y: xr.DataArray) -> xr.DataArray:
    """The slope of y in log t under the hinge loss, over the last decade and the last factor of 2
    of the steps that each training took."""
    end, t = np.maximum(hinge(ds).stopped_at, 10), np.maximum(ds.step.astype(float), 1.0)
    found = []
    for width in WINDOWS.values():
        inside = (ds.step >= end / width) & (ds.step <= end)
        found.append(slope(y.where(inside), log(t).where(inside), "step"))
    both = xr.concat(found, xr.DataArray(list(WINDOWS), dims="window", name="window"))
    assert isinstance(both, xr.DataArray)
    return both


def late_powers(ds: xr.Dataset) -> xr.DataArray:
    """The exponent in t of the rest."""
    return late_slopes(ds, log(rest(hinge(ds))))


@claim("Proposition 2 (2.15)", above(0.9), expected="fails", because=(rest_at_stop,),
       rivals={"relevant ones alone": of_relevant_alone})  # fmt: skip
def attention_of_all(ds: xr.Dataset) -> Everywhere:
    """with step size 0.05 the attention of every query on relevant tokens comes close to 1, the
    limit 1 - eta^C: of relevant, confusion and irrelevant ones (over 0.9)"""
    return everywhere(stats.mean, stats.last(hinge(ds).attention_from))


@claim(
    "found here",
    below(-0.75),
    kind="own",
    law=falling(lambda t: 0.4 * np.exp(-(((t + 1.0) / 1500) ** 4))),
    rivals={"1 / t": as_power(-1.0), "t^-2": as_power(-2.0), "no fall": as_power(0.0)},
)
def falls_at_once(ds: xr.Dataset) -> Estimate:
    """under the hinge loss the rest stays, and then falls ever faster until training ends: no power
    of t (its exponent over the last factor of 2 of steps less that over the last decade)"""
    found = late_powers(ds)
    return stats.paired_difference(*(found.sel(window=w, drop=True) for w in list(WINDOWS)[::-1]))


@claim(
    "Proposition 2",
    equals(-1, within=0.25),
    expected="fails",
    because=(rest_at_stop, falls_at_once),
    law=as_power(-1.0),
    rivals={"no fall": as_power(0.0)},
)
def rate_before_stop(ds: xr.Dataset) -> Everywhere:
    """while the hinge loss is not zero the rest of the attention falls as 1 / t (exponent, over the
    last decade and over the last factor of 2 of the steps before training ends)"""
    return everywhere(stats.mean, late_powers(ds))


@claim("found here", equals(0, within=0.1), kind="own", law=as_power(0.0),
       rivals={"1 / t": as_power(-1.0), "t^-1/4": as_power(-0.25)})  # fmt: skip
def rest_stays(ds: xr.Dataset) -> Everywhere:
    """under the logistic loss, with which training never ends, the rest nearly stays (exponent,
    last decade)"""
    end = float(ds.step[-1])
    late = rest(ds.sel(objective="logistic", drop=True))
    return everywhere(
        lambda y: stats.power_law(y, "step", (end / 10, end)).slope, late, keep="step"
    )


@claim("Proposition 2, for a loss that does not end", above(0.9), kind="own",
       rivals={"attention stays": still})  # fmt: skip
def attention_goes_on(ds: xr.Dataset) -> Estimate:
    """with the logistic loss the mean attention on relevant tokens passes 0.9"""
    return stats.mean(stats.last(ds.sel(objective="logistic", drop=True).attention))


def norms_as(law: Any) -> Altered:
    return curve("query_norm", lambda ds: law(np.maximum(ds.step, 1.0)))


LOG, SUDDEN, STAYS = (
    norms_as(law)
    for law in (
        lambda t: np.sqrt(1 + 0.5 * np.log(t)),
        lambda t: np.sqrt(1 + (t / 1200) ** 2),
        lambda t: 1.8 + 0 * t,
    )
)


@claim("Lemma A.3.1, Claim 2 (A.48)", above(0), law=LOG, rivals={"no growth": STAYS})
def query_norm_grows(ds: xr.Dataset) -> Estimate:
    """the squared query norm grows before training ends (slope in log t, hinge loss, last decade of
    the steps)"""
    found = late_slopes(ds, hinge(ds).query_norm ** 2)
    return stats.mean(found.sel(window="a decade", drop=True))


@claim(
    "Lemma A.3.1, Claim 2 (A.48), with constants that stay",
    equals(1, times=2),
    expected="fails",
    because=(query_at_stop, falls_at_once),
    law=LOG,
    rivals={"as t^2": SUDDEN},
)
def query_norm_log(ds: xr.Dataset) -> Estimate:
    """the squared query norm grows linearly in log t, as its recursion does: with one slope over
    the last decade and over the last factor of 2 of the steps (ratio, hinge loss; up to a factor
    of 2)"""
    found = late_slopes(ds, hinge(ds).query_norm ** 2)
    return stats.paired_ratio(*(found.sel(window=w, drop=True) for w in list(WINDOWS)[::-1]))


@claim(
    "found here",
    between(0.1, 0.25),
    kind="own",
    rivals={"log t": norms_as(lambda t: np.sqrt(1 + np.log(t))), "no growth": STAYS},
)
def query_norm_logistic(ds: xr.Dataset) -> Estimate:
    """under the logistic loss, with which training never ends, it grows by 0.1 to 0.25 with each
    factor e of time (slope in log t, last decade)"""
    late = ds.sel(objective="logistic", drop=True)
    late = late.isel(step=(late.step >= float(late.step[-1]) / 10).values)
    return stats.mean(slope(late.query_norm**2, log(late.step.astype(float)), "step"))


def draw_rate(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Attention on other tokens in time")
    for name in ("hinge", "logistic"):
        one = ds.sel(objective=name).isel(step=slice(1, None))
        end = float(one.stopped_at.max()) if name == "hinge" else float(one.step[-1])
        one = one.isel(step=(one.step <= end).values)
        plot.curve(left, rest(one), "step", label=name, log="xy")
        norm2 = (one.query_norm**2).assign_attrs(long_name="squared query norm",
                                                 symbol=r"\|q_1\|^2")  # fmt: skip
        plot.curve(right, norm2, "step", label=name, log="x")
    last = float(ds.step[-1])
    t = np.geomspace(last / 10, last, 50)
    end = float(rest(ds.sel(objective="logistic")).isel(step=-1).mean())
    plot.theory_curve(left, t, end * last / t, "Proposition 2: $1/t$")
    plot.theory_curve(right, t, lambda t: 2 + np.log(t / t[0]), "Claim 2: $\\log t$")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig2_4",
        says="Attention on label-relevant tokens during training, in three readings of the "
        "setting.",
        trainings=Trainings(
            grid={**IN_TIME, "samples": [2, 8, 32, 200], "lr": 1.0, "reading": READINGS},
            seeds=20,
            quick={**SMALL, "samples": [2, 128], "seeds": 6},
        ),
        claims=(
            attention_rises,
            attention_near_one,
            attention_of_relevant,
            attention_shared,
            printed_start_frozen,
            shared_needs_two,
            per_position_needs_more,
        ),
        figure=draw,
    ),
    Experiment(
        "fig2_4_rate",
        says="What attention does before the hinge loss is zero, and when the loss never gets "
        "there: logistic loss, many steps.",
        trainings=Trainings(
            grid={
                **IN_TIME,
                "samples": 200,
                "steps": 20_000,
                "objective": cases(
                    {
                        "hinge": {"logistic": 0.0, "lr": 0.05},
                        "logistic": {"logistic": 1.0, "lr": 0.9},
                    }
                ),
            },
            seeds=20,
            quick={**SMALL, "samples": 128, "steps": 4000, "seeds": 4},
        ),
        claims=(
            rate_before_stop,
            falls_at_once,
            attention_of_all,
            rest_stays,
            attention_goes_on,
            query_norm_grows,
            query_norm_log,
            query_norm_logistic,
        ),
        figure=draw_rate,
    ),
)
