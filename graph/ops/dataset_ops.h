// Private to graph/ops/dataset*.cpp: registration by theme.
#pragma once

#include <string_view>

#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

// Of the elements of a dataset.
inline constexpr std::string_view kElementTypes =
    "output_types: list(type) >= 1";
inline constexpr std::string_view kElementShapes =
    "output_shapes: list(shape) >= 1";

void register_dataset_iterator_ops(OpRegistry& registry);

}  // namespace tagflow::graph
