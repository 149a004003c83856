"""Pipelines of tf.data in TensorFlow, for `tagflow bench input`.

usage: input.py MANIFEST

MANIFEST is JSON: {"folder", "repeats"}. Writes into the folder, by a fixed
seed, files of records and, for each pipeline, NAME.pb: a GraphDef whose node
"x" goes through all elements, and gives the sum of what is in them. Prints
"ready VERSION". Then answers each line of stdin, the index of a pipeline, with
JSON: {"seconds", "result", "records"}, the median of `repeats` runs of that
graph in a session with two threads, and its result.
"""
import json
import os
import statistics
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# TensorFlow greets on stderr. Where it fails, Python says why after this.
stderr = os.dup(2)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
try:
    import numpy as np
    import tensorflow as tf
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    tf.autograph.set_verbosity(0)
finally:
    os.dup2(stderr, 2)

THREADS = 2
BATCH = 128


def example(**features):
    made = tf.train.Example()
    for name, value in features.items():
        feature = made.features.feature[name]
        if isinstance(value, bytes):
            feature.bytes_list.value.append(value)
        else:
            feature.int64_list.value.append(value)
    return made.SerializeToString()


def records(folder):
    """60,000 Examples of 784 bytes and a label, as those of MNIST."""
    path = os.path.join(folder, "records")
    random = np.random.default_rng(7)
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(60_000):
            pixels = random.integers(0, 256, 784, dtype=np.uint8)
            writer.write(example(image=pixels.tobytes(), label=i % 10))

    def parse(batch):
        parsed = tf.io.parse_example(batch, {
            "image": tf.io.FixedLenFeature([], tf.string),
            "label": tf.io.FixedLenFeature([], tf.int64)})
        return tf.io.decode_raw(parsed["image"], tf.uint8), parsed["label"]

    data = tf.data.TFRecordDataset(path).batch(BATCH)
    data = data.map(parse, num_parallel_calls=THREADS).prefetch(2)
    return 60_000, data.reduce(
        np.int64(0), lambda s, batch: s + tf.reduce_sum(batch[1]) +
        tf.cast(batch[0][0, 0], tf.int64))


def jpegs(folder):
    """400 JPEG pictures of some 300 x 400 pixels, to 224 x 224."""
    path = os.path.join(folder, "jpegs")
    random = np.random.default_rng(7)
    pixels = v1.placeholder(tf.uint8, [None, None, 3])
    encode = tf.io.encode_jpeg(pixels, quality=90)
    with v1.Session() as session, tf.io.TFRecordWriter(path) as writer:
        for _ in range(400):
            high, wide = random.integers(280, 420, 2)
            coarse = random.integers(0, 256, (high // 8 + 1, wide // 8 + 1, 3))
            picture = np.kron(coarse, np.ones((8, 8, 1)))[:high, :wide]
            picture = picture + random.integers(-12, 13, picture.shape)
            picture = np.clip(picture, 0, 255).astype(np.uint8)
            writer.write(session.run(encode, {pixels: picture}))

    def decode(jpeg):
        picture = tf.image.decode_jpeg(jpeg, channels=3)
        return tf.image.resize(picture, [224, 224])

    data = tf.data.TFRecordDataset(path)
    data = data.map(decode, num_parallel_calls=THREADS).batch(32).prefetch(2)
    return 400, data.reduce(
        np.float32(0), lambda s, batch: s + tf.reduce_mean(batch))


PIPELINES = [records, jpegs]


def main():
    with open(sys.argv[1]) as file:
        manifest = json.load(file)
    made = []
    for make in PIPELINES:
        with tf.Graph().as_default() as graph:
            count, result = make(manifest["folder"])
            tf.identity(result, "x")
            path = os.path.join(manifest["folder"], make.__name__ + ".pb")
            with open(path, "wb") as file:
                file.write(graph.as_graph_def().SerializeToString())
        config = v1.ConfigProto(inter_op_parallelism_threads=THREADS,
                                intra_op_parallelism_threads=THREADS)
        session = v1.Session(graph=graph, config=config)
        run = session.make_callable("x:0")
        run()
        made.append((count, run))
    print(f"ready {tf.__version__}", flush=True)
    for line in sys.stdin:
        count, run = made[int(line)]
        seconds = []
        for _ in range(manifest["repeats"]):
            begin = time.perf_counter()
            result = run()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps({"seconds": statistics.median(seconds),
                          "result": float(result), "records": count}),
              flush=True)


if __name__ == "__main__":
    main()
