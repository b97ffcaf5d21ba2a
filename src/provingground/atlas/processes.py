"""Processes of the server's own: they hear and say lines of JSON, and may be killed at any time."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import Process

LONGEST_LINE = 2**22


async def started(module: str, *arguments: str) -> Process:
    """A module that runs in a process of its own, and in a group with all that it starts."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
        start_new_session=True,
    )


async def killed(process: Process) -> None:
    """Ends a process and all that it started."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL) if os.name == "posix" else process.kill()
    await process.wait()
