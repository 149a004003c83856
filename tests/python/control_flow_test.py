"""Conditionals, loops and recursion: what they compute, what they refuse."""

import collections
import dataclasses

import numpy as np
import pytest

import tagflow
import tagflow.numpy as tnp


@dataclasses.dataclass
class State:
    i: object
    total: object


Point = collections.namedtuple("Point", "x y")


def test_cond_runs_one_branch():
    count = tagflow.Variable(0)

    @tagflow.function
    def f(x):
        return tagflow.cond(x > 0, lambda: count.assign_add(1) + 0 * x,
                            lambda: x - 1)

    assert f(np.int32(5)) == 1
    assert f(np.int32(-5)) == -6
    assert count.numpy() == 1


def test_cond_takes_operands_and_returns_structures():
    @tagflow.function
    def f(x, y):
        return tagflow.cond(
            x > y, lambda a, b: {"max": a, "rest": [b, None]},
            lambda a, b: {"max": b, "rest": [a, None]}, x, y)

    assert f(2.0, 3.0) == {"max": 3.0, "rest": [2.0, None]}


def test_cond_of_branches_that_return_nothing():
    v = tagflow.Variable(1.0)

    @tagflow.function
    def f(p):
        tagflow.cond(p, lambda: v.assign(2.0) and None, lambda: None)

    with pytest.raises(tagflow.TracingError):
        f(True)

    @tagflow.function
    def g(p):
        def change():
            v.assign(2.0)

        assert tagflow.cond(p, change, lambda: None) is None

    g(False)
    assert v.numpy() == 1
    g(True)
    assert v.numpy() == 2


def test_branches_must_agree():
    with pytest.raises(TypeError, match="different structures"):
        tagflow.function(lambda p: tagflow.cond(
            p, lambda: (1, 2), lambda: 1))(True)
    with pytest.raises(tagflow.InvalidArgumentError, match="int32.*float"):
        tagflow.function(lambda p: tagflow.cond(
            p, lambda: 1, lambda: 1.0))(True)
    with pytest.raises(TypeError, match="must be a bool"):
        tagflow.function(lambda p: tagflow.cond(
            p, lambda: 1, lambda: 2))(np.float32(1))


def test_an_exception_in_a_branch_passes_as_it_is():
    class Own(Exception):
        pass

    def fail():
        raise Own("mine")

    with pytest.raises(Own, match="mine"):
        tagflow.function(lambda p: tagflow.cond(p, fail, lambda: 1))(True)
    with pytest.raises(Own):
        tagflow.function(lambda n: tagflow.while_loop(
            lambda i: i < n, lambda i: fail(), 0))(3)
    with pytest.raises(Own):
        tagflow.function(lambda x: tagflow.map(lambda e: fail(), x))(
            np.ones(3))


@pytest.mark.parametrize("index, expected", [
    (0, 10), (1, 20), (2, 30), (7, 30), (-1, 10)])
def test_switch_clips_its_index(index, expected):
    @tagflow.function
    def f(i, x):
        return tagflow.switch(i, [lambda v: v, lambda v: 2 * v,
                                  lambda v: 3 * v], x)

    assert f(np.int32(index), np.int32(10)) == expected


def test_a_loop_depends_on_data():
    @tagflow.function
    def collatz(n):
        def body(state):
            n, steps = state
            n = tagflow.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1)
            return n, steps + 1

        return tagflow.while_loop(lambda s: s[0] != 1, body, (n, 0))[1]

    assert collatz(np.int64(27)) == 111
    assert collatz(np.int64(1)) == 0


def test_loops_carry_structures():
    @tagflow.function
    def f(n):
        def body(s):
            return State(s.i + 1, Point(s.total.x + s.i, s.total.y))

        return tagflow.while_loop(lambda s: s.i < n, body,
                                  State(0, Point(0, {"k": (1.5, None)})))

    last = f(5)
    assert last == State(5, Point(10, {"k": (1.5, None)}))


def test_shapes_of_a_loop_may_change():
    @tagflow.function
    def grow(n):
        def body(s):
            i, x = s
            return i + 1, tnp.concatenate([x, tnp.reshape(i, (1,))])

        return tagflow.while_loop(lambda s: s[0] < n, body,
                                  (0, tnp.zeros((0,), np.int32)),
                                  shapes=(None, (None,)))[1]

    np.testing.assert_array_equal(grow(4), [0, 1, 2, 3])

    with pytest.raises(tagflow.InvalidArgumentError, match="shape invariant"):
        tagflow.function(lambda x: tagflow.while_loop(
            lambda v: tnp.sum(v) < 9, lambda v: tnp.concatenate([v, v]),
            x))(np.ones(2))


def test_a_loop_has_a_maximum_of_iterations():
    f = tagflow.function(lambda n: tagflow.while_loop(
        lambda i: i >= 0, lambda i: i + 1, 0, maximum_iterations=n))
    assert f(np.int32(7)) == 7


def test_errors_of_loops_name_the_variable():
    with pytest.raises(tagflow.InvalidArgumentError,
                       match=r"\.?total: int32\[\] became float"):
        tagflow.function(lambda n: tagflow.while_loop(
            lambda s: s.i < n, lambda s: State(s.i + 1, s.total * 0.5),
            State(0, 0)))(3)
    with pytest.raises(TypeError, match="the body returns"):
        tagflow.function(lambda n: tagflow.while_loop(
            lambda s: s[0] < n, lambda s: s[0] + 1, (0, 0)))(3)


def test_a_number_of_python_takes_the_type_of_the_variable():
    f = tagflow.function(lambda x: tagflow.while_loop(
        lambda s: s[0] > 1, lambda s: (s[0] / 2, 0), (x, x)))
    assert f(np.float64(8)) == (1, 0)


def test_fori_loop_counts():
    total = tagflow.function(lambda n: tagflow.fori_loop(
        2, n, lambda i, s: s + i, 0))
    assert total(5) == 2 + 3 + 4
    assert total(1) == 0
    wide = tagflow.function(lambda n: tagflow.fori_loop(
        0, n, lambda i, s: s + i, np.int64(0)))
    assert wide(np.int64(4)) == 6


def test_scan_collects():
    @tagflow.function
    def f(xs):
        return tagflow.scan(lambda c, x: (c + x["a"], {"sum": c, "b": x["b"]}),
                            np.float32(0), xs)

    xs = {"a": np.arange(4, dtype=np.float32), "b": np.eye(4)}
    last, ys = f(xs)
    assert last == 6
    np.testing.assert_array_equal(ys["sum"], [0, 0, 1, 3])
    np.testing.assert_array_equal(ys["b"], np.eye(4))


def test_scan_runs_backwards_and_without_elements():
    last, ys = tagflow.function(lambda xs: tagflow.scan(
        lambda c, x: (c + x, c), 0, xs, reverse=True))(
            np.arange(4, dtype=np.int32))
    assert last == 6
    np.testing.assert_array_equal(ys, [6, 5, 3, 0])

    last, ys = tagflow.function(lambda n: tagflow.scan(
        lambda c, _: (2 * c, c), 1, length=n))(np.int32(5))
    assert last == 32
    np.testing.assert_array_equal(ys, [1, 2, 4, 8, 16])

    last, ys = tagflow.function(lambda xs: tagflow.scan(
        lambda c, x: (c, x), 1.5, xs))(np.zeros((0, 3)))
    assert last == 1.5 and ys.shape == (0, 3)


def test_scan_checks_lengths():
    pair = (np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="4 elements, but 3"):
        tagflow.function(lambda xs: tagflow.scan(
            lambda c, x: (c, x), 0, xs))(pair)

    @tagflow.function(input_signature=[tagflow.spec("float64", (None,)),
                                       tagflow.spec("float64", (None,))])
    def unknown(a, b):
        return tagflow.scan(lambda c, x: (c + x[0] * x[1], None),
                            np.float64(0), (a, b))[0]

    assert unknown(np.ones(3), np.ones(3)) == 3
    with pytest.raises(tagflow.InvalidArgumentError, match="differ in length"):
        unknown(*pair)


def test_map_goes_over_structures():
    got = tagflow.function(lambda xs: tagflow.map(
        lambda x: (x[0] * 2, x[1]), xs))((np.arange(3), np.eye(3)))
    np.testing.assert_array_equal(got[0], [0, 2, 4])
    np.testing.assert_array_equal(got[1], np.eye(3))


def test_what_belongs_to_a_branch_stays_there():
    kept = []

    def keep(x):
        kept.append(x)
        return x

    with pytest.raises(tagflow.TracingError, match="outside of the function"):
        @tagflow.function
        def f(x):
            tagflow.cond(x > 0, lambda: keep(x + 1), lambda: x)
            return kept[0] * 2
        f(np.float32(1))

    tagflow.function(lambda x: keep(x))(np.float32(1))
    with pytest.raises(tagflow.TracingError, match="outside of the function"):
        tagflow.function(lambda y: y + kept[-1])(np.float32(1))
    with pytest.raises(tagflow.TracingError):
        kept[-1] + 1
    assert "finished" in repr(kept[-1])


@tagflow.recursive(result=tagflow.spec("int32"))
def fib(n):
    return tagflow.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))


@tagflow.recursive(result=tagflow.spec("bool"))
def is_even(n):
    return tagflow.cond(n == 0, lambda: True, lambda: is_odd(n - 1))


@tagflow.recursive(result=tagflow.spec("bool"))
def is_odd(n):
    return tagflow.cond(n == 0, lambda: False, lambda: is_even(n - 1))


def test_functions_call_themselves():
    assert fib(np.int32(15)) == 610
    f = tagflow.function(lambda n: (fib(n), fib(n + 1)))
    assert f(np.int32(10)) == (55, 89)


def test_functions_call_each_other():
    f = tagflow.function(is_even)
    assert f(np.int32(10)) and not f(np.int32(7))
    assert tagflow.function(lambda n: (is_odd(n), is_even(n)))(
        np.int32(3)) == (True, False)


def test_a_recursion_without_an_end_is_an_error():
    @tagflow.recursive(result=tagflow.spec("int32"))
    def forever(n):
        return tagflow.cond(n < 0, lambda: n, lambda: forever(n + 1))

    with pytest.raises(tagflow.ResourceExhaustedError,
                       match="does the recursion end") as caught:
        forever(np.int32(0))
    assert caught.value.source.startswith(__file__)


def test_recursive_functions_take_structures():
    @tagflow.recursive(result=lambda tree, depth: tree)
    def halves(tree, depth):
        return tagflow.cond(
            depth == 0, lambda: tree,
            lambda: halves({"a": tree["a"] / 2, "b": tree["b"]}, depth - 1))

    got = halves({"a": np.array([8.0, 4.0]), "b": np.int32(1)}, np.int32(2))
    np.testing.assert_array_equal(got["a"], [2, 1])


def test_a_recursive_function_uses_its_arguments_only():
    @tagflow.function
    def f(x):
        @tagflow.recursive(result=tagflow.spec("float32"))
        def g(n):
            return n * x
        return g(x)

    with pytest.raises(tagflow.TracingError, match="can only use its arg"):
        f(np.float32(2))


def test_a_recursive_function_must_return_what_it_declares():
    @tagflow.recursive(result=tagflow.spec("float32"))
    def f(n):
        return n

    with pytest.raises(tagflow.InvalidArgumentError, match="declared as float"):
        f(np.int32(2))

    @tagflow.recursive(result=tagflow.spec("float32"))
    def g(n):
        return n, n

    with pytest.raises(TypeError, match="declared to return"):
        g(np.float32(2))


@pytest.mark.parametrize("use, names", [
    (lambda x: 1 if x > 0 else 2, "tagflow.cond"),
    (lambda x: [i for i in range(x)], "fori_loop"),
    (lambda x: float(x), "astype"),
    (lambda x: np.asarray(x), "tagflow.numpy"),
    (lambda x: x > 0 and x < 1, "tagflow.numpy.where"),
    (lambda x: max(x, 0), "tagflow.cond"),
    (lambda x: 1 in x, "tagflow.numpy.any"),
    (lambda x: f"{x:.2f}", "format"),
    (lambda x: x.__setitem__(0, 1), r"x\.at\[index\]"),
])
def test_what_needs_a_value_says_what_to_use_instead(use, names):
    with pytest.raises(tagflow.TracingError, match=names) as caught:
        tagflow.function(use)(np.int32(3))
    assert __file__ in str(caught.value)


def test_python_loops_are_unrolled():
    @tagflow.function
    def f(x):
        for row in x:
            x = x + row
        return x, len(x)

    x = np.ones((2, 2))
    got, rows = f(x)
    np.testing.assert_array_equal(got, [[3, 3], [3, 3]])
    assert rows == 2


def test_iterations_may_overlap_without_a_change_of_results():
    def f(n):
        return tagflow.while_loop(
            lambda s: s[0] < n,
            lambda s: (s[0] + 1, s[1] + tnp.sum(tnp.sin(s[1]))),
            (0, np.ones(8)), parallel_iterations=n)

    one = tagflow.function(f, static_argnums=0)
    np.testing.assert_array_equal(one(1)[1], one(1)[1])
    assert one(32)[0] == 32
