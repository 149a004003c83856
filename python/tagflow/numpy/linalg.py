"""Linear algebra: functions of the last two axes."""

from __future__ import annotations

import builtins
from typing import Optional, Tuple

import numpy as np

from .._lift import lifted
from ..symbolic import SymbolicTensor, Value, as_tensor, emit, emit_all
from ._types import inexact, pair
from .products import matmul
from .reductions import norm
from .shapes import expand_dims, squeeze, swapaxes

__all__ = ["cholesky", "det", "eigh", "eigvalsh", "inv", "lstsq",
           "matrix_power", "matrix_rank", "norm", "pinv", "qr", "slogdet",
           "solve", "svd", "triangular_solve"]


def _matrices(x: Value) -> SymbolicTensor:
    return inexact(x)


@lifted
def inv(x: Value) -> SymbolicTensor:
    """The inverse."""
    return emit("MatrixInverse", [_matrices(x)])


@lifted
def det(x: Value) -> SymbolicTensor:
    """The determinant."""
    return emit("MatrixDeterminant", [_matrices(x)])


@lifted
def slogdet(x: Value) -> Tuple[SymbolicTensor, SymbolicTensor]:
    """The sign of the determinant, and the logarithm of its absolute value."""
    sign, log = emit_all("LogMatrixDeterminant", [_matrices(x)])
    return sign, log


@lifted
def cholesky(x: Value) -> SymbolicTensor:
    """The lower triangle whose product with its transpose is x."""
    return emit("Cholesky", [_matrices(x)])


@lifted
def solve(a: Value, b: Value) -> SymbolicTensor:
    """The x for which a @ x is b, a vector or a matrix."""
    x, y = (inexact(v) for v in pair(a, b))
    if len(y.shape or ()) == 1:
        return squeeze(emit("MatrixSolve", [x, expand_dims(y, 1)]), 1)
    return emit("MatrixSolve", [x, y])


@lifted
def triangular_solve(a: Value, b: Value, *, lower: bool = True
                     ) -> SymbolicTensor:
    """solve() for a triangular matrix."""
    x, y = (inexact(v) for v in pair(a, b))
    if len(y.shape or ()) == 1:
        return squeeze(emit("MatrixTriangularSolve", [x, expand_dims(y, 1)],
                            lower=lower), 1)
    return emit("MatrixTriangularSolve", [x, y], lower=lower)


@lifted
def qr(x: Value) -> Tuple[SymbolicTensor, SymbolicTensor]:
    """Q and R."""
    q, r = emit_all("Qr", [_matrices(x)])
    return q, r


@lifted
def svd(x: Value, full_matrices: bool = False
        ) -> Tuple[SymbolicTensor, SymbolicTensor, SymbolicTensor]:
    """U, the singular values, and the transpose of V."""
    from .elementwise import conj
    s, u, v = emit_all("Svd", [_matrices(x)], full_matrices=full_matrices)
    return u, s, conj(swapaxes(v, -1, -2))


@lifted
def eigh(x: Value) -> Tuple[SymbolicTensor, SymbolicTensor]:
    """The eigenvalues of a symmetric matrix, increasing, and the vectors."""
    values, vectors = emit_all("SelfAdjointEigV2", [_matrices(x)])
    return values, vectors


@lifted
def eigvalsh(x: Value) -> SymbolicTensor:
    """The eigenvalues of a symmetric matrix, increasing."""
    return eigh(x)[0]


@lifted
def matrix_power(x: Value, n: int) -> SymbolicTensor:
    """x to the power of n."""
    x = as_tensor(x)
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        from .creation import eye
        size = (x.shape or (0,))[-1]
        if size is None:
            raise ValueError("matrix_power: the size must be known")
        return eye(size, dtype=x.dtype) + emit("ZerosLike", [x])
    result = None
    while n:
        if n % 2:
            result = x if result is None else matmul(result, x)
        n //= 2
        if n:
            x = matmul(x, x)
    assert result is not None
    return result


@lifted
def pinv(x: Value, rcond: float = 1e-15) -> SymbolicTensor:
    """The pseudo-inverse, without the singular values that are less than
    `rcond` times the greatest one."""
    from .elementwise import conj
    from .reductions import max
    from .selection import where
    u, s, v = svd(_matrices(x), full_matrices=False)
    least = rcond * max(s, -1, keepdims=True)
    inverse = where(s > least, 1.0 / where(s > least, s, 1.0), 0.0)
    return matmul(conj(swapaxes(v, -1, -2)) * expand_dims(inverse, -2),
                  conj(swapaxes(u, -1, -2)))


@lifted
def matrix_rank(x: Value, rtol: Optional[float] = None) -> SymbolicTensor:
    """How many singular values are more than `rtol` times the greatest one."""
    from .reductions import max, sum
    matrix = _matrices(x)
    s = svd(matrix, full_matrices=False)[1]
    if rtol is None:
        rtol = float(np.finfo(s.dtype).eps) * builtins.max(
            (matrix.shape or (1,))[-2:])
    return sum(s > rtol * max(s, -1, keepdims=True), -1)


@lifted
def lstsq(a: Value, b: Value) -> SymbolicTensor:
    """The x for which the squares of a @ x - b have the least sum, and of these
    the one with the least norm."""
    x, y = (inexact(v) for v in pair(a, b))
    return matmul(pinv(x, float(np.finfo(x.dtype).eps) * builtins.max(
        x.shape or (1,))), y)
