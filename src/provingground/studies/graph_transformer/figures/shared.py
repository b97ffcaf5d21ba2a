"""What several rooms share: networks and sizes, success and times, rival Datasets, settings."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered
from provingground.stats import Estimate
from provingground.study import Trainings, axis, cases

from .. import theory

Window = tuple[float, float]  # of an axis, where a law is fitted

EARLY = 0.1  # the level of a loss that every kind of node reaches
SOLVED = 1e-3  # section 3.5.1 calls a test hinge loss below this a success

# The paper's step size; the quick scale takes ten times larger steps, a tenth as many. Quick grids
# have up to 128 labels, so that all of them share one program.
PAPER: dict[str, Any] = dict(lr=0.01, record=61)
QUICK: dict[str, Any] = dict(lr=0.1, record=21)

GCN = dict(attention=0.0, bias_scale=0.0, core_only=1.0)

NETWORKS: dict[str, dict[str, Any]] = {
    "GT": {},
    "GT, no encoding": dict(bias_scale=0.0),
    "GT, core known": dict(bias_scale=0.0, core_only=1.0),
    "GCN, core known": GCN,
    "GCN, all rings": dict(attention=0.0, bias_scale=0.0),
}

# ------------------------------------------------------------------------- parts of a Dataset


def solved(ds: xr.Dataset) -> xr.DataArray:
    """Whether a training ended with a test loss below 1e-3."""
    found = (stats.last(ds.test_loss) < SOLVED).astype(float)
    found.attrs = {"long_name": "success rate", "symbol": ""}
    return found


def time_of(ds: xr.Dataset, probe: str = "test_loss", level: float = SOLVED) -> xr.DataArray:
    """Step at which a loss first falls to a level; NaN if it never does."""
    t = ds.step if "step" in ds.coords else ds.step_values
    found = stats.hitting_time(ds[probe], level, t=t.astype(float))
    found.attrs = {"long_name": f"steps until the test loss is below {level:g}", "symbol": "T"}
    return found


def at_network(name: str, ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(network=name, drop=True)


def time_exponent(
    ds: xr.Dataset, over: str = "frac_disc", window: Window | None = None
) -> Estimate:
    """Exponent of the steps needed along an axis."""
    return stats.power_law(time_of(ds), over, window).slope


def labels_at(
    ds: xr.Dataset, of: str = "frac_disc", window: Window | None = None
) -> stats.Boundary:
    r"""$N_{50}$: labelled nodes at which half of the trainings succeed, along another axis."""
    return stats.phase_boundary(solved(ds), "samples", of, 0.5, method="logistic", window=window)


def labels_exponent(
    ds: xr.Dataset, of: str = "frac_disc", window: Window | None = None
) -> Estimate:
    """Exponent of the labels needed along an axis; unknown unless they are known at all of it."""
    found = labels_at(ds, of, window)
    return stats.UNDECIDED if found.left_out else found.law.slope


def against(ds: xr.Dataset, axis: str, values: Any, name: str, symbol: str) -> xr.Dataset:
    """The Dataset with another number in the place of those on an axis."""
    made = ds.assign_coords({axis: np.asarray(values, float)}).rename({axis: name})
    made[name].attrs = {"long_name": name.replace("_", " "), "symbol": symbol}
    return made


# ------------------------------------------------------------------------------ rival Datasets


def success_at(needed: Callable[[xr.Dataset], Any]) -> Altered:
    """The Dataset in which a training succeeds from so many labels on, but for the luck of its
    seed (up to a factor 1.3 either way)."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        luck = xr.DataArray(np.linspace(-1, 1, ds.sizes["seed"]), {"seed": ds.seed}, "seed")
        wins = ds.samples >= needed(ds) * 1.3**luck
        loss = xr.where(wins, SOLVED / 10, 0.5) + 0 * ds.test_loss
        return ds.assign(test_loss=loss.transpose(*ds.test_loss.dims).astype(ds.test_loss.dtype))

    return altered


def falls_at(
    time: Callable[[xr.Dataset], Any], probe: str = "test_loss", to: float = 0.0
) -> Altered:
    """The Dataset whose loss falls on a line from 1 to `to`, and is there after that time; seeds
    differ by up to 2%."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        t = ds.step if "step" in ds.coords else ds.step_values
        luck = xr.DataArray(np.linspace(0.98, 1.02, ds.sizes["seed"]), {"seed": ds.seed}, "seed")
        part = (t / (time(ds) * luck)).clip(0, 1)
        made = (1 - (1 - to) * part + 0 * ds[probe]).transpose(*ds[probe].dims)
        return ds.assign({probe: made.astype(ds[probe].dtype)})

    return altered


def untrained(probe: str) -> Altered:
    """The Dataset in which a probe stays as it is at the start."""
    return lambda ds: ds.assign(
        {probe: (0 * ds[probe] + ds[probe].isel(step=0)).transpose(*ds[probe].dims)}
    )


def doubled(probe: str, factor: float) -> Altered:
    """The Dataset with a probe a number of times as large."""
    return lambda ds: ds.assign({probe: factor * ds[probe]})


# ----------------------------------------------------------------------------------- settings


def enough_steps(room: float) -> Callable[[Mapping[str, Any]], dict[str, int]]:
    r"""Steps that suffice with some room: those of a GCN grow as $\gamma_d^{-2}$ (3.12)."""

    def derive(settings: Mapping[str, Any]) -> dict[str, int]:
        gcn = settings["attention"] == 0
        flow_time = room * (3 + 2.3 / settings["frac_disc"] ** 2) if gcn else 80.0
        return {"steps": round(flow_time / settings["lr"])}

    return derive


def flow_steps(time: float) -> Callable[[Mapping[str, Any]], dict[str, int]]:
    """As many steps as make the same time of the gradient flow."""
    return lambda settings: {"steps": round(time / settings["lr"])}


# Figures 3.7 and B.6: quick sizes go from 0.18, where 128 labels are enough for a GCN, to 0.6,
# where they are for a GT.
STEPS = Trainings(
    grid={
        **PAPER,
        "samples": 800,
        "network": cases(
            {
                "GT": dict(confusion_ratio=0.05),
                "GCN, core known": dict(confusion_ratio=0.2, **GCN),
            }
        ),
        "frac_disc": axis(
            [0.8, 0.6, 0.5, 0.4, 0.33, 0.28, 0.25, 0.2, 0.16], sets=enough_steps(2.0)
        ),
    },
    seeds=20,
    quick={**QUICK, "samples": 128, "frac_disc": [0.6, 0.5, 0.4, 0.27, 0.18], "seeds": 5},
    domain={"key_error": (0.02, 0.4), "value_error": (0.01, 0.2), "init_scale": (0.003, 0.03)},
)


# ------------------------------------------------------------------------------------ drawing


def draw_needed(
    ax: Any, ds: xr.Dataset, found: stats.Boundary, predicted: float, over: str, cover: bool = False
) -> None:
    """The labels needed along an axis, beside the paper's power of it."""
    plot.law(ax, found.points, over, fit=found.law, predicted=predicted, label="measured")
    if cover:
        x = np.geomspace(float(ds.frac_disc.min()), float(ds.frac_disc.max()), 100)
        labels = theory.labels_to_cover(x, int(ds.patterns))
        plot.theory_curve(ax, x, labels, "labels that cover all kinds")
    ax.set_ylabel("labelled nodes for half of the trainings, $N_{50}$")
    ax.set_xlabel(plot.label(ds[over]))


def draw_success(ax: Any, ds: xr.Dataset, x: str) -> None:
    """Success by labelled nodes and another axis."""
    plot.heatmap(ax, solved(ds), x, "samples", log="y", limits=(0, 1))
