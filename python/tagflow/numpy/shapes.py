"""Shapes: how elements are arranged, joined and cut."""

from __future__ import annotations

import builtins
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from .._lift import lifted
from ..symbolic import (SymbolicTensor, Value, as_tensor, emit, emit_all,
                        is_number)
from ._types import cast, promote

__all__ = ["append", "atleast_1d", "atleast_2d", "broadcast_arrays",
           "broadcast_to", "column_stack", "concatenate", "diag", "diagonal",
           "expand_dims", "flip", "fliplr", "flipud", "hstack", "meshgrid",
           "moveaxis", "ndim", "pad", "ravel", "repeat", "reshape", "roll",
           "rot90", "shape", "size", "split", "squeeze", "stack", "swapaxes",
           "tile", "trace", "transpose", "tril", "triu", "unstack", "vstack"]

_slice = slice


def _axis_of(x: SymbolicTensor, axis: int, more: int = 0) -> int:
    """The axis as a number from 0 on, if the rank is known."""
    axis = int(axis)
    if x.shape is None:
        return axis
    rank = len(x.shape) + more
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of {x!r}, which has {rank}")
    return axis % rank


def _known_rank(x: Value, what: str) -> SymbolicTensor:
    x = as_tensor(x)
    if x.shape is None:
        raise ValueError(f"{what}: the rank of {x!r} must be known")
    return x


def _ints(values: Any) -> SymbolicTensor:
    """A vector of ints, some of which may be tensors."""
    if isinstance(values, SymbolicTensor):
        return values if values.dtype in (np.int32, np.int64) else cast(
            values, np.dtype(np.int32))
    if isinstance(values, (int, np.integer)):
        values = (values,)
    values = list(values)
    if any(isinstance(v, SymbolicTensor) for v in values):
        return emit("Pack", [cast(as_tensor(v, np.dtype(np.int32)),
                                  np.dtype(np.int32)) for v in values])
    array = np.asarray(values, np.int64)
    small = array.size == 0 or np.abs(array).max() < 2**31
    return as_tensor(array.astype(np.int32) if small else array)


@lifted
def shape(x: Value) -> Any:
    """A tuple of the dimensions: ints, and int32 tensors for those that are
    not known. A tensor, if the rank is not known."""
    x = as_tensor(x)
    if x.shape is None:
        return emit("Shape", [x])
    if None not in x.shape:
        return x.shape
    dims = emit("Shape", [x])
    return tuple(dims[i] if d is None else d for i, d in enumerate(x.shape))


@lifted
def size(x: Value, axis: Optional[int] = None) -> Any:
    """The number of elements, along an axis or of all: an int if it is known,
    else an int32 tensor."""
    x = as_tensor(x)
    if axis is not None:
        axis = _axis_of(x, axis)
        if x.shape is not None and x.shape[axis] is not None:
            return x.shape[axis]
        return emit("Shape", [x])[axis]
    if x.shape is not None and None not in x.shape:
        return int(np.prod(x.shape, dtype=np.int64))
    return emit("Size", [x])


@lifted
def ndim(x: Value) -> int:
    """The number of axes."""
    return len(_known_rank(x, "ndim").shape or ())


@lifted
def reshape(x: Value, shape: Any) -> SymbolicTensor:
    """The same elements in another shape, of which one dimension may be -1,
    and any a tensor."""
    return emit("Reshape", [as_tensor(x), _ints(shape)])


@lifted
def ravel(x: Value) -> SymbolicTensor:
    """All elements in one axis."""
    return reshape(x, (-1,))


@lifted
def transpose(x: Value, axes: Optional[Sequence[int]] = None
              ) -> SymbolicTensor:
    """With the axes in another order; None: in the reverse one."""
    x = as_tensor(x)
    if axes is None:
        if x.shape is None:
            count = emit("Rank", [x])
            return emit("Transpose", [
                x, emit("Range", [count - 1, as_tensor(-1), as_tensor(-1)])])
        axes = range(len(x.shape))[::-1]
    axes = [_axis_of(x, a) for a in axes]
    if axes == list(builtins.range(len(axes))):
        return x
    return emit("Transpose", [x, as_tensor(np.asarray(axes, np.int32))])


@lifted
def moveaxis(x: Value, source: int, destination: int) -> SymbolicTensor:
    """With an axis at another place."""
    x = as_tensor(x)
    if source == destination:
        return x
    x = _known_rank(x, "moveaxis")
    order = list(builtins.range(len(x.shape or ())))
    axis = order.pop(_axis_of(x, source))
    order.insert(_axis_of(x, destination), axis)
    return transpose(x, order)


@lifted
def swapaxes(x: Value, a: int, b: int) -> SymbolicTensor:
    """With two axes exchanged."""
    x = _known_rank(x, "swapaxes")
    order = list(builtins.range(len(x.shape or ())))
    a, b = _axis_of(x, a), _axis_of(x, b)
    order[a], order[b] = b, a
    return transpose(x, order)


@lifted
def expand_dims(x: Value, axis: Union[int, Sequence[int]]) -> SymbolicTensor:
    """With new axes of length 1."""
    x = as_tensor(x)
    if isinstance(axis, (int, np.integer)):
        return emit("ExpandDims", [x, as_tensor(int(axis))])
    rank = len(_known_rank(x, "expand_dims").shape or ()) + len(axis)
    for a in sorted(int(a) % rank for a in axis):
        x = emit("ExpandDims", [x, as_tensor(a)])
    return x


@lifted
def squeeze(x: Value, axis: Union[None, int, Sequence[int]] = None
            ) -> SymbolicTensor:
    """Without axes of length 1: these, or all."""
    x = as_tensor(x)
    if axis is None:
        return emit("Squeeze", [x])
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    return emit("Squeeze", [x], squeeze_dims=[_axis_of(x, a) for a in axes])


@lifted
def broadcast_to(x: Value, shape: Any) -> SymbolicTensor:
    """Repeated along axes of length 1, and new ones."""
    return emit("BroadcastTo", [as_tensor(x), _ints(shape)])


@lifted
def broadcast_arrays(*arrays: Value) -> List[SymbolicTensor]:
    """All arrays in the shape to which they broadcast."""
    tensors = [as_tensor(a) for a in arrays]
    target = emit("Shape", [tensors[0]])
    for x in tensors[1:]:
        target = emit("BroadcastArgs", [target, emit("Shape", [x])])
    shapes = [x.shape for x in tensors]
    if all(s is not None and None not in s for s in shapes):
        target = _ints(np.broadcast_shapes(
            *shapes))  # type: ignore[arg-type]
    return [emit("BroadcastTo", [x, target]) for x in tensors]


def _of_one_type(arrays: Sequence[Value]) -> List[SymbolicTensor]:
    with_types = [as_tensor(a) for a in arrays if not is_number(a)]
    if not with_types:
        with_types = [as_tensor(a) for a in arrays]
    dtype = with_types[0].dtype
    for x in with_types[1:]:
        if x.dtype != dtype:
            dtype = promote(dtype, x.dtype)
    return [cast(as_tensor(a, dtype), dtype) for a in arrays]


@lifted
def concatenate(arrays: Sequence[Value], axis: Optional[int] = 0
                ) -> SymbolicTensor:
    """Arrays one behind the other along an axis; None: of all elements."""
    if isinstance(arrays, SymbolicTensor):
        arrays = list(arrays)
    tensors = _of_one_type(arrays)
    if axis is None:
        tensors, axis = [ravel(x) for x in tensors], 0
    if len(tensors) == 1:
        return tensors[0]
    axis = _axis_of(tensors[0], axis)
    return emit("ConcatV2", [*tensors, as_tensor(axis)])


@lifted
def stack(arrays: Sequence[Value], axis: int = 0) -> SymbolicTensor:
    """Arrays of one shape along a new axis."""
    if isinstance(arrays, SymbolicTensor):
        arrays = list(arrays)
    arrays = [stack(a) if isinstance(a, (list, tuple)) else a for a in arrays]
    return emit("Pack", _of_one_type(arrays), axis=int(axis))


@lifted
def unstack(x: Value, axis: int = 0) -> List[SymbolicTensor]:
    """The parts along an axis, whose length must be known."""
    x = _known_rank(x, "unstack")
    axis = _axis_of(x, axis)
    count = (x.shape or ())[axis]
    if count is None:
        raise ValueError(f"unstack: the length of axis {axis} must be known")
    if count == 0:
        return []
    return emit_all("Unpack", [x], num=count, axis=axis)


@lifted
def split(x: Value, parts: Union[int, Sequence[int]], axis: int = 0
          ) -> List[SymbolicTensor]:
    """So many equal parts along an axis, or those between these indices."""
    x = as_tensor(x)
    axis = _axis_of(x, axis)
    if isinstance(parts, (int, np.integer)):
        return emit_all("Split", [as_tensor(axis), x], num_split=int(parts))
    length = (x.shape or ())[axis] if x.shape else None
    if length is None:
        raise ValueError(f"split: the length of axis {axis} must be known")
    ends = [builtins.min(builtins.max(int(p) + (length if p < 0 else 0), 0),
                         length) for p in parts]
    sizes = [builtins.max(b - a, 0)
             for a, b in zip([0, *ends], [*ends, length])]
    return emit_all("SplitV", [x, as_tensor(np.asarray(sizes, np.int32)),
                               as_tensor(axis)], num_split=len(sizes))


@lifted
def atleast_1d(x: Value) -> SymbolicTensor:
    """A scalar becomes a vector."""
    x = _known_rank(x, "atleast_1d")
    return reshape(x, (1,)) if x.shape == () else x


@lifted
def atleast_2d(x: Value) -> SymbolicTensor:
    """A vector becomes a row."""
    x = atleast_1d(x)
    return expand_dims(x, 0) if len(x.shape or ()) == 1 else x


@lifted
def vstack(arrays: Sequence[Value]) -> SymbolicTensor:
    """Rows one above the other."""
    return concatenate([atleast_2d(a) for a in arrays], 0)


@lifted
def hstack(arrays: Sequence[Value]) -> SymbolicTensor:
    """Side by side: along the second axis, or the only one."""
    tensors = [atleast_1d(a) for a in arrays]
    return concatenate(tensors, 0 if len(tensors[0].shape or ()) == 1 else 1)


@lifted
def column_stack(arrays: Sequence[Value]) -> SymbolicTensor:
    """Vectors as the columns of a matrix."""
    tensors = [as_tensor(a) for a in arrays]
    return concatenate([expand_dims(x, 1) if len(x.shape or ()) == 1 else x
                        for x in tensors], 1)


@lifted
def append(x: Value, values: Value, axis: Optional[int] = None
           ) -> SymbolicTensor:
    """The values behind x."""
    return concatenate([x, values], axis)


@lifted
def tile(x: Value, reps: Union[int, Sequence[int]]) -> SymbolicTensor:
    """Repeated as a whole along each axis."""
    x = _known_rank(x, "tile")
    reps = [reps] if isinstance(reps, (int, np.integer)) else list(reps)
    rank = len(x.shape or ())
    if len(reps) > rank:
        x = expand_dims(x, list(builtins.range(len(reps) - rank)))
    reps = [1] * (len(x.shape or ()) - len(reps)) + reps
    return emit("Tile", [x, _ints(reps)])


@lifted
def repeat(x: Value, repeats: int, axis: Optional[int] = None
           ) -> SymbolicTensor:
    """Each element so many times."""
    x = _known_rank(x, "repeat")
    if axis is None:
        x, axis = ravel(x), 0
    axis = _axis_of(x, axis)
    dims = list(shape(x))
    reps = [1] * (len(dims) + 1)
    reps[axis + 1] = repeats
    tiled = emit("Tile", [expand_dims(x, axis + 1), _ints(reps)])
    dims[axis] = dims[axis] * repeats
    return reshape(tiled, dims)


@lifted
def flip(x: Value, axis: Union[None, int, Sequence[int]] = None
         ) -> SymbolicTensor:
    """In reverse order along these axes, or all."""
    x = _known_rank(x, "flip")
    if axis is None:
        axes = list(builtins.range(len(x.shape or ())))
    elif isinstance(axis, (int, np.integer)):
        axes = [int(axis)]
    else:
        axes = list(axis)
    axes = [_axis_of(x, a) for a in axes]
    return emit("ReverseV2", [x, as_tensor(np.asarray(axes, np.int32))])


@lifted
def fliplr(x: Value) -> SymbolicTensor:
    """Columns in reverse order."""
    return flip(x, 1)


@lifted
def flipud(x: Value) -> SymbolicTensor:
    """Rows in reverse order."""
    return flip(x, 0)


@lifted
def rot90(x: Value, k: int = 1) -> SymbolicTensor:
    """The first two axes turned by 90 degrees, k times."""
    k = k % 4
    if k == 0:
        return as_tensor(x)
    if k == 2:
        return flip(x, (0, 1))
    turned = swapaxes(x, 0, 1)
    return flip(turned, 0) if k == 1 else flip(turned, 1)


@lifted
def roll(x: Value, shift: Any, axis: Any = None) -> SymbolicTensor:
    """Shifted along axes; what leaves at the end comes in at the beginning."""
    x = as_tensor(x)
    if axis is None:
        flat = emit("Roll", [ravel(x), _ints(shift), _ints(0)])
        return reshape(flat, shape(x))
    axes: List[int] = ([int(axis)] if isinstance(axis, (int, np.integer))
                       else list(axis))
    return emit("Roll", [x, _ints(shift),
                         _ints([_axis_of(x, a) for a in axes])])


@lifted
def pad(x: Value, widths: Any, mode: str = "constant",
        constant_values: Value = 0) -> SymbolicTensor:
    """With more elements before and behind each axis: constants, or with
    "reflect" and "symmetric" mirrored ones."""
    x = _known_rank(x, "pad")
    pairs = np.broadcast_to(np.asarray(widths, np.int32),
                            (len(x.shape or ()), 2)).copy()
    if mode == "constant":
        return emit("PadV2", [x, as_tensor(pairs),
                              cast(as_tensor(constant_values, x.dtype),
                                   x.dtype)])
    if mode not in ("reflect", "symmetric"):
        raise ValueError(f"pad: no mode {mode!r}")
    return emit("MirrorPad", [x, as_tensor(pairs)], mode=mode.upper())


@lifted
def meshgrid(*arrays: Value, indexing: str = "xy") -> List[SymbolicTensor]:
    """Vectors as coordinates of a grid."""
    count = len(arrays)
    grids = []
    for i, a in enumerate(arrays):
        dims = [1] * count
        dims[i] = -1
        grids.append(reshape(a, dims))
    grids = broadcast_arrays(*grids)
    if indexing == "xy" and count > 1:
        grids = [swapaxes(g, 0, 1) for g in grids]
    return grids


# --- Matrices ----------------------------------------------------------------

def _band(name: str, k_bounds: Any, text: str) -> Any:
    def function(x: Value, k: int = 0) -> SymbolicTensor:
        x = _known_rank(x, name)
        rows, columns = shape(x)[-2:]
        row = emit("Range", [as_tensor(0), as_tensor(rows), as_tensor(1)])
        column = emit("Range", [as_tensor(0), as_tensor(columns),
                                as_tensor(1)])
        kept = k_bounds(expand_dims(row, 1) + k, expand_dims(column, 0))
        return emit("SelectV2", [kept, x, emit("ZerosLike", [x])])
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return lifted(function)


tril = _band("tril", lambda row, column: column <= row,
             "The lower triangle of matrices, up to the k-th diagonal.")
triu = _band("triu", lambda row, column: column >= row,
             "The upper triangle of matrices, from the k-th diagonal on.")


@lifted
def diagonal(x: Value) -> SymbolicTensor:
    """The diagonals of the last two axes."""
    return emit("MatrixDiagPart", [as_tensor(x)])


@lifted
def diag(x: Value) -> SymbolicTensor:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    x = _known_rank(x, "diag")
    if len(x.shape or ()) == 1:
        return emit("MatrixDiag", [x])
    return diagonal(x)


@lifted
def trace(x: Value) -> SymbolicTensor:
    """The sum of the diagonal of the last two axes."""
    from .reductions import sum as total
    return total(diagonal(x), -1)
