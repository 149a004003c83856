#!/usr/bin/env python3
"""Stands for a Python with TensorFlow: answers `tagflow bench models` with a
model that negates its input. usage: fake_tensorflow.py -c SCRIPT MANIFEST

Of the model "lstm" the result is wrong, for "bigru" it says what is no answer.
For `tagflow bench compare` every run takes seconds, fewest in the caller's
thread; of "sum" it says what is no answer.
"""
import json
import os
import struct
import sys


def field(number, payload):
    """A field of a protocol buffer: bytes, or text."""
    if isinstance(payload, str):
        payload = payload.encode()
    return bytes([number << 3 | 2, len(payload)]) + payload


def node(name, op, inputs, type_attr):
    attr = field(1, type_attr) + field(2, b"\x30\x01")  # type: DT_FLOAT
    return field(1, field(1, name) + field(2, op) +
                 b"".join(field(3, i) for i in inputs) + field(5, attr))


def npy(values):
    header = str({"descr": "<f4", "fortran_order": False,
                  "shape": (len(values),)})
    header += " " * (117 - len(header)) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
            header.encode() + struct.pack(f"<{len(values)}f", *values))


with open(sys.argv[3]) as file:
    manifest = json.load(file)
print("ready 0.0", flush=True)
for line in sys.stdin:
    if "entries" in manifest:
        entry = manifest["entries"][int(line)]
        times = {"default": 3.0, "caller's thread": 2.5, "not optimised": 2.75}
        if entry["as_written"]:
            del times["default"], times["caller's thread"]
        print(json.dumps({} if entry["name"] == "sum" else times), flush=True)
        continue
    name = manifest["models"][int(line)]["name"]
    files = {
        ".pb": node("x", "Placeholder", [], "dtype") +
        node("y", "Neg", ["x"], "T"),
        ".feed.npy": npy([1, -2, 3]),
        ".fetch.npy": npy([-1, 2, 3 if name == "lstm" else -3]),
    }
    for ending, content in files.items():
        path = os.path.join(manifest["folder"], name + ending)
        with open(path, "wb") as file:
            file.write(content)
    if name == "bigru":
        print("Killed", flush=True)
        continue
    print(json.dumps({"feed": "x:0", "fetch": "y:0", "how": "session",
                      "seconds": 0.25}), flush=True)
