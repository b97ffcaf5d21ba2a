"""Stores on disks that cannot be written, or that go away."""

import shutil

import pytest
from processes import CELLS, HERE, SWEEP, cells, files, nothing_left

import provingground as pg


def test_a_store_that_cannot_be_made_is_named_before_any_work(tmp_path, start):
    (tmp_path / "file").write_text("not a folder")
    store = tmp_path / "file" / "store"
    mark = tmp_path / "mark"
    code, told, _ = start("run", *SWEEP, "--store", store, mark=mark).end()
    assert code == 2
    assert f"{store} cannot be a store: Not a directory" in told
    assert "Traceback" not in told
    assert not mark.exists()


@pytest.mark.slow
def test_a_store_that_goes_away_is_not_made_again(tmp_path, start, finished, undisturbed):
    store, away = tmp_path / "store", tmp_path / "away"
    process = start("run", *SWEEP, "--store", store, seconds=0.6)
    process.until(lambda: len(files(store)) >= 3)
    store.rename(away)
    code, told, _ = process.end()
    assert code == 3, told
    assert f"cannot write to the store {store}" in told
    assert "Traceback" not in told
    assert not store.exists()
    stored = cells(away).total()
    assert 3 <= stored < CELLS

    away.rename(store)
    ds, told = finished(store)
    assert f"{CELLS} cells, {stored} stored" in told
    assert ds.identical(undisturbed[1])
    assert nothing_left(store)


@pytest.mark.slow
def test_a_store_that_goes_away_from_the_last_worker_is_an_error(tmp_path, start):
    store, mark = tmp_path / "store", tmp_path / "mark"
    sweep = ["crashing/first", "--set", "rate=1,2", "--seeds", "1", "--lanes", "1"]
    process = start("run", *sweep, "--workers", 1, "--store", store, seconds=0.1, long=3, mark=mark)
    process.until(mark.exists)
    store.rename(tmp_path / "away")
    code, told, _ = process.end()
    assert not store.exists()
    assert code == 3, told


def test_a_disk_that_becomes_read_only_is_named(tmp_path, start, finished, undisturbed):
    store = tmp_path / "store"
    sabotage = f"read_only_from:3:{store}"
    code, told, _ = start("run", *SWEEP, "--store", store, sabotage=sabotage, seconds=0.05).end()
    assert code == 3, told
    assert f"cannot write to the store {store}: Read-only file system" in told
    assert "Traceback" not in told
    assert len(files(store)) == 2
    assert finished(store)[0].identical(undisturbed[1])
    assert nothing_left(store)


@pytest.fixture
def copied(tmp_path, undisturbed):
    return shutil.copytree(undisturbed[0], tmp_path / "store")


def test_a_read_only_store_cannot_be_run_on(tmp_path, start, copied):
    sweep = [*SWEEP, "--set", "rate=5,6"]
    options = {"sabotage": f"read_only:{copied}", "mark": tmp_path / "mark"}
    code, told, _ = start("run", *sweep, "--store", copied, **options).end()
    assert code == 3, told
    assert f"cannot write to the store {copied}: Read-only file system" in told
    assert not (tmp_path / "mark").exists()


def test_a_read_only_store_can_be_read(tmp_path, start, copied, undisturbed, monkeypatch):
    out = tmp_path / "figure.png"
    code, told, _ = start(
        "figure", "crashing/first", "--store", copied, "--out", out, sabotage=f"read_only:{copied}"
    ).end()
    assert code == 0, told
    assert out.read_bytes().startswith(b"\x89PNG")
    for path in (copied, *copied.rglob("*")):  # which root may still write
        path.chmod(0o555 if path.is_dir() else 0o444)
    monkeypatch.setenv("PROVING_STUDIES", str(HERE / "crashing"))
    ds = pg.load("crashing/first", store=copied)
    del ds.attrs["seconds"]
    assert ds.identical(undisturbed[1])
    for path in (copied, *copied.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
