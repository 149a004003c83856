// Meta-learning: weights from which a few steps of training lead far (MAML;
// Finn, Abbeel and Levine, "Model-agnostic meta-learning", 2017).
//
//   weights -> while step < n: w -= rate * dloss(w)/dw, of 10 points ----+
//      ^                                                                 v
//      +---- Adam <---- gradient by the first weights <---- loss of w, of
//      others
//
// A task is a sine of some height and phase; 16 are learnt side by side, each
// with weights of its own. The inner training is a loop with gradients in its
// body. The outer gradient goes back through that loop, and so is of second
// order. How many steps the inner training takes is fed.
#include <cstdio>

#include "actors/session/session.h"
#include "autodiff/gradients.h"
#include "autodiff/train/optimizers.h"
#include "graph/builder/builder.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

constexpr int kTasks = 16, kPoints = 10, kUnits = 32, kOuterSteps = 600;
constexpr double kInnerRate = 0.02;
constexpr float kPi = 3.14159265f;

using Weights = std::vector<Output>;  // each [tasks, ...]
struct Inner {
  Output step;
  Weights weights;
  TAGFLOW_FIELDS(step, weights)
};
struct Points {
  Output x, y;  // [tasks, points, 1]
};

Output uniform(const Scope& s, int points, float low, float high) {
  const Output unit =
      random_uniform(s, constant(s, {kTasks, points, 1}), DataType::kFloat);
  return add(s, mul(s, unit, high - low), low);
}

// Three layers: of [tasks, points, 1] to the same.
Output net(const Scope& s, const Weights& w, Output x) {
  for (size_t i = 0; i < w.size(); i += 2) {
    x = add(s, batch_matmul(s, x, w[i]), w[i + 1]);
    if (i + 2 < w.size()) x = tanh(s, x);
  }
  return x;
}
// The sum over tasks, so that each has its own gradient.
Output loss_of(const Scope& s, const Weights& w, const Points& points) {
  const Output error = squared_difference(s, net(s, w, points.x), points.y);
  return mul(s, reduce_mean(s, error), kTasks);
}

Weights trained(const Scope& s, const Weights& first, const Points& points,
                const Output& steps) {
  const auto step = [&](const Scope& in, const Inner& v) {
    Inner next{add(in, v.step, 1), {}};
    const Outputs slopes = autodiff::dense_gradients(
        in, {loss_of(in, v.weights, points)}, v.weights);
    for (size_t i = 0; i < v.weights.size(); ++i)
      next.weights.push_back(
          sub(in, v.weights[i], mul(in, slopes[i], kInnerRate)));
    return next;
  };
  return while_loop(
             s,
             [&](const Scope& in, const Inner& v) {
               return less(in, v.step, steps);
             },
             step, Inner{constant(s, 0), first})
      .weights;
}

// "init", "train", and "loss": the mean over tasks after "steps".
Status build(const Scope& s) {
  const VariableScope vars;
  const Output steps =
      placeholder(s.named("steps"), DataType::kInt32, PartialShape::scalar());
  Weights first;
  const std::vector<Shape> shapes = {{1, kUnits}, {1, kUnits}, {kUnits, kUnits},
                                     {1, kUnits}, {kUnits, 1}, {1, 1}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Initializer initial = i % 2 == 1 ? initializers::zeros() : nullptr;
    const ScopedVariable w = vars.get(s, "w" + std::to_string(i), shapes[i],
                                      {.initializer = initial});
    first.push_back(tile(s, expand_dims(s, w.read(s), 0), {kTasks, 1, 1}));
  }
  const Output height = uniform(s, 1, 0.1f, 5), phase = uniform(s, 1, 0, kPi);
  const auto draw = [&](int points) {
    const Output x = uniform(s, points, -5, 5);
    return Points{x, mul(s, height, sin(s, sub(s, x, phase)))};
  };
  const Points seen = draw(kPoints), others = draw(kPoints);
  const Output loss = loss_of(s, trained(s, first, seen, steps), others);
  autodiff::optimizers::adam(vars, 0.003)
      .minimize(s.named("train"), loss, vars.trainable_variables());
  real_div(s.named("loss"), loss, kTasks);
  vars.initialize(s.named("init"));
  return s.status();
}

Result<bool> run() {
  Graph graph;
  TAGFLOW_RETURN_IF_ERROR(build(Scope(graph)));
  actors::SessionOptions options;
  options.seed = 1;
  TAGFLOW_ASSIGN(auto session, actors::Session::create(options));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  TAGFLOW_RETURN_IF_ERROR(session->run({}, {}, {"init"}).status());
  // Of new tasks, 50 times 16.
  const auto loss_after = [&](int steps) -> Result<double> {
    double sum = 0;
    for (int i = 0; i < 50; ++i) {
      TAGFLOW_ASSIGN(
          const auto losses,
          session->run({{"steps", Tensor::scalar(int32_t(steps))}}, {"loss"}));
      sum += double(losses[0].scalar_value<float>());
    }
    return sum / 50;
  };
  TAGFLOW_ASSIGN(const double before, loss_after(5));
  for (int i = 0; i < kOuterSteps; ++i)
    TAGFLOW_RETURN_IF_ERROR(
        session->run({{"steps", Tensor::scalar(int32_t{3})}}, {}, {"train"})
            .status());
  std::printf("before: %.2f after 5 steps\nthen:", before);
  double last = 0;
  for (const int steps : {0, 1, 3, 5}) {
    TAGFLOW_ASSIGN(last, loss_after(steps));
    std::printf(" %.2f after %d,", last, steps);
  }
  std::printf(" of tasks that it has not seen\n");
  return last < before / 2;
}

}  // namespace

int main() {
  const auto good = run();
  if (!good.ok())
    std::fprintf(stderr, "%s\n", good.status().to_string().c_str());
  return good.ok() && *good ? 0 : 1;
}
