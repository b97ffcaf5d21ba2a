"""The small part of the netCDF-3 format that chunks are made of, written and read strictly.

A file has dims, one text as its attribute, and variables of numbers or letters that lie one behind
the other. xarray and other programs open such a file; what else the format allows is refused, so
that no header can describe more than there is.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

# By the format's number of a type.
_KINDS = dict(zip((1, 2, 4, 5, 6), map(np.dtype, ("i1", "S1", ">i4", ">f4", ">f8")), strict=True))
_CODES = {kind: code for code, kind in _KINDS.items()}
_NATIVE = {kind: kind.newbyteorder("=") for kind in _CODES}
_DIMS, _VARIABLES, _ATTRIBUTES, _TEXT = 10, 11, 12, 2
_NONE = bytes(8)  # an empty list


class Variable(NamedTuple):
    """Where the numbers of a variable lie."""

    dims: tuple[str, ...]
    kind: np.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


class File(NamedTuple):
    """A file that was read: its text, its variables, and the bytes these are in."""

    text: bytes
    variables: dict[str, Variable]
    content: bytes

    def view(self, name: str) -> np.ndarray:
        """A variable as it lies in the file."""
        _, kind, shape, begin, _ = self.variables[name]
        return np.ndarray(shape, kind, self.content, begin)

    def array(self, name: str) -> np.ndarray:
        """A variable, in this machine's order of bytes."""
        found = self.view(name)
        return found.astype(_NATIVE[found.dtype], copy=False)


def write(
    variables: Mapping[str, tuple[Sequence[str], np.ndarray]], attribute: str, text: bytes
) -> bytes:
    """A file of variables (dims and numbers), with a text under the name of an attribute."""
    sizes: dict[str, int] = {}
    arrays = {name: _fitting(name, array) for name, (_, array) in variables.items()}
    for name, (dims, _) in variables.items():
        if len(dims) != arrays[name].ndim:
            raise ValueError(f"{name} has the shape {arrays[name].shape}: not one of {dims}")
        for dim, size in zip(dims, arrays[name].shape, strict=True):
            if sizes.setdefault(dim, size) != size or not size:
                raise ValueError(f"{name} has {size} entries along {dim}, not {sizes[dim]}")
    numbers = {dim: number for number, dim in enumerate(sizes)}
    entries = [
        _name(name) + struct.pack(f">{1 + len(dims)}i", len(dims), *(numbers[d] for d in dims))
        for name, (dims, _) in variables.items()
    ]
    header = b"CDF\x02" + bytes(4)
    header += _list(_DIMS, [_name(dim) + struct.pack(">i", size) for dim, size in sizes.items()])
    about = _name(attribute) + struct.pack(">ii", _TEXT, len(text)) + _padded(text)
    header += _list(_ATTRIBUTES, [about])
    begin = len(header) + 8 + sum(len(entry) + len(_NONE) + 16 for entry in entries)
    data = [_padded(array.tobytes()) for array in arrays.values()]
    for number, (array, some) in enumerate(zip(arrays.values(), data, strict=True)):
        place = struct.pack(">iIq", _CODES[array.dtype], len(some), begin)
        entries[number] += _NONE + place
        begin += len(some)
    return b"".join([header, _list(_VARIABLES, entries), *data])


def _fitting(name: str, array: np.ndarray) -> np.ndarray:
    """The numbers as the format has them: no booleans, no long integers, big ends first."""
    if array.dtype.kind in "bui":
        small = np.int8 if array.dtype in (bool, np.int8) else np.int32
        if np.any(array.astype(small) != array):
            raise ValueError(f"{name} holds whole numbers that do not fit into 32 bits")
        array = array.astype(small)
    array = array.astype(array.dtype.newbyteorder(">"), copy=False)
    if array.dtype not in _CODES:
        raise ValueError(f"{name} holds {array.dtype}, which netCDF-3 has not")
    return array


def _list(kind: int, entries: Sequence[bytes]) -> bytes:
    return struct.pack(">ii", kind, len(entries)) + b"".join(entries)


def _name(name: str) -> bytes:
    return struct.pack(">i", len(name)) + _padded(name.encode("ascii"))


def _padded(some: bytes) -> bytes:
    return some + bytes(-len(some) % 4)


class _Header(NamedTuple):
    """What was read from a header: its parts before and after the text, and what they say."""

    text: slice
    after: bytes
    variables: dict[str, Variable]
    least: int  # bytes of a file with this header


_HEADERS: dict[bytes, _Header] = {}  # by the part before the text: many files have the same
_KEPT_HEADERS = 1000


def read(content: bytes, attribute: str) -> File:
    """The file that these bytes are. A ValueError where they are none of `write`'s."""
    before = content[: content.find(attribute.encode()) + len(_name(attribute)) + 4]
    known = _HEADERS.get(before)
    if known is None or not content.startswith(known.after, known.text.stop):
        try:
            known = _read(content, attribute.encode())
        except (struct.error, IndexError, KeyError, UnicodeDecodeError):
            raise ValueError("its header is broken") from None
        if known.text.start == len(before):
            if len(_HEADERS) >= _KEPT_HEADERS:
                _HEADERS.clear()
            _HEADERS[before] = known
    if len(content) < known.least:
        raise ValueError("its header describes more than there is")
    return File(content[known.text], known.variables, content)


def _read(content: bytes, attribute: bytes) -> _Header:
    unpack = struct.unpack_from
    if content[:3] != b"CDF":
        raise ValueError("not a netCDF-3 file")
    long = content[3] == 2  # offsets of 64 bits
    if content[3:8] not in (b"\1\0\0\0\0", b"\2\0\0\0\0"):
        raise ValueError("it has records, or another version")

    def name(at: int) -> tuple[bytes, int]:
        (length,) = unpack(">I", content, at)
        end = at + 4 + length
        return content[at + 4 : end], end + -length % 4

    dims: list[tuple[str, int]] = []
    kind, count = unpack(">II", content, 8)
    at = 16
    if kind != _DIMS:
        raise ValueError("its header is broken")
    for _ in range(count):
        word, at = name(at)
        (size,) = unpack(">I", content, at)
        dims.append((word.decode("ascii"), size))
        at += 4
    kind, count = unpack(">II", content, at)
    word, at = name(at + 8)
    form, length = unpack(">II", content, at)
    if (kind, count, word, form) != (_ATTRIBUTES, 1, attribute, _TEXT):
        raise ValueError("it has no record")
    text = slice(at + 8, at + 8 + length)
    at += 8 + length + -length % 4

    variables: dict[str, Variable] = {}
    kind, count = unpack(">II", content, at)
    at += 8
    if kind != _VARIABLES:
        raise ValueError("its header is broken")
    for _ in range(count):
        word, at = name(at)
        (rank,) = unpack(">I", content, at)
        if rank > len(dims):
            raise ValueError("its header is broken")
        axes = [dims[number] for number in unpack(f">{rank}I", content, at + 4)]
        at += 4 + 4 * rank
        if content[at : at + 8] != _NONE:
            raise ValueError("its variables have attributes")
        code, size, begin = unpack(">IIq" if long else ">III", content, at + 8)
        at += 24 if long else 20
        length = _KINDS[code].itemsize
        for _, entries in axes:
            length *= entries
        if size != length + -length % 4:
            raise ValueError("its header describes something else than there is")
        words, shape = tuple(dim for dim, _ in axes), tuple(entries for _, entries in axes)
        place = Variable(words, _KINDS[code], shape, begin, begin + length)
        variables[word.decode("ascii")] = place
    if len(variables) != count:
        raise ValueError("two of its variables have one name")
    least = at
    for variable in sorted(variables.values(), key=lambda v: v.begin):
        if not least <= variable.begin <= variable.end:
            raise ValueError("its header describes the same bytes twice")
        least = variable.end
    return _Header(text, content[text.stop : at], variables, least)
