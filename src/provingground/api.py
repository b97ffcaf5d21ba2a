"""In Python: `show`, `theory`, `conditions`, `run`, `load`, `check`, `figure`, `replay`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from provingground import dispatch, grid, plot, registry, reprs
from provingground.ahead import Ahead
from provingground.config import pars
from provingground.engine import Forecast, Job
from provingground.errors import InputError, RunError, StoreError, shortened, told_shortly, unknown
from provingground.judging import verdicts
from provingground.planning import (
    chosen,
    enough_seeds,
    job,
    owner_of,
    resolve,
    together,
    with_data,
    with_domain,
)
from provingground.predicting import at_settings
from provingground.progress import Progress, reporting
from provingground.refine import stages
from provingground.reprs import shown
from provingground.results import dataset
from provingground.store import Store
from provingground.study import Conditions, Experiment, Prediction, Scale, Study
from provingground.terminal import say
from provingground.verdict import Skipped, Verdicts

ROUNDS = 3  # of filling what was damaged while a run went on


# ----------------------------------------------------------------------------- looking


@shown(reprs.overview)
class Overview(NamedTuple):
    """An experiment at a scale: what there is to run, and what is known of it.

    There are verdicts where all of it is stored; `skipped` says that its data are not here.
    """

    sweep: grid.Sweep
    cost: Forecast
    verdicts: Verdicts | None
    skipped: Skipped | None = None


@told_shortly
def show(
    target: str | Study,
    experiment: str | None = None,
    *,
    scale: Scale = "quick",
    store: Store | str | Path | None = None,
    measure: bool = False,
) -> Study | Overview:
    """A study, or an experiment with its grid, its claims and what is known of its cost.

    Nothing is run for it; with `measure` one call of each program that was never timed.
    """
    owner, of_target = owner_of(target)
    if not (experiment or of_target):
        return owner
    planned = job(target, experiment, scale=scale, store=store, yes=True)
    cost = planned.forecast(measure)
    if planned.sweep.trainings.refine is not None and cost.stored:
        stored(planned)  # as far as its bisection has come
        cost = planned.forecast(measure)
    planned.store.tell()
    if cost.left:
        skipped = with_data([planned])[1]
        return Overview(planned.sweep, cost, None, *skipped)
    return Overview(planned.sweep, cost, verdicts(owner, planned.sweep.experiment, stored(planned)))


@told_shortly
def theory(
    target: str | Study, *, settings: Mapping[str, Any] | None = None, **parameters: Any
) -> Prediction:
    """What a study's theory says at a setting: its conditions, and its predictions by name.

    Example:
        `pg.theory("benign_overfitting", samples=12, snr=9)`
    """
    owner, experiment = owner_of(target)
    if experiment:
        raise InputError(f"theory takes a study and settings: '{owner.name}', not '{target}'")
    config = owner.simulator()[1].config
    table, given = pars(config), together(settings, parameters)
    for name, value in given.items():
        if name not in table:
            raise unknown("parameter", name, table)
        if isinstance(value, (list, tuple, range)):
            raise InputError(f"theory takes one value for {name}, not a list of {len(value)}")
    cfg = config(**{name: table[name].check(value) for name, value in given.items()})
    try:
        return owner.theory(cfg)
    except (ArithmeticError, ValueError) as error:
        raise InputError(
            f"the theory of {owner.name} cannot be computed at these settings: "
            f"{type(error).__name__}: {error}"
        ) from error


@told_shortly
def conditions(
    target: str | Study, *, settings: Mapping[str, Any] | None = None, **parameters: Any
) -> Conditions:
    """The conditions of a study's theorem at a setting: both sides, margin, satisfied or not.

    Example:
        `pg.conditions("benign_overfitting", samples=12, snr=9)`
    """
    return Conditions(theory(target, settings=settings, **parameters).conditions)


@told_shortly
def predict(ds: xr.Dataset, *, study: Study | None = None) -> xr.Dataset:
    """What the theory says at every setting of a Dataset: its predictions by name, the margin of
    each condition, and how many are satisfied.

    Example:
        `pg.predict(pg.run("benign_overfitting/fig1b")).margin.min("condition")`
    """
    return at_settings(origin(ds, study)[0], ds)


# -------------------------------------------------------------------------------- work


@told_shortly
def run(
    target: str | Study,
    experiment: str | None = None,
    *,
    scale: Scale = "quick",
    seeds: int | Sequence[int] | None = None,
    lanes: int | None = None,
    store: Store | str | Path | None = None,
    executor: Executor | None = None,
    progress: Progress = None,
    yes: bool = False,
    probes: Any = None,
    parts: Mapping[str, Callable[..., Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
    design: int | None = None,
    draw: int = 0,
    **parameters: Any,
) -> xr.Dataset:
    """Runs what is missing of an experiment and returns all of it as a Dataset.

    Parameters to fix (one value) or sweep (a list) are given by name.

    Args:
        target: `"study/experiment"`, or a study with the name of the `experiment`, which may be
            left out where there is only one.
        scale: `"quick"` or `"paper"`.
        seeds: how many seeds, or which.
        lanes: trainings per call (default: by rule and measurement).
        store: a folder (default: `$PROVING_STORE`, else the user's data folder).
        executor: any `concurrent.futures.Executor` (default: a thread per core); one of other
            processes, such as Dask's (see `cluster`), is sent the names of study and settings.
        progress: False for none, or a function of (done, total, what). Default: a bar at a
            terminal and in a notebook, else a line on stderr every ten seconds.
        probes: functions of the last weights (one, a list, or a dict by name), whose values
            become variables of the Dataset. See docs/extend.md.
        parts: functions in the place of parts of the training, such as
            `{"activation": jnp.tanh}`.
        settings: parameters again, as a dict: needed for those with a name of ours (`scale`,
            `seeds`, ...).
        design: so many settings drawn from the domain of the experiment's laws, in place of its
            grid, along a dim `point`; `draw` is the seed of the drawing.

    Example:
        `pg.run("benign_overfitting/fig1a", snr=[2.0, 5.0, 10.0], samples=[4, 8, 16], seeds=4)`
    """
    planned = job(
        target,
        experiment,
        scale=scale,
        seeds=seeds,
        lanes=lanes,
        store=store,
        yes=yes,
        probes=probes,
        parts=parts,
        settings=together(settings, parameters),
        design=design,
        draw=draw,
    )
    ds = finish(planned, executor=executor, progress=progress)
    if ds.attrs["diverged"] and progress is not False:
        say(f"{ds.attrs['diverged']} of {ds.attrs['cells']} cells diverged")
    return ds


def finish(
    planned: Job, *, executor: Executor | None = None, progress: Progress = None
) -> xr.Dataset:
    """Runs what a planned sweep still misses, and returns its Dataset."""
    (ds,) = finish_all([planned], executor=executor, progress=progress)
    return ds


def finish_all(
    planned: Sequence[Job], *, executor: Executor | None = None, progress: Progress = None
) -> Iterator[xr.Dataset]:
    """The Datasets of planned sweeps, one after the other, with what they still miss run first.

    Programs are compiled ahead: while a sweep runs, those of the next ones are.
    """
    with Ahead(planned if dispatch.is_local(executor) else ()) as ahead:
        for number, each in enumerate(planned, 1):
            place = f"({number} of {len(planned)}) " if len(planned) > 1 else ""
            yield _finished(each, executor, progress, ahead, place)


def _finished(
    planned: Job, executor: Executor | None, progress: Progress, ahead: Ahead, place: str
) -> xr.Dataset:
    title = f"{place}{planned.study.name}/{planned.sweep.experiment.name}"
    with reporting(progress, title) as tell:
        for _ in range(ROUNDS):
            for _ in stages(planned):
                dispatch.run(planned, executor, tell, ahead)
            if not (ds := dataset(planned)).attrs["missing"]:
                return ds
    raise StoreError(
        f"cells went missing from the store {planned.store.path} {ROUNDS} times after they were "
        "computed: its files are being damaged or removed"
    )


@told_shortly
def load(
    target: str | Study,
    experiment: str | None = None,
    *,
    scale: Scale = "quick",
    seeds: int | Sequence[int] | None = None,
    store: Store | str | Path | None = None,
    probes: Any = None,
    parts: Mapping[str, Callable[..., Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> xr.Dataset:
    """Like `run`, from stored results alone: nothing is trained, and nothing traced, but for the
    shapes of probes whose type does not say them.

    Cells that are not stored are NaN, which is said on stderr; if none is, that is an error."""
    planned = job(
        target,
        experiment,
        scale=scale,
        seeds=seeds,
        store=store,
        trace=False,
        probes=probes,
        parts=parts,
        settings=together(settings, parameters),
    )
    ds = stored(planned)
    if missing := ds.attrs["missing"]:
        told = lacking(planned.sweep.experiment, ds)
        if missing + ds.attrs["skipped"] >= ds.attrs["cells"]:
            raise RunError(told)
        say(told)
    return ds


def stored(planned: Job) -> xr.Dataset:
    """What is stored of a planned sweep."""
    for _ in stages(planned):
        if not planned.stored()[planned.wanted].all():
            break
    ds = dataset(planned)
    planned.store.tell()
    return ds


@told_shortly
def check(
    *targets: str | Study,
    scale: Scale = "quick",
    headline: bool = False,
    seeds: int | Sequence[int] | None = None,
    lanes: int | None = None,
    store: Store | str | Path | None = None,
    executor: Executor | None = None,
    progress: Progress = None,
    parts: Mapping[str, Callable[..., Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
    off_slice: int | None = None,
    draw: int = 0,
    **parameters: Any,
) -> Verdicts:
    """Runs what is missing and judges the claims of studies or experiments (default: all).

    Targets are studies, experiments (`"study/experiment"`), or studies followed by names of their
    experiments. `headline` restricts each study to its first experiment. `parts` are those of
    `run`. With `off_slice` the claims are judged at so many settings drawn from their domain
    (`draw` is the seed of the drawing), on seeds that no slice has; of several experiments those
    that declare a domain. Experiments whose data set is not here are not judged: the verdicts name
    them as `skipped`.

    Example:
        `pg.check("toy")`, `pg.check(study, "fig1a", "fig1b")`
    """
    enough_seeds(seeds)
    given = together(settings, parameters)
    some = chosen(targets, scale=scale, headline=headline)
    if off_slice is not None:
        some = with_domain(some)
    planned = [
        job(
            owner,
            experiment.name,
            scale=scale,
            seeds=seeds,
            lanes=lanes,
            store=store,
            parts=parts,
            settings=given,
            off_slice=off_slice,
            draw=draw,
        )
        for owner, experiment in some
    ]
    here, skipped = with_data(planned)
    found = finish_all(here, executor=executor, progress=progress)
    judged = (
        verdict
        for each, ds in zip(here, found, strict=True)
        for verdict in verdicts(each.study, each.sweep.experiment, ds)
    )
    return Verdicts(judged, skipped)


@told_shortly
def figure(
    target: str | Study | xr.Dataset,
    experiment: str | None = None,
    *,
    style: str = "screen",
    study: Study | None = None,
    **options: Any,
) -> Any:
    """The figure of an experiment, from stored results, or of a Dataset that `run` returned.

    A notebook shows it as a picture. `style="paper"` gives it the width of a printed column, small
    type and no title. Options are those of `load`; for a Dataset there are none, but for the
    `study` if it is one of your own that is not listed.

    Example:
        `pg.figure("toy/risk", seeds=8)`, or `pg.figure(ds)`
    """
    with plot.style(style):
        if isinstance(target, xr.Dataset):
            if experiment is not None or options:
                given = ", ".join(["experiment"] * (experiment is not None) + list(options))
                raise InputError(
                    f"a Dataset has its settings: {given} cannot be set for its figure"
                )
            return plot.finish(drawn(origin(target, study)[1], target))
        if study is not None:
            raise InputError("study= is for the figure of a Dataset; give the study itself instead")
        owner, which = resolve(target, experiment)
        return plot.finish(drawn(which, load(owner, which.name, **options)))


def drawn(which: Experiment, ds: xr.Dataset) -> Any:
    """The figure of an experiment, drawn from its Dataset, if that has all that it needs."""
    name = f"{ds.attrs['study']}/{which.name}"
    if ds.attrs.get("missing"):
        raise RunError(lacking(which, ds))
    try:
        return which.figure(ds)
    except (AttributeError, IndexError, InputError, KeyError, ValueError) as error:
        lost = [axis for axis in json.loads(ds.attrs["grid"]) if axis not in ds.dims]
        if not lost:
            raise
        raise InputError(
            f"the figure of {name} cannot be drawn without the axis {lost[0]} ({error}); a list "
            f"keeps an axis, as in ds.sel({lost[0]}=[...])"
        ) from error


def lacking(which: Experiment, ds: xr.Dataset) -> str:
    """What is to be said of a Dataset of which not all is stored."""
    name = f"{ds.attrs['study']}/{which.name}"
    return (
        f"{ds.attrs['missing']} of {ds.attrs['cells']} cells of {name} are missing; `proving run "
        f"{name}` (or `pg.run`) with the same options first"
    )


def origin(ds: xr.Dataset, owner: Study | None) -> tuple[Study, Experiment]:
    """The experiment that a Dataset comes from."""
    if not isinstance(ds, xr.Dataset):
        raise InputError(f"{shortened(ds)} is not a Dataset, as `run` and `load` return it")
    if not {"study", "experiment"} <= set(ds.attrs):
        raise InputError(
            "the Dataset does not say which study and experiment it is of: its attributes were "
            "lost (xarray.set_options(keep_attrs=True) keeps them)"
        )
    if owner is None and (name := ds.attrs["study"]) not in registry.names():
        raise InputError(f"the study '{name}' of the Dataset is not listed; say study=...")
    if owner is not None and (not isinstance(owner, Study) or owner.name != ds.attrs["study"]):
        given = owner.name if isinstance(owner, Study) else shortened(owner)
        raise InputError(f"the Dataset is of the study '{ds.attrs['study']}', not of {given}")
    return resolve(owner or ds.attrs["study"], ds.attrs["experiment"])
