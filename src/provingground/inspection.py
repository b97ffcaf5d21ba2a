"""Whether everything in a store is ours: what `verify` names, and what `upgrade` insists on."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from provingground import chunk, files, locks, notes
from provingground.chunk import named_well, unpacked
from provingground.errors import InputError, StoreError
from provingground.store import FOLDERS, MARKER, OLD_FOLDERS, Store

STUDY = re.compile(r"[a-z0-9_]+")
OLD_NOTES = {
    "fingerprints": r"[0-9a-f]{40}",
    "lanes": r"[0-9]{1,9}",
    "timings": r"[\[\]0-9.e+, -]+",
}
OLD_LOCK = re.compile(rf"{locks.NAME.pattern}|\.ready")


class Found(NamedTuple):
    """Something in a store that is not in order."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def studies(store: Store) -> list[str]:
    """The studies that have a folder in a store."""
    names = store.names(store.path)
    own = (*FOLDERS, *OLD_FOLDERS)
    return sorted(n for n in names if STUDY.fullmatch(n) and n not in own and _folder(store, n))


def _folder(store: Store, name: str) -> bool:
    return files.is_folder(store.path / name)


def foreign(store: Store) -> Iterator[Found]:
    """What is in a store and is none of its own: named, and not touched. Chunks are not read."""
    here = studies(store)
    for name in sorted(store.names(store.path)):
        path = store.path / name
        if name in (*FOLDERS, *OLD_FOLDERS):
            if not files.is_folder(path):
                yield Found(path, "not a folder, or a link to one")
        elif name not in here and not _ours(path, re.compile(re.escape(MARKER))):
            yield Found(path, "not of this store")
    for study in here:
        yield from _others(store, store.path / study, chunk.NAME)
    yield from _others(store, store.path / "locks", locks.NAME)
    for kind in sorted(store.names(store.path / "notes")):
        folder = store.path / "notes" / kind
        if notes.NAME.fullmatch(kind) and files.is_folder(folder):
            yield from _others(store, folder, notes.NAME)
        else:
            yield Found(folder, "not of this store")


def damaged_notes(store: Store) -> Iterator[Found]:
    """Notes that do not say what was noted; each is made anew when it is needed."""
    for kind in sorted(store.names(store.path / "notes")):
        folder = store.path / "notes" / kind
        for name in sorted(store.names(folder) if files.is_folder(folder) else []):
            if notes.NAME.fullmatch(name) and files.is_plain(folder / name):
                try:
                    store.read_note(kind, name)
                except ValueError as error:
                    yield Found(folder / name, f"a damaged note ({error}); it is not used")
                except OSError as error:
                    yield Found(folder / name, f"cannot be read: {error.strerror}")


def leftovers(store: Store) -> int:
    """How many files there are of processes that are no more, which the next run removes."""
    return sum(
        locks.left_over(folder / name)
        for folder in store.folders()
        for name in store.names(folder)
        if locks.TEMPORARY.fullmatch(name)
    ) + sum(map(store.locks.left_over, store.names(store.locks.folder)))


def _others(store: Store, folder: Path, names: re.Pattern[str]) -> Iterator[Found]:
    for name in sorted(store.names(folder)):
        if not _ours(folder / name, names):
            yield Found(folder / name, "not of this store")


def _ours(path: Path, names: re.Pattern[str]) -> bool:
    fits = names.fullmatch(path.name) or locks.TEMPORARY.fullmatch(path.name)
    return bool(fits) and files.is_plain(path)


# ------------------------------------------------------------------------------- upgrade


def upgrade(store: Store) -> list[Found]:
    """Makes a folder of version 0.1.0 (or one whose marker was damaged) a store of today's.

    It does if every file below it is one of ours; else it changes nothing and returns the others.
    Compiled programs of version 0.1.0 are not looked at.
    """
    if not files.is_folder(store.path) or not os.listdir(store.path):
        raise InputError(f"there is no store at {store.path}")
    if store.format() is not None:
        return []
    found = list(_not_ours(store.path))
    if not found:
        store.mark()
    return found


def _not_ours(root: Path) -> Iterator[Found]:
    for name in _listed(root):
        path = root / name
        if name == MARKER or locks.TEMPORARY.fullmatch(name):
            if not files.is_plain(path):
                yield Found(path, "not a plain file")
        elif not files.is_folder(path) or not STUDY.fullmatch(name):
            yield Found(path, "not of a store")
        elif name == "notes":
            for kind in _listed(path):
                if files.is_folder(path / kind):
                    yield from _not_of(path / kind, kind)
                else:
                    yield Found(path / kind, "not of a store")
        elif name != "compiled":
            yield from _not_of(path, name)


def _not_of(folder: Path, kind: str) -> Iterator[Found]:
    for name in _listed(folder):
        path = folder / name
        try:
            if not locks.TEMPORARY.fullmatch(name):
                _check(path, kind)
            elif not files.is_plain(path):
                raise ValueError("not a plain file")
        except OSError as error:
            yield Found(path, f"cannot be read: {error.strerror}")
        except (ValueError, RecursionError) as error:
            yield Found(path, str(error))


def _check(path: Path, kind: str) -> None:
    """A ValueError where a file is not one of its folder."""
    name = path.name
    if path.parent.parent.name == "notes":
        if not notes.NAME.fullmatch(name) or not files.is_plain(path):
            raise ValueError("not a note")
    elif kind in OLD_NOTES:
        text = files.read(path, locks.LARGEST).decode()
        if not re.fullmatch(r"[0-9a-f]+\.txt", name) or not re.fullmatch(OLD_NOTES[kind], text):
            raise ValueError("not a note of version 0.1.0")
    elif kind == "locks":
        content = files.read(path, locks.LARGEST)
        if not locks.NAME.fullmatch(name) or locks.owner(content) is None:
            raise ValueError("not a lock")
    elif kind == "claims":
        content = files.read(path, locks.LARGEST)
        if not OLD_LOCK.fullmatch(name) or (content and not locks.is_owner(json.loads(content))):
            raise ValueError("not a lock of version 0.1.0")
    elif kind == "quarantine":
        if not files.is_plain(path):
            raise ValueError("not a plain file")
    elif not chunk.NAME.fullmatch(name):
        raise ValueError("not a chunk")
    else:
        unpacked(named_well(path.parent, name))


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise StoreError(f"cannot read {folder}: {error.strerror}") from error
