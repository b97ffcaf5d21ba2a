"""Training on counts, on nodes, with noise, and with fresh samples at every step."""

from typing import Any

import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, below, between, claim
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings, cases


def apart(ds: xr.Dataset, form: str) -> Estimate:
    """Largest difference of the test loss from the training on counts."""
    gap = abs(ds.test_loss.sel(form=form) - ds.test_loss.sel(form="counts"))
    return stats.mean(gap.max("step"))


def slower(ds: xr.Dataset, form: str) -> Estimate:
    """Test loss summed over time, over that of the training on counts: all trainings count, for
    none need come to an end."""
    total = ds.test_loss.mean("step")
    return stats.paired_ratio(*(total.sel(form=f, drop=True) for f in (form, "counts")))


def moved(form: str, times: float) -> Altered:
    """The Dataset whose losses of a form are a number of times those on counts."""
    return lambda ds: ds.assign(
        test_loss=ds.test_loss.where(
            ds.form != form, times * ds.test_loss.sel(form="counts", drop=True)
        )
    )


@claim("derived here", below(1e-2), kind="own", rivals={"5% off": moved("nodes", 1.05)})
def counts_are_exact(ds: xr.Dataset) -> Estimate:
    """on nodes the test loss is that on counts (largest difference)"""
    return apart(ds, "nodes")


@claim(
    "found here, with the noise of section 3.5.1",
    between(0.9, 1.1),
    kind="own",
    rivals={"a fifth more": moved("noisy nodes", 1.2)},
)
def noise_is_small(ds: xr.Dataset) -> Estimate:
    """the feature noise of the paper changes the loss, summed over time, by less than 10%"""
    return slower(ds, "noisy nodes")


@claim(
    "derived here",
    between(0.9, 1.1),
    kind="own",
    rivals={"a fifth more": moved("fresh samples", 1.2)},
)
def banks_are_enough(ds: xr.Dataset) -> Estimate:
    """and so do fresh samples at every step instead of 16 in turn"""
    return slower(ds, "fresh samples")


def forms(bank: int) -> dict[str, dict[str, Any]]:
    """With as many samples for each node as there are steps, none is used twice."""
    return {
        "counts": {},
        "nodes": dict(simulator="nodes"),
        "noisy nodes": dict(simulator="nodes", noise=0.01),
        "fresh samples": dict(bank=bank),
    }


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Counts, nodes, noise and fresh samples", width=4.6)
    plot.curve(ax, ds.test_loss, "step", hue="form")
    return fig


EXPERIMENTS = (
    Experiment(
        "reduction",
        says="Training on counts, on nodes, with noise, and with fresh samples at every step.",
        trainings=Trainings(
            grid={
                "lr": 0.1,
                "record": 61,
                "confusion_ratio": 0.1,
                "samples": 64,
                "steps": 400,
                "form": cases(forms(401)),
            },
            seeds=20,
            quick={
                "record": 21,
                "nodes": 300,
                "degree": 36,
                "width": 100,
                "samples": 48,
                "steps": 300,
                "form": cases(forms(301)),
                "seeds": 4,
            },
        ),
        claims=(counts_are_exact, noise_is_small, banks_are_enough),
        figure=draw,
    ),
)
