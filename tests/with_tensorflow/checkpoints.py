#!/usr/bin/env python3
"""TensorFlow reads our checkpoints and we read TensorFlow's, and the same with
the safetensors package.

usage: checkpoints.py      in a Python with tensorflow and safetensors;
                           TAGFLOW_BIN is the folder of the built programs
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import safetensors.numpy
import tensorflow as tf

TAGFLOW = pathlib.Path(os.environ["TAGFLOW_BIN"]).resolve() / "tagflow"
TYPES = [
    tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.string,
    tf.complex64, tf.int64, tf.bool, tf.bfloat16, tf.uint16, tf.complex128,
    tf.half, tf.uint32, tf.uint64,
]
SHAPES = [[], [0], [7], [3, 0, 2], [4, 5], [2, 3, 1, 4]]
checks = 0


def tagflow(*arguments, code=0):
    """What the command prints."""
    done = subprocess.run([TAGFLOW, *map(str, arguments)], check=False,
                          capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"tagflow {arguments}: {done.returncode}\n{done.stderr}")
    return done.stdout


def array_of(value):
    """Of a tensor, too: a scalar string of TensorFlow is not an array itself."""
    if isinstance(value, tf.Tensor):
        value = value.numpy()
    return np.asarray(value, object if isinstance(value, bytes) else None)


def same(what, actual, wanted):
    """Ends the program if two arrays differ."""
    global checks
    checks += 1
    actual, wanted = array_of(actual), array_of(wanted)
    if (actual.dtype != wanted.dtype or actual.shape != wanted.shape or
            not np.array_equal(actual, wanted)):
        sys.exit(f"{what}: {actual!r} is not {wanted!r}")


def random_tensor(random, dtype, shape):
    count = int(np.prod(shape))
    if dtype == tf.string:
        values = [random.bytes(random.integers(300)) for _ in range(count)]
        return tf.constant(values, tf.string, shape)
    if dtype == tf.bool:
        return tf.constant(random.integers(2, size=shape) == 1)
    values = random.integers(0, 100, size=shape)
    if dtype.is_complex:
        values = values + 1j * random.integers(0, 100, size=shape)
    return tf.constant(np.asarray(values).astype(dtype.as_numpy_dtype), dtype)


def random_tensors():
    random = np.random.default_rng(1)
    return {
        f"{dtype.name}/{len(shape)}_{i}": random_tensor(random, dtype, shape)
        for dtype in TYPES for i, shape in enumerate(SHAPES)
    }


def save(prefix, tensors):
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=list(tensors),
                      shape_and_slices=[""] * len(tensors),
                      tensors=list(tensors.values()))


def check_restored(what, prefix, tensors):
    """That TensorFlow finds just these in a checkpoint."""
    listed = dict(tf.train.list_variables(str(prefix)))
    if sorted(listed) != sorted(tensors):
        sys.exit(f"{what}: {sorted(listed)}")
    restored = tf.raw_ops.RestoreV2(
        prefix=str(prefix), tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        dtypes=[tensor.dtype for tensor in tensors.values()])
    for (name, wanted), actual in zip(tensors.items(), restored):
        same(f"{what}: {name}", actual, wanted)


def check_bundles(folder):
    tensors = random_tensors()
    save(folder / "theirs", tensors)
    listed = json.loads(tagflow("checkpoint", "ls", folder / "theirs", "--json"))
    for tensor in listed["tensors"]:
        same(tensor["name"], tensor["shape"],
             tensors[tensor["name"]].shape.as_list())
    for shards in (1, 2, 7):
        tagflow("checkpoint", "convert", folder / "theirs", folder / "ours",
                "--shards", shards)
        check_restored(f"{shards} shards", folder / "ours", tensors)
        tagflow("checkpoint", "diff", folder / "theirs", folder / "ours")


def check_slices(folder):
    """Partitioned variables of any number of dimensions."""
    random = np.random.default_rng(2)
    for case in range(20):
        shape = list(random.integers(2, 9, size=random.integers(1, 4)))
        whole = random_tensor(random, TYPES[case % len(TYPES)], shape)
        axis = random.integers(len(shape))
        cut = int(random.integers(1, shape[axis]))
        specs, parts = [], []
        for start, length in ((0, cut), (cut, int(shape[axis]) - cut)):
            text = ["-"] * len(shape)
            text[axis] = f"{start},{length}"
            specs.append(" ".join(map(str, shape)) + " " + ":".join(text))
            begin, size = [0] * len(shape), list(shape)
            begin[axis], size[axis] = start, length
            parts.append(tf.slice(whole, begin, size))
        prefix = folder / f"slices_{case}"
        tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=["t", "t"],
                          shape_and_slices=specs, tensors=parts)
        tagflow("checkpoint", "convert", prefix, folder / "whole")
        check_restored(specs[0], folder / "whole", {"t": whole})
        try:
            check_restored(specs[0], prefix, {"t": whole})
        except tf.errors.InvalidArgumentError:
            continue  # TensorFlow restores no slices of this type
        # Our own slices, restored by TensorFlow.
        graph = tf.Graph()
        with graph.as_default():
            tf.raw_ops.SaveV2(prefix=str(folder / "ours"),
                              tensor_names=["t", "t"], shape_and_slices=specs,
                              tensors=[part.numpy() for part in parts],
                              name="save")
        file = folder / "graph.pb"
        file.write_bytes(graph.as_graph_def().SerializeToString())
        tagflow("run", file, "--target", "save")
        check_restored(specs[0], folder / "ours", {"t": whole})
        same("the slice", tf.raw_ops.RestoreV2(
            prefix=str(folder / "ours"), tensor_names=["t"],
            shape_and_slices=[specs[1]], dtypes=[whole.dtype])[0], parts[1])


def check_savers(folder):
    """The graph of a TF1 saver restores in our engine, by slices too."""
    tensors = {"a": tf.constant([[1.0, 2.0], [3.0, 4.0]]),
               "b": tf.constant([b"x", b"yz"])}
    save(folder / "saver", tensors)
    graph = tf.Graph()
    with graph.as_default():
        a, part, b = tf.raw_ops.RestoreV2(
            prefix=str(folder / "saver"), tensor_names=["a", "a", "b"],
            shape_and_slices=["", "2 2 1,1:-", ""],
            dtypes=[tf.float32, tf.float32, tf.string])
        tf.identity(a, "whole")
        tf.identity(part, "part")
        tf.identity(b, "words")
    file = folder / "restore.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    out = json.loads(tagflow("run", file, "--json", "--fetch", "whole",
                             "--fetch", "part", "--fetch", "words"))
    values = [fetch["value"] for fetch in out["fetches"].values()]
    if values != [[[1, 2], [3, 4]], [[3, 4]], ["x", "yz"]]:
        sys.exit(f"restored {values}")


def check_checkpoints(folder):
    """What tf.train.Checkpoint and its manager write."""
    model = tf.train.Checkpoint(weight=tf.Variable([1.0, 2.0]),
                                step=tf.Variable(7, dtype=tf.int64))
    manager = tf.train.CheckpointManager(model, folder / "managed", 3)
    for _ in range(5):
        model.step.assign_add(1)
        manager.save()
    name = "step/.ATTRIBUTES/VARIABLE_VALUE"
    value = json.loads(tagflow("checkpoint", "cat", folder / "managed", name,
                               "--json"))
    same("the newest step", value["value"], 12)


def check_safetensors(folder):
    tensors = {
        name: np.asarray(tensor) for name, tensor in random_tensors().items()
        if tensor.dtype not in (tf.string, tf.complex128, tf.bfloat16)
    }
    safetensors.numpy.save_file(tensors, folder / "theirs.safetensors")
    tagflow("checkpoint", "convert", folder / "theirs.safetensors",
            folder / "bundle")
    check_restored("of safetensors", folder / "bundle",
                   {name: tf.constant(value) for name, value in tensors.items()})
    tagflow("checkpoint", "convert", folder / "bundle",
            folder / "ours.safetensors")
    read = safetensors.numpy.load_file(folder / "ours.safetensors")
    if sorted(read) != sorted(tensors):
        sys.exit(f"safetensors: {sorted(read)}")
    for name, wanted in tensors.items():
        same(name, read[name], wanted)


def training_graph(is_resource):
    """A graph that fits a plane with Adam, whose nodes value_0, ... read its
    variables: (graph, names of these)."""
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        random = np.random.default_rng(4)
        x = tf.constant(random.normal(size=(64, 3)), tf.float32)
        y = tf.matmul(x, tf.constant([[1.0], [-2.0], [0.5]])) + 3.0
        w = v1.get_variable("w", initializer=np.ones((3, 1), np.float32),
                            use_resource=is_resource)
        b = v1.get_variable("b", initializer=np.zeros(1, np.float32),
                            use_resource=is_resource)
        step = v1.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y), name="loss")
        v1.train.AdamOptimizer(0.05).minimize(loss, step, name="train")
        v1.global_variables_initializer()
        names = [v.op.name for v in v1.global_variables()]
        for i, variable in enumerate(v1.global_variables()):
            tf.identity(variable, name=f"value_{i}")
    return graph, names


def losses(session, count):
    values = []
    for _ in range(count):
        values.append(session.run("loss:0"))
        session.run("train")
    return values


def check_trainings(folder, is_resource):
    """A training goes from TensorFlow to us and back, with Adam's slots."""
    v1 = tf.compat.v1
    graph, names = training_graph(is_resource)
    values = [f"value_{i}:0" for i in range(len(names))]
    file = folder / "training.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    saves = folder / f"saves_{is_resource}"
    with v1.Session(graph=graph) as session:
        saver = v1.train.Saver()
        session.run("init")
        losses(session, 10)
        saver.save(session, str(saves / "model.ckpt"), global_step=10)
        wanted = losses(session, 20)
        last = session.run(values)
    listed = json.loads(tagflow("vars", file, "--json"))["variables"]
    same("the variables", sorted(v["name"] for v in listed), sorted(names))
    # A graph that comes with a checkpoint is not initialised.
    out = tagflow("run", saves / "model.ckpt-10.meta", "--init", "init",
                  "--fetch", "loss", "--target", "train", "--steps", 3, "--json")
    began = [json.loads(line)["fetches"]["loss"] for line in out.splitlines()]
    if not np.allclose(began, wanted[:3], rtol=1e-4):
        sys.exit(f"losses {began} instead of {wanted[:3]}")
    # The step that TensorFlow's file is of is not among its tensors.
    run = ["run", file, "--json", "--fetch", "loss", "--target", "train"]
    apart = []
    for steps in (5, 20):
        out = tagflow(*run, "--steps", steps, "--save", saves, "--keep", 2,
                      "--save-every", 1, "--passes", "none")
        apart += [json.loads(line)["fetches"]["loss"]
                  for line in out.splitlines()]
    if len(apart) != 20 or not np.allclose(apart, wanted, rtol=1e-4):
        sys.exit(f"losses {apart} instead of {wanted}")

    # TensorFlow's own view of the folder, and of what is in it.
    state = tf.train.get_checkpoint_state(str(saves))
    same("the newest", os.path.basename(state.model_checkpoint_path),
         "model.ckpt-20")
    # The last two of ours, and that of TensorFlow, which is not ours to remove.
    same("all", [os.path.basename(path)
                 for path in state.all_model_checkpoint_paths],
         ["model.ckpt-10", "model.ckpt-19", "model.ckpt-20"])
    reader = tf.train.load_checkpoint(str(saves))
    same("our step", reader.get_tensor("_tagflow/step"), np.int64(20))
    with v1.Session(graph=graph) as session:
        v1.train.Saver().restore(session, tf.train.latest_checkpoint(str(saves)))
        restored = session.run(values)
    for name, ours, theirs in zip(names, restored, last):
        if not np.allclose(ours, theirs, rtol=1e-3, atol=1e-5):
            sys.exit(f"{name}: {ours} instead of {theirs}")
        same(f"read again: {name}", reader.get_tensor(name), ours)

    # The same by way of safetensors, in both directions.
    tagflow("checkpoint", "convert", saves, folder / "ours.safetensors")
    read = safetensors.numpy.load_file(folder / "ours.safetensors")
    changed = {}
    for name, value in zip(names, restored):
        same(f"in safetensors: {name}", read[name], value)
        changed[name] = np.asarray(value + 1)
    safetensors.numpy.save_file(changed, folder / "theirs.safetensors")
    fetches = [part for value in values for part in ("--fetch", value)]
    out = json.loads(tagflow("run", file, "--json", "--restore",
                             folder / "theirs.safetensors", *fetches))
    for name, fetched in zip(names, out["fetches"].values()):
        value = np.asarray(fetched["value"], changed[name].dtype)
        same(f"of safetensors: {name}", value, changed[name])


def check_workers(folder):
    """TensorFlow reads what the workers of a cluster have written, and it is
    what one process writes."""
    graphs = pathlib.Path(__file__).parents[1] / "apps" / "graphs"
    line = ["run", graphs / "line.pbtxt", "--init", "init", "--target", "train",
            "--feed", f"x=@{graphs}/line_x.json",
            "--feed", f"y=@{graphs}/line_y.json", "--seed", 7, "--steps", 50]
    tagflow(*line, "--save", folder / "one_process")
    cluster = subprocess.Popen(
        [TAGFLOW, "cluster", "start", "3", "--checkpoints", folder,
         "--file", folder / "c.json"], stdout=subprocess.PIPE, text=True)
    try:
        if not cluster.stdout.readline().startswith("ready: "):
            sys.exit("there is no cluster")
        tagflow(*line, "--save", folder / "shards", "--cluster",
                folder / "c.json", "--scatter", 5, "--save-on", "workers")
    finally:
        cluster.terminate()
        cluster.wait()
    if not list((folder / "shards").glob("model.ckpt-50.data-00001-of-*")):
        sys.exit("the workers have written no shard")
    ours, theirs = (tf.train.load_checkpoint(str(folder / name))
                    for name in ("shards", "one_process"))
    names = ours.get_variable_to_shape_map()
    if names.keys() != theirs.get_variable_to_shape_map().keys():
        sys.exit(f"the checkpoint of workers has {sorted(names)}")
    for name in names:
        same(f"of workers: {name}", ours.get_tensor(name),
             theirs.get_tensor(name))


class Plane(tf.Module):
    """A plane that is fitted by momentum, with noise that is drawn here."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.zeros([3, 1]), name="w")
        self.slot = tf.Variable(tf.zeros([3, 1]), name="w/momentum")

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
    def predict(self, x):
        return {"y": x @ self.w}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x"),
                                  tf.TensorSpec([None, 1], name="y")])
    def train(self, x, y):
        error = x @ self.w - y + 0.01 * tf.random.normal(tf.shape(y))
        gradient = tf.matmul(x, error, transpose_a=True) / 4.0
        self.slot.assign(0.5 * self.slot + gradient)
        self.w.assign_sub(0.1 * self.slot)
        return {"loss": tf.reduce_mean(error * error)}


def check_saved_model(folder):
    """A SavedModel is trained in parts as at once, and predicts by what came of
    it; its own checkpoint is where all begin."""
    module = Plane()
    module.w.assign([[1.0], [2.0], [3.0]])
    model = folder / "plane"
    tf.saved_model.save(module, str(model), signatures={
        "train": module.train.get_concrete_function(),
        "predict": module.predict.get_concrete_function()})
    random = np.random.default_rng(6)
    x = random.normal(size=(50, 3)).astype(np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", x @ np.float32([[-1.0], [0.5], [2.0]]))

    def train(saves, steps, *more):
        out = tagflow("run", model, "--signature", "train", "--json",
                      "--feed", f"x=@{folder}/x.npy",
                      "--feed", f"y=@{folder}/y.npy", "--batch", 4,
                      "--seed", 5, "--steps", steps, "--save", saves, *more)
        return [json.loads(line) for line in out.splitlines()]

    at_once = train(folder / "at_once", 60)
    parts = [line for steps in (1, 17, 60)
             for line in train(folder / "parts", steps, "--save-every", 5)]
    if parts != at_once or len(parts) != 60:
        sys.exit(f"{parts} instead of {at_once}")
    if parts[-1]["fetches"]["loss"] > parts[0]["fetches"]["loss"] / 100:
        sys.exit(f"nothing is learned: {parts}")

    def predict(*more):
        out = tagflow("run", model, "--signature", "predict", "--json",
                      "--feed", "x=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]", *more)
        return np.float32(json.loads(out)["fetches"]["y"]["value"])

    same("the model's own weights", predict(), np.float32([[1], [2], [3]]))
    weights = predict("--restore", folder / "parts")
    if not np.allclose(weights, [[-1], [0.5], [2]], atol=0.05):
        sys.exit(f"the weights are {weights}")
    same("the weights of both", predict("--restore", folder / "at_once"),
         weights)
    names = [v["name"] for v in
             json.loads(tagflow("vars", model, "--json"))["variables"]]
    if len(names) != 2:
        sys.exit(f"the variables are {names}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_bundles(folder)
        check_slices(folder)
        check_savers(folder)
        check_checkpoints(folder)
        check_safetensors(folder)
        for is_resource in (False, True):
            check_trainings(folder, is_resource)
        check_saved_model(folder)
        check_workers(folder)
    print(f"checkpoints: {checks} tensors are the same")


if __name__ == "__main__":
    main()
