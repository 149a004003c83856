"""Choosing elements."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from .._lift import lifted
from ..symbolic import (SymbolicTensor, Value, as_tensor, emit, emit_all)
from ._types import cast, is_bool, pair, to_dtype
from .reductions import sort, sum as _sum
from .shapes import (_axis_of, _known_rank, broadcast_to, expand_dims,
                     moveaxis, ravel, reshape, shape, size)

__all__ = ["bincount", "choose", "compress", "digitize", "extract",
           "flatnonzero", "isin", "nonzero", "one_hot", "searchsorted",
           "select", "take", "take_along_axis", "unique", "where"]


@lifted
def where(condition: Value, x: Optional[Value] = None,
          y: Optional[Value] = None) -> Any:
    """x where the condition is true, else y, with broadcasting. Only with a
    condition: the indices where it is true, a vector for each axis."""
    condition = as_tensor(condition)
    if not is_bool(condition.dtype):
        condition = cast(condition, np.dtype(np.bool_))
    if (x is None) != (y is None):
        raise ValueError("where: give both x and y, or neither")
    if x is None:
        return nonzero(condition)
    return emit("SelectV2", [condition, *pair(x, y)])


@lifted
def nonzero(x: Value) -> Tuple[SymbolicTensor, ...]:
    """The indices of the elements that are not 0: a vector of int64 for each
    axis."""
    x = _known_rank(x, "nonzero")
    found = emit("Where", [x])
    return tuple(found[:, i] for i in range(len(x.shape or ())))


@lifted
def flatnonzero(x: Value) -> SymbolicTensor:
    """The indices in the flat array of the elements that are not 0."""
    return emit("Where", [ravel(x)])[:, 0]


def indices_from_end(indices: SymbolicTensor, length: Any) -> SymbolicTensor:
    """With negative indices counted from the end."""
    length = cast(as_tensor(length), indices.dtype)
    is_negative = emit("Less", [indices, emit("ZerosLike", [indices])])
    return emit("SelectV2", [is_negative, indices + length, indices])


@lifted
def take(x: Value, indices: Value, axis: Optional[int] = None
         ) -> SymbolicTensor:
    """The elements with these indices along an axis, or of the flat array.
    Negative ones count from the end; others out of range are an error."""
    x = as_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = _axis_of(x, axis)
    at = as_tensor(indices)
    if at.dtype not in (np.int32, np.int64):
        at = cast(at, np.dtype(np.int32))
    unsigned = (not isinstance(indices, SymbolicTensor)
                and np.min(indices, initial=0) >= 0)
    if not unsigned:
        at = indices_from_end(at, size(x, axis))
    return emit("GatherV2", [x, at, as_tensor(axis)])


@lifted
def take_along_axis(x: Value, indices: Value, axis: int) -> SymbolicTensor:
    """By position in the other axes, the elements with these indices along an
    axis."""
    x, at = as_tensor(x), as_tensor(indices)
    axis = _axis_of(x, axis)
    last = len(x.shape or ()) - 1
    x, at = moveaxis(x, axis, last), moveaxis(at, axis, last)
    at = indices_from_end(at, size(x, last))
    rows, columns = reshape(x, (-1, size(x, last))), reshape(
        at, (-1, size(at, last)))
    found = emit("GatherV2", [rows, columns, as_tensor(1)], batch_dims=1)
    return moveaxis(reshape(found, shape(at)), last, axis)


@lifted
def one_hot(x: Value, num_classes: int, dtype: Any = np.float32,
            axis: int = -1) -> SymbolicTensor:
    """1 at the index that x says along a new axis, 0 elsewhere."""
    dtype = to_dtype(dtype)
    x = as_tensor(x)
    if x.dtype not in (np.int32, np.int64, np.uint8):
        x = cast(x, np.dtype(np.int32))
    return emit("OneHot", [x, as_tensor(num_classes), as_tensor(
        np.ones((), dtype)), as_tensor(np.zeros((), dtype))], axis=axis)


@lifted
def select(conditions: List[Value], choices: List[Value],
           default: Value = 0) -> SymbolicTensor:
    """The choice of the first condition that is true."""
    result = default
    for condition, choice in list(zip(conditions, choices))[::-1]:
        result = where(condition, choice, result)
    return result


@lifted
def choose(index: Value, choices: List[Value]) -> SymbolicTensor:
    """From the choice that the index says, element by element."""
    from .shapes import stack
    stacked = stack(list(choices))
    index = as_tensor(index)
    at = expand_dims(broadcast_to(index, shape(stacked)[1:]), 0)
    return take_along_axis(stacked, at, 0)[0]


@lifted
def extract(condition: Value, x: Value) -> SymbolicTensor:
    """The elements where the condition is true."""
    at = flatnonzero(condition)
    return emit("GatherV2", [ravel(x), at, as_tensor(0)])


@lifted
def compress(condition: Value, x: Value, axis: Optional[int] = None
             ) -> SymbolicTensor:
    """The parts along an axis for which the condition is true."""
    if axis is None:
        return extract(condition, x)
    x = as_tensor(x)
    return emit("GatherV2", [x, flatnonzero(condition),
                             as_tensor(_axis_of(x, axis))])


@lifted
def unique(x: Value) -> SymbolicTensor:
    """The different elements, sorted."""
    values, _ = emit_all("Unique", [ravel(x)])
    return sort(values)


@lifted
def isin(x: Value, values: Value) -> SymbolicTensor:
    """Whether each element is one of the values."""
    from .elementwise import equal
    from .reductions import any as _any
    a, b = pair(x, values)
    return _any(equal(expand_dims(a, -1), ravel(b)), -1)


@lifted
def bincount(x: Value, weights: Optional[Value] = None, *,
             length: int) -> SymbolicTensor:
    """How often 0, 1, ... `length` - 1 occur, or the sums of their weights;
    what is outside is not counted."""
    hot = one_hot(ravel(x), length,
                  np.int32 if weights is None else as_tensor(weights).dtype)
    if weights is not None:
        hot = hot * expand_dims(ravel(weights), 1)
    return _sum(hot, 0)


@lifted
def searchsorted(x: Value, values: Value, side: str = "left"
                 ) -> SymbolicTensor:
    """Where the values belong in the sorted vector x: before equal elements,
    or with side="right" behind them. An int32."""
    a, b = pair(x, values)
    op = {"left": "LowerBound", "right": "UpperBound"}[side]
    found = emit(op, [reshape(a, (1, -1)), reshape(b, (1, -1))])
    return reshape(found, shape(b))


@lifted
def digitize(x: Value, bins: Value, right: bool = False) -> SymbolicTensor:
    """In which of the increasing bins each element is."""
    return searchsorted(bins, x, "left" if right else "right")
