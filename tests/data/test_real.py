"""Data sets: found, checked, fetched over the network, and kept whole or not at all.

Addresses are those of a server of this test; the published files themselves are looked at where
`$PROVING_DATA` has them.
"""

import contextlib
import errno
import gzip
import hashlib
import http.server
import io
import os
import threading
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import requests
from test_formats import idx_bytes, planetoid_files, same

from provingground import files
from provingground.data import fetch, formats, real, sets
from provingground.data.sets import DataSet, File, Form
from provingground.errors import DataMissing, InputError, RunError

HERE = os.environ.get("PROVING_DATA", "")
needs_data = pytest.mark.skipif(not HERE, reason="data not here: $PROVING_DATA is not set")


def sha256(content):
    return hashlib.sha256(content).hexdigest()


ARRAY = np.arange(12, dtype=np.uint8).reshape(3, 4)
GOOD = idx_bytes(ARRAY)


def read(content):
    return {"x": formats.idx(content)}


def made(*urls, content=GOOD):
    return DataSet("dots", "Dots", "Nobody, 2026", "none", 0.1,
                   (Form((File("dots/dots.gz", sha256(content), urls),), read),
                    Form((File("dots/prepared.gz", sha256(GOOD)),), read)))  # fmt: skip


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves what the test says: a body, how much of it, a status, or nothing for a while."""

    answers: ClassVar[dict[str, tuple[int, bytes, int]]] = {}
    asked: ClassVar[list[str]] = []

    def do_GET(self):
        type(self).asked.append(self.path)
        status, body, length = self.answers.get(self.path, (404, b"", 0))
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    """A server; what `serve(path, body)` gives is its address."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    Handler.answers, Handler.asked = {}, []
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()

    def serve(path, body=GOOD, status=200, length=None):
        Handler.answers[path] = (status, body, len(body) if length is None else length)
        return f"http://127.0.0.1:{made.server_port}{path}"

    yield serve
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PROVING_DATA", str(tmp_path / "data"))
    real._loaded.cache_clear()
    return tmp_path / "data"


def known(monkeypatch, data):
    monkeypatch.setattr(real, "SETS", {data.name: data})
    return data


def nothing_kept(folder):
    return not folder.exists() or not [p for p in folder.rglob("*") if p.is_file()]


# ------------------------------------------------------------------------------ fetching


def test_what_is_fetched_is_checked_kept_as_plain_arrays_and_read_once(folder, server, monkeypatch):
    known(monkeypatch, made(server("/dots.gz")))
    with pytest.raises(DataMissing, match="'dots' is not here; `proving data get dots` fetches"):
        real.load("dots")
    fetch.get("dots")
    (kept,) = (folder / "dots").iterdir()
    assert kept.name == f"dots.{sha256(kept.read_bytes())[:16]}.npz"
    found = real.load("dots")
    np.testing.assert_array_equal(found["x"], ARRAY)
    assert real.load("dots") is found
    with pytest.raises(ValueError, match="read-only"):
        found["x"][0] = 0
    fetch.get("dots")  # is here already
    assert Handler.asked == ["/dots.gz"]
    assert not list(folder.glob(".*"))


def test_another_address_is_tried_where_the_first_fails(folder, server, monkeypatch):
    known(monkeypatch, made(server("/gone", b"", 404), server("/wrong", b"x"), server("/dots.gz")))
    fetch.get("dots")
    assert Handler.asked == ["/gone", "/wrong", "/dots.gz"]
    assert real.load("dots")["x"].shape == (3, 4)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, GOOD[:-3], len(GOOD)), "the connection broke off"),
        ((200, GOOD[:-3], len(GOOD) - 3), "bytes that came are not the file"),
        ((200, b"<html>Not here</html>", 21), "the 21 bytes that came are not the file"),
        ((404, b"", 0), "the server answers 404 Not Found"),
        ((503, b"", 0), "the server answers 503"),
    ],
    ids=["broken off", "truncated", "another file", "gone", "busy"],
)
def test_a_download_that_fails_says_why_and_leaves_nothing(
    folder, server, monkeypatch, answer, message
):
    status, body, length = answer
    known(monkeypatch, made(server("/dots.gz", body, status, length)))
    with pytest.raises(RunError, match=message) as told:
        fetch.get("dots")
    assert "nothing was kept" in str(told.value)
    assert sha256(GOOD) in str(told.value)  # for those who have the file from elsewhere
    assert nothing_kept(folder)
    with pytest.raises(DataMissing):
        real.load("dots")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (requests.ConnectionError("down"), "no connection"),
        (requests.Timeout("late"), "no answer in time"),
        (requests.TooManyRedirects("round"), "TooManyRedirects"),
    ],
)
def test_without_a_network_it_says_so(folder, monkeypatch, error, message):
    def get(*args, **options):
        raise error

    monkeypatch.setattr(requests, "get", get)
    known(monkeypatch, made("http://example.org/dots.gz"))
    with pytest.raises(RunError, match=message):
        fetch.get("dots")
    assert nothing_kept(folder)


def test_a_full_disk_is_named_and_nothing_is_left(folder, server, monkeypatch):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    known(monkeypatch, made(server("/dots.gz")))
    monkeypatch.setattr(files, "write", full)
    with pytest.raises(RunError, match=f"{folder}: No space left on device. Nothing was kept"):
        fetch.get("dots")
    assert nothing_kept(folder)
    monkeypatch.undo()


def test_a_disk_that_fills_up_while_a_file_comes_is_named(folder, server, monkeypatch):
    import pooch

    def full(*args, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    known(monkeypatch, made(server("/dots.gz")))
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    with pytest.raises(RunError, match="No space left on device"):
        fetch.get("dots")
    assert nothing_kept(folder)


def test_a_folder_that_cannot_be_made_is_named(tmp_path, server, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("PROVING_DATA", str(tmp_path / "file" / "data"))
    known(monkeypatch, made(server("/dots.gz")))
    with pytest.raises(RunError, match="cannot write to the folder of data"):
        fetch.get("dots")


def test_a_file_of_another_format_with_the_right_checksum_is_not_kept(folder, server, monkeypatch):
    known(monkeypatch, made(server("/dots.gz", b"no idx"), content=b"no idx"))
    with pytest.raises(RunError, match="was fetched and cannot be read: no array in the format"):
        fetch.get("dots")
    assert nothing_kept(folder)


def test_several_at_once_keep_one_file(folder, server, monkeypatch):
    known(monkeypatch, made(server("/dots.gz")))
    failed = []

    def get():
        try:
            fetch.get("dots")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=get) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(list((folder / "dots").iterdir())) == 1
    assert real.load("dots")["x"].shape == (3, 4)


def test_what_a_killed_process_left_a_day_ago_is_removed(folder, server, monkeypatch):
    known(monkeypatch, made(server("/dots.gz")))
    for name, age in ((".fetching-old", 2 * fetch.A_DAY), (".fetching-new", 0), ("mine", 1e7)):
        (folder / name).mkdir(parents=True)
        (folder / name / "part").write_text("half")
        changed = (folder / name).stat().st_mtime - age
        os.utime(folder / name, (changed, changed))
    fetch.get("dots")
    assert sorted(p.name for p in folder.iterdir()) == [".fetching-new", "dots", "mine"]


def several(monkeypatch, *urls):
    """A data set of three files, of which each is at its own address."""
    parts = [idx_bytes(np.full(3, n, np.uint8)) for n in range(3)]

    def joined(*contents):
        return {"x": np.concatenate([formats.idx(content) for content in contents])}

    listed = zip("abc", parts, urls, strict=True)
    form = Form(tuple(File(f"dots/{n}.gz", sha256(part), (u,)) for n, part, u in listed), joined)
    known(monkeypatch, DataSet("dots", "Dots", "Nobody, 2026", "none", 0.1, (form,)))
    return parts


def test_of_several_files_those_are_fetched_that_are_not_here(folder, server, monkeypatch, capsys):
    parts = several(monkeypatch, *(server(f"/{n}.gz") for n in "abc"))
    for n, part in zip("abc", parts, strict=True):
        server(f"/{n}.gz", part)
    place(folder, "a.gz", parts[0])
    place(folder, "b.gz", b"damaged")
    fetch.get("dots")
    assert Handler.asked == ["/b.gz", "/c.gz"]
    assert "b.gz is damaged" in capsys.readouterr().err
    assert real.load("dots")["x"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert (folder / "dots" / "b.gz").read_bytes() == b"damaged"  # it is the user's


def test_where_one_fails_all_files_are_named_that_are_not_here(folder, server, monkeypatch):
    parts = several(monkeypatch, server("/a.gz", b"", 404), *["http://x.org/"] * 2)
    place(folder, "b.gz", parts[1])
    with pytest.raises(RunError, match="could not be fetched, and nothing was kept") as told:
        fetch.get("dots")
    for n, part in zip("abc", parts, strict=True):
        named = f"{folder / 'dots' / n}.gz with the SHA-256 {sha256(part)}"
        assert (named in str(told.value)) == (n != "b")


def test_a_data_set_that_is_here_in_part_says_what_is_lacking(folder, monkeypatch):
    parts = several(monkeypatch, *["http://x.org/"] * 3)
    place(folder, "b.gz", parts[1])
    with pytest.raises(DataMissing, match="'dots' is here in part") as told:
        real.load("dots")
    assert "a.gz with the SHA-256" in str(told.value)
    assert "c.gz with the SHA-256" in str(told.value)
    assert "b.gz" not in str(told.value)
    found = real.look(real.known("dots"), folder)
    assert [Path(text.split()[3]).name for text in found.lacking] == ["a.gz", "c.gz"]
    for n, part in zip("abc", parts, strict=True):
        place(folder, f"{n}.gz", part)
    fetch.get("dots")  # by hand, without a network
    assert real.load("dots")["x"].shape == (9,)


def test_a_folder_of_data_that_is_not_there_is_made_and_told(folder, server, monkeypatch, capsys):
    known(monkeypatch, made(server("/dots.gz")))
    fetch.get("dots")
    told = f"there was no folder {folder}, which $PROVING_DATA names: it is made now"
    assert told in capsys.readouterr().err
    fetch.get("dots")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_was_made_for_nothing_is_removed(tmp_path, server, monkeypatch, there):
    folder = tmp_path / "up" / "data"
    monkeypatch.setenv("PROVING_DATA", str(folder))
    known(monkeypatch, made(server("/dots.gz", b"", 404)))
    if there:
        folder.mkdir(parents=True)
    with pytest.raises(RunError, match="nothing was kept"):
        fetch.get("dots")
    assert [*tmp_path.rglob("*")] == ([tmp_path / "up", folder] if there else [])


# ------------------------------------------------------------------------------- finding


def place(folder, name, content):
    path = folder / "dots" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["dots.gz", "prepared.gz"])
def test_files_that_are_there_are_taken_without_a_network(folder, monkeypatch, name):
    known(monkeypatch, made("http://example.org/dots.gz"))
    place(folder, name, GOOD)
    np.testing.assert_array_equal(real.load("dots")["x"], ARRAY)
    fetch.get("dots")
    assert [p.name for p in (folder / "dots").iterdir()] == [name]


@pytest.mark.parametrize("name", ["dots.gz", "prepared.gz"])
def test_a_damaged_file_is_told_fetched_anew_and_left_as_it_is(
    folder, server, monkeypatch, capsys, name
):
    known(monkeypatch, made(server("/dots.gz")))
    path = place(folder, name, GOOD[:-1] + b"x")
    with pytest.raises(DataMissing, match=rf"'dots' is damaged \({path} is damaged: its checksum"):
        real.load("dots")
    fetch.get("dots")
    assert f"{path} is damaged" in capsys.readouterr().err
    np.testing.assert_array_equal(real.load("dots")["x"], ARRAY)
    assert path.read_bytes() == GOOD[:-1] + b"x"  # it is the user's


def test_arrays_that_were_kept_and_damaged_later_are_fetched_anew(
    folder, server, monkeypatch, capsys
):
    known(monkeypatch, made(server("/dots.gz")))
    fetch.get("dots")
    (kept,) = (folder / "dots").iterdir()
    good = kept.read_bytes()
    for spoilt in (good[:-1], good[:50] + bytes([good[50] ^ 1]) + good[51:], b""):
        kept.write_bytes(spoilt)
        real._loaded.cache_clear()
        with pytest.raises(DataMissing, match="`proving data get dots` fetches it"):
            real.load("dots")
        fetch.get("dots")
        assert "is damaged" in capsys.readouterr().err
        assert kept.read_bytes() == good


@pytest.mark.parametrize("name", ["dots.0123456789abcdef.npz", "dots.gz"])
def test_a_damaged_file_beside_a_prepared_copy_is_told_and_fetched_anew(
    folder, server, monkeypatch, capsys, name
):
    known(monkeypatch, made(server("/dots.gz")))
    path = place(folder, name, b"damaged")
    place(folder, "prepared.gz", GOOD)
    real.load("dots")
    real.load("dots")  # which is said once
    told = f"{path} is damaged: its checksum is not that of {name}"
    instead = "; what is taken instead of dots: prepared copy"
    assert capsys.readouterr().err == f"proving: {told}{instead}\n"
    assert real.forms_read(["dots"]) == "dots: prepared copy"
    fetch.get("dots")
    assert f"{told}{instead}" in capsys.readouterr().err
    assert Handler.asked == ["/dots.gz"]
    real._loaded.cache_clear()
    real.load("dots")
    assert capsys.readouterr().err == ""
    assert real.forms_read(["dots", "others"]) == "dots: published"


def test_a_file_that_may_not_be_read_is_told(folder, monkeypatch):
    known(monkeypatch, made())
    (folder / "dots" / "prepared.gz").mkdir(parents=True)
    with pytest.raises(DataMissing, match=r"prepared.gz cannot be read: Is a directory"):
        real.load("dots")


def test_what_the_user_has_to_bring_is_said(folder, monkeypatch):
    def copy(where: Path):
        return {"x": np.load(where / "mine.npy")}

    data = DataSet("own", "Own", "Me, 2026", "mine", 1.0, wants="own/mine.npy, by you", copy=copy)
    known(monkeypatch, data)
    with pytest.raises(
        DataMissing, match=f"put own/mine.npy, by you, into {folder}, then `prov"
    ) as told:
        fetch.get("own")
    assert told.value.command == ""  # no command gets it
    (folder / "own").mkdir(parents=True)
    np.save(folder / "own" / "mine.npy", ARRAY)
    fetch.get("own")
    np.testing.assert_array_equal(real.load("own")["x"], ARRAY)
    assert real.forms_read(["own"]) == "own: own copy"


def test_of_several_that_are_missing_those_are_fetched_that_can_be(folder):
    told = real.all_missing(["cifar10", "textures"])
    assert told is not None
    assert (told.data, told.command) == ("cifar10 textures", "proving data get cifar10")
    assert "'textures' is not here; it is not fetched: put a folder of crops" in str(told)
    assert str(told).count("There is no folder") == 1


def test_an_unknown_data_set_is_named_with_the_nearest():
    with pytest.raises(InputError, match="unknown data set 'mnsit'; did you mean 'mnist'"):
        real.load("mnsit")


def test_the_folder_is_the_user_s_cache_unless_told(monkeypatch):
    monkeypatch.delenv("PROVING_DATA", raising=False)
    assert real.folder().parts[-2:] == ("provingground", "data")


# ------------------------------------------------------------------------------ the table


@pytest.mark.parametrize("data", sets.SETS.values(), ids=sets.SETS)
def test_every_data_set_says_where_it_comes_from(data):
    assert data.title
    assert data.cite
    assert data.licence
    assert data.size > 0
    assert bool(data.wants) == bool(data.copy) == (not data.fetched)
    for file in (f for form in data.forms for f in form.files):
        assert len(file.sha256) == 64
        assert set(file.sha256) <= set("0123456789abcdef")
        assert all(
            url.startswith("http") and url.endswith(Path(file.path).name) for url in file.urls
        )
        assert ".." not in Path(file.path).parts


# -------------------------------------------------------------------- the published files


@needs_data
@pytest.mark.parametrize("data", sets.SETS.values(), ids=sets.SETS)
def test_what_is_here_can_be_read(data):
    found = real.look(data, Path(HERE))
    assert found.wrong == ()
    if found.read is None:
        pytest.skip(f"data not here: proving data get {data.name}")
    assert all(isinstance(a, np.ndarray) and a.dtype != object for a in found.read().values())


def here(name):
    try:
        return real.load(name)
    except DataMissing as missing:
        pytest.skip(f"data not here: {missing.command}")


@needs_data
@pytest.mark.slow
def test_mnist_written_as_it_is_published_is_what_is_published():
    """Checksums of the files before they were compressed; and what is read of them."""
    published = {
        "x_train": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "y_train": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "x_test": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "y_test": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    }
    digits = here("mnist")
    for name, wanted in published.items():
        raw = gzip.decompress(idx_bytes(digits[name]))
        assert sha256(raw) == wanted
        np.testing.assert_array_equal(formats.idx(raw), digits[name])


@needs_data
@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_planetoid_s_form_gives_the_prepared_graph(name):
    graph = here(name)
    known = {n: a for n, a in graph.items() if n != "geom_splits"}
    assert (graph["labels"][graph["idx_test"]] >= 0).all()
    same(formats.planetoid(*planetoid_files(known)), known)


@needs_data
@pytest.mark.parametrize("name", ["actor", "cornell", "texas", "wisconsin"])
def test_geom_gcn_s_form_gives_the_prepared_graph_but_for_its_splits(name):
    graph = here(name)
    nodes, width = graph["x_shape"].tolist()
    places = np.split(graph["x_indices"], graph["x_indptr"][1:-1])
    rows = [f"{n}\t{','.join(map(str, at))}\t{graph['labels'][n]}" for n, at in enumerate(places)]
    pairs = [f"{u}\t{v}" for u, v in graph["edges"].T]
    tables = ("\n".join(["head", *lines]).encode() for lines in (rows, pairs))
    found = formats.geom_gcn(*tables, width=width, listed=True)
    drawn = {**graph, "geom_splits": formats.splits(nodes)}
    same(found, drawn)
    for ours, published in zip(found["geom_splits"], graph["geom_splits"], strict=True):
        np.testing.assert_array_equal(np.bincount(ours), np.bincount(published))


@needs_data
@pytest.mark.parametrize("name", ["etth1", "exchange_rate", "ili"])
def test_both_prepared_forms_of_a_series_are_the_same(name):
    contents = [
        [(Path(HERE) / f.path).read_bytes() for f in form.files]
        for form in sets.SETS[name].forms[1:]
        if all((Path(HERE) / f.path).exists() for f in form.files)
    ]
    if len(contents) < 2:
        pytest.skip(f"data not here: prepared copies of {name}")
    arrays, table = (
        form.read(*c) for form, c in zip(sets.SETS[name].forms[1:], contents, strict=True)
    )
    same(table, arrays)
    published = sets.SETS[name].forms[0].files[0]
    assert sha256(formats.unpacked(contents[1][0])) == published.sha256


@needs_data
def test_what_was_read_of_counterfact_and_hotpotqa_is_all_there():
    facts, questions = here("counterfact"), here("hotpotqa")
    assert len(facts["subject"]) == 21919
    assert all(t.count(b"{}") == 1 for t in facts["template"])
    assert len(questions["answer"]) == 7405


def test_kept_arrays_have_the_same_bytes_each_time():
    contents = []
    for _ in range(2):
        file = io.BytesIO()
        np.savez_compressed(file, allow_pickle=False, x=ARRAY)
        contents.append(file.getvalue())
    assert contents[0] == contents[1]
