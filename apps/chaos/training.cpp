#include "apps/chaos/training.h"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "apps/tagflow/checkpoint/difference.h"
#include "devices/files/state.h"
#include "devices/files/tensor_file.h"
#include "graph/builder/builder.h"
#include "graph/file/graphdef.h"

namespace tagflow::chaos {
namespace {

using namespace graph;  // NOLINT: the builder's vocabulary

constexpr int64_t kWidth = 4;

Scope on_task(const Scope& s, uint32_t task) {
  return s.with_device(fmt::format("/job:worker/task:{}", task));
}

Output noise_at(const Scope& s, const std::string& name) {
  return ops::random_uniform(s.named(name),
                             Tensor::vector<int32_t>({int32_t(kWidth)}),
                             DataType::kFloat);
}

// The row when it has become large, and the number of trips of that.
Outputs grow(const Scope& s, const Output& row) {
  return while_loop(
      on_task(s, 1).named("grow"),
      [](const Scope& in, const Outputs& v) {
        const Scope there = on_task(in, 1);
        return ops::less(there, ops::reduce_sum(there, ops::abs(there, v[1])),
                         1000.f);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Output noise =
            ops::add(on_task(in, 0), noise_at(on_task(in, 0), "noise"), 1.1f);
        const Output grown = ops::mul(on_task(in, 2), v[1], noise);
        return {ops::add(on_task(in, 1), v[0], 1),
                ops::add(on_task(in, 1), grown, 0.25f)};
      },
      {ops::constant(on_task(s, 1), 0), row});
}

Status difference(std::string_view what) {
  return error(Code::kDataLoss, "[chaos] {}", what);
}

Status compare(const checkpoint::TensorFile& file,
               const checkpoint::TensorFile& undisturbed) {
  TAGFLOW_ASSIGN(const auto differences,
                 apps::compare_files(file, undisturbed, 0));
  if (!differences.empty()) return difference(differences[0].to_string());
  // Where numbers are equal, bits may differ.
  for (const checkpoint::TensorInfo& tensor : undisturbed.tensors()) {
    TAGFLOW_ASSIGN(const Tensor a, file.read(tensor.name));
    TAGFLOW_ASSIGN(const Tensor b, undisturbed.read(tensor.name));
    if (!identical(a, b))
      return difference(fmt::format("{} has other bits", tensor.name));
  }
  return {};
}

}  // namespace

Status write_training(const std::filesystem::path& file) {
  Graph graph;
  const Scope s(graph);
  const ops::Queue rows = ops::random_shuffle_queue(
      on_task(s, 1).named("rows"), {DataType::kFloat}, 0,
      {.shapes = {PartialShape({kWidth})}}, {.seed = 3, .seed2 = 5});
  const ops::Queue grown =
      ops::fifo_queue(on_task(s, 2).named("grown"), {DataType::kFloat},
                      {.shapes = {PartialShape({kWidth})}});
  Outputs inits = {ops::enqueue_many(
      on_task(s, 1), rows,
      {ops::constant(on_task(s, 1),
                     Tensor::of<float>(
                         {3, kWidth}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}))})};
  const Output row = ops::dequeue(on_task(s, 1), rows)[0];
  const Outputs last = grow(s, row);
  ops::identity(on_task(s, 1).named("trips"), last[0]);
  Outputs steps = {
      ops::enqueue(on_task(s, 2), grown, {last[1]}),
      ops::enqueue(
          on_task(s, 1), rows,
          {ops::add(on_task(s, 1), ops::mul(on_task(s, 1), row, -0.5f), 1.f)})};
  Output moved = ops::dequeue(on_task(s, 2), grown)[0];
  for (const uint32_t task : {0, 1, 2}) {
    const Scope there = on_task(s, task);
    const ops::Variable weight =
        ops::variable(there.named("w" + std::to_string(task)), DataType::kFloat,
                      PartialShape({kWidth}));
    inits.push_back(
        ops::assign(there, weight,
                    ops::constant(there, Tensor::vector<float>({1, 1, 1, 1}))));
    moved = ops::add(
        there,
        ops::mul(there, moved, noise_at(there, fmt::format("noise{}", task))),
        ops::mul(there, ops::read(there, weight), 0.5f));
    steps.push_back(ops::assign(there, weight, moved));
  }
  ops::reduce_sum(on_task(s, 0).named("loss"), moved);
  ops::group(s.named("init"), inits);
  ops::group(s.named("step"), steps);
  TAGFLOW_RETURN_IF_ERROR(s.status());
  return save_graph(graph, file);
}

int64_t step_of(const std::string& line) {
  constexpr std::string_view kBegin = "step ";
  if (!line.starts_with(kBegin)) return 0;
  char* end = nullptr;
  const int64_t step = std::strtoll(line.c_str() + kBegin.size(), &end, 10);
  return *end == ':' ? step : 0;
}

Status check_checkpoints(const std::filesystem::path& folder,
                         const std::filesystem::path& undisturbed,
                         int64_t step) {
  TAGFLOW_ASSIGN(const auto state,
                 checkpoint::read_checkpoint_state(folder.string()));
  for (const std::string& prefix : state.all) {
    TAGFLOW_ASSIGN(const auto file, checkpoint::open_tensor_file(prefix));
    for (const checkpoint::TensorInfo& tensor : file->tensors())
      TAGFLOW_RETURN_IF_ERROR(file->read(tensor.name).status());
  }
  TAGFLOW_ASSIGN(const auto newest, checkpoint::open_tensor_file(state.newest));
  TAGFLOW_ASSIGN(const auto other,
                 checkpoint::open_tensor_file(undisturbed.string()));
  if (newest->path().find(fmt::format("-{}", step)) == std::string::npos)
    return difference(
        fmt::format("the newest checkpoint is {:?}, not of step "
                    "{}",
                    newest->path(), step));
  return compare(*newest, *other);
}

}  // namespace tagflow::chaos
