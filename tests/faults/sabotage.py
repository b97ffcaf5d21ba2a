"""The command line in a process in which something goes wrong.

`python sabotage.py HOW run STUDY/EXPERIMENT ...`, where HOW is a function of this file, maybe with
a text for it (`HOW:TEXT`).
"""

import builtins
import errno
import os
import signal
import sys
import time
from pathlib import Path

from provingground import cli, dispatch, locks
from provingground.engine import Job


def killed_before_renaming(chunk: str) -> None:
    """Dies between writing and renaming the so many-th chunk."""
    rename, left = os.replace, [int(chunk)]

    def replace(source, target) -> None:
        if str(target).endswith(".nc"):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
        rename(source, target)

    os.replace = replace


def counting(folder: str) -> None:
    """Starts when another process is ready to, and tells of every chunk it computes."""
    run, chunk = dispatch.run, Job.chunk

    def together(*args) -> None:
        (Path(folder) / str(os.getpid())).touch()
        end = time.monotonic() + 120
        while len(list(Path(folder).iterdir())) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        run(*args)

    def counted(self, blocks, cells):
        print(f"computed {len(cells)} cells", file=sys.stderr, flush=True)
        return chunk(self, blocks, cells)

    dispatch.run = together
    Job.chunk = counted


def read_only(folder: str) -> None:
    """A folder in which nothing can be written, made, renamed or removed."""

    def refuse(path) -> None:
        if not isinstance(path, int) and Path(os.fsdecode(path)).is_relative_to(folder):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), os.fsdecode(path))

    def guarded(call):
        def checked(path, *args, **options):
            refuse(path)
            return call(path, *args, **options)

        return checked

    reading = builtins.open

    def opened(file, mode="r", *args, **options):
        if set(mode) & set("wxa+"):
            refuse(file)
        return reading(file, mode, *args, **options)

    for name in ("mkdir", "unlink", "replace", "rename", "link", "utime", "rmdir"):
        setattr(os, name, guarded(getattr(os, name)))
    builtins.open = opened


def read_only_from(text: str) -> None:
    """A disk that is mounted anew, for reading only, when the so many-th chunk is written."""
    chunk, _, folder = text.partition(":")
    rename, left = os.replace, [int(chunk)]

    def replace(source, target) -> None:
        if str(target).endswith(".nc"):
            left[0] -= 1
            if not left[0]:
                read_only(folder)
        os_replace = os.replace if left[0] <= 0 else rename
        os_replace(source, target)

    os.replace = replace


def clock_set_back(chunk: str) -> None:
    """The clock is set back by an hour, and then forward again, while chunks are written."""
    now, rename, written = time.time, os.replace, [0]

    def replace(source, target) -> None:
        written[0] += str(target).endswith(".nc")
        rename(source, target)

    def back() -> float:
        return now() - 3600 * (int(chunk) <= written[0] < 2 * int(chunk))

    os.replace = replace
    time.time = back


def locks_from_the_future(store: str) -> None:
    """A machine whose clock was ahead has locked some blocks and died.

    Ten minutes are made a few seconds."""
    locks.STALE_SECONDS = 3
    run = dispatch.run

    def late(job: Job, *args) -> None:
        job.store.open()
        owner = locks.owner(locks.me(os.getpid()).encode()) or {}
        for block in job.blocks[::5]:
            path = Path(store) / "locks" / dispatch._name(job.cells(block))
            path.write_text(locks.signed(owner | {"host": "elsewhere", "token": "another"}))
            os.utime(path, (time.time() + 3600, time.time() + 3600))
        run(job, *args)

    dispatch.run = late


if __name__ == "__main__":
    how, _, what = sys.argv.pop(1).partition(":")
    globals()[how](what)
    cli.main()
