"""Figure 5: the attention scores of a student of a layer that reads MNIST, and what it sees."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, equals, exchange
from provingground.stats import (
    Estimate,
    Everywhere,
    everywhere,
    mean,
    paired_ratio,
    rank_correlation,
)
from provingground.study import Experiment

from .shared import DIGITS, LONG, LONGER, SHORT, at_end, short, short_and_long


def rows(ds: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The row and column of each patch in its image."""
    n = round(ds.sizes["key"] ** 0.5)
    return np.divmod(np.arange(n * n), n)


def edges(ds: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Patches at the top and the bottom of an image, which are the first and the last (nine) rows
    of the scores; and those at its sides."""
    row, column = rows(ds)
    ends = {0, int(row[-1])}
    flat = np.isin(row, list(ends))
    return flat, np.isin(column, list(ends)) & ~flat


def kinds(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """The weight of keys, by where their patches are."""
    flat, sides = edges(ds)
    where = {"first and last rows": flat, "sides": sides, "inside": ~flat & ~sides}
    return {name: ds.weight.isel(key=np.flatnonzero(on)) for name, on in where.items()}


def late(ds: xr.Dataset) -> xr.Dataset:
    """The students with ten times larger steps, at the end of training."""
    return at_end(ds.sel(student=list(LONG)))


def one(ds: xr.Dataset, student: str) -> xr.Dataset:
    return at_end(ds.sel(student=student, drop=True))


def uniform(ds: xr.Dataset) -> xr.Dataset:
    """Attention that was never trained."""
    return ds.assign(weight=xr.zeros_like(ds.weight) + float(ds.support.mean()))


def as_printed(ds: xr.Dataset) -> xr.Dataset:
    """First and last rows are missed, all others learned."""
    on = xr.DataArray(np.where(edges(ds)[0], 0.1, 0.9), dims="key")
    return ds.assign(weight=(on + 0 * ds.weight).transpose(*ds.weight.dims))


UNIFORM = {"uniform": uniform}
UNROLLED = {"not rolled": exchange("student", ("ReLU", "ReLU, rolled images"))}
STEPS = {"steps exchanged": exchange("student", *zip(SHORT, LONG, strict=True))}


@claim("Figure 5(b), (c)", above(0.5), rivals=UNIFORM)
def pattern(ds: xr.Dataset) -> Everywhere:
    """rows of patches inside of the image have the pattern of the teacher's: they get over half of
    its weight in their own group (mean), with ten times larger steps as well"""
    return everywhere(mean, kinds(at_end(short_and_long(ds)))["inside"].mean("key"))


@claim("found here", below(0.5), kind="own", rivals=UNROLLED | STEPS)
def missed_early(ds: xr.Dataset) -> Everywhere:
    """the first and the last nine rows get less than half of the teacher's weight while training
    is short: with the smaller steps (mean)"""
    return everywhere(mean, kinds(at_end(short(ds)))["first and last rows"].mean("key"))


@claim("found here", above(0.5), kind="own", rivals=STEPS)
def late_rows(ds: xr.Dataset) -> Everywhere:
    """rows at the edges are late, not lost: with ten times larger steps the first and the last nine
    rows, and those at the left and right sides, get over half of the teacher's weight (means)"""
    found = kinds(late(ds))
    names = ["first and last rows", "sides"]
    where = xr.DataArray(names, dims="where", name="where")
    return everywhere(mean, xr.concat([found[name].mean("key") for name in names], where))


def a_tenth(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose students stop after a tenth of the steps."""
    early = ds.weight.sel(step=int(ds.step[-1]) // 10, method="nearest")
    return ds.assign(weight=(early + 0 * ds.weight).transpose(*ds.weight.dims))


@claim("found here", above(0.5), kind="own", rivals={"a tenth of the steps": a_tenth})
def learned_in_time(ds: xr.Dataset) -> Everywhere:
    """with ten times as many of the smaller steps the first and the last nine rows get over half of
    the teacher's weight (mean)"""
    return everywhere(mean, kinds(at_end(ds))["first and last rows"].mean("key"))


@claim(
    "Figure 5(b), (c), when the loss converges",
    below(0.5),
    expected="fails",
    because=(missed_early, late_rows, learned_in_time),
)
def first_and_last_rows(ds: xr.Dataset) -> Everywhere:
    """the first and the last nine rows are not learned: they get less than half of the teacher's
    weight (mean), with ten times larger steps as well"""
    return everywhere(mean, kinds(at_end(short_and_long(ds)))["first and last rows"].mean("key"))


@claim("found here", below(0.5), kind="own", rivals={"as printed": as_printed} | UNROLLED)
def side_rows(ds: xr.Dataset) -> Everywhere:
    """nor are the rows of patches at the left and right sides learned while training is short
    (mean)"""
    return everywhere(mean, kinds(at_end(short(ds)))["sides"].mean("key"))


@claim("Figure 5(b), (c)", above(0.5), expected="fails", because=(side_rows,))
def all_other_rows(ds: xr.Dataset) -> Everywhere:
    """all rows but the first and the last nine are learned: each gets over half of the teacher's
    weight (the smallest), with either step size"""
    flat, _ = edges(ds)
    weight = at_end(short_and_long(ds)).weight
    return everywhere(mean, weight.isel(key=np.flatnonzero(~flat)).min("key"))


@claim("found here", above(0.6), kind="own", rivals={"as printed": as_printed})
def rows_follow_ink(ds: xr.Dataset) -> Everywhere:
    """the more ink a patch has, the more of the pattern its row gets while training is short (rank
    correlation over rows of weight and mean square of the pixels)"""
    end = at_end(short(ds))
    ink = end.ink.mean("seed")
    return everywhere(
        lambda w: rank_correlation(w, ink.sel(student=str(w.student.item()), drop=True)),
        end.weight,
        keep="key",
    )


@claim(
    "Section 4.2: rows fail where patches are background",
    equals(1, within=0.02),
    kind="own",
    rivals=UNROLLED,
)
def rolled_rows(ds: xr.Dataset) -> Estimate:
    """where images are rolled around, the first and the last nine rows get what rows at the same
    places of the middle groups get (ratio)"""
    end, (row, _) = one(ds, "ReLU, rolled images"), rows(ds)
    first, last = int(ds.pool), int(row[-1]) - int(ds.pool)
    middle = end.weight.isel(key=np.flatnonzero(np.isin(row, [first, last])))
    return paired_ratio(kinds(end)["first and last rows"].mean("key"), middle.mean("key"))


@claim("found here", below(0.5), kind="own")
def corner_rows(ds: xr.Dataset) -> Everywhere:
    """with ten times larger steps rows of the four corners, which almost no image reaches, still
    get less than half of the teacher's weight (mean)"""
    flat, _ = edges(ds)
    _, column = rows(ds)
    on = flat & np.isin(column, [0, int(column[-1])])
    return everywhere(mean, late(ds).weight.isel(key=np.flatnonzero(on)).mean("key"))


# ------------------------------------------------------------------------------- the figure


def numbered(da: xr.DataArray, **words: str) -> xr.DataArray:
    """With places along its dims, and what they are."""
    da = da.assign_coords({name: np.arange(da.sizes[name]) for name in words})
    for name, says in words.items():
        da[name].attrs = {"long_name": says}
    return da


def score_map(ax: Any, scores: xr.DataArray, title: str) -> None:
    s = numbered(scores, key="key", query="query")
    plot.heatmap(ax, s, "query", "key", limits=(0, None))
    ax.invert_yaxis()
    ax.set_title(title)


def missed(ax: Any, ds: xr.Dataset) -> None:
    """An image, with frames around the patches that have less than half of their weight."""
    from matplotlib.patches import Rectangle  # takes half a second, and few need it

    image = numbered(ds.image, row="pixel", column="pixel")
    plot.heatmap(ax, image, "column", "row", limits=(0, 1))
    ax.invert_yaxis()
    row, column = rows(ds)
    size = ds.sizes["row"] // (int(row[-1]) + 1)
    for key in np.flatnonzero(ds.weight.mean("seed") < 0.5):
        corner = size * column[key] - 0.5, size * row[key] - 0.5
        ax.add_patch(Rectangle(corner, size, size, fill=False, edgecolor="gold", linewidth=0.8))
    ax.set_title("weight below half")


def tiles(v: xr.DataArray) -> np.ndarray:
    """Kernels as small images, in two rows with gaps."""
    each = v.transpose("output", "pixel", ...).values[..., 0]
    pixels = round(each.shape[1] ** 0.5)
    framed = np.pad(each.reshape(-1, pixels, pixels), ((0, 0), (0, 1), (0, 1)))
    return np.concatenate([np.concatenate(list(row), 1) for row in np.array_split(framed, 2)])


def kernels(ax: Any, ds: xr.Dataset) -> None:
    """Those of the teacher over those of the student."""
    first, second = tiles(ds.v_star), tiles(ds.w_v)
    shown = np.concatenate([first, np.zeros((2, first.shape[1])), second])[None]
    attrs = {"long_name": "weight of a pixel"}
    z = xr.DataArray(shown, {"seed": ds.seed}, ("seed", "down", "across"), attrs=attrs)
    z = numbered(z, down="student's, teacher's", across="kernels")
    plot.heatmap(ax, z, "across", "down", centre=0.0)
    ax.invert_yaxis()
    ax.set(xticks=[], yticks=[], title="kernels")


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(2, 3, title="Attention of a student of a layer that reads MNIST")
    end = at_end(short(ds))
    first = end.isel(student=0, seed=[0])
    support = first.support.assign_attrs(long_name="attention score", symbol="S^*")
    score_map(axes[0], (support / support.sum("key")).assign_attrs(support.attrs), "teacher")
    for ax, name in zip(axes[1:3], end.student.values, strict=True):
        score_map(ax, end.scores.sel(student=name), str(name))
    missed(axes[3], first)
    kernels(axes[4], first)
    in_time(axes[5], ds)
    return fig


def in_time(ax: Any, ds: xr.Dataset) -> None:
    """The mean weight of three kinds of rows, and with larger steps of the first and the last."""
    shown = kinds(ds.sel(student=SHORT[0]))
    first = "first and last rows"
    late_ones = kinds(ds.sel(student=LONG[0]))[first]
    shown = {"ends": shown.pop(first), **shown, "ends, large steps": late_ones}
    for name, weight in shown.items():
        w = weight.isel(step=slice(1, None)).mean("key", keep_attrs=True)
        plot.curve(ax, w, "step", label=name, log="x")
    ax.set_ylabel("weight over the teacher's")


def draw_long(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="A student of a layer that reads MNIST, for a long time")
    for ax, name in zip(axes, ds.student.values, strict=True):
        for kind, weight in kinds(ds.sel(student=name)).items():
            w = weight.isel(step=slice(1, None)).mean("key", keep_attrs=True)
            plot.curve(ax, w, "step", label=kind, log="x")
        ax.set_ylabel("weight over the teacher's")
        ax.set_title(str(name), loc="left")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig5",
        says="Scores and kernels of a student of a layer that reads MNIST, and what it misses "
        "while training is short.",
        trainings=DIGITS,
        claims=(
            pattern,
            first_and_last_rows,
            missed_early,
            late_rows,
            corner_rows,
            all_other_rows,
            side_rows,
            rows_follow_ink,
            rolled_rows,
        ),
        figure=draw,
    ),
    Experiment(
        "fig5_long",
        says="The same scores after ten times as many steps.",
        trainings=LONGER,
        claims=(learned_in_time,),
        figure=draw_long,
    ),
)
