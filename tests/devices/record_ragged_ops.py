#!/usr/bin/env python3
"""Records what TensorFlow makes of ragged rows, buckets, rows in place, and
special functions.

Usage: record_ragged_ops.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run by
CI)

Writes ragged.txt and special.txt in the form that record_ops.py explains,
refused inputs too.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

from record_array_ops import (MOVABLE, NUMBER, REAL, ints, rare, record, rnd,
                              shape, tensor, vector)


def row_splits(rows):
    """Of so many rows, and how many parts they have."""
    lengths = [rnd.choice([0, 1, 2, 3, 5]) for _ in range(rows)]
    return np.cumsum([0] + lengths).tolist()


def row_ids(splits):
    return [row for row in range(len(splits) - 1)
            for _ in range(splits[row + 1] - splits[row])]


def ragged():
    index = rnd.choice(["int32", "int64"])
    levels, parts = [], rnd.randint(0, 4)
    for _ in range(rnd.randint(1, 3)):
        levels.append(row_splits(parts))
        parts = levels[-1][-1]
    inner = [rnd.randint(1, 2) for _ in range(rnd.randint(0, 2))]
    dtype = rnd.choice(MOVABLE)
    values = tensor([parts] + inner, dtype)
    splits = [vector(level, index) for level in levels]
    yield "RaggedTensorToSparse", [splits, values], {"Tsplits": splits[0].dtype}
    default = tensor(rnd.choice([[], inner, inner[1:], []]), dtype)
    rank = len(levels) + 1 + len(inner)
    wanted = vector(rnd.choice([-1, [-1] * rank]))
    if rare(0.5):
        wanted = vector([rnd.choice([-1, rnd.randint(0, 4)])
                         for _ in levels + [0]] + [-1] * len(inner))
    types = ["ROW_SPLITS"] * len(levels)
    yield "RaggedTensorToTensor", [wanted, values, default, splits], {
        "row_partition_types": types}
    first = len(levels[0]) - 1
    parts = [vector(first, index)]
    parts += [vector(row_ids(level), index) for level in levels]
    if levels[0] and all(level == levels[0] or row_ids(level) and
                         row_ids(level)[-1] == len(level) - 2
                         for level in levels):
        yield "RaggedTensorToTensor", [wanted, values, default, parts], {
            "row_partition_types":
                ["FIRST_DIM_SIZE"] + ["VALUE_ROWIDS"] * len(levels)}


def ngrams():
    splits = row_splits(rnd.randint(0, 4))
    words = tf.constant(["w%d" % i for i in range(splits[-1])], tf.string)
    if rare():
        splits[-1] += 1
    yield "StringNGrams", [words, vector(splits)], {
        "separator": rnd.choice([" ", "--", "|"]),
        "ngram_widths": [rnd.randint(1, 4) for _ in range(rnd.randint(1, 3))],
        "left_pad": rnd.choice(["L", "<s>"]),
        "right_pad": rnd.choice(["R", "</s>"]),
        "pad_width": rnd.choice([-1, 0, 0, 1, 2, 5]),
        "preserve_short_sequences": rare(0.5)}


def buckets():
    real = rnd.choice(["int32", "int64", "float32", "float64"])
    limits = [rnd.randint(-8, 8) / 2 for _ in range(rnd.randint(1, 5))]
    yield "Bucketize", [tensor(shape(), real)], {"boundaries": sorted(limits)}
    dtype = rnd.choice(REAL)
    x = tensor(shape(rnd.randint(1, 3), 6), dtype)
    yield "NthElement", [x, ints([], -rare(), x.shape[-1] - 1 + rare(),
                                 "int32")], {"reverse": rare(0.5)}
    dims = [rnd.randint(1, 4) for _ in range(rnd.randint(1, 3))]
    index = rnd.choice(["int32", "int64"])
    places = ints(rnd.choice([[], [5]]), -rare(), int(np.prod(dims)) - 1, index)
    yield "UnravelIndex", [places, vector(dims, index)], {}
    whole = rnd.choice([name for name in REAL if "int" in name])
    yield "PopulationCount", [tensor(shape(), whole)], {}


def updates():
    dtype = rnd.choice(NUMBER)
    x = tensor([rnd.randint(1, 4)] + shape(rnd.randint(0, 2)), dtype)
    count = rnd.randint(0, 3)
    rows = ints([count], -5, 9, "int32")
    v = tensor([count] + list(x.shape[1:]) if not rare() else shape(), dtype)
    # It changes what it is given.
    for op in ["InplaceUpdate", "InplaceAdd", "InplaceSub"]:
        yield op, [x, rows, v], {}
    dtype = rnd.choice(MOVABLE)
    x = tensor(shape(rnd.randint(1, 3)), dtype)
    entries = rnd.randint(1, len(x.shape))
    strides = [1, 1, 2, -1]
    spec = [vector([rnd.randint(-4, 4) for _ in range(entries)], "int64"),
            vector([rnd.randint(-4, 4) for _ in range(entries)], "int64"),
            vector([rnd.choice(strides) for _ in range(entries)], "int64")]
    masks = {"begin_mask": rnd.randint(0, 3), "end_mask": rnd.randint(0, 3),
             "shrink_axis_mask": rnd.choice([0, 0, 0, 1])}
    part = yield "StridedSlice", [x] + spec, masks
    if part is not None:
        dims = list(part[0].shape)
        yield "TensorStridedSliceUpdate", [x] + spec + [
            tensor(dims if not rare() else shape(), dtype)], masks
        yield "TensorStridedSliceUpdate", [x] + spec + [
            tensor([], dtype)], masks


def sums():
    real = rnd.choice(["float32", "float64", "float16"])
    index = rnd.choice(["int32", "int64"])
    count = rnd.randint(0, 5)
    rows = tensor([3, 2], real)
    where = [ints([count], 0, 5, index), ints([count], 0, 2 + rare(), index),
             tf.constant(6 - 3 * rare(0.2))]
    for op in ["Sum", "Mean", "SqrtN"]:
        yield f"SparseSegment{op}GradV2", [rows] + where, {}


def special():
    for real in ["float32", "float64"]:
        def some(values):
            return tf.constant(values, real)
        a = some([[0.1], [0.5], [1.0], [2.5], [10.0], [50.0]])
        x = some([0.01, 0.5, 1.0, 3.0, 9.0, 45.0])
        for op in ["Igamma", "Igammac", "IgammaGradA"]:
            yield op, [a, x], {}
        yield "RandomGammaGrad", [a, x], {}
        yield "Zeta", [some([[1.5], [2.0], [7.0]]), some([0.5, 1.0, 3.0])], {}
        yield "Polygamma", [some([[0.0], [1.0], [3.0]]),
                            some([0.5, 1.0, 3.0])], {}
        for op in ["I0", "I0e", "I1", "I1e", "J0", "J1", "K0", "K0e", "K1",
                   "K1e", "Y0", "Y1"]:
            yield "Bessel" + op, [some([0.1, 0.5, 1.0, 2.0, 5.0, 11.0])], {}


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    record(folder / "ragged.txt", [ragged, ngrams, buckets, updates, sums], rounds=14)
    record(folder / "special.txt", [special], rounds=1)
