"""Functions and models of TensorFlow, which is imported only if it is used."""

from __future__ import annotations

import inspect
import tempfile
from typing import Any, List, Optional, Tuple

from .errors import InvalidArgumentError
from .model import Model, load

__all__ = ["from_keras", "from_tf"]


def _tensorflow() -> Any:
    try:
        import tensorflow  # type: ignore
    except ImportError as error:
        raise ImportError(
            "this needs TensorFlow: pip install tensorflow-cpu") from error
    return tensorflow


def _load_exported(export: Any, options: Any) -> Model:
    with tempfile.TemporaryDirectory(prefix="tagflow-") as folder:
        export(folder)
        return load(folder, **options)


def from_tf(function: Any, *, signature: Optional[Any] = None,
            signatures: Optional[Any] = None, **options: Any) -> Model:
    """The function as a Model: a `tf.function` with an input signature, a
    ConcreteFunction, or a `tf.Module`.

    Nothing is frozen: its variables become variables of the model, with the
    values that they have now, so functions that assign them work, too.

    Args:
        signature: of a tf.function, TensorSpecs for its arguments, as
            get_concrete_function() takes them; not needed if it has one.
        signatures: of a tf.Module, what tf.saved_model.save() takes: a
            function, or a dict of functions; not needed if one method has a
            signature. A module whose functions use tables needs to be passed
            itself.
        options: those of Session.
    """
    tf = _tensorflow()
    if hasattr(function, "get_concrete_function"):
        function = _concrete(function, signature)
    if hasattr(function, "structured_input_signature"):
        function = _with_flat_outputs(tf, function)
        holder = tf.Module()
        holder.function = function
        holder.captured = list(function.graph.variables)
        return _load_exported(
            lambda folder: tf.saved_model.save(
                holder, folder, {"serving_default": function}), options)
    if isinstance(function, tf.Module):
        return _load_exported(
            lambda folder: tf.saved_model.save(function, folder, signatures),
            options)
    raise TypeError(f"from_tf takes a tf.function, a ConcreteFunction or a "
                    f"tf.Module, not {type(function).__name__}")


def _with_flat_outputs(tf: Any, function: Any) -> Any:
    """A SavedModel's signature returns a tensor, a list, or a dict of tensors.
    For other structures: a dict with names like "states_0_h"."""
    outputs = function.structured_outputs
    parts = (outputs.values() if isinstance(outputs, dict) else
             outputs if isinstance(outputs, (list, tuple)) else [outputs])
    if all(hasattr(part, "dtype") or part is None for part in parts):
        return function
    paths: List[Tuple[str, Any]] = []

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for key in sorted(value):
                walk(value[key], f"{path}_{key}")
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                walk(item, f"{path}_{i}")
        elif value is not None:
            paths.append((path.lstrip("_"), value))

    walk(outputs, "" if isinstance(outputs, dict) else "output")
    names = [name for name, _ in paths]
    args, kwargs = function.structured_input_signature
    arg_names = function.function_type.parameters

    def flat(*given: Any, **named: Any) -> Any:
        paths.clear()
        walk(function(*given, **named),
             "" if isinstance(outputs, dict) else "output")
        return dict(zip(names, (value for _, value in paths)))

    flat.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name in arg_names][:len(args)] + [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
        for name in kwargs])
    return tf.function(flat).get_concrete_function(*args, **kwargs)


def _concrete(function: Any, signature: Optional[Any]) -> Any:
    if signature is None:
        specs = ()
        if getattr(function, "input_signature", None) is None:
            names = getattr(function, "function_spec", None)
            takes_none = names is not None and not names.arg_names
            if not takes_none:
                raise InvalidArgumentError(
                    "[from_tf] the function has no input signature: pass "
                    "signature=[tf.TensorSpec(...)]")
    else:
        specs = tuple(signature if isinstance(signature, (list, tuple))
                      else [signature])
    return function.get_concrete_function(*specs)


def from_keras(model: Any, **options: Any) -> Model:
    """A Keras model as a Model, with its weights, for inference: its inputs
    and outputs have the names that `model.export` gives them.

    Args:
        options: those of Session.
    """
    if not hasattr(model, "export"):
        raise TypeError(f"from_keras takes a Keras model, not "
                        f"{type(model).__name__}")
    return _load_exported(
        lambda folder: model.export(folder, verbose=False), options)
