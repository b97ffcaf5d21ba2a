"""Files of a store that are broken, or made to do harm."""

import errno
import io
import json
import os
import pickle
import struct
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from chunks import ABOUT, IDS, PROBES, found, put, renamed_to_match
from provingground import files
from provingground.chunk import packed
from provingground.errors import StoreError
from provingground.store import Store


class Trap:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def truncated(path: Path, tmp_path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-100])
    return path


def flipped(path: Path, tmp_path: Path) -> Path:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return path


def emptied(path: Path, tmp_path: Path) -> Path:
    path.write_bytes(b"")
    return path


def pickled(path: Path, tmp_path: Path) -> Path:
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    return path


def pickled_well(path: Path, tmp_path: Path) -> Path:
    return renamed_to_match(pickled(path, tmp_path))


def emptied_well(path: Path, tmp_path: Path) -> Path:
    return renamed_to_match(emptied(path, tmp_path))


def truncated_well(path: Path, tmp_path: Path) -> Path:
    return renamed_to_match(truncated(path, tmp_path))


def garbage_well(path: Path, tmp_path: Path) -> Path:
    path.write_bytes(b"CDF\x01" + bytes(range(256)) * 4)
    return renamed_to_match(path)


def another_file(path: Path, tmp_path: Path) -> Path:
    path.write_bytes(bytes(xr.Dataset({"x": ("y", [1.0])}).to_netcdf(engine="scipy")))
    return renamed_to_match(path)


SPOILED = [truncated, flipped, emptied, pickled, pickled_well, emptied_well, truncated_well,
           garbage_well, another_file]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILED)
def test_unsound_files_are_named_and_set_aside_and_never_loaded(store, tmp_path, spoil):
    good = put(store, IDS[:1])
    bad = spoil(put(store, IDS[1:]), tmp_path)
    content = bad.read_bytes()
    fresh = Store(store.path)
    assert list(found(fresh)) == IDS[:1]
    assert bad.read_bytes() == content  # reading moves nothing
    assert list(fresh.damaged) == [bad]
    fresh.set_aside()
    assert not bad.exists()
    assert not (tmp_path / "sprung").exists()
    (line,) = fresh.said
    assert bad.name in line
    (aside,) = (store.path / "quarantine").iterdir()
    assert aside.read_bytes() == content
    assert aside.name.startswith("s.")
    assert aside.name.endswith(bad.name)
    assert good.exists()
    assert list(found(Store(store.path))) == IDS[:1]
    put(store, IDS[1:])
    assert set(found(Store(store.path))) == set(IDS)


@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1))
def test_a_file_changed_anywhere_is_read_or_set_aside_even_under_a_fitting_name(changes):
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        path = put(store)
        content = bytearray(path.read_bytes())
        for where, byte in changes:
            content[int(where**2 * len(content))] = byte  # more often in the header
        path.write_bytes(content)
        path = renamed_to_match(path)
        there = found(store)
        assert bool(store.damaged) == (not there)
        assert all(place == path for place, _ in there.values())
        store.set_aside()
        assert bool(there) == path.exists()


def test_the_trap_would_spring(tmp_path):
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung")))
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize("opened", [False, True])
def test_a_file_that_another_process_sets_aside_meanwhile_is_no_error(store, monkeypatch, opened):
    put(store, IDS[:1])
    bad = flipped(put(store, IDS[1:]), store.path)

    def gone(path, limit):
        if Path(path) == bad and not opened:
            bad.unlink()
        content = read(path, limit)
        if Path(path) == bad:
            bad.unlink()
        return content

    read = files.read
    monkeypatch.setattr(files, "read", gone)
    fresh = Store(store.path)
    assert list(found(fresh)) == IDS[:1]
    fresh.set_aside()
    assert (fresh.damaged, fresh.said) == ({}, [])


@pytest.mark.parametrize("name", ["notes.txt", "mine.nc", f"{'0' * 63}.nc", f"{'A' * 64}.nc"])
def test_other_files_are_left_alone(store, name):
    put(store)
    stranger = store.path / "s" / name
    stranger.write_text("mine")
    assert len(found(store)) == 3
    store.set_aside()
    assert stranger.read_text() == "mine"
    assert (store.damaged, store.said) == ({}, [])


def test_files_of_one_name_are_set_aside_beside_each_other(store):
    for study in ("s", "t"):
        for content in (b"one", b"another"):
            path = store.put_packed(study, packed(IDS, PROBES, ABOUT))
            path.write_bytes(content)
            store.look(study)
            store.set_aside()
    there = list((store.path / "quarantine").iterdir())
    assert sorted(p.read_bytes() for p in there) == [b"another", b"another", b"one", b"one"]
    assert sorted(p.name[:2] for p in there) == ["s.", "s.", "t.", "t."]


ERRORS = [errno.EACCES, errno.EIO, errno.EMFILE, errno.ESTALE, errno.ENOMEM]


@pytest.mark.parametrize("error", [*(OSError(n, os.strerror(n)) for n in ERRORS), MemoryError()])
def test_a_file_that_cannot_be_read_is_named_and_left_where_it_is(store, monkeypatch, error):
    good = put(store)

    def refuse(path, limit):
        if Path(path) == good:
            raise error
        return read(path, limit)

    read = files.read
    with monkeypatch.context() as patched:
        patched.setattr(files, "read", refuse)
        fresh = Store(store.path)
        for use in (lambda: found(fresh), lambda: list(fresh.chunks("s"))):
            with pytest.raises(StoreError, match=f"cannot read {good}: .*left where it is"):
                use()
        fresh.set_aside()
    assert good.exists()
    assert len(found(fresh)) == 3


@pytest.mark.parametrize("spoil", [truncated, pickled_well])
def test_an_unsound_file_of_a_read_only_store_is_named_and_not_loaded(
    store, tmp_path, monkeypatch, spoil
):
    put(store, IDS[:1])
    bad = spoil(put(store, IDS[1:]), tmp_path)

    def refuse(*args):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "rename", refuse)
    fresh = Store(store.path)
    assert list(found(fresh)) == IDS[:1]
    fresh.set_aside()
    (line,) = fresh.said
    assert bad.name in line
    assert "left where it is" in line


# --------------------------------------------------------------------- costly to look at


@contextmanager
def cheaply(megabytes: float = 200, seconds: float = 10) -> Iterator[None]:
    """Fails where what is done inside takes long, or much memory."""
    tracemalloc.start()
    start = time.monotonic()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.monotonic() - start < seconds
    assert peak < megabytes * 2**20


def refused(store: Store, path: Path) -> str:
    """Why a file was set aside."""
    good = put(store, IDS[:1])
    fresh = Store(store.path)
    with cheaply():
        assert list(found(fresh)) == IDS[:1]
    fresh.set_aside()
    assert not path.exists()
    assert good.exists()
    (line,) = fresh.said
    assert path.name in line
    return line


def test_an_array_of_objects_is_never_unpickled(store, tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap(tmp_path / "sprung")], object), allow_pickle=True)
    path = put(store, IDS[1:])
    path.write_bytes(buffer.getvalue())
    assert "not a netCDF-3 file" in refused(store, renamed_to_match(path))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("size", [2**31, 2**31 - 1, 2**32 - 1, 2**20])
@pytest.mark.parametrize("dim", [b"cell", b"step", b"letter"])
def test_a_dimension_that_is_not_there(store, dim, size):
    path = put(store, IDS[1:])
    content = path.read_bytes()
    name = struct.pack(">i", len(dim)) + dim.ljust(-(-len(dim) // 4) * 4, b"\0")
    at = content.index(name) + len(name)
    path.write_bytes(content[:at] + struct.pack(">I", size) + content[at + 4 :])
    refused(store, renamed_to_match(path))


@pytest.mark.parametrize("records", [2**31 - 1, 2**32 - 1, 2**16])
def test_records_that_are_not_there(store, records):
    path = put(store, IDS[1:])
    content = path.read_bytes()
    path.write_bytes(content[:4] + struct.pack(">I", records) + content[8:])
    renamed_to_match(path)
    with cheaply():
        assert set(found(Store(store.path))) <= set(IDS)


def listed(kind: int, entries: list[bytes]) -> bytes:
    return struct.pack(">ii", kind, len(entries)) + b"".join(entries)


def named(name: bytes) -> bytes:
    return struct.pack(">i", len(name)) + name.ljust(-(-len(name) // 4) * 4, b"\0")


def of_many_variables(count: int, size: int) -> bytes:
    """A small header, many variables of which are all the same large data."""
    dims = listed(10, [named(b"cell") + struct.pack(">i", size)])
    begin = 64 * (count + 4)
    entries = [
        named(f"v{n}".encode())
        + struct.pack(">ii", 1, 0)  # of the dimension
        + struct.pack(">ii", 0, 0)  # no attributes
        + struct.pack(">iiq", 1, size, begin)  # bytes
        for n in range(count)
    ]
    header = b"CDF\x02" + bytes(4) + dims + bytes(8) + listed(11, entries)
    return header.ljust(begin, b"\0") + bytes(size)


@pytest.mark.parametrize(("count", "size"), [(10_000, 2**22), (50_000, 16), (15_000, 0)])
def test_many_variables_of_the_same_data(store, count, size):
    path = put(store, IDS[1:])
    path.write_bytes(of_many_variables(count, size))
    refused(store, renamed_to_match(path))


@pytest.mark.parametrize("start", [b"", b"CDF\x01", b"CDF\x02", b"\x89HDF\r\n"])
def test_a_gigabyte_of_nothing(store, start):
    path = put(store, IDS[:1]).with_name(f"{'0' * 64}.nc")
    path.write_bytes(start)
    os.truncate(path, 2**30)
    with cheaply(10, 2):
        line = refused(store, path)
    assert "larger than any chunk" in line
    (aside,) = (store.path / "quarantine").iterdir()
    assert aside.stat().st_size == 2**30


def test_a_file_with_no_end_is_not_read(store):
    """A named pipe, or a device, would hang whoever opens it."""
    path = put(store).with_name(f"{'0' * 64}.nc")
    path.symlink_to("/dev/zero")
    with cheaply(10, 2):
        assert len(found(store)) == 3
        store.set_aside()
    assert Path("/dev/zero").exists()
    assert path.is_symlink()


def test_what_is_no_file_is_left_where_it_is_and_said(store, tmp_path):
    good = put(store, IDS[:1])
    copy = tmp_path / "copy.nc"
    put(store, IDS[1:]).rename(copy)
    link, folder = (good.with_name(f"{n * 64}.nc") for n in "01")
    link.symlink_to(copy)
    folder.mkdir()
    assert list(found(store)) == IDS[:1]
    store.set_aside()
    assert link.is_symlink()
    assert folder.is_dir()
    assert copy.exists()
    assert [path.name in "".join(store.said) for path in (link, folder)] == [True, True]


def test_a_pipe_is_not_waited_for(store):
    path = put(store).with_name(f"{'0' * 64}.nc")
    os.mkfifo(path)
    reader = threading.Thread(target=found, args=(store,))
    reader.start()
    reader.join(3)
    waits = reader.is_alive()
    if waits:  # let it go
        os.close(os.open(path, os.O_WRONLY))
        reader.join()
    assert not waits


# ------------------------------------------------------------------------------- records


def packed_with(text: bytes, probes: Any = PROBES, cells: Any = IDS) -> bytes:
    """A chunk with any text as its record."""
    content = packed(cells, probes, {"record": "?" * (len(text) - 14)})
    before = json.dumps({"record": "?" * (len(text) - 14)}).encode()
    assert len(before) == len(text)
    assert content.count(before) == 1
    return content.replace(before, text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"[1, 2]",
        b"null",
        b"7",
        b'"words"',
        b"{",
        b"not JSON",
        b"\xff\xfe\x00",
        b'{"a": 1e}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 100_000,
        b'{"seconds": 1e400}',
        b'{"seconds": -1}',
        b'{"seconds": NaN}',
        b'{"a": Infinity}',
        b'{"seconds": true}',
        b'{"seconds": ' + b"9" * 4000 + b"}",
        b'{"device": 3}',
        b'{"program": []}',
        b'{"a": "' + b" " * 2**20 + b'"}',
    ],
    ids=lambda text: repr(text[:8]),
)
def test_a_file_without_a_record_is_set_aside(store, text):
    text = text.ljust(20)
    path = store.put_packed("s", packed_with(text))
    fresh = Store(store.path)
    with cheaply():
        assert found(fresh) == {}
    fresh.set_aside()
    assert not path.exists()
    assert len(fresh.said) == 1


@pytest.mark.parametrize(
    ("probes", "cells", "why"),
    [
        ({"x": ((), np.array([b"a", b"b", b"c"], "S1"))}, IDS, "holds no numbers"),
        (PROBES, [IDS[0], IDS[1], IDS[0]], "two of its cells are the same"),
        (PROBES, ["A" * 32, *IDS[1:]], "have no identities"),
        (PROBES, ["short", *IDS[1:]], "have no identities"),
    ],
)
def test_a_file_that_is_no_chunk_is_set_aside(store, probes, cells, why):
    path = store.put("s", cells, probes, ABOUT)
    assert found(store) == {}
    assert why in store.damaged[path]


def test_letters_that_would_act_on_a_terminal_are_escaped(store, capsys):
    path = store.put("s", IDS, {"\x1b[31m": ((), np.array([b"a"] * 3, "S1"))}, ABOUT)
    found(store)
    store.tell()
    told = capsys.readouterr().err
    assert path.name in told
    assert "\\x1b[31m" in told
    assert "\x1b" not in told
