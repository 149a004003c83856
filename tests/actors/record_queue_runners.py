#!/usr/bin/env python3
"""Writes a MetaGraph with queue runners, for the tests.

Usage: record_queue_runners.py OUTPUT_FOLDER     (needs tensorflow-cpu)

Writes queue_runners.meta: two epochs of 0 to 9 in order, put into batches of
four, the last of which is smaller. Its collection "queue_runners" has two.
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf


def main():
    folder = pathlib.Path(sys.argv[1])
    tf.disable_v2_behavior()
    with tf.Graph().as_default():
        number = tf.train.range_input_producer(
            10, num_epochs=2, shuffle=False).dequeue()
        batch = tf.train.batch(
            [number, number * number], 4, allow_smaller_final_batch=True)
        tf.identity(batch[0], name="numbers")
        tf.identity(batch[1], name="squares")
        with tf.control_dependencies([tf.local_variables_initializer()]):
            tf.no_op(name="start")
        model = tf.train.export_meta_graph(
            clear_devices=True, strip_default_attrs=True)
    # Summaries are not what this is about.
    kept = [n for n in model.graph_def.node if n.op != "ScalarSummary"]
    del model.graph_def.node[:]
    model.graph_def.node.extend(kept)
    (folder / "queue_runners.meta").write_bytes(
        model.SerializeToString(deterministic=True))


main()
