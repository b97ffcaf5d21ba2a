import errno
import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from chunks import ABOUT, IDS, PROBES, files, found, put
from provingground import store as module
from provingground.errors import RunError
from provingground.store import Index, Store

# -------------------------------------------------------------------------------- cells


def test_what_is_put_is_found(store):
    path = put(store)
    fresh = Store(store.path)
    assert found(fresh) == {cell: (path, row) for row, cell in enumerate(IDS)}
    assert len(fresh.index("s")) == 3
    chunk = fresh.read("s", path.name)
    assert chunk is not None
    assert (chunk.path, chunk.cells.astype(str).tolist(), chunk.about) == (path, IDS, ABOUT)
    for name, (_, array) in PROBES.items():
        np.testing.assert_array_equal(chunk.probes[name], array)
        assert array.dtype == bool or chunk.probes[name].dtype == array.dtype
    assert [c.path for c in fresh.chunks("s")] == [path]


def test_other_programs_can_read_the_files(store):
    with xr.open_dataset(put(store), engine="scipy") as ds:
        assert ds.curve.dims == ("cell", "step")
        np.testing.assert_array_equal(ds.curve, PROBES["curve"][1])


def test_numbers_that_the_format_cannot_hold_are_refused(store):
    with pytest.raises(ValueError, match="large"):
        store.put("s", IDS[:1], {"large": ((), np.array([2**40]))}, ABOUT)


def test_files_are_named_by_their_content(store):
    path = put(store)
    assert path == store.path / "s" / f"{hashlib.sha256(path.read_bytes()).hexdigest()}.nc"
    assert put(store) == path
    assert files(store) == [path]


def test_new_files_are_seen_by_a_store_that_has_looked_before(store):
    assert found(store) == {}
    put(Store(store.path), IDS[:1])
    assert list(found(store)) == IDS[:1]
    put(Store(store.path), IDS[1:])
    assert set(found(store)) == set(IDS)


def test_a_cell_stored_twice_is_found_once(store):
    put(store, IDS[:2])
    put(store, IDS[1:], {"fingerprint": "g"})
    first = sorted(store.path.rglob("*.nc"))[0]
    assert set(found(store)) == set(IDS)
    assert found(store)[IDS[1]][0] == found(Store(store.path))[IDS[1]][0] == first


def test_index_looks_once_and_look_every_time(store):
    assert len(store.index("s")) == 0
    put(Store(store.path))
    assert len(store.index("s")) == 0
    assert len(store.look("s")) == len(store.index("s")) == 3


def test_cells_go_with_their_file(store):
    put(store, IDS[:1]).unlink()
    gone = put(store, IDS[1:])
    kept = put(store, IDS[:2])
    assert set(found(store)) == set(IDS)
    gone.unlink()
    assert found(store) == {IDS[0]: (kept, 0), IDS[1]: (kept, 1)}
    assert store.read("s", gone.name) is None
    assert store.quarantined == []
    shutil.rmtree(store.path)
    assert found(store) == {}


def test_what_was_packed_elsewhere_is_the_same_file(store):
    content = module.packed(IDS, PROBES, ABOUT)
    assert store.put_packed("s", content) == put(store)


def test_a_chunk_that_no_one_would_read_is_not_made(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_FILE", 500)
    with pytest.raises(ValueError, match="in one chunk"):
        module.packed(IDS, PROBES, ABOUT)


def test_the_folder_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PROVING_STORE", str(tmp_path / "there"))
    assert Store().path == tmp_path / "there"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store(Path("~/results")).path == tmp_path / "results"


# -------------------------------------------------------------------------------- index


def ids(numbers) -> np.ndarray:
    return np.array([hashlib.sha256(bytes([n])).hexdigest()[:32] for n in numbers], "S32")


FILES = st.lists(st.lists(st.integers(0, 99), max_size=30), max_size=40)


@given(FILES)
def test_an_index_finds_the_first_of_every_cell_and_no_other(added):
    index, expected = Index(), {}
    for number, cells in enumerate(added):
        index.add(f"{number}.nc", ids(cells))
        for row, cell in enumerate(cells):
            expected.setdefault(cell, (number, row))
        places = zip(*index.where(ids(range(100))), strict=True)
        assert {n: place for n, place in enumerate(places) if place != (-1, -1)} == expected
    assert index.files == [f"{number}.nc" for number in range(len(added))]
    assert index.where(ids(range(6)).reshape(2, 3))[0].shape == (2, 3)


@given(st.lists(st.lists(st.integers(0, 255), max_size=50, unique=True), max_size=200))
def test_an_index_has_few_runs(added):
    index, cells = Index(), set()
    for some in added:
        index.add("x.nc", ids(some))
        cells.update(some)
        assert len(index) == len(cells)
        assert len(index._runs) <= np.log2(len(cells) + 1) + 2


def test_an_index_of_many_files_is_small_and_quick():
    index, cells = Index(), np.arange(200_000).astype("S32").reshape(-1, 20)
    for number in np.random.default_rng(0).permutation(len(cells)):
        index.add(str(number), cells[number])
    assert len(index._runs) <= 18
    assert sum(column.nbytes for run in index._runs for column in run) == 40 * cells.size
    file, row = index.where(cells)
    assert [index.files[f] for f in file[:, 0]] == [str(n) for n in range(len(cells))]
    assert (row == np.arange(20)).all()


# -------------------------------------------------------------------------------- notes


def test_notes_are_kept(store):
    assert store.note("timings", "n") is None
    store.set_note("timings", "n", "0.25")
    store.set_note("timings", "n", "0.5")
    assert Store(store.path).note("timings", "n") == "0.5"
    assert store.note("fingerprints", "n") is None


# ------------------------------------------------------------------------------ failures


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EIO, "Input/output error"),
        (errno.EROFS, "Read-only"),
    ],
)
def test_a_failed_write_is_told_and_leaves_everything_as_it_was(store, monkeypatch, number, says):
    before = put(store, IDS[:1])

    def refuse(*args):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(RunError, match=f"{says}.*intact"):
            put(store, IDS[1:])
        patched.setattr(os, "replace", refuse)
        with pytest.raises(RunError, match=says):
            store.set_note("timings", "n", "1")
    assert files(store) == [before]
    assert list(found(Store(store.path))) == IDS[:1]
    put(store, IDS[1:])
    assert len(found(store)) == 3


def test_a_store_that_went_away_is_named_and_not_made_again(store):
    """It may be a disk, and what lies under it is another one."""
    store.open()
    put(store)
    shutil.rmtree(store.path)
    for use in (
        lambda: put(store),
        lambda: store.claim("block"),
        lambda: store.set_note("timings", "n", "1"),
        lambda: store.look("s"),
        store.open,
    ):
        with pytest.raises(RunError, match=f"cannot write to the store {store.path}"):
            use()
        assert not store.path.exists()
    store.claims.release("block")
    store.claims.renew(["block"])
    store.claims.close()
    assert not store.path.exists()


def test_a_store_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match=r"cannot write to the store .*file/store: Not a directory"):
        put(Store(tmp_path / "file" / "store"))


def test_a_read_only_folder_says_so_and_can_be_read(store, monkeypatch):
    put(store, IDS[:1])

    def refuse(path, mode):
        if "w" in mode:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return open(path, mode)

    monkeypatch.setattr(module, "open", refuse, raising=False)
    with pytest.raises(RunError, match=r"cannot write to the store .* Permission denied"):
        put(store, IDS[1:])
    assert list(found(Store(store.path))) == IDS[:1]
