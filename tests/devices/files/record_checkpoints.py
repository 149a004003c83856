#!/usr/bin/env python3
"""Writes the checkpoints in tests/devices/data/checkpoint, which the tests of
devices/files read, and write again byte by byte.

usage: record_checkpoints.py      in a Python with tensorflow-cpu 2.21 and
                                  safetensors 0.8

Element i of a tensor has the value (3 * i) % 5: as it is for numbers, odd or
not for truth values, with an imaginary part that is one more for complex
numbers, so many letters "s" for strings.
"""

import os
import pathlib
import shutil

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import safetensors.numpy
import tensorflow as tf
from tensorflow.python.checkpoint import checkpoint_management

TYPES = [
    tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.string,
    tf.complex64, tf.int64, tf.bool, tf.bfloat16, tf.uint16, tf.complex128,
    tf.half, tf.uint32, tf.uint64,
]
HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE.parent / "data" / "checkpoint"


def example(dtype, shape):
    """The tensor of that type and shape."""
    values = (3 * np.arange(np.prod(shape, dtype=int))) % 5
    if dtype == tf.string:
        return tf.constant([b"s" * v for v in values], tf.string, shape)
    if dtype == tf.bool:
        values = values % 2 == 1
    if dtype.is_complex:
        values = values + 1j * (values + 1)
    return tf.constant(
        values.astype(dtype.as_numpy_dtype).reshape(shape), dtype=dtype)


def save(prefix, tensors, specs=None):
    """A bundle of (name, tensor) pairs."""
    tf.raw_ops.SaveV2(
        prefix=str(FOLDER / prefix),
        tensor_names=[name for name, _ in tensors],
        shape_and_slices=specs or [""] * len(tensors),
        tensors=[tensor for _, tensor in tensors])


def record_bundles():
    save("types", [(f"of/{dtype.name}", example(dtype, [2, 3]))
                   for dtype in TYPES])
    save("shapes", [("scalar", example(tf.float32, [])),
                    ("empty", example(tf.int32, [0, 3])),
                    ("no_strings", example(tf.string, [0])),
                    ("one_string", example(tf.string, [])),
                    ("deep", example(tf.int8, [1, 2, 1, 3, 1]))])
    # More names than go between two restarts of a block.
    save("names", [(f"layer_{i // 10}/unit_{i % 10}", example(tf.uint8, [i]))
                   for i in range(50)])
    # A partitioned variable: three parts by rows, four by both dimensions.
    rows = example(tf.float32, [6, 4])
    boxes = example(tf.string, [4, 5])
    save("part_0", [("rows", rows[0:1]), ("rows", rows[3:6]),
                    ("boxes", boxes[0:3, 0:2]), ("whole", rows)],
         ["6 4 0,1:-", "6 4 3,3:0,4", "4 5 0,3:0,2", "6 4 -:-"])
    save("part_1", [("rows", rows[1:3]), ("boxes", boxes[0:3, 2:5]),
                    ("boxes", boxes[3:4, 0:2]), ("boxes", boxes[3:4, 2:5])],
         ["6 4 1,2:-", "4 5 0,3:2,3", "4 5 3,1:0,2", "4 5 3,1:2,3"])
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(FOLDER / "part_0"), str(FOLDER / "part_1")],
        destination_prefix=str(FOLDER / "sliced"), delete_old_dirs=False)


def record_others():
    tf.raw_ops.Save(filename=str(FOLDER / "v1"), tensor_names=["x"],
                    data=[example(tf.float32, [2])])
    checkpoint_management.update_checkpoint_state_internal(
        str(FOLDER), str(FOLDER / "types"),
        all_model_checkpoint_paths=[str(FOLDER / "shapes"),
                                    str(FOLDER / "types")],
        all_model_checkpoint_timestamps=[1.5, 2.5],
        save_relative_paths=True)
    tensors = {
        f"of/{dtype.name}": example(dtype, [2, 3]).numpy() for dtype in TYPES
        if dtype not in (tf.string, tf.complex128, tf.bfloat16)
    }
    tensors["scalar"] = np.asarray(example(tf.float32, []))
    tensors["empty"] = example(tf.int32, [0, 3]).numpy()
    safetensors.numpy.save_file(tensors, FOLDER / "types.safetensors")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    record_bundles()
    record_others()


if __name__ == "__main__":
    main()
