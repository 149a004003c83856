// What ParseExampleDataset refuses. What it gives is among the pipelines that
// tests/actors/record_datasets.py records.
#include <doctest/doctest.h>

#include "devices/kernels/dataset/dataset.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

using Types = std::vector<DataType>;
using Strings = std::vector<std::string>;
using Shapes = std::vector<PartialShape>;

constexpr Code kInvalid = Code::kInvalidArgument;
const Tensor kNone = Tensor::vector<int64_t>({});

// A dataset of the rows of a tensor.
Tensor slices(const Tensor& rows) {
  const auto outputs =
      run_op("TensorSliceDataset", {rows}, {{"output_shapes", Shapes(1)}});
  REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
  return (*outputs)[0];
}

// A dataset that parses texts; dense features are of int64.
struct Parser {
  Strings dense, sparse, ragged;
  Shapes shapes;
  std::vector<Tensor> defaults;
  Types types, sparse_types, ragged_types;
  int64_t calls = 1;

  Result<Outputs> of(const Tensor& dataset) const {
    std::vector<Tensor> inputs = {dataset, Tensor::scalar(calls)};
    inputs.insert(inputs.end(), defaults.begin(), defaults.end());
    return run_op(
        "ParseExampleDatasetV2", inputs,
        {{"output_types", types},
         {"output_shapes", Shapes(types.size())},
         {"dense_keys", dense},
         {"sparse_keys", sparse},
         {"ragged_keys", ragged},
         {"Tdense", Types(defaults.size(), DataType::kInt64)},
         {"sparse_types", sparse_types},
         {"ragged_value_types", ragged_types},
         {"ragged_split_types", Types(ragged_types.size(), DataType::kInt64)},
         {"dense_shapes", shapes}});
  }
};

const Parser kBoth = {.dense = {"b"},
                      .sparse = {"a"},
                      .shapes = {{2}},
                      .defaults = {kNone},
                      .types = {DataType::kVariant, DataType::kInt64},
                      .sparse_types = {DataType::kFloat}};

Tensor texts() { return slices(Tensor::vector<std::string>({"", ""})); }

}  // namespace

TEST_CASE("a dataset that parses has as many elements as its input") {
  const auto made = kBoth.of(texts());
  REQUIRE(made.ok());
  const auto dataset = dataset_of((*made)[0], "it");
  REQUIRE(dataset.ok());
  CHECK((*dataset)->cardinality() == 2);
  CHECK((*dataset)->spec().types == kBoth.types);
}

TEST_CASE("a dataset that parses is refused for what no Example can have") {
  expect_error(kBoth.of(slices(kNone)), kInvalid,
               "must be serialized Examples, not values of int64");
  Parser parser = kBoth;
  parser.calls = 0;
  expect_error(parser.of(texts()), kInvalid, "num_parallel_calls");
  parser = kBoth;
  parser.types = {DataType::kInt64, DataType::kVariant};
  expect_error(parser.of(texts()), kInvalid,
               "components of types (variant, int64)");
  parser = kBoth;
  parser.sparse = {"b"};
  expect_error(parser.of(texts()), kInvalid, "there are two features \"b\"");
  parser = kBoth;
  parser.sparse = {"a", "c"};
  expect_error(parser.of(texts()), kInvalid,
               "sparse_keys has 2 keys, but sparse_types has 1 types");
  parser = kBoth;
  parser.dense = {};
  expect_error(parser.of(texts()), kInvalid,
               "dense_keys has 0 keys, but Tdense has 1 types");
  parser = kBoth;
  parser.ragged = {"r"};
  expect_error(parser.of(texts()), kInvalid,
               "ragged_keys has 1 keys, but ragged_value_types has 0 types");
}

TEST_CASE("a dataset that parses checks shapes and defaults at once") {
  Parser parser = kBoth;
  parser.defaults = {Tensor::vector<int64_t>({1})};
  expect_error(parser.of(texts()), kInvalid,
               "the default of feature \"b\" of shape [2]");
  parser = kBoth;
  parser.shapes = {{2, -1}};
  expect_error(parser.of(texts()), kInvalid,
               "only the first dimension of a shape may be unknown");
  parser = kBoth;
  parser.shapes = {{-1}};
  expect_error(parser.of(texts()), kInvalid, "must be one value to pad with");
  parser = kBoth;
  parser.shapes = {};
  expect_error(parser.of(texts()), kInvalid,
               "dense_shapes has 0 shapes for 1 features");
}

}  // namespace tagflow::devices
