// What is known of a tensor's values before they exist.
#pragma once

#include "graph/node.h"
#include "graph/shape.h"

namespace tagflow::apps {

// The type and the shape that each value of a tensor has; of a reference, those
// of the value that it refers to.
struct ValueType {
  DataType dtype = DataType::kInvalid;
  PartialShape shape;
};

ValueType value_type_of(const graph::Endpoint& endpoint);

}  // namespace tagflow::apps
