"""The whole matrix U: with its blocks, without its mask, and with softmax attention."""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, between, claim
from provingground.stats import Estimate, mean, median, paired_difference, share
from provingground.study import Experiment, Trainings, cases

from ..exact import SOFTMAX_FLOOR
from .shared import MISSED, ending


def at(ds: xr.Dataset, variant: str) -> xr.Dataset:
    return ds.sel(variant=variant, drop=True)


@claim("Theorem 3 (c.2)", between(0.51, 0.56), kind="corrected")
def blocks(ds: xr.Dataset) -> Estimate:
    """the blocks of U are learned as W and V are (median loss of the hard part at the end)"""
    return median(ending(at(ds, "blocks").loss_hard, 2))


@claim("Theorem 2 (b.2)", below(0.25))
def unmasked_easy(ds: xr.Dataset) -> Estimate:
    """without the mask stage 1 learns the easy part as well (loss)"""
    return mean(ending(at(ds, "unmasked").loss_easy, 1))


@claim("found here", below(0.75), kind="own")
def unmasked_decays(ds: xr.Dataset) -> Estimate:
    """without the mask the easy signal decays in stage 2 (norm at the end over that after stage 1):
    the query's hard part reaches the easy tokens beside the diagonal of U"""
    w = at(ds, "unmasked").w_norm
    return mean(ending(w, 2) / ending(w, 1))


@claim("found here", below(0), kind="own")
def unmasked_loss(ds: xr.Dataset) -> Estimate:
    """and the training loss ends lower than with blocks (difference)"""
    free, held = (ending(at(ds, v).train_loss, 2) for v in ("unmasked", "blocks"))
    return paired_difference(free, held)


@claim(
    "Theorem 4, its message",
    below(0.25),
    expected="fails",
    because=(unmasked_decays, unmasked_loss),
)
def unmasked_kept(ds: xr.Dataset) -> Estimate:
    """without the mask the easy part is still learned after stage 2 (loss)"""
    return mean(ending(at(ds, "unmasked").loss_easy, 2))


@claim("Theorem 2 (b.1)", above(0.95))
def softmax_easy(ds: xr.Dataset) -> Estimate:
    """with softmax the easy signal points along the target after stage 1 (cosine)"""
    return mean(ending(at(ds, "softmax").w_cosine, 1))


@claim("Theorem 1 (a.2)", above(0.9))
def softmax_stage1(ds: xr.Dataset) -> Estimate:
    """with softmax too stage 1 misses the hard part (share of seeds)"""
    return share(ending(at(ds, "softmax").loss_hard, 1) > MISSED)


@claim("found here", below(0.02), kind="own")
def softmax_hard(ds: xr.Dataset) -> Estimate:
    """and stage 2 learns both sides: median loss at the end over the floor of softmax"""
    return median(ending(at(ds, "softmax").loss_hard, 2) - SOFTMAX_FLOOR)


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 3, title="Without the mask, and with softmax")
    for ax, name in zip(axes, ("loss_easy", "loss_hard", "train_loss"), strict=True):
        plot.curve(ax, ds[name], "stage", hue="variant")
    plot.theory_curve(axes[1], [0, 2], [SOFTMAX_FLOOR] * 2, "floor of softmax")
    return fig


EXPERIMENTS = (
    Experiment(
        "variants",
        says="The whole matrix U: with its blocks, without its mask, and with softmax attention.",
        trainings=Trainings(
            simulator="whole",
            grid={
                "variant": cases(
                    {"blocks": {}, "unmasked": {"masked": False}, "softmax": {"softmax": True}}
                )
            },
            seeds=48,
            paper_only=True,
        ),
        claims=(
            blocks,
            unmasked_easy,
            unmasked_decays,
            unmasked_loss,
            unmasked_kept,
            softmax_easy,
            softmax_stage1,
            softmax_hard,
        ),
        figure=draw,
    ),
)
