#!/usr/bin/env python3
"""Records what TensorFlow's CPU kernels compute, for the kernels' tests.

Usage: record_ops.py OUTPUT_FOLDER     (needs tensorflow-cpu; not run by CI)

Writes elementwise.txt: cases of the form

    op AddV2
    attr NAME TYPE VALUE
    in float [2] 1.0 2.0
    in float [] 3.0
    out float [2] 4.0 5.0

which tests/devices/recorded_cases.h reads. Complex numbers are "re,im".
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

FLOATING = ["float", "double", "half", "bfloat16"]
SIGNED = ["int32", "int64", "int8", "int16"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
REAL = FLOATING + SIGNED + UNSIGNED
NUMBER = REAL + COMPLEX
INF, NAN = float("inf"), float("nan")

# Inputs by domain. Halves and thirds are exact or not in every type alike.
ANY = [-3.5, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 7.25]
SPECIAL = ANY + [-0.0, INF, -INF, NAN]
POSITIVE = [0.0, 0.125, 0.5, 1.0, 1.75, 2.0, 10.0, 60000.0, INF, NAN, -1.0]
UNIT = [-1.0, -0.9375, -0.5, -0.125, 0.0, 0.0625, 0.5, 0.875, 1.0, 2.0, NAN]
PROBABILITY = [0.0, 0.0078125, 0.125, 0.5, 0.75, 0.9921875, 1.0, -1.0, NAN]
ABOVE_ONE = [1.0, 1.125, 2.0, 10.0, 100.0, 0.5, NAN]
EXPONENT = ANY + [-20.0, -9.0, 10.0, INF, -INF, NAN]
GAMMA = [0.125, 0.5, 1.0, 1.5, 2.0, 3.25, 10.0, -0.5, -1.5, INF, NAN]

UNARY = {
    "Neg": (FLOATING + SIGNED + COMPLEX, SPECIAL),
    "Abs": (FLOATING + SIGNED, SPECIAL),
    "Sign": (FLOATING + SIGNED + COMPLEX, SPECIAL),
    "Square": (NUMBER, ANY),
    "Reciprocal": (FLOATING + COMPLEX, [-2.0, -0.5, 0.25, 1.0, 3.0, INF]),
    "Inv": (FLOATING, [-2.0, -0.5, 0.25, 1.0, 3.0, INF, 0.0]),
    "Sqrt": (FLOATING + COMPLEX, POSITIVE[:8]),
    "Rsqrt": (FLOATING, POSITIVE),
    "Floor": (FLOATING, SPECIAL),
    "Ceil": (FLOATING, SPECIAL),
    "Rint": (FLOATING, SPECIAL + [2.5, -2.5, 1.25]),
    "Round": (FLOATING, SPECIAL + [2.5, -2.5, 1.25]),
    "IsNan": (FLOATING, SPECIAL),
    "IsInf": (FLOATING, SPECIAL),
    "IsFinite": (FLOATING, SPECIAL),
    "Exp": (FLOATING + COMPLEX, EXPONENT[:14]),
    "Expm1": (FLOATING + COMPLEX, EXPONENT[:14]),
    "Log": (FLOATING, POSITIVE),
    "Log1p": (FLOATING, UNIT + [100.0, INF]),
    "Tanh": (FLOATING + COMPLEX, ANY + [0.0009765625, 20.0, -20.0]),
    "Sigmoid": (FLOATING + COMPLEX, ANY + [-9.0, 20.0]),
    "Sin": (FLOATING + COMPLEX, ANY + [100.0]),
    "Cos": (FLOATING + COMPLEX, ANY + [100.0]),
    "Tan": (FLOATING, ANY),
    "Asin": (FLOATING, UNIT),
    "Acos": (FLOATING, UNIT),
    "Atan": (FLOATING, SPECIAL),
    "Sinh": (FLOATING + COMPLEX, ANY),
    "Cosh": (FLOATING + COMPLEX, ANY),
    "Asinh": (FLOATING, SPECIAL),
    "Acosh": (FLOATING, ABOVE_ONE),
    "Atanh": (FLOATING, UNIT),
    "Softsign": (FLOATING, ANY),
    "Selu": (FLOATING, ANY),
    "Erf": (FLOATING, ANY),
    "Erfc": (FLOATING, SPECIAL),
    "Erfinv": (["float", "double"], UNIT),
    "Ndtri": (["float", "double"], PROBABILITY),
    "Lgamma": (FLOATING, GAMMA),
    "Digamma": (FLOATING, GAMMA),
    "Invert": (SIGNED + UNSIGNED, [0.0, 1.0, 5.0, 100.0]),
    "LogicalNot": (["bool"], [0.0, 1.0]),
    "ToBool": (NUMBER + ["bool"], ANY),
    "Conj": (COMPLEX, ANY),
}

# The outer product of two lists of operands: (types, left, right).
SMALL = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 2.5, 7.0]
DIVISORS = [-3.0, -2.0, -1.0, 1.0, 2.0, 2.5, 7.0]
SPECIAL_PAIR = [-1.5, 0.0, 2.0, INF, -INF, NAN]
BINARY = {
    "AddV2": (NUMBER, SMALL, SMALL),
    "Add": (FLOATING + SIGNED + ["uint8"], SMALL, SMALL),
    "Sub": (NUMBER, SMALL, SMALL),
    "Mul": (NUMBER, SMALL, SMALL),
    "SquaredDifference":
        (FLOATING + ["int32", "int64"] + COMPLEX, SMALL, SMALL),
    "Maximum": (REAL, SMALL, SMALL),
    "Minimum": (REAL, SMALL, SMALL),
    "RealDiv": (FLOATING + COMPLEX, SMALL, DIVISORS),
    "Div": (NUMBER, SMALL, DIVISORS),
    "FloorDiv": (REAL, SMALL, DIVISORS),
    "TruncateDiv": (REAL, SMALL, DIVISORS),
    "FloorMod": (REAL, SMALL, DIVISORS),
    "Mod": (FLOATING + ["int32", "int64"], SMALL, DIVISORS),
    "TruncateMod": (FLOATING + ["int32", "int64"], SMALL, DIVISORS),
    "DivNoNan": (FLOATING + COMPLEX, SMALL, SMALL),
    "MulNoNan": (FLOATING + COMPLEX, SMALL, SMALL),
    "Xdivy": (FLOATING + COMPLEX, SMALL, DIVISORS),
    "Xlogy": (FLOATING, SMALL, [0.5, 1.0, 2.5, 100.0]),
    "Xlog1py": (FLOATING, SMALL, [-0.5, 0.0078125, 1.0, 100.0]),
    "Pow": (FLOATING, [0.0, 0.5, 1.0, 2.5], SMALL),
    "Atan2": (FLOATING, SMALL, SMALL),
    "NextAfter": (["float", "double"], SMALL, SMALL),
    "Less": (REAL, SMALL, SMALL),
    "LessEqual": (REAL, SMALL, SMALL),
    "Greater": (REAL, SMALL, SMALL),
    "GreaterEqual": (REAL, SMALL, SMALL),
    "Equal": (NUMBER + ["bool"], SMALL, SMALL),
    "NotEqual": (NUMBER + ["bool"], SMALL, SMALL),
    "LogicalAnd": (["bool"], [0.0, 1.0], [0.0, 1.0]),
    "LogicalOr": (["bool"], [0.0, 1.0], [0.0, 1.0]),
    "BitwiseAnd": (SIGNED + UNSIGNED, [0.0, 5.0, 100.0], [1.0, 12.0]),
    "BitwiseOr": (SIGNED + UNSIGNED, [0.0, 5.0, 100.0], [1.0, 12.0]),
    "BitwiseXor": (SIGNED + UNSIGNED, [0.0, 5.0, 100.0], [1.0, 12.0]),
    "LeftShift": (SIGNED + UNSIGNED, [0.0, 5.0, 100.0], [0.0, 3.0, 7.0]),
    "RightShift": (SIGNED + UNSIGNED, [0.0, 5.0, 100.0], [0.0, 3.0, 7.0]),
}

# Two operands of one shape: the second list is the first, turned around.
ALIKE = {
    "SigmoidGrad": FLOATING + COMPLEX,
    "TanhGrad": FLOATING + COMPLEX,
    "SqrtGrad": FLOATING + COMPLEX,
    "RsqrtGrad": FLOATING + COMPLEX,
    "ReciprocalGrad": FLOATING + COMPLEX,
    "InvGrad": FLOATING,
    "SeluGrad": FLOATING,
    "SoftsignGrad": FLOATING,
    "ApproximateEqual": FLOATING + SIGNED,
}

CAST = [-300.75, -1.5, -0.25, 0.0, 0.5, 1.0, 2.5, 100.0, 255.5, 40000.0]


def dtype(name):
    return tf.as_dtype(name)


def tensor(values, type_name):
    """The values as a tensor; reals get an imaginary part if complex."""
    t = dtype(type_name)
    array = np.array(values, dtype=np.float64)
    if not t.is_floating:
        array = array[np.isfinite(array)]
    if t.is_complex:
        array = array + 1j * np.roll(array, 3)
    if t.is_integer:
        array = np.trunc(array)
        array = np.abs(array) if t.is_unsigned else array
    return tf.constant(array.astype(t.as_numpy_dtype))


def element(value):
    if isinstance(value, (complex, np.complexfloating)):
        return f"{element(value.real)},{element(value.imag)}"
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (np.float32, np.float64)):
        return np.format_float_positional(value, unique=True, trim="0") \
            if 1e-4 < abs(value) < 1e7 else str(value)
    return str(float(value))  # 16-bit floats are exact in decimal


# GraphDef's names where NumPy's differ.
TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half"}


def line(kind, t):
    values = " ".join(element(v) for v in t.numpy().ravel())
    shape = ",".join(str(d) for d in t.shape)
    name = TYPE_NAMES.get(t.dtype.name, t.dtype.name)
    return f"{kind} {name} [{shape}] {values}".rstrip()


class Recorder:
    def __init__(self):
        self.lines = []

    def record(self, op, inputs, attrs=(), call_attrs=None):
        """Runs raw op `op`; attrs are (name, type, text) to write down.

        Types that TensorFlow has no kernel for are left out.
        """
        function = getattr(tf.raw_ops, op)
        names = [a.name for a in op_def(op).input_arg]
        arguments = dict(zip(names, inputs)) | (call_attrs or {})
        try:
            result = function(**arguments)
        except tf.errors.NotFoundError:
            return
        outputs = [result] if tf.is_tensor(result) else list(result)
        self.lines.append(f"op {op}")
        self.lines += [f"attr {n} {t} {v}" for n, t, v in attrs]
        self.lines += [line("in", t) for t in inputs]
        self.lines += [line("out", t) for t in outputs]


def op_def(op):
    from tensorflow.python.framework import op_def_registry
    return op_def_registry.get(op)


def record_elementwise():
    out = Recorder()
    for op, (types, values) in UNARY.items():
        for t in types:
            out.record(op, [tensor(values, t)])
    for op, (types, left, right) in BINARY.items():
        for t in types:
            column = tf.reshape(tensor(left, t), [-1, 1])
            out.record(op, [column, tensor(right, t)])
            if dtype(t).is_floating:
                special = tensor(SPECIAL_PAIR, t)
                out.record(op, [tf.reshape(special, [-1, 1]), special])
    for op, types in ALIKE.items():
        for t in types:
            values = [v for v in SMALL if v != 0]
            out.record(op, [tensor(values, t), tensor(values[::-1], t)])
    for source in NUMBER + ["bool"]:
        # What does not fit is recorded one by one: TensorFlow's vectorised
        # casts differ from its scalar ones there.
        for target in NUMBER + ["bool"]:
            small = CAST[1:8] if "8" in target or "u" in target else CAST
            small = [v for v in small if v >= 0] if "u" in target else small
            out.record("Cast", [tensor(small, source)],
                       [("DstT", "type", target)],
                       {"DstT": dtype(target)})
    for t in ("float", "double"):
        for target in SIGNED + UNSIGNED:
            for v in (NAN, INF, -INF, 1e20, -1e20, 300.75, -300.75, 3e9, 5e9):
                out.record("Cast", [tf.constant(v, dtype(t))],
                           [("DstT", "type", target)],
                           {"DstT": dtype(target)})
    for source, target in (("float", "half"), ("float", "bfloat16"),
                           ("double", "float"), ("double", "half")):
        out.record("Cast", [tensor([1 / 3, -np.pi, 1.99, 100.7], source)],
                   [("DstT", "type", target), ("Truncate", "bool", "true")],
                   {"DstT": dtype(target), "Truncate": True})
    for t, part in (("complex64", "float"), ("complex128", "double")):
        for op in ("Real", "Imag", "Angle", "ComplexAbs"):
            out.record(op, [tensor(ANY, t)], [("Tout", "type", part)],
                       {"Tout": dtype(part)})
        out.record("Complex", [tensor(ANY, part), tensor([2.5], part)],
                   [("Tout", "type", t)], {"Tout": dtype(t)})
    return out.lines


def main():
    folder = pathlib.Path(sys.argv[1])
    text = "\n".join(record_elementwise()) + "\n"
    (folder / "elementwise.txt").write_text(text)


if __name__ == "__main__":
    main()
