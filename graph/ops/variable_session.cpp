// Tensors that one run stores in the session for others.
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

void register_variable_session_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("GetSessionHandle")
                   .input("value: T")
                   .output("handle: string")
                   .attr("T: type")
                   .stateful()
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("GetSessionHandleV2")
                   .input("value: T")
                   .output("handle: resource")
                   .attr("T: type")
                   .stateful()
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("GetSessionTensor")
                   .input("handle: string")
                   .output("value: dtype")
                   .attr("dtype: type")
                   .stateful()
                   .shape(unknown_shape));
  registry.add(OpDefBuilder("DeleteSessionTensor")
                   .input("handle: string")
                   .stateful()
                   .shape(no_output_shape));
}

}  // namespace tagflow::graph
