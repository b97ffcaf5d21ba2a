"""The command line: a thin layer over the Python interface.

Nothing slow is imported before a command needs it, so that `proving --help` answers at once.
"""

import atexit
import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from provingground import __version__
from provingground.errors import InputError, RunError, Terminated, stop

if TYPE_CHECKING:
    from provingground.study import Verdict


class Commands(typer.core.TyperGroup):
    """The commands; an interrupt says that nothing finished is lost."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as asked:
            _say("proving: interrupted; finished cells are stored, run again to go on")
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
        typer.echo(f"proving {__version__}")
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


# --------------------------------------------------------------------------- looking


@app.command("list")
def list_studies() -> None:
    """List the studies with their experiments."""
    from rich.table import Table

    from provingground import api

    table = Table("study", "paper", "experiments", box=None, pad_edge=False)
    for study in api.studies().values():
        table.add_row(study.name, study.title, " ".join(e.name for e in study.experiments))
    _console().print(table)


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
    from rich.table import Table

    from provingground import api
    from provingground.study import pars

    study, out = api.study(name), _console()
    out.print(f"{study.name}: {study.title}\n{study.cite}\n")
    table = Table("experiment", "cells (quick)", "cells (paper)", "claims", "says", box=None)
    for e in study.experiments:
        cells = [
            "-"
            if s == "quick" and e.paper_only
            else str(api.grid.plan(study, e, s, yes=True).cells)
            for s in api.SCALES
        ]
        table.add_row(e.name, *cells, str(len(e.claims)), e.says)
    out.print(table)
    for which, simulator in study.simulators.items():
        out.print(f"\nsimulator {which}  {simulator.says}  ({simulator.precision})")
        table = Table("parameter", "symbol", "default", "takes", "is", box=None)
        for p in pars(simulator.config).values():
            default = f"{p.default:g}" if isinstance(p.default, float) else str(p.default)
            table.add_row(p.name, p.symbol, default, p.allowed, p.says)
        out.print(table)


def _show_experiment(name: str, experiment: str, scale: str, store: Path | None) -> None:
    from rich.table import Table

    from provingground import api

    job = api.job(name, experiment, scale=scale, store=store)  # pyright: ignore[reportArgumentType]
    if job.sweep.experiment.refine is not None:
        api.stored(job)  # as far as its bisection has come
    sweep, out = job.sweep, _console()
    out.print(f"{sweep.study.name}/{sweep.experiment.name}: {sweep.experiment.says}\n")
    table = Table("axis", "values", box=None)
    for a in sweep.axes:
        labels = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in a.labels]
        table.add_row(a.name, ", ".join(labels))
    table.add_row("seed", f"{len(sweep.seeds)} seeds")
    for fixed, value in sweep.fixed.items():
        table.add_row(
            f"{fixed} (fixed)", f"{value:.6g}" if isinstance(value, float) else str(value)
        )
    out.print(table)
    if job.forecast().seconds is None:
        _say("timing one call of each program ...")
    forecast = job.forecast(measure=True)
    job.store.tell()
    out.print(
        f"\n{forecast.cells} cells, {forecast.stored} stored; {forecast.programs} programs to "
        f"compile, {forecast.lanes} lanes at once on {job.where}; about "
        f"{_duration(forecast.seconds)} and {forecast.memory / 2**20:.0f} MiB for the rest"
    )
    if forecast.stored < forecast.cells:
        table = Table("claim", "source", "bound", "says", box=None)
        for c in sweep.experiment.claims_at(sweep.scale):
            table.add_row(c.name, c.source, _bound(c.within), c.says)
        out.print("\n", table)
        return
    verdicts = api.verdicts(sweep.study, sweep.experiment, api.stored(job))
    _print_verdicts(verdicts)
    for v in (v for v in verdicts if v.verdict == "unknown"):
        need = v.seeds_needed
        out.print(f"{v.claim}: " + (f"about {need} seeds would decide it" if need else
                                     "more seeds alone would not decide it"))  # fmt: skip


@app.command()
def conditions(
    study: Annotated[str, typer.Argument(metavar="STUDY", show_default=False)],
    set_: SetOption = None,
) -> None:
    """Each condition of the theorem at a setting: both sides, margin, satisfied or not."""
    from rich.table import Table

    from provingground import api
    from provingground.grid import parse_values
    from provingground.study import pars

    owner = api.study(study)
    table = pars(owner.simulator()[1].config)
    settings = _settings(set_, table, parse_values)
    for name, value in settings.items():
        if isinstance(value, list):
            raise InputError(f"conditions takes one value for {name}, not {len(value)}")
    cfg = owner.simulator()[1].config(**settings)
    prediction = owner.theory(cfg)
    shown = Table("condition", "left", "", "right", "margin", "satisfied", "in words", box=None)
    for c in prediction.conditions:
        shown.add_row(c.name, f"{c.left:.4g}", c.relation, f"{c.right:.4g}", f"{c.margin:.3g}",
                      "yes" if c.satisfied else "no", c.says)  # fmt: skip
    out = _console()
    out.print(shown)
    out.print()
    for name, value in prediction.values.items():
        out.print(f"{name} = {value:.6g}")


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

    _can_write(out)
    job = _job(target, scale, set_, seeds, lanes, store, yes)
    forecast = job.forecast()
    left = forecast.cells - forecast.stored
    most = "at most " if job.sweep.experiment.refine else ""
    _say(
        f"{forecast.cells} cells, {forecast.stored} stored, {most}{left} to run in "
        f"{forecast.programs} "
        f"programs" + (f", about {_duration(forecast.seconds)}" if forecast.seconds else "")
    )
    start = time.perf_counter()
    with _workers(workers, scheduler, dashboard) as executor:
        ds = api.finish(job, executor=executor)
    _say(f"done in {_duration(time.perf_counter() - start)}; store: {job.store.path}")
    if ds.attrs["diverged"]:
        _say(f"{ds.attrs['diverged']} of {ds.attrs['cells']} cells diverged")
    if out is not None:
        ds.to_netcdf(out, engine="scipy")
        _say(f"wrote {out}")
    else:
        typer.echo(str(ds))


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
    from provingground.atlas.records import verdict_record
    from provingground.machine import here
    from provingground.store import Store

    api.enough_seeds(seeds)
    _can_write(save)
    chosen = api.chosen(targets or [], scale=scale, headline=headline)  # pyright: ignore
    kept = Store() if store is None else Store(store)
    start = time.perf_counter()
    verdicts, provenance = [], {}
    with _workers(workers, scheduler, dashboard) as executor:
        for owner, experiment in chosen:
            job = _job(f"{owner.name}/{experiment.name}", scale, set_, seeds, lanes, kept, False)
            ds = api.finish(job, executor=executor)
            verdicts += api.verdicts(owner, experiment, ds)
            provenance[f"{owner.name}/{experiment.name}"] = dict(ds.attrs)
    record = verdict_record(
        verdicts,
        scale=scale,
        seconds=round(time.perf_counter() - start, 3),
        device=here().device,
    )
    if save is not None:
        saved = record | {"provenance": provenance}
        save.write_text(json.dumps(saved, indent=1, default=str) + "\n")
    if as_json:
        typer.echo(json.dumps(record))
    else:
        _print_verdicts(verdicts)
        _say(f"{len(verdicts)} claims in {_duration(record['seconds'])}")
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
    from provingground.errors import unknown

    if out.suffix not in (kinds := (".png", ".svg", ".pdf")):
        raise unknown("image format", out.suffix, kinds)
    _can_write(out)
    job = _job(target, scale, set_, seeds, None, store, True, trace=False)
    ds = api.stored(job)
    if ds.attrs["missing"]:
        raise RunError(
            f"{ds.attrs['missing']} of {ds.attrs['cells']} cells are missing; "
            f"run `proving run {target}` with the same options first"
        )
    plot.save(job.sweep.experiment.figure(ds), out)
    _say(f"wrote {out}")


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
    from provingground.store import Store

    _can_write(out)
    kept = Store() if store is None else Store(store)
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
        _say(f"not in the report, since not (wholly) stored: {', '.join(left_out)}")
    if not entries:
        raise RunError("nothing to report: run `proving check` first")
    out.write_text(render(entries, scale=scale), encoding="utf-8")
    typer.echo(f"report: {out.resolve()}")


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
    from provingground.errors import printable
    from provingground.store import Store

    kept = Store() if store is None else Store(store)
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
            typer.echo(f"{name}: {len(chunks)} files, {sum(chunks)} cells, of a study not known")
            continue
        state = upkeep.verify(owner, kept, adopt=adopt)
        problems += state.problems
        typer.echo(
            f"{name}: {state.chunks} files, {state.cells} cells, {state.stale} stale"
            + (f", {state.adopted} adopted, {state.refused} differ" if adopt else "")
        )
        for remark in state.remarks:
            typer.echo(printable(remark))
    if left := inspection.leftovers(kept):
        typer.echo(f"{left} files of processes that are no more; the next run removes them")
    for problem in problems:
        _say(f"proving: {printable(problem)}")
    if problems or kept.said:
        raise typer.Exit(3)


@app.command()
def upgrade(store: StoreOption = None) -> None:
    """Make a store of version 0.1.0, every file of which is sound, one of this version."""
    from provingground import inspection
    from provingground.errors import printable
    from provingground.store import OLD_FOLDERS, Store

    kept = Store() if store is None else Store(store)
    found = inspection.upgrade(kept)
    for one in found:
        _say(f"proving: {printable(one)}")
    if found:
        raise RunError(
            f"{len(found)} files of {kept.path} are not of a store, or damaged; nothing was "
            "changed. Move them away and try again."
        )
    typer.echo(f"{kept.path} is a store of this version")
    if old := [name for name in OLD_FOLDERS if (kept.path / name).is_dir()]:
        typer.echo(f"not used any more, and may be deleted by hand: {', '.join(old)}")


@app.command()
def diff(
    a: Annotated[Path, typer.Argument(help="A Dataset (.nc) or a record of verdicts (.json).")],
    b: Annotated[Path, typer.Argument(help="Another of the same kind.")],
) -> None:
    """Compare two results: what changed in settings and numbers."""
    from provingground import upkeep

    lines = upkeep.difference(a, b)
    typer.echo("\n".join(lines) if lines else "no difference")


@app.command()
def bench(
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Paper sizes and torch.compile, or small sizes.")
    ] = False,
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
    _can_write(out)
    sys.path.insert(0, str(root))
    from benchmarks import run

    options = ["--full" if full else "--quick", "--repetitions", str(repetitions)]
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
    typer.echo(
        f"made {path}\n"
        f"try:  proving --study-path {path} check {name}\n"
        f"or install it (pip install {path.parent.resolve()}) and its entry point is found"
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
    from provingground.grid import parse_values

    plain = api.job(target, scale=scale, store=store, yes=True, trace=trace)  # pyright: ignore
    parse = partial(parse_values, yes=yes)
    settings = _settings(set_, plain.sweep.table, parse, plain.sweep.axes)
    return api.job(
        target,
        scale=scale,  # pyright: ignore[reportArgumentType]
        seeds=seeds,
        lanes=lanes,
        store=store,
        yes=yes,
        trace=trace,
        settings=settings,
    )


@contextmanager
def _workers(count: int | None, scheduler: str | None, dashboard: bool) -> Iterator[Any]:
    """The executor that the options ask for; None for threads of this process."""
    if count is not None and scheduler is not None:
        raise InputError("--workers starts a cluster and --scheduler names one: give one of them")
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
                _say(f"dashboard: {cluster.dashboard(executor)}")
            yield executor


def _settings(
    given: list[str] | None, table: Any, parse: Callable[..., Any], axes: Any = ()
) -> dict[str, Any]:
    """`--set name=values` as a dict of values; labels of cases are taken as they are."""
    from provingground.errors import unknown

    found: dict[str, Any] = {}
    cases = {a.name for a in axes if a.name not in table}
    for text in given or []:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals:
            raise InputError(f"--set {text} is not understood: write NAME=VALUES")
        if name in cases:
            found[name] = values.split(",")
        elif name not in table:
            raise unknown("parameter", name, (*table, *cases))
        else:
            found[name] = parse(table[name], values)
    return found


def _can_write(path: Path | None) -> None:
    """Refuses a file in a folder that does not exist, before any work."""
    if path is not None and not path.resolve().parent.is_dir():
        raise InputError(f"the folder of {path} does not exist")


def _print_verdicts(verdicts: "list[Verdict]") -> None:
    from rich.table import Table

    marks = {"holds": "✓ holds", "fails": "✗ fails", "unknown": "? unknown"}
    table = Table("claim", "measured", "bound", "verdict", "", "says", box=None, pad_edge=False)
    group = ""
    for v in verdicts:
        if group != (group := f"{v.study}/{v.experiment}"):
            table.add_row(f"{group}:")
        table.add_row(
            f"  {v.claim}",
            str(v.estimate),
            _bound(v.within),
            marks[v.verdict],
            "SURPRISE" if v.surprise else "as expected" if v.expected == "fails" else "",
            f"{v.says}. {v.note}" if v.note else v.says,
        )
    _console().print(table)


def _bound(within: tuple[float, float]) -> str:
    low, high = within
    if high == float("inf"):
        return f"> {low:g}"
    if low == -float("inf"):
        return f"< {high:g}"
    return f"{low:g} to {high:g}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _console() -> Any:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False, markup=False)


def _say(text: str) -> None:
    typer.echo(text, err=True)


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
    try:
        app()
        return
    except SystemExit as end:
        if end.code not in (130, 143):
            raise
        code = int(end.code)
    except InputError as error:
        _say(f"proving: {error}")
        sys.exit(2)
    except RunError as error:
        _say(f"proving: {error}")
        sys.exit(3)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception:
        traceback.print_exc()
        sys.exit(3)
    # Interrupted: threads may be deep in a training, which nothing can break off but the end.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
