#!/usr/bin/env python3
"""Stands for a Python with TensorFlow: answers `tagflow bench models` with a
model that negates its input. usage: fake_tensorflow.py -c SCRIPT MANIFEST

Of the model "lstm" the result is wrong, of "mobilenet" that of the SavedModel,
for "bigru" it says what is not an answer. The loss of a train step is its
negated input; of "lstm_train" the losses are wrong.
For `tagflow bench compare` every run takes seconds, fewest in the caller's
thread; of "sum" it says what is not an answer. Of the program "map_fn_grad" the
results are right, of others wrong.
"""
import json
import os
import struct
import sys


def field(number, payload):
    """A field of a protocol buffer: bytes, or text."""
    if isinstance(payload, str):
        payload = payload.encode()
    size, left = [], len(payload)
    while left > 127:
        size.append(left & 127 | 128)
        left >>= 7
    return bytes([number << 3 | 2, *size, left]) + payload


def node(name, op, inputs, type_attr):
    attr = field(1, type_attr) + field(2, b"\x30\x01")  # type: DT_FLOAT
    return field(1, field(1, name) + field(2, op) +
                 b"".join(field(3, i) for i in inputs) + field(5, attr))


def tensors(number, names):
    """Of a signature: its inputs or outputs, by name."""
    return b"".join(
        field(number, field(1, name) +
              field(2, field(1, tensor) + b"\x10\x01"))  # dtype: DT_FLOAT
        for name, tensor in names.items())


def saved_model(graph, signature, inputs, outputs):
    definition = tensors(1, inputs) + tensors(2, outputs)
    return b"\x08\x01" + field(2, field(1, field(4, "serve")) +
                               field(2, graph) +
                               field(5, field(1, signature) +
                                     field(2, definition)))


def npy(values):
    """A vector, or, of a number, a scalar."""
    shape = (len(values),) if isinstance(values, list) else ()
    values = values if isinstance(values, list) else [values]
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape})
    header += " " * (117 - len(header)) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
            header.encode() + struct.pack(f"<{len(values)}f", *values))


def write_results(entry):
    trips = range(entry["trips"])
    results = [npy(-1.0)]
    if entry["program"] == "map_fn_grad":
        results = [npy([i * i + 1.0 for i in trips]),
                   npy([2.0 * i for i in trips])]
    for i, result in enumerate(results):
        with open(f"{entry['results']}.{i}.npy", "wb") as file:
            file.write(result)


with open(sys.argv[3]) as file:
    manifest = json.load(file)
print("ready 0.0", flush=True)
for line in sys.stdin:
    if "entries" in manifest:
        entry = manifest["entries"][int(line)]
        if entry["program"]:
            write_results(entry)
        times = {"default": 3.0, "caller's thread": 2.5, "not optimised": 2.75}
        if entry["as_written"]:
            del times["default"], times["caller's thread"]
        print(json.dumps({} if entry["name"] == "sum" else times), flush=True)
        continue
    name = manifest["models"][int(line)]["name"]
    graph = (node("x", "Placeholder", [], "dtype") +
             node("labels", "Placeholder", [], "dtype") +
             node("y", "Neg", ["x"], "T"))
    folder = os.path.join(manifest["folder"], name)
    os.makedirs(folder, exist_ok=True)
    if name.endswith("_train"):
        model = saved_model(graph, "train", {"x": "x:0", "y": "labels:0"},
                            {"loss": "y:0"})
        loss = -3.0 if name == "lstm_train" else -2.0
        files = {
            ".x.npy": npy(2.0),
            ".y.npy": npy(1.0),
            ".losses.npy": npy([-2.0] * (manifest["losses"] - 1) + [loss]),
        }
    else:
        result = "x:0" if name == "mobilenet" else "y:0"
        model = saved_model(graph, "forward", {"x": "x:0"}, {"y": result})
        files = {
            ".pb": graph,
            ".feed.npy": npy([1.0, -2.0, 3.0]),
            ".fetch.npy": npy([-1.0, 2.0, 3.0 if name == "lstm" else -3.0]),
        }
    files["/saved_model.pb"] = model
    for ending, content in files.items():
        with open(folder + ending, "wb") as file:
            file.write(content)
    if name == "bigru":
        print("Killed", flush=True)
        continue
    print(json.dumps({"feed": "x:0", "fetch": "y:0", "how": "session",
                      "seconds": 0.25}), flush=True)
