"""Models that TensorFlow 2 exports: each function trains one, in TensorFlow,
for some steps, and writes it as it was before with a recording of the losses.

The train step is a signature: its gradients and its optimizer are ops of the
graph. `small` makes models of a few hundred weights.
"""

import keras
import numpy as np
import tensorflow as tf

from .recording import Recording


def rows_of(recording, feeds, batch, steps):
    """The feeds of each step, as tensors."""
    for name, rows in feeds.items():
        recording.feed(name, rows)
    for k in range(steps):
        yield {name: tf.constant(rows[k * batch:(k + 1) * batch])
               for name, rows in feeds.items()}


def record(folder, batch, steps, feeds, train, predict, save):
    """`train` and `predict` are functions of named tensors; `save` writes."""
    recording = Recording(folder, "model", batch, "loss", signature="train")
    save()
    first = None
    for tensors in rows_of(recording, feeds, batch, steps):
        first = first or {"x": tensors["x"]}
        recording.loss(train(**tensors)["loss"])
    recording.predict(first, "y", predict(**first)["y"], signature="predict")
    recording.write()


def pictures(batch, steps, side, classes, seed):
    """Bars whose place is their class, in noise."""
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=batch * steps).astype(np.int64)
    x = random.normal(0, 0.3, size=(batch * steps, side, side, 1))
    for row, label in zip(x, y):
        row[label % side, :, 0] += 1
    return x.astype(np.float32), y


def keras_cnn(folder, steps, small=False):
    """Convolutions, batch normalisation and dropout, with Adam."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(1)
    side, filters, batch = (6, 2, 4) if small else (20, 16, 32)
    model = keras.Sequential([
        keras.layers.Input((side, side, 1)),
        keras.layers.Conv2D(filters, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.MaxPooling2D(2),
        keras.layers.Dropout(0.25),
        keras.layers.Flatten(),
        keras.layers.Dense(5),
    ])
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)

    def train(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return {"loss": loss}

    def predict(x):
        return {"y": model(x, training=False)}

    image = tf.TensorSpec([None, side, side, 1], tf.float32, name="x")
    label = tf.TensorSpec([None], tf.int64, name="y")
    train = tf.function(train, input_signature=[image, label])
    predict = tf.function(predict, input_signature=[image])

    def save():
        archive = keras.export.ExportArchive()
        archive.track(model)
        archive.track(optimizer)
        archive.add_endpoint("train", train)
        archive.add_endpoint("predict", predict)
        archive.write_out(str(folder / "model"), verbose=False)

    x, y = pictures(batch, steps, side, 5, 1)
    record(folder, batch, steps, {"x": x, "y": y}, train, predict, save)


def keras_lstm(folder, steps, small=False):
    """An LSTM, whose gradient is a loop over tensor lists, with clipping."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(2)
    length, width, units, batch = (4, 2, 3, 2) if small else (28, 8, 32, 32)
    model = keras.Sequential([
        keras.layers.Input((length, width)),
        keras.layers.LSTM(units),
        keras.layers.Dense(1),
    ])
    loss_of = keras.losses.MeanSquaredError()
    optimizer = keras.optimizers.Adam(0.02, global_clipnorm=1.0)
    optimizer.build(model.trainable_variables)

    class Trainer(tf.Module):
        def __init__(self):
            super().__init__()
            self.model = model
            self.optimizer = [v.value for v in optimizer.variables]

        @tf.function(input_signature=[
            tf.TensorSpec([None, length, width], tf.float32, name="x"),
            tf.TensorSpec([None, 1], tf.float32, name="y")])
        def train(self, x, y):
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(
                zip(gradients, model.trainable_variables))
            return {"loss": loss}

        @tf.function(input_signature=[
            tf.TensorSpec([None, length, width], tf.float32, name="x")])
        def predict(self, x):
            return {"y": model(x, training=False)}

    trainer = Trainer()

    def save():
        tf.saved_model.save(trainer, str(folder / "model"),
                            signatures={"train": trainer.train,
                                        "predict": trainer.predict})

    random = np.random.default_rng(2)
    x = random.normal(size=(batch * steps, length, width)).astype(np.float32)
    y = np.tanh(x[:, :, 0].cumsum(1)[:, -1:] / 4).astype(np.float32)
    record(folder, batch, steps, {"x": x, "y": y}, trainer.train,
           trainer.predict, save)


def module_with_loop(folder, steps, small=False):
    """A while_loop with a conditional, by data, in the train step; a word list
    from an asset, a generator's noise, momentum written by hand."""
    width, batch = (3, 2) if small else (24, 16)
    random = np.random.default_rng(3)
    (folder / "words.txt").write_text("zero\none\ntwo\nthree\n")

    class Trainer(tf.Module):
        def __init__(self):
            super().__init__()
            start = random.normal(0, 0.5, size=(width, width))
            self.weight = tf.Variable(start, dtype=tf.float32, name="weight")
            self.bias = tf.Variable(tf.zeros([width]), name="bias")
            self.speed = [tf.Variable(tf.zeros_like(v), name="speed",
                                      trainable=False)
                          for v in (self.weight, self.bias)]
            self.step = tf.Variable(0, dtype=tf.int64, name="step",
                                    trainable=False)
            self.noise = tf.random.Generator.from_seed(7)
            self.words = tf.saved_model.Asset(str(folder / "words.txt"))
            self.trips = tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer(
                    self.words, tf.string,
                    tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                    tf.lookup.TextFileIndex.LINE_NUMBER), -1)

        def state_after(self, x, trips):
            def body(i, state):
                state = tf.cond(
                    tf.equal(i % 2, 0),
                    lambda: tf.tanh(state @ self.weight + self.bias),
                    lambda: state + 0.1 * (state @ self.weight))
                return i + 1, state

            return tf.while_loop(lambda i, _: i < trips, body,
                                 [tf.constant(0, tf.int64), x])[1]

        @tf.function(input_signature=[
            tf.TensorSpec([None, width], tf.float32, name="x"),
            tf.TensorSpec([None, width], tf.float32, name="y"),
            tf.TensorSpec([None], tf.string, name="word")])
        def train(self, x, y, word):
            trips = tf.reduce_max(self.trips.lookup(word))
            noisy = x + 0.05 * self.noise.normal(tf.shape(x))
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.state_after(noisy, trips) - y)**2)
            variables = [self.weight, self.bias]
            gradients = tape.gradient(
                loss, variables,
                unconnected_gradients=tf.UnconnectedGradients.ZERO)
            for variable, speed, gradient in zip(variables, self.speed,
                                                 gradients):
                speed.assign(0.9 * speed + gradient)
                variable.assign_sub(0.1 * speed)
            self.step.assign_add(1)
            return {"loss": loss, "step": self.step.read_value()}

        @tf.function(input_signature=[
            tf.TensorSpec([None, width], tf.float32, name="x")])
        def predict(self, x):
            return {"y": self.state_after(x, tf.constant(3, tf.int64))}

    trainer = Trainer()

    def save():
        tf.saved_model.save(trainer, str(folder / "model"),
                            signatures={"train": trainer.train,
                                        "predict": trainer.predict})

    rows = batch * steps
    x = random.normal(size=(rows, width)).astype(np.float32)
    turn = random.normal(0, 0.5, size=(width, width)).astype(np.float32)
    words = np.array([b"zero", b"one", b"two", b"three"])
    feeds = {"x": x, "y": np.tanh(x @ turn),
             "word": words[random.integers(4, size=rows)]}
    record(folder, batch, steps, feeds, trainer.train, trainer.predict, save)
    (folder / "words.txt").unlink()
