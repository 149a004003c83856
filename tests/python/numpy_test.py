"""Each function of tagflow.numpy gives what NumPy gives: traced, and at
once."""

import numpy as np
import pytest

import tagflow
import tagflow.numpy as tnp

RANDOM = np.random.default_rng(7)


def floats(*shape, low=-2.0, high=2.0, dtype=np.float64):
    return RANDOM.uniform(low, high, shape).astype(dtype)


def ints(*shape, low=-9, high=9, dtype=np.int32):
    return RANDOM.integers(low, high, shape).astype(dtype)


X, Y, ROW = floats(3, 4), floats(3, 4), floats(4)
UNIT = floats(3, 4, low=-0.9, high=0.9)
ABOVE = floats(3, 4, low=1.1, high=3.0)
N, M = ints(3, 4), ints(3, 4, low=1)
B, C = N > 0, M > 4
CUBE = floats(2, 3, 4)
SQUARE = floats(4, 4) + 4 * np.eye(4)
SYMMETRIC = SQUARE @ SQUARE.T
COMPLEX = floats(3, 4) + 1j * floats(3, 4)
WITH_NAN = np.where(B, np.nan, X)

# The name, and the arguments, which NumPy's function of that name takes.
SAME = [
    *[(name, (X,)) for name in
      "exp expm1 sin cos tan arctan sinh cosh tanh arcsinh square abs negative "
      "floor ceil rint sign trunc exp2 cbrt deg2rad rad2deg sinc reciprocal "
      "positive fabs round isnan isinf isfinite sort argsort transpose ravel "
      "zeros_like ones_like unique fliplr flipud sum mean prod max min std var "
      "ptp any all argmax argmin cumsum cumprod nonzero ndim shape size "
      "diagonal count_nonzero flip median diff argwhere trapezoid cov corrcoef "
      "matrix_transpose permute_dims".split()],
    ("diff", (N, 2, 0)), ("diff", (B,)), ("trapezoid", (X, ROW)),
    ("trapezoid", (X, Y, 1.0, 0)), ("cov", (ROW,)),
    *[("quantile", (X, q, axis)) for q in (0.25, np.array([0.0, 0.6, 1.0]))
      for axis in (None, 0, 1)], ("percentile", (X, 30.0)),
    ("interp", (ROW, np.array([-1.0, 0.0, 2.0]), np.array([3.0, 1.0, 5.0]))),
    ("polyval", (ROW, X)), ("vander", (ROW, 3)), ("vander", (ROW,)),
    ("nanmax", (WITH_NAN,)), ("nanmin", (WITH_NAN, 1)),
    ("heaviside", (np.array([-1.0, 0.0, 2.0]), 0.5)),
    ("float_power", (M, 2)), ("allclose", (X, X + 1e-9)),
    ("array_equal", (X, X)), ("array_equal", (X, ROW)),
    ("array_split", (ROW, 3)), ("array_split", (X, [1, 2])),
    ("dstack", ([X, Y],)), ("dstack", ([ROW, ROW],)),
    *[(name, (ABOVE,)) for name in
      "log log1p log2 log10 sqrt arccosh".split()],
    *[(name, (UNIT,)) for name in "arcsin arccos arctanh".split()],
    *[(name, (X, Y)) for name in
      "add subtract multiply divide true_divide maximum minimum arctan2 hypot "
      "logaddexp less less_equal greater greater_equal equal not_equal mod "
      "floor_divide fmod remainder isclose".split()],
    *[(name, (X, ROW)) for name in "add maximum greater".split()],
    *[(name, (N, M)) for name in
      "add subtract multiply divide floor_divide mod fmod remainder maximum "
      "bitwise_and bitwise_or bitwise_xor less equal".split()],
    *[(name, (B, C)) for name in
      "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor "
      "add multiply maximum minimum equal less".split()],
    ("invert", (N,)), ("invert", (B,)), ("logical_not", (B,)),
    ("left_shift", (M, 2)), ("right_shift", (M, 1)),
    ("power", (ABOVE, X)), ("power", (X, 2)), ("power", (X, 3)),
    ("power", (N, 2)), ("clip", (X, -0.5, 0.5)), ("clip", (N, -3, 3)),
    ("nan_to_num", (WITH_NAN,)), ("nansum", (WITH_NAN,)),
    ("nanmean", (WITH_NAN,)), ("nansum", (WITH_NAN, 1)),
    ("real", (COMPLEX,)), ("imag", (COMPLEX,)), ("conj", (COMPLEX,)),
    ("abs", (COMPLEX,)), ("angle", (COMPLEX,)), ("exp", (COMPLEX,)),
    ("angle", (X,)), ("imag", (X,)),
    ("where", (B, X, Y)), ("where", (B, X, 0.0)), ("where", (B,)),
    ("sum", (X, 0)), ("sum", (CUBE, (0, 2))), ("sum", (B,)), ("mean", (N,)),
    ("max", (CUBE, -1)), ("min", (N, 1)), ("prod", (X, 1)), ("std", (X, 0)),
    ("all", (B, 0)), ("any", (B, 1)), ("argmax", (X, 1)), ("argmin", (X, 0)),
    ("max", (B, 0)), ("argmax", (B, 1)), ("sort", (X, 0)), ("sort", (N,)),
    ("sort", (X, None)), ("argsort", (N, 1)), ("sort", (B,)),
    ("cumsum", (X, 1)), ("cumprod", (CUBE, 1)), ("median", (X, 1)),
    ("average", (X, 1)), ("average", (X, 1, ABOVE)), ("ptp", (N, 0)),
    ("matmul", (X, Y.T)), ("matmul", (CUBE, Y.T)), ("matmul", (ROW, ROW)),
    ("matmul", (X, ROW)), ("matmul", (ROW, X.T)), ("matmul", (N, M.T)),
    ("dot", (X, Y.T)), ("dot", (ROW, ROW)), ("dot", (X, ROW)), ("dot", (X, 2)),
    ("dot", (CUBE, SQUARE)), ("inner", (X, Y)), ("outer", (ROW, ROW)),
    ("vdot", (X, Y)), ("vdot", (COMPLEX, COMPLEX)),
    ("kron", (X, Y)), ("tensordot", (X, Y)),
    ("tensordot", (CUBE, Y, ([2], [1]))), ("tensordot", (CUBE, X, 0)),
    ("cross", (floats(5, 3), floats(5, 3))),
    ("einsum", ("ij,kj->ik", X, Y)), ("einsum", ("ij->j", X)),
    ("einsum", ("ij,jk,kl->il", X, Y.T, X)), ("einsum", ("ii->i", SQUARE)),
    ("einsum", ("ij,ij", X, Y)), ("einsum", ("...j,j->...", CUBE, ROW)),
    ("reshape", (X, (2, -1))), ("reshape", (X, -1)),
    ("transpose", (CUBE, (1, 2, 0))), ("moveaxis", (CUBE, 0, 2)),
    ("moveaxis", (CUBE, 2, 0)), ("swapaxes", (CUBE, 0, 2)),
    ("expand_dims", (X, 1)), ("expand_dims", (X, (0, -1))),
    ("squeeze", (X[:, :1],)), ("squeeze", (X[None, :, :1], 0)),
    ("broadcast_to", (ROW, (3, 4))), ("concatenate", ([X, Y],)),
    ("concatenate", ([X, Y], 1)), ("concatenate", ([X, Y], None)),
    ("stack", ([X, Y],)), ("stack", ([X, Y], -1)), ("vstack", ([X, ROW],)),
    ("hstack", ([X, Y],)), ("hstack", ([ROW, ROW],)),
    ("column_stack", ([ROW, ROW],)), ("append", (X, Y)), ("append", (X, Y, 0)),
    ("split", (X, 2, 1)), ("split", (X, [1, 3], 1)), ("split", (ROW, [-1])),
    ("tile", (X, 2)), ("tile", (X, (2, 1, 2))), ("repeat", (X, 2)),
    ("repeat", (X, 2, 0)), ("flip", (CUBE, 1)), ("flip", (CUBE, (0, 2))),
    ("roll", (X, 2)), ("roll", (X, -1, 1)), ("roll", (X, (1, 2), (0, 1))),
    ("rot90", (X,)), ("rot90", (X, 3)), ("rot90", (X, 2)),
    ("pad", (X, 1)), ("pad", (X, ((0, 1), (2, 0)))), ("pad", (X, 1, "reflect")),
    ("pad", (X, 1, "symmetric")), ("tril", (X,)), ("triu", (X, 1)),
    ("tril", (CUBE, -1)), ("diag", (ROW,)), ("diag", (X,)),
    ("trace", (SQUARE,)), ("meshgrid", (ROW, ROW[:2])),
    ("atleast_1d", (np.float64(2),)), ("atleast_2d", (ROW,)),
    ("take", (X, [0, 2, 1])), ("take", (X, np.array([0, -1]), 1)),
    ("take", (X, np.array([[0, 2], [1, 1]]), 0)),
    ("take_along_axis", (X, np.argsort(X, 0), 0)),
    ("take_along_axis", (CUBE, np.argsort(CUBE, -1), -1)),
    ("select", ([X > 1, X < -1], [X, -X], 0.5)), ("choose", (
        np.array([[0, 1, 0, 1]] * 3), [X, Y])),
    ("compress", (np.array([True, False, True]), X, 0)), ("extract", (B, X)),
    ("unique", (N,)), ("isin", (N, np.array([1, 2, 3], np.int32))),
    ("flatnonzero", (N,)), ("searchsorted", (np.sort(ROW), X)),
    ("searchsorted", (np.arange(5), np.arange(5), "right")),
    ("digitize", (X, np.array([-1.0, 0.0, 1.0]))),
    ("full_like", (X, 3.0)), ("full_like", (N, 3)),
]
LINALG = [
    ("inv", (SQUARE,)), ("det", (SQUARE,)), ("slogdet", (SQUARE,)),
    ("cholesky", (SYMMETRIC,)), ("solve", (SQUARE, SYMMETRIC)),
    ("solve", (SQUARE, ROW)), ("norm", (X,)), ("norm", (X, None, 1)),
    ("norm", (ROW, 1)), ("norm", (ROW, np.inf)), ("eigvalsh", (SYMMETRIC,)),
    ("matrix_power", (SQUARE, 3)), ("matrix_power", (SQUARE, -1)),
    ("matrix_power", (SQUARE, 0)),
]


def compare(got, expected):
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for g, e in zip(got, expected):
            compare(g, e)
        return
    expected = np.asarray(expected)
    got = np.asarray(got)
    assert got.shape == expected.shape
    # int64 of NumPy's defaults may be int32 here, and float64 float32.
    assert got.dtype.kind in (expected.dtype.kind, "i") or (
        expected.dtype.kind == "u")
    loose = got.dtype.itemsize < expected.dtype.itemsize
    np.testing.assert_allclose(got, expected, rtol=1e-5 if loose else 1e-9,
                               atol=1e-6 if loose else 1e-12)


def is_array(value):
    return isinstance(value, np.ndarray) and value.size > 0


def traced(function, args):
    """The function with its arrays as arguments of a trace."""
    flat, structure = tagflow.tree.flatten(list(args))
    arrays = [v for v in flat if is_array(v)]

    @tagflow.function
    def call(*values):
        rest = iter(values)
        filled = [next(rest) if is_array(v) else v for v in flat]
        return function(*tagflow.tree.unflatten(structure, filled))

    return call(*arrays)


def names(cases):
    return [f"{i}-{name}" for i, (name, _) in enumerate(cases)]


@pytest.mark.parametrize("name, args", SAME, ids=names(SAME))
def test_gives_what_numpy_gives(name, args):
    expected = getattr(np, name)(*args)
    compare(traced(getattr(tnp, name), args), expected)


@pytest.mark.parametrize("name, args", SAME[::7], ids=names(SAME[::7]))
def test_computes_at_once_outside_of_a_trace(name, args):
    compare(getattr(tnp, name)(*args), getattr(np, name)(*args))


@pytest.mark.parametrize("name, args", LINALG, ids=names(LINALG))
def test_linear_algebra_gives_what_numpy_gives(name, args):
    compare(traced(getattr(tnp.linalg, name), args),
            getattr(np.linalg, name)(*args))


def test_decompositions_multiply_back():
    u, s, vt = tnp.linalg.svd(X)
    np.testing.assert_allclose((u * s) @ vt, X, atol=1e-9)
    q, r = tnp.linalg.qr(SQUARE)
    np.testing.assert_allclose(q @ r, SQUARE, atol=1e-9)
    values, vectors = tnp.linalg.eigh(SYMMETRIC)
    np.testing.assert_allclose((vectors * values) @ vectors.T, SYMMETRIC,
                               atol=1e-9)
    np.testing.assert_allclose(tnp.linalg.pinv(X), np.linalg.pinv(X))
    np.testing.assert_allclose(tnp.linalg.lstsq(X.T, ROW),
                               np.linalg.lstsq(X.T, ROW, rcond=None)[0])
    low = np.outer(ROW, ROW)
    assert tnp.linalg.matrix_rank(low) == 1
    assert tnp.linalg.matrix_rank(np.stack([low, SQUARE])).tolist() == [1, 4]
    np.testing.assert_allclose(tnp.linalg.pinv(low), np.linalg.pinv(low))
    lower = np.linalg.cholesky(SYMMETRIC)
    np.testing.assert_allclose(tnp.linalg.triangular_solve(lower, ROW),
                               np.linalg.solve(lower, ROW), atol=1e-9)


CREATED = [
    ("arange", (5,)), ("arange", (2, 9, 3)), ("arange", (0.0, 1.0, 0.25)),
    ("linspace", (0, 1, 5)), ("linspace", (0.0, 1.0, 4, False)),
    ("logspace", (0, 2, 3)), ("geomspace", (1.0, 8.0, 4)), ("eye", (3,)),
    ("eye", (2, 3, 1)), ("identity", (2,)), ("tri", (3,)), ("zeros", ((2, 3),)),
    ("ones", (4,)), ("full", ((2,), 7.0)), ("asarray", ([1.5, 2.5],)),
    ("array", ([[1, 2], [3, 4]],)),
]


@pytest.mark.parametrize("name, args", CREATED, ids=names(CREATED))
def test_makes_the_arrays_that_numpy_makes(name, args):
    got = tagflow.function(lambda: getattr(tnp, name)(*args))()
    compare(got, getattr(np, name)(*args))
    assert got.dtype in (np.int32, np.float32)


def test_dimensions_may_be_tensors():
    @tagflow.function(input_signature=[tagflow.spec("float32", (None, 3))])
    def shapes(x):
        rows = tnp.shape(x)[0]
        return (tnp.zeros((rows, 2)), tnp.arange(rows),
                tnp.reshape(x, (3, rows)), tnp.size(x), tnp.mean(x, 0),
                x[rows - 1], tnp.broadcast_to(tnp.ones(3), (rows, 3)))

    for n in (1, 4):
        x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        zeros, steps, turned, size, mean, last, ones = shapes(x)
        assert zeros.shape == (n, 2) and size == 3 * n
        np.testing.assert_array_equal(steps, np.arange(n))
        np.testing.assert_array_equal(turned, x.reshape(3, n))
        np.testing.assert_allclose(mean, x.mean(0))
        np.testing.assert_array_equal(last, x[-1])
        assert ones.sum() == 3 * n
    assert len(shapes._traces) == 1


@pytest.mark.parametrize("a, b, expected", [
    ("int32", "int64", "int64"), ("int64", "float32", "float32"),
    ("bool", "int8", "int8"), ("float16", "float32", "float32"),
    ("float32", "float64", "float64"), ("uint8", "int8", "int16"),
    ("float64", "complex64", "complex128"), ("int32", "complex64", "complex64"),
    ("bfloat16", "float16", "float32"), ("bfloat16", "int32", "bfloat16"),
    ("float32", 2, "float32"), ("float64", 0.5, "float64"),
    ("int32", 0.5, "float32"), ("int64", 2, "int64"), ("bool", 2, "int32"),
    ("float16", 0.5, "float16"), ("float32", 1j, "complex64"),
    ("float64", 1j, "complex128"),
])
def test_types_are_promoted_as_stated(a, b, expected):
    from tagflow.numpy._types import to_dtype
    x = np.ones(2, to_dtype(a))
    y = b if not isinstance(b, str) else np.ones(2, to_dtype(b))
    for result in (tagflow.function(lambda u: u * y)(x),
                   tagflow.function(lambda u: y * u)(x)):
        assert result.dtype == to_dtype(expected)


INDICES = [
    0, -1, np.s_[1:], np.s_[::2], np.s_[::-1], np.s_[:, 1], np.s_[..., 0],
    np.s_[None], np.s_[:, None, 1:3], np.s_[0, 1], np.s_[-2:, ::-2],
    np.s_[..., None], np.s_[[2, 0]], np.s_[:, [0, -1]],
    np.s_[np.array([[0, 1], [2, 2]])], np.s_[[0, 1], [1, 3]],
    np.s_[[[0], [2]], [1, 3]], np.s_[1:, [0, 1]], np.s_[:, :, None][:2],
    np.s_[X > 0], np.s_[np.array([True, False, True])], np.s_[()], np.s_[...],
]


@pytest.mark.parametrize("index", INDICES, ids=[str(i) for i in range(
    len(INDICES))])
def test_indices_mean_what_they_mean_in_numpy(index):
    compare(tagflow.function(lambda x: x[index])(X), X[index])


def test_adjacent_arrays_may_follow_whole_axes():
    rows, columns = np.array([0, 2]), np.array([3, 1])
    compare(tagflow.function(lambda x: x[:, rows, columns])(CUBE),
            CUBE[:, rows, columns])


def test_indices_may_be_tensors():
    @tagflow.function
    def pick(x, i, n):
        return x[i], x[:n], x[i, 1], x[:, i:i + 2]

    one, some, element, columns = pick(X, np.int32(1), np.int32(2))
    compare((one, some, element, columns), (X[1], X[:2], X[1, 1], X[:, 1:3]))


@pytest.mark.parametrize("index", [
    0, np.s_[1:], np.s_[:, 1], np.s_[0, 2], np.s_[::2, ::-1], np.s_[[0, 2]],
    np.s_[[0, 1], [3, 2]], np.s_[X > 0], np.s_[..., -1], np.s_[:]])
@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max"])
def test_copies_have_other_elements_at_an_index(index, how):
    expected = X.copy()
    if how == "set":
        expected[index] = 0.25
    elif how == "add":
        expected[index] += 0.25
    elif how == "multiply":
        expected[index] *= 0.25
    else:
        expected[index] = getattr(np, how + "imum")(expected[index], 0.25)
    if how == "multiply" and isinstance(index, list):
        pytest.skip("needs a slice")
    if how == "multiply" and isinstance(index, tuple) and isinstance(
            index[0], list):
        pytest.skip("needs a slice")
    got = tagflow.function(lambda x: getattr(x.at[index], how)(0.25))(X)
    compare(got, expected)


def test_an_index_that_is_out_of_range_is_an_error():
    with pytest.raises(IndexError, match="index 3 of axis 0"):
        tagflow.function(lambda x: x[3])(X)
    with pytest.raises(IndexError, match="3 indices"):
        tagflow.function(lambda x: x[0, 0, 0])(X)
    with pytest.raises(tagflow.Error):
        tagflow.function(lambda x, i: x[i])(X, np.int32(9))


def test_the_rows_of_a_covariance_may_be_columns():
    compare(tnp.cov(X, False), np.cov(X, rowvar=False))
    compare(tnp.quantile(X, 0.3, 1, keepdims=True),
            np.quantile(X, 0.3, 1, keepdims=True))


def test_numpy_functions_take_symbolic_tensors():
    @tagflow.function
    def mixed(x):
        return np.sin(x) + np.concatenate([x, x])[:3] + np.add(1.0, x)

    compare(mixed(X), np.sin(X) + X + (1 + X))
    with pytest.raises(tagflow.TracingError, match="numpy.fft"):
        tagflow.function(lambda x: np.fft.fft(x))(X)


def test_arrays_on_the_left_of_an_operator_are_constants():
    got = tagflow.function(lambda x: (X + x, X @ x.T, X > x, 2 - x))(Y)
    compare(got, (X + Y, X @ Y.T, X > Y, 2 - Y))
