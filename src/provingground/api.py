"""The Python interface: `run`, `check`, `replay`, `figure`, `load`."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from provingground import dispatch, extend, grid, plot
from provingground.ahead import Ahead
from provingground.engine import Job
from provingground.errors import InputError, StoreError, shortened, unknown
from provingground.identity import program_hash, running
from provingground.keys import seed_key
from provingground.programs import data_of, probe_dims, single
from provingground.refine import stages
from provingground.registry import studies, study
from provingground.results import dataset
from provingground.store import Store
from provingground.study import (
    LARGEST_WHOLE,
    SCALES,
    Experiment,
    Scale,
    Study,
    Verdict,
    judge,
)
from provingground.train import taped

LEAST_SEEDS = 3
ROUNDS = 3  # of filling what was damaged while a run went on
Progress = bool | Callable[[int, int, str], None] | None


# ------------------------------------------------------------------------------ planning


def resolve(target: str | Study, experiment: str | None = None) -> tuple[Study, Experiment]:
    """The experiment that `"study/experiment"`, or a Study and a name, stands for."""
    if isinstance(target, str):
        name, _, of_target = target.partition("/")
        target, experiment = study(name), experiment or of_target
    if not isinstance(target, Study):
        raise InputError(
            f"target = {shortened(target)} is not allowed: 'study/experiment', or a Study and the "
            "name of its experiment"
        )
    if not experiment:
        raise unknown("experiment", f"{target.name}/", [e.name for e in target.experiments])
    return target, target.experiment(experiment)


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


# -------------------------------------------------------------------------------- work


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
        target: `"study/experiment"`, or a Study with the name of the `experiment`.
        scale: `"quick"` or `"paper"`.
        seeds: how many seeds, or which.
        lanes: trainings per call (default: by rule and measurement).
        store: a folder (default: `$PROVING_STORE`, else the user's data folder).
        executor: any `concurrent.futures.Executor` (default: a thread per core); one of other
            processes, such as Dask's (see `cluster`), is sent the names of study and settings.
        progress: True for a bar, False for none, or a function of (done, total, what).
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
    return finish(planned, executor=executor, progress=progress)


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
        for each in planned:
            yield _finished(each, executor, progress, ahead)


def _finished(
    planned: Job, executor: Executor | None, progress: Progress, ahead: Ahead
) -> xr.Dataset:
    with _reporting(progress, f"{planned.study.name}/{planned.sweep.experiment.name}") as tell:
        for _ in range(ROUNDS):
            for _ in stages(planned):
                dispatch.run(planned, executor, tell, ahead)
            if not (ds := dataset(planned)).attrs["missing"]:
                return ds
    raise StoreError(
        f"cells went missing from the store {planned.store.path} {ROUNDS} times after they were "
        "computed: its files are being damaged or removed"
    )


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
) -> list[Verdict]:
    """Runs what is missing and judges the claims of studies or experiments (default: all).

    `headline` restricts each study to its first experiment. `parts` are those of `run`.
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
    return [
        verdict
        for each, ds in zip(planned, found, strict=True)
        for verdict in verdicts(each.study, each.sweep.experiment, ds)
    ]


def enough_seeds(seeds: int | Sequence[int] | None) -> None:
    """Refuses to judge from too few seeds, before any work."""
    if seeds is not None and len(grid.seeds_of(seeds)) < LEAST_SEEDS:
        raise InputError(f"seeds = {seeds} is not allowed: a verdict needs at least {LEAST_SEEDS}")


def chosen(
    targets: Sequence[str | Study], *, scale: Scale = "quick", headline: bool = False
) -> list[tuple[Study, Experiment]]:
    """The experiments that a list of studies and experiments names; all studies if empty."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    picked: list[tuple[Study, Experiment]] = []
    for target in targets or list(studies().values()):
        if isinstance(target, str) and "/" in target:
            picked.append(resolve(target))
            continue
        owner = study(target) if isinstance(target, str) else target
        if not isinstance(owner, Study):
            raise InputError(
                f"target = {shortened(target)} is not allowed: 'study', 'study/experiment' or a "
                "Study"
            )
        wanted = owner.experiments[:1] if headline else owner.experiments
        picked += [(owner, e) for e in wanted if not (e.paper_only and scale == "quick")]
    return picked


def verdicts(owner: Study, experiment: Experiment, ds: xr.Dataset) -> list[Verdict]:
    """The verdicts on all claims of an experiment at the Dataset's scale."""
    headline = experiment is owner.experiments[0] or experiment.name == owner.experiments[0].name
    return [judge(c, ds, headline) for c in experiment.claims_at(ds.attrs["scale"])]


def figure(target: str | Study, experiment: str | None = None, **options: Any) -> Any:
    """The figure of an experiment, from stored results. Options are those of `load`."""
    owner, which = resolve(target, experiment)
    return plot.finish(which.figure(load(owner, which.name, **options)))


# ------------------------------------------------------------------------------ replay


class Replay(NamedTuple):
    """One cell again: its probes, the whole trajectory of each training, and its weights."""

    probes: xr.Dataset
    trajectory: xr.Dataset
    weights: Any


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

    Example:
        `pg.replay(ds, snr=10.0, samples=8, seed=1).trajectory.train_loss.plot()`
    """
    owner, which = resolve(study or ds.attrs["study"], ds.attrs["experiment"])
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
        return Replay(probes=alone, trajectory=xr.Dataset(), weights=None)

    def again(key: Any) -> Any:
        with taped() as tape:
            rest = () if data is None else (data,)
            return simulator.simulate(point.config, key, *rest), list(tape)

    key = seed_key(owner.name, seed)
    with running("", point.program.precision):
        found, tape = jax.jit(again)(key)
    trace = tape[-1] if tape else None
    return Replay(
        probes=_as_dataset(found, probe_dims(simulator.probes)),
        trajectory=xr.Dataset() if trace is None else _trajectory(trace),
        weights=None if trace is None else trace.last,
    )


def _nearest(name: str, labels: Sequence[Any], wanted: Any) -> Any:
    """The label that is meant by a number, which need not have all its digits."""
    if isinstance(wanted, (int, float, np.number)) and not isinstance(labels[0], str):
        near = min(labels, key=lambda label: abs(label - wanted))
        if np.isclose(near, wanted, rtol=1e-3):
            return near
    raise InputError(f"{name} = {shortened(wanted)} is not on the axis: {labels}")


def _as_dataset(probes: Any, dims: Mapping[str, tuple[str, ...]]) -> xr.Dataset:
    return xr.Dataset({n: (d, np.asarray(getattr(probes, n))) for n, d in dims.items()})


def _trajectory(trace: Any) -> xr.Dataset:
    """Every probe at every step, up to the step at which the training stopped."""
    until = int(trace.stopped_at) + 1
    leaves = {
        "/".join(str(getattr(k, "key", getattr(k, "name", k))) for k in path) or "probe": leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(trace.probes)
    }
    return xr.Dataset(
        {
            n: (("step", *(f"{n}_{i}" for i in range(1, np.ndim(v)))), np.asarray(v)[:until])
            for n, v in leaves.items()
        },
        coords={"step": np.asarray(trace.step)[:until]},
    )


# ---------------------------------------------------------------------------- progress


@contextmanager
def _reporting(progress: Progress, title: str) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar with rate and time left on stderr, if asked for or at a terminal."""
    if callable(progress):
        yield progress
        return
    shown = sys.stderr.isatty() if progress is None else progress
    if not shown:
        with nullcontext():
            yield lambda done, total, what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, rate="")

        def tell(done: int, total: int, what: str) -> None:
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            rate = f"{speed:.3g} cells/s" if speed else what
            bar.update(task, completed=done, total=total, description=f"{title}", rate=rate)

        yield tell
