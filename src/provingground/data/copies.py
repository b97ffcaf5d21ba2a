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
from provingground.terminal import say

SPLITS = ("train", "val", "test")
SIDE = 32  # to which faces are reduced
SQUARE = (0, 20, 178, 198)  # of a face of 178 x 218
CROP = (64, 64)  # pixels of a texture


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from None


# -------------------------------------------------------------------------------- CelebA


def celeba(folder: Path) -> dict[str, NDArray[Any]]:
    """CelebA, aligned and cropped: faces reduced to 32 x 32, their 40 attributes and the split.

    Of the images those are taken that are there, so that a part of the set will do, with some of
    each part of the split.
    """
    from PIL import Image

    names, attributes = _attributes(folder / "list_attr_celeba.txt")
    parts = _partition(folder / "list_eval_partition.txt")
    if strangers := sorted(attributes.keys() - parts.keys()):
        raise Unreadable(f"{folder / 'list_eval_partition.txt'} lacks {strangers[0]}")
    faces = folder / "img_align_celeba"
    here = [name for name in sorted(attributes) if (faces / name).is_file()]
    split = np.array([parts[name] for name in here], np.int8)
    told = f"{len(here)} of the {len(attributes)} images of {folder / 'list_attr_celeba.txt'}"
    for number, part in enumerate(SPLITS):
        if number not in split:
            raise Unreadable(f"{faces} has {told}, none of them of the part '{part}' ({number})")
    if len(here) < len(attributes):
        say(f"proving: {faces} has {told}; these are taken")
    images = np.zeros((len(here), SIDE, SIDE, 3), np.uint8)
    for at, name in enumerate(here):
        face = _image(faces / name).resize((SIDE, SIDE), Image.Resampling.BOX, SQUARE)
        images[at] = np.asarray(face)
    return {
        "images": images,
        "attributes": np.array([attributes[name] for name in here]) > 0,
        "attribute_names": np.array(names),
        "split": split,
    }


def _attributes(path: Path) -> tuple[list[str], dict[str, list[int]]]:
    """The names of attributes, and those of each image: a table below the number of its rows."""
    try:
        count, names, *rows = _lines(path)
        found = {name: list(map(int, row)) for name, *row in map(str.split, rows)}
        whole = len(found) == int(count)
    except ValueError as error:
        raise Unreadable(f"{path} is no list of attributes: {error}") from None
    if not whole or {len(row) for row in found.values()} != {len(names.split())}:
        raise Unreadable(f"{path} is cut off")
    return names.split(), found


def _partition(path: Path) -> dict[str, int]:
    """The part of the split that each image belongs to."""
    try:
        return {name: ("0", "1", "2").index(part) for name, part in map(str.split, _lines(path))}
    except ValueError as error:
        raise Unreadable(f"{path} is no list of images and their parts: {error}") from None


def _lines(path: Path) -> list[str]:
    return [line for line in _read(path).decode().splitlines() if line.strip()]


def _image(path: Path) -> Any:
    """An image in three colours, by Pillow."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(_read(path))) as image:
            return image.convert("RGB")
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from None


# ------------------------------------------------------------------------------ textures


def textures(folder: Path) -> dict[str, NDArray[Any]]:
    """Crops of textures: a folder of images of 64 x 64 pixels for each source.

    Sources are numbered in the order of their names; training and testing share none.
    """
    found = {
        source: sorted(p for p in source.iterdir() if p.is_file() and p.name[0] != ".")
        for source in sorted(folder.iterdir())
        if source.is_dir()
    }
    if len(found) < 2 or not all(found.values()):
        raise Unreadable(f"{folder} has no two folders of crops, or one that is empty")
    paths = [path for some in found.values() for path in some]
    crops = [_image(path) for path in paths]
    for path, crop in zip(paths, crops, strict=True):
        if crop.size != CROP:
            raise Unreadable(f"{path} has {crop.size[0]} x {crop.size[1]} pixels, not 64 x 64")
    return {
        "images": np.stack([np.asarray(crop) for crop in crops]),
        "source": np.repeat(np.arange(len(found), dtype=np.int16), list(map(len, found.values()))),
        "source_names": np.array([source.name for source in found]),
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
