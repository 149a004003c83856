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

__all__ = [
    "Callable", "Future", "Graph", "Model", "Node", "Session", "Signature",
    "Tensor", "__version__", "devices", "errors", "from_dlpack", "from_keras",
    "from_tf", "load", "load_npz", "load_safetensors", "restore", "save",
    "save_npz", "save_safetensors", *errors.__all__,
]
