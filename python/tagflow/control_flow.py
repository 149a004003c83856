"""Conditionals and loops that depend on data.

They have the form of JAX's. All of them can be nested, and differentiated to
any order. What goes around a loop, or comes out of a branch, may be any
structure of arrays.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from . import tree
from ._lift import lifted
from ._trace import Frame, TracingError, here
from .symbolic import SymbolicTensor, Value, as_tensor, require_frame

__all__ = ["cond", "fori_loop", "map", "scan", "switch", "while_loop"]


def _tensors(frame: Frame, outputs: Sequence[Any]) -> List[SymbolicTensor]:
    return [SymbolicTensor(out, frame) for out in outputs]


def _plain(value: Value) -> Any:
    """The output of a tensor that a variable or a result becomes."""
    return as_tensor(value)._out


def _predicate(value: Value, what: str) -> SymbolicTensor:
    x = as_tensor(value)
    if x.dtype != np.bool_:
        raise TypeError(f"{here()}: {what} must be a bool, not {x!r}; compare "
                        "it with something")
    return x


class _Branch:
    """A branch of a conditional: called by the builder, with a scope."""

    def __init__(self, outer: Frame, fn: Callable[..., Any],
                 operands: Sequence[Any]) -> None:
        self.outer = outer
        self.fn = fn
        self.operands = operands
        self.frame: Optional[Frame] = None
        self.structure: Optional[tree.Structure] = None

    def __call__(self, scope: Any) -> List[Any]:
        with self.outer.inner(scope) as frame:
            self.frame = frame
            leaves, self.structure = tree.flatten(self.fn(*self.operands))
            outputs = [_plain(leaf) for leaf in leaves]
            # A conditional has at least one result.
            return frame.with_effects(outputs or [_plain(True)])


def _finish(frame: Frame, outputs: List[Any],
            branches: Sequence[_Branch]) -> Any:
    frame.absorb([b.frame for b in branches if b.frame is not None], outputs)
    structure = branches[0].structure
    assert structure is not None
    return tree.unflatten(
        structure, _tensors(frame, outputs[:structure.num_leaves]))


def _same_structures(what: str, branches: Sequence[_Branch]) -> None:
    known = [b.structure for b in branches if b.structure is not None]
    for structure in known[1:]:
        if structure != known[0]:
            raise TypeError(f"{here()}: [{what}] the branches return different "
                            f"structures: {known[0]} and {structure}")


@lifted
def cond(pred: Value, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
         *operands: Any) -> Any:
    """true_fn(*operands) if `pred` is true, else false_fn(*operands). Only one
    of them runs. Both must return the same structure, with the same types;
    shapes may differ."""
    frame = require_frame()
    test = _predicate(pred, "the predicate of cond")
    branches = [_Branch(frame, true_fn, operands),
                _Branch(frame, false_fn, operands)]

    def other(scope: Any) -> List[Any]:
        outputs = branches[1](scope)
        _same_structures("cond", branches)
        return outputs

    with frame.noted():
        scope = frame.scope.after(frame.all_waits())
        outputs = scope.cond(test._out, branches[0], other)
    return _finish(frame, outputs, branches)


@lifted
def switch(index: Value, branches: Sequence[Callable[..., Any]],
           *operands: Any) -> Any:
    """branches[index](*operands). An index out of range is clipped."""
    from .numpy import clip
    frame = require_frame()
    if not branches:
        raise ValueError("switch: there are no branches")
    at = clip(index, 0, len(branches) - 1)
    made = [_Branch(frame, fn, operands) for fn in branches]

    def checked(branch: _Branch) -> Callable[[Any], List[Any]]:
        def call(scope: Any) -> List[Any]:
            outputs = branch(scope)
            _same_structures("switch", made)
            return outputs
        return call

    with frame.noted():
        scope = frame.scope.after(frame.all_waits())
        outputs = scope.switch_case(at._out, [checked(b) for b in made])
    return _finish(frame, outputs, made)


def _named_paths(structure: tree.Structure) -> List[str]:
    """By variable, how errors call it."""
    return [path or "the variable" for path in tree.paths(structure)]


def _shapes(shapes: Any, structure: tree.Structure,
            initial: Sequence[SymbolicTensor]) -> Optional[List[Any]]:
    """The invariants: those given, or the shapes with which variables enter."""
    if shapes is None:
        return None
    found: List[Any] = []

    def walk(part: tree.Structure, given: Any) -> None:
        if part.is_leaf or given is None:
            found.extend([given] * part.num_leaves)
            return
        if isinstance(given, dict) and part.kind is dict:
            given = [given.get(key) for key in part.rest]
        elif not isinstance(given, (list, tuple)):
            given = [getattr(given, name) for name in part.rest]
        if len(given) != len(part.children):
            raise ValueError(
                f"while_loop: {len(given)} shapes for {len(part.children)} "
                "variables; a shape is a tuple, None keeps the one that a "
                "variable enters with")
        for child, shape in zip(part.children, given):
            walk(child, shape)

    walk(structure, shapes)
    return [x.shape if shape is None else
            (None if shape == "any" else tuple(shape))
            for x, shape in zip(initial, found)]


@lifted
def while_loop(cond_fn: Callable[[Any], Value], body_fn: Callable[[Any], Any],
               init: Any, *, shapes: Any = None, parallel_iterations: int = 10,
               maximum_iterations: Optional[Value] = None,
               save: str = "all") -> Any:
    """Repeats `value = body_fn(value)` while cond_fn(value) is true, from
    `init` on; returns the last value.

    The body keeps the structure, types and shapes. For what changes its shape
    give `shapes`: a structure like `init` of shapes, with None for what stays
    as it is, None in a shape for a dimension that changes, and "any" for any
    shape. Up to `parallel_iterations` iterations overlap. `save` says what
    gradients keep: "all" values, "log" of the iterations, or "every:K", and
    compute the others again.
    """
    frame = require_frame()
    leaves, structure = tree.flatten(init)
    if not leaves:
        raise ValueError("while_loop: there are no variables")
    initial = [as_tensor(leaf) for leaf in leaves]
    frames: List[Frame] = []

    def predicate(scope: Any, values: List[Any]) -> Any:
        with frame.inner(scope, entry=values, no_writes=(
                "the condition of a loop cannot assign")) as inner:
            frames.append(inner)
            value = tree.unflatten(structure, _tensors(inner, values))
            return _predicate(cond_fn(value),
                              "the condition of while_loop")._out

    def body(scope: Any, values: List[Any]) -> List[Any]:
        with frame.inner(scope, entry=values) as inner:
            frames.append(inner)
            value = tree.unflatten(structure, _tensors(inner, values))
            next_leaves, its = tree.flatten(body_fn(value))
            if its != structure:
                raise TypeError(f"{here()}: [while_loop] the body returns "
                                f"{its}, not {structure}")
            outputs = [as_tensor(leaf, x.dtype if _fits(leaf, x.dtype) else
                                 None)._out
                       for leaf, x in zip(next_leaves, initial)]
            return inner.with_effects(outputs)

    with frame.noted():
        scope = frame.scope.after(frame.all_waits())
        outputs = scope.while_loop(
            predicate, body, [x._out for x in initial],
            _named_paths(structure), _shapes(shapes, structure, initial),
            parallel_iterations,
            None if maximum_iterations is None else _plain(maximum_iterations),
            save)
    frame.absorb(frames, outputs)
    return tree.unflatten(structure, _tensors(frame, outputs))


def _fits(leaf: Any, dtype: Any) -> bool:
    """Whether a number of Python can take the type of a variable."""
    from .numpy._types import is_bool, is_float, is_int
    if type(leaf) is bool:
        return is_bool(dtype)
    if type(leaf) is int:
        return is_int(dtype) or is_float(dtype)
    return type(leaf) is float and is_float(dtype)


@lifted
def fori_loop(lower: Value, upper: Value, body_fn: Callable[[Any, Any], Any],
              init: Any, **options: Any) -> Any:
    """Repeats `value = body_fn(i, value)` for i from `lower` to `upper` - 1;
    both may be tensors. The options are those of while_loop()."""
    from .numpy._types import pair
    first, last = pair(lower, upper)
    first, last = (SymbolicTensor(x._out, x._frame) for x in (first, last))
    if "shapes" in options:
        options["shapes"] = (None, options["shapes"])
    _, value = while_loop(
        lambda state: state[0] < last,
        lambda state: (state[0] + 1, body_fn(*state)),
        (first, init), **options)
    return value


def _lengths(what: str, leaves: Sequence[SymbolicTensor],
             length: Optional[Value]) -> Any:
    """The number of elements: an int, or a tensor."""
    known = None if isinstance(length, SymbolicTensor) else length
    for x in leaves:
        if x.shape == ():
            raise ValueError(f"{what}: {x!r} has no axis to go along")
        count = x.shape[0] if x.shape else None
        if count is None:
            continue
        if known is not None and known != count:
            raise ValueError(f"{what}: {count} elements, but {known} elsewhere")
        known = count
    if known is not None:
        return known
    if leaves:
        from .numpy import size
        return size(leaves[0], 0)
    if length is None:
        raise ValueError(f"{what}: there are no elements; give the length")
    return length


def _equal_lengths(what: str, leaves: Sequence[SymbolicTensor],
                   count: Any) -> Any:
    """The length as a tensor, which is checked in the run where a length is
    not known before."""
    from .numpy import equal, size
    from .numpy._types import cast
    length = cast(as_tensor(count), np.dtype(np.int32))
    frame = require_frame()
    for x in leaves:
        if x.shape and x.shape[0] is not None and isinstance(count, int):
            continue
        if x is leaves[0] and not isinstance(count, int):
            continue
        text = as_tensor(f"[{what}] the arrays differ in length:")
        rows = as_tensor(size(x, 0))
        check = frame.op("Assert", [equal(rows, length)._out, text._out,
                                    rows._out, length._out])
        length = SymbolicTensor(
            frame.scope.all_after([length._out], check)[0], frame)
    return length


@lifted
def scan(fn: Callable[[Any, Any], Tuple[Any, Any]], init: Any, xs: Any = None,
         length: Optional[Value] = None, *, reverse: bool = False,
         parallel_iterations: int = 10) -> Tuple[Any, Any]:
    """Repeats `carry, y = fn(carry, x)` for the elements of `xs` along the
    first axis; returns the last carry, and all y stacked. Without `xs`, x is
    None, and `length` says how often."""
    frame = require_frame()
    carried, structure = tree.flatten(init)
    initial = [as_tensor(leaf) for leaf in carried]
    x_leaves, x_structure = tree.flatten(xs)
    elements = [as_tensor(leaf) for leaf in x_leaves]
    count = _equal_lengths("scan", elements,
                           _lengths("scan", elements, length))
    y_structure: List[tree.Structure] = []

    def body(scope: Any, carry: List[Any],
             element: List[Any]) -> Tuple[List[Any], List[Any]]:
        with frame.inner(scope, entry=carry, no_writes=(
                "a scan cannot assign; carry the value")) as inner:
            made = fn(tree.unflatten(structure, _tensors(inner, carry)),
                      tree.unflatten(x_structure, _tensors(inner, element)))
            if not isinstance(made, tuple) or len(made) != 2:
                raise TypeError(f"{here()}: [scan] the function must return a "
                                "pair of the carry and a result")
            next_leaves, its = tree.flatten(made[0])
            if its != structure:
                raise TypeError(f"{here()}: [scan] the function returns the "
                                f"carry {its}, not {structure}")
            ys, y_tree = tree.flatten(made[1])
            y_structure.append(y_tree)
            return ([as_tensor(leaf, x.dtype if _fits(leaf, x.dtype) else
                               None)._out
                     for leaf, x in zip(next_leaves, initial)],
                    [_plain(y) for y in ys])

    with frame.noted():
        carry, ys = frame.scope.scan(
            body, [x._out for x in initial], _named_paths(structure),
            [x._out for x in elements], count._out, reverse,
            parallel_iterations)
    return (tree.unflatten(structure, _tensors(frame, carry)),
            tree.unflatten(y_structure[0], _tensors(frame, ys)))


@lifted
def map(fn: Callable[..., Any], xs: Any, *,
        parallel_iterations: int = 10) -> Any:
    """fn(x) of the elements along the first axis, stacked. Iterations
    overlap."""
    frame = require_frame()
    leaves, structure = tree.flatten(xs)
    elements = [as_tensor(leaf) for leaf in leaves]
    _lengths("map", elements, None)
    results: List[tree.Structure] = []

    def body(scope: Any, element: List[Any]) -> List[Any]:
        with frame.inner(scope, entry=element, no_writes=(
                "a map cannot assign: its iterations have no order")) as inner:
            made, its = tree.flatten(
                fn(tree.unflatten(structure, _tensors(inner, element))))
            results.append(its)
            return [_plain(leaf) for leaf in made]

    with frame.noted():
        outputs = frame.scope.map(
            body, [x._out for x in elements], _named_paths(structure),
            parallel_iterations)
    return tree.unflatten(results[0], _tensors(frame, outputs))
