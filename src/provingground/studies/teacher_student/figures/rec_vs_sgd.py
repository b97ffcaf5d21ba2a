"""Lemma C.2: online SGD with large batches and without noise follows the recursion."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import below, claim
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings, cases

from .shared import TASKS, forms, of

SMALL = {name: {**task, "tokens": 12} for name, task in TASKS.items()}


def deviation(ds: xr.Dataset, probe: str) -> Estimate:
    """Largest relative deviation of SGD from the recursion over recorded steps from 30 on."""
    sgd, population = (of(ds, f)[probe].sel(step=slice(30, None)) for f in ("SGD", "recursion"))
    return stats.agreement(sgd, population)


def ahead(probe: str, factor: float):
    """The Dataset whose SGD is off by a factor."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        off = xr.where(ds.form == "SGD", factor, 1.0)
        return ds.assign({probe: (ds[probe] * off).transpose(*ds[probe].dims)})

    return altered


@claim("Lemma C.2", below(0.01), rivals={"2% more": ahead("leak", 1.02)})
def same_leak(ds: xr.Dataset) -> Estimate:
    """the leak is that of the recursion at every step (largest relative deviation)"""
    return deviation(ds, "leak")


@claim("Lemma C.2", below(0.03), rivals={"6% more": ahead("test_loss", 1.06)})
def same_loss(ds: xr.Dataset) -> Estimate:
    """the excess loss is that of the recursion at every step (largest relative deviation)"""
    return deviation(ds, "test_loss")


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="SGD with large batches against the recursion")
    for ax, probe, log in ((left, "test_loss", "xy"), (right, "leak", "x")):
        plot.curve(ax, of(ds, "SGD")[probe], "step", hue="task", log=log)
        for task in ds.task.values:
            one = of(ds, "recursion").sel(task=task)[probe].mean("seed")
            plot.theory_curve(ax, one.step, one, "population recursion")
    return fig


EXPERIMENTS = (
    Experiment(
        "rec_vs_sgd",
        says="Online SGD with large batches and without noise against the recursion.",
        trainings=Trainings(
            grid={
                "task": cases(
                    {n: SMALL[n] for n in ("CNN, ReLU", "GCN, leaky ReLU", "STS", "GSLP")}
                ),
                "form": forms(600, batch=2000),
                "noise": 0.0,
                "horizon": 600,
                "record": 41,
            },
            seeds=8,
            quick={  # one teacher: two activations share a program
                "task": cases({n: SMALL[n] for n in ("GCN, ReLU", "GCN, leaky ReLU")}),
                "form": forms(300, batch=300),
                "dim": 5,
                "outputs": 5,
                "scale": 2.0,
                "horizon": 300,
                "seeds": 6,
            },
        ),
        claims=(same_leak, same_loss),
        figure=draw,
    ),
)
