"""The report: verdicts, figures and provenance as one HTML file that needs nothing else."""

import base64
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import xarray as xr

from provingground import __version__, plot
from provingground.atlas.facts import bound, duration, gauge, measured, number
from provingground.atlas.pictures import few_colours, panels
from provingground.atlas.templating import PAGES
from provingground.study import Experiment, Study
from provingground.verdict import Verdict

PIXELS_PER_INCH = 115  # on the page: figures' 8.5 pt become about as large as the text

__all__ = ["Entry", "Picture", "bound", "draw", "gauge", "measured", "number", "panels", "report"]


class Entry(NamedTuple):
    """An experiment of a report: its results, and the verdicts on its claims."""

    study: Study
    experiment: Experiment
    ds: xr.Dataset
    verdicts: list[Verdict]

    @property
    def anchor(self) -> str:
        return f"{self.study.name}-{self.experiment.name}"

    @property
    def headline(self) -> bool:
        return self.experiment.name == self.study.experiments[0].name


class Picture(NamedTuple):
    """A drawn figure: PNG in base64, its size on the page, and its panels in words and LaTeX."""

    png: str
    width: int
    height: int
    panels: str


def report(
    entries: Sequence[Entry],
    *,
    scale: str,
    seconds: float | None = None,
    skipped: Sequence[str] = (),
) -> str:
    """One self-contained HTML page about some experiments, grouped by study.

    `seconds` is how long the run took, if it is to be told; `skipped` the experiments that could
    not be judged, with the reason.
    """
    chapters: dict[str, list[Entry]] = {}
    for entry in entries:
        chapters.setdefault(entry.study.name, []).append(entry)
    verdicts = [v for entry in entries for v in entry.verdicts]

    def told(name: str) -> list[str]:
        texts = [str(e.ds.attrs.get(name, "")).split(", ") for e in entries]
        return sorted({text for each in texts for text in each} - {"", "?"})

    run = {
        "scale": scale,
        "device": ", ".join(told("device")),
        "run time": "" if seconds is None else duration(seconds),
        "version": __version__,
        "commit": ", ".join(re.sub(r"^([0-9a-f]{12})[0-9a-f]+$", r"\1", c) for c in told("commit")),
        "date": datetime.now(UTC).date().isoformat(),
    }
    return PAGES.get_template("report.html").render(
        draw=draw,
        chapters=list(chapters.values()),
        verdicts=verdicts,
        troubles=[v for v in verdicts if v.trouble],
        skipped=skipped,
        run={k: v for k, v in run.items() if v},
    )


def draw(entry: Entry) -> Picture | str:
    """The figure of an experiment, or what went wrong in drawing it."""
    try:
        fig = entry.experiment.figure(entry.ds)
        png = plot.image(fig, ".png")
        width, height = (round(PIXELS_PER_INCH * inches) for inches in fig.get_size_inches())
        return Picture(base64.b64encode(few_colours(png)).decode(), width, height, panels(fig))
    except Exception as error:  # a report of many figures must survive any one of them
        return f"{type(error).__name__}: {error}"
