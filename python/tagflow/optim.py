"""Optimizers: how parameters change by gradients.

    optimizer = tagflow.optim.Adam(1e-3)
    state = optimizer.init(params)
    ...
    params, state = optimizer.update(grads, state, params)

They are functions of structures of arrays, as in optax, and keep nothing
themselves: so a step can be traced, be the body of a loop, be differentiated,
and be saved with tagflow.save_tree(). To keep parameters in the engine, put
them into Variables, and assign them what update() returns.

The rate may be a number, a tensor, or a function of the number of the step,
which counts from 0. The formulas are those of autodiff/train/optimizers.h.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple, Union

import numpy as np

from . import numpy as tnp
from . import tree
from ._lift import lifted
from .symbolic import as_tensor

__all__ = ["Adagrad", "Adam", "AdamW", "Momentum", "Optimizer", "RMSProp",
           "SGD", "clip_by_global_norm", "cosine_decay", "exponential_decay",
           "global_norm"]

Rate = Union[float, Any, Callable[[Any], Any]]


class Optimizer:
    """The base of all: one slot of state or more for each parameter, and the
    number of the step."""

    _slots: Dict[str, float] = {}  # by name, the value they begin with

    def __init__(self, learning_rate: Rate) -> None:
        self.learning_rate = learning_rate

    def init(self, params: Any) -> Dict[str, Any]:
        """The state before the first step."""
        state: Dict[str, Any] = {"step": np.int32(0)}
        for slot, value in self._slots.items():
            state[slot] = tree.map(lambda p: _filled(p, value), params)
        return state

    def update(self, grads: Any, state: Dict[str, Any],
               params: Any) -> Tuple[Any, Dict[str, Any]]:
        """The parameters and the state after one step."""
        return _update(self, grads, state, params)

    def _rate(self, step: Any, dtype: Any) -> Any:
        rate = self.learning_rate
        if callable(rate):
            rate = rate(step)
        return rate if type(rate) in (int, float) else tnp.astype(rate, dtype)

    def _step(self, p: Any, g: Any, slots: Dict[str, Any], rate: Any,
              step: Any) -> Tuple[Any, Dict[str, Any]]:
        """A parameter and its slots after a step; step counts from 1, and has
        the type of the parameter."""
        raise NotImplementedError

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
        return f"{type(self).__name__}({options})"


def _filled(p: Any, value: float) -> Any:
    from ._trace import current
    if current() is not None:
        return tnp.full_like(p, value)
    return np.full(np.shape(p), value, np.asarray(p).dtype)


@lifted
def _update(optimizer: Optimizer, grads: Any, state: Dict[str, Any],
            params: Any) -> Tuple[Any, Dict[str, Any]]:
    leaves, structure = tree.flatten(params)
    got, its = tree.flatten(grads)
    if its != structure:
        raise ValueError(f"the gradients have the structure {its}, the "
                         f"parameters {structure}")
    slots = {name: tree.leaves(state[name]) for name in optimizer._slots}
    step = as_tensor(state["step"])
    changed = []
    new: Dict[str, list] = {name: [] for name in slots}
    for i, (p, g) in enumerate(zip(leaves, got)):
        p, g = as_tensor(p), as_tensor(g)
        mine = {name: as_tensor(values[i]) for name, values in slots.items()}
        rate = optimizer._rate(step, p.dtype)
        p, mine = optimizer._step(p, g, mine, rate,
                                  tnp.astype(step + 1, p.dtype))
        changed.append(p)
        for name, value in mine.items():
            new[name].append(value)
    after: Dict[str, Any] = {"step": step + 1}
    for name, values in new.items():
        after[name] = tree.unflatten(structure, values)
    return tree.unflatten(structure, changed), after


class SGD(Optimizer):
    """p -= rate * g."""

    def _step(self, p, g, slots, rate, step):
        return p - rate * g, slots


class Momentum(Optimizer):
    """a = momentum * a + g; p -= rate * a; with Nesterov's momentum
    p -= rate * (g + momentum * a)."""

    _slots = {"momentum": 0.0}

    def __init__(self, learning_rate: Rate, momentum: float = 0.9,
                 nesterov: bool = False) -> None:
        super().__init__(learning_rate)
        self.momentum, self.nesterov = momentum, nesterov

    def _step(self, p, g, slots, rate, step):
        a = self.momentum * slots["momentum"] + g
        by = g + self.momentum * a if self.nesterov else a
        return p - rate * by, {"momentum": a}


class Adagrad(Optimizer):
    """a += g^2; p -= rate * g / sqrt(a)."""

    def __init__(self, learning_rate: Rate,
                 initial_accumulator: float = 0.1) -> None:
        super().__init__(learning_rate)
        self.initial_accumulator = initial_accumulator
        self._slots = {"accumulator": initial_accumulator}

    def _step(self, p, g, slots, rate, step):
        a = slots["accumulator"] + g * g
        return p - rate * g * tnp.rsqrt(a), {"accumulator": a}


class RMSProp(Optimizer):
    """r = decay * r + (1 - decay) * g^2; a = momentum * a + rate * g /
    sqrt(r + epsilon); p -= a."""

    _slots = {"rms": 1.0, "momentum": 0.0}

    def __init__(self, learning_rate: Rate, decay: float = 0.9,
                 momentum: float = 0.0, epsilon: float = 1e-10) -> None:
        super().__init__(learning_rate)
        self.decay, self.momentum, self.epsilon = decay, momentum, epsilon

    def _step(self, p, g, slots, rate, step):
        r = self.decay * slots["rms"] + (1 - self.decay) * g * g
        a = (self.momentum * slots["momentum"]
             + rate * g * tnp.rsqrt(r + self.epsilon))
        return p - a, {"rms": r, "momentum": a}


class Adam(Optimizer):
    """m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2; at
    step t, p -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) +
    epsilon)."""

    _slots = {"m": 0.0, "v": 0.0}

    def __init__(self, learning_rate: Rate = 1e-3, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-8) -> None:
        super().__init__(learning_rate)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def _step(self, p, g, slots, rate, step):
        m = self.beta1 * slots["m"] + (1 - self.beta1) * g
        v = self.beta2 * slots["v"] + (1 - self.beta2) * g * g
        scale = (tnp.sqrt(1 - self.beta2 ** step)
                 / (1 - self.beta1 ** step))
        return (p - rate * scale * m / (tnp.sqrt(v) + self.epsilon),
                {"m": m, "v": v})


class AdamW(Adam):
    """Adam, which also subtracts rate * weight_decay * p."""

    def __init__(self, learning_rate: Rate = 1e-3, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-8,
                 weight_decay: float = 0.01) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon)
        self.weight_decay = weight_decay

    def _step(self, p, g, slots, rate, step):
        after, slots = super()._step(p, g, slots, rate, step)
        return after - rate * self.weight_decay * p, slots


# --- Gradients and rates -----------------------------------------------------

@lifted
def global_norm(grads: Any) -> Any:
    """The Euclidean norm of all elements of all arrays."""
    total: Any = 0.0
    for leaf in tree.leaves(grads):
        total = total + tnp.sum(tnp.square(as_tensor(leaf)))
    return tnp.sqrt(total)


@lifted
def clip_by_global_norm(grads: Any, limit: float) -> Any:
    """Scaled so that global_norm() is not more than the limit."""
    norm = global_norm(grads)
    factor = limit / tnp.maximum(norm, limit)
    return tree.map(
        lambda g: as_tensor(g) * tnp.astype(factor, as_tensor(g).dtype), grads)


def exponential_decay(rate: float, steps: int, factor: float
                      ) -> Callable[[Any], Any]:
    """A rate that has been multiplied by the factor after so many steps."""
    return lambda step: rate * factor ** (tnp.astype(step, float) / steps)


def cosine_decay(rate: float, steps: int, least: float = 0.0
                 ) -> Callable[[Any], Any]:
    """A rate that falls like a cosine to `least` times itself."""
    def at(step: Any) -> Any:
        done = tnp.minimum(tnp.astype(step, float) / steps, 1.0)
        cosine = 0.5 * (1 + tnp.cos(np.float32(np.pi) * done))
        return rate * ((1 - least) * cosine + least)
    return at
