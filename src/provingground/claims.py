"""Claims of processes on blocks of work, as files that only one of them can make.

A claim names host, process and boot of its owner; that of a dead owner is taken over. All claims
of a process are links to one file, so that making one writes nothing and renewing all is one call.
"""

import contextlib
import hashlib
import json
import os
import socket
import tempfile
import time
import uuid
from functools import cache
from pathlib import Path

STALE_SECONDS = 600  # of an owner on another machine, who renews his claims every minute
OLD_LEFTOVER_SECONDS = 86_400  # of a writer on another machine


class Claims:
    """The claims in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = folder / f".{uuid.uuid4().hex}"  # what the claims of this process link to
        self._watched: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> bool:
        """Takes a claim; False if a living process has it."""
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
        """Removes the claim of a dead owner; False if a living one has it, or is removing it.

        Between the look at a claim and its removal another process may have replaced it by its
        own, so the removal of this very text is claimed too, and the text looked at once more.
        """
        if (found := _read(path)) is None:
            return True
        text, renewed = found
        if self.lives(path, text, renewed):
            return False
        removal = f".{path.name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        if not self.take(removal):
            return False
        try:
            if (found := _read(path)) is not None and found[0] == text:
                path.unlink()
        finally:
            self.release(removal)
        return True

    def _make(self, path: Path) -> None:
        if not self.own.exists():
            self.own.write_text(me(os.getpid()))
        try:
            os.link(self.own, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with open(path, "x") as file:
                file.write(me(os.getpid()))

    def release(self, name: str) -> None:
        with contextlib.suppress(OSError):  # a disk that went away has no claims either
            (self.folder / name).unlink(missing_ok=True)

    def renew(self, names: list[str]) -> None:
        """Tells owners of other machines that this one still works."""
        for name in (self.own.name, *names):
            with contextlib.suppress(OSError):
                os.utime(self.folder / name)

    def holder(self, name: str) -> str:
        """What a claim says, which no other process's does; empty if there is none."""
        return (_read(self.folder / name) or ("", 0.0))[0]

    def clean(self) -> None:
        """Removes what dead processes left."""
        for path in list(self.folder.iterdir()):
            with contextlib.suppress(OSError):
                self._remove_dead(path)
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.own.unlink(missing_ok=True)

    def lives(self, path: Path, text: str, renewed: float) -> bool:
        """Whether the owner of a claim that says so is at work."""
        try:
            owner = json.loads(text)
        except ValueError:  # being written just now, or broken
            owner = None
        if not isinstance(owner, dict) or not {"host", "boot", "pid", "started"} <= set(owner):
            return not self._unchanged(path, renewed, 5)
        mine = json.loads(me(os.getpid()))
        if owner["host"] != mine["host"]:
            return not self._unchanged(path, renewed, STALE_SECONDS)
        started = _started(owner["pid"])
        return owner["boot"] == mine["boot"] and started is not None and owner["started"] == started

    def _unchanged(self, path: Path, renewed: float, seconds: float) -> bool:
        """Whether a claim was not renewed for so long, whatever the clocks say.

        Its age is taken by the clock of the file system, which also wrote its time; if that clock
        was set back, the claim has to stay as it is for so long while this process watches.
        """
        now = time.monotonic()
        seen, since = self._watched.get(str(path), (None, now))
        if seen != renewed:
            since = now
            self._watched[str(path)] = renewed, now
        return _clock(path.parent) - renewed > seconds or now - since > seconds


def _read(path: Path) -> tuple[str, float] | None:
    """What a claim says, and when it was last renewed; None if there is none."""
    try:
        return path.read_text(errors="replace"), path.stat().st_mtime
    except OSError:
        return None


@cache
def me(pid: int) -> str:
    """This process, told apart from all others, as the text of its claims."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return json.dumps(
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
    return f"{mine['host']}.{mine['pid']}.{mine['started']}"


def writer_lives(temporary: Path) -> bool:
    """Whether a temporary file may still be written to."""
    parts = temporary.name.rsplit(".", 3)
    host, pid = parts[0].split(".", 2)[-1], parts[1]
    if host == socket.gethostname() and pid.isdecimal():
        return _started(int(pid)) == parts[2]
    return _clock(temporary.parent) - temporary.stat().st_mtime < OLD_LEFTOVER_SECONDS


def _clock(folder: Path) -> float:
    """The time by the clock of a folder's file system; this machine's where none can be had."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()


def _started(pid: int) -> str | None:
    """When a process of this machine started, so that a reused number is not taken for it."""
    if not isinstance(pid, int):
        return None
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
