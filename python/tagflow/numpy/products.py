"""Products of vectors, matrices and higher arrays."""

from __future__ import annotations

import string
from typing import Any, List, Sequence, Tuple, Union

import numpy as np

from .._lift import lifted
from ..symbolic import SymbolicTensor, Value, as_tensor, emit
from ._types import is_bool, cast, pair
from .reductions import sum as _sum
from .shapes import (_axis_of, _known_rank, expand_dims, reshape, shape,
                     squeeze, transpose)

__all__ = ["cross", "dot", "einsum", "inner", "kron", "matmul", "matvec",
           "outer", "tensordot", "vdot", "vecdot"]


def _rank(x: SymbolicTensor) -> int:
    return len(_known_rank(x, "a product").shape or ())


def _numbers(a: Value, b: Value) -> Tuple[SymbolicTensor, SymbolicTensor]:
    x, y = pair(a, b)
    if is_bool(x.dtype) or x.dtype.name in ("int8", "uint8", "int16",
                                            "uint16"):
        x, y = (cast(v, np.dtype(np.int32)) for v in (x, y))
    return x, y


@lifted
def matmul(a: Value, b: Value) -> SymbolicTensor:
    """The product of matrices; of stacks of them with broadcasting; a vector
    is a row on the left, and a column on the right."""
    x, y = _numbers(a, b)
    if _rank(x) == 0 or _rank(y) == 0:
        raise ValueError("matmul: a scalar; use * instead")
    row, column = _rank(x) == 1, _rank(y) == 1
    if row:
        x = expand_dims(x, 0)
    if column:
        y = expand_dims(y, 1)
    op = "MatMul" if _rank(x) == _rank(y) == 2 else "BatchMatMulV2"
    z = emit(op, [x, y])
    if row and column:
        return squeeze(z, (-1, -2))
    if row:
        return squeeze(z, -2)
    return squeeze(z, -1) if column else z


@lifted
def dot(a: Value, b: Value) -> SymbolicTensor:
    """As NumPy's: over the last axis of a and the last but one of b."""
    x, y = _numbers(a, b)
    if _rank(x) == 0 or _rank(y) == 0:
        return x * y
    if _rank(y) <= 2:
        return tensordot(x, y, ([_rank(x) - 1], [0]))
    return tensordot(x, y, ([_rank(x) - 1], [_rank(y) - 2]))


@lifted
def inner(a: Value, b: Value) -> SymbolicTensor:
    """Over the last axes of both."""
    x, y = _numbers(a, b)
    if _rank(x) == 0 or _rank(y) == 0:
        return x * y
    return tensordot(x, y, ([_rank(x) - 1], [_rank(y) - 1]))


@lifted
def vdot(a: Value, b: Value) -> SymbolicTensor:
    """Over all elements, with the conjugates of those of a."""
    from .elementwise import conj
    x, y = _numbers(a, b)
    return _sum(reshape(conj(x), (-1,)) * reshape(y, (-1,)))


@lifted
def vecdot(a: Value, b: Value, axis: int = -1) -> SymbolicTensor:
    """Over one axis, element by element of the others, with the conjugates of
    those of a."""
    from .elementwise import conj
    x, y = _numbers(a, b)
    return _sum(conj(x) * y, axis)


@lifted
def matvec(a: Value, b: Value) -> SymbolicTensor:
    """A matrix times a vector."""
    return matmul(a, b)


@lifted
def outer(a: Value, b: Value) -> SymbolicTensor:
    """All products of an element of a with one of b."""
    return reshape(a, (-1, 1)) * reshape(b, (1, -1))


@lifted
def kron(a: Value, b: Value) -> SymbolicTensor:
    """The Kronecker product of two matrices."""
    x, y = _numbers(a, b)
    (m, n), (p, q) = shape(x), shape(y)
    grid = reshape(x, (m, 1, n, 1)) * reshape(y, (1, p, 1, q))
    return reshape(grid, (m * p, n * q))


@lifted
def cross(a: Value, b: Value) -> SymbolicTensor:
    """The cross product of vectors of three, in the last axis."""
    return emit("Cross", list(pair(a, b)))


@lifted
def tensordot(a: Value, b: Value,
              axes: Union[int, Sequence[Any]] = 2) -> SymbolicTensor:
    """Summed over these axes of a and of b; an int: the last ones of a with
    the first ones of b."""
    x, y = _numbers(a, b)
    rank_x, rank_y = _rank(x), _rank(y)
    if isinstance(axes, int):
        of_x = list(range(rank_x - axes, rank_x))
        of_y = list(range(axes))
    else:
        of_x, of_y = ([side] if isinstance(side, int) else list(side)
                      for side in axes)
    of_x = [_axis_of(x, i) for i in of_x]
    of_y = [_axis_of(y, i) for i in of_y]
    free_x = [i for i in range(rank_x) if i not in of_x]
    free_y = [i for i in range(rank_y) if i not in of_y]
    dims_x, dims_y = shape(x), shape(y)
    inner_size: Any = 1
    for i in of_x:
        inner_size = inner_size * dims_x[i]
    left = reshape(transpose(x, free_x + of_x), (-1, inner_size))
    right = reshape(transpose(y, of_y + free_y), (inner_size, -1))
    return reshape(emit("MatMul", [left, right]),
                   [*(dims_x[i] for i in free_x), *(dims_y[i] for i in free_y)])


# --- Einstein sums -----------------------------------------------------------

def _parse(subscripts: str, ranks: Sequence[int]) -> Tuple[List[str], str]:
    """The labels of the operands and of the result, without spaces. An
    ellipsis stays one."""
    text = subscripts.replace(" ", "")
    left, arrow, result = text.partition("->")
    labels = left.split(",")
    if len(labels) != len(ranks):
        raise ValueError(f"einsum: {subscripts!r} has {len(labels)} operands, "
                         f"but {len(ranks)} are given")
    if not arrow:
        flat = left.replace(",", "").replace("...", "")
        once = sorted(c for c in set(flat) if flat.count(c) == 1)
        result = ("..." if "..." in left else "") + "".join(once)
    return labels, result


def _without_ellipsis(labels: List[str], result: str,
                      ranks: Sequence[int]) -> Tuple[List[str], str]:
    """Ellipses written out. All must stand for as many axes."""
    if not any("..." in label for label in labels):
        return labels, result
    counts = {rank - len(label.replace("...", ""))
              for label, rank in zip(labels, ranks) if "..." in label}
    if len(counts) != 1 or min(counts) < 0:
        raise ValueError("einsum: the ellipses stand for different numbers of "
                         "axes")
    used = set("".join(labels))
    free = [c for c in string.ascii_letters if c not in used]
    text = "".join(free[:counts.pop()])
    return ([label.replace("...", text) for label in labels],
            result.replace("...", text))


@lifted
def einsum(subscripts: str, *operands: Value) -> SymbolicTensor:
    """An Einstein sum, such as "ij,jk->ik". More than two operands are
    contracted from the left."""
    tensors = [as_tensor(operand) for operand in operands]
    ranks = [_rank(x) for x in tensors]
    labels, result = _without_ellipsis(*_parse(subscripts, ranks), ranks)
    while len(tensors) > 2:
        kept = set(result).union(*labels[2:])
        both = [c for c in dict.fromkeys(labels[0] + labels[1]) if c in kept]
        label = "".join(both)
        tensors[:2] = [_einsum(f"{labels[0]},{labels[1]}->{label}",
                               tensors[:2])]
        labels[:2] = [label]
    return _einsum(f"{','.join(labels)}->{result}", tensors)


def _einsum(equation: str, tensors: List[SymbolicTensor]) -> SymbolicTensor:
    if len(tensors) == 2:
        tensors = list(_numbers(*tensors))
    return emit("Einsum", tensors, equation=equation)
