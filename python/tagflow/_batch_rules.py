"""How ops with batched inputs become ops for the whole batch.

A rule gets a Case and returns the results, whose first axis is the batch; an
Each around one says that it is the same for all elements. None stands for a
case that the rule does not know. Without a rule, or in such a case, there is a
loop over the elements, which is right for every op.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from ._batching import Level, innermost, with_first
from .symbolic import SymbolicTensor, add_op, as_tensor, emit

__all__ = ["apply"]

Tensors = List[SymbolicTensor]


class Each(NamedTuple):
    """A result that is the same for all elements."""
    value: SymbolicTensor


class Case:
    """An op of which some inputs are batched at a level."""

    def __init__(self, level: Level, op: str, inputs: Tensors,
                 attrs: Dict[str, Any]) -> None:
        self.level = level
        self.op = op
        self.attrs = attrs
        self.given = inputs
        self.batched = [level.has(x) for x in inputs]
        # With the batch as the first axis, where they have one.
        self.x = [x._inner if flag else x  # type: ignore[attr-defined]
                  for x, flag in zip(inputs, self.batched)]

    def rank(self, i: int) -> Optional[int]:
        """Of an element."""
        shape = self.given[i].shape
        return None if shape is None else len(shape)

    def whole(self, i: int) -> SymbolicTensor:
        """The input, repeated if it has no batch."""
        return self.level.unwrap(self.given[i])

    def add(self, inputs: Sequence[SymbolicTensor], **changed: Any) -> Tensors:
        """The op with other inputs, and some other attributes."""
        return add_op(self.op, inputs, {**self.attrs, **changed})

    def any_of(self, numbers: Sequence[int]) -> bool:
        return any(self.batched[i] for i in numbers)


Result = Optional[Sequence[Any]]
Rule = Callable[[Case], Result]

_rules: Dict[str, Rule] = {}


def _rule(*ops: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for op in ops:
            _rules[op] = rule
        return rule
    return register


def apply(op: str, inputs: Sequence[SymbolicTensor],
          attrs: Dict[str, Any]) -> Tensors:
    """Adds an op of which some inputs are batched."""
    tensors = [as_tensor(x) for x in inputs]
    level = innermost(tensors)
    if level is None:  # the batch was that of the loop around
        return add_op(op, tensors, attrs)
    rule = _rules.get(op)
    made = rule(Case(level, op, tensors, attrs)) if rule else None
    if made is None:
        return level.map_over(lambda xs: add_op(op, xs, attrs), tensors)
    return [x.value if isinstance(x, Each) else level.wrap(x) for x in made]


# --- Axes --------------------------------------------------------------------

def _more_axes(x: SymbolicTensor, count: int) -> SymbolicTensor:
    """With that many axes of length 1 behind the batch."""
    for _ in range(count):
        x = emit("ExpandDims", [x, as_tensor(1)])
    return x


def _aligned(case: Case, numbers: Sequence[int]) -> Optional[Tensors]:
    """The inputs so that their elements are broadcast to each other; None if
    a rank is unknown."""
    ranks = [case.rank(i) for i in numbers]
    known = [r for r in ranks if r is not None]
    if len(known) < len(ranks):
        return None
    return [_more_axes(case.x[i], max(known) - r) if case.batched[i]
            else case.x[i] for i, r in zip(numbers, known)]


def _later(axes: SymbolicTensor) -> SymbolicTensor:
    """Axes of an element, as axes of the batch."""
    if axes._const is not None:
        at = axes._const
        return as_tensor(np.where(at >= 0, at + 1, at).astype(at.dtype))
    one = as_tensor(1, axes.dtype)
    return emit("AddV2", [axes, emit("Cast", [
        emit("GreaterEqual", [axes, emit("ZerosLike", [axes])]),
    ], DstT=axes.dtype) * one])


def _axis(case: Case, i: int) -> Optional[int]:
    """A constant axis."""
    value = case.x[i]._const
    return None if value is None or case.batched[i] else int(value)


_ELEMENTWISE = """
Abs Acos Acosh Angle Asin Asinh Atan Atanh BesselI0e BesselI1e Bitcast Cast Ceil
CheckNumerics ComplexAbs Conj Cos Cosh Digamma Elu Erf Erfc Erfinv Exp Expm1
Floor Identity Imag Inv Invert IsFinite IsInf IsNan LeakyRelu Lgamma Log Log1p
LogicalNot Ndtri Neg OnesLike PreventGradient Real Reciprocal Relu Relu6 Rint
Round Rsqrt Selu Sigmoid Sign Sin Sinh Snapshot Softplus Softsign Sqrt Square
StopGradient Tan Tanh ZerosLike
Add AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor ClipByValue Complex Div DivNoNan
Equal FloorDiv FloorMod Greater GreaterEqual Igamma Igammac LeftShift Less
LessEqual LogicalAnd LogicalOr Maximum Minimum Mod Mul MulNoNan NextAfter
NotEqual Polygamma Pow RealDiv RightShift SelectV2 SquaredDifference Sub
TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta
BatchMatMulV2
AsString Bucketize PopulationCount StringLength StringLower StringStrip
StringToHashBucketFast StringToNumber StringUpper
""".split()


@_rule(*_ELEMENTWISE)
def _elementwise(case: Case) -> Result:
    if len(case.x) == 1:
        return case.add(case.x)
    inputs = _aligned(case, range(len(case.x)))
    return None if inputs is None else case.add(inputs)


@_rule("All", "Any", "ArgMax", "ArgMin", "Cumprod", "Cumsum",
       "CumulativeLogsumexp", "EuclideanNorm", "ExpandDims", "Max", "Mean",
       "Min", "Prod", "ReverseV2", "Sum")
def _along_axes(case: Case) -> Result:
    if case.batched[1]:
        return None
    return case.add([case.x[0], _later(case.x[1])])


@_rule("Roll")
def _roll(case: Case) -> Result:
    if case.any_of([1, 2]):
        return None
    return case.add([*case.x[:2], _later(case.x[2])])


@_rule("Cholesky", "LogMatrixDeterminant", "LogSoftmax", "MatrixBandPart",
       "MatrixDeterminant", "MatrixDiag", "MatrixDiagPart", "MatrixInverse",
       "Qr", "SelfAdjointEigV2", "Softmax", "Svd", "TopKV2")
def _last_axes(case: Case) -> Result:
    """Ops of the last axes, for any number of axes in front."""
    if not case.batched[0] or case.any_of(range(1, len(case.x))):
        return None
    return case.add(case.x)


@_rule("AddN", "Cross", "MatrixSolve", "MatrixTriangularSolve")
def _same_axes(case: Case) -> Result:
    """Ops of the last axes of inputs with the same axes in front."""
    return case.add([case.whole(i) for i in range(len(case.x))])


@_rule("AvgPool", "Conv2D", "DepthwiseConv2dNative", "MaxPool", "LowerBound",
       "UpperBound", "SoftmaxCrossEntropyWithLogits",
       "SparseSoftmaxCrossEntropyWithLogits")
def _rows(case: Case) -> Result:
    """Ops that do the same for each part along the first axis, which the batch
    is merged with."""
    from . import numpy as tnp
    count = 2 if len(case.x) == 2 and not case.op.endswith("2D") and (
        "Conv" not in case.op) else 1
    if case.any_of(range(count, len(case.x))):
        return None
    ranks = [case.rank(i) for i in range(count)]
    if None in ranks:
        return None
    inputs = list(case.x)
    dims: Any = ()
    for i in range(count):
        x = case.whole(i)
        dims = tnp.shape(x)
        inputs[i] = tnp.reshape(x, (dims[0] * dims[1], *dims[2:]))
    made = case.add(inputs)
    return [tnp.reshape(y, (*dims[:2], *tnp.shape(y)[1:])) for y in made]


@_rule("BiasAdd")
def _bias_add(case: Case) -> Result:
    if case.attrs.get("data_format", "NHWC") not in ("NHWC", b"NHWC"):
        return None
    if case.batched[1]:
        inputs = _aligned(case, (0, 1))
        return None if inputs is None else [emit("AddV2", inputs)]
    return case.add(case.x)


# --- Products ----------------------------------------------------------------

@_rule("MatMul")
def _matmul(case: Case) -> Result:
    from . import numpy as tnp
    a, b = case.x
    flip_a = bool(case.attrs.get("transpose_a", False))
    flip_b = bool(case.attrs.get("transpose_b", False))
    if case.batched[0] and not case.batched[1] and not flip_a:
        # One product of more rows.
        dims = tnp.shape(a)
        rows = tnp.reshape(a, (dims[0] * dims[1], dims[2]))
        made = emit("MatMul", [rows, b], transpose_b=flip_b)
        return [tnp.reshape(made, (*dims[:2], tnp.shape(made)[1]))]
    inputs = [tnp.swapaxes(x, -1, -2) if flip else x
              for x, flip in ((a, flip_a), (b, flip_b))]
    return [emit("BatchMatMulV2", inputs)]


@_rule("Einsum")
def _einsum(case: Case) -> Result:
    equation = case.attrs["equation"]
    text = equation.decode() if isinstance(equation, bytes) else equation
    inputs, arrow, result = text.replace(" ", "").partition("->")
    free = next((c for c in map(chr, range(ord("A"), ord("z") + 1))
                 if c.isalpha() and c not in text), None)
    if free is None or not arrow:
        return None
    labels = [free + each if flag else each
              for each, flag in zip(inputs.split(","), case.batched)]
    return case.add(case.x, equation=f"{','.join(labels)}->{free}{result}")


# --- Shapes ------------------------------------------------------------------

@_rule("Shape")
def _shape(case: Case) -> Result:
    return [Each(case.add(case.x)[0][1:])]


@_rule("Size")
def _size(case: Case) -> Result:
    from . import numpy as tnp
    dtype = case.attrs.get("out_type", np.dtype(np.int32))
    dims = emit("Shape", [case.x[0]], out_type=dtype)
    return [Each(tnp.prod(dims[1:]))]


@_rule("Rank")
def _rank(case: Case) -> Result:
    return [Each(case.add(case.x)[0] - 1)]


@_rule("IdentityN")
def _identity_n(case: Case) -> Result:
    made = case.add(case.x)
    return [y if flag else Each(y) for y, flag in zip(made, case.batched)]


@_rule("Reshape")
def _reshape(case: Case) -> Result:
    if case.batched[1]:
        return None
    target = case.x[1]
    shape = case.given[0].shape
    dims = target._const
    if dims is not None and (dims == -1).any() and shape is not None and (
            None not in shape):
        # An empty batch leaves nothing to find the dimension by.
        known = math.prod(int(d) for d in dims if d != -1)
        if known:
            target = as_tensor(np.where(
                dims == -1, math.prod(shape) // known, dims
            ).astype(dims.dtype))
    return case.add([case.x[0], with_first(case.level.length, target)])


@_rule("Transpose")
def _transpose(case: Case) -> Result:
    if case.batched[1]:
        return None
    order = case.x[1]
    if order._const is not None:
        order = as_tensor(order._const + np.asarray(1, order._const.dtype))
    else:
        order = order + 1
    return case.add([case.x[0], with_first(0, order)])


@_rule("Squeeze")
def _squeeze(case: Case) -> Result:
    axes = list(case.attrs.get("squeeze_dims", []))
    if not axes:
        shape = case.given[0].shape
        if shape is None or None in shape:
            return None
        axes = [i for i, d in enumerate(shape) if d == 1]
        if not axes:
            return case.x
    return case.add(case.x, squeeze_dims=[a + 1 if a >= 0 else a
                                          for a in axes])


@_rule("BroadcastTo")
def _broadcast_to(case: Case) -> Result:
    x, target = case.x
    size = target.shape[0] if target.shape else None
    rank = case.rank(0)
    if case.batched[1] or size is None or rank is None:
        return None
    return case.add([_more_axes(x, size - rank),
                     with_first(case.level.length, target)])


@_rule("Fill")
def _fill(case: Case) -> Result:
    dims, value = case.x
    size = dims.shape[0] if dims.shape else None
    if case.batched[0] or size is None:
        return None
    return [emit("BroadcastTo", [_more_axes(value, size),
                                 with_first(case.level.length, dims)])]


@_rule("Tile")
def _tile(case: Case) -> Result:
    if case.batched[1]:
        return None
    return case.add([case.x[0], with_first(1, case.x[1])])


@_rule("MirrorPad", "Pad", "PadV2")
def _pad(case: Case) -> Result:
    if case.any_of(range(1, len(case.x))):
        return None
    widths = case.x[1]
    none = as_tensor(np.zeros((1, 2), np.int32))
    widths = emit("ConcatV2", [emit("Cast", [none], DstT=widths.dtype),
                               widths, as_tensor(0)])
    return case.add([case.x[0], widths, *case.x[2:]])


@_rule("ConcatV2")
def _concat(case: Case) -> Result:
    if case.batched[-1]:
        return None
    return case.add([*(case.whole(i) for i in range(len(case.x) - 1)),
                     _later(case.x[-1])])


@_rule("Pack")
def _pack(case: Case) -> Result:
    axis = case.attrs.get("axis", 0)
    return case.add([case.whole(i) for i in range(len(case.x))],
                    axis=axis + 1 if axis >= 0 else axis)


@_rule("Unpack")
def _unpack(case: Case) -> Result:
    axis = case.attrs.get("axis", 0)
    return case.add(case.x, axis=axis + 1 if axis >= 0 else axis)


@_rule("Split")
def _split(case: Case) -> Result:
    if case.batched[0]:
        return None
    return case.add([_later(case.x[0]), case.x[1]])


@_rule("SplitV")
def _split_v(case: Case) -> Result:
    if case.any_of([1, 2]):
        return None
    return case.add([*case.x[:2], _later(case.x[2])])


@_rule("OneHot")
def _one_hot(case: Case) -> Result:
    if case.any_of([1, 2, 3]):
        return None
    axis = case.attrs.get("axis", -1)
    return case.add(case.x, axis=axis + 1 if axis >= 0 else axis)


# --- Parts -------------------------------------------------------------------

def _masks(attrs: Dict[str, Any]) -> Dict[str, int]:
    """Those of a strided slice, with the whole batch in front."""
    made = {}
    for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis"):
        whole = name in ("begin", "end")
        made[f"{name}_mask"] = attrs.get(f"{name}_mask", 0) << 1 | whole
    return made


def _ends(case: Case) -> Tensors:
    return [with_first(first, case.x[i])
            for i, first in ((1, 0), (2, 0), (3, 1))]


@_rule("StridedSlice")
def _strided_slice(case: Case) -> Result:
    if case.any_of([1, 2, 3]):
        return None
    return case.add([case.x[0], *_ends(case)], **_masks(case.attrs))


@_rule("TensorStridedSliceUpdate")
def _strided_update(case: Case) -> Result:
    if case.any_of([1, 2, 3]):
        return None
    return case.add([case.whole(0), *_ends(case), case.whole(4)],
                    **_masks(case.attrs))


@_rule("Slice")
def _slice(case: Case) -> Result:
    if case.any_of([1, 2]):
        return None
    return case.add([case.x[0], with_first(0, case.x[1]),
                     with_first(-1, case.x[2])])


@_rule("GatherV2")
def _gather(case: Case) -> Result:
    from . import numpy as tnp
    x, at, _ = case.x
    axis, rank = _axis(case, 2), case.rank(0)
    same = case.attrs.get("batch_dims", 0)
    if axis is None or same < 0 or (axis < 0 and rank is None):
        return None
    if axis < 0:
        axis += rank or 0
    if case.batched[0] and not case.batched[1] and not same:
        return case.add([x, at, as_tensor(axis + 1)])
    if case.batched[0] or same:
        return case.add([case.whole(0), case.whole(1), as_tensor(axis + 1)],
                        batch_dims=same + 1)
    found = case.add(case.x[:2] + [as_tensor(axis)])[0]
    if axis and found.shape is None:
        return None
    return [tnp.moveaxis(found, axis, 0)]


def _positions(case: Case, i: int) -> Optional[SymbolicTensor]:
    """Indices, with the number of the element in front."""
    from . import numpy as tnp
    at = case.whole(i)
    if at.shape is None:
        return None
    dims = tnp.shape(at)
    numbers = tnp.reshape(tnp.arange(case.level.length, dtype=at.dtype),
                          (dims[0], *[1] * (len(dims) - 1)))
    return tnp.concatenate(
        [tnp.broadcast_to(numbers, (*dims[:-1], 1)), at], -1)


@_rule("GatherNd")
def _gather_nd(case: Case) -> Result:
    if not case.batched[0]:
        return case.add(case.x)
    at = _positions(case, 1)
    return None if at is None else case.add([case.x[0], at])


@_rule("TensorScatterAdd", "TensorScatterMax", "TensorScatterMin",
       "TensorScatterSub", "TensorScatterUpdate")
def _scatter(case: Case) -> Result:
    at = _positions(case, 1)
    return None if at is None else case.add(
        [case.whole(0), at, case.whole(2)])


@_rule("ScatterNd")
def _scatter_nd(case: Case) -> Result:
    if case.batched[2]:
        return None
    at = _positions(case, 0)
    return None if at is None else case.add([
        at, case.whole(1), with_first(case.level.length, case.x[2])])
