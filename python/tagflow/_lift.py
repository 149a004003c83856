"""Functions that compute at once outside of a trace."""

from __future__ import annotations

import collections
import functools
import threading
from typing import Any, Callable, List, TypeVar

import numpy as np

from . import tree
from ._trace import current

__all__ = ["lifted", "lifted_with_numbers", "run_now"]

F = TypeVar("F", bound=Callable[..., Any])

# How many functions with their other arguments are kept.
_MAX_KEPT = 512
_kept: "collections.OrderedDict[Any, Any]" = collections.OrderedDict()
_lock = threading.Lock()


class _Place:
    """Stands for an array in a structure of arguments."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Place) and other.index == self.index

    def __hash__(self) -> int:
        return hash(self.index)


def _is_dynamic(leaf: Any, fixed_numbers: bool) -> bool:
    from ._native import Tensor
    if type(leaf) in (float, complex):
        return not fixed_numbers
    return isinstance(leaf, (np.ndarray, np.generic, Tensor))


def _make(fn: Callable[..., Any], structure: Any, leaves: List[Any]) -> Any:
    from .function import Function

    def now(*arrays: Any) -> Any:
        filled = [arrays[leaf.index] if isinstance(leaf, _Place) else leaf
                  for leaf in leaves]
        args, kwargs = tree.unflatten(structure, filled)
        return fn(*args, **kwargs)

    now.__name__ = fn.__name__
    return Function(now)


def run_now(fn: Callable[..., Any], args: Any, kwargs: Any,
            fixed_numbers: bool = False) -> Any:
    """The result of fn(*args, **kwargs), which is traced. Arrays are fed, and
    numbers with a fraction unless `fixed_numbers` is set; everything else
    belongs to the trace."""
    leaves, structure = tree.flatten((args, kwargs))
    arrays: List[Any] = []
    for i, leaf in enumerate(leaves):
        if _is_dynamic(leaf, fixed_numbers):
            leaves[i] = _Place(len(arrays))
            arrays.append(leaf)
    try:
        key = (fn, structure, tuple((type(leaf), leaf) for leaf in leaves))
        hash(key)
    except TypeError:
        key = None
    # A function in the arguments is rarely the same one twice.
    if key is None or any(callable(leaf) and not isinstance(leaf, type)
                          for leaf in leaves):
        return _make(fn, structure, leaves)(*arrays)
    with _lock:
        function = _kept.get(key)
        if function is None:
            function = _kept[key] = _make(fn, structure, leaves)
            if len(_kept) > _MAX_KEPT:
                _kept.popitem(last=False)
    return function(*arrays)


def lifted(fn: F, fixed_numbers: bool = False) -> F:
    """Decorates a function of symbolic tensors: outside of a trace it computes
    with arrays. With `fixed_numbers` it needs the values of its numbers."""

    @functools.wraps(fn)
    def either(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return run_now(fn, args, kwargs, fixed_numbers)
        return fn(*args, **kwargs)

    either.__traced__ = fn  # type: ignore[attr-defined]
    return either  # type: ignore[return-value]


def lifted_with_numbers(fn: F) -> F:
    """lifted() for functions that need the values of their numbers."""
    return lifted(fn, True)
