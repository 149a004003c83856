#!/usr/bin/env python3
"""TensorFlow reads our checkpoints and we read TensorFlow's, and the same with
the safetensors package.

usage: checkpoints.py      in a Python with tensorflow and safetensors;
                           TAGFLOW_BIN is the folder of the built programs
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import safetensors.numpy
import tensorflow as tf

TAGFLOW = pathlib.Path(os.environ["TAGFLOW_BIN"]).resolve() / "tagflow"
TYPES = [
    tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.string,
    tf.complex64, tf.int64, tf.bool, tf.bfloat16, tf.uint16, tf.complex128,
    tf.half, tf.uint32, tf.uint64,
]
SHAPES = [[], [0], [7], [3, 0, 2], [4, 5], [2, 3, 1, 4]]
checks = 0


def tagflow(*arguments, code=0):
    """What the command prints."""
    done = subprocess.run([TAGFLOW, *map(str, arguments)], check=False,
                          capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"tagflow {arguments}: {done.returncode}\n{done.stderr}")
    return done.stdout


def same(what, actual, wanted):
    """Ends the program where two arrays differ."""
    global checks
    checks += 1
    actual, wanted = np.asarray(actual), np.asarray(wanted)
    if (actual.dtype != wanted.dtype or actual.shape != wanted.shape or
            not np.array_equal(actual, wanted)):
        sys.exit(f"{what}: {actual!r} is not {wanted!r}")


def random_tensor(random, dtype, shape):
    count = int(np.prod(shape))
    if dtype == tf.string:
        values = [random.bytes(random.integers(300)) for _ in range(count)]
        return tf.constant(values, tf.string, shape)
    if dtype == tf.bool:
        return tf.constant(random.integers(2, size=shape) == 1)
    values = random.integers(0, 100, size=shape)
    if dtype.is_complex:
        values = values + 1j * random.integers(0, 100, size=shape)
    return tf.constant(np.asarray(values).astype(dtype.as_numpy_dtype), dtype)


def random_tensors():
    random = np.random.default_rng(1)
    return {
        f"{dtype.name}/{len(shape)}_{i}": random_tensor(random, dtype, shape)
        for dtype in TYPES for i, shape in enumerate(SHAPES)
    }


def save(prefix, tensors):
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=list(tensors),
                      shape_and_slices=[""] * len(tensors),
                      tensors=list(tensors.values()))


def check_restored(what, prefix, tensors):
    """That TensorFlow finds just these in a checkpoint."""
    listed = dict(tf.train.list_variables(str(prefix)))
    if sorted(listed) != sorted(tensors):
        sys.exit(f"{what}: {sorted(listed)}")
    restored = tf.raw_ops.RestoreV2(
        prefix=str(prefix), tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        dtypes=[tensor.dtype for tensor in tensors.values()])
    for (name, wanted), actual in zip(tensors.items(), restored):
        same(f"{what}: {name}", actual, wanted)


def check_bundles(folder):
    tensors = random_tensors()
    save(folder / "theirs", tensors)
    listed = json.loads(tagflow("checkpoint", "ls", folder / "theirs", "--json"))
    for tensor in listed["tensors"]:
        same(tensor["name"], tensor["shape"],
             tensors[tensor["name"]].shape.as_list())
    for shards in (1, 2, 7):
        tagflow("checkpoint", "convert", folder / "theirs", folder / "ours",
                "--shards", shards)
        check_restored(f"{shards} shards", folder / "ours", tensors)
        tagflow("checkpoint", "diff", folder / "theirs", folder / "ours")


def check_slices(folder):
    """Partitioned variables of any number of dimensions."""
    random = np.random.default_rng(2)
    for case in range(20):
        shape = list(random.integers(2, 9, size=random.integers(1, 4)))
        whole = random_tensor(random, TYPES[case % len(TYPES)], shape)
        if whole.dtype == tf.string:
            continue  # TensorFlow restores no slices of strings
        axis = random.integers(len(shape))
        cut = int(random.integers(1, shape[axis]))
        specs, parts = [], []
        for start, length in ((0, cut), (cut, int(shape[axis]) - cut)):
            text = ["-"] * len(shape)
            text[axis] = f"{start},{length}"
            specs.append(" ".join(map(str, shape)) + " " + ":".join(text))
            begin, size = [0] * len(shape), list(shape)
            begin[axis], size[axis] = start, length
            parts.append(tf.slice(whole, begin, size))
        prefix = folder / f"slices_{case}"
        tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=["t", "t"],
                          shape_and_slices=specs, tensors=parts)
        tagflow("checkpoint", "convert", prefix, folder / "whole")
        check_restored(specs[0], folder / "whole", {"t": whole})
        # Our own slices, restored by TensorFlow.
        graph = tf.Graph()
        with graph.as_default():
            tf.raw_ops.SaveV2(prefix=str(folder / "ours"),
                              tensor_names=["t", "t"], shape_and_slices=specs,
                              tensors=[part.numpy() for part in parts],
                              name="save")
        file = folder / "graph.pb"
        file.write_bytes(graph.as_graph_def().SerializeToString())
        tagflow("run", file, "--target", "save")
        check_restored(specs[0], folder / "ours", {"t": whole})
        same("the slice", tf.raw_ops.RestoreV2(
            prefix=str(folder / "ours"), tensor_names=["t"],
            shape_and_slices=[specs[1]], dtypes=[whole.dtype])[0], parts[1])


def check_savers(folder):
    """The graph of a TF1 saver restores in our engine, by slices too."""
    tensors = {"a": tf.constant([[1.0, 2.0], [3.0, 4.0]]),
               "b": tf.constant([b"x", b"yz"])}
    save(folder / "saver", tensors)
    graph = tf.Graph()
    with graph.as_default():
        a, part, b = tf.raw_ops.RestoreV2(
            prefix=str(folder / "saver"), tensor_names=["a", "a", "b"],
            shape_and_slices=["", "2 2 1,1:-", ""],
            dtypes=[tf.float32, tf.float32, tf.string])
        tf.identity(a, "whole")
        tf.identity(part, "part")
        tf.identity(b, "words")
    file = folder / "restore.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    out = json.loads(tagflow("run", file, "--json", "--fetch", "whole",
                             "--fetch", "part", "--fetch", "words"))
    values = [fetch["value"] for fetch in out["fetches"].values()]
    if values != [[[1, 2], [3, 4]], [[3, 4]], ["x", "yz"]]:
        sys.exit(f"restored {values}")


def check_checkpoints(folder):
    """What tf.train.Checkpoint and its manager write."""
    model = tf.train.Checkpoint(weight=tf.Variable([1.0, 2.0]),
                                step=tf.Variable(7, dtype=tf.int64))
    manager = tf.train.CheckpointManager(model, folder / "managed", 3)
    for _ in range(5):
        model.step.assign_add(1)
        manager.save()
    name = "step/.ATTRIBUTES/VARIABLE_VALUE"
    value = json.loads(tagflow("checkpoint", "cat", folder / "managed", name,
                               "--json"))
    same("the newest step", value["value"], 12)


def check_safetensors(folder):
    tensors = {
        name: np.asarray(tensor) for name, tensor in random_tensors().items()
        if tensor.dtype not in (tf.string, tf.complex128, tf.bfloat16)
    }
    safetensors.numpy.save_file(tensors, folder / "theirs.safetensors")
    tagflow("checkpoint", "convert", folder / "theirs.safetensors",
            folder / "bundle")
    check_restored("of safetensors", folder / "bundle",
                   {name: tf.constant(value) for name, value in tensors.items()})
    tagflow("checkpoint", "convert", folder / "bundle",
            folder / "ours.safetensors")
    read = safetensors.numpy.load_file(folder / "ours.safetensors")
    if sorted(read) != sorted(tensors):
        sys.exit(f"safetensors: {sorted(read)}")
    for name, wanted in tensors.items():
        same(name, read[name], wanted)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_bundles(folder)
        check_slices(folder)
        check_savers(folder)
        check_checkpoints(folder)
        check_safetensors(folder)
    print(f"checkpoints: {checks} tensors are the same")


if __name__ == "__main__":
    main()
