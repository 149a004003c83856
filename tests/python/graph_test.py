"""Graphs: where they come from, what they say, how they are written."""

import pytest

import tagflow
from conftest import nodes, op, placeholder


def test_a_graph_comes_from_a_path_from_bytes_and_from_a_message(graphs,
                                                                 tmp_path):
    graph = tagflow.Graph.from_graphdef(graphs / "loop.pbtxt")
    data = graph.to_graphdef()
    assert tagflow.Graph.from_graphdef(data).to_graphdef() == data
    assert tagflow.Graph.from_graphdef(bytearray(data)).to_graphdef() == data

    class Message:
        def SerializeToString(self):
            return data
    assert len(tagflow.Graph.from_graphdef(Message())) == len(graph)
    for name in "g.pb", "g.pbtxt":
        graph.save(str(tmp_path / name))
        assert tagflow.Graph.from_graphdef(
            tmp_path / name).to_graphdef() == data
    assert graph.to_text().startswith("node {")
    with pytest.raises(TypeError, match="not int"):
        tagflow.Graph.from_graphdef(3)


def test_nodes_say_what_they_are():
    graph = nodes(placeholder("x", "FLOAT", [2, 3]),
                  op("y", "Transpose", "x", "p", T="FLOAT"),
                  "node { name: 'p' op: 'Placeholder' attr { key: 'dtype' "
                  "value { type: DT_INT32 } } }")
    assert len(graph) == 3 and "x" in graph and "z" not in graph
    x = graph.node("x")
    assert (x.name, x.op, x.inputs, x.dtypes, x.shapes) == (
        "x", "Placeholder", [], ["float"], [(2, 3)])
    assert repr(x) == '<Node "x": Placeholder -> float[2,3]>'
    assert graph.node("y").inputs == ["x", "p"]
    assert graph.tensor_type("x:0") == ("float", (2, 3))
    assert graph.tensor_type("p") == ("int32", None)
    assert repr(graph) == "<tagflow.Graph: 3 nodes>"
    assert sorted(node.name for node in graph.nodes) == ["p", "x", "y"]
    with pytest.raises(tagflow.NotFoundError):
        graph.node("z")


def test_graphs_are_added_to_graphs():
    graph = nodes(placeholder("x", "FLOAT"))
    graph.extend(nodes(placeholder("y", "FLOAT")))
    assert len(graph) == 2
    with pytest.raises(tagflow.AlreadyExistsError):
        graph.extend(nodes(placeholder("y", "FLOAT")))


@pytest.mark.parametrize("name,start,what", [
    ("m.onnx", b"", "tf.saved_model.save"), ("m.tflite", b"", "SavedModel"),
    ("m.h5", b"", "model.export"), ("m.keras", b"", "from_keras"),
    ("m.zip", b"", "Unpack"), ("m.pt", b"", "PyTorch"),
    ("m.safetensors", b"", "tagflow.restore"),
    ("m.npz", b"", "load_npz"),
    ("m", b"\x89HDF\r\n\x1a\n", "model.export"),
    ("m.bin", b"PK\x03\x04", "Unpack"),
    ("m.bin", b"\x1c\0\0\0TFL3", "SavedModel")])
def test_files_of_other_formats_say_what_to_do(tmp_path, name, start, what):
    path = tmp_path / name
    path.write_bytes(start)
    for load in tagflow.load, tagflow.Graph.from_graphdef:
        with pytest.raises(tagflow.InvalidArgumentError, match=what):
            load(path)


@pytest.mark.parametrize("data", [b"\xff" * 40, b"\x0a\xff\xff\xff\xff\x0f"])
def test_damaged_bytes_are_an_error(data):
    with pytest.raises(tagflow.Error):
        tagflow.Graph.from_graphdef(data)
    with pytest.raises(tagflow.NotFoundError):
        tagflow.load("no/such/model")
