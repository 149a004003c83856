#include "graph/functions/make_function.h"

#include <algorithm>

#include "graph/functions/ports.h"

namespace tagflow::graph {
namespace {

// An output in the format of a function's body: "argument", or
// "node:output:index".
Result<std::string> body_text(const Endpoint& endpoint,
                              std::span<const Endpoint> args) {
  const Node& node = *endpoint.node;
  if (std::ranges::find(args, endpoint) != args.end()) return node.name();
  TAGFLOW_ASSIGN(
      const std::string output,
      output_text(node.op_def(), node.attrs(), size_t(endpoint.port)));
  return fmt::format("{}:{}", node.name(), output);
}

Result<NodeDef> body_node(const Node& node, std::span<const Endpoint> args) {
  NodeDef def{node.name(), node.op(), {}, node.device(), node.attrs()};
  for (const Endpoint& input : node.inputs()) {
    TAGFLOW_ASSIGN(std::string text, body_text(input, args));
    def.inputs.push_back(std::move(text));
  }
  for (const Node* control : node.control_inputs())
    def.inputs.push_back("^" + control->name());
  return def;
}

}  // namespace

Result<FunctionDef> make_function(std::string name, const Graph& body,
                                  std::span<const Endpoint> args,
                                  std::span<const Endpoint> results) {
  FunctionDef function;
  OpDef& signature = function.signature;
  signature.name = std::move(name);
  for (const Endpoint& arg : args) {
    if (arg.node == nullptr || arg.node->op() != "Placeholder" ||
        body.find(arg.node->name()) != arg.node)
      return invalid_argument(
          "[function] argument \"{}\" of \"{}\" is not a Placeholder of its "
          "body",
          arg.to_string(), signature.name);
    signature.inputs.push_back(
        one_tensor(arg.node->name(), arg.node->output_dtypes()[0]));
  }
  for (const Endpoint& result : results) {
    if (result.node == nullptr || body.find(result.node->name()) != result.node)
      return invalid_argument(
          "[function] result \"{}\" of \"{}\" is not of its body",
          result.to_string(), signature.name);
    const std::string output =
        fmt::format("result_{}", signature.outputs.size());
    const DataType type = result.node->output_dtypes()[size_t(result.port)];
    signature.outputs.push_back(one_tensor(output, remove_ref(type)));
    TAGFLOW_ASSIGN(function.ret[output], body_text(result, args));
  }
  for (const Node* node : body.nodes()) {
    if (std::ranges::find(args, Endpoint{const_cast<Node*>(node), 0}) !=
        args.end())
      continue;
    signature.is_stateful |= node->op_def().is_stateful;
    TAGFLOW_ASSIGN(NodeDef def, body_node(*node, args));
    function.nodes.push_back(std::move(def));
  }
  return function;
}

}  // namespace tagflow::graph
