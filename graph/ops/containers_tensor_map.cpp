// Maps from tensors to tensors, as variants.
#include "graph/ops/containers_ops.h"

namespace tagflow::graph {

void register_containers_tensor_map_ops(OpRegistry& registry) {
  const auto key = "key_dtype: type";
  const auto value = "value_dtype: type";
  define(registry, "EmptyTensorMap", {}, {"handle: variant"}, {}, scalar_shape);
  define(registry, "TensorMapSize", {"input_handle: variant"}, {"size: int32"},
         {}, scalar_shape);
  define(registry, "TensorMapLookup",
         {"input_handle: variant", "key: key_dtype"}, {"value: value_dtype"},
         {key, value}, unknown_shape);
  define(registry, "TensorMapHasKey",
         {"input_handle: variant", "key: key_dtype"}, {"has_key: bool"}, {key},
         scalar_shape);
  define_changing(
      registry, "TensorMapInsert",
      {"input_handle: variant", "key: key_dtype", "value: value_dtype"},
      {"output_handle: variant"}, {key, value}, scalar_shape);
  define_changing(registry, "TensorMapErase",
                  {"input_handle: variant", "key: key_dtype"},
                  {"output_handle: variant"}, {key, value}, scalar_shape);
  define(registry, "TensorMapStackKeys", {"input_handle: variant"},
         {"keys: key_dtype"}, {key}, unknown_shape);
}

}  // namespace tagflow::graph
