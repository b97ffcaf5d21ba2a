"""Lemmas 5.1, F.4 and H.4: the tangent kernel, how far it moves, and its smallest eigenvalue."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, between, claim, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere, paired_ratio, power_law
from provingground.study import Experiment, Trainings

from .. import theory
from .shared import LATE, WIDTHS, at_step, geometric, log


def power(probe: str, of: float) -> Altered:
    """The Dataset whose probe falls with another power of the width (after 60 steps)."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        found = at_step(ds[probe], LATE).mean("seed")
        law = ds.width.astype(float) ** of
        law = law * np.exp(log(found / law).mean("width"))
        return ds.assign({probe: (ds[probe] * law / found).transpose(*ds[probe].dims)})

    return altered


# ------------------------------------------------------------------------------- ntk_lmin


def floored(ds: xr.Dataset) -> xr.DataArray:
    """Smallest eigenvalues, not below what rounding leaves of zero."""
    return ds.kernel_min.clip(min=theory.ROUNDING).assign_attrs(ds.kernel_min.attrs)


@claim(
    "assumption on the kernel, section 5.1",
    between(-1.2, -0.5),
    kind="own",
    rivals={"1/n": curve("kernel_min", lambda ds: 0.01 / ds.samples)},
)
def collapse(ds: xr.Dataset) -> Estimate:
    """the smallest eigenvalue falls by half a decade or more with every sample (slope of its
    decimal logarithm, n = 2 to 12)"""
    return stats.linear_law(log(floored(ds)) / np.log(10), "samples", window=(2, 12)).slope


@claim("assumption on the kernel, section 5.1", above(1))
def definite(ds: xr.Dataset) -> Everywhere:
    """the kernel is positive definite up to n = 8: its smallest eigenvalue over what rounding
    gives (n times 1e-16 of the largest)"""
    at = ds.sel(samples=ds.samples <= 8)
    rounding = at.samples * 2.2e-16 * at.kernel_max
    return everywhere(geometric, floored(at) / rounding)


def draw_spectrum(ds: xr.Dataset):
    title, seeds = "Smallest eigenvalue of the tangent kernel", ds.sizes["seed"]
    fig, (ax,) = plot.figure(title=title, seeds=seeds)
    means = [geometric(floored(ds).sel(samples=n)) for n in ds.samples.values]
    ax.set_ylabel(plot.label(ds.kernel_min))
    plot.curve(ax, means, ds.samples, label="geometric mean", log="y")
    n = ds.samples.values
    typical = [theory.typical_kernel(int(k), int(ds.tokens), float(ds.noise))[0] for k in n]
    plot.theory_curve(ax, n, typical, "infinite width, one draw")
    return fig


# ------------------------------------------------------------------------------- ntk_drift


@claim(
    "Lemma H.4, an upper bound: here it is reached",
    equals(-1 / 2, within=0.15),
    law=power("radius", -0.5),
    rivals={"m^0": power("radius", 0.0), "1/m": power("radius", -1.0)},
)
def radius_exponent(ds: xr.Dataset) -> Estimate:
    """the largest move of a weight falls as m^(-1/2) (exponent, n = 64, after 60 steps)"""
    return power_law(at_step(ds.radius, LATE).sel(samples=64), "width").slope


@claim(
    "Lemmas F.4 and H.4 bound it by m^(-1/2); in pairs the first order cancels",
    equals(-1, within=0.35),
    kind="corrected",
    law=power("drift", -1.0),
    rivals={"m^(-1/2)": power("drift", -0.5)},
)
def drift_exponent(ds: xr.Dataset) -> Estimate:
    """the drift of the kernel falls as 1/m (exponent, n = 64, after 60 steps)"""
    return power_law(at_step(ds.drift, LATE).sel(samples=64), "width").slope


@claim(
    "Lemma 5.1",
    equals(1, within=0.02),
    law=curve("train_loss", lambda ds: ds.lazy_loss.mean("seed")),
)
def lazy(ds: xr.Dataset) -> Everywhere:
    """the loss is that of the frozen kernel (ratio, largest width, 60 steps, n = 64 and n = 6)"""
    at = ds.isel(width=-1)
    return everywhere(paired_ratio, at_step(at.train_loss, LATE), at_step(at.lazy_loss, LATE))


def draw_drift(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(1, 3, title="Lazy training")
    here = ds.sel(samples=64)
    for ax, name, predicted in ((left, "radius", -0.5), (middle, "drift", -1.0)):
        y = at_step(here[name], LATE).assign_attrs(ds[name].attrs)
        plot.law(ax, y, "width", fit=power_law(y, "width"), predicted=predicted, label="60 steps")
    at = ds.isel(width=-1, step=slice(1, None))
    plot.curve(right, at.train_loss, "step", hue="samples", log="xy")
    for n in ds.samples.values:
        lazy = at.lazy_loss.sel(samples=n).mean("seed")
        plot.theory_curve(right, at.step, lazy, f"frozen kernel, $m = {int(at.width)}$")
    return fig


EXPERIMENTS = (
    Experiment(
        "ntk_drift",
        says="How far weights and kernel move, against the width.",
        trainings=WIDTHS,
        claims=(radius_exponent, drift_exponent, lazy),
        figure=draw_drift,
    ),
    Experiment(
        "ntk_lmin",
        says="The smallest eigenvalue of the tangent kernel against the number of samples.",
        trainings=Trainings(
            grid={"samples": [2, 4, 6, 8, 10, 12, 14, 16], "width": 4096},
            simulator="kernel",
            seeds=16,
            quick={"samples": [2, 4, 6, 8, 12, 16], "seeds": 8},
            domain={"tokens": [4, 8, 16], "noise": (0.03, 0.3), "init_scale": (0.3, 3.0)},
        ),
        claims=(collapse, definite),
        figure=draw_spectrum,
    ),
)
