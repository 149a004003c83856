"""Derivatives: compared with finite differences, and composed."""

import numpy as np
import pytest

import tagflow
import tagflow.numpy as tnp

RANDOM = np.random.default_rng(3)


def finite(f, x, step=1e-6):
    """The gradient of a function of arrays by central differences."""
    x = np.asarray(x, np.float64)
    out = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        out[i] = (f(high) - f(low)) / (2 * step)
    return out


X = RANDOM.uniform(0.3, 0.9, (3, 4))
A = RANDOM.uniform(0.3, 0.9, (4, 4)) + 3 * np.eye(4)


@tagflow.recursive(result=lambda x, n: x)
def power_of(x, n):
    return tagflow.cond(n < 1, lambda: tnp.ones_like(x),
                        lambda: x * power_of(x, n - 1))


def newton(x):
    """The square root, by as many steps as it takes."""
    return tagflow.while_loop(
        lambda y: tnp.any(tnp.abs(y * y - x) > 1e-13),
        lambda y: 0.5 * (y + x / y), x)


SCALAR = {
    "unary": lambda x: tnp.sum(
        tnp.sin(x) * tnp.exp(x) + tnp.log(x) - tnp.sqrt(x) * tnp.tanh(x)
        + tnp.arcsin(x) + tnp.arctan(x) + tnp.erf(x) + tnp.expm1(x)),
    "broadcasting": lambda x: tnp.sum((x + x[0]) * x[:, :1] / (x[0, 0] + 1)),
    "power": lambda x: tnp.sum(x ** 3 + x ** x + 2.0 ** x),
    "reductions": lambda x: tnp.max(x) * tnp.mean(tnp.prod(x, 1)) + tnp.std(x),
    "cumulative": lambda x: tnp.sum(tnp.cumsum(x, 1) * tnp.cumprod(x, 0)),
    "shapes": lambda x: tnp.sum(tnp.concatenate(
        [x.T, tnp.flip(x, 0).T], 1)[1:, ::2] ** 2) + tnp.sum(
            tnp.roll(x, 1) * tnp.tile(x, 2)[:, 4:] * tnp.pad(x, 1)[1:-1, 2:]),
    "indices": lambda x: tnp.sum(x[[0, 0, 2]] ** 2) + x[1, 2] ** 3 + tnp.sum(
        tnp.take_along_axis(x, np.array([[1], [2], [3]]), 1) ** 2),
    "updates": lambda x: tnp.sum(x.at[0].set(x[1] ** 2) ** 2) + tnp.sum(
        x.at[[0, 0]].add(x[:2]) ** 2) + tnp.sum(
            x.at[:, 1:2].set(x[:, :1]) ** 3),
    "sort": lambda x: tnp.sum(tnp.sort(x, 1) * np.arange(4.0)),
    "where": lambda x: tnp.sum(tnp.where(x > 0.5, x * x, -x)),
    "matmul": lambda x: tnp.sum(tnp.matmul(x, x.T) ** 2) + tnp.sum(
        tnp.einsum("ij,kj->ik", x, x) * tnp.tensordot(x, x, ([1], [1]))),
    "linalg": lambda x: tnp.linalg.det(A * x[0]) + tnp.sum(
        tnp.linalg.inv(A + x[1])) + tnp.sum(
            tnp.linalg.solve(A + x[2], x[0]) ** 2),
    "nn": lambda x: tnp.sum(tagflow.nn.softmax(x) ** 2) + tnp.sum(
        tagflow.nn.log_softmax(x, 0) * x) + tnp.sum(
            tagflow.nn.gelu(x) + tagflow.nn.silu(x) + tagflow.nn.softplus(x)
            + tagflow.nn.elu(-x) + tagflow.nn.layer_norm(x))
    + tagflow.nn.logsumexp(x),
    "losses": lambda x: tnp.sum(
        tagflow.nn.softmax_cross_entropy(x, np.eye(4)[[0, 1, 3]])) + tnp.sum(
            tagflow.nn.sparse_softmax_cross_entropy(x, np.array([0, 3, 1])))
    + tnp.sum(tagflow.nn.sigmoid_cross_entropy(x, x * x)),
    "conv": lambda x: tnp.sum(tagflow.nn.max_pool(tagflow.nn.conv(
        tnp.reshape(x, (1, 3, 4, 1)), tnp.reshape(x[:2, :2], (2, 2, 1, 1))),
        2, 1) ** 2),
    "cond": lambda x: tagflow.cond(
        tnp.sum(x) > 0, lambda: tnp.sum(x ** 2), lambda: tnp.sum(x)),
    "switch": lambda x: tagflow.switch(
        1, [lambda v: tnp.sum(v), lambda v: tnp.sum(v ** 3)], x),
    "while": lambda x: tnp.sum(newton(x)),
    "fori": lambda x: tnp.sum(tagflow.fori_loop(
        0, 4, lambda i, y: tnp.sin(y) * x, x)),
    "scan": lambda x: tnp.sum(tagflow.scan(
        lambda c, row: (c * row, c + row), x[0], x)[1] ** 2),
    "map": lambda x: tnp.sum(tagflow.map(lambda row: tnp.sum(row) * row, x)),
    "nested": lambda x: tnp.sum(tagflow.fori_loop(
        0, 3, lambda i, y: tagflow.cond(
            i % 2 == 0, lambda: tagflow.fori_loop(
                0, 2, lambda j, z: z * x, y), lambda: y + x), x)),
    "recursion": lambda x: tnp.sum(power_of(x, np.int32(3))),
    "saved": lambda x: tnp.sum(tagflow.while_loop(
        lambda s: s[0] < 5, lambda s: (s[0] + 1, tnp.sin(s[1]) * x), (0, x),
        save="log")[1]),
    "gradient in a loop": lambda x: tnp.sum(tagflow.fori_loop(
        0, 3, lambda i, y: y - 0.1 * tagflow.grad(
            lambda z: tnp.sum(z ** 4))(y), x)),
}


@pytest.mark.parametrize("name", SCALAR)
def test_gradients_are_those_of_finite_differences(name):
    f = SCALAR[name]
    value, gradient = tagflow.value_and_grad(f)(X)
    plain = tagflow.function(f)
    np.testing.assert_allclose(value, plain(X), rtol=1e-12)
    np.testing.assert_allclose(gradient, finite(plain, X), rtol=2e-5,
                               atol=2e-6)


@pytest.mark.parametrize("name", SCALAR)
def test_second_derivatives_are_those_of_finite_differences(name):
    if name in ("linalg", "losses", "conv"):
        pytest.skip("takes long, and the rules are compared elsewhere")
    v = RANDOM.uniform(-1, 1, X.shape)
    slope = tagflow.function(
        lambda x: tnp.sum(tagflow.grad(SCALAR[name])(x) * v))
    second = tagflow.grad(
        lambda x: tnp.sum(tagflow.grad(SCALAR[name])(x) * v))(X)
    np.testing.assert_allclose(second, finite(slope, X), rtol=1e-4, atol=1e-5)
    # Forward over reverse mode gives the same.
    np.testing.assert_allclose(
        tagflow.hvp(SCALAR[name], (X,), (v,)), second, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", SCALAR)
def test_forward_mode_agrees_with_reverse_mode(name):
    v = RANDOM.uniform(-1, 1, X.shape)
    value, along = tagflow.jvp(SCALAR[name], (X,), (v,))
    assert value == tagflow.function(SCALAR[name])(X)
    np.testing.assert_allclose(
        along, np.sum(tagflow.grad(SCALAR[name])(X) * v), rtol=1e-9)


def test_gradients_by_structures_and_several_arguments():
    def f(params, x, scale):
        return tnp.sum(params["w"] * x + params["b"]) * scale

    params = {"w": np.array([1.0, 2.0]), "b": np.float64(3)}
    x = np.array([5.0, 7.0])
    got = tagflow.grad(f)(params, x, 2.0)
    np.testing.assert_allclose(got["w"], 2 * x)
    assert got["b"] == 4
    by_all = tagflow.grad(f, argnums=(0, 2))(params, x, 2.0)
    assert by_all[1] == 25 and by_all[0]["b"] == 4
    assert tagflow.grad(f, argnums=-1)(params, x, 2.0) == 25


def test_has_aux_hands_on_the_second_result():
    f = tagflow.value_and_grad(lambda x: (x * x, {"twice": 2 * x}),
                               has_aux=True)
    (value, aux), slope = f(np.float64(3))
    assert value == 9 and aux["twice"] == 6 and slope == 6
    slope, aux = tagflow.grad(lambda x: (x * x, 2 * x), has_aux=True)(3.0)
    assert slope == 6 and aux == 6


def test_transformations_compose():
    f = tagflow.function(lambda x: x ** 4)
    fourth = tagflow.grad(tagflow.grad(tagflow.grad(tagflow.grad(f))))
    assert fourth(np.float64(1)) == 24
    traced = tagflow.function(tagflow.grad(tagflow.function(tagflow.grad(f))))
    assert traced(np.float64(2)) == 48
    along = tagflow.grad(lambda x: tagflow.jvp(f, (x,), (np.float64(1),))[1])
    assert along(np.float64(2)) == 48


def test_a_loop_whose_trips_depend_on_data_twice():
    def f(x):  # x^(2^k), with k the trips
        return tagflow.while_loop(lambda y: y < 100.0, lambda y: y * y, x)

    x = np.float64(3)  # 3, 9, 81, 6561: x^8
    assert f(x) == 3 ** 8
    assert tagflow.grad(f)(x) == 8 * 3 ** 7
    assert tagflow.grad(tagflow.grad(f))(x) == 56 * 3 ** 6


def test_jacobians_and_hessians():
    def f(x):
        return {"square": x ** 2, "sum": tnp.sum(x)}

    x = np.array([1.0, 2.0, 3.0])
    got = tagflow.jacobian(f)(x)
    np.testing.assert_allclose(got["square"], np.diag(2 * x))
    np.testing.assert_allclose(got["sum"], np.ones(3))
    second = tagflow.hessian(lambda x, y: tnp.sum(x ** 3) * y, (0, 1))(x, 2.0)
    np.testing.assert_allclose(second[0][0], np.diag(12 * x))
    np.testing.assert_allclose(second[0][1], 3 * x ** 2)
    np.testing.assert_allclose(second[1][1], 0)


def test_vjp_pulls_cotangents_back():
    def f(x, y):
        return x @ y, tnp.sum(x)

    x, y = RANDOM.uniform(size=(2, 3)), RANDOM.uniform(size=(3, 2))
    seed = (RANDOM.uniform(size=(2, 2)), 2.0)
    (product, total), pull = tagflow.vjp(f, x, y)
    np.testing.assert_allclose(product, x @ y)
    dx, dy = pull(seed)
    np.testing.assert_allclose(dx, seed[0] @ y.T + 2)
    np.testing.assert_allclose(dy, x.T @ seed[0])

    @tagflow.function
    def inside(x, y, seed):
        return tagflow.vjp(f, x, y)[1](seed)

    np.testing.assert_allclose(inside(x, y, seed)[1], dy)


def test_what_does_not_depend_on_the_argument_has_the_gradient_zero():
    np.testing.assert_array_equal(
        tagflow.grad(lambda x: tnp.sum(np.ones(3)))(X), np.zeros_like(X))
    captured = tagflow.grad(lambda x: tagflow.grad(lambda y: y * x)(x))
    assert captured(np.float64(5)) == 1


def test_stop_gradient_is_a_constant():
    f = tagflow.grad(lambda x: x * tagflow.stop_gradient(x))
    assert f(np.float64(3)) == 3
    assert tagflow.stop_gradient({"a": np.float32(1)}) == {"a": 1}


def test_a_gradient_of_ones_own():
    clipped = tagflow.custom_gradient(
        lambda x, y: x * y, lambda x, y: (x * y, (x, y)),
        lambda rest, g: (tnp.clip(g * rest[1], -1, 1), g * rest[0] * 10))
    by_x, by_y = tagflow.grad(lambda x, y: clipped(x, y) * 3,
                              argnums=(0, 1))(np.float64(2), np.float64(5))
    assert by_x == 1 and by_y == 60
    assert clipped(np.float64(2), np.float64(5)) == 10


def test_what_has_no_derivative_is_refused():
    with pytest.raises(TypeError, match="int32, which has no derivative"):
        tagflow.grad(lambda x: x * x)(np.int32(2))
    with pytest.raises(TypeError, match="not a scalar"):
        tagflow.grad(lambda x: x * x)(X)
    with pytest.raises(TypeError, match="has no derivative"):
        tagflow.grad(lambda x: tnp.argmax(x))(X)
    with pytest.raises(TypeError, match="argnums has 2"):
        tagflow.grad(lambda x: x, argnums=2)(1.0)


def test_complex_numbers_have_the_gradient_of_tensorflow():
    z = np.complex128(1 + 2j)
    slope = tagflow.grad(lambda z: tnp.real(z * z))(z)
    assert np.isclose(slope, np.conj(2 * z))


MATRIX = np.random.RandomState(0).randn(4, 4)


@pytest.mark.parametrize("fn, primals, cotangent", [
    (lambda x: tnp.sin(x) @ x, (MATRIX,), MATRIX),
    (lambda x, y: (x * y, {"a": y}), (1.0, 2.0), (1.0, {"a": 2.0})),
    (lambda p: tnp.tanh(p["w"] @ p["b"]),
     ({"w": MATRIX, "b": MATRIX[0]},), MATRIX[1]),
    (lambda x: tagflow.cond(tnp.sum(x) > 0, lambda: tnp.exp(x) * x,
                            lambda: tnp.sin(x)), (MATRIX,), MATRIX),
    (lambda x: tagflow.while_loop(lambda s: tnp.sum(s * s) < 1000, lambda s:
                                  tnp.sin(s) + s * 1.4, tnp.exp(x)) * x,
     (MATRIX,), MATRIX),
    (lambda x: tagflow.scan(lambda c, e: (c * e + 1, c), np.ones(4),
                            tnp.tanh(x)), (MATRIX,), (MATRIX[0], MATRIX)),
    (lambda x: tagflow.map(lambda e: tagflow.cond(
        e[0] > 0, lambda: e * 2, lambda: e * e), tnp.exp(x) - 1),
     (MATRIX,), MATRIX),
    (lambda x: (tnp.argmax(x), tnp.max(x)), (MATRIX,),
     (np.int32(0), np.float64(2))),
])
def test_the_two_parts_of_a_vjp_are_those_of_one_graph(fn, primals, cotangent):
    value, back = tagflow.vjp(fn, *primals)

    def at_once(primals, cotangent):
        value, back = tagflow.vjp(fn, *primals)
        return value, back(cotangent)

    wanted, structure = tagflow.tree.flatten(
        tagflow.function(at_once)(primals, cotangent))
    for _ in range(2):
        got, its = tagflow.tree.flatten((value, back(cotangent)))
        assert its == structure
        for a, b in zip(got, wanted):
            np.testing.assert_allclose(a, b)
            assert a.dtype == b.dtype


def test_the_second_part_of_a_vjp_takes_what_the_first_one_had():
    scale, calls = tagflow.Variable(2.0), tagflow.Variable(0)

    def fn(x):
        calls.assign_add(1)
        return scale.value * x * x

    x = np.array([3.0, 4.0])
    value, back = tagflow.vjp(fn, x)
    scale.assign(100.0)
    x[:] = 0
    assert value.tolist() == [18, 32]
    assert back(np.ones(2))[0].tolist() == [12, 16]
    assert calls.numpy() == 1
    with pytest.raises(TypeError, match="cotangent is"):
        back((1.0, 2.0))
    with pytest.raises(tagflow.InvalidArgumentError, match="made at .*grad"):
        back(np.ones(3))
