#!/usr/bin/env python3
"""Records what TensorFlow's CPU kernels of linear algebra compute.

Usage: record_linalg_ops.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run by CI)

Writes linalg.txt in the form that record_ops.py explains, refused inputs too.
Of decompositions that are not unique it records what any of them agrees on:
linalg_test.cpp has the rest.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

from record_array_ops import rare, record, rnd, tensor

TYPES = ["float32", "float64", "complex64", "complex128", "float16"]


def matrices(batch, rows, columns, dtype):
    """Far from singular: a strong diagonal."""
    value = tensor(batch + [rows, columns], dtype, -4, 4).numpy()
    for i in range(min(rows, columns)):
        value[..., i, i] += 9
    return tf.constant(value)


def batch_dims():
    return [rnd.randint(0 if rare() else 1, 2)
            for _ in range(rnd.randint(0, 2))]


def solving():
    dtype = rnd.choice(TYPES)
    batch, side = batch_dims(), rnd.randint(0 if rare() else 1, 4)
    a = matrices(batch, side, side, dtype)
    adjoint = {"adjoint": rare(0.5)}
    yield "MatrixInverse", [a], adjoint
    yield "MatrixInverse", [tf.zeros_like(a)], adjoint
    yield "MatrixInverse", [matrices(batch, side, side + 1, dtype)], adjoint
    rhs = tensor(batch + [side + rare(), rnd.randint(1, 3)], dtype)
    yield "MatrixSolve", [a, rhs], adjoint
    lower = {"lower": rare(0.5)}
    yield "MatrixTriangularSolve", [a, rhs], adjoint | lower
    other = [rnd.choice([1, dim]) for dim in batch][rnd.randint(0, len(batch)):]
    yield "MatrixTriangularSolve", [
        a, tensor(other + [side, 2], dtype)], adjoint | lower
    if batch and rare(0.3):
        yield "MatrixSolve", [a, tensor([side, 2], dtype)], adjoint


def factors():
    dtype = rnd.choice(TYPES)
    batch, side = batch_dims(), rnd.randint(0 if rare() else 1, 4)
    a = matrices(batch, side, side, dtype).numpy()
    square = a.astype(np.complex128) @ np.conj(
        np.swapaxes(a, -1, -2)).astype(np.complex128)
    if "complex" not in dtype:
        square = square.real
    yield "Cholesky", [tf.constant(square.astype(a.dtype))], {}
    for op in ["MatrixDeterminant", "LogMatrixDeterminant"]:
        if dtype != "float16":
            yield op, [tf.constant(a)], {}
            yield op, [matrices(batch, side, side + 1, dtype)], {}
    if dtype in ("float32", "float64"):
        l = tf.linalg.band_part(tf.constant(a), -1, 0)
        yield "CholeskyGrad", [l, tensor(batch + [side, side], dtype)], {}
    if dtype != "float16":
        yield "Lu", [tf.constant(a)], {
            "output_idx_type": rnd.choice([tf.int32, tf.int64])}
        rows, columns = rnd.randint(1, 4), rnd.randint(1, 4)
        wide = matrices(batch, rows, columns, dtype)
        yield "Qr", [wide], {"full_matrices": rare(0.5)}


def crossing():
    dtype = rnd.choice(["float32", "float64", "int32", "int64", "int8",
                        "uint8", "int16", "uint16", "float16", "bfloat16"])
    dims = batch_dims() + [3]
    yield "Cross", [tensor(dims, dtype), tensor(dims, dtype)], {}
    yield "Cross", [tensor(dims, dtype), tensor([1] + dims, dtype)], {}


if __name__ == "__main__":
    record(pathlib.Path(sys.argv[1]) / "linalg.txt",
           [solving, factors, crossing], rounds=12)
