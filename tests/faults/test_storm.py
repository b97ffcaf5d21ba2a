"""A little of the storm; `python tests/faults/storm.py --seed S` is the whole of it."""

import pytest
import storm


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """The storm changes the environment of its own process."""
    monkeypatch.setenv("PROVING_STUDIES", "")
    monkeypatch.setattr(storm.locks, "BROKEN_SECONDS", storm.locks.BROKEN_SECONDS)


def test_kills_of_one_process(tmp_path):
    assert "3 kills" in storm.killed(5, 3, tmp_path)


@pytest.mark.slow
def test_kills_of_processes_that_share_the_work(tmp_path):
    assert "2 kills" in storm.killed(6, 2, tmp_path, processes=3)


@pytest.mark.parametrize("seed", [7, 8])
def test_corruptions(tmp_path, seed):
    assert "corruptions" in storm.corrupted(seed, 20, tmp_path.resolve())
