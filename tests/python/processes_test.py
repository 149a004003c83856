"""Children that are forked off, the end of a process, and what waits for many
runs."""

import concurrent.futures
import gc
import os
import subprocess
import sys
import threading

import pytest

import tagflow
import tagflow.numpy as tnp

ENDLESS = 2**31 - 1


@pytest.fixture
def session(graphs):
    with tagflow.Session(graphs / "loop.pbtxt") as session:
        yield session


def in_child(act):
    """What act() returns, in a child that is forked off."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = str(act())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_functions_run_in_a_child_and_sessions_do_not(session):
    function = tagflow.function(lambda x: tnp.sin(x) + 1)
    assert function(0.0) == 1
    assert in_child(lambda: function(0.0)) == "1.0"
    assert in_child(lambda: tagflow.grad(function)(0.0)) == "1.0"
    assert in_child(lambda: tagflow.Variable(3).assign_add(1)) == "4"
    assert "FailedPrecondition" in in_child(
        lambda: session.run("Exit", {"n": 1}))
    assert function(0.0) == 1


@pytest.mark.parametrize("code", [
    "future = run()",
    "future = run(); future.add_done_callback(print)",
    "threading.Thread(target=lambda: run().result(), daemon=True).start()",
    "run(); sys.exit()",
    "f = tagflow.function(lambda x: x); f(1); atexit.register(lambda: f(2))",
])
def test_a_process_ends_although_runs_go_on(graphs, code):
    done = subprocess.run([sys.executable, "-c", f"""
import atexit, sys, tagflow, threading
session = tagflow.Session({str(graphs / 'loop.pbtxt')!r})
run = lambda: session.run_async("Exit", {{"n": {ENDLESS}}})
{code}"""], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_futures_are_those_of_concurrent_futures(session):
    def run(n):
        return session.run_async("Exit", {"n": n})

    assert sorted(int(f.result()) for f in concurrent.futures.as_completed(
        [run(n) for n in range(20)])) == list(range(20))
    endless = run(ENDLESS)
    for n in range(100):  # whether the run is over before it is asked or not
        short = run(n)
        done, others = concurrent.futures.wait(
            [short, endless], 60, concurrent.futures.FIRST_COMPLETED)
        assert (done, others) == ({short}, {endless})
    done, others = concurrent.futures.wait(
        [endless, run(ENDLESS)], 0.01)
    assert not done and len(others) == 2
    assert endless.cancel()
    done, others = concurrent.futures.wait([short, endless], 60)
    assert len(done) == 2 and endless.cancelled()
    with pytest.raises(concurrent.futures.CancelledError):
        endless.result()
    failed = session.run_async("Exit", {"n": ENDLESS}, timeout=0.01)
    assert [f.exception().code for f in concurrent.futures.as_completed(
        [failed])] == [4]


def test_what_a_callback_raises_is_reported(session, monkeypatch):
    reported = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    future = session.run_async("Exit", {"n": 1})
    future.result()
    future.add_done_callback(lambda future: 1 / 0)
    assert reported[0].exc_type is ZeroDivisionError


def test_variables_that_come_and_go_leave_no_names():
    names = set()
    for _ in range(6):
        variable = tagflow.Variable(0.0, name="scratch")
        names.add(variable._shared_name)
        del variable
        gc.collect()
    assert len(names) <= 2


def test_a_wheel_says_what_a_machine_lacks(tmp_path):
    from tagflow import _load
    needs, cpuinfo = tmp_path / "needs", tmp_path / "cpuinfo"
    needs.write_text("avx\navx512f\nfma\n")
    cpuinfo.write_text("processor : 0\nflags : fpu avx sse\n")
    assert _load._missing(str(needs), str(cpuinfo)) == "avx512f fma"
    needs.write_text("")
    assert _load._missing(str(needs), str(cpuinfo)) == ""
    assert _load._missing(str(tmp_path / "none"), str(cpuinfo)) == ""

    # What the module links is what the message lists.
    module = sys.modules["tagflow._native"].__file__
    linked = subprocess.run(["ldd", module], capture_output=True, text=True)
    found = {line.split(".so")[0].strip() for line in linked.stdout.splitlines()
             if "libcaf" in line or "libdnnl" in line}
    for library in found:
        assert library.replace("_", "-") in _load._PACKAGES
