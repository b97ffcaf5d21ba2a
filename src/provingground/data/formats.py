"""The formats of public data sets: what is in their files, as plain arrays.

Each function maps the contents of files to arrays by name, and refuses (`Unreadable`) what is not
of its format. Text is kept as bytes in UTF-8.
"""

import csv
import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from provingground.data import unpickle
from provingground.errors import RunError

Arrays = Mapping[str, NDArray[Any]]
IMAGE = 32 * 32 * 3  # numbers of an image of CIFAR-10
FACTS = ("subject", "template", "target_true", "target_new", "rephrase_prompt", "relation")
QUESTIONS = ("question", "answer", "type")
SPLITS = 10  # of a graph that is published without any
TRAINED, NOT_TESTED = 48, 80  # percent of its nodes: for training, and with those for validation


class Unreadable(RunError):
    """A file that is not of the format that it should be."""


def npz(*contents: bytes) -> dict[str, NDArray[Any]]:
    """Plain arrays in NumPy's own format; those of several files one after the other."""
    parts = []
    for content in contents:
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                parts.append({name: file[name] for name in file.files})
        except Exception as error:  # of a broken one zipfile, zlib and NumPy raise many kinds
            raise Unreadable(f"no file of plain arrays (.npz): {error}") from None
    if not all(part.keys() == parts[0].keys() for part in parts):
        raise Unreadable("the files hold arrays of different names")
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def unpacked(content: bytes) -> bytes:
    """The content of a .gz file; anything else as it is."""
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable(f"the compressed file is broken: {error}") from None


def _text(content: bytes) -> str:
    try:
        return unpacked(content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"no text: {error}") from None


def _bytes(words: Iterable[str]) -> NDArray[Any]:
    return np.array([word.encode() for word in words])


# ------------------------------------------------------------------------------- images


def idx(content: bytes) -> NDArray[np.uint8]:
    """One array of bytes in the format of MNIST (idx), compressed or not."""
    raw = unpacked(content)
    dims = raw[3] if len(raw) > 3 else 0
    start = 4 + 4 * dims
    if raw[:3] != b"\0\0\x08" or len(raw) < start:
        raise Unreadable("no array in the format idx")
    shape = np.frombuffer(raw[4:start], ">u4").astype(int)
    if len(raw) != start + shape.prod():
        raise Unreadable(f"the array has {len(raw) - start} bytes, not {shape.prod()}")
    return np.frombuffer(raw[start:], np.uint8).reshape(shape)


def mnist(
    train_images: bytes, train_labels: bytes, test_images: bytes, test_labels: bytes
) -> Arrays:
    """The four files of MNIST."""
    found = {
        "x_train": idx(train_images), "y_train": idx(train_labels),
        "x_test": idx(test_images), "y_test": idx(test_labels),
    }  # fmt: skip
    for part in ("train", "test"):
        images, labels = found[f"x_{part}"], found[f"y_{part}"]
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise Unreadable(f"{images.shape} images of MNIST with {labels.shape} labels")
    return found


def cifar10(archive: bytes) -> Arrays:
    """The archive of CIFAR-10 in its binary form: a byte of a label, then red, green, blue."""
    parts: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            for member in tar:
                file = tar.extractfile(member)  # none for folders and links
                if file is not None:
                    parts[member.name.rpartition("/")[2]] = file.read()
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise Unreadable(f"the archive is broken: {error}") from None
    names = [f"data_batch_{n}.bin" for n in range(1, 6)]
    if missing := [n for n in (*names, "test_batch.bin", "batches.meta.txt") if n not in parts]:
        raise Unreadable(f"the archive lacks {missing[0]}")
    found: dict[str, NDArray[Any]] = {}
    train = b"".join(parts[n] for n in names)
    for name, raw in (("train", train), ("test", parts["test_batch.bin"])):
        if len(raw) % (1 + IMAGE):
            raise Unreadable(f"the images for {name} are cut off")
        rows = np.frombuffer(raw, np.uint8).reshape(-1, 1 + IMAGE)
        images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        found |= {f"x_{name}": np.ascontiguousarray(images), f"y_{name}": rows[:, 0].copy()}
    names = parts["batches.meta.txt"].decode().split()
    return found | {"class_names": np.array(names)}


def cifar10_parts(*contents: bytes) -> Arrays:
    """Prepared parts of CIFAR-10, one after the other, with the names of the classes once."""
    whole = npz(*contents)
    return {n: v[:10] if n == "class_names" else v for n, v in whole.items()}


# ------------------------------------------------------------------------------- graphs


def _compressed(rows: Sequence[NDArray[Any]], width: int) -> dict[str, NDArray[Any]]:
    """The places of the ones in the rows of a matrix, in the form of compressed rows."""
    return {
        "x_indptr": np.cumsum([0, *map(len, rows)]).astype(np.int32),
        "x_indices": np.concatenate([np.zeros(0, int), *rows]).astype(np.uint16),
        "x_shape": np.array([len(rows), width], np.int32),
    }


def _places(matrix: Any) -> tuple[list[NDArray[Any]], list[NDArray[Any]], int]:
    """Where the entries of the rows of a sparse matrix are (in order), what they are, its width."""
    if not isinstance(matrix, unpickle.Sparse):
        raise Unreadable("the features are no sparse matrix")
    data, indices, pointers, (_, width) = matrix.rows()
    ends = list(pairwise(pointers))
    orders = [np.argsort(indices[a:b], kind="stable") + a for a, b in ends]
    kept = [order[data[order] != 0] for order in orders]
    return [indices[at] for at in kept], [data[at] for at in kept], width


def planetoid(
    x: bytes, tx: bytes, y: bytes, ty: bytes, ally: bytes, graph: bytes, index: bytes, *allx: bytes
) -> Arrays:
    """A citation graph of Planetoid, from its pickles (read by `unpickle`): unique undirected
    edges with how often each is listed, features that are ones, labels (-1: none), the public
    split. Without `allx` only the nodes of the split have features (`feat_nodes`)."""
    trained, tested, labels_train, labels_test, labels_known, lists = map(
        unpickle.arrays, (x, tx, y, ty, ally, graph)
    )
    test = np.array(_text(index).split(), int)
    known, nodes = len(labels_known), int(test.max()) + 1
    hot = np.zeros((nodes, labels_known.shape[1]))
    hot[:known], hot[test] = labels_known, labels_test
    found: dict[str, NDArray[Any]] = {
        **_edges(lists, nodes, loops=bool(allx)),
        "labels": np.where(hot.any(axis=1), hot.argmax(axis=1), -1).astype(np.int8),
        "idx_train": np.arange(len(labels_train), dtype=np.int32),
        "idx_val": np.arange(len(labels_train), len(labels_train) + 500, dtype=np.int32),
        "idx_test": np.sort(test).astype(np.int32),
    }
    places, values, width = _places(trained if not allx else unpickle.arrays(allx[0]))
    more, tested_values, _ = _places(tested)
    of_test = dict(zip(test.tolist(), zip(more, tested_values, strict=True), strict=True))
    none = (np.zeros(0, int), np.zeros(0))
    if allx:
        rows = [*places, *(of_test.get(n, none)[0] for n in range(known, nodes))]
        return found | _compressed(rows, width)
    in_order = [of_test[n] for n in sorted(of_test)]
    rows = [*places, *(row for row, _ in in_order)]
    numbers = np.concatenate([*values, *(v for _, v in in_order)]).astype(np.float32)
    have = np.concatenate([found["idx_train"], found["idx_test"]])
    return found | {"feat_nodes": have, "x_data": numbers} | _compressed(rows, width)


def _edges(lists: Mapping[int, list[int]], nodes: int, loops: bool) -> dict[str, NDArray[Any]]:
    """Adjacency lists as unique pairs u <= v with how often each stands in the list of u; without
    `loops` nodes that are their own neighbours are told apart."""
    u = np.repeat(list(lists), [len(v) for v in lists.values()]).astype(np.int64)
    v = np.concatenate([np.asarray(v, np.int64) for v in lists.values()])
    kept = u <= v if loops else u < v
    pairs, mult = np.unique(u[kept] * nodes + v[kept], return_counts=True)
    found = {
        "edges": np.stack([pairs // nodes, pairs % nodes]).astype(np.int32),
        "edge_mult": mult.astype(np.uint8),
    }
    return found if loops else found | {"self_loops": np.unique(u[u == v]).astype(np.int32)}


def geom_gcn(features: bytes, edges: bytes, *, width: int, listed: bool = False) -> Arrays:
    """A graph in the tables of Geom-GCN: directed edges, features that are ones, and labels.

    Features are a row of zeros and ones, or (`listed`) the places of the ones. The published splits
    are files of their own and not among the tables: as many of the same sizes are drawn.
    """
    rows: dict[int, NDArray[Any]] = {}
    labels: dict[int, int] = {}
    try:
        for line in _text(features).splitlines()[1:]:
            node, told, label = line.split("\t")
            numbers = np.array(told.split(","), int)
            rows[int(node)] = np.unique(numbers) if listed else np.flatnonzero(numbers)
            labels[int(node)] = int(label)
        pairs = [tuple(map(int, line.split("\t"))) for line in _text(edges).splitlines()[1:]]
        where = np.array(pairs).reshape(-1, 2).T.astype(np.int16)
    except ValueError as error:
        raise Unreadable(f"no table of a graph: {error}") from None
    if sorted(rows) != list(range(len(rows))):
        raise Unreadable("the nodes of the graph are not numbered from 0 on")
    return {
        "edges": where,
        "labels": np.array([labels[n] for n in range(len(rows))], np.int8),
        "geom_splits": splits(len(rows)),
        **_compressed([rows[n] for n in range(len(rows))], width),
    }


def splits(nodes: int) -> NDArray[np.int8]:
    """Splits of a graph, always the same: 0 for training, 1 for validation, 2 for testing."""
    place = np.random.default_rng(0).random((SPLITS, nodes)).argsort(axis=1).argsort(axis=1)
    trained, others = (nodes * percent // 100 for percent in (TRAINED, NOT_TESTED))
    return ((place >= trained).astype(np.int8) + (place >= others)).astype(np.int8)


# --------------------------------------------------------------------- series and text


def series(table: bytes) -> Arrays:
    """A table of numbers over time (csv, maybe compressed), whose first column is the date."""
    head, *rows = csv.reader(io.StringIO(_text(table)))
    try:
        values = np.array([row[1:] for row in rows], float)
        time = np.array([_date(row[0]) for row in rows], "datetime64[s]")
    except (ValueError, IndexError) as error:
        raise Unreadable(f"no table of numbers over time: {error}") from None
    return {"values": values, "columns": np.array(head[1:]), "time": time}


def _date(told: str) -> str:
    """A date such as 1990/1/1 0:00 as NumPy reads it."""
    day, _, hour = told.replace("/", "-").partition(" ")
    year, month, date = map(int, day.split("-"))
    clock = ":".join(f"{int(part):02d}" for part in (hour or "0:0").split(":"))
    return f"{year:04d}-{month:02d}-{date:02d}T{clock}"


def records(fields: Sequence[str], *contents: bytes) -> dict[str, NDArray[Any]]:
    """Records in JSON, as a list or one a line, maybe compressed and in several files: an array of
    text for each field."""
    found: list[Mapping[str, Any]] = []
    for content in contents:
        text = _text(content)
        try:
            listed = text.lstrip().startswith("[")
            found += json.loads(text) if listed else map(json.loads, text.splitlines())
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"no records in JSON: {error}") from None
    for name in fields:
        if not all(isinstance(record, dict) and name in record for record in found):
            raise Unreadable(f"a record lacks '{name}'")
    return {name: _bytes(str(record[name]) for record in found) for name in fields}


def facts(*contents: bytes) -> Arrays:
    """The prepared copy of CounterFact, which knows the relation of each fact."""
    return records(FACTS, *contents)


def questions(*contents: bytes) -> Arrays:
    """Questions of HotpotQA and their answers, without the paragraphs."""
    return records(QUESTIONS, *contents)


def counterfact(*contents: bytes) -> Arrays:
    """CounterFact in the reduced form of its copies, in the order of its cases. There prompts are
    given in full and hold the subject once; their template stands for the relation."""
    names = ("case_id", "prompt", "subject", "ground_truth", "target_new", "rephrase_prompt")
    raw = records(names, *contents)
    order = np.argsort(raw["case_id"].astype(int))
    pairs = zip(raw["prompt"], raw["subject"], strict=True)
    template = np.array([prompt.replace(subject, b"{}", 1) for prompt, subject in pairs])
    found = {**raw, "target_true": raw["ground_truth"], "template": template, "relation": template}
    return {name: found[name][order] for name in FACTS}
