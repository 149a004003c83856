// How messages list the components of a queue or of a barrier.
#pragma once

#include <span>
#include <string>

#include "graph/shape.h"

namespace tagflow::devices {

// "shapes [2], []", or "any shapes" if none is declared.
std::string shapes_text(const graph::PartialShapes& shapes);
// "(float, int32)".
std::string types_text(std::span<const DataType> types);

}  // namespace tagflow::devices
