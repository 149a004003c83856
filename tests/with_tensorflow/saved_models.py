#!/usr/bin/env python3
"""SavedModels of all makers run here as they do in TensorFlow: every signature,
with variables, tables, assets and init ops.

usage: saved_models.py     in a Python with tensorflow; TAGFLOW_BIN is the
                           folder of the built programs
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
TAGFLOW = pathlib.Path(os.environ["TAGFLOW_BIN"]).resolve() / "tagflow"
checks = 0


def run(model, signature, inputs, code=0):
    """What a signature gives, or the message of its error."""
    arguments = [TAGFLOW, "run", model, "--json", "--signature", signature]
    for name, value in inputs.items():
        text = json.dumps(np.asarray(value).tolist())
        arguments += ["--feed", f"{name}={text}"]
    done = subprocess.run(arguments, check=False, capture_output=True,
                          text=True)
    if done.returncode != code:
        sys.exit(f"tagflow run {model}: {done.returncode}\n{done.stderr}")
    return done.stderr if code else {
        name: fetch["value"]
        for name, fetch in json.loads(done.stdout)["fetches"].items()}


def check(what, model, signature, inputs, wanted):
    global checks
    actual = run(model, signature, inputs)
    for name, value in wanted.items():
        value = np.asarray(value)
        if value.dtype.kind in "OS":
            same = actual[name] == [text.decode() for text in value.ravel()]
        else:
            same = np.allclose(actual[name], value, 1e-5, 1e-6)
        if not same:
            sys.exit(f"{what}: {name} is {actual[name]}, not {value}")
        checks += 1


def check_keras(folder):
    keras.utils.set_random_seed(3)
    inputs = keras.layers.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3, activation="relu")(inputs)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    model = keras.Model(inputs, keras.layers.Dense(2, activation="softmax")(x))
    images = np.random.default_rng(3).normal(size=(2, 8, 8, 3))
    wanted = model(images.astype(np.float32)).numpy()
    model.export(folder / "keras", verbose=False)
    loaded = tf.saved_model.load(str(folder / "keras"))
    signature = loaded.signatures["serving_default"]
    (name,) = signature.structured_outputs
    (argument,) = signature.structured_input_signature[1]
    check("Keras' export", folder / "keras", "serving_default",
          {argument: images}, {name: wanted})


class Module(tf.Module):
    """Variables of one name, a table from an asset, two signatures."""

    def __init__(self, words):
        super().__init__()
        self.a = tf.Variable([1.0, 2.0], name="v")
        self.b = tf.Variable([3.0, 4.0], name="v")
        self.more = {"c": tf.Variable(5.0, name="v")}
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                words, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)

    @tf.function(input_signature=[tf.TensorSpec([2], name="x")])
    def line(self, x):
        return {"y": self.a * x + self.b * self.more["c"]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="w")])
    def find(self, w):
        return {"at": self.table.lookup(w), "joined": tf.strings.join([w, w])}


def check_modules(folder):
    words = folder / "words.txt"
    words.write_text("red\ngreen\nblue\n")
    module = Module(str(words))
    for skips in (False, True):
        path = folder / f"module_{skips}"
        tf.saved_model.save(
            module, str(path),
            {"line": module.line, "find": module.find},
            tf.saved_model.SaveOptions(experimental_skip_saver=skips))
        check("a module", path, "line", {"x": [10.0, 20.0]},
              module.line(tf.constant([10.0, 20.0])))
        check("its table", path, "find", {"w": ["blue", "pink"]},
              module.find(tf.constant(["blue", "pink"])))
    (path / "assets" / "words.txt").unlink()
    if "words.txt" not in run(path, "line", {"x": [0.0, 0.0]}, code=3):
        sys.exit("a missing asset is not named")


def check_builder(folder, version=None, sharded=True):
    """TensorFlow 1's builder, with an init op that fills a table."""
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [2], name="x")
        weight = v1.get_variable("weight", initializer=tf.constant([2.0, 3.0]),
                                 use_resource=False)
        parts = v1.get_variable(
            "parts", [4, 1], partitioner=v1.fixed_size_partitioner(2),
            initializer=v1.ones_initializer())
        asset = tf.constant(str(folder / "words.txt"))
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
        table = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(
                asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER), 1)
        word = v1.placeholder(tf.string, [None], name="word")
        outputs = {"y": x * weight + tf.reduce_sum(tf.convert_to_tensor(parts)),
                   "at": table.lookup(word)}
        signature = v1.saved_model.build_signature_def(
            {"x": v1.saved_model.build_tensor_info(x),
             "word": v1.saved_model.build_tensor_info(word)},
            {name: v1.saved_model.build_tensor_info(tensor)
             for name, tensor in outputs.items()}, "predict")
        saver = v1.train.Saver(sharded=sharded,
                               **({"write_version": version} if version else {}))
        path = folder / f"builder_{version}_{sharded}"
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(),
                         v1.tables_initializer()])
            feeds = {x: [1.0, 2.0], word: ["green", "pink"]}
            wanted = session.run(outputs, feeds)
            builder = v1.saved_model.Builder(str(path))
            builder.add_meta_graph_and_variables(
                session, ["serve"], {"all": signature},
                assets_collection=v1.get_collection(
                    v1.GraphKeys.ASSET_FILEPATHS),
                main_op=v1.tables_initializer(), saver=saver)
            builder.save()
    inputs = {"x": [1.0, 2.0], "word": ["green", "pink"]}
    if version is None:
        return check("the builder", path, "all", inputs, wanted)
    if "V1 checkpoint" not in run(path, "all", inputs, code=1):
        sys.exit("a V1 checkpoint is not refused by name")
    return None


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_keras(folder)
        check_modules(folder)
        check_builder(folder)
        check_builder(folder, sharded=False)
        check_builder(folder, v1.train.SaverDef.V1, False)
    print(f"saved_models: {checks} outputs are the same")


if __name__ == "__main__":
    main()
