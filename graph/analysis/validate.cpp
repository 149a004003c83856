#include "graph/analysis/validate.h"

#include <algorithm>
#include <unordered_set>

#include "graph/analysis/frames.h"
#include "graph/budget.h"
#include "graph/function.h"
#include "graph/node_types.h"
#include "graph/op_registry.h"

namespace tagflow::graph {
namespace {

// The nesting depth of functions in values of attributes; at most `limit` + 1.
int attr_depth(const AttrMap& attrs, int limit) {
  if (limit < 0) return 0;
  int deepest = 0;
  for (const FunctionRef* function : functions_of(attrs))
    deepest = std::max(deepest, 1 + attr_depth(function->attrs, limit - 1));
  return deepest;
}

// Checks of single nodes and functions.
class Validator {
 public:
  Validator(const Graph& graph, const Limits& limits)
      : graph_(graph), limits_(limits) {}

  Status check(const Node& node) const {
    Status status = check_node(node);
    if (status.ok()) return status;
    return std::move(status).with_prefix(
        fmt::format("[{}] node \"{}\": ", node.op(), node.name()));
  }

  Status check(const FunctionDef& function) const {
    Status status = check_function(function);
    if (status.ok()) return status;
    return std::move(status).with_prefix(
        fmt::format("[function] \"{}\": ", function.name()));
  }

 private:
  Status check_name(const std::string& name) const {
    if (name.size() > limits_.max_name_length)
      return error(Code::kResourceExhausted,
                   "the name has {} bytes, the limit is {}", name.size(),
                   limits_.max_name_length);
    return check_node_name(name);
  }

  Status check_node(const Node& node) const {
    TAGFLOW_RETURN_IF_ERROR(check_name(node.name()));
    TAGFLOW_RETURN_IF_ERROR(check_op(node));
    if (attr_depth(node.attrs(), limits_.max_attr_depth) >
        limits_.max_attr_depth)
      return error(Code::kResourceExhausted,
                   "functions nest deeper than {} in its attributes",
                   limits_.max_attr_depth);
    TAGFLOW_RETURN_IF_ERROR(check_inputs(node));
    TAGFLOW_RETURN_IF_ERROR(check_types(node));
    return node.is_const() ? check_const(node) : Status();
  }

  Status check_op(const Node& node) const {
    if (node.op_def().is_registered) return {};
    const FunctionDef* function = graph_.library().find(node.op());
    if (function != nullptr && &function->signature == &node.op_def())
      return {};
    return error(Code::kUnimplemented,
                 "the op is neither registered nor a function of the library");
  }

  Status check_inputs(const Node& node) const {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Endpoint& input = node.inputs()[i];
      if (input.node == nullptr)
        return invalid_argument(
            "input {} is a back edge that leads nowhere; "
            "a NextIteration must close it",
            i);
      if (!graph_.owns(input.node))
        return invalid_argument("input {} is of no node of the graph", i);
      if (input.port < 0 || input.port >= input.node->num_outputs())
        return invalid_argument("input {} (\"{}\") does not exist", i,
                                input.to_string());
    }
    for (const Node* input : node.control_inputs())
      if (input == nullptr || !graph_.owns(input))
        return invalid_argument("a control input is not a node of the graph");
    return {};
  }

  // Infers the types again, as if the node were added now, if an attribute was
  // changed since.
  static Status check_types(const Node& node) {
    if (node.has_inferred_types()) return {};
    for (const AttrDef& attr : node.op_def().attrs)
      if (!node.attrs().contains(attr.name))
        return invalid_argument("attribute \"{}\" is missing", attr.name);
    AttrMap attrs = node.attrs();
    TAGFLOW_ASSIGN(const PortTypes types,
                   infer_types(node.op_def(), node.inputs(), attrs));
    if (!std::ranges::equal(types.inputs, node.input_dtypes()) ||
        !std::ranges::equal(types.outputs, node.output_dtypes()))
      return invalid_argument(
          "its attributes were changed and contradict the types of its ports");
    return {};
  }

  static Status check_const(const Node& node) {
    TAGFLOW_ASSIGN(const Tensor value, get_attr<Tensor>(node.attrs(), "value"));
    if (value.valid() && value.dtype() == node.output_dtypes()[0]) return {};
    return invalid_argument("the value is {}, attribute \"dtype\" says {}",
                            value.describe(),
                            dtype_name(node.output_dtypes()[0]));
  }

  Status check_function(const FunctionDef& function) const {
    if (OpRegistry::global().find_or_null(function.name()) != nullptr)
      return error(Code::kAlreadyExists, "an op has this name");
    std::unordered_set<std::string_view> args, names;
    for (const ArgDef& arg : function.signature.inputs)
      if (!args.insert(arg.name).second)
        return error(Code::kAlreadyExists, "two arguments are named \"{}\"",
                     arg.name);
    for (const NodeDef& node : function.nodes) {
      TAGFLOW_RETURN_IF_ERROR(check_name(node.name));
      if (args.contains(node.name))
        return error(Code::kAlreadyExists, "\"{}\" is an argument and a node",
                     node.name);
      if (!names.insert(node.name).second)
        return error(Code::kAlreadyExists, "two nodes are named \"{}\"",
                     node.name);
    }
    for (const NodeDef& node : function.nodes)
      for (const std::string& input : node.inputs) {
        const std::string_view source = source_of(input);
        if (args.contains(source) || names.contains(source)) continue;
        return invalid_argument(
            "node \"{}\": input \"{}\" is of no argument or node", node.name,
            input);
      }
    return check_results(function, args, names);
  }

  // "node" of "^node" and "node:output:0".
  static std::string_view source_of(std::string_view input) {
    if (input.starts_with('^')) input.remove_prefix(1);
    return input.substr(0, input.find(':'));
  }

  static Status check_results(
      const FunctionDef& function,
      const std::unordered_set<std::string_view>& args,
      const std::unordered_set<std::string_view>& names) {
    std::unordered_set<std::string_view> results;
    for (const ArgDef& result : function.signature.outputs) {
      if (!results.insert(result.name).second)
        return error(Code::kAlreadyExists, "two results are named \"{}\"",
                     result.name);
      if (!function.ret.contains(result.name))
        return invalid_argument("nothing is returned as \"{}\"", result.name);
    }
    for (const auto& [result, output] : function.ret) {
      const std::string_view source = source_of(output);
      if (!results.contains(result))
        return invalid_argument(
            "\"{}\" is returned as \"{}\", which is not a "
            "result",
            output, result);
      if (!args.contains(source) && !names.contains(source))
        return invalid_argument(
            "\"{}\", returned as \"{}\", is of no argument or node", output,
            result);
    }
    for (const auto& [output, node] : function.control_ret)
      if (!names.contains(node))
        return invalid_argument("control output \"{}\" is not a node: \"{}\"",
                                output, node);
    for (const std::string& output : function.control_outputs)
      if (!function.control_ret.contains(output))
        return invalid_argument("no node gives control output \"{}\"", output);
    return {};
  }

  const Graph& graph_;
  const Limits& limits_;
};

}  // namespace

Status GrowingCheck::run(const Graph& graph, Budget* budget) {
  const auto nodes = graph.nodes().subspan(frames_.num_nodes());
  const auto added = graph.library().in_order_added().subspan(num_functions_);
  size_t function_nodes = function_nodes_;
  for (const FunctionDef* function : added)
    function_nodes += function->nodes.size();
  if (graph.size() + function_nodes > limits_.max_nodes)
    return error(Code::kResourceExhausted,
                 "[graph] {} nodes, those of functions included, are over "
                 "the limit of {}",
                 graph.size() + function_nodes, limits_.max_nodes);
  if (budget == nullptr) budget = limits_.budget;
  begin_stage(budget, "the graph was checked");
  const Validator validator(graph, limits_);
  for (const Node* node : nodes) {
    ++num_visits_;
    TAGFLOW_RETURN_IF_ERROR(check_budget(budget));
    TAGFLOW_RETURN_IF_ERROR(validator.check(*node));
  }
  Limits limits = limits_;
  limits.budget = budget;
  TAGFLOW_RETURN_IF_ERROR(frames_.extend(graph, limits));
  // Of several invalid functions the first one by name is reported.
  std::vector<const FunctionDef*> functions(added.begin(), added.end());
  std::ranges::sort(functions, {}, &FunctionDef::name);
  for (const FunctionDef* function : functions) {
    ++num_visits_;
    TAGFLOW_RETURN_IF_ERROR(check_budget(budget, 1 + function->nodes.size()));
    TAGFLOW_RETURN_IF_ERROR(validator.check(*function));
  }
  num_functions_ += added.size();
  function_nodes_ = function_nodes;
  return {};
}

bool GrowingCheck::covers(const Graph& graph) const {
  return frames_.num_nodes() == graph.size() &&
         num_functions_ == graph.library().size();
}

Status validate(const Graph& graph, const Limits& limits) {
  return GrowingCheck(limits).run(graph);
}

Result<FrameMap> validated_frames(const Graph& graph, const Limits& limits) {
  GrowingCheck check(limits);
  TAGFLOW_RETURN_IF_ERROR(check.run(graph));
  return std::move(check).take_frames();
}

}  // namespace tagflow::graph
