"""Real data sets as plain arrays: from the user's folder of data, fetched only when told to.

    from provingground.data import real

    digits = real.load("mnist")["x_train"]

The folder is `$PROVING_DATA`, else one in the user's cache. `proving data get mnist` fetches what
is missing (see `fetch`), and `load` takes what is there: arrays that were fetched, files as they
are published, or prepared copies of them (see `sets`). Every file is checked against its checksum
each time it is read, and what was made of it is kept for the process.
"""

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import platformdirs

from provingground.data import formats
from provingground.data.sets import SETS, Arrays, DataSet, File, Form
from provingground.errors import DataMissing, InputError, unknown
from provingground.terminal import say

T = TypeVar("T")
OWN = "own copy"  # the form of what a user brought, see `Form.kind` for others
KEPT = re.compile(r"[a-z0-9_]+\.([0-9a-f]{16})\.npz")  # arrays that were made, with their checksum


def folder() -> Path:
    """Where data are."""
    given = os.environ.get("PROVING_DATA")
    if given:
        where = Path(given).expanduser()
        if where.exists() and not where.is_dir():
            raise InputError(f"$PROVING_DATA is {where}, which is a file: name a folder")
        return where
    return platformdirs.user_cache_path("provingground") / "data"


def known(name: str) -> DataSet:
    """The record of a data set."""
    if name not in SETS:
        raise unknown("data set", name, SETS)
    return SETS[name]


def load(name: str) -> Arrays:
    """The arrays of a data set by name, which cannot be written to. Read once per process.

    Raises `DataMissing`, which says how to get it, where it is not here or damaged. Says which
    files are damaged where others are taken instead.
    """
    return _loaded(known(name), folder())


@lru_cache(maxsize=8)
def _loaded(data: DataSet, where: Path) -> Arrays:
    found = look(data, where)
    if found.read is None:
        raise missing(data, found)
    for told in remarks(data, found):
        say(f"proving: {told}")
    arrays = dict(found.read())
    for array in arrays.values():
        array.setflags(write=False)
    _forms[data.name] = found.form
    return MappingProxyType(arrays)


_forms: dict[str, str] = {}  # what this process has read


def forms_read(names: Sequence[str]) -> str:
    """In which form this process has read data sets: "cifar10: published, textures: own copy"."""
    return ", ".join(f"{name}: {_forms[name]}" for name in names if name in _forms)


class Look(NamedTuple):
    """What is in the folder of a data set: how its arrays are read, if they can be; which files of
    it are damaged, and how; of which `form` the arrays are; and which files are lacking where
    there are some of a form, but not all."""

    read: Callable[[], Arrays] | None
    wrong: tuple[str, ...] = ()
    form: str = ""
    lacking: tuple[str, ...] = ()


def look(data: DataSet, where: Path) -> Look:
    """Looks for a data set in a folder, and checks the files that it finds."""
    wrong: list[str] = []
    for path in kept(data, where):
        if (content := sound(path, wrong)) is not None:
            form = OWN if data.copy else data.forms[0].kind
            return Look(partial(formats.npz, content), tuple(wrong), form)
    for form in data.forms:
        contents = _contents(form, where, wrong)
        if contents is not None:
            return Look(partial(form.read, *contents), tuple(wrong), form.kind)
    lacking = (text for form in data.forms for text in _lacking(form, where))
    return Look(None, tuple(wrong), lacking=tuple(lacking))


def remarks(data: DataSet, found: Look) -> list[str]:
    """What is to be said of files that are damaged, or that lack others beside them."""
    if found.read is not None and found.wrong:
        instead = f"; what is taken instead of {data.name}: {found.form}"
        return [f"{told}{instead}" for told in found.wrong]
    return [*found.wrong, *(f"{data.name} is here in part: {told}" for told in found.lacking)]


def kept(data: DataSet, where: Path) -> list[Path]:
    """The arrays that were made of what was fetched."""
    paths = (where / data.name).glob(f"{data.name}.*.npz")
    return sorted(path for path in paths if KEPT.fullmatch(path.name))


def sound(path: Path, wrong: list[str]) -> bytes | None:
    """The content of such arrays; what is wrong with them is told."""
    found = KEPT.fullmatch(path.name)
    return content_of(path, found[1] if found else "", wrong)


def _contents(form: Form, where: Path, wrong: list[str]) -> list[bytes] | None:
    """The contents of the files of a form, if all of them are there and sound."""
    there = [file for file in form.files if (where / file.path).exists()]
    found = [content_of(where / file.path, file.sha256, wrong) for file in there]
    sound = [content for content in found if content is not None]
    return sound if len(sound) == len(form.files) else None


def _lacking(form: Form, where: Path) -> list[str]:
    """The files that are not there of a form of which others are."""
    away = [file for file in form.files if not (where / file.path).exists()]
    return [f"there is no {wanted(file, where)}" for file in away if len(away) < len(form.files)]


def wanted(file: File, where: Path) -> str:
    """Where a file is looked for, and which it must be."""
    return f"{where / file.path} with the SHA-256 {file.sha256}"


def content_of(path: Path, sha256: str, wrong: list[str]) -> bytes | None:
    """The content of a file with a checksum (or its beginning); else what is wrong is told."""
    try:
        content = path.read_bytes()
    except OSError as error:
        wrong.append(f"{path} cannot be read: {error.strerror}")
        return None
    if not checksum(content).startswith(sha256):
        wrong.append(f"{path} is damaged: its checksum is not that of {path.name}")
        return None
    return content


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def missing(data: DataSet, found: Look) -> DataMissing:
    """The error that says that a data set is not here, or damaged, and what to do."""
    return DataMissing(_why(data, found) + away(), *_names([data]))


def _names(some: Sequence[DataSet]) -> tuple[str, str]:
    """The names of data sets, and of those that can be fetched."""
    return " ".join(d.name for d in some), " ".join(d.name for d in some if d.fetched)


def _why(data: DataSet, found: Look) -> str:
    why = "is damaged" if found.wrong else "is here in part" if found.lacking else "is not here"
    if found.wrong or found.lacking:
        why += f" ({'; '.join((*found.wrong, *found.lacking))})"
    told = f"the data set '{data.name}' {why}"
    if data.wants:
        told += f"; it is not fetched: put {data.wants}, into {folder()}"
    if not data.wants or data.copy:
        told += f"{', then' if data.wants else ';'} `proving data get {data.name}`"
        told += " reads it" if data.copy else f" fetches it ({data.size:g} MB)"
    return told


def away() -> str:
    """A remark on a folder of data that was named and is not there."""
    named = os.environ.get("PROVING_DATA") and not folder().exists()
    return f". There is no folder {folder()}, which $PROVING_DATA names" if named else ""


# --------------------------------------------------------------- what a study's data are made of


def reads(*names: str) -> Callable[[T], T]:
    """Says which data sets a function reads that a study takes its `data` from. Without it these
    are the one of the name that the study gives to it."""

    def marked(function: T) -> T:
        function.__dict__["reads"] = names
        return function

    return marked


def read_by(name: str, function: Callable[[], Any]) -> tuple[str, ...]:
    """The data sets that are read by a function of a study; none where it makes its data."""
    return getattr(function, "reads", (name,) if name in SETS else ())


def all_missing(names: Sequence[str]) -> DataMissing | None:
    """One error for all those of some data sets that are not here."""
    where, sought = folder(), [known(name) for name in names]
    looked = [(data, look(data, where)) for data in sought]
    missed = [(data, found) for data, found in looked if found.read is None]
    if len(missed) < 2:
        return missing(*missed[0]) if missed else None
    together, fetched = _names([data for data, _ in missed])
    if any(found.wrong or found.lacking or data.wants for data, found in missed):
        return DataMissing("; ".join(_why(*each) for each in missed) + away(), together, fetched)
    quoted = " and ".join(f"'{data.name}'" for data, _ in missed)
    size = sum(data.size for data, _ in missed)
    told = f"`proving data get {together}` fetches them ({size:g} MB)"
    return DataMissing(f"the data sets {quoted} are not here; {told}{away()}", together, fetched)
