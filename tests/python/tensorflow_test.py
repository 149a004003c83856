"""Functions and models of TensorFlow run here with the same results. Skipped
where TensorFlow is not installed."""

import subprocess
import sys

import numpy as np
import pytest

import tagflow
from conftest import TOP

tf = pytest.importorskip("tensorflow")


def test_both_are_in_one_process_in_any_order():
    use = ("print(tagflow.from_tf(tf.function(lambda x: x + 1), "
           "signature=tf.TensorSpec([], tf.float32))(2.0))")
    for first, second in [("tagflow", "tensorflow as tf"),
                          ("tensorflow as tf", "tagflow")]:
        done = subprocess.run(
            [sys.executable, "-c",
             f"import {first}\nimport {second}\n{use}"], cwd=TOP,
            capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "3.0" in done.stdout


def test_control_flow_gives_what_tensorflow_gives():
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")])
    def function(x):
        steps = tf.constant(0)
        while tf.reduce_sum(x) < 100.0:
            x = tf.cond(x[0, 0] > 3.0, lambda: x * 1.5, lambda: x + 1)
            steps += 1
        return {"x": x, "steps": steps}
    with tagflow.from_tf(function) as model:
        for value in np.ones((2, 3), "f"), np.full((1, 3), 2.5, "f"):
            expected = function(value)
            result = model(x=value)
            assert result["steps"] == expected["steps"].numpy()
            np.testing.assert_allclose(result["x"], expected["x"].numpy(),
                                       rtol=1e-6)


def test_variables_come_with_their_present_values_and_stay_variables():
    class Counter(tf.Module):
        def __init__(self):
            self.total = tf.Variable(0.0)

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
        def add(self, x):
            return self.total.assign_add(x)
    counter = Counter()
    counter.add(3.0)
    with tagflow.from_tf(counter.add) as model:
        assert [next(iter(model(x=x).values())) for x in (1, 2)] == [4, 6]
        assert list(model.variables().values()) == [6]
    assert counter.total.numpy() == 3  # its own variable is another one


def test_texts_and_tables_are_carried_over():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
        tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)), -1)

    class Lookup(tf.Module):
        def __init__(self):
            self.table = table

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "x")])
        def find(self, x):
            return {"at": self.table.lookup(x), "x": x + "!"}
    lookup = Lookup()
    with tagflow.from_tf(lookup, signatures=lookup.find) as model:
        result = model(x=["b", "c"])
        assert result["at"].tolist() == [2, -1]
        assert result["x"].tolist() == [b"b!", b"c!"]


def test_a_function_without_a_signature_needs_one():
    function = tf.function(lambda a, b: a * b)
    with pytest.raises(tagflow.InvalidArgumentError, match="signature="):
        tagflow.from_tf(function)
    spec = tf.TensorSpec([], tf.float32)
    with tagflow.from_tf(function, signature=[spec, spec]) as model:
        assert next(iter(model(a=2, b=4).values())) == 8
    with pytest.raises(TypeError, match="not int"):
        tagflow.from_tf(3)


@pytest.mark.parametrize("make", [
    lambda k: [k.Input((4, 2)), k.layers.LSTM(3), k.layers.Dense(2)],
    lambda k: [k.Input((8, 8, 3)), k.layers.Conv2D(4, 3, padding="same"),
               k.layers.BatchNormalization(), k.layers.ReLU(),
               k.layers.GlobalAveragePooling2D(),
               k.layers.Dense(3, activation="softmax")]])
def test_a_keras_model_gives_what_keras_gives(make):
    keras = pytest.importorskip("keras")
    model = keras.Sequential(make(keras))
    x = np.random.default_rng(1).random(
        (5, *model.input_shape[1:])).astype("f")
    with tagflow.from_keras(model) as here:
        result, = here(x).values()
    np.testing.assert_allclose(result, model(x).numpy(), rtol=1e-4, atol=1e-6)


def test_a_tf_graph_runs_with_its_own_tensors_as_names():
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None])
        y = tf.reduce_sum(x * x)
    with tagflow.Session(graph) as session:
        assert session.run([y, x], {x: [1, 2, 3]})[0] == 14


def test_a_checkpoint_goes_to_tensorflow_and_back(models, tmp_path):
    folder = models / "keras_lstm/model"
    with tagflow.load(folder) as model:
        initial = model.variables()
        x = np.load(models / "keras_lstm/feed_0.npy")
        y = np.load(models / "keras_lstm/feed_1.npy")
        model.signatures["train"](x=x, y=y)
        trained = model.variables()
        reader = tf.train.load_checkpoint(
            tagflow.save(model, tmp_path / "ours"))
        keys = [key for key in reader.get_variable_to_shape_map()
                if key.endswith("VARIABLE_VALUE")]
        assert len(keys) > 10
        for key in keys:
            value = reader.get_tensor(key)
            assert any(np.array_equal(value, own) for own in trained.values())
        # What TensorFlow wrote when it exported the model.
        tagflow.restore(model, folder / "variables/variables")
        for name, value in model.variables().items():
            np.testing.assert_array_equal(value, initial[name])


def test_operations_and_sparse_tensors_are_fetched_and_fed():
    with tf.Graph().as_default() as graph:
        sparse = tf.compat.v1.sparse_placeholder(tf.float32, [2, 3])
        dense = tf.sparse.to_dense(sparse)
        twice = tf.sparse.SparseTensor(
            sparse.indices, sparse.values * 2, sparse.dense_shape)
        variable = tf.compat.v1.get_variable("v", initializer=[1.0])
        start = tf.compat.v1.global_variables_initializer()
    with tagflow.Session(graph) as session:
        assert session.run(start) is None
        assert session.run({"none": start, "v": variable}) == {
            "none": None, "v": [1.0]}
        assert session.run_async([start, start.name]).result() == [None, None]
        value = tf.compat.v1.SparseTensorValue([[0, 1]], [5.0], [2, 3])
        assert session.run(dense, {sparse: value})[0].tolist() == [0, 5, 0]
        result = session.run(twice, {sparse: ([[1, 2]], [4.0], [2, 3])})
        assert result.values == [8] and result.indices.tolist() == [[1, 2]]


def test_results_of_any_structure_have_flat_names():
    function = tf.function(lambda x, *, k: {
        "states": [x, {"h": x + k}], "y": x * 2}).get_concrete_function(
            tf.TensorSpec([], tf.float32), k=tf.TensorSpec([], tf.float32))
    with tagflow.from_tf(function) as model:
        assert model(x=3, k=1) == {"states_0": 3, "states_1_h": 4, "y": 6}
    pair = tf.function(lambda x: (x, [x + 1])).get_concrete_function(
        tf.TensorSpec([], tf.float32))
    with tagflow.from_tf(pair) as model:
        assert model(x=3) == {"output_0": 3, "output_1_0": 4}
