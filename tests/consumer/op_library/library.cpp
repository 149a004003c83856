// ParseNumber and Polynomial as an op library.
#include "graph/op_library.h"
#include "own_ops.h"

namespace {

tagflow::Status add_ops() {
  TAGFLOW_RETURN_IF_ERROR(add_parse_number());
  TAGFLOW_RETURN_IF_ERROR(add_polynomial());
  add_polynomial_gradient();
  return {};
}

}  // namespace

TAGFLOW_OP_LIBRARY(add_ops);
