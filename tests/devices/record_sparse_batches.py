#!/usr/bin/env python3
"""Records what TensorFlow makes of sparse tensors as strings, and of batches.

Usage: record_sparse_batches.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run
by CI)

Writes sparse_batches.txt in the form that record_ops.py explains, refused
inputs too.
"""

import pathlib
import sys

import tensorflow as tf

from record_array_ops import rare, record, rnd
from record_sparse_ops import longs, sizes, sparse

TYPES = ["float32", "float64", "int32", "int64", "complex64", "string", "bool",
         "float16"]


def strings():
    dims, dtype = sizes(), rnd.choice(TYPES)
    yield "SerializeSparse", sparse(dims, dtype, order=rare(0.5)), {}
    yield "SerializeManySparse", sparse(dims, dtype), {}


def batches():
    dims, dtype = sizes(), rnd.choice(TYPES)
    count, rows = rnd.randint(0 if rare() else 1, 4), []
    for _ in range(count):
        other = [max(1, dim + rnd.randint(-1, 1)) for dim in dims]
        if rare():
            other.append(1)
        row = yield "SerializeSparse", sparse(other, dtype), {}
        if row is None:
            return
        rows.append(row[0])
    wanted = {"dtype": tf.as_dtype(dtype if not rare() else "uint8")}
    if count > 0:
        yield "DeserializeSparse", [rows[0]], wanted
    matrix = tf.stack(rows) if rows else tf.fill([0, 3], "")
    if rare():
        matrix = matrix[:, :2]
    if rare():
        matrix = tf.strings.substr(matrix, 0, 5)
    yield "DeserializeManySparse", [matrix], wanted
    yield "DeserializeSparse", [matrix], wanted
    if count == 4:
        yield "DeserializeSparse", [tf.reshape(matrix, [2, 2, -1])], wanted
    if count > 0:
        order = [[0, 2, 1], [1, 0, 2], [2, 1, 0]][rnd.randrange(3)]
        if rare(0.2) and matrix.shape[1] == 3:
            yield "DeserializeSparse", [tf.gather(matrix, order, axis=1)], wanted


def rows():
    dims = [rnd.randint(0, 4)] + sizes(rnd.randint(1, 2))
    dtype = rnd.choice(TYPES)
    matrix = yield "SerializeManySparse", sparse(dims, dtype), {}
    if matrix is not None:
        yield "DeserializeManySparse", [matrix[0]], {
            "dtype": tf.as_dtype(dtype)}
    yield "SerializeManySparse", [
        longs([[0, 0]]), tf.constant([1.0]), longs([-1, 2])], {}


THEMES = [strings, batches, rows]

if __name__ == "__main__":
    record(pathlib.Path(sys.argv[1]) / "sparse_batches.txt", THEMES, rounds=16)
