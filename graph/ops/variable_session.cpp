// Tensors that one run stores in the session for others.
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

void register_variable_session_ops(OpRegistry& registry) {
  define_stateful(registry, "GetSessionHandle", {"value: T"},
                  {"handle: string"}, {"T: type"}, scalar_shape);
  define_stateful(registry, "GetSessionHandleV2", {"value: T"},
                  {"handle: resource"}, {"T: type"}, scalar_shape);
  define_stateful(registry, "GetSessionTensor", {"handle: string"},
                  {"value: dtype"}, {"dtype: type"}, unknown_shape);
  define_stateful(registry, "DeleteSessionTensor", {"handle: string"}, {}, {},
                  no_output_shape);
}

}  // namespace tagflow::graph
