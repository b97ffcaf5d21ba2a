"""The Python interface: `run`, `check`, `replay`, `figure`, `load`, `studies`."""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from provingground import dispatch, grid, plot
from provingground.engine import Job
from provingground.errors import InputError, StoreError, unknown
from provingground.keys import seed_key
from provingground.programs import data_of, probe_dims, program_hash, single
from provingground.refine import stages
from provingground.results import dataset
from provingground.store import Store
from provingground.study import Experiment, Scale, Study, Verdict, judge
from provingground.train import taped

LEAST_SEEDS = 3
ROUNDS = 3  # of filling what was damaged while a run went on
SCALES: tuple[Scale, ...] = ("quick", "paper")
Progress = bool | Callable[[int, int, str], None] | None


# ----------------------------------------------------------------------------- studies


def studies() -> dict[str, Study]:
    """All studies by name: those of the project, then those of other packages and folders.

    Other packages register an entry point of the group `provingground.studies`; folders are
    named by `$PROVING_STUDIES` (or `proving --study-path`), each a package with a `STUDY`.
    """
    return {name: load() for name, load in _known().items()}


def _known() -> dict[str, Callable[[], Study]]:
    """How each study is loaded, so that one of them is imported without the others."""
    from provingground.studies import STUDIES

    known: dict[str, Callable[[], Study]] = {name: partial(_listed, name) for name in STUDIES}
    for entry in entry_points(group="provingground.studies"):
        known.setdefault(entry.name, entry.load)
    for folder in filter(None, os.environ.get("PROVING_STUDIES", "").split(os.pathsep)):
        own = _study_in(Path(folder))
        known[own.name] = lambda own=own: own
    return known


def _listed(name: str) -> Study:
    return importlib.import_module(f"provingground.studies.{name}").STUDY


def _study_in(folder: Path) -> Study:
    """The study of a folder that is a package with a `STUDY`."""
    init = folder.expanduser().resolve() / "__init__.py"
    if not init.exists():
        raise InputError(f"no study in {folder}: there is no {init.name} in it")
    name = init.parent.name
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, init, submodule_search_locations=[str(init.parent)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    found = getattr(sys.modules[name], "STUDY", None)
    if not isinstance(found, Study):
        raise InputError(f"no study in {folder}: its __init__.py defines no STUDY")
    return found


def study(name: str) -> Study:
    """A study by name; no other is imported."""
    from provingground.studies import SKELETON

    if name == SKELETON:
        return _listed(name)
    known = _known()
    if name not in known:
        raise unknown("study", name, known)
    return known[name]()


def _resolve(target: str | Study, experiment: str | None) -> tuple[Study, Experiment]:
    if isinstance(target, str):
        name, _, of_target = target.partition("/")
        target, experiment = study(name), experiment or of_target
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
    settings: Mapping[str, Any] | None = None,
) -> Job:
    """A planned sweep: checked, not yet run."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if lanes is not None and lanes < 1:
        raise InputError(f"lanes = {lanes} is not allowed: whole numbers from 1")
    sweep = grid.plan(*_resolve(target, experiment), scale, settings, seeds, yes=yes)
    return Job(sweep, _store(store), lanes, trace)


def _store(store: Store | str | Path | None) -> Store:
    return store if isinstance(store, Store) else Store() if store is None else Store(Path(store))


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
    **settings: Any,
) -> xr.Dataset:
    """Runs what is missing of an experiment and returns all of it as a Dataset.

    Args:
        target: `"study/experiment"`, or a Study with the name of the `experiment`.
        scale: `"quick"` or `"paper"`.
        seeds: how many seeds, or which.
        lanes: trainings per call (default: by rule and measurement).
        store: a folder (default: `$PROVING_STORE`, else the user's data folder).
        executor: any `concurrent.futures.Executor` (default: a thread per core); one of other
            processes, such as Dask's (see `cluster`), is sent the names of study and settings.
        progress: True for a bar, False for none, or a function of (done, total, what).
        settings: parameters to fix (one value) or sweep (a list).

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
        settings=settings,
    )
    return finish(planned, executor=executor, progress=progress)


def finish(
    planned: Job, *, executor: Executor | None = None, progress: Progress = None
) -> xr.Dataset:
    """Runs what a planned sweep still misses, and returns its Dataset."""
    with _reporting(progress, f"{planned.study.name}/{planned.sweep.experiment.name}") as tell:
        for _ in range(ROUNDS):
            for _ in stages(planned):
                dispatch.run(planned, executor, tell)
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
    **settings: Any,
) -> xr.Dataset:
    """Like `run`, from stored results alone: nothing is traced or trained."""
    return stored(
        job(
            target,
            experiment,
            scale=scale,
            seeds=seeds,
            store=store,
            trace=False,
            settings=settings,
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
    seeds: int | None = None,
    lanes: int | None = None,
    store: Store | str | Path | None = None,
    executor: Executor | None = None,
    progress: Progress = None,
    **settings: Any,
) -> list[Verdict]:
    """Runs what is missing and judges the claims of studies or experiments (default: all).

    `headline` restricts each study to its first experiment.
    """
    enough_seeds(seeds)
    return [
        verdict
        for owner, experiment in chosen(targets, scale=scale, headline=headline)
        for verdict in verdicts(
            owner,
            experiment,
            run(
                owner,
                experiment.name,
                scale=scale,
                seeds=seeds,
                lanes=lanes,
                store=store,
                executor=executor,
                progress=progress,
                **settings,
            ),
        )
    ]


def enough_seeds(seeds: int | None) -> None:
    """Refuses to judge from too few seeds, before any work."""
    if seeds is not None and seeds < LEAST_SEEDS:
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
            picked.append(_resolve(target, None))
            continue
        owner = study(target) if isinstance(target, str) else target
        wanted = owner.experiments[:1] if headline else owner.experiments
        picked += [(owner, e) for e in wanted if not (e.paper_only and scale == "quick")]
    return picked


def verdicts(owner: Study, experiment: Experiment, ds: xr.Dataset) -> list[Verdict]:
    """The verdicts on all claims of an experiment at the Dataset's scale."""
    headline = experiment is owner.experiments[0] or experiment.name == owner.experiments[0].name
    return [judge(c, ds, headline) for c in experiment.claims_at(ds.attrs["scale"])]


def figure(target: str | Study, experiment: str | None = None, **options: Any) -> Any:
    """The figure of an experiment, from stored results. Options are those of `load`."""
    owner, which = _resolve(target, experiment)
    return plot.finish(which.figure(load(owner, which.name, **options)))


# ------------------------------------------------------------------------------ replay


class Replay(NamedTuple):
    """One cell again: its probes, the whole trajectory of each training, and its weights."""

    probes: xr.Dataset
    trajectory: xr.Dataset
    weights: Any


def replay(ds: xr.Dataset, seed: int = 0, *, study: Study | None = None, **cell: Any) -> Replay:
    """Runs one cell of a Dataset again, probing every step, and keeps its last weights.

    `study` is needed for a study of your own that is not listed.

    Example:
        `pg.replay(ds, snr=10.0, samples=8, seed=1).trajectory.train_loss.plot()`
    """
    owner, which = _resolve(study or ds.attrs["study"], ds.attrs["experiment"])
    axes = json.loads(ds.attrs["grid"])
    for name in cell:
        if name not in axes:
            raise unknown("axis", name, axes)
    where = {}
    for name, labels in axes.items():
        if name not in cell and len(labels) > 1:
            raise InputError(f"say which {name}: one of {', '.join(map(str, labels))}")
        wanted = cell.get(name, labels[0])
        if isinstance(wanted, str):
            where[name] = wanted
        else:
            where[name] = min(labels, key=lambda v: abs(v - wanted))
            if not np.isclose(where[name], wanted, rtol=1e-3):
                raise InputError(f"{name} = {wanted} is not on the axis: {labels}")
    settings = json.loads(ds.attrs["settings"]) | where
    sweep = grid.plan(owner, which, ds.attrs["scale"], settings, [seed])
    point = next(sweep.points())
    simulator = owner.simulators[point.program.simulator]
    data = data_of(owner, point.program.data)
    if program_hash(owner, point) not in ds.attrs["fingerprint"]:
        raise InputError(
            f"the Dataset was computed by another version of {owner.name} (or of jax); "
            "if it is a study of your own, say study=..."
        )

    if simulator.host:
        found = single(owner, point, seed)
        dims = probe_dims(simulator.probes)
        probes = xr.Dataset({n: (dims[n], v) for n, v in found.items()})
        return Replay(probes=probes, trajectory=xr.Dataset(), weights=None)

    def again(key: Any) -> Any:
        with taped() as tape:
            rest = () if data is None else (data,)
            return simulator.simulate(point.config, key, *rest), list(tape)

    with grid.precision_of(point.program.precision), jax.default_matmul_precision("highest"):
        probes, tape = jax.jit(again)(seed_key(owner.name, seed))
    trace = tape[-1] if tape else None
    return Replay(
        probes=_as_dataset(probes, probe_dims(simulator.probes)),
        trajectory=xr.Dataset() if trace is None else _trajectory(trace),
        weights=None if trace is None else trace.last,
    )


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
