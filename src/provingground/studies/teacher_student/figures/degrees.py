"""Beyond the paper: teachers whose groups have unequal sizes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, claim, equals
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment, Trainings

from .. import theory
from .shared import at_end, from_start, law_of, mapped


def excess(ds: xr.Dataset) -> xr.DataArray:
    sizes = ds.tokens, ds.group, ds.other, ds.part
    return theory.mixed_excess(*sizes, ds.lr, ds.step) + 0 * ds.energy


def of_mean_size(ds: xr.Dataset) -> xr.DataArray:
    """The law of the paper's teachers, at the mean size of a group."""
    mean = (1 - ds.part) * ds.group + ds.part * ds.other
    return theory.excess_law(ds.tokens, mean, ds.lr, ds.step) + 0 * ds.energy


@claim(
    "Theorem 3.1(3), beyond its teachers",
    equals(1, within=0.1),
    kind="own",
    law=law_of("test_loss", excess),
    rivals={
        "the mean size of a group": law_of("test_loss", of_mean_size),
        "the first size": law_of(
            "test_loss",
            lambda ds: theory.excess_law(ds.tokens, ds.group, ds.lr, ds.step) + 0 * ds.energy,
        ),
    },
)
def mixed_constant(ds: xr.Dataset) -> Everywhere:
    """eta T (L - L_opt) is the sum over columns of K_i (D - K_i) / 4 at the end (ratio)"""
    end = at_end(ds)
    return everywhere(stats.mean, end.test_loss / excess(end))


def stacked(both: list[xr.DataArray]) -> xr.DataArray:
    found: Any = xr.concat(both, "degree")
    return found


def coupled(ds: xr.Dataset) -> xr.DataArray:
    """The leaks of both sizes, one after the other along `degree`."""
    args = (ds.tokens, ds.group, ds.other, ds.part, ds.lr, ds.energy, ds.step, ds.kappa)
    both = [mapped(lambda *a, i=i: theory.mixed_leaks(*a)[i], *args) for i in (0, 1)]
    return stacked(both)


def own(ds: xr.Dataset) -> xr.DataArray:
    """What each size would leak in a teacher of its own."""
    rest = ds.lr, ds.energy, ds.step, ds.kappa
    return stacked([theory.leak_law(ds.tokens, k, *rest) for k in (ds.group, ds.other)])


def leaks_are(f: Any) -> Altered:
    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = f(from_start(ds)).assign_coords(step=ds.step.values)
        return ds.assign(leaks=made.transpose(*ds.leaks.dims).astype(ds.leaks.dtype))

    return altered


@claim(
    "derived from Lemma C.2",
    equals(1, within=0.1),
    kind="own",
    law=leaks_are(coupled),
    rivals={
        "each size by itself": leaks_are(own),
        "all alike": leaks_are(lambda ds: coupled(ds).mean("degree") + 0 * coupled(ds)),
    },
)
def mixed_leaks(ds: xr.Dataset) -> Everywhere:
    """columns share the values, so their leaks are coupled: each is that of one equation for all
    sizes (ratio)"""
    end = at_end(ds)
    return everywhere(stats.mean, end.leaks / coupled(end))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Groups of unequal sizes (recursion)")
    at = at_end(ds).isel(kappa=0, tokens=0)
    scaled = (at.test_loss * at.lr * at.step).assign_attrs(
        long_name="rescaled excess loss", symbol=r"\eta T(L - L_{\mathrm{opt}})"
    )
    plot.curve(left, scaled, "other", line=False)
    x = at.other.values.astype(float)
    for words, law in (
        (r"$\sum_i K_i(D-K_i)/4$", excess),
        (r"$\bar K D(D-\bar K)/4$", of_mean_size),
    ):
        plot.theory_curve(left, x, (law(at) * at.lr * at.step).mean("seed").values, words)
    at = at.isel(seed=[0])  # energies of the teachers differ
    for i, words in enumerate((f"$K = {int(at.group)}$", "$K'$")):
        y = at.leaks.isel(degree=i).assign_attrs(at.leaks.attrs)
        plot.curve(right, y, "other", label=words, line=False, log="y")
        plot.theory_curve(right, x, coupled(at).isel(degree=i).mean("seed").values, "coupled")
        plot.theory_curve(right, x, own(at).isel(degree=i).mean("seed").values, "by itself")
    return fig


def draw_base(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Groups of unequal sizes (recursion)", width=4.2)
    at = ds.sel(step=slice(1000, None))
    y = (at.test_loss / excess(at)).transpose("seed", "step")
    plot.curve(ax, y, "step", label="excess loss", log="x")
    for i in (0, 1):
        y = (at.leaks / coupled(at)).isel(degree=i).transpose("seed", "step")
        plot.curve(ax, y, "step", label=("leak, $K$", "leak, $K'$")[i], log="x")
    plot.theory_curve(ax, at.step, np.ones(at.step.size), "law")
    ax.set_ylabel("measured over law")
    return fig


# ------------------------------------------------------------------------------------ by SGD


def leak_ratio(ds: xr.Dataset) -> xr.DataArray:
    """The leak of the columns with large groups over that of those with small ones."""
    n = 12
    s, on = (v.isel(key=slice(n), query=slice(n)) for v in (ds.scores, ds.support))
    leak = (s * (1 - on)).sum("key")
    large = on.sum("key") > 3
    return leak.where(large).mean("query") / leak.where(~large).mean("query")


def ratio_of(f: Any) -> float:
    low, high = f(12.0, 1.0, 5.0, 0.5, 1.0, 1.0, 1.0, 0.0)
    return float(high / low)


def by_itself(d: float, k: float, other: float, part: float, *rest: float) -> tuple[Any, Any]:
    return theory.leak_law(d, k, *rest), theory.leak_law(d, other, *rest)


def ratio_is(wanted: float) -> Altered:
    """The Dataset whose two leaks stand in a proportion."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        factor = wanted / leak_ratio(ds).mean("seed")
        large = ds.support.sum("key") > 3
        off = xr.where(large & (ds.support < 0.5), factor, 1.0)
        return ds.assign(scores=(ds.scores * off).transpose(*ds.scores.dims))

    return altered


@claim(
    "derived from Lemma C.2",
    equals(1, within=0.1),
    kind="own",
    law=ratio_is(ratio_of(theory.mixed_leaks)),
    rivals={
        "each size by itself": ratio_is(ratio_of(by_itself)),
        "all alike": ratio_is(1.0),
    },
)
def mixed_leaks_sgd(ds: xr.Dataset) -> Any:
    """online SGD with groups of 1 and 5 of 12 tokens leaks from both in the proportion of that
    equation (ratio)"""
    return stats.mean(leak_ratio(ds)) / ratio_of(theory.mixed_leaks)


def draw_sgd(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Scores of groups of 1 and 5 tokens (SGD)", width=4.2)
    n = 12
    s = ds.scores.isel(seed=[0], key=slice(n), query=slice(n))
    s = s.assign_coords(key=np.arange(n), query=np.arange(n))
    for name in ("key", "query"):
        s[name].attrs = {"long_name": name}
    plot.heatmap(ax, s, "query", "key", limits=(0, None))
    ax.invert_yaxis()
    return fig


# ------------------------------------------------------------------------------- what is run


def in_domain(s: Mapping[str, Any]) -> bool:
    """Stable, and late for both sizes."""
    d, energy = s["tokens"], s["dim"] * s["outputs"] * s["scale"] ** 2
    args = s["lr"], energy, s["steps"], s["kappa"]
    sizes = s["group"], s["other"]
    small = max(theory.leak_law(d, k, *args) for k in sizes) < 0.03
    stable = s["lr"] < 0.5 * theory.largest_step(d, min(sizes), s["kappa"])
    return bool(small and stable and 2 * max(sizes) <= d)


EXPERIMENTS = (
    Experiment(
        "degrees",
        says="Half of the columns with groups of another size, from a recursion with two logits.",
        trainings=Trainings(
            simulator="degrees",
            grid={
                "tokens": [20, 40, 80],
                "group": 1,
                "other": [1, 2, 4, 7, 10],
                "kappa": [0.0, 0.1, 1.0],
                "scale": 4.0,
                "lr": 0.02,
                "steps": 1_000_000,
                "horizon": 1_000_000,
                "record": 41,
            },
            seeds=8,
            quick={
                "tokens": [20, 60],
                "other": [2, 4, 10],
                "kappa": [0.0, 1.0],
                "scale": 8.0,
                "steps": 250_000,
                "horizon": 250_000,
                "seeds": 3,
            },
        ),
        claims=(mixed_constant, mixed_leaks),
        figure=draw,
    ),
    Experiment(
        "degrees_base",
        says="The same at one setting, from which the others of its domain are drawn.",
        trainings=Trainings(
            simulator="degrees",
            grid={
                "tokens": 40,
                "group": 1,
                "other": 20,
                "scale": 4.0,
                "lr": 0.02,
                "steps": 1_000_000,
                "horizon": 1_000_000,
                "record": 41,
            },
            seeds=8,
            quick={"scale": 8.0, "steps": 250_000, "horizon": 250_000, "seeds": 3},
            domain={
                "tokens": (10, 100),
                "group": (1, 20),
                "other": (1, 20),
                "part": (0.1, 0.9),
                "kappa": (0.0, 1.0),
                "scale": (1.0, 10.0),
                "lr": (0.005, 0.05),
                "dim": (3, 30),
            },
            where=in_domain,
        ),
        claims=(mixed_constant, mixed_leaks),
        figure=draw_base,
    ),
    Experiment(
        "degrees_sgd",
        says="Online SGD on a teacher with groups of 1 and 5 tokens.",
        trainings=Trainings(
            data="mixed",
            grid={
                "tokens": 12,
                "group": 1,
                "batch": 50,
                "noise": 0.3,
                "steps": 10_000,
                "horizon": 10_000,
                "record": 21,
                "test_samples": 1,
                "frame": 12,
            },
            seeds=8,
            quick={"steps": 3000, "horizon": 3000, "seeds": 3},
        ),
        claims=(mixed_leaks_sgd,),
        figure=draw_sgd,
    ),
)
