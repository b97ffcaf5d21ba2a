"""Whether everything in a store is ours."""

import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.io import netcdf_file

from chunks import ABOUT, IDS, PROBES, put
from provingground import inspection, locks
from provingground.chunk import packed, unpacked
from provingground.errors import InputError
from provingground.inspection import damaged_notes, foreign, leftovers, upgrade
from provingground.store import MARKER, Store


@pytest.fixture
def full(store) -> Store:
    """A store with something in each of its folders."""
    put(store)
    store.set_note("timings", "n", "1")
    assert store.lock("b" * 32)
    (store.path / "quarantine").mkdir()
    (store.path / "quarantine" / "whatever").write_bytes(b"")
    (store.path / "s" / f".{'a' * 32}.{locks.tag()}.tmp").write_bytes(b"half")
    return store


def everything(folder: Path) -> list[tuple[str, bytes]]:
    plain = [p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()]
    return sorted((str(p), p.read_bytes()) for p in plain)


def test_a_store_in_order_has_nothing_foreign(full):
    assert list(foreign(full)) == []
    assert list(damaged_notes(full)) == []
    assert leftovers(full) == 0
    assert inspection.studies(full) == ["s"]


@pytest.mark.parametrize(
    "name",
    [
        "letter.txt",
        "Folder/letter.txt",
        "s/letter.txt",
        "s/mine.nc",
        "s/sub/letter.txt",
        "locks/letter.txt",
        "notes/letter.txt",
        "notes/timings/letter.txt",
        "notes/timings/sub/letter.txt",
        "s/\x1b[31m.nc",
    ],
)
def test_what_is_not_ours_is_named_and_not_touched(full, name):
    (full.path / name).parent.mkdir(exist_ok=True)
    (full.path / name).write_text("mine")
    before = everything(full.path)
    (found,) = foreign(full)
    assert (full.path / name).is_relative_to(found.path)
    assert everything(full.path) == before


@pytest.mark.parametrize("name", ["s", "locks", "notes", "quarantine", "notes/timings"])
def test_a_folder_that_is_a_link_is_named(full, tmp_path, name):
    shutil.move(full.path / name, tmp_path / "elsewhere")
    (full.path / name).symlink_to(tmp_path / "elsewhere")
    assert [found.path for found in foreign(full)] == [full.path / name]


def test_damaged_notes_are_named(full):
    full.set_note("lanes", "n", "32")
    bad = full.path / "notes" / "timings" / "n"
    bad.write_bytes(bad.read_bytes()[:-1])
    assert [found.path for found in damaged_notes(full)] == [bad]


def test_what_dead_processes_left_is_counted(full):
    me = locks.owner(locks.me(os.getpid()).encode())
    assert me is not None
    dead = locks.signed(me | {"boot": "an earlier one"})
    (full.path / "locks" / ("c" * 32)).write_text(dead)
    host, pid, _ = locks.tag().rsplit(".", 2)
    (full.path / "s" / f".{'c' * 32}.{host}.{pid}.1.tmp").write_bytes(b"half")
    assert leftovers(full) == 2
    Store(full.path).open()
    assert leftovers(full) == 0


# ------------------------------------------------------------------------------- upgrade


@pytest.fixture
def old(tmp_path) -> Path:
    """A folder as version 0.1.0 left it."""
    root = tmp_path / "old"
    for folder in ("toy", "fingerprints", "timings", "lanes", "claims", "quarantine", "compiled"):
        (root / folder).mkdir(parents=True)
    new = Store(tmp_path / "new").put("toy", IDS, PROBES, ABOUT)
    shutil.copy(new, root / "toy")
    (root / "fingerprints" / f"{'a' * 40}.txt").write_text("b" * 40)
    (root / "timings" / f"{'a' * 32}.txt").write_text("[0.0001, 2048]")
    (root / "lanes" / f"{'a' * 32}.txt").write_text("128")
    me = locks.owner(locks.me(os.getpid()).encode())
    (root / "claims" / ("a" * 32)).write_text(json.dumps(me))
    (root / "quarantine" / f"{'a' * 64}.nc").write_bytes(b"damaged")
    (root / "compiled" / "program").write_bytes(b"native code")
    os.mkfifo(root / "compiled" / "which would hang who reads it")
    return root


def test_an_old_store_is_refused_until_it_is_upgraded(old):
    with pytest.raises(InputError, match="proving upgrade"):
        Store(old).look("toy")
    before = everything(old)
    assert upgrade(Store(old)) == []
    assert everything(old) == sorted([*before, (str(old / MARKER), b'{"format": 1}\n')])
    store = Store(old)
    assert len(store.look("toy")) == 3
    assert store.note("fingerprints", "a" * 40) is None
    assert list(foreign(store)) == []
    assert upgrade(Store(old)) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("letter.txt", b"mine"),
        ("Folder/letter.txt", b"mine"),
        ("toy/letter.txt", b"mine"),
        (f"toy/{'0' * 64}.nc", b"CDF\x02"),
        (f"fingerprints/{'0' * 40}.txt", b"to my friends"),
        (f"fingerprints/{'0' * 40}.txt", b""),
        ("fingerprints/letter.txt", b"b" * 40),
        (f"timings/{'0' * 32}.txt", b"[" * 10_000),
        ("claims/letter.txt", b"mine"),
        (f"claims/{'0' * 32}", b"mine"),
        (MARKER + "~", b"mine"),
    ],
)
def test_a_folder_with_anything_else_is_not_upgraded(old, name, content):
    (old / name).parent.mkdir(exist_ok=True)
    (old / name).write_bytes(content)
    before = everything(old)
    (found,) = upgrade(Store(old))
    assert (old / name).is_relative_to(found.path)
    assert everything(old) == before


def link(path: Path) -> None:
    path.symlink_to(path.parents[1] / "toy")


@pytest.mark.parametrize("make", [link, os.mkfifo, Path.mkdir])
@pytest.mark.parametrize("name", [f"toy/{'0' * 64}.nc", f"claims/{'0' * 32}", "quarantine/x.nc",
                                  f"lanes/{'0' * 32}.txt", MARKER])  # fmt: skip
def test_a_folder_with_links_or_pipes_is_not_upgraded(old, name, make):
    make(old / name)
    (found,) = upgrade(Store(old))
    assert found.path == old / name


def test_a_store_with_a_damaged_marker_is_mended(full):
    full.locks.release("b" * 32)
    (full.path / MARKER).write_bytes(b"")
    with pytest.raises(InputError, match="damaged"):
        Store(full.path).look("s")
    assert upgrade(Store(full.path)) == []
    assert len(Store(full.path).look("s")) == 3


def test_what_is_no_store_is_not_upgraded(tmp_path, store):
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match="there is no store"):
            upgrade(Store(folder))
    put(store)
    (store.path / MARKER).write_text('{"format": 2}')
    with pytest.raises(InputError, match="newer version"):
        upgrade(Store(store.path))
    assert (store.path / MARKER).read_text() == '{"format": 2}'


def test_chunks_of_version_0_1_0_are_read():
    """Written by scipy's netCDF, with its order of variables."""
    buffer = io.BytesIO()
    file = netcdf_file(buffer, "w", version=2)
    ids = np.asarray(IDS, "S32").view("S1").reshape(3, -1)
    for name, (dims, array) in (*PROBES.items(), ("cell_id", (("letter",), ids))):
        if array.dtype.kind in "bui":
            array = array.astype(np.int8 if array.dtype == bool else np.int32)
        for dim, size in zip(("cell", *dims), array.shape, strict=True):
            if dim not in file.dimensions:
                file.createDimension(dim, size)
        file.createVariable(name, array.dtype.newbyteorder(">"), ("cell", *dims))[:] = array
    file.about = json.dumps(ABOUT).encode()
    file.flush()
    old, new = unpacked(buffer.getvalue()), unpacked(packed(IDS, PROBES, ABOUT))
    assert old.cells.tolist() == new.cells.tolist()
    assert old.about == new.about == ABOUT
    for name in PROBES:
        np.testing.assert_array_equal(old.file.array(name), new.file.array(name))
        assert old.file.array(name).dtype == new.file.array(name).dtype
