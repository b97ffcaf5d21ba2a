"""Commands that show stored results: figure, report."""

from pathlib import Path
from typing import Annotated

import typer

from provingground import outputs
from provingground.cli.base import app
from provingground.cli.options import (
    HeadlineOption,
    ScaleOption,
    SeedsOption,
    SetOption,
    StoreOption,
    Target,
    Targets,
    job_of,
)
from provingground.errors import DataMissing, RunError
from provingground.terminal import say, show_text


@app.command()
def figure(
    target: Target,
    out: Annotated[Path, typer.Option(help="A .png, .svg or .pdf file.", show_default=False)],
    scale: ScaleOption = "quick",
    set_: SetOption = None,
    seeds: SeedsOption = None,
    store: StoreOption = None,
    style: Annotated[str, typer.Option(help="screen, or paper (column width).")] = "screen",
) -> None:
    """Draw the figure of an experiment from stored results."""
    from provingground import api, planning, plot

    outputs.check(out, (".png", ".svg", ".pdf"))
    with plot.style(style):
        job = job_of(
            *planning.resolve(target), scale, set_, seeds, None, store, yes=True, trace=False
        )
        drawn = api.drawn(job.sweep.experiment, api.stored(job))
        outputs.write(out, plot.image(drawn, out.suffix))
    say(f"wrote {out}")


@app.command(short_help="Write all verdicts and figures as one HTML file.")
def report(
    targets: Targets = None,
    scale: ScaleOption = "quick",
    headline: HeadlineOption = False,
    store: StoreOption = None,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
) -> None:
    """Write one HTML file with all verdicts and figures, from stored results."""
    from provingground import api, planning
    from provingground.atlas.render import Entry
    from provingground.atlas.render import report as render
    from provingground.errors import StoreError

    outputs.check(out)
    kept = planning.store_at(store)
    entries, left_out, skipped = [], [], []
    for owner, experiment in planning.chosen(targets or [], scale=scale, headline=headline):  # pyright: ignore
        try:
            job = job_of(owner, experiment, scale, None, None, None, kept, False, trace=False)
            ds = api.stored(job)
        except StoreError:
            raise
        except DataMissing as missing:
            skipped.append(f"{owner.name}/{experiment.name}: {missing}")
            continue
        except RunError:
            left_out.append(f"{owner.name}/{experiment.name}")
            continue
        if ds.attrs["missing"]:
            left_out.append(f"{owner.name}/{experiment.name}")
            continue
        entries.append(Entry(owner, experiment, ds, api.verdicts(owner, experiment, ds)))
    if left_out:
        say(f"not in the report, since not (wholly) stored: {', '.join(left_out)}")
    for told in skipped:
        say(f"not in the report: {told}")
    if not entries:
        raise RunError("nothing to report: run `proving check` first")
    outputs.write(out, render(entries, scale=scale, skipped=skipped).encode())
    show_text(f"report: {out.resolve()}")
