#include "graph/analysis/list_elements.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "graph/known_value.h"

namespace tagflow::graph {
namespace {

// Limit of nodes on the list's way through the graph.
constexpr size_t kMostNodes = 128;

bool reserves(const Node& node) { return node.op() == "TensorListReserve"; }

class Walk {
 public:
  std::optional<ListElements> run(const Endpoint& list) {
    go_to(list);
    while (!open_.empty() && is_known_) {
      const Endpoint at = open_.back();
      open_.pop_back();
      if (!visit(*at.node, at.port)) is_known_ = false;
    }
    if (!is_known_) return {};
    return std::move(found_);
  }

 private:
  void go_to(const Endpoint& from) {
    if (from.node == nullptr || seen_.size() >= kMostNodes) is_known_ = false;
    if (!is_known_ || std::ranges::find(seen_, from) != seen_.end()) return;
    seen_.push_back(from);
    open_.push_back(from);
  }

  // Whether the effect of this op on a list is known.
  bool visit(const Node& node, int port) {
    const auto inputs = node.inputs();
    const std::string& op = node.op();
    if (node.is_merge() || node.is_switch() || node.is_enter() ||
        node.is_exit() || node.is_next_iteration() || node.is_identity()) {
      if (is_ref(node.output_dtypes()[0]) || (node.is_merge() && port != 0))
        return false;
      if (node.is_next_iteration()) found_.next_iterations.push_back(&node);
      const size_t count = node.is_merge() ? inputs.size() : 1;
      for (const Endpoint& input : inputs.first(count)) go_to(input);
      return true;
    }
    if (op == "EmptyTensorList" || reserves(node) ||
        op == "TensorListFromTensor") {
      found_.makers.push_back(&node);
      if (op == "TensorListFromTensor") found_.stacked.push_back(inputs[0]);
      return true;
    }
    if (op == "TensorListPopBack" && port == 0) {
      go_to(inputs[0]);
      return true;
    }
    if (op == "TensorListPushBack") {
      found_.tensors.push_back(inputs[1]);
      go_to(inputs[0]);
      return true;
    }
    if (op == "TensorListSetItem") {
      // It may extend the list with unset elements.
      const auto resizes = node.attr<bool>("resize_if_index_out_of_bounds");
      if (!resizes.ok() || *resizes) return false;
      found_.tensors.push_back(inputs[2]);
      go_to(inputs[0]);
      return true;
    }
    return false;
  }

  ListElements found_;
  std::vector<Endpoint> seen_;
  std::vector<Endpoint> open_;
  bool is_known_ = true;
};

// The shape of elements given by a constant input; nothing if it is not
// constant.
std::optional<PartialShape> constant_shape(const Node& node, int input) {
  const Endpoint& source = node.inputs()[size_t(input)];
  if (known_constant(source) == nullptr) return {};
  Result<PartialShape> shape = known_shape(source);
  if (!shape.ok()) return {};
  return std::move(shape).value();
}

const PartialShape& shape_of(const Endpoint& value) {
  return value.node->output_shape(value.port);
}

}  // namespace

std::optional<ListElements> find_list_elements(const Endpoint& list) {
  return Walk().run(list);
}

std::optional<ListReading> list_reading(const Node& node) {
  constexpr std::array<std::pair<std::string_view, ListReading>, 4> kReadings =
      {{{"TensorListPopBack", {.element_shape = 1, .output = 1}},
        {"TensorListGetItem", {.element_shape = 2}},
        {"TensorListStack", {.element_shape = 1, .is_stacked = true}},
        {"TensorListGather", {.element_shape = 2, .is_stacked = true}}}};
  if (!node.op().starts_with("TensorList")) return {};
  for (const auto& [op, reading] : kReadings)
    if (node.op() == op) return reading;
  return {};
}

std::optional<ListElements> tensors_read(const Node& reader,
                                         const ListReading& reading) {
  if (reading.is_stacked) return {};
  auto elements = find_list_elements(reader.inputs()[size_t(reading.list)]);
  if (!elements || elements->tensors.empty() || !elements->stacked.empty() ||
      std::ranges::any_of(elements->makers,
                          [](const Node* node) { return reserves(*node); }))
    return {};
  return elements;
}

std::optional<PartialShape> element_shape(const Node& reader,
                                          const ListReading& reading,
                                          const ListElements& elements) {
  std::optional<PartialShape> common;
  const auto add = [&](const PartialShape& shape) {
    common = common ? common->relax(shape) : shape;
  };
  for (const Endpoint& tensor : elements.tensors) add(shape_of(tensor));
  for (const Endpoint& stack : elements.stacked) {
    const PartialShape& shape = shape_of(stack);
    if (!shape.has_rank() || shape.rank() == 0) return {};
    add(PartialShape(shape.dims().subspan(1)));
  }
  if (!common) return {};
  for (const Node* maker : elements.makers) {
    // Stacked elements have this shape even if there are none.
    if (!reading.is_stacked && !reserves(*maker)) continue;
    const auto asked = constant_shape(reader, reading.element_shape);
    const auto declared =
        constant_shape(*maker, maker->op() == "TensorListFromTensor" ? 1 : 0);
    if (!asked || !declared) return {};
    const Result<PartialShape> both = asked->merge(*declared);
    // Otherwise unset elements have the shape of others, or cannot be read.
    if (both.ok() && both->fully_known()) add(*both);
  }
  return common;
}

}  // namespace tagflow::graph
