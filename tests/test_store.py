import errno
import hashlib
import json
import multiprocessing
import os
import pickle
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from provingground import store as module
from provingground.errors import RunError
from provingground.store import Store

IDS = ["a" * 32, "b" * 32, "0123456789abcdef" * 2]
PROBES = {
    "curve": (("step",), np.arange(6.0, dtype=np.float32).reshape(3, 2)),
    "double": ((), np.array([1 / 3, np.nan, np.inf])),
    "count": ((), np.array([1, -2, 3], np.int32)),
    "flag": ((), np.array([True, False, True])),
}
ABOUT = {"fingerprint": "f", "seconds": 1.5, "words": "µ → ∞"}


def put(store: Store, cells=IDS, about=ABOUT) -> Path:
    return store.put("s", cells, {n: (d, a[: len(cells)]) for n, (d, a) in PROBES.items()}, about)


def files(store: Store) -> list[Path]:
    return sorted(p for p in store.path.rglob("*") if p.is_file())


# -------------------------------------------------------------------------------- cells


def test_what_is_put_is_found(store):
    path = put(store)
    found = Store(store.path).find("s")
    assert list(found) == IDS
    for row, cell in enumerate(IDS):
        chunk, at = found[cell]
        assert (chunk.path, at, chunk.about) == (path, row, ABOUT)
        for name, (_, array) in PROBES.items():
            np.testing.assert_array_equal(np.asarray(chunk.probes[name])[row], array[row])
            assert array.dtype == bool or chunk.probes[name].dtype == array.dtype


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
    assert store.find("s") == {}
    put(Store(store.path), IDS[:1])
    assert list(store.find("s")) == IDS[:1]
    put(Store(store.path), IDS[1:])
    assert set(store.find("s")) == set(IDS)


def test_a_cell_stored_twice_is_found_once(store):
    put(store, IDS[:2])
    put(store, IDS[1:], {"fingerprint": "g"})
    first = sorted(store.path.rglob("*.nc"))[0]
    assert set(store.find("s")) == set(IDS)
    assert store.find("s")[IDS[1]][0].path == first


def test_the_folder_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PROVING_STORE", str(tmp_path / "there"))
    assert Store().path == tmp_path / "there"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store(Path("~/results")).path == tmp_path / "results"


# --------------------------------------------------------------------------- quarantine


class Trap:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def renamed_to_match(path: Path) -> Path:
    """The file under the name that its content asks for."""
    return path.rename(path.with_name(f"{hashlib.sha256(path.read_bytes()).hexdigest()}.nc"))


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
    fresh = Store(store.path)
    assert list(fresh.find("s")) == IDS[:1]
    assert not bad.exists()
    assert not (tmp_path / "sprung").exists()
    (line,) = fresh.quarantined
    assert bad.name in line
    assert (store.path / "quarantine" / bad.name).exists()
    assert good.exists()
    assert list(Store(store.path).find("s")) == IDS[:1]
    put(store, IDS[1:])
    assert set(Store(store.path).find("s")) == set(IDS)


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
        found = store.find("s")
        assert bool(store.quarantined) == (not path.exists())
        assert all(chunk.path == path for chunk, _ in found.values())


def test_the_trap_would_spring(tmp_path):
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung")))
    assert (tmp_path / "sprung").exists()


def test_a_file_that_another_process_sets_aside_meanwhile_is_no_error(store, monkeypatch):
    put(store, IDS[:1])
    bad = flipped(put(store, IDS[1:]), store.path)
    read = Path.read_bytes

    def gone(path):
        content = read(path)
        if path == bad:
            path.unlink()
        return content

    monkeypatch.setattr(Path, "read_bytes", gone)
    assert list(Store(store.path).find("s")) == IDS[:1]


def test_other_files_and_links_are_left_alone(store):
    put(store)
    stranger = store.path / "s" / "notes.txt"
    stranger.write_text("mine")
    assert len(store.find("s")) == 3
    assert stranger.read_text() == "mine"
    assert store.quarantined == []


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

    def refuse(file):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(RunError, match=f"{says}.*intact"):
            put(store, IDS[1:])
        with pytest.raises(RunError, match=says):
            store.set_note("timings", "n", "1")
    assert files(store) == [before]
    assert list(Store(store.path).find("s")) == IDS[:1]
    put(store, IDS[1:])
    assert len(store.find("s")) == 3


def test_a_store_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match=r"cannot write to the store .*file/store: Not a directory"):
        put(Store(tmp_path / "file" / "store"))


def test_a_read_only_folder_says_so_and_can_be_read(store, monkeypatch):
    put(store, IDS[:1])

    def refuse(path, mode):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(module, "open", refuse, raising=False)
    with pytest.raises(RunError, match=r"cannot write to the store .* Permission denied"):
        put(store, IDS[1:])
    assert list(Store(store.path).find("s")) == IDS[:1]


@pytest.mark.parametrize("spoil", [truncated, pickled_well])
def test_an_unsound_file_of_a_read_only_store_is_named_and_not_loaded(
    store, tmp_path, monkeypatch, spoil
):
    put(store, IDS[:1])
    bad = spoil(put(store, IDS[1:]), tmp_path)

    def refuse(*args):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "replace", refuse)
    fresh = Store(store.path)
    assert list(fresh.find("s")) == IDS[:1]
    (line,) = fresh.quarantined
    assert bad.name in line


# -------------------------------------------------------------------------------- claims


def written(store: Store, **changes) -> Path:
    """A claim on "chunk" as another owner would have written it."""
    assert store.claim("chunk")
    path = store.path / "claims" / "chunk"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def dead_process() -> int:
    child = multiprocessing.get_context("spawn").Process(target=time.time)
    child.start()
    child.join()
    assert child.pid
    return child.pid


def test_a_claim_is_exclusive_until_it_is_released(store):
    assert store.claim("chunk")
    assert not store.claim("chunk")
    assert not Store(store.path).claim("chunk")
    assert store.claim("other")
    store.release("chunk")
    assert Store(store.path).claim("chunk")
    store.release("never claimed")


def test_one_of_many_gets_a_claim(store):
    barrier, got = threading.Barrier(8), []

    def ask():
        barrier.wait()
        got.append(Store(store.path).claim("chunk"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]


def test_a_dead_owner_s_claim_is_taken_over(store):
    path = written(store, pid=dead_process())
    assert store.claim("chunk")
    assert json.loads(path.read_text())["pid"] == os.getpid()


@pytest.mark.parametrize("changes", [{"boot": "an earlier one"}, {"started": "another time"}])
def test_a_claim_from_before_a_reboot_or_of_a_reused_number_is_taken_over(store, changes):
    written(store, **changes)
    assert store.claim("chunk")


def test_a_living_owner_s_claim_is_respected(store):
    written(store, pid=os.getppid(), started=module._started(os.getppid()))
    assert not store.claim("chunk")


def test_an_owner_on_another_machine_lives_while_the_claim_is_renewed(store):
    path = written(store, host="elsewhere", pid=1)
    assert not store.claim("chunk")
    long_ago = time.time() - 2 * module.STALE_CLAIM_SECONDS
    os.utime(path, (long_ago, long_ago))
    store.renew("chunk")
    assert not store.claim("chunk")
    os.utime(path, (long_ago, long_ago))
    assert store.claim("chunk")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        '{"host": 3}',
        '{"pid": "x"}',
        "[]",
        "7",
    ],
)
def test_a_broken_claim_is_respected_for_a_moment_and_then_taken_over(store, text):
    path = written(store)
    path.write_text(text)
    assert not store.claim("chunk")
    os.utime(path, (1, 1))
    assert store.claim("chunk")
