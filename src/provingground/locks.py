"""Locks of processes on blocks of work, as files that only one of them can make.

A lock names host, process and boot of its owner; that of a dead owner is taken over. All locks of
a process are links to one file, so that making one writes nothing and renewing all is one call.
What is in the folder and is no lock is never removed.
"""

import contextlib
import hashlib
import json
import os
import re
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from provingground import files
from provingground.errors import StoreError
from provingground.terminal import plain

STALE_SECONDS = 600  # of an owner on another machine, who renews his locks every minute
BROKEN_SECONDS = 5  # in which a lock is written
OLD_LEFTOVER_SECONDS = 86_400  # of a writer on another machine
LARGEST = 4096

NAME = re.compile(r"\.*[0-9a-f]{32}(\.[0-9a-f]{16})*")  # of a lock, or of the removal of one
TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.(?P<host>.+)\.(?P<pid>[0-9]+)\.(?P<started>[0-9]*)\.tmp")
ENTRIES = {"host": str, "boot": str, "pid": int, "started": (str, type(None)), "token": str}
CHECKSUM = "checksum"  # one more entry, of these


class Locks:
    """The locks in a folder. `set_aside` is told of a broken one, and why it is."""

    def __init__(self, folder: Path, set_aside: Callable[[Path, str], None]) -> None:
        self.folder = folder
        self.set_aside = set_aside
        self.own = folder / f".{uuid.uuid4().hex}"  # what the locks of this process link to
        self._inode = -1  # of that file
        self._watched: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> bool:
        """Takes a lock; False if a living process has it."""
        path = self.folder / name
        for _ in range(3):
            try:
                self._make(path)
                return True
            except FileExistsError:
                if not self._remove_dead(path):
                    return False
        return False

    def _remove_dead(self, path: Path) -> bool:
        """Removes the lock of a dead owner; False if a living one has it, or is removing it.

        Between the look at a lock and its removal another process may have replaced it by its
        own, so the removal of this very text is locked too, and the text looked at once more.
        """
        if (found := _read(path)) is None:
            return True
        text, renewed = found
        if self.lives(path, text, renewed):
            return False
        removal = f".{path.name}.{hashlib.sha256(text).hexdigest()[:16]}"
        if not self.take(removal):
            return False
        try:
            if (found := _read(path)) is not None and found[0] == text:
                if owner(text) is None:
                    self.set_aside(path, "not what a lock says")
                else:
                    path.unlink()
        finally:
            self.release(removal)
        return True

    def _make(self, path: Path) -> None:
        for first in (True, False):
            try:
                os.link(self.own, path)
                return
            except FileExistsError:
                raise
            except OSError:  # no file to link to yet, or a file system without links
                if first:
                    self._write_own()
        with open(path, "x") as file:
            file.write(me(os.getpid()))

    def _write_own(self) -> None:
        files.write(self.own, me(os.getpid()).encode(), sync=False, tag=tag())
        self._inode = os.lstat(self.own).st_ino

    def release(self, name: str) -> None:
        """Gives a lock of this process back."""
        path = self.folder / name
        with contextlib.suppress(OSError, StoreError):  # a disk that went away has no locks either
            mine = os.lstat(path).st_ino == self._inode
            if mine or (_read(path) or (b"",))[0] == me(os.getpid()).encode():
                path.unlink()

    def sign(self, name: str) -> None:
        """Leaves a receipt for another process's lock: what it stands for is stored.

        The receipt is as good as a lock of the same owner, who removes both.
        """
        if holder := self.holder(name):  # else its owner has gone on without it
            with contextlib.suppress(OSError):
                path = self.folder / receipt(name)
                files.write(path, holder.encode(), sync=False, tag=tag())
                if self.holder(name) != holder:  # or has gone on meanwhile, and removed both
                    path.unlink()

    def is_signed(self, name: str) -> bool:
        """Whether there is a receipt for a lock, of its present owner."""
        holder = self.holder(name)
        return bool(holder) and self.holder(receipt(name)) == holder

    def renew(self, names: list[str]) -> None:
        """Tells owners of other machines that this one still works."""
        for name in (self.own.name, *names):
            with contextlib.suppress(OSError):
                os.utime(self.folder / name, follow_symlinks=False)

    def holder(self, name: str) -> str:
        """What a lock says, which no other process's does; empty if there is none."""
        try:
            return (_read(self.folder / name) or (b"", 0.0))[0].decode(errors="replace")
        except StoreError:
            return ""

    def clean(self) -> None:
        """Removes what dead processes left. An OSError where nothing can be written."""
        self._write_own()
        for path in [self.folder / name for name in os.listdir(self.folder)]:
            if NAME.fullmatch(path.name):
                with contextlib.suppress(OSError, StoreError):
                    self._remove_dead(path)
        self.close()

    def left_over(self, name: str) -> bool:
        """Whether a file in the folder is the lock of a process that is no more."""
        if not NAME.fullmatch(name):
            return False
        with contextlib.suppress(OSError, StoreError):
            if (found := _read(self.folder / name)) is not None:
                return not self.lives(self.folder / name, *found)
        return False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.own.unlink(missing_ok=True)

    def lives(self, path: Path, text: bytes, renewed: float) -> bool:
        """Whether the owner of a lock that says so is at work."""
        whose = owner(text)
        if whose is None:  # being written just now, or broken
            return not self._unchanged(path, renewed, BROKEN_SECONDS)
        mine = json.loads(me(os.getpid()))
        if whose["host"] != mine["host"]:
            return not self._unchanged(path, renewed, STALE_SECONDS)
        started = _started(whose["pid"])
        return whose["boot"] == mine["boot"] and started is not None and whose["started"] == started

    def _unchanged(self, path: Path, renewed: float, seconds: float) -> bool:
        """Whether a lock was not renewed for so long, whatever the clocks say.

        Its age is taken by the clock of the file system, which also wrote its time; if that clock
        was set back, the lock has to stay as it is for so long while this process watches.
        """
        now = time.monotonic()
        seen, since = self._watched.get(str(path), (None, now))
        if seen != renewed:
            since = now
            self._watched[str(path)] = renewed, now
        return _clock(path.parent) - renewed > seconds or now - since > seconds


def receipt(name: str) -> str:
    """The name of the receipt for a lock."""
    return f"{name}.{'0' * 16}"


def owner(text: bytes) -> dict[str, Any] | None:
    """Whom a lock names; None if the text is none of a lock's."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.pop(CHECKSUM, None) != _checksum(found):
        return None
    return found if is_owner(found) else None


def is_owner(found: Any) -> bool:
    """Whether these are the entries of a lock."""
    if not isinstance(found, dict) or set(found) != set(ENTRIES):
        return False
    right = all(isinstance(found[name], kind) for name, kind in ENTRIES.items())
    return right and found["pid"] is not True and found["pid"] > 0


def signed(whose: Mapping[str, Any]) -> str:
    """What the lock of an owner says."""
    return json.dumps({**whose, CHECKSUM: _checksum(whose)})


def _checksum(whose: Mapping[str, Any]) -> str:
    """So that a damaged lock is not taken for that of a living owner elsewhere."""
    return hashlib.sha256(json.dumps(dict(whose), sort_keys=True).encode()).hexdigest()[:16]


def _read(path: Path) -> tuple[bytes, float] | None:
    """What a lock says, and when it was last renewed; None if there is none."""
    try:
        return files.read(path, LARGEST), os.lstat(path).st_mtime
    except FileNotFoundError:
        return None
    except files.TooLarge:
        return b"", os.lstat(path).st_mtime
    except files.NotPlain:
        raise StoreError(
            f"{plain(str(path))} stands where a lock should be and is not a plain file; move it "
            "away"
        ) from None
    except OSError as error:
        raise StoreError(f"cannot read the lock {plain(str(path))}: {error.strerror}") from error


@cache
def me(pid: int) -> str:
    """This process, told apart from all others, as the text of its locks."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return signed(
        {
            "host": socket.gethostname(),
            "boot": boot.read_text().strip() if boot.exists() else "",
            "pid": pid,
            "started": _started(pid),
            "token": uuid.uuid4().hex,
        }
    )


def tag() -> str:
    """This process, as a part of the names of its temporary files."""
    mine = json.loads(me(os.getpid()))
    return f"{mine['host']}.{mine['pid']}.{mine['started'] or ''}"


def left_over(path: Path) -> bool:
    """Whether a file is a temporary one of ours that nobody writes to any more."""
    parts = TEMPORARY.fullmatch(path.name)
    if parts is None or not files.is_plain(path):
        return False
    if parts["host"] == socket.gethostname():
        return _started(int(parts["pid"])) != parts["started"]
    return _clock(path.parent) - os.lstat(path).st_mtime > OLD_LEFTOVER_SECONDS


def _clock(folder: Path) -> float:
    """The time by the clock of a folder's file system; this machine's where none can be had."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()


def _started(pid: int) -> str | None:
    """When a process of this machine started, so that a reused number is not taken for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        if Path("/proc/self").exists():
            return None
    try:  # no /proc: the number alone must do
        os.kill(pid, 0)
        return ""
    except PermissionError:  # another user's
        return ""
    except (OSError, OverflowError):
        return None
