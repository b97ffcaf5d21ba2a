"""Files that the user asked for: checked before the work, and written whole or not at all."""

import contextlib
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

from provingground import files
from provingground.errors import InputError, RunError


def check(path: Path | None, kinds: Sequence[str] = ()) -> None:
    """Refuses a file that could not be written, before any work. `kinds` are its endings."""
    if path is None:
        return
    if kinds and path.suffix not in kinds:
        raise InputError(f"{path} is not allowed: a file that ends in {' or '.join(kinds)}")
    try:
        target = _target(path)
        with contextlib.suppress(FileNotFoundError):
            os.lstat(target)  # a name that is too long
        if target.is_dir():
            raise InputError(f"{path} is a folder; give the name of a file")
        if not target.parent.is_dir():
            raise InputError(f"the folder of {path} does not exist")
        if target.exists() and not target.is_file():
            raise InputError(f"{path} is not a plain file")
        if target.exists() and not os.access(target, os.W_OK):
            raise InputError(f"{path} is there and may not be written")
        _try(target)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links is a RuntimeError
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path} cannot be written: {why}") from None


def write(path: Path, content: bytes) -> None:
    """Writes the file. Where it is a link, what it leads to is replaced, and the link stays."""
    try:
        files.write(_target(path), content)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise RunError(
            f"cannot write {path}: {why}. What was there before is untouched."
        ) from error


def _target(path: Path) -> Path:
    return path.resolve()


def _try(target: Path) -> None:
    """Makes and removes a file beside the target."""
    beside = target.with_name(f".{uuid.uuid4().hex}")
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    beside.unlink()
