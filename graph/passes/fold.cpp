// Constant folding.
//
// A node whose inputs are all known is replaced by a Const. The control inputs
// of its constant inputs become control inputs of the Const, or the input's
// node itself (an Enter of a constant), so that order and deadness are the
// same. The same applies to Shape, Size and Rank of a tensor whose shape is
// known. If all elements of a list are the same few integers, as in the list of
// shapes for a backward loop, so are the results of its readers. The reader
// stays, and the Const waits for it, since it may find no element.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "graph/analysis/list_elements.h"
#include "graph/analysis/loop_shapes.h"
#include "graph/analysis/topology.h"
#include "graph/budget.h"
#include "graph/fault.h"
#include "graph/known_value.h"
#include "graph/passes/passes.h"
#include "graph/passes/readers.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

// A folded node may not take more memory than this, or than its inputs, up to
// the larger bound; the same holds for the text of its strings.
constexpr size_t kAlwaysSmall = size_t(64) << 10;
constexpr size_t kNeverSmall = size_t(16) << 20;
// The limit for all folded nodes together.
constexpr size_t kMostInAll = size_t(256) << 20;

using Values = std::vector<Tensor>;

// The memory of the characters of strings.
size_t text_bytes(const Tensor& tensor) {
  size_t bytes = 0;
  if (tensor.dtype() == DataType::kString)
    for (const std::string& text : tensor.flat<std::string>())
      bytes += text.size();
  return bytes;
}

size_t text_bytes(const AttrMap& attrs) {
  size_t bytes = 0;
  for (const auto& [name, value] : attrs)
    if (const auto* text = value.get_if<std::string>()) bytes += text->size();
  return bytes;
}

class Folding {
 public:
  Folding(Program& program, const PassContext& context)
      : program_(program),
        graph_(program.graph),
        evaluator_(context.evaluator),
        budget_(context.budget),
        detour_(program) {}

  Result<bool> run() {
    TAGFLOW_ASSIGN(const auto order, topological_order(graph_));
    for (Node* node : order) {
      TAGFLOW_RETURN_IF_ERROR(check_budget(budget_));
      TAGFLOW_RETURN_IF_ERROR(read_list(node));
      Values values = values_of(*node);
      // Unlike other work on a node, a kernel may take milliseconds.
      if (std::exchange(has_evaluated_, false) && budget_ != nullptr)
        TAGFLOW_RETURN_IF_ERROR(budget_->look());
      if (values.empty()) continue;
      NodeList controls(node->control_inputs());
      if (!add_dependences(*node, controls)) continue;
      TAGFLOW_RETURN_IF_ERROR(
          make_constants(node, std::move(values), controls));
    }
    if (!changed_) return false;
    TAGFLOW_RETURN_IF_ERROR(detour_.finish().status());
    std::vector<Node*> known;  // still needed by other nodes
    for (const NodeId id : read_)
      if (Node* made = graph_.node(id)) known.push_back(made);
    if (!known.empty())
      TAGFLOW_RETURN_IF_ERROR(infer_loop_shapes(graph_, known, budget_));
    return true;
  }

 private:
  // --- Readers of lists -----------------------------------------------------

  Status read_list(Node* node) {
    const auto reading = list_reading(*node);
    if (!reading || !is_read({node, reading->output})) return {};
    const DataType type = node->output_dtypes()[size_t(reading->output)];
    if (type != DataType::kInt32 && type != DataType::kInt64) return {};
    const auto elements = tensors_read(*node, *reading);
    if (!elements) return {};
    const Tensor* value = only_value(elements->tensors);
    if (value == nullptr || value->dtype() != type) return {};
    changed_ = true;
    AttrMap attrs = {{"value", *value}, {"dtype", type}};
    Node* const waits[] = {node};
    TAGFLOW_ASSIGN(Node * made,
                   add_for(graph_, *node, name_after(graph_, *node), "Const",
                           {}, std::move(attrs), waits));
    detour_.lead({node, reading->output}, {made, 0});
    read_.push_back(made->id());
    return {};
  }

  bool is_read(const Endpoint& output) {
    if (!readers_) readers_.emplace(program_);
    return readers_->is_read(output);
  }

  // The common value of all of these; null if it is unknown or too large.
  const Tensor* only_value(const std::vector<Endpoint>& tensors) const {
    const Tensor* only = nullptr;
    for (const Endpoint& tensor : tensors) {
      const Tensor* value = known_value(tensor);
      if (value == nullptr || value->rank() > 1 ||
          value->num_elements() > kMaxRank)
        return nullptr;
      if (only == nullptr) only = value;
      if (value->dtype() != only->dtype() || value->shape() != only->shape() ||
          std::memcmp(value->raw(), only->raw(), value->bytes()) != 0)
        return nullptr;
    }
    return only;
  }

  // --- Values ---------------------------------------------------------------

  // Empty if they are not known.
  Values values_of(const Node& node) {
    if (!is_pure(node) || node.num_inputs() == 0 ||
        node.control_inputs().size() > kMaxControls)
      return {};
    for (const DataType type : node.output_dtypes())
      if (type == DataType::kVariant) return {};
    Values values = known_shapes(node);
    return values.empty() ? computed(node) : values;
  }

  // The control inputs that a Const needs in place of the node's data inputs.
  // False if they are too many, or control edges cannot express them.
  bool add_dependences(const Node& node, NodeList& controls) const {
    for (const Endpoint& input : node.inputs())
      if (!add_dependence(controls, detour_.end(input)) ||
          controls.size() > kMaxControls)
        return false;
    return true;
  }

  // For Shape, ShapeN, Size and Rank.
  static Values known_shapes(const Node& node) {
    const std::string& op = node.op();
    const bool is_shape = op == "Shape" || op == "ShapeN";
    if (!is_shape && op != "Size" && op != "Rank") return {};
    Values values;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Endpoint of = node.inputs()[i];
      const PartialShape& shape = of.node->output_shape(of.port);
      if (!shape.has_rank()) return {};
      const DataType type = node.output_dtypes()[i];
      Tensor value;
      if (op == "Rank") {
        value = integers(type, {shape.rank()}, true);
      } else if (!shape.fully_known()) {
        return {};
      } else if (op == "Size") {
        value = integers(type, {shape.num_elements()}, true);
      } else {
        value =
            integers(type, {shape.dims().begin(), shape.dims().end()}, false);
      }
      if (!value.valid()) return {};
      values.push_back(std::move(value));
    }
    return values;
  }

  // For int32 or int64; invalid if a value is out of range.
  static Tensor integers(DataType type, const std::vector<int64_t>& values,
                         bool scalar) {
    Shape shape;
    if (!scalar) shape.add_dim(int64_t(values.size()));
    Tensor tensor;
    if (type != DataType::kInt32 && type != DataType::kInt64) return tensor;
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    for (const int64_t value : values)
      if (value < 0 || (type == DataType::kInt32 && value > kMost))
        return tensor;
    tensor = Tensor::make(type, shape);
    for (size_t i = 0; i < values.size(); ++i) {
      if (type == DataType::kInt32) {
        tensor.mutable_data<int32_t>()[i] = int32_t(values[i]);
      } else {
        tensor.mutable_data<int64_t>()[i] = values[i];
      }
    }
    return tensor;
  }

  Values computed(const Node& node) {
    if (node.is_identity()) {
      const Tensor* value = known_value(node.inputs()[0]);
      return value == nullptr ? Values() : Values{*value};
    }
    if (evaluator_ == nullptr) return {};
    Values inputs;
    for (const Endpoint& input : node.inputs()) {
      const Tensor* value = known_value(input);
      if (value == nullptr) return {};
      inputs.push_back(*value);
    }
    const Bounds bounds = bounds_of(node, inputs);
    if (bounds.elements == 0 || !fits(node, bounds.elements)) return {};
    has_evaluated_ = true;
    Result<Values> outputs = guarded([&] {
      return evaluator_->evaluate(node, inputs, bounds.elements + bounds.text);
    });
    if (!outputs.ok()) return {};
    size_t bytes = 0;
    size_t text = 0;
    for (int i = 0; i < node.num_outputs(); ++i) {
      const Tensor& value = (*outputs)[size_t(i)];
      if (!value.valid() || value.dtype() != node.output_dtypes()[size_t(i)])
        return {};
      text += text_bytes(value);
      if (!shares_one(value, inputs)) bytes += value.bytes();
    }
    // The evaluator has one limit for both.
    if (bytes > bounds.elements || text > bounds.text || text + bytes > left_)
      return {};
    left_ -= text + bytes;
    return std::move(outputs).value();
  }

  // The maximum size of a node's outputs in bytes: elements, and text of
  // strings.
  struct Bounds {
    size_t elements = 0;  // 0: no folding
    size_t text = 0;
  };

  // A kernel may pass over the positions of dimensions although there are no
  // elements, and costs do not say so.
  static bool has_many_positions(const Tensor& value) {
    if (value.num_elements() > 0) return false;
    auto positions = std::optional<int64_t>(1);
    const Shape shape = value.shape();
    for (const int64_t size : shape.dims()) {
      positions = checked_multiply(*positions, std::max<int64_t>(size, 1));
      if (!positions || *positions > int64_t(kNeverSmall)) return true;
    }
    return false;
  }

  static Bounds bounds_of(const Node& node, const Values& inputs) {
    if (std::ranges::any_of(inputs, has_many_positions)) return {};
    size_t bytes = 0;
    size_t count = 1;
    for (const Tensor& input : inputs) {
      bytes += input.bytes();
      count += size_t(input.num_elements());
    }
    const size_t most = std::clamp(bytes, kAlwaysSmall, kNeverSmall);
    if (std::ranges::find(node.output_dtypes(), DataType::kString) ==
        node.output_dtypes().end())
      return {most, 0};
    if (bytes > kNeverSmall) return {};
    // A kernel may make strings before they are counted: each may be the text
    // of all inputs, with that of an attribute between any two.
    size_t text = count * text_bytes(node.attrs());
    for (const Tensor& input : inputs) text += text_bytes(input);
    if (text > kNeverSmall) return {};
    return {std::min(most, kNeverSmall / (1 + text / sizeof(std::string))),
            std::clamp(bytes + text, kAlwaysSmall, kNeverSmall)};
  }

  static bool shares_one(const Tensor& value, const Values& inputs) {
    return std::ranges::any_of(inputs, [&](const Tensor& input) {
      return input.bytes() > 0 && value.bytes() > 0 &&
             input.raw() == value.raw();
    });
  }

  const Tensor* known_value(const Endpoint& source) const {
    return known_constant(
        source, [this](const Endpoint& from) { return detour_.end(from); });
  }

  // As far as it is known in advance.
  static bool fits(const Node& node, size_t limit) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      const int64_t count = node.output_shape(i).num_elements();
      const size_t size = dtype_size(node.output_dtypes()[size_t(i)]);
      if (count > 0 && size > 0 && size_t(count) > limit / size) return false;
    }
    return true;
  }

  // A Const for each output.
  Status make_constants(Node* node, Values values, const NodeList& controls) {
    changed_ = true;
    for (size_t i = 0; i < values.size(); ++i) {
      const DataType dtype = values[i].dtype();
      AttrMap attrs = {{"value", std::move(values[i])}, {"dtype", dtype}};
      if (i == 0) {
        TAGFLOW_RETURN_IF_ERROR(
            detour_.replace(node, "Const", {}, std::move(attrs), controls)
                .status());
        continue;
      }
      TAGFLOW_ASSIGN(Node * made,
                     add_for(graph_, *node, name_after(graph_, *node), "Const",
                             {}, std::move(attrs), controls));
      detour_.lead({node, int(i)}, {made, 0});
    }
    return {};
  }

  const Program& program_;
  Graph& graph_;
  const Evaluator* evaluator_;
  Budget* const budget_;
  std::optional<Readers> readers_;  // of the program before folding
  Detour detour_;
  size_t left_ = kMostInAll;
  std::vector<NodeId> read_;  // constants that replace reads of lists
  bool changed_ = false;
  bool has_evaluated_ = false;  // the node
};

}  // namespace

Result<bool> fold_constants(Program& program, const PassContext& context) {
  return Folding(program, context).run();
}

}  // namespace tagflow::graph
