// Layers of the networks that classify pictures.
#pragma once

#include <cstdint>
#include <span>

#include "graph/builder/variable_scope.h"

namespace tagflow::training {

// A dense layer with relu.
graph::Output hidden_layer(const graph::Scope& s,
                           const graph::VariableScope& vars,
                           const graph::Output& x, const char* name,
                           int64_t units);

// A 3 x 3 convolution "conv_0", "conv_1", ... with relu for each number of
// channels, and after each a 2 x 2 pool, which halves the pictures. `x`: float
// [batch, height, width, channels].
graph::Output convolutions(const graph::Scope& s,
                           const graph::VariableScope& vars, graph::Output x,
                           std::span<const int64_t> channels);

}  // namespace tagflow::training
