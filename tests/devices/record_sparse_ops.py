#!/usr/bin/env python3
"""Records what TensorFlow's CPU kernels make of sparse and ragged tensors.

Usage: record_sparse_ops.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run by CI)

Writes sparse.txt in the form that record_ops.py explains, refused inputs too.
"""

import pathlib
import sys

import tensorflow as tf

from record_array_ops import ints, rare, record, rnd, shape, tensor, vector

NUMBER = ["float32", "float64", "int32", "int64", "complex64"]
# Where TensorFlow has a kernel, and sums in the order of the elements.
REAL = ["float32", "float64", "int32", "int64", "int8", "int16"]


def longs(values, dims=None):
    value = tf.constant(values, tf.int64)
    return value if dims is None else tf.reshape(value, dims)


def places(dims, order=True):
    """Distinct coordinates in a tensor of that shape, sorted or not."""
    count = 1
    for dim in dims:
        count *= dim
    chosen = rnd.sample(range(count), rnd.randint(0, min(count, 6)))
    if order:
        chosen.sort()
    rows = []
    for at in chosen:
        row = []
        for dim in reversed(dims):
            row.insert(0, at % dim)
            at //= dim
        rows.append(row)
    return rows


def sparse(dims, dtype, order=True):
    """Indices, values, shape; now and then of the wrong number."""
    rows = places(dims, order)
    count = len(rows) + rare(0.03)
    return [longs(rows, [len(rows), len(dims)]), tensor([count], dtype),
            longs(dims + [1] * rare(0.03), [-1])]


def sizes(rank=None):
    return [rnd.randint(1, 4) for _ in range(rank or rnd.randint(1, 3))]


def layout():
    dims, dtype = sizes(), rnd.choice(NUMBER + ["string", "bool", "float16"])
    yield "SparseReorder", sparse(dims, dtype, order=rare(0.2)), {}
    count = 1
    for dim in dims:
        count *= dim
    new = rnd.choice([[count], [1, count, 1], dims[::-1], [-1], [-1, dims[0]],
                      [count + 1], [-1, -1], [-2, count], [dims[0], -1]])
    indices, _, of = sparse(dims, dtype)
    yield "SparseReshape", [indices, of, longs(new)], {}
    axis = rnd.randrange(len(dims)) + rare() * 3
    parts = []
    for _ in range(rnd.randint(2, 3)):
        other = list(dims)
        other[axis % len(dims)] = rnd.randint(1, 3)
        if rare():
            other = sizes()
        parts.append(sparse(other, dtype, order=rare(0.5)))
    yield "SparseConcat", [list(part) for part in zip(*parts)], {
        "N": len(parts), "concat_dim": axis - len(dims) * rare(0.3)}
    one = sparse(dims, dtype)
    if len(one[2]) == len(dims):
        start = [rnd.randint(0, dim) for dim in dims]
        size = [rnd.randint(-rare(0.02), 4) for _ in dims]
        yield "SparseSlice", one + [longs(start), longs(size)], {}
    axis = rnd.randrange(len(dims)) + rare()
    yield "SparseSplit", [longs(axis)] + sparse(dims, dtype, rare(0.5)), {
        "num_split": rnd.randint(1, dims[axis % len(dims)] + rare())}
    dtype = rnd.choice(REAL)
    inside = places(dims)
    kept = [row for row in inside if all(at > 0 for at in row)]
    yield "SparseSliceGrad", [
        tensor([len(kept) + rare()], dtype),
        longs(inside, [len(inside), len(dims)]), longs([1] * len(dims)),
        longs([[at - 1 for at in row] for row in kept],
              [len(kept), len(dims)])], {}


def rows():
    dims = [rnd.randint(0, 5)] + sizes(rnd.randint(1, 2))
    dtype = rnd.choice(NUMBER + ["string"])
    result = yield "SparseFillEmptyRows", sparse(dims, dtype, rare(0.5)) + [
        tensor([], dtype)], {}
    if result is not None and dtype != "string":
        yield "SparseFillEmptyRowsGrad", [
            result[3] + rare(0.1), tensor(result[1].shape, dtype)], {}
    yield "SparseSoftmax", sparse(
        sizes(rnd.randint(2, 3) - rare()),
        rnd.choice(["float32", "float64", "float16"])), {}


def sums():
    dims, dtype = sizes(), rnd.choice(NUMBER + ["int8", "int16"])
    a = sparse(dims, dtype)
    b = sparse(dims if not rare() else sizes(), dtype)
    real = dtype if dtype != "complex64" else "float32"
    result = yield "SparseAdd", a + b + [tensor([], real, 0, 3)], {}
    if result is not None and dtype in REAL:
        yield "SparseAddGrad", [tensor([len(result[1])], dtype), a[0], b[0],
                                result[0]], {}
    dtype = rnd.choice(REAL)
    a, b = sparse(dims, dtype), sparse(dims, dtype)
    yield "SparseSparseMaximum", a + b, {}
    yield "SparseSparseMinimum", a + b, {}


def dense():
    dims, dtype = sizes(), rnd.choice(NUMBER + ["string", "bool"])
    kind = rnd.choice(["int32", "int64"])
    indices, values, of = sparse(dims, dtype, order=not rare())
    if len(dims) == 1 and rare(0.5):
        indices = tf.reshape(indices, [-1])
    if rare(0.3):
        values = tensor([], dtype)
    yield "SparseToDense", [tf.cast(indices, kind), tf.cast(of, kind), values,
                            tensor([], dtype)], {
                                "validate_indices": rare(0.5)}
    dtype = rnd.choice(NUMBER)
    indices, values, of = sparse(dims, dtype, order=False)
    yield "SparseTensorDenseAdd", [tf.cast(indices, kind), values,
                                   tf.cast(of, kind),
                                   tensor(dims if not rare() else sizes(),
                                          dtype)], {}
    op = "SparseDenseCwise" + rnd.choice(["Add", "Mul", "Div"])
    other = [rnd.choice([1, dim]) for dim in dims][rnd.randint(0, len(dims)):]
    dtype = rnd.choice(["float32", "float64", "int32", "int64"])
    low = 1 if op.endswith("Div") and "int" in dtype and not rare() else -9
    yield op, sparse(dims, dtype, False) + [
        tensor(other if not rare() else sizes(), dtype, low)], {}


def reductions():
    dims, dtype = sizes(), rnd.choice(REAL)
    rank = len(dims)
    axes = [rnd.randint(-rank, rank - 1 + rare()) for _ in
            range(rnd.randint(0, rank))]
    attrs = {"keep_dims": rare(0.5)}
    one = sparse(dims, dtype) + [vector(axes, "int32")]
    yield "SparseReduceSum", one, attrs
    yield "SparseReduceMax", one, attrs
    yield "SparseReduceSumSparse", one, {"keep_dims": False}
    yield "SparseReduceMaxSparse", one, {"keep_dims": False}


def products():
    dtype = rnd.choice(["float32", "float64", "int32", "complex64", "bfloat16",
                        "complex128", "float16"])
    m, k, n = [rnd.randint(0 if rare(0.1) else 1, 4) for _ in range(3)]
    a, b = rare(0.5), rare(0.5)
    left = sparse([k, m] if a else [m, k], dtype, order=False)
    if rare():
        left[0] = left[0] + rnd.choice([-1, 1])
    left[0] = tf.cast(left[0], rnd.choice(["int32", "int64"]))
    inner = k + rare()
    yield "SparseTensorDenseMatMul", left + [
        tensor([n, inner] if b else [inner, n], dtype)], {
            "adjoint_a": a, "adjoint_b": b}


def ragged():
    dtype = rnd.choice(["float32", "float64", "bfloat16", "int32", "int64"])
    count = rnd.randint(0, 3)

    def operand(low=-9, high=9):
        dims = [] if rare(0.3) else [count + rare(0.03)]
        return tensor(dims, dtype, low, high)

    splits = {"Tsplits": rnd.choice([tf.int32, tf.int64])}
    yield "RaggedRange", [operand(), operand(),
                          operand(1) if rare(0.5) else operand(-3, -1)], splits
    yield "RaggedRange", [operand(), operand(), operand(-1, 1)], splits
    levels = rnd.randint(1, 2)
    nested, rows = [], rnd.randint(0, 4)
    kind = rnd.choice(["int32", "int64"])
    for _ in range(levels):
        split = [0]
        for _ in range(rows):
            split.append(split[-1] + rnd.randint(0, 3))
        rows = split[-1]
        nested.append(vector(split, kind))
    if rare():
        nested[-1] = nested[-1] + 1
    if rare():
        nested[-1] = tf.reverse(nested[-1], [0])
    dtype = rnd.choice(["float32", "int64", "string", "bool", "float16"])
    values = tensor([rows] + [2] * rare(0.4), dtype)
    dims = shape(rnd.randint(0, 2), 3)
    top = len(nested[0]) - 2 + rare()
    if top >= 0 or 0 in dims:
        yield "RaggedGather", [nested, values, ints(dims, -rare(0.02), top)], {
            "PARAMS_RAGGED_RANK": levels,
            "OUTPUT_RAGGED_RANK": levels + len(dims) - 1}


THEMES = [layout, rows, sums, dense, reductions, products, ragged]

if __name__ == "__main__":
    record(pathlib.Path(sys.argv[1]) / "sparse.txt", THEMES, rounds=16)
