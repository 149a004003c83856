"""Sessions: runs, errors, time-outs, threads, Ctrl-C, fork."""

import asyncio
import collections
import concurrent.futures
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import tagflow
from conftest import TOP, nodes, op, placeholder

# Counts to a number that is fed, as TensorFlow 1 writes a loop.
LOOP = str(TOP / "tests/apps/graphs/loop.pbtxt")
# A run that never ends by itself.
ENDLESS = 2**31 - 1


def queue():
    """A Dequeue that waits for an Enqueue."""
    return nodes(
        """node { name: 'q' op: 'FIFOQueueV2' attr { key: 'component_types'
            value { list { type: DT_FLOAT } } } }""",
        placeholder("x", "FLOAT", []),
        """node { name: 'put' op: 'QueueEnqueueV2' input: 'q' input: 'x'
            attr { key: 'Tcomponents' value { list { type: DT_FLOAT } } } }""",
        """node { name: 'get' op: 'QueueDequeueV2' input: 'q'
            attr { key: 'component_types' value { list { type: DT_FLOAT } } }
            }""")


@pytest.fixture
def loop():
    with tagflow.Session(LOOP) as session:
        yield session


def test_results_have_the_structure_of_the_fetches(loop):
    Pair = collections.namedtuple("Pair", ["a", "b"])
    feeds = {"n": 3}
    assert loop.run("Exit", feeds) == 3
    assert loop.run(["Exit", "n:0"], feeds) == [3, 3]
    assert loop.run((), feeds) == ()
    assert loop.run({"x": "Exit", "y": [{"z": "n"}, ("Exit",)]}, feeds) == {
        "x": 3, "y": [{"z": 3}, (3,)]}
    assert loop.run(Pair("n", "Exit"), feeds) == Pair(3, 3)


def test_a_callable_takes_feeds_by_position_and_by_name():
    graph = nodes(placeholder("a", "FLOAT"), placeholder("b", "FLOAT"),
                  op("y", "Sub", "a", "b", T="FLOAT"))
    session = tagflow.Session(graph)
    call = session.make_callable("y", ["a", "b"], names=["left", "right"])
    assert call.parameters == ("left", "right")
    assert call(3, 1) == 2 and call(right=3, left=1) == -2
    assert call(3, right=1) == 2
    assert "left: float, right: float" in repr(call)
    assert session.make_callable({"d": "y", "a": "a"}, ["a", "b"])(2, 1) == {
        "d": 1, "a": 2}
    assert session.make_callable(["y"], ["a", "b"])(2, 1) == [1]
    assert session.make_callable(("y",), ["a", "b"])(2, 1) == (1,)
    for args, kwargs, what in [
            ((1,), {}, "1 arguments"), ((1, 2, 3), {}, "3 arguments"),
            ((1,), {"left": 2}, "repeated"), ((1,), {"b": 2}, "unknown")]:
        with pytest.raises(TypeError, match=what):
            call(*args, **kwargs)


def test_errors_have_classes_codes_and_nodes(loop):
    with pytest.raises(tagflow.NotFoundError, match='did you mean "Exit"'):
        loop.run("Exitt", {"n": 1})
    with pytest.raises(tagflow.InvalidArgumentError) as caught:
        loop.run("Exit", {"n": [1, 2]})
    assert caught.value.code == 3
    with pytest.raises(tagflow.AlreadyExistsError):
        loop.extend(LOOP)
    graph = nodes(placeholder("x", "FLOAT"), op(
        "bad", "MatMul", "x", "x", T="FLOAT"))
    with pytest.raises(tagflow.InvalidArgumentError) as caught:
        tagflow.Session(graph).run("bad", {"x": np.ones((2, 3))})
    assert caught.value.node == "bad"
    with pytest.raises(tagflow.UnimplementedError, match="did you mean"):
        nodes(op("x", "MatMull"))
    assert issubclass(tagflow.DeadlockError, tagflow.Error)
    assert issubclass(tagflow.DeadlineExceededError, TimeoutError)


def test_a_time_out_ends_a_run_and_not_the_session(loop):
    with pytest.raises(tagflow.DeadlineExceededError):
        loop.run("Exit", {"n": ENDLESS}, timeout=0.05)
    assert loop.run("Exit", {"n": 4}) == 4
    with tagflow.Session(LOOP, timeout=0.05) as hurried:
        with pytest.raises(tagflow.DeadlineExceededError):
            hurried.run("Exit", {"n": ENDLESS})
    with pytest.raises(tagflow.InvalidArgumentError, match="timeout"):
        loop.run("Exit", {"n": 1}, timeout=0)


def test_a_run_that_cannot_go_on_says_who_waits():
    graph = nodes(
        placeholder("x", "FLOAT"),
        """node { name: 'r' op: '_Recv' attr { key: 'tensor_type' value {
            type: DT_FLOAT } } attr { key: 'tensor_name' value { s: 't' } }
            attr { key: 'send_device' value { s: '/cpu:0' } }
            attr { key: 'recv_device' value { s: '/cpu:0' } }
            attr { key: 'send_device_incarnation' value { i: 1 } } }""")
    with tagflow.Session(graph) as session:
        with pytest.raises(tagflow.DeadlockError, match='"r"'):
            session.run("r")


def test_a_future_is_a_result_that_comes_later(loop):
    future = loop.run_async({"x": ["Exit"]}, {"n": 5})
    assert future.result() == {"x": [5]}
    assert future.result(timeout=1) == {"x": [5]}
    assert future.done() and not future.running() and not future.cancel()
    assert future.exception() is None
    failed = loop.run_async("Exit", {"n": ENDLESS}, timeout=0.05)
    with pytest.raises(tagflow.DeadlineExceededError):
        failed.result()
    assert isinstance(failed.exception(), tagflow.DeadlineExceededError)
    assert not failed.cancelled()


def test_a_future_can_be_cancelled_and_waited_for(loop):
    future = loop.run_async("Exit", {"n": ENDLESS})
    with pytest.raises(TimeoutError, match="it goes on"):
        future.result(timeout=0.02)
    assert future.running() and future.cancel()
    with pytest.raises(tagflow.CancelledError):
        future.result()
    assert future.cancelled()


def test_callbacks_of_futures_are_called_once_each(loop):
    called = concurrent.futures.Future()
    future = loop.run_async("Exit", {"n": 200000})
    calls = []
    future.add_done_callback(calls.append)
    future.add_done_callback(called.set_result)
    assert called.result(timeout=60) is future
    assert calls == [future] and future.result() == 200000
    future.add_done_callback(calls.append)
    assert calls == [future, future]


def test_futures_are_awaited_together(loop):
    async def main():
        return await asyncio.gather(
            *(loop.run_async("Exit", {"n": n}) for n in range(200)))
    assert asyncio.run(main()) == list(range(200))


def test_a_cancelled_task_cancels_its_run(loop):
    async def main():
        future = loop.run_async("Exit", {"n": ENDLESS})

        async def wait():
            return await future
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return future
    assert isinstance(asyncio.run(main()).exception(), tagflow.CancelledError)


def test_an_error_of_a_run_is_raised_where_it_is_awaited(loop):
    async def main():
        await loop.run_async("Exit", {"n": ENDLESS}, timeout=0.05)
    with pytest.raises(tagflow.DeadlineExceededError):
        asyncio.run(main())


def test_many_threads_run_one_session(loop):
    call = loop.make_callable("Exit", ["n"])

    def work(k):
        return [int(call(k + i)) for i in range(200)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert results == [[k + i for i in range(200)] for k in range(8)]


def test_other_threads_of_python_go_on_during_a_run(loop):
    future = concurrent.futures.Future()

    def work():
        try:
            loop.run("Exit", {"n": ENDLESS})
        except tagflow.CancelledError as error:
            future.set_result(error)
    thread = threading.Thread(target=work)
    thread.start()
    while loop.counters()["active"] == 0:
        pass  # Python runs here while the engine runs there
    loop.close()
    thread.join()
    assert isinstance(future.result(), tagflow.CancelledError)


def test_a_run_that_waits_for_another_one_gets_its_value():
    with tagflow.Session(queue()) as session:
        future = session.run_async("get")
        session.run([], {"x": 2.5}, targets=["put"])
        assert future.result() == 2.5


def test_closing_ends_what_waits_and_refuses_what_comes():
    session = tagflow.Session(queue())
    call = session.make_callable("get")
    waiting = session.run_async("get")
    session.close()
    session.close()
    assert session.closed and "closed" in repr(session)
    with pytest.raises(tagflow.CancelledError):
        waiting.result()
    with pytest.raises(tagflow.FailedPreconditionError):
        call()
    with pytest.raises(tagflow.FailedPreconditionError, match="closed"):
        session.run("get")


def test_a_callable_keeps_its_session_open():
    call = tagflow.Session(LOOP).make_callable("Exit", ["n"])
    assert call(3) == 3


def test_sessions_share_state_if_they_are_told_to():
    graph = queue()
    with tagflow.Session(graph) as one, tagflow.Session(
            graph, share=one) as two:
        one.run((), {"x": 1.5}, targets="put")
        assert two.run("get") == 1.5


def test_reset_forgets_what_the_session_has():
    graph = nodes(
        placeholder("x", "FLOAT", []),
        """node { name: 'v' op: 'VariableV2'
            attr { key: 'dtype' value { type: DT_FLOAT } }
            attr { key: 'shape' value { shape { } } } }""",
        op("set", "Assign", "v", "x", T="FLOAT"))
    with tagflow.Session(graph) as session:
        assert session.variable_names() == ["v"]
        assert session.variables() == {}
        session.run("set", {"x": 3})
        assert session.variables() == {"v": 3}
        session.assign({"v": 4})
        assert session.run("v") == 4
        with pytest.raises(tagflow.InvalidArgumentError):
            session.assign({"v": [1, 2]})
        session.reset()
        with pytest.raises(tagflow.FailedPreconditionError):
            session.run("v")


def test_devices_are_named_and_wrong_ones_refused():
    with tagflow.Session(devices="cpu:2") as session:
        assert [n[-5:] for n in session.devices()] == ["CPU:0", "CPU:1"]
        assert "CPU:1" in repr(session)
    assert len(tagflow.devices("cpu:3")) == 3
    with pytest.raises(tagflow.InvalidArgumentError, match="cpuu"):
        tagflow.Session(devices="cpuu:2")
    with pytest.raises(tagflow.InvalidArgumentError, match="workers"):
        tagflow.Session(workers=-1)


def test_a_target_that_is_wrong_is_refused():
    with pytest.raises(tagflow.InvalidArgumentError, match="tagflow://"):
        tagflow.Session(target="grpc://localhost:1")
    with pytest.raises(tagflow.InvalidArgumentError, match="secret_file"):
        tagflow.Session(target="tagflow://localhost:1")


def run_script(text, **options):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], cwd=TOP, timeout=120,
        capture_output=True, text=True, **options)


@pytest.mark.parametrize("start", [
    "session.run('Exit', {'n': 2**31 - 1})",
    "session.run_async('Exit', {'n': 2**31 - 1}).result()",
    "waiting.run('get')"])
def test_ctrl_c_ends_a_run_and_raises(start):
    script = f"""
        import os, signal, sys, threading
        sys.path.insert(0, "tests/python")
        import tagflow
        from session_test import LOOP, queue
        session, waiting = tagflow.Session(LOOP), tagflow.Session(queue())
        def interrupt():
            def runs():
                found = [s.counters() for s in (session, waiting)]
                return sum(c["active"] + c["waiting"] for c in found)
            while not runs():
                pass
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            {start}
        except KeyboardInterrupt:
            print("interrupted", session.run("Exit", {{"n": 3}}))
        """
    done = run_script(script)
    assert done.stdout.split() == ["interrupted", "3"], done.stderr


def test_a_signal_handler_that_returns_lets_the_run_go_on():
    script = """
        import os, signal, sys, threading
        sys.path.insert(0, "tests/python")
        import tagflow
        from session_test import queue
        session = tagflow.Session(queue())
        signal.signal(signal.SIGUSR1, lambda *_: put.start())
        put = threading.Thread(target=lambda: session.run(
            (), {"x": 2}, targets="put"))
        def interrupt():
            while not session.counters()["waiting"]:
                pass
            os.kill(os.getpid(), signal.SIGUSR1)
        threading.Thread(target=interrupt).start()
        print(session.run("get"))
        """
    done = run_script(script)
    assert done.stdout == "2.0\n", done.stderr


def test_a_child_process_is_told_to_make_its_own_session():
    script = """
        import os, sys
        sys.path.insert(0, "tests/python")
        import tagflow
        from session_test import LOOP
        session = tagflow.Session(LOOP)
        session.run("Exit", {"n": 1})
        if os.fork() == 0:
            try:
                session.run("Exit", {"n": 1})
            except tagflow.FailedPreconditionError as error:
                print(error)
            print(tagflow.Session(LOOP).run("Exit", {"n": 2}), flush=True)
            os._exit(0)
        os.wait()
        print(session.run("Exit", {"n": 3}))
        """
    done = run_script(script)
    lines = done.stdout.splitlines()
    assert "fork" in lines[0] and lines[1:] == ["2", "3"], done.stderr


def test_a_program_ends_while_runs_go_on():
    script = """
        import sys
        sys.path.insert(0, "tests/python")
        import tagflow
        from session_test import LOOP
        session = tagflow.Session(LOOP)
        future = session.run_async("Exit", {"n": 2**31 - 1})
        future.add_done_callback(print)
        session.run("Exit", {"n": 1})
        print("over")
        """
    done = run_script(script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("over")


def test_a_result_can_be_asked_for_twice(graphs):
    with tagflow.Session(graphs / "loop.pbtxt") as session:
        future = session.run_async("Exit", {"n": 3})
        assert future.result() == 3
        assert future._pending.result() is future._pending.result()
        with pytest.raises(ValueError, match="not nan"):
            future.result(float("nan"))


def test_an_interrupt_while_a_result_is_taken_loses_nothing(graphs):
    calls = []

    def unpack(values):
        calls.append(values)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return values[0]

    with tagflow.Session(graphs / "loop.pbtxt") as session:
        future = session.run_async("Exit", {"n": 3})
        future._unpack = unpack
        with pytest.raises(KeyboardInterrupt):
            future.result()
        assert future.result() == 3 and len(calls) == 2
