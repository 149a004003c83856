"""Values of Python as tensors, and back."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

import tagflow
from conftest import nodes, op, placeholder

TYPES = [
    ("FLOAT", np.float32), ("DOUBLE", np.float64), ("HALF", np.float16),
    ("BFLOAT16", ml_dtypes.bfloat16), ("INT8", np.int8), ("INT16", np.int16),
    ("INT32", np.int32), ("INT64", np.int64), ("UINT8", np.uint8),
    ("UINT16", np.uint16), ("UINT32", np.uint32), ("UINT64", np.uint64),
    ("BOOL", np.bool_), ("COMPLEX64", np.complex64),
    ("COMPLEX128", np.complex128)]


def identity(dtype, shape=None):
    """A callable that returns what it gets."""
    graph = nodes(placeholder("x", dtype, shape), op("y", "Identity", "x",
                                                     T=dtype))
    return tagflow.Session(graph).make_callable("y", ["x"])


@pytest.mark.parametrize("name,dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (0,), (2, 3), (2, 0, 3),
                                   (5, 7, 11, 3), (1, 1, 1, 1, 1, 2)])
def test_numbers_of_any_type_and_shape_come_back_as_they_were(
        name, dtype, shape):
    rng = np.random.default_rng(len(shape))
    array = rng.integers(0, 2, shape).astype(dtype)
    result = identity(name)(array)
    assert result.dtype == array.dtype
    assert result.shape == array.shape
    np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("make", [
    lambda a: a[::-1], lambda a: a.T, lambda a: a[:, 1:3],
    lambda a: np.asfortranarray(a), lambda a: a.astype(">f4"),
    lambda a: np.broadcast_to(a[0], a.shape)])
def test_arrays_of_any_layout_are_read_by_their_elements(make):
    array = make(np.arange(12, dtype=np.float32).reshape(3, 4))
    np.testing.assert_array_equal(identity("FLOAT")(array), array)


@pytest.mark.parametrize("value,expected", [
    (3, 3.0), (3.5, 3.5), (True, 1.0), ([1, 2], [1.0, 2.0]),
    ([[1.5], [2]], [[1.5], [2.0]]), ((1, 2), [1.0, 2.0]), ([], []),
    (np.float64(0.25), 0.25), (np.int64(7), 7.0), (np.float16(2), 2.0)])
def test_scalars_and_lists_become_what_the_graph_needs(value, expected):
    result = identity("FLOAT")(value)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype,value", [
    ("INT32", 2.0), ("INT32", np.float32(1)), ("INT32", 2**31),
    ("INT8", np.array([300])), ("UINT8", -1), ("UINT64", np.int64(-1)),
    ("INT64", np.array([2**63], np.uint64)), ("BOOL", 1.0), ("FLOAT", 1j),
    ("FLOAT", "1.0"), ("FLOAT", None), ("STRING", 3), ("STRING", [b"a", 3]),
    ("FLOAT", [[1], [2, 3]]), ("FLOAT", object())])
def test_values_that_would_change_are_refused(dtype, value):
    with pytest.raises((tagflow.InvalidArgumentError, ValueError, TypeError)):
        identity(dtype)(value)


@pytest.mark.parametrize("value,expected", [
    (np.array([1, -2], np.int64), [1, -2]), (np.array([7], np.uint64), [7]),
    (np.array([], np.float64), [])])
def test_integers_that_fit_are_converted(value, expected):
    result = identity("INT32")(value)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("value,expected", [
    (b"a\x00b\x00", b"a\x00b\x00"), ("größe", "größe".encode()), (b"", b""),
    ([b"x", "y"], [b"x", b"y"]), (np.array([b"ab", b"c"]), [b"ab", b"c"]),
    (np.array(["ab", "ü"]), [b"ab", "ü".encode()]),
    (np.array([["a"], [b"b"]], object), [[b"a"], [b"b"]]),
    (np.array([], "U3"), [])])
def test_texts_of_any_kind_come_back_as_bytes(value, expected):
    result = identity("STRING")(value)
    if isinstance(expected, bytes):
        assert result == expected
    else:
        assert result.dtype == object
        assert result.tolist() == expected


def test_variable_length_strings_of_numpy_are_texts():
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("NumPy before 2.0 has no StringDType")
    array = np.array(["a", "longer than that", ""], np.dtypes.StringDType())
    assert identity("STRING")(array).tolist() == [b"a", b"longer than that",
                                                  b""]


def test_results_may_be_written_and_large_ones_are_not_copied():
    graph = nodes(placeholder("x", "FLOAT"), op("y", "Neg", "x", T="FLOAT"))
    call = tagflow.Session(graph).make_callable("y", ["x"])
    result = call(np.ones((1000, 1000), np.float32))
    assert result.flags.writeable and result.base is not None
    assert result.ctypes.data % 64 == 0
    view = result[10:20]
    del result, call
    gc.collect()
    assert (view == -1).all()
    view[:] = 5
    assert (view == 5).all()


def test_a_result_that_the_graph_keeps_is_a_copy():
    graph = nodes("""node { name: 'c' op: 'Const'
        attr { key: 'dtype' value { type: DT_FLOAT } }
        attr { key: 'value' value { tensor { dtype: DT_FLOAT
            tensor_shape { dim { size: 4096 } } float_val: 1 } } } }""")
    session = tagflow.Session(graph)
    first = session.run("c")
    first[:] = 7
    assert (session.run("c") == 1).all()


def aligned(count):
    """An array of float32 at 64 bytes."""
    raw = np.empty(count * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + count * 4].view(np.float32)


def test_an_array_that_nobody_may_write_is_lent_and_given_back():
    call = identity("FLOAT")
    array = aligned(4096)
    array[:] = 3
    array.base.flags.writeable = array.flags.writeable = False
    gone = weakref.ref(array)
    results = [call(array) for _ in range(3)]
    assert all((result == 3).all() for result in results)
    # A result is never the memory of what was fed.
    assert all(result.ctypes.data != array.ctypes.data for result in results)
    del results, array
    call(1.0)  # gives back what is over
    gc.collect()
    assert gone() is None


def test_lent_memory_is_never_written():
    graph = nodes(
        placeholder("x", "FLOAT", [4096]),
        """node { name: 'v' op: 'VariableV2'
            attr { key: 'dtype' value { type: DT_FLOAT } }
            attr { key: 'shape' value { shape { dim { size: 4096 } } } } }""",
        op("set", "Assign", "v", "x", T="FLOAT"),
        op("add", "AssignAdd", "v", "x", T="FLOAT"))
    array = aligned(4096)
    array[:] = 2
    array.base.flags.writeable = array.flags.writeable = False
    with tagflow.Session(graph) as session:
        session.run([], {"x": array}, targets="set")
        for _ in range(3):
            session.run([], {"x": array}, targets="add")
        assert (session.run("v") == 8).all()
    assert (array == 2).all()


def test_what_is_fed_may_be_changed_while_the_run_goes_on():
    graph = nodes(placeholder("x", "DOUBLE"), op("y", "Exp", "x", T="DOUBLE"))
    session = tagflow.Session(graph)
    array = np.zeros(1 << 20)
    future = session.run_async("y", {"x": array})
    array[:] = np.inf
    assert (future.result() == 1).all()


class TestTensor:
    def test_it_says_what_it_is(self):
        tensor = tagflow.Tensor([[1, 2], [3, 4]], np.float32)
        assert tensor.shape == (2, 2)
        assert tensor.dtype == np.float32
        assert tensor.type_name == "float"
        assert len(tensor) == 2
        assert repr(tensor) == "tagflow.Tensor(float[2,2] {1 2 3 4})"

    def test_it_is_an_array_that_cannot_be_written(self):
        tensor = tagflow.Tensor(np.arange(6.0).reshape(2, 3))
        array = np.asarray(tensor)
        assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert not array.flags.writeable
        assert np.asarray(tensor, np.float32).dtype == np.float32
        assert np.array(tensor).flags.writeable

    @pytest.mark.parametrize("name,dtype", TYPES)
    def test_dlpack_takes_every_type_both_ways(self, name, dtype):
        array = np.arange(6).reshape(2, 3).astype(dtype)
        tensor = tagflow.Tensor(array)
        if name == "BFLOAT16":  # which NumPy does not take
            back = tagflow.from_dlpack(tensor)
        else:
            assert (np.from_dlpack(tensor) == array).all()
            back = tagflow.from_dlpack(array)
        assert back.dtype == array.dtype
        assert (np.asarray(back) == array).all()

    def test_dlpack_shares_memory(self):
        tensor = tagflow.Tensor(np.ones(10000, np.float32))
        array = np.from_dlpack(tensor)
        assert array.ctypes.data == np.asarray(tensor).ctypes.data
        source = aligned(4096)
        source[:] = 1
        lent = tagflow.from_dlpack(source)
        assert np.asarray(lent).ctypes.data == source.ctypes.data
        gone = weakref.ref(source)
        del lent, source
        identity("FLOAT")(1.0)
        gc.collect()
        assert gone() is None

    def test_texts_have_no_dlpack(self):
        with pytest.raises(BufferError, match="no form in DLPack"):
            np.from_dlpack(tagflow.Tensor(["a"]))
        assert tagflow.Tensor(["a", "b"]).numpy().tolist() == [b"a", b"b"]

    def test_it_is_fed_as_it_is(self):
        call = identity("FLOAT")
        assert call(tagflow.Tensor(2.5, "float")) == 2.5
        with pytest.raises(tagflow.InvalidArgumentError, match="double"):
            call(tagflow.Tensor(2.5))


class _Lends:
    """What __dlpack__() of an array returns, always the same."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def test_what_is_no_array_of_dlpack_is_refused():
    lends = _Lends(np.arange(3.0).__dlpack__())
    assert str(tagflow.from_dlpack(lends)) == (
        "tagflow.Tensor(double[3] {0 1 2})")
    for used in lends, _Lends(None), _Lends(3):
        with pytest.raises(TypeError, match="no capsule that was not used"):
            tagflow.from_dlpack(used)
    with pytest.raises(ValueError, match="mine"):
        tagflow.from_dlpack(_Lends(ValueError("mine")))
    for other in None, 3, "x":
        with pytest.raises(TypeError, match="takes an array with __dlpack__"):
            tagflow.from_dlpack(other)


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    with pytest.raises(TypeError, match="mask would be lost"):
        tagflow.function(lambda x: x)(masked)


def test_a_view_of_what_can_be_written_is_copied():
    whole = aligned(4096)
    whole[:] = 1
    view = whole[:]
    view.flags.writeable = False
    tensor = tagflow.Tensor(view)
    whole[:] = 2
    assert (np.asarray(tensor) == 1).all()
    # A Tensor's own memory never changes, and that of bytes.
    assert np.asarray(tagflow.Tensor(
        tensor.numpy())).ctypes.data == tensor.numpy().ctypes.data
    raw = np.frombuffer(bytearray(1 << 13), np.uint8).view()
    raw.flags.writeable = False
    assert np.asarray(tagflow.Tensor(raw)).ctypes.data != raw.ctypes.data
