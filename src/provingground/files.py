"""Files: read only where they are plain and not too large, written whole or not at all."""

import contextlib
import os
import stat
import uuid
from pathlib import Path

# Without these (Windows) a link is followed, and a pipe waited for.
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class NotPlain(ValueError):
    """A link, pipe, device or folder where a file should be, or a file of more than the limit."""


class TooLarge(NotPlain):
    """A plain file of more than the limit."""


def read(path: Path | str, limit: int) -> bytes:
    """The content of a plain file of at most `limit` bytes.

    Links are not followed and pipes not waited for: these are `NotPlain`. What the system refuses
    (no such file, no permission, a broken disk) is an `OSError`, and says nothing of the content.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):  # before it is opened: a device may act on that
        raise NotPlain("not a plain file")
    file = os.open(path, os.O_RDONLY | _SAFE)
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            raise NotPlain("not a plain file")
        if about.st_size > limit:
            raise TooLarge(f"larger than {limit} bytes")
        content = os.read(file, about.st_size)
        while len(content) < about.st_size and (more := os.read(file, about.st_size)):
            content += more
        return content
    finally:
        os.close(file)


def is_plain(path: Path) -> bool:
    """Whether there is a file, and no link to one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether there is a folder, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def write(path: Path, content: bytes, *, sync: bool = True, tag: str = "") -> None:
    """Writes a file whole or not at all; `sync` also keeps it through a power cut.

    `tag` is a part of the name of the temporary file, by which it can be told whose it is.
    """
    temporary = path.with_name(f".{uuid.uuid4().hex}.{tag}.tmp" if tag else f".{uuid.uuid4().hex}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
