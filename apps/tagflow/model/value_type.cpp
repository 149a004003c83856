#include "apps/tagflow/model/value_type.h"

namespace tagflow::apps {

ValueType value_type_of(const graph::Endpoint& endpoint) {
  const graph::Node& node = *endpoint.node;
  ValueType type;
  type.dtype = remove_ref(node.output_dtypes()[size_t(endpoint.port)]);
  type.shape = node.output_shape(endpoint.port);
  if (node.op() == "Placeholder") {
    const Result<PartialShape> declared = node.attr<PartialShape>("shape");
    if (declared.ok() && !type.shape.has_rank()) type.shape = *declared;
  }
  return type;
}

}  // namespace tagflow::apps
