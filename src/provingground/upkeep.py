"""Keeping results and starting studies: `verify` and `new`."""

import keyword
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from provingground import files, identity, programs
from provingground.chunk import Chunk, Copies
from provingground.config import pars, traced
from provingground.errors import DataMissing, InputError, RunError
from provingground.grid import Group, Point, Program
from provingground.identity import Identity
from provingground.results import misfit
from provingground.store import Store
from provingground.study import Study

T = TypeVar("T")
CELLS_TO_RERUN = 3
TOLERANCE = {"float32": 1e-3, "float64": 1e-8}

# ------------------------------------------------------------------------------- verify


class State(NamedTuple):
    """What a check of one study's files found."""

    chunks: int
    cells: int
    stale: int
    adopted: int
    refused: int
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def verify(study: Study, store: Store, adopt: bool = False) -> State:
    """Reads every file of a study (damaged ones are set aside) and counts stale cells.

    Cells are stale when their program is not the one of today's sources and libraries. With
    `adopt` a few of them are run again; if all agree within the tolerance, the new program
    takes over the name, and so the results, of the old one. Of cells with probes or parts of a
    user's own the sources are not known here: they are neither stale nor adopted. Nor are those of
    a data set that is not here.
    """
    groups: dict[tuple[Program, str], list[Chunk]] = {}
    chunks = list(store.chunks(study.name))
    for chunk in chunks:
        if (program := _program(chunk)) is not None:
            name = program, chunk.about.get("fingerprint", "")
            groups.setdefault(name, []).append(chunk)
    problems = [f"{c.path}: it does not say what computed it" for c in chunks if not _program(c)]
    problems += [
        f"{chunk.path}: its cells are not those of its settings"
        for (program, _), members in groups.items()
        for chunk in members
        if not _named_well(study, program, chunk)
    ]
    away = {name: why for name in {p.data for p, _ in groups} if (why := _away(study, name))}
    today = {
        program: _identity(study, _point(study, program, members[0], 0), store)
        for (program, _), members in groups.items()
        if program.data not in away
    }
    current = {p: old for p, old in groups if (new := today.get(p)) and new.fingerprint == old}
    for (program, known), members in groups.items():
        if current.get(program) == known:
            dims = programs.probe_dims(study.simulators[program.simulator].probes)
            for chunk in members:
                if wrong := misfit(chunk.probes, dims):
                    store.forget(chunk.path, wrong)
        problems += _other_shapes(members)
    store.set_aside()
    chunks = [chunk for chunk in chunks if files.is_plain(chunk.path)]
    unequal = store.unequal(study.name)
    problems += [_differ(store.path / study.name, c) for c in unequal if c.alike]
    remarks = [_differ(store.path / study.name, c) for c in unequal if not c.alike]
    stale = adopted = refused = foreign = 0
    for (program, old), members in groups.items():
        if program.data in away:
            continue
        if members[0].about.get("changes"):
            foreign += sum(len(c.cells) for c in members)
            continue
        if current.get(program) == old:
            continue
        cells = sum(len(c.cells) for c in members)
        stale += cells
        if not adopt:
            continue
        new = today[program]
        if new is None or program in current or not _agree(study, program, members):
            refused += cells
        else:
            identity.adopt(study, program, new, old, store)
            current[program] = old
            adopted += cells
    if foreign:
        remarks.append(
            f"{foreign} cells of {study.name} have probes or parts of a user's own, whose sources "
            "are not known here; whether these are stale shows when they are run again"
        )
    remarks += [
        f"whether cells of {study.name} are stale is not known: {why}" for why in away.values()
    ]
    cells = sum(len(c.cells) for c in chunks)
    return State(len(chunks), cells, stale, adopted, refused, tuple(problems), tuple(remarks))


def _away(study: Study, data: str) -> str:
    """Why a data set of stored cells cannot be read, if it cannot."""
    try:
        if data in study.data:
            programs.data_of(study, data)
    except DataMissing as missing:
        return str(missing)
    return ""


def _other_shapes(chunks: Sequence[Chunk]) -> list[str]:
    """Files of one program of which a probe has another shape than in the first."""
    first = chunks[0]
    return [
        f"{c.path}: {name} has another shape or type than in {first.path}"
        for c in chunks
        for name in sorted({*first.probes, *c.probes})
        if name not in c.probes
        or name not in first.probes
        or c.probes[name].shape[1:] != first.probes[name].shape[1:]
        or c.probes[name].dtype != first.probes[name].dtype
    ]


def _differ(folder: Path, copies: Copies) -> str:
    """What is to be said of two files with different numbers for equal cells."""
    most = ", ".join(
        f"{name} by at most {gap:.3g} ({relative:.3g} of it)"
        for name, (gap, relative) in copies.largest.items()
    )
    why = (
        "made in the same way: one of them is wrong"
        if copies.alike
        else "made on different devices, or with other options or versions: the first counts"
    )
    return (
        f"{folder / copies.first} and {folder / copies.second} differ in {len(copies.cells)} equal "
        f"cells, {why}; {most}"
    )


def _program(chunk: Chunk) -> Program | None:
    """The program of a chunk, from its record; None if that does not tell."""
    if (p := chunk.about.get("program")) is None:
        return None
    pairs = {k: tuple((n, v) for n, v in p[k]) for k in ("shape", "sizes")}
    return Program(p["simulator"], p["precision"], p["data"], **pairs)


def _point(study: Study, program: Program, chunk: Chunk, row: int) -> Point | None:
    """The setting of a stored cell; None if today's study has no such parameters."""
    simulator = study.simulators.get(program.simulator)
    known = program.precision in TOLERANCE and program.data in ("", *study.data)
    if simulator is None or not known:
        return None
    settings = dict(program.shape)
    for name, p in pars(simulator.config).items():
        if p.traced:
            if f"config_{name}" not in chunk.probes:
                return None
            value = float(chunk.probes[f"config_{name}"][row])
            whole = p.type in (int, bool) and value.is_integer()
            settings[name] = p.type(value) if whole else value
    try:
        return Point(program, simulator.config(**settings))
    except (TypeError, InputError):
        return None


def _named_well(study: Study, program: Program, chunk: Chunk) -> bool:
    """Whether the identities of a file's cells are those of the settings that it holds.

    Of settings that today's study has not, nothing can be said.
    """
    point = _point(study, program, chunk, 0)
    if point is None or "config_seed" not in chunk.probes:
        return True
    fingerprint, data = (chunk.about.get(name, "") for name in ("fingerprint", "data"))
    columns = [chunk.probes[f"config_{name}"] for name in traced(point.config)]
    values = np.array(columns, float).reshape(len(columns), -1).T
    seeds = chunk.probes["config_seed"]
    if seeds.min(initial=0) < 0:
        return False
    for seed in np.unique(seeds):
        rows = np.flatnonzero(seeds == seed).astype(np.int32)
        some = Group(program, point.config, rows, values[rows])
        wanted = identity.cell_ids(study, some, fingerprint, data, [int(seed)])[:, 0]
        if not np.array_equal(wanted, chunk.cells[rows]):
            return False
    return True


def _identity(study: Study, point: Point | None, store: Store) -> Identity | None:
    """What the program of a stored cell is today; None if there is none."""
    if point is None:
        return None
    data = programs.data_of(study, point.program.data)
    try:
        found = identity.identify(study, [point], data, identity.digest_of_data(data), store)
        return found[point.program]
    except Exception:  # whatever settings that are possible, and make no sense, lead to
        return None


def _agree(study: Study, program: Program, chunks: Sequence[Chunk]) -> bool:
    """Whether some cells, run again one by one, give what is stored."""
    places = [(c, row) for c in chunks for row in range(len(c.cells))]
    chosen = places[:: max(1, len(places) // CELLS_TO_RERUN)][:CELLS_TO_RERUN]
    for chunk, row in chosen:
        point = _point(study, program, chunk, row)
        if point is None or "config_seed" not in chunk.probes:
            return False
        again = programs.single(study, point, int(chunk.probes["config_seed"][row]))
        for name, value in again.items():
            close = name in chunk.probes and np.allclose(
                np.asarray(value, float),
                np.asarray(chunk.probes[name][row], float),
                rtol=TOLERANCE[program.precision],
                atol=TOLERANCE[program.precision],
                equal_nan=True,
            )
            if not close:
                return False
    return True


# ---------------------------------------------------------------------------------- new

PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1.0"
dependencies = ["provingground"]

[project.entry-points."provingground.studies"]
{name} = "{name}:STUDY"

[tool.setuptools]
packages = [{packages}]
"""


def new_package(name: str, folder: Path, fill: Callable[[Path], T]) -> T:
    """Makes the folder `folder/name` for a new study and fills it; leaves nothing if that fails."""
    from provingground.studies import SKELETON, STUDIES

    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InputError(f"'{name}' is no name for a study: use a-z, 0-9 and _, a letter first")
    if name in (*STUDIES, SKELETON):
        raise InputError(f"there is a study '{name}' already")
    if keyword.iskeyword(name) or name in sys.stdlib_module_names or name == "provingground":
        raise InputError(f"'{name}' is no name for a study: Python has taken it")
    try:
        home = folder.expanduser() / name
        if os.path.lexists(home):
            raise InputError(f"{home} exists already; nothing was written")
        home.mkdir(parents=True)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"no study can be made in {folder}: {why}") from None
    try:
        return fill(home)
    except OSError as error:
        shutil.rmtree(home, ignore_errors=True)
        raise RunError(f"cannot write {home}: {error.strerror}; nothing is left there") from error


def project(name: str, packages: Sequence[str]) -> str:
    """The `pyproject.toml` of a study, with its entry point."""
    return PROJECT.format(name=name, packages=", ".join(f'"{p}"' for p in packages))
