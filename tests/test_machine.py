"""Compiled programs kept where nobody else has access, or nowhere; the commit of a checkout."""

import os
import shutil
import stat
import subprocess
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


# --------------------------------------------------------------------------- the commit

SHA, OTHER = "a1" * 20, "b2" * 20


def checkout(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "here"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({".git/HEAD": f"{SHA}\n"}, SHA),
        ({".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": f"{SHA}\n"}, SHA),
        ({".git/HEAD": "ref: refs/heads/a/b\n",
          ".git/packed-refs": f"# pack-refs\n{OTHER} refs/heads/b\n{SHA} refs/heads/a/b\n"}, SHA),
        ({".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": f"{SHA}\n",
          ".git/packed-refs": f"{OTHER} refs/heads/main\n"}, SHA),  # a loose one is newer
        ({".git": "gitdir: ../of/worktrees/w\n", "../of/worktrees/w/HEAD": "ref: refs/heads/w\n",
          "../of/worktrees/w/commondir": "../..\n", "../of/refs/heads/w": f"{SHA}\n"}, SHA),
        ({}, ""),
        ({".git/HEAD": "ref: refs/heads/new\n"}, ""),  # before the first commit
        ({".git/HEAD": "what is this?\n"}, ""),
        ({".git": "gitdir: nowhere\n"}, ""),
    ],
)  # fmt: skip
def test_the_commit_of_a_checkout_is_read_from_its_files(
    tmp_path: Path, files: dict[str, str], expected: str
) -> None:
    assert machine.commit(checkout(tmp_path, {f"here/{n}": text for n, text in files.items()})) == (
        expected
    )


def test_the_commit_is_what_git_says() -> None:
    root = Path(machine.__file__).parents[2]
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        pytest.skip("not a checkout")
    told = subprocess.run([git, "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True)
    assert machine.commit() == told.stdout.strip()
