"""New arrays."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from .._lift import lifted
from ..symbolic import SymbolicTensor, Value, as_tensor, emit, is_number
from ._types import cast, inexact, to_dtype
from .shapes import _ints, expand_dims

__all__ = ["arange", "array", "asarray", "e", "empty", "empty_like",
           "euler_gamma", "eye", "full", "full_like", "geomspace", "identity", "inf",
           "linspace", "logspace", "nan", "newaxis", "ones", "ones_like", "pi",
           "tri", "zeros", "zeros_like"]

pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
euler_gamma = 0.5772156649015329


@lifted
def asarray(value: Value, dtype: Any = None) -> SymbolicTensor:
    """The value as a tensor. Numbers of Python are int32 and float32 unless
    `dtype` says otherwise."""
    if dtype is None:
        x = as_tensor(value)
        return x._strong() if x._weak else x
    dtype = to_dtype(dtype)
    if isinstance(value, (list, tuple, int, float, complex)) and not any(
            isinstance(v, SymbolicTensor) for v in np.ravel(
                np.asarray(value, object))):
        return as_tensor(np.asarray(value, dtype))
    return cast(as_tensor(value, dtype), dtype)


array = asarray


def _dims(shape: Any) -> Any:
    """The shape as a tuple of ints, or None if it has tensors."""
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    if isinstance(shape, SymbolicTensor):
        return None
    dims = tuple(shape)
    if any(isinstance(d, SymbolicTensor) for d in dims):
        return None
    return tuple(int(d) for d in dims)


@lifted
def full(shape: Any, value: Value, dtype: Any = None) -> SymbolicTensor:
    """That value everywhere. Dimensions may be tensors."""
    x = as_tensor(value) if dtype is None else cast(
        as_tensor(value, to_dtype(dtype)), to_dtype(dtype))
    return emit("Fill", [_ints(shape), x])


@lifted
def zeros(shape: Any, dtype: Any = np.float32) -> SymbolicTensor:
    """Zeros. Dimensions may be tensors."""
    return full(shape, 0, dtype)


@lifted
def ones(shape: Any, dtype: Any = np.float32) -> SymbolicTensor:
    """Ones. Dimensions may be tensors."""
    return full(shape, 1, dtype)


empty = zeros


@lifted
def full_like(x: Value, value: Value, dtype: Any = None) -> SymbolicTensor:
    """That value in the shape of x, and its type."""
    x = as_tensor(x)
    dtype = x.dtype if dtype is None else to_dtype(dtype)
    if x.shape is not None and None not in x.shape:
        return full(x.shape, value, dtype)
    return emit("Fill", [emit("Shape", [x]),
                         cast(as_tensor(value, dtype), dtype)])


@lifted
def zeros_like(x: Value, dtype: Any = None) -> SymbolicTensor:
    """Zeros in the shape of x."""
    return full_like(x, 0, dtype)


@lifted
def ones_like(x: Value, dtype: Any = None) -> SymbolicTensor:
    """Ones in the shape of x."""
    return full_like(x, 1, dtype)


empty_like = zeros_like


@lifted
def arange(start: Value, stop: Optional[Value] = None, step: Value = 1,
           dtype: Any = None) -> SymbolicTensor:
    """From `start` on by `step`, less than `stop`. Each may be a tensor. int32
    or float32 if they are numbers of Python."""
    if stop is None:
        start, stop = 0, start
    if all(is_number(v) for v in (start, stop, step)):
        values = np.arange(start, stop, step)
        if dtype is None:
            whole = values.dtype.kind in "iu"
            dtype = np.int32 if whole else np.float32
        return as_tensor(values.astype(to_dtype(dtype)))
    from ._types import pair
    first, last = pair(start, stop)
    first, by = pair(first, step)
    last = cast(last, first.dtype)
    x = emit("Range", [first, last, by])
    return x if dtype is None else cast(x, to_dtype(dtype))


@lifted
def linspace(start: Value, stop: Value, num: int = 50, endpoint: bool = True,
             dtype: Any = None) -> SymbolicTensor:
    """So many numbers at equal distances, the last one included unless
    `endpoint` is False."""
    if is_number(start) and is_number(stop):
        values = np.linspace(start, stop, num, endpoint)
        return as_tensor(values.astype(to_dtype(dtype or np.float32)))
    from ._types import pair
    first, last = (inexact(v) for v in pair(start, stop))
    parts = num - 1 if endpoint else num
    steps = as_tensor(np.arange(num).astype(first.dtype))
    x = first + steps * ((last - first) / max(parts, 1))
    return x if dtype is None else cast(x, to_dtype(dtype))


@lifted
def logspace(start: Value, stop: Value, num: int = 50, endpoint: bool = True,
             base: float = 10.0, dtype: Any = None) -> SymbolicTensor:
    """`base` to the power of linspace()."""
    from .elementwise import power
    x = power(as_tensor(base), linspace(start, stop, num, endpoint))
    return x if dtype is None else cast(x, to_dtype(dtype))


@lifted
def geomspace(start: Value, stop: Value, num: int = 50) -> SymbolicTensor:
    """So many numbers, each the same multiple of the one before."""
    from .elementwise import exp, log
    return exp(linspace(log(start), log(stop), num))


@lifted
def eye(rows: int, columns: Optional[int] = None, k: int = 0,
        dtype: Any = np.float32) -> SymbolicTensor:
    """Ones in the k-th diagonal, zeros elsewhere."""
    return as_tensor(np.eye(rows, columns, k).astype(to_dtype(dtype)))


@lifted
def identity(n: int, dtype: Any = np.float32) -> SymbolicTensor:
    """The unit matrix."""
    return eye(n, dtype=dtype)


@lifted
def tri(rows: int, columns: Optional[int] = None, k: int = 0,
        dtype: Any = np.float32) -> SymbolicTensor:
    """Ones at and below the k-th diagonal."""
    return as_tensor(np.tri(rows, columns, k).astype(to_dtype(dtype)))
