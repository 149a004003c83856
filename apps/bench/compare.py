"""Times runs of GraphDef files in TensorFlow, for `tagflow bench compare`.

usage: compare.py MANIFEST

MANIFEST is JSON: {"entries": [{"name", "graph", "feeds", "fetches", "targets",
"trips", "inner", "repeats", "devices", "as_written", "threads", "init",
"written"}]}. Prints "ready VERSION", then answers each line of stdin, the index
of an entry, with JSON: for each way in which TensorFlow can run it the seconds
of one run, the median of `repeats`, each the mean of `inner` runs. Where
`trips` is not 0, the feed is the number of trips, and the seconds of a run of
none are subtracted. The operations of `init` run once before. Before each
measurement, files whose names begin with `written` are removed.

The ways are TensorFlow as it comes, in the thread of the caller (an empty step
wakes nobody then), and each of them with the graph optimisers off. Only the
latter two count where the graph is to run `as_written`: an optimiser would take
the ops out whose time is asked for. `threads` is how many threads run ops, and
how many run parts of one op; 0 stands for as many as the machine has. Since a
process has the threads of its first session, it is asked only for entries whose
`threads` are the same.
"""
import glob
import json
import os
import statistics
import sys
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


def make_session(graph, entry, threads, optimised):
    config = tf.ConfigProto(
        device_count={"CPU": entry["devices"]},
        inter_op_parallelism_threads=threads or entry["threads"],
        intra_op_parallelism_threads=entry["threads"])
    if not optimised:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
    return tf.Session(graph=graph, config=config)


def make_calls(entry):
    definition = tf.GraphDef()
    with open(entry["graph"], "rb") as file:
        definition.ParseFromString(file.read())
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
        wanted = [graph.get_tensor_by_name(name) for name in entry["fetches"]]
        targets = [graph.get_operation_by_name(n) for n in entry["targets"]]
        if targets:
            wanted.append(targets[0] if len(targets) == 1
                          else tf.group(*targets))
        feeds = [graph.get_tensor_by_name(name) for name in entry["feeds"]]
        init = [graph.get_operation_by_name(n) for n in entry["init"]]
    calls = {}
    for way, (threads, optimised) in WAYS.items():
        if not (optimised and entry["as_written"]):
            session = make_session(graph, entry, threads, optimised)
            session.run(init)
            calls[way] = session.make_callable(wanted, feeds)
    return calls


def seconds(call, arguments, entry):
    times = []
    for i in range(entry["repeats"] + 1):
        if entry["written"]:
            for path in glob.glob(glob.escape(entry["written"]) + "*"):
                os.remove(path)
        start = time.perf_counter()
        for _ in range(entry["inner"]):
            call(*arguments)
        if i > 0:  # the first one warms up
            times.append((time.perf_counter() - start) / entry["inner"])
    return statistics.median_low(times)


def measure(call, entry):
    if entry["trips"] == 0:
        return seconds(call, [], entry)
    none = seconds(call, [np.int32(0)], entry)
    return seconds(call, [np.int32(entry["trips"])], entry) - none


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
