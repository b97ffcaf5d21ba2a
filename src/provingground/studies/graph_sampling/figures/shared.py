"""What several rooms share: graphs, scales and labels, the quick sizes, and parts of a Dataset."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Trainings, cases

from .. import theory

QUICK: dict[str, Any] = dict(nodes=500, samples=350, width=32, lr=0.02, steps=160)
NMSE = "test MSE / variance of the labels"

# Scales (p_1, p_2) of the two groups: of the labels in the datasets, of training in the networks.
SCALES = {"1": (0.9, 0.1), "2": (0.7, 0.3), "3": (0.5, 0.5)}
WORDS = {k: f"({p1:g}, {p2:g})" for k, (p1, p2) in SCALES.items()}
DATASETS = {f"dataset {k}": dict(p1_hat=a, p2_hat=b) for k, (a, b) in SCALES.items()}
TRAINED = {WORDS[k]: dict(p1=a, p2=b) for k, (a, b) in SCALES.items()}
MATCHED = dict(zip(DATASETS, TRAINED, strict=True))
FAR = (("dataset 1", "(0.5, 0.5)"), ("dataset 3", "(0.9, 0.1)"))  # the most different scales

UNBALANCED, BALANCED = dict(group_share=0.05), dict(group_share=0.5)
GRAPHS = {"unbalanced": UNBALANCED, "balanced": BALANCED}
TARGETS = {"(5.20)": dict(concept=False), "concept class": dict(concept=True)}
MATCHED_GRAPHS = {
    "unbalanced": {**UNBALANCED, **dict(p1=0.9, p2=0.1, p1_hat=0.9, p2_hat=0.1)},
    "balanced": {**BALANCED, **dict(p1=0.5, p2=0.5, p1_hat=0.5, p2_hat=0.5)},
}
# The three graphs of Figures 5.1 and 5.2, by their degrees, in the order of the largest row sum.
DEGREES = {
    "(4, 4)": dict(degree_1=4, degree_2=4),
    "(20, 2)": dict(degree_1=20, degree_2=2),
    "(100, 2)": dict(degree_1=100, degree_2=2),
}
FEW, HUBS = "(4, 4)", "(100, 2)"
FIGURE_SCALES = dict(p1=0.7, p2=0.3, p1_hat=0.7, p2_hat=0.3)


def at_fraction(settings: dict[str, Any]) -> dict[str, float]:
    """The same sampled fraction in both groups."""
    return {"kept_1": settings["fraction"], "kept_2": settings["fraction"]}


# ------------------------------------------------------------------------- parts of a Dataset


def end(y: xr.DataArray) -> xr.DataArray:
    return y.isel(step=-1, drop=True)


def error(ds: xr.Dataset, probe: str = "test_error", **where: Any) -> xr.DataArray:
    """The test error at the end of training, at one place of the grid."""
    return end(ds[probe]).sel(where, drop=True)


def ratios(a: xr.DataArray, b: xr.DataArray, keep: str | Sequence[str] = ()) -> Everywhere:
    """The paired ratio of two arrays at every setting they have, but for dims to `keep`, which are
    averaged."""
    left, right = xr.broadcast(a, b)
    return everywhere(lambda a, b: stats.paired_ratio(a, b), left, right, keep=keep)


def together(*found: Everywhere) -> Everywhere:
    """Estimates of several kinds of settings, for a statement about all of them."""
    return Everywhere(*(sum((getattr(e, f) for e in found), ()) for f in Everywhere._fields))


def bare(y: xr.DataArray) -> xr.DataArray:
    """Without coordinates of settings."""
    return y.drop_vars([c for c in y.coords if c not in y.dims])


def settings_of(ds: xr.Dataset) -> list[xr.DataArray]:
    """Degrees, share, scales and fractions of the two groups."""
    names = ("degree_1", "degree_2", "group_share", "p1", "p2", "kept_1", "kept_2")
    return [ds[n].astype(float) for n in names]


def at_settings(f: Callable[..., float], ds: xr.Dataset) -> xr.DataArray:
    """A function of degrees, sizes, scales and fractions of the groups, at every setting."""

    def one(d1, d2, share, p1, p2, f1, f2):
        return f((d1, d2), (share, 1 - share), (p1, p2), (f1, f2))

    return bare(xr.apply_ufunc(one, *settings_of(ds), vectorize=True))


def largest_row(ds: xr.Dataset) -> xr.DataArray:
    """The expected largest error of a row of asymmetric samples, at every setting."""

    def one(d1, d2, share, p1, p2, f1, f2, nodes):
        return theory.largest_row((d1, d2), (share, 1 - share), (p1, p2), (f1, f2), nodes)

    nodes = ds.nodes.astype(float)
    return bare(xr.apply_ufunc(one, *settings_of(ds), nodes, vectorize=True))


# ----------------------------------------------------------------------------------- rivals


def alike(*dims: str) -> Altered:
    """The Dataset in which the settings along some dims make no difference to the errors."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = {}
        for name in ("test_error", "test_loss"):
            y = ds[name]
            mean = y.mean("seed")
            along = [d for d in dims if d in y.dims]
            made[name] = (mean.mean(along) * (y / mean)).transpose(*y.dims).astype(y.dtype)
        return ds.assign(made)

    return altered


def unlearned(**at: Any) -> Altered:
    """The Dataset in which some trainings end at the variance of the labels: nothing is learned."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        y = ds.test_error
        chosen = xr.zeros_like(y, bool)
        chosen.loc[at] = True
        return ds.assign(test_error=xr.where(chosen, y / y.mean("seed"), y).transpose(*y.dims))

    return altered


# ----------------------------------------------------------------------------------- figures


def named(y: xr.DataArray, dim: str, words: str) -> xr.DataArray:
    """With words for an axis of labels."""
    y = y.copy(deep=False)
    y[dim].attrs["long_name"] = words
    return y


def by_scales(y: xr.DataArray) -> xr.DataArray:
    """With datasets by the scales of their labels."""
    y = y.assign_coords(dataset=[WORDS[str(d)[-1]] for d in y.dataset.values])
    return named(y, "dataset", r"scales of the labels, $(\hat p_1, \hat p_2)$")


def bound(ax: Any, y: float, label: str) -> None:
    """A level across the panel."""
    low, high = ax.get_xlim()
    plot.theory_curve(ax, [low, high], [y, y], label)
    ax.set_xlim(low, high)


def labels_of(target: str) -> str:
    return f"labels of {target}" if "(" in target else f"labels of the {target}"


def logs(y: xr.DataArray) -> xr.DataArray:
    """For errors, which are skewed."""
    return xr.apply_ufunc(np.log, y, keep_attrs=True)


def draw_graphs(over: str, title: str) -> Callable[[xr.Dataset], Any]:
    """The error over an axis for the three graphs, a panel for each target."""

    def draw(ds: xr.Dataset):
        targets = list(ds.target.values)
        fig, axes = plot.figure(1, len(targets), title=title)
        norm = ds.norm_inf.mean([d for d in ds.norm_inf.dims if d != "degrees"])
        y = end(ds.test_error)
        for ax, target in zip(axes, targets, strict=True):
            for g in ds.degrees.values:
                label = rf"$\|A^*\|_\infty = {float(norm.sel(degrees=g)):.2f}$, $d = {g}$"
                plot.curve(ax, y.sel(target=target, degrees=g), over, label=label, log="xy")
            ax.set_ylabel(NMSE)
            ax.set_title(labels_of(target))
        return fig

    return draw


# -------------------------------------------------------------------------------- labels needed


def crossing(y: xr.DataArray, over: str, level: float) -> float:
    """Where the geometric mean over seeds first falls to a level, on logarithmic axes."""
    u, v = np.log(y[over].values), logs(y).mean("seed").transpose(over).values - np.log(level)
    below = np.flatnonzero(v <= 0)
    if not len(below) or below[0] == 0:
        return float("nan")
    i = int(below[0])
    return float(u[i - 1] + (u[i] - u[i - 1]) * v[i - 1] / (v[i - 1] - v[i]))


def needed(a: xr.DataArray, b: xr.DataArray, over: str, level: float) -> Estimate:
    """How many times more (labels) one curve needs than another for an error."""

    def gap(a: xr.DataArray, b: xr.DataArray) -> float:
        return crossing(a, over, level) - crossing(b, over, level)

    return stats.jackknife(gap, bare(a), bare(b)).map(np.exp)


def needs(times: float, of: str) -> Altered:
    """The Dataset in which the last place of a dim needs so many times the labels of the first."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        y, n = ds.test_error, np.log(ds.samples.values)
        mean = xr.DataArray(logs(y)).mean("seed").assign_coords(samples=n)
        first, last = (bare(mean.isel({of: i})) for i in (0, -1))
        moved = first.interp(samples=n - np.log(times), kwargs={"fill_value": "extrapolate"})
        gap = (moved.assign_coords(samples=n) - last).assign_coords(samples=ds.samples)
        made = xr.where(y[of] == y[of][-1], y * np.exp(gap), y)
        return ds.assign(test_error=made.transpose(*y.dims))

    return altered


# ---------------------------------------------------------------------------- Figures 5.3, 5.4


def others_over(y: xr.DataArray, best: str) -> Everywhere:
    """How many times larger a probe is on every other dataset than on one."""
    others = [d for d in y.dataset.values if d != best]
    return ratios(y.sel(dataset=others), y.sel(dataset=best, drop=True))


def fast_trainings(graph: Mapping[str, Any]) -> Trainings:
    """FastGCN on the figure's own labels and draws, and on labels that it can learn."""
    return Trainings(
        grid={
            **graph,
            "sampler": "fastgcn",
            "independent": True,
            "dataset": cases(DATASETS),
            "setting": cases(
                {
                    "(5.20), t = 0.9 N": dict(concept=False, drawn=1800),
                    "class, t = 10 N": dict(concept=True, drawn=20000),
                }
            ),
        },
        seeds=8,
        quick={
            **QUICK,
            "setting": cases(
                {
                    "(5.20), t = 0.9 N": dict(concept=False, drawn=450),
                    "class, t = 10 N": dict(concept=True, drawn=5000),
                }
            ),
            "independent": False,  # one sample for all layers: a third of the draws
            "seeds": 6,
        },
    )


def draw_scales(title: str, chosen: str) -> Callable[[xr.Dataset], Any]:
    """The error on the three datasets by scales in training, a panel for each target, and the MSE
    as it is with the scales of the paper's figure."""

    def draw(ds: xr.Dataset):
        targets = list(ds.target.values)
        fig, axes = plot.figure(1, len(targets) + 1, title=f"{title}; colours: scales in training")
        y = end(ds.test_error)
        for ax, target in zip(axes, targets, strict=False):
            at = by_scales(named(y.sel(target=target), "scales", "scales in training"))
            plot.curve(ax, at, "dataset", hue="scales", line=False)
            ax.set_ylabel(NMSE)
            ax.set_title(labels_of(target))
            ax.set_ylim(0, None)
        mse = end(ds.test_loss).sel(scales=chosen, target=targets[0])
        plot.curve(axes[-1], by_scales(mse), "dataset", label=f"{chosen}", line=False)
        axes[-1].set_title(rf"$p^*$ = {chosen}")
        axes[-1].set_ylabel("test MSE")
        axes[-1].set_ylim(0, None)
        return fig

    return draw


def draw_fast(title: str) -> Callable[[xr.Dataset], Any]:
    """Both errors of FastGCN on the three datasets: over the labels' variance, and as they are."""

    def draw(ds: xr.Dataset):
        fig, axes = plot.figure(1, 2, title=title)
        panels = ((axes[0], "test_error", NMSE, ""), (axes[1], "test_loss", "test MSE", "y"))
        for ax, probe, text, log in panels:
            at = by_scales(end(ds[probe]))
            plot.curve(ax, named(at, "setting", "labels, draws"), "dataset", hue="setting",
                       line=False, log=log)  # fmt: skip
            ax.set_ylabel(text)
        axes[0].set_ylim(0, None)
        bound(axes[0], 1.0, "the mean of the labels")
        return fig

    return draw
