"""Structures of arrays: dicts, tuples, lists, None, dataclasses, named tuples.

They can be nested. What is none of these is a leaf. JAX calls them pytrees.
"""

from __future__ import annotations

import dataclasses
from typing import (Any, Callable, Dict, Iterable, Iterator, List, NamedTuple,
                    Optional, Sequence, Set, Tuple, Type)

__all__ = ["Structure", "children", "flatten", "leaf", "leaves", "map", "paths",
           "register", "unflatten"]


class _Node(NamedTuple):
    flatten: Callable[[Any], Tuple[Sequence[Any], Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]


_registered: Dict[type, _Node] = {}


def register(cls: Type[Any],
             flatten: Callable[[Any], Tuple[Sequence[Any], Any]],
             unflatten: Callable[[Any, Sequence[Any]], Any]) -> Type[Any]:
    """Makes objects of a class structures: `flatten(object)` returns its
    children and what else it consists of, which must be hashable;
    `unflatten(rest, children)` makes the object again."""
    _registered[cls] = _Node(flatten, unflatten)
    return cls


_leaf_types: Set[type] = set()


def leaf(cls: Type[Any]) -> Type[Any]:
    """Makes objects of a class leaves, although they are tuples or
    dataclasses."""
    _leaf_types.add(cls)
    return cls


class Structure:
    """What a value consists of, without its leaves. Structures can be compared
    and hashed."""

    __slots__ = ("kind", "rest", "children", "num_leaves", "_hash")

    def __init__(self, kind: Optional[type], rest: Any,
                 children: Tuple["Structure", ...]) -> None:
        self.kind = kind  # None: a leaf
        self.rest = rest
        self.children = children
        self.num_leaves: int = (1 if kind is None
                           else sum(c.num_leaves for c in children))
        self._hash = hash((kind, rest, children))

    @property
    def is_leaf(self) -> bool:
        return self.kind is None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: Any) -> bool:
        if self is other:
            return True
        return (isinstance(other, Structure) and self._hash == other._hash
                and self.kind is other.kind and self.rest == other.rest
                and self.children == other.children)

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        inner = [repr(c) for c in self.children]
        if self.kind is type(None):
            return "None"
        if self.kind is tuple:
            return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
        if self.kind is list:
            return f"[{', '.join(inner)}]"
        if self.kind is dict:
            return ("{" + ", ".join(f"{k!r}: {c}" for k, c in
                                    zip(self.rest, inner)) + "}")
        return f"{self.kind.__name__}({', '.join(inner)})"


_LEAF = Structure(None, None, ())
_NONE = Structure(type(None), None, ())


def _sorted(keys: Iterable[Any]) -> List[Any]:
    keys = list(keys)
    try:
        return sorted(keys)
    except TypeError:
        return keys


def _take_apart(value: Any) -> Optional[Tuple[Sequence[Any], Any]]:
    """The children and the rest; None for a leaf."""
    kind = type(value)
    if kind in _leaf_types:
        return None
    if kind is tuple or kind is list:
        return value, None
    if kind is dict:
        keys = _sorted(value)
        return [value[key] for key in keys], tuple(keys)
    if kind in _registered:
        return _registered[kind].flatten(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return value, None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(f.name for f in dataclasses.fields(value))
        return [getattr(value, name) for name in names], names
    return None


def _flatten(value: Any, into: List[Any]) -> Structure:
    if value is None:
        return _NONE
    parts = _take_apart(value)
    if parts is None:
        into.append(value)
        return _LEAF
    children, rest = parts
    return Structure(type(value), rest,
                     tuple([_flatten(child, into) for child in children]))


def flatten(value: Any) -> Tuple[List[Any], Structure]:
    """The leaves of a value, in order, and its structure."""
    into: List[Any] = []
    structure = _flatten(value, into)
    return into, structure


def children(value: Any) -> Optional[List[Any]]:
    """The parts that a structure consists of; None for a leaf, and for None."""
    parts = None if value is None else _take_apart(value)
    return None if parts is None else list(parts[0])


def leaves(value: Any) -> List[Any]:
    """The leaves of a value, in order."""
    return flatten(value)[0]


def _build(structure: Structure, values: Iterator[Any]) -> Any:
    kind = structure.kind
    if kind is None:
        return next(values)
    if kind is type(None):
        return None
    children = [_build(child, values) for child in structure.children]
    if kind is list:
        return children
    if kind is tuple:
        return tuple(children)
    if kind is dict:
        return dict(zip(structure.rest, children))
    if kind in _registered:
        return _registered[kind].unflatten(structure.rest, children)
    if issubclass(kind, tuple):
        return kind(*children)
    made = object.__new__(kind)  # a dataclass, which may be frozen
    for name, child in zip(structure.rest, children):
        object.__setattr__(made, name, child)
    return made


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The value of that structure with these leaves."""
    values = list(leaves)
    if len(values) != structure.num_leaves:
        raise ValueError(f"{len(values)} leaves for a structure of "
                         f"{structure.num_leaves}")
    return _build(structure, iter(values))


def map(fn: Callable[..., Any], value: Any, *more: Any) -> Any:
    """The same structure, with `fn` of each leaf, and of the leaves in the
    same place of the other values."""
    first, structure = flatten(value)
    others = []
    for other in more:
        got, its = flatten(other)
        if its != structure:
            raise ValueError(f"structures differ: {structure} and {its}")
        others.append(got)
    return unflatten(structure, [fn(*each) for each in zip(first, *others)])


def _walk(structure: Structure, prefix: str, into: List[str]) -> None:
    if structure.kind is None:
        into.append(prefix)
        return
    fields = getattr(structure.kind, "_fields", None) or structure.rest
    for i, child in enumerate(structure.children):
        if structure.kind in (tuple, list) or structure.kind in _registered:
            name = f"[{i}]"
        else:
            assert fields is not None
            field = str(fields[i])
            name = f".{field}" if prefix else field
        _walk(child, prefix + name, into)


def paths(structure: Structure) -> List[str]:
    """By leaf, how to get to it: "layers[1].w"; "" if it is the value
    itself."""
    into: List[str] = []
    _walk(structure, "", into)
    return into
