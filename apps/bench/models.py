"""Keras models in TensorFlow, for `tagflow bench models`.

usage: models.py MANIFEST

MANIFEST is JSON: {"folder", "repeats", "losses", "models": [{"name",
"batch"}]}. Prints "ready VERSION". Then answers each line of stdin, an index
into the models: the first time it makes the model, with random weights by a
fixed seed, and writes into the folder, of a model that is run forward,

  NAME.pb                  the GraphDef, functions inlined, variables constants
  NAME                     the SavedModel, with variables: signature "forward"
  NAME.feed.npy            the input, x
  NAME.fetch.npy           the result of the eager model, y

or, of a train step,

  NAME                     the SavedModel: signature "train"
  NAME.x.npy, NAME.y.npy   its inputs, a batch
  NAME.losses.npy          the results of its first steps, so many as `losses`

and prints {"how", "seconds"} as JSON, of a run of the frozen graph or a train
step, and for a frozen graph the names of its tensors, "feed" and "fetch". "how"
names the fastest way: as a ConcreteFunction of TensorFlow 2, in a session of a
v1 graph, or, for a train step, as a signature of the loaded model. TensorFlow
has its defaults, with all optimisers. When it is asked again, it times the
fastest way again.
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


def perceptron():
    """Two layers and plain gradient descent: the step is its products."""
    inputs = tf.keras.Input((784,))
    hidden = LAYERS.Dense(512, activation="relu")(inputs)
    return (tf.keras.Model(inputs, LAYERS.Dense(10)(hidden)), (784,),
            tf.keras.optimizers.SGD(0.01))


def trained_lstm():
    inputs = tf.keras.Input((28, 28))
    last = LAYERS.LSTM(128)(inputs)
    return (tf.keras.Model(inputs, LAYERS.Dense(10)(last)), (28, 28),
            tf.keras.optimizers.Adam(0.001))


MODELS = {
    "mobilenet": mobilenet,
    "resnet": resnet,
    "efficientnet": efficientnet,
    "lstm": lstm,
    "bigru": bigru,
    "transformer": transformer,
}
# Classifiers of ten classes, and their optimisers.
TRAINED = {
    "mlp_train": perceptron,
    "lstm_train": trained_lstm,
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


class Variables(tf.Module):
    """What a SavedModel keeps: these and no more."""

    def __init__(self, *lists):
        super().__init__()
        self.kept = [v.value for variables in lists for v in variables]


class Timed:
    """Ways to run the same, of which the fastest counts."""

    def __init__(self, repeats, calls):
        self.repeats = repeats
        times = {how: self.seconds(call) for how, call in calls.items()}
        self.how = min(times, key=times.get)
        self.call = calls[self.how]
        self.first = times[self.how]

    def seconds(self, call=None):
        call = call or self.call
        times = []
        for i in range(self.repeats + 2):
            start = time.perf_counter()
            call()
            if i > 1:  # the first ones warm up
                times.append(time.perf_counter() - start)
        return statistics.median_low(times)


class Forward(Timed):
    """A frozen model."""

    def __init__(self, path, name, batch, manifest):
        model, shape = MODELS[name]()
        randomise(model)
        shape = (batch,) + shape
        random = np.random.default_rng(SEED + 1)
        self.x = random.uniform(-1, 1, shape).astype(np.float32)
        eager = model(self.x, training=False).numpy()
        function = tf.function(lambda x: {"y": model(x, training=False)})
        concrete = function.get_concrete_function(
            tf.TensorSpec((None,) + shape[1:], tf.float32, name="x"))
        frozen = convert_to_constants.convert_variables_to_constants_v2(
            concrete)
        self.names = {"feed": frozen.inputs[0].name,
                      "fetch": frozen.outputs[0].name}
        with open(path + ".pb", "wb") as file:
            file.write(frozen.graph.as_graph_def().SerializeToString())
        tf.saved_model.save(Variables(model.variables), path,
                            signatures={"forward": concrete})
        np.save(path + ".feed.npy", self.x)
        np.save(path + ".fetch.npy", eager)
        super().__init__(manifest["repeats"],
                         {"ConcreteFunction": self.by_function(frozen),
                          "session": self.by_session(frozen)})

    def by_function(self, frozen):
        x = tf.constant(self.x)
        return lambda: [y.numpy() for y in tf.nest.flatten(frozen(x))]

    def by_session(self, frozen):
        v1 = tf.compat.v1
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(frozen.graph.as_graph_def(), name="")
        session = v1.Session(graph=graph)
        call = session.make_callable(
            [graph.get_tensor_by_name(self.names["fetch"])],
            [graph.get_tensor_by_name(self.names["feed"])])
        return lambda: call(self.x)


class Train(Timed):
    """A train step: loss, gradients and updates, always of the same batch.
    Each way has variables of its own."""

    def __init__(self, path, name, batch, manifest):
        model, shape, optimizer = TRAINED[name]()
        optimizer.build(model.trainable_variables)
        loss_of = tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True)

        def train(x, y):
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(
                zip(gradients, model.trainable_variables))
            return {"loss": loss}

        concrete = tf.function(train).get_concrete_function(
            tf.TensorSpec((None,) + shape, tf.float32, name="x"),
            tf.TensorSpec((None,), tf.int64, name="y"))
        tf.saved_model.save(Variables(model.variables, optimizer.variables),
                            path, signatures={"train": concrete})
        random = np.random.default_rng(SEED + 1)
        x = random.normal(size=(batch,) + shape).astype(np.float32)
        y = random.integers(10, size=batch)
        np.save(path + ".x.npy", x)
        np.save(path + ".y.npy", y)
        tensors = {"x": tf.constant(x), "y": tf.constant(y)}
        loaded = tf.saved_model.load(path)
        signature = loaded.signatures["train"]
        losses = [signature(**tensors)["loss"].numpy()
                  for _ in range(manifest["losses"])]
        np.save(path + ".losses.npy", np.array(losses, np.float32))
        self.names = {}
        self.kept = loaded  # whose variables the signature only refers to
        super().__init__(manifest["repeats"], {
            "ConcreteFunction": lambda: concrete(**tensors)["loss"].numpy(),
            "signature": lambda: signature(**tensors)["loss"].numpy(),
            "session": self.by_session(path, x, y)})

    @staticmethod
    def by_session(path, x, y):
        v1 = tf.compat.v1
        graph = tf.Graph()
        with graph.as_default():
            session = v1.Session(graph=graph)
            loaded = v1.saved_model.loader.load(session, ["serve"], path)
        train = loaded.signature_def["train"]
        call = session.make_callable(
            train.outputs["loss"].name,
            [train.inputs["x"].name, train.inputs["y"].name])
        return lambda: call(x, y)


def make(name, batch, manifest):
    tf.keras.utils.set_random_seed(SEED)
    path = os.path.join(manifest["folder"], name)
    kind = Forward if name in MODELS else Train
    return kind(path, name, batch, manifest)


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
            model = models[name] = make(name, entry["batch"], manifest)
            seconds = model.first
        print(json.dumps({**model.names, "how": model.how,
                          "seconds": seconds}), flush=True)


main()
