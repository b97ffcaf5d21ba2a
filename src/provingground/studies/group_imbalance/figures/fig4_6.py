"""Figure 4.6: test loss against the covariance and against the mean of a minority."""

import xarray as xr

from provingground.claims import above, below, claim, shuffle
from provingground.stats import Estimate, Everywhere, everywhere, paired_difference, worst
from provingground.study import Experiment, Trainings

from .excess import group_law, loss_is_entropy
from .shared import as_power, beside, draw_risks, factor, group_2, printed_rates, rise, typical

# --------------------------------------------------------------------------- (a): its covariance


def losses(ds: xr.Dataset) -> xr.DataArray:
    return beside([ds.test_loss, group_2(ds.group_loss)], "risk", ("average", "group 2"))


@claim("found here", below(0), kind="own", rivals={"another order": shuffle("var_2")})
def surer_as_it_widens(ds: xr.Dataset) -> Estimate:
    """the wider group 2, the surer the teacher is on it (its entropy at variance 8 less that at
    0.05)"""
    return rise(group_2(ds.group_loss - ds.group_excess), "var_2", 0.05, 8.0)


def dip(y: xr.DataArray) -> Estimate:
    """How far the lower of the two ends of the axis lies above the loss at variance 1."""
    middle = y.sel(var_2=1.0, drop=True)
    return worst([paired_difference(y.isel(var_2=i, drop=True), middle) for i in (0, -1)], "low")


@claim(
    "Figure 4.6(a), (P3)",
    above(0),
    bound="paper",
    expected="fails",
    because=(surer_as_it_widens,),
)
def loss_dips(ds: xr.Dataset) -> Everywhere:
    """average loss and loss of group 2 first fall and then rise with its covariance (the lower of
    the two ends less the loss at 1)"""
    return everywhere(dip, losses(ds), keep="var_2")


@claim("(P3)", above(1), bound="paper",
       rivals={"falls": as_power("group_excess", "var_2", -0.1)})  # fmt: skip
def group_excess_rises(ds: xr.Dataset) -> Estimate:
    """above 1 the excess risk of group 2 rises with its covariance (ratio of 8 to 1)"""
    return factor(group_2(ds.group_excess), "var_2", 1.0, 8.0)


@claim("(P3)", above(1), bound="paper", expected="fails", because=(group_law,))
def group_excess_rises_below(ds: xr.Dataset) -> Estimate:
    """below 1 it rises as the covariance shrinks (ratio of 0.05 to 1)"""
    return factor(group_2(ds.group_excess), "var_2", 1.0, 0.05)


# --------------------------------------------------------------------------------- (b): its mean


@claim("Figure 4.6(b)", above(0), bound="paper")
def losses_rise_as_printed(ds: xr.Dataset) -> Everywhere:
    """average loss and loss of group 2 rise from mean -2 to 0 (where the mean shrinks)"""
    return everywhere(lambda y: rise(y, "mean_2", -2.0, 0.0), losses(ds), keep="mean_2")


@claim("(P5), Corollary 4.4.1(iii)", above(1), bound="paper", expected="fails",
       because=(group_law,))  # fmt: skip
def group_risk_rises_with_the_mean(ds: xr.Dataset) -> Estimate:
    """the excess risk of group 2 is higher at mean -4 than at 0 (ratio)"""
    return factor(group_2(ds.group_excess), "mean_2", 0.0, -4.0)


@claim("(P5), Corollary 4.4.1(iii)", above(1), bound="paper", scale="paper")
def average_risk_rises_with_the_mean(ds: xr.Dataset) -> Estimate:
    """the average excess risk is higher at mean -4 than at 0 (ratio)"""
    return factor(ds.excess, "mean_2", 0.0, -4.0)


@claim("(P5), Corollary 4.4.1(iii)", above(1), bound="paper")
def error_rises_with_the_mean(ds: xr.Dataset) -> Estimate:
    """the distance to the teacher is larger at mean -4 than at 0 (median ratio)"""
    return typical(ds.error, "mean_2", 0.0, -4.0)


@claim("(P5), Corollary 4.4.1(iii)", below(1), bound="paper")
def rates_fall_with_the_mean(ds: xr.Dataset) -> Everywhere:
    """descent is slower at mean -4 than at 0, with the step c/M_2 and that of Algorithm 1 (median
    ratio of the rates)"""
    return everywhere(lambda y: typical(y, "mean_2", 0.0, -4.0), printed_rates(ds), keep="mean_2")


@claim("found here", below(1), kind="own", rivals={"another order": shuffle("mean_2")})
def stable_rate_falls_with_the_mean(ds: xr.Dataset) -> Estimate:
    """so it is with the largest stable step (median ratio of the rates)"""
    return typical(ds.rate_stable, "mean_2", 0.0, -4.0)


GROUPS = dict(fraction=0.2, mean_1=2.0)

EXPERIMENTS = (
    Experiment(
        "fig4_6a",
        says="Test loss against the covariance of a minority.",
        trainings=Trainings(
            grid={**GROUPS, "mean_2": -2.0, "var_2": [0.05, 0.25, 1.0, 2.0, 4.0, 8.0]},
            seeds=64,
            quick={"test_samples": 5000, "var_2": [0.05, 1.0, 8.0], "seeds": 40},
        ),
        claims=(
            loss_dips,
            surer_as_it_widens,
            group_excess_rises,
            group_excess_rises_below,
            loss_is_entropy,
        ),
        figure=draw_risks("Covariance of the minority", "var_2", log="x"),
    ),
    Experiment(
        "fig4_6b",
        says="Test loss against the mean of a minority; the paper's range is from -2 on.",
        trainings=Trainings(
            grid={**GROUPS, "mean_2": [-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 1.0, 2.0]},
            seeds=128,
            quick={"test_samples": 5000, "mean_2": [-4.0, -2.0, 0.0], "seeds": 20},
        ),
        claims=(
            losses_rise_as_printed,
            group_risk_rises_with_the_mean,
            average_risk_rises_with_the_mean,
            error_rises_with_the_mean,
            rates_fall_with_the_mean,
            stable_rate_falls_with_the_mean,
            loss_is_entropy,
        ),
        figure=draw_risks("Mean of the minority", "mean_2"),
    ),
)
