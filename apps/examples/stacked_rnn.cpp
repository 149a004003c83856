// The layers of a stacked RNN, each on a device of its own, over time in one
// loop: layer k at time t takes what layer k - 1 has at t, and itself at t - 1.
//
//   x[t] -> h0 = tanh(x W0 + h0 U0)                on /cpu:0
//             +-> h1 = tanh(h0 W1 + h1 U1)         on /cpu:1
//                   +-> h2 = tanh(h1 W2 + h2 U2)   on /cpu:2
//
//   /cpu:0   t=0   t=1   t=2   t=3   t=4   ...
//   /cpu:1         t=0   t=1   t=2   t=3   ...
//   /cpu:2               t=0   t=1   t=2   ...     a front over time and layers
#include <Eigen/Core>
#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "actors/watch/observer.h"
#include "apps/examples/run.h"

using namespace tagflow;         // NOLINT: an example
using namespace tagflow::graph;  // NOLINT

namespace {

constexpr size_t kLayers = 3, kSteps = 50, kBatch = 8, kUnits = 48;

using Matrix = Eigen::Matrix<float, -1, -1, Eigen::RowMajor>;
struct Model {
  Matrix xs = Matrix::Random(kSteps * kBatch, kUnits);
  Matrix w = Matrix::Random(kLayers * kUnits, kUnits) * 0.2f;
  Matrix u = Matrix::Random(kLayers * kUnits, kUnits) * 0.2f;
};

struct State {
  Output t;
  std::vector<Output> h;  // of the layers
  TAGFLOW_FIELDS(t, h)
};

Scope on(const Scope& s, size_t layer) {
  return s.with_device("/cpu:" + std::to_string(layer));
}

Output constant(const Scope& s, const Matrix& m, const Shape& shape) {
  const std::span values(m.data(), size_t(m.size()));
  return ops::constant(s, Tensor::of<float>(shape, values));
}

// The last state of the last layer.
Output rnn(const Scope& s, const Model& model) {
  const Output xs = constant(s, model.xs, {kSteps, kBatch, kUnits});
  const Shape stacked = {kLayers, kUnits, kUnits};
  const Outputs w = ops::unpack(s, constant(s, model.w, stacked), kLayers);
  const Outputs u = ops::unpack(s, constant(s, model.u, stacked), kLayers);
  const Output zeros = ops::fill(s, {kBatch, kUnits}, 0.0f);
  const auto goes_on = [](const Scope& in, const State& v) {
    return ops::less(on(in, 0), v.t, int(kSteps));
  };
  const auto step = [&](const Scope& in, State v) {
    Output below = ops::gather(on(in, 0), xs, v.t);
    for (size_t k = 0; k < kLayers; ++k) {
      const Scope here = on(in, k);
      below = ops::tanh(here, ops::add(here, ops::matmul(here, below, w[k]),
                                       ops::matmul(here, v.h[k], u[k])));
      v.h[k] = below;
    }
    v.t = ops::add(on(in, 0), v.t, 1);
    return v;
  };
  const State first{ops::constant(s, 0), std::vector(kLayers, zeros)};
  return while_loop(s, goes_on, step, first).h.back();
}

// The result of the graph, computed in plain Eigen.
Matrix expected(const Model& model) {
  std::vector<Matrix> h(kLayers, Matrix::Zero(kBatch, kUnits));
  for (size_t t = 0; t < kSteps; ++t) {
    Matrix below = model.xs.middleRows(t * kBatch, kBatch);
    for (size_t k = 0; k < kLayers; ++k) {
      below *= model.w.middleRows(k * kUnits, kUnits);
      below += h[k] * model.u.middleRows(k * kUnits, kUnits);
      h[k] = below = below.array().tanh();
    }
  }
  return h.back();
}

// Sees how far the first layer gets ahead of the last one.
struct Front : actors::Observer {
  void on_fired(const actors::Location& location, const Node& node,
                std::span<const Tensor> /*outputs*/) override {
    if (node.op() != "Tanh") return;
    const std::lock_guard lock(mutex);
    steps[std::string(location.device)] = location.tag.iteration + 1;
    if (steps.size() == kLayers)
      ahead = std::max(ahead, steps.begin()->second - steps.rbegin()->second);
  }

  std::map<std::string, int64_t> steps;  // done, by device
  int64_t ahead = 0;
  std::mutex mutex;
};

}  // namespace

int main() {
  const Model model;
  Graph graph;
  const Scope s(graph);
  Front front;
  const Tensor h =
      examples::run(s, {}, {rnn(s, model)}, examples::on_devices("cpu:3"),
                    examples::watched_by(&front))[0];
  const Eigen::Map<const Matrix> ours(h.data<float>(), kBatch, kUnits);
  const float apart = (ours - expected(model)).cwiseAbs().maxCoeff();
  std::printf("layer 0 was up to %d steps ahead; %.1e off plain Eigen\n",
              int(front.ahead), double(apart));
  return apart < 1e-5f ? 0 : 1;
}
