"""Random cases of the ops that record_array_ops.py leaves out.

Every theme yields (op, inputs, attrs); an input that is a list is an op's list
of tensors. Most cases are valid; mutate() makes others of them.
"""
import random

import ml_dtypes
import numpy as np
from tensorflow.python.framework import op_def_registry
import tensorflow as tf

rnd = random.Random(1)

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
        "uint64"]
COMPLEX = ["complex64", "complex128"]
REAL = FLOATS + INTS
NUMBER = REAL + COMPLEX


def rare(chance=0.05):
    return rnd.random() < chance


def np_type(dtype):
    return object if dtype == "string" else tf.as_dtype(dtype).as_numpy_dtype


def shape(rank=None, high=4):
    rank = rnd.choice([0, 1, 1, 2, 2, 3, 4]) if rank is None else rank
    return [0 if rare(0.07) else rnd.randint(1, high) for _ in range(rank)]


def special(dtype):
    """A value at a limit of the type."""
    if dtype == "string":
        return value(dtype, 0, 0)
    if dtype == "bool":
        return rare(0.5)
    if dtype.startswith("complex"):
        return complex(special("float32"), special("float32"))
    if "float" in dtype:
        info = ml_dtypes.finfo(np_type(dtype))
        return rnd.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0,
                           float(info.max), float(info.min), float(info.tiny),
                           float(info.eps), 1e-3, 30.0, -30.0, 0.5])
    info = np.iinfo(np_type(dtype))
    return rnd.choice([info.min, info.max, 0, 1, info.max - 1, info.max // 2])


def value(dtype, low, high):
    if dtype == "bool":
        return rare(0.5)
    if dtype == "string":
        return (rnd.choice("abc") * rnd.randint(0, 3)).encode()
    if dtype.startswith("complex"):
        return complex(rnd.randint(low, high), rnd.randint(low, high)) / 2
    if "float" in dtype:
        return rnd.uniform(low, high) if rare(0.5) else rnd.randint(
            low * 2, high * 2) / 2
    if dtype.startswith("uint"):
        low, high = max(low, 0), max(high, 0)
    return rnd.randint(low, high)


def tensor(dims, dtype, low=-9, high=9, limits=0.0):
    count = int(np.prod(dims, dtype=np.int64))
    values = [special(dtype) if limits and rare(limits) else
              value(dtype, low, high) for _ in range(count)]
    if dtype == "string":
        array = np.empty([count], object)
        array[:] = values
        return array.reshape(dims)
    with np.errstate(all="ignore"):
        if dtype in INTS:
            return np.array(values, dtype=object).astype(
                np_type(dtype)).reshape(dims)
        return np.array(values).astype(np_type(dtype)).reshape(dims)


def ints(values, dtype=None):
    return np.array(values, np.int64).astype(
        np_type(dtype or rnd.choice(["int32", "int64"])))


def types_of(op, attr="T"):
    for a in op_def_registry.get(op).attr:
        if a.name == attr:
            if a.HasField("allowed_values"):
                names = [tf.as_dtype(t).name for t in a.allowed_values.list.type]
                return [n for n in names
                        if n in NUMBER or n in ("bool", "string")]
            return NUMBER + ["bool", "string"]
    raise KeyError(op + "." + attr)


def broadcastable(dims):
    """A shape that broadcasts with dims, or now and then one that does not."""
    if rare(0.07):
        return shape()
    other = [rnd.choice([1, dim, dim]) for dim in dims]
    return other[rnd.randint(0, len(other)) if rare(0.4) else 0:]


UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Conj Cos Cosh Digamma Elu
Erf Erfc Erfinv Exp Expm1 Floor Inv Invert IsFinite IsInf IsNan Lgamma Log
Log1p LogicalNot Ndtri Neg Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid
Sign Sin Sinh Softplus Softsign Sqrt Square Tan Tanh ToBool ZerosLike OnesLike
Identity Snapshot StopGradient PreventGradient GuaranteeConst Rank Size Shape
L2Loss CheckNumerics CheckNumericsV2 LeakyRelu Angle ComplexAbs Real Imag
LogSoftmax Softmax""".split()
BINARY = """Add AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan Equal
FloorDiv FloorMod Greater GreaterEqual LeftShift Less LessEqual LogicalAnd
LogicalOr Maximum Minimum Mod Mul MulNoNan NextAfter NotEqual Pow RealDiv
RightShift SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlog1py Xlogy
""".split()
GRADS = """InvGrad ReciprocalGrad RsqrtGrad SqrtGrad SigmoidGrad TanhGrad
SeluGrad SoftsignGrad EluGrad ReluGrad Relu6Grad SoftplusGrad LeakyReluGrad
ApproximateEqual""".split()
REDUCE = """All Any Max Min Mean Prod Sum EuclideanNorm ArgMax ArgMin
""".split()


def op_types(op):
    attrs = {a.name for a in op_def_registry.get(op).attr}
    return types_of(op) if "T" in attrs else ["bool"]


def unary():
    for op in UNARY:
        for _ in range(2):
            dtype = rnd.choice(op_types(op))
            attrs = {}
            if op in ("Angle", "ComplexAbs", "Real", "Imag"):
                attrs["Tout"] = ("float32" if dtype == "complex64"
                                 else "float64")
            if op.startswith("CheckNumerics"):
                attrs["message"] = "m"
            limits = 0.3
            # |x| beyond what a sine can reduce differs between libraries.
            if op in ("Sin", "Cos", "Tan", "Digamma", "Lgamma") or (
                    dtype.startswith("complex")):
                limits = 0
            if dtype == "bfloat16" and op in ("Sinh", "Cosh"):
                limits = 0
            if op == "L2Loss" and dtype in ("float16", "bfloat16"):
                limits = 0
            if op in ("Softmax", "LogSoftmax") and not rare(0.1):
                dims = shape(rnd.randint(1, 3))
            else:
                dims = shape()
            if rare(0.05):
                dims = [rnd.choice([17, 33, 100])] + dims[:1]
            if op == "LeakyRelu":
                attrs["alpha"] = rnd.choice([0.2, -0.5, 2.0])
            yield op, [tensor(dims, dtype, limits=limits)], attrs


def binary():
    for op in BINARY:
        for _ in range(2):
            dtype = rnd.choice(op_types(op))
            a = shape()
            b = broadcastable(a)
            if rare(0.5):
                a, b = b, a
            low, high = -9, 9
            limits = 0.25
            if dtype.startswith("complex"):
                limits = 0
            if op in ("LeftShift", "RightShift"):
                low, high, limits = 0, 7, 0
            if op == "Pow":
                low, high, limits = -3, 5, 0.1
                if dtype in INTS:
                    low, limits = 0 - rare(0.1), 0
            x, y = tensor(a, dtype, low, high, limits), tensor(
                b, dtype, low, high, limits)
            # The least number over -1 kills TensorFlow's process.
            if dtype in INTS and not dtype.startswith("u"):
                if "Div" in op or "Mod" in op:
                    x[x == np.iinfo(x.dtype).min] = 1
            # Of Mod, large quotients are a matter of the algorithm.
            if dtype in FLOATS and "Mod" in op:
                y = tensor(b, dtype, 1, 9)
            attrs = {}
            if op in ("Equal", "NotEqual") and rare(0.2):
                attrs["incompatible_shape_error"] = False
            yield op, [x, y], attrs
    for op in GRADS:
        dtype = rnd.choice(op_types(op))
        dims = shape()
        other = dims if not rare(0.1) else broadcastable(dims)
        yield op, [tensor(dims, dtype, -3, 3), tensor(other, dtype, 1, 3)], {}
    dtype = rnd.choice(types_of("AddN"))
    dims = shape()
    yield "AddN", [[tensor(dims if not rare(0.05) else shape(), dtype)
                    for _ in range(rnd.randint(1, 4))]], {}
    for op in ("Select", "SelectV2"):
        dtype = rnd.choice(NUMBER + ["bool", "string"])
        dims = shape()
        if op == "SelectV2":
            c, x, y = (broadcastable(dims) for _ in "cxy")
        else:
            x = y = dims
            c = rnd.choice([dims, [], dims[:1]])
            if rare(0.1):
                y = shape()
        yield op, [tensor(c, "bool"), tensor(x, dtype), tensor(y, dtype)], {}
    dtype = rnd.choice(["float32", "float64", "int32", "int64", "float16"])
    dims = shape()
    limit = [dims if rare(0.3) else [] if not rare() else shape() for _ in "ab"]
    yield "ClipByValue", [tensor(dims, dtype, limits=.1),
                          tensor(limit[0], dtype), tensor(limit[1], dtype)], {}
    real = rnd.choice(["float32", "float64"])
    a = shape()
    yield "Complex", [tensor(a, real), tensor(broadcastable(a), real)], {
        "Tout": "complex64" if real == "float32" else "complex128"}
    source, to = rnd.choice(NUMBER + ["bool"]), rnd.choice(NUMBER + ["bool"])
    yield "Cast", [tensor(shape(), source, 0, 9)], {"DstT": to}
    a, b = (tensor([rnd.randint(0, 4)], "int32", 1, 3) for _ in "ab")
    yield "BroadcastGradientArgs", [a, b], {}
    a = shape()
    yield "BroadcastGradientArgs", [ints(a, "int64"),
                                    ints(broadcastable(a), "int64")], {}
    a = shape()
    yield "BroadcastTo", [tensor(broadcastable(a), rnd.choice(NUMBER)),
                          ints(a)], {}
    source, to = (rnd.choice(NUMBER) for _ in "ab")
    wide = np.dtype(np_type(to)).itemsize // max(
        1, np.dtype(np_type(source)).itemsize)
    dims = shape() + ([wide] if wide > 1 and not rare(0.1) else [])
    yield "Bitcast", [tensor(dims, source, 0, 5)], {"type": to}
    yield "EnsureShape", [tensor(dims, source)], {
        "shape": rnd.choice([None, dims, [-1] * len(dims), shape()])}


def reductions():
    for op in REDUCE:
        for _ in range(3):
            dtype = rnd.choice(op_types(op))
            dims = shape()
            rank = len(dims)
            axes = [rnd.randint(-rank - rare(), max(rank - 1 + rare(), 0))
                    for _ in range(rnd.randint(0, max(rank, 1)))]
            if not rare():
                seen = set()
                axes = [a for a in axes if (a % max(rank, 1)) not in seen
                        and not seen.add(a % max(rank, 1))]
            if rank == 0 and not rare(0.3):
                axes = []
            if axes and rare(0.2):
                axes = axes[0]
            attrs = {"keep_dims": rare(0.5)}
            limits = 0.05 if dtype not in COMPLEX else 0
            x = tensor(dims, dtype, -4, 4, limits)
            if op.startswith("Arg"):
                attrs = {"output_type": rnd.choice(["int32", "int64"])}
                axes = rnd.randint(-rank - rare(), max(rank - 1, 0) + rare())
                x = tensor(dims, dtype, -4, 4)
            yield op, [x, ints(axes)], attrs
    for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp"):
        dtype = rnd.choice(types_of(op))
        dims = shape()
        rank = len(dims)
        yield op, [tensor(dims, dtype, -3, 3), ints(
            rnd.randint(-rank - rare(), max(0, rank - 1) + rare()))], {
                "exclusive": rare(0.5), "reverse": rare(0.5)}
    dims = shape(rnd.randint(1, 3))
    axes = rnd.sample(range(len(dims)), rnd.randint(0, len(dims)))
    yield "ReduceJoin", [tensor(dims, "string"), ints(axes, "int32")], {
        "keep_dims": rare(0.5), "separator": rnd.choice(["", ",", "ab"])}


def segments():
    for op in ["SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd",
               "SegmentSum"]:
        dtype = rnd.choice(types_of(op))
        rows = rnd.randint(0, 5)
        ids = sorted(rnd.randint(-rare(), 4) for _ in range(rows + rare()))
        if rare(0.07):
            rnd.shuffle(ids)
        yield op, [tensor([rows] + shape(rnd.randint(0, 2), 3), dtype),
                   ints(ids)], {}
    for op in ["UnsortedSegmentMax", "UnsortedSegmentMin",
               "UnsortedSegmentProd", "UnsortedSegmentSum"]:
        dtype = rnd.choice(types_of(op))
        prefix = shape(rnd.randint(0, 2))
        num = rnd.randint(-rare(), 5)
        ids = tensor(prefix, rnd.choice(["int32", "int64"]), -1,
                     max(num - 1, 0) + rare())
        yield op, [tensor(prefix + shape(rnd.randint(0, 2), 3), dtype), ids,
                   ints(num)], {}
    for op in ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"]:
        for more in ("", "WithNumSegments"):
            dtype = rnd.choice(types_of(op))
            rows, count = rnd.randint(1, 5), rnd.randint(0, 5)
            ids = sorted(rnd.randint(-rare(), 4)
                         for _ in range(count + rare()))
            x = tensor([rows] + shape(rnd.randint(0, 2), 3), dtype)
            at = tensor([count], rnd.choice(["int32", "int64"]), -rare(),
                        rows - 1 + rare())
            ids = ints(ids)
            extra = [ints(rnd.randint(0, 6))] if more else []
            yield op + more, [x, at, ids] + extra, {}


WORDS = [b"", b"a", b"Hello World", b" x ", b"1,2,,3", b"-12", b"1e3", b"nan",
         b"inf", b"0x1A", b"1.5", b"99999999999", b"\xc3\xa9t\xc3\xa9",
         b"\xff\xfe", b"abc=", b"YWJj", b"YWI", b"YQ==", b"\t\n a b\r",
         b"12 ", b" 7", b"+5", b"--1", b"1_0", b"4294967296", b"128",
         b"\xe2\x82\xac", b"a\0b"]


def words(dims):
    array = np.empty([int(np.prod(dims, dtype=np.int64))], object)
    array[:] = [rnd.choice(WORDS) for _ in range(array.size)]
    return array.reshape(dims)


def strings():
    x = words(shape())
    yield "StringLength", [x], {"unit": rnd.choice(["BYTE", "UTF8_CHAR"])}
    for op in ("StringLower", "StringUpper"):
        yield op, [x], {"encoding": rnd.choice(["", "utf-8"])}
    yield "StringStrip", [x], {}
    yield "StringToNumber", [words(shape(rnd.randint(0, 1), 2))], {
        "out_type": rnd.choice(["float32", "float64", "int32", "int64",
                                "uint32", "uint64"])}
    yield "StringJoin", [[words(x.shape if not rare(0.2) else
                                rnd.choice([[], [2]]))
                          for _ in range(rnd.randint(1, 3))]], {
        "separator": rnd.choice(["", "-"])}
    yield "StringSplit", [words(shape(1)), words([rnd.randint(0, 1)] if rare(.1)
                                                 else [])], {
        "skip_empty": rare(0.5)}
    sep = np.array(rnd.choice([b"", b" ", b",", b"l", b"lo"]), object)
    yield "StringSplitV2", [words(shape(1 if not rare(0.1) else None)), sep], {
        "maxsplit": rnd.choice([-1, 0, 1, 2])}
    yield "StringSplit", [words(shape(1)), sep], {"skip_empty": rare(0.5)}
    dims = shape()
    t = rnd.choice(["int32", "int64"])
    other = rnd.choice([[], dims, broadcastable(dims)])
    yield "Substr", [words(dims), tensor(other, t, -3, 2),
                     tensor(other if not rare() else [], t, -rare(), 4)], {
        "unit": rnd.choice(["BYTE", "UTF8_CHAR"])}
    yield "DecodeBase64", [words(shape(rnd.randint(0, 1), 2))], {}
    yield "EncodeBase64", [words(shape())], {"pad": rare(0.5)}
    size = rnd.choice([0, 4, 8, 16, 3])
    array = np.empty([rnd.randint(0, 3)], object)
    array[:] = [bytes(rnd.randint(0, 255) for _ in range(
        size if not rare(0.1) else 2)) for _ in array]
    yield "DecodeRaw", [array], {
        "out_type": rnd.choice(["int32", "uint8", "int64", "int16", "bool",
                                "uint16", "int8", "float16"]),
        "little_endian": rare(0.7)}
    dtype = rnd.choice(INTS + ["bool", "string"])
    yield "AsString", [tensor(shape(), dtype, limits=0.2 *
                              (dtype != "string"))], {
        "width": rnd.choice([-1, -1, 0, 5, 12]),
        "fill": rnd.choice(["", "", "0", " ", "-", "+", "x", "ab"])}
    dtype = rnd.choice(FLOATS + COMPLEX)
    yield "AsString", [tensor(shape(), dtype, limits=.2)], {
        "precision": rnd.choice([-1, -1, 0, 3, 20]),
        "scientific": rare(0.3), "shortest": rare(0.3),
        "width": rnd.choice([-1, -1, 5, 12]),
        "fill": rnd.choice(["", "", "0", " "])}
    dtype = rnd.choice(NUMBER + ["bool", "string"])
    args = [tensor(shape(), rnd.choice(["int32", "float32", "string", "bool"]))
            for _ in range(rnd.randint(0, 2))]
    yield "StringFormat", [args], {
        "template": rnd.choice(["{}" * len(args), "a{}b", "%s", ""]),
        "placeholder": "{}", "summarize": rnd.choice([-1, 0, 1, 3])}


def dense():
    dtype = rnd.choice(types_of("MatMul"))
    m, k, n = (0 if rare() else rnd.randint(1, 5) for _ in "mkn")
    ta, tb = rare(0.4), rare(0.4)
    k2 = k if not rare() else k + 1
    a = [k, m] if ta else [m, k]
    b = [n, k2] if tb else [k2, n]
    yield "MatMul", [tensor(a, dtype, -3, 3), tensor(b, dtype, -3, 3)], {
        "transpose_a": ta, "transpose_b": tb}
    for op in ["BatchMatMul", "BatchMatMulV2"]:
        dtype = rnd.choice(types_of(op))
        batch = shape(rnd.randint(0, 2))
        other = broadcastable(batch) if op != "BatchMatMul" else batch
        a = [k, m] if ta else [m, k]
        b = [n, k2] if tb else [k2, n]
        yield op, [tensor(batch + a, dtype, -3, 3),
                   tensor(other + b, dtype, -3, 3)], {"adj_x": ta, "adj_y": tb}
    for eq in rnd.sample([
            "ij,jk->ik", "ij->ji", "ii->i", "i,j->ij", "bij,bjk->bik",
            "...ij,...jk->...ik", "ij->", "...->...", "ijk,k->ij", "i->ii",
            "abc,cd->abd", "ij,ij->ij", "iij->j", "ij,jk", "b...,b->...",
            "ij,jk->ikz", "->", ",->", "ab,bc,ca->"], 4):
        dtype = rnd.choice(["float32", "float64", "int32", "int64",
                            "complex64"])
        sizes = {c: rnd.randint(1, 3) for c in "abcdijkb"}
        extra = shape(rnd.randint(0, 2), 3)
        ins = eq.split("->")[0].split(",")
        tensors = [tensor([d for t in x.replace("...", ".") for d in
                           (extra if t == "." else [sizes[t]])], dtype, -3, 3)
                   for x in ins]
        if rare(0.1):
            tensors[0] = tensor(shape(), dtype)
        yield "Einsum", [tensors], {"equation": eq}


THEMES = [unary, binary, reductions, segments, dense, strings]
