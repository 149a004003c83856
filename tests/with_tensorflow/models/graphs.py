"""MetaGraphs as TensorFlow 1 writes them: see exported.py.

They come with the graph's initialiser, or with a checkpoint.
"""

import contextlib

import numpy as np
import tensorflow as tf

from .recording import Recording

v1 = tf.compat.v1


@contextlib.contextmanager
def graph_of_version_1():
    """A graph with Switch and Merge, and with reference variables."""
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            v1.set_random_seed(5)
            yield graph
    finally:
        v1.enable_control_flow_v2()


def record(folder, recording, session, feeds, batch, steps, fetch, targets):
    for name, rows in feeds.items():
        recording.feed(name, rows)
    for k in range(steps):
        fed = {name + ":0": rows[k * batch:(k + 1) * batch]
               for name, rows in feeds.items()}
        recording.loss(session.run([fetch, *targets], fed)[0])


def adam(folder, steps, small=False):
    """Reference variables, a while_loop and its gradient over stacks, Adam,
    and a checkpoint of a few steps later beside it."""
    width, batch = (3, 2) if small else (32, 16)
    random = np.random.default_rng(4)
    with graph_of_version_1():
        x = v1.placeholder(tf.float32, [None, width], name="x")
        y = v1.placeholder(tf.float32, [None, 1], name="y")
        start = v1.constant_initializer(random.normal(0, 0.4, (width, width)))
        weight = v1.get_variable("weight", [width, width], tf.float32, start,
                                 use_resource=False)
        last = v1.get_variable("last", [width, 1], tf.float32,
                               v1.constant_initializer(0.3),
                               use_resource=False)
        state = v1.while_loop(
            lambda i, _: i < 4,
            lambda i, s: (i + 1, tf.tanh(v1.matmul(s, weight) + x)), [0, x])[1]
        output = v1.matmul(state, last, name="output")
        loss = tf.reduce_mean((output - y)**2, name="loss")
        step = v1.train.get_or_create_global_step()
        rate = v1.train.exponential_decay(0.02, step, 20, 0.9)
        train = v1.train.AdamOptimizer(rate).minimize(loss, step, name="train")
        init = v1.global_variables_initializer()
        saver = v1.train.Saver()
        rows = batch * (steps + 3)
        inputs = random.normal(size=(rows, width)).astype(np.float32)
        feeds = {"x": inputs, "y": np.sin(inputs.sum(1, keepdims=True))}
        with v1.Session() as session:
            session.run(init)
            for k in range(3):
                part = slice(k * batch, (k + 1) * batch)
                session.run(train, {x: feeds["x"][part], y: feeds["y"][part]})
            saver.save(session, str(folder / "model"),
                       write_state=False)
            feeds = {name: rows[3 * batch:] for name, rows in feeds.items()}
            recording = Recording(folder, "model.meta", batch, "loss",
                                  targets=["train"])
            record(folder, recording, session, feeds, batch, steps, loss,
                   [train])
            first = {"x": feeds["x"][:batch]}
            recording.predict(first, "output",
                              session.run(output, {x: first["x"]}))
    recording.write()


def queue(folder, steps, small=False):
    """Rows come through queues that queue runners fill; no checkpoint."""
    width, batch = (2, 2) if small else (16, 8)
    random = np.random.default_rng(5)
    with graph_of_version_1():
        rows = random.normal(size=(batch * 3 + 1, width)).astype(np.float32)
        wanted = np.tanh(rows.sum(1, keepdims=True)).astype(np.float32)
        row, label = v1.train.slice_input_producer(
            [tf.constant(rows), tf.constant(wanted)], shuffle=False, name="in")
        x, y = v1.train.batch([row, label], batch, capacity=4 * batch)
        weight = v1.get_variable(
            "weight", [width, width], tf.float32,
            v1.constant_initializer(random.normal(0, 0.5, (width, width))))
        last = v1.get_variable("last", [width, 1], tf.float32,
                               v1.constant_initializer(0.1))
        hidden = v1.nn.relu(v1.matmul(x, weight))
        loss = tf.reduce_mean((v1.matmul(hidden, last) - y)**2, name="loss")
        train = v1.train.MomentumOptimizer(0.02, 0.9).minimize(
            loss, name="train")
        init = v1.group(v1.global_variables_initializer(),
                        v1.local_variables_initializer(), name="start")
        v1.train.export_meta_graph(str(folder / "model.meta"))
        recording = Recording(folder, "model.meta", batch, "loss",
                              targets=["train"], init="start")
        with v1.Session() as session:
            session.run(init)
            coordinator = v1.train.Coordinator()
            threads = v1.train.start_queue_runners(session, coordinator)
            record(folder, recording, session, {}, batch, steps, loss, [train])
            coordinator.request_stop()
            coordinator.join(threads)
    recording.write()


def partitioned(folder, steps, small=False):
    """An embedding in three parts, updated by rows; a checkpoint that has it
    in slices."""
    words, width, batch = (7, 2, 3) if small else (50, 16, 32)
    random = np.random.default_rng(6)
    with graph_of_version_1():
        x = v1.placeholder(tf.int64, [None], name="x")
        y = v1.placeholder(tf.float32, [None, 1], name="y")
        table = v1.get_variable(
            "table", [words, width], tf.float32,
            v1.random_normal_initializer(seed=1),
            partitioner=v1.fixed_size_partitioner(3), use_resource=True)
        last = v1.get_variable(
            "last", [width, 1], tf.float32, v1.constant_initializer(0.2),
            partitioner=v1.fixed_size_partitioner(2), use_resource=True)
        rows = v1.nn.embedding_lookup(table, x, partition_strategy="div")
        output = v1.matmul(rows, tf.convert_to_tensor(last), name="output")
        loss = tf.reduce_mean((output - y)**2, name="loss")
        train = v1.train.AdagradOptimizer(0.2).minimize(loss, name="train")
        init = v1.global_variables_initializer()
        saver = v1.train.Saver()
        feeds = {"x": random.integers(words, size=batch * steps)}
        feeds["y"] = np.cos(feeds["x"])[:, None].astype(np.float32)
        with v1.Session() as session:
            session.run(init)
            saver.save(session, str(folder / "model"), write_state=False)
            recording = Recording(folder, "model.meta", batch, "loss",
                                  targets=["train"])
            record(folder, recording, session, feeds, batch, steps, loss,
                   [train])
            first = {"x": feeds["x"][:batch]}
            recording.predict(first, "output",
                              session.run(output, {x: first["x"]}))
    recording.write()
