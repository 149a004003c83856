"""On which device the ops of a function run."""

from __future__ import annotations

import contextlib
import re
from typing import Iterator

from .symbolic import require_frame

__all__ = ["device"]

_SHORT = re.compile(r"([A-Za-z]+)(?::(\d+))?")


@contextlib.contextmanager
def device(name: str) -> Iterator[None]:
    """In a traced function: what is added in this `with` block, branches and
    loops, too, runs on that device.

        with tagflow.device("cpu:1"):
            y = tnp.sin(x)

    The name is short, as "gpu:0", or one of tagflow.devices(). The devices are
    those of tagflow.configure()."""
    frame = require_frame()
    short = _SHORT.fullmatch(name)
    if short is None and not name.startswith("/"):
        raise ValueError(f"{name!r} is no device; write \"cpu:1\", \"gpu:0\" or "
                         "a name of tagflow.devices()")
    full = name if short is None else (
        f"/device:{short[1].upper()}:{short[2] or 0}")
    with frame.through(frame.scope.on_device(full)):
        yield
