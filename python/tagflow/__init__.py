"""tagflow runs dataflow graphs whose loops and conditionals depend on data.

    import tagflow
    model = tagflow.load("exported")          # a model of TensorFlow
    model(x=images)                           # NumPy in, NumPy out

    graph = tagflow.Graph.from_graphdef("graph.pb")
    with tagflow.Session(graph) as session:
        session.run("y", {"x": 3.0})

docs/python.md is the guide.
"""

from __future__ import annotations

from typing import Any as _Any

from . import _load  # noqa: F401: the first of all
from . import errors
from ._native import Callable, Node, Tensor, __version__, from_dlpack
from ._futures import Future
from .errors import *  # noqa: F401,F403: one class for each code
from .files import (load_npz, load_safetensors, restore, save, save_npz,
                    save_safetensors)
from .graph import Graph
from .interop import from_keras, from_tf
from .model import Model, Signature, load
from .session import Session, devices
from . import nn, numpy, ops, optim, random, tree
from ._place import device
from ._state import configure
from ._trace import TracingError
from .checkpoints import load_tree, save_tree
from .control_flow import cond, fori_loop, map, scan, switch, while_loop
from .function import Function, TensorSpec, function, spec
from .grad import (custom_gradient, grad, gradients, hessian, hvp, jacobian,
                   jvp, stop_gradient, value_and_grad, vjp)
from .recursion import recursive
from .symbolic import SymbolicTensor
from .variables import Variable
from .vmap import vmap

__all__ = [
    "Callable", "Future", "Graph", "Model", "Node", "Session", "Signature",
    "Tensor", "__version__", "devices", "errors", "from_dlpack", "from_keras",
    "from_tf", "load", "load_npz", "load_safetensors", "restore", "save",
    "save_npz", "save_safetensors", *errors.__all__,
    # Building: docs/python_building.md.
    "Function", "SymbolicTensor", "TensorSpec", "TracingError", "Variable",
    "cond", "configure", "custom_gradient", "device", "fori_loop", "function",
    "grad", "gradients", "hessian", "hvp", "jacobian", "jvp", "load_tree",
    "map", "nn", "numpy", "ops", "optim", "random", "recursive", "save_tree",
    "scan", "spec", "stop_gradient", "switch", "tree", "value_and_grad", "vjp",
    "vmap", "while_loop",
]

# What JAX and TensorFlow call otherwise, or have and tagflow has not.
_ELSEWHERE = {
    "constant": "an array of NumPy",
    "convert_to_tensor": "tagflow.numpy.asarray",
    "device_put": "tagflow.device",
    "GradientTape": "tagflow.grad of a function, or tagflow.gradients",
    "jacfwd": "tagflow.jacobian",
    "jacrev": "tagflow.jacobian",
    "jit": "tagflow.function",
    "lax": "tagflow.cond, while_loop, scan and tagflow.ops",
    "linearize": "tagflow.jvp and tagflow.vjp",
    "pmap": "tagflow.vmap",
    "pure_callback": "nothing: functions of Python do not run in a graph",
    "py_function": "nothing: functions of Python do not run in a graph",
    "saved_model": "tagflow.load, and save() of a tagflow.function",
    "tree_map": "tagflow.tree.map",
    "tree_util": "tagflow.tree",
    "vectorized_map": "tagflow.vmap",
}


def __getattr__(name: str) -> _Any:
    hint = _ELSEWHERE.get(name)
    raise AttributeError(f"module 'tagflow' has no attribute {name!r}" + (
        f"; instead there is {hint}" if hint else ""))
