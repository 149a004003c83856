"""Traces: graphs under construction, and where in them ops are added.

A Trace has a graph. Ops are added in its current Frame: the graph itself, or
a branch, a loop's body or a function's body inside it. Tensors belong to
frames: when a frame is finished, its tensors are of no use any more, and an
attempt to use one is an error.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from . import _native
from .errors import Error

__all__ = ["Frame", "Trace", "TracingError", "current", "here",
           "suspended"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class TracingError(Error, TypeError):
    """A function of Python cannot be traced: it treats a symbolic tensor as a
    value, or uses one outside of its trace."""
    code = 3


class _Local(threading.local):
    frame: Optional["Frame"] = None


_local = _Local()


def current() -> Optional["Frame"]:
    """The frame in which this thread adds ops; None: it does not trace."""
    return _local.frame


def here() -> str:
    """ "file.py:12" of the innermost caller outside of this package."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE) and name != contextlib.__file__:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "?"


# Note [Effects]
# Assignments happen in the order of the program. A frame keeps, by variable,
# the operations that wrote it last, and those that have read it since. A read
# waits for the writes, a write for both. What a branch or a loop has touched
# counts as written by its results, which wait for everything inside of it. In
# the body of a loop the first effects wait for the loop's variables, which
# have waited for the effects of the last iteration.


class Frame:
    """Where ops are added. Used by one thread."""

    def __init__(self, trace: "Trace", scope: Any,
                 parent: Optional["Frame"] = None, *, body: Any = None,
                 entry: Sequence[Any] = (), no_writes: str = "") -> None:
        self.trace = trace
        self.scope = scope
        self.parent = parent
        self.is_open = True
        # Frames of one graph have one body: that of its outermost frame.
        self.body: Frame = self if parent is None or body else parent.body
        self.entry = list(entry)
        self.no_writes: str = no_writes or (
            parent.no_writes if parent else "")
        # The calls of vmap() around, from the outermost on. A function's body
        # is outside of all of them.
        self.levels: Tuple[Any, ...] = (
            () if parent is None or body else parent.levels)
        self.writes: Dict[Any, List[Any]] = {}
        self.reads: Dict[Any, List[Any]] = {}
        self.handles: Dict[Any, Any] = {}  # of variables, if it is a body
        self.touched: Dict[Any, None] = {}

    # --- Effects -------------------------------------------------------------

    def waits_of_read(self, key: Any) -> List[Any]:
        return self.writes.get(key, self.entry)

    def note_read(self, key: Any, output: Any) -> None:
        self.reads.setdefault(key, []).append(output)
        self.touched[key] = None

    def waits_of_write(self, key: Any) -> List[Any]:
        if self.no_writes:
            raise TracingError(f"[assign] {self.no_writes}")
        return self.writes.get(key, self.entry) + self.reads.get(key, [])

    def note_write(self, key: Any, outputs: Sequence[Any]) -> None:
        self.writes[key] = list(outputs)
        self.reads.pop(key, None)
        self.touched[key] = None

    def pending(self) -> List[Any]:
        """What the results of the frame wait for."""
        done: List[Any] = []
        for outputs in (*self.writes.values(), *self.reads.values()):
            done.extend(outputs)
        return done

    def all_waits(self) -> List[Any]:
        """What a construct waits for whose effects are not known yet."""
        return self.pending() or self.entry

    def absorb(self, frames: Sequence["Frame"], results: Sequence[Any]) -> None:
        """Takes over the effects of inner frames, which `results` wait for."""
        for frame in frames:
            for key in frame.touched:
                self.note_write(key, results)

    def with_effects(self, outputs: List[Any]) -> List[Any]:
        """The outputs, available once all effects of the frame are done."""
        pending = self.pending()
        return self.scope.all_after(outputs, pending) if pending else outputs

    # --- Life ----------------------------------------------------------------

    @contextlib.contextmanager
    def active(self) -> Iterator["Frame"]:
        """Ops of this thread are added here."""
        outer, _local.frame = _local.frame, self
        _native.open_trace()
        try:
            yield self
        finally:
            _native.close_trace()
            _local.frame = outer

    @contextlib.contextmanager
    def inner(self, scope: Any, **options: Any) -> Iterator["Frame"]:
        """A frame inside of this one, while its ops are added."""
        frame = Frame(self.trace, scope, self, **options)
        try:
            with frame.active():
                yield frame
        finally:
            frame.is_open = False

    @contextlib.contextmanager
    def through(self, scope: Any) -> Iterator[None]:
        """Adds ops by another scope of the same place."""
        outer, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = outer

    # --- Ops -----------------------------------------------------------------

    def op(self, op: str, inputs: List[Any], attrs: Optional[dict] = None,
           name: Optional[str] = None,
           waits: Optional[List[Any]] = None) -> List[Any]:
        """Adds a node of native outputs, and notes the line that made it."""
        scope = self.scope.after(waits) if waits else self.scope
        outputs = scope.op(op, inputs, attrs, name)
        self.trace.note(outputs[0].name)
        return outputs

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Notes this line for all nodes that are added meanwhile."""
        line, before = here(), self.scope.num_nodes
        yield
        sources = self.trace.sources
        for name in self.scope.nodes_since(before):
            sources.setdefault(name, line)


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Functions compute at once, although this thread traces."""
    outer, _local.frame = _local.frame, None
    _native.close_trace()
    try:
        yield
    finally:
        _native.open_trace()
        _local.frame = outer


class Trace:
    """A graph that a function of Python builds. In a frozen one, Variables are
    constants."""

    def __init__(self, name: str, frozen: bool = False) -> None:
        self.name = name
        self.frozen = frozen
        self.graph = _native.Graph()
        self.root = Frame(self, _native.Scope(self.graph))
        self.sources: Dict[str, str] = {}  # by node
        self.variables: Dict[Any, None] = {}  # that it uses
        self.functions: Dict[Any, str] = {}  # of recursions

    def stand_in(self, tensor: Any) -> Any:
        """What stands for a tensor of another trace; None: nothing may."""
        return None

    def note(self, tensor: str) -> None:
        self.sources[tensor.rpartition(":")[0] or tensor] = here()
