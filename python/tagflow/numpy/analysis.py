"""Differences, quantiles, interpolation and other functions of samples."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from .._lift import lifted
from ..symbolic import SymbolicTensor, Value, as_tensor, emit
from . import reductions
from ._types import cast, inexact, is_bool, pair
from .elementwise import clip, conj, equal, floor, isclose, isnan
from .products import matmul
from .selection import searchsorted, take, where
from .shapes import (_axis_of, concatenate, expand_dims, moveaxis, ravel, shape,
                     size, split, swapaxes, transpose)

__all__ = ["allclose", "argwhere", "array_equal", "array_split", "concat",
           "corrcoef", "cov", "diff", "dstack", "float_power", "heaviside",
           "interp", "matrix_transpose", "nanmax", "nanmin", "percentile",
           "permute_dims", "polyval", "quantile", "trapezoid", "vander"]

concat = concatenate
permute_dims = transpose


@lifted
def matrix_transpose(x: Value) -> SymbolicTensor:
    """With the last two axes exchanged."""
    return swapaxes(x, -1, -2)


@lifted
def allclose(x: Value, y: Value, rtol: float = 1e-5,
             atol: float = 1e-8) -> SymbolicTensor:
    """Whether all elements are close; see isclose()."""
    return reductions.all(isclose(x, y, rtol, atol))


@lifted
def array_equal(x: Value, y: Value) -> SymbolicTensor:
    """Whether both have the same shape, which must be known, and elements."""
    a, b = as_tensor(x), as_tensor(y)
    if a.shape != b.shape:
        return as_tensor(False)
    return reductions.all(equal(a, b))


@lifted
def argwhere(x: Value) -> SymbolicTensor:
    """The indices of the elements that are not 0, one a row."""
    return emit("Where", [as_tensor(x)])


@lifted
def diff(x: Value, n: int = 1, axis: int = -1) -> SymbolicTensor:
    """The differences of neighbours along an axis, n times over."""
    x = as_tensor(x)
    axis = _axis_of(x, axis)
    for _ in range(n):
        front = moveaxis(x, axis, 0)
        pairs = front[1:], front[:-1]
        x = moveaxis(pairs[0] ^ pairs[1] if is_bool(x.dtype)
                     else pairs[0] - pairs[1], 0, axis)
    return x


@lifted
def trapezoid(y: Value, x: Optional[Value] = None, dx: Value = 1.0,
              axis: int = -1) -> SymbolicTensor:
    """The integral along an axis by the rule of trapezoids. x: a vector of the
    places, or an array like y; else they are dx apart."""
    values = moveaxis(inexact(y), axis, -1)
    if x is not None:
        places = inexact(x)
        dx = diff(places if len(places.shape or ()) == 1
                  else moveaxis(places, axis, -1))
    return reductions.sum((values[..., 1:] + values[..., :-1]) * dx, -1) / 2


@lifted
def quantile(x: Value, q: Value, axis: Optional[int] = None, *,
             keepdims: bool = False) -> SymbolicTensor:
    """The elements below which the parts q of all are, along an axis, or of the
    flat array; between two elements on the line between them. The axes of q
    come first."""
    x = inexact(x)
    q = cast(as_tensor(q, x.dtype), x.dtype)
    rank = len(x.shape or ())
    ordered = (reductions.sort(ravel(x)) if axis is None else moveaxis(
        reductions.sort(x, axis), axis, 0))
    last = size(ordered, 0) - 1
    place = q * cast(as_tensor(last), x.dtype)
    low = clip(cast(floor(place), np.dtype(np.int32)), 0, last)
    high = clip(low + 1, 0, last)
    part = place - cast(low, x.dtype)
    for _ in range(len(ordered.shape or ()) - 1):
        part = expand_dims(part, -1)
    below, above = take(ordered, low, 0), take(ordered, high, 0)
    made = below + (above - below) * part
    if keepdims:
        for at in range(rank) if axis is None else [_axis_of(x, axis)]:
            made = expand_dims(made, len(q.shape or ()) + at)
    return made


@lifted
def percentile(x: Value, q: Value, axis: Optional[int] = None, *,
               keepdims: bool = False) -> SymbolicTensor:
    """quantile() of q / 100."""
    x = inexact(x)
    return quantile(x, cast(as_tensor(q, x.dtype), x.dtype) / 100, axis,
                    keepdims=keepdims)


@lifted
def interp(x: Value, xp: Value, fp: Value) -> SymbolicTensor:
    """The values at x of the lines between the points (xp, fp), whose xp
    increase; before and behind them those of the ends."""
    at, places = (inexact(v) for v in pair(x, xp))
    values = inexact(fp)
    right = clip(searchsorted(places, at, "right"), 1, size(places, 0) - 1)
    x0, x1 = take(places, right - 1), take(places, right)
    y0, y1 = take(values, right - 1), take(values, right)
    part = clip((at - x0) / (x1 - x0), 0.0, 1.0)
    return y0 + (y1 - y0) * part


@lifted
def polyval(p: Value, x: Value) -> SymbolicTensor:
    """The polynomial of the coefficients p, from the highest power on."""
    coefficients, at = pair(p, x)
    made = coefficients[0] + emit("ZerosLike", [at])
    for i in range(1, len(coefficients)):
        made = made * at + coefficients[i]
    return made


@lifted
def vander(x: Value, n: Optional[int] = None,
           increasing: bool = False) -> SymbolicTensor:
    """The powers of a vector's elements, from the highest one on."""
    from .creation import ones_like
    x = as_tensor(x)
    count = len(x) if n is None else n
    powers: List[SymbolicTensor] = [ones_like(x)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    from .shapes import stack
    return stack(powers if increasing else powers[::-1], 1)


@lifted
def cov(x: Value, rowvar: bool = True, ddof: int = 1) -> SymbolicTensor:
    """The covariance of the rows of a matrix, or of its columns."""
    x = inexact(x)
    if not rowvar:
        x = transpose(x)
    x = x - reductions.mean(x, -1, keepdims=True)
    count = cast(as_tensor(size(x, -1)), x.dtype) - ddof
    if len(x.shape or ()) == 1:
        return reductions.sum(x * conj(x)) / count
    return matmul(x, conj(transpose(x))) / count


@lifted
def corrcoef(x: Value, rowvar: bool = True) -> SymbolicTensor:
    """The coefficients of correlation of the rows of a matrix, or of its
    columns."""
    from .elementwise import sqrt
    from .shapes import diag
    c = cov(x, rowvar)
    scale = sqrt(diag(c))
    return c / expand_dims(scale, 1) / expand_dims(scale, 0)


@lifted
def nanmax(x: Value, axis: Any = None, *,
           keepdims: bool = False) -> SymbolicTensor:
    """The greatest element that is a number."""
    x = inexact(x)
    return reductions.max(where(isnan(x), as_tensor(-np.inf, x.dtype), x),
                          axis, keepdims=keepdims)


@lifted
def nanmin(x: Value, axis: Any = None, *,
           keepdims: bool = False) -> SymbolicTensor:
    """The least element that is a number."""
    x = inexact(x)
    return reductions.min(where(isnan(x), as_tensor(np.inf, x.dtype), x),
                          axis, keepdims=keepdims)


@lifted
def heaviside(x: Value, at_zero: Value) -> SymbolicTensor:
    """0 for what is less than 0, 1 for what is more, and `at_zero`."""
    a, b = (inexact(v) for v in pair(x, at_zero))
    return where(isnan(a), a, where(equal(a, 0), b, cast(a > 0, a.dtype)))


@lifted
def float_power(x: Value, y: Value) -> SymbolicTensor:
    """x to the power of y, in float64."""
    from .elementwise import power
    return power(*(cast(as_tensor(v), np.dtype(np.float64)) for v in (x, y)))


@lifted
def dstack(arrays: Sequence[Value]) -> SymbolicTensor:
    """Joined along the third axis."""
    made = []
    for x in arrays:
        x = as_tensor(x)
        if len(x.shape or ()) == 0:
            x = expand_dims(x, 0)
        if len(x.shape or ()) == 1:
            x = expand_dims(x, 0)
        made.append(expand_dims(x, 2) if len(x.shape or ()) == 2 else x)
    return concatenate(made, 2)


@lifted
def array_split(x: Value, parts: Union[int, Sequence[int]],
                axis: int = 0) -> Tuple[SymbolicTensor, ...]:
    """Cut along an axis into that many parts, of which the first ones are
    longer by one if need be; or at these indices."""
    x = as_tensor(x)
    if not isinstance(parts, (int, np.integer)):
        return split(x, parts, axis)
    length = shape(x)[_axis_of(x, axis)]
    short, longer = divmod(length, parts)
    ends = np.cumsum([short + 1] * longer + [short] * (parts - longer))[:-1]
    return split(x, [int(end) for end in ends], axis)
