// Training as a loop of the graph: one run fits a line between two kinds of
// points, and ends by itself when that is good enough.
//
//           +---------------- steps + 1, loss <-----------------+
//           v                                                   |
//   0, inf --> steps < 1000 and loss > 0.1 ? --yes--> weights --+--> loss
//           |                                            ^             |
//           no --> steps, loss                           |         gradients
//                                                        +--- Adam <---+
//
// Every step waits for the one before: it begins when `steps` is there, which
// waits for the update. So any number of iterations may be in flight.
#include <cstdio>
#include <limits>

#include "actors/session/session.h"
#include "autodiff/train/layer.h"
#include "autodiff/train/loss.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/schedule.h"
#include "graph/builder/builder.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::autodiff;    // NOLINT
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

constexpr int kSide = 8, kPoints = kSide * kSide, kMostSteps = 1000;
constexpr double kEnough = 0.1;

struct State {
  Output steps, loss;
  TAGFLOW_FIELDS(steps, loss)
};

// A grid of points (x, y), and on which side of 2 x - y = 0.1 each is.
struct Points {
  Tensor places = Tensor::make(DataType::kFloat, {kPoints, 2});
  Tensor sides = Tensor::make(DataType::kFloat, {kPoints, 1});

  Points() {
    for (int i = 0; i < kPoints; ++i) {
      const float x = float(i % kSide) / kSide, y = float(i / kSide) / kSide;
      places.mutable_data<float>()[2 * i] = x;
      places.mutable_data<float>()[2 * i + 1] = y;
      sides.mutable_data<float>()[i] = 2 * x - y > 0.1f ? 1 : 0;
    }
  }
};

Output classify(const Scope& s, const VariableScope& vars, const Output& x) {
  return layers::dense(s, vars.with_reuse(Reuse::kAuto), x,
                       {.units = 1,
                        .kernel_initializer = initializers::zeros(),
                        .name = "line"});
}

// "init", "steps", "loss" and "right": the share of points on their side.
Status build(const Scope& s) {
  const VariableScope vars;
  const Points points;
  const Output x = constant(s, points.places), y = constant(s, points.sides);
  const ScopedVariable counter = global_step(s, vars);

  const auto goes_on = [](const Scope& in, const State& v) {
    return logical_and(in, less(in, v.steps, kMostSteps),
                       greater(in, v.loss, kEnough));
  };
  const auto step = [&](const Scope& in, const State& v) {
    const Scope now = in.with_control_dependencies({v.steps});
    const Output loss =
        losses::sigmoid_cross_entropy(now, classify(now, vars, x), y);
    const Output rate = schedules::cosine_decay(now, 1.0, counter.read(now),
                                                {.decay_steps = kMostSteps});
    const Output update = optimizers::adam(vars, rate)
                              .minimize(now, loss, vars.trainable_variables(),
                                        {.global_step = counter});
    const Scope after = in.with_control_dependencies({update});
    return State{add(after, v.steps, 1), identity(after, loss)};
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const State last = while_loop(s, goes_on, step,
                                State{constant(s, 0), constant(s, infinity)});
  identity(s.named("steps"), last.steps);
  identity(s.named("loss"), last.loss);

  const Scope trained = s.with_control_dependencies({last.steps});
  const Output is_above = greater(s, classify(trained, vars, x), 0);
  const Output is_right = equal(s, cast(s, is_above, DataType::kFloat), y);
  reduce_mean(s.named("right"), cast(s, is_right, DataType::kFloat));
  vars.initialize(s.named("init"));
  return s.status();
}

Result<bool> run() {
  Graph graph;
  TAGFLOW_RETURN_IF_ERROR(build(Scope(graph)));
  TAGFLOW_ASSIGN(auto session, actors::Session::create({}));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  TAGFLOW_RETURN_IF_ERROR(session->run({}, {}, {"init"}).status());
  TAGFLOW_ASSIGN(const auto results,
                 session->run({}, {"steps", "loss", "right"}));
  const int steps = results[0].scalar_value<int32_t>();
  const float loss = results[1].scalar_value<float>();
  const float right = results[2].scalar_value<float>();
  std::printf("after %d steps the loss is %.3f; %.0f %% are right\n", steps,
              double(loss), 100 * double(right));
  return steps < kMostSteps && loss <= kEnough && right > 0.95f;
}

}  // namespace

int main() {
  const auto good = run();
  if (!good.ok())
    std::fprintf(stderr, "%s\n", good.status().to_string().c_str());
  return good.ok() && *good ? 0 : 1;
}
