"""The state that traced functions share: variables, and how sessions are made.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Callable, Dict, List, Optional

from . import _native

__all__ = ["configure", "on_fork", "session"]

_lock = threading.Lock()
_options: Dict[str, Any] = {"devices": "", "workers": 0, "seed": None}
_root: Optional[Any] = None


def configure(*, devices: Optional[str] = None, workers: Optional[int] = None,
              seed: Optional[int] = None) -> None:
    """How traced functions run: on which devices ("cpu:2"), on how many
    threads (0: all cores), with which seed of stateful random ops. Must be
    called before the first of them runs, and before a Variable is made."""
    with _lock:
        if _root is not None:
            raise RuntimeError(
                "configure: traced functions have run already, or variables "
                "exist; call it first")
        for key, value in (("devices", devices), ("workers", workers),
                           ("seed", seed)):
            if value is not None:
                _options[key] = value


_forgets: List[Callable[[], None]] = []


def on_fork(forget: Callable[[], None]) -> None:
    """Calls `forget` in each child that is forked: it has none of the threads
    that the sessions of its parent need."""
    _forgets.append(forget)


def _forget() -> None:
    global _lock, _root
    _lock = threading.Lock()
    _root = None
    for forget in _forgets:
        forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _create(shares: Any) -> Any:
    return _native.Session.create(
        _options["devices"], _options["workers"], _options["seed"], None, 0,
        False, _native.Target(), shares)


def session() -> Any:
    """A new session with the common state."""
    global _root
    with _lock:
        if _root is None:
            _root = _create(None)
        return _create(_root)
