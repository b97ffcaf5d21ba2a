"""One file of a store: some cells with their probes, and a record of how they came about."""

import contextlib
import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from provingground import files, netcdf
from provingground.terminal import plain

NAME = re.compile(r"[0-9a-f]{64}\.nc")
LARGEST_FILE = 2**29
LARGEST_RECORD = 2**20
HEX = b"0123456789abcdef"
ID = "S32"  # a cell's identity: 32 hexadecimal letters

Ids = NDArray[np.bytes_]

# Two files of equal cells that agree in these entries of their records must agree in all numbers.
ORIGIN = ("version", "jax", "numpy", "device", "devices", "backend", "lanes", "layout")
TEXTS = (*ORIGIN, "commit", "date", "fingerprint", "data")


class Chunk(NamedTuple):
    """One file of the store: probes of some cells, stacked along a first axis."""

    path: Path
    cells: Ids
    probes: dict[str, np.ndarray]
    about: dict[str, Any]


class Copies(NamedTuple):
    """Two files that hold some of the same cells with unequal numbers."""

    first: str
    second: str
    cells: Ids  # whose numbers differ
    alike: bool  # made on the same device with the same options and versions
    largest: dict[str, tuple[float, float]]  # absolute and relative difference by probe


class Sound(NamedTuple):
    """A file that was found to be a chunk."""

    cells: Ids
    about: dict[str, Any]
    file: netcdf.File

    def chunk(self, path: Path) -> Chunk:
        names = [name for name in self.file.variables if name != "cell_id"]
        return Chunk(path, self.cells, {n: self.file.array(n) for n in names}, self.about)


def packed(
    cells: Sequence[str] | Ids,
    probes: Mapping[str, tuple[Sequence[str], np.ndarray]],
    about: Mapping[str, Any],
) -> bytes:
    """A chunk as a netCDF-3 file; xarray opens it too."""
    ids = np.asarray(cells, ID).view("S1").reshape(len(cells), -1)
    variables = {name: (("cell", *dims), array) for name, (dims, array) in probes.items()}
    variables["cell_id"] = ("cell", "letter"), ids
    record = json.dumps(about, allow_nan=False).encode()
    content = netcdf.write(variables, "about", record)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"{len(content) / 2**20:.0f} MiB in one chunk: take fewer lanes or probes")
    return content


def unpacked(content: bytes) -> Sound:
    """What a chunk says. A ValueError on whatever is not one."""
    file = netcdf.read(content, "about")
    place = file.variables.get("cell_id")
    if place is None or place.kind.kind != "S" or place.dims != ("cell", "letter"):
        raise ValueError("its cells have no identities")
    letters = content[place.begin : place.end]
    count = place.shape[0]
    if place.shape[1] != 32 or letters.strip(HEX):
        raise ValueError("its cells have no identities")
    if len({letters[at : at + 32] for at in range(0, len(letters), 32)}) != count:
        raise ValueError("two of its cells are the same")
    for name, variable in file.variables.items():
        if variable.dims[:1] != ("cell",):
            raise ValueError(f"{plain(name)} is not of its cells")
        if variable.kind.kind == "S" and variable is not place:
            raise ValueError(f"{plain(name)} holds no numbers")
    if len(file.text) > LARGEST_RECORD:
        raise ValueError("its record is too long")
    about = strict_json(file.text)
    if wrong := _senseless(about):
        raise ValueError(f"its record makes no sense ({wrong})")
    return Sound(np.frombuffer(letters, ID), about, file)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def strict_json(text: bytes) -> dict[str, Any]:
    """An object of JSON, strictly."""
    try:
        found = _DECODER.decode(text.decode())
    except (ValueError, RecursionError):
        raise ValueError("its record is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("its record is not an object")
    return found


def _senseless(about: Mapping[str, Any]) -> str:
    """Which known entry of a record cannot be; entries may be missing."""
    for name in TEXTS:
        if type(about.get(name, "")) is not str:
            return name
    if not _sensible(about.get("seconds", 0)) or about.get("seconds", 0) < 0:
        return "seconds"
    program = about.get("program")
    if "program" not in about:
        return ""
    if not isinstance(program, dict):
        return "program"
    if not all(isinstance(program.get(name), str) for name in ("simulator", "precision", "data")):
        return "program"
    for name in ("shape", "sizes"):
        pairs = program.get(name)
        if not isinstance(pairs, list) or not all(map(_is_setting, pairs)):
            return f"{name} of its program"
    return ""


def _is_setting(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and (isinstance(pair[1], (str, bool)) or _sensible(pair[1]))
    )


def _sensible(number: Any) -> bool:
    """Whether it is a number that can be reckoned with."""
    return type(number) in (int, float) and abs(number) < 1e300


def compare(first: Chunk, second: Chunk) -> Copies:
    """The cells that two files have in common and do not agree about."""
    common, a, b = np.intersect1d(first.cells, second.cells, return_indices=True)
    differ = np.zeros(len(common), bool)
    largest: dict[str, tuple[float, float]] = {}
    for name in sorted({*first.probes, *second.probes}):
        x, y = first.probes.get(name), second.probes.get(name)
        if x is None or y is None or x.shape[1:] != y.shape[1:] or x.dtype != y.dtype:
            differ[:] = True
            largest[name] = math.inf, math.inf
            continue
        x, y = (v[rows].reshape(len(common), -1) for v, rows in ((x, a), (y, b)))
        bits = f"u{x.itemsize}"
        unequal = (x.view(bits) != y.view(bits)) & ~(np.isnan(x) & np.isnan(y))
        if unequal.any():
            differ |= unequal.any(axis=1)
            with np.errstate(all="ignore"):
                gap = np.abs(x.astype(float) - y)[unequal]
                relative = gap / np.abs(x.astype(float))[unequal]
            largest[name] = _largest(gap), _largest(relative)
    alike = all(first.about.get(name) == second.about.get(name) for name in ORIGIN)
    return Copies(first.path.name, second.path.name, common[differ], alike, largest)


def _largest(gap: np.ndarray) -> float:
    """The largest of some differences; where one is not a number, none is larger."""
    return float(np.nan_to_num(gap, nan=np.inf, posinf=np.inf).max(initial=0.0))


def named_well(folder: Path, name: str) -> bytes:
    """The content of a chunk. A ValueError where it does not fit its name."""
    content = files.read(f"{folder}/{name}", LARGEST_FILE)
    if f"{hashlib.sha256(content).hexdigest()}.nc" != name:
        raise ValueError("the content does not match the checksum in the name")
    return content


def holds_chunks(folder: Path) -> bool:
    """Whether files of a folder have names of chunks."""
    with contextlib.suppress(OSError):
        return any(map(NAME.fullmatch, os.listdir(folder)))
    return False
