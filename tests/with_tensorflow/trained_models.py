#!/usr/bin/env python3
"""Models that TensorFlow wrote with their variables train here to the losses
that they have there.

Six of them (models/): a Keras CNN, a Keras LSTM, a module with a while_loop in
its train step, and MetaGraphs with Adam, with queues, and with partitioned
variables. Each runs for 100 steps, and then predicts by what it saved.

usage: trained_models.py [MODEL...]   in a Python with tensorflow; TAGFLOW_BIN
                                      is the folder of the built programs
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np

import models

TAGFLOW = pathlib.Path(os.environ["TAGFLOW_BIN"]).resolve() / "tagflow"
STEPS = 100
TOLERANCE = 1e-4


def tagflow(folder, case, *arguments):
    """The values of the fetch, one of each step."""
    command = [TAGFLOW, "run", case["model"], "--json", *arguments]
    done = subprocess.run(list(map(str, command)), cwd=folder, check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.returncode}\n{done.stderr}")
    return [json.loads(line)["fetches"] for line in done.stdout.splitlines()]


def named(part, rows):
    """What is fed and fetched: of a signature, or of a graph's own names."""
    arguments = ["--signature", part["signature"]] if part["signature"] else []
    for name, file in part["feeds"].items():
        arguments += ["--feed", f"{name}={'@' if rows else ''}{file}"]
    if not part["signature"]:
        arguments += ["--fetch", part["fetch"]]
    for target in part.get("targets", []):
        arguments += ["--target", target]
    return arguments


def distance(actual, wanted):
    """The largest one, of numbers beyond 1 relatively."""
    actual, wanted = np.asarray(actual), np.asarray(wanted)
    if actual.shape != wanted.shape:
        sys.exit(f"{actual.shape} is not {wanted.shape}")
    return np.max(np.abs(actual - wanted) / np.maximum(1, np.abs(wanted)))


def compare(folder):
    case = json.loads((folder / "case.json").read_text())
    arguments = named(case, rows=True)
    if case["feeds"]:
        arguments += ["--batch", case["batch"]]
    if case["init"]:
        arguments += ["--init", case["init"]]
    steps = tagflow(folder, case, *arguments, "--steps", STEPS,
                    "--save", "saved")
    losses = [step[case["fetch"]] for step in steps]
    far = distance(losses, case["losses"])
    text = (f"{folder.name}: {len(losses)} losses from {losses[0]:.6g} to "
            f"{losses[-1]:.6g}, apart by {far:.1e}")
    predict = case["predict"]
    if predict:
        (results,) = tagflow(folder, case, *named(predict, rows=False),
                             "--restore", "saved")
        # The value alone, or with its type and shape.
        value = results[predict["fetch"]]
        value = value["value"] if isinstance(value, dict) else value
        predicted = distance(value, np.load(folder / predict["value"]))
        text += f"; predictions by {predicted:.1e}"
        far = max(far, predicted)
    print(text, flush=True)
    return far < TOLERANCE


def main():
    fine = True
    with tempfile.TemporaryDirectory() as name:
        for model in sys.argv[1:] or models.ALL:
            folder = pathlib.Path(name) / model
            folder.mkdir()
            models.ALL[model](folder, STEPS)
            fine &= compare(folder)
    if not fine:
        sys.exit(f"some are more than {TOLERANCE} apart")


if __name__ == "__main__":
    main()
