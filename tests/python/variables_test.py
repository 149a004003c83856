"""Variables: their order in a program, their gradients, their files."""

import gc

import numpy as np
import pytest

import tagflow
import tagflow.numpy as tnp


def test_a_variable_acts_at_once_outside_of_a_trace():
    v = tagflow.Variable([1.0, 2.0], name="v")
    assert v.dtype == np.float32 and v.shape == (2,)
    assert v.assign_add([1.0, 1.0]).tolist() == [2, 3]
    v.assign_sub(np.float32([1, 1]))
    np.testing.assert_array_equal(v, [1, 2])
    np.testing.assert_array_equal(v.value * 2, [2, 4])
    assert repr(v) == "<tagflow.Variable 'v' float32[2]>"
    np.testing.assert_array_equal(v + 1, [2, 3])
    with pytest.raises(ValueError, match=r"shape \[3\]"):
        v.assign([1.0, 2.0, 3.0])
    assert float(tagflow.Variable(2.5)) == 2.5 and int(tagflow.Variable(3)) == 3


def test_functions_share_variables():
    count = tagflow.Variable(0)
    up = tagflow.function(lambda n: count.assign_add(n))
    get = tagflow.function(lambda: count.value * 10)
    assert up(2) == 2 and up(3) == 5
    assert get() == 50


def test_assignments_happen_in_the_order_of_the_program():
    a, b = tagflow.Variable(1.0), tagflow.Variable(10.0)

    @tagflow.function
    def f():
        before = a.value
        a.assign(b.value + 1)
        b.assign(a.value * 2)
        a.assign_add(before)
        return before, a.value, b.value

    for _ in range(20):
        a.assign(1.0), b.assign(10.0)
        assert f() == (1, 12, 22)


def test_assignments_in_loops_and_branches_are_ordered():
    v = tagflow.Variable(1)

    @tagflow.function
    def f(n):
        def body(i):
            def double():
                v.assign(v.value * 2)

            def add():
                v.assign_add(3)

            tagflow.cond(i % 2 == 0, double, add)
            v.assign_add(v.value % 2)
            return i + 1

        tagflow.while_loop(lambda i: i < n, body, 0)
        return v.value

    expected = 1
    for i in range(30):
        expected = expected * 2 if i % 2 == 0 else expected + 3
        expected += expected % 2
    for _ in range(5):
        v.assign(1)
        assert f(np.int32(30)) == np.int64(expected).astype(np.int32)


def test_a_loop_may_read_what_the_last_iteration_wrote():
    v = tagflow.Variable(0)

    @tagflow.function
    def f():
        def body(i):
            seen = v.value
            v.assign(i)
            return i + 1 + 0 * seen

        tagflow.while_loop(lambda i: v.value < 5, body, 0,
                           parallel_iterations=16)
        return v.value

    assert f() == 5


def test_assignments_without_an_order_are_refused():
    v = tagflow.Variable(0.0)
    with pytest.raises(tagflow.TracingError, match="no order"):
        tagflow.function(lambda x: tagflow.map(
            lambda e: v.assign_add(e), x))(np.ones(3, np.float32))
    with pytest.raises(tagflow.TracingError, match="scan cannot assign"):
        tagflow.function(lambda x: tagflow.scan(
            lambda c, e: (c, v.assign_add(e)), 0, x))(np.ones(3, np.float32))
    with pytest.raises(RuntimeError, match="make it outside"):
        tagflow.function(lambda: tagflow.Variable(1).value)()


def test_recursive_functions_read_variables():
    limit = tagflow.Variable(3)

    @tagflow.recursive(result=tagflow.spec("int32"))
    def count(n):
        return tagflow.cond(n >= limit.value, lambda: n, lambda: count(n + 1))

    f = tagflow.function(lambda: (limit.assign_add(4), count(0)))
    assert f() == (7, 7)


def test_gradients_by_variables():
    w, b = tagflow.Variable([1.0, 2.0]), tagflow.Variable(0.5)

    @tagflow.function
    def step(x):
        loss = tnp.sum((w * x + b) ** 2)
        grads = tagflow.gradients(loss, {"w": w, "b": b})
        w.assign_sub(grads["w"] * 0.1)
        return loss, grads

    x = np.float32([3, 4])
    loss, grads = step(x)
    error = np.float32([1, 2]) * x + 0.5
    np.testing.assert_allclose(loss, np.sum(error ** 2))
    np.testing.assert_allclose(grads["w"], 2 * error * x)
    np.testing.assert_allclose(grads["b"], np.sum(2 * error))
    np.testing.assert_allclose(w, [1, 2] - 0.1 * 2 * error * x, rtol=1e-6)


def test_variables_of_other_types():
    text = tagflow.Variable(np.array(["a", "b"], object))
    assert text.value.tolist() == [b"a", b"b"]
    wide = tagflow.Variable(1, dtype="int64")
    assert wide.assign_add(2 ** 40) == 2 ** 40 + 1
    with pytest.raises(TypeError, match="astype"):
        tagflow.function(lambda: wide.assign(tnp.float32(1.5)))()


def test_structures_can_have_variables():
    params = {"w": tagflow.Variable(2.0), "n": [tagflow.Variable(3)]}
    f = tagflow.function(lambda p, x: p["w"] * x * p["n"][0])
    assert f(params, np.float32(5)) == 30
    params["w"].assign(1.0)
    assert f(params, np.float32(5)) == 15
    assert len(f._traces) == 1


def test_a_value_exists_as_long_as_somebody_uses_it():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    v = tagflow.Variable(1.0)
    f = tagflow.function(lambda: v.assign_add(1.0))
    assert f() == 2
    v = None  # the trace still has it
    gc.collect()
    tagflow.Variable(0.0)
    assert f() == 3
    big = np.ones((1 << 20,))  # 8 MiB
    tagflow.Variable(big)
    before = resident()
    for _ in range(40):
        tagflow.Variable(big)
        gc.collect()
    assert resident() - before < 100 << 20


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_structures_are_saved_and_restored(tmp_path, ending):
    path = tmp_path / f"state.{ending}"
    value = {"layers": [{"w": np.eye(2)}, {"w": np.ones(3, np.float32)}],
             "step": np.int32(7), "v": tagflow.Variable([1.0, 2.0])}
    tagflow.save_tree(path, value)
    value["v"].assign([0.0, 0.0])
    like = tagflow.tree.map(
        lambda x: x if isinstance(x, tagflow.Variable) else np.zeros_like(x),
        value)
    got = tagflow.load_tree(path, like)
    np.testing.assert_array_equal(got["layers"][0]["w"], np.eye(2))
    assert got["step"] == 7 and got["step"].dtype == np.int32
    np.testing.assert_array_equal(value["v"], [1, 2])
    with pytest.raises(tagflow.InvalidArgumentError, match="layers.1..w"):
        like["layers"][1]["w"] = np.zeros(4, np.float32)
        tagflow.load_tree(path, like)
    with pytest.raises(tagflow.InvalidArgumentError, match="has no 'more'"):
        tagflow.load_tree(path, {"more": np.ones(1)})
    with pytest.raises(tagflow.InvalidArgumentError, match="neither"):
        tagflow.save_tree(tmp_path / "x.bin", value)


@pytest.mark.parametrize("start, value", [
    (0, 1.7), (0, 2**40), (0, [0.5]), (0.0, 1j), (True, 2), (0.0, "x"),
    (np.uint8(1), -1), (np.uint8(1), 256), (0, np.float32(1))])
def test_values_that_would_change_are_not_assigned(start, value):
    variable = tagflow.Variable(start)
    for change in variable.assign, variable.assign_add:
        with pytest.raises((TypeError, ValueError)):
            change(value)
    assert variable.numpy() == start


def test_numbers_take_the_type_of_a_variable():
    assert tagflow.Variable(0.5).assign_add(1) == 1.5
    assert tagflow.Variable(np.uint8(1)).assign(255) == 255
    assert tagflow.Variable(np.float64(1)).assign(0.1) == 0.1
    assert tagflow.Variable(np.int64(1)).assign(2**40) == 2**40
    assert tagflow.Variable("a").assign("b") == b"b"
