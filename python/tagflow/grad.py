"""Derivatives of functions.

Each function here takes a function of arrays and returns another one, as in
JAX. They can be applied to each other, to any order, and to functions with
conditionals, loops and recursion in them. In a traced function their results
become part of its graph; elsewhere they are traced like tagflow.function.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from . import tree
from ._batching import Level, full, plain, rewrapped
from ._pullback import in_two_parts
from ._trace import current, here
from .function import Function, array_of, spec_of
from .symbolic import (SymbolicTensor, as_tensor, emit, is_number,
                       require_frame)

__all__ = ["custom_gradient", "grad", "gradients", "hessian", "hvp",
           "jacobian", "jvp", "stop_gradient", "value_and_grad", "vjp"]

Fn = Callable[..., Any]
Argnums = Union[int, Sequence[int]]


def _name(fn: Fn) -> str:
    return getattr(fn, "__name__", "function")


def _traced(what: str, fn: Fn, make: Fn) -> Fn:
    """`make` as a function that is traced if it is called outside of a
    trace."""
    make.__name__ = f"{what}_{_name(fn)}"
    make.__doc__ = f"{what} of {_name(fn)}."
    function = Function(make)

    @functools.wraps(make)
    def either(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return function(*args, **kwargs)
        return make(*args, **kwargs)

    either.function = function  # type: ignore[attr-defined]
    return either


def _is_differentiable(x: SymbolicTensor) -> bool:
    from .numpy._types import is_complex, is_float
    return is_float(x.dtype) or is_complex(x.dtype)


def _independent(what: str, value: Any) -> Tuple[List[SymbolicTensor], Any]:
    """Copies of the leaves, by which alone derivatives are taken, and the
    value with them."""
    leaves, structure = tree.flatten(value)
    copies = []
    for leaf, path in zip(leaves, tree.paths(structure)):
        x = as_tensor(leaf)
        if not _is_differentiable(x):
            raise TypeError(
                f"{here()}: [{what}] {path or 'the argument'} is {x.dtype}, "
                "which has no derivative; give floating-point numbers, or "
                "leave it out of argnums")
        # In a vmap() each element has its own derivatives.
        copies.append(emit("Identity", [full(x, require_frame().levels)]))
    return copies, tree.unflatten(structure, copies)


def _with_copies(what: str, args: Sequence[Any], argnums: Argnums
                 ) -> Tuple[List[SymbolicTensor], List[Any], List[Any]]:
    """The copies, the arguments with them, and the chosen arguments."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    args = list(args)
    copies: List[SymbolicTensor] = []
    chosen = []
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise TypeError(f"{here()}: [{what}] argnums has {n}, but there "
                            f"are {len(args)} positional arguments")
        made, args[n] = _independent(what, args[n])
        copies += made
        chosen.append(args[n])
    return copies, args, chosen


def _gradients(ys: Sequence[SymbolicTensor], xs: Sequence[Any],
               seeds: Sequence[Optional[SymbolicTensor]]
               ) -> List[SymbolicTensor]:
    """The gradients of the sum of the ys, each times its seed, by tensors and
    by native outputs."""
    return _gradients_at(require_frame().levels, list(ys), list(xs),
                         list(seeds))


def _gradients_at(levels: Sequence[Level], ys: List[Any], xs: List[Any],
                  seeds: List[Any]) -> List[SymbolicTensor]:
    """_gradients(), of which these levels of batches are left. The gradient of
    the sum over a batch is, by what is batched, that of each element."""
    if not levels:
        frame = require_frame()
        with frame.noted():
            made = frame.scope.gradients(
                [y._out for y in ys],
                [x._out if isinstance(x, SymbolicTensor) else x for x in xs],
                [None if seed is None else seed._out for seed in seeds])
        return [SymbolicTensor(out, frame) for out in made]
    level, rest = levels[-1], levels[:-1]
    inner_ys = [level.unwrap(y) for y in ys]
    inner_seeds = [None if seed is None else level.unwrap(seed)
                   for seed in seeds]
    flags = [isinstance(x, SymbolicTensor) and level.has(x) for x in xs]
    found = iter(_gradients_at(
        rest, inner_ys, [x._inner for x, flag in zip(xs, flags) if flag],
        inner_seeds) if any(flags) else [])
    shared = iter(_by_element(
        level, rest, inner_ys, [x for x, flag in zip(xs, flags) if not flag],
        inner_seeds) if not all(flags) else [])
    return [level.wrap(next(found if flag else shared)) for flag in flags]


def _by_element(level: Level, rest: Sequence[Level], ys: List[Any],
                xs: List[Any], seeds: List[Any]) -> List[SymbolicTensor]:
    """The gradients of each element of a batch by what all of them share: a
    loop, of which each iteration has seeds for one element only."""
    from . import numpy as tnp
    from .control_flow import map_each

    def one(elements: Sequence[SymbolicTensor]) -> List[SymbolicTensor]:
        chosen = []
        for y, seed in zip(ys, seeds):
            whole = emit("OnesLike", [as_tensor(y)]) if seed is None else (
                as_tensor(seed))
            row = tnp.reshape(
                tnp.arange(level.length) == elements[0],
                [-1] + [1] * (tnp.ndim(whole) - 1))
            chosen.append(tnp.where(row, whole, emit("ZerosLike", [whole])))
        return _gradients_at(rest, ys, xs, chosen)

    return map_each(tuple(rest), one, [tnp.arange(level.length)], [], 10)


def value_and_grad(fn: Fn, argnums: Argnums = 0,
                   has_aux: bool = False) -> Fn:
    """A function that returns `fn`'s result, a scalar, and its gradient by the
    argument of that number; for several numbers, a tuple of gradients. With
    `has_aux`, fn returns a pair, and the second part is handed on: the result
    is ((value, aux), gradient). The gradient by a complex number is that of
    TensorFlow, the conjugate of JAX's."""

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        copies, given, chosen = _with_copies("grad", args, argnums)
        result = fn(*given, **kwargs)
        aux = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError(f"{here()}: [grad] with has_aux, "
                                f"{_name(fn)} must return a pair")
            result, aux = result
        y = as_tensor(result)
        if y.shape is not None and y.shape != ():
            raise TypeError(
                f"{here()}: [grad] {_name(fn)} returns {y!r}, not a scalar; "
                "use tagflow.jacobian, or vjp")
        grads = iter(_gradients([y], copies, [None])
                     if _is_differentiable(y) else _not_real(fn, y))
        found = [tree.map(lambda leaf: next(grads), value) for value in chosen]
        gradient = found[0] if isinstance(argnums, int) else tuple(found)
        return ((y, aux) if has_aux else y), gradient

    return _traced("value_and_grad", fn, value_and_gradient)


def _not_real(fn: Fn, y: SymbolicTensor) -> Any:
    raise TypeError(f"{here()}: [grad] {_name(fn)} returns {y!r}, which has no "
                    "derivative")


def grad(fn: Fn, argnums: Argnums = 0, has_aux: bool = False) -> Fn:
    """A function that returns the gradient of `fn`; with `has_aux`, a pair of
    the gradient and fn's second result. See value_and_grad()."""
    both = value_and_grad(fn, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return _traced("grad", fn, gradient)


def jvp(fn: Fn, primals: Sequence[Any], tangents: Sequence[Any]
        ) -> Tuple[Any, Any]:
    """fn(*primals), and its derivative along the tangents, which have the
    structure of the primals: forward mode."""

    def along(primals: Any, tangents: Any) -> Tuple[Any, Any]:
        copies, args = _independent("jvp", tuple(primals))
        directions, structure = tree.flatten(tuple(tangents))
        if structure != tree.flatten(tuple(primals))[1]:
            raise TypeError(f"{here()}: [jvp] the tangents have another "
                            "structure than the primals")
        result = fn(*args)
        leaves, its = tree.flatten(result)
        ys = [as_tensor(leaf) for leaf in leaves]
        real = [y for y in ys if _is_differentiable(y)]
        from .numpy._types import cast
        vectors = [cast(as_tensor(v, x.dtype), x.dtype)
                   for v, x in zip(directions, copies)]
        frame = require_frame()
        levels = frame.levels
        with frame.noted():
            made = frame.scope.jvp(*([plain(full(t, levels))._out for t in of]
                                     for of in (real, copies, vectors)))
        found = iter(rewrapped(SymbolicTensor(out, frame), levels)
                     for out in made)
        return tree.unflatten(its, ys), tree.unflatten(its, [
            next(found) if _is_differentiable(y)
            else emit("ZerosLike", [y]) for y in ys])

    return _traced("jvp", fn, along)(tuple(primals), tuple(tangents))


def vjp(fn: Fn, *primals: Any) -> Tuple[Any, Fn]:
    """fn(*primals), and a function that takes a cotangent of the structure of
    this result, and returns a tuple of those of the primals: reverse mode.
    Outside of a trace the first run keeps what the second function needs, but
    for what is inside of branches and loops, which is computed again."""
    if current() is None:
        leaves, structure = tree.flatten(tuple(primals))
        arrays = [leaf if is_number(leaf) else array_of(leaf)
                  for leaf in leaves]
        return in_two_parts(vjp, fn, arrays, [spec_of(a) for a in arrays],
                            [is_number(a) for a in arrays], structure)

    copies, args = _independent("vjp", tuple(primals))
    leaves, structure = tree.flatten(fn(*args))
    ys = [as_tensor(leaf) for leaf in leaves]

    def pull(cotangent: Any) -> Tuple[Any, ...]:
        from .numpy._types import cast
        seeds, its = tree.flatten(cotangent)
        if its != structure:
            raise TypeError(f"{here()}: [vjp] the cotangent is {its}, but the "
                            f"result {structure}")
        pairs = [(y, cast(as_tensor(seed, y.dtype), y.dtype))
                 for y, seed in zip(ys, seeds) if _is_differentiable(y)]
        found = iter(_gradients([y for y, _ in pairs],
                                copies, [seed for _, seed in pairs]))
        return tree.map(lambda leaf: next(found), tuple(args))

    return tree.unflatten(structure, ys), pull


def jacobian(fn: Fn, argnums: Argnums = 0, *,
             parallel_iterations: int = 10) -> Fn:
    """A function that returns, for each array of fn's result, its derivatives
    by the argument of that number: of the shape of the result followed by that
    of the argument. If these are structures, it is a structure of the results
    of structures of the arguments. It is a loop over the elements of the
    result, in reverse mode."""

    def all_derivatives(*args: Any, **kwargs: Any) -> Any:
        copies, given, chosen = _with_copies("jacobian", args, argnums)
        leaves, structure = tree.flatten(fn(*given, **kwargs))

        def by_arguments(leaf: Any) -> Any:
            y = as_tensor(leaf)
            if not _is_differentiable(y):
                _not_real(fn, y)
            rows = iter(_jacobians(y, copies, parallel_iterations))
            found = [tree.map(lambda leaf: next(rows), value)
                     for value in chosen]
            return found[0] if isinstance(argnums, int) else tuple(found)

        return tree.unflatten(structure, [by_arguments(y) for y in leaves])

    return _traced("jacobian", fn, all_derivatives)


def _jacobians(y: SymbolicTensor, xs: Sequence[SymbolicTensor],
               parallel_iterations: int) -> List[SymbolicTensor]:
    from . import numpy as tnp
    from .control_flow import map_each
    frame = require_frame()
    levels = frame.levels
    if not levels:
        with frame.noted():
            return [SymbolicTensor(frame.scope.jacobian(
                y._out, x._out, parallel_iterations), frame) for x in xs]
    # The same loop, with seeds for all elements of the batches at once.
    whole = plain(full(y, levels))
    inner = [plain(x) for x in xs]
    dims = list(tnp.shape(y))
    count = tnp.size(y)

    def row(elements: Sequence[SymbolicTensor]) -> List[SymbolicTensor]:
        seed = tnp.reshape(tnp.arange(count) == elements[0], dims)
        return _gradients_at((), [whole], inner, [tnp.astype(
            tnp.broadcast_to(seed, tnp.shape(whole)), whole.dtype)])

    made = map_each((), row, [tnp.arange(count)], [], parallel_iterations)
    found = []
    for rows, x in zip(made, inner):
        rows = tnp.moveaxis(rows, 0, len(levels))
        sizes = list(tnp.shape(x))
        rows = tnp.reshape(rows, sizes[:len(levels)] + dims
                           + sizes[len(levels):])
        found.append(rewrapped(rows, levels))
    return found


def hessian(fn: Fn, argnums: Argnums = 0, *,
            parallel_iterations: int = 10) -> Fn:
    """A function that returns the second derivatives of `fn`, a scalar: the
    Jacobian of its gradient."""
    return jacobian(grad(fn, argnums), argnums,
                    parallel_iterations=parallel_iterations)


def hvp(fn: Fn, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of `fn` by its first argument, times a vector: forward over
    reverse mode, without the Hessian."""
    return jvp(grad(fn), primals, tangents)[1]


def stop_gradient(value: Any) -> Any:
    """The value, as a constant for derivatives."""
    from ._lift import run_now
    if current() is None:
        return run_now(stop_gradient, (value,), {})
    return tree.map(lambda leaf: emit("StopGradient", [as_tensor(leaf)]), value)


def gradients(ys: Any, xs: Any) -> Any:
    """The gradients of the sum of all `ys` by each of `xs`, which are tensors
    of a traced function, or Variables: for functions whose parameters are no
    arguments. Works in a traced function only."""
    frame = require_frame()
    leaves, structure = tree.flatten(xs)
    handles = [leaf._handle() if hasattr(leaf, "_handle")
               else as_tensor(leaf) for leaf in leaves]
    outs = [as_tensor(y) for y in tree.leaves(ys)]
    assert frame is current()
    return tree.unflatten(structure, _gradients(outs, handles,
                                                [None] * len(outs)))


def custom_gradient(fn: Fn, forward: Fn, backward: Fn) -> Fn:
    """`fn` with a gradient of its own. `forward(*args)` returns fn's result and
    what the gradient needs; `backward(rest, cotangent)` returns a tuple of the
    gradients by the arguments, of their structures. Arguments are
    floating-point arrays and structures of them."""

    def with_gradient(*args: Any) -> Any:
        frame = require_frame()
        arg_leaves, arg_structure = tree.flatten(args)
        xs = [as_tensor(leaf) for leaf in arg_leaves]
        made = forward(*args)
        if not isinstance(made, tuple) or len(made) != 2:
            raise TypeError(f"{here()}: [custom_gradient] the forward function "
                            "must return a pair of the result and the rest")
        leaves, structure = tree.flatten(made[0])
        rest_leaves, rest_structure = tree.flatten(made[1])
        levels = frame.levels
        xs, ys, rest = (
            [plain(full(as_tensor(leaf), levels)) for leaf in of]
            for of in (xs, leaves, rest_leaves))
        name = _define_backward(backward, xs, arg_structure, ys, structure,
                                rest, rest_structure)
        # See Note [Stored gradients] in graph/stored_gradient.h.
        outputs = frame.op(
            "IdentityN", [t._out for t in (*ys, *xs, *rest)], {
                "_stored_gradient": name,
                "_stored_outputs": len(ys) + len(xs),
                "_stored_inputs": list(range(len(ys), len(ys) + len(xs)))})
        return tree.unflatten(structure, [
            rewrapped(SymbolicTensor(out, frame), levels)
            for out in outputs[:len(ys)]])

    return _traced("custom_gradient", fn, with_gradient)


def _define_backward(backward: Fn, xs: Any, arg_structure: Any, ys: Any,
                     structure: Any, rest: Any, rest_structure: Any) -> str:
    """Adds the function of the gradient to the graph's library. The tensors
    have the batches of all levels in front."""
    frame = require_frame()
    levels = frame.levels
    args = [(t.dtype, t.shape) for t in (*ys, *xs, *rest)]
    name = frame.scope.free_function_name("gradient_of_custom")

    def body(scope: Any, values: List[Any]) -> List[Any]:
        from .numpy import size
        from .numpy._types import cast
        with frame.inner(scope, body=True, no_writes=(
                "the function of a gradient cannot assign")) as inner:
            given = [SymbolicTensor(out, inner) for out in values]
            inside = [Level(size(given[0], axis))
                      for axis in range(len(levels))]
            tensors = [rewrapped(x, inside) for x in given]
            inner.levels = tuple(inside)
            cotangent = tree.unflatten(structure, tensors[:len(ys)])
            kept = tree.unflatten(rest_structure,
                                  tensors[len(ys) + len(xs):])
            made = backward(kept, cotangent)
            grads, its = tree.flatten(made)
            if its != arg_structure:
                raise TypeError(
                    f"[custom_gradient] the backward function returns {its}; "
                    f"the arguments are {arg_structure}")
            return [plain(full(cast(as_tensor(g, x.dtype), x.dtype),
                               inside))._out for g, x in zip(grads, xs)]

    frame.scope.define(name, [f"arg_{i}" for i in range(len(args))], args,
                       [(x.dtype, x.shape) for x in xs], body)
    return name
