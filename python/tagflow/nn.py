"""Functions of neural networks. Images are [batch, height, width, channels]."""

from __future__ import annotations

import math
from typing import Any, Sequence, Tuple, Union

import numpy as np

from . import numpy as tnp
from ._lift import lifted, lifted_with_numbers
from .numpy._types import cast, inexact, pair
from .numpy.reductions import logsumexp
from .numpy.selection import one_hot
from .symbolic import SymbolicTensor, Value, as_tensor, emit, emit_all

__all__ = ["avg_pool", "bias_add", "celu", "conv", "depthwise_conv", "dropout",
           "elu", "gelu", "hard_sigmoid", "hard_tanh", "layer_norm",
           "leaky_relu", "log_sigmoid", "log_softmax", "logsumexp", "max_pool",
           "mean_squared_error", "one_hot", "relu", "relu6", "rms_norm",
           "selu", "sigmoid", "sigmoid_cross_entropy", "silu", "softmax",
           "softmax_cross_entropy", "softplus", "softsign",
           "sparse_softmax_cross_entropy", "swish", "tanh"]

tanh = tnp.tanh  # type: ignore[attr-defined]
Size = Union[int, Sequence[int]]


def _activation(name: str, op: str, text: str) -> Any:
    def function(x: Value) -> SymbolicTensor:
        return emit(op, [inexact(x)])
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return lifted(function)


relu = _activation("relu", "Relu", "max(x, 0).")
relu6 = _activation("relu6", "Relu6", "Between 0 and 6.")
elu = _activation("elu", "Elu", "x, or exp(x) - 1 if x is negative.")
selu = _activation("selu", "Selu", "elu(), scaled so that it keeps the mean "
                   "and the variance.")
sigmoid = _activation("sigmoid", "Sigmoid", "1 / (1 + exp(-x)).")
softplus = _activation("softplus", "Softplus", "log(1 + exp(x)).")
softsign = _activation("softsign", "Softsign", "x / (1 + |x|).")


@lifted_with_numbers
def leaky_relu(x: Value, alpha: float = 0.01) -> SymbolicTensor:
    """x, or alpha * x if x is negative."""
    return emit("LeakyRelu", [inexact(x)], alpha=alpha)


@lifted
def celu(x: Value, alpha: float = 1.0) -> SymbolicTensor:
    """x, or alpha * (exp(x / alpha) - 1) if x is negative."""
    x = inexact(x)
    return tnp.maximum(x, 0) + alpha * tnp.expm1(tnp.minimum(x, 0) / alpha)


@lifted
def gelu(x: Value, approximate: bool = True) -> SymbolicTensor:
    """x times the probability that a normal number is less than x; by default
    approximated by a tanh."""
    x = inexact(x)
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + tanh(inner))
    return 0.5 * x * (1 + tnp.erf(x / math.sqrt(2)))


@lifted
def silu(x: Value) -> SymbolicTensor:
    """x * sigmoid(x)."""
    x = inexact(x)
    return x * sigmoid(x)


swish = silu


@lifted
def log_sigmoid(x: Value) -> SymbolicTensor:
    """log(sigmoid(x))."""
    return -softplus(-inexact(x))


@lifted
def hard_tanh(x: Value) -> SymbolicTensor:
    """Between -1 and 1."""
    return tnp.clip(x, -1, 1)


@lifted
def hard_sigmoid(x: Value) -> SymbolicTensor:
    """relu6(x + 3) / 6."""
    return relu6(inexact(x) + 3) / 6


def _along_last(x: SymbolicTensor, axis: int, op: str) -> SymbolicTensor:
    """An op that works along the last axis."""
    rank = len(x.shape) if x.shape is not None else None
    if rank is None or axis in (-1, rank - 1):
        if rank is None and axis != -1:
            raise ValueError(f"the rank of {x!r} must be known for axis {axis}")
        return emit(op, [x])
    moved = tnp.moveaxis(x, axis, rank - 1)
    return tnp.moveaxis(emit(op, [moved]), rank - 1, axis)


@lifted
def softmax(x: Value, axis: int = -1) -> SymbolicTensor:
    """exp(x), divided by its sum along the axis."""
    return _along_last(inexact(x), axis, "Softmax")


@lifted
def log_softmax(x: Value, axis: int = -1) -> SymbolicTensor:
    """log(softmax(x))."""
    return _along_last(inexact(x), axis, "LogSoftmax")


# --- Losses ------------------------------------------------------------------

@lifted
def softmax_cross_entropy(logits: Value, labels: Value) -> SymbolicTensor:
    """By row, the cross entropy of softmax(logits) with labels, which are
    probabilities of the same shape."""
    x, y = (inexact(v) for v in pair(logits, labels))
    classes = tnp.shape(x)[-1]
    loss, _ = emit_all("SoftmaxCrossEntropyWithLogits", [
        tnp.reshape(x, (-1, classes)), tnp.reshape(y, (-1, classes))])
    return tnp.reshape(loss, tnp.shape(x)[:-1])


@lifted
def sparse_softmax_cross_entropy(logits: Value,
                                 labels: Value) -> SymbolicTensor:
    """By row, the cross entropy of softmax(logits) with labels, which are the
    numbers of the classes."""
    x, y = inexact(logits), as_tensor(labels)
    if y.dtype not in (np.int32, np.int64):
        y = cast(y, np.dtype(np.int32))
    loss, _ = emit_all("SparseSoftmaxCrossEntropyWithLogits", [
        tnp.reshape(x, (-1, tnp.shape(x)[-1])), tnp.reshape(y, (-1,))])
    return tnp.reshape(loss, tnp.shape(x)[:-1])


@lifted
def sigmoid_cross_entropy(logits: Value, labels: Value) -> SymbolicTensor:
    """By element, the cross entropy of sigmoid(logits) with labels, which are
    probabilities."""
    x, y = (inexact(v) for v in pair(logits, labels))
    return tnp.maximum(x, 0) - x * y + tnp.log1p(tnp.exp(-tnp.abs(x)))


@lifted
def mean_squared_error(x: Value, y: Value) -> SymbolicTensor:
    """The mean of (x - y)^2."""
    return tnp.mean(tnp.square(as_tensor(x) - y))


# --- Images ------------------------------------------------------------------

def _window(size: Size) -> list:
    pair_of = (size, size) if isinstance(size, int) else tuple(size)
    return [1, *pair_of, 1]


@lifted
def conv(x: Value, kernel: Value, strides: Size = 1, padding: str = "SAME",
         dilations: Size = 1) -> SymbolicTensor:
    """A convolution of images with a kernel [height, width, channels in,
    channels out]."""
    return emit("Conv2D", list(pair(x, kernel)), strides=_window(strides),
                padding=padding, dilations=_window(dilations))


@lifted
def depthwise_conv(x: Value, kernel: Value, strides: Size = 1,
                   padding: str = "SAME") -> SymbolicTensor:
    """A convolution of each channel alone, with a kernel [height, width,
    channels, times]."""
    return emit("DepthwiseConv2dNative", list(pair(x, kernel)),
                strides=_window(strides), padding=padding)


def _pool(name: str, op: str, text: str) -> Any:
    def function(x: Value, size: Size = 2, strides: Any = None,
                 padding: str = "VALID") -> SymbolicTensor:
        return emit(op, [inexact(x)], ksize=_window(size),
                    strides=_window(size if strides is None else strides),
                    padding=padding)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return lifted(function)


max_pool = _pool("max_pool", "MaxPool", "The largest element of each window of "
                 "an image. Windows do not overlap unless `strides` says so.")
avg_pool = _pool("avg_pool", "AvgPool", "The mean of each window of an image. "
                 "Windows do not overlap unless `strides` says so.")


@lifted
def bias_add(x: Value, bias: Value) -> SymbolicTensor:
    """The bias, a vector, added along the last axis."""
    return emit("BiasAdd", list(pair(x, bias)))


# --- Norms -------------------------------------------------------------------

@lifted
def layer_norm(x: Value, scale: Any = None, bias: Any = None,
               axis: Union[int, Tuple[int, ...]] = -1,
               epsilon: float = 1e-6) -> SymbolicTensor:
    """With the mean 0 and the variance 1 along the axes, then scaled and
    shifted."""
    x = inexact(x)
    centered = x - tnp.mean(x, axis, keepdims=True)
    spread = tnp.mean(tnp.square(centered), axis, keepdims=True)
    y = centered * tnp.rsqrt(spread + epsilon)
    y = y if scale is None else y * scale
    return y if bias is None else y + bias


@lifted
def rms_norm(x: Value, scale: Any = None, axis: int = -1,
             epsilon: float = 1e-6) -> SymbolicTensor:
    """Divided by the root of the mean square along the axis, then scaled."""
    x = inexact(x)
    y = x * tnp.rsqrt(tnp.mean(tnp.square(x), axis, keepdims=True) + epsilon)
    return y if scale is None else y * scale


@lifted_with_numbers
def dropout(key: Value, x: Value, rate: float) -> SymbolicTensor:
    """Zeros for a part of the elements, which `key` of tagflow.random chooses;
    the others are scaled by 1 / (1 - rate)."""
    from . import random
    x = inexact(x)
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: the rate is {rate}, not in [0, 1)")
    kept = random.uniform(key, tnp.shape(x)) >= rate
    return tnp.where(kept, x / (1 - rate), 0)
