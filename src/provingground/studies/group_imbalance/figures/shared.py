"""What several rooms share: settings, ratios between two ends of an axis, rates, late parts of
descents, and how rates and descents are drawn."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import axis

from .. import theory

ZERO: dict[str, Any] = dict(mean_1=0.0, mean_2=0.0)
# Two neurons are quicker, and have their minimiser near with fewer samples.
TWO: dict[str, Any] = dict(width=2, samples=4000)
STEPS = {"rate": r"$\eta_0 = c/M_2$", "rate_stable": r"$\eta_0 = 1/\lambda_{\max}$"}


def opposite(settings: dict[str, Any]) -> dict[str, float]:
    return {"mean_2": -settings["mean_1"]}


def norms(*values: float) -> Any:
    return axis(list(values), r"\|\Sigma\|", "norm of the covariances", sets=of_norm)


def of_norm(settings: dict[str, Any]) -> dict[str, float]:
    """The largest of the eigenvalues 1, 1 + a, ... is multiplied to the norm."""
    variance = settings["norm"] / (1 + (settings["dim"] - 1) * settings["stretch"])
    return {"var_1": variance, "var_2": variance}


# ------------------------------------------------------------------------- read off a Dataset


def log(y: xr.DataArray) -> xr.DataArray:
    return xr.apply_ufunc(np.log, y)


def log10(y: xr.DataArray) -> xr.DataArray:
    return xr.apply_ufunc(np.log10, y)


def group_2(y: xr.DataArray) -> xr.DataArray:
    return y.isel(group=1, drop=True)


def rise(
    y: xr.DataArray, along: str, low: float | None = None, high: float | None = None
) -> Estimate:
    """y at the high end of an axis less y at its low end (or at two values), seed by seed."""
    first = y.isel({along: 0}, drop=True) if low is None else y.sel({along: low}, drop=True)
    last = y.isel({along: -1}, drop=True) if high is None else y.sel({along: high}, drop=True)
    return stats.paired_difference(last, first)


def factor(y: xr.DataArray, along: str, low: float, high: float) -> Estimate:
    """Mean of y at one value over its mean at another."""
    return stats.paired_ratio(y.sel({along: high}, drop=True), y.sel({along: low}, drop=True))


def geometric(y: xr.DataArray) -> Estimate:
    """The geometric mean, for what is heavy-tailed over teachers."""
    return stats.mean(log(y)).map(np.exp)


def change(y: xr.DataArray, along: str, low: float, high: float) -> Estimate:
    """The geometric mean of the factor between two values of an axis."""
    return geometric(y.sel({along: high}, drop=True) / y.sel({along: low}, drop=True))


def typical(y: xr.DataArray, along: str, low: float, high: float) -> Estimate:
    """The same with the median over seeds. Where the samples have no minimiser, its error is how
    far Newton's steps came, and its rate may be negative: such seeds count as high or low only."""
    return stats.median(y.sel({along: high}, drop=True) / y.sel({along: low}, drop=True))


def beside(parts: Sequence[xr.DataArray], dim: str, names: Sequence[Any]) -> xr.DataArray:
    """Several arrays along a new dim, for a statement about all of them."""
    parts = [p.drop_vars(dim, errors="ignore") for p in parts]
    label = xr.DataArray(list(names), dims=dim, name=dim)
    found = xr.concat(parts, label, coords="minimal", compat="override")
    assert isinstance(found, xr.DataArray)
    return found


def both_rates(ds: xr.Dataset) -> xr.DataArray:
    """The convergence rate with the theory's step and with the largest stable one."""
    return beside([ds.rate, ds.rate_stable], "step_size", ("c/M_2", "1/lambda_max"))


def printed_rates(ds: xr.Dataset) -> xr.DataArray:
    """The convergence rate with the printed steps: the 2-norm in $M_2$, as (C.96) has it, and the
    infinity norm, as Algorithm 1 and Theorem 2 have it."""
    return beside([ds.rate, ds.rate_printed], "step_size", ("c/M_2", "Algorithm 1"))


def steps_of(y: xr.DataArray, along: str) -> Everywhere:
    """The median factor of y from each value of an axis to the next."""
    before, after = y.isel({along: slice(None, -1)}), y.isel({along: slice(1, None)})
    ratio = after / before.assign_coords({along: after[along]})
    return everywhere(stats.median, ratio)


def average_law(ds: xr.Dataset) -> xr.DataArray:
    return theory.average_excess(ds.dim, ds.width, ds.samples)


# ------------------------------------------------------------------------------ what would be


def as_power(probe: str, of: str, power: float) -> Altered:
    """The Dataset whose probe is a power of a parameter for every seed, with the size it has at
    the first value."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        x = ds[of].astype(float)
        dim = x.dims[0]
        made = ds[probe].isel({dim: 0}, drop=True) * (x / x.isel({dim: 0}, drop=True)) ** power
        return ds.assign({probe: made.transpose(*ds[probe].dims)})

    return altered


# ------------------------------------------------------------------------- descents in time


def late(ds: xr.Dataset) -> xr.Dataset:
    """The second half of every descent, where the slowest direction is what is left."""
    return ds.isel(step=slice(ds.sizes["step"] // 2, None))


def slope_of(distance: xr.DataArray, time: xr.DataArray, part: slice) -> xr.DataArray:
    """Least squares of the log distance on time, over a part of the recorded steps."""
    y, t = log(distance.isel(step=part)), time.isel(step=part)
    centred = t - t.mean("step")
    return (centred * y).sum("step") / (centred**2).sum("step")


def tail_rate(distance: xr.DataArray, time: xr.DataArray) -> xr.DataArray:
    r"""$1 - \hat v$ from the slope of the log distance over the second half."""
    half = slice(distance.sizes["step"] // 2, None)
    return -xr.apply_ufunc(np.expm1, slope_of(distance, time, half))


def straight(ds: xr.Dataset) -> xr.DataArray:
    """Whether the slopes of the log distance in the third and last quarters agree within 10%. (For
    a power of time they differ by 40%.)"""
    n = ds.sizes["step"]
    third, last = slice(n // 2, 3 * n // 4), slice(3 * n // 4, None)
    ratio = slope_of(ds.distance, ds.time, third) / slope_of(ds.distance, ds.time, last)
    return abs(ratio - 1) < 0.1


# ------------------------------------------------------------------------------- drawing


def draw_risks(title: str, along: str, log: str = "") -> Callable[[xr.Dataset], Any]:
    """Raw test loss (what the paper draws) on the left, excess risk and its law on the right."""

    def draw(ds: xr.Dataset):
        fig, (left, right) = plot.figure(1, 2, title=title)
        for ax, mean, groups in (
            (left, ds.test_loss, ds.group_loss),
            (right, ds.excess, ds.group_excess),
        ):
            plot.curve(ax, mean, along, label="average", log=log)
            plot.curve(ax, group_2(groups), along, label="group 2", log=log)
        left.set_ylabel(r"test loss (cross entropy), $\bar f$ and $\bar f_2$")
        right.set_ylabel("excess risk")
        x = ds[along].values
        plot.theory_curve(right, x, np.full(len(x), float(average_law(ds))), "$dK/2n$")
        law = group_2(ds.expected_excess).mean("seed")
        plot.theory_curve(right, x, law.values, r"$\mathrm{tr}(F_2F^{-1})/2n$")
        right.set_yscale("log")
        return fig

    return draw


def draw_descents(title: str, along: str, log: str = "") -> Callable[[xr.Dataset], Any]:
    """Distances in time (first seed) on the left, the rates of all seeds on the right."""

    def draw(ds: xr.Dataset):
        fig, (left, right) = plot.figure(1, 2, title=title)
        one, letter = ds.isel(seed=[0]), ds[along].attrs["symbol"]
        for i in range(ds.sizes[along]):
            at = one.isel({along: i})
            scaled = (at.time * at.rate).values.ravel()
            curve = at.distance / at.distance.isel(step=0)
            curve = curve.assign_coords(step=scaled)
            curve.attrs = {"long_name": "distance to the minimiser over the first"}
            plot.curve(left, curve, "step", label=f"${letter} = {float(at[along]):g}$", log="y")
        x = np.linspace(0, left.get_xlim()[1], 50)
        plot.theory_curve(left, x, np.exp(-x), "predicted rate")
        left.set_xlabel("step in units of the predicted $1/(1-v)$ (first seed)")
        measured = tail_rate(ds.distance, ds.time)
        measured.attrs = {"long_name": "convergence rate", "symbol": "1 - v"}
        plot.curve(right, measured, along, label="of the descents", log=log + "y", line=False)
        name = r"$\eta_0\lambda_{\min}(\nabla^2f_n(\hat W_n))$"
        plot.theory_curve(right, ds[along].values, ds.rate.mean("seed"), name)
        return fig

    return draw
