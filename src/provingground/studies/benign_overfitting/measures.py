"""What is measured on the Datasets of the experiments, and how they are drawn."""

from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.stats import Estimate

from . import theory
from .model import Config

CUT = 0.2  # Figure 1(b) calls a test loss below this benign

NOISE, NOISE_BIG, DIM = 0.2, 4.0, 1024  # of Figure 1

PLAIN = Config()


def snr_of(signal_norm, noise: float = NOISE, dim: int = DIM):
    return signal_norm / (noise * sqrt(dim))


def boundary(ds: xr.Dataset) -> stats.Boundary:
    """The SNR at which the test loss crosses the cut, for each N from 4 on."""
    return stats.phase_boundary(ds.test_loss, along="snr", of="samples", level=CUT, window=(4, inf))


def ratio(ds: xr.Dataset) -> xr.DataArray:
    return theory.signal_ratio(ds.samples, ds.snr, PLAIN.noise, PLAIN.noise_big)


def boundary_constant(ds: xr.Dataset) -> Estimate:
    r"""$N\,\mathrm{SNR}_c^2$ of the best law $\mathrm{SNR}_c \propto N^{-1/2}$, N from 4 on."""
    law = stats.phase_boundary(ds.test_loss, "snr", "samples", CUT, window=(4, inf), slope=-0.5).law
    return Estimate(*(c**2 for c in law.constant))


def boundary_constants(ds: xr.Dataset) -> list[Estimate]:
    r"""$N\,\mathrm{SNR}_c^2$ of every N from 4 on."""
    points = boundary(ds).points.sel(samples=slice(4, None))  # NaN where it does not: undecided
    columns = (points.samples * points[k] ** 2 for k in ("value", "low", "high"))
    return [Estimate(*map(float, e)) for e in zip(*(c.values for c in columns), strict=True)]


def on_side(curve_constant: float) -> Callable[[xr.Dataset], Estimate]:
    r"""Share of trainings on the side of $N\,\mathrm{SNR}^2 = c$ that the theory predicts."""

    def measure(ds: xr.Dataset) -> Estimate:
        benign = ds.samples * ds.snr**2 > curve_constant
        return stats.mean(((ds.test_loss < CUT) == benign).astype(float))

    return measure


def mean_where(y: xr.DataArray, region: xr.DataArray) -> Estimate:
    """The mean over the cells of a region of the map."""
    return stats.jackknife(lambda y: y.where(region).mean(), y)


def harmful_error(ds: xr.Dataset) -> Estimate:
    """Test error where the loss is high (over 0.4) although the signal is there (SNR over 5)."""
    return mean_where(ds.test_error, (ds.test_loss.mean("seed") > 0.4) & (ds.snr > 5))


def draw_maps(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Test loss and test error at the end of training")
    curves = {r"$N\,\mathrm{SNR}^2 = 1000$": theory.printed_boundary_snr}
    plot.heatmap(left, ds.test_loss, "samples", "snr", theory=curves)
    plot.heatmap(right, ds.test_error, "samples", "snr", theory=curves)
    return fig


def draw_phases(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Benign and harmful overfitting", width=4.2)
    plot.phase_diagram(
        ax,
        ds.test_loss,
        "samples",
        "snr",
        cut=CUT,
        theory={
            r"paper: $N\,\mathrm{SNR}^2 = 1000$": theory.printed_boundary_snr,
            "derived: $R = 2$": lambda n: theory.boundary_snr(n, PLAIN.noise, PLAIN.noise_big),
        },
        boundary=boundary(ds).points,
    )
    return fig


def draw_boundary(ds: xr.Dataset):
    """The trainings that were run, by their side, and the boundary between them."""
    fig, (ax,) = plot.figure(title="The boundary by bisection", width=4.2, seeds=ds.sizes["seed"])
    loss = ds.test_loss.mean("seed", skipna=False).transpose("samples", "snr")
    for colour, name, side in (
        (plot.BELOW, f"run: $L < {CUT}$", loss < CUT),
        (plot.ABOVE, rf"run: $L \geq {CUT}$", loss >= CUT),
    ):
        i, j = np.nonzero(side.values)
        ax.plot(ds.samples[i], ds.snr[j], "s", color=colour, markersize=4, label=name)
    found = boundary(ds)
    plot.law(ax, found.points, "samples", fit=found.law, label="measured boundary")
    n = ds.samples.values.astype(float)
    plot.theory_curve(ax, n, theory.printed_boundary_snr(n), r"paper: $N\,\mathrm{SNR}^2 = 1000$")
    plot.theory_curve(ax, n, theory.boundary_snr(n, NOISE, NOISE_BIG), "derived: $R = 2$")
    ax.set_ylabel(plot.label(ds.snr))
    return fig


def rounding(ds: xr.Dataset) -> Estimate:
    """Mean absolute difference of the test loss between single and double precision."""
    single, double = (ds.test_loss.sel(numerics=n, drop=True) for n in ("as printed", "float64"))
    return stats.mean(abs(single - double))


def draw_numerics(ds: xr.Dataset):
    n = int(ds.samples[-1])
    fig, (ax,) = plot.figure(title=f"Test loss by step size and precision, $N = {n}$", width=4.2)
    plot.curve(ax, ds.test_loss.isel(samples=-1), "snr", hue="numerics", log="x")
    at = theory.boundary_snr(n, PLAIN.noise, PLAIN.noise_big)
    plot.theory_curve(ax, [at, at], ax.get_ylim(), "derived boundary, $R = 2$")
    return fig


DYNAMICS = dict(
    tokens=4, dim=2048, key_width=1024, value_width=256, noise=0.05, noise_big=1.0, test_samples=400
)

BENIGN = dict(samples=16, snr=snr_of(25, 0.05, 2048))

HARMFUL = dict(samples=10, snr=snr_of(15, 0.05, 2048))


def draw_dynamics(title: str):
    def draw(ds: xr.Dataset):
        fig, axes = plot.figure(1, 3, title=title)
        pairs = (
            ("attention", "mean attention"),
            ("score", "query-key product"),
            ("value", "label-signed value, $V$"),
        )
        at = ds.sel(attention="trained")
        at = at.isel(step=slice(0, int(at.stopped_at.max()) + 2))
        for ax, (name, words) in zip(axes, pairs, strict=True):
            plot.curve(ax, at[f"{name}_signal"], "step", label="signal")
            plot.curve(ax, at[f"{name}_noise"], "step", label="noise token 2")
            ax.set_ylabel(words)
        speeds = early_speeds(ds.sel(attention="trained"))
        early = np.arange(0, 6)
        for speed in speeds:
            plot.theory_curve(axes[2], early, early * float(speed.mean()), "Lemma 5.1")
        return fig

    return draw


def early_speeds(ds: xr.Dataset, lr=PLAIN.lr) -> tuple[xr.DataArray, xr.DataArray]:
    """Lemma 5.1 with the realised norm of the read-out."""
    regime = BENIGN if ds.attrs["experiment"] == "fig3" else HARMFUL
    return speeds_of(regime, lr, ds.read_out_norm2)


def speeds_of(regime: dict, lr, norm2) -> tuple[xr.DataArray, xr.DataArray]:
    signal2 = (regime["snr"] * DYNAMICS["noise"]) ** 2 * DYNAMICS["dim"]
    noise2 = DYNAMICS["noise_big"] ** 2 * DYNAMICS["dim"]
    return theory.value_speeds(lr, signal2, noise2, regime["samples"], DYNAMICS["tokens"], norm2)


def early_growth(probe: str) -> Callable[[xr.Dataset], Estimate]:
    """Growth of a value in the first step, over that of Lemma 5.1."""

    def measure(ds: xr.Dataset) -> Estimate:
        signal, noise = early_speeds(ds)
        grown = ds[probe].isel(step=1) - ds[probe].isel(step=0)
        ratio = grown / (signal if probe == "value_signal" else noise)
        return stats.mean(ratio.sel(attention="trained"))

    return measure


def final(ds: xr.Dataset, winner: str, loser: str, attention: str = "trained"):
    """Probes of winner and loser at the end of training."""
    end = ds.sel(attention=attention).isel(step=-1)
    return {k: (end[f"{k}_{winner}"], end[f"{k}_{loser}"]) for k in ("attention", "score", "value")}


def test_loss(ds: xr.Dataset, attention: str) -> xr.DataArray:
    return ds.test_loss.sel(attention=attention, drop=True)


VARIATIONS = {
    "base": {},
    r"$\tilde\sigma_p = 2$": {"noise_big": 2.0},
    r"$\tilde\sigma_p = 8$": {"noise_big": 8.0},
    r"$\sigma_p = 0.05$": {"noise": 0.05},
    r"$\sigma_p = 0.4$": {"noise": 0.4},
    r"$\epsilon = 0.001$": {"eps": 0.001},
    r"$\eta = 0.05$": {"lr": 0.05},
    r"$c_0 = 1/64$": {"init_scale": 1 / 64},
    r"$c_0 = 1$": {"init_scale": 1.0},
    "$M = 4$": {"tokens": 4},
    "$M = 8$": {"tokens": 8},
    "$d = 512$": {"dim": 512},
    "$d = 2048$": {"dim": 2048},
    "random $y$": {"balanced": False},
    r"with $\Pi$": {"project": True},
}


OUTSIDE = ("$c_0 = 1$", "random $y$")  # Condition 4.1 wants small weights, R = 2 balance


def noises(variation: str) -> tuple[float, float]:
    setting = VARIATIONS[variation]
    return setting.get("noise", NOISE), setting.get("noise_big", NOISE_BIG)


def at_ratio(settings: dict[str, Any]) -> dict[str, float]:
    """The SNR that a ratio R stands for, given the other settings."""
    noise, noise_big = settings.get("noise", NOISE), settings.get("noise_big", NOISE_BIG)
    return {"snr": theory.boundary_snr(settings["samples"], noise, noise_big, settings["ratio"])}


def critical_points(ds: xr.Dataset) -> dict[str, tuple[Estimate, Estimate]]:
    r"""For each variation: the critical $R$ and the critical $N\,\mathrm{SNR}^2$."""
    found = {}
    for variation in map(str, ds.variation.values):
        ratio = stats.threshold(ds.test_loss.sel(variation=variation), "ratio", CUT)
        noise, noise_big = noises(variation)
        found[variation] = ratio, Estimate(*(r * (noise_big / noise) ** 2 for r in ratio))
    return found


def critical_ratios(ds: xr.Dataset) -> list[Estimate]:
    """The critical R of every variation inside the assumptions of its derivation."""
    return [ratio for name, (ratio, _) in critical_points(ds).items() if name not in OUTSIDE]


def n_snr2_spread(ds: xr.Dataset) -> Estimate:
    r"""Largest over smallest critical $N\,\mathrm{SNR}^2$ among the variations."""
    found = [n_snr2 for _, n_snr2 in critical_points(ds).values()]
    top, bottom = stats.worst(found, "high"), stats.worst(found, "low")
    return Estimate(top.value / bottom.value, top.low / bottom.high, top.high / bottom.low)


def draw_collapse(ds: xr.Dataset):
    found = critical_points(ds)
    fig, (left, right) = plot.figure(
        1, 2, title="What the boundary depends on", seeds=ds.sizes["seed"]
    )
    place = xr.DataArray(list(found), dims="variation", name="variation")
    place = place.assign_coords(variation=list(found)).variation
    place.attrs["long_name"] = "variation of the setting"
    panels = (
        (left, "", "critical $R$", 2.0, "derived: $R = 2$"),
        (right, "y", r"critical $N\,\mathrm{SNR}^2$", 1000.0, r"paper: $N\,\mathrm{SNR}^2 = 1000$"),
    )
    for which, (ax, log, words, predicted, name) in enumerate(panels):
        estimates = [e[which] for e in found.values()]
        plot.curve(ax, estimates, place, label="measured", line=False, log=log)
        plot.theory_curve(ax, [0, len(found) - 1], [predicted] * 2, name)
        ax.set_ylabel(words)
    left.set_ylim(0, 4)
    return fig


LEVELS = (0.1, 0.05, 0.02, 0.01, 0.005)


def smallest_step(ds):
    return ds.sel(lr=float(ds.lr.min()), drop=True)


def hitting_time(ds: xr.Dataset, level: float) -> xr.DataArray:
    """First step at which the training loss is at most `level`, interpolated between steps."""
    below = ds.train_loss <= level
    first = below.argmax("step")
    after = ds.train_loss.isel(step=first)
    before = ds.train_loss.isel(step=np.maximum(first - 1, 0))
    return (first - (level - after) / (before - after)).where(below.any("step")).drop_vars("step")


def hitting_times(ds: xr.Dataset) -> xr.DataArray:
    times = xr.concat([hitting_time(ds, level) for level in LEVELS], dim="inverse")
    times = times.assign_coords(inverse=1 / np.array(LEVELS))
    times.inverse.attrs = {"long_name": "inverse training loss", "symbol": r"(1/\epsilon)"}
    times.attrs = {"long_name": "steps to reach it", "symbol": r"T"}
    return times


def step_invariance(ds: xr.Dataset) -> Estimate:
    r"""Largest relative deviation of $\eta T(0.01)$ from its value at the smallest step size."""
    flow_time = ds.lr * hitting_time(ds, 0.01)
    smallest = smallest_step(flow_time)
    return stats.worst(
        [
            stats.mean(abs(flow_time.sel(lr=lr, regime=r) / smallest.sel(regime=r) - 1))
            for lr in np.sort(ds.lr.values)[1:]
            for r in ds.regime.values
        ]
    )


def local_exponent(ds: xr.Dataset) -> list[Estimate]:
    r"""Exponent of $T$ in $1/\epsilon$ over the last three levels, by regime."""
    times = hitting_times(smallest_step(ds))
    return [
        stats.power_law(times.sel(regime=r, drop=True), "inverse", window=(50, 200)).slope
        for r in ds.regime.values
    ]


def log_growth(ds: xr.Dataset) -> Estimate:
    """Correlation of the winning value with log t in stage three (training loss below 0.05)."""
    at = smallest_step(ds).sel(regime="benign")
    late = (at.train_loss < 0.05) & (at.step <= at.stopped_at)
    value, logt = at.value_signal.where(late), np.log(at.step.where(late) + 1.0)
    return stats.mean(xr.corr(value, logt, dim="step"))


def draw_stages(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(1, 3, title="Stages of training")
    small = smallest_step(ds)
    times = hitting_times(small)
    for r in ds.regime.values:
        at = times.sel(regime=r)
        plot.law(
            left, at, "inverse", label=str(r), fit=stats.power_law(at, "inverse", window=(50, 200))
        )
    plot.theory_curve(left, [20, 200], [60, 600], r"theory: exponent 1")
    plot.curve(middle, small.sel(regime="benign").value_signal, "step", label="signal, benign")
    plot.curve(middle, small.sel(regime="harmful").value_noise, "step", label="noise, harmful")
    early = np.arange(0, 40)
    speeds = (
        speeds_of(BENIGN, float(ds.lr.min()), small.read_out_norm2.sel(regime="benign"))[0],
        speeds_of(HARMFUL, float(ds.lr.min()), small.read_out_norm2.sel(regime="harmful"))[1],
    )
    for speed in speeds:
        plot.theory_curve(middle, early, early * float(speed.mean()), "Lemma 5.1")
    middle.set_ylabel("label-signed value, $V$")
    scaled = ds.train_loss.sel(regime="benign")
    for lr in ds.lr.values:
        until = int(ds.stopped_at.sel(regime="benign", lr=lr).min())
        at = scaled.sel(lr=lr, step=slice(0, until)).assign_coords(
            step=scaled.step.sel(step=slice(0, until)) * lr
        )
        at.step.attrs = {"long_name": "rescaled time", "symbol": r"\eta t"}
        plot.curve(right, at.isel(step=slice(1, None)), "step", label=rf"$\eta = {lr:g}$", log="xy")
    return fig
