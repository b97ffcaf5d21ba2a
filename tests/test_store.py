import errno
import hashlib
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from chunks import ABOUT, IDS, PROBES, files, found, put
from provingground import chunk
from provingground import files as plain
from provingground.errors import InputError, RunError, StoreError
from provingground.index import Index
from provingground.store import MARKER, Store

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
    """The file whose name sorts first counts, in whichever order files were seen."""
    for order in (1, -1):
        several = Store(store.path / str(order))
        both = [(IDS[:2], ABOUT), (IDS[:2], ABOUT | {"device": "another"})]
        for cells, about in both[::order]:
            put(several, cells, about)
            assert set(found(several)) == set(IDS[:2])
        first = sorted(several.path.rglob("*.nc"))[0]
        assert found(several)[IDS[1]][0] == found(Store(several.path))[IDS[1]][0] == first


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
    assert (store.damaged, store.said) == ({}, [])
    shutil.rmtree(store.path / "s")
    assert found(store) == {}


def test_what_was_packed_elsewhere_is_the_same_file(store):
    content = chunk.packed(IDS, PROBES, ABOUT)
    assert store.put_packed("s", content) == put(store)


def test_a_chunk_that_no_one_would_read_is_not_made(monkeypatch):
    monkeypatch.setattr(chunk, "LARGEST_FILE", 500)
    with pytest.raises(ValueError, match="in one chunk"):
        chunk.packed(IDS, PROBES, ABOUT)


def test_the_folder_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PROVING_STORE", str(tmp_path / "there"))
    assert Store().path == tmp_path / "there"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store(Path("~/results")).path == tmp_path / "results"


# -------------------------------------------------------------------------------- index


def ids(numbers) -> np.ndarray:
    return np.array([hashlib.sha256(bytes([n])).hexdigest()[:32] for n in numbers], "S32")


CELLS = st.lists(st.integers(0, 99), max_size=30, unique=True)
FILES = st.dictionaries(st.text("0123456789abcdef", min_size=4, max_size=4), CELLS, max_size=40)


@given(FILES, st.randoms(use_true_random=False))
def test_an_index_finds_every_cell_in_the_first_of_its_files_and_no_other(added, random):
    index, names = Index(), list(added)
    random.shuffle(names)
    while names:
        some = [names.pop() for _ in range(random.randint(1, len(names)))]
        index.add({name: ids(added[name]) for name in some})
    expected: dict[int, list[tuple[str, int]]] = {}
    for name in sorted(added):
        for row, cell in enumerate(added[name]):
            expected.setdefault(cell, []).append((name, row))
    file, row = index.where(ids(range(100)))
    there = [(index.files[f], r) if f >= 0 else None for f, r in zip(file, row, strict=True)]
    assert {n: place for n, place in enumerate(there) if place} == {
        cell: places[0] for cell, places in expected.items()
    }
    several = {cell: places for cell, places in expected.items() if len(places) > 1}
    assert index.copied == bool(several)
    assert index.copies(ids(range(100))) == {
        bytes(ids([cell])[0]): [name for name, _ in places] for cell, places in several.items()
    }
    assert sorted(index.files) == sorted(added)
    assert len(index) == len(index.cells) == sum(map(len, added.values()))
    assert index.where(ids(range(6)).reshape(2, 3))[0].shape == (2, 3)


@given(st.lists(st.lists(st.integers(0, 255), max_size=50, unique=True), max_size=200))
def test_an_index_has_few_runs(added):
    index = Index()
    for number, some in enumerate(added):
        index.add({f"{number}.nc": ids(some)})
        assert len(index._runs) <= np.log2(len(index) + 1) + 2


def test_an_index_of_many_files_is_small_and_quick():
    index, cells = Index(), np.arange(200_000).astype("S32").reshape(-1, 20)
    for number in np.random.default_rng(0).permutation(len(cells)):
        index.add({str(number): cells[number]})
    assert len(index._runs) <= 18
    assert sum(column.nbytes for run in index._runs for column in run) == 40 * cells.size
    file, row = index.where(cells)
    assert [index.files[f] for f in file[:, 0]] == [str(n) for n in range(len(cells))]
    assert (row == np.arange(20)).all()


# ------------------------------------------------------------------------ two values


def changed(store: Store, about=ABOUT, value: float = 7.0, cells=IDS) -> Path:
    """Another file of the same cells, the last of which has another number."""
    array = PROBES["curve"][1].copy()
    array[-1, -1] = value
    return store.put("s", cells, PROBES | {"curve": (("step",), array)}, about)


def wanted(store: Store, *cells: str) -> None:
    store.look("s")
    store.where("s", np.array(cells, "S32"))


def test_two_values_for_one_cell_are_an_error_that_names_both_files(store):
    a, b = put(store), changed(store)
    for one in (store, Store(store.path)):
        for _ in range(2):
            with pytest.raises(StoreError, match="different numbers for 1 equal cells") as error:
                wanted(one, *IDS)
            assert str(a) in str(error.value)
            assert str(b) in str(error.value)
        wanted(one, *IDS[:2])  # of which there is one value
    b.unlink()
    wanted(store, *IDS)


def test_copies_that_are_equal_in_all_bits_are_fine(store):
    put(store)
    put(store, about=ABOUT | {"seconds": 2.0})
    put(store, IDS[:2])
    assert len(list((store.path / "s").iterdir())) == 3
    wanted(store, *IDS)
    assert store.unequal("s") == []


@pytest.mark.parametrize("entry", ["version", "jax", "numpy", "device", "devices", "backend",
                                   "lanes", "layout"])  # fmt: skip
def test_values_that_were_made_in_other_ways_may_differ(store, entry):
    put(store)
    changed(store, ABOUT | {entry: "another"})
    wanted(store, *IDS)
    (one,) = store.unequal("s")
    assert not one.alike
    assert one.cells.astype(str).tolist() == IDS[2:]
    assert one.largest == {"curve": (2.0, pytest.approx(2 / 5, rel=0.5))}


def test_of_three_copies_any_two_are_compared(store):
    """The first counts, and was made elsewhere; the other two contradict each other."""
    put(store)
    about = ABOUT | {"device": "another"}
    changed(store, about, 7.0)
    changed(store, about, 8.0)
    with pytest.raises(StoreError, match="different numbers"):
        wanted(store, *IDS)
    assert sorted(c.alike for c in store.unequal("s")) == [False, False, True]


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ([np.nan], [np.nan], False),
        ([np.nan], [1.0], True),
        ([0.0], [-0.0], True),
        ([np.inf], [-np.inf], True),
        ([1.0], [1.0 + 2**-52], True),
        ([1], [1.0], True),
    ],
)
def test_numbers_are_compared_by_their_bits(store, one, other, differ):
    for values in (one, other):
        store.put("s", IDS[:1], {"x": ((), np.array(values))}, {"lanes": "1"})
    assert bool(store.unequal("s")) == differ


# ----------------------------------------------------------------------------- the folder


def test_a_store_is_marked_when_it_is_made_and_not_before(store):
    assert not store.exists()
    assert found(store) == {}
    assert store.note("timings", "n") is None
    assert not store.path.exists()
    put(store)
    assert store.exists()
    assert Store(store.path).exists()
    assert (store.path / MARKER).read_text() == '{"format": 1}\n'


def test_an_empty_folder_becomes_a_store(tmp_path):
    assert found(Store(tmp_path)) == {}
    assert list(tmp_path.iterdir()) == []
    put(Store(tmp_path))
    assert len(found(Store(tmp_path))) == 3


USES = {
    "look": lambda store: store.look("s"),
    "read a note": lambda store: store.note("timings", "n"),
    "write a note": lambda store: store.set_note("timings", "n", "1"),
    "put": put,
    "open": Store.open,
    "lock": lambda store: store.lock("b" * 32),
}


def everything(folder: Path) -> list[tuple[str, bytes]]:
    return sorted((str(p), p.read_bytes() if p.is_file() else b"") for p in folder.rglob("*"))


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("letter.txt", b"mine", "is not a store: it is not empty"),
        ("claims/letter.txt", b"mine", "looks like a store of version 0.1.0: `proving upgrade"),
        (f"toy/{'0' * 64}.nc", b"CDF", "looks like a store of version 0.1.0: `proving upgrade"),
        (MARKER, b"{", "is damaged; `proving upgrade"),
        (MARKER, b'{"format": "1"}', "is damaged"),
        (MARKER, b'{"format": NaN}', "is damaged"),
        (MARKER, b"[" * 10_000, "is damaged"),
        (MARKER, b'{"format": 2}', r"newer version of Proving Ground \(its format is 2"),
    ],
)
def test_a_folder_that_is_no_store_is_refused_and_left_as_it_is(tmp_path, name, content, says, use):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    before = everything(tmp_path)
    with pytest.raises(InputError, match=says):
        use(Store(tmp_path))
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    "path", ["~nouser/x", "x" * 300, "a\0b", "file", "file/store", "loop"], ids=repr
)
def test_a_path_that_cannot_be_a_store_is_refused(tmp_path, path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InputError, match="cannot be a store"):
        put(Store(path if path.startswith("~") else tmp_path / path))


def test_the_folder_itself_may_be_a_link(tmp_path, store):
    (tmp_path / "link").symlink_to(store.path)
    path = put(Store(tmp_path / "link"))
    assert path == store.path / "s" / path.name
    assert len(found(Store(tmp_path / "link"))) == 3


def test_two_processes_may_make_a_store_at_once(tmp_path):
    for number in range(20):
        barrier, failed = threading.Barrier(4), []

        def make(store, barrier=barrier, failed=failed):
            barrier.wait()
            try:
                put(store)
            except Exception as error:
                failed.append(error)

        threads = [
            threading.Thread(target=make, args=(Store(tmp_path / str(number)),)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert {p.name for p in (tmp_path / str(number)).iterdir()} == {MARKER, "s"}


@pytest.mark.parametrize("name", ["s", "locks", "notes", "notes/timings", "quarantine"])
def test_links_below_the_folder_are_not_followed(tmp_path, store, name, capsys):
    put(Store(tmp_path / "other"))
    Store(tmp_path / "other").set_note("timings", "n", "1")
    outside = tmp_path / "other" / name
    outside.mkdir(parents=True, exist_ok=True)
    if name == "locks":
        (outside / ("b" * 32)).write_text("mine")
        os.utime(outside / ("b" * 32), (1, 1))
    before = everything(tmp_path / "other")
    bad = put(store) if name != "s" else put(store, IDS[:1])
    store.set_note("lanes", "n", "1")
    if name == "s":
        shutil.rmtree(store.path / "s")
    if name == "quarantine":
        bad.write_bytes(b"")
    if name == "notes":
        shutil.rmtree(store.path / "notes")
    (store.path / name).symlink_to(outside)
    fresh = Store(store.path)
    assert found(fresh) == {} if name in ("s", "quarantine") else len(found(fresh)) == 3
    assert fresh.note("timings", "n") is None
    uses = {
        "s": lambda: put(fresh),
        "locks": lambda: fresh.lock("b" * 32),
        "quarantine": lambda: fresh.set_aside(),
    }
    if name == "quarantine":
        fresh.set_aside()
        assert bad.exists()
        assert "the store writes to its own folders only" in capsys.readouterr().err
    else:
        with pytest.raises(StoreError, match=f"{store.path / name} is not a folder, or a link"):
            uses.get(name, lambda: fresh.set_note("timings", "n", "2"))()
    assert everything(tmp_path / "other") == before
    if name == "s":
        assert f"{store.path / name} is not a folder, or a link" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["locks", "notes", "quarantine", "compiled", "claims", "lanes"])
def test_a_study_cannot_have_the_name_of_a_folder_of_ours(store, name):
    for use in (store.look, lambda name: store.put(name, IDS, PROBES, ABOUT)):
        with pytest.raises(InputError, match=f"a study cannot be named '{name}'"):
            use(name)


# -------------------------------------------------------------------------------- notes


def test_notes_are_kept(store):
    assert store.note("timings", "n") is None
    store.set_note("timings", "n", "0.25")
    store.set_note("timings", "n", "0.5 µ\n")
    assert Store(store.path).note("timings", "n") == "0.5 µ\n"
    assert store.note("fingerprints", "n") is None


def no_file(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def zeros(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def swapped(path: Path) -> None:
    path.with_name("m").rename(path)


NOTES = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"1"),
    "bare": lambda path: path.write_bytes(b"0.25"),
    "letters": lambda path: path.write_bytes(b"\xff\xfe\n\0"),
    "large": lambda path: os.truncate(path, 2**40),
    "another's": swapped,
    "folder": no_file,
    "pipe": a_pipe,
    "endless": zeros,
}


@pytest.mark.parametrize("spoil", NOTES.values(), ids=NOTES)
def test_a_damaged_note_is_none_and_is_made_anew_where_it_is_a_file(store, spoil):
    store.set_note("timings", "n", "0.25")
    store.set_note("timings", "m", "0.75")
    path = store.path / "notes" / "timings" / "n"
    spoil(path)
    fresh = Store(store.path)
    assert fresh.note("timings", "n") is None
    is_file = path.is_file() and not path.is_symlink()
    fresh.set_note("timings", "n", "0.5")
    assert fresh.note("timings", "n") == ("0.5" if is_file else None)
    assert Path("/dev/zero").is_char_device()


def test_a_note_that_cannot_be_read_is_none(store, monkeypatch):
    store.set_note("timings", "n", "0.25")

    def refuse(path, limit):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(plain, "read", refuse)
    assert store.note("timings", "n") is None


def test_notes_are_synced_where_that_is_asked_for(store, monkeypatch):
    """Others may be lost in a power cut, and then are as good as none."""
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(file), fsync(file)))
    store.open()
    synced.clear()
    store.set_note("timings", "n", "0.25")
    assert not synced
    store.set_note("adopted", "n", "f" * 40, sync=True)
    assert len(synced) == 1
    for left in (b"", b"\0" * 70):  # what a file system may leave of a file that was not synced
        (store.path / "notes" / "timings" / "n").write_bytes(left)
        assert store.note("timings", "n") is None


@pytest.mark.parametrize(
    ("kind", "name"), [("..", "n"), ("timings", "../n"), ("a/b", "n"), ("", "n")]
)
def test_a_note_stays_in_its_folder(store, kind, name):
    with pytest.raises(ValueError, match="no name of a note"):
        store.set_note(kind, name, "1")


def test_a_note_is_small(store):
    with pytest.raises(ValueError, match="a note of"):
        store.set_note("timings", "n", "x" * 2**16)


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
        lambda: store.lock("b" * 32),
        lambda: store.set_note("timings", "n", "1"),
        lambda: store.look("s"),
        store.open,
    ):
        with pytest.raises(RunError, match=f"cannot write to the store {store.path}"):
            use()
        assert not store.path.exists()
    store.locks.release("b" * 32)
    store.locks.renew(["b" * 32])
    store.locks.close()
    assert not store.path.exists()


def test_an_empty_folder_in_the_place_of_a_store_that_went_away_is_not_taken_for_it(store):
    """A disk was unmounted, and its folder is still there."""
    store.open()
    shutil.rmtree(store.path)
    store.path.mkdir()
    with pytest.raises(RunError, match="it went away"):
        put(store)
    assert list(store.path.iterdir()) == []


def test_a_read_only_folder_says_so_and_can_be_read(store, monkeypatch):
    put(store, IDS[:1])

    def refuse(path, mode, **options):
        if "x" in mode:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return open(path, mode, **options)

    monkeypatch.setattr(plain, "open", refuse, raising=False)
    with pytest.raises(RunError, match=r"cannot write to the store .* Permission denied"):
        put(store, IDS[1:])
    assert list(found(Store(store.path))) == IDS[:1]
