"""Sums, extremes and other functions along axes."""

from __future__ import annotations

import builtins
from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np

from .._lift import lifted, lifted_with_numbers
from ..symbolic import SymbolicTensor, Value, as_tensor, emit
from ._types import cast, inexact, is_bool, is_complex, is_int
from .elementwise import abs as _abs
from .elementwise import conj, exp, invert, isfinite, isnan, log, sqrt, square
from .shapes import _axis_of, moveaxis, ravel, size

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "argsort",
           "average", "count_nonzero", "cumprod", "cumsum", "logsumexp", "max",
           "mean", "median", "min", "nanmean", "nansum", "norm", "prod",
           "ptp", "sort", "std", "sum", "top_k", "var"]

Axis = Union[None, int, Sequence[int]]


def _axes(x: SymbolicTensor, axis: Axis) -> SymbolicTensor:
    """The axes as a constant; all of them for None."""
    if axis is None:
        if x.shape is not None:
            return as_tensor(np.arange(len(x.shape), dtype=np.int32))
        rank = emit("Rank", [x])
        return emit("Range", [as_tensor(0), rank, as_tensor(1)])
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    return as_tensor(np.asarray([_axis_of(x, a) for a in axes], np.int32))


def _reduce(op: str, x: SymbolicTensor, axis: Axis,
            keepdims: bool) -> SymbolicTensor:
    return emit(op, [x, _axes(x, axis)], keep_dims=keepdims)


@lifted
def sum(x: Value, axis: Axis = None, *, keepdims: bool = False,
        dtype: Any = None) -> SymbolicTensor:
    """The sum along the axes; booleans are counted as int32."""
    x = as_tensor(x)
    if dtype is not None:
        from ._types import to_dtype
        x = cast(x, to_dtype(dtype))
    if is_bool(x.dtype):
        x = cast(x, np.dtype(np.int32))
    return _reduce("Sum", x, axis, keepdims)


@lifted
def prod(x: Value, axis: Axis = None, *,
         keepdims: bool = False) -> SymbolicTensor:
    """The product along the axes."""
    x = as_tensor(x)
    if is_bool(x.dtype):
        x = cast(x, np.dtype(np.int32))
    return _reduce("Prod", x, axis, keepdims)


@lifted
def mean(x: Value, axis: Axis = None, *,
         keepdims: bool = False) -> SymbolicTensor:
    """The mean along the axes, in floating point."""
    return _reduce("Mean", inexact(x), axis, keepdims)


def _extreme(name: str, op: str, of_bools: str) -> Any:
    def function(x: Value, axis: Axis = None, *,
                 keepdims: bool = False) -> SymbolicTensor:
        x = as_tensor(x)
        return _reduce(of_bools if is_bool(x.dtype) else op, x, axis, keepdims)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The op {op} along the axes."
    return lifted(function)


max = amax = _extreme("max", "Max", "Any")
min = amin = _extreme("min", "Min", "All")


@lifted
def ptp(x: Value, axis: Axis = None, *,
        keepdims: bool = False) -> SymbolicTensor:
    """The maximum less the minimum."""
    x = as_tensor(x)
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


def _logical(name: str, op: str) -> Any:
    def function(x: Value, axis: Axis = None, *,
                 keepdims: bool = False) -> SymbolicTensor:
        x = as_tensor(x)
        if not is_bool(x.dtype):
            x = cast(x, np.dtype(np.bool_))
        return _reduce(op, x, axis, keepdims)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Whether {name} elements along the axes are true."
    return lifted(function)


all = _logical("all", "All")
any = _logical("any", "Any")


@lifted
def count_nonzero(x: Value, axis: Axis = None, *,
                  keepdims: bool = False) -> SymbolicTensor:
    """How many elements are not 0."""
    x = as_tensor(x)
    return sum(cast(x, np.dtype(np.bool_)), axis, keepdims=keepdims)


@lifted
def var(x: Value, axis: Axis = None, *, ddof: int = 0,
        keepdims: bool = False) -> SymbolicTensor:
    """The variance, by the number of elements less `ddof`."""
    x = inexact(x)
    centered = x - mean(x, axis, keepdims=True)
    squares = square(_abs(centered) if is_complex(x.dtype) else centered)
    if ddof == 0:
        return mean(squares, axis, keepdims=keepdims)
    count = sum(emit("OnesLike", [squares]), axis, keepdims=keepdims)
    return sum(squares, axis, keepdims=keepdims) / (count - ddof)


@lifted
def std(x: Value, axis: Axis = None, *, ddof: int = 0,
        keepdims: bool = False) -> SymbolicTensor:
    """The square root of var()."""
    return sqrt(var(x, axis, ddof=ddof, keepdims=keepdims))


@lifted
def average(x: Value, axis: Axis = None,
            weights: Optional[Value] = None) -> SymbolicTensor:
    """The mean, by weights of the same shape."""
    if weights is None:
        return mean(x, axis)
    x, weights = as_tensor(x), as_tensor(weights)
    return sum(x * weights, axis) / sum(weights, axis)


@lifted
def nansum(x: Value, axis: Axis = None, *,
           keepdims: bool = False) -> SymbolicTensor:
    """The sum without NaNs."""
    x = as_tensor(x)
    x = emit("SelectV2", [isnan(x), emit("ZerosLike", [x]), x])
    return sum(x, axis, keepdims=keepdims)


@lifted
def nanmean(x: Value, axis: Axis = None, *,
            keepdims: bool = False) -> SymbolicTensor:
    """The mean without NaNs."""
    x = inexact(x)
    count = sum(cast(invert(isnan(x)), x.dtype), axis, keepdims=keepdims)
    return nansum(x, axis, keepdims=keepdims) / count


@lifted
def logsumexp(x: Value, axis: Axis = None, *,
              keepdims: bool = False) -> SymbolicTensor:
    """log(sum(exp(x))), which does not overflow."""
    x = inexact(x)
    largest = emit("StopGradient", [max(x, axis, keepdims=True)])
    shift = emit("SelectV2", [isfinite(largest), largest,
                              emit("ZerosLike", [largest])])
    total = log(sum(exp(x - shift), axis, keepdims=True)) + shift
    return total if keepdims else _reduce("Sum", total, axis, False)


@lifted_with_numbers
def norm(x: Value, ord: Any = None, axis: Axis = None, *,
         keepdims: bool = False) -> SymbolicTensor:
    """The Euclidean norm of all elements along the axes; `ord` may be 1, 2 or
    inf, for vectors."""
    x = inexact(x)
    size_of = _abs(x)
    if ord == 1:
        return sum(size_of, axis, keepdims=keepdims)
    if ord == np.inf:
        return max(size_of, axis, keepdims=keepdims)
    if ord not in (None, 2, "fro"):
        raise ValueError(f"norm: ord must be 1, 2 or inf, not {ord!r}")
    return sqrt(sum(square(size_of), axis, keepdims=keepdims))


# --- Along one axis ----------------------------------------------------------

def _flat(x: Value, axis: Optional[int]) -> Tuple[SymbolicTensor, int]:
    x = as_tensor(x)
    if axis is None:
        return ravel(x), 0
    return x, _axis_of(x, axis)


def _arg(name: str, op: str) -> Any:
    def function(x: Value, axis: Optional[int] = None) -> SymbolicTensor:
        x, axis = _flat(x, axis)
        if is_bool(x.dtype):
            x = cast(x, np.dtype(np.uint8))
        return emit(op, [x, as_tensor(axis)], output_type=np.int32)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"The index of the {name[3:]}imum along an axis, or in "
                        "the flat array; an int32.")
    return lifted(function)


argmax = _arg("argmax", "ArgMax")
argmin = _arg("argmin", "ArgMin")


def _running(name: str, op: str) -> Any:
    def function(x: Value, axis: Optional[int] = None, *,
                 exclusive: bool = False,
                 reverse: bool = False) -> SymbolicTensor:
        x, axis = _flat(x, axis)
        if is_bool(x.dtype):
            x = cast(x, np.dtype(np.int32))
        return emit(op, [x, as_tensor(axis)], exclusive=exclusive,
                    reverse=reverse)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"The running {name[3:]} along an axis; `exclusive` "
                        "leaves out the element itself.")
    return lifted(function)


cumsum = _running("cumsum", "Cumsum")
cumprod = _running("cumprod", "Cumprod")


@lifted
def top_k(x: Value, k: int) -> Tuple[SymbolicTensor, SymbolicTensor]:
    """The k largest elements of the last axis, from the largest on, and their
    indices; of equal ones the first."""
    from ..symbolic import emit_all
    values, indices = emit_all("TopKV2", [as_tensor(x), as_tensor(k)])
    return values, indices


def _ascending(x: Value, axis: Optional[int], stage: Any) -> SymbolicTensor:
    """stage(largest first, undo) along the axis."""
    from ..symbolic import emit_all
    x, axis = _flat(x, axis)
    last = len(x.shape or ()) - 1
    x = moveaxis(x, axis, last)
    length = size(x, last)
    bools = is_bool(x.dtype)
    if bools:
        x = cast(x, np.dtype(np.uint8))
    # Not the negative, which the least integer does not have.
    flip = "Invert" if is_int(x.dtype) else "Neg"
    values, indices = emit_all(
        "TopKV2", [emit(flip, [x]), as_tensor(length)], sorted=True)
    result = emit(flip, [values]) if stage == "values" else indices
    if bools and stage == "values":
        result = cast(result, np.dtype(np.bool_))
    return moveaxis(result, last, axis)


@lifted
def sort(x: Value, axis: Optional[int] = -1) -> SymbolicTensor:
    """Sorted along an axis; None: of the flat array."""
    return _ascending(x, axis, "values")


@lifted
def argsort(x: Value, axis: Optional[int] = -1) -> SymbolicTensor:
    """The indices that sort along an axis; equal elements keep their order. An
    int32."""
    return _ascending(x, axis, "indices")


@lifted
def median(x: Value, axis: Optional[int] = None) -> SymbolicTensor:
    """The middle one of the sorted elements, or the mean of both."""
    x, axis = _flat(inexact(x), axis)
    if x.shape is None or x.shape[axis] is None:
        raise ValueError("median: the length of the axis must be known")
    ordered = moveaxis(sort(x, axis), axis, 0)
    half = x.shape[axis] // 2
    if x.shape[axis] % 2 == 1:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2
