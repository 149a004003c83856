"""Files of tensors: checkpoints, safetensors and .npz."""

from __future__ import annotations

import os
import secrets
import zipfile
from typing import Any, Dict, Mapping, NamedTuple, Tuple, Union

import numpy as np

from . import _native
from .errors import InvalidArgumentError
from .model import Model
from .session import Session

__all__ = ["Restored", "load_npz", "load_safetensors", "restore", "save",
           "save_npz", "save_safetensors"]

Path = Union[str, "os.PathLike[str]"]


class Restored(NamedTuple):
    """What restore() has read."""
    path: str
    step: int  # 0 if another program wrote it
    unused: Tuple[str, ...]  # tensors that are no variables of the graph


def _session_of(source: Union[Session, Model]) -> Session:
    return source.session if isinstance(source, Model) else source


def save(source: Union[Session, Model], path: Path, *, step: int = 0,
         name: str = "model.ckpt", keep: int = 5) -> str:
    """Saves the variables of a session or a model; returns the path.

    A path that ends in .safetensors or .npz is a file of the variables by their
    names. Any other path is a folder of checkpoints, which TensorFlow can read,
    and which also have the state of random ops and queues: the new one is
    `name`-`step`, and the newest `keep` are kept; 0: all.
    """
    session = _session_of(source)
    path = os.fspath(path)
    if path.endswith(".safetensors"):
        save_safetensors(path, session.variables())
        return path
    if path.endswith(".npz"):
        save_npz(path, session.variables())
        return path
    return _native.save(session._native, session._model, path, name, step,
                        keep)


def restore(source: Union[Session, Model], path: Path) -> Restored:
    """Assigns all variables of a session or a model from a file of save(), a
    checkpoint of TensorFlow (its prefix), or the newest one of a folder. An
    error changes nothing."""
    session = _session_of(source)
    path = os.fspath(path)
    if path.endswith(".npz"):
        values = load_npz(path)
        names = session.variable_names()
        missing = [name for name in names if name not in values]
        if missing:
            raise InvalidArgumentError(
                f"[restore] {path!r} lacks the variables {', '.join(missing)}")
        session.assign({name: values[name] for name in names})
        return Restored(path, 0, tuple(sorted(set(values) - set(names))))
    found, step, unused = _native.restore(session._native, session._model,
                                          path)
    return Restored(found, step, tuple(unused))


def load_safetensors(path: Path) -> Dict[str, Any]:
    """All tensors of a .safetensors file, or of a checkpoint of TensorFlow, by
    their names."""
    return _native.read_tensors(os.fspath(path))


def save_safetensors(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes the arrays to a .safetensors file, as a whole or not at all."""
    path = os.fspath(path)
    if not path.endswith(".safetensors"):
        raise InvalidArgumentError(
            f"[save] {path!r} does not end in .safetensors")
    _native.write_safetensors(path, dict(arrays))


def load_npz(path: Path) -> Dict[str, np.ndarray]:
    """All arrays of a .npz file, by their names. Pickled objects are
    refused."""
    with np.load(os.fspath(path), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def save_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes the arrays to a .npz file, as a whole or not at all. Texts become
    arrays of NumPy's type S. The format has no bfloat16: save_safetensors()
    writes that."""
    path = os.fspath(path)
    plain: Dict[str, np.ndarray] = {}
    for name, value in arrays.items():
        array = np.asarray(value)
        if array.dtype.kind == "V":
            raise TypeError(f"[save] {name!r} is {array.dtype}, which .npz "
                            "files cannot keep; use save_safetensors()")
        plain[name] = array.astype("S") if array.dtype == object else array
    temporary = os.path.join(os.path.dirname(path),
                             f".tagflow-{secrets.token_hex(8)}.npz")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(
                file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for name, array in plain.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                    np.lib.format.write_array(part, array, allow_pickle=False)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
