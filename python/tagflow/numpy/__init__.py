"""NumPy's functions for symbolic tensors.

    import tagflow.numpy as tnp

In a function that is traced they add ops to its graph. Elsewhere they compute
at once, with arrays. They broadcast as NumPy does. Numbers of Python, and what
functions make without a type, are int32 and float32; _types.py says which type
a result has.
"""

from __future__ import annotations

import numpy as _np

from . import linalg
from .analysis import *  # noqa: F401,F403
from .creation import *  # noqa: F401,F403
from .elementwise import *  # noqa: F401,F403
from .products import *  # noqa: F401,F403
from .reductions import *  # noqa: F401,F403
from .selection import *  # noqa: F401,F403
from .shapes import *  # noqa: F401,F403
from . import (analysis, creation, elementwise, products, reductions,
               selection, shapes)

bool_ = _np.bool_
int8, int16, int32, int64 = _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
float16, float32, float64 = _np.float16, _np.float32, _np.float64
complex64, complex128 = _np.complex64, _np.complex128

__all__ = [*analysis.__all__, *creation.__all__, *elementwise.__all__,
           *products.__all__, *reductions.__all__, *selection.__all__,
           *shapes.__all__,
           "bool_", "complex64", "complex128", "float16", "float32", "float64",
           "int8", "int16", "int32", "int64", "linalg", "uint8", "uint16",
           "uint32", "uint64"]
