"""Times runs of GraphDef files in TensorFlow, for `tagflow bench compare`.

usage: compare.py MANIFEST

MANIFEST is JSON: {"entries": [{"name", "graph", "feeds", "fetches", "targets",
"trips", "base_trips", "inner", "repeats", "devices", "workers", "as_written",
"threads", "init", "written", "program", "sizes", "results"}]}. Prints "ready
VERSION", then answers each line of stdin, the index of an entry, with JSON: for each way
in which TensorFlow can run it the seconds of one run, the median of `repeats`,
each the mean of `inner` runs. Where `trips` is not 0, the feed is the number of
trips, and the seconds of a run of `base_trips` are subtracted. The operations
of `init` run once before. Before each measurement, files whose names begin with
`written` are removed.

The ways are TensorFlow as it comes, in the thread of the caller (an empty step
wakes nobody then), and each of them with the graph optimisers off. Only the
latter two count where the graph is to run `as_written`: an optimiser would take
the ops out whose time is asked for. `threads` is how many threads run ops, and
how many run parts of one op; 0 stands for as many as the machine has. Since a
process has the threads of its first session, it is asked only for entries whose
`threads` are the same. `workers` is how many processes run a graph, which are
gRPC servers that this script starts; 0 stands for this process alone. The ways
are others then: servers as they come, servers that share the cores, and each of
them with the graph optimisers off.

Where `program` is not empty, the graph is not read but built here, with
`sizes`, by the function of that name: loop_grad, map_fn_grad, lstm_train, mlp,
cnn, cluster_lstm_train, cluster_mlp, cluster_cnn or cluster_checkpoint. All but
the last one have gradients. Those that we make have ops of ours, and TensorFlow cannot make its
own for a loop that it has read from a file, where the loop is no more than its
nodes. The programs are those of gradient_graphs.cpp, op for op, with the same
numbers. What both sides must agree in, the loss and the gradients before the
first update, is written to files: `results` + ".0.npy" and so on.
"""
import functools
import glob
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# TensorFlow greets on stderr. Where it fails, Python says why after this.
stderr = os.dup(2)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
try:
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.get_logger().setLevel("ERROR")
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
finally:
    os.dup2(stderr, 2)


# Name: inter_op_parallelism_threads, and whether the optimisers are on.
WAYS = {
    "default": (0, True),
    "not optimised": (0, False),
    "caller's thread": (-1, True),
    "caller's thread, not optimised": (-1, False),
}


# The same over servers: whether they share the cores, and the optimisers.
SERVER_WAYS = {
    "default": (False, True),
    "not optimised": (False, False),
    "cores shared": (True, True),
    "cores shared, not optimised": (True, False),
}


# A worker, which ends with the script that has started it.
WORKER = """
import json, os, sys
import tensorflow.compat.v1 as tf
addresses, task = json.loads(sys.argv[1]), int(sys.argv[2])
threads = int(sys.argv[3])
server = tf.train.Server({"worker": addresses}, "worker", task,
                         config=tf.ConfigProto(
                             inter_op_parallelism_threads=threads,
                             intra_op_parallelism_threads=threads))
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
"""


class Servers:
    """So many servers on this machine, with the threads of each; 0: TensorFlow
    chooses."""

    def __init__(self, count, threads):
        listening = [socket.create_server(("localhost", 0))
                     for _ in range(count)]
        addresses = [f"localhost:{s.getsockname()[1]}" for s in listening]
        for s in listening:
            s.close()
        self.target = f"grpc://{addresses[0]}"
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, json.dumps(addresses), str(i),
                 str(threads)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL)
            for i in range(count)]
        for process in self.processes:
            process.stdout.readline()


@functools.cache
def servers(count, share_cores):
    share = max(1, os.cpu_count() // count)
    return Servers(count, share if share_cores else 0)


def make_session(graph, entry, way, optimised):
    """A session; `way` is a number of threads, or whether servers share the
    cores."""
    threads = 0 if entry["workers"] else way
    config = tf.ConfigProto(
        device_count={"CPU": entry["devices"]},
        inter_op_parallelism_threads=threads or entry["threads"],
        intra_op_parallelism_threads=entry["threads"])
    if not optimised:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
    target = (servers(entry["workers"], way).target if entry["workers"]
              else "")
    return tf.Session(target, graph=graph, config=config)


class Signature:
    """What a run of the graph of today feeds and fetches, what comes before
    the first one, whose values are compared, and what runs again and again
    beside it: then the feed is the prefix of the files."""

    def __init__(self, wanted, feeds=(), init=(), compared=(), beside=None):
        self.wanted = list(wanted)
        self.beside = beside
        self.feeds = list(feeds)
        self.init = list(init)
        self.compared = list(compared)


def read(entry):
    definition = tf.GraphDef()
    with open(entry["graph"], "rb") as file:
        definition.ParseFromString(file.read())
    graph = tf.get_default_graph()
    tf.import_graph_def(definition, name="")
    wanted = [graph.get_tensor_by_name(name) for name in entry["fetches"]]
    targets = [graph.get_operation_by_name(n) for n in entry["targets"]]
    if targets:
        wanted.append(targets[0] if len(targets) == 1 else tf.group(*targets))
    return Signature(
        wanted, [graph.get_tensor_by_name(name) for name in entry["feeds"]],
        [graph.get_operation_by_name(name) for name in entry["init"]])


# --- Programs that are built here ---------------------------------------------

LEARNING_RATE = 0.01
CLASSES = 10


def pseudo_random(shape, limit=1.0):
    """The numbers of pseudo_random() in building.h, times `limit`."""
    count = int(np.prod(shape))
    powers = np.cumprod(np.full(count, 1664525, np.uint32), dtype=np.uint32)
    sums = np.cumsum(np.append(np.uint32(1), powers[:-1]), dtype=np.uint32)
    state = powers * np.uint32(12345) + sums * np.uint32(1013904223)
    values = state.view(np.int32).astype(np.float32) / np.float32(2**31)
    return (values * np.float32(limit)).reshape(shape)


def opaque(value):
    """What no optimiser takes for a constant."""
    return tf.placeholder_with_default(value, np.shape(value))


def trip_count():
    return tf.placeholder(tf.int32, [], name="n")


def loop_grad():
    n = trip_count()
    x = opaque(np.float32(1))
    w = opaque(np.float32(1.000001))
    _, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * w),
                         (0, x), parallel_iterations=10)
    gradients = tf.gradients(y, [x, w])
    return Signature(gradients, [n], compared=[y, *gradients])


def map_fn_grad():
    n = trip_count()
    x = tf.cast(tf.range(n), tf.float32)
    y = tf.map_fn(lambda v: tf.square(v) + 1, x, parallel_iterations=10)
    gradients = tf.gradients(tf.reduce_sum(y), [x])
    return Signature(gradients, [n], compared=[y, *gradients])


class Weights:
    """Variables, each of which a step reads once."""

    def __init__(self):
        self.variables = []

    def get(self, value):
        variable = tf.Variable(value, use_resource=True)
        self.variables.append(variable)
        return variable.read_value()

    def of_layer(self, shape, inputs):
        return self.get(pseudo_random(shape, 1 / np.sqrt(inputs)))

    def zeros(self, size):
        return self.get(np.zeros(size, np.float32))

    def train_step(self, loss, beside_forward_ops=False):
        gradients = tf.gradients(
            loss, self.variables,
            colocate_gradients_with_ops=beside_forward_ops)
        updates = [
            variable.assign_sub(gradient * LEARNING_RATE, read_value=False)
            for variable, gradient in zip(self.variables, gradients)]
        return Signature([loss, tf.group(*updates)],
                         init=[v.initializer for v in self.variables],
                         compared=[loss, *gradients])


def lstm_train(batch, steps, inputs, units):
    weights = Weights()
    x = opaque(pseudo_random((steps, batch, inputs)))
    kernel = weights.of_layer((inputs + units, 4 * units), units)
    bias = weights.zeros(4 * units)
    elements = tf.TensorArray(tf.float32, steps).unstack(x)
    outputs = tf.TensorArray(tf.float32, steps, element_shape=(batch, units))

    def body(time, outputs, c, h):
        joined = tf.concat([elements.read(time), h], 1)
        gates = tf.nn.bias_add(tf.matmul(joined, kernel), bias)
        i, j, f, o = tf.split(gates, 4, 1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
        h = tf.sigmoid(o) * tf.tanh(c)
        return time + 1, outputs.write(time, h), c, h

    zeros = tf.zeros((batch, units))
    _, outputs, _, _ = tf.while_loop(
        lambda time, outputs, c, h: time < steps, body,
        (0, outputs, zeros, zeros), parallel_iterations=32)
    return weights.train_step(tf.reduce_mean(tf.square(outputs.stack())))


TASKS = ["/job:worker/task:0", "/job:worker/task:1"]


def beside_inputs(op):
    """The device of an op that has none: of a loop's variable, for example."""
    devices = [op.device] + [x.op.device for x in op.inputs]
    return next((device for device in devices if device), "")


def cluster_lstm_train(batch, steps, inputs, units):
    weights = Weights()
    kernels, biases, state = [], [], []
    for task in TASKS:
        with tf.device(task):
            rows = units + (units if state else inputs)
            kernels.append(weights.of_layer((rows, 4 * units), units))
            biases.append(weights.zeros(4 * units))
            state += [tf.zeros((batch, units)), tf.zeros((batch, units))]
    with tf.device(TASKS[0]):
        x = opaque(pseudo_random((steps, batch, inputs)))
        start = tf.constant(0)
    with tf.device(TASKS[-1]):
        nothing = tf.constant(0.0)

    def goes_on(time, *_):
        with tf.device(TASKS[0]):
            return time < steps

    def body(time, loss, *state):
        with tf.device(TASKS[0]):
            seen, following = tf.gather(x, time), [time + 1]
        new = []
        for task, kernel, bias, c, h in zip(TASKS, kernels, biases,
                                            state[::2], state[1::2]):
            with tf.device(task):
                joined = tf.concat([seen, h], 1)
                gates = tf.nn.bias_add(tf.matmul(joined, kernel), bias)
                i, j, f, o = tf.split(gates, 4, 1)
                c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
                seen = tf.sigmoid(o) * tf.tanh(c)
            new += [c, seen]
        with tf.device(TASKS[-1]):
            loss += tf.reduce_mean(tf.square(seen))
        return following + [loss] + new

    with tf.device(beside_inputs):
        _, loss, *_ = tf.while_loop(goes_on, body, [start, nothing] + state,
                                    parallel_iterations=32)
        return weights.train_step(loss, beside_forward_ops=True)


def cross_entropy(logits, batch):
    labels = opaque(np.arange(batch, dtype=np.int32) % CLASSES)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits))


def mlp_loss(weights, batch):
    x = opaque(pseudo_random((batch, 784)))
    v, a = weights.of_layer((784, 512), 784), weights.zeros(512)
    w, b = weights.of_layer((512, CLASSES), 512), weights.zeros(CLASSES)
    hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, v), a))
    logits = tf.nn.bias_add(tf.matmul(hidden, w), b)
    return cross_entropy(logits, batch)


def cnn_loss(weights, batch):
    x = opaque(pseudo_random((batch, 28, 28, 1)))
    channels = 1
    for more in (32, 64):
        filters = weights.of_layer((3, 3, channels, more), 9 * channels)
        x = tf.nn.conv2d(x, filters, 1, "SAME")
        x = tf.nn.relu(tf.nn.bias_add(x, weights.zeros(more)))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        channels = more
    size = 7 * 7 * channels
    w, b = weights.of_layer((size, CLASSES), size), weights.zeros(CLASSES)
    logits = tf.nn.bias_add(tf.matmul(tf.reshape(x, (batch, size)), w), b)
    return cross_entropy(logits, batch)


def mlp(batch):
    weights = Weights()
    return weights.train_step(mlp_loss(weights, batch))


def cnn(batch):
    weights = Weights()
    return weights.train_step(cnn_loss(weights, batch))


class ServedWeights(Weights):
    """Variables on the first task, the same for each replica."""

    def begin_replica(self):
        self.read = 0

    def get(self, value):
        if self.read == len(self.variables):
            with tf.device(TASKS[0]):
                self.variables.append(tf.Variable(value, use_resource=True))
        self.read += 1
        return self.variables[self.read - 1].read_value()


def replicas(loss_of, batch):
    """A replica on each task. The first one applies the mean of the gradients:
    a training with a parameter server, which is where one replica is, too."""
    weights = ServedWeights()
    losses, gradients = [], []
    for task in TASKS:
        weights.begin_replica()
        with tf.device(task):
            losses.append(loss_of(weights, batch))
            gradients.append(tf.gradients(losses[-1], weights.variables,
                                          colocate_gradients_with_ops=True))
    with tf.device(TASKS[0]):
        loss = tf.add_n(losses) / len(TASKS)
        rate = LEARNING_RATE / len(TASKS)
        updates = [
            variable.assign_sub(tf.add_n(parts) * rate, read_value=False)
            for variable, parts in zip(weights.variables, zip(*gradients))]
        return Signature([loss, tf.group(*updates)],
                         init=[v.initializer for v in weights.variables],
                         compared=[loss])


def cluster_mlp(batch):
    return replicas(mlp_loss, batch)


def cluster_cnn(batch):
    return replicas(cnn_loss, batch)


def cluster_checkpoint(tensors, elements, size):
    """A saver that is sharded, so that each task writes its variables."""
    variables, updates = [], []
    for i in range(tensors):
        with tf.device(TASKS[i * len(TASKS) // tensors]):
            variables.append(tf.Variable(
                lambda i=i: tf.fill([elements], opaque(np.float32(i + 0.5))),
                use_resource=True))
    for task in TASKS:
        with tf.device(task):
            x = opaque(pseudo_random((size, size)))
            w = tf.Variable(np.zeros((size, size), np.float32),
                            use_resource=True)
            variables.append(w)
            updates.append(w.assign_sub(
                tf.matmul(x, w.read_value()) * 1e-3, read_value=False))
    saver = tf.train.Saver(variables, sharded=True).as_saver_def()
    graph = tf.get_default_graph()
    return Signature(
        [graph.get_tensor_by_name(saver.save_tensor_name)],
        [graph.get_tensor_by_name(saver.filename_tensor_name)],
        init=[v.initializer for v in variables], beside=tf.group(*updates))


PROGRAMS = {program.__name__: program
            for program in (loop_grad, map_fn_grad, lstm_train, mlp, cnn,
                            cluster_lstm_train, cluster_mlp, cluster_cnn,
                            cluster_checkpoint)}


# --- Measurements -------------------------------------------------------------


def write_results(session, signature, entry):
    feeds = {n: entry["trips"] for n in signature.feeds}
    for i, result in enumerate(session.run(signature.compared, feeds)):
        np.save(f"{entry['results']}.{i}.npy", result)


def beside_steps(save, step, prefix):
    """A call of `save` while another thread makes steps, which it waits for."""
    def call():
        has_begun, is_over = threading.Event(), threading.Event()

        def repeat():
            while not is_over.is_set():
                step()
                has_begun.set()

        thread = threading.Thread(target=repeat)
        thread.start()
        has_begun.wait()
        begin = time.perf_counter()
        save(prefix)
        took = time.perf_counter() - begin
        is_over.set()
        thread.join()
        return took

    return call


def make_calls(entry):
    graph = tf.Graph()
    with graph.as_default():
        signature = (PROGRAMS[entry["program"]](**entry["sizes"])
                     if entry["program"] else read(entry))
    calls = {}
    ways = SERVER_WAYS if entry["workers"] else WAYS
    for way, (setting, optimised) in ways.items():
        if not (optimised and entry["as_written"]):
            session = make_session(graph, entry, setting, optimised)
            session.run(signature.init)
            if not calls and signature.compared:
                write_results(session, signature, entry)
            calls[way] = session.make_callable(signature.wanted,
                                               signature.feeds)
            if signature.beside is not None:
                calls[way] = beside_steps(
                    calls[way], session.make_callable(signature.beside),
                    entry["written"])
    return calls


def seconds(call, arguments, entry):
    times = []
    for i in range(entry["repeats"] + 1):
        if entry["written"]:
            for path in glob.glob(glob.escape(entry["written"]) + "*"):
                os.remove(path)
        start = time.perf_counter()
        for _ in range(entry["inner"]):
            took = call(*arguments)
        if i > 0:  # the first one warms up
            # A call that waits for what runs beside it measures itself.
            times.append(took if isinstance(took, float) else
                         (time.perf_counter() - start) / entry["inner"])
    return statistics.median_low(times)


def measure(call, entry):
    if entry["trips"] == 0:
        return seconds(call, [], entry)
    base = seconds(call, [np.int32(entry["base_trips"])], entry)
    return seconds(call, [np.int32(entry["trips"])], entry) - base


def main():
    with open(sys.argv[1]) as file:
        manifest = json.load(file)
    entries = manifest["entries"]
    calls = {}
    print("ready", tf.__version__, flush=True)
    for line in sys.stdin:
        index = int(line)
        entry = entries[index]
        if index not in calls:
            calls[index] = make_calls(entry)
        print(json.dumps({way: measure(call, entry)
                          for way, call in calls[index].items()}), flush=True)


main()
