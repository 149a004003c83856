"""Random numbers from keys, as in JAX.

    key = tagflow.random.key(0)
    key, subkey = tagflow.random.split(key)
    x = tagflow.random.normal(subkey, (3, 4))

The same key gives the same numbers. Use each key once: split it to get more.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from . import numpy as tnp
from ._lift import lifted
from .numpy._types import cast, inexact, to_dtype
from .numpy.shapes import _ints
from .symbolic import SymbolicTensor, Value, as_tensor, emit

__all__ = ["bernoulli", "beta", "categorical", "choice", "dirichlet",
           "exponential", "fold_in", "gamma", "gumbel", "key", "laplace",
           "multivariate_normal", "normal", "permutation", "poisson", "randint",
           "split", "truncated_normal", "uniform"]


def key(seed: int) -> np.ndarray:
    """The key of a number: a vector of two int64."""
    return np.array([seed, 0], np.int64)


def _key(value: Value) -> SymbolicTensor:
    x = as_tensor(value)
    if x.dtype != np.int64 or x.shape not in ((2,), (None,), None):
        raise TypeError(f"{x!r} is no key; tagflow.random.key(seed) makes one")
    return x


@lifted
def split(key: Value, num: int = 2) -> SymbolicTensor:
    """New keys: an array of them, which can be unpacked."""
    return emit("StatelessRandomUniformFullInt",
                [_ints((num, 2)), _key(key)], dtype=np.int64)


@lifted
def fold_in(key: Value, number: Value) -> SymbolicTensor:
    """The key of a key and a number, such as that of a step."""
    mixed = _key(key) + cast(as_tensor(number), np.dtype(np.int64)) * (
        tnp.asarray(np.array([1, 0], np.int64)))
    return split(mixed, 1)[0]


def _draw(op: str, key: Value, shape: Any, dtype: Any) -> SymbolicTensor:
    return emit(op, [_ints(shape), _key(key)], dtype=to_dtype(dtype))


@lifted
def uniform(key: Value, shape: Any = (), dtype: Any = np.float32,
            minval: Value = 0.0, maxval: Value = 1.0) -> SymbolicTensor:
    """From `minval` on, less than `maxval`."""
    x = _draw("StatelessRandomUniform", key, shape, dtype)
    if all(type(v) is float for v in (minval, maxval)) and (
            minval, maxval) == (0.0, 1.0):
        return x
    return x * (as_tensor(maxval, x.dtype) - minval) + minval


@lifted
def normal(key: Value, shape: Any = (),
           dtype: Any = np.float32) -> SymbolicTensor:
    """Normally distributed, with the mean 0 and the variance 1."""
    return _draw("StatelessRandomNormal", key, shape, dtype)


@lifted
def truncated_normal(key: Value, shape: Any = (),
                     dtype: Any = np.float32) -> SymbolicTensor:
    """Normally distributed, but between -2 and 2."""
    return _draw("StatelessTruncatedNormal", key, shape, dtype)


@lifted
def randint(key: Value, shape: Any, minval: Value, maxval: Value,
            dtype: Any = np.int32) -> SymbolicTensor:
    """Whole numbers from `minval` on, less than `maxval`."""
    dtype = to_dtype(dtype)
    low, high = (cast(as_tensor(v, dtype), dtype) for v in (minval, maxval))
    return emit("StatelessRandomUniformInt",
                [_ints(shape), _key(key), low, high], dtype=dtype)


@lifted
def bernoulli(key: Value, p: Value = 0.5,
              shape: Optional[Any] = None) -> SymbolicTensor:
    """True with the probability p."""
    p = inexact(p)
    shape = tnp.shape(p) if shape is None else shape
    return uniform(key, shape, p.dtype) < p


@lifted
def exponential(key: Value, shape: Any = (),
                dtype: Any = np.float32) -> SymbolicTensor:
    """Exponentially distributed, with the mean 1."""
    return -tnp.log1p(-uniform(key, shape, dtype))


@lifted
def gumbel(key: Value, shape: Any = (),
           dtype: Any = np.float32) -> SymbolicTensor:
    """With the standard Gumbel distribution."""
    tiny = float(np.finfo(to_dtype(dtype)).tiny)
    return -tnp.log(-tnp.log(tnp.maximum(uniform(key, shape, dtype), tiny)))


@lifted
def categorical(key: Value, logits: Value, axis: int = -1) -> SymbolicTensor:
    """The number of a class along the axis, by softmax(logits)."""
    x = inexact(logits)
    return tnp.argmax(x + gumbel(key, tnp.shape(x), x.dtype), axis)


@lifted
def permutation(key: Value, x: Any) -> SymbolicTensor:
    """The parts of x along the first axis in a random order; of a number n, the
    numbers below n."""
    x = tnp.arange(x) if isinstance(x, (int, np.integer)) else as_tensor(x)
    order = tnp.argsort(uniform(key, (tnp.size(x, 0),)))
    return emit("GatherV2", [x, order, as_tensor(0)])


@lifted
def choice(key: Value, x: Any, shape: Sequence[int] = ()) -> SymbolicTensor:
    """Parts of x along the first axis, with replacement; of a number n, numbers
    below n."""
    x = tnp.arange(x) if isinstance(x, (int, np.integer)) else as_tensor(x)
    return emit("GatherV2", [x, randint(key, shape, 0, tnp.size(x, 0)),
                             as_tensor(0)])


@lifted
def laplace(key: Value, shape: Any = (),
            dtype: Any = np.float32) -> SymbolicTensor:
    """With the standard Laplace distribution."""
    u = uniform(key, shape, dtype) - 0.5
    least = float(np.finfo(to_dtype(dtype)).tiny)
    return -tnp.sign(u) * tnp.log(tnp.maximum(1 - 2 * tnp.abs(u), least))


@lifted
def gamma(key: Value, a: Value,
          shape: Optional[Any] = None) -> SymbolicTensor:
    """With the gamma distribution of the shape `a`, and the scale 1. `a` is
    broadcast to `shape`, which is its own by default."""
    a = inexact(a)
    shape = tnp.shape(a) if shape is None else shape
    return emit("StatelessRandomGammaV2", [
        _ints(shape), _key(key), tnp.broadcast_to(a, shape)])


@lifted
def beta(key: Value, a: Value, b: Value,
         shape: Optional[Any] = None) -> SymbolicTensor:
    """With the beta distribution of `a` and `b`."""
    a, b = tnp.broadcast_arrays(inexact(a), inexact(b))
    keys = split(key)
    x, y = gamma(keys[0], a, shape), gamma(keys[1], b, shape)
    return x / (x + y)


@lifted
def dirichlet(key: Value, alpha: Value,
              shape: Sequence[int] = ()) -> SymbolicTensor:
    """With the Dirichlet distribution; `shape` comes in front of that of
    alpha."""
    alpha = inexact(alpha)
    x = gamma(key, alpha, (*shape, *tnp.shape(alpha)))
    return x / tnp.sum(x, -1, keepdims=True)


@lifted
def poisson(key: Value, lam: Value, shape: Optional[Any] = None,
            dtype: Any = np.int32) -> SymbolicTensor:
    """Counts with the mean `lam`, which is broadcast to `shape`."""
    lam = inexact(lam)
    shape = tnp.shape(lam) if shape is None else shape
    return emit("StatelessRandomPoisson", [
        _ints(shape), _key(key), tnp.broadcast_to(lam, shape)],
        dtype=to_dtype(dtype))


@lifted
def multivariate_normal(key: Value, mean: Value, cov: Value,
                        shape: Sequence[int] = ()) -> SymbolicTensor:
    """Vectors with that mean and covariance; `shape` comes in front."""
    mean = inexact(mean)
    factor = tnp.linalg.cholesky(cov)
    noise = normal(key, (*shape, *tnp.shape(mean)), factor.dtype)
    return mean + tnp.einsum("...j,ij->...i", noise, factor)
