"""Cases of record_datasets.py: datasets that choose among elements, group them,
or draw numbers, and the older names of datasets."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from dataset_recording import (Dataset, case, concrete, failing, int64, is_even,
                               numbers, raw, twice)


def fails_at(x, where):
    """x, but an error if it is that number."""
    return tf.cast(tf.debugging.check_numerics(
        1.0 / tf.cast(x - where, tf.float32), "it is infinite") * 0.0,
        tf.int64) + x


def as_it_is(dataset):
    """The dataset, which TensorFlow would fail to write, as it does before it
    optimises."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


# --- Shards, errors, counts --------------------------------------------------


def shard(dataset, shards, index):
    return raw("ShardDataset", dataset, num_shards=int64(shards),
               index=int64(index), require_non_empty=True)


@case
def sharded():
    return numbers(10).shard(3, 1)


@case
def sharded_none():
    return numbers(2).shard(5, 3)


@case
def sharded_after_error():
    return failing(1, 5).shard(3, 2)


@case
def sharded_at_error():
    return failing(2).shard(3, 2)


@case
def sharded_non_empty():
    return shard(numbers(7), 3, 1)


@case
def sharded_too_few():
    return shard(numbers(2), 3, 1)


@case
def sharded_non_empty_after_error():
    return shard(failing(2), 4, 1)


@case
def sharded_non_empty_after_first_error():
    return shard(failing(0), 3, 0)


@case
def errors_ignored():
    return failing(1, 4).ignore_errors()


@case
def errors_ignored_of_batches():
    return failing(1, 4).batch(3).ignore_errors()


@case
def errors_ignored_at_end():
    return failing(6, 7).ignore_errors().repeat(2)


@case
def cardinality_asserted():
    return numbers(10).filter(is_even).apply(
        tf.data.experimental.assert_cardinality(5))


@case
def cardinality_too_small():
    return numbers(3).apply(tf.data.experimental.assert_cardinality(5))


@case
def cardinality_too_large():
    return numbers(5).apply(tf.data.experimental.assert_cardinality(3))


@case
def cardinality_not_infinite():
    return numbers(2).apply(tf.data.experimental.assert_cardinality(
        tf.data.experimental.INFINITE_CARDINALITY))


@case
def cardinality_after_error():
    return failing(1).apply(tf.data.experimental.assert_cardinality(7))


# --- Filters -----------------------------------------------------------------


def parallel_filter(dataset, predicate, calls=3):
    return as_it_is(raw(
        "ParallelFilterDataset", dataset, other_arguments=[],
        num_parallel_calls=int64(calls), predicate=concrete(predicate)))


@case
def filtered_in_parallel():
    return parallel_filter(numbers(20), is_even)


@case
def filtered_in_parallel_auto():
    return parallel_filter(numbers(20), lambda x: x > 15, -1)


@case
def filtered_in_parallel_fails():
    return parallel_filter(numbers(6), lambda x: is_even(fails_at(x, 2)))


@case
def filtered_in_parallel_after_error():
    return parallel_filter(failing(1, 4), lambda x: x != 3)


@case
def unique():
    return Dataset.from_tensor_slices([3, 1, 3, 2, 1, 4]).unique()


@case
def unique_texts():
    return Dataset.from_tensor_slices(["a", "", "a", "b", ""]).unique()


@case
def unique_shapes():
    return numbers(6).map(
        lambda x: tf.zeros([x % 3, 2], tf.int64)).unique()


@case
def unique_after_error():
    return failing(2).map(lambda x: x % 3).unique()


# --- Several datasets --------------------------------------------------------


def tens(n):
    return [Dataset.range(10 * i, 10 * i + n) for i in range(3)]


def choices(*which):
    return Dataset.from_tensor_slices(np.array(which, np.int64))


@case
def chosen():
    return Dataset.choose_from_datasets(
        tens(2), choices(0, 2, 1, 0, 0, 2, 1, 1), stop_on_empty_dataset=False)


@case
def chosen_until_one_is_empty():
    return Dataset.choose_from_datasets(
        tens(2), choices(0, 2, 1, 0, 0, 2, 1, 1), stop_on_empty_dataset=True)


@case
def chosen_until_all_are_empty():
    return Dataset.choose_from_datasets(
        tens(1), numbers(3).repeat(), stop_on_empty_dataset=False)


@case
def chosen_of_none():
    return Dataset.choose_from_datasets(tens(2), choices(0, 3, 1, -1, 2))


@case
def chosen_after_error():
    return Dataset.choose_from_datasets(
        [failing(1), numbers(3)], choices(0, 1, 0, 0, 1, 1))


@case
def chosen_by_errors():
    return Dataset.choose_from_datasets(tens(8)[:2],
                                        failing(1).map(lambda x: x % 2))


@case
def sampled():
    return Dataset.sample_from_datasets(tens(9), [0.2, 0.5, 0.3], seed=3)


@case
def sampled_alike():
    return Dataset.sample_from_datasets(tens(3), seed=5)


@case
def sampled_until_one_is_empty():
    return Dataset.sample_from_datasets(tens(3), seed=5,
                                        stop_on_empty_dataset=True)


@case
def sampled_by_weights():
    weights = Dataset.from_tensor_slices(
        np.array([[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]], np.float32)).repeat()
    return Dataset.sample_from_datasets(tens(4), weights, seed=2)


# --- Groups ------------------------------------------------------------------


@case
def grouped():
    return numbers(11).group_by_window(
        lambda x: x % 3, lambda key, window: window.batch(2), window_size=3)


@case
def grouped_by_sizes():
    factor = int64(2)
    return numbers(14).group_by_window(
        lambda x: x % 3 - 1,
        lambda key, window: window.map(lambda x: x * factor + key),
        window_size_func=lambda key: key * factor + 3)


@case
def grouped_pairs():
    return Dataset.zip((numbers(5), numbers(5).map(twice))).group_by_window(
        lambda a, b: b % 4,
        lambda key, window: Dataset.zip((window, numbers(9))).batch(2),
        window_size=4)


@case
def grouped_to_nothing():
    return numbers(8).group_by_window(
        lambda x: x % 2, lambda key, window: window.skip(key * 9),
        window_size=2)


@case
def grouped_after_error():
    return failing(1, 6).group_by_window(
        lambda x: x % 2, lambda key, window: window.batch(2), window_size=2)


@case
def grouped_key_fails():
    return numbers(8).group_by_window(
        lambda x: fails_at(x, 3) % 2, lambda key, window: window.batch(2),
        window_size=2)


@case
def grouped_size_fails():
    return numbers(8).group_by_window(
        lambda x: x % 3, lambda key, window: window.batch(2),
        window_size_func=lambda key: fails_at(key, 1) + 1)


@case
def grouped_without_size():
    return numbers(6).group_by_window(
        lambda x: x % 2, lambda key, window: window.batch(2),
        window_size_func=lambda key: key * 2)


@case
def grouped_reduction_fails():
    return numbers(9).group_by_window(
        lambda x: x % 2, lambda key, window: window.batch(2 - 2 * key),
        window_size=2)


@case
def grouped_elements_fail():
    return numbers(8).group_by_window(
        lambda x: x % 2,
        lambda key, window: window.map(lambda x: fails_at(x, 2)),
        window_size=3)


@case
def bucketed():
    lengths = [1, 7, 2, 4, 3, 9, 1, 5, 2]
    return Dataset.from_tensor_slices(lengths).map(
        lambda n: tf.fill([n], n)).bucket_by_sequence_length(
            tf.size, bucket_boundaries=[3, 6], bucket_batch_sizes=[2, 2, 1])


@case
def bucketed_to_boundaries():
    lengths = [1, 2, 4, 3, 1, 5, 2]
    return Dataset.from_tensor_slices(lengths).map(
        lambda n: (tf.fill([n], n), n)).bucket_by_sequence_length(
            lambda x, n: n, bucket_boundaries=[4, 7],
            bucket_batch_sizes=[3, 2, 1], pad_to_bucket_boundary=True,
            padding_values=(-1, 0), drop_remainder=True)


# --- Sources -----------------------------------------------------------------


@case
def random_numbers():
    return Dataset.random(seed=7)


@case
def random_numbers_again():
    return Dataset.random(seed=7).take(3).repeat(2)


@case
def random_numbers_anew():
    return Dataset.random(
        seed=7, rerandomize_each_iteration=True).take(3).repeat(3)


@case
def random_numbers_of_generator():
    generator = tf.raw_ops.AnonymousSeedGenerator(
        seed=int64(4), seed2=int64(2), reshuffle=True)
    handle = tf.raw_ops.RandomDatasetV2(
        seed=int64(1), seed2=int64(1), seed_generator=generator.handle,
        output_types=[tf.int64], output_shapes=[[]])
    return tf.data.experimental.from_variant(
        handle, tf.TensorSpec([], tf.int64)).take(3).repeat(2)


def sparse(indices, shape, values=None):
    indices = np.array(indices, np.int64).reshape(-1, len(shape))
    if values is None:
        values = np.arange(len(indices), dtype=np.float32)
    handle = tf.raw_ops.SparseTensorSliceDataset(
        indices=indices, values=values, dense_shape=np.array(shape, np.int64))
    rank = len(shape) - 1
    return tf.data.experimental.from_variant(handle, (
        tf.TensorSpec([None, rank], tf.int64),
        tf.TensorSpec([None], values.dtype), tf.TensorSpec([rank], tf.int64)))


@case
def sparse_slices():
    return sparse([[0, 1, 2], [2, 0, 0], [2, 3, 1], [3, 0, 3]], [5, 4, 4])


@case
def sparse_slices_of_vector():
    return sparse([[1], [3]], [4], np.array(["a", "b"]))


@case
def sparse_slices_empty():
    return sparse([], [2, 3])


@case
def sparse_slices_outside():
    return sparse([[0, 9], [2, 0], [7, 1]], [3, 2])


# --- Older names -------------------------------------------------------------


@case
def older_names():
    data = raw("ExperimentalIgnoreErrorsDataset", failing(1))
    data = raw("ExperimentalScanDataset", data, initial_state=[int64(0)],
               other_arguments=[], f=tf.function(
                   lambda s, x: (s + x, s * 10 + x)).get_concrete_function(
                       *[tf.TensorSpec([], tf.int64)] * 2))
    data = raw("ExperimentalTakeWhileDataset", data, other_arguments=[],
               predicate=concrete(lambda x: x < 150))
    data = raw("ExperimentalMapAndBatchDataset", data, [None],
               other_arguments=[], batch_size=int64(2),
               num_parallel_calls=int64(2), drop_remainder=False,
               f=concrete(twice))
    data = raw("ExperimentalUnbatchDataset", data)
    return raw("ExperimentalUniqueDataset", data.repeat(2))


@case
def older_choices():
    handle = tf.raw_ops.ExperimentalDirectedInterleaveDataset(
        selector_input_dataset=choices(0, 1, 1, 0)._variant_tensor,
        data_input_datasets=[d._variant_tensor for d in tens(2)],
        output_types=[tf.int64], output_shapes=[[]])
    return tf.data.experimental.from_variant(
        handle, tf.TensorSpec([], tf.int64))


@case
def older_groups():
    scalar = tf.TensorSpec([], tf.int64)
    reduce = tf.function(lambda key, window: tf.data.experimental.from_variant(
        window, scalar).batch(2)._variant_tensor).get_concrete_function(
            scalar, tf.TensorSpec([], tf.variant))
    return raw("ExperimentalGroupByWindowDataset", numbers(7), [None],
               key_func_other_arguments=[], reduce_func_other_arguments=[],
               window_size_func_other_arguments=[],
               key_func=concrete(lambda x: x % 2), reduce_func=reduce,
               window_size_func=concrete(lambda x: x + 2))


@case
def older_random_numbers():
    handle = tf.raw_ops.ExperimentalRandomDataset(
        seed=int64(3), seed2=int64(9), output_types=[tf.int64],
        output_shapes=[[]])
    return as_it_is(tf.data.experimental.from_variant(
        handle, tf.TensorSpec([], tf.int64)).take(4))


@case
def older_passing():
    data = raw("ExperimentalPrivateThreadPoolDataset", numbers(3),
               num_threads=int64(1))
    data = raw("ExperimentalMaxIntraOpParallelismDataset", data,
               max_intra_op_parallelism=int64(1))
    data = raw("ExperimentalNonSerializableDataset", data)
    return raw("ExperimentalAssertNextDataset", data,
               transformations=tf.constant([], tf.string))


@case
def cardinalities_of_choices():
    numbers_of = numbers(7)
    sets = [numbers_of.shard(3, 0), numbers_of.shard(3, 1),
            numbers_of.repeat().shard(2, 1), numbers_of.ignore_errors(),
            numbers_of.repeat().ignore_errors(),
            numbers_of.apply(tf.data.experimental.assert_cardinality(4)),
            parallel_filter(numbers_of, is_even), numbers_of.unique(),
            Dataset.choose_from_datasets(tens(2), numbers(2)),
            Dataset.choose_from_datasets(
                [numbers_of, numbers_of.repeat()], numbers(2),
                stop_on_empty_dataset=False),
            Dataset.choose_from_datasets([numbers_of, numbers_of.repeat()],
                                         numbers(2)),
            numbers_of.group_by_window(lambda x: x, lambda k, d: d,
                                       window_size=2),
            numbers_of.repeat().group_by_window(lambda x: x, lambda k, d: d,
                                                window_size=2),
            Dataset.random(seed=1), sparse([[0, 0]], [6, 1])]
    return {"fetches": [
        tf.stack([tf.data.experimental.cardinality(d) for d in sets]),
        tf.raw_ops.ExperimentalDatasetCardinality(
            input_dataset=numbers(8)._variant_tensor)]}
