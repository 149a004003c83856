// GPUs by their specs. Runs without one, too.
#include <doctest/doctest.h>

#include "devices/kernel_catalog.h"
#include "tests/devices/cuda/gpu.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/graph/hand_made.h"

namespace tagflow::devices {

TEST_CASE("a GPU that this machine does not have is an error, said in words") {
  // More than there are, on any machine.
  expect_error(make_devices("cuda:64"), Code::kNotFound, "[cuda] ");
  const auto one = make_devices("cuda:1");
  if (one.ok()) {
    REQUIRE(one->size() == 2);
    const graph::DeviceInfo& info = one->at(1)->info();
    CHECK(info.name.to_string() ==
          "/job:localhost/replica:0/task:0/device:GPU:0");
    CHECK_FALSE(info.host_memory);
    CHECK(info.memory_limit > 0);
    CHECK(info.flops_per_ns > 0);
    CHECK(info.bytes_per_ns > 0);
    CHECK(one->at(1)->accelerator() != nullptr);
  } else {
    // Without a driver, or with one that cannot be used.
    expect_error(one, Code::kNotFound, "GPU");
  }
}

TEST_CASE("a GPU's spec is checked before the device is made") {
  expect_error(make_devices("cuda:1:speed=5"), Code::kInvalidArgument,
               "cuda has no option \"speed\"; it has memory");
  expect_error(make_devices("cuda:memory=0B"), Code::kInvalidArgument,
               "[devices]");
}

TEST_CASE("the limit of a spec is the device's") {
  if (gpu_or_skip() == nullptr) return;
  const auto devices = make_devices("cuda:1:memory=64MiB");
  REQUIRE_MESSAGE(devices.ok(), devices.status().to_string());
  CHECK(devices->at(1)->info().memory_limit == int64_t(64) << 20);
  CHECK(devices->at(1)->memory().limit == int64_t(64) << 20);
}

TEST_CASE("GPUs run nodes of plain types that they have kernels for") {
  graph::Graph graph;
  const auto add = [&](std::string_view op, AttrMap attrs,
                       std::vector<graph::Endpoint> inputs = {}) {
    return graph::testing::add(graph, graph.unique_name("node"), op,
                               std::move(inputs), std::move(attrs));
  };
  graph::Node* number = add("Placeholder", {{"dtype", DataType::kFloat}});
  graph::Node* complex = add("Placeholder", {{"dtype", DataType::kComplex64}});
  graph::Node* text = add("Placeholder", {{"dtype", DataType::kString}});
  graph::Node* flag = add("Placeholder", {{"dtype", DataType::kBool}});
  const RegisteredKernels catalog;
  CHECK(
      catalog.has_kernel(*add("AddV2", {}, {{number, 0}, {number, 0}}), "GPU"));
  CHECK_FALSE(catalog.has_kernel(
      *add("AddV2", {}, {{complex, 0}, {complex, 0}}), "GPU"));
  CHECK(catalog.has_kernel(*add("Identity", {}, {{complex, 0}}), "GPU"));
  CHECK_FALSE(catalog.has_kernel(*add("Identity", {}, {{text, 0}}), "GPU"));
  CHECK(
      catalog.has_kernel(*add("Switch", {}, {{number, 0}, {flag, 0}}), "GPU"));
  CHECK_FALSE(
      catalog.has_kernel(*add("Switch", {}, {{text, 0}, {flag, 0}}), "GPU"));
  expect_error(
      KernelRegistry::global().make(*add("Identity", {}, {{text, 0}}), "GPU"),
      Code::kUnimplemented,
      "GPU runs only nodes with inputs and outputs of plain types");
  graph::Node* variable = add(
      "VarHandleOp", {{"dtype", DataType::kInt8}, {"shape", PartialShape()}});
  graph::Node* small = add("Placeholder", {{"dtype", DataType::kInt8}});
  CHECK(catalog.has_kernel(*variable, "GPU"));
  expect_error(
      KernelRegistry::global().make(
          *add("AssignAddVariableOp", {}, {{variable, 0}, {small, 0}}), "GPU"),
      Code::kUnimplemented, "no kernel on GPU for dtype=int8; there are ");
}

}  // namespace tagflow::devices
