"""Models that TensorFlow exported, and files of variables."""

import asyncio
import json
import os

import numpy as np
import pytest

import tagflow
from conftest import nodes, op, placeholder


@pytest.fixture
def lstm(models):
    with tagflow.load(models / "keras_lstm/model") as model:
        yield model


@pytest.fixture
def x(models):
    return np.load(models / "keras_lstm/feed_0.npy")


@pytest.fixture
def y(models):
    return np.load(models / "keras_lstm/feed_1.npy")


def test_a_model_says_what_it_takes_and_gives(lstm):
    assert sorted(lstm.signatures) == ["predict", "train"]
    with pytest.raises(KeyError, match="'serve'; it has 'predict', 'train'"):
        lstm.signatures["serve"]
    predict = lstm.signatures["predict"]
    assert predict.inputs == {"x": ("float", (None, 4, 2))}
    assert list(predict.outputs) == ["y"]
    assert "'predict': (x: float[?,4,2]) -> (y: float" in repr(lstm)


def test_signatures_are_called_by_name_and_by_position(lstm, x):
    predict = lstm.signatures["predict"]
    by_name = predict(x=x)["y"]
    np.testing.assert_array_equal(predict(x)["y"], by_name)
    np.testing.assert_array_equal(predict({"x": x})["y"], by_name)
    np.testing.assert_array_equal(predict.run_async(x=x).result()["y"],
                                  by_name)
    np.testing.assert_array_equal(predict.callable()(x)["y"], by_name)

    async def main():
        return await predict.run_async(x)
    np.testing.assert_array_equal(asyncio.run(main())["y"], by_name)


def test_training_gives_the_losses_and_the_outputs_of_tensorflow(
        models, lstm, x, y):
    folder = models / "keras_lstm"
    case = json.loads((folder / "case.json").read_text())
    rows, batch = len(x), case["batch"]
    losses = []
    for step in range(len(case["losses"])):
        at = [(batch * step + i) % rows for i in range(batch)]
        losses.append(lstm.signatures["train"](x=x[at], y=y[at])["loss"])
    np.testing.assert_allclose(losses, case["losses"], rtol=1e-5)
    np.testing.assert_allclose(
        lstm.signatures["predict"](np.load(folder / "predict_0.npy"))["y"],
        np.load(folder / "predicted.npy"), rtol=1e-4)


def test_wrong_calls_name_what_there_is(lstm, x):
    with pytest.raises(tagflow.NotFoundError, match="'predict', 'train'"):
        lstm(x=x)
    with pytest.raises(tagflow.InvalidArgumentError, match="no input 'z'"):
        lstm.signatures["predict"](z=x)
    with pytest.raises(tagflow.InvalidArgumentError, match="values for y"):
        lstm.signatures["train"](x=x)
    with pytest.raises(TypeError, match="by name: x, y"):
        lstm.signatures["train"](x, x)
    with pytest.raises(tagflow.InvalidArgumentError, match="shape"):
        lstm.signatures["predict"](x[0])


def test_a_graphdef_is_called_by_its_placeholders(graphs):
    with tagflow.load(graphs / "loop.pbtxt") as model:
        assert list(model.signatures) == ["serving_default"]
        assert model(n=5)["Exit"] == 5


def test_a_model_runs_on_several_devices(models, x):
    with tagflow.load(models / "keras_lstm/model", devices="cpu:2") as model:
        assert model.signatures["predict"](x)["y"].shape == (len(x), 1)


@pytest.mark.parametrize("name", ["saved", "saved.safetensors", "saved.npz"])
def test_what_was_trained_is_saved_and_restored(models, lstm, x, y, tmp_path,
                                                name):
    for _ in range(3):
        lstm.signatures["train"](x=x, y=y)
    written = tagflow.save(lstm, tmp_path / name, step=3)
    assert written.startswith(str(tmp_path / name))
    expected = lstm.signatures["predict"](x)["y"]
    with tagflow.load(models / "keras_lstm/model") as other:
        assert not np.array_equal(other.signatures["predict"](x)["y"],
                                  expected)
        restored = tagflow.restore(other, tmp_path / name)
        np.testing.assert_array_equal(other.signatures["predict"](x)["y"],
                                      expected)
    assert restored.unused == ()
    if name == "saved":
        assert restored.step == 3
        assert restored.path == written == str(
            tmp_path / "saved/model.ckpt-3")


def test_checkpoints_are_kept_and_the_newest_is_restored(lstm, tmp_path):
    for step in range(4):
        tagflow.save(lstm, tmp_path, step=step, keep=2)
    kept = sorted(f for f in os.listdir(tmp_path) if f.endswith(".index"))
    assert kept == ["model.ckpt-2.index", "model.ckpt-3.index"]
    assert tagflow.restore(lstm, tmp_path).step == 3
    assert tagflow.restore(lstm, tmp_path / "model.ckpt-2").step == 2


def test_what_cannot_be_restored_changes_nothing(lstm, tmp_path):
    before = lstm.variables()
    with pytest.raises(tagflow.NotFoundError):
        tagflow.restore(lstm, tmp_path / "nothing")
    tagflow.save_npz(tmp_path / "other.npz", {"a": np.ones(3)})
    with pytest.raises(tagflow.InvalidArgumentError, match="lacks"):
        tagflow.restore(lstm, tmp_path / "other.npz")
    tagflow.save_safetensors(tmp_path / "o.safetensors", {"a": np.ones(3)})
    with pytest.raises(tagflow.Error):
        tagflow.restore(lstm, tmp_path / "o.safetensors")
    after = lstm.variables()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)


@pytest.mark.parametrize("save,load,suffix", [
    (tagflow.save_npz, tagflow.load_npz, ".npz"),
    (tagflow.save_safetensors, tagflow.load_safetensors, ".safetensors")])
def test_files_of_arrays_come_back(tmp_path, save, load, suffix):
    path = tmp_path / f"arrays{suffix}"
    written = {"a/b": np.arange(6).reshape(2, 3), "c": np.float32(3),
               "d": np.ones((0, 2), bool)}
    save(path, written)
    read = load(path)
    assert sorted(read) == sorted(written)
    for name, value in written.items():
        assert read[name].dtype == value.dtype
        np.testing.assert_array_equal(read[name], value)
    assert os.listdir(tmp_path) == [path.name]
    with pytest.raises((tagflow.NotFoundError, FileNotFoundError)):
        load(tmp_path / f"none{suffix}")


def test_a_file_that_others_write_is_read(tmp_path):
    st = pytest.importorskip("safetensors.numpy")
    st.save_file({"x": np.arange(3.0)}, tmp_path / "x.safetensors")
    assert tagflow.load_safetensors(tmp_path / "x.safetensors")[
        "x"].tolist() == [0, 1, 2]


def test_an_input_with_a_default_may_be_left_out():
    graph = nodes(
        """node { name: 'c' op: 'Const'
            attr { key: 'dtype' value { type: DT_FLOAT } }
            attr { key: 'value' value { tensor { dtype: DT_FLOAT
                tensor_shape { } float_val: 2 } } } }""",
        """node { name: 'd' op: 'PlaceholderWithDefault' input: 'c'
            attr { key: 'dtype' value { type: DT_FLOAT } }
            attr { key: 'shape' value { shape { } } } }""",
        placeholder("x", "FLOAT"), op("y", "Mul", "x", "d", T="FLOAT"))
    from tagflow.model import Model
    model = Model(graph, tagflow.Session(graph), {
        "serving_default": ({"x": "x", "scale": "d"}, {"y": "y"})})
    assert model(x=3)["y"] == 6
    assert model(x=3, scale=5)["y"] == 15


def test_any_name_can_be_kept_in_a_npz_file(tmp_path):
    path = tmp_path / "x.npz"
    arrays = {name: np.arange(3) for name in (
        "file", "allow_pickle", "a/b", "with space", "\u00e4")}
    tagflow.save_npz(path, arrays)
    loaded = tagflow.load_npz(path)
    assert sorted(loaded) == sorted(arrays)
    assert all((each == [0, 1, 2]).all() for each in loaded.values())
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(TypeError, match="'w' is bfloat16.*save_safetensors"):
        tagflow.save_npz(path, {"w": np.zeros(2, ml_dtypes.bfloat16)})
    assert [each.name for each in tmp_path.iterdir()] == ["x.npz"]
