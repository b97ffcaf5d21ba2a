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
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.io import netcdf_file

from provingground.errors import RunError

STALE_CLAIM_SECONDS = 600  # of an owner on another machine, who renews it every minute
LARGEST_FILE = 2**31


class Chunk(NamedTuple):
    """One file of the store: probes of some cells, stacked along a first axis."""

    path: Path
    cells: list[str]
    probes: dict[str, np.ndarray]
    about: dict[str, Any]


def default_path() -> Path:
    """`$PROVING_STORE`, else the user's data folder."""
    if given := os.environ.get("PROVING_STORE"):
        return Path(given)
    import platformdirs

    return platformdirs.user_data_path("provingground")


@dataclass
class Store:
    """A folder of chunks, one subfolder per study."""

    path: Path = field(default_factory=default_path)
    quarantined: list[str] = field(default_factory=list)
    _read: dict[Path, Chunk] = field(default_factory=dict, repr=False)
    _found: dict[str, tuple[dict[str, tuple[Chunk, int]], set[str]]] = field(
        default_factory=dict, repr=False
    )
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        self.path = Path(self.path).expanduser()

    # -------------------------------------------------------------------- cells

    def chunks(self, study: str) -> Iterator[Chunk]:
        """All sound chunks of a study, in a stable order. Unsound files are quarantined."""
        for path in sorted((self.path / study).glob("*.nc")):
            if chunk := self._chunk(path):
                yield chunk

    def find(self, study: str) -> dict[str, tuple[Chunk, int]]:
        """Where each cell of a study lies: chunk and row. Only new files are read."""
        with self._lock:
            found, seen = self._found.setdefault(study, ({}, set()))
            try:
                there = {e.name for e in os.scandir(self.path / study) if e.name.endswith(".nc")}
            except OSError:
                there = set()
            if not seen <= there:  # files went away
                found.clear()
                seen.clear()
            for name in sorted(there - seen):
                seen.add(name)
                if chunk := self._chunk(self.path / study / name):
                    for row, cell in enumerate(chunk.cells):
                        found.setdefault(cell, (chunk, row))
            return found

    def _chunk(self, path: Path) -> Chunk | None:
        """A file's chunk, read once; None if it is unsound."""
        if path not in self._read and (chunk := self._load(path)):
            self._read[path] = chunk
        return self._read.get(path)

    def put(
        self,
        study: str,
        cells: Sequence[str],
        probes: Mapping[str, tuple[Sequence[str], np.ndarray]],
        about: Mapping[str, Any],
    ) -> Path:
        """Stores a chunk. `probes` maps a name to its dims (after `cell`) and its array."""
        content = _packed(cells, probes, json.dumps(about))
        path = self.path / study / f"{hashlib.sha256(content).hexdigest()}.nc"
        self.write(path, content)
        return path

    def write(self, path: Path, content: bytes) -> None:
        """Writes a file whole or not at all."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
            raise RunError(
                f"cannot write to the store {self.path}: {reason}. "
                "What was stored before is intact; run again to go on from there."
            ) from error

    def _load(self, path: Path) -> Chunk | None:
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise ValueError("larger than any chunk")
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != path.stem:
                raise ValueError("the content does not match the checksum in the name")
            if content[:3] != b"CDF":
                raise ValueError("not a netCDF-3 file")
            return Chunk(path, *_unpacked(content))
        except FileNotFoundError:  # another process set it aside just now
            return None
        except Exception as error:  # whatever a foreign file makes the reader do
            self._quarantine(path, str(error))
            return None

    def _quarantine(self, path: Path, why: str) -> None:
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
        self.write(self.path / kind / f"{name}.txt", text.encode())

    # ------------------------------------------------------------ claims on chunks

    def claim(self, chunk: str) -> bool:
        """Takes a chunk for this process; False if a living process has it.

        A claim is an exclusive file that names host, process and boot; the claim of a dead owner
        is taken over.
        """
        path = self.path / "claims" / chunk
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot write to the store {self.path}: {error.strerror}") from error
        for _ in range(2):
            try:
                with open(path, "x") as file:
                    json.dump(_me(), file)
                return True
            except FileExistsError:
                if self._owner_lives(path):
                    return False
                # Renaming is what only one of several takers succeeds in.
                aside = path.with_name(f".{chunk}.{uuid.uuid4()}")
                with contextlib.suppress(FileNotFoundError):
                    os.rename(path, aside)
                    aside.unlink()
        return False

    def renew(self, chunk: str) -> None:
        """Tells owners of other machines that this one still works on a chunk."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path / "claims" / chunk)

    def release(self, chunk: str) -> None:
        (self.path / "claims" / chunk).unlink(missing_ok=True)

    def _owner_lives(self, path: Path) -> bool:
        try:
            age, text = time.time() - path.stat().st_mtime, path.read_text()
        except FileNotFoundError:
            return False
        try:
            owner = json.loads(text)
        except ValueError:  # being written just now, or broken
            owner = None
        if not isinstance(owner, dict) or not {"host", "boot", "pid", "started"} <= set(owner):
            return age < 5
        me = _me()
        if owner.get("host") != me["host"]:
            return age < STALE_CLAIM_SECONDS
        return owner.get("boot") == me["boot"] and owner.get("started") == _started(owner["pid"])


def _packed(
    cells: Sequence[str], probes: Mapping[str, tuple[Sequence[str], np.ndarray]], about: str
) -> bytes:
    """A chunk as a netCDF-3 file; xarray opens it too."""
    buffer = io.BytesIO()
    file = netcdf_file(buffer, "w", version=2)
    ids = np.array([list(c) for c in cells], dtype="S1")
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
    file.about = about.encode()
    file.flush()
    return buffer.getvalue()


def _unpacked(content: bytes) -> tuple[list[str], dict[str, np.ndarray], dict[str, Any]]:
    """Cells, probes and record of a chunk. Raises on whatever is not one."""
    file = netcdf_file(io.BytesIO(content), "r", mmap=False)
    arrays = {
        n: np.array(v.data, v.data.dtype.newbyteorder("=")) for n, v in file.variables.items()
    }
    cells = [row.tobytes().decode() for row in arrays.pop("cell_id")]
    if any(len(array) != len(cells) for array in arrays.values()):
        raise ValueError("its variables have different numbers of cells")
    return cells, arrays, json.loads(getattr(file, "about"))  # noqa: B009


def _me() -> dict[str, Any]:
    boot = Path("/proc/sys/kernel/random/boot_id")
    return {
        "host": socket.gethostname(),
        "boot": boot.read_text().strip() if boot.exists() else "",
        "pid": os.getpid(),
        "started": _started(os.getpid()),
    }


def _started(pid: int) -> str | None:
    """When a process of this machine started, so that a reused number is not taken for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return None
    try:  # no /proc: the number alone must do
        os.kill(pid, 0)
        return ""
    except OSError:
        return None
