"""Nothing is leaked, whatever becomes of a call."""

import gc
import resource
import sys
import threading

import numpy as np
import pytest

import tagflow
from conftest import TOP, nodes, op, placeholder

LOOP = str(TOP / "tests/apps/graphs/loop.pbtxt")


def double():
    return nodes(placeholder("x", "FLOAT"),
                 op("y", "AddV2", "x", "x", T="FLOAT"))


def growth(function, times):
    """KiB by which the most memory of the process has grown."""
    for _ in range(times):
        function()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(4 * times):
        function()
    gc.collect()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


@pytest.mark.parametrize("shape", [(), (10,), (300, 300)])
def test_calls_need_no_memory_in_the_end(shape):
    call = tagflow.Session(double()).make_callable({"y": "y"}, ["x"])
    array = np.ones(shape, np.float32)
    large = np.prod(shape) > 1000
    assert growth(lambda: call(x=array), 200 if large else 20000) < 4096


def test_failed_calls_need_no_memory_in_the_end():
    session = tagflow.Session(double())
    call = session.make_callable("y", ["x"])
    array = np.ones(10000, complex)

    def fail():
        with pytest.raises(tagflow.InvalidArgumentError):
            call(array)
        with pytest.raises(TypeError):
            call(array, array)
    assert growth(fail, 300) < 4096


def test_sessions_and_futures_need_no_memory_in_the_end():
    graph = double()

    def use():
        with tagflow.Session(graph) as session:
            futures = [session.run_async("y", {"x": np.ones(1000)})
                       for _ in range(4)]
            assert all(future.result()[0] == 2 for future in futures[1:])
            session.variables()
    assert growth(use, 40) < 8192


def test_references_are_given_back():
    call = tagflow.Session(double()).make_callable({"out": "y"}, ["x"])
    array, key = np.ones(5, np.float32), "out"
    counts = [sys.getrefcount(o) for o in (array, call, None)]
    for _ in range(1000):
        call(array)
        call.run_async(array).wait()
        call.parameters
        with pytest.raises(TypeError):
            call(y=array)
    gc.collect()
    after = [sys.getrefcount(o) for o in (array, call, None)]
    assert after[:2] == counts[:2]
    assert abs(after[2] - counts[2]) < 100
    assert call(array)[key].tolist() == [2] * 5


def test_sessions_end_in_threads_while_others_run():
    graph = double()
    errors = []

    def work():
        try:
            for _ in range(20):
                session = tagflow.Session(graph)
                call = session.make_callable("y", ["x"])
                del session
                future = tagflow.Future(call.run_async(np.ones(100)))
                future.add_done_callback(lambda f: f.result())
                assert call(2) == 4
                del call, future
        except Exception as error:
            errors.append(error)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_handle_of_a_variable_is_an_opaque_value():
    graph = nodes(
        """node { name: 'v' op: 'VarHandleOp'
            attr { key: 'dtype' value { type: DT_FLOAT } }
            attr { key: 'shape' value { shape { } } }
            attr { key: 'shared_name' value { s: 'v' } } }""",
        placeholder("x", "FLOAT", []),
        """node { name: 'set' op: 'AssignVariableOp' input: 'v' input: 'x'
            attr { key: 'dtype' value { type: DT_FLOAT } } }""",
        """node { name: 'get' op: 'ReadVariableOp' input: 'v'
            attr { key: 'dtype' value { type: DT_FLOAT } } }""")
    with tagflow.Session(graph) as session:
        session.run((), {"x": 3}, targets="set")
        handle, value = session.run(["v", "get"])
        assert isinstance(handle, tagflow.Tensor) and value == 3
        assert handle.type_name == "resource"
        assert "variable" in repr(handle)
        with pytest.raises(TypeError):
            handle.numpy()
        # It may be fed again.
        assert session.run("get", {"v": handle}) == 3
