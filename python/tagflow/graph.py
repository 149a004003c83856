"""Graphs: what a program is."""

from __future__ import annotations

import os
from typing import Any, Union

from . import _native
from .errors import InvalidArgumentError

__all__ = ["Graph"]

Graph = _native.Graph

# What other formats begin with, and what to do with them.
_CONVERT = ("tagflow runs graphs of TensorFlow: SavedModel folders, GraphDef "
            "and MetaGraph files")
_OTHER_FORMATS = {
    ".onnx": "an ONNX file. Export the model from TensorFlow instead: "
             "tf.saved_model.save(model, 'exported')",
    ".tflite": "a TFLite file. Use the SavedModel that it was converted from",
    ".h5": "a Keras file. Load it in Keras and call model.export('exported'), "
           "or tagflow.from_keras(keras.models.load_model(path))",
    ".hdf5": "a Keras file. Load it in Keras and call model.export('exported')",
    ".keras": "a Keras file. Load it in Keras and call "
              "model.export('exported'), or "
              "tagflow.from_keras(keras.models.load_model(path))",
    ".zip": "an archive. Unpack it, and load the folder",
    ".pt": "a file of PyTorch. tagflow cannot run it",
    ".pth": "a file of PyTorch. tagflow cannot run it",
    ".safetensors": "a file of tensors, not a graph. "
                    "tagflow.load_safetensors reads it, and "
                    "tagflow.restore(session, path) assigns its variables",
    ".npz": "a file of arrays, not a graph. tagflow.load_npz reads it",
    ".index": "a checkpoint, not a graph. tagflow.restore(session, path) "
              "assigns its variables",
}


def refuse_other_formats(path: str) -> None:
    """Says what to do with a file that has no graph of TensorFlow."""
    what = _OTHER_FORMATS.get(os.path.splitext(path)[1].lower())
    if what is None and os.path.isfile(path):
        with open(path, "rb") as file:
            start = file.read(8)
        if start.startswith(b"\x89HDF"):
            what = _OTHER_FORMATS[".h5"]
        elif start.startswith(b"PK\x03\x04"):
            what = _OTHER_FORMATS[".zip"]
        elif start[4:8] == b"TFL3":
            what = _OTHER_FORMATS[".tflite"]
    if what is not None and not os.path.isdir(path):
        raise InvalidArgumentError(f"[load] {path!r} is {what}. {_CONVERT}.")


def read(source: Union[bytes, str, "os.PathLike[str]", Any]) -> Graph:
    """What Graph.from_graphdef() does."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Graph._parse(bytes(source))
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        refuse_other_formats(path)
        return Graph._load(path)
    if hasattr(source, "as_graph_def"):
        source = source.as_graph_def(add_shapes=False)
    if hasattr(source, "SerializeToString"):
        return Graph._parse(source.SerializeToString())
    raise TypeError(
        f"from_graphdef takes bytes, a path, a GraphDef or a tf.Graph, not "
        f"{type(source).__name__}")
