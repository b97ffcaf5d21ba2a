"""What a sweep costs beyond its trainings: planning, keys, locks, store, progress.

The same blocks are run twice in turns: by the engine into a fresh store, and by a hand-written
loop that calls the compiled programs from as many threads and keeps nothing. The difference is the
engine's own cost. Then the same tiny cells ten times over, each number of cells in a process of its
own: time should grow in proportion and memory hardly. Last, the fixed cost of a run: one tiny call,
from planning to the Dataset, into a fresh store and again from that store.

With `--files` instead: what a `check` with nothing missing costs in a store of so many small files.

    python benchmarks/overhead.py
    python benchmarks/overhead.py --cells 20000    # the large sweep (default 100,000)
    python benchmarks/overhead.py --files 10000
    python benchmarks/overhead.py --fixed
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from provingground import api, dispatch, machine, planning
from provingground.engine import Job
from provingground.store import Store

TINY: dict[str, Any] = dict(samples=40, steps=11)
LONG: dict[str, Any] = dict(samples=200, dim=64, steps=8000)  # about 5 ms a cell


def job(store: str, points: int, seeds: int, **settings: Any) -> Job:
    noise = [float(v) for v in np.linspace(0.5, 2, points)]
    return planning.job("toy/risk", seeds=seeds, store=store, settings={**settings, "noise": noise})


def by_hand(planned: Job) -> float:
    """Seconds of the trainings alone, from as many threads as the engine takes."""
    blocks = planned.blocks
    start = time.perf_counter()
    with ThreadPoolExecutor(planned.where.workers) as pool:
        list(pool.map(planned.compute, blocks))
    return time.perf_counter() - start


def by_engine(store: str, *size: int, **settings: Any) -> float:
    """Seconds of planning, running and storing."""
    start = time.perf_counter()
    dispatch.run(job(store, *size, **settings))
    return time.perf_counter() - start


def compare(name: str, points: int, seeds: int, repetitions: int, settings: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as store:
        planned = job(store, points, seeds, **settings)
        planned.compute(planned.blocks[0])
        pairs = []
        for _ in range(repetitions):
            with tempfile.TemporaryDirectory() as fresh:
                pairs.append((by_hand(planned), by_engine(fresh, points, seeds, **settings)))
    cells = points * seeds
    hand = np.array([a for a, _ in pairs])
    extra = np.array([b - a for a, b in pairs])
    print(
        f"{name}: {cells} cells, {1e3 * np.median(hand) / cells:.2f} ms each; engine on top: "
        f"{1e6 * np.median(extra) / cells:.0f} us a cell "
        f"({1e6 * extra.min() / cells:.0f} to {1e6 * extra.max() / cells:.0f}), "
        f"{100 * np.median(extra / hand):.1f}% "
        f"({100 * (extra / hand).min():.1f} to {100 * (extra / hand).max():.1f})"
    )


def sweep(cells: int) -> None:
    """Runs a sweep of tiny cells and tells its seconds and the peak of memory."""
    with tempfile.TemporaryDirectory() as store:
        planned = job(store, 48, 1, **TINY)
        planned.compute(planned.blocks[0])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = by_engine(store, cells // 240 * 24, 10, **TINY)  # whole blocks of 24
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([seconds, before / 1024, after / 1024]))


def growth(cells: int) -> None:
    for count in (cells // 10, cells):
        command = [sys.executable, __file__, "--sweep", str(count)]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds, before, after = json.loads(told.splitlines()[-1])
        print(
            f"{count} tiny cells: {seconds:.1f} s, {1e6 * seconds / count:.0f} us each; memory "
            f"{after:.0f} MiB at its peak, {after - before:.0f} MiB over that of one call"
        )


def fixed(repetitions: int) -> None:
    """Prints what a run costs whatever its size: one block of one program."""

    def once(store: str) -> float:
        start = time.perf_counter()
        settings = dict(TINY, samples=[40], noise=[0.5, 1.0])
        api.run("toy/risk", seeds=2, store=store, progress=False, settings=settings)
        return time.perf_counter() - start

    times: list[tuple[float, float]] = []
    for _ in range(repetitions + 2):
        with tempfile.TemporaryDirectory() as store:
            times.append((once(store), once(store)))
    for name, seconds in zip(
        ("into a fresh store", "all stored"), zip(*times[2:], strict=True), strict=True
    ):
        ms = 1e3 * np.array(seconds)
        print(f"one run, {name}: {np.median(ms):.1f} ms ({ms.min():.1f} to {ms.max():.1f})")


def one_file_per_cell(store: Store) -> int:
    """Cuts the chunks of the toy study into files of one cell; how many there are."""
    there = list(store.chunks("toy"))
    for chunk in there:
        dims = {"train_loss": ("step",), "step": ("step",)}
        for row in range(len(chunk.cells)):
            one = slice(row, row + 1)
            probes = {n: (dims.get(n, ()), a[one]) for n, a in chunk.probes.items()}
            store.put("toy", chunk.cells[one], probes, chunk.about)
        if len(chunk.cells) > 1:
            chunk.path.unlink()
    return len(list((store.path / "toy").iterdir()))


def check(store: Store, seeds: int) -> float:
    """Seconds of CPU that `proving check` takes when nothing is missing, imports included."""
    command = [sys.executable, "-m", "provingground.cli", "check", "toy/risk"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [*command, "--seeds", str(seeds), "--store", str(store.path)],
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def many_files(files: int, repetitions: int) -> None:
    seeds = -(-files // 15)  # on a grid of 15 points
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        api.run("toy/risk", seeds=seeds, store=store, progress=False)
        few = len(list((store.path / "toy").iterdir()))
        times = [[check(store, seeds) for _ in range(repetitions)]]
        many = one_file_per_cell(Store(store.path))
        times.append([check(store, seeds) for _ in range(repetitions)])
    for count, seconds in zip((few, many), times, strict=True):
        print(
            f"check of {15 * seeds} stored cells in {count} files: {np.median(seconds):.2f} s of "
            f"CPU ({min(seconds):.2f} to {max(seconds):.2f}), imports included"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--files", type=int, help="only the cost of a check with so many files")
    parser.add_argument("--fixed", action="store_true", help="only the fixed cost of a run")
    parser.add_argument("--sweep", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.files:
        many_files(args.files, args.repetitions)
        return
    if args.sweep:
        sweep(args.sweep)
        return
    if args.fixed:
        fixed(20)
        return
    print(f"{machine.here()}\n")
    compare("long cells", 96, 8, args.repetitions, LONG)
    compare("tiny cells", 480, 10, args.repetitions, TINY)
    growth(args.cells)
    fixed(20)


if __name__ == "__main__":
    main()
