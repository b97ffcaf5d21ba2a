"""The benchmark ladder: six workloads, each against what a user would write instead.

    python benchmarks/run.py                    # quick, a few minutes on 2 cores
    python benchmarks/run.py --full             # published and 16 times larger, for a GPU
    python benchmarks/run.py --full --size full # only the published sizes
    python benchmarks/run.py --only W2 W5 --repetitions 5 --json numbers.json

PyTorch is needed for the peers alone; without it ours is timed by itself. W6 needs MNIST; without
it the workload is named as skipped.
"""

import argparse
import datetime
import itertools
import json
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import numpy as np
from benchmarks import (
    early_stopping,
    mixture_recovery,
    noisy_digits,
    online_sgd,
    phase_diagram,
    tiny_networks,
)
from benchmarks.ceilings import ceilings
from benchmarks.ladder import (
    TOLERANCE,
    TORCH,
    Scale,
    Target,
    Timing,
    Workload,
    compiled_in,
    prepared,
    race,
)

from provingground import machine, outputs

SIZES: tuple[Scale, ...] = ("full", "large")  # of a full run
WORKLOADS = {
    w.name: w
    for w in (
        phase_diagram.WORKLOAD,
        tiny_networks.WORKLOAD,
        mixture_recovery.WORKLOAD,
        online_sgd.WORKLOAD,
        early_stopping.WORKLOAD,
        noisy_digits.WORKLOAD,
    )
}
LOOP = "PyTorch loop"
UNITS = {"flops": "GFLOP/s", "bytes": "GB/s copied", "normals": "G normals/s"}


def table(head: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> None:
    """Prints text, first column to the left, numbers to the right, the last one (words) left."""
    widths = [max(len(r[i]) for r in (head, *rows)) for i in range(len(head))]
    last = len(head) - 1

    def line(row: Sequence[str]) -> str:
        cells = [
            c.ljust(w) if i in (0, last) else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip()

    print(line(head))
    if markdown:
        print("|" + "|".join("---" if i in (0, last) else "--:" for i in range(len(head))) + "|")
    for row in rows:
        print(line(row))
    print()


def ratios(ours: Timing, other: Timing) -> list[float]:
    """Paired: each repetition of the other over that of ours."""
    return [b / a for a, b in zip(ours.seconds, other.seconds, strict=True)]


def spread(values: Sequence[float]) -> str:
    return f"{np.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def measure(
    work: Workload, scale: Scale, repetitions: int, limits: dict[str, float], markdown: bool
) -> dict[str, Any]:
    """Choices and agreement of the peers, then the race, of one workload; prints both."""
    title = f"{work.name}, {scale}: {work.says}"
    print(f"{'### ' if markdown else ''}{title}\n")
    rungs, failed = prepared(work, scale)
    gaps = {name: rung.deviation for name, rung in rungs.items()}
    if gaps:
        told = ", ".join(f"{name} {gap:.0e}" for name, gap in gaps.items())
        print(f"Equal weights and data, largest relative deviation from ours: {told}.\n")
    if not max(gaps.values(), default=0) <= TOLERANCE:
        raise SystemExit(f"{work.name}: the peers do not agree with ours within {TOLERANCE:g}")
    times, ds, later = race(work, scale, rungs, repetitions)
    failed |= later
    for name, why in failed.items():
        print(f"Left out: {name} failed here. {why}\n")
    cfg, ours = work.trials(scale)[0][0], times["ours"]
    flops, normals = work.cost(ds, cfg)
    floor = flops / limits["flops"] + normals / limits["normals"]
    trainings = len(work.trials(scale)) * work.trainings_per_cell
    print(
        f"{trainings} trainings, {flops / 1e9:.3g} GFLOP and {normals / 1e6:.3g} million normals: "
        f"{floor:.3g} s at the ceilings, {100 * floor / ours.median:.0f}% of the time of ours. "
        + work.about(ds)
        + "\n"
    )
    table(
        ("", "seconds", "over ours", "compile s", "note"),
        [
            (
                name,
                f"{t.median:.3g}",
                "1" if name == "ours" else spread(ratios(ours, t)),
                f"{t.compile:.1f}" if t.compile else "",
                t.note + (f"; timed on 1/{t.share} of the trainings" if t.share > 1 else ""),
            )
            for name, t in times.items()
        ],
        markdown,
    )
    return {
        "trainings": trainings,
        "deviation": gaps,
        "failed": failed,
        "flops": flops,
        "normals": normals,
        "share_of_ceiling": floor / ours.median,
        "times": {
            n: {"seconds": t.seconds, "compile": t.compile, "note": t.note}
            for n, t in times.items()
        },
        "loop": ratios(ours, times[LOOP]) if LOOP in times else None,
        **best_of(times),
    }


def best_of(times: dict[str, Timing]) -> dict[str, Any]:
    """The fastest rung, and how many times longer than ours it takes."""
    rungs = {n: t for n, t in times.items() if not n.startswith("ours")}
    if not rungs:
        return {"best": None, "best_rung": ""}
    name = min(rungs, key=lambda n: rungs[n].median)
    return {"best": ratios(times["ours"], rungs[name]), "best_rung": name}


def verdict(wanted: float | None, values: list[float] | None) -> str:
    if wanted is None or values is None:
        return "none"
    return f"{wanted:g}: {'met' if np.median(values) >= wanted else 'missed'}"


def mean_ratio(found: dict[str, dict[str, Any]]) -> float | None:
    """The geometric mean over workloads of best rung over ours."""
    ratios = [np.median(f["best"]) for f in found.values() if f["best"] is not None]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def summary(scale: Scale, found: dict[str, dict[str, Any]], markdown: bool) -> None:
    if not found:
        return
    rows = []
    for name, f in found.items():
        # targets are those of the published sizes
        targets = {} if scale == "large" else WORKLOADS[name].targets
        target = targets.get(jax.default_backend(), Target(None, None))
        times = {n: float(np.median(t["seconds"])) for n, t in f["times"].items()}
        rows.append(
            (
                name,
                str(f["trainings"]),
                f"{times['ours']:.3g}",
                "" if f["loop"] is None else spread(f["loop"]),
                verdict(target.loop, f["loop"]),
                "" if f["best"] is None else spread(f["best"]),
                verdict(target.best, f["best"]),
                f"{100 * f['share_of_ceiling']:.2g}%",
                f["best_rung"],
            )
        )
    print(f"{'### ' if markdown else ''}Summary, {scale}\n")
    head = ("", "trainings", "ours s", "loop / ours", "target", "best / ours", "target", "ceiling")
    table((*head, "best rung"), rows, markdown)
    if (mean := mean_ratio(found)) is not None:
        print(f"Geometric mean of best / ours: {mean:.3g}\n")


def machine_line() -> str:
    torch = "no torch: peers are left out"
    if TORCH:
        import torch as installed

        torch = f"torch {installed.__version__} ({installed.get_num_threads()} threads)"
    return (
        f"{platform.machine()}, {machine.here()}, "
        f"jax {jax.__version__}, {torch}, {datetime.date.today()}"
    )


def write(
    file: Path,
    limits: dict[str, Any],
    found: dict[Scale, dict[str, Any]],
    skipped: dict[str, str],
) -> None:
    """What is measured by now, by size, and what is not for want of data."""
    sizes = {s: {"mean_best": mean_ratio(f), "workloads": f} for s, f in found.items()}
    record = {"machine": machine_line(), "ceilings": limits, "skipped": skipped, "sizes": sizes}
    outputs.write(file, json.dumps(record, indent=1).encode())


def bench(
    scales: Sequence[Scale],
    only: Sequence[str] | None = None,
    repetitions: int = 3,
    out: Path | None = None,
    markdown: bool = False,
) -> None:
    """Times the workloads at each size, and tells; the numbers are written after each of them.

    One whose data are not here is skipped, and named before and after the others.
    """
    lacking = {name: WORKLOADS[name].lacks() for name in only or WORKLOADS}
    skipped = {name: why for name, why in lacking.items() if why}
    with tempfile.TemporaryDirectory() as compiled, compiled_in(Path(compiled)):
        print(machine_line() + "\n")
        limits = ceilings()
        for library, at_best in limits.items():
            units = {
                "flops": (1e9, "GFLOP/s"),
                "bytes": (1e9, "GB/s"),
                "normals": (1e6, "M normals/s"),
            }
            told = [f"{v / units[n][0]:.4g} {units[n][1]}" for n, v in at_best.items()]
            print(f"Ceilings, {library}: {', '.join(told)}")
        print()
        tell(skipped)
        found: dict[Scale, dict[str, dict[str, Any]]] = {scale: {} for scale in scales}
        if out:
            write(out, limits, found, skipped)
        for scale, name in itertools.product(scales, [n for n, why in lacking.items() if not why]):
            found[scale][name] = measure(
                WORKLOADS[name], scale, repetitions, limits["jax"], markdown
            )
            if out:
                write(out, limits, found, skipped)
    for scale in scales:
        summary(scale, found[scale], markdown)
    tell(skipped)


def tell(skipped: dict[str, str]) -> None:
    for name, why in skipped.items():
        print(f"{name} is skipped: {why}\n")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="small sizes (the default)")
    sizes.add_argument(
        "--full", action="store_true", help="published and 16 times larger, and torch.compile"
    )
    sizes.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--size", choices=SIZES, help="with --full: only the published or the larger"
    )
    parser.add_argument("--only", nargs="+", choices=list(WORKLOADS), help="some workloads")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", help="write the numbers to this file")
    parser.add_argument("--markdown", action="store_true", help="print tables for a document")
    args = parser.parse_args(argv)
    if args.repetitions < 1:
        parser.error("--repetitions takes whole numbers from 1")
    if args.size and not args.full:
        parser.error("--size goes with --full")
    scales: list[Scale] = ["tiny" if args.tiny else "quick"]
    if args.full:
        scales = [args.size] if args.size else list(SIZES)
    bench(scales, args.only, args.repetitions, args.json and Path(args.json), args.markdown)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
