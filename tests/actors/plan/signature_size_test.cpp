// The cost of a signature depends on the part of its graph that it uses.
#include <doctest/doctest.h>

#include <thread>

#include "actors/plan/compile.h"
#include "devices/device_registry.h"
#include "devices/kernel_catalog.h"
#include "graph/analysis/validate.h"
#include "graph/function.h"
#include "tests/actors/devices.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

constexpr int kParts = 2000;

// Many small parts: x of each, fed, is counted up to.
Graph make_large() {
  Graph graph;
  Node* zero = constant(graph, "zero", Tensor::scalar(0));
  for (int i = 0; i < kParts; ++i) {
    const std::string name = "part" + std::to_string(i);
    Node* x = add(graph, name + "/x", "Placeholder", {},
                  {{"dtype", DataType::kInt32}, {"shape", PartialShape({})}});
    const Counter c = counter(graph, name, {zero, 0}, {x, 0});
    add(graph, name + "/y", "Neg", {{c.exit, 0}});
  }
  return graph;
}

Distribution distribute_part(const Graph& graph, const FrameMap& frames,
                             Devices devices, int part) {
  const std::string name = "part" + std::to_string(part);
  Request request;
  request.feeds = {must(graph.endpoint(name + "/x"))};
  request.fetches = {must(graph.endpoint(name + "/y"))};
  SessionOptions options;
  if (devices.size() > 1) options.scatter = part;
  return must(distribute({graph, frames, options, devices::infos_of(devices),
                          devices::RegisteredKernels(), CostModel()},
                         request));
}

}  // namespace

TEST_CASE("a signature's tables are as large as what it uses of a graph") {
  const Graph graph = make_large();
  const FrameMap frames = must(validated_frames(graph));
  for (const char* spec : {"cpu:1", "cpu:3"}) {
    CAPTURE(spec);
    const auto devices = make_devices(spec);
    const Distribution made =
        distribute_part(graph, frames, devices, kParts - 1);
    // A part has 13 nodes, and a cut adds a few per edge.
    constexpr size_t kMost = 150;
    CHECK(made.placement.placement.device_of.size() < kMost);
    for (const Partition& partition : made.partitions) {
      CHECK(partition.program.graph.end_id() < kMost);
      CHECK(partition.program.graph.library().empty());
    }
  }
}

TEST_CASE("a compiled signature shares no functions with its graph") {
  Graph graph = make_large();
  FunctionDef f;
  f.signature = OpDefBuilder("F").input("x: int32").build();
  must(graph.library().add(f));
  const auto devices = make_devices("cpu:1");
  const FrameMap frames = must(validated_frames(graph));
  const Distribution made = distribute_part(graph, frames, devices, 0);
  CHECK(made.partitions[0].program.graph.library().empty());
}

TEST_CASE("several threads compile parts of one graph at once") {
  const Graph graph = make_large();
  const FrameMap frames = must(validated_frames(graph));
  for (const char* spec : {"cpu:1", "cpu:2,stream:1"}) {
    CAPTURE(spec);
    const auto devices = make_devices(spec);
    const auto nodes_of = [&](int part) {
      auto plans = must(actors::compile(
          distribute_part(graph, frames, devices, part).partitions, {},
          devices));
      std::vector<size_t> nodes;
      for (const auto& plan : plans)
        for (const FramePlan& frame : plan->frames)
          nodes.push_back(frame.nodes.size());
      return nodes;
    };
    constexpr int kThreads = 4;
    constexpr int kEach = 10;
    std::vector<std::vector<size_t>> expected;
    for (int part = 0; part < kEach; ++part) expected.push_back(nodes_of(part));
    std::vector<std::vector<std::vector<size_t>>> found(kThreads);
    std::vector<std::thread> threads;
    for (auto& mine : found)
      threads.emplace_back([&] {
        for (int part = 0; part < kEach; ++part) mine.push_back(nodes_of(part));
      });
    for (std::thread& thread : threads) thread.join();
    for (const auto& each : found) CHECK(each == expected);
  }
}
