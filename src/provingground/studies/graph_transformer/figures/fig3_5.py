"""Figure 3.5 and Lemma 3.4.5: attention on class-relevant nodes, by the type of the query."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere, first, last
from provingground.study import Experiment, Trainings

from .. import theory
from .shared import PAPER, QUICK

TYPES = {"attention_disc": "discriminative", "attention_plain": "other"}


def by_type(ds: xr.Dataset) -> xr.DataArray:
    """Attention on class-relevant nodes, by the type of the query."""
    parts = [ds[name] for name in TYPES]
    made: Any = xr.concat(parts, xr.DataArray(list(TYPES.values()), dims="query", name="query"))
    made.attrs = {"long_name": "attention on class-relevant nodes", "symbol": ""}
    return made


def limits(ds: xr.Dataset) -> xr.DataArray:
    """(3.11), without the small term."""
    disc, plain = theory.attention_limits(ds.confusion_ratio)
    plain = plain + 0 * ds.seed.isel(seed=0, drop=True)
    parts = [xr.zeros_like(plain * 1.0) + disc, plain * 1.0]
    made: Any = xr.concat(parts, xr.DataArray(list(TYPES.values()), dims="query", name="query"))
    return made


def short_of(ds: xr.Dataset) -> xr.DataArray:
    """What attention lacks of its limit, at every step."""
    return limits(ds) - by_type(ds)


def attention_is(f) -> Altered:
    """The Dataset whose attention lacks f(ds) of its limit."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        luck = xr.DataArray(np.linspace(0.99, 1.01, ds.sizes["seed"]), {"seed": ds.seed}, "seed")
        made = limits(ds) - f(ds) * luck
        return ds.assign(
            {
                name: (made.sel(query=q, drop=True) + 0 * ds[name]).transpose(*ds[name].dims)
                for name, q in TYPES.items()
            }
        )

    return altered


# ----------------------------------------------------------------------------- as in the figure


@claim("Lemma 3.4.5, Figure 3.5", above(2), rivals={"as it starts": lambda ds: ds.assign(
    attention_relevant=0 * ds.attention_relevant + first(ds.attention_relevant))})  # fmt: skip
def attention_concentrates(ds: xr.Dataset) -> Estimate:
    """at gamma_d = 0.2 attention on class-relevant nodes at least doubles (ratio)"""
    at = ds.attention_relevant.sel(frac_disc=0.2)
    return stats.paired_ratio(last(at), first(at))


# ------------------------------------------------------------------------- with a larger margin


def by_margin(lack) -> Altered:
    return attention_is(lambda ds: lack(ds.hinge_margin) + 0 * ds.step)


@claim(
    "(3.11), where the loss does not end the training",
    below(0.05),
    kind="corrected",
    rivals={"as with a margin of 1": by_margin(lambda c: 0.15 + 0 * c)},
)
def attention_limit_large(ds: xr.Dataset) -> Everywhere:
    """with a margin of 10 in the hinge loss attention ends less than 0.05 below its limit: 1 for
    discriminative queries, 1 - eps_S for others"""
    lack = last(short_of(ds)).sel(hinge_margin=10.0, drop=True)
    return everywhere(stats.mean, lack)


@claim(
    "found here",
    above(0.01),
    kind="own",
    rivals={"no change": by_margin(lambda c: 0.15 + 0 * c)},
)
def margin_moves_attention(ds: xr.Dataset) -> Everywhere:
    """the larger the margin of the hinge loss, the closer attention ends to its limit (smallest
    step over 0.01)"""
    return everywhere(
        lambda y: stats.monotone(y, "hinge_margin", "decreasing"),
        last(short_of(ds)),
        keep="hinge_margin",
    )


@claim("found here", below(0.05), kind="own", rivals={"1/t": attention_is(
    lambda ds: 0.3 * ds.step.max() / ds.step.clip(1))})  # fmt: skip
def attention_stands_still(ds: xr.Dataset) -> Everywhere:
    """with the paper's margin of 1 attention changes by less than 0.05 in the last third"""
    y = by_type(ds).sel(hinge_margin=1.0, drop=True)
    late = y.isel(step=round(2 * y.sizes["step"] / 3), drop=True)
    return everywhere(stats.paired_difference, last(y), late)


@claim(
    "(3.11), Figure 3.5",
    below(0.05),
    expected="fails",
    because=(margin_moves_attention, attention_limit_large),
)
def attention_limit(ds: xr.Dataset) -> Everywhere:
    """attention on class-relevant nodes comes close to its limit (less than 0.05 below): 1 for
    discriminative queries, 1 - eps_S for others"""
    return everywhere(stats.mean, last(short_of(ds)))


@claim(
    "Lemma 3.4.5",
    equals(-1, within=0.3),
    expected="fails",
    because=(attention_stands_still, margin_moves_attention),
    law=attention_is(lambda ds: 0.1 * ds.step.max() / ds.step.clip(1)),
    rivals={"t^-1/2": attention_is(lambda ds: 0.1 * (ds.step.max() / ds.step.clip(1)) ** 0.5)},
)
def attention_rate(ds: xr.Dataset) -> Everywhere:
    """attention comes to its limit at a rate of 1/t (exponent of what it lacks, second half)"""
    lack = short_of(ds)
    half = float(lack.step[-1]) / 2, float(lack.step[-1])
    return everywhere(lambda y: stats.power_law(y, "step", half).slope, lack, keep="step")


# ------------------------------------------------------------------------------------ drawing


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Concentration of attention")
    at = ds.sel(frac_disc=0.2)
    plot.curve(left, at.attention_relevant, "step", label="class-relevant nodes")
    plot.curve(left, 1 - at.attention_relevant, "step", label="all other nodes")
    plot.curve(left, at.train_loss, "step", label="training loss")
    for limit in (0.0, 1.0):
        plot.theory_curve(left, [0, int(ds.step[-1])], [limit] * 2, "limits of Lemma 3.4.5")
    left.set_ylabel(r"attention; loss ($\gamma_d = 0.2$)")
    for name, words in TYPES.items():
        plot.curve(right, last(ds[name]), "frac_disc", label=f"{words} queries, at the end")
    plot.theory_curve(right, ds.frac_disc, np.ones(ds.sizes["frac_disc"]), "limit of Lemma 3.4.5")
    right.set_ylabel("attention on class-relevant nodes")
    return fig


def draw_margins(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Attention and the margin of the hinge loss")
    for ax, (name, words) in zip(axes, TYPES.items(), strict=True):
        plot.curve(ax, ds[name], "step", hue="hinge_margin")
        limit = float(limits(ds).sel(query=words).values.ravel()[0])
        plot.theory_curve(ax, [0, int(ds.step[-1])], [limit] * 2, "limit of Lemma 3.4.5")
        ax.set_title(f"{words} queries")
        ax.set_ylabel("attention on class-relevant nodes")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig3_5",
        says="Attention on class-relevant nodes and on all others, in time.",
        trainings=Trainings(
            grid={
                **PAPER,
                "frac_disc": [0.2, 0.3, 0.4, 0.6, 0.8],
                "confusion_ratio": 0.0,
                "steps": 6000,
                "samples": 400,
            },
            seeds=20,
            quick={**QUICK, "frac_disc": [0.2, 0.4, 0.8], "steps": 400, "samples": 128, "seeds": 4},
        ),
        claims=(attention_concentrates, attention_limit, attention_rate),
        figure=draw,
    ),
    Experiment(
        "fig3_5_margin",
        says="Attention by type of query where the hinge loss has a larger margin.",
        trainings=Trainings(
            grid={
                **PAPER,
                "confusion_ratio": 0.1,
                "samples": 400,
                "steps": 6000,
                "hinge_margin": [1.0, 3.0, 10.0],
            },
            seeds=20,
            quick={**QUICK, "steps": 500, "samples": 128, "seeds": 4},
            domain={
                "frac_disc": (0.15, 0.5),
                "confusion_ratio": (0.02, 0.2),
                "key_error": (0.02, 0.4),
                "value_error": (0.01, 0.2),
            },
        ),
        claims=(attention_limit_large, margin_moves_attention, attention_stands_still),
        figure=draw_margins,
    ),
)
