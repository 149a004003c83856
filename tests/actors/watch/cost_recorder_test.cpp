#include "actors/watch/cost_recorder.h"

#include <doctest/doctest.h>

#include <chrono>

#include "devices/device.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::graph::testing;
namespace ta = tagflow::actors;
namespace tg = tagflow::graph;

namespace {

constexpr int kLength = 5;
constexpr int64_t kRows = 64;

// Products of ones, each of the one before it.
tg::Graph chain() {
  tg::Graph graph;
  Tensor ones = Tensor::make(DataType::kFloat, {kRows, kRows});
  std::ranges::fill(ones.mutable_flat<float>(), 1.0F);
  tg::Node* last = constant(graph, "ones", ones);
  for (int i = 0; i < kLength; ++i)
    last = add(graph, fmt::format("product_{}", i), "MatMul",
               {{last, 0}, {graph.find("ones"), 0}});
  return graph;
}

// Of a node, on the device.
double time_of(const tg::CostModel& costs, const tg::Node& node,
               const tg::DeviceInfo& device) {
  double nanoseconds = 0;
  costs.find_times(node, costs.work(node), {&device, 1}, {&nanoseconds, 1});
  return nanoseconds;
}

// What was measured in one run.
struct Measured {
  tg::CostModel costs;
  tg::DeviceInfo device;
  double nanoseconds = 0;  // from its beginning to its end
};

// Runs all of the graph on a device of the type.
Measured measure(tg::Graph& graph, const std::string& type,
                 const std::vector<std::string>& targets) {
  for (tg::Node* node : graph.nodes())
    graph.set_device(node, fmt::format("/device:{}:0", type));
  ta::SessionOptions options;
  options.devices = "stream:1";
  options.passes = tg::PassSet::none();
  const auto session = ta::make_session(options, graph);
  ta::CostRecorder recorder(session->devices());
  ta::RunOptions run = ta::within_a_minute();
  run.observer = &recorder;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  must(session->run({}, {}, targets, run));
  const std::chrono::duration<double, std::nano> all = Clock::now() - start;
  const auto device =
      std::ranges::find(session->devices(), type, &devices::Device::type);
  return {recorder.costs(), (*device)->info(), all.count()};
}

void check_times(const std::string& type) {
  tg::Graph graph = chain();
  const auto [costs, info, all] =
      measure(graph, type, {fmt::format("product_{}", kLength - 1)});
  double sum = 0;
  for (int i = 0; i < kLength; ++i) {
    const tg::Node& node = *graph.find(fmt::format("product_{}", i));
    const double measured = time_of(costs, node, info);
    CHECK(measured > 0);
    // A measurement is a number of its own.
    CHECK(measured != time_of({}, node, info));
    CHECK(costs.work(node).output_bytes == double(kRows * kRows * 4));
    sum += measured;
  }
  // Each waits for the one before it, and none counts the wait.
  CHECK(sum <= all);
}

}  // namespace

TEST_CASE("each kernel on a worker is measured, for itself") {
  check_times("CPU");
}

TEST_CASE("each kernel on an accelerator is measured, for itself") {
  check_times("STREAM");
}

TEST_CASE("measured costs leave out the time that kernels wait for a turn") {
  // All are launched at once, and computed one after another.
  tg::Graph graph;
  Tensor ones = Tensor::make(DataType::kFloat, {kRows, kRows});
  std::ranges::fill(ones.mutable_flat<float>(), 1.0F);
  tg::Node* input = constant(graph, "ones", ones);
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    names.push_back(fmt::format("product_{}", i));
    add(graph, names.back(), "MatMul", {{input, 0}, {input, 0}});
  }
  const auto [costs, info, all] = measure(graph, "STREAM", names);
  double sum = 0;
  for (const std::string& name : names)
    sum += time_of(costs, *graph.find(name), info);
  CHECK(sum <= all);
}

TEST_CASE("a loop in a loop is seen to go around for each time of the other") {
  // The inner loop counts from 0 to 4, the outer one goes on from there to 5.
  for (const char* devices : {"cpu:1", "cpu:2"}) {
    tg::Graph graph;
    const tg::Endpoint start{constant(graph, "start", Tensor::scalar(0)), 0};
    const tg::Endpoint limit{constant(graph, "limit", Tensor::scalar(5)), 0};
    const tg::Endpoint four{constant(graph, "four", Tensor::scalar(4)), 0};
    const auto outer = counter(graph, "outer", start, limit);
    tg::Node* bound = add(graph, "bound", "Enter", {four},
                          {{"frame_name", "outer"}, {"is_constant", true}});
    const auto inner = counter(graph, "inner", {outer.body, 0}, {bound, 0});
    // On a device of its own if there is one.
    graph.set_device(inner.add, "/device:CPU:*");
    if (devices == std::string("cpu:2"))
      graph.set_device(inner.add, "/device:CPU:1");
    // What leaves the inner loop goes around the outer one.
    must(graph.set_input(outer.add, 0, {inner.exit, 0}));
    ta::SessionOptions options;
    options.devices = devices;
    const auto session = ta::make_session(options, graph);
    ta::CostRecorder recorder(session->devices());
    ta::RunOptions run = ta::within_a_minute();
    run.observer = &recorder;
    for (int i = 0; i < 2; ++i) {
      const auto out = must(session->run({}, {outer.exit->name()}, {}, run));
      CHECK(out[0].scalar_value<int>() == 5);
    }
    const tg::CostModel costs = recorder.costs();
    CHECK(*costs.trips("outer") == 1);
    CHECK(*costs.trips("inner") == 4);
    CHECK(!costs.trips(""));
  }
}
