"""Traced functions: signatures, structures, errors, files."""

import dataclasses
import gc
import inspect
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import tagflow
import tagflow.numpy as tnp


def test_one_trace_for_each_signature():
    calls = []

    @tagflow.function
    def f(x):
        calls.append(x.shape)
        return x + 1

    f(np.ones(2)), f(np.zeros(2)), f(np.ones(3)), f(np.ones(2, np.float32))
    f(1.0), f(2.0), f(1), f(True), f(np.float32(1))
    assert calls == [(2,), (3,), (2,), (), (), (), ()]
    assert "float64[2]" in repr(f)
    f.clear()
    f(np.ones(2))
    assert len(calls) == 8


def test_numbers_of_python_take_the_type_that_they_meet():
    f = tagflow.function(lambda x, y: x * y)
    assert f(np.ones(1), 2.0).dtype == np.float64
    assert f(np.ones(1, np.float16), 2).dtype == np.float16
    assert f(2, 3).dtype == np.int32
    assert f(2, 3.0).dtype == np.float32
    assert f(2 ** 40, 3) == 3 * 2 ** 40


def test_numbers_of_python_keep_all_digits_for_what_they_meet():
    f = tagflow.function(lambda x, y: (x * y, y, y * 2))
    product, alone, twice = f(np.float64(1), 0.1)
    assert product == 0.1 and product.dtype == np.float64
    assert alone == np.float32(0.1) and alone.dtype == np.float32
    assert twice.dtype == np.float32
    assert tnp.add(np.zeros(1), 0.1)[0] == 0.1
    assert tnp.add(np.zeros(1, complex), 0.1j)[0] == 0.1j
    assert f(np.float32(1), 0.1)[0] == np.float32(0.1)
    gradient = tagflow.grad(lambda y: np.float64(3) * y)(0.1)
    assert gradient == 3 and gradient.dtype == np.float32


def test_structures_go_in_and_out():
    @dataclasses.dataclass(frozen=True)
    class Layer:
        w: object
        b: object = None

    @tagflow.function
    def f(layers, *, scale):
        first = layers["first"]
        return [Layer(first.w * scale, first.b), (layers["rest"], None)]

    layer, (rest, none) = f({"first": Layer(np.ones(2)), "rest": [1, (2.0,)]},
                            scale=3.0)
    np.testing.assert_array_equal(layer.w, [3, 3])
    assert layer.b is None and none is None
    assert rest == [1, (2.0,)]


def test_classes_can_be_registered_as_structures():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    tagflow.tree.register(Pair, lambda p: ((p.a, p.b), None),
                          lambda _, children: Pair(*children))
    got = tagflow.function(lambda p: Pair(p.b, p.a))(Pair(1, 2))
    assert (got.a, got.b) == (2, 1)
    leaves, structure = tagflow.tree.flatten({"x": Pair(1, [2]), "y": None})
    assert leaves == [1, 2]
    assert tagflow.tree.paths(structure) == ["x[0]", "x[1][0]"]
    assert repr(structure) == "{'x': Pair(*, [*]), 'y': None}"


def test_static_arguments_belong_to_the_trace():
    @tagflow.function(static_argnames=("n", "mode"))
    def f(x, n, mode="add"):
        for _ in range(n):
            x = x + 1 if mode == "add" else x * 2
        return x

    assert f(1.0, 3) == 4
    assert f(1.0, 3, mode="mul") == 8
    assert f(1.0, n=2) == 3
    g = tagflow.function(lambda n, x: x * n, static_argnums=0)
    assert g(3, np.float32(2)) == 6
    with pytest.raises(TypeError, match="hashable"):
        g([3], np.float32(2))
    with pytest.raises(ValueError, match="no parameter 'k'"):
        tagflow.function(lambda x: x, static_argnames="k")


def test_what_is_no_array_is_refused():
    f = tagflow.function(lambda x: x)
    with pytest.raises(TypeError, match="argument x is object"):
        f(object())
    with pytest.raises(TypeError, match="static_argnames"):
        f({"a": [1, print]})
    with pytest.raises(TypeError, match="object"):
        tagflow.function(lambda x: object())(1)


def test_an_input_signature_serves_all_shapes():
    calls = []

    @tagflow.function(input_signature=[
        tagflow.spec("float32", (None, 2)), {"s": tagflow.spec("float64")}])
    def f(x, d):
        calls.append(x.shape)
        return tnp.sum(x, 1) * tnp.astype(d["s"], "float32")

    assert f(np.ones((3, 2), np.float32), {"s": 2}).tolist() == [4, 4, 4]
    assert f(np.ones((1, 2), np.float32), {"s": 0.5}).tolist() == [1]
    assert calls == [(None, 2)]
    with pytest.raises(TypeError, match=r"float32\[\?,2\]"):
        f(np.ones((3, 3), np.float32), {"s": 2})
    with pytest.raises(TypeError, match="float64"):
        f(np.ones((3, 2)), {"s": 2})
    with pytest.raises(TypeError, match="2 arguments"):
        f(np.ones((3, 2), np.float32))


def test_functions_call_functions():
    calls = []

    @tagflow.function
    def inner(x):
        calls.append(type(x).__name__)
        return x * 2

    outer = tagflow.function(lambda x: inner(x) + inner(np.float32(1)))
    assert outer(np.float32(3)) == 8
    assert calls == ["SymbolicTensor", "float32"]
    assert inner(np.float32(4)) == 8


def test_methods_can_be_traced():
    @dataclasses.dataclass
    class Scale:
        by: object

        @tagflow.function
        def __call__(self, x):
            return x * self.by

    assert Scale(3.0)(np.float32(2)) == 6

    class Layer:  # is no structure
        def __init__(self, weights):
            self.weights = weights

        def __eq__(self, other):
            raise RuntimeError("never compared")

        @tagflow.function(static_argnames="power")
        def apply(self, x, power=1):
            return (self.weights * x) ** power

    layers = [Layer(np.float32(3)), Layer(np.float32(4))]
    assert [each.apply(np.float32(2), 2) for each in layers] == [36, 64]
    assert layers[0].apply(np.float32(1), power=3) == 27
    assert layers[0].apply is layers[0].apply
    freed = weakref.ref(layers.pop())
    gc.collect()
    assert freed() is None and len(Layer.apply._bound) == 1


def test_texts():
    f = tagflow.function(lambda x: (x, tagflow.ops.StringLength(x)))
    text, length = f("abc")
    assert text == b"abc" and length == 3
    texts, lengths = f(np.array(["a", "bcd"], object))
    assert texts.tolist() == [b"a", b"bcd"] and lengths.tolist() == [1, 3]
    same = tagflow.function(lambda x: x == "a")
    assert same(np.array(["a", "b"], object)).tolist() == [True, False]


def test_results_can_be_arguments_and_constants():
    x = np.arange(3)
    f = tagflow.function(lambda a: (a, a, 3, x, np.float64(2)))
    a, b, three, c, two = f(x)
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(b, c)
    assert three == 3 and two == 2.0
    a[0] = 7  # a result belongs to its caller
    assert b[0] == 0 and x[0] == 0


def test_a_function_may_return_nothing():
    assert tagflow.function(lambda: None)() is None
    assert tagflow.function(lambda x: {})(1) == {}
    assert tagflow.function(lambda x: [None, ()])(1) == [None, ()]


def test_errors_of_a_run_name_the_line_that_made_the_node():
    @tagflow.function
    def f(x, i):
        y = x * 2
        return tnp.take(y, i)  # the line at fault

    line = inspect.getsourcelines(f)[1] - 1
    with pytest.raises(tagflow.Error) as caught:
        f(np.ones(3), np.int32(7))
    assert caught.value.source == f"{__file__}:{line + 4}"
    assert caught.value.source in str(caught.value)
    with pytest.raises(tagflow.Error) as caught:  # by the native path, too
        f(np.ones(3), np.int32(7))
    assert caught.value.source == f"{__file__}:{line + 4}"


def test_errors_in_a_trace_are_raised_at_their_line():
    with pytest.raises(tagflow.InvalidArgumentError, match="MatMul"):
        tagflow.function(lambda x: x @ np.ones((3, 3)))(np.ones((2, 2)))
    f = tagflow.function(lambda x: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            f(1)


def test_any_op_can_be_called_by_name():
    x = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(
        tagflow.ops.MatMul(x, x, transpose_b=True), x @ x.T)

    @tagflow.function
    def f(x):
        values, indices = tagflow.ops.TopKV2(x, 1)
        return (values, indices, tagflow.ops.ConcatV2([x, x], 1),
                tagflow.ops.Pow(x, 2))

    values, indices, both, squares = f(x)
    assert values.tolist() == [[1], [3]] and indices.tolist() == [[1], [1]]
    assert both.shape == (2, 4) and squares[1, 1] == 9
    assert "transpose_a" in tagflow.ops.MatMul.__doc__
    assert "MatMul" in dir(tagflow.ops)
    with pytest.raises(AttributeError, match="MatMul"):
        tagflow.ops.MatMull
    with pytest.raises(tagflow.InvalidArgumentError, match="transpose_a"):
        tagflow.ops.MatMul(x, x, tranpose_a=True)
    with pytest.raises(TypeError, match="2 inputs"):
        tagflow.ops.MatMul(x)


def test_the_graph_can_be_looked_at_and_saved(tmp_path):
    @tagflow.function
    def f(x, y):
        return x * y + 1

    assert f(np.float32(2), np.float32(3)) == 7
    assert "AddV2" in [node.op for node in f.graph.nodes]
    graph = tagflow.Graph.from_graphdef(f.to_graphdef())
    with tagflow.Session(graph) as session:
        assert session.run("result", {"x": 2.0, "y": 5.0}) == 11
    path = tmp_path / "f.pbtxt"
    f.save(path, tagflow.spec("float64", (None,)), tagflow.spec("float64"))
    model = tagflow.load(path)
    assert "result" in path.read_text()
    with tagflow.Session(tagflow.Graph.from_graphdef(path)) as session:
        got = session.run("result", {"x": np.ones(3), "y": 2.0})
    assert got.tolist() == [3, 3, 3]
    assert model is not None
    f(np.float64(2), np.float64(3))
    with pytest.raises(ValueError, match="2 traces"):
        f.graph


def test_a_function_is_saved_as_a_model(tmp_path):
    scale = tagflow.Variable(3.0)

    @tagflow.function
    def f(x, options):
        return {"scaled": x * scale, "sum": tnp.sum(x) + options["shift"]}

    x = np.float32([1, 2])
    assert f(x, {"shift": 1.0})["sum"] == 4
    f.save(tmp_path / "only")  # the only trace
    f.save(tmp_path / "any", tagflow.spec("float32", (None,)),
           {"shift": tagflow.spec("float32")})
    scale.assign(7.0)  # the models have the value of before
    for name, more in (("only", x), ("any", np.float32([1, 2, 3]))):
        model = tagflow.load(tmp_path / name)
        got = model(x=more, **{"options.shift": 0.5})
        np.testing.assert_array_equal(got["scaled"], more * 3)
        assert got["sum"] == more.sum() + 0.5
    with pytest.raises(tagflow.AlreadyExistsError):
        f.save(tmp_path / "only")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["any", "only"]

    writes = tagflow.function(lambda x: scale.assign(x))
    with pytest.raises(tagflow.TracingError, match="is saved cannot assign"):
        writes.save(tmp_path / "writes", np.float32(1))
    single = tagflow.function(lambda x: x + 1)
    single.save(tmp_path / "single", tagflow.spec("int64", None))
    got = tagflow.load(tmp_path / "single")(x=np.arange(2))
    assert got["result"].tolist() == [1, 2]


def test_threads_share_a_function():
    f = tagflow.function(lambda x: tnp.sum(x) * 2)
    results, failures = [], []

    def call(n):
        try:
            for _ in range(20):
                results.append(f(np.ones(n)) == 2 * n)
        except Exception as error:  # a thread's error is lost otherwise
            failures.append(error)

    threads = [threading.Thread(target=call, args=(n % 3 + 1,))
               for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures and all(results) and len(results) == 120
    assert len(f._traces) == 3


def test_a_function_that_nobody_holds_is_freed():
    f = tagflow.function(lambda x: x + 1)
    f(np.float32(1))
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


def test_the_reprs_help():
    shown = []

    @tagflow.function
    def f(x):
        shown.append(repr(x))
        shown.append(repr(x[0]))
        return x

    assert "not traced yet" in repr(f)
    f.trace(tagflow.spec("float32", (None, 2)))
    assert shown[0] == "<SymbolicTensor float32[?,2]>"
    assert shown[1] == "<SymbolicTensor float32[2]>"
    assert repr(f) == ("<tagflow.function f: (float32[?,2]) -> float32[?,2]>")


def test_many_signatures_are_all_answered():
    f = tagflow.function(lambda x: tnp.sum(x))
    for _ in range(2):
        for n in range(40):
            assert f(np.ones(n)) == n
    assert len(f._traces) == 40


def test_a_function_may_have_many_arguments():
    f = tagflow.function(lambda *values: sum(values))
    for _ in range(2):
        for count in (5, 6, 7, 8, 40):
            assert f(*np.ones((count, 3))).tolist() == [count] * 3
    g = tagflow.function(lambda values: sum(values.values()))
    assert g({str(i): np.float32(i) for i in range(60)}) == 59 * 30


def test_arrays_of_other_layouts_are_taken():
    f = tagflow.function(lambda x: x + 0)
    x = np.arange(12.0).reshape(3, 4)
    for view in (x.T, x[::2, ::-1], np.asfortranarray(x), x.astype(">f8")):
        np.testing.assert_array_equal(f(view), view)


@pytest.mark.parametrize("name, instead", [
    ("jit", "tagflow.function"), ("jacrev", "tagflow.jacobian"),
    ("pmap", "tagflow.vmap"), ("GradientTape", "tagflow.grad")])
def test_names_of_others_lead_to_those_of_tagflow(name, instead):
    with pytest.raises(AttributeError, match=instead):
        getattr(tagflow, name)
    assert not hasattr(tagflow, "nothing_of_the_kind")


def test_ops_run_on_the_device_of_their_block():
    done = subprocess.run([sys.executable, "-c", """
import numpy as np, tagflow, tagflow.numpy as tnp
tagflow.configure(devices="cpu:2")

@tagflow.function
def f(x):
    with tagflow.device("cpu:1"):
        y = tagflow.while_loop(lambda v: tnp.sum(v) < 10, lambda v: v + 1, x)
        with tagflow.device(tagflow.devices("cpu:2")[0]):
            y = tnp.sin(y)
    return tnp.cos(y)

x = np.ones(3)
assert np.allclose(f(x), np.cos(np.sin(x + 3)))
at = {node.op: node.device.rpartition("/")[2] for node in f.graph.nodes}
print(at["AddV2"], at["Sin"], at["Cos"] or "any")
"""], capture_output=True, text=True)
    assert done.stdout == "device:CPU:1 device:CPU:0 any\n", done.stderr
    with pytest.raises(tagflow.TracingError, match="tagflow.function"):
        with tagflow.device("cpu:0"):
            pass

    @tagflow.function
    def nowhere(x, name):
        with tagflow.device(name):
            return x + 1

    nowhere = tagflow.function(nowhere, static_argnames="name")
    assert nowhere(1, "cpu") == 2
    with pytest.raises(tagflow.InvalidArgumentError, match="CPU:7"):
        nowhere(1, "cpu:7")
    with pytest.raises(ValueError, match="is no device"):
        nowhere(1, "the other one")
