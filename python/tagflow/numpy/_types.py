"""Which type a result has.

Two arrays: the type to which NumPy promotes them, except that an integer with
a floating-point type takes that type: int64 with float32 is float32. A number
of Python takes the type of the array, unless that would lose its kind: an
integer array and 0.5 are float32.
"""

from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from ..symbolic import SymbolicTensor, Value, as_tensor, emit, is_number

__all__ = ["cast", "inexact", "is_bool", "is_complex", "is_float", "is_int",
           "pair", "promote", "to_dtype"]

_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def _kind(dtype: Any) -> int:
    kind = getattr(dtype, "kind", "")
    if kind == "V" and getattr(dtype, "name", "") == "bfloat16":
        return 2
    if kind not in _KINDS:
        raise TypeError(f"{dtype} is not a type of numbers")
    return _KINDS[kind]


def is_bool(dtype: Any) -> bool:
    return getattr(dtype, "kind", "") == "b"


def is_int(dtype: Any) -> bool:
    return getattr(dtype, "kind", "") in ("i", "u")


def is_float(dtype: Any) -> bool:
    return (getattr(dtype, "kind", "") == "f"
            or getattr(dtype, "name", "") == "bfloat16")


def is_complex(dtype: Any) -> bool:
    return getattr(dtype, "kind", "") == "c"


def to_dtype(dtype: Any) -> Any:
    """NumPy's type of a type or its name. `int` and `float` of Python are
    int32 and float32, as its numbers are."""
    plain = {int: np.int32, float: np.float32, complex: np.complex64,
             bool: np.bool_}
    if isinstance(dtype, type) and dtype in plain:
        return np.dtype(plain[dtype])
    if dtype == "bfloat16":
        import ml_dtypes
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(dtype)


def promote(a: Any, b: Any) -> Any:
    """The type for values of both types."""
    if a == b:
        return a
    low, high = sorted((_kind(a), _kind(b)))
    if low != high and high == 2:
        return a if _kind(a) == 2 else b
    if low < 2 and high == 3:
        return a if _kind(a) == 3 else b
    if low == high == 2 and "bfloat16" in (a.name, b.name):
        other = b if a.name == "bfloat16" else a
        return np.dtype(np.float32) if other.itemsize == 2 else other
    return np.promote_types(a, b)


def _of_weak(kind: int, dtype: Any) -> Any:
    """The type of a number of that kind, when it meets this type."""
    if kind <= _kind(dtype):
        return dtype
    if kind == 1:
        return np.dtype(np.int32)
    if kind == 2:
        return np.dtype(np.float32)
    wide = getattr(dtype, "itemsize", 4) == 8 and _kind(dtype) == 2
    return np.dtype(np.complex128 if wide else np.complex64)


def _number_kind(value: Any) -> int:
    return {bool: 0, int: 1, float: 2, complex: 3}[type(value)]


def cast(x: SymbolicTensor, dtype: Any) -> SymbolicTensor:
    if x.dtype == dtype:
        return x
    if x._wide is not None:
        x = x._wide
    return x if x.dtype == dtype else emit("Cast", [x], DstT=dtype)


def pair(a: Value, b: Value) -> Tuple[SymbolicTensor, SymbolicTensor]:
    """Both as tensors of one type."""
    if is_number(a) and not is_number(b):
        b = as_tensor(b)
        dtype = _common(a, b)
        return as_tensor(a, dtype), cast(b, dtype)
    a = as_tensor(a)
    dtype = _common(b, a)
    return cast(a, dtype), (as_tensor(b, dtype) if is_number(b)
                            else cast(as_tensor(b), dtype))


def _common(other: Value, tensor: SymbolicTensor) -> Any:
    if is_number(other):
        return _of_weak(_number_kind(other), tensor.dtype)
    other = as_tensor(other)
    if other._weak and not tensor._weak:
        return _of_weak(_kind(other.dtype), tensor.dtype)
    if tensor._weak and not other._weak:
        return _of_weak(_kind(tensor.dtype), other.dtype)
    return promote(other.dtype, tensor.dtype)


def inexact(x: Value) -> SymbolicTensor:
    """The tensor, as a floating-point one: integers of 64 bits become float64,
    others float32."""
    x = as_tensor(x)
    if is_float(x.dtype) or is_complex(x.dtype):
        return x
    wide = x.dtype.itemsize == 8
    return cast(x, np.dtype(np.float64 if wide else np.float32))
