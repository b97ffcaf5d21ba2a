"""What is measured on the Datasets of the experiments; settings that they share."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import stats
from provingground.stats import Estimate

from . import theory
from .model import Config

SOLVED = 1e-3  # section 3.5.1 calls a test hinge loss below this a success

PLAIN = Config()

OUTER = ("samples", "frac_disc", "confusion_ratio")  # the axes that success is averaged over

# The paper's step size; the quick scale takes ten times larger steps, a tenth as many. Quick grids
# have ten points at up to 128 labels or five at 256, so that all of them share two programs.
PAPER: dict[str, Any] = dict(lr=0.01, record=61)
QUICK: dict[str, Any] = dict(lr=0.1, record=21)

GCN = dict(attention=0.0, encoding=0.0, core_only=1.0)

NETWORKS = {
    "GT": {},
    "GT, no encoding": dict(encoding=0.0),
    "GT, core known": dict(encoding=0.0, core_only=1.0),
    "GCN, core known": GCN,
    "GCN, all rings": dict(attention=0.0, encoding=0.0),
}

# ---------------------------------------------------------------- success, labels and time


def end(y: xr.DataArray) -> xr.DataArray:
    return y.isel(step=-1, drop=True)


def solved(ds: xr.Dataset) -> xr.DataArray:
    """Whether a training ended with a test loss below 1e-3."""
    found = (end(ds.test_loss) < SOLVED).astype(float)
    found.attrs = {"long_name": "success rate", "symbol": ""}
    return found


def labels_at(ds: xr.Dataset) -> stats.Boundary:
    r"""$N_{50}$: labelled nodes at which half of the trainings succeed, by $\gamma_d$."""
    return stats.phase_boundary(solved(ds), "samples", "frac_disc", 0.5, method="logistic")


def labels_by_confusion(ds: xr.Dataset) -> stats.Boundary:
    r"""$N_{50}$ by $1 - \epsilon_S$, where it lies inside the axis."""
    y = solved(ds).assign_coords(confusion_ratio=1 - ds.confusion_ratio)
    y = y.rename(confusion_ratio="agreement")
    y.agreement.attrs = {"long_name": "agreement in the core", "symbol": r"(1-\epsilon_S)"}
    return stats.phase_boundary(y, "samples", "agreement", 0.5, method="logistic")


def hitting_time(ds: xr.Dataset) -> xr.DataArray:
    """Step at which the test loss first falls below 1e-3, interpolated between recorded steps;
    NaN if it never does."""
    t = ds.step if "step" in ds.coords else ds.step_values
    below = ds.test_loss < SOLVED
    first = below.argmax("step")
    before = np.maximum(first - 1, 0)
    high, low = ds.test_loss.isel(step=before), ds.test_loss.isel(step=first)
    weight = ((high - SOLVED) / (high - low)).where(first > 0, 1.0)
    late, early = t.isel(step=first), t.isel(step=before)
    found = (early + weight * (late - early)).where(below.any("step"))
    found = found.drop_vars("step", errors="ignore")
    found.attrs = {"long_name": "steps until the test loss is below 0.001", "symbol": "T"}
    return found


def at_fraction(ds: xr.Dataset, fraction: float = 0.4) -> xr.Dataset:
    """The part at a discriminative fraction, where there are several."""
    return ds.sel(frac_disc=fraction, drop=True) if "frac_disc" in ds.dims else ds


def at_network(name: str, ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(network=name, drop=True)


def error_of(ds: xr.Dataset, network: str) -> Estimate:
    """Test error of a network at the end, over the numbers of labels."""
    return stats.mean(end(at_network(network, ds).test_error))


def gcn_advantage(ds: xr.Dataset) -> Estimate:
    """Success rate of the GCN on the core ring minus that of the GT, at 32 and 64 labels."""
    gcn, gt = (
        solved(at_network(name, ds)).sel(samples=[32, 64]) for name in ("GCN, core known", "GT")
    )
    return stats.paired_difference(gcn, gt)


def settling_time(ds: xr.Dataset) -> xr.DataArray:
    r"""Steps until the test loss has made 9/10 of its way from 1 to $2\hat\epsilon_0$."""
    goal = theory.final_loss(ds.inconsistent)
    level = goal + 0.1 * (1 - goal)
    below = ds.test_loss < level
    first = below.argmax("step")
    high = ds.test_loss.isel(step=np.maximum(first - 1, 0))
    low = ds.test_loss.isel(step=first)
    t = ds.step.values
    early, late = t[np.maximum(first.values - 1, 0)], t[first.values]
    found = early + (high - level) / (high - low) * (late - early)
    found = found.where(below.any("step")).drop_vars("step", errors="ignore")
    found.attrs = {"long_name": "steps to settle", "symbol": "T"}
    return found


def flip_exponent(ds: xr.Dataset) -> Estimate:
    r"""Exponent of the settling time in $1 - 2\epsilon_0$."""
    y = settling_time(ds)
    y = y.assign_coords(frac_inconsistent=1 - 2 * y.frac_inconsistent)
    return stats.power_law(y.rename(frac_inconsistent="kept"), "kept").slope


def time_exponent(ds: xr.Dataset, window: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    r"""Exponent of the steps needed in $\gamma_d$."""
    return stats.power_law(hitting_time(ds), "frac_disc", window).slope


def spread(y: xr.DataArray, along: str) -> Estimate:
    """Largest over smallest mean along an axis; the two are chosen with all seeds."""
    mean = y.mean("seed", skipna=False).values
    top, bottom = (y.isel({along: int(i)}, drop=True) for i in (mean.argmax(), mean.argmin()))
    return stats.paired_ratio(top, bottom)


def enough_steps(room: float) -> Callable[[dict[str, Any]], dict[str, int]]:
    r"""Steps that suffice with some room: those of a GCN grow as $\gamma_d^{-2}$ (3.12)."""

    def derive(settings: dict[str, Any]) -> dict[str, int]:
        gcn = settings.get("attention", PLAIN.attention) == 0
        flow_time = room * (3 + 2.3 / settings["frac_disc"] ** 2) if gcn else 80.0
        return {"steps": round(flow_time / settings["lr"])}

    return derive


def flow_steps(settings: dict[str, Any]) -> dict[str, int]:
    """As many steps as make the same time of the gradient flow."""
    return {"steps": round(30.0 / settings["lr"])}


# ------------------------------------------------------------------------------- coverage


def covered(ds: xr.Dataset) -> xr.DataArray:
    """Whether every pattern with every vote has a labelled node."""
    return ds.fewest > 0


def coverage_gap(ds: xr.Dataset) -> Estimate:
    """Success rate of trainings whose labelled nodes cover all kinds, minus that of the others."""
    return stats.jackknife(
        lambda y, c: y.where(c).mean() - y.where(~c).mean(), solved(ds), covered(ds)
    )


def covered_rate(ds: xr.Dataset) -> Estimate:
    """Success rate of trainings whose labels cover all kinds; Wilson, over seeds that have any."""
    rate = solved(ds).where(covered(ds)).mean([d for d in ds.test_loss.dims if d in OUTER])
    return stats.share(rate.dropna("seed"))


def coverage_ratio(ds: xr.Dataset) -> list[Estimate]:
    r"""$N_{50}$ over the number of labels that covers all kinds with probability 1/2."""
    points = labels_at(at_network("GT", ds)).points
    needed = theory.labels_to_cover(points.frac_disc, PLAIN.patterns)
    columns = (points[k] / needed for k in ("value", "low", "high"))
    return [Estimate(*map(float, e)) for e in zip(*(c.values for c in columns), strict=True)]


# ---------------------------------------------------------------------------- the encoding


def bias_gap(ds: xr.Dataset) -> xr.DataArray:
    r"""$b_{z_m} - \max_{z \neq z_m} b_z$ over distances 1 to 3, at the end of training."""
    b, margin = end(ds.dist_bias).sel(ring=slice(1, None)), ds.margin.sel(ring=slice(1, None))
    core = b.ring == margin.idxmax("ring")
    return b.where(core).max("ring") - b.where(~core).max("ring")


def apart(ds: xr.Dataset, form: str) -> Estimate:
    """Largest difference of the test loss from the training on counts."""
    gap = abs(ds.test_loss.sel(form=form) - ds.test_loss.sel(form="counts"))
    return stats.mean(gap.max("step"))


def later(ds: xr.Dataset, form: str) -> Estimate:
    """Steps needed over those of the training on counts, by trainings that both succeed."""
    time = hitting_time(ds)
    both = time.sel(form=[form, "counts"]).notnull().all("form")
    kept = time.isel(seed=both.values)
    return stats.paired_ratio(kept.sel(form=form), kept.sel(form="counts"))


def ordered_as_margins(ds: xr.Dataset) -> xr.DataArray:
    """Whether the biases of rings 1 and 2 are in the order of their mean margins."""
    b, margin = end(ds.dist_bias), ds.margin
    up = b.sel(ring=2, drop=True) - b.sel(ring=1, drop=True)
    return (up * (margin.sel(ring=2, drop=True) - margin.sel(ring=1, drop=True)) > 0).astype(float)


def bias_sum(ds: xr.Dataset) -> Estimate:
    """Largest absolute sum of the biases, which exact gradients keep at zero."""
    total = abs(ds.dist_bias.sum("ring"))
    return stats.mean(total.max([d for d in total.dims if d != "seed"]))


SETTINGS = {
    "standard": {},
    r"$\gamma_d = 0.2$": dict(frac_disc=0.2),
    r"$\epsilon_S = 0.2$": dict(confusion_ratio=0.2),
    r"$\gamma_d = 0.6$": dict(frac_disc=0.6),
    "vote at distance 2": dict(core=2),
}
