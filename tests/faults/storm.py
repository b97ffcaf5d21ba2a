"""Foul weather: runs that are killed at random, and stores whose files are damaged at random.

    python tests/faults/storm.py --seed 1 [--kills 50] [--together 20] [--corruptions 200]

After kills (of one process, then of four that share the work) the result must be bit-identical to
that of an undisturbed run, and no cell may be stored twice. After damage every command must give
exactly the right numbers or a clear error: no wrong number, no hang, no lost file, no traceback.
"""

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import xarray as xr
from processes import HERE, Running, cells, nothing_left, read

import provingground as pg
from provingground import cli, dispatch, locks
from provingground.errors import InputError, RunError
from provingground.store import Store

SECONDS = 10  # no command takes longer
PROCESSES = 4

# ---------------------------------------------------------------------------------- kills


def sweep(cells: int) -> list[str]:
    """A sweep of so many cells, each in a file of its own."""
    axis = f"rate=20:{cells + 19}:{cells}"
    return ["crashing/first", "--set", axis, "--seeds", "1", "--lanes", "1"]


def killed(seed: int, kills: int, folder: Path, processes: int = 1) -> str:
    """Kills random processes of a sweep at random moments."""
    chance = random.Random(seed)
    total = 3 * kills * processes + 20  # so that it is not over before the last kill
    what, store, seconds = sweep(total), folder / "store", 0.15
    undisturbed = folder / "undisturbed.nc"
    run = ["run", *what, "--store", folder / "alone", "--out", undisturbed]
    code, told, _ = Running(*run, seconds=0).end()
    assert code == 0, told
    running: list[Running] = []
    left, premature = kills, 0
    try:
        while left:
            while len(running) < processes:
                running.append(Running("run", *what, "--store", store, seconds=seconds))
            victim = chance.choice(running)
            before, patience = len(_files(store)), time.monotonic() + 120
            while len(_files(store)) == before and victim.process.poll() is None:
                assert time.monotonic() < patience, "nothing is stored"
                time.sleep(0.005)
            time.sleep(chance.random() * 2 * seconds)
            if victim.process.poll() is not None:
                premature += 1
                assert premature < 3, f"the sweep is over after {kills - left} kills"
                running.remove(victim)
                continue
            victim.send(signal.SIGKILL)
            victim.end()
            running.remove(victim)
            left -= 1
        stored = len(_files(store))
        for process in running:
            code, told, _ = process.end()
            assert code == 0, told
    finally:
        for process in running:
            process.kill()
    out = folder / "out.nc"
    code, told, _ = Running("run", *what, "--store", store, "--out", out).end()
    assert code == 0, told
    assert read(out).drop_attrs().identical(read(undisturbed).drop_attrs())
    assert cells(store) == Counter(dict.fromkeys(cells(folder / "alone"), 1))
    assert nothing_left(store)
    return f"{kills} kills of {processes} process(es), {stored} of {total} cells stored by then"


def _files(store: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return os.listdir(store / "crashing")
    return []


# ---------------------------------------------------------------------------- corruptions


class Weather:
    """A store that is spoiled again and again, and what its commands should give."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.pristine, self.store = folder, folder / "pristine", folder / "store"
        self.outside = folder / "outside"
        os.environ["PROVING_STUDIES"] = str(HERE / "storming")
        locks.BROKEN_SECONDS = 0.5
        with mock.patch.object(dispatch, "CHUNK_SECONDS", 0):
            self.expected = pg.run("storming/first", store=self.pristine, progress=False)
        import storming  # the module that the command line has loaded

        self.drawn = storming.DRAWN
        store = Store(self.pristine)
        dead = locks.owner(locks.me(os.getpid()).encode()) or {}
        self.in_work = []  # files of blocks that a process was at when it died
        for chunk in list(store.chunks("storming"))[:4]:
            self.in_work.append(chunk.path.name)
            left = self.pristine / "locks" / dispatch._name(chunk.cells)
            left.write_text(locks.signed(dead | {"boot": "an earlier one"}))
        (self.pristine / "quarantine").mkdir()
        (self.pristine / "quarantine" / "storming.x.nc").write_bytes(b"an old one")
        assert len(list(store.chunks("storming"))) > 5
        self.verdicts = [v.estimate for v in pg.check("storming", store=self.pristine)]
        self.told: Counter[str] = Counter()

    # ------------------------------------------------------------------ how to spoil it

    def spoil(self, chance: random.Random) -> str:
        """Damages a random file; the files that are not what they were."""
        there = sorted(p for p in self.store.rglob("*") if p.is_file() and not p.is_symlink())
        kind = chance.choice([p.relative_to(self.store).parts[0] for p in there])
        path = chance.choice([p for p in there if p.relative_to(self.store).parts[0] == kind])
        other = chance.choice([p for p in there if p != path])
        how = chance.choice(
            [truncate, flip, flip, flip, swap, replace, hard_link, link, pipe, folder, self.forbid]
        )
        how(path, other, chance)
        changed = {path, other} if how is swap else {path}
        self.changed |= {str(p.relative_to(self.store)) for p in changed}
        return f"{how.__name__} {path.relative_to(self.store)}"

    def forbid(self, path: Path, other: Path, chance: random.Random) -> None:
        """Takes permissions away, which root has nevertheless."""
        self.forbidden.add(str(path))

    @contextlib.contextmanager
    def permissions(self) -> Iterator[None]:
        opened = os.open

        def checked(path: Any, *args: Any, **options: Any) -> int:
            if os.fspath(path) in self.forbidden:
                raise PermissionError(13, os.strerror(13), os.fspath(path))
            return opened(path, *args, **options)

        with mock.patch.object(os, "open", checked):
            yield

    # ---------------------------------------------------------------------- what to do

    def command(self, *args: Any) -> int:
        """The exit code of a command in this process, which must not fail badly."""
        out, err = io.StringIO(), io.StringIO()
        argv = ["proving", *map(str, args), "--store", str(self.store)]
        with (
            mock.patch.object(sys, "argv", argv),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                cli.main()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
        told = err.getvalue()
        assert "Traceback" not in told, told
        assert code in (0, 2, 3), (code, told)
        assert code == 0 or told.strip(), "an error without a word"
        self.out = out.getvalue()
        return code

    def run(self) -> int:
        out = self.folder / "out.nc"
        if not (code := self.command("run", "storming/first", "--out", out)):
            self.right(read(out))
        return code

    def check(self) -> int:
        if not (code := self.command("check", "storming", "--json")):
            (verdict,) = json.loads(self.out)["verdicts"]
            assert (verdict["value"], verdict["low"], verdict["high"]) == tuple(self.verdicts[0])
        return code

    def figure(self) -> int:
        return self.drawing("figure", "storming/first", "--out", self.folder / "figure.png")

    def report(self) -> int:
        return self.drawing("report", "storming", "--out", self.folder / "report.html")

    def drawing(self, *args: Any) -> int:
        self.drawn.clear()
        if not (code := self.command(*args)):
            self.right(self.drawn[0])
        return code

    def show(self) -> int:
        return self.command("show", "storming/first")

    def verify(self) -> int:
        return self.command("verify") or self.load()

    def load(self) -> int:
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                ds = pg.load("storming/first", store=self.store)
        except InputError:
            return 2
        except RunError:
            return 3
        self.right(ds, all_of_it=False)
        return 0

    def right(self, ds: xr.Dataset, all_of_it: bool = True) -> None:
        """Fails on a wrong number, or where one is missing."""
        there = ds["last"].notnull()
        assert bool(there.all()) or not all_of_it
        for name in ("last", "curve"):
            found, expected = xr.broadcast(ds[name], self.expected[name])
            same = (found == expected) | ~there
            assert bool(same.all()), name
        if bool(there.all()):
            assert ds["last"].dtype == self.expected["last"].dtype

    # -------------------------------------------------------------------------- a day

    def day(self, chance: random.Random) -> list[str]:
        """Damages a fresh copy of the store, then gives some commands."""
        for path in (self.store, self.outside):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.pristine, self.store)
        self.outside.mkdir()
        (self.outside / "letter").write_text("to my friends")
        self.changed: set[str] = set()
        self.forbidden: set[str] = set()
        if chance.random() < 0.4:
            for name in self.in_work:
                (self.store / "storming" / name).unlink()
                self.changed.add(f"storming/{name}")
        done = [self.spoil(chance) for _ in range(chance.choice([1, 1, 2, 3]))]
        broken = {
            p.read_bytes() for p in self.store.rglob("*.nc") if p.is_file() and not p.is_symlink()
        }
        letter = (self.outside / "letter").read_bytes()  # which may have been spoiled by a link
        commands: list[Callable[[], int]] = [
            self.run, self.check, self.figure, self.report, self.show, self.verify, self.load,
        ]  # fmt: skip
        for command in chance.choices(commands, k=3):
            with self.permissions(), in_time(f"{done} {command.__name__}"):
                try:
                    code = command()
                except AssertionError as error:
                    raise AssertionError(f"{done} {command.__name__}: {error}") from error
            self.told[f"{command.__name__} {code}"] += 1
            self.nothing_lost(broken, f"{done} {command.__name__}")
            assert (self.outside / "letter").read_bytes() == letter, f"{done} {command.__name__}"
        return done

    def nothing_lost(self, broken: set[bytes], what: str) -> None:
        for path in self.pristine.rglob("*.nc"):
            name = str(path.relative_to(self.pristine))
            if name not in self.changed:
                assert (self.store / name).read_bytes() == path.read_bytes(), f"{what}: {name}"
        kept = {
            p.read_bytes()
            for p in self.store.rglob("*")
            if p.is_file() and not p.is_symlink() and p.suffix == ".nc"
        }
        assert broken <= kept, f"{what}: a file is gone"
        assert os.listdir(self.outside) == ["letter"], what


@contextlib.contextmanager
def in_time(what: str) -> Iterator[None]:
    def late(number: int, frame: Any) -> None:
        raise AssertionError(f"{what}: it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def truncate(path: Path, other: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(max(1, path.stat().st_size)))


def flip(path: Path, other: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes() or b"?")
    first = chance.choice([0, len(content) * 3 // 4])  # numbers are at the end
    content[chance.randrange(first, len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def swap(path: Path, other: Path, chance: random.Random) -> None:
    a, b = path.read_bytes(), other.read_bytes()
    path.write_bytes(b)
    other.write_bytes(a)


def replace(path: Path, other: Path, chance: random.Random) -> None:
    path.write_bytes(
        chance.choice([b"", b"\0" * 100, b"CDF\2" + chance.randbytes(200), b"{}", b"[" * 9999,
                       other.read_bytes()])
    )  # fmt: skip


def hard_link(path: Path, other: Path, chance: random.Random) -> None:
    path.unlink()
    os.link(chance.choice([other, _letter(path)]), path)


def link(path: Path, other: Path, chance: random.Random) -> None:
    path.unlink()
    path.symlink_to(chance.choice([other, _letter(path), Path("/dev/zero")]))


def _letter(path: Path) -> Path:
    """The user's own file, outside of the store."""
    return next(p for p in path.parents if p.name == "store").parent / "outside" / "letter"


def pipe(path: Path, other: Path, chance: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path, other: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


def corrupted(seed: int, corruptions: int, folder: Path) -> str:
    """Random damage, random commands."""
    chance, weather = random.Random(seed), Weather(folder)
    for command in (weather.run, weather.check, weather.figure, weather.verify, weather.show):
        shutil.rmtree(weather.store, ignore_errors=True)  # without damage all is well
        shutil.copytree(weather.pristine, weather.store)
        weather.forbidden = set()
        assert command() == 0, command.__name__
    done: list[str] = []
    days = 0
    while len(done) < corruptions:
        done += weather.day(chance)
        days += 1
    kinds = Counter(what.split()[0] for what in done)
    codes = ", ".join(f"{what}: {n}" for what, n in sorted(weather.told.items()))
    return f"{len(done)} corruptions on {days} days {dict(kinds)}; commands and exit codes: {codes}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--together", type=int, default=20, help="kills of four processes")
    parser.add_argument("--corruptions", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for part, count in (("alone", args.kills), ("together", args.together)):
            if count:
                (folder / part).mkdir()
                processes = PROCESSES if part == "together" else 1
                print(killed(args.seed, count, folder / part, processes), flush=True)
        if args.corruptions:
            (folder / "spoiled").mkdir()
            print(corrupted(args.seed, args.corruptions, folder / "spoiled"), flush=True)


if __name__ == "__main__":
    main()
