// Maps from tensors to tensors, as variants.
#include "graph/ops/containers_ops.h"

namespace tagflow::graph {

void register_containers_tensor_map_ops(OpRegistry& registry) {
  const auto key = "key_dtype: type";
  const auto value = "value_dtype: type";
  registry.add(OpDefBuilder("EmptyTensorMap")
                   .output("handle: variant")
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("TensorMapSize")
                   .input("input_handle: variant")
                   .output("size: int32")
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("TensorMapLookup")
                   .inputs({"input_handle: variant", "key: key_dtype"})
                   .output("value: value_dtype")
                   .attrs({key, value})
                   .shape(unknown_shape));
  registry.add(OpDefBuilder("TensorMapHasKey")
                   .inputs({"input_handle: variant", "key: key_dtype"})
                   .output("has_key: bool")
                   .attr(key)
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("TensorMapInsert")
                   .inputs({"input_handle: variant", "key: key_dtype",
                            "value: value_dtype"})
                   .output("output_handle: variant")
                   .attrs({key, value})
                   .changes_input(0)
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("TensorMapErase")
                   .inputs({"input_handle: variant", "key: key_dtype"})
                   .output("output_handle: variant")
                   .attrs({key, value})
                   .changes_input(0)
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("TensorMapStackKeys")
                   .input("input_handle: variant")
                   .output("keys: key_dtype")
                   .attr(key)
                   .shape(unknown_shape));
}

}  // namespace tagflow::graph
