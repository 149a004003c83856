"""Frozen Keras models in TensorFlow, for `tagflow bench models`.

usage: models.py MANIFEST

MANIFEST is JSON: {"folder", "repeats", "models": [{"name", "batch"}]}. Prints
"ready VERSION". Then answers each line of stdin, an index into the models: the
first time it makes the model, with random weights by a fixed seed, runs it
eagerly, freezes it, and writes into the folder

  NAME.pb                  the GraphDef, functions inlined, variables constants
  NAME.feed.npy            the input
  NAME.fetch.npy           the result of the eager model

and prints {"feed", "fetch", "how", "seconds"} as JSON: the names of the two
tensors, and the seconds of a run of the frozen graph. How that is run is
whichever is faster of a ConcreteFunction of TensorFlow 2, and a session of a
v1 graph; both with all optimisers, as TensorFlow comes. Later times it times
that one again.
"""
import json
import os
import statistics
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# TensorFlow greets on stderr, and Keras on stdout. Where they fail, Python
# says why after this.
stderr, stdout = os.dup(2), os.dup(1)
nowhere = os.open(os.devnull, os.O_WRONLY)
os.dup2(nowhere, 2)
os.dup2(nowhere, 1)
try:
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework import convert_to_constants
    tf.get_logger().setLevel("ERROR")
finally:
    os.dup2(stderr, 2)
    os.dup2(stdout, 1)

SEED = 7
LAYERS = tf.keras.layers


def picture_model(make):
    return make(weights=None, input_shape=(224, 224, 3),
                classifier_activation=None), (224, 224, 3)


def mobilenet():
    return picture_model(tf.keras.applications.MobileNetV2)


def resnet():
    return picture_model(tf.keras.applications.ResNet50)


def efficientnet():
    return picture_model(tf.keras.applications.EfficientNetB0)


def sequence_model(layer, shape):
    inputs = tf.keras.Input(shape)
    return tf.keras.Model(inputs, layer(inputs)), shape


def lstm():
    return sequence_model(LAYERS.LSTM(128), (100, 64))


def bigru():
    layer = LAYERS.Bidirectional(LAYERS.GRU(128, return_sequences=True))
    return sequence_model(layer, (100, 64))


def transformer():
    """Four layers of an encoder: attention of 8 heads, 256 wide."""
    inputs = tf.keras.Input((64, 256))
    x = inputs
    for _ in range(4):
        attended = LAYERS.MultiHeadAttention(num_heads=8, key_dim=32)(x, x)
        x = LAYERS.LayerNormalization(epsilon=1e-6)(x + attended)
        wide = LAYERS.Dense(1024, activation="gelu")(x)
        x = LAYERS.LayerNormalization(epsilon=1e-6)(
            x + LAYERS.Dense(256)(wide))
    return tf.keras.Model(inputs, x), (64, 256)


MODELS = {
    "mobilenet": mobilenet,
    "resnet": resnet,
    "efficientnet": efficientnet,
    "lstm": lstm,
    "bigru": bigru,
    "transformer": transformer,
}


def randomise(model):
    """Weights as after some training: what normalisations add and multiply
    by is no longer 0 and 1, which would be too easy."""
    random = np.random.default_rng(SEED)
    for variable in model.variables:
        shape = variable.shape
        where = variable.path
        if where.endswith(("moving_variance", "gamma")):
            value = random.uniform(0.8, 1.2, shape)
        elif where.endswith(("moving_mean", "beta", "bias")):
            value = random.uniform(-0.1, 0.1, shape)
        elif "kernel" in where and "normalization" not in where:
            continue  # as its initialiser made it, by the seed
        else:
            continue
        variable.assign(value.astype(np.float32))


class Model:
    """A frozen model, run in both ways."""

    def __init__(self, name, batch, manifest):
        tf.keras.utils.set_random_seed(SEED)
        model, shape = MODELS[name]()
        randomise(model)
        shape = (batch,) + shape
        random = np.random.default_rng(SEED + 1)
        self.x = random.uniform(-1, 1, shape).astype(np.float32)
        eager = model(self.x, training=False).numpy()
        function = tf.function(lambda x: model(x, training=False))
        concrete = function.get_concrete_function(
            tf.TensorSpec((None,) + shape[1:], tf.float32, name="x"))
        frozen = convert_to_constants.convert_variables_to_constants_v2(
            concrete)
        self.feed = frozen.inputs[0].name
        self.fetch = frozen.outputs[0].name
        path = os.path.join(manifest["folder"], name)
        with open(path + ".pb", "wb") as file:
            file.write(frozen.graph.as_graph_def().SerializeToString())
        np.save(path + ".feed.npy", self.x)
        np.save(path + ".fetch.npy", eager)
        self.repeats = manifest["repeats"]
        calls = {"ConcreteFunction": self.by_function(frozen),
                 "session": self.by_session(frozen)}
        times = {how: self.seconds(call) for how, call in calls.items()}
        self.how = min(times, key=times.get)
        self.call = calls[self.how]
        self.first = times[self.how]

    def by_function(self, frozen):
        x = tf.constant(self.x)
        return lambda: [y.numpy() for y in frozen(x)]

    def by_session(self, frozen):
        v1 = tf.compat.v1
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(frozen.graph.as_graph_def(), name="")
        session = v1.Session(graph=graph)
        call = session.make_callable(
            [graph.get_tensor_by_name(self.fetch)],
            [graph.get_tensor_by_name(self.feed)])
        return lambda: call(self.x)

    def seconds(self, call=None):
        call = call or self.call
        times = []
        for i in range(self.repeats + 2):
            start = time.perf_counter()
            call()
            if i > 1:  # the first ones warm up
                times.append(time.perf_counter() - start)
        return statistics.median_low(times)


def main():
    with open(sys.argv[1]) as file:
        manifest = json.load(file)
    models = {}
    print("ready", tf.__version__, flush=True)
    for line in sys.stdin:
        entry = manifest["models"][int(line)]
        name = entry["name"]
        if name in models:
            model = models[name]
            seconds = model.seconds()
        else:
            model = models[name] = Model(name, entry["batch"], manifest)
            seconds = model.first
        print(json.dumps({"feed": model.feed, "fetch": model.fetch,
                          "how": model.how, "seconds": seconds}), flush=True)


main()
