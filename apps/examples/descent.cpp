// Variables: a line is fitted to points by gradient descent, a step per run.
//
//      x ----> slope * x + offset - y = error --+--> mean(error^2) = "loss"
//                ^         ^                    |
//                |         +----- -= rate * mean(2 error)
//                +--------------- -= rate * mean(2 error x)
//
// What the variables hold outlives the runs: a snapshot of them goes into a
// second session, which goes on where the first one was.
#include <cmath>
#include <cstdio>

#include "actors/checkpoint/snapshot.h"
#include "actors/session/session.h"
#include "graph/builder/builder.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

// "init", "step", "loss", "slope" and "offset".
Status build(Graph& graph) {
  const Scope s(graph);
  const auto number = [&](const char* name) {
    return variable(s.named(name), DataType::kFloat, PartialShape::scalar());
  };
  const Variable slope = number("slope_variable");
  const Variable offset = number("offset_variable");
  group(s.named("init"), {assign(s, slope, 0.0f), assign(s, offset, 0.0f)});

  // Points of the line y = 3 x + 2.
  const Output x = constant(s, Tensor::vector<float>({-2, -1, 0, 1, 2, 3}));
  const Output y = constant(s, Tensor::vector<float>({-4, -1, 2, 5, 8, 11}));
  const Output a = read(s.named("slope"), slope);
  const Output b = read(s.named("offset"), offset);
  const Output error = sub(s, add(s, mul(s, a, x), b), y);
  reduce_mean(s.named("loss"), square(s, error), {0});
  const auto down = [&](const Variable& v, const Output& gradient) {
    return assign_sub(s, v, mul(s, reduce_mean(s, gradient, {0}), 0.1f));
  };
  group(s.named("step"), {down(slope, mul(s, mul(s, error, x), 2.0f)),
                          down(offset, mul(s, error, 2.0f))});
  return s.status();
}

Result<float> loss_after(actors::Session& session, int steps) {
  for (int i = 0; i < steps; ++i)
    TAGFLOW_RETURN_IF_ERROR(session.run({}, {}, {"step"}).status());
  TAGFLOW_ASSIGN(const auto loss, session.run({}, {"loss"}));
  std::printf("the loss is %.6f\n", double(loss[0].scalar_value<float>()));
  return loss[0].item<float>();
}

Result<bool> fit() {
  Graph graph;
  TAGFLOW_RETURN_IF_ERROR(build(graph));
  TAGFLOW_ASSIGN(auto first, actors::Session::create({}));
  TAGFLOW_RETURN_IF_ERROR(first->extend(graph));
  TAGFLOW_RETURN_IF_ERROR(first->run({}, {}, {"init"}).status());
  TAGFLOW_ASSIGN(const float begin, loss_after(*first, 0));
  TAGFLOW_ASSIGN(const float half, loss_after(*first, 20));

  TAGFLOW_ASSIGN(auto snapshots, actors::Snapshots::create(*first));
  TAGFLOW_ASSIGN(const actors::Snapshot snapshot, snapshots->take());
  TAGFLOW_ASSIGN(auto second, actors::Session::create({}));
  TAGFLOW_RETURN_IF_ERROR(second->extend(graph));
  TAGFLOW_ASSIGN(auto restored, actors::Snapshots::create(*second));
  TAGFLOW_RETURN_IF_ERROR(restored->restore(snapshot));
  TAGFLOW_ASSIGN(const float same, loss_after(*second, 0));
  TAGFLOW_ASSIGN(const float end, loss_after(*second, 60));
  TAGFLOW_ASSIGN(const auto line, second->run({}, {"slope", "offset"}));
  const float slope = line[0].scalar_value<float>();
  const float offset = line[1].scalar_value<float>();
  std::printf("y = %.2f x + %.2f\n", double(slope), double(offset));
  return half < begin && same == half && end < half &&
         std::abs(slope - 3) < 0.01f && std::abs(offset - 2) < 0.01f;
}

}  // namespace

int main() {
  const Result<bool> right = fit();
  if (!right.ok()) std::printf("%s\n", right.status().to_string().c_str());
  return right.ok() && *right ? 0 : 1;
}
