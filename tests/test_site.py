"""The atlas as a folder: whole or not at all, and nothing of the user's is touched."""

import os
from pathlib import Path

import pytest

import provingground as pg
from provingground.atlas import site as module
from provingground.atlas.site import MARKER, site
from provingground.errors import InputError, RunError
from shown import broken_links


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A store with the toy study."""
    from provingground.store import Store

    store = Store(tmp_path_factory.mktemp("kept") / "store")
    pg.run("toy/risk", store=store, progress=False)
    return store


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_site_is_a_folder_of_files_without_a_broken_link(kept, tmp_path):
    told = []
    built = site(tmp_path / "site", studies=["toy"], store=kept, tell=told.append)
    found = files(tmp_path / "site")
    assert told == ["toy"]
    assert built.files == len(found) - 1  # the marker
    assert built.size == sum(map(len, found.values())) - len(found[MARKER])
    assert broken_links(found) == []
    assert b"https://" not in found["static/core.js"]
    assert os.listdir(tmp_path) == ["site"]


def test_a_site_of_ours_is_replaced_and_what_went_is_gone(kept, tmp_path):
    out = tmp_path / "site"
    site(out, studies=["toy"], store=kept)
    (out / "toy" / "old.html").write_text("old")
    site(out, studies=["toy"], store=kept)
    assert not (out / "toy" / "old.html").exists()
    assert os.listdir(tmp_path) == ["site"]


def test_an_empty_folder_is_taken(kept, tmp_path):
    (tmp_path / "site").mkdir()
    assert (site(tmp_path / "site", studies=["toy"], store=kept).path / "index.html").is_file()


@pytest.mark.parametrize("kind", ["full", "file", "link", "nowhere", "root", "long"])
def test_what_is_not_ours_is_left_alone(kind, kept, tmp_path):
    out = tmp_path / "mine"
    if kind == "full":
        out.mkdir()
        (out / "letter.txt").write_text("mine")
    elif kind == "file":
        out.write_text("mine")
    elif kind == "link":
        (tmp_path / "other").mkdir()
        out.symlink_to(tmp_path / "other")
    out = {"nowhere": tmp_path / "a" / "b", "root": Path("/"), "long": tmp_path / ("x" * 300)}.get(
        kind, out
    )
    before = files(tmp_path)
    with pytest.raises(InputError):
        site(out, studies=["toy"], store=kept)
    assert files(tmp_path) == before


def test_a_site_that_could_not_be_written_leaves_the_old_one(kept, tmp_path, monkeypatch):
    out = tmp_path / "site"
    site(out, studies=["toy"], store=kept)
    before = files(out)

    def full(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunError, match="No space left"):
        site(out, studies=["toy"], store=kept)
    monkeypatch.undo()
    assert files(out) == before
    assert os.listdir(tmp_path) == ["site"]


def test_a_page_that_fails_leaves_the_old_site(kept, tmp_path, monkeypatch):
    out = tmp_path / "site"
    site(out, studies=["toy"], store=kept)
    before = files(out)

    def broken(self, path):
        raise RuntimeError("a template")

    monkeypatch.setattr(module.Atlas, "page", broken)
    with pytest.raises(RuntimeError):
        site(out, studies=["toy"], store=kept)
    assert files(out) == before
    assert os.listdir(tmp_path) == ["site"]
