"""Models from files: signatures that are called with NumPy arrays."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import _native
from ._futures import Future
from .errors import InvalidArgumentError, NotFoundError
from .graph import Graph
from .session import Session

__all__ = ["Model", "Signature", "load"]

DEFAULT = "serving_default"


class Signature:
    """An entry of a model. Call it with arrays, by the names of its inputs, or
    by position if it has one input; it returns a dict by the names of its
    outputs."""

    def __init__(self, session: Session, graph: Graph, name: str,
                 inputs: Mapping[str, str], outputs: Mapping[str, str]) -> None:
        self.name = name
        self._session = session
        self._graph = graph
        self._inputs = dict(inputs)
        self._outputs = dict(outputs)
        self._calls: Dict[Tuple[str, ...], _native.Callable] = {}

    @property
    def inputs(self) -> Dict[str, Tuple[str, Any]]:
        """The type and shape of each input; None is an open dimension."""
        return {name: self._graph.tensor_type(tensor)
                for name, tensor in self._inputs.items()}

    @property
    def outputs(self) -> Dict[str, Tuple[str, Any]]:
        """The type and shape of each output."""
        return {name: self._graph.tensor_type(tensor)
                for name, tensor in self._outputs.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Dict[str, Any]:
        if args:
            kwargs = self._named(args, kwargs)
        call = self._calls.get(tuple(kwargs))
        if call is None:
            call = self.callable(*kwargs)
        return call(**kwargs)

    def run_async(self, *args: Any, **kwargs: Any) -> Future:
        """As a call, but returns a Future at once."""
        if args:
            kwargs = self._named(args, kwargs)
        return Future(self.callable(*kwargs).run_async(**kwargs))

    def callable(self, *names: str) -> _native.Callable:
        """The prepared call with these inputs, by default all of them: the
        fastest way to call it."""
        names = names or tuple(self._inputs)
        call = self._calls.get(names)
        if call is None:
            call = self._calls[names] = self._prepare(names)
        return call

    def __repr__(self) -> str:
        def texts(types: Mapping[str, Tuple[str, Any]]) -> str:
            return ", ".join(f"{name}: {kind}{_shape_text(shape)}"
                             for name, (kind, shape) in types.items())
        return (f"<tagflow.Signature {self.name!r}: ({texts(self.inputs)}) -> "
                f"({texts(self.outputs)})>")

    def _named(self, args: Tuple[Any, ...],
               kwargs: Mapping[str, Any]) -> Dict[str, Any]:
        if len(args) == 1 and not kwargs and isinstance(args[0], Mapping):
            return dict(args[0])
        if len(args) > 1 or len(self._inputs) != 1 or kwargs:
            raise TypeError(f"{self.name!r} takes its inputs by name: "
                            f"{', '.join(self._inputs)}")
        return {next(iter(self._inputs)): args[0]}

    def _prepare(self, names: Tuple[str, ...]) -> _native.Callable:
        unknown = [name for name in names if name not in self._inputs]
        if unknown:
            raise InvalidArgumentError(
                f"[model] signature {self.name!r} has no input {unknown[0]!r}; "
                f"its inputs are {', '.join(self._inputs)}")
        missing = [name for name, tensor in self._inputs.items()
                   if name not in names and
                   self._graph.node(tensor).op == "Placeholder"]
        if missing:
            raise InvalidArgumentError(
                f"[model] signature {self.name!r} needs values for "
                f"{', '.join(missing)}")
        return self._session.make_callable(
            self._outputs, [self._inputs[name] for name in names], names=names)


def _shape_text(shape: Any) -> str:
    if shape is None:
        return "[...]"
    return "[" + ",".join("?" if dim is None else str(dim)
                          for dim in shape) + "]"


class _Signatures(Dict[str, Signature]):
    def __missing__(self, name: str) -> Signature:
        raise KeyError(f"the model has no signature {name!r}; it has "
                       f"{', '.join(map(repr, self)) or 'none'}")


class Model:
    """A model with its variables. Calling it calls its default signature:
    "serving_default", or the only one."""

    def __init__(self, graph: Graph, session: Session,
                 signatures: Mapping[str, Tuple[Mapping[str, str],
                                                Mapping[str, str]]]) -> None:
        self.graph = graph
        self.session = session
        self._signatures = {
            name: Signature(session, graph, name, inputs, outputs)
            for name, (inputs, outputs) in signatures.items()}

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The entries, by their names; those of TensorFlow's own use, which
        begin with "__", are left out."""
        return MappingProxyType(_Signatures({
            name: signature for name, signature in self._signatures.items()
            if not name.startswith("__")}))

    def __call__(self, *args: Any, **kwargs: Any) -> Dict[str, Any]:
        return self._default()(*args, **kwargs)

    def run_async(self, *args: Any, **kwargs: Any) -> Future:
        return self._default().run_async(*args, **kwargs)

    def variables(self) -> Dict[str, Any]:
        """The values of its variables, by their names in the graph."""
        return self.session.variables()

    def close(self) -> None:
        self.session.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        lines = [f"<tagflow.Model: {len(self.graph)} nodes"]
        lines += [f"  {signature!r}" for signature in self.signatures.values()]
        return "\n".join(lines) + ">"

    def _default(self) -> Signature:
        known = self.signatures
        if DEFAULT in known:
            return known[DEFAULT]
        if len(known) == 1:
            return next(iter(known.values()))
        raise NotFoundError(
            f"[model] there is no signature {DEFAULT!r}; call one of "
            f"model.signatures: "
            f"{', '.join(map(repr, known)) or 'there is none'}")


def _of_ends(graph: Graph) -> Dict[str, Tuple[Dict[str, str], Dict[str, str]]]:
    inputs, outputs = graph._ends()
    return {DEFAULT: ({name: name for name in inputs},
                      {name: name for name in outputs})}


def load(path: "os.PathLike[str] | str", **options: Any) -> Model:
    """Loads a model of TensorFlow.

    Args:
        path: the folder of a SavedModel, whose variables get their values; a
            MetaGraph ("x.meta"), with those of the checkpoint beside it; or a
            GraphDef, whose inputs are its placeholders, and whose outputs are
            what no node reads.
        options: those of Session.
    """
    graph = Graph.from_graphdef(path)
    session = Session(graph, **options)
    try:
        model = Model(graph, session, graph._signatures or _of_ends(graph))
        if len(session.devices()) > 1:
            # So each variable is made on the device where it is needed.
            for signature in model.signatures.values():
                signature.callable()
        if graph._signatures:
            session._native.load_state(graph)
    except BaseException:
        session.close()
        raise
    return model
