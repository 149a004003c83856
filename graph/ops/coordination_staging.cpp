// Staging areas: tuples that runs store for others, in their order (Stage) or
// by key (MapStage, OrderedMapStage).
#include "graph/ops/coordination_ops.h"
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

namespace {

// All ops of an area have its properties and its name as attributes; `types`
// are in between.
OpDefBuilder on_staging(const std::string& name, OpDefBuilder::Texts types) {
  return OpDefBuilder(name)
      .attrs({"capacity: int >= 0 = 0", "memory_limit: int >= 0 = 0"})
      .attrs(types)
      .attrs({"container: string = ''", "shared_name: string = ''"})
      .stateful();
}

constexpr const char* kSome = "dtypes: list(type) >= 1";
constexpr const char* kAny = "dtypes: list(type)";

// "MapStage" and the like, with keys.
void register_map_staging(OpRegistry& registry, const std::string& start) {
  registry.add(
      on_staging(start + "Stage", {kAny, "fake_dtypes: list(type) >= 1"})
          .inputs({"key: int64", "indices: int32", "values: fake_dtypes"})
          .shape(no_output_shape));
  for (const char* name : {"Peek", "Unstage"})
    registry.add(on_staging(start + name, {kSome})
                     .inputs({"key: int64", "indices: int32"})
                     .output("values: dtypes")
                     .shape(unknown_shape));
  registry.add(on_staging(start + "UnstageNoKey", {kSome})
                   .input("indices: int32")
                   .outputs({"key: int64", "values: dtypes"})
                   .shape(unknown_shape));
  for (const char* name : {"Size", "IncompleteSize"})
    registry.add(on_staging(start + name, {kAny})
                     .output("size: int32")
                     .shape(scalar_shape));
  registry.add(on_staging(start + "Clear", {kAny}).shape(no_output_shape));
}

}  // namespace

void register_coordination_staging_ops(OpRegistry& registry) {
  registry.add(on_staging("Stage", {kSome})
                   .input("values: dtypes")
                   .shape(no_output_shape));
  registry.add(on_staging("Unstage", {kSome})
                   .output("values: dtypes")
                   .shape(unknown_shape));
  registry.add(on_staging("StagePeek", {kSome})
                   .input("index: int32")
                   .output("values: dtypes")
                   .shape(unknown_shape));
  registry.add(on_staging("StageSize", {kAny})
                   .output("size: int32")
                   .shape(scalar_shape));
  registry.add(on_staging("StageClear", {kAny}).shape(no_output_shape));
  register_map_staging(registry, "Map");
  register_map_staging(registry, "OrderedMap");
}

}  // namespace tagflow::graph
