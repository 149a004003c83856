#!/usr/bin/env python3
"""Records what TensorFlow's recurrent networks compute, for the tests.

Usage: record_rnn.py OUTPUT_FOLDER     (needs tensorflow-cpu; not run by CI)

Writes rnn.txt: cases of the form

    case NAME
    x [2,3] 1 2 3 4 5 6

with a line for each tensor: what is fed (x, lengths, ...), each variable by its
name, and what comes out (outputs, state_0, ...). tests/actors/recorded_rnn.h
reads it.
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import rnn_cell_impl as cells
from tensorflow.python.util import nest

BATCH, TIME, DEPTH, UNITS = 3, 4, 2, 3
RANDOM = np.random.default_rng(11)
LENGTHS = np.array([2, 4, 0], np.int32)


def draw(*shape):
    # Few digits, so that the file is small and exact.
    return RANDOM.integers(-64, 65, shape).astype(np.float32) / 64


def line(name, value):
    value = np.asarray(value)
    dims = ",".join(str(d) for d in value.shape)
    return f"{name} [{dims}] " + " ".join(f"{v:.8g}" for v in value.ravel())


def record(name, build, time_major=False):
    """`build` gets x, a dict in which it puts what it feeds, and returns the
    outputs, in order."""
    shape = (TIME, BATCH, DEPTH) if time_major else (BATCH, TIME, DEPTH)
    lines = [f"case {name}"]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = {"x": draw(*shape)}
        results = build(tf.constant(fed["x"]), fed)
        variables = {v.op.name: draw(*v.shape.as_list())
                     for v in tf.global_variables()}
        for variable in tf.global_variables():
            variable.load(variables[variable.op.name], session)
        values = session.run(results)
    lines += [line(key, value) for key, value in {**fed, **variables}.items()]
    lines += [line(key, value) for key, value in values.items()]
    return lines


def results(outputs, state):
    named = {"outputs": outputs}
    for i, part in enumerate(nest.flatten(state)):
        named[f"state_{i}"] = part
    return named


def dynamic(cell, lengths=True, initial=False, time_major=False):
    def build(x, fed):
        options = {}
        if lengths:
            fed["lengths"] = LENGTHS
            options["sequence_length"] = tf.constant(LENGTHS)
        made = cell()
        if initial:
            flat = []
            for i, size in enumerate(nest.flatten(made.state_size)):
                fed[f"initial_{i}"] = draw(BATCH, size)
                flat.append(tf.constant(fed[f"initial_{i}"]))
            options["initial_state"] = nest.pack_sequence_as(
                made.state_size, flat)
        return results(*tf.nn.dynamic_rnn(
            made, x, dtype=tf.float32, time_major=time_major, **options))
    return build


def bidirectional(x, fed):
    fed["lengths"] = LENGTHS
    outputs, states = tf.nn.bidirectional_dynamic_rnn(
        cells.GRUCell(UNITS), cells.LSTMCell(2), x, dtype=tf.float32,
        sequence_length=tf.constant(LENGTHS))
    return {"outputs": outputs[0], "outputs_back": outputs[1],
            **{f"state_{i}": part
               for i, part in enumerate(nest.flatten(states))}}


def raw(x, fed):
    """Feeds back what it puts out, row k for k + 1 moments; counts calls and
    emits twice the output, and the sum of the input."""
    cell = cells.LSTMCell(UNITS)
    first = x[:, 0, :]

    def step(time, output, state, count):
        finished = time >= tf.range(1, BATCH + 1)
        if output is None:
            return (finished, first, cell.zero_state(BATCH, tf.float32),
                    (tf.zeros([UNITS]), tf.zeros([])), tf.constant(0))
        row = output[:, :DEPTH] + x[:, 1, :]
        return (finished, row, state,
                (2 * output, tf.reduce_sum(row, 1)), count + 1)

    emitted, state, count = tf.nn.raw_rnn(cell, step)
    return {"emit_0": emitted[0].stack(), "emit_1": emitted[1].stack(),
            "count": tf.cast(count, tf.float32),
            **{f"state_{i}": part
               for i, part in enumerate(nest.flatten(state))}}


def main():
    folder = pathlib.Path(sys.argv[1])
    tf.disable_eager_execution()
    fancy = lambda: cells.LSTMCell(
        4, use_peepholes=True, cell_clip=0.4, num_proj=UNITS, proj_clip=0.3,
        forget_bias=0.5)
    multi = lambda: cells.MultiRNNCell(
        [cells.LSTMCell(UNITS), cells.GRUCell(2)])
    lines = record("basic", dynamic(lambda: cells.BasicRNNCell(UNITS)))
    lines += record("gru", dynamic(lambda: cells.GRUCell(UNITS)))
    lines += record("lstm", dynamic(lambda: cells.LSTMCell(UNITS)))
    lines += record("lstm_time_major",
                    dynamic(lambda: cells.LSTMCell(UNITS), lengths=False,
                            initial=True, time_major=True), time_major=True)
    lines += record("lstm_fancy", dynamic(fancy))
    lines += record("multi", dynamic(multi, initial=True))
    lines += record("bidirectional", bidirectional)
    lines += record("raw", raw)
    (folder / "rnn.txt").write_text("\n".join(lines) + "\n")


main()
