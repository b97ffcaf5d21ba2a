"""Files that the user asked for."""

import os

import pytest

from provingground import outputs
from provingground.errors import InputError, RunError


@pytest.mark.parametrize("name", ["new.nc", "there.nc", "link.nc", "dangling.nc"])
def test_a_file_is_written_and_only_that(tmp_path, name):
    (tmp_path / "there.nc").write_bytes(b"earlier")
    (tmp_path / "link.nc").symlink_to("there.nc")
    (tmp_path / "dangling.nc").symlink_to("later.nc")
    before = set(os.listdir(tmp_path))
    outputs.check(tmp_path / name, (".nc",))
    assert set(os.listdir(tmp_path)) == before
    assert (tmp_path / "there.nc").read_bytes() == b"earlier"
    outputs.write(tmp_path / name, b"new")
    assert (tmp_path / name).read_bytes() == b"new"
    assert (tmp_path / "link.nc").is_symlink()
    assert (tmp_path / "dangling.nc").is_symlink()
    made = {"new.nc": {"new.nc"}, "dangling.nc": {"later.nc"}}.get(name, set())
    assert set(os.listdir(tmp_path)) == before | made


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "is a folder"),
        (".", "is a folder"),
        ("folder.nc", "is a folder"),
        ("to_folder.nc", "is a folder"),
        ("pipe.nc", "not a plain file"),
        ("nowhere/x.nc", "does not exist"),
        ("file/x.nc", "does not exist|Not a directory"),
        ("loop.nc", "loop|[Ss]ymlink"),
        ("x" * 300 + ".nc", "name too long"),
        ("a\0b.nc", "null"),
        ("x.txt", r"ends in \.nc or \.json"),
        ("x", r"ends in \.nc or \.json"),
        ("/proc/self/x.nc", "cannot be written"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(tmp_path, monkeypatch, name, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.nc").mkdir()
    (tmp_path / "to_folder.nc").symlink_to("folder.nc")
    (tmp_path / "file").write_text("")
    (tmp_path / "loop.nc").symlink_to("loop.nc")
    os.mkfifo(tmp_path / "pipe.nc")
    before = set(os.listdir(tmp_path))
    kinds = () if name in ("", ".") else (".nc", ".json")
    with pytest.raises(InputError, match=f"(?i){says}"):
        outputs.check(outputs.Path(name), kinds)
    assert set(os.listdir(tmp_path)) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_refused(tmp_path):
    (tmp_path / "mine.nc").write_bytes(b"kept")
    (tmp_path / "mine.nc").chmod(0o400)
    with pytest.raises(InputError, match="may not be written"):
        outputs.check(tmp_path / "mine.nc")


def test_what_goes_wrong_while_writing_is_told(tmp_path):
    with pytest.raises(RunError, match=r"cannot write .*x.nc: No such file"):
        outputs.write(tmp_path / "gone" / "x.nc", b"")
