#!/usr/bin/env python3
"""What a call from Python costs, beside jax.jit and TensorFlow's
ConcreteFunction in the same process.

usage: overhead.py [SECONDS]

Each row is one tiny function: y = x + x. The time is the median of
51 batches, which take about SECONDS each, 0.02 by default, after a warm-up of
one batch. The libraries take turns, so that a slow moment of the machine hits
all. A library that is not installed is left out. The results of jax are waited
for (`block_until_ready`) and made NumPy arrays, as those of TensorFlow are.

The C++ call alone is `apps/bench`'s empty step: build/release/apps/bench.
"""

import statistics
import sys
import time

import numpy as np

import tagflow


def node(name, op, inputs=(), **types):
    attrs = "".join(f" attr {{ key: '{key}' value {{ type: {value} }} }}"
                    for key, value in types.items())
    return f"node {{ name: '{name}' op: '{op}'" + "".join(
        f" input: '{i}'" for i in inputs) + attrs + " }\n"


def with_tagflow(x):
    graph = tagflow.Graph._parse_text(
        node("x", "Placeholder", dtype="DT_FLOAT") +
        node("y", "AddV2", ["x", "x"], T="DT_FLOAT"))
    session = tagflow.Session(graph)
    call = session.make_callable("y", ["x"])
    tensor = tagflow.Tensor(x)
    function = tagflow.function(lambda v: v + v)
    return {"tagflow.Callable": lambda: call(x),
            "tagflow.Callable of a Tensor": lambda: call(tensor),
            "tagflow.function": lambda: function(x),
            "tagflow.Session.run": lambda: session.run("y", {"x": x})}


def with_jax(x):
    import jax
    function = jax.jit(lambda v: v + v)
    on_device = jax.numpy.asarray(x)
    return {"jax.jit, NumPy in and out": lambda: np.asarray(function(x)),
            "jax.jit, arrays of jax": lambda:
                function(on_device).block_until_ready()}


def with_tensorflow(x):
    import tensorflow as tf
    function = tf.function(lambda v: v + v).get_concrete_function(
        tf.TensorSpec(x.shape, tf.float32))
    constant = tf.constant(x)
    return {"ConcreteFunction, NumPy in and out": lambda:
                function(tf.constant(x)).numpy(),
            "ConcreteFunction, tensors of TensorFlow": lambda:
                function(constant)}


def measure(calls, seconds):
    counts = {}
    for name, call in calls.items():
        start = time.perf_counter()
        for _ in range(100):
            call()
        counts[name] = max(
            1, int(seconds / (time.perf_counter() - start) * 100))
    times = {name: [] for name in calls}
    for _ in range(51):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name].append((time.perf_counter() - start) / counts[name])
    return {name: statistics.median(of) for name, of in times.items()}


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.02
    for x in (np.float32(1), np.ones(10, np.float32),
              np.ones((100, 100), np.float32)):
        calls = with_tagflow(np.asarray(x))
        for make in (with_jax, with_tensorflow):
            try:
                calls.update(make(np.asarray(x)))
            except ImportError as error:
                print(f"left out: {error}", file=sys.stderr)
        for name, time_of in measure(calls, seconds).items():
            print(f"float32{list(np.shape(x))}\t{name}\t"
                  f"{time_of * 1e6:.2f} us")


if __name__ == "__main__":
    main()
