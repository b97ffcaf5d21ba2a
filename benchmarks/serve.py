"""Fifty readers of the atlas at once, beside cells that are trained live.

    python benchmarks/serve.py [--readers 50] [--seconds 60] [--store FOLDER] [--target STUDY/NAME]

starts `proving serve` on this machine and reads from it on the loopback address alone. It prints
how long pages took, how many errors there were, and how the memory of the server grew, and fails
where that is more than the atlas promises.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np

TARGET = "benign_overfitting/fig1b"
MOVED = {"benign_overfitting/fig1b": ("samples=8", "snr"), "toy/risk": ("samples=30", "noise")}
PAUSE = 0.25  # seconds between the pages of a reader
PROMISED = {"errors": 0, "p95, seconds": 0.5, "memory grew by, MiB": 50, "largest deviation": 1e-5}


def paths(target: str) -> list[str]:
    """What readers open."""
    own = ("index.html", "data.js", "cells/0.js")
    tops = ["", "claims.html", "findings.html", f"{target.partition('/')[0]}/index.html"]
    return [*tops, "static/core.js", "static/atlas.css", *(f"{target}/{name}" for name in own)]


def resident(pid: int) -> float:
    """The memory that a process has, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def busy(pid: int) -> float:
    """The seconds of computing that a process took."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def reader(port: int, target: str, until: float, rng: np.random.Generator) -> list:
    """Opens one page after the other; (path, seconds, status) of each.

    It reads bytes and nothing else, since fifty browsers would not share its processor.
    """
    found, open_to = [], paths(target)
    take, give = await asyncio.open_connection("127.0.0.1", port)
    head = f"Host: 127.0.0.1:{port}\r\nAccept-Encoding: gzip\r\n\r\n"
    while time.monotonic() < until:
        path = open_to[int(rng.integers(len(open_to)))]
        start = time.perf_counter()
        try:
            give.write(f"GET /{path} HTTP/1.1\r\n{head}".encode())
            told = (await take.readuntil(b"\r\n\r\n")).lower()
            status = int(told.split(b" ", 2)[1])
            length = told.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await take.readexactly(int(length))
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            status = type(error).__name__
            take, give = await asyncio.open_connection("127.0.0.1", port)
        found.append((path, time.perf_counter() - start, status))
        await asyncio.sleep(PAUSE * float(rng.uniform(0.5, 1.5)))
    give.close()
    return found


async def trainer(
    client: httpx.AsyncClient, target: str, until: float
) -> tuple[int, int, list[float]]:
    """Has one cell after the other trained and watches it; frames, cells and deviations."""
    frames, cells, same = 0, 0, []
    while time.monotonic() < until:
        place, moved = MOVED[target]
        value = round(3 + 4 * (time.monotonic() % 1), 4)
        body = {"experiment": target, "settings": [place, f"{moved}={value}"], "seeds": "1"}
        told = (await client.post("/api/jobs", json=body)).json()
        async with client.stream("GET", f"/api/jobs/{told['job']}/events") as answer:
            async for line in answer.aiter_lines():
                if not line.startswith("data: {") or line == "data: {}":
                    continue
                event = json.loads(line.removeprefix("data: "))
                frames += event["event"] == "frame"
                cells += event["event"] == "done"
                if event["event"] == "same":
                    same.append(event["deviation"])
    return frames, cells, same


async def sleeper(port: int, until: float) -> int:
    """A client that asks for pages and takes none of them; how often it was sent away."""
    away = 0
    while time.monotonic() < until:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        host = f"Host: 127.0.0.1:{port}\r\n\r\n"
        with suppress(OSError):
            for _ in range(200):
                writer.write(f"GET /claims.html HTTP/1.1\r\n{host}".encode())
                await asyncio.wait_for(writer.drain(), 1)
            await asyncio.sleep(min(25.0, max(0.0, until - time.monotonic())))
        away += writer.is_closing()
        writer.close()
    return away


async def measured(address: str, pid: int, target: str, readers: int, seconds: float) -> dict:
    ours = {"origin": address}
    limits = httpx.Limits(max_connections=readers + 8)
    async with httpx.AsyncClient(
        base_url=address, headers=ours, timeout=30, limits=limits
    ) as client:
        start = time.perf_counter()
        (await client.get("/")).raise_for_status()
        first = time.perf_counter() - start
        for path in paths(target):  # as after the first reader
            await client.get(f"/{path}")
        waited = time.monotonic() + 300
        unread = 'id="unread"'
        while unread in (await client.get("/claims.html")).text and time.monotonic() < waited:
            await asyncio.sleep(1)
        before, computed = resident(pid), busy(pid)
        until = time.monotonic() + seconds
        port = int(address.rpartition(":")[2])
        tasks = [reader(port, target, until, np.random.default_rng(n)) for n in range(readers)]
        slow = asyncio.create_task(sleeper(port, until))
        frames, cells, same = 0, 0, []
        live = asyncio.create_task(trainer(client, target, until))
        found = [one for some in await asyncio.gather(*tasks) for one in some]
        frames, cells, same = await live
        after, computed = resident(pid), busy(pid) - computed
        slow.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await slow
        known = (await client.get("/api/jobs")).json()["jobs"]
    took = np.array([each[1] for each in found])
    return {
        "first page, seconds": round(first, 3),
        "pages": len(found),
        "errors": sum(each[2] != 200 for each in found),
        "which": dict(Counter(f"{path}: {status}" for path, _, status in found if status != 200)),
        "median, seconds": round(float(np.median(took)), 4),
        "p95, seconds": round(float(np.quantile(took, 0.95)), 4),
        "slowest, seconds": round(float(took.max()), 3),
        "computing a page, milliseconds": round(1000 * computed / max(len(found), 1), 2),
        "memory before, MiB": round(before, 1),
        "memory grew by, MiB": round(after - before, 1),
        "live cells": cells,
        "frames": frames,
        "largest deviation": max(same, default=None),
        "jobs remembered": len(known),
    }


def load(
    target: str, readers: int, seconds: float, store: Path, command: Sequence[str] = ()
) -> dict:
    """What is measured of a server of a store, in which the target is put first.

    `command` starts another one than `proving serve`.
    """
    proving = [sys.executable, "-m", "provingground.cli"]
    subprocess.run(
        [*proving, "run", target, "--store", str(store)], check=True, capture_output=True
    )
    served = subprocess.Popen(
        command or [*proving, "serve", "--no-open", "--port", "0", "--store", str(store)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert served.stdout is not None
        address = served.stdout.readline().removeprefix("atlas: ").strip().rstrip("/")
        return asyncio.run(measured(address, served.pid, target, readers, seconds))
    finally:
        served.terminate()
        served.communicate()


def broken(told: dict) -> list[str]:
    """What is more than the atlas promises."""
    return [name for name, most in PROMISED.items() if not (told[name] or 0) <= most]


def main() -> None:
    parser = argparse.ArgumentParser(description="Readers of the atlas at once.")
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--target", choices=MOVED, default=TARGET)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        store = given.store or Path(own) / "store"
        told = load(given.target, given.readers, given.seconds, store)
    for name, value in told.items():
        print(f"{name}: {value}")
    if names := broken(told):
        sys.exit(f"more than is promised: {'; '.join(names)}")


if __name__ == "__main__":
    main()
