"""Cases for record_datasets.py: pipelines that parse Examples."""

import tensorflow as tf

Dataset = tf.data.Dataset
Feature = tf.train.Feature
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def example(**values):
    """An Example; a feature has whole numbers, floats, or strings."""
    features = {}
    for key, value in values.items():
        if value and isinstance(value[0], str):
            texts = [text.encode() for text in value]
            features[key] = Feature(bytes_list=tf.train.BytesList(value=texts))
        elif value and isinstance(value[0], float):
            features[key] = Feature(float_list=tf.train.FloatList(value=value))
        else:
            features[key] = Feature(int64_list=tf.train.Int64List(value=value))
    return tf.train.Example(features=tf.train.Features(
        feature=features)).SerializeToString()


def numbered(i):
    return example(dense=[i, i + 1], some=[0.5 * k for k in range(i)] or [9.5],
                   rows=[f"{i}.{k}" for k in range(i % 3)] or ["none"],
                   padded=list(range(i % 4)))


def batches(count, size=2, make=numbered):
    return Dataset.from_tensor_slices([make(i) for i in range(count)]).batch(
        size)


FEATURES = {
    "some": tf.io.VarLenFeature(tf.float32),
    "rows": tf.io.RaggedFeature(tf.string),
    "dense": tf.io.FixedLenFeature([2], tf.int64),
    "padded": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True,
                                            default_value=-1)}


def parsed(dataset, features=None, **options):
    return dataset.apply(tf.data.experimental.parse_example_dataset(
        features or FEATURES, **options))


@case
def parse_all_forms():
    return parsed(batches(5))


@case
def parse_in_parallel():
    return parsed(batches(20, 3), num_parallel_calls=4,
                  deterministic=True)


@case
def parse_and_map():
    return parsed(batches(5), num_parallel_calls=tf.data.AUTOTUNE).map(
        lambda f: (tf.sparse.to_dense(f["some"]), f["rows"].to_tensor("-"),
                   f["dense"] * 2, f["padded"]))


@case
def parse_and_unbatch():
    return parsed(batches(3)).map(
        lambda f: {"some": f["some"], "dense": f["dense"]}).unbatch()


@case
def parse_and_batch():
    return parsed(batches(8), {"some": FEATURES["some"],
                               "rows": FEATURES["rows"]}).batch(2)


@case
def parse_made_of_parts():
    """Features that other features are made of, by a map after it."""
    def make(i):
        values = [1.5 + k for k in range(i)]
        return example(at=[k * 2 for k in range(i)], value=values, flat=values,
                       splits=[0, i // 2, i])
    return parsed(batches(4, make=lambda i: make(i + 1)), {
        "sparse": tf.io.SparseFeature("at", "value", tf.float32, 9),
        "ragged": tf.io.RaggedFeature(
            tf.float32, "flat", [tf.io.RaggedFeature.RowSplits("splits")],
            row_splits_dtype=tf.int64)})


@case
def parse_with_an_error():
    """The second batch has an Example without a feature."""
    return parsed(batches(6, make=lambda i: numbered(i) if i != 2 else
                          example(some=[1.0])), num_parallel_calls=2)


@case
def parse_defaults():
    return parsed(batches(3, make=lambda i: example(x=[i]) if i else b""), {
        "x": tf.io.FixedLenFeature([], tf.int64, 7),
        "y": tf.io.FixedLenFeature([2], tf.string, ["a", "b"])})


@case
def parse_few_and_prefetch():
    return parsed(batches(4).repeat(2).shuffle(8, seed=3),
                  {"dense": FEATURES["dense"]}).prefetch(2)


def raw_parser(op, datasets, **options):
    """The op itself, of elements with any components."""
    dataset = datasets[0] if len(datasets) == 1 else Dataset.zip(datasets)
    handle = getattr(tf.raw_ops, op)(
        input_dataset=dataset._variant_tensor,
        num_parallel_calls=tf.constant(2, tf.int64),
        dense_defaults=[tf.constant([], tf.int64)], sparse_keys=[],
        dense_keys=["dense"], sparse_types=[], dense_shapes=[[2]],
        output_types=[tf.int64], output_shapes=[[None, 2]], **options)
    return tf.data.experimental.from_variant(
        handle, tf.TensorSpec([None, 2], tf.int64))


@case
def parse_first_version():
    return raw_parser("ParseExampleDataset", [batches(5)], sloppy=False)


@case
def parse_experimental():
    return raw_parser("ExperimentalParseExampleDataset", [batches(5)],
                      sloppy=False)


@case
def parse_components():
    return raw_parser("ParseExampleDatasetV2", (batches(4), batches(5, 3)))


@case
def parse_one_by_one():
    """Elements that are no vectors: each is a batch of one."""
    return raw_parser("ParseExampleDatasetV2", [
        Dataset.from_tensor_slices([numbered(i) for i in range(3)])])


@case
def parse_of_another_shape():
    return raw_parser("ParseExampleDatasetV2",
                      [batches(2, make=lambda i: example(dense=[i]))])


@case
def parse_one_shot():
    return {"one_shot": parsed(batches(3), {"some": FEATURES["some"],
                                            "dense": FEATURES["dense"]})}


@case
def parse_cardinality():
    return {"fetches": [tf.data.experimental.cardinality(
        parsed(batches(7), {"dense": FEATURES["dense"]}))]}


def batched_features():
    """A pipeline over files that its initializer is told; not recorded."""
    pattern = tf.compat.v1.placeholder(tf.string, [], "pattern")
    batches_of_files = tf.data.experimental.make_batched_features_dataset(
        pattern, 4, {"dense": FEATURES["dense"], "some": FEATURES["some"]},
        num_epochs=1, shuffle=False, reader_num_threads=2, label_key="dense")
    iterator = tf.compat.v1.data.make_initializable_iterator(batches_of_files)
    features, labels = iterator.get_next()
    tf.identity(labels, "labels")
    tf.identity(features["some"].indices, "indices")
    tf.identity(features["some"].values, "values")
