"""The data sets that the papers use, as `sets.toml` declares them.

To add one, add it there, and a reader to `formats` (or `copies`) if its format is new.
"""

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from provingground.data import copies, formats
from provingground.data.formats import Arrays


class File(NamedTuple):
    """A file of a data set: its place in the folder of data, its checksum, and its addresses."""

    path: str
    sha256: str
    urls: tuple[str, ...] = ()


class Form(NamedTuple):
    """A form that a data set comes in: its files, and what makes arrays of their contents."""

    files: tuple[File, ...]
    read: Callable[..., Arrays]

    @property
    def fetched(self) -> bool:
        return all(file.urls for file in self.files)

    @property
    def kind(self) -> str:
        """What a Dataset calls it."""
        return "published" if self.fetched else "prepared copy"


class DataSet(NamedTuple):
    """A data set. `size` is that of what is fetched, in millions of bytes.

    The first form is fetched if it can be. A data set of which none is says in `wants` which files
    the user has to bring; `copy` reads them.
    """

    name: str
    title: str
    cite: str
    licence: str
    size: float
    forms: tuple[Form, ...] = ()
    wants: str = ""
    copy: Callable[[Path], Arrays] | None = None

    @property
    def fetched(self) -> bool:
        return bool(self.forms) and self.forms[0].fetched


def _form(name: str, told: Mapping[str, Any]) -> Form:
    read = partial(getattr(formats, told["read"]), **told.get("how", {}))
    bases = told.get("from", ())
    files = (
        File(f"{name}/{file}" if bases else file, sha256, tuple(base + file for base in bases))
        for file, sha256 in told["files"].items()
    )
    return Form(tuple(files), read)


def _set(name: str, told: Mapping[str, Any]) -> DataSet:
    forms = tuple(_form(name, form) for form in told.get("forms", ()))
    copy = getattr(copies, told["copy"]) if "copy" in told else None
    words = {key: told[key] for key in ("title", "cite", "licence", "size")}
    return DataSet(name, **words, forms=forms, wants=told.get("wants", ""), copy=copy)


def _sets() -> dict[str, DataSet]:
    with Path(__file__).with_name("sets.toml").open("rb") as file:
        return {name: _set(name, told) for name, told in tomllib.load(file).items()}


SETS: Mapping[str, DataSet] = _sets()
