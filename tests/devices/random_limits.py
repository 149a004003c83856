"""Limits of sizes and ranks, and shapes of what must be a scalar."""
from random_ops import *


def misc():
    dtype = rnd.choice(NUMBER + ["bool", "string"])
    x, y = tensor(shape(), dtype), tensor(shape(), "int32")
    yield "IdentityN", [[x, y]], {}
    yield "Assert", [tensor([] if not rare(0.2) else shape(), "bool"), [x]], {
        "summarize": rnd.choice([-1, 0, 3])}
    yield "Switch", [x, tensor([], "bool")], {}
    yield "_SwitchN", [x, tensor([], "int32", -1, 3)], {"num_outs": 2}
    yield "Merge", [[x]], {}
    yield "LoopCond", [tensor([], "bool")], {}
    yield "PlaceholderWithDefault", [x], {
        "shape": rnd.choice([None, list(x.shape), [-1] * x.ndim, shape()]),
        "dtype": dtype}
    yield "ExpandDims", [x, ints(rnd.randint(-x.ndim - 1, x.ndim), None)], {}
    ranks = rnd.choice([7, 8, 9, 10, 12, 100, 253, 254, 255, 300])
    yield "Reshape", [tensor([1], dtype), ints([1] * ranks)], {}
    yield "Fill", [ints([1] * ranks), tensor([], dtype)], {}
    huge = rnd.choice([2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -1,
                       -2**31, -2**63, 65536])
    yield "Reshape", [tensor([0], dtype), ints([huge, 0], "int64")], {}
    yield "Reshape", [tensor([0], dtype), ints([huge, huge, 0], "int64")], {}
    yield "Reshape", [tensor([0], dtype), ints([-1, 0], "int64")], {}
    yield "Reshape", [tensor([2], dtype), ints([huge, 2], "int64")], {}
    yield "Fill", [ints([huge, 0], "int64"), tensor([], dtype)], {}
    yield "Fill", [ints([huge, huge], "int64"), tensor([], dtype)], {}
    yield "BroadcastTo", [tensor([1], "float32"),
                          ints([huge, huge], "int64")], {}
    yield "BroadcastTo", [tensor([0], "float32"), ints([huge, 0], "int64")], {}
    yield "Tile", [tensor([0], "float32"), ints([huge], "int64")], {}
    yield "OneHot", [tensor([0], "int32"), ints(min(max(
        huge, -2**31), 2**31 - 1), "int32"), tensor([], dtype),
        tensor([], dtype)], {"axis": rnd.choice([-1, 0])}
    real = rnd.choice(["int32", "int64", "float32", "float64"])
    yield "Range", [tensor([], real, limits=0.3), tensor([], real, limits=.3),
                    tensor([], real, -2, 2)], {}
    x = tensor(shape(rnd.randint(1, 3)), rnd.choice(["float32", "int32"]))
    yield "Slice", [x, ints([rnd.choice([0, huge, -1, 1])] * x.ndim, "int64"),
                    ints([rnd.choice([0, huge, -1, 1])] * x.ndim, "int64")], {}
    yield "StridedSlice", [x] + [
        ints([rnd.choice([0, huge, -1, 1, 2**63 - 1, -2**63])], "int64")
        for _ in "bes"], {"begin_mask": rnd.randint(0, 1),
                          "end_mask": rnd.randint(0, 1)}
    yield "Roll", [x, tensor([1], "int64", limits=0.8),
                   ints([rnd.randrange(x.ndim)])], {}
    yield "Pad", [x, ints([[rnd.choice([0, 0, huge]), 0]] * x.ndim, "int64")], {}
    yield "MatrixBandPart", [tensor([3, 3], "int32"),
                             ints(huge, "int64"), ints(huge, "int64")], {}


def scalars():
    """What must be a scalar, in other shapes of one element, and of two."""
    f = lambda *s: np.arange(1, 1 + int(np.prod(s)), dtype=np.float32).reshape(s)
    i = lambda *v: np.array(v, np.int32)
    g = lambda *s: np.arange(1, 1 + int(np.prod(s)), dtype=np.float32).reshape(s) / 4
    for v in [(), (1,), (1, 1), (2,), (0,)]:
        z = np.full(v, 0, np.int32)
        one = np.full(v, 1, np.int32)
        two = np.full(v, 2, np.int32)
        x = np.full(v, 3, np.float32)
        yield 'Fill', [i(2), x], {}
        yield 'Fill', [i(), x], {}
        yield 'Range', [one, np.int32(5), np.int32(1)], {}
        yield 'Range', [np.int32(0), two, np.int32(1)], {}
        yield 'Range', [np.int32(0), np.int32(5), two], {}
        yield 'Split', [z, f(2, 2)], dict(num_split=2)
        yield 'Split', [z, f(2, 2)], dict(num_split=1)
        yield 'SplitV', [f(2, 2), i(1, 1), z], dict(num_split=2)
        yield 'MatrixBandPart', [f(2, 2), z.astype(np.int64), np.int64(0)], {}
        yield 'MatrixBandPart', [f(2, 2), np.int64(0), z.astype(np.int64)], {}
        yield 'ExpandDims', [f(2, 2), z], {}
        yield 'ConcatV2', [[f(2, 2), f(2, 2)], z], {}
        yield 'Concat', [z, [f(2, 2), f(2, 2)]], {}
        yield 'GatherV2', [f(2, 2), i(0), z], {}
        yield 'OneHot', [i(0), two, np.float32(1), np.float32(0)], {}
        yield 'OneHot', [i(0), np.int32(2), x, np.float32(0)], {}
        yield 'OneHot', [i(0), np.int32(2), np.float32(0), x], {}
        yield 'Cumsum', [f(2, 2), z], {}
        yield 'Cumprod', [f(2, 2), z], {}
        yield 'CumulativeLogsumexp', [f(2, 2), z], {}
        yield 'ArgMax', [f(2, 2), z], {}
        yield 'TopKV2', [f(2, 2), one], {}
        yield 'LinSpace', [x, np.float32(4), np.int32(2)], {}
        yield 'LinSpace', [np.float32(1), x, np.int32(2)], {}
        yield 'LinSpace', [np.float32(1), np.float32(4), two], {}
        yield 'ConcatOffset', [z, [i(1, 2), i(1, 2)]], {}
        yield 'PadV2', [f(2), np.array([[1, 1]], np.int32), x], {}
        yield 'Bincount', [i(1, 2), two, f(0)], {}
        yield 'DenseBincount', [i(1, 2), two, f(0)], {}
        yield 'UnsortedSegmentSum', [f(2), i(0, 1), two], {}
        yield 'SparseSegmentSumWithNumSegments', [f(2), i(0, 1), i(0, 1),
                                                  two], {}
        yield 'InTopKV2', [f(1, 2), i(1), one], {}
        yield 'ClipByValue', [f(2), x, np.float32(9)], {}
        yield 'ClipByValue', [f(2), np.float32(0), x], {}
        yield 'MatrixDiagPartV2', [f(2, 2), np.int32(0), x], {}
        yield 'MatrixDiagPartV3', [f(2, 2), z, np.float32(0)], {}
        yield 'MatrixDiagV2', [f(2), np.int32(0), two, np.int32(2),
                               np.float32(1)], {}
        yield 'MatrixDiagV2', [f(2), np.int32(0), np.int32(2), two,
                               np.float32(1)], {}
        yield 'MatrixDiagV2', [f(2), z, np.int32(2), np.int32(2),
                               np.float32(1)], {}
        yield 'MatrixDiagV2', [f(2), np.int32(0), np.int32(2), np.int32(3),
                               x], {}
        yield 'MatrixSetDiagV2', [f(2, 2), f(2), z], {}
        yield 'HistogramFixedWidth', [f(2), np.array([0, 9], np.float32),
                                      two], {}
        yield 'StringSplit', [words([2]), np.full(v, b' ', object)], {}
        yield 'StringSplitV2', [words([2]), np.full(v, b' ', object)], {}
        yield 'Switch', [f(2), np.full(v, True)], {}
        yield '_SwitchN', [f(2), z], {'num_outs': 2}
        yield 'Assert', [np.full(v, True), [f(2)]], {}
        yield 'LoopCond', [np.full(v, True)], {}
        yield 'Sum', [f(2, 2), z], {}
        yield 'ReverseV2', [f(2, 2), z], {}
        yield 'Roll', [f(2, 2), one, z], {}
        yield 'Reshape', [f(1), one], {}
        yield 'Tile', [f(2), two], {}
        yield 'BroadcastTo', [f(1), two], {}
        yield 'Transpose', [f(2), z], {}
        yield 'Select', [np.full(v, True), f(2), f(2)], {}
        yield 'Squeeze', [x], {}
        yield 'Substr', [words([2]), z, one], {}
        yield 'SoftmaxCrossEntropyWithLogits', [x, f(2, 2)], {}
        yield 'SoftmaxCrossEntropyWithLogits', [f(2, 2), x], {}
        yield 'ScatterNd', [z, x, i(2)], {}
        yield 'TensorScatterAdd', [f(2), z, x], {}
        yield 'GatherNd', [f(2), z], {}
        yield 'UniqueV2', [f(2), z.astype(np.int64)], {}
        yield 'Bitcast', [x], {'type': 'int32'}
        for op in GRADS:
            yield op, [x, g(1)], {}
            yield op, [g(2, 1), g(*(v or (2,)))], {}
        for op in ('BiasAdd', 'BiasAddV1'):
            yield op, [f(1, 2), x], {}
    for dims in ([0], [2, 0], [0, 2], [4, 2, 0], [2, 3], [7], []):
        for summarize in (-1, 0, 1, 2, 3):
            yield 'StringFormat', [[tensor(dims, 'int32')]], {
                'template': 'a{}b', 'placeholder': '{}',
                'summarize': summarize}
    for dtype in FLOATS + INTS + COMPLEX + ['bool', 'string']:
        yield 'ToBool', [np.full([], 0 if dtype != 'string' else b'', np_type(dtype))], {}
        yield 'Where', [tensor([2, 2], dtype if dtype != 'string' else 'bool', 0, 1)], {}
    for fs in ([2, 2, 3, 0], [0, 2, 3, 2], [2, 2, 0, 2], [2, 0, 3, 0]):
        for op in ('Conv2D', 'DepthwiseConv2dNative'):
            for pad in ('SAME', 'VALID'):
                yield op, [f(1, 4, 4, fs[2] or 3), f(*fs)], {
                    'strides': [1, 1, 1, 1], 'padding': pad}
        yield 'Conv3D', [f(1, 2, 4, 4, fs[2] or 3), f(1, *fs)], {
            'strides': [1, 1, 1, 1, 1], 'padding': 'SAME'}
    for dtype in ('float32', 'float16', 'bfloat16'):
        for training in (True, False):
            for shape_ in ([2, 2, 2, 3], [0, 2, 2, 3], [2, 2, 2, 0],
                           [1, 1, 1, 2]):
                c = shape_[-1]
                r = yield 'FusedBatchNormV3', [
                    tensor(shape_, dtype)] + [tensor([c], 'float32', 1, 2)
                                              for _ in 'somv'], {
                        'is_training': training}
                for third in ([0], [], [3]):
                    if r is not None:
                        yield 'FusedBatchNormGradV3', [
                            tensor(shape_, dtype), tensor(shape_, dtype),
                            tensor([c], 'float32', 1, 2), r[3], r[4],
                            tensor(third, 'float32')], {
                                'is_training': training}
    for n in (3, 8, 20):
        for k in (0, 1, 2, n - 1, n):
            for dtype in ('float32', 'int32'):
                yield 'TopKV2', [tensor([3, n], dtype, -3, 3), np.int32(k)], {
                    'sorted': False}
    for r in (252, 253, 254, 255):
        yield 'Fill', [ints([1] * r), np.float32(1)], {}
        yield 'Reshape', [f(1), ints([1] * r)], {}
        yield 'BroadcastTo', [f(1), ints([1] * r)], {}
    h = 2**62
    for dims in ([h, h, 0], [0, h, h], [h, 0, h], [2**31, 2**31, 0], [h, 2, 0],
                 [0, 2**31], [h], [2**61], [2**33, 2**30], [2**40]):
        yield 'Fill', [ints(dims, 'int64'), np.float32(1)], {}
        yield 'Reshape', [f(0), ints(dims, 'int64')], {}
        yield 'Reshape', [f(2), ints(dims, 'int64')], {}
        yield 'BroadcastTo', [f(1), ints(dims, 'int64')], {}
    for axis in (-4, -3, 2, 3, 9):
        for op in ('ReduceJoin',):
            yield op, [tensor([2, 2, 2], 'string'), np.array([axis], np.int32)], {}
    for dims, at in (([3, 0], [5]), ([0, 3], [0]), ([0, 0], [1]),
                     ([3, 0], [-1])):
        yield 'Gather', [f(*dims), i(*at)], {}
        yield 'GatherV2', [f(*dims), i(*at), np.int32(0)], {}
        yield 'GatherV2', [f(*dims), i(*at), np.int32(1)], {}
    for dims in ([0, 2, 2, 1], [1, 0, 2, 1], [1, 2, 2, 0]):
        a = {'ksize': [1, 2, 2, 1], 'strides': [1, 1, 1, 1], 'padding': 'SAME'}
        for op in ('MaxPool', 'AvgPool', 'MaxPoolWithArgmax'):
            yield op, [f(*dims)], a
        yield 'ResizeBilinear', [f(*dims), i(2, 2)], {}
        yield 'ResizeNearestNeighbor', [f(*dims), i(2, 2)], {}
        yield 'LRN', [f(*dims)], {}
        yield 'SpaceToDepth', [f(*dims)], {'block_size': 2}
        yield 'DepthToSpace', [f(*dims)], {'block_size': 2}


THEMES = [misc, scalars]
