"""What is measured on the Datasets of the experiments, and how they are drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.stats import Estimate

from . import theory
from .model import MIX, UNIFORM, UNIT, Config

MODES: dict[str, dict[str, Any]] = {"mix": {"mode": MIX}, "unit": {"mode": UNIT}}
ALL_MODES = MODES | {"unit_uniform": {"mode": UNIFORM}}
GAMMAS = {"mix": MODES["mix"]} | {
    rf"unit, $\gamma = {g}$": {"mode": UNIT, "gamma": g} for g in (0.2, 0.5, 0.7, 0.9)
}
QUICK_GAMMAS = {k: v for k, v in GAMMAS.items() if v.get("gamma") != 0.7}
WEAK = r"unit, $\gamma = 0.2$"


def end(y: xr.DataArray) -> xr.DataArray:
    """The value at the end of training."""
    return y.isel(step=-1, drop=True)


def early(y: xr.DataArray, first: int | float, last: int | float) -> xr.DataArray:
    """The steps from `first` to `last`."""
    return y.isel(step=((y.step >= first) & (y.step <= last)).values)


def cells(y: xr.DataArray) -> list[xr.DataArray]:
    """All cells, each with its seeds alone."""
    dims = [d for d in y.dims if d != "seed"]
    stacked = y.stack(cell=dims)
    return [stacked.isel(cell=i, drop=True) for i in range(stacked.sizes["cell"])]


def everywhere(estimate: Callable[..., Estimate], toward: Any, *arrays: xr.DataArray) -> Estimate:
    """The extreme of an estimate over all cells."""
    split = zip(*map(cells, xr.broadcast(*arrays)), strict=True)
    return stats.worst([estimate(*cell) for cell in split], toward)


def without_noise(ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(noise=ds.noise > 0)


def predicted(ds: xr.Dataset, which: str) -> xr.DataArray:
    """A prediction of the theory at every mode and noise of the dataset."""
    table = [
        [theory.theory(Config(noise=s, **MODES[f])).values[which] for s in ds.noise.values]
        for f in ds.features.values
    ]
    return xr.DataArray(table, [ds.features, ds.noise])


# --------------------------------------------------------------------------------- ood_risk


def over_zero(ds: xr.Dataset) -> Estimate:
    """Smallest OOD risk of attention over that of the zero predictor."""
    risk = end(ds.ood_loss) if "step" in ds.ood_loss.dims else ds.ood_loss
    return everywhere(stats.paired_ratio, "low", risk, ds.zero_ood)


def gap(ds: xr.Dataset) -> Estimate:
    """Smallest OOD risk of attention over that of the trained linear network, by noise."""
    return everywhere(stats.paired_ratio, "low", end(ds.ood_loss), ds.fitted_ood)


def exponent(y: xr.DataArray) -> list[Estimate]:
    """Exponent of a risk in the noise, by mode."""
    return [
        stats.power_law(y.sel(features=f, drop=True), "noise", window=(0.01, 0.03)).slope
        for f in y.features.values
    ]


def draw_risks(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Risk where last and next value differ in sign")
    at = without_noise(ds)
    for ax, f in zip(axes, ds.features.values, strict=True):
        here = at.sel(features=f)
        plot.curve(ax, end(here.ood_loss), "noise", label="attention", log="xy")
        plot.curve(ax, here.last_ood, "noise", label="last value", log="xy")
        plot.curve(ax, here.fitted_ood, "noise", label="residual linear", log="xy")
        for name, words in (("zero_ood", "zero predictor"), ("linear_loss", "linear, $w^*$")):
            plot.theory_curve(ax, here.noise, predicted(at, name).sel(features=f), words)
        ax.set_ylabel(r"OOD risk, $R_{\mathrm{OOD}}$")
        ax.set_title(str(f))
    return fig


# -------------------------------------------------------------------------------- ssm_build


def draw_series(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Features of the residual state-space model")
    plot.curve(left, ds.next_norm, "tokens", hue="features")
    d = np.linspace(float(ds.tokens.min()), float(ds.tokens.max()), 50)
    plot.theory_curve(left, d, theory.longest_next, "bound, Properties 2 and 3")
    at = ds.sel(features="unit")
    plot.curve(right, at.recursion_error, "tokens", label="recursion", log="y")
    plot.curve(right, at.series_error, "tokens", label="simulated series", log="y")
    plot.curve(right, at.corrected_residual, "tokens", label="Prop. 6.3(2), corrected", log="y")
    plot.curve(right, at.printed_residual, "tokens", label="Prop. 6.3(2), printed", log="y")
    right.set_ylabel("error (unit)")
    return fig


# ---------------------------------------------------------------------------------- kernel


def decades(ds: xr.Dataset) -> Estimate:
    """How many decades the smallest eigenvalue falls from n = 2 to n = 12."""
    return stats.mean(np.log10(ds.kernel_min.sel(samples=2) / floored(ds).sel(samples=12)))


def floored(ds: xr.Dataset) -> xr.DataArray:
    """Smallest eigenvalues, not below what rounding leaves of zero."""
    return ds.kernel_min.clip(min=theory.ROUNDING).assign_attrs(ds.kernel_min.attrs)


def draw_spectrum(ds: xr.Dataset):
    title, seeds = "Smallest eigenvalue of the tangent kernel", ds.sizes["seed"]
    fig, (ax,) = plot.figure(title=title, seeds=seeds)
    logs = xr.apply_ufunc(np.log, floored(ds))
    means = [stats.mean(logs.sel(samples=n)) for n in ds.samples.values]
    ax.set_ylabel(plot.label(ds.kernel_min))
    plot.curve(ax, np.exp(means).tolist(), ds.samples, label="geometric mean", log="y")
    n = ds.samples.values
    typical = [theory.typical_kernel(int(k), Config().tokens, Config().noise)[0] for k in n]
    plot.theory_curve(ax, n, typical, "infinite width, one draw")
    return fig


LATE = 60  # steps at which widths are compared


def near(y: xr.DataArray, step: int = LATE) -> xr.DataArray:
    """The recorded step nearest to one."""
    return y.isel(step=int(np.argmin(abs(y.step.values - step))), drop=True)


def loss_left(ds: xr.Dataset) -> Estimate:
    """Training loss at the end over that at the start, all widths together."""
    return stats.paired_ratio(end(ds.train_loss), ds.train_loss.isel(step=0, drop=True))


def lazy_ratio(ds: xr.Dataset) -> Estimate:
    """Training loss over that of the frozen kernel, at the largest width after 60 steps."""
    at = ds.isel(width=-1)
    return stats.paired_ratio(near(at.train_loss), near(at.lazy_loss))


def draw_drift(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(1, 3, title="Lazy training")
    here = ds.sel(samples=64)
    for ax, name, predicted in ((left, "radius", -0.5), (middle, "drift", None)):
        y = near(here[name]).assign_attrs(ds[name].attrs)
        fit = stats.power_law(y, "width")
        plot.law(ax, y, "width", fit=fit, predicted=predicted, label=f"$n = 64$, {LATE} steps")
    at = ds.isel(width=-1, step=slice(1, None))
    plot.curve(right, at.train_loss, "step", hue="samples", log="xy")
    for n in ds.samples.values:
        lazy = at.lazy_loss.sel(samples=n).mean("seed")
        plot.theory_curve(right, at.step, lazy, f"frozen kernel, $m = {int(at.width)}$")
    return fig


# ----------------------------------------------------------------------- asymmetric learning


def draw_direction(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Do weights follow the sign of their read-out?")
    at = ds.isel(step=slice(1, None))
    plot.curve(left, at.direction, "step", hue="features", log="x")
    plot.curve(right, at.ordered, "step", hue="features", log="x")
    return fig


def sign_where_ordered(ds: xr.Dataset) -> Estimate:
    """Share of test points with f x_d >= 0 at the steps at which all pairs are in order."""
    late = ds.isel(step=slice(1, None))  # at the start f = 0
    ordered = late.ordered == 1
    both = (late.same_sign + late.ood_same_sign) / 2
    return stats.mean(both.where(ordered).mean(["features", "step"]))


def all_times(ds: xr.Dataset, init_scale: float) -> xr.DataArray:
    return ds.sign.sel(init_scale=init_scale)


def wide(y: xr.DataArray) -> xr.DataArray:
    return y.sel(width=y.width >= 256)


def peak(y: xr.DataArray) -> xr.DataArray:
    """The largest value over training, seed by seed."""
    return y.max("step")


def draw_sign(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Share of neurons with the sign of their read-out")
    for ax, f in zip(axes, ds.features.values, strict=True):
        at = ds.sign.sel(features=f).isel(width=-1, step=slice(1, None))
        plot.curve(ax, at, "step", hue="init_scale", log="x")
        plot.theory_curve(ax, at.step, np.ones(at.step.size), "Theorem 5.2")
        ax.set_ylim(0, 1.05)
        ax.set_title(f"{f}, $m = {int(ds.width[-1])}$")
    return fig


def draw_same_sign(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Does the output keep the sign of the last value?")
    at = ds.isel(step=slice(1, None))
    plot.curve(left, at.ood_same_sign, "step", hue="features", log="x")
    left.set_ylim(0, 1.05)
    ratio = at.ood_loss / at.zero_ood
    ratio.attrs = {"long_name": "OOD risk over that of zero"}
    plot.curve(right, ratio, "step", hue="features", log="x")
    return fig


def draw_attention(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Attention of one neuron on the last step", width=4.2)
    plot.curve(ax, ds.attention, "weight", hue="tokens")
    ax.set_xscale("symlog", linthresh=1.0)
    floor, ceiling = theory.attention_limits(int(ds.tokens[-1]))
    w = ds.weight.values
    plot.theory_curve(ax, w[[0, 3]], [floor] * 2, r"limits $w \to \pm\infty$")
    plot.theory_curve(ax, w[[-4, -1]], [ceiling] * 2, r"limits $w \to \pm\infty$")
    return fig


# ------------------------------------------------------------------------------ other cures


def over_zero_late(ds: xr.Dataset) -> Estimate:
    """Smallest ratio to the OOD risk of zero, from a tenth of the training on."""
    late = early(ds.ood_loss, float(ds.step[-1]) / 10, np.inf)
    return everywhere(stats.paired_ratio, "low", late, ds.zero_ood)


def draw_more(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="More width, samples or steps")
    at = ds.isel(step=slice(1, None))
    for ax, f in zip(axes, ds.features.values, strict=True):
        here = at.sel(features=f)
        plot.curve(ax, here.ood_loss, "step", hue="more", log="xy")
        zero = [float(here.zero_ood.mean())] * here.step.size
        plot.theory_curve(ax, here.step, zero, "zero predictor")
        ax.set_title(str(f))
    return fig


def draw_expressivity(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The best measure over neurons")
    for name, words in (
        ("test_loss", "ID"),
        ("zero_loss", "ID, zero"),
        ("ood_loss", "OOD"),
        ("zero_ood", "OOD, zero"),
    ):
        plot.curve(ax, ds[name], "features", label=words, line=False, log="y")
    ax.set_ylabel("risk")
    ax.set_xlabel("next feature")
    return fig


def draw_local(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Local attention after one step")
    plot.curve(ax, ds.agreement, "shape", label="Cases 1 and 2", line=False)
    plot.curve(ax, ds.centred, "shape", label="centred criterion", line=False)
    plot.theory_curve(ax, [0, ds.sizes["shape"] - 1], [0.5, 0.5], "chance")
    ax.set_ylabel("share of rows as predicted")
    ax.set_ylim(0.4, 1)
    return fig


def remedy(ds: xr.Dataset, *names: str, features: str = "unit") -> xr.Dataset:
    return ds.sel(features=features, variant=list(names))


def draw_remedies(ds: xr.Dataset):
    fig, axes = plot.figure(2, 1, width=5.0, title="What helps: risks of the variants")
    for ax, f in zip(axes, ds.features.values, strict=True):
        here = ds.sel(features=f)
        plot.curve(ax, here.test_loss, "variant", label="ID", line=False, log="y")
        plot.curve(ax, here.ood_loss, "variant", label="OOD", line=False, log="y")
        span = [0, ds.sizes["variant"] - 1]
        for name, words in (("zero_ood", "OOD, zero"), ("fitted_ood", "OOD, residual linear")):
            plot.theory_curve(ax, span, [float(here[name].mean())] * 2, words)
        ax.set_ylabel(f"risk ({f})")
        ax.set_xlabel("variant" if ax is axes[-1] else "")
        ax.tick_params(axis="x", labelbottom=ax is axes[-1])
    return fig
