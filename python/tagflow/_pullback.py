"""vjp() outside of a trace: a graph that runs in two parts.

The first run computes the function, and the tensors of it that the gradient
reads; the second one is fed with these. What is inside of branches and loops
cannot be handed over, and is computed again, from what goes into them.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Set, Tuple

import numpy as np

from . import _state, tree
from ._concrete import explain
from ._trace import Trace, here
from .errors import Error
from .symbolic import SymbolicTensor, as_tensor, emit

__all__ = ["in_two_parts"]

# Types of which a value says nothing in another run.
_OPAQUE = ("resource", "variant")
# Ops whose last output is a flow: a number that stands for the contents of a
# tensor array, and is none; and ops that hand a flow on.
_MAKE_FLOWS = {"TensorArrayV3", "TensorArrayGradV3", "TensorArrayGradWithShape",
               "TensorArrayScatterV3", "TensorArraySplitV3",
               "TensorArrayWriteV3"}
_PASS_FLOWS = {"AddN", "Enter", "Exit", "Identity", "IdentityN", "Merge",
               "NextIteration", "Switch"}


def _node(tensor: str) -> str:
    return tensor.lstrip("^").rpartition(":")[0] or tensor.lstrip("^")


class _Cut:
    """Where a graph is cut: what the first run keeps for the second one."""

    def __init__(self, graph: Any, seeds: Sequence[str]) -> None:
        self._nodes = {node.name: node for node in graph.nodes}
        self._depths = self._depths_of_all()
        self._late = self._after({_node(seed) for seed in seeds},
                                 self._nodes)
        # Any float that may be a flow.
        self._flows = self._after(
            {n.name for n in graph.nodes if n.op in _MAKE_FLOWS},
            {n.name: n for n in graph.nodes if n.op in _PASS_FLOWS})

    @staticmethod
    def _after(begin: Set[str], nodes: Dict[str, Any]) -> Set[str]:
        """These, and those of the nodes that need one of them."""
        found, size = set(begin), 0
        while len(found) > size:  # more than once only around loops
            size = len(found)
            for name, node in nodes.items():
                if any(_node(i) in found for i in node.inputs):
                    found.add(name)
        return found

    def _depths_of_all(self) -> Dict[str, int]:
        """By node: in how many branches and loops its results are. It may be
        more, never less."""
        depths: Dict[str, int] = {}
        changed = True
        while changed:
            changed = False
            for name, node in self._nodes.items():
                depth = self._depth_of(node, depths)
                if depths.get(name) != depth:
                    depths[name] = depth
                    changed = True
        return depths

    def _depth_of(self, node: Any, depths: Dict[str, int]) -> int:
        around = [self._nodes[_node(i)] for i in node.inputs]
        # What comes from the last iteration is where the loop is.
        depth = max((depths.get(n.name, 0) for n in around
                     if n.op != "NextIteration"), default=0)
        if node.op == "Enter":
            return depth + 1
        if node.op == "Exit":
            return depth - 1
        if node.op == "Switch":
            return depth + (around[1].op != "LoopCond")
        if node.op == "Merge":
            return depth - all(n.op != "NextIteration" for n in around)
        return depth

    def kept(self, results: Sequence[str]) -> Tuple[List[str], List[str]]:
        """The placeholders, and the other tensors, that the second run is fed
        with to compute these."""
        fed: Dict[str, None] = {}
        kept: Dict[str, None] = {}
        seen: Set[str] = set()
        open_ = list(results)
        while open_:
            tensor = open_.pop()
            name, _, port = tensor.rpartition(":")
            if not name:
                name, port = tensor, "0"
            if tensor in seen or self._nodes[_node(tensor)].op == "Const":
                continue
            seen.add(tensor)
            node = self._nodes[_node(tensor)]
            is_value = not tensor.startswith("^")
            if is_value and node.op == "Placeholder":
                fed[f"{name}:{port}"] = None
            elif (is_value and node.name not in self._late
                  and self._depths[node.name] == 0
                  and node.name not in self._flows
                  and node.dtypes[int(port)] not in _OPAQUE
                  and not node.dtypes[int(port)].endswith("_ref")):
                kept[f"{name}:{port}"] = None
            else:
                open_ += node.inputs
        return list(fed), list(kept)


def in_two_parts(vjp: Callable[..., Any], fn: Callable[..., Any],
                 primals: Sequence[Any], specs: Sequence[Any],
                 weak: Sequence[bool], structure: tree.Structure
                 ) -> Tuple[Any, Callable[[Any], Any]]:
    """What vjp(fn, ...) returns, for arrays: the leaves of the arguments."""
    trace = Trace(getattr(fn, "__name__", "function"))
    frame = trace.root

    def placeholder(dtype: Any, shape: Any, weak: bool) -> SymbolicTensor:
        out = frame.op("Placeholder", [], {
            "dtype": "string" if dtype == np.dtype(object) else dtype,
            "shape": shape})[0]
        return SymbolicTensor(out, frame, weak)

    def results(leaves: Sequence[Any]) -> List[str]:
        return [emit("Identity", [as_tensor(x)]).name for x in leaves]

    with frame.active():
        xs = [placeholder(s.dtype, s.shape, w) for s, w in zip(specs, weak)]
        value, pull = vjp(fn, *tree.unflatten(structure, xs))
        leaves, its = tree.flatten(value)
        ys = [as_tensor(leaf) for leaf in leaves]
        values, targets = results(ys), [_node(o.name) for o in frame.pending()]
        seeds = [placeholder(y.dtype, y.shape, False) for y in ys]
        gradients, of_gradients = tree.flatten(
            pull(tree.unflatten(its, seeds)))
        wanted = results(gradients)
    frame.is_open = False

    names = {_full(x.name): i for i, x in enumerate(xs)}
    seed_names = {_full(s.name): i for i, s in enumerate(seeds)}
    fed, kept = _Cut(trace.graph, [s.name for s in seeds]).kept(wanted)
    session = _state.session()
    session.extend(trace.graph)

    def run(feeds: List[str], fetches: List[str], targets: List[str],
            given: Sequence[Any]) -> Any:
        try:
            return session.make_callable(feeds, fetches, targets, [], "tuple",
                                         [], None)(*given)
        except Error as error:
            explain(error, trace.sources)
            raise

    made = run([x.name for x in xs], values + kept, sorted(set(targets)),
               primals)
    rest = list(made[len(values):])
    for array in rest:  # so they are fed without a copy
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    first = [np.copy(primals[names[f]]) if f in names else None for f in fed]

    def back(cotangent: Any) -> Any:
        given, structure = tree.flatten(cotangent)
        if structure != its:
            raise TypeError(f"{here()}: [vjp] the cotangent is {structure}, "
                            f"but the result {its}")
        arrays = [np.asarray(g, None if hasattr(g, "dtype") else y.dtype)
                  for g, y in zip(given, ys)]
        feeds = [arrays[seed_names[f]].astype(ys[seed_names[f]].dtype)
                 if f in seed_names else x for f, x in zip(fed, first)]
        return tree.unflatten(of_gradients, run(fed + kept, wanted, [],
                                                [*feeds, *rest]))

    variables = list(trace.variables)
    back.__dict__["variables"] = variables  # they have values as long as it
    return tree.unflatten(its, made[:len(values)]), back


def _full(name: str) -> str:
    return name if ":" in name else f"{name}:0"
