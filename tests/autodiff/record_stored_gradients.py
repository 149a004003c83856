"""Records the SavedModel of stored_gradients_test.cpp, whose functions use
tf.custom_gradient, and prints the table of the test: each function of x, its
first and its second derivative at 0.7 and -0.4.

usage: python record_stored_gradients.py   (needs TensorFlow 2)
"""

import os
import pathlib
import shutil
import tempfile

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

DOUBLE = tf.float64
OUT = pathlib.Path(__file__).parent / "data" / "stored_gradients"


def number(value):
    return tf.constant(value, DOUBLE)


@tf.custom_gradient
def cube(x, k):
    """No gradient by k; it captures a tensor that is not an argument."""
    e = tf.exp(x)
    return x * x * x * k, lambda dy: (dy * (100 * e + x * k), None)


@tf.custom_gradient
def several(x, y):
    """Two results, and an integer."""
    s = tf.sin(x)

    def gradient(da, db, dn):
        return 10 * da * s + db * y, 7 * db

    return (x * y, x + y, tf.cast(x, tf.int32)), gradient


@tf.custom_gradient
def straight(x):
    """Not differentiable by itself."""
    return tf.round(x), lambda dy: dy * 3


@tf.custom_gradient
def again(x):
    """Its gradient has a custom gradient, which is not stored."""
    return x * x, lambda dy: dy * tf.nn.silu(x)


class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable(number(2.0), name="w")
        self.v = tf.Variable(number(5.0), name="v")
        self.c = number([3.0, 4.0])

    def plain(self, x):
        return cube(x, number(2.0)) + several(x, x)[1] + straight(x)

    def silu(self, x):
        return tf.nn.silu(x * self.w)

    def variable(self, x):
        w = self.w

        @tf.custom_gradient
        def scaled(x):
            def gradient(dy, variables):
                return dy * x * variables[0], [dy * 11]

            return x * w, gradient

        return scaled(x)

    def constant(self, x):
        c = self.c

        @tf.custom_gradient
        def scaled(x):
            return x * c[0], lambda dy: dy * tf.reduce_sum(c) * x

        return scaled(x)

    def called(self, x):
        @tf.function
        def inner(z):
            return cube(z, number(2.0)) * x

        return inner(x) + inner(2 * x)

    def looped(self, x):
        return tf.while_loop(
            lambda i, v: i < 3,
            lambda i, v: (i + 1, cube(v, x) * 0.1),
            [0, x],
        )[1]

    def branched(self, x):
        return tf.cond(
            x > 0, lambda: cube(x, number(2.0)), lambda: straight(x) * x
        )

    def deep(self, x):
        """In a branch in a loop, with tensors from outside."""

        def body(i, v):
            return i + 1, tf.cond(i > 0, lambda: cube(v, x), lambda: tf.sin(v))

        return tf.while_loop(lambda i, v: i < 2, body, [0, x])[1]

    def nested(self, x):
        return again(x)

    def outside(self, x):
        """It captures what the loop does not have."""
        z = tf.sin(x)

        @tf.custom_gradient
        def square(u):
            return u * u, lambda dy: dy * z * u

        return tf.while_loop(
            lambda i, v: i < 2, lambda i, v: (i + 1, square(v)), [0, x]
        )[1]

    def hidden(self, x):
        """It captures a variable that the function does not have."""
        v = self.v

        @tf.custom_gradient
        def twice(x):
            return x * 2, lambda dy: dy * v

        return twice(x)


NAMES = [name for name in vars(Model) if not name.startswith("_")]


def wrapped(method):
    scalar = [tf.TensorSpec([], DOUBLE, name="x")]
    return tf.function(lambda x: {"y": method(x)}, input_signature=scalar)


def main():
    model = Model()
    functions = {name: wrapped(getattr(model, name)) for name in NAMES}
    for name in NAMES:
        for at in (0.7, -0.4):
            # Eagerly: TensorFlow's gradient of a branch with a custom gradient
            # fails.
            x = number(at)
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as inner:
                    inner.watch(x)
                    y = getattr(model, name)(x)
                first = inner.gradient(y, x)
            second = outer.gradient(first, x)
            second = 0.0 if second is None else second
            values = ", ".join(repr(float(v)) for v in (y, first, second))
            print(f'    {{"{name}", {at}, {{{values}}}}},')
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(model, folder, signatures=functions)
        path = os.path.join(folder, "saved_model.pb")
        saved = saved_model_pb2.SavedModel()
        saved.ParseFromString(pathlib.Path(path).read_bytes())
    for function in saved.meta_graphs[0].graph_def.library.function:
        function.attr.pop("_input_shapes", None)
        for node in function.node_def:
            node.attr.pop("_output_shapes", None)
            node.ClearField("experimental_debug_info")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    (OUT / "saved_model.pb").write_bytes(saved.SerializeToString(deterministic=True))


main()
