"""Graphs of random ops, what TensorFlow makes of them, and case folders.

TensorFlow runs in a process of its own, since some of the inputs end it. The
folders are what `tagflow conform` replays.
"""
import base64
import json
import multiprocessing as mp
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np


def tf_name(array):
    import tensorflow as tf
    return tf.string if array.dtype == object else tf.as_dtype(array.dtype)


def full_attrs(op_def, inputs, attrs):
    import tensorflow as tf
    full = dict(attrs)
    for arg, value in zip(op_def.input_arg, inputs):
        items = value if isinstance(value, list) else [value]
        if arg.number_attr:
            full.setdefault(arg.number_attr, len(items))
        if arg.type_list_attr:
            full.setdefault(arg.type_list_attr,
                            [tf_name(i).name for i in items])
        if arg.type_attr and items:
            full.setdefault(arg.type_attr, tf_name(items[0]).name)
    return full


def set_attr(proto, kind, value):
    import tensorflow as tf
    from tensorflow.python.framework import tensor_shape

    def enum(v):
        return tf.as_dtype(v).as_datatype_enum

    if kind == "type":
        proto.type = enum(value)
    elif kind == "int":
        proto.i = int(value)
    elif kind == "float":
        proto.f = value
    elif kind == "bool":
        proto.b = value
    elif kind == "string":
        proto.s = value.encode() if isinstance(value, str) else value
    elif kind == "shape":
        proto.shape.CopyFrom(tensor_shape.TensorShape(
            None if value is None else
            [None if d == -1 else d for d in value]).as_proto())
    elif kind.startswith("list"):
        proto.list.SetInParent()
        inner = kind[5:-1]
        for v in value:
            if inner == "int":
                proto.list.i.append(v)
            elif inner == "type":
                proto.list.type.append(enum(v))
            elif inner == "string":
                proto.list.s.append(v.encode())
            elif inner == "float":
                proto.list.f.append(v)
            elif inner == "shape":
                proto.list.shape.append(tensor_shape.TensorShape(v).as_proto())
            else:
                raise ValueError(kind)
    else:
        raise ValueError(kind)


class Program:
    """A graph in the making: inputs are arrays or "node:port" strings."""

    def __init__(self, constants=False):
        from tensorflow.core.framework import graph_pb2
        self.graph = graph_pb2.GraphDef()
        self.graph.versions.producer = 2000
        self.feeds = {}
        self.constants = constants
        self.fetches = []
        self.ops = []

    def input(self, array):
        from tensorflow.python.framework import tensor_util
        array = np.asarray(array)
        node = self.graph.node.add()
        node.name = "in%d" % len(self.graph.node)
        dtype = tf_name(array)
        node.attr["dtype"].type = dtype.as_datatype_enum
        if self.constants:
            node.op = "Const"
            node.attr["value"].tensor.CopyFrom(
                tensor_util.make_tensor_proto(array, dtype, array.shape))
        else:
            node.op = "Placeholder"
            self.feeds[node.name + ":0"] = array
        return node.name + ":0"

    def add(self, op, inputs, attrs, control=()):
        """Returns the names of the node's outputs (by its OpDef)."""
        from tensorflow.python.framework import op_def_registry
        op_def = op_def_registry.get(op)
        refs, arrays = [], []
        full = dict(attrs)
        concrete = [([a for a in v] if isinstance(v, list) else v)
                    for v in inputs]
        if not any(isinstance(i, str) for v in concrete
                   for i in (v if isinstance(v, list) else [v])):
            full = full_attrs(op_def, concrete, attrs)
        else:
            for arg, v in zip(op_def.input_arg, concrete):
                if arg.type_attr and not isinstance(v, (str, list)):
                    full.setdefault(arg.type_attr, tf_name(v).name)
                if arg.number_attr and isinstance(v, list):
                    full.setdefault(arg.number_attr, len(v))
        for v in concrete:
            for i in (v if isinstance(v, list) else [v]):
                refs.append(i if isinstance(i, str) else self.input(i))
        node = self.graph.node.add()
        node.name = "n%d" % len(self.graph.node)
        node.op = op
        self.ops.append(op)
        node.input.extend(refs)
        node.input.extend("^" + c.split(":")[0] for c in control)
        kinds = {a.name: a.type for a in op_def.attr}
        for name, value in full.items():
            if name not in kinds:
                raise ValueError("%s has no %s" % (op, name))
            set_attr(node.attr[name], kinds[name], value)
        count = 0
        for arg in op_def.output_arg:
            if arg.number_attr:
                n = full.get(arg.number_attr)
                count += max(int(n), 0) if n is not None else 1
            elif arg.type_list_attr:
                count += len(full[arg.type_list_attr])
            else:
                count += 1
        return [f"{node.name}:{i}" for i in range(count)]


# --- TensorFlow, in a process of its own -----------------------------------

CODES = {1: "CancelledError", 2: "UnknownError", 3: "InvalidArgumentError",
         4: "DeadlineExceededError", 5: "NotFoundError",
         6: "AlreadyExistsError", 8: "ResourceExhaustedError",
         9: "FailedPreconditionError", 11: "OutOfRangeError",
         12: "UnimplementedError", 13: "InternalError"}


def _serve(pipe):
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (10 << 30, 10 << 30))
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    import tensorflow as tf
    from tensorflow.core.framework import graph_pb2
    from tensorflow.core.protobuf import rewriter_config_pb2
    tf.compat.v1.disable_eager_execution()
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1,
                                      inter_op_parallelism_threads=1)
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    while True:
        text, feeds, fetches = pipe.recv()
        try:
            with tf.Graph().as_default() as g:
                gd = graph_pb2.GraphDef.FromString(text)
                try:
                    tf.compat.v1.import_graph_def(gd, name="")
                except ValueError as e:
                    pipe.send(("error", "InvalidArgumentError",
                               "import: " + str(e)[:300]))
                    continue
                with tf.compat.v1.Session(config=config) as s:
                    out = s.run([f if ":" in f else g.get_operation_by_name(f)
                                 for f in fetches], feeds)
            pipe.send(("ok", [None if o is None else np.asarray(o)
                              for o in out], ""))
        except tf.errors.OpError as e:
            pipe.send(("error", CODES[e.error_code], e.message[:300]))
        except Exception as e:  # what Python itself refuses
            pipe.send(("python", type(e).__name__, str(e)[:300]))


class TensorFlow:
    """`fill` is for what fresh memory holds: results that two instances of
    different fill do not share were never written.
    """

    def __init__(self, fill=0):
        self.child = None
        self.fill = fill

    def start(self):
        os.environ["MALLOC_PERTURB_"] = str(self.fill)
        context = mp.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.child = context.Process(target=_serve, args=(other,), daemon=True)
        self.child.start()
        other.close()

    def run(self, program):
        if self.child is None:
            self.start()
        self.pipe.send((program.graph.SerializeToString(), program.feeds,
                        program.fetches))
        try:
            if not self.pipe.poll(120):
                self.child.kill()
                self.child = None
                return "hang", None, ""
            return self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.child.join()
            code = self.child.exitcode
            self.child = None
            return "crash", code, ""


# --- Folders for `tagflow conform` ------------------------------------------

def write_array(folder, name, array):
    array = np.asarray(array)
    if array.dtype == object or array.dtype.kind in "SU":
        flat = [x if isinstance(x, bytes) else x.encode()
                for x in array.astype(object).ravel().tolist()]
        text = {"dtype": "string", "shape": list(array.shape),
                "base64": [base64.b64encode(x).decode() for x in flat]}
        (folder / (name + ".json")).write_text(json.dumps(text))
        return name + ".json"
    np.save(folder / (name + ".npy"),
            np.ascontiguousarray(array).reshape(array.shape))
    return name + ".npy"


def write_case(root, name, program, outcome):
    folder = pathlib.Path(root) / name
    folder.mkdir(parents=True)
    (folder / "graph.pb").write_bytes(program.graph.SerializeToString())
    run = {"targets": [f for f in program.fetches if ":" not in f],
           "fetches": [f for f in program.fetches if ":" in f],
           "feeds": {}}
    for i, (port, array) in enumerate(program.feeds.items()):
        run["feeds"][port] = write_array(folder, "feed%d" % i, array)
    kind, value, message = outcome
    if kind == "ok":
        value = [v for f, v in zip(program.fetches, value) if ":" in f]
        run["expect"] = [write_array(folder, "out%d" % i, v)
                         for i, v in enumerate(value)]
    else:
        run["error"] = {"code": value, "message": message}
    (folder / "case.json").write_text(json.dumps(
        {"name": name, "origin": "random", "ops": program.ops, "devices": [],
         "runs": [run]}))
