"""What is measured on the Datasets of the experiments, and how they are drawn."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.study import Estimate

from . import theory
from .model import PopulationConfig

PLAIN = PopulationConfig()

CNN = dict(teacher="cnn", tokens=36, group=4)
GCN = dict(teacher="gcn", tokens=20, group=3)
STS = dict(teacher="sts", tokens=20, group=4, kappa=1.0)
GSLP = dict(teacher="gslp", tokens=20, group=1, kappa=1.0, outputs=1, lr=0.05)

TASKS: dict[str, dict[str, Any]] = {
    "CNN, ReLU": {**CNN, "kappa": 0.0},
    "CNN, leaky ReLU": {**CNN, "kappa": 0.1},
    "GCN, ReLU": {**GCN, "kappa": 0.0},
    "GCN, leaky ReLU": {**GCN, "kappa": 0.1},
    "STS": STS,
    "GSLP": GSLP,
}


# ------------------------------------------------------------------------- what was set


def setting(ds: xr.Dataset, name: str) -> Any:
    """A parameter of the cells: along the axis of tasks, another axis, or one number."""
    if name in ds.coords:
        return ds[name]
    plain = json.loads(ds.attrs["settings"]).get(name, getattr(PLAIN, name))
    if "task" not in ds.coords:
        return plain
    tasks = np.atleast_1d(ds.task.values)
    values = [TASKS.get(str(t), {}).get(name, plain) for t in tasks]
    return xr.DataArray(values, {"task": tasks}, "task") if ds.task.ndim else values[0]


def settings(ds: xr.Dataset, *names: str) -> tuple[Any, ...]:
    return tuple(setting(ds, name) for name in names)


def of(ds: xr.Dataset, form: str) -> xr.Dataset:
    """The trainings of one form, at the recorded steps that they reached."""
    ds = ds.sel(form=form, drop=True)
    return ds.isel(step=slice(1, None)).sel(step=slice(1, int(ds.stopped_at.max())))


def each_task(
    measure: Callable[[xr.Dataset], Estimate], side: Any
) -> Callable[[xr.Dataset], Estimate]:
    """The worst estimate over the tasks."""
    return lambda ds: stats.worst([measure(ds.sel(task=t)) for t in ds.task.values], side)


def last_decade(y: xr.DataArray) -> tuple[float, float]:
    end = float(y.step[-1])
    return end / 10, end


def late_slope(form: str, probe: str) -> Callable[[xr.Dataset], Estimate]:
    """Exponent of a probe in t over the last decade of a training."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = of(ds, form)[probe]
        return stats.power_law(y, "step", last_decade(y)).slope

    return measure


def final(form: str, ratio: Callable[[xr.Dataset], xr.DataArray]) -> Callable[..., Estimate]:
    """The mean over seeds of a function of the Dataset at the last step."""
    return lambda ds: stats.mean(ratio(of(ds, form).isel(step=-1)))


# --------------------------------------------------------------------------- Theorem 3.1


def over_excess_law(ds: xr.Dataset) -> xr.DataArray:
    r"""$4\eta T(L - L_{\rm opt})/(KD(D-K))$."""
    return ds.test_loss / theory.excess_law(*settings(ds, "tokens", "group", "lr"), ds.step)


def over_leak_law(ds: xr.Dataset) -> xr.DataArray:
    d, k, lr, kappa = settings(ds, "tokens", "group", "lr", "kappa")
    return ds.leak / theory.leak_law(d, k, lr, ds.energy, ds.step, kappa)


def over_score_identity(ds: xr.Dataset) -> xr.DataArray:
    return ds.score_error / theory.score_distance(ds.leak, *settings(ds, "tokens", "group"))


def floor(ds: xr.Dataset, leak: xr.DataArray) -> xr.DataArray:
    d, k, lr, kappa, dim, outputs, noise, batch = settings(
        ds, "tokens", "group", "lr", "kappa", "dim", "outputs", "noise", "batch"
    )
    return theory.sgd_floor(leak, d, k, lr, kappa, dim * outputs, noise, batch)


def predicted_loss(ds: xr.Dataset) -> xr.DataArray:
    """Recursion plus floor, at the steps that SGD reached."""
    at = of(ds, "recursion").sel(step=of(ds, "SGD").step)
    return at.test_loss + floor(at, at.leak)


def sgd_over_predicted(ds: xr.Dataset) -> Estimate:
    """Excess loss of SGD in the last quarter of the training, over recursion plus floor."""
    sgd = of(ds, "SGD").test_loss
    late = sgd.step >= 0.75 * sgd.step[-1]
    return stats.paired_ratio(sgd[..., late], predicted_loss(ds)[..., late])


def draw_excess(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Excess loss of the student")
    sgd, population = of(ds, "SGD"), of(ds, "recursion")
    plot.curve(left, sgd.test_loss, "step", hue="task", log="xy")
    for task in ds.task.values:
        one = population.sel(task=task)
        t = one.step.values
        plot.theory_curve(left, t, one.test_loss.mean("seed"), "population recursion")
        late = t[t > 3000]
        law = theory.excess_law(*settings(one, "tokens", "group", "lr"), late)
        plot.theory_curve(left, late, law, r"$KD(D-K)/(4\eta t)$")
    ratio = over_excess_law(population).transpose("task", "seed", "step")
    ratio.attrs = {"long_name": "recursion over", "symbol": "KD(D-K)/(4\\eta t)"}
    plot.curve(right, ratio, "step", hue="task", log="x")
    plot.theory_curve(right, [1, float(ds.step[-1])], [1, 1], "law")
    right.set_ylim(0, 2)
    return fig
