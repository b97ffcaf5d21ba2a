"""Arguments and options that several commands share, and the sweeps that they name."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from provingground.errors import InputError
from provingground.terminal import say

if TYPE_CHECKING:
    from provingground.engine import Job
    from provingground.study import Experiment, Study

Target = Annotated[str, typer.Argument(metavar="STUDY/EXPERIMENT", show_default=False)]
Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="STUDY[/EXPERIMENT]", help="Default: all.", show_default=False),
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
SeedsOption = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Number of seeds, or which: FIRST:END, or FIRST: for as many as declared.",
        show_default=False,
    ),
]
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
DrawOption = Annotated[int, typer.Option(help="Seed of the drawing.", show_default=False)]
DashboardOption = Annotated[
    bool, typer.Option("--dashboard", help="With --workers: Dask's dashboard on port 8787.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Allow more than a million cells.")]


def job_of(
    owner: "Study",
    experiment: "Experiment",
    scale: str,
    set_: list[str] | None,
    seeds: str | None,
    lanes: int | None,
    store: Any,
    yes: bool,
    trace: bool = True,
    *,
    design: int | None = None,
    off_slice: int | None = None,
    draw: int = 0,
) -> "Job":
    """The sweep of an experiment with what `--set` says."""
    from provingground import grid, parsing, planning

    declared = grid.declared(owner, experiment, scale)  # pyright: ignore[reportArgumentType]
    return planning.job(
        owner,
        experiment.name,
        scale=scale,  # pyright: ignore[reportArgumentType]
        seeds=parsing.parse_seeds(seeds, experiment.trainings.seeds_at(scale)),  # pyright: ignore
        lanes=lanes,
        store=store,
        yes=yes,
        trace=trace,
        settings=parsing.parse_settings(set_ or [], *declared, yes=yes),
        design=design,
        off_slice=off_slice,
        draw=draw,
    )


def must_go_together(count: int | None, scheduler: str | None, dashboard: bool) -> None:
    """Refuses options of workers that say nothing, or two things."""
    if count is not None and scheduler is not None:
        raise InputError("--workers starts a cluster and --scheduler names one: give one of them")
    if count is not None and count < 1:
        raise InputError(f"workers = {count} is not allowed: whole numbers from 1")
    if dashboard and count is None:
        raise InputError("--dashboard is that of the workers that --workers starts: give --workers")


@contextmanager
def executor_of(count: int | None, scheduler: str | None, dashboard: bool) -> Iterator[Any]:
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
