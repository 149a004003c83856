#!/usr/bin/env python3
"""Records what TensorFlow's CPU kernels make of variables, for the tests.

Usage: record_state_ops.py OUTPUT_FOLDER     (needs tensorflow-cpu; not in CI)

Writes state.txt, in the form of record_ops.py's elementwise.txt. Inputs that
are handles stand there as the values that their variables have before; then
"out" are the values after, and the op's outputs behind these. The steps of an
optimizer follow each other: each begins with what the one before left.
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

import record_ops

RANDOM = np.random.default_rng(7)


def line(kind, t):
    if t.dtype != tf.string:
        return record_ops.line(kind, t)
    texts = " ".join(f'"{v.decode()}"' for v in t.numpy().ravel())
    return f"{kind} string [{','.join(str(d) for d in t.shape)}] {texts}"


class StateRecorder:
    def __init__(self):
        self.lines = []

    def record(self, op, inputs, attrs=()):
        """Inputs are values; those of handles become variables. attrs are
        (name, type, value). Returns the variables' values afterwards."""
        names = [a for a in record_ops.op_def(op).input_arg]
        variables = []
        arguments = {}
        for arg, value in zip(names, inputs):
            if arg.type == tf.resource.as_datatype_enum:
                variables.append(tf.Variable(value))
                arguments[arg.name] = variables[-1].handle
            else:
                arguments[arg.name] = value
        for name, kind, value in attrs:
            arguments[name] = tf.as_dtype(value) if kind == "type" else value
        try:
            result = getattr(tf.raw_ops, op)(**arguments)
        except tf.errors.OpError as error:
            if "No OpKernel was registered" not in str(error):
                raise
            return None  # no kernel of that type
        after = [v.value() for v in variables]
        outputs = list(after)
        if tf.is_tensor(result):
            outputs.append(result)
        self.lines.append(f"op {op}")
        for name, kind, value in attrs:
            text = str(value).lower() if kind == "bool" else value
            self.lines.append(f"attr {name} {kind} {text}")
        self.lines += [line("in", t) for t in inputs]
        self.lines += [line("out", t) for t in outputs]
        return after


def randoms(shape, dtype, low=-1.0, high=1.0):
    return tf.constant(RANDOM.uniform(low, high, shape), dtype)


# Of each optimizer: how its slots begin (low, high), and its scalars, in turn.
COMMON = {"lr": 0.1, "l1": 0.05, "l2": 0.02}
OPTIMIZERS = {
    "GradientDescent": ([], [{"alpha": 0.25}]),
    "ProximalGradientDescent": (
        [], [{"alpha": 0.25, "l1": 0.5, "l2": 0.125},
             {"alpha": 0.25, "l1": 0.0, "l2": 0.5}]),
    "Momentum": ([(-1, 1)], [{"lr": 0.1, "momentum": 0.9}]),
    "KerasMomentum": ([(-1, 1)], [{"lr": 0.1, "momentum": 0.9}]),
    "Adam": ([(-1, 1), (0, 1)], [
        {"beta1_power": 0.75, "beta2_power": 0.875, "lr": 0.1, "beta1": 0.75,
         "beta2": 0.875, "epsilon": 0.01}]),
    "AdamWithAmsgrad": ([(-1, 1), (0, 1), (0, 1)], [
        {"beta1_power": 0.75, "beta2_power": 0.875, "lr": 0.1, "beta1": 0.75,
         "beta2": 0.875, "epsilon": 0.01}]),
    "AdaMax": ([(-1, 1), (0, 1)], [
        {"beta1_power": 0.75, "lr": 0.1, "beta1": 0.75, "beta2": 0.875,
         "epsilon": 0.01}]),
    "Adagrad": ([(0.25, 1)], [{"lr": 0.5}]),
    "AdagradV2": ([(0, 1)], [{"lr": 0.5, "epsilon": 0.125}]),
    "AdagradDA": ([(-2, 2), (0.25, 1)], [
        {"lr": 0.5, "l1": 0.25, "l2": 0.125, "global_step": 3},
        {"lr": 0.5, "l1": 0.0, "l2": 0.125, "global_step": 4}]),
    "ProximalAdagrad": ([(0.25, 1)], [
        {"lr": 0.5, "l1": 0.25, "l2": 0.125},
        {"lr": 0.5, "l1": 0.0, "l2": 0.125}]),
    "Adadelta": ([(0, 1), (0, 1)], [
        {"lr": 0.5, "rho": 0.875, "epsilon": 0.125}]),
    "Ftrl": ([(0.25, 1), (-1, 1)], [
        {"lr": 0.5, "l1": 0.25, "l2": 0.125, "lr_power": -0.5},
        {"lr": 0.5, "l1": 0.0, "l2": 0.0, "lr_power": -0.75}]),
    "FtrlV2": ([(0.25, 1), (-1, 1)], [
        {"lr": 0.5, "l1": 0.25, "l2": 0.125, "l2_shrinkage": 0.25,
         "lr_power": -0.5},
        {"lr": 0.5, "l1": 0.0, "l2": 0.0, "l2_shrinkage": 0.125,
         "lr_power": -0.75}]),
    "RMSProp": ([(0, 1), (-1, 1)], [
        {"lr": 0.1, "rho": 0.875, "momentum": 0.5, "epsilon": 0.01}]),
    "CenteredRMSProp": ([(-0.25, 0.25), (0.25, 1), (-1, 1)], [
        {"lr": 0.1, "rho": 0.875, "momentum": 0.5, "epsilon": 0.01}]),
    "AddSign": ([(-1, 1)], [
        {"lr": 0.1, "alpha": 1.0, "sign_decay": 0.75, "beta": 0.875}]),
    "PowerSign": ([(-1, 1)], [
        {"lr": 0.1, "logbase": 1.0, "sign_decay": 0.75, "beta": 0.875}]),
}
OPTIONS = ("use_nesterov", "update_slots", "multiply_linear_by_lr")


def record_optimizer(out, name, is_sparse, dtype):
    op = f"Resource{'Sparse' if is_sparse else ''}Apply{name}"
    definition = record_ops.op_def(op)
    if definition is None:
        return
    options = [a.name for a in definition.attr if a.name in OPTIONS]
    slots, turns = OPTIMIZERS[name]
    for option in ([False, True] if options else [None]):
        states = [randoms([3, 2], dtype)]
        states += [randoms([3, 2], dtype, *limits) for limits in slots]
        attrs = [(options[0], "bool", option)] if options else []
        for step in range(3 if dtype.size >= 4 else 1):
            scalars = turns[step % len(turns)]
            inputs = list(states)
            for arg in definition.input_arg[len(states):]:
                if arg.name in ("grad", "delta"):
                    inputs.append(randoms([3, 2], dtype))
                elif arg.name == "indices":
                    kind = tf.int64 if step == 1 else tf.int32
                    inputs.append(tf.constant([2, 0, 2], kind))
                elif arg.name == "global_step":
                    inputs.append(tf.constant(scalars[arg.name], tf.int64))
                else:
                    inputs.append(tf.constant(scalars[arg.name], dtype))
            states = out.record(op, inputs, attrs)
            if states is None:
                return


def record_optimizers(out):
    for name in OPTIMIZERS:
        for is_sparse in (False, True):
            for dtype in (tf.float32, tf.float64, tf.half, tf.bfloat16):
                record_optimizer(out, name, is_sparse, dtype)


def record_scatters(out):
    for what in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max"):
        op = f"ResourceScatter{what}"
        for dtype in (tf.float32, tf.float64, tf.half, tf.bfloat16, tf.int32,
                      tf.int64, tf.uint8, tf.int8, tf.int16, tf.uint16):
            table = tf.cast(tf.reshape(tf.range(3, 18), [5, 3]), dtype)
            updates = tf.cast(tf.reshape(tf.range(1, 13), [2, 2, 3]), dtype)
            indices = tf.constant([[4, 0], [2, 3]])
            out.record(op, [table, indices, updates])
            out.record(op, [table, tf.constant([1, 1], tf.int64),
                            tf.cast(tf.constant([[2, 1, 2]] * 2), dtype)])
            out.record(op, [table, indices, tf.cast(tf.constant(2), dtype)],
)
    for what in ("Update", "Add", "Sub", "Min", "Max"):
        op = f"ResourceScatterNd{what}"
        for dtype in (tf.float32, tf.float64, tf.half, tf.int32, tf.int64):
            table = tf.cast(tf.reshape(tf.range(3, 18), [5, 3]), dtype)
            out.record(op, [table, tf.constant([[4], [1]]),
                            tf.cast(tf.constant([[9, 1, 2], [7, 4, 2]]),
                                    dtype)])
            out.record(op, [table, tf.constant([[4, 2], [1, 0], [0, 1]],
                                               tf.int64),
                            tf.cast(tf.constant([9, 4, 2]), dtype)])
    out.record("ResourceScatterUpdate",
               [tf.constant(["a", "b", "c"]), tf.constant([2, 0]),
                tf.constant(["x", "y"])])
    out.record("ResourceScatterUpdate",
               [tf.constant([True, False, True]), tf.constant([2, 1]),
                tf.constant([False, True])])
    out.record("ResourceScatterNdUpdate",
               [tf.constant(["a", "b", "c"]), tf.constant([[2], [0]]),
                tf.constant(["x", "y"])])


def record_gathers(out):
    table = tf.constant(np.arange(24).reshape(2, 3, 4), tf.float32)
    kind = ("dtype", "type", "float")

    def gather(indices, batch_dims, index_type=tf.int32):
        out.record("ResourceGather", [table, tf.constant(indices, index_type)],
                   [("batch_dims", "int", batch_dims), kind])
    gather([1, 0, 1], 0)
    gather([[1], [0]], 0, tf.int64)
    gather(1, 0)
    gather([[2, 0], [1, 1]], 1)
    gather([[2], [0]], 1, tf.int64)
    for indices in ([[1, 2], [0, 0]], [[1], [1]], [[0, 1, 2]]):
        out.record("ResourceGatherNd", [table, tf.constant(indices)], [kind])


def record_slices(out):
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask",
             "shrink_axis_mask")

    def assign(table, begin, end, strides, value, **given):
        out.record("ResourceStridedSliceAssign",
                   [table, tf.constant(begin), tf.constant(end),
                    tf.constant(strides), value],
                   [(m, "int", given.get(m, 0)) for m in masks])
    table = tf.constant(np.arange(12).reshape(3, 4), tf.int32)
    assign(table, [1, 0], [3, 2], [1, 1], tf.constant([[-1, -2], [-3, -4]]))
    assign(table, [1, 3], [2, 0], [1, -2], tf.constant([-1, -2]),
           shrink_axis_mask=1)
    assign(table, [0, 0], [0, 0], [1, 2], tf.constant([[-1, -2]] * 3),
           begin_mask=3, end_mask=3)
    assign(tf.constant(["a", "b", "c"]), [0], [3], [2],
           tf.constant(["x", "y"]))


def record_skips(out):
    for state in ([1, 2, 3], [-1, 0, 5], [-256, -1, 5], [7, -1, 9]):
        for delta in (0, 1, 3, 2**60, 2**63 + 5):
            out.record("RngReadAndSkip",
                       [tf.constant(state, tf.int64), tf.constant(1),
                        tf.constant(delta, tf.uint64)])
        out.record("RngSkip", [tf.constant(state, tf.int64),
                               tf.constant(1, tf.int64),
                               tf.constant(4, tf.int64)])


def main():
    out = StateRecorder()
    record_optimizers(out)
    record_scatters(out)
    record_gathers(out)
    record_slices(out)
    record_skips(out)
    text = "\n".join(out.lines) + "\n"
    (pathlib.Path(sys.argv[1]) / "state.txt").write_text(text)


if __name__ == "__main__":
    main()
