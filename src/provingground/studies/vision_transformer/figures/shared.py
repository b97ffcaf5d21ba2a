"""What several rooms share: the two networks, quick sizes, success, and the samples needed."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from provingground import stats
from provingground.claims import Altered
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import axis, cases

from .. import theory

NETWORKS = cases({"ViT": {"attention_rate": 1.0}, "CNN": {"attention_rate": 0.0}})
SUCCESS = 1e-3  # section 2.4: a trial with a smaller test loss is a success

# Quick scale: a fifth of the neurons, and one program for all experiments on patterns that look at
# the end alone.
SMALL: dict[str, Any] = {"width": 200}
SAMPLES = [2, 4, 8, 16, 32, 64, 128]
# Quick scale on tokens: one program as well.
FEW_TOKENS: dict[str, Any] = {"width": 48, "samples": 48, "tokens": 30, "test_samples": 100}
NEEDED = "samples needed, $N_{50}$"


def log(y: xr.DataArray) -> xr.DataArray:
    return xr.DataArray(np.log(y))


def exp(y: xr.DataArray) -> xr.DataArray:
    return xr.DataArray(np.exp(y))


def success(ds: xr.Dataset) -> xr.DataArray:
    """Whether a trial succeeds, as 0 or 1."""
    found = (stats.last(ds.test_loss) < SUCCESS).astype(float)
    found.attrs = {"long_name": "success rate"}
    return found


def of_network(ds: xr.Dataset, network: str) -> xr.Dataset:
    return ds.sel(network=network, drop=True) if "network" in ds.dims else ds


def with_most(ds: Any) -> Any:
    """The part of a Dataset or measurement with the most samples."""
    return ds.sel(samples=ds.samples.max(), drop=True) if "samples" in ds.dims else ds


# ------------------------------------------------------------------------- samples needed


def log_needed(ds: xr.Dataset) -> xr.DataArray:
    r"""$\log N_{50}$ of each seed by the area under its success curve (Spearman and Kärber).

    Where a curve does not get to 0 and 1 inside the grid, this stays inside it too.
    """
    rate, log_n = success(ds), log(ds.samples)
    return float(log_n[-1]) - rate.assign_coords(samples=log_n).integrate("samples")


def needed(ds: xr.Dataset) -> xr.DataArray:
    found = exp(log_needed(ds))
    return found.assign_attrs(long_name="samples needed", symbol="N_{50}")


def slope(y: xr.DataArray, x: xr.DataArray, along: str | Sequence[str]) -> xr.DataArray:
    """The slope of y in x along some dims, by least squares, for each seed by itself."""
    x = x - x.mean(along)
    return (y * x).sum(along) / (x**2).sum(along)


def exponents(ds: xr.Dataset, x: xr.DataArray, along: str) -> Everywhere:
    r"""The exponent of $N_{50}$ in a variable, at each setting of the other axes."""
    return everywhere(stats.mean, slope(log_needed(ds), log(x), along))


def needs(law: Callable[[xr.Dataset], Any], *, scaled: bool = True) -> Altered:
    """The Dataset whose trainings succeed from other numbers of samples on: such that these follow
    a law, up to a constant if `scaled`, with the noise of their own from seed to seed."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        found = log_needed(ds)
        mean = found.mean("seed")
        wanted = np.log(xr.zeros_like(mean) + law(ds))
        wanted = wanted + (found - mean) + (float((mean - wanted).mean()) if scaled else 0.0)
        loss = xr.where(np.log(ds.samples) >= wanted, SUCCESS / 10, 1.0)
        made = loss.broadcast_like(ds.test_loss).transpose(*ds.test_loss.dims)
        return ds.assign(test_loss=made.astype(ds.test_loss.dtype))

    return altered


def exp_mean(y: xr.DataArray) -> Estimate:
    """The geometric mean, of logarithms."""
    return stats.mean(y).map(lambda v: float(np.exp(v)))


# ------------------------------------------------------------------------------- attention


def rise(ds: xr.Dataset) -> xr.DataArray:
    """By how much training raises the attention on label-relevant tokens."""
    return stats.last(ds.attention) - stats.first(ds.attention)


# --------------------------------------------------------------------------------- neurons


def aside(ds: xr.Dataset) -> xr.DataArray:
    """Growth along irrelevant features over that along p_1."""
    end = stats.last(ds.growth)
    return end.sel(relation="irrelevant", drop=True) / end.sel(relation="own", drop=True)


# ---------------------------------------------------------------- settings that follow from others


def rest_is_confusion(settings: dict[str, Any]) -> dict[str, float]:
    r"""Figures 2.1(a) and 2.3: half of the tokens are irrelevant, so $\alpha_\#=1/2-\alpha_*$."""
    return {"frac_confusion": 0.5 - settings["frac_relevant"]}


def of_plane(settings: dict[str, Any]) -> dict[str, float]:
    r"""$\alpha_*$ and $\alpha_\#$ from their sum and their relative gap."""
    voters, ratio = settings["voters"], settings["ratio"]
    return {"frac_relevant": voters * (1 + ratio) / 2, "frac_confusion": voters * (1 - ratio) / 2}


def ratios(values: Any) -> Any:
    symbol = r"(\alpha_*-\alpha_\#)/(\alpha_*+\alpha_\#)"
    return axis(values, symbol, "relative gap of the vote", sets=of_plane)


def voters(values: Any) -> Any:
    return axis(values, r"\alpha_*+\alpha_\#", "tokens that vote")


def counted(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """The fractions of relevant and of confusion tokens after rounding to whole tokens."""
    return tuple(  # pyright: ignore[reportReturnType]
        np.round(f * ds.tokens) / ds.tokens for f in (ds.frac_relevant, ds.frac_confusion)
    )


def relative_gap(ds: xr.Dataset) -> xr.DataArray:
    found = theory.relative_gap(*counted(ds))
    symbol = r"(\alpha_*-\alpha_\#)/(\alpha_*+\alpha_\#)"
    return found.assign_attrs(long_name="relative gap of the vote", symbol=symbol)
