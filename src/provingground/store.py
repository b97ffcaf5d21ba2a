"""A set of cells on disk.

One netCDF-3 file per finished chunk: written under a temporary name, synced, renamed, its sha256
in its name. There is no manifest that could disagree: what is there is what the files say. Files
whose content does not match their name, or that are no netCDF-3, are quarantined, never loaded.
Nothing is ever unpickled.
"""

import contextlib
import errno
import hashlib
import io
import json
import os
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import netcdf_file

from provingground import claims
from provingground.errors import RunError

LARGEST_FILE = 2**29
ID = "S32"  # a cell's identity: 32 hexadecimal letters

Ids = NDArray[np.bytes_]


class Chunk(NamedTuple):
    """One file of the store: probes of some cells, stacked along a first axis."""

    path: Path
    cells: Ids
    probes: dict[str, np.ndarray]
    about: dict[str, Any]


def default_path() -> Path:
    """`$PROVING_STORE`, else the user's data folder."""
    if given := os.environ.get("PROVING_STORE"):
        return Path(given)
    import platformdirs

    return platformdirs.user_data_path("provingground")


class Index:
    """Where cells lie, in 40 bytes each: files by number, cells in a few sorted runs.

    A run is merged with the one before it once it is half as long, so that adding n cells costs
    about n log n in all.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self._runs: list[tuple[np.ndarray, ...]] = []

    def __len__(self) -> int:
        return sum(len(ids) for ids, _, _ in self._runs)

    def add(self, file: str, cells: Ids) -> None:
        """Adds the cells of a file; those that are known already stay where they are."""
        new = np.flatnonzero(self.where(cells)[0] < 0).astype(np.int32)
        self._runs.append((cells[new], np.full(len(new), len(self.files), np.int32), new))
        self.files.append(file)
        self._runs[-1] = _by_id(self._runs[-1])
        while len(self._runs) > 1 and len(self._runs[-2][0]) <= 2 * len(self._runs[-1][0]):
            pair = zip(self._runs.pop(-2), self._runs.pop(), strict=True)
            self._runs.append(_by_id(tuple(np.concatenate(both) for both in pair)))

    def where(self, cells: Ids) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The number of each cell's file (-1: not stored) and its row there."""
        file, row = np.full(cells.shape, -1, np.int32), np.full(cells.shape, -1, np.int32)
        for ids, files, rows in self._runs:
            if len(ids):
                at = np.minimum(np.searchsorted(ids, cells), len(ids) - 1)
                here = ids[at] == cells
                file[here], row[here] = files[at[here]], rows[at[here]]
        return file, row


def _by_id(run: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    order = np.argsort(run[0], kind="stable")
    return tuple(column[order] for column in run)


@dataclass
class Store:
    """A folder of chunks, one subfolder per study."""

    path: Path = field(default_factory=default_path)
    quarantined: list[str] = field(default_factory=list)
    _indices: dict[str, tuple[Index, set[str]]] = field(default_factory=dict, repr=False)
    _opened: bool = field(default=False, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        self.path = Path(self.path).expanduser()
        self.claims = claims.Claims(self.path / "claims")

    def claim(self, block: str) -> bool:
        """Takes a block for this process; False if a living process has it."""
        try:
            if not self._opened:
                self.open()
            return self.claims.take(block)
        except OSError as error:
            raise self._unwritable(error) from error

    def open(self) -> None:
        """Makes the folder, and removes what killed processes left."""
        self.write(self.path / "claims" / ".ready", b"", sync=False)
        (self.path / "claims" / ".ready").unlink(missing_ok=True)
        self.must_stay()
        self.claims.clean()
        for path in self.path.glob("*/.*.tmp"):
            with contextlib.suppress(OSError):
                if not claims.writer_lives(path):
                    path.unlink()

    def must_stay(self) -> None:
        """From here on, a folder that goes away is an error: it may be a disk, and what lies
        under it is another one."""
        self._opened = True

    # -------------------------------------------------------------------- cells

    def chunks(self, study: str) -> Iterator[Chunk]:
        """All sound chunks of a study, in a stable order. Unsound files are quarantined."""
        for path in sorted((self.path / study).glob("*.nc")):
            if chunk := self._load(path):
                yield chunk

    def index(self, study: str) -> Index:
        """Where the cells of a study lie, as far as this process has looked."""
        with self._lock:
            if study not in self._indices:
                self._indices[study] = Index(), set()
                self.look(study)
            return self._indices[study][0]

    def look(self, study: str) -> Index:
        """Where the cells of a study lie by now. Only new files are read, and of them the cells."""
        with self._lock:
            self._check_there()
            index, seen = self._indices.setdefault(study, (Index(), set()))
            try:
                there = {e.name for e in os.scandir(self.path / study) if e.name.endswith(".nc")}
            except OSError:
                there = set()
            if not seen <= there:  # files went away
                del self._indices[study]
                return self.look(study)
            for name in sorted(there - seen):
                seen.add(name)
                if chunk := self._load(self.path / study / name):
                    index.add(name, chunk.cells)
            return index

    def read(self, study: str, file: str) -> Chunk | None:
        """A file of the index; None if it is unsound by now."""
        return self._load(self.path / study / file)

    def put(
        self,
        study: str,
        cells: Sequence[str] | Ids,
        probes: Mapping[str, tuple[Sequence[str], np.ndarray]],
        about: Mapping[str, Any],
    ) -> Path:
        """Stores a chunk. `probes` maps a name to its dims (after `cell`) and its array."""
        return self.put_packed(study, packed(cells, probes, about))

    def put_packed(self, study: str, content: bytes) -> Path:
        """Stores a chunk that was `packed` elsewhere."""
        path = self.path / study / f"{hashlib.sha256(content).hexdigest()}.nc"
        self.write(path, content)
        return path

    def write(self, path: Path, content: bytes, sync: bool = True) -> None:
        """Writes a file whole or not at all; `sync` also keeps it through a power cut."""
        temporary = path.with_name(f".{uuid.uuid4().hex}.{claims.tag()}.tmp")
        try:
            self._check_there()
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(content)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _check_there(self) -> None:
        if self._opened and not self.path.is_dir():
            raise self._unwritable(OSError(errno.ENODEV, "it went away"))

    def _unwritable(self, error: OSError) -> RunError:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        return RunError(
            f"cannot write to the store {self.path}: {reason}. "
            "What was stored before is intact; run again to go on from there."
        )

    def _load(self, path: Path) -> Chunk | None:
        try:
            if not path.is_file() and path.exists():
                raise ValueError("not a file")
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_size > LARGEST_FILE:
                    raise ValueError("larger than any chunk")
                if file.read(3) != b"CDF":
                    raise ValueError("not a netCDF-3 file")
                file.seek(0)
                content = file.read()
            if hashlib.sha256(content).hexdigest() != path.stem:
                raise ValueError("the content does not match the checksum in the name")
            return Chunk(path, *_unpacked(content))
        except FileNotFoundError:  # another process set it aside just now
            return None
        except Exception as error:  # whatever a foreign file makes the reader do
            self.quarantine(path, str(error))
            return None

    def quarantine(self, path: Path, why: str) -> None:
        """Sets a file aside that is not what it should be, and remembers to say so."""
        target = self.path / "quarantine" / path.name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
            where = f"moved to {target}"
        except OSError as error:
            where = f"left where it is ({error.strerror}) and ignored"
        line = f"{path.name}: {why}; {where}"
        if line not in self.quarantined:
            self.quarantined.append(line)

    # -------------------------------------------------------------- small records

    def note(self, kind: str, name: str) -> str | None:
        """A small text kept beside the cells (fingerprints, timings), or None."""
        path = self.path / kind / f"{name}.txt"
        return path.read_text() if path.exists() else None

    def set_note(self, kind: str, name: str, text: str) -> None:
        self.write(self.path / kind / f"{name}.txt", text.encode(), sync=False)


def packed(
    cells: Sequence[str] | Ids,
    probes: Mapping[str, tuple[Sequence[str], np.ndarray]],
    about: Mapping[str, Any],
) -> bytes:
    """A chunk as a netCDF-3 file; xarray opens it too."""
    buffer = io.BytesIO()
    file = netcdf_file(buffer, "w", version=2)
    ids = np.asarray(cells, ID).view("S1").reshape(len(cells), -1)
    for name, (dims, array) in (*probes.items(), ("cell_id", (("letter",), ids))):
        if array.dtype.kind in "bui":  # netCDF-3 has neither booleans nor long integers
            small = np.int8 if array.dtype == bool else np.int32
            if np.any(array.astype(small) != array):
                raise ValueError(f"{name} holds whole numbers that do not fit into 32 bits")
            array = array.astype(small)
        for dim, size in zip(("cell", *dims), array.shape, strict=True):
            if dim not in file.dimensions:
                file.createDimension(dim, size)
        kind = array.dtype.newbyteorder(">")
        file.createVariable(name, kind, ("cell", *dims))[:] = array
    file.about = json.dumps(about).encode()
    file.flush()
    if buffer.tell() > LARGEST_FILE:
        raise ValueError(
            f"{buffer.tell() / 2**20:.0f} MiB in one chunk: take fewer lanes or probes"
        )
    return buffer.getvalue()


class _Bounded(io.BytesIO):
    """Bytes of which only so much is read: a hostile header may ask for the same ones for ever."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.reads, self.left = 100_000, 4 * len(content)

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.reads, self.left = self.reads - 1, self.left - len(found)
        if min(self.reads, self.left) < 0:
            raise ValueError("its header describes more than there is")
        return found


def _unpacked(content: bytes) -> tuple[Ids, dict[str, np.ndarray], dict[str, Any]]:
    """Cells, probes and record of a chunk. Raises on whatever is not one."""
    file = netcdf_file(_Bounded(content), "r", mmap=False)
    arrays = {
        n: np.array(v.data, v.data.dtype.newbyteorder("=")) for n, v in file.variables.items()
    }
    letters = arrays.pop("cell_id")
    if letters.dtype != "S1" or letters.ndim != 2 or letters.shape[1] != np.dtype(ID).itemsize:
        raise ValueError("its cells have no identities")
    if any(len(array) != len(letters) for array in arrays.values()):
        raise ValueError("its variables have different numbers of cells")
    about = json.loads(getattr(file, "about"))  # noqa: B009
    if not isinstance(about, dict):
        raise ValueError("it has no record")
    return letters.view(ID)[:, 0], arrays, about
