"""Where stage 2 ends: the rest of both parts with one side learned, at other settings."""

from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import claim, equals
from provingground.stats import Everywhere, everywhere, median
from provingground.study import Experiment, Trainings, axis, cases

from .. import exact
from ..exact import FLOOR, LOG2
from .shared import COOL, d_log_d, ending, level, over_settings, rest, rest_at, scaled

VARIATIONS = {
    "as thm3": {},
    "u = 8, r = 2": {"z_norm": 8.0, "zeta_norm": 2.0},
    "u = 14, r = 5": {"z_norm": 14.0, "zeta_norm": 5.0, "init_std": 0.4},
    r"$\lambda = .02$": {"weight_decay": 0.02, "z_norm": 12.0},
    r"$\lambda = .15$": {"weight_decay": 0.15, "z_norm": 12.0, "zeta_norm": 4.0},
    r"$\gamma_0 = .7$": {"margin": 0.7, "z_norm": 12.0},
    r"$\gamma_0 = 1.8$": {"margin": 1.8, "z_norm": 12.0},
}


def below_the_gate(settings: dict[str, Any]) -> dict[str, float]:
    """Stage 2 at a part of the critical step, its noise as cool as declared."""
    at, noise = rest_at(settings), settings["init_std"] * COOL**0.5
    gate = exact.critical_lr(noise, at.hard, settings["z_norm"], settings["zeta_norm"], at.slope)
    lr2 = float(settings["ratio"] * gate)
    return {"lr2": lr2, "noise2": float((COOL * settings["lr1"] / lr2) ** 0.5)}


def learnable(settings: Any) -> bool:
    """One side can be learned (its loss at rest is below 0.56) and kept in the noise; steps are
    at most 100 000."""
    at, noise = rest_at(settings), settings["init_std"] * COOL**0.5
    gate = exact.critical_lr(noise, at.hard, settings["z_norm"], settings["zeta_norm"], at.slope)
    steps = settings["k2"] / (0.25 * gate * settings["weight_decay"])
    return bool(
        2 <= settings["z_norm"] / settings["zeta_norm"] <= 10
        and at.loss_hard < 0.56
        and 0.08 <= noise / at.hard <= 0.3
        and steps <= 1e5
    )


PART = axis([0.25], r"\eta_2/\eta_c", "step over the critical one", sets=below_the_gate)


def gone(loss: Any) -> Any:
    """How far a loss has fallen from log 2."""
    return LOG2 - loss


@claim(
    "Theorem 3 (c.1)",
    equals(1, within=0.25),
    kind="corrected",
    law=level("v_norm", lambda ds: rest(ds).hard),
    rivals={
        "d log d": level("v_norm", d_log_d),
        "both sides": scaled("v_norm", lambda ds: exact.one_sided_gain(ds.z_norm, ds.zeta_norm)),
    },
)
def rest_norm(ds: xr.Dataset) -> Everywhere:
    """the norm of the hard signal goes to that of one side at rest (median ratio)"""
    return everywhere(median, ending(ds.v_norm, 2) / rest(ds).hard)


@claim(
    "Theorem 3 (c.2)",
    equals(1, within=0.2),
    kind="corrected",
    law=level("loss_hard", lambda ds: rest(ds).loss_hard),
    rivals={"both sides": level("loss_hard", lambda ds: FLOOR)},
)
def rest_loss(ds: xr.Dataset) -> Everywhere:
    """the loss of the hard part falls to that of one side at rest (median fall over predicted)"""
    return everywhere(median, gone(ending(ds.loss_hard, 2)) / gone(rest(ds).loss_hard))


@claim(
    "Theorem 4 (d.1)",
    equals(1, within=0.1),
    kind="corrected",
    law=level("w_norm", lambda ds: rest(ds).easy),
    rivals={"it stays": level("w_norm", lambda ds: 1.15 * rest(ds).easy)},
)
def easy_moves(ds: xr.Dataset) -> Everywhere:
    """in stage 2 the easy signal moves to its rest beside the learned side (median ratio)"""
    return everywhere(median, ending(ds.w_norm, 2) / rest(ds).easy)


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(
        1, 3, title="The end of stage 2 at other settings", seeds=ds.sizes["seed"]
    )
    one, place = ds.isel(ratio=0), ds.variation
    for ax, name, says in (
        (axes[0], "hard", r"norm of $\bar V$ over its rest"),
        (axes[1], "loss_hard", "fall of $K^2$ over its rest"),
        (axes[2], "easy", r"norm of $\bar W$ over its rest"),
    ):
        at = getattr(rest(one), name)
        y = {"hard": one.v_norm, "loss_hard": one.loss_hard, "easy": one.w_norm}[name]
        found = ending(y, 2) / at if name != "loss_hard" else gone(ending(y, 2)) / gone(at)
        each = [median(found.sel(variation=v)) for v in place.values]
        over_settings(ax, each, place, says, 1.0)
        ax.tick_params(axis="x", rotation=60)
        ax.set_ylim(0, 1.5)
    return fig


def draw_base(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Both parts come to rest")
    one = ds.isel(ratio=0)
    for ax, y, at in (
        (left, one.w_norm, rest(one).easy),
        (right, one.v_norm, rest(one).hard),
    ):
        plot.curve(ax, y, "stage", label="measured")
        plot.theory_curve(ax, [1, 2], [float(at)] * 2, "at rest")
    return fig


CLAIMS = (rest_norm, rest_loss, easy_moves)
EXPERIMENTS = (
    Experiment(
        "rest",
        says="Where both parts come to rest after stage 2, at settings other than those of thm3.",
        trainings=Trainings(
            grid={"k2": 8.0, "variation": cases(VARIATIONS), "ratio": PART},
            seeds=256,
            quick={"seeds": 24},
        ),
        claims=CLAIMS,
        figure=draw,
    ),
    Experiment(
        "rest_base",
        says="The same at one setting, from which the others of its domain are drawn.",
        trainings=Trainings(
            grid={"k2": 8.0, "ratio": PART, "z_norm": 12.0},
            seeds=256,
            quick={"seeds": 20},
            # The margin spans what learns at all up to where the slope is gone; d and L act
            # through it and through (L - 1)/L alone.
            domain={
                "z_norm": (4, 40),
                "zeta_norm": (1, 10),
                "weight_decay": (0.015, 0.15),
                "init_std": (0.2, 2),
                "margin": (0.6, 1.8),
                "k2": (5, 12),
            },
            where=learnable,
        ),
        claims=CLAIMS,
        figure=draw_base,
    ),
)
