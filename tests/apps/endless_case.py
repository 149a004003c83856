"""Writes a case whose run does not end, byte by byte.

usage: endless_case.py FOLDER

  while p: p = p

The folder has p_0.npy, the scalar true, already.
"""
import json
import pathlib
import sys


def field(number, value):
    """A message, text or small number as a field of its message."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


BOOL = field(6, 10)  # an attribute's value: a type


def node(name, op, inputs, **attrs):
    return field(1, field(1, name) + field(2, op) +
                 b"".join(field(3, i) for i in inputs) +
                 b"".join(field(5, field(1, key) + field(2, value))
                          for key, value in attrs.items()))


graph = (node("p", "Placeholder", [], dtype=BOOL) +
         node("enter", "Enter", ["p"], T=BOOL, frame_name=field(2, "while")) +
         node("merge", "Merge", ["enter", "next"], T=BOOL, N=field(3, 2)) +
         node("cond", "LoopCond", ["merge"]) +
         node("switch", "Switch", ["merge", "cond"], T=BOOL) +
         node("body", "Identity", ["switch:1"], T=BOOL) +
         node("next", "NextIteration", ["body"], T=BOOL) +
         node("exit", "Exit", ["switch"], T=BOOL))
folder = pathlib.Path(sys.argv[1])
(folder / "graph.pb").write_bytes(graph)
(folder / "case.json").write_text(json.dumps({
    "name": "endless",
    "runs": [{"feeds": {"p:0": "p_0.npy"}, "fetches": ["exit:0"],
              "expect": ["p_0.npy"]}]}))
