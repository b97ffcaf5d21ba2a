"""Pickles of public data sets, read without running what they say.

A pickle is a program. The readers here know the few names that such files need (arrays, sparse
matrices, lists, tensors) and refuse all others before anything is called. What they make is plain
arrays; nothing is kept as a pickle.
"""

import io
import pickle
import struct
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from provingground.errors import RunError

TENSORS = {  # the storages of PyTorch
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "|i1",
    "ByteStorage": "|u1",
    "BoolStorage": "|b1",
}
MAGIC = 0x1950A86A20F9469CFC6C  # with which PyTorch's older files begin


class Refused(RunError):
    """A pickle that names something which a file of data has no need of."""


class Sparse:
    """What a pickled sparse matrix holds: `data`, `indices`, `indptr` and its shape."""

    def __init__(self, *_: Any) -> None:
        self.held: dict[str, Any] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.held = state

    def rows(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[int, int]]:
        """The matrix in the form of compressed rows: data, indices, pointers, shape."""
        rows, columns = self.held["_shape"] if "_shape" in self.held else self.held["shape"]
        data, indices, pointers = (self.held[n] for n in ("data", "indices", "indptr"))
        return (
            np.asarray(data),
            np.asarray(indices),
            np.asarray(pointers),
            (int(rows), int(columns)),
        )


def _array(subtype: Any, shape: Any, kind: Any) -> NDArray[Any]:
    """NumPy's maker of arrays, for plain arrays alone."""
    if subtype is not np.ndarray:
        raise Refused("the pickle holds an array of a class of its own")
    return np.ndarray.__new__(np.ndarray, shape, kind)


def _rebuilt(cls: Any, base: Any, state: Any) -> Any:
    """The maker of objects of old pickles, for sparse matrices alone."""
    if cls is not Sparse or base is not object or state is not None:
        raise Refused("the pickle makes objects that are no sparse matrices")
    return Sparse()


def _encoded(text: str = "", how: str = "latin1") -> bytes:
    """Bytes, as Python 3 writes them in old pickles."""
    if how != "latin1":
        raise Refused(f"the pickle holds bytes as text in {how}")
    return text.encode(how)


def _dtype(kind: Any, *_: Any) -> np.dtype[Any]:
    return np.dtype(kind)


ARRAYS: Mapping[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _array,
    ("numpy._core.multiarray", "_reconstruct"): _array,
    ("scipy.sparse.csr", "csr_matrix"): Sparse,
    ("scipy.sparse._csr", "csr_matrix"): Sparse,
    ("copy_reg", "_reconstructor"): _rebuilt,
    ("copyreg", "_reconstructor"): _rebuilt,
    ("_codecs", "encode"): _encoded,
    ("__builtin__", "bytes"): _encoded,
    ("__builtin__", "object"): object,
    ("builtins", "object"): object,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("collections", "defaultdict"): defaultdict,
}


class _Reader(pickle.Unpickler):
    """Reads a pickle in which nothing but the `known` names is called."""

    def __init__(self, content: bytes, known: Mapping[tuple[str, str], Any]) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self.known = known

    def find_class(self, module_name: str, global_name: str) -> Any:
        try:
            return self.known[module_name, global_name]
        except KeyError:
            raise Refused(
                f"the pickle names {module_name}.{global_name}, which a file of data has no need of"
            ) from None

    def persistent_load(self, pid: Any) -> Any:
        raise Refused("the pickle refers to something outside of it")


def arrays(content: bytes) -> Any:
    """A pickle of arrays, sparse matrices (as `Sparse`), lists and dicts of them."""
    return _read(_Reader(content, ARRAYS))


def _read(reader: pickle.Unpickler) -> Any:
    try:
        return reader.load()
    except RunError:
        raise
    except Exception as error:  # whatever a broken one may raise
        raise Refused(f"the pickle cannot be read: {type(error).__name__}: {error}") from None


# ------------------------------------------------------------------------------ tensors


class _Storage(pickle.Unpickler):
    """Reads the record of one storage, whose numbers come after it."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        if module_name in ("torch", "torch.storage") and global_name in TENSORS:
            return TENSORS[global_name]
        raise Refused(f"the pickle names {module_name}.{global_name} in a tensor")

    def persistent_load(self, pid: Any) -> Any:
        return pid


def _storage(content: bytes) -> NDArray[Any]:
    """The numbers of a storage in PyTorch's older format."""
    file = io.BytesIO(content)
    magic, _, about = (_read(_Storage(file)) for _ in range(3))
    if magic != MAGIC or not about.get("little_endian", False):
        raise Refused("the pickle holds a tensor in a format that is not known")
    _, kind, key, _, count, *_ = _read(_Storage(file))
    if _read(_Storage(file)) != [key]:
        raise Refused("the pickle holds a tensor of several storages")
    (length,) = struct.unpack("<q", file.read(8))
    if length != count:
        raise Refused("the pickle holds a tensor whose size is not known")
    numbers = file.read(length * np.dtype(kind).itemsize)
    return np.frombuffer(numbers, kind, length)


def _tensor(
    storage: NDArray[Any], offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any
) -> NDArray[Any]:
    """A view of a storage as an array of its own."""
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if offset < 0 or min((0, *size, *stride)) < 0 or (0 not in size and last >= len(storage)):
        raise Refused("the pickle holds a tensor that is larger than its storage")
    if 0 in size:
        return np.zeros(size, storage.dtype)
    steps = tuple(step * storage.itemsize for step in stride)
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps).copy()


def tensors(content: bytes) -> Any:
    """A pickle of PyTorch's tensors and of arrays, as arrays, without PyTorch."""
    known = {
        **ARRAYS,
        ("torch._utils", "_rebuild_tensor_v2"): _tensor,
        ("torch.storage", "_load_from_bytes"): _storage,
        ("collections", "OrderedDict"): OrderedDict,
    }
    return _read(_Reader(content, known))
