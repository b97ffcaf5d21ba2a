"""What several rooms share: settings, regions of the map, who wins, and where."""

from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import numpy as np
import xarray as xr

from provingground import stats
from provingground.claims import Altered, curve
from provingground.stats import Estimate
from provingground.study import cases

from .. import theory

CUT = 0.2  # Figure 1(b) calls a test loss below this benign

ATTENTION = cases({"trained": {}, "frozen": {"attention_rate": 0.0}})

DYNAMICS = dict(
    tokens=4, dim=2048, key_width=1024, value_width=256, noise=0.05, noise_big=1.0, test_samples=400
)
BENIGN = dict(samples=16, snr=25 / (0.05 * sqrt(2048)))
HARMFUL = dict(samples=10, snr=15 / (0.05 * sqrt(2048)))


def snr_of(signal_norm: Any) -> Any:
    r"""$\mathrm{SNR} = \|\mu\|/(\sigma_p\sqrt d)$ with the noise and dimension of Figure 1."""
    return signal_norm / (0.2 * sqrt(1024))


SIGNAL_NORMS = np.geomspace(1, 100, 24)
QUICK_SNR = list(snr_of(np.array([10, 18, *np.geomspace(30, 100, 9)])))


def at_ratio(settings: dict[str, Any]) -> dict[str, float]:
    """The SNR that a ratio R stands for, given the other settings."""
    given = {n: settings[n] for n in ("samples", "noise", "noise_big")}
    return {"snr": theory.boundary_snr(**given, ratio=settings["ratio"])}


# ------------------------------------------------------------------------- read off a Dataset


def ratio(ds: xr.Dataset) -> xr.DataArray:
    """R at every setting."""
    return theory.signal_ratio(ds.samples, ds.snr, ds.noise, ds.noise_big)


def signal_norm2(ds: xr.Dataset) -> xr.DataArray:
    return (ds.snr * ds.noise) ** 2 * ds.dim


def noise_norm2(ds: xr.Dataset) -> xr.DataArray:
    return ds.noise_big**2 * ds.dim


def lead(ds: xr.Dataset) -> xr.DataArray:
    """How far the signal's value is ahead of the noise's at the end: from -1 to 1, 0 if equal."""
    signal, noise = ds.value_signal.isel(step=-1), ds.value_noise.isel(step=-1)
    return (signal - noise) / (abs(signal) + abs(noise))


def reached(ds: xr.Dataset) -> xr.DataArray:
    """The N, from 4 on, for which $N\\,\\mathrm{SNR}^2 = 1000$ lies on the axis of SNR."""
    n = ds.samples
    return n[(n >= 4) & (theory.printed_boundary_snr(n) < float(ds.snr.max()))]


def loss_boundary(ds: xr.Dataset, slope: float | None = None) -> stats.Boundary:
    """The SNR at which the test loss crosses the cut, for each N from 4 on."""
    return stats.phase_boundary(ds.test_loss, "snr", "samples", CUT, window=(4, inf), slope=slope)


def test_loss_law(ds: xr.Dataset) -> xr.DataArray:
    r"""$\ell(V(2M-1)/M^2)$ with the value $V$ that the signal has at the end (Lemma 5.5)."""
    return theory.benign_test_loss(ds.value_signal.isel(step=-1), ds.tokens)


def inside(region: xr.DataArray, y: xr.DataArray) -> xr.DataArray:
    """The settings of a region of the map, in a row."""
    cells = region.stack(setting=region.dims)
    return y.stack(setting=region.dims).isel(setting=np.flatnonzero(cells))


def mean_where(y: xr.DataArray, region: xr.DataArray) -> Estimate:
    """The mean over the settings of a region of the map."""
    return stats.mean(inside(region, y))


# ------------------------------------------------------------------------------ what would be


def values_equal_at(r: float) -> Altered:
    """The Dataset whose values are in proportion R to r: equal where R = r."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = ds.value_noise * (ratio(ds) / r)
        return ds.assign(value_signal=made.transpose(*ds.value_signal.dims))

    return altered


def scaled(probe: str, factor: Callable[[xr.Dataset], Any]) -> Altered:
    """The Dataset with a probe times what `factor(ds)` says."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign({probe: (ds[probe] * factor(ds)).transpose(*ds[probe].dims)})

    return altered


loss_as_the_law: Altered = curve("test_loss", lambda ds: test_loss_law(ds).mean("seed"))
loss_of_uniform_queries: Altered = curve(
    "test_loss",
    lambda ds: np.log1p(np.exp(-ds.value_signal.isel(step=-1).mean("seed") / ds.tokens)),
)


def early_speeds(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Lemma 5.1 with the realised norm of the read-out."""
    return theory.value_speeds(
        ds.lr, signal_norm2(ds), noise_norm2(ds), ds.samples, ds.tokens, ds.read_out_norm2
    )


def late_time(ds: xr.Dataset, eps: Any, on_signal: Any, on_noise: Any) -> xr.DataArray:
    """The steps of Theorems 4.1 and 4.2 with their constant, given the attention."""
    norms = signal_norm2(ds), noise_norm2(ds)
    return theory.late_time(ds.lr, eps, *norms, ds.samples, ds.read_out_norm2, on_signal, on_noise)
