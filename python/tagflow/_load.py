"""Loads the native module, before anything else of the package imports it.

TensorFlow's libraries make the symbols of their protobuf, RE2, OpenSSL and
others visible to all libraries that are loaded later. With RTLD_DEEPBIND the
native module finds its own first, and so both work in one process.
"""

import os
import sys

_flags = sys.getdlopenflags()
sys.setdlopenflags(os.RTLD_NOW | os.RTLD_LOCAL |
                   getattr(os, "RTLD_DEEPBIND", 0))
try:
    from . import _native  # noqa: F401
finally:
    sys.setdlopenflags(_flags)
