// The stream device by its spec, and the kernels registered for it.
#include <doctest/doctest.h>

#include <algorithm>

#include "devices/kernel_catalog.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/stream/launching.h"
#include "tests/graph/hand_made.h"

namespace tagflow::devices {

TEST_CASE("a spec's options reach the device") {
  const auto devices = make_devices(
      "stream:1:memory=64MiB:latency=5us:bandwidth=8GB:copy-latency=3us");
  REQUIRE_MESSAGE(devices.ok(), devices.status().to_string());
  const graph::DeviceInfo& info = devices->at(1)->info();
  CHECK(info.memory_limit == int64_t(64) << 20);
  CHECK(info.launch_ns >= 5000);
  CHECK(info.link_latency_ns >= 3000);
  CHECK(info.link_bytes_per_ns == 8);
  CHECK(devices->at(1)->memory().limit == int64_t(64) << 20);
}

TEST_CASE("options that would only stall are refused") {
  expect_error(make_devices("stream:latency=2s"), Code::kInvalidArgument,
               "[stream] a latency of 2000000000 ns is not within 0 and 1 s");
  expect_error(make_devices("stream:copy-latency=9000s"),
               Code::kInvalidArgument,
               "[stream] a latency of 9000000000000 ns");
  expect_error(make_devices("stream:bandwidth=5KB"), Code::kInvalidArgument,
               "[stream] a bandwidth of 5000 bytes per second is below 1 MB/s");
  StreamOptions options;
  options.memory = 0;
  expect_error(options.check(), Code::kInvalidArgument,
               "[stream] memory must be at least 1, but is 0");
  options = {};
  options.launch_latency = std::chrono::nanoseconds(-1);
  expect_error(options.check(), Code::kInvalidArgument, "a latency of -1 ns");
  CHECK(StreamOptions().check().ok());
}

TEST_CASE("the stream runs the processor's kernels of plain types only") {
  graph::Graph graph;
  const auto add = [&](std::string_view op, AttrMap attrs,
                       std::vector<graph::Endpoint> inputs = {}) {
    return graph::testing::add(graph, graph.unique_name("node"), op,
                               std::move(inputs), std::move(attrs));
  };
  graph::Node* number = add("Placeholder", {{"dtype", DataType::kFloat}});
  graph::Node* text = add("Placeholder", {{"dtype", DataType::kString}});
  graph::Node* flag = add("Placeholder", {{"dtype", DataType::kBool}});
  graph::Node* plain = add("Identity", {}, {{number, 0}});
  graph::Node* string = add("Identity", {}, {{text, 0}});
  const KernelRegistry& registry = KernelRegistry::global();
  CHECK(registry.make(*plain, "STREAM").ok());
  expect_error(registry.make(*string, "STREAM"), Code::kUnimplemented,
               "[Identity] node \"node_4\": STREAM runs only nodes with inputs "
               "and outputs of plain types");

  const RegisteredKernels catalog;
  CHECK(catalog.has_kernel(*plain, "STREAM"));
  CHECK_FALSE(catalog.has_kernel(*string, "STREAM"));
  CHECK(catalog.has_kernel(*string, "CPU"));
  CHECK(catalog.has_kernel(*add("Switch", {}, {{number, 0}, {flag, 0}}),
                           "STREAM"));
  CHECK_FALSE(
      catalog.has_kernel(*add("Switch", {}, {{text, 0}, {flag, 0}}), "STREAM"));
  const auto types = catalog.types_of("AddV2");
  for (const char* type : {"CPU", "STREAM"})
    CHECK(std::ranges::find(types, type) != types.end());
}

}  // namespace tagflow::devices
