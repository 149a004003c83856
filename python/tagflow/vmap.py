"""vmap(): functions of one element, for all elements of a batch at once."""

from __future__ import annotations

import re
from typing import Any, Callable, List, Optional, Sequence

from . import tree
from ._batching import Level
from ._trace import here
from .grad import _traced
from .symbolic import SymbolicTensor, as_tensor, require_frame

__all__ = ["vmap"]

# Of the path of an argument in (args, kwargs).
_PREFIX = re.compile(r"^\[0\]|^\[1\]\.")


def _axes_of(what: str, axes: Any, value: Any) -> List[Optional[int]]:
    """The axis of each leaf: `axes` has the structure of the value, or ends
    early, with one number for all of a part."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(tree.leaves(value))
    parts = tree.children(value)
    given = tree.children(axes)
    if parts is None or given is None or len(parts) != len(given):
        raise ValueError(f"{here()}: [vmap] {what} {axes!r} does not have the "
                         "structure of what it is for")
    found: List[Optional[int]] = []
    for axis, part in zip(given, parts):
        found += _axes_of(what, axis, part)
    return found


def _front(what: str, x: SymbolicTensor, axis: int) -> SymbolicTensor:
    """With that axis as the first one."""
    from . import numpy as tnp
    if x.shape == () or (x.shape is not None and
                         not -len(x.shape) <= axis < len(x.shape)):
        raise ValueError(f"{here()}: [vmap] {what} is {x!r}, which has no axis "
                         f"{axis}; in_axes=None passes it whole")
    return tnp.moveaxis(x, axis, 0)


def _length(name: str, paths: Sequence[str],
            xs: Sequence[Optional[SymbolicTensor]],
            given: Any) -> Any:
    """How many elements the batch has."""
    from . import numpy as tnp
    known, where = given, "axis_size"
    first = None
    for path, x in zip(paths, xs):
        if x is None:
            continue
        first = x if first is None else first
        count = x.shape[0] if x.shape else None
        if count is None:
            continue
        if known is not None and known != count:
            raise ValueError(f"{here()}: [vmap] {name} gets {count} elements "
                             f"in {path}, but {known} in {where}")
        known, where = count, path
    if known is not None:
        return known
    if first is None:
        raise ValueError(f"{here()}: [vmap] no argument of {name} has a batch; "
                         "give axis_size, or in_axes other than None")
    return as_tensor(tnp.size(first, 0))


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *,
         axis_size: Optional[int] = None) -> Callable[..., Any]:
    """A function that computes `fn` for each element of a batch.

    `in_axes` says which axis of the arguments is the batch; None passes an
    argument whole. It is one number for all of them, or a tuple with one for
    each, which may be a structure like the argument. Arguments by name have
    the batch first. `out_axes` says where results have the batch, in the same
    way; None is for one that is the same for all elements.

    Most ops become one op for the whole batch. Conditionals and loops whose
    predicate differs by element, recursive functions, and ops of which no such
    form is known become loops over the elements, whose iterations overlap; so
    each element takes its own branch, and its own number of trips. The function
    may be traced more than once. It cannot assign Variables.
    """
    name = getattr(fn, "__name__", "function")

    def for_all(*args: Any, **kwargs: Any) -> Any:
        frame = require_frame()
        if isinstance(in_axes, list) or (
                isinstance(in_axes, tuple) and len(in_axes) != len(args)):
            raise ValueError(
                f"{here()}: [vmap] in_axes {in_axes!r} is no tuple with an "
                f"axis for each of {len(args)} arguments")
        axes = (_axes_of("in_axes", in_axes, args)
                + _axes_of("in_axes", 0, kwargs))
        leaves, structure = tree.flatten((args, kwargs))
        paths = [_PREFIX.sub("argument ", path)
                 for path in tree.paths(structure)]
        fronts = [None if axis is None else _front(path, as_tensor(leaf), axis)
                  for path, leaf, axis in zip(paths, leaves, axes)]
        level = Level(_length(name, paths, fronts, axis_size))
        given, named = tree.unflatten(structure, [
            leaf if x is None else level.wrap(x)
            for leaf, x in zip(leaves, fronts)])
        before, refused = frame.levels, frame.no_writes
        frame.levels = (*before, level)
        frame.no_writes = refused or (
            "a vmap cannot assign: the elements of a batch have no order")
        try:
            result = fn(*given, **named)
            made, its = tree.flatten(result)
            frame.levels = before
            return tree.unflatten(its, [
                _result(name, level, as_tensor(leaf), axis) for leaf, axis in
                zip(made, _axes_of("out_axes", out_axes, result))])
        finally:
            frame.levels, frame.no_writes = before, refused
            level.is_open = False

    return _traced("vmap", fn, for_all)


def _result(name: str, level: Level, x: SymbolicTensor,
            axis: Optional[int]) -> SymbolicTensor:
    from . import numpy as tnp
    if axis is None:
        if level.has(x):
            raise ValueError(
                f"{here()}: [vmap] a result of {name} differs by element, but "
                "out_axes is None for it")
        return x
    return tnp.moveaxis(level.unwrap(x), 0, axis)
