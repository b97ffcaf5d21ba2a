"""Figure 7.6: attention on four types of columns along training."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, claim, exchange
from provingground.stats import Estimate
from provingground.study import Experiment

from .shared import MATCHED, NEITHER, SAME_PATTERN, SAME_STEP, TRAINED, in_time


def by_type(ds: xr.Dataset, *types: str) -> xr.DataArray:
    """Attention on some types of columns together, averaged over the reasoning steps."""
    found = ds.attention.sel(type=list(types)).sum("type").mean("k")
    return found.assign_attrs(ds.attention.attrs)


PATTERNS_FIRST = exchange("type", (SAME_STEP, SAME_PATTERN))


@claim(
    "Figure 7.6, Lemmas F.3.6 and F.3.7",
    above(1),
    rivals={"patterns first": PATTERNS_FIRST},
)
def stages(ds: xr.Dataset) -> Estimate:
    """other steps fall below 0.05 before matched columns pass 0.9 (ratio of times)"""
    matched, others = by_type(ds, MATCHED), by_type(ds, SAME_PATTERN, NEITHER)

    def ratio(matched: xr.DataArray, others: xr.DataArray) -> float:
        return crossing_of(matched, 0.9) / crossing_of(others, 0.05)

    return stats.jackknife(ratio, matched, others)


def crossing_of(y: xr.DataArray, level: float) -> float:
    """The step at which the seed-mean first crosses a level."""
    y = y.isel(step=slice(1, None)).mean("seed")
    above_level = (y.values > level) != bool(y.values[0] > level)
    if not above_level.any():
        return float("nan")
    i = int(above_level.argmax())
    t, v = y.step.values[i - 1 : i + 1].astype(float), y.values[i - 1 : i + 1]
    return float(t[0] * (t[1] / t[0]) ** ((level - v[0]) / (v[1] - v[0])))


def hump(ds: xr.Dataset, end: int) -> Estimate:
    """The peak of the attention on other patterns of the same step, over its first or last."""
    y = by_type(ds, SAME_STEP)
    return stats.jackknife(
        lambda y: float(y.mean("seed").max()) / float(y.mean("seed").isel(step=end)), y
    )


@claim("Figure 7.6", above(1.2), rivals={"patterns first": PATTERNS_FIRST})
def rise(ds: xr.Dataset) -> Estimate:
    """attention on other patterns of the same step rises first (peak over start)"""
    return hump(ds, 0)


@claim("Figure 7.6", above(3))
def fall(ds: xr.Dataset) -> Estimate:
    """and falls then (peak over end)"""
    return hump(ds, -1)


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Attention along training")
    for kind in ds.type.values:
        plot.curve(left, in_time(by_type(ds, kind)), "step", label=str(kind), log="x")
    split = crossing_of(by_type(ds, SAME_PATTERN, NEITHER), 0.05) * float(ds.lr)
    plot.theory_curve(left, [split, split], [0, 1], "other steps below 0.05")
    left.set_ylabel("attention")
    matched = ds.attention.sel(type=MATCHED)
    for k in range(ds.sizes["k"]):
        plot.curve(right, in_time(matched.isel(k=k)), "step", label=f"step {k + 1}", log="x")
    right.set_ylabel("attention on matched columns")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig7_6",
        says="Attention on four types of columns along training: two stages.",
        trainings=TRAINED,
        claims=(stages, rise, fall),
        figure=draw,
    ),
)
