import errno
import json
import multiprocessing
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from provingground import files, locks
from provingground.errors import StoreError
from provingground.locks import OLD_LEFTOVER_SECONDS, STALE_SECONDS, Locks
from provingground.store import Store

BLOCK, OTHER = "b" * 32, "c" * 32


def lock_text(**changes) -> str:
    """What another owner would have written into his locks."""
    mine = locks.owner(locks.me(os.getpid()).encode())
    assert mine is not None
    return locks.signed(mine | changes)


def written(store: Store, text: str | None = None, **changes) -> Path:
    """A lock on BLOCK of another owner, or with another text."""
    store.open()
    path = store.path / "locks" / BLOCK
    path.unlink(missing_ok=True)
    path.write_text(lock_text(**changes) if text is None else text)
    return path


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.fixture(scope="module")
def dead() -> int:
    """The number of a process that is no more."""
    child = multiprocessing.get_context("spawn").Process(target=time.time)
    child.start()
    child.join()
    assert child.pid
    return child.pid


@pytest.fixture
def clock(monkeypatch):
    """The clocks of this machine and of the file system, to be set by hand."""
    hands = SimpleNamespace(monotonic=1000.0, wall=time.time())
    fake = SimpleNamespace(monotonic=lambda: hands.monotonic, time=lambda: hands.wall)
    monkeypatch.setattr(locks, "time", fake)
    monkeypatch.setattr(locks, "_clock", lambda folder: hands.wall)
    return hands


# ------------------------------------------------------------------------ one owner each


def test_a_lock_is_exclusive_until_it_is_released(store):
    assert store.lock(BLOCK)
    assert not store.lock(BLOCK)
    assert not Store(store.path).lock(BLOCK)
    assert store.lock(OTHER)
    store.locks.release(BLOCK)
    assert Store(store.path).lock(BLOCK)
    store.locks.release("0" * 32)


def test_a_lock_says_whose_it_is(store):
    assert store.locks.holder(BLOCK) == ""
    assert store.lock(BLOCK)
    owner = json.loads(store.locks.holder(BLOCK))
    assert owner["pid"] == os.getpid()
    assert Store(store.path).locks.holder(BLOCK) == store.locks.holder(BLOCK)


def test_all_locks_of_a_process_are_one_file(store):
    assert all(store.lock(f"{n:032x}") for n in range(5))
    assert len({p.stat().st_ino for p in (store.path / "locks").iterdir()}) == 1
    for n in range(5):
        store.locks.release(f"{n:032x}")
    store.locks.close()
    store.locks.close()
    assert list((store.path / "locks").iterdir()) == []
    assert store.lock(BLOCK)  # and it can go on


def test_a_file_system_without_links_will_do(store, monkeypatch):
    def refuse(*args):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert store.lock(BLOCK)
    assert not store.lock(BLOCK)
    assert not Store(store.path).lock(BLOCK)
    store.locks.release(BLOCK)
    assert store.lock(BLOCK)


def test_one_of_many_gets_a_lock(store):
    barrier, got = threading.Barrier(8), []

    def ask():
        barrier.wait()
        got.append(Store(store.path).lock(BLOCK))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]


def test_a_receipt_is_for_a_lock_that_is_held(store):
    worker = Store(store.path)
    assert store.lock(BLOCK)
    assert not worker.locks.is_signed(BLOCK)
    worker.locks.sign(BLOCK)
    assert worker.locks.is_signed(BLOCK)
    for name in (BLOCK, locks.receipt(BLOCK)):
        store.locks.release(name)
    worker.locks.sign(BLOCK)  # the owner has gone on without it
    store.locks.close()
    assert list((store.path / "locks").iterdir()) == []
    assert not worker.locks.is_signed(BLOCK)


def test_no_receipt_stays_where_the_owner_goes_on_while_it_is_written(store, monkeypatch):
    worker = Store(store.path)
    assert store.lock(BLOCK)
    write = locks.files.write

    def late(*args, **options):
        for name in (BLOCK, locks.receipt(BLOCK)):
            store.locks.release(name)
        write(*args, **options)

    monkeypatch.setattr(locks.files, "write", late)
    worker.locks.sign(BLOCK)
    store.locks.close()
    assert list((store.path / "locks").iterdir()) == []


# ------------------------------------------------------------------------- dead or alive


def test_a_dead_owner_s_lock_is_taken_over(store, dead):
    written(store, pid=dead)
    assert store.lock(BLOCK)
    assert json.loads(store.locks.holder(BLOCK))["pid"] == os.getpid()


@pytest.mark.parametrize("changes", [{"boot": "an earlier one"}, {"started": "another time"}])
def test_a_lock_from_before_a_reboot_or_of_a_reused_number_is_taken_over(store, changes):
    written(store, **changes)
    assert store.lock(BLOCK)


def test_a_dead_owner_who_does_not_know_his_start_is_dead(store, dead):
    written(store, pid=dead, started=None)
    assert store.lock(BLOCK)


def test_one_of_many_takes_over(store, dead):
    written(store, pid=dead)
    barrier, got = threading.Barrier(8), []

    def ask(locks: Locks):
        barrier.wait()
        got.append(locks.take(BLOCK))

    threads = [threading.Thread(target=ask, args=(Store(store.path).locks,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]


@pytest.mark.parametrize("look", [Locks.take, lambda locks, name: locks.clean()])
def test_a_lock_that_is_taken_over_meanwhile_is_left_alone(store, dead, monkeypatch, look):
    """Between one process's look at a dead lock and its removal, another one is quicker."""
    path = written(store, pid=dead)
    quicker, slower, lives = Store(store.path).locks, store.locks, Locks.lives

    def takes_over(self, path, *what):
        found = lives(self, path, *what)
        if self is slower and path.name == BLOCK and not found:
            assert quicker.take(BLOCK)
        return found

    monkeypatch.setattr(Locks, "lives", takes_over)
    assert not look(slower, BLOCK)
    assert path.samefile(quicker.own)


def test_a_removal_that_died_half_way_is_done_by_the_next(store, dead):
    written(store, pid=dead)
    removals = []

    class Dying(Locks):
        def release(self, name):
            removals.append(self.folder / name)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Dying(store.path / "locks", store.locks.set_aside).take(BLOCK)
    (removal,) = removals
    removal.unlink()
    removal.write_text(lock_text(pid=dead))
    written(store, pid=dead)
    assert store.lock(BLOCK)
    assert not removal.exists()


def test_a_living_owner_s_lock_is_respected(store):
    written(store, pid=os.getppid(), started=locks._started(os.getppid()))
    assert not store.lock(BLOCK)


def test_an_owner_on_another_machine_lives_while_the_lock_is_renewed(store):
    path = written(store, host="elsewhere", pid=1)
    assert not store.lock(BLOCK)
    age(path, 2 * STALE_SECONDS)
    store.locks.renew([BLOCK])
    assert not store.lock(BLOCK)
    age(path, 2 * STALE_SECONDS)
    assert store.lock(BLOCK)


@pytest.mark.parametrize("text", ["", "{", "{}", '{"host": 3}', '{"pid": "x"}', "[]", "7", "null"])
def test_a_broken_lock_is_respected_for_a_moment_and_then_taken_over(store, text):
    path = written(store, text)
    assert not store.lock(BLOCK)
    os.utime(path, (1, 1))
    assert store.lock(BLOCK)


@pytest.mark.parametrize("wrong", [None, "x", -1, 1.5, [1], {}, 10**30, "../../etc", True])
@pytest.mark.parametrize("field", ["host", "boot", "pid", "started"])
def test_a_lock_with_a_wrong_entry_never_stops_a_run(store, field, wrong):
    path = written(store, **{field: wrong})
    store.lock(BLOCK)
    if store.locks.holder(BLOCK) != locks.me(os.getpid()):
        os.utime(path, (1, 1))
        assert store.lock(BLOCK)


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 100,
        b"\xff\xfe\xfd",
        lock_text(pid="a\0b").encode(),
    ],
    ids=["zeros", "bytes", "pid"],
)
def test_a_lock_of_other_bytes_is_a_broken_one(store, content):
    path = written(store)
    path.write_bytes(content)
    age(path, 60)
    store.lock(BLOCK)
    Store(store.path).open()
    assert store.locks.holder(BLOCK).encode() != content


# -------------------------------------------------------------------------------- clocks


@pytest.mark.parametrize("ahead", [1e3, 1e9])
def test_a_lock_from_the_future_is_taken_over_once_it_was_watched_for_long(store, clock, ahead):
    """The clock of the file server was set back after the owner on another machine died."""
    path = written(store, host="elsewhere", pid=1)
    age(path, -ahead)
    assert not store.lock(BLOCK)
    clock.monotonic += STALE_SECONDS - 1
    assert not store.lock(BLOCK)
    clock.monotonic += 2
    assert store.lock(BLOCK)


def test_a_lock_from_the_future_that_is_renewed_is_respected(store, clock):
    path = written(store, host="elsewhere", pid=1)
    for minute in range(100):
        age(path, -1e6 - minute)
        clock.monotonic += 60
        clock.wall -= 3600
        assert not store.lock(BLOCK)


def test_the_clock_that_counts_is_the_file_system_s(store, clock):
    path = written(store, host="elsewhere", pid=1)
    clock.wall = path.stat().st_mtime + STALE_SECONDS - 1
    assert not store.lock(BLOCK)
    clock.wall += 2
    assert store.lock(BLOCK)


@pytest.mark.parametrize("seconds", [-1e9, -1e3, 0, 1e3, 1e9])
def test_locks_of_this_machine_do_not_care_about_clocks(store, dead, clock, seconds):
    living = written(store)
    for _ in range(2):
        age(living, seconds)
        assert not store.lock(BLOCK)
        clock.monotonic += 10 * STALE_SECONDS
        clock.wall += 10 * STALE_SECONDS
    age(written(store, pid=dead), seconds)
    assert store.lock(BLOCK)


# ------------------------------------------------------------------- what is not a lock


def test_a_broken_lock_is_set_aside_and_said(store, capsys):
    path = written(store, "half of a lo")
    age(path, 60)
    assert store.lock(BLOCK)
    assert json.loads(store.locks.holder(BLOCK))["pid"] == os.getpid()
    (aside,) = (store.path / "quarantine").iterdir()
    assert aside.read_text() == "half of a lo"
    assert aside.name.startswith("locks.")
    assert f"quarantined locks/{BLOCK}" in capsys.readouterr().err


def a_link(path: Path) -> None:
    (path.parents[2] / "letter").write_text("mine")
    path.symlink_to(path.parents[2] / "letter")


@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, a_link, lambda p: p.symlink_to("/dev/zero")]
)
def test_what_stands_where_a_lock_should_be_is_named_and_left_alone(store, make):
    store.open()
    path = store.path / "locks" / BLOCK
    make(path)
    for _ in range(2):
        with pytest.raises(StoreError, match=f"{BLOCK} stands where a lock should be"):
            store.lock(BLOCK)
        assert os.path.lexists(path)
        store.open()
    assert store.lock(OTHER)
    assert store.locks.holder(BLOCK) == ""


@pytest.mark.parametrize(
    "name", ["letter.txt", "b" * 31, "B" * 32, ".ready", "b" * 32 + "~", f".{'b' * 32}.bak"]
)
@pytest.mark.parametrize("text", ["to my friends", ""])
def test_other_files_in_the_folder_are_never_removed(store, name, text):
    store.open()
    path = store.path / "locks" / name
    path.write_text(text)
    os.utime(path, (1, 1))
    store.open()
    assert store.lock(BLOCK)
    store.locks.release(name)
    assert path.read_text() == text


def test_a_lock_that_another_took_over_is_not_released(store, dead):
    assert store.lock(BLOCK)
    path = written(store, host="elsewhere", pid=1)
    store.locks.release(BLOCK)
    assert path.exists()


def test_a_lock_that_cannot_be_read_is_named(store, monkeypatch):
    path = written(store, pid=1)

    def refuse(path, limit):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(files, "read", refuse)
    with pytest.raises(StoreError, match=f"cannot read the lock {path}: Permission denied"):
        store.lock(BLOCK)
    assert path.exists()


# ----------------------------------------------------------------------------- leftovers


UNIQUE = "0123456789abcdef" * 2


def leftover(store: Store, name: str, folder: str = "s") -> Path:
    store.open()
    path = store.path / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half of a chu")
    return path


def test_opening_removes_what_dead_writers_left(store, dead):
    host, pid, started = locks.tag().rsplit(".", 2)
    dead_s = [
        leftover(store, f".{UNIQUE}.{host}.{dead}.{started}.tmp"),
        leftover(store, f".{UNIQUE}.{host}.{pid}.1.tmp", "notes/timings"),
        leftover(store, f".{UNIQUE}.{host}.{dead}.{started}.tmp", "."),
        leftover(store, f".{UNIQUE}.{host}.{dead}.{started}.tmp", "quarantine"),
    ]
    others = [
        leftover(store, f".{UNIQUE}.{locks.tag()}.tmp"),
        leftover(store, "f.nc"),
        leftover(store, f".{UNIQUE}.{host}.{dead}.{started}.tmp", "s/my own"),
        leftover(store, f".{UNIQUE}.{host}.{dead}.{started}.tmp", "compiled"),
    ]
    link = store.path / "s" / f".{'e' * 32}.{host}.{dead}.{started}.tmp"
    link.symlink_to(others[1])
    Store(store.path).open()
    assert [p.exists() for p in dead_s] == [False] * 4
    assert [p.exists() for p in (*others, link)] == [True] * 5


@pytest.mark.parametrize("host", ["elsewhere", "node.with.dots", "1.2.3.4"])
def test_what_a_writer_on_another_machine_left_is_removed_after_a_day(store, host):
    path = leftover(store, f".{UNIQUE}.{host}.1.23.tmp")
    store.open()
    age(path, OLD_LEFTOVER_SECONDS - 60)
    store.open()
    assert path.exists()
    age(path, OLD_LEFTOVER_SECONDS + 60)
    store.open()
    assert not path.exists()


@pytest.mark.parametrize(
    "name",
    [
        ".tmp",
        "..tmp",
        ".a.tmp",
        ".a.b.c.tmp",
        "....tmp",
        ".0a.elsewhere.1.23.tmp",
        f".{UNIQUE}.elsewhere.x.y.tmp",
        f".{UNIQUE}.tmp",
        f"{UNIQUE}.elsewhere.1.23.tmp",
    ],
)
def test_temporary_files_of_other_programs_are_left_alone(store, name):
    path = leftover(store, name)
    age(path, 10 * OLD_LEFTOVER_SECONDS)
    store.open()
    assert path.exists()


def test_what_a_write_needs_is_gone_afterwards(store, monkeypatch):
    store.set_note("timings", "n", "1")
    assert [p.name for p in (store.path / "notes" / "timings").iterdir()] == ["n"]

    def refuse(*args):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(StoreError, match="cannot write"):
        store.set_note("timings", "m", "1")
    assert [p.name for p in (store.path / "notes" / "timings").iterdir()] == ["n"]


def test_opening_removes_locks_of_the_dead_and_no_others(store, dead):
    store.open()
    folder = store.path / "locks"
    names = iter(f"{n:032x}" for n in range(10))

    def left(text: str, seconds: float = 0, hidden: str = "") -> str:
        path = folder / f"{hidden}{next(names)}"
        path.write_text(text)
        age(path, seconds)
        return path.name

    left(lock_text(pid=dead))
    left(lock_text(pid=dead), hidden=".")
    left(lock_text(boot="an earlier one"))
    elsewhere = left(lock_text(host="elsewhere"))
    left(lock_text(host="elsewhere"), STALE_SECONDS + 60)
    just_now = left("{")
    broken = left("{", 60)
    assert store.lock(BLOCK)
    Store(store.path).open()
    kept = {elsewhere, just_now, BLOCK, store.locks.own.name}
    assert {p.name for p in folder.iterdir()} == kept
    (aside,) = (store.path / "quarantine").iterdir()
    assert aside.name.endswith(broken)


def test_an_empty_folder_is_made_once(tmp_path):
    store = Store(tmp_path / "a" / "b")
    store.open()
    assert {p.name for p in store.path.iterdir()} == {"locks", "proving-store.json"}
    assert list((store.path / "locks").iterdir()) == []
