#!/usr/bin/env python3
"""Records what TensorFlow's CPU kernels draw from generators in variables.

Usage: record_generators.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run by
CI)

Writes generators.txt in the form of record_random_numbers.py's random.txt. The
first input stands for the value that the variable has before, the first output
for that after; the numbers are to be the same to the last bit.
"""

import pathlib
import sys

from record_array_ops import CODES, attr_text, tensor_text
import tensorflow as tf

from record_random_numbers import COUNTED, FLOATING, SAMPLED

STATES = [[0, 0, 7], [2**63 - 1, -5, 2**40 + 3], [-300, 9, -1, 17]]
SHAPES = [[], [1], [6], [3, 5], [2, 0, 3], [67]]
PHILOX = tf.constant(1, tf.int64)


def fills():
    for dtype in FLOATING:
        for op in ["StatefulUniform", "StatefulStandardNormalV2",
                   "StatefulTruncatedNormal"]:
            for i, shape in enumerate(SHAPES):
                index = [tf.int32, tf.int64][i % 2]
                yield (op, STATES[i % 3], PHILOX,
                       {"shape": tf.constant(shape, index),
                        "dtype": tf.as_dtype(dtype)})
    for dtype in ["int32", "int64", "uint32", "uint64"]:
        for i, shape in enumerate([[], [7]]):
            yield ("StatefulUniformFullInt", STATES[i], PHILOX,
                   {"shape": tf.constant(shape, tf.int64),
                    "dtype": tf.as_dtype(dtype)})
    for dtype in ["int32", "int64"]:
        limits = tf.as_dtype(dtype)
        for low, high in [(0, 10), (-3, 4), (limits.min, limits.max), (6, 5)]:
            for shape in [[], [7]]:
                yield ("StatefulUniformInt", STATES[2], PHILOX,
                       {"shape": tf.constant(shape, tf.int64),
                        "minval": tf.constant(low, dtype),
                        "maxval": tf.constant(high, dtype)})


def binomials():
    counts = [0.0, 1.0, 5.0, 20.0, 100.0, 1000.0]
    probs = [[0.0], [0.1], [0.5], [0.6], [0.95]]
    for given in SAMPLED:
        for dtype in COUNTED:
            yield ("StatefulRandomBinomial", STATES[0], PHILOX,
                   {"shape": tf.constant([2, 5, 6]),
                    "counts": tf.constant(counts, given),
                    "probs": tf.constant(probs, given),
                    "dtype": tf.as_dtype(dtype)})
    for shape in [[3, 1], [0], [9, 1]]:
        yield ("StatefulRandomBinomial", STATES[1], PHILOX,
               {"shape": tf.constant(shape),
                "counts": tf.constant([8.0] * shape[-1]),
                "probs": tf.constant(0.3), "dtype": tf.float32})


def refused():
    shape = {"shape": tf.constant([2], tf.int64), "dtype": tf.float32}
    for algorithm in [0, 4]:
        yield "StatefulUniform", STATES[0], tf.constant(algorithm,
                                                        tf.int64), shape
    yield "StatefulUniform", [1, 2], PHILOX, shape
    yield "StatefulUniform", STATES[0], PHILOX, {
        "shape": tf.constant([-1], tf.int64), "dtype": tf.float32}


def main():
    lines = []
    for theme in [fills, binomials, refused]:
        for op, state, algorithm, arguments in theme():
            variable = tf.Variable(tf.constant(state, tf.int64))
            attrs = {name: value for name, value in arguments.items()
                     if isinstance(value, tf.DType)}
            tensors = [value for name, value in arguments.items()
                       if name not in attrs]
            lines.append(f"op {op}")
            lines += [attr_text(name, attrs[name]) for name in attrs]
            lines += ["in " + tensor_text(value)
                      for value in [variable.value(), algorithm, *tensors]]
            try:
                drawn = getattr(tf.raw_ops, op)(
                    resource=variable.handle, algorithm=algorithm, **arguments)
                lines += ["out " + tensor_text(value)
                          for value in [variable.value(), drawn]]
            except tf.errors.OpError as caught:
                lines.append(f"error {CODES[caught.error_code]}")
    folder = pathlib.Path(sys.argv[1])
    (folder / "generators.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
