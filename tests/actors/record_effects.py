#!/usr/bin/env python3
"""Writes a graph whose functions change a variable, for the tests.

Usage: record_effects.py OUTPUT_FOLDER     (needs tensorflow-cpu)

Writes effects.pb: a call of "program" notes what it does, digit by digit, in
the variable "log": in nested calls, in both branches of an If in a While, and
after all that its result is made of. Prints what TensorFlow gives, for several
`n`: the fetch "before", and the variable after the run.
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

v1 = tf.compat.v1


def build():
    log = v1.get_variable("log", [], tf.int64, v1.zeros_initializer(),
                          use_resource=True)

    @tf.function
    def note(digit):
        log.assign(log * 10 + digit)

    @tf.function
    def nested(digit):
        note(digit)
        note(digit + 1)

    @tf.function
    def program(n):
        note(tf.constant(1, tf.int64))
        for i in tf.range(n):
            if tf.equal(i % 2, 0):
                log.assign(log * 10 + 2)
            else:
                nested(tf.constant(3, tf.int64))
        tf.debugging.assert_less(log, tf.constant(10**9, tf.int64))
        before = log.read_value()
        note(tf.constant(5, tf.int64))
        return before

    n = v1.placeholder(tf.int32, [], "n")
    tf.identity(program(n), "before")
    tf.identity(log.read_value(), "value")
    return log.initializer.name


def main():
    folder = pathlib.Path(sys.argv[1])
    v1.disable_eager_execution()
    v1.enable_control_flow_v2()
    with tf.Graph().as_default() as graph:
        init = build()
    definition = graph.as_graph_def()
    with v1.Session(graph=graph) as session:
        for n in (0, 1, 2, 3, 4):
            session.run(init)
            print(n, session.run("before:0", {"n:0": n}),
                  session.run("value:0"))
    print("initializer", init)
    (folder / "effects.pb").write_bytes(
        definition.SerializeToString(deterministic=True))


main()
