"""GPT-2 as it is published: a local folder of weights, settings and words, read as plain data.

The folder holds `config.json`, `model.safetensors`, `vocab.json` and `merges.txt`. A safetensors
file is the length of its header (8 bytes, little endian), the header (JSON: for each array its
dtype, shape and place) and the numbers. Whatever is not as it should be is refused; nothing in the
folder is executed.
"""

import json
import re
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from provingground.errors import InputError

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "U8": "u1", "BOOL": "?"}
LONGEST_HEADER = 100_000_000
# As GPT-2 cuts text: endings of English, then words, numbers and marks with the space before them.
PIECE = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def refuse(path: Path, why: str) -> InputError:
    return InputError(f"{path.name} is not what GPT-2 is published as: {why}.")


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def parsed(path: Path, text: bytes) -> dict[str, Any]:
    """A JSON object without a name that occurs twice."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) < len(pairs):
            raise refuse(path, "a name occurs twice")
        return found

    try:
        found = json.loads(text, object_pairs_hook=distinct)
    except (ValueError, RecursionError):
        raise refuse(path, "no JSON") from None
    if not isinstance(found, dict):
        raise refuse(path, "no JSON object")
    return found


def whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def tensors(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, which lie side by side and fill it."""
    raw = content(path)
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or length > min(len(raw) - 8, LONGEST_HEADER):
        raise refuse(path, "its header does not fit in")
    header, data = parsed(path, raw[8 : 8 + length]), memoryview(raw)[8 + length :]
    header.pop("__metadata__", None)
    places = {name: _place(path, name, told, len(data)) for name, told in header.items()}
    order = sorted(places.values())
    if [0, *(end for _, end in order)] != [*(begin for begin, _ in order), len(data)]:
        raise refuse(path, "its arrays overlap, or leave gaps")
    return {name: _array(header[name], data[slice(*at)]) for name, at in places.items()}


def _place(path: Path, name: str, told: Any, size: int) -> tuple[int, int]:
    """From where to where the numbers of an array stand."""
    if not isinstance(told, dict) or set(told) != {"dtype", "shape", "data_offsets"}:
        raise refuse(path, f"'{name}' has no dtype, shape and place")
    dtype, shape, place = told["dtype"], told["shape"], told["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise refuse(path, f"the dtype of '{name}' is none of {', '.join(DTYPES)}")
    if not all(isinstance(part, list) and all(map(whole, part)) for part in (shape, place)):
        raise refuse(path, f"the shape or the place of '{name}' is not whole numbers")
    bytes_ = prod(shape) * np.dtype(DTYPES[dtype]).itemsize
    if len(place) != 2 or place[1] > size or place[1] - place[0] != bytes_:
        raise refuse(path, f"'{name}' does not have the size that its shape tells")
    return place[0], place[1]


def _array(told: dict[str, Any], data: memoryview) -> np.ndarray:
    found = np.frombuffer(data, DTYPES[told["dtype"]]).reshape(told["shape"])
    if told["dtype"] == "BF16":  # the upper half of a float32
        return (found.astype("<u4") << 16).view("<f4")
    return found.astype(np.float32)


# ---------------------------------------------------------------------------- words


def letters() -> dict[int, str]:
    """A visible letter for every byte: itself where it has one, else one from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in seen]
    return {b: chr(b) for b in seen} | {b: chr(256 + i) for i, b in enumerate(hidden)}


LETTERS = letters()


class Words:
    """Text as GPT-2's tokens: bytes, of which frequent neighbours are merged."""

    def __init__(self, folder: Path) -> None:
        path = folder / "vocab.json"
        self.numbers = parsed(path, content(path))
        if not all(map(whole, self.numbers.values())):
            raise refuse(path, "a token has no number")
        path = folder / "merges.txt"
        try:
            lines = content(path).decode().split("\n")
        except UnicodeDecodeError:
            raise refuse(path, "no text") from None
        pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#v")]
        if any(len(pair) != 2 for pair in pairs):
            raise refuse(path, "a line is no pair")
        self.ranks = {pair: rank for rank, pair in enumerate(pairs)}

    def tokens(self, text: str) -> list[int]:
        found = [part for piece in PIECE.findall(text) for part in self.merged(piece)]
        if unknown := [part for part in found if part not in self.numbers]:
            raise InputError(f"vocab.json has no token {unknown[0]!r}.")
        return [self.numbers[part] for part in found]

    def merged(self, piece: str) -> list[str]:
        """The pair of the lowest rank is merged wherever it stands, again and again."""
        parts = [LETTERS[b] for b in piece.encode()]
        while len(parts) > 1:
            pair = min(pairwise(parts), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if pair not in self.ranks:
                break
            joined, i = [], 0
            while i < len(parts):
                both = tuple(parts[i : i + 2]) == pair
                joined.append("".join(pair) if both else parts[i])
                i += 2 if both else 1
            parts = joined
        return parts
