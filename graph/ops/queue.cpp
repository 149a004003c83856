// Queues: those whose handles are references to strings, as in TensorFlow 1,
// and those with resource handles, whose ops end in V2.
#include "graph/known_value.h"
#include "graph/op_registry.h"
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

namespace {

// The shapes of the components of elements of the queue of input 0, if they are
// declared and match the number of outputs.
PartialShapes component_shapes(const ShapeContext& c) {
  PartialShapes shapes(size_t(c.num_outputs()), PartialShape());
  const Node* maker = known_maker(c.node().inputs()[0]);
  if (maker == nullptr) return shapes;
  const auto declared =
      get_attr<std::vector<PartialShape>>(maker->attrs(), "shapes");
  if (!declared.ok() || declared->empty()) return shapes;
  PartialShapes known(declared->begin(), declared->end());
  if (maker->op().starts_with("PriorityQueue"))
    known.insert(known.begin(), PartialShape::scalar());
  return known.size() == shapes.size() ? known : shapes;
}

Status dequeue_shape(ShapeContext& c) {
  const PartialShapes shapes = component_shapes(c);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[size_t(i)]);
  return {};
}

Status set_batches(ShapeContext& c, int64_t rows) {
  const PartialShapes shapes = component_shapes(c);
  for (int i = 0; i < c.num_outputs(); ++i) {
    const PartialShape& row = shapes[size_t(i)];
    if (!row.has_rank()) continue;
    PartialShape batch({rows});
    for (const int64_t dim : row.dims()) batch.add_dim(dim);
    c.set_output(i, std::move(batch));
  }
  return {};
}

Status dequeue_many_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  const Tensor* count = c.constant(1);
  if (count == nullptr) return set_batches(c, PartialShape::kUnknown);
  const int32_t rows = count->scalar_value<int32_t>();
  if (rows < 0)
    return c.fail(fmt::format("n must not be negative, but is {}", rows));
  return set_batches(c, rows);
}

Status dequeue_up_to_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  return set_batches(c, PartialShape::kUnknown);
}

// A queue, and its second generation, with further attributes.
void add_queue(OpRegistry& registry, const std::string& name,
               OpDefBuilder::Texts more) {
  const bool is_priority = name == "PriorityQueue";
  for (const bool is_handle : {false, true})
    registry.add(
        OpDefBuilder(is_handle ? name + "V2" : name)
            .output(is_handle ? "handle: resource" : "handle: Ref(string)")
            .attrs({is_priority ? "component_types: list(type) = []"
                                : "component_types: list(type) >= 1",
                    is_priority ? "shapes: list(shape)"
                                : "shapes: list(shape) = []",
                    "capacity: int = -1"})
            .attrs(more)
            .attrs({"container: string = ''", "shared_name: string = ''"})
            .stateful()
            .shape(is_handle ? scalar_shape : handle_reference_shape));
}

// An op on a queue, of the first or the second generation. All are stateful. In
// TensorFlow only the second generation is marked so, but ops that take a
// reference are never merged there.
OpDefBuilder on_queue(const std::string& name, bool is_handle) {
  return OpDefBuilder(is_handle ? name + "V2" : name)
      .input(is_handle ? "handle: resource" : "handle: Ref(string)")
      .stateful();
}

void register_queue_users(OpRegistry& registry, bool is_handle) {
  const auto timeout = "timeout_ms: int = -1";
  for (const char* name : {"QueueEnqueue", "QueueEnqueueMany"})
    registry.add(on_queue(name, is_handle)
                     .input("components: Tcomponents")
                     .attrs({"Tcomponents: list(type) >= 1", timeout})
                     .shape(no_output_shape));
  registry.add(on_queue("QueueDequeue", is_handle)
                   .output("components: component_types")
                   .attrs({"component_types: list(type) >= 1", timeout})
                   .shape(dequeue_shape));
  registry.add(on_queue("QueueDequeueMany", is_handle)
                   .input("n: int32")
                   .output("components: component_types")
                   .attrs({"component_types: list(type) >= 1", timeout})
                   .shape(dequeue_many_shape));
  registry.add(on_queue("QueueDequeueUpTo", is_handle)
                   .input("n: int32")
                   .output("components: component_types")
                   .attrs({"component_types: list(type) >= 1", timeout})
                   .shape(dequeue_up_to_shape));
  registry.add(on_queue("QueueClose", is_handle)
                   .attr("cancel_pending_enqueues: bool = false")
                   .shape(no_output_shape));
  registry.add(on_queue("QueueSize", is_handle)
                   .output("size: int32")
                   .shape(scalar_shape));
  registry.add(on_queue("QueueIsClosed", is_handle)
                   .output("is_closed: bool")
                   .shape(scalar_shape));
}

}  // namespace

void register_queue_ops(OpRegistry& registry) {
  for (const char* name : {"FIFOQueue", "PaddingFIFOQueue", "PriorityQueue"})
    add_queue(registry, name, {});
  add_queue(registry, "RandomShuffleQueue",
            {"min_after_dequeue: int = 0", "seed: int = 0", "seed2: int = 0"});
  registry.add(OpDefBuilder("FakeQueue")
                   .input("resource: resource")
                   .output("handle: Ref(string)")
                   .stateful()
                   .shape(handle_reference_shape));
  for (const bool is_handle : {false, true})
    register_queue_users(registry, is_handle);
}

}  // namespace tagflow::graph
