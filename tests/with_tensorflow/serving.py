#!/usr/bin/env python3
"""The stock client of TensorFlow Serving asks `tagflow serve` for what
TensorFlow itself computes from the same SavedModels, by gRPC and by REST.

usage: serving.py     in a Python with tensorflow and tensorflow-serving-api;
                      TAGFLOW_BIN is the folder of the built programs
"""

import atexit
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.request

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (classification_pb2, get_model_metadata_pb2,
                                     get_model_status_pb2, inference_pb2,
                                     model_management_pb2,
                                     model_service_pb2_grpc, predict_pb2,
                                     prediction_service_pb2_grpc,
                                     regression_pb2)

HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
TAGFLOW = pathlib.Path(os.environ["TAGFLOW_BIN"]).resolve() / "tagflow"
checks = 0


def check(is_right, what):
    global checks
    if not is_right:
        sys.exit(f"FAILED: {what}")
    checks += 1


class Affine(tf.Module):
    """y = x w + b, with variables."""

    def __init__(self, scale):
        super().__init__()
        self.w = tf.Variable(scale * tf.reshape(tf.range(6.0), (2, 3)))
        self.b = tf.Variable(tf.ones(3))

    @tf.function(input_signature=[tf.TensorSpec((None, 2), tf.float32, "x")])
    def serve(self, x):
        return {"y": x @ self.w + self.b, "norm": tf.norm(x, axis=1)}


class Words(tf.Module):
    """A table of words, filled when the model is loaded."""

    def __init__(self):
        super().__init__()
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(["a", "b"]), tf.constant([7, 8], tf.int64)), -1)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "word")])
    def serve(self, word):
        return {"number": self.table.lookup(word),
                "loud": tf.strings.upper(word)}


class Collatz(tf.Module):
    """A loop whose trips depend on the data."""

    @tf.function(input_signature=[tf.TensorSpec((), tf.int64, "n")])
    def serve(self, n):
        def body(x, steps):
            return (tf.where(x % 2 == 0, x // 2, 3 * x + 1), steps + 1)
        return {"steps": tf.while_loop(lambda x, steps: x != 1, body,
                                       (n, tf.constant(0)))[1]}


def save(module, folder, **further):
    tf.saved_model.save(module, str(folder), signatures={
        "serving_default": module.serve, **further})


def save_estimator(folder):
    """As TensorFlow 1 exports it: signatures that classify and regress, of
    examples that they parse, or of the feature x."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (None, 2), "x")
        examples = v1.placeholder(tf.string, (None,), "examples")
        parsed = v1.parse_example(
            examples, {"x": v1.FixedLenFeature((2,), tf.float32)})["x"]
        scores = tf.nn.softmax(parsed)
        labels = tf.tile(tf.constant([["no", "yes"]]),
                         [tf.shape(parsed)[0], 1])
        info = v1.saved_model.build_tensor_info
        build = v1.saved_model.build_signature_def
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"], {
            "serving_default": build(
                {"inputs": info(examples)},
                {"classes": info(labels), "scores": info(scores)},
                "tensorflow/serving/classify"),
            "sum": build({"x": info(x)},
                         {"outputs": info(tf.reduce_sum(x, 1))},
                         "tensorflow/serving/regress")})
        builder.save()


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [TAGFLOW, "serve", *map(str, arguments), "--rest", "127.0.0.1:0",
             "--grpc", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        self.rest = self.process.stdout.readline().split()[-1]
        self.grpc = self.process.stdout.readline().split()[-1]
        channel = grpc.insecure_channel(self.grpc)
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(
            channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(channel)

    def predict(self, model, inputs, version=None, outputs=(), timeout=60):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = model
        if version is not None:
            request.model_spec.version.value = version
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        request.output_filter.extend(outputs)
        response = self.predictions.Predict(request, timeout)
        return {name: tf.make_ndarray(value)
                for name, value in response.outputs.items()}

    def post(self, path, body):
        with urllib.request.urlopen(f"http://{self.rest}/v1/models/{path}",
                                    json.dumps(body).encode()) as answer:
            return json.load(answer)

    def stop(self):
        self.process.terminate()
        check(self.process.wait(30) == 0, "it ends by SIGTERM with 0")


def same(actual, wanted):
    return actual.keys() == wanted.keys() and all(
        np.array_equal(actual[key], value.numpy())
        if value.dtype in (tf.string, tf.int64, tf.int32)
        else np.allclose(actual[key], value, 1e-5)
        for key, value in wanted.items())


def fails(code, call):
    try:
        call()
    except grpc.RpcError as error:
        check(error.code() == code, f"{error.code()} is {code}: "
              f"{error.details()}")
    else:
        check(False, f"there is no {code}")


def check_predict(server, modules):
    affine = modules["affine"]
    x = np.random.default_rng(1).normal(size=(5, 2)).astype(np.float32)
    check(same(server.predict("affine", {"x": x}), affine.serve(x)), "affine")
    check(list(server.predict("affine", {"x": x}, outputs=["norm"])) ==
          ["norm"], "an output filter")
    words = np.array(["a", "zz", "b"])
    check(same(server.predict("words", {"word": words}),
               modules["words"].serve(words)), "words")
    check(same(server.predict("collatz", {"n": np.int64(27)}),
               modules["collatz"].serve(27)), "a loop")
    answer = server.post("affine:predict", {"instances": x.tolist()})
    wanted = affine.serve(x)
    check(np.allclose([row["y"] for row in answer["predictions"]],
                      wanted["y"], 1e-5), "rows by REST")
    answer = server.post("collatz:predict", {"inputs": 27})
    check(answer == {"outputs": 111}, "a loop by REST")
    INVALID = grpc.StatusCode.INVALID_ARGUMENT
    fails(INVALID, lambda: server.predict("affine", {"x": x.astype(float)}))
    fails(INVALID, lambda: server.predict("affine", {"z": x}))
    fails(INVALID, lambda: server.predict("affine", {"x": x[0]}))
    fails(grpc.StatusCode.NOT_FOUND, lambda: server.predict("x", {"x": x}))
    fails(grpc.StatusCode.NOT_FOUND,
          lambda: server.predict("affine", {"x": x}, version=9))
    # 3 n + 1 of 0 is never 1.
    fails(grpc.StatusCode.DEADLINE_EXCEEDED,
          lambda: server.predict("collatz", {"n": np.int64(0)}, timeout=0.2))


def check_many(server, module):
    """Batched requests of many clients have the results of each."""
    wrong = []

    def ask(seed):
        random = np.random.default_rng(seed)
        for _ in range(30):
            x = random.normal(size=(random.integers(1, 5), 2))
            x = x.astype(np.float32)
            if not same(server.predict("affine", {"x": x}),
                        module.serve(x)):
                wrong.append(seed)

    clients = [threading.Thread(target=ask, args=(i,)) for i in range(16)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    check(not wrong, f"batches: {wrong}")


def check_hostile(server):
    """Bytes that are nearly requests, and connections by the hundred."""
    random = np.random.default_rng(5)
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "affine"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.ones((2, 2), "f")))
    whole = request.SerializeToString()
    channel = grpc.insecure_channel(server.grpc)
    for service, method in (("PredictionService", "Predict"),
                            ("PredictionService", "Classify"),
                            ("PredictionService", "MultiInference"),
                            ("ModelService", "GetModelStatus"),
                            ("ModelService", "HandleReloadConfigRequest")):
        call = channel.unary_unary(f"/tensorflow.serving.{service}/{method}")
        for _ in range(100):
            data = bytearray(whole)
            for _ in range(random.integers(1, 6)):
                data[random.integers(len(data))] = random.integers(256)
            try:
                call(bytes(data[:random.integers(len(data) + 1)]), timeout=30)
            except grpc.RpcError as error:
                check(error.code() != grpc.StatusCode.UNAVAILABLE, "it lives")
    host, port = server.rest.split(":")
    held = [socket.create_connection((host, int(port))) for _ in range(1000)]
    server.predict("affine", {"x": np.ones((1, 2), np.float32)})
    answer = server.post("affine:predict", {"instances": [[1, 1]]})
    check("predictions" in answer, "it answers among 1,000 connections")
    for each in held:
        each.close()
    check_endless(server)
    check_streams(server)


def connect(address, data):
    host, port = address.split(":")
    client = socket.create_connection((host, int(port)), 60)
    client.sendall(data)
    return client


def check_endless(server):
    """A body whose chunks have no end, and calls that are given up at once."""
    client = connect(server.rest, b"POST /v1/models/affine:predict HTTP/1.1\r\n"
                     b"Host: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    sent = 0
    try:
        while sent < 1 << 30:
            client.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
            sent += 1 << 20
    except OSError:
        pass
    check(sent < 1 << 27, f"chunks without an end: {sent >> 20} MiB are taken")
    client.close()

    def frame(kind, flags, stream, data):
        return struct.pack(">IBI", len(data) << 8 | kind, flags, stream) + data

    def header(name, value):
        return bytes([0, len(name)]) + name + bytes([len(value)]) + value

    head = b"".join(header(*pair) for pair in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"x"),
        (b":path", b"/tensorflow.serving.PredictionService/Predict"),
        (b"content-type", b"application/grpc"), (b"te", b"trailers")))
    client = connect(server.grpc, HTTP2_PREFACE + frame(4, 0, 0, b""))
    try:
        for stream in range(1, 20000, 2):
            client.sendall(frame(1, 4, stream, head) +
                           frame(3, 0, stream, struct.pack(">I", 8)))
    except OSError:
        pass  # it may have enough of them
    client.close()
    server.predict("affine", {"x": np.ones((1, 2), np.float32)})
    check(True, "it answers after 10,000 calls that were given up")


def check_streams(server):
    """Lengths that nobody sends, streams that stop, and what is no protocol."""
    head = b"POST /v1/models/affine:predict HTTP/1.1\r\nHost: x\r\n"
    client = connect(server.rest, head + b"Content-Length: 1" + b"0" * 17 +
                     b"\r\n\r\n")
    check(b" 413 " in client.recv(1 << 12), "a huge length is refused")
    client.close()
    # HTTP/2: its preface, and a frame that says it has 16 MiB.
    frame = HTTP2_PREFACE + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01"
    held = [connect(address, data) for _ in range(50) for address, data in (
        (server.rest, head + b"Content-Length: 100000\r\n\r\n{"),
        (server.rest, head[:20]), (server.grpc, frame),
        (server.grpc, frame[:10]), (server.grpc, os.urandom(1000)))]
    for each in held[::2]:
        each.shutdown(socket.SHUT_WR)
    server.predict("affine", {"x": np.ones((1, 2), np.float32)})
    answer = server.post("affine:predict", {"instances": [[1, 1]]})
    check("predictions" in answer, "it answers among streams that stop")
    for each in held:
        each.close()
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    most = int(status.split("VmHWM:")[1].split()[0]) >> 10
    check(most < 1024, f"it has had {most} MiB")


def check_examples(server):
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name = "estimator"
    for row in ([0.0, 0.0], [1.0, 3.0]):
        request.input.example_list.examples.add().features.feature[
            "x"].float_list.value.extend(row)
    result = server.predictions.Classify(request, 60).result
    check([entry.label for entry in result.classifications[1].classes] ==
          ["no", "yes"], "labels")
    check(np.isclose(result.classifications[0].classes[0].score, 0.5),
          "scores")
    answer = server.post("estimator:classify",
                         {"context": {"x": [2.0, 2.0]}, "examples": [{}]})
    check(answer == {"results": [[["no", 0.5], ["yes", 0.5]]]},
          f"examples by REST: {answer}")
    fails(grpc.StatusCode.INVALID_ARGUMENT, lambda: server.predictions.Classify(
        classification_pb2.ClassificationRequest(
            model_spec=request.model_spec), 60))
    regress = regression_pb2.RegressionRequest()
    regress.model_spec.name = "estimator"
    regress.model_spec.signature_name = "sum"
    regress.input.CopyFrom(request.input)
    values = server.predictions.Regress(regress, 60).result.regressions
    check([entry.value for entry in values] == [0, 4], "values")
    multi = inference_pb2.MultiInferenceRequest()
    multi.input.CopyFrom(request.input)
    for signature, method in (("", "classify"), ("sum", "regress")):
        task = multi.tasks.add()
        task.model_spec.name = "estimator"
        task.model_spec.signature_name = signature
        task.method_name = f"tensorflow/serving/{method}"
    results = server.predictions.MultiInference(multi, 60).results
    check(results[1].regression_result.regressions[1].value == 4, "several")


def reload_request(name, folder):
    request = model_management_pb2.ReloadConfigRequest()
    config = request.config.model_config_list.config.add()
    config.name = name
    config.base_path = str(folder)
    config.model_platform = "tensorflow"
    return request


def check_refusal(folder):
    server = Server(folder / "affine", "--refuse-reloads")
    reload = reload_request("collatz", folder / "collatz")
    fails(grpc.StatusCode.PERMISSION_DENIED,
          lambda: server.models.HandleReloadConfigRequest(reload, 60))
    server.predict("affine", {"x": np.ones((1, 2), np.float32)})
    server.stop()


def check_models(server, folder):
    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.model_spec.name = "affine"
    request.metadata_field.append("signature_def")
    field = server.predictions.GetModelMetadata(request, 60).metadata[
        "signature_def"]
    signatures = get_model_metadata_pb2.SignatureDefMap()
    check(field.Unpack(signatures), "the type of metadata is the client's")
    info = signatures.signature_def["serving_default"].inputs["x"]
    check(info.dtype == tf.float32.as_datatype_enum and
          [dim.size for dim in info.tensor_shape.dim] == [-1, 2], "metadata")
    ask = get_model_status_pb2.GetModelStatusRequest()
    ask.model_spec.name = "affine"
    states = server.models.GetModelStatus(ask, 60).model_version_status
    check([(each.version, each.state) for each in states] == [(1, 30)],
          "the state of a model")
    reload = reload_request("renamed", folder / "affine")
    given_up = server.models.HandleReloadConfigRequest.future(reload, 60)
    given_up.cancel()
    answer = server.models.HandleReloadConfigRequest(reload, 60)
    check(answer.status.error_code == 0, answer.status.error_message)
    x = np.ones((1, 2), np.float32)
    server.predict("renamed", {"x": x})
    fails(grpc.StatusCode.NOT_FOUND, lambda: server.predict("affine", {"x": x}))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        modules = {"affine": Affine(0.5), "words": Words(),
                   "collatz": Collatz()}
        for model, module in modules.items():
            save(module, folder / model / "1")
        save_estimator(folder / "estimator")
        names = [*modules, "estimator"]
        for batching in ([], ["--enable-batching"]):
            server = Server(*(folder / each for each in names), *batching)
            check_predict(server, modules)
            check_many(server, modules["affine"])
            check_examples(server)
            check_hostile(server)
            check_models(server, folder)
            server.stop()
        check_refusal(folder)
    print(f"{checks} checks")


if __name__ == "__main__":
    main()
