"""Tensors with a value for each element of a batch: what vmap() computes with.

A Level is one call of vmap(). Its BatchedTensors look like one element of the
batch, and hold a tensor with the batch as its first axis; that one may be
batched at a level further out. Ops with batched inputs become ops for the
whole batch by the rules in _batch_rules.py. What has no rule, and what
branches or loops differently by element, becomes a loop over the elements.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import (Any, Callable, Dict, Iterator, List, Optional, Sequence,
                    Tuple)

import numpy as np

from ._trace import Frame, Trace, TracingError, here
from .symbolic import SymbolicTensor, as_tensor, emit, require_frame

__all__ = ["BatchedTensor", "Level", "Rehearsal", "full", "innermost",
           "plain", "rehearsal", "rewrapped", "swapped"]

Tensors = List[SymbolicTensor]

_depths = itertools.count()


class BatchedTensor(SymbolicTensor):
    """One element of a batch, for all of them."""

    __slots__ = ("_inner", "_level")

    _is_batched = True

    def __init__(self, inner: SymbolicTensor, level: "Level",
                 weak: bool = False) -> None:
        self._inner = inner
        self._level = level
        self._weak = weak
        self._const = self._wide = None
        self._dtype = inner.dtype
        self._shape = None if inner.shape is None else inner.shape[1:]

    @property
    def _out(self) -> Any:  # type: ignore[override]
        raise TracingError(
            f"{here()}: [vmap] {self!r} cannot be used here: this needs one "
            "value, not one for each element of a batch")

    @property
    def _frame(self) -> Frame:  # type: ignore[override]
        return self._inner._frame

    @property
    def name(self) -> str:
        return self._inner.name

    def _strong(self) -> SymbolicTensor:
        return BatchedTensor(self._inner, self._level)

    def _here(self) -> SymbolicTensor:
        level = self._level
        if level.trip is not None:
            return level.trip.element(self._inner)
        if not level.is_open:
            raise TracingError(
                f"{here()}: {self!r} is used outside of the function of the "
                "vmap() that it belongs to; return it from there")
        inner = self._inner._here()
        return (self if inner is self._inner
                else BatchedTensor(inner, level, self._weak))


class Trip:
    """While the body of the loop over a level's batch is traced: the level's
    tensors are elements there."""

    def __init__(self, index: SymbolicTensor) -> None:
        self._index = index
        self._known: Dict[int, Tuple[SymbolicTensor, SymbolicTensor]] = {}
        # The tensors, with the batch, that the body took elements of.
        self.taken: Tensors = []

    def know(self, inner: SymbolicTensor, element: SymbolicTensor) -> None:
        self._known[id(inner)] = (inner, element)

    def element(self, inner: SymbolicTensor) -> SymbolicTensor:
        known = self._known.get(id(inner))
        if known is not None:
            return known[1]._here()
        self.taken.append(inner)
        return emit("GatherV2", [inner._here(), self._index._here(),
                                 as_tensor(0)])


class Rehearsal(Trace):
    """A trace that is thrown away: it shows which results of a function are
    batched. What the function uses of other traces has stand-ins."""

    def __init__(self, outer: Frame) -> None:
        super().__init__("rehearsal", outer.trace.frozen)
        self.root.levels = outer.levels
        self.root.no_writes = outer.no_writes
        self._known: Dict[int, Tuple[Any, SymbolicTensor]] = {}

    def stand_in(self, tensor: SymbolicTensor) -> SymbolicTensor:
        known = self._known.get(id(tensor._out))
        if known is None:
            made = self._placeholder(tensor.dtype, tensor.shape, tensor._weak)
            made._const = tensor._const
            known = self._known[id(tensor._out)] = (tensor._out, made)
        return known[1]

    def like(self, x: SymbolicTensor) -> SymbolicTensor:
        """Of the type, the levels and the shape of x."""
        if x._is_batched:
            return x._level.wrap(  # type: ignore[attr-defined]
                self.like(x._inner))  # type: ignore[attr-defined]
        return self._placeholder(x.dtype, x.shape)

    def part(self, x: SymbolicTensor) -> SymbolicTensor:
        """Of the type and the levels of x, and the shape of its parts along
        the first axis."""
        levels, at = [], x
        while at._is_batched:
            levels.append(at._level)  # type: ignore[attr-defined]
            at = at._inner  # type: ignore[attr-defined]
        shape = at.shape
        if shape is not None:
            shape = (*shape[:len(levels)], *shape[len(levels) + 1:])
        made = self._placeholder(at.dtype, shape)
        for level in reversed(levels):
            made = level.wrap(made)
        return made

    def _placeholder(self, dtype: Any, shape: Any,
                     weak: bool = False) -> SymbolicTensor:
        out = self.root.op("Placeholder", [], {
            "dtype": "string" if dtype == np.dtype(object) else dtype,
            "shape": shape})[0]
        return SymbolicTensor(out, self.root, weak)


@contextlib.contextmanager
def rehearsal() -> Iterator[Rehearsal]:
    """Ops of this thread are added to a trace that is thrown away."""
    trace = Rehearsal(require_frame())
    try:
        with trace.root.active():
            yield trace
    finally:
        trace.root.is_open = False


def with_first(length: Any, rest: SymbolicTensor) -> SymbolicTensor:
    """The vector `rest` of ints with another one in front."""
    from . import numpy as tnp
    if rest._const is not None and isinstance(length, (int, np.integer)):
        return as_tensor(np.concatenate(
            [np.asarray([length], rest._const.dtype), rest._const]))
    first = as_tensor(length, rest.dtype)
    first = tnp.reshape(tnp.astype(first, rest.dtype), (1,))
    return emit("ConcatV2", [first, rest, as_tensor(0)])


class Level:
    """One call of vmap()."""

    def __init__(self, length: Any) -> None:
        self.depth = next(_depths)
        self._length = length  # an int, or a tensor
        self.is_open = True
        self.trip: Optional[Trip] = None

    @property
    def length(self) -> Any:
        """How many elements the batch has: an int, or an int32 tensor."""
        if isinstance(self._length, SymbolicTensor):
            return self._length._here()
        return self._length

    def has(self, x: SymbolicTensor) -> bool:
        return x._is_batched and x._level is self  # type: ignore[attr-defined]

    def wrap(self, inner: SymbolicTensor) -> SymbolicTensor:
        return BatchedTensor(inner, self)

    def unwrap(self, x: SymbolicTensor) -> SymbolicTensor:
        """With the batch as its first axis, repeated if x has none."""
        x = as_tensor(x)
        if self.has(x):
            return x._inner  # type: ignore[attr-defined]
        if x.shape is not None and None not in x.shape:
            shape = with_first(self.length, as_tensor(
                np.asarray(x.shape, np.int32)))
        else:
            shape = with_first(self.length, emit("Shape", [x]))
        return emit("BroadcastTo", [x, shape])

    def unwrap_some(self, xs: Sequence[SymbolicTensor],
                    flags: Sequence[bool]) -> Tensors:
        return [self.unwrap(x) if flag else as_tensor(x)
                for x, flag in zip(xs, flags)]

    def wrap_some(self, xs: Sequence[SymbolicTensor],
                  flags: Sequence[bool]) -> Tensors:
        return [self.wrap(x) if flag else x for x, flag in zip(xs, flags)]

    def outer(self) -> Tuple["Level", ...]:
        """The levels around this one, where ops are added now."""
        return tuple(level for level in require_frame().levels
                     if level.depth < self.depth)

    def map_over(self, fn: Callable[[Tensors], Sequence[SymbolicTensor]],
                 xs: Sequence[SymbolicTensor]) -> Tensors:
        """The results of fn(elements) for each element of the batch, by a
        loop. What has no batch at this level is passed as it is."""
        from .control_flow import map_each
        from . import numpy as tnp
        xs = [as_tensor(x) for x in xs]
        flags = [self.has(x) for x in xs]
        whole = [x._inner if flag else x  # type: ignore[attr-defined]
                 for x, flag in zip(xs, flags)]
        # Elements of what the function takes from around are read from arrays,
        # whose gradients are arrays, too.
        with rehearsal():
            with self._trip(tnp.asarray(0)) as trip:
                fn([trip.element(x) if flag else as_tensor(x)
                    for x, flag in zip(whole, flags)])
        taken = list({id(x): x for x in trip.taken}.values())
        taken = [x for x in taken if not any(x is y for y in whole)]

        def body(elements: Tensors) -> Sequence[SymbolicTensor]:
            parts = iter(elements)
            with self._trip(next(parts)) as trip:
                given = [next(parts) if flag else as_tensor(x)
                         for x, flag in zip(whole, flags)]
                for x, flag, part in zip(whole, flags, given):
                    if flag:
                        trip.know(x, part)
                for x in taken:
                    trip.know(x, next(parts))
                return [as_tensor(x) for x in fn(given)]

        elements = [tnp.arange(self.length),
                    *(x for x, flag in zip(whole, flags) if flag),
                    *(x._here() for x in taken)]
        made = map_each(self.outer(), body, elements, [], 10)
        return [self.wrap(x) for x in made]

    @contextlib.contextmanager
    def _trip(self, index: SymbolicTensor) -> Iterator[Trip]:
        before, self.trip = self.trip, Trip(index)
        frame = require_frame()
        levels = frame.levels
        frame.levels = tuple(level for level in levels if level is not self)
        try:
            yield self.trip
        finally:
            self.trip = before
            frame.levels = levels


def innermost(xs: Sequence[SymbolicTensor]) -> Optional[Level]:
    """The innermost level at which one of these is batched."""
    levels = [x._level for x in xs  # type: ignore[attr-defined]
              if x._is_batched]
    return max(levels, key=lambda level: level.depth) if levels else None


def full(x: SymbolicTensor, levels: Sequence[Level]) -> SymbolicTensor:
    """x, batched at all of these levels."""
    x = as_tensor(x)
    if not levels:
        return x
    level = levels[-1]
    inner = x._inner if level.has(x) else None  # type: ignore[attr-defined]
    if inner is not None:
        return level.wrap(full(inner, levels[:-1]))
    return level.wrap(level.unwrap(full(x, levels[:-1])))


def plain(x: SymbolicTensor) -> SymbolicTensor:
    """With all batches as its first axes, from the outermost level on."""
    while x._is_batched:
        x = x._inner  # type: ignore[attr-defined]
    return x


def rewrapped(x: SymbolicTensor, levels: Sequence[Level]) -> SymbolicTensor:
    """A tensor whose first axes are the batches of all of these levels."""
    for level in levels:
        x = level.wrap(x)
    return x


def swapped(x: SymbolicTensor) -> SymbolicTensor:
    """With the first two axes exchanged."""
    from . import numpy as tnp
    if x.shape is not None:
        return tnp.swapaxes(x, 0, 1)
    rest = tnp.arange(2, emit("Rank", [x]))
    order = emit("ConcatV2", [as_tensor(np.array([1, 0], np.int32)), rest,
                              as_tensor(0)])
    return emit("Transpose", [x, order])
