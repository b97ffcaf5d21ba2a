"""Data sets that a user brings: read from the files that their publishers hand out.

They are large, or given out under terms of their own, so nothing is fetched; `proving data get`
turns the user's copy into plain arrays once.
"""

import gzip
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from provingground.data import unpickle
from provingground.data.formats import Unreadable

SPLITS = ("train", "val", "test")
SIDE = 32  # to which faces are reduced
SQUARE = (0, 20, 178, 198)  # of a face of 178 x 218


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from None


# -------------------------------------------------------------------------------- CelebA


def celeba(folder: Path) -> dict[str, NDArray[Any]]:
    """CelebA, aligned and cropped: faces reduced to 32 x 32, their 40 attributes and the split.

    Of the images those are taken that are there, so that a part of the set will do.
    """
    from PIL import Image

    count, names, *rows = _read(folder / "list_attr_celeba.txt").decode().splitlines()
    attributes = {row.split()[0]: row.split()[1:] for row in rows if row.strip()}
    if len(attributes) != int(count) or {len(v) for v in attributes.values()} != {
        len(names.split())
    }:
        raise Unreadable(f"{folder / 'list_attr_celeba.txt'} is cut off")
    parts = dict(
        line.split() for line in _read(folder / "list_eval_partition.txt").decode().splitlines()
    )
    here = [n for n in sorted(attributes) if (folder / "img_align_celeba" / n).is_file()]
    images = np.zeros((len(here), SIDE, SIDE, 3), np.uint8)
    for at, name in enumerate(here):
        try:
            with Image.open(io.BytesIO(_read(folder / "img_align_celeba" / name))) as image:
                face = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX, SQUARE)
        except (OSError, ValueError) as error:
            raise Unreadable(f"{folder / 'img_align_celeba' / name}: {error}") from None
        images[at] = np.asarray(face)
    return {
        "images": images,
        "attributes": np.array([np.array(attributes[n], int) > 0 for n in here]),
        "attribute_names": np.array(names.split()),
        "split": np.array([parts[n] for n in here], np.int8),
    }


# ---------------------------------------------------------------------------- ogbn-arxiv


def ogbn_arxiv(folder: Path) -> dict[str, NDArray[Any]]:
    """ogbn-arxiv from its archive: directed citations, features, labels, and the split by year."""
    content = _read(folder / "arxiv.zip")

    def table(name: str, kind: Any) -> NDArray[Any]:
        with archive.open(f"arxiv/{name}.csv.gz") as file:
            return np.loadtxt(gzip.open(file, "rt"), kind, delimiter=",", ndmin=2)

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = {
                "edges": table("raw/edge", np.int32).T.copy(),
                "x": table("raw/node-feat", np.float32),
                "labels": table("raw/node-label", np.int16)[:, 0],
                "idx_train": table("split/time/train", np.int32)[:, 0],
                "idx_val": table("split/time/valid", np.int32)[:, 0],
                "idx_test": table("split/time/test", np.int32)[:, 0],
            }
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError) as error:
        raise Unreadable(f"{folder / 'arxiv.zip'} is broken: {error}") from None
    if len(found["x"]) != len(found["labels"]) or found["edges"].max() >= len(found["x"]):
        raise Unreadable(f"{folder / 'arxiv.zip'} names nodes that it does not have")
    return found


# -------------------------------------------------------------------------- PascalVOC-SP


def pascalvoc_sp(folder: Path) -> dict[str, NDArray[Any]]:
    """PascalVOC-SP of the Long Range Graph Benchmark: superpixels of images as graphs.

    All graphs stand one after the other: graph g has the nodes from `nodes[g]` on, and the edges
    (between nodes numbered through) from `links[g]` on. The pickles are read by `unpickle`.
    """
    graphs: list[tuple[Any, ...]] = []
    split: list[int] = []
    for number, name in enumerate(SPLITS):
        some = unpickle.tensors(_read(folder / f"{name}.pickle"))
        if not isinstance(some, list):
            raise Unreadable(f"{folder / name}.pickle holds no list of graphs")
        graphs += some
        split += [number] * len(some)
    try:
        parts = [[np.asarray(part) for part in graph] for graph in graphs]
        sizes = [len(x) for x, *_ in parts]
        nodes = np.cumsum([0, *sizes])
        edges = [e + start for (_, _, e, _), start in zip(parts, nodes[:-1], strict=True)]
        found: Mapping[str, NDArray[Any]] = {
            "x": np.concatenate([x for x, *_ in parts]).astype(np.float32),
            "edge_attr": np.concatenate([a for _, a, *_ in parts]).astype(np.float32),
            "edges": np.concatenate(edges, axis=1).astype(np.int32),
            "labels": np.concatenate([y for *_, y in parts]).astype(np.int8),
            "nodes": nodes.astype(np.int32),
            "links": np.cumsum([0, *(e.shape[1] for e in edges)]).astype(np.int32),
            "split": np.array(split, np.int8),
        }
    except (ValueError, TypeError, IndexError) as error:
        raise Unreadable(f"the graphs in {folder} are not those of PascalVOC-SP: {error}") from None
    if len(found["labels"]) != len(found["x"]):
        raise Unreadable(f"the graphs in {folder} have other labels than nodes")
    return dict(found)
