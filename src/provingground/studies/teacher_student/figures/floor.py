"""What noise adds to SGD: label noise, and that of the inputs of a batch, each by itself."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, claim, equals
from provingground.stats import Estimate, Everywhere
from provingground.study import Experiment, Trainings, cases

from .shared import each, floor, forms, late, of, over_floor, sgd_is, with_floor

SMALL: dict[str, Any] = dict(dim=8, outputs=8, scale=2.0)
TASKS: dict[str, dict[str, Any]] = {
    "STS": dict(teacher="sts", tokens=12, group=3, kappa=1.0, **SMALL),
    "GSLP": dict(teacher="gslp", tokens=10, group=1, kappa=1.0, lr=0.05, **SMALL)
    | dict(outputs=1, scale=4.0),
    "GCN": dict(teacher="gcn", tokens=12, group=3, kappa=0.0, **SMALL),
    "CNN": dict(teacher="cnn", tokens=12, group=3, kappa=0.0, **SMALL),
}


@claim(
    "derived from Lemma C.2",
    equals(1, within=0.07),
    kind="own",
    law=sgd_is(),
    rivals={
        "no floor": sgd_is(times=0.0),
        "labels through the values alone": sgd_is("labels"),
        "labels alone": sgd_is("labels", "attention"),
    },
)
def floor_law(ds: xr.Dataset) -> Everywhere:
    """the excess loss of SGD is that of the population plus the floor of noisy labels and of the
    inputs of a batch (ratio, last quarter), for every teacher, batch and label noise"""
    return each(tuple(d for d in ("task", "batch", "noise") if d in ds.dims), over_floor, ds)


def clean(ds: xr.Dataset) -> xr.Dataset:
    """Without label noise."""
    return ds.sel(noise=0.0) if "noise" in ds.dims else ds


def excess_of_inputs(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """What SGD has over the recursion, and what the inputs of a batch should add to it."""
    sgd, population = of(ds, "SGD"), of(ds, "recursion")
    over = late(sgd.test_loss - population.test_loss.sel(step=sgd.step), 0.5)
    return over, late(floor(sgd, population).inputs, 0.5)


def inputs_as(power: float) -> Altered:
    """The Dataset in which SGD without label noise has, over the recursion, what the inputs of the
    largest batch add, times a power of the batch."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = ds.test_loss.copy(deep=True)
        for task in ds.task.values:
            for batch in ds.batch.values:
                one = ds.sel(task=task, noise=0.0)
                exact = of(one.sel(batch=batch), "recursion").test_loss
                at = {"task": task, "noise": 0.0, "batch": batch, "form": "SGD"}
                sgd = of(one.sel(batch=batch), "SGD").test_loss
                size = 0.02 * (float(batch) / float(ds.batch[-1])) ** power
                wanted = exact.sel(step=sgd.step) * (1 + size)
                place = {**at, "step": sgd.step}
                made.loc[place] = wanted.transpose(*made.loc[place].dims).values
        return ds.assign(test_loss=made)

    return altered


@claim(
    "derived from Lemma C.2",
    equals(-1, within=0.4),
    kind="own",
    law=inputs_as(-1.0),
    rivals={"N^-1/2": inputs_as(-0.5), "N^-2": inputs_as(-2.0)},
)
def inputs_power(ds: xr.Dataset) -> Everywhere:
    """without label noise SGD stays over the recursion by a part that falls as 1/N (exponent)"""

    def exponent(at: xr.Dataset) -> Estimate:
        sgd, population = of(at, "SGD"), of(at, "recursion")
        exact = population.test_loss.sel(step=sgd.step)
        part = late(sgd.test_loss, 0.5).mean("step") / late(exact, 0.5).mean("step") - 1
        return stats.power_law(part, "batch").slope

    return each("task", exponent, clean(ds))


def inputs_times(factor: float) -> Altered:
    """The Dataset in which the inputs of a batch add a multiple of what they should."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = sgd_is("inputs")(ds)
        plain = sgd_is(times=0.0)(ds)
        return ds.assign(test_loss=plain.test_loss + factor * (made.test_loss - plain.test_loss))

    return altered


@claim(
    "derived from Lemma C.2",
    equals(1, within=0.5),
    kind="own",
    law=inputs_times(1.0),
    rivals={"twice that": inputs_times(2.0), "a third of it": inputs_times(1 / 3)},
)
def inputs_constant(ds: xr.Dataset) -> Everywhere:
    """where the activation is the identity that part is what the inputs of a batch should add
    (ratio)"""

    def ratio(at: xr.Dataset) -> Estimate:
        over, expected = excess_of_inputs(at)
        return stats.paired_ratio(over, expected)

    at = clean(ds)
    return each(("task", "batch"), ratio, at.isel(task=np.flatnonzero(at.kappa == 1)))


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="What SGD has over the population")
    for ax, sigma in zip(axes, ds.noise.values, strict=False):
        parts, laws = [], []
        for task in ds.task.values:
            row, law = [], []
            for batch in ds.batch.values:
                at = ds.sel(task=task, batch=batch, noise=sigma)
                exact = late(of(at, "recursion").test_loss.sel(step=of(at, "SGD").step))
                row.append(late(of(at, "SGD").test_loss).mean("step") / exact.mean("step") - 1)
                law.append(float((late(with_floor(at)).mean() / exact.mean()) - 1))
            parts.append(xr.concat(row, ds.batch, coords="minimal", compat="override"))
            laws.append(law)
        y = xr.concat(parts, ds.task, coords="minimal", compat="override")
        y.attrs = {"long_name": "excess of SGD over that of the recursion, less 1"}
        plot.curve(
            ax, y.transpose("task", "seed", "batch"), "batch", hue="task", log="xy", line=False
        )
        for law in laws:
            plot.theory_curve(ax, ds.batch.values, np.array(law), "floor")
        ax.set_title(rf"label noise $\sigma_\xi = {sigma:g}$")
    return fig


def draw_base(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="SGD, the population and its floor", width=4.2)
    sgd = of(ds, "SGD").test_loss
    plot.curve(ax, sgd, "step", log="xy", label="SGD")
    exact = of(ds, "recursion").test_loss.sel(step=sgd.step).mean("seed")
    plot.theory_curve(ax, sgd.step, exact, "recursion")
    plot.theory_curve(ax, sgd.step, with_floor(ds).mean("seed"), "recursion + floor")
    return fig


EXPERIMENTS = (
    Experiment(
        "floor",
        says="SGD beside the recursion with and without label noise, for small and large batches.",
        trainings=Trainings(
            grid={
                "task": cases(TASKS),
                "form": forms(3000),
                "batch": [10, 20, 40, 80],
                "noise": [0.0, 1.0],
                "horizon": 3000,
                "record": 61,
                "test_samples": 1,
                "frame": 5,
            },
            seeds=32,
            quick={
                "task": cases({n: TASKS[n] for n in ("STS", "GCN")}),
                "form": forms(2000),
                "batch": [10, 40],
                "noise": [0.0, 0.5],
                "horizon": 2000,
                "seeds": 8,
            },
        ),
        claims=(floor_law, inputs_power, inputs_constant),
        figure=draw,
    ),
    Experiment(
        "floor_base",
        says="The same at one setting, from which the others of its domain are drawn.",
        trainings=Trainings(
            grid={
                "form": forms(4000),
                **TASKS["STS"],
                "noise": 0.5,
                "batch": 10,
                "horizon": 4000,
                "record": 61,
                "test_samples": 1,
                "frame": 5,
            },
            seeds=16,
            quick={"form": forms(2000), "horizon": 2000, "seeds": 8},
            # Sizes are shapes, so few of them are drawn. Late: T* is below 150 steps everywhere.
            domain={
                "teacher": ["gcn", "sts", "gslp"],
                "kappa": (0.0, 1.0),
                "scale": (2.0, 4.0),
                "lr": (0.03, 0.1),
                "noise": (0.1, 1.0),
                "batch": [10, 20, 100],
                "group": [2, 3],
            },
        ),
        claims=(floor_law,),
        figure=draw_base,
    ),
)
