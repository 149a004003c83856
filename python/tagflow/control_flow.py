"""Conditionals and loops that depend on data.

They have the form of JAX's. All of them can be nested, and differentiated to
any order. What goes around a loop, or comes out of a branch, may be any
structure of arrays.
"""

from __future__ import annotations

from typing import (Any, Callable, List, NamedTuple, Optional, Sequence,
                    Tuple)

import numpy as np

from . import tree
from ._batching import Level, Tensors, rehearsal, swapped
from ._lift import lifted
from ._trace import Frame, here
from .symbolic import SymbolicTensor, Value, as_tensor, require_frame

__all__ = ["cond", "fori_loop", "map", "scan", "switch", "while_loop"]

Leaves = Callable[[], Tensors]
Levels = Tuple[Level, ...]


def _tensors(frame: Frame, outputs: Sequence[Any]) -> List[SymbolicTensor]:
    return [SymbolicTensor(out, frame) for out in outputs]


# Note [Batches in control flow]
# Inside of vmap() a construct is taken through the levels of batches from the
# innermost one out. If a predicate differs by element, it becomes a loop over
# the elements, each with a construct of its own. Otherwise a rehearsal shows
# which values are batched; they go through the construct with their batch as
# an axis. The functions see elements in both cases.


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
    """A branch of a conditional: fn(*operands), as the list of its leaves."""

    def __init__(self, fn: Callable[..., Any], operands: Sequence[Any]) -> None:
        self.fn = fn
        self.operands = operands
        self.structure: Optional[tree.Structure] = None

    def __call__(self) -> Tensors:
        leaves, self.structure = tree.flatten(self.fn(*self.operands))
        return [as_tensor(leaf) for leaf in leaves]


def _branches(what: str, fns: Sequence[Callable[..., Any]],
              operands: Sequence[Any]) -> Tuple[List[_Branch], List[Leaves]]:
    """The branches, and the calls of them, which check that their structures
    are the same."""
    made = [_Branch(fn, operands) for fn in fns]

    def checked(branch: _Branch) -> Leaves:
        def call() -> Tensors:
            leaves = branch()
            known = [b.structure for b in made if b.structure is not None]
            for structure in known[1:]:
                if structure != known[0]:
                    raise TypeError(
                        f"{here()}: [{what}] the branches return different "
                        f"structures: {known[0]} and {structure}")
            return leaves
        return call

    return made, [checked(branch) for branch in made]


def _choose(levels: Levels, test: SymbolicTensor, calls: Sequence[Leaves],
            is_cond: bool) -> Tensors:
    """The results of one of the calls. See Note [Batches in control flow]."""
    if levels:
        level, rest = levels[-1], levels[:-1]
        if level.has(test):
            return level.map_over(
                lambda xs: _choose(rest, xs[0], calls, is_cond), [test])
        with rehearsal():
            found = [[level.has(x) for x in call()] for call in calls]
        flags = [any(each) for each in zip(*found)]

        def whole(call: Leaves) -> Leaves:
            return lambda: level.unwrap_some(call(), flags)

        return level.wrap_some(
            _choose(rest, test, [whole(call) for call in calls], is_cond),
            flags)
    frame = require_frame()
    frames: List[Frame] = []
    count = 0

    def branch(call: Leaves) -> Callable[[Any], List[Any]]:
        def add(scope: Any) -> List[Any]:
            nonlocal count
            with frame.inner(scope) as inner:
                frames.append(inner)
                outputs = [x._out for x in call()]
                count = len(outputs)
                # A conditional has at least one result.
                return inner.with_effects(outputs or [_plain(True)])
        return add

    with frame.noted():
        scope = frame.scope.after(frame.all_waits())
        made = [branch(call) for call in calls]
        outputs = (scope.cond(test._out, *made) if is_cond
                   else scope.switch_case(test._out, made))
    frame.absorb(frames, outputs)
    return _tensors(frame, outputs[:count])


@lifted
def cond(pred: Value, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
         *operands: Any) -> Any:
    """true_fn(*operands) if `pred` is true, else false_fn(*operands). Only one
    of them runs. Both must return the same structure, with the same types;
    shapes may differ."""
    frame = require_frame()
    test = _predicate(pred, "the predicate of cond")
    branches, calls = _branches("cond", [true_fn, false_fn], operands)
    made = _choose(frame.levels, test, calls, True)
    assert branches[0].structure is not None
    return tree.unflatten(branches[0].structure, made)


@lifted
def switch(index: Value, branches: Sequence[Callable[..., Any]],
           *operands: Any) -> Any:
    """branches[index](*operands). An index out of range is clipped."""
    from .numpy import clip
    frame = require_frame()
    if not branches:
        raise ValueError("switch: there are no branches")
    at = clip(index, 0, len(branches) - 1)
    made, calls = _branches("switch", branches, operands)
    leaves = _choose(frame.levels, at, calls, False)
    assert made[0].structure is not None
    return tree.unflatten(made[0].structure, leaves)


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

    def predicate(values: Tensors) -> SymbolicTensor:
        return _predicate(cond_fn(tree.unflatten(structure, values)),
                          "the condition of while_loop")

    def body(values: Tensors) -> Tensors:
        next_leaves, its = tree.flatten(
            body_fn(tree.unflatten(structure, values)))
        if its != structure:
            raise TypeError(f"{here()}: [while_loop] the body returns "
                            f"{its}, not {structure}")
        return _as_before(next_leaves, initial)

    options = _LoopOptions(
        _named_paths(structure), parallel_iterations,
        None if maximum_iterations is None else as_tensor(maximum_iterations),
        save)
    return tree.unflatten(structure, _loop(
        frame.levels, predicate, body, initial,
        _shapes(shapes, structure, initial), options))


class _LoopOptions(NamedTuple):
    paths: List[str]
    parallel_iterations: int
    maximum: Optional[SymbolicTensor]
    save: str


def _loop(levels: Levels, predicate: Callable[[Tensors], SymbolicTensor],
          body: Callable[[Tensors], Tensors], initial: Tensors,
          shapes: Optional[List[Any]], options: _LoopOptions) -> Tensors:
    """while_loop() of leaves. See Note [Batches in control flow]."""
    if levels:
        return _batched_loop(levels, predicate, body, initial, shapes, options)
    frame = require_frame()
    frames: List[Frame] = []

    def test(scope: Any, values: List[Any]) -> Any:
        with frame.inner(scope, entry=values, no_writes=(
                "the condition of a loop cannot assign")) as inner:
            frames.append(inner)
            return predicate(_tensors(inner, values))._out

    def step(scope: Any, values: List[Any]) -> List[Any]:
        with frame.inner(scope, entry=values) as inner:
            frames.append(inner)
            return inner.with_effects(
                [x._out for x in body(_tensors(inner, values))])

    with frame.noted():
        scope = frame.scope.after(frame.all_waits())
        outputs = scope.while_loop(
            test, step, [x._out for x in initial], options.paths, shapes,
            options.parallel_iterations,
            None if options.maximum is None else options.maximum._out,
            options.save)
    frame.absorb(frames, outputs)
    return _tensors(frame, outputs)


def _batched_loop(levels: Levels,
                  predicate: Callable[[Tensors], SymbolicTensor],
                  body: Callable[[Tensors], Tensors], initial: Tensors,
                  shapes: Optional[List[Any]],
                  options: _LoopOptions) -> Tensors:
    level, rest = levels[-1], levels[:-1]
    flags = [level.has(x) for x in initial]
    differs = options.maximum is not None and level.has(options.maximum)
    while not differs:
        with rehearsal() as stage:
            values = [stage.like(level.wrap(level.unwrap(x)) if flag else x)
                      for x, flag in zip(initial, flags)]
            differs = level.has(predicate(values))
            after = [flag or level.has(x)
                     for x, flag in zip(body(values), flags)]
        if after == flags:
            break
        flags = after
    if differs:
        maximum = [] if options.maximum is None else [options.maximum]
        return level.map_over(lambda xs: _loop(
            rest, predicate, body, xs[len(maximum):], shapes,
            options._replace(maximum=xs[0] if maximum else None)),
            maximum + initial)
    if shapes is not None:
        length = level.length if isinstance(level.length, int) else None
        shapes = [(length, *shape) if flag and shape is not None else shape
                  for shape, flag in zip(shapes, flags)]
    return level.wrap_some(_loop(
        rest, lambda values: predicate(level.wrap_some(values, flags)),
        lambda values: level.unwrap_some(
            body(level.wrap_some(values, flags)), flags),
        level.unwrap_some(initial, flags), shapes, options), flags)


def _as_before(leaves: Sequence[Any], initial: Tensors) -> Tensors:
    """The next values of variables. A number of Python takes the type of its
    variable."""
    return [as_tensor(leaf, x.dtype if _fits(leaf, x.dtype) else None)
            for leaf, x in zip(leaves, initial)]


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
    first, last = first._strong(), last._strong()
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
    y_structure: Optional[tree.Structure] = None

    def body(carry: Tensors, element: Tensors) -> Tuple[Tensors, Tensors]:
        nonlocal y_structure
        made = fn(tree.unflatten(structure, carry),
                  tree.unflatten(x_structure, element))
        if not isinstance(made, tuple) or len(made) != 2:
            raise TypeError(f"{here()}: [scan] the function must return a "
                            "pair of the carry and a result")
        next_leaves, its = tree.flatten(made[0])
        if its != structure:
            raise TypeError(f"{here()}: [scan] the function returns the "
                            f"carry {its}, not {structure}")
        ys, y_structure = tree.flatten(made[1])
        return (_as_before(next_leaves, initial),
                [as_tensor(y) for y in ys])

    options = _ScanOptions(_named_paths(structure), reverse,
                           parallel_iterations)
    last, collected = _scan(frame.levels, body, initial, elements, count,
                            options)
    assert y_structure is not None
    return (tree.unflatten(structure, last),
            tree.unflatten(y_structure, collected))


class _ScanOptions(NamedTuple):
    paths: List[str]
    reverse: bool
    parallel_iterations: int


_ScanBody = Callable[[Tensors, Tensors], Tuple[Tensors, Tensors]]


def _scan(levels: Levels, fn: _ScanBody, initial: Tensors, elements: Tensors,
          count: SymbolicTensor, options: _ScanOptions
          ) -> Tuple[Tensors, Tensors]:
    """scan() of leaves. See Note [Batches in control flow]."""
    if levels:
        return _batched_scan(levels, fn, initial, elements, count, options)
    frame = require_frame()

    def body(scope: Any, carry: List[Any],
             element: List[Any]) -> Tuple[List[Any], List[Any]]:
        with frame.inner(scope, entry=carry, no_writes=(
                "a scan cannot assign; carry the value")) as inner:
            made, ys = fn(_tensors(inner, carry), _tensors(inner, element))
            return [x._out for x in made], [y._out for y in ys]

    with frame.noted():
        carry, ys = frame.scope.scan(
            body, [x._out for x in initial], options.paths,
            [x._out for x in elements], count._out, options.reverse,
            options.parallel_iterations)
    return _tensors(frame, carry), _tensors(frame, ys)


def _batched_scan(levels: Levels, fn: _ScanBody, initial: Tensors,
                  elements: Tensors, count: SymbolicTensor,
                  options: _ScanOptions) -> Tuple[Tensors, Tensors]:
    level, rest = levels[-1], levels[:-1]
    if level.has(count):
        carried = len(initial)

        def one(xs: Tensors) -> Tensors:
            last, ys = _scan(rest, fn, xs[:carried], xs[carried:-1], xs[-1],
                             options)
            return last + ys

        made = level.map_over(one, [*initial, *elements, count])
        return made[:carried], made[carried:]
    flags = [level.has(x) for x in initial]
    of_elements = [level.has(x) for x in elements]
    while True:
        with rehearsal() as stage:
            carry, ys = fn(
                [stage.like(level.wrap(level.unwrap(x)) if flag else x)
                 for x, flag in zip(initial, flags)],
                [stage.part(x) for x in elements])
            after = [flag or level.has(x) for x, flag in zip(carry, flags)]
            of_ys = [level.has(y) for y in ys]
        if after == flags:
            break
        flags = after

    def body(carry: Tensors, element: Tensors) -> Tuple[Tensors, Tensors]:
        made, ys = fn(level.wrap_some(carry, flags),
                      level.wrap_some(element, of_elements))
        return (level.unwrap_some(made, flags), level.unwrap_some(ys, of_ys))

    last, ys = _scan(rest, body, level.unwrap_some(initial, flags),
                     _fronts(level, elements), count, options)
    return (level.wrap_some(last, flags),
            [level.wrap(swapped(y)) if flag else y
             for y, flag in zip(ys, of_ys)])


def _fronts(level: Level, elements: Tensors) -> Tensors:
    """With the batch of this level behind the axis that a loop goes along."""
    return [swapped(x._inner) if level.has(x) else x  # type: ignore
            for x in elements]


@lifted
def map(fn: Callable[..., Any], xs: Any, *,
        parallel_iterations: int = 10) -> Any:
    """fn(x) of the elements along the first axis, stacked. Iterations
    overlap."""
    frame = require_frame()
    leaves, structure = tree.flatten(xs)
    elements = [as_tensor(leaf) for leaf in leaves]
    _lengths("map", elements, None)
    result: Optional[tree.Structure] = None

    def body(element: Tensors) -> Tensors:
        nonlocal result
        made, result = tree.flatten(fn(tree.unflatten(structure, element)))
        return [as_tensor(leaf) for leaf in made]

    made = map_each(frame.levels, body, elements, _named_paths(structure),
                    parallel_iterations)
    assert result is not None
    return tree.unflatten(result, made)


def map_each(levels: Levels, fn: Callable[[Tensors], Sequence[SymbolicTensor]],
             elements: Tensors, paths: List[str],
             parallel_iterations: int) -> Tensors:
    """map() of leaves. See Note [Batches in control flow]."""
    if levels:
        level, rest = levels[-1], levels[:-1]
        flags = [level.has(x) for x in elements]
        with rehearsal() as stage:
            of_results = [level.has(x) for x in fn(
                [stage.part(x) for x in elements])]
        made = map_each(
            rest, lambda xs: level.unwrap_some(
                fn(level.wrap_some(xs, flags)), of_results),
            _fronts(level, elements), paths, parallel_iterations)
        return [level.wrap(swapped(y)) if flag else y
                for y, flag in zip(made, of_results)]
    frame = require_frame()

    def body(scope: Any, element: List[Any]) -> List[Any]:
        with frame.inner(scope, entry=element, no_writes=(
                "a map cannot assign: its iterations have no order")) as inner:
            return [x._out for x in fn(_tensors(inner, element))]

    with frame.noted():
        outputs = frame.scope.map(body, [x._out for x in elements], paths,
                                  parallel_iterations)
    return _tensors(frame, outputs)
