// The shared data of the copies of a ScopedVariable. Internal.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/scoped_variable.h"

namespace tagflow::graph {

struct ScopedVariable::Data {
  std::string name;
  DataType dtype = DataType::kInvalid;
  Shape shape;
  bool trainable = true;
  bool is_partitioned = false;
  std::vector<int64_t> partition;  // parts along each dimension
  int partition_axis = 0;
  std::vector<VariablePart> parts;
  Output value;  // replaces the parts
};

}  // namespace tagflow::graph
