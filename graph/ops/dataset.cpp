// Datasets of tf.data, which are variants, and what a function makes of their
// elements. Note [Pipelines] in devices/kernels/dataset/stage.h says how they
// run. All are stateful, so that no pass makes or merges them.
#include "graph/ops/dataset_ops.h"

namespace tagflow::graph {

namespace {

constexpr std::string_view kComponentTypes = "Toutput_types: list(type) >= 1";
constexpr std::string_view kMetadata = "metadata: string = ''";

// An op that makes a dataset, with inputs in their order.
OpDefBuilder dataset(std::string name, OpDefBuilder::Texts inputs,
                     OpDefBuilder::Texts attrs,
                     std::string_view types = kElementTypes) {
  OpDefBuilder op(std::move(name));
  op.inputs(inputs).output("handle: variant").attrs(attrs);
  return std::move(op.attrs({types, kElementShapes, kMetadata})
                       .stateful()
                       .shape(scalar_shape)
                       .work(Work::kNoData));
}

// One that makes a dataset of another one.
OpDefBuilder of_dataset(std::string name, OpDefBuilder::Texts inputs,
                        OpDefBuilder::Texts attrs = {},
                        std::string_view types = kElementTypes) {
  OpDefBuilder op(std::move(name));
  op.input("input_dataset: variant").inputs(inputs).output("handle: variant");
  return std::move(op.attrs(attrs)
                       .attrs({types, kElementShapes, kMetadata})
                       .stateful()
                       .shape(scalar_shape)
                       .work(Work::kNoData));
}

// One that calls a function, the attribute `function`, with captured values.
OpDefBuilder calling(std::string name, OpDefBuilder::Texts inputs,
                     OpDefBuilder::Texts attrs,
                     std::string_view function = "f: func") {
  OpDefBuilder op(std::move(name));
  op.inputs({"input_dataset: variant", "other_arguments: Targuments"})
      .inputs(inputs)
      .output("handle: variant");
  return std::move(op.attrs({function, "Targuments: list(type) >= 0"})
                       .attrs(attrs)
                       .attrs({kElementTypes, kElementShapes, kMetadata})
                       .stateful()
                       .shape(scalar_shape)
                       .work(Work::kNoData));
}

void register_sources(OpRegistry& registry) {
  registry.add(dataset("TensorDataset", {"components: Toutput_types"}, {},
                       kComponentTypes));
  registry.add(
      dataset("TensorSliceDataset", {"components: Toutput_types"},
              {"is_files: bool = false", "replicate_on_split: bool = false"},
              kComponentTypes));
  registry.add(
      OpDefBuilder("SparseTensorSliceDataset")
          .inputs({"indices: int64", "values: Tvalues", "dense_shape: int64"})
          .output("handle: variant")
          .attr("Tvalues: type")
          .stateful()
          .shape(scalar_shape)
          .work(Work::kNoData));
  for (const char* name : {"RandomDataset", "ExperimentalRandomDataset"})
    registry.add(dataset(name, {"seed: int64", "seed2: int64"}, {}));
  registry.add(
      dataset("RandomDatasetV2",
              {"seed: int64", "seed2: int64", "seed_generator: resource"},
              {"rerandomize_each_iteration: bool = false"}));
  registry.add(dataset("RangeDataset",
                       {"start: int64", "stop: int64", "step: int64"},
                       {"replicate_on_split: bool = false"}));
}

void register_rearranging(OpRegistry& registry) {
  const auto parallel_copy = "parallel_copy: bool = false";
  registry.add(of_dataset("BatchDataset", {"batch_size: int64"}));
  registry.add(of_dataset("BatchDatasetV2",
                          {"batch_size: int64", "drop_remainder: bool"},
                          {parallel_copy}));
  registry.add(
      of_dataset("ParallelBatchDataset",
                 {"batch_size: int64", "num_parallel_calls: int64",
                  "drop_remainder: bool"},
                 {parallel_copy, "deterministic: string = 'default'"}));
  registry.add(of_dataset("PaddedBatchDataset",
                          {"batch_size: int64", "padded_shapes: N * int64",
                           "padding_values: Toutput_types"},
                          {"N: int >= 1"}, kComponentTypes));
  registry.add(
      of_dataset("PaddedBatchDatasetV2",
                 {"batch_size: int64", "padded_shapes: N * int64",
                  "padding_values: Toutput_types", "drop_remainder: bool"},
                 {parallel_copy, "N: int >= 1"}, kComponentTypes));
  for (const char* name : {"UnbatchDataset", "ExperimentalUnbatchDataset"})
    registry.add(of_dataset(name, {}));
  registry.add(
      of_dataset("WindowDataset", {"size: int64", "shift: int64",
                                   "stride: int64", "drop_remainder: bool"}));
  for (const char* name : {"TakeDataset", "SkipDataset", "RepeatDataset"})
    registry.add(of_dataset(name, {"count: int64"}));
  registry.add(of_dataset("ShardDataset", {"num_shards: int64", "index: int64"},
                          {"require_non_empty: bool = false"}));
  for (const char* name : {"UniqueDataset", "ExperimentalUniqueDataset"})
    registry.add(of_dataset(name, {}));
  registry.add(of_dataset("ConcatenateDataset", {"another_dataset: variant"}));
  registry.add(
      dataset("ZipDataset", {"input_datasets: N * variant"}, {"N: int >= 1"}));
  for (const char* name :
       {"DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset"})
    registry.add(dataset(
        name,
        {"selector_input_dataset: variant", "data_input_datasets: N * variant"},
        {"N: int >= 1", "stop_on_empty_dataset: bool = false"}));
  registry.add(
      of_dataset("PrefetchDataset", {"buffer_size: int64"},
                 {"slack_period: int = 0", "legacy_autotune: bool = true",
                  "buffer_size_min: int = 0"}));
  registry.add(of_dataset("CacheDataset", {"filename: string"}));
  registry.add(
      of_dataset("CacheDatasetV2", {"filename: string", "cache: resource"}));
}

void register_shuffling(OpRegistry& registry) {
  const auto reshuffle = "reshuffle_each_iteration: bool = true";
  registry.add(of_dataset("ShuffleDataset",
                          {"buffer_size: int64", "seed: int64", "seed2: int64"},
                          {reshuffle}));
  registry.add(of_dataset("ShuffleDatasetV2",
                          {"buffer_size: int64", "seed_generator: resource"}));
  registry.add(of_dataset("ShuffleDatasetV3",
                          {"buffer_size: int64", "seed: int64", "seed2: int64",
                           "seed_generator: resource"},
                          {reshuffle}));
  registry.add(of_dataset(
      "ShuffleAndRepeatDataset",
      {"buffer_size: int64", "seed: int64", "seed2: int64", "count: int64"},
      {reshuffle}));
  registry.add(of_dataset("ShuffleAndRepeatDatasetV2",
                          {"buffer_size: int64", "seed: int64", "seed2: int64",
                           "count: int64", "seed_generator: resource"},
                          {reshuffle}));
}

void register_calling(OpRegistry& registry) {
  const auto keeps = "preserve_cardinality: bool = false";
  const auto inter_op = "use_inter_op_parallelism: bool = true";
  const auto deterministic = "deterministic: string = 'default'";
  registry.add(calling("MapDataset", {},
                       {inter_op, keeps, "force_synchronous: bool = false"}));
  registry.add(calling("ParallelMapDataset", {"num_parallel_calls: int32"},
                       {inter_op, "sloppy: bool = false", keeps}));
  registry.add(calling("ParallelMapDatasetV2", {"num_parallel_calls: int64"},
                       {inter_op, deterministic, keeps,
                        "use_unbounded_threadpool: bool = false"}));
  for (const char* name :
       {"MapAndBatchDataset", "ExperimentalMapAndBatchDataset"})
    registry.add(calling(name,
                         {"batch_size: int64", "num_parallel_calls: int64",
                          "drop_remainder: bool"},
                         {keeps}));
  for (const char* name :
       {"FilterDataset", "TakeWhileDataset", "ExperimentalTakeWhileDataset"})
    registry.add(calling(name, {}, {}, "predicate: func"));
  registry.add(calling("ParallelFilterDataset", {"num_parallel_calls: int64"},
                       {deterministic}, "predicate: func"));
  registry.add(calling("FlatMapDataset", {}, {}));
  registry.add(calling("InterleaveDataset",
                       {"cycle_length: int64", "block_length: int64"}, {}));
  registry.add(calling("ParallelInterleaveDatasetV2",
                       {"cycle_length: int64", "block_length: int64",
                        "num_parallel_calls: int64"},
                       {"sloppy: bool = false"}));
  registry.add(calling("ParallelInterleaveDatasetV3",
                       {"cycle_length: int64", "block_length: int64",
                        "num_parallel_calls: int64"},
                       {deterministic}));
  registry.add(
      calling("ParallelInterleaveDatasetV4",
              {"cycle_length: int64", "block_length: int64",
               "buffer_output_elements: int64",
               "prefetch_input_elements: int64", "num_parallel_calls: int64"},
              {deterministic}));
  for (const char* name :
       {"ParallelInterleaveDataset", "ExperimentalParallelInterleaveDataset"})
    registry.add(calling(
        name,
        {"cycle_length: int64", "block_length: int64", "sloppy: bool",
         "buffer_output_elements: int64", "prefetch_input_elements: int64"},
        {}));
  registry.add(calling(
      "LegacyParallelInterleaveDatasetV2",
      {"cycle_length: int64", "block_length: int64",
       "buffer_output_elements: int64", "prefetch_input_elements: int64"},
      {deterministic}));
  for (const char* name : {"ScanDataset", "ExperimentalScanDataset"})
    registry.add(dataset(
        name,
        {"input_dataset: variant", "initial_state: Tstate",
         "other_arguments: Targuments"},
        {"f: func", "Tstate: list(type) >= 1", "Targuments: list(type) >= 0",
         keeps, "use_default_device: bool = true"}));
  for (const char* name :
       {"GroupByWindowDataset", "ExperimentalGroupByWindowDataset"})
    registry.add(dataset(
        name,
        {"input_dataset: variant",
         "key_func_other_arguments: Tkey_func_other_arguments",
         "reduce_func_other_arguments: Treduce_func_other_arguments",
         "window_size_func_other_arguments: Twindow_size_func_other_arguments"},
        {"key_func: func", "reduce_func: func", "window_size_func: func",
         "Tkey_func_other_arguments: list(type) >= 0",
         "Treduce_func_other_arguments: list(type) >= 0",
         "Twindow_size_func_other_arguments: list(type) >= 0"}));
}

// Those that parse batches of Examples. A component is a feature, in the order
// of their keys; sparse and ragged ones are variants.
void register_parsing(OpRegistry& registry) {
  const auto parser = [](const char* name, const char* order) {
    return of_dataset(
        name, {"num_parallel_calls: int64", "dense_defaults: Tdense"},
        {"sparse_keys: list(string) >= 0", "dense_keys: list(string) >= 0",
         "sparse_types: list({float, int64, string}) >= 0",
         "Tdense: list({float, int64, string}) >= 0",
         "dense_shapes: list(shape) >= 0", order});
  };
  const OpDefBuilder::Texts ragged = {
      "ragged_keys: list(string) >= 0 = []",
      "ragged_value_types: list({float, int64, string}) >= 0 = []",
      "ragged_split_types: list({int32, int64}) >= 0 = []"};
  const auto sloppy = "sloppy: bool = false";
  registry.add(parser("ExperimentalParseExampleDataset", sloppy));
  registry.add(parser("ParseExampleDataset", sloppy).attrs(ragged));
  registry.add(
      parser("ParseExampleDatasetV2", "deterministic: string = 'default'")
          .attrs(ragged));
}

// Those of the records of files, which are texts.
void add_file_dataset(OpRegistry& registry, const char* name,
                      OpDefBuilder::Texts inputs) {
  registry.add(OpDefBuilder(name)
                   .inputs(inputs)
                   .output("handle: variant")
                   .attr(kMetadata)
                   .stateful()
                   .shape(scalar_shape)
                   .work(Work::kNoData),
               always_uses_files);
}

void register_files(OpRegistry& registry) {
  const auto names = "filenames: string";
  const auto compression = "compression_type: string";
  const auto buffer = "buffer_size: int64";
  for (const char* op : {"TFRecordDataset", "TextLineDataset"})
    add_file_dataset(registry, op, {names, compression, buffer});
  add_file_dataset(registry, "TFRecordDatasetV2",
                   {names, compression, buffer, "byte_offsets: int64"});
  add_file_dataset(registry, "FixedLengthRecordDataset",
                   {names, "header_bytes: int64", "record_bytes: int64",
                    "footer_bytes: int64", buffer});
  add_file_dataset(registry, "FixedLengthRecordDatasetV2",
                   {names, "header_bytes: int64", "record_bytes: int64",
                    "footer_bytes: int64", buffer, compression});
}

// Those that only say how other datasets run.
void register_passing(OpRegistry& registry) {
  registry.add(
      of_dataset("OptionsDataset", {}, {"serialized_options: string"}));
  registry.add(of_dataset(
      "ModelDataset", {},
      {"algorithm: int = 0", "cpu_budget: int = 0", "ram_budget: int = 0"}));
  const auto configs = "optimization_configs: list(string) = []";
  registry.add(
      of_dataset("OptimizeDataset", {"optimizations: string"}, {configs}));
  registry.add(of_dataset(
      "OptimizeDatasetV2",
      {"optimizations_enabled: string", "optimizations_disabled: string",
       "optimizations_default: string"},
      {configs}));
  registry.add(of_dataset("RewriteDataset", {"rewrite_name: string"}));
  registry.add(
      of_dataset("FinalizeDataset", {}, {"has_captured_ref: bool = false"}));
  for (const std::string older : {"", "Experimental"}) {
    registry.add(
        of_dataset(older + "AssertNextDataset", {"transformations: string"}));
    registry.add(
        of_dataset(older + "PrivateThreadPoolDataset", {"num_threads: int64"}));
    registry.add(of_dataset(older + "MaxIntraOpParallelismDataset",
                            {"max_intra_op_parallelism: int64"}));
    registry.add(of_dataset(older + "NonSerializableDataset", {}));
  }
}

// Those that look at the elements, which they pass on.
void register_checking(OpRegistry& registry) {
  registry.add(of_dataset("AssertCardinalityDataset", {"cardinality: int64"}));
  for (const char* name :
       {"IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset"})
    registry.add(of_dataset(name, {}, {"log_warning: bool = false"}));
}

}  // namespace

void register_dataset_ops(OpRegistry& registry) {
  register_sources(registry);
  register_rearranging(registry);
  register_shuffling(registry);
  register_calling(registry);
  register_parsing(registry);
  register_files(registry);
  register_passing(registry);
  register_checking(registry);
  register_dataset_iterator_ops(registry);
}

}  // namespace tagflow::graph
