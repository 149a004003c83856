"""Symbolic tensors: what a traced function computes with."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from ._trace import Frame, TracingError, current, here

__all__ = ["Arithmetic", "SymbolicTensor", "Value", "add_op", "as_tensor",
           "emit", "emit_all", "is_array", "is_number", "of_list",
           "require_frame"]

Value = Any  # a symbolic tensor, an array, or a number

NUMBERS = (bool, int, float, complex)


def is_number(value: Any) -> bool:
    """Whether it is a number of Python, which takes the type of what it
    meets."""
    return type(value) in NUMBERS


def is_array(value: Any) -> bool:
    """Whether it has a value and a type of its own."""
    return isinstance(value, (np.ndarray, np.generic)) or (
        hasattr(value, "__array__") and not isinstance(value, Arithmetic))


def _numpy() -> Any:
    from . import numpy as tnp
    return tnp


def _refuse(what: str, instead: str) -> TracingError:
    return TracingError(
        f"{here()}: {what} needs the value of a symbolic tensor, which is only "
        f"known when the function runs; {instead}")


class Arithmetic:
    """The operators and methods of what stands for an array."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 1000

    # NumPy's functions, called with a tensor, are those of tagflow.numpy.
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any,
                        **options: Any) -> Any:
        function = getattr(_numpy(), ufunc.__name__, None)
        if method != "__call__" or options or function is None:
            raise TracingError(
                f"{here()}: numpy.{ufunc.__name__} cannot be traced; "
                "tagflow.numpy has what can")
        return function(*inputs)

    def __array_function__(self, func: Any, types: Any, args: Any,
                           kwargs: Any) -> Any:
        function = getattr(_numpy(), func.__name__, None)
        if function is None:
            raise TracingError(
                f"{here()}: numpy.{func.__name__} cannot be traced; "
                "tagflow.numpy has what can")
        return function(*args, **kwargs)

    def __add__(self, other): return _numpy().add(self, other)
    def __radd__(self, other): return _numpy().add(other, self)
    def __sub__(self, other): return _numpy().subtract(self, other)
    def __rsub__(self, other): return _numpy().subtract(other, self)
    def __mul__(self, other): return _numpy().multiply(self, other)
    def __rmul__(self, other): return _numpy().multiply(other, self)
    def __truediv__(self, other): return _numpy().divide(self, other)
    def __rtruediv__(self, other): return _numpy().divide(other, self)
    def __floordiv__(self, other): return _numpy().floor_divide(self, other)
    def __rfloordiv__(self, other): return _numpy().floor_divide(other, self)
    def __mod__(self, other): return _numpy().mod(self, other)
    def __rmod__(self, other): return _numpy().mod(other, self)
    def __divmod__(self, other): return self // other, self % other
    def __pow__(self, other): return _numpy().power(self, other)
    def __rpow__(self, other): return _numpy().power(other, self)
    def __matmul__(self, other): return _numpy().matmul(self, other)
    def __rmatmul__(self, other): return _numpy().matmul(other, self)
    def __and__(self, other): return _numpy().bitwise_and(self, other)
    def __rand__(self, other): return _numpy().bitwise_and(other, self)
    def __or__(self, other): return _numpy().bitwise_or(self, other)
    def __ror__(self, other): return _numpy().bitwise_or(other, self)
    def __xor__(self, other): return _numpy().bitwise_xor(self, other)
    def __rxor__(self, other): return _numpy().bitwise_xor(other, self)
    def __lshift__(self, other): return _numpy().left_shift(self, other)
    def __rshift__(self, other): return _numpy().right_shift(self, other)
    def __lt__(self, other): return _numpy().less(self, other)
    def __le__(self, other): return _numpy().less_equal(self, other)
    def __gt__(self, other): return _numpy().greater(self, other)
    def __ge__(self, other): return _numpy().greater_equal(self, other)
    def __eq__(self, other): return _numpy().equal(self, other)
    def __ne__(self, other): return _numpy().not_equal(self, other)
    def __neg__(self): return _numpy().negative(self)
    def __pos__(self): return self
    def __abs__(self): return _numpy().abs(self)
    def __invert__(self): return _numpy().invert(self)

    def __getitem__(self, index: Any) -> Any:
        from ._indexing import get
        return get(as_tensor(self), index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TracingError(
            f"{here()}: an array in a traced function cannot be changed; "
            "write x = x.at[index].set(value)")

    @property
    def at(self) -> Any:
        """`x.at[i].set(v)`: a copy of x with other elements; also add,
        multiply, min, max."""
        from ._indexing import At
        return At(as_tensor(self))

    @property
    def T(self) -> Any:
        return _numpy().transpose(self)

    @property
    def real(self) -> Any:
        return _numpy().real(self)

    @property
    def imag(self) -> Any:
        return _numpy().imag(self)

    def astype(self, dtype: Any) -> Any:
        return _numpy().astype(self, dtype)

    def reshape(self, *shape: Any) -> Any:
        return _numpy().reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Any:
        if not axes or axes == (None,):
            return _numpy().transpose(self)
        return _numpy().transpose(self, axes[0] if len(axes) == 1
                                  and not isinstance(axes[0], int) else axes)

    def sum(self, axis=None, keepdims=False):
        return _numpy().sum(self, axis, keepdims=keepdims)

    def mean(self, axis=None, keepdims=False):
        return _numpy().mean(self, axis, keepdims=keepdims)

    def prod(self, axis=None, keepdims=False):
        return _numpy().prod(self, axis, keepdims=keepdims)

    def max(self, axis=None, keepdims=False):
        return _numpy().max(self, axis, keepdims=keepdims)

    def min(self, axis=None, keepdims=False):
        return _numpy().min(self, axis, keepdims=keepdims)

    def std(self, axis=None, keepdims=False):
        return _numpy().std(self, axis, keepdims=keepdims)

    def var(self, axis=None, keepdims=False):
        return _numpy().var(self, axis, keepdims=keepdims)

    def all(self, axis=None, keepdims=False):
        return _numpy().all(self, axis, keepdims=keepdims)

    def any(self, axis=None, keepdims=False):
        return _numpy().any(self, axis, keepdims=keepdims)

    def argmax(self, axis=None): return _numpy().argmax(self, axis)
    def argmin(self, axis=None): return _numpy().argmin(self, axis)
    def cumsum(self, axis=None): return _numpy().cumsum(self, axis)
    def cumprod(self, axis=None): return _numpy().cumprod(self, axis)
    def dot(self, other): return _numpy().dot(self, other)
    def clip(self, min=None, max=None): return _numpy().clip(self, min, max)
    def round(self): return _numpy().round(self)
    def conj(self): return _numpy().conj(self)
    def ravel(self): return _numpy().ravel(self)
    def flatten(self): return _numpy().ravel(self)
    def squeeze(self, axis=None): return _numpy().squeeze(self, axis)
    def swapaxes(self, a, b): return _numpy().swapaxes(self, a, b)
    def take(self, indices, axis=None):
        return _numpy().take(self, indices, axis)
    def repeat(self, repeats, axis=None):
        return _numpy().repeat(self, repeats, axis)


class SymbolicTensor(Arithmetic):
    """A tensor of a trace: its type is known, its shape as far as possible,
    its value when the function runs."""

    __slots__ = ("_out", "_frame", "_weak", "_dtype", "_shape", "_const",
                 "_wide")

    # Whether it is a BatchedTensor, which has no output of its own.
    _is_batched = False

    def __init__(self, out: Any, frame: Frame, weak: bool = False,
                 const: Any = None) -> None:
        self._out = out
        self._frame = frame
        self._weak = weak  # the argument was a number of Python
        self._const = const  # the value, if it is a small constant
        # Of a number that was an argument: with all digits, for what it meets.
        self._wide: Optional["SymbolicTensor"] = None
        self._dtype = out.dtype
        self._shape = out.shape

    @property
    def dtype(self) -> Any:
        """NumPy's type; a name of the engine for handles."""
        return self._dtype

    @property
    def shape(self) -> Optional[Tuple[Optional[int], ...]]:
        """None stands for an unknown dimension, and for an unknown rank."""
        return self._shape

    @property
    def ndim(self) -> int:
        if self._shape is None:
            raise TracingError(f"{here()}: the rank of {self!r} is unknown")
        return len(self._shape)

    @property
    def size(self) -> Any:
        """The number of elements: an int if the shape is known, else a
        tensor."""
        return _numpy().size(self)

    @property
    def name(self) -> str:
        """ "node:port" in the graph."""
        return self._out.name

    def _strong(self) -> "SymbolicTensor":
        """The same tensor, whose type is not that of a number of Python."""
        return SymbolicTensor(self._out, self._frame, False, self._const)

    def _here(self) -> "SymbolicTensor":
        """The tensor as the current frame can use it. Throws TracingError if
        it cannot."""
        frame = current()
        if frame is None or not self._frame.is_open:
            raise TracingError(
                f"{here()}: {self!r} is used outside of the function, branch "
                "or loop that it belongs to; return it from there")
        if self._frame.body is frame.body:
            return self
        if frame.trace is not self._frame.trace and (
                frame.body is frame.trace.root):
            stand_in = frame.trace.stand_in(self)
            if stand_in is not None:
                return stand_in
        raise TracingError(
            f"{here()}: {self!r} belongs to another function: a recursive "
            "function can only use its arguments; pass it as one")

    def __repr__(self) -> str:
        shape = ("[...]" if self._shape is None else
                 "[" + ",".join("?" if d is None else str(d)
                                for d in self._shape) + "]")
        state = "" if self._frame.is_open else ", finished"
        return f"<SymbolicTensor {self._dtype}{shape}{state}>"

    def __format__(self, spec: str) -> str:
        if spec:
            raise _refuse("a format", "return the tensor, and print it then")
        return repr(self)

    def __contains__(self, value: Any) -> bool:
        raise _refuse("a Python `in`", "use tagflow.numpy.any(x == value)")

    def __bool__(self) -> bool:
        raise _refuse("a Python `if`, `while`, `and`, `or`, `not` or bool()",
                      "use tagflow.cond or tagflow.while_loop, "
                      "tagflow.numpy.where, or & | ~")

    def __int__(self) -> int:
        raise _refuse("int()", "use x.astype(int), or tagflow.fori_loop "
                      "instead of range()")

    def __index__(self) -> int:
        raise _refuse("an index, or range()",
                      "use tagflow.fori_loop or tagflow.scan for a loop, and "
                      "tagflow.numpy.take for an index")

    def __float__(self) -> float:
        raise _refuse("float()", "use x.astype(float)")

    def __complex__(self) -> complex:
        raise _refuse("complex()", "use x.astype(complex)")

    def __array__(self, *unused: Any, **options: Any) -> Any:
        raise _refuse("NumPy", "use tagflow.numpy")

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError(f"len() of {self!r}, which has no known rank, or "
                            "none")
        if self._shape[0] is None:
            raise _refuse("len() of an unknown dimension",
                          "use tagflow.numpy.shape(x)[0]")
        return self._shape[0]

    def __iter__(self) -> Iterator["SymbolicTensor"]:
        if not self._shape or self._shape[0] is None:
            raise _refuse("iteration over an unknown dimension",
                          "use tagflow.scan or tagflow.map")
        return iter([self[i] for i in range(self._shape[0])])


def require_frame() -> Frame:
    frame = current()
    if frame is None:
        raise TracingError(
            f"{here()}: this adds to a graph, and works only in a function "
            "that is traced: decorate it with tagflow.function")
    return frame


def as_tensor(value: Value, dtype: Any = None) -> SymbolicTensor:
    """A tensor of the current trace: the value itself, a constant, the value
    of a variable, or lists of these, stacked. `dtype` is for what has no type
    of its own: numbers of Python."""
    if isinstance(value, SymbolicTensor):
        return value._here()
    frame = require_frame()
    read = getattr(value, "_read", None)
    if read is not None:  # a Variable
        return read()
    if isinstance(value, (list, tuple)) and any(
            isinstance(leaf, Arithmetic) for leaf in _deep(value)):
        return _numpy().stack(value)
    weak = is_number(value)
    if weak and dtype is None:
        if type(value) is float:
            dtype = np.dtype(np.float32)
        elif type(value) is complex:
            dtype = np.dtype(np.complex64)
        elif type(value) is int:
            dtype = np.dtype(np.int32 if -2**31 <= value < 2**31 else np.int64)
    elif not weak:
        dtype = None
        if isinstance(value, (list, tuple)):
            value = of_list(value)
    try:
        out = frame.scope.constant(value, dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{here()}: {type(value).__name__} {value!r} is no array: {error}"
        ) from None
    frame.trace.note(out.name)
    return SymbolicTensor(out, frame, weak, _small(value, out.dtype))


def _small(value: Any, dtype: Any) -> Any:
    """The value of a constant that may say how an op works: which axes it
    takes, and the like."""
    if is_number(value) or (isinstance(value, (np.ndarray, np.generic))
                            and value.size <= 64 and value.dtype.kind in "iu"):
        return np.asarray(value).astype(dtype)
    return None


def _deep(value: Any) -> Iterator[Any]:
    for item in value:
        if isinstance(item, (list, tuple)):
            yield from _deep(item)
        else:
            yield item


def of_list(value: Any) -> np.ndarray:
    """Lists of numbers are int32 or float32, as a number is."""
    array = np.asarray(value)
    if all(is_number(item) for item in _deep(value)):
        if array.dtype == np.int64 and (
                array.size == 0 or np.abs(array).max() < 2**31):
            return array.astype(np.int32)
        if array.dtype == np.float64:
            return array.astype(np.float32)
        if array.dtype == np.complex128:
            return array.astype(np.complex64)
    return array


def add_op(op: str, inputs: Sequence[SymbolicTensor], attrs: Optional[dict],
           name: Optional[str] = None,
           waits: Optional[List[Any]] = None) -> List[SymbolicTensor]:
    """Adds an op; returns its results. With batched inputs it is one for all
    elements of the batch."""
    frame = require_frame()
    if any(x._is_batched for x in inputs):
        from ._batch_rules import apply
        return apply(op, inputs, attrs or {})
    outputs = frame.op(op, [x._out for x in inputs], attrs, name, waits)
    if outputs[0].is_operation:
        return []
    return [SymbolicTensor(out, frame) for out in outputs]


def emit(op: str, inputs: Sequence[SymbolicTensor], *, name: Any = None,
         **attrs: Any) -> SymbolicTensor:
    """Adds an op with one result."""
    return add_op(op, inputs, attrs, name)[0]


def emit_all(op: str, inputs: Sequence[SymbolicTensor], *, name: Any = None,
             **attrs: Any) -> List[SymbolicTensor]:
    """Adds an op with several results."""
    return add_op(op, inputs, attrs, name)
