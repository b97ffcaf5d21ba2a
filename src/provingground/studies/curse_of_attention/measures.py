"""What is measured on the Datasets of the experiments, and how they are drawn."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.study import Estimate

from . import theory
from .model import MIX, UNIT, Config

PLAIN = Config()
MODES = {"mix": dict(mode=MIX), "unit": dict(mode=UNIT)}


def end(y: xr.DataArray) -> xr.DataArray:
    """The value at the end of training."""
    return y.isel(step=-1, drop=True)


def each(y: xr.DataArray, *dims: str) -> list[xr.DataArray]:
    """The cells along some dims, one by one."""
    cells = y.stack(cell=dims)
    return [cells.isel(cell=i, drop=True) for i in range(cells.sizes["cell"])]


def over_zero(ds: xr.Dataset, *dims: str) -> list[Estimate]:
    """OOD risk of attention over that of the zero predictor, in every cell of some dims."""
    pairs = zip(each(end(ds.ood_loss), *dims), each(ds.zero_ood, *dims), strict=True)
    return [stats.paired_ratio(a, b) for a, b in pairs]


def predicted(ds: xr.Dataset, which: str) -> xr.DataArray:
    """A prediction of the theory at every noise and mode of the dataset."""
    cells = [
        [theory.theory(Config(noise=float(s), **MODES[str(f)])).values[which] for s in ds.noise]
        for f in ds.features
    ]
    return xr.DataArray(cells, [ds.features, ds.noise])


def draw_risks(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Risk where last and next value differ in sign")
    for ax, f in zip(axes, ds.features.values, strict=True):
        at = ds.sel(features=f).isel(noise=slice(1, None))  # without noise the linear risk is zero
        plot.curve(ax, end(at.ood_loss), "noise", label="attention", log="xy")
        plot.curve(ax, at.last_ood, "noise", label="last value", log="xy")
        plot.curve(ax, at.fitted_ood, "noise", label="residual linear, trained", log="xy")
        for name, words in (("zero_ood", "zero predictor"), ("linear_loss", "linear, $w^*$")):
            plot.theory_curve(ax, at.noise, predicted(ds, name).sel(features=f)[1:], words)
        ax.set_ylabel(r"OOD risk, $R_{\mathrm{OOD}}$")
        ax.set_title(str(f))
    return fig


np, MIX, UNIT  # noqa: B018
