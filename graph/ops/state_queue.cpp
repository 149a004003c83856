// Queues: those whose handles are references to strings, as in TensorFlow 1,
// and those with resource handles, whose ops end in V2.
#include "graph/known_value.h"
#include "graph/ops/state_ops.h"

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

void define_queue(OpRegistry& registry, const std::string& name,
                  const std::vector<const char*>& more) {
  const bool is_priority = name == "PriorityQueue";
  for (const bool is_handle : {false, true}) {
    OpDefBuilder op(is_handle ? name + "V2" : name);
    op.output(is_handle ? "handle: resource" : "handle: Ref(string)")
        .attr(is_priority ? "component_types: list(type) = []"
                          : "component_types: list(type) >= 1")
        .attr(is_priority ? "shapes: list(shape)" : "shapes: list(shape) = []")
        .attr("capacity: int = -1");
    for (const char* attr : more) op.attr(attr);
    registry.add(op.attr("container: string = ''")
                     .attr("shared_name: string = ''")
                     .stateful()
                     .shape(is_handle ? scalar_shape : handle_reference_shape));
  }
}

// Both generations of an op on a queue. All are stateful. In TensorFlow only
// the second generation is marked so, but ops that take a reference are never
// merged there.
struct QueueOp {
  std::string name;
  std::vector<const char*> inputs, outputs, attrs;
  ShapeFn shape;
};

void define_on_queue(OpRegistry& registry, const QueueOp& def) {
  for (const bool is_handle : {false, true}) {
    OpDefBuilder op(is_handle ? def.name + "V2" : def.name);
    op.input(is_handle ? "handle: resource" : "handle: Ref(string)");
    for (const char* input : def.inputs) op.input(input);
    for (const char* output : def.outputs) op.output(output);
    for (const char* attr : def.attrs) op.attr(attr);
    registry.add(op.stateful().shape(def.shape));
  }
}

}  // namespace

void register_queue_ops(OpRegistry& registry) {
  define_queue(registry, "FIFOQueue", {});
  define_queue(registry, "PaddingFIFOQueue", {});
  define_queue(registry, "PriorityQueue", {});
  define_queue(
      registry, "RandomShuffleQueue",
      {"min_after_dequeue: int = 0", "seed: int = 0", "seed2: int = 0"});
  define_stateful(registry, "FakeQueue", {"resource: resource"},
                  {"handle: Ref(string)"}, {}, handle_reference_shape);

  const std::vector<const char*> puts = {"Tcomponents: list(type) >= 1",
                                         "timeout_ms: int = -1"};
  const std::vector<const char*> takes = {"component_types: list(type) >= 1",
                                          "timeout_ms: int = -1"};
  for (const char* name : {"QueueEnqueue", "QueueEnqueueMany"})
    define_on_queue(
        registry,
        {name, {"components: Tcomponents"}, {}, puts, no_output_shape});
  define_on_queue(registry, {"QueueDequeue",
                             {},
                             {"components: component_types"},
                             takes,
                             dequeue_shape});
  define_on_queue(registry, {"QueueDequeueMany",
                             {"n: int32"},
                             {"components: component_types"},
                             takes,
                             dequeue_many_shape});
  define_on_queue(registry, {"QueueDequeueUpTo",
                             {"n: int32"},
                             {"components: component_types"},
                             takes,
                             dequeue_up_to_shape});
  define_on_queue(registry, {"QueueClose",
                             {},
                             {},
                             {"cancel_pending_enqueues: bool = false"},
                             no_output_shape});
  define_on_queue(registry,
                  {"QueueSize", {}, {"size: int32"}, {}, scalar_shape});
  define_on_queue(registry,
                  {"QueueIsClosed", {}, {"is_closed: bool"}, {}, scalar_shape});
}

}  // namespace tagflow::graph
