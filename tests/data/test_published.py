"""Data of every study, made of the files that publishers hand out (here: small made ones).

Records are made with prepared copies, which may hold more; what a study takes must be in both.
"""

import json

import jax
import numpy as np
import pytest
from PIL import Image
from test_formats import idx_bytes, planetoid_files, tar_bytes

from provingground import registry
from provingground.data import fetch, formats, real, sets
from provingground.data.sets import DataSet, File

RNG = np.random.default_rng(0)
NODES, CLASSES, WORDS = 60, 3, 20
LABELS = np.arange(NODES) % CLASSES


def digits():
    count = {"train": 40, "t10k": 20}
    return [
        idx_bytes(array)
        for n in count.values()
        for array in (RNG.integers(0, 256, (n, 28, 28), "|u1"), np.arange(n, dtype="|u1") % 10)
    ]


def photographs():
    """Twenty of each class for training, ten for testing."""

    def rows(each):
        return b"".join(
            bytes([y]) + RNG.bytes(formats.IMAGE) for _ in range(each) for y in range(10)
        )

    parts = {f"data_batch_{n}.bin": rows(4) for n in range(1, 6)}
    meta = b"\n".join(b"class%d" % n for n in range(10))
    return [tar_bytes({**parts, "test_batch.bin": rows(10), "batches.meta.txt": meta})]


def citations():
    x = RNG.random((NODES, WORDS)) < 0.3
    pairs = np.unique(np.sort(RNG.integers(0, NODES, (2, 150)), axis=0), axis=1)
    return planetoid_files({
        "edges": pairs[:, pairs[0] < pairs[1]],
        "edge_mult": np.ones((pairs[0] < pairs[1]).sum(), np.uint8),
        "x_indptr": np.cumsum([0, *x.sum(axis=1)]), "x_indices": np.nonzero(x)[1],
        "x_shape": np.array(x.shape), "labels": LABELS,
        "idx_train": np.arange(12), "idx_test": np.arange(40, NODES),
    })  # fmt: skip


def tables(listed):
    def told(row):
        return ",".join(map(str, np.flatnonzero(row) if listed else row.astype(int)))

    x = RNG.random((NODES, WORDS)) < 0.3
    rows = [
        f"{n}\t{told(row)}\t{label}" for n, row, label in zip(range(NODES), x, LABELS, strict=True)
    ]
    pairs = [f"{u}\t{v}" for u, v in RNG.integers(0, NODES, (150, 2))]
    return ["\n".join(["head", *lines]).encode() for lines in (rows, pairs)]


def hours():
    days = np.datetime64("2016-07-01T00") + np.arange(14_400)
    rows = [f"{str(t).replace('T', ' ')}:00:00,{RNG.random()},{RNG.random()}" for t in days]
    return ["\n".join(["date,HUFL,OT", *rows]).encode()]


def facts():
    def fact(n):
        one = {"case_id": n, "subject": f"Person {n}", "ground_truth": f"Place {n % 3}"}
        prompt = f"Person {n} {('lives', 'works')[n % 2]} in"
        return {**one, "prompt": prompt, "target_new": "Rome", "rephrase_prompt": f"{prompt} now"}

    return [json.dumps([fact(n) for n in range(k, 12, 3)]).encode() for k in range(3)]


def questions():
    asked = [
        {"question": f"Who is {n}?", "answer": f"Name {n}", "type": "bridge"} for n in range(9)
    ]
    return [json.dumps(asked).encode()]


PUBLISHED = {
    "mnist": digits, "cifar10": photographs, "cora": citations, "citeseer": citations,
    "pubmed": lambda: citations()[:-1], "actor": lambda: tables(True),
    **dict.fromkeys(("cornell", "texas", "wisconsin"), lambda: tables(False)),
    **dict.fromkeys(("etth1", "etth2", "exchange_rate", "ili"), hours),
    "counterfact": facts, "hotpotqa": questions,
}  # fmt: skip


def faces(folder):
    """Twelve faces of each split."""
    names = [f"{n:06d}.jpg" for n in range(36)]
    rows = [f"{name} {2 * (n % 2) - 1} {2 * (n // 2 % 2) - 1}" for n, name in enumerate(names)]
    (folder / "img_align_celeba").mkdir(parents=True)
    text = "\n".join(["36", "Blond_Hair Male", *rows])
    (folder / "list_attr_celeba.txt").write_text(text)
    split = "\n".join(f"{name} {n // 12}" for n, name in enumerate(names))
    (folder / "list_eval_partition.txt").write_text(split)
    for name in names:
        Image.new("RGB", (178, 218), "grey").save(folder / "img_align_celeba" / name)


def crops(folder):
    for source in ("bark", "grass", "rock"):
        (folder / source).mkdir(parents=True)
        for n in range(2):
            Image.new("RGB", (64, 64), (50 * n,) * 3).save(folder / source / f"{n}.png")


OWN = {"celeba": faces, "textures": crops}


def published(data: DataSet, folder) -> DataSet:
    """A data set whose published files are made ones, which are in a folder."""
    contents = PUBLISHED[data.name]()
    form = data.forms[0]
    files = []
    for file, content in zip(form.files, contents, strict=True):
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / file.path).write_bytes(content)
        files.append(File(file.path, real.checksum(content), file.urls))
    return data._replace(forms=(form._replace(files=tuple(files)), *data.forms[1:]))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PROVING_DATA", str(tmp_path))
    real._loaded.cache_clear()
    yield tmp_path
    real._loaded.cache_clear()


def brought(names, folder, monkeypatch):
    """Puts data sets into a folder, as they are published or as a user brings them."""
    monkeypatch.setattr(real, "SETS", {
        name: data if data.copy else published(data, folder)
        for name, data in sets.SETS.items() if name in names
    })  # fmt: skip
    for name in set(names) & set(OWN):
        OWN[name](folder / name)
        fetch.get(name)


TAKEN = [
    pytest.param(function, real.read_by(name, function), id=f"{study.name}-{name}")
    for study in map(registry.study, registry.names())
    for name, function in study.data.items()
    if real.read_by(name, function)
]


@pytest.mark.parametrize(("function", "names"), TAKEN)
def test_a_study_s_data_can_be_made_of_what_is_published(function, names, folder, monkeypatch):
    brought(names, folder, monkeypatch)
    function.cache_clear()
    try:
        arrays = jax.tree.leaves(function())
    finally:
        function.cache_clear()
    assert arrays
    assert all(a.size for a in arrays)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_form_can_be_read(name, folder, monkeypatch):
    brought([name], folder, monkeypatch)
    assert all(a.dtype != object for a in real.load(name).values())


def test_every_data_set_that_is_fetched_is_made_here():
    assert {name for name, data in sets.SETS.items() if data.forms and data.forms[0].fetched} == {
        *PUBLISHED
    }
