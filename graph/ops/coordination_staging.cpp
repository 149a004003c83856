// Staging areas: tuples that runs store for others, in their order (Stage) or
// by key (MapStage, OrderedMapStage).
#include "graph/ops/coordination_ops.h"
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

namespace {

// All ops of an area have its properties and its name as attributes.
void define_staging(OpRegistry& registry, const std::string& name,
                    const std::vector<const char*>& inputs,
                    const std::vector<const char*>& outputs,
                    const std::vector<const char*>& types, ShapeFn shape) {
  OpDefBuilder op(name);
  for (const char* input : inputs) op.input(input);
  for (const char* output : outputs) op.output(output);
  op.attr("capacity: int >= 0 = 0").attr("memory_limit: int >= 0 = 0");
  for (const char* type : types) op.attr(type);
  registry.add(op.attr("container: string = ''")
                   .attr("shared_name: string = ''")
                   .stateful()
                   .shape(std::move(shape)));
}

}  // namespace

void register_coordination_staging_ops(OpRegistry& registry) {
  const std::vector<const char*> some = {"dtypes: list(type) >= 1"};
  const std::vector<const char*> any = {"dtypes: list(type)"};
  define_staging(registry, "Stage", {"values: dtypes"}, {}, some,
                 no_output_shape);
  define_staging(registry, "Unstage", {}, {"values: dtypes"}, some,
                 unknown_shape);
  define_staging(registry, "StagePeek", {"index: int32"}, {"values: dtypes"},
                 some, unknown_shape);
  define_staging(registry, "StageSize", {}, {"size: int32"}, any, scalar_shape);
  define_staging(registry, "StageClear", {}, {}, any, no_output_shape);
  for (const std::string start : {"Map", "OrderedMap"}) {
    const auto define =
        [&](const char* name, const std::vector<const char*>& inputs,
            const std::vector<const char*>& outputs,
            const std::vector<const char*>& types, ShapeFn shape) {
          define_staging(registry, start + name, inputs, outputs, types,
                         std::move(shape));
        };
    define("Stage", {"key: int64", "indices: int32", "values: fake_dtypes"}, {},
           {"dtypes: list(type)", "fake_dtypes: list(type) >= 1"},
           no_output_shape);
    for (const char* name : {"Peek", "Unstage"})
      define(name, {"key: int64", "indices: int32"}, {"values: dtypes"}, some,
             unknown_shape);
    define("UnstageNoKey", {"indices: int32"}, {"key: int64", "values: dtypes"},
           some, unknown_shape);
    for (const char* name : {"Size", "IncompleteSize"})
      define(name, {}, {"size: int32"}, any, scalar_shape);
    define("Clear", {}, {}, any, no_output_shape);
  }
}

}  // namespace tagflow::graph
