"""Figure 4: a student of the first layer of a network that reads MNIST, in time."""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, between, claim, equals, exchange
from provingground.stats import (
    Estimate,
    Everywhere,
    everywhere,
    mean,
    paired_difference,
    paired_ratio,
)
from provingground.study import Experiment

from .shared import DIGITS, LONG, SHORT, at_end, short, short_and_long


def stopped(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose students stop after a twentieth of the steps."""
    at = int(ds.step[-1]) // 20
    early = ds[["loss", "test_loss", "cosine", "seen_cosine"]].sel(step=at, method="nearest")
    return ds.assign({n: (v + 0 * ds[n]).transpose(*ds[n].dims) for n, v in early.items()})


EARLY = {"stopped early": stopped}
LARGE = {"steps exchanged": exchange("student", *zip(SHORT, LONG, strict=True))}


@claim("Figure 4(a)", below(0.01), rivals=EARLY)
def loss_converges(ds: xr.Dataset) -> Everywhere:
    """the training loss gets small: it ends below 1% of that at the start, with ten times larger
    steps as well"""
    return everywhere(mean, at_end(short_and_long(ds)).loss)


@claim("found here", below(0.1), kind="own", rivals=LARGE)
def not_at_rest(ds: xr.Dataset) -> Everywhere:
    """the training loss is not at rest where the training ends: with ten times larger steps it
    ends below a tenth of that (ratio)"""
    loss = at_end(ds).loss
    few, many = loss.sel(student=list(SHORT)), loss.sel(student=list(LONG))
    return everywhere(paired_ratio, many.assign_coords(student=few.student), few)


@claim("Figure 4(b)", above(0.9), bound="paper", rivals=EARLY)
def similarity(ds: xr.Dataset) -> Everywhere:
    """the cosine of the values and the teacher's kernels rises above 0.9, with either step size"""
    return everywhere(mean, at_end(short_and_long(ds)).cosine)


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    return ds.assign(cosine=ds.seen_cosine, seen_cosine=ds.cosine)


@claim("found here", below(0.5), kind="own", rivals={"the other way": exchanged})
def seen_first(ds: xr.Dataset) -> Everywhere:
    """what patches show is learned first: 1 - cosine in their metric is less than half of 1 -
    cosine, on average over the recorded steps"""
    at = short(ds).isel(step=slice(1, None))
    return everywhere(paired_ratio, 1 - at.seen_cosine.mean("step"), 1 - at.cosine.mean("step"))


@claim("found here", equals(1, within=0.15), kind="own")
def as_on_new_images(ds: xr.Dataset) -> Everywhere:
    """the loss on test images is that on training images (ratio at the end)"""
    end = at_end(short(ds))
    return everywhere(paired_ratio, end.test_loss, end.loss)


@claim("Section 4.2, for a teacher of our own", above(0.71), kind="own", bound="paper")
def teacher_accuracy(ds: xr.Dataset) -> Everywhere:
    """the network reads at least as many test images as the paper's, about 71%"""
    return everywhere(mean, short(ds).accuracy)


@claim("found here", between(-0.05, 0.05), kind="own")
def reads_as_well(ds: xr.Dataset) -> Everywhere:
    """the network reads as well with the student in place of its first layer (test accuracy)"""
    one = short(ds)
    return everywhere(paired_difference, one.student_accuracy, one.accuracy)


SGD = {"the other way": exchange("student", ("ReLU", "ReLU, SGD"))}


@claim("found here", above(10), kind="own", rivals=SGD)
def sgd_is_slow(ds: xr.Dataset) -> Estimate:
    """without Adam, by plain descent with steps of 0.05, the training loss ends over ten times
    higher (ratio)"""
    end = at_end(ds).loss
    return paired_ratio(end.sel(student="ReLU, SGD"), end.sel(student="ReLU"))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="A student of a layer that reads MNIST")
    at = ds.isel(step=slice(1, None))
    for name in (*SHORT, *LONG, "ReLU, SGD"):
        plot.curve(left, at.loss.sel(student=name), "step", label=name, log="xy")
    for name in SHORT:
        one = at.sel(student=name)
        plot.curve(right, one.cosine, "step", label=name, log="x")
        plot.curve(right, one.seen_cosine, "step", label=f"{name}, by patches", log="x")
    left.set_ylabel("training MSE over that at the start")
    right.set_ylabel("cosine of the values")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig4",
        says="Loss and cosine of a student of a layer that reads MNIST, in time.",
        trainings=DIGITS,
        claims=(
            loss_converges,
            not_at_rest,
            similarity,
            seen_first,
            as_on_new_images,
            teacher_accuracy,
            reads_as_well,
            sgd_is_slow,
        ),
        figure=draw,
    ),
)
