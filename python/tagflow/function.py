"""Functions of Python that are traced once and run by the engine."""

from __future__ import annotations

import functools
import inspect
import os
import re
import threading
import types
import weakref
from typing import (Any, Callable, Dict, List, NamedTuple, Optional, Sequence,
                    Tuple, Union, overload)

import numpy as np

from . import _native, _state, tree
from ._concrete import Concrete, TensorSpec, node_name, spec
from ._trace import current
from .graph import Graph
from .symbolic import SymbolicTensor, is_number

__all__ = ["Function", "TensorSpec", "function", "spec"]

# What identifies an argument: the number of NumPy's type, or that of a number
# of Python as in the module; and the shape.
_LeafKey = Tuple[int, Optional[Tuple[Optional[int], ...]]]
_NUMBER_KEYS = {int: -1, float: -2, bool: -3, complex: -4}
_WIDE_INT = -5


class _Static(NamedTuple):
    """An argument that belongs to the trace."""
    value: Any


def array_of(leaf: Any) -> Any:
    """The leaf as an array; texts and lists of them, too."""
    if isinstance(leaf, np.ma.MaskedArray):
        raise TypeError("is a masked array, whose mask would be lost; use its "
                        "filled(value)")
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf
    if isinstance(leaf, (str, bytes)):
        return np.array(leaf, object)
    if isinstance(leaf, _native.Tensor) or hasattr(leaf, "__array__"):
        return np.asarray(leaf)
    if hasattr(leaf, "__dlpack__"):
        return np.from_dlpack(leaf)
    raise TypeError(
        f"is {type(leaf).__name__}, which is no array, number or structure of "
        "them; name it in static_argnames if the trace shall depend on its "
        "value")


def _leaf_key(leaf: Any) -> _LeafKey:
    kind = type(leaf)
    if kind in _NUMBER_KEYS:
        if kind is int and not -2**31 <= leaf < 2**31:
            return (_WIDE_INT, ())
        return (_NUMBER_KEYS[kind], ())
    return (leaf.dtype.num, leaf.shape)


def spec_of(leaf: Any) -> TensorSpec:
    kind = type(leaf)
    if kind is int:
        wide = not -2**31 <= leaf < 2**31
        return TensorSpec(np.dtype(np.int64 if wide else np.int32), ())
    if kind is float:
        return TensorSpec(np.dtype(np.float32), ())
    if kind is complex:
        return TensorSpec(np.dtype(np.complex64), ())
    if kind is bool:
        return TensorSpec(np.dtype(np.bool_), ())
    return TensorSpec(leaf.dtype, leaf.shape)


# All Functions, which a child that is forked off traces again.
_functions: "weakref.WeakSet[Function]" = weakref.WeakSet()


def _forget_all() -> None:
    for each in list(_functions):
        each._lock = threading.RLock()
        each._clear_entries()
        each._traces = {}


_state.on_fork(_forget_all)


class Function(_native.Dispatch):
    """What tagflow.function makes. The first call with arguments of other
    types or shapes traces the function; later ones only run. In a child that
    was forked off, all are traced again."""

    def __init__(self, fn: Callable[..., Any], *, input_signature: Any = None,
                 static_argnums: Union[int, Sequence[int]] = (),
                 static_argnames: Union[str, Sequence[str]] = (),
                 name: Optional[str] = None) -> None:
        self._fn = fn
        functools.update_wrapper(self, fn, updated=())
        self._name = str(name or getattr(fn, "__name__", "function"))
        try:
            self._signature: Optional[inspect.Signature] = inspect.signature(fn)
        except (TypeError, ValueError):
            self._signature = None
        nums = ((static_argnums,) if isinstance(static_argnums, int)
                else tuple(static_argnums))
        names = ((static_argnames,) if isinstance(static_argnames, str)
                 else tuple(static_argnames))
        self._static_nums, self._static_names = self._both(nums, names)
        self._specs = (None if input_signature is None
                       else tuple(input_signature))
        self._traces: Dict[Any, Concrete] = {}
        self._lock = threading.RLock()
        self._in_python = bool(self._static_nums or self._static_names
                               or self._specs is not None)
        # By the id of an object, if it is a method.
        self._bound: Dict[int, Function] = {}
        _functions.add(self)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A method. An object that is a structure is an argument like others.
        For any other object there is a Function of its own, whose traces belong
        to it: its attributes are constants, as what a function uses is."""
        if instance is None:
            return self
        if tree.children(instance) is not None or 0 in self._static_nums:
            return types.MethodType(self, instance)
        key = id(instance)
        with self._lock:
            made = self._bound.get(key)
            if made is None:
                made = self._bound[key] = self._of(instance)
                weakref.finalize(instance, self._bound.pop, key,
                                 None).atexit = False
        return made

    def _of(self, instance: Any) -> "Function":
        held, fn = weakref.ref(instance), self._fn

        @functools.wraps(fn)
        def method(*args: Any, **kwargs: Any) -> Any:
            return fn(held(), *args, **kwargs)

        if self._signature is not None:
            parameters = list(self._signature.parameters.values())[1:]
            method.__signature__ = (  # type: ignore[attr-defined]
                self._signature.replace(parameters=parameters))
        return Function(method, input_signature=self._specs,
                        static_argnums=[n - 1 for n in self._static_nums],
                        name=self._name)

    def _both(self, nums: Sequence[int], names: Sequence[str]
              ) -> Tuple[frozenset, frozenset]:
        """The static arguments by number, and by name."""
        if self._signature is None:
            return frozenset(nums), frozenset(names)
        parameters = list(self._signature.parameters)
        for name in names:
            if name not in parameters:
                raise ValueError(f"static_argnames: {self._name} has no "
                                 f"parameter {name!r}")
        by_number = {n % len(parameters) for n in nums}
        return (frozenset(by_number | {parameters.index(n) for n in names}),
                frozenset(names) | {parameters[n] for n in by_number})

    # --- Calls ---------------------------------------------------------------

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """A call for which the native side has no entry."""
        if current() is not None:
            return self._fn(*args, **kwargs)
        concrete, leaves = self._find(args, kwargs, self._specs)
        return concrete(leaves)

    def _find(self, args: Tuple[Any, ...], kwargs: Dict[str, Any],
              specs: Optional[Sequence[Any]], frozen: bool = False
              ) -> Tuple[Concrete, List[Any]]:
        """The trace for these arguments, or for these specs of them, and what
        it is fed with. A frozen one is always made anew."""
        if specs is not None:
            args, kwargs = self._with_specs(args, kwargs, specs)
        if self._static_nums:
            args = tuple(_Static(a) if i in self._static_nums else a
                         for i, a in enumerate(args))
            kwargs = {k: _Static(v) if k in self._static_names else v
                      for k, v in kwargs.items()}
        leaves, structure = tree.flatten((args, kwargs))
        fed: List[Any] = []
        keys: List[Any] = []
        fixed: Dict[int, Any] = {}
        for i, leaf in enumerate(leaves):
            kind = type(leaf)
            if kind is np.ndarray:
                keys.append((leaf.dtype.num, leaf.shape))
                fed.append(leaf)
                continue
            if kind is _Static or kind is _Fed or hasattr(leaf, "_read"):
                self._fix(leaf, keys, fixed, fed, i)
                continue
            if kind not in _NUMBER_KEYS:
                try:
                    leaf = array_of(leaf)
                except TypeError as error:
                    raise TypeError(f"argument {self._path(structure, i)} "
                                    f"{error}") from None
            keys.append(_leaf_key(leaf))
            fed.append(leaf)
        if frozen:
            return self._trace(structure, fed, fixed, True), []
        key = (structure, tuple(keys))
        concrete = self._traces.get(key)
        if concrete is None:
            with self._lock:
                concrete = self._traces.get(key)
                if concrete is None:
                    concrete = self._trace(structure, fed, fixed)
                    self._traces[key] = concrete
                    self._offer(structure, keys, concrete)
        if specs is not None:
            fed = [leaf.value if type(leaf) is _Fed else leaf for leaf in fed]
        return concrete, fed

    def _fix(self, leaf: Any, keys: List[Any], fixed: Dict[int, Any],
             fed: List[Any], i: int) -> None:
        if isinstance(leaf, _Fed):
            keys.append(leaf.spec)
            fed.append(leaf)
            return
        value = leaf.value if isinstance(leaf, _Static) else leaf
        fixed[i] = value
        try:
            hash(value)
        except TypeError:
            if isinstance(leaf, _Static):
                raise TypeError(
                    f"{self._name}: a static argument must be hashable, which "
                    f"{type(value).__name__} is not") from None
            value = _ById(value)
        keys.append((type(value), value))

    def _trace(self, structure: tree.Structure, fed: List[Any],
               fixed: Dict[int, Any], frozen: bool = False) -> Concrete:
        names: List[str] = []
        specs: List[TensorSpec] = []
        weak: List[bool] = []
        paths = [self._path(structure, i) for i in range(structure.num_leaves)]
        taken: Dict[str, int] = {}
        for i, path in enumerate(paths):
            if i in fixed:
                continue
            leaf = fed[len(specs)]
            specs.append(leaf.spec if isinstance(leaf, _Fed)
                         else spec_of(leaf))
            weak.append(is_number(leaf))
            name = node_name(path)
            taken[name] = taken.get(name, -1) + 1
            names.append(name if not taken[name] else f"{name}_{taken[name]}")

        def call(values: List[SymbolicTensor]) -> Any:
            rest = iter(values)
            args, kwargs = tree.unflatten(structure, [
                fixed[i] if i in fixed else next(rest)
                for i in range(structure.num_leaves)])
            return self._fn(*args, **kwargs)

        made = Concrete(self._name, call, specs, names, weak, frozen)
        # Without the arrays, which nobody else may have any more.
        made.recipe = (structure, [
            leaf if is_number(leaf) else _Fed(None, each)
            for leaf, each in zip(fed, specs)], fixed)
        return made

    def _offer(self, structure: tree.Structure, keys: List[Any],
               concrete: Concrete) -> None:
        """Lets the native side answer such calls, if all arguments are arrays
        or numbers, by position."""
        args, kwargs = structure.children
        if self._in_python or kwargs.children or not all(
                child.is_leaf for child in args.children):
            return
        if any(not isinstance(number, int) or number < -3
               or number == np.dtype(object).num for number, _ in keys):
            return
        self._add_entry(keys, concrete.run, concrete.finish, concrete.explain)

    def _with_specs(self, args: Tuple[Any, ...], kwargs: Dict[str, Any],
                    specs: Sequence[Any]
                    ) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """The arguments that have specs, as what is fed for them."""
        if self._signature is not None and kwargs:
            bound = self._signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        dynamic = [i for i in range(len(args)) if i not in self._static_nums]
        if len(dynamic) != len(specs) or kwargs:
            raise TypeError(f"{self._name} takes {len(specs)} arguments "
                            f"by its input_signature, not {len(dynamic)}")
        made = list(args)
        for i, wanted in zip(dynamic, specs):
            made[i] = _feed(args[i], wanted, self._name)
        return tuple(made), {}

    def _path(self, structure: tree.Structure, i: int) -> str:
        """How a message calls leaf i of the arguments."""
        path = tree.paths(structure)[i]  # "[0][2].w" or "[1].name.w"
        match = re.match(r"\[0\]\[(\d+)\](.*)", path)
        if match is None:
            return path[len("[1]."):] if path.startswith("[1].") else path
        number = int(match.group(1))
        parameters = (list(self._signature.parameters)
                      if self._signature else [])
        name = (parameters[number] if number < len(parameters)
                else f"arg_{number}")
        return name + match.group(2)

    # --- Looking at it -------------------------------------------------------

    def _only(self, args: Tuple[Any, ...], kwargs: Dict[str, Any],
              frozen: bool = False) -> Concrete:
        """The trace for these arguments, which may be specs; without any, the
        only trace."""
        if not args and not kwargs:
            if self._specs is not None:
                args = self._specs
            elif len(self._traces) == 1:
                only = next(iter(self._traces.values()))
                if not frozen:
                    return only
                structure, fed, fixed = only.recipe
                return self._trace(structure, fed, fixed, True)
            elif self._signature is None or self._signature.parameters:
                raise ValueError(
                    f"{self._name} has {len(self._traces)} traces: give "
                    "arguments, or tagflow.spec(dtype, shape) for each")
        args, kwargs = tree.map(
            lambda leaf: _Fed(leaf.value, leaf.value) if isinstance(
                leaf, _SpecLeaf) else leaf, mark_specs((args, kwargs)))
        return self._find(args, kwargs, None, frozen)[0]

    def trace(self, *args: Any, **kwargs: Any) -> Concrete:
        """The trace for these arguments, which may be tagflow.spec()s: what it
        is fed with and fetches, and its graph."""
        return self._only(args, kwargs)

    @property
    def graph(self) -> Graph:
        """The graph of the only trace; graph_for() has that of others."""
        return self._only((), {}).graph

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph for these arguments, which may be tagflow.spec()s."""
        return self._only(args, kwargs).graph

    def to_graphdef(self, *args: Any, **kwargs: Any) -> bytes:
        """The graph as the bytes of a GraphDef."""
        return self._only(args, kwargs).graph.to_graphdef()

    def save(self, path: Union[str, "os.PathLike[str]"], *args: Any,
             **kwargs: Any) -> None:
        """Writes the graph for these arguments, which may be tagflow.spec()s.
        Variables become constants.

        A path that ends in .pb is a GraphDef, one that ends in .pbtxt or .txt a
        text; the placeholders have the names of the arguments, and results are
        called "result", or "result_0" and so on. Any other path is the folder
        of a SavedModel, which must not exist: its signature also has the keys
        of a dict of results. tagflow.load(), `tagflow serve` and TensorFlow
        take it."""
        path = os.fspath(path)
        concrete = self._only(args, kwargs, frozen=True)
        if path.endswith((".pb", ".pbtxt", ".txt")):
            concrete.graph.save(path)
        else:
            concrete.write_model(path)

    def clear(self) -> None:
        """Forgets all traces."""
        with self._lock:
            self._traces.clear()
            self._clear_entries()

    def __repr__(self) -> str:
        traces = ", ".join(
            "(" + ", ".join(_text(s) for s in c.specs) + ") -> "
            + ", ".join(_text(s) for s in c.results)
            for c in self._traces.values())
        return (f"<tagflow.function {self._name}: "
                f"{traces or 'not traced yet'}>")


def _text(each: TensorSpec) -> str:
    shape = ("[...]" if each.shape is None else "[" + ",".join(
        "?" if d is None else str(d) for d in each.shape) + "]")
    return f"{each.dtype}{shape}"


class _ById:
    """Compares by identity what cannot be hashed."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _ById) and other.value is self.value


class _SpecLeaf(NamedTuple):
    value: TensorSpec


class _Fed(NamedTuple):
    """A leaf with a declared spec."""
    value: Any
    spec: TensorSpec


for _leaf in (_Static, _Fed, _SpecLeaf):
    tree.leaf(_leaf)


def mark_specs(value: Any) -> Any:
    """The same structure, with leaves for the specs in it."""
    if isinstance(value, TensorSpec):
        return _SpecLeaf(value)
    if isinstance(value, dict):
        return {key: mark_specs(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(mark_specs(item) for item in value)
    return value


def _feed(value: Any, wanted: Any, what: str) -> Any:
    """The value with the spec of each leaf, checked."""
    specs = tree.leaves(tree.map(lambda leaf: leaf, mark_specs(wanted)))
    leaves, structure = tree.flatten(value)
    if len(specs) != len(leaves):
        raise TypeError(f"{what}: an argument has {len(leaves)} arrays, its "
                        f"input_signature {len(specs)}")
    made = []
    for leaf, each in zip(leaves, specs):
        each = each.value
        array = (np.asarray(leaf, each.dtype) if is_number(leaf)
                 else array_of(leaf))
        fits = each.shape is None or (
            len(each.shape) == array.ndim and all(
                d is None or d == n for d, n in zip(each.shape, array.shape)))
        if not fits or (array.dtype != each.dtype and not (
                each.dtype == object and array.dtype.kind in "OSUT")):
            raise TypeError(
                f"{what}: {array.dtype}{list(array.shape)} is no "
                f"{_text(each)}, which its input_signature wants")
        made.append(_Fed(array, each))
    return tree.unflatten(structure, made)


@overload
def function(fn: Callable[..., Any]) -> Function: ...


@overload
def function(fn: None = None, *, input_signature: Any = None,
             static_argnums: Union[int, Sequence[int]] = (),
             static_argnames: Union[str, Sequence[str]] = (),
             name: Optional[str] = None
             ) -> Callable[[Callable[..., Any]], Function]: ...


def function(fn: Optional[Callable[..., Any]] = None, *,
             input_signature: Any = None,
             static_argnums: Union[int, Sequence[int]] = (),
             static_argnames: Union[str, Sequence[str]] = (),
             name: Optional[str] = None) -> Any:
    """Decorates a function of arrays, so that the engine runs it.

    It is called once with symbolic tensors for each signature, which is what
    types and shapes its arguments have, and the values of static ones.
    Arguments and results are arrays, numbers, and structures of them. Arrays
    that it uses otherwise are constants of the trace; see tagflow.Variable for
    what changes. Inside of another traced function a call becomes part of that
    one.

    Args:
        input_signature: a tagflow.spec() for each argument that is not static,
            so that one trace serves all shapes that fit.
        static_argnums, static_argnames: arguments that are passed as they are;
            they must be hashable.
    """
    def decorate(f: Callable[..., Any]) -> Function:
        if isinstance(f, Function):
            f = f._fn
        return Function(f, input_signature=input_signature,
                        static_argnums=static_argnums,
                        static_argnames=static_argnames, name=name)
    return decorate if fn is None else decorate(fn)
