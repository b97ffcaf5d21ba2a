"""What several rooms share: the six tasks of Figure 2 and how they are trained, parts of a Dataset,
and settings that follow from others."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import stats
from provingground.claims import Altered, curve
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Cases, Trainings, cases

from .. import noise, theory

CNN = dict(teacher="cnn", tokens=36, group=4)
GCN = dict(teacher="gcn", tokens=20, group=3)
STS = dict(teacher="sts", tokens=20, group=4, kappa=1.0)
GSLP = dict(teacher="gslp", tokens=20, group=1, kappa=1.0, outputs=1, lr=0.05)

TASKS: dict[str, dict[str, Any]] = {
    "CNN, ReLU": {**CNN, "kappa": 0.0},
    "CNN, leaky ReLU": {**CNN, "kappa": 0.1},
    "GCN, ReLU": {**GCN, "kappa": 0.0},
    "GCN, leaky ReLU": {**GCN, "kappa": 0.1},
    "STS": STS,
    "GSLP": GSLP,
}
# T* falls as 1/scale^2: a large V* shows in 800 steps what takes 3200 at scale 1.
QUICK_TASKS = {n: {**task, "scale": 4.0 if n == "GSLP" else 2.0} for n, task in TASKS.items()}


def forms(steps: int, **sgd: Any) -> Cases:
    """SGD and recursion on one axis of time. SGD ends early; the recursion costs nothing."""
    return cases(
        {
            "SGD": {"simulator": "sgd", "steps": steps, **sgd},
            "recursion": {"simulator": "recursion", "steps": max(steps, 1_000_000)},
        }
    )


FIGURE_2 = Trainings(
    grid={
        "task": cases(TASKS),
        "form": forms(20_000),
        "horizon": 1_000_000,
        "test_samples": 3000,
    },
    seeds=8,
    quick={"task": cases(QUICK_TASKS), "form": forms(800), "test_samples": 200, "seeds": 4},
)


SHORT = ("ReLU", "leaky ReLU")
LONG = ("ReLU, large steps", "leaky ReLU, large steps")


def students(rate: float, some: tuple[str, ...] = ()) -> Cases:
    """Those of Figures 4 and 5; the same with ten times larger steps, which get further; one whose
    images are rolled around, so that no patch is background in most of them; one without Adam. Or
    some of these."""
    every: dict[str, dict[str, Any]] = {
        "ReLU": {"kappa": 0.0, "rate": rate},
        "leaky ReLU": {"kappa": 0.1, "rate": rate},
        "ReLU, large steps": {"kappa": 0.0, "rate": 10 * rate},
        "leaky ReLU, large steps": {"kappa": 0.1, "rate": 10 * rate},
        "ReLU, rolled images": {"kappa": 0.0, "rate": rate, "rolled": 1.0},
        "ReLU, SGD": {"kappa": 0.0, "rate": 0.05, "rule": "sgd"},
    }
    return cases({name: every[name] for name in some or every})


FEW: dict[str, Any] = {
    "images": 6000,
    "test_images": 1000,
    "lessons": 6000,
    "steps": 6000,
    "record": 21,
    "seeds": 3,
}
DIGITS = Trainings(
    grid={"student": students(0.001)},
    simulator="digits",
    data="mnist",
    seeds=8,
    quick={"student": students(0.007), **FEW},
)
LONGER = Trainings(
    grid={"student": students(0.001, SHORT), "steps": 400_000},
    simulator="digits",
    data="mnist",
    seeds=8,
    quick={"student": students(0.007, SHORT), **FEW, "steps": 60_000},
)


# ------------------------------------------------------------------------- parts of a Dataset


def short(ds: xr.Dataset) -> xr.Dataset:
    """The two students of the paper, with the smaller steps."""
    return ds.sel(student=list(SHORT))


def short_and_long(ds: xr.Dataset) -> xr.Dataset:
    """The same, and with the larger steps: the paper does not say how long it trains."""
    return ds.sel(student=[*SHORT, *LONG])


def of(ds: xr.Dataset, form: str) -> xr.Dataset:
    """The trainings of one form, at the recorded steps that they reached."""
    ds = ds.sel(form=form)
    return ds.isel(step=slice(1, None)).sel(step=slice(1, int(ds.steps)))


def exact(ds: xr.Dataset) -> xr.Dataset:
    """The recursion's part, where there is another."""
    return of(ds, "recursion") if "form" in ds.dims else ds


def last_decade(y: xr.DataArray) -> tuple[float, float]:
    end = float(y.step[-1])
    return end / 10, end


def late_slope(y: xr.DataArray) -> Estimate:
    """Exponent in t over the last decade of a training."""
    return stats.power_law(y, "step", last_decade(y)).slope


def late_slopes(y: xr.DataArray) -> Everywhere:
    """The same for every task."""
    return everywhere(late_slope, y, keep="step")


def at_end(ds: xr.Dataset) -> xr.Dataset:
    return ds.isel(step=-1)


def as_power(probe: str, power: float) -> Altered:
    """The Dataset whose probe is a power of the step."""
    return curve(probe, lambda ds: ds.step.clip(1).astype(float) ** power, scaled=True)


def each_as_power(probe: str, power: float) -> Altered:
    """The same for every seed by itself, with the sign and size that it has at the end."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        t = ds.step.clip(1).astype(float)
        made = ds[probe].isel(step=-1, drop=True) * (t / float(t[-1])) ** power
        return ds.assign({probe: made.transpose(*ds[probe].dims).astype(ds[probe].dtype)})

    return altered


def from_start(ds: xr.Dataset) -> xr.Dataset:
    """With step 0 at 1/2, where laws of late times are still finite."""
    return ds.assign_coords(step=ds.step.where(ds.step > 0, 0.5))


def law_of(probe: str, f: Callable[[xr.Dataset], xr.DataArray]) -> Altered:
    """The Dataset whose probe is, on average over seeds, f at every step."""
    return curve(
        probe, lambda ds: f(from_start(ds)).mean("seed").assign_coords(step=ds.step.values)
    )


def mapped(f: Callable[..., Any], *args: xr.DataArray) -> xr.DataArray:
    """A function of plain numbers at every setting."""
    return xr.apply_ufunc(f, *args)


# ------------------------------------------------------------------------- laws of a Dataset


def over_excess_law(ds: xr.Dataset) -> xr.DataArray:
    r"""$4\eta T(L - L_{\rm opt})/(KD(D-K))$."""
    return ds.test_loss / theory.excess_law(ds.tokens, ds.group, ds.lr, ds.step)


def leak_law(ds: xr.Dataset) -> xr.DataArray:
    return theory.leak_law(ds.tokens, ds.group, ds.lr, ds.energy, ds.step, ds.kappa)


def worst_law(ds: xr.Dataset) -> xr.DataArray:
    args = ds.group, ds.lr, ds.energy, ds.step, ds.kappa
    return theory.worst_law(*args, ds.push, ds.spread)


def average_law(ds: xr.Dataset) -> xr.DataArray:
    return theory.average_law(ds.group, ds.lr, ds.energy, ds.step, ds.kappa, ds.spread)


def floor(sgd: xr.Dataset, population: xr.Dataset) -> noise.Floor:
    """What noise adds to the recursion for one task, at the steps that SGD reached."""
    at = population.sel(step=sgd.step)
    names = ("tokens", "group", "lr", "kappa", "dim", "outputs", "noise", "batch")
    d, k, lr, kappa, dim, outputs, sigma, batch = (float(sgd[n]) for n in names)
    rest = at.energy, sigma, batch, at.leak, at.value
    return noise.sgd_floor(str(sgd.teacher.item()), d, k, lr, kappa, dim, outputs, *rest)


def with_floor(ds: xr.Dataset, *parts: str) -> xr.DataArray:
    """Recursion plus some parts of the floor (all of them by default), at the steps of SGD."""
    sgd, population = of(ds, "SGD"), of(ds, "recursion")
    found = floor(sgd, population)
    added = sum(getattr(found, part) for part in parts) if parts else found.total
    return population.test_loss.sel(step=sgd.step) + added


def late(y: xr.DataArray, share: float = 0.75) -> xr.DataArray:
    """The steps after a share of the training."""
    return y.sel(step=slice(share * float(y.step[-1]), None))


def over_floor(ds: xr.Dataset, *parts: str) -> Estimate:
    """Excess loss of SGD in the last quarter of a training, over recursion plus floor."""
    return stats.paired_ratio(late(of(ds, "SGD").test_loss), late(with_floor(ds, *parts)))


def each(dims: str | tuple[str, ...], measure: Callable[[xr.Dataset], Estimate], ds: xr.Dataset):
    """A measure of the whole Dataset at each place of some dims."""
    names = (dims,) if isinstance(dims, str) else dims
    places = xr.DataArray(
        np.arange(int(np.prod([ds.sizes[d] for d in names]))).reshape([ds.sizes[d] for d in names]),
        {d: ds[d] for d in names},
        names,
    )
    first = places.expand_dims(seed=ds.seed)

    def at(place: xr.DataArray) -> Estimate:
        index = np.unravel_index(int(place.values.flat[0]), [ds.sizes[d] for d in names])
        return measure(ds.isel(dict(zip(names, map(int, index), strict=True))))

    return everywhere(at, first)


def sgd_is(*parts: str, times: float = 1.0) -> Altered:
    """The Dataset whose SGD is the recursion plus a multiple of some parts of the floor (all of
    them by default)."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = ds.test_loss.copy(deep=True)
        for place in _places(ds):
            one = ds.sel(place)
            sgd = of(one, "SGD").test_loss
            plain = of(one, "recursion").test_loss.sel(step=sgd.step)
            wanted = plain + times * (with_floor(one, *parts) - plain)
            fitted = wanted.mean("seed") * sgd / sgd.mean("seed")
            at = {**place, "form": "SGD", "step": sgd.step}
            made.loc[at] = fitted.transpose(*made.loc[at].dims).values
        return ds.assign(test_loss=made)

    return altered


def _places(ds: xr.Dataset) -> list[dict[str, Any]]:
    names = [d for d in ds.test_loss.dims if d not in ("seed", "step", "form")]
    stacked = [{}]
    for name in names:
        stacked = [{**s, name: v} for s in stacked for v in ds[name].values]
    return stacked


# ---------------------------------------------------------------- settings that follow from others


def at_slack(settings: dict[str, Any]) -> dict[str, float]:
    r"""The scale of $V^*$ at which $D^2K/\mathcal V$ has a value (on average)."""
    weights = settings["dim"] * settings["outputs"] * settings["slack"]
    return {"scale": float(settings["tokens"] * (settings["group"] / weights) ** 0.5)}
