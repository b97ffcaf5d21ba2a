"""Which experiments are meant, and the sweeps that settings, designs and seeds make of them."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from provingground import domain, extend, grid, registry
from provingground.config import LARGEST_WHOLE
from provingground.engine import Job
from provingground.errors import DataMissing, InputError, shortened, unknown
from provingground.registry import studies, study
from provingground.store import Store
from provingground.study import SCALES, Experiment, Scale, Study
from provingground.verdict import Skipped
from provingground.words import count

LEAST_SEEDS = 3
POINT = "point"  # the axis of a design
OFF_SLICE = 1_000_000  # the first seed of the settings off a slice, times the number of the drawing


def resolve(target: str | Study, experiment: str | None = None) -> tuple[Study, Experiment]:
    """The experiment that `"study/experiment"`, or a study (its name will do) and a name, stands
    for. Where a study has only one, it need not be named."""
    owner, of_target = owner_of(target)
    if experiment is not None and of_target:
        raise InputError(
            f"two experiments are named, {owner.name}/{of_target} and {shortened(experiment)}; "
            "say one"
        )
    name = of_target if experiment is None else experiment
    if not name and len(owner.experiments) == 1:
        return owner, owner.experiments[0]
    if not name:
        names = [e.name for e in owner.experiments]
        raise InputError(f"say which experiment of {owner.name}: one of {', '.join(names)}")
    return owner, owner.experiment(name)


def owner_of(target: str | Study) -> tuple[Study, str]:
    """The study that is meant, and the experiment that stands behind a slash."""
    if isinstance(target, Study):
        return target, ""
    if isinstance(target, str):
        name, _, experiment = target.partition("/")
        return study(name), experiment
    raise InputError(
        f"target = {shortened(target)} is not allowed: 'study/experiment', or a Study (or its "
        "name) and the name of its experiment"
    )


def job(
    target: str | Study,
    experiment: str | None = None,
    *,
    scale: Scale = "quick",
    seeds: int | Sequence[int] | None = None,
    lanes: int | None = None,
    store: Store | str | Path | None = None,
    yes: bool = False,
    trace: bool = True,
    probes: Any = None,
    parts: Mapping[str, Callable[..., Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
    design: int | None = None,
    off_slice: int | None = None,
    draw: int = 0,
) -> Job:
    """A planned sweep: checked, not yet run. For `design` and `off_slice` see `run`, `check`."""
    whole = isinstance(lanes, (int, np.integer)) and not isinstance(lanes, bool)
    if lanes is not None and not (whole and 1 <= lanes <= LARGEST_WHOLE):
        raise InputError(
            f"lanes = {shortened(lanes)} is not allowed: whole numbers from 1 to {LARGEST_WHOLE}"
        )
    changes = extend.changes(probes, parts)
    owner, which = resolve(target, experiment)
    number = off_slice if design is None else design
    if number is None and draw != 0:
        raise InputError(f"draw = {shortened(draw)} says nothing without a design or off_slice")
    if number is not None:
        drawn = domain.design(owner, which, scale, number, draw, whole=design is not None)
        settings = {POINT: drawn, **(settings or {})}
        if off_slice and seeds is None:
            seeds = fresh_seeds(which, scale, draw)
    sweep = grid.plan(owner, which, scale, settings, seeds, yes=yes)
    sweep = extend.changed(sweep, changes, trace)
    planned = Job(sweep, store_at(store), None if lanes is None else int(lanes), trace)
    _ = planned.groups  # every point is checked here, before anything is written
    return planned


def with_data(planned: Sequence[Job]) -> tuple[list[Job], list[Skipped]]:
    """Those of some sweeps whose data are here, and what is to be said of the others."""
    here, skipped = [], []
    for each in planned:
        try:
            _ = each.data
        except DataMissing as missing:
            skipped.append(
                Skipped(
                    each.study.name,
                    each.sweep.experiment.name,
                    missing.data,
                    str(missing),
                    missing.command,
                    headline=each.sweep.experiment is each.study.experiments[0],
                )
            )
        else:
            here.append(each)
    return here, skipped


def store_at(store: Store | str | Path | None) -> Store:
    """The store in a folder (default: `$PROVING_STORE`, else the user's data folder)."""
    if isinstance(store, Store):
        return store
    try:
        made = Store() if store is None else Store(Path(store))
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.stat(made.path)  # these are told when it cannot be made or read
    except (OSError, RuntimeError, TypeError, ValueError) as error:  # no such user, name too long
        why = getattr(error, "strerror", None) or error
        given = os.environ.get("PROVING_STORE") if store is None else store
        raise InputError(f"no store can be at {shortened(str(given))}: {why}") from None
    return made


def together(settings: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that are given by name and in `settings`, none of them both ways."""
    if settings is not None and not isinstance(settings, Mapping):
        raise InputError(
            f"settings = {shortened(settings)} is not allowed: a dict of parameters and values"
        )
    if twice := [name for name in settings or {} if name in more]:
        raise InputError(f"{twice[0]} is set twice: by name and in settings; say it once")
    return {**(settings or {}), **more}


def with_domain(some: list[tuple[Study, Experiment]]) -> list[tuple[Study, Experiment]]:
    """Those of some experiments that declare where their laws are meant to hold."""
    found = [(owner, e) for owner, e in some if e.trainings.domain]
    if not found:
        named = ", ".join(f"{owner.name}/{e.name}" for owner, e in some[:3])
        raise InputError(f"no domain is declared by {named}{', ...' if len(some) > 3 else ''}")
    return found


def fresh_seeds(which: Experiment, scale: Scale, draw: int) -> range:
    """As many seeds as an experiment has, none of which a slice has: for settings off it."""
    first = OFF_SLICE * (draw + 1)
    return range(first, first + which.trainings.seeds_at(scale))


def enough_seeds(seeds: int | Sequence[int] | None) -> None:
    """Refuses to judge from too few seeds, before any work."""
    if seeds is not None and len(grid.seeds_of(seeds)) < LEAST_SEEDS:
        few = count(len(grid.seeds_of(seeds)), "seed")
        raise InputError(f"{few} do not make a verdict, which needs at least {LEAST_SEEDS}")


def chosen(
    targets: Sequence[str | Study], *, scale: Scale = "quick", headline: bool = False
) -> list[tuple[Study, Experiment]]:
    """The experiments that a list of studies and experiments names; all studies if empty.

    Names of experiments may follow their study, which then stands for these alone. What is named
    twice counts once.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    picked: list[tuple[Study, list[Experiment]]] = []
    for target in targets or list(studies().values()):
        if picked and isinstance(target, str) and "/" not in target:
            owner, named = picked[-1]
            if target in (names := [e.name for e in owner.experiments]):
                named.append(owner.experiment(target))
                continue
            if target not in (known := registry.names()):
                kind, meant = f"experiment of {owner.name}, or study,", registry.having(target)
                raise unknown(kind, target, (*names, *known), meant)
        owner, experiment = owner_of(target)
        picked.append((owner, [owner.experiment(experiment)] if experiment else []))

    def all_of(owner: Study) -> list[Experiment]:
        wanted = owner.experiments[:1] if headline else owner.experiments
        return [e for e in wanted if not (e.trainings.paper_only and scale == "quick")]

    found = [(owner, e) for owner, named in picked for e in named or all_of(owner)]
    return list({(id(owner), e.name): (owner, e) for owner, e in found}.values())
