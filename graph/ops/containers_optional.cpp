// Optionals, which hold values or none, and helpers of functional control flow:
// FakeParam represents a value that a branch never makes, DeviceIndex returns
// where a branch runs.
#include "graph/ops/containers_ops.h"

namespace tagflow::graph {

namespace {

Status optional_value_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(auto shapes,
                 c.attr<std::vector<PartialShape>>("output_shapes"));
  if (shapes.size() != size_t(c.num_outputs()))
    return c.fail(fmt::format("{} output_shapes for {} outputs", shapes.size(),
                              c.num_outputs()));
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, std::move(shapes[size_t(i)]));
  return {};
}

Status fake_param_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(auto shape, c.attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return {};
}

}  // namespace

void register_containers_optional_ops(OpRegistry& registry) {
  define(registry, "OptionalFromValue", {"components: Toutput_types"},
         {"optional: variant"}, {"Toutput_types: list(type) >= 1"},
         scalar_shape, Work::kNoData);
  define(registry, "OptionalNone", {}, {"optional: variant"}, {}, scalar_shape,
         Work::kNoData);
  define(registry, "OptionalHasValue", {"optional: variant"},
         {"has_value: bool"}, {}, scalar_shape, Work::kNoData);
  define(registry, "OptionalGetValue", {"optional: variant"},
         {"components: output_types"},
         {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
         optional_value_shape, Work::kNoData);
  define(registry, "FakeParam", {}, {"output: dtype"},
         {"dtype: type", "shape: shape"}, fake_param_shape, Work::kFree);
  define_stateful(registry, "DeviceIndex", {}, {"index: int32"},
                  {"device_names: list(string)"}, scalar_shape, Work::kNoData);
}

}  // namespace tagflow::graph
