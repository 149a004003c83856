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
  registry.add(OpDefBuilder("OptionalFromValue")
                   .input("components: Toutput_types")
                   .output("optional: variant")
                   .attr("Toutput_types: list(type) >= 1")
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("OptionalNone")
                   .output("optional: variant")
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("OptionalHasValue")
                   .input("optional: variant")
                   .output("has_value: bool")
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("OptionalGetValue")
                   .input("optional: variant")
                   .output("components: output_types")
                   .attrs({"output_types: list(type) >= 1",
                           "output_shapes: list(shape) >= 1"})
                   .shape(optional_value_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("FakeParam")
                   .output("output: dtype")
                   .attrs({"dtype: type", "shape: shape"})
                   .shape(fake_param_shape)
                   .work(Work::kFree));
  registry.add(OpDefBuilder("DeviceIndex")
                   .output("index: int32")
                   .attr("device_names: list(string)")
                   .stateful()
                   .shape(scalar_shape)
                   .work(Work::kNoData));
}

}  // namespace tagflow::graph
