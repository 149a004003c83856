// The settings of queues, from the nodes that make them.
#include <algorithm>

#include "devices/kernel_inputs.h"
#include "devices/state/component_texts.h"
#include "devices/state/queue.h"
#include "graph/counted.h"

namespace tagflow::devices {
namespace {

using Order = QueueSpec::Order;

constexpr std::pair<std::string_view, Order> kOrders[] = {
    {"FIFOQueue", Order::kFifo},
    {"PaddingFIFOQueue", Order::kPadding},
    {"RandomShuffleQueue", Order::kShuffled},
    {"PriorityQueue", Order::kPriority},
};

Order order_of(std::string_view op) {
  if (op.ends_with("V2")) op.remove_suffix(2);
  return std::ranges::find(kOrders, op, [](auto& entry) { return entry.first; })
      ->second;
}

std::string_view name_of(Order order) {
  return std::ranges::find(kOrders, order,
                           [](auto& entry) { return entry.second; })
      ->first;
}

std::string capacity_text(int64_t capacity) {
  return capacity == QueueSpec::kUnbounded ? "no bound"
                                           : fmt::format("{}", capacity);
}

Status check_shapes(const QueueSpec& spec, size_t types) {
  const size_t shapes = spec.shapes.size();
  const bool may_be_left_out =
      spec.order == Order::kFifo || spec.order == Order::kShuffled;
  if (shapes != types && !(shapes == 0 && may_be_left_out))
    return invalid_argument("there are {}, but {}",
                            counted(types, "component type"),
                            counted(shapes, "shape"));
  for (const PartialShape& shape : spec.shapes) {
    if (spec.order == Order::kPadding ? !shape.has_rank()
                                      : !shape.fully_known())
      return invalid_argument("the {} of a component must be known, not {}",
                              spec.order == Order::kPadding ? "rank" : "shape",
                              shape.to_string());
    if (shape.fully_known()) {
      TAGFLOW_RETURN_IF_ERROR(Shape::make(shape.dims()).status());
    }
  }
  return {};
}

}  // namespace

Result<QueueSpec> QueueSpec::make(const KernelInfo& info) {
  QueueSpec spec;
  spec.order = order_of(info.node().op());
  spec.types = attr_of<std::vector<DataType>>(info, "component_types");
  const auto shapes = attr_of<std::vector<PartialShape>>(info, "shapes");
  spec.shapes = graph::PartialShapes(shapes.begin(), shapes.end());
  TAGFLOW_RETURN_IF_ERROR(check_shapes(spec, spec.types.size()));
  if (spec.order == Order::kPriority) {
    spec.types.insert(spec.types.begin(), DataType::kInt64);
    spec.shapes.insert(spec.shapes.begin(), PartialShape::scalar());
  }
  const auto capacity = attr_of<int64_t>(info, "capacity");
  if (capacity == 0)
    return invalid_argument(
        "the capacity must be positive, or -1 for no bound, not 0");
  if (capacity > 0) spec.capacity = capacity;
  if (spec.order == Order::kShuffled) {
    spec.min_after_dequeue = attr_of<int64_t>(info, "min_after_dequeue");
    if (spec.min_after_dequeue < 0)
      return invalid_argument("min_after_dequeue must not be negative: {}",
                              spec.min_after_dequeue);
    if (spec.min_after_dequeue >= spec.capacity)
      return invalid_argument(
          "min_after_dequeue must be less than the capacity of {}, not {}",
          spec.capacity, spec.min_after_dequeue);
    spec.seed = attr_of<int64_t>(info, "seed");
    spec.seed2 = attr_of<int64_t>(info, "seed2");
  }
  return spec;
}

Status QueueSpec::check_same(std::string_view queue,
                             const QueueSpec& other) const {
  const auto differs = [&](const auto& own, const auto& asked) {
    return invalid_argument("{} exists with {}, but the node asks for {}",
                            queue, own, asked);
  };
  if (order != other.order)
    return invalid_argument("{} is a {}, but the node asks for a {}", queue,
                            name_of(order), name_of(other.order));
  if (capacity != other.capacity)
    return differs("capacity " + capacity_text(capacity),
                   capacity_text(other.capacity));
  if (types != other.types)
    return differs("component types " + types_text(types),
                   types_text(other.types));
  if (shapes != other.shapes)
    return differs("components of " + shapes_text(shapes),
                   shapes_text(other.shapes));
  if (min_after_dequeue != other.min_after_dequeue)
    return differs(fmt::format("min_after_dequeue {}", min_after_dequeue),
                   other.min_after_dequeue);
  // Compared only if both have seeds.
  const bool have_seeds =
      (seed != 0 || seed2 != 0) && (other.seed != 0 || other.seed2 != 0);
  if (have_seeds && (seed != other.seed || seed2 != other.seed2))
    return differs(fmt::format("seeds {} and {}", seed, seed2),
                   fmt::format("{} and {}", other.seed, other.seed2));
  return {};
}

}  // namespace tagflow::devices
