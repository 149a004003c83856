"""x[index], and copies of x with other elements.

An index is what NumPy takes: ints, slices, None, an ellipsis, arrays of ints,
and a boolean array. Ints and the ends of slices may be tensors.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional

import numpy as np

from ._trace import TracingError, here
from .symbolic import Arithmetic, SymbolicTensor, Value, as_tensor, emit

__all__ = ["At", "get"]


def _is_scalar_int(item: Any) -> bool:
    if isinstance(item, (bool, np.bool_)):
        return False
    if isinstance(item, (int, np.integer)):
        return True
    return (isinstance(item, SymbolicTensor) and item.shape == ()
            and getattr(item.dtype, "kind", "") in "iu")


def _is_array(item: Any) -> bool:
    return isinstance(item, (np.ndarray, list, bool, np.bool_, Arithmetic)
                      ) and not _is_scalar_int(item)


def _items(x: SymbolicTensor, index: Any) -> List[Any]:
    """The items of the index, with slices for the ellipsis."""
    items = list(index) if isinstance(index, tuple) else [index]
    rank = None if x.shape is None else len(x.shape)
    used = 0
    for item in items:
        if item is None or item is Ellipsis:
            continue
        mask = _is_array(item) and _is_mask(item)
        used += np.ndim(item) if mask and not isinstance(
            item, SymbolicTensor) else (len(item.shape or ()) if mask else 1)
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError(f"{here()}: an index has one ellipsis at most")
    if rank is None:
        if dots and dots[0] != len(items) - 1:
            raise IndexError(f"{here()}: an ellipsis in front needs a known "
                             f"rank, which {x!r} does not have")
        return [item for item in items if item is not Ellipsis]
    if used > rank:
        raise IndexError(f"{here()}: {used} indices for {x!r}")
    fill = [slice(None)] * (rank - used)
    at = dots[0] if dots else len(items)
    return items[:at] + fill + items[at + len(dots):]


def _is_mask(item: Any) -> bool:
    dtype = item.dtype if hasattr(item, "dtype") else np.asarray(item).dtype
    return getattr(dtype, "kind", "") == "b"


class _Basic(NamedTuple):
    """The arguments of StridedSlice."""
    begin: List[Any]
    end: List[Any]
    strides: List[Any]
    begin_mask: int
    end_mask: int
    new_axis_mask: int
    shrink_axis_mask: int


def _basic(items: List[Any]) -> _Basic:
    begin: List[Any] = []
    end: List[Any] = []
    strides: List[Any] = []
    masks = {"begin": 0, "end": 0, "new": 0, "shrink": 0}
    for i, item in enumerate(items):
        bit = 1 << i
        first: Any = 0
        last: Any = 0
        step: Any = 1
        if item is None:
            masks["new"] |= bit
        elif isinstance(item, slice):
            step = 1 if item.step is None else item.step
            if item.start is None:
                masks["begin"] |= bit
            else:
                first = item.start
            if item.stop is None:
                masks["end"] |= bit
            else:
                last = item.stop
        elif _is_scalar_int(item):
            masks["shrink"] |= bit
            first, last = item, item + 1
        else:
            raise IndexError(f"{here()}: {item!r} is no index")
        begin.append(first)
        end.append(last)
        strides.append(step)
    return _Basic(begin, end, strides, masks["begin"], masks["end"],
                  masks["new"], masks["shrink"])


def _vector(values: List[Any]) -> SymbolicTensor:
    from .numpy.shapes import _ints
    if not values:
        return as_tensor(np.zeros(0, np.int32))
    return _ints(values)


def _ends(basic: _Basic) -> List[SymbolicTensor]:
    """begin, end and strides, of one type."""
    from .numpy._types import cast
    vectors = [_vector(v) for v in (basic.begin, basic.end, basic.strides)]
    if all(v.dtype == vectors[0].dtype for v in vectors):
        return vectors
    return [cast(v, np.dtype(np.int64)) for v in vectors]


def _attrs(basic: _Basic) -> dict:
    return {"begin_mask": basic.begin_mask, "end_mask": basic.end_mask,
            "new_axis_mask": basic.new_axis_mask,
            "shrink_axis_mask": basic.shrink_axis_mask}


def _is_whole(items: List[Any]) -> bool:
    return all(isinstance(item, slice) and item.start is None
               and item.stop is None and item.step is None for item in items)


def _check_bounds(x: SymbolicTensor, items: List[Any]) -> None:
    """Ints that are known not to be in a known dimension."""
    axis = 0
    for item in items:
        if item is None:
            continue
        if x.shape is not None and isinstance(item, (int, np.integer)):
            length = x.shape[axis]
            if length is not None and not -length <= item < length:
                raise IndexError(f"{here()}: index {item} of axis {axis}, "
                                 f"which has {length} elements")
        axis += 1


def get(x: SymbolicTensor, index: Any) -> SymbolicTensor:
    """x[index]."""
    items = _items(x, index)
    if not any(_is_array(item) for item in items):
        if _is_whole(items):
            return x
        _check_bounds(x, items)
        at = _one_batched(items)
        if at is not None:
            return _of_element(x, items, at)
        basic = _basic(items)
        return emit("StridedSlice", [x, *_ends(basic)], **_attrs(basic))
    return _advanced(x, items)


def _one_batched(items: List[Any]) -> Optional[int]:
    """The item that is an int which differs by element of a batch, if there is
    one such."""
    found = [i for i, item in enumerate(items)
             if isinstance(item, SymbolicTensor) and item._is_batched]
    return found[0] if len(found) == 1 else None


def _of_element(x: SymbolicTensor, items: List[Any],
                at: int) -> SymbolicTensor:
    """With such an int: everything else first."""
    from . import numpy as tnp
    rest = [slice(None) if i == at else item for i, item in enumerate(items)]
    axis = sum(not _is_scalar_int(item) for item in rest[:at])
    return tnp.take(get(x, tuple(rest)), items[at], axis)


def _advanced(x: SymbolicTensor, items: List[Any]) -> SymbolicTensor:
    from . import numpy as tnp
    masks = [item for item in items if _is_array(item) and _is_mask(item)]
    if masks:
        return _masked(x, items, len(masks))
    # First everything but the arrays, which stand next to each other then.
    x = get(x, tuple(slice(None) if _is_array(item) else item
                     for item in items))
    axes = [axis for axis, item in enumerate(
        item for item in items if not _is_scalar_int(item))
        if _is_array(item)]
    arrays = [item for item in items if _is_array(item)]
    if len(arrays) == 1:
        return tnp.take(x, _as_indices(arrays[0]), axes[0])
    first = axes[0]
    if axes != list(range(first, first + len(axes))) or any(
            _is_scalar_int(item) for item in items):
        raise IndexError(
            f"{here()}: arrays in an index must stand side by side, and not "
            "beside ints; use tagflow.numpy.take and take_along_axis")
    rest = [a for a in range(len(x.shape or ())) if a not in axes]
    front = tnp.transpose(x, axes + rest)
    found = emit("GatherNd",
                 [front, _positions(front, arrays)])
    count = len(found.shape or ()) - len(rest)
    order = [count + i for i in range(first)] + list(range(count)) + [
        count + i for i in range(first, len(rest))]
    return tnp.transpose(found, order)


def _as_indices(item: Any) -> Any:
    if isinstance(item, list) and not any(
            isinstance(v, Arithmetic) for v in item):
        return np.asarray(item, np.int32)
    return item


def _positions(x: SymbolicTensor, arrays: List[Any]) -> SymbolicTensor:
    """Indices of the first axes, along a new last axis."""
    from . import numpy as tnp
    from .numpy._types import cast
    from .numpy.selection import indices_from_end
    columns = []
    for axis, item in enumerate(arrays):
        at = as_tensor(_as_indices(item))
        at = cast(at, np.dtype(np.int32))
        columns.append(indices_from_end(at, tnp.size(x, axis)))
    return tnp.stack(tnp.broadcast_arrays(*columns), -1)


def _masked(x: SymbolicTensor, items: List[Any], count: int) -> SymbolicTensor:
    """With one boolean array, and whole axes beside it."""
    from . import numpy as tnp
    at = next(i for i, item in enumerate(items) if _is_array(item))
    if count > 1 or not _is_whole(items[:at] + items[at + 1:]):
        raise IndexError(f"{here()}: a boolean array in an index stands alone, "
                         "or beside whole axes")
    mask = as_tensor(items[at])
    rank = len(mask.shape or ())
    dims = list(tnp.shape(x))
    merged: Any = 1
    for d in dims[at:at + rank]:
        merged = merged * d
    flat = tnp.reshape(x, dims[:at] + [merged] + dims[at + rank:])
    found = tnp.flatnonzero(mask)
    return emit("GatherV2", [flat, found, as_tensor(at)])


class At:
    """Copies of a tensor with other elements: `x.at[index]`."""

    def __init__(self, x: SymbolicTensor) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> "Place":
        return Place(self._x, index)


class Place:
    """Elements of a tensor, from which copies with other ones are made."""

    def __init__(self, x: SymbolicTensor, index: Any) -> None:
        self._x = x
        self._index = index
        self._items = _items(x, index)

    def get(self) -> SymbolicTensor:
        """The elements."""
        return get(self._x, self._index)

    def _update(self, value: Value, op: str) -> Optional[SymbolicTensor]:
        """By a scatter op, if arrays come first in the index."""
        from . import numpy as tnp
        from .numpy._types import cast
        arrays = [i for i in self._items if _is_array(i) or _is_scalar_int(i)]
        whole = self._items[len(arrays):]
        if not arrays or not _is_whole(whole) or not any(
                _is_array(i) or _one_batched([i]) == 0 for i in arrays):
            return None
        if any(_is_array(i) and _is_mask(i) for i in arrays):
            return None
        at = _positions(self._x, arrays)
        value = cast(as_tensor(value, self._x.dtype), self._x.dtype)
        target = [*tnp.shape(at)[:-1], *tnp.shape(self._x)[len(arrays):]]
        return emit(op, [self._x, at, tnp.broadcast_to(value, target)])

    def set(self, value: Value) -> SymbolicTensor:
        """A copy of x with this value there."""
        from . import numpy as tnp
        from .numpy._types import cast
        x = self._x
        value = cast(as_tensor(value, x.dtype), x.dtype)
        if any(_is_array(i) and _is_mask(i) for i in self._items):
            if len(self._items) > 1 and not _is_whole(self._items[1:]):
                raise IndexError(f"{here()}: a boolean array in an index "
                                 "stands alone, or in front of whole axes")
            mask = as_tensor(self._items[0])
            more = len(x.shape or ()) - len(mask.shape or ())
            mask = tnp.reshape(mask, [*tnp.shape(mask), *[1] * more])
            return tnp.where(mask, value, x)
        batched = _one_batched(self._items) is not None
        if batched or any(_is_array(i) for i in self._items):
            made = self._update(value, "TensorScatterUpdate")
            if made is None and not batched:
                raise TracingError(
                    f"{here()}: .at[...].set() takes arrays in front of whole "
                    "axes only")
            if made is not None:
                return made
        if _is_whole(self._items):
            return tnp.broadcast_to(value, tnp.shape(x))
        _check_bounds(x, self._items)
        basic = _basic(self._items)
        part = emit("StridedSlice", [x, *_ends(basic)], **_attrs(basic))
        value = tnp.broadcast_to(value, tnp.shape(part))
        return emit("TensorStridedSliceUpdate", [x, *_ends(basic), value],
                    **_attrs(basic))

    def _combine(self, value: Value, op: str, combine: str) -> SymbolicTensor:
        from . import numpy as tnp
        made = self._update(value, op) if op else None
        if made is not None:
            return made
        return self.set(getattr(tnp, combine)(self.get(), value)
                        if not any(_is_array(i) for i in self._items)
                        else self._of_mask(value, combine))

    def _of_mask(self, value: Value, combine: str) -> SymbolicTensor:
        from . import numpy as tnp
        changed = Place(getattr(tnp, combine)(self._x, value), self._index)
        return tnp.where(as_tensor(self._items[0]), changed._x, self._x)

    def add(self, value: Value) -> SymbolicTensor:
        """A copy of x with this added there: for an index that occurs twice,
        both values."""
        return self._combine(value, "TensorScatterAdd", "add")

    def subtract(self, value: Value) -> SymbolicTensor:
        """A copy of x with this subtracted there."""
        return self._combine(value, "TensorScatterSub", "subtract")

    def multiply(self, value: Value) -> SymbolicTensor:
        """A copy of x, multiplied there."""
        return self._combine(value, "", "multiply")

    def min(self, value: Value) -> SymbolicTensor:
        """A copy of x that is not more than this there."""
        return self._combine(value, "TensorScatterMin", "minimum")

    def max(self, value: Value) -> SymbolicTensor:
        """A copy of x that is not less than this there."""
        return self._combine(value, "TensorScatterMax", "maximum")
