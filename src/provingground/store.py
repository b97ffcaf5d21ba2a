"""A set of cells on disk: a folder of ours, marked as such, that holds nothing but data.

One netCDF-3 file per finished chunk: written under a temporary name, synced, renamed, its sha256
in its name. There is no manifest that could disagree: what is there is what the files say. Files
whose content does not match their name, or that are no chunks, are never loaded. Links below the
folder are not followed, and nothing is removed that is not ours. Nothing is ever executed.
"""

import contextlib
import errno
import hashlib
import json
import os
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from provingground import files, notes
from provingground.chunk import (
    NAME,
    Chunk,
    Copies,
    Ids,
    Sound,
    compare,
    holds_chunks,
    named_well,
    packed,
    strict_json,
    unpacked,
)
from provingground.errors import InputError, StoreError
from provingground.index import Index
from provingground.locks import TEMPORARY, Locks, left_over, tag
from provingground.terminal import plain, say

MARKER = "proving-store.json"
FORMAT = 1
OLD_FOLDERS = ("claims", "compiled", "fingerprints", "lanes", "timings")  # of version 0.1.0
FOLDERS = ("locks", "notes", "quarantine")
KEPT_BYTES = 2**26  # of files that were read for their cells, and will be for their probes


def default_path() -> Path:
    """`$PROVING_STORE`, else the user's data folder."""
    if given := os.environ.get("PROVING_STORE"):
        return Path(given)
    import platformdirs

    return platformdirs.user_data_path("provingground")


class _Known(NamedTuple):
    """What this process knows of a study's folder."""

    cells: Index
    seen: set[str]
    kept: dict[str, Sound]


@dataclass
class Store:
    """A folder of chunks, one subfolder per study."""

    path: Path = field(default_factory=default_path)
    damaged: dict[Path, str] = field(default_factory=dict)  # found, not set aside, and why
    said: list[str] = field(default_factory=list)
    _known: dict[str, _Known] = field(default_factory=dict, repr=False)
    _compared: dict[tuple[str, str, str], Copies] = field(default_factory=dict, repr=False)
    _there: bool = field(default=False, repr=False)  # it was seen, and has to stay
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        try:
            self.path = Path(self.path).expanduser().resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(f"{plain(str(self.path))} cannot be a store: {error}") from error
        self.locks = Locks(self.path / "locks", self._quarantine)

    # --------------------------------------------------------------------- the folder

    def exists(self) -> bool:
        """Whether the store is there. A folder that is not a store is refused.

        Once it was there, a folder that goes away is an error: it may be a disk, and what lies
        under it is another one.
        """
        if self._there:
            if not os.path.lexists(self.path / MARKER):
                raise self._unwritable(OSError(errno.ENODEV, "it went away"))
            return True
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP):
                raise InputError(f"{self.path} cannot be a store: {error.strerror}") from error
            raise StoreError(f"cannot read the store {self.path}: {error.strerror}") from error
        if os.path.lexists(self.path / MARKER):  # made first, so before anything that is listed
            if self.format() is None:
                raise InputError(
                    f"{self.path / MARKER} is damaged; `proving upgrade --store {self.path}` "
                    "checks all files of the store and writes it anew"
                )
            self._there = True
            return True
        if all(TEMPORARY.fullmatch(name) for name in names):  # of one who makes it just now
            return False
        if _looks_old(self.path, names):
            raise InputError(
                f"{self.path} looks like a store of version 0.1.0: `proving upgrade --store "
                f"{self.path}` checks it and makes it one of today's"
            )
        raise InputError(
            f"{self.path} is not a store: it is not empty, and there is no {MARKER} in it; give "
            "an empty folder or one that does not exist"
        )

    def format(self) -> int | None:
        """The number of the store's format, by its marker; None if there is none, or damaged.

        A store of a newer version is refused.
        """
        try:
            found = strict_json(files.read(self.path / MARKER, notes.LARGEST)).get("format")
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise StoreError(f"cannot read the store {self.path}: {error.strerror}") from error
        if type(found) is not int or found < 1:
            return None
        if found > FORMAT:
            raise InputError(
                f"{self.path} was made by a newer version of Proving Ground (its format is "
                f"{found}, known is {FORMAT})"
            )
        return found

    def mark(self) -> None:
        """Makes the folder a store."""
        self.path.mkdir(parents=True, exist_ok=True)
        content = json.dumps({"format": FORMAT}).encode() + b"\n"
        files.write(self.path / MARKER, content, tag=tag())
        self._there = True

    def must_stay(self) -> None:
        """From here on the store is not made where it is not there."""
        self._there = True

    def open(self) -> None:
        """Makes the folder, sees that it can be written to, and removes what killed processes
        left."""
        try:
            self._folder("locks")
            self.locks.clean()
        except OSError as error:
            raise self._unwritable(error) from error
        for folder in self.folders():
            for name in filter(TEMPORARY.fullmatch, self.names(folder)):
                with contextlib.suppress(OSError):
                    if left_over(folder / name):
                        (folder / name).unlink()

    def folders(self) -> Iterator[Path]:
        """The folders in which there may be files of ours; no links."""
        yield self.path
        for name in self.names(self.path):
            if files.is_folder(self.path / name) and name not in OLD_FOLDERS:
                yield self.path / name
        for name in self.names(self.path / "notes"):
            if files.is_folder(self.path / "notes" / name):
                yield self.path / "notes" / name

    def names(self, folder: Path) -> list[str]:
        """What is in a folder of the store; nothing if it is a link."""
        if not files.is_folder(folder):
            if os.path.lexists(folder):
                self._say(f"{folder} is not a folder, or a link to one: it is left out")
            return []
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"cannot read the store: {folder}: {error.strerror}") from error

    def _folder(self, *names: str) -> Path:
        """A folder of the store to write to, made where it is not there; never through a link."""
        if not self.exists():
            self.mark()
        folder = self.path
        for name in names:
            folder = folder / name
            if not files.is_folder(folder):
                with contextlib.suppress(FileExistsError):
                    folder.mkdir()
                if not files.is_folder(folder):
                    raise StoreError(
                        f"{folder} is not a folder, or a link to one: the store writes to its own "
                        "folders only; move it away"
                    )
        return folder

    def _of_study(self, study: str) -> Path:
        if study in (*FOLDERS, *OLD_FOLDERS):
            raise InputError(f"a study cannot be named '{study}': the store has such a folder")
        return self.path / study

    def _write(self, path: Path, content: bytes, sync: bool = True) -> None:
        """Writes a file of a folder of the store whole or not at all."""
        try:
            self._folder(*path.relative_to(self.path).parts[:-1])
            files.write(path, content, sync=sync, tag=tag())
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> StoreError:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        return StoreError(
            f"cannot write to the store {self.path}: {reason}. "
            "What was stored before is intact; run again to go on from there."
        )

    def _say(self, line: str) -> None:
        if line not in self.said:
            self.said.append(line)
            say(f"proving: {line}")

    # ------------------------------------------------------------------------- blocks

    def lock(self, block: str) -> bool:
        """Takes a block for this process; False if a living process has it."""
        try:
            if not self._there or not files.is_folder(self.locks.folder):
                self._folder("locks")
            return self.locks.take(block)
        except OSError as error:
            raise self._unwritable(error) from error

    # -------------------------------------------------------------------------- cells

    def chunks(self, study: str) -> Iterator[Chunk]:
        """All sound chunks of a study, read anew, in a stable order."""
        folder = self._of_study(study)
        for name in sorted(self.names(folder) if self.exists() else []):
            if NAME.fullmatch(name) and (found := self._load(folder, name)):
                yield found.chunk(folder / name)

    def index(self, study: str) -> Index:
        """Where the cells of a study lie, as far as this process has looked."""
        with self._lock:
            return self._known[study].cells if study in self._known else self.look(study)

    def look(self, study: str) -> Index:
        """Where the cells of a study lie by now. Only new files are read."""
        with self._lock:
            folder = self._of_study(study)
            there = set(self.names(folder) if self.exists() else ())
            known = self._known.get(study)
            if known is None or not known.seen <= there:  # files went away
                known = self._known[study] = _Known(Index(), set(), {})
            new = [name for name in there - known.seen if NAME.fullmatch(name)]
            kept = [found for other in self._known.values() for found in other.kept.values()]
            room = KEPT_BYTES - sum(len(found.file.content) for found in kept) if new else 0
            added = {}
            for name in new:
                if found := self._load(folder, name):
                    added[name] = found.cells
                    if len(found.file.content) <= room:
                        room -= len(found.file.content)
                        known.kept[name] = found
            known.cells.add(added)
            known.seen.update(new)
            return known.cells

    def where(self, study: str, cells: Ids) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The number of each cell's file in the index (-1: not stored) and its row there.

        Cells of which there are two values, made in the same way, are an error.
        """
        with self._lock:
            index = self.index(study)
            for copies in self._unequal(study, index.copies(cells)):
                wanted = np.isin(copies.cells, cells)
                if copies.alike and wanted.any():
                    folder = self._of_study(study)
                    raise StoreError(
                        f"{folder / copies.first} and {folder / copies.second} have different "
                        f"numbers for {int(wanted.sum())} equal cells, made on the same device "
                        "with the same options and versions: one of them is wrong; move it away"
                    )
            return index.where(cells)

    def unequal(self, study: str) -> list[Copies]:
        """All pairs of files with different numbers for equal cells."""
        with self._lock:
            index = self.look(study)
            return list(self._unequal(study, index.copies(index.cells)))

    def _unequal(self, study: str, copies: Mapping[bytes, list[str]]) -> Iterator[Copies]:
        pairs = {pair for names in copies.values() for pair in combinations(names, 2)}
        for pair in sorted(pairs):
            if (study, *pair) not in self._compared:
                first, second = (self.read(study, name) for name in pair)
                if first is None or second is None:
                    continue
                self._compared[study, *pair] = compare(first, second)
            if len((found := self._compared[study, *pair]).cells):
                yield found

    def read(self, study: str, file: str) -> Chunk | None:
        """A file of the index; None if it is not there, or not sound, by now."""
        found = self.sound(study, file)
        return found.chunk(self._of_study(study) / file) if found else None

    def sound(self, study: str, file: str) -> Sound | None:
        """A file of the index as it lies there; None if it is not there, or not sound, by now."""
        with self._lock:
            known = self._known.get(study)
            found = known.kept.get(file) if known else None
        if found is None:
            found = self._load(self._of_study(study), file)
            if found is None and known is not None:
                self.forget(self._of_study(study) / file)
        return found

    def forget(self, path: Path, why: str = "") -> None:
        """Counts the cells of a file as not stored, and the file as damaged if it is said why."""
        with self._lock:
            if why:
                self.damaged[path] = why
            self._known.pop(path.parent.name, None)

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
        path = self._of_study(study) / f"{hashlib.sha256(content).hexdigest()}.nc"
        self._write(path, content)
        return path

    def _load(self, folder: Path, name: str) -> Sound | None:
        if self.damaged and folder / name in self.damaged:
            return None
        try:
            return unpacked(named_well(folder, name))
        except FileNotFoundError:  # another process set it aside just now
            return None
        except files.TooLarge:
            self.damaged[folder / name] = "larger than any chunk"
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or "not enough memory"
            raise StoreError(
                f"cannot read {folder / name}: {reason}. It is left where it is; nothing was "
                "changed."
            ) from error
        except ValueError as error:
            self.damaged[folder / name] = str(error)
        return None

    # -------------------------------------------------------------------- quarantine

    def set_aside(self) -> None:
        """Moves the damaged files that were found to the quarantine, and says so."""
        with self._lock:
            for path, why in list(self.damaged.items()):
                if files.is_plain(path):
                    try:
                        self._quarantine(path, why)
                    except StoreError as error:
                        self._say(f"damaged {path}: {why}; left where it is ({error}) and ignored")
                        continue
                elif os.path.lexists(path):
                    self._say(f"in the way {path}: {why}; left where it is and ignored")
                    continue
                del self.damaged[path]
                self._known.pop(path.parent.name, None)

    def _quarantine(self, path: Path, why: str) -> None:
        """Sets a plain file aside under a name that no other has."""
        try:
            name = f"{path.parent.name}.{uuid.uuid4().hex[:12]}.{path.name.lstrip('.')}"
            target = self._folder("quarantine") / name
            os.rename(path, target)
        except FileNotFoundError:  # another process did
            return
        except OSError as error:
            raise StoreError(f"cannot set {path} aside: {error.strerror}") from error
        self._say(f"quarantined {path.parent.name}/{path.name}: {why}; moved to {target}")

    def tell(self) -> None:
        """Says which damaged files were found and left where they are."""
        for path, why in self.damaged.items():
            self._say(
                f"damaged {path}: {why}; left where it is and not used: `proving run` or "
                "`proving verify` sets it aside"
            )

    # ------------------------------------------------------------------ small records

    def note(self, kind: str, name: str) -> str | None:
        """A small text kept beside the cells (fingerprints, timings), or None.

        One that is damaged, or cannot be read, is as good as none.
        """
        if not self.exists():
            return None
        try:
            return self.read_note(kind, name)
        except (OSError, ValueError):
            return None

    def read_note(self, kind: str, name: str) -> str:
        """A note. A ValueError where it is not what was noted here."""
        path = self.path / "notes" / notes.place(kind, name)
        if not all(map(files.is_folder, path.parents[:2])):
            raise FileNotFoundError(path)
        return notes.unpacked(kind, name, files.read(path, notes.LARGEST))

    def set_note(self, kind: str, name: str, text: str, *, sync: bool = False) -> None:
        """Keeps a small text. Where something else than a file has its place, nothing is kept.

        Without `sync` a power cut may damage it, and then there is none.
        """
        path = self.path / "notes" / notes.place(kind, name)
        content = notes.packed(kind, name, text)
        if not os.path.lexists(path) or files.is_plain(path):
            self._write(path, content, sync)


def _looks_old(path: Path, names: Iterable[str]) -> bool:
    """Whether a folder without marker may be a store of version 0.1.0."""
    folders = (path / name for name in names if files.is_folder(path / name))
    return any(folder.name in OLD_FOLDERS or holds_chunks(folder) for folder in folders)
