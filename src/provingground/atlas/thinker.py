"""The theory of a study at settings that a page asks for, in a process with bounds.

Theories are functions of anybody's, and some take as much time and memory as a training of the same
size: one that takes too much of either must end, and leave the server as it is.

    python -m provingground.atlas.thinker

answers each line, what `/api/conditions` takes, with a line: {"told": ...} or {"wrong": why}.
"""

import asyncio
import contextlib
import faulthandler
import json
import os
import sys
from pathlib import Path
from typing import Any

from provingground.atlas import asking, processes
from provingground.errors import InputError, RunError

MODULE = "provingground.atlas.thinker"
SECONDS = 20.0
SECONDS_TO_START = 120.0  # on a very busy machine
BYTES = 2**31  # besides what it takes to start


class Thinker:
    """Answers one request after the other."""

    def __init__(self) -> None:
        self.process: processes.Process | None = None
        self.turn = asyncio.Lock()

    async def conditions(self, body: Any) -> Any:
        """What the theory says, or an error that says why it says nothing."""
        async with self.turn:
            try:
                process = await self._started()
                told = await self._answer(process, body)
            except BaseException:
                await self.close()
                raise
        if "wrong" in told:
            raise InputError(told["wrong"]) if told["input"] else RunError(told["wrong"])
        return told["told"]

    async def _started(self) -> processes.Process:
        """The process, started where there is none."""
        if self.process is None:
            self.process = await processes.started(MODULE)
            await _line(self.process, SECONDS_TO_START)
        return self.process

    async def _answer(self, process: processes.Process, body: Any) -> dict[str, Any]:
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps(body).encode() + b"\n")
            await process.stdin.drain()
        return json.loads(await _line(process, SECONDS))

    async def close(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            await processes.killed(process)


async def _line(process: processes.Process, seconds: float) -> bytes:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(seconds):
            line = await process.stdout.readline()
    except TimeoutError:
        says = f"the theory takes over {seconds:g} s at these settings; `proving conditions` waits"
        raise RunError(says) from None
    if not line:
        raise RunError("the theory takes too much memory at these settings, or ended by itself")
    return line


# ------------------------------------------------------------------------- the process


def main() -> None:
    """Answers until nobody asks any more."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a study prints is no answer
    from provingground import api  # noqa: F401  what takes long is imported before the first line

    _bounded(BYTES)
    print(json.dumps({"ready": True}), file=out, flush=True)
    with open(os.devnull, "w") as nowhere:
        for line in sys.stdin:
            # It ends by itself, too, where no server is left to end it.
            faulthandler.dump_traceback_later(SECONDS + 1, exit=True, file=nowhere)
            told = _answer(json.loads(line))
            faulthandler.cancel_dump_traceback_later()
            print(json.dumps(told), file=out, flush=True)


def _answer(body: Any) -> dict[str, Any]:
    try:
        return {"told": asking.conditions(body)}
    except (InputError, RunError) as error:
        return {"wrong": str(error), "input": isinstance(error, InputError)}
    except MemoryError:
        wrong = "the theory takes too much memory at these settings"
    except Exception as error:
        wrong = f"the theory cannot be computed at these settings: {type(error).__name__}: {error}"
    return {"wrong": wrong[:2000], "input": False}


def _bounded(size: int) -> None:
    """Lets this process take no more than some bytes besides those that it has, on Linux."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[5])
        most = pages * resource.getpagesize() + size
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


if __name__ == "__main__":
    main()
