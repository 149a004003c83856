// An op of it has a text that nobody can read.
#include "graph/op_library.h"

using namespace tagflow::graph;  // NOLINT: a library

namespace {

tagflow::Status add_ops() {
  return OpRegistry::global().add(
      OpDefBuilder("Crooked").input("x float").build());
}

}  // namespace

TAGFLOW_OP_LIBRARY(add_ops);
