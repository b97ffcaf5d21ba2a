"""The atlas as a folder of files, for any web server or none."""

import os
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from provingground.atlas.pages import Atlas
from provingground.errors import InputError, RunError
from provingground.store import Store
from provingground.study import Scale, Study

MARKER = "proving-site.txt"  # a folder with it was written by us, and may be written anew
TOLD = "Written by `proving site`, which replaces the whole folder.\n"


class Built(NamedTuple):
    """A site that was written."""

    path: Path
    files: int
    size: int  # bytes
    seconds: float


def site(
    out: Path | str,
    *,
    scale: Scale = "quick",
    studies: Sequence[str | Study] | None = None,
    store: Store | str | Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Built:
    """Writes all pages about some studies (default: all) into a folder.

    It is written beside and put in place when it is whole. A folder that is there must be empty, or
    a site that was written before. `tell` hears of each study that is begun.
    """
    began = time.monotonic()
    target = ready(Path(out))
    atlas = Atlas(store, scale=scale, studies=studies)
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    count = size = 0
    try:
        beside.mkdir()
        (beside / MARKER).write_text(TOLD, encoding="utf-8")
        seen = ""
        for path in atlas.paths():
            study = path.partition("/")[0]
            if tell is not None and study != seen and study in atlas.shelf.studies:
                tell(study)
            seen = study
            body = atlas.page(path).body
            file = beside.joinpath(*path.split("/"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
            count, size = count + 1, size + len(body)
        _put(beside, target)
    except OSError as error:
        raise RunError(f"cannot write {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return Built(target, count, size, time.monotonic() - began)


def ready(out: Path) -> Path:
    """The folder that will be written, if it may be."""
    try:
        target = out.expanduser()
        target = target.parent.resolve() / target.name
        if not target.name:
            raise InputError(f"{out} is not allowed: name a folder of its own")
        if target.is_symlink():
            raise InputError(f"{out} is a link; give the folder itself")
        if not target.parent.is_dir():
            raise InputError(f"the folder of {out} does not exist")
        if not os.access(target.parent, os.W_OK):
            raise InputError(f"{target.parent} may not be written")
        if target.exists() and not target.is_dir():
            raise InputError(f"{out} is there and is no folder")
        if target.is_dir() and not (target / MARKER).is_file() and any(target.iterdir()):
            raise InputError(f"{out} is not empty, and no site of ours: nothing of it is touched")
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{out} cannot be written: {why}") from None
    return target


def _put(beside: Path, target: Path) -> None:
    """Puts a whole folder in its place; what stood there before goes when the new one is there."""
    if not target.exists():
        beside.rename(target)
        return
    old = beside.with_name(f"{beside.name}.old")
    target.rename(old)
    try:
        beside.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
