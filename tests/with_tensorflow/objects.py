#!/usr/bin/env python3
"""A model of TensorFlow 2 is trained here, and its checkpoint restored into the
program that wrote it; and the other way round.

The variables of the program have all the same name, so that only objects tell
which is which.

usage: objects.py      in a Python with tensorflow; TAGFLOW_BIN is the folder of
                       the built programs
"""

import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

TAGFLOW = pathlib.Path(os.environ["TAGFLOW_BIN"]).resolve() / "tagflow"


class Line(tf.Module):
    """Fits slope * x + offset; the speeds are those of the momentum."""

    def __init__(self, first, second):
        super().__init__()
        # Made in this order, and so named by it in a graph.
        setattr(self, first, tf.Variable(0.0))
        setattr(self, second, tf.Variable(0.0))
        self.speeds = [tf.Variable(0.0), tf.Variable(0.0)]

    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
    def train(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.slope * x + self.offset - y)**2)
        variables = [self.slope, self.offset]
        for speed, variable, gradient in zip(
                self.speeds, variables, tape.gradient(loss, variables)):
            speed.assign(0.9 * speed - 0.05 * gradient)
            variable.assign_add(speed)
        return {"loss": loss}

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def predict(self, x):
        return {"y": self.slope * x + self.offset}

    def save(self, folder):
        tf.saved_model.save(self, folder,
                            {"train": self.train, "predict": self.predict})

    def values(self):
        return np.array([float(v) for v in
                         (self.slope, self.offset, *self.speeds)])


def tagflow(*arguments, code=0):
    done = subprocess.run([TAGFLOW, *map(str, arguments)], check=False,
                          capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"tagflow {arguments}: {done.returncode}\n{done.stderr}")
    return done.stdout


def close(what, actual, wanted):
    if not np.allclose(actual, wanted, rtol=1e-5, atol=1e-5):
        sys.exit(f"{what}: {actual} is not {wanted}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        x = np.linspace(-1, 1, 16, dtype=np.float32)
        np.save(folder / "x.npy", x)
        np.save(folder / "y.npy", 3 * x + 7)
        feeds = ["--feed", f"x={folder}/x.npy", "--feed", f"y={folder}/y.npy"]

        program = Line("slope", "offset")
        program.save(folder / "model")
        tagflow("run", folder / "model", "--signature", "train", *feeds,
                "--steps", 40, "--save", folder / "saved")
        for _ in range(40):
            program.train(x, 3 * x + 7)

        # Into the program, the loaded model, and one that was made otherwise.
        swapped = Line("offset", "slope")
        swapped.save(folder / "swapped")
        newest = tf.train.latest_checkpoint(folder / "saved")
        for other in (Line("slope", "offset"), swapped,
                      tf.saved_model.load(folder / "model")):
            tf.train.Checkpoint(other).restore(
                newest).expect_partial()
            close("restored", Line.values(other), program.values())

        # Here, into the model that was made otherwise, and the other way.
        theirs = tf.train.Checkpoint(program).save(folder / "theirs" / "ckpt")
        for model in ("model", "swapped"):
            for saved in (folder / "saved", theirs):
                tagflow("run", folder / model, "--signature", "predict",
                        "--feed", f"x={folder}/x.npy", "--restore", saved,
                        "--fetch", "y", "--out", folder / "out")
                close(f"{model} of {saved}", np.load(folder / "out" / "y.npy"),
                      program.predict(x)["y"])
        tagflow("run", folder / "swapped", "--signature", "train", *feeds,
                "--steps", 41, "--save", folder / "saved")
        program.train(x, 3 * x + 7)
        other = Line("slope", "offset")
        tf.train.Checkpoint(other).restore(
            tf.train.latest_checkpoint(folder / "saved"))
        close("resumed", other.values(), program.values())
        tagflow("checkpoint", "convert", newest, folder / "c.safetensors")
    print("objects: restored the same, both ways")


main()
