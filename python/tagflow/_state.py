"""The state that traced functions share: variables, and how sessions are made.
"""

from __future__ import annotations

import threading
from typing import Any, Dict, Optional

from . import _native

__all__ = ["configure", "session"]

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
