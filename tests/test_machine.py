"""Where compiled programs are kept: in a folder to which nobody else has access, or nowhere."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from provingground import machine


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Iterator[Path]:
    """The user's cache folder, for compiled programs, of a process that has none yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(machine, "_cached_in", None)
    before = getattr(jax.config, "jax_compilation_cache_dir", None)
    seconds = getattr(jax.config, "jax_persistent_cache_min_compile_time_secs", 1.0)
    jax.config.update("jax_compilation_cache_dir", None)
    yield tmp_path / "cache" / "provingground" / "compiled"
    jax.config.update("jax_compilation_cache_dir", before)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", seconds)


def kept_in() -> str | None:
    machine.keep_compiled_programs()
    return getattr(jax.config, "jax_compilation_cache_dir", None)


def test_it_is_made_for_the_user_alone(cache, capsys):
    assert kept_in() == kept_in() == str(cache)
    for folder in (cache, cache.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o770, 0o777, 0o701])
def test_it_is_not_used_where_others_have_access(cache, capsys, mode):
    cache.mkdir(parents=True)
    cache.chmod(mode)
    assert kept_in() is None
    assert kept_in() is None
    told = capsys.readouterr().err
    assert told.count("compiled programs are not kept: others have access to") == 1
    assert str(cache) in told


def test_it_is_not_used_where_others_may_put_another_in_its_place(cache, capsys):
    cache.mkdir(parents=True)
    cache.chmod(0o700)
    cache.parent.chmod(0o777)
    assert kept_in() is None
    assert "others have access" in capsys.readouterr().err


def test_it_is_not_used_where_it_is_another_user_s(cache, capsys, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert kept_in() is None
    assert "belongs to another user" in capsys.readouterr().err


@pytest.mark.parametrize("place", [lambda cache: cache, lambda cache: cache.parent])
def test_it_is_not_used_where_it_is_a_link(cache, capsys, tmp_path, place):
    (tmp_path / "other" / "compiled").mkdir(parents=True)
    place(cache).parent.mkdir(parents=True, mode=0o700)
    place(cache).symlink_to(tmp_path / "other")
    assert kept_in() is None
    assert "is a link" in capsys.readouterr().err


def test_it_is_not_used_where_it_cannot_be_made(cache, capsys, tmp_path):
    (tmp_path / "cache").write_text("in the way")
    assert kept_in() is None
    assert "compiled programs are not kept" in capsys.readouterr().err


def test_what_jax_was_told_stands(cache, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "mine"))
    assert kept_in() == str(tmp_path / "mine")
    assert not cache.exists()
