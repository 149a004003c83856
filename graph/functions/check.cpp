#include "graph/functions/check.h"

#include <algorithm>

#include "graph/analysis/frames.h"
#include "graph/functions/instance.h"
#include "graph/functions/lower.h"
#include "graph/node_name.h"

namespace tagflow::graph {
namespace {

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

}  // namespace

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
