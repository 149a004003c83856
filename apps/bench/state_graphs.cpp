// The graphs whose variables or files are large.
#include <algorithm>
#include <span>

#include "apps/bench/building.h"
#include "apps/bench/graphs.h"

namespace tagflow::apps {

using namespace graph;  // NOLINT: the builder's vocabulary

Result<BenchGraph> make_embedding(int64_t rows, int64_t width, int count) {
  Building building;
  const Scope& s = building.scope();
  const ops::Variable v =
      ops::variable(s.named("v"), DataType::kFloat, {rows, width});
  const Output start =
      ops::fill(s, {rows, width}, opaque(s, Tensor::scalar(0.5f)));
  const Output init = ops::assign(s, v, start);
  Tensor chosen = Tensor::make(DataType::kInt32, {count});
  uint32_t state = 12345;
  for (int32_t& row : chosen.mutable_flat<int32_t>()) {
    state = state * 1664525u + 1013904223u;
    row = int32_t((uint64_t{state} * uint64_t(rows)) >> 32);
  }
  const Output indices = opaque(s, std::move(chosen));
  const Output gathered = s.op("ResourceGather", {v.handle, indices},
                               {{"dtype", DataType::kFloat}});
  const Output change = ops::mul(s, gathered, 0.001f);
  const Output scattered =
      s.op("ResourceScatterSub", {v.handle, indices, change},
           {{"dtype", DataType::kFloat}});
  ops::group(s.named("read"), {ops::read(s, v)});
  return building.done({}, {}, {scattered}, {init});
}

Result<BenchGraph> make_loop_of_large_updates(int64_t bytes) {
  Building building;
  const Scope& s = building.scope();
  const Scope there = s.with_device("/device:STREAM:0");
  const Shape shape{std::max<int64_t>(1, bytes / int64_t(sizeof(float)))};
  const Output n = trip_count(s);
  const ops::Variable v =
      ops::variable(there.named("v"), DataType::kFloat, shape);
  const Output delta = opaque(there, pseudo_random(shape));
  const Output init = ops::assign(there, v, ops::zeros_like(there, delta));
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& i) { return ops::less(in, i[0], n); },
      [&](const Scope& in, const Outputs& i) -> Outputs {
        const Scope then = in.with_control_dependencies({i[0]});
        const Output added =
            ops::assign_add(then.with_device("/device:STREAM:0"), v, delta);
        return {ops::add(in.with_control_dependencies({added}), i[0], 1)};
      },
      {0});
  return building.done({"n:0"}, {}, {ops::group(s, last)}, {init});
}

std::string checkpoint_name(int number) {
  return fmt::format("tensor_{}", number);
}

namespace {

Tensor text(std::span<const std::string> lines) {
  Tensor tensor = Tensor::make(DataType::kString, {int64_t(lines.size())});
  std::ranges::copy(lines, tensor.mutable_flat<std::string>().begin());
  return tensor;
}

// An empty slice spec for each tensor, for an op that reads or writes whole
// tensors.
struct CheckpointNames {
  CheckpointNames() : slices(kCheckpointTensors) {
    for (int i = 0; i < kCheckpointTensors; ++i)
      names.push_back(checkpoint_name(i));
  }
  std::vector<std::string> names, slices;
};

}  // namespace

Result<BenchGraph> make_save(const std::string& prefix, int64_t elements) {
  Building building;
  const Scope& s = building.scope();
  const CheckpointNames all;
  Outputs init;
  Inputs saved{ops::constant(s, Tensor::scalar(prefix)),
               ops::constant(s, text(all.names)),
               ops::constant(s, text(all.slices))};
  for (int i = 0; i < kCheckpointTensors; ++i) {
    const ops::Variable v =
        ops::variable(s, DataType::kFloat, PartialShape({elements}));
    const Output value = opaque(s, Tensor::scalar(0.5f + float(i)));
    init.push_back(ops::assign(s, v, ops::fill(s, {elements}, value)));
    saved.add(ops::read(s, v));
  }
  const Output save = s.op("SaveV2", saved);
  TAGFLOW_ASSIGN(BenchGraph graph, building.done({}, {}, {save}, init));
  graph.written = prefix;
  return graph;
}

Result<BenchGraph> make_restore(const std::string& prefix) {
  Building building;
  const Scope& s = building.scope();
  const CheckpointNames all;
  const std::vector<DataType> types(kCheckpointTensors, DataType::kFloat);
  const OpResult restored = s.op(
      "RestoreV2",
      {ops::constant(s, Tensor::scalar(prefix)),
       ops::constant(s, text(all.names)), ops::constant(s, text(all.slices))},
      {{"dtypes", types}});
  return building.done({}, {}, {restored[0]});
}

}  // namespace tagflow::apps
