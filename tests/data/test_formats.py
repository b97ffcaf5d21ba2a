"""Small made files in each format, and what is refused."""

import gzip
import io
import json
import pickle
import tarfile
import zipfile
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from test_unpickle import Tensor, tensor_pickle

from provingground.data import copies, formats
from provingground.data.formats import Unreadable

RNG = np.random.default_rng(0)


def idx_bytes(array):
    """An array of bytes as MNIST is published; the same bytes at any time of day."""
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return gzip.compress(head + array.tobytes(), mtime=0)


@given(hnp.arrays("|u1", hnp.array_shapes(min_side=0, max_dims=3)))
def test_idx_comes_back_as_it_was(values):
    np.testing.assert_array_equal(formats.idx(idx_bytes(values)), values)
    np.testing.assert_array_equal(formats.idx(gzip.decompress(idx_bytes(values))), values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no array in the format idx"),
        (b"hello world", "no array in the format idx"),
        (idx_bytes(np.zeros((2, 3), "|u1"))[:-12], "the compressed file is broken"),
        (gzip.decompress(idx_bytes(np.zeros((2, 3), "|u1")))[:-1], "has 5 bytes, not 6"),
        (b"\x1f\x8bnothing", "the compressed file is broken"),
    ],
)
def test_what_is_no_idx_is_refused(content, message):
    with pytest.raises(Unreadable, match=message):
        formats.idx(content)


def test_mnist_is_four_files_that_belong_together():
    images, labels = RNG.integers(0, 256, (5, 28, 28), "|u1"), np.arange(5, dtype="|u1")
    four = [idx_bytes(a) for a in (images, labels, images[:2], labels[:2])]
    found = formats.mnist(*four)
    np.testing.assert_array_equal(found["x_train"], images)
    np.testing.assert_array_equal(found["y_test"], labels[:2])
    with pytest.raises(Unreadable, match="with"):
        formats.mnist(four[0], four[3], *four[2:])


def tar_bytes(parts):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in parts.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def cifar_parts():
    images = RNG.integers(0, 256, (12, 32, 32, 3), "|u1")
    labels = RNG.integers(0, 10, 12).astype("|u1")
    rows = [
        bytes([y]) + x.transpose(2, 0, 1).tobytes() for x, y in zip(images, labels, strict=True)
    ]
    parts = {f"data_batch_{n + 1}.bin": b"".join(rows[2 * n : 2 * n + 2]) for n in range(5)}
    parts |= {
        "test_batch.bin": b"".join(rows[10:]),
        "batches.meta.txt": b"airplane\nautomobile\n\n",
    }
    return images, labels, parts


def test_cifar_10_in_its_binary_form():
    images, labels, parts = cifar_parts()
    found = formats.cifar10(tar_bytes(parts))
    np.testing.assert_array_equal(found["x_train"], images[:10])
    np.testing.assert_array_equal(found["x_test"], images[10:])
    np.testing.assert_array_equal(found["y_train"], labels[:10])
    assert found["class_names"].tolist() == ["airplane", "automobile"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda parts: parts.pop("data_batch_3.bin"), "lacks data_batch_3.bin"),
        (lambda parts: parts.update({"test_batch.bin": b"x" * 100}), "are cut off"),
    ],
)
def test_an_archive_with_something_missing_is_refused(spoil, message):
    parts = cifar_parts()[2]
    spoil(parts)
    with pytest.raises(Unreadable, match=message):
        formats.cifar10(tar_bytes(parts))


def test_a_broken_archive_is_refused():
    with pytest.raises(Unreadable, match="the archive is broken"):
        formats.cifar10(tar_bytes(cifar_parts()[2])[:-2000])


# ------------------------------------------------------------------------------- graphs


def planetoid_files(graph):
    """A prepared graph as Planetoid publishes it (without test nodes that nobody cites)."""
    n, width = graph["x_shape"]
    matrix = sp.csr_matrix(
        (np.ones(len(graph["x_indices"]), np.float32), graph["x_indices"].astype(np.int32),
         graph["x_indptr"]), shape=(n, width),
    )  # fmt: skip
    labels = graph["labels"]
    hot = np.zeros((n, labels.max() + 1), np.int32)
    hot[labels >= 0, labels[labels >= 0]] = 1
    lists = defaultdict(list, {node: [] for node in range(n)})
    for (u, v), times in zip(graph["edges"].T.tolist(), graph["edge_mult"], strict=True):
        lists[u] += [v] * int(times)
        if u != v:
            lists[v] += [u] * int(times)
    trained, first = len(graph["idx_train"]), int(graph["idx_test"].min())
    test = graph["idx_test"][RNG.permutation(len(graph["idx_test"]))]  # in an order of its own
    parts = (matrix[:trained], matrix[test], hot[:trained], hot[test], hot[:first], lists)
    index = "\n".join(map(str, test)).encode()
    pickles = [pickle.dumps(part, 2) for part in parts]
    return [*pickles, index, pickle.dumps(matrix[:first], 2)]


def small_graph():
    """Twelve nodes: two for training, then some, then four for testing, of which one is missing."""
    x = RNG.random((12, 9)) < 0.4
    x[9] = False  # neither labels nor features, as in Citeseer
    labels = RNG.integers(0, 3, 12).astype(np.int8)
    labels[9], labels[0] = -1, 2
    return {
        "edges": np.array([[0, 0, 3, 5, 7, 7], [1, 4, 11, 5, 8, 10]], np.int32),
        "edge_mult": np.array([1, 2, 1, 1, 1, 1], np.uint8),
        "x_indptr": np.cumsum([0, *x.sum(axis=1)]).astype(np.int32),
        "x_indices": np.nonzero(x)[1].astype(np.uint16),
        "x_shape": np.array([12, 9], np.int32),
        "labels": labels,
        "idx_train": np.arange(2, dtype=np.int32),
        "idx_val": np.arange(2, 502, dtype=np.int32),
        "idx_test": np.array([8, 10, 11], np.int32),
    }


def same(found, wanted, leaving=()):
    assert set(found) == set(wanted) - set(leaving)
    for name in found:
        assert found[name].dtype == wanted[name].dtype, name
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


def test_planetoid_s_pickles_become_plain_arrays():
    graph = small_graph()
    same(formats.planetoid(*planetoid_files(graph)), graph)


def test_without_the_features_of_all_nodes_those_of_the_split_are_there():
    graph = small_graph()
    found = formats.planetoid(*planetoid_files(graph)[:-1])
    assert found["feat_nodes"].tolist() == [0, 1, 8, 10, 11]
    assert found["x_shape"].tolist() == [5, 9]
    assert found["self_loops"].tolist() == [5]
    assert (found["x_data"] == 1).all()
    row = found["x_indices"][found["x_indptr"][2] : found["x_indptr"][3]]
    at = graph["x_indptr"]
    np.testing.assert_array_equal(row, graph["x_indices"][at[8] : at[9]])


def test_geom_gcn_s_tables():
    head = b"node_id\tfeature\tlabel\n"
    edges = b"node_id\tnode_id\n0\t2\n2\t0\n1\t1\n"
    wide = formats.geom_gcn(head + b"1\t0,0,1\t4\n0\t1,0,1\t0\n2\t0,0,0\t1\n", edges, width=3)
    assert wide["labels"].tolist() == [0, 4, 1]
    assert wide["edges"].tolist() == [[0, 2, 1], [2, 0, 1]]
    assert wide["x_indptr"].tolist() == [0, 2, 3, 3]
    assert wide["x_indices"].tolist() == [0, 2, 2]
    listed = formats.geom_gcn(
        head + b"0\t2,0,2\t0\n1\t2\t4\n2\t1\t1\n", edges, width=3, listed=True
    )
    assert listed["x_indices"].tolist() == [0, 2, 2, 1]
    parts = [(wide["geom_splits"] == part).sum() for part in range(3)]
    assert parts == [10, 10, 10]  # one node of each in each of ten
    with pytest.raises(Unreadable, match="not numbered from 0"):
        formats.geom_gcn(head + b"1\t0,0,1\t4\n", edges, width=3)
    with pytest.raises(Unreadable, match="no table of a graph"):
        formats.geom_gcn(head + b"1 0,0,1 4\n", edges, width=3)


@pytest.mark.parametrize(("nodes", "sizes"), [(7600, (3648, 2432, 1520)), (183, (87, 59, 37))])
def test_splits_that_are_drawn_have_the_sizes_of_the_published_ones(nodes, sizes):
    found = formats.splits(nodes)
    assert found.shape == (10, nodes)
    assert found.dtype == np.int8
    assert all(np.bincount(row).tolist() == list(sizes) for row in found)
    assert len(np.unique(found, axis=0)) == 10
    np.testing.assert_array_equal(found, formats.splits(nodes))


# --------------------------------------------------------------------- series and text


def test_tables_over_time_in_both_ways_to_write_a_date():
    found = formats.series(b"date,a,OT\n2016-07-01 00:00:00,1.5,2\n2016-07-01 01:00:00,-3,0.1\n")
    assert found["values"].tolist() == [[1.5, 2], [-3, 0.1]]
    assert found["columns"].tolist() == ["a", "OT"]
    assert str(found["time"][1]) == "2016-07-01T01:00:00"
    other = formats.series(gzip.compress(b"date,a\r\n1990/1/31 0:00,1\r\n"))
    assert str(other["time"][0]) == "1990-01-31T00:00:00"
    with pytest.raises(Unreadable, match="no table of numbers over time"):
        formats.series(b"date,a\n2016-07-01,one\n")


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(st.lists(st.fixed_dictionaries({n: WORDS for n in formats.QUESTIONS}), min_size=1))
def test_records_come_back_as_they_were_from_a_list_and_from_lines(told):
    lines = "\n".join(json.dumps(one) for one in told).encode()
    for content in (json.dumps(told).encode(), gzip.compress(lines)):
        found = formats.questions(content)
        for name in formats.QUESTIONS:
            assert [v.decode() for v in found[name]] == [one[name] for one in told]


def test_records_that_lack_something_are_refused():
    with pytest.raises(Unreadable, match="a record lacks 'answer'"):
        formats.questions(b'[{"question": "who?"}]')
    with pytest.raises(Unreadable, match="no records in JSON"):
        formats.questions(b'[{"question": ')


def test_counterfact_s_copies_give_templates_in_the_order_of_the_cases():
    one = {"case_id": 7, "prompt": "BBC One, by", "subject": "BBC One", "ground_truth": "BBC",
           "target_new": "Sega", "rephrase_prompt": "BBC One is owned by"}  # fmt: skip
    two = {**one, "case_id": 10, "prompt": "In Å lives", "subject": "Å"}
    found = formats.counterfact(json.dumps([two]).encode(), json.dumps([one]).encode())
    assert set(found) == set(formats.FACTS)
    assert found["template"].tolist() == [b"{}, by", b"In {} lives"]
    assert found["target_true"].tolist() == [b"BBC", b"BBC"]


def test_plain_arrays_that_hold_a_pickle_are_refused():
    made = io.BytesIO()
    np.savez(made, a=np.array([{}], object))
    with pytest.raises(Unreadable, match="no file of plain arrays"):
        formats.npz(made.getvalue())


# ------------------------------------------------------------------------- user's copies


@pytest.fixture
def faces(tmp_path):
    """A folder of CelebA's lists of four faces, and images of the first three: one of each part."""
    from PIL import Image

    names = [f"00000{n}.jpg" for n in range(1, 5)]
    rows = "".join(f"{name} -1 1\n" for name in names)
    (tmp_path / "list_attr_celeba.txt").write_text(f"4\nBlond_Hair Male \n{rows}")
    split = "".join(f"{name} {n % 3}\n" for n, name in enumerate(names))
    (tmp_path / "list_eval_partition.txt").write_text(split)
    (tmp_path / "img_align_celeba").mkdir()
    for name, grey in zip(names[:3], (40, 200, 90), strict=True):
        Image.new("RGB", (178, 218), (grey,) * 3).save(tmp_path / "img_align_celeba" / name)
    return tmp_path


def test_faces_are_reduced_and_told_by_their_attributes(faces, capsys):
    found = copies.celeba(faces)
    assert found["images"].shape == (3, 32, 32, 3)
    assert abs(found["images"].astype(int).mean(axis=(1, 2, 3)) - [40, 200, 90]).max() < 3
    assert found["attribute_names"].tolist() == ["Blond_Hair", "Male"]
    assert found["attributes"].tolist() == [[False, True]] * 3
    assert found["split"].tolist() == [0, 1, 2]
    assert "has 3 of the 4 images" in capsys.readouterr().err  # a part of the set will do


@pytest.mark.parametrize("left", [0, 1, 2])
def test_faces_of_which_none_are_of_a_part_are_refused(faces, left):
    images = sorted((faces / "img_align_celeba").iterdir())
    for image in images[left:]:
        image.unlink()
    part = ("train", "val", "test")[left]
    with pytest.raises(Unreadable, match=f"has {left} of the 4 images of .*of the part '{part}'"):
        copies.celeba(faces)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("list_eval_partition.txt", "000003.jpg 2\n", "", "txt lacks 000003.jpg"),
        ("list_eval_partition.txt", "jpg 2", "jpg 5", "is no list of images and their parts"),
        ("list_eval_partition.txt", "jpg 2", "jpg", "is no list of images and their parts"),
        ("list_attr_celeba.txt", "4\n", "5\n", "is cut off"),
        ("list_attr_celeba.txt", "000002.jpg -1 1", "000002.jpg -1", "is cut off"),
        ("list_attr_celeba.txt", "4\n", "four\n", "is no list of attributes"),
        ("list_attr_celeba.txt", "4\nBlond_Hair Male \n", "", "is no list of attributes"),
    ],
)
def test_lists_of_faces_that_are_not_whole_are_refused(faces, name, old, new, message):
    text = (faces / name).read_text()
    assert old in text
    (faces / name).write_text(text.replace(old, new))
    with pytest.raises(Unreadable, match=message):
        copies.celeba(faces)


def test_a_face_that_is_no_picture_is_named(faces):
    (faces / "img_align_celeba" / "000002.jpg").write_bytes(b"no picture")
    with pytest.raises(Unreadable, match=r"000002.jpg: "):
        copies.celeba(faces)


def test_crops_of_textures_are_told_by_their_source(tmp_path):
    from PIL import Image

    def crop(name, size=64):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (size, size), 77).save(tmp_path / name)

    crop("rock/1.png")
    (tmp_path / "textures.0123456789abcdef.npz").write_bytes(b"kept beside them")
    with pytest.raises(Unreadable, match="no two folders of crops"):
        copies.textures(tmp_path)
    crop("bark/1.png")
    crop("bark/2.png")
    found = copies.textures(tmp_path)
    assert found["images"].shape == (3, 64, 64, 3)
    assert (found["images"] == 77).all()
    assert found["source"].tolist() == [0, 0, 1]
    assert found["source_names"].tolist() == ["bark", "rock"]
    crop("rock/2.png", 65)
    with pytest.raises(Unreadable, match=r"2.png has 65 x 65 pixels, not 64 x 64"):
        copies.textures(tmp_path)


def test_ogbn_arxiv_s_archive(tmp_path):
    tables = {"raw/edge": "0,2\n1,0\n", "raw/node-feat": "0.5,1\n2,3\n4,5\n",
              "raw/node-label": "4\n1\n0\n", "split/time/train": "0\n", "split/time/valid": "1\n",
              "split/time/test": "2\n"}  # fmt: skip

    def write(**changed):
        with zipfile.ZipFile(tmp_path / "arxiv.zip", "w") as archive:
            for name, text in {**tables, **changed}.items():
                archive.writestr(f"arxiv/{name}.csv.gz", gzip.compress(text.encode()))

    write()
    found = copies.ogbn_arxiv(tmp_path)
    assert found["edges"].tolist() == [[0, 1], [2, 0]]
    assert found["x"].tolist() == [[0.5, 1], [2, 3], [4, 5]]
    assert found["labels"].tolist() == [4, 1, 0]
    assert [found[f"idx_{n}"].tolist() for n in ("train", "val", "test")] == [[0], [1], [2]]
    write(**{"raw/edge": "0,3\n"})
    with pytest.raises(Unreadable, match="names nodes that it does not have"):
        copies.ogbn_arxiv(tmp_path)
    (tmp_path / "arxiv.zip").write_bytes(b"nothing")
    with pytest.raises(Unreadable, match="is broken"):
        copies.ogbn_arxiv(tmp_path)
    (tmp_path / "arxiv.zip").unlink()
    with pytest.raises(Unreadable, match=r"arxiv.zip cannot be read: No such file"):
        copies.ogbn_arxiv(tmp_path)


def test_superpixels_are_numbered_through(tmp_path):
    def graph(nodes, edges):
        return (
            Tensor(RNG.random((nodes, 14)).astype("<f4"), "FloatStorage"),
            Tensor(RNG.random((len(edges), 2)).astype("<f4"), "FloatStorage"),
            Tensor(np.array(edges, "<i8").reshape(-1, 2).T.copy(), "LongStorage"),
            list(range(nodes)),
        )

    parts = {"train": [graph(3, [(0, 1), (1, 2)]), graph(2, [(0, 1)])], "val": [graph(1, [])],
             "test": [graph(2, [(1, 0)])]}  # fmt: skip
    for name, graphs in parts.items():
        (tmp_path / f"{name}.pickle").write_bytes(tensor_pickle(graphs))
    found = copies.pascalvoc_sp(tmp_path)
    assert found["nodes"].tolist() == [0, 3, 5, 6, 8]
    assert found["links"].tolist() == [0, 2, 3, 3, 4]
    assert found["edges"].tolist() == [[0, 1, 3, 7], [1, 2, 4, 6]]
    assert found["labels"].tolist() == [0, 1, 2, 0, 1, 0, 0, 1]
    assert found["split"].tolist() == [0, 0, 1, 2]
    assert found["x"].shape == (8, 14)
    (tmp_path / "val.pickle").write_bytes(tensor_pickle({}))
    with pytest.raises(Unreadable, match="no list of graphs"):
        copies.pascalvoc_sp(tmp_path)
