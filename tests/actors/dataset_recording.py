"""How record_datasets.py records its cases."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
Dataset = tf.data.Dataset
CASES = {}
# Elements to record, of those without an end.
MOST = 12


def case(make):
    CASES[make.__name__] = make
    return make


def numbers(n):
    return Dataset.range(n)


def twice(x):
    return x * 2


def is_even(x):
    return tf.equal(x % 2, 0)


def is_small(x):
    return x < 100


def to_range(x):
    return Dataset.range(x)


def raw(op, dataset, shape=(), **arguments):
    """An op of tf.raw_ops on a dataset of numbers, as a dataset of those."""
    handle = getattr(tf.raw_ops, op)(
        input_dataset=dataset._variant_tensor, output_types=[tf.int64],
        output_shapes=[shape], **arguments)
    return tf.data.experimental.from_variant(
        handle, tf.TensorSpec(shape, tf.int64))


def concrete(function):
    return tf.function(function).get_concrete_function(
        tf.TensorSpec([], tf.int64))


def int64(value):
    return tf.constant(value, tf.int64)


def failing(*where):
    """Numbers up to 8, of which some fail."""
    return numbers(8).map(lambda x: tf.cast(tf.debugging.check_numerics(
        tf.reduce_prod([1.0 / tf.cast(x - w, tf.float32) for w in where]),
        "one is infinite") * 0.0, tf.int64) + x)


def text(kind, value):
    value = np.asarray(value)
    dims = ",".join(str(d) for d in value.shape)
    if value.dtype == object or value.dtype.kind in "SU":
        values = [v if isinstance(v, bytes) else str(v).encode()
                  for v in value.ravel()]
        words = " ".join(f'"{v.decode()}"' for v in values)
        return f"{kind} string [{dims}] {words}".rstrip()
    name = {"float32": "float", "float64": "double"}.get(
        str(value.dtype), str(value.dtype))
    words = " ".join(
        repr(float(v)) if value.dtype.kind == "f" else str(int(v))
        for v in value.ravel())
    return f"{kind} {name} [{dims}] {words}".rstrip()


def components(element):
    """The tensors of an element, also those of sparse and ragged ones."""
    return tf.nest.flatten(element, expand_composites=True)


def build(made):
    """The init op or None, the fetches, and how often they are run."""
    if not isinstance(made, dict):
        iterator = v1.data.make_initializable_iterator(made)
        return iterator.initializer, components(iterator.get_next()), MOST
    if "one_shot" in made:
        iterator = v1.data.make_one_shot_iterator(made["one_shot"])
        return None, components(iterator.get_next()), MOST
    return made.get("init"), made["fetches"], made.get("runs", 1)


def strip(graph_def):
    """Without what does not count, which is half of it."""
    functions = list(graph_def.library.function)
    for nodes in [graph_def.node] + [f.node_def for f in functions]:
        for node in nodes:
            node.ClearField("experimental_debug_info")
            for attr in ("_class", "metadata", "_xla_inferred_shapes"):
                if attr in node.attr and node.op != "OptionsDataset":
                    del node.attr[attr]
    return graph_def


def record(cases, others, folder):
    """Writes datasets.pb and datasets.txt: what the cases, which make
    pipelines, give. `others` make more of the graph."""
    v1.disable_eager_execution()
    tf.autograph.set_verbosity(0)
    with tf.Graph().as_default() as graph:
        built = {}
        for name, make in cases.items():
            with tf.name_scope(name):
                built[name] = build(make())
        for make in others:
            with tf.name_scope(make.__name__):
                make()
    lines = []
    with v1.Session(graph=graph) as session:
        for name, (init, fetches, runs) in built.items():
            lines.append(f"case {name}")
            if init is not None:
                lines.append(f"init {init.name}")
                session.run(init)
            lines += [f"fetch {f.name}" for f in fetches]
            for _ in range(runs):
                try:
                    values = session.run(fetches)
                except tf.errors.OpError as error:
                    code = type(error).__name__.replace("Error", "")
                    lines.append(f"error {code}")
                    if isinstance(error, tf.errors.OutOfRangeError):
                        break
                    continue
                lines.append("element")
                lines += [text("value", v) for v in values]
    graph_def = strip(graph.as_graph_def())
    (folder / "datasets.pb").write_bytes(graph_def.SerializeToString())
    (folder / "datasets.txt").write_text("\n".join(lines) + "\n")
