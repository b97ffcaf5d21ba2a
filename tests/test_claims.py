import json
import multiprocessing
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from provingground import claims
from provingground.claims import OLD_LEFTOVER_SECONDS, STALE_SECONDS, Claims
from provingground.store import Store


def claim_text(**changes) -> str:
    """What another owner would have written into his claims."""
    return json.dumps(json.loads(claims.me(os.getpid())) | changes)


def written(store: Store, text: str | None = None, **changes) -> Path:
    """A claim on "block" of another owner, or with another text."""
    store.open()
    path = store.path / "claims" / "block"
    path.unlink(missing_ok=True)
    path.write_text(claim_text(**changes) if text is None else text)
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
    monkeypatch.setattr(claims, "time", fake)
    monkeypatch.setattr(claims, "_clock", lambda folder: hands.wall)
    return hands


# ------------------------------------------------------------------------ one owner each


def test_a_claim_is_exclusive_until_it_is_released(store):
    assert store.claim("block")
    assert not store.claim("block")
    assert not Store(store.path).claim("block")
    assert store.claim("other")
    store.claims.release("block")
    assert Store(store.path).claim("block")
    store.claims.release("never claimed")


def test_a_claim_says_whose_it_is(store):
    assert store.claims.holder("block") == ""
    assert store.claim("block")
    owner = json.loads(store.claims.holder("block"))
    assert owner["pid"] == os.getpid()
    assert Store(store.path).claims.holder("block") == store.claims.holder("block")


def test_all_claims_of_a_process_are_one_file(store):
    assert all(store.claim(f"block {n}") for n in range(5))
    assert len({p.stat().st_ino for p in (store.path / "claims").iterdir()}) == 1
    for n in range(5):
        store.claims.release(f"block {n}")
    store.claims.close()
    store.claims.close()
    assert list((store.path / "claims").iterdir()) == []
    assert store.claim("block")  # and it can go on


def test_a_file_system_without_links_will_do(store, monkeypatch):
    def refuse(*args):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert store.claim("block")
    assert not store.claim("block")
    assert not Store(store.path).claim("block")
    store.claims.release("block")
    assert store.claim("block")


def test_one_of_many_gets_a_claim(store):
    barrier, got = threading.Barrier(8), []

    def ask():
        barrier.wait()
        got.append(Store(store.path).claim("block"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]


# ------------------------------------------------------------------------- dead or alive


def test_a_dead_owner_s_claim_is_taken_over(store, dead):
    written(store, pid=dead)
    assert store.claim("block")
    assert json.loads(store.claims.holder("block"))["pid"] == os.getpid()


@pytest.mark.parametrize("changes", [{"boot": "an earlier one"}, {"started": "another time"}])
def test_a_claim_from_before_a_reboot_or_of_a_reused_number_is_taken_over(store, changes):
    written(store, **changes)
    assert store.claim("block")


def test_a_dead_owner_who_does_not_know_his_start_is_dead(store, dead):
    written(store, pid=dead, started=None)
    assert store.claim("block")


def test_one_of_many_takes_over(store, dead):
    written(store, pid=dead)
    barrier, got = threading.Barrier(8), []

    def ask(claims: Claims):
        barrier.wait()
        got.append(claims.take("block"))

    threads = [threading.Thread(target=ask, args=(Store(store.path).claims,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]


@pytest.mark.parametrize("look", [Claims.take, lambda claims, name: claims.clean()])
def test_a_claim_that_is_taken_over_meanwhile_is_left_alone(store, dead, monkeypatch, look):
    """Between one process's look at a dead claim and its removal, another one is quicker."""
    path = written(store, pid=dead)
    quicker, slower, lives = Store(store.path).claims, store.claims, Claims.lives

    def takes_over(self, path, *what):
        found = lives(self, path, *what)
        if self is slower and path.name == "block" and not found:
            assert quicker.take("block")
        return found

    monkeypatch.setattr(Claims, "lives", takes_over)
    assert not look(slower, "block")
    assert path.samefile(quicker.own)


def test_a_removal_that_died_half_way_is_done_by_the_next(store, dead):
    written(store, pid=dead)
    removals = []

    class Dying(Claims):
        def release(self, name):
            removals.append(self.folder / name)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Dying(store.path / "claims").take("block")
    (removal,) = removals
    removal.unlink()
    removal.write_text(claim_text(pid=dead))
    written(store, pid=dead)
    assert store.claim("block")
    assert not removal.exists()


def test_a_living_owner_s_claim_is_respected(store):
    written(store, pid=os.getppid(), started=claims._started(os.getppid()))
    assert not store.claim("block")


def test_an_owner_on_another_machine_lives_while_the_claim_is_renewed(store):
    path = written(store, host="elsewhere", pid=1)
    assert not store.claim("block")
    age(path, 2 * STALE_SECONDS)
    store.claims.renew(["block"])
    assert not store.claim("block")
    age(path, 2 * STALE_SECONDS)
    assert store.claim("block")


@pytest.mark.parametrize("text", ["", "{", "{}", '{"host": 3}', '{"pid": "x"}', "[]", "7", "null"])
def test_a_broken_claim_is_respected_for_a_moment_and_then_taken_over(store, text):
    path = written(store, text)
    assert not store.claim("block")
    os.utime(path, (1, 1))
    assert store.claim("block")


@pytest.mark.parametrize("wrong", [None, "x", -1, 1.5, [1], {}, 10**30, "../../etc", True])
@pytest.mark.parametrize("field", ["host", "boot", "pid", "started"])
def test_a_claim_with_a_wrong_entry_never_stops_a_run(store, field, wrong):
    path = written(store, **{field: wrong})
    store.claim("block")
    if store.claims.holder("block") != claims.me(os.getpid()):
        os.utime(path, (1, 1))
        assert store.claim("block")


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 100,
        b"\xff\xfe\xfd",
        claim_text(pid="a\0b").encode(),
    ],
    ids=["zeros", "bytes", "pid"],
)
def test_a_claim_of_other_bytes_is_a_broken_one(store, content):
    path = written(store)
    path.write_bytes(content)
    age(path, 60)
    store.claim("block")
    Store(store.path).open()
    assert store.claims.holder("block").encode() != content


# -------------------------------------------------------------------------------- clocks


@pytest.mark.parametrize("ahead", [1e3, 1e9])
def test_a_claim_from_the_future_is_taken_over_once_it_was_watched_for_long(store, clock, ahead):
    """The clock of the file server was set back after the owner on another machine died."""
    path = written(store, host="elsewhere", pid=1)
    age(path, -ahead)
    assert not store.claim("block")
    clock.monotonic += STALE_SECONDS - 1
    assert not store.claim("block")
    clock.monotonic += 2
    assert store.claim("block")


def test_a_claim_from_the_future_that_is_renewed_is_respected(store, clock):
    path = written(store, host="elsewhere", pid=1)
    for minute in range(100):
        age(path, -1e6 - minute)
        clock.monotonic += 60
        clock.wall -= 3600
        assert not store.claim("block")


def test_the_clock_that_counts_is_the_file_system_s(store, clock):
    path = written(store, host="elsewhere", pid=1)
    clock.wall = path.stat().st_mtime + STALE_SECONDS - 1
    assert not store.claim("block")
    clock.wall += 2
    assert store.claim("block")


@pytest.mark.parametrize("seconds", [-1e9, -1e3, 0, 1e3, 1e9])
def test_claims_of_this_machine_do_not_care_about_clocks(store, dead, clock, seconds):
    living = written(store)
    for _ in range(2):
        age(living, seconds)
        assert not store.claim("block")
        clock.monotonic += 10 * STALE_SECONDS
        clock.wall += 10 * STALE_SECONDS
    age(written(store, pid=dead), seconds)
    assert store.claim("block")


# ----------------------------------------------------------------------------- leftovers


def leftover(store: Store, name: str, folder: str = "s") -> Path:
    path = store.path / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half of a chu")
    return path


def test_opening_removes_what_dead_writers_left(store, dead):
    host, pid, started = claims.tag().rsplit(".", 2)
    of_dead = leftover(store, f".0a.{host}.{dead}.{started}.tmp")
    of_reused = leftover(store, f".0b.{host}.{pid}.1.tmp", "timings")
    of_living = leftover(store, f".0c.{claims.tag()}.tmp")
    chunk = leftover(store, "f.nc")
    Store(store.path).open()
    assert [p.exists() for p in (of_dead, of_reused, of_living, chunk)] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("host", ["elsewhere", "node.with.dots", "1.2.3.4"])
def test_what_a_writer_on_another_machine_left_is_removed_after_a_day(store, host):
    path = leftover(store, f".0a.{host}.1.23.tmp")
    store.open()
    age(path, OLD_LEFTOVER_SECONDS - 60)
    store.open()
    assert path.exists()
    age(path, OLD_LEFTOVER_SECONDS + 60)
    store.open()
    assert not path.exists()


@pytest.mark.parametrize(
    "name", [".tmp", "..tmp", ".a.tmp", ".a.b.c.tmp", ".0a.h.x.y.tmp", "....tmp"]
)
def test_temporary_files_of_other_programs_do_not_stop_a_run(store, name):
    path = leftover(store, name)
    store.open()
    assert path.exists()


def test_what_a_write_needs_is_gone_afterwards(store):
    store.set_note("timings", "n", "1")
    assert [p.name for p in (store.path / "timings").iterdir()] == ["n.txt"]
    (store.path / "timings" / "m.txt").mkdir()
    with pytest.raises(Exception, match="cannot write"):
        store.set_note("timings", "m", "1")
    assert {p.name for p in (store.path / "timings").iterdir()} == {"n.txt", "m.txt"}


def test_opening_removes_claims_of_the_dead_and_no_others(store, dead):
    store.open()
    folder = store.path / "claims"
    (folder / "dead").write_text(claim_text(pid=dead))
    (folder / ".dead's own").write_text(claim_text(pid=dead))
    (folder / "rebooted").write_text(claim_text(boot="an earlier one"))
    (folder / "elsewhere").write_text(claim_text(host="elsewhere"))
    (folder / "stale").write_text(claim_text(host="elsewhere"))
    age(folder / "stale", STALE_SECONDS + 60)
    (folder / "broken just now").write_text("{")
    (folder / "broken").write_text("{")
    age(folder / "broken", 60)
    assert store.claim("mine")
    Store(store.path).open()
    kept = {"elsewhere", "broken just now", "mine", store.claims.own.name}
    assert {p.name for p in folder.iterdir()} == kept


def test_an_empty_folder_is_made_once(tmp_path):
    store = Store(tmp_path / "a" / "b")
    store.open()
    assert [p.name for p in store.path.iterdir()] == ["claims"]
    assert list((store.path / "claims").iterdir()) == []
