#!/usr/bin/env python3
"""Records what TensorFlow's CPU kernels make of sequences without alignment:
CTCLoss with its gradient, and the decoders.

Usage: record_ctc_ops.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run by CI)

Writes ctc.txt in the form that record_ops.py explains, refused inputs too.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

from record_array_ops import rare, record, rnd

numbers = np.random.RandomState(11)


def logits(steps, batch, classes, dtype, spread=2.0):
    values = numbers.uniform(-spread, spread, (steps, batch, classes)).round(2)
    return tf.constant(values, dtype)


def sizes():
    return rnd.randint(1, 6), rnd.randint(1, 3), rnd.randint(2, 5)


def lengths(steps, batch):
    few = [rnd.randint(0, steps) if rare(0.4) else steps for _ in range(batch)]
    if rare():
        few[-1] += 1
    if rare():
        few.append(1)
    return tf.constant(few, tf.int32)


def sparse_labels(steps, batch, classes):
    indices, values = [], []
    for row in range(batch):
        for at in range(rnd.randint(0, steps if rare(0.3) else steps // 2)):
            indices.append([row, at])
            values.append(rnd.randint(0, classes - 2))
            if rare(0.02):
                values[-1] = rnd.choice([-1, classes - 1, classes])
    if indices and rare(0.04):
        indices[-1][0] = rnd.choice([-1, batch])
    return (tf.constant(np.array(indices, np.int64).reshape(-1, 2)),
            tf.constant(np.array(values, np.int32)))


def loss():
    steps, batch, classes = sizes()
    dtype = rnd.choice(["float32", "float64"])
    indices, values = sparse_labels(steps, batch, classes)
    yield "CTCLoss", [logits(steps, batch, classes, dtype), indices, values,
                      lengths(steps, batch)], {
        "preprocess_collapse_repeated": rare(0.3),
        "ctc_merge_repeated": rare(0.7),
        "ignore_longer_outputs_than_inputs": rare(0.5)}


def decoders():
    steps, batch, classes = sizes()
    dtype = rnd.choice(["float32", "float64"])
    given = [logits(steps, batch, classes, dtype), lengths(steps, batch)]
    blank = rnd.choice([-1, 0, classes - 1, -classes])
    if rare():
        blank = rnd.choice([-classes - 1, classes])
    yield "CTCGreedyDecoder", given, {"merge_repeated": rare(0.5),
                                      "blank_index": blank}
    width = rnd.choice([1, 2, 3, 10, 40])
    yield "CTCBeamSearchDecoder", given, {
        "beam_width": width, "top_paths": min(rnd.choice([1, 1, 2, 3]),
                                              width + rare()),
        "merge_repeated": rare(0.4)}


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    record(folder / "ctc.txt", [loss, decoders], rounds=60)
