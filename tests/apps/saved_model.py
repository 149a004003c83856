"""Writes a SavedModel, byte by byte: the test machine has no TensorFlow.

usage: saved_model.py FOLDER

  serving_default  y = -x, a float vector
  twice            z = x + x, by the same Placeholder
  broken           an output that is no tensor, where a third argument is given
"""
import pathlib
import sys


def varint(n):
    out = b""
    while n > 0x7f:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])


def field(number, value):
    """A message, text or number as a field of its message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def entry(number, key, value):
    return field(number, field(1, key) + field(2, value))


FLOAT = field(6, 1)  # an attribute's value: a type


def node(name, op, inputs, attr):
    return field(1, field(1, name) + field(2, op) +
                 b"".join(field(3, i) for i in inputs) +
                 entry(5, attr, FLOAT))


def signature(name, inputs, outputs):
    texts = b"".join(entry(number, key, field(1, tensor))
                     for number, names in ((1, inputs), (2, outputs))
                     for key, tensor in names.items())
    return entry(5, name, texts)


graph = (node("serving_default_x", "Placeholder", [], "dtype") +
         node("minus", "Neg", ["serving_default_x"], "T") +
         node("plus", "AddV2", ["serving_default_x"] * 2, "T"))
x = {"x": "serving_default_x:0"}
meta = (field(2, graph) +
        signature("serving_default", x, {"y": "minus:0"}) +
        signature("twice", x, {"z": "plus:0"}))
if len(sys.argv) > 2:
    meta += signature("broken", x, {"w": "ghost:0"})
folder = pathlib.Path(sys.argv[1])
folder.mkdir()
(folder / "saved_model.pb").write_bytes(field(1, 1) + field(2, meta))
