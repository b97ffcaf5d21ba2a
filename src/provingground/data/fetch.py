"""Fetches data sets: from their public addresses, checked, and kept whole or not at all."""

import contextlib
import io
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from provingground import files
from provingground.data import real
from provingground.data.formats import Unreadable
from provingground.data.sets import Arrays, DataSet, File
from provingground.errors import RunError
from provingground.progress import SECONDS_BETWEEN_LINES
from provingground.terminal import say

BEGUN = ".fetching-"  # folders of downloads that are at work, or were killed
A_DAY = 86400.0


def get(name: str) -> Path:
    """Makes a data set be here: fetches it, unless it is, and keeps it as plain arrays.

    What is damaged is fetched anew, and of several files those alone that are not here. Returns
    the folder of data.
    """
    data, where = real.known(name), real.folder()
    found = real.look(data, where)
    if found.read is not None and not found.wrong:
        found.read()  # or it says what is wrong
        return where
    for told in real.remarks(data, found._replace(lacking=())):
        say(f"proving: {told}")
    if data.copy is not None and (where / name).is_dir():
        _keep(data, where, data.copy(where / name))
    elif not data.fetched:
        raise real.missing(data, found)
    else:
        with _made(where / name):
            _keep(data, where, _fetched(data, where))
    return where


def _fetched(data: DataSet, where: Path) -> Arrays:
    """The arrays of a data set from its public addresses, and from those files that are here."""
    form = data.forms[0]
    here = {f: real.content_of(where / f.path, f.sha256, []) for f in form.files}
    away = [file for file, content in here.items() if content is None]
    with _room(where) as room:
        for file in away:
            here[file] = _download(data, file, room, away)
    contents = [here[file] for file in form.files]
    try:
        return form.read(*contents)
    except Unreadable as error:
        raise RunError(f"{data.name} was fetched and cannot be read: {error}") from error


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Makes the folder of a data set, and removes what it made where nothing is kept there."""
    where = folder.parent
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    if where in made and os.environ.get("PROVING_DATA"):
        say(f"proving: there was no folder {where}, which $PROVING_DATA names: it is made now")
    try:
        with _written(where):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for path in made:
            with contextlib.suppress(OSError):  # what is not empty stays
                path.rmdir()


@contextmanager
def _room(where: Path) -> Iterator[Path]:
    """A folder for downloads beside the data, gone at the end. Old ones of killed processes are
    removed."""
    with _written(where):
        room = Path(tempfile.mkdtemp(prefix=BEGUN, dir=where))
    try:
        for old in where.glob(f"{BEGUN}*"):
            with contextlib.suppress(OSError):
                if time.time() - old.lstat().st_mtime > A_DAY and not old.is_symlink():
                    shutil.rmtree(old)
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


@contextmanager
def _written(where: Path) -> Iterator[None]:
    """Says of a disk that is full, or may not be written, what it is about."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"cannot write to the folder of data {where}: {error.strerror or error}. Nothing was "
            "kept; $PROVING_DATA names another folder"
        ) from error


def _download(data: DataSet, file: File, room: Path, away: Sequence[File]) -> bytes:
    """The content of a file, from the first of its addresses that gives what it should. Where none
    does, all files are named that are away."""
    import pooch  # slow to import
    import requests

    reasons = []
    name = Path(file.path).name
    for url in file.urls:
        path = room / name
        with _written(room.parent), _progress(f"{data.name}: {name}") as bar:
            try:
                pooch.HTTPDownloader(progressbar=bar)(url, str(path), None)
            except requests.RequestException as error:
                reasons.append(f"{url}: {_reason(error)}")
                continue
            content = path.read_bytes()
            path.unlink()
        if real.checksum(content) == file.sha256:
            return content
        reasons.append(
            f"{url}: the {len(content)} bytes that came are not the file (another checksum)"
        )
    wanted = "; ".join(real.wanted(each, room.parent) for each in away)
    raise RunError(
        f"{data.name} could not be fetched, and nothing was kept. {'. '.join(reasons)}. "
        f"What you put there from elsewhere is taken: {wanted}"
    )


def _reason(error: Any) -> str:
    """Why a download failed, in a few words."""
    import requests

    if error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke off"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "no connection (is there a network?)"
    return f"{type(error).__name__}: {error}"


def _keep(data: DataSet, where: Path, arrays: Arrays) -> None:
    """Writes arrays under a name that holds their checksum; damaged ones of before are removed."""
    made = io.BytesIO()
    np.savez_compressed(made, allow_pickle=False, **dict(arrays))
    content = made.getvalue()
    path = where / data.name / f"{data.name}.{real.checksum(content)[:16]}.npz"
    with _written(where):
        files.write(path, content)
    for old in real.kept(data, where):
        damaged: list[str] = []
        if old != path and real.sound(old, damaged) is None and damaged:
            with contextlib.suppress(OSError):
                old.unlink()


# ------------------------------------------------------------------------------ progress


class _Lines:
    """What a download tells how far it is: a line now and then, for a log."""

    def __init__(self, title: str) -> None:
        self.title, self.total, self.done, self.last = title, 0, 0, time.monotonic()

    def update(self, n: int) -> None:
        self.done += n
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            of = f" of {self.total / 1e6:.1f}" if self.total else ""
            say(f"{self.title}  {self.done / 1e6:.1f}{of} MB")

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        pass


class _Drawn(_Lines):
    """A bar on a terminal."""

    def __init__(self, title: str, bar: Any) -> None:
        super().__init__(title)
        self.bar, self.task = bar, bar.add_task(title, total=None)

    def update(self, n: int) -> None:
        self.done += n
        self.bar.update(self.task, completed=self.done, total=self.total or None)


@contextmanager
def _progress(title: str) -> Iterator[Any]:
    if not sys.stderr.isatty():
        yield _Lines(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20),
               DownloadColumn(), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Drawn(title, bar)
