"""The route table of the atlas: every path of the site, and what stands there.

The site is frozen by asking for every path, the server answers by asking for one. Links are
relative, so that pages work below any address and from a folder.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from provingground import __version__, api
from provingground.atlas import papers, payload, tables
from provingground.atlas.overviews import Facts
from provingground.atlas.shelf import Entry, Shelf, shelf
from provingground.atlas.strips import strip
from provingground.atlas.templating import rendered
from provingground.store import Store
from provingground.study import Scale, Study

HTML, SCRIPT, CSS = "text/html; charset=utf-8", "text/javascript; charset=utf-8", "text/css"
MOST_SECONDS = 2.0  # that a server spends on the rivals of an experiment
PIXELS_PER_INCH = 115
SCRIPTS = ("core", "chart", "data", "figure", "cell", "study", "claims", "strips")
STATIC = tuple(f"{name}.js" for name in SCRIPTS)


class Page(NamedTuple):
    """What stands at a path."""

    body: bytes
    media: str


class Atlas:
    """All pages about some studies at one scale, from what a store has of them.

    `live` pages belong to a server that trains: they offer it. `records` is the folder of the
    records at paper scale (default: that of the sources, if they are there).
    """

    def __init__(
        self,
        store: Store | str | Path | None = None,
        *,
        scale: Scale = "quick",
        studies: Sequence[str | Study] | None = None,
        live: bool = False,
        records: Path | None = None,
    ) -> None:
        self.shelf: Shelf = shelf(store, scale, studies)
        self.live = live
        found = papers.records(records)
        self.records = {name: found[name] for name in self.shelf.studies if name in found}
        self._changes: dict[str, int] = {}

    # ------------------------------------------------------------------------- routes

    def paths(self) -> Iterator[str]:
        """Every path, in an order in which an experiment is read once, and judged before the pages
        that are about several."""
        yield from (f"static/{name}" for name in ("atlas.css", *self.scripts))
        for study in self.shelf.studies:
            for e in self.shelf.experiments(study):
                yield from (f"{study}/{e.name}/{name}" for name in self._files(study, e.name))
            yield f"{study}/index.html"
            yield f"{study}/coverage.html"
        yield from ("index.html", "claims.html", "findings.html")

    @property
    def scripts(self) -> tuple[str, ...]:
        return (*STATIC, "live.js") if self.live else STATIC

    def _files(self, study: str, experiment: str) -> Iterator[str]:
        entry = self.shelf.entry(study, experiment)
        yield "index.html"
        if entry.ds is None:
            return
        yield from ("cell.html", "data.js", "theory.js", "rivals.js", "data.csv", "data.nc")
        yield from (f"cells/{n}.js" for n in range(payload.chunks(entry.ds)))
        if not entry.figure.trouble:
            yield from ("figure.svg", "figure.png")

    def page(self, path: str) -> Page:
        """What stands at a path; a KeyError for one that is not of the atlas."""
        tops: dict[str, Callable[[], bytes]] = {
            name: partial(self._overview, name)
            for name in ("index.html", "claims.html", "findings.html")
        }
        parts = path.split("/")
        if path in tops:
            return Page(tops[path](), HTML)
        if parts[0] == "static" and len(parts) == 2:
            return self._static(parts[1])
        if parts[0] not in self.shelf.studies:
            raise KeyError(path)
        study = self.shelf.studies[parts[0]]
        if parts[1:] == ["index.html"]:
            return Page(self._study(study), HTML)
        if parts[1:] == ["coverage.html"]:
            return Page(self._coverage(study), HTML)
        if len(parts) < 3 or parts[1] not in {e.name for e in self.shelf.experiments(study.name)}:
            raise KeyError(path)
        return self._of_experiment(self.shelf.entry(*parts[:2]), "/".join(parts[2:]))

    def forget(self, study: str, experiment: str) -> None:
        """Reads an experiment again when it is asked for next: something of it was stored."""
        self._changes[study] = self._changes.get(study, 0) + 1
        self.shelf.forget(study, experiment)

    def warm(self) -> None:
        """Judges all that is stored."""
        for _ in self.shelf.warm():
            pass

    def stamp(self, path: str) -> str:
        """A text that changes when the page at a path may have."""
        study = path.partition("/")[0]
        if study == "static":
            return __version__
        if study in self.shelf.studies:
            folder = self.shelf.store.path / study
            seen = folder.stat().st_mtime_ns if folder.exists() else 0
            return f"{self._changes.get(study, 0)}-{seen}"
        return f"{sum(self._changes.values())}-{len(self.shelf.judged())}"

    # -------------------------------------------------------------------------- pages

    def _rendered(self, template: str, root: str, **given: Any) -> bytes:
        common = {
            "root": root,
            "live": self.live,
            "scale": self.shelf.scale,
            "version": __version__,
            "studies": self.shelf.studies,
        }
        return rendered(template, **common, **given)

    def _overview(self, name: str) -> bytes:
        facts = Facts(self.shelf, self.records)
        given = {
            "index.html": facts.front,
            "claims.html": facts.claims,
            "findings.html": facts.findings,
        }
        return self._rendered(name, "", **given[name]())

    def _study(self, study: Study) -> bytes:
        experiments = self.shelf.experiments(study.name)
        judged = self.shelf.judged()
        entries = [(e, judged.get(f"{study.name}/{e.name}")) for e in experiments]
        try:
            prediction = api.theory(study)
        except Exception:  # a theory that says nothing leaves the rest of the page
            prediction = None
        config = study.simulator()[1].config
        return self._rendered(
            "study.html",
            "../",
            study=study,
            page=papers.page(study, "README.md", [e.name for e, verdicts in entries if verdicts]),
            functions=papers.functions(study),
            prediction=prediction,
            parameters=list(config.pars.values()),
            entries=entries,
            recorded=self.records.get(study.name, ()),
            columns=papers.columns,
            paper_only=[e for e in study.experiments if e not in experiments],
        )

    def _coverage(self, study: Study) -> bytes:
        page = papers.page(study, "coverage.md", ())
        return self._rendered("coverage.html", "../", study=study, page=page)

    def _of_experiment(self, entry: Entry, name: str) -> Page:
        where = f"{entry.name}/{name}"
        if name == "index.html":
            return Page(self._experiment(entry), HTML)
        if entry.ds is None:
            raise KeyError(where)
        if name == "cell.html":
            about = dict(study=entry.study, experiment=entry.experiment)
            return Page(self._rendered("cell.html", "../../", **about), HTML)
        if name == "data.js":
            made = payload.experiment(entry, entry.theory)
            return Page(payload.script("atlas.add", made), SCRIPT)
        if name == "theory.js":
            told = None if entry.theory is None else payload.theory(entry, entry.theory)
            return Page(payload.script("atlas.addTheory", told), SCRIPT)
        if name == "rivals.js":
            return Page(payload.script("atlas.addRivals", self._rivals(entry)), SCRIPT)
        if name == "data.csv":
            return Page(tables.csv(entry.ds).encode(), "text/csv; charset=utf-8")
        if name == "data.nc":
            return Page(bytes(entry.ds.to_netcdf(engine="scipy")), "application/x-netcdf")
        if name == "figure.svg" and not entry.figure.trouble:
            return Page(entry.figure.svg, "image/svg+xml")
        if name == "figure.png" and not entry.figure.trouble:
            return Page(entry.figure.png, "image/png")
        folder, _, number = name.removesuffix(".js").partition("/")
        whole = folder == "cells" and name.endswith(".js") and number.isascii()
        if not whole or not number.isdigit() or str(int(number[:9])) != number:
            raise KeyError(where)
        if int(number) >= payload.chunks(entry.ds):
            raise KeyError(where)
        return Page(payload.script("atlas.addCells", payload.cells(entry.ds, int(number))), SCRIPT)

    def _rivals(self, entry: Entry) -> list[dict[str, Any]]:
        """The strips of claims with what else might be true; a server answers in short time."""
        until = time.monotonic() + MOST_SECONDS if self.live else math.inf
        judged = {v.claim: v for v in entry.verdicts if not v.at}
        found = []
        for claim in entry.experiment.claims_at(self.shelf.scale):
            if (verdict := judged.get(claim.name)) and (claim.rivals or claim.law):
                drawn = strip(claim, verdict, entry.ds, until)
                if drawn is not None:
                    marks = [mark.told(claim.within) for mark in drawn.marks]
                    found.append({"claim": claim.name, **drawn._asdict(), "marks": marks})
        return found

    def _experiment(self, entry: Entry) -> bytes:
        claims = entry.experiment.claims_at(self.shelf.scale)
        judged = {v.claim: v for v in entry.verdicts if not v.at}
        rows = []
        for claim in claims:
            verdict = judged.get(claim.name)
            drawn = strip(claim, verdict) if verdict else None
            rows.append((claim, verdict, drawn, bool(claim.rivals or claim.law)))
        figure = entry.__dict__.get("figure") if self.live else entry.figure  # drawing takes long
        names = [e.name for e in self.shelf.experiments(entry.study.name)]
        at = names.index(entry.experiment.name)
        scale = "" if self.shelf.scale == "quick" else f', scale="{self.shelf.scale}"'
        code = (
            "import provingground as pg\n"
            f'ds = pg.run("{entry.name}"{scale})\n'
            f'pg.figure(ds).savefig("{entry.experiment.name}.png")'
        )
        return self._rendered(
            "experiment.html",
            "../../",
            entry=entry,
            study=entry.study,
            experiment=entry.experiment,
            rows=rows,
            code=code,
            before=names[at - 1] if at else None,
            after=names[at + 1] if at + 1 < len(names) else None,
            figure=figure,
            pixels=[round(PIXELS_PER_INCH * inches) for inches in figure.size] if figure else [],
            recorded={
                v.claim: v
                for v in self.records.get(entry.study.name, ())
                if v.experiment == entry.experiment.name
            },
        )

    def _static(self, name: str) -> Page:
        root = files("provingground.atlas")
        if name == "atlas.css":
            sheets = ["templates/report.css", "static/atlas.css"]
            sheets += ["static/live.css"] if root.joinpath("static/live.css").is_file() else []
            return Page(b"\n".join(root.joinpath(s).read_bytes() for s in sheets), CSS)
        if name not in self.scripts:
            raise KeyError(f"static/{name}")
        return Page(root.joinpath("static", name).read_bytes(), SCRIPT)
