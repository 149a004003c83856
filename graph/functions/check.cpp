#include "graph/functions/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "graph/analysis/frames.h"
#include "graph/functions/instance.h"
#include "graph/functions/lower.h"
#include "graph/node_name.h"
#include "graph/op_registry.h"

namespace tagflow::graph {
namespace {

// Further ops are counted, not named.
constexpr size_t kMostOpsNamed = 50;

bool is_known_op(std::string_view op, const FunctionLibrary& library) {
  return OpRegistry::global().find_or_null(op) != nullptr ||
         library.find(op) != nullptr;
}

// The nodes with an op.
struct Uses {
  size_t count = 0;
  std::string first;
};

void count_unknown(const std::vector<NodeDef>& nodes,
                   const FunctionDef* function, const FunctionLibrary& library,
                   std::map<std::string, Uses>& unknown) {
  for (const NodeDef& node : nodes) {
    if (is_known_op(node.op, library)) continue;
    Uses& uses = unknown[node.op];
    if (uses.count++ > 0) continue;
    uses.first = fmt::format("node \"{}\"", node.name);
    if (function != nullptr)
      uses.first += fmt::format(" of function \"{}\"", function->name());
  }
}

std::string describe_unknown(const std::string& op, const Uses& uses) {
  std::string text(OpRegistry::global().find(op).status().message());
  if (text.starts_with(kOpsModule)) text.erase(0, kOpsModule.size());
  return fmt::format(
      "{} ({}{})", text, uses.first,
      uses.count == 1 ? "" : fmt::format(" and {} more", uses.count - 1));
}

// A program with a single call.
class LoneCall {
 public:
  LoneCall(const FunctionLibrary& library, size_t& budget) : budget_(budget) {
    program_.graph.library() = library;
    limits_.max_nodes = std::min(limits_.max_nodes, budget);
  }
  ~LoneCall() { budget_ -= std::min(budget_, made_); }
  LoneCall(const LoneCall&) = delete;
  LoneCall& operator=(const LoneCall&) = delete;

  Status check(const Node& node) {
    std::vector<Endpoint> inputs;
    for (const Endpoint& input : node.inputs()) {
      TAGFLOW_ASSIGN(const Endpoint made, stand_in(node, input));
      inputs.push_back(made);
    }
    return check(node.name(), node.op(), inputs, node.attrs());
  }

  Status check(const FunctionInstance& function) {
    const std::string name = to_node_name(function.name());
    std::vector<Endpoint> inputs;
    for (const DataType type : function.arg_types()) {
      TAGFLOW_ASSIGN(const Endpoint made,
                     placeholder(name, type, PartialShape()));
      inputs.push_back(made);
    }
    return check(name, function.name(), inputs, {});
  }

 private:
  Graph& graph() { return program_.graph; }

  // A replacement for an input, with its type and shape, or its value.
  Result<Endpoint> stand_in(const Node& node, const Endpoint& input) {
    const Node& source = *input.node;
    if (!source.is_const())
      return placeholder(node.name(),
                         source.output_dtypes()[size_t(input.port)],
                         source.output_shape(input.port));
    TAGFLOW_ASSIGN(Node * made, graph().add(name_of_input(node.name()), "Const",
                                            {}, source.attrs()));
    return Endpoint{made, 0};
  }

  Result<Endpoint> placeholder(const std::string& node, DataType type,
                               const PartialShape& shape) {
    TAGFLOW_ASSIGN(Node * made, graph().add(name_of_input(node), "Placeholder",
                                            {}, {{"dtype", remove_ref(type)}}));
    graph().set_output_shape(made, 0, shape);
    return Endpoint{made, 0};
  }

  // A name other than the node's, and not below it.
  std::string name_of_input(const std::string& node) {
    return graph().unique_name(node + "_input");
  }

  Status check(const std::string& name, std::string_view op,
               const std::vector<Endpoint>& inputs, const AttrMap& attrs) {
    TAGFLOW_ASSIGN(Node * call, graph().add(name, op, inputs, attrs));
    for (int i = 0; i < call->num_outputs(); ++i)
      program_.fetches.push_back({call, i});
    program_.targets.push_back(call);
    TAGFLOW_RETURN_IF_ERROR(lower_functions(program_, limits_, &made_));
    TAGFLOW_RETURN_IF_ERROR(FrameMap::build(graph(), limits_).status());
    for (const auto& body : program_.bodies)
      TAGFLOW_RETURN_IF_ERROR(FrameMap::build(body->graph, limits_).status());
    return {};
  }

  size_t& budget_;
  size_t made_ = 0;  // nodes
  Limits limits_;
  Program program_;
};

// Finds the functions that nodes reach.
class Reach {
 public:
  explicit Reach(const FunctionLibrary& library) : library_(library) {}

  void visit(std::string_view op, const AttrMap& attrs) {
    for (const std::string& name : named_functions(op, attrs, library_)) {
      const FunctionDef* function = library_.find(name);
      if (function != nullptr && seen_.insert(function).second)
        reached_.push_back(function);
    }
  }

  // Sorted by name, including those reached indirectly.
  std::vector<const FunctionDef*> all() {
    for (size_t i = 0; i < reached_.size(); ++i) {
      for (const NodeDef& node : reached_[i]->nodes) visit(node.op, node.attrs);
      visit(reached_[i]->name(), reached_[i]->attrs);
    }
    std::ranges::sort(reached_, {}, &FunctionDef::name);
    return std::move(reached_);
  }

 private:
  const FunctionLibrary& library_;
  std::unordered_set<const FunctionDef*> seen_;
  std::vector<const FunctionDef*> reached_;
};

}  // namespace

std::vector<std::string> named_functions(std::string_view op,
                                         const AttrMap& attrs,
                                         const FunctionLibrary& library) {
  std::vector<std::string> names;
  if (OpRegistry::global().find_or_null(op) == nullptr &&
      library.find(op) != nullptr)
    names.emplace_back(op);
  for (const FunctionRef* function : functions_of(attrs))
    names.push_back(function->name);
  return names;
}

std::vector<const FunctionDef*> reached_functions(
    const std::vector<NodeDef>& nodes, const FunctionLibrary& library) {
  Reach reach(library);
  for (const NodeDef& node : nodes) reach.visit(node.op, node.attrs);
  return reach.all();
}

std::vector<const FunctionDef*> reached_functions(
    std::span<Node* const> nodes, const FunctionLibrary& library) {
  Reach reach(library);
  for (const Node* node : nodes) reach.visit(node->op(), node->attrs());
  return reach.all();
}

Status check_ops(const std::vector<NodeDef>& nodes,
                 const std::vector<const FunctionDef*>& functions,
                 const FunctionLibrary& library) {
  std::map<std::string, Uses> unknown;
  count_unknown(nodes, nullptr, library, unknown);
  for (const FunctionDef* function : functions)
    count_unknown(function->nodes, function, library, unknown);
  if (unknown.empty()) return {};
  std::vector<std::string> texts;
  for (const auto& [op, uses] : unknown) {
    if (texts.size() == kMostOpsNamed) {
      texts.push_back(
          fmt::format("and {} more", unknown.size() - kMostOpsNamed));
      break;
    }
    texts.push_back(describe_unknown(op, uses));
  }
  return error(Code::kUnimplemented, "{}{}", kOpsModule,
               fmt::join(texts, "; "));
}

Status check_call(const Graph& graph, const Node& node, size_t& budget) {
  const bool is_call =
      is_functional_op(node.op()) || !node.op_def().is_registered;
  if (!is_call) return {};
  return LoneCall(graph.library(), budget).check(node);
}

Status check_function(const FunctionDef& function,
                      const FunctionLibrary& library, size_t& budget) {
  const Result<FunctionInstance> instance =
      FunctionInstance::bind(library, {function.name(), {}});
  if (!instance.ok()) {
    const auto is_open = [](const AttrDef& attr) {
      return !attr.default_value;
    };
    return std::ranges::any_of(function.signature.attrs, is_open)
               ? Status()
               : instance.status().with_prefix("[function] ");
  }
  Status status = LoneCall(library, budget).check(*instance);
  if (status.ok()) return status;
  // There is only the node that was made here.
  const std::string made = fmt::format("[{}] node \"{}\": ", function.name(),
                                       to_node_name(function.name()));
  std::string_view message = status.message();
  if (message.starts_with(made)) message.remove_prefix(made.size());
  return error(status.code(), "[function] {}", message);
}

}  // namespace tagflow::graph
