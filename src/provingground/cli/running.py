"""Commands that train: run, check."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from provingground import outputs
from provingground.cli.base import app
from provingground.cli.options import (
    DashboardOption,
    DrawOption,
    HeadlineOption,
    LanesOption,
    ScaleOption,
    SchedulerOption,
    SeedsOption,
    SetOption,
    StoreOption,
    Target,
    Targets,
    WorkersOption,
    YesOption,
    executor_of,
    job_of,
    must_go_together,
)
from provingground.cli.verdicts import show_skipped, show_verdicts, trouble
from provingground.errors import InputError
from provingground.terminal import duration, say, show_text
from provingground.words import cost, count


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
    design: Annotated[
        int | None,
        typer.Option(
            help="So many settings drawn from the domain of its laws, in place of its grid.",
            show_default=False,
        ),
    ] = None,
    draw: DrawOption = 0,
    yes: YesOption = False,
) -> None:
    """Run what is missing of an experiment."""
    from provingground import api, planning

    outputs.check(out, (".nc",))
    must_go_together(workers, scheduler, dashboard)
    owner, which = planning.resolve(target)
    job = job_of(owner, which, scale, set_, seeds, lanes, store, yes, design=design, draw=draw)
    say(cost(job.forecast(), job.sweep.trainings.refine is not None))
    start = time.perf_counter()
    with executor_of(workers, scheduler, dashboard) as executor:
        ds = api.finish(job, executor=executor)
    say(f"done in {duration(time.perf_counter() - start)}; store: {job.store.path}")
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
    as_md: Annotated[bool, typer.Option("--md", help="Print a table in Markdown.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all fields as CSV.")] = False,
    as_latex: Annotated[
        bool, typer.Option("--latex", help="Print a table in LaTeX (booktabs).")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Write the verdicts too: .json (with provenance), .md, .csv or .tex.",
            show_default=False,
        ),
    ] = None,
    off_slice: Annotated[
        int | None,
        typer.Option(
            help="Judge them at so many settings drawn from their domain, on fresh seeds.",
            show_default=False,
        ),
    ] = None,
    draw: DrawOption = 0,
) -> None:
    """Run what is missing and judge the claims.

    Exit code 0 when nothing surprises, 1 on a surprise, an undecided headline claim, or a claim
    that cannot be measured at its own settings. Experiments whose data set is not here are skipped,
    and named; exit code 3 when no other is left.
    """
    from provingground import api, exports, parsing, planning
    from provingground.atlas.records import record_text, verdict_record
    from provingground.engine import together
    from provingground.machine import here
    from provingground.sources import source_of
    from provingground.verdict import Verdicts

    asked = {"--json": as_json, "--md": as_md, "--csv": as_csv, "--latex": as_latex}
    formats = [name for name, wanted in asked.items() if wanted]
    if len(formats) > 1:
        raise InputError(f"{' and '.join(formats)} go to the same place: give one of them")
    planning.enough_seeds(parsing.parse_seeds(seeds, planning.LEAST_SEEDS))
    outputs.check(save, (".json", *exports.TABLES))
    must_go_together(workers, scheduler, dashboard)
    chosen = planning.chosen(targets or [], scale=scale, headline=headline)  # pyright: ignore
    if off_slice is not None:
        chosen = planning.with_domain(chosen)
    kept = planning.store_at(store)
    start = time.perf_counter()
    jobs = [
        job_of(*each, scale, set_, seeds, lanes, kept, False, off_slice=off_slice, draw=draw)
        for each in chosen
    ]
    jobs, skipped = planning.with_data(jobs)
    whole = bool(save and save.suffix == ".json")
    sweeps = [job.sweep for job in jobs if whole]  # whose sources are read before they may change
    sources = {f"{s.study.name}/{s.experiment.name}": source_of(s) for s in sweeps}
    forecast = together([job.forecast() for job in jobs])
    if jobs:
        say(f"{count(len(jobs), 'experiment')}, {cost(forecast)}")
    verdicts, provenance = [], {}
    with executor_of(workers, scheduler, dashboard) as executor:
        for job, ds in zip(jobs, api.finish_all(jobs, executor=executor), strict=True):
            verdicts += api.verdicts(job.study, job.sweep.experiment, ds)
            provenance[f"{job.study.name}/{job.sweep.experiment.name}"] = dict(ds.attrs)
    record = verdict_record(
        Verdicts(verdicts, skipped),
        scale=scale,
        seconds=round(time.perf_counter() - start, 3),
        device=here().device,
    )
    if save is not None:
        told = {at: about | {"source": sources.get(at)} for at, about in provenance.items()}
        table = exports.TABLES.get(save.suffix)
        outputs.write(
            save,
            table(verdicts).encode() if table else record_text(record | {"provenance": told}),
        )
        say(f"wrote {save}")
    if as_json:
        show_text(json.dumps(record))
    elif formats:
        ending = formats[0].replace("--latex", "--tex").replace("--", ".")
        show_text(exports.TABLES[ending](verdicts).rstrip("\n"))
    elif jobs:
        show_verdicts(verdicts)
        say(f"{count(len(verdicts), 'claim')} in {duration(record['seconds'])}")
    if skipped:
        show_skipped(skipped)
    if troubled := [v for v in verdicts if v.trouble]:
        say(trouble(troubled))
    if troubled or (verdicts and any(each.headline for each in skipped)):
        raise typer.Exit(1)
    if skipped and not verdicts:
        raise typer.Exit(3)
