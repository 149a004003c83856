"""One trace of a function: its graph, and how it is run."""

from __future__ import annotations

import functools
import re
from typing import (Any, Callable, Dict, List, NamedTuple, Optional, Sequence,
                    Tuple)

import numpy as np

from . import _saved_model, _state, tree
from ._trace import Trace
from .errors import Error
from .symbolic import SymbolicTensor, as_tensor, emit

__all__ = ["Concrete", "TensorSpec", "explain", "node_name", "spec"]


class TensorSpec(NamedTuple):
    """The type and the shape of an argument; None is an unknown dimension, or
    an unknown rank."""
    dtype: Any
    shape: Optional[Tuple[Optional[int], ...]]


def spec(dtype: Any, shape: Any = ()) -> TensorSpec:
    """A TensorSpec of a type or its name, and a shape."""
    from .numpy._types import to_dtype
    if dtype is str or dtype is bytes or dtype == "string":
        found: Any = np.dtype(object)
    else:
        found = to_dtype(dtype)
    return TensorSpec(found, None if shape is None else tuple(shape))


tree.register(TensorSpec, lambda s: ((), s), lambda s, _: s)


def node_name(text: str) -> str:
    """A name that a node may have."""
    name = re.sub(r"[^A-Za-z0-9_.]", "_", text).strip("_")
    return name if name and name[0].isalnum() else f"arg_{name}"


def explain(error: BaseException, sources: Dict[str, str]) -> None:
    """Adds the line that made the node at fault to an error of a run."""
    if not isinstance(error, Error) or hasattr(error, "source"):
        return
    names = [error.node] if error.node else []
    names += re.findall(r'"([^"]+)"', str(error))
    for name in names:
        source = sources.get(name.rpartition(":")[0] or name)
        if source is not None:
            error.source = source  # type: ignore[attr-defined]
            error.args = (f"{error.args[0]}\n  the node was made at "
                          f"{source}", *error.args[1:])
            return


# The types with all digits of Python's numbers.
_WIDE = {np.dtype(np.float32): np.dtype(np.float64),
         np.dtype(np.complex64): np.dtype(np.complex128)}


class Concrete:
    """One trace of a function, ready to run."""

    def __init__(self, name: str, fn: Callable[..., Any],
                 specs: Sequence[TensorSpec], names: Sequence[str],
                 weak: Sequence[bool], frozen: bool = False) -> None:
        self.recipe: Any = None  # how Function makes this trace again
        trace = Trace(name, frozen)
        self.sources = trace.sources
        frame = trace.root
        feeds: List[str] = []
        with frame.active():
            values = []
            for each, its, is_weak in zip(specs, names, weak):
                dtype = "string" if each.dtype == object else each.dtype
                wide = None if frozen or not is_weak else _WIDE.get(dtype)
                out = frame.op("Placeholder", [], {
                    "dtype": wide or dtype, "shape": each.shape},
                    node_name(its))[0]
                feeds.append(out.name)
                value = SymbolicTensor(out, frame, is_weak)
                if wide is not None:
                    value = emit("Cast", [value], DstT=dtype)
                    value._weak = True
                    value._wide = SymbolicTensor(out, frame)
                values.append(value)
            leaves, self.structure = tree.flatten(fn(values))
            # An identity, so that a result is no feed, and has its own name.
            results = [emit("Identity", [as_tensor(leaf)],
                            name=f"result_{i}" if len(leaves) > 1 else "result")
                       for i, leaf in enumerate(leaves)]
            targets = [out.name.rpartition(":")[0] or out.name
                       for out in frame.pending()]
        frame.is_open = False
        self.names = list(names)
        self.feeds, self.fetches = feeds, [x.name for x in results]
        self.specs = list(specs)
        self.results = [TensorSpec(x.dtype, x.shape) for x in results]
        self.graph = trace.graph
        # As long as the trace can run, its variables have values.
        self.variables = list(trace.variables)
        self._session = _state.session()
        self._session.extend(trace.graph)
        form, keys, plain = self._form()
        self.run = self._session.make_callable(
            feeds, self.fetches, sorted(set(targets)), list(names), form, keys,
            None)
        self.finish: Optional[Callable[[Any], Any]] = None
        if not plain:
            self.finish = functools.partial(tree.unflatten, self.structure)

    def write_model(self, path: str) -> None:
        """Writes it as a SavedModel, whose signature has the names of the
        arguments, and the keys of a dict of results."""
        form, keys, _ = self._form()
        outputs = keys if form == "dict" else [
            name.rpartition(":")[0] for name in self.fetches]
        _saved_model.write(path, self.graph.to_graphdef(),
                           list(zip(self.names, self.feeds, self.specs)),
                           list(zip(outputs, self.fetches, self.results)))

    def _form(self) -> Tuple[str, List[str], bool]:
        """What the native call returns, and whether that is the result."""
        kind, children = self.structure.kind, self.structure.children
        flat = all(child.is_leaf for child in children)
        if self.structure.is_leaf:
            return "single", [], True
        if kind is tuple and flat:
            return "tuple", [], True
        if kind is list and flat:
            return "list", [], True
        if kind is dict and flat and children and all(
                isinstance(key, str) for key in self.structure.rest):
            return "dict", list(self.structure.rest), True
        return "tuple", [], False

    def explain(self, error: BaseException) -> None:
        """See explain()."""
        explain(error, self.sources)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        try:
            result = self.run(*leaves)
        except Error as error:
            self.explain(error)
            raise
        return result if self.finish is None else self.finish(result)
