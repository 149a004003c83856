#!/usr/bin/env python3
"""Reads event files of tagflow by TensorBoard itself.

usage: TAGFLOW_BIN=FOLDER summaries.py     (needs the package tensorboard)

tests/run.sh --with-tensorflow runs it.
"""

import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")


def run(program, *arguments):
    subprocess.run([str(program), *map(str, arguments)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def accumulated(folder):
    from tensorboard.backend.event_processing import event_accumulator
    events = event_accumulator.EventAccumulator(
        str(folder), size_guidance={"tensors": 0, "scalars": 0,
                                    "histograms": 0})
    events.Reload()
    return events


def scalars(events, tag):
    """The steps and values of a tag, which the reader makes tensors of."""
    from tensorboard.util import tensor_util
    if tag in events.Tags()["scalars"]:
        return [(e.step, e.value) for e in events.Scalars(tag)]
    return [(e.step, float(tensor_util.make_ndarray(e.tensor_proto)))
            for e in events.Tensors(tag)]


def check_loop(bin_folder, work):
    """A loop of three trips in two steps."""
    from tensorboard.compat.proto import config_pb2
    folder = work / "loop"
    run(bin_folder / "tagflow", "run",
        HERE.parent / "apps/graphs/loop.pbtxt", "--feed", "n:0=3", "--fetch",
        "Exit:0", "--steps", 3, "--summaries", folder)
    events = accumulated(folder)
    assert scalars(events, "Exit:0") == [(1, 3), (2, 3), (3, 3)]
    names = {node.name for node in events.Graph().node}
    assert {"Enter", "Merge", "Switch", "Exit"} <= names, names
    assert events.Tags()["run_metadata"] == ["step 2"]
    metadata = config_pb2.RunMetadata()
    metadata.CopyFrom(events.RunMetadata("step 2"))
    stats = {node.node_name: node
             for device in metadata.step_stats.dev_stats
             for node in device.node_stats}
    assert stats, "no node has a time"
    for node in stats.values():
        # What the page of the graph leaves out.
        assert node.all_end_rel_micros > 0
        for output in node.output:
            assert output.HasField("tensor_description")
    assert any("times" in node.timeline_label for node in stats.values())


def check_training(bin_folder, work):
    folder = work / "training"
    for stop in [["--stop-at", 15], []]:  # stopped, and resumed
        run(bin_folder / "train_images", "mlp", "--pictures", 320, "--batch",
            32, "--epochs", 2, "--report-every", 5, "--save", work / "model",
            "--summaries", folder, *stop)
    train, test = accumulated(folder / "train"), accumulated(folder / "test")
    losses = scalars(train, "loss")
    assert [step for step, _ in losses] == list(range(1, 21)), losses
    assert losses[-1][1] < losses[0][1]
    assert [step for step, _ in scalars(test, "accuracy")] == [10, 20]
    rates = scalars(train, "learning_rate")
    assert [step for step, _ in rates] == [5, 10, 15, 20], rates
    assert rates[-1][1] < rates[0][1]
    tags = train.Tags()
    assert tags["graph"]
    spread = tags["histograms"] + tags["tensors"]
    assert any("weights" in tag or "kernel" in tag for tag in spread), spread


def main():
    bin_folder = pathlib.Path(os.environ["TAGFLOW_BIN"]).resolve()
    with tempfile.TemporaryDirectory() as work:
        check_loop(bin_folder, pathlib.Path(work))
        if DATA.is_dir():
            check_training(bin_folder, pathlib.Path(work))
    print("TensorBoard reads what tagflow writes")


if __name__ == "__main__":
    main()
