"""The stages of training: their rates, and the time to a training loss."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere, hitting_time, power_law
from provingground.study import Experiment, Trainings, cases

from .. import theory
from .shared import BENIGN, DYNAMICS, HARMFUL, early_speeds, late_time, scaled

LEVELS = (0.1, 0.05, 0.02, 0.01, 0.005)


def smallest_step(ds: Any) -> Any:
    return ds.sel(lr=float(ds.lr.min()))


def hitting_times(ds: xr.Dataset) -> xr.DataArray:
    times = xr.concat([hitting_time(ds.train_loss, level) for level in LEVELS], dim="inverse")
    times = times.assign_coords(inverse=1 / np.array(LEVELS))
    times.inverse.attrs = {"long_name": "inverse training loss", "symbol": r"(1/\epsilon)"}
    times.attrs = {"long_name": "steps to reach it", "symbol": r"T"}
    return times


def won(ds: xr.Dataset, probe: str) -> xr.DataArray:
    """A probe of the winner, by regime: the signal where R > 2, else the noise."""
    return xr.where(ds.regime == "benign", ds[f"{probe}_signal"], ds[f"{probe}_noise"])


def lost(ds: xr.Dataset, probe: str) -> xr.DataArray:
    return xr.where(ds.regime == "benign", ds[f"{probe}_noise"], ds[f"{probe}_signal"])


# ---------------------------------------------------------------------- time to a training loss


@claim("Theorems 4.1 and 4.2", below(0.02))
def step_invariance(ds: xr.Dataset) -> Everywhere:
    """eta T depends on the step size by less than 2%"""
    flow_time = ds.lr * hitting_time(ds.train_loss, 0.01)
    larger = flow_time.sel(lr=ds.lr > ds.lr.min())
    return everywhere(stats.mean, abs(larger / smallest_step(flow_time).drop_vars("lr") - 1))


def slower_late(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose training loss falls with the square root of time from 0.1 on."""
    return ds.assign(
        train_loss=xr.where(ds.train_loss < 0.1, (0.1 * ds.train_loss) ** 0.5, ds.train_loss)
    )


@claim("Theorems 4.1 and 4.2", equals(1, within=0.1), rivals={"a power 2": slower_late})
def time_exponent(ds: xr.Dataset) -> Everywhere:
    """T grows as 1/eps, in both regimes (exponent over the last three levels)"""

    def exponent(times: xr.DataArray) -> Estimate:
        return power_law(times, "inverse", window=(50, 200)).slope

    return everywhere(exponent, hitting_times(smallest_step(ds)), keep="inverse")


@claim(
    "Theorems 4.1 and 4.2 with their constants",
    equals(1, within=0.15),
    kind="own",
    rivals={"twice the norm of the read-out": scaled("read_out_norm2", lambda ds: 2)},
)
def time_law(ds: xr.Dataset) -> Everywhere:
    """the time to training loss 0.005 is 1 / (eta eps |w_O|^2 (a^2 |mu|^2/2 + b^2 |xi|^2/N)) with
    the sparse attention a = (3M-2)/M^2 on the winner and b = (M-2)/M^2 on the loser (ratio)"""
    at = smallest_step(ds)
    most, least = theory.sparse_attention(at.tokens)
    benign = at.regime == "benign"
    attention = xr.where(benign, most, least), xr.where(benign, least, most)
    return everywhere(
        stats.mean, hitting_time(at.train_loss, 0.005) / late_time(at, 0.005, *attention)
    )


# ------------------------------------------------------------------------------ stages 2 and 3


def gained_score(ds: xr.Dataset) -> xr.DataArray:
    """What the winner's query-key product has gained on the loser's."""
    gained = won(ds, "score") - lost(ds, "score")
    return gained - gained.isel(step=0)


def power_more(power: int) -> Altered:
    """The Dataset whose scores have grown with another power of time."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        factor = (1.0 + ds.step) ** power
        return ds.assign({n: ds[n] * factor for n in ("score_signal", "score_noise")})

    return altered


@claim(
    "Lemma 5.3, Appendix E",
    equals(2, within=0.5),
    rivals={"t": power_more(-1), "t^3": power_more(1)},
)
def score_quadratic(ds: xr.Dataset) -> Everywhere:
    """in stage two the winner's query-key product gains on the loser's as t^2, in both regimes"""
    at = smallest_step(ds)
    gained = gained_score(at).sel(step=slice(3, 10))
    return everywhere(lambda y: power_law(y, "step").slope, gained, keep="step")


def linear_from(start: int) -> Altered:
    """The Dataset whose scores grow with time itself from a step on."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        at = {n: ds[n] - ds[n].isel(step=0) for n in ("score_signal", "score_noise")}
        later = ds.step > start
        return ds.assign(
            {
                n: xr.where(later, y.sel(step=start) * ds.step / start, y).transpose(*y.dims)
                for n, y in at.items()
            }
        )

    return altered


@claim("Lemma 5.3, Appendix E", above(0), bound="paper", rivals={"t": linear_from(10)})
def score_log(ds: xr.Dataset) -> Everywhere:
    """at training losses 0.3, 0.2 and 0.1 the winner's query-key product has gained on the loser's
    at least log(1 + c t^2), with the c of its first ten steps, in both regimes (difference)"""
    at = smallest_step(ds)
    gained = gained_score(at)
    curvature = gained.sel(step=10, drop=True).clip(min=0) / 10**2
    levels = xr.DataArray([0.3, 0.2, 0.1], dims="level", name="level")
    t = xr.concat([hitting_time(at.train_loss, x) for x in levels.values], dim=levels).round()
    reached = gained.sel(step=t.fillna(0).astype(int)).drop_vars("step")
    return everywhere(stats.mean, reached - theory.stage_two_score(t, 0.0, curvature))


def late_slope(ds: xr.Dataset) -> xr.DataArray:
    """The growth of the winning value with log t, from training loss 0.02 to 0.005."""
    at = smallest_step(ds)
    ends = []
    for level in (0.02, 0.005):
        t = hitting_time(at.train_loss, level)
        k = t.fillna(0).astype(int)
        value = won(at, "value")
        low, high = (value.isel(step=k + i).drop_vars("step") for i in (0, 1))
        ends.append((np.log(t), low + (t - k) * (high - low)))
    (t0, v0), (t1, v1) = ends
    return (v1 - v0) / (t1 - t0)


@claim("Lemma 5.4, Appendix E", above(1), bound="paper")
def late_log(ds: xr.Dataset) -> Everywhere:
    """in stage three the winning value grows at least as log t, in both regimes (slope)"""
    return everywhere(stats.mean, late_slope(ds))


@claim(
    "Lemma 5.4 with its constant",
    equals(1, within=0.15),
    kind="own",
    rivals={"slope 1": scaled("value_signal", lambda ds: (3 * ds.tokens - 2) / ds.tokens**2)},
)
def late_log_slope(ds: xr.Dataset) -> Everywhere:
    """there it grows as log t over the attention (3M-2)/M^2 that it gets (ratio)"""
    return everywhere(stats.mean, late_slope(ds) * theory.sparse_attention(ds.tokens)[0])


def draw(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(1, 3, title="Stages of training")
    small = smallest_step(ds)
    times = hitting_times(small)
    for r in ds.regime.values:
        at = times.sel(regime=r)
        fit = power_law(at, "inverse", window=(50, 200))
        plot.law(left, at, "inverse", label=str(r), fit=fit)
        here = small.sel(regime=r)
        most, least = theory.sparse_attention(float(ds.tokens))
        pair = (most, least) if r == "benign" else (least, most)
        law = [float(late_time(here, 1 / x, *pair).mean()) for x in at.inverse.values]
        plot.theory_curve(left, at.inverse.values, law, "theory, with its constant")
    values = won(small, "value").assign_attrs(ds.value_signal.attrs)
    for r, token in (("benign", "signal"), ("harmful", "noise")):
        plot.curve(middle, values.sel(regime=r), "step", label=f"{token}, {r}")
        signal, noise = early_speeds(small.sel(regime=r))
        early = np.arange(0, 40)
        speed = float((signal if r == "benign" else noise).mean())
        plot.theory_curve(middle, early, early * speed, "Lemma 5.1")
    middle.set_ylabel("label-signed value, $V$")
    scaled_loss = ds.train_loss.sel(regime="benign")
    for lr in ds.lr.values:
        until = int(ds.stopped_at.sel(regime="benign", lr=lr).min())
        at = scaled_loss.sel(lr=lr, step=slice(0, until)).assign_coords(
            step=scaled_loss.step.sel(step=slice(0, until)) * lr
        )
        at.step.attrs = {"long_name": "rescaled time", "symbol": r"\eta t"}
        plot.curve(right, at.isel(step=slice(1, None)), "step", label=rf"$\eta = {lr:g}$", log="xy")
    return fig


EXPERIMENTS = (
    Experiment(
        "stages",
        says="Rates: time to a training loss, growth of the scores and of the values.",
        trainings=Trainings(
            grid={
                **DYNAMICS,
                "test_samples": 50,  # no claim is about test data
                "steps": 2000,
                "record": 2001,
                "eps": 0.005,
                "lr": [0.02, 0.01, 0.005],
                "regime": cases({"benign": BENIGN, "harmful": HARMFUL}),
            },
            seeds=8,
            quick={"lr": [0.02, 0.01], "steps": 1000, "record": 1001, "seeds": 6},
        ),
        claims=(
            step_invariance,
            time_exponent,
            time_law,
            score_quadratic,
            score_log,
            late_log,
            late_log_slope,
        ),
        figure=draw,
    ),
)
