"""Writes a SavedModel, byte by byte: the test machine has no TensorFlow.

usage: saved_model.py FOLDER

  serving_default  y = -x, a float vector
  twice            z = x + x, by the same Placeholder
  broken           an output that is not a tensor, if a third argument is
                   "broken"

Where it is "saver", there are nodes and functions that save and restore the
variables, with ops that nobody knows, as of each model that TensorFlow saves.
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
STRING = field(6, 7)


def node_def(name, op, inputs, attrs):
    return (field(1, name) + field(2, op) +
            b"".join(field(3, i) for i in inputs) +
            b"".join(entry(5, key, value) for key, value in attrs.items()))


def node(name, op, inputs, attr):
    return field(1, node_def(name, op, inputs, {attr: FLOAT}))


def saver(node_name, function, op):
    """A node that calls a function of a string, whose body is that op; and
    the function."""
    strings = field(1, field(6, 7))  # a list of one type
    attrs = {"f": field(10, field(1, function)), "Tin": strings,
             "Tout": strings}
    strings_in_out = (field(2, field(1, "filename") + field(3, 7)) +
                      field(3, field(1, "name") + field(3, 7)))
    body = (field(1, field(1, function) + strings_in_out) +
            field(3, node_def(node_name, op, ["filename"], {})) +
            entry(4, "name", "filename"))
    return (field(1, node_def(node_name, "StatefulPartitionedCall",
                              ["saver_filename"], attrs)), field(1, body))


def signature(name, inputs, outputs):
    texts = b"".join(entry(number, key, field(1, tensor))
                     for number, names in ((1, inputs), (2, outputs))
                     for key, tensor in names.items())
    return entry(5, name, texts)


graph = (node("serving_default_x", "Placeholder", [], "dtype") +
         node("minus", "Neg", ["serving_default_x"], "T") +
         node("plus", "AddV2", ["serving_default_x"] * 2, "T"))
extra = sys.argv[2] if len(sys.argv) > 2 else ""
if extra == "saver":
    save, save_function = saver("save", "__inference__traced_save", "SaveV2")
    restore, restore_function = saver("restore", "__inference__traced_restore",
                                      "RestoreV2")
    graph += (field(1, node_def("saver_filename", "Placeholder", [],
                                {"dtype": STRING})) + save + restore +
              field(2, save_function + restore_function))
x = {"x": "serving_default_x:0"}
meta = (field(2, graph) +
        signature("serving_default", x, {"y": "minus:0"}) +
        signature("twice", x, {"z": "plus:0"}))
if extra == "broken":
    meta += signature("broken", x, {"w": "ghost:0"})
if extra == "saver":
    meta += field(3, field(1, "saver_filename:0") + field(2, "save:0") +
                  field(3, "restore"))
folder = pathlib.Path(sys.argv[1])
folder.mkdir()
(folder / "saved_model.pb").write_bytes(field(1, 1) + field(2, meta))
