"""Records the graphs of imported_gradients_test.cpp: programs of loops, each
with the gradients that TensorFlow 1.x's functions give it.

usage: python record_gradients.py   (needs TensorFlow 2)

Each is a function y of x (double[2]), w (double) and n (int32, the trips), with
its gradients as g_x and g_w.
"""

import pathlib

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.disable_control_flow_v2()
DOUBLE = tf.float64


def loop(n, body, first, **options):
    return tf.while_loop(
        lambda i, v: i < n, lambda i, v: (i + 1, body(i, v)), [0, first], **options
    )[1]


def two_loops(x, w, n):
    first = loop(n, lambda i, v: tf.sin(v) * v * x, x)
    return loop(n, lambda i, v: tf.cos(v) * v * w + first, first)


def nested(x, w, n):
    """A loop in a branch in a loop."""

    def body(i, v):
        return tf.cond(
            tf.equal(i % 2, 0),
            lambda: loop(i, lambda j, u: tf.sin(u) * w + u * x, v),
            lambda: v * tf.exp(x) * 0.3 + v * v,
        )

    return loop(n, body, x)


def growing(x, w, n):
    """A variable of which only the rank is known."""
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    return loop(
        n,
        lambda i, v: tf.concat([v * x[0], tf.sin(v[:1]) * w], 0),
        x,
        shape_invariants=shapes,
    )


def scan(x, w, n):
    first = loop(n, lambda i, v: tf.sin(v) * x[1], w)
    return tf.scan(lambda a, e: tf.sin(a) * e + w * a, x, initializer=first)


def arrays(x, w, n):
    """An array that is written in a loop, which reads it on a branch."""
    array = tf.TensorArray(
        DOUBLE, size=n, clear_after_read=False, element_shape=[2]
    )

    def body(i, array):
        before = tf.cond(
            i > 0, lambda: array.read(i - 1) * array.read(0), lambda: x
        )
        return array.write(i, tf.sin(before) * w * x)

    array = loop(n, body, array)
    return array.stack() * array.concat()[1]


def main():
    for program in (two_loops, nested, growing, scan, arrays):
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(DOUBLE, [2], name="x")
            w = tf.placeholder(DOUBLE, [], name="w")
            n = tf.placeholder(tf.int32, [], name="n")
            y = tf.identity(program(x, w, n), name="y")
            for gradient, name in zip(tf.gradients(y, [x, w]), "xw"):
                tf.identity(gradient, name=f"g_{name}")
            path = (
                pathlib.Path(__file__).parent / "data" / f"{program.__name__}.pb"
            )
            path.write_bytes(graph.as_graph_def().SerializeToString())


if __name__ == "__main__":
    main()
