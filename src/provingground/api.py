"""In Python: `show`, `theory`, `conditions`, `run`, `load`, `check`, `figure`, `replay`."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from provingground import dispatch, extend, grid, plot, registry, reprs
from provingground.ahead import Ahead
from provingground.engine import Forecast, Job
from provingground.errors import InputError, RunError, StoreError, shortened, told_shortly, unknown
from provingground.identity import program_hash, running
from provingground.keys import seed_key
from provingground.programs import data_of, probe_dims, single
from provingground.progress import Progress, reporting
from provingground.refine import stages
from provingground.registry import studies, study
from provingground.reprs import shown
from provingground.results import dataset, describe_probes
from provingground.store import Store
from provingground.study import (
    LARGEST_WHOLE,
    SCALES,
    Conditions,
    Experiment,
    Prediction,
    Scale,
    Study,
    Verdicts,
    judge,
    pars,
)
from provingground.terminal import say
from provingground.train import taped
from provingground.words import leaves

LEAST_SEEDS = 3
ROUNDS = 3  # of filling what was damaged while a run went on


# ------------------------------------------------------------------------------ planning


def resolve(target: str | Study, experiment: str | None = None) -> tuple[Study, Experiment]:
    """The experiment that `"study/experiment"`, or a study (its name will do) and a name, stands
    for. Where a study has only one, it need not be named."""
    owner, of_target = _owner(target)
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


def _owner(target: str | Study) -> tuple[Study, str]:
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
) -> Job:
    """A planned sweep: checked, not yet run."""
    whole = isinstance(lanes, (int, np.integer)) and not isinstance(lanes, bool)
    if lanes is not None and not (whole and 1 <= lanes <= LARGEST_WHOLE):
        raise InputError(
            f"lanes = {shortened(lanes)} is not allowed: whole numbers from 1 to {LARGEST_WHOLE}"
        )
    changes = extend.changes(probes, parts)
    sweep = grid.plan(*resolve(target, experiment), scale, settings, seeds, yes=yes)
    sweep = extend.changed(sweep, changes, trace)
    planned = Job(sweep, store_at(store), None if lanes is None else int(lanes), trace)
    _ = planned.groups  # every point is checked here, before anything is written
    return planned


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


def _together(settings: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that are given by name and in `settings`, none of them both ways."""
    if settings is not None and not isinstance(settings, Mapping):
        raise InputError(
            f"settings = {shortened(settings)} is not allowed: a dict of parameters and values"
        )
    if twice := [name for name in settings or {} if name in more]:
        raise InputError(f"{twice[0]} is set twice: by name and in settings; say it once")
    return {**(settings or {}), **more}


# ----------------------------------------------------------------------------- looking


@shown(reprs.overview)
class Overview(NamedTuple):
    """An experiment at a scale: what there is to run, and what is known of it.

    There are verdicts where all of it is stored.
    """

    sweep: grid.Sweep
    cost: Forecast
    verdicts: Verdicts | None


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
    owner, of_target = _owner(target)
    if not (experiment or of_target):
        return owner
    planned = job(target, experiment, scale=scale, store=store, yes=True)
    cost = planned.forecast(measure)
    if planned.sweep.experiment.refine is not None and cost.stored:
        stored(planned)  # as far as its bisection has come
        cost = planned.forecast(measure)
    planned.store.tell()
    if cost.left:
        return Overview(planned.sweep, cost, None)
    return Overview(planned.sweep, cost, verdicts(owner, planned.sweep.experiment, stored(planned)))


@told_shortly
def theory(
    target: str | Study, *, settings: Mapping[str, Any] | None = None, **parameters: Any
) -> Prediction:
    """What a study's theory says at a setting: its conditions, and its predictions by name.

    Example:
        `pg.theory("benign_overfitting", samples=12, snr=9)`
    """
    owner, experiment = _owner(target)
    if experiment:
        raise InputError(f"theory takes a study and settings: '{owner.name}', not '{target}'")
    config = owner.simulator()[1].config
    table, given = pars(config), _together(settings, parameters)
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
        settings=_together(settings, parameters),
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
    shapes of probes whose type does not say them."""
    return stored(
        job(
            target,
            experiment,
            scale=scale,
            seeds=seeds,
            store=store,
            trace=False,
            probes=probes,
            parts=parts,
            settings=_together(settings, parameters),
        )
    )


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
    **parameters: Any,
) -> Verdicts:
    """Runs what is missing and judges the claims of studies or experiments (default: all).

    Targets are studies, experiments (`"study/experiment"`), or studies followed by names of their
    experiments. `headline` restricts each study to its first experiment. `parts` are those of
    `run`.

    Example:
        `pg.check("toy")`, `pg.check(study, "fig1a", "fig1b")`
    """
    enough_seeds(seeds)
    together = _together(settings, parameters)
    planned = [
        job(
            owner,
            experiment.name,
            scale=scale,
            seeds=seeds,
            lanes=lanes,
            store=store,
            parts=parts,
            settings=together,
        )
        for owner, experiment in chosen(targets, scale=scale, headline=headline)
    ]
    found = finish_all(planned, executor=executor, progress=progress)
    return Verdicts(
        verdict
        for each, ds in zip(planned, found, strict=True)
        for verdict in verdicts(each.study, each.sweep.experiment, ds)
    )


def enough_seeds(seeds: int | Sequence[int] | None) -> None:
    """Refuses to judge from too few seeds, before any work."""
    if seeds is not None and len(grid.seeds_of(seeds)) < LEAST_SEEDS:
        raise InputError(f"seeds = {seeds} is not allowed: a verdict needs at least {LEAST_SEEDS}")


def chosen(
    targets: Sequence[str | Study], *, scale: Scale = "quick", headline: bool = False
) -> list[tuple[Study, Experiment]]:
    """The experiments that a list of studies and experiments names; all studies if empty.

    Names of experiments may follow their study, which then stands for these alone.
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
                raise unknown(f"experiment of {owner.name}, or study,", target, (*names, *known))
        owner, experiment = _owner(target)
        picked.append((owner, [owner.experiment(experiment)] if experiment else []))

    def all_of(owner: Study) -> list[Experiment]:
        wanted = owner.experiments[:1] if headline else owner.experiments
        return [e for e in wanted if not (e.paper_only and scale == "quick")]

    return [(owner, e) for owner, named in picked for e in named or all_of(owner)]


def verdicts(owner: Study, experiment: Experiment, ds: xr.Dataset) -> Verdicts:
    """The verdicts on all claims of an experiment at the Dataset's scale."""
    headline = experiment is owner.experiments[0] or experiment.name == owner.experiments[0].name
    return Verdicts(judge(c, ds, headline) for c in experiment.claims_at(ds.attrs["scale"]))


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
            return plot.finish(drawn(_origin(target, study)[1], target))
        if study is not None:
            raise InputError("study= is for the figure of a Dataset; give the study itself instead")
        owner, which = resolve(target, experiment)
        return plot.finish(drawn(which, load(owner, which.name, **options)))


def drawn(which: Experiment, ds: xr.Dataset) -> Any:
    """The figure of an experiment, drawn from its Dataset, if that has all that it needs."""
    name = f"{ds.attrs['study']}/{which.name}"
    if missing := ds.attrs.get("missing"):
        raise RunError(
            f"{missing} of {ds.attrs['cells']} cells of {name} are missing; `proving run {name}` "
            "(or `pg.run`) with the same options first"
        )
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


def _origin(ds: xr.Dataset, owner: Study | None) -> tuple[Study, Experiment]:
    """The experiment that a Dataset comes from."""
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


# ------------------------------------------------------------------------------ replay


@shown(reprs.replay)
class Replay(NamedTuple):
    """One cell again: its probes, the trajectory of its last training, and the weights at its end.

    `probes` is what the study's simulator returns, with every step where it records some.
    `trajectory` is what the `probe=` of the last `iterate` or `descend` measured at each step, up
    to the one at which it stopped; without a `probe=` it is empty.
    """

    probes: xr.Dataset
    trajectory: xr.Dataset
    weights: Any


@told_shortly
def replay(
    ds: xr.Dataset,
    seed: int = 0,
    *,
    study: Study | None = None,
    probes: Any = None,
    parts: Mapping[str, Callable[..., Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
    **where: Any,
) -> Replay:
    """Runs one cell of a Dataset again, probing every step, and keeps its last weights.

    The cell is told by its place on each axis, by name or (as a dict) in `settings`. `study` is
    needed for a study of your own that is not listed, and `probes` and `parts` if it was run with
    any.

    The variables of the trajectory have the names that the training's `probe=` gives them in a
    dict. A lone array has the name of the only probe of the study with its values, else "probe".

    Example:
        `pg.replay(ds, snr=10.0, samples=8, seed=1).trajectory.train_loss.plot()`
    """
    owner, which = _origin(ds, study)
    axes = json.loads(ds.attrs["grid"])
    cell = _together(settings, where)
    for name in cell:
        if name not in axes:
            raise unknown("axis", name, axes)
    place = {}
    for name, labels in axes.items():
        if name not in cell and len(labels) > 1:
            raise InputError(f"say which {name}: one of {', '.join(map(str, labels))}")
        wanted = cell.get(name, labels[0])
        place[name] = wanted if isinstance(wanted, str) else _nearest(name, labels, wanted)
    fixed = json.loads(ds.attrs["settings"])
    sweep = grid.plan(owner, which, ds.attrs["scale"], fixed | place, [seed])
    sweep = extend.changed(sweep, extend.changes(probes, parts))
    owner = sweep.study
    point = next(sweep.points())
    simulator = owner.simulators[point.program.simulator]
    data = data_of(owner, point.program.data)
    if program_hash(owner, point, data) not in ds.attrs["fingerprint"]:
        raise InputError(
            f"the Dataset was computed by another version of {owner.name} (or of jax); "
            "if it is a study of your own, say study=...; if it was run with probes or parts, say "
            "these"
        )

    if simulator.host:
        found = single(owner, point, seed)
        dims = probe_dims(simulator.probes)
        alone = xr.Dataset({n: (dims[n], v) for n, v in found.items()})
        alone = describe_probes(alone, simulator.probes)
        return Replay(probes=alone, trajectory=xr.Dataset(), weights=None)

    def again(key: Any) -> Any:
        with taped() as tape:
            rest = () if data is None else (data,)
            return simulator.simulate(point.config, key, *rest), list(tape)

    key = seed_key(owner.name, seed)
    with running("", point.program.precision):
        found, tape = jax.jit(again)(key)
    trace = tape[-1] if tape else None
    whole = {n: (d, np.asarray(getattr(found, n))) for n, d in probe_dims(simulator.probes).items()}
    trajectory = xr.Dataset() if trace is None else _trajectory(trace, whole)
    return Replay(
        probes=describe_probes(xr.Dataset(whole), simulator.probes),
        trajectory=describe_probes(trajectory, simulator.probes),
        weights=None if trace is None else trace.last,
    )


def _nearest(name: str, labels: Sequence[Any], wanted: Any) -> Any:
    """The label that is meant by a number, which need not have all its digits."""
    if isinstance(wanted, (int, float, np.number)) and not isinstance(labels[0], str):
        near = min(labels, key=lambda label: abs(label - wanted))
        if np.isclose(near, wanted, rtol=1e-3):
            return near
    raise InputError(f"{name} = {shortened(wanted)} is not on the axis: {labels}")


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _trajectory(trace: Any, probes: Mapping[str, tuple[Any, np.ndarray]]) -> xr.Dataset:
    """Every probe at every step, up to the step at which the training stopped.

    A lone array has the name of the only one of the `probes` with its values, else "probe".
    """
    probes = {name: probe for name, probe in probes.items() if name != "step"}  # the coordinate
    until = int(trace.stopped_at) + 1
    found = {name: np.asarray(leaf) for name, leaf in leaves(trace.probes, "").items()}
    if "" in found:
        same = [name for name, (_, values) in probes.items() if _same(values, found[""])]
        found = {same[0] if len(same) == 1 else "probe": found[""]}
    return xr.Dataset(
        {
            n: (("step", *(f"{n}_{i}" for i in range(1, v.ndim))), v[:until])
            for n, v in found.items()
        },
        coords={"step": np.asarray(trace.step)[:until]},
    )
