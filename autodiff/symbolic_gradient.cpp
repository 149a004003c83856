#include "autodiff/symbolic_gradient.h"

#include "autodiff/gradients.h"
#include "autodiff/paths.h"
#include "graph/builder/ops_array.h"
#include "graph/functions/symbolic_gradient.h"

namespace tagflow::autodiff {

using graph::Endpoint;
using graph::Output;
using graph::Outputs;

namespace {

class Maker final : public graph::GradientMaker {
 public:
  Result<std::vector<Endpoint>> make(graph::Graph& graph,
                                     const std::string& prefix,
                                     std::span<const Endpoint> ys,
                                     std::span<const Endpoint> grads,
                                     std::span<const Endpoint> xs) override {
    const graph::Scope s = graph::Scope(graph).sub_scope(prefix);
    GradientOptions options;
    options.zeros_if_unconnected = true;
    Outputs from, by;
    for (size_t i = 0; i < ys.size(); ++i) {
      const DataType type = Output(ys[i]).dtype();
      if (!is_floating(remove_ref(type)) && !is_complex(remove_ref(type)))
        continue;
      from.push_back(Output(ys[i]));
      options.grad_ys.push_back(Output(grads[i]));
    }
    for (const Endpoint& x : xs)
      if (has_gradient(Output(x).dtype())) by.push_back(Output(x));
    const Outputs made = from.empty() ? Outputs(std::vector<Output>(by.size()))
                                      : dense_gradients(s, from, by, options);
    // A tensor without a derivative has a gradient of zeros, as in TensorFlow.
    std::vector<Endpoint> results;
    size_t next = 0;
    for (const Endpoint& x : xs) {
      Output gradient;
      if (has_gradient(Output(x).dtype())) gradient = made[next++];
      if (!gradient.valid()) gradient = graph::ops::zeros_like(s, Output(x));
      results.push_back(gradient.endpoint());
    }
    TAGFLOW_RETURN_IF_ERROR(s.status());
    return results;
  }
};

}  // namespace

void enable_symbolic_gradients() {
  static Maker maker;
  graph::set_gradient_maker(&maker);
}

}  // namespace tagflow::autodiff
