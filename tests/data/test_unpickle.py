"""Pickles of data are read, and nothing that they say is run."""

import io
import pickle
import struct
import sys
import types
from collections import defaultdict
from contextlib import contextmanager, suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from provingground.data import unpickle
from provingground.data.unpickle import Refused, Sparse


@given(hnp.arrays(st.sampled_from(["<i4", "<f8", "|u1", "<f4"]), hnp.array_shapes(min_side=0)))
@pytest.mark.parametrize("protocol", [2, 4])
def test_arrays_come_back_as_they_were(protocol, values):
    found = unpickle.arrays(pickle.dumps(values, protocol))
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def test_lists_by_number_come_back_as_they_were():
    lists = defaultdict(list, {0: [1, 2], 1: [0]})
    assert unpickle.arrays(pickle.dumps(lists, 2)) == dict(lists)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_sparse_matrix_is_told_apart_by_its_parts(protocol):
    matrix = sp.csr_matrix(np.array([[0, 2.0, 0], [3.0, 0, 4.0]]))
    found = unpickle.arrays(pickle.dumps(matrix, protocol))
    assert isinstance(found, Sparse)
    data, indices, pointers, shape = found.rows()
    assert shape == (2, 3)
    assert (data.tolist(), indices.tolist(), pointers.tolist()) == ([2, 3, 4], [1, 0, 2], [0, 1, 3])


CALLED = []


class Evil:
    """Does something when it is unpickled."""

    def __init__(self, function, *args):
        self.made = function, args

    def __reduce__(self):
        return self.made


EVIL = {
    "a command": Evil(print, "harm"),
    "one in a list": [1, Evil(CALLED.append, 1)],
    "a class of ours": Sparse(),
    "an import": Evil(__import__, "os"),
    "code": Evil(eval, "CALLED.append(1)"),
    "an attribute": Evil(getattr, {}, "keys"),
}


@pytest.mark.parametrize("what", EVIL)
def test_what_a_file_of_data_has_no_need_of_is_refused_and_not_run(what, capsys):
    made = pickle.dumps(EVIL[what])
    for read in (unpickle.arrays, unpickle.tensors):
        with pytest.raises(Refused, match="which a file of data has no need of"):
            read(made)
    assert CALLED == []
    assert capsys.readouterr().out == ""


class Own(np.ndarray):
    pass


@pytest.mark.parametrize(
    ("subtype", "message"), [(list, "an array of a class of its own"), (Own, "no need of")]
)
def test_arrays_of_other_classes_are_refused(subtype, message):
    how = np.zeros(1).__reduce__()[0]
    with pytest.raises(Refused, match=message):
        unpickle.arrays(pickle.dumps(Evil(how, subtype, (0,), b"b"), 2))


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise_anything_else(content):
    for read in (unpickle.arrays, unpickle.tensors):
        with suppress(Refused):
            read(content)


@given(st.data())
def test_a_damaged_pickle_is_refused_or_read(data):
    made = bytearray(pickle.dumps([np.arange(6.0), {"a": np.eye(2)}], 2))
    made[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Refused):
        unpickle.arrays(bytes(made[: data.draw(st.integers(1, len(made)))]))


# ------------------------------------------------------------------------------ tensors


@contextmanager
def pretended(**modules):
    """Modules that seem to be there, with what is in them."""
    before = {name: sys.modules.get(name) for name in modules}
    for name, held in modules.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(held)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def storage_bytes(values, kind, key="0"):
    """A storage as PyTorch's older format writes it."""
    made = type(kind, (), {"__module__": "torch"})

    class Writer(pickle.Pickler):
        def persistent_id(self, obj):
            return ("storage", made, key, "cpu", len(values), None) if obj is values else None

    file = io.BytesIO()
    for part in (unpickle.MAGIC, 1001, {"little_endian": True}):
        pickle.dump(part, file, 2)
    with pretended(torch={kind: made}):
        Writer(file, 2).dump(values)
    pickle.dump([key], file, 2)
    return file.getvalue() + struct.pack("<q", len(values)) + values.tobytes()


class Tensor:
    """Pickles as a tensor of PyTorch does."""

    def __init__(self, values, kind, offset=0, size=None, stride=None):
        self.values, self.kind, self.offset = values, kind, offset
        self.size = values.shape if size is None else size
        self.stride = (
            tuple(s // values.itemsize for s in values.strides) if stride is None else stride
        )

    def __reduce__(self):
        return _rebuild_tensor_v2, (
            Evil(_load_from_bytes, storage_bytes(self.values.ravel(), self.kind)),
            self.offset,
            self.size,
            self.stride,
            False,
            None,
        )


def _rebuild_tensor_v2():
    pass


def _load_from_bytes():
    pass


_rebuild_tensor_v2.__module__ = "torch._utils"
_load_from_bytes.__module__ = "torch.storage"


def tensor_pickle(thing):
    """A pickle of things with tensors in them."""
    functions = {
        "torch": {},
        "torch._utils": {"_rebuild_tensor_v2": _rebuild_tensor_v2},
        "torch.storage": {"_load_from_bytes": _load_from_bytes},
    }
    with pretended(**functions):
        return pickle.dumps(thing, 2)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("FloatStorage", "<f4"), ("LongStorage", "<i8"), ("ByteStorage", "|u1")]
)
def test_tensors_come_back_as_arrays(kind, dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    (found,) = unpickle.tensors(tensor_pickle([Tensor(values, kind)]))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)


def test_a_view_of_a_storage_comes_back_as_it_is_seen():
    values = np.arange(12, dtype="<i8")
    turned = Tensor(values, "LongStorage", offset=1, size=(3, 2), stride=(1, 5))
    found = unpickle.tensors(tensor_pickle(turned))
    np.testing.assert_array_equal(found, [[1, 6], [2, 7], [3, 8]])


@pytest.mark.parametrize(
    ("offset", "size", "stride"), [(0, (13,), (1,)), (4, (3, 3), (3, 1)), (-1, (2,), (1,)),
                                   (0, (2,), (-1,))]
)  # fmt: skip
def test_a_tensor_that_reaches_out_of_its_storage_is_refused(offset, size, stride):
    wrong = Tensor(np.arange(12, dtype="<i8"), "LongStorage", offset, size, stride)
    with pytest.raises(Refused, match="larger than its storage"):
        unpickle.tensors(tensor_pickle(wrong))


def test_a_storage_that_is_cut_off_is_refused():
    whole = storage_bytes(np.arange(12, dtype="<i8"), "LongStorage")
    with pytest.raises(Refused):
        unpickle.tensors(tensor_pickle(Evil(_load_from_bytes, whole[:-8])))
