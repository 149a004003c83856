#include "graph/placement/cost_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "graph/op_registry.h"
#include "graph/placement/program_costs.h"
#include "graph/placement/timeline.h"
#include "tests/graph/placement/devices_and_kernels.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

struct Nodes {
  Graph graph;
  int next = 0;

  Endpoint input(PartialShape shape, DataType type = DataType::kFloat) {
    return {put("Placeholder", {}, {{"dtype", type}, {"shape", shape}}), 0};
  }
  Node* put(std::string_view op, std::vector<Endpoint> inputs,
            AttrMap attrs = {}) {
    return add(graph, fmt::format("n{}", next++), op, std::move(inputs),
               std::move(attrs));
  }
  double flops(std::string_view op, std::vector<Endpoint> inputs,
               AttrMap attrs = {}) {
    return CostModel::estimate(*put(op, std::move(inputs), std::move(attrs)))
        .flops;
  }
};

double time_on(const CostModel& model, const Node& node,
               const std::vector<DeviceInfo>& devices, size_t device) {
  std::vector<double> times(devices.size());
  model.find_times(node, model.work(node), devices, times);
  return times[device];
}

const AttrMap kConvolution = {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                              {"padding", "SAME"}};

}  // namespace

TEST_CASE("cost model: MatMul counts the terms of each element") {
  Nodes n;
  CHECK(n.flops("MatMul", {n.input({10, 20}), n.input({20, 30})}) ==
        doctest::Approx(2. * 10 * 20 * 30));
  CHECK(n.flops("MatMul", {n.input({20, 10}), n.input({30, 20})},
                {{"transpose_a", true}, {"transpose_b", true}}) ==
        doctest::Approx(2. * 10 * 20 * 30));
  CHECK(n.flops("BatchMatMulV2",
                {n.input({2, 3, 10, 20}), n.input({2, 3, 20, 30})}) ==
        doctest::Approx(2. * 6 * 10 * 20 * 30));
  const NodeWork work = CostModel::estimate(
      *n.put("MatMul", {n.input({10, 20}), n.input({20, 30})}));
  CHECK(work.bytes == 4 * (10 * 20 + 20 * 30 + 10 * 30));
  CHECK(work.output_bytes == 4 * 10 * 30);
  CHECK_FALSE(work.is_free);
}

TEST_CASE("cost model: Conv2D counts the terms of each element") {
  Nodes n;
  const Endpoint image = n.input({2, 8, 8, 3});
  const Endpoint grad = n.input({2, 8, 8, 16});
  const double expected = 2. * (2 * 8 * 8 * 16) * (5 * 5 * 3);
  CHECK(n.flops("Conv2D", {image, n.input({5, 5, 3, 16})}, kConvolution) ==
        doctest::Approx(expected));
  Node* sizes = n.put("Shape", {image});
  CHECK(n.flops("Conv2DBackpropInput",
                {{sizes, 0}, n.input({5, 5, 3, 16}), grad},
                kConvolution) == doctest::Approx(expected));
  Node* filter = n.put("Shape", {n.input({5, 5, 3, 16})});
  Node* to_filter =
      n.put("Conv2DBackpropFilter", {image, {filter, 0}, grad}, kConvolution);
  n.graph.set_output_shape(to_filter, 0, {5, 5, 3, 16});
  CHECK(CostModel::estimate(*to_filter).flops == doctest::Approx(expected));
  CHECK(n.flops("DepthwiseConv2dNative", {image, n.input({5, 5, 3, 2})},
                kConvolution) ==
        doctest::Approx(2. * (2 * 8 * 8 * 6) * (5 * 5)));
}

TEST_CASE("cost model: each family of ops has its rule") {
  Nodes n;
  const Endpoint x = n.input({100, 10});
  CHECK(n.flops("Neg", {x}) == 1'000);
  CHECK(n.flops("AddN", {x, x, x}) == 3'000);
  CHECK(n.flops("Tanh", {x}) == 20'000);
  Node* axis = constant(n.graph, "axis", Tensor::scalar(0));
  CHECK(n.flops("Sum", {x, {axis, 0}}) == 1'000);
  CHECK(n.flops("MaxPool", {n.input({1, 8, 8, 4})},
                {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                 {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                 {"padding", "VALID"}}) == 4 * (4 * 4 * 4));
  Node* fused = n.put("_FusedElementwise", {x},
                      {{"program", std::vector<std::string>{"Neg 0", "Abs 1"}},
                       {"names", std::vector<std::string>{"a", "b"}}});
  n.graph.set_output_shape(fused, 0, {100, 10});
  CHECK(CostModel::estimate(*fused).flops == 2'000);
  Node* row = constant(n.graph, "row", Tensor::scalar(3));
  const NodeWork picked =
      CostModel::estimate(*n.put("GatherV2", {x, {row, 0}, {axis, 0}}));
  CHECK(picked.flops == 0);
  CHECK(picked.bytes == 2 * 4 * 10);
  const NodeWork copied =
      CostModel::estimate(*n.put("ConcatV2", {x, x, {axis, 0}}));
  CHECK(copied.flops == 0);
  CHECK(copied.bytes == 4 * (1'000 + 1'000 + 1 + 2'000));
  const NodeWork shape = CostModel::estimate(*n.put("Shape", {x}));
  CHECK(shape.flops == 0);
  CHECK(shape.bytes == 0);
  CHECK_FALSE(shape.is_free);
}

TEST_CASE("cost model: an op of a program says what its nodes take") {
  const auto add_op = [](const char* name, Work work) {
    OpRegistry::global().add(
        OpDefBuilder(name).input("x: float").output("y: float").work(work));
  };
  add_op("TestReduces", Work::kReduce);
  add_op("TestIsThere", Work::kFree);
  Nodes n;
  const Endpoint x = n.input({100, 10});
  CHECK(n.flops("TestReduces", {x}) == 1'000);
  CHECK(CostModel::estimate(*n.put("TestIsThere", {x})).is_free);
}

TEST_CASE("cost model: an op may lack the ports of its estimate") {
  Nodes n;
  const Endpoint x = n.input({100, 10});
  for (const Work work :
       {Work::kProduct, Work::kConvolution, Work::kDepthwise, Work::kWindow})
    for (const size_t num_inputs : {0, 3}) {
      const std::string name =
          fmt::format("TestBackpropFilter{}Of{}", int(work), num_inputs);
      CAPTURE(name);
      OpDefBuilder op(name);
      op.work(work);
      for (size_t i = 0; i < num_inputs; ++i)
        op.input(fmt::format("x{}: float", i));
      OpRegistry::global().add(std::move(op));
      CHECK(n.flops(name, std::vector<Endpoint>(num_inputs, x)) == 0);
    }
}

TEST_CASE("cost model: nodes that only pass on a token are free") {
  Nodes n;
  Node* start = constant(n.graph, "start", Tensor::scalar(0));
  const Counter loop = counter(n.graph, "loop", {start, 0}, {start, 0});
  for (Node* node : {start, loop.enter, loop.merge, loop.cond, loop.branch,
                     loop.body, loop.next, loop.exit, n.put("NoOp", {})})
    CHECK(CostModel::estimate(*node).is_free);
  CHECK_FALSE(CostModel::estimate(*loop.less).is_free);
  const auto devices = make_devices(1, 1);
  CHECK(time_on(CostModel(), *loop.branch, devices, 1) == 0);
  CHECK(time_on(CostModel(), *loop.less, devices, 0) >= 100);
}

TEST_CASE("cost model: unknown dimensions have an assumed size") {
  Nodes n;
  CHECK(CostModel::output_bytes(*n.input({-1, 10}).node, 0) == 4 * 32 * 10);
  CHECK(CostModel::output_bytes(*n.input(PartialShape()).node, 0) == 4 * 1'024);
  CHECK(CostModel::output_bytes(
            *n.input(PartialShape::scalar(), DataType::kDouble).node, 0) == 8);
  // Sizes that no tensor has are still numbers.
  const int64_t huge = int64_t(1) << 62;
  CHECK(CostModel::output_bytes(*n.input({huge, huge, huge}).node, 0) == 4e15);
}

TEST_CASE("cost model: a kernel takes as long as its arithmetic or memory") {
  Nodes n;
  DeviceInfo device = make_devices(1)[0];
  device.launch_ns = 7;
  device.flops_per_ns = 2;
  device.bytes_per_ns = 4;
  Node* tanh = n.put("Tanh", {n.input({100})});
  Node* neg = n.put("Neg", {n.input({100})});
  const CostModel model;
  CHECK(time_on(model, *tanh, {device}, 0) == 7 + 20 * 100 / 2.);
  CHECK(time_on(model, *neg, {device}, 0) == 7 + 2 * 4 * 100 / 4.);
  device.flops_per_ns = device.bytes_per_ns = 0;  // makes no sense
  CHECK(std::isfinite(time_on(model, *tanh, {device}, 0)));
}

TEST_CASE("cost model: measurements of earlier runs replace estimates") {
  Nodes n;
  const auto devices = make_devices(2, 1);
  Node* tanh = n.put("Tanh", {n.input({100})});
  CostModel model;
  const double on_cpu = time_on(model, *tanh, devices, 0);
  const double on_stream = time_on(model, *tanh, devices, 2);
  model.measure(tanh->name(), "CPU", 3 * on_cpu, 1'000);
  CHECK(time_on(model, *tanh, devices, 0) == doctest::Approx(3 * on_cpu));
  CHECK(time_on(model, *tanh, devices, 1) == doctest::Approx(3 * on_cpu));
  // If it has not been measured, it is wrong by the same factor.
  CHECK(time_on(model, *tanh, devices, 2) == doctest::Approx(3 * on_stream));
  CHECK(model.work(*tanh).output_bytes == 1'000);
  model.measure(tanh->name(), "STREAM", 77, 2'000);
  CHECK(time_on(model, *tanh, devices, 2) == 77);
  CHECK(model.work(*tanh).output_bytes == 1'500);
  // Nonsense does not count.
  model.measure(tanh->name(), "STREAM", -1, -1);
  model.measure(tanh->name(), "STREAM", std::nan(""), std::nan(""));
  CHECK(time_on(model, *tanh, devices, 2) == 77);
  CHECK(model.work(*tanh).output_bytes == 1'500);
}

TEST_CASE("cost model: the average of measurements follows what changes") {
  Nodes n;
  const auto devices = make_devices(1);
  Node* tanh = n.put("Tanh", {n.input({100})});
  CostModel model;
  for (const double sample : {10., 20., 60.})
    model.measure(tanh->name(), "CPU", sample, 400);
  CHECK(time_on(model, *tanh, devices, 0) == doctest::Approx(30));
  for (int i = 0; i < 1'000; ++i) model.measure(tanh->name(), "CPU", 90, 400);
  CHECK(time_on(model, *tanh, devices, 0) == doctest::Approx(90).epsilon(0.01));
}

TEST_CASE("cost model: transfers between host devices copy nothing") {
  const auto devices = make_devices(2, 2);
  const CostModel costs;
  const auto transfer = [&](size_t from, size_t to, double bytes) {
    return costs.transfer_ns(devices[from], devices[to], bytes);
  };
  CHECK(transfer(0, 1, 1e9) == CostModel::kHandOverNs);
  CHECK(transfer(0, 2, 0) == CostModel::kHandOverNs + 10'000);
  CHECK(transfer(2, 0, 1e6) == CostModel::kHandOverNs + 10'000 + 1e5);
  CHECK(transfer(2, 3, 1e6) == CostModel::kHandOverNs + 2 * (10'000 + 1e5));
}

TEST_CASE("cost model: transfers between tasks use their link") {
  auto devices = make_workers(3);
  devices.push_back(make_devices(0, 1)[0]);
  devices.back().name = {"worker", 0, 0, "STREAM", 0};
  CostModel costs;
  const auto transfer = [&](size_t from, size_t to, double bytes) {
    return costs.transfer_ns(devices[from], devices[to], bytes);
  };
  const CostModel::Link assumed;
  const double network = assumed.latency_ns + 3e6 / assumed.bytes_per_ns;
  CHECK(transfer(0, 1, 3e6) == CostModel::kHandOverNs + network);
  CHECK(transfer(3, 1, 3e6) == CostModel::kHandOverNs + 10'000 + 3e5 + network);
  CHECK(transfer(3, 0, 3e6) == CostModel::kHandOverNs + 10'000 + 3e5);
  const std::string task0 = "/job:worker/replica:0/task:0";
  const std::string task1 = "/job:worker/replica:0/task:1";
  must(costs.set(CostModel::LinkCosts{task0, task1, {5'000, 10}}));
  must(costs.set(CostModel::LinkCosts{task0, task1, {6'000, 10}}));
  CHECK(transfer(0, 1, 1e6) == CostModel::kHandOverNs + 6'000 + 1e5);
  CHECK(transfer(1, 0, 3e6) == CostModel::kHandOverNs + network);
  // A task is the same, however its name is written.
  must(costs.set(CostModel::LinkCosts{task0 + "0", task1, {7'000, 10}}));
  must(costs.set(CostModel::LinkCosts{task1, task0, {8'000, 10}}));
  CHECK(transfer(3, 1, 0) == CostModel::kHandOverNs + 10'000 + 7'000);
  CHECK(transfer(1, 0, 0) == CostModel::kHandOverNs + 8'000);
  CHECK(transfer(1, 2, 3e6) == CostModel::kHandOverNs + network);
  CostModel sum;
  sum.add(costs);
  CHECK(sum.link_costs() ==
        std::vector<CostModel::LinkCosts>{{task0, task1, {7'000, 10}},
                                          {task1, task0, {8'000, 10}}});
}

TEST_CASE("cost model: a link has two tasks, a latency and a rate") {
  CostModel costs;
  const std::string task = "/job:worker/replica:0/task:0";
  const std::string other = "/job:worker/replica:0/task:1";
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const CostModel::LinkCosts& bad :
       std::vector<CostModel::LinkCosts>{{"/job:worker/task:0", task, {}},
                                         {task, other + "/device:CPU:0", {}},
                                         {task, "worker", {}},
                                         {task, task, {}},
                                         {task, task + "0", {}},
                                         {task, other, {-1, 1}},
                                         {task, other, {1, 0}},
                                         {task, other, {1, 1e-300}},
                                         {task, other, {1, nan}}})
    CHECK(costs.set(bad).code() == Code::kInvalidArgument);
  CHECK(costs.link_costs().empty());
  must(costs.set(CostModel::LinkCosts{
      task, other, {CostModel::kMostMeasured, CostModel::kLeastRate}}));
  const auto devices = make_workers(2);
  CHECK(std::isfinite(costs.transfer_ns(devices[0], devices[1], 1e18)));
}

TEST_CASE("a timeline's device runs so many kernels at once") {
  auto devices = make_devices(1);
  devices[0].kernels_at_once = 2;
  const CostModel costs;
  Timeline timeline(devices, costs);
  CHECK(timeline.run(0, 5, 10).finish_ns == 15);
  CHECK(timeline.free_at(0) == 0);
  CHECK(timeline.run(0, 0, 20).start_ns == 0);
  CHECK(timeline.free_at(0) == 15);
  CHECK(timeline.run(0, 3, 10).start_ns == 15);
  CHECK(timeline.free_at(0) == 20);
  devices[0].kernels_at_once = 2'000'000'000;
  CHECK(Timeline(devices, costs).free_at(0) == 0);
}

TEST_CASE("a timeline's link carries one tensor at a time each way") {
  const auto devices = make_devices(2, 1);
  const CostModel costs;
  Timeline timeline(devices, costs);
  const double one = costs.transfer_ns(devices[0], devices[2], 1e6);
  CHECK(timeline.foresee({0, 2, 1e6, 0, 1}).finish_ns == one);
  CHECK(timeline.send({0, 2, 1e6, 0, 1}).finish_ns == one);
  CHECK(timeline.send({1, 2, 1e6, 0, 2}).finish_ns == 3 * one);
  CHECK(timeline.send({2, 0, 1e6, 5, 1}).start_ns == 5);
  CHECK(timeline.send({0, 1, 1e6, 0, 1}).start_ns == 0);
}

TEST_CASE("a timeline's link between tasks is shared by their devices") {
  auto devices = make_workers(3);
  devices.push_back(devices[0]);
  devices.back().name.id = 1;  // CPU:1 of task 0
  const CostModel costs;
  Timeline timeline(devices, costs);
  const double one = costs.transfer_ns(devices[0], devices[1], 1e6);
  CHECK(timeline.send({0, 1, 1e6, 0, 1}).finish_ns == one);
  CHECK(timeline.send({3, 2, 1e6, 0, 1}).finish_ns == 2 * one);
  CHECK(timeline.send({1, 0, 1e6, 0, 1}).finish_ns == one);
  CHECK(timeline.send({0, 3, 1e6, 0, 1}).finish_ns == CostModel::kHandOverNs);
}

TEST_CASE("a timeline's device has room for memory that is not held") {
  auto devices = make_devices(2);
  const CostModel costs;
  devices[0].memory_limit = 100;
  Timeline timeline(devices, costs);
  timeline.hold(0, 70);
  CHECK(timeline.room(0) == 30);
  timeline.release(0, 70);
  CHECK(timeline.room(0) == 100);
  CHECK(std::isinf(timeline.room(1)));
}

TEST_CASE("cost model: a loop counts as often as it was seen to go around") {
  CostModel model;
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()})
    model.measure_trips("loop", bad);
  CHECK(!model.trips("loop"));
  model.measure_trips("loop", 3);
  model.measure_trips("loop", 5);
  CHECK(*model.trips("loop") == 4);
}

TEST_CASE("cost model: trips of nested loops are multiplied") {
  Graph graph;
  Endpoint start{constant(graph, "start", Tensor::scalar(0)), 0};
  Endpoint limit{constant(graph, "limit", Tensor::scalar(3)), 0};
  std::vector<Node*> bodies;
  for (int depth = 1; depth <= 5; ++depth) {
    const Counter loop =
        counter(graph, fmt::format("loop_{}", depth), start, limit);
    bodies.push_back(loop.add);
    start = limit = {loop.body, 0};
  }
  const Program program = whole(std::move(graph));
  const auto devices = make_devices(1);
  const auto repeats = [&](const CostModel& model) {
    const ProgramCosts costs =
        must(ProgramCosts::build(program, devices, model));
    std::vector<double> found;
    for (const Node* body : bodies) found.push_back(costs.repeats(*body));
    return found;
  };
  using Numbers = std::vector<double>;
  CostModel model;
  CHECK(repeats(model) == Numbers{10, 100, 1000, 1000, 1000});
  model.measure_trips("loop_2", 7);
  CHECK(repeats(model) == Numbers{10, 70, 700, 7000, 7000});
  // What never ran still costs something.
  model.measure_trips("loop_1", 0);
  CHECK(repeats(model)[0] == doctest::Approx(0.01));
}
