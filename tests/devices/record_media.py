#!/usr/bin/env python3
"""Records what TensorFlow makes of summaries, pictures and sounds.

Usage: record_media.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run by CI)

Writes summary.txt, and media.txt of the files that have no more than a few
hundred bytes, in the form that record_ops.py explains. Strings that are no text
are hexadecimal: "bytes [2] x0a1b x".
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

import record_array_ops
from record_array_ops import attr_text, rare, rnd, tensor_text

CODES = record_array_ops.CODES
RAW = tf.raw_ops


def compute(op, inputs, attrs):
    """In a graph: some of these ops do not run outside of one."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        names = [arg.name for arg in
                 record_array_ops.op_def_registry.get(op).input_arg]
        given = {name: [tf.compat.v1.placeholder_with_default(part, None)
                        for part in value] if isinstance(value, list) else
                 tf.compat.v1.placeholder_with_default(value, None)
                 for name, value in zip(names, inputs)}
        result = getattr(RAW, op)(**given, **attrs, name="op")
        result = result if isinstance(result, (list, tuple)) else [result]
        return session.run(list(result))


def array_text(value):
    # NumPy's own strings lose zeros at their ends.
    value = (np.array(value, object) if isinstance(value, (bytes, str))
             else np.asarray(value))
    if value.dtype.kind not in "OSU":
        return tensor_text(tf.constant(value))
    dims = ",".join(str(dim) for dim in value.shape)
    parts = [part if isinstance(part, bytes) else part.encode()
             for part in value.ravel().tolist()]
    return " ".join([f"bytes [{dims}]", *("x" + part.hex() for part in parts)])


def record(path, cases):
    lines = []
    for op, inputs, attrs in cases:
        flat = [item for value in inputs for item in
                (value if isinstance(value, list) else [value])]
        lines.append(f"op {op}")
        lines += [attr_text(name, attrs[name]) for name in attrs
                  if attrs[name] != ""]
        lines += ["in " + array_text(value) for value in flat]
        try:
            lines += ["out " + array_text(value)
                      for value in compute(op, inputs, attrs)]
        except tf.errors.OpError as caught:
            lines.append(f"error {CODES[caught.error_code]}")
    path.write_text("\n".join(lines) + "\n")


def reals(dims, dtype, low=-300, high=300):
    if dtype.startswith("uint"):
        low = 0
    if dtype.endswith("int8"):
        low, high = max(low, -128), 127
    values = np.array([rnd.uniform(low, high) for _ in range(
        int(np.prod(dims, dtype=np.int64)))]).reshape(dims)
    if rare(0.2):
        values *= 10.0 ** rnd.randint(-14, 2)
    return values.astype(dtype)


def summaries():
    for dtype in record_array_ops.REAL:
        if dtype == "bfloat16":
            continue
        for dims in [[], [0], [7], [2, 3]]:
            yield "HistogramSummary", ["h", reals(dims, dtype)], {}
            yield "ScalarSummary", [np.full(dims, "t", object),
                                    reals(dims, dtype)], {}
    for value in [np.nan, np.inf, -np.inf]:
        yield "HistogramSummary", ["h", np.array([1, value])], {}
    yield "HistogramSummary", [np.array(["h"], object), np.zeros(2)], {}
    for dtype in ["uint8", "float32", "float16", "float64"]:
        for channels in [1, 3, 4, 2]:
            for low in [0, -90]:
                pictures = reals([rnd.randint(1, 3), rnd.randint(1, 4),
                                  rnd.randint(1, 5), channels], dtype, low)
                if dtype != "uint8" and rare(0.3):
                    pictures.flat[0] = rnd.choice([np.nan, np.inf])
                yield "ImageSummary", ["i", pictures], {
                    "max_images": rnd.randint(1, 3)}
    for dims in [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1], [2, 1, 1, 1]]:
        yield "ImageSummary", ["i", np.zeros(dims, np.float32)], {}
    yield "ImageSummary", [np.array(["i"], object),
                           np.zeros([1, 1, 1, 1], np.float32)], {}
    for dims in [[2, 5, 2], [2, 5], [1, 0, 1], [0, 1], [3], [1, 2, 0],
                 [4, 1, 3]]:
        for rate in [0.4, 8000.5, 44100.0]:
            yield "AudioSummaryV2", [
                "a", reals(dims, "float32", -1.2, 1.2), np.float32(rate)], {
                    "max_outputs": rnd.randint(1, 3)}
    for rate in [0.0, -1.0, 1e20, np.nan]:
        yield "AudioSummaryV2", ["a", np.zeros([1, 1], np.float32),
                                 np.float32(rate)], {}
    for value in [np.float32(1.5), np.zeros([2, 0]), np.array([True, False]),
                  np.array(["a", "bc"], object), np.arange(3, dtype=np.int8),
                  np.array([1 + 2j], np.complex64)]:
        yield "TensorSummary", [value], {}
        for metadata in [b"", b"\x0a\x03\x0a\x01p"]:
            yield "TensorSummaryV2", ["t", value, metadata], {}
    yield "TensorSummaryV2", ["t", np.float32(1),
                              np.array([b"", b""], object)], {}


def main():
    folder = pathlib.Path(sys.argv[1])
    record(folder / "summary.txt", summaries())


if __name__ == "__main__":
    main()
