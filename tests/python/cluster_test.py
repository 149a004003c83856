"""Sessions of a `tagflow master`. Skipped where the command is not built: the
environment's TAGFLOW_BIN, by default build/release/apps, has it."""

import os
import pathlib
import re
import subprocess

import pytest

import tagflow
from conftest import TOP

COMMAND = pathlib.Path(os.environ.get(
    "TAGFLOW_BIN", TOP / "build/release/apps")) / "tagflow"
if not COMMAND.exists():
    pytest.skip(f"{COMMAND} is not built", allow_module_level=True)


class Process:
    """The command with these arguments, from when it is ready on."""

    def __init__(self, folder, *arguments):
        self.process = subprocess.Popen(
            [COMMAND, *arguments], cwd=folder, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.ready = re.fullmatch("ready: (.*)\n", line)[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """The options of a session of a master with two workers."""
    folder = tmp_path_factory.mktemp("cluster")
    with Process(folder, "cluster", "start", "2", "--devices", "cpu:2",
                 "--file", "c.json"):
        with Process(folder, "master", "--cluster", "c.json", "--listen",
                     "127.0.0.1:0") as started:
            yield {"target": f"tagflow://{started.ready}",
                   "secret_file": str(folder / "c.json.secret")}


def test_a_session_runs_on_the_workers_of_a_master(master, graphs):
    with tagflow.Session(graphs / "two_processes.pbtxt", **master) as session:
        assert session.run("y", {"n": 5, "x": 1.5}) == 48
        assert session.run_async("y", {"n": 6, "x": 1.5}).result() == 96
        assert len(session.devices()) == 4
        assert "/task:1/" in session.devices()[-1]
        assert master["target"] in repr(session)


def test_time_outs_and_cancellation_reach_the_workers(master, graphs):
    with tagflow.Session(graphs / "loop.pbtxt", **master) as session:
        with pytest.raises(tagflow.DeadlineExceededError):
            session.run("Exit", {"n": 2**31 - 1}, timeout=0.2)
        future = session.run_async("Exit", {"n": 2**31 - 1})
        future.cancel()
        with pytest.raises(tagflow.CancelledError):
            future.result()
        assert session.run("Exit", {"n": 3}) == 3


def test_a_wrong_secret_and_a_wrong_port_are_errors(master, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("something else")
    secret.chmod(0o600)
    with pytest.raises(tagflow.Error):
        tagflow.Session(target=master["target"], secret_file=str(secret))
    with pytest.raises(tagflow.UnavailableError, match="refused"):
        tagflow.Session(target="tagflow://127.0.0.1:1",
                        secret_file=master["secret_file"])
