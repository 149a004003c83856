#!/usr/bin/env python3
"""Records what TensorFlow makes of random inputs of the ops that tagflow has.

Usage: record_random_ops.py OUTPUT_FOLDER [SEED [ROUNDS [THEME...]]]
       (needs tensorflow-cpu; not run by CI)

Writes a folder per case, which `tagflow conform OUTPUT_FOLDER` replays, and
log.txt with a line for each. tests/apps/conform_cases/random_ops.tar.xz holds
what select_random_ops.py took of seeds 1 to 4. Graphs run as TensorFlow 1's do,
without optimisers; inputs are fed, or constants, so that shapes are inferred.
Every case is run as it is made, and some again with one thing changed: an
attribute, a shape, a value at a limit.

What LEFT_OUT names is not recorded: there tagflow differs on purpose. Nor is
what oneDNN makes of a case, since its kernels disagree with TensorFlow's own
about what is empty, nor an output that TensorFlow does not write.
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

import random_limits
import random_nn_ops
import random_ops
import random_programs
import record_array_ops
from random_graphs import Program, TensorFlow, write_case
from random_ops import rnd

# Parts of TensorFlow's messages, and why such a case is not an example.
LEFT_OUT = {
    "OpKernel": "no kernel for that type",
    "Could not allocate ndarray": "numpy's limits, not TensorFlow's",
    "not implemented": "limits of TensorFlow's kernels, which tagflow lacks",
    "not supported": "the same",
    "not yet support": "the same",
    "only support": "the same",
    "Unhandled input dimensions": "the same",
    "does not support dilations": "the same",
    "inputs rank not in": "the same",
    "values between 1 and 7": "the same",
    "cannot be converted to a boolean": "the same",
    "No WhereOp available": "the same",
    "must all have at least 1 element": "the same",
    "has size zero, but element shape": "the same",
    "out_backprop doesn't match computed":
        "dilated, which its gradient does not know",
    "block_shape must have rank 1": "it refuses shapes that are not known",
    "Shape must be rank -1": "it refuses EnsureShape of any rank",
    "Unexpected error in binary operator": "a division by zero, badly told",
    "Signature mismatch": "no kernel for that type, by another code",
    "has been removed in version": "tagflow keeps TopK",
    "only uninitialized tensors": "a list whose first element is not set",
    "has too many elements": "empty shapes with huge dimensions are empty",
    "would have more than 2**63 - 1": "the same",
    "Unsupported dtype": "Range's shape function lacks types",
}
# Counts of inputs or outputs, with which the rest of the node must agree.
COUNTS = ("N", "num_split", "num", "num_partitions", "num_outs")
SIZES = [-1, 0, 1, 2, 3, -2, 10, 2**31 - 1, -2**31, 2**62]


def arrays_of(value):
    if isinstance(value, list):
        return [arrays_of(item) for item in value]
    array = value.numpy() if hasattr(value, "numpy") else value
    # A string by itself is bytes to numpy.
    return np.array(array, object) if isinstance(array, bytes) else np.asarray(
        array)


def type_name(array):
    return "string" if array.dtype == object else tf.as_dtype(array.dtype).name


def plain(attrs):
    return {name: value.name if isinstance(value, tf.DType) else value
            for name, value in attrs.items()}


def change_attr(op_def, inputs, attrs):
    attr = rnd.choice(list(op_def.attr))
    if attr.name in COUNTS:
        return
    if attr.type == "int":
        attrs[attr.name] = rnd.choice(SIZES)
    elif attr.type == "bool":
        attrs[attr.name] = rnd.random() < 0.5
    elif attr.type == "float":
        attrs[attr.name] = rnd.choice([0.0, -1.0, float("nan"), float("inf"),
                                       1e-30, 2.0])
    elif attr.type == "string":
        allowed = [word.decode() for word in attr.allowed_values.list.s]
        attrs[attr.name] = rnd.choice(allowed + ["", "bogus"])
    elif attr.type == "shape":
        attrs[attr.name] = rnd.choice([None, [], [2], [-1, 2]])
    elif attr.type == "list(int)" and attrs.get(attr.name):
        values = list(attrs[attr.name])
        how = rnd.randrange(3)
        if how == 0:
            values[rnd.randrange(len(values))] = rnd.choice(SIZES)
        elif how == 1:
            values.pop()
        else:
            values.append(1)
        attrs[attr.name] = values
    elif attr.type == "type":
        dtype = rnd.choice(random_ops.types_of(op_def.name, attr.name))
        typed = [i for i, arg in enumerate(op_def.input_arg)
                 if arg.type_attr == attr.name and i < len(inputs)]
        attrs.pop(attr.name, None)
        if not typed:
            attrs[attr.name] = dtype
        elif dtype != "string":
            convert = lambda x: x if x.dtype == object else x.astype(
                random_ops.np_type(dtype))
            for i in typed:
                inputs[i] = [convert(x) for x in inputs[i]] if isinstance(
                    inputs[i], list) else convert(inputs[i])


def with_other_shape(array):
    dims = list(array.shape)
    at = rnd.randrange(len(dims)) if dims else 0
    how = rnd.randrange(7)
    if how == 0:
        dims = [1] + dims
    elif how == 1:
        dims = dims + [1]
    elif how < 5 and dims:
        dims[at] = (0, 1, dims[at] + 1)[how - 2]
    elif how == 5:
        dims = [] if dims else [0]
    else:
        dims = ([1] * rnd.choice([5, 6, 7, 8, 9, 10, 28]) + dims)[-32:]
    count = int(np.prod(dims, dtype=np.int64))
    if array.size == 0:
        return random_ops.tensor(dims, type_name(array), 0, 2)
    return np.resize(array.ravel(), [count]).reshape(dims)


def with_limit(array):
    array = array.copy()
    if array.size == 0 or array.dtype == object:
        return array
    at = rnd.randrange(array.size)
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        value = rnd.choice([-1, 0, info.min, info.max, -2, 100,
                            info.max // 2 + 1])
        array.reshape(-1)[at] = max(int(info.min), int(value))
    else:
        array.reshape(-1)[at] = random_ops.special(type_name(array))
    return array


def mutate(op, inputs, attrs):
    """The case with one thing changed."""
    op_def = op_def_registry.get(op)
    inputs = [list(v) if isinstance(v, list) else v for v in inputs]
    attrs = dict(attrs)
    how = rnd.random()
    places = [(i, j) for i, v in enumerate(inputs)
              for j in (range(len(v)) if isinstance(v, list) else [None])]
    if not places or (how < 0.25 and op_def.attr):
        if op_def.attr:
            change_attr(op_def, inputs, attrs)
        return inputs, attrs

    def at(place):
        i, j = place
        return inputs[i] if j is None else inputs[i][j]

    if how >= 0.65:  # sizes and indices rather than data
        places = [p for p in places
                  if at(p).size and at(p).dtype.kind in "iu"] or places
    i, j = rnd.choice(places)
    change = with_other_shape if how < 0.65 else with_limit
    if j is None:
        inputs[i] = change(inputs[i])
    else:
        inputs[i][j] = change(inputs[i][j])
    return inputs, attrs


def same(array, other):
    if array is None or other is None:
        return array is other
    if array.dtype == object:
        return array.shape == other.shape and bool(np.all(array == other))
    return array.shape == other.shape and array.tobytes() == other.tobytes()


class Recorder:
    def __init__(self, folder, seed):
        self.folder, self.seed = folder, seed
        self.servers = [TensorFlow(fill=85), TensorFlow(fill=170)]
        self.count = 0
        self.log = open(folder / "log.txt", "a")

    def run(self, program, label, text):
        """TensorFlow's outputs, or None."""
        kind, value, message = self.servers[0].run(program)
        written = value
        if kind == "ok":
            again = self.servers[1].run(program)
            if again[0] == "ok":
                kept = [i for i, (a, b) in enumerate(zip(value, again[1]))
                        if same(a, b)]
                written = [value[i] for i in kept]
                program.fetches = [program.fetches[i] for i in kept]
            else:
                kind, message = "unstable", str(again)
        name = f"{label}_{self.seed}_{self.count}"
        self.count += 1
        reason = next((why for part, why in LEFT_OUT.items()
                       if part in message), None)
        if kind not in ("ok", "error"):
            reason = f"{kind} {value} {message}"
        if not program.fetches:
            reason = "no output that TensorFlow writes"
        if reason is None:
            write_case(self.folder, name, program, (kind, written, message))
        print(name, reason or "case", text[:600], file=self.log, flush=True)
        return value if kind == "ok" else None

    def run_op(self, op, inputs, attrs):
        program = Program(constants=rnd.random() < 0.25)
        try:
            program.fetches = program.add(op, inputs, attrs)
        except (AttributeError, ValueError, OverflowError,
                TypeError) as refused:
            # No NodeDef has such an attribute.
            print(op, "cannot be written:", refused, file=self.log)
            return None
        program.fetches = program.fetches or [program.graph.node[-1].name]
        return self.run(program, op, f"{inputs} {attrs}".replace("\n", " "))

    def run_theme(self, theme):
        result = None
        cases = theme()
        while True:
            try:
                case = cases.send(result)
            except StopIteration:
                return
            if isinstance(case, Program):
                result = self.run(case, case.label, case.describe)
                continue
            op, inputs, attrs = case
            inputs, attrs = [arrays_of(v) for v in inputs], plain(attrs)
            result = self.run_op(op, inputs, attrs)
            if theme in record_array_ops.THEMES and result is not None:
                result = [tf.constant(v) if v.dtype != object else
                          tf.constant(v, tf.string) for v in result]
            for _ in range(2):
                if rnd.random() < 0.4:
                    with np.errstate(all="ignore"):
                        self.run_op(op, *mutate(op, inputs, attrs))


def main():
    folder = pathlib.Path(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    only = sys.argv[4:]
    folder.mkdir(parents=True, exist_ok=True)
    rnd.seed(seed)
    record_array_ops.rnd.seed(seed)
    recorder = Recorder(folder, seed)
    for _ in range(rounds):
        for module in (random_ops, random_nn_ops, record_array_ops,
                       random_limits, random_programs):
            for theme in module.THEMES:
                if not only or theme.__name__ in only:
                    recorder.run_theme(theme)
        print(recorder.count, "cases", flush=True)


if __name__ == "__main__":
    main()
