"""The exceptions of tagflow: one class for each code of the engine."""

from __future__ import annotations

import concurrent.futures
import re
from typing import Dict, Optional, Type

__all__ = [
    "Error", "AbortedError", "AlreadyExistsError", "CancelledError",
    "DataLossError", "DeadlineExceededError", "DeadlockError",
    "FailedPreconditionError", "InternalError", "InvalidArgumentError",
    "NotFoundError", "OutOfRangeError", "PermissionDeniedError",
    "ResourceExhaustedError", "UnauthenticatedError", "UnavailableError",
    "UnimplementedError", "UnknownError",
]


class Error(Exception):
    """What the engine reports.

    Attributes:
        code: the number of the error, which is TensorFlow's where it has one.
        node: the name of the node at fault, or None.
    """

    code: int = 2

    def __init__(self, message: str, node: Optional[str] = None) -> None:
        super().__init__(message)
        self.node = node

    @property
    def message(self) -> str:
        return str(self.args[0])


class CancelledError(Error, concurrent.futures.CancelledError):
    """The caller, or the end of its session, stopped the run."""
    code = 1


class UnknownError(Error):
    """An error of something outside that has no better code."""
    code = 2


class InvalidArgumentError(Error, ValueError):
    """The request is wrong in any state: a name, a type, a shape, a value."""
    code = 3


class DeadlineExceededError(Error, TimeoutError):
    """The time-out of the run passed."""
    code = 4


class NotFoundError(Error, LookupError):
    """A node, a file or an op of that name does not exist."""
    code = 5


class AlreadyExistsError(Error):
    """What was to be made exists already."""
    code = 6


class PermissionDeniedError(Error):
    """The system, or the policy of the session, refuses access."""
    code = 7


class ResourceExhaustedError(Error):
    """Memory, or another limit, is used up."""
    code = 8


class FailedPreconditionError(Error):
    """It is not possible now: a variable has no value, a session is closed."""
    code = 9


class AbortedError(Error):
    """A conflict stopped it; trying again may help."""
    code = 10


class OutOfRangeError(Error):
    """The valid range has ended, such as the end of the input."""
    code = 11


class UnimplementedError(Error, NotImplementedError):
    """An op, a kernel or a feature does not exist."""
    code = 12


class InternalError(Error):
    """An invariant of the engine is broken: please report it."""
    code = 13


class UnavailableError(Error):
    """Another process cannot be reached."""
    code = 14


class DataLossError(Error):
    """Stored or sent data is damaged."""
    code = 15


class UnauthenticatedError(Error):
    """Another process did not prove who it is."""
    code = 16


class DeadlockError(Error):
    """The run can make no progress; the message says who waits for what."""
    code = 64


_BY_CODE: Dict[int, Type[Error]] = {
    cls.code: cls for cls in Error.__subclasses__()}
# '[MatMul] node "x"' of kernels, and '"x"' after the op's name.
_NODE = re.compile(r'node "((?:[^"\\]|\\.)*)"')


def make(code: int, message: str) -> Error:
    """The exception for an error of the engine."""
    match = _NODE.search(message)
    return _BY_CODE.get(code, UnknownError)(
        message, match.group(1) if match else None)
