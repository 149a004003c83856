// Adds an op of its own, and one that tagflow has.
#include "graph/op_library.h"

using namespace tagflow::graph;  // NOLINT: a library

namespace {

tagflow::Status add_ops() {
  OpRegistry& ops = OpRegistry::global();
  TAGFLOW_RETURN_IF_ERROR(ops.add(OpDefBuilder("OnlyHere").build()));
  return ops.add(OpDefBuilder("MatMul").build());
}

}  // namespace

TAGFLOW_OP_LIBRARY(add_ops);
