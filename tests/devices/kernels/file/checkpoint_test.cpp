#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "devices/commit_gate.h"
#include "devices/files/bundle_reader.h"
#include "devices/kernel_registry.h"
#include "tests/devices/files/examples.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

using checkpoint::bytes_of;
using checkpoint::example;
using checkpoint::recorded_path;
using checkpoint::TempFolder;

Tensor texts(const std::vector<std::string>& values) {
  return Tensor::of<std::string>({int64_t(values.size())}, values);
}

Result<Outputs> save(const std::string& prefix,
                     const std::vector<std::string>& names,
                     const std::vector<std::string>& specs,
                     const std::vector<Tensor>& tensors,
                     const StepInfo* step = nullptr) {
  std::vector<Tensor> inputs = {Tensor::scalar(prefix), texts(names),
                                texts(specs)};
  std::vector<DataType> dtypes;
  for (const Tensor& tensor : tensors) {
    inputs.push_back(tensor);
    dtypes.push_back(tensor.dtype());
  }
  return run_op("SaveV2", inputs, {{"dtypes", dtypes}}, step);
}

Result<Outputs> restore(const std::string& prefix,
                        const std::vector<std::string>& names,
                        const std::vector<std::string>& specs,
                        const std::vector<DataType>& dtypes) {
  return run_op("RestoreV2",
                {Tensor::scalar(prefix), texts(names), texts(specs)},
                {{"dtypes", dtypes}});
}

void check_ok(const Result<Outputs>& outputs) {
  INFO(outputs.status().to_string());
  REQUIRE(outputs.ok());
}

const Tensor kMatrix = example(DataType::kFloat, {6, 4});

TEST_CASE("RestoreV2 restores what SaveV2 saves, whole and in slices") {
  const TempFolder folder("kernels");
  const Tensor words = example(DataType::kString, {3});
  check_ok(save(folder.path("p"), {"m", "w"}, {"", ""}, {kMatrix, words}));
  CHECK(folder.names() ==
        std::vector<std::string>{"p.data-00000-of-00001", "p.index"});
  const auto outputs = restore(folder.path("p"), {"w", "m", "m", "w"},
                               {"", "", "6 4 2,1:-", "3 1,2"},
                               {DataType::kString, DataType::kFloat,
                                DataType::kFloat, DataType::kString});
  check_ok(outputs);
  CHECK(identical((*outputs)[0], words));
  CHECK(identical((*outputs)[1], kMatrix));
  CHECK(identical((*outputs)[2],
                  Tensor::of<float>({1, 4}, {4.0f, 2.0f, 0.0f, 3.0f})));
  CHECK(identical((*outputs)[3], texts({"sss", "s"})));
}

TEST_CASE("partitions are saved, merged and restored as TensorFlow's") {
  const TempFolder folder("merged");
  const auto part = [](int64_t row, int64_t rows) {
    Tensor tensor = Tensor::make(DataType::kFloat, {rows, 4});
    std::copy_n(kMatrix.data<float>() + 4 * row, 4 * rows,
                tensor.mutable_data<float>());
    return tensor;
  };
  check_ok(save(folder.path("t/part_0"), {"m"}, {"6 4 0,2:-"}, {part(0, 2)}));
  check_ok(save(folder.path("t/part_1"), {"m", "m"}, {"6 4 2,3:-", "6 4 5,1:-"},
                {part(2, 3), part(5, 1)}));
  const std::vector<Tensor> inputs = {
      texts({folder.path("t/part_0"), folder.path("t/part_1")}),
      Tensor::scalar(folder.path("all"))};
  check_ok(run_op("MergeV2Checkpoints", inputs));
  // The folder is gone, as it is empty.
  CHECK(folder.names() == std::vector<std::string>{"all.data-00000-of-00002",
                                                   "all.data-00001-of-00002",
                                                   "all.index"});
  const auto outputs =
      restore(folder.path("all"), {"m"}, {""}, {DataType::kFloat});
  check_ok(outputs);
  CHECK(identical((*outputs)[0], kMatrix));
  expect_error(run_op("MergeV2Checkpoints", inputs), Code::kNotFound,
               "[MergeV2Checkpoints] [checkpoint] there is no checkpoint");
}

TEST_CASE("RestoreV2 says why a tensor cannot be restored") {
  const std::string types = recorded_path("types");
  expect_error(
      restore(types, {"of/float33"}, {""}, {DataType::kFloat}), Code::kNotFound,
      fmt::format("[RestoreV2] [checkpoint] there is no tensor \"of/float33\" "
                  "in \"{}\", which has 16 tensors; did you mean",
                  types));
  expect_error(
      restore(types, {"of/int32"}, {""}, {DataType::kFloat}),
      Code::kInvalidArgument,
      fmt::format("tensor \"of/int32\" of \"{}\" is int32[2,3], not float",
                  types));
  expect_error(restore(types, {"of/int32"}, {"2 4 -:-"}, {DataType::kInt32}),
               Code::kInvalidArgument,
               "is of shape [2,3], not [2,4] as in \"2 4 -:-\"");
  expect_error(restore(types, {"of/int32"}, {"2 3 1,2:-"}, {DataType::kInt32}),
               Code::kInvalidArgument, "is not within a tensor");
  expect_error(restore(types, {"of/int32"}, {"x"}, {DataType::kInt32}),
               Code::kInvalidArgument, "is not a slice");
  expect_error(restore(recorded_path("v1"), {"x"}, {""}, {DataType::kFloat}),
               Code::kUnimplemented, "is a V1 checkpoint");
  expect_error(restore("/nowhere/x", {"x"}, {""}, {DataType::kFloat}),
               Code::kNotFound, "there is no checkpoint \"/nowhere/x\"");
  expect_error(restore(types, {"a", "b"}, {"", ""}, {DataType::kFloat}),
               Code::kInvalidArgument,
               "2 tensor_names and 2 shape_and_slices for 1 tensors");
}

TEST_CASE("SaveV2 says why it cannot save, and leaves no file") {
  const TempFolder folder("refused");
  expect_error(save(folder.path("p"), {"x", "x"}, {"", ""}, {kMatrix, kMatrix}),
               Code::kInvalidArgument,
               "[SaveV2] [checkpoint] tensor \"x\" is added twice");
  expect_error(save(folder.path("p"), {"x"}, {"6 4 0,1:-"}, {kMatrix}),
               Code::kInvalidArgument, "its shape must be [1,4], not [6,4]");
  expect_error(save("", {"x"}, {""}, {kMatrix}), Code::kInvalidArgument,
               "is not a prefix");
  CHECK(folder.names().empty());
}

TEST_CASE("a step that has been answered publishes nothing") {
  const TempFolder folder("answered");
  CommitGate gate([] {});
  CHECK(gate.close());
  StepInfo step;
  step.commits = &gate;
  expect_error(save(folder.path("p"), {"x"}, {""}, {kMatrix}, &step),
               Code::kCancelled, "the step is over");
  CHECK(folder.names().empty());
}

TEST_CASE("names of shards are TensorFlow's") {
  const auto name = [](int shard, int count) {
    return run_op("ShardedFilename",
                  {Tensor::scalar("/a/b"), Tensor::scalar(int32_t(shard)),
                   Tensor::scalar(int32_t(count))});
  };
  expect_close(name(3, 12), Tensor::scalar("/a/b-00003-of-00012"));
  expect_close(name(-3, 1234567), Tensor::scalar("/a/b--0003-of-1234567"));
  expect_close(run_op("ShardedFilespec",
                      {Tensor::scalar("/a/b"), Tensor::scalar(int32_t(12))}),
               Tensor::scalar("/a/b-?????"
                              "-of-00012"));
}

TEST_CASE("shapes of slices are known before the run") {
  const auto shapes =
      infer_op("RestoreV2",
               {Tensor::scalar("p"), texts({"a", "b", "c"}),
                texts({"", "6 4 2,3:-", "x"})},
               {{"dtypes", std::vector<DataType>(3, DataType::kFloat)}});
  REQUIRE(shapes.ok());
  CHECK((*shapes)[0].to_string() == "<unknown>");
  CHECK((*shapes)[1].to_string() == "[3,4]");
  CHECK((*shapes)[2].to_string() == "<unknown>");
  expect_error(infer_op("SaveV2", {Tensor::scalar("p"), texts({"a", "b"}),
                                   texts({""}), kMatrix}),
               Code::kInvalidArgument, "input 1 has 2 elements for 1 tensors");
}

TEST_CASE("ops of V1 checkpoints are refused by name") {
  expect_error(
      run_op("Save", {Tensor::scalar("f"), texts({"x"}), kMatrix}),
      Code::kUnimplemented,
      "V1 checkpoints are neither read nor written; use SaveV2 and RestoreV2");
  expect_error(run_op("Restore", {Tensor::scalar("f"), Tensor::scalar("x")},
                      {{"dt", DataType::kFloat}}),
               Code::kUnimplemented, "[Restore] node");
}

}  // namespace
}  // namespace tagflow::devices
