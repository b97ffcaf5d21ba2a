"""Figure 5 on CounterFact, with a small decoder from scratch: types before answers."""

from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim
from provingground.stats import Everywhere, everywhere, mean, paired_ratio
from provingground.study import Experiment, Trainings, cases

from .fig5 import SCHEDULES, at_epoch, exact_early, exact_late, type_early, type_first
from .shared import level

CONSTANT = cases({"constant": {}})
COUNTERFACT = Trainings(
    grid={
        "schedule": SCHEDULES,
        "facts": 20_000,
        "asked": 1500,
        "relations": 34,
        "vocabulary": 16_384,
        "width": 128,
        "batch": 256,
        "epochs": 100,
        "early": 5,
    },
    seeds=4,
    quick={
        "schedule": CONSTANT,
        "facts": 1600,
        "asked": 240,
        "relations": 8,
        "vocabulary": 2048,
        "width": 32,
        "batch": 32,
        "epochs": 6,
        "early": 1,
        "lr": 3e-3,
        "seeds": 4,
    },
    simulator="language",
    data="counterfact",
)
OURS = "with a small decoder from scratch"
AT_ONCE = {"learned at once": lambda ds: ds.assign(exact_accuracy=ds.type_accuracy)}

types_early = claim(
    f"Figure 5, T = 5, {OURS}",
    above(0.8),
    kind="own",
    rivals={"one answer to all": level("type_accuracy", lambda ds: ds.type_guess)},
    name="types_early",
    says="at the early epoch over 80% of the answers to prompts of CounterFact have the right type",
)(type_early)

facts_early = claim(
    f"Figure 5, T = 5, {OURS}",
    below(0.5),
    kind="own",
    bound="paper",
    rivals=AT_ONCE,
    name="facts_early",
    says="and most of them are still wrong",
)(exact_early)

facts_late = claim(
    f"Figure 5, T = 100, {OURS}",
    above(0.9),
    kind="own",
    rivals={
        "answers of relations": level("exact_accuracy", lambda ds: ds.exact_guess),
    },
    name="facts_late",
    says="at the last epoch nearly all answers to prompts of CounterFact are right",
)(exact_late)

types_first = claim(
    "found here",
    above(1.5),
    kind="own",
    rivals=AT_ONCE,
    name="types_first",
    says="of CounterFact's answers 90% are right at least 1.5 times as many epochs later as 90% "
    "have the right type",
)(type_first)


@claim("found here", below(1.5), kind="own", rivals=AT_ONCE)
def early_guesses(ds: xr.Dataset) -> Everywhere:
    """the commonest answer of each relation, given to all its prompts, would be right nearly as
    often as the early answers are (theirs over its)"""
    return everywhere(paired_ratio, at_epoch(ds.exact_accuracy, ds.early), ds.exact_guess)


@claim(
    "found here",
    above(0.8),
    kind="own",
    rivals={"one answer to all": level("unseen_type", lambda ds: ds.type_guess)},
)
def types_unseen(ds: xr.Dataset) -> Everywhere:
    """types are read off the words of a prompt: at the end over 80% of the answers about facts of
    CounterFact that were not learned have the right type"""
    return everywhere(mean, ds.unseen_type.isel(epoch=-1))


def draw_stages(ds: xr.Dataset, title: str, guess: str):
    """The loss, and shares of answers at the first schedule."""
    fig, (left, right) = plot.figure(1, 2, title=title)
    plot.curve(left, ds.train_loss, "epoch", hue="schedule")
    one: Any = ds.isel(schedule=0)
    plot.curve(right, one.type_accuracy, "epoch", label="right type")
    plot.curve(right, one.exact_accuracy, "epoch", label="right answer")
    plot.curve(right, one.unseen_type, "epoch", label="right type, not learned")
    ends = [0, float(ds.epoch[-1])]
    plot.theory_curve(right, ends, [float(one.exact_guess.mean())] * 2, guess)
    right.set(ylabel="share of what is asked", ylim=(-0.03, 1.05))
    return fig


EXPERIMENTS = (
    Experiment(
        "fig5_counterfact",
        says="A small decoder from scratch learns facts of CounterFact: types, then answers.",
        trainings=COUNTERFACT,
        claims=(types_early, facts_early, facts_late, types_first, early_guesses, types_unseen),
        figure=lambda ds: draw_stages(
            ds, "CounterFact, a small decoder from scratch", "commonest answer of each relation"
        ),
    ),
)
