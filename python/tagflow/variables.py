"""Variables: state that traced functions share."""

from __future__ import annotations

import collections
import heapq
import itertools
import threading
import weakref
from typing import Any, Deque, Dict, List, Optional, Tuple

import numpy as np

from ._state import on_fork
from ._trace import TracingError, current, here, suspended
from .symbolic import (Arithmetic, SymbolicTensor, Value, as_tensor, is_number,
                       of_list, require_frame)

__all__ = ["Variable"]

# Numbers make their names in the engine unique. It keeps the type, the shape
# and the device of each name for ever, so the numbers of variables that are
# gone are used again for such ones.
_Kind = Tuple[str, Tuple[int, ...]]
_numbers = itertools.count()
_free_numbers: Dict[_Kind, List[int]] = {}
_lock = threading.Lock()

# The numbers and attributes of variables that nobody has any more. They are
# removed when the next one is made: a collection of garbage may happen
# anywhere, even while a function is traced.
_doomed: Deque[Tuple[int, Dict[str, Any]]] = collections.deque()


def _forget_lock() -> None:
    global _lock
    _lock = threading.Lock()


on_fork(_forget_lock)


def _number(kind: _Kind) -> int:
    with _lock:
        free = _free_numbers.get(kind)
        return heapq.heappop(free) if free else next(_numbers)


def _remove_doomed() -> None:
    from .function import Function
    removed: List[Tuple[int, Dict[str, Any]]] = []
    while _doomed:
        removed.append(_doomed.popleft())
    if not removed:
        return

    def remove() -> None:
        frame = require_frame()
        for _, attrs in removed:
            handle = frame.op("VarHandleOp", [], attrs)
            frame.note_write(attrs["shared_name"], frame.op(
                "DestroyResourceOp", handle, {"ignore_lookup_error": True}))

    Function(remove)()
    with _lock:
        for number, attrs in removed:
            kind = str(attrs["dtype"]), attrs["shape"]
            heapq.heappush(_free_numbers.setdefault(kind, []), number)


class Variable(Arithmetic):
    """An array that functions can change.

        count = tagflow.Variable(0)

        @tagflow.function
        def next():
            return count.assign_add(1)

    In a traced function it stands for its value at that place of the program:
    reads and assignments happen in their order, in branches and loops, too.
    Elsewhere its methods act at once. It has the type and the shape of its
    first value. Its value exists as long as the object, and functions that were
    traced with it.
    """

    __slots__ = ("_dtype", "_shape", "_shared_name", "_functions", "name",
                 "__weakref__")

    def __init__(self, value: Value, *, name: Optional[str] = None,
                 dtype: Any = None) -> None:
        from .numpy._types import to_dtype
        if current() is not None:
            raise RuntimeError(
                "a Variable cannot be made in a traced function: it would be "
                "made once, and not in each call; make it outside")
        if dtype is not None:
            array = np.asarray(value, to_dtype(dtype))
        elif is_number(value) or isinstance(value, (list, tuple)):
            array = (of_list([value]).reshape(()) if is_number(value)
                     else of_list(value))
        else:
            array = np.asarray(value)
        if array.dtype.kind in "SUT":
            array = array.astype(object)
        self._dtype, self._shape = array.dtype, array.shape
        _remove_doomed()
        number = _number((str(_type_of(self._dtype)), self._shape))
        self.name = name or f"variable_{number}"
        self._shared_name = f"{self.name}#{number}"
        self._functions: Dict[str, Any] = {}  # what acts at once
        self.assign(array)
        weakref.finalize(self, _doomed.append,
                         (number, self._attrs())).atexit = False

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._shape

    @property
    def ndim(self) -> int:
        return len(self._shape)

    def _attrs(self) -> Dict[str, Any]:
        """Of the op that makes its handle."""
        return {"dtype": _type_of(self._dtype), "shape": self._shape,
                "shared_name": self._shared_name}

    # --- In a trace ----------------------------------------------------------

    def _handle(self) -> Any:
        """The handle in the graph of the current frame."""
        frame = require_frame()
        frame.trace.variables[self] = None
        body = frame.body
        handle = body.handles.get(self)
        if handle is None:
            with body.active():
                handle = body.handles[self] = body.op(
                    "VarHandleOp", [], self._attrs(), "variable")[0]
        return handle

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def _read(self) -> SymbolicTensor:
        """Its value at this place of the trace."""
        frame = require_frame()
        if frame.trace.frozen:
            with suspended():
                value = self.numpy()
            return as_tensor(value)
        out = frame.op("ReadVariableOp", [self._handle()],
                       {"dtype": _type_of(self._dtype)},
                       waits=frame.waits_of_read(id(self)))[0]
        frame.note_read(id(self), out)
        return SymbolicTensor(out, frame)

    def _write(self, op: str, value: Value) -> SymbolicTensor:
        from .numpy._types import cast
        frame = require_frame()
        if frame.trace.frozen:
            raise TracingError(
                f"{here()}: a function that is saved cannot assign {self!r}")
        x = as_tensor(value, self._dtype)
        if x.dtype != self._dtype:
            if np.dtype(object) != self._dtype:
                raise TypeError(f"{self!r} cannot be assigned {x!r}; use "
                                "astype()")
            x = cast(x, self._dtype)
        done = frame.op(op, [self._handle(), x._out],
                        {"dtype": _type_of(self._dtype)},
                        waits=frame.waits_of_write(id(self)))
        frame.note_write(id(self), done)
        return self._read()

    # --- Anywhere ------------------------------------------------------------

    @property
    def value(self) -> Any:
        """The value: an array, or a tensor in a traced function."""
        return self._read() if current() is not None else self._now("read")

    def numpy(self) -> np.ndarray:
        """The value as an array. Not in a traced function."""
        return np.asarray(self._now("read"))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        value = self.numpy()
        return value if dtype is None else value.astype(dtype)

    def assign(self, value: Value) -> Any:
        """Sets the value, of the same type and shape; returns it."""
        return self._change("AssignVariableOp", value)

    def assign_add(self, value: Value) -> Any:
        """Adds to the value; returns the new one."""
        return self._change("AssignAddVariableOp", value)

    def assign_sub(self, value: Value) -> Any:
        """Subtracts from the value; returns the new one."""
        return self._change("AssignSubVariableOp", value)

    def _change(self, op: str, value: Value) -> Any:
        if current() is not None:
            return self._write(op, value)
        array = np.asarray(value)
        if array.dtype != self._dtype:
            array = self._converted(value, array)
        if array.shape != self._shape:
            raise ValueError(f"{self!r} cannot be assigned an array of shape "
                             f"{list(array.shape)}")
        return self._now(op, array)

    def _converted(self, value: Value, array: np.ndarray) -> np.ndarray:
        """A value without a type of its own, as one of the variable's."""
        texts = np.dtype(object) == self._dtype and array.dtype.kind in "SUT"
        fits = not hasattr(value, "dtype") and (
            array.size == 0 or np.can_cast(array.dtype, self._dtype,
                                           "same_kind")
            or array.dtype.kind == "i" and self._dtype.kind == "u"
            and array.min() >= 0
            # A type of a package has no kind to NumPy.
            or array.dtype.kind in "biuf" and self._dtype.name == "bfloat16")
        if not fits and not texts:
            raise TypeError(f"{self!r} cannot be assigned {array.dtype}; use "
                            "astype()")
        made = array.astype(self._dtype)
        if self._dtype.kind in "iu" and (made != array).any():
            raise TypeError(f"{self!r} cannot be assigned {value!r}, which is "
                            "out of its range")
        return made

    def _now(self, what: str, *args: Any) -> Any:
        from .function import Function
        function = self._functions.get(what)
        if function is None:
            def act(*values: Any) -> Any:
                return self._write(what, *values) if values else self._read()
            function = self._functions[what] = Function(act, name=what)
        return function(*args)

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a scalar")
        return self._shape[0]

    def __repr__(self) -> str:
        return (f"<tagflow.Variable {self.name!r} {self._dtype}"
                f"[{','.join(map(str, self._shape))}]>")


def _type_of(dtype: Any) -> Any:
    return "string" if dtype == np.dtype(object) or dtype.kind in "SU" else (
        dtype)
