"""What a store holds of the studies: Datasets and verdicts, read when they are asked for.

Nothing is trained here. What is not (wholly) stored is said, with the command that makes it.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import xarray as xr

from provingground import api, planning, plot, registry
from provingground.atlas.pictures import few_colours, panels
from provingground.errors import DataMissing, RunError, StoreError
from provingground.predicting import MOST, at_settings
from provingground.store import Store
from provingground.study import Experiment, Scale, Study
from provingground.verdict import Verdict

KEPT = 8  # Datasets in memory


@dataclass(frozen=True)
class Drawn:
    """The figure of an experiment in two formats, and what its panels show; or what went wrong."""

    png: bytes = b""
    svg: bytes = b""
    size: tuple[float, float] = (0.0, 0.0)  # inches
    panels: str = ""
    trouble: str = ""


@dataclass(frozen=True)
class Entry:
    """An experiment as it is stored: its Dataset, if any of it is, and the verdicts."""

    study: Study
    experiment: Experiment
    ds: xr.Dataset | None
    verdicts: tuple[Verdict, ...]
    missing: int = 0  # cells that are not stored
    why: str = ""  # what went wrong, in words
    command: str = ""  # what would store the rest

    @property
    def name(self) -> str:
        return f"{self.study.name}/{self.experiment.name}"

    @cached_property
    def theory(self) -> xr.Dataset | None:
        """What the theory says at the settings of the Dataset; of very many at some of them."""
        try:
            return None if self.ds is None else at_settings(self.study, self.ds, MOST)
        except Exception:  # a theory that cannot be asked here leaves the rest of the page
            return None

    @cached_property
    def figure(self) -> Drawn:
        """The study's own figure."""
        if self.ds is None or self.missing:
            return Drawn(trouble="Not all of it is stored.")
        try:
            fig = self.experiment.figure(self.ds)
            width, height = fig.get_size_inches()
            images = few_colours(plot.image(fig, ".png")), plot.image(fig, ".svg")
            return Drawn(*images, (width, height), panels(fig))
        except Exception as error:  # pages of many figures must survive any one of them
            return Drawn(trouble=f"{type(error).__name__}: {error}")


@dataclass
class Shelf:
    """The studies at one scale, with what a store has of them. Threads may share it."""

    store: Store
    scale: Scale = "quick"
    studies: dict[str, Study] = field(default_factory=dict)
    _judged: dict[str, tuple[Verdict, ...]] = field(default_factory=dict, repr=False)
    _kept: OrderedDict[str, Entry] = field(default_factory=OrderedDict, repr=False)
    _locks: dict[str, threading.RLock] = field(default_factory=dict, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def experiments(self, study: str) -> list[Experiment]:
        """Those that there are at this scale."""
        quick = self.scale == "quick"
        return [
            e for e in self.studies[study].experiments if not (quick and e.trainings.paper_only)
        ]

    def names(self) -> list[str]:
        """All experiments, as "study/experiment"."""
        return [f"{study}/{e.name}" for study in self.studies for e in self.experiments(study)]

    def entry(self, study: str, experiment: str) -> Entry:
        """An experiment with what is stored of it."""
        name = f"{study}/{experiment}"
        with self._lock:
            lock = self._locks.setdefault(name, threading.RLock())
        with lock:
            with self._lock:
                if name in self._kept:
                    self._kept.move_to_end(name)
                    return self._kept[name]
            found = self._read(self.studies[study], self.studies[study].experiment(experiment))
            with self._lock:
                self._kept[name] = found
                self._judged[name] = found.verdicts
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            return found

    def forget(self, study: str, experiment: str) -> None:
        """Reads an experiment again when it is asked for next."""
        with self._lock:
            self._kept.pop(f"{study}/{experiment}", None)
            self._judged.pop(f"{study}/{experiment}", None)

    def verdicts(self, name: str) -> tuple[Verdict, ...]:
        """The verdicts on an experiment's claims; judged if they were not yet."""
        with self._lock:
            if name in self._judged:
                return self._judged[name]
        return self.entry(*name.split("/")).verdicts

    def judged(self) -> dict[str, tuple[Verdict, ...]]:
        """The experiments that were judged so far, in the order of the studies."""
        with self._lock:
            return {name: self._judged[name] for name in self.names() if name in self._judged}

    def warm(self) -> Iterator[str]:
        """Judges everything, one experiment after the other."""
        for name in self.names():
            self.verdicts(name)
            yield name

    def _read(self, study: Study, experiment: Experiment) -> Entry:
        paper = f" --scale {self.scale}" if self.scale != "quick" else ""
        command = f"proving run {study.name}/{experiment.name}{paper}"
        try:
            job = planning.job(
                study, experiment.name, scale=self.scale, store=self.store, trace=False
            )
            ds = api.stored(job)
        except DataMissing as missing:
            return Entry(study, experiment, None, (), 0, str(missing), missing.command)
        except StoreError:
            raise
        except RunError as error:
            return Entry(study, experiment, None, (), 0, str(error), command)
        missing, cells = int(ds.attrs["missing"]), int(ds.attrs["cells"])
        if missing and missing + int(ds.attrs["skipped"]) >= cells:
            return Entry(study, experiment, None, (), missing, "", command)
        verdicts = tuple(api.verdicts(study, experiment, ds)) if not missing else ()
        return Entry(study, experiment, ds, verdicts, missing, "", command if missing else "")


def shelf(
    store: Store | str | Path | None = None,
    scale: Scale = "quick",
    studies: Sequence[str | Study] | None = None,
) -> Shelf:
    """The studies that are named (default: all) with what a store has of them."""
    some = registry.studies().values() if studies is None else map(_study, studies)
    return Shelf(planning.store_at(store), scale, {study.name: study for study in some})


def _study(given: str | Study) -> Study:
    return given if isinstance(given, Study) else registry.study(given)
