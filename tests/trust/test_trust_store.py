"""What a store must never do: serve a wrong number, lose a file, or run what lies in it.

Only the command line, the public Python interface and files are used.
"""

import builtins
import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr
from scipy.io import netcdf_file

import provingground as pg
from provingground import cli
from provingground.errors import InputError, RunError
from provingground.studies.toy import STUDY as TOY

SMALL: dict[str, Any] = dict(samples=[30], noise=[0.5, 1.0], steps=40, seeds=3)
SAME = ["--set", "samples=30", "--set", "noise=0.5,1.0", "--set", "steps=40", "--seeds", "3"]


def small(changes: dict[str, Any]) -> dict[str, Any]:
    return SMALL | changes


class Answer(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def proving(monkeypatch, capsys, tmp_path):
    """Calls the command line in this process."""
    monkeypatch.setenv("PROVING_STUDIES", "")
    monkeypatch.chdir(tmp_path)

    def call(*args) -> Answer:
        monkeypatch.setattr(sys, "argv", ["proving", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        answer = Answer(int(end.value.code or 0), *capsys.readouterr())
        assert "Traceback" not in answer.err
        return answer

    return call


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, xr.Dataset]:
    """A store with a small sweep, never changed, and its Dataset."""
    folder = tmp_path_factory.mktemp("made") / "store"
    return folder, pg.run("toy/risk", store=folder, lanes=6, **SMALL)


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """A copy of that store, to be spoiled."""
    return shutil.copytree(made[0], tmp_path / "store")


def chunks(folder: Path) -> list[Path]:
    return sorted((folder / "toy").glob("*.nc"))


def notes(folder: Path, kind: str) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.parent.name == kind)


def lock_folder(folder: Path) -> Path:
    return folder / ("locks" if (folder / "locks").exists() else "claims")


def changed(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Path:
    """A sound copy of a chunk with other numbers or another record, beside it."""
    with netcdf_file(path, "r", mmap=False) as file:
        variables = {n: (v.dimensions, np.array(v.data)) for n, v in file.variables.items()}
        about = json.loads(getattr(file, "about"))  # noqa: B009
    change(variables, about)
    new = path.with_name("new")
    with netcdf_file(new, "w", version=2) as file:
        for name, (dims, array) in variables.items():
            for dim, size in zip(dims, array.shape, strict=True):
                if dim not in file.dimensions:
                    file.createDimension(dim, size)
            file.createVariable(name, array.dtype, dims)[:] = array
        file.about = json.dumps(about).encode()
    return new.rename(path.with_name(f"{hashlib.sha256(new.read_bytes()).hexdigest()}.nc"))


def numbers(ds: xr.Dataset) -> xr.Dataset:
    return ds.drop_attrs()


def within(seconds: float, work: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """What some work gives, which must not take longer; `otherwise` sets it free."""
    found: list[Any] = []

    def keep() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    thread.join(seconds)
    late = thread.is_alive()
    if late:
        otherwise()
        thread.join(60)
    assert not late, "it hangs"
    return found[0]


# ------------------------------------------------------------------ two values for a cell


def larger(variables: Any, about: Any) -> None:
    dims, values = variables["test_loss"]
    variables["test_loss"] = dims, values * 1000


def elsewhere(variables: Any, about: Any) -> None:
    larger(variables, about)
    about["device"] = "another machine"


def test_two_values_for_one_cell_are_an_error_that_names_both_files(folder, proving):
    first = chunks(folder)[0]
    second = changed(first, larger)
    for command in ("run", "figure"):
        more = ["--out", folder.parent / "figure.png"] if command == "figure" else []
        code, _, err = proving(command, "toy/risk", *SAME, "--store", folder, *more)
        assert (code, first.name in err, second.name in err) == (3, True, True), err
    code, _, err = proving("verify", "--store", folder)
    assert (code, first.name in err, second.name in err) == (3, True, True), err
    for use in (pg.load, pg.run):
        with pytest.raises(RunError, match=first.name):
            use("toy/risk", store=folder, **SMALL)
    assert first.exists()
    assert second.exists()


def test_values_of_different_devices_have_one_winner_and_verify_tells(folder, proving):
    first = chunks(folder)[0]
    second = changed(first, elsewhere)
    winner, loser = sorted([first, second])
    alone = shutil.copytree(folder, folder.parent / "alone")
    (alone / "toy" / loser.name).unlink()
    expected = pg.load("toy/risk", store=alone, **SMALL)
    assert numbers(pg.load("toy/risk", store=folder, **SMALL)).identical(numbers(expected))
    code, out, err = proving("verify", "--store", folder)
    assert code == 0, err
    assert "test_loss by at most" in out
    assert winner.name in out
    assert loser.name in out


# --------------------------------------------------------------------------------- notes


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\xfd", b"to my friends", b"-5", b"[" * 9999, b"0" * 40]
)
@pytest.mark.parametrize("kind", ["fingerprints", "timings", "lanes"])
def test_a_damaged_note_changes_no_number_and_heals(folder, made, kind, content):
    there = notes(folder, kind)
    if kind == "lanes":  # of a width that was measured
        name = notes(folder, "timings")[0].name
        there = [notes(folder, "timings")[0].parent.parent / "lanes" / name]
        there[0].parent.mkdir()
    assert there
    for path in there:
        path.write_bytes(content)
    before = chunks(folder)
    for _ in range(2):
        ds = pg.run("toy/risk", store=folder, **SMALL)
        assert numbers(ds).identical(numbers(made[1]))
        assert chunks(folder) == before  # nothing was computed again
    assert numbers(pg.load("toy/risk", store=folder, **SMALL)).identical(numbers(made[1]))


@pytest.mark.parametrize("kind", ["fingerprints", "timings"])
def test_a_pipe_for_a_note_is_not_waited_for(folder, made, kind):
    (path, *_) = notes(folder, kind)
    path.unlink()
    os.mkfifo(path)

    def let_go() -> None:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))

    ds = within(20, lambda: pg.run("toy/risk", store=folder, **small({"seeds": 4})), let_go)
    assert isinstance(ds, xr.Dataset), ds
    assert numbers(ds.isel(seed=slice(3))).identical(numbers(made[1]))


# ---------------------------------------------------------------------------- read errors


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ESTALE])
def test_a_file_that_cannot_be_read_is_named_and_stays(folder, made, monkeypatch, number):
    (path,) = chunks(folder)
    open_, os_open = builtins.open, os.open

    def refuse(file) -> None:
        if not isinstance(file, int) and os.fspath(file) == str(path):
            raise OSError(number, os.strerror(number), str(path))

    def opened(file, *args, **options):
        refuse(file)
        return open_(file, *args, **options)

    def os_opened(file, *args, **options):
        refuse(file)
        return os_open(file, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "open", opened)
        patched.setattr(os, "open", os_opened)
        for use in (pg.load, pg.run):
            with pytest.raises(RunError, match=f"{path.name}.*{os.strerror(number)}"):
                use("toy/risk", store=folder, **SMALL)
    assert chunks(folder) == [path]
    assert not (folder / "quarantine").exists()
    assert numbers(pg.load("toy/risk", store=folder, **SMALL)).identical(numbers(made[1]))


def spoiled(path: Path) -> bytes:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    return bytes(content)


def test_commands_that_read_leave_damaged_files_alone_and_say_so(folder, proving, capsys):
    pg.run("toy/risk", store=folder, **small({"noise": [2.0]}))
    wanted = set(chunks(folder))
    pg.run("toy/risk", store=folder)  # what a report is about
    bad = next(chunk for chunk in chunks(folder) if chunk not in wanted)
    content = spoiled(bad)
    for command in ("figure", "report", "show"):
        target = ["toy"] if command == "report" else ["toy/risk"]
        out = {"figure": ["--out", "figure.png"], "report": ["--out", "report.html"]}
        sets = SAME if command == "figure" else []
        _, _, err = proving(command, *target, *sets, "--store", folder, *out.get(command, []))
        assert bad.read_bytes() == content
        assert bad.name in err
    for use in (pg.load, pg.figure):
        use("toy/risk", store=folder, **small({"noise": [0.5, 1.0, 2.0]}))
        assert bad.read_bytes() == content
        assert bad.name in capsys.readouterr().err
    needed = min(wanted)
    content = spoiled(needed)
    asked = small({"noise": [0.5, 1.0, 2.0]})
    assert pg.load("toy/risk", store=folder, **asked).attrs["missing"]
    with pytest.raises(RunError, match="cells of toy/risk are missing"):
        pg.figure("toy/risk", store=folder, **asked)
    assert needed.read_bytes() == content
    assert needed.name in capsys.readouterr().err


def test_a_run_computes_what_was_damaged_again_and_says_so(folder, made, proving):
    (bad,) = chunks(folder)
    content = spoiled(bad)
    code, _, err = proving("run", "toy/risk", *SAME, "--store", folder)
    assert code == 0, err
    assert bad.name in err
    assert [p.read_bytes() for p in (folder / "quarantine").iterdir()] == [content]
    assert numbers(pg.load("toy/risk", store=folder, **SMALL)).identical(numbers(made[1]))


# ----------------------------------------------------------------------------- quarantine


def test_files_of_one_name_from_two_studies_are_both_kept(folder):
    other = dataclasses.replace(TOY, name="other")
    name = f"{'0' * 64}.nc"
    (folder / "other").mkdir()
    for study in (TOY, other):
        (folder / study.name / name).write_text(f"of {study.name}")
        pg.run(study, "risk", store=folder, **SMALL)
    kept = sorted(p.read_text() for p in (folder / "quarantine").iterdir())
    assert kept == ["of other", "of toy"]


def test_a_linked_study_folder_keeps_its_files(folder, tmp_path):
    (folder / "toy").rename(tmp_path / "mine")
    (folder / "toy").symlink_to(tmp_path / "mine")
    bad = tmp_path / "mine" / f"{'0' * 64}.nc"
    bad.write_text("damaged")
    before = sorted(p.name for p in (tmp_path / "mine").iterdir())
    run_whatever_comes(folder)
    assert sorted(p.name for p in (tmp_path / "mine").iterdir()) == before
    with pytest.raises((InputError, RunError), match=str(folder / "toy")):
        pg.run("toy/risk", store=folder, **SMALL)


# ---------------------------------------------------------------- what verify must not miss


def letters(variables: Any, about: Any) -> None:
    variables["test_loss"] = ("cell",), np.full(6, b"x", "S1")


def flat(variables: Any, about: Any) -> None:
    _, values = variables["train_loss"]
    variables["train_loss"] = ("cell",), values[:, 0]


def record(**entries: Any) -> Callable[[Any, Any], None]:
    return lambda variables, about: about.update(entries)


@pytest.mark.parametrize(
    "change",
    [letters, flat, record(seconds=float("inf")), record(seconds=float("nan")),
     record(seconds=-1), record(device=float("-inf"))],
)  # fmt: skip
def test_impossible_files_are_found_and_their_cells_computed_again(folder, made, proving, change):
    (good,) = chunks(folder)
    bad = changed(good, change)
    good.unlink()
    also = shutil.copytree(folder, folder.parent / "also")
    code, _, err = proving("verify", "--store", folder)
    assert code == 3
    assert bad.name in err
    code, _, err = proving("run", "toy/risk", *SAME, "--store", also)
    assert code == 0, err
    for store in (folder, also):
        ds = pg.run("toy/risk", store=store, **SMALL)
        assert numbers(ds).identical(numbers(made[1]))


def test_verify_of_no_store_is_an_error(tmp_path, proving, monkeypatch):
    assert proving("verify", "--store", tmp_path / "nowhere").code in (2, 3)
    assert proving("verify", "toy", "--store", tmp_path / "nowhere").code in (2, 3)
    (tmp_path / "folder").mkdir()
    listdir = os.listdir

    def refuse(path="."):
        if os.fspath(path) == str(tmp_path / "folder"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert proving("verify", "--store", tmp_path / "folder").code in (2, 3)


def test_verify_names_foreign_files_and_leaves_them(folder, proving):
    foreign = [folder / "letter.txt", folder / "toy" / "mine.nc", folder / "toy" / "\x1b[31m.txt"]
    for path in foreign:
        path.write_text("mine")
    code, _, err = proving("verify", "--store", folder)
    assert code == 3
    assert "letter.txt" in err
    assert "mine.nc" in err
    assert "\x1b" not in err
    assert [path.read_text() for path in foreign] == ["mine"] * 3


# --------------------------------------------------------------- what is not the store's own


def run_whatever_comes(folder: Path) -> None:
    """A run that may refuse the folder."""
    with contextlib.suppress(InputError, RunError):
        pg.run("toy/risk", store=folder, **SMALL)


def age(path: Path) -> None:
    then = time.time() - 30 * 86_400
    os.utime(path, (then, then), follow_symlinks=False)


@pytest.mark.parametrize("name", ["claims/letter.txt", "locks/letter.txt", "mine/.x.h.1.2.tmp"])
def test_files_of_the_user_are_not_deleted(tmp_path, name):
    path = tmp_path / "data" / name
    path.parent.mkdir(parents=True)
    path.write_text("to my friends")
    age(path)
    run_whatever_comes(tmp_path / "data")
    assert path.read_text() == "to my friends"


@pytest.mark.parametrize("name", ["letter.txt", "a" * 31, "toy/.x.h.1.2.tmp"])
def test_files_of_the_user_in_a_store_are_not_deleted(folder, name):
    path = (folder if "/" in name else lock_folder(folder)) / name
    path.write_text("to my friends")
    age(path)
    run_whatever_comes(folder)
    pg.run("toy/risk", store=folder, **small({"seeds": 4}))
    assert path.read_text() == "to my friends"


def test_files_behind_a_link_are_not_deleted(folder, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("letter.txt", "a" * 32, f".{'b' * 32}"):
        (mine / name).write_text("to my friends")
        age(mine / name)
    shutil.rmtree(lock_folder(folder))
    for name in ("claims", "locks"):
        (folder / name).symlink_to(mine)
    run_whatever_comes(folder)
    assert sorted(p.read_text() for p in mine.iterdir()) == ["to my friends"] * 3


# ------------------------------------------------------------------- nothing is executed

HOOK = """
import os, sys
store, log = os.path.realpath(sys.argv[1]), []

def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        path = os.path.realpath(os.fsdecode(args[0]))
        if path.startswith(store + os.sep) and f"{os.sep}compiled{os.sep}" in path:
            log.append(f"reads a compiled program: {path}")
    elif event in ("import", "exec", "compile", "ctypes.dlopen", "pickle.find_class",
                   "marshal.load", "marshal.loads"):
        if any(store in str(a) or store in str(getattr(a, "co_filename", "")) for a in args):
            log.append(f"{event} {args}")

sys.addaudithook(watch)
from provingground.cli import main
for command in (["show", "toy/risk"], ["run", "toy/risk", *sys.argv[2:]], ["verify"],
                ["figure", "toy/risk", *sys.argv[2:], "--out", "figure.png"]):
    sys.argv = ["proving", *command, "--store", store]
    try:
        main()
    except SystemExit:
        pass
print("EXECUTED", log)
"""

TRAP = b"cos\nmkdir\n(Vsprung\ntR."  # unpickled, it makes a folder


@pytest.mark.slow
def test_nothing_below_a_store_is_executed(tmp_path):
    store = tmp_path / "store"
    settings = ["--set", "samples=30", "--set", "noise=0.5", "--set", "steps=40", "--seeds", "3"]
    own = {k: v for k, v in os.environ.items() if not k.startswith("JAX_") or "PLATFORM" in k}
    own |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    python = [sys.executable, "-c"]
    run = "import sys; sys.argv[0] = 'proving'; from provingground.cli import main; main()"
    command = [*python, run, "run", "toy/risk", *settings, "--store", str(store)]
    subprocess.run(command, env=own, cwd=tmp_path, check=True, timeout=300, capture_output=True)
    for path in [p for p in store.rglob("*") if p.is_file() and p.name != "proving-store.json"]:
        if "compiled" not in path.parts:
            path.write_bytes(TRAP)
    for name in ("sitecustomize.py", "toy/__init__.py", "toy/model.so", "locks/x.pkl"):
        (store / name).parent.mkdir(exist_ok=True)
        (store / name).write_bytes(TRAP)
    command = [*python, HOOK, str(store), *settings]
    told = subprocess.run(
        command, env=own, cwd=tmp_path, timeout=300, capture_output=True, text=True
    )
    assert "EXECUTED []" in told.stdout, told.stdout[-2000:] + told.stderr[-2000:]
    assert not (tmp_path / "sprung").exists()
