#!/usr/bin/env python3
"""Runs TensorFlow's own tests against a server of its session protocol, and
counts by file what passes. Every session of a test that names no target is
one of the server; a test that opens no session is counted apart.

usage: session_protocol.py [--server tagflow|tensorflow|none|HOST:PORT]
                           [--seconds S] [--json FILE] [--at-least FILE]
                           [--only REGEX] [--behavior v1|v2]
                           [FOLDER [FILE...]]

FOLDER has TensorFlow's tests, as its sources have them: FOLDER/FILE is
tensorflow/python/.../x_test.py; it is not a part of this project. Without
FOLDER it is TAGFLOW_TENSORFLOW_TESTS; without that, nothing is run. Without
FILE it runs those of FILES that are there.

--server tensorflow starts TensorFlow's own gRPC server, to compare with; none
leaves targets alone. S is the time that a test may take. --only runs the tests
whose name matches. --behavior v2 leaves on what TensorFlow 2 does by default,
with which half of these tests skip themselves. FILE of --json receives all
results; FILE of --at-least has results to compare with: the exit code is 1 if a
test passed there and fails here.

It needs a Python with tensorflow; TAGFLOW_BIN is the folder of the built
programs.
"""

import argparse
import collections
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

FILES = [
    "kernel_tests/control_flow/control_flow_ops_py_test.py",
    "kernel_tests/control_flow/cond_v2_test.py",
    "kernel_tests/control_flow/while_v2_test.py",
    "kernel_tests/control_flow/map_fn_test.py",
    "kernel_tests/control_flow_ops_py_test.py",
    "kernel_tests/cond_v2_test.py",
    "kernel_tests/while_v2_test.py",
    "kernel_tests/map_fn_test.py",
    "kernel_tests/functional_ops_test.py",
    "kernel_tests/data_structures/fifo_queue_test.py",
    "kernel_tests/data_structures/stack_ops_test.py",
    "kernel_tests/data_structures/tensor_array_ops_test.py",
    "kernel_tests/fifo_queue_test.py",
    "kernel_tests/padding_fifo_queue_test.py",
    "kernel_tests/stack_ops_test.py",
    "kernel_tests/tensor_array_ops_test.py",
    "kernel_tests/list_ops_test.py",
    "kernel_tests/barrier_ops_test.py",
    "kernel_tests/conditional_accumulator_test.py",
    "kernel_tests/sparse_conditional_accumulator_test.py",
    "kernel_tests/sparse_serialization_ops_test.py",
    "kernel_tests/sparse_tensors_map_ops_test.py",
    "kernel_tests/stage_op_test.py",
    "kernel_tests/map_stage_op_test.py",
    "kernel_tests/ctc_loss_op_test.py",
    "kernel_tests/ctc_decoder_ops_test.py",
    "kernel_tests/variables_test.py",
    "kernel_tests/variables/variables_test.py",
    "kernel_tests/rnn_test.py",
    "client/session_test.py",
    "client/session_partial_run_test.py",
    "client/session_list_devices_test.py",
    "ops/gradients_test.py",
    "ops/functional_ops_test.py",
    "training/adam_test.py",
    "training/adagrad_test.py",
    "training/adadelta_test.py",
    "training/rmsprop_test.py",
    "training/ftrl_test.py",
    "training/proximal_adagrad_test.py",
    "training/proximal_gradient_descent_test.py",
    "training/coordinator_test.py",
    "training/gradient_descent_test.py",
    "training/momentum_test.py",
    "training/saver_test.py",
    "training/monitored_session_test.py",
    "training/queue_runner_test.py",
    "training/supervisor_test.py",
]
PREFIX = "tensorflow/python/"
KINDS = ["passed", "failed", "timed out", "no session", "skipped"]


# --- One file, in a process of its own ---------------------------------------

class Watch(unittest.TestResult):
    """Writes a line of JSON per test to `out`: its name, and what became of
    it."""

    def __init__(self, out, seconds, target):
        super().__init__()
        self.out, self.seconds, self.target = out, seconds, target
        self.sessions = 0
        self.timer = None
        self.is_told = False

    def tell(self, test, kind, reason=""):
        if self.is_told:
            return
        self.is_told = True
        if kind in ("passed", "skipped") and self.target and not self.sessions:
            kind = "no session" if kind == "passed" else kind
        self.out.write(json.dumps(
            {"test": test.id(), "kind": kind, "reason": reason}) + "\n")
        self.out.flush()

    def startTest(self, test):
        super().startTest(test)
        self.sessions = 0
        self.is_told = False
        self.out.write(json.dumps({"begins": test.id()}) + "\n")
        self.out.flush()

        def end():
            # A session's run holds this thread: only the end of the process
            # ends it.
            self.tell(test, "timed out", f"after {self.seconds} s")
            os._exit(77)

        self.timer = threading.Timer(self.seconds, end)
        self.timer.daemon = True
        self.timer.start()

    def stopTest(self, test):
        super().stopTest(test)
        self.timer.cancel()
        self.tell(test, "passed")

    def fail(self, test, error):
        lines = "".join(traceback.format_exception(*error)).splitlines()
        last = "".join(traceback.format_exception_only(*error[:2]))
        kind = "failed" if self.sessions or not self.target else "no session"
        self.tell(test, kind, last.strip()[:2000] + "\n" +
                  "\n".join(lines[-40:])[-3000:])

    def addError(self, test, err):
        self.fail(test, err)

    def addFailure(self, test, err):
        self.fail(test, err)

    def addSkip(self, test, reason):
        self.tell(test, "skipped", reason)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.fail(test, err)


def all_tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from all_tests(test)
        else:
            yield test


# Modules that now have what older tests find in others.
NEWER = [
    "ops.while_loop", "ops.cond", "ops.control_flow_case",
    "ops.control_flow_assert", "ops.control_flow_switch_case",
    "ops.array_ops_stack", "ops.parsing_ops", "ops.variable_v1",
    "ops.ref_variable", "ops.gradients_impl", "ops.resource_variables_toggle",
    "framework.indexed_slices", "framework.tensor", "framework.dtypes",
    "framework.tensor_shape", "framework.tensor_conversion",
    "framework.tensor_conversion_registry", "framework.function",
    "framework.stack", "framework.errors_impl", "eager.context",
    "ops.rnn", "ops.sparse_ops", "ops.gen_control_flow_ops",
    "ops.gen_array_ops", "ops.tensor_getitem_override", "util.nest",
]


def find_moved_names():
    """Lets tests that are older than this TensorFlow find names that have
    moved to other modules since."""
    newer = []
    for name in NEWER:
        with contextlib.suppress(ImportError):
            newer.append(importlib.import_module("tensorflow.python." + name))

    def find(name):
        for module in newer:
            if name in vars(module):
                return vars(module)[name]
        raise AttributeError(f"no module has {name!r} any more")

    for name in ["ops.control_flow_ops", "ops.array_ops", "ops.math_ops",
                 "ops.variables", "framework.ops", "framework.test_util",
                 "ops.gradients_impl", "ops.nn_ops"]:
        module = importlib.import_module("tensorflow.python." + name)
        if not hasattr(module, "__getattr__"):
            module.__getattr__ = find


def run_file(path, target, seconds, only, behavior, done, out):
    """Runs the tests of a file, except those whose names are in `done`."""
    # pylint: disable=import-outside-toplevel
    import tensorflow as tf
    from absl import flags
    from tensorflow.python.client import session
    flags.FLAGS(["test"])
    find_moved_names()
    if behavior == "v1":
        tf.compat.v1.disable_v2_behavior()
    watch = Watch(out, seconds, target)
    begin = session.BaseSession.__init__

    def begin_at_target(self, given="", graph=None, config=None):
        if not given:
            watch.sessions += 1
        begin(self, given or target, graph, config)

    if target:
        session.BaseSession.__init__ = begin_at_target
    spec = importlib.util.spec_from_file_location("__tf_test__", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["__tf_test__"] = module
    spec.loader.exec_module(module)
    for test in all_tests(
            unittest.defaultTestLoader.loadTestsFromModule(module)):
        if test.id() in done or not re.search(only, test.id()):
            continue
        if test.id().endswith(".test_session"):
            continue  # of the base class; it is not a test
        test(watch)


# --- The servers ----------------------------------------------------------------

@contextlib.contextmanager
def server(kind):
    """The target of its sessions."""
    if kind == "none":
        yield ""
        return
    if ":" in kind:
        yield "grpc://" + kind
        return
    if kind == "tagflow":
        program = pathlib.Path(os.environ["TAGFLOW_BIN"]).resolve() / "tagflow"
        command = [program, "serve", "--tf-session", "--listen", "127.0.0.1:0"]
    else:
        command = [sys.executable, "-c", """
import sys, threading
import tensorflow as tf
server = tf.distribute.Server.create_local_server()
print("ready:", server.target.split("//")[1], flush=True)
sys.stdin.read()
"""]
    with subprocess.Popen(command, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("ready: "):
                break
        else:
            sys.exit(f"the server of {kind} is not ready")
        try:
            yield "grpc://" + line.split()[1]
        finally:
            if process.poll() is not None:
                print(f"the server ended by itself: {process.returncode}")
            process.send_signal(signal.SIGTERM if kind == "tagflow"
                                else signal.SIGKILL)


def results_of(path, options):
    """The results of a file's tests, by name."""
    results = {}
    while True:
        # A server of its own: what a test leaves in containers or breaks is of
        # this file, and of what comes after a time-out not even that.
        with server(options.server) as target:
            command = [sys.executable, __file__, "--run", str(path), target,
                       str(options.seconds), options.only,
                       options.behavior]
            begun = None
            with subprocess.Popen(command, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as child:
                errors = collections.deque(maxlen=60)
                reader = threading.Thread(
                    target=lambda: errors.extend(child.stderr), daemon=True)
                reader.start()
                json.dump(sorted(results), child.stdin)
                child.stdin.close()
                for line in child.stdout:
                    if not line.startswith("{"):
                        continue
                    told = json.loads(line)
                    if "begins" in told:
                        begun = told["begins"]
                    else:
                        begun = None
                        results[told["test"]] = told
            reader.join()
        if child.returncode == 0:
            return results
        if begun is not None:  # it took the process along
            results[begun] = {"test": begun, "kind": "failed", "reason":
                              f"exit code {child.returncode}\n" +
                              "".join(errors)[-3000:]}
        elif child.returncode != 77:
            results["the file"] = {"test": "the file", "kind": "failed",
                                   "reason": "".join(errors)[-3000:]}
            return results


def main():
    if sys.argv[1:2] == ["--run"]:
        path, target, seconds, only, behavior = sys.argv[2:]
        out = os.fdopen(os.dup(1), "w")
        run_file(path, target, float(seconds), only, behavior,
                 set(json.load(sys.stdin)), out)
        out.flush()
        os._exit(0)  # threads of tests may wait for ever
    parser = argparse.ArgumentParser(
        description="Runs TensorFlow's tests against a server.")
    parser.add_argument("folder", nargs="?",
                        default=os.environ.get("TAGFLOW_TENSORFLOW_TESTS"))
    parser.add_argument("files", nargs="*")
    parser.add_argument("--server", default="tagflow")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json")
    parser.add_argument("--at-least")
    parser.add_argument("--only", default="")
    parser.add_argument("--behavior", choices=["v1", "v2"], default="v1")
    options = parser.parse_args()
    if options.folder is None:
        print("no tests of TensorFlow: TAGFLOW_TENSORFLOW_TESTS is not set")
        return 0
    folder = pathlib.Path(options.folder)
    files = options.files or [
        file for file in FILES if (folder / PREFIX / file).is_file()]
    everything = {}
    for file in files:
        path = folder / PREFIX / file
        if not path.is_file():
            path = folder / file
        start = time.monotonic()
        results = results_of(path, options)
        everything[file] = results
        counts = collections.Counter(told["kind"] for told in results.values())
        print(f"{file}: " + ", ".join(
            f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) +
              f" ({time.monotonic() - start:.0f} s)", flush=True)
        for name, told in sorted(results.items()):
            if told["kind"] in ("failed", "timed out"):
                print(f"  {told['kind']}: {name}: "
                      f"{told['reason'].splitlines()[0][:200]}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(everything, indent=1))
    worse = 0
    if options.at_least:
        before = json.loads(pathlib.Path(options.at_least).read_text())
        for file in everything.keys() & before.keys():
            for name, told in before[file].items():
                if not re.search(options.only, name):
                    continue
                now = everything[file].get(name, {"kind": "not run"})
                if told["kind"] == "passed" and now["kind"] != "passed":
                    print(f"passed before, now {now['kind']}: {file}: {name}")
                    worse += 1
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
