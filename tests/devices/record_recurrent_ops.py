#!/usr/bin/env python3
"""Records what TensorFlow's CPU kernels of fused recurrent cells compute.

Usage: record_recurrent_ops.py OUTPUT_FOLDER  (needs tensorflow-cpu; not run by
CI)

Writes recurrent.txt in the form that record_ops.py explains.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

from record_array_ops import rare, record, rnd

numbers = np.random.RandomState(3)


def values(*dims):
    return tf.constant(numbers.uniform(-1, 1, dims).round(3), tf.float32)


def sizes():
    return rnd.randint(1, 3), rnd.randint(1, 3), rnd.randint(1, 3)


def weights(inputs, cells):
    return [values(inputs + cells, 4 * cells), values(cells), values(cells),
            values(cells), values(4 * cells)]


def cell():
    batch, inputs, cells = sizes()
    given = [values(batch, inputs), values(batch, cells), values(batch, cells)
             ] + weights(inputs, cells)
    peephole = {"use_peephole": rare(0.5)}
    made = yield "LSTMBlockCell", given, peephole | {
        "forget_bias": rnd.choice([0.0, 1.0, 0.5]),
        "cell_clip": rnd.choice([-1.0, 0.25, 3.0])}
    yield "LSTMBlockCellGrad", given + list(made[:6]) + [
        values(batch, cells), values(batch, cells)], peephole


def sequence():
    batch, inputs, cells = sizes()
    steps = rnd.randint(1, 4)
    given = [tf.constant(steps, tf.int64), values(steps, batch, inputs),
             values(batch, cells), values(batch, cells)
             ] + weights(inputs, cells)
    peephole = {"use_peephole": rare(0.5)}
    v2 = rnd.choice(["", "V2"])
    bias = {} if v2 else {"forget_bias": rnd.choice([0.0, 1.0, 0.5])}
    made = yield "BlockLSTM" + v2, given, peephole | bias | {
        "cell_clip": rnd.choice([-1.0, 0.25, 3.0])}
    yield "BlockLSTMGrad" + v2, given + list(made) + [
        values(steps, batch, cells), values(steps, batch, cells)], peephole


def gru():
    batch, inputs, cells = sizes()
    given = [values(batch, inputs), values(batch, cells),
             values(inputs + cells, 2 * cells), values(inputs + cells, cells),
             values(2 * cells), values(cells)]
    made = yield "GRUBlockCell", given, {}
    yield "GRUBlockCellGrad", given + list(made[:3]) + [values(batch, cells)
                                                        ], {}


if __name__ == "__main__":
    record(pathlib.Path(sys.argv[1]) / "recurrent.txt", [cell, sequence, gru],
           rounds=6)
