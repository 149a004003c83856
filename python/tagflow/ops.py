"""Every op of the engine, by its name.

    tagflow.ops.MatMul(a, b, transpose_b=True)

The arguments are the inputs in their order, and attributes by name; a list
stands for an input that is one. Types that follow from the inputs can be left
out. An op with one output gives a tensor, others a tuple; None, if there is no
output. `dir(tagflow.ops)` lists the names, `help(tagflow.ops.MatMul)` describes
one.
"""

from __future__ import annotations

from typing import Any, Callable, List

from . import _native
from ._lift import lifted
from ._trace import Frame, TracingError, here
from .symbolic import (SymbolicTensor, add_op, as_tensor, is_number,
                       require_frame)

__all__: List[str] = []


def _describe(name: str, info: Any) -> str:
    inputs = ", ".join(f"{i}: list" if many else i
                       for i, many, _, _ in info["inputs"])
    attrs = "".join(f"\n    {attr}: {kind}" + (
        "" if default is None else f" = {default}")
        for attr, kind, default in info["attrs"])
    return (f"The op {name}({inputs}) -> ({', '.join(info['outputs'])})."
            + (f"\n\nAttributes:{attrs}" if attrs else ""))


def _flat(name: str, info: Any, args: Any) -> List[SymbolicTensor]:
    if len(args) != len(info["inputs"]):
        raise TypeError(f"{here()}: {name} has {len(info['inputs'])} inputs, "
                        f"not {len(args)}")
    # A number takes the type of the tensors that must have the same one.
    types = {attr: value.dtype
             for value, (_, _, attr, _) in zip(args, info["inputs"])
             if isinstance(value, SymbolicTensor)}
    flat: List[SymbolicTensor] = []
    for value, (_, many, attr, dtype) in zip(args, info["inputs"]):
        wanted = types.get(attr) if attr else dtype
        for item in value if many else [value]:
            flat.append(as_tensor(item, wanted if is_number(item) else None))
    return flat


def _run(frame: Frame, name: str, inputs: List[SymbolicTensor],
         attrs: dict) -> None:
    """Adds an op that has effects, and no results."""
    if any(x._is_batched for x in inputs):
        raise TracingError(
            f"{here()}: [vmap] {name} has effects, which have no order for the "
            "elements of a batch; use tagflow.scan")
    outputs = frame.op(name, [x._out for x in inputs], attrs, None,
                       frame.waits_of_write("ops"))
    frame.note_write("ops", outputs)


# Ops that give other values each time that they run.
_DRAWS = ("Multinomial", "NonDeterministicInts",
          "ParameterizedTruncatedNormal", "Random",
          "TruncatedNormal")


def _draws(name: str, inputs: List[SymbolicTensor],
           attrs: dict) -> List[SymbolicTensor]:
    """Such an op for each element of all batches."""
    frame = require_frame()
    if not frame.levels:
        return add_op(name, inputs, attrs)
    return frame.levels[-1].map_over(
        lambda xs: _draws(name, xs, attrs), inputs)


def _make(name: str) -> Callable[..., Any]:
    info = _native.op_info(name)
    has_effects = info["stateful"] and not info["outputs"]

    def op(*args: Any, **attrs: Any) -> Any:
        frame = require_frame()
        inputs = _flat(name, info, args)
        if has_effects:
            _run(frame, name, inputs, attrs)
            return None
        if frame.levels and name.startswith(_DRAWS):
            made = tuple(_draws(name, inputs, attrs))
        else:
            made = tuple(add_op(name, inputs, attrs))
        return made[0] if len(made) == 1 else made or None

    op.__name__ = op.__qualname__ = name
    op.__doc__ = _describe(name, info)
    return lifted(op)


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_") or not name[0].isupper():
        raise AttributeError(f"tagflow.ops has no {name!r}")
    try:
        made = _make(name)
    except Exception as error:
        raise AttributeError(str(error)) from None
    globals()[name] = made
    return made


def __dir__() -> List[str]:
    return sorted(n for n in _native.op_names() if not n.startswith("_"))
