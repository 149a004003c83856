#!/usr/bin/env python3
"""Load on `tagflow serve`, and the same load on TensorFlow and on ONNX Runtime
in a Python server: p50 and p99 in ms, requests per second, and the memory of
the server.

usage: serving_load.py [--seconds 5] [--clients 1,16,256] [--models a,b,c]
                       [--servers tagflow,batching,TensorFlow,ONNX,overload]
       in a Python with tensorflow, keras and tensorflow-serving-api, and, for
       ONNX, with tf2onnx and onnxruntime; TAGFLOW_BIN is the folder of the
       built programs

The models are saved with random weights: MobileNetV2 of a picture of 224 x 224
x 3, an LSTM of 128 units over 28 steps of 28, and a while_loop of 111 trips.
Clients are of gRPC; each sends its next request when it has the answer to the
last one, over eight connections in all. They run beside the server on the same
processors, so rates of small models are bounded by them. The other server is
gRPC's for Python with 16 threads, each of which calls the signature's concrete
function, or runs the session of a model that tf2onnx has made of the same
files. Each server has a second of load first, which is not counted. With
batching, up to 16 rows are one run. Last comes overload: 256 clients, with the
shortest requests, of a server whose queue has room for eight.
"""

import argparse
import asyncio
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import grpc

PREDICT = "/tensorflow.serving.PredictionService/Predict"
MODELS = ("mobilenet", "lstm", "loop")
OPTIONS = [("grpc.max_receive_message_length", -1)]


def save_models(folder):
    import keras
    import tensorflow as tf

    class Collatz(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((), tf.int64, "n")])
        def serve(self, n):
            def body(x, steps):
                return (tf.where(x % 2 == 0, x // 2, 3 * x + 1), steps + 1)
            return {"steps": tf.while_loop(lambda x, steps: x != 1, body,
                                           (n, tf.constant(0)))[1]}

    keras.utils.set_random_seed(1)
    keras.applications.MobileNetV2(weights=None).export(
        str(folder / "mobilenet" / "1"), verbose=False)
    lstm = keras.Sequential([keras.layers.Input((28, 28)),
                             keras.layers.LSTM(128), keras.layers.Dense(10)])
    lstm.export(str(folder / "lstm" / "1"), verbose=False)
    module = Collatz()
    tf.saved_model.save(module, str(folder / "loop" / "1"),
                        signatures={"serving_default": module.serve})


def request_for(folder, model):
    """The bytes of a request for one row."""
    import numpy as np
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2
    signature = tf.saved_model.load(str(folder / model / "1")).signatures[
        "serving_default"]
    (name, spec), = signature.structured_input_signature[1].items()
    value = (np.int64(27) if model == "loop" else
             np.random.default_rng(1).random([1, *spec.shape[1:]], np.float32))
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request.SerializeToString()


def tensorflow_functions(folder):
    import tensorflow as tf
    signatures = {
        model: tf.saved_model.load(str(folder / model / "1")).signatures[
            "serving_default"] for model in MODELS}

    def run(model, inputs):
        outputs = signatures[model](
            **{name: tf.constant(value) for name, value in inputs.items()})
        return {name: value.numpy() for name, value in outputs.items()}
    return run


def onnx_functions(folder):
    import onnxruntime
    sessions = {}
    for model in MODELS:
        to = folder / f"{model}.onnx"
        if not to.exists():
            subprocess.run(
                [sys.executable, "-m", "tf2onnx.convert", "--saved-model",
                 folder / model / "1", "--output", to, "--opset", "17"],
                check=True, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
        sessions[model] = onnxruntime.InferenceSession(str(to))

    def run(model, inputs):
        session = sessions[model]
        (value,) = inputs.values()  # the converter may have renamed it
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(
            names, {session.get_inputs()[0].name: value})))
    return run


def serve_in_python(run):
    import tensorflow as tf
    from tensorflow_serving.apis import (predict_pb2,
                                         prediction_service_pb2_grpc)

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            outputs = run(request.model_spec.name, {
                name: tf.make_ndarray(value)
                for name, value in request.inputs.items()})
            response = predict_pb2.PredictResponse()
            for name, value in outputs.items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
            return response

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(16),
                         options=OPTIONS)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"ready: grpc 127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


RIVALS = {"TensorFlow": tensorflow_functions, "ONNX": onnx_functions}


def start(arguments):
    process = subprocess.Popen([str(a) for a in arguments], text=True,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    return process, process.stdout.readline().split()[-1]


def memory_of(process):
    """The most MiB that the process has had."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


async def load(address, request, clients, seconds):
    """The times of answers, those of refusals, and how long it took."""
    channels = [grpc.aio.insecure_channel(
        address, OPTIONS + [("grpc.use_local_subchannel_pool", 1)])
        for _ in range(min(clients, 8))]
    calls = [channel.unary_unary(PREDICT) for channel in channels]
    await asyncio.gather(*(call(request, wait_for_ready=True)
                           for call in calls))
    times, refused = [], []
    end = time.perf_counter() + seconds

    async def client(call):
        while (begin := time.perf_counter()) < end:
            try:
                await call(request)
                times.append(time.perf_counter() - begin)
            except grpc.aio.AioRpcError as error:
                if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise
                refused.append(time.perf_counter() - begin)
                await asyncio.sleep(0.01)

    begin = time.perf_counter()
    await asyncio.gather(*(client(calls[i % len(calls)])
                           for i in range(clients)))
    took = time.perf_counter() - begin
    for channel in channels:
        await channel.close()
    return times, refused, took


def percentile(times, part):
    times = sorted(times)
    return 1000 * times[min(int(part * len(times)), len(times) - 1)]


def measure(server, command, requests, arguments):
    process, address = start(command)
    for model, request in requests.items():
        asyncio.run(load(address, request, 16, 1))
        for clients in map(int, arguments.clients.split(",")):
            times, _, took = asyncio.run(
                load(address, request, clients, arguments.seconds))
            print(f"{model:10} {clients:7}  {server:12} "
                  f"{percentile(times, 0.5):8.2f} "
                  f"{percentile(times, 0.99):8.2f} "
                  f"{len(times) / took:11.1f} {memory_of(process):4}",
                  flush=True)
    process.terminate()
    process.wait()


def overload(command, requests, seconds):
    process, address = start(command)
    model, request = min(requests.items(), key=lambda item: len(item[1]))
    times, refused, took = asyncio.run(load(address, request, 256, seconds))
    print(f"overload by {model}: {len(times) / took:.1f} requests/s are "
          f"answered, p50 {percentile(times, 0.5):.1f} ms; "
          f"{len(refused)} are refused, p50 "
          f"{percentile(refused, 0.5):.1f} ms; {memory_of(process)} MiB")
    process.terminate()
    process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", default="1,16,256")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--servers",
                        default="tagflow,batching,TensorFlow,ONNX,overload")
    parser.add_argument("--folder", type=pathlib.Path,
                        help="keeps the models, and uses those that are there")
    parser.add_argument("--rival", choices=RIVALS,
                        help="serve the models of --folder by this")
    arguments = parser.parse_args()
    if arguments.rival:
        serve_in_python(RIVALS[arguments.rival](arguments.folder))
        return
    tagflow = pathlib.Path(os.environ["TAGFLOW_BIN"]).resolve() / "tagflow"
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.folder or pathlib.Path(name)
        if not (folder / MODELS[0]).exists():
            save_models(folder)
        requests = {model: request_for(folder, model)
                    for model in arguments.models.split(",")}
        serve = [tagflow, "serve", *(folder / model for model in MODELS),
                 "--grpc", "127.0.0.1:0"]
        batching = pathlib.Path(name) / "batching.txt"
        batching.write_text("max_batch_size { value: 16 } "
                            "max_enqueued_batches { value: 1000 }")
        commands = {
            "tagflow": serve, "batching": serve + ["--batching", batching],
            **{rival: [sys.executable, __file__, "--rival", rival,
                       "--folder", folder] for rival in RIVALS}}
        print("model      clients  server         p50 ms   p99 ms"
              "  requests/s  MiB")
        for server in arguments.servers.split(","):
            if server == "overload":
                overload(serve + ["--max-queued-runs", "8"], requests,
                         arguments.seconds)
            else:
                measure(server, commands[server], requests, arguments)


if __name__ == "__main__":
    main()
