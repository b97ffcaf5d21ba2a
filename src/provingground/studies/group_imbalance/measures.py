"""What is measured on the Datasets of the experiments, and how they are drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.stats import Estimate

from . import theory
from .model import Config

PLAIN = Config()
LAW = theory.average_excess(PLAIN.dim, PLAIN.width, PLAIN.samples)


def log(y: xr.DataArray) -> xr.DataArray:
    return xr.apply_ufunc(np.log, y)


# ------------------------------------------------------- risks (Figures 4.6 and 4.7)


def group_2(y: xr.DataArray) -> xr.DataArray:
    return y.isel(group=1, drop=True)


def rise(y: xr.DataArray, along: str, low: float | None = None, high: float | None = None):
    """y at the high end of an axis less y at its low end (or at two values), seed by seed."""
    first = y.isel({along: 0}, drop=True) if low is None else y.sel({along: low}, drop=True)
    last = y.isel({along: -1}, drop=True) if high is None else y.sel({along: high}, drop=True)
    return stats.paired_difference(last, first)


def factor(y: xr.DataArray, along: str, low: float, high: float) -> Estimate:
    """Mean of y at one value over its mean at another."""
    return stats.paired_ratio(y.sel({along: high}, drop=True), y.sel({along: low}, drop=True))


def geometric(y: xr.DataArray, along: str, low: float, high: float) -> Estimate:
    """The same with geometric means, for what is heavy-tailed over teachers."""
    change = log(y.sel({along: high}, drop=True)) - log(y.sel({along: low}, drop=True))
    return Estimate(*(float(np.exp(e)) for e in stats.mean(change)))


def typical(y: xr.DataArray, along: str, low: float, high: float) -> Estimate:
    """The same with the median over seeds. Where the samples have no minimiser, its error is how
    far Newton's steps came, and its rate may be negative: such seeds count as high or low only."""
    return stats.median(y.sel({along: high}, drop=True) / y.sel({along: low}, drop=True))


def dip(y: xr.DataArray, along: str, middle: float) -> Estimate:
    """How far the lower of the two ends of an axis lies above the middle: positive for a U."""
    return stats.worst(
        [stats.paired_difference(y.isel({along: i}, drop=True),
                                 y.sel({along: middle}, drop=True)) for i in (0, -1)],
        "low",
    )  # fmt: skip


def over_law(ds: xr.Dataset) -> Estimate:
    r"""Average excess risk over $dK/(2n)$."""
    return stats.mean(ds.excess / LAW)


def over_prediction(ds: xr.Dataset) -> Estimate:
    r"""Excess risk of group 2 over $\mathrm{tr}(F_2F^{-1})/(2n)$: ratio of means, over cells."""
    return stats.jackknife(
        lambda found, law: (found.mean("seed") / law.mean("seed")).mean(),
        group_2(ds.group_excess),
        group_2(ds.expected_excess),
    )


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
        plot.theory_curve(right, x, np.full(len(x), LAW), "$dK/2n$")
        law = group_2(ds.expected_excess).mean("seed")
        plot.theory_curve(right, x, law.values, r"$\mathrm{tr}(F_2F^{-1})/2n$")
        right.set_yscale("log")
        return fig

    return draw


# ----------------------------------------------- convergence (Figures 4.4, 4.5a, noise)


def late(ds: xr.Dataset) -> xr.Dataset:
    """The second half of every descent, where the slowest direction is what is left."""
    return ds.isel(step=slice(ds.sizes["step"] // 2, None))


def tail_rate(ds: xr.Dataset, distance: xr.DataArray | None = None) -> xr.DataArray:
    r"""$1 - \hat v$ from least squares of the log distance on time, over the second half."""
    at = late(ds)
    y = np.log(at.distance if distance is None else late(distance.to_dataset(name="d")).d)
    t = at.time if "time" in at else at.step
    centred = t - t.mean("step")
    return -np.expm1((centred * y).sum("step") / (centred**2).sum("step"))


def straightness(ds: xr.Dataset) -> Estimate:
    """R^2 of that fit, the worst cell's mean over seeds."""
    at = late(ds)
    r2 = xr.corr(np.log(at.distance), at.time, "step") ** 2
    cells = [d for d in r2.dims if d != "seed"]
    stacked = r2.stack(cell=cells) if cells else r2.expand_dims("cell")
    return stats.worst([stats.mean(stacked.isel(cell=i)) for i in range(stacked.cell.size)], "low")


def finished(ds: xr.Dataset, along: str) -> xr.Dataset:
    """Without the cells in which a descent was cut off before ten times 1/(1-v)."""
    length = (ds.time.isel(step=-1) * ds.rate).min("seed")
    return ds.sel({along: (length > 10).values})


def slower(rate: xr.DataArray, along: str) -> Estimate:
    return stats.monotone(log(rate), along, "decreasing")


def fastest(rate: xr.DataArray, along: str, at: float) -> Estimate:
    """The rate at one value over that at the best of the others (median ratios)."""
    others = [float(v) for v in rate[along].values if v != at]
    return stats.worst([typical(rate, along, v, at) for v in others], "low")


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
        measured = tail_rate(ds)
        measured.attrs = {"long_name": "convergence rate", "symbol": "1 - v"}
        plot.curve(right, measured, along, label="of the descents", log=log + "y", line=False)
        name = r"$\eta_0\lambda_{\min}(\nabla^2f_n(\hat W_n))$"
        plot.theory_curve(right, ds[along].values, ds.rate.mean("seed"), name)
        return fig

    return draw


def draw_rates(title: str, along: str) -> Callable[[xr.Dataset], Any]:
    """The rate with the theory's step and with the largest stable one."""

    def draw(ds: xr.Dataset):
        fig, (ax,) = plot.figure(title=title, width=4.2)
        for name, rate in by_step(ds).items():
            plot.curve(ax, rate, along, label=name, log="xy")
        return fig

    return draw


def draw_neurons(ds: xr.Dataset):
    """The rate against K, with the theory's step and with the largest stable one."""
    fig, (ax,) = plot.figure(title="Convergence rate and number of neurons", width=4.2)
    for name, rate in by_step(ds).items():
        plot.law(ax, rate, "width", label=name, fit=neuron_law(rate))
    k = ds.width.values.astype(float)
    plot.theory_curve(ax, k, float(ds.rate.mean("seed")[0]) / k**2, "paper: $1/K^2$")
    return fig


def by_step(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    r"""$1 - v$ with the theory's step, and with $1/\lambda_{\max}$ (inverse condition number)."""
    of_steps = {
        r"$\eta_0 = 25/M_2$": ds.rate,
        r"$\eta_0 = 1/\lambda_{\max}$": ds.flattest / ds.sharpest,
    }
    words = dict(long_name="convergence rate", symbol="1 - v")
    return {name: rate.assign_attrs(words) for name, rate in of_steps.items()}


def neuron_law(rate: xr.DataArray) -> stats.Law:
    r"""The power of $K$, from two neurons on (one is logistic regression)."""
    return stats.power_law(rate, "width", window=(2, float(rate.width.max())))


# -------------------------------------------------------------- error (Figure 4.5b)


def log_slope(y: xr.DataArray) -> Estimate:
    """The power of n in the geometric mean over seeds."""
    logs = log(y)
    return stats.linear_law(logs.assign_coords(samples=log(logs.samples)), "samples").slope


def geometric_mean(y: xr.DataArray) -> Estimate:
    return Estimate(*(float(np.exp(e)) for e in stats.mean(log(y))))


def error_exponent(ds: xr.Dataset) -> Estimate:
    """The exponent of the error in n, from 4000 on."""
    return log_slope(ds.error.sel(samples=slice(4000, None)))


def over_expected(ds: xr.Dataset) -> Estimate:
    r"""The error over $(\mathrm{tr}\,F^{-1}/n)^{1/2}$ at the largest n, root mean squares."""
    at = ds.isel(samples=-1)
    ratio = stats.paired_ratio(at.error**2, at.expected_error**2)
    return Estimate(*(e**0.5 for e in ratio))


def draw_error(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Distance to the teacher", width=4.2)
    plot.curve(ax, ds.error, "samples", label="mean", log="xy", line=False)
    middle = [stats.median(ds.error.isel(samples=i)) for i in range(ds.sizes["samples"])]
    plot.curve(ax, middle, ds.samples, label="median", log="xy", line=False)
    expected = ds.expected_error.mean("seed")
    plot.theory_curve(ax, ds.samples.values, expected, r"$(\mathrm{tr}\,F^{-1}/n)^{1/2}$")
    n = ds.samples.values.astype(float)
    law = np.sqrt(np.log(n) / n)
    scale = float(expected[-1]) / law[-1]
    plot.theory_curve(ax, n, scale * law, r"paper: $\propto\sqrt{\log n/n}$")
    ax.set_ylabel(plot.label(ds.error))
    return fig


# ------------------------------------------------------- success maps (Figures 4.2, 4.3)


def white(ds: xr.Dataset) -> xr.DataArray:
    """The share of a column of the map (over n) that succeeds: the higher, the fewer samples."""
    return ds.success.mean("samples")


def boundary(ds: xr.Dataset, of: str) -> stats.Boundary:
    """n at which half of the data sets succeed."""
    return stats.phase_boundary(ds.success, along="samples", of=of, level=0.5)


def harder(ds: xr.Dataset, along: str, easy: Any, hard: Any) -> Estimate:
    """How much less of the column succeeds at `hard` than at `easy` (a mean over several)."""
    share = white(ds)
    base = share.sel({along: easy})
    base = base.mean(along) if along in base.dims else base
    return stats.paired_difference(base.drop_vars(along, errors="ignore"),
                                   share.sel({along: hard}, drop=True))  # fmt: skip


def draw_map(title: str, along: str, log: str = "y") -> Callable[[xr.Dataset], Any]:
    def draw(ds: xr.Dataset):
        fig, (ax,) = plot.figure(title=title, width=4.2)
        if ds.sizes[along] < 4:  # too few columns for a map
            plot.curve(ax, ds.success, "samples", hue=along, log="x")
            return fig
        plot.heatmap(ax, ds.success, along, "samples", log=log, limits=(0, 1))
        points = [
            (float(v), stats.threshold(ds.success.sel({along: v}, drop=True), "samples", 0.5).value)
            for v in ds[along].values
        ]
        x, y = np.array([p for p in points if np.isfinite(p[1])]).reshape(-1, 2).T
        if len(x) > 1:
            plot.theory_curve(ax, x, y, "half succeed")
        return fig

    return draw


# ------------------------------------------------------------- starts (Figure C.1, tensor)

STARTS = ("tensor", "local", "far")


def reached(ds: xr.Dataset, start: str) -> xr.DataArray:
    """Whether a descent came to the minimiser: a thousandth of the teacher's norm away."""
    return ds.distance.isel(step=-1, start=STARTS.index(start), drop=True) < 1e-3


def start_rate(ds: xr.Dataset, start: str) -> xr.DataArray:
    at = ds.isel(start=STARTS.index(start), drop=True)
    return tail_rate(at.assign(time=at.step))


def same_rate(ds: xr.Dataset) -> Estimate:
    """Rate from the tensor start over that from the local one, where both arrive."""
    both = reached(ds, "tensor") & reached(ds, "local")
    ratio = (start_rate(ds, "tensor") / start_rate(ds, "local")).where(both, drop=True)
    return stats.mean(ratio)


def draw_starts(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Three kinds of start", seeds=ds.sizes["seed"])
    logs = np.log10(ds.distance)
    logs.attrs = {"long_name": "distance to the minimiser, power of ten"}
    for i, name in enumerate(STARTS):
        plot.curve(left, logs.isel(start=i), "step", label=name)
    t = ds.step.values.astype(float)
    slope = float(np.log10(1 - ds.rate).mean("seed"))
    begin = float(logs.isel(start=1, step=0).mean("seed"))
    plot.theory_curve(left, t, begin + slope * t, "predicted rate")
    errors = ds.relative_error.transpose("seed", "start").values
    for i, name in enumerate(STARTS):
        right.plot(np.full(len(errors), i), errors[:, i], plot.MARKERS[i], label=name, gid="series",
                   color=plot.PALETTE[i], alpha=0.6)  # fmt: skip
    right.set_xticks(range(3), STARTS)
    right.set_yscale("log")
    right.set_xlabel("start")
    right.set_ylabel(r"relative error of the start, $\|W_0 - W^*P\|_F/\|W^*\|_F$")
    return fig


def draw_tensor(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Tensor initialisation", width=4.2)
    error = ds.relative_error
    plot.curve(ax, error, "samples", hue="variant", log="xy")
    literal = ds.literal_error.isel(variant=0)
    plot.curve(ax, literal, "samples", label="printed magnitudes (C.5)", log="xy")
    n = ds.samples.values.astype(float)
    first = float(error.isel(variant=0, samples=0).mean("seed"))
    plot.theory_curve(ax, n, first * np.sqrt(n[0] / n), r"(C.87): $\propto n^{-1/2}$")
    return fig


# --------------------------------------------------------------------------------- noise


def plateau(ds: xr.Dataset) -> xr.DataArray:
    """The root mean square distance over the second half of a descent with noise."""
    return np.sqrt((late(ds).distance ** 2).mean("step"))


def over_bound(ds: xr.Dataset) -> Estimate:
    """The distance that is kept over the statistical error of (4.8), largest over xi."""
    ratio = plateau(ds) / ds.bound
    return stats.worst([stats.mean(ratio.sel(noise=x)) for x in ds.noise.values])


def draw_noise(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Noise in the gradient", width=4.2)
    kept = plateau(ds).assign_attrs(long_name="distance that noise keeps")
    plot.law(ax, kept, "noise", fit=stats.power_law(kept, "noise"))
    x = ds.noise.values
    plot.theory_curve(ax, x, ds.floor.mean("seed"), "autoregression")
    plot.theory_curve(ax, x, ds.bound.mean("seed"), "bound of (4.8)")
    return fig
