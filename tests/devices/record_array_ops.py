#!/usr/bin/env python3
"""Records what TensorFlow's CPU kernels of array ops make of random inputs.

Usage: record_array_ops.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run by CI)

Writes array.txt in the form that record_ops.py explains. Refused inputs are
cases too: they have a line `error CODE` in the place of their outputs.
"""

import os
import pathlib
import random
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_def_registry

REAL = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32",
        "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBER = REAL + ["complex64", "complex128"]
MOVABLE = NUMBER + ["bool", "string"]
ALIGN = ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]
NAMES = {"float32": "float", "float64": "double", "float16": "half"}

rnd = random.Random(7)


def rare(chance=0.05):
    return rnd.random() < chance


def size_of(shape):
    return int(np.prod(shape, dtype=np.int64))


def shape(rank=None, high=4):
    """Small dimensions, now and then one of 0."""
    rank = rnd.randint(0, 4) if rank is None else rank
    return [0 if rare(0.1) else rnd.randint(1, high) for _ in range(rank)]


def tensor(dims, dtype, low=-9, high=9):
    count = size_of(dims)
    if dtype == "string":
        words = ["s%d" % rnd.randint(0, 9) * rnd.randint(1, 9)
                 for _ in range(count)]
        return tf.reshape(tf.constant(words, tf.string), dims)
    if dtype.startswith("uint"):
        low = max(low, 0)
    values = [rnd.randint(low, high) for _ in range(count)]
    if dtype == "bool":
        values = [value % 2 == 0 for value in values]
    if dtype.startswith("complex"):
        values = [complex(v, rnd.randint(low, high)) for v in values]
    if "float" in dtype:
        values = [v / 4 if rare(0.3) else v for v in values]
    return tf.constant(np.array(values).reshape(dims), dtype)


def ints(dims, low, high, dtype=None):
    return tensor(dims, dtype or rnd.choice(["int32", "int64"]), low,
                  max(low, high))


def vector(values, dtype=None):
    dtype = dtype or rnd.choice(["int32", "int64"])
    return tf.constant(np.array(values, np.int64), dtype)


def basic():
    dtype = rnd.choice(MOVABLE)
    x = tensor(shape(), dtype)
    dims, rank = list(x.shape), len(x.shape)
    out_type = rnd.choice([tf.int32, tf.int64])
    yield "Shape", [x], {"out_type": out_type}
    yield "Size", [x], {"out_type": out_type}
    yield "Rank", [x], {}
    yield "ShapeN", [[x, tensor(shape(), dtype)]], {"out_type": out_type}
    new = rnd.sample(dims, rank)
    if new and rare(0.5):
        new[rnd.randrange(rank)] = -1
    if rare(0.2):
        new = [rnd.randint(-2, 6) for _ in range(rnd.randint(1, 3))]
    yield "Reshape", [x, vector(new)], {}
    yield "ExpandDims", [x, ints([], -rank - 2, rank + 1)], {}
    ones = tensor([rnd.choice([1, 1, dim]) for dim in dims], dtype)
    axes = [rnd.randint(-rank - 1, rank) for _ in range(rnd.randint(1, 2))]
    yield "Squeeze", [ones], {"squeeze_dims": axes}
    yield "Squeeze", [ones], {"squeeze_dims": []}
    yield "Fill", [vector(shape() + [-1] * rare()), tensor([], dtype)], {}
    yield "ZerosLike", [x], {}
    if dtype != "string":
        yield "OnesLike", [x], {}
    real = rnd.choice(["float32", "float64", "int32", "int64"])
    step = rnd.choice([-3, -2, -1, 1, 2, 3]) if not rare() else 0
    yield "Range", [tensor([], real), tensor([], real),
                    tf.constant(step, real)], {}
    real = rnd.choice(["float32", "float64"])
    yield "LinSpace", [tensor([], real), tensor([], real),
                       ints([], -1, 9)], {}
    a = [rnd.choice([1, 1, 2, 3, 0]) for _ in range(rnd.randint(0, 4))]
    b = [rnd.choice([1, dim]) for dim in a][rnd.randint(0, len(a)):]
    if rare(0.1):
        b = [2, 3]
    yield "BroadcastArgs", [vector(a, "int32"), vector(b, "int32")], {}


def joining():
    dtype = rnd.choice(MOVABLE)
    rank = rnd.randint(0, 3)
    dims = shape(rank)
    x = tensor(dims, dtype)
    axis = rnd.randint(-rank - rare(), max(rank - 1, 0) + rare())
    valid = -rank <= axis < rank
    multiples = [rnd.randint(-rare(), 3) for _ in range(rank + rare())]
    if dtype not in ("uint16", "uint32", "uint64"):
        yield "Tile", [x, vector(multiples)], {}
    parts = [tensor(dims if not rare() else shape(rank), dtype)
             for _ in range(rnd.randint(1, 4))]
    yield "Pack", [parts], {"axis": axis}
    count = dims[axis] if valid and not rare() else rnd.randint(1, 3)
    if count > 0:
        yield "Unpack", [x], {"num": count, "axis": axis}

    def other():
        new = list(dims)
        if valid:
            new[axis] = rnd.randint(0, 3)
        return new if not rare() else shape(rank)

    parts = [tensor(other(), dtype) for _ in range(rnd.randint(2, 4))]
    yield "ConcatV2", [parts, vector(axis)], {}
    yield "Concat", [vector(axis, "int32"), parts], {}
    shapes = [vector([1] + other(), "int32") for _ in range(3)]
    yield "ConcatOffset", [vector(axis % 5, "int32"), shapes], {}
    count = rnd.randint(1, 3)
    if valid:
        dims[axis] = count * rnd.randint(0, 2) + rare()
    y = tensor(dims, dtype)
    yield "Split", [vector(axis, "int32"), y], {"num_split": count}
    if valid and count > 1:
        cuts = sorted(rnd.randint(0, dims[axis]) for _ in range(count - 1))
        sizes = np.diff([0] + cuts + [dims[axis]]).tolist()
        if rare(0.4):
            sizes[rnd.randrange(count)] = -1
        if rare(0.1):
            sizes[0] += 1
        yield "SplitV", [y, vector(sizes), vector(axis, "int32")], {
            "num_split": count}


def slicing():
    dtype = rnd.choice(MOVABLE)
    x = tensor(shape(), dtype)
    dims, rank = list(x.shape), len(x.shape)
    begin = [rnd.randint(0, dim) for dim in dims]
    size = [rnd.choice([-1, rnd.randint(0, dim - at)])
            for dim, at in zip(dims, begin)]
    if rank and rare(0.2):
        rnd.choice([begin, size])[rnd.randrange(rank)] += rnd.randint(-3, 4)
    yield "Slice", [x, vector(begin, "int32"), vector(size, "int32")], {}
    entries = rnd.randint(0, rank + rare(0.3))
    strides = [1, 1, 2, 3, -1, -2] + [0] * rare()
    spec = [vector([rnd.randint(-6, 6) for _ in range(entries)], "int64"),
            vector([rnd.randint(-6, 6) for _ in range(entries)], "int64"),
            vector([rnd.choice(strides) for _ in range(entries)], "int64")]
    masks = {"begin_mask": rnd.randint(0, 15) & rnd.randint(0, 15),
             "end_mask": rnd.randint(0, 15) & rnd.randint(0, 15),
             "ellipsis_mask": rnd.choice([0, 0, 1, 2, 4] + [3] * rare()),
             "new_axis_mask": rnd.choice([0, 0, 0, 1, 2, 4, 7]),
             "shrink_axis_mask": rnd.choice([0, 0, 0, 1, 2, 4])}
    result = yield "StridedSlice", [x] + spec, masks
    if result is not None and dtype != "string":
        yield "StridedSliceGrad", [vector(dims, "int64")] + spec + [
            tensor(result[0].shape if not rare() else shape(), dtype)], masks
    yield "StridedSlice", [tensor([rnd.randint(0, 5)], dtype)] + [
        vector([at], "int32") for at in [rnd.randint(-6, 6), 0, 1]], {
            "shrink_axis_mask": 1}


def stitching():
    dtype = rnd.choice(MOVABLE)
    rest = [rnd.randint(1, 3) for _ in range(rnd.randint(0, 2))]
    shapes = [shape(rnd.randint(0, 2), 3) for _ in range(rnd.randint(1, 3))]
    places = list(range(sum(size_of(dims) for dims in shapes)))
    rnd.shuffle(places)
    indices, data = [], []
    for dims in shapes:
        mine = [places.pop() for _ in range(size_of(dims))]
        indices.append(tf.reshape(tf.constant(mine, tf.int32), dims))
        data.append(tensor(dims + rest, dtype))
    if rare():
        data[0] = tensor(shape(), dtype)
    if rare():
        indices[0] = -indices[0] - 1
    yield "DynamicStitch", [indices, data], {}
    yield "ParallelDynamicStitch", [indices, data], {}
    count = rnd.randint(1, 3)
    dims = shape(rnd.randint(0, 2))
    yield "DynamicPartition", [
        tensor(dims + rest if not rare() else shape(), dtype),
        ints(dims, 0, count - 1 + rare(), "int32")], {"num_partitions": count}


def gathering():
    dtype = rnd.choice(MOVABLE)
    rank = rnd.randint(1, 4)
    x = tensor(shape(rank), dtype)
    dims = list(x.shape)
    axis = rnd.randint(0, rank - 1)
    batch = rnd.randint(0, axis) if rare(0.6) else 0
    indices = ints(dims[:batch] + shape(rnd.randint(0, 2)), -rare(),
                   dims[axis] - 1 + rare())
    yield "GatherV2", [x, indices, vector(axis - rank * rare(0.5))], {
        "batch_dims": batch}
    yield "Gather", [x, ints(shape(rnd.randint(0, 2)), 0, dims[0] - 1)], {}
    depth = rnd.randint(0, rank)
    prefix = shape(rnd.randint(0, 2))
    index_type = rnd.choice(["int32", "int64"])
    places = [[rnd.randint(-rare(0.02), max(0, dim - 1 + rare(0.02)))
               for dim in dims[:depth]] for _ in range(size_of(prefix))]
    indices = tf.constant(np.array(places).reshape(prefix + [depth]),
                          index_type)
    yield "GatherNd", [x, indices], {
        "bad_indices_policy": rnd.choice(["", "", "ERROR", "IGNORE"])}
    if dtype == "string":
        return
    updates = tensor(prefix + dims[depth:] if not rare() else shape(), dtype)
    yield "ScatterNd", [indices, updates, vector(dims, index_type)], {}
    yield "TensorScatterUpdate", [x, indices, updates], {}
    if dtype in NUMBER:
        for op in ["ScatterNdNonAliasingAdd", "TensorScatterAdd",
                   "TensorScatterSub"]:
            yield op, [x, indices, updates], {}
    if dtype in REAL:
        yield "TensorScatterMin", [x, indices, updates], {}
        yield "TensorScatterMax", [x, indices, updates], {}


def moving():
    dtype = rnd.choice(MOVABLE)
    rank = rnd.randint(1, 4)
    x = tensor(shape(rank), dtype)
    dims = list(x.shape)
    order = rnd.sample(range(rank), rank)
    if rare():
        order[0] = rnd.randint(-rank - 1, rank)
    yield "Transpose", [x, vector(order)], {}
    yield "ConjugateTranspose", [x, vector(order)], {}
    order = rnd.sample(range(5), 5)
    if rare(0.2):
        order[0] = rnd.randint(-1, 6)
    yield "InvertPermutation", [vector(order, "int32")], {}
    axes = [axis - rank * rare(0.5) for axis in range(rank) if rare(0.5)]
    axes += [rnd.randint(-rank - 1, rank)] * rare()
    yield "ReverseV2", [x, vector(axes)], {}
    if x.shape[0] > 0:  # TensorFlow refuses them for no reason
        yield "Reverse", [x, tensor([rank + rare()], "bool")], {}
    if rank >= 2:
        batch, seq = rnd.sample(range(rank), 2)
        yield "ReverseSequence", [
            x, ints([dims[batch]], -rare(), dims[seq] + rare())], {
                "batch_dim": batch, "seq_dim": seq if not rare() else batch}
    count = rnd.randint(1, 3)
    yield "Roll", [x, ints([count], -9, 9, "int32"),
                   ints([count], -rank, rank - 1 + rare(), "int32")], {}
    paddings = ints([rank + rare(), 2], -rare(), 3, "int32")
    yield "Pad", [x, paddings], {}
    yield "PadV2", [x, paddings, tensor([], dtype)], {}
    mode = {"mode": rnd.choice(["REFLECT", "SYMMETRIC"])}
    paddings = ints([rank, 2], 0, 2, "int32")
    result = yield "MirrorPad", [x, paddings], mode
    if result is not None and dtype in ("float32", "int32", "complex64"):
        yield "MirrorPadGrad", [tensor(result[0].shape, dtype), paddings], mode
    formats = rnd.choice([("NHWC", "NCHW"), ("NCHW", "NHWC"),
                          ("NHWC", "HWNC"), ("NDHWC", "NCDHW"),
                          ("NHWC", "NHWC"), ("NHWC", "NCDH")])
    formats = dict(zip(["src_format", "dst_format"], formats))
    yield "DataFormatDimMap", [ints(shape(), -4, 3 + rare())], formats
    rows = len(formats["src_format"]) - rnd.choice([0, 2]) + rare()
    yield "DataFormatVecPermute", [
        ints([rows] + [2] * rare(0.5), -4, 9)], formats


def blocks():
    dtype = rnd.choice(NUMBER + ["bool"])
    sizes = [rnd.randint(1, 3) for _ in range(rnd.randint(1, 3))]
    space, paddings = [], []
    for size in sizes:
        before, after = rnd.randint(0, 2), rnd.randint(0, 2)
        padded = size * rnd.randint(2, 4) + rare()
        space.append(max(0, padded - before - after))
        paddings.append([before, after])
    rest = shape(rnd.randint(0, 2))
    yield "SpaceToBatchND", [tensor([rnd.randint(0, 2)] + space + rest, dtype),
                             vector(sizes), vector(paddings)], {}
    crops = [[rnd.randint(0, 1), rnd.randint(0, 2)] for _ in sizes]
    batch = size_of(sizes) * rnd.randint(0, 2) + rare()
    cells = [rnd.randint(1, 3) for _ in sizes]
    yield "BatchToSpaceND", [tensor([batch] + cells + rest, dtype),
                             vector(sizes), vector(crops)], {}
    size = rnd.randint(2, 3)
    paddings = vector([[1, 0], [rnd.randint(0, 1), rnd.randint(0, 1)]])
    yield "SpaceToBatch", [tensor([1, 2 * size - 1, 3 * size, 2], dtype),
                           paddings], {"block_size": size}
    yield "BatchToSpace", [tensor([size * size, 2, 3, 2], dtype),
                           paddings], {"block_size": size}
    yield "SpaceToDepth", [
        tensor([rnd.randint(0, 2), size * 2 + rare(), size,
                rnd.randint(0, 2)], dtype)], {"block_size": size}
    yield "DepthToSpace", [
        tensor([rnd.randint(0, 2), 2, 1,
                size * size * rnd.randint(0, 2) + rare()], dtype)], {
                    "block_size": size}


def diagonals():
    dtype = rnd.choice(["float32", "int32", "double", "complex64", "int64"])
    dims = shape(rnd.randint(1, 2))
    yield "Diag", [tensor(dims, dtype)], {}
    yield "DiagPart", [tensor(dims + (dims if not rare() else shape(2)),
                              dtype)], {}
    dtype = rnd.choice(NUMBER + ["bool"])
    x = tensor(shape(rnd.randint(2, 4), 5), dtype)
    dims = list(x.shape)
    rows, cols = dims[-2:]
    yield "MatrixDiag", [x], {}
    yield "MatrixDiagPart", [x], {}
    yield "MatrixSetDiag", [x, tensor(dims[:-2] + [min(rows, cols)],
                                      dtype)], {}
    yield "MatrixBandPart", [x, vector(rnd.randint(-1, rows + rare()), "int64"),
                             vector(rnd.randint(-1, cols), "int64")], {}
    band = sorted(rnd.randint(-rows + 1 - rare(), max(cols - 1, 1 - rows))
                  for _ in range(rnd.randint(1, 2)))
    k = vector(band if not rare(0.3) else band[0], "int32")
    align = {"align": rnd.choice(ALIGN)}
    value = tensor([], dtype)
    yield "MatrixDiagPartV2", [x, k, value], {}
    result = yield "MatrixDiagPartV3", [x, k, value], align
    if result is None:
        return
    diagonal = tensor(result[0].shape, dtype)
    yield "MatrixSetDiagV2", [x, diagonal, k], {}
    yield "MatrixSetDiagV3", [x, diagonal, k], align
    size = rnd.choice([(rows, cols), (-1, cols), (rows, -1), (-1, -1),
                       (rows + 1, cols)])
    size = [vector(dim, "int32") for dim in size]
    yield "MatrixDiagV2", [diagonal, k] + size + [value], {}
    yield "MatrixDiagV3", [diagonal, k] + size + [value], align


def searching():
    dtype = rnd.choice(MOVABLE)
    rank = rnd.randint(0, 3)
    yield "OneHot", [ints(shape(rank), -2, 5), ints([], -rare(), 4, "int32"),
                     tensor([], dtype), tensor([], dtype)], {
                         "axis": rnd.randint(-1 - rare(), rank + rare())}
    if dtype != "string":
        yield "Where", [tensor(shape(), dtype, -1, 1)], {}
    v = tensor([rnd.randint(0, 8)], dtype, -2, 2)
    out = {"out_idx": rnd.choice([tf.int32, tf.int64])}
    yield "Unique", [v], out
    yield "UniqueWithCounts", [v], out
    matrix = tensor(shape(rnd.randint(1, 3)), dtype, -1, 1)
    axis = [rnd.randint(-1, len(matrix.shape) - 1 + rare())]
    yield "UniqueV2", [matrix, vector(axis)], out
    yield "UniqueWithCountsV2", [v, vector([])], out
    yield "ListDiff", [v, tensor([rnd.randint(0, 4)], dtype, -2, 2)], out
    dtype = rnd.choice(REAL)
    x = tensor(shape(rnd.randint(1, 3), 6), dtype, -3, 3)
    yield "TopKV2", [x, vector(rnd.randint(-rare(), x.shape[-1] + rare()),
                               "int32")], {}
    dtype = rnd.choice(NUMBER)
    x = tensor(shape(rnd.randint(1, 3)), dtype, -2, 2)
    rank = len(x.shape)
    for op in ["Cumsum", "Cumprod"]:
        yield op, [x, vector(rnd.randint(-rank, rank - 1 + rare()))], {
            "exclusive": rare(0.5), "reverse": rare(0.5)}
    dtype = rnd.choice(["float32", "float64", "int32", "int64"])
    values = ints(shape(rnd.randint(1, 2)), -rare(), 6, "int32")
    weights = tensor(values.shape if rare(0.5) else [0], dtype)
    size = ints([], 0, 7, "int32")
    yield "Bincount", [values, size, weights], {}
    yield "DenseBincount", [values, size, weights], {
        "binary_output": rare(0.3)}
    yield "HistogramFixedWidth", [
        tensor(shape(), dtype), tf.constant([-3, rnd.randint(-3, 4)], dtype),
        ints([], 1 - rare(), 5, "int32")], {}
    rows = np.sort([[rnd.randint(-3, 3) for _ in range(4)] for _ in "ab"])
    for op in ["LowerBound", "UpperBound"]:
        yield op, [tf.constant(rows, dtype),
                   tensor([2 + rare(), 3], dtype)], {}


THEMES = [basic, joining, slicing, stitching, gathering, moving, blocks,
          diagonals, searching]


def attributes(op_def, inputs, attrs):
    """All attributes of the op by name, as execute() wants them."""
    full = {}
    for arg, value in zip(op_def.input_arg, inputs):
        items = value if isinstance(value, list) else [value]
        if arg.number_attr:
            full[arg.number_attr] = len(items)
        if arg.type_attr:
            full[arg.type_attr] = items[0].dtype
    for attr in op_def.attr:
        if attr.name in attrs:
            full[attr.name] = attrs[attr.name]
        elif attr.name not in full:
            kind = attr.default_value.WhichOneof("value")
            value = getattr(attr.default_value, kind)
            if kind == "type":
                value = tf.as_dtype(value)
            if kind == "list":
                value = list(value.i)
            full[attr.name] = value
    return {name: value.encode() if isinstance(value, str) else value
            for name, value in full.items()}


def compute(op, inputs, attrs):
    """TensorFlow's outputs. Raises tf.errors.OpError."""
    op_def = op_def_registry.get(op)
    full = attributes(op_def, inputs, attrs)
    flat = [item for value in inputs
            for item in (value if isinstance(value, list) else [value])]
    pairs = []
    for name, value in full.items():
        if isinstance(value, tf.DType):
            value = value.as_datatype_enum
        pairs += [name, value]
    outputs = sum(full[arg.number_attr] if arg.number_attr else 1
                  for arg in op_def.output_arg)
    results = execute.execute(op.encode(), outputs, inputs=flat,
                              attrs=tuple(pairs), ctx=context.context())
    return flat, results


def all_cases(themes, rounds):
    """Yields (op, inputs, attrs) and takes the op's outputs, or None."""
    for _ in range(rounds):
        for theme in themes:
            cases = theme()
            result = None
            try:
                while True:
                    result = yield cases.send(result)
            except StopIteration:
                pass


def quoted(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def element_text(value):
    if isinstance(value, bytes):
        return quoted(value.decode())
    if isinstance(value, complex):
        return f"{value.real},{value.imag}"
    return str(int(value) if isinstance(value, bool) else value)


def is_text(value):
    """Whether the bytes can stand in a line, as text."""
    try:
        return not {"\n", "\r", "\0"} & set(value.decode())
    except UnicodeDecodeError:
        return False


def tensor_text(value):
    dtype = value.dtype.name
    dims = ",".join(str(dim) for dim in value.shape)
    array = value.numpy()
    if dtype == "bfloat16":
        array = array.astype(np.float32)
    elements = np.reshape(array, [-1]).tolist()
    if dtype == "string" and not all(map(is_text, elements)):
        return " ".join(["bytes", f"[{dims}]"] +
                        ["x" + element.hex() for element in elements])
    words = [NAMES.get(dtype, dtype), f"[{dims}]"]
    return " ".join(words + [element_text(element) for element in elements])


def attr_text(name, value):
    if isinstance(value, tf.DType):
        return f"attr {name} type {NAMES.get(value.name, value.name)}"
    if isinstance(value, bool):
        return f"attr {name} bool {str(value).lower()}"
    if isinstance(value, int):
        return f"attr {name} int {value}"
    if isinstance(value, float):
        return f"attr {name} float {value}"
    if isinstance(value, list) and value and isinstance(value[0], float):
        return f'attr {name} floats "{" ".join(map(str, value))}"'
    if isinstance(value, list) and value and isinstance(value[0], str):
        return f'attr {name} strings "{" ".join(value)}"'
    if isinstance(value, list):
        return f"attr {name} ints [{','.join(map(str, value))}]"
    is_word = not set(value) & set(' "\\')
    return f"attr {name} string {value if is_word else quoted(value)}"


CODES = {3: "InvalidArgument", 11: "OutOfRange"}


def record(path, themes, rounds):
    """Writes the cases of so many rounds over the themes."""
    lines = []
    cases = all_cases(themes, rounds)
    result = None
    try:
        while True:
            op, inputs, attrs = cases.send(result)
            error = result = None
            flat = [item for value in inputs for item in
                    (value if isinstance(value, list) else [value])]
            # Before: some ops change what they are given.
            given = ["in " + tensor_text(value) for value in flat]
            try:
                _, result = compute(op, inputs, attrs)
            except tf.errors.OpError as caught:
                error = CODES.get(caught.error_code)
                if error is None:  # no such kernel
                    continue
            lines.append(f"op {op}")
            lines += [attr_text(name, attrs[name]) for name in attrs
                      if attrs[name] != ""]
            lines += given
            if error:
                lines.append(f"error {error}")
            else:
                lines += ["out " + tensor_text(value) for value in result]
    except StopIteration:
        pass
    path.write_text("\n".join(lines) + "\n")


def main():
    record(pathlib.Path(sys.argv[1]) / "array.txt", THEMES, rounds=10)


if __name__ == "__main__":
    main()
