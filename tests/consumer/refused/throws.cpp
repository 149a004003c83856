// Its function throws.
#include <stdexcept>

#include "graph/op_library.h"

namespace {

tagflow::Status add_ops() { throw std::runtime_error("no ops today"); }

}  // namespace

TAGFLOW_OP_LIBRARY(add_ops);
