"""Figure 4.5: the rate against the number of neurons, the error against the number of samples."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings, cases

from .shared import STEPS, log

# ------------------------------------------------------------------------- (a): number of neurons


def rates_are(power: float) -> Altered:
    """The Dataset whose rates are a power of K."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = {}
        for name in ("rate", "rate_stable", "contraction"):
            law = ds.width.astype(float) ** power
            mean = ds[name].sel(width=2, drop=True) / law.sel(width=2, drop=True)
            made[name] = (mean * law).transpose(*ds[name].dims)
        return ds.assign(made)

    return altered


def power_of_k(rate: xr.DataArray) -> Estimate:
    r"""The power of $K$ in the geometric mean over teachers, from two neurons on (one is logistic
    regression)."""
    y = log(rate.sel(width=slice(2, None)))
    return stats.linear_law(y.assign_coords(width=log(y.width)), "width").slope


@claim(
    "found here",
    equals(-2, within=0.6),
    kind="own",
    law=rates_are(-2.0),
    rivals={"1/K": rates_are(-1.0), "1/K^3": rates_are(-3.0)},
)
def average_contraction(ds: xr.Dataset) -> Estimate:
    """what shrinks as 1/K^2 is the average contraction over the first 1000 steps, the authors'
    measure (power of K from two neurons on)"""
    return power_of_k(ds.contraction)


@claim(
    "(4.9), Figure 4.5(a)",
    equals(-2, within=0.3),
    expected="fails",
    because=(average_contraction,),
    rivals={"1/K": rates_are(-1.0), "1/K^3": rates_are(-3.0)},
)
def inverse_square(ds: xr.Dataset) -> Estimate:
    """1 - v is proportional to 1/K^2 (power of K from two neurons on; that of c/M_2 and that of
    Algorithm 1 are one, since K is in neither step)"""
    return power_of_k(ds.rate)


def draw_neurons(ds: xr.Dataset):
    """The rate against K, with the theory's step and with the largest stable one."""
    fig, (ax,) = plot.figure(title="Convergence rate and number of neurons", width=4.2)
    words = dict(long_name="convergence rate", symbol="1 - v")
    for name, label in STEPS.items():
        plot.curve(ax, ds[name].assign_attrs(words), "width", label=label, log="xy")
    average = ds.contraction.sel(width=slice(2, None)).assign_attrs(words)
    plot.curve(ax, average, "width", label="average contraction, 1000 steps", log="xy")
    k = ds.width.values.astype(float)
    first = float(ds.rate.mean("seed").sel(width=2))
    plot.theory_curve(ax, k, first * (2 / k) ** 2, "paper: $1/K^2$")
    return fig


# ------------------------------------------------------------------------- (b): number of samples


def power_of_n(ds: xr.Dataset) -> xr.DataArray:
    return log(ds.error).assign_coords(samples=log(ds.samples))


def median_power(ds: xr.Dataset, x: xr.DataArray) -> Estimate:
    """The power of x in the error, each training set by itself; the median over them."""
    y, u = log(ds.error), log(x)
    u = u - u.mean()
    return stats.median((y * u).sum("samples") / (u**2).sum())


def error_is(power: float, of: str = "n") -> Altered:
    """The Dataset whose error is a power of n, or of sqrt(log n / n)."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        x = root_log(ds) if of == "root" else ds.samples.astype(float)
        made = ds.error.isel(samples=-1, drop=True) * (x / x.isel(samples=-1, drop=True)) ** power
        return ds.assign(error=made.transpose(*ds.error.dims))

    return altered


def root_log(ds: xr.Dataset) -> xr.DataArray:
    n = ds.samples.astype(float)
    return np.sqrt(log(n) / n)


@claim("local theory", equals(1, times=1.4), kind="own",
       rivals={"twice as far": lambda ds: ds.assign(error=2 * ds.error)})  # fmt: skip
def error_law(ds: xr.Dataset) -> Everywhere:
    """at the largest n the error is (tr F^-1/n)^(1/2) (root mean square of the ratio)"""

    def ratio(error: xr.DataArray, expected: xr.DataArray) -> Estimate:
        return stats.mean((error / expected) ** 2).map(lambda r: np.sqrt(max(r, 0.0)))

    end = ds.isel(samples=-1, drop=True)
    return everywhere(ratio, end.error, end.expected_error)


@claim(
    "(4.10), Figure 4.5(b)",
    equals(1, within=0.2),
    scale="paper",
    law=error_is(1.0, "root"),
)
def linear_in_root(ds: xr.Dataset) -> Everywhere:
    """the error is linear in sqrt(log n / n) from 4000 on (power, median over data sets)"""

    def power(error: xr.DataArray) -> Estimate:
        at = error.to_dataset(name="error")
        return median_power(at, root_log(at))

    return everywhere(power, ds.error.sel(samples=slice(4000, None)), keep="samples")


def draw_error(ds: xr.Dataset):
    fig, axes = plot.figure(
        1, ds.sizes["protocol"], title="Distance to the teacher", seeds=ds.sizes["seed"]
    )
    n = ds.samples.values.astype(float)
    law = np.sqrt(np.log(n) / n)
    for ax, name in zip(axes, ds.protocol.values, strict=True):
        at = ds.sel(protocol=name)
        middle = [stats.median(at.error.isel(samples=i)) for i in range(ds.sizes["samples"])]
        plot.curve(ax, middle, ds.samples, label="median", log="xy", line=False)
        expected = np.sqrt((at.expected_error**2).mean("seed"))
        plot.theory_curve(ax, n, expected, r"$(\mathrm{tr}\,F^{-1}/n)^{1/2}$")
        scaled = float(expected[-1]) / law[-1] * law
        plot.theory_curve(ax, n, scaled, r"paper: $\propto\sqrt{\log n/n}$")
        ax.set_ylabel(plot.label(ds.error))
        ax.set_title(f"{name}'s setting" if name == "paper" else "authors' code")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig4_5b",
        says="Distance of the minimiser to the teacher against the number of samples.",
        trainings=Trainings(
            grid={
                "samples": [2000, 4000, 8000, 20_000, 40_000, 60_000],
                "protocol": cases(
                    {
                        "paper": {"var_1": 9.0, "var_2": 9.0},
                        "authors": {"var_1": 81.0, "var_2": 81.0, "strength": 15**-0.5},
                    }
                ),
            },
            seeds=400,
            quick={"test_samples": 5000, "samples": [8000, 20_000], "seeds": 20},
        ),
        claims=(error_law, linear_in_root),
        figure=draw_error,
    ),
    Experiment(
        "fig4_5a",
        says="Convergence rate against the number of neurons.",
        trainings=Trainings(
            simulator="wide",
            grid={"width": [1, 2, 3, 4, 5, 6]},
            seeds=40,
            quick={"width": [1, 2, 3, 4], "seeds": 32, "test_samples": 1000},
        ),
        claims=(inverse_square, average_contraction),
        figure=draw_neurons,
    ),
)
