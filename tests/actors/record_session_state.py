#!/usr/bin/env python3
"""Writes data/session_state.pb: what TensorFlow makes of a critical section and
of a tensor that a session keeps.

needs: a Python with tensorflow
"""
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
graph = tf.Graph()
with graph.as_default():
    variable = tf.get_variable("count", initializer=0, use_resource=True)
    section = tf.CriticalSection(name="section", shared_name="section")

    def increment():
        # By itself this would lose increments of other steps.
        before = variable.read_value()
        with tf.control_dependencies([variable.assign(before + 1)]):
            return tf.identity(before)

    tf.identity(section.execute(increment), name="taken")
    tf.identity(variable.read_value(), name="total")
    tf.group(variable.initializer, name="init")

    value = tf.placeholder(tf.float32, [None], name="value")
    tf.identity(tf.raw_ops.GetSessionHandleV2(value=value * 2), name="unused")
    kept = tf.raw_ops.GetSessionHandle(value=value * 2)
    tf.identity(kept, name="handle")
    handle = tf.placeholder(tf.string, [], name="kept")
    tf.identity(tf.raw_ops.GetSessionTensor(handle=handle, dtype=tf.float32),
                name="again")
    tf.group(tf.raw_ops.DeleteSessionTensor(handle=handle), name="delete")
folder = pathlib.Path(__file__).parent / "data"
(folder / "session_state.pb").write_bytes(
    graph.as_graph_def().SerializeToString())
