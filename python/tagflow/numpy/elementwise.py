"""Functions of each element."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from .._lift import lifted
from ..symbolic import SymbolicTensor, Value, as_tensor, emit
from ._types import (cast, inexact, is_bool, is_complex, is_float, is_int,
                     pair, to_dtype)

__all__ = [
    "abs", "absolute", "add", "angle", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "astype", "bitwise_and",
    "bitwise_or", "bitwise_xor", "cbrt", "ceil", "clip", "conj", "conjugate",
    "cos", "cosh", "deg2rad", "digamma", "divide", "equal", "erf", "erfc",
    "exp", "exp2", "expm1", "fabs", "floor", "floor_divide", "fmod",
    "greater", "greater_equal", "hypot", "imag", "invert", "isclose",
    "isfinite", "isinf", "isnan", "left_shift", "less", "less_equal",
    "lgamma", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod",
    "multiply", "nan_to_num", "negative", "not_equal", "positive", "power",
    "rad2deg", "real", "reciprocal", "remainder", "right_shift", "rint",
    "round", "rsqrt", "sign", "sin", "sinc", "sinh", "sqrt", "square",
    "subtract", "tan", "tanh", "true_divide", "trunc",
]


def _named(function: Any, name: str, text: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return lifted(function)


def _unary(name: str, op: str) -> Any:
    def function(x: Value) -> SymbolicTensor:
        return emit(op, [inexact(x)])
    return _named(function, name, f"The op {op} of each element; integers "
                  "become floating-point numbers.")


def _binary(name: str, op: str) -> Any:
    def function(x: Value, y: Value) -> SymbolicTensor:
        a, b = pair(x, y)
        if is_bool(a.dtype):
            if op in ("AddV2", "Maximum"):
                return emit("LogicalOr", [a, b])
            if op in ("Mul", "Minimum"):
                return emit("LogicalAnd", [a, b])
            raise TypeError("booleans cannot be subtracted; use x ^ y")
        return emit(op, [a, b])
    return _named(function, name, f"The op {op} of pairs of elements, with "
                  "broadcasting.")


def _comparison(name: str, op: str) -> Any:
    def function(x: Value, y: Value) -> SymbolicTensor:
        a, b = pair(x, y)
        if is_bool(a.dtype):
            a, b = (cast(v, np.dtype(np.uint8)) for v in (a, b))
        return emit(op, [a, b])
    return _named(function, name, f"The op {op} of pairs of elements, with "
                  "broadcasting.")


exp = _unary("exp", "Exp")
expm1 = _unary("expm1", "Expm1")
log = _unary("log", "Log")
log1p = _unary("log1p", "Log1p")
sqrt = _unary("sqrt", "Sqrt")
rsqrt = _unary("rsqrt", "Rsqrt")
sin = _unary("sin", "Sin")
cos = _unary("cos", "Cos")
tan = _unary("tan", "Tan")
arcsin = _unary("arcsin", "Asin")
arccos = _unary("arccos", "Acos")
arctan = _unary("arctan", "Atan")
sinh = _unary("sinh", "Sinh")
cosh = _unary("cosh", "Cosh")
tanh = _unary("tanh", "Tanh")
arcsinh = _unary("arcsinh", "Asinh")
arccosh = _unary("arccosh", "Acosh")
arctanh = _unary("arctanh", "Atanh")
erf = _unary("erf", "Erf")
erfc = _unary("erfc", "Erfc")
lgamma = _unary("lgamma", "Lgamma")
digamma = _unary("digamma", "Digamma")

add = _binary("add", "AddV2")
subtract = _binary("subtract", "Sub")
multiply = _binary("multiply", "Mul")
maximum = _binary("maximum", "Maximum")
minimum = _binary("minimum", "Minimum")

less = _comparison("less", "Less")
less_equal = _comparison("less_equal", "LessEqual")
greater = _comparison("greater", "Greater")
greater_equal = _comparison("greater_equal", "GreaterEqual")


@lifted
def astype(x: Value, dtype: Any) -> SymbolicTensor:
    """The elements as another type; fractions are cut off."""
    return cast(as_tensor(x), to_dtype(dtype))


@lifted
def equal(x: Value, y: Value) -> SymbolicTensor:
    """Whether elements are equal, with broadcasting."""
    return emit("Equal", list(_comparable(x, y)))


@lifted
def not_equal(x: Value, y: Value) -> SymbolicTensor:
    """Whether elements differ, with broadcasting."""
    return emit("NotEqual", list(_comparable(x, y)))


def _comparable(x: Value, y: Value) -> Any:
    texts = [isinstance(v, (str, bytes)) or "S" in str(
        getattr(getattr(v, "dtype", ""), "kind", "")) for v in (x, y)]
    if builtins.any(texts):
        return as_tensor(x), as_tensor(y)
    a = as_tensor(x) if isinstance(x, SymbolicTensor) else x
    if isinstance(a, SymbolicTensor) and not hasattr(a.dtype, "kind"):
        return a, as_tensor(y)
    return pair(x, y)


@lifted
def divide(x: Value, y: Value) -> SymbolicTensor:
    """x / y in floating point: integers of 64 bits become float64, others
    float32."""
    a, b = pair(x, y)
    return emit("RealDiv", [inexact(a), inexact(b)])


true_divide = divide


@lifted
def floor_divide(x: Value, y: Value) -> SymbolicTensor:
    """x / y, rounded down."""
    return emit("FloorDiv", list(pair(x, y)))


@lifted
def mod(x: Value, y: Value) -> SymbolicTensor:
    """The rest of floor_divide(), which has the sign of y."""
    return emit("FloorMod", list(pair(x, y)))


remainder = mod


@lifted
def fmod(x: Value, y: Value) -> SymbolicTensor:
    """The rest of a division that cuts off, which has the sign of x."""
    a, b = pair(x, y)
    rest = emit("FloorMod", [abs(a), abs(b)])
    return where_negative(a, rest)


def where_negative(a: SymbolicTensor, rest: SymbolicTensor) -> SymbolicTensor:
    """-rest where a is negative, else rest."""
    is_negative = emit("Less", [a, emit("ZerosLike", [a])])
    return emit("SelectV2", [is_negative, emit("Neg", [rest]), rest])


@lifted
def power(x: Value, y: Value) -> SymbolicTensor:
    """x to the power of y. The power 2 is a square."""
    if type(y) in (int, float) and y == 2:
        return square(x)
    return emit("Pow", list(pair(x, y)))


@lifted
def square(x: Value) -> SymbolicTensor:
    """x * x."""
    x = as_tensor(x)
    if is_int(x.dtype) and x.dtype not in (np.int32, np.int64):
        return emit("Mul", [x, x])
    return emit("Square", [x])


@lifted
def negative(x: Value) -> SymbolicTensor:
    """-x."""
    x = as_tensor(x)
    if getattr(x.dtype, "kind", "") == "u":
        return emit("Sub", [emit("ZerosLike", [x]), x])
    y = emit("Neg", [x])
    y._weak = x._weak
    return y


@lifted
def positive(x: Value) -> SymbolicTensor:
    """x itself."""
    return as_tensor(x)


@lifted
def abs(x: Value) -> SymbolicTensor:
    """The absolute value."""
    x = as_tensor(x)
    if is_complex(x.dtype):
        wide = x.dtype.itemsize == 16
        return emit("ComplexAbs", [x],
                    Tout=np.float64 if wide else np.float32)
    if is_bool(x.dtype) or x.dtype.kind == "u":
        return x
    return emit("Abs", [x])


absolute = fabs = abs


def _rounding(name: str, op: str) -> Any:
    def function(x: Value) -> SymbolicTensor:
        x = as_tensor(x)
        return x if is_int(x.dtype) or is_bool(x.dtype) else emit(op, [x])
    return _named(function, name, f"The op {op}; integers stay as they are.")


floor = _rounding("floor", "Floor")
ceil = _rounding("ceil", "Ceil")
rint = _rounding("rint", "Rint")


@lifted
def round(x: Value, decimals: int = 0) -> SymbolicTensor:
    """Rounds to even numbers of that many decimals."""
    x = as_tensor(x)
    if decimals == 0:
        return rint(x)
    factor = 10.0 ** decimals
    return rint(x * factor) / factor


@lifted
def trunc(x: Value) -> SymbolicTensor:
    """Without the fraction."""
    x = as_tensor(x)
    if is_int(x.dtype):
        return x
    return where_negative(x, emit("Floor", [emit("Abs", [x])]))


@lifted
def sign(x: Value) -> SymbolicTensor:
    """-1, 0 or 1."""
    x = as_tensor(x)
    if x.dtype.kind == "u" or x.dtype in (np.int8, np.int16):
        return cast(emit("Sign", [cast(x, np.dtype(np.int32))]), x.dtype)
    return emit("Sign", [x])


@lifted
def reciprocal(x: Value) -> SymbolicTensor:
    """1 / x."""
    return emit("Reciprocal", [inexact(x)])


def _test(name: str, op: str, of_integers: bool) -> Any:
    def function(x: Value) -> SymbolicTensor:
        x = as_tensor(x)
        if is_float(x.dtype):
            return emit(op, [x])
        zeros = emit("ZerosLike", [cast(x, np.dtype(np.float32))])
        return emit("Equal" if of_integers else "NotEqual", [zeros, zeros])
    return _named(function, name, f"The op {op} of each element.")


isnan = _test("isnan", "IsNan", False)
isinf = _test("isinf", "IsInf", False)
isfinite = _test("isfinite", "IsFinite", True)


@lifted
def isclose(x: Value, y: Value, rtol: float = 1e-5,
            atol: float = 1e-8) -> SymbolicTensor:
    """Whether |x - y| <= atol + rtol |y|."""
    a, b = pair(x, y)
    a, b = inexact(a), inexact(b)
    near = abs(a - b) <= abs(b) * rtol + atol
    return (near & isfinite(b)) | equal(a, b)


@lifted
def nan_to_num(x: Value, nan: float = 0.0) -> SymbolicTensor:
    """With a number instead of NaN, and the largest finite numbers instead of
    infinities."""
    x = as_tensor(x)
    if not is_float(x.dtype):
        return x
    import ml_dtypes  # has bfloat16, too
    limit = float(ml_dtypes.finfo(x.dtype).max)
    x = emit("SelectV2", [isnan(x), as_tensor(nan, x.dtype), x])
    return clip(x, -limit, limit)


# --- Logic -------------------------------------------------------------------

def _truth(x: Value) -> SymbolicTensor:
    x = as_tensor(x)
    return x if is_bool(x.dtype) else cast(x, np.dtype(np.bool_))


@lifted
def logical_and(x: Value, y: Value) -> SymbolicTensor:
    """Whether both are true, or not 0."""
    return emit("LogicalAnd", [_truth(x), _truth(y)])


@lifted
def logical_or(x: Value, y: Value) -> SymbolicTensor:
    """Whether one of them is true, or not 0."""
    return emit("LogicalOr", [_truth(x), _truth(y)])


@lifted
def logical_xor(x: Value, y: Value) -> SymbolicTensor:
    """Whether exactly one of them is true, or not 0."""
    return emit("NotEqual", [_truth(x), _truth(y)])


@lifted
def logical_not(x: Value) -> SymbolicTensor:
    """Whether it is false, or 0."""
    return emit("LogicalNot", [_truth(x)])


def _bitwise(name: str, of_bools: str, of_integers: str) -> Any:
    def function(x: Value, y: Value) -> SymbolicTensor:
        a, b = pair(x, y)
        return emit(of_bools if is_bool(a.dtype) else of_integers, [a, b])
    return _named(function, name, f"The op {of_integers} of integers, or "
                  f"{of_bools} of booleans.")


bitwise_and = _bitwise("bitwise_and", "LogicalAnd", "BitwiseAnd")
bitwise_or = _bitwise("bitwise_or", "LogicalOr", "BitwiseOr")
bitwise_xor = _bitwise("bitwise_xor", "NotEqual", "BitwiseXor")


@lifted
def invert(x: Value) -> SymbolicTensor:
    """All bits inverted; of booleans, their negation."""
    x = as_tensor(x)
    return emit("LogicalNot" if is_bool(x.dtype) else "Invert", [x])


@lifted
def left_shift(x: Value, y: Value) -> SymbolicTensor:
    """x shifted by y bits to the left."""
    return emit("LeftShift", list(pair(x, y)))


@lifted
def right_shift(x: Value, y: Value) -> SymbolicTensor:
    """x shifted by y bits to the right."""
    return emit("RightShift", list(pair(x, y)))


# --- Compositions ------------------------------------------------------------

@lifted
def clip(x: Value, min: Value = None, max: Value = None) -> SymbolicTensor:
    """Not less than `min`, and not more than `max`."""
    x = as_tensor(x)
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


@lifted
def arctan2(y: Value, x: Value) -> SymbolicTensor:
    """The angle of the point (x, y)."""
    a, b = pair(y, x)
    return emit("Atan2", [inexact(a), inexact(b)])


@lifted
def hypot(x: Value, y: Value) -> SymbolicTensor:
    """sqrt(x^2 + y^2), which does not overflow."""
    a, b = (abs(inexact(v)) for v in pair(x, y))
    large, small = maximum(a, b), minimum(a, b)
    ratio = emit("DivNoNan", [small, large])
    return large * sqrt(ratio * ratio + 1)


@lifted
def logaddexp(x: Value, y: Value) -> SymbolicTensor:
    """log(exp(x) + exp(y)), which does not overflow."""
    a, b = (inexact(v) for v in pair(x, y))
    return maximum(a, b) + log1p(exp(-abs(a - b)))


@lifted
def exp2(x: Value) -> SymbolicTensor:
    """2 to the power of x."""
    return exp(inexact(x) * 0.6931471805599453)


@lifted
def log2(x: Value) -> SymbolicTensor:
    """The logarithm by the base of 2."""
    return log(inexact(x)) * 1.4426950408889634


@lifted
def log10(x: Value) -> SymbolicTensor:
    """The logarithm by the base of 10."""
    return log(inexact(x)) * 0.4342944819032518


@lifted
def cbrt(x: Value) -> SymbolicTensor:
    """The cubic root."""
    x = inexact(x)
    return sign(x) * power(abs(x), 1.0 / 3.0)


@lifted
def deg2rad(x: Value) -> SymbolicTensor:
    """Degrees as radians."""
    return inexact(x) * 0.017453292519943295


@lifted
def rad2deg(x: Value) -> SymbolicTensor:
    """Radians as degrees."""
    return inexact(x) * 57.29577951308232


@lifted
def sinc(x: Value) -> SymbolicTensor:
    """sin(pi x) / (pi x); 1 at 0."""
    x = inexact(x) * 3.141592653589793
    ones = emit("OnesLike", [x])
    is_zero = equal(x, 0)
    safe = emit("SelectV2", [is_zero, ones, x])
    return emit("SelectV2", [is_zero, ones, sin(safe) / safe])


# --- Complex numbers ---------------------------------------------------------

def _part(x: SymbolicTensor, op: str) -> SymbolicTensor:
    wide = x.dtype.itemsize == 16
    return emit(op, [x], Tout=np.float64 if wide else np.float32)


@lifted
def real(x: Value) -> SymbolicTensor:
    """The real part."""
    x = as_tensor(x)
    return _part(x, "Real") if is_complex(x.dtype) else x


@lifted
def imag(x: Value) -> SymbolicTensor:
    """The imaginary part."""
    x = as_tensor(x)
    if is_complex(x.dtype):
        return _part(x, "Imag")
    return emit("ZerosLike", [x])


@lifted
def angle(x: Value) -> SymbolicTensor:
    """The argument of a complex number."""
    x = as_tensor(x)
    if is_complex(x.dtype):
        return _part(x, "Angle")
    return arctan2(emit("ZerosLike", [inexact(x)]), inexact(x))


@lifted
def conj(x: Value) -> SymbolicTensor:
    """The complex conjugate."""
    x = as_tensor(x)
    return emit("Conj", [x]) if is_complex(x.dtype) else x


conjugate = conj
