"""Functions that call themselves."""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Tuple

from . import tree
from ._batching import innermost
from ._lift import lifted
from ._trace import here
from .function import TensorSpec, mark_specs, node_name
from .symbolic import SymbolicTensor, as_tensor, require_frame

__all__ = ["recursive"]

Fn = Callable[..., Any]


def recursive(result: Any) -> Callable[[Fn], Fn]:
    """Decorates a function that may call itself, or other recursive ones.

        @tagflow.recursive(result=tagflow.spec("int32"))
        def fib(n):
            return tagflow.cond(n < 2, lambda: n,
                                lambda: fib(n - 1) + fib(n - 2))

    `result` is what it returns: tagflow.spec()s in a structure, or a function
    that makes this of symbolic arguments, such as `lambda x: x` for what is
    like an argument. The function can use nothing but its arguments and
    constants; it may read variables, but not assign them. It becomes a
    function of the graph, which calls itself, so that the depth may depend on
    data."""

    def decorate(fn: Fn) -> Fn:
        @functools.wraps(fn)
        def call(*args: Any) -> Any:
            leaves, structure = tree.flatten(args)
            level = innermost([as_tensor(leaf) for leaf in leaves])
            if level is None:
                return _Call(fn, result, args).run()
            # The depth differs by element: each has a call of its own.
            its: List[tree.Structure] = []

            def one(elements: List[SymbolicTensor]) -> List[SymbolicTensor]:
                made, structure_of_result = tree.flatten(
                    call(*tree.unflatten(structure, elements)))
                its.append(structure_of_result)
                return made

            made = level.map_over(one, leaves)
            return tree.unflatten(its[0], made)

        return lifted(call)
    return decorate


def _key(fn: Fn, structure: tree.Structure,
         xs: List[SymbolicTensor]) -> Tuple[Any, ...]:
    return (fn, structure, tuple((str(x.dtype), x.shape) for x in xs))


class _Call:
    """One call, and the definition of the function, if it is the first one with
    these types and shapes."""

    def __init__(self, fn: Fn, result: Any, args: Tuple[Any, ...]) -> None:
        self.fn = fn
        self.frame = require_frame()
        leaves, self.structure = tree.flatten(args)
        self.xs = [as_tensor(leaf) for leaf in leaves]
        if callable(result) and not isinstance(result, TensorSpec):
            result = tree.map(lambda leaf: TensorSpec(
                as_tensor(leaf).dtype, as_tensor(leaf).shape)
                if not isinstance(leaf, TensorSpec) else leaf,
                result(*tree.unflatten(self.structure, self.xs)))
        specs, self.result = tree.flatten(mark_specs(result))
        self.specs: List[TensorSpec] = [s.value for s in specs]

    def run(self) -> Any:
        known = self.frame.trace.functions
        scope = self.frame.scope
        # The first definition may have seen more of a shape: a call that knows
        # less has a function of its own.
        key = _key(self.fn, self.structure, self.xs)
        name = known.get(key)
        if name is None or not scope.has_function(name):
            if name is None:
                name = scope.free_function_name(node_name(self.fn.__name__))
                known[key] = name
            self._define(name)
        with self.frame.noted():
            waits = self.frame.all_waits()
            outputs = (scope.after(waits) if waits else scope).call(
                name, [x._out for x in self.xs])
        return tree.unflatten(self.result, [
            SymbolicTensor(out, self.frame) for out in outputs])

    def _define(self, name: str) -> None:
        def body(scope: Any, values: List[Any]) -> List[Any]:
            with self.frame.inner(scope, body=True, no_writes=(
                    "a recursive function cannot assign")) as inner:
                args = tree.unflatten(self.structure, [
                    SymbolicTensor(out, inner) for out in values])
                leaves, its = tree.flatten(self.fn(*args))
                if its != self.result:
                    raise TypeError(
                        f"{here()}: [recursive] {self.fn.__name__} returns "
                        f"{its}, but is declared to return {self.result}")
                return [as_tensor(leaf, s.dtype)._out
                        for leaf, s in zip(leaves, self.specs)]

        self.frame.scope.define(
            name, [f"arg_{i}" for i in range(len(self.xs))],
            [(x.dtype, x.shape) for x in self.xs],
            [(s.dtype, s.shape) for s in self.specs], body)
