"""Files of structures of arrays."""

from __future__ import annotations

import os
from typing import Any, Dict, Union

import numpy as np

from . import files, tree
from .errors import InvalidArgumentError
from .variables import Variable

__all__ = ["load_tree", "save_tree"]

Path = Union[str, "os.PathLike[str]"]


def _named(value: Any) -> Dict[str, Any]:
    leaves, structure = tree.flatten(value)
    names = [path or "value" for path in tree.paths(structure)]
    return dict(zip(names, leaves))


def save_tree(path: Path, value: Any) -> None:
    """Writes a structure of arrays and Variables to a file, .npz or
    .safetensors. An array has its path as its name: "layers[0].w"."""
    path = os.fspath(path)
    arrays = {name: np.asarray(leaf) for name, leaf in _named(value).items()}
    if path.endswith(".npz"):
        files.save_npz(path, arrays)
    elif path.endswith(".safetensors"):
        files.save_safetensors(path, arrays)
    else:
        raise InvalidArgumentError(
            f"[save_tree] {path!r} ends neither in .npz nor in .safetensors")


def load_tree(path: Path, like: Any) -> Any:
    """What save_tree() has written, as a structure like `like`. Its arrays give
    types and shapes; its Variables are assigned the values. If the file does
    not fit, it is an error, and changes nothing."""
    path = os.fspath(path)
    found = (files.load_npz(path) if path.endswith(".npz")
             else files.load_safetensors(path))
    wanted = _named(like)
    values = []
    for name, leaf in wanted.items():
        if name not in found:
            raise InvalidArgumentError(f"[load_tree] {path!r} has no {name!r}")
        value = np.asarray(found[name])
        shape = tuple(leaf.shape) if hasattr(leaf, "shape") else np.shape(leaf)
        dtype = np.asarray(leaf).dtype
        if value.shape != shape or value.dtype != dtype:
            raise InvalidArgumentError(
                f"[load_tree] {path!r}: {name!r} is {value.dtype}"
                f"{list(value.shape)}, not {dtype}{list(shape)}")
        values.append(value)
    for leaf, value in zip(wanted.values(), values):
        if isinstance(leaf, Variable):
            leaf.assign(value)
    return tree.unflatten(tree.flatten(like)[1], [
        leaf if isinstance(leaf, Variable) else value
        for leaf, value in zip(wanted.values(), values)])
