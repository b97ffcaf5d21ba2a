"""Real processes of the command line: started, watched, waited for, and never left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
import xarray as xr

from provingground.store import Store

HERE = Path(__file__).parent
CELLS = 24
SWEEP = ["crashing/first", "--lanes", "1"]
SECONDS = 150.0  # no process takes longer, on however busy a machine


class End(NamedTuple):
    """What became of a process."""

    code: int
    told: str  # on stderr
    seconds: float  # since it was waited for


class Running:
    """A process of `proving`, in a session of its own.

    Cells take `seconds`, those of the larger rates `long`; the first of these makes the file
    `mark`. If `tame`, no cell does harm.
    """

    def __init__(
        self,
        *args: object,
        sabotage: str = "",
        seconds: float = 0.0,
        long: float | None = None,
        mark: Path | None = None,
        tame: bool = False,
    ) -> None:
        start = [str(HERE / "sabotage.py"), sabotage] if sabotage else ["-m", "provingground.cli"]
        self.process = subprocess.Popen(
            [sys.executable, *start, *map(str, args)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={
                **os.environ,
                "PROVING_STUDIES": str(HERE / "crashing"),
                "CRASHING_SECONDS": f"{seconds} {seconds if long is None else long}",
                "CRASHING_MARK": str(mark or ""),
                "CRASHING_TAME": "yes" if tame else "",
            },
        )

    def until(self, there: Callable[[], object]) -> None:
        """Waits for something that comes to be while the process runs."""
        end = time.monotonic() + SECONDS
        while not there():
            assert self.process.poll() is None, f"it ended: {self.end()}"
            assert time.monotonic() < end, "it takes too long"
            time.sleep(0.01)

    def send(self, number: signal.Signals, everyone: bool = False) -> None:
        """Sends a signal, maybe to its children too, as a terminal does."""
        assert self.process.poll() is None
        (os.killpg if everyone else os.kill)(self.process.pid, number)

    def end(self) -> End:
        start = time.monotonic()
        _, told = self.process.communicate(timeout=SECONDS)
        return End(self.process.returncode, told, time.monotonic() - start)

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def left(self) -> list[psutil.Process]:
        """Processes of its session that are alive (after a while in which they may end)."""
        end = time.monotonic() + 10
        while (alive := _of_session(self.process.pid)) and time.monotonic() < end:
            time.sleep(0.05)
        return alive

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
            self.process.communicate(timeout=10)


def _of_session(number: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getsid(process.pid) == number and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


# ------------------------------------------------------------------------ what is stored


def cells(store: Path, study: str = "crashing") -> Counter[bytes]:
    """How often each cell is stored."""
    return Counter(bytes(cell) for chunk in Store(store).chunks(study) for cell in chunk.cells)


def files(store: Path) -> dict[str, int]:
    """The files of the study and when they were written."""
    return {p.name: p.stat().st_mtime_ns for p in (store / "crashing").glob("*.nc")}


def locks(store: Path) -> list[str]:
    """Locks, without the file of a process that they link to."""
    found = (store / "locks").iterdir() if (store / "locks").is_dir() else ()
    return [path.name for path in found if not path.name.startswith(".")]


def temporary(store: Path) -> list[str]:
    return [path.name for path in store.rglob("*.tmp")]


def nothing_left(store: Path) -> bool:
    """Whether neither locks nor temporary files are there."""
    return not list((store / "locks").iterdir()) and not temporary(store)


def read(path: Path) -> xr.Dataset:
    """A Dataset that a run wrote, apart from the time it took."""
    with xr.open_dataset(path, engine="scipy") as ds:
        found = ds.load()
    del found.attrs["seconds"]
    return found
