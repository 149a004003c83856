#!/usr/bin/env python3
"""Records what TensorFlow's CPU kernels of stateless random ops draw.

Usage: record_random_numbers.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run
by CI)

Writes random.txt in the form that record_ops.py explains, with refused inputs
as record_array_ops.py has them. The numbers are to be the same to the last bit.
Nothing is asked of TensorFlow that it never ends with, as samples of rate NaN.
"""

import pathlib
import random
import sys

from record_array_ops import CODES, attr_text, compute, tensor_text
import numpy as np
import tensorflow as tf

FLOATING = ["float16", "bfloat16", "float32", "float64"]
SAMPLED = ["float16", "float32", "float64"]
COUNTED = SAMPLED + ["int32", "int64"]
SHAPES = [[], [1], [6], [3, 5], [2, 0, 3], [67]]

rnd = random.Random(11)


def seed():
    dtype = rnd.choice(["int32", "int64"])
    bits = 31 if dtype == "int32" else 63
    return tf.constant([rnd.randint(-2**bits, 2**bits - 1) for _ in "ab"],
                       dtype)


def key():
    """A key, a counter at which a carry may be due, an algorithm."""
    low = rnd.choice([0, 2**64 - 3, 2**32 - 2, rnd.randint(0, 2**64 - 1)])
    high = rnd.choice([0, rnd.randint(0, 2**64 - 1)])
    return [tf.constant([rnd.randint(0, 2**64 - 1)], "uint64"),
            tf.constant([low, high], "uint64"),
            tf.constant(rnd.choice([1, 3]), "int32")]


def dims(shape):
    return tf.constant(shape, rnd.choice(["int32", "int64"]))


def fills():
    for dtype in FLOATING:
        for kind in ["RandomUniform", "RandomNormal", "TruncatedNormal"]:
            for shape in SHAPES:
                attrs = {"dtype": tf.as_dtype(dtype)}
                yield f"Stateless{kind}", [dims(shape), seed()], attrs
                yield f"Stateless{kind}V2", [dims(shape)] + key(), attrs
    for dtype in ["int32", "int64"]:
        info = tf.as_dtype(dtype)
        for low, high in [(0, 10), (-3, 4), (info.min, info.max), (5, 6),
                          (-1, info.max), (6, 5)]:
            limits = [tf.constant(low, dtype), tf.constant(high, dtype)]
            for shape in [[], [7]]:
                yield "StatelessRandomUniformInt", [
                    dims(shape), seed()] + limits, {}
                yield "StatelessRandomUniformIntV2", [
                    dims(shape)] + key() + limits, {}
    for dtype in ["int32", "int64", "uint32", "uint64"]:
        for shape in [[], [7]]:
            attrs = {"dtype": tf.as_dtype(dtype)}
            yield "StatelessRandomUniformFullInt", [dims(shape), seed()], attrs
            yield "StatelessRandomUniformFullIntV2", [dims(shape)] + key(), attrs


def keys():
    for _ in range(4):
        yield "StatelessRandomGetKeyCounter", [seed()], {}
        yield "StatelessRandomGetKeyCounterAlg", [seed()], {}
    yield "StatelessRandomGetAlg", [], {}


def samples():
    alphas = [0.0, 0.01, 0.5, 0.99, 1.0, 1.5, 3.0, 40.0, 1000.0]
    for dtype in SAMPLED:
        for shape in [[9], [13, 9], [0, 9]]:
            alpha = tf.constant(alphas, dtype)
            yield "StatelessRandomGammaV2", [dims(shape), seed(), alpha], {}
            yield "StatelessRandomGammaV3", [dims(shape)] + key() + [alpha], {}
        yield "StatelessRandomGammaV2", [dims([5, 2]), seed(),
                                         tf.constant([[1.0], [2.0]], dtype)], {}
    rates = [0, 1, 3, 9, 10, 11, 30, 300]
    for rate in COUNTED:
        for dtype in COUNTED:
            attrs = {"dtype": tf.as_dtype(dtype)}
            for shape in [[8], [7, 8]]:
                yield "StatelessRandomPoisson", [
                    dims(shape), seed(), tf.constant(rates, rate)], attrs
    for rate in SAMPLED:
        yield "StatelessRandomPoisson", [
            dims([20, 2]), seed(), tf.constant([0.3, 9.9], rate)], {
                "dtype": tf.int32}
    yield "StatelessRandomPoisson", [dims([20]), seed(), tf.constant(1e9)], {
        "dtype": tf.int32}
    yield "StatelessRandomPoisson", [dims([2]), seed(), tf.constant([1.0] * 3)
                                     ], {"dtype": tf.int32}
    counts = [0.0, 1.0, 5.0, 20.0, 100.0, 1000.0, -2.0]
    probs = [[0.0], [0.1], [0.37], [0.5], [0.6], [0.95], [1.0], [1.5]]
    for given in SAMPLED:
        for dtype in COUNTED:
            attrs = {"dtype": tf.as_dtype(dtype)}
            # Its 64-bit shapes are read as 32-bit ones.
            yield "StatelessRandomBinomial", [
                tf.constant([2, 8, 7]), seed(), tf.constant(counts, given),
                tf.constant(probs, given)], attrs
    yield "StatelessRandomBinomial", [
        tf.constant([3]), seed(), tf.constant([1.0, 2.0]),
        tf.constant([0.5])], {"dtype": tf.int32}


def choices():
    for dtype in FLOATING:
        for index in [tf.int32, tf.int64]:
            rows = [[rnd.uniform(-3, 3) for _ in range(6)] for _ in range(5)]
            rows[2][1] = float("-inf")
            rows[3] = [float("-inf")] * 6
            rows[4][0] = float("nan")
            yield "StatelessMultinomial", [
                tf.constant(rows, dtype), tf.constant(9), seed()], {
                    "output_dtype": index}
    yield "StatelessMultinomial", [
        tf.constant([[1.0]]), tf.constant(-1), seed()], {}
    yield "StatelessMultinomial", [
        tf.zeros([2, 0]), tf.constant(1), seed()], {}
    for dtype in ["int32", "float64", "string", "bool"]:
        for shape in [[], [0], [1], [2], [23], [9, 2]]:
            value = tf.reshape(tf.range(int(np.prod(shape))), shape)
            value = (tf.strings.as_string(value) if dtype == "string"
                     else tf.cast(value, dtype))
            yield "StatelessShuffle", [value] + key(), {}


def truncated():
    """Bounds for each way of drawing, of one side, of both, and far away."""
    infinity = float("inf")
    bounds = [(-2.0, 2.0), (-0.1, 0.3), (1.0, 1.2), (1.0, 4.0), (3.0, infinity),
              (-infinity, -2.0), (-infinity, 1.0), (-4.0, -1.0), (0.5, infinity),
              (-1.0, 1.4)]
    lows, highs = zip(*bounds)
    for dtype in SAMPLED:
        for shape in [[10], [7, 10], [0, 10]]:
            yield "StatelessParameterizedTruncatedNormal", [
                tf.constant(shape), seed(), tf.constant(0.0, dtype),
                tf.constant(1.0, dtype), tf.constant(lows, dtype),
                tf.constant(highs, dtype)], {}
        yield "StatelessParameterizedTruncatedNormal", [
            tf.constant([3, 2, 4]), seed(),
            tf.constant([0.5, -1.0, 2.0, 0.0], dtype),
            tf.constant([[0.5], [2.0]], dtype), tf.constant(-0.75, dtype),
            tf.constant([[1.0]], dtype)], {}
    for parameters in [(0.0, 0.0, 0.0, 1.0), (0.0, 1.0, 1.0, 1.0),
                       (0.0, 1.0, -infinity, infinity), (0.0, -1.0, 0.0, 1.0)]:
        yield "StatelessParameterizedTruncatedNormal", [
            tf.constant([2]), seed()] + [
                tf.constant([value]) for value in parameters], {}


def refused():
    numbers = {"dtype": tf.float32}
    for shape in [tf.constant([-1]), tf.constant(3), tf.constant([[2]])]:
        yield "StatelessRandomUniform", [shape, seed()], numbers
        yield "StatelessRandomNormalV2", [shape] + key(), numbers
    for bad in [[1], [1, 2, 3], 1, [[1, 2]]]:
        yield "StatelessRandomUniform", [dims([2]), tf.constant(bad)], numbers
        yield "StatelessRandomGetKeyCounter", [tf.constant(bad)], {}
    word, counter, _ = key()
    for algorithm in [0, 4, -1]:
        yield "StatelessRandomUniformV2", [
            dims([2]), word, counter, tf.constant(algorithm)], numbers
    for triple in [(counter, counter, 1), (word[0], counter, 1),
                   (word, word[0], 1), (word, counter, [1])]:
        yield "StatelessRandomUniformV2", [
            dims([2]), triple[0], triple[1], tf.constant(triple[2])], numbers


def main():
    lines = []
    for theme in [fills, keys, samples, choices, refused, truncated]:
        for op, inputs, attrs in theme():
            lines.append(f"op {op}")
            lines += [attr_text(name, attrs[name]) for name in attrs]
            lines += ["in " + tensor_text(value) for value in inputs]
            try:
                _, results = compute(op, inputs, attrs)
                lines += ["out " + tensor_text(value) for value in results]
            except tf.errors.OpError as caught:
                lines.append(f"error {CODES[caught.error_code]}")
    folder = pathlib.Path(sys.argv[1])
    (folder / "random.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
