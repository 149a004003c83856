"""Writes a traced function as a SavedModel, for `tagflow serve` and
TensorFlow."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any, List, Tuple, Union

import numpy as np

from .errors import AlreadyExistsError, UnimplementedError

__all__ = ["write"]

# The numbers that TensorFlow has for types.
_TYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5,
          "int8": 6, "object": 7, "complex64": 8, "int64": 9, "bool": 10,
          "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19,
          "uint32": 22, "uint64": 23}

Named = List[Tuple[str, str, Any]]  # key, name of the tensor, TensorSpec


def _varint(value: int) -> bytes:
    value &= 2 ** 64 - 1  # negative numbers take ten bytes
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, value: Union[int, str, bytes]) -> bytes:
    """One field of a message: a number, or what has a length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _tensor_info(name: str, spec: Any) -> bytes:
    number = _TYPES.get(str(np.dtype(spec.dtype)))
    if number is None:
        raise UnimplementedError(f"[save] no signature can have {spec.dtype}")
    if spec.shape is None:
        shape = _field(3, 1)
    else:
        shape = b"".join(_field(2, _field(1, -1 if d is None else d))
                         for d in spec.shape)
    return _field(1, name) + _field(2, number) + _field(3, shape)


def _signature(inputs: Named, outputs: Named) -> bytes:
    entries = b"".join(
        _field(number, _field(1, key) + _field(2, _tensor_info(name, spec)))
        for number, side in ((1, inputs), (2, outputs))
        for key, name, spec in side)
    return entries + _field(3, "tensorflow/serving/predict")


def write(path: str, graphdef: bytes, inputs: Named, outputs: Named) -> None:
    """Makes the folder, which must not exist, or be empty. It is there as a
    whole or not at all."""
    if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise AlreadyExistsError(f"[save] {path!r} exists already")
    signature = _field(1, "serving_default") + _field(
        2, _signature(inputs, outputs))
    meta_graph = (_field(1, _field(4, "serve")) + _field(2, graphdef)
                  + _field(5, signature))
    parent = os.path.dirname(os.path.abspath(path))
    folder = tempfile.mkdtemp(prefix=".tagflow-", dir=parent)
    try:
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, "variables"))
        with open(os.path.join(folder, "saved_model.pb"), "wb") as file:
            file.write(_field(1, 1) + _field(2, meta_graph))
        os.rename(folder, path)  # replaces an empty folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
