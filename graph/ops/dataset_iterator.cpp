// Iterators, what is computed of a whole dataset, and the resources that
// datasets share.
#include "graph/ops/dataset_ops.h"

namespace tagflow::graph {

namespace {

// The outputs are the components of an element.
Status element_shapes(ShapeContext& c) {
  TAGFLOW_ASSIGN(auto shapes,
                 c.attr<std::vector<PartialShape>>("output_shapes"));
  if (shapes.size() != size_t(c.num_outputs()))
    return c.fail(fmt::format("{} output_shapes for {} outputs", shapes.size(),
                              c.num_outputs()));
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, std::move(shapes[size_t(i)]));
  return {};
}

// A vector of one element.
Status position_shape(ShapeContext& c) {
  c.set_output(0, {1});
  return {};
}

void register_iterators(OpRegistry& registry) {
  for (const char* name : {"Iterator", "IteratorV2"})
    registry.add(OpDefBuilder(name)
                     .output("handle: resource")
                     .attrs({"shared_name: string", "container: string",
                             kElementTypes, kElementShapes})
                     .stateful()
                     .shape(scalar_shape));
  registry.add(
      OpDefBuilder("OneShotIterator")
          .output("handle: resource")
          .attrs({"dataset_factory: func", kElementTypes, kElementShapes,
                  "container: string = ''", "shared_name: string = ''"})
          .stateful()
          .shape(scalar_shape));
  for (const char* name : {"AnonymousIterator", "AnonymousIteratorV3"})
    registry.add(OpDefBuilder(name)
                     .output("handle: resource")
                     .attrs({kElementTypes, kElementShapes})
                     .stateful()
                     .shape(scalar_shape));
  registry.add(OpDefBuilder("AnonymousIteratorV2")
                   .outputs({"handle: resource", "deleter: variant"})
                   .attrs({kElementTypes, kElementShapes})
                   .stateful()
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("MakeIterator")
                   .inputs({"dataset: variant", "iterator: resource"})
                   .stateful()
                   .shape(no_output_shape));
  for (const char* name : {"IteratorGetNext", "IteratorGetNextSync"})
    registry.add(OpDefBuilder(name)
                     .input("iterator: resource")
                     .output("components: output_types")
                     .attrs({kElementTypes, kElementShapes})
                     .stateful()
                     .shape(element_shapes));
  registry.add(OpDefBuilder("IteratorGetNextAsOptional")
                   .input("iterator: resource")
                   .output("optional: variant")
                   .attrs({kElementTypes, kElementShapes})
                   .stateful()
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("SerializeIterator")
                   .input("resource_handle: resource")
                   .output("serialized: variant")
                   .attr("external_state_policy: int = 0")
                   .stateful()
                   .shape(position_shape));
  registry.add(OpDefBuilder("DeserializeIterator")
                   .inputs({"resource_handle: resource", "serialized: variant"})
                   .stateful()
                   .shape(no_output_shape));
  registry.add(OpDefBuilder("IteratorToStringHandle")
                   .input("resource_handle: resource")
                   .output("string_handle: string")
                   .stateful()
                   .shape(scalar_shape));
  for (const char* name :
       {"IteratorFromStringHandle", "IteratorFromStringHandleV2"})
    registry.add(OpDefBuilder(name)
                     .input("string_handle: string")
                     .output("resource_handle: resource")
                     .attrs({"output_types: list(type) >= 0 = []",
                             "output_shapes: list(shape) >= 0 = []"})
                     .stateful()
                     .shape(scalar_shape));
}

// Resources without a name, with what deletes them.
void register_resources(OpRegistry& registry) {
  for (const char* name : {"DummyMemoryCache", "DummySeedGenerator"})
    registry.add(OpDefBuilder(name)
                     .output("handle: resource")
                     .stateful()
                     .shape(scalar_shape));
  registry.add(OpDefBuilder("AnonymousMemoryCache")
                   .outputs({"handle: resource", "deleter: variant"})
                   .stateful()
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("AnonymousSeedGenerator")
                   .inputs({"seed: int64", "seed2: int64", "reshuffle: bool"})
                   .outputs({"handle: resource", "deleter: variant"})
                   .stateful()
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("AnonymousRandomSeedGenerator")
                   .inputs({"seed: int64", "seed2: int64"})
                   .outputs({"handle: resource", "deleter: variant"})
                   .stateful()
                   .shape(scalar_shape));
  for (const char* name : {"DeleteIterator", "DeleteMemoryCache",
                           "DeleteSeedGenerator", "DeleteRandomSeedGenerator"})
    registry.add(OpDefBuilder(name)
                     .inputs({"handle: resource", "deleter: variant"})
                     .stateful()
                     .shape(no_output_shape));
}

// Of RecordInput.
Status batch_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t size, c.attr<int64_t>("batch_size"));
  if (size < 0)
    return c.fail(
        fmt::format("batch_size must not be negative, but is {}", size));
  c.set_output(0, {size});
  return {};
}

}  // namespace

void register_dataset_iterator_ops(OpRegistry& registry) {
  register_iterators(registry);
  registry.add(
      OpDefBuilder("RecordInput")
          .output("records: string")
          .attrs({"file_pattern: string", "file_random_seed: int = 301",
                  "file_shuffle_shift_ratio: float = 0",
                  "file_buffer_size: int = 10000", "file_parallelism: int = 16",
                  "batch_size: int = 32", "compression_type: string = ''"})
          .stateful()
          .shape(batch_shape),
      always_uses_files);
  register_resources(registry);
  registry.add(
      OpDefBuilder("ReduceDataset")
          .inputs({"input_dataset: variant", "initial_state: Tstate",
                   "other_arguments: Targuments"})
          .output("components: output_types")
          .attrs({"f: func", "Tstate: list(type) >= 1",
                  "Targuments: list(type) >= 0", kElementTypes, kElementShapes,
                  "use_inter_op_parallelism: bool = true",
                  "metadata: string = ''"})
          .stateful()
          .shape(element_shapes));
  registry.add(
      OpDefBuilder("DatasetToSingleElement")
          .input("dataset: variant")
          .output("components: output_types")
          .attrs({kElementTypes, kElementShapes, "metadata: string = ''"})
          .stateful()
          .shape(element_shapes));
  for (const char* name :
       {"DatasetCardinality", "ExperimentalDatasetCardinality"})
    registry.add(OpDefBuilder(name)
                     .input("input_dataset: variant")
                     .output("cardinality: int64")
                     .attr("cardinality_options: string = ''")
                     .stateful()
                     .shape(scalar_shape));
}

}  // namespace tagflow::graph
