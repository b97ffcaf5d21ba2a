"""Figure 4.7: test loss against the fraction of a minority, the narrower or the wider group."""

import xarray as xr

from provingground.claims import above, below, claim, equals, shuffle
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings

from .excess import group_law, loss_is_entropy, wide_is_surer
from .shared import ZERO, as_power, change, draw_risks, factor, group_2, rise

# ------------------------------------------------------------- (b): the minority is the wider one


@claim(
    "found here",
    below(0.5),
    kind="own",
    rivals={
        "no effect": as_power("group_excess", "fraction", 0.0),
        "another order": shuffle("fraction"),
    },
)
def group_excess_falls(ds: xr.Dataset) -> Estimate:
    """raising its fraction from 0.001 to 0.3 lowers the excess risk of the wider group to less than
    half"""
    return factor(group_2(ds.group_excess), "fraction", 0.001, 0.3)


@claim(
    "Figure 4.7(b), Corollary 4.4.1(v)",
    above(0),
    bound="paper",
    expected="fails",
    because=(wide_is_surer,),
)
def average_loss_rises(ds: xr.Dataset) -> Estimate:
    """raising the fraction of the group with the larger covariance raises the average loss (loss at
    0.3 less that at 0.001)"""
    return rise(ds.test_loss, "fraction")


@claim(
    "Figure 4.7(b), Corollary 4.4.1(v)",
    above(0),
    bound="paper",
    expected="fails",
    because=(group_law,),
)
def group_loss_rises(ds: xr.Dataset) -> Estimate:
    """raising the fraction of the group with the larger covariance raises its own loss, too
    (loss at 0.3 less that at 0.001)"""
    return rise(group_2(ds.group_loss), "fraction")


@claim("Corollary 4.4.1(v)", below(1), bound="paper",
       rivals={"rises": as_power("rate", "fraction", 0.1)})  # fmt: skip
def slower(ds: xr.Dataset) -> Estimate:
    """it slows descent with the step c/M_2, which is Algorithm 1's for means 0 (ratio of the rates
    at fractions 0.3 and 0.001)"""
    return change(ds.rate, "fraction", 0.001, 0.3)


@claim("found here", above(1), kind="own", rivals={"falls": as_power("flattest", "fraction", -0.1)})
def curvature_rises(ds: xr.Dataset) -> Estimate:
    """yet the smallest eigenvalue of the Hessian rises: the step 25/M_2 is what falls (ratio of the
    eigenvalues)"""
    return change(ds.flattest, "fraction", 0.001, 0.3)


# ----------------------------------------------------------- (a): the minority is the narrower one


@claim(
    "Figure 4.7(a), Corollary 4.4.1(iv)",
    below(0),
    bound="paper",
    expected="fails",
    because=(wide_is_surer,),
)
def average_loss_falls(ds: xr.Dataset) -> Estimate:
    """raising the fraction of the group with the smaller covariance lowers the average loss (loss
    at 0.5 less that at 0.01)"""
    return rise(ds.test_loss, "fraction")


@claim("found here", equals(1, times=1.6), kind="own",
       rivals={"1/fraction": as_power("group_excess", "fraction", -1.0),
               "1/root of the fraction": as_power("group_excess", "fraction", -0.5)})  # fmt: skip
def group_excess_flat(ds: xr.Dataset) -> Estimate:
    """the excess risk of that group stays as it is (ratio of 0.5 to 0.01)"""
    return factor(group_2(ds.group_excess), "fraction", 0.01, 0.5)


@claim("Figure 4.7(a), Corollary 4.4.1(iv)", below(0), bound="paper")
def group_loss_falls(ds: xr.Dataset) -> Estimate:
    """it lowers the loss of that group too (loss at 0.5 less that at 0.01)"""
    return rise(group_2(ds.group_loss), "fraction")


@claim(
    "Corollary 4.4.1(iv)",
    above(1),
    bound="paper",
    rivals={"falls": as_power("rate", "fraction", -0.1)},
)
def faster(ds: xr.Dataset) -> Estimate:
    """it speeds descent with the step c/M_2, which is Algorithm 1's for means 0 (ratio of the rates
    at fractions 0.5 and 0.01)"""
    return change(ds.rate, "fraction", 0.01, 0.5)


@claim(
    "found here",
    above(1),
    kind="own",
    rivals={"falls": as_power("rate_stable", "fraction", -0.1)},
)
def faster_stable(ds: xr.Dataset) -> Estimate:
    """and with the largest stable step (ratio of the rates at fractions 0.5 and 0.01)"""
    return change(ds.rate_stable, "fraction", 0.01, 0.5)


EXPERIMENTS = (
    Experiment(
        "fig4_7b",
        says="Test loss against the fraction of a minority with the larger covariance.",
        trainings=Trainings(
            grid={**ZERO, "var_2": 10.0, "fraction": [0.001, 0.01, 0.05, 0.1, 0.2, 0.3]},
            seeds=64,
            quick={"test_samples": 5000, "fraction": [0.001, 0.05, 0.3], "seeds": 20},
        ),
        claims=(
            group_excess_falls,
            average_loss_rises,
            group_loss_rises,
            slower,
            curvature_rises,
            loss_is_entropy,
        ),
        figure=draw_risks("Minority with the larger covariance", "fraction"),
    ),
    Experiment(
        "fig4_7a",
        says="Test loss against the fraction of a minority with the smaller covariance.",
        trainings=Trainings(
            grid={**ZERO, "var_1": 10.0, "fraction": [0.01, 0.1, 0.2, 0.3, 0.4, 0.5]},
            seeds=64,
            quick={"test_samples": 5000, "fraction": [0.01, 0.2, 0.5], "seeds": 24},
        ),
        claims=(
            average_loss_falls,
            group_loss_falls,
            group_excess_flat,
            faster,
            faster_stable,
            loss_is_entropy,
        ),
        figure=draw_risks("Minority with the smaller covariance", "fraction"),
    ),
)
