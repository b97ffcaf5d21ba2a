"""Which sources a record of verdicts was made from, and whether today's are the same.

A record is made on one machine and read on another. A fingerprint (see `identity`) is in the words
of one version of jax, a code object in those of one version of Python. A record therefore holds,
for each experiment, two hashes that all versions agree on:

- `code`: of every function, class and constant that can be reached by name from its simulators,
  their Configs and Probes, and its data, in the project and in the package of the study. Remarks,
  layout, types of arguments, and the module in which something stands, do not count; libraries
  count by the names that are used.
- `settings`: of all points of its grid, with simulators and precision, and of its seeds.

What is looked up by text (`getattr`) is not seen. A record is *stale* where a hash differs. If code
is written differently, and still gives the programs that the record names, then

    python -m provingground.sources docs/results/*.json

under the record's own version of jax shows that by lowering them, and writes today's hash.
"""

import argparse
import ast
import hashlib
import importlib.util
import json
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from provingground import grid, outputs, parsing, planning
from provingground.atlas.records import record_text
from provingground.config import traced
from provingground.errors import InputError
from provingground.grid import Sweep
from provingground.identity import sha
from provingground.keys import seed_key
from provingground.study import Scale
from provingground.terminal import show_text

# What is no part of the numbers: how errors are told, and how data sets are found and read, whose
# content counts (it is part of the identity of a cell).
ASIDE = ("provingground.errors", "provingground.data.real")
# Fields of Python's syntax trees that say nothing of what is done.
SILENT = ("ctx", "kind", "type_comment", "returns")
T = TypeVar("T", bound=ast.AST)


def source_of(sweep: Sweep) -> dict[str, str]:
    """The hashes of an experiment's code and settings, the same on every machine.

    `code` is empty where the code does not stand in files: simulators made by other functions, or
    in a notebook.
    """
    study = sweep.study
    roots: list[Any] = [seed_key]
    for name in sorted({group.program.simulator for group in sweep.groups()}):
        simulator = study.simulators[name]
        roots += [simulator.simulate, simulator.config, simulator.probes]
    if sweep.trainings.data:
        roots.append(study.data[sweep.trainings.data])
    try:
        code = code_hash(*roots)
    except _Unwritten:
        code = ""
    return {"code": code, "settings": _settings_hash(sweep)}


def _settings_hash(sweep: Sweep) -> str:
    """Of numbers nine digits count: libraries may differ in the last ones of a spacing. The order
    in which a Config declares its parameters does not."""
    points = {}
    for group in sweep.groups():
        simulator, precision, data, shape, _ = group.program
        names = traced(group.config)
        for point, values in zip(group.points.tolist(), group.values.tolist(), strict=True):
            numbers = [f"{name} {value:.9g}" for name, value in zip(names, values, strict=True)]
            points[point] = [simulator, precision, data, sorted(shape), sorted(numbers)]
    in_order = [points[point] for point in sorted(points)]
    return sha([sweep.study.name, in_order, list(sweep.seeds), sweep.trainings.refine])[:40]


# ---------------------------------------------------------------------------- records


class Staleness(NamedTuple):
    """Experiments of a record that would run otherwise today, each with what changed (`code`,
    `settings`, or both); and those whose sources the record does not hold."""

    stale: dict[str, str]
    unknown: list[str]


def staleness(record: Mapping[str, Any]) -> Staleness:
    """Compares the sources of which a record was made with those of today."""
    found = Staleness({}, [])
    for at, about in record["provenance"].items():
        if not (told := about.get("source")) or not told["code"]:
            found.unknown.append(at)
            continue
        try:
            now = source_of(planned(at, about.get("scale", record["scale"]), about))
        except InputError as error:  # there is no such experiment any more
            found.stale[at] = str(error)
            continue
        if changed := [what for what in ("code", "settings") if now[what] != told[what]]:
            found.stale[at] = " and ".join(changed)
    return found


def planned(at: str, scale: Scale, about: Mapping[str, Any]) -> Sweep:
    """What a record says was run, as it is declared today: with the record's seeds, if they follow
    each other (records of version 0.1.0 do not say them, and have those declared)."""
    owner, which = planning.resolve(at)
    told = str(about.get("seeds", ""))
    seeds = parsing.parse_seeds(told, 0) if ":" in told else None
    return grid.plan(owner, which, scale, seeds=seeds, yes=True)


def same_programs(at: str, scale: Scale, about: Mapping[str, Any]) -> bool | None:
    """Whether an experiment's programs, lowered now, are those that a record names.

    None where that cannot be told: the record was made with another version of jax or NumPy, or
    a simulator runs on the host, where its fingerprint is of one version of Python.
    """
    simulators = planning.resolve(at)[0].simulators
    host = any(simulators[name].host for name in about["simulator"].split(", "))
    if host or (about["jax"], about["numpy"]) != (jax.__version__, np.__version__):
        return None
    as_recorded = jax.numpy_dtype_promotion("standard")  # tests are stricter, which may be seen
    with as_recorded, tempfile.TemporaryDirectory() as folder:
        job = planning.job(at, scale=scale, store=folder, yes=True)
        now = {found.fingerprint for found in job.identities.values()}
    told = set(about["fingerprint"].split(", "))
    return told <= now if job.sweep.trainings.refine else told == now  # or not all of it is run


def renew(record: dict[str, Any]) -> list[str]:
    """Writes today's hash into a record where other code gives the same programs; says where."""
    renewed = []
    for at, changed in staleness(record).stale.items():
        about = record["provenance"][at]
        if changed == "code" and same_programs(at, about.get("scale", record["scale"]), about):
            about["source"] = source_of(planned(at, about.get("scale", record["scale"]), about))
            renewed.append(at)
    return renewed


# ------------------------------------------------------------------------- the code, as it stands


class _Unwritten(Exception):
    """Code that stands in no file under a name of its own."""


class _Place(NamedTuple):
    """A name of a module; the empty one stands for what it does when it is imported."""

    module: str
    name: str


Dotted = tuple[str, ...]  # a name with dots


class _Definition(NamedTuple):
    """A statement in words, and the names that it uses and imports."""

    text: str
    used: tuple[Dotted, ...]
    imported: Mapping[str, Dotted]


class _Module(NamedTuple):
    """What defines the names of a module, and what its imports stand for."""

    defined: Mapping[str, list[_Definition]]
    imported: Mapping[str, Dotted]


def code_hash(*roots: Any) -> str:
    """The hash of what functions and classes are written as, and of all that they use by name."""
    walk = _Walk({"provingground", *(str(root.__module__).partition(".")[0] for root in roots)})
    for root in roots:
        walk.start(_Place(root.__module__, getattr(root, "__qualname__", "<nameless>")))
    return walk.hash()


class _Walk:
    """Goes through what can be reached, first come first served, and writes it down."""

    def __init__(self, near: set[str]) -> None:
        self.near = near  # packages whose sources are read
        self.numbers: dict[_Place, int] = {}
        self.left: deque[_Place] = deque()
        self.met: dict[str, None] = {}
        self.modules: dict[str, _Module | None] = {}

    def start(self, place: _Place) -> None:
        module = self._module(place.module)
        if module is None or place.name not in module.defined:
            raise _Unwritten
        self._number(place)

    def hash(self) -> str:
        """What stands in a module and has no name comes last, in an order of its own: in which
        modules things stand does not count."""
        found, done = hashlib.sha256(), set()
        while self.left or self.met.keys() - done:
            while self.left:
                for line in self._lines(self.left.popleft()):
                    found.update(f"{line}\n".encode())
            tops = [_Place(name, "") for name in self.met.keys() - done]
            done |= self.met.keys()
            for place in sorted(tops, key=lambda p: [d.text for d in self._defined(p)]):
                for line in self._lines(place):
                    found.update(f"{line}\n".encode())
        return found.hexdigest()[:40]

    def _defined(self, place: _Place) -> list[_Definition]:
        module = self._module(place.module)
        assert module is not None
        return module.defined[place.name]

    def _number(self, place: _Place) -> int:
        """The number of a place in the order in which they are met: its name does not count."""
        if place not in self.numbers:
            self.numbers[place] = len(self.numbers)
            self.left.append(place)
        return self.numbers[place]

    def _lines(self, place: _Place) -> Iterator[str]:
        module = self._module(place.module)
        assert module is not None
        self.met[place.module] = None
        for definition in module.defined[place.name]:
            yield definition.text
            known = {**module.imported, **definition.imported}
            if "*" in known:
                raise _Unwritten
            for chain in definition.used:
                if chain[0] in known:
                    yield from self._follow(chain, (*known[chain[0]], *chain[1:]))
                if chain[0] in module.defined:
                    yield f"{chain[0]} is {self._number(_Place(place.module, chain[0]))}"

    def _follow(self, chain: Dotted, path: Dotted) -> Iterator[str]:
        """Goes to where an imported name was defined."""
        if path[0] not in self.near:
            yield f"{'.'.join(chain)} is {'.'.join(path)}"
            return
        name, rest = path[0], path[1:]
        while rest and self._module(f"{name}.{rest[0]}") is not None:
            name, rest = f"{name}.{rest[0]}", rest[1:]
        if name in ASIDE or (module := self._module(name)) is None:
            return
        if rest and rest[0] in module.imported:
            yield from self._follow(chain, (*module.imported[rest[0]], *rest[1:]))
        for n in sorted(module.defined):
            if not rest or n == rest[0]:  # of a module that is passed on, everything
                yield f"{'.'.join(chain)} is {self._number(_Place(name, n))}"

    def _module(self, name: str) -> _Module | None:
        if name not in self.modules:
            self.modules[name] = _module(name)
        return self.modules[name]


def _module(name: str) -> _Module | None:
    """A module as its file has it now; None if there is no such file."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        return _parsed(spec.parent or "", Path(spec.origin).read_text(encoding="utf-8"))
    except (ImportError, AttributeError, ValueError, OSError):
        return None


@lru_cache(maxsize=1000)
def _parsed(package: str, text: str) -> _Module:
    defined: dict[str, list[_Definition]] = {"": []}
    imported: dict[str, Dotted] = {}
    for statement in ast.parse(text).body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = {statement.name}
        else:
            imported.update(_imports(statement, package))
            names = {
                *(n.id for n in _of(statement, ast.Name) if isinstance(n.ctx, ast.Store)),
                *(n.name for n in _of(statement, ast.FunctionDef)),
                *(n.name for n in _of(statement, ast.ClassDef)),
            }
        if not _remark(statement):
            used = tuple(dict.fromkeys(_chains(statement)))
            inside = dict(_imports(statement, package))
            definition = _Definition(_text(statement), used, inside)
            for name in sorted(names) or [""]:
                defined.setdefault(name, []).append(definition)
    return _Module(defined, imported)


def _of(node: ast.AST, kind: type[T]) -> Iterator[T]:
    return (n for n in ast.walk(node) if isinstance(n, kind))


def _imports(node: ast.AST, package: str) -> Iterator[tuple[str, Dotted]]:
    """The names that a piece of source imports, and what they stand for."""
    for n in _of(node, ast.Import):
        for alias in n.names:
            path = tuple(alias.name.split("."))
            yield (alias.asname, path) if alias.asname else (path[0], path[:1])
    for n in _of(node, ast.ImportFrom):
        home = package.split(".")[: len(package.split(".")) - n.level + 1] if n.level else []
        path = (*home, *(n.module.split(".") if n.module else ()))
        for alias in n.names:
            yield alias.asname or alias.name, (*path, alias.name)


def _chains(node: ast.AST) -> Iterator[Dotted]:
    """The names that a piece of source uses, each with the attributes that are taken of it."""
    taken, inner = [], node
    while isinstance(inner, ast.Attribute):
        taken.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield (inner.id, *reversed(taken))
        return
    for _, value in _fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _chains(child)


def _text(node: Any) -> str:
    """A piece of source in words that all versions of Python share."""
    if isinstance(node, list):
        return f"[{','.join(map(_text, node))}]"
    if not isinstance(node, ast.AST):
        return ascii(node)
    fields = ",".join(f"{name}={_text(value)}" for name, value in _fields(node))
    return f"{type(node).__name__}({fields})"


def _fields(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """What a syntax tree holds. Fields that newer versions add are empty in older sources."""
    for name, value in ast.iter_fields(node):
        if name in SILENT or (name == "annotation" and isinstance(node, ast.arg)):
            continue
        if isinstance(value, list):
            value = [v for v in value if not _remark(v)]
        if isinstance(node, ast.JoinedStr):  # Python 3.12 has empty texts in some
            value = [v for v in value if getattr(v, "value", None) != ""]
        if value is not None and value != []:
            yield name, value


def _remark(node: Any) -> bool:
    """Docstrings; and imports, since it counts what their names stand for."""
    word = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return word or isinstance(node, (ast.Import, ast.ImportFrom))


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares records with today's sources.")
    parser.add_argument("records", type=Path, nargs="+", help="written by `proving check --save`")
    stale = False
    for path in parser.parse_args().records:
        record = json.loads(path.read_text(encoding="utf-8"))
        if renewed := renew(record):
            outputs.write(path, record_text(record))
        found = staleness(record)
        stale |= bool(found.stale)
        show_text(f"{path}: {len(found.stale)} of {len(record['provenance'])} experiments stale")
        for at, changed in found.stale.items():
            about = record["provenance"][at]
            show_text(f"  {at}: {changed} (made with jax {about['jax']}, NumPy {about['numpy']})")
        for at in renewed:
            show_text(f"  {at}: renewed, other code gives the same programs")
        if found.unknown:
            show_text(f"  made by {record['version']}, sources not recorded: {len(found.unknown)}")
    sys.exit(stale)


if __name__ == "__main__":
    main()
