#!/usr/bin/env python3
"""Records what TensorFlow's datasets give, for the tests.

Usage: record_datasets.py OUTPUT_FOLDER     (needs tensorflow-cpu; not in CI)

Writes datasets.pb, one graph with a pipeline for each case, and datasets.txt.
There a case is a line "case NAME", "init NODE" unless its iterator needs none,
"fetch TENSOR" for each component, and for each element a line "element" with
its components below, or "error CODE". All go on until the end of the dataset,
or as far as the case says.
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

import dataset_choices
import example_pipelines
from dataset_recording import (CASES, Dataset, case, concrete, failing, int64,
                               is_even, is_small, numbers, raw, record,
                               to_range, twice, v1)


@case
def tensors():
    return Dataset.from_tensors((np.float32(1.5), np.array([1, 2]), "text"))


@case
def slices():
    return Dataset.from_tensor_slices(
        {"a": np.arange(6, dtype=np.float32).reshape(3, 2),
         "b": ["x", "", "yz"]})


@case
def range_up():
    return Dataset.range(3, 20, 5)


@case
def range_down():
    return Dataset.range(10, 0, -3)


@case
def range_empty():
    return Dataset.range(5, 5)


@case
def batch_rest():
    return numbers(7).batch(3)


@case
def batch_drop():
    return numbers(7).batch(3, drop_remainder=True)


@case
def batch_unlike():
    return numbers(4).map(tf.range).batch(2)


@case
def batch_strings():
    return Dataset.from_tensor_slices(["a", "bc", "def"]).batch(2)


@case
def map_pairs():
    return Dataset.zip((numbers(4), numbers(9).skip(2))).map(
        lambda a, b: (a + b, tf.strings.as_string(a)))


@case
def map_captured():
    factor = tf.constant([2, 3], tf.int64) + 1
    return numbers(4).map(lambda x: x * factor)


@case
def map_fails():
    return numbers(5).map(
        lambda x: tf.debugging.check_numerics(
            1.0 / tf.cast(x - 2, tf.float32), "one is infinite"))


@case
def map_loop():
    return numbers(6).map(lambda n: tf.while_loop(
        lambda i, a: i < n, lambda i, a: (i + 1, a + i),
        (tf.constant(0, tf.int64), tf.constant(0, tf.int64)))[1])


@case
def taken_after_error():
    return failing(1).take(3)


@case
def skipped_after_error():
    return failing(1).skip(2)


@case
def batch_after_error():
    return failing(1, 4).batch(2)


@case
def batch_of_others_after_error():
    return failing(0, 4).filter(is_small).batch(3)


@case
def batch_drops_after_error():
    return failing(7).batch(3, drop_remainder=True)


@case
def parallel_batch_after_error():
    return failing(1, 4).batch(3, num_parallel_calls=2, deterministic=True)


@case
def map_and_batch_after_error():
    return numbers(8).apply(tf.data.experimental.map_and_batch(
        lambda x: tf.debugging.check_numerics(
            1.0 / tf.cast(x - 2, tf.float32), "one is infinite"), 3))


@case
def padded_batch_after_error():
    return failing(0, 4).padded_batch(3, [])


@case
def window_after_error():
    return failing(1, 6).window(3, shift=2, stride=2).flat_map(
        lambda x: x.batch(3))


@case
def window_far_after_error():
    return failing(2).window(2, shift=4).flat_map(lambda x: x.batch(2))


@case
def cached_after_error():
    return failing(1).take(3).cache().repeat(2)


@case
def shuffled_after_error():
    return failing(3).shuffle(4, seed=5)


@case
def zipped_after_error():
    return Dataset.zip((failing(1), numbers(5)))


@case
def interleaved_after_error():
    return numbers(3).interleave(lambda _: failing(1).take(3), cycle_length=2,
                                 num_parallel_calls=None)


@case
def interleaved_blocks_after_error():
    return numbers(3).interleave(lambda _: failing(1).take(4), cycle_length=2,
                                 block_length=2, num_parallel_calls=None)


@case
def interleaved_call_fails():
    return failing(1).take(3).interleave(
        lambda x: numbers(2).map(lambda y: 10 * x + y), cycle_length=2,
        num_parallel_calls=None)


@case
def flat_map_after_error():
    return numbers(2).flat_map(lambda _: failing(1).take(2))


@case
def range_of_floats():
    return Dataset.range(3, output_type=tf.float32)


@case
def range_of_bytes():
    return Dataset.range(254, 258, output_type=tf.uint8)


@case
def parallel_map():
    return numbers(20).map(twice, num_parallel_calls=4)


@case
def parallel_map_auto():
    return numbers(9).map(twice, num_parallel_calls=tf.data.AUTOTUNE)


@case
def parallel_map_fails():
    return numbers(5).map(
        lambda x: tf.debugging.check_numerics(
            1.0 / tf.cast(x - 2, tf.float32), "one is infinite"),
        num_parallel_calls=2)


@case
def filtered():
    return numbers(10).filter(is_even)


@case
def filter_none():
    return numbers(1000).filter(lambda x: x > 5000)


@case
def taken_while():
    return numbers(10).take_while(lambda x: x < 4)


@case
def take_all():
    return numbers(3).take(-1)


@case
def take_some():
    return numbers(9).take(4)


@case
def skip_some():
    return numbers(9).skip(6)


@case
def skip_all():
    return numbers(9).skip(-1)


@case
def repeat_twice():
    return numbers(3).repeat(2)


@case
def repeat_forever():
    return numbers(5).repeat()


@case
def repeat_empty():
    return numbers(0).repeat()


@case
def concatenated():
    return numbers(3).concatenate(Dataset.range(10, 12))


@case
def zipped():
    return Dataset.zip((numbers(3), Dataset.range(5).batch(2)))


@case
def flat_mapped():
    return numbers(5).flat_map(to_range)


@case
def interleaved():
    return Dataset.range(1, 6).interleave(
        lambda x: Dataset.from_tensors(x).repeat(x), cycle_length=3,
        block_length=2)


@case
def interleave_parallel():
    return Dataset.range(1, 8).interleave(
        lambda x: Dataset.from_tensors(x).repeat(x), cycle_length=3,
        block_length=2, num_parallel_calls=2, deterministic=True)


@case
def interleave_wide():
    return numbers(3).interleave(
        lambda x: Dataset.range(10 * x, 10 * x + 2), cycle_length=100)


@case
def padded():
    return Dataset.range(1, 6).map(lambda n: (tf.range(n), n)).padded_batch(
        2, padded_shapes=([None], []))


@case
def padded_values():
    return Dataset.range(1, 4).map(
        lambda n: tf.fill([n, 4 - n], n)).padded_batch(
            3, padded_shapes=[4, None],
            padding_values=tf.constant(-1, tf.int64))


@case
def padded_too_small():
    return Dataset.range(1, 5).map(tf.range).padded_batch(
        2, padded_shapes=[3])


@case
def prefetched():
    return numbers(9).prefetch(2).map(twice).prefetch(tf.data.AUTOTUNE)


@case
def cached():
    return numbers(4).map(twice).cache().repeat(3)


@case
def windows():
    return numbers(7).window(3, shift=2, stride=2).flat_map(
        lambda w: w.batch(3))


@case
def windows_apart():
    return numbers(10).window(2, shift=4, drop_remainder=True).flat_map(
        lambda w: w)


@case
def scanned():
    return numbers(5).scan(
        tf.constant(0, tf.int64), lambda s, x: (s + x, s * 10))


@case
def unbatched():
    return numbers(5).batch(2).unbatch()


@case
def shuffled():
    return numbers(10).shuffle(4, seed=3, reshuffle_each_iteration=False)


@case
def shuffled_whole():
    return numbers(8).shuffle(100, seed=7)


@case
def shuffled_epochs():
    return numbers(6).shuffle(3, seed=5).repeat(3)


@case
def shuffled_same_epochs():
    return numbers(6).shuffle(
        3, seed=5, reshuffle_each_iteration=False).repeat(2)


@case
def shuffle_and_repeat():
    return raw("ShuffleAndRepeatDataset", numbers(5), buffer_size=int64(3),
               seed=int64(1), seed2=int64(2), count=int64(2))


@case
def shuffle_and_repeat_same():
    return raw("ShuffleAndRepeatDataset", numbers(5), buffer_size=int64(3),
               seed=int64(1), seed2=int64(2), count=int64(2),
               reshuffle_each_iteration=False)


@case
def older_map():
    return raw("ParallelMapDataset", numbers(7), other_arguments=[],
               f=concrete(twice), num_parallel_calls=2)


@case
def interleave_versions():
    make = tf.function(
        lambda x: Dataset.range(x)._variant_tensor).get_concrete_function(
            tf.TensorSpec([], tf.int64))
    data = numbers(5)
    for op in ("ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3"):
        data = raw(op, data, other_arguments=[], cycle_length=int64(2),
                   block_length=int64(1), num_parallel_calls=int64(2), f=make)
    return data


def by_experimental(function, **options):
    return tf.data.experimental.parallel_interleave(function, **options)


@case
def legacy_interleave():
    return numbers(6).apply(by_experimental(
        lambda x: Dataset.range(10 * x, 11 * x), cycle_length=2))


@case
def legacy_interleave_blocks():
    """Of even lengths: how TensorFlow goes on in the middle of a block depends
    on what is ready."""
    return numbers(7).apply(by_experimental(
        lambda x: Dataset.range(100 * x, 100 * x + x * 3 % 4 * 2),
        cycle_length=3, block_length=2, prefetch_input_elements=1))


@case
def legacy_interleave_after_error():
    return numbers(3).apply(by_experimental(
        lambda _: failing(1).take(3), cycle_length=2))


@case
def legacy_interleave_call_fails():
    return failing(1).take(3).apply(by_experimental(
        lambda x: numbers(2).map(lambda y: 10 * x + y), cycle_length=2))


@case
def legacy_interleave_versions():
    make = tf.function(
        lambda x: Dataset.range(x)._variant_tensor).get_concrete_function(
            tf.TensorSpec([], tf.int64))
    data = numbers(5)
    for op in ("ParallelInterleaveDataset",
               "ExperimentalParallelInterleaveDataset"):
        data = raw(op, data, other_arguments=[], cycle_length=int64(2),
                   block_length=int64(1), sloppy=tf.constant(False),
                   buffer_output_elements=int64(1),
                   prefetch_input_elements=int64(1), f=make)
    return data


@case
def resources():
    generator = tf.raw_ops.AnonymousSeedGenerator(
        seed=int64(4), seed2=int64(2), reshuffle=True)
    data = raw("ShuffleDatasetV3", numbers(6), buffer_size=int64(3),
               seed=int64(4), seed2=int64(2), seed_generator=generator.handle)
    cache = tf.raw_ops.AnonymousMemoryCache()
    data = raw("CacheDatasetV2", data, filename="", cache=cache.handle)
    return raw("ShuffleDatasetV3", data.repeat(2), buffer_size=int64(2),
               seed=int64(1), seed2=int64(5),
               seed_generator=tf.raw_ops.DummySeedGenerator())


@case
def map_and_batch():
    return numbers(7).apply(tf.data.experimental.map_and_batch(
        twice, 3, num_parallel_calls=2))


@case
def with_options():
    options = tf.data.Options()
    options.threading.private_threadpool_size = 2
    options.threading.max_intra_op_parallelism = 1
    return numbers(3).with_options(options)


@case
def passing():
    data = raw("ModelDataset", numbers(3))
    data = raw("OptimizeDataset", data,
               optimizations=tf.constant([], tf.string))
    data = raw("FinalizeDataset", data)
    return raw("PrivateThreadPoolDataset", data,
               num_threads=int64(1))


@case
def reduced():
    total = numbers(6).reduce(
        tf.constant(0, tf.int64), lambda s, x: s * 3 + x)
    return {"fetches": [total]}


@case
def single():
    return {"fetches": [tf.data.experimental.get_single_element(
        numbers(5).skip(4))]}


@case
def single_of_none():
    return {"fetches": [tf.data.experimental.get_single_element(
        numbers(0))]}


@case
def single_of_two():
    return {"fetches": [tf.data.experimental.get_single_element(
        numbers(2))]}


@case
def cardinalities():
    sets = [numbers(7), numbers(7).batch(2), numbers(7).repeat(),
            numbers(7).repeat().take(3), numbers(7).filter(is_even),
            numbers(7).skip(3), numbers(7).window(2, 2),
            numbers(3).concatenate(numbers(2)),
            Dataset.zip((numbers(3), numbers(9).repeat())),
            numbers(3).flat_map(to_range), numbers(7).shuffle(3).prefetch(1),
            numbers(7).map(twice), numbers(7).cache().repeat(2)]
    return {"fetches": [tf.stack(
        [tf.data.experimental.cardinality(d) for d in sets])]}


@case
def one_shot():
    return {"one_shot": numbers(7).filter(is_even).map(twice).batch(2)}


@case
def optional():
    iterator = v1.data.make_initializable_iterator(numbers(2))
    value = tf.data.experimental.get_next_as_optional(iterator)
    has = value.has_value()
    got = tf.cond(has, value.get_value, lambda: tf.constant(-1, tf.int64))
    return {"init": iterator.initializer, "fetches": [has, got], "runs": 4}


if __name__ == "__main__":
    record(CASES | example_pipelines.CASES,
           [example_pipelines.batched_features], pathlib.Path(sys.argv[1]))
