"""The command line: a thin layer over the Python interface.

Nothing slow is imported before a command needs it, so that `proving --help` answers at once.
"""

import atexit
import contextlib
import gc
import io
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from provingground import __version__, compare, outputs
from provingground.errors import InputError, RunError, Terminated, stop
from provingground.terminal import any_letter, flush, prepare, say, show_table, show_text

if TYPE_CHECKING:
    from provingground.study import Experiment, Study, Verdict


class Commands(typer.core.TyperGroup):
    """The commands; an interrupt says that nothing finished is lost."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as asked:
            say("proving: interrupted; finished cells are stored, run again to go on")
            raise typer.Exit(143 if isinstance(asked, Terminated) else 130) from None


app = typer.Typer(
    name="proving",
    cls=Commands,
    help="Run, check and draw the learning theory of transformers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Target = Annotated[str, typer.Argument(metavar="STUDY/EXPERIMENT", show_default=False)]
Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="[STUDY[/EXPERIMENT] ...]", help="Default: all.", show_default=False),
]
ScaleOption = Annotated[str, typer.Option(help="quick, or paper (the paper's sizes).")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUES",
        help="Fix a parameter (v), or sweep it: v1,v2,... or lo:hi:n or lo:hi:nlog. Repeatable.",
        show_default=False,
    ),
]
SeedsOption = Annotated[int | None, typer.Option(help="Number of seeds.", show_default=False)]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder of results. Default: $PROVING_STORE, else the user's data folder.",
        show_default=False,
    ),
]
LanesOption = Annotated[
    int | None,
    typer.Option(help="Trainings per call. Default: by rule and measurement.", show_default=False),
]
HeadlineOption = Annotated[
    bool, typer.Option("--headline", help="Only the first experiment of each study.")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(help="Worker processes on this machine (Dask). Default: threads.",
                 show_default=False),
]  # fmt: skip
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Use the workers of a running Dask scheduler, such as tcp://host:8786.",
        show_default=False,
    ),
]
DashboardOption = Annotated[
    bool, typer.Option("--dashboard", help="With --workers: Dask's dashboard on port 8787.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Allow more than a million cells.")]


def _version(wanted: bool) -> None:
    if wanted:
        show_text(f"proving {__version__}")
        raise typer.Exit


@app.callback()
def options(
    study_path: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of a study of your own. Repeatable.", show_default=False),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if study_path:
        paths = [os.environ.get("PROVING_STUDIES", ""), *map(str, study_path)]
        os.environ["PROVING_STUDIES"] = os.pathsep.join(filter(None, paths))
    if os.environ.get("PROVING_STUDIES"):
        from provingground import registry

        registry.folders()  # a wrong one is told at once, whatever the command


# --------------------------------------------------------------------------- looking


@app.command("list")
def list_studies() -> None:
    """List the studies with their experiments."""
    from provingground import registry

    rows = [(name, title, " ".join(names)) for name, title, names in registry.listings()]
    show_table("study", "paper", "experiments", rows=rows, edge=False)


@app.command()
def show(
    target: Annotated[str, typer.Argument(metavar="STUDY[/EXPERIMENT]", show_default=False)],
    scale: ScaleOption = "quick",
    store: StoreOption = None,
) -> None:
    """Show a study (paper, parameters, experiments) or an experiment (grid, claims, forecast)."""
    name, _, experiment = target.partition("/")
    if experiment:
        _show_experiment(name, experiment, scale, store)
    else:
        _show_study(name)


def _show_study(name: str) -> None:
    from provingground import api
    from provingground.study import pars

    study = api.study(name)
    show_text(f"{study.name}: {study.title}\n{study.cite}\n")
    rows = []
    for e in study.experiments:
        cells = [
            "-"
            if s == "quick" and e.paper_only
            else str(api.grid.plan(study, e, s, yes=True).cells)
            for s in api.SCALES
        ]
        rows.append((e.name, *cells, str(len(e.claims)), e.says))
    show_table("experiment", "cells (quick)", "cells (paper)", "claims", "says", rows=rows)
    for which, simulator in study.simulators.items():
        show_text(f"\nsimulator {which}  {simulator.says}  ({simulator.precision})")
        rows = [
            (p.name, p.symbol, _number(p.default), p.allowed, p.says)
            for p in pars(simulator.config).values()
        ]
        show_table("parameter", "symbol", "default", "takes", "is", rows=rows)


def _show_experiment(name: str, experiment: str, scale: str, store: Path | None) -> None:
    from provingground import api

    job = api.job(name, experiment, scale=scale, store=store)  # pyright: ignore[reportArgumentType]
    if job.sweep.experiment.refine is not None:
        api.stored(job)  # as far as its bisection has come
    sweep = job.sweep
    show_text(f"{sweep.study.name}/{sweep.experiment.name}: {sweep.experiment.says}\n")
    rows = [(a.name, ", ".join(_number(v, 4) for v in a.labels)) for a in sweep.axes]
    rows.append(("seed", f"{len(sweep.seeds)} seeds"))
    rows += [(f"{fixed} (fixed)", _number(value)) for fixed, value in sweep.fixed.items()]
    show_table("axis", "values", rows=rows)
    if job.forecast().seconds is None:
        say("timing one call of each program ...")
    forecast = job.forecast(measure=True)
    job.store.tell()
    show_text(
        f"\n{forecast.cells} cells, {forecast.stored} stored; {forecast.programs} programs to "
        f"compile, {forecast.lanes} lanes at once on {job.where}; about "
        f"{_duration(forecast.seconds)} and {forecast.memory / 2**20:.0f} MiB for the rest"
    )
    if forecast.stored < forecast.cells:
        show_text("")
        claims = sweep.experiment.claims_at(sweep.scale)
        rows = [(c.name, c.source, compare.bound(*c.within), c.says) for c in claims]
        show_table("claim", "source", "bound", "says", rows=rows)
        return
    verdicts = api.verdicts(sweep.study, sweep.experiment, api.stored(job))
    _show_verdicts(verdicts)
    for v in (v for v in verdicts if v.verdict == "unknown"):
        need = v.seeds_needed
        show_text(f"{v.claim}: " + (f"about {need} seeds would decide it" if need else
                                    "more seeds alone would not decide it"))  # fmt: skip


@app.command()
def conditions(
    study: Annotated[str, typer.Argument(metavar="STUDY", show_default=False)],
    set_: SetOption = None,
) -> None:
    """Each condition of the theorem at a setting: both sides, margin, satisfied or not."""
    from provingground import api
    from provingground.grid import parse_settings
    from provingground.study import pars

    owner = api.study(study)
    config = owner.simulator()[1].config
    settings = parse_settings(set_ or [], {}, pars(config))
    for name, value in settings.items():
        if isinstance(value, list):
            raise InputError(f"conditions takes one value for {name}, not {len(value)}")
    cfg = config(**settings)
    try:
        prediction = owner.theory(cfg)
        rows = [
            (c.name, f"{c.left:.4g}", c.relation, f"{c.right:.4g}", f"{c.margin:.3g}",
             "yes" if c.satisfied else "no", c.says)
            for c in prediction.conditions
        ]  # fmt: skip
        values = [f"{name} = {value:.6g}" for name, value in prediction.values.items()]
    except (ArithmeticError, ValueError) as error:
        raise InputError(
            f"the theory of {owner.name} cannot be computed at these settings: "
            f"{type(error).__name__}: {error}"
        ) from error
    show_table("condition", "left", "", "right", "margin", "satisfied", "in words", rows=rows)
    show_text("\n" + "\n".join(values))


# --------------------------------------------------------------------------- running


@app.command()
def run(
    target: Target,
    scale: ScaleOption = "quick",
    set_: SetOption = None,
    seeds: SeedsOption = None,
    lanes: LanesOption = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    dashboard: DashboardOption = False,
    store: StoreOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the Dataset to this netCDF file.", show_default=False)
    ] = None,
    yes: YesOption = False,
) -> None:
    """Run what is missing of an experiment."""
    from provingground import api

    outputs.check(out, (".nc",))
    _must_go_together(workers, scheduler, dashboard)
    job = _job(target, scale, set_, seeds, lanes, store, yes)
    forecast = job.forecast()
    left = forecast.cells - forecast.stored
    most = "at most " if job.sweep.experiment.refine else ""
    say(
        f"{forecast.cells} cells, {forecast.stored} stored, {most}{left} to run in "
        f"{forecast.programs} "
        f"programs" + (f", about {_duration(forecast.seconds)}" if forecast.seconds else "")
    )
    start = time.perf_counter()
    with _workers(workers, scheduler, dashboard) as executor:
        ds = api.finish(job, executor=executor)
    say(f"done in {_duration(time.perf_counter() - start)}; store: {job.store.path}")
    if ds.attrs["diverged"]:
        say(f"{ds.attrs['diverged']} of {ds.attrs['cells']} cells diverged")
    if out is not None:
        outputs.write(out, bytes(ds.to_netcdf(engine="scipy")))
        say(f"wrote {out}")
    else:
        show_text(str(ds))


@app.command()
def check(
    targets: Targets = None,
    scale: ScaleOption = "quick",
    headline: HeadlineOption = False,
    set_: SetOption = None,
    seeds: SeedsOption = None,
    lanes: LanesOption = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    dashboard: DashboardOption = False,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    save: Annotated[
        Path | None, typer.Option(help="Write the verdicts as JSON.", show_default=False)
    ] = None,
) -> None:
    """Run what is missing and judge the claims.

    Exit code 0 when nothing surprises, 1 on a surprise or an undecided headline claim.
    """
    from provingground import api
    from provingground.atlas.records import record_text, verdict_record
    from provingground.machine import here
    from provingground.sources import source_of

    api.enough_seeds(seeds)
    outputs.check(save)
    _must_go_together(workers, scheduler, dashboard)
    chosen = api.chosen(targets or [], scale=scale, headline=headline)  # pyright: ignore
    kept = api.store_at(store)
    start = time.perf_counter()
    jobs = [_planned(*each, scale, set_, seeds, lanes, kept, False) for each in chosen]
    sweeps = [job.sweep for job in jobs if save]  # whose sources are read before they may change
    sources = {f"{s.study.name}/{s.experiment.name}": source_of(s) for s in sweeps}
    verdicts, provenance = [], {}
    with _workers(workers, scheduler, dashboard) as executor:
        for job, ds in zip(jobs, api.finish_all(jobs, executor=executor), strict=True):
            verdicts += api.verdicts(job.study, job.sweep.experiment, ds)
            provenance[f"{job.study.name}/{job.sweep.experiment.name}"] = dict(ds.attrs)
    record = verdict_record(
        verdicts,
        scale=scale,
        seconds=round(time.perf_counter() - start, 3),
        device=here().device,
    )
    if save is not None:
        told = {at: about | {"source": sources[at]} for at, about in provenance.items()}
        outputs.write(save, record_text(record | {"provenance": told}))
    if as_json:
        show_text(json.dumps(record))
    else:
        _show_verdicts(verdicts)
        say(f"{len(verdicts)} claims in {_duration(record['seconds'])}")
    if any(v.trouble for v in verdicts):
        raise typer.Exit(1)


@app.command()
def figure(
    target: Target,
    out: Annotated[Path, typer.Option(help="A .png, .svg or .pdf file.", show_default=False)],
    scale: ScaleOption = "quick",
    set_: SetOption = None,
    seeds: SeedsOption = None,
    store: StoreOption = None,
) -> None:
    """Draw the figure of an experiment from stored results."""
    from provingground import api, plot

    outputs.check(out, (".png", ".svg", ".pdf"))
    job = _job(target, scale, set_, seeds, None, store, True, trace=False)
    ds = api.stored(job)
    if ds.attrs["missing"]:
        raise RunError(
            f"{ds.attrs['missing']} of {ds.attrs['cells']} cells are missing; "
            f"run `proving run {target}` with the same options first"
        )
    outputs.write(out, plot.image(job.sweep.experiment.figure(ds), out.suffix))
    say(f"wrote {out}")


@app.command()
def report(
    targets: Targets = None,
    scale: ScaleOption = "quick",
    headline: HeadlineOption = False,
    store: StoreOption = None,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
) -> None:
    """Write one HTML file with all verdicts and figures, from stored results."""
    from provingground import api
    from provingground.atlas.render import Entry
    from provingground.atlas.render import report as render
    from provingground.errors import StoreError

    outputs.check(out)
    kept = api.store_at(store)
    entries, left_out = [], []
    for owner, experiment in api.chosen(targets or [], scale=scale, headline=headline):  # pyright: ignore
        try:
            ds = api.load(owner, experiment.name, scale=scale, store=kept)  # pyright: ignore
        except StoreError:
            raise
        except RunError:
            left_out.append(f"{owner.name}/{experiment.name}")
            continue
        if ds.attrs["missing"]:
            left_out.append(f"{owner.name}/{experiment.name}")
            continue
        entries.append(Entry(owner, experiment, ds, api.verdicts(owner, experiment, ds)))
    if left_out:
        say(f"not in the report, since not (wholly) stored: {', '.join(left_out)}")
    if not entries:
        raise RunError("nothing to report: run `proving check` first")
    outputs.write(out, render(entries, scale=scale).encode())
    show_text(f"report: {out.resolve()}")


# --------------------------------------------------------------------------- keeping


@app.command()
def verify(
    studies: Annotated[
        list[str] | None, typer.Argument(metavar="[STUDY ...]", show_default=False)
    ] = None,
    store: StoreOption = None,
    adopt: Annotated[
        bool,
        typer.Option("--adopt", help="Rerun a few stale cells and keep all if they agree."),
    ] = False,
) -> None:
    """Check every file of the store; after an upgrade, adopt results that still agree.

    Exit code 3 when anything is wrong.
    """
    from provingground import api, inspection, upkeep

    kept = api.store_at(store)
    if not kept.exists():
        raise InputError(f"there is no store at {kept.path}")
    problems = [*map(str, inspection.foreign(kept)), *map(str, inspection.damaged_notes(kept))]
    for name in studies or inspection.studies(kept):
        try:
            owner = api.study(name)
        except InputError:
            if studies:
                raise
            chunks = [len(chunk.cells) for chunk in kept.chunks(name)]
            kept.set_aside()
            show_text(f"{name}: {len(chunks)} files, {sum(chunks)} cells, of a study not known")
            continue
        state = upkeep.verify(owner, kept, adopt=adopt)
        problems += state.problems
        show_text(
            f"{name}: {state.chunks} files, {state.cells} cells, {state.stale} stale"
            + (f", {state.adopted} adopted, {state.refused} differ" if adopt else "")
        )
        for remark in state.remarks:
            show_text(remark)
    if left := inspection.leftovers(kept):
        show_text(f"{left} files of processes that are no more; the next run removes them")
    for problem in problems:
        say(f"proving: {problem}")
    if problems or kept.said:
        raise typer.Exit(3)


@app.command()
def upgrade(store: StoreOption = None) -> None:
    """Make a store of version 0.1.0, every file of which is sound, one of this version."""
    from provingground import api, inspection
    from provingground.store import OLD_FOLDERS

    kept = api.store_at(store)
    found = inspection.upgrade(kept)
    for one in found:
        say(f"proving: {one}")
    if found:
        raise RunError(
            f"{len(found)} files of {kept.path} are not of a store, or damaged; nothing was "
            "changed. Move them away and try again."
        )
    show_text(f"{kept.path} is a store of this version")
    if old := [name for name in OLD_FOLDERS if (kept.path / name).is_dir()]:
        show_text(f"not used any more, and may be deleted by hand: {', '.join(old)}")


@app.command()
def diff(
    a: Annotated[
        Path,
        typer.Argument(help="A Dataset (.nc), a record (.json), or a folder of records."),
    ],
    b: Annotated[Path, typer.Argument(help="Another of the same kind.")],
    every: Annotated[
        bool, typer.Option("--all", help="List everything that differs in the claims.")
    ] = False,
) -> None:
    """Compare two results: verdicts that changed, numbers that moved, and a count of the rest.

    Exit code 1 when a verdict changed or a claim of the first is missing from the second.
    """
    found = compare.difference(a, b, every)
    show_text("\n".join(found.lines))
    if found.changed:
        raise typer.Exit(1)


@app.command()
def bench(
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="Published and 16 times larger sizes, or small ones."),
    ] = False,
    size: Annotated[
        str | None,
        typer.Option(help="With --full: only `full` or only `large`.", show_default=False),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="One of the workloads W1 to W5. Repeatable.", show_default=False),
    ] = None,
    repetitions: Annotated[int, typer.Option(help="Times each side runs, in turns.")] = 3,
    markdown: Annotated[bool, typer.Option("--markdown", help="Tables for a document.")] = False,
    out: Annotated[
        Path | None, typer.Option("--json", help="Write the numbers.", show_default=False)
    ] = None,
) -> None:
    """Time the engine against what a user would write instead, side by side.

    The peers are in PyTorch; without it the engine is timed alone.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / "benchmarks" / "run.py").exists():
        raise InputError("the benchmarks come with the sources, not with the installed package")
    outputs.check(out)
    sys.path.insert(0, str(root))
    from benchmarks import run

    options = ["--full" if full else "--quick", "--repetitions", str(repetitions)]
    options += ["--size", size] if size else []
    options += ["--only", *only] if only else []
    options += ["--markdown"] if markdown else []
    options += ["--json", str(out)] if out else []
    raise typer.Exit(run.main(options))


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the study, in letters, digits and _.")],
    folder: Annotated[Path, typer.Option(help="Where to put it.")] = Path("."),
) -> None:
    """Start a study of your own from the skeleton."""
    from provingground import upkeep

    path = upkeep.scaffold(name, folder)
    show_text(
        f"made {path}\n"
        f"try:  proving --study-path {path} check {name}\n"
        f"or install it (pip install {path.parent.resolve()}) and its entry point is found"
    )


@app.command()
def fork(
    study: Annotated[str, typer.Argument(help="The study to copy.")],
    name: Annotated[str, typer.Argument(help="Name of the copy, in letters, digits and _.")],
    folder: Annotated[Path, typer.Option(help="Where to put it.")] = Path("."),
) -> None:
    """Copy a study, with its tests, into a package of your own, to change it."""
    from provingground.fork import fork as make

    package, tests = make(study, name, folder)
    proving = f"proving --study-path {package}"
    tested = (
        f"test:    python -m pytest {tests}"
        if tests
        else f"without tests: none of {study} are beside its sources here"
    )
    show_text(
        f"made {package}, a copy of {study}\n{tested}\n"
        f"before:  {proving} check {name} --headline --save before.json\n"
        f"change:  a line of {package / 'model.py'}\n"
        f"after:   {proving} check {name} --headline --save after.json\n"
        "compare: proving diff before.json after.json"
    )


# --------------------------------------------------------------------------- helpers


def _job(
    target: str,
    scale: str,
    set_: list[str] | None,
    seeds: int | None,
    lanes: int | None,
    store: Any,
    yes: bool,
    trace: bool = True,
) -> Any:
    from provingground import api

    return _planned(*api.resolve(target), scale, set_, seeds, lanes, store, yes, trace)


def _planned(
    owner: "Study",
    experiment: "Experiment",
    scale: str,
    set_: list[str] | None,
    seeds: int | None,
    lanes: int | None,
    store: Any,
    yes: bool,
    trace: bool = True,
) -> Any:
    """The sweep of an experiment with what `--set` says."""
    from provingground import api, grid

    declared = grid.declared(owner, experiment, scale)  # pyright: ignore[reportArgumentType]
    return api.job(
        owner,
        experiment.name,
        scale=scale,  # pyright: ignore[reportArgumentType]
        seeds=seeds,
        lanes=lanes,
        store=store,
        yes=yes,
        trace=trace,
        settings=grid.parse_settings(set_ or [], *declared, yes=yes),
    )


def _must_go_together(count: int | None, scheduler: str | None, dashboard: bool) -> None:
    """Refuses options of workers that say nothing, or two things."""
    if count is not None and scheduler is not None:
        raise InputError("--workers starts a cluster and --scheduler names one: give one of them")
    if dashboard and count is None:
        raise InputError("--dashboard is that of the workers that --workers starts: give --workers")


@contextmanager
def _workers(count: int | None, scheduler: str | None, dashboard: bool) -> Iterator[Any]:
    """The executor that the options ask for; None for threads of this process."""
    if count is None and scheduler is None:
        yield None
        return
    from provingground import cluster

    if scheduler is not None:
        with cluster.connected(scheduler) as executor:
            yield executor
    else:
        with cluster.local(count or 0, dashboard=dashboard) as executor:
            if dashboard:
                say(f"dashboard: {cluster.dashboard(executor)}")
            yield executor


def _show_verdicts(verdicts: "list[Verdict]") -> None:
    marks = {"holds": "✓ ", "fails": "✗ ", "unknown": "? "}
    rows: list[tuple[str, ...]] = []
    group = ""
    for v in verdicts:
        if group != (group := f"{v.study}/{v.experiment}"):
            rows.append((f"{group}:",))
        rows.append(
            (
                f"  {v.claim}",
                str(v.estimate),
                compare.bound(*v.within),
                any_letter(marks[v.verdict]) + v.verdict,
                "SURPRISE" if v.surprise else "as expected" if v.expected == "fails" else "",
                f"{v.says}. {v.note}" if v.note else v.says,
            )
        )
    show_table("claim", "measured", "bound", "verdict", "", "says", rows=rows, edge=False)


def _number(value: Any, digits: int = 6) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _stop(number: int, frame: Any) -> None:
    stop(Terminated if number == signal.SIGTERM else KeyboardInterrupt)


def main() -> None:
    """The entry point: exit code 2 for bad input, 3 for a failed run (1 is a check's verdict)."""
    # What imports make stays; looking for garbage in it takes a third of a short command's time.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored
        signal.signal(signal.SIGINT, _stop)
    prepare()
    try:
        code = app(standalone_mode=False) or 0
        flush()
    except _Misuse as error:
        code = _misused(error)
    except (InputError, RunError) as error:
        say(f"proving: {error}")
        code = 2 if isinstance(error, InputError) else 3
    except BrokenPipeError:
        code = 0
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as error:
        _tell_of(error)
        code = 3
    if code in (130, 143):
        # Interrupted: threads may be deep in a training, which nothing can break off but the end.
        with contextlib.suppress(OSError, RunError):
            flush()
        os._exit(code)
    sys.exit(code)


_Misuse: Any = typer.BadParameter.__base__  # of whichever click typer comes with


def _misused(error: Any) -> int:
    """Tells of a command line that cannot be read."""
    told = io.StringIO()
    error.show(file=told)
    say(told.getvalue().rstrip("\n"))
    return error.exit_code


def _tell_of(error: Exception) -> None:
    """Tells of an error that was not foreseen: what, and where."""
    if os.environ.get("PROVING_TRACEBACK"):
        say("".join(traceback.format_exception(error)))
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    say(
        f"proving: {type(error).__name__}: {error}{place}. What was finished is stored; "
        "PROVING_TRACEBACK=1 shows where it came from"
    )


if __name__ == "__main__":
    main()
