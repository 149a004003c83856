#include "apps/shared/training/picture_layers.h"

#include <fmt/format.h>

#include <utility>

#include "autodiff/train/layer.h"
#include "graph/builder/builder.h"

namespace tagflow::training {

using namespace graph;  // NOLINT: the builder's vocabulary
namespace layers = autodiff::layers;

Output hidden_layer(const Scope& s, const VariableScope& vars, const Output& x,
                    const char* name, int64_t units) {
  return layers::dense(s, vars, x,
                       {.units = units,
                        .activation = ops::relu,
                        .kernel_initializer = initializers::he_uniform(),
                        .name = name});
}

Output convolutions(const Scope& s, const VariableScope& vars, Output x,
                    std::span<const int64_t> channels) {
  int layer = 0;
  for (const int64_t filters : channels) {
    x = layers::conv2d(s, vars, x,
                       {.filters = filters,
                        .padding = "SAME",
                        .activation = ops::relu,
                        .kernel_initializer = initializers::he_uniform(),
                        .name = fmt::format("conv_{}", layer++)});
    x = layers::max_pool(s, x);
  }
  return x;
}

}  // namespace tagflow::training
