"""vmap(): the values and derivatives are those of one element after the
other."""

import numpy as np
import pytest

import tagflow
import tagflow.numpy as tnp
from tagflow import nn, random

ROWS = np.random.RandomState(0).randn(4, 3)
MATRICES = np.random.RandomState(1).randn(4, 3, 3)
MATRICES = MATRICES @ MATRICES.transpose(0, 2, 1) + np.eye(3)
SCALARS = ROWS[:, 0]
NUMBERS = np.array([0, 2, 1, 2], np.int32)
WEIGHTS = np.arange(9.0).reshape(3, 3) / 9


@tagflow.recursive(result=lambda x, n: x)
def power(x, n):
    return tagflow.cond(n <= 0, lambda: x * 0 + 1,
                        lambda: x * power(x, n - 1))


tripled = tagflow.custom_gradient(
    tnp.sin, lambda x: (tnp.sin(x), x), lambda x, g: (3 * g * tnp.cos(x),))

# What becomes one op for the batch, or several: without a loop.
AT_ONCE = {
    "elementwise": (lambda x, s: tnp.where(x > 0, tnp.exp(x) * s, -x),
                    ROWS, SCALARS),
    "reductions": (lambda x: tnp.max(x, 0) + tnp.mean(x, (0, 1)) +
                   x.sum(-1, keepdims=True), MATRICES),
    "softmax": (lambda x: nn.softmax(x) + nn.log_softmax(x, 0), MATRICES),
    "index": (lambda x: x[0, 1:] + x[::-1, -1][:2] + x[None, :2, 1][0],
              MATRICES),
    "index of arrays": (lambda x: x[np.array([0, 1]), np.array([2, 1])],
                        MATRICES),
    "index by element": (lambda x, i: x[:, i] + x[i, 0], MATRICES, NUMBERS),
    "set": (lambda x, i: x.at[i].set(7.0).at[1].add(x[0]).at[
        np.array([0, 0])].add(1.0), ROWS, NUMBERS),
    "shapes": (lambda x: tnp.pad(tnp.tile(tnp.reshape(x.T, (-1, 1)), (1, 2)),
                                 1), MATRICES),
    "joined": (lambda x: tnp.concatenate(
        [x, np.ones(2), tnp.stack([x, np.ones(3)], 1)[0]]), ROWS),
    "parts": (lambda x: [a * b for a, b in zip(tnp.split(x, 3), x)], ROWS),
    "orders": (lambda x: tnp.roll(tnp.flip(tnp.cumsum(x)), 1) +
               tnp.sort(x), ROWS),
    "products": (lambda x: (x @ x.T + WEIGHTS @ x + x @ WEIGHTS,
                            x @ np.ones(3), tnp.einsum("ij,kj->i", x, x)),
                 MATRICES),
    "matrices": (lambda x: tnp.linalg.solve(x, np.ones((3, 1))) +
                 tnp.linalg.det(x) + tnp.linalg.cholesky(x), MATRICES),
    "broadcast": (lambda x: tnp.broadcast_to(x, (2, 3)) + tnp.full(
        (2, 1), x[0]), ROWS),
    "take along an axis": (lambda x: tnp.take_along_axis(
        x, tnp.argsort(x, 1), 1), MATRICES),
    "convolution": (lambda x: nn.max_pool(nn.conv(
        x, np.ones((2, 2, 1, 2))), 2), np.arange(4 * 2 * 25.0).reshape(
            4, 2, 5, 5, 1) % 7),
    "cross entropy": (lambda x: nn.sparse_softmax_cross_entropy(
        x, np.array([0, 1, 2])), MATRICES),
    "one for all": (lambda x: (np.ones(2), x * tnp.size(x)), ROWS),
    "cond": (lambda x: tagflow.cond(np.bool_(True), lambda: x * 2,
                                    lambda: np.ones(3)), ROWS),
    "fori_loop": (lambda x: tagflow.fori_loop(
        0, 3, lambda i, s: s * x + i, np.float64(1)), SCALARS),
    "scan": (lambda x: tagflow.scan(lambda c, e: (tnp.tanh(WEIGHTS @ c + e),
                                                  c[0]), np.zeros(3), x),
             MATRICES),
    "map": (lambda x: tagflow.map(lambda e: e * x[0], np.arange(2.0)), ROWS),
    "nested": (lambda x: tagflow.vmap(lambda r: r * x[0, 0], 1, 1)(x),
               MATRICES),
    "custom_gradient": (tripled, ROWS),
}

# What becomes a loop over the elements.
BY_ELEMENT = {
    "cond": (lambda x: tagflow.cond(tnp.sum(x) > 0, lambda: x * 2,
                                    lambda: -x), ROWS),
    "switch": (lambda x, i: tagflow.switch(
        i, [lambda: x * 2, lambda: x ** 2, lambda: np.ones(3)]), ROWS, NUMBERS),
    "while_loop": (lambda x: tagflow.while_loop(
        lambda s: tnp.sum(tnp.abs(s)) < 50, lambda s: s * 1.5 + x, x), ROWS),
    "fori_loop": (lambda x, n: tagflow.fori_loop(
        0, n, lambda i, s: s * x + i, np.float64(1)), SCALARS, NUMBERS),
    "cond in scan": (lambda x: tagflow.scan(lambda c, e: (tagflow.cond(
        e > 0, lambda: c * e, lambda: c + x[1]), c), np.float64(1), x,
        reverse=True), ROWS),
    "recursion": (power, SCALARS, NUMBERS),
    "slices": (lambda x, i: x[i:i + 1], ROWS, NUMBERS),
    "nested while_loop": (lambda x: tagflow.vmap(lambda r: tagflow.while_loop(
        lambda s: tnp.sum(tnp.abs(s)) < 20, lambda s: s * 1.5 + x[0], r))(x),
        MATRICES),
    "an op without a rule": (lambda x: tagflow.ops.L2Loss(x), ROWS),
}


def one_by_one(fn, args):
    """The results of each element, stacked."""
    rows = [fn(*each) for each in zip(*args)]
    return tagflow.tree.map(lambda *leaves: np.stack(leaves), *rows)


def assert_equal(got, wanted):
    got, its = tagflow.tree.flatten(got)
    wanted, structure = tagflow.tree.flatten(wanted)
    assert its == structure
    for a, b in zip(got, wanted):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def loops(function):
    """How many loops there are in what it traced."""
    (trace,) = function._traces.values()
    return sum(node.op == "LoopCond" for node in trace.graph.nodes)


@pytest.mark.parametrize("name", [*AT_ONCE, *(f"{n} by element" for n in
                                              BY_ELEMENT)])
def test_values(name):
    at_once = name in AT_ONCE
    fn, *args = (AT_ONCE[name] if at_once
                 else BY_ELEMENT[name.removesuffix(" by element")])
    one, all_ = tagflow.function(fn), tagflow.vmap(fn)
    assert_equal(all_(*args), one_by_one(one, args))
    if at_once:
        assert loops(all_.function) == loops(one)
    else:
        assert loops(all_.function) > loops(one)


@pytest.mark.parametrize("name", [*AT_ONCE, *(f"{n} by element" for n in
                                              BY_ELEMENT)])
def test_gradients(name):
    fn, *args = (AT_ONCE[name] if name in AT_ONCE
                 else BY_ELEMENT[name.removesuffix(" by element")])

    def loss(*args):
        return sum(tnp.sum(tnp.sin(tnp.asarray(leaf)))
                   for leaf in tagflow.tree.leaves(fn(*args)))

    wanted = one_by_one(tagflow.function(tagflow.grad(loss)), args)
    assert_equal(tagflow.vmap(tagflow.grad(loss))(*args), wanted)
    assert_equal(tagflow.grad(
        lambda *args: tnp.sum(tagflow.vmap(loss)(*args)))(*args), wanted)


def test_gradients_by_what_all_elements_share():
    def loss(w, x):
        return tnp.sum(tnp.tanh(x @ w))

    each = tagflow.vmap(tagflow.grad(loss), (None, 0))(WEIGHTS, ROWS)
    one = tagflow.function(tagflow.grad(loss))
    assert_equal(each, np.stack([one(WEIGHTS, x) for x in ROWS]))

    variable = tagflow.Variable(WEIGHTS)
    assert_equal(tagflow.vmap(lambda x: tagflow.gradients(
        loss(variable.value, x), variable))(ROWS), each)


@pytest.mark.parametrize("derive", [
    lambda f: tagflow.hessian(lambda x: tnp.sum(f(x))),
    tagflow.jacobian,
    lambda f: lambda x: tagflow.jvp(f, (x,), (np.ones(3),)),
    lambda f: lambda x: tagflow.vjp(f, x)[1](np.ones(3))[0],
    lambda f: lambda x: tagflow.hvp(lambda y: tnp.sum(f(y)), (x,), (x,)),
])
def test_other_derivatives(derive):
    derivative = derive(lambda x: tnp.sin(x) * x[0])
    assert_equal(tagflow.vmap(derivative)(ROWS),
                 one_by_one(tagflow.function(derivative), (ROWS,)))


def test_second_derivatives_through_loops_of_different_lengths():
    def root(x):
        return tagflow.while_loop(lambda y: tnp.abs(y * y - x) > 1e-12,
                                  lambda y: 0.5 * (y + x / y), x)

    x = np.array([4.0, 100.0, 1.5])
    second = tagflow.vmap(tagflow.grad(tagflow.grad(root)))(x)
    np.testing.assert_allclose(second, -0.25 * x ** -1.5, rtol=1e-6)


def test_nested_over_all_pairs():
    def pairs(a, b):
        return tagflow.vmap(lambda x: tagflow.vmap(
            lambda y: tagflow.cond(tnp.sum(x) > tnp.sum(y),
                                   lambda: tnp.sum(x * y),
                                   lambda: tnp.sum(x - y)))(b))(a)

    wanted = [[x @ y if x.sum() > y.sum() else (x - y).sum()
               for y in ROWS] for x in ROWS]
    np.testing.assert_allclose(tagflow.function(pairs)(ROWS, ROWS), wanted)


def test_axes():
    add = tagflow.vmap(lambda a, b: a["x"] + b, ({"x": 1}, None), -1)
    assert_equal(add({"x": ROWS}, np.arange(4.0)),
                 (ROWS.T + np.arange(4.0)).T)
    assert tagflow.vmap(lambda: 1.0, axis_size=3)().tolist() == [1, 1, 1]
    both = tagflow.vmap(lambda x, *, k: (x * k, tnp.ones(2)),
                        out_axes=(0, None))(SCALARS, k=SCALARS)
    assert_equal(both, (SCALARS ** 2, np.ones(2, np.float32)))


def test_a_batch_of_unknown_size():
    spec = tagflow.spec("float64", (None, 3))
    f = tagflow.function(input_signature=[spec])(tagflow.vmap(
        lambda x: (tnp.reshape(x, (-1, 1)), tnp.full(2, x[0]),
                   tagflow.cond(x[0] > 0, lambda: x, lambda: x * 2))))
    for count in (4, 1, 0):
        x = ROWS[:count]
        got = f(x)
        assert_equal(got, (x[:, :, None], np.repeat(x[:, :1], 2, 1),
                           np.where(x[:, :1] > 0, x, x * 2)))


def test_random_numbers():
    keys = random.split(random.key(3), 4)
    assert_equal(tagflow.vmap(lambda k: random.normal(k, (2,)))(keys),
                 one_by_one(lambda k: random.normal(k, (2,)), (keys,)))
    drawn = tagflow.vmap(lambda x: x * 0 + tagflow.ops.RandomUniform(
        np.zeros(0, np.int32), dtype="float64"))(SCALARS)
    assert len(set(drawn.tolist())) == 4


def test_the_right_branch_alone_runs():
    def safe(x):
        return tagflow.cond(x > 0, lambda: tnp.log(x), lambda: 0 * x)

    x = np.array([-1.0, 2.0])
    assert_equal(tagflow.vmap(tagflow.grad(safe))(x), np.array([0.0, 0.5]))


def test_rules_are_of_ops_that_exist():
    from tagflow import _batch_rules
    assert set(_batch_rules._rules) <= set(dir(tagflow.ops))


def test_errors():
    with pytest.raises(ValueError, match="4 elements in argument .1., but 3"):
        tagflow.vmap(lambda a, b: a + b)(SCALARS[:3], ROWS)
    with pytest.raises(ValueError, match="no axis 0; in_axes=None"):
        tagflow.vmap(lambda a: a)(1.0)
    with pytest.raises(ValueError, match="give axis_size"):
        tagflow.vmap(lambda a: a, None)(1.0)
    with pytest.raises(ValueError, match="axis for each of 2 arguments"):
        tagflow.vmap(lambda a, b: a, (0,))(SCALARS, SCALARS)
    with pytest.raises(ValueError, match="differs by element"):
        tagflow.vmap(lambda a: a, out_axes=None)(SCALARS)
    variable = tagflow.Variable(0.0)
    with pytest.raises(tagflow.TracingError, match="vmap cannot assign"):
        tagflow.vmap(lambda a: variable.assign(1.0) + a)(SCALARS)
    with pytest.raises(tagflow.TracingError, match="Assert has effects"):
        tagflow.vmap(lambda a: tagflow.ops.Assert(a > 0, [a]))(SCALARS)
    kept = []
    with pytest.raises(tagflow.TracingError, match="vmap.. that it belongs"):
        tagflow.function(lambda a: (tagflow.vmap(kept.append)(a),
                                    kept[0] + 1))(SCALARS)
